/* The contract of the kernels that copy: shuffle tables, their execution, and matrices of items.

   A table describes a span of output as short pieces of data, by one byte shuffle for each vector. Vector i
   of the output, `dst_at[i]` bytes into the span, has the bytes that `index` picks from a window of the data,
   which begins at `src_at[i]`:

       data      a b c d e f ...           items of 1 byte, each three times
                 |_window 0_|
                     |_window 1_|
       index     0 0 0 1 1 1 2 2   0 0 1 1 1 2 2 2  ...
       output    a a a b b b c c   c c d d d e e e  ...
                 |__vector 0___|   |__vector 1___|

   A shuffle table runs again and again, each time `src_step` and `dst_step` further on.

   * Loads and stores need not be aligned. They stay within `src_reach` and `dst_reach` bytes of the start of a span:
     callers ensure that both buffers extend that far.
   * A table that is not `exact` writes bytes after its span that the next span must overwrite. Output is therefore
     written from front to back.
   * Kernels with counts write past the runs of items, and `fill` and `repeat_counted` load whole windows: callers
     ensure that there is space.
   * No other kernel reads or writes a byte outside of its arguments.

   `kernels.cpp` has all kernels, for each target. */

#ifndef BCAST_COPY_KERNELS_H
#define BCAST_COPY_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#define BCAST_SPAN_BYTES 2048       /* the most output of a shuffle table: both fit a first-level cache */
#define BCAST_WINDOW_BYTES 16       /* the source of one shuffle */
#define BCAST_VECTOR_BYTES 32       /* size of the longest vector, whose halves share a window */
#define BCAST_GROUP_VECTORS 4       /* written by one loop: their indices and places fit the registers */
#define BCAST_ITEM_VECTORS 8        /* vectors of an item that stays in registers; there are 16 */

/* A window does not suffice if the data starts again from more than 16 bytes before: at most once in 17 bytes of
   output, so at least 8 bytes of a vector are right. */
#define BCAST_SPAN_VECTORS (BCAST_SPAN_BYTES / 8 + 2)

typedef struct {
    int vectors, exact;                 /* exact: the last vector ends with the span */
    ptrdiff_t src_step, dst_step;       /* strides between spans */
    ptrdiff_t src_reach, dst_reach;     /* bytes from the start of a span to the last byte read and written */
    int32_t dst_at[BCAST_SPAN_VECTORS], src_at[BCAST_SPAN_VECTORS];
    uint8_t index[4 * BCAST_SPAN_BYTES + 2 * BCAST_VECTOR_BYTES];
} bcast_shuffle_table;

/* `count` contiguous items of `size` bytes, each of which is written `times` times. */
typedef struct {
    ptrdiff_t count, times, size;
} bcast_rows;

/* m x n items of `size` bytes: item (j, i) goes from src + j * m_step + i * n_step to dst + j * dst_step + i * size. A
   matrix is transposed if `m_step` is `size`. */
typedef struct {
    ptrdiff_t m, n, size, m_step, n_step, dst_step;
} bcast_matrix;

/* The kernels of a target. */
typedef struct {
    int vector;             /* bytes */
    /* Write the first `vectors` of a shuffle table, `times` one after the other. */
    void (*execute)(const bcast_shuffle_table *table, int vectors, ptrdiff_t times, const uint8_t *src, uint8_t *dst);
    /* Fill a run of a vector or more with each item, whose size divides the vector's. */
    void (*fill)(const bcast_rows *rows, const uint8_t *src, uint8_t *dst);
    /* Write items of a window to BCAST_ITEM_VECTORS vectors; by `counts` if given, but at least `times` times. */
    void (*repeat_rows)(const bcast_rows *rows, const int64_t *counts, const uint8_t *src, uint8_t *dst);
    /* Write items of at most a window by their counts; at least `times` windows or a vector of each: a power of 2. */
    void (*repeat_counted)(const bcast_rows *items, const int64_t *counts, const uint8_t *src, uint8_t *dst);
    /* Copy one item, BCAST_ITEM_VECTORS or longer, to places that are `step` bytes apart. */
    void (*copy_to_many)(ptrdiff_t times, ptrdiff_t step, ptrdiff_t size, const uint8_t *src, uint8_t *dst);
    /* Repeat the finished first `block` bytes of an output, 4 vectors or more, over its `size`, twice that or more. */
    void (*tile)(ptrdiff_t block, ptrdiff_t size, uint8_t *dst);
    /* Copy a matrix. */
    void (*copy_matrix)(const bcast_matrix *matrix, const uint8_t *src, uint8_t *dst);
} bcast_copy_kernels;

#ifdef __cplusplus
extern "C" {
#endif

/* The kernels of a target, by its number. */
extern const bcast_copy_kernels bcast_copy_kernels_of[];

#ifdef __cplusplus
}
#endif

#endif
