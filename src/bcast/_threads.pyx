"""How many threads a call may use: built with OpenMP or without, forked or not, main thread or another, as was set.

The smallest of all limits holds. OpenMP's own, of the calling thread, is asked anew each time, so that what
OMP_NUM_THREADS, `omp_set_num_threads` and threadpoolctl say binds.
"""

import operator
import os
import sys
import threading
import warnings
from typing import SupportsIndex

import numpy as np

cdef extern from *:
    """
    #ifdef _OPENMP
        #include <omp.h>
        #define BCAST_OPENMP 1
        #if _OPENMP < 200805
            #define omp_get_thread_limit() 0x7fffffff     /* OpenMP 2, which is Microsoft's, has none */
        #endif
    #else
        #define omp_get_max_threads() 1
        #define omp_get_thread_limit() 1
        #define omp_get_wtime() 0.0
        #define BCAST_OPENMP 0
    #endif

    #ifdef _MSC_VER
        #define BCAST_THREAD_LOCAL __declspec(thread)
    #else
        #define BCAST_THREAD_LOCAL _Thread_local
    #endif

    /* What set_num_threads said in this thread; 0: nothing. */
    static BCAST_THREAD_LOCAL int bcast_own_limit = 0;

    /* Until when this thread's calls do without others, as those came late, and how often in a row they did. */
    static BCAST_THREAD_LOCAL double bcast_alone_until = 0;
    static BCAST_THREAD_LOCAL int bcast_times_late = 0;

    /* When it last asked for them. */
    static BCAST_THREAD_LOCAL double bcast_last_asked = -1e9;

    /* In a child OpenMP may wait for workers that only the parent has. Forks are seen by pthread_atfork, as there are
       programs that fork without telling Python. */
    static int bcast_forked = 0;
    #if BCAST_OPENMP && !defined(_WIN32)
        #include <pthread.h>
        static void bcast_note_fork(void) { bcast_forked = 1; }
        static int bcast_watch_forks(void) { return pthread_atfork(NULL, NULL, bcast_note_fork); }
    #else
        static int bcast_watch_forks(void) { return 0; }
    #endif
    """
    bint BCAST_OPENMP
    int own_limit "bcast_own_limit"
    double alone_until "bcast_alone_until"
    int times_late "bcast_times_late"
    double last_asked "bcast_last_asked"
    bint forked "bcast_forked"
    int watch_forks "bcast_watch_forks"() nogil
    int omp_get_max_threads() nogil
    int omp_get_thread_limit() nogil
    double omp_get_wtime() nogil

cdef extern from "Python.h":
    unsigned long PyThread_get_thread_ident() nogil

cdef enum:
    MOST = 0x7fffffff
    LATEST = 6      # doublings: on a busy machine 1/64 of the time is lost by waiting
    FORKED_WITHOUT_EXEC = 0x40      # among the flags of a process, on Linux

cdef double LATE = 5e-4     # seconds; shares are even, so that nobody waits so long for a thread that works

cdef double AWAKE = 1e-3    # seconds; a thread that has had no work for several times as long is asleep

cdef unsigned long main_thread
cdef int main_limit

OPENMP = bool(BCAST_OPENMP)


def set_num_threads(n: SupportsIndex) -> None:
    """Limit the threads that calls from the calling thread may use.

    Until it is called, the main thread uses all that OpenMP gives, or as many as the environment variable
    BCAST_NUM_THREADS said when bcast was imported, and any other thread one.

    Parameters
    ----------
    n : int
        The limit, 1 or more. It holds for the calling thread alone, until it sets another.

    Returns
    -------
    None

    Raises
    ------
    TypeError
        If `n` is no integer.
    ValueError
        If `n` is less than 1.

    See Also
    --------
    get_num_threads : What comes of it.

    Notes
    -----
    A call never uses more threads than OpenMP gives the calling thread at that moment: OMP_NUM_THREADS, or else the
    number of CPUs; OMP_THREAD_LIMIT and threadpoolctl limit that, too. Small outputs are written by one thread whatever
    is set.

    A forked process works on one thread: OpenMP's workers stay with the parent, and GCC's OpenMP would wait for them
    for ever. Where bcast is first imported after the fork this is only the default; more are safe there if nothing in
    the parent has used OpenMP before, torch for one.

    Examples
    --------
    >>> import bcast
    >>> before = bcast.get_num_threads()
    >>> bcast.set_num_threads(1)
    >>> bcast.get_num_threads()
    1
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
        1 or more; always 1 where bcast was built without OpenMP.

    See Also
    --------
    set_num_threads : Limit them, with the rules.

    Examples
    --------
    >>> import bcast
    >>> bcast.get_num_threads() >= 1
    True
    """
    return thread_count()


cdef int thread_count() noexcept nogil:
    """How many threads the call may use that the calling thread makes."""
    cdef int limit
    if forked:
        return 1
    limit = own_limit
    if limit == 0:
        limit = main_limit if PyThread_get_thread_ident() == main_thread else 1
    return max(1, min(limit, omp_get_max_threads(), omp_get_thread_limit()))


cpdef int free_threads(bint waking=True) noexcept nogil:
    """`thread_count`, but 1 for some time after the others have kept the caller waiting.

    For an output that is not worth `waking` them it is 1, too, unless the caller asked a moment ago: then they are
    awake, or the calls come so often that it is worth it.
    """
    global last_asked
    cdef int count = thread_count()
    cdef double now
    cdef bint often
    if count == 1:
        return 1
    now = omp_get_wtime()
    often = now - last_asked < AWAKE
    last_asked = now
    return count if now >= alone_until and (waking or often) else 1


cdef double clock() noexcept nogil:
    return omp_get_wtime()


cpdef void note_wait(double worked, double waited) noexcept nogil:
    """Note how long a call's own share took, and then the wait for the others.

    Where something else holds their CPU, they come only when the system gives them a turn, which takes milliseconds.
    That may soon be over, as threads of other libraries spin for some milliseconds when their work is done, or not:
    the calls that follow do without others for as long as was waited, and twice as long each time it happens again.
    """
    global alone_until, times_late
    if waited > LATE and waited > worked:
        alone_until = omp_get_wtime() + waited * (1 << times_late)
        times_late = min(times_late + 1, LATEST)
    else:
        times_late //= 2


def _default_limit() -> int:
    """Return the main thread's limit, until it sets its own."""
    setting = os.environ.get("BCAST_NUM_THREADS", "").strip()
    try:
        limit = int(setting) if setting else MOST
    except ValueError:
        limit = 0
    if limit < 1:
        warnings.warn(
            f"`BCAST_NUM_THREADS` expected an integer of at least 1, got {setting!r}; it is ignored",
            RuntimeWarning,
        )
        limit = MOST
    return 1 if _is_forked() else min(limit, MOST)


def _is_forked() -> bool:
    """Tell whether this process was forked and has run no other program since, as far as the system says."""
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
if watch_forks():
    raise MemoryError
