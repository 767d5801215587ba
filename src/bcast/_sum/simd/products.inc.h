/* The kernel of products: adds up the products of few rows, or of eight vectors of a run, as wide terms, then as
   accumulators. */

/* Four or eight sums of `n` products, and of what is at `dst`, if that `adds`. Compilers that know the step keep a
   pointer to each row, for which there are too few registers. */
ON_TARGET BCAST_INLINE void FN(multiply_columns)(
    const int n, const char *a, const char *b, ptrdiff_t step, const int adds, const Acc *dst, AccVec *sums)
{
    Wide wide = FN(load)(a) * FN(load)(b);
    __asm__("" : "+r"(step));
    const char *a_half = a + 4 * step, *b_half = b + 4 * step;
    for (int i = 1; i < n; i++) {
        const ptrdiff_t at = i % 4 * step;
        wide += FN(load)((i < 4 ? a : a_half) + at) * FN(load)((i < 4 ? b : b_half) + at);
    }
    for (int i = 0; i < PARTS; i++) {
        sums[i] = FN(part)(&wide, i);
        if (adds) sums[i] += BCAST_AT(const AccVec, dst, i);
    }
}

/* `n` rows for each row of sums. The last vector is moved back to end with the rows, and begun before others change
   what it adds to. The same columns of rows to come are prefetched. */
SPECIALISED void FN(multiply_n_rows)(const int n, const bcast_term_products *rows, const int adds, Acc *dst)
{
    const ptrdiff_t step = rows->step, width = rows->width, last = (width - LANES) * SIZE, group = n * step;
    const ptrdiff_t ahead = group > 0 ? (rows->ahead + group - 1) / group * group : rows->ahead;
    const char *a = rows->a, *b = rows->b;
    AccVec sums[PARTS], end[PARTS];
    for (ptrdiff_t k = rows->count; k > 0; k--, a += rows->a_advance, b += rows->b_advance, dst += width) {
        FN(multiply_columns)(n, a + last, b + last, step, adds, dst + width - LANES, end);
        for (ptrdiff_t part = 0, at = 0; part <= last; part += 256) {
            for (int i = 0; ahead && i < 4 * n; i++) {
                __builtin_prefetch(a + part + i % 4 * 64 + i / 4 * step + ahead);
                __builtin_prefetch(b + part + i % 4 * 64 + i / 4 * step + ahead);
            }
            for (; at < part + 256 && at < last; at += VECTOR) {
                FN(multiply_columns)(n, a + at, b + at, step, adds, dst + at / SIZE, sums);
                for (int i = 0; i < PARTS; i++) BCAST_AT(AccVec, dst + at / SIZE, i) = sums[i];
            }
        }
        for (int i = 0; i < PARTS; i++) BCAST_AT(AccVec, dst + width - LANES, i) = end[i];
    }
}

/* Eight rows at a time take the fewest instructions; two come faster from memory. */
#define CASE(n) case n: adds ? FN(multiply_n_rows)(n, &rows, 1, dst) : FN(multiply_n_rows)(n, &rows, 0, dst); break;
ON_TARGET static void FN(multiply_rows)(const bcast_term_products *all, Acc *dst)
{
    bcast_term_products rows = *all;
    const ptrdiff_t most = rows.ahead ? 2 : 8;
    int adds = 0;
    if (rows.width < LANES) {
        FN(multiply_narrow)(&rows, dst);
        return;
    }
    for (ptrdiff_t n; rows.rows > 0; rows.rows -= n, rows.a += n * rows.step, rows.b += n * rows.step, adds = 1) {
        n = rows.rows < most ? rows.rows : most;
        n = n == 8 ? 8 : n >= 4 ? 4 : n >= 2 ? 2 : 1;
        switch (n) { CASE(1) CASE(2) CASE(4) CASE(8) }
    }
}
#undef CASE

/* The sums of a run, as many as it has lanes. */
ON_TARGET static void FN(multiply_run)(const char *a, const char *b, ptrdiff_t length, ptrdiff_t ahead, Acc *dst)
{
    AccVec sums[PARTS] = {{0}};
    for (; length >= 8 * LANES; length -= 8 * LANES, a += 8 * VECTOR, b += 8 * VECTOR) {
        Wide wide = FN(load)(a) * FN(load)(b);
        for (int i = 1; i < 8; i++) wide += FN(load)(a + i * VECTOR) * FN(load)(b + i * VECTOR);
        for (int i = 0; i < PARTS; i++) sums[i] += FN(part)(&wide, i);
        for (int at = 0; ahead && at < 8 * VECTOR; at += 64) {
            __builtin_prefetch(a + ahead + at);
            __builtin_prefetch(b + ahead + at);
        }
    }
    for (; length >= LANES; length -= LANES, a += VECTOR, b += VECTOR) {
        const Wide wide = FN(load)(a) * FN(load)(b);
        for (int i = 0; i < PARTS; i++) sums[i] += FN(part)(&wide, i);
    }
    for (int i = 0; i < PARTS; i++) BCAST_AT(AccVec, dst, i) = sums[i];
    for (ptrdiff_t j = 0; j < length; j++) dst[j] += FN(value)(a + j * SIZE) * FN(value)(b + j * SIZE);
}
