"""Lengths that NumPy's `repeat` and `tile` compute modulo 2**64, and then write past the memory that they allocate.

In: the arguments of a call. Out: the error that our own function raises for it, or None. Calls whose counts are surely
small do not come here.
"""

import sys
from typing import Any

import numpy as np
from numpy import generic, ndarray
from numpy.typing import NDArray

from bcast._api.copies import repeat, tile

MAX_SIZE = sys.maxsize
SURELY_SMALL = 1 << 16  # counts below it, times a length that fits into memory, do not wrap around
CONVERTED = (int, float, str, bytes, generic, list, tuple, range)  # to counts, even with a loss


def refusal_of_repeat(a: Any, repeats: Any, axis: Any = None) -> Exception | None:
    """Return the error for a length that NumPy's `repeat` would compute modulo 2**64; None if it would compute none."""
    if _is_of_others(a) or _is_of_others(repeats):
        return None
    counts = _counts_as_numpy_reads_them(repeats)
    if counts is None or _are_small(counts):
        return None
    array = np.asarray(a)
    items = array.size if axis is None else np.atleast_1d(array).shape[axis]
    return _error_of(repeat, array, repeats, axis) if _wraps_around(items, counts) else None


def _wraps_around(items: int, counts: NDArray[Any]) -> bool:
    """Return whether NumPy's `repeat` computes the length of repeated items modulo 2**64."""
    if counts.size == 1:
        return not -MAX_SIZE - 1 <= items * int(counts.flat[0]) <= MAX_SIZE
    if counts.size != items or counts.min() < 0:  # NumPy refuses these
        return False
    return bool(counts.max() > MAX_SIZE // items) and sum(counts.tolist()) > MAX_SIZE


def read_for_tile(A: Any, reps: Any) -> tuple[Any, Any] | None:  # noqa: N803 (NumPy's name)
    """Return the arguments with `reps` as NumPy's `tile` reads them; None if every reading gives the same.

    An error during this reading also comes from NumPy's `tile`.
    """
    if type(reps) is int or type(reps) is tuple or type(reps) is list or isinstance(reps, (ndarray, generic)):
        return None
    if _is_of_others(A) or _is_of_others(reps):
        return None
    try:
        return A, tuple(reps)
    except TypeError:
        return A, (reps,)


def refusal_of_tile(A: Any, reps: Any) -> Exception | None:  # noqa: N803
    """Return the error for a length that NumPy's `tile` would compute modulo 2**64; None if it would compute none.

    NumPy repeats rows along one axis after the other, the outermost first.
    """
    if _is_of_others(A) or _is_of_others(reps):
        return None
    try:
        given = tuple(reps)
    except TypeError:
        given = (reps,)
    times = []
    for item in given:
        counts = _counts_as_numpy_reads_them(item)
        if counts is None or counts.size != 1:
            return None
        times.append(int(counts.flat[0]))
    if _are_small(np.array(times, np.intp)):
        return None
    array = np.asarray(A)
    rank = max(array.ndim, len(times))
    shape = (1,) * (rank - array.ndim) + array.shape
    rows, items = 1, array.size
    for length, count in zip(shape, [1] * (rank - len(times)) + times, strict=True):
        if items == 0:
            return None
        if not -MAX_SIZE - 1 <= rows * count <= MAX_SIZE:
            return _error_of(tile, array, reps)
        if not 0 < rows * count * items <= MAX_SIZE:  # NumPy refuses these, or has nothing to repeat
            return None
        rows, items = rows * count * length, items // length
    return None


def _counts_as_numpy_reads_them(counts: Any) -> NDArray[Any] | None:
    """Return counts as NumPy's integers for them; None if NumPy refuses them."""
    array = np.asarray(counts)
    is_object = array.dtype.kind == "O" and not isinstance(counts, ndarray)  # NumPy converts its items one by one
    if not is_object and not isinstance(counts, CONVERTED) and not np.can_cast(array.dtype, np.intp):
        return None
    if array.dtype.kind == "f" and not (abs(array) < 2.0**63).all():
        return None  # converted, it is a number to which no length wraps around
    array = np.asarray(counts, np.intp)
    return array if array.ndim < 2 and array.size > 0 else None


def _are_small(counts: NDArray[Any]) -> bool:
    """Return whether no length wraps around with these counts, if memory can hold it."""
    return counts.size == 0 or (counts.min() >= 0 and counts.max() < SURELY_SMALL)


def _is_of_others(array: Any) -> bool:
    """Return whether another library's function is called for an array."""
    return hasattr(array, "__array_function__") and not isinstance(array, ndarray)


def _error_of(function: Any, array: NDArray[Any], counts: Any, axis: Any = None) -> Exception | None:
    """Return the error that our function raises for counts."""
    try:
        function(array, counts, *(() if axis is None else (axis,)))
    except (TypeError, ValueError) as error:
        return error.with_traceback(None)
    return None
