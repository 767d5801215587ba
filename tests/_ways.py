"""The ways in which the kernel may write the same bytes: by any leaf of the machine, on threads, past the caches."""

import itertools
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController

import bcast
from bcast import _adjoint, _kernel, _plan

THREADS = 3

# By default the outputs of most tests are too small for threads and for streaming.
REGIMES = {
    "ordinary": {},
    "threads": {"share": 1},
    "streamed": {"streamed": 1},
    "streamed by threads": {"share": 1, "streamed": 1},
    "streamed in part by threads": {"share": 1, "streamed": 200},
}
WAYS = list(itertools.product(_plan.LEAVES, REGIMES))


@contextmanager
def written(leaf, regime):
    """Have the kernel work in one of `WAYS`; afterwards it is as it was."""
    limits = REGIMES[regime]
    threads = bcast.get_num_threads()
    before = _plan.use_leaf(leaf)
    _kernel.set_limits(**limits)
    bcast.set_num_threads(THREADS if "share" in limits else threads)  # whatever another test has set
    try:
        with openmp().limit(limits=THREADS if "share" in limits else None, user_api="openmp"):
            yield
    finally:
        bcast.set_num_threads(threads)
        _kernel.set_limits()
        _plan.use_leaf(before)


SUMS = list(itertools.product(_adjoint.LEAVES, (1, THREADS)))


@contextmanager
def summed(leaf, threads):
    """Have sums made by one leaf, by that many threads if there is work for them; afterwards all is as it was."""
    number = bcast.get_num_threads()
    before = _adjoint.use_leaf(leaf)
    if threads > 1:
        _adjoint.set_limits(shared=1, far=1)
    bcast.set_num_threads(threads)
    try:
        with openmp().limit(limits=threads, user_api="openmp"):
            yield
    finally:
        bcast.set_num_threads(number)
        _adjoint.set_limits()
        _adjoint.use_leaf(before)


@cache
def openmp():
    """Return what sets the number of OpenMP's threads, of the libraries that are loaded now."""
    return ThreadpoolController()
