"""How many threads a call may use, and the pool that runs its shares.

The smallest of all limits holds. The pool is in `_runtime/pool.h`: no caller waits for a thread that has not begun.
"""

from libc.stdlib cimport free, malloc

import operator
import os
import sys
import threading
import warnings
from typing import SupportsIndex

import numpy as np

from bcast._runtime.system import cpus

cdef extern from "_runtime/pool.h" nogil:
    """
    /* The limits that set_num_threads and threadpoolctl set in this thread; 0 if they set none. */
    static BCAST_THREAD_LOCAL int bcast_own_limit = 0;
    static BCAST_THREAD_LOCAL int bcast_pool_limit = 0;

    /* Until when this thread's calls do without helpers, because these were late, and how often in a row they were. */
    static BCAST_THREAD_LOCAL double bcast_alone_until = 0;
    static BCAST_THREAD_LOCAL int bcast_times_late = 0;

    /* Until when this thread wakes no helper, because one came too late, and when it last asked for helpers. */
    static BCAST_THREAD_LOCAL double bcast_wakes_from = 0;
    static BCAST_THREAD_LOCAL double bcast_last_asked = -1e9;

    /* The main thread's limit until it sets its own. */
    static int bcast_main_limit = 1;

    /* A forked child works alone unless it asks for more. pthread_atfork sees forks that Python is not told of. */
    #if !defined(_WIN32)
        static void bcast_note_fork(void)
        {
            bcast_forget_helpers();
            bcast_main_limit = 1;
            bcast_own_limit = 0;
            bcast_alone_until = 0;
        }
        static int bcast_watch_forks(void) { return pthread_atfork(NULL, NULL, bcast_note_fork); }
    #else
        static int bcast_watch_forks(void) { return 0; }
    #endif
    """
    const double SPIN "BCAST_SPIN"
    const double LATE "BCAST_LATE"
    int HELPERS "BCAST_HELPERS"
    int own_limit "bcast_own_limit"
    int pool_limit "bcast_pool_limit"
    int main_limit "bcast_main_limit"
    double alone_until "bcast_alone_until"
    int times_late "bcast_times_late"
    double wakes_from "bcast_wakes_from"
    double last_asked "bcast_last_asked"
    int watch_forks "bcast_watch_forks"()
    double clock "bcast_clock"()
    bint helper_awake "bcast_helper_awake"()
    long next_of "bcast_next"(volatile long *at)
    double run "bcast_run"(Share share, void *work, int shares, int threads, int *in_vain)
    void run_in_order "bcast_run_in_order"(Share share, void *work, int shares, int threads, unsigned long long seed)

cdef extern from "Python.h":
    unsigned long PyThread_get_thread_ident() nogil

cdef enum:
    MOST = 0x7fffffff
    PENALTY = 4     # a caller works alone for so many times what it lost: other pools' threads spin for some such time;
    LATEST = 6      # after so many doublings it loses one 256th of its time
    FORKED_WITHOUT_EXEC = 0x40      # among the flags of a process, on Linux

cdef struct Record:         # of the order in which shares run
    int *share
    int *worker
    volatile long next

cdef unsigned long main_thread
cdef int available          # threads by default, by what the system and the environment say
cdef bint in_order = False  # for tests: whether all shares run on the calling thread,
cdef unsigned long long seed = 0    # and in which order
cdef double stopped = -1            # and the time at which the clock stands still


def set_num_threads(n: SupportsIndex) -> None:
    """Limit the threads that calls from the calling thread may use.

    Until it is called, the main thread uses as many threads as the pool has: one for each CPU that the process may use,
    unless the environment says otherwise. Any other thread works alone.

    Parameters
    ----------
    n : int
        The limit, 1 or more. It holds for the calling thread only, until that thread sets another.

    Returns
    -------
    None

    Raises
    ------
    TypeError
        If `n` is not an integer.
    ValueError
        If `n` is less than 1.

    See Also
    --------
    get_num_threads : Return the number of threads that results from all limits.

    Notes
    -----
    A call never uses more threads than the pool has. When bcast is imported, OMP_NUM_THREADS sets their number in place
    of the number of CPUs, OMP_THREAD_LIMIT limits it, and BCAST_NUM_THREADS sets the main thread's own limit. Later,
    threadpoolctl sets the pool's number for the calling thread. Small outputs are written by one thread, whatever the
    limits.

    A forked process starts with a limit of 1 in all its threads, whatever its parent has set.

    Examples
    --------
    >>> import bcast
    >>> before = bcast.get_num_threads()
    >>> bcast.set_num_threads(1)
    >>> bcast.get_num_threads()
    1

    More threads than the pool has are no error. `get_num_threads` says how many calls may use then:

    >>> bcast.set_num_threads(1000)
    >>> bcast.get_num_threads() <= 1000
    True
    >>> bcast.set_num_threads(before)
    """
    global own_limit
    try:
        if isinstance(n, (bool, np.bool)):      # NumPy 2.0's has an index
            raise TypeError
        number = operator.index(n)
    except TypeError:
        raise TypeError(f"`n` expected an integer, got {n!r}") from None
    if number < 1:
        raise ValueError(f"`n` expected a number of threads of at least 1, got {number}")
    own_limit = min(number, MOST)


def get_num_threads() -> int:
    """Return how many threads a call from the calling thread may use.

    Returns
    -------
    int
        1 or more.

    See Also
    --------
    set_num_threads : Limit the threads; its notes have the rules.

    Examples
    --------
    >>> import bcast
    >>> bcast.get_num_threads() >= 1
    True
    """
    return thread_count()


cdef int thread_count() noexcept nogil:
    """How many threads a call from the calling thread may use."""
    cdef int limit = own_limit
    if limit == 0:
        limit = main_limit if PyThread_get_thread_ident() == main_thread else 1
    return max(1, min(limit, pool_limit or available))


cpdef int free_threads(bint waking=True) noexcept nogil:
    """`thread_count`, but 1 for some time after helpers have kept the caller waiting.

    For an output that is not worth `waking` helpers, it is 1 too, unless a helper is awake or the caller asked a moment
    ago. Then calls follow each other so closely that helpers, once woken, are awake for the next one.
    """
    global last_asked
    cdef int count = thread_count()
    cdef double now
    cdef bint often
    if count == 1:
        return 1
    now = _now()
    often = now - last_asked < SPIN
    last_asked = now
    if now < alone_until:
        return 1
    return count if helper_awake() or ((waking or often) and now >= wakes_from) else 1


cdef void run_shares(Share share, void *work, int shares, int threads) noexcept nogil:
    """Run all `shares` of some work on up to `threads` threads, of which the caller is one."""
    cdef int in_vain = False
    cdef double lost
    if in_order:
        run_in_order(share, work, shares, threads, seed)
    else:
        lost = run(share, work, shares, threads, &in_vain)
        note_loss(lost, in_vain)


def set_order(order=None):
    """Run all shares on the calling thread, in a certain order: for tests.

    Parameters
    ----------
    order : int, optional
        0 runs the shares from the last to the first; any other number is the seed of a random order. Each share runs
        under the number of a random thread. Without `order`, threads share the work as usual.
    """
    global in_order, seed
    in_order = order is not None
    seed = order or 0


def set_clock(seconds=None):
    """Stop the clock by which threads are kept away: for tests.

    Parameters
    ----------
    seconds : float, optional
        The time at which it stands still, 0 or more. Without `seconds`, it shows the time as usual.
    """
    global stopped
    stopped = -1 if seconds is None else seconds


cpdef void note_loss(double seconds, bint in_vain=False) noexcept nogil:
    """Note how long helpers kept a call from its work, and whether it woke them in vain.

    A helper that loses its CPU in the middle of a share gets it back when the system gives it a turn, milliseconds
    later. Whether that will happen again is unknown. So the calls that follow do without helpers for many times as long
    as was lost, and for twice as long each time it soon happens again.
    """
    global alone_until, times_late, wakes_from
    cdef double now, alone
    if in_vain:
        wakes_from = _now() + LATE     # waking one takes some 5 us
    if seconds > LATE:
        now = _now()
        alone = seconds * PENALTY
        times_late = min(times_late + 1, LATEST) if now < alone_until + (alone * (1 << times_late)) else 0
        alone_until = now + alone * (1 << times_late)


cdef inline double _now() noexcept nogil:
    return clock() if stopped < 0 else stopped


def recorded_shares(int shares, int threads):
    """Run shares that do nothing: for tests.

    Parameters
    ----------
    shares, threads : int
        The number of shares, and of threads at most.

    Returns
    -------
    list of tuple
        The number of each share and of its thread, in the order in which the shares began.
    """
    if shares < 1 or threads < 1:
        raise ValueError(f"`shares`, `threads` expected 1 or more, got {shares}, {threads}")
    cdef list record = [None] * shares
    cdef Record work = Record(<int *> malloc(shares * sizeof(int)), <int *> malloc(shares * sizeof(int)), 0)
    cdef int i
    try:
        if work.share == NULL or work.worker == NULL:
            raise MemoryError
        with nogil:
            run_shares(_record, &work, shares, threads)
        for i in range(shares):
            record[i] = work.share[i], work.worker[i]
        return record
    finally:
        free(work.share)
        free(work.worker)


cdef void _record(void *work, int share, int worker) noexcept nogil:
    cdef Record *record = <Record *> work
    cdef long at = next_of(&record.next)
    record.share[at] = share
    record.worker[at] = worker


def get_pool_limit():
    """Return how many threads the pool has for the calling thread, whatever limit that thread has set."""
    return pool_limit or available


def set_pool_limit(limit):
    """Set how many threads the pool has for the calling thread: for threadpoolctl.

    Parameters
    ----------
    limit : int
        1 or more; it may exceed the number of CPUs.
    """
    global pool_limit
    pool_limit = max(1, min(limit, HELPERS + 1))


def _available() -> int:
    """Return how many threads the pool has: one for each CPU, unless the variables of OpenMP say otherwise."""
    asked = _positive(os.environ.get("OMP_NUM_THREADS", "").partition(",")[0])     # a list is for nested regions
    limit = _positive(os.environ.get("OMP_THREAD_LIMIT", ""))
    return min(asked or cpus(), limit or MOST, HELPERS + 1)


def _positive(setting: str) -> int:
    """Read an integer of at least 1; return 0 for anything else."""
    try:
        return max(0, int(setting))
    except ValueError:
        return 0


def _default_limit() -> int:
    """Return the main thread's limit until it sets its own."""
    setting = os.environ.get("BCAST_NUM_THREADS", "").strip()
    limit = _positive(setting) if setting else MOST
    if limit == 0:
        warnings.warn(
            f"`BCAST_NUM_THREADS` expected an integer of at least 1, got {setting!r}; it is ignored",
            RuntimeWarning,
        )
        limit = MOST
    return 1 if _is_forked() else min(limit, MOST)


def _is_forked() -> bool:
    """Return whether this process was forked and has not run another program since, as far as the system tells."""
    if sys.platform != "linux":
        return False
    try:
        with open("/proc/self/stat", "rb") as file:
            flags = int(file.read().rpartition(b")")[2].split()[6])
    except (OSError, ValueError, IndexError):
        return False
    return bool(flags & FORKED_WITHOUT_EXEC)


main_thread = threading.main_thread().ident
main_limit = _default_limit()
available = _available()
if watch_forks():
    raise MemoryError
