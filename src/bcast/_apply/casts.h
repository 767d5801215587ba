/* Items of one number type as those of another that holds all their values, bool too; and in another byte order. */

#ifndef BCAST_CASTS_H
#define BCAST_CASTS_H

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

/* What is converted: F of its name, its type and how its value is read; and to what: F of its name, its type and how
   many of these an item has, as complex numbers have two. */
#define BCAST_VALUE(x) (x)
#define BCAST_SOURCES(F, ...)                                                                                       \
    F(b1, uint8_t, BCAST_VALUE, __VA_ARGS__) F(i1, int8_t, BCAST_VALUE, __VA_ARGS__)                                \
    F(u1, uint8_t, BCAST_VALUE, __VA_ARGS__) F(i2, int16_t, BCAST_VALUE, __VA_ARGS__)                               \
    F(u2, uint16_t, BCAST_VALUE, __VA_ARGS__) F(i4, int32_t, BCAST_VALUE, __VA_ARGS__)                              \
    F(u4, uint32_t, BCAST_VALUE, __VA_ARGS__) F(i8, int64_t, BCAST_VALUE, __VA_ARGS__)                              \
    F(u8, uint64_t, BCAST_VALUE, __VA_ARGS__) F(f4, float, BCAST_VALUE, __VA_ARGS__)                                \
    F(f8, double, BCAST_VALUE, __VA_ARGS__) F(f2, uint16_t, bcast_half_value, __VA_ARGS__)
#define BCAST_DESTINATIONS(F)                                                                                       \
    F(b1, bool, 1) F(i1, int8_t, 1) F(u1, uint8_t, 1) F(i2, int16_t, 1) F(u2, uint16_t, 1) F(i4, int32_t, 1)        \
    F(u4, uint32_t, 1) F(i8, int64_t, 1) F(u8, uint64_t, 1) F(f4, float, 1) F(f8, double, 1)                        \
    F(c8, float, 2) F(c16, double, 2)

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

/* The place of a number type among the destinations, by NumPy's number for it; the last one for float16; or -1. */
static inline int bcast_cast_place(int type)
{
    enum { LONG = sizeof(long) == 8 ? 7 : 5 };
    static const int places[] = {0, 1, 2, 3, 4, 5, 6, LONG, LONG + 1, 7, 8, 9, 10, -1, 11, 12, -1};
    return type == 23 ? 13 : type >= 0 && type <= 16 ? places[type] : -1;
}

/* What converts from one type to another; NULL where nothing here does. None loses a kind of number, but for bools,
   which say whether numbers are not 0. */
#define BCAST_CAST_NAME(from, From, VALUE, to, ...) bcast_##from##_as_##to,
#define BCAST_CASTS_ROW(...) {BCAST_SOURCES(BCAST_CAST_NAME, __VA_ARGS__)},
static inline bcast_cast bcast_cast_of(int from, int to)
{
    static const bcast_cast table[13][12] = {BCAST_DESTINATIONS(BCAST_CASTS_ROW)};
    const int src = bcast_cast_place(from), dst = bcast_cast_place(to);
    if (src < 0 || dst < 0 || dst == 13 || (src >= 9 && dst >= 1 && dst <= 8)) return NULL;
    if (src == 11 || src == 12) return dst == 12 ? bcast_c8_as_c16 : dst == 11 ? bcast_c16_as_c8 : NULL;
    return table[dst][src == 13 ? 11 : src];
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
