from numpy cimport ndarray

from bcast._alignment cimport Alignment

cpdef replicate(ndarray data, Alignment alignment, ndarray out)
