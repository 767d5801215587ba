/* The kernel of runs: sums of each, up to four side by side. */

/* Plain sums of as many vectors come first: where compensated, two, which leaves one rounding between a term and its
   error term. */
enum { FN(tree) = COMPENSATED ? 2 : 4 * PARTS, FN(long_tree) = COMPENSATED ? 2 : 8 };
#define TREE FN(tree)

/* Up to four runs side by side, as the additions to one wait for each other; or turns of one. The vector in which a run
   ends, its tail, may have terms of the next run, which are masked. Tails that would pass the last run's end are copied
   to where they have room. */
typedef struct {
    const char *src[4];
    const char *tail[4];
    ptrdiff_t vectors;      /* of each run, the tail among them */
    ptrdiff_t ahead;        /* bytes by which terms are fetched ahead: half a page takes a tenth of a microsecond */
} FN(quad);

/* Add the parts of a wide vector to one accumulator, which the first part begins where it `begins`. */
ON_TARGET BCAST_INLINE void FN(join_parts)(const int fast, int begins, Accumulator *dst, const Wide *wide)
{
    for (int i = 0; i < PARTS; i++) {
        const AccVec part = FN(part)(wide, i);
        if (begins && i == 0) dst->sum = part;
        else if (fast) FN(fast_two_sum)(dst, &part);
        else FN(two_sum)(dst, &part);
    }
}

/* The lanes of the first `runs` runs: of trees that are `stride` bytes from each other, but for the last, which may be
   a part of one; return the number of vectors in these. */
SPECIALISED ptrdiff_t FN(sum_trees)(
    const int runs, const int tree, const int fetches, Accumulator *sums, const FN(quad) *quad, ptrdiff_t stride)
{
    const ptrdiff_t vectors = quad->vectors, ahead = quad->ahead;
    ptrdiff_t v = 0, at = 0;
    for (int k = 0; k < runs; k++) sums[k] = (Accumulator) {{0}, {0}};
    for (; vectors - v > tree; v += tree, at += stride) {
        for (int k = 0; k < runs; k++) {
            const char *from = quad->src[k] + at;
            for (ptrdiff_t line = 0; fetches && line < tree * VECTOR; line += 64)
                __builtin_prefetch(from + ahead + line);
            Wide sum = COMPENSATED ? FN(sum_of_2)(from, VECTOR) : FN(sum_of_4)(from, VECTOR);
            if (tree == 8) {
                const Wide next = FN(sum_of_4)(from + 4 * VECTOR, VECTOR);
                sum = FN(plus)(&sum, &next);
            }
            FN(join_parts)(1, v == 0, &sums[k], &sum);
        }
    }
    return v;
}

/* The lanes of the first `runs` runs; without a mask, their tails have no other terms. */
SPECIALISED void FN(sum_lanes)(
    const int runs, const int tree, const int fetches, Accumulator *dst, const FN(quad) *quad, const Term *mask)
{
    Accumulator sums[4];    /* not in memory as what is pointed to */
    const ptrdiff_t v = FN(sum_trees)(runs, tree, fetches, sums, quad, tree * VECTOR);
    const int left = (int) (quad->vectors - v);     /* from 1 to tree */
    BCAST_UNROLL
    for (int k = 0; k < runs; k++) {
        const char *src = quad->src[k] + v * VECTOR, *tail = quad->tail[k];
        Wide sum = mask ? FN(load_masked)(tail, mask) : FN(load)(tail);
        if (left % 2 == 0) {
            const Wide last = FN(load)(src + (left - 2) * VECTOR);
            sum = FN(plus)(&sum, &last);
        }
        for (int i = 0; i + 2 < tree; i += 2) {
            if (i + 2 < left) {
                const Wide pair = FN(sum_of_2)(src + i * VECTOR, VECTOR);
                sum = FN(plus)(&sum, &pair);
            }
        }
        FN(join_parts)(0, v == 0, &sums[k], &sum);
        dst[k] = sums[k];
    }
}

/* The lanes of long run number `k`, one stream: where compensated, its trees take four turns, as the additions to one
   accumulator wait for each other. */
SPECIALISED void FN(sum_long_run)(Accumulator *dst, const FN(quad) *quad, int k, const Term *mask)
{
    const ptrdiff_t turns = COMPENSATED ? (quad->vectors - 1) / (4 * TREE) : 0, stride = 4 * TREE * VECTOR;
    const char *src = quad->src[k], *end = src + turns * stride;
    const FN(quad) turn = {
        .src = {src, src + TREE * VECTOR, src + 2 * TREE * VECTOR, src + 3 * TREE * VECTOR},
        .vectors = (turns + 1) * TREE, .ahead = BCAST_PAGE / 2
    };
    const FN(quad) rest = {{end}, {quad->tail[k]}, quad->vectors - turns * 4 * TREE, BCAST_PAGE / 2};
    Accumulator sum, turn_sums[4];
    if (COMPENSATED) FN(sum_trees)(4, TREE, 1, turn_sums, &turn, stride);
    FN(sum_lanes)(1, FN(long_tree), !COMPENSATED, &sum, &rest, mask);
    for (int i = 0; COMPENSATED && i < 4; i++) {
        FN(two_sum)(&sum, &turn_sums[i].sum);
        sum.error += turn_sums[i].error;
    }
    *dst = sum;
}

/* The horizontal sums of four accumulator vectors, each over its lanes of one of `interleave` items, in the first
   vector of each 4 / interleave: as many transpositions as it takes, each followed by an addition.

       a0 a1 a2 a3                    a01 b01 a23 b23
       b0 b1 b2 b3    even + odd ->                      lower + upper ->    a b c d      interleave 1
       c0 c1 c2 c3                    c01 d01 c23 d23
       d0 d1 d2 d3 */
SPECIALISED void FN(transpose_reduce)(const int interleave, Accumulator *sums)
{
    for (int i = 0; interleave == 1 && i < 4; i += 2) {
        Accumulator *a = &sums[i], *b = &sums[i + 1];
        const AccVec odd = BCAST_ODD(a->sum, b->sum);
        a->sum = BCAST_EVEN(a->sum, b->sum);
        if (COMPENSATED) a->error = BCAST_EVEN(a->error, b->error) + BCAST_ODD(a->error, b->error);
        FN(two_sum)(a, &odd);
    }
    for (int i = 0, j = 2 / interleave; interleave <= 2 && i < 4; i += 2 * j) {
        Accumulator *a = &sums[i], *b = &sums[i + j];
        const AccVec upper = BCAST_UPPER(a->sum, b->sum);
        a->sum = BCAST_LOWER(a->sum, b->sum);
        if (COMPENSATED) a->error = BCAST_LOWER(a->error, b->error) + BCAST_UPPER(a->error, b->error);
        FN(two_sum)(a, &upper);
    }
}

/* The runs from number `i` on, one by one: less than four, or with no room for tails. */
ON_TARGET BCAST_APART int FN(sum_last_runs)(const bcast_term_runs *runs, const bcast_sink *dst, ptrdiff_t i)
{
    const ptrdiff_t m = runs->interleave, vectors = (runs->length + LANES - 1) / LANES;
    const ptrdiff_t whole = (vectors - 1) * VECTOR, tail = runs->length * SIZE - whole;     /* bytes */
    AccVec special = {0};
    for (; i < runs->count; i++) {
        const char *src = runs->src + i * runs->stride;
        Term room[LANES] = {0};
        Accumulator sums[4] = {{{0}, {0}}};
        const FN(quad) quad = {{src}, {(const char *) room}, vectors, 0};
        memcpy(room, src + whole, tail);
        if (vectors < SUM_LONG_VECTORS) FN(sum_lanes)(1, TREE, 0, sums, &quad, NULL);
        else FN(sum_long_run)(sums, &quad, 0, NULL);
        if (m == 1) FN(transpose_reduce)(1, sums);
        if (m == 2) FN(transpose_reduce)(2, sums);
        FN(put_some)(dst, i * m, m, sums, &special);
    }
    return FN(is_special)(&special);
}

/* All runs, of `few` vectors if that is known when this is compiled, else 0. */
SPECIALISED int FN(sum_quads)(
    const int interleave, const int few, const int is_masked, const bcast_term_runs *all, const bcast_sink *sink)
{
    const bcast_term_runs runs = *all;
    const bcast_sink dst = *sink;
    const ptrdiff_t vectors = few ? few : (runs.length + LANES - 1) / LANES;
    const ptrdiff_t past = (vectors * LANES - runs.length) * SIZE;      /* bytes by which tails pass the ends of runs */
    const ptrdiff_t end = (runs.count - 4) * runs.stride - past;          /* where the last quad may be */
    const ptrdiff_t quad_stride = 4 * runs.stride;
    const ptrdiff_t ahead = few ? 0 : quad_stride >= 2 * BCAST_PAGE ? BCAST_PAGE / 2
        : (BCAST_PAGE / (quad_stride + 1) + 1) * quad_stride;
    ptrdiff_t i = 0;
    AccVec special = {0};
    Term mask[LANES];
    memset(mask, 0xff, sizeof mask);
    if (is_masked) memset((char *) mask + VECTOR - past, 0, past);
    for (; i + 4 <= runs.count && i * runs.stride <= end; i += 4) {
        const char *src = runs.src + i * runs.stride;
        FN(quad) quad = {.vectors = vectors, .ahead = ahead};
        Accumulator sums[4];
        for (int k = 0; k < 4; k++) {
            quad.src[k] = src + k * runs.stride;
            quad.tail[k] = quad.src[k] + (vectors - 1) * VECTOR;
        }
        for (ptrdiff_t at = 0; at < 4 * few * VECTOR; at += 64) __builtin_prefetch(src + BCAST_PAGE + at);
        if (few || vectors < SUM_LONG_VECTORS) {
            FN(sum_lanes)(4, TREE, !few, sums, &quad, is_masked ? mask : NULL);
        } else {
            const FN(quad) same = quad;     /* so that the others need not be in memory */
            Accumulator long_sums[4];
            for (int k = 0; k < 4; k++) FN(sum_long_run)(&long_sums[k], &same, k, mask);
            for (int k = 0; k < 4; k++) sums[k] = long_sums[k];
        }
        FN(transpose_reduce)(interleave, sums);
        for (int j = 0; j < 4; j += 4 / interleave) FN(put_added)(&dst, (i + j) * interleave, &sums[j], &special);
    }
    return (i < runs.count ? FN(sum_last_runs)(all, sink, i) : 0) | FN(is_special)(&special);
}

#define CASE(few) case few: return is_masked ? FN(sum_quads)(interleave, few, 1, runs, dst) \
    : FN(sum_quads)(interleave, few, 0, runs, dst);
SPECIALISED int FN(sum_shapes)(const int interleave, const bcast_term_runs *runs, const bcast_sink *dst)
{
    const int is_masked = interleave < LANES && runs->length % LANES > 0;
    if (UNROLLED)
        switch ((runs->length + LANES - 1) / LANES) { CASE(1) CASE(2) CASE(3) CASE(4) CASE(6) CASE(8) }
    return FN(sum_quads)(interleave, 0, 1, runs, dst);
}
#undef CASE

ON_TARGET static int FN(sum_runs)(const bcast_term_runs *runs, const bcast_sink *dst)
{
    if (runs->interleave == 1 && runs->stride == runs->length * SIZE) {   /* of 4 terms: a whole vector is as fast */
        if (runs->length == 2) return FN(sum_dense_runs)(2, runs, dst);
        if (runs->length == 3) return FN(sum_dense_runs)(3, runs, dst);
        if (runs->length == 4 && (COMPENSATED || PARTS > 1)) return FN(sum_dense_runs)(4, runs, dst);
    }
    if (runs->interleave == 1) return FN(sum_shapes)(1, runs, dst);
    if (runs->interleave == 2) return FN(sum_shapes)(2, runs, dst);
    return FN(sum_shapes)(4, runs, dst);
}
