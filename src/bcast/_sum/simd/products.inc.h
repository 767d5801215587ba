/* The kernel of products: multiplies rows of terms, and adds up few rows as wide terms. */

/* Column `at` of `n` rows, and those beside it. */
ON_TARGET BCAST_INLINE Wide FN(multiply_columns)(const int n, const bcast_term_products *rows, ptrdiff_t at)
{
    const char *a = rows->a + at * SIZE, *b = rows->b + at * SIZE;
    Wide sum = FN(load)(a) * FN(load)(b);
    for (int i = 1; i < n; i++) sum += FN(load)(a + i * rows->a_step) * FN(load)(b + i * rows->b_step);
    return sum;
}

ON_TARGET BCAST_INLINE void FN(put_wide)(Acc *dst, const Wide *wide)
{
    for (int i = 0; i < PARTS; i++) BCAST_AT(AccVec, dst, i) = FN(part)(wide, i);
}

/* The last vector is moved back to end with the row, and multiplied before others are stored. */
SPECIALISED void FN(multiply_n_rows)(const int n, const bcast_term_products *all, Acc *dst)
{
    bcast_term_products rows = *all;
    const ptrdiff_t last = rows.width - LANES;
    for (; rows.count > 0; rows.count--, dst += rows.width) {
        const Wide end = FN(multiply_columns)(n, &rows, last);
        for (ptrdiff_t j = 0; j < last; j += LANES) {
            const Wide sum = FN(multiply_columns)(n, &rows, j);
            FN(put_wide)(dst + j, &sum);
        }
        FN(put_wide)(dst + last, &end);
        rows.a += n * rows.a_step;
        rows.b += n * rows.b_step;
    }
}

#define CASE(n) case n: FN(multiply_n_rows)(n, rows, sums); break;
ON_TARGET static void FN(multiply)(const bcast_term_products *rows, void *sums)
{
    switch (rows->width < LANES ? 0 : rows->rows) {
    CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8)
    default: FN(multiply_narrow)(rows, sums);
    }
}
#undef CASE
