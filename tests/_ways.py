"""The ways in which copies may write the same bytes: with each target of the machine, on threads, past the caches."""

import itertools
import os
import sys
import threading
import traceback
import warnings
from contextlib import contextmanager

import bcast
from bcast._api.chains import stages
from bcast._apply import run as apply_run
from bcast._apply import ufuncs
from bcast._copy import run
from bcast._reduce import run as reduce_run
from bcast._runtime import core as runtime

THREADS = 3

# By default the outputs of most tests are too small for threads and for streaming.
REGIMES = {
    "ordinary": {},
    "threads": {"share": 1},
    "streamed": {"streamed": 1},
    "streamed by threads": {"share": 1, "streamed": 1},
    "streamed in part by threads": {"share": 1, "streamed": 200},
}
WAYS = list(itertools.product(runtime.TARGETS, REGIMES))


@contextmanager
def running(target, threads, limited, limits):
    """Have calls use a target and a number of threads, however many CPUs there are, and set limits by a function.

    Afterwards all is as it was. Without `threads`, their number is left alone.
    """
    number, before = bcast.get_num_threads(), runtime.use_target(target)
    limited(**limits)
    bcast.set_num_threads(threads or number)  # regardless of other tests
    try:
        with pool_limited(threads or None):
            yield
    finally:
        bcast.set_num_threads(number)
        limited()
        runtime.use_target(before)


def written(leaf, regime):
    """Make the kernel use one of `WAYS`."""
    limits = REGIMES[regime]
    return running(leaf, THREADS if "share" in limits else 0, run.set_limits, limits)


SUM_TARGETS = runtime.TARGETS
SUMS = list(itertools.product(SUM_TARGETS, (1, THREADS)))


def summed(leaf=SUM_TARGETS[0], threads=0, shared=None):
    """Have sums made by the kernels of one target, on a number of threads if there is work for them.

    Where `shared` is true, work of any size is shared out; by default it is where there are several threads.
    """
    limits = {"shared": 1} if (threads > 1 if shared is None else shared) else {}
    return running(leaf, threads, reduce_run.set_limits, limits)


COMPUTED = list(itertools.product(runtime.TARGETS, (1, THREADS)))


@contextmanager
def computed(leaf=runtime.TARGETS[0], threads=1):
    """Make functions use the loops of a target, on a number of threads if there is more than one block."""
    try:
        with running(leaf, threads, apply_run.set_limits, {"share": 1} if threads > 1 else {}):
            ufuncs.probe()
            yield
    finally:
        ufuncs.probe()


CUTTING = threading.Lock()


@contextmanager
def blocks_of(nbytes):
    """Make chains that reduce run in blocks of a number of bytes, the same for all threads."""
    with CUTTING:
        stages.set_limits(nbytes)
        try:
            yield
        finally:
            stages.set_limits()


def overlaps(call):
    """Tell whether the main thread runs while another one makes the call.

    No thread is made to give the GIL away here, so that the main one can only have got it from the call.
    """
    started, done = threading.Event(), threading.Event()

    def work():
        started.set()
        call()
        done.set()

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    try:
        thread = threading.Thread(target=work)
        thread.start()
        started.wait()
        overlapped = not done.is_set()
        thread.join()
    finally:
        sys.setswitchinterval(interval)
    return overlapped


@contextmanager
def in_order(order, threads):
    """Run shares on the calling thread, in an order, as if there were a number of threads."""
    number = bcast.get_num_threads()
    with pool_limited(threads):
        bcast.set_num_threads(threads)
        runtime.set_order(order)
        try:
            yield
        finally:
            runtime.set_order()
            bcast.set_num_threads(number)


@contextmanager
def pool_limited(threads):
    """Set the number of threads of the calling thread, for any number of CPUs; None changes nothing."""
    before = runtime.get_pool_limit()
    runtime.set_pool_limit(threads or before)
    try:
        yield
    finally:
        runtime.set_pool_limit(before)


def forked(call):
    """Make a call in a forked child, which has one thread; return its status, 0 if nothing was raised."""
    with warnings.catch_warnings(action="ignore"):  # of threads: by Python, and by other libraries
        child = os.fork()
    if child == 0:
        try:
            call()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1]
