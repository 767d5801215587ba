/* The kernels that find where the greatest or the least item is: the first one of several, and the first NaN before all
   numbers. */

#ifndef BCAST_POSITIONS_H
#define BCAST_POSITIONS_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    const char *src;
    ptrdiff_t count, advance;       /* cells, and bytes from cell to cell */
    ptrdiff_t length, stride;       /* rows of a cell, one or more, and bytes from row to row */
    ptrdiff_t width;                /* items of a row, which are side by side */
} bcast_cells;

typedef struct {
    /* In each of `count` runs of `length` items side by side, one or more; `stride` bytes from run to run. */
    void (*in_runs)(
        int greatest, const char *src, ptrdiff_t count, ptrdiff_t stride, ptrdiff_t length, int64_t *positions);
    /* In each column of each cell. */
    void (*in_columns)(int greatest, const bcast_cells *cells, int64_t *positions);
    /* Of `count` positions in ascending order, that of the greatest or least item; `stride` bytes from item to item. */
    int64_t (*best_of)(int greatest, const char *src, ptrdiff_t stride, const int64_t *positions, ptrdiff_t count);
} bcast_position_kernels;

#endif
