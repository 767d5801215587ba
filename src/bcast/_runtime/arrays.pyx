# cython: cdivision=True
"""Arrays: attributes through NumPy's C API, for modules of plain Python; and new arrays for results.

In: arrays, dtypes and ufuncs; a shape, a dtype and the user's `out`. Out: the values of attributes, in a fraction of
the time of a lookup; and an array for the result, new or `out`, or an error that says why `out` does not fit.
"""

cimport numpy as cnp
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from libc.math cimport INFINITY, nextafter, nextafterf
from libc.stdint cimport uint64_t, uintptr_t
from libc.stdlib cimport llabs
from libc.string cimport memcpy

import sys

import numpy as np

from bcast._runtime.core cimport MAX_BYTES, block_handler, drop_unused, give_back_block, overlap, pays, take_block
from bcast._runtime.numpy_private cimport let_own_memory

cdef extern from "numpy/arrayobject.h":
    bint PyDataType_REFCHK(cnp.PyArray_Descr *dtype)
    bint PyArray_CanCastArrayTo(cnp.ndarray array, cnp.PyArray_Descr *dtype, int casting)
    int PyArray_DescrConverter(object dtype, cnp.PyArray_Descr **descr) except 0
    object PyArray_NewLikeArray(cnp.ndarray array, int order, cnp.dtype dtype, int subok)
    cnp.ndarray PyArray_NewFromDescr(
        PyTypeObject *subtype, cnp.dtype descr, int nd, const cnp.npy_intp *dims, const cnp.npy_intp *strides,
        void *data, int flags, PyObject *obj,
    )
    # NumPy 2.0 does not declare these for Cython.
    object PyDataMem_GetHandler()
    PyObject *PyDataMem_DefaultHandler

cdef extern from "numpy/ufuncobject.h":
    ctypedef struct UFunc "PyUFuncObject":
        int nin
        int core_enabled    # whether it has a signature

cdef extern from "Python.h":
    int PyTraceMalloc_Track(unsigned int domain, uintptr_t data, size_t size)

cnp.import_array()

cdef unsigned int TRACED = np.lib.tracemalloc_domain


cdef inline int check_axes(tuple shape) except -1:
    """Refuse a shape with more than `MAX_AXES` axes."""
    if len(shape) > MAX_AXES:
        raise ValueError(f"`shape` expected at most {MAX_AXES} axes, got {len(shape)}")
    return 0


cpdef tuple shape_of(cnp.ndarray array):
    """`array.shape`."""
    return cnp.PyArray_IntTupleFromIntp(cnp.PyArray_NDIM(array), cnp.PyArray_DIMS(array))


cpdef tuple reduced_shape(tuple shape, tuple axes, bint keeps):
    """A shape after the reduction of distinct axes, counted from 0: if it `keeps` them, they have length 1."""
    cdef Py_ssize_t rank = len(shape), axis, n = 0
    cdef uint64_t reduced = 0, one = 1      # a bit for each axis
    cdef tuple lengths
    cdef object length

    check_axes(shape)
    for axis in axes:
        if not 0 <= axis < rank or reduced >> axis & 1:
            raise ValueError(f"`axes` expected distinct axes of {shape}, got {axes}")
        reduced |= one << axis

    lengths = PyTuple_New(rank if keeps else rank - len(axes))
    for axis in range(rank):
        if reduced >> axis & 1 and not keeps:
            continue
        length = 1 if reduced >> axis & 1 else shape[axis]
        Py_INCREF(length)       # the call steals a reference
        PyTuple_SET_ITEM(lengths, n, length)
        n += 1
    return lengths


cpdef int type_of(cnp.ndarray array) noexcept:
    """`array.dtype.num`."""
    return cnp.PyArray_TYPE(array)


cpdef Py_ssize_t size_of(cnp.ndarray array) noexcept:
    """`array.size`."""
    return cnp.PyArray_SIZE(array)


cpdef bint has_references(cnp.ndarray array) noexcept:
    """`array.dtype.hasobject`."""
    return PyDataType_REFCHK(cnp.PyArray_DESCR(array))


cpdef dtype_of(cnp.ndarray array):
    """`np.asarray(array).dtype`: a subclass's `dtype` may differ."""
    return <cnp.dtype> cnp.PyArray_DESCR(array)


cpdef as_dtype(dtype):
    """`np.dtype(dtype)`."""
    cdef cnp.PyArray_Descr *descr = NULL
    PyArray_DescrConverter(dtype, &descr)
    result = <object> <PyObject *> descr
    Py_DECREF(result)   # the reference that the call gave
    return result


cpdef bint are_alike(cnp.dtype a, cnp.dtype b):
    """Whether items of one dtype are items of the other, byte by byte."""
    return a is b or (a.kind == b.kind and a.itemsize == b.itemsize and a == b)


cpdef bint are_numbers(cnp.dtype a, cnp.dtype b):
    """Whether both dtypes are NumPy's own of bools, integers, floats or complex numbers."""
    return _is_number(a.type_num) and _is_number(b.type_num)


cdef inline bint _is_number(int number) noexcept:
    return 0 <= number <= cnp.NPY_CLONGDOUBLE or number == cnp.NPY_FLOAT16


cpdef bint is_masked(array):
    """`isinstance(array, numpy.ma.MaskedArray)`: false for all arrays until somebody imports `numpy.ma`."""
    if type(array) is cnp.ndarray or not isinstance(array, cnp.ndarray):
        return False
    return isinstance(array, getattr(sys.modules.get("numpy.ma"), "MaskedArray", ()))


def refuse_repeated(cnp.ndarray array not None, out):
    """Refuse the user's `out`, whose memory is an array's, if several of its items share memory."""
    cdef int axis
    for axis in range(cnp.PyArray_NDIM(array) if cnp.PyArray_SIZE(array) else 0):
        if cnp.PyArray_STRIDE(array, axis) == 0 and cnp.PyArray_DIM(array, axis) > 1:
            got = f"{type(out).__name__} that is expanded along axis {axis}"
            raise ValueError(f"`out` expected items that share no memory, got {got}")


cpdef bint is_contiguous(cnp.ndarray array) noexcept:
    """`array.flags.c_contiguous`."""
    return cnp.PyArray_IS_C_CONTIGUOUS(array)


cpdef bint is_ordered(cnp.ndarray array) noexcept:
    """Whether the outermost axis has the longest stride, as in C's order; strides of 0, which repeat, do not count."""
    cdef Py_ssize_t longest = -1, step
    cdef int axis
    for axis in range(cnp.PyArray_NDIM(array)):
        if cnp.PyArray_DIM(array, axis) == 1 or cnp.PyArray_STRIDE(array, axis) == 0:
            continue
        step = llabs(cnp.PyArray_STRIDE(array, axis))
        if longest < 0:
            longest = step
        elif step > longest:
            return False
    return True


cpdef bint keeps_dtype(cnp.ndarray data, out):
    """Whether `out` needs no conversion: it is an array of the data's dtype, or not an array."""
    if not isinstance(out, cnp.ndarray):
        return True
    return are_alike(<cnp.dtype> cnp.PyArray_DESCR(data), <cnp.dtype> cnp.PyArray_DESCR(<cnp.ndarray> out))


cpdef bint can_cast(cnp.ndarray data, cnp.dtype dtype, int casting):
    """Whether a casting rule, given by NumPy's number, allows `data.astype(dtype)`."""
    return PyArray_CanCastArrayTo(data, <cnp.PyArray_Descr *> dtype, casting)


cpdef bint may_warn(cnp.ndarray data, cnp.dtype dtype):
    """Whether the conversion of items may fail or warn: not for integers that all fit.

    Integers fit other integers, which get their last bits, and floats of 32 bits and more, to which they are rounded.
    """
    if not _is_whole(<cnp.dtype> cnp.PyArray_DESCR(data)):
        return True
    if _is_whole(dtype) or cnp.NPY_FLOAT <= dtype.type_num <= cnp.NPY_CLONGDOUBLE:
        return False
    return not can_cast(data, dtype, cnp.NPY_SAFE_CASTING)


cdef inline bint _is_whole(cnp.dtype dtype) noexcept:
    """Whether a dtype has bools or integers."""
    return dtype.kind == c"b" or dtype.kind == c"u" or dtype.kind == c"i"


cpdef converted(cnp.ndarray data, cnp.dtype dtype):
    """`data.astype(dtype, subok=False)`, in half the time."""
    if dtype.itemsize == 0:     # the length follows from the values
        return data.astype(dtype, subok=False)
    Py_INCREF(dtype)    # the call steals a reference
    cdef cnp.ndarray result = PyArray_NewLikeArray(data, cnp.NPY_KEEPORDER, dtype, 0)
    convert_into(result, data)
    return result


cpdef convert_into(cnp.ndarray out, cnp.ndarray data):
    """`np.copyto(out, data, casting="unsafe")`, in half the time, as if the data had been copied first."""
    # NumPy parses dates in bytes without the GIL, and crashes if they are not dates; in strings, it refuses these.
    if cnp.PyArray_TYPE(data) == cnp.NPY_STRING and cnp.PyArray_TYPE(out) == cnp.NPY_DATETIME:
        data = data.astype("U")
    elif overlap(data, out):    # NumPy itself misses overlaps of one axis with two strides
        data = data.copy()
    cnp.PyArray_CopyInto(out, data)


def rounded_to(cnp.ndarray values not None, cnp.dtype dtype not None):
    """`values.astype(dtype)`, but rounded once.

    Other packages convert float64 to narrow floats through float32, and NumPy converts long double to float16 through
    another float.
    """
    cdef int number = cnp.PyArray_TYPE(values)
    cdef bint is_wide = number == cnp.NPY_LONGDOUBLE or number == cnp.NPY_CLONGDOUBLE
    cdef bint is_of_package = cnp.PyTypeNum_ISUSERDEF(dtype.type_num)

    given = np.asarray(values)
    if not cnp.PyTypeNum_ISNUMBER(number) or not (is_of_package or is_wide and dtype.type_num == cnp.NPY_FLOAT16):
        return given.astype(dtype)
    if cnp.PyTypeNum_ISCOMPLEX(number):
        given = given.astype(np.longdouble if is_wide else np.float64)      # with NumPy's warning
    if is_wide:
        given = _rounded_to_odd(given, np.float64)
    if is_of_package:
        given = _rounded_to_odd(given, np.float32)
    return given.astype(dtype)


cdef _rounded_to_odd(values, dtype):
    """Round floats to odd numbers of float64 or float32, so that the next rounding gives the result of a single one."""
    cdef cnp.ndarray wide = np.array(values, np.longdouble, order="K")      # exact, and contiguous
    cdef cnp.ndarray odd = np.empty_like(wide, dtype)   # in the same order
    cdef const long double *exact = <const long double *> cnp.PyArray_DATA(wide)
    if dtype is np.float64:
        _write_odd(exact, <double *> cnp.PyArray_DATA(odd), cnp.PyArray_SIZE(odd))
    else:
        _write_odd(exact, <float *> cnp.PyArray_DATA(odd), cnp.PyArray_SIZE(odd))
    return odd


ctypedef fused Narrow:
    double
    float


cdef void _write_odd(const long double *exact, Narrow *odd, Py_ssize_t n) noexcept nogil:
    """Write numbers whose last bit is set if bits were lost: one of the two neighbours of a value is odd."""
    cdef Py_ssize_t i
    cdef uint64_t bits = 0
    cdef Narrow nearest
    cdef double side

    for i in range(n):
        nearest = <Narrow> exact[i]
        memcpy(&bits, &nearest, sizeof(nearest))    # the last bit comes first
        if exact[i] == exact[i] and nearest != exact[i] and not bits & 1:
            side = INFINITY if exact[i] > nearest else -INFINITY
            if Narrow is double:
                nearest = nextafter(nearest, side)
            else:
                nearest = nextafterf(nearest, <float> side)
        odd[i] = nearest


cpdef bint is_binary(cnp.ufunc function) noexcept:
    """Whether a ufunc has two operands and no signature."""
    return (<UFunc *> function).nin == 2 and not (<UFunc *> function).core_enabled


cpdef reshaped(cnp.ndarray array, tuple shape):
    """`array.reshape(shape)` for an array of the base class and at most 64 lengths."""
    cdef cnp.npy_intp[MAX_AXES] dims
    cdef cnp.PyArray_Dims wanted
    cdef int axis
    check_axes(shape)
    for axis in range(len(shape)):
        dims[axis] = shape[axis]
    wanted.ptr = dims
    wanted.len = <int> len(shape)
    return cnp.PyArray_Newshape(array, &wanted, cnp.NPY_CORDER)


cpdef cnp.ndarray stretched(cnp.ndarray array, tuple shape):
    """A view of shape `shape`, which has the array's rank and differs from its shape only in axes of length 1.

    It is `numpy.broadcast_to` without NumPy's iterator, which fails without an exception if memory runs out.
    """
    cdef cnp.npy_intp[MAX_AXES] dims, strides
    cdef cnp.dtype dtype = <cnp.dtype> cnp.PyArray_DESCR(array)
    cdef cnp.ndarray view
    cdef int axis

    check_axes(shape)
    for axis in range(cnp.PyArray_NDIM(array)):
        dims[axis] = shape[axis]
        strides[axis] = cnp.PyArray_STRIDE(array, axis) if cnp.PyArray_DIM(array, axis) == dims[axis] else 0
    Py_INCREF(dtype)    # the call steals a reference
    view = PyArray_NewFromDescr(
        <PyTypeObject *> cnp.ndarray, dtype, cnp.PyArray_NDIM(array), dims, strides, cnp.PyArray_DATA(array), 0, NULL,
    )
    cnp.set_array_base(view, array)
    cnp.PyArray_UpdateFlags(view, cnp.NPY_ARRAY_ALIGNED | cnp.NPY_ARRAY_C_CONTIGUOUS | cnp.NPY_ARRAY_F_CONTIGUOUS)
    return view


cpdef cnp.ndarray result_array(out, cnp.ndarray like, tuple shape, str name, cnp.dtype dtype=None, str owner="data"):
    """Return the array for a result: the user's `out` if it fits, or without one, a new array.

    It has `shape`, and `dtype` if the user named one, or else the dtype of `like`. `name` and `owner` are the user's
    names for the shape and for `like`, for messages. A new array is C-contiguous, of the base class, not initialised.
    """
    drop_unused()
    if dtype is None:
        dtype = <cnp.dtype> cnp.PyArray_DESCR(like)
    else:
        owner = None
    if out is None:
        return new_array(dtype, shape, name)
    _check_out(out, dtype, shape, owner)
    return <cnp.ndarray> out


def counted(count, str one not None, str several not None):
    """A number and what it counts, for messages: 1 axis, 2 axes."""
    return f"{count} {one if count == 1 else several}"


cdef cnp.ndarray new_array(cnp.dtype dtype, tuple shape, name):
    """A new C-contiguous array of the base class, not initialised; `name` is the user's name for the shape."""
    cdef cnp.npy_intp[MAX_AXES] dims
    cdef Py_ssize_t bytes_left = MAX_BYTES
    cdef Py_ssize_t itemsize = dtype.itemsize
    cdef size_t nbytes = itemsize       # it wraps around only if the check below refuses the size
    cdef void *block = NULL
    cdef cnp.ndarray array
    cdef int axis

    check_axes(shape)
    if itemsize == 0:
        return np.ndarray(shape, dtype)     # other constructors replace a string dtype of length 0 by length 1
    bytes_left //= itemsize
    for axis in range(len(shape)):
        dims[axis] = shape[axis]
        nbytes *= <size_t> dims[axis]
        if dims[axis]:
            bytes_left //= dims[axis]
    if bytes_left == 0:
        got = f"{shape} with items of {counted(itemsize, 'byte', 'bytes')}"
        raise ValueError(f"`{name}` expected an output of at most {MAX_BYTES} bytes, got {got}")
    if dtype.hasobject:
        return np.empty(shape, dtype)
    if pays(nbytes):
        current = PyDataMem_GetHandler()
        if <PyObject *> current == PyDataMem_DefaultHandler:    # not the user's
            block = take_block(NULL, nbytes)
    if block == NULL:       # or there are too many blocks; malloc may still have memory
        return _array_over(NULL, dtype, len(shape), dims)
    try:
        array = _array_over(block, dtype, len(shape), dims)
    except BaseException:
        give_back_block(NULL, block, 0)
        raise
    let_own_memory(array, block_handler)
    PyTraceMalloc_Track(TRACED, <uintptr_t> block, nbytes)  # a failure to trace memory is no error
    return array


cdef cnp.ndarray _array_over(void *data, cnp.dtype dtype, int ndim, const cnp.npy_intp *dims):
    """A new array over `data`, which the caller still owns; if `data` is NULL, over new memory."""
    Py_INCREF(dtype)    # the call steals a reference
    return PyArray_NewFromDescr(
        <PyTypeObject *> cnp.ndarray, dtype, ndim, dims, NULL, data, cnp.NPY_ARRAY_CARRAY if data != NULL else 0, NULL
    )


cdef int _check_out(out, cnp.dtype dtype, tuple shape, owner) except -1:
    """Refuse a user's `out` that does not fit a result of a dtype and shape, or that cannot be written to."""
    cdef cnp.ndarray array
    cdef cnp.dtype own
    if not isinstance(out, cnp.ndarray) or is_masked(out):
        remedy = "; pass its .data" if isinstance(out, cnp.ndarray) else ""
        raise TypeError(f"`out` expected an ndarray without a mask, got {type(out).__name__}{remedy}")
    array = <cnp.ndarray> out
    # Types with a length of their own may compare equal beyond it; the kernel relies on the item size.
    own = <cnp.dtype> cnp.PyArray_DESCR(array)      # a subclass's `dtype` may differ
    if own is not dtype and (own != dtype or own.itemsize != dtype.itemsize):
        whose = "`dtype`" if owner is None else f"{owner}'s dtype"
        raise TypeError(f"`out` expected {whose} {dtype}, got {own}")
    if not _has_shape(array, shape):
        raise ValueError(f"`out` expected shape {shape}, got {np.asarray(array).shape}")
    if not cnp.PyArray_ISWRITEABLE(array):
        raise ValueError("`out` expected a writeable array, got a read-only one")
    if not cnp.PyArray_IS_C_CONTIGUOUS(array):
        refuse_repeated(array, out)
    return 0


cdef bint _has_shape(cnp.ndarray array, tuple shape) except -1:
    """Whether an array has a shape; the attribute `shape` of a subclass may differ."""
    cdef int axis
    if cnp.PyArray_NDIM(array) != len(shape):
        return False
    for axis in range(cnp.PyArray_NDIM(array)):
        if cnp.PyArray_DIM(array, axis) != <Py_ssize_t> shape[axis]:
            return False
    return True
