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
    set_means_of_nothing,
    unbroadcast,
    unrepeat,
    wide_dtype,
)
from bcast._api.copies import broadcast
from bcast._api.elementwise import where
from bcast._api.exact_digits import (
    ExactState,
    ExactSums,
    added_row_sums,
    added_states,
    added_sums,
    exact_state,
    exact_sums,
    measured_rows,
    rounded_state,
    row_sums,
    stacked,
)
from bcast._api.exact_squares import Measuring
from bcast._dask.arrays import Array
from bcast._dask.chunks import cuts
from bcast._dask.copies import Output, gathered, mapped, without_empty
from bcast._dask.segments import Piece, Range, segments_of
from bcast._dask.tasks import block_of
from bcast._rules.alignment import Alignment
from bcast._runtime.arrays import reduced_shape, rounded_to
from bcast._runtime.errors import quietly

Terms: TypeAlias = tuple[NDArray[Any], ...]  # a sum as its terms: one array, or a rounded sum and its rounding error


def summed(grad: Array, alignment: Alignment, dtype: np.dtype[Any], split_every: Any, initial: Any = None) -> Array:
    """Sum along the alignment between the shapes of the data and `grad`; axes of length 1 remain.

    The `initial` value, if there is one, is added last.
    """
    axes = summed_axes(alignment)
    if not axes and initial is None:
        return segments_summed(grad, (1,) * grad.ndim, dtype)
    first = partial(partial_sum, wide=wide_dtype(dtype))
    last = partial(rounded_sum, result=dtype, initial=initial)
    return reduced(grad, (first, sum_of_sums, last), axes, dtype, split_every, "bcast-unbroadcast")


def summed_exactly(
    grad: Array, alignment: Alignment, dtype: np.dtype[Any], split_every: Any, divisor: int = 1, initial: Any = None
) -> Array:
    """Do the same with exact sums, which the last step divides and rounds once: tasks pass on exact sums."""
    axes = summed_axes(alignment)
    if dtype.kind in "biu":
        return summed(grad, alignment, dtype, split_every, initial)
    if not axes and initial is None:
        return rounded_blocks(grad, dtype)

    is_complex = grad.dtype.kind == "c"
    last = partial(rounded_exact_sum, result=dtype, divisor=divisor, is_complex=is_complex, initial=initial)
    return reduced(grad, (partial_exact_sum, added_exact_sums, last), axes, dtype, split_every, "bcast-sum-exactly")


def averaged_exactly(
    a: Array, alignment: Alignment, dtype: np.dtype[Any], split_every: Any, skips_nan: bool = True
) -> Array:
    """Average items exactly, and round once: tasks pass on exact sums, and counts of the items.

    The items are those that are not NaN, if the call skips NaN, and those that records of `masked` say.
    """
    is_complex = a.dtype.kind == "c" or (a.dtype.names is not None and a.dtype["item"].kind == "c")
    last = partial(rounded_exact_mean, result=dtype, is_complex=is_complex)
    steps = partial(partial_numbers, skips_nan=skips_nan), added_numbers, last
    return reduced(a, steps, summed_axes(alignment), dtype, split_every, "bcast-average-exactly")


def spread_exactly(a: Array, alignment: Alignment, how: Measuring, split_every: Any) -> Array:
    """Compute exact variances or their roots, and round once: tasks pass on exact sums of items and of squares."""
    steps = partial(partial_row_sums, skips_nan=how.skips_nan), added_sums_of_rows, partial(rounded_spread, how=how)
    return reduced(a, steps, summed_axes(alignment), how.dtype, split_every, "bcast-spread-exactly")


def summed_axes(alignment: Alignment) -> tuple[int, ...]:
    """Return the axes along which there is something to sum."""
    pairs = enumerate(zip(alignment.source, alignment.shape, strict=True))
    return tuple(axis for axis, (source, length) in pairs if source != length)


def reduced(
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


def partial_exact_sum(block: Any, axis: Sequence[int], computing_meta: bool = False, **_: Any) -> Any:
    """Sum a block along some axes, exactly: the first step."""
    if computing_meta:
        return block
    data = block_of("grad", block)
    return (exact_state(data, reduced_shape(data.shape, tuple(axis), True)),)


def added_exact_sums(terms: Any, axis: Sequence[int], keepdims: bool) -> Any:  # noqa: ARG001 (Dask passes them)
    """Add exact sums: the middle steps."""
    return (added_states([state for (state,) in flatten([terms], (list, np.ndarray))]),)


def rounded_exact_sum(
    terms: Any, axis: Sequence[int], keepdims: bool, result: np.dtype[Any], divisor: int, is_complex: bool, initial: Any
) -> NDArray[Any]:
    """Add exact sums, and the initial value; divide and round once: the last step. Options come one by one."""
    (state,) = added_exact_sums(terms, axis, keepdims)
    if initial is not None:
        state, is_complex = _with_initial(state, initial, is_complex, result)
    return rounded_state(state, result, divisor, is_complex)


def _with_initial(state: ExactState, initial: Any, is_complex: bool, result: np.dtype[Any]) -> tuple[ExactState, bool]:
    """Add the initial value to exact sums; return also whether the results are complex."""
    wide = complex if result.kind == "c" else float
    start = np.array(initial, result).astype(wide)[()]
    if isinstance(state, np.ndarray):
        first = np.full((1, *state.shape[1:]), start)
        return added_states([np.concatenate([state.astype(wide), first])]), result.kind == "c"
    if is_complex or wide is float:
        shape = state.specials.shape[:-1] if is_complex else state.specials.shape
        first = np.full((2, *shape), start, complex if is_complex else float)
        first[1] = 0
        sums = exact_sums(first, (1, *shape))
        return added_sums([state, ExactSums(sums.low, sums.digits[:, 0], sums.specials[0])]), is_complex
    imaginary = ExactSums(state.low, np.zeros_like(state.digits), np.zeros_like(state.specials))
    return _with_initial(stacked([state, imaginary], -1), initial, True, result)


def partial_numbers(block: Any, axis: Sequence[int], skips_nan: bool, computing_meta: bool = False, **_: Any) -> Any:
    """Sum the chosen items of a block along some axes, exactly, and count them: the first step."""
    if computing_meta:
        return block if block.dtype.names is None else block["item"]
    data = block_of("a", block)
    source = reduced_shape(data.shape, tuple(axis), True)
    if data.dtype.names is None:
        are_chosen = data == data
    else:
        data, are_chosen = np.ascontiguousarray(data["item"]), np.ascontiguousarray(data["is_chosen"])
        are_chosen &= data == data if skips_nan else True
    numbers = where(are_chosen, data, np.zeros((), data.dtype))
    return exact_state(numbers, source), unbroadcast(are_chosen, source, dtype=np.int64)


def added_numbers(terms: Any, axis: Sequence[int], keepdims: bool) -> Any:  # noqa: ARG001 (Dask passes them)
    """Add exact sums and counts: the middle steps."""
    states, counts = zip(*flatten([terms], (list, np.ndarray)), strict=True)
    return added_states(states), np.sum(counts, 0)


def rounded_exact_mean(
    terms: Any, axis: Sequence[int], keepdims: bool, result: np.dtype[Any], is_complex: bool
) -> NDArray[Any]:
    """Add exact sums and counts, divide and round once: the last step. Means of nothing are NaN."""
    state, counts = added_numbers(terms, axis, keepdims)
    means = rounded_state(state, result, np.maximum(counts, 1), is_complex)
    set_means_of_nothing(means, counts == 0)
    return means


def partial_row_sums(block: Any, axis: Sequence[int], skips_nan: bool, computing_meta: bool = False, **_: Any) -> Any:
    """Sum the items of a block, and their squares, along some axes, exactly: the first step."""
    if computing_meta:
        return block
    data = block_of("a", block)
    return (row_sums(data, reduced_shape(data.shape, tuple(axis), True), skips_nan),)


def added_sums_of_rows(terms: Any, axis: Sequence[int], keepdims: bool) -> Any:  # noqa: ARG001 (Dask passes them)
    """Add exact sums of items and squares: the middle steps."""
    return (added_row_sums([sums for (sums,) in flatten([terms], (list, np.ndarray))]),)


def rounded_spread(terms: Any, axis: Sequence[int], keepdims: bool, how: Measuring) -> NDArray[Any]:
    """Make variances or their roots of exact sums, and round once: the last step."""
    (sums,) = added_sums_of_rows(terms, axis, keepdims)
    return measured_rows(sums, how)


def masked(item: Any, is_chosen: Any) -> NDArray[Any]:
    """Return records of the items of a block, and whether they are chosen."""
    data, mask = block_of("a", item), block_of("where", is_chosen)
    records = np.empty(data.shape, np.dtype([("item", data.dtype), ("is_chosen", bool)], align=True))
    records["item"], records["is_chosen"] = data, mask
    return records


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


def rounded_sum(terms: Any, axis: Sequence[int], keepdims: bool, result: np.dtype[Any], initial: Any) -> NDArray[Any]:
    """Add partial sums, and the initial value, and round the result: the last step."""
    total = sum_of_sums(terms, axis, keepdims)
    whole = np.asarray(total[0] if len(total) == 1 else quietly(np.add, *total))
    if initial is not None:
        whole = np.asarray(quietly(np.add, whole, np.array(initial, result).astype(wide_dtype(result))))
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


def segments_summed_exactly(grad: Array, counts: Sequence[Any], dtype: np.dtype[Any]) -> Array:
    """Do the same with exact sums, rounded once: the neighbours of an item come into one chunk."""
    if dtype.kind in "biu" or 0 in grad.shape:
        return segments_summed(grad, counts, dtype)
    grad = without_empty(grad)
    values, chunks = [], []
    for axis, count in enumerate(counts):
        segments = segments_of(count)
        own = segments.chunks_of_whole(grad.chunks[axis])
        grad = grad.rechunk({axis: own})
        items = grad.shape[axis] // count if isinstance(count, int) else len(count)
        pieces = [segments.piece(begin, end, (0, items)) for begin, end in cuts(own)]
        values.append([piece.counts for piece in pieces])
        chunks.append(tuple(piece.items[1] - piece.items[0] for piece in pieces))
    output = Output(tuple(chunks), values, dtype)
    return mapped(exact_segment_block, grad, range(grad.ndim), output)


def exact_segment_block(block: Any, counts: tuple[Any, ...], to: np.dtype[Any]) -> NDArray[Any]:
    """Sum segments of a block exactly, and round once."""
    data = block_of("grad", block)
    return unrepeat(data, counts, tuple(range(data.ndim)), dtype=to, exact=True)


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
