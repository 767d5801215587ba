/* The contract of the kernels of short vectors: of 2 to 4 items each, many in one call.

   A call computes something of each vector of one array, or of pairs of vectors of two. Vectors lie in one of two ways:

       dense       x y z x y z x y z ...       the items of a vector side by side, and the vectors, too
       columns     x x x ...  y y y ...        each item's column by itself, anywhere

   Results are vectors, too, or single numbers, which are a column. One vector that stands for all is columns of
   `BCAST_SHORT_LANES` equal items, along which nothing advances.

   * Items may be aligned to nothing. No load passes the last item, and no store the last result.
   * The sum of products of float32 is rounded once, from float64, in which products are exact. Products of float64 are
     rounded, and their sums compensated (see `sum.h`). Integers of 64 bits wrap.
   * A cross product's terms are rounded as NumPy rounds them.
   * A norm neither overflows nor loses digits where the squares of items alone do.
   * Statistics are those of items in float64. Neither their sum nor that of the squares overflows on its way.
   * Floating-point errors are those of the products and sums, as the CPU's flags say after a call; but of norms, which
     may set any. */

#ifndef BCAST_SHORT_VECTORS_H
#define BCAST_SHORT_VECTORS_H

#include <stddef.h>

enum { BCAST_SHORT_LANES = 4, BCAST_SHORT_LEAST = 2, BCAST_SHORT_MOST = 4 };

/* What is computed. STACK reads columns and writes them as vectors, whatever items are. */
enum { BCAST_DOT, BCAST_CROSS, BCAST_NORM, BCAST_MATVEC, BCAST_STACK, BCAST_STATISTICS, BCAST_SHORT_OPERATIONS };

/* Which statistics: one number for each vector, or a mean and a spread. A spread is a variance or its root. */
enum { BCAST_SHORT_SUM, BCAST_SHORT_MEAN, BCAST_SHORT_SPREAD, BCAST_SHORT_MEAN_AND_SPREAD };

typedef struct {
    int made;           /* one of these */
    int root;           /* whether spreads are roots */
    int skips_nan;      /* whether NaN is no item */
    int compensates;    /* whether sums of items that are results are compensated: other ones are exact, or nearly */
    double ddof;        /* squares are divided by the number of items minus this; spreads are NaN if that is 0 */
} bcast_short_statistics;

/* Items, by which kernels are chosen: floats, or units of some bytes; integers are of 8. */
enum { BCAST_SHORT_F32, BCAST_SHORT_F64, BCAST_SHORT_U64, BCAST_SHORT_U32, BCAST_SHORT_U16, BCAST_SHORT_U8,
       BCAST_SHORT_KINDS };

/* Where vectors are, or go. */
typedef struct {
    char *items[BCAST_SHORT_MOST];      /* where each column begins; the first one alone is set for dense vectors */
    ptrdiff_t advance;                  /* from vector to vector, in bytes; 0 if one stands for all */
    int dense;                          /* or else columns */
} bcast_short_vectors;

typedef struct {
    bcast_short_vectors a;
    bcast_short_vectors b;              /* of DOT and CROSS */
    const void *matrix;                 /* of MATVEC: rows of as many items as vectors have, side by side */
    bcast_short_statistics statistics;  /* of STATISTICS; its two results are columns */
    bcast_short_vectors dst;
    ptrdiff_t count;                    /* of vectors */
} bcast_short_call;

typedef void (*bcast_short_kernel)(const bcast_short_call *call);

#endif
