# Runs a plan. `counted` uses the functions that combine and pack rows, `search` uses the number of threads, and the
# interface uses the other functions.

from libc.stdint cimport int64_t

from bcast._reduce.kernels cimport Kernels, Measuring, PositionKernels, Settling, ShortKernel, Sink, Target
from bcast._reduce.plan cimport Axes, Cursor, Reduction, ReductionPlan, Terms
from bcast._runtime.core cimport PAGE, count_threads
from bcast._runtime.tuning cimport WAKING_TIMES

cdef enum:
    LOCAL_BYTES = 2 * PAGE      # scratch on the stack: malloc would cost a fifth of a small call's time

cdef Py_ssize_t share_bytes     # bytes to read that justify a thread: the constant SUM_SHARE_BYTES, or a test's value


cdef inline int threads_for(Py_ssize_t nbytes, Py_ssize_t units) noexcept nogil:
    """The number of threads that read `nbytes` bytes in `units` units of work."""
    return count_threads(nbytes, share_bytes, WAKING_TIMES // 2, units)


cdef struct ItemRows:
    # Rows of items in place.
    const char *src
    int dtype               # dtype of the items: its row in the table of dtypes
    Py_ssize_t count        # number of rows
    Py_ssize_t stride       # stride between rows, in bytes
    Py_ssize_t width        # items of a row
    Py_ssize_t item_stride  # stride between items of a row, in bytes

cdef struct ExactRows:
    # Rows whose items, and their squares, are summed exactly.
    const char *src
    int dtype               # of the items: FLOAT64, INT64 or UINT64
    Py_ssize_t count        # of rows
    Py_ssize_t advance      # between rows, in bytes
    Py_ssize_t length       # items of a row
    Py_ssize_t stride       # between items of a row, in bytes
    Py_ssize_t part_stride  # between the parts of complex items, in bytes
    Measuring how
    double *results         # of each row; or three rows of bounded sums of integers
    int64_t *digits         # of each row, for the sums of each part, and then those of squares
    double *specials        # sums of infinite items and NaN, in the same order; otherwise 0
    int64_t *counts         # of the items of each row


cdef struct DigitSums:
    # Sums whose digits are rows of an array.
    const int64_t *digits
    int low                 # the place of the first digit
    int length              # digits of each sum
    Py_ssize_t count        # of sums
    const double *specials  # sums of infinite terms and NaN, otherwise 0
    const int64_t *divisors     # of means; or the numbers of terms

# Callers pass a range of share numbers, and scratch of the size that the plan gives. If tiles have several shares,
# `partials` has a block of each array of accumulators for each share.
cdef void reduce_shares(
    const ReductionPlan *plan, Py_ssize_t begin, Py_ssize_t end, char *scratch, char *partials) noexcept nogil
cdef void combine_shares(const ReductionPlan *plan, char *partials) noexcept nogil

cdef bint reduce_rows(const Reduction *reduction, const ItemRows *rows, Sink dst) noexcept nogil
cdef void pack_rows(const Terms *terms, const ItemRows *rows, char *packed) noexcept nogil
cdef bint seek(const Axes *axes, bint kept, Py_ssize_t number, Cursor *cursor) noexcept nogil

# The parts of operations, for the interface: kernels, and how accumulators are finished.
cdef const Target *sum_target(int target) noexcept nogil
cdef const Kernels *operation_kernels(int target, int operation, int dtype) noexcept nogil
cdef const PositionKernels *position_kernels(int target, int dtype) noexcept nogil
cdef ShortKernel short_kernel(int target, int operation, int kind, int length, int rows) noexcept nogil
cdef void pack_items(
    int dtype, bint as_real, char *dst, const char *src, Py_ssize_t stride, Py_ssize_t n) noexcept nogil
cdef bint finish_sums(const Reduction *reduction, const Sink *block, Py_ssize_t n) noexcept nogil
cdef bint finish_sums_once(const Reduction *reduction, const Sink *block, Py_ssize_t n) noexcept nogil
cdef bint repeat_terms(const Reduction *reduction, const Sink *block, Py_ssize_t n) noexcept nogil
cdef bint finish_float_products(const Reduction *reduction, const Sink *block, Py_ssize_t n) noexcept nogil
cdef void sum_again(const ReductionPlan *plan, Cursor first, const Sink *accumulators) noexcept nogil
cdef bint finish_exact_sums(const Reduction *reduction, const Sink *block, Py_ssize_t n) noexcept nogil
cdef void sum_exactly(const ReductionPlan *plan, Cursor first, const Sink *accumulators) noexcept nogil
cdef bint finish_expansions(const Reduction *reduction, const Sink *block, Py_ssize_t n) noexcept nogil
cdef bint finish_bounded_sums(const Reduction *reduction, const Sink *block, Py_ssize_t n) noexcept nogil
cdef void expand_exactly(const ReductionPlan *plan, Cursor first, const Sink *accumulators) noexcept nogil
cdef Settling settling_of(int dtype, double divisor) noexcept nogil
cdef void measure_rows(const ExactRows *rows, Py_ssize_t begin, Py_ssize_t end) noexcept nogil
cdef void write_digits_of_rows(const ExactRows *rows, Py_ssize_t begin, Py_ssize_t end, int *range_) noexcept nogil
cdef void bound_rows_of_integers(
    const ExactRows *rows, double *squares, Py_ssize_t begin, Py_ssize_t end) noexcept nogil
cdef void round_digits(const DigitSums *sums, double *results, bint to_odd) noexcept nogil
cdef void measure_digits(
    const Measuring *how, const DigitSums *sums, const DigitSums *squares, double *results) noexcept nogil
cdef bint finish_scaled_products(const Reduction *reduction, const Sink *block, Py_ssize_t n) noexcept nogil
cdef void divide_sums(const Reduction *reduction, const Sink *block, Py_ssize_t n) noexcept nogil
cdef bint has_special(int dtype, const char *items, Py_ssize_t n) noexcept nogil
