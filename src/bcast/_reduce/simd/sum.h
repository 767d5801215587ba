/* The contract of the kernels: their inputs and guarantees.

   A kernel combines terms of one kind with the instructions of one target. Its input is rows, whose items are combined
   column by column, or runs, whose items are combined to one number each. Its output goes to a sink. The words here are
   those of sums; the kernels of other operations (`combine.h`) have the same contract.

       rows    0 1 2 3 4 5 ...         runs    0 0 0 0   1 1 1 1   2 2 2 2 ...     interleave 1
               0 1 2 3 4 5 ...                 0 1 0 1   2 3 2 3   4 5 4 5 ...     interleave 2
       sums    0 1 2 3 4 5 ...                 (the number of the sum to which a term is added)

   * Terms need no alignment. No load passes the last term, and no store passes the last sum.
   * Accumulators of a compensated kind (float64) have error terms: the sum is sum + error, and error collects rounding
     errors, so that the error of a result does not grow with the number of terms. Other kinds do not touch error terms.
     The additions are Knuth's two_sum (TAOCP 2, 4.2.2) and Dekker's fast_two_sum (Numer. Math. 18, 1971), chained as in
     Sum2 of Ogita, Rump and Oishi (SIAM J. Sci. Comput. 26, 2005).
   * All targets have the same lanes and round in the same way: results have the same bits.
   * All columns of rows are added in the same order. Short runs are added in the same order at any address.
   * Products of float64 are rounded and those of integers wrap around. Other products are exact: those of float16 in
     float32, narrower ones than float64 in float64.
   * Integers wrap around in their own width. Floats narrower than float64 are summed in float64, where their sums do
     not overflow. Up to eight float16 are first added in float32, where sums are exact or have tiny rounding errors. */

#ifndef BCAST_SUM_H
#define BCAST_SUM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __FAST_MATH__
#error "-ffast-math reorders sums: it drops the error terms, and results would depend on the target"
#endif

/* The kinds of terms, one row each: the type of a term's bits; the wide type, for sums of few terms; the type of the
   accumulator; the number of terms of a vector; whether accumulators are compensated; whether loads convert terms; and
   the dtype. */
#define BCAST_SUM_KINDS(ROW)                                \
    ROW(u32, uint32_t, uint32_t, uint32_t, 8, 0, 0, UINT32) \
    ROW(u64, uint64_t, uint64_t, uint64_t, 4, 0, 0, UINT64) \
    ROW(f16, uint16_t, float, double, 8, 0, 1, FLOAT16)     \
    ROW(bf16, uint16_t, double, double, 4, 0, 0, BFLOAT16)  \
    ROW(f32, uint32_t, double, double, 4, 0, 1, FLOAT32)    \
    ROW(f64, uint64_t, double, double, 4, 1, 0, FLOAT64)

/* The kinds of integers whose sums wrap around in 8 or 16 bits: the type of a term's bits, and the dtype. They have no
   kernels for runs of counts, products and deviations. For wider sums, terms are packed as 64 bits. */
#define BCAST_NARROW_KINDS(ROW) \
    ROW(u8, uint8_t, UINT8)     \
    ROW(u16, uint16_t, UINT16)

#define BCAST_KIND_NUMBER(kind, ...) BCAST_KIND_##kind,
enum { BCAST_NARROW_KINDS(BCAST_KIND_NUMBER) BCAST_SUM_KINDS(BCAST_KIND_NUMBER) BCAST_KINDS };

/* Up to eight rows in each turn: row i of turn t is at src + t * advance + i % 4 * stride + i / 4 * half_stride. */
typedef struct {
    const char *src;
    ptrdiff_t turns;
    ptrdiff_t advance;          /* stride between turns, in bytes */
    ptrdiff_t rows;             /* rows of one turn */
    ptrdiff_t stride;           /* stride between the first four rows, and between the last four, in bytes */
    ptrdiff_t half_stride;      /* distance from the first row to the fifth, in bytes; unused for four rows or fewer */
    ptrdiff_t width;            /* items of a row */
} bcast_term_rows;

typedef struct {
    const char *src;
    ptrdiff_t count;            /* number of runs */
    ptrdiff_t stride;           /* stride between runs, in bytes */
    ptrdiff_t length;           /* terms of a run, counting all items that are interleaved in it */
    ptrdiff_t interleave;       /* number of items that are interleaved in a run: 1, 2 or 4 */
} bcast_term_runs;

/* Contiguous runs of different lengths: run i has counts[i] terms of each item, perhaps 0. */
typedef struct {
    const char *src;
    const char *end;            /* the end of the terms */
    const int64_t *counts;
    ptrdiff_t count;            /* number of runs */
    ptrdiff_t interleave;       /* number of interleaved items: 1 to 4, or fewer than a vector has lanes */
} bcast_counted_runs;

/* Products of two arrays' terms. If `rows` is 1, the results are `count` rows of products. If `rows` is larger, which
   needs floats, products of these rows are added to one row of sums. If `rows` is 0, each of `count` runs has one sum
   in each lane of its kind. Compensated sums are followed by their error terms. */
typedef struct {
    const char *a;
    const char *b;
    ptrdiff_t count;            /* number of rows, or of runs */
    ptrdiff_t a_advance;        /* stride between these rows or runs in `a`, in bytes */
    ptrdiff_t b_advance;        /* stride between these rows or runs in `b`, in bytes */
    ptrdiff_t width;            /* terms of a row or run */
    ptrdiff_t rows;             /* rows that are added to one; 0 for runs */
    ptrdiff_t stride;           /* stride between rows that are added, in both arrays, in bytes */
    ptrdiff_t ahead;            /* approximate prefetch distance, in bytes; 0 if a cache holds the terms */
} bcast_term_products;

/* The use of sums: to set accumulators, to add to them, or to write results. */
typedef enum { BCAST_SET, BCAST_ADD, BCAST_WRITE } bcast_sink_mode;

/* The destination of sums, which is contiguous. */
typedef struct {
    bcast_sink_mode mode;
    char *sum;                  /* accumulators; or results, as terms of the kind */
    char *error;                /* error terms of accumulators; second parts of pairs, with BCAST_WRITE as well */
} bcast_sink;

/* The term that is computed from a float's difference from its mean. NaN gives 0, except with BCAST_SQUARE. */
typedef enum {
    BCAST_SQUARE,               /* the square */
    BCAST_NUMBERS_SQUARE,       /* the square, of numbers alone */
    BCAST_NUMBER,               /* the difference itself */
    BCAST_NUMBERS_COUNT         /* 1 */
} bcast_deviation;

/* The kernels of a kind, or of another operation. They return 0; or with BCAST_WRITE, whether the caller must use
   accumulators instead: if a compensated sum is infinite or NaN, or if rows are narrower than a vector. The kernels for
   counts, products and deviations are NULL if an operation has none. */
typedef struct {
    int lanes;                  /* terms of a vector */
    int is_idempotent;          /* whether a term may be combined twice, so that repeated terms do not matter */
    int (*reduce_rows)(const bcast_term_rows *rows, const bcast_sink *dst);
    int (*reduce_runs)(const bcast_term_runs *runs, const bcast_sink *dst);
    int (*reduce_counted_runs)(const bcast_counted_runs *runs, const bcast_sink *dst);  /* without BCAST_ADD */
    /* Combine `n` accumulators of one block with those of another one. */
    void (*combine)(const bcast_sink *dst, const bcast_sink *src, ptrdiff_t n);
    /* Combine each group's `length` short rows of `n` accumulators, in place. */
    void (*fold)(const bcast_sink *all, ptrdiff_t groups, ptrdiff_t length, ptrdiff_t n);
    /* Multiply two arrays' terms. Products have the accumulators' type, and may overwrite `a`. */
    void (*multiply)(const bcast_term_products *products, void *sums);
    /* Compute terms from differences of floats from means: one mean for each float if `stride` is 1, one if it is 0. */
    void (*deviate)(int made, const char *src, const double *means, ptrdiff_t stride, double *dst, ptrdiff_t n);
} bcast_sum_kernels;

/* Results of a dtype, and accumulators, both with any stride. */
typedef struct {
    int dtype;
    int sum_size;               /* size of an accumulator, in bytes */
    char *dst;
    ptrdiff_t stride;           /* stride between results, in bytes */
    ptrdiff_t sum_stride;       /* stride between accumulators, in bytes */
} bcast_results;

/* The step from exact sums to results: they are divided, and rounded once. */
typedef struct {
    double divisor;             /* an integer */
    int digits;                 /* precision of results, in bits; below 53, results are rounded again when stored */
    double least_normal;        /* the least result of full precision */
} bcast_settling;

/* How exact sums of items and of their squares become norms, variances or deviations. */
typedef struct {
    double count;               /* of the items of each result, of at most 2^53 */
    double divisor;             /* count * (count - ddof), rounded; 1 for norms */
    double rest;                /* what rounding has cost */
    int parts;                  /* of each item: 2 if it is complex, otherwise 1; 0 for norms, which need no sums */
    int root;                   /* whether roots are the results */
    int digits;                 /* as in bcast_settling */
    double least_normal;
} bcast_spreading;

/* Sums as two numbers and a bound each, in three rows of an array. */
typedef struct {
    const double *squares;
    const double *sums;         /* of each part, three rows */
    ptrdiff_t apart;            /* from row to row, in numbers */
} bcast_bounded_sums;

/* The steps of exact sums (`exact.h`) over blocks of BCAST_EXACT_BLOCK numbers. */
enum { BCAST_EXACT_BLOCK = 256 };

typedef struct {
    double (*sum_of_magnitudes)(const double *terms);
    /* Given a power of 2, at least half of that sum, write two numbers whose sum has the leading bits of all terms, and
       leave what remains of each term. Return whether something remains. */
    int (*take_leading)(double *terms, double power, double *sums);
    /* Write products and their rounding errors. Return whether all are exact: otherwise, some are infinite or NaN. */
    int (*multiply)(const double *a, const double *b, double *products, double *errors);
} bcast_block_kernels;

/* The kernels of an instruction set. */
typedef struct {
    bcast_sum_kernels kernels[BCAST_KINDS];     /* the kernels that sum */
    void (*store)(const bcast_results *results, const void *sums, ptrdiff_t n);
    int (*add_errors)(double *sum, const double *error, ptrdiff_t n);   /* returns whether a sum is infinite or NaN */
    void (*divide)(double *sums, double by, int root, ptrdiff_t n);     /* and if `root`, computes the roots */
    /* Turn accumulators of exact sums into results, in place; those that are not settled become NaN. Return whether
       results are infinite or NaN. */
    int (*settle)(const bcast_settling *how, const bcast_sink *block, ptrdiff_t n);
    /* Write norms, variances or deviations, rounded once if `digits` are 53; NaN where bounds do not settle one. */
    void (*settle_spreads)(
        const bcast_spreading *how, const bcast_bounded_sums *from, double *results, ptrdiff_t n);
} bcast_sum_target;

#endif
