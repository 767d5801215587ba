/* The contract of the kernels that sum: what they take, and what always holds.

   A kernel adds up terms of one kind by the instructions of one target. It is given rows, whose items of one column are
   summed, or runs, each of which is summed along itself, and a sink for the sums:

       rows    0 1 2 3 4 5 ...         runs    0 0 0 0   1 1 1 1   2 2 2 2 ...     interleave 1
               0 1 2 3 4 5 ...                 0 1 0 1   2 3 2 3   4 5 4 5 ...     interleave 2
       sums    0 1 2 3 4 5 ...                 (the number of the sum to which a term is added)

   * Terms may be aligned to nothing. No load passes the last term, and no store the last sum.
   * Accumulators of a compensated kind (float64) have error terms: sum + error is the sum, where error holds what
     rounding has cost, so that the error of a result does not grow with the number of terms. Other kinds leave error
     terms alone. The sums are Knuth's two_sum (TAOCP 2, 4.2.2) and Dekker's fast_two_sum (Numer. Math. 18, 1971),
     chained as in Sum2 of Ogita, Rump and Oishi (SIAM J. Sci. Comput. 26, 2005).
   * All targets have the same lanes and round alike: results have the same bits.
   * Each row is summed alike in all columns, and each run alike wherever it stands, but for long ones.
   * Products of float64 and of integers are rounded or wrap, others are exact; of float16 in float32.
   * Integers wrap in their own width. Floats narrower than float64 are summed in float64, where no sum of them
     overflows; float16 up to eight at a time in float32 first, where their sums are exact or rounded far below a
     result. */

#ifndef BCAST_SUM_H
#define BCAST_SUM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __FAST_MATH__
#error "-ffast-math reorders sums: it drops the error terms, and results would depend on the target"
#endif

/* The kinds of terms, one row each: a term's bits x; what few terms are summed in (wide), and what all are (the
   accumulator); how many terms a vector has; whether accumulators are compensated; whether terms are converted as they
   are loaded; and their dtype. */
#define BCAST_SUM_KINDS(ROW)                                \
    ROW(u32, uint32_t, uint32_t, uint32_t, 8, 0, 0, UINT32) \
    ROW(u64, uint64_t, uint64_t, uint64_t, 4, 0, 0, UINT64) \
    ROW(f16, uint16_t, float, double, 8, 0, 1, FLOAT16)     \
    ROW(bf16, uint16_t, double, double, 4, 0, 0, BFLOAT16)  \
    ROW(f32, uint32_t, double, double, 4, 0, 1, FLOAT32)    \
    ROW(f64, uint64_t, double, double, 4, 1, 0, FLOAT64)

/* The kinds of integers whose sums wrap in so few bits: a term's bits, and their dtype. They have no kernels for runs of
   counts, products and deviations. Where sums are wider, terms are packed as 64 bits. */
#define BCAST_NARROW_KINDS(ROW) \
    ROW(u8, uint8_t, UINT8)     \
    ROW(u16, uint16_t, UINT16)

#define BCAST_KIND_NUMBER(kind, ...) BCAST_KIND_##kind,
enum { BCAST_NARROW_KINDS(BCAST_KIND_NUMBER) BCAST_SUM_KINDS(BCAST_KIND_NUMBER) BCAST_KINDS };

/* Up to eight rows in each turn: row i of turn t is at src + t * advance + i % 4 * step + i / 4 * half_step. */
typedef struct {
    const char *src;
    ptrdiff_t turns, advance, rows, step, half_step;    /* advance and steps in bytes */
    ptrdiff_t width;        /* items of a row */
} bcast_term_rows;

typedef struct {
    const char *src;
    ptrdiff_t count, step, length;  /* of runs; bytes from one to the next; terms of one, of all its items */
    ptrdiff_t interleave;   /* 1, 2 or 4 items take turns in a run */
} bcast_term_runs;

/* Runs of lengths of their own, one behind the other: run i has counts[i] terms of each item, or none. */
typedef struct {
    const char *src, *end;  /* of the terms */
    const int64_t *counts;
    ptrdiff_t count, interleave;    /* of runs; 1 to 4, or less than a vector has lanes */
} bcast_counted_runs;

/* Products of two arrays' terms: `count` rows of them, if `rows` is 1; of floats of more rows, a row of their sums; or
   if `rows` is 0, the sums of each of `count` runs, as many as the kind has lanes. Where accumulators are compensated,
   as many error terms follow these sums. */
typedef struct {
    const char *a, *b;
    ptrdiff_t count, a_advance, b_advance;      /* bytes from one to the next */
    ptrdiff_t width;        /* terms of a row or run */
    ptrdiff_t rows, step;   /* that are added up, and bytes from one to the next in both */
    ptrdiff_t ahead;        /* bytes by which terms are prefetched, about; 0 if some cache holds them */
} bcast_term_products;

/* Where sums go, one after the other. */
typedef struct {
    enum { BCAST_SET, BCAST_ADD, BCAST_WRITE } mode;    /* set accumulators, add to them, or write results */
    char *sum, *error;      /* accumulators; or, as sums, results, as terms of the kind */
} bcast_sink;

/* The kernels of a kind. They return 0; or, with BCAST_WRITE, whether results must be made by accumulators instead:
   where a compensated one is infinite or no number, or rows are narrower than a vector. */
typedef struct {
    int lanes;
    int (*sum_rows)(const bcast_term_rows *rows, const bcast_sink *dst);
    int (*sum_runs)(const bcast_term_runs *runs, const bcast_sink *dst);
    int (*sum_counted_runs)(const bcast_counted_runs *runs, const bcast_sink *dst);     /* which are never added to */
    void (*add_accumulators)(const bcast_sink *dst, const bcast_sink *src, ptrdiff_t n);
    void (*fold)(const bcast_sink *all, ptrdiff_t groups, ptrdiff_t length, ptrdiff_t n);   /* short rows, in place */
    void (*multiply)(const bcast_term_products *products, void *sums);      /* as accumulators; in place if of `a` */
    /* Squares of what floats differ from their means: one each, if `step` is 1, or if it is 0, one of all. */
    void (*deviate)(const char *src, const double *means, ptrdiff_t step, double *dst, ptrdiff_t n);
} bcast_sum_kernels;

/* Results of some dtype, at any step from each other, and so their accumulators. */
typedef struct {
    int dtype, sum_size;    /* bytes of an accumulator */
    char *dst;
    ptrdiff_t step, sum_step;   /* bytes from one to the next */
} bcast_results;

/* The kernels of an instruction set. */
typedef struct {
    bcast_sum_kernels kernels[BCAST_KINDS];
    void (*store)(const bcast_results *results, const void *sums, ptrdiff_t n);
    int (*add_errors)(double *sum, const double *error, ptrdiff_t n);   /* tells of sums that are infinite or NaN */
    void (*divide)(double *sums, double by, int root, ptrdiff_t n);     /* and take the roots, if asked to */
} bcast_sum_target;

#endif
