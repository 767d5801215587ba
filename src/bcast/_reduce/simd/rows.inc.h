/* The kernel of rows: adds rows to a row of accumulators, or writes their sums. */

/* The sums of `n` rows in each turn. The last vector is moved back to end with the rows; it reads its accumulators
   before other vectors change them. So all items of a row are added in the same order. */
template <class Kind>
SPECIALISED int sum_n_rows(const int n, const bcast_term_rows *all, const bcast_sink *sink)
{
    const bcast_term_rows rows = *all;      /* a copy, which stores of sums cannot change */
    const ptrdiff_t last = rows.width - Kind::lanes;
    bcast_sink dst = *sink;
    const char *src = rows.src;
    FourSums<Kind> special = {};

    for (ptrdiff_t turn = 0; turn < rows.turns; turn++, src += rows.advance, dst.mode = BCAST_ADD) {
        Accumulators<Kind> end[Kind::parts];
        begin(&dst, last, end);

        for (ptrdiff_t j = 0; j < last; j += Kind::lanes) {
            Accumulators<Kind> sums[Kind::parts];
            begin(&dst, j, sums);
            add_columns(n, sums, src + j * Kind::bytes, rows.stride, rows.half_stride);
            for (int i = 0; i < Kind::parts; i++) put(&dst, j + 4 * i, &sums[i], &special);
        }

        add_columns(n, end, src + last * Kind::bytes, rows.stride, rows.half_stride);
        for (int i = 0; i < Kind::parts; i++) put(&dst, last + 4 * i, &end[i], &special);
    }
    return is_special<Kind>(special);
}

template <class Kind>
int sum_rows(const bcast_term_rows *rows, const bcast_sink *dst)
{
    if (rows->width < Kind::lanes) return sum_narrow_rows<Kind>(rows, dst);

    switch (rows->rows) {
    case 1: return sum_n_rows<Kind>(1, rows, dst);
    case 2: return sum_n_rows<Kind>(2, rows, dst);
    case 3: return sum_n_rows<Kind>(3, rows, dst);
    case 4: return sum_n_rows<Kind>(4, rows, dst);
    case 5: return sum_n_rows<Kind>(5, rows, dst);
    case 6: return sum_n_rows<Kind>(6, rows, dst);
    case 7: return sum_n_rows<Kind>(7, rows, dst);
    case 8: return sum_n_rows<Kind>(8, rows, dst);
    default: return 0;
    }
}
