/* Sums, differences, products and quotients of float32, one after the other, in registers.

   In: n items of float32, or of bytes that are converted; of each step its function, and its second operand: float32
   that lie side by side, or one for all. Out: the last results, or these rounded to float16. Each result is rounded, as
   those of single loops are: compilers must not contract them. */

#ifndef BCAST_FUSED_H
#define BCAST_FUSED_H

#include <fenv.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../_runtime/cpu.h"
#include "../_runtime/target.h"
#include "casts.h"

enum { bcast_fused_add, bcast_fused_subtract, bcast_fused_multiply, bcast_fused_divide };

#ifdef __GNUC__
typedef float bcast_floats __attribute__((vector_size(32), aligned(4), may_alias));
typedef float bcast_aligned_floats __attribute__((vector_size(32)));
typedef uint32_t bcast_masks __attribute__((vector_size(32)));

/* Eight bytes as float32, for which compilers make slow code of conversions of vectors; eight results as float16, of
   which casts.h says what `rare` notes. */
BCAST_INLINE void bcast_plain_values(const uint8_t *x, bcast_aligned_floats *y)
{
    for (int i = 0; i < 8; i++) (*y)[i] = x[i];
}
#ifdef __x86_64__
#define BCAST_ON_FUSED BCAST_TARGET("avx2,f16c")
BCAST_ON_FUSED BCAST_INLINE void bcast_wide_values(const uint8_t *x, bcast_aligned_floats *y)
{
    *y = (bcast_aligned_floats) _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *) x)));
}
BCAST_ON_FUSED BCAST_INLINE void bcast_wide_halves(const bcast_aligned_floats *x, uint16_t *y, bcast_masks *rare)
{
    *rare |= (bcast_masks) (((bcast_masks) *x & 0x7ffff000) == 0x387ff000);
    _mm_storeu_si128((__m128i *) y, _mm256_cvtps_ph((__m256) *x, _MM_FROUND_TO_NEAREST_INT));
}
#define BCAST_FUSES_HALVES(target) ((target) >= BCAST_WIDE)
#else
#define BCAST_ON_FUSED
#define bcast_wide_values bcast_plain_values
#define bcast_wide_halves bcast_plain_halves
#define BCAST_FUSES_HALVES(target) ((void) (target), 0)
#endif
#define bcast_plain_halves(x, y, rare) ((void) (y))     /* never called */

/* What a step does with so many vectors. */
#define BCAST_FUSED_CASE(name, op, count)                                                                           \
    case 2 * bcast_fused_##name:                                                                                    \
        for (int j = 0; j < count; j++) x[j] = x[j] op one;                                                         \
        break;                                                                                                      \
    case 2 * bcast_fused_##name + 1:                                                                                \
        for (int j = 0; j < count; j++) x[j] = x[j] op ((const bcast_floats *) y)[j];                               \
        break;
#define BCAST_FUSED_TILE(target, count)                                                                             \
    for (; at + 8 * count <= n; at += 8 * count) {                                                                  \
        bcast_aligned_floats x[count];                                                                              \
        for (int j = 0; j < count; j++)                                                                             \
            if (bytes) bcast_##target##_values((const uint8_t *) src + at + 8 * j, x + j);                          \
            else x[j] = ((const bcast_floats *) ((const float *) src + at))[j];                                     \
        for (int s = 0; s < steps; s++) {                                                                           \
            const float *y = operands[s] + (strides[s] ? at : 0);                                                   \
            const bcast_aligned_floats one = *y - (bcast_aligned_floats) {0};                                       \
            switch (2 * functions[s] + (strides[s] != 0)) {                                                         \
            BCAST_FUSED_CASE(add, +, count)                                                                         \
            BCAST_FUSED_CASE(subtract, -, count)                                                                    \
            BCAST_FUSED_CASE(multiply, *, count)                                                                    \
            BCAST_FUSED_CASE(divide, /, count)                                                                      \
            }                                                                                                       \
        }                                                                                                           \
        for (int j = 0; j < count; j++)                                                                             \
            if (halves) bcast_##target##_halves(x + j, (uint16_t *) dst + at + 8 * j, &rare);                       \
            else ((bcast_floats *) ((float *) dst + at))[j] = x[j];                                                 \
    }
#define BCAST_FUSED_LOOP(target, ON)                                                                                \
    ON static void bcast_fused_##target(                                                                            \
        ptrdiff_t n, int bytes, int halves, const void *src, int steps, const uint8_t *functions,                   \
        char *const *all_operands, const ptrdiff_t *strides, void *dst)                                             \
    {                                                                                                               \
        const float *const *operands = (const float *const *) all_operands;                                         \
        bcast_masks rare = {0};                                                                                     \
        uint32_t is_rare = 0;                                                                                       \
        ptrdiff_t at = 0;                                                                                           \
        BCAST_FUSED_TILE(target, 8)                                                                                 \
        BCAST_FUSED_TILE(target, 1)                                                                                 \
        for (; at < n; at++) {                                                                                      \
            float x = bytes ? ((const uint8_t *) src)[at] : ((const float *) src)[at];                              \
            for (int s = 0; s < steps; s++) {                                                                       \
                const float y = operands[s][strides[s] ? at : 0];                                                   \
                const int function = functions[s];                                                                  \
                if (function == bcast_fused_add) x += y;                                                            \
                else if (function == bcast_fused_subtract) x -= y;                                                  \
                else if (function == bcast_fused_multiply) x *= y;                                                  \
                else x /= y;                                                                                        \
            }                                                                                                       \
            if (halves) ((uint16_t *) dst)[at] = bcast_half_of(x, &is_rare);                                        \
            else ((float *) dst)[at] = x;                                                                           \
        }                                                                                                           \
        for (int j = 0; j < 8; j++) is_rare |= rare[j];                                                             \
        if (is_rare) feraiseexcept(FE_UNDERFLOW);       /* or overflow: single steps tell which */                  \
    }
BCAST_FUSED_LOOP(plain, )
BCAST_FUSED_LOOP(wide, BCAST_ON_FUSED)
static inline void bcast_fused(
    int target, ptrdiff_t n, int bytes, int halves, const void *src, int steps, const uint8_t *functions,
    char *const *operands, const ptrdiff_t *strides, void *dst)
{
    (target >= BCAST_WIDE ? bcast_fused_wide : bcast_fused_plain)(
        n, bytes, halves, src, steps, functions, operands, strides, dst);
}
enum { BCAST_FUSES = 1 };
#else
enum { BCAST_FUSES = 0 };
#define BCAST_FUSES_HALVES(target) ((void) (target), 0)
#define bcast_fused(...) ((void) 0)
#endif

#endif
