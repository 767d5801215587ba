# The modes: a rule each, from shapes and axes to an `Alignment`, and the table of them that everything else reads.
#
# In: valid shapes, and the user's arguments unchecked. Out: the alignment, or the error that says what was expected.

# `name` is the user's for the target. `two_way` is whether the target may stretch, too: not if it is the output's
# shape. `all_if_empty` is whether empty `broadcast_axes` mean all axes, as in nGraph's BroadcastLike.
ctypedef Alignment (*Rule)(tuple data, tuple target, mapping, axis, axes, str name, bint all_if_empty, bint two_way)

Form = namedtuple("Form", "rule data target arguments")     # an example: shapes, and the arguments that the mode reads


@cython.final
@cython.auto_pickle(False)
cdef class Mode:
    """A row of the table."""

    cdef readonly str name
    cdef readonly tuple forms       # an example for each way to call the mode; what none of them has is refused
    cdef bint reads_axes, reads_axis
    cdef Rule rule


cdef Mode row(str name, Rule rule, tuple forms):
    cdef Mode mode = Mode.__new__(Mode)
    mode.name = name
    mode.rule = rule
    mode.forms = forms
    for form in forms:
        mode.reads_axis |= "axis" in form.arguments
        mode.reads_axes |= "axes_mapping" in form.arguments or "broadcast_axes" in form.arguments
    return mode


cdef Alignment _numpy(tuple data, tuple target, mapping, axis, axes, str name, bint all_if_empty, bint two_way):
    return right_aligned(data, target, name)


cdef Alignment _explicit(tuple data, tuple target, mapping, axis, axes, str name, bint all_if_empty, bint two_way):
    if axes is None:
        return _mapped(data, target, mapping, name)
    if mapping is not None:
        raise ValueError(f"`axes_mapping` expected None beside `broadcast_axes`, got {show(mapping)}")
    return _added(data, target, axes, name, all_if_empty)


cdef Alignment _bidirectional(tuple data, tuple target, mapping, axis, axes, str name, bint all_if_empty, bint two_way):
    return right_aligned(data, merge((data, target), name) if two_way else target, name)


cdef Alignment _pdpd(tuple data, tuple target, mapping, axis, axes, str name, bint all_if_empty, bint two_way):
    return pdpd(data, target, integer("axis", axis), name)


cdef Alignment _none(tuple data, tuple target, mapping, axis, axes, str name, bint all_if_empty, bint two_way):
    if data != target:
        raise ValueError(f"`{name}` expected data's own shape {data} in mode 'none', got {show(target)}")
    return aligned(target, target)


cdef tuple ROWS = (
    row("numpy", _numpy, (Form("aligned at the right; lengths of 1 stretch", (16, 1, 1), (1, 16, 50, 50), {}),)),
    row("explicit", _explicit, (
        Form("axis i of the data feeds output axis axes_mapping[i]", (16,), (1, 16, 50, 50), {"axes_mapping": [1]}),
        Form(
            "the data lacks the axes broadcast_axes; nothing stretches", (480, 640), (480, 640, 3),
            {"broadcast_axes": [2]},
        ),
    )),
    row("bidirectional", _bidirectional, (
        Form("aligned at the right; the target's lengths of 1 stretch too", (4, 1), (3, 1, 5), {}),
    )),
    row("pdpd", _pdpd, (
        Form("aligned from axis on, without the data's trailing 1s", (3, 4), (2, 3, 4, 5), {"axis": 1}),
    )),
    row("none", _none, (Form("nothing is broadcast: equal shapes only", (2, 3), (2, 3), {}),)),
)
MODES = ROWS
cdef tuple NAMES = tuple(map(attrgetter("name"), ROWS))


cpdef Alignment align(
    tuple data, target_shape, axes_mapping=None, mode=None, axis=-1, broadcast_axes=None, str name="target_shape",
):
    """Find the alignment of data of one valid shape under `mode`; `bcast.broadcast` describes the other arguments."""
    return align_shapes(
        data, shape_argument(name, target_shape), axes_mapping, mode, axis, broadcast_axes, name, False, True,
    )


cpdef Alignment align_shapes(
    tuple data, tuple target, axes_mapping, mode, axis, broadcast_axes, str name, bint all_if_empty, bint two_way,
):
    """Find the alignment of data of one valid shape to another; `Rule` has the last three arguments."""
    cdef Mode found
    if mode is None:    # it follows from what is given
        if axes_mapping is not None or broadcast_axes is not None:
            mode = "explicit"
        elif type(axis) is int and axis == -1:
            return right_aligned(data, target, name)    # nothing is left to check
        else:
            mode = rule_of(axis)
    found = _find(mode)
    if (type(axis) is not int or axis != -1) and not found.reads_axis:
        expect_default_axis(axis, found.name)
    if (axes_mapping is not None or broadcast_axes is not None) and not found.reads_axes:
        argument = "axes_mapping" if axes_mapping is not None else "broadcast_axes"
        got = show(axes_mapping if axes_mapping is not None else broadcast_axes)
        remedy = "" if found.name == "none" else "; give mode='explicit'"
        raise ValueError(f"`{argument}` expected None in mode {found.name!r}, got {got}{remedy}")
    return found.rule(data, target, axes_mapping, axis, broadcast_axes, name, all_if_empty, two_way)


cpdef str rule_of(axis):
    """Return the name of the mode that an axis implies where none is given."""
    return "numpy" if (axis if type(axis) is int else integer("axis", axis)) == -1 else "pdpd"


cdef Mode _find(mode):
    cdef Mode each
    for each in ROWS:
        if each.name is mode:   # literals are interned, so this nearly always finds it
            return each
    return ROWS[NAMES.index(mode_of(mode, NAMES, "mode"))]


cdef Alignment _mapped(tuple data, tuple target, axes_mapping, str name):
    """`axes_mapping[i]` is the output axis that data's axis i feeds: explicit mode of Broadcast-1 and -3."""
    cdef Py_ssize_t axis, before = -1, i, length, wanted
    cdef list source = [1] * len(target)
    cdef tuple axes = None if axes_mapping is None else integers("axes_mapping", axes_mapping, False)
    if axes is None or (len(axes) != len(data) and (len(axes) != 1 or data)):
        got = show(axes_mapping)
        if axes is None:
            got += " (nor is `broadcast_axes` given)"
            got += remedy_of(data, target, name, "mapping") if data else "; give axes_mapping=[]"
        expected = f"{counted(len(data), 'axis', 'axes')}, one for each axis of data of shape {data}"
        raise ValueError(f"`axes_mapping` expected {expected}, got {got}")
    _check_axes("axes_mapping", axes, target)
    if axes and not data and target[axes[0]] != 1:
        # OpenVINO accepts one axis for a scalar if the output has length 1 there, and has a test for it.
        raise ValueError(f"`axes_mapping` expected for a scalar no axis, or one of length 1 in {target}, got {axes}")
    for axis in axes:
        if axis <= before:
            expected = "strictly increasing axes (data is not transposed)"
            raise ValueError(f"`axes_mapping` expected {expected}, got {show(axes_mapping)}")
        before = axis
    for i in range(len(data)):
        axis = axes[i]
        length, wanted = data[i], target[axis]
        if length != 1 and length != wanted:
            refuse_length(data, i, target, axis, name, remedy_of(data, target, name, "mapping"))
        source[axis] = data[i]
    return aligned(target, tuple(source))


cdef Alignment _added(tuple data, tuple target, broadcast_axes, str name, bint all_if_empty):
    """`broadcast_axes` is the set of output axes that the data lacks, and no axis stretches: nGraph's Broadcast."""
    cdef Py_ssize_t axis
    cdef list source = [], left = []
    cdef tuple axes = integers("broadcast_axes", broadcast_axes, True)
    _check_axes("broadcast_axes", axes, target)
    if all_if_empty and not axes:
        axes = tuple(range(len(target)))
    for axis in range(len(target)):
        if axis in axes:
            source.append(1)
        else:
            source.append(target[axis])
            left.append(target[axis])
    if tuple(left) != data:
        expected = f"axes of `{name}` {target} that leave data's shape {data}"
        got = f"{show(broadcast_axes)}, which leave {tuple(left)}"
        raise ValueError(f"`broadcast_axes` expected {expected}, got {got}")
    return aligned(target, tuple(source))


cdef int _check_axes(str name, tuple axes, tuple target) except -1:
    """Refuse axes that `target` does not have, negative ones among them."""
    for axis in axes:
        if index_of(axis, len(target)) < 0:
            remedy = f"; give {axis + len(target)}" if -len(target) <= axis < 0 else ""
            expected = f"axes of the output's shape {target}, counted from 0"
            raise AxisError(f"`{name}` expected {expected}, got {show(axis)}{remedy}")
    return 0
