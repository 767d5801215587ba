"""Calls of NumPy's functions, of which ours take those that are sure to give the same result.

These are the calls for arrays of the base class whose dtype is plain, with arguments of the usual types. Each function
returns None for a call that is left to NumPy's. So is a call that raises: NumPy says it in its own words.
"""

import operator
from typing import Any

from numpy import signedinteger
from numpy.typing import NDArray

from bcast._api.numpy_names import broadcast_arrays, meshgrid
from bcast._api.tiling import are_ones, repeat, tile
from bcast._elementwise import choose
from bcast._rules.arguments import all_plain
from bcast._runtime.arrays import can_count, is_contiguous, is_plain, repeats_little, size_of

__all__ = ["take_broadcast_arrays", "take_meshgrid", "take_repeat", "take_tile", "take_where"]


def take_tile(A: Any, reps: Any) -> NDArray[Any] | None:  # noqa: N803
    kind = type(reps)
    if not is_plain(A) or not (kind is int or ((kind is tuple or kind is list) and all_plain(tuple(reps)))):
        return None
    if not is_contiguous(A) and (reps == 1 if kind is int else are_ones(tuple(reps))):
        # Nothing is repeated, and NumPy keeps the order of the axes in memory.
        return A.copy("K") if kind is int or len(reps) <= A.ndim else None
    return tile(A, reps)


def take_repeat(a: Any, repeats: Any, axis: Any = None) -> NDArray[Any] | None:
    kind = type(repeats)
    if kind is float or kind is bool or not is_plain(a) or not (axis is None or type(axis) is int):
        return None
    if kind is int:
        count = repeats  # as an integer of C: NumPy refuses larger ones for empty arrays, too
        return repeat(a, count, axis)
    if can_count(repeats):
        if repeats.ndim == 0:
            return repeat(a, repeats.item(), axis)
        return None if repeats_little(repeats) else repeat(a, repeats, axis)
    if (kind is tuple or kind is list) and all_plain(tuple(repeats)):
        return repeat(a, repeats, axis) if size_of(a) > 0 else None  # where nothing is repeated, NumPy checks them
    if isinstance(repeats, signedinteger):
        return repeat(a, operator.index(repeats), axis)
    return None


def take_meshgrid(
    *xi: Any, copy: Any = True, sparse: Any = False, indexing: Any = "xy"
) -> tuple[NDArray[Any], ...] | None:
    if copy is not True or not isinstance(sparse, bool) or not _are_plain(xi):
        return None
    return meshgrid(*xi, sparse=sparse, indexing=indexing)


def take_broadcast_arrays(*args: Any, subok: Any = False) -> tuple[NDArray[Any], ...] | None:  # noqa: ARG001
    return broadcast_arrays(*args) if _are_plain(args) else None


def take_where(condition: Any, x: Any, y: Any, /) -> NDArray[Any] | None:
    return choose(condition, x, y, None)


def _are_plain(arrays: tuple[Any, ...]) -> bool:
    for array in arrays:
        if not is_plain(array):
            return False
    return len(arrays) > 0
