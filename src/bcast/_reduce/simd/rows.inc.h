/* The kernel of rows: adds rows to a row of accumulators, or writes their sums. */

/* The sums of `n` rows in each turn. The last vector is moved back to end with the rows, and begun before the others
   change what it adds to: so all items of a row are summed alike. */
SPECIALISED int FN(sum_n_rows)(const int n, const bcast_term_rows *all, const bcast_sink *sink)
{
    const bcast_term_rows rows = *all;       /* not in memory to which sums are stored */
    const ptrdiff_t last = rows.width - LANES;
    bcast_sink dst = *sink;
    const char *src = rows.src;
    AccVec special = {0};
    for (ptrdiff_t turn = 0; turn < rows.turns; turn++, src += rows.advance, dst.mode = BCAST_ADD) {
        Accumulator end[PARTS];
        FN(begin)(&dst, last, end);
        for (ptrdiff_t j = 0; j < last; j += LANES) {
            Accumulator sums[PARTS];
            FN(begin)(&dst, j, sums);
            FN(add_columns)(n, sums, src + j * SIZE, rows.stride, rows.half_stride);
            for (int i = 0; i < PARTS; i++) FN(put)(&dst, j + 4 * i, &sums[i], &special);
        }
        FN(add_columns)(n, end, src + last * SIZE, rows.stride, rows.half_stride);
        for (int i = 0; i < PARTS; i++) FN(put)(&dst, last + 4 * i, &end[i], &special);
    }
    return FN(is_special)(&special);
}

#define CASE(n) case n: return FN(sum_n_rows)(n, rows, dst);
ON_TARGET static int FN(sum_rows)(const bcast_term_rows *rows, const bcast_sink *dst)
{
    if (rows->width < LANES) return FN(sum_narrow_rows)(rows, dst);
    switch (rows->rows) { CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8) }
    return 0;
}
#undef CASE
