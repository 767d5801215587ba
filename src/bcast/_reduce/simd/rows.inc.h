/* The kernel of rows: adds rows to a row of accumulators, or writes their sums. */

/* Some turns of `n` rows each, by vectors of columns from a first one on. The last vector is moved back to end with the
   rows, and begun before the others change what it adds to. */
template <class Kind>
BCAST_INLINE void add_turns_of_rows(
    const int n, const bcast_term_rows *all, ptrdiff_t turns, const char *src, ptrdiff_t first, const bcast_sink *sink,
    FourSums<Kind> *noted)
{
    const bcast_term_rows rows = *all;      /* not in memory to which sums are stored */
    const ptrdiff_t last = rows.width - Kind::lanes;
    bcast_sink dst = *sink;
    FourSums<Kind> special = *noted;

    for (ptrdiff_t turn = 0; turn < turns; turn++, src += rows.advance, dst.mode = BCAST_ADD) {
        const bool begins = dst.mode != BCAST_ADD;
        Accumulators<Kind> end[Kind::parts];
        begin(&dst, last, end);

        for (ptrdiff_t j = first; j < last; j += Kind::lanes) {
            Accumulators<Kind> sums[Kind::parts];
            begin(&dst, j, sums);
            add_columns(n, begins, sums, src + j * Kind::bytes, rows.stride, rows.half_stride);
            for (int i = 0; i < Kind::parts; i++) put(&dst, j + 4 * i, &sums[i], &special);
        }

        add_columns(n, begins, end, src + last * Kind::bytes, rows.stride, rows.half_stride);
        for (int i = 0; i < Kind::parts; i++) put(&dst, last + 4 * i, &end[i], &special);
    }
    *noted = special;
}

/* A block of rows: some turns. */
struct RowBlock {
    const char *src;
    ptrdiff_t turns;
};

/* The sums of a block, for a vector of columns. They lie side by side: as far apart as rows, they would share lines of
   the cache with these. */
template <class Kind>
struct Column {
    FourSums<Kind> anchor;
    Chain<Kind> chain;
    FourSums<Kind> squares;
    FourSums<Kind> least;       /* the sizes of the smallest terms, where they are found */
};

/* A vector of columns, in row `i` of a turn. */
template <class Kind>
BCAST_INLINE FourSums<Kind> load_row(const bcast_term_rows *rows, const char *src, int i)
{
    return load_terms<Kind>(src + i % 4 * rows->stride + i / 4 * rows->half_stride);
}

/* The sums of a vector of columns, term by term. */
template <class Kind>
BCAST_APART Accumulators<Kind> sum_columns_exactly(int n, const bcast_term_rows *rows, const RowBlock *block, ptrdiff_t j)
{
    const char *src = block->src + j * Kind::bytes;
    Accumulators<Kind> sums = {};

    for (ptrdiff_t turn = 0; turn < block->turns; turn++, src += rows->advance) {
        if (n == 4) add_columns(4, turn == 0, &sums, src, rows->stride, rows->half_stride);
        else add_columns(8, turn == 0, &sums, src, rows->stride, rows->half_stride);
    }
    return sums;
}

/* Add some turns of a block to one or four vectors of columns from `at` on: the first turns, the last ones, or all. The
   first turn gives each column a grid. The sums of the last turns go to the sink; those of few terms lose nothing as a
   rule, which their smallest terms show. Columns without a grid, and those of zeros, are added exactly. */
template <class Kind>
BCAST_INLINE void add_turns_to_columns(
    const int n, const int vectors, const bool has_few, const bcast_term_rows *rows, const RowBlock *block,
    ptrdiff_t first, ptrdiff_t turns, ptrdiff_t at, Column<Kind> *columns, const bcast_sink *dst,
    FourSums<Kind> *special)
{
    using Four = FourSums<Kind>;
    const char *src = block->src + first * rows->advance + at * Kind::bytes;
    Four anchor[4], squares[4], least[4];       /* side by side, as the additions to one wait for each other */
    Chain<Kind> chain[4];

    BCAST_UNROLL
    for (int v = 0; v < vectors; v++) {
        if (first == 0) {
            Four sizes = {};
            for (int i = 0; i < n; i++)
                sizes = larger(size_of(load_row<Kind>(rows, src + v * Kind::vector_bytes, i)), sizes);
            anchor[v] = anchor_for<Kind>(sizes, 0x1.8p16);
            chain[v] = {anchor[v], Four{}};
            squares[v] = Four{};
            least[v] = all_lanes<Four>(INFINITY);
        } else {
            anchor[v] = columns[v].anchor;
            chain[v] = columns[v].chain;
            squares[v] = columns[v].squares;
            least[v] = columns[v].least;
        }
    }

    for (ptrdiff_t turn = 0; turn < turns; turn++, src += rows->advance) {
        for (int i = 0; i < n; i++) {
            BCAST_UNROLL
            for (int v = 0; v < vectors; v++) {
                const Four x = load_row<Kind>(rows, src + v * Kind::vector_bytes, i);
                add_on_grid<Kind>(&chain[v], x);
                squares[v] = x * x + squares[v];
                if (has_few) least[v] = smaller(size_of(x), least[v]);
            }
        }
    }

    BCAST_UNROLL
    for (int v = 0; v < vectors; v++) {
        if (first + turns < block->turns) {
            columns[v] = {anchor[v], chain[v], squares[v], least[v]};
            continue;
        }

        Accumulators<Kind> sums = {chain[v].sum - anchor[v], chain[v].rests, scaled(anchor[v], 0x1p-93)};
        if (has_few) sums.lost = lost_beside<Kind>(least[v], sums.lost);
        if (!are_less(Four{}, squares[v]) || !are_less(squares[v], scaled(anchor[v] * anchor[v], 0x1p-16)))
            sums = sum_columns_exactly<Kind>(n, rows, block, at + v * Kind::lanes);
        put_added(dst, at + v * Kind::lanes, &sums, special);
    }
}

/* The same of a strip of columns, from `begin` to `end`. */
template <class Kind>
SPECIALISED void add_turns_to_strip(
    const int n, const bool has_few, const bcast_term_rows *all, const RowBlock *some_block, ptrdiff_t first,
    ptrdiff_t turns, ptrdiff_t begin, ptrdiff_t end, Column<Kind> *columns, const bcast_sink *sink,
    FourSums<Kind> *noted)
{
    const bcast_term_rows rows = *all;      /* not in memory to which sums are stored */
    const RowBlock block = *some_block;
    const bcast_sink dst = *sink;
    const int wide = has_few ? 2 : 4;
    FourSums<Kind> special = *noted;
    ptrdiff_t j = begin;

    for (; j + wide * Kind::lanes <= end; j += wide * Kind::lanes, columns += wide)
        add_turns_to_columns<Kind>(n, wide, has_few, &rows, &block, first, turns, j, columns, &dst, &special);
    for (; j < end; j += Kind::lanes, columns++)
        add_turns_to_columns<Kind>(n, 1, has_few, &rows, &block, first, turns, j, columns, &dst, &special);
    *noted = special;
}

/* Sum many rows of float64, by blocks of rows and strips of columns; term by term the last columns, which are no whole
   vector. */
template <class Kind>
SPECIALISED int sum_blocks_of_rows(const int n, const bcast_term_rows *rows, const bcast_sink *sink)
{
    const ptrdiff_t left = rows->width % Kind::lanes;
    const ptrdiff_t end = left > 0 ? rows->width - left - Kind::lanes : rows->width;    /* of the columns on grids */
    const bool has_few = n * rows->turns <= GRID_ROWS, shares_lines = rows->advance % (BCAST_PAGE / 2) == 0;
    const ptrdiff_t at_once = (shares_lines ? n : GRID_ROWS_AT_ONCE) / n;               /* turns */
    bcast_sink dst = *sink;
    FourSums<Kind> special = {};
    Column<Kind> columns[GRID_COLUMNS / Kind::lanes];
    RowBlock block = {rows->src, 0};

    for (ptrdiff_t more = rows->turns; more > 0; more -= block.turns, dst.mode = BCAST_ADD) {
        block.turns = more < GRID_ROWS / n ? more : GRID_ROWS / n;
        for (ptrdiff_t j = 0, next; j < end; j = next) {
            next = j + GRID_COLUMNS < end ? j + GRID_COLUMNS : end;

            for (ptrdiff_t first = 0, turns; first < block.turns; first += turns) {
                turns = block.turns - first < at_once ? block.turns - first : at_once;
                if (has_few)
                    add_turns_to_strip<Kind>(n, true, rows, &block, first, turns, j, next, columns, &dst, &special);
                else
                    add_turns_to_strip<Kind>(n, false, rows, &block, first, turns, j, next, columns, &dst, &special);
            }
        }
        if (end < rows->width) add_turns_of_rows<Kind>(n, rows, block.turns, block.src, end, &dst, &special);
        block.src += block.turns * rows->advance;
    }
    return done<Kind>(sink, special);
}

/* The sums of `n` rows in each turn. */
template <class Kind>
SPECIALISED int sum_n_rows(const int n, const bcast_term_rows *rows, const bcast_sink *dst)
{
    FourSums<Kind> special = {};

    if constexpr (Kind::compensated)
        if (n % 4 == 0 && n * rows->turns >= GRID_LEAST_ROWS) return sum_blocks_of_rows<Kind>(n, rows, dst);

    add_turns_of_rows<Kind>(n, rows, rows->turns, rows->src, 0, dst, &special);
    return done<Kind>(dst, special);
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
