/* The kernels of idempotent operations, which may take a term twice: the greatest and the least item, and whether some
   item is zero, or is not.

   They do to rows and runs what `sum.h` says, but for what that has of rounding and of error terms; in its words, a sum
   is what an operation makes of terms. An accumulator is as long as an item, and so a result already: an item, or for
   the last two operations a mask, which is 0 or has all bits set. An extreme is NaN if an item is. */

#ifndef BCAST_IDEMPOTENT_H
#define BCAST_IDEMPOTENT_H

enum { BCAST_GREATEST, BCAST_LEAST, BCAST_SOME_NONZERO, BCAST_SOME_ZERO };

#endif
