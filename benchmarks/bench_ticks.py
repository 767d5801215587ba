"""How long does a call keep the rest of the program waiting? The gaps that a ticking thread sees beside it.

    python benchmarks/bench_ticks.py [--bytes 1000000000] [--rounds 5]

A Python thread does nothing but note the time, once a millisecond as far as it is let. Meanwhile the main thread
writes 1 GB: bcast into warm memory and into fresh, and `numpy.repeat`, which keeps the GIL. Beside a call that gives
the GIL away the gaps should be those of an idle program, which the first line shows: some are the machine's own. Where
bcast works on all CPUs the ticking thread has to share one of them, so that some are the scheduler's.
"""

import argparse
import sys
import threading
from collections.abc import Callable
from time import perf_counter, sleep

import numpy as np

import bcast
from bcast._benchmark.table import cpu

TICK = 1e-3  # seconds
LIMIT = 5e-3


def gaps(call: Callable[[], object]) -> tuple[float, np.ndarray]:
    """Make a call beside a ticking thread; return its seconds and those between any two ticks around and in it."""
    ticks: list[float] = []
    ticking, stop = threading.Event(), threading.Event()

    def tick() -> None:
        while not stop.is_set():
            ticks.append(perf_counter())
            ticking.set()
            sleep(TICK)
        ticks.append(perf_counter())

    thread = threading.Thread(target=tick)
    thread.start()
    ticking.wait()
    start = perf_counter()
    result = call()
    end = perf_counter()
    stop.set()
    thread.join()
    del result  # not before: giving memory back takes its time, too, and is no part of the call
    times = np.array(ticks)
    between = (times[1:] > start) & (times[:-1] < end)
    return end - start, np.diff(times)[between]


def line(name: str, call: Callable[[], object], rounds: int) -> str:
    """Measure a call several times; return a line of the table."""
    seconds, seen = zip(*[gaps(call) for _ in range(rounds)], strict=True)
    largest = [gap.max() * 1e3 for gap in seen]
    together = np.concatenate(seen) * 1e3
    median, most, nearly = np.percentile(together, [50, 99, 99.9])
    return (
        f"{name:<26} {min(seconds) * 1e3:9.0f} {together.size:7} {median:8.2f} {most:8.2f} {nearly:8.2f}"
        f" {min(largest):9.2f} {np.median(largest):9.2f} {max(largest):9.2f} {(together > LIMIT * 1e3).sum():6}"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bytes", type=int, default=10**9, help="how many a call writes (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="how often each call is made (default: %(default)s)")
    arguments = parser.parse_args()
    columns = arguments.bytes // 1000
    row = np.arange(1000, dtype=np.uint8)
    column = np.arange(columns, dtype=np.int32).astype(np.uint8)[:, None]
    out = np.ones((columns, 1000), np.uint8)
    print(f"{cpu()}; CPython {sys.version.split()[0]}; bcast on {bcast.get_num_threads()} threads")
    print(
        f"{out.nbytes} bytes a call, {arguments.rounds} rounds; in ms: the fastest call, and gaps between two ticks of"
    )
    print(f"{TICK * 1e3:g} ms: of all rounds together, then the largest of a round: in the best, the median, the worst")
    print(f"{'':<26} {'call':>9} {'gaps':>7} {'median':>8} {'99%':>8} {'99.9%':>8}", end="")
    print(f" {'best':>9} {'median':>9} {'worst':>9} {'> 5 ms':>6}")
    calls = {
        "nothing (0.5 s of sleep)": lambda: sleep(0.5),
        "bcast, warm, row": lambda: bcast.broadcast_to(row, out.shape, out=out),
        "bcast, warm, column": lambda: bcast.broadcast_to(column, out.shape, out=out),
        "bcast, fresh, row": lambda: bcast.broadcast_to(row, out.shape),
        "bcast, fresh, column": lambda: bcast.broadcast_to(column, out.shape),
        "numpy.repeat, fresh": lambda: np.repeat(column, 1000, axis=1),
    }
    for name, call in calls.items():
        call()
        print(line(name, call, arguments.rounds), flush=True)


if __name__ == "__main__":
    main()
