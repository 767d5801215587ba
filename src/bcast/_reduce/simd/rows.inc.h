/* The kernel of rows: adds rows to a row of accumulators, or writes their sums. */

/* Some turns of `n` rows each, by vectors of columns from a first one on. The last vector is moved back to end with the
   rows, and begun before the others change what it adds to. */
template <class Kind>
BCAST_INLINE void add_turns_of_rows(
    const int n, const bcast_term_rows *all, ptrdiff_t turns, const char *src, ptrdiff_t first, const bcast_sink *sink,
    Doubts<Kind> *noted)
{
    const bcast_term_rows rows = *all;      /* not in memory to which sums are stored */
    const ptrdiff_t last = rows.width - Kind::lanes;
    bcast_sink dst = *sink;
    Doubts<Kind> doubts = *noted;

    for (ptrdiff_t turn = 0; turn < turns; turn++, src += rows.advance, dst.mode = BCAST_ADD) {
        Accumulators<Kind> end[Kind::parts];
        begin(&dst, last, end);

        for (ptrdiff_t j = first; j < last; j += Kind::lanes) {
            Accumulators<Kind> sums[Kind::parts];
            begin(&dst, j, sums);
            add_columns(n, sums, src + j * Kind::bytes, rows.stride, rows.half_stride, &doubts.most_lost);
            for (int i = 0; i < Kind::parts; i++) put(&dst, j + 4 * i, &sums[i], &doubts.special);
        }

        add_columns(n, end, src + last * Kind::bytes, rows.stride, rows.half_stride, &doubts.most_lost);
        for (int i = 0; i < Kind::parts; i++) put(&dst, last + 4 * i, &end[i], &doubts.special);
    }
    *noted = doubts;
}

/* Add up some columns of turns of rows, a block, in accumulators of its own; return whether they are exact. */
template <class Kind>
SPECIALISED bool sum_rows_on_grids(
    const int n, const bcast_term_rows *all, ptrdiff_t turns, const char *src, ptrdiff_t width,
    const Grids<Kind> *grids, Sum<Kind> *firsts, Sum<Kind> *seconds)
{
    using Four = FourSums<Kind>;
    const bcast_term_rows rows = *all;      /* not in memory to which sums are stored */
    Four squares[2] = {}, left = {};

    for (ptrdiff_t j = 0; j < width; j += Kind::lanes) {
        store(firsts + j, grids->first);
        store(seconds + j, grids->second);
    }
    for (ptrdiff_t turn = 0; turn < turns; turn++, src += rows.advance) {
        for (ptrdiff_t j = 0; j < width; j += Kind::lanes) {
            Four first = load<Four>(firsts + j), second = load<Four>(seconds + j);

            for (int i = 0; i < n; i++) {
                const char *at = src + i % 4 * rows.stride + i / 4 * rows.half_stride + j * Kind::bytes;
                add_on_grids(load_terms<Kind>(at), &first, &second, &squares[i % 2], &left);
            }
            store(firsts + j, first);
            store(seconds + j, second);
        }
    }
    return are_less(squares[0] + squares[1], grids->limit) && are_zero(left);
}

/* The sizes of the largest terms of a block of rows, in each lane. */
template <class Kind>
BCAST_APART FourSums<Kind> sizes_of_rows(
    int n, const bcast_term_rows *rows, ptrdiff_t turns, const char *src, ptrdiff_t width)
{
    FourSums<Kind> sizes[4] = {};

    for (ptrdiff_t turn = 0; turn < turns; turn++, src += rows->advance) {
        for (int i = 0; i < n; i++) {
            const char *at = src + i % 4 * rows->stride + i / 4 * rows->half_stride;
            for (ptrdiff_t j = 0; j < width; j += Kind::lanes)
                sizes[i % 4] = larger(size_of(load_terms<Kind>(at + j * Kind::bytes)), sizes[i % 4]);
        }
    }
    return larger(larger(sizes[0], sizes[1]), larger(sizes[2], sizes[3]));
}

/* Add some columns of turns of rows to accumulators; return whether there were grids for them. */
template <class Kind>
SPECIALISED bool add_block_of_turns(
    const int n, const bcast_term_rows *rows, ptrdiff_t turns, const char *src, ptrdiff_t first, ptrdiff_t width,
    const bcast_sink *dst, Doubts<Kind> *doubts, Grids<Kind> *grids)
{
    Sum<Kind> firsts[GRID_COLUMNS], seconds[GRID_COLUMNS];
    src += first * Kind::bytes;

    if (grids->wait > 0) {
        grids->wait--;
        return false;
    }
    for (bool is_chosen = false;; is_chosen = true) {
        if (grids->known && sum_rows_on_grids<Kind>(n, rows, turns, src, width, grids, firsts, seconds)) break;
        if (is_chosen || !choose_grids(grids, sizes_of_rows<Kind>(n, rows, turns, src, width))) {
            grids->wait = GRID_WAIT;
            return false;
        }
    }

    for (ptrdiff_t j = 0; j < width; j += Kind::lanes) {
        Accumulators<Kind> sums = {
            load<FourSums<Kind>>(firsts + j) - grids->first, load<FourSums<Kind>>(seconds + j) - grids->second,
        };
        put_added(dst, first + j, &sums, doubts);
    }
    return true;
}

/* Four vectors of columns, in all rows of one turn, which are a block; return whether there were grids for it. */
template <class Kind>
SPECIALISED bool add_block_of_rows(
    const int n, const bcast_term_rows *rows, const char *src, ptrdiff_t first, const bcast_sink *dst,
    Doubts<Kind> *doubts, Grids<Kind> *grids)
{
    const ptrdiff_t stride = rows->stride, half_stride = rows->half_stride;
    Accumulators<Kind> sums[4];

    const auto term = [=](int k, ptrdiff_t, int i) BCAST_LAMBDA_INLINE {
        const char *at = src + i % 4 * stride + i / 4 * half_stride;
        return load_terms<Kind>(at + (first + k * Kind::lanes) * Kind::bytes);
    };
    if (!sum_block<Kind>(4, 1, n, false, grids, sums, term, [](int) { return FourSums<Kind>{}; })) return false;

    for (int k = 0; k < 4; k++) put_added(dst, first + 4 * k, &sums[k], doubts);
    return true;
}

/* Sums of float64 by blocks: of turns, some columns at a time; of one turn, four vectors of columns. */
template <class Kind>
SPECIALISED int sum_blocks_of_rows(const int n, const bcast_term_rows *rows, const bcast_sink *sink)
{
    const bool has_turns = rows->turns > 1;
    const ptrdiff_t most = GRID_ROWS / n;                               /* turns of a block */
    const ptrdiff_t wide = has_turns ? GRID_COLUMNS : 4 * Kind::lanes;  /* columns of a block */
    const ptrdiff_t unit = has_turns ? Kind::lanes : wide;
    const ptrdiff_t left = rows->width % unit, few = left > 0 && left < Kind::lanes ? unit : 0;
    const ptrdiff_t end = rows->width - left - few;                     /* of the columns that are in blocks */
    const char *src = rows->src;
    bcast_sink dst = *sink;
    Doubts<Kind> doubts = {};
    Grids<Kind> grids = {};

    for (ptrdiff_t turn = 0, turns; turn < rows->turns; turn += turns, dst.mode = BCAST_ADD) {
        turns = rows->turns - turn < most ? rows->turns - turn : most;
        for (ptrdiff_t j = 0, width; j < end; j += width) {
            width = end - j < wide ? end - j : wide;
            if (has_turns ? add_block_of_turns<Kind>(n, rows, turns, src, j, width, &dst, &doubts, &grids)
                          : add_block_of_rows<Kind>(n, rows, src, j, &dst, &doubts, &grids))
                continue;
            bcast_term_rows some = *rows;
            some.width = j + width;
            add_turns_of_rows<Kind>(n, &some, turns, src, j, &dst, &doubts);
        }
        if (end < rows->width) add_turns_of_rows<Kind>(n, rows, turns, src, end, &dst, &doubts);
        src += turns * rows->advance;
    }
    return done<Kind>(sink, &doubts);
}

/* The sums of `n` rows in each turn. */
template <class Kind>
SPECIALISED int sum_n_rows(const int n, const bcast_term_rows *rows, const bcast_sink *dst)
{
    Doubts<Kind> doubts = {};

    if constexpr (Kind::compensated)
        if (n >= 4 && n * rows->turns > 4) return sum_blocks_of_rows<Kind>(n, rows, dst);

    add_turns_of_rows<Kind>(n, rows, rows->turns, rows->src, 0, dst, &doubts);
    return done<Kind>(dst, &doubts);
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
