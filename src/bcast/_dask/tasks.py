"""The functions that tasks run, each on the blocks of one chunk. They are found by their names where tasks run.

In: a block, or where a chunk is made of several, nested lists of them, as `blockwise` gives them. Out: the chunk.
"""

import multiprocessing
import os
import sys
import threading
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from bcast._api.broadcast import broadcast
from bcast._api.converted import as_array
from bcast._api.repeats import repeat
from bcast._rules.arguments import Shape
from bcast._runtime.core import memory_info, result_array, set_idle_limit, set_num_threads

__all__ = ["block_of", "broadcast_block", "repeat_block", "reshape_block", "settle", "tile_block"]

IDLE_PART = 0.05  # of a worker's memory
_settled_in = -1  # the process


def broadcast_block(
    block: Any, shape: Shape, axes: tuple[int, ...], to: np.dtype[Any], materialise: bool
) -> NDArray[Any]:
    """Broadcast a block to a chunk of `shape`. Its axis i is mapped to the chunk's ``axes[i]``; -1 means to none."""
    data = block_of("data", block)
    source = [1] * len(shape)
    for length, place in zip(data.shape, axes, strict=True):
        if place >= 0:
            source[place] = length
    data = data.reshape(source)
    if materialise:
        return broadcast(data, shape, dtype=to, casting="unsafe")
    if to != data.dtype:
        data = broadcast(data, data.shape, dtype=to, casting="unsafe")
    return np.broadcast_to(data, shape)


def tile_block(
    block: Any, spans: tuple[tuple[int, int, int], ...], axes: tuple[int, ...], to: np.dtype[Any]
) -> NDArray[Any]:
    """Make a chunk of a tiled array from a block, or from nested lists of all blocks along `axes`, the outermost first.

    For each axis of the chunk, a span says after how many items the data is repeated, with which item the chunk begins,
    and its length.
    """
    settle()
    blocks = list(_placed(block, axes))
    shape = tuple(wanted for _, _, wanted in spans)
    out = result_array(None, blocks[0][1], shape, "reps", to)
    for at, data in blocks:
        together = out.dtype.kind != "T"  # NumPy makes no windows of StringDType
        runs = [_runs(at.get(axis, 0), data.shape[axis], *span, together) for axis, span in enumerate(spans)]
        for run in product(*runs):
            source = data[tuple(items for items, _, _ in run) + (Ellipsis,)]  # lest data without axes become a scalar
            target = out[tuple(places for _, places, _ in run) + (Ellipsis,)]
            for axis in reversed([axis for axis, (_, _, times) in enumerate(run) if times > 1]):
                windows = sliding_window_view(target, source.shape[axis], axis, writeable=True)
                windows = windows[(slice(None),) * axis + (slice(None, None, spans[axis][0]),)]
                target = np.moveaxis(windows, -1, axis + 1)
                source = np.expand_dims(source, axis)
            broadcast(source, target.shape, casting="unsafe", out=target)
    return out


def reshape_block(block: Any, shape: Shape) -> NDArray[Any]:
    """Drop axes of length 1."""
    return block_of("data", block).reshape(shape)


def repeat_block(block: Any, counts: tuple[Any, ...], to: np.dtype[Any]) -> NDArray[Any]:
    """Repeat the items of a block along each axis, by a count for all or one for each."""
    data = block_of("a", block)
    return repeat(data, counts, axis=tuple(range(data.ndim)), dtype=to, casting="unsafe")


def block_of(name: str, block: Any) -> NDArray[Any]:
    """Take a block out of the lists that it came in, once this process is ready for work; refuse masks."""
    settle()
    while isinstance(block, list):
        [block] = block
    return as_array(name, block)


def _placed(block: Any, axes: tuple[int, ...]) -> Iterator[tuple[dict[int, int], NDArray[Any]]]:
    """Yield each block with the places where it begins along `axes`."""
    if not axes:
        yield {}, as_array("A", block)
        return
    begin = 0
    for each in block:
        for at, data in _placed(each, axes[1:]):
            yield {axes[0]: begin} | at, data
        begin += data.shape[axes[0]]


def _runs(
    place: int, length: int, period: int, begin: int, wanted: int, together: bool
) -> Iterator[tuple[slice, slice, int]]:
    """Yield which items of a block go to which places of a chunk, how often, along one axis.

    The block's items begin at `place` of each period. Whole repetitions come `together`.
    """
    if not length:
        return
    at = place - begin
    at += -((at + length - 1) // period) * period  # of the first period of which the chunk has an item
    while at < wanted:
        low, high = max(at, 0), min(at + length, wanted)
        times = (wanted - at - length) // period + 1 if together and high - low == length else 1
        yield slice(low - at, high - at), slice(low, high + (times - 1) * period), times
        at += times * period


def settle() -> None:
    """Make this process fit for tasks, on the first of them: little idle memory in a worker, one thread for a task.

    Tasks in threads have one thread as it is. What the environment says stays.
    """
    global _settled_in
    if _settled_in == os.getpid():
        return
    _settled_in = os.getpid()
    limit = _worker_limit()
    if limit and "BCAST_IDLE_BYTES" not in os.environ:
        set_idle_limit(min(memory_info().limit, int(IDLE_PART * limit)))
    in_pool = multiprocessing.parent_process() is not None and threading.current_thread() is threading.main_thread()
    if in_pool and "BCAST_NUM_THREADS" not in os.environ:
        set_num_threads(1)


def _worker_limit() -> int:
    """Return the memory that the worker of `distributed` may have that runs this task, or 0."""
    distributed = sys.modules.get("distributed.worker")
    if distributed is None:
        return 0
    try:
        worker = distributed.get_worker()
    except ValueError:  # there is none
        return 0
    return int(worker.memory_manager.memory_limit or 0)
