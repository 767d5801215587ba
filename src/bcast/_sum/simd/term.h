/* Terms of any layout, byte order and dtype, packed for the leaves. */

#ifndef BCAST_TERM_H
#define BCAST_TERM_H

#include "leaves.h"

static inline uint8_t bcast_swapped_1(uint8_t x) { return x; }
static inline uint16_t bcast_swapped_2(uint16_t x) { return (uint16_t) (x << 8 | x >> 8); }
static inline uint32_t bcast_swapped_4(uint32_t x)
{
    return (uint32_t) bcast_swapped_2((uint16_t) x) << 16 | bcast_swapped_2((uint16_t) (x >> 16));
}
static inline uint64_t bcast_swapped_8(uint64_t x)
{
    return (uint64_t) bcast_swapped_4((uint32_t) x) << 32 | bcast_swapped_4((uint32_t) (x >> 32));
}

#define BCAST_PACK(name, Bits, To, value)                                                   \
static void bcast_pack_##name(void *to, const char *at, ptrdiff_t step, ptrdiff_t n)        \
{                                                                                           \
    To *items = to;                                                                         \
    if (step == 2 * (ptrdiff_t) sizeof(Bits)) {     /* compilers make vectors of every second item */ \
        for (ptrdiff_t i = 0; i < n; i++) {                                                 \
            const Bits x = BCAST_AT(const Bits, at, 2 * i);                                 \
            items[i] = value;                                                               \
        }                                                                                   \
        return;                                                                             \
    }                                                                                       \
    for (ptrdiff_t i = 0; i < n; i++, at += step) {                                         \
        Bits x;                                                                             \
        memcpy(&x, at, sizeof x);                                                           \
        items[i] = value;                                                                   \
    }                                                                                       \
}
/* As it is, and with the bytes swapped. */
#define BCAST_PACKS(size, Bits)                                                             \
    BCAST_PACK(same_##size, Bits, Bits, x)                                                  \
    BCAST_PACK(swapped_##size, Bits, Bits, bcast_swapped_##size(x))
BCAST_PACK(same_1, uint8_t, uint8_t, x)
BCAST_PACKS(2, uint16_t)
BCAST_PACKS(4, uint32_t)
BCAST_PACKS(8, uint64_t)

/* Widened to an integer that wraps at 64 bits, as narrower ones then do at theirs, or to float64. */
#define BCAST_WIDE(name, size, Bits, value)                                                 \
    BCAST_PACK(name##_u64, Bits, uint64_t, (uint64_t) value(x))                             \
    BCAST_PACK(name##_f64, Bits, double, (double) value(x))                                 \
    BCAST_PACK(name##_swapped_u64, Bits, uint64_t, (uint64_t) value(bcast_swapped_##size(x)))       \
    BCAST_PACK(name##_swapped_f64, Bits, double, (double) value(bcast_swapped_##size(x)))
#define BCAST_FLOAT(name, size, Bits, value)                                                \
    BCAST_PACK(name##_f64, Bits, double, value(x))                                          \
    BCAST_PACK(name##_swapped_f64, Bits, double, value(bcast_swapped_##size(x)))
#define BCAST_IS_SET(x) ((x) != 0)
BCAST_WIDE(bool, 1, uint8_t, BCAST_IS_SET)
BCAST_WIDE(int8, 1, uint8_t, (int8_t))
BCAST_WIDE(int16, 2, uint16_t, (int16_t))
BCAST_WIDE(int32, 4, uint32_t, (int32_t))
BCAST_WIDE(int64, 8, uint64_t, (int64_t))
BCAST_WIDE(uint8, 1, uint8_t, (uint8_t))
BCAST_WIDE(uint16, 2, uint16_t, (uint16_t))
BCAST_WIDE(uint32, 4, uint32_t, (uint32_t))
BCAST_WIDE(uint64, 8, uint64_t, (uint64_t))
BCAST_FLOAT(float16, 2, uint16_t, bcast_f16_of)
BCAST_FLOAT(bfloat16, 2, uint16_t, bcast_bf16_of)
BCAST_FLOAT(float32, 4, uint32_t, bcast_f32_of)

/* The packing that turns terms, of the host's byte order or swapped, into wider ones of `kind`, U64 or F64. */
static bcast_pack bcast_pack_widened(int term, int kind, int swapped)
{
#define BCAST_ROW(name) {{bcast_pack_##name##_u64, bcast_pack_##name##_swapped_u64}, \
                         {bcast_pack_##name##_f64, bcast_pack_##name##_swapped_f64}}
#define BCAST_FLOAT_ROW(name) {{NULL, NULL}, {bcast_pack_##name##_f64, bcast_pack_##name##_swapped_f64}}
    static const bcast_pack packs[BCAST_FLOAT64][2][2] = {
        BCAST_ROW(bool), BCAST_ROW(int8), BCAST_ROW(int16), BCAST_ROW(int32), BCAST_ROW(int64),
        BCAST_ROW(uint8), BCAST_ROW(uint16), BCAST_ROW(uint32), BCAST_ROW(uint64),
        BCAST_FLOAT_ROW(float16), BCAST_FLOAT_ROW(bfloat16), BCAST_FLOAT_ROW(float32),
    };
    return packs[term][kind == BCAST_F64][swapped != 0];
}

/* The packing that leaves terms of so many bytes as they are, but for the order of these. */
static bcast_pack bcast_pack_same(int size, int swapped)
{
    switch (size) {
    case 1: return bcast_pack_same_1;
    case 2: return swapped ? bcast_pack_swapped_2 : bcast_pack_same_2;
    case 4: return swapped ? bcast_pack_swapped_4 : bcast_pack_same_4;
    default: return swapped ? bcast_pack_swapped_8 : bcast_pack_same_8;
    }
}

#endif
