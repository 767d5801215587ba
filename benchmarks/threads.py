"""Threads beside others: what has the CPUs already, what waits for the GIL, and what a call leaves to the rest.

Means and slow calls count here: what the fastest call takes says nothing about a busy machine.
"""

import ctypes
import subprocess
import sys
import threading
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from time import perf_counter, sleep

import numpy as np
from numpy.typing import NDArray

import bcast
from bcast._benchmark import timing
from benchmarks.peers import Call
from benchmarks.separate import WARM_UP_SECONDS

__all__ = ["measure_busy", "measure_gil", "measure_ticks"]

Times = NDArray[np.float64]  # seconds of each call

# Beside busy loops, and beside processes that do the same.

BUSY_SIZES = {"256 KiB": 1 << 18, "1.5 MiB": 3 << 19, "6 MB": 6 << 20, "64 MB": 64 << 20}
LOOP = "while True: pass"
ALIKE = """
import numpy as np, bcast
bias, out = np.arange(64, dtype=np.float32), np.ones(({nbytes} // 256, 64), np.float32)
while True:
    bcast.broadcast(bias, out.shape, out=out)
    bcast.unbroadcast(out, (64,))
"""
LOADS = {"nothing": [], "1 loop": [LOOP], "2 loops": [LOOP] * 2, "4 loops": [LOOP] * 4, "3 alike": [ALIKE] * 3}


@contextmanager
def beside(scripts: list[str]) -> Iterator[None]:
    """Keep other processes busy."""
    with ExitStack() as stack:
        for script in scripts:
            process = stack.enter_context(subprocess.Popen([sys.executable, "-c", script]))
            stack.callback(process.kill)
        sleep(0.5 if scripts else 0.05)
        yield


def on(threads: int, call: Call) -> Call:
    """Make a call on a number of threads."""

    def limited() -> object:
        bcast.set_num_threads(threads)
        return call()

    return limited


def one_by_one(calls: list[Call], seconds: float) -> list[Times]:
    """Time calls that take turns, call by call; return all times of each."""
    times: list[list[float]] = [[] for _ in calls]
    end = perf_counter() + seconds
    while perf_counter() < end or len(times[0]) < 20:
        for call, taken in zip(calls, times, strict=True):
            begin = perf_counter()
            call()
            taken.append(perf_counter() - begin)
    return [np.array(taken) for taken in times]


def compared(times: Times, others: Times) -> str:
    """Compare means, and 99th percentiles in brackets."""
    slow, slow_others = np.percentile(times, 99), np.percentile(others, 99)
    return f"{times.mean() / others.mean():.2f} ({slow / slow_others:.2f})"


def measure_busy(options: Namespace) -> None:
    """Print what threads cost where something else has the CPUs.

    A bias of 64 channels in NHWC order, float32, is copied into a warm `out`, and such a gradient is summed back to the
    channels: on one thread, on all, and the copy by `numpy.copyto`. They take turns, call by call.
    """
    threads, bias = options.threads, np.arange(64, dtype=np.float32)
    print("means, and 99th percentiles in brackets, of calls on all threads over those on one and of numpy.copyto")
    print(f"{'beside':<10}{'size':<9}{'copies / 1 thread':>19}{'copies / copyto':>17}{'sums / 1 thread':>18}")
    for load, scripts in LOADS.items():
        for size, nbytes in BUSY_SIZES.items():
            if options.only not in f"{load}, {size}":
                continue
            out, sums = np.ones((nbytes // 256, 64), np.float32), np.empty(64, np.float32)

            def copy(out: NDArray[np.float32] = out) -> object:
                return bcast.broadcast(bias, out.shape, out=out)

            def add(out: NDArray[np.float32] = out, sums: NDArray[np.float32] = sums) -> object:
                return bcast.unbroadcast(out, (64,), out=sums)

            def assign(out: NDArray[np.float32] = out) -> None:
                np.copyto(out, bias)

            with beside([script.format(nbytes=nbytes) for script in scripts]):
                one, many, numpy = one_by_one([on(1, copy), on(threads, copy), assign], options.seconds)
                one_sum, many_sum = one_by_one([on(1, add), on(threads, add)], options.seconds)
            copies = f"{compared(many, one):>19}{many.mean() / numpy.mean():>17.2f}"
            print(f"{load:<10}{size:<9}{copies}{compared(many_sum, one_sum):>18}", flush=True)


# What a call leaves to other Python threads.

TICK_SECONDS = 1e-3
LONG_SECONDS = 5e-3
ROW_LENGTH = 1000  # bytes


def gaps(call: Call) -> tuple[float, Times]:
    """Make a call beside a ticking thread; return its seconds and those between any two ticks around and in it."""
    ticks: list[float] = []
    ticking, stop = threading.Event(), threading.Event()

    def tick() -> None:
        while not stop.is_set():
            ticks.append(perf_counter())
            ticking.set()
            sleep(TICK_SECONDS)
        ticks.append(perf_counter())

    thread = threading.Thread(target=tick)
    thread.start()
    ticking.wait()
    begin = perf_counter()
    result = call()
    end = perf_counter()
    stop.set()
    thread.join()
    del result  # not before: giving memory back takes its time, too, and is no part of the call

    times = np.array(ticks)
    between = (times[1:] > begin) & (times[:-1] < end)
    return end - begin, np.diff(times)[between]


def tick_line(name: str, call: Call, rounds: int) -> str:
    """Measure a call several times; return a line of the table."""
    seconds, seen = zip(*[gaps(call) for _ in range(rounds)], strict=True)
    largest = [gap.max() * 1e3 for gap in seen]
    together = np.concatenate(seen) * 1e3
    median, most, nearly = np.percentile(together, [50, 99, 99.9])
    of_all = f"{together.size:7} {median:8.2f} {most:8.2f} {nearly:8.2f}"
    of_rounds = f"{min(largest):9.2f} {np.median(largest):9.2f} {max(largest):9.2f}"
    return f"{name:<26} {min(seconds) * 1e3:9.0f} {of_all} {of_rounds} {(together > LONG_SECONDS * 1e3).sum():6}"


def measure_ticks(options: Namespace) -> None:
    """Print how long a call keeps the rest of the program waiting: the gaps that a ticking thread sees beside it.

    A Python thread does nothing but note the time, once a millisecond as far as it is let. Meanwhile the main thread
    writes `--gigabytes`: bcast into warm memory and into fresh, and `numpy.repeat`, which keeps the GIL. Beside a call
    that releases the GIL the gaps should be those of an idle program, which the first line shows. Where bcast works on
    all CPUs the ticking thread has to share one of them, so that some gaps are the scheduler's.
    """
    rows = round(options.gigabytes * 1e9) // ROW_LENGTH
    row, column = np.arange(ROW_LENGTH).astype(np.uint8), np.arange(rows).astype(np.uint8)[:, None]
    out = np.ones((rows, ROW_LENGTH), np.uint8)
    print(f"{out.nbytes} bytes a call, {options.rounds} rounds; in ms: the fastest call, then gaps between two ticks:")
    print("of all rounds together, then the largest of a round: in the best, the median, the worst")
    print(f"{'':<26} {'call':>9} {'gaps':>7} {'median':>8} {'99%':>8} {'99.9%':>8}", end="")
    print(f" {'best':>9} {'median':>9} {'worst':>9} {'> 5 ms':>6}")
    calls: dict[str, Call] = {
        "nothing (0.5 s of sleep)": lambda: sleep(0.5),
        "bcast, warm, row": lambda: bcast.broadcast_to(row, out.shape, out=out),
        "bcast, warm, column": lambda: bcast.broadcast_to(column, out.shape, out=out),
        "bcast, fresh, row": lambda: bcast.broadcast_to(row, out.shape),
        "bcast, fresh, column": lambda: bcast.broadcast_to(column, out.shape),
        "numpy.repeat, fresh": lambda: np.repeat(column, ROW_LENGTH, axis=1),
    }
    for name, call in calls.items():
        if options.only in name:
            call()
            print(tick_line(name, call, options.rounds), flush=True)


# From how many bytes on the GIL should be released: the table behind `RELEASING_BYTES` in `_runtime/tuning.h`. The same
# memset is called through two prototypes of ctypes that differ in nothing but that one keeps the GIL and the other one
# releases it.

PROTOTYPE = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t)
ADDRESS = ctypes.cast(ctypes.memset, ctypes.c_void_p).value or 0
KEEP, RELEASE = ctypes.PYFUNCTYPE(*PROTOTYPE)(ADDRESS), ctypes.CFUNCTYPE(*PROTOTYPE)(ADDRESS)


def writers(size: int) -> dict[str, Call]:
    """Make the three calls that write `size` bytes."""
    out = np.ones(size, np.uint8)
    data, address = out[:1].copy(), out.ctypes.data
    return {
        "keep": lambda: KEEP(address, 1, size),
        "release": lambda: RELEASE(address, 1, size),
        "bcast": lambda: bcast.broadcast(data, (size,), out=out),
    }


def beside_a_busy_thread(call: Callable[[], object], seconds: float = 0.2) -> float:
    """Return the mean seconds of a call while another thread runs Python code without a pause."""
    stop = threading.Event()

    def spin() -> None:
        while not stop.is_set():
            pass

    thread = threading.Thread(target=spin)
    thread.start()
    try:
        count, begin = 0, perf_counter()
        while (elapsed := perf_counter() - begin) < seconds:
            call()
            count += 1
    finally:
        stop.set()
        thread.join()
    return elapsed / count


def measure_gil(options: Namespace) -> None:
    """Print what it costs to release the GIL, by the bytes that a call writes.

    Alone, the difference between the two calls is the price of the way there and back. Beside a thread of busy Python
    code it is the time to get the GIL back, up to the switch interval: what a call that releases it loses. What the
    other thread loses by a call that keeps it is the call's own time.
    """
    print(f"us; switch interval {sys.getswitchinterval() * 1e3:g} ms; price: release - keep, alone; share: of bcast's")
    print(f"{'':8}  {'alone':^46}  {'beside a busy thread':^29}")
    heads = [f"{'bytes':>8} ", *(f"{name:>9}" for name in ("keep", "release", "bcast"))]
    print(*heads, f"{'price':>8}  share ", *heads[1:])
    for size in (1024 << doubled for doubled in range(11)):
        if options.only not in str(size):
            continue
        calls = writers(size)
        rounds = timing.measure(calls, 0.3, WARM_UP_SECONDS)
        alone = {name: min(taken) * 1e6 for name, taken in rounds.items()}
        busy = [beside_a_busy_thread(call) * 1e6 for call in calls.values()]
        price = alone["release"] - alone["keep"]
        columns = [*(f"{taken:9.2f}" for taken in alone.values()), f"{price:8.3f} {price / alone['bcast']:6.1%} "]
        print(f"{size:8} ", *columns, *(f"{taken:9.2f}" for taken in busy), flush=True)
