/* Items of one number type as those of another; and in another byte order. */

#ifndef BCAST_CASTS_H
#define BCAST_CASTS_H

#include <fenv.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../_runtime/cpu.h"
#include "../_runtime/floats.h"
#include "../_runtime/target.h"

typedef void (*bcast_cast)(ptrdiff_t n, const void *src, void *dst);

enum { BCAST_NARROWED = 256 };      /* float32 that are rounded at once, in a first-level cache */

#if BCAST_HAS_FP16
#include <arm_neon.h>

/* Float32 rounded to float16, ties to even. The CPU tells errors as NumPy does. */
BCAST_INLINE void bcast_round_8_to_f2(float32x4_t first, float32x4_t last, uint16_t *y)
{
    vst1q_u16(y, vreinterpretq_u16_f16(vcvt_high_f16_f32(vcvt_f16_f32(first), last)));
}

static void bcast_round_to_f2(ptrdiff_t n, const float *x, uint16_t *y)
{
    for (; n >= 32; n -= 32, x += 32, y += 32)
        for (int i = 0; i < 32; i += 8) bcast_round_8_to_f2(vld1q_f32(x + i), vld1q_f32(x + i + 4), y + i);

    for (; n > 0; n--) *y++ = bcast_f16_bits_of(*x++);
}

/* Float64 likewise: to float32 first, rounded to odd, which rounds to the float16 to which the float64 does. */
BCAST_INLINE float32x4_t bcast_round_4_to_odd(const double *x)
{
    return vcvtx_high_f32_f64(vcvtx_f32_f64(vld1q_f64(x)), vld1q_f64(x + 2));
}

static void bcast_plain_odd_as_f2(ptrdiff_t n, const void *src, void *dst)
{
    const double *x = (const double *) src;
    uint16_t *y = (uint16_t *) dst;

    for (; n >= 16; n -= 16, x += 16, y += 16)
        for (int i = 0; i < 16; i += 8)
            bcast_round_8_to_f2(bcast_round_4_to_odd(x + i), bcast_round_4_to_odd(x + i + 4), y + i);

    for (; n > 0; n--) *y++ = bcast_f16_bits_of(*x++);
}
#define bcast_wide_odd_as_f2 bcast_plain_odd_as_f2

BCAST_INLINE float16x8_t bcast_load_8_halves(const uint16_t *x) { return vreinterpretq_f16_u16(vld1q_u16(x)); }

BCAST_INLINE void bcast_store_8_as_float(float16x8_t halves, float *y)
{
    vst1q_f32(y, vcvt_f32_f16(vget_low_f16(halves)));
    vst1q_f32(y + 4, vcvt_high_f32_f16(halves));
}

/* Float16 as float32. Two vectors are read before one is stored, so that one instruction reads both. */
static void bcast_values_of_f2(ptrdiff_t n, const uint16_t *x, float *y)
{
    for (; n >= 32; n -= 32, x += 32, y += 32)
        for (int i = 0; i < 32; i += 16) {
            const float16x8_t first = bcast_load_8_halves(x + i), last = bcast_load_8_halves(x + i + 8);
            bcast_store_8_as_float(first, y + i);
            bcast_store_8_as_float(last, y + i + 8);
        }

    for (; n > 0; n--) *y++ = bcast_f16_of(*x++);
}
#else
/* Float32 rounded to float16, ties to even. `rare` notes in its highest bits what NumPy tells: that a finite number
   becomes infinite, bit 31, or that it is less than the least normal number and inexact, bit 30. No branches. */
static void bcast_round_to_f2(ptrdiff_t n, const float *x, uint16_t *y)
{
    uint32_t rare = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        const uint32_t sign = bcast_f32_bits_of(x[i]) >> 16 & 0x8000, bits = bcast_f32_bits_of(x[i]) & 0x7fffffff;
        const uint32_t is_tiny = -(uint32_t) (bits < 0x38800000), is_large = -(uint32_t) (bits >= 0x477ff000);
        const uint32_t is_nan = -(uint32_t) (bits > 0x7f800000), payload = bits >> 13 & 0x3ff;
        const uint32_t small_bits = bits & is_tiny;
        const float tiny = bcast_f32_of(small_bits) + 0.5f;     /* its last bit counts multiples of the least number */
        const uint32_t tiny_bits = bcast_f32_bits_of(tiny), back = bcast_f32_bits_of(tiny - 0.5f);
        const uint32_t normal = (bits + 0xfff + (bits >> 13 & 1) - (112u << 23)) >> 13;
        const uint32_t finite = ((tiny_bits - 0x3f000000) & is_tiny) | (normal & ~is_tiny);
        rare |= is_large & -(uint32_t) (bits < 0x7f800000) & 0x80000000;
        rare |= -(uint32_t) (back != small_bits) & 0x40000000;
        y[i] = (uint16_t) (
            sign | (finite & ~is_large) | (is_large & 0x7c00) | (is_nan & (payload | (payload == 0))));
    }
    if (rare) feraiseexcept((rare >> 31 ? FE_OVERFLOW : 0) | (rare >> 30 & 1 ? FE_UNDERFLOW : 0));
}
#endif

/* Rounded to bfloat16, ties to even; each NaN becomes that of its sign without a payload. */
BCAST_INLINE void bcast_round_to_bf(ptrdiff_t n, const float *x, uint16_t *y)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        const uint32_t bits = bcast_f32_bits_of(x[i]);
        y[i] = (uint16_t) (x[i] != x[i] ? (bits >> 16 & 0x8000) | 0x7fc0 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    }
}

/* A float64 as a float32 that rounds to the float16 to which the float64 does: the last bit is 1 if it is inexact.

   Sizes are compared as integers. Compared as floats, a NaN would raise the flag of what is invalid, even where the
   source asks for infinities and NaN first: Clang computes both sides, as it takes flags to be read by nobody. */
BCAST_INLINE float bcast_odd_value(double x)
{
    const float rounded = (float) x;
    const int64_t size = (int64_t) (bcast_f64_bits_of(x) & INT64_MAX);
    const int64_t rounded_size = (int64_t) (bcast_f64_bits_of((double) rounded) & INT64_MAX);
    const uint32_t bits = bcast_f32_bits_of(rounded);
    const int is_finite = (bits & 0x7f800000) != 0x7f800000;
    const int is_inexact = rounded_size != size;

    return bcast_f32_of(is_finite && is_inexact ? (bits - (rounded_size > size)) | 1 : bits);
}

#if !BCAST_HAS_FP16
/* The same, which tells no error of a NaN that signals: its highest bits are moved, and no NaN is converted. */
BCAST_INLINE float bcast_quiet_odd_value(double x)
{
    const uint64_t bits = bcast_f64_bits_of(x), size = bits & INT64_MAX;
    const int is_nan = size > 0x7ff0000000000000;
    const float number = bcast_odd_value(bcast_f64_of(is_nan ? 0 : bits));
    const uint32_t nan_bits = (uint32_t) (bits >> 32 & 0x80000000) | 0x7f800001 | (uint32_t) (bits >> 29 & 0x7fffff);

    return bcast_f32_of(is_nan ? nan_bits : bcast_f32_bits_of(number));
}

/* A float16 as a float64: a NaN that signals is no error, as its bits are added to those of infinity. */
BCAST_INLINE double bcast_quiet_f64_of_f16(uint16_t bits)
{
    const uint16_t payload = (bits & 0x7fff) > 0x7c00 ? bits & 0x3ff : 0;
    const double number = bcast_f16_of((uint16_t) (bits - payload));

    return bcast_f64_of(bcast_f64_bits_of(number) | (uint64_t) payload << 42);
}
#endif

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
/* To float16 by the CPU's instruction. It tells underflow of what is tiny once it is rounded, NumPy of what is so
   before: they differ in what becomes the least normal number. Then `seen` gets a 0. */
BCAST_TARGET("avx2,f16c") static void bcast_round_to_f2_wide(ptrdiff_t n, const float *x, uint16_t *y)
{
    const __m256i most = _mm256_set1_epi32(0x7ffff000), least = _mm256_set1_epi32(0x387ff000);
    float rest[8] = {0};
    __m256i seen = _mm256_set1_epi32(-1);
    for (; n > 0; n -= 8, x += 8, y += 8) {
        if (n < 8) memcpy(rest, x, n * sizeof *x);
        const __m256 values = _mm256_loadu_ps(n < 8 ? rest : x);
        const __m128i halves = _mm256_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT);
        seen = _mm256_min_epu32(
            seen, _mm256_xor_si256(_mm256_and_si256(_mm256_castps_si256(values), most), least));
        memcpy(y, &halves, n < 8 ? n * sizeof *y : sizeof halves);
    }
    if (_mm256_movemask_epi8(_mm256_cmpeq_epi32(seen, _mm256_setzero_si256()))) feraiseexcept(FE_UNDERFLOW);
}
#else
#define bcast_round_to_f2_wide bcast_round_to_f2
#endif

/* What is converted: F of its name, its type and how its value is read; and to what: F of its name, its type and how
   many of these an item has, as complex numbers have two. A bool holds if its byte is not 0: masks that other programs
   made have 255 there. */
#define BCAST_VALUE(x) (x)
#define BCAST_TRUTH(x) ((x) != 0)
#define BCAST_TRUTH_OF_HALF(x) (((x) & 0x7fff) != 0)
#define BCAST_SOURCES(F, ...)                                                                                       \
    F(b1, uint8_t, BCAST_TRUTH, __VA_ARGS__) F(i1, int8_t, BCAST_VALUE, __VA_ARGS__)                                \
    F(u1, uint8_t, BCAST_VALUE, __VA_ARGS__) F(i2, int16_t, BCAST_VALUE, __VA_ARGS__)                               \
    F(u2, uint16_t, BCAST_VALUE, __VA_ARGS__) F(i4, int32_t, BCAST_VALUE, __VA_ARGS__)                              \
    F(u4, uint32_t, BCAST_VALUE, __VA_ARGS__) F(i8, int64_t, BCAST_VALUE, __VA_ARGS__)                              \
    F(u8, uint64_t, BCAST_VALUE, __VA_ARGS__) F(f4, float, BCAST_VALUE, __VA_ARGS__)                                \
    F(f8, double, BCAST_VALUE, __VA_ARGS__) F(f2, uint16_t, bcast_f16_of, __VA_ARGS__)                          \
    F(bf, uint16_t, bcast_bf16_of, __VA_ARGS__)
#define BCAST_DESTINATIONS(F, ...)                                                                                  \
    F(b1, bool, 1, __VA_ARGS__) F(i1, int8_t, 1, __VA_ARGS__) F(u1, uint8_t, 1, __VA_ARGS__)                        \
    F(i2, int16_t, 1, __VA_ARGS__) F(u2, uint16_t, 1, __VA_ARGS__) F(i4, int32_t, 1, __VA_ARGS__)                   \
    F(u4, uint32_t, 1, __VA_ARGS__) F(i8, int64_t, 1, __VA_ARGS__) F(u8, uint64_t, 1, __VA_ARGS__)                  \
    F(f4, float, 1, __VA_ARGS__) F(f8, double, 1, __VA_ARGS__) F(c8, float, 2, __VA_ARGS__)                         \
    F(c16, double, 2, __VA_ARGS__)

/* C leaves open what becomes of a number that the type of 8 or 16 bits does not hold; compilers take its last bits. */
#define BCAST_CAST(from, From, VALUE, to, To, parts, target, ON)                                                    \
    ON static void bcast_##target##_##from##_as_##to(ptrdiff_t n, const void *src, void *dst)                       \
    {                                                                                                               \
        const From *x = (const From *) src;                                                                         \
        To *y = (To *) dst;                                                                                         \
        for (ptrdiff_t i = 0; i < n; i++) {                                                                         \
            y[parts * i] = (To) VALUE(x[i]);                                                                        \
            if (parts == 2) y[parts * i + 1] = 0;                                                                   \
        }                                                                                                           \
    }
#define BCAST_NARROW(from, From, VALUE, to, ROUND, target, ON)                                                      \
    ON static void bcast_##target##_##from##_as_##to(ptrdiff_t n, const void *src, void *dst)                       \
    {                                                                                                               \
        float values[BCAST_NARROWED];                                                                               \
        if (sizeof(From) == 4 && (From) 0.5 != 0) {     /* float32 itself */                                        \
            ROUND(n, (const float *) src, (uint16_t *) dst);                                                        \
            return;                                                                                                 \
        }                                                                                                           \
        for (ptrdiff_t done = 0, count; done < n; done += count) {                                                  \
            count = n - done < BCAST_NARROWED ? n - done : BCAST_NARROWED;                                          \
            for (ptrdiff_t i = 0; i < count; i++) values[i] = (float) VALUE(((const From *) src)[done + i]);        \
            ROUND(count, values, (uint16_t *) dst + done);                                                          \
        }                                                                                                           \
    }
#define BCAST_CASTS_TO(...) BCAST_SOURCES(BCAST_CAST, __VA_ARGS__)
#define BCAST_NARROW_ONES(HALVES, target, ON)                                                                       \
    BCAST_SOURCES(BCAST_NARROW, f2, HALVES, target, ON)                                                             \
    BCAST_SOURCES(BCAST_NARROW, bf, bcast_round_to_bf, target, ON)
BCAST_DESTINATIONS(BCAST_CASTS_TO, plain, )
BCAST_DESTINATIONS(BCAST_CASTS_TO, wide, BCAST_ON_WIDE)
BCAST_NARROW_ONES(bcast_round_to_f2, plain, )
BCAST_NARROW_ONES(bcast_round_to_f2_wide, wide, BCAST_ON_WIDE)

/* Float16 that are true: their bits are looked at, as NumPy does, so that no NaN is an error. */
BCAST_CAST(half, uint16_t, BCAST_TRUTH_OF_HALF, b1, bool, 1, plain, )
BCAST_CAST(half, uint16_t, BCAST_TRUTH_OF_HALF, b1, bool, 1, wide, BCAST_ON_WIDE)
#if BCAST_HAS_FP16
/* Of 64 bits by way of float64, for which there is vector code: what it rounds is infinite as float16. */
BCAST_NARROW(long, int64_t, (double), f2, bcast_round_to_f2, plain, )
BCAST_NARROW(ulong, uint64_t, (double), f2, bcast_round_to_f2, plain, )

/* Float16 as integers, of which compilers make no vector code at once. Those of 8 and 16 bits are the last bits of one
   of 32, as where single items are converted. */
#define BCAST_FROM_HALVES(to, To, Wide)                                                                             \
    static void bcast_halves_as_##to(ptrdiff_t n, const void *src, void *dst)                                       \
    {                                                                                                               \
        float values[BCAST_NARROWED];                                                                               \
        for (ptrdiff_t done = 0, count; done < n; done += count) {                                                  \
            count = n - done < BCAST_NARROWED ? n - done : BCAST_NARROWED;                                          \
            bcast_values_of_f2(count, (const uint16_t *) src + done, values);                                       \
            for (ptrdiff_t i = 0; i < count; i++) ((To *) dst)[done + i] = (To) (Wide) values[i];                   \
        }                                                                                                           \
    }
BCAST_FROM_HALVES(i1, int8_t, int32_t)
BCAST_FROM_HALVES(u1, uint8_t, uint32_t)
BCAST_FROM_HALVES(i2, int16_t, int32_t)
BCAST_FROM_HALVES(u2, uint16_t, uint32_t)
BCAST_FROM_HALVES(i4, int32_t, int32_t)
BCAST_FROM_HALVES(u4, uint32_t, uint32_t)

/* As float64, and as integers of 64 bits by way of it. */
#define BCAST_VECTOR(x) (x)
#define BCAST_FROM_HALVES_WIDER(to, To, STORE, CONVERTED)                                                           \
    BCAST_INLINE void bcast_store_8_as_##to(float16x8_t halves, To *y)                                              \
    {                                                                                                               \
        const float32x4_t first = vcvt_f32_f16(vget_low_f16(halves)), last = vcvt_high_f32_f16(halves);             \
        STORE(y, CONVERTED(vcvt_f64_f32(vget_low_f32(first))));                                                     \
        STORE(y + 2, CONVERTED(vcvt_high_f64_f32(first)));                                                          \
        STORE(y + 4, CONVERTED(vcvt_f64_f32(vget_low_f32(last))));                                                  \
        STORE(y + 6, CONVERTED(vcvt_high_f64_f32(last)));                                                           \
    }                                                                                                               \
    static void bcast_halves_as_##to(ptrdiff_t n, const void *src, void *dst)                                       \
    {                                                                                                               \
        const uint16_t *x = (const uint16_t *) src;                                                                 \
        To *y = (To *) dst;                                                                                         \
        for (; n >= 16; n -= 16, x += 16, y += 16) {                                                                \
            const float16x8_t first = bcast_load_8_halves(x), last = bcast_load_8_halves(x + 8);                    \
            bcast_store_8_as_##to(first, y);                                                                        \
            bcast_store_8_as_##to(last, y + 8);                                                                     \
        }                                                                                                           \
        for (; n > 0; n--) *y++ = (To) bcast_f16_of(*x++);                                                          \
    }
BCAST_FROM_HALVES_WIDER(i8, int64_t, vst1q_s64, vcvtq_s64_f64)
BCAST_FROM_HALVES_WIDER(u8, uint64_t, vst1q_u64, vcvtq_u64_f64)
BCAST_FROM_HALVES_WIDER(f8, double, vst1q_f64, BCAST_VECTOR)

static void bcast_halves_as_float(ptrdiff_t n, const void *src, void *dst)
{
    bcast_values_of_f2(n, (const uint16_t *) src, (float *) dst);
}
#else
#define BCAST_WIDER_HALVES(target, ON)                                                                              \
    BCAST_CAST(half, uint16_t, bcast_quiet_f64_of_f16, f8, double, 1, target, ON)                                   \
    BCAST_CAST(half, uint16_t, bcast_quiet_f64_of_f16, c16, double, 2, target, ON)
BCAST_WIDER_HALVES(plain, )
BCAST_WIDER_HALVES(wide, BCAST_ON_WIDE)
BCAST_NARROW(odd, double, bcast_odd_value, f2, bcast_round_to_f2, plain, )
BCAST_NARROW(odd, double, bcast_odd_value, f2, bcast_round_to_f2_wide, wide, BCAST_ON_WIDE)
BCAST_NARROW(quiet_odd, double, bcast_quiet_odd_value, f2, bcast_round_to_f2, plain, )

/* To float16, by the CPU's instructions: it tells an error of a NaN that signals, and has it signal no more. NumPy does
   neither, as it moves bits. So where there is such an error, all is done again in that way. */
#define BCAST_QUIET(name, FAST, QUIET)                                                                              \
    static void name(ptrdiff_t n, const void *src, void *dst)                                                       \
    {                                                                                                               \
        const int was_invalid = fetestexcept(FE_INVALID);                                                           \
        if (was_invalid) feclearexcept(FE_INVALID);                                                                 \
        FAST(n, src, dst);                                                                                          \
        if (fetestexcept(FE_INVALID)) {                                                                             \
            feclearexcept(FE_INVALID);                                                                              \
            QUIET(n, src, dst);                                                                                     \
        }                                                                                                           \
        if (was_invalid) feraiseexcept(FE_INVALID);                                                                 \
    }
BCAST_QUIET(bcast_plain_f8_to_f2, bcast_plain_odd_as_f2, bcast_plain_quiet_odd_as_f2)
BCAST_QUIET(bcast_wide_f8_to_f2, bcast_wide_odd_as_f2, bcast_plain_quiet_odd_as_f2)
BCAST_QUIET(bcast_wide_f4_to_f2, bcast_wide_f4_as_f2, bcast_plain_f4_as_f2)
#endif
#define BCAST_COMPLEX_CASTS(target)                                                                                 \
    static void bcast_##target##_c8_as_c16(ptrdiff_t n, const void *src, void *dst)                                 \
    {                                                                                                               \
        bcast_##target##_f4_as_f8(2 * n, src, dst);                                                                 \
    }                                                                                                               \
    static void bcast_##target##_c16_as_c8(ptrdiff_t n, const void *src, void *dst)                                 \
    {                                                                                                               \
        bcast_##target##_f8_as_f4(2 * n, src, dst);                                                                 \
    }
BCAST_COMPLEX_CASTS(plain)
BCAST_COMPLEX_CASTS(wide)

/* The place of a number type among the destinations, by NumPy's number for it; those of float16 and of bfloat16, whose
   number is given, come after; or -1. */
static inline int bcast_cast_place(int type, int bfloat16)
{
    enum { LONG = sizeof(long) == 8 ? 7 : 5 };
    static const int places[] = {0, 1, 2, 3, 4, 5, 6, LONG, LONG + 1, 7, 8, 9, 10, -1, 11, 12, -1};
    return type == 23 ? 13 : type == bfloat16 ? 14 : type >= 0 && type <= 16 ? places[type] : -1;
}

/* What converts from one type to another; NULL where nothing here does. Where a kind of number is lost, or what they
   hold, NumPy may have it otherwise: `exact` is for what converts as everywhere. A bool is 0 or 1 in all of them. */
#define BCAST_CAST_NAME(from, From, VALUE, to, To, parts, target, ...) bcast_##target##_##from##_as_##to,
#define BCAST_CASTS_ROW(...) {BCAST_SOURCES(BCAST_CAST_NAME, __VA_ARGS__)},
#define BCAST_NARROW_ROWS(target) BCAST_CASTS_ROW(f2, , , target) BCAST_CASTS_ROW(bf, , , target)
static inline bcast_cast bcast_cast_of(int target, int from, int to, int bfloat16, int exact)
{
    static const bcast_cast plain[15][13] = {BCAST_DESTINATIONS(BCAST_CASTS_ROW, plain) BCAST_NARROW_ROWS(plain)};
    static const bcast_cast wide[15][13] = {BCAST_DESTINATIONS(BCAST_CASTS_ROW, wide) BCAST_NARROW_ROWS(wide)};
    const int src = bcast_cast_place(from, bfloat16), dst = bcast_cast_place(to, bfloat16);
    const int is_float = src == 9 || src == 10 || src >= 13;
    if (src < 0 || dst < 0) return NULL;
    if (src == 11 || src == 12) {
        if (dst == 12) return target >= BCAST_WIDE ? bcast_wide_c8_as_c16 : bcast_plain_c8_as_c16;
        return dst != 11 ? NULL : target >= BCAST_WIDE ? bcast_wide_c16_as_c8 : bcast_plain_c16_as_c8;
    }
    if (exact && src != 0 && (dst >= 13 || src == 14 || (is_float && dst >= 1 && dst <= 8))) return NULL;
#if BCAST_HAS_FP16
    static const bcast_cast from_halves[] = {
        bcast_halves_as_i1, bcast_halves_as_u1, bcast_halves_as_i2, bcast_halves_as_u2, bcast_halves_as_i4,
        bcast_halves_as_u4, bcast_halves_as_i8, bcast_halves_as_u8, bcast_halves_as_float,
        bcast_halves_as_f8};
    if (src == 13 && dst >= 1 && dst <= 10) return from_halves[dst - 1];
    if (src == 7 && dst == 13) return bcast_plain_long_as_f2;
    if (src == 8 && dst == 13) return bcast_plain_ulong_as_f2;
    if (src == 10 && dst == 13) return target >= BCAST_WIDE ? bcast_wide_odd_as_f2 : bcast_plain_odd_as_f2;
#else
    if (src == 13 && dst == 10) return target >= BCAST_WIDE ? bcast_wide_half_as_f8 : bcast_plain_half_as_f8;
    if (src == 13 && dst == 12) return target >= BCAST_WIDE ? bcast_wide_half_as_c16 : bcast_plain_half_as_c16;
    if (src == 10 && dst == 13) return target >= BCAST_WIDE ? bcast_wide_f8_to_f2 : bcast_plain_f8_to_f2;
    if (src == 9 && dst == 13 && target >= BCAST_WIDE) return bcast_wide_f4_to_f2;
#endif
    if (src == 13 && dst == 0) return target >= BCAST_WIDE ? bcast_wide_half_as_b1 : bcast_plain_half_as_b1;
    return (target >= BCAST_WIDE ? wide : plain)[dst][src >= 13 ? src - 2 : src];
}
/* The bytes of n units, each in the reverse order, in place: neighbours are exchanged, then pairs of them, then fours.
   Compilers see what that is, and make vector code of it where there are shuffles of bytes. */
#define BCAST_EXCHANGE(bits, mask) x = (x >> bits & mask) | (x & mask) << bits
#define BCAST_SWAP(Unit, ...)                                                                                       \
    case sizeof(Unit):                                                                                              \
        for (const uint8_t *end = at + n * (ptrdiff_t) sizeof(Unit); at < end; at += sizeof(Unit)) {                \
            Unit x;                                                                                                 \
            memcpy(&x, at, sizeof x);                                                                               \
            __VA_ARGS__;                                                                                            \
            memcpy(at, &x, sizeof x);                                                                               \
        }                                                                                                           \
        return;
BCAST_INLINE void bcast_swap_items(ptrdiff_t n, int size, void *items)
{
    uint8_t *at = (uint8_t *) items;
    switch (size) {
    BCAST_SWAP(uint16_t, x = (uint16_t) (x >> 8 | x << 8))
    BCAST_SWAP(uint32_t, BCAST_EXCHANGE(8, 0x00ff00ff); BCAST_EXCHANGE(16, 0x0000ffff))
    BCAST_SWAP(uint64_t, BCAST_EXCHANGE(8, 0x00ff00ff00ff00ff); BCAST_EXCHANGE(16, 0x0000ffff0000ffff);
               BCAST_EXCHANGE(32, 0x00000000ffffffff))
    }
}

static void bcast_plain_swap(ptrdiff_t n, int size, void *items) { bcast_swap_items(n, size, items); }
BCAST_ON_WIDE static void bcast_wide_swap(ptrdiff_t n, int size, void *items) { bcast_swap_items(n, size, items); }
static inline void bcast_swap_bytes(int target, ptrdiff_t n, int size, void *items)
{
    (target >= BCAST_WIDE ? bcast_wide_swap : bcast_plain_swap)(n, size, items);
}

#endif
