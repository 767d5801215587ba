"""Graphs of copies: one task makes each chunk of the output from a slice of the data."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import Any

import dask.array as da
import numpy as np
from dask.layers import ArrayBlockwiseDep

from bcast._dask.arrays import Array
from bcast._dask.chunks import Chunks, cuts, default_chunks, fits, given_chunks
from bcast._dask.segments import Range, segments_of
from bcast._dask.tasks import broadcast_block, chain_block, repeat_block, tile_block, where_block
from bcast._rules.alignment import Alignment
from bcast._rules.arguments import Shape


@dataclass(frozen=True)
class Output:
    """An array to make: its chunks, and the arguments for the task of each chunk."""

    chunks: Chunks
    values: Sequence[Sequence[Any]]  # the values for each chunk along each axis
    dtype: np.dtype[Any]


def broadcast_along(
    data: Array, alignment: Alignment, dtype: np.dtype[Any], chunks: Any, like: Sequence[Any] | None, materialise: bool
) -> Array:
    """Broadcast along an alignment to the user's chunks. By default, axes that the data lacks get `like`'s chunks.

    With `materialise`, blocks are contiguous and writeable; otherwise they have strides of 0.
    """
    data = data.rechunk({axis: -1 for axis, length in enumerate(data.shape) if length == 1})
    places = _places_of(data.shape, alignment.source)
    natural = _natural_chunks(data, alignment.shape, places, like)
    wanted = _stretched_chunks(natural, places, dtype, chunks)

    if not materialise and dtype == data.dtype and data.chunks == wanted:
        return data

    # Dask loses blocks if a later operation stretches an axis that `blockwise` added, so indexing adds these axes.
    alone = [axis for axis, lengths in enumerate(wanted) if lengths == (1,) and axis not in places]
    data = data[(..., *(None,) * len(alone))]
    places += alone

    output = Output(wanted, wanted, dtype)
    return mapped(broadcast_block, data, places, output, axes=tuple(places), materialise=materialise)


def _places_of(shape: Shape, source: Shape) -> list[int]:
    """Return which axis of the output each axis of the data feeds; -1 for axes of length 1."""
    fed = (axis for axis, length in enumerate(source) if length != 1)
    return [-1 if length == 1 else next(fed) for length in shape]


def _natural_chunks(data: Array, shape: Shape, places: list[int], like: Sequence[Any] | None) -> list[tuple[int, ...]]:
    """Return the cheapest chunks: the data's along axes that it feeds; else the chunks of `like`, or one chunk."""
    natural = [(length,) for length in shape] if like is None else list(like)
    for axis, place in enumerate(places):
        if place >= 0:
            natural[place] = data.chunks[axis]
    return natural


def _stretched_chunks(
    natural: Sequence[tuple[int, ...]], places: list[int], dtype: np.dtype[Any], chunks: Any
) -> Chunks:
    """Return the user's chunks or default ones, which differ from natural ones only along new or stretched axes."""
    if chunks is None:
        return default_chunks(natural, [int(axis not in places) for axis in range(len(natural))], dtype.itemsize)

    wanted = given_chunks(chunks, tuple(map(sum, natural)), dtype, natural)
    for axis in sorted(set(places) - {-1}):
        if wanted[axis] != natural[axis]:
            expected = f"data's own {natural[axis]} along axis {axis}, where nothing is repeated"
            raise ValueError(f"`chunks` expected {expected}, got {wanted[axis]}; rechunk the data")
    return wanted


def tiled(data: Array, reps: Shape, dtype: np.dtype[Any], chunks: Any) -> Array:
    """Repeat the whole array, `reps` times along each axis of the output."""
    data = without_empty(data)[(None,) * (len(reps) - data.ndim)]
    lengths = data.shape
    whole = _kept_whole(lengths, reps, data.chunks, dtype.itemsize)
    natural = _natural_tiles(data, reps, whole)

    if chunks is None:
        wanted = given = default_chunks(natural, np.multiply(lengths, whole).tolist(), dtype.itemsize)
    else:
        given = given_chunks(chunks, tuple(map(sum, natural)), dtype, natural)
        wanted = _solid(given)
        whole = [each and max(wanted[axis]) >= lengths[axis] for axis, each in enumerate(whole)]

    data, spans = _blocks_of_tiles(data, whole, wanted)
    if data.chunks == wanted and data.dtype == dtype:  # nothing writes to chunks, so the data's serve
        return data.rechunk(given)

    places = [-1 if each else axis for axis, each in enumerate(whole)]
    return mapped(tile_block, data, places, Output(wanted, spans, dtype)).rechunk(given)


def _natural_tiles(data: Array, reps: Shape, whole: list[bool]) -> list[tuple[int, ...]]:
    """Return the cheapest chunks: one along axes that stay whole or are empty, else the data's, repeated."""
    natural = []
    for length, own, count, is_whole in zip(data.shape, data.chunks, reps, whole, strict=True):
        natural.append((length * count,) if is_whole or length * count == 0 else own * count)
    return natural


def _blocks_of_tiles(data: Array, whole: list[bool], wanted: Chunks) -> tuple[Array, list[list[Range]]]:
    """Return the data in blocks, and along each axis, the part of a block that makes each chunk.

    Along axes that are kept `whole`, one block makes all chunks; along others, each chunk has a block of its own.
    """
    data = data.rechunk({axis: -1 for axis, each in enumerate(whole) if each})
    spans = []
    for axis, length in enumerate(data.shape):
        parts = cuts(wanted[axis])
        if not whole[axis]:
            data = gathered(data, axis, [_tiles(begin, end, length) for begin, end in parts])
            parts = [(begin, end) if end - begin > length else (0, end - begin) for begin, end in parts]
        spans.append([(begin % max(length, 1), end - begin) for begin, end in parts])
    return data, spans


def repeated(data: Array, counts: Sequence[Any], dtype: np.dtype[Any], chunks: Any) -> Array:
    """Repeat the items along each axis, by one count for all, or by an array of counts."""
    data = without_empty(data)
    segments = [segments_of(count) for count in counts]
    bounds = [list(accumulate(own, initial=0)) for own in data.chunks]
    natural = [each.chunks_from(own) for each, own in zip(segments, bounds, strict=True)]

    if chunks is None:
        largest = default_chunks(natural, [each.grain for each in segments], dtype.itemsize)
        pairs = zip(natural, largest, strict=True)
        wanted = given = tuple(each.cut_at_items(*pair) for each, pair in zip(segments, pairs, strict=True))
    else:
        given = given_chunks(chunks, tuple(map(sum, natural)), dtype, natural)
        wanted = _solid(given)

    values = []
    for axis, each in enumerate(segments):
        pieces = [each.piece(begin, end, bounds[axis]) for begin, end in cuts(wanted[axis])]
        data = gathered(data, axis, [[piece.items] for piece in pieces])
        values.append([piece.counts for piece in pieces])

    return mapped(repeat_block, data, range(data.ndim), Output(wanted, values, dtype)).rechunk(given)


def mapped(function: Any, data: Array, places: Sequence[int], output: Output, **kwargs: Any) -> Array:
    """Call a function for each chunk of the output, on its block of the data and on its own values.

    The block's axis i is mapped to the chunk's axis ``places[i]``; -1 means that one block spans it.
    """
    chunks, rank = output.chunks, len(output.chunks)
    index = [place if place >= 0 else rank + axis for axis, place in enumerate(places)]

    return da.blockwise(
        function,
        tuple(range(rank)),
        data,
        tuple(index),
        Values(output.values),
        tuple(range(rank)),
        new_axes={axis: chunks[axis] for axis in range(rank) if axis not in index},
        adjust_chunks=dict(enumerate(chunks)),
        dtype=output.dtype,
        meta=np.zeros((0,) * rank, output.dtype),
        align_arrays=False,
        concatenate=False,
        token=f"bcast-{function.__name__.removesuffix('_block')}",
        to=output.dtype,
        **kwargs,
    )


def chained(operands: Sequence[Any], rank: int, dtype: np.dtype[Any], **kwargs: Any) -> Array:
    """Run a chain for each chunk of the output, on the operands' blocks there; the first operand is the data."""
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
    """Rearrange the items of an axis: each chunk of the result joins some ranges."""
    cycle = _cycle_of(ranges, data.shape[axis])
    if cycle is not None:
        data = data.rechunk({axis: tuple(end - begin for begin, end in cycle)})
        times = len(ranges) // len(cycle)
        return data if times == 1 else da.concatenate([data] * times, axis)

    known: dict[Any, Array] = {}
    parts = []
    for each in map(tuple, ranges):
        if each not in known:
            slices = [data[(slice(None),) * axis + (slice(*items),)] for items in each]
            known[each] = da.concatenate(slices, axis).rechunk({axis: -1})
        parts.append(known[each])

    return da.concatenate(parts, axis)


def _cycle_of(ranges: Sequence[Sequence[Range]], length: int) -> list[Range] | None:
    """Return the ranges that cover the axis once, if all ranges repeat this cycle; otherwise None."""
    if any(len(each) != 1 for each in ranges):
        return None

    single = [each[0] for each in ranges]
    period = next((i for i in range(1, len(single)) if single[i] == single[0]), len(single))
    cycle = single[:period]
    is_whole = [begin for begin, _ in cycle] + [length] == [0] + [end for _, end in cycle]
    return cycle if is_whole and single == cycle * (len(single) // period) else None


class Values(ArrayBlockwiseDep):
    """For each chunk, a tuple of its values along each axis."""

    def __init__(self, values: Sequence[Sequence[Any]]) -> None:
        super().__init__(tuple(map(tuple, values)))

    def __getitem__(self, idx: tuple[int, ...]) -> tuple[Any, ...]:
        return tuple(values[i] for values, i in zip(self.chunks, idx, strict=True))

    def __dask_tokenize__(self) -> Any:
        return type(self).__name__, self.chunks


def _kept_whole(lengths: Shape, reps: Shape, own: Chunks, itemsize: int) -> list[bool]:
    """Return along which axes one block makes all chunks: repeated axes, as long as the block stays small."""
    whole = [False] * len(lengths)
    block = [max(chunks, default=0) for chunks in own]

    for axis in reversed(range(len(lengths))):
        larger = block[:axis] + [lengths[axis]] + block[axis + 1 :]
        if reps[axis] == 0 or (reps[axis] > 1 and (len(own[axis]) == 1 or fits(larger, itemsize))):
            whole[axis], block = True, larger

    return whole


def _tiles(begin: int, end: int, length: int) -> list[Range]:
    """Return the items between `begin` and `end` of a repeated axis, as ranges of one repetition.

    More places than the axis is long need all of its items.
    """
    if end - begin > length or not length:
        return [(0, length)]
    begin, end = begin % length, (end - 1) % length + 1
    return [(begin, end)] if begin < end else [(begin, length), (0, end)]


def without_empty(data: Array) -> Array:
    """Return an array without empty chunks, unless an axis is empty."""
    return data.rechunk(_solid(data.chunks))


def _solid(chunks: Chunks) -> Chunks:
    """Return the lengths of chunks without zeros, unless an axis is empty."""
    return tuple(tuple(filter(None, lengths)) or (0,) for lengths in chunks)
