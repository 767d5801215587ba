/* The kernel of products: adds up the products of rows as wide terms, eight or two rows at a time, then as accumulators.
   Few streams come from memory faster than many, which take fewer instructions. */

/* Four or eight sums of `n` products, and of what is at `dst`, if that `adds`. */
ON_TARGET BCAST_INLINE void FN(multiply_columns)(
    const int n, const char *a, const char *b, ptrdiff_t step, const int adds, const Acc *dst, AccVec *sums)
{
    Wide wide = FN(load)(a) * FN(load)(b);
    for (int i = 1; i < n; i++) wide += FN(load)(a + i * step) * FN(load)(b + i * step);
    for (int i = 0; i < PARTS; i++) {
        sums[i] = FN(part)(&wide, i);
        if (adds) sums[i] += BCAST_AT(const AccVec, dst, i);
    }
}

/* `n` rows for each row of sums. The last vector is moved back to end with the rows, and begun before others change what
   it adds to. The same columns of rows to come are prefetched. */
SPECIALISED void FN(multiply_n_rows)(const int n, const bcast_term_products *rows, const int adds, Acc *dst)
{
    const ptrdiff_t step = rows->step, width = rows->width, last = (width - LANES) * SIZE, group = n * step;
    const ptrdiff_t ahead = group > 0 ? (rows->ahead + group - 1) / group * group : rows->ahead;
    const char *a = rows->a, *b = rows->b;
    AccVec sums[PARTS], end[PARTS];
    for (ptrdiff_t k = rows->count; k > 0; k--, a += rows->a_advance, b += rows->b_advance, dst += width) {
        FN(multiply_columns)(n, a + last, b + last, step, adds, dst + width - LANES, end);
        for (ptrdiff_t line = 0, at = 0; line <= last; line += 64) {
            for (int i = 0; ahead && i < n; i++) {
                __builtin_prefetch(a + line + i * step + ahead);
                __builtin_prefetch(b + line + i * step + ahead);
            }
            for (; at < line + 64 && at < last; at += VECTOR) {
                FN(multiply_columns)(n, a + at, b + at, step, adds, dst + at / SIZE, sums);
                for (int i = 0; i < PARTS; i++) BCAST_AT(AccVec, dst + at / SIZE, i) = sums[i];
            }
        }
        for (int i = 0; i < PARTS; i++) BCAST_AT(AccVec, dst + width - LANES, i) = end[i];
    }
}

#define CASE(n) case n: adds ? FN(multiply_n_rows)(n, &rows, 1, dst) : FN(multiply_n_rows)(n, &rows, 0, dst); break;
ON_TARGET static void FN(multiply_rows)(const bcast_term_products *all, int adds, Acc *dst)
{
    bcast_term_products rows = *all;
    const int most = rows.ahead && rows.step > 8 * VECTOR ? 2 : 8;
    if (rows.width < LANES) {
        FN(multiply_narrow)(&rows, adds, dst);
        return;
    }
    for (ptrdiff_t n; rows.rows > 0; rows.rows -= n, rows.a += n * rows.step, rows.b += n * rows.step, adds = 1) {
        n = rows.rows < most ? rows.rows : most;
        if (n & (n - 1)) n = n > 4 ? 4 : 2;
        switch (n) { CASE(1) CASE(2) CASE(4) CASE(8) }
    }
}
#undef CASE
