# The C types of _api/reductions.py, which is plain Python without them.
cimport cython
from numpy cimport dtype as Dtype, ndarray

from bcast._api.adjoints cimport array_of, can_be_read_again, flag_of, lengths_after, order_in_memory, summed_axes
from bcast._reduction cimport has_kernels, reduce_onto
from bcast._rules.alignment cimport aligned
from bcast._runtime.arrays cimport dtype_of, is_contiguous, reshaped, result_array, shape_of, size_of

cdef Dtype BOOL


@cython.locals(array=ndarray, wanted=Dtype, found=ndarray)
cdef _extreme(str name, int operation, a, axis, out, keepdims, initial, where)


@cython.locals(array=ndarray, dtype=Dtype, axes=tuple)
cdef _truth(str name, int operation, a, axis, out, keepdims, where)


@cython.locals(size=Py_ssize_t, begin=Py_ssize_t, length=Py_ssize_t, end=Py_ssize_t)
cdef _by_parts(ndarray array, int operation, Dtype dtype, bint keeps)


cdef bint _is_everywhere(where)


@cython.locals(array=ndarray, dtype=Dtype)
cdef _readable(a, axis, out)


@cython.locals(source=tuple, left=tuple, count=Py_ssize_t, result=ndarray)
cdef _reduced(ndarray array, tuple axes, int operation, Dtype dtype, bint keeps, out)


cdef _numpys(str name, a, axis, out, keepdims, where, initial=*)
