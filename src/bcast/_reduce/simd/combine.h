/* The operations that combine terms otherwise than by adding them: the greatest and the least item, whether any item is
   true, or all are, and the product.

   Their kernels do to rows and runs what `sum.h` says, but for rounding and error terms: where it says sum, read what
   the operation makes of terms. The accumulator of an extreme is an item, and a result already; that of a truth is 0 or
   1, as long as an item. That of a product has 64 bits: a float64, or an integer that wraps. An extreme is NaN if an
   item is; one of numbers, if all items are.

   A scaled product is of float64 alone. Its accumulators are numbers from 1 to 2, of either sign, and have exponents of
   2 where those of sums have error terms: float64, too. 0 has the exponent minus infinity, infinity has plus infinity,
   and NaN has NaN. Thus no product overflows on its way, and infinity times 0 is NaN. */

#ifndef BCAST_COMBINE_H
#define BCAST_COMBINE_H

enum {
    BCAST_GREATEST, BCAST_LEAST, BCAST_ANY, BCAST_ALL, BCAST_PRODUCT, BCAST_GREATEST_NUMBER, BCAST_LEAST_NUMBER,
    BCAST_SCALED_PRODUCT
};

#endif
