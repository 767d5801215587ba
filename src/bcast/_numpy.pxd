# The C types of _numpy.py, which reads as plain Python without them.
cimport cython
from numpy cimport ndarray

from bcast._alignment cimport aligned, merge, right_aligned, shape_argument
from bcast._memory cimport shape_of
from bcast._ops cimport as_array, materialise


@cython.locals(
    rank=Py_ssize_t, i=Py_ssize_t, axis=Py_ssize_t, arrays=list, lengths=list, array=object, shape=tuple, source=tuple,
)
cdef tuple _grid(tuple xi, bint copy, bint sparse, bint swapped)
