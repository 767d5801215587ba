"""Graphs of sums that hardly depend on the chunks: partial sums are wider than the result, which is rounded once.

Partial sums of narrow floats are float64; those of float64 are pairs of a sum and its rounding error. Partial sums of
integers wrap around as the result does, and those of dtypes that NumPy sums keep their dtype.
"""

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any, TypeAlias

import dask.array as da
import numpy as np
from dask.core import flatten
from numpy.typing import NDArray

from bcast._api.adjoints import (
    added_expansions,
    expanded,
    rounded_expansions,
    set_means_of_nothing,
    unbroadcast,
    unrepeat,
    wide_dtype,
)
from bcast._api.copies import broadcast
from bcast._api.elementwise import where
from bcast._dask.arrays import Array
from bcast._dask.chunks import cuts
from bcast._dask.copies import Output, gathered, mapped, without_empty
from bcast._dask.segments import Piece, Range, segments_of
from bcast._dask.tasks import block_of
from bcast._rules.alignment import Alignment
from bcast._runtime.arrays import reduced_shape, rounded_to
from bcast._runtime.errors import quietly

Terms: TypeAlias = tuple[NDArray[Any], ...]  # a sum as its terms: one array, or a rounded sum and its rounding error


def summed(grad: Array, alignment: Alignment, dtype: np.dtype[Any], split_every: Any) -> Array:
    """Sum along the alignment between the shapes of the data and `grad`; axes of length 1 remain."""
    axes = _summed_axes(alignment)
    if not axes:
        return segments_summed(grad, (1,) * grad.ndim, dtype)
    first, last = partial(partial_sum, wide=wide_dtype(dtype)), partial(rounded_sum, result=dtype)
    return _reduced(grad, (first, sum_of_sums, last), axes, dtype, split_every, "bcast-unbroadcast")


def summed_exactly(
    grad: Array, alignment: Alignment, dtype: np.dtype[Any], split_every: Any, divisor: int = 1
) -> Array:
    """Sum exactly along the alignment. Tasks pass on expansions, which the last task divides and rounds once."""
    axes = _summed_axes(alignment)
    if dtype.kind in "biu":
        return summed(grad, alignment, dtype, split_every)
    if not axes:
        return rounded_blocks(grad, dtype)

    steps = partial_expansion, sum_of_expansions, partial(rounded_expansion, how=(dtype, divisor))
    return _reduced(grad, steps, axes, dtype, split_every, f"bcast-sum-exactly-{divisor}")


def averaged_exactly(a: Array, alignment: Alignment, dtype: np.dtype[Any], split_every: Any) -> Array:
    """Average the items that are not NaN exactly, and round once. Tasks pass on expansions and the numbers of items."""
    steps = partial_numbers, sum_of_numbers, partial(rounded_mean, result=dtype)
    axes = _summed_axes(alignment)
    if not axes:
        return rounded_blocks(a, dtype)
    return _reduced(a, steps, axes, dtype, split_every, "bcast-average-exactly")


def _summed_axes(alignment: Alignment) -> tuple[int, ...]:
    """Return the axes on which the two shapes of an alignment differ: sums run along these."""
    pairs = enumerate(zip(alignment.source, alignment.shape, strict=True))
    return tuple(axis for axis, (source, length) in pairs if source != length)


def _reduced(
    grad: Array, steps: tuple[Any, Any, Any], axes: tuple[int, ...], dtype: np.dtype[Any], split_every: Any, name: str
) -> Array:
    """Reduce in three steps: sum each chunk, add these sums, and round the result."""
    first, between, last = steps
    return da.reduction(
        grad,
        first,
        last,
        axis=axes,
        keepdims=True,
        dtype=dtype,
        split_every=split_every,
        combine=between,
        concatenate=False,
        name=f"{name}-{dtype.name}",  # Dask's tokens are equal for some dtypes of other packages
        meta=meta_of(grad, dtype),
    )


def meta_of(array: Array, dtype: Any) -> NDArray[Any]:
    """Return an empty array of a dtype, with as many axes as `array`, as metadata for Dask."""
    return np.zeros((0,) * array.ndim, dtype)


def partial_expansion(block: Any, axis: Sequence[int], computing_meta: bool = False, **_: Any) -> Any:
    """Sum a block along some axes, exactly: the first step."""
    if computing_meta:
        return block
    data = block_of("grad", block)
    return (expanded("grad", data, reduced_shape(data.shape, tuple(axis), True)),)


def sum_of_expansions(terms: Any, axis: Sequence[int], keepdims: bool) -> Terms:  # noqa: ARG001 (Dask passes them)
    """Add expansions: the middle steps."""
    return (added_expansions(_parts_of(terms)),)


def rounded_expansion(terms: Any, axis: Sequence[int], keepdims: bool, how: Any) -> Any:  # noqa: ARG001 (as above)
    """Add expansions, divide and round once: the last step. `how` has the dtype of the results, and the divisor."""
    result, divisor = how
    return rounded_expansions(_parts_of(terms), result, divisor)


def partial_numbers(block: Any, axis: Sequence[int], computing_meta: bool = False, **_: Any) -> Any:
    """Sum the items of a block that are not NaN along some axes, exactly, and count them: the first step."""
    if computing_meta:
        return block
    data = block_of("a", block)
    source = reduced_shape(data.shape, tuple(axis), True)
    are_numbers = data == data
    numbers = where(are_numbers, data, np.zeros((), data.dtype))
    return expanded("a", numbers, source), unbroadcast(are_numbers, source, dtype=np.int64)


def sum_of_numbers(terms: Any, axis: Sequence[int], keepdims: bool) -> Terms:  # noqa: ARG001 (Dask passes them)
    """Add expansions and counts: the middle steps."""
    all_parts, all_counts = zip(*flatten([terms], (list, np.ndarray)), strict=True)
    return added_expansions(np.concatenate(all_parts)), np.sum(all_counts, 0)


def rounded_mean(terms: Any, axis: Sequence[int], keepdims: bool, result: np.dtype[Any]) -> NDArray[Any]:
    """Add expansions and counts, divide and round once: the last step. Means of nothing are NaN."""
    parts, counts = sum_of_numbers(terms, axis, keepdims)
    means = rounded_expansions(parts, result, 1, np.maximum(counts, 1).astype(np.float64))
    set_means_of_nothing(means, counts == 0)
    return means


def _parts_of(terms: Any) -> NDArray[Any]:
    """Join the parts of all expansions along their first axis."""
    return np.concatenate([parts for (parts,) in flatten([terms], (list, np.ndarray))])


def partial_sum(block: Any, axis: Sequence[int], wide: np.dtype[Any], computing_meta: bool = False, **_: Any) -> Any:
    """Sum a block along some axes: the first step of `dask.array.reduction`."""
    if computing_meta:  # Dask would mistake the metadata of a tuple for an array's
        return block
    data = block_of("grad", block)
    return (unbroadcast(data, reduced_shape(data.shape, tuple(axis), True), dtype=wide),)


def sum_of_sums(terms: Any, axis: Sequence[int], keepdims: bool) -> Terms:  # noqa: ARG001 (Dask passes them)
    """Add partial sums: the middle steps."""
    first, *others = flatten([terms], (list, np.ndarray))  # Dask's probe for metadata passes an empty array
    if first[0].dtype.char not in "dD":  # only these have rounding errors
        return (unbroadcast(np.stack([first[0], *(each[0] for each in others)]), first[0].shape),)
    return quietly(_sum_of_pairs, first, others)


def _sum_of_pairs(first: Terms, others: list[Terms]) -> Terms:
    """Add floats, and their rounding errors if they have any."""
    high, low = first if len(first) == 2 else (first[0], np.zeros_like(first[0]))
    for each in others:
        before, term = high, each[0]
        high = before + term  # the next lines are Knuth's two_sum
        added = high - before
        rounded_off = (before - (high - added)) + (term - added)
        low = low + np.nan_to_num(rounded_off, nan=0, posinf=0, neginf=0)  # infinite sums have no rounding errors
        low = low + each[1] if len(each) == 2 else low
    return high, low


def rounded_sum(terms: Any, axis: Sequence[int], keepdims: bool, result: np.dtype[Any]) -> NDArray[Any]:
    """Add partial sums and round the result: the last step."""
    total = sum_of_sums(terms, axis, keepdims)
    whole = np.asarray(total[0] if len(total) == 1 else total[0] + total[1])
    return round_to(whole, result)


def round_to(sums: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Convert sums to a dtype without warnings, because sums in memory do not warn here either."""
    if dtype.isbuiltin == 2:  # a dtype of another package
        return rounded_to(np.asarray(sums), dtype)
    convert = partial(broadcast, dtype=dtype, casting="unsafe")
    return quietly(convert, sums, np.shape(sums))


def rounded_blocks(array: Array, dtype: np.dtype[Any]) -> Array:
    """Convert each block of sums."""
    token = f"bcast-round-{dtype.name}"
    return array.map_blocks(partial(round_to, dtype=dtype), dtype=dtype, meta=meta_of(array, dtype), token=token)


def segments_summed(grad: Array, counts: Sequence[Any], dtype: np.dtype[Any]) -> Array:
    """Sum neighbours to one item each; `counts` has their numbers along each axis, as an integer or an array."""
    grad = without_empty(grad)
    axes = [axis for axis, count in enumerate(counts) if not isinstance(count, int) or count != 1]
    if not axes:
        ones = [[1] * number for number in grad.numblocks]
        return mapped(segment_block, grad, range(grad.ndim), Output(grad.chunks, ones, dtype))

    wide = wide_dtype(dtype)
    for axis in axes:
        grad = _summed_along(grad, axis, counts[axis], dtype if axis == axes[-1] else wide, wide)
    return grad


def segment_block(block: Any, counts: tuple[Any, ...], to: np.dtype[Any]) -> NDArray[Any]:
    """Sum segments of a block along each axis; round the sums last."""
    data = block_of("grad", block)
    wide = wide_dtype(to)
    sums = unrepeat(data, counts, tuple(range(data.ndim)), dtype=wide)
    return sums if wide == to else round_to(sums, to)


def _summed_along(grad: Array, axis: int, count: Any, dtype: np.dtype[Any], wide: np.dtype[Any]) -> Array:
    """Sum segments along one axis. If chunks divide a segment, a first step makes wide partial sums."""
    length = grad.shape[axis]
    items = length // count if isinstance(count, int) else len(count)
    if not length:
        shape = grad.shape[:axis] + (items,) + grad.shape[axis + 1 :]
        chunks = grad.chunks[:axis] + (-1,) + grad.chunks[axis + 1 :]
        return da.zeros(shape, chunks=chunks, dtype=dtype)

    segments = segments_of(count)
    pieces = [segments.piece(begin, end, (0, items)) for begin, end in cuts(grad.chunks[axis])]
    ranges = [piece.items for piece in pieces]
    if sum(last - first for first, last in ranges) == items:
        return _mapped(grad, axis, pieces, dtype)
    return _joined(_mapped(grad, axis, pieces, wide), axis, ranges, items, dtype)


def _joined(sums: Array, axis: int, ranges: Sequence[Range], items: int, dtype: np.dtype[Any]) -> Array:
    """Add the neighbouring partial sums of each item; chunk i has sums of the items of ``ranges[i]``."""
    changes = np.zeros(items + 1, np.int64)
    for first, last in ranges:
        changes[first] += 1
        changes[last] -= 1

    parts = np.cumsum(changes)[:items]  # the number of chunks with a sum of each item
    ends = np.append(0, np.cumsum(parts))  # the sums of item i are those from ends[i] to ends[i + 1]

    borders = [0]  # the items at which the result is cut
    for _, last in ranges:
        if ends[last] > ends[borders[-1]]:
            borders.append(last)
    borders[-1] = items

    pairs = list(pairwise(borders))
    sums = gathered(sums, axis, [[(int(ends[first]), int(ends[last]))] for first, last in pairs])
    return _mapped(sums, axis, [Piece((first, last), parts[first:last]) for first, last in pairs], dtype)


def _mapped(grad: Array, axis: int, pieces: Sequence[Piece], dtype: np.dtype[Any]) -> Array:
    """Sum the segments of each chunk along an axis: chunk i has the segments of the items of ``pieces[i]``."""
    lengths = tuple(piece.items[1] - piece.items[0] for piece in pieces)
    chunks = grad.chunks[:axis] + (lengths,) + grad.chunks[axis + 1 :]
    values = [[1] * len(own) for own in chunks]
    values[axis] = [piece.counts for piece in pieces]
    return mapped(segment_block, grad, range(grad.ndim), Output(chunks, values, dtype))
