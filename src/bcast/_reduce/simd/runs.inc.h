/* The kernel of runs: sums of each, up to four side by side. */

/* So many vectors are added to an accumulator at a time: where compensated, as pairs, elsewhere as a plain sum. */
template <class Kind> constexpr int tree_of = Kind::compensated ? 2 : 4 * Kind::parts;
template <class Kind> constexpr int tree_of_long = Kind::compensated ? 2 : 8;

/* A run of so many vectors is one stream where it is alone. */
template <class Kind> constexpr ptrdiff_t long_vectors = Kind::compensated ? GRID_LEAST_VECTORS : SUM_LONG_VECTORS;

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
    const int runs, const int tree, const bool fetches, Accumulators<Kind> *sums, const Quad *quad, ptrdiff_t stride,
    FourSums<Kind> *most_lost)
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
                else add_pairs(&sums[k], a, b, most_lost);
            } else {
                Wide<Kind> sum = sum_of_4<Kind>(from, vector_bytes);
                if (tree == 8) sum = plus<Kind>(sum, sum_of_4<Kind>(from + 4 * vector_bytes, vector_bytes));
                join_parts(v == 0, &sums[k], sum, most_lost);
            }
        }
    }
    return v;
}

/* The lanes of the first `runs` runs; without a mask, their tails have no other terms. */
template <class Kind>
SPECIALISED void sum_lanes(
    const int runs, const int tree, const bool fetches, Accumulators<Kind> *dst, const Quad *quad,
    const Term<Kind> *mask, FourSums<Kind> *lost)
{
    constexpr ptrdiff_t vector_bytes = Kind::vector_bytes;
    Accumulators<Kind> sums[4];             /* not in memory as what is pointed to */
    FourSums<Kind> most_lost = *lost;       /* the same */
    const ptrdiff_t v = sum_trees(runs, tree, fetches, sums, quad, tree * vector_bytes, &most_lost);
    const int left = static_cast<int>(quad->vectors - v);       /* from 1 to tree */

    BCAST_UNROLL
    for (int k = 0; k < runs; k++) {
        const char *src = quad->src[k] + v * vector_bytes, *tail = quad->tail[k];
        Wide<Kind> sum = mask ? load_masked<Kind>(tail, mask) : load_terms<Kind>(tail);

        if constexpr (Kind::compensated) {
            if (left == 1) join_parts(v == 0, &sums[k], sum, &most_lost);
            else if (v == 0) begin_pairs(&sums[k], sum, load_terms<Kind>(src));
            else add_pairs(&sums[k], sum, load_terms<Kind>(src), &most_lost);
        } else {
            if (left % 2 == 0) sum = plus<Kind>(sum, load_terms<Kind>(src + (left - 2) * vector_bytes));
            for (int i = 0; i + 2 < tree; i += 2)
                if (i + 2 < left) sum = plus<Kind>(sum, sum_of_2<Kind>(src + i * vector_bytes, vector_bytes));
            join_parts(v == 0, &sums[k], sum, &most_lost);
        }
        dst[k] = sums[k];
    }
    *lost = most_lost;
}

/* Add a block of a run to accumulators: a whole number of turns of eight vectors. Four chains take turns, or where
   there are no grids for it, four trees, as the additions to one accumulator wait for each other. */
template <class Kind>
SPECIALISED void add_block_of_run(
    Accumulators<Kind> *to, const char *src, ptrdiff_t vectors, FourSums<Kind> *most_lost, Grids<Kind> *grids)
{
    constexpr int tree = tree_of<Kind>;
    constexpr ptrdiff_t vector_bytes = Kind::vector_bytes, tree_size = tree * vector_bytes;
    Accumulators<Kind> sums[4];

    const auto term = [=](int k, ptrdiff_t group, int i) BCAST_LAMBDA_INLINE {
        const char *at = src + (group * 8 + i * 4 + k) * vector_bytes;
        if (k % 2 == 0) __builtin_prefetch(at + BCAST_PAGE / 2);
        return load_terms<Kind>(at);
    };
    if (sum_block<Kind>(4, vectors / 8, 2, false, grids, sums, term, [](int) { return FourSums<Kind>{}; })) {
        join_chains(sums);
        add_sums(to, &sums[0], most_lost);
        return;
    }

    const Quad turns = {
        {src, src + tree_size, src + 2 * tree_size, src + 3 * tree_size}, {}, vectors / 4 + tree, BCAST_PAGE / 2,
    };
    sum_trees(4, tree, true, sums, &turns, 4 * tree_size, most_lost);
    for (int i = 0; i < 4; i++) add_sums(to, &sums[i], most_lost);
}

/* The lanes of long run number `k`, one stream: where compensated, by blocks. */
template <class Kind>
SPECIALISED void sum_long_run(
    Accumulators<Kind> *dst, const Quad *quad, int k, const Term<Kind> *mask, FourSums<Kind> *lost,
    Grids<Kind> *grids)
{
    constexpr int turn = 4 * tree_of<Kind>;                 /* vectors of a turn */
    const char *src = quad->src[k];
    ptrdiff_t left = quad->vectors;
    Accumulators<Kind> sum = {}, rest_sum;
    FourSums<Kind> most_lost = *lost;

    if constexpr (Kind::compensated) {
        for (ptrdiff_t n; left > turn; left -= n, src += n * Kind::vector_bytes) {
            n = left > GRID_VECTORS ? GRID_VECTORS : (left - 1) / turn * turn;
            add_block_of_run(&sum, src, n, &most_lost, grids);
        }
    }

    const Quad rest = {{src}, {quad->tail[k]}, left, BCAST_PAGE / 2};
    sum_lanes(1, tree_of_long<Kind>, !Kind::compensated, &rest_sum, &rest, mask, &most_lost);
    if constexpr (Kind::compensated) add_sums(&rest_sum, &sum, &most_lost);
    *dst = rest_sum;
    *lost = most_lost;
}

/* The horizontal sums of four accumulator vectors, each over its lanes of one of `interleave` items, in the first
   vector of each 4 / interleave: as many transpositions as it takes, each followed by an addition.

       a0 a1 a2 a3                    a01 b01 a23 b23
       b0 b1 b2 b3    even + odd ->                      lower + upper ->    a b c d      interleave 1
       c0 c1 c2 c3                    c01 d01 c23 d23
       d0 d1 d2 d3 */
template <class Kind>
SPECIALISED void transpose_reduce(const int interleave, Accumulators<Kind> *sums, FourSums<Kind> *most_lost)
{
    if (interleave == 1) {
        for (int i = 0; i < 4; i += 2) {
            Accumulators<Kind> *a = &sums[i], *b = &sums[i + 1], more = {odd(a->sum, b->sum), {}};
            a->sum = even(a->sum, b->sum);
            if constexpr (Kind::compensated) {
                more.error = odd(a->error, b->error);
                a->error = even(a->error, b->error);
            }
            add_sums(a, &more, most_lost);
        }
    }
    if (interleave <= 2) {
        const int next = 2 / interleave;    /* vectors from one that is added to the other */
        for (int i = 0; i < 4; i += 2 * next) {
            Accumulators<Kind> *a = &sums[i], *b = &sums[i + next], more = {upper(a->sum, b->sum), {}};
            a->sum = lower(a->sum, b->sum);
            if constexpr (Kind::compensated) {
                more.error = upper(a->error, b->error);
                a->error = lower(a->error, b->error);
            }
            add_sums(a, &more, most_lost);
        }
    }
}

template <class Kind>
BCAST_INLINE void join_halves(Accumulators<Kind> *a, const Accumulators<Kind> *b)
{
    a->sum = lower(a->sum, b->sum) + upper(a->sum, b->sum);
    a->error = lower(a->error, b->error) + upper(a->error, b->error);
}

/* The same of sums on one grid, which are added as they are. */
template <class Kind>
BCAST_INLINE void transpose_add(int interleave, Accumulators<Kind> *sums)
{
    if (interleave == 1) {
        for (int i = 0; i < 4; i += 2) {
            Accumulators<Kind> *a = &sums[i], *b = &sums[i + 1];
            a->sum = even(a->sum, b->sum) + odd(a->sum, b->sum);
            a->error = even(a->error, b->error) + odd(a->error, b->error);
        }
        join_halves(&sums[0], &sums[2]);
    } else if (interleave == 2) {
        join_halves(&sums[0], &sums[1]);
        join_halves(&sums[2], &sums[3]);
    }
}

/* The sums of four runs, transposed, if they make a block for which there are grids. */
template <class Kind>
BCAST_APART bool sum_quad_on_grids(
    int interleave, Accumulators<Kind> *sums, const Quad *quad, const Term<Kind> *mask, Grids<Kind> *grids)
{
    const auto term = [=](int k, ptrdiff_t v, int) BCAST_LAMBDA_INLINE {
        const char *at = quad->src[k] + v * Kind::vector_bytes;
        if (v % 2 == 0) __builtin_prefetch(at + quad->ahead);
        return load_terms<Kind>(at);
    };
    const auto tail = [=](int k) BCAST_LAMBDA_INLINE {
        return mask ? load_masked<Kind>(quad->tail[k], mask) : load_terms<Kind>(quad->tail[k]);
    };
    if (!sum_block<Kind>(4, quad->vectors - 1, 1, true, grids, sums, term, tail)) return false;

    transpose_add(interleave, sums);
    return true;
}

/* The runs from number `i` on, one by one: less than four, or with no room for tails. */
template <class Kind>
BCAST_APART int sum_last_runs(const bcast_term_runs *runs, const bcast_sink *dst, ptrdiff_t i)
{
    constexpr int lanes = Kind::lanes;
    const ptrdiff_t interleave = runs->interleave, vectors = (runs->length + lanes - 1) / lanes;
    const ptrdiff_t whole = (vectors - 1) * Kind::vector_bytes, tail = runs->length * Kind::bytes - whole;  /* bytes */
    Doubts<Kind> doubts = {};
    Grids<Kind> grids = {};

    for (; i < runs->count; i++) {
        const char *src = runs->src + i * runs->stride;
        Term<Kind> room[lanes] = {0};
        Accumulators<Kind> sums[4] = {};
        const Quad quad = {{src}, {reinterpret_cast<const char *>(room)}, vectors, 0};
        memcpy(room, src + whole, tail);

        if (vectors < long_vectors<Kind>)
            sum_lanes<Kind>(1, tree_of<Kind>, false, sums, &quad, nullptr, &doubts.most_lost);
        else
            sum_long_run<Kind>(sums, &quad, 0, nullptr, &doubts.most_lost, &grids);

        if (interleave == 1) transpose_reduce(1, sums, &doubts.most_lost);
        if (interleave == 2) transpose_reduce(2, sums, &doubts.most_lost);
        put_some(dst, i * interleave, interleave, sums, &doubts);
    }
    return done<Kind>(dst, &doubts);
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
    Doubts<Kind> doubts = {};
    Grids<Kind> grids = {};
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

        if constexpr (Kind::compensated) {
            const bool is_tried = few ? few > 2 : vectors > 2 && vectors < SUM_LONG_VECTORS;
            Accumulators<Kind> found[4];        /* in memory, as the others need not be */
            Grids<Kind> same_grids;
            const Quad same = quad;
            bool is_exact = false;
            if (is_tried) {
                same_grids = grids;
                is_exact = sum_quad_on_grids<Kind>(interleave, found, &same, is_masked ? mask : nullptr, &same_grids);
                grids = same_grids;
            }
            if (is_exact) {
                for (int j = 0; j < 4; j++) sums[j] = found[j];
                for (int j = 0; j < 4; j += 4 / interleave) put_added(&dst, (i + j) * interleave, &sums[j], &doubts);
                continue;
            }
        }
        if (few || vectors < SUM_LONG_VECTORS) {
            sum_lanes(4, tree_of<Kind>, !few, sums, &quad, is_masked ? mask : nullptr, &doubts.most_lost);
        } else {
            const Quad same = quad;     /* so that the others need not be in memory */
            Accumulators<Kind> long_sums[4];
            FourSums<Kind> most_lost = doubts.most_lost;
            Grids<Kind> same_grids = grids;
            for (int k = 0; k < 4; k++) sum_long_run(&long_sums[k], &same, k, mask, &most_lost, &same_grids);
            for (int k = 0; k < 4; k++) sums[k] = long_sums[k];
            doubts.most_lost = most_lost;
            grids = same_grids;
        }

        transpose_reduce(interleave, sums, &doubts.most_lost);
        for (int j = 0; j < 4; j += 4 / interleave) put_added(&dst, (i + j) * interleave, &sums[j], &doubts);
    }
    return (i < runs.count ? sum_last_runs<Kind>(all, sink, i) : 0) | done<Kind>(sink, &doubts);
}

/* All runs, of `few` vectors. Where each fills these, or items are as many as lanes, there is no mask. */
template <class Kind>
BCAST_INLINE int sum_few_vectors(
    const int interleave, const int few, bool is_masked, const bcast_term_runs *runs, const bcast_sink *dst)
{
    if (is_masked) return sum_quads<Kind>(interleave, few, true, runs, dst);
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
