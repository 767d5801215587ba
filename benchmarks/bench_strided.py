"""Strided data made contiguous: `broadcast` to the data's own shape beside NumPy's copy and torch's.

    python benchmarks/bench_strided.py [--threads N] [-k WORDS]

prints the best times, in microseconds, into the same output again and again, how many times as long the others take,
and how many bytes of output bcast writes a nanosecond.
"""

import argparse
import importlib.util
import sys
from collections.abc import Callable

import numpy as np
from machines import cpus, measure
from numpy.typing import NDArray

import bcast
from bcast._benchmark.table import cpu

SECONDS = 0.3
DTYPES = ("uint8", "uint16", "float32", "float64", "complex128")
# The shape of contiguous data, and the order in which its axes are wanted.
LAYOUTS = {
    "8 x 8": ((8, 8), (1, 0)),
    "32 x 32": ((32, 32), (1, 0)),
    "300 x 40": ((40, 300), (1, 0)),
    "1000 x 1000": ((1000, 1000), (1, 0)),
    "4096 x 4096": ((4096, 4096), (1, 0)),
    "image, channels first": ((1080, 1920, 3), (2, 0, 1)),
    "image, channels last": ((3, 1080, 1920), (1, 2, 0)),
    "features, channels first": ((8, 56, 56, 64), (0, 3, 1, 2)),
    "features, channels last": ((8, 64, 56, 56), (0, 2, 3, 1)),
    "heads": ((8, 128, 12, 64), (0, 2, 1, 3)),
    "width and height": ((1080, 1920, 3), (1, 0, 2)),
    "every second": ((1000, 2000), (0, 1)),
    "crop": ((1000, 2000), (0, 1)),
}


def laid_out(name: str, dtype: str) -> NDArray:
    """Return the data of a layout."""
    shape, order = LAYOUTS[name]
    data = (np.arange(np.prod(shape)) % 251).astype(dtype).reshape(shape).transpose(order)
    if name == "every second":
        return data[:, ::2]
    return data[:, :1000] if name == "crop" else data


def calls(data: NDArray, torch) -> dict[str, Callable]:
    """Make the calls of all competitors, each checked once."""
    out, expected = np.ones(data.shape, data.dtype), np.ascontiguousarray(data)
    made = {"bcast": lambda: bcast.broadcast(data, data.shape, out=out), "NumPy": lambda: np.copyto(out, data)}
    if torch is not None:
        kind = "int16" if data.dtype == "uint16" else data.dtype
        tensor, into = torch.from_numpy(data.view(kind)), torch.from_numpy(out.view(kind))
        made["torch"] = lambda: into.copy_(tensor)
    for name, call in made.items():
        out[:] = 1
        call()
        if not np.array_equal(out, expected):
            raise AssertionError(f"{name} is wrong")
    return made


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=cpus())
    parser.add_argument("-k", default="", metavar="WORDS", help="only lines that hold these words")
    arguments = parser.parse_args()
    bcast.set_num_threads(arguments.threads)
    torch = None
    if importlib.util.find_spec("torch"):
        import torch

        torch.set_num_threads(arguments.threads)
    print(f"{cpu()}; CPython {sys.version.split()[0]}, NumPy {np.__version__}; {arguments.threads} threads")
    for dtype in DTYPES:
        for name in LAYOUTS:
            if not all(word in f"{dtype} {name}" for word in arguments.k.split()):
                continue
            data = laid_out(name, dtype)
            best = {who: min(times) for who, times in measure(calls(data, torch), SECONDS).items()}
            ours = best.pop("bcast")
            others = "  ".join(f"{who} {time / ours:6.2f}" for who, time in best.items())
            print(f"{dtype:10} {name:24} {ours * 1e6:9.2f} us  {data.nbytes / ours / 1e9:6.2f}  {others}", flush=True)


if __name__ == "__main__":
    main()
