# cython: cdivision=True
"""`Alignment`: which axis of the data feeds which axis of the output; and the modes, each with a rule that finds it.

In: valid shapes, and the user's other arguments unchecked. Out: an alignment or a shape, or an error that says where
the shapes do not fit. First come the alignment and the rules that several functions share, then the modes and their
table, `ROWS`, which everything else reads.
"""

cimport cython

from bcast._rules.arguments cimport check_rank, integer, integers, is_countable, mode_of, shape_argument

from collections import namedtuple
from operator import attrgetter

from numpy.exceptions import AxisError

from bcast._rules.arguments import refuse_size, show
from bcast._runtime.arrays import counted

cdef tuple ONES = tuple(map((1,).__mul__, range(65)))   # indexed by length, so that none is made again


@cython.final
@cython.auto_pickle(False)      # it would bypass the checks of `__init__`
@cython.freelist(8)
@cython.no_gc       # it holds only tuples of ints
cdef class Alignment:
    """The shape of the output, and the data's shape at the same rank: at each axis the same length, or 1. Immutable."""

    def __init__(self, shape, source):
        self.shape = shape_argument("shape", shape)
        self.source = shape_argument("source", source)
        if len(self.source) != len(self.shape):
            expected = f"{counted(len(self.shape), 'length', 'lengths')}, as many as {shape}"
            raise ValueError(f"`source` expected {expected}, got {show(source)}")
        for length, stretched in zip(self.source, self.shape, strict=True):
            if length != 1 and length != stretched:
                raise ValueError(f"`source` expected the length in {shape} or 1 at each axis, got {show(source)}")

    def __eq__(self, other, /):
        return isinstance(other, Alignment) and self.shape == other.shape and self.source == other.source

    def __repr__(self):
        return f"Alignment(shape={self.shape}, source={self.source})"


cpdef Alignment right_aligned(tuple data, tuple target, str name):
    """Align at the right and stretch only the data: NumPy's `broadcast_to`, Broadcast-1 and -3, ONNX unidirectional.

    Where both shapes stretch, `merge` comes first: Broadcast-3's bidirectional mode, ONNX Expand, `broadcast_arrays`.
    """
    expect_rank(data, target, name, "right")
    return align_from(data, len(data), target, len(target) - len(data), name, "right")


cpdef Alignment pdpd(tuple data, tuple target, axis, str name):
    """Align data, without its trailing 1s, with the target from `axis` on: PaddlePaddle's rule, by OpenVINO's pages."""
    cdef Py_ssize_t rank = len(target), last, start, end
    expect_rank(data, target, name, "axis")
    last = rank - 1 if data else rank
    start = rank - len(data) if axis == -1 else index_of(axis, last + 1)
    if start < 0:
        shapes = f"{_owner(name)} of shape {data} and `{name}` {target}"
        raise AxisError(f"`axis` expected -1, or 0 to {last}, for {shapes}, got {show(axis)}")
    end = len(data)
    while end and data[end - 1] == 1:
        end -= 1
    if start + end > rank:
        most = f"{rank - end} to align {_owner(name)} of shape {data} with `{name}` {target}"
        raise ValueError(f"`axis` expected at most {most}, got {axis}")
    return align_from(data, end, target, start, name, "axis")


@cython.boundscheck(False)      # the ranks are compared first
@cython.wraparound(False)
cdef Alignment align_from(tuple data, Py_ssize_t end, tuple target, Py_ssize_t start, str name, str hints):
    """Align data's first `end` axes with the target from axis `start` on; data's other axes have length 1."""
    cdef tuple source
    cdef Py_ssize_t i, length, wanted
    check_rank(name, target)  # arrays have few enough axes, and users' shapes were checked before
    for i in range(end):
        length, wanted = data[i], target[start + i]
        if length != 1 and length != wanted:
            refuse_length(data, i, target, start + i, name, remedy_of(data[:end], target, name, hints))
    source = ONES[start] + (data if end == len(data) else data[:end])
    if start + end < len(target):
        source += ONES[len(target) - start - end]
    return aligned(target, source)


cpdef Alignment aligned(tuple shape, tuple source):
    """Make an alignment without the checks of `__init__`, and their cost."""
    cdef Alignment alignment = Alignment.__new__(Alignment)
    alignment.shape = shape
    alignment.source = source
    return alignment


@cython.boundscheck(False)      # no axis is beyond the longest shape
@cython.wraparound(False)
cpdef tuple merge(shapes, str name):
    """Merge any number of shapes by the two-way rule: right-aligned, each length equal or 1; 1 beside 0 gives 0."""
    cdef Py_ssize_t rank = 0, axis, length, before
    cdef tuple shape, result
    cdef list merged

    for shape in shapes:
        rank = max(rank, len(shape))
    merged = [1] * rank
    for shape in shapes:
        axis = rank - len(shape)
        for length in shape:
            before = merged[axis]
            if before == 1:
                merged[axis] = length
            elif length != 1 and length != before:
                expected = "lengths that are equal or 1 at each axis, counted from the right"
                got = f"{' and '.join(map(str, shapes))}: {length} meets {before} at axis {axis - rank}"
                raise ValueError(f"`{name}` expected {expected}, got {got}{_meant(shapes, name)}")
            axis += 1
    result = tuple(merged)
    if not is_countable(result):
        refuse_size(name, result)
    return result


cdef Py_ssize_t index_of(axis, Py_ssize_t end):
    """Return an axis as a C integer; a negative number unless ``0 <= axis < end``."""
    cdef Py_ssize_t index
    try:
        index = axis
    except OverflowError:
        return -1
    return index if index < end else -1


cdef inline int expect_rank(tuple data, tuple target, str name, str hints) except -1:
    """Refuse a target with fewer axes than the data has."""
    if len(data) > len(target):
        expected = f"at least {counted(len(data), 'axis', 'axes')} for {_owner(name)} of shape {data}"
        raise ValueError(f"`{name}` expected {expected}, got {show(target)}{remedy_of(data, target, name, hints)}")
    return 0


cdef refuse_length(tuple data, Py_ssize_t i, tuple target, Py_ssize_t axis, str name, str remedy):
    """Refuse data whose axis i has neither the length of the target's `axis` nor length 1."""
    owner = _owner(name)
    raise ValueError(
        f"`{name}` expected a shape that {owner} of shape {data} fits, got {target}: "
        f"its axis {axis} is {target[axis]} where {owner}'s axis {i} is {data[i]}{remedy}"
    )


cdef str _meant(shapes, str name):
    """Suggest the meaning of operands that do not fit, if there is only one."""
    if name in ("a, b", "data, steps"):
        return _elsewhere(shapes[1], shapes[0], name, True)
    whole = max(shapes[1:], key=len)
    return "; use condition[..., np.newaxis]" if name.startswith("condition") and shapes[0] == whole[:-1] else ""


cdef str _owner(str name):
    """Return the user's name for the array that must fit the shape of `name`."""
    return "b" if name in ("a", "a, b") else "an operand" if name in ("data", "data, steps") else "data"


cdef str remedy_of(tuple data, tuple target, str name, str hints):
    """Suggest arguments to pass instead, if there is only one way; a rule's `hints` select the searches.

    'mapping' means other axes by an explicit mapping, 'right' also operands that were swapped, and 'axis' another axis
    in mode 'pdpd'. With '' there is no hint.
    """
    remedy = _elsewhere(data, target, name, hints == "axis") if hints and name != "where" else ""
    return remedy or (_swapped(data, target, name) if hints == "right" else "")


cdef str _elsewhere(tuple data, tuple target, str name, bint by_axis):
    """Suggest the only place at which the data fits, if there is one; with `by_axis`, suggest mode 'pdpd'."""
    axes = _embedding(data, target)
    if not axes:
        return ""
    text = ""
    for axis, last in zip(axes, reversed(_embedding(data[::-1], target[::-1])), strict=True):
        if axis != len(target) - 1 - last:
            return ""
        text += f" and {axis}" if text else f"{axis}"
    how = f"mode='explicit', axes_mapping={axes}"
    if by_axis or name in ("a", "data"):  # `elementwise` and `chain` have no explicit mode
        if axes[-1] - axes[0] >= len(axes):
            return ""
        how = f"axis={axes[0]}" if by_axis else f"mode='pdpd', axis={axes[0]}"
    what = "axes fit the output's axes" if len(axes) > 1 else "axis fits the output's axis"
    return f"; {_owner(name)}'s {what} {text}: {how}"


cdef str _swapped(tuple data, tuple target, str name):
    """Suggest swapped arguments if the target is an array that stretches to the data's shape."""
    if "shape" in name or len(target) > len(data):
        return ""
    for length, wanted in zip(target[::-1], data[::-1], strict=False):
        if length != 1 and length != wanted:
            return ""
    return "; they fit the other way round"


cdef list _embedding(tuple data, tuple target):
    """Return the first increasing axes of `target` that have data's lengths; none if there are none."""
    cdef list axes = []
    for i in range(len(target)):
        if len(axes) < len(data) and target[i] == data[len(axes)]:
            axes.append(i)
    return axes if len(axes) == len(data) else []


cpdef expect_default_axis(axis, str mode):
    """Refuse an axis outside pdpd mode."""
    if integer("axis", axis) != -1:
        got = f"{show(axis)}; use mode='pdpd' with it"
        raise ValueError(f"`axis` expected -1 in mode {mode!r}, where it has no meaning, got {got}")


# The modes, each with a rule from shapes and axes to an `Alignment`.

@cython.final
@cython.auto_pickle(False)
cdef class Role:
    """The user's argument for the target of a mode."""

    def __cinit__(self, str name not None, bint all_if_empty, bint two_way):
        self.name = name
        self.all_if_empty = all_if_empty
        self.two_way = two_way


cdef Role TARGET_SHAPE = Role("target_shape", False, True)
SHAPE = Role("shape", False, True)              # the command line's
LIKE = Role("like", True, True)
GRAD = Role("grad", False, False)
GRAD_OF_SCALAR = Role("grad", True, False)      # all of its axes were added

# A rule gets all of the user's arguments unchecked, and reads those in its row's examples; both shapes are valid.
ctypedef Alignment (*Rule)(tuple data, tuple target, mapping, axis, axes, Role role)

Form = namedtuple("Form", "rule data target arguments")     # an example: shapes, and the arguments that the mode reads


@cython.final
@cython.auto_pickle(False)
cdef class Mode:
    """A row of the table."""

    cdef readonly str name
    cdef readonly tuple forms       # an example for each way to call the mode; arguments in no example are refused
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


cdef Alignment _numpy(tuple data, tuple target, mapping, axis, axes, Role role):
    return right_aligned(data, target, role.name)


cdef Alignment _explicit(tuple data, tuple target, mapping, axis, axes, Role role):
    if axes is None:
        return _mapped(data, target, mapping, role.name)
    if mapping is not None:
        raise ValueError(f"`axes_mapping` expected None if `broadcast_axes` is given, got {show(mapping)}")
    return _added(data, target, axes, role)


cdef Alignment _bidirectional(tuple data, tuple target, mapping, axis, axes, Role role):
    return right_aligned(data, merge((data, target), role.name) if role.two_way else target, role.name)


cdef Alignment _pdpd(tuple data, tuple target, mapping, axis, axes, Role role):
    return pdpd(data, target, integer("axis", axis), role.name)


cdef Alignment _none(tuple data, tuple target, mapping, axis, axes, Role role):
    if data != target:
        raise ValueError(f"`{role.name}` expected data's own shape {data} in mode 'none', got {show(target)}")
    return aligned(target, target)


cdef tuple ROWS = (
    row("numpy", _numpy, (Form("aligned on the right; lengths of 1 stretch", (16, 1, 1), (1, 16, 50, 50), {}),)),
    row("explicit", _explicit, (
        Form("axis i of the data feeds output axis axes_mapping[i]", (16,), (1, 16, 50, 50), {"axes_mapping": [1]}),
        Form(
            "the data lacks the axes broadcast_axes; nothing stretches", (480, 640), (480, 640, 3),
            {"broadcast_axes": [2]},
        ),
    )),
    row("bidirectional", _bidirectional, (
        Form("aligned on the right; the target's lengths of 1 stretch too", (4, 1), (3, 1, 5), {}),
    )),
    row("pdpd", _pdpd, (
        Form("aligned from axis on, without the data's trailing 1s", (3, 4), (2, 3, 4, 5), {"axis": 1}),
    )),
    row("none", _none, (Form("nothing is broadcast: equal shapes only", (2, 3), (2, 3), {}),)),
)
MODES = ROWS
cdef tuple NAMES = tuple(map(attrgetter("name"), ROWS))


cpdef Alignment align(tuple data, target_shape, axes_mapping=None, mode=None, axis=-1, broadcast_axes=None):
    """Find the alignment of data of one valid shape under `mode`; `bcast.broadcast` describes the other arguments."""
    target = shape_argument("target_shape", target_shape)
    return align_shapes(data, target, axes_mapping, mode, axis, broadcast_axes, TARGET_SHAPE)


# The user's arguments are passed one by one: each rule reads the ones that it uses.
cpdef Alignment align_shapes(tuple data, tuple target, axes_mapping, mode, axis, broadcast_axes, Role role):
    """Find the alignment of data of one valid shape to another, by the user's four arguments and the target's role."""
    cdef Mode found
    cdef bint has_axes = axes_mapping is not None or broadcast_axes is not None
    if mode is None:    # it follows from the other arguments
        if has_axes:
            mode = "explicit"
        elif type(axis) is int and axis == -1:
            return right_aligned(data, target, role.name)    # nothing else needs a check
        else:
            mode = rule_of(axis)
    found = _find(mode)
    if (type(axis) is not int or axis != -1) and not found.reads_axis:
        expect_default_axis(axis, found.name)
    if has_axes and not found.reads_axes:
        _refuse_axes(axes_mapping, broadcast_axes, found.name)
    return found.rule(data, target, axes_mapping, axis, broadcast_axes, role)


cdef _refuse_axes(axes_mapping, broadcast_axes, str mode):
    """Refuse axes outside explicit mode."""
    argument, given = "axes_mapping", axes_mapping
    if axes_mapping is None:
        argument, given = "broadcast_axes", broadcast_axes
    remedy = "" if mode == "none" else "; use mode='explicit'"
    raise ValueError(f"`{argument}` expected None in mode {mode!r}, got {show(given)}{remedy}")


cpdef str rule_of(axis):
    """Return the name of the mode that an axis implies if no mode is given."""
    return "numpy" if (axis if type(axis) is int else integer("axis", axis)) == -1 else "pdpd"


cdef Mode _find(mode):
    cdef Mode each
    for each in ROWS:
        if each.name is mode:   # literals are interned, so this nearly always finds it
            return each
    return ROWS[NAMES.index(mode_of(mode, NAMES, "mode"))]


cdef Alignment _mapped(tuple data, tuple target, axes_mapping, str name):
    """`axes_mapping[i]` is the output axis that data's axis i feeds: explicit mode of Broadcast-1 and -3."""
    cdef Py_ssize_t axis, i, length, wanted
    cdef list source = [1] * len(target)
    cdef tuple axes = None if axes_mapping is None else integers("axes_mapping", axes_mapping, False)

    if axes is None or (len(axes) != len(data) and (len(axes) != 1 or data)):
        _refuse_number_of_axes(data, target, axes_mapping, name)
    _check_axes("axes_mapping", axes, target)
    if axes and not data and target[axes[0]] != 1:
        # OpenVINO accepts one axis for a scalar if the output has length 1 there, and has a test for it.
        raise ValueError(f"`axes_mapping` expected no axis for a scalar, or one of length 1 in {target}, got {axes}")
    _expect_increasing(axes, axes_mapping)

    for i in range(len(data)):
        axis = axes[i]
        length, wanted = data[i], target[axis]
        if length != 1 and length != wanted:
            refuse_length(data, i, target, axis, name, remedy_of(data, target, name, "mapping"))
        source[axis] = data[i]
    return aligned(target, tuple(source))


cdef _refuse_number_of_axes(tuple data, tuple target, axes_mapping, str name):
    """Refuse a mapping that is missing, or whose number of axes is not the data's."""
    got = show(axes_mapping)
    if axes_mapping is None:
        got += " (nor is `broadcast_axes` given)"
        got += remedy_of(data, target, name, "mapping") if data else "; use axes_mapping=[]"
    expected = f"{counted(len(data), 'axis', 'axes')}, one for each axis of data of shape {data}"
    raise ValueError(f"`axes_mapping` expected {expected}, got {got}")


cdef int _expect_increasing(tuple axes, axes_mapping) except -1:
    """Refuse a mapping that would transpose the data."""
    cdef Py_ssize_t before = -1, axis
    for axis in axes:
        if axis <= before:
            expected = "strictly increasing axes (data is not transposed)"
            raise ValueError(f"`axes_mapping` expected {expected}, got {show(axes_mapping)}")
        before = axis
    return 0


cdef Alignment _added(tuple data, tuple target, broadcast_axes, Role role):
    """`broadcast_axes` is the set of output axes that the data lacks, and no axis stretches: nGraph's Broadcast."""
    cdef Py_ssize_t axis
    cdef list source = [], left = []
    cdef tuple axes = integers("broadcast_axes", broadcast_axes, True)

    _check_axes("broadcast_axes", axes, target)
    if role.all_if_empty and not axes:
        axes = tuple(range(len(target)))
    for axis in range(len(target)):
        if axis in axes:
            source.append(1)
        else:
            source.append(target[axis])
            left.append(target[axis])
    if tuple(left) != data:
        expected = f"axes of `{role.name}` {target} that leave data's shape {data}"
        got = f"{show(broadcast_axes)}, which leave {tuple(left)}"
        raise ValueError(f"`broadcast_axes` expected {expected}, got {got}")
    return aligned(target, tuple(source))


cdef int _check_axes(str name, tuple axes, tuple target) except -1:
    """Refuse axes that `target` does not have, negative ones among them."""
    for axis in axes:
        if index_of(axis, len(target)) < 0:
            remedy = f"; use {axis + len(target)}" if -len(target) <= axis < 0 else ""
            expected = f"axes of the output's shape {target}, counted from 0"
            raise AxisError(f"`{name}` expected {expected}, got {show(axis)}{remedy}")
    return 0
