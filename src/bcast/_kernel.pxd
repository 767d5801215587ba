from numpy cimport dtype as Dtype, ndarray

from bcast._rules.alignment cimport Alignment
from bcast._rules.core cimport Counts

cpdef replicate(ndarray data, Alignment alignment, ndarray out)
cpdef repeat_counted(ndarray data, Counts counts, int axis, ndarray out)
cpdef bint is_converted(Dtype own, Dtype dtype) except -1
cpdef int try_conversion(ndarray data, Dtype dtype) except -1
cpdef int replicate_converted(ndarray data, tuple shape, ndarray out, Py_ssize_t block_bytes) except -1
cpdef int repeat_converted(ndarray data, Counts counts, int axis, ndarray out, Py_ssize_t block_bytes) except -1
