/* The operations that combine terms otherwise than by adding them: the greatest and the least item, whether any item is
   true, or all are, and the product.

   Their kernels do to rows and runs what `sum.h` says, but for rounding and error terms: where it says sum, read what
   the operation makes of terms. The accumulator of an extreme is an item, and a result already; that of a truth is 0 or
   1, as long as an item. That of a product has 64 bits: a float64, or an integer that wraps. An extreme is NaN if an
   item is; one of numbers, if all items are.

   A pair has the least items where sums have sums, and the greatest ones where these have error terms; both are
   results. Of bools, any byte but 0 is true, and results are 0 or 1.

   A scaled product is of float64 alone. Its accumulators are numbers from 1 to 2, of either sign, and have exponents of
   2 where those of sums have error terms: float64, too. 0 has the exponent minus infinity, infinity has plus infinity,
   and NaN has NaN. Thus no product overflows on its way, and infinity times 0 is NaN. */

#ifndef BCAST_COMBINE_H
#define BCAST_COMBINE_H

/* The operations, each with the kernels of a target, whose structs are in `operations.inc.h` and `scaled.inc.h`. */
#define BCAST_OPERATIONS(ROW)                                       \
    ROW(GREATEST, kernels_by_dtype<Extremes<true>>)                 \
    ROW(LEAST, kernels_by_dtype<Extremes<false>>)                   \
    ROW(ANY, kernels_by_dtype<Truths<false>>)                       \
    ROW(ALL, kernels_by_dtype<Truths<true>>)                        \
    ROW(PRODUCT, kernels_by_dtype<Products>)                        \
    ROW(GREATEST_NUMBER, kernels_by_dtype<ExtremesOfNumbers<true>>) \
    ROW(LEAST_NUMBER, kernels_by_dtype<ExtremesOfNumbers<false>>)   \
    ROW(SCALED_PRODUCT, scaled_kernels_by_dtype)                    \
    ROW(LEAST_AND_GREATEST, kernels_by_dtype<Pairs>)

#define BCAST_OPERATION_NUMBER(name, ...) BCAST_##name,
enum { BCAST_OPERATIONS(BCAST_OPERATION_NUMBER) };

#endif
