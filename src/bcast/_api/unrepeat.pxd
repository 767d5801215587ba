# The C types of _api/unrepeat.py, which is plain Python without them.
cimport cython

from bcast._adjoint cimport sum_counted, sum_onto
from bcast._api.broadcast cimport as_array, is_tensor
from bcast._api.tiling cimport counts_along, split
from bcast._api.unbroadcast cimport wanted_dtype
from bcast._rules.alignment cimport Alignment
from bcast._runtime.arrays cimport result_array, shape_of, size_of


@cython.locals(lengths=list, at=Py_ssize_t)
cpdef tuple lengths_left(repeats, list counts, tuple shape)


@cython.locals(steps=list, axes=list, at=Py_ssize_t)
cdef list _order(list counts, tuple shape)


@cython.locals(left=list, i=Py_ssize_t)
cdef tuple _left(tuple shape, list counts, Py_ssize_t at)


@cython.locals(alike=list, alignment=Alignment)
cdef _sum(array, list counts, Py_ssize_t at, result)

cpdef wide_dtype(dtype)
