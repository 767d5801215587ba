from numpy cimport ndarray

from bcast._rules.core cimport Alignment, Counts

cpdef replicate(ndarray data, Alignment alignment, ndarray out)
cpdef repeat_counted(ndarray data, Counts counts, int axis, ndarray out)
