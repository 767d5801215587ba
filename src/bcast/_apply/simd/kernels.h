/* The kernels of the element-wise core: conversions between dtypes, and loops of our own in place of NumPy's.

   `kernels.cpp` has them, for each target. Items are contiguous, unless stated otherwise. */

#ifndef BCAST_APPLY_KERNELS_H
#define BCAST_APPLY_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Numbers of functions, the indices of tables of loops. The first six have loops for many short rows, the first twelve
   for floats of 16 bits; all except comparisons can be steps of a fused loop. Only fused loops have bounds: `at_least`
   is y if x < y, `at_most` is y if x > y, and otherwise both are x, for any NaN and signs of zeros. NumPy clips in this
   way by a single bound. */
enum {
    bcast_number_add, bcast_number_subtract, bcast_number_multiply, bcast_number_divide, bcast_number_maximum,
    bcast_number_minimum, bcast_number_equal, bcast_number_not_equal, bcast_number_less, bcast_number_less_equal,
    bcast_number_greater, bcast_number_greater_equal, bcast_number_rint, bcast_number_at_least, bcast_number_at_most,
    bcast_number_square, bcast_number_absolute      /* only for loops that fold */
};

/* A conversion of n items. */
typedef void (*bcast_cast)(ptrdiff_t n, const void *src, void *dst);

/* A loop like NumPy's: dims[0] items of each operand and of the result, `strides` bytes apart. */
typedef int (*bcast_loop)(
    void *context, char *const *data, const ptrdiff_t *dims, const ptrdiff_t *strides, void *auxdata);

/* A loop of ours beside NumPy's, and the data for NumPy's. */
typedef struct {
    bcast_loop loop;
    void *context;
    void *auxdata;
} bcast_numpys_loop;

/* A loop over rows, `row_strides` bytes apart, of n items each. An operand's items in a row are contiguous, or a single
   item is repeated; at least one operand has contiguous items. Results may overwrite an operand, each result its own
   item. */
typedef void (*bcast_row_loop)(
    ptrdiff_t rows, ptrdiff_t n, char *const *data, const ptrdiff_t *strides, const ptrdiff_t *row_strides);

/* Several functions of float32, one after the other. Each result is rounded, as in single loops. */
enum { bcast_into_floats, bcast_into_halves, bcast_into_bytes, bcast_into_saturated_bytes };
typedef struct {
    ptrdiff_t n;                    /* items */
    int bytes;                      /* whether the input is bytes, to be converted; else float32 */
    int into;                       /* form of the results */
    int steps;                      /* functions */
    const uint8_t *functions;       /* by their numbers */
    const float *const *operands;   /* the second one of each function: contiguous items, or a single item */
    const ptrdiff_t *strides;       /* 0 for an operand with a single item */
    const void *src;
    void *dst;
} bcast_fusion;

/* Results that each combine some terms; each term is the result of some functions, one after the other. Either items
   are floats and the functions arithmetic, or items are floats or integers and the only function is a comparison. */
enum {
    bcast_fold_sum, bcast_fold_greatest, bcast_fold_least,      /* folds of arithmetic */
    bcast_fold_any, bcast_fold_all, bcast_fold_count            /* folds of comparisons */
};
typedef struct {
    char kind;                      /* kind of items, by NumPy's letter: 'f', 'i' or 'u' */
    int size;                       /* size of an item, in bytes */
    ptrdiff_t n;                    /* contiguous items: results, or terms of one result */
    ptrdiff_t depth;                /* terms of each result, at least one; counts of bytes have 255 at most */
    int steps;                      /* functions */
    const uint8_t *functions;       /* by their numbers */
    /* The first function's first operand, then each function's second operand; a missing one is never read. */
    const char *const *operands;
    const ptrdiff_t *strides;       /* strides between items: the size of an item, or 0 for a single item */
    const ptrdiff_t *depth_strides; /* strides between terms of a result, in bytes */
    int fold;
    int compares;                   /* whether the function is a comparison */
    int complements;                /* for kernels: whether the complement is computed */
    double divisor;                 /* divisor of sums */
    void *dst;                      /* overlaps no operand */
} bcast_folding;

/* The state of one result after some terms. */
typedef struct {
    double sum, error;
    double extreme;
    int64_t count;
} bcast_folded;

/* A row of float32 or float64 in which an extreme is searched for. A NaN causes an error of a comparison. */
typedef struct {
    int size;                       /* size of an item, in bytes */
    int greatest;                   /* or the smallest */
    ptrdiff_t n;
    const void *row;
    ptrdiff_t number;               /* number of the row among rows, or of its first item within a longer row */
    void *best;                     /* the extreme of each column in earlier rows, unless this is the first row */
    void *positions;                /* the numbers of their rows, as integers of the same size */
} bcast_position_rows;

/* The conversion between two dtypes, given by NumPy's numbers, as in C and NumPy; NULL if there is none. `bfloat16` is
   the number of ml_dtypes' dtype. If a kind of number or a part of its range is lost, NumPy may convert differently:
   `exact` returns only conversions that are the same everywhere. A bool is true if its byte is not 0, and becomes 0
   or 1. */
bcast_cast bcast_cast_of(int target, int from, int to, int bfloat16, int exact);

/* The conversion of real numbers to integers with casting 'saturate': rounded to whole numbers, ties to even, and
   clipped to the range of the type. NaN becomes 0. None of this is an error. */
bcast_cast bcast_saturating_cast_of(int target, int from, int to, int bfloat16);

/* Reverse the bytes of n units of 2, 4 or 8 bytes. */
void bcast_swap_bytes(int target, ptrdiff_t n, int size, void *items);

/* Our loop for a ufunc, by its name, NumPy's letter for the kind of items, and their size; NULL if there is none. Items
   are contiguous, or a single item is repeated. */
bcast_loop bcast_loop_of(int target, const char *ufunc, char kind, int size);

/* The loop of `where`, for items of any size; the size is its auxdata. */
bcast_loop bcast_select_loop(int target);

/* The same for two floats of 16 bits, by a function's number. */
bcast_loop bcast_half_loop(int target, int is_bfloat, int function);

/* The loop of a function over many short rows, of floats or of integers; NULL if there is none. */
bcast_row_loop bcast_row_loop_of(int target, int is_float, int size, int function);

/* Fused loops: whether there are any; whether they give float16; whether they have bounds, extremes, `rint` and bytes
   as results; and the loop itself. For results rounded to float16, it reports an underflow or overflow: single steps
   show which of the two. */
int bcast_fuses(int target);
int bcast_fuses_halves(int target);
int bcast_fuses_more(int target);
void bcast_fuse(int target, const bcast_fusion *fusion);

/* Compute n results of `depth` terms; or given an earlier result, add n terms to it: `any` and `all` of a row count.
   Arithmetic may have intermediate errors that NumPy would not report, and an extreme of a row that is zero may have
   the wrong sign. */
void bcast_fold(int target, const bcast_folding *folding, bcast_folded *onto);

/* Update the extreme of each column; or of one row, whose position is `count`. The first of equal items counts. */
void bcast_keep_positions(int target, const bcast_position_rows *rows);
void bcast_find_position(int target, const bcast_position_rows *row, bcast_folded *onto);

/* Replace n items of float32 or float64 by their square roots. */
void bcast_take_roots(int target, int size, ptrdiff_t n, void *items);

#ifdef __cplusplus
}
#endif

#endif
