/* The kernel of runs: sums of each, up to four side by side. */

/* So many vectors are added to an accumulator at a time: where compensated, as pairs, elsewhere as a plain sum. */
template <class Kind> constexpr int tree_of = Kind::compensated ? 2 : 4 * Kind::parts;
template <class Kind> constexpr int tree_of_long = Kind::compensated ? 2 : 8;

/* A run of so many vectors is one stream where it is alone. */
template <class Kind> constexpr ptrdiff_t long_vectors = Kind::compensated ? GRID_FEW_VECTORS : SUM_LONG_VECTORS;

/* Up to four runs side by side, as the additions to one wait for each other; or turns of one. The vector in which a run
   ends, its tail, may have terms of the next run, which are masked. Tails that would pass the last run's end are copied
   to where they have room. */
struct Quad {
    const char *src[4];
    const char *tail[4];
    ptrdiff_t vectors;      /* of each run, the tail among them */
    ptrdiff_t ahead;        /* bytes by which terms are fetched ahead: half a page takes a tenth of a microsecond */
};

/* The lanes of the first `runs` runs: of trees that are `stride` bytes from each other, but for the last, which may be
   a part of one; return the number of vectors in these. */
template <class Kind>
SPECIALISED ptrdiff_t sum_trees(
    const int runs, const int tree, const bool fetches, Accumulators<Kind> *sums, const Quad *quad, ptrdiff_t stride)
{
    constexpr ptrdiff_t vector_bytes = Kind::vector_bytes;
    const ptrdiff_t vectors = quad->vectors, ahead = quad->ahead;
    ptrdiff_t v = 0, at = 0;

    for (int k = 0; k < runs; k++) sums[k] = Accumulators<Kind>{};

    for (; vectors - v > tree; v += tree, at += stride) {
        for (int k = 0; k < runs; k++) {
            const char *from = quad->src[k] + at;
            for (ptrdiff_t line = 0; fetches && line < tree * vector_bytes; line += BCAST_LINE)
                __builtin_prefetch(from + ahead + line);

            if constexpr (Kind::compensated) {
                const FourSums<Kind> a = load_terms<Kind>(from), b = load_terms<Kind>(from + vector_bytes);
                if (v == 0) begin_pairs(&sums[k], a, b);
                else add_pairs(&sums[k], a, b);
            } else {
                Wide<Kind> sum = sum_of_4<Kind>(from, vector_bytes);
                if (tree == 8) sum = plus<Kind>(sum, sum_of_4<Kind>(from + 4 * vector_bytes, vector_bytes));
                join_parts(v == 0, &sums[k], sum);
            }
        }
    }
    return v;
}

/* The lanes of the first `runs` runs; without a mask, their tails have no other terms. */
template <class Kind>
SPECIALISED void sum_lanes(
    const int runs, const int tree, const bool fetches, Accumulators<Kind> *dst, const Quad *quad,
    const Term<Kind> *mask)
{
    constexpr ptrdiff_t vector_bytes = Kind::vector_bytes;
    Accumulators<Kind> sums[4];     /* not in memory as what is pointed to */
    const ptrdiff_t v = sum_trees(runs, tree, fetches, sums, quad, tree * vector_bytes);
    const int left = static_cast<int>(quad->vectors - v);       /* from 1 to tree */

    BCAST_UNROLL
    for (int k = 0; k < runs; k++) {
        const char *src = quad->src[k] + v * vector_bytes, *tail = quad->tail[k];
        Wide<Kind> sum = mask ? load_masked<Kind>(tail, mask) : load_terms<Kind>(tail);

        if constexpr (Kind::compensated) {
            if (left == 1) join_parts(v == 0, &sums[k], sum);
            else if (v == 0) begin_pairs(&sums[k], sum, load_terms<Kind>(src));
            else add_pairs(&sums[k], sum, load_terms<Kind>(src));
        } else {
            if (left % 2 == 0) sum = plus<Kind>(sum, load_terms<Kind>(src + (left - 2) * vector_bytes));
            for (int i = 0; i + 2 < tree; i += 2)
                if (i + 2 < left) sum = plus<Kind>(sum, sum_of_2<Kind>(src + i * vector_bytes, vector_bytes));
            join_parts(v == 0, &sums[k], sum);
        }
        dst[k] = sums[k];
    }
}

/* Add up a block of a run on a grid: whole turns of four vectors. Return whether the limit holds. */
template <class Kind>
BCAST_INLINE bool sum_block_on_grid(
    Accumulators<Kind> *sums, const char *src, ptrdiff_t vectors, const RunGrid<Kind> *grid)
{
    using Four = FourSums<Kind>;
    const Four first = grid->anchor;
    Four squares[4] = {};
    Chain<Kind> chains[4] = {};

    for (int k = 0; k < 4; k++) chains[k].sum = first;
    for (ptrdiff_t v = 0; v < vectors; v += 4) {
        const char *at = src + v * Kind::vector_bytes;
        __builtin_prefetch(at + BCAST_PAGE / 2);
        __builtin_prefetch(at + BCAST_PAGE / 2 + BCAST_LINE);
        for (int k = 0; k < 4; k++) {
            const Four x = load_terms<Kind>(at + k * Kind::vector_bytes);
            add_on_grid<Kind>(&chains[k], x);
            squares[k] = x * x + squares[k];
        }
    }

    sums->sum = ((chains[0].sum - first) + (chains[1].sum - first)) + ((chains[2].sum - first) + (chains[3].sum - first));
    sums->error = (chains[0].rests + chains[1].rests) + (chains[2].rests + chains[3].rests);
    sums->lost = grid->lost;
    return are_less((squares[0] + squares[1]) + (squares[2] + squares[3]), grid->limit);
}

/* The sizes of the greatest terms of some vectors. */
template <class Kind>
BCAST_APART FourSums<Kind> sizes_of_block(const char *src, ptrdiff_t vectors)
{
    FourSums<Kind> sizes = {};

    for (ptrdiff_t v = 0; v < vectors; v++) sizes = larger(size_of(load_terms<Kind>(src + v * Kind::vector_bytes)), sizes);
    return sizes;
}

/* Add a block of a run to accumulators: whole turns of eight vectors. Where there is no grid for it, four trees take
   turns, as the additions to one accumulator wait for each other. */
template <class Kind>
SPECIALISED void add_block_of_run(Accumulators<Kind> *to, const char *src, ptrdiff_t vectors, RunGrid<Kind> *grid)
{
    constexpr int tree = tree_of<Kind>;
    constexpr ptrdiff_t tree_size = tree * Kind::vector_bytes;
    bool is_summed = false;

    if (grid->wait > 0) {
        grid->wait--;
    } else {
        Accumulators<Kind> block;
        is_summed = grid->known && sum_block_on_grid<Kind>(&block, src, vectors, grid);
        if (!is_summed) {
            choose_grid<Kind>(grid, sizes_of_block<Kind>(src, vectors));
            is_summed = sum_block_on_grid<Kind>(&block, src, vectors, grid);
        }
        if (is_summed) {
            if (all_are_zero(block.sum) && all_are_zero(sizes_of_block<Kind>(src, vectors))) return;
            add_sums(to, &block);
        } else {
            grid->wait = GRID_WAIT;
        }
    }
    if (is_summed) return;

    Accumulators<Kind> sums[4];
    const Quad turns = {
        {src, src + tree_size, src + 2 * tree_size, src + 3 * tree_size}, {}, vectors / 4 + tree, BCAST_PAGE / 2,
    };
    sum_trees(4, tree, true, sums, &turns, 4 * tree_size);
    for (int i = 0; i < 4; i++) add_sums(to, &sums[i]);
}

/* The lanes of long run number `k`, one stream: where compensated, by blocks. */
template <class Kind>
SPECIALISED void sum_long_run(
    Accumulators<Kind> *dst, const Quad *quad, int k, const Term<Kind> *mask, RunGrid<Kind> *grid)
{
    constexpr int turn = 4 * tree_of<Kind>;                 /* vectors of a turn */
    const char *src = quad->src[k];
    ptrdiff_t left = quad->vectors;
    Accumulators<Kind> sum = {}, rest_sum;

    if constexpr (Kind::compensated) {
        for (ptrdiff_t n; left > turn; left -= n, src += n * Kind::vector_bytes) {
            n = left > GRID_VECTORS ? ptrdiff_t{GRID_VECTORS} : (left - 1) / turn * turn;
            add_block_of_run(&sum, src, n, grid);
        }
    }

    const Quad rest = {{src}, {quad->tail[k]}, left, BCAST_PAGE / 2};
    sum_lanes(1, tree_of_long<Kind>, !Kind::compensated, &rest_sum, &rest, mask);
    if constexpr (Kind::compensated) add_sums(&rest_sum, &sum);
    *dst = rest_sum;
}

/* The horizontal sums of four accumulator vectors, each over its lanes of one of `interleave` items, in the first
   vector of each 4 / interleave: as many transpositions as it takes, each followed by an addition.

       a0 a1 a2 a3                    a01 b01 a23 b23
       b0 b1 b2 b3    even + odd ->                      lower + upper ->    a b c d      interleave 1
       c0 c1 c2 c3                    c01 d01 c23 d23
       d0 d1 d2 d3 */
template <class Kind>
SPECIALISED void transpose_reduce(const int interleave, Accumulators<Kind> *sums)
{
    if (interleave == 1) {
        for (int i = 0; i < 4; i += 2) {
            Accumulators<Kind> *a = &sums[i], *b = &sums[i + 1], more = {odd(a->sum, b->sum), {}, {}};
            a->sum = even(a->sum, b->sum);
            if constexpr (Kind::compensated) {
                more.error = odd(a->error, b->error);
                more.lost = odd(a->lost, b->lost);
                a->error = even(a->error, b->error);
                a->lost = even(a->lost, b->lost);
            }
            add_sums(a, &more);
        }
    }
    if (interleave <= 2) {
        const int next = 2 / interleave;    /* vectors from one that is added to the other */
        for (int i = 0; i < 4; i += 2 * next) {
            Accumulators<Kind> *a = &sums[i], *b = &sums[i + next], more = {upper(a->sum, b->sum), {}, {}};
            a->sum = lower(a->sum, b->sum);
            if constexpr (Kind::compensated) {
                more.error = upper(a->error, b->error);
                more.lost = upper(a->lost, b->lost);
                a->error = lower(a->error, b->error);
                a->lost = lower(a->lost, b->lost);
            }
            add_sums(a, &more);
        }
    }
}

/* The same of numbers that an operation joins: sums on one grid, which are added as they are. */
template <class V, class Join>
BCAST_INLINE void transpose_join(const int interleave, V *v, Join join)
{
    if (interleave == 1) {
        v[0] = join(even(v[0], v[1]), odd(v[0], v[1]));
        v[2] = join(even(v[2], v[3]), odd(v[2], v[3]));
        v[0] = join(lower(v[0], v[2]), upper(v[0], v[2]));
    } else if (interleave == 2) {
        v[0] = join(lower(v[0], v[1]), upper(v[0], v[1]));
        v[2] = join(lower(v[2], v[3]), upper(v[2], v[3]));
    }
}

/* Sizes of terms, infinite where a mask leaves none. */
template <class V, class Mask>
BCAST_INLINE V sizes_beside_mask(V x, Mask mask)
{
    if constexpr (is_two<V>) {
        return {sizes_beside_mask(x.low, mask.low), sizes_beside_mask(x.high, mask.high)};
    } else {
        using Bits = decltype(x < x);
        return bits_as<V>((bits_as<Bits>(x) & INT64_MAX) | (~bits_as<Bits>(mask) & INT64_C(0x7ff0000000000000)));
    }
}

/* The sums of four runs on a grid, transposed; return whether the limit holds. With few terms, it is found whether rests
   have lost anything, as one sum in so many is a tie. */
template <class Kind>
SPECIALISED bool sum_quad_on_grid(
    const int interleave, const bool has_few, Accumulators<Kind> *sums, const Quad *quad, const Term<Kind> *mask,
    const RunGrid<Kind> *grid)
{
    using Four = FourSums<Kind>;
    constexpr ptrdiff_t vector_bytes = Kind::vector_bytes;
    const ptrdiff_t whole = quad->vectors - 1;
    const Four first = grid->anchor, infinite = all_lanes<Four>(INFINITY);
    Four totals[4], rests[4], least[4] = {infinite, infinite, infinite, infinite}, squares[2] = {};

    BCAST_UNROLL
    for (int k = 0; k < 4; k++) {
        const Four tail = mask ? load_masked<Kind>(quad->tail[k], mask) : load_terms<Kind>(quad->tail[k]);
        Chain<Kind> chain = {first, Four{}};

        add_on_grid<Kind>(&chain, tail);
        squares[k % 2] = tail * tail + squares[k % 2];
        if (has_few) least[k] = mask ? sizes_beside_mask(tail, load<Terms<Kind>>(mask)) : size_of(tail);
        totals[k] = chain.sum;
        rests[k] = chain.rests;
    }
    for (ptrdiff_t v = 0; v < whole; v++) {
        BCAST_UNROLL
        for (int k = 0; k < 4; k++) {
            const char *at = quad->src[k] + v * vector_bytes;
            const Four x = load_terms<Kind>(at);
            Chain<Kind> chain = {totals[k], rests[k]};

            if (quad->ahead && v % 2 == 0) __builtin_prefetch(at + quad->ahead);
            add_on_grid<Kind>(&chain, x);
            squares[k % 2] = x * x + squares[k % 2];
            if (has_few) least[k] = smaller(size_of(x), least[k]);
            totals[k] = chain.sum;
            rests[k] = chain.rests;
        }
    }

    const auto plus = [](Four a, Four b) BCAST_LAMBDA_INLINE { return a + b; };
    const auto lesser = [](Four a, Four b) BCAST_LAMBDA_INLINE { return smaller(a, b); };
    for (int k = 0; k < 4; k++) totals[k] = totals[k] - first;
    transpose_join(interleave, totals, plus);
    transpose_join(interleave, rests, plus);
    if (has_few) transpose_join(interleave, least, lesser);

    for (int j = 0; j < 4; j += 4 / interleave) {
        const Four lost = has_few ? lost_beside<Kind>(least[j], grid->lost_by_few) : grid->lost;
        sums[j] = {totals[j], rests[j], lost};
    }
    return are_less(squares[0] + squares[1], grid->limit);
}

/* Choose a grid for four runs. */
template <class Kind>
BCAST_APART void choose_grid_for_quad(RunGrid<Kind> *grid, const Quad *quad, const Term<Kind> *mask)
{
    FourSums<Kind> sizes = {};

    for (int k = 0; k < 4; k++) {
        const FourSums<Kind> tail = mask ? load_masked<Kind>(quad->tail[k], mask) : load_terms<Kind>(quad->tail[k]);
        sizes = larger(sizes_of_block<Kind>(quad->src[k], quad->vectors - 1), larger(size_of(tail), sizes));
    }
    choose_grid<Kind>(grid, sizes);
}

/* The sums of four runs, transposed, term by term. */
template <class Kind>
BCAST_APART void sum_quad_exactly(int interleave, Accumulators<Kind> *sums, const Quad *quad, const Term<Kind> *mask)
{
    sum_lanes(4, tree_of<Kind>, true, sums, quad, mask);
    if (interleave == 1) transpose_reduce(1, sums);
    if (interleave == 2) transpose_reduce(2, sums);
}

/* Whether the sums of four runs, as many vectors as items are interleaved, are settled or special. */
template <class Kind>
BCAST_INLINE bool are_settled(int interleave, const Accumulators<Kind> *sums)
{
    FourSums<Kind> special = {};

    for (int j = 0; j < 4; j += 4 / interleave)
        special = settled_sums(sums[j].sum, sums[j].error, sums[j].lost) * FourSums<Kind>{} + special;
    return all_are_zero(special);
}

/* The runs from number `i` on, one by one: less than four, or with no room for tails. */
template <class Kind>
BCAST_APART int sum_last_runs(const bcast_term_runs *runs, const bcast_sink *dst, ptrdiff_t i)
{
    constexpr int lanes = Kind::lanes;
    const ptrdiff_t interleave = runs->interleave, vectors = (runs->length + lanes - 1) / lanes;
    const ptrdiff_t whole = (vectors - 1) * Kind::vector_bytes, tail = runs->length * Kind::bytes - whole;  /* bytes */
    FourSums<Kind> special = {};
    RunGrid<Kind> grid = {};

    for (; i < runs->count; i++) {
        const char *src = runs->src + i * runs->stride;
        Term<Kind> room[lanes] = {0};
        Accumulators<Kind> sums[4] = {};
        const Quad quad = {{src}, {reinterpret_cast<const char *>(room)}, vectors, 0};
        memcpy(room, src + whole, tail);

        if (vectors < long_vectors<Kind>) sum_lanes<Kind>(1, tree_of<Kind>, false, sums, &quad, nullptr);
        else sum_long_run<Kind>(sums, &quad, 0, nullptr, &grid);

        if (interleave == 1) transpose_reduce(1, sums);
        if (interleave == 2) transpose_reduce(2, sums);
        put_some(dst, i * interleave, interleave, sums, &special);
    }
    return done<Kind>(dst, special);
}

/* Bytes by which terms are fetched ahead where four runs take so many: whole quads. */
BCAST_INLINE ptrdiff_t fetched_ahead(ptrdiff_t quad_stride)
{
    if (quad_stride >= 2 * BCAST_PAGE) return BCAST_PAGE / 2;
    return (BCAST_PAGE / (quad_stride + 1) + 1) * quad_stride;
}

/* All runs, of `few` vectors if that is known when this is compiled, else 0. */
template <class Kind>
SPECIALISED int sum_quads(
    const int interleave, const int few, const bool is_masked, const bcast_term_runs *all, const bcast_sink *sink)
{
    constexpr int lanes = Kind::lanes;
    constexpr ptrdiff_t vector_bytes = Kind::vector_bytes;
    const bcast_term_runs runs = *all;
    const bcast_sink dst = *sink;
    const ptrdiff_t vectors = few ? few : (runs.length + lanes - 1) / lanes;
    const ptrdiff_t past = (vectors * lanes - runs.length) * Kind::bytes;    /* bytes by which tails pass runs' ends */
    const ptrdiff_t end = (runs.count - 4) * runs.stride - past;            /* where the last quad may be */
    const ptrdiff_t ahead = few ? 0 : fetched_ahead(4 * runs.stride);
    ptrdiff_t i = 0;
    FourSums<Kind> special = {};
    RunGrid<Kind> grid = {};
    Term<Kind> mask[lanes];

    memset(mask, 0xff, sizeof mask);
    if (is_masked) memset(reinterpret_cast<char *>(mask) + vector_bytes - past, 0, past);

    for (; i + 4 <= runs.count && i * runs.stride <= end; i += 4) {
        const char *src = runs.src + i * runs.stride;
        Quad quad = {{}, {}, vectors, ahead};
        Accumulators<Kind> sums[4];

        for (int k = 0; k < 4; k++) {
            quad.src[k] = src + k * runs.stride;
            quad.tail[k] = quad.src[k] + (vectors - 1) * vector_bytes;
        }
        for (ptrdiff_t at = 0; at < 4 * few * vector_bytes; at += BCAST_LINE)
            __builtin_prefetch(src + BCAST_PAGE + at);

        if (Kind::compensated && (few ? few > 1 : vectors < SUM_LONG_VECTORS)) {
            if constexpr (Kind::compensated) {
                const Term<Kind> *tail_mask = is_masked ? mask : nullptr;
                const bool is_tried = grid.wait <= 0;
                bool is_summed = false;
                grid.wait -= !is_tried;

                for (int attempt = 0; is_tried && attempt < 2 && !is_summed; attempt++) {
                    if (attempt > 0 || !grid.known) {
                        const Quad same = quad;             /* so that the others need not be in memory */
                        RunGrid<Kind> same_grid = grid;
                        choose_grid_for_quad<Kind>(&same_grid, &same, tail_mask);
                        grid = same_grid;
                    }
                    if (few || vectors < GRID_FEW_VECTORS)
                        is_summed = sum_quad_on_grid<Kind>(interleave, true, sums, &quad, tail_mask, &grid);
                    else
                        is_summed = sum_quad_on_grid<Kind>(interleave, false, sums, &quad, tail_mask, &grid);
                }
                if (is_tried && !is_summed) grid.wait = GRID_WAIT;

                if (!is_summed || (dst.mode == BCAST_WRITE && !are_settled<Kind>(interleave, sums))) {
                    const Quad same = quad;
                    Accumulators<Kind> exact[4];
                    sum_quad_exactly<Kind>(interleave, exact, &same, tail_mask);
                    for (int k = 0; k < 4; k++) sums[k] = exact[k];
                }
            }
        } else if (few || vectors < SUM_LONG_VECTORS) {
            sum_lanes(4, tree_of<Kind>, !few, sums, &quad, is_masked ? mask : nullptr);
            transpose_reduce(interleave, sums);
        } else {
            const Quad same = quad;
            Accumulators<Kind> long_sums[4];
            RunGrid<Kind> same_grid = grid;
            for (int k = 0; k < 4; k++) sum_long_run(&long_sums[k], &same, k, mask, &same_grid);
            for (int k = 0; k < 4; k++) sums[k] = long_sums[k];
            grid = same_grid;
            transpose_reduce(interleave, sums);
        }

        for (int j = 0; j < 4; j += 4 / interleave) put_added(&dst, (i + j) * interleave, &sums[j], &special);
    }
    return (i < runs.count ? sum_last_runs<Kind>(all, sink, i) : 0) | done<Kind>(sink, special);
}

/* All runs, of `few` vectors. Where each fills these, or items are as many as lanes, there is no mask; interleaved runs
   have one in either case, as it costs them little. */
template <class Kind>
BCAST_INLINE int sum_few_vectors(
    const int interleave, const int few, bool is_masked, const bcast_term_runs *runs, const bcast_sink *dst)
{
    const bool has_mask = is_masked || (1 < interleave && interleave < Kind::lanes);

    if (has_mask) return sum_quads<Kind>(interleave, few, true, runs, dst);
    return sum_quads<Kind>(interleave, few, false, runs, dst);
}

/* All runs: there is a loop for each of some numbers of vectors. */
template <class Kind>
SPECIALISED int sum_shapes(const int interleave, const bcast_term_runs *runs, const bcast_sink *dst)
{
    constexpr int lanes = Kind::lanes;
    const bool is_masked = interleave < lanes && runs->length % lanes > 0;

    if constexpr (unrolled) {
        switch ((runs->length + lanes - 1) / lanes) {
        case 1: return sum_few_vectors<Kind>(interleave, 1, is_masked, runs, dst);
        case 2: return sum_few_vectors<Kind>(interleave, 2, is_masked, runs, dst);
        case 3: return sum_few_vectors<Kind>(interleave, 3, is_masked, runs, dst);
        case 4: return sum_few_vectors<Kind>(interleave, 4, is_masked, runs, dst);
        case 6: return sum_few_vectors<Kind>(interleave, 6, is_masked, runs, dst);
        case 8: return sum_few_vectors<Kind>(interleave, 8, is_masked, runs, dst);
        default: break;
        }
    }
    return sum_quads<Kind>(interleave, 0, true, runs, dst);
}

template <class Kind>
int sum_runs(const bcast_term_runs *runs, const bcast_sink *dst)
{
    const bool is_dense = runs->interleave == 1 && runs->stride == runs->length * Kind::bytes;

    if (is_dense && runs->length == 2) return sum_dense_runs<Kind>(2, runs, dst);
    if (is_dense && runs->length == 3) return sum_dense_runs<Kind>(3, runs, dst);
    if constexpr (Kind::compensated || Kind::parts > 1)     /* elsewhere a whole vector is as fast */
        if (is_dense && runs->length == 4) return sum_dense_runs<Kind>(4, runs, dst);

    if (runs->interleave == 1) return sum_shapes<Kind>(1, runs, dst);
    if (runs->interleave == 2) return sum_shapes<Kind>(2, runs, dst);
    return sum_shapes<Kind>(4, runs, dst);
}

/* Add terms to an accumulator, its error term and the bound of what that has lost: `to`. Each addition is exact, as long
   as error terms lose nothing. */
void add_exactly(const double *terms, ptrdiff_t n, double *to)
{
    using Four = FourSums<f64>;
    Accumulators<f64> sums[4] = {};
    double sum[4], error[4], lost[4];
    ptrdiff_t i = 0;

    for (; i + 16 <= n; i += 16)
        for (int k = 0; k < 4; k++) two_sum<f64>(&sums[k], load<Four>(terms + i + 4 * k));
    for (; i + 4 <= n; i += 4) two_sum<f64>(&sums[0], load<Four>(terms + i));

    for (int k = 1; k < 4; k++) add_sums(&sums[0], &sums[k]);
    store(sum, sums[0].sum);
    store(error, sums[0].error);
    store(lost, sums[0].lost);
    for (int k = 0; k < 4; k++) add_accumulator<f64>({to, to + 1, to + 2}, {sum + k, error + k, lost + k});
    for (; i < n; i++) add_term<f64>({to, to + 1, to + 2}, terms[i]);
}
