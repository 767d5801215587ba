"""Results as programs use them: in a loop, each kept until the next one is there, and read as soon as they are written.

Both punish what a benchmark of the call alone would not see: pages that come from the system each time, and stores past
the caches from which the next step would have read.
"""

from dataclasses import dataclass

import numpy as np
from conftest import Case
from peers import COMPETITORS, prepare
from workloads import Task, Workload

DTYPE = "float32"
SECONDS = 0.5
KEPT, READ = "kept", "read"


@dataclass(frozen=True)
class Use(Case):
    """A case whose results are used; its state is 'kept', or what the result goes to, and 'read'."""

    def calls(self, names):
        """Make the calls, each with its use."""
        place = "warm" if self.state.startswith("warm") else "fresh"
        task = Task.of(self.workload, self.dtype, place, self.threads)
        use = keep if self.state == KEPT else lambda call: read(call, task.out)
        return {name: use(call) for name, call in prepare(task, names).items()}, {}


def keep(call):
    """Let each result live until the next one is there."""
    last = []

    def kept():
        last[:] = [call()]

    return kept


def read(call, out):
    """Reduce the result by NumPy, whoever wrote it."""
    if out is None:
        return lambda: np.max(call())

    def written():
        call()
        return np.max(out)

    return written


def workloads(megabytes):
    """Yield results of so many MB."""
    items = megabytes * 10**6 // np.dtype(DTYPE).itemsize
    yield Workload(f"row of 1000, {megabytes} MB", "row of 1000", (1000,), (items // 1000, 1000))
    yield Workload(f"column x 4, {megabytes} MB", "column x 4", (items // 4, 1), (items // 4, 4))


def cases(config):
    """Yield results in a loop, then results that are read."""
    threads = config.getoption("threads")
    for megabytes in (40, 256):
        for workload in workloads(megabytes):
            names = [name for name in ("bcast", "numpy", "torch", "jax") if COMPETITORS[name].installed()]
            yield Use("use", workload, DTYPE, KEPT, threads, SECONDS), names
    for megabytes in (1, 16, 40, 256):
        for workload in workloads(megabytes):
            for place in ("fresh", "warm"):
                yield Use("use", workload, DTYPE, f"{place}, {READ}", threads, SECONDS), ["bcast", "numpy"]


def test_use(timed):
    timed()
