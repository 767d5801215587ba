from numpy cimport ndarray

from bcast._alignment cimport Alignment

cpdef sum_onto(ndarray grad, Alignment alignment, ndarray out)
