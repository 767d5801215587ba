/* The contract of the kernels: what they are given, and what always holds.

   A kernel combines terms of one kind by the instructions of one target. It is given rows, whose items of one column
   are combined, or runs, each of which is combined along itself, and a sink for what comes out. The words are those of
   sums; the kernels of other operations (`combine.h`) do the same with theirs.

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

/* The kinds of terms, one row each: a term's bits; what few terms are summed in (wide), and what all are (the
   accumulator); how many terms a vector has; whether accumulators are compensated; whether terms are converted as they
   are loaded; and their dtype. */
#define BCAST_SUM_KINDS(ROW)                                \
    ROW(u32, uint32_t, uint32_t, uint32_t, 8, 0, 0, UINT32) \
    ROW(u64, uint64_t, uint64_t, uint64_t, 4, 0, 0, UINT64) \
    ROW(f16, uint16_t, float, double, 8, 0, 1, FLOAT16)     \
    ROW(bf16, uint16_t, double, double, 4, 0, 0, BFLOAT16)  \
    ROW(f32, uint32_t, double, double, 4, 0, 1, FLOAT32)    \
    ROW(f64, uint64_t, double, double, 4, 1, 0, FLOAT64)

/* The kinds of integers whose sums wrap in 8 or 16 bits: a term's bits, and their dtype. They have no kernels for runs
   of counts, products and deviations. Where sums are wider, terms are packed as 64 bits. */
#define BCAST_NARROW_KINDS(ROW) \
    ROW(u8, uint8_t, UINT8)     \
    ROW(u16, uint16_t, UINT16)

#define BCAST_KIND_NUMBER(kind, ...) BCAST_KIND_##kind,
enum { BCAST_NARROW_KINDS(BCAST_KIND_NUMBER) BCAST_SUM_KINDS(BCAST_KIND_NUMBER) BCAST_KINDS };

/* Up to eight rows in each turn: row i of turn t is at src + t * advance + i % 4 * stride + i / 4 * half_stride. */
typedef struct {
    const char *src;
    ptrdiff_t turns;
    ptrdiff_t advance;          /* from turn to turn, in bytes */
    ptrdiff_t rows;             /* of one turn */
    ptrdiff_t stride;           /* between neighbours among the first four rows, and among the others, in bytes */
    ptrdiff_t half_stride;      /* from the first row to the fifth, in bytes; of no effect on four rows or fewer */
    ptrdiff_t width;            /* items of a row */
} bcast_term_rows;

typedef struct {
    const char *src;
    ptrdiff_t count;            /* of runs */
    ptrdiff_t stride;           /* from run to run, in bytes */
    ptrdiff_t length;           /* terms of a run, of all items that are interleaved in it */
    ptrdiff_t interleave;       /* how many items are interleaved in a run: 1, 2 or 4 */
} bcast_term_runs;

/* Runs of lengths of their own, one behind the other: run i has counts[i] terms of each item, or none. */
typedef struct {
    const char *src;
    const char *end;            /* of the terms */
    const int64_t *counts;
    ptrdiff_t count;            /* of runs */
    ptrdiff_t interleave;       /* how many items are interleaved: 1 to 4, or fewer than a vector has lanes */
} bcast_counted_runs;

/* Products of two arrays' terms: `count` rows of them, if `rows` is 1; of floats of more rows, a row of their sums; or
   if `rows` is 0, the sums of each of `count` runs, as many as the kind has lanes. Where accumulators are compensated,
   as many error terms follow these sums. */
typedef struct {
    const char *a;
    const char *b;
    ptrdiff_t count;            /* of rows, or of runs */
    ptrdiff_t a_advance;        /* from one of these to the next in `a`, in bytes */
    ptrdiff_t b_advance;        /* the same in `b` */
    ptrdiff_t width;            /* terms of a row or run */
    ptrdiff_t rows;             /* that are added up; 0 if runs are */
    ptrdiff_t stride;           /* from one of the rows that are added up to the next, in both arrays, in bytes */
    ptrdiff_t ahead;            /* bytes by which terms are prefetched, about; 0 if some cache holds them */
} bcast_term_products;

/* What becomes of sums: accumulators are set, or added to, or results are written. */
typedef enum { BCAST_SET, BCAST_ADD, BCAST_WRITE } bcast_sink_mode;

/* Where sums go, one after the other. */
typedef struct {
    bcast_sink_mode mode;
    char *sum;                  /* accumulators; or results, as terms of the kind */
    char *error;                /* error terms of accumulators; of pairs, second parts, also with BCAST_WRITE */
} bcast_sink;

/* What is made of a float's difference from its mean. NaN gives 0, but as a square of all. */
typedef enum {
    BCAST_SQUARE,               /* its square */
    BCAST_NUMBERS_SQUARE,
    BCAST_NUMBER,               /* the difference itself */
    BCAST_NUMBERS_COUNT         /* 1 */
} bcast_deviation;

/* The kernels of a kind, or of another operation. They return 0; or, with BCAST_WRITE, whether results must be made by
   accumulators instead: where a compensated one is infinite or no number, or rows are narrower than a vector. Those for
   counts, products and deviations are NULL where an operation has none. */
typedef struct {
    int lanes;                  /* terms of a vector */
    int is_idempotent;          /* whether a term may be combined twice, so that repeated terms do not matter */
    int (*reduce_rows)(const bcast_term_rows *rows, const bcast_sink *dst);
    int (*reduce_runs)(const bcast_term_runs *runs, const bcast_sink *dst);
    int (*reduce_counted_runs)(const bcast_counted_runs *runs, const bcast_sink *dst);  /* which are never added to */
    /* Combine `n` accumulators of one block with those of another one. */
    void (*combine)(const bcast_sink *dst, const bcast_sink *src, ptrdiff_t n);
    /* Combine each group's `length` short rows of `n` accumulators, in place. */
    void (*fold)(const bcast_sink *all, ptrdiff_t groups, ptrdiff_t length, ptrdiff_t n);
    /* Multiply two arrays' terms; products are of the accumulators' type, and may be put in the place of `a`. */
    void (*multiply)(const bcast_term_products *products, void *sums);
    /* Terms of what floats differ from their means: one each, if `stride` is 1, or if it is 0, one of all. */
    void (*deviate)(int made, const char *src, const double *means, ptrdiff_t stride, double *dst, ptrdiff_t n);
} bcast_sum_kernels;

/* Results of some dtype, at any stride from each other, and so their accumulators. */
typedef struct {
    int dtype;
    int sum_size;               /* of an accumulator, in bytes */
    char *dst;
    ptrdiff_t stride;           /* between results, in bytes */
    ptrdiff_t sum_stride;       /* between accumulators, in bytes */
} bcast_results;

/* How exact sums become results: divided, and rounded once. */
typedef struct {
    double divisor;             /* an integer */
    int digits;                 /* of results, in bits: if fewer than 53, they are rounded again when they are stored */
    double least_normal;        /* the least result with so many digits */
} bcast_settling;

/* The kernels of an instruction set. */
typedef struct {
    bcast_sum_kernels kernels[BCAST_KINDS];     /* that sum */
    void (*store)(const bcast_results *results, const void *sums, ptrdiff_t n);
    int (*add_errors)(double *sum, const double *error, ptrdiff_t n);   /* whether a sum is infinite or no number */
    void (*divide)(double *sums, double by, int root, ptrdiff_t n);     /* and take the roots, if asked to */
    /* Make accumulators of exact sums results, in place; those that are not settled become NaN. Return whether results
       are infinite or NaN. */
    int (*settle)(const bcast_settling *how, const bcast_sink *block, ptrdiff_t n);
} bcast_sum_target;

#endif
