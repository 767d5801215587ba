# cython: cdivision=True
"""The basis of the cores: the target of their kernels, the threads of a call, the memory of large results.

In: the environment, users' limits, work cut into shares, numbers of bytes. Out: the target, shares that have run,
blocks of pages. Nothing here depends on alignments, modes or sums. A call that fails does not change NumPy's state, the
threads or the idle memory.
"""

cimport cython
cimport numpy as cnp
from cpython.pycapsule cimport PyCapsule_New
from cpython.ref cimport Py_INCREF
from libc.limits cimport INT_MAX
from libc.string cimport memcpy, memmove, strcpy
from libc.time cimport time, time_t

from bcast._runtime cimport tuning
from bcast._runtime.tuning cimport BLOCK_MIN_BYTES, BLOCK_SPARE, MAP_MIN_BYTES, UNADVISED_MAX_BYTES

import operator
import os
import sys
from _thread import get_ident
from typing import NamedTuple, SupportsIndex

import numpy as np

from bcast._runtime.system import cpus, memory, read, setting

cnp.import_array()

MAX_BYTES = sys.maxsize

# Numbers for modules in Python.
CHAIN_BLOCK_ROWS = tuning.CHAIN_BLOCK_ROWS
CONVERTED_BLOCK_BYTES = tuning.CONVERTED_BLOCK_BYTES
COPY_STREAMED_BYTES = tuning.COPY_STREAMED_BYTES
DECIDING_BYTES = tuning.DECIDING_BYTES
DECIDING_GROWTH = tuning.DECIDING_GROWTH
FEW_TIMES = tuning.FEW_TIMES
FEW_UNITS = tuning.FEW_UNITS
FOLD_MANY_TERMS = tuning.FOLD_MANY_TERMS
L2 = BYTES_OF_L2
LONG_AXIS_ITEMS = tuning.LONG_AXIS_ITEMS
MANY_FACTORS = tuning.MANY_FACTORS
MANY_PRODUCTS = tuning.MANY_PRODUCTS
PASSES_BLOCK_BYTES = tuning.PASSES_BLOCK_BYTES
SEARCHED_BYTES = tuning.SEARCHED_BYTES
SHARE_ITEMS = tuning.SHARE_ITEMS


# The target: the instruction set whose kernels this process uses. It is found once, for all cores alike.

cdef int number
cdef dict target_numbers = {}   # the numbers of this machine's targets, by name
for number in range(TARGET_COUNT - 1, -1, -1):
    if has_target(number):
        target_numbers[target_names[number].decode()] = number
TARGETS = tuple(target_numbers)   # best first


def use_target(name):
    """Choose the target of this process, one of `TARGETS`, and return the previous one: for tests, which try all."""
    global target_number
    before = target_names[target_number].decode()
    if name not in TARGETS:
        raise ValueError(f"`BCAST_TARGET` expected one of {', '.join(TARGETS)}, got {name!r}")
    target_number = target_numbers[name]
    return before


use_target(os.environ.get("BCAST_TARGET") or TARGETS[0])


# Threads: how many a call may use, which is the smallest of all limits, and the jobs that they run together.
#
# A job has the same phases in all cores. `count_threads` returns how many threads pay for the size of the work,
# `count_shares` the number of shares, and `take_scratch` finds memory: only this can fail, before anything is written.
# `run_job` runs the shares on threads, each with separate scratch, and then the calling thread folds their partial
# results or errors. `run_without_gil` does this while other threads run Python. `free_scratch` comes last.
# `_runtime/pool.h` has the threads, and `_runtime/patience.h` decides whether they currently pay.

cdef extern from "_runtime/patience.h" nogil:
    """
    /* The limits of the calling thread; 0 if none is set. */
    static BCAST_THREAD_LOCAL int bcast_own_limit = 0;  /* by set_num_threads */
    static BCAST_THREAD_LOCAL int bcast_pool_limit = 0; /* by threadpoolctl */

    /* The main thread's limit until it sets its own. */
    static int bcast_main_limit = 1;

    /* A forked child works alone unless it requests more threads. pthread_atfork also detects forks outside of Python.
    */
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
cdef int available          # threads by default, from the system and the environment


def set_num_threads(n: SupportsIndex) -> None:
    """Limit the threads that calls from the calling thread may use.

    By default, the main thread uses all threads of the pool: one for each CPU available to the process, unless the
    environment changes that. All other threads work alone.

    Parameters
    ----------
    n : int
        The limit, 1 or more. It applies to the calling thread only, until that thread sets another.

    Raises
    ------
    TypeError, ValueError
        If ``n`` is not an integer, or less than 1.

    Notes
    -----
    A call never uses more threads than the pool has. When bcast is imported, OMP_NUM_THREADS sets the size of the pool,
    instead of the number of CPUs, OMP_THREAD_LIMIT limits it, and BCAST_NUM_THREADS sets the main thread's limit.
    Later, threadpoolctl sets the size of the pool for the calling thread. One thread writes small outputs, regardless
    of the limits.

    A forked process starts with a limit of 1 in all its threads, regardless of its parent's limits.

    Examples
    --------
    >>> import bcast
    >>> before = bcast.get_num_threads()
    >>> bcast.set_num_threads(1)
    >>> bcast.get_num_threads()
    1

    A limit above the number of threads in the pool is not an error. `get_num_threads` returns the resulting number:

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
    """The number of threads that a call from the calling thread may use."""
    cdef int limit = own_limit
    if limit == 0:
        limit = main_limit if PyThread_get_thread_ident() == main_thread else 1
    return max(1, min(limit, pool_limit or available))


cpdef int free_threads(bint waking=True) noexcept nogil:
    """`thread_count`, or 1 if helpers do not pay: after they were late, or if they sleep and the output is small."""
    cdef int count = thread_count()
    return count if count == 1 or asks(waking) else 1


cdef void run_job(const Job *job) noexcept nogil:
    """Run all shares of a job, and fold their partial results."""
    if in_order:
        _run_in_order(job.share, job.work, job.shares, job.threads)
    else:
        run(job.share, job.work, job.shares, job.threads)
    if job.fold != NULL:
        job.fold(job.work)


cdef int run_without_gil(const Job *job, arrays) except *:
    """Do the same while other threads run Python. References to arrays prevent their resizing."""
    with nogil:
        run_job(job)
    return 0


def get_pool_limit():
    """Return the size of the pool for the calling thread, regardless of the limit that this thread has set."""
    return pool_limit or available


def set_pool_limit(limit):
    """Set the size of the pool for the calling thread, regardless of the number of CPUs: for threadpoolctl."""
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
    """Return whether this process was forked and has not run another program since, as far as the system reports."""
    if sys.platform != "linux":
        return False
    flags = read("/proc/self/stat").rpartition(")")[2].split()[6:7]
    return bool(flags) and bool(int(flags[0]) & 0x40)   # Linux's PF_FORKNOEXEC


main_thread = sys.modules["threading"].main_thread().ident if "threading" in sys.modules else get_ident()
main_limit = min(setting("BCAST_NUM_THREADS", 1, INT_MAX), 1 if _is_forked() else INT_MAX)
available = _available()
if watch_forks():
    raise MemoryError


# Memory: blocks of pages for large results, and pages of mapped files.
#
# `new_array` of arrays.pyx requests a block and gets its address; NumPy returns the block when the array is resized or
# freed, through the array's memory handler. The handler is never NumPy's current one, so no other array gets it.
# Returned blocks are kept idle for the next results, within a limit.
#
# The GIL guards the store of idle blocks; where there is none, a critical section does. Blocks are unmapped with the
# GIL held, as NumPy's memory is: while NumPy frees a block, an array that is resized or unpickled still points there.

cdef extern from "numpy/arrayobject.h":
    # NumPy 2.0 does not declare these for Cython.
    ctypedef struct PyDataMemAllocator:
        void *ctx
        void *(*malloc)(void *ctx, size_t size)
        void *(*calloc)(void *ctx, size_t count, size_t size)
        void *(*realloc)(void *ctx, void *data, size_t size)
        void (*free)(void *ctx, void *data, size_t size)
    ctypedef struct PyDataMem_Handler:
        char *name
        unsigned char version
        PyDataMemAllocator allocator

cdef extern from "_runtime/pages.h" nogil:
    const bint PAGES
    const size_t HUGE_PAGE
    size_t pages_size()
    char *pages_map(size_t page, size_t capacity, bint huge)
    bint pages_unmap(char *start, size_t length)
    bint pages_advise_free(char *start, size_t length)
    void pages_forget(const void *begin, size_t size)

cdef enum:
    BLOCKS_MAX = 16384              # a quarter of the mappings of a process on Linux; blocks do not merge into fewer
    IDLE_MAX_BLOCKS = 64

cdef struct Block:
    char *data          # at a multiple of HUGE_PAGE; the page before it ends with the capacity
    size_t capacity     # bytes
    bint advised        # whether the system may take its pages
    time_t since        # when it became idle

cdef Block[IDLE_MAX_BLOCKS] idle    # oldest first
cdef int idle_blocks = 0
cdef size_t idle_total = 0
cdef size_t idle_limit = 0
cdef int mapped_blocks = 0

cdef Py_ssize_t map_min_bytes = MAP_MIN_BYTES   # tests set others
cdef object file_array = np.memmap


# Blocks, for results


cdef bint pays(size_t nbytes) noexcept nogil:
    """Whether a result of `nbytes` gets a block: only if the block may be kept, because its next use pays for it."""
    return PAGES and nbytes >= BLOCK_MIN_BYTES and _rounded(nbytes) <= idle_limit


cdef void drop_unused() noexcept:
    """Unmap the oldest idle block if it has been idle for 5 seconds: only one, because this call pays for it."""
    if idle_total > 2 * UNADVISED_MAX_BYTES:
        with cython.critical_section(block_handler):
            if idle_total > 2 * UNADVISED_MAX_BYTES and time(NULL) - idle[0].since > 5:
                _unmap(_removed(0))


# The functions of the memory handler (NEP 49) of arrays over our blocks.


cdef void *take_block(void *ctx, size_t size) noexcept:
    """Take the idle block that fits best, the youngest of equals, or map a new one; NULL if there is no memory."""
    cdef size_t capacity = _rounded(size), most = capacity + capacity // BLOCK_SPARE
    cdef int i, best = -1
    with cython.critical_section(block_handler):
        for i in range(idle_blocks - 1, -1, -1):
            if capacity <= idle[i].capacity <= most:
                most = idle[i].capacity - 1
                best = i
        return _removed(best).data if best >= 0 else _mapped(capacity)


cdef void *_realloc(void *ctx, void *data, size_t size) noexcept:
    cdef size_t old = _capacity(<char *> data)[0], new = _rounded(size)
    cdef void *moved
    if 0 < new <= old:
        if new < old and pages_unmap(<char *> data + new, old - new):
            _capacity(<char *> data)[0] = new
        return data
    moved = take_block(ctx, size)
    if moved != NULL:
        memcpy(moved, data, old)
        give_back_block(ctx, data, old)
    return moved


cdef void give_back_block(void *ctx, void *data, size_t size) noexcept:
    """Keep a block idle if the limit allows it, if necessary in place of older blocks; unmap it otherwise.

    NEP 49 does not promise that `size` is right.
    """
    global idle_blocks, idle_total
    cdef Block block = Block(<char *> data, _capacity(<char *> data)[0], False, time(NULL))
    cdef size_t unadvised = 0
    cdef int i
    with cython.critical_section(block_handler):
        if not BLOCK_MIN_BYTES <= block.capacity <= idle_limit:
            _unmap(block)
            return
        _evict(idle_limit - block.capacity, IDLE_MAX_BLOCKS - 1)
        idle[idle_blocks] = block
        idle_blocks += 1
        idle_total += block.capacity
        for i in range(idle_blocks - 1, -1, -1):
            if idle[i].advised:
                continue
            if unadvised + idle[i].capacity <= UNADVISED_MAX_BYTES:
                unadvised += idle[i].capacity
            elif pages_advise_free(idle[i].data, idle[i].capacity):
                idle[i].advised = True
            else:
                _unmap(_removed(i))


cdef inline size_t *_capacity(char *data) noexcept nogil:
    """The address of a block's capacity."""
    return <size_t *> data - 1


cdef size_t _rounded(size_t size) noexcept nogil:
    """The bytes of a block for `size` bytes: whole huge pages, unless too much of them would be unused."""
    cdef size_t whole
    if size > <size_t> MAX_BYTES - 2 * HUGE_PAGE:
        return 0
    size = max(size, <size_t> 1)
    whole = (size + HUGE_PAGE - 1) // HUGE_PAGE * HUGE_PAGE
    return whole if whole - size <= size // BLOCK_SPARE else (size + page - 1) // page * page


cdef char *_mapped(size_t capacity) noexcept:
    """Map a new block; if there is no memory, unmap idle blocks first."""
    global mapped_blocks
    cdef char *data = NULL
    if capacity == 0 or mapped_blocks >= BLOCKS_MAX:
        return NULL
    data = pages_map(page, capacity, huge_pages)
    if data == NULL and idle_blocks:
        _evict(0, 0)
        data = pages_map(page, capacity, huge_pages)
    if data != NULL:
        mapped_blocks += 1
        _capacity(data)[0] = capacity
    return data


cdef void _unmap(Block block) noexcept:
    global mapped_blocks
    if pages_unmap(block.data - page, page + block.capacity):
        mapped_blocks -= 1


cdef void _evict(size_t total, int blocks) noexcept:
    """Unmap the oldest idle blocks until at most `total` bytes in `blocks` blocks remain."""
    while idle_total > total or idle_blocks > blocks:
        _unmap(_removed(0))


cdef Block _removed(int i) noexcept:
    """Remove one block from the store."""
    global idle_blocks, idle_total
    cdef Block block = idle[i]
    idle_blocks -= 1
    idle_total -= block.capacity
    memmove(&idle[i], &idle[i + 1], (idle_blocks - i) * sizeof(Block))
    return block


def set_idle_limit(nbytes: SupportsIndex) -> int:
    """Limit the idle memory that is kept for the next large results, and return the previous limit.

    When the last reference to a result of 512 KiB or more is gone, bcast keeps its memory for the next result of about
    the same size, because new memory from the system costs more than the broadcast itself. The system can reclaim all
    idle memory except 32 MiB when memory runs short. Idle memory beyond the new limit is returned at once, the oldest
    first.

    Parameters
    ----------
    nbytes : int
        How many bytes may be idle. Results larger than this limit get their memory as NumPy's arrays do; 0 returns
        everything to the system and keeps nothing from then on. The initial limit is the value of the environment
        variable ``BCAST_IDLE_BYTES``. Without it, the limit is 1 GiB, or an eighth of the memory available to the
        process if that is less. The available memory is the smallest of the machine's memory, the limits of its control
        groups (such as a container's), RLIMIT_AS and RLIMIT_DATA.

    Returns
    -------
    int
        The previous limit.

    Raises
    ------
    TypeError, ValueError
        If `nbytes` is not an integer, or negative.

    Notes
    -----
    On systems that cannot reclaim idle memory, such as Windows, none is kept. While a memory handler
    other than NumPy's default is set, new results get their memory from that handler.

    Examples
    --------
    >>> import bcast
    >>> previous = bcast.set_idle_limit(256 << 20)
    >>> bcast.set_idle_limit(0)  # return it all ...
    268435456
    >>> bcast.set_idle_limit(previous)  # ... and keep what comes next
    0
    """
    global idle_limit
    try:
        limit = operator.index(nbytes)
    except TypeError:
        raise TypeError(f"`nbytes` expected an integer, got {type(nbytes).__name__}") from None
    if limit < 0:
        raise ValueError(f"`nbytes` expected 0 or more bytes, got {limit}")
    cdef object previous = idle_limit       # everything that can fail comes before changes of the store
    cdef size_t bounded = min(limit, MAX_BYTES)
    with cython.critical_section(block_handler):
        idle_limit = bounded
        _evict(idle_limit, IDLE_MAX_BLOCKS)
    return previous


def release_memory() -> None:
    """Return all idle memory to the system.

    The limit of `set_idle_limit` does not change: bcast keeps the memory of later results again.

    Examples
    --------
    >>> import bcast
    >>> bcast.release_memory()
    >>> bcast.memory_info().idle
    0
    """
    with cython.critical_section(block_handler):
        _evict(0, 0)


def memory_info() -> MemoryInfo:
    """Return how much memory is kept for the next large results.

    Returns
    -------
    MemoryInfo
        A named tuple of three numbers of bytes: `idle` are kept; the system may reclaim `lent` of them when memory runs
        short; at most `limit` may be kept, as set by `set_idle_limit`.

    Notes
    -----
    `release_memory` returns the idle memory to the system. While more than 64 MiB are idle, each call that makes a
    result returns the oldest block to the system if no result has used it for five seconds.

    Examples
    --------
    >>> import bcast
    >>> info = bcast.memory_info()
    >>> info.lent <= info.idle <= info.limit
    True
    """
    cdef size_t total, advised = 0
    cdef int i
    with cython.critical_section(block_handler):
        total = idle_total
        for i in range(idle_blocks):
            advised += idle[i].capacity if idle[i].advised else 0
    return MemoryInfo(total, advised, idle_limit)


class MemoryInfo(NamedTuple):
    """The result of `memory_info`, in bytes."""

    idle: int
    lent: int
    limit: int


# Mapped files: what a process has mapped of a file counts as its memory, while the system could keep it in its cache


cpdef bint is_mapped(cnp.ndarray array) except -1:
    """Return whether an array is in a large file that is mapped and shared.

    A private map would lose writes, so only arrays of `numpy.memmap` count, which know their modes.
    """
    cdef object base = array, mode = None
    if cnp.PyArray_BASE(array) == NULL:
        return False
    while isinstance(base, cnp.ndarray):
        if isinstance(base, file_array):
            mode = base.mode
        base = cnp.get_array_base(base)
    if mode is None or mode not in ("r", "r+", "w+"):
        return False
    from mmap import mmap   # as `numpy.memmap` has done
    return isinstance(base, mmap) and len(base) >= map_min_bytes


cpdef forget(cnp.ndarray array):
    """Release the pages of an array from this process's memory if it is in a large file, mapped and shared."""
    cdef char *begin
    cdef Py_ssize_t size
    if cnp.PyArray_SIZE(array) and is_mapped(array):
        size = reach(array, &begin)
        forget_range(begin, size)


cdef void forget_range(const void *begin, Py_ssize_t size) noexcept nogil:
    """Release the pages of a range, in a file that is mapped and shared, from this process's memory."""
    pages_forget(begin, size)


cdef size_t page = pages_size()
cdef bint huge_pages = os.environ.get("NUMPY_MADVISE_HUGEPAGE", "") != "0"     # "0" turns them off in NumPy, too
cdef PyDataMem_Handler handler

strcpy(handler.name, "bcast")
handler.version = 1
# No `calloc`: NumPy never makes a zeroed array with this handler.
handler.allocator = PyDataMemAllocator(NULL, take_block, NULL, _realloc, give_back_block)
block_handler = PyCapsule_New(&handler, "mem_handler", NULL)
Py_INCREF(block_handler)      # arrays may be freed after everything else

idle_limit = min(setting("BCAST_IDLE_BYTES", 0, min(1 << 30, memory() // 8)), MAX_BYTES)
if hasattr(os, "register_at_fork"):     # the parent's writes would copy pages that both processes hold
    os.register_at_fork(after_in_child=release_memory)


# Hooks for tests, to control time, the order of threads, and sizes.

cdef bint in_order = False          # whether all shares run on the calling thread
cdef unsigned long long seed = 0    # for their order


def let_time_pass(time_t seconds):
    """Make all idle blocks older by some seconds."""
    cdef int i
    for i in range(idle_blocks):
        idle[i].since -= seconds


def set_limits(large=MAP_MIN_BYTES):
    """Set the size in bytes of the smallest map whose pages are forgotten."""
    global map_min_bytes
    map_min_bytes = large


def note_loss(double seconds, bint in_vain=False):
    """Record how long helpers delayed a call of this thread, and whether waking them did not help."""
    c_note_loss(seconds, in_vain)


def set_clock(seconds=None):
    """Stop the clock of the decisions on helpers at a time, 0 or more; without a time, it runs."""
    global stopped_at
    stopped_at = -1 if seconds is None else seconds


def set_order(order=None):
    """Run all shares on the calling thread, from the last to the first if `order` is 0; another number is a seed."""
    global in_order, seed
    in_order = order is not None
    seed = order or 0


cdef void _run_in_order(Share share, void *work, int shares, int threads) noexcept nogil:
    cdef unsigned long long random = seed, stride = shares - 1, first = 0
    cdef unsigned long long[4] primes = [2147483647, 2147483629, 2147483587, 2147483579]    # no number of shares is one
    cdef int i
    if seed:
        random = random * 6364136223846793005ULL + 1442695040888963407ULL
        stride = primes[(random >> 33) % 4]
        first = (random >> 17) % shares
    for i in range(shares):
        random = random * 6364136223846793005ULL + 1442695040888963407ULL
        share(work, <int> ((stride * (i + 1) + first) % shares), <int> ((random >> 33) % threads))


def recorded_shares(int shares, int threads):
    """Run shares that do nothing; return the numbers of each share and its thread, in the order of their start."""
    cdef cnp.ndarray rows
    cdef Job job
    if shares < 1 or threads < 1:
        raise ValueError(f"`shares`, `threads` expected 1 or more, got {shares}, {threads}")
    rows = np.zeros((shares + 1, 2), "l")
    job = new_job(_record, cnp.PyArray_DATA(rows), threads, shares)
    run_without_gil(&job, rows)
    return list(map(tuple, rows[1:].tolist()))


cdef void _record(void *rows, int share, int worker) noexcept nogil:
    cdef long *row = <long *> rows
    row += 2 + 2 * next_of(row)
    row[0] = share
    row[1] = worker
