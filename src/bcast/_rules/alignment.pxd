# The C types of _rules/alignment.py, which is plain Python without them.
cimport cython

from bcast._rules.arguments cimport check_rank, integer, is_countable, shape_argument

cdef tuple ONES

cdef class Alignment:
    cdef readonly tuple shape
    cdef readonly tuple source

cpdef Alignment right_aligned(tuple data, tuple target, str name)
cdef expect_rank(tuple data, tuple target, str name, str hints)
cpdef expect_default_axis(axis, str mode)
cdef refuse_length(tuple data, Py_ssize_t i, tuple target, Py_ssize_t axis, str name, str remedy)
cdef str remedy_of(tuple data, tuple target, str name, str hints)
cdef str _elsewhere(tuple data, tuple target, str name, bint by_axis)
cdef str _swapped(tuple data, tuple target, str name)
cdef list _embedding(tuple data, tuple target)
cdef str _owner(str name)


@cython.locals(rank=Py_ssize_t, last=Py_ssize_t, start=Py_ssize_t, end=Py_ssize_t)
cpdef Alignment pdpd(tuple data, tuple target, axis, str name)


@cython.locals(source=tuple, i=Py_ssize_t, length=Py_ssize_t, wanted=Py_ssize_t)
cdef Alignment align_from(tuple data, Py_ssize_t end, tuple target, Py_ssize_t start, str name, str hints)


@cython.locals(alignment=Alignment)
cpdef Alignment aligned(tuple shape, tuple source)


@cython.locals(rank=Py_ssize_t, shape=tuple, merged=list, axis=Py_ssize_t, length=Py_ssize_t, before=Py_ssize_t)
cpdef tuple merge(shapes, str name)


@cython.locals(index=Py_ssize_t)
cdef Py_ssize_t index_of(axis, Py_ssize_t end)
