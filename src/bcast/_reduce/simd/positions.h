/* The kernels that find where the greatest or the least item is: the first one of several, and the first NaN before all
   numbers. */

#ifndef BCAST_POSITIONS_H
#define BCAST_POSITIONS_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    /* In each of `count` runs of `length` items side by side, one or more; `stride` bytes from run to run. */
    void (*in_runs)(
        int greatest, const char *src, ptrdiff_t count, ptrdiff_t stride, ptrdiff_t length, int64_t *positions);
    /* In each of `width` columns of `length` rows, one or more; `stride` bytes from row to row. */
    void (*in_columns)(
        int greatest, const char *src, ptrdiff_t width, ptrdiff_t stride, ptrdiff_t length, int64_t *positions);
    /* Of `count` positions in ascending order, that of the greatest or least item; `stride` bytes from item to item. */
    int64_t (*best_of)(int greatest, const char *src, ptrdiff_t stride, const int64_t *positions, ptrdiff_t count);
} bcast_position_kernels;

#endif
