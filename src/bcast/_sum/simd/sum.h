/* What the leaves that sum are made of and called by: `_sum/simd/leaves.h` has them, `_sum/walk.pyx` calls them. */

#ifndef BCAST_SUM_H
#define BCAST_SUM_H

#include <stddef.h>
#include <stdint.h>

/* The kinds of terms as the leaves read them; signed integers are summed as unsigned ones. */
enum { BCAST_U8, BCAST_U16, BCAST_U32, BCAST_U64, BCAST_F16, BCAST_BF16, BCAST_F32, BCAST_F64, BCAST_KINDS };

/* What a term or a result is, in memory. */
enum {
    BCAST_BOOL, BCAST_INT8, BCAST_INT16, BCAST_INT32, BCAST_INT64,
    BCAST_UINT8, BCAST_UINT16, BCAST_UINT32, BCAST_UINT64,
    BCAST_FLOAT16, BCAST_BFLOAT16, BCAST_FLOAT32, BCAST_FLOAT64, BCAST_TERMS
};

typedef struct {
    void (*add_rows)(
        void *high, void *low, const char *x, ptrdiff_t count, ptrdiff_t step, ptrdiff_t rows, ptrdiff_t row_step,
        ptrdiff_t m, int add);
    void (*add_runs)(
        void *high, void *low, const char *x, ptrdiff_t count, ptrdiff_t step, ptrdiff_t n, ptrdiff_t m, int far,
        int add);
    int (*put_runs)(        /* these two are NULL where there are none */
        char *to, const char *x, ptrdiff_t count, ptrdiff_t step, ptrdiff_t n, ptrdiff_t m, int far, int streamed);
    int (*put_rows)(char *to, const char *x, ptrdiff_t rows, ptrdiff_t row_step, ptrdiff_t m, int streamed);
    void (*add_accumulators)(void *high, void *low, const void *high_2, const void *low_2, ptrdiff_t n);
    ptrdiff_t m_most;       /* of both kinds of runs */
    ptrdiff_t lanes;
} bcast_sums;

/* Whether runs of `n` terms of `m` items are short: few vectors of so many `lanes`. */
static inline int bcast_is_short(ptrdiff_t n, ptrdiff_t m, ptrdiff_t lanes)
{
    return n <= (m == 1 ? 4 : 2) * lanes || (m == 1 && (n == 6 * lanes || n == 8 * lanes));
}

/* Write the `n` terms at x, x + step, ... one after the other. */
typedef void (*bcast_pack)(void *to, const char *x, ptrdiff_t step, ptrdiff_t n);

/* Write `n` sums, as results of some kind, to `to`, to + step, ...; of integers their low bytes. */
typedef void (*bcast_store)(char *to, ptrdiff_t step, const void *sums, ptrdiff_t n);

/* The leaves of one instruction set. */
typedef struct {
    bcast_sums sums[BCAST_KINDS];
    bcast_store store[BCAST_TERMS];         /* of sums as wide as the result, or of float64; by results */
    bcast_store store_wide[BCAST_TERMS];    /* of 64-bit integers */
    int (*merge)(double *high, const double *low, ptrdiff_t n);
} bcast_sum_leaf;

#endif
