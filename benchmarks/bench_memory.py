"""What does it cost to get the memory of a large result? The tables behind `LARGE`, `HOT` and `SPARE` in _memory.pyx.

    python benchmarks/bench_memory.py

The first table fills new memory once: it is dropped before the next round, and nothing is kept. The second one does it
in a loop, as programs do: what was dropped may be had again. Each array is filled by the same memset, so that the rows
differ in nothing but where the memory came from.
"""

import sys

import numpy as np

import bcast
from bcast._bench import cpu, measure
from bcast._memory import result_array

SIZES = [1 << 20, 2 << 20, 4_000_000, 16_000_000, 40_000_000, 64_000_000, 256_000_000]
LIKE = np.empty(0, np.uint8)


def ours(size: int) -> None:
    result_array(None, LIKE, (size,), "shape").fill(1)


def numpys(size: int) -> None:
    np.empty(size, np.uint8).fill(1)


def torchs(size: int) -> None:
    import torch

    torch.empty(size, dtype=torch.uint8).fill_(1)


def table(title: str, limit: int) -> None:
    """Print the times of all sizes with so many bytes kept."""
    fills = {"bcast": ours, "NumPy": numpys}
    if "torch" in sys.modules:
        fills["torch"] = torchs
    bcast.set_idle_limit(limit)
    print(f"\n{title}\n{'bytes':>11}  {'warm':>9}", *(f"{name:>9}" for name in fills), "NumPy/bcast bcast/warm")
    for size in SIZES:
        warm = np.ones(size, np.uint8)
        calls = {"warm": lambda warm=warm: warm.fill(1)}
        calls |= {name: lambda fill=fill, size=size: fill(size) for name, fill in fills.items()}
        best = {name: min(rounds) * 1e6 for name, rounds in measure(calls, 1).items()}
        row = " ".join(f"{time:9.0f}" for time in best.values())
        print(f"{size:11}  {row} {best['NumPy'] / best['bcast']:11.2f} {best['bcast'] / best['warm']:10.2f}")


def main() -> None:
    """Print both tables."""
    try:
        import torch
    except ImportError:
        pass
    else:
        torch.set_num_threads(1)
    print(f"{cpu()}; CPython {sys.version.split()[0]}, NumPy {np.__version__}; one thread; best times in us")
    table("nothing is kept", 0)
    table("up to 1 GiB is kept", 1 << 30)


if __name__ == "__main__":
    main()
