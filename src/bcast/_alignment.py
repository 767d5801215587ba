"""Modes and axes -> `Alignment`: which axis of the data feeds which axis of the output.

Pure integers, no arrays: every question about shapes and axes is settled here, and every error about them is raised
here. Each mode is one function of shapes; `align` checks the arguments and picks it.
"""

import itertools
import operator
import sys
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, NoReturn

import cython
import numpy as np
from numpy.exceptions import AxisError
from numpy.ma import MaskedArray

__all__ = ["Alignment", "align", "merge", "shape_argument"]

Shape = tuple[int, ...]

NUMPY = "numpy"
MODES = (NUMPY, "explicit", "bidirectional", "pdpd", "none")
MAX_RANK = 64  # NumPy's own limit
MAX_SIZE = sys.maxsize
UNFIT = (str, bytes, bytearray, Mapping)  # iterable, and never meant as a sequence of integers


@cython.final
@cython.no_gc  # it holds tuples of ints alone
@cython.cclass  # its attributes are declared in _alignment.pxd, and read from C there
class Alignment:
    """The output's shape, and the shape that the data takes to be stretched to it; immutable.

    Parameters
    ----------
    shape : tuple of int
        The shape of the output.
    source : tuple of int
        The data's shape at the output's rank: at each axis either `shape`'s length, or 1.
    """

    def __init__(self, shape: Shape, source: Shape) -> None:
        self.shape = shape
        self.source = source

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
    all_if_empty: bool = False,
) -> Alignment:
    """Find the alignment of data of shape `data_shape` under `mode`.

    Parameters
    ----------
    data_shape : tuple of int
        A valid shape.
    target_shape, axes_mapping, mode, axis, broadcast_axes
        The user's arguments, unchecked; `bcast.broadcast` describes them.
    name : str
        What the user calls `target_shape`, for the messages.
    all_if_empty : bool
        Whether empty `broadcast_axes` stand for all axes, as in nGraph's BroadcastLike.

    Raises
    ------
    ValueError, TypeError, numpy.exceptions.AxisError
        As `bcast.broadcast`.
    """
    if axes_mapping is None and broadcast_axes is None and type(axis) is int and axis == -1 and mode is NUMPY:
        return _numpy(data_shape, shape_argument(name, target_shape), name)  # what most calls are
    if not isinstance(mode, str) or mode not in MODES:
        _refuse_mode(mode)
    target = shape_argument(name, target_shape)
    if mode != "pdpd" and (type(axis) is not int or axis != -1):
        _expect_default_axis(axis, mode)
    if mode != "explicit" and (axes_mapping is not None or broadcast_axes is not None):
        _refuse_axes(axes_mapping, broadcast_axes, mode)
    if mode == NUMPY:
        return _numpy(data_shape, target, name)
    if mode == "explicit":
        if broadcast_axes is None:
            return _explicit(data_shape, target, axes_mapping, name)
        return _added_axes(data_shape, target, axes_mapping, broadcast_axes, name, all_if_empty)
    if mode == "bidirectional":
        return _bidirectional(data_shape, target, name)
    if mode == "pdpd":
        return _pdpd(data_shape, target, _integer("axis", axis), name)
    return _none(data_shape, target, name)


@cython.cfunc
@cython.locals(length=cython.Py_ssize_t, axis=cython.Py_ssize_t, missing=cython.Py_ssize_t)
def _numpy(data: Shape, target: Shape, name: str) -> Alignment:
    """Right-aligned and one-directional: NumPy's `broadcast_to`, Broadcast-1 and -3, ONNX unidirectional."""
    missing = len(target) - len(data)
    if missing < 0:
        raise ValueError(f"`{name}` expected at least {len(data)} axes for data of shape {data}, got {_show(target)}")
    axis = missing
    for length in data:
        if length != 1 and length != target[axis]:
            _misfit(name, data, target, axis - missing, axis)
        axis += 1
    return Alignment(target, (1,) * missing + data)


@cython.cfunc
def _explicit(data: Shape, target: Shape, axes_mapping: Any, name: str) -> Alignment:
    """`axes_mapping[i]` is the output axis that data's axis i feeds: explicit mode of Broadcast-1 and -3."""
    expected = f"{len(data)} axes, one for each axis of data of shape {data}"
    if axes_mapping is None:
        raise ValueError(f"`axes_mapping` expected {expected}, got None (nor is `broadcast_axes` given)")
    axes = _integers("axes_mapping", axes_mapping)
    if len(axes) == 1 and not data:
        # OpenVINO takes one axis for a scalar if the output has length 1 there, and tests that it does.
        _check_axes("axes_mapping", axes, target)
        if target[axes[0]] != 1:
            raise ValueError(
                f"`axes_mapping` expected for a scalar no axis, or one of length 1 in {target}, got {axes}"
            )
        return Alignment(target, (1,) * len(target))
    if len(axes) != len(data):
        raise ValueError(f"`axes_mapping` expected {expected}, got {_show(axes_mapping)}")
    _check_axes("axes_mapping", axes, target)
    for before, after in itertools.pairwise(axes):
        if before >= after:
            raise ValueError(
                f"`axes_mapping` expected strictly increasing axes (data is not transposed), got {_show(axes_mapping)}"
            )
    source = [1] * len(target)
    for i, axis in enumerate(axes):
        if data[i] != 1 and data[i] != target[axis]:
            _misfit(name, data, target, i, axis)
        source[axis] = data[i]
    return Alignment(target, tuple(source))


@cython.cfunc
def _added_axes(
    data: Shape, target: Shape, axes_mapping: Any, broadcast_axes: Any, name: str, all_if_empty: bool
) -> Alignment:
    """`broadcast_axes` is the set of output axes that data lacks, and nothing stretches: nGraph's Broadcast."""
    if axes_mapping is not None:
        raise ValueError(f"`axes_mapping` expected None beside `broadcast_axes`, got {_show(axes_mapping)}")
    added = set(_integers("broadcast_axes", broadcast_axes, unordered=True))
    _check_axes("broadcast_axes", added, target)
    if all_if_empty and not added:
        added = set(range(len(target)))
    left = tuple([length for axis, length in enumerate(target) if axis not in added])
    if left != data:
        raise ValueError(
            f"`broadcast_axes` expected axes of `{name}` {target} that leave data's shape {data}, "
            f"got {_show(broadcast_axes)}, which leave {left}"
        )
    return Alignment(target, tuple([1 if axis in added else length for axis, length in enumerate(target)]))


@cython.cfunc
def _bidirectional(data: Shape, target: Shape, name: str) -> Alignment:
    """Right-aligned and two-way: bidirectional mode of Broadcast-3, ONNX Expand."""
    shape = merge((data, target), name)
    return Alignment(shape, (1,) * (len(shape) - len(data)) + data)


@cython.cfunc
def _pdpd(data: Shape, target: Shape, axis: int, name: str) -> Alignment:
    """Lay data, less its trailing 1s, onto the target from `axis` on: PaddlePaddle's rule, as OpenVINO has it."""
    rank = len(target)
    if len(data) > rank:
        raise ValueError(f"`{name}` expected at least {len(data)} axes for data of shape {data}, got {_show(target)}")
    if axis < -1 or axis > rank or (axis == rank and data):
        last = rank - 1 if data else rank
        raise AxisError(
            f"`axis` expected -1, or 0 to {last}, for data of shape {data} and `{name}` {target}, got {_show(axis)}"
        )
    start = rank - len(data) if axis == -1 else axis
    end = len(data)
    while end and data[end - 1] == 1:
        end -= 1
    if start + end > rank:
        raise ValueError(
            f"`axis` expected at most {rank - end} to lay data of shape {data} onto `{name}` {target}, got {axis}"
        )
    for i in range(end):
        if data[i] != 1 and data[i] != target[start + i]:
            _misfit(name, data, target, i, start + i)
    return Alignment(target, (1,) * start + data[:end] + (1,) * (rank - start - end))


@cython.cfunc
def _none(data: Shape, target: Shape, name: str) -> Alignment:
    """Nothing is broadcast: the shapes must be identical."""
    if data != target:
        raise ValueError(f"`{name}` expected data's own shape {data} in mode 'none', got {_show(target)}")
    return Alignment(target, target)


def merge(shapes: Sequence[Shape], name: str) -> Shape:
    """Merge shapes by the two-way rule: right-aligned, each length equal or 1; 1 beside 0 gives 0.

    Parameters
    ----------
    shapes : sequence of tuple of int
        Valid shapes, any number of them; none gives ``()``.
    name : str
        What the user calls them, for the message.

    Raises
    ------
    ValueError
        If two lengths at one axis differ and neither is 1, or the result is beyond any array.
    """
    merged: list[int] = []
    for shape in shapes:
        if len(shape) > len(merged):
            merged[:0] = [1] * (len(shape) - len(merged))
        axis = len(merged) - len(shape)
        for length in shape:
            if length != 1:
                if merged[axis] != 1 and merged[axis] != length:
                    raise ValueError(
                        f"`{name}` expected lengths that are equal or 1 at each axis, counted from the right, got "
                        f"{' and '.join([str(shape) for shape in shapes])}: "
                        f"{length} meets {merged[axis]} at axis {axis - len(merged)}"
                    )
                merged[axis] = length
            axis += 1
    result = tuple(merged)
    if not _is_countable(result):
        _refuse_size(name, result)
    return result


@cython.ccall
def shape_argument(name: str, value: Any) -> Shape:
    """Check the user's `value` for a shape, an array's or a list of integers, and return it as a tuple.

    Raises
    ------
    TypeError
        If it is no 1-D sequence of integers.
    ValueError
        If a length is negative, there are more than 64 axes, or more elements than an index can count.
    """
    shape = _integers(name, value)
    countable = _is_countable(shape)
    if not countable and min(shape) < 0:
        raise ValueError(f"`{name}` expected lengths of 0 or more, got {_show(value)}")
    if len(shape) > MAX_RANK:
        raise ValueError(f"`{name}` expected at most {MAX_RANK} axes, got {len(shape)}")
    if not countable:
        _refuse_size(name, shape)
    return shape


@cython.cfunc
@cython.returns(cython.bint)
@cython.locals(length=cython.Py_ssize_t, room=cython.Py_ssize_t)
def _is_countable(shape: Shape) -> bool:
    """Tell whether an index can count the elements; as in NumPy, lengths of 0 do not excuse the others."""
    room = MAX_SIZE
    try:
        for length in shape:
            if length < 0:
                return False
            if length:
                room //= length
    except OverflowError:  # where compiled, of a length
        return False
    return room > 0


@cython.cfunc
def _all_plain(items: Sequence[Any]) -> bool:
    """Tell whether all items are Python ints, as nearly always."""
    for item in items:  # noqa: SIM110 (compiled, the loop takes a third of the generator's time)
        if type(item) is not int:
            return False
    return True


@cython.cfunc
def _integers(name: str, value: Any, unordered: bool = False) -> Shape:
    """Check that `value` is a 1-D sequence of integers (a set too, where order says nothing); return Python ints."""
    if (type(value) is tuple or type(value) is list) and _all_plain(value):
        return tuple(value)
    if hasattr(value, "__array__"):  # the arrays of any library
        array = np.asarray(value)
        if array.ndim == 1 and array.dtype.kind in "iu" and not isinstance(value, MaskedArray):
            return tuple(array.tolist())
    elif isinstance(value, Iterable) and not isinstance(value, UNFIT if unordered else (*UNFIT, Set)):
        try:
            return tuple([_integer(name, item) for item in value])
        except (TypeError, NotImplementedError):  # the latter from a memoryview of several axes
            pass  # the message shows the whole of the value
    raise TypeError(f"`{name}` expected a 1-D sequence of integers, got {_show(value)}")


@cython.cfunc
def _integer(name: str, value: Any) -> int:
    """Check that `value` is an integer and no bool; return it as a Python int."""
    if type(value) is int:
        return value
    if hasattr(value, "__array__"):  # NumPy's scalars, and the arrays of any library
        array = np.asarray(value)
        if array.ndim == 0 and array.dtype.kind in "iu" and not isinstance(value, MaskedArray):
            return int(array)
    elif not isinstance(value, bool):
        try:
            return operator.index(value)
        except TypeError:
            pass  # one message for every kind
    raise TypeError(f"`{name}` expected an integer, got {_show(value)}")


@cython.cfunc
def _check_axes(name: str, axes: Iterable[int], target: Shape) -> None:
    """Refuse an axis that `target` does not have; a negative one counts as such."""
    for axis in axes:
        if axis < 0 or axis >= len(target):
            raise AxisError(f"`{name}` expected axes of the output's shape {target}, counted from 0, got {_show(axis)}")


def _refuse_size(name: str, shape: Shape) -> NoReturn:
    """Refuse a shape of more elements than an index can count."""
    raise ValueError(f"`{name}` expected an output of at most {MAX_SIZE} elements, got {_show(shape)}")


def _refuse_axes(axes_mapping: Any, broadcast_axes: Any, mode: str) -> NoReturn:
    """Refuse axes outside explicit mode."""
    name, axes = ("axes_mapping", axes_mapping) if axes_mapping is not None else ("broadcast_axes", broadcast_axes)
    raise ValueError(f"`{name}` expected None in mode {mode!r}, got {_show(axes)}")


def _expect_default_axis(axis: Any, mode: str) -> None:
    """Refuse an axis outside pdpd mode."""
    if _integer("axis", axis) != -1:
        raise ValueError(f"`axis` expected -1 in mode {mode!r}, where it has no meaning, got {_show(axis)}")


def _refuse_mode(mode: Any) -> NoReturn:
    """Refuse what is none of the modes."""
    kind = ValueError if isinstance(mode, str) else TypeError
    raise kind(f"`mode` expected one of {', '.join([repr(name) for name in MODES])}, got {mode!r}")


def _misfit(name: str, data: Shape, target: Shape, i: int, axis: int) -> NoReturn:
    """Refuse a target that data's axis `i` does not fit at `axis`."""
    raise ValueError(
        f"`{name}` expected a shape that data of shape {data} fits, got {target}: "
        f"its axis {axis} is {target[axis]} where data's axis {i} is {data[i]}"
    )


def _show(value: Any) -> str:
    """Show a value that may be of any kind and size, on one line."""
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # of an integer with more digits than Python writes
        text = f"a {type(value).__name__} too long to show"
    return text if len(text) <= 200 else f"{text[:200]}..."
