/* Functions for the loops around the kernels: they copy pieces side by side, and prefetch. */

#ifndef BCAST_PIECES_H
#define BCAST_PIECES_H

#include <stddef.h>
#include <string.h>

#include "table.h"
#include "../../_runtime/cpu.h"
#include "../../_runtime/target.h"

/* Prefetch bytes that will be read soon. */
static inline void bcast_fetch(const char *src, ptrdiff_t nbytes)
{
#ifdef __GNUC__
    for (ptrdiff_t at = 0; at < nbytes; at += BCAST_LINE) __builtin_prefetch(src + at);
#else
    (void) src;
    (void) nbytes;
#endif
}

/* Copy `count` pieces of `size` bytes side by side; `stride` is the stride between pieces, in bytes. */
BCAST_INLINE void bcast_gather_of(
    const ptrdiff_t size, char *BCAST_RESTRICT dst, const char *BCAST_RESTRICT src, ptrdiff_t stride, ptrdiff_t count)
{
    for (ptrdiff_t i = 0; i < count; i++) memcpy(dst + i * size, src + i * stride, size);
}

#define BCAST_CASE_GATHER(size) case size: bcast_gather_of(size, dst, src, stride, count); break;

/* The same for pieces of one item: compilers vectorise loops over every second item. */
#define BCAST_CASE_GATHER_ITEMS(size)                                                   \
    case size:                                                                          \
        if (stride == 2 * size) bcast_gather_of(size, dst, src, 2 * size, count);       \
        else bcast_gather_of(size, dst, src, stride, count);                            \
        break;

static inline void bcast_gather(char *dst, const char *src, ptrdiff_t stride, ptrdiff_t count, ptrdiff_t size)
{
    switch (size) {     /* for few bytes, a call of memcpy costs more than the copy */
    BCAST_CASE_GATHER_ITEMS(1) BCAST_CASE_GATHER_ITEMS(2) BCAST_CASE_GATHER_ITEMS(4) BCAST_CASE_GATHER_ITEMS(8)
    BCAST_CASE_GATHER(12) BCAST_CASE_GATHER(16) BCAST_CASE_GATHER(24)
    BCAST_CASE_GATHER(32) BCAST_CASE_GATHER(48) BCAST_CASE_GATHER(64)
    default: bcast_gather_of(size, dst, src, stride, count);
    }
}

/* Copy pieces side by side, of `n` items with a stride of `stride` bytes: the factors of a row. One factor may be
   repeated for all items. Arguments come one by one, so that compilers recognise the constant ones. */
BCAST_INLINE void bcast_spread_of(
    const ptrdiff_t size, const ptrdiff_t n, char *BCAST_RESTRICT dst, const char *BCAST_RESTRICT src,
    ptrdiff_t piece_stride, ptrdiff_t pieces, ptrdiff_t stride)
{
    for (ptrdiff_t i = 0; i < pieces; i++, src += piece_stride)
        for (ptrdiff_t j = 0; j < n; j++, dst += size) memcpy(dst, src + j * stride, size);
}

/* The same for pieces that repeat one item `n` times, four times or more. The last four may be written twice. */
BCAST_INLINE void bcast_spread_longer(
    const ptrdiff_t size, char *BCAST_RESTRICT dst, const char *BCAST_RESTRICT src, ptrdiff_t piece_stride,
    ptrdiff_t pieces, ptrdiff_t n)
{
    char four[32];

    for (ptrdiff_t i = 0; i < pieces; i++, src += piece_stride, dst += n * size) {
        for (int j = 0; j < 4; j++) memcpy(four + j * size, src, size);
        for (ptrdiff_t j = 0; j + 4 < n; j += 4) memcpy(dst + j * size, four, 4 * size);
        memcpy(dst + (n - 4) * size, four, 4 * size);
    }
}

/* Compilers keep the repeated item of a piece in a register. Arguments come one by one, as above. */
BCAST_INLINE void bcast_spread_items(
    const ptrdiff_t size, char *BCAST_RESTRICT dst, const char *BCAST_RESTRICT src, ptrdiff_t piece_stride,
    ptrdiff_t pieces, ptrdiff_t stride, ptrdiff_t n)
{
    if (stride != 0) bcast_spread_of(size, n, dst, src, piece_stride, pieces, stride);
    else if (n == 2) bcast_spread_of(size, 2, dst, src, piece_stride, pieces, 0);
    else if (n == 3) bcast_spread_of(size, 3, dst, src, piece_stride, pieces, 0);
    else if (n >= 4) bcast_spread_longer(size, dst, src, piece_stride, pieces, n);
    else bcast_spread_of(size, 1, dst, src, piece_stride, pieces, 0);
}

/* Arguments come one by one, as above. */
static inline void bcast_spread(
    ptrdiff_t size, char *dst, const char *src, ptrdiff_t piece_stride, ptrdiff_t pieces, ptrdiff_t stride, ptrdiff_t n)
{
    switch (size) {
    case 2: bcast_spread_items(2, dst, src, piece_stride, pieces, stride, n); break;
    case 4: bcast_spread_items(4, dst, src, piece_stride, pieces, stride, n); break;
    case 8: bcast_spread_items(8, dst, src, piece_stride, pieces, stride, n); break;
    default: bcast_spread_of(size, n, dst, src, piece_stride, pieces, stride);
    }
}

/* Write the squares of integers of 8 or 16 bits, or of bools, contiguously, in 64 bits. Compilers vectorise loops over
   adjacent items. */
#define BCAST_SQUARE_ITEMS(Item, Root, root)                                            \
    for (ptrdiff_t i = 0; i < n; i++) {                                                 \
        Item x;                                                                         \
        memcpy(&x, src + i * stride, sizeof x);                                         \
        const Root r = (Root) (root);                                                   \
        dst[i] = (uint64_t) (r * r);                                                    \
    }                                                                                   \
    break;
#define BCAST_CASE_SQUARE(NAME, Item, Root, root)                                       \
    case BCAST_##NAME:                                                                  \
        if (stride == (ptrdiff_t) sizeof(Item)) {                                       \
            const ptrdiff_t stride = sizeof(Item);                                      \
            BCAST_SQUARE_ITEMS(Item, Root, root)                                        \
        }                                                                               \
        BCAST_SQUARE_ITEMS(Item, Root, root)

static inline void bcast_pack_squares(
    int dtype, uint64_t *BCAST_RESTRICT dst, const char *BCAST_RESTRICT src, ptrdiff_t stride, ptrdiff_t n)
{
    switch (dtype) {
    BCAST_CASE_SQUARE(BOOL, uint8_t, uint32_t, x != 0)
    BCAST_CASE_SQUARE(INT8, int8_t, int32_t, x)
    BCAST_CASE_SQUARE(UINT8, uint8_t, uint32_t, x)
    BCAST_CASE_SQUARE(INT16, int16_t, int32_t, x)
    BCAST_CASE_SQUARE(UINT16, uint16_t, uint32_t, x)
    }
}

/* Whether some floats, given by their bits, are 0 or have the exponent of infinity: then one of the additions sets the
   sign bit. Compilers vectorise additions, but not comparisons of 64 bits on old CPUs. */
#define BCAST_HAS_SPECIAL(name, Bits)                                                   \
    static inline int name(const Bits *bits, ptrdiff_t n, Bits infinity)                \
    {                                                                                   \
        const Bits sign = (Bits) ((Bits) 1 << (8 * sizeof(Bits) - 1));                  \
        const Bits all_but_sign = (Bits) (sign - 1), up = (Bits) (sign - infinity);     \
        Bits found = 0;                                                                 \
        for (ptrdiff_t i = 0; i < n; i++) {                                             \
            const Bits size = (Bits) (bits[i] & all_but_sign);                          \
            found = (Bits) (found | (Bits) (size + up) | (Bits) (size - 1));            \
        }                                                                               \
        return (found & sign) != 0;                                                     \
    }
BCAST_HAS_SPECIAL(bcast_has_special_16, uint16_t)
BCAST_HAS_SPECIAL(bcast_has_special_32, uint32_t)
BCAST_HAS_SPECIAL(bcast_has_special_64, uint64_t)

#endif
