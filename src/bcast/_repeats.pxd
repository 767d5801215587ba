from numpy cimport ndarray

from bcast._rules.counts cimport Counts

cpdef repeat_counted(ndarray data, Counts counts, int axis, ndarray out)
