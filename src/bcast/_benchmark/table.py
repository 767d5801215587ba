"""The table that `python -m bcast bench` prints: the speed of bcast and of NumPy on this machine."""

import os
import platform
from contextlib import suppress
from pathlib import Path
from time import perf_counter

import numpy as np

import bcast
from bcast._benchmark.timing import measure
from bcast._benchmark.workloads import COPIES, KNOWN, rows

LOST = 0.95  # ratios from here to 1 count as equal: no machine is quiet enough for a decision
HEAD = f"""
times: how many times as fast bcast is; below {LOST}, the row is LOST. The fastest of several rounds counts;
a ? marks rows whose earlier and later rounds disagree by 15 %.

{"workload":<24}{"NumPy's call":<45}NumPy, us bcast, us  times"""
NEXT = """
Next: docs/faster.md shows how to find such a line in your program, and how to replace it.
`python -m bcast run script.py` speeds up a program without a change; `python -m bcast bench` measures more."""


def cpu() -> str:
    """Name the processor."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def machine(threads: int) -> str:
    """Describe the versions, the machine and the number of threads in one line."""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    where = f"{cpu()}, {os.cpu_count()} CPUs, {platform.system()}; on {threads} thread{'s' * (threads > 1)} each"
    return f"bcast {bcast.__version__}; NumPy {np.__version__}; {python}; {where}, NumPy on 1"


def table(seconds: float = 20.0, short: bool = False) -> str:
    """Compare bcast with NumPy for `seconds` seconds; if `short`, only in typical workloads."""
    deadline = perf_counter() + 0.9 * seconds  # the last row may take longer than planned
    lost, lines, count = 0, list[str](), len(KNOWN) + 4 * len(COPIES) * (not short)
    for name, numpys, ours, arrays in rows(short):
        if (begin := perf_counter()) >= deadline:
            break
        calls = {"numpy": eval(f"lambda: {numpys}", arrays), "bcast": eval(f"lambda: {ours}", arrays)}
        result = calls["numpy"]()
        expected = arrays["out"].copy() if result is None else result
        found = calls["bcast"]()
        if found.shape != expected.shape or not np.allclose(found, expected, 1e-3, 1e-3):  # sums round otherwise
            raise AssertionError(f"bcast and NumPy differ in {name!r}: {numpys}")
        rounds = measure(calls, begin + (deadline - begin) / (count - len(lines)) - perf_counter(), warming=4e-3)
        theirs, own = (min(each) for each in rounds.values())
        halves = [(min(each[: (len(each) + 1) // 2]), min(each[len(each) // 2 :])) for each in rounds.values()]
        lost += theirs < LOST * own
        marks = " LOST" * (theirs < LOST * own) + " ?" * any(max(pair) > 1.15 * min(pair) for pair in halves)
        lines.append(f"{name:<24}{numpys:<45}{theirs * 1e6:9.1f} {own * 1e6:9.1f} {theirs / own:6.1f}{marks}")
    left_out = f"; no time left for {count - len(lines)}" * (len(lines) < count)
    summary = f"{lost} of {len(lines)} rows lost{left_out}"
    return "\n".join([machine(bcast.get_num_threads()), HEAD, *lines, "", summary, NEXT])
