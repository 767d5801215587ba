/* Items of one number type as those of another that holds all their values, bool too; and in another byte order. */

#ifndef BCAST_CASTS_H
#define BCAST_CASTS_H

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

typedef struct { float real, imag; } bcast_cfloat;
typedef struct { double real, imag; } bcast_cdouble;

#define BCAST_VALUE(x) (x)
#define BCAST_STORE(item, To, value) item = (To) (value)
#define BCAST_STORE_BOOL(item, To, value) item = (value) != 0
#define BCAST_STORE_COMPLEX(item, To, value) item.real = (value), item.imag = 0

#define BCAST_CAST(from, From, VALUE, to, To, STORE)                                        \
    static void bcast_##from##_as_##to(ptrdiff_t n, const void *src, void *dst)             \
    {                                                                                       \
        const From *x = (const From *) src;                                                 \
        To *y = (To *) dst;                                                                 \
        for (ptrdiff_t i = 0; i < n; i++) STORE(y[i], To, VALUE(x[i]));                     \
    }
#define BCAST_CASTS_TO(to, To, STORE)                                                                                \
    BCAST_CAST(b1, uint8_t, BCAST_VALUE, to, To, STORE) BCAST_CAST(i1, int8_t, BCAST_VALUE, to, To, STORE)           \
    BCAST_CAST(u1, uint8_t, BCAST_VALUE, to, To, STORE) BCAST_CAST(i2, int16_t, BCAST_VALUE, to, To, STORE)          \
    BCAST_CAST(u2, uint16_t, BCAST_VALUE, to, To, STORE) BCAST_CAST(i4, int32_t, BCAST_VALUE, to, To, STORE)         \
    BCAST_CAST(u4, uint32_t, BCAST_VALUE, to, To, STORE) BCAST_CAST(i8, int64_t, BCAST_VALUE, to, To, STORE)         \
    BCAST_CAST(u8, uint64_t, BCAST_VALUE, to, To, STORE) BCAST_CAST(f2, uint16_t, bcast_half_value, to, To, STORE)   \
    BCAST_CAST(f4, float, BCAST_VALUE, to, To, STORE) BCAST_CAST(f8, double, BCAST_VALUE, to, To, STORE)
#define BCAST_CASTS_ROW(to)                                                                                         \
    {bcast_b1_as_##to, bcast_i1_as_##to, bcast_u1_as_##to, bcast_i2_as_##to, bcast_u2_as_##to, bcast_i4_as_##to,    \
     bcast_u4_as_##to, bcast_i8_as_##to, bcast_u8_as_##to, bcast_f2_as_##to, bcast_f4_as_##to, bcast_f8_as_##to}

BCAST_CASTS_TO(b1, uint8_t, BCAST_STORE_BOOL)
BCAST_CASTS_TO(i1, int8_t, BCAST_STORE)
BCAST_CASTS_TO(u1, uint8_t, BCAST_STORE)
BCAST_CASTS_TO(i2, int16_t, BCAST_STORE)
BCAST_CASTS_TO(u2, uint16_t, BCAST_STORE)
BCAST_CASTS_TO(i4, int32_t, BCAST_STORE)
BCAST_CASTS_TO(u4, uint32_t, BCAST_STORE)
BCAST_CASTS_TO(i8, int64_t, BCAST_STORE)
BCAST_CASTS_TO(u8, uint64_t, BCAST_STORE)
BCAST_CASTS_TO(f4, float, BCAST_STORE)
BCAST_CASTS_TO(f8, double, BCAST_STORE)
BCAST_CASTS_TO(c8, bcast_cfloat, BCAST_STORE_COMPLEX)
BCAST_CASTS_TO(c16, bcast_cdouble, BCAST_STORE_COMPLEX)

static void bcast_c8_as_c16(ptrdiff_t n, const void *src, void *dst) { bcast_f4_as_f8(2 * n, src, dst); }
static void bcast_c16_as_c8(ptrdiff_t n, const void *src, void *dst) { bcast_f8_as_f4(2 * n, src, dst); }

/* The place of a number type in the table, by its kind and the size of an item; -1 for others. */
static inline int bcast_cast_place(char kind, int size)
{
    switch (kind) {
    case 'b': return 0;
    case 'i': return size == 1 ? 1 : size == 2 ? 3 : size == 4 ? 5 : size == 8 ? 7 : -1;
    case 'u': return size == 1 ? 2 : size == 2 ? 4 : size == 4 ? 6 : size == 8 ? 8 : -1;
    case 'f': return size == 2 ? 9 : size == 4 ? 10 : size == 8 ? 11 : -1;
    case 'c': return size == 8 ? 12 : size == 16 ? 13 : -1;
    }
    return -1;
}

/* What converts from one type to another; NULL where nothing here does. None loses a kind of number, but for bools,
   which say whether numbers are not 0. */
static inline bcast_cast bcast_cast_of(char from, int from_size, char to, int to_size)
{
    static const bcast_cast table[14][12] = {
        BCAST_CASTS_ROW(b1), BCAST_CASTS_ROW(i1), BCAST_CASTS_ROW(u1), BCAST_CASTS_ROW(i2), BCAST_CASTS_ROW(u2),
        BCAST_CASTS_ROW(i4), BCAST_CASTS_ROW(u4), BCAST_CASTS_ROW(i8), BCAST_CASTS_ROW(u8), {NULL},
        BCAST_CASTS_ROW(f4), BCAST_CASTS_ROW(f8), BCAST_CASTS_ROW(c8), BCAST_CASTS_ROW(c16)};
    const int place = bcast_cast_place(from, from_size), other = bcast_cast_place(to, to_size);
    if (place < 0 || other < 0) return NULL;
    if (place >= 12) return other == 13 ? bcast_c8_as_c16 : other == 12 ? bcast_c16_as_c8 : NULL;
    if (place >= 9 && other >= 1 && other <= 8) return NULL;
    return table[other][place];
}

/* The bytes of n units, each in the reverse order, in place: neighbours are exchanged, then pairs of them, then fours.
   Compilers make vector code of this for any target. */
#define BCAST_EXCHANGE(x, bits, mask) x = (x >> bits & mask) | (x & mask) << bits
#define BCAST_SWAP(Unit, name, ...)                                                                  \
    static void name(ptrdiff_t n, uint8_t *at)                                                       \
    {                                                                                                \
        for (const uint8_t *end = at + n * (ptrdiff_t) sizeof(Unit); at < end; at += sizeof(Unit)) { \
            Unit x;                                                                                  \
            memcpy(&x, at, sizeof x);                                                                \
            __VA_ARGS__;                                                                             \
            memcpy(at, &x, sizeof x);                                                                \
        }                                                                                            \
    }
BCAST_SWAP(uint16_t, bcast_swap_16, x = (uint16_t) (x >> 8 | x << 8))
BCAST_SWAP(uint32_t, bcast_swap_32, BCAST_EXCHANGE(x, 8, 0x00ff00ff); BCAST_EXCHANGE(x, 16, 0x0000ffff))
BCAST_SWAP(uint64_t, bcast_swap_64, BCAST_EXCHANGE(x, 8, 0x00ff00ff00ff00ff);
           BCAST_EXCHANGE(x, 16, 0x0000ffff0000ffff); BCAST_EXCHANGE(x, 32, 0x00000000ffffffff))

static inline void bcast_swap_bytes(ptrdiff_t n, int size, void *items)
{
    uint8_t *at = (uint8_t *) items;
    switch (size) {
    case 2: bcast_swap_16(n, at); return;
    case 4: bcast_swap_32(n, at); return;
    case 8: bcast_swap_64(n, at); return;
    default:
        for (; n > 0; n--, at += size)
            for (int i = 0; i < size / 2; i++) {
                const uint8_t byte = at[i];
                at[i] = at[size - 1 - i];
                at[size - 1 - i] = byte;
            }
    }
}

#endif
