/* The kernels of `program.h` for each target that is worth it. */

#ifndef BCAST_SHUFFLE_H
#define BCAST_SHUFFLE_H

#include <string.h>

#include "program.h"
#include "../../_runtime/cpu.h"
#include "../../_runtime/target.h"

/* The plain ones: the same shuffle tables, byte by byte. */

static void bcast_execute_plain(
    const bcast_shuffle_table *table, int vectors, ptrdiff_t times, const uint8_t *src, uint8_t *dst)
{
    for (; times > 0; times--, src += table->src_step, dst += table->dst_step)
        for (int i = 0; i < vectors; i++) {
            const uint8_t *window = src + table->src_at[i], *index = table->index + i * 16;
            uint8_t vector[16];
            for (int j = 0; j < 16; j++) vector[j] = window[index[j]];
            memcpy(dst + table->dst_at[i], vector, 16);
        }
}

static void bcast_repeat_rows_plain(const bcast_rows *rows, const uint8_t *src, uint8_t *dst)
{
    const ptrdiff_t size = rows->size, run = rows->times * size;
    for (ptrdiff_t n = rows->count; n > 0; n--, src += size, dst += run) {
        ptrdiff_t block = size, done = size;
        memcpy(dst, src, size);
        for (; done < run; done += block) {
            if (done <= BCAST_PASS_BYTES) block = done;
            memcpy(dst + done, dst, run - done < block ? run - done : block);
        }
    }
}

static void bcast_fill_plain(const bcast_shuffle_table *table, const bcast_rows *rows, const uint8_t *src, uint8_t *dst)
{
    (void) table;
    bcast_repeat_rows_plain(rows, src, dst);
}

static void bcast_repeat_counted_plain(
    const bcast_counted *items, const int64_t *counts, ptrdiff_t n, const uint8_t *src, uint8_t *dst)
{
    const ptrdiff_t step = 16 / items->size * items->size;
    for (; n > 0; n--, src += items->size) {
        uint8_t vector[16], *end = dst + *counts++ * items->size;
        for (int j = 0; j < 16; j++) vector[j] = src[items->index[j]];
        for (uint8_t *to = dst; to < end; to += step) memcpy(to, vector, 16);
        dst = end;
    }
}

static void bcast_repeat_counted_rows_plain(
    const bcast_rows *rows, const int64_t *counts, const uint8_t *src, uint8_t *dst)
{
    for (ptrdiff_t i = 0; i < rows->count; i++, src += rows->size)
        for (int64_t j = 0; j < counts[i]; j++, dst += rows->size) memcpy(dst, src, rows->size);
}

static void bcast_copy_to_many_plain(
    ptrdiff_t times, ptrdiff_t step, ptrdiff_t size, const uint8_t *src, uint8_t *dst)
{
    for (; times > 0; times--, dst += step) memcpy(dst, src, size);
}

static void bcast_tile_plain(ptrdiff_t block, ptrdiff_t size, uint8_t *dst)
{
    for (ptrdiff_t done = block; done < size; done += block)
        memcpy(dst + done, dst, size - done < block ? size - done : block);
}

#if defined(__x86_64__) || defined(_M_X64)

#include <immintrin.h>

#define TARGET ssse3
#define NARROWER plain
#define ON_TARGET BCAST_TARGET("ssse3")
#define Vector __m128i
#define VECTOR_BYTES 16
#define LOAD(src) _mm_loadu_si128((const __m128i *) (src))
#define STORE(dst, vector) _mm_storeu_si128((__m128i *) (dst), vector)
#define SHUFFLE(window, index) _mm_shuffle_epi8(LOAD(window), index)
#include "shuffle.inc.h"

/* Its shuffle stays within halves of 16 bytes, so both halves get the same window. */
#define TARGET avx2
#define NARROWER ssse3
#define ON_TARGET BCAST_TARGET("avx2")
#define Vector __m256i
#define VECTOR_BYTES 32
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
#define VECTOR_BYTES 16
#define LOAD(src) vld1q_u8(src)
#define STORE(dst, vector) vst1q_u8(dst, vector)
#define SHUFFLE(window, index) vqtbl1q_u8(LOAD(window), index)
#include "shuffle.inc.h"

#endif

/* The kernels of each target. */
#define BCAST_COPY_KERNELS(name, vector, has) \
    {vector, bcast_execute_##name, bcast_fill_##name, bcast_repeat_rows_##name, bcast_repeat_counted_##name, \
        bcast_repeat_counted_rows_##name, bcast_copy_to_many_##name, bcast_tile_##name},
static const bcast_copy_kernels bcast_copy_kernels_of[] = {BCAST_TARGETS(BCAST_COPY_KERNELS)};

#endif
