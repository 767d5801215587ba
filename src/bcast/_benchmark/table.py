"""The table that `python -m bcast bench` prints: how fast bcast is on this machine, beside NumPy."""

from collections.abc import Callable
from itertools import product
from time import perf_counter

import numpy as np

import bcast
from bcast._benchmark.tasks import ARITHMETIC, calls_of
from bcast._benchmark.timing import measure
from bcast._benchmark.workloads import LOST, STATES, machine

__all__ = ["table"]

SHORT = ("3 -> 4x3", "gray -> RGB 1080p", "row of 3 x 1e6", "points + offset")
FULL = (  # one for each way in which inner axes can lie
    *(*SHORT, "bias NCHW", "bias NHWC", "row of 1000 x 1e4", "column of 1e5 x 100", "64,1,64,1 -> 64^4"),
    *("1,64,1,64 -> 64^4", "ten axes of 2", "scalar -> 1e6 bytes"),
    *ARITHMETIC,
)
HEAD = f"""
NumPy: its time / bcast's time. Below 1, bcast is the slower one; below {LOST}, the cell is LOST.
fresh: into a new array; warm: into the same `out` again. Fastest of several rounds, taken by turns;
a ? marks cells whose earlier and later rounds disagree by 15 %.

workload              dtype    state  bcast, us   GB/s   NumPy"""


def table(seconds: float = 20.0, short: bool = False, grow: Callable[[str], object] = str) -> str:
    """Compare bcast with NumPy for so many seconds, in a handful of cells if `short`; `grow` gets a dot for each."""
    deadline = perf_counter() + 0.9 * seconds  # the last cell may take longer than planned
    threads, lost, lines = bcast.get_num_threads(), 0, []
    chosen = list(product(SHORT if short else FULL, ("uint8", "float32"), STATES))
    for i, (name, dtype, state) in enumerate(chosen):
        if (begin := perf_counter()) >= deadline:
            break
        calls, out, nbytes = calls_of(name, dtype, state, threads)
        ours, theirs = (call() if out is None else (call(), out.copy())[1] for call in calls.values())
        if not np.array_equal(ours, theirs):
            raise AssertionError(f"bcast and NumPy differ in {name!r}, {dtype}, {state}")
        rounds = measure(calls, begin + (deadline - begin) / (len(chosen) - i) - perf_counter(), warming=4e-3)
        own, numpy = (min(each) for each in rounds.values())
        halves = [(min(each[: (len(each) + 1) // 2]), min(each[len(each) // 2 :])) for each in rounds.values()]
        lost += numpy < LOST * own
        marks = " LOST" * (numpy < LOST * own) + " ?" * any(max(pair) > 1.15 * min(pair) for pair in halves)
        speed = f"{own * 1e6:10.2f} {nbytes / own / 1e9:6.1f} {numpy / own:7.2f}"
        lines.append(f"{name:<21} {dtype:<8} {state:<5} {speed}{marks}")
        grow(".")
    left_out = f"; no time left for {len(chosen) - len(lines)}" * (len(lines) < len(chosen))
    return "\n".join([machine(threads), HEAD, *lines, "", f"{lost} of {len(lines)} cells lost{left_out}"])
