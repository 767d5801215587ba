from numpy cimport ndarray

from bcast._rules.alignment cimport Alignment

cpdef replicate(ndarray data, Alignment alignment, ndarray out)
