/* The kernels of `_reduce/simd/sum.h` for each target: what they are made of, and which the machine has. */

#ifndef BCAST_SUM_KERNELS_H
#define BCAST_SUM_KERNELS_H

#include <math.h>
#include <string.h>

#include "dtypes.h"
#include "sum.h"
#include "../../_runtime/cpu.h"
#include "../../_runtime/target.h"
#include "../../_runtime/tuning.h"

/* GCC and Clang have vectors of any length, in as many registers as it takes; others get kernels of plain loops. */
#if defined(__GNUC__) && !defined(BCAST_ONE_LANE)
#pragma GCC diagnostic ignored "-Wpsabi"    /* no vector leaves the functions that follow */
#define BCAST_VECTORS 1
#ifdef __clang__
#define BCAST_UNROLL _Pragma("clang loop unroll(full)")
#else
#define BCAST_UNROLL _Pragma("GCC unroll 4")
#endif
#define BCAST_AT(Type, at, i) (((struct { Type value; } __attribute__((packed, may_alias)) *) (at))[i].value)
#define BCAST_VECTOR(Item, lanes) Item __attribute__((vector_size(lanes * sizeof(Item))))
#define BCAST_CONVERT(x, Vector) __builtin_convertvector(x, Vector)
typedef BCAST_VECTOR(int32_t, 4) bcast_i32x4;
typedef BCAST_VECTOR(int64_t, 4) bcast_i64x4;
typedef BCAST_VECTOR(uint16_t, 4) bcast_u16x4;
typedef BCAST_VECTOR(uint32_t, 4) bcast_u32x4;
typedef BCAST_VECTOR(uint64_t, 4) bcast_u64x4;
typedef BCAST_VECTOR(float, 4) bcast_f32x4;
typedef BCAST_VECTOR(double, 4) bcast_f64x4;
#ifdef __clang__
#define BCAST_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define BCAST_SHUFFLE(a, b, ...) __builtin_shuffle(a, b, __builtin_choose_expr(     \
    sizeof(a) == sizeof(bcast_i32x4), ((bcast_i32x4) {__VA_ARGS__}), ((bcast_i64x4) {__VA_ARGS__})))
#endif
#define BCAST_EVEN(a, b) BCAST_SHUFFLE(a, b, 0, 4, 2, 6)
#define BCAST_ODD(a, b) BCAST_SHUFFLE(a, b, 1, 5, 3, 7)
#define BCAST_LOWER(a, b) BCAST_SHUFFLE(a, b, 0, 1, 4, 5)
#define BCAST_UPPER(a, b) BCAST_SHUFFLE(a, b, 2, 3, 6, 7)
static inline void bcast_fetch(const char *src, ptrdiff_t nbytes)
{
    for (ptrdiff_t at = 0; at < nbytes; at += 64) __builtin_prefetch(src + at);
}
#else
#define bcast_fetch(src, nbytes) ((void) 0)
#define BCAST_VECTORS 0
#define BCAST_VECTOR(Item, lanes) Item
#endif

/* Lay pieces side by side that are `stride` bytes from each other: `count` of `size` bytes. */
BCAST_INLINE void bcast_gather_of(const ptrdiff_t size, char *dst, const char *src, ptrdiff_t stride, ptrdiff_t count)
{
    for (ptrdiff_t i = 0; i < count; i++) memcpy(dst + i * size, src + i * stride, size);
}

#define BCAST_CASE_GATHER(size) case size: bcast_gather_of(size, dst, src, stride, count); break;
static inline void bcast_gather(char *dst, const char *src, ptrdiff_t stride, ptrdiff_t count, ptrdiff_t size)
{
    switch (size) {     /* a call of memcpy for few bytes takes longer than to copy them */
    BCAST_CASE_GATHER(1) BCAST_CASE_GATHER(2) BCAST_CASE_GATHER(4) BCAST_CASE_GATHER(8) BCAST_CASE_GATHER(12)
    BCAST_CASE_GATHER(16) BCAST_CASE_GATHER(24) BCAST_CASE_GATHER(32) BCAST_CASE_GATHER(48) BCAST_CASE_GATHER(64)
    default: bcast_gather_of(size, dst, src, stride, count);
    }
}

#define BCAST_JOINED_3(a, b, c) bcast_##a##_##b##_##c
#define BCAST_JOIN_3(a, b, c) BCAST_JOINED_3(a, b, c)

/* What rounding has cost: a + b - sum. */
#define BCAST_TWO_SUM_ERROR(a, b, sum) (((a) - ((sum) - ((sum) - (a)))) + ((b) - ((sum) - (a))))

#define BCAST_KIND_TYPES(kind, Bits, Wide, Acc, lanes_, is_compensated, is_converted, dtype_)               \
    typedef Bits bcast_##kind##_term;                                                                       \
    typedef Acc bcast_##kind##_acc;                                                                         \
    typedef BCAST_VECTOR(Bits, lanes_) bcast_##kind##_terms;                                                \
    typedef BCAST_VECTOR(Bits, 4) bcast_##kind##_results;                                                   \
    typedef BCAST_VECTOR(Wide, lanes_) bcast_##kind##_wide;                                                 \
    typedef BCAST_VECTOR(Acc, 4) bcast_##kind##_acc_vector;                                                 \
    typedef struct { bcast_##kind##_acc_vector sum, error; } bcast_##kind##_accumulator;                    \
    enum { bcast_##kind##_lanes = lanes_, bcast_##kind##_dtype = BCAST_##dtype_ };                          \
    enum { bcast_##kind##_compensated = is_compensated, bcast_##kind##_converted = is_converted };
BCAST_SUM_KINDS(BCAST_KIND_TYPES)

#define BCAST_NARROW_TYPES(kind, Bits, dtype_)                                          \
    typedef Bits bcast_##kind##_term;                                                   \
    typedef BCAST_VECTOR(Bits, (32 / sizeof(Bits))) bcast_##kind##_vector;              \
    enum { bcast_##kind##_dtype = BCAST_##dtype_ };
BCAST_NARROW_KINDS(BCAST_NARROW_TYPES)

#define BCAST_CASE_STORE(NAME, ...) \
    case BCAST_##NAME: BCAST_JOIN(store_as, TARGET)(BCAST_##NAME, BCAST_UINT64, results, sums, n); break;

#define BCAST_KERNELS_OF(kind, ...)                                                                     \
    [BCAST_KIND_##kind] = {                                                                             \
        .lanes = bcast_##kind##_lanes,                                                                  \
        .reduce_rows = BCAST_JOIN_3(sum_rows, kind, TARGET),                                            \
        .reduce_runs = BCAST_JOIN_3(sum_runs, kind, TARGET),                                            \
        .reduce_counted_runs = BCAST_JOIN_3(sum_counted_runs, kind, TARGET),                            \
        .combine = BCAST_JOIN_3(add_accumulators, kind, TARGET),                                        \
        .fold = BCAST_JOIN_3(fold, kind, TARGET),                                                       \
        .multiply = BCAST_JOIN_3(multiply, kind, TARGET),                                               \
        .deviate = BCAST_JOIN_3(deviate, kind, TARGET),                                                 \
    },

#define BCAST_NARROW_KERNELS_OF(kind, Bits, ...)                                                        \
    [BCAST_KIND_##kind] = {                                                                             \
        .lanes = 32 / sizeof(Bits),                                                                     \
        .reduce_rows = BCAST_JOIN_3(sum_rows, kind, TARGET),                                            \
        .reduce_runs = BCAST_JOIN_3(sum_runs, kind, TARGET),                                            \
        .combine = BCAST_JOIN_3(add_accumulators, kind, TARGET),                                        \
        .fold = BCAST_JOIN_3(fold, kind, TARGET),                                                       \
    },

#define TARGET plain
#define ON_TARGET
#if defined(__x86_64__)     /* CPUs of before 2013 alone use these: small code, compiled in a sixth of the time */
#define UNROLLED 0
#define SPECIALISED BCAST_APART
#else
#define UNROLLED 1          /* whether runs of few vectors have loops of their own */
#define SPECIALISED ON_TARGET BCAST_INLINE      /* functions for what is known when they are compiled */
#endif
#define ONE(Type) ((Type) {0} + 1)
/* Have a product rounded that a compiler might add unrounded, by one instruction for both. */
#if defined(__GNUC__) && !defined(__x86_64__)
#define ROUND(x) __asm__("" : "+m"(x))
#else
#define ROUND(x) ((void) (x))
#endif
#define DOUBLES(x) BCAST_CONVERT(x, bcast_f64x4)
#if BCAST_VECTORS
/* The terms of a vector, given by their bits, as a wide one. */
#define bcast_u32_widen(x) (x)
#define bcast_u64_widen(x) (x)
#define bcast_bf16_widen(x) DOUBLES((bcast_f32x4) (BCAST_CONVERT(x, bcast_u32x4) << 16))
#define bcast_f32_widen(x) DOUBLES((bcast_f32x4) (x))
#define bcast_f64_widen(x) ((bcast_f64x4) (x))

/* Four lanes of a wide vector, from 4 * i on, as accumulators. */
#define bcast_u32_part(wide, i) BCAST_AT(const bcast_u32x4, wide, i)
#define bcast_u64_part(wide, i) (*(wide))
#define bcast_f16_part(wide, i) DOUBLES(BCAST_AT(const bcast_f32x4, wide, i))
#define bcast_bf16_part(wide, i) (*(wide))
#define bcast_f32_part(wide, i) (*(wide))
#define bcast_f64_part(wide, i) (*(wide))

/* Accumulators as results, given by their bits. */
#define bcast_u32_narrow(sums) (*(sums))
#define bcast_u64_narrow(sums) (*(sums))
#define bcast_f32_narrow(sums) ((bcast_f32_results) BCAST_CONVERT(*(sums), bcast_f32x4))
#define bcast_f64_narrow(sums) ((bcast_f64_results) *(sums))

#if BCAST_HAS_FP16
typedef BCAST_VECTOR(__fp16, 8) bcast_halves;
#define bcast_f16_widen(x) BCAST_CONVERT((bcast_halves) (x), bcast_f16_wide)
#else
BCAST_INLINE bcast_f16_wide bcast_f16_widen(bcast_f16_terms x)    /* as bcast_f16_of */
{
    const bcast_u32_wide bits = BCAST_CONVERT(x, bcast_u32_wide);
    const bcast_f16_wide size = (bcast_f16_wide) ((bits & 0x7fff) << 13) * 0x1p112f;
    const bcast_u32_wide special = (bcast_u32_wide) (size >= 0x1p16f) & 0x7f800000;
    return (bcast_f16_wide) ((bcast_u32_wide) size | special | (bits & 0x8000) << 16);
}
#endif

BCAST_INLINE bcast_u16x4 bcast_f16_narrow(const bcast_f64x4 *sums)
{
    bcast_u16x4 narrow;
    for (int i = 0; i < 4; i++) narrow[i] = BCAST_ROUNDED_TO_F16((*sums)[i]);
    return narrow;
}

/* Rounded to odd in float32 first, which avoids double rounding: towards zero, and odd if that is inexact. */
BCAST_INLINE bcast_u16x4 bcast_bf16_narrow(const bcast_f64x4 *sums)
{
    const bcast_f32x4 nearest = BCAST_CONVERT(*sums, bcast_f32x4);
    const bcast_f64x4 back = BCAST_CONVERT(nearest, bcast_f64x4), zero = {0};
    const bcast_u64x4 is_away = (bcast_u64x4) (((back > *sums) & (*sums > zero)) | ((back < *sums) & (*sums < zero)));
    const bcast_u32x4 is_nan = (bcast_u32x4) (nearest != nearest), sign = (bcast_u32x4) nearest & 0x80000000;
    bcast_u32x4 bits = (bcast_u32x4) nearest + BCAST_CONVERT(is_away, bcast_u32x4);
    bits |= BCAST_CONVERT((bcast_u64x4) (back != *sums), bcast_u32x4) & 1;
    bits += 0x7fff + (bits >> 16 & 1);
    bits = (is_nan & (sign | 0x7fc00000)) | (~is_nan & bits);
    return BCAST_CONVERT(bits >> 16, bcast_u16x4);
}
#endif
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("O1")
#include "target.inc.h"
#pragma GCC pop_options
#else
#include "target.inc.h"
#endif

#if BCAST_VECTORS && defined(__x86_64__)
#include <immintrin.h>
#define TARGET avx2
#define SPECIALISED ON_TARGET BCAST_INLINE
#define ON_TARGET BCAST_TARGET("avx2,f16c,fma")
#define UNROLLED 1
/* A one that compilers do not know for one, and drop. */
#undef ROUND
#define ROUND(x) __asm__("" : "+x"(x))
#define ONE(Type) ({ Type one = (Type) {0} + 1; __asm__("" : "+x"(one)); one; })
#undef bcast_bf16_widen     /* what compilers make of conversions has several times the instructions */
#undef bcast_f16_part
#define DOUBLES(x) ((bcast_f64x4) _mm256_cvtps_pd((__m128) (x)))
#define bcast_f16_widen(x) _mm256_cvtph_ps((__m128i) (x))
#define bcast_bf16_widen(x) DOUBLES(_mm_slli_epi32(_mm_cvtepu16_epi32(_mm_set_epi64x(0, (int64_t) (x))), 16))
#define bcast_f16_part(wide, i) \
    _mm256_cvtps_pd((i) ? _mm256_extractf128_ps(*(wide), 1) : _mm256_castps256_ps128(*(wide)))
#define bcast_f16_narrow bcast_f16_narrow_avx2

/* Rounded to odd in float32 first, which avoids double rounding. */
ON_TARGET BCAST_INLINE bcast_u16x4 bcast_f16_narrow(const bcast_f64x4 *sums)
{
    const bcast_u64x4 bits = (bcast_u64x4) *sums, low = bits & 0x1fffffff;
    const __m128 odd = _mm256_cvtpd_ps((__m256d) ((bits | (low + 0x1fffffff)) & ~(uint64_t) 0x1fffffff));
    return (bcast_u16x4) _mm_cvtsi128_si64(_mm_cvtps_ph(odd, _MM_FROUND_TO_NEAREST_INT));
}
#include "target.inc.h"
#else
#define bcast_target_avx2 bcast_target_plain
#endif

/* The kernels of each target; those without kernels of their own sum by the plain ones. */
#define bcast_target_ssse3 bcast_target_plain
#define bcast_target_neon bcast_target_plain
#define BCAST_SUM_TARGET(name, kernels, ...) &bcast_target_##kernels,
static const bcast_sum_target *const bcast_sum_target_of[] = {BCAST_TARGETS(BCAST_SUM_TARGET)};

#endif
