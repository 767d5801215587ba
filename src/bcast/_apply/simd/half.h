/* Loops for float16 and bfloat16: converted to float32 a vector at a time, computed, and rounded once. The bits are
   those of NumPy's and of ml_dtypes' loops, which do the same item by item, and so are the floating-point errors.

   Items lie side by side, or one stands for all. All is written once, for vectors of T bits: of AVX2 or AVX-512, or two
   of NEON's. First come the words for what differs, for each T. */

#ifndef BCAST_HALF_H
#define BCAST_HALF_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../../_runtime/cpu.h"
#include "../../_runtime/floats.h"
#include "../../_runtime/target.h"
#include "../loops.h"

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#define BCAST_HAS_HALF_LOOPS 1

/* What differs in more than the number: half a vector, what comparisons give, and the words for it. Bools are the first
   bytes of half a vector. */
typedef __m256 bcast_floats_256;
typedef __m128i bcast_halves_256;
#define ON_256 BCAST_TARGET("avx2,f16c")
#define ARITHMETIC_256(how, x, y) _mm256_##how##_ps(x, y)
#define COMPARE_256(how, x, y) _mm256_cmp_ps(x, y, _CMP_##how)
#define IN_256 _mm256_and_ps
#define BOTH_256 _mm256_and_ps
#define BOOLS_256(mask) _mm_and_si128(_mm_set1_epi8(1), _mm_packs_epi16(MASK_16(mask), _mm_setzero_si128()))
#define MASK_16(mask) _mm_packs_epi32( \
    _mm_castps_si128(_mm256_castps256_ps128(mask)), _mm_castps_si128(_mm256_extractf128_ps(mask, 1)))
#define CHOOSE_256(mask, x, y) _mm_blendv_epi8(y, x, MASK_16(mask))
#define CHOOSE_BITS_256(mask, x, y) _mm256_blendv_epi8(y, x, _mm256_castps_si256(mask))
#define NARROW_256(x) _mm256_castsi256_si128(_mm256_permute4x64_epi64(_mm256_packus_epi32(x, x), 0x08))
#define HAS_ZERO_256(x) _mm256_movemask_epi8(_mm256_cmpeq_epi32(x, _mm256_setzero_si256()))
typedef __m512 bcast_floats_512;
typedef __m256i bcast_halves_512;
#define ON_512 BCAST_ON_WIDER
#define ARITHMETIC_512(how, x, y) _mm512_##how##_ps(x, y)
#define COMPARE_512(how, x, y) _mm512_cmp_ps_mask(x, y, _CMP_##how)
#define IN_512 _mm512_maskz_mov_ps
#define BOTH_512(x, y) ((x) & (y))
#define BOOLS_512(mask) _mm256_castsi128_si256(_mm_maskz_set1_epi8(mask, 1))
#define CHOOSE_512(mask, x, y) _mm256_mask_blend_epi16(mask, y, x)
#define CHOOSE_BITS_512(mask, x, y) _mm512_mask_blend_epi32(mask, y, x)
#define NARROW_512 _mm512_cvtepi32_epi16
#define HAS_ZERO_512(x) _mm512_testn_epi32_mask(x, x)

/* Conversions. NumPy signals underflow for what is tiny before it is rounded to float16, the CPU for what is so after
   that. They differ in what becomes the least normal number: then `seen` gets a 0. Rounded to bfloat16, ties to even,
   each NaN becomes that of its sign without a payload. */
typedef __m256i bcast_seen_256;
typedef __m512i bcast_seen_512;
#define NOTHING_SEEN_256 _mm256_set1_epi32(-1)
#define NOTHING_SEEN_512 _mm512_set1_epi32(-1)
#define f16_VALUES(T, x) _mm##T##_cvtph_ps(x)
#define bf16_VALUES(T, x) _mm##T##_castsi##T##_ps(_mm##T##_slli_epi32(_mm##T##_cvtepu16_epi32(x), 16))
#define BCAST_ROUNDINGS(T)                                                                                          \
    ON_##T BCAST_INLINE bcast_halves_##T bcast_f16_rounded_##T(__m##T x, __m##T##i *seen)                           \
    {                                                                                                               \
        const __m##T##i most = _mm##T##_set1_epi32(0x7ffff000), rare = _mm##T##_set1_epi32(0x387ff000);             \
        const __m##T##i bits = _mm##T##_and_si##T(_mm##T##_castps_si##T(x), most);                                  \
        *seen = _mm##T##_min_epu32(*seen, _mm##T##_xor_si##T(bits, rare));                                          \
        return _mm##T##_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT);                                                     \
    }                                                                                                               \
    ON_##T BCAST_INLINE bcast_halves_##T bcast_bf16_rounded_##T(__m##T x, __m##T##i *unused)                        \
    {                                                                                                               \
        const __m##T##i bits = _mm##T##_castps_si##T(x), top = _mm##T##_srli_epi32(bits, 16);                       \
        const __m##T##i odd = _mm##T##_and_si##T(top, _mm##T##_set1_epi32(1));                                      \
        const __m##T##i sum = _mm##T##_add_epi32(_mm##T##_add_epi32(bits, odd), _mm##T##_set1_epi32(0x7fff));       \
        const __m##T##i sign = _mm##T##_and_si##T(top, _mm##T##_set1_epi32(0x8000));                                \
        const __m##T##i nan = _mm##T##_or_si##T(sign, _mm##T##_set1_epi32(0x7fc0));                                 \
        (void) unused;                                                                                              \
        return NARROW_##T(                                                                                          \
            CHOOSE_BITS_##T(COMPARE_##T(UNORD_Q, x, x), nan, _mm##T##_srli_epi32(sum, 16)));                   \
    }
BCAST_ROUNDINGS(256)
BCAST_ROUNDINGS(512)

/* Floating-point errors that were told so far. */
#define BCAST_ERRORS() _mm_getcsr()
#define BCAST_TELL_ERRORS(errors) _mm_setcsr((unsigned) (errors))
#define BCAST_UNDERFLOW _MM_EXCEPT_UNDERFLOW
#elif BCAST_HAS_FP16
#include <arm_neon.h>
#define BCAST_HAS_HALF_LOOPS 1

/* Two vectors, which one of halves is. Loads and stores of these are as long as registers. */
typedef float32x4x2_t bcast_floats_256;
typedef uint32x4x2_t bcast_masks_256;
typedef uint16x8_t bcast_halves_256;
#define ON_256
#define BCAST_IN_TWOS(Result, name, Operand, function)                                                              \
    BCAST_INLINE Result bcast_##name##_256(Operand x, Operand y)                                                    \
    {                                                                                                               \
        const Result both = {{function(x.val[0], y.val[0]), function(x.val[1], y.val[1])}};                         \
        return both;                                                                                                \
    }
BCAST_IN_TWOS(bcast_floats_256, add, bcast_floats_256, vaddq_f32)
BCAST_IN_TWOS(bcast_floats_256, sub, bcast_floats_256, vsubq_f32)
BCAST_IN_TWOS(bcast_floats_256, mul, bcast_floats_256, vmulq_f32)
BCAST_IN_TWOS(bcast_floats_256, div, bcast_floats_256, vdivq_f32)
#define ARITHMETIC_256(how, x, y) bcast_##how##_256(x, y)

/* Comparisons, by the names that x86-64 has for them: NaN is valid to `==`, and to nothing else. So they are for loops
   that are quiet, or where a NaN is to be told. */
BCAST_IN_TWOS(bcast_masks_256, EQ_OQ, bcast_floats_256, vceqq_f32)
BCAST_IN_TWOS(bcast_masks_256, LT_OS, bcast_floats_256, vcltq_f32)
BCAST_IN_TWOS(bcast_masks_256, LE_OS, bcast_floats_256, vcleq_f32)
BCAST_IN_TWOS(bcast_masks_256, GT_OS, bcast_floats_256, vcgtq_f32)
BCAST_IN_TWOS(bcast_masks_256, GE_OS, bcast_floats_256, vcgeq_f32)
BCAST_IN_TWOS(bcast_masks_256, both, bcast_masks_256, vandq_u32)
BCAST_INLINE bcast_masks_256 bcast_not_256(bcast_masks_256 x)
{
    const bcast_masks_256 both = {{vmvnq_u32(x.val[0]), vmvnq_u32(x.val[1])}};
    return both;
}
#define COMPARE_256(how, x, y) bcast_##how##_256(x, y)
#define bcast_LT_OQ_256 bcast_LT_OS_256
#define bcast_LE_OQ_256 bcast_LE_OS_256
#define bcast_GT_OQ_256 bcast_GT_OS_256
#define bcast_GE_OQ_256 bcast_GE_OS_256
#define bcast_ORD_Q_256 bcast_EQ_OQ_256     /* of a vector and itself */
#define bcast_NEQ_UQ_256(x, y) bcast_not_256(bcast_EQ_OQ_256(x, y))
#define bcast_NGE_UQ_256(x, y) bcast_not_256(bcast_GE_OS_256(x, y))
#define bcast_NLE_UQ_256(x, y) bcast_not_256(bcast_LE_OS_256(x, y))
#define bcast_NGT_US_256(x, y) bcast_not_256(bcast_GT_OS_256(x, y))
#define bcast_NLT_US_256(x, y) bcast_not_256(bcast_LT_OS_256(x, y))
#define BOTH_256 bcast_both_256

BCAST_INLINE bcast_floats_256 bcast_in_256(bcast_masks_256 mask, bcast_floats_256 x)
{
    const bcast_masks_256 bits = {{vreinterpretq_u32_f32(x.val[0]), vreinterpretq_u32_f32(x.val[1])}};
    const bcast_masks_256 kept = bcast_both_256(mask, bits);
    const bcast_floats_256 both = {{vreinterpretq_f32_u32(kept.val[0]), vreinterpretq_f32_u32(kept.val[1])}};
    return both;
}
#define IN_256 bcast_in_256

/* The masks of halves; and what they choose. */
BCAST_INLINE uint16x8_t bcast_narrowed_256(bcast_masks_256 x)
{
    return vmovn_high_u32(vmovn_u32(x.val[0]), x.val[1]);
}
BCAST_INLINE uint16x8_t bcast_bools_256(bcast_masks_256 mask)
{
    const uint8x8_t bools = vand_u8(vmovn_u16(bcast_narrowed_256(mask)), vdup_n_u8(1));
    return vreinterpretq_u16_u8(vcombine_u8(bools, bools));
}
#define BOOLS_256 bcast_bools_256
#define CHOOSE_256(mask, x, y) vbslq_u16(bcast_narrowed_256(mask), x, y)

/* Conversions. The CPU signals underflow as NumPy does, so that nothing rare must be seen. */
typedef int bcast_seen_256;
#define NOTHING_SEEN_256 1
#define HAS_ZERO_256(seen) ((seen) == 0)
BCAST_INLINE bcast_floats_256 bcast_f16_values_256(uint16x8_t x)
{
    const float16x8_t halves = vreinterpretq_f16_u16(x);
    const bcast_floats_256 both = {{vcvt_f32_f16(vget_low_f16(halves)), vcvt_high_f32_f16(halves)}};
    return both;
}
BCAST_INLINE bcast_floats_256 bcast_bf16_values_256(uint16x8_t x)
{
    const uint32x4_t first = vshll_n_u16(vget_low_u16(x), 16), last = vshll_high_n_u16(x, 16);
    const bcast_floats_256 both = {{vreinterpretq_f32_u32(first), vreinterpretq_f32_u32(last)}};
    return both;
}
#define f16_VALUES(T, x) bcast_f16_values_##T(x)
#define bf16_VALUES(T, x) bcast_bf16_values_##T(x)

BCAST_INLINE uint16x8_t bcast_f16_rounded_256(bcast_floats_256 x, bcast_seen_256 *unused)
{
    (void) unused;
    return vreinterpretq_u16_f16(vcvt_high_f16_f32(vcvt_f16_f32(x.val[0]), x.val[1]));
}

/* Ties to even; each NaN becomes that of its sign without a payload. */
BCAST_INLINE uint32x4_t bcast_bf16_bits(float32x4_t x)
{
    const uint32x4_t bits = vreinterpretq_u32_f32(x), is_odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    const uint32x4_t rounded = vaddq_u32(vaddq_u32(bits, is_odd), vdupq_n_u32(0x7fff));
    const uint32x4_t nan = vbslq_u32(vdupq_n_u32(0x80000000), bits, vdupq_n_u32(0x7fc00000));
    return vbslq_u32(vceqq_f32(x, x), rounded, nan);
}
BCAST_INLINE uint16x8_t bcast_bf16_rounded_256(bcast_floats_256 x, bcast_seen_256 *unused)
{
    (void) unused;
    return vshrn_high_n_u32(vshrn_n_u32(bcast_bf16_bits(x.val[0]), 16), bcast_bf16_bits(x.val[1]), 16);
}

/* Floating-point errors that were told so far. */
BCAST_INLINE uint64_t bcast_errors(void)
{
    uint64_t errors;
    __asm__ volatile("mrs %0, fpsr" : "=r"(errors) : : "memory");
    return errors;
}
#define BCAST_ERRORS() bcast_errors()
#define BCAST_TELL_ERRORS(errors) __asm__ volatile("msr fpsr, %0" : : "r"((uint64_t) (errors)) : "memory")
#define BCAST_UNDERFLOW 0       /* which never needs to be told */
#else
#define BCAST_HAS_HALF_LOOPS 0
#endif

#if BCAST_HAS_HALF_LOOPS
/* What a vector of each operand gives. */
#define BCAST_ARITHMETIC(T, kind, how) bcast_##kind##_rounded_##T(ARITHMETIC_##T(how, a, b), &seen)
/* b if a is no NaN, and the comparison says so; else a. ml_dtypes compares where a is a number, for which a NaN is not
   valid. */
#define BCAST_ORDERED(T, x) (QUIET ? x : IN_##T(COMPARE_##T(ORD_Q, a, a), x))    /* 0 where a is none */
#define BCAST_EXTREME(T, kind, how) CHOOSE_##T(BOTH_##T(COMPARE_##T(ORD_Q, a, a), \
    COMPARE_##T(how, BCAST_ORDERED(T, a), BCAST_ORDERED(T, b))), y, x)
#define BCAST_COMPARISON(T, kind, how) BOOLS_##T(COMPARE_##T(how, a, b))

#define BCAST_HALF_STEP(T, kind, WHAT, how, p, q, to, bytes)                                                        \
    {                                                                                                               \
        bcast_halves_##T x, y, z;                                                                                   \
        memcpy(&x, p, sizeof x);                                                                                    \
        memcpy(&y, q, sizeof y);                                                                                    \
        const bcast_floats_##T a = kind##_VALUES(T, x), b = kind##_VALUES(T, y);                                    \
        z = WHAT(T, kind, how);                                                                                     \
        memcpy(to, &z, bytes);                                                                                      \
    }
/* Loops that are quiet never tell an error, but conversions in them may, of a signalling NaN. */
#define BCAST_HALF_LOOP(T, kind, name, WHAT, how, size, quiet)                                                      \
    ON_##T static int bcast_##kind##_##name##_##T(                                                                  \
        void *context, char *const *data, const ptrdiff_t *dims, const ptrdiff_t *steps, void *unused)              \
    {                                                                                                               \
        enum { LANES = T / 32, QUIET = quiet };                                                                     \
        const uint64_t before = BCAST_ERRORS();                                                                     \
        const ptrdiff_t left = dims[0] % LANES, p_step = steps[0] ? LANES : 0, q_step = steps[1] ? LANES : 0;       \
        const uint16_t *p = (const uint16_t *) data[0], *q = (const uint16_t *) data[1];                            \
        char *to = data[2], *const end = to + (dims[0] - left) * size;                                              \
        uint16_t same[2][LANES];    /* one item for all, or the last ones, and the first one */                     \
        bcast_seen_##T seen = NOTHING_SEEN_##T;                                                                     \
        (void) context, (void) unused;                                                                              \
        for (int j = 0; j < LANES; j++) same[0][j] = *p, same[1][j] = *q;                                           \
        p = p_step ? p : same[0], q = q_step ? q : same[1];                                                         \
        for (; to < end; p += p_step, q += q_step, to += LANES * size)                                              \
            BCAST_HALF_STEP(T, kind, WHAT, how, p, q, to, LANES * size)                                             \
        if (left) {                                                                                                 \
            if (p_step) memcpy(same[0], p, 2 * left);                                                               \
            if (q_step) memcpy(same[1], q, 2 * left);                                                               \
            BCAST_HALF_STEP(T, kind, WHAT, how, same[0], same[1], to, left * size)                                  \
        }                                                                                                           \
        const uint64_t after = BCAST_ERRORS(), underflow = HAS_ZERO_##T(seen) ? BCAST_UNDERFLOW : 0;                \
        const uint64_t state = QUIET ? before : after | underflow;                                                  \
        if (state != after) BCAST_TELL_ERRORS(state);   /* slower than a look */                                    \
        return 0;                                                                                                   \
    }

/* The functions, in the order of their numbers, as F(T, kind, name, ...): a loop, or its name in a table. */
#define BCAST_HALF_FUNCTIONS(F, T, kind, NOT_GREATER, NOT_LESS, quiet, SIGNAL)                                      \
    F(T, kind, add, BCAST_ARITHMETIC, add, 2, 0)                                                                    \
    F(T, kind, subtract, BCAST_ARITHMETIC, sub, 2, 0)                                                               \
    F(T, kind, multiply, BCAST_ARITHMETIC, mul, 2, 0)                                                               \
    F(T, kind, divide, BCAST_ARITHMETIC, div, 2, 0)                                                                 \
    F(T, kind, maximum, BCAST_EXTREME, NOT_GREATER, 2, quiet)                                                       \
    F(T, kind, minimum, BCAST_EXTREME, NOT_LESS, 2, quiet)                                                          \
    F(T, kind, equal, BCAST_COMPARISON, EQ_OQ, 1, quiet)                                                            \
    F(T, kind, not_equal, BCAST_COMPARISON, NEQ_UQ, 1, quiet)                                                       \
    F(T, kind, less, BCAST_COMPARISON, LT_O##SIGNAL, 1, quiet)                                                      \
    F(T, kind, less_equal, BCAST_COMPARISON, LE_O##SIGNAL, 1, quiet)                                                \
    F(T, kind, greater, BCAST_COMPARISON, GT_O##SIGNAL, 1, quiet)                                                   \
    F(T, kind, greater_equal, BCAST_COMPARISON, GE_O##SIGNAL, 1, quiet)
#define BCAST_F16(F, T) BCAST_HALF_FUNCTIONS(F, T, f16, NGE_UQ, NLE_UQ, 1, Q)
#define BCAST_BF16(F, T) BCAST_HALF_FUNCTIONS(F, T, bf16, NGT_US, NLT_US, 0, S)
#define BCAST_HALF_NAME(T, kind, name, ...) bcast_##kind##_##name##_##T,
#define BCAST_HALF_LOOPS(T) \
    BCAST_F16(BCAST_HALF_LOOP, T)                                                                                   \
    BCAST_BF16(BCAST_HALF_LOOP, T)                                                                                  \
    static const bcast_loop bcast_half_loops_##T[2][12] = {                                                         \
        {BCAST_F16(BCAST_HALF_NAME, T)}, {BCAST_BF16(BCAST_HALF_NAME, T)}};
BCAST_HALF_LOOPS(256)
#if BCAST_HAS_FP16
#define BCAST_HALF_LOOP_FOR(target, is_bfloat, function) \
    ((target) < BCAST_TARGET_neon ? NULL : bcast_half_loops_256[is_bfloat][function])
#else
BCAST_HALF_LOOPS(512)
#define BCAST_HALF_LOOP_FOR(target, is_bfloat, function) ((target) < BCAST_WIDE ? NULL : \
    ((target) == BCAST_WIDE ? bcast_half_loops_256 : bcast_half_loops_512)[is_bfloat][function])
#endif
#else
#define BCAST_HALF_LOOP_FOR(target, is_bfloat, function) ((void) (target), (void) (function), (bcast_loop) 0)
#endif

#endif
