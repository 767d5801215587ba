# The C types of _api/tiling.py, which is plain Python without them.
cimport cython

from bcast._rules.alignment cimport Alignment, aligned, all_plain, shape_argument
from bcast._kernel cimport replicate
from bcast._runtime.result cimport result_array, shape_of, type_of
from bcast._api.broadcast cimport as_array, materialise

cdef Py_ssize_t MAX_SIZE
cdef int STRINGS


@cython.locals(lengths=list, source=list, i=Py_ssize_t)
cdef Alignment _split(tuple shape, tuple counts, bint tiled)

cdef bint _are_ones(tuple counts)


@cython.locals(lengths=list, i=Py_ssize_t)
cdef tuple _products(tuple shape, tuple counts)

cdef tuple _counts(str name, value, bint floats)


@cython.locals(items=tuple)
cdef tuple _plain(value)


@cython.locals(total=Py_ssize_t, count=Py_ssize_t)
cdef Py_ssize_t _total(tuple counts) except? -1

cdef _items(value)
cdef _count(item, bint floats)


@cython.locals(counts=list, at=Py_ssize_t, i=Py_ssize_t)
cdef tuple _counts_of_axes(repeats, tuple axes, tuple shape)


@cython.locals(array=object, counts=tuple)      # NumPy's declarations of arrays would call its C API
cdef _repeats(repeats, size, axis)

cdef _whole(array)

cdef _axes(axis)
cdef _axis(axis)


@cython.locals(rank=Py_ssize_t, at=Py_ssize_t)
cdef Py_ssize_t _place(axis, tuple shape) except -1
