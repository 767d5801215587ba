"""NumPy's `tile` and `repeat`: arrays and numbers of repetitions come in, arrays go out; and how such numbers are read.

Repeating each of n items k times broadcasts (n, 1) to (n, k). Tiling n items k times broadcasts (1, n) to (k, n). The
result then has one axis of n * k items, but that changes nothing in memory. Numbers of an item's own are run lengths.
"""

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bcast._api.converted import (
    as_array,
    convert_counted,
    converts,
    into_tensor,
    is_tensor,
    materialise,
    prepared,
    without_dropped,
)
from bcast._kernel import repeat_counted
from bcast._rules.alignment import Alignment, aligned
from bcast._rules.arguments import (
    UNFIT,
    Shape,
    all_plain,
    axes_argument,
    counts_argument,
    dtype_argument,
    place_of,
    plain_counts,
    shape_argument,
    show,
    total_of,
)
from bcast._rules.counts import Counts, counts_of_array, counts_of_tuple
from bcast._rules.types import Casting, CountsLike, DType, Out, SizesLike
from bcast._runtime.arrays import has_references, result_array, shape_of, size_of, type_of

MAX_SIZE = sys.maxsize


def tile(
    A: ArrayLike, reps: SizesLike, *, dtype: DType = None, casting: Casting = "same_kind", out: Out = None
) -> NDArray[Any]:
    """Repeat the whole of `A`, `reps` times along each axis: `numpy.tile` at the speed of memory.

    Parameters
    ----------
    A : array_like
        The array to tile, of any kind that `broadcast` takes.
    reps : int, or 1-D sequence or array of int
        The number of repetitions along each axis, 0 or more. `reps` and ``A.shape`` are aligned at the right.
    dtype, casting, out
        As in `broadcast`, and so are errors.

    Returns
    -------
    ndarray
        As `broadcast` returns it.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast
    >>> bcast.tile([0, 1, 2], 2)
    array([0, 1, 2, 0, 1, 2])
    >>> bcast.tile(np.array([[1, 2], [3, 4]]), (1, 2))
    array([[1, 2, 1, 2],
           [3, 4, 3, 4]])
    """
    array = as_array("A", A)
    shape = shape_of(array)
    counts = counts_argument("reps", reps, False)
    if len(shape) < len(counts):
        shape = shape_argument("reps", (1,) * (len(counts) - len(shape)) + shape)
    if are_ones(counts):
        return materialise(array, aligned(shape, shape), shape, out, "reps", dtype, casting)
    if len(counts) < len(shape):
        counts = (1,) * (len(shape) - len(counts)) + counts
    return _materialise(array, shape, counts, True, "reps", out, dtype, casting)


def repeat(
    a: ArrayLike,
    repeats: CountsLike,
    axis: SizesLike | None = None,
    *,
    dtype: DType = None,
    casting: Casting = "same_kind",
    out: Out = None,
) -> NDArray[Any]:
    """Repeat each item of `a`, along one axis or several at once: `numpy.repeat` at the speed of memory.

    Parameters
    ----------
    a : array_like
        The array whose items are repeated, of any kind that `broadcast` takes.
    repeats : int, 1-D sequence or array of int, or sequence of those
        The number of repetitions, 0 or more; or one number for each item along the axis. With several axes, a sequence
        with one of the two for each of them, or one number for all. Whole floats are accepted.
    axis : int, or 1-D sequence of int, optional
        The axis; or the axes, which NumPy does not offer. Negative axes count from the end. By default, `a` is
        flattened first.
    dtype, casting, out
        As in `broadcast`, and so are errors.

    Returns
    -------
    ndarray
        As `broadcast` returns it. Its shape is that of `a`, except along the axes that were repeated.

    See Also
    --------
    tile : Repeat the whole rather than each item.
    unrepeat : The adjoint, which sums the repetitions of each item.

    Notes
    -----
    `numpy.repeat` truncates floats in `repeats`, unless they are in an array, and converts strings. Here, 2.0 counts as
    2 wherever it appears, while 2.7, NaN, infinity and strings are refused. Arrays of uint64, which NumPy refuses, are
    accepted. If another thread changes an array of counts during the call, the result may have wrong items, but it has
    the length that the counts had when they were summed.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast
    >>> bcast.repeat([1, 2, 3], 2)
    array([1, 1, 2, 2, 3, 3])
    >>> image = np.array([[1, 2], [3, 4]])
    >>> bcast.repeat(image, 3, axis=1)
    array([[1, 1, 1, 2, 2, 2],
           [3, 3, 3, 4, 4, 4]])

    Double the size of an image, in one pass; or make its first row and its last column wider:

    >>> bcast.repeat(image, (2, 2), axis=(0, 1)).tolist()
    [[1, 1, 2, 2], [1, 1, 2, 2], [3, 3, 4, 4], [3, 3, 4, 4]]
    >>> bcast.repeat(image, ([2, 1], [1, 3]), axis=(0, 1)).tolist()
    [[1, 2, 2, 2], [1, 2, 2, 2], [3, 4, 4, 4]]

    Decode runs: each value is repeated by a count of its own.

    >>> values, lengths = np.array([7.5, 0.0, 2.5]), np.array([2, 3, 1])
    >>> bcast.repeat(values, lengths)
    array([7.5, 7.5, 0. , 0. , 0. , 2.5])

    Find the row of each entry of a sparse matrix from CSR's row pointers:

    >>> pointers = np.array([0, 2, 2, 5])
    >>> bcast.repeat(np.arange(3), np.diff(pointers))
    array([0, 0, 2, 2, 2])
    """
    if out is not None and is_tensor(out):
        return into_tensor(repeat, out, a, repeats, axis, dtype=dtype, casting=casting)
    if dtype is not None:
        dtype = dtype_argument(dtype)  # which may run code of the user's: before counts are read
    array = as_array("a", a)
    shape = shape_of(array)
    along: Any = axes_argument(axis)
    if not shape and along is not None and along != ():
        shape = (1,)  # as in NumPy, a scalar has an axis here
        array = array.reshape(shape)
    if type(along) is tuple:
        return _repeat_axes(array, shape, counts_along(repeats, along, shape, True), out, dtype, casting)
    at = -1 if along is None else place_of(along, shape)
    times: Any = repeats
    if type(times) is not int or times < 0:
        times = repeats_argument(times, size_of(array) if at < 0 else shape[at], along)
        if type(times) is not int:
            return _decode(array, times, at, out, dtype, casting)
    if at >= 0:
        counts = (1,) * at + (times,) + (1,) * (len(shape) - at - 1)
        return _materialise(array, shape, counts, False, "repeats", out, dtype, casting)
    whole = shape_argument("repeats", (size_of(array) * times,))
    alignment = split(shape + (1,), (1,) * len(shape) + (times,), False)
    return materialise(array, alignment, whole, out, "repeats", dtype, casting)


def _materialise(
    array: NDArray[Any], shape: Shape, counts: Shape, tiled: bool, name: str, out: Any, dtype: Any, casting: Casting
) -> NDArray[Any]:
    """Repeat the items of an array by one count along each axis of `shape`, or if `tiled`, the whole of it."""
    lengths: list[int] = []
    for i in range(len(shape)):
        lengths.append(shape[i] * counts[i])
    whole = shape_argument(name, tuple(lengths))
    return materialise(array, split(shape, counts, tiled), whole, out, name, dtype, casting)


def _decode(array: NDArray[Any], counts: Counts, axis: int, out: Any, dtype: Any, casting: Casting) -> NDArray[Any]:
    """Repeat each item along an axis, or of the flattened array if it is -1, by its run length."""
    whole: Shape = (counts.total,)
    if axis >= 0:
        shape = shape_of(array)
        whole = shape[:axis] + whole + shape[axis + 1 :]
    wanted = None
    if converts(array, out, dtype, casting):
        if has_references(array) or type_of(array) in (18, 19):  # values decide what may fail
            array, counts = without_dropped(array, counts, axis)
        array, wanted = prepared(array, whole, out, dtype, casting)
    if not (has_references(array) or (wanted is not None and wanted.hasobject)):
        result = result_array(out, array, whole, "repeats", wanted)
        if wanted is None:
            return repeat_counted(array, counts, axis, result)
        return convert_counted(array, counts, axis, result, wanted)
    if out is not None:
        result_array(out, array, whole, "repeats", wanted)  # what is refused is refused before the work
    if wanted is not None:
        array = array.astype(wanted)
    # NumPy before 2.2 repeats a StringDType as bytes, and then frees them twice.
    array = array.take(np.arange(counts.size).repeat(counts.to_array()), axis if axis >= 0 else None)
    if out is None:
        return array
    return materialise(array, aligned(array.shape, array.shape), whole, out, "repeats", None, "same_kind")


def _repeat_axes(
    array: NDArray[Any], shape: Shape, counts: list[Any], out: Any, dtype: Any, casting: Casting
) -> NDArray[Any]:
    """Repeat along each axis by an integer or by run lengths: axes of integers at once, the others one by one."""
    times = tuple(counts)
    if all_plain(times):
        return _materialise(array, shape, times, False, "repeats", out, dtype, casting)
    steps = order(counts)
    times = integers_of(counts)
    lengths: list[int] = []
    for at in range(len(counts)):
        lengths.append(shape[at] * counts[at] if type(counts[at]) is int else counts[at].total)
    whole = shape_argument("repeats", tuple(lengths))
    wanted = None
    if converts(array, out, dtype, casting):
        for at in range(len(counts)):
            if type(counts[at]) is not int and 0 not in whole:
                array, counts[at] = without_dropped(array, counts[at], at)
        array, wanted = prepared(array, whole, out, dtype, casting)
        casting = "unsafe"
    if out is not None:
        result_array(out, array, whole, "repeats", wanted)  # what is refused is refused before the work
    for i in range(len(steps)):
        at, dst = -steps[i][1], out if i == len(steps) - 1 else None
        if at >= 0:
            array = _decode(array, counts[at], at, dst, wanted, casting)
        else:
            array = _materialise(array, shape_of(array), times, False, "repeats", dst, wanted, casting)
    return array


def split(shape: Shape, counts: Shape, tiled: bool) -> Alignment:
    """Align data of `shape` with an output in which each axis is split in two; if `tiled`, the data's part is inside.

    Axes of length 1 are left out, so that no more axes remain than an array may have.
    """
    lengths, source = [], []
    for i in range(len(shape)):
        if tiled and counts[i] != 1:
            lengths.append(counts[i])
            source.append(1)
        if shape[i] != 1:
            lengths.append(shape[i])
            source.append(shape[i])
        if not tiled and counts[i] != 1:
            lengths.append(counts[i])
            source.append(1)
    return aligned(tuple(lengths), tuple(source))


def are_ones(counts: Shape) -> bool:
    """Return whether all counts are 1, so that nothing is repeated."""
    for count in counts:  # noqa: SIM110 (compiled, the loop takes a third of the generator's time)
        if count != 1:
            return False
    return True


def order(counts: list[Any]) -> list[tuple[float, int]]:
    """Return the steps of a repetition: by how much the array grows, and minus the axis; 1 for all axes of integers.

    What makes least of the array comes first, so that the arrays between are small. The adjoint takes them in reverse.
    """
    growth = 1.0
    steps: list[Any] = []
    for at in range(len(counts)):
        if type(counts[at]) is int:
            growth *= counts[at]
        else:
            steps.append((counts[at].total / max(counts[at].size, 1), -at))
    if growth != 1 or not steps:
        steps.append((growth, 1))
    steps.sort()
    return steps


def integers_of(counts: list[Any]) -> Shape:
    """Return the counts with 1 for run lengths, whose axes have steps of their own."""
    integers: list[int] = []
    for count in counts:
        integers.append(count if type(count) is int else 1)
    return tuple(integers)


def counts_along(repeats: Any, along: Any, shape: Shape, known: bool) -> list[Any]:
    """Check the user's counts and axes; return an integer or `Counts` for each axis of an array of `shape`.

    If the numbers of items are not `known` from it, the counts say them, and one in a sequence is that of one item.
    """
    if type(along) is tuple:
        return _counts_along_several(repeats, along, shape, known)
    if along is None and len(shape) != 1:
        raise ValueError(f"`grad` expected 1 axis, or `axis` to say along which it was repeated, got shape {shape}")
    at = 0 if along is None else place_of(along, shape)
    counts: list[Any] = [1] * len(shape)
    counts[at] = repeats_argument(repeats, shape[at] if known else -1, along)
    return counts


def _counts_along_several(repeats: Any, axes: Shape, shape: Shape, known: bool) -> list[Any]:
    """Do the same for a tuple of axes: `repeats` is one integer for all, or has one entry for each of them."""
    items = tuple(repeats) if type(repeats) is tuple or type(repeats) is list else ()
    is_nested = not all_plain(items) and any(map(_is_sequence, items))
    given = items if is_nested else counts_argument("repeats", repeats, True)
    if len(given) == 1 and not is_nested:
        given *= len(axes)
    if len(given) != len(axes):
        got = show(repeats)
        raise ValueError(f"`repeats` expected one integer for each of the axes {show(axes)}, or one for all, got {got}")

    counts: list[Any] = [1] * len(shape)
    places: list[int] = []
    for i in range(len(axes)):
        at = place_of(axes[i], shape)
        if at in places:
            raise ValueError(f"`axis` expected each axis once, got {show(axes)}")
        places.append(at)
        counts[at] = repeats_argument(given[i], shape[at] if known else -1, axes[i]) if is_nested else given[i]
    return counts


def _is_sequence(repeats: Any) -> bool:
    """Return whether these are counts for one item each, and not one for all."""
    if isinstance(repeats, Iterable):
        return not isinstance(repeats, UNFIT) and getattr(repeats, "ndim", 1) != 0
    return hasattr(repeats, "__array__") and np.ndim(repeats) != 0


def repeats_argument(repeats: Any, size: int, axis: int | None) -> Any:
    """Check the counts along one axis of `size` items, or of any number if that is -1; return one count, or `Counts`.

    The one count is at most `MAX_SIZE`.
    """
    counts = counts_of_array(repeats)
    plain: Any = None
    if counts is None:
        plain = (repeats,) if type(repeats) is int else plain_counts(repeats)
    if counts is None and plain is None:
        array = _whole_numbers(as_array("repeats", repeats))
        counts = counts_of_array(array)
        if counts is None:
            plain = _counts_of_any(array, repeats)

    items = len(plain) if counts is None else counts.size
    total = total_of(plain) if counts is None else counts.total
    if total < 0:
        raise ValueError(f"`repeats` expected 0 or more times, got {show(repeats)}")
    if items == 1 and (size >= 0 or type(repeats) is int or not _is_sequence(repeats)):
        return total
    _expect_counts(repeats, items, total, size, axis)
    return counts_of_tuple(plain) if counts is None else counts


def _whole_numbers(array: Any) -> Any:
    """Return floats that are all integers of 64 bits as such; other arrays as they are."""
    if array.dtype.kind != "f":
        return array
    wide = array if array.itemsize > 8 else array.astype(np.float64)
    if not ((wide >= -(2.0**63)) & (wide < 2.0**63)).all():  # NaN fails this, too
        return array
    whole = wide.astype(np.int64)
    return whole if (whole == wide).all() else array


def _counts_of_any(array: Any, repeats: Any) -> Shape:
    """Return the counts of an array that the core does not read, or raise what there is to be raised of `repeats`."""
    if array.ndim > 1 or array.dtype.kind not in "biu":  # no integers, or of a dtype that is none of NumPy's
        return counts_argument("repeats", repeats, True)
    return tuple(array.ravel().tolist())


def _expect_counts(repeats: Any, items: int, total: int, size: int, axis: int | None) -> None:
    """Refuse counts that are not as many as the items of an axis, or whose sum is too long for an array."""
    if items != size and size >= 0:
        along = "in all" if axis is None else f"along axis {axis}"
        each = "the only item" if size == 1 else f"each of the {size} items"
        raise ValueError(f"`repeats` expected one integer, or one for {each} {along}, got {items}")
    if total >= MAX_SIZE:
        expected = f"an output of at most {MAX_SIZE} elements"
        if size < 0:
            expected = "integers that add up to the length of an axis"
        raise ValueError(f"`repeats` expected {expected}, got {show(repeats)}")
