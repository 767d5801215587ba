"""What does it cost to get the memory of a large result? The tables behind its constants in `_runtime/memory.pxi`.

    python benchmarks/bench_memory.py

The first table fills arrays that stay, so that the memory of each is new. The second one drops each before the next, as
loops do, so that its memory may be had again. All are filled alike: the columns differ in nothing but where the memory
comes from.
"""

import sys
from collections.abc import Callable
from time import perf_counter

import numpy as np
from machines import measure

import bcast
from bcast._benchmark.table import cpu
from bcast._runtime.core import result_array

SIZES = [1 << 20, 2 << 20, 4_000_000, 16_000_000, 40_000_000, 64_000_000, 256_000_000]
LIKE = np.empty(0, np.uint8)


TOTAL = 1 << 30  # bytes that stay in the first table, at most


def ours(size: int):
    array = result_array(None, LIKE, (size,), "shape")
    array.fill(1)
    return array


def numpys(size: int):
    array = np.empty(size, np.uint8)
    array.fill(1)
    return array


def torchs(size: int):
    import torch

    return torch.empty(size, dtype=torch.uint8).fill_(1)


def once(fills: dict, size: int) -> dict:
    """Return the best time of filling an array that stays."""
    times, kept = {name: [] for name in fills}, []
    for _ in range(min(50, max(2, TOTAL // len(fills) // size))):
        for name, fill in fills.items():
            start = perf_counter()
            kept.append(fill(size))
            times[name].append(perf_counter() - start)
    return {name: min(rounds) for name, rounds in times.items()}


def in_a_loop(fills: dict, size: int) -> dict:
    """Return the best time of filling an array that is dropped before the next, and of filling one again."""
    warm = np.ones(size, np.uint8)
    calls = {name: lambda fill=fill: fill(size) for name, fill in fills.items()}
    return {name: min(rounds) for name, rounds in measure({**calls, "warm": lambda: warm.fill(1)}, 1).items()}


def table(title: str, times: Callable[[dict, int], dict], fills: dict) -> None:
    """Print the times of all sizes, in microseconds, and how much longer than ours they are."""
    print(f"\n{title}")
    for size in SIZES:
        bcast.set_idle_limit(bcast.set_idle_limit(0))
        row = times(fills, size)
        print(f"{size:11}", *(f"{name} {time * 1e6:7.0f} ({time / row['bcast']:5.2f})" for name, time in row.items()))


def main() -> None:
    """Print both tables."""
    fills = {"bcast": ours, "NumPy": numpys}
    try:
        import torch
    except ImportError:
        pass
    else:
        torch.set_num_threads(1)
        fills["torch"] = torchs
    print(f"{cpu()}; CPython {sys.version.split()[0]}, NumPy {np.__version__}; one thread; best times in us (by ours)")
    table("new memory", once, fills)
    table("in a loop", in_a_loop, fills)


if __name__ == "__main__":
    main()
