# Memory: blocks of pages for large results, and pages of mapped files.
#
# arrays.pxi asks for a block of so many bytes and gets its address; NumPy gives the block back when the array is
# resized or freed, by the functions of the array's memory handler. The handler is never NumPy's current one, so no
# other array gets it. Blocks that come back are kept idle for the next results, within a limit.
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

cdef Py_ssize_t map_min_bytes = MAP_MIN_BYTES   # or what a test has set
cdef object file_array = np.memmap


# Blocks, for results


cdef bint pays(size_t nbytes) noexcept nogil:
    """Whether a result of so many bytes gets a block: only if the block may be kept, as its next use pays for it."""
    return PAGES and nbytes >= BLOCK_MIN_BYTES and _rounded(nbytes) <= idle_limit


cdef void drop_unused() noexcept:
    """Unmap the oldest idle block if it has been idle for 5 seconds: only one, because this call pays for it."""
    if idle_total > 2 * UNADVISED_MAX_BYTES:
        with cython.critical_section(capsule):
            if idle_total > 2 * UNADVISED_MAX_BYTES and time(NULL) - idle[0].since > 5:
                _unmap(_removed(0))


# The functions of the memory handler (NEP 49) of arrays over our blocks.


cdef void *_malloc(void *ctx, size_t size) noexcept:
    """Take the idle block that fits best, the youngest of equals, or map a new one; NULL if there is no memory."""
    cdef size_t capacity = _rounded(size), most = capacity + capacity // BLOCK_SPARE
    cdef int i, best = -1
    with cython.critical_section(capsule):
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
    moved = _malloc(ctx, size)
    if moved != NULL:
        memcpy(moved, data, old)
        _free(ctx, data, old)
    return moved


cdef void _free(void *ctx, void *data, size_t size) noexcept:
    """Keep a block idle if the limit allows it, in place of older ones if need be; unmap it otherwise.

    NEP 49 does not promise that `size` is right.
    """
    global idle_blocks, idle_total
    cdef Block block = Block(<char *> data, _capacity(<char *> data)[0], False, time(NULL))
    cdef size_t unadvised = 0
    cdef int i
    with cython.critical_section(capsule):
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
    """Where a block has its capacity."""
    return <size_t *> data - 1


cdef size_t _rounded(size_t size) noexcept nogil:
    """How many bytes a block for `size` bytes has: whole huge pages, unless too much of them would be unused."""
    cdef size_t whole
    if size > <size_t> MAX_BYTES - 2 * HUGE_PAGE:
        return 0
    size = max(size, <size_t> 1)
    whole = (size + HUGE_PAGE - 1) // HUGE_PAGE * HUGE_PAGE
    return whole if whole - size <= size // BLOCK_SPARE else (size + page - 1) // page * page


cdef char *_mapped(size_t capacity) noexcept:
    """Map a new block; if there is no memory, unmap the idle ones first."""
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
    """Unmap the oldest idle blocks until so many bytes and blocks remain."""
    while idle_total > total or idle_blocks > blocks:
        _unmap(_removed(0))


cdef Block _removed(int i) noexcept:
    """Take one block out of the store."""
    global idle_blocks, idle_total
    cdef Block block = idle[i]
    idle_blocks -= 1
    idle_total -= block.capacity
    memmove(&idle[i], &idle[i + 1], (idle_blocks - i) * sizeof(Block))
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
    TypeError, ValueError
        If `nbytes` is not an integer, or negative.

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
        limit = operator.index(nbytes)
    except TypeError:
        raise TypeError(f"`nbytes` expected an integer, got {type(nbytes).__name__}") from None
    if limit < 0:
        raise ValueError(f"`nbytes` expected 0 or more bytes, got {limit}")
    cdef object previous = idle_limit       # what can fail comes before what changes the store
    cdef size_t bounded = min(limit, MAX_BYTES)
    with cython.critical_section(capsule):
        idle_limit = bounded
        _evict(idle_limit, IDLE_MAX_BLOCKS)
    return previous


def release_memory() -> None:
    """Return all idle memory to the system, which was kept for the next large results.

    The limit that `set_idle_limit` has set does not change: later results leave their memory to the next ones again.

    Examples
    --------
    >>> import bcast
    >>> bcast.release_memory()
    >>> bcast.memory_info().idle
    0
    """
    with cython.critical_section(capsule):
        _evict(0, 0)


def memory_info() -> MemoryInfo:
    """Tell how much memory is kept for the next large results.

    Returns
    -------
    MemoryInfo
        A named tuple of three numbers of bytes: `idle` bytes are kept; the system may reclaim `lent` of them whenever
        memory runs short; `limit` is how many may be kept, as `set_idle_limit` says.

    Notes
    -----
    `release_memory` returns it to the system. While more than 64 MiB are idle, each call that makes a result returns
    the oldest block to the system if no result has used it for five seconds.

    Examples
    --------
    >>> import bcast
    >>> info = bcast.memory_info()
    >>> info.lent <= info.idle <= info.limit
    True
    """
    cdef size_t total, advised = 0
    cdef int i
    with cython.critical_section(capsule):
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
    """Return whether an array lies in a large file that is mapped and shared.

    A private map would lose what was written, so only the arrays of `numpy.memmap` count, which tell their modes.
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
    """Have the pages of an array leave this process's memory if it lies in a large file that is mapped and shared."""
    cdef char *begin
    cdef Py_ssize_t size
    if cnp.PyArray_SIZE(array) and is_mapped(array):
        size = reach(array, &begin)
        forget_range(begin, size)


cdef void forget_range(const void *begin, Py_ssize_t size) noexcept nogil:
    """Have the pages of a range in a file that is mapped and shared leave this process's memory."""
    pages_forget(begin, size)


cdef size_t page = pages_size()
cdef bint huge_pages = os.environ.get("NUMPY_MADVISE_HUGEPAGE", "") != "0"     # it turns them off in NumPy, too
cdef PyDataMem_Handler handler

strcpy(handler.name, "bcast")
handler.version = 1
handler.allocator = PyDataMemAllocator(NULL, _malloc, NULL, _realloc, _free)   # no new array gets it, to be zeroed
cdef object capsule = PyCapsule_New(&handler, "mem_handler", NULL)
Py_INCREF(capsule)      # arrays may be freed after everything else

idle_limit = min(setting("BCAST_IDLE_BYTES", 0, min(1 << 30, memory() // 8)), MAX_BYTES)
if hasattr(os, "register_at_fork"):     # pages that both processes hold are copied when the parent writes to them
    os.register_at_fork(after_in_child=release_memory)
