/* The leaves of `program.h` for each target that is worth it. */

#ifndef BCAST_SHUFFLE_H
#define BCAST_SHUFFLE_H

#include <string.h>

#include "program.h"
#include "../../_runtime/cpu.h"
#include "../../_runtime/target.h"

/* The plain ones: the same programs, byte by byte. */

static void bcast_execute_plain(
    const bcast_program *program, int vectors, ptrdiff_t times, const uint8_t *data, uint8_t *out)
{
    for (; times > 0; times--, data += program->data_step, out += program->out_step)
        for (int i = 0; i < vectors; i++) {
            const uint8_t *window = data + program->data_at[i], *index = program->index + i * 16;
            uint8_t vector[16];
            for (int j = 0; j < 16; j++) vector[j] = window[index[j]];
            memcpy(out + program->out_at[i], vector, 16);
        }
}

static void bcast_repeat_rows_plain(const bcast_rows *rows, const uint8_t *data, uint8_t *out)
{
    const ptrdiff_t size = rows->size, run = rows->times * size;
    for (ptrdiff_t n = rows->count; n > 0; n--, data += size, out += run) {
        ptrdiff_t block = size, done = size;
        memcpy(out, data, size);
        for (; done < run; done += block) {
            if (done <= BCAST_CHUNK) block = done;
            memcpy(out + done, out, run - done < block ? run - done : block);
        }
    }
}

static void bcast_fill_plain(const bcast_program *program, const bcast_rows *rows, const uint8_t *data, uint8_t *out)
{
    (void) program;
    bcast_repeat_rows_plain(rows, data, out);
}

static void bcast_repeat_counted_plain(
    const bcast_counted *items, const int64_t *counts, ptrdiff_t n, const uint8_t *data, uint8_t *out)
{
    const ptrdiff_t step = 16 / items->size * items->size;
    for (; n > 0; n--, data += items->size) {
        uint8_t vector[16], *end = out + *counts++ * items->size;
        for (int j = 0; j < 16; j++) vector[j] = data[items->index[j]];
        for (uint8_t *to = out; to < end; to += step) memcpy(to, vector, 16);
        out = end;
    }
}

static void bcast_repeat_counted_rows_plain(
    const bcast_rows *rows, const int64_t *counts, const uint8_t *data, uint8_t *out)
{
    for (ptrdiff_t i = 0; i < rows->count; i++, data += rows->size)
        for (int64_t j = 0; j < counts[i]; j++, out += rows->size) memcpy(out, data, rows->size);
}

static void bcast_copy_to_many_plain(
    ptrdiff_t times, ptrdiff_t step, ptrdiff_t size, const uint8_t *data, uint8_t *out)
{
    for (; times > 0; times--, out += step) memcpy(out, data, size);
}

static void bcast_tile_plain(ptrdiff_t block, ptrdiff_t size, uint8_t *out)
{
    for (ptrdiff_t done = block; done < size; done += block)
        memcpy(out + done, out, size - done < block ? size - done : block);
}

#if defined(__x86_64__) || defined(_M_X64)

#include <immintrin.h>

#define TARGET ssse3
#define NARROWER plain
#define ON_TARGET BCAST_TARGET("ssse3")
#define Vector __m128i
#define VECTOR_BYTES 16
#define LOAD(data) _mm_loadu_si128((const __m128i *) (data))
#define STORE(out, vector) _mm_storeu_si128((__m128i *) (out), vector)
#define SHUFFLE(window, index) _mm_shuffle_epi8(LOAD(window), index)
#include "shuffle.inc.h"

/* Its shuffle stays within halves of 16 bytes, so both halves get the same window. */
#define TARGET avx2
#define NARROWER ssse3
#define ON_TARGET BCAST_TARGET("avx2")
#define Vector __m256i
#define VECTOR_BYTES 32
#define LOAD(data) _mm256_loadu_si256((const __m256i *) (data))
#define STORE(out, vector) _mm256_storeu_si256((__m256i *) (out), vector)
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
#define LOAD(data) vld1q_u8(data)
#define STORE(out, vector) vst1q_u8(out, vector)
#define SHUFFLE(window, index) vqtbl1q_u8(LOAD(window), index)
#include "shuffle.inc.h"

#endif

/* The leaves of each target. */
#define BCAST_COPY_LEAVES(name, vector, has) \
    {vector, bcast_execute_##name, bcast_fill_##name, bcast_repeat_rows_##name, bcast_repeat_counted_##name, \
        bcast_repeat_counted_rows_##name, bcast_copy_to_many_##name, bcast_tile_##name},
static const bcast_copy_leaves bcast_leaves_of[] = {BCAST_TARGETS(BCAST_COPY_LEAVES)};

#endif
