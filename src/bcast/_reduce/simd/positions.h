/* The kernels that find the position of the greatest or the least item: the first of equal items, and the first NaN if
   there is one. */

#ifndef BCAST_POSITIONS_H
#define BCAST_POSITIONS_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    const char *src;
    ptrdiff_t count, advance;       /* number of cells, and stride between them in bytes */
    ptrdiff_t length, stride;       /* rows of a cell, at least one, and stride between them in bytes */
    ptrdiff_t width;                /* items of a row, which are contiguous */
} bcast_cells;

typedef struct {
    /* In each of `count` runs of `length` contiguous items, at least one; `stride` bytes from run to run. */
    void (*in_runs)(
        int greatest, const char *src, ptrdiff_t count, ptrdiff_t stride, ptrdiff_t length, int64_t *positions);
    /* In each column of each cell. */
    void (*in_columns)(int greatest, const bcast_cells *cells, int64_t *positions);
    /* Among `count` positions in ascending order, that of the greatest or least item; `stride` is in bytes. */
    int64_t (*best_of)(int greatest, const char *src, ptrdiff_t stride, const int64_t *positions, ptrdiff_t count);
} bcast_position_kernels;

#endif
