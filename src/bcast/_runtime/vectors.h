/* Vectors of float32 and of floats of 16 bits, in C++: the same words in a namespace for each target.

   Floats              `lanes` float32
   Mask                for each of them, whether something holds
   Halves              as many floats of 16 bits, by their bits
   Rare                what was seen of numbers rounded to float16 that NumPy tells, and this CPU does not

   `floats.h` has the same for single items. Results have its bits, and its floating-point errors, but that a NaN which
   signals is told by some CPUs. */

#ifndef BCAST_VECTORS_H
#define BCAST_VECTORS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "floats.h"
#include "target.h"

#if defined(__x86_64__) || defined(_M_X64)
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"     /* of vectors that are so by intent */
#endif
#include <immintrin.h>
#elif BCAST_HAS_FP16
#include <arm_neon.h>
#endif

namespace bcast {
namespace {

/* Comparisons, by x86's numbers for them. A quiet one tells no error of a NaN, unless it signals; of the others, NaN is
   an error to all but `equal`, `not_equal` and `ordered`. What is `not_less` and the like holds of NaN, too. */
enum Comparison {
    equal = 0x00,
    less = 0x01,
    less_equal = 0x02,
    not_equal = 0x04,
    not_less = 0x05,
    ordered = 0x07,
    not_greater = 0x0a,
    greater_equal = 0x0d,
    greater = 0x0e,

    quiet_less = 0x11,
    quiet_less_equal = 0x12,
    quiet_not_less = 0x15,
    quiet_not_less_equal = 0x16,
    quiet_not_greater_equal = 0x19,
    quiet_not_greater = 0x1a,
    quiet_greater_equal = 0x1d,
    quiet_greater = 0x1e
};

#if defined(__GNUC__)
/* Compilers' own vectors, for any CPU: arithmetic alone. */
namespace plain {

constexpr int lanes = 4;
constexpr bool has_halves = false;
typedef float Floats __attribute__((vector_size(16)));
struct Rare {};

BCAST_INLINE Floats load(const float *at)
{
    Floats x;
    memcpy(&x, at, sizeof x);
    return x;
}

BCAST_INLINE void store(float *at, Floats x) { memcpy(at, &x, sizeof x); }
BCAST_INLINE Floats repeated(float x) { return Floats{x, x, x, x}; }
BCAST_INLINE Floats values_of_bytes(const uint8_t *x)
{
    const float first = x[0], second = x[1], third = x[2], fourth = x[3];
    return Floats{first, second, third, fourth};
}

BCAST_INLINE Floats add(Floats x, Floats y) { return x + y; }
BCAST_INLINE Floats subtract(Floats x, Floats y) { return x - y; }
BCAST_INLINE Floats multiply(Floats x, Floats y) { return x * y; }
BCAST_INLINE Floats divide(Floats x, Floats y) { return x / y; }

BCAST_INLINE Rare nothing_rare() { return {}; }
BCAST_INLINE bool has_underflow(Rare) { return false; }

}
#endif

#if defined(__x86_64__) || defined(_M_X64)
namespace avx2 {

constexpr int lanes = 8;
constexpr bool has_halves = true;
typedef __m256 Floats;
typedef __m256 Mask;
typedef __m128i Halves;
typedef __m256i Rare;       /* 0 somewhere, if something was seen */

BCAST_ON_AVX2 BCAST_INLINE Floats load(const float *at) { return _mm256_loadu_ps(at); }
BCAST_ON_AVX2 BCAST_INLINE void store(float *at, Floats x) { _mm256_storeu_ps(at, x); }
BCAST_ON_AVX2 BCAST_INLINE Floats repeated(float x) { return _mm256_set1_ps(x); }

BCAST_ON_AVX2 BCAST_INLINE Floats add(Floats x, Floats y) { return _mm256_add_ps(x, y); }
BCAST_ON_AVX2 BCAST_INLINE Floats subtract(Floats x, Floats y) { return _mm256_sub_ps(x, y); }
BCAST_ON_AVX2 BCAST_INLINE Floats multiply(Floats x, Floats y) { return _mm256_mul_ps(x, y); }
BCAST_ON_AVX2 BCAST_INLINE Floats divide(Floats x, Floats y) { return _mm256_div_ps(x, y); }
BCAST_ON_AVX2 BCAST_INLINE Floats rounded_to_whole(Floats x) { return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT); }

/* Masks, and what is chosen by them: x where one holds; else y. */
template <Comparison how>
BCAST_ON_AVX2 BCAST_INLINE Mask compare(Floats x, Floats y)
{
    return _mm256_cmp_ps(x, y, how);
}

BCAST_ON_AVX2 BCAST_INLINE Mask both(Mask x, Mask y) { return _mm256_and_ps(x, y); }
BCAST_ON_AVX2 BCAST_INLINE Floats or_zero(Mask mask, Floats x) { return _mm256_and_ps(mask, x); }
BCAST_ON_AVX2 BCAST_INLINE Floats choose(Mask mask, Floats x, Floats y) { return _mm256_blendv_ps(y, x, mask); }

/* A mask of halves. */
BCAST_ON_AVX2 BCAST_INLINE __m128i narrowed(Mask mask)
{
    const __m128i first = _mm_castps_si128(_mm256_castps256_ps128(mask));
    const __m128i last = _mm_castps_si128(_mm256_extractf128_ps(mask, 1));
    return _mm_packs_epi32(first, last);
}

BCAST_ON_AVX2 BCAST_INLINE Halves choose(Mask mask, Halves x, Halves y)
{
    return _mm_blendv_epi8(y, x, narrowed(mask));
}

/* A mask as bools, which are the first bytes. */
BCAST_ON_AVX2 BCAST_INLINE Halves bools(Mask mask)
{
    return _mm_and_si128(_mm_set1_epi8(1), _mm_packs_epi16(narrowed(mask), _mm_setzero_si128()));
}

/* Floats of 16 bits. The CPU tells underflow of what is tiny once it is rounded to float16, NumPy of what is so before:
   they differ in what becomes the least normal number. */
BCAST_ON_AVX2 BCAST_INLINE void store_halves(uint16_t *at, Halves x) { memcpy(at, &x, sizeof x); }

BCAST_ON_AVX2 BCAST_INLINE Rare nothing_rare() { return _mm256_set1_epi32(-1); }
BCAST_ON_AVX2 BCAST_INLINE bool has_underflow(Rare seen)
{
    return _mm256_movemask_epi8(_mm256_cmpeq_epi32(seen, _mm256_setzero_si256())) != 0;
}

BCAST_ON_AVX2 BCAST_INLINE Halves rounded_to_float16(Floats x, Rare *seen)
{
    const __m256i rounded_bits = _mm256_and_si256(_mm256_castps_si256(x), _mm256_set1_epi32(0x7ffff000));
    *seen = _mm256_min_epu32(*seen, _mm256_xor_si256(rounded_bits, _mm256_set1_epi32(0x387ff000)));
    return _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT);
}

BCAST_ON_AVX2 BCAST_INLINE Floats values_of_float16(Halves x) { return _mm256_cvtph_ps(x); }

BCAST_ON_AVX2 BCAST_INLINE Halves rounded_to_bfloat16(Floats x)
{
    const __m256i bits = _mm256_castps_si256(x);
    const __m256i top = _mm256_srli_epi32(bits, 16);
    const __m256i is_odd = _mm256_and_si256(top, _mm256_set1_epi32(1));
    const __m256i above = _mm256_add_epi32(_mm256_add_epi32(bits, is_odd), _mm256_set1_epi32(0x7fff));
    const __m256i sign = _mm256_and_si256(top, _mm256_set1_epi32(0x8000));
    const __m256i nan = _mm256_or_si256(sign, _mm256_set1_epi32(0x7fc0));
    const __m256i is_number = _mm256_castps_si256(_mm256_cmp_ps(x, x, ordered));
    const __m256i words = _mm256_blendv_epi8(nan, _mm256_srli_epi32(above, 16), is_number);
    return _mm256_castsi256_si128(_mm256_permute4x64_epi64(_mm256_packus_epi32(words, words), 0x08));
}

BCAST_ON_AVX2 BCAST_INLINE Floats values_of_bfloat16(Halves x)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(x), 16));
}

/* Bytes. Compilers make slow code of conversions of vectors. */
BCAST_ON_AVX2 BCAST_INLINE Floats values_of_bytes(const uint8_t *at)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i *>(at))));
}

/* As integers of 32 bits: the last bytes of whole numbers, as C has it; or numbers rounded and cut at 0 and 255, where
   NaN becomes 0. */
BCAST_ON_AVX2 BCAST_INLINE __m256i last_bytes(Floats x)
{
    return _mm256_and_si256(_mm256_cvttps_epi32(x), _mm256_set1_epi32(0xff));
}

BCAST_ON_AVX2 BCAST_INLINE __m256i saturated_bytes(Floats x)
{
    const Floats above = or_zero(compare<quiet_greater>(x, _mm256_setzero_ps()), x);
    return _mm256_cvtps_epi32(_mm256_min_ps(above, _mm256_set1_ps(255)));
}

/* Of 32 bits, the last eight. */
BCAST_ON_AVX2 BCAST_INLINE void store_last_bytes(uint8_t *at, __m256i a, __m256i b, __m256i c, __m256i d)
{
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    const __m256i bytes = _mm256_packus_epi16(_mm256_packus_epi32(a, b), _mm256_packus_epi32(c, d));
    _mm256_storeu_si256(reinterpret_cast<__m256i *>(at), _mm256_permutevar8x32_epi32(bytes, order));
}

BCAST_ON_AVX2 BCAST_INLINE void store_last_bytes(uint8_t *at, __m256i words)
{
    const __m128i halves = _mm_packus_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i *>(at), _mm_packus_epi16(halves, halves));
}

template <int count>
BCAST_ON_AVX2 BCAST_INLINE void store_bytes(uint8_t *at, const Floats (&x)[count])
{
    int j = 0;
    for (; j + 4 <= count; j += 4)
        store_last_bytes(
            at + lanes * j, last_bytes(x[j]), last_bytes(x[j + 1]), last_bytes(x[j + 2]), last_bytes(x[j + 3]));
    for (; j < count; j++) store_last_bytes(at + lanes * j, last_bytes(x[j]));
}

template <int count>
BCAST_ON_AVX2 BCAST_INLINE void store_saturated_bytes(uint8_t *at, const Floats (&x)[count])
{
    int j = 0;
    for (; j + 4 <= count; j += 4)
        store_last_bytes(
            at + lanes * j, saturated_bytes(x[j]), saturated_bytes(x[j + 1]), saturated_bytes(x[j + 2]),
            saturated_bytes(x[j + 3]));
    for (; j < count; j++) store_last_bytes(at + lanes * j, saturated_bytes(x[j]));
}

}
#endif

#if defined(__x86_64__) && !defined(_MSC_VER)
namespace avx512 {

constexpr int lanes = 16;
constexpr bool has_halves = true;
typedef __m512 Floats;
typedef __mmask16 Mask;
typedef __m256i Halves;
typedef __m512i Rare;       /* as of AVX2 */

BCAST_ON_AVX512 BCAST_INLINE Floats load(const float *at) { return _mm512_loadu_ps(at); }
BCAST_ON_AVX512 BCAST_INLINE void store(float *at, Floats x) { _mm512_storeu_ps(at, x); }
BCAST_ON_AVX512 BCAST_INLINE Floats repeated(float x) { return _mm512_set1_ps(x); }

BCAST_ON_AVX512 BCAST_INLINE Floats add(Floats x, Floats y) { return _mm512_add_ps(x, y); }
BCAST_ON_AVX512 BCAST_INLINE Floats subtract(Floats x, Floats y) { return _mm512_sub_ps(x, y); }
BCAST_ON_AVX512 BCAST_INLINE Floats multiply(Floats x, Floats y) { return _mm512_mul_ps(x, y); }
BCAST_ON_AVX512 BCAST_INLINE Floats divide(Floats x, Floats y) { return _mm512_div_ps(x, y); }
BCAST_ON_AVX512 BCAST_INLINE Floats rounded_to_whole(Floats x)
{
    return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT);
}

/* Masks, which have a bit for each number. */
template <Comparison how>
BCAST_ON_AVX512 BCAST_INLINE Mask compare(Floats x, Floats y)
{
    return _mm512_cmp_ps_mask(x, y, how);
}

BCAST_ON_AVX512 BCAST_INLINE Mask both(Mask x, Mask y) { return x & y; }
BCAST_ON_AVX512 BCAST_INLINE Floats or_zero(Mask mask, Floats x) { return _mm512_maskz_mov_ps(mask, x); }
BCAST_ON_AVX512 BCAST_INLINE Floats choose(Mask mask, Floats x, Floats y) { return _mm512_mask_mov_ps(y, mask, x); }
BCAST_ON_AVX512 BCAST_INLINE Halves choose(Mask mask, Halves x, Halves y)
{
    return _mm256_mask_blend_epi16(mask, y, x);
}

BCAST_ON_AVX512 BCAST_INLINE Halves bools(Mask mask) { return _mm256_castsi128_si256(_mm_maskz_set1_epi8(mask, 1)); }

/* Floats of 16 bits. */
BCAST_ON_AVX512 BCAST_INLINE void store_halves(uint16_t *at, Halves x) { memcpy(at, &x, sizeof x); }

BCAST_ON_AVX512 BCAST_INLINE Rare nothing_rare() { return _mm512_set1_epi32(-1); }
BCAST_ON_AVX512 BCAST_INLINE bool has_underflow(Rare seen) { return _mm512_testn_epi32_mask(seen, seen) != 0; }

BCAST_ON_AVX512 BCAST_INLINE Halves rounded_to_float16(Floats x, Rare *seen)
{
    const __m512i rounded_bits = _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7ffff000));
    *seen = _mm512_min_epu32(*seen, _mm512_xor_si512(rounded_bits, _mm512_set1_epi32(0x387ff000)));
    return _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT);
}

BCAST_ON_AVX512 BCAST_INLINE Floats values_of_float16(Halves x) { return _mm512_cvtph_ps(x); }

BCAST_ON_AVX512 BCAST_INLINE Halves rounded_to_bfloat16(Floats x)
{
    const __m512i bits = _mm512_castps_si512(x);
    const __m512i top = _mm512_srli_epi32(bits, 16);
    const __m512i is_odd = _mm512_and_si512(top, _mm512_set1_epi32(1));
    const __m512i above = _mm512_add_epi32(_mm512_add_epi32(bits, is_odd), _mm512_set1_epi32(0x7fff));
    const __m512i sign = _mm512_and_si512(top, _mm512_set1_epi32(0x8000));
    const __m512i nan = _mm512_or_si512(sign, _mm512_set1_epi32(0x7fc0));
    const Mask is_number = compare<ordered>(x, x);
    return _mm512_cvtepi32_epi16(_mm512_mask_blend_epi32(is_number, nan, _mm512_srli_epi32(above, 16)));
}

BCAST_ON_AVX512 BCAST_INLINE Floats values_of_bfloat16(Halves x)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16));
}

/* Bytes. */
BCAST_ON_AVX512 BCAST_INLINE Floats values_of_bytes(const uint8_t *at)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i *>(at))));
}

template <int count>
BCAST_ON_AVX512 BCAST_INLINE void store_bytes(uint8_t *at, const Floats (&x)[count])
{
    for (int j = 0; j < count; j++) {
        const __m512i words = _mm512_cvttps_epi32(x[j]);
        _mm_storeu_si128(reinterpret_cast<__m128i *>(at + lanes * j), _mm512_cvtepi32_epi8(words));
    }
}

template <int count>
BCAST_ON_AVX512 BCAST_INLINE void store_saturated_bytes(uint8_t *at, const Floats (&x)[count])
{
    for (int j = 0; j < count; j++) {
        const Floats above = or_zero(compare<quiet_greater>(x[j], _mm512_setzero_ps()), x[j]);
        const __m512i words = _mm512_cvtps_epi32(_mm512_min_ps(above, _mm512_set1_ps(255)));
        _mm_storeu_si128(reinterpret_cast<__m128i *>(at + lanes * j), _mm512_cvtepi32_epi8(words));
    }
}

}
#endif

#if BCAST_HAS_FP16
/* Two vectors, which one of halves is. Loads and stores of these are as long as registers. */
namespace neon {

constexpr int lanes = 8;
constexpr bool has_halves = true;
typedef float32x4x2_t Floats;
typedef uint32x4x2_t Mask;
typedef uint16x8_t Halves;
struct Rare {};     /* the CPU tells all that NumPy does */

BCAST_INLINE Floats load(const float *at) { return {{vld1q_f32(at), vld1q_f32(at + 4)}}; }
BCAST_INLINE void store(float *at, Floats x)
{
    vst1q_f32(at, x.val[0]);
    vst1q_f32(at + 4, x.val[1]);
}
BCAST_INLINE Floats repeated(float x) { return {{vdupq_n_f32(x), vdupq_n_f32(x)}}; }

BCAST_INLINE Floats add(Floats x, Floats y) { return {{x.val[0] + y.val[0], x.val[1] + y.val[1]}}; }
BCAST_INLINE Floats subtract(Floats x, Floats y) { return {{x.val[0] - y.val[0], x.val[1] - y.val[1]}}; }
BCAST_INLINE Floats multiply(Floats x, Floats y) { return {{x.val[0] * y.val[0], x.val[1] * y.val[1]}}; }
BCAST_INLINE Floats divide(Floats x, Floats y) { return {{x.val[0] / y.val[0], x.val[1] / y.val[1]}}; }

/* Masks. No comparison is quiet but `equal`: so quiet ones are for loops that tell no errors at all. What is `ordered`
   is asked of a vector and itself. */
template <Comparison how>
BCAST_INLINE uint32x4_t compare_four(float32x4_t x, float32x4_t y)
{
    constexpr int loud = how & 0x0f;
    if constexpr (loud == equal || loud == ordered) return vceqq_f32(x, y);
    if constexpr (loud == not_equal) return vmvnq_u32(vceqq_f32(x, y));
    if constexpr (loud == less) return vcltq_f32(x, y);
    if constexpr (loud == less_equal) return vcleq_f32(x, y);
    if constexpr (loud == greater) return vcgtq_f32(x, y);
    if constexpr (loud == greater_equal) return vcgeq_f32(x, y);
    if constexpr (loud == not_less) return vmvnq_u32(vcltq_f32(x, y));
    if constexpr (loud == not_greater) return vmvnq_u32(vcgtq_f32(x, y));
    if constexpr (how == quiet_not_less_equal) return vmvnq_u32(vcleq_f32(x, y));
    if constexpr (how == quiet_not_greater_equal) return vmvnq_u32(vcgeq_f32(x, y));
}

template <Comparison how>
BCAST_INLINE Mask compare(Floats x, Floats y)
{
    return {{compare_four<how>(x.val[0], y.val[0]), compare_four<how>(x.val[1], y.val[1])}};
}

BCAST_INLINE Mask both(Mask x, Mask y) { return {{x.val[0] & y.val[0], x.val[1] & y.val[1]}}; }

BCAST_INLINE float32x4_t four_or_zero(uint32x4_t mask, float32x4_t x)
{
    return vreinterpretq_f32_u32(mask & vreinterpretq_u32_f32(x));
}

BCAST_INLINE Floats or_zero(Mask mask, Floats x)
{
    return {{four_or_zero(mask.val[0], x.val[0]), four_or_zero(mask.val[1], x.val[1])}};
}

/* A mask of halves; what it chooses; and as bools, which are the first bytes. */
BCAST_INLINE uint16x8_t narrowed(Mask mask) { return vmovn_high_u32(vmovn_u32(mask.val[0]), mask.val[1]); }
BCAST_INLINE Halves choose(Mask mask, Halves x, Halves y) { return vbslq_u16(narrowed(mask), x, y); }
BCAST_INLINE Halves bools(Mask mask)
{
    const uint8x8_t bytes = vand_u8(vmovn_u16(narrowed(mask)), vdup_n_u8(1));
    return vreinterpretq_u16_u8(vcombine_u8(bytes, bytes));
}

/* Floats of 16 bits. */
BCAST_INLINE void store_halves(uint16_t *at, Halves x) { vst1q_u16(at, x); }

BCAST_INLINE Rare nothing_rare() { return {}; }
BCAST_INLINE bool has_underflow(Rare) { return false; }

BCAST_INLINE Halves rounded_to_float16(Floats x, Rare *)
{
    return vreinterpretq_u16_f16(vcvt_high_f16_f32(vcvt_f16_f32(x.val[0]), x.val[1]));
}

BCAST_INLINE Floats values_of_float16(Halves x)
{
    const float16x8_t halves = vreinterpretq_f16_u16(x);
    return {{vcvt_f32_f16(vget_low_f16(halves)), vcvt_high_f32_f16(halves)}};
}

BCAST_INLINE uint32x4_t four_rounded_to_bfloat16(float32x4_t x)
{
    const uint32x4_t bits = vreinterpretq_u32_f32(x);
    const uint32x4_t is_odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    const uint32x4_t rounded = vaddq_u32(vaddq_u32(bits, is_odd), vdupq_n_u32(0x7fff));
    const uint32x4_t nan = vbslq_u32(vdupq_n_u32(0x80000000), bits, vdupq_n_u32(0x7fc00000));
    return vbslq_u32(vceqq_f32(x, x), rounded, nan);
}

BCAST_INLINE Halves rounded_to_bfloat16(Floats x)
{
    const uint16x4_t first = vshrn_n_u32(four_rounded_to_bfloat16(x.val[0]), 16);
    return vshrn_high_n_u32(first, four_rounded_to_bfloat16(x.val[1]), 16);
}

BCAST_INLINE Floats values_of_bfloat16(Halves x)
{
    const uint32x4_t first = vshll_n_u16(vget_low_u16(x), 16), last = vshll_high_n_u16(x, 16);
    return {{vreinterpretq_f32_u32(first), vreinterpretq_f32_u32(last)}};
}

/* Bytes. */
BCAST_INLINE Floats values_of_bytes(const uint8_t *at)
{
    const uint16x8_t words = vmovl_u8(vld1_u8(at));
    return {{vcvtq_f32_u32(vmovl_u16(vget_low_u16(words))), vcvtq_f32_u32(vmovl_high_u16(words))}};
}

}
#endif

/* The floating-point errors that were told so far, and all else that the CPU's register of them has. */
#if defined(__x86_64__) || defined(_M_X64)
constexpr uint64_t underflow_told = _MM_EXCEPT_UNDERFLOW;

BCAST_INLINE uint64_t told_errors() { return _mm_getcsr(); }
BCAST_INLINE void tell_errors(uint64_t errors) { _mm_setcsr(static_cast<unsigned>(errors)); }
#elif BCAST_HAS_FP16
constexpr uint64_t underflow_told = 0x08;

BCAST_INLINE uint64_t told_errors()
{
    uint64_t errors;
    __asm__ volatile("mrs %0, fpsr" : "=r"(errors) : : "memory");
    return errors;
}

BCAST_INLINE void tell_errors(uint64_t errors) { __asm__ volatile("msr fpsr, %0" : : "r"(errors) : "memory"); }
#endif

}
}

#endif
