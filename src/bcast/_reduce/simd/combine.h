/* The reductions other than sums: greatest and least item, any, all, and product.

   Their kernels read rows and runs under the contract of `sum.h`, without rounding and error terms: "sum" there means
   the result of the operation. The accumulator of an extreme is an item, which is already a result. The accumulator of
   a truth is 0 or 1, in the size of an item. The accumulator of a product has 64 bits: a float64, or an integer that
   wraps around. An extreme is NaN if any item is NaN; an extreme of numbers is NaN only if all items are.

   A pair stores the least items in place of sums, and the greatest ones in place of error terms; both are results. A
   bool is true if its byte is not 0; results are 0 or 1.

   Scaled products exist only for float64. An accumulator is a number from 1 to 2, of either sign; in place of an error
   term, it has the exponent of a power of 2, also a float64. The exponent of 0 is minus infinity, that of infinity is
   plus infinity, and that of NaN is NaN. So no intermediate product overflows, and infinity times 0 is NaN.

   Exact sums exist only for floats, with accumulators of float64. An accumulator has an error term and a third number,
   a bound of the rounding errors of the error term (`exact_sums.inc.h`). */

#ifndef BCAST_COMBINE_H
#define BCAST_COMBINE_H

/* The operations, each with the kernels of a target; their structs are in `operations.inc.h` and `scaled.inc.h`. */
#define BCAST_OPERATIONS(ROW)                                       \
    ROW(GREATEST, kernels_by_dtype<Extremes<true>>)                 \
    ROW(LEAST, kernels_by_dtype<Extremes<false>>)                   \
    ROW(ANY, kernels_by_dtype<Truths<false>>)                       \
    ROW(ALL, kernels_by_dtype<Truths<true>>)                        \
    ROW(PRODUCT, kernels_by_dtype<Products>)                        \
    ROW(GREATEST_NUMBER, kernels_by_dtype<ExtremesOfNumbers<true>>) \
    ROW(LEAST_NUMBER, kernels_by_dtype<ExtremesOfNumbers<false>>)   \
    ROW(SCALED_PRODUCT, scaled_kernels_by_dtype)                    \
    ROW(LEAST_AND_GREATEST, kernels_by_dtype<Pairs>)                \
    ROW(EXACT_SUM, exact_kernels_by_dtype)

#define BCAST_OPERATION_NUMBER(name, ...) BCAST_##name,
enum { BCAST_OPERATIONS(BCAST_OPERATION_NUMBER) };

#endif
