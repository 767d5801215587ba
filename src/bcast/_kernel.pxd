from numpy cimport ndarray

from bcast._rules.alignment cimport Alignment
from bcast._rules.counts cimport Counts

cpdef replicate(ndarray data, Alignment alignment, ndarray out)
cpdef repeat_counted(ndarray data, Counts counts, int axis, ndarray out)
