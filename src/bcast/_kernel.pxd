from numpy cimport dtype as Dtype, ndarray

from bcast._rules.alignment cimport Alignment
from bcast._rules.core cimport Counts

cpdef replicate(ndarray data, Alignment alignment, ndarray out)
cpdef repeat_counted(ndarray data, Counts counts, int axis, ndarray out)
cpdef bint may_fail(ndarray data, Dtype dtype) except -1
