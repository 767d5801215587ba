/* Matrices of items copied: side by side in the output, and at any steps in the data. */

#ifndef BCAST_TRANSPOSE_H
#define BCAST_TRANSPOSE_H

#include <string.h>

#include "program.h"
#include "../../_runtime/cpu.h"
#include "../../_runtime/target.h"

/* `n` items, four at a time, so that more loads are under way. */
BCAST_INLINE void bcast_copy_row(
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
BCAST_INLINE void bcast_strided_copy_of(
    ptrdiff_t size, const bcast_matrix *matrix, const uint8_t *src, uint8_t *dst)
{
    const ptrdiff_t m = matrix->m, n = matrix->n, m_step = matrix->m_step, n_step = matrix->n_step;
    const ptrdiff_t dst_step = matrix->dst_step;
    if (n < 8 && n < m)
        for (ptrdiff_t i = 0; i < n; i++) bcast_copy_row(m, size, src + i * n_step, m_step, dst + i * size, dst_step);
    else
        for (ptrdiff_t j = 0; j < m; j++) bcast_copy_row(n, size, src + j * m_step, n_step, dst + j * dst_step, size);
}

#define BCAST_CASE_COPY(size) case size: bcast_strided_copy_of(size, matrix, src, dst); return;
static void bcast_strided_copy(const bcast_matrix *matrix, const uint8_t *src, uint8_t *dst)
{
    switch (matrix->size) {     /* a constant each, which makes memcpy a move or two */
        BCAST_CASE_COPY(1) BCAST_CASE_COPY(2) BCAST_CASE_COPY(3) BCAST_CASE_COPY(4) BCAST_CASE_COPY(6)
        BCAST_CASE_COPY(8) BCAST_CASE_COPY(12) BCAST_CASE_COPY(16)
    default: bcast_strided_copy_of(matrix->size, matrix, src, dst);
    }
}

/* `n` items of each of a few channels, of which the data or the output has all side by side; constants make it a loop
   of which the compiler makes vectors. */
BCAST_INLINE void bcast_copy_channels(
    const int channels, const int size, ptrdiff_t n, const uint8_t *__restrict src, ptrdiff_t src_item,
    ptrdiff_t src_channel, uint8_t *__restrict dst, ptrdiff_t dst_item, ptrdiff_t dst_channel)
{
    for (ptrdiff_t i = 0; i < n; i++)
        for (int j = 0; j < channels; j++)
            memcpy(dst + i * dst_item + j * dst_channel, src + i * src_item + j * src_channel, size);
}

/* `n` items at a step of a few items, forwards or backwards; constants make it a loop of which the compiler makes
   vectors. It reads no further than to the last item: what lies behind that may be nobody's. */
BCAST_INLINE void bcast_copy_at_step(
    const int step, const int size, ptrdiff_t n, const uint8_t *__restrict src, uint8_t *__restrict dst)
{
    for (ptrdiff_t i = 0; i < n; i++) memcpy(dst + i * size, src + i * step * size, size);
}

/* Unpack two, three or four channels that take turns in the data, or pack them so in the output; tell whether it is
   that. */
#define BCAST_UNPACK(k) case k: \
    bcast_copy_channels(k, size, matrix->n, src, k * size, size, dst, size, matrix->dst_step); return 1;
#define BCAST_PACK(k) case k: \
    bcast_copy_channels(k, size, matrix->m, src, size, matrix->n_step, dst, k * size, size); return 1;
BCAST_INLINE int bcast_copy_channels_of(
    const int size, const bcast_matrix *matrix, const uint8_t *src, uint8_t *dst)
{
    if (matrix->n_step == matrix->m * size) switch (matrix->m) { BCAST_UNPACK(2) BCAST_UNPACK(3) BCAST_UNPACK(4) }
    if (matrix->dst_step == matrix->n * size) switch (matrix->n) { BCAST_PACK(2) BCAST_PACK(3) BCAST_PACK(4) }
    return 0;
}

#if defined(__x86_64__) || defined(_M_X64)

#include <immintrin.h>

/* Interleave items of one half of two vectors, 'lo' or 'hi'. */
#define BCAST_INTERLEAVED(name, half, target, Vector, prefix)                           \
    BCAST_TARGET(target) BCAST_INLINE Vector name(const int size, Vector a, Vector b)   \
    {                                                                                   \
        switch (size) {                                                                 \
        case 1: return prefix##_unpack##half##_epi8(a, b);                              \
        case 2: return prefix##_unpack##half##_epi16(a, b);                             \
        case 4: return prefix##_unpack##half##_epi32(a, b);                             \
        default: return prefix##_unpack##half##_epi64(a, b);                            \
        }                                                                               \
    }
BCAST_INTERLEAVED(bcast_low_ssse3, lo, "ssse3", __m128i, _mm)
BCAST_INTERLEAVED(bcast_high_ssse3, hi, "ssse3", __m128i, _mm)
BCAST_INTERLEAVED(bcast_low_avx2, lo, "avx2", __m256i, _mm256)
BCAST_INTERLEAVED(bcast_high_avx2, hi, "avx2", __m256i, _mm256)

#define BCAST_LOAD_16(src) _mm_loadu_si128((const __m128i *) (src))
#define TARGET ssse3
#define ON_TARGET BCAST_TARGET("ssse3")
#define Vector __m128i
#define LOAD(src, second) BCAST_LOAD_16(src)
#define STORE(dst, vector) _mm_storeu_si128((__m128i *) (dst), vector)
#define SMALLER bcast_strided_copy
#define COPY_CHANNELS bcast_copy_channels_of
#include "transpose.inc.h"

#define TARGET avx2
#define ON_TARGET BCAST_TARGET("avx2")
#define Vector __m256i
#define LOAD(src, second) \
    _mm256_inserti128_si256(_mm256_castsi128_si256(BCAST_LOAD_16(src)), BCAST_LOAD_16((src) + (second)), 1)
#define STORE(dst, vector) _mm256_storeu_si256((__m256i *) (dst), vector)
#define SMALLER bcast_copy_matrix_ssse3
#define COPY_CHANNELS bcast_copy_channels_avx2

/* Three channels of items of 1 or 2 bytes, for which compilers' code takes twice as long. Three lanes of 16 bytes have
   items of all channels. As 3 does not divide 16, a place in a lane is a channel's in one of the three alone: blended,
   they are that channel's lane, but for its order. The other way round, order comes first. Returns how many it copied
   of n items of each. */
ON_TARGET BCAST_INLINE ptrdiff_t bcast_copy_three_channels(
    const int size, const int packs, ptrdiff_t n, const uint8_t *src, uint8_t *dst, ptrdiff_t channel)
{
    const int factor = packs ? 11 : 3, turn = packs ? -11 : 1;      /* 3 * 11 is 1, modulo 16 and modulo 8 */
    const int items = (int) sizeof(Vector) / size, next = 3 - size; /* from lane to lane, a channel's places move */
    uint8_t places[3][sizeof(Vector)], are_third[3][sizeof(Vector)];
    Vector order[3], third[3], x[3];
    for (int c = 0; c < 3; c++)
        for (int i = 0; i < (int) sizeof(Vector); i++) {
            places[c][i] = (uint8_t) (((i % 16 / size * factor + c * turn) * size + i % size) & 15);
            are_third[c][i] = i % 16 / size % 3 == c ? 255 : 0;
        }
    memcpy(order, places, sizeof order);
    memcpy(third, are_third, sizeof third);
    ptrdiff_t at = 0;
    for (; at + items <= n; at += items, src += packs ? 32 : 96, dst += packs ? 96 : 32) {
        for (int k = 0; k < 3; k++)
            x[k] = packs ? _mm256_loadu_si256((const Vector *) (src + k * channel)) : LOAD(src + 16 * k, 48);
        for (int k = 0; k < 3 && packs; k++) x[k] = _mm256_shuffle_epi8(x[k], order[k]);
        for (int k = 0; k < 3; k++) {
            const int second = packs ? 1 + next * k : k + next, last = packs ? 2 + next * k : k + 2 * next;
            const Vector two = _mm256_blendv_epi8(x[0], x[1], third[second % 3]);
            const Vector all = _mm256_blendv_epi8(two, x[2], third[last % 3]);
            if (packs) _mm256_storeu2_m128i((__m128i *) (dst + 16 * k + 48), (__m128i *) (dst + 16 * k), all);
            else STORE(dst + k * channel, _mm256_shuffle_epi8(all, order[k]));
        }
    }
    return at;
}
ON_TARGET BCAST_INLINE int bcast_copy_channels_avx2(
    const int size, const bcast_matrix *matrix, const uint8_t *src, uint8_t *dst)
{
    bcast_matrix rest = *matrix;
    ptrdiff_t at = 0;
    const int packs = matrix->n == 3 && matrix->dst_step == 3 * size;
    if (size <= 2 && packs)
        rest.m -= at = bcast_copy_three_channels(size, 1, matrix->m, src, dst, matrix->n_step);
    else if (size <= 2 && matrix->m == 3 && matrix->n_step == 3 * size)
        rest.n -= at = bcast_copy_three_channels(size, 0, matrix->n, src, dst, matrix->dst_step);
    at *= size;
    return bcast_copy_channels_of(size, &rest, src + (packs ? at : 3 * at), dst + (packs ? 3 * at : at));
}
#include "transpose.inc.h"

#elif defined(__aarch64__) || defined(_M_ARM64)

#include <arm_neon.h>

#define BCAST_ZIPPED(half, bits, a, b) \
    vreinterpretq_u8_u##bits(vzip##half##q_u##bits(vreinterpretq_u##bits##_u8(a), vreinterpretq_u##bits##_u8(b)))

#define BCAST_INTERLEAVED(name, half)                                                           \
    BCAST_INLINE uint8x16_t name(const int size, uint8x16_t a, uint8x16_t b)                    \
    {                                                                                           \
        switch (size) {                                                                         \
        case 1: return vzip##half##q_u8(a, b);                                                  \
        case 2: return BCAST_ZIPPED(half, 16, a, b);                                            \
        case 4: return BCAST_ZIPPED(half, 32, a, b);                                            \
        default: return BCAST_ZIPPED(half, 64, a, b);                                           \
        }                                                                                       \
    }
BCAST_INTERLEAVED(bcast_low_neon, 1)
BCAST_INTERLEAVED(bcast_high_neon, 2)

#define TARGET neon
#define ON_TARGET
#define Vector uint8x16_t
#define LOAD(src, second) vld1q_u8(src)
#define STORE(dst, vector) vst1q_u8(dst, vector)
#define SMALLER bcast_strided_copy
#define COPY_CHANNELS bcast_copy_channels_of
#include "transpose.inc.h"

#endif

/* What copies a matrix on each target. */
#define bcast_copy_matrix_plain bcast_strided_copy
#define BCAST_COPY_MATRIX(name, kernels, ...) bcast_copy_matrix_##kernels,
static const bcast_copy_matrix bcast_copy_matrix_of[] = {BCAST_TARGETS(BCAST_COPY_MATRIX)};

#endif
