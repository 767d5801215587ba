cdef class Alignment:
    cdef readonly tuple shape
    cdef readonly tuple source

cpdef Alignment right_aligned(tuple data, tuple target, str name)
cpdef Alignment pdpd(tuple data, tuple target, axis, str name)
cpdef Alignment aligned(tuple shape, tuple source)
cpdef tuple merge(shapes, str name)
cpdef expect_default_axis(axis, str mode)

cdef class Role:
    cdef str name               # the user's name for it
    cdef bint all_if_empty      # whether empty `broadcast_axes` mean all its axes, as in nGraph's BroadcastLike
    cdef bint two_way           # whether it may stretch, too; not if it is the output's shape

cpdef Alignment align(tuple data, target_shape, axes_mapping=*, mode=*, axis=*, broadcast_axes=*)
cpdef Alignment align_shapes(tuple data, tuple target, axes_mapping, mode, axis, broadcast_axes, Role role)

cpdef str rule_of(axis)
