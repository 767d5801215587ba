# cython: cdivision=True, boundscheck=False, wraparound=False
"""Operands: their alignment with the axes of the result, scalars, and the array for the result.

In: the user's arrays and Python scalars. Out: the nest and the operands of a Call, or the answer that NumPy must do the
call.
"""

cimport numpy as cnp
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.float cimport DBL_MAX, FLT_MAX
from libc.math cimport fabs, isfinite
from libc.stdlib cimport llabs

from bcast._apply.ufuncs cimport Cast, find_cast, plain_bools_cast
from bcast._nest.core cimport Nest, coalesce_axes, drop_unit_axes, find_numpys_order, keep_rank, put_in_order
from bcast._runtime.arrays cimport MAX_AXES, new_array
from bcast._runtime.core cimport overlap, pays
from bcast._runtime.numpy_private cimport set_layout

cdef extern from "numpy/arrayobject.h":
    cnp.ndarray PyArray_Empty(int rank, const cnp.npy_intp *shape, cnp.dtype dtype, int order)
    bint PyArray_CanCastTypeTo(cnp.PyArray_Descr *src, cnp.PyArray_Descr *dst, int casting)
    int PyArray_Pack(cnp.PyArray_Descr *descr, void *item, object value) except -1

cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object value, int *overflow) except? -1

cnp.import_array()

cdef enum:
    MOST_SWAPPED = 8            # bytes of the longest unit that is byte-swapped here
    HALF_MAX = 65504            # the largest float16
    EXACT_BITS = 53             # whole numbers of up to 53 bits are exact in float64
cdef Rule SAME_SHAPE = Rule(mode=BY_NONE, axis=-1)
cdef Rule FIRST_OPERAND = Rule(mode=BY_NUMPY, axis=-1)      # the first operand decides the shape


# Alignment of operands with the result


cdef Rule rule_of_mode(int mode, axis) except *:
    """The rule for a mode's number and an axis; no operand fits at an axis that the result does not have."""
    cdef Rule rule = Rule(mode=mode, axis=-1)
    cdef int beyond = 0     # not 0 for an int that does not fit a long long
    cdef long long number
    if mode == PDPD:
        number = PyLong_AsLongLongAndOverflow(axis, &beyond) if type(axis) is int else MAX_AXES
        rule.axis = <int> number if not beyond and -1 <= number < MAX_AXES else MAX_AXES
    return rule


cdef bint align_operands(Call *call, a, b, const Rule *rule) noexcept:
    """Find the shape of the result and the strides of two operands in it; return whether they fit under the rule."""
    call.nest.rank = rank_of(a)
    if rule.mode == BY_NUMPY:
        call.nest.rank = max(call.nest.rank, rank_of(b))
    return map_operand(call, 0, a, &FIRST_OPERAND) and map_operand(call, 1, b, rule)


cdef bint map_operand(Call *call, int k, operand, const Rule *rule) noexcept:
    """Find an operand's strides in the result; return whether it fits the result, or the first operand, under the rule.

    The first one sets the shape of the result, whose rank is known; under NumPy's rule, others stretch it.
    """
    cdef int rank = rank_of(operand), start = call.nest.rank - rank, i
    call.operands[k].strides = call.nest.stride[k]
    if start < 0 or rule.mode == BY_NONE and start:
        return False
    if rule.mode == PDPD:
        start = start if rule.axis == -1 else rule.axis
        rank = _rank_without_ones(operand, rank)
        if rule.axis >= call.nest.rank or start + rank > call.nest.rank:
            return False

    for i in range(call.nest.rank):
        call.nest.stride[k][i] = 0
        if k == 0:
            call.nest.shape[i] = 1
    for i in range(rank):
        if not _map_axis(call, k, start + i, <cnp.ndarray> operand, i, rule.mode):
            return False
    return True


cdef inline bint _map_axis(Call *call, int k, int to, cnp.ndarray array, int axis, int mode) noexcept:
    """Map an axis of an operand to an axis of the result; return whether it fits there in a mode."""
    cdef Py_ssize_t length = cnp.PyArray_DIM(array, axis)
    if length == 1:
        return call.nest.shape[to] == 1 or mode != BY_NONE
    call.nest.stride[k][to] = cnp.PyArray_STRIDE(array, axis)
    if call.nest.shape[to] == 1 and mode == BY_NUMPY:
        call.nest.shape[to] = length
    return call.nest.shape[to] == length


cdef inline int _rank_without_ones(operand, int rank) noexcept:
    """The number of axes without trailing axes of length 1."""
    while rank and cnp.PyArray_DIM(<cnp.ndarray> operand, rank - 1) == 1:
        rank -= 1
    return rank


cdef bint has_items(const Call *call) noexcept:
    """Whether the result has axes, and items."""
    cdef int axis
    for axis in range(call.nest.rank):
        if call.nest.shape[axis] == 0:
            return False
    return call.nest.rank > 0


cdef bint is_reshaped(const Call *call, int k) noexcept:
    """Whether NumPy gets an operand of one axis with further axes after it, as in mode 'pdpd'."""
    cdef const Operand *operand = &call.operands[k]
    if operand.array == NULL or operand.strides[call.nest.rank - 1] != 0:
        return False
    return cnp.PyArray_SIZE(<cnp.ndarray> operand.array) > 1


cdef bint runs_backwards(const Call *call) noexcept:
    """Whether NumPy may pass the first operand to a loop with a negative stride: the shortest stride is negative."""
    cdef const Operand *operand = &call.operands[0]
    cdef Py_ssize_t shortest = 0, stride
    cdef int axis
    for axis in range(call.nest.rank):
        stride = operand.strides[axis]
        if stride and (shortest == 0 or llabs(stride) < llabs(shortest)):
            shortest = stride
    return shortest < 0 and operand.readable


cdef bint has_sure_strides(const Call *call, bint repeating) noexcept:
    """Whether NumPy's loop sees contiguous items, or a repeated item: of `b`, on all axes unless `repeating`."""
    cdef int last = call.nest.rank - 1, axis, k
    cdef bint is_single = call.operands[1].strides[last] == 0 and not repeating
    cdef const Operand *operand

    for k in range(call.nest.n):
        operand = &call.operands[k]
        if operand.strides[last] and operand.strides[last] != operand.size:
            return False
        for axis in range(last):
            if operand.strides[axis] < 0 or (is_single and k == 1 and operand.strides[axis]):
                return False
    return call.nest.shape[0] > 1 or call.nest.shape[last] > 1


cdef void make_bools_plain(Call *call) noexcept:
    """Normalise bools to 0 or 1 if a loop compares their bytes and an item is repeated, or the only one."""
    cdef Operand *operand
    cdef bint is_single = True, is_repeated
    cdef int axis, k

    for axis in range(call.nest.rank):
        is_single = is_single and call.nest.shape[axis] == 1

    for k in range(call.nest.n):
        operand = &call.operands[k]
        if not call.compared_bools >> k & 1 or operand.array == NULL or operand.cast != NULL:
            continue
        is_repeated = is_single
        for axis in range(call.nest.rank):
            is_repeated = is_repeated or operand.strides[axis] == 0 and call.nest.shape[axis] > 1
        if is_repeated:
            operand.cast = plain_bools_cast()


# Items of operands


cdef bint describe(Call *call, int k, value, cnp.dtype dtype, Cast cast) except -1:
    """Record the memory layout of an array, or store a Python scalar; return whether the loop can read the items.

    `dtype` is that of the loop, and `cast` converts to it, or back for the output.
    """
    cdef Operand *operand = &call.operands[k]
    operand.loop_size = dtype.itemsize
    operand.swapped = 0
    if not cnp.PyArray_CheckExact(value):
        operand.array, operand.size, operand.cast, operand.readable = NULL, operand.loop_size, NULL, True
        call.nest.data[k] = <char *> call.scalars[k]
        return _store_scalar(value, dtype, call.nest.data[k])

    operand.array, operand.cast = <PyObject *> value, cast
    call.nest.data[k] = <char *> cnp.PyArray_DATA(<cnp.ndarray> value)
    operand.size = cnp.PyArray_ITEMSIZE(<cnp.ndarray> value)
    operand.readable = cnp.PyArray_ISBEHAVED_RO(<cnp.ndarray> value)
    if not operand.readable and not cnp.PyArray_ISNOTSWAPPED(<cnp.ndarray> value):
        operand.swapped = <int> operand.size // (2 if cnp.PyArray_ISCOMPLEX(<cnp.ndarray> value) else 1)
    return operand.swapped <= MOST_SWAPPED


cdef bint _store_scalar(value, cnp.dtype dtype, char *item) except -1:
    """Store a Python scalar as an item of a dtype; return whether that is possible without an error or a warning."""
    cdef object kind = type(value)
    cdef int beyond = 0     # not 0 for an int that does not fit a long long
    cdef long long whole = PyLong_AsLongLongAndOverflow(value, &beyond) if kind is int else 0
    cdef bint fits = False
    cdef double most

    if beyond:
        return False

    if dtype.kind == c"u" or dtype.kind == c"i":
        fits = kind is int and _holds_integer(dtype, whole)
    elif dtype.kind == c"b":
        fits = kind is bool
    elif kind is complex:
        fits = dtype.type_num == cnp.NPY_CDOUBLE
    else:
        most = _largest_float(dtype.type_num)
        fits = most and _is_exact(whole) and _holds_float(value, most)
    if fits:
        PyArray_Pack(<cnp.PyArray_Descr *> dtype, item, value)
    return fits


cdef inline bint _holds_integer(cnp.dtype dtype, long long value) noexcept:
    """Whether a dtype of integers has a value: further bits are copies of the sign, which only signed integers have."""
    cdef bint is_signed = dtype.kind == c"i"
    cdef int value_bits = 8 * <int> dtype.itemsize - is_signed
    return value >> min(63, value_bits) == (value >> 63 if is_signed else 0)


cdef inline double _largest_float(int number) noexcept:
    """The largest finite number of a dtype of floats; 0 for other dtypes, whose scalars NumPy stores."""
    if number == cnp.NPY_DOUBLE:
        return DBL_MAX
    if number == cnp.NPY_FLOAT:
        return FLT_MAX
    return HALF_MAX if number == cnp.NPY_FLOAT16 else 0


cdef inline bint _is_exact(long long value) noexcept:
    """Whether an int becomes a float64 without rounding, because the loop must get it rounded once."""
    return -(<long long> 1 << EXACT_BITS) <= value <= <long long> 1 << EXACT_BITS


cdef inline bint _holds_float(double value, double most) noexcept:
    """Whether a number does not exceed the largest finite one; infinities and NaN are not numbers here."""
    return not isfinite(value) or fabs(value) <= most


# The result


cdef object new_result(Call *call, cnp.dtype dtype, int n):
    """A new array for the result, with axes in the order of the first n operands'; the nest gets the same order."""
    cdef int output = call.nest.n - 1
    cdef int[MAX_AXES] order
    cdef bint is_sorted = find_numpys_order(&call.nest, n, order)
    cdef int place
    cdef cnp.ndarray array
    if not is_sorted and _is_one_loop_in_fortran_order(call, n):
        for place in range(call.nest.rank):     # moves only axes of length 1
            order[place] = call.nest.rank - 1 - place

    array = _allocate(call, dtype, order)
    if not is_sorted:
        set_layout(array, call.nest.rank, call.nest.shape, call.nest.stride[output])
    describe(call, output, array, dtype, NULL)
    _simplify_axes(&call.nest, NULL if is_sorted else order)
    return array


cdef bint _is_one_loop_in_fortran_order(const Call *call, int n) noexcept:
    """Whether NumPy calls its loop once, without an iterator, and gives the result the strides of Fortran's order.

    All operands then have the same axes in that order, without a conversion, or no axes. It is clearer whole: each
    condition is one of NumPy's.
    """
    cdef int k
    cdef cnp.ndarray array

    if n > 2 or (call.step_count > 0 and call.steps[0].cast != NULL):   # `where` always has an iterator
        return False
    for k in range(n):
        if call.operands[k].array == NULL:
            continue
        array = <cnp.ndarray> call.operands[k].array
        if cnp.PyArray_NDIM(array) == 0:
            continue
        if cnp.PyArray_NDIM(array) != call.nest.rank or cnp.PyArray_IS_C_CONTIGUOUS(array):
            return False
        if not cnp.PyArray_IS_F_CONTIGUOUS(array) or not call.operands[k].readable:
            return False
        if call.operands[k].cast != NULL and call.operands[k].cast != plain_bools_cast():
            return False
        if not are_equal(cnp.PyArray_DIMS(array), call.nest.shape, call.nest.rank):
            return False
    return True


cdef cnp.ndarray _allocate(Call *call, cnp.dtype dtype, const int *order):
    """Lay out the output contiguously, in an order of the axes; return an array with these lengths in that order."""
    cdef Py_ssize_t *strides = call.nest.stride[call.nest.n - 1]
    cdef int rank = call.nest.rank, place
    cdef cnp.npy_intp[MAX_AXES] lengths
    cdef size_t stride = dtype.itemsize
    cdef double size = stride   # does not overflow for any shape

    call.operands[call.nest.n - 1].strides = strides
    for place in range(rank - 1, -1, -1):
        lengths[place] = call.nest.shape[order[place]]
        strides[order[place]] = stride
        stride *= lengths[place]
        size *= lengths[place]

    if pays(<size_t> min(size, 1e18)):
        return new_array(dtype, cnp.PyArray_IntTupleFromIntp(rank, lengths), "a, b")
    Py_INCREF(dtype)    # the call steals a reference
    return PyArray_Empty(rank, lengths, dtype, 0)


cdef bint accept_out(Call *call, out, cnp.dtype dtype, int casting) except -1:
    """Describe the user's array as the output; return whether the result can be written to it block by block.

    `dtype` is that of the result.
    """
    cdef int output = call.nest.n - 1
    cdef int[MAX_AXES] order
    cdef Cast cast = NULL
    cdef cnp.ndarray array

    if not cnp.PyArray_CheckExact(out) or not map_operand(call, output, out, &SAME_SHAPE):
        return False
    array = out
    if not cnp.PyArray_ISWRITEABLE(array) or not _can_store(array, dtype, casting, &cast):
        return False
    if not describe(call, output, array, dtype, cast):
        return False
    if not cnp.PyArray_IS_C_CONTIGUOUS(array) and _overlaps_itself(call, output):
        return False
    if not _allows_writing(call, array):
        return False
    _simplify_axes(&call.nest, NULL if find_numpys_order(&call.nest, call.nest.n, order) else order)
    return True


cdef inline bint _can_store(cnp.ndarray out, cnp.dtype dtype, int casting, Cast *cast) except -1:
    """Whether items of a dtype can be stored in an array; find their conversion."""
    cdef cnp.dtype own = <cnp.dtype> cnp.PyArray_DESCR(out)
    if own is dtype:
        return True
    if not PyArray_CanCastTypeTo(<cnp.PyArray_Descr *> dtype, <cnp.PyArray_Descr *> own, casting):
        return False
    return find_cast(dtype, own, cast)


cdef bint _allows_writing(Call *call, cnp.ndarray out) noexcept:
    """Whether no operand is read after the output overwrote it; record whether one is the output itself."""
    cdef Operand *operand
    cdef int k
    call.in_place = False
    for k in range(call.nest.n - 1):
        operand = &call.operands[k]
        if operand.array == NULL or not overlap(<cnp.ndarray> operand.array, out):
            continue
        if not _lies_as(call, <cnp.ndarray> operand.array, out):
            return False
        call.in_place = True
    return True


cdef bint _lies_as(const Call *call, cnp.ndarray array, cnp.ndarray out) noexcept:
    """Whether an array has exactly the output's items, at the same addresses.

    Strides of axes of length 1 count, too: NumPy writes to a copy if they differ.
    """
    cdef int rank = call.nest.rank
    if cnp.PyArray_DATA(array) != cnp.PyArray_DATA(out) or cnp.PyArray_ITEMSIZE(array) != cnp.PyArray_ITEMSIZE(out):
        return False
    if cnp.PyArray_NDIM(array) != rank or not are_equal(cnp.PyArray_DIMS(array), call.nest.shape, rank):
        return False
    return are_equal(cnp.PyArray_STRIDES(array), cnp.PyArray_STRIDES(out), rank)


cdef bint are_equal(const void *a, const void *b, int n) noexcept:
    """Whether arrays have the same lengths or strides."""
    cdef int i
    for i in range(n):
        if (<const Py_ssize_t *> a)[i] != (<const Py_ssize_t *> b)[i]:
            return False
    return True


cdef bint _overlaps_itself(const Call *call, int k) noexcept:
    """Whether items of an operand may overlap: not if each stride exceeds the extent of the axes within."""
    cdef const Operand *operand = &call.operands[k]
    cdef Py_ssize_t reach, stride, other
    cdef int i, j

    for i in range(call.nest.rank):
        stride = llabs(operand.strides[i])
        reach = operand.size
        for j in range(call.nest.rank):
            other = llabs(operand.strides[j])
            if j != i and other <= stride:
                reach += (call.nest.shape[j] - 1) * other
        if call.nest.shape[i] > 1 and stride < reach:
            return True
    return False


cdef void _simplify_axes(Nest *nest, const int *order) noexcept:
    """Put the axes in an order, if given, and merge neighbours that are one axis of each operand; keep at least two."""
    if order != NULL:
        put_in_order(nest, order)
    drop_unit_axes(nest)
    coalesce_axes(nest)
    keep_rank(nest, 2)
