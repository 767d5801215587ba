"""The same patterns from 1 KB to 4 GB, and from one thread to all: where speed changes, and what it does beyond caches.

Sizes stop where three arrays of them do not fit into the memory that is available.
"""

import numpy as np
from conftest import Case
from machines import memory
from peers import COMPETITORS
from shapes import label
from workloads import Workload

DTYPE = "float32"
SIZES = [1 << power for power in range(10, 33, 2)]  # bytes: 1 KB to 4 GB
NAMES = ("bcast", "numpy", "torch", "limit")
LARGE = 1 << 28  # bytes from which on one call takes so long that a few must do, and beyond which two patterns do


def patterns(items):
    """Yield name, source and output of each pattern that has so many items."""
    yield "row tile", (1, 64), (items // 64, 64)
    yield "scalar fill", (1,), (items,)
    if items * np.dtype(DTYPE).itemsize > LARGE:
        return
    yield "column x 3", (items // 3, 1), (items // 3, 3)
    if outer := items >> 16:  # both read 2048 items and have an inner run of 64
        yield "rank 12", (1, *(2, 1) * 5, 64), (outer, *(2, 2) * 5, 64)
        yield "rank 3", (32, 1, 64), (32, 32 * outer, 64)


def sizes():
    """Return the sizes for which there is memory."""
    return [size for size in SIZES if 3 * size <= memory()]


def counts(threads):
    """Return numbers of threads: 1, 2, 4 and so on, and all."""
    return sorted({*(1 << power for power in range(threads.bit_length())), threads})


def cases(config):
    """Yield warm results on every number of threads, fresh ones on all."""
    threads = config.getoption("threads")
    names = [name for name in NAMES if COMPETITORS[name].installed()]
    for size in sizes():
        for pattern, source, output in patterns(size // np.dtype(DTYPE).itemsize):
            workload = Workload(f"{pattern}, {label(size)}", pattern, source, output)
            seconds = 0.1 if size < LARGE else 0.0
            for count in counts(threads):
                yield Case("scaling", workload, DTYPE, "warm", count, seconds), names
            yield Case("scaling", workload, DTYPE, "fresh", threads, seconds), names


def test_scaling(timed):
    timed()
