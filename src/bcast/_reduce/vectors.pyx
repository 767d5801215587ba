# cython: cdivision=True
"""Short vectors of 2 to 4 items: products of vectors and with matrices, norms, statistics, stacks.

In: arrays with vectors along some axis. Out: one item, or one vector, for each vector.

A loop over the items of one vector would cost more than their arithmetic. So a kernel computes many vectors at once,
one in each lane: all first items, all second items, and so on. No plan of a reduction is needed. The axes of vectors
become a nest (`VectorCall.nest`), and its longest or innermost axis is cut into chunks. The kernel is called once for
each chunk. It reads contiguous vectors, vectors whose items form contiguous columns, and a single vector that is
repeated; vectors of other layouts are packed first (`_layout_of`). For example, vectors of shape (100000, 3) are
contiguous, and along axis 0 of shape (3, 100000) they form three columns.

A sum is computed again from scaled items if a partial sum overflows or if it has a NaN (`_sum_products_again`). NumPy
reports errors: its own function is called with items that have the same errors.
"""

cimport numpy as cnp
from libc.math cimport INFINITY, fabs, isfinite, isnan
from libc.string cimport memcpy

import numpy as np

from bcast._nest.core cimport (
    Nest, coalesce_axes, drop_unit_axes, find_numpys_order, keep_rank, sort_axes, swap_axes,
)
from bcast._reduce.items cimport check_sizes, dtype_row, in_native_order, items_of, refuse_resized, row_of_dtype
from bcast._reduce.kernels cimport (
    CROSS, DOT, FLOAT16, FLOAT32, FLOAT64, MATVEC, NORM, SHORT_F32, SHORT_F64, SHORT_LANES, SHORT_LEAST,
    SHORT_MEAN_AND_SPREAD, SHORT_MOST, SHORT_SPREAD, SHORT_U16, SHORT_U32, SHORT_U64, SHORT_U8, STACK, STATISTICS,
    Dtype, Results, ShortCall, ShortKernel, ShortStatistics, ShortVectors, dtypes,
)
from bcast._reduce.plan cimport DATA, OPERANDS, OTHER, RESULTS
from bcast._reduce.run cimport LOCAL_BYTES, pack_items, share_bytes, short_kernel, sum_target, threads_for
from bcast._rules.alignment cimport Alignment
from bcast._runtime.arrays cimport MAX_AXES, reshaped, result_array, shape_of
from bcast._runtime.core cimport (
    LINE, Job, count_shares, cut, free_scratch, new_job, overlap, run_without_gil, scratch_of, take_scratch,
    target_number,
)
from bcast._runtime.tuning cimport LONG_AXIS_ITEMS, SUM_BLOCK_ITEMS

cdef extern from "numpy/ufuncobject.h":
    void PyUFunc_clearfperr() nogil
    int PyUFunc_getfperr() nogil
    enum: NPY_FPE_OVERFLOW
    enum: NPY_FPE_UNDERFLOW
    enum: NPY_FPE_INVALID

cdef extern from "_runtime/floats.h":
    void two_sum "bcast_two_sum"(double *sum, double *error, double term) noexcept nogil

cdef extern from "fenv.h" nogil:
    int raise_errors "feraiseexcept"(int)
    enum: FE_OVERFLOW

cnp.import_array()
cnp.import_umath()

VECDOT_OF_NUMPY = np.vecdot
MATVEC_OF_NUMPY = getattr(np, "matvec", None)       # NumPy 2.0 and 2.1 have none

cdef struct Vectors:
    # The layout of the vectors of an array.
    char *first                 # the first item of the first vector
    Py_ssize_t items            # items of the array
    Py_ssize_t length           # items of a vector
    Py_ssize_t stride           # stride between items of a vector, in bytes
    int rank                    # axes other than the vectors' own; 0 for a single matrix
    Py_ssize_t[MAX_AXES] shape
    Py_ssize_t[MAX_AXES] strides

cdef struct VectorCall:
    # A computation with vectors: the data common to all shares.
    int operation
    int rows                    # items of a result; for a stack, items of a vector
    Vectors a
    Vectors b                   # the second operand; or the matrix, whose rows are vectors
    Py_ssize_t row_stride       # stride between rows of the matrix, in bytes
    ShortKernel kernel
    int size                    # size of the items that the kernel reads and writes, in bytes
    bint as_real                # whether other items are packed as float64
    int[3] dtypes               # dtype of each operand of the nest: its row in the table of dtypes
    bint[3] are_read            # whether kernels read or write each operand's items directly
    Py_ssize_t result_stride    # stride between items of a result, in bytes
    Nest nest                   # the axes of vectors and results, without the vectors' own
    Py_ssize_t chunk            # vectors of one call of the kernel
    Py_ssize_t chunks           # chunks along the innermost axis
    Py_ssize_t units            # chunks along all axes
    double[SHORT_MOST * SHORT_MOST] matrix      # the matrix's items, in the kernel's order
    ShortStatistics statistics                  # the statistics to compute
    char *columns[SHORT_MOST]   # for a stack: the first item of each array
    Job job

cdef enum:
    PACKED_VECTORS = 256        # the most vectors that are packed at once: they fit the first-level cache
    PACKED_BYTES = PACKED_VECTORS * SHORT_MOST * 8
    SPREAD_BYTES = SHORT_LANES * SHORT_MOST * 8     # a single vector, repeated in all lanes

cdef enum:
    # The layouts of vectors for kernels.
    DENSE
    COLUMNS
    REPEATED
    PACKED


# ---- Functions for `_api` ----


cpdef dot_vectors(a, b, out, int axis, otherwise=None):
    """The sums of products of vectors along an axis, like `numpy.vecdot`.

    This supports arrays of the base class, with no `out` or with an `out` of the result's dtype and shape. For other
    calls, it returns `otherwise(a, b, out, axis)`, or None. A caller in Python could not choose between the two: an
    interrupt between its lines could raise after `out` has been written.
    """
    found = _dot_vectors(a, b, out, axis)
    return found if found is not None or otherwise is None else otherwise(a, b, out, axis)


cdef _dot_vectors(a, b, out, int axis):
    """The result, if the core has kernels; otherwise None."""
    cdef VectorCall call
    if type(a) is not cnp.ndarray or type(b) is not cnp.ndarray:
        return None
    a, b = in_native_order(a), in_native_order(b)
    if not _take_vectors(&call.a, a, axis) or not _take_vectors(&call.b, b, axis):
        return None
    if call.a.length != call.b.length:
        return None
    call.operation, call.rows = DOT, 1
    return _of_vectors(&call, a, b, out, -1, VECDOT_OF_NUMPY)


cpdef transform_vectors(matrices, vectors, out, otherwise=None):
    """The products of matrices and vectors, like `numpy.matvec`. `dot_vectors` describes `out` and `otherwise`."""
    found = _transform_vectors(matrices, vectors, out)
    return found if found is not None or otherwise is None else otherwise(matrices, vectors, out)


cdef _transform_vectors(matrices, vectors, out):
    """The result, if the core has kernels; otherwise None."""
    cdef VectorCall call
    cdef cnp.ndarray matrix
    cdef int last

    if type(matrices) is not cnp.ndarray or type(vectors) is not cnp.ndarray:
        return None
    matrix, vectors = in_native_order(matrices), in_native_order(vectors)
    last = cnp.PyArray_NDIM(matrix) - 1
    if last < 1 or not _take_vectors(&call.a, vectors, -1) or not _take_vectors(&call.b, matrix, last):
        return None
    if call.a.length != call.b.length:
        return None

    call.operation, call.rows = DOT, 1
    if _has_one_matrix(matrix) and SHORT_LEAST <= cnp.PyArray_DIM(matrix, last - 1) <= SHORT_MOST:
        call.operation, call.rows = MATVEC, <int> cnp.PyArray_DIM(matrix, last - 1)
        call.row_stride = cnp.PyArray_STRIDE(matrix, last - 1)
        call.b.rank -= 1
    elif not _add_axis_of_one(&call.a):     # each row of a matrix is a vector
        return None
    return _of_vectors(&call, vectors, matrix, out, -1, MATVEC_OF_NUMPY)


cpdef cross_vectors(a, b, int axis_of_a, int axis_of_b, int axis_of_result):
    """The cross products of vectors of 3 items, like `numpy.cross`; None for other calls, or if a product has an error.
    """
    cdef VectorCall call
    if type(a) is not cnp.ndarray or type(b) is not cnp.ndarray:
        return None
    a, b = in_native_order(a), in_native_order(b)
    if not _take_vectors(&call.a, a, axis_of_a) or not _take_vectors(&call.b, b, axis_of_b):
        return None
    if call.a.length != 3 or call.b.length != 3:
        return None
    call.operation, call.rows = CROSS, 3
    return _of_vectors(&call, a, b, None, axis_of_result, None)


cpdef measure_vectors(cnp.ndarray data, int axis):
    """The norms of vectors of 2 to 4 real numbers along an axis; None for others."""
    cdef VectorCall call
    data = in_native_order(data)
    if not _take_vectors(&call.a, data, axis):
        return None
    call.b = call.a
    call.operation, call.rows = NORM, 1
    return _of_vectors(&call, data, data, None, -1, None)


# ---- Calls of NumPy's functions ----


cdef _of_vectors(VectorCall *call, cnp.ndarray a, cnp.ndarray b, out, int axis_of_result, function):
    """Compute a call; None to leave it to NumPy. NumPy's `function` reports errors."""
    cdef cnp.ndarray written
    cdef cnp.dtype dtype = _dtype_of_vectors(call.operation, a, b)
    cdef tuple shape
    cdef int errors

    if dtype is None or not _choose_vector_kernel(call, a, b, dtype):
        return None
    shape = _shape_of_vectors(call, &axis_of_result)
    if shape is None or not (out is None or _takes_results(out, shape, dtype)):
        return None

    written = _new_result(call, a, shape, dtype) if out is None else _out_or_own(call, out, a, b, dtype)
    _check_vectors(&call.a, a)
    _check_vectors(&call.b, b)
    errors = _write_vectors(call, a, b, written, axis_of_result)
    if errors and call.operation == CROSS and _is_reported(errors):
        return None     # NumPy computes the product again, and reports the step with the error
    if errors and function is not None:
        _report_errors(function, errors)
    return _handed_out(written, out)


cdef _handed_out(cnp.ndarray written, out):
    """The user's result: `out`, filled; or the array of results, as a scalar if it has no axes."""
    if out is None:
        return written if cnp.PyArray_NDIM(written) else written[()]
    if written is not out:
        np.copyto(out, written)
    return out


cdef bint _takes_results(out, tuple shape, cnp.dtype dtype) except -1:
    """Whether a user's `out` is a writeable array of a shape and a dtype."""
    return type(out) is cnp.ndarray and cnp.PyArray_TYPE(<cnp.ndarray> out) == dtype.type_num and _fits(out, shape)


cdef bint _fits(cnp.ndarray out, tuple shape) except -1:
    """Whether a user's `out` is writeable and has a shape, and its items do not overlap."""
    cdef int i
    if not cnp.PyArray_ISWRITEABLE(out) or shape_of(out) != shape:
        return False
    for i in range(cnp.PyArray_NDIM(out)):
        if cnp.PyArray_STRIDE(out, i) == 0 and cnp.PyArray_DIM(out, i) > 1:
            return False
    return True


cdef cnp.ndarray _out_or_own(VectorCall *call, cnp.ndarray out, cnp.ndarray a, cnp.ndarray b, cnp.dtype dtype):
    """The array that kernels write to: `out`, or a temporary array if `out` overlaps or an error is possible."""
    if call.as_real or call.size == 4 or _must_not_write(out, a, b):
        return result_array(None, a, shape_of(out), "a", dtype)
    return out


cdef inline bint _must_not_write(cnp.ndarray out, cnp.ndarray a, cnp.ndarray b) except -1:
    """Whether results cannot be written to `out` while vectors are read."""
    return not cnp.PyArray_ISNOTSWAPPED(out) or overlap(a, out) or overlap(b, out)


cdef inline int _check_vectors(const Vectors *vectors, cnp.ndarray array) except -1:
    """Check that an array still has its earlier properties: user code may have run since."""
    if vectors.first != <char *> cnp.PyArray_DATA(array) or vectors.items != items_of(array):
        refuse_resized()
    return 0


cdef int _write_vectors(
    VectorCall *call, cnp.ndarray a, cnp.ndarray b, cnp.ndarray written, int axis_of_result,
) except -1:
    """Write results; return the floating-point errors of all of them."""
    cdef Py_ssize_t nbytes = cnp.PyArray_NBYTES(a) + cnp.PyArray_NBYTES(b) + cnp.PyArray_NBYTES(written)
    if items_of(written) == 0:
        return 0
    _lay_out_vectors(call, written, axis_of_result)
    if call.operation == MATVEC:
        _pack_matrix(call)
    return _run_vectors(call, nbytes, (a, b, written))


# ---- Along the last axis of a reduction ----


cdef bint sum_short_products(cnp.ndarray grad, cnp.ndarray times, tuple source, cnp.ndarray out) except -1:
    """Sum products along an innermost axis of 2 to 4 items into `out`; return whether it did.

    `_choose_products` has checked the dtypes. This function returns False for other axes, and if a sum or a partial sum
    overflows; the caller then writes `out` again.
    """
    cdef VectorCall call
    cdef cnp.ndarray results
    cdef int axis = _only_reduced_axis(grad, source)
    cdef int missing = cnp.PyArray_NDIM(grad) - cnp.PyArray_NDIM(times)

    if axis < 0 or cnp.PyArray_STRIDE(grad, axis) != cnp.PyArray_ITEMSIZE(grad):
        return False
    if not _can_write_in_place(out, grad, times) or not _take_vectors(&call.a, grad, axis):
        return False
    call.operation, call.rows = DOT, 1
    if not _choose_vector_kernel(&call, grad, times, <cnp.dtype> cnp.PyArray_DESCR(out)):
        return False

    results = reshaped(out, source)
    call.b = call.a     # for the length; other fields are set below
    call.b.first = <char *> cnp.PyArray_DATA(times)
    call.b.stride = _stride_of_other(times, axis - missing)
    _read_kept_axes(&call, grad, times, axis)
    _lay_out_vectors(&call, results, axis)
    return _run_vectors(&call, cnp.PyArray_NBYTES(grad) + cnp.PyArray_NBYTES(out), (grad, times, out)) == 0


# `_api` passes options one by one, which become the fields of `ShortStatistics`.
cpdef bint find_statistics_onto(
    cnp.ndarray data, Alignment alignment, cnp.ndarray first, cnp.ndarray second, int made, bint root=False,
    double ddof=0, bint skips_nan=False,
) except -1:
    """Write statistics of vectors of 2 to 4 real numbers along the only reduced axis; `made` selects them.

    SHORT_MEAN_AND_SPREAD writes means into `first`, and variances or their roots into `second`, of the same dtype and
    strides; all others write one result, into `first`. Return whether kernels can do this; otherwise do nothing.
    """
    cdef VectorCall call
    cdef cnp.ndarray results
    cdef int axis = _only_reduced_axis(data, alignment.source)
    cdef Py_ssize_t nbytes = cnp.PyArray_NBYTES(data) + 2 * cnp.PyArray_NBYTES(first)

    if axis < 0 or not _have_short_statistics(data, first):
        return False
    check_sizes(data, alignment.source, items_of(first))
    if not _take_vectors(&call.a, data, axis):
        return False

    call.b = call.a
    call.operation, call.rows = STATISTICS, 2 if made == SHORT_MEAN_AND_SPREAD else 1
    call.statistics = ShortStatistics(
        made=made,
        root=root,
        skips_nan=skips_nan,
        compensates=made != SHORT_SPREAD and not _are_exact_in_float64(data, first),
        ddof=ddof,
    )
    if not _choose_vector_kernel(&call, data, data, <cnp.dtype> cnp.PyArray_DESCR(first)):
        return False
    _read_kept_axes(&call, data, data, axis)
    results = reshaped(first, alignment.source)
    _lay_out_vectors(&call, results, axis)
    if made == SHORT_MEAN_AND_SPREAD and not _take_second_results(&call, first, second):
        return False
    _run_vectors(&call, nbytes, (data, first, second))
    return True


cdef inline bint _have_short_statistics(cnp.ndarray data, cnp.ndarray out) except -1:
    """Whether kernels read real numbers of `data`, and write floats to `out` meanwhile."""
    if dtype_row(data) < 0 or dtype_row(out) < 0 or cnp.PyArray_ISCOMPLEX(data):
        return False
    return dtypes[dtype_row(out)].is_float and _can_write_in_place(out, data, data)


cdef bint _take_second_results(VectorCall *call, cnp.ndarray first, cnp.ndarray second) except -1:
    """Set the distance between both results to that of their arrays; return whether kernels can use it."""
    if not cnp.PyArray_ISCARRAY(first) or not cnp.PyArray_ISCARRAY(second):
        return False
    if items_of(second) != items_of(first) or dtype_row(second) != dtype_row(first):
        raise ValueError(f"`second` expected an array like `first`, got {second.dtype}")
    call.result_stride = <char *> cnp.PyArray_DATA(second) - <char *> cnp.PyArray_DATA(first)
    return True


cdef inline bint _are_exact_in_float64(cnp.ndarray data, cnp.ndarray out) noexcept:
    """Whether sums of few items are exact in float64, or more exact than the results."""
    cdef const Dtype *dtype = &dtypes[dtype_row(data)]
    return dtype.size < 8 and not dtype.is_float or dtypes[dtype_row(out)].size < 8


cdef int _only_reduced_axis(cnp.ndarray grad, tuple source) except -2:
    """The only reduced axis, if it has 2 to 4 items; otherwise -1."""
    cdef int found = -1, i
    cdef Py_ssize_t length
    if len(source) != cnp.PyArray_NDIM(grad):
        return -1
    for i in range(cnp.PyArray_NDIM(grad)):
        length = cnp.PyArray_DIM(grad, i)
        if <Py_ssize_t> source[i] == length:
            continue
        if found >= 0 or <Py_ssize_t> source[i] != 1 or not SHORT_LEAST <= length <= SHORT_MOST:
            return -1
        found = i
    return found


cdef void _read_kept_axes(VectorCall *call, cnp.ndarray data, cnp.ndarray other, int axis) noexcept:
    """Describe all axes of `data` except one; `other` broadcasts to `data`."""
    cdef int missing = cnp.PyArray_NDIM(data) - cnp.PyArray_NDIM(other), n = 0, i
    for i in range(cnp.PyArray_NDIM(data)):
        if i != axis:
            call.nest.shape[n] = cnp.PyArray_DIM(data, i)
            call.nest.stride[DATA][n] = cnp.PyArray_STRIDE(data, i)
            call.nest.stride[OTHER][n] = _stride_of_other(other, i - missing)
            n += 1
    call.nest.n, call.nest.rank = OPERANDS, n


cdef inline Py_ssize_t _stride_of_other(cnp.ndarray times, int axis) noexcept:
    """The stride of a broadcasting operand along an axis; the operand lacks axes with negative numbers."""
    return cnp.PyArray_STRIDE(times, axis) if axis >= 0 and cnp.PyArray_DIM(times, axis) != 1 else 0


cdef inline bint _can_write_in_place(cnp.ndarray out, cnp.ndarray grad, cnp.ndarray times) noexcept:
    """Whether all arrays have native byte order, and kernels may write to `out` while they read the others."""
    if not (cnp.PyArray_ISNOTSWAPPED(out) and cnp.PyArray_ISNOTSWAPPED(grad) and cnp.PyArray_ISNOTSWAPPED(times)):
        return False
    if cnp.PyArray_ISCOMPLEX(out):      # kernels do not write imaginary parts
        return False
    return items_of(out) > 0 and not overlap(grad, out) and not overlap(times, out)


# ---- Stacks ----


cpdef stack_vectors(arrays):
    """`numpy.stack` of 2 to 4 contiguous arrays of one shape and dtype along a last axis; None for others."""
    cdef VectorCall call
    cdef cnp.ndarray first, result
    cdef tuple parts = tuple(arrays)

    if not SHORT_LEAST <= len(parts) <= SHORT_MOST or not _are_stacked(parts):
        return None

    first = parts[0]
    result = result_array(None, first, shape_of(first) + (len(parts),), "arrays")
    _lay_out_stack(&call, parts, result)
    if items_of(first):
        _run_vectors(&call, 2 * cnp.PyArray_NBYTES(result), (parts, result))
    return result


cdef bint _are_stacked(tuple arrays) except -1:
    """Whether a kernel interleaves these arrays: they are contiguous, of one shape and dtype, and copied as bits."""
    cdef cnp.ndarray first, each
    for array in arrays:
        if type(array) is not cnp.ndarray or not cnp.PyArray_IS_C_CONTIGUOUS(<cnp.ndarray> array):
            return False

    first = arrays[0]
    if not cnp.PyArray_ISNOTSWAPPED(first):     # NumPy's result has native byte order
        return False
    if not 0 <= cnp.PyArray_TYPE(first) < cnp.NPY_OBJECT or _kind_of_units(cnp.PyArray_ITEMSIZE(first)) < 0:
        return False
    for array in arrays:
        each = array
        if cnp.PyArray_DESCR(each) != cnp.PyArray_DESCR(first) or not cnp.PyArray_SAMESHAPE(each, first):
            return False
    return cnp.PyArray_NDIM(first) < MAX_AXES


cdef int _lay_out_stack(VectorCall *call, tuple arrays, cnp.ndarray result) except -1:
    """Describe a stack as one axis of vectors; the kernel reads each item from a column of its own."""
    cdef cnp.ndarray first = arrays[0], each
    cdef int i
    call.operation, call.rows = STACK, <int> len(arrays)
    call.size = <int> cnp.PyArray_ITEMSIZE(first)
    call.kernel = short_kernel(target_number, STACK, _kind_of_units(call.size), call.rows, call.rows)
    for i in range(call.rows):
        each = arrays[i]
        if not cnp.PyArray_SAMESHAPE(each, first) or items_of(each) * call.rows != items_of(result):
            refuse_resized()
        call.columns[i] = <char *> cnp.PyArray_DATA(each)

    call.nest.rank, call.nest.n = 1, OPERANDS
    call.nest.shape[0] = items_of(first)
    for i in (DATA, OTHER):
        call.nest.data[i], call.nest.stride[i][0] = call.columns[0], 0
    call.nest.data[RESULTS] = <char *> cnp.PyArray_DATA(result)
    call.nest.stride[RESULTS][0] = call.rows * call.size
    return 0


cdef int _kind_of_units(Py_ssize_t size) noexcept:
    """The kind that copies items of a size; -1 if there is none."""
    if size == 8:
        return SHORT_U64
    if size == 4:
        return SHORT_U32
    if size == 2:
        return SHORT_U16
    return SHORT_U8 if size == 1 else -1


# ---- Axes and kernels ----


cdef bint _take_vectors(Vectors *vectors, cnp.ndarray array, int axis) noexcept:
    """Read the layout of vectors of 2 to 4 items along an axis; return whether the array has such vectors."""
    cdef int rank = cnp.PyArray_NDIM(array), i
    if axis < 0:
        axis += rank
    if not 0 <= axis < rank:
        return False
    vectors.first = <char *> cnp.PyArray_DATA(array)
    vectors.items = items_of(array)
    vectors.length = cnp.PyArray_DIM(array, axis)
    vectors.stride = cnp.PyArray_STRIDE(array, axis)
    vectors.rank = 0
    for i in range(rank):
        if i != axis:
            vectors.shape[vectors.rank] = cnp.PyArray_DIM(array, i)
            vectors.strides[vectors.rank] = cnp.PyArray_STRIDE(array, i)
            vectors.rank += 1
    return SHORT_LEAST <= vectors.length <= SHORT_MOST


cdef bint _has_one_matrix(cnp.ndarray array) noexcept:
    """Whether an array has a single matrix, along its last two axes."""
    cdef int i
    for i in range(cnp.PyArray_NDIM(array) - 2):
        if cnp.PyArray_DIM(array, i) != 1:
            return False
    return True


cdef bint _add_axis_of_one(Vectors *vectors) noexcept:
    """Add an innermost axis of length 1; return whether there is room for it."""
    if vectors.rank == MAX_AXES - 1:
        return False
    vectors.shape[vectors.rank], vectors.strides[vectors.rank] = 1, 0
    vectors.rank += 1
    return True


cdef cnp.dtype _dtype_of_vectors(int operation, cnp.ndarray a, cnp.ndarray b):
    """The dtype of a result; None if no kernel computes it."""
    cdef int a_number = cnp.PyArray_TYPE(a), b_number = cnp.PyArray_TYPE(b)
    cdef cnp.dtype dtype
    if _row_of_numpys(a) < 0 or _row_of_numpys(b) < 0:
        return None
    if operation == NORM:
        is_float = cnp.PyTypeNum_ISFLOAT(a_number)
        return cnp.PyArray_DescrFromType(a_number if is_float else cnp.NPY_DOUBLE)
    if a_number == b_number:
        dtype = cnp.PyArray_DescrFromType(a_number)
    else:
        dtype = np.promote_types(np.asarray(a).dtype, np.asarray(b).dtype)
    return None if dtype.type_num == cnp.NPY_BOOL else dtype


cdef inline int _row_of_numpys(cnp.ndarray array) noexcept:
    """The row of NumPy's own real numbers in the table of dtypes; -1 for other dtypes."""
    cdef int number = cnp.PyArray_TYPE(array)
    return -1 if cnp.PyTypeNum_ISUSERDEF(number) or cnp.PyTypeNum_ISCOMPLEX(number) else dtype_row(array)


cdef bint _choose_vector_kernel(VectorCall *call, cnp.ndarray a, cnp.ndarray b, cnp.dtype dtype) noexcept:
    """Choose the kernel, and note which items it reads directly; return whether there is a kernel."""
    cdef int first = dtype_row(a), second = dtype_row(b), result = row_of_dtype(dtype), kind, k
    cdef bint is_float

    call.as_real = bool(dtypes[result].is_float)
    kind = SHORT_F64 if call.as_real else SHORT_U64
    if first == second == result == FLOAT32:
        kind = SHORT_F32
        call.as_real = False
    elif call.operation == CROSS and call.as_real and result != FLOAT64:
        return False    # NumPy rounds each product to the result's dtype

    call.size = 4 if kind == SHORT_F32 else 8
    call.dtypes[DATA], call.dtypes[OTHER], call.dtypes[RESULTS] = first, second, result
    for k in range(OPERANDS):
        is_float = dtypes[call.dtypes[k]].is_float
        call.are_read[k] = kind == SHORT_F32 or dtypes[call.dtypes[k]].size == 8 and (kind == SHORT_F64) == is_float
    call.kernel = short_kernel(target_number, call.operation, kind, <int> call.a.length, call.rows)
    return call.kernel != NULL


cdef tuple _shape_of_vectors(VectorCall *call, int *axis_of_result):
    """Broadcast the vectors; return the shape of the result, or None if NumPy refuses it."""
    cdef int rank = max(call.a.rank, call.b.rank), i
    cdef list shape = []
    call.nest.rank, call.nest.n = rank, OPERANDS
    for i in range(rank):
        if not _broadcast_axis(call, i):
            return None
        shape.append(call.nest.shape[i])

    if call.rows == 1:
        axis_of_result[0] = rank
        return tuple(shape)
    if axis_of_result[0] < 0:
        axis_of_result[0] += rank + 1
    if rank == MAX_AXES or not 0 <= axis_of_result[0] <= rank:
        return None
    shape.insert(axis_of_result[0], call.rows)
    return tuple(shape)


cdef bint _broadcast_axis(VectorCall *call, int axis) noexcept:
    """Describe an axis of the nest by NumPy's rule; return whether the two lengths fit."""
    cdef int a_axis = axis - call.nest.rank + call.a.rank, b_axis = axis - call.nest.rank + call.b.rank
    cdef Py_ssize_t a_length = call.a.shape[a_axis] if a_axis >= 0 else 1
    cdef Py_ssize_t b_length = call.b.shape[b_axis] if b_axis >= 0 else 1
    call.nest.shape[axis] = b_length if a_length == 1 else a_length
    call.nest.stride[DATA][axis] = call.a.strides[a_axis] if a_length != 1 else 0
    call.nest.stride[OTHER][axis] = call.b.strides[b_axis] if b_length != 1 else 0
    return a_length == b_length or a_length == 1 or b_length == 1


cdef cnp.ndarray _new_result(VectorCall *call, cnp.ndarray a, tuple shape, cnp.dtype dtype):
    """A new array for results, with the axis order of `a` if the rank is the same."""
    cdef Nest nest
    cdef int[MAX_AXES] order
    cdef list in_memory = [], axes = []
    cdef int i

    if call.rows > 1 or call.nest.rank < 2 or call.a.rank != call.nest.rank:
        return result_array(None, a, shape, "a", dtype)
    nest.rank, nest.n = call.nest.rank, 1
    for i in range(nest.rank):
        nest.shape[i], nest.stride[DATA][i] = call.nest.shape[i], call.nest.stride[DATA][i]
        order[i] = i
    if find_numpys_order(&nest, 1, order):
        return result_array(None, a, shape, "a", dtype)

    for i in range(nest.rank):
        in_memory.append(shape[order[i]])
        axes.append(i)
    for i in range(nest.rank):
        axes[order[i]] = i
    return np.transpose(result_array(None, a, tuple(in_memory), "a", dtype), axes)


cdef void _lay_out_vectors(VectorCall *call, cnp.ndarray written, int axis_of_result) noexcept:
    """Complete the nest with the results' strides; merge its axes, and put a long one innermost.

    `axis_of_result` is the axis of a result's items. If results are numbers, it is the number of axes.
    """
    cdef Nest *nest = &call.nest
    cdef int i, longest = 0
    for i in range(nest.rank):
        nest.stride[RESULTS][i] = cnp.PyArray_STRIDE(written, i + (i >= axis_of_result))
    call.result_stride = cnp.PyArray_STRIDE(written, axis_of_result) if call.rows > 1 else 0
    nest.data[DATA], nest.data[OTHER] = call.a.first, call.b.first
    nest.data[RESULTS] = <char *> cnp.PyArray_DATA(written)

    drop_unit_axes(nest)
    sort_axes(nest, RESULTS)
    coalesce_axes(nest)
    keep_rank(nest, 1)
    for i in range(nest.rank):
        if nest.shape[i] > nest.shape[longest]:
            longest = i
    if nest.shape[nest.rank - 1] < LONG_AXIS_ITEMS:      # a longer axis is worth its strides
        swap_axes(nest, longest, nest.rank - 1)


cdef void _pack_matrix(VectorCall *call) noexcept:
    """Copy the matrix into the kernel's order."""
    cdef char *items = <char *> call.matrix
    cdef int row
    for row in range(call.rows):
        pack_items(
            call.dtypes[OTHER], call.as_real, items + row * call.b.length * call.size,
            call.b.first + row * call.row_stride, call.b.stride, call.b.length,
        )


# ---- Chunks of vectors, on threads ----


cdef int _run_vectors(VectorCall *call, Py_ssize_t nbytes, arrays) except -1:
    """Run a call on threads; return the floating-point errors of all of them."""
    cdef char[LOCAL_BYTES + 2 * LINE] local
    cdef Nest *nest = &call.nest
    cdef Py_ssize_t length = nest.shape[nest.rank - 1], units
    cdef bint packs = call.operation != STACK and _packs(call)
    cdef int errors = 0, threads, i

    call.chunk = min(length, <Py_ssize_t> (PACKED_VECTORS if packs else SUM_BLOCK_ITEMS))
    call.chunks = (length + call.chunk - 1) // call.chunk
    units = call.chunks
    for i in range(nest.rank - 1):
        units *= nest.shape[i]

    threads = threads_for(nbytes, units)
    call.job = new_job(_run_vector_share, call, threads, count_shares(threads, units))
    call.job.scratch_bytes = LINE + 2 * SPREAD_BYTES + (3 * call.chunk * SHORT_MOST * 8 if packs else 0)
    call.units = units
    if not take_scratch(&call.job, local, sizeof(local)):
        raise MemoryError
    for i in range(call.job.threads):
        (<int *> scratch_of(&call.job, i))[0] = 0
    if nbytes < share_bytes:
        _run_vector_share(call, 0, 0)
    else:
        run_without_gil(&call.job, arrays)
    for i in range(call.job.threads):
        errors |= (<int *> scratch_of(&call.job, i))[0]
    free_scratch(&call.job)
    return errors


cdef bint _packs(const VectorCall *call) noexcept:
    """Whether kernels cannot read or write some operand in place."""
    cdef const Nest *nest = &call.nest
    cdef int inner = nest.rank - 1
    if _layout_of(call, DATA, call.a.length, call.a.stride, nest.stride[DATA][inner]) == PACKED:
        return True
    if call.operation == DOT or call.operation == CROSS:
        if _layout_of(call, OTHER, call.b.length, call.b.stride, nest.stride[OTHER][inner]) == PACKED:
            return True
    return _layout_of(call, RESULTS, call.rows, call.result_stride, nest.stride[RESULTS][inner]) == PACKED


cdef inline int _layout_of(
    const VectorCall *call, int operand, Py_ssize_t length, Py_ssize_t item_stride, Py_ssize_t stride,
) noexcept nogil:
    """The layout in which kernels access vectors of a length, given the strides of vectors and of items in bytes."""
    cdef bint is_only_one = call.nest.shape[call.nest.rank - 1] == 1
    if is_only_one and call.are_read[operand] and (length == 1 or item_stride == call.size):
        return DENSE
    if stride == 0 and operand != RESULTS:
        return REPEATED
    if not call.are_read[operand]:
        return PACKED
    if length > 1 and item_stride == call.size and stride == length * call.size:
        return DENSE
    return COLUMNS if stride == call.size else PACKED


cdef void _run_vector_share(void *all_work, int share, int worker) noexcept nogil:
    """Run one share of a call."""
    cdef const VectorCall *call = <const VectorCall *> all_work
    cdef Py_ssize_t unit
    cdef char *scratch = scratch_of(&call.job, worker)
    cdef int errors = 0
    PyUFunc_clearfperr()
    for unit in range(cut(call.units, share, call.job.shares), cut(call.units, share + 1, call.job.shares)):
        errors |= _run_vector_unit(call, unit, scratch + LINE)
    (<int *> scratch)[0] |= errors | PyUFunc_getfperr()


cdef int _run_vector_unit(const VectorCall *call, Py_ssize_t unit, char *scratch) noexcept nogil:
    """Have the kernel compute one chunk of vectors along the innermost axis; return errors without a CPU flag."""
    cdef char *at[3]
    cdef ShortCall todo

    todo.count = _find_unit(call, unit, at)
    if call.operation == STACK:
        _stack_unit(call, unit, at[RESULTS], &todo)
        return 0

    todo.matrix, todo.statistics = call.matrix, call.statistics
    _place_vectors(call, DATA, at[DATA], todo.count, scratch, &todo.a)
    if call.operation == DOT or call.operation == CROSS:
        _place_vectors(call, OTHER, at[OTHER], todo.count, scratch, &todo.b)
    return _compute_vectors(call, &todo, at[RESULTS], _packed_of(call, RESULTS, scratch))


cdef inline char *_packed_of(const VectorCall *call, int operand, char *scratch) noexcept nogil:
    """The scratch of a thread for an operand's packed vectors: it follows a repeated vector of each input."""
    return scratch + 2 * SPREAD_BYTES + operand * call.chunk * SHORT_MOST * 8


cdef Py_ssize_t _find_unit(const VectorCall *call, Py_ssize_t unit, char **at) noexcept nogil:
    """Find the beginning of a chunk of vectors in each operand; return the number of its vectors."""
    cdef const Nest *nest = &call.nest
    cdef int inner = nest.rank - 1, i, k
    cdef Py_ssize_t first = unit % call.chunks * call.chunk, outer = unit // call.chunks, position

    for k in range(OPERANDS):
        at[k] = nest.data[k] + first * nest.stride[k][inner]
    for i in range(inner - 1, -1, -1):
        position = outer % nest.shape[i]
        outer //= nest.shape[i]
        for k in range(OPERANDS):
            at[k] += position * nest.stride[k][i]
    return min(call.chunk, nest.shape[inner] - first)


cdef void _stack_unit(const VectorCall *call, Py_ssize_t unit, char *at, ShortCall *todo) noexcept nogil:
    """Have the kernel interleave one chunk of a stack, which has one axis."""
    cdef int i
    for i in range(call.rows):
        todo.a.items[i] = call.columns[i] + unit * call.chunk * call.size
    todo.a.advance, todo.a.dense = call.size, False
    todo.dst.items[0], todo.dst.advance, todo.dst.dense = at, call.nest.stride[RESULTS][0], True
    call.kernel(todo)


cdef void _place_vectors(
    const VectorCall *call, int operand, char *at, Py_ssize_t n, char *scratch, ShortVectors *placed,
) noexcept nogil:
    """Set the address at which the kernel reads the next `n` vectors; pack them if it cannot read them in place."""
    cdef const Vectors *vectors = &call.a if operand == DATA else &call.b
    cdef char *spread = scratch + operand * SPREAD_BYTES
    cdef Py_ssize_t stride = call.nest.stride[operand][call.nest.rank - 1], i
    cdef int way = _layout_of(call, operand, vectors.length, vectors.stride, stride)

    placed.dense = way == DENSE
    if way == DENSE:
        placed.items[0], placed.advance = at, stride
    elif way == COLUMNS:
        placed.advance = stride
        for i in range(vectors.length):
            placed.items[i] = at + i * vectors.stride
    elif way == REPEATED:
        placed.advance = 0
        for i in range(vectors.length):
            placed.items[i] = spread + i * SHORT_LANES * call.size
            pack_items(
                call.dtypes[operand], call.as_real, placed.items[i], at + i * vectors.stride, 0, SHORT_LANES,
            )
    else:
        _pack_vectors(call, operand, at, n, _packed_of(call, operand, scratch), placed)


cdef void _pack_vectors(
    const VectorCall *call, int operand, char *at, Py_ssize_t n, char *packed, ShortVectors *placed,
) noexcept nogil:
    """Convert the next `n` vectors: in one pass if they are contiguous, otherwise column by column."""
    cdef const Vectors *vectors = &call.a if operand == DATA else &call.b
    cdef int dtype = call.dtypes[operand]
    cdef Py_ssize_t stride = call.nest.stride[operand][call.nest.rank - 1], own_size = dtypes[dtype].size, i

    placed.dense = vectors.stride == own_size and stride == vectors.length * own_size
    if placed.dense:
        placed.items[0], placed.advance = packed, vectors.length * call.size
        pack_items(dtype, call.as_real, packed, at, own_size, n * vectors.length)
        return
    placed.advance = call.size
    for i in range(vectors.length):
        placed.items[i] = packed + i * call.chunk * call.size
        pack_items(dtype, call.as_real, placed.items[i], at + i * vectors.stride, stride, n)


cdef int _compute_vectors(const VectorCall *call, ShortCall *todo, char *at, char *packed) noexcept nogil:
    """Compute results and write them, through `packed` if the kernel cannot write them in place.

    Return errors without a CPU flag.
    """
    cdef Py_ssize_t stride = call.nest.stride[RESULTS][call.nest.rank - 1]
    cdef int way = _layout_of(call, RESULTS, call.rows, call.result_stride, stride), errors = 0, i

    todo.dst.dense = way == DENSE
    todo.dst.advance = stride if way != PACKED else call.size
    for i in range(call.rows):
        todo.dst.items[i] = at + i * call.result_stride if way != PACKED else packed + i * call.chunk * call.size
    call.kernel(todo)
    if call.as_real and (call.operation == DOT or call.operation == MATVEC):
        errors = PyUFunc_getfperr()
        if errors & (NPY_FPE_OVERFLOW | NPY_FPE_INVALID):
            errors = errors & NPY_FPE_UNDERFLOW | _sum_products_again(call, todo)
    if way != PACKED:
        return errors
    _store_vectors(call, todo, at)
    return errors | PyUFunc_getfperr()      # this clears the flags before the next chunk


cdef void _store_vectors(const VectorCall *call, const ShortCall *todo, char *at) noexcept nogil:
    """Convert packed results into their places."""
    cdef Results results = Results(dtype=call.dtypes[RESULTS], sum_size=call.size, sum_stride=call.size)
    cdef int i
    results.stride = call.nest.stride[RESULTS][call.nest.rank - 1]
    for i in range(call.rows):
        results.dst = at + i * call.result_stride
        if call.dtypes[RESULTS] == FLOAT16:
            _note_overflow(<const double *> todo.dst.items[i], todo.count)
        sum_target(target_number).store(&results, todo.dst.items[i], todo.count)


# ---- Floating-point errors ----


cdef int _sum_products_again(const VectorCall *call, const ShortCall *todo) noexcept nogil:
    """Compute sums of float64 again that are infinite or NaN; return the errors of those that remain so."""
    cdef double[SHORT_MOST] items, factors
    cdef int length = <int> call.a.length, errors = 0, row
    cdef double *sum
    cdef Py_ssize_t i

    for i in range(todo.count):
        for row in range(call.rows):
            sum = <double *> _item_of(&todo.dst, i, row)
            if isfinite(sum[0]):
                continue
            _read_vector(&todo.a, i, length, items)
            if call.operation == MATVEC:
                memcpy(factors, call.matrix + row * length, length * sizeof(double))
            else:
                _read_vector(&todo.b, i, length, factors)
            errors |= _sum_products_of(items, factors, length, sum)
    PyUFunc_clearfperr()
    return errors


cdef inline char *_item_of(const ShortVectors *vectors, Py_ssize_t number, int item) noexcept nogil:
    """The address of an item of a float64 vector."""
    if vectors.dense:
        return vectors.items[0] + number * vectors.advance + item * <Py_ssize_t> sizeof(double)
    return vectors.items[item] + number * vectors.advance


cdef inline void _read_vector(const ShortVectors *vectors, Py_ssize_t number, int length, double *items) noexcept nogil:
    """Copy the items of a vector of float64."""
    cdef int k
    for k in range(length):
        items[k] = (<const double *> _item_of(vectors, number, k))[0]


cdef int _sum_products_of(const double *a, const double *b, int n, double *sum) noexcept nogil:
    """Sum products without intermediate overflow; return the error that NumPy would report for the sum.

    If a product is infinite or NaN, the finite products do not matter. If a factor is NaN, `sum` keeps its NaN.
    """
    cdef double scale = 2.0 ** -520     # four products of scaled numbers do not overflow
    cdef double special = 0, total = 0, error = 0
    cdef bint is_special = False, has_nan = False
    cdef int k

    for k in range(n):
        if isfinite(a[k]) and isfinite(b[k]):
            two_sum(&total, &error, a[k] * scale * (b[k] * scale))
            continue
        special += a[k] * b[k]
        is_special = True
        has_nan = has_nan or isnan(a[k]) or isnan(b[k])

    if has_nan:
        return 0
    sum[0] = special if is_special else (total + error) / scale / scale
    if isnan(sum[0]):
        return NPY_FPE_INVALID
    return 0 if is_special or isfinite(sum[0]) else NPY_FPE_OVERFLOW


cdef void _note_overflow(const double *sums, Py_ssize_t n) noexcept nogil:
    """Set the CPU's flag if a number is too large for float16: conversions to float16 may not set it.

    Comparisons with NaN would set a flag as well.
    """
    cdef double largest = 65520
    cdef Py_ssize_t i
    for i in range(n):
        if isfinite(sums[i]) and fabs(sums[i]) >= largest:
            raise_errors(FE_OVERFLOW)
            return


cdef bint _is_reported(int errors) except -1:
    """Whether NumPy now reports some of these errors."""
    return errors & ~NPY_FPE_UNDERFLOW or np.geterr()["under"] != "ignore"


cdef int _report_errors(function, int errors) except -1:
    """Let NumPy's function report errors under its settings, by products with the same errors."""
    for flag, a, b in (
        (NPY_FPE_OVERFLOW, 1e300, 1e300), (NPY_FPE_UNDERFLOW, 1e-300, 1e-300), (NPY_FPE_INVALID, INFINITY, 0.0),
    ):
        if errors & <int> flag:
            function([[a]], [b])
    return 0
