/* Loops as NumPy's: `where`, for items of any size, `hypot` of float32, quotients and remainders of int64; and
   arithmetic row by row. */

#ifndef BCAST_LOOPS_H
#define BCAST_LOOPS_H

#include <fenv.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../_runtime/cpu.h"
#include "../_runtime/target.h"
#include "functions.h"

typedef int (*bcast_loop)(void *, char *const *, const ptrdiff_t *, const ptrdiff_t *, void *);

/* A function as a loop, compiled for any CPU, AVX2 and AVX-512; `bcast_NAME_loop` gives the one for a target. `which`
   is what the function is told: whether it `is_wider`, which the last of these is, or the loop's `auxdata`. */
#define BCAST_LOOP_ON(name, ON, function, wider, which)                                                             \
    ON static int name(                                                                                             \
        void *context, char *const *data, const ptrdiff_t *dims, const ptrdiff_t *steps, void *auxdata)             \
    {                                                                                                               \
        const int is_wider = wider;                                                                                 \
        (void) context, (void) is_wider, (void) auxdata;                                                            \
        function(dims[0], data, steps, which);                                                                      \
        return 0;                                                                                                   \
    }
#define BCAST_LOOP(name, which)                                                                                     \
    BCAST_LOOP_ON(bcast_##name##_plain, , bcast_##name, 0, which)                                                   \
    BCAST_LOOP_ON(bcast_##name##_wide, BCAST_ON_WIDE, bcast_##name, 0, which)                                       \
    BCAST_LOOP_ON(bcast_##name##_wider, BCAST_ON_WIDER, bcast_##name, 1, which)                                     \
    static inline bcast_loop bcast_##name##_loop(int target)                                                        \
    {                                                                                                               \
        return target < BCAST_WIDE ? bcast_##name##_plain :                                                         \
            target == BCAST_WIDE ? bcast_##name##_wide : bcast_##name##_wider;                                      \
    }

BCAST_INLINE void bcast_select_items(ptrdiff_t size, ptrdiff_t n, char *const *data, const ptrdiff_t *steps)
{
    const char *c = data[0], *x = data[1], *y = data[2];
    char *out = data[3];
    for (; n > 0; n--, c += steps[0], x += steps[1], y += steps[2], out += steps[3]) memmove(out, *c ? x : y, size);
}

/* Masks instead of branches. An item that stands for all is none of the output's, whatever overlaps. */
#define BCAST_SELECT_ROW(T, X, Y)                                                                                   \
    for (ptrdiff_t i = 0; i < n; i++) {                                                                             \
        const T mask = (T) -(T) (c[i] != 0);                                                                        \
        out[i] = (T) ((X & mask) | (Y & (T) ~mask));                                                                \
    }
#define BCAST_SELECT_OF(T)                                                                                          \
    case sizeof(T): {                                                                                               \
        const T *x = (const T *) data[1], *y = (const T *) data[2], one_x = *x, one_y = *y;                         \
        T *out = (T *) data[3];                                                                                     \
        if (!adjacent) bcast_select_items(sizeof(T), n, data, steps);                                               \
        else if (steps[1] && steps[2]) BCAST_SELECT_ROW(T, x[i], y[i])                                              \
        else if (steps[1]) BCAST_SELECT_ROW(T, x[i], one_y)                                                         \
        else if (steps[2]) BCAST_SELECT_ROW(T, one_x, y[i])                                                         \
        else BCAST_SELECT_ROW(T, one_x, one_y)                                                                      \
        return;                                                                                                     \
    }
BCAST_INLINE void bcast_select(ptrdiff_t n, char *const *data, const ptrdiff_t *steps, ptrdiff_t size)
{
    const char *c = data[0];
    const ptrdiff_t bytes = n * size;
    const int chosen = *c ? 1 : 2;
    if (!steps[0] && steps[3] == size && (steps[chosen] == size || !steps[chosen])) {   /* one condition for all */
        ptrdiff_t done = steps[chosen] ? bytes : size;
        memmove(data[3], data[chosen], done);
        for (; done < bytes; done *= 2) memcpy(data[3] + done, data[3], done < bytes - done ? done : bytes - done);
        return;
    }
    const int adjacent = steps[0] == 1 && (!steps[1] || steps[1] == size) && (!steps[2] || steps[2] == size) &&
        steps[3] == size;
    switch (size) {
    BCAST_SELECT_OF(uint8_t)
    BCAST_SELECT_OF(uint16_t)
    BCAST_SELECT_OF(uint32_t)
    BCAST_SELECT_OF(uint64_t)
    case 16: bcast_select_items(16, n, data, steps); return;
    default: bcast_select_items(size, n, data, steps);
    }
}
BCAST_LOOP(select, (ptrdiff_t) auxdata)

/* As C libraries have it that compute in float64, where squares are exact; NumPy calls theirs item by item. Results for
   infinities and NaN are the library's own. */
BCAST_INLINE void bcast_hypot_items(ptrdiff_t n, const float *x, const float *y, float *out)
{
    for (ptrdiff_t i = 0; i < n; i++) out[i] = (float) sqrt((double) x[i] * x[i] + (double) y[i] * y[i]);
}
#if defined(__GNUC__) && defined(__x86_64__)
#include <immintrin.h>
/* The same by an estimate of the reciprocal root, in two thirds of the time; on AMD's CPUs in 4/3 of it. Two steps make
   its 14 bits a root right to a few units of float64. Where these decide how it is rounded to float32, and where the
   result may be subnormal, the root itself is taken. */
#define BCAST_IS_INTEL __builtin_cpu_is("intel")
BCAST_ON_WIDER BCAST_APART void bcast_hypot_by_estimate(ptrdiff_t n, const float *x, const float *y, float *out)
{
    const __m512i rest = _mm512_set1_epi64((1 << 29) - 1), near_half = _mm512_set1_epi64((1 << 28) - 8);
    ptrdiff_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m512d a = _mm512_cvtps_pd(_mm256_loadu_ps(x + i)), b = _mm512_cvtps_pd(_mm256_loadu_ps(y + i));
        const __m512d square = _mm512_fmadd_pd(a, a, _mm512_mul_pd(b, b));
        const __mmask8 normal = _mm512_cmp_pd_mask(square, _mm512_set1_pd(0x1p-252), _CMP_GE_OQ);
        const __m512d inverse = _mm512_maskz_rsqrt14_pd(normal, square);
        __m512d root = _mm512_mul_pd(square, inverse), half_inverse = _mm512_mul_pd(inverse, _mm512_set1_pd(0.5));
        const __m512d error = _mm512_fnmadd_pd(root, half_inverse, _mm512_set1_pd(0.5));
        root = _mm512_fmadd_pd(root, error, root);
        half_inverse = _mm512_fmadd_pd(half_inverse, error, half_inverse);
        root = _mm512_fmadd_pd(_mm512_fnmadd_pd(root, root, square), half_inverse, root);
        const __m512i past = _mm512_sub_epi64(_mm512_and_si512(_mm512_castpd_si512(root), rest), near_half);
        if (normal != 0xff || _mm512_cmplt_epu64_mask(past, _mm512_set1_epi64(17))) root = _mm512_sqrt_pd(square);
        _mm256_storeu_ps(out + i, _mm512_cvtpd_ps(root));
    }
    bcast_hypot_items(n - i, x + i, y + i, out + i);
}
#else
#define bcast_hypot_by_estimate bcast_hypot_items
#define BCAST_IS_INTEL 0
#endif
#define NAME hypot
#define ITEM float
#define BITS uint32_t
#define IS_RARE(x, y) (((x) & 0x7f800000) == 0x7f800000) | (((y) & 0x7f800000) == 0x7f800000)
#define USUAL(n, x, y, out) \
    if (which && BCAST_IS_INTEL) bcast_hypot_by_estimate(n, x, y, out); else bcast_hypot_items(n, x, y, out)
#define RARE(x, y) hypotf(x, y)
#include "careful.inc.h"
BCAST_LOOP(hypot_float, is_wider)

/* Quotients rounded down, or what `remains`. Integers below 2^52 divide as float64, in which no quotient is rounded up
   to a whole number: it is farther from that than float64 is exact. By zero, the result is 0; a quotient that is too
   large wraps. */
BCAST_INLINE int64_t bcast_divided(int64_t x, int64_t y, int remains)
{
    const double exact = (double) x / (double) y;
    int64_t whole = (int64_t) exact;
    whole -= (double) whole > exact;
    return remains ? x - whole * y : whole;
}
BCAST_INLINE int64_t bcast_any_divided(int64_t x, int64_t y, int remains)
{
    if (y == 0) return feraiseexcept(FE_DIVBYZERO), 0;
    if (y == -1 && x == INT64_MIN) return remains ? 0 : (feraiseexcept(FE_OVERFLOW), x);
    const int64_t rest = x % y, is_up = rest != 0 && (x < 0) != (y < 0);
    return remains ? rest + is_up * y : x / y - is_up;
}
#define NAME divide
#define ITEM int64_t
#define BITS uint64_t
#define IS_RARE(x, y) ((x) + (1ull << 52)) >> 53 | ((y) + (1ull << 52)) >> 53 | ((y) == 0)
#define USUAL(n, x, y, out) for (ptrdiff_t i = 0; i < n; i++) out[i] = bcast_divided(x[i], y[i], which)
#define RARE(x, y) bcast_any_divided(x, y, which)
#include "careful.inc.h"

typedef struct { bcast_loop loop; void *context, *auxdata; } bcast_numpys;

/* Remainders; or quotients, if NumPy's loop for them is given. It is as fast by one divisor, which it multiplies by. */
BCAST_INLINE void bcast_divide(ptrdiff_t n, char *const *data, const ptrdiff_t *steps, ptrdiff_t numpys_loop)
{
    const bcast_numpys *numpys = (const bcast_numpys *) numpys_loop;
    if (numpys && steps[1] == 0) numpys->loop(numpys->context, data, &n, steps, numpys->auxdata);
    else bcast_divide_int64_t(n, data, steps, !numpys);
}
BCAST_LOOP(divide, (ptrdiff_t) auxdata)

/* Arithmetic row by row: of rows so short that calls of NumPy's loop take longer than their items, or beside one item
   for all, for which its loops of `maximum` and `minimum` are slow. An operand's items of a row lie side by side, or
   one stands for all; those of one operand at least lie side by side. Results may lie where an operand's items do, one
   for one. Integers wrap, whatever their sign; those of 16 bits C would multiply as ints, which do not. The functions
   are the first ones of half.h. */
typedef void (*bcast_row_loop)(
    ptrdiff_t rows, ptrdiff_t n, char *const *data, const ptrdiff_t *steps, const ptrdiff_t *row_steps);

#if defined(__GNUC__) && defined(__x86_64__)
/* Results lie where an operand's items do, one for one, or elsewhere: no item waits for another one. */
#ifdef __clang__
#define BCAST_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define BCAST_INDEPENDENT _Pragma("GCC ivdep")
#endif
#define BCAST_EACH_ROW(T, X, Y, result)                                                                             \
    for (; rows > 0; rows--, a += row_steps[0], b += row_steps[1], c += row_steps[2]) {                             \
        const T *p = (const T *) a, *q = (const T *) b, one_p = *p, one_q = *q;                                     \
        T *r = (T *) c;                                                                                             \
        (void) one_p, (void) one_q;                                                                                 \
        BCAST_INDEPENDENT for (ptrdiff_t i = 0; i < n; i++) { const T x = X, y = Y; r[i] = (T) (result); }          \
    }
#define BCAST_ROW_LOOP_ON(ON, T, name, result, tells_errors)                                                        \
    ON static void bcast_##name##_rows_##T(                                                                         \
        ptrdiff_t rows, ptrdiff_t n, char *const *data, const ptrdiff_t *steps, const ptrdiff_t *row_steps)         \
    {                                                                                                               \
        const char *a = data[0], *b = data[1];                                                                      \
        char *c = data[2];                                                                                          \
        if (!steps[0]) BCAST_EACH_ROW(T, one_p, q[i], result)                                                       \
        else if (!steps[1]) BCAST_EACH_ROW(T, p[i], one_q, result)                                                  \
        else BCAST_EACH_ROW(T, p[i], q[i], result)                                                                  \
        if (!tells_errors) feclearexcept(FE_ALL_EXCEPT);                                                            \
    }
#define BCAST_ROW_LOOP(...) BCAST_ROW_LOOP_ON(BCAST_ON_WIDE, __VA_ARGS__)
/* Products of bytes are not faster. Of two zeros, the second one is the larger and the smaller: as in NumPy's vector
   code, which tells no errors. */
#define BCAST_BYTE_ROW_LOOPS(F, T) F(T, add, x + y, 1) F(T, subtract, x - y, 1)
#define BCAST_ROW_LOOPS(F, T) BCAST_BYTE_ROW_LOOPS(F, T) F(T, multiply, x * y, 1)
#define BCAST_FLOAT_ROW_LOOPS(F, T) BCAST_ROW_LOOPS(F, T) F(T, divide, x / y, 1) \
    F(T, maximum, x > y || x != x ? x : y, 0) F(T, minimum, x < y || x != x ? x : y, 0)
#define BCAST_ROW_LOOP_NAME(T, name, ...) bcast_##name##_rows_##T,
BCAST_BYTE_ROW_LOOPS(BCAST_ROW_LOOP, uint8_t)
BCAST_ROW_LOOPS(BCAST_ROW_LOOP, uint32_t)
BCAST_ROW_LOOPS(BCAST_ROW_LOOP, uint64_t)
BCAST_FLOAT_ROW_LOOPS(BCAST_ROW_LOOP, float)
BCAST_FLOAT_ROW_LOOPS(BCAST_ROW_LOOP, double)
/* By AVX-512, quotients alone are faster: up to 1.9 times. */
BCAST_ROW_LOOP_ON(BCAST_ON_WIDER, float, wider_divide, x / y, 1)
BCAST_ROW_LOOP_ON(BCAST_ON_WIDER, double, wider_divide, x / y, 1)
static inline bcast_row_loop bcast_row_loop_for(int target, int is_float, int size, int function)
{
    static const bcast_row_loop loops[5][6] = {
        {BCAST_BYTE_ROW_LOOPS(BCAST_ROW_LOOP_NAME, uint8_t)}, {BCAST_ROW_LOOPS(BCAST_ROW_LOOP_NAME, uint32_t)},
        {BCAST_ROW_LOOPS(BCAST_ROW_LOOP_NAME, uint64_t)}, {BCAST_FLOAT_ROW_LOOPS(BCAST_ROW_LOOP_NAME, float)},
        {BCAST_FLOAT_ROW_LOOPS(BCAST_ROW_LOOP_NAME, double)}};
    if (target < BCAST_WIDE || size == 2 || size > 8) return NULL;
    if (target == BCAST_WIDE || !is_float || function != bcast_number_divide)
        return loops[size / 4 + 2 * is_float][function];
    return size == sizeof(float) ? bcast_wider_divide_rows_float : bcast_wider_divide_rows_double;
}
#else
#define bcast_row_loop_for(...) NULL
#endif

#endif
