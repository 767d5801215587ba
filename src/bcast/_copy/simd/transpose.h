/* Transposition: items that lie side by side in the data come to lie a step apart, and those a step apart side by side. */

#ifndef BCAST_TRANSPOSE_H
#define BCAST_TRANSPOSE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../../_runtime/cpu.h"
#include "../../_runtime/target.h"

/* Copy m x n items: item (j, i) from data + j * m_step + i * n_step to out + j * out_step + i * size. */
#define BCAST_ARGUMENTS                                                                                                       \
    ptrdiff_t m, ptrdiff_t n, ptrdiff_t size, const uint8_t *data, ptrdiff_t m_step, ptrdiff_t n_step,                        \
    uint8_t *out, ptrdiff_t out_step

typedef void (*bcast_turn)(BCAST_ARGUMENTS);

/* Four at a time, so that more loads are under way. */
BCAST_INLINE void bcast_row_of(
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

/* Any steps, one item after the other, the longer loop inside. */
BCAST_INLINE void bcast_pick_of(BCAST_ARGUMENTS)
{
    if (n < 8 && n < m)
        for (ptrdiff_t i = 0; i < n; i++) bcast_row_of(m, size, data + i * n_step, m_step, out + i * size, out_step);
    else
        for (ptrdiff_t j = 0; j < m; j++) bcast_row_of(n, size, data + j * m_step, n_step, out + j * out_step, size);
}

static void bcast_pick(BCAST_ARGUMENTS)
{
    switch (size) {     /* a constant each, which makes memcpy a move or two */
    case 1: bcast_pick_of(m, n, 1, data, m_step, n_step, out, out_step); return;
    case 2: bcast_pick_of(m, n, 2, data, m_step, n_step, out, out_step); return;
    case 3: bcast_pick_of(m, n, 3, data, m_step, n_step, out, out_step); return;
    case 4: bcast_pick_of(m, n, 4, data, m_step, n_step, out, out_step); return;
    case 6: bcast_pick_of(m, n, 6, data, m_step, n_step, out, out_step); return;
    case 8: bcast_pick_of(m, n, 8, data, m_step, n_step, out, out_step); return;
    case 12: bcast_pick_of(m, n, 12, data, m_step, n_step, out, out_step); return;
    case 16: bcast_pick_of(m, n, 16, data, m_step, n_step, out, out_step); return;
    default: bcast_pick_of(m, n, size, data, m_step, n_step, out, out_step);
    }
}

/* Two, three or four channels, packed or unpacked: loops which the compiler makes vectors of. */
BCAST_INLINE void bcast_unpack_of(
    const int channels, ptrdiff_t n, const int size, const uint8_t *__restrict data, uint8_t *__restrict out, ptrdiff_t step)
{
    for (ptrdiff_t i = 0; i < n; i++)
        for (int j = 0; j < channels; j++) memcpy(out + j * step + i * size, data + (i * channels + j) * size, size);
}

BCAST_INLINE void bcast_pack_of(
    const int channels, ptrdiff_t n, const int size, const uint8_t *__restrict data, uint8_t *__restrict out, ptrdiff_t step)
{
    for (ptrdiff_t i = 0; i < n; i++)
        for (int j = 0; j < channels; j++) memcpy(out + (i * channels + j) * size, data + j * step + i * size, size);
}

#define BCAST_CHANNELS(name, target, item)                                                                                    \
BCAST_TARGET(target)                                                                                                          \
static int bcast_channels_##name##_##item(BCAST_ARGUMENTS)                                                                    \
{                                                                                                                             \
    if (n_step == m * size) {                                                                                                 \
        switch (m) {                                                                                                          \
        case 2: bcast_unpack_of(2, n, item, data, out, out_step); return 1;                                                   \
        case 3: bcast_unpack_of(3, n, item, data, out, out_step); return 1;                                                   \
        case 4: bcast_unpack_of(4, n, item, data, out, out_step); return 1;                                                   \
        }                                                                                                                     \
    }                                                                                                                         \
    if (out_step == n * size) {                                                                                               \
        switch (n) {                                                                                                          \
        case 2: bcast_pack_of(2, m, item, data, out, n_step); return 1;                                                       \
        case 3: bcast_pack_of(3, m, item, data, out, n_step); return 1;                                                       \
        case 4: bcast_pack_of(4, m, item, data, out, n_step); return 1;                                                       \
        }                                                                                                                     \
    }                                                                                                                         \
    (void) m_step;                                                                                                            \
    return 0;                                                                                                                 \
}

#define BCAST_NO_CHANNELS(...) 0

/* m_step == size. Squares of `side` x `side` items are transposed in registers: to interleave the upper half of the rows with
   the lower one, as often as halves can be halved, is to transpose. A vector has `lanes` squares of 16 bytes a row, of rows
   that follow each other. The last squares are laid back to end with the rest; where none fits, `smaller` does it. */
#define BCAST_TURN(name, target, item, side, lanes, channels, smaller, Vector, load, store, low, high)                        \
BCAST_TARGET(target)                                                                                                          \
static void bcast_turn_##name##_##item(BCAST_ARGUMENTS)                                                                       \
{                                                                                                                             \
    const ptrdiff_t rows = lanes * side;                                                                                      \
    if (channels(m, n, size, data, m_step, n_step, out, out_step)) return;                                                    \
    if (m < side || n < rows) {                                                                                               \
        smaller(m, n, size, data, m_step, n_step, out, out_step);                                                             \
        return;                                                                                                               \
    }                                                                                                                         \
    for (ptrdiff_t i = 0;; i = i + rows <= n - rows ? i + rows : n - rows) {                                                  \
        for (ptrdiff_t j = 0;; j = j + side <= m - side ? j + side : m - side) {                                              \
            const uint8_t *from = data + i * n_step + j * item;                                                               \
            uint8_t *to = out + j * out_step + i * item;                                                                      \
            Vector row[side], half[side];                                                                                     \
            for (int k = 0; k < side; k++) row[k] = load(from + k * n_step, side * n_step);                                   \
            for (int times = 1; times < side; times *= 2) {                                                                   \
                for (int k = 0; k < side / 2; k++) {                                                                          \
                    half[2 * k] = low(row[k], row[k + side / 2]);                                                             \
                    half[2 * k + 1] = high(row[k], row[k + side / 2]);                                                        \
                }                                                                                                             \
                for (int k = 0; k < side; k++) row[k] = half[k];                                                              \
            }                                                                                                                 \
            for (int k = 0; k < side; k++) store(to + k * out_step, row[k]);                                                  \
            if (j == m - side) break;                                                                                         \
        }                                                                                                                     \
        if (i == n - rows) break;                                                                                             \
    }                                                                                                                         \
}

#define BCAST_TURNS(name, target, lanes, smaller, Vector, load, store, low, high)                                             \
BCAST_CHANNELS(name, target, 1)                                                                                               \
BCAST_CHANNELS(name, target, 2)                                                                                               \
BCAST_CHANNELS(name, target, 4)                                                                                               \
BCAST_TURN(name, target, 1, 16, lanes, bcast_channels_##name##_1, smaller##1, Vector, load, store, low##8, high##8)           \
BCAST_TURN(name, target, 2, 8, lanes, bcast_channels_##name##_2, smaller##2, Vector, load, store, low##16, high##16)          \
BCAST_TURN(name, target, 4, 4, lanes, bcast_channels_##name##_4, smaller##4, Vector, load, store, low##32, high##32)          \
BCAST_TURN(name, target, 8, 2, lanes, BCAST_NO_CHANNELS, smaller##8, Vector, load, store, low##64, high##64)

#define BCAST_SMALLEST_1 bcast_pick
#define BCAST_SMALLEST_2 bcast_pick
#define BCAST_SMALLEST_4 bcast_pick
#define BCAST_SMALLEST_8 bcast_pick

#if defined(__x86_64__) || defined(_M_X64)

#include <immintrin.h>

#define BCAST_ROW_16(data, far) _mm_loadu_si128((const __m128i *) (data))
#define BCAST_PUT_16(out, vector) _mm_storeu_si128((__m128i *) (out), vector)
BCAST_TURNS(ssse3, "ssse3", 1, BCAST_SMALLEST_, __m128i, BCAST_ROW_16, BCAST_PUT_16, _mm_unpacklo_epi, _mm_unpackhi_epi)

#define BCAST_ROW_32(data, far)                                                                                              \
    _mm256_inserti128_si256(_mm256_castsi128_si256(BCAST_ROW_16(data, 0)), BCAST_ROW_16((data) + (far), 0), 1)
#define BCAST_PUT_32(out, vector) _mm256_storeu_si256((__m256i *) (out), vector)
BCAST_TURNS(
    avx2, "avx2", 2, bcast_turn_ssse3_, __m256i, BCAST_ROW_32, BCAST_PUT_32, _mm256_unpacklo_epi, _mm256_unpackhi_epi)

#elif defined(__aarch64__) || defined(_M_ARM64)

#include <arm_neon.h>

#define BCAST_ROW_NEON(data, far) vld1q_u8(data)
#define BCAST_ZIPPED(half, bits, a, b) \
    vreinterpretq_u8_u##bits(vzip##half##q_u##bits(vreinterpretq_u##bits##_u8(a), vreinterpretq_u##bits##_u8(b)))
#define BCAST_LOW_8 vzip1q_u8
#define BCAST_HIGH_8 vzip2q_u8
#define BCAST_LOW_16(a, b) BCAST_ZIPPED(1, 16, a, b)
#define BCAST_HIGH_16(a, b) BCAST_ZIPPED(2, 16, a, b)
#define BCAST_LOW_32(a, b) BCAST_ZIPPED(1, 32, a, b)
#define BCAST_HIGH_32(a, b) BCAST_ZIPPED(2, 32, a, b)
#define BCAST_LOW_64(a, b) BCAST_ZIPPED(1, 64, a, b)
#define BCAST_HIGH_64(a, b) BCAST_ZIPPED(2, 64, a, b)
BCAST_TURNS(neon, , 1, BCAST_SMALLEST_, uint8x16_t, BCAST_ROW_NEON, vst1q_u8, BCAST_LOW_, BCAST_HIGH_)

#endif

/* What copies items of a size that lie side by side, on a target that this machine has. */
static inline bcast_turn bcast_turn_of(int target, ptrdiff_t size)
{
#define BCAST_CASES(name)                               \
    switch (size) {                                     \
    case 1: return bcast_turn_##name##_1;               \
    case 2: return bcast_turn_##name##_2;               \
    case 4: return bcast_turn_##name##_4;               \
    case 8: return bcast_turn_##name##_8;               \
    }
#if defined(__x86_64__) || defined(_M_X64)
    if (target == BCAST_AVX2 || target == BCAST_AVX512) BCAST_CASES(avx2)
    if (target == BCAST_SSSE3) BCAST_CASES(ssse3)
#elif defined(__aarch64__) || defined(_M_ARM64)
    if (target == BCAST_NEON) BCAST_CASES(neon)
#endif
    (void) target;
    return bcast_pick;
}

#endif
