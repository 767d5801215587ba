"""Where results get their memory."""

cimport cython
cimport numpy as cnp
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_INCREF

import sys

import numpy as np

cdef extern from "numpy/arrayobject.h":
    object PyArray_NewFromDescr(
        PyTypeObject *subtype, cnp.dtype descr, int nd, const cnp.npy_intp *dims, const cnp.npy_intp *strides,
        void *data, int flags, PyObject *obj,
    )

cnp.import_array()

cdef Py_ssize_t MAX_BYTES = sys.maxsize


@cython.cdivision(True)     # lengths of 0 are left out
def new_array(cnp.ndarray like not None, tuple shape not None, name):
    """Return a new C-contiguous array, not initialised.

    Parameters
    ----------
    like : ndarray
        An array of the dtype wanted.
    shape : tuple of int
        At most 64 lengths of 0 or more.
    name : str
        What the user calls the shape, for the message.

    Returns
    -------
    ndarray
        Of the base class, owning its memory.

    Raises
    ------
    ValueError
        If the array has more bytes than an index can count.
    MemoryError
        If there is no memory for it.
    """
    cdef cnp.npy_intp[64] dims
    cdef Py_ssize_t bytes_left = MAX_BYTES
    cdef Py_ssize_t itemsize = cnp.PyArray_ITEMSIZE(like)
    cdef int axis
    cdef cnp.dtype dtype = like.dtype
    if itemsize == 0:
        return np.ndarray(shape, dtype)     # all else takes a string type of length 0 for one of length 1
    bytes_left //= itemsize
    for axis in range(len(shape)):
        dims[axis] = shape[axis]
        if dims[axis]:
            bytes_left //= dims[axis]
    if bytes_left == 0:
        raise ValueError(
            f"`{name}` expected an output of at most {MAX_BYTES} bytes, got {shape} with items of {itemsize} bytes"
        )
    if dtype.hasobject:
        return np.empty(shape, dtype)
    Py_INCREF(dtype)    # the call takes over one reference
    return PyArray_NewFromDescr(<PyTypeObject *> cnp.ndarray, dtype, len(shape), dims, NULL, NULL, 0, NULL)
