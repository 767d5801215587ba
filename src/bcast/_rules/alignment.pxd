cdef class Alignment:
    cdef readonly tuple shape
    cdef readonly tuple source

cpdef Alignment right_aligned(tuple data, tuple target, str name)
cpdef Alignment pdpd(tuple data, tuple target, axis, str name)
cpdef Alignment aligned(tuple shape, tuple source)
cpdef tuple merge(shapes, str name)
cpdef expect_default_axis(axis, str mode)

cpdef Alignment align(tuple data, target_shape, axes_mapping=*, mode=*, axis=*, broadcast_axes=*, str name=*)
cpdef Alignment align_shapes(
    tuple data, tuple target, axes_mapping, mode, axis, broadcast_axes, str name, bint all_if_empty, bint two_way,
)

cpdef str rule_of(axis)
