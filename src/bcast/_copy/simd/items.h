/* Matrices whose items are copied one by one, on any target. Compilers vectorise some of these loops, for the
   instruction set of the function into which they are inlined. */

#ifndef BCAST_ITEMS_H
#define BCAST_ITEMS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kernels.h"
#include "../../_runtime/target.h"

namespace bcast {
namespace {

/* ---- Items at any strides ---- */

/* `n` items, four at a time, for more loads in flight. */
BCAST_INLINE void copy_row(
    ptrdiff_t n, ptrdiff_t size, const uint8_t *src, ptrdiff_t src_step, uint8_t *dst, ptrdiff_t dst_step)
{
    for (; n >= 4; n -= 4, src += 4 * src_step, dst += 4 * dst_step) {
        memcpy(dst, src, size);
        memcpy(dst + dst_step, src + src_step, size);
        memcpy(dst + 2 * dst_step, src + 2 * src_step, size);
        memcpy(dst + 3 * dst_step, src + 3 * src_step, size);
    }
    for (; n > 0; n--, src += src_step, dst += dst_step) memcpy(dst, src, size);
}

/* One item after the other, the longer loop inside. */
BCAST_INLINE void copy_items_of(ptrdiff_t size, const bcast_matrix *matrix, const uint8_t *src, uint8_t *dst)
{
    const ptrdiff_t m = matrix->m, n = matrix->n;
    const ptrdiff_t m_step = matrix->m_step, n_step = matrix->n_step, dst_step = matrix->dst_step;

    if (n < 8 && n < m)
        for (ptrdiff_t i = 0; i < n; i++) copy_row(m, size, src + i * n_step, m_step, dst + i * size, dst_step);
    else
        for (ptrdiff_t j = 0; j < m; j++) copy_row(n, size, src + j * m_step, n_step, dst + j * dst_step, size);
}

static void copy_items(const bcast_matrix *matrix, const uint8_t *src, uint8_t *dst)
{
    switch (matrix->size) {     /* constants turn memcpy into a move or two */
    case 1: return copy_items_of(1, matrix, src, dst);
    case 2: return copy_items_of(2, matrix, src, dst);
    case 3: return copy_items_of(3, matrix, src, dst);
    case 4: return copy_items_of(4, matrix, src, dst);
    case 6: return copy_items_of(6, matrix, src, dst);
    case 8: return copy_items_of(8, matrix, src, dst);
    case 12: return copy_items_of(12, matrix, src, dst);
    case 16: return copy_items_of(16, matrix, src, dst);
    default: copy_items_of(matrix->size, matrix, src, dst);
    }
}

/* `n` items at a stride of a few items, forwards or backwards. It reads nothing after the last item: that memory may
   not be mapped. */
template <int step, int size>
BCAST_INLINE void copy_at_step(ptrdiff_t n, const uint8_t *BCAST_RESTRICT src, uint8_t *BCAST_RESTRICT dst)
{
    for (ptrdiff_t i = 0; i < n; i++) memcpy(dst + i * size, src + i * step * size, size);
}

/* ---- Channels ---- */

/* The layout of channels: bytes from an item to the next one of its channel, and from channel to channel. */
struct Layout {
    ptrdiff_t item;
    ptrdiff_t channel;
};

/* `n` items of each of a few channels, which are interleaved in the data or in the output. */
template <int channels, int size>
BCAST_INLINE void copy_channels(
    ptrdiff_t n, const uint8_t *BCAST_RESTRICT src, Layout from, uint8_t *BCAST_RESTRICT dst, Layout to)
{
    for (ptrdiff_t i = 0; i < n; i++)
        for (int j = 0; j < channels; j++)
            memcpy(dst + i * to.item + j * to.channel, src + i * from.item + j * from.channel, size);
}

/* Channels that are interleaved in the data get separate rows: r0 g0 b0 r1 g1 b1 ... -> r0 r1 ..., g0 g1 ..., b0 b1 ...
   It returns true, as a step of `copy`. */
template <int channels, int size>
BCAST_INLINE bool unpack(const bcast_matrix *matrix, const uint8_t *src, uint8_t *dst)
{
    copy_channels<channels, size>(matrix->n, src, {channels * size, size}, dst, {size, matrix->dst_step});
    return true;
}

/* The reverse. */
template <int channels, int size>
BCAST_INLINE bool pack(const bcast_matrix *matrix, const uint8_t *src, uint8_t *dst)
{
    copy_channels<channels, size>(matrix->m, src, {size, matrix->n_step}, dst, {channels * size, size});
    return true;
}

/* A matrix of two, three or four channels, by the loops above. */
struct ChannelLoops {
    /* Copy it, if it is one; return whether it is. */
    template <int size>
    BCAST_INLINE bool copy(const bcast_matrix *matrix, const uint8_t *src, uint8_t *dst)
    {
        if (matrix->n_step == matrix->m * size) switch (matrix->m) {
            case 2: return unpack<2, size>(matrix, src, dst);
            case 3: return unpack<3, size>(matrix, src, dst);
            case 4: return unpack<4, size>(matrix, src, dst);
        }
        if (matrix->dst_step == matrix->n * size) switch (matrix->n) {
            case 2: return pack<2, size>(matrix, src, dst);
            case 3: return pack<3, size>(matrix, src, dst);
            case 4: return pack<4, size>(matrix, src, dst);
        }
        return false;
    }
};

}
}

#endif
