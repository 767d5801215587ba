/* The arithmetic of one KIND on one TARGET, and its kernels; `target.inc.h` includes this file for each kind, and
   `kernels.h` defines the target's words.

   A wide vector (Wide) holds what LANES terms are loaded as, and sums of few of them. An accumulator vector (AccVec)
   holds four accumulators; a wide vector becomes PARTS of them:

       Term    |0|1|2|3|4|5|6|7|                    float16, 8 lanes
       Wide    |0 |1 |2 |3 |4 |5 |6 |7 |            float32
       AccVec  |0   |1   |2   |3   | |4   |5   |6   |7   |      float64: 2 parts */

#define OF(name) BCAST_JOIN(KIND, name)             /* of the kind, and */
#define FN(name) BCAST_JOIN_3(name, KIND, TARGET)   /* of its kernels on the target */
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
#define IS_INTEGER ((Acc) 0.5 == 0)
#define SIZE ((ptrdiff_t) sizeof(Term))
#define VECTOR (LANES * SIZE)       /* bytes */

/* The term at `at`. */
BCAST_INLINE Acc FN(value)(const char *at)
{
    if (IS_INTEGER) return (Acc) bcast_read(OF(dtype), 0, at);
    return (Acc) bcast_f64_of(bcast_read(OF(dtype), 1, at));
}

/* *dst += term, exactly if the error is kept: two_sum (Knuth). */
ON_TARGET BCAST_INLINE void FN(two_sum_of_one)(Acc *dst, Acc *error, Acc term)
{
    const Acc sum = *dst + term;
    if (COMPENSATED) *error += BCAST_TWO_SUM_ERROR(*dst, term, sum);
    *dst = sum;
}

/* dst[i] += src[i] */
ON_TARGET static void FN(add_accumulators)(const bcast_sink *dst, const bcast_sink *src, ptrdiff_t n)
{
    Acc *sum = (Acc *) dst->sum, *error = (Acc *) dst->error;
    const Acc *more = (const Acc *) src->sum, *more_error = (const Acc *) src->error;
    for (ptrdiff_t i = 0; i < n; i++) {
        FN(two_sum_of_one)(&sum[i], COMPENSATED ? &error[i] : NULL, more[i]);
        if (COMPENSATED) error[i] += more_error[i];
    }
}

/* Add up `length` rows of few accumulators, `n`, in each group; sums lie one behind the other then. */
ON_TARGET static void FN(fold)(const bcast_sink *all, ptrdiff_t groups, ptrdiff_t length, ptrdiff_t n)
{
    Acc *dst = (Acc *) all->sum, *dst_error = (Acc *) all->error;
    const Acc *src = dst, *src_error = dst_error, *end = dst + groups * length * n;
    for (; src < end; src += length * n, src_error += length * n)
        for (ptrdiff_t k = 0; k < n; k++) {
            Acc sum = src[k], error = COMPENSATED ? src_error[k] : 0;
            for (ptrdiff_t i = n + k; i < length * n; i += n) {
                FN(two_sum_of_one)(&sum, &error, src[i]);
                if (COMPENSATED) error += src_error[i];
            }
            *dst++ = sum;
            if (COMPENSATED) *dst_error++ = error;
        }
}

/* Sum rows column by column: those that are narrower than a vector. */
ON_TARGET static int FN(sum_narrow_rows)(const bcast_term_rows *rows, const bcast_sink *dst)
{
    if (dst->mode == BCAST_WRITE) return 1;
    for (ptrdiff_t j = 0; j < rows->width; j++) {
        Acc *to_sum = (Acc *) dst->sum + j, *to_error = COMPENSATED ? (Acc *) dst->error + j : NULL;
        Acc sum = dst->mode == BCAST_ADD ? *to_sum : 0;
        Acc error = COMPENSATED && dst->mode == BCAST_ADD ? *to_error : 0;
        for (ptrdiff_t t = 0; t < rows->turns; t++) {
            const char *src = rows->src + t * rows->advance + j * SIZE;
            for (ptrdiff_t i = 0; i < rows->rows; i++)
                FN(two_sum_of_one)(&sum, &error, FN(value)(src + i % 4 * rows->stride + i / 4 * rows->half_stride));
        }
        *to_sum = sum;
        if (COMPENSATED) *to_error = error;
    }
    return 0;
}

/* *dst += the product of the terms at `a` and `b`. */
ON_TARGET BCAST_INLINE void FN(add_product)(Acc *dst, Acc *error, const char *a, const char *b)
{
    Acc product = FN(value)(a) * FN(value)(b);
    if (COMPENSATED) ROUND(product);
    FN(two_sum_of_one)(dst, error, product);
}

/* Sum the products of rows column by column. */
ON_TARGET static void FN(multiply_narrow)(const bcast_term_products *rows, Acc *dst)
{
    for (ptrdiff_t k = 0; k < rows->count; k++)
        for (ptrdiff_t j = 0; j < rows->width; j++) {
            const char *a = rows->a + k * rows->a_advance + j * SIZE, *b = rows->b + k * rows->b_advance + j * SIZE;
            Acc sum = 0, error = 0;
            for (ptrdiff_t i = 0; i < rows->rows; i++, a += rows->stride, b += rows->stride)
                FN(add_product)(&sum, &error, a, b);
            if (COMPENSATED && rows->rows > 1) dst[rows->width] = error;
            *dst++ = sum;
        }
}

#if BCAST_VECTORS

ON_TARGET BCAST_INLINE Wide FN(load)(const char *at)
{
    return OF(widen)(BCAST_AT(const Terms, at, 0));
}

/* The terms that the mask leaves, the others zero. */
ON_TARGET BCAST_INLINE Wide FN(load_masked)(const char *at, const Term *mask)
{
    return OF(widen)(BCAST_AT(const Terms, at, 0) & BCAST_AT(const Terms, mask, 0));
}

ON_TARGET BCAST_INLINE AccVec FN(part)(const Wide *wide, int i)
{
    (void) i;
    return OF(part)(wide, i);
}

ON_TARGET BCAST_INLINE void FN(two_sum)(Accumulator *dst, const AccVec *term)
{
    const AccVec sum = dst->sum + *term;
    if (COMPENSATED) dst->error += BCAST_TWO_SUM_ERROR(dst->sum, *term, sum);
    dst->sum = sum;
}

/* The same by fast_two_sum (Dekker), for one term of many: exact unless the term is larger than the sum, and rounded
   then. Multiplied by one, it is added by the units that multiply, which are idle here. */
ON_TARGET BCAST_INLINE void FN(fast_two_sum)(Accumulator *dst, const AccVec *term)
{
    const AccVec sum = dst->sum + *term;
    if (COMPENSATED) {
        const AccVec one = ONE(AccVec);
        dst->error = (*term * one - (sum - dst->sum)) * one + dst->error;
    }
    dst->sum = sum;
}

ON_TARGET BCAST_INLINE void FN(add_parts)(const int fast, Accumulator *dst, const Wide *wide)
{
    for (int i = 0; i < PARTS; i++) {
        const AccVec part = FN(part)(wide, i);
        if (fast) FN(fast_two_sum)(&dst[i], &part);
        else FN(two_sum)(&dst[i], &part);
    }
}

/* a + b. Where terms are converted, that keeps the units busy that add: multiplied by one, a is added by the others. */
ON_TARGET BCAST_INLINE Wide FN(plus)(const Wide *a, const Wide *b)
{
    return CONVERTED ? *a * ONE(Wide) + *b : *a + *b;
}

/* The vectors at src and src + stride. */
ON_TARGET BCAST_INLINE Wide FN(sum_of_2)(const char *src, ptrdiff_t stride)
{
    const Wide a = FN(load)(src), b = FN(load)(src + stride);
    return FN(plus)(&a, &b);
}

/* Those at src, src + stride, src + 2 * stride and src + 3 * stride. */
ON_TARGET BCAST_INLINE Wide FN(sum_of_4)(const char *src, ptrdiff_t stride)
{
    const Wide a = FN(sum_of_2)(src, stride), b = FN(sum_of_2)(src + 2 * stride, stride);
    return FN(plus)(&a, &b);
}

/* dst += LANES items of each of `n` rows. A tree of plain sums comes first: where compensated, of two, which leaves one
   rounding between a term and its error term. */
SPECIALISED void FN(add_columns)(
    const int n, Accumulator *dst, const char *src, ptrdiff_t stride, ptrdiff_t half_stride)
{
    if (COMPENSATED) {
        for (int i = 0; i + 2 <= n; i += 2) {
            const Wide pair = FN(sum_of_2)(src + i % 4 * stride + i / 4 * half_stride, stride);
            FN(add_parts)(1, dst, &pair);
        }
    } else if (n >= 4) {
        Wide tree = FN(sum_of_4)(src, stride);
        if (n == 8) {
            const Wide rest = FN(sum_of_4)(src + half_stride, stride);
            tree = FN(plus)(&tree, &rest);
        }
        FN(add_parts)(0, dst, &tree);
    }
    for (int i = COMPENSATED ? n / 2 * 2 : n / 4 * 4; i < n; i++) {
        const Wide row = FN(load)(src + i % 4 * stride + i / 4 * half_stride);
        FN(add_parts)(0, dst, &row);
    }
}

/* Accumulators that hold what is added to from sum `at` on, or zeros. */
ON_TARGET BCAST_INLINE void FN(begin)(const bcast_sink *dst, ptrdiff_t at, Accumulator *sums)
{
    for (int i = 0; i < PARTS; i++) {
        const int adds = dst->mode == BCAST_ADD;
        sums[i].sum = adds ? BCAST_AT(const AccVec, (Acc *) dst->sum + at, i) : (AccVec) {0};
        if (COMPENSATED) sums[i].error = adds ? BCAST_AT(const AccVec, (Acc *) dst->error + at, i) : (AccVec) {0};
    }
}

/* Put four accumulators where the sink says, from sum `at` on, in place of what is there; *special becomes NaN if a
   result is infinite or no number, where compensated. */
ON_TARGET BCAST_INLINE void FN(put)(const bcast_sink *dst, ptrdiff_t at, const Accumulator *sums, AccVec *special)
{
    if (dst->mode == BCAST_WRITE) {
        AccVec all = COMPENSATED ? sums->sum + sums->error : sums->sum;
        if (COMPENSATED) *special = all * 0 + *special;
        BCAST_AT(Results, dst->sum + at * SIZE, 0) = OF(narrow)(&all);
        return;
    }
    BCAST_AT(AccVec, (Acc *) dst->sum + at, 0) = sums->sum;
    if (COMPENSATED) BCAST_AT(AccVec, (Acc *) dst->error + at, 0) = sums->error;
}

ON_TARGET BCAST_INLINE int FN(is_special)(const AccVec *special)
{
    return COMPENSATED && !((*special)[0] + (*special)[1] + (*special)[2] + (*special)[3] == 0);
}

/* Put four sums, and add what is there where the sink says so. */
ON_TARGET BCAST_INLINE void FN(put_added)(
    const bcast_sink *dst, ptrdiff_t at, Accumulator *sums, AccVec *special)
{
    if (dst->mode == BCAST_ADD) {
        const AccVec before = BCAST_AT(const AccVec, (Acc *) dst->sum + at, 0);
        FN(two_sum)(sums, &before);
        if (COMPENSATED) sums->error += BCAST_AT(const AccVec, (Acc *) dst->error + at, 0);
    }
    FN(put)(dst, at, sums, special);
}

/* The same with the first `n` of four, by way of room for all. */
SPECIALISED void FN(put_some)(
    const bcast_sink *dst, ptrdiff_t at, ptrdiff_t n, Accumulator *sums, AccVec *special)
{
    const ptrdiff_t size = dst->mode == BCAST_WRITE ? SIZE : (ptrdiff_t) sizeof(Acc);
    Acc sum[4] = {0}, error[4] = {0};
    const bcast_sink room = {dst->mode, (char *) sum, (char *) error};
    if (n >= 4) {
        FN(put_added)(dst, at, sums, special);
        return;
    }
    if (dst->mode == BCAST_ADD) memcpy(sum, dst->sum + at * size, n * size);
    if (dst->mode == BCAST_ADD && COMPENSATED) memcpy(error, dst->error + at * size, n * size);
    FN(put_added)(&room, 0, sums, special);
    memcpy(dst->sum + at * size, sum, n * size);
    if (dst->mode != BCAST_WRITE && COMPENSATED) memcpy(dst->error + at * size, error, n * size);
}

#include "rows.inc.h"
#include "products.inc.h"
#include "dense.inc.h"
#include "runs.inc.h"
#include "counted.inc.h"

#else

ON_TARGET static int FN(sum_rows)(const bcast_term_rows *rows, const bcast_sink *dst)
{
    return FN(sum_narrow_rows)(rows, dst);
}

/* Run number `i`, as narrow rows. */
BCAST_INLINE int FN(sum_run)(const char *src, ptrdiff_t length, ptrdiff_t m, const bcast_sink *dst, ptrdiff_t i)
{
    const ptrdiff_t at = i * m * (ptrdiff_t) sizeof(Acc);
    const bcast_term_rows rows = {src, 1, 0, length, m * SIZE, 4 * m * SIZE, m};
    const bcast_sink sink = {dst->mode, dst->sum + at, COMPENSATED ? dst->error + at : NULL};
    return FN(sum_narrow_rows)(&rows, &sink);
}

ON_TARGET static int FN(sum_runs)(const bcast_term_runs *runs, const bcast_sink *dst)
{
    const ptrdiff_t m = runs->interleave;
    for (ptrdiff_t i = 0; i < runs->count; i++)
        if (FN(sum_run)(runs->src + i * runs->stride, runs->length / m, m, dst, i)) return 1;
    return 0;
}

ON_TARGET static int FN(sum_counted_runs)(const bcast_counted_runs *runs, const bcast_sink *dst)
{
    const char *src = runs->src;
    for (ptrdiff_t i = 0; i < runs->count; src += runs->counts[i++] * runs->interleave * SIZE)
        if (FN(sum_run)(src, runs->counts[i], runs->interleave, dst, i)) return 1;
    return 0;
}

ON_TARGET static void FN(multiply_rows)(const bcast_term_products *rows, Acc *dst)
{
    FN(multiply_narrow)(rows, dst);
}

ON_TARGET static void FN(multiply_run)(const char *a, const char *b, ptrdiff_t length, ptrdiff_t ahead, Acc *dst)
{
    (void) ahead;
    memset(dst, 0, (COMPENSATED ? 2 : 1) * LANES * sizeof(Acc));
    for (ptrdiff_t i = 0; i < length; i++)
        FN(add_product)(&dst[i % LANES], &dst[LANES + i % LANES], a + i * SIZE, b + i * SIZE);
}

#endif

ON_TARGET static void FN(multiply)(const bcast_term_products *all, void *sums)
{
    Acc *dst = sums;
    if (IS_INTEGER || all->rows) FN(multiply_rows)(all, dst);
    for (ptrdiff_t k = 0; !IS_INTEGER && !all->rows && k < all->count; k++, dst += COMPENSATED ? 2 * LANES : LANES)
        FN(multiply_run)(all->a + k * all->a_advance, all->b + k * all->b_advance, all->width, all->ahead, dst);
}

ON_TARGET BCAST_INLINE void FN(deviate_by)(
    const int stride, const char *src, const double *means, double *dst, ptrdiff_t n)
{
#if BCAST_VECTORS
    for (; n >= LANES; n -= LANES, src += VECTOR, means += stride * LANES, dst += LANES) {
        const Wide wide = FN(load)(src);
        for (int i = 0; i < PARTS; i++) {
            const bcast_f64x4 mean = stride ? BCAST_AT(const bcast_f64x4, means, i) : *means - (bcast_f64x4) {0};
            const bcast_f64x4 rest = BCAST_CONVERT(FN(part)(&wide, i), bcast_f64x4) - mean;
            BCAST_AT(bcast_f64x4, dst, i) = rest * rest;
        }
    }
#endif
    for (ptrdiff_t i = 0; i < n; i++) {
        const double rest = (double) FN(value)(src + i * SIZE) - means[i * stride];
        dst[i] = rest * rest;
    }
}

ON_TARGET static void FN(deviate)(const char *src, const double *means, ptrdiff_t stride, double *dst, ptrdiff_t n)
{
    if (IS_INTEGER) return;
    if (stride) FN(deviate_by)(1, src, means, dst, n);
    else FN(deviate_by)(0, src, means, dst, n);
}

#undef KIND
