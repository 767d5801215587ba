/* The leaves of copies: what runs a `bcast_program`, for each target that is worth it. */

#ifndef BCAST_SHUFFLE_H
#define BCAST_SHUFFLE_H

#include "program.h"
#include "../../_runtime/cpu.h"
#include "../../_runtime/target.h"

/* A function whose first argument, the number of an item's vectors, is a constant in it. */
#define BCAST_BY_PARTS(parts, function, ...) \
    switch (parts) { \
    case 1: function(1, __VA_ARGS__); break; \
    case 2: function(2, __VA_ARGS__); break; \
    case 3: function(3, __VA_ARGS__); break; \
    case 4: function(4, __VA_ARGS__); break; \
    case 5: function(5, __VA_ARGS__); break; \
    case 6: function(6, __VA_ARGS__); break; \
    case 7: function(7, __VA_ARGS__); break; \
    case 8: function(8, __VA_ARGS__); break; \
    }

/* A leaf of one instruction set: `put` writes a vector. A group of vectors is written `times` in one loop, with their indices
   and places in registers: no store waits for a load to say where it goes. Groups follow each other over a chunk of output
   that the first-level cache holds. That is wrong where the last vector leaves rubbish on the first one of the next stretch:
   there, and where there is no next one, vectors simply follow each other. Items shorter than a vector are left to a narrower
   leaf. */
#define BCAST_LEAF(name, narrower, target, vector_bytes, Vector, load, store, shuffle)                                        \
BCAST_TARGET(target) BCAST_INLINE                                                                                             \
void bcast_group_##name(                                                                                                      \
    const int n, const bcast_program *program, int first, ptrdiff_t times, const uint8_t *data, uint8_t *out)                 \
{                                                                                                                             \
    const ptrdiff_t data_step = program->data_step, out_step = program->out_step;                                             \
    Vector index[BCAST_GROUP];                                                                                                \
    ptrdiff_t at[BCAST_GROUP], to[BCAST_GROUP];                                                                               \
    for (int i = 0; i < n; i++) {                                                                                             \
        index[i] = load(program->index + (first + i) * vector_bytes);                                                   \
        at[i] = program->data_at[first + i];                                                                                  \
        to[i] = program->out_at[first + i];                                                                                   \
    }                                                                                                                         \
    for (; times > 0; times--, data += data_step, out += out_step)                                                            \
        for (int i = 0; i < n; i++) store(out + to[i], shuffle(data + at[i], index[i]));                                      \
}                                                                                                                             \
                                                                                                                              \
BCAST_TARGET(target)                                                                                                          \
static void bcast_run_##name(                                                                                                 \
    const bcast_program *program, int vectors, ptrdiff_t times, const uint8_t *data, uint8_t *out)                            \
{                                                                                                                             \
    if (times == 1 || (vectors > BCAST_GROUP && !program->exact)) {                                                           \
        for (; times > 0; times--, data += program->data_step, out += program->out_step)                                      \
            for (int i = 0; i < vectors; i++)                                                                                 \
                store(out + program->out_at[i],                                                                               \
                    shuffle(data + program->data_at[i], load(program->index + i * vector_bytes)));                            \
        return;                                                                                                               \
    }                                                                                                                         \
    while (times > 0) {                                                                                                       \
        ptrdiff_t most = vectors > BCAST_GROUP ? 1 + BCAST_CHUNK / program->out_step : times;                                 \
        ptrdiff_t n = times < most ? times : most;                                                                            \
        int i = 0;                                                                                                            \
        for (; vectors - i >= BCAST_GROUP; i += BCAST_GROUP) bcast_group_##name(BCAST_GROUP, program, i, n, data, out);       \
        if (vectors - i == 3) bcast_group_##name(3, program, i, n, data, out);                                                \
        if (vectors - i == 2) bcast_group_##name(2, program, i, n, data, out);                                                \
        if (vectors - i == 1) bcast_group_##name(1, program, i, n, data, out);                                                \
        times -= n;                                                                                                           \
        data += n * program->data_step;                                                                                       \
        out += n * program->out_step;                                                                                         \
    }                                                                                                                         \
}                                                                                                                             \
                                                                                                                              \
BCAST_TARGET(target) BCAST_INLINE                                                                                             \
void bcast_fill_of_##name(                                                                                                    \
    const int parts,                                                                                                          \
    const bcast_program *program, ptrdiff_t n, ptrdiff_t run, ptrdiff_t size, const uint8_t *data, uint8_t *out)              \
{                                                                                                                             \
    const Vector index = load(program->index);                                                                                \
    for (; n > 0; n--, data += size, out += run) {                                                                            \
        const Vector vector = shuffle(data, index);                                                                           \
        for (int i = 0; i < parts - 1; i++) store(out + i * vector_bytes, vector);                                            \
        store(out + run - vector_bytes, vector);                                                                              \
    }                                                                                                                         \
}                                                                                                                             \
                                                                                                                              \
BCAST_TARGET(target)                                                                                                          \
static void bcast_fill_##name(                                                                                                \
    const bcast_program *program, ptrdiff_t n, ptrdiff_t run, ptrdiff_t size, const uint8_t *data, uint8_t *out)              \
{                                                                                                                             \
    switch ((run + vector_bytes - 1) / vector_bytes) {                                                                        \
    case 1: bcast_fill_of_##name(1, program, n, run, size, data, out); return;                                                \
    case 2: bcast_fill_of_##name(2, program, n, run, size, data, out); return;                                                \
    case 3: bcast_fill_of_##name(3, program, n, run, size, data, out); return;                                                \
    case 4: bcast_fill_of_##name(4, program, n, run, size, data, out); return;                                                \
    }                                                                                                                         \
    const Vector index = load(program->index);                                                                                \
    for (; n > 0; n--, data += size, out += run) {                                                                            \
        const Vector vector = shuffle(data, index);                                                                           \
        ptrdiff_t i = -(uintptr_t) out & (vector_bytes - 1);    /* where stores cross no line        */             \
        if (i & (size - 1)) i = 0;                                                                                            \
        else store(out, vector);                                                                                              \
        for (; i <= run - 4 * vector_bytes; i += 4 * vector_bytes) {                                                          \
            store(out + i, vector);                                                                                           \
            store(out + i + vector_bytes, vector);                                                                            \
            store(out + i + 2 * vector_bytes, vector);                                                                        \
            store(out + i + 3 * vector_bytes, vector);                                                                        \
        }                                                                                                                     \
        for (; i < run - vector_bytes; i += vector_bytes) store(out + i, vector);                                             \
        store(out + run - vector_bytes, vector);                                                                              \
    }                                                                                                                         \
}                                                                                                                             \
                                                                                                                              \
BCAST_TARGET(target) BCAST_INLINE                                                                                             \
void bcast_rows_of_##name(                                                                                                    \
    const int parts, ptrdiff_t n, ptrdiff_t times, ptrdiff_t size, ptrdiff_t apart, ptrdiff_t step,                           \
    const uint8_t *data, uint8_t *out)                                                                                        \
{                                                                                                                             \
    const ptrdiff_t last = size - vector_bytes;     /* laid back to end with the item */                                      \
    for (; n > 0; n--, data += size, out += step) {                                                                           \
        Vector part[BCAST_PARTS];                                                                                             \
        uint8_t *place = out;                                                                                                 \
        for (int i = 0; i < parts; i++) part[i] = load(data + (i < parts - 1 ? i * vector_bytes : last));                     \
        for (ptrdiff_t j = 0; j < times; j++, place += apart)                                                                 \
            for (int i = 0; i < parts; i++) store(place + (i < parts - 1 ? i * vector_bytes : last), part[i]);                \
    }                                                                                                                         \
}                                                                                                                             \
                                                                                                                              \
BCAST_TARGET(target)                                                                                                          \
static void bcast_rows_##name(ptrdiff_t n, ptrdiff_t times, ptrdiff_t size, const uint8_t *data, uint8_t *out)                \
{                                                                                                                             \
    if (size < vector_bytes) bcast_rows_##narrower(n, times, size, data, out);                                                \
    else BCAST_BY_PARTS(                                                                                                      \
        (size + vector_bytes - 1) / vector_bytes, bcast_rows_of_##name, n, times, size, size, times * size, data, out)        \
}                                                                                                                             \
                                                                                                                              \
BCAST_TARGET(target) BCAST_INLINE                                                                                             \
void bcast_gather_of_##name(                                                                                                  \
    const int parts, const bcast_program *program, int runs, ptrdiff_t n, const ptrdiff_t times, ptrdiff_t size,              \
    const uint8_t *data, uint8_t *out)                                                                                        \
{                                                                                                                             \
    for (; n > 0; n--, data += program->data_step)                                                                            \
        for (int i = 0; i < runs; i++, out += times * size)                                                                   \
            bcast_rows_of_##name(parts, 1, times, size, size, 0, data + program->data_at[i], out);                            \
}                                                                                                                             \
                                                                                                                              \
BCAST_TARGET(target)                                                                                                          \
static void bcast_gather_##name(                                                                                              \
    const bcast_program *program, int runs, ptrdiff_t n, ptrdiff_t times, ptrdiff_t size,                                     \
    const uint8_t *data, uint8_t *out)                                                                                        \
{                                                                                                                             \
    const ptrdiff_t parts = (size + vector_bytes - 1) / vector_bytes;                                                         \
    if (size < vector_bytes) bcast_gather_##narrower(program, runs, n, times, size, data, out);                               \
    else if (times == 2) BCAST_BY_PARTS(parts, bcast_gather_of_##name, program, runs, n, 2, size, data, out)                  \
    else BCAST_BY_PARTS(parts, bcast_gather_of_##name, program, runs, n, times, size, data, out)                              \
}                                                                                                                             \
                                                                                                                              \
BCAST_TARGET(target)                                                                                                          \
static void bcast_spread_##name(                                                                                              \
    ptrdiff_t times, ptrdiff_t apart, ptrdiff_t size, const uint8_t *data, uint8_t *out)                                      \
{                                                                                                                             \
    const ptrdiff_t row = BCAST_PARTS * vector_bytes, rest = size % row;                                                      \
    for (ptrdiff_t n; times > 0; times -= n, out += n * apart) {                                                              \
        n = times < BCAST_PLACES ? times : BCAST_PLACES;                                                                      \
        bcast_rows_of_##name(BCAST_PARTS, size / row, n, row, apart, row, data, out);                                         \
        if (rest) bcast_rows_of_##name(BCAST_PARTS, 1, n, row, apart, row, data + size - row, out + size - row);              \
    }                                                                                                                         \
}                                                                                                                             \
                                                                                                                              \
BCAST_TARGET(target)                                                                                                          \
static void bcast_tile_##name(ptrdiff_t block, ptrdiff_t size, uint8_t *out)                                                  \
{                                                                                                                             \
    const ptrdiff_t group = 4 * vector_bytes, pass = block - block % group;                                                   \
    const uint8_t *from = out;                                                                                                \
    uint8_t *to = out + block;                                                                                                \
    ptrdiff_t head = -(uintptr_t) to & (vector_bytes - 1);      /* from there on stores cross no line */                      \
    store(to, load(from));                                                                                                    \
    to += head;                                                                                                               \
    from += head;                                                                                                             \
    for (; out + size - to >= pass; to += pass) {                                                                             \
        for (ptrdiff_t i = 0; i < pass; i += group) {                                                                         \
            Vector a = load(from + i), b = load(from + i + vector_bytes);                                                     \
            Vector c = load(from + i + 2 * vector_bytes), d = load(from + i + 3 * vector_bytes);                              \
            store(to + i, a);                                                                                                 \
            store(to + i + vector_bytes, b);                                                                                  \
            store(to + i + 2 * vector_bytes, c);                                                                              \
            store(to + i + 3 * vector_bytes, d);                                                                              \
        }                                                                                                                     \
        from -= block - pass;                                                                                                 \
        if (from < out) from += block;                                                                                        \
    }                                                                                                                         \
    memcpy(to, from, out + size - to);                                                                                        \
}

static void bcast_run_plain(
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

static void bcast_fill_plain(
    const bcast_program *program, ptrdiff_t n, ptrdiff_t run, ptrdiff_t size, const uint8_t *data, uint8_t *out)
{
    (void) program;
    for (; n > 0; n--, data += size)
        for (ptrdiff_t i = 0; i < run; i += size, out += size) memcpy(out, data, size);
}

static void bcast_rows_plain(ptrdiff_t n, ptrdiff_t times, ptrdiff_t size, const uint8_t *data, uint8_t *out)
{
    for (ptrdiff_t run = times * size; n > 0; n--, data += size, out += run) {
        ptrdiff_t block = size, done = size;
        memcpy(out, data, size);
        for (; done < run; done += block) {
            if (done <= BCAST_CHUNK) block = done;
            memcpy(out + done, out, run - done < block ? run - done : block);
        }
    }
}

static void bcast_gather_plain(
    const bcast_program *program, int runs, ptrdiff_t n, ptrdiff_t times, ptrdiff_t size,
    const uint8_t *data, uint8_t *out)
{
    for (; n > 0; n--, data += program->data_step)
        for (int i = 0; i < runs; i++, out += times * size)
            bcast_rows_plain(1, times, size, data + program->data_at[i], out);
}

static void bcast_spread_plain(ptrdiff_t times, ptrdiff_t apart, ptrdiff_t size, const uint8_t *data, uint8_t *out)
{
    for (; times > 0; times--, out += apart) memcpy(out, data, size);
}

static void bcast_tile_plain(ptrdiff_t block, ptrdiff_t size, uint8_t *out)
{
    for (ptrdiff_t done = block; done < size; done += block)
        memcpy(out + done, out, size - done < block ? size - done : block);
}

#if defined(__x86_64__) || defined(_M_X64)

#include <immintrin.h>

#define BCAST_LOAD_16(data) _mm_loadu_si128((const __m128i *) (data))
#define BCAST_STORE_16(out, vector) _mm_storeu_si128((__m128i *) (out), vector)
#define BCAST_SHUFFLE_16(window, index) _mm_shuffle_epi8(BCAST_LOAD_16(window), index)
BCAST_LEAF(ssse3, plain, "ssse3", 16, __m128i, BCAST_LOAD_16, BCAST_STORE_16, BCAST_SHUFFLE_16)

/* Its shuffle stays within halves of 16 bytes, so both halves get the same window. */
#define BCAST_LOAD_32(data) _mm256_loadu_si256((const __m256i *) (data))
#define BCAST_STORE_32(out, vector) _mm256_storeu_si256((__m256i *) (out), vector)
#define BCAST_SHUFFLE_32(window, index) _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(BCAST_LOAD_16(window)), index)
BCAST_LEAF(avx2, ssse3, "avx2", 32, __m256i, BCAST_LOAD_32, BCAST_STORE_32, BCAST_SHUFFLE_32)

#ifndef _MSC_VER
#define BCAST_SHUFFLE_64(window, index) _mm512_permutexvar_epi8(index, _mm512_loadu_si512(window))
BCAST_LEAF(
    avx512, avx2, "avx512f,avx512bw,avx512vbmi", 64, __m512i, _mm512_loadu_si512, _mm512_storeu_si512, BCAST_SHUFFLE_64)
#endif

#elif defined(__aarch64__) || defined(_M_ARM64)

#include <arm_neon.h>

#define BCAST_SHUFFLE_NEON(window, index) vqtbl1q_u8(vld1q_u8(window), index)
BCAST_LEAF(neon, plain, , 16, uint8x16_t, vld1q_u8, vst1q_u8, BCAST_SHUFFLE_NEON)

#endif

#define BCAST_ENTRY(name, vector, window) \
    (bcast_leaf) { \
        #name, vector, window, bcast_run_##name, bcast_fill_##name, bcast_rows_##name, bcast_gather_##name, \
        bcast_spread_##name, bcast_tile_##name}

/* The leaf of a target that this machine has. */
static inline bcast_leaf bcast_leaf_of(int target)
{
    switch (target) {
#if defined(__x86_64__) || defined(_M_X64)
    case BCAST_SSSE3: return BCAST_ENTRY(ssse3, 16, 16);
    case BCAST_AVX2: return BCAST_ENTRY(avx2, 32, 16);
#ifndef _MSC_VER
    case BCAST_AVX512: return BCAST_ENTRY(avx512, 64, 64);
#endif
#elif defined(__aarch64__) || defined(_M_ARM64)
    case BCAST_NEON: return BCAST_ENTRY(neon, 16, 16);
#endif
    }
    return BCAST_ENTRY(plain, 16, 16);
}

#endif
