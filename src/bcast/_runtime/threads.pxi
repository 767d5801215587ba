# How many threads a call may use: the smallest of all limits. `run_shares` runs the shares of its work on them.
#
# `_runtime/pool.h` has the threads, and `_runtime/patience.h` decides whether they pay just now.

cdef extern from "_runtime/patience.h" nogil:
    """
    /* The limits of the calling thread; 0 if none is set. */
    static BCAST_THREAD_LOCAL int bcast_own_limit = 0;  /* by set_num_threads */
    static BCAST_THREAD_LOCAL int bcast_pool_limit = 0; /* by threadpoolctl */

    /* The main thread's limit until it sets its own. */
    static int bcast_main_limit = 1;

    /* A forked child works alone unless it asks for more. pthread_atfork sees forks that Python is not told of. */
    #if !defined(_WIN32)
        static void bcast_note_fork(void)
        {
            bcast_forget_helpers();
            bcast_main_limit = 1;
            bcast_own_limit = 0;
            bcast_mine.alone_until = 0;
        }
        static int bcast_watch_forks(void) { return pthread_atfork(NULL, NULL, bcast_note_fork); }
    #else
        static int bcast_watch_forks(void) { return 0; }
    #endif
    """
    int MAX_HELPERS "BCAST_MAX_HELPERS"
    int own_limit "bcast_own_limit"
    int pool_limit "bcast_pool_limit"
    int main_limit "bcast_main_limit"
    double stopped_at "bcast_stopped_at"
    int watch_forks "bcast_watch_forks"()
    bint asks "bcast_asks"(bint waking)
    void run "bcast_run"(Share share, void *work, int shares, int threads)
    void c_note_loss "bcast_note_loss"(double seconds, bint in_vain)
    long next_of "bcast_next"(volatile long *at)

cdef extern from "Python.h":
    unsigned long PyThread_get_thread_ident() nogil

cdef unsigned long main_thread
cdef int available          # threads by default, by what the system and the environment say


def set_num_threads(n: SupportsIndex) -> None:
    """Limit the threads that calls from the calling thread may use.

    Until it is called, the main thread uses as many threads as the pool has: one for each CPU that the process may use,
    unless the environment says otherwise. Any other thread works alone.

    Parameters
    ----------
    n : int
        The limit, 1 or more. It holds for the calling thread only, until that thread sets another.

    Raises
    ------
    TypeError, ValueError
        If `n` is not an integer, or less than 1.

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
        raise TypeError(f"`n` expected an integer, got {type(n).__name__}") from None
    if number < 1:
        raise ValueError(f"`n` expected a number of threads of at least 1, got {number}")
    own_limit = min(number, INT_MAX)


def get_num_threads() -> int:
    """Return how many threads a call from the calling thread may use, by the rules in the notes of `set_num_threads`.

    Returns
    -------
    int
        1 or more.

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
    """`thread_count`, or 1 where helpers do not pay: after they were late, or to wake them for too small an output."""
    cdef int count = thread_count()
    return count if count == 1 or asks(waking) else 1


cdef void run_shares(Share share, void *work, int shares, int threads) noexcept nogil:
    """Run all `shares` of some work on up to `threads` threads, of which the caller is one."""
    if in_order:
        _run_in_order(share, work, shares, threads)
    else:
        run(share, work, shares, threads)


def get_pool_limit():
    """Return how many threads the pool has for the calling thread, whatever limit that thread has set."""
    return pool_limit or available


def set_pool_limit(limit):
    """Set how many threads the pool has for the calling thread, whatever the number of CPUs: for threadpoolctl."""
    global pool_limit
    pool_limit = max(1, min(limit, MAX_HELPERS + 1))


def _available() -> int:
    """Return how many threads the pool has: one for each CPU, unless the variables of OpenMP say otherwise."""
    asked = _positive(os.environ.get("OMP_NUM_THREADS", "").partition(",")[0])     # a list is for nested regions
    limit = _positive(os.environ.get("OMP_THREAD_LIMIT", ""))
    return min(asked or cpus(), limit or INT_MAX, MAX_HELPERS + 1)


def _positive(text: str) -> int:
    """Read an integer of at least 1; return 0 for anything else."""
    try:
        return max(0, int(text))
    except ValueError:
        return 0


def _is_forked() -> bool:
    """Return whether this process was forked and has not run another program since, as far as the system tells."""
    if sys.platform != "linux":
        return False
    flags = read("/proc/self/stat").rpartition(")")[2].split()[6:7]
    return bool(flags) and bool(int(flags[0]) & 0x40)   # Linux's PF_FORKNOEXEC


main_thread = sys.modules["threading"].main_thread().ident if "threading" in sys.modules else get_ident()
main_limit = min(setting("BCAST_NUM_THREADS", 1, INT_MAX), 1 if _is_forked() else INT_MAX)
available = _available()
if watch_forks():
    raise MemoryError
