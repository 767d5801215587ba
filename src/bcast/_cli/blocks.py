"""Cuts an output into blocks. In: its shape and the lengths of blocks. Out: the places of blocks and of data."""

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

from bcast._rules.alignment import Alignment

Index = tuple[slice, ...]


def units(shape: tuple[int, ...], wanted: Sequence[int], items: int) -> tuple[int, ...]:
    """Choose the lengths of a block of at most `items`.

    They reach `wanted` if there is room. Where that is 1, the block is cut along the outermost axes first, so that it
    is contiguous in the output.
    """
    lengths = [1] * len(shape)
    for axis, length in enumerate(wanted):
        _grow(lengths, axis, min(length, shape[axis]), items)
    for axis in reversed(range(len(shape))):
        _grow(lengths, axis, shape[axis], items)
        if lengths[axis] < shape[axis]:
            break
    return tuple(lengths)


def _grow(lengths: list[int], axis: int, wanted: int, items: int) -> None:
    """Multiply the length of a block along an axis up to the wanted length, within the number of items."""
    times = min(-(-wanted // lengths[axis]), items // math.prod(lengths))
    lengths[axis] = min(wanted, lengths[axis] * max(1, times))


def blocks(alignment: Alignment, lengths: tuple[int, ...]) -> Iterator[Index]:
    """Yield the place of each block in the output; those that come from the same data follow each other."""
    shape, axes = alignment.shape, range(len(lengths))
    order = sorted(axes, key=lambda axis: alignment.source[axis] == 1)
    for starts in product(*[range(0, shape[axis], lengths[axis]) for axis in order]):
        begin = [starts[order.index(axis)] for axis in axes]
        yield tuple([slice(begin[axis], min(begin[axis] + lengths[axis], shape[axis])) for axis in axes])


def refit(values: Sequence[Any], source: tuple[int, ...], target: tuple[int, ...], one: Any) -> tuple[Any, ...]:
    """Return the values for the axes of a shape whose other axes have length 1; those axes get `one`."""
    rest = iter([value for value, length in zip(values, source, strict=True) if length != 1])
    return tuple([next(rest) if length != 1 else one for length in target])
