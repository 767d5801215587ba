# cython: cdivision=True
"""`Counts`: how often each item repeats; checked and summed in one pass, then read chunk by chunk.

In: arrays or tuples of integers. Out: `Counts`, which the cores read. Few counts are copied. Many are read in place,
and another thread may change them meanwhile. Readers work on a private snapshot of each chunk, adjusted so that its
sum matches the first pass: a racing writer can corrupt values, never sizes.
"""

cimport cython
cimport numpy as cnp
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from bcast._rules.arguments cimport MAX_SIZE
from bcast._runtime.core cimport (
    Job, contiguous_overlap, count_shares, count_threads, cut, new_job, run_job, run_without_gil,
)
from bcast._runtime.tuning cimport RELEASING_BYTES, WAKING_TIMES

import numpy as np

cnp.import_array()

cdef enum:
    SAFE_BITS = 53      # the bits of a safe count: the sum of a chunk of such counts does not wrap around

ctypedef fused Integer:
    int8_t
    uint8_t
    int16_t
    uint16_t
    int32_t
    uint32_t

cdef struct Work:           # common to all shares of a sum
    const CountList *counts
    Py_ssize_t *sums        # one for each chunk; -1 if a count is negative or too long to be summed at once
    int shares


@cython.final
@cython.auto_pickle(False)
@cython.freelist(4)
@cython.no_gc       # private, so it is in no cycle
cdef class Counts:
    """Counts of 0 or more, in the order of the items, and their sum."""

    cpdef cnp.ndarray to_array(self):
        """A private array of the counts, for NumPy."""
        cdef int64_t[CHUNK] room
        cdef const int64_t *chunk
        cdef cnp.ndarray array
        cdef Py_ssize_t c

        self.check()
        if not self.is_exact():
            raise MemoryError
        array = np.empty(self.list.size, np.intp)
        for c in range(_chunks(&self.list)):
            chunk = read_chunk(&self.list, c, room)
            memcpy(<int64_t *> cnp.PyArray_DATA(array) + c * CHUNK, chunk, _length(&self.list, c) * sizeof(int64_t))
        return array

    cdef bint is_exact(self) noexcept:
        """Whether `starts` are right: not if the total is too large for any memory."""
        return self.list.starts == NULL or self.list.starts[_chunks(&self.list)] == self.list.total

    cdef int check(self) except -1:
        """Refuse an array that a user's callback has resized during the call."""
        if self.list.kept == NULL and self.array is not None and (
            <const char *> cnp.PyArray_DATA(self.array) != self.list.shared
            or cnp.PyArray_SIZE(self.array) != self.list.size
        ):
            raise ValueError("`repeats` expected an array that keeps its size during the call, got a resized one")
        return 0

    cpdef int keep_from(self, cnp.ndarray out) except -1:
        """Copy the counts if `out`, which is contiguous, overlaps them."""
        self.check()
        if self.list.kept == NULL and contiguous_overlap(self.array, out):
            self.array = self.to_array()
            self.list.kept = <const int64_t *> cnp.PyArray_DATA(self.array)
        return 0

    def __dealloc__(self):
        free(<void *> self.list.starts)
        free(self.owned)


cpdef Counts counts_of_array(repeats):
    """Read a 1-D array of integers or bools; None if `repeats` is something else, or has one item."""
    cdef cnp.ndarray array
    cdef Counts counts
    if type(repeats) is not cnp.ndarray:
        return None
    array = repeats
    if cnp.PyArray_NDIM(array) != 1 or cnp.PyArray_TYPE(array) > cnp.NPY_ULONGLONG or cnp.PyArray_SIZE(array) == 1:
        return None
    if not (cnp.PyArray_ISBEHAVED_RO(array) and cnp.PyArray_IS_C_CONTIGUOUS(array)):
        array = array.astype(array.dtype.newbyteorder("="), order="C")
    counts = Counts.__new__(Counts)
    counts.list.size = cnp.PyArray_SIZE(array)
    counts.list.shared = <const char *> cnp.PyArray_DATA(array)
    counts.list.type = cnp.PyArray_TYPE(array)
    counts.list.itemsize = cnp.PyArray_ITEMSIZE(array)
    if counts.list.size > 8 * CHUNK:    # a copy would be in the cache of the thread that made it
        counts.array = array    # NumPy does not resize it while others refer to it
    else:
        counts.list.kept = counts.owned = <int64_t *> _allocated(counts.list.size)
        _read(&counts.list, 0, counts.list.size, counts.owned)
    return _added_up(counts)


cpdef Counts counts_of_tuple(tuple repeats):
    """Read counts of 0 or more whose sum is less than `sys.maxsize`."""
    cdef Counts counts = Counts.__new__(Counts)
    cdef Py_ssize_t i
    counts.list.kept = counts.owned = <int64_t *> _allocated(len(repeats))
    counts.list.size = len(repeats)
    counts.list.type = cnp.NPY_INT64
    counts.list.itemsize = sizeof(int64_t)
    for i in range(len(repeats)):
        counts.owned[i] = <Py_ssize_t> repeats[i]
    return _added_up(counts)


cdef void *_allocated(Py_ssize_t n) except NULL:
    """Memory for n numbers of 8 bytes, n > 0: memory for none may be NULL."""
    cdef void *memory = malloc((n + 1) * sizeof(int64_t))
    if memory == NULL:
        raise MemoryError
    return memory


cdef Counts _added_up(Counts whole):
    """Sum all counts, and the counts before each chunk."""
    cdef CountList *counts = &whole.list
    cdef int64_t[CHUNK] room
    cdef Py_ssize_t chunks = _chunks(counts)
    cdef Py_ssize_t nbytes = counts.size * counts.itemsize
    cdef Py_ssize_t *sums = NULL
    cdef bint is_large = counts.kept == NULL and nbytes >= RELEASING_BYTES
    cdef int threads = 1
    cdef Work work
    cdef Job job

    if chunks <= 1:
        counts.total = _sum_of(counts, 0, room)
    else:
        sums = <Py_ssize_t *> _allocated(chunks)
        counts.starts = sums
        if is_large:
            threads = count_threads(nbytes, RELEASING_BYTES, WAKING_TIMES // 2, chunks)
        work = Work(counts=counts, sums=sums, shares=count_shares(threads, chunks))
        job = new_job(_sum_share, &work, threads, work.shares)
        if is_large:
            run_without_gil(&job, whole.array)
        else:
            run_job(&job)
        counts.total = _make_starts(sums, chunks)
    if counts.total < 0:
        counts.total = _exact_total(counts)
        if chunks > 1 and counts.total >= 0 and counts.total >> SAFE_BITS == 0:     # long counts have changed meanwhile
            counts.total = sums[chunks]
    whole.size, whole.total = counts.size, counts.total
    return whole


cdef void _sum_share(void *all_work, int i, int worker) noexcept nogil:
    """Sum each chunk of a share."""
    cdef const Work *work = <const Work *> all_work
    cdef int64_t[CHUNK] room
    cdef Py_ssize_t chunks = _chunks(work.counts), c
    for c in range(cut(chunks, i, work.shares), cut(chunks, i + 1, work.shares)):
        work.sums[c] = _sum_of(work.counts, c, room)


cdef Py_ssize_t _make_starts(Py_ssize_t *sums, Py_ssize_t chunks) noexcept:
    """Replace the sum of each chunk by the sum of all chunks before it; return the total, -1 if not known yet."""
    cdef Py_ssize_t total = 0, c, own
    cdef bint odd = False
    for c in range(chunks):
        own = sums[c]
        sums[c] = total
        if own < 0 or own >= MAX_SIZE - total:
            odd = True
            own = 0
        total += own
    sums[chunks] = total
    return -1 if odd else total


cdef Py_ssize_t _sum_of(const CountList *counts, Py_ssize_t c, int64_t *room) noexcept nogil:
    """The sum of a chunk; -1 if a count is negative or has many bits."""
    return _sum(_fetched(counts, c, room), _length(counts, c))


cdef Py_ssize_t _sum(const int64_t *values, Py_ssize_t n) noexcept nogil:
    """The sum of a chunk's counts, or -1 as above. Summing both halves together saves a third of the time."""
    cdef Py_ssize_t half = n // 2, i
    cdef int64_t total = values[n - 1] if n % 2 else 0, bits = total
    for i in range(half):
        total += values[i] + values[half + i]
        bits |= values[i] | values[half + i]
    return <Py_ssize_t> total if <uint64_t> bits >> SAFE_BITS == 0 else -1


cdef Py_ssize_t _exact_total(const CountList *counts) noexcept:
    """The total of counts that need a second pass: -1 if one is negative, MAX_SIZE if it is that or more.

    If it is less, `starts` are wrong, but no memory has room for that number of items.
    """
    cdef int64_t[CHUNK] room
    cdef const int64_t *values
    cdef bint signed = counts.itemsize < 8 or counts.type & 1
    cdef int64_t total = 0
    cdef Py_ssize_t c, i

    for c in range(_chunks(counts)):
        values = _fetched(counts, c, room)
        for i in range(_length(counts, c)):
            if values[i] < 0 and signed:
                return -1
            total = total + values[i] if 0 <= values[i] < MAX_SIZE - total else MAX_SIZE
    return <Py_ssize_t> total


cdef Py_ssize_t find_chunk(const CountList *counts, Py_ssize_t at, Py_ssize_t each) noexcept nogil:
    """The chunk of position `at`, if each item extends over its count plus `each`."""
    cdef Py_ssize_t low = 0, high = _chunks(counts), middle
    while high - low > 1:
        middle = (low + high) // 2
        if counts.starts[middle] + each * middle * CHUNK <= at:
            low = middle
        else:
            high = middle
    return low


cdef const int64_t *read_chunk(const CountList *counts, Py_ssize_t c, int64_t *room) noexcept nogil:
    """Return chunk `c`, perhaps in `room`. Its sum is its first sum, even if its counts have changed."""
    cdef Py_ssize_t n = _length(counts, c), i
    cdef int64_t left = counts.total
    if counts.kept != NULL:
        return counts.kept + c * CHUNK
    if counts.starts != NULL:
        left = counts.starts[c + 1] - counts.starts[c]
    _read(counts, c * CHUNK, n, room)
    if _sum(room, n) != left:   # not within `_read`, lest the compiler read a count twice
        for i in range(n):
            room[i] = max(<int64_t> 0, min(room[i], left))
            left -= room[i]
        room[n - 1] += left
    return room


cdef void tile_counts(TiledCounts *counts, Py_ssize_t times) noexcept nogil:
    """Prepare counts for `times` repetitions: few counts are copied side by side, to fill whole chunks."""
    cdef CountList *list = &counts.list
    cdef Py_ssize_t copies = min(times, <Py_ssize_t> CHUNK // list.size), i
    cdef int64_t[CHUNK] room
    cdef const int64_t *few

    if copies > 1:
        few = read_chunk(list, 0, room)
        for i in range(copies):
            memcpy(&counts.few[i * list.size], few, list.size * sizeof(int64_t))
        list.kept = counts.few
        list.size *= copies
        list.total *= copies
    if list.starts == NULL:
        counts.ends = [0, list.total]
        list.starts = counts.ends


cdef inline Py_ssize_t _chunks(const CountList *counts) noexcept nogil:
    return (counts.size + CHUNK - 1) // CHUNK


cdef inline Py_ssize_t _length(const CountList *counts, Py_ssize_t c) noexcept nogil:
    """The number of counts in chunk `c`."""
    return min(<Py_ssize_t> CHUNK, counts.size - c * CHUNK)


cdef const int64_t *_fetched(const CountList *counts, Py_ssize_t c, int64_t *room) noexcept nogil:
    """Chunk `c` as it is now, perhaps in `room`."""
    if counts.kept != NULL:
        return counts.kept + c * CHUNK
    _read(counts, c * CHUNK, _length(counts, c), room)
    return room


cdef void _read(const CountList *counts, Py_ssize_t begin, Py_ssize_t n, int64_t *dst) noexcept nogil:
    """Convert n of the shared counts."""
    cdef const char *at = counts.shared + begin * counts.itemsize
    cdef bint signed = counts.type & 1
    cdef Py_ssize_t i

    if counts.type == cnp.NPY_BOOL:
        for i in range(n):
            dst[i] = at[i] != 0
    elif counts.itemsize == 8:  # uint64 too: a count beyond int64 becomes negative, and needs a second pass
        memcpy(dst, at, n * sizeof(int64_t))
    elif counts.itemsize == 4 and signed:
        _convert(<const int32_t *> at, n, dst)
    elif counts.itemsize == 4:
        _convert(<const uint32_t *> at, n, dst)
    elif counts.itemsize == 2 and signed:
        _convert(<const int16_t *> at, n, dst)
    elif counts.itemsize == 2:
        _convert(<const uint16_t *> at, n, dst)
    elif signed:
        _convert(<const int8_t *> at, n, dst)
    else:
        _convert(<const uint8_t *> at, n, dst)


cdef void _convert(const Integer *counts, Py_ssize_t n, int64_t *dst) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        dst[i] = <int64_t> counts[i]
