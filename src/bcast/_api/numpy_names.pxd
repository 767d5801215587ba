# The C types of _api/numpy_names.py, which is plain Python without them.
cimport cython
from numpy cimport ndarray

from bcast._rules.alignment cimport Alignment, aligned, merge, right_aligned
from bcast._rules.arguments cimport shape_argument
from bcast._runtime.arrays cimport shape_of
from bcast._api.broadcast cimport as_array, is_tensor, materialise


@cython.locals(
    rank=Py_ssize_t, i=Py_ssize_t, axis=Py_ssize_t, arrays=list, lengths=list, array=object, shape=tuple, source=tuple,
    alignment=Alignment,
)
cdef tuple _grid(tuple xi, bint copy, bint sparse, bint swapped)
