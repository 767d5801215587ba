"""NumPy's `tile` and `repeat`, as broadcasts to an output whose axes are split in two.

Repeating each of n items k times broadcasts (n, 1) to (n, k). Tiling n items k times broadcasts (1, n) to (k, n). The
result then has one axis of n * k items, but that changes nothing in memory.
"""

import sys
from collections.abc import Iterable
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from bcast._api.broadcast import as_array, into_tensor, is_tensor, materialise
from bcast._api.converted import (
    convert_counted,
    convert_nothing,
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
from bcast._rules.types import Casting, CountsLike, ShapeLike
from bcast._runtime.arrays import has_references, keeps_dtype, result_array, shape_of, size_of, type_of

__all__ = ["are_ones", "counts_along", "repeat", "split", "tile"]

SAME_KIND: Casting = "same_kind"
MAX_SIZE = sys.maxsize
TOO_MANY = 2.0 ** (8 * np.dtype(np.intp).itemsize - 1)  # the smallest float above MAX_SIZE
STRINGS = np.dtypes.StringDType().num


def tile(
    A: ArrayLike,  # noqa: N803
    reps: ShapeLike | SupportsIndex,
    *,
    dtype: DTypeLike | None = None,
    casting: Casting = "same_kind",
    out: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """Repeat the whole of `A`, `reps` times along each axis: `numpy.tile` at the speed of memory.

    Parameters
    ----------
    A : array_like
        The array to tile. Masked arrays are refused, because their mask would be lost.
    reps : int, or 1-D sequence or array of int
        The number of repetitions along each axis, 0 or more. `reps` and ``A.shape`` are aligned at the right; the
        shorter of the two is prepended with 1s.
    dtype, casting, out
        As in `broadcast`.

    Returns
    -------
    ndarray
        A new C-contiguous, writeable array that owns its memory, of `A`'s dtype or of `dtype`; or `out`, if given.

    Raises
    ------
    ValueError
        If a number of repetitions is negative; if the output would be too large to address; if `out` has another shape
        or is read-only; if there is no such `casting`, or an item cannot be converted.
    TypeError
        If a number of repetitions is not an integer; if `A` is masked; if `casting` does not allow the conversion; if
        `out` is not an array or has another dtype than `dtype`.
    MemoryError
        If there is no memory for the output.

    See Also
    --------
    repeat : Repeat each item rather than the whole.
    broadcast : Replicate along new axes and axes of length 1.
    numpy.tile : NumPy's own function.

    Notes
    -----
    Arrays and tensors of other libraries are read and written as `broadcast` does, and NumPy arrays come back.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast
    >>> bcast.tile([0, 1, 2], 2)
    array([0, 1, 2, 0, 1, 2])
    >>> bcast.tile(np.array([[1, 2], [3, 4]]), (2, 2))
    array([[1, 2, 1, 2],
           [3, 4, 3, 4],
           [1, 2, 1, 2],
           [3, 4, 3, 4]])
    """
    if out is not None and is_tensor(out):
        return into_tensor(tile, out, A, reps, dtype=dtype, casting=casting)
    array = as_array("A", A)
    shape = shape_of(array)
    counts = counts_argument("reps", reps, False)
    if len(shape) < len(counts):
        shape = shape_argument("reps", (1,) * (len(counts) - len(shape)) + shape)
    if are_ones(counts):
        return materialise(array, aligned(shape, shape), shape, out, "reps", dtype, casting)
    if len(counts) < len(shape):
        counts = (1,) * (len(shape) - len(counts)) + counts
    whole = shape_argument("reps", _products(shape, counts))
    return materialise(array, split(shape, counts, True), whole, out, "reps", dtype, casting)


def repeat(
    a: ArrayLike,
    repeats: CountsLike,
    axis: ShapeLike | SupportsIndex | None = None,
    *,
    dtype: DTypeLike | None = None,
    casting: Casting = "same_kind",
    out: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """Repeat each item of `a`, along one axis or several at once: `numpy.repeat` at the speed of memory.

    Parameters
    ----------
    a : array_like
        The array whose items are repeated. Masked arrays are refused, because their mask would be lost.
    repeats : int, 1-D sequence or array of int, or sequence of those
        The number of repetitions, 0 or more; or one number for each item along the axis. With several axes, a sequence
        with one of the two for each of them, or one number for all. Whole floats are accepted.
    axis : int, or 1-D sequence of int, optional
        The axis; or the axes, which NumPy does not offer. Negative axes count from the end. By default, `a` is
        flattened first.
    dtype, casting, out
        As in `broadcast`.

    Returns
    -------
    ndarray
        A new C-contiguous, writeable array that owns its memory, of `a`'s dtype or of `dtype`; or `out`, if given. Its
        shape is that of `a`, except along the axes that were repeated.

    Raises
    ------
    ValueError
        If a number of repetitions is negative; if there are too few or too many of them; if an axis is named twice; if
        the output would be too large to address; if `out` has another shape or is read-only; if there is no such
        `casting`, or an item cannot be converted.
    numpy.exceptions.AxisError
        If `a` has no such axis. This error is both a `ValueError` and an `IndexError`.
    TypeError
        If `axis` is not integer; if `repeats` is neither integer nor made of whole floats; if `a` is masked; if
        `casting` does not allow the conversion; if `out` is not an array or has another dtype than `dtype`.
    MemoryError
        If there is not enough memory for the output.

    See Also
    --------
    tile : Repeat the whole rather than each item.
    broadcast : Replicate along new axes and axes of length 1.
    unrepeat : The adjoint, which sums the repetitions of each item.
    numpy.repeat : NumPy's own function.

    Notes
    -----
    `numpy.repeat` truncates floats in `repeats`, unless they are in an array, and converts strings. Here, 2.0 counts as
    2 wherever it appears, while 2.7, NaN, infinity and strings are refused. Arrays of uint64, which NumPy refuses, are
    accepted. If another thread changes an array of counts during the call, the result may have wrong items, but it has
    the length that the counts had when they were summed.

    Arrays and tensors of other libraries are read and written as `broadcast` does, and NumPy arrays come back.

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

    Double the size of an image, in one pass:

    >>> bcast.repeat(image, (2, 2), axis=(0, 1))
    array([[1, 1, 2, 2],
           [1, 1, 2, 2],
           [3, 3, 4, 4],
           [3, 3, 4, 4]])

    Decode runs: each value is repeated by a count of its own.

    >>> values, lengths = np.array([7.5, 0.0, 2.5]), np.array([2, 3, 1])
    >>> bcast.repeat(values, lengths)
    array([7.5, 7.5, 0. , 0. , 0. , 2.5])

    Find the row of each entry of a sparse matrix from CSR's row pointers:

    >>> pointers = np.array([0, 2, 2, 5])
    >>> bcast.repeat(np.arange(3), np.diff(pointers))
    array([0, 0, 2, 2, 2])

    Make the first row and the last column of an image wider:

    >>> bcast.repeat(image, ([2, 1], [1, 3]), axis=(0, 1))
    array([[1, 2, 2, 2],
           [1, 2, 2, 2],
           [3, 4, 4, 4]])
    """
    if out is not None and is_tensor(out):
        return into_tensor(repeat, out, a, repeats, axis, dtype=dtype, casting=casting)
    if dtype is not None:
        dtype = dtype_argument(dtype)  # which may run code of the user's: before counts are read
    array = as_array("a", a)
    times: Any = repeats
    size = size_of(array)
    if axis is None and type(times) is not int:
        times = repeats_argument(times, size, None)
        if type(times) is not int:
            return _repeat_counted(array, times, -1, out, dtype, casting)
    shape = shape_of(array)
    along: Any = axis if axis is None or type(axis) is int else axes_argument(axis)
    if not shape and along is not None and along != ():
        shape = (1,)  # as in NumPy, a scalar has an axis here
        array = array.reshape(shape)
    if type(along) is tuple:
        if are_nested(times):
            return _repeat_axes(array, nested_counts(times, along, shape, True), out, dtype, casting)
        return _repeat_alike(array, shape, counts_of_axes(times, along, shape), out, dtype, casting)
    at = -1 if along is None else place_of(along, shape)
    if type(times) is not int:
        times = repeats_argument(times, shape[at], along)
        if type(times) is not int:
            return _repeat_counted(array, times, at, out, dtype, casting)
    if times < 0:
        raise ValueError(f"`repeats` expected 0 or more times, got {show(times)}")
    if along is None:
        at = len(shape)
        shape += (1,)  # each item is repeated
    counts = (1,) * at + (times,) + (1,) * (len(shape) - at - 1)
    whole = (size * times,) if along is None else _products(shape, counts)
    whole = shape_argument("repeats", whole)
    return materialise(array, split(shape, counts, False), whole, out, "repeats", dtype, casting)


def _repeat_counted(
    array: NDArray[Any], counts: Counts, axis: int, out: NDArray[Any] | None, dtype: DTypeLike | None, casting: Casting
) -> NDArray[Any]:
    """Repeat each item along an axis, or of the flattened array if it is -1, by a count of its own."""
    whole: Shape = (counts.total,)
    if axis >= 0:
        shape = shape_of(array)
        whole = shape[:axis] + whole + shape[axis + 1 :]
    if dtype is not None or casting is not SAME_KIND or (out is not None and not keeps_dtype(array, out)):
        return _repeat_converted(array, counts, axis, whole, out, dtype, casting)
    if not has_references(array):
        result = result_array(out, array, whole, "repeats")
        return repeat_counted(array, counts, axis, result)
    along = axis if axis >= 0 else None
    if out is not None:
        result_array(out, array, whole, "repeats")  # what is refused is refused before the work
    if type_of(array) == STRINGS:  # NumPy before 2.2 repeats them as bytes, and then frees them twice
        array = array.take(np.arange(counts.size).repeat(counts.to_array()), along)
    else:
        array = array.repeat(counts.to_array(), along)
    if out is None:
        return array
    return materialise(array, aligned(array.shape, array.shape), whole, out, "repeats", None, SAME_KIND)


def _repeat_converted(
    array: NDArray[Any],
    counts: Counts,
    axis: int,
    whole: Shape,
    out: NDArray[Any] | None,
    dtype: DTypeLike | None,
    casting: Casting,
) -> NDArray[Any]:
    """Convert items, and repeat each by a count of its own."""
    if _decides_by_values(type_of(array)) and counts.has_zeros():
        array, counts = without_dropped(array, counts, axis)
    array, wanted = prepared(array, whole, out, dtype, casting)
    result = result_array(out, array, whole, "repeats", wanted)
    if size_of(result) == 0:
        return convert_nothing(array, result, wanted)
    if has_references(array) or wanted.hasobject:
        array = array.astype(wanted)
        return _repeat_counted(array, counts, axis, out, None, SAME_KIND)
    return convert_counted(array, counts, axis, result, wanted, out is None)


def _decides_by_values(number: int) -> bool:
    """Return whether a type is one of objects or strings, whose values decide about lengths, units and failures."""
    return 17 <= number <= 19 or number == STRINGS


def _repeat_axes(
    array: NDArray[Any], counts: list[Any], out: NDArray[Any] | None, dtype: DTypeLike | None, casting: Casting
) -> NDArray[Any]:
    """Repeat along each axis by an integer or by `Counts`: axes of integers at once, the others one after the other.

    What makes least of the array comes first, so that the arrays between are small.
    """
    lengths: list[int] = []
    for length in shape_of(array):
        lengths.append(length)
    alike = [1] * len(counts)
    growth = 1.0
    steps: list[Any] = []
    for at in range(len(counts)):
        if type(counts[at]) is int:
            alike[at] = counts[at]
            growth *= counts[at]
            lengths[at] *= counts[at]
        else:
            steps.append((counts[at].total / max(lengths[at], 1), -at))
            lengths[at] = counts[at].total
    whole = shape_argument("repeats", tuple(lengths))
    if dtype is not None or casting is not SAME_KIND or (out is not None and not keeps_dtype(array, out)):
        for at in range(len(counts)):
            if type(counts[at]) is not int and 0 not in whole and counts[at].has_zeros():
                array, counts[at] = without_dropped(array, counts[at], at)
        array, wanted = prepared(array, whole, out, dtype, casting)
    else:
        wanted = None
    if out is not None:
        result_array(out, array, whole, "repeats", wanted)  # what is refused is refused before the work
    if growth != 1 or not steps:
        steps.append((growth, 1))
    steps.sort()
    for i in range(len(steps)):
        at = -steps[i][1]
        to = out if i == len(steps) - 1 else None
        if at >= 0:
            array = _repeat_counted(array, counts[at], at, to, wanted, "unsafe" if wanted else SAME_KIND)
        else:
            array = _repeat_alike(array, shape_of(array), tuple(alike), to, wanted, "unsafe" if wanted else SAME_KIND)
    return array


def _repeat_alike(
    array: NDArray[Any],
    shape: Shape,
    counts: Shape,
    out: NDArray[Any] | None,
    dtype: DTypeLike | None,
    casting: Casting,
) -> NDArray[Any]:
    """Repeat all items along an axis by one count, for each axis of `shape`."""
    whole = shape_argument("repeats", _products(shape, counts))
    return materialise(array, split(shape, counts, False), whole, out, "repeats", dtype, casting)


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


def _products(shape: Shape, counts: Shape) -> Shape:
    """Return the lengths of the joined axes, which may be too long for any array."""
    lengths = []
    for i in range(len(shape)):
        lengths.append(shape[i] * counts[i])
    return tuple(lengths)


def counts_along(name: str, repeats: Any, axis: Any, shape: Shape, known: bool) -> list[Any]:
    """Check the user's counts and axes; return an integer or `Counts` for each axis of an array of `shape`.

    Parameters
    ----------
    name : str
        The user's name for the array, for messages.
    repeats, axis : object
        The user's arguments, unchecked.
    shape : tuple of int
    known : bool
        Whether `shape` says how many items there are; otherwise the counts do, and one in a sequence is that of one.
    """
    along: Any = axis if axis is None or type(axis) is int else axes_argument(axis)
    if type(along) is tuple:
        if are_nested(repeats):
            return nested_counts(repeats, along, shape, known)
        return list(counts_of_axes(repeats, along, shape))
    if along is None:
        if len(shape) != 1:
            raise ValueError(
                f"`{name}` expected 1 axis, or `axis` to say along which it was repeated, got shape {shape}"
            )
        along = 0
    at = place_of(along, shape)
    counts: list[Any] = [1] * len(shape)
    counts[at] = repeats_argument(repeats, shape[at] if known else -1, along)
    if type(counts[at]) is int and counts[at] < 0:
        raise ValueError(f"`repeats` expected 0 or more times, got {show(repeats)}")
    return counts


def counts_of_axes(repeats: Any, axes: Shape, shape: Shape) -> Shape:
    """Check the arguments of a repetition along several axes; return one count for each axis of `shape`."""
    given = counts_argument("repeats", repeats, True)
    if len(given) == 1:
        given *= len(axes)
    if len(given) != len(axes):
        raise ValueError(f"`repeats` expected one integer for each of the axes {axes}, or one for all, got {given}")
    counts: list[Any] = [None] * len(shape)
    for i in range(len(axes)):
        at = place_of(axes[i], shape)
        if counts[at] is not None:
            raise ValueError(f"`axis` expected each axis once, got {axes}")
        counts[at] = given[i]
    for at in range(len(counts)):
        if counts[at] is None:
            counts[at] = 1
    return tuple(counts)


def are_nested(repeats: Any) -> bool:
    """Return whether there is a sequence of counts for one of several axes."""
    if type(repeats) is tuple or type(repeats) is list:
        items = tuple(repeats)
        if not all_plain(items):
            for item in items:
                if _is_sequence(item):
                    return True
    return False


def _is_sequence(repeats: Any) -> bool:
    """Return whether these are counts for one item each, and not one for all."""
    return isinstance(repeats, Iterable) and not isinstance(repeats, UNFIT) and getattr(repeats, "ndim", 1) != 0


def nested_counts(repeats: Any, axes: Shape, shape: Shape, known: bool) -> list[Any]:
    """Check the arguments of a repetition along several axes, of which some have a count for each item.

    Return one count for each axis of `shape`, or `Counts`; if the lengths are `known`, as many as there are items.
    """
    if len(repeats) != len(axes):
        got = show(repeats)
        raise ValueError(f"`repeats` expected one integer for each of the axes {axes}, or one for all, got {got}")
    counts: list[Any] = [None] * len(shape)
    for i in range(len(axes)):
        at = place_of(axes[i], shape)
        if counts[at] is not None:
            raise ValueError(f"`axis` expected each axis once, got {axes}")
        count = repeats_argument(repeats[i], shape[at] if known else -1, axes[i])
        if type(count) is int and count < 0:
            raise ValueError(f"`repeats` expected 0 or more times, got {show(repeats)}")
        counts[at] = count
    for at in range(len(counts)):
        if counts[at] is None:
            counts[at] = 1
    return counts


def repeats_argument(repeats: Any, size: int, axis: int | None) -> Any:
    """Check the repetitions along one axis of `size` items: return one count, or `Counts` with one for each."""
    if type(repeats) is int:
        return int(min(repeats, MAX_SIZE))
    counts = counts_of_array(repeats)
    plain: Any = None
    if counts is None:
        plain = plain_counts(repeats)
        if plain is None:
            array = as_array("repeats", repeats)
            kind = array.dtype.kind
            if kind == "f":
                array = _whole(array)
                kind = array.dtype.kind
            if array.ndim > 1 or kind not in "biu":  # no integers, or of a dtype that NumPy does not know as such
                plain = counts_argument("repeats", repeats, True)
            else:
                counts = counts_of_array(array)
                if counts is None:
                    plain = tuple(array.ravel().tolist())
    items = len(plain) if counts is None else counts.size
    if items == 1 and (size >= 0 or not _is_sequence(repeats)):
        return int(min(plain[0], MAX_SIZE))
    if items != size and size >= 0:
        along = "in all" if axis is None else f"along axis {axis}"
        raise ValueError(f"`repeats` expected one integer, or one for each of the {size} items {along}, got {items}")
    total = total_of(plain) if counts is None else counts.total
    if total < 0:
        raise ValueError(f"`repeats` expected 0 or more times, got {show(repeats)}")
    if total >= MAX_SIZE and size < 0:
        raise ValueError(f"`repeats` expected integers that add up to the length of an axis, got {show(repeats)}")
    if total >= MAX_SIZE:
        raise ValueError(f"`repeats` expected an output of at most {MAX_SIZE} elements, got {show(repeats)}")
    return counts_of_tuple(plain) if counts is None else counts


def _whole(array: NDArray[Any]) -> NDArray[Any]:
    """Return floats as integers if all of them are whole and fit; else return them unchanged."""
    wide = array if array.itemsize > 8 else array.astype(np.float64)
    if not ((wide >= -TOO_MANY) & (wide < TOO_MANY)).all():  # NaN fails this too
        return array
    whole = wide.astype(np.intp)
    return whole if (whole == wide).all() else array
