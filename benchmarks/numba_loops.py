"""Broadcasts as loops for numba, as one who knows it well would write them for shapes that come up again and again.

Neighbouring axes of one kind are merged, those of length 1 vanish. What is left has a loop for each axis, over arrays
of exactly that rank; the innermost axes, where they are short, are unrolled. Large outputs are cut along one axis, a
piece for each thread. Broadcasts of many axes, and rows that are short, are done in stages, the innermost axes first.

numba compiles all that in the first call, for as long as a second; what it compiled serves equal axes again.

`readers` only read, which is what sums are measured against.
"""

import importlib
import math
from collections.abc import Callable
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bcast._rules.arguments import Shape

__all__ = ["fill", "readers", "repeater"]

Fill = Callable[[NDArray[Any]], Any]

UNROLLED = 16  # stores in the innermost loop, at most
DEEPEST = 6  # axes of one stage
SHORT_ROW, LONG_ROW = 512, 4096  # bytes; the loop over a row that is shorter costs more than the row
PARALLEL = 1 << 19  # bytes of output from which on threads pay off


def fill(data: NDArray[Any], shape: Shape, threads: int) -> tuple[Fill, Shape, np.dtype[Any]]:
    """Return a function that broadcasts data, with its axes lined up, into an array.

    Parameters
    ----------
    data : ndarray
        C-contiguous, of the rank of `shape`.
    shape : tuple of int
        Of the output.
    threads : int
        On how many threads at most.

    Returns
    -------
    function, tuple of int, dtype
        The function, and the shape and the dtype as which it must be given the output.
    """
    kinds, lengths = merged(data.shape, shape)
    size = data.dtype.itemsize
    word: np.dtype[Any] = np.dtype(np.complex128 if size == 16 else f"u{size}")  # numba has no float16
    flat = data.reshape(-1).view(word)
    row = lengths[-1] * size
    if kinds[-2:] == "RC" and row < SHORT_ROW:  # a long one is written first
        rows = max(n for n in range(1, LONG_ROW // row + 1) if lengths[-2] % n == 0)
        if rows * 8 <= lengths[-2]:
            kinds, lengths = kinds[:-2] + "RRC", [*lengths[:-2], lengths[-2] // rows, rows, lengths[-1]]
    stages: list[Callable[[], Any]] = []
    while len(kinds) > DEEPEST or "RR" in kinds:
        own = kinds.find("RR") + 1 or -4
        copied = math.prod(n for kind, n in zip(kinds[:own], lengths[:own], strict=True) if kind == "C")
        inner, inner_lengths = merged_with("C", [copied], kinds[own:], lengths[own:])
        widened = np.empty(inner_lengths, word)
        stages.append(partial(stage(inner, inner_lengths, flat, threads), widened))
        kinds, lengths = merged_with(kinds[:own], lengths[:own], "C", [math.prod(lengths[own:])])
        flat = widened
    last = stage(kinds, lengths, flat, threads)

    def in_stages(out: NDArray[Any]) -> None:
        for call in stages:
            call()
        last(out)

    return (in_stages if stages else last), tuple(lengths), word


def merged(source: Shape, shape: Shape) -> tuple[str, list[int]]:
    """Merge axes: the kind of each that is left, C for copied and R for repeated, and its length."""
    kinds, lengths = "", list[int]()
    for stretched, length in zip(source, shape, strict=True):
        if length != 1:
            kinds, lengths = merged_with(kinds, lengths, "C" if stretched == length else "R", [length])
    return kinds or "C", lengths or [1]


def merged_with(kinds: str, lengths: list[int], more: str, more_lengths: list[int]) -> tuple[str, list[int]]:
    """Append merged axes to merged axes."""
    if kinds and kinds[-1] == more[0]:
        return kinds + more[1:], [*lengths[:-1], lengths[-1] * more_lengths[0], *more_lengths[1:]]
    return kinds + more, lengths + more_lengths


def stage(kinds: str, lengths: list[int], data: NDArray[Any], threads: int) -> Fill:
    """Return a function that broadcasts along merged axes into an array of these lengths."""
    data = data.reshape([length if kind == "C" else 1 for kind, length in zip(kinds, lengths, strict=True)])
    cut = int(lengths[0] < 4 * threads and len(lengths) > 1 and lengths[1] > lengths[0])
    unrolled = len(lengths)
    while unrolled > cut + 1 and math.prod(lengths[unrolled - 1 :]) <= UNROLLED:
        unrolled -= 1
    body = compiled(kinds, tuple(lengths[unrolled:]), cut)
    if threads == 1 or math.prod(lengths) * data.dtype.itemsize < PARALLEL:
        return partial(body, data, np.uint64(0), np.uint64(lengths[cut]))
    return partial(in_parallel(body, cut), data, threads)


@cache
def compiled(kinds: str, unrolled: tuple[int, ...], cut: int) -> Callable[..., None]:
    """Return the loops that `source_of` writes, jitted."""
    namespace: dict[str, Any] = {}
    exec(source_of(kinds, unrolled, cut), namespace)
    numba = importlib.import_module("numba")
    jitted: Callable[..., None] = numba.njit(nogil=True, error_model="numpy")(namespace["loops"])
    return jitted


@cache
def in_parallel(body: Callable[..., None], cut: int) -> Callable[..., None]:
    """Return a function that gives each thread a piece of one axis."""
    numba = importlib.import_module("numba")
    prange, uint64 = numba.prange, numba.uint64

    def spread(data: Any, threads: int, out: Any) -> None:
        length = out.shape[cut]
        for thread in prange(threads):
            body(data, uint64(length * thread // threads), uint64(length * (thread + 1) // threads), out)

    jitted: Callable[..., None] = numba.njit(parallel=True, error_model="numpy")(spread)
    return jitted


def source_of(kinds: str, unrolled: tuple[int, ...], cut: int) -> str:
    """Write nested loops over merged axes.

    Bounds of the axis that is cut are unsigned, and so is its index: numba looks whether a signed one counts from the
    end, and no loop that looks becomes one over vectors.

    Parameters
    ----------
    kinds : str
        Of each axis: C or R.
    unrolled : tuple of int
        The lengths of the last axes, which get no loop.
    cut : int
        The axis of which only the part from `start` to `stop` is written.

    Examples
    --------
    >>> print(source_of("CR", (2,), 0))
    def loops(data, start, stop, out):
        for i0 in range(start, stop):
            v0 = data[i0, 0]
            out[i0, 0] = v0
            out[i0, 1] = v0
    """
    looped = len(kinds) - len(unrolled)
    values = list(product(*(range(n if kind == "C" else 1) for kind, n in zip(kinds[looped:], unrolled, strict=True))))
    indices = [f"i{axis}" for axis in range(looped)]
    feeding = [index if kind == "C" else "0" for index, kind in zip(indices, kinds[:looped], strict=True)]
    load = [f"v{number} = data[{', '.join([*feeding, *map(str, value)])}]" for number, value in enumerate(values)]
    innermost = kinds[:looped].rfind("C")  # of the loops that change the values
    lines, indent = ["def loops(data, start, stop, out):"], "    "
    for axis in range(-1, looped):
        if axis >= 0:
            bounds = "start, stop" if axis == cut else f"out.shape[{axis}]"
            lines.append(f"{indent}for i{axis} in range({bounds}):")
            indent += "    "
        if axis == innermost:
            lines += [indent + line for line in load]
    for place in product(*map(range, unrolled)):
        value = tuple(at if kind == "C" else 0 for kind, at in zip(kinds[looped:], place, strict=True))
        lines.append(f"{indent}out[{', '.join([*indices, *map(str, place)])}] = v{values.index(value)}")
    return "\n".join(lines)


@cache
def repeater() -> Callable[..., Any]:
    """Return a function of data, counts and threads that repeats each item by its count: a piece for each thread."""
    numba = importlib.import_module("numba")

    def write(data: Any, ends: Any, out: Any, first: Any, last: Any) -> None:
        at = ends[first - 1] if first else 0
        for i in range(first, last):
            value, end = data[i], ends[i]
            while at < end:
                out[at] = value
                at += 1

    body = numba.njit(nogil=True, error_model="numpy")(write)
    prange = numba.prange

    def repeat(data: Any, counts: Any, threads: int) -> Any:
        ends = np.cumsum(counts)
        total = ends[-1]
        out = np.empty(total, data.dtype)
        if threads == 1 or total * data.itemsize < PARALLEL:
            body(data, ends, out, 0, len(data))
        else:
            for piece in prange(threads):
                first = np.searchsorted(ends, total * piece // threads)
                last = np.searchsorted(ends, total * (piece + 1) // threads)
                body(data, ends, out, first, last if piece < threads - 1 else len(data))
        return out

    jitted: Callable[..., Any] = numba.njit(parallel=True, error_model="numpy")(repeat)
    return jitted


@cache
def readers() -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return two functions that read words as fast as possible: on one thread, and on several.

    Each thread reads four parts at once: the hardware fetches little of the next page before it is asked for it, so
    that from beyond the caches one part alone comes at two thirds of the speed.
    """
    numba = importlib.import_module("numba")
    uint64, prange = numba.uint64, numba.prange

    def read(words: Any) -> Any:
        quarter = uint64(len(words) // 4)  # products with a signed number would be floats
        half = quarter + quarter
        first = second = third = fourth = uint64(0)
        for i in range(quarter):
            first += words[i]
            second += words[quarter + i]
            third += words[half + i]
            fourth += words[half + quarter + i]
        for i in range(half + half, uint64(len(words))):
            first += words[i]
        return first + second + third + fourth

    alone = numba.njit(nogil=True)(read)

    def spread(words: Any, threads: int) -> Any:
        total = uint64(0)
        for thread in prange(threads):
            total += alone(words[len(words) * thread // threads : len(words) * (thread + 1) // threads])
        return total

    return alone, numba.njit(parallel=True)(spread)
