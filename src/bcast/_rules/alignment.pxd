# The C types of _rules/alignment.py, which is plain Python without them.
cimport cython

from bcast._rules.arguments cimport check_rank, integer, integers, is_countable, mode_of, shape_argument

cdef tuple ONES
cdef str NUMPY, EXPLICIT, BIDIRECTIONAL, PDPD, NONE


cdef class Alignment:
    cdef readonly tuple shape
    cdef readonly tuple source


cpdef Alignment align(tuple data_shape, target_shape, axes_mapping=*, mode=*, axis=*, broadcast_axes=*, str name=*)
cpdef Alignment align_shapes(
    tuple data, tuple target, axes_mapping, mode, axis, broadcast_axes, str name, bint all_if_empty, bint two_way,
)
cpdef Alignment right_aligned(tuple data, tuple target, str name)
cdef Alignment _none(tuple data, tuple target, str name)


@cython.locals(
    axes=tuple, axis=Py_ssize_t, before=Py_ssize_t, source=list, i=Py_ssize_t, length=Py_ssize_t, wanted=Py_ssize_t,
)
cdef Alignment _explicit(tuple data, tuple target, axes_mapping, str name)


@cython.locals(axes=tuple, axis=Py_ssize_t, left=Py_ssize_t, fits=bint, source=list)
cdef Alignment _added_axes(tuple data, tuple target, axes_mapping, broadcast_axes, str name, bint all_if_empty)


@cython.locals(rank=Py_ssize_t, last=Py_ssize_t, start=Py_ssize_t, end=Py_ssize_t)
cpdef Alignment pdpd(tuple data, tuple target, axis, str name)


@cython.locals(source=tuple, i=Py_ssize_t, length=Py_ssize_t, wanted=Py_ssize_t)
cdef Alignment _laid(tuple data, Py_ssize_t end, tuple target, Py_ssize_t start, str name, bint by_axis)


@cython.locals(alignment=Alignment)
cpdef Alignment aligned(tuple shape, tuple source)


@cython.locals(rank=Py_ssize_t, shape=tuple, merged=list, axis=Py_ssize_t, length=Py_ssize_t, before=Py_ssize_t)
cpdef tuple merge(shapes, str name)


@cython.locals(index=Py_ssize_t)
cdef Py_ssize_t _index(axis, Py_ssize_t end)

cdef _check_axes(str name, tuple axes, tuple target)
cdef _expect_rank(tuple data, tuple target, str name)
cpdef expect_default_axis(axis, str mode)
cdef str _remedy(tuple data, tuple target, str name, bint by_axis)
cdef str _swapped(tuple data, tuple target, str name)
cdef list _embedding(tuple data, tuple target)
cdef str _owner(str name)
