"""What do threads cost where something else has the CPUs? Calls beside busy loops and processes that do the same.

    python benchmarks/bench_busy.py [--seconds 1]

A bias of 64 channels in NHWC order, float32, is copied into a warm `out`, and such a gradient is summed back to the
channels: on one thread, on as many as by default, and the copy by `numpy.copyto`. The three take turns, call by call,
so that whatever else the machine does meets all of them alike. Means count here, and slow calls: what the fastest call
takes says nothing about a busy machine.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from time import perf_counter, sleep

import numpy as np

import bcast
from bcast._benchmark.table import cpu

SIZES = {"256 KiB": 1 << 18, "1.5 MiB": 3 << 19, "6 MB": 6 << 20, "64 MB": 64 << 20}
LOADS = {
    "nothing": (),
    "1 loop": ("loop",),
    "2 loops": ("loop",) * 2,
    "4 loops": ("loop",) * 4,
    "3 alike": ("alike",) * 3,
}

LOOP = "while True: pass"
ALIKE = """
import numpy as np, bcast
bias, out = np.arange(64, dtype=np.float32), np.ones(({nbytes} // 256, 64), np.float32)
while True:
    bcast.broadcast(bias, out.shape, out=out)
    bcast.unbroadcast(out, (64,))
"""


@contextmanager
def beside(load: tuple[str, ...], nbytes: int) -> Iterator[None]:
    """Keep other processes busy."""
    scripts = [LOOP if kind == "loop" else ALIKE.format(nbytes=nbytes) for kind in load]
    with ExitStack() as stack:
        for script in scripts:
            process = stack.enter_context(subprocess.Popen([sys.executable, "-c", script]))
            stack.callback(process.kill)
        sleep(0.5 if load else 0.05)
        yield


def on(threads: int, call: Callable[[], object]) -> Callable[[], object]:
    """Make a call on so many threads."""

    def limited() -> object:
        bcast.set_num_threads(threads)
        return call()

    return limited


def by_turns(calls: list[Callable[[], object]], seconds: float) -> list[np.ndarray]:
    """Time calls by turns; return all times of each."""
    times: list[list[float]] = [[] for _ in calls]
    end = perf_counter() + seconds
    while perf_counter() < end or len(times[0]) < 20:
        for call, taken in zip(calls, times, strict=True):
            start = perf_counter()
            call()
            taken.append(perf_counter() - start)
    return [np.array(taken) for taken in times]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1.0, help="for each line and operation (default: %(default)s)")
    arguments = parser.parse_args()
    threads = bcast.get_num_threads()
    print(f"{cpu()}, {os.cpu_count()} CPUs; CPython {sys.version.split()[0]}; {threads} threads by default")
    print("means, and 99th percentiles in brackets, of default calls over those of one thread and of numpy.copyto")
    print(f"{'beside':<10}{'size':<9}{'copies / 1 thread':>19}{'copies / copyto':>17}{'sums / 1 thread':>18}")
    bias = np.arange(64, dtype=np.float32)
    for name, load in LOADS.items():
        for size, nbytes in SIZES.items():
            out = np.ones((nbytes // 256, 64), np.float32)
            sums = np.empty(64, np.float32)

            def copy(out: np.ndarray = out) -> object:
                return bcast.broadcast(bias, out.shape, out=out)

            def add(out: np.ndarray = out, sums: np.ndarray = sums) -> object:
                return bcast.unbroadcast(out, (64,), out=sums)

            def assign(out: np.ndarray = out) -> object:
                return np.copyto(out, bias)

            with beside(load, nbytes):
                one, many, numpy = by_turns([on(1, copy), on(threads, copy), assign], arguments.seconds)
                one_sum, many_sum = by_turns([on(1, add), on(threads, add)], arguments.seconds)
            print(
                f"{name:<10}{size:<9}{ratio(many, one):>19}{many.mean() / numpy.mean():>17.2f}"
                f"{ratio(many_sum, one_sum):>18}",
                flush=True,
            )


def ratio(times: np.ndarray, others: np.ndarray) -> str:
    """Compare means and slow calls."""
    slow, slow_others = np.percentile(times, 99), np.percentile(others, 99)
    return f"{times.mean() / others.mean():.2f} ({slow / slow_others:.2f})"


if __name__ == "__main__":
    main()
