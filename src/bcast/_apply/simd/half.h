/* Loops for float16 and bfloat16: converted to float32 eight at a time, computed, and rounded once. The bits are those
   of NumPy's and of ml_dtypes' loops, which do the same item by item, and so are the floating-point errors.

   Items lie side by side, or one stands for all. */

#ifndef BCAST_HALF_H
#define BCAST_HALF_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../../_runtime/cpu.h"
#include "../../_runtime/target.h"
#include "../loops.h"

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>

#define ON_HALVES BCAST_TARGET("avx2,f16c")

ON_HALVES BCAST_INLINE __m256 bcast_f16_values(__m128i x) { return _mm256_cvtph_ps(x); }
ON_HALVES BCAST_INLINE __m256 bcast_bf16_values(__m128i x)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(x), 16));
}

/* The lower halves of eight items of 32 bits, none of which is more than they hold. */
ON_HALVES BCAST_INLINE __m128i bcast_narrow(__m256i x)
{
    return _mm256_castsi256_si128(_mm256_permute4x64_epi64(_mm256_packus_epi32(x, x), 0x08));
}

/* Rounded to float16, and whether that is inexact below the least normal number: NumPy's underflow, of which the CPU's
   is a part. */
ON_HALVES BCAST_INLINE __m128i bcast_f16_rounded(__m256 x, __m256 *rare)
{
    const __m128i half = _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT);
    const __m256 size = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x);
    const __m256 tiny = _mm256_cmp_ps(size, _mm256_set1_ps(0x1p-14f), _CMP_LT_OQ);
    if (_mm256_movemask_ps(tiny))
        *rare = _mm256_or_ps(*rare, _mm256_and_ps(tiny, _mm256_cmp_ps(_mm256_cvtph_ps(half), x, _CMP_NEQ_OQ)));
    return half;
}

/* Rounded to bfloat16, ties to even; each NaN becomes that of its sign without a payload. */
ON_HALVES BCAST_INLINE __m128i bcast_bf16_rounded(__m256 x, __m256 *rare)
{
    const __m256i bits = _mm256_castps_si256(x), top = _mm256_srli_epi32(bits, 16);
    const __m256i odd = _mm256_and_si256(top, _mm256_set1_epi32(1));
    const __m256i sum = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    const __m256i nan = _mm256_or_si256(_mm256_and_si256(top, _mm256_set1_epi32(0x8000)), _mm256_set1_epi32(0x7fc0));
    const __m256 is_nan = _mm256_cmp_ps(x, x, _CMP_UNORD_Q);
    (void) rare;
    return bcast_narrow(_mm256_castps_si256(_mm256_blendv_ps(
        _mm256_castsi256_ps(_mm256_srli_epi32(sum, 16)), _mm256_castsi256_ps(nan), is_nan)));
}

/* What eight items of each operand give. */
#define BCAST_ARITHMETIC(kind, how)                                                                                 \
    _mm_storeu_si128((__m128i *) to, bcast_##kind##_rounded(how(a, b), &rare))
/* a if it is a NaN, or if the comparison says so; else b. ml_dtypes compares where a is a number, for which a NaN is
   not valid. */
#define BCAST_EXTREME(kind, how)                                                                                    \
    _mm_storeu_si128((__m128i *) to, _mm_blendv_epi8(y, x, bcast_mask16(_mm256_or_ps(                               \
        _mm256_cmp_ps(a, b, how), _mm256_cmp_ps(a, a, _CMP_UNORD_Q)))));                                            \
    rare = _mm256_or_ps(rare, _mm256_and_ps(                                                                        \
        _mm256_cmp_ps(a, a, _CMP_ORD_Q), _mm256_cmp_ps(b, b, _CMP_UNORD_Q)))
#define BCAST_COMPARISON(kind, how)                                                                                 \
    _mm_storel_epi64((__m128i *) to, _mm_and_si128(_mm_set1_epi8(1), _mm_packs_epi16(                               \
        bcast_mask16(_mm256_cmp_ps(a, b, how)), _mm_setzero_si128())))

ON_HALVES BCAST_INLINE __m128i bcast_mask16(__m256 mask)
{
    const __m256i bits = _mm256_castps_si256(mask);
    return _mm_packs_epi32(_mm256_castsi256_si128(bits), _mm256_extracti128_si256(bits, 1));
}

/* Loops that compare float16 never see a floating-point error, but conversions here may, of a signalling NaN: the
   errors are those before the loop and, where some `rare` mask is set, one more. */
#define BCAST_HALF_LOOP(kind, name, WHAT, how, out_size, quiet, error)                                              \
    ON_HALVES static int bcast_##kind##_##name(                                                                     \
        void *context, char *const *data, const ptrdiff_t *dims, const ptrdiff_t *steps, void *unused)              \
    {                                                                                                               \
        unsigned state = quiet ? _mm_getcsr() : 0;                                                                  \
        const ptrdiff_t p_mask = steps[0] ? -1 : 0, q_mask = steps[1] ? -1 : 0;                                     \
        const uint16_t *p = (const uint16_t *) data[0], *q = (const uint16_t *) data[1];                            \
        ptrdiff_t i = 0, n = dims[0], left = 0;                                                                     \
        uint16_t rest[2][8];    /* one item for all, or the last ones, and ones */                                  \
        char results[16], *to = data[2], *end = NULL;                                                               \
        __m256 rare = _mm256_setzero_ps();                                                                          \
        (void) context, (void) unused;                                                                              \
        for (int j = 0; j < 8; j++) rest[0][j] = *p, rest[1][j] = *q;                                               \
        p = p_mask ? p : rest[0], q = q_mask ? q : rest[1];                                                         \
    again:                                                                                                          \
        for (; i <= n - 8; i += 8, to += 8 * out_size) {                                                            \
            const __m128i x = _mm_loadu_si128((const __m128i *) (p + (i & p_mask)));                                \
            const __m128i y = _mm_loadu_si128((const __m128i *) (q + (i & q_mask)));                                \
            const __m256 a = bcast_##kind##_values(x), b = bcast_##kind##_values(y);                                \
            WHAT(kind, how);                                                                                        \
        }                                                                                                           \
        if (i < n) {                                                                                                \
            for (int j = 0; j < 8; j++) {                                                                           \
                rest[0][j] = i + j < n ? p[(i & p_mask) + j] : bcast_##kind##_one;                                  \
                rest[1][j] = i + j < n ? q[(i & q_mask) + j] : bcast_##kind##_one;                                  \
            }                                                                                                       \
            left = n - i, i = 0, n = 8, p = rest[0], q = rest[1], end = to, to = results;                           \
            goto again;                                                                                             \
        }                                                                                                           \
        if (end != NULL) memcpy(end, results, left * out_size);                                                     \
        state = (quiet ? state : _mm_getcsr()) | (_mm256_movemask_ps(rare) ? error : 0);                            \
        if (state != _mm_getcsr()) _mm_setcsr(state);   /* slower than a look */                                \
        return 0;                                                                                                   \
    }
enum { bcast_f16_one = 0x3c00, bcast_bf16_one = 0x3f80 };

/* The functions, in an order that `probe` knows, as F(kind, name, ...): a loop, or its name in a table. */
#define BCAST_HALF_FUNCTIONS(F, kind, underflow, GREATER, LESS, quiet, invalid, SIGNAL)                             \
    F(kind, add, BCAST_ARITHMETIC, _mm256_add_ps, 2, 0, underflow)                                                  \
    F(kind, subtract, BCAST_ARITHMETIC, _mm256_sub_ps, 2, 0, underflow)                                             \
    F(kind, multiply, BCAST_ARITHMETIC, _mm256_mul_ps, 2, 0, underflow)                                             \
    F(kind, divide, BCAST_ARITHMETIC, _mm256_div_ps, 2, 0, underflow)                                               \
    F(kind, maximum, BCAST_EXTREME, GREATER, 2, 1, invalid)                                                         \
    F(kind, minimum, BCAST_EXTREME, LESS, 2, 1, invalid)                                                            \
    F(kind, equal, BCAST_COMPARISON, _CMP_EQ_OQ, 1, quiet, 0)                                                       \
    F(kind, not_equal, BCAST_COMPARISON, _CMP_NEQ_UQ, 1, quiet, 0)                                                  \
    F(kind, less, BCAST_COMPARISON, _CMP_LT_O##SIGNAL, 1, quiet, 0)                                                 \
    F(kind, less_equal, BCAST_COMPARISON, _CMP_LE_O##SIGNAL, 1, quiet, 0)                                           \
    F(kind, greater, BCAST_COMPARISON, _CMP_GT_O##SIGNAL, 1, quiet, 0)                                              \
    F(kind, greater_equal, BCAST_COMPARISON, _CMP_GE_O##SIGNAL, 1, quiet, 0)
#define BCAST_F16(F) BCAST_HALF_FUNCTIONS(F, f16, _MM_EXCEPT_UNDERFLOW, _CMP_GE_OQ, _CMP_LE_OQ, 1, 0, Q)
#define BCAST_BF16(F) BCAST_HALF_FUNCTIONS(F, bf16, 0, _CMP_GT_OQ, _CMP_LT_OQ, 0, _MM_EXCEPT_INVALID, S)
BCAST_F16(BCAST_HALF_LOOP)
BCAST_BF16(BCAST_HALF_LOOP)
#define BCAST_HALF_NAME(kind, name, ...) bcast_##kind##_##name,
static const bcast_loop bcast_half_loops[2][12] = {{BCAST_F16(BCAST_HALF_NAME)}, {BCAST_BF16(BCAST_HALF_NAME)}};
#define BCAST_HALF_LOOP_FOR(target, is_bfloat, function) \
    ((target) >= BCAST_WIDE ? bcast_half_loops[is_bfloat][function] : NULL)
#else
#define BCAST_HALF_LOOP_FOR(target, is_bfloat, function) ((void) (target), (void) (function), (bcast_loop) 0)
#endif

#endif
