/* The kernel of products: adds up the products of few rows, or of few vectors of a run, as wide terms, then as
   accumulators. */

ON_TARGET BCAST_INLINE Wide FN(product)(const char *a, const char *b)
{
    Wide product = FN(load)(a) * FN(load)(b);
    if (COMPENSATED) ROUND(product);
    return product;
}

/* Four or eight sums of `n` products, and of the accumulators at `dst`, if that `adds`. Compilers that know the stride
   keep a pointer to each row, for which there are too few registers. */
ON_TARGET BCAST_INLINE void FN(multiply_columns)(
    const int n, const char *a, const char *b, ptrdiff_t stride, const int adds, const Acc *dst, const Acc *errors,
    Accumulator *sums)
{
    Wide wide = FN(product)(a, b);
    __asm__("" : "+r"(stride));
    const char *a_half = a + 4 * stride, *b_half = b + 4 * stride;
    for (int i = 1; i < n; i++) {
        const ptrdiff_t at = i % 4 * stride;
        wide += FN(product)((i < 4 ? a : a_half) + at, (i < 4 ? b : b_half) + at);
    }
    for (int i = 0; i < PARTS; i++) {
        const AccVec part = FN(part)(&wide, i);
        sums[i] = (Accumulator) {part, {0}};
        if (adds) {
            sums[i].sum = BCAST_AT(const AccVec, dst, i);
            if (COMPENSATED) sums[i].error = BCAST_AT(const AccVec, errors, i);
            FN(fast_two_sum)(&sums[i], &part);
        }
    }
}

/* `n` rows for each row of sums. The last vector is moved back to end with the rows, and begun before others change
   what it adds to. The same columns of rows to come are prefetched. */
SPECIALISED void FN(multiply_n_rows)(
    const int n, const bcast_term_products *rows, const int adds, Acc *dst, const int has_errors)
{
    const ptrdiff_t stride = rows->stride, width = rows->width, last = (width - LANES) * SIZE, group = n * stride;
    const ptrdiff_t ahead = group > 0 ? (rows->ahead + group - 1) / group * group : rows->ahead;
    const char *a = rows->a, *b = rows->b;
    Accumulator sums[PARTS], end[PARTS];
    for (ptrdiff_t k = rows->count; k > 0; k--, a += rows->a_advance, b += rows->b_advance, dst += width) {
        Acc *errors = dst + width;
        FN(multiply_columns)(n, a + last, b + last, stride, adds, dst + width - LANES, errors + width - LANES, end);
        for (ptrdiff_t part = 0, at = 0; part <= last; part += 256) {
            for (int i = 0; ahead && i < 4 * n; i++) {
                __builtin_prefetch(a + part + i % 4 * 64 + i / 4 * stride + ahead);
                __builtin_prefetch(b + part + i % 4 * 64 + i / 4 * stride + ahead);
            }
            for (; at < part + 256 && at < last; at += VECTOR) {
                const ptrdiff_t j = at / SIZE;
                FN(multiply_columns)(n, a + at, b + at, stride, adds, dst + j, errors + j, sums);
                for (int i = 0; i < PARTS; i++) BCAST_AT(AccVec, dst + j, i) = sums[i].sum;
                if (COMPENSATED && has_errors) BCAST_AT(AccVec, errors + j, 0) = sums[0].error;
            }
        }
        for (int i = 0; i < PARTS; i++) BCAST_AT(AccVec, dst + width - LANES, i) = end[i].sum;
        if (COMPENSATED && has_errors) BCAST_AT(AccVec, errors + width - LANES, 0) = end[0].error;
    }
}

/* Eight rows at a time take the fewest instructions; two come faster from memory. */
#define CASE(n) case n: \
    if (adds) FN(multiply_n_rows)(n, &rows, 1, dst, 1); \
    else FN(multiply_n_rows)(n, &rows, 0, dst, all->rows > 1); \
    break;
ON_TARGET static void FN(multiply_rows)(const bcast_term_products *all, Acc *dst)
{
    bcast_term_products rows = *all;
    const ptrdiff_t most = IS_INTEGER ? 1 : rows.ahead || COMPENSATED ? 2 : 8;
    int adds = 0;
    if (rows.width < LANES) {
        FN(multiply_narrow)(&rows, dst);
        return;
    }
    for (ptrdiff_t n; rows.rows > 0; rows.rows -= n, rows.a += n * rows.stride, rows.b += n * rows.stride, adds = 1) {
        n = rows.rows < most ? rows.rows : most;
        n = n >= 8 ? 8 : n >= 4 ? 4 : n >= 2 ? 2 : 1;
        switch (n) { CASE(1) CASE(2) CASE(4) CASE(8) }
    }
}
#undef CASE

/* The sums of a run, as many as it has lanes. */
ON_TARGET static void FN(multiply_run)(const char *a, const char *b, ptrdiff_t length, ptrdiff_t ahead, Acc *dst)
{
    const int tree = COMPENSATED ? 2 : 8;
    Accumulator sums[PARTS] = {{{0}, {0}}};
    for (; length >= 8 * LANES; length -= 8 * LANES) {
        for (int at = 0; ahead && at < 8 * VECTOR; at += 64) {
            __builtin_prefetch(a + ahead + at);
            __builtin_prefetch(b + ahead + at);
        }
        for (int i = 0; i < 8; i += tree, a += tree * VECTOR, b += tree * VECTOR) {
            Wide wide = FN(product)(a, b);
            for (int j = 1; j < tree; j++) wide += FN(product)(a + j * VECTOR, b + j * VECTOR);
            FN(add_parts)(1, sums, &wide);
        }
    }
    for (; length >= LANES; length -= LANES, a += VECTOR, b += VECTOR) {
        const Wide wide = FN(product)(a, b);
        FN(add_parts)(0, sums, &wide);
    }
    for (int i = 0; i < PARTS; i++) BCAST_AT(AccVec, dst, i) = sums[i].sum;
    if (COMPENSATED) BCAST_AT(AccVec, dst + LANES, 0) = sums[0].error;
    for (ptrdiff_t j = 0; j < length; j++) FN(add_product)(&dst[j], &dst[LANES + j], a + j * SIZE, b + j * SIZE);
}
