"""From a mode, shapes and axes to an `Alignment`: which axis of the data feeds which axis of the output.

Every question about shapes and axes is settled here, on plain integers, and every error about them is raised here. Each
mode is one function of shapes; `align_shapes` checks the arguments and calls it.
"""

from collections.abc import Sequence
from typing import Any, NoReturn

import cython
from numpy.exceptions import AxisError

from bcast._rules.arguments import (
    Shape,
    check_rank,
    integer,
    integers,
    is_countable,
    mode_of,
    refuse_size,
    shape_argument,
    show,
)

__all__ = ["Alignment", "align", "align_shapes", "aligned", "expect_default_axis", "merge", "pdpd", "right_aligned"]

MODES = NUMPY, EXPLICIT, BIDIRECTIONAL, PDPD, NONE = ("numpy", "explicit", "bidirectional", "pdpd", "none")
ONES = tuple(map((1,).__mul__, range(65)))  # indexed by their number, so that none is made anew


@cython.final
@cython.auto_pickle(False)  # it would bypass the checks of `__init__`
@cython.freelist(8)
@cython.no_gc  # it holds only tuples of ints
@cython.cclass  # its attributes are declared in _rules/alignment.pxd, so that C code reads them
class Alignment:
    """The output's shape, and the shape from which the data stretches to it; immutable.

    Parameters
    ----------
    shape : tuple of int
        The shape of the output.
    source : tuple of int
        The data's shape at the output's rank: at each axis, either `shape`'s length or 1.

    Raises
    ------
    ValueError
        If no array can have `shape`, or `source` does not stretch to it.
    TypeError
        If one of them is not a 1-D sequence of integers.
    """

    def __init__(self, shape: Shape, source: Shape) -> None:
        self.shape = shape_argument("shape", shape)
        self.source = shape_argument("source", source)
        if len(self.source) != len(self.shape):
            raise ValueError(f"`source` expected {len(self.shape)} lengths, as many as {shape}, got {show(source)}")
        for length, stretched in zip(self.source, self.shape, strict=True):
            if length != 1 and length != stretched:
                raise ValueError(f"`source` expected at each axis the length of {shape} or 1, got {show(source)}")

    def __eq__(self, other: object, /) -> bool:
        return isinstance(other, Alignment) and self.shape == other.shape and self.source == other.source

    def __hash__(self) -> int:
        return hash((self.shape, self.source))

    def __repr__(self) -> str:
        return f"Alignment(shape={self.shape}, source={self.source})"


def align(
    data_shape: Shape,
    target_shape: Any,
    axes_mapping: Any = None,
    mode: Any = "numpy",
    axis: Any = -1,
    broadcast_axes: Any = None,
    name: str = "target_shape",
) -> Alignment:
    """Find the alignment of data of shape `data_shape` under `mode`.

    Parameters
    ----------
    data_shape : tuple of int
        A valid shape.
    target_shape, axes_mapping, mode, axis, broadcast_axes
        The user's arguments, unchecked; `bcast.broadcast` describes them.
    name : str
        The user's name for `target_shape`, for messages.

    Raises
    ------
    ValueError, TypeError, numpy.exceptions.AxisError
        As `bcast.broadcast`.
    """
    target = shape_argument(name, target_shape)
    return align_shapes(data_shape, target, axes_mapping, mode, axis, broadcast_axes, name, False, True)


def align_shapes(
    data: Shape,
    target: Shape,
    axes_mapping: Any,
    mode: Any,
    axis: Any,
    broadcast_axes: Any,
    name: str,
    all_if_empty: bool,
    two_way: bool,
) -> Alignment:
    """Find the alignment of data of one valid shape to another.

    Parameters
    ----------
    data, target : tuple of int
        Valid shapes.
    axes_mapping, mode, axis, broadcast_axes
        The user's arguments, unchecked.
    name : str
        The user's name for `target`, or for the array whose shape it is, for messages.
    all_if_empty : bool
        Whether empty `broadcast_axes` mean all axes, as in nGraph's BroadcastLike.
    two_way : bool
        Whether mode 'bidirectional' may stretch `target` too; it may not where `target` is the output's shape.

    Raises
    ------
    ValueError, TypeError, numpy.exceptions.AxisError
        As `bcast.broadcast`.
    """
    mode = mode_of(mode, MODES, "mode")
    if (type(axis) is not int or axis != -1) and mode is not PDPD:
        expect_default_axis(axis, mode)
    if (axes_mapping is not None or broadcast_axes is not None) and mode is not EXPLICIT:
        _refuse_axes(axes_mapping, broadcast_axes, mode)
    if mode is NUMPY:
        return right_aligned(data, target, name)
    if mode is EXPLICIT:
        if broadcast_axes is None:
            return _explicit(data, target, axes_mapping, name)
        return _added_axes(data, target, axes_mapping, broadcast_axes, name, all_if_empty)
    if mode is BIDIRECTIONAL:
        return right_aligned(data, merge((data, target), name) if two_way else target, name)
    if mode is PDPD:
        return pdpd(data, target, integer("axis", axis), name)
    return _none(data, target, name)


def right_aligned(data: Shape, target: Shape, name: str) -> Alignment:
    """Align at the right and stretch only the data: NumPy's `broadcast_to`, Broadcast-1 and -3, ONNX unidirectional.

    Where both shapes stretch, `merge` comes first: Broadcast-3's bidirectional mode, ONNX Expand, `broadcast_arrays`.

    Parameters
    ----------
    data, target : tuple of int
        Valid shapes.
    name : str
        The user's name for `target`, for messages.

    Raises
    ------
    ValueError
        If the data does not fit.
    """
    _expect_rank(data, target, name)
    return _laid(data, len(data), target, len(target) - len(data), name, False)


def _explicit(data: Shape, target: Shape, axes_mapping: Any, name: str) -> Alignment:
    """`axes_mapping[i]` is the output axis that data's axis i feeds: explicit mode of Broadcast-1 and -3."""
    if axes_mapping is None:
        remedy = "" if data else "; give axes_mapping=[]"
        raise ValueError(
            f"`axes_mapping` expected {_one_for_each(data)}, got None (nor is `broadcast_axes` given){remedy}"
        )
    axes = integers("axes_mapping", axes_mapping, False)
    if len(axes) != len(data) and (len(axes) != 1 or data):
        raise ValueError(f"`axes_mapping` expected {_one_for_each(data)}, got {show(axes_mapping)}")
    _check_axes("axes_mapping", axes, target)
    if axes and not data and target[axes[0]] != 1:
        # OpenVINO accepts one axis for a scalar if the output has length 1 there, and has a test for it.
        raise ValueError(f"`axes_mapping` expected for a scalar no axis, or one of length 1 in {target}, got {axes}")
    before = -1
    for axis in axes:
        if axis <= before:
            raise ValueError(
                f"`axes_mapping` expected strictly increasing axes (data is not transposed), got {show(axes_mapping)}"
            )
        before = axis
    source = [1] * len(target)
    for i in range(len(data)):
        axis = axes[i]
        length, wanted = data[i], target[axis]
        if length != 1 and length != wanted:
            _refuse_length(data, i, target, axis, name, _remedy(data, target, name, False))
        source[axis] = data[i]
    return aligned(target, tuple(source))


def _added_axes(
    data: Shape, target: Shape, axes_mapping: Any, broadcast_axes: Any, name: str, all_if_empty: bool
) -> Alignment:
    """`broadcast_axes` is the set of output axes that the data lacks, and no axis stretches: nGraph's Broadcast."""
    if axes_mapping is not None:
        raise ValueError(f"`axes_mapping` expected None beside `broadcast_axes`, got {show(axes_mapping)}")
    axes = integers("broadcast_axes", broadcast_axes, True)
    _check_axes("broadcast_axes", axes, target)
    if all_if_empty and not axes:
        axes = tuple(range(len(target)))
    source: list[Any] = [None] * len(target)
    for axis in axes:
        source[axis] = 1
    left, fits = 0, True
    for axis in range(len(target)):
        if source[axis] is None:
            source[axis] = target[axis]
            fits = fits and left < len(data) and data[left] == target[axis]
            left += 1
    if not fits or left < len(data):
        lengths: list[int] = []
        for axis in range(len(target)):
            if axis not in axes:
                lengths.append(target[axis])
        raise ValueError(
            f"`broadcast_axes` expected axes of `{name}` {target} that leave data's shape {data}, "
            f"got {show(broadcast_axes)}, which leave {tuple(lengths)}"
        )
    return aligned(target, tuple(source))


def pdpd(data: Shape, target: Shape, axis: int, name: str) -> Alignment:
    """Align data, without its trailing 1s, with the target from `axis` on: PaddlePaddle's rule, by OpenVINO's pages."""
    rank = len(target)
    _expect_rank(data, target, name)
    last = rank - 1 if data else rank
    start = rank - len(data) if axis == -1 else _index(axis, last + 1)
    if start < 0:
        raise AxisError(
            f"`axis` expected -1, or 0 to {last}, for {_owner(name)} of shape {data} and `{name}` {target}, "
            f"got {show(axis)}"
        )
    end = len(data)
    while end and data[end - 1] == 1:
        end -= 1
    if start + end > rank:
        raise ValueError(
            f"`axis` expected at most {rank - end} to lay {_owner(name)} of shape {data} onto `{name}` {target}, "
            f"got {axis}"
        )
    return _laid(data, end, target, start, name, True)


def _none(data: Shape, target: Shape, name: str) -> Alignment:
    """Nothing is broadcast: the shapes must be identical."""
    if data != target:
        raise ValueError(f"`{name}` expected data's own shape {data} in mode 'none', got {show(target)}")
    return aligned(target, target)


@cython.boundscheck(False)  # the ranks are compared first
@cython.wraparound(False)
def _laid(data: Shape, end: int, target: Shape, start: int, name: str, by_axis: bool) -> Alignment:
    """Align data's first `end` axes with the target from axis `start` on; data's other axes have length 1."""
    check_rank(name, target)  # no array has too many axes, and shapes that users pass were checked before
    if start < 0 or start + end > len(target) or end > len(data):
        raise IndexError("`start`, `end` expected axes of both shapes")  # a rule has forgotten `_expect_rank`
    for i in range(end):
        length, wanted = data[i], target[start + i]
        if length != 1 and length != wanted:
            _refuse_length(data, i, target, start + i, name, _remedy(data[:end], target, name, by_axis))
    source = ONES[start] + (data if end == len(data) else data[:end])
    if start + end < len(target):
        source += ONES[len(target) - start - end]
    return aligned(target, source)


def aligned(shape: Shape, source: Shape) -> Alignment:
    """Make an alignment without the checks of `__init__`, and their cost."""
    alignment = Alignment.__new__(Alignment)
    alignment.shape = shape
    alignment.source = source
    return alignment


@cython.boundscheck(False)  # no axis lies beyond the longest shape
@cython.wraparound(False)
def merge(shapes: Sequence[Shape], name: str) -> Shape:
    """Merge shapes by the two-way rule: right-aligned, each length equal or 1; 1 beside 0 gives 0.

    Parameters
    ----------
    shapes : sequence of tuple of int
        Any number of valid shapes; without any, the result is ``()``.
    name : str
        The user's name for them, for the message.

    Raises
    ------
    ValueError
        If two lengths at one axis differ and neither is 1, or if no array can have the result.
    """
    rank = 0
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
                raise ValueError(
                    f"`{name}` expected lengths that are equal or 1 at each axis, counted from the right, got "
                    f"{' and '.join(map(str, shapes))}: "
                    f"{length} meets {before} at axis {axis - rank}"
                )
            axis += 1
    result = tuple(merged)
    if not is_countable(result):
        refuse_size(name, result)
    return result


def _check_axes(name: str, axes: Shape, target: Shape) -> None:
    """Refuse axes that `target` does not have, negative ones among them."""
    for axis in axes:
        if _index(axis, len(target)) < 0:
            remedy = f"; give {axis + len(target)}" if -len(target) <= axis < 0 else ""
            expected = f"axes of the output's shape {target}, counted from 0"
            raise AxisError(f"`{name}` expected {expected}, got {show(axis)}{remedy}")


def _index(axis: int, end: int) -> int:
    """Return an axis as a C integer; a negative number unless ``0 <= axis < end``."""
    try:
        index = axis
    except OverflowError:
        return -1
    return index if index < end else -1


def _expect_rank(data: Shape, target: Shape, name: str) -> None:
    """Refuse a target with fewer axes than the data has."""
    if len(data) > len(target):
        owner = _owner(name)
        expected = f"at least {len(data)} axes for {owner} of shape {data}"
        raise ValueError(f"`{name}` expected {expected}, got {show(target)}{_swapped(data, target, name)}")


def _refuse_length(data: Shape, i: int, target: Shape, axis: int, name: str, remedy: str) -> NoReturn:
    """Refuse data whose axis i has neither the length of the target's `axis` nor length 1."""
    owner = _owner(name)
    remedy = remedy or _swapped(data, target, name)
    raise ValueError(
        f"`{name}` expected a shape that {owner} of shape {data} fits, got {target}: "
        f"its axis {axis} is {target[axis]} where {owner}'s axis {i} is {data[i]}{remedy}"
    )


def _owner(name: str) -> str:
    """Return what the user calls the array that is to fit the shape of `name`."""
    return "b" if name == "a" else "data"


def _remedy(data: Shape, target: Shape, name: str, by_axis: bool) -> str:
    """Say where else the data fits, if that is one place only; stay in mode 'pdpd' if it is placed `by_axis`."""
    axes = _embedding(data, target)
    if not axes:
        return ""
    text = ""
    for axis, last in zip(axes, reversed(_embedding(data[::-1], target[::-1])), strict=True):
        if axis != len(target) - 1 - last:
            return ""
        text += f" and {axis}" if text else f"{axis}"
    how = f"mode='explicit', axes_mapping={axes}"
    if by_axis or name == "a":  # `elementwise` has no explicit mode
        if axes[-1] - axes[0] >= len(axes):
            return ""
        how = f"axis={axes[0]}" if by_axis else f"mode='pdpd', axis={axes[0]}"
    what = "axes fit the output's axes" if len(axes) > 1 else "axis fits the output's axis"
    return f"; {_owner(name)}'s {what} {text}: {how}"


def _swapped(data: Shape, target: Shape, name: str) -> str:
    """Say so if the target is an array that stretches to the data's shape."""
    if "shape" in name or len(target) > len(data):
        return ""
    for length, wanted in zip(target[::-1], data[::-1], strict=False):
        if length != 1 and length != wanted:
            return ""
    return "; they fit the other way round"


def _embedding(data: Shape, target: Shape) -> list[int]:
    """Return the first increasing axes of `target` that have data's lengths; none if there are none."""
    axes: list[int] = []
    for i in range(len(target)):
        if len(axes) < len(data) and target[i] == data[len(axes)]:
            axes.append(i)
    return axes if len(axes) == len(data) else []


def _refuse_axes(axes_mapping: Any, broadcast_axes: Any, mode: str) -> NoReturn:
    """Refuse axes outside explicit mode."""
    name, axes = ("axes_mapping", axes_mapping) if axes_mapping is not None else ("broadcast_axes", broadcast_axes)
    remedy = "" if mode is NONE else "; give mode='explicit'"
    raise ValueError(f"`{name}` expected None in mode {mode!r}, got {show(axes)}{remedy}")


def expect_default_axis(axis: Any, mode: str) -> None:
    """Refuse an axis outside pdpd mode."""
    if integer("axis", axis) != -1:
        got = f"{show(axis)}; give mode='pdpd' with it"
        raise ValueError(f"`axis` expected -1 in mode {mode!r}, where it has no meaning, got {got}")


def _one_for_each(data: Shape) -> str:
    """Say how many axes are expected for data of this shape."""
    return f"{len(data)} axes, one for each axis of data of shape {data}"
