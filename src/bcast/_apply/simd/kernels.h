/* The kernels of the element-wise core: conversions between dtypes, and loops of our own in place of NumPy's.

   `kernels.cpp` has them, for each target. Items lie side by side, unless it says otherwise. */

#ifndef BCAST_APPLY_KERNELS_H
#define BCAST_APPLY_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Numbers of functions, by which tables of loops are read. The first six have loops of many short rows, the first
   twelve for floats of 16 bits; all but comparisons can be steps of a fused loop. Of the bounds, which fused loops
   alone have, `at_least` is y where x < y, and `at_most` y where x > y; and else x, whatever NaN and signs of zeros
   there are. So NumPy cuts by one bound for all. */
enum {
    bcast_number_add, bcast_number_subtract, bcast_number_multiply, bcast_number_divide, bcast_number_maximum,
    bcast_number_minimum, bcast_number_equal, bcast_number_not_equal, bcast_number_less, bcast_number_less_equal,
    bcast_number_greater, bcast_number_greater_equal, bcast_number_rint, bcast_number_at_least, bcast_number_at_most,
    bcast_number_square, bcast_number_absolute      /* of loops that fold alone */
};

/* A conversion of n items. */
typedef void (*bcast_cast)(ptrdiff_t n, const void *src, void *dst);

/* A loop like NumPy's: dims[0] items of each operand and of the result, `strides` bytes apart. */
typedef int (*bcast_loop)(
    void *context, char *const *data, const ptrdiff_t *dims, const ptrdiff_t *strides, void *auxdata);

/* A loop of ours beside NumPy's, and what that is called with. */
typedef struct {
    bcast_loop loop;
    void *context;
    void *auxdata;
} bcast_numpys_loop;

/* A loop over rows, `row_strides` bytes apart, of n items each. An operand's items of a row lie side by side, or one
   stands for all; those of one operand at least lie side by side. Results may lie where an operand's items do, one for
   one. */
typedef void (*bcast_row_loop)(
    ptrdiff_t rows, ptrdiff_t n, char *const *data, const ptrdiff_t *strides, const ptrdiff_t *row_strides);

/* Several functions of float32, one after the other. Each result is rounded, as those of single loops are. */
enum { bcast_into_floats, bcast_into_halves, bcast_into_bytes, bcast_into_saturated_bytes };
typedef struct {
    ptrdiff_t n;                    /* items */
    int bytes;                      /* whether bytes come in, which are converted; else float32 */
    int into;                       /* what goes out */
    int steps;                      /* functions */
    const uint8_t *functions;       /* by their numbers */
    const float *const *operands;   /* the second one of each function: items side by side, or one for all */
    const ptrdiff_t *strides;       /* 0 where an operand is one for all */
    const void *src;
    void *dst;
} bcast_fusion;

/* Results that are each made of some terms, and a term of some functions, one after the other. Items are floats, whose
   functions are arithmetic; or floats or integers, and the one function is a comparison. */
enum {
    bcast_fold_sum, bcast_fold_greatest, bcast_fold_least,      /* of arithmetic */
    bcast_fold_any, bcast_fold_all, bcast_fold_count            /* of comparisons */
};
typedef struct {
    char kind;                      /* of items, by NumPy's letter: 'f', 'i' or 'u' */
    int size;                       /* of an item, in bytes */
    ptrdiff_t n;                    /* items side by side: results, or terms of one result */
    ptrdiff_t depth;                /* terms of each result, at least one; counts of bytes have 255 at most */
    int steps;                      /* functions */
    const uint8_t *functions;       /* by their numbers */
    /* What the first function takes, then the second operand of each; one that there is not is never read. */
    const char *const *operands;
    const ptrdiff_t *strides;       /* from item to item: the size of one, or 0 where there is one for all */
    const ptrdiff_t *depth_strides; /* from term to term of a result, in bytes */
    int fold;
    int compares;                   /* whether the function is a comparison */
    int complements;                /* of kernels: whether its complement is meant */
    double divisor;                 /* of sums */
    void *dst;                      /* overlaps no operand */
} bcast_folding;

/* What is known of one result after some terms. */
typedef struct {
    double sum, error;
    double extreme;
    int64_t count;
} bcast_folded;

/* A row of float32 or float64, among which an extreme is sought. No item is NaN: that is an error of a comparison. */
typedef struct {
    int size;                       /* of an item, in bytes */
    int greatest;                   /* or the least */
    ptrdiff_t n;
    const void *row;
    ptrdiff_t number;               /* of the row among others, or of its first item among those of one row */
    void *best;                     /* the extreme of each column of rows before, if this is not the first one */
    void *positions;                /* the numbers of their rows, of as many bytes */
} bcast_position_rows;

/* What converts numbers of one dtype to another, by NumPy's numbers for these, as C and NumPy do; NULL where nothing
   here does. `bfloat16` is the number of ml_dtypes' dtype. Where a kind of number is lost, or what they hold, NumPy may
   have it otherwise: only what converts as everywhere is `exact`. A bool holds if its byte is not 0, and becomes 0 or
   1. */
bcast_cast bcast_cast_of(int target, int from, int to, int bfloat16, int exact);

/* What converts real numbers to integers as casting 'saturate' does: rounded to whole numbers, ties to the even one,
   and cut at the least and at the most that the type holds. NaN becomes 0. Nothing of that is an error. */
bcast_cast bcast_saturating_cast_of(int target, int from, int to, int bfloat16);

/* Reverse the bytes of n units of 2, 4 or 8 bytes. */
void bcast_swap_bytes(int target, ptrdiff_t n, int size, void *items);

/* The loop of ours for a ufunc, by its name, of items of a kind, by NumPy's letter for that, and a size; NULL if there
   is none. Items lie side by side, or one stands for all. */
bcast_loop bcast_loop_of(int target, const char *ufunc, char kind, int size);

/* That of `where`, for items of any size, which is its auxdata. */
bcast_loop bcast_select_loop(int target);

/* The same for two floats of 16 bits, by a function's number. */
bcast_loop bcast_half_loop(int target, int is_bfloat, int function);

/* The loop of a function over many short rows, of floats or of integers; NULL if there is none. */
bcast_row_loop bcast_row_loop_of(int target, int is_float, int size, int function);

/* Fused loops: whether there are any; whether they give float16; whether they have bounds, extremes, `rint` and bytes
   as results; and the loop itself. It tells underflow or overflow of results that are rounded to float16: single steps
   tell which. */
int bcast_fuses(int target);
int bcast_fuses_halves(int target);
int bcast_fuses_more(int target);
void bcast_fuse(int target, const bcast_fusion *fusion);

/* Make n results of `depth` terms; or if there is one to go on with, add n terms to that: `any` and `all` of a row
   count. Arithmetic may have errors on the way that NumPy would not tell, and an extreme of a row that is zero may have
   the wrong sign. */
void bcast_fold(int target, const bcast_folding *folding, bcast_folded *onto);

/* Go on with the extreme of each column; or with that of one row, whose position is `count`. The first one counts. */
void bcast_keep_positions(int target, const bcast_position_rows *rows);
void bcast_find_position(int target, const bcast_position_rows *row, bcast_folded *onto);

/* Replace n items of float32 or float64 by their square roots. */
void bcast_take_roots(int target, int size, ptrdiff_t n, void *items);

#ifdef __cplusplus
}
#endif

#endif
