"""The costs of a call other than moving bytes: the steps of a small call, and the memory of a large result."""

from argparse import Namespace
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from time import perf_counter
from typing import Any

import numpy as np

import bcast
from bcast._api.converted import as_array
from bcast._benchmark import timing
from bcast._kernel import replicate
from bcast._rules.alignment import align
from bcast._runtime.arrays import result_array, shape_of
from benchmarks.harness import Cell, Check
from benchmarks.peers import Call, Names, Way, installed
from benchmarks.separate import WARM_UP_SECONDS

__all__ = ["measure_memory", "small_call_cells"]

# Small calls: four floats become 4 x 4 of them, 64 bytes, so that writing them is the least of it; 64 floats are
# summed. The last column is NumPy's time for a copy of the result. The first row is what timing a call costs;
# the steps are called from Python, which costs as much as the second row, `as_array` of an array.

NAMES = {
    **{function.__name__: function for function in (align, as_array, replicate, result_array, shape_of)},
    **{name: getattr(bcast, name) for name in bcast.__all__},
    "row": np.arange(4, dtype=np.float32),
    "like": np.tile(np.arange(4, dtype=np.float32), (4, 1)),
    "out": np.zeros((4, 4), np.float32),
    "square": np.ones((8, 8), np.float32),
    "axes": [1],
    "new": [0],
    "new_set": {0},
    "shape": [4, 4],
    "alignment": align((4,), (4, 4)),
}
STEPS = {  # and what must be true of the result
    "None": "result is None",
    'as_array("data", row)': "result is row",
    "shape_of(row)": "result == (4,)",
    "align((4,), (4, 4))": "(result.shape, result.source) == ((4, 4), (1, 4))",
    'result_array(None, row, (4, 4), "shape")': "result.shape == (4, 4)",
    'result_array(given, row, (4, 4), "shape")': "result is given",
    "replicate(row, alignment, given)": "result is given and np.array_equal(given, like)",
    "infer_shape((4,), (4, 4))": "result == (4, 4)",
}
CALLS = (
    "broadcast(row, (4, 4))",
    "broadcast(row, shape)",
    'broadcast(row, (4, 4), axes, mode="explicit")',
    'broadcast(row, (4, 4), (1,), mode="explicit")',
    'broadcast(row, (4, 4), mode="explicit", broadcast_axes=new)',
    'broadcast(row, (4, 4), mode="explicit", broadcast_axes=(0,))',
    'broadcast(row, (4, 4), mode="explicit", broadcast_axes=new_set)',
    'broadcast(row, (4, 4), mode="bidirectional")',
    'broadcast(row, (4, 4), mode="pdpd")',
    'broadcast(row, (4, 4), mode="pdpd", axis=1)',
    'broadcast(like, (4, 4), mode="none")',
    "broadcast_like(row, like)",
    "broadcast_to(row, (4, 4))",
)
SUMS = ("unbroadcast(square, (8,))", "unbroadcast(square, (1, 8))", "unbroadcast(square, (8, 1))")


def small_cell(name: str, group: str, state: str, ways: dict[str, Way], right: str, threads: int) -> Cell:
    """Make the cell of a call; warm ones write into `out`, and so does NumPy's."""
    known = {"given" if name == "out" and state != "warm" else name: value for name, value in NAMES.items()}

    def judge(names: Names, _numpys: Call) -> Check:
        return partial(fits, right, names)

    return Cell("small", name, group, "", state, threads, 0, lambda: known, ways, judge)


def fits(right: str, names: Names, result: Any) -> None:
    """Check what must be true of a result."""
    assert eval(right, {**names, "np": np, "result": result}), f"{result!r} does not fit {right!r}"


def small_call_cells(options: Namespace) -> Iterator[Cell]:
    """Yield steps, then calls, each fresh and warm, then sums."""
    for step, right in STEPS.items():
        yield small_cell(step, "step", "", {"bcast": step}, right, options.threads)

    right = "np.array_equal(result, like)"
    for call in CALLS:
        fresh: dict[str, Way] = {"bcast": call, "numpy": "like.copy()"}
        yield small_cell(call, "call", "fresh", fresh, right, options.threads)
        warm: dict[str, Way] = {"bcast": f"{call[:-1]}, out=out)", "numpy": "np.copyto(out, row)"}
        yield small_cell(call, "call", "warm", warm, right, options.threads)

    for call in SUMS:
        ways: dict[str, Way] = {"bcast": call, "numpy": "square.copy()"}
        right = "result.max() == (1 if result.size == 64 else 8)"
        yield small_cell(call, "sum", "fresh", ways, right, options.threads)


# The memory of large results: all arrays are filled alike, so that columns differ in nothing but where it comes from.

SIZES = [1 << 20, 2 << 20, 4_000_000, 16_000_000, 40_000_000, 64_000_000, 256_000_000]  # bytes
STAYING = 1 << 30  # bytes that stay, at most
LIKE = np.empty(0, np.uint8)
Fill = Callable[[int], Any]


def filled_by_bcast(size: int) -> Any:
    """Fill a new array of bcast's."""
    array = result_array(None, LIKE, (size,), "shape")
    array.fill(1)
    return array


def filled_by_numpy(size: int) -> Any:
    """Fill a new array of NumPy's."""
    array = np.empty(size, np.uint8)
    array.fill(1)
    return array


def filled_by_torch(size: int) -> Any:
    """Fill a new tensor."""
    torch = import_module("torch")
    return torch.empty(size, dtype=torch.uint8).fill_(1)


def that_stays(fills: dict[str, Fill], size: int) -> dict[str, float]:
    """Return the least seconds of filling an array that stays, so that the memory of each is new."""
    times: dict[str, list[float]] = {name: [] for name in fills}
    kept = []
    for _ in range(min(50, max(2, STAYING // len(fills) // size))):
        for name, fill in fills.items():
            begin = perf_counter()
            kept.append(fill(size))
            times[name].append(perf_counter() - begin)
    return {name: min(taken) for name, taken in times.items()}


def in_a_loop(fills: dict[str, Fill], size: int) -> dict[str, float]:
    """Return the least seconds of filling an array that is dropped before the next, and of filling one again."""
    warm = np.ones(size, np.uint8)
    calls: dict[str, Call] = {name: partial(fill, size) for name, fill in fills.items()}
    calls["warm"] = partial(warm.fill, 1)
    return {name: min(taken) for name, taken in timing.measure(calls, 1.0, WARM_UP_SECONDS).items()}


def measure_memory(options: Namespace) -> None:
    """Print what it costs to get the memory of a large result: the tables behind `_runtime/core.pyx`.

    The first table fills arrays that stay, so that the memory of each is new. The second one drops each before the
    next, as loops do, so that its memory may be had again.
    """
    fills: dict[str, Fill] = {"bcast": filled_by_bcast, "numpy": filled_by_numpy}
    if installed("torch"):
        import_module("torch").set_num_threads(1)
        fills["torch"] = filled_by_torch
    for title, times in (("arrays that stay", that_stays), ("in a loop", in_a_loop)):
        print(f"\n{title}, on one thread; us, and in brackets the time / bcast's")
        for size in SIZES:
            if options.only not in f"{title}, {size}":
                continue
            bcast.set_idle_limit(bcast.set_idle_limit(0))  # which gives idle memory back
            row = times(fills, size)
            columns = [f"{name} {taken * 1e6:7.0f} ({taken / row['bcast']:5.2f})" for name, taken in row.items()]
            print(f"{size:11}", *columns, flush=True)
