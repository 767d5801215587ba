# The C types of _api/broadcast.py, which is plain Python without them.
cimport cython
from numpy cimport ndarray

from bcast._api.converted cimport as_array, materialise
from bcast._rules.arguments cimport mode_of, shape_argument
from bcast._rules.alignment cimport Alignment, align, align_shapes, aligned, merge, right_aligned
from bcast._runtime.arrays cimport shape_of

cpdef refuse_shape(shape)
cpdef Alignment align_like(tuple data, tuple shape, like, axes_mapping, mode, axis, axes)


@cython.locals(
    rank=Py_ssize_t, i=Py_ssize_t, axis=Py_ssize_t, arrays=list, lengths=list, array=object, shape=tuple, source=tuple,
)
cdef tuple _grid(tuple xi, bint copy, bint sparse, bint swapped)


cdef Py_ssize_t _axis_of(Py_ssize_t i, bint swapped)
cdef _broadcast_line(array, tuple source, tuple shape)
