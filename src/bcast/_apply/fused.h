/* Arithmetic of float32, bounds and rounding to whole numbers, one step after the other, in registers.

   In: n items of float32, or of bytes that are converted; of each step its function, and its second operand: float32
   that lie side by side, or one for all. Out: the last results; or these rounded to float16, or as bytes. Each result is
   rounded, as those of single loops are: compilers must not contract them. */

#ifndef BCAST_FUSED_H
#define BCAST_FUSED_H

#include <fenv.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "../_runtime/cpu.h"
#include "../_runtime/target.h"
#include "casts.h"
#include "functions.h"
#include "saturate.h"

/* Of the bounds, at least is y where x < y, at most is y where x > y; and else x, whatever NaN and signs of zeros there
   are. So NumPy cuts by one bound for all. */
enum { bcast_into_floats, bcast_into_halves, bcast_into_bytes, bcast_into_cut_bytes };
typedef struct {
    ptrdiff_t n;
    int bytes;                  /* whether bytes come in */
    int into;                   /* what goes out */
    int steps;
    const uint8_t *functions;   /* by their numbers */
    const float *const *operands;
    const ptrdiff_t *strides;   /* 0 where an operand is one for all */
    const void *src;
    void *dst;
} bcast_fusion;

#ifdef __GNUC__
typedef float bcast_plain_vector __attribute__((vector_size(16)));
typedef float bcast_wide_vector __attribute__((vector_size(32)));
typedef float bcast_wider_vector __attribute__((vector_size(64)));

/* Bytes as float32, for which compilers make slow code of conversions of vectors; results as float16, of which casts.h
   says what `rare` notes. */
BCAST_INLINE void bcast_plain_values(const uint8_t *x, bcast_plain_vector *y)
{
#if BCAST_HAS_FP16
    uint32_t bytes;
    memcpy(&bytes, x, sizeof bytes);
    const uint16x8_t widened = vmovl_u8(vcreate_u8(bytes));
    *y = (bcast_plain_vector) vcvtq_f32_u32(vmovl_u16(vget_low_u16(widened)));
#else
    *y = (bcast_plain_vector) {x[0], x[1], x[2], x[3]};
#endif
}
BCAST_INLINE void bcast_plain_halves(const bcast_plain_vector *x, uint16_t *y, uint32_t *rare)
{
    (void) rare;
#if BCAST_HAS_FP16
    vst1_u16(y, vreinterpret_u16_f16(vcvt_f16_f32((float32x4_t) *x)));
#else
    (void) x, (void) y;     /* never called */
#endif
}
#define NAME plain
#define ON
#define BYTES 16
#define HAS_MORE 0
#include "fused.inc.h"

#ifdef __x86_64__
#define BCAST_ON_FUSED BCAST_TARGET("avx2,f16c")
BCAST_ON_FUSED BCAST_INLINE void bcast_wide_values(const uint8_t *x, bcast_wide_vector *y)
{
    *y = (bcast_wide_vector) _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *) x)));
}
BCAST_ON_FUSED BCAST_INLINE void bcast_wide_halves(const bcast_wide_vector *x, uint16_t *y, uint32_t *rare)
{
    const __m256i bits = _mm256_and_si256(_mm256_castps_si256((__m256) *x), _mm256_set1_epi32(0x7ffff000));
    *rare |= _mm256_movemask_epi8(_mm256_cmpeq_epi32(bits, _mm256_set1_epi32(0x387ff000)));
    _mm_storeu_si128((__m128i *) y, _mm256_cvtps_ph((__m256) *x, _MM_FROUND_TO_NEAREST_INT));
}
/* As NumPy's loops for `maximum` and `minimum` have it: x if it is NaN, and of two zeros y. Comparisons are quiet. */
#define BCAST_WIDE_CHOICE(name, CHOOSES_Y)                                                                          \
    BCAST_ON_FUSED BCAST_INLINE bcast_wide_vector bcast_wide_##name(bcast_wide_vector x_given, bcast_wide_vector y_given) \
    {                                                                                                               \
        const __m256 x = (__m256) x_given, y = (__m256) y_given;                                                    \
        return (bcast_wide_vector) _mm256_blendv_ps(x, y, CHOOSES_Y);                                               \
    }
BCAST_WIDE_CHOICE(
    maximum, _mm256_andnot_ps(_mm256_cmp_ps(x, y, _CMP_GT_OQ), _mm256_cmp_ps(x, x, _CMP_ORD_Q)))
BCAST_WIDE_CHOICE(
    minimum, _mm256_andnot_ps(_mm256_cmp_ps(x, y, _CMP_LT_OQ), _mm256_cmp_ps(x, x, _CMP_ORD_Q)))
BCAST_WIDE_CHOICE(at_least, _mm256_cmp_ps(x, y, _CMP_LT_OQ))
BCAST_WIDE_CHOICE(at_most, _mm256_cmp_ps(x, y, _CMP_GT_OQ))
BCAST_ON_FUSED BCAST_INLINE bcast_wide_vector bcast_wide_rint(bcast_wide_vector x)
{
    return (bcast_wide_vector) _mm256_round_ps((__m256) x, _MM_FROUND_TO_NEAREST_INT);
}
/* As bytes: the last bits of whole numbers, as C has it; or rounded and cut, where NaN becomes 0. */
BCAST_ON_FUSED BCAST_INLINE __m256i bcast_wide_whole(bcast_wide_vector given, int cut)
{
    __m256 x = (__m256) given;
    if (!cut) return _mm256_and_si256(_mm256_cvttps_epi32(x), _mm256_set1_epi32(0xff));
    x = _mm256_and_ps(x, _mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_GT_OQ));
    return _mm256_cvtps_epi32(_mm256_min_ps(x, _mm256_set1_ps(255)));
}
BCAST_ON_FUSED BCAST_INLINE void bcast_wide_bytes(int count, const bcast_wide_vector *x, uint8_t *y, int cut)
{
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    int j = 0;
    for (; j + 4 <= count; j += 4) {
        const __m256i a = _mm256_packus_epi32(bcast_wide_whole(x[j], cut), bcast_wide_whole(x[j + 1], cut));
        const __m256i b = _mm256_packus_epi32(bcast_wide_whole(x[j + 2], cut), bcast_wide_whole(x[j + 3], cut));
        const __m256i bytes = _mm256_permutevar8x32_epi32(_mm256_packus_epi16(a, b), order);
        _mm256_storeu_si256((__m256i *) (y + 8 * j), bytes);
    }
    for (; j < count; j++) {
        const __m256i a = bcast_wide_whole(x[j], cut);
        const __m128i b = _mm_packus_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
        _mm_storel_epi64((__m128i *) (y + 8 * j), _mm_packus_epi16(b, b));
    }
}
#define NAME wide
#define ON BCAST_ON_FUSED
#define BYTES 32
#define HAS_MORE 1
#include "fused.inc.h"

BCAST_ON_WIDER BCAST_INLINE void bcast_wider_values(const uint8_t *x, bcast_wider_vector *y)
{
    *y = (bcast_wider_vector) _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *) x)));
}
BCAST_ON_WIDER BCAST_INLINE void bcast_wider_halves(const bcast_wider_vector *x, uint16_t *y, uint32_t *rare)
{
    const __m512i bits = _mm512_and_si512(_mm512_castps_si512((__m512) *x), _mm512_set1_epi32(0x7ffff000));
    *rare |= _mm512_cmpeq_epi32_mask(bits, _mm512_set1_epi32(0x387ff000));
    _mm256_storeu_si256((__m256i *) y, _mm512_cvtps_ph((__m512) *x, _MM_FROUND_TO_NEAREST_INT));
}
#define BCAST_WIDER_CHOICE(name, CHOOSES_Y)                                                                         \
    BCAST_ON_WIDER BCAST_INLINE bcast_wider_vector bcast_wider_##name(                                              \
        bcast_wider_vector x_given, bcast_wider_vector y_given)                                                     \
    {                                                                                                               \
        const __m512 x = (__m512) x_given, y = (__m512) y_given;                                                    \
        return (bcast_wider_vector) _mm512_mask_mov_ps(x, CHOOSES_Y, y);                                            \
    }
BCAST_WIDER_CHOICE(
    maximum, _mm512_cmp_ps_mask(x, x, _CMP_ORD_Q) & ~_mm512_cmp_ps_mask(x, y, _CMP_GT_OQ))
BCAST_WIDER_CHOICE(
    minimum, _mm512_cmp_ps_mask(x, x, _CMP_ORD_Q) & ~_mm512_cmp_ps_mask(x, y, _CMP_LT_OQ))
BCAST_WIDER_CHOICE(at_least, _mm512_cmp_ps_mask(x, y, _CMP_LT_OQ))
BCAST_WIDER_CHOICE(at_most, _mm512_cmp_ps_mask(x, y, _CMP_GT_OQ))
BCAST_ON_WIDER BCAST_INLINE bcast_wider_vector bcast_wider_rint(bcast_wider_vector x)
{
    return (bcast_wider_vector) _mm512_roundscale_ps((__m512) x, _MM_FROUND_TO_NEAREST_INT);
}
BCAST_ON_WIDER BCAST_INLINE void bcast_wider_bytes(int count, const bcast_wider_vector *given, uint8_t *y, int cut)
{
    for (int j = 0; j < count; j++) {
        __m512 x = (__m512) given[j];
        __m512i whole = _mm512_cvttps_epi32(x);
        if (cut) {
            x = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_GT_OQ), x);
            whole = _mm512_cvtps_epi32(_mm512_min_ps(x, _mm512_set1_ps(255)));
        }
        _mm_storeu_si128((__m128i *) (y + 16 * j), _mm512_cvtepi32_epi8(whole));
    }
}
#define NAME wider
#define ON BCAST_ON_WIDER
#define BYTES 64
#define HAS_MORE 1
#include "fused.inc.h"
#define BCAST_FUSES_HALVES(target) ((target) >= BCAST_WIDE)
#define BCAST_FUSES_MORE(target) ((target) >= BCAST_WIDE)       /* bounds, rounding and bytes as results */
#else
#define BCAST_FUSES_HALVES(target) ((void) (target), BCAST_HAS_FP16)
#define BCAST_FUSES_MORE(target) ((void) (target), 0)
#define bcast_wide_fused bcast_plain_fused
#define bcast_wider_fused bcast_plain_fused
#endif

static inline float bcast_fused_result(int function, float x, float y)
{
    switch (function) {
    case bcast_number_add: return x + y;
    case bcast_number_subtract: return x - y;
    case bcast_number_multiply: return x * y;
    case bcast_number_divide: return x / y;
    case bcast_number_maximum: return isgreater(x, y) || x != x ? x : y;
    case bcast_number_minimum: return isless(x, y) || x != x ? x : y;
    case bcast_number_rint: return rintf(x);
    case bcast_number_at_least: return isless(x, y) ? y : x;
    default: return isgreater(x, y) ? y : x;
    }
}
static inline void bcast_fuse(int target, const bcast_fusion *all)
{
    uintptr_t places = all->bytes ? 0 : (uintptr_t) all->src;
    uint32_t rare = 0;
    for (int s = 0; s < all->steps; s++) places |= all->strides[s] ? (uintptr_t) all->operands[s] : 0;
    /* Loads of whole lines that cross these are slower than those of halves. */
    ptrdiff_t at = target > BCAST_WIDE && places % BCAST_LINE == 0 ? bcast_wider_fused(0, all, &rare) : 0;
    at = (target >= BCAST_WIDE ? bcast_wide_fused : bcast_plain_fused)(at, all, &rare);
    for (; at < all->n; at++) {
        float x = all->bytes ? ((const uint8_t *) all->src)[at] : ((const float *) all->src)[at];
        for (int s = 0; s < all->steps; s++)
            x = bcast_fused_result(all->functions[s], x, all->operands[s][all->strides[s] ? at : 0]);
        if (all->into == bcast_into_floats) ((float *) all->dst)[at] = x;
        else if (all->into == bcast_into_halves) bcast_round_to_f2(1, &x, (uint16_t *) all->dst + at);
        else if (all->into == bcast_into_bytes) bcast_plain_f4_as_u1(1, &x, (uint8_t *) all->dst + at);
        else bcast_plain_f4_cut_to_u1(1, &x, (uint8_t *) all->dst + at);
    }
    if (rare) feraiseexcept(FE_UNDERFLOW);      /* or overflow: single steps tell which */
}
enum { BCAST_FUSES = 1 };
#else
enum { BCAST_FUSES = 0 };
#define BCAST_FUSES_HALVES(target) ((void) (target), 0)
#define BCAST_FUSES_MORE(target) ((void) (target), 0)
#define bcast_fuse(...) ((void) 0)
#endif

#endif
