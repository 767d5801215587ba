/* The leaf of runs of one KIND on one TARGET; `_sum/simd/rows.inc.h` includes this file. */

/* Plain sums of as many vectors come first: where compensated, two, which leaves one rounding between a term and its
   error term. */
enum { FN(tree) = COMPENSATED ? 2 : 4 * PARTS, FN(long_tree) = COMPENSATED ? 2 : 8 };
#define TREE FN(tree)

/* Up to four runs side by side, as the additions to one wait for each other; or turns of one. The vector in which a run
   ends, its tail, may have terms of the next run, which are masked. Tails that would pass the last run's end are copied
   to where they have room. */
typedef struct {
    const char *x[4];
    const char *tail[4];
    ptrdiff_t vectors;      /* of each run, the tail among them */
    ptrdiff_t ahead;        /* bytes by which terms are fetched ahead */
} FN(quad);

/* The lanes of `runs` runs from x on: of trees that are `step` bytes from each other, but for the last, which may be a
   part of one; return the number of vectors in these. */
BCAST_ON_TARGET BCAST_INLINE ptrdiff_t FN(sum_trees)(
    const int runs, const int tree, const int fetches, Accumulator *sums, const char *const *x, const FN(quad) *quad,
    ptrdiff_t step)
{
    const ptrdiff_t vectors = quad->vectors, ahead = quad->ahead;
    ptrdiff_t v = 0, at = 0;
    for (int k = 0; k < runs; k++) sums[k] = (Accumulator) {{0}, {0}};
    for (; vectors - v > tree; v += tree, at += step) {
        for (int k = 0; k < runs; k++) {
            const char *from = x[k] + at;
            for (ptrdiff_t line = 0; fetches && line < tree * VECTOR; line += 64)
                __builtin_prefetch(from + ahead + line);
            Wide sum = COMPENSATED ? FN(sum_of_2)(from, VECTOR) : FN(sum_of_4)(from, VECTOR);
            if (tree == 8) {
                const Wide next = FN(sum_of_4)(from + 4 * VECTOR, VECTOR);
                sum = FN(plus)(&sum, &next);
            }
            for (int i = 0; i < PARTS; i++) {
                const AccVec part = FN(part)(&sum, i);
                if (v == 0 && i == 0) sums[k].sum = part;
                else FN(fast_two_sum)(&sums[k], &part);
            }
        }
    }
    return v;
}

/* The lanes of `runs` runs from number `first` on; without a mask, their tails have no other terms. */
BCAST_ON_TARGET BCAST_INLINE void FN(sum_lanes)(
    const int runs, const int tree, const int fetches, Accumulator *to, const FN(quad) *quad, const int first,
    const Term *mask)
{
    Accumulator sums[4];    /* not in memory as what is pointed to */
    const ptrdiff_t v = FN(sum_trees)(runs, tree, fetches, sums, quad->x + first, quad, tree * VECTOR);
    const int left = (int) (quad->vectors - v);     /* from 1 to tree */
    BCAST_UNROLL
    for (int k = 0; k < runs; k++) {
        const char *x = quad->x[first + k] + v * VECTOR, *tail = quad->tail[first + k];
        Wide sum = mask ? FN(load_masked)(tail, mask) : FN(load)(tail);
        if (left % 2 == 0) {
            const Wide last = FN(load)(x + (left - 2) * VECTOR);
            sum = FN(plus)(&sum, &last);
        }
        for (int i = 0; i + 2 < tree; i += 2) {
            if (i + 2 < left) {
                const Wide pair = FN(sum_of_2)(x + i * VECTOR, VECTOR);
                sum = FN(plus)(&sum, &pair);
            }
        }
        for (int i = 0; i < PARTS; i++) {
            const AccVec part = FN(part)(&sum, i);
            if (v == 0 && i == 0) sums[k].sum = part;
            else FN(two_sum)(&sums[k], &part);
        }
        to[first + k] = sums[k];
    }
}

/* The lanes of long run number `k`, one stream: where compensated, its trees take four turns, as the additions to one
   accumulator wait for each other. */
BCAST_ON_TARGET BCAST_INLINE void FN(sum_long_run)(
    Accumulator *sums, const FN(quad) *quad, const int k, const Term *mask)
{
    const ptrdiff_t turns = COMPENSATED ? (quad->vectors - 1) / (4 * TREE) : 0, step = 4 * TREE * VECTOR;
    const char *x = quad->x[k], *end = x + turns * step;
    const FN(quad) turn = {
        .x = {x, x + TREE * VECTOR, x + 2 * TREE * VECTOR, x + 3 * TREE * VECTOR},
        .vectors = (turns + 1) * TREE, .ahead = BCAST_AHEAD
    };
    const FN(quad) rest = {{end}, {quad->tail[k]}, quad->vectors - turns * 4 * TREE, BCAST_AHEAD};
    Accumulator sum, turn_sums[4];
    if (COMPENSATED) FN(sum_trees)(4, TREE, 1, turn_sums, turn.x, &turn, step);
    FN(sum_lanes)(1, FN(long_tree), !COMPENSATED, &sum, &rest, 0, mask);
    for (int i = 0; COMPENSATED && i < 4; i++) {
        FN(two_sum)(&sum, &turn_sums[i].sum);
        sum.error += turn_sums[i].error;
    }
    sums[k] = sum;
}

BCAST_ON_TARGET BCAST_APART void FN(sum_long_runs)(Accumulator *sums, const FN(quad) *quad, const Term *mask)
{
    BCAST_UNROLL
    for (int k = 0; k < 4; k++) FN(sum_long_run)(sums, quad, k, mask);
}

/* The horizontal sums of four accumulator vectors, each over its lanes of one of `interleave` items, in the first
   vector of each 4 / interleave: as many transpositions as it takes, each followed by an addition.

       a0 a1 a2 a3                    a01 b01 a23 b23
       b0 b1 b2 b3    even + odd ->                      lower + upper ->    a b c d      interleave 1
       c0 c1 c2 c3                    c01 d01 c23 d23
       d0 d1 d2 d3 */
BCAST_ON_TARGET BCAST_INLINE void FN(transpose_reduce)(const int interleave, Accumulator *sums)
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

/* Put four sums, and add what is there where the sink says so. */
BCAST_ON_TARGET BCAST_INLINE void FN(put_added)(
    const bcast_sink *to, ptrdiff_t at, Accumulator *sums, AccVec *special)
{
    if (to->mode == BCAST_ADD) {
        const AccVec before = BCAST_AT(const AccVec, (Acc *) to->sum + at, 0);
        FN(two_sum)(sums, &before);
        if (COMPENSATED) sums->error += BCAST_AT(const AccVec, (Acc *) to->error + at, 0);
    }
    FN(put)(to, at, sums, special);
}

/* The same with the first `n` of four, by way of room for all. */
BCAST_ON_TARGET BCAST_INLINE void FN(put_some)(
    const bcast_sink *to, ptrdiff_t at, ptrdiff_t n, Accumulator *sums, AccVec *special)
{
    const ptrdiff_t size = to->mode == BCAST_WRITE ? SIZE : (ptrdiff_t) sizeof(Acc);
    Acc sum[4] = {0}, error[4] = {0};
    const bcast_sink room = {to->mode, (char *) sum, (char *) error};
    if (n >= 4) {
        FN(put_added)(to, at, sums, special);
        return;
    }
    if (to->mode == BCAST_ADD) memcpy(sum, to->sum + at * size, n * size);
    if (to->mode == BCAST_ADD && COMPENSATED) memcpy(error, to->error + at * size, n * size);
    FN(put_added)(&room, 0, sums, special);
    memcpy(to->sum + at * size, sum, n * size);
    if (to->mode != BCAST_WRITE && COMPENSATED) memcpy(to->error + at * size, error, n * size);
}

/* The runs from number `i` on, one by one: less than four, or with no room for tails. */
BCAST_ON_TARGET BCAST_APART int FN(sum_last_runs)(const bcast_runs *runs, const bcast_sink *to, ptrdiff_t i)
{
    const ptrdiff_t m = runs->interleave, vectors = (runs->length + LANES - 1) / LANES;
    const ptrdiff_t whole = (vectors - 1) * VECTOR, tail = runs->length * SIZE - whole;     /* bytes */
    AccVec special = {0};
    for (; i < runs->count; i++) {
        const char *x = runs->x + i * runs->step;
        Term room[LANES] = {0};
        Accumulator sums[4] = {{{0}, {0}}};
        const FN(quad) quad = {{x}, {(const char *) room}, vectors, 0};
        memcpy(room, x + whole, tail);
        if (vectors < BCAST_LONG) FN(sum_lanes)(1, TREE, 0, sums, &quad, 0, NULL);
        else FN(sum_long_run)(sums, &quad, 0, NULL);
        if (m == 1) FN(transpose_reduce)(1, sums);
        if (m == 2) FN(transpose_reduce)(2, sums);
        FN(put_some)(to, i * m, m, sums, &special);
    }
    return FN(is_special)(&special);
}

/* All runs, of `few` vectors if that is known when this is compiled, else 0. */
BCAST_ON_TARGET BCAST_INLINE int FN(sum_quads)(
    const int interleave, const int few, const int is_masked, const bcast_runs *all, const bcast_sink *sink)
{
    const bcast_runs runs = *all;
    const bcast_sink to = *sink;
    const ptrdiff_t vectors = few ? few : (runs.length + LANES - 1) / LANES;
    const ptrdiff_t past = (vectors * LANES - runs.length) * SIZE;      /* bytes by which tails pass the ends of runs */
    const ptrdiff_t end = (runs.count - 4) * runs.step - past;          /* where the last quad may be */
    const ptrdiff_t quad_step = 4 * runs.step;
    const ptrdiff_t ahead = few ? 0 : quad_step < 4 * BCAST_AHEAD ? (BCAST_PAGE / (quad_step + 1) + 1) * quad_step
        : BCAST_AHEAD;
    ptrdiff_t i = 0;
    AccVec special = {0};
    Term mask[LANES];
    memset(mask, 0xff, sizeof mask);
    if (is_masked) memset((char *) mask + VECTOR - past, 0, past);
    for (; i + 4 <= runs.count && i * runs.step <= end; i += 4) {
        const char *x = runs.x + i * runs.step;
        FN(quad) quad = {.vectors = vectors, .ahead = ahead};
        Accumulator sums[4];
        for (int k = 0; k < 4; k++) {
            quad.x[k] = x + k * runs.step;
            quad.tail[k] = quad.x[k] + (vectors - 1) * VECTOR;
        }
        for (ptrdiff_t at = 0; at < 4 * few * VECTOR; at += 64) __builtin_prefetch(x + BCAST_PAGE + at);
        if (few || vectors < BCAST_LONG) {
            FN(sum_lanes)(4, TREE, !few, sums, &quad, 0, is_masked ? mask : NULL);
        } else {
            const FN(quad) same = quad;     /* so that the others need not be in memory */
            Accumulator all[4];
            FN(sum_long_runs)(all, &same, mask);
            for (int k = 0; k < 4; k++) sums[k] = all[k];
        }
        FN(transpose_reduce)(interleave, sums);
        for (int j = 0; j < 4; j += 4 / interleave) FN(put_added)(&to, (i + j) * interleave, &sums[j], &special);
    }
    return (i < runs.count ? FN(sum_last_runs)(all, sink, i) : 0) | FN(is_special)(&special);
}

/* LANES dense runs: of 2 to 4 terms with nothing between them. As many vectors hold them as one has terms; what stands
   at one place in each is gathered, in the order of the runs. Of 3 terms in 4 lanes:

       a  |0 0 0 1|         first   |0 1 2 3|   their first terms,
       b  |1 1 2 2|   ->    second  |0 1 2 3|   second
       c  |2 3 3 3|         third   |0 1 2 3|   and third ones */
BCAST_ON_TARGET BCAST_INLINE void FN(sum_dense_lanes)(const int length, Accumulator *sums, const char *x)
{
    AccVec terms[4 * PARTS];
    for (int k = 0; k < length; k++) {
        const Wide wide = FN(load)(x + k * VECTOR);
        for (int l = 0; l < PARTS; l++) terms[k * PARTS + l] = FN(part)(&wide, l);
    }
    for (int l = 0; l < PARTS; l++) {
        const AccVec a = terms[l * length], b = terms[l * length + 1], c = terms[l * length + length - 1];
        AccVec last = {0};
        sums[l].error = (AccVec) {0};
        if (length == 2) {
            const AccVec pairs = BCAST_EVEN(a, b) + BCAST_ODD(a, b);
            sums[l].sum = BCAST_SHUFFLE(pairs, pairs, 0, 2, 1, 3);
        } else if (length == 3) {
            const AccVec ab = BCAST_SHUFFLE(a, b, 0, 1, 6, 3), ba = BCAST_SHUFFLE(b, a, 0, 5, 2, 3);
            const AccVec first = BCAST_SHUFFLE(ab, c, 0, 5, 2, 3), second = BCAST_SHUFFLE(ba, c, 0, 1, 6, 3);
            const AccVec cb = BCAST_SHUFFLE(c, b, 0, 5, 2, 3), third = BCAST_SHUFFLE(cb, a, 0, 1, 6, 3);
            sums[l].sum = BCAST_SHUFFLE(first, first, 0, 3, 2, 1) + BCAST_SHUFFLE(second, second, 1, 0, 3, 2);
            last = BCAST_SHUFFLE(third, third, 2, 1, 0, 3);
        } else {
            const AccVec d = terms[l * length + 2], ab = BCAST_EVEN(a, b) + BCAST_ODD(a, b);
            const AccVec cd = BCAST_EVEN(d, c) + BCAST_ODD(d, c);
            sums[l].sum = BCAST_LOWER(ab, cd);
            last = BCAST_UPPER(ab, cd);
        }
        if (length > 2) FN(two_sum)(&sums[l], &last);
    }
}

/* The last ones, fewer than LANES, are copied to where they have room. */
BCAST_ON_TARGET BCAST_INLINE int FN(sum_dense_runs)(const int length, const bcast_runs *runs, const bcast_sink *sink)
{
    const bcast_sink to = *sink;
    const char *x = runs->x;
    const ptrdiff_t count = runs->count, whole = count / LANES * LANES;
    Term room[4 * LANES] = {0};
    Accumulator sums[PARTS];
    AccVec special = {0};
    for (ptrdiff_t i = 0; i < whole; i += LANES, x += length * VECTOR) {
        for (ptrdiff_t at = 0; at < length * VECTOR; at += 64) __builtin_prefetch(x + BCAST_PAGE + at);
        FN(sum_dense_lanes)(length, sums, x);
        for (int l = 0; l < PARTS; l++) FN(put_added)(&to, i + 4 * l, &sums[l], &special);
    }
    memcpy(room, x, (count - whole) * length * SIZE);
    FN(sum_dense_lanes)(length, sums, (const char *) room);
    for (ptrdiff_t i = whole; i < count; i += 4)
        FN(put_some)(&to, i, count - i, &sums[(i - whole) / 4], &special);
    return FN(is_special)(&special);
}

#define CASE(few) case few: return is_masked ? FN(sum_quads)(interleave, few, 1, runs, to) \
    : FN(sum_quads)(interleave, few, 0, runs, to);
BCAST_ON_TARGET BCAST_INLINE int FN(sum_shapes)(const int interleave, const bcast_runs *runs, const bcast_sink *to)
{
    const int is_masked = runs->length % LANES > 0;
    if (BCAST_UNROLLED)
        switch ((runs->length + LANES - 1) / LANES) { CASE(1) CASE(2) CASE(3) CASE(4) CASE(6) CASE(8) }
    return FN(sum_quads)(interleave, 0, 1, runs, to);
}
#undef CASE

BCAST_ON_TARGET static int FN(sum_runs)(const bcast_runs *runs, const bcast_sink *to)
{
    if (runs->interleave == 1 && runs->step == runs->length * SIZE) {   /* of 4 terms: a whole vector is as fast */
        if (runs->length == 2) return FN(sum_dense_runs)(2, runs, to);
        if (runs->length == 3) return FN(sum_dense_runs)(3, runs, to);
        if (runs->length == 4 && (COMPENSATED || PARTS > 1)) return FN(sum_dense_runs)(4, runs, to);
    }
    if (runs->interleave == 1) return FN(sum_shapes)(1, runs, to);
    if (runs->interleave == 2) return FN(sum_shapes)(2, runs, to);
    return FN(sum_shapes)(4, runs, to);
}

/* The lanes of a run of `length` terms, whose tail is copied to `room` if it `ends` where the data does. */
BCAST_ON_TARGET BCAST_INLINE Accumulator FN(sum_one_run)(
    const char *x, ptrdiff_t length, const int ends, Term *room, const Term *masks)
{
    const ptrdiff_t vectors = length > LANES ? (length + LANES - 1) / LANES : 1, whole = (vectors - 1) * VECTOR;
    const ptrdiff_t left = length - (vectors - 1) * LANES;      /* terms of the tail, from 0 to LANES */
    const FN(quad) quad = {{x}, {ends ? (const char *) room : x + whole}, vectors, BCAST_AHEAD};
    Accumulator sum;
    if (ends) memcpy(room, x + whole, left * SIZE);
    if (vectors < BCAST_LONG) FN(sum_lanes)(1, TREE, 0, &sum, &quad, 0, masks + 2 * LANES - left);
    else FN(sum_long_run)(&sum, &quad, 0, masks + 2 * LANES - left);
    return sum;
}

/* The lanes of runs of up to `vectors` vectors, 1 or 2, as `sum_one_run` gives them but for the signs of zeros. */
BCAST_ON_TARGET BCAST_INLINE Accumulator FN(sum_short_run)(
    const int vectors, const char *x, ptrdiff_t length, const Term *masks)
{
    const Term *mask = masks + 2 * LANES - length;
    Wide wide = FN(load_masked)(x, mask);
    Accumulator sum = {{0}, {0}};
    if (vectors == 2) {
        const Wide next = FN(load_masked)(x + VECTOR, mask + LANES);
        wide = FN(plus)(&next, &wide);
    }
    sum.sum = FN(part)(&wide, 0);
    for (int i = 1; i < PARTS; i++) {
        const AccVec part = FN(part)(&wide, i);
        FN(two_sum)(&sum, &part);
    }
    return sum;
}

/* Runs of different lengths, four at a time. A sum that is zero is +0, as masked terms are. */
BCAST_ON_TARGET BCAST_INLINE int FN(sum_quads_of_counts)(
    const int interleave, const bcast_counted_runs *all, const bcast_sink *sink)
{
    const bcast_counted_runs runs = *all;
    const bcast_sink to = *sink;
    const char *x = runs.x;
    AccVec special = {0}, zero = {0};
    Term masks[4 * LANES] = {0}, room[LANES] = {0};
    for (int l = 0; l < 2 * LANES; l++) masks[l] = (Term) -1;
    for (ptrdiff_t i = 0; i < runs.count; i += 4) {
        ptrdiff_t length[4] = {0}, any, bytes;
        Accumulator sums[4];
        for (int k = 0; k < 4; k++) length[k] = i + k < runs.count ? runs.counts[i + k] * interleave : 0;
        any = length[0] | length[1] | length[2] | length[3];
        bytes = (length[0] + length[1] + length[2] + length[3]) * SIZE;
        __builtin_prefetch(x + BCAST_PAGE);
        if (any < 2 * LANES && runs.end - x >= bytes + 2 * VECTOR) {
            if (any < LANES) {
                BCAST_UNROLL
                for (int k = 0; k < 4; x += length[k++] * SIZE) sums[k] = FN(sum_short_run)(1, x, length[k], masks);
            } else {
                BCAST_UNROLL
                for (int k = 0; k < 4; x += length[k++] * SIZE) sums[k] = FN(sum_short_run)(2, x, length[k], masks);
            }
        } else {
            Accumulator long_sums[4];       /* in memory, as the others need not be */
            for (int k = 0; k < 4; x += length[k++] * SIZE) {
                if (runs.end - x >= length[k] * SIZE + VECTOR)
                    long_sums[k] = FN(sum_one_run)(x, length[k], 0, NULL, masks);
                else long_sums[k] = FN(sum_one_run)(x, length[k], 1, room, masks);
            }
            for (int k = 0; k < 4; k++) sums[k] = long_sums[k];
        }
        FN(transpose_reduce)(interleave, sums);
        for (int j = 0; j < 4; j += 4 / interleave) {
            const ptrdiff_t some = (runs.count - i - j) * interleave;
            sums[j].sum += zero;
            if (some > 0) FN(put_some)(&to, (i + j) * interleave, some, &sums[j], &special);
        }
    }
    return FN(is_special)(&special);
}

/* The same where a vector has no whole number of turns: it holds one, and what follows, of which no sum is kept. */
BCAST_ON_TARGET static int FN(sum_counted_turns)(const bcast_counted_runs *all, const bcast_sink *sink)
{
    const bcast_counted_runs runs = *all;
    const bcast_sink to = *sink;
    const ptrdiff_t m = runs.interleave, step = m * SIZE;
    const ptrdiff_t size = to.mode == BCAST_WRITE ? SIZE : (ptrdiff_t) sizeof(Acc);
    const char *x = runs.x;
    AccVec special = {0};
    Term room[4 * LANES] = {0};     /* for four turns and what follows */
    Acc sum_room[LANES], error_room[LANES];
    for (ptrdiff_t i = 0; i < runs.count; i++) {
        Accumulator sums[PARTS] = {{{0}, {0}}};
        const int ends = (i + 1) * m + LANES - m > runs.count * m;
        const bcast_sink spare = {to.mode, (char *) sum_room, (char *) error_room};
        for (ptrdiff_t left = runs.counts[i], n; left > 0; left -= n, x += n * step) {
            const char *from = x;
            n = left < 4 ? left : 4;
            if (runs.end - x < (n - 1) * step + VECTOR) from = memcpy(room, x, n * step);
            switch (n) {
            case 1: FN(add_columns)(1, sums, from, step, 0); break;
            case 2: FN(add_columns)(2, sums, from, step, 0); break;
            case 3: FN(add_columns)(3, sums, from, step, 0); break;
            default: FN(add_columns)(4, sums, from, step, 0);
            }
        }
        for (int l = 0; l < PARTS; l++)
            FN(put)(ends ? &spare : &to, (ends ? 0 : i * m) + 4 * l, &sums[l], &special);
        if (ends) memcpy(to.sum + i * m * size, sum_room, m * size);
        if (ends && COMPENSATED && to.mode != BCAST_WRITE) memcpy(to.error + i * m * size, error_room, m * size);
    }
    return FN(is_special)(&special);
}

BCAST_ON_TARGET static int FN(sum_counted_runs)(const bcast_counted_runs *runs, const bcast_sink *to)
{
    switch (runs->interleave) {
    case 1: return FN(sum_quads_of_counts)(1, runs, to);
    case 2: return FN(sum_quads_of_counts)(2, runs, to);
    case 4: return FN(sum_quads_of_counts)(4, runs, to);
    default: return FN(sum_counted_turns)(runs, to);
    }
}

#undef TREE
