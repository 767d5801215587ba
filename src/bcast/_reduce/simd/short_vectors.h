/* The contract of the kernels of short vectors: each has 2 to 4 items, and one call computes many.

   A call has a result for each vector of one array, or for each pair of vectors of two. Vectors have two layouts:

       dense       x y z x y z x y z ...       vectors are contiguous
       columns     x x x ...  y y y ...        each item has a contiguous column, at any address

   Results are vectors as well, or numbers in a column. A single vector that is repeated is stored as columns of
   `BCAST_SHORT_LANES` equal items, which the kernel reads again and again.

   * Items need no alignment. No load passes the last item, and no store passes the last result.
   * The sum of products of float32 is rounded once, from float64, in which products are exact. Products of float64 are
     rounded, and their sums are compensated (see `sum.h`). Integers of 64 bits wrap around.
   * A cross product's terms are rounded as NumPy rounds them.
   * A norm neither overflows nor loses digits if only the squares of items do.
   * Statistics are those of items in float64. Neither partial sums of items nor those of squares overflow.
   * After a call, the CPU's flags show the floating-point errors of the products and sums. Norms may set any flag. */

#ifndef BCAST_SHORT_VECTORS_H
#define BCAST_SHORT_VECTORS_H

#include <stddef.h>

enum { BCAST_SHORT_LANES = 4, BCAST_SHORT_LEAST = 2, BCAST_SHORT_MOST = 4 };

/* The operations. STACK reads columns of any items and writes them as vectors. */
enum { BCAST_DOT, BCAST_CROSS, BCAST_NORM, BCAST_MATVEC, BCAST_STACK, BCAST_STATISTICS, BCAST_SHORT_OPERATIONS };

/* The statistics: one number for each vector, or a mean and a spread. A spread is a variance or its root. */
enum { BCAST_SHORT_SUM, BCAST_SHORT_MEAN, BCAST_SHORT_SPREAD, BCAST_SHORT_MEAN_AND_SPREAD };

typedef struct {
    int made;           /* one of these statistics */
    int root;           /* whether spreads are roots */
    int skips_nan;      /* whether items that are NaN are skipped */
    int compensates;    /* whether results that are sums are compensated; other sums are exact, or nearly */
    double ddof;        /* squares are divided by the number of items minus this; spreads are NaN if the divisor is 0 */
} bcast_short_statistics;

/* The kinds of items, which select kernels: floats, or units of 1 to 8 bytes; integers have 8. */
enum { BCAST_SHORT_F32, BCAST_SHORT_F64, BCAST_SHORT_U64, BCAST_SHORT_U32, BCAST_SHORT_U16, BCAST_SHORT_U8,
       BCAST_SHORT_KINDS };

/* The layout of vectors to read or to write. */
typedef struct {
    char *items[BCAST_SHORT_MOST];      /* the beginning of each column; dense vectors have only the first one */
    ptrdiff_t advance;                  /* stride between vectors, in bytes; 0 if one vector is repeated */
    int dense;                          /* whether vectors are dense; otherwise they are columns */
} bcast_short_vectors;

typedef struct {
    bcast_short_vectors a;
    bcast_short_vectors b;              /* the second operand of DOT and CROSS */
    const void *matrix;                 /* the matrix of MATVEC, contiguous; its rows are as long as the vectors */
    bcast_short_statistics statistics;  /* the choice of STATISTICS, whose two results are columns */
    bcast_short_vectors dst;
    ptrdiff_t count;                    /* number of vectors */
} bcast_short_call;

typedef void (*bcast_short_kernel)(const bcast_short_call *call);

#endif
