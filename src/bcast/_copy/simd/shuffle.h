/* The kernels of `program.h` for each target that is worth it. */

#ifndef BCAST_SHUFFLE_H
#define BCAST_SHUFFLE_H

#include <string.h>

#include "program.h"
#include "../../_runtime/cpu.h"
#include "../../_runtime/target.h"

/* For items of each size, what fills a vector with the one that its window begins with. */
#define BCAST_8_OF(n, i) \
    i % n, (i + 1) % n, (i + 2) % n, (i + 3) % n, (i + 4) % n, (i + 5) % n, (i + 6) % n, (i + 7) % n
#define BCAST_FILLED(n) {BCAST_8_OF(n, 0), BCAST_8_OF(n, 8), BCAST_8_OF(n, 16), BCAST_8_OF(n, 24)}
static const uint8_t bcast_fill_index[BCAST_WINDOW_BYTES + 1][BCAST_VECTOR_BYTES] = {
    {0}, BCAST_FILLED(1), BCAST_FILLED(2), BCAST_FILLED(3), BCAST_FILLED(4), BCAST_FILLED(5), BCAST_FILLED(6),
    BCAST_FILLED(7), BCAST_FILLED(8), BCAST_FILLED(9), BCAST_FILLED(10), BCAST_FILLED(11), BCAST_FILLED(12),
    BCAST_FILLED(13), BCAST_FILLED(14), BCAST_FILLED(15), BCAST_FILLED(16)
};

/* The plain target's vector: 16 bytes, which are shuffled one by one. */
typedef struct {
    uint8_t bytes[16];
} bcast_bytes;

BCAST_INLINE bcast_bytes bcast_shuffle_bytes(const uint8_t *window, bcast_bytes index)
{
    bcast_bytes vector;
    for (int i = 0; i < 16; i++) vector.bytes[i] = window[index.bytes[i]];
    return vector;
}

#define TARGET plain
#define NARROWER plain
#define ON_TARGET
#define Vector bcast_bytes
#define LOAD(src) (*(const bcast_bytes *) (src))
#define STORE(dst, vector) (*(bcast_bytes *) (dst) = (vector))
#define SHUFFLE(window, index) bcast_shuffle_bytes(window, index)
#include "shuffle.inc.h"

#if defined(__x86_64__) || defined(_M_X64)

#include <immintrin.h>

#define TARGET ssse3
#define NARROWER plain
#define ON_TARGET BCAST_TARGET("ssse3")
#define Vector __m128i
#define LOAD(src) _mm_loadu_si128((const __m128i *) (src))
#define STORE(dst, vector) _mm_storeu_si128((__m128i *) (dst), vector)
#define SHUFFLE(window, index) _mm_shuffle_epi8(LOAD(window), index)
#include "shuffle.inc.h"

/* Its shuffle stays within halves of 16 bytes, so both halves get the same window. */
#define TARGET avx2
#define NARROWER ssse3
#define ON_TARGET BCAST_TARGET("avx2")
#define Vector __m256i
#define LOAD(src) _mm256_loadu_si256((const __m256i *) (src))
#define STORE(dst, vector) _mm256_storeu_si256((__m256i *) (dst), vector)
#define SHUFFLE(window, index) \
    _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *) (window))), index)
#include "shuffle.inc.h"

#elif defined(__aarch64__) || defined(_M_ARM64)

#include <arm_neon.h>

#define TARGET neon
#define NARROWER plain
#define ON_TARGET
#define Vector uint8x16_t
#define LOAD(src) vld1q_u8(src)
#define STORE(dst, vector) vst1q_u8(dst, vector)
#define SHUFFLE(window, index) vqtbl1q_u8(LOAD(window), index)
#include "shuffle.inc.h"

#endif

/* The kernels of each target. */
#define BCAST_COPY_KERNELS(name, kernels, vector, has) \
    {vector, bcast_execute_##kernels, bcast_fill_##kernels, bcast_repeat_rows_##kernels, \
        bcast_repeat_counted_##kernels, bcast_copy_to_many_##kernels, bcast_tile_##kernels},
static const bcast_copy_kernels bcast_copy_kernels_of[] = {BCAST_TARGETS(BCAST_COPY_KERNELS)};

#endif
