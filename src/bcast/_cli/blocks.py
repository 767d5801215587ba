"""An output cut into blocks, each small beside memory: whole chunks of the output, and where possible of the input."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from bcast._rules.alignment import Alignment

__all__ = ["Index", "Input", "Output", "Plan", "blocks", "cells", "lengths_of", "part_of", "planned", "units"]

Index = tuple[slice, ...]

LEAST = 65536  # bytes of a block: with smaller ones, a run takes many times as long
LARGEST = 64 * 2**20  # bytes of a block for the sake of an input's chunk, which each smaller block would decode again


class Input(Protocol):
    """An array in a file."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of its items."""

    @property
    def array(self) -> NDArray[Any]:
        """An array of that shape and dtype, which need not have its items."""

    def reshape(self, shape: tuple[int, ...]) -> None:
        """Put in or take out axes of length 1: from now on, parts are asked for by an index of this shape."""

    def read(self, index: Index) -> NDArray[Any]:
        """Return a part, which is valid until the next one is read."""

    def room(self, lengths: tuple[int, ...]) -> int:
        """Return how much memory a part of such lengths takes at most, in bytes."""

    def unit(self, items: int) -> tuple[int, ...]:
        """Return the lengths of a part of about so many items that is read at the least cost."""

    def chunk(self) -> int:
        """Return the number of items that are read at once, however few of them a part has."""

    def close(self) -> None:
        """Let go of the file."""


class Output(Protocol):
    """An array that is written to a file, block by block."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of its items."""

    def unit(self) -> tuple[int, ...]:
        """Return the lengths that a block has a multiple of, unless it ends where the array ends."""

    def room(self, size: int) -> int:
        """Return how much memory writing blocks of so many bytes takes at most, their own included."""

    def appearing(self, name: str, tell: Callable[[str], object], clobber: bool) -> AbstractContextManager[None]:
        """Make the file, which takes its name when it is whole; `tell` is called for what killed runs have left."""

    def block(self, index: Index) -> NDArray[Any]:
        """Return an array to fill, contiguous."""

    def write(self, index: Index, block: NDArray[Any]) -> None:
        """Write a block, the one that was asked for last."""


class Plan(NamedTuple):
    """How an output is cut, and what that takes."""

    lengths: tuple[int, ...]  # of a block
    room: int  # bytes of memory, at most


def planned(source: Input, output: Output, alignment: Alignment, size: int, most: int | None) -> Plan:
    """Choose blocks of at most `size` bytes, and of at most what fits in memory.

    Parameters
    ----------
    source, output : Input, Output
        What is read, and what is written.
    alignment : Alignment
        How the output's axes come from the input's. No length is 0, and items have bytes.
    size : int
        Bytes of a block, unless one unit of the input or the output is larger.
    most : int or None
        Bytes of memory that all of it may take; None sets no limit.

    Returns
    -------
    Plan
        The plan. Its room exceeds `most` if even the smallest blocks do not fit.
    """
    shape, dtype = alignment.shape, output.dtype
    size = max(size, min(source.chunk() * dtype.itemsize, LARGEST))
    while True:
        items = max(1, size // dtype.itemsize)
        wanted = [unit if length != 1 else 1 for unit, length in zip(source.unit(items), alignment.source, strict=True)]
        lengths = units(shape, output.unit(), wanted, items)
        part = tuple([min(pair) for pair in zip(lengths, alignment.source, strict=True)])
        room = output.room(math.prod(lengths) * dtype.itemsize) + source.room(part)
        if dtype != source.dtype:
            room += math.prod(part) * dtype.itemsize  # converted, before it is replicated
        if most is None or room <= most or size <= LEAST:
            return Plan(lengths, room)
        size //= 2


def units(shape: tuple[int, ...], least: tuple[int, ...], wanted: list[int], items: int) -> tuple[int, ...]:
    """Choose the lengths of a block.

    Parameters
    ----------
    shape : tuple of int
        The lengths of the output's axes, none of them 0.
    least : tuple of int
        The lengths that a block has a multiple of.
    wanted : list of int
        The lengths that it should have, if there is room for them.
    items : int
        The number of items that it has at most, unless `least` has more.

    Returns
    -------
    tuple of int
        The lengths. Where `least` and `wanted` are 1, the block is cut along the outermost axes first, so that it is
        contiguous in the output.
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
    shape = [alignment.shape[axis] for axis in order]
    for index in cells([slice(0, length) for length in shape], [lengths[axis] for axis in order]):
        yield tuple([index[at] for at in place])


def cells(index: Sequence[slice], lengths: Sequence[int]) -> Iterator[Index]:
    """Yield the parts into which a grid of cells of such lengths cuts a part of an array."""
    grid = [range(part.start // length, -(-part.stop // length)) for part, length in zip(index, lengths, strict=True)]
    for place in np.ndindex(*[len(along) for along in grid]):
        cell = []
        for part, length, along, at in zip(index, lengths, grid, place, strict=True):
            start = along[at] * length
            cell.append(slice(max(start, part.start), min(start + length, part.stop)))
        yield tuple(cell)


def lengths_of(index: Index) -> tuple[int, ...]:
    """Return the shape of the part of an array at an index."""
    return tuple([part.stop - part.start for part in index])


def part_of(index: Index, source: tuple[int, ...]) -> Index:
    """Return the place of a block's data in the data, at the shape `source`."""
    return tuple([part if length != 1 else slice(0, 1) for part, length in zip(index, source, strict=True)])
