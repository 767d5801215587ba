/* Items of one number type as those of another; and in another byte order. */

#ifndef BCAST_CASTS_H
#define BCAST_CASTS_H

#include <fenv.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../_runtime/target.h"

typedef void (*bcast_cast)(ptrdiff_t n, const void *src, void *dst);

/* A float16's bits, moved to where a float32 has them, are its value times 2^-112; what says infinity or NaN is 2^16 or
   more. */
BCAST_INLINE float bcast_half_value(uint16_t half)
{
    uint32_t bits = (uint32_t) (half & 0x7fff) << 13;
    float size;
    memcpy(&size, &bits, 4);
    size *= 0x1p112f;
    memcpy(&bits, &size, 4);
    bits |= (size >= 0x1p16f ? 0x7f800000 : 0) | (uint32_t) (half & 0x8000) << 16;
    memcpy(&size, &bits, 4);
    return size;
}

BCAST_INLINE float bcast_bfloat_value(uint16_t top)
{
    const uint32_t bits = (uint32_t) top << 16;
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

/* Rounded to float16, ties to even. `rare` notes in its highest bits what NumPy tells: that a finite number becomes
   infinite, bit 31, or that it is less than the least normal number and inexact, bit 30. */
BCAST_INLINE uint16_t bcast_half_of(float x, uint32_t *rare)
{
    uint32_t bits, tiny_bits, normal, half;
    float tiny;
    memcpy(&bits, &x, 4);
    const uint32_t sign = bits >> 16 & 0x8000;
    bits &= 0x7fffffff;
    memcpy(&tiny, &bits, 4);
    const float size = tiny;
    tiny += 0.5f;       /* whose last bit counts multiples of the least number there is */
    memcpy(&tiny_bits, &tiny, 4);
    normal = (bits + 0xfff + (bits >> 13 & 1) - (112u << 23)) >> 13;
    half = bits < 0x38800000 ? tiny_bits - 0x3f000000 : normal > 0x7c00 ? 0x7c00 : normal;
    *rare |= (bits < 0x7f800000 && bits >= 0x477ff000) ? 0x80000000 : 0;
    *rare |= (bits < 0x38800000 && tiny - 0.5f != size) ? 0x40000000 : 0;
    if (bits > 0x7f800000) {
        half = 0x7c00 | (bits >> 13 & 0x3ff);
        half += half == 0x7c00;
    }
    return (uint16_t) (sign | half);
}

/* Rounded to bfloat16, ties to even; each NaN becomes that of its sign without a payload. */
BCAST_INLINE uint16_t bcast_bfloat_of(float x, uint32_t *rare)
{
    uint32_t bits;
    (void) rare;
    memcpy(&bits, &x, 4);
    return (uint16_t) (x != x ? (bits >> 16 & 0x8000) | 0x7fc0 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* A float64 as a float32 that rounds to the float16 to which the float64 does: the last bit is 1 if it is inexact. */
BCAST_INLINE float bcast_odd_value(double x)
{
    float y = (float) x;
    uint32_t bits;
    memcpy(&bits, &y, 4);
    if ((double) y != x && (bits & 0x7f800000) != 0x7f800000) {
        bits -= (y < 0 ? -(double) y : (double) y) > (x < 0 ? -x : x);
        bits |= 1;
        memcpy(&y, &bits, 4);
    }
    return y;
}

/* What is converted: F of its name, its type and how its value is read; and to what: F of its name, its type and how
   many of these an item has, as complex numbers have two. */
#define BCAST_VALUE(x) (x)
#define BCAST_SOURCES(F, ...)                                                                                       \
    F(b1, uint8_t, BCAST_VALUE, __VA_ARGS__) F(i1, int8_t, BCAST_VALUE, __VA_ARGS__)                                \
    F(u1, uint8_t, BCAST_VALUE, __VA_ARGS__) F(i2, int16_t, BCAST_VALUE, __VA_ARGS__)                               \
    F(u2, uint16_t, BCAST_VALUE, __VA_ARGS__) F(i4, int32_t, BCAST_VALUE, __VA_ARGS__)                              \
    F(u4, uint32_t, BCAST_VALUE, __VA_ARGS__) F(i8, int64_t, BCAST_VALUE, __VA_ARGS__)                              \
    F(u8, uint64_t, BCAST_VALUE, __VA_ARGS__) F(f4, float, BCAST_VALUE, __VA_ARGS__)                                \
    F(f8, double, BCAST_VALUE, __VA_ARGS__) F(f2, uint16_t, bcast_half_value, __VA_ARGS__)                          \
    F(bf, uint16_t, bcast_bfloat_value, __VA_ARGS__)
#define BCAST_DESTINATIONS(F)                                                                                       \
    F(b1, bool, 1) F(i1, int8_t, 1) F(u1, uint8_t, 1) F(i2, int16_t, 1) F(u2, uint16_t, 1) F(i4, int32_t, 1)        \
    F(u4, uint32_t, 1) F(i8, int64_t, 1) F(u8, uint64_t, 1) F(f4, float, 1) F(f8, double, 1)                        \
    F(c8, float, 2) F(c16, double, 2)

/* C leaves open what becomes of a number that the type of 8 or 16 bits does not hold; compilers take its last bits. */
#define BCAST_CAST(from, From, VALUE, to, To, parts)                                                                \
    static void bcast_##from##_as_##to(ptrdiff_t n, const void *src, void *dst)                                     \
    {                                                                                                               \
        const From *x = (const From *) src;                                                                         \
        To *y = (To *) dst;                                                                                         \
        for (ptrdiff_t i = 0; i < n; i++) {                                                                         \
            y[parts * i] = (To) VALUE(x[i]);                                                                        \
            if (parts == 2) y[parts * i + 1] = 0;                                                                   \
        }                                                                                                           \
    }
#define BCAST_CASTS_TO(...) BCAST_SOURCES(BCAST_CAST, __VA_ARGS__)
BCAST_DESTINATIONS(BCAST_CASTS_TO)
static void bcast_c8_as_c16(ptrdiff_t n, const void *src, void *dst) { bcast_f4_as_f8(2 * n, src, dst); }
static void bcast_c16_as_c8(ptrdiff_t n, const void *src, void *dst) { bcast_f8_as_f4(2 * n, src, dst); }

#define BCAST_NARROW(from, From, VALUE, to, OF)                                                                     \
    static void bcast_##from##_as_##to(ptrdiff_t n, const void *src, void *dst)                                     \
    {                                                                                                               \
        const From *x = (const From *) src;                                                                         \
        uint16_t *y = (uint16_t *) dst;                                                                             \
        uint32_t rare = 0;                                                                                          \
        for (ptrdiff_t i = 0; i < n; i++) y[i] = OF((float) VALUE(x[i]), &rare);                                    \
        if (rare) feraiseexcept((rare >> 31 ? FE_OVERFLOW : 0) | (rare >> 30 & 1 ? FE_UNDERFLOW : 0));              \
    }
BCAST_SOURCES(BCAST_NARROW, f2, bcast_half_of)
BCAST_SOURCES(BCAST_NARROW, bf, bcast_bfloat_of)
BCAST_NARROW(odd, double, bcast_odd_value, f2, bcast_half_of)

/* The place of a number type among the destinations, by NumPy's number for it; those of float16 and of bfloat16, whose
   number is given, come after; or -1. */
static inline int bcast_cast_place(int type, int bfloat16)
{
    enum { LONG = sizeof(long) == 8 ? 7 : 5 };
    static const int places[] = {0, 1, 2, 3, 4, 5, 6, LONG, LONG + 1, 7, 8, 9, 10, -1, 11, 12, -1};
    return type == 23 ? 13 : type == bfloat16 ? 14 : type >= 0 && type <= 16 ? places[type] : -1;
}

/* What converts from one type to another; NULL where nothing here does. Where a kind of number is lost, or what they
   hold, NumPy may have it otherwise: `exact` is for what converts as everywhere. */
#define BCAST_CAST_NAME(from, From, VALUE, to, ...) bcast_##from##_as_##to,
#define BCAST_CASTS_ROW(...) {BCAST_SOURCES(BCAST_CAST_NAME, __VA_ARGS__)},
static inline bcast_cast bcast_cast_of(int from, int to, int bfloat16, int exact)
{
    static const bcast_cast table[15][13] = {
        BCAST_DESTINATIONS(BCAST_CASTS_ROW) BCAST_CASTS_ROW(f2) BCAST_CASTS_ROW(bf)};
    const int src = bcast_cast_place(from, bfloat16), dst = bcast_cast_place(to, bfloat16);
    const int is_float = src == 9 || src == 10 || src >= 13;
    if (src < 0 || dst < 0) return NULL;
    if (src == 11 || src == 12) return dst == 12 ? bcast_c8_as_c16 : dst == 11 ? bcast_c16_as_c8 : NULL;
    if (exact && (dst >= 13 || src == 14 || (is_float && dst >= 1 && dst <= 8))) return NULL;
    if (src == 10 && dst == 13) return bcast_odd_as_f2;
    return table[dst][src >= 13 ? src - 2 : src];
}

/* The bytes of n units, each in the reverse order, in place: neighbours are exchanged, then pairs of them, then fours.
   Compilers make vector code of this for any target. */
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
static inline void bcast_swap_bytes(ptrdiff_t n, int size, void *items)
{
    uint8_t *at = (uint8_t *) items;
    switch (size) {
    BCAST_SWAP(uint16_t, x = (uint16_t) (x >> 8 | x << 8))
    BCAST_SWAP(uint32_t, BCAST_EXCHANGE(8, 0x00ff00ff); BCAST_EXCHANGE(16, 0x0000ffff))
    BCAST_SWAP(uint64_t, BCAST_EXCHANGE(8, 0x00ff00ff00ff00ff); BCAST_EXCHANGE(16, 0x0000ffff0000ffff);
               BCAST_EXCHANGE(32, 0x00000000ffffffff))
    }
}

#endif
