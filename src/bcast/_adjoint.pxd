from numpy cimport ndarray

from bcast._rules.alignment cimport Alignment

cpdef sum_onto(ndarray grad, Alignment alignment, ndarray out)
