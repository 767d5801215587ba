# cython: cdivision=True
"""The pages of large results: a store of idle blocks, which earlier results have left.

An array over a block carries `handler`, whose functions NumPy calls when the array is resized or freed; it is never
NumPy's current handler, so no other array meets it. The functions take any size, as `ndarray.resize` may ask for it,
and any thread, with the GIL or without.
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
    LARGE = 512 << 10   # bytes; from here on changing the handler of NumPy costs little beside writing them
    HOT = 32 << 20      # bytes; the youngest idle blocks are not lent to the system, which pays without huge pages
    SLOTS = 64          # idle blocks at most
    SPARE = 8           # a block may be larger than what it is asked for by one part in so many
    LASTING = 64 << 20  # bytes; idle blocks beyond that go when nobody has asked for them for UNUSED seconds
    UNUSED = 5
    SLOW = 16 << 20     # bytes; to unmap so many takes some 0.5 ms, which other Python threads need not wait for


cdef struct Header:     # at the end of the page before the data, as nobody promises the size that `free` is given
    size_t capacity


cdef struct Slot:
    char *data
    size_t capacity
    bint hot
    double since        # when it became idle


# The idle blocks, oldest first. The lock over them is only ever tried: who does not get it does without the store.
cdef Slot[SLOTS] slots
cdef int idle_blocks = 0
cdef size_t idle_total = 0
cdef size_t idle_limit = 0

cdef Py_ssize_t MAX_BYTES = sys.maxsize


cdef bint pays(size_t nbytes) noexcept nogil:
    """Whether a result of so many bytes gets a block: one that may be kept, as the next use of it pays for it."""
    return PAGES and nbytes >= LARGE and _rounded(nbytes) <= idle_limit


cdef object page_handler():
    """Return the memory handler (NEP 49) of arrays whose memory comes from here."""
    return capsule


cdef void *new_block(size_t nbytes) noexcept nogil:
    """A block for an array that gets the handler above; NULL if there is none."""
    return _malloc(NULL, nbytes)


cdef void drop_block(void *data) noexcept nogil:
    """Take back a block for which there is no array."""
    _free(NULL, data, 0)


cdef void *_malloc(void *ctx, size_t size) noexcept nogil:
    cdef size_t capacity = _rounded(size)
    cdef char *data = _taken(capacity) if capacity >= LARGE else NULL
    return data if data != NULL else _mapped(capacity)


cdef void *_calloc(void *ctx, size_t count, size_t size) noexcept nogil:
    if size and count > <size_t> MAX_BYTES // size:
        return NULL
    return _mapped(_rounded(count * size))      # new pages are clear


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
    """Keep the block if the limit has room for it, at the expense of older ones."""
    if data != NULL:
        _keep(<char *> data, _header(<char *> data).capacity)


cdef inline Header *_header(char *data) noexcept nogil:
    return <Header *> data - 1


cdef size_t _rounded(size_t size) noexcept nogil:
    """How many bytes a block for `size` bytes has: whole huge pages, unless too much of them would be left over."""
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
    """A new block, for which idle ones are given up if need be."""
    cdef char *data
    if capacity == 0:
        return NULL
    data = pages_map(page, capacity, huge_pages)
    if data == NULL and _drop(0) > 0:
        data = pages_map(page, capacity, huge_pages)
    if data != NULL:
        _header(data).capacity = capacity
    return data


cdef void _unmap(char *data, size_t capacity) noexcept nogil:
    """Unmap a block; a large one without the GIL, if this thread has it."""
    cdef PyThreadState *state = NULL
    if capacity >= SLOW and Py_IsInitialized() and PyGILState_Check():
        state = PyEval_SaveThread()
    pages_unmap(data - page, page + capacity)
    if state != NULL:
        PyEval_RestoreThread(state)


cdef void drop_unused() noexcept:
    """Unmap the oldest idle block if nobody has asked for it for seconds: one, as the call that does so pays for it."""
    cdef Slot block
    if idle_total <= LASTING or not pages_try_lock():
        return
    block.data = NULL
    if idle_total > LASTING and pages_clock() - slots[0].since > UNUSED:
        block = _removed(0)
    pages_unlock()
    if block.data != NULL:
        _unmap(block.data, block.capacity)


cdef char *_taken(size_t capacity) noexcept nogil:
    """The idle block that fits best, the youngest of equals; NULL if there is none."""
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
    """Make a block idle, in the place of older ones if the limit asks for it."""
    global idle_blocks, idle_total
    cdef Slot block
    cdef Slot[SLOTS] given_up
    cdef size_t limit, hot_total = 0
    cdef int i, count
    block.data = data
    block.capacity = capacity
    block.hot = capacity <= HOT
    block.since = pages_clock()
    # Once in the store a block may be another thread's at any time, so it is lent before, or under the lock.
    if capacity < LARGE or capacity > idle_limit or not (block.hot or pages_lend(data, capacity)):
        _unmap(data, capacity)
        return
    if not pages_try_lock():
        _unmap(data, capacity)
        return
    limit = idle_limit      # it may have been lowered since
    if capacity > limit:
        pages_unlock()
        _unmap(data, capacity)
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
        _unmap(given_up[i].data, given_up[i].capacity)


cdef int _drop(size_t total) noexcept nogil:
    """Unmap idle blocks until `total` bytes remain; return how many, or -1 where another thread has the store."""
    cdef Slot[SLOTS] given_up
    cdef int i, count
    if not pages_try_lock():
        return -1
    count = _evicted(total, SLOTS, given_up)
    pages_unlock()
    for i in range(count):
        _unmap(given_up[i].data, given_up[i].capacity)
    return count


cdef int _evicted(size_t total, int blocks, Slot *given_up) noexcept nogil:
    """Take the oldest blocks out of the store until so many bytes and blocks remain; return how many were taken."""
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
    """Limit the memory that is kept for the next large results, and return the previous limit.

    The memory of a new result of 512 KiB or more is not handed back to the system when the last reference to it goes,
    but kept for the next one of about its size: memory fresh from the system costs more than the broadcast itself.
    The system can take all of it but 32 MiB whenever memory runs short. What is kept beyond the new limit is handed
    back at once, the oldest first.

    Parameters
    ----------
    nbytes : int
        How many bytes may be idle. Results that do not fit this limit get their memory as NumPy's arrays do; 0 hands
        everything back and keeps nothing from then on. The first limit of a process is the environment variable
        ``BCAST_IDLE_BYTES``, else 1 GiB or an eighth of the memory that the process may have, whichever is less: of
        the machine's, of what its control groups allow (a container's limit) and of RLIMIT_AS and RLIMIT_DATA.

    Returns
    -------
    int
        The limit so far.

    Raises
    ------
    TypeError
        If `nbytes` is no integer.
    ValueError
        If `nbytes` is negative.

    Notes
    -----
    On systems that cannot take idle memory back when they need it, Windows among them, none is kept. Nor is it where
    the user has set a memory handler of NumPy other than the default: results get their memory from that one.

    Examples
    --------
    >>> import bcast
    >>> previous = bcast.set_idle_limit(256 << 20)
    >>> bcast.set_idle_limit(0)  # hand it all back ...
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
    """Unmap idle blocks; without success after 10 ms what is kept next enforces the limit."""
    cdef int tries = 0
    while _drop(total) < 0 and tries < 100:
        pages_nap()
        tries += 1


def release_memory() -> None:
    """Hand the memory that is kept for the next large results back to the system, all of it.

    The limit stays as it is: results that come later leave their memory to the next ones again.

    Returns
    -------
    None

    See Also
    --------
    set_idle_limit : Keep less, or nothing.
    memory_info : How much is kept.

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
        A named tuple: `idle`, the bytes that are kept; `lent`, those of them that the system may take back whenever
        memory runs short; `limit`, how many may be kept, as `set_idle_limit` says.

    See Also
    --------
    release_memory : Hand it back.

    Notes
    -----
    Of more than 64 MiB, what no result has used for five seconds goes back to the system on the next calls.

    Examples
    --------
    >>> import bcast
    >>> info = bcast.memory_info()
    >>> info.lent <= info.idle <= info.limit
    True
    """
    cdef size_t lent = 0
    cdef int i
    if pages_try_lock():        # nearly always: else the sum may be of slots that are being moved, which does no harm
        for i in range(idle_blocks):
            lent += 0 if slots[i].hot else slots[i].capacity
        pages_unlock()
    return MemoryInfo(idle_total, lent, idle_limit)


class MemoryInfo(NamedTuple):
    """What `memory_info` tells, in bytes."""

    idle: int
    lent: int
    limit: int


def idle_bytes():
    """Return how many bytes are idle."""
    return idle_total


def let_time_pass(double seconds):
    """Make all idle blocks so much older: for tests."""
    cdef int i
    for i in range(idle_blocks):
        slots[i].since -= seconds


def _after_fork_in_child():
    """Leave the idle blocks to the parent, which would have to copy them once the child has them, too."""
    global idle_blocks, idle_total
    if _drop(0) < 0:        # a thread that the child lacks was at work on them
        idle_blocks = 0
        idle_total = 0
        pages_unlock()


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
cdef bint huge_pages = os.environ.get("NUMPY_MADVISE_HUGEPAGE", "") != "0"     # for those who want none in NumPy
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
