"""The functions that tasks run, each on the blocks of one chunk. Workers import them by name.

In: a block, perhaps in nested lists of one item, as `blockwise` passes it. Out: the chunk.
"""

import multiprocessing
import os
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bcast._api.converted import as_array
from bcast._api.copies import broadcast, repeat, tile
from bcast._api.elementwise import chain, where
from bcast._rules.arguments import Shape
from bcast._rules.types import ChainCasting
from bcast._runtime.core import memory_info, set_idle_limit, set_num_threads

_settled_in = -1  # the id of the process that `settle` has prepared


def broadcast_block(block: Any, shape: Shape, axes: Shape, to: np.dtype[Any], materialise: bool) -> NDArray[Any]:
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
    return data if data.shape == shape else np.broadcast_to(data, shape)


def tile_block(block: Any, ranges: tuple[tuple[int, int], ...], to: np.dtype[Any]) -> NDArray[Any]:
    """Make a chunk of a tiled array, given its first item in the block and its length along each axis."""
    data = block_of("A", block)
    reps = []
    for axis, (begin, wanted) in enumerate(ranges):
        if begin:
            data = np.roll(data, -begin, axis)
        data = data[(slice(None),) * axis + (slice(wanted),)]
        reps.append(-(-wanted // max(data.shape[axis], 1)))
    out = tile(data, reps, dtype=to, casting="unsafe")
    shape = tuple(wanted for _, wanted in ranges)
    return out if out.shape == shape else out[tuple(map(slice, shape))].copy()


def chain_block(
    block: Any,
    *operands: Any,
    functions: Sequence[tuple[Any, int]],
    own: np.dtype[Any],
    casting: ChainCasting = "unsafe",
) -> NDArray[Any]:
    """Run a chain of functions. The number beside each function says how many of the next operands it has."""
    rest = iter(operands)
    steps = []
    for function, count in functions:
        steps.append((function, *[next(rest) for _ in range(count)]) if count else function)
    result: NDArray[Any] = chain(block_of("data", block), *steps, dtype=own, casting=casting)
    return result


def where_block(condition: Any, x: Any, y: Any) -> NDArray[Any]:
    """Choose items of blocks or Python numbers; a number takes the dtype of the other operand."""
    blocks = []
    for name, operand in (("condition", condition), ("x", x), ("y", y)):
        blocks.append(operand if type(operand) in (bool, int, float, complex) else block_of(name, operand))
    result: NDArray[Any] = where(*blocks)
    return result


def repeat_block(block: Any, counts: tuple[Any, ...], to: np.dtype[Any]) -> NDArray[Any]:
    """Repeat the items of a block along each axis, by one count for all items or one count for each."""
    data = block_of("a", block)
    return repeat(data, counts, axis=tuple(range(data.ndim)), dtype=to, casting="unsafe")


def block_of(name: str, block: Any) -> NDArray[Any]:
    """Prepare this process for work, then take a block out of its nested lists; refuse masks."""
    settle()
    while isinstance(block, list):
        [block] = block
    return as_array(name, block)


def settle() -> None:
    """Prepare this process on its first task: limit the idle memory of a worker, and give a task one thread.

    A task outside of the main thread uses one thread anyway. Environment variables take precedence.
    """
    global _settled_in
    if _settled_in == os.getpid():
        return
    _settled_in = os.getpid()
    limit = 0
    if distributed := sys.modules.get("distributed.worker"):
        with suppress(ValueError):  # if no worker runs this task
            limit = distributed.get_worker().memory_manager.memory_limit or 0
    if limit and "BCAST_IDLE_BYTES" not in os.environ:
        set_idle_limit(min(memory_info().limit, int(limit) // 20))
    in_pool = multiprocessing.parent_process() is not None and threading.current_thread() is threading.main_thread()
    if in_pool and "BCAST_NUM_THREADS" not in os.environ:
        set_num_threads(1)
