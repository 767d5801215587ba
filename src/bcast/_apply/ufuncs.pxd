# cython: cdivision=True
cimport numpy as cnp
from libc.stdint cimport int64_t, uint8_t

from bcast._runtime.numpy_private cimport Loop

cdef struct BoundLoop:      # a loop and its arguments
    Loop function           # NULL if there is none
    void *context
    void *auxdata

# A loop of our own for many short rows; `simd/kernels.h` lists the layouts that it accepts.
ctypedef void (*RowLoop)(
    Py_ssize_t rows, Py_ssize_t items, char *const *data, const Py_ssize_t *strides, const Py_ssize_t *row_strides
) noexcept nogil

# A conversion of contiguous items.
ctypedef void (*Cast)(Py_ssize_t items, const void *src, void *dst) noexcept nogil

# What a fused loop computes; `simd/kernels.h` documents each field.
cdef extern from "_apply/simd/kernels.h":
    enum:
        AT_LEAST "bcast_number_at_least"
        AT_MOST "bcast_number_at_most"
        INTO_FLOATS "bcast_into_floats"
        INTO_HALVES "bcast_into_halves"
        INTO_BYTES "bcast_into_bytes"
        INTO_SATURATED_BYTES "bcast_into_saturated_bytes"
    ctypedef struct Fusion "bcast_fusion":
        Py_ssize_t n
        int bytes, into, steps
        const uint8_t *functions
        const float *const *operands
        const Py_ssize_t *strides
        const void *src
        void *dst

# How terms are folded; `simd/kernels.h` documents each field.
cdef extern from "_apply/simd/kernels.h":
    enum:
        FOLDED_ADD "bcast_number_add"
        FOLDED_SUBTRACT "bcast_number_subtract"
        FOLDED_MULTIPLY "bcast_number_multiply"
        FOLDED_DIVIDE "bcast_number_divide"
        FOLDED_EQUAL "bcast_number_equal"
        FOLDED_NOT_EQUAL "bcast_number_not_equal"
        FOLDED_LESS "bcast_number_less"
        FOLDED_LESS_EQUAL "bcast_number_less_equal"
        FOLDED_GREATER "bcast_number_greater"
        FOLDED_GREATER_EQUAL "bcast_number_greater_equal"
        FOLDED_SQUARE "bcast_number_square"
        FOLDED_ABSOLUTE "bcast_number_absolute"
        FOLD_SUM "bcast_fold_sum"
        FOLD_GREATEST "bcast_fold_greatest"
        FOLD_LEAST "bcast_fold_least"
        FOLD_ANY "bcast_fold_any"
        FOLD_ALL "bcast_fold_all"
        FOLD_COUNT "bcast_fold_count"
    ctypedef struct Folding "bcast_folding":
        char kind
        int size
        Py_ssize_t n, depth
        int steps
        const uint8_t *functions
        const char *const *operands
        const Py_ssize_t *strides
        const Py_ssize_t *depth_strides
        int fold
        bint compares
        double divisor
        void *dst
    ctypedef struct Folded "bcast_folded":
        double sum, error, extreme
        int64_t count
    ctypedef struct PositionRows "bcast_position_rows":
        int size
        bint greatest
        Py_ssize_t n
        const void *row
        Py_ssize_t number
        void *best
        void *positions

cdef enum:
    # Steps of fused loops that are not functions of kernels.h:
    CLIP_FUSED = 250        # two functions
    TO_CUT_BYTES = 251      # conversions that may end a fused loop: to saturated bytes,
    TO_BYTES = 252          # to bytes as in C,
    TO_HALVES = 253         # to float16
    FROM_BYTES = 254        # a conversion that may begin a fused loop
    NOT_FUSED = 255
    OF_PACKAGES = 256       # the least number of a dtype of another package
    # Stand-ins for the number of a dtype:
    AN_INT = -1             # the number of a Python scalar
    A_FLOAT = -2
    A_COMPLEX = -3
    NONE = -4               # no dtype given, or no second operand
    OTHER = -5              # the number of an operand for NumPy

cdef object CLIP_UFUNC      # NumPy's ufunc of a number and two bounds; None if NumPy has none
cdef int bfloat16           # NumPy's number for the dtype of ml_dtypes; less than 0 until it is known


cdef class UfuncLoop:
    cdef object ufunc
    cdef object capsule         # owns the data that the loop reads
    cdef tuple dtypes           # the loop's dtypes of the operands and the result
    cdef long long key          # key of the request: the numbers of dtypes, and the casting
    cdef BoundLoop loop         # without a function if the ufunc has to run the call
    cdef BoundLoop numpys       # NumPy's loop, if `loop` is one of our own
    cdef void *context[32]      # more than any loop has
    cdef RowLoop row_loop       # NULL if there is none
    cdef Cast[4] casts          # convert operands' dtypes to those of the loop; NULL if they are the same
    cdef bint thread_safe       # the loop may run on any thread
    cdef int cost               # time of an item, relative to a sum of items of that size
    cdef bint bits_by_strides   # bits depend on whether strides are negative, or longer than an item
    cdef bint bits_by_repetition    # bits depend on whether the second operand's stride is 0
    cdef bint bits_by_direction     # the last bits may depend on whether the operand's stride is negative
    cdef bint side_by_side      # the loop accepts only contiguous items, or a single repeated one
    cdef int slow_with_stride_0     # bit mask: operands that make the loop slow if a single item is repeated
    cdef bint compares_bytes    # it compares the bytes of bools: `make_bools_plain` makes them 0 or 1
    cdef bint reports_errors      # floating-point errors are reported
    cdef bint clears_errors     # the loop clears earlier errors; known of one operand's, and if errors are noted
    cdef int noted              # bit mask: floats whose conversions' errors are noted separately
    cdef uint8_t fused          # its number in a fused loop of float32, or NOT_FUSED

cdef UfuncLoop find_loop(ufunc, int a, int b, int third, int casting)
cdef BoundLoop where_loop(Py_ssize_t size) noexcept

cdef int learn(cnp.dtype dtype) except -1
cdef bint are_same(cnp.dtype given, cnp.dtype dtype) noexcept
cdef bint find_cast(cnp.dtype given, cnp.dtype dtype, Cast *cast) except -1
cdef Cast numpys_cast(cnp.dtype given, cnp.dtype dtype) except? NULL
cdef Cast saturating_cast(cnp.dtype given, cnp.dtype dtype) noexcept
cdef Cast plain_bools_cast() noexcept
cdef uint8_t fused_cast(int given, int number, bint saturating) noexcept
cdef void swap_bytes(Py_ssize_t n, int size, void *items) noexcept nogil
cdef void fuse(const Fusion *fusion) noexcept nogil
cdef void fold(const Folding *folding, Folded *onto) noexcept nogil
cdef void keep_positions(const PositionRows *rows) noexcept nogil
cdef void find_position(const PositionRows *row, Folded *onto) noexcept nogil
cdef void take_roots(int size, Py_ssize_t n, void *items) noexcept nogil
cpdef bint may_fail(cnp.ndarray data, cnp.dtype dtype) except -1
cpdef bint saturates(cnp.dtype given, cnp.dtype dtype) except -1


cdef inline int eligible(int number) noexcept:
    """The number of a dtype whose items are converted here; otherwise OTHER."""
    return number if 0 <= number <= cnp.NPY_CLONGDOUBLE or number == cnp.NPY_FLOAT16 or number == bfloat16 else OTHER


cdef inline int number_of(operand) except? -99:
    """The number of an operand's dtype, or its stand-in."""
    cdef object kind = type(operand)
    if cnp.PyArray_CheckExact(operand):
        if cnp.PyArray_TYPE(<cnp.ndarray> operand) >= OF_PACKAGES:
            learn(<cnp.dtype> cnp.PyArray_DESCR(<cnp.ndarray> operand))
        return eligible(cnp.PyArray_TYPE(<cnp.ndarray> operand))
    if kind is int or kind is float:
        return AN_INT if kind is int else A_FLOAT
    return A_COMPLEX if kind is complex else cnp.NPY_BOOL if kind is bool else OTHER
