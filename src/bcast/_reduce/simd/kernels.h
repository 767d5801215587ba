/* The exports of the kernels' translation unit, `kernels.cpp`: tables of plain functions for each target. */

#ifndef BCAST_KERNELS_H
#define BCAST_KERNELS_H

#include "combine.h"
#include "positions.h"
#include "short_vectors.h"
#include "sum.h"

/* GCC and Clang have vectors of any length; other compilers get kernels of plain loops. These do not write results of
   float64, so the caller uses accumulators. */
#if defined(__GNUC__) && !defined(BCAST_ONE_LANE)
#define BCAST_VECTORS 1
#else
#define BCAST_VECTORS 0
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The kernels that sum on a target, by its number. */
const bcast_sum_target *bcast_sum_target_of(int target);

/* The steps of exact sums over blocks of terms, on a target. */
const bcast_block_kernels *bcast_block_kernels_of(int target);

/* The kernels of an operation of `combine.h` on a target, for a dtype of `table.h`; without those for counts, for
   products and for deviations. */
const bcast_sum_kernels *bcast_operation_kernels(int target, int operation, int dtype);

/* The kernels that find the position of an extreme, on a target, for a dtype of `table.h`. */
const bcast_position_kernels *bcast_position_kernels_of(int target, int dtype);

/* The kernel of short vectors for an operation, a kind of items, and lengths of vectors and of results (1 for numbers);
   NULL if there is none. */
bcast_short_kernel bcast_short_kernel_of(int target, int operation, int kind, int length, int rows);

/* Write the `n` terms at src, src + stride, ... contiguously, as the kernels read them; or as float64. */
void bcast_pack(int dtype, int as_real, char *dst, const char *src, ptrdiff_t stride, ptrdiff_t n);

#ifdef __cplusplus
}
#endif

#endif
