/* The kernel of runs: a sum of each, up to four runs side by side. */

/* The number of vectors that are first added without error terms. A compensated kind adds two, so that only one
   rounding is not in the error term. */
template <class Kind> constexpr int tree_of = Kind::compensated ? 2 : 4 * Kind::parts;
template <class Kind> constexpr int tree_of_long = Kind::compensated ? 2 : 8;

/* Up to four runs side by side, because the additions to one form a dependency chain; or the turns of one run. A run's
   last vector, its tail, may include terms of the next run, which are masked. Tails that would pass the end of the last
   run are copied to a buffer. */
struct Quad {
    const char *src[4];
    const char *tail[4];
    ptrdiff_t vectors;      /* vectors of each run, including the tail */
    ptrdiff_t ahead;        /* prefetch distance in bytes: half a page is read in a tenth of a microsecond */
};

/* Add the whole trees of the first `runs` runs, with a stride of `stride` bytes, but not the last tree, which may be
   incomplete; return the number of vectors of each run that were added. */
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

            Wide<Kind> sum;
            if constexpr (Kind::compensated) sum = sum_of_2<Kind>(from, vector_bytes);
            else sum = sum_of_4<Kind>(from, vector_bytes);
            if (tree == 8) sum = plus<Kind>(sum, sum_of_4<Kind>(from + 4 * vector_bytes, vector_bytes));
            join_parts(true, v == 0, &sums[k], sum);
        }
    }
    return v;
}

/* The lanes of the first `runs` runs. Without a mask, their tails have no terms of other runs. */
template <class Kind>
SPECIALISED void sum_lanes(
    const int runs, const int tree, const bool fetches, Accumulators<Kind> *dst, const Quad *quad,
    const Term<Kind> *mask)
{
    constexpr ptrdiff_t vector_bytes = Kind::vector_bytes;
    Accumulators<Kind> sums[4];     /* local, so that they stay in registers */
    const ptrdiff_t v = sum_trees(runs, tree, fetches, sums, quad, tree * vector_bytes);
    const int left = static_cast<int>(quad->vectors - v);       /* remaining vectors, from 1 to tree */

    BCAST_UNROLL
    for (int k = 0; k < runs; k++) {
        const char *src = quad->src[k] + v * vector_bytes, *tail = quad->tail[k];
        Wide<Kind> sum = mask ? load_masked<Kind>(tail, mask) : load_terms<Kind>(tail);

        if (left % 2 == 0) sum = plus<Kind>(sum, load_terms<Kind>(src + (left - 2) * vector_bytes));
        for (int i = 0; i + 2 < tree; i += 2)
            if (i + 2 < left) sum = plus<Kind>(sum, sum_of_2<Kind>(src + i * vector_bytes, vector_bytes));

        join_parts(false, v == 0, &sums[k], sum);
        dst[k] = sums[k];
    }
}

/* The lanes of long run number `k`, which is one stream. A compensated kind adds its trees to four accumulators in
   turn, because the additions to one form a dependency chain. */
template <class Kind>
SPECIALISED void sum_long_run(Accumulators<Kind> *dst, const Quad *quad, int k, const Term<Kind> *mask)
{
    constexpr int tree = tree_of<Kind>;
    constexpr ptrdiff_t tree_size = tree * Kind::vector_bytes, stride = 4 * tree_size;
    const ptrdiff_t turns = Kind::compensated ? (quad->vectors - 1) / (4 * tree) : 0;
    const char *src = quad->src[k], *end = src + turns * stride;
    const Quad turn = {
        {src, src + tree_size, src + 2 * tree_size, src + 3 * tree_size}, {}, (turns + 1) * tree, BCAST_PAGE / 2,
    };
    const Quad rest = {{end}, {quad->tail[k]}, quad->vectors - turns * 4 * tree, BCAST_PAGE / 2};
    Accumulators<Kind> sum, turn_sums[4];

    if constexpr (Kind::compensated) sum_trees(4, tree, true, turn_sums, &turn, stride);
    sum_lanes(1, tree_of_long<Kind>, !Kind::compensated, &sum, &rest, mask);

    for (int i = 0; Kind::compensated && i < 4; i++) {
        two_sum(&sum, turn_sums[i].sum);
        sum.error = sum.error + turn_sums[i].error;
    }
    *dst = sum;
}

/* The horizontal sums of four accumulator vectors, for each of `interleave` items. The first vector of each group of
   4 / interleave gets the sums of the group. Transpositions and additions alternate.

       a0 a1 a2 a3                    a01 b01 a23 b23
       b0 b1 b2 b3    even + odd ->                      lower + upper ->    a b c d      interleave 1
       c0 c1 c2 c3                    c01 d01 c23 d23
       d0 d1 d2 d3 */
template <class Kind>
SPECIALISED void transpose_reduce(const int interleave, Accumulators<Kind> *sums)
{
    if (interleave == 1) {
        for (int i = 0; i < 4; i += 2) {
            Accumulators<Kind> *a = &sums[i], *b = &sums[i + 1];
            const FourSums<Kind> more = odd(a->sum, b->sum);
            a->sum = even(a->sum, b->sum);
            if constexpr (Kind::compensated) a->error = even(a->error, b->error) + odd(a->error, b->error);
            two_sum(a, more);
        }
    }
    if (interleave <= 2) {
        const int next = 2 / interleave;    /* distance between the vectors that are added */
        for (int i = 0; i < 4; i += 2 * next) {
            Accumulators<Kind> *a = &sums[i], *b = &sums[i + next];
            const FourSums<Kind> more = upper(a->sum, b->sum);
            a->sum = lower(a->sum, b->sum);
            if constexpr (Kind::compensated) a->error = lower(a->error, b->error) + upper(a->error, b->error);
            two_sum(a, more);
        }
    }
}

/* The runs from number `i` on, one by one: less than four, or without space for tails after them. */
template <class Kind>
BCAST_APART int sum_last_runs(const bcast_term_runs *runs, const bcast_sink *dst, ptrdiff_t i)
{
    constexpr int lanes = Kind::lanes;
    const ptrdiff_t interleave = runs->interleave, vectors = (runs->length + lanes - 1) / lanes;
    const ptrdiff_t whole = (vectors - 1) * Kind::vector_bytes, tail = runs->length * Kind::bytes - whole;  /* bytes */
    FourSums<Kind> special = {};

    for (; i < runs->count; i++) {
        const char *src = runs->src + i * runs->stride;
        Term<Kind> room[lanes] = {0};
        Accumulators<Kind> sums[4] = {};
        const Quad quad = {{src}, {reinterpret_cast<const char *>(room)}, vectors, 0};
        memcpy(room, src + whole, tail);

        if (vectors < SUM_LONG_VECTORS) sum_lanes<Kind>(1, tree_of<Kind>, false, sums, &quad, nullptr);
        else sum_long_run<Kind>(sums, &quad, 0, nullptr);

        if (interleave == 1) transpose_reduce(1, sums);
        if (interleave == 2) transpose_reduce(2, sums);
        put_some(dst, i * interleave, interleave, sums, &special);
    }
    return is_special<Kind>(special);
}

/* The prefetch distance in bytes, a multiple of the size of a quad, four runs. */
BCAST_INLINE ptrdiff_t fetched_ahead(ptrdiff_t quad_stride)
{
    if (quad_stride >= 2 * BCAST_PAGE) return BCAST_PAGE / 2;
    return (BCAST_PAGE / (quad_stride + 1) + 1) * quad_stride;
}

/* All runs. `few` is the number of their vectors if it is constant, otherwise 0. This is clearer whole: the compiler
   decides all branches except the one for long runs. */
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

        if (few || vectors < SUM_LONG_VECTORS) {
            sum_lanes(4, tree_of<Kind>, !few, sums, &quad, is_masked ? mask : nullptr);
        } else {
            const Quad same = quad;     /* a copy, so that `quad` can stay in registers */
            Accumulators<Kind> long_sums[4];
            for (int k = 0; k < 4; k++) sum_long_run(&long_sums[k], &same, k, mask);
            for (int k = 0; k < 4; k++) sums[k] = long_sums[k];
        }

        transpose_reduce(interleave, sums);
        for (int j = 0; j < 4; j += 4 / interleave) put_added(&dst, (i + j) * interleave, &sums[j], &special);
    }
    return (i < runs.count ? sum_last_runs<Kind>(all, sink, i) : 0) | is_special<Kind>(special);
}

/* All runs, of `few` vectors. Runs that fill their vectors need no mask; interleaved runs have one in any case, because
   it costs them little. */
template <class Kind>
BCAST_INLINE int sum_few_vectors(
    const int interleave, const int few, bool is_masked, const bcast_term_runs *runs, const bcast_sink *dst)
{
    const bool has_mask = is_masked || (1 < interleave && interleave < Kind::lanes);

    if (has_mask) return sum_quads<Kind>(interleave, few, true, runs, dst);
    return sum_quads<Kind>(interleave, few, false, runs, dst);
}

/* All runs: small numbers of vectors have a loop each. */
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
    if constexpr (Kind::compensated || Kind::parts > 1)     /* for other kinds, a whole vector is as fast */
        if (is_dense && runs->length == 4) return sum_dense_runs<Kind>(4, runs, dst);

    if (runs->interleave == 1) return sum_shapes<Kind>(1, runs, dst);
    if (runs->interleave == 2) return sum_shapes<Kind>(2, runs, dst);
    return sum_shapes<Kind>(4, runs, dst);
}
