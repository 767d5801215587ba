"""Arrays for results: a new one, whose memory comes from `_runtime/pages.pyx` if it is large, or a checked `out`."""

cimport cython
cimport numpy as cnp
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport uintptr_t

from bcast._runtime.arrays cimport MAX_AXES, check_axes
from bcast._runtime.pages cimport drop_block, drop_unused, new_block, page_handler, pays

import sys

import numpy as np
from numpy.ma import MaskedArray

cdef extern from "numpy/arrayobject.h":
    object PyArray_NewFromDescr(
        PyTypeObject *subtype, cnp.dtype descr, int nd, const cnp.npy_intp *dims, const cnp.npy_intp *strides,
        void *data, int flags, PyObject *obj,
    )
    # NumPy 2.0 does not declare these for Cython.
    object PyDataMem_GetHandler()
    PyObject *PyDataMem_DefaultHandler
    ctypedef struct Fields "PyArrayObject_fields":
        PyObject *mem_handler

cdef extern from "Python.h":
    int PyTraceMalloc_Track(unsigned int domain, uintptr_t data, size_t size)

cnp.import_array()

cdef object masked = MaskedArray
cdef Py_ssize_t MAX_BYTES = sys.maxsize
cdef unsigned int TRACED = np.lib.tracemalloc_domain


cpdef result_array(out, cnp.ndarray like, tuple shape, str name, cnp.dtype dtype=None, str owner="data"):
    """Return the array for a result: a new one, or the user's `out` if it fits.

    Parameters
    ----------
    out : ndarray or None
        The user's array, unchecked.
    like : ndarray
        An array of the wanted dtype; `dtype` takes precedence.
    shape : tuple of int
        At most 64 lengths of 0 or more.
    name : str
        The user's name for the shape, for the message.
    dtype : dtype, optional
        The wanted dtype, if the user named it.
    owner : str, optional
        The user's name for `like`, for the message.

    Returns
    -------
    ndarray
        `out` itself, or a new C-contiguous array of the base class that owns its memory and is not initialised.

    Raises
    ------
    TypeError
        If `out` is not an array, is masked, or has another dtype.
    ValueError
        If `out` has another shape or is read-only; if a new array would have more bytes than an index can count.
    MemoryError
        If there is not enough memory for a new array.
    """
    drop_unused()
    if out is None:
        return new_array(<cnp.dtype> cnp.PyArray_DESCR(like) if dtype is None else dtype, shape, name)
    if dtype is None:
        _check_out(out, <cnp.dtype> cnp.PyArray_DESCR(like), shape, owner)
    else:
        _check_out(out, dtype, shape, None)
    return out


@cython.cdivision(True)     # no length of 0 is a divisor
cdef new_array(cnp.dtype dtype, tuple shape, name):
    """A new C-contiguous array of the base class, not initialised; `name` is the user's name for the shape."""
    cdef cnp.npy_intp[MAX_AXES] dims
    cdef Py_ssize_t bytes_left = MAX_BYTES
    cdef Py_ssize_t itemsize = dtype.itemsize
    cdef size_t nbytes = itemsize       # it wraps around only where the check below refuses the size
    cdef void *block = NULL
    cdef int axis
    check_axes(shape)
    if itemsize == 0:
        return np.ndarray(shape, dtype)     # other constructors replace a string dtype of length 0 by one of length 1
    bytes_left //= itemsize
    for axis in range(len(shape)):
        dims[axis] = shape[axis]
        nbytes *= <size_t> dims[axis]
        if dims[axis]:
            bytes_left //= dims[axis]
    if bytes_left == 0:
        raise ValueError(
            f"`{name}` expected an output of at most {MAX_BYTES} bytes, got {shape} with items of {itemsize} bytes"
        )
    if dtype.hasobject:
        return np.empty(shape, dtype)
    if pays(nbytes) and _is_default_handler():
        handler = page_handler()
        block = new_block(nbytes)
    if block == NULL:       # or there are too many blocks; malloc may still have memory
        return _array_over(NULL, dtype, len(shape), dims)
    try:
        array = _array_over(block, dtype, len(shape), dims)
    except BaseException:
        drop_block(block)
        raise
    _hand_over(array, handler, nbytes)
    return array


cdef bint _is_default_handler() except -1:
    """Whether NumPy uses its default memory handler, not one of the user's."""
    current = PyDataMem_GetHandler()
    return <PyObject *> current == PyDataMem_DefaultHandler


cdef _array_over(void *data, cnp.dtype dtype, int ndim, const cnp.npy_intp *dims):
    """A new array over `data`, which the caller still owns; over memory of its own if `data` is NULL."""
    Py_INCREF(dtype)    # the call steals a reference
    return PyArray_NewFromDescr(
        <PyTypeObject *> cnp.ndarray, dtype, ndim, dims, NULL, data, cnp.NPY_ARRAY_CARRAY if data != NULL else 0, NULL
    )


cdef void _hand_over(cnp.ndarray array, object handler, size_t nbytes) noexcept:
    """Make the array own the block under it, as if NumPy had got it from the handler."""
    Py_INCREF(handler)      # the array's reference
    (<Fields *> array).mem_handler = <PyObject *> handler
    cnp.PyArray_ENABLEFLAGS(array, cnp.NPY_ARRAY_OWNDATA)
    PyTraceMalloc_Track(TRACED, <uintptr_t> cnp.PyArray_DATA(array), nbytes)    # failing to trace memory is no error


cdef int _check_out(out, cnp.dtype dtype, tuple shape, owner) except -1:
    if not isinstance(out, cnp.ndarray) or (type(out) is not cnp.ndarray and isinstance(out, masked)):
        raise TypeError(f"`out` expected an ndarray without a mask, got {type(out).__name__}")
    cdef cnp.ndarray array = out
    # Types with a length of their own may compare equal beyond it; the kernel relies on the item size.
    cdef cnp.dtype own = <cnp.dtype> cnp.PyArray_DESCR(array)      # a subclass's `dtype` may differ
    if own is not dtype and (own != dtype or own.itemsize != dtype.itemsize):
        whose = "`dtype`" if owner is None else f"{owner}'s dtype"
        raise TypeError(f"`out` expected {whose} {dtype}, got {own}")
    cdef int axis
    cdef bint fits = cnp.PyArray_NDIM(array) == len(shape)
    for axis in range(cnp.PyArray_NDIM(array) if fits else 0):
        if cnp.PyArray_DIM(array, axis) != shape[axis]:
            fits = False
    if not fits:
        raise ValueError(f"`out` expected shape {shape}, got {np.asarray(array).shape}")
    if not cnp.PyArray_ISWRITEABLE(array):
        raise ValueError("`out` expected a writeable array, got a read-only one")
    return 0
