/* Sums, differences, products and quotients of float32, one after the other, in registers.

   In: n items of float32, or of bytes that are converted; of each step its function, and its second operand: float32
   that lie side by side, or one for all. Out: the last results, or these rounded to float16. Each result is rounded, as
   those of single loops are: compilers must not contract them. */

#ifndef BCAST_FUSED_H
#define BCAST_FUSED_H

#include <fenv.h>
#include <stddef.h>
#include <stdint.h>

#include "../_runtime/cpu.h"
#include "../_runtime/target.h"
#include "casts.h"

enum { bcast_fused_add, bcast_fused_subtract, bcast_fused_multiply, bcast_fused_divide };
typedef struct {
    ptrdiff_t n;
    int bytes, halves, steps;   /* whether bytes come in, and float16 goes out */
    const uint8_t *functions;
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
#define NAME wide
#define ON BCAST_ON_FUSED
#define BYTES 32
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
#define NAME wider
#define ON BCAST_ON_WIDER
#define BYTES 64
#include "fused.inc.h"
#define BCAST_FUSES_HALVES(target) ((target) >= BCAST_WIDE)
#else
#define BCAST_FUSES_HALVES(target) ((void) (target), BCAST_HAS_FP16)
#define bcast_wide_fused bcast_plain_fused
#define bcast_wider_fused bcast_plain_fused
#endif

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
        for (int s = 0; s < all->steps; s++) {
            const float y = all->operands[s][all->strides[s] ? at : 0];
            const int function = all->functions[s];
            if (function == bcast_fused_add) x += y;
            else if (function == bcast_fused_subtract) x -= y;
            else if (function == bcast_fused_multiply) x *= y;
            else x /= y;
        }
        if (all->halves) bcast_round_to_f2(1, &x, (uint16_t *) all->dst + at);
        else ((float *) all->dst)[at] = x;
    }
    if (rare) feraiseexcept(FE_UNDERFLOW);      /* or overflow: single steps tell which */
}
enum { BCAST_FUSES = 1 };
#else
enum { BCAST_FUSES = 0 };
#define BCAST_FUSES_HALVES(target) ((void) (target), 0)
#define bcast_fuse(...) ((void) 0)
#endif

#endif
