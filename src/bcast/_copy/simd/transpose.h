/* Matrices of items copied: side by side in the output, and at any steps in the data. */

#ifndef BCAST_TRANSPOSE_H
#define BCAST_TRANSPOSE_H

#include <string.h>

#include "program.h"
#include "../../_runtime/cpu.h"
#include "../../_runtime/target.h"

/* `n` items, four at a time, so that more loads are under way. */
BCAST_INLINE void bcast_copy_row(
    ptrdiff_t n, ptrdiff_t size, const uint8_t *data, ptrdiff_t data_step, uint8_t *out, ptrdiff_t out_step)
{
    for (; n >= 4; n -= 4, data += 4 * data_step, out += 4 * out_step) {
        memcpy(out, data, size);
        memcpy(out + out_step, data + data_step, size);
        memcpy(out + 2 * out_step, data + 2 * data_step, size);
        memcpy(out + 3 * out_step, data + 3 * data_step, size);
    }
    for (; n > 0; n--, data += data_step, out += out_step) memcpy(out, data, size);
}

/* One item after the other, the longer loop inside. */
BCAST_INLINE void bcast_strided_copy_of(
    ptrdiff_t size, const bcast_matrix *matrix, const uint8_t *data, uint8_t *out)
{
    const ptrdiff_t m = matrix->m, n = matrix->n, m_step = matrix->m_step, n_step = matrix->n_step;
    const ptrdiff_t out_step = matrix->out_step;
    if (n < 8 && n < m)
        for (ptrdiff_t i = 0; i < n; i++) bcast_copy_row(m, size, data + i * n_step, m_step, out + i * size, out_step);
    else
        for (ptrdiff_t j = 0; j < m; j++) bcast_copy_row(n, size, data + j * m_step, n_step, out + j * out_step, size);
}

static void bcast_strided_copy(const bcast_matrix *matrix, const uint8_t *data, uint8_t *out)
{
    switch (matrix->size) {     /* a constant each, which makes memcpy a move or two */
    case 1: bcast_strided_copy_of(1, matrix, data, out); return;
    case 2: bcast_strided_copy_of(2, matrix, data, out); return;
    case 3: bcast_strided_copy_of(3, matrix, data, out); return;
    case 4: bcast_strided_copy_of(4, matrix, data, out); return;
    case 6: bcast_strided_copy_of(6, matrix, data, out); return;
    case 8: bcast_strided_copy_of(8, matrix, data, out); return;
    case 12: bcast_strided_copy_of(12, matrix, data, out); return;
    case 16: bcast_strided_copy_of(16, matrix, data, out); return;
    default: bcast_strided_copy_of(matrix->size, matrix, data, out);
    }
}

/* Loops over channels, which the compiler makes vectors of. */
BCAST_INLINE void bcast_unpack_channels(
    const int channels, const int size, const bcast_matrix *matrix, const uint8_t *__restrict data,
    uint8_t *__restrict out)
{
    const ptrdiff_t n = matrix->n, step = matrix->out_step;
    for (ptrdiff_t i = 0; i < n; i++)
        for (int j = 0; j < channels; j++) memcpy(out + j * step + i * size, data + (i * channels + j) * size, size);
}

BCAST_INLINE void bcast_pack_channels(
    const int channels, const int size, const bcast_matrix *matrix, const uint8_t *__restrict data,
    uint8_t *__restrict out)
{
    const ptrdiff_t m = matrix->m, step = matrix->n_step;
    for (ptrdiff_t j = 0; j < m; j++)
        for (int i = 0; i < channels; i++) memcpy(out + (j * channels + i) * size, data + i * step + j * size, size);
}

/* Unpack two, three or four channels that take turns in the data, or pack them so in the output; tell whether it is
   that. */
BCAST_INLINE int bcast_copy_channels_of(
    const int size, const bcast_matrix *matrix, const uint8_t *data, uint8_t *out)
{
    if (matrix->n_step == matrix->m * size) {
        switch (matrix->m) {
        case 2: bcast_unpack_channels(2, size, matrix, data, out); return 1;
        case 3: bcast_unpack_channels(3, size, matrix, data, out); return 1;
        case 4: bcast_unpack_channels(4, size, matrix, data, out); return 1;
        }
    }
    if (matrix->out_step == matrix->n * size) {
        switch (matrix->n) {
        case 2: bcast_pack_channels(2, size, matrix, data, out); return 1;
        case 3: bcast_pack_channels(3, size, matrix, data, out); return 1;
        case 4: bcast_pack_channels(4, size, matrix, data, out); return 1;
        }
    }
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

#define BCAST_LOAD_16(data) _mm_loadu_si128((const __m128i *) (data))
#define TARGET ssse3
#define ON_TARGET BCAST_TARGET("ssse3")
#define Vector __m128i
#define LANES 1
#define LOAD(data, second) BCAST_LOAD_16(data)
#define STORE(out, vector) _mm_storeu_si128((__m128i *) (out), vector)
#define SMALLER bcast_strided_copy
#include "transpose.inc.h"

#define TARGET avx2
#define ON_TARGET BCAST_TARGET("avx2")
#define Vector __m256i
#define LANES 2
#define LOAD(data, second) \
    _mm256_inserti128_si256(_mm256_castsi128_si256(BCAST_LOAD_16(data)), BCAST_LOAD_16((data) + (second)), 1)
#define STORE(out, vector) _mm256_storeu_si256((__m256i *) (out), vector)
#define SMALLER bcast_transpose_ssse3
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
#define LANES 1
#define LOAD(data, second) vld1q_u8(data)
#define STORE(out, vector) vst1q_u8(out, vector)
#define SMALLER bcast_strided_copy
#include "transpose.inc.h"

#endif

/* What copies a matrix whose items lie side by side in the data, too, on each target. */
#define bcast_transpose_plain bcast_strided_copy
#define BCAST_TRANSPOSE(name, ...) bcast_transpose_##name,
static const bcast_copy_matrix bcast_transpose_of[] = {BCAST_TARGETS(BCAST_TRANSPOSE)};

#endif
