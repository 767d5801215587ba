# The C types of _rules/arguments.py, which is plain Python without them.
cimport cython

from bcast._runtime.arrays cimport as_dtype, is_masked, type_of

cdef Py_ssize_t MAX_RANK, MAX_SIZE

cpdef tuple shape_argument(str name, value)
cpdef str mode_of(value, tuple modes, str name)
cpdef dtype_argument(dtype)
cpdef bint all_plain(tuple items)
cpdef tuple integers(str name, value, bint unordered)
cpdef check_rank(str name, tuple shape)
cpdef integer(str name, value)
cpdef tuple counts_argument(str name, value, bint floats)
cdef _items(value)
cdef _items_of_array(value)
cdef tuple _integers_of_array(value)
cdef tuple _integers_in(str name, value, tuple unfit)
cdef bint _has_floats(value) except -1
cdef str _shown_items(value, depth)
cdef _count(item, bint floats)
cpdef axes_argument(axis)


@cython.locals(room=Py_ssize_t, length=Py_ssize_t)
cpdef bint is_countable(tuple shape)


@cython.locals(items=tuple)
cpdef tuple plain_counts(value)


@cython.locals(total=Py_ssize_t, count=Py_ssize_t)
cpdef Py_ssize_t total_of(tuple counts) except? -1


@cython.locals(rank=Py_ssize_t, at=Py_ssize_t)
cpdef Py_ssize_t place_of(axis, tuple shape) except -1
