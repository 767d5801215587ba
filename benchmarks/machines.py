"""The machine that is measured, and timing on it: whether others use it too, and when the threads of a pool rest."""

import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from threading import get_native_id
from time import perf_counter, process_time, sleep
from typing import Any

from bcast._benchmark import timing

__all__ = ["Load", "cpus", "measure", "memory", "settle"]

BUSY = 0.25  # CPUs that others may use before ratios are off: more than two ticks of the clock in the first look
WARM_UP_SECONDS = 16e-3  # threads of OpenMP may spin for up to this long, 300 000 times, before they sleep


def cpus() -> int:
    """Return how many CPUs this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def memory() -> int:
    """Return how many bytes are available; if the system does not tell, a number that any machine has."""
    with suppress(OSError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable"):
                return int(line.split()[1]) << 10
    with suppress(AttributeError, OSError, ValueError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    return 1 << 31


def measure(calls: Mapping[str, Callable[[], Any]], seconds: float) -> dict[str, list[float]]:
    """Time calls by turns, each of which begins when the threads of the other competitors sleep."""
    return timing.measure(calls, seconds, WARM_UP_SECONDS, settle)


class Load:
    """How much other processes use the CPUs that this one may use, since it was made; only Linux tells."""

    def __init__(self) -> None:
        self.cpus = cpus()
        self.begin = self._now()

    def others(self) -> float:
        """Return how many CPUs other processes have used on average; 0 if the system does not tell."""
        busy, own, wall = (now - before for now, before in zip(self._now(), self.begin, strict=True))
        return min(max(0.0, (busy - own) / wall), self.cpus) if busy else 0.0  # ticks are long beside short times

    def caveat(self) -> str:
        """Return a warning if other processes use this machine too; otherwise an empty string."""
        others = self.others()
        if others < BUSY:
            return ""
        return f"this machine is busy: other processes used {others:.1f} of its {self.cpus} CPUs; ratios may be off"

    @staticmethod
    def _now() -> tuple[float, float, float]:
        """Return three numbers of seconds: the busy time of the CPUs, the CPU time of this process, and the clock."""
        busy = 0
        with suppress(OSError, AttributeError):
            ours = {f"cpu{number}" for number in os.sched_getaffinity(0)}
            for line in re.findall(r"^cpu\d.*", Path("/proc/stat").read_text(), re.MULTILINE):
                name, user, nice, system, _idle, _waiting, *rest = line.split()
                if name in ours:
                    busy += sum(map(int, (user, nice, system, *rest[:3])))  # interrupts; time taken by other guests
        ticks = os.sysconf("SC_CLK_TCK") if busy else 1
        return busy / ticks, process_time(), perf_counter()


def settle(most: float = 0.05) -> None:
    """Wait until the threads of this process sleep: in many pools, they spin for a while after their last work.

    Parameters
    ----------
    most : float
        Seconds to wait at most, as the threads of some pools never sleep.
    """
    end = perf_counter() + most
    while True:
        used, begin = process_time(), perf_counter()
        sleep(1e-3)
        now = perf_counter()
        at_work = _threads_at_work()
        if at_work is None:
            at_work = process_time() - used > 0.3 * (now - begin)
        if not at_work or now > end:
            break


def _threads_at_work() -> bool | None:
    """Return whether any other thread of this process has a CPU or waits for one; None if the system does not tell.

    The CPU time of the process does not tell on Linux, where that of a running thread grows by ticks of up to 10 ms.
    """
    try:
        states = {
            path.name: (path / "stat").read_text(errors="replace").rpartition(") ")[2][:1]
            for path in Path("/proc/self/task").iterdir()
        }
    except OSError:
        return None
    states.pop(str(get_native_id()), None)
    return "R" in states.values()
