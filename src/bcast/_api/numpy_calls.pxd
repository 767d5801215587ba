# The C types of _api/numpy_calls.py, which is plain Python without them.
cimport cython

from bcast._api.tiling cimport are_ones
from bcast._elementwise cimport choose
from bcast._rules.arguments cimport all_plain
from bcast._runtime.arrays cimport can_count, is_contiguous, is_plain, repeats_little, size_of


@cython.locals(count=Py_ssize_t)
cpdef take_repeat(a, repeats, axis=*)

cdef bint _are_plain(tuple arrays)
