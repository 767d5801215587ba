"""Graphs of copies: one task for each chunk of the output, from the slice of the data that it is made of."""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import chain, pairwise
from typing import Any, TypeAlias

import dask.array as da
import numpy as np
from dask.layers import ArrayBlockwiseDep
from numpy.typing import NDArray

from bcast._dask.arrays import Array
from bcast._dask.chunks import Chunks, cuts, default_chunks, fits, given_chunks
from bcast._dask.tasks import broadcast_block, chain_block, repeat_block, tile_block, where_block
from bcast._rules.alignment import Alignment
from bcast._rules.arguments import Shape

Range: TypeAlias = tuple[int, int]  # of items along an axis


def broadcast_along(
    data: Array, alignment: Alignment, dtype: np.dtype[Any], chunks: Any, like: Sequence[Any] | None, materialise: bool
) -> Array:
    """Broadcast along an alignment to the user's chunks, or without any, to those of `like` along axes of its own.

    If they are to `materialise`, blocks are contiguous and writeable; else they have strides of 0.
    """
    shape = alignment.shape
    data = data.rechunk({axis: -1 for axis, length in enumerate(data.shape) if length == 1})
    mapped_to = [axis for axis, length in enumerate(alignment.source) if length != 1]
    own = [axis for axis, length in enumerate(data.shape) if length != 1]
    places = [-1] * data.ndim
    natural = list(like) if like is not None else [(length,) for length in shape]
    for axis, place in zip(own, mapped_to, strict=True):
        places[axis], natural[place] = place, data.chunks[axis]
    if chunks is None:
        wanted = default_chunks(natural, [int(axis not in mapped_to) for axis in range(len(shape))], dtype.itemsize)
    else:
        wanted = given_chunks(chunks, shape, dtype, natural)
        for axis in mapped_to:
            if wanted[axis] != natural[axis]:
                expected = f"data's own {natural[axis]} along axis {axis}, where nothing is repeated"
                raise ValueError(f"`chunks` expected {expected}, got {wanted[axis]}; rechunk the data")
    if not materialise and dtype == data.dtype and data.chunks == wanted:
        return data
    alone = [axis for axis, lengths in enumerate(wanted) if lengths == (1,) and axis not in mapped_to]
    data = data[(..., *(None,) * len(alone))]  # Dask loses blocks where `blockwise` has added axes that stretch later
    places += alone
    options = {"axes": tuple(places), "to": dtype, "materialise": materialise}
    return mapped(broadcast_block, data, places, wanted, Values(wanted), dtype, **options)


def tiled(data: Array, reps: Shape, dtype: np.dtype[Any], chunks: Any) -> Array:
    """Repeat the whole, `reps` times along each axis of the output."""
    data = without_empty(data)[(None,) * (len(reps) - data.ndim)]
    lengths, own = data.shape, data.chunks
    shape = tuple(length * count for length, count in zip(lengths, reps, strict=True))
    whole = _kept_whole(lengths, reps, own, dtype.itemsize)
    natural = [(shape[at],) if whole[at] or not shape[at] else own[at] * count for at, count in enumerate(reps)]
    if chunks is None:
        wanted = given = default_chunks(natural, np.multiply(lengths, whole).tolist(), dtype.itemsize)
    else:
        given = given_chunks(chunks, shape, dtype, natural)
        wanted = _solid(given)
        whole = [each and max(wanted[axis]) >= lengths[axis] for axis, each in enumerate(whole)]
    data = data.rechunk({axis: -1 for axis, each in enumerate(whole) if each})
    places, spans = [-1] * data.ndim, []
    for axis, length in enumerate(lengths):
        parts = cuts(wanted[axis])
        if not whole[axis]:
            places[axis] = axis
            data = gathered(data, axis, [_tiles(begin, end, length) for begin, end in parts])
            parts = [(begin, end) if end - begin > length else (0, end - begin) for begin, end in parts]
        spans.append([(begin % max(length, 1), end - begin) for begin, end in parts])
    if data.chunks == wanted and data.dtype == dtype:  # its chunks are in place, and nobody writes to them
        return data.rechunk(given)
    return mapped(tile_block, data, places, wanted, Values(spans), dtype, to=dtype).rechunk(given)


def repeated(data: Array, counts: Sequence[Any], dtype: np.dtype[Any], chunks: Any) -> Array:
    """Repeat the items along each axis, by one count for all, or by an array of counts."""
    data = without_empty(data)
    ends = [count if isinstance(count, int) else np.append(0, np.cumsum(count)) for count in counts]
    bounds = [[begin for begin, _ in cuts(own)] + [sum(own)] for own in data.chunks]
    natural = []
    for own, end in zip(bounds, ends, strict=True):
        starts = np.multiply(own, end).tolist() if isinstance(end, int) else end[own].tolist()
        natural.append(tuple(b - a for a, b in pairwise(starts) if b > a) or (0,))
    if chunks is None:
        grains = [1 if not isinstance(end, int) else end if end > 1 else 0 for end in ends]
        wanted = given = default_chunks(natural, grains, dtype.itemsize)
        for axis, end in enumerate(ends):
            if not isinstance(end, int):
                cut = _at_items(natural[axis], max(wanted[axis]), end)
                wanted = given = wanted[:axis] + (cut,) + wanted[axis + 1 :]
    else:
        given = given_chunks(chunks, tuple(map(sum, natural)), dtype, natural)
        wanted = _solid(given)
    values = []
    for axis, end in enumerate(ends):
        blocks = [items_of(begin, stop, end, bounds[axis]) for begin, stop in cuts(wanted[axis])]
        values.append([count for _, count in blocks])
        data = gathered(data, axis, [[items] for items, _ in blocks])
    return mapped(repeat_block, data, range(data.ndim), wanted, Values(values), dtype, to=dtype).rechunk(given)


def mapped(
    function: Any, data: Array, places: Sequence[int], chunks: Chunks, values: Any, dtype: np.dtype[Any], **kwargs: Any
) -> Array:
    """Call a function for each chunk of the output, on the block that it is made of and on its own one of `values`.

    The block's axis i is mapped to the chunk's axis ``places[i]``; -1 means that there is but one block along it.
    """
    rank = len(chunks)
    index = [place if place >= 0 else rank + axis for axis, place in enumerate(places)]
    return da.blockwise(
        function,
        tuple(range(rank)),
        data,
        tuple(index),
        values,
        tuple(range(rank)),
        new_axes={axis: chunks[axis] for axis in range(rank) if axis not in index},
        adjust_chunks=dict(enumerate(chunks)),
        dtype=dtype,
        meta=np.zeros((0,) * rank, dtype),
        align_arrays=False,
        concatenate=False,
        token=f"bcast-{function.__name__.removesuffix('_block')}",
        **kwargs,
    )


def chained(operands: Sequence[Any], rank: int, dtype: np.dtype[Any], **kwargs: Any) -> Array:
    """Run a chain for each chunk of the output, on the blocks of all operands there; the first one is the data."""
    return _of_operands(chain_block, operands, rank, dtype, **kwargs)


def chosen(operands: Sequence[Any], rank: int, dtype: np.dtype[Any]) -> Array:
    """Choose items for each chunk of the output, from the blocks there of a condition and of both operands."""
    return _of_operands(where_block, operands, rank, dtype)


def _of_operands(function: Any, operands: Sequence[Any], rank: int, dtype: np.dtype[Any], **kwargs: Any) -> Array:
    """Call a function for each chunk of the output, on the blocks there of operands that are aligned at the right."""
    pairs = [(x, range(rank)[-x.ndim :] if x.ndim else ()) if hasattr(x, "chunks") else (x, None) for x in operands]
    token = f"bcast-{function.__name__.removesuffix('_block')}"
    options = {"dtype": dtype, "meta": np.zeros((0,) * rank, dtype), "token": token}
    return da.blockwise(function, tuple(range(rank)), *chain.from_iterable(pairs), **options, **kwargs)


def gathered(data: Array, axis: int, ranges: Sequence[Sequence[Range]]) -> Array:
    """Rearrange an axis in chunks, each of which has the items of some ranges, one behind the other."""
    length = data.shape[axis]
    flat = [each[0] for each in ranges if len(each) == 1]
    period = next((i for i in range(1, len(flat)) if flat[i] == flat[0]), len(flat))
    times = len(flat) // period if flat else 0
    turn = flat[:period]
    is_partition = [begin for begin, _ in turn] + [length] == [0] + [end for _, end in turn]
    if len(flat) == len(ranges) and flat == turn * times and is_partition:
        data = data.rechunk({axis: tuple(end - begin for begin, end in turn)})
        return data if times == 1 else da.concatenate([data] * times, axis)
    known: dict[Any, Array] = {}
    parts = []
    for each in map(tuple, ranges):
        if each not in known:
            slices = [data[(slice(None),) * axis + (slice(*items),)] for items in each]
            known[each] = da.concatenate(slices, axis).rechunk({axis: -1})
        parts.append(known[each])
    return da.concatenate(parts, axis)


class Values(ArrayBlockwiseDep):
    """For each chunk, a tuple of what belongs to its place along each axis."""

    def __init__(self, values: Sequence[Sequence[Any]]) -> None:
        super().__init__(tuple(map(tuple, values)))

    def __getitem__(self, idx: tuple[int, ...]) -> tuple[Any, ...]:
        return tuple(values[i] for values, i in zip(self.chunks, idx, strict=True))

    def __dask_tokenize__(self) -> Any:
        return type(self).__name__, self.chunks


def _kept_whole(lengths: Shape, reps: Shape, own: Chunks, itemsize: int) -> list[bool]:
    """Return along which axes one block makes all chunks: if something is repeated, as far as the block is small."""
    whole = [False] * len(lengths)
    block = [max(chunks, default=0) for chunks in own]
    for axis in reversed(range(len(lengths))):
        larger = block[:axis] + [lengths[axis]] + block[axis + 1 :]
        if reps[axis] == 0 or (reps[axis] > 1 and (len(own[axis]) == 1 or fits(larger, itemsize))):
            whole[axis], block = True, larger
    return whole


def _tiles(begin: int, end: int, length: int) -> list[Range]:
    """Return which items of an axis, repeated as a whole, are found from `begin` to `end`: all if it is that long."""
    if end - begin > length or not length:
        return [(0, length)]
    begin, end = begin % length, (end - 1) % length + 1
    return [(begin, end)] if begin < end else [(begin, length), (0, end)]


def items_of(begin: int, end: int, ends: Any, bounds: Sequence[int]) -> tuple[Range, Any]:
    """Return which items are repeated to the places from `begin` to `end`, and how often each.

    Items that are repeated 0 times go to the one side or the other of a cut such that it is one of the data's `bounds`.
    """
    if isinstance(ends, int):
        if begin == end:
            return (0, 0), 1
        first, last = begin // ends, -(-end // ends)
        if begin % ends == 0 and end % ends == 0:
            return (first, last), ends
        counts: NDArray[np.int64] = np.full(last - first, ends, np.int64)
        before, behind = begin - first * ends, last * ends - end
    else:
        first, last = _border(begin, ends, bounds, 0), _border(end, ends, bounds, 1)
        counts = np.diff(ends[first : last + 1])
        before, behind = begin - ends[first], ends[last] - end
    if len(counts):
        counts[0] -= before
        counts[-1] -= behind
    return (first, last), counts


def _border(at: int, ends: Any, bounds: Sequence[int], behind: int) -> int:
    """Return between which items a cut is, or if it is within one, which place is before it, or `behind` it."""
    if behind and at == ends[-1]:
        return len(ends) - 1
    if at == 0:
        return 0
    lowest, highest = np.searchsorted(ends, at, "left"), np.searchsorted(ends, at, "right") - 1
    if highest < lowest:
        return int(highest) + behind
    bound = bisect_left(bounds, lowest)
    return int(bounds[bound] if bound < len(bounds) and bounds[bound] <= highest else lowest)


def _at_items(lengths: Sequence[int], largest: int, ends: Any) -> tuple[int, ...]:
    """Cut chunks to at most a length, where an item ends if the chunk has room for one."""
    cut = []
    for begin, end in cuts(lengths):
        at = begin
        while at < end:
            stop = min(at + largest, end)
            place = int(ends[np.searchsorted(ends, stop, "right") - 1])
            stop = place if place > at else stop
            cut.append(stop - at)
            at = stop
    return tuple(cut) or (0,)


def without_empty(data: Array) -> Array:
    """Return an array without chunks of no items, unless an axis is empty."""
    return data.rechunk(_solid(data.chunks))


def _solid(chunks: Chunks) -> Chunks:
    """Return chunks without those of no items, unless an axis is empty."""
    return tuple(tuple(filter(None, lengths)) or (0,) for lengths in chunks)
