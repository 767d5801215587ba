/* The arithmetic of one KIND on one TARGET, and its leaf of rows; `target.inc.h` includes this file for each kind.

   A wide vector (Wide) holds what LANES terms are loaded as, and sums of few of them. An accumulator vector (AccVec)
   holds four accumulators; a wide vector becomes PARTS of them:

       Term    |0|1|2|3|4|5|6|7|                    float16, 8 lanes
       Wide    |0 |1 |2 |3 |4 |5 |6 |7 |            float32
       AccVec  |0   |1   |2   |3   | |4   |5   |6   |7   |      float64: 2 parts */

#define OF(name) BCAST_JOIN(KIND, name)             /* of the kind, and */
#define FN(name) BCAST_JOIN_3(name, KIND, TARGET)   /* of its leaves on the target */
#define Term OF(term)
#define Terms OF(terms)
#define Results OF(results)
#define Wide OF(wide)
#define Acc OF(acc)
#define AccVec OF(acc_vector)
#define Accumulator OF(accumulator)
#define LANES OF(lanes)
#define PARTS (OF(lanes) / 4)
#define COMPENSATED OF(compensated)
#define CONVERTED OF(converted)
#define SIZE ((ptrdiff_t) sizeof(Term))
#define VECTOR (LANES * SIZE)       /* bytes */

/* The term at `at`. */
BCAST_INLINE Acc FN(value)(const char *at)
{
    if ((Acc) 0.5 == 0) return (Acc) bcast_read(OF(dtype), BCAST_AS_IS, at);    /* an integer */
    return (Acc) bcast_f64_of(bcast_read(OF(dtype), BCAST_AS_REAL, at));
}

/* *to += term, exactly if the error is kept: two_sum (Knuth). */
BCAST_ON_TARGET BCAST_INLINE void FN(two_sum_of_one)(Acc *to, Acc *error, Acc term)
{
    const Acc sum = *to + term;
    if (COMPENSATED) *error += BCAST_TWO_SUM_ERROR(*to, term, sum);
    *to = sum;
}

/* to[i] += from[i] */
BCAST_ON_TARGET static void FN(add_accumulators)(const bcast_sink *to, const bcast_sink *from, ptrdiff_t n)
{
    Acc *sum = (Acc *) to->sum, *error = (Acc *) to->error;
    const Acc *more = (const Acc *) from->sum, *more_error = (const Acc *) from->error;
    for (ptrdiff_t i = 0; i < n; i++) {
        FN(two_sum_of_one)(&sum[i], COMPENSATED ? &error[i] : NULL, more[i]);
        if (COMPENSATED) error[i] += more_error[i];
    }
}

/* Sum rows column by column: those that are narrower than a vector. */
BCAST_ON_TARGET static int FN(sum_narrow_rows)(const bcast_rows *rows, const bcast_sink *to)
{
    if (to->mode == BCAST_WRITE) return 1;
    for (ptrdiff_t j = 0; j < rows->width; j++) {
        Acc *to_sum = (Acc *) to->sum + j, *to_error = COMPENSATED ? (Acc *) to->error + j : NULL;
        Acc sum = to->mode == BCAST_ADD ? *to_sum : 0;
        Acc error = COMPENSATED && to->mode == BCAST_ADD ? *to_error : 0;
        for (ptrdiff_t t = 0; t < rows->turns; t++) {
            const char *x = rows->x + t * rows->advance + j * SIZE;
            for (ptrdiff_t i = 0; i < rows->rows; i++)
                FN(two_sum_of_one)(&sum, &error, FN(value)(x + i % 4 * rows->step + i / 4 * rows->fifth));
        }
        *to_sum = sum;
        if (COMPENSATED) *to_error = error;
    }
    return 0;
}

#if BCAST_VECTORS

BCAST_ON_TARGET BCAST_INLINE Wide FN(load)(const char *at)
{
    return BCAST_PER_KIND(WIDEN, KIND)(BCAST_AT(const Terms, at, 0));
}

/* The terms that the mask leaves, the others zero. */
BCAST_ON_TARGET BCAST_INLINE Wide FN(load_masked)(const char *at, const Term *mask)
{
    return BCAST_PER_KIND(WIDEN, KIND)(BCAST_AT(const Terms, at, 0) & BCAST_AT(const Terms, mask, 0));
}

BCAST_ON_TARGET BCAST_INLINE AccVec FN(part)(const Wide *wide, int i)
{
    (void) i;
    return BCAST_PER_KIND(PART, KIND)(wide, i);
}

BCAST_ON_TARGET BCAST_INLINE void FN(two_sum)(Accumulator *to, const AccVec *term)
{
    const AccVec sum = to->sum + *term;
    if (COMPENSATED) to->error += BCAST_TWO_SUM_ERROR(to->sum, *term, sum);
    to->sum = sum;
}

/* The same by fast_two_sum (Dekker), for one term of many: exact unless the term is larger than the sum, and rounded
   then. Multiplied by one, it is added by the units that multiply, which are idle here. */
BCAST_ON_TARGET BCAST_INLINE void FN(fast_two_sum)(Accumulator *to, const AccVec *term)
{
    const AccVec sum = to->sum + *term;
    if (COMPENSATED) {
        const AccVec one = BCAST_ONE(AccVec);
        to->error = (*term * one - (sum - to->sum)) * one + to->error;
    }
    to->sum = sum;
}

/* a + b. Where terms are converted, that keeps the units busy that add: multiplied by one, a is added by the others. */
BCAST_ON_TARGET BCAST_INLINE Wide FN(plus)(const Wide *a, const Wide *b)
{
    return CONVERTED ? *a * BCAST_ONE(Wide) + *b : *a + *b;
}

/* The vectors at x and x + step. */
BCAST_ON_TARGET BCAST_INLINE Wide FN(sum_of_2)(const char *x, ptrdiff_t step)
{
    const Wide a = FN(load)(x), b = FN(load)(x + step);
    return FN(plus)(&a, &b);
}

/* Those at x, x + step, x + 2 * step and x + 3 * step. */
BCAST_ON_TARGET BCAST_INLINE Wide FN(sum_of_4)(const char *x, ptrdiff_t step)
{
    const Wide a = FN(sum_of_2)(x, step), b = FN(sum_of_2)(x + 2 * step, step);
    return FN(plus)(&a, &b);
}

/* to += LANES items of each of `n` rows. A tree of plain sums comes first: where compensated, of two, which leaves one
   rounding between a term and its error term. */
BCAST_ON_TARGET BCAST_INLINE void FN(add_columns)(
    const int n, Accumulator *to, const char *x, ptrdiff_t step, ptrdiff_t fifth)
{
    if (COMPENSATED) {
        for (int i = 0; i + 2 <= n; i += 2) {
            const Wide pair = FN(sum_of_2)(x + i % 4 * step + i / 4 * fifth, step);
            const AccVec part = FN(part)(&pair, 0);
            FN(fast_two_sum)(to, &part);
        }
    } else if (n >= 4) {
        Wide tree = FN(sum_of_4)(x, step);
        if (n == 8) {
            const Wide rest = FN(sum_of_4)(x + fifth, step);
            tree = FN(plus)(&tree, &rest);
        }
        for (int i = 0; i < PARTS; i++) {
            const AccVec part = FN(part)(&tree, i);
            FN(two_sum)(&to[i], &part);
        }
    }
    for (int i = COMPENSATED ? n / 2 * 2 : n / 4 * 4; i < n; i++) {
        const Wide row = FN(load)(x + i % 4 * step + i / 4 * fifth);
        for (int j = 0; j < PARTS; j++) {
            const AccVec part = FN(part)(&row, j);
            FN(two_sum)(&to[j], &part);
        }
    }
}

/* Accumulators that hold what is added to from sum `at` on, or zeros. */
BCAST_ON_TARGET BCAST_INLINE void FN(begin)(const bcast_sink *to, ptrdiff_t at, Accumulator *sums)
{
    for (int i = 0; i < PARTS; i++) {
        const int adds = to->mode == BCAST_ADD;
        sums[i].sum = adds ? BCAST_AT(const AccVec, (Acc *) to->sum + at, i) : (AccVec) {0};
        if (COMPENSATED) sums[i].error = adds ? BCAST_AT(const AccVec, (Acc *) to->error + at, i) : (AccVec) {0};
    }
}

/* Put four accumulators where the sink says, from sum `at` on, in place of what is there; *special becomes NaN if a
   result is infinite or no number, where compensated. */
BCAST_ON_TARGET BCAST_INLINE void FN(put)(const bcast_sink *to, ptrdiff_t at, const Accumulator *sums, AccVec *special)
{
    if (to->mode == BCAST_WRITE) {
        AccVec all = COMPENSATED ? sums->sum + sums->error : sums->sum;
        if (COMPENSATED) *special = all * 0 + *special;
        BCAST_AT(Results, to->sum + at * SIZE, 0) = BCAST_PER_KIND(NARROW, KIND)(all);
        return;
    }
    BCAST_AT(AccVec, (Acc *) to->sum + at, 0) = sums->sum;
    if (COMPENSATED) BCAST_AT(AccVec, (Acc *) to->error + at, 0) = sums->error;
}

BCAST_ON_TARGET BCAST_INLINE int FN(is_special)(const AccVec *special)
{
    return COMPENSATED && !((*special)[0] + (*special)[1] + (*special)[2] + (*special)[3] == 0);
}

/* The sums of `n` rows in each turn. The last vector is laid back to end with the rows, and begun before the others
   change what it adds to: so all items of a row are summed alike. */
BCAST_ON_TARGET BCAST_INLINE int FN(sum_n_rows)(const int n, const bcast_rows *all, const bcast_sink *sink)
{
    const bcast_rows rows = *all;       /* not in memory to which sums are stored */
    const ptrdiff_t last = rows.width - LANES;
    bcast_sink to = *sink;
    const char *x = rows.x;
    AccVec special = {0};
    for (ptrdiff_t turn = 0; turn < rows.turns; turn++, x += rows.advance, to.mode = BCAST_ADD) {
        Accumulator end[PARTS];
        FN(begin)(&to, last, end);
        for (ptrdiff_t j = 0; j < last; j += LANES) {
            Accumulator sums[PARTS];
            FN(begin)(&to, j, sums);
            FN(add_columns)(n, sums, x + j * SIZE, rows.step, rows.fifth);
            for (int i = 0; i < PARTS; i++) FN(put)(&to, j + 4 * i, &sums[i], &special);
        }
        FN(add_columns)(n, end, x + last * SIZE, rows.step, rows.fifth);
        for (int i = 0; i < PARTS; i++) FN(put)(&to, last + 4 * i, &end[i], &special);
    }
    return FN(is_special)(&special);
}

#define CASE(n) case n: return FN(sum_n_rows)(n, rows, to);
BCAST_ON_TARGET static int FN(sum_rows)(const bcast_rows *rows, const bcast_sink *to)
{
    if (rows->width < LANES) return FN(sum_narrow_rows)(rows, to);
    switch (rows->rows) { CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8) }
    return 0;
}
#undef CASE

#include "runs.inc.h"

#else

BCAST_ON_TARGET static int FN(sum_rows)(const bcast_rows *rows, const bcast_sink *to)
{
    return FN(sum_narrow_rows)(rows, to);
}

/* Each run as narrow rows. */
BCAST_ON_TARGET static int FN(sum_runs)(const bcast_runs *runs, const bcast_sink *to)
{
    const ptrdiff_t m = runs->interleave, size = m * (ptrdiff_t) sizeof(Acc);
    for (ptrdiff_t i = 0; i < runs->count; i++) {
        const bcast_rows rows = {runs->x + i * runs->step, 1, 0, runs->length / m, m * SIZE, 4 * m * SIZE, m};
        const bcast_sink sink = {to->mode, to->sum + i * size, COMPENSATED ? to->error + i * size : NULL};
        if (FN(sum_narrow_rows)(&rows, &sink)) return 1;
    }
    return 0;
}

BCAST_ON_TARGET static int FN(sum_counted_runs)(const bcast_counted_runs *runs, const bcast_sink *to)
{
    const ptrdiff_t m = runs->interleave, size = m * (ptrdiff_t) sizeof(Acc);
    const char *x = runs->x;
    for (ptrdiff_t i = 0; i < runs->count; i++) {
        const ptrdiff_t length = runs->counts[i] * m;
        const bcast_runs run = {x, 1, 0, length, m};
        const bcast_sink sink = {to->mode, to->sum + i * size, COMPENSATED ? to->error + i * size : NULL};
        if (FN(sum_runs)(&run, &sink)) return 1;
        x += length * SIZE;
    }
    return 0;
}

#endif

#undef OF
#undef FN
#undef Term
#undef Terms
#undef Results
#undef Wide
#undef Acc
#undef AccVec
#undef Accumulator
#undef LANES
#undef PARTS
#undef COMPENSATED
#undef CONVERTED
#undef SIZE
#undef VECTOR
#undef KIND
