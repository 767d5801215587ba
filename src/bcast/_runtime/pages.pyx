# cython: cdivision=True
"""The memory of large results: blocks of pages, and a store of the idle blocks that earlier results have freed.

An array over a block carries `handler`, whose functions NumPy calls when the array is resized or freed. It is never
NumPy's current handler, so no other array gets it. Its functions take any size, because `ndarray.resize` may ask for
any, and may be called by any thread, with the GIL or without.
"""

from cpython.pycapsule cimport PyCapsule_New
from cpython.ref cimport Py_INCREF
from cpython.pystate cimport PyThreadState
from libc.string cimport memcpy, memmove, strcpy

import os
import sys
import warnings
from operator import index
from typing import NamedTuple, SupportsIndex

from bcast._runtime.system import memory

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

cdef extern from "Python.h" nogil:
    int Py_IsInitialized()
    int PyGILState_Check()
    PyThreadState *PyEval_SaveThread()
    void PyEval_RestoreThread(PyThreadState *state)
    int Py_AddPendingCall(int (*call)(void *) noexcept nogil, void *argument)

cdef extern from "_runtime/pages.h" nogil:
    const bint PAGES
    const size_t HUGE_PAGE
    char *pages_map(size_t page, size_t capacity, bint huge)
    void pages_unmap(char *start, size_t length)
    bint pages_trim(char *start, size_t length)
    bint pages_lend(char *data, size_t capacity)
    bint pages_try_lock()
    void pages_unlock()
    size_t pages_size()
    double pages_clock()
    void pages_nap()

cdef enum:
    LARGE = 512 << 10   # bytes; from this size on, giving an array a handler costs little beside writing it
    HOT = 32 << 20      # bytes of the youngest idle blocks that are not advised free, which pays without huge pages
    SLOTS = 64          # idle blocks at most
    SPARE = 8           # a block may be larger than the result needs by one part in so many
    LASTING = 64 << 20  # bytes; beyond them, blocks that were idle for UNUSED seconds are unmapped
    UNUSED = 5
    SLOW = 16 << 20     # bytes; unmapping so many takes some 0.5 ms, which other Python threads need not wait for
    LEAVING = 8         # such blocks at most wait for the main thread to unmap them


cdef struct Header:     # at the end of the page before the data, as the size that `free` is given may be wrong
    size_t capacity


cdef struct Slot:
    char *data
    size_t capacity
    bint hot
    double since        # when it became idle


# The idle blocks, oldest first. A thread that fails to take their lock does not wait, but maps or unmaps instead.
cdef Slot[SLOTS] slots
cdef int idle_blocks = 0
cdef size_t idle_total = 0
cdef size_t idle_limit = 0

cdef Slot[LEAVING] leaving      # under the same lock
cdef int leaving_blocks = 0

cdef Py_ssize_t MAX_BYTES = sys.maxsize


cdef bint pays(size_t nbytes) noexcept nogil:
    """Whether a result of so many bytes gets a block: only if the block may be kept, as its next use pays for it."""
    return PAGES and nbytes >= LARGE and _rounded(nbytes) <= idle_limit


cdef object page_handler():
    """Return the memory handler (NEP 49) of arrays over our blocks."""
    return capsule


cdef void *new_block(size_t nbytes) noexcept nogil:
    """A block for an array that will get the handler above; NULL if there is no memory."""
    return _malloc(NULL, nbytes)


cdef void drop_block(void *data) noexcept nogil:
    """Take back a block for which no array could be made."""
    _free(NULL, data, 0)


cdef void *_malloc(void *ctx, size_t size) noexcept nogil:
    cdef size_t capacity = _rounded(size)
    cdef char *data = _taken(capacity) if capacity >= LARGE else NULL
    return data if data != NULL else _mapped(capacity)


cdef void *_calloc(void *ctx, size_t count, size_t size) noexcept nogil:
    if size and count > <size_t> MAX_BYTES // size:
        return NULL
    return _mapped(_rounded(count * size))      # new pages are zero


cdef void *_realloc(void *ctx, void *data, size_t size) noexcept nogil:
    cdef size_t old, new = _rounded(size)
    cdef void *moved
    if data == NULL:
        return _malloc(ctx, size)
    if new == 0:
        return NULL
    old = _header(<char *> data).capacity
    if new < old:
        if pages_trim(<char *> data + new, old - new):
            _header(<char *> data).capacity = new
    elif new > old:
        moved = _malloc(ctx, size)
        if moved != NULL:
            memcpy(moved, data, old)
            _free(ctx, data, old)
        return moved
    return data


cdef void _free(void *ctx, void *data, size_t size) noexcept nogil:
    """Keep the block idle if the limit allows it, in place of older ones if need be."""
    if data != NULL:
        _keep(<char *> data, _header(<char *> data).capacity)


cdef inline Header *_header(char *data) noexcept nogil:
    return <Header *> data - 1


cdef size_t _rounded(size_t size) noexcept nogil:
    """How many bytes a block for `size` bytes has: whole huge pages, unless too much of them would be unused."""
    cdef size_t whole
    if size > <size_t> MAX_BYTES - 2 * HUGE_PAGE:
        return 0
    if size == 0:
        size = 1
    whole = (size + HUGE_PAGE - 1) // HUGE_PAGE * HUGE_PAGE
    if whole - size <= size // SPARE:
        return whole
    return (size + page - 1) // page * page


cdef char *_mapped(size_t capacity) noexcept nogil:
    """Map a new block; if there is no memory, unmap the idle ones first."""
    cdef char *data
    if capacity == 0:
        return NULL
    data = pages_map(page, capacity, huge_pages)
    if data == NULL and _drop(0, False) > 0:
        data = pages_map(page, capacity, huge_pages)
    if data != NULL:
        _header(data).capacity = capacity
    return data


cdef void _unmap(char *data, size_t capacity) noexcept nogil:
    pages_unmap(data - page, page + capacity)


cdef void _unmap_aside(char *data, size_t capacity) noexcept nogil:
    """Unmap a block, a large one without the GIL if this thread holds that: where no array may still point to one."""
    cdef PyThreadState *state = NULL
    if capacity >= SLOW and Py_IsInitialized() and PyGILState_Check():
        state = PyEval_SaveThread()
    _unmap(data, capacity)
    if state != NULL:
        PyEval_RestoreThread(state)


cdef void _unmap_later(char *data, size_t capacity) noexcept nogil:
    """Unmap a block that NumPy frees: while it resizes an array, that still points there, and the GIL must be kept.

    The main thread, or the next call that makes a result, unmaps a large block without the GIL.
    """
    global leaving_blocks
    cdef bint left = False
    if capacity >= SLOW and Py_IsInitialized() and pages_try_lock():
        if leaving_blocks < LEAVING:
            leaving[leaving_blocks].data = data
            leaving[leaving_blocks].capacity = capacity
            leaving_blocks += 1
            left = True
        pages_unlock()
    if left:
        Py_AddPendingCall(_unmap_leaving, NULL)     # where too many wait already, the next call will see to it
    else:
        _unmap(data, capacity)


cdef int _unmap_leaving(void *_) noexcept nogil:
    """Unmap the blocks that wait for it, without the GIL."""
    global leaving_blocks
    cdef Slot block
    while leaving_blocks:
        if not pages_try_lock():
            break
        block.data = NULL
        if leaving_blocks:
            leaving_blocks -= 1
            block = leaving[leaving_blocks]
        pages_unlock()
        if block.data != NULL:
            _unmap_aside(block.data, block.capacity)
    return 0


cdef void drop_unused() noexcept:
    """Unmap the oldest idle block if it has been idle for seconds: only one, because this call pays for it."""
    cdef Slot block
    if leaving_blocks:
        _unmap_leaving(NULL)
    if idle_total <= LASTING or not pages_try_lock():
        return
    block.data = NULL
    if idle_total > LASTING and pages_clock() - slots[0].since > UNUSED:
        block = _removed(0)
    pages_unlock()
    if block.data != NULL:
        _unmap_aside(block.data, block.capacity)


cdef char *_taken(size_t capacity) noexcept nogil:
    """Take the idle block that fits best, the youngest of equals; NULL if none fits."""
    cdef int i, best = -1
    cdef size_t most = capacity + capacity // SPARE
    cdef char *data = NULL
    if pages_try_lock():
        for i in range(idle_blocks - 1, -1, -1):
            if capacity <= slots[i].capacity <= most:
                most = slots[i].capacity - 1
                best = i
        if best >= 0:
            data = _removed(best).data
        pages_unlock()
    return data


cdef void _keep(char *data, size_t capacity) noexcept nogil:
    """Make a block idle, in place of older ones if the limit demands it."""
    global idle_blocks, idle_total
    cdef Slot block
    cdef Slot[SLOTS] given_up
    cdef size_t limit, hot_total = 0
    cdef int i, count
    block.data = data
    block.capacity = capacity
    block.hot = capacity <= HOT
    block.since = pages_clock()
    # Another thread may take a block as soon as it is in the store, so it is advised free before, or under the lock.
    if capacity < LARGE or capacity > idle_limit or not (block.hot or pages_lend(data, capacity)):
        _unmap_later(data, capacity)
        return
    if not pages_try_lock():
        _unmap_later(data, capacity)
        return
    limit = idle_limit      # it may have been lowered meanwhile
    if capacity > limit:
        pages_unlock()
        _unmap_later(data, capacity)
        return
    count = _evicted(limit - capacity, SLOTS - 1, given_up)
    slots[idle_blocks] = block
    idle_blocks += 1
    idle_total += capacity
    for i in range(idle_blocks - 1, -1, -1):
        if slots[i].hot:
            hot_total += slots[i].capacity
            if hot_total > HOT:
                if pages_lend(slots[i].data, slots[i].capacity):
                    slots[i].hot = False
                else:
                    given_up[count] = _removed(i)
                    count += 1
    pages_unlock()
    for i in range(count):
        _unmap_later(given_up[i].data, given_up[i].capacity)


cdef int _drop(size_t total, bint aside) noexcept nogil:
    """Unmap idle blocks until `total` bytes remain; return their number, or -1 if another thread holds the lock.

    The GIL is released for large blocks if they may be unmapped `aside`.
    """
    cdef Slot[SLOTS] given_up
    cdef int i, count
    if not pages_try_lock():
        return -1
    count = _evicted(total, SLOTS, given_up)
    pages_unlock()
    for i in range(count):
        if aside:
            _unmap_aside(given_up[i].data, given_up[i].capacity)
        else:
            _unmap(given_up[i].data, given_up[i].capacity)
    return count


cdef int _evicted(size_t total, int blocks, Slot *given_up) noexcept nogil:
    """Take the oldest blocks out of the store until so many bytes and blocks remain; return their number."""
    cdef int count = 0
    while idle_total > total or idle_blocks > blocks:
        given_up[count] = _removed(0)
        count += 1
    return count


cdef Slot _removed(int i) noexcept nogil:
    """Take one block out of the store."""
    global idle_blocks, idle_total
    cdef Slot block = slots[i]
    idle_blocks -= 1
    idle_total -= block.capacity
    memmove(&slots[i], &slots[i + 1], (idle_blocks - i) * sizeof(Slot))
    return block


def set_idle_limit(nbytes: SupportsIndex) -> int:
    """Limit the idle memory that is kept for the next large results, and return the previous limit.

    When the last reference to a result of 512 KiB or more goes, its memory is not returned to the system. It is kept
    for the next result of about the same size, because new memory from the system costs more than the broadcast itself.
    The system can reclaim all idle memory but 32 MiB whenever memory runs short. Idle memory beyond the new limit is
    returned at once, the oldest first.

    Parameters
    ----------
    nbytes : int
        How many bytes may be idle. Results larger than this limit get their memory as NumPy's arrays do; 0 returns
        everything to the system and keeps nothing from then on. The first limit of a process is the value of the
        environment variable ``BCAST_IDLE_BYTES``. Without that, it is 1 GiB, or an eighth of the memory that the
        process may have if that is less. The process may have the smallest of the machine's memory, the limits of its
        control groups (such as a container's limit), RLIMIT_AS and RLIMIT_DATA.

    Returns
    -------
    int
        The previous limit.

    Raises
    ------
    TypeError
        If `nbytes` is not an integer.
    ValueError
        If `nbytes` is negative.

    Notes
    -----
    On systems that cannot reclaim idle memory when they need it, such as Windows, none is kept. While a memory handler
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
        limit = index(nbytes)
    except TypeError:
        raise TypeError(f"`nbytes` expected an integer, got {type(nbytes).__name__}") from None
    if limit < 0:
        raise ValueError(f"`nbytes` expected 0 or more bytes, got {limit}")
    cdef object previous = idle_limit       # what can fail comes before what changes the store
    limit = min(limit, MAX_BYTES)
    idle_limit = limit
    _drop_to(idle_limit)
    return previous


cdef void _drop_to(size_t total) noexcept nogil:
    """Unmap idle blocks. If the lock is not free within 10 ms, the next block that is kept enforces the limit."""
    cdef int tries = 0
    _unmap_leaving(NULL)
    while _drop(total, True) < 0 and tries < 100:
        pages_nap()
        tries += 1


def release_memory() -> None:
    """Return all idle memory to the system, which was kept for the next large results.

    The limit does not change: later results leave their memory to the next ones again.

    Returns
    -------
    None

    See Also
    --------
    set_idle_limit : Keep less, or nothing.
    memory_info : Tell how much is kept.

    Examples
    --------
    >>> import bcast
    >>> bcast.release_memory()
    >>> bcast.memory_info().idle
    0
    """
    _drop_to(0)


def memory_info() -> MemoryInfo:
    """Tell how much memory is kept for the next large results.

    Returns
    -------
    MemoryInfo
        A named tuple of three numbers of bytes: `idle` bytes are kept; the system may reclaim `lent` of them whenever
        memory runs short; `limit` is how many may be kept, as `set_idle_limit` says.

    See Also
    --------
    release_memory : Return it to the system.

    Notes
    -----
    While more than 64 MiB are idle, each call that makes a result returns the oldest block to the system if no result
    has used it for five seconds.

    Examples
    --------
    >>> import bcast
    >>> info = bcast.memory_info()
    >>> info.lent <= info.idle <= info.limit
    True
    """
    cdef size_t lent = 0
    cdef int i
    if pages_try_lock():        # it nearly always succeeds; if not, `lent` is 0
        for i in range(idle_blocks):
            lent += 0 if slots[i].hot else slots[i].capacity
        pages_unlock()
    return MemoryInfo(idle_total, lent, idle_limit)


class MemoryInfo(NamedTuple):
    """The result of `memory_info`, in bytes."""

    idle: int
    lent: int
    limit: int


def idle_bytes():
    """Return how many bytes are idle."""
    return idle_total


def let_time_pass(double seconds):
    """Make all idle blocks older by so many seconds: for tests."""
    cdef int i
    for i in range(idle_blocks):
        slots[i].since -= seconds


def _after_fork_in_child():
    """Give up the child's idle blocks: pages that both processes hold are copied when the parent writes to them."""
    global idle_blocks, idle_total
    if _drop(0, False) < 0:     # a thread that does not exist in the child held the lock
        idle_blocks = 0
        idle_total = 0
        pages_unlock()
    _unmap_leaving(NULL)


def _initial_limit():
    default = min(1 << 30, memory() // 8)
    text = os.environ.get("BCAST_IDLE_BYTES", "")
    try:
        limit = int(text) if text else default
    except ValueError:
        limit = -1
    if limit < 0:
        warnings.warn(
            f"`BCAST_IDLE_BYTES` expected an integer of 0 or more, got {text!r}; {default} is used instead",
            RuntimeWarning, stacklevel=2,
        )
        limit = default
    return min(limit, MAX_BYTES)


cdef size_t page = pages_size()
cdef bint huge_pages = os.environ.get("NUMPY_MADVISE_HUGEPAGE", "") != "0"     # it turns them off in NumPy, too
cdef PyDataMem_Handler handler

strcpy(handler.name, "bcast")
handler.version = 1
handler.allocator.ctx = NULL
handler.allocator.malloc = _malloc
handler.allocator.calloc = _calloc
handler.allocator.realloc = _realloc
handler.allocator.free = _free
cdef object capsule = PyCapsule_New(&handler, "mem_handler", NULL)
Py_INCREF(capsule)      # arrays may be freed after everything else

idle_limit = _initial_limit()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
