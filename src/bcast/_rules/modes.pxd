from bcast._rules.alignment cimport Alignment


cpdef Alignment align(
    tuple data, target_shape, axes_mapping=*, mode=*, axis=*, broadcast_axes=*, str name=*,
)
cpdef Alignment align_shapes(
    tuple data, tuple target, axes_mapping, mode, axis, broadcast_axes, str name, bint all_if_empty, bint two_way,
)
