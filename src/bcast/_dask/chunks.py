"""The chunks of outputs: as large as Dask's own `array.chunk-size` allows, or as the user asks.

Chunks are tuples of lengths, one tuple for each axis, as in Dask.
"""

import math
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any, TypeAlias

import dask
import dask.array as da
import numpy as np
from dask.utils import parse_bytes

from bcast._rules.arguments import Shape, brief, show

Chunks: TypeAlias = tuple[tuple[int, ...], ...]


def default_chunks(natural: Sequence[tuple[int, ...]], grains: Sequence[int], itemsize: int) -> Chunks:
    """Cut `natural` chunks until each has at most `array.chunk-size` bytes, along the outermost axes first.

    Pieces are multiples of the axis's grain, unless a single grain is too large. An axis of grain 0 stays whole.
    """
    chunks = list(natural)
    for smallest in (False, True):
        for axis, grain in enumerate(grains):
            largest = [max(lengths, default=0) for lengths in chunks]
            if fits(largest, itemsize):
                return tuple(chunks)
            if grain and not (smallest and grain == 1):
                rest = math.prod(largest[:axis] + largest[axis + 1 :]) * itemsize
                step = 1 if smallest else grain
                most = max(_limit() // rest // step * step, step)
                chunks[axis] = tuple(min(most, n - at) for n in chunks[axis] for at in range(0, max(n, 1), most))
    return tuple(chunks)


def given_chunks(chunks: Any, shape: Shape, dtype: np.dtype[Any], natural: Sequence[tuple[int, ...]]) -> Chunks:
    """Read the user's `chunks` as `dask.array.broadcast_to` does; "auto" keeps the `natural` chunks if it can."""
    try:
        normal: Chunks = da.core.normalize_chunks(chunks, shape, dtype=dtype, previous_chunks=tuple(natural))
    except (ArithmeticError, TypeError, ValueError, NotImplementedError) as error:
        got = f"got {show(chunks)}: {brief(error)}"
        raise ValueError(f"`chunks` expected chunks of an array of shape {shape}, {got}") from error
    if any(type(length) is not int or length < 0 for lengths in normal for length in lengths):
        raise ValueError(f"`chunks` expected chunks of an array of shape {shape}, got {show(chunks)}")
    return normal


def fits(lengths: Sequence[int], itemsize: int) -> bool:
    """Return whether a block is no larger than a chunk should be."""
    return math.prod(lengths) * itemsize <= _limit()


def cuts(chunks: Sequence[int]) -> list[tuple[int, int]]:
    """Return where each chunk along an axis begins and ends."""
    return list(pairwise(accumulate(chunks, initial=0)))


def _limit() -> int:
    """Return the largest size of a chunk, in bytes."""
    return int(parse_bytes(dask.config.get("array.chunk-size")))
