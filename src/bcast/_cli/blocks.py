"""How an output is cut. In: its shape and the lengths of chunks. Out: the places of blocks and of the data for them."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from bcast._rules.alignment import Alignment

Index = tuple[slice, ...]


def units(shape: tuple[int, ...], least: tuple[int, ...], wanted: Sequence[int], items: int) -> tuple[int, ...]:
    """Choose the lengths of a block of at most `items`, unless `least`, which they are multiples of, has more.

    They reach `wanted` if there is room. Where `least` and `wanted` are 1, the block is cut along the outermost axes
    first, so that it is contiguous in the output.
    """
    lengths = [min(pair) for pair in zip(least, shape, strict=True)]
    for axis, length in enumerate(wanted):
        _grow(lengths, axis, min(length, shape[axis]), shape[axis], items)
    for axis in reversed(range(len(shape))):
        _grow(lengths, axis, shape[axis], shape[axis], items)
        if lengths[axis] < shape[axis]:
            break
    return tuple(lengths)


def _grow(lengths: list[int], axis: int, wanted: int, most: int, items: int) -> None:
    """Multiply the length of a block along an axis until it is what is wanted, while the block has so many items."""
    times = min(-(-wanted // lengths[axis]), items // math.prod(lengths))
    lengths[axis] = min(most, lengths[axis] * max(1, times))


def blocks(alignment: Alignment, lengths: tuple[int, ...]) -> Iterator[Index]:
    """Yield the place of each block in the output; those that come from the same data follow each other."""
    order = sorted(range(len(lengths)), key=lambda axis: alignment.source[axis] == 1)
    place = [order.index(axis) for axis in range(len(order))]
    whole = [slice(0, alignment.shape[axis]) for axis in order]
    for index in cells(whole, [lengths[axis] for axis in order]):
        yield tuple([index[at] for at in place])


def cells(index: Sequence[slice], lengths: Sequence[int]) -> Iterator[Index]:
    """Yield the parts into which a grid of cells of such lengths cuts a part of an array."""
    grid = [range(part.start // length, -(-part.stop // length)) for part, length in zip(index, lengths, strict=True)]
    for place in np.ndindex(*[len(along) for along in grid]):
        starts = [along[at] * length for length, along, at in zip(lengths, grid, place, strict=True)]
        ends = [start + length for start, length in zip(starts, lengths, strict=True)]
        sides = zip(index, starts, ends, strict=True)
        yield tuple([slice(max(start, part.start), min(end, part.stop)) for part, start, end in sides])


def within(index: Index, cell: Index) -> tuple[Any, ...]:
    """Return the place of a cell in a part of an array; with `...`, a 0-d array gives a view, too."""
    return (*[slice(at.start - part.start, at.stop - part.start) for part, at in zip(index, cell, strict=True)], ...)


def refit(values: Sequence[Any], source: tuple[int, ...], target: tuple[int, ...], one: Any) -> tuple[Any, ...]:
    """Return what belongs to each axis of a shape for one that has other axes of length 1; to those belongs `one`."""
    rest = iter([value for value, length in zip(values, source, strict=True) if length != 1])
    return tuple([next(rest) if length != 1 else one for length in target])
