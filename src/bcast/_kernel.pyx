# cython: cdivision=True
"""`replicate` and `repeat_counted`: copy an array along an alignment, or its items by a count for each, as bytes.

Items that cannot be copied as bytes are left to NumPy, and so are strided outputs of `replicate`. What remains is two
buffers and a plan of the copy core's, for an alignment or for counts. This module releases the GIL and cuts the output
into shares of equal length, which threads write.
"""

cimport cython
cimport numpy as cnp
from libc.stdint cimport uint8_t, uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

import numpy as np

from bcast._copy.core cimport (
    SCRATCH, CountedPlan, Pair, Plan, drop_counted, make_counted, make_plan, packed, units_before, write_blocks,
    write_counted, write_part, write_strided,
)
from bcast._rules.alignment cimport Alignment, aligned
from bcast._rules.counts cimport CHUNK, Counts
from bcast._runtime.arrays cimport new_array, shape_of
from bcast._runtime.cpu cimport PAGE
from bcast._runtime.memory cimport contiguous_overlap, extent, forget, forget_range, is_mapped, overlap, reach
from bcast._runtime.threads cimport RELEASING, SHARES, free_threads, run_shares

cdef extern from "numpy/arrayobject.h":
    bint PyDataType_REFCHK(cnp.PyArray_Descr *dtype)
    ctypedef int (*Next "NpyIter_IterNextFunc *")(cnp.NpyIter *chunks) noexcept nogil
    # In NumPy's own declarations, one raises no error where memory fails, and the other has a wrong type.
    cnp.NpyIter *NpyIter_AdvancedNew(
        int n, cnp.PyArrayObject **arrays, cnp.npy_uint32 flags, cnp.NPY_ORDER order, cnp.NPY_CASTING casting,
        cnp.npy_uint32 *own_flags, cnp.PyArray_Descr **dtypes, int ndim, int **axes, const cnp.npy_intp *shape,
        cnp.npy_intp size,
    )
    Next NpyIter_GetIterNext(cnp.NpyIter *chunks, char **message) except NULL

cdef extern from "_runtime/stream.h":
    void bcast_store_fence() noexcept nogil
    bint bcast_pages_resident(const uint8_t *out, size_t size) noexcept nogil

cnp.import_array()
cnp.import_ufunc()

cdef enum:
    CONVERTED = 4096    # items that NumPy converts at once
    DROPPED = 262144    # items between two looks at what a mapped file may give back
    WAKING = 8          # shares; for smaller outputs, waking threads that sleep costs more than it saves
    LONG_SHARE = 2097152    # bytes, about, of the longest share: the caller may have to wait for one

# Writes the bytes of an output from `begin` to `end`: past the caches if there is a scratch.
ctypedef void (*Write)(
    const void *plan, Py_ssize_t begin, Py_ssize_t end, const uint8_t *data, uint8_t *out, uint8_t *scratch
) noexcept nogil

cdef struct Work:       # what the shares of an output have in common
    Write write
    const void *plan
    const uint8_t *data
    uint8_t *out
    Py_ssize_t size
    uint8_t *scratch    # SCRATCH bytes for each thread, where the output is streamed
    int shares
    Py_ssize_t read     # bytes of data in a mapped file, or 0; its pages and
    bint mapped         # those of an output in such a file are forgotten share by share

cdef Py_ssize_t SHARE = 256 << 10   # bytes; another thread that would write less costs more than it saves
cdef Py_ssize_t STREAMED = 32 << 20     # bytes; a smaller output may stay in some cache for its reader


def set_limits(share=256 << 10, streamed=32 << 20):
    """Set the sizes from which threads share the work and outputs are streamed: for tests of small arrays.

    Parameters
    ----------
    share : int, optional
        The least number of bytes for a thread to write.
    streamed : int, optional
        The size of the smallest output that is streamed, in bytes.

    Raises
    ------
    ValueError
        If one of them is less than 1.
    """
    global SHARE, STREAMED
    if share < 1 or streamed < 1:
        raise ValueError(f"`share`, `streamed` expected bytes, at least 1, got {share}, {streamed}")
    SHARE, STREAMED = share, streamed


cpdef replicate(cnp.ndarray data, Alignment alignment, cnp.ndarray out):
    """Copy `data` along `alignment` into `out` and return `out`.

    Parameters
    ----------
    data : ndarray
        An array of any layout. Its shape is ``alignment.source``, or that without some of the 1s.
    alignment : Alignment
        The alignment of `data` with the output.
    out : ndarray
        A writeable array of `data`'s dtype and of any strides. Its shape is ``alignment.shape``, or that with some
        neighbouring axes joined into one and without some of the 1s. It may overlap `data`: the result is as if `data`
        had been copied first.

    Returns
    -------
    ndarray
        `out` itself.
    """
    cdef tuple shape = alignment.shape, source = alignment.source
    if cnp.PyArray_DESCR(data) != cnp.PyArray_DESCR(out) and (
        cnp.PyArray_ITEMSIZE(data) != cnp.PyArray_ITEMSIZE(out)
        or PyDataType_REFCHK(cnp.PyArray_DESCR(data)) != PyDataType_REFCHK(cnp.PyArray_DESCR(out))
    ):
        raise TypeError(f"`out` expected data's dtype {_plain(data).dtype}, got {_plain(out).dtype}")
    if cnp.PyArray_SIZE(out) == 0 or cnp.PyArray_ITEMSIZE(out) == 0:
        return out
    if PyDataType_REFCHK(cnp.PyArray_DESCR(out)) or not cnp.PyArray_IS_C_CONTIGUOUS(out):
        _assign(_plain(out).reshape(shape), data, source)   # a view, as this only splits axes
    elif cnp.PyArray_IS_C_CONTIGUOUS(data):
        _replicate_contiguous(data, shape, source, out)
    else:
        _replicate_strided(data, shape, source, out)
    return out


cpdef repeat_counted(cnp.ndarray data, Counts counts, int axis, cnp.ndarray out):
    """Repeat the items of `data` along an axis into `out` and return `out`.

    Parameters
    ----------
    data : ndarray
        An array of any layout, whose items have no references.
    counts : Counts
        One for each item along the axis.
    axis : int
        The axis, 0 or more; or -1 for the items of the flattened data.
    out : ndarray
        A writeable array of `data`'s dtype and of any strides. Its shape is that of the data with the counts' total as
        the length of the axis. It may overlap `data` and the counts: the result is as if both had been copied first.

    Returns
    -------
    ndarray
        `out` itself.
    """
    if PyDataType_REFCHK(cnp.PyArray_DESCR(data)) or PyDataType_REFCHK(cnp.PyArray_DESCR(out)):
        raise TypeError(f"`data` expected items without references, got {data.dtype}")
    if cnp.PyArray_ITEMSIZE(data) != cnp.PyArray_ITEMSIZE(out):
        raise TypeError(f"`out` expected data's dtype {data.dtype}, got {out.dtype}")
    if not -1 <= axis < cnp.PyArray_NDIM(data):
        raise ValueError(f"`axis` expected an axis of data of shape {shape_of(data)}, got {axis}")
    if cnp.PyArray_SIZE(out) == 0 or cnp.PyArray_ITEMSIZE(out) == 0:
        return out
    if not cnp.PyArray_IS_C_CONTIGUOUS(out):
        whole = new_array(<cnp.dtype> cnp.PyArray_DESCR(data), shape_of(out), "repeats")
        return _copied(repeat_counted(data, counts, axis, whole), out)
    if not cnp.PyArray_IS_C_CONTIGUOUS(data) or contiguous_overlap(data, out):
        data = _copied(data, new_array(<cnp.dtype> cnp.PyArray_DESCR(data), shape_of(data), "a"))
    counts.keep_from(out)
    _repeat_contiguous(data, counts, axis, out)
    return out


cdef int _replicate_contiguous(cnp.ndarray data, tuple shape, tuple source, cnp.ndarray out) except -1:
    cdef Plan plan
    cdef Py_ssize_t size = cnp.PyArray_NBYTES(out)
    cdef int threads = _count_threads(size)
    if contiguous_overlap(data, out):
        data = _plain(data).copy()
    make_plan(
        &plan, shape, source, cnp.PyArray_ITEMSIZE(out), <const uint8_t *> cnp.PyArray_DATA(data),
        cnp.PyArray_NBYTES(data), size,
    )
    if _is_large(size, threads):
        _write_large(_write_range, &plan, extent(data), extent(out), threads, is_mapped(data), is_mapped(out))
    else:
        _write_small(
            &plan, <const uint8_t *> cnp.PyArray_DATA(data), <uint8_t *> cnp.PyArray_DATA(out), size, threads,
        )
    return 0


cdef int _replicate_strided(cnp.ndarray data, tuple shape, tuple source, cnp.ndarray out) except -1:
    """Make the data contiguous and replicate it; if only the outermost axes repeat, make it contiguous within `out`."""
    cdef Py_ssize_t size = _size_once(data), expected = cnp.PyArray_ITEMSIZE(out)
    cdef int threads = _count_threads(size), outermost = 0
    cdef bint releasing = size // threads >= RELEASING
    cdef bint apart = not overlap(data, out)
    source = _source_once(data, source)
    for length in source:
        expected *= <Py_ssize_t> length
    if size != expected:
        raise ValueError("`data` expected an array that keeps its size during the call, got a resized one")
    if apart and source == shape and size == cnp.PyArray_NBYTES(out):
        write_strided(data, <uint8_t *> cnp.PyArray_DATA(out), threads, releasing)
        forget(out)
        return 0
    while outermost < len(source) and <Py_ssize_t> source[outermost] == 1:
        outermost += 1
    # One block, which outer axes repeat; of a short one, one extra copy is cheaper than the views that avoid it.
    if apart and size > 2 * PAGE and source[outermost:] == shape[outermost:]:
        _replicate_block(data, size, out, threads, releasing)
    else:
        _replicate_contiguous(packed(data, source, threads, releasing), shape, source, out)
    return 0


@cython.boundscheck(False)      # index 0 of a buffer that is not empty
@cython.wraparound(False)
cdef int _replicate_block(
    cnp.ndarray data, Py_ssize_t size, cnp.ndarray out, int threads, bint releasing,
) except -1:
    """Write the data, `size` bytes, as the first of the equal blocks of `out`, and copy that block to the others.

    Everything that can fail comes before the first write.
    """
    cdef Plan plan
    cdef Py_ssize_t rest = cnp.PyArray_NBYTES(out) - size
    cdef int others = _count_threads(rest)
    cdef uint8_t *begin = <uint8_t *> cnp.PyArray_DATA(out)
    cdef uint8_t[::1] whole
    make_plan(&plan, (rest // size, size), (1, size), 1, begin, size, rest)
    if _is_large(rest, others):
        whole = extent(out)
        write_strided(data, &whole[0], threads, releasing)
        _write_large(_write_range, &plan, whole[:size], whole[size:], others, False, is_mapped(out))
    else:
        write_strided(data, begin, threads, releasing)
        _write_small(&plan, begin, begin + size, rest, others)
    return 0


cdef Py_ssize_t _size_once(cnp.ndarray data) noexcept:
    """Bytes of the data without its axes of stride 0, which repeat already and count as axes of length 1."""
    cdef Py_ssize_t size = cnp.PyArray_ITEMSIZE(data)
    cdef int axis
    for axis in range(cnp.PyArray_NDIM(data)):
        if cnp.PyArray_STRIDE(data, axis) != 0 or cnp.PyArray_DIM(data, axis) == 0:
            size *= cnp.PyArray_DIM(data, axis)
    return size


cdef _copied(cnp.ndarray data, cnp.ndarray out):
    """Copy `data` into `out`, which has its shape."""
    cdef tuple shape = shape_of(data)
    return replicate(data, aligned(shape, shape), out)


cdef int _plan_counted(
    CountedPlan *plan, cnp.ndarray data, Counts counts, int axis, cnp.ndarray out, const uint8_t *begin,
) except -1:
    """Plan the repetition of data, or of what it is converted to, into `out`, which is contiguous."""
    cdef Py_ssize_t outer = 1, size = cnp.PyArray_ITEMSIZE(out), nbytes = cnp.PyArray_NBYTES(out)
    cdef Py_ssize_t n = cnp.PyArray_SIZE(data)
    cdef int i
    if axis >= 0:
        n = cnp.PyArray_DIM(data, axis)
        for i in range(axis):
            outer *= cnp.PyArray_DIM(data, i)
        for i in range(axis + 1, cnp.PyArray_NDIM(data)):
            size *= cnp.PyArray_DIM(data, i)
    # Arguments that run code of the user's can resize arrays; and `starts` may be wrong for more items than memory has.
    if (
        n != counts.list.size or outer * size == 0 or not counts.is_exact()
        or nbytes // (outer * size) != counts.list.total or nbytes % (outer * size)
    ):
        raise ValueError("`data` and `out` expected arrays that keep their sizes during the call, got resized ones")
    return make_counted(plan, &counts.list, outer, size, begin)


cdef int _repeat_contiguous(cnp.ndarray data, Counts counts, int axis, cnp.ndarray out) except -1:
    cdef CountedPlan plan
    cdef Py_ssize_t nbytes = cnp.PyArray_NBYTES(out)
    cdef int threads = _count_threads(nbytes + counts.list.size * counts.list.itemsize)
    _plan_counted(&plan, data, counts, axis, out, <const uint8_t *> cnp.PyArray_DATA(data))
    try:
        if _is_large(nbytes, threads):
            _write_large(
                write_counted, &plan, extent(data), extent(out), threads, is_mapped(data), is_mapped(out),
            )
        else:
            _write_shares(
                write_counted, &plan, <const uint8_t *> cnp.PyArray_DATA(data), <uint8_t *> cnp.PyArray_DATA(out),
                nbytes, NULL, threads, 0, False,
            )
    finally:
        drop_counted(&plan)
    return 0


cdef tuple _source_once(cnp.ndarray data, tuple source):
    """`source` with 1 for axes of stride 0."""
    cdef list lengths = None
    cdef int i, j, axis = 0
    for i in range(len(source)):
        if <Py_ssize_t> source[i] == 1:
            continue
        while axis < cnp.PyArray_NDIM(data) and cnp.PyArray_DIM(data, axis) == 1:
            axis += 1
        if axis < cnp.PyArray_NDIM(data) and cnp.PyArray_STRIDE(data, axis) == 0:
            if lengths is None:     # not `list(source)`: if that fails, CPython up to 3.12 leaks the tuple
                lengths = [None] * len(source)
                for j in range(len(source)):
                    lengths[j] = source[j]
            lengths[i] = 1
        axis += 1
    return source if lengths is None else tuple(lengths)


cdef int _count_threads(Py_ssize_t size) noexcept nogil:
    """How many threads write an output of `size` bytes."""
    return <int> min(free_threads(size >= WAKING * SHARE), size // SHARE) if size >= 2 * SHARE else 1


cdef bint _is_large(Py_ssize_t size, int threads) noexcept:
    """Whether views of the buffers and releasing the GIL pay for an output of `size` bytes."""
    return size // threads >= RELEASING or size >= STREAMED


cdef _assign(out, data, source):
    """Have NumPy assign `data` to `out`."""
    data, out = _plain(data), _plain(out)
    if np.may_share_memory(data, out):      # NumPy itself misses overlaps of unequal strides
        data = data.copy()
    np.copyto(out, data.reshape(source))


cdef _plain(array):
    """`array` as an array of the base class; a structured one as raw items, padding included."""
    plain = np.asarray(array)
    dtype = plain.dtype
    if dtype.names is not None and not dtype.hasobject:
        plain = plain.view(f"V{dtype.itemsize}")     # `np.dtype((np.void, n))` may drop an interrupt
    return plain


cdef void _write_small(
    const Plan *plan, const uint8_t *data, uint8_t *out, Py_ssize_t size, int threads,
) noexcept:
    """Fill an output that is too small for views of the buffers to pay."""
    if threads > 1:
        _write_shares(_write_range, plan, data, out, size, NULL, threads, 0, False)
    else:
        write_blocks(plan, 0, plan.pairs[0].copied, data, out, out + size)


@cython.boundscheck(False)      # index 0 of buffers that are not empty
@cython.wraparound(False)
cdef int _write_large(
    Write write, const void *plan, const uint8_t[::1] data, uint8_t[::1] out, int threads,
    bint data_mapped, bint mapped,
) except -1:
    """Fill a large output. The views hold both buffers while the GIL is released."""
    cdef Py_ssize_t size = out.shape[0]
    cdef uint8_t *scratch = _scratch(&out[0], size, size, threads)
    with nogil:
        _write_shares(
            write, plan, &data[0], &out[0], size, scratch, threads, data.shape[0] if data_mapped else 0, mapped,
        )
        free(scratch)
    return 0


cdef uint8_t *_scratch(const uint8_t *out, Py_ssize_t size, Py_ssize_t written, int threads) noexcept:
    """What threads need to stream an output, of which so many bytes are written at once; NULL if none is streamed."""
    if written >= (STREAMED if threads == 1 else 2 * STREAMED) and bcast_pages_resident(out, size):
        return <uint8_t *> malloc(threads * SCRATCH)    # if there is no memory, nothing is streamed
    return NULL


cdef void _write_range(
    const void *plan, Py_ssize_t begin, Py_ssize_t end, const uint8_t *data, uint8_t *out, uint8_t *scratch,
) noexcept nogil:
    write_part(<const Plan *> plan, 0, begin, end, data, out, out + end, scratch)


cdef void _write_shares(
    Write write, const void *plan, const uint8_t *data, uint8_t *out, Py_ssize_t size, uint8_t *scratch, int threads,
    Py_ssize_t read, bint mapped,
) noexcept nogil:
    """Fill an output on so many threads."""
    cdef Work work = Work(write, plan, data, out, size, scratch, 1, read, mapped)
    if threads == 1 and not mapped and read == 0:
        _write_share(&work, 0, 0)
    else:
        work.shares = <int> max(max(threads, min(size // SHARE, <Py_ssize_t> SHARES * threads)), size // LONG_SHARE)
        run_shares(_write_share, &work, work.shares, threads)


cdef void _write_share(void *all_work, int i, int worker) noexcept nogil:
    """Write one share. If outputs are streamed, every second share is not, up to as much as a cache can hold."""
    cdef const Work *work = <const Work *> all_work
    cdef int shares = work.shares
    cdef Py_ssize_t begin = _cut(i, shares, work.out, work.size)
    cdef Py_ssize_t end = _cut(i + 1, shares, work.out, work.size)
    cdef uint8_t *scratch = NULL
    cdef bint kept = i % 2 == 1 and i // 2 * (end - begin) < STREAMED // 4 * 3      # some threads write to the cache
    if work.scratch != NULL and not kept:                                           # while others wait for the memory
        scratch = work.scratch + worker * SCRATCH
    work.write(work.plan, begin, end, work.data, work.out, scratch)
    if scratch != NULL:
        bcast_store_fence()
    if work.mapped:
        forget_range(work.out + begin, end - begin)
    if work.read:
        forget_range(work.data, work.read)


cdef inline Py_ssize_t _cut(int i, int threads, const uint8_t *out, Py_ssize_t size) noexcept nogil:
    """Where share `i` begins: at a page boundary, so that no two threads touch the same page."""
    cdef Py_ssize_t at
    if i == 0 or i == threads:
        return size if i else 0
    at = size // threads * i
    return min(size, at + <Py_ssize_t> (-<uintptr_t> (out + at) & (PAGE - 1)))


# Data of another dtype: what may fail comes before the first write. Pieces of the data are converted in a room, and
# replicated from there. NumPy's iterator converts and takes no memory while it does.

cdef struct Source:
    cnp.NpyIter *chunks     # of the data, converted
    Next next
    char **chunk            # where the current one is,
    cnp.npy_intp *length    # how many items it has,
    Py_ssize_t taken        # and how many of them were taken
    Py_ssize_t itemsize
    char *mapped            # where data in a mapped file begins, whose pages are to be forgotten; or NULL
    Py_ssize_t row          # how many of its items lie together,
    Py_ssize_t stride       # in so many bytes,
    Py_ssize_t mapped_size  # and the bytes of all
    Py_ssize_t done         # items

cdef struct Pieces:
    Source source
    uint8_t *room
    Plan whole              # whose pair at `level` is cut into pieces,
    int level
    Py_ssize_t step         # of so many blocks,
    Plan[2] plans           # and fewer at the end
    Py_ssize_t copies       # that outer pairs make of a piece
    int last                # which plan the piece at hand has,
    Py_ssize_t size         # and the bytes of one of its copies
    uint8_t *scratch
    int threads
    bint mapped

cdef struct CountedPieces:
    Source source
    uint8_t *room
    CountedPlan plan
    Py_ssize_t items, group, step       # no piece crosses a multiple of `group` items
    Py_ssize_t begin                    # of the piece at hand, in bytes of the output
    bint mapped


cpdef int try_conversion(cnp.ndarray data, cnp.dtype dtype) except -1:
    """Convert data for nothing but the flags, as NumPy numbers them, that this sets in the CPU; return these."""
    cdef Source source
    cdef const uint8_t[::1] _held
    _open(&source, data, dtype, cnp.NPY_KEEPORDER)
    try:
        _held = extent(data)
        if cnp.NpyIter_IterationNeedsAPI(source.chunks):
            _drop(&source, cnp.PyArray_SIZE(data))
        else:
            with nogil:
                _drop(&source, cnp.PyArray_SIZE(data))
    finally:
        cnp.NpyIter_Deallocate(source.chunks)
    return cnp.PyUFunc_getfperr()


cpdef int replicate_converted(cnp.ndarray data, tuple shape, cnp.ndarray out, Py_ssize_t piece) except -1:
    """`replicate` for data of another dtype, in pieces of about so many bytes. Return flags as `try_conversion`.

    Parameters
    ----------
    data : ndarray
        An array of any layout, without references. It may be converted to `out`'s dtype, and overlaps no byte of it.
    shape : tuple of int
        The shape to broadcast to, of as many axes as the data.
    out : ndarray
        A contiguous writeable array without references, whose shape is `shape` with some neighbouring axes joined.
    piece : int
        At least 1.
    """
    cdef Pieces pieces
    cdef Plan *whole = &pieces.whole
    cdef Pair *pair
    cdef const uint8_t[::1] _held
    cdef uint8_t[::1] target
    cdef Py_ssize_t itemsize = cnp.PyArray_ITEMSIZE(out), n
    cdef tuple lengths = (), source = ()
    cdef int level = 0, i
    _check_conversion(data, out, piece)
    make_plan(whole, shape, shape_of(data), itemsize, NULL, cnp.PyArray_SIZE(data) * itemsize, cnp.PyArray_NBYTES(out))
    while level < whole.last and whole.pairs[level].data_bytes > piece:
        level += 1
    if whole.pairs[level].data_bytes > max(piece, itemsize):      # not even a run of items is a piece
        level += 1
        whole.last = level
        whole.pairs[level] = Pair(whole.pairs[level - 1].data_bytes // itemsize, 1, itemsize, itemsize)
    pieces.level = level
    pair = &whole.pairs[level]
    pieces.step = min(pair.copied, max(<Py_ssize_t> 1, piece // pair.data_bytes))
    room = np.empty(pieces.step * pair.data_bytes, np.uint8)
    pieces.room = <uint8_t *> cnp.PyArray_DATA(room)
    for i in range(level + 1, whole.last + 1):
        lengths += (whole.pairs[i].copied, whole.pairs[i].repeated)
        source += (whole.pairs[i].copied, 1)
    for i in range(2):
        n = pair.copied % pieces.step if i else pieces.step
        if n:
            make_plan(
                &pieces.plans[i], (n, pair.repeated) + lengths, (n, 1) + source, whole.pairs[whole.last].data_bytes,
                pieces.room, n * pair.data_bytes, n * pair.repeated * pair.out_bytes,
            )
    pieces.copies = 1
    for i in range(level):
        pieces.copies *= whole.pairs[i].repeated
    pieces.mapped = is_mapped(out)
    _held, target = extent(data), extent(out)
    _open(&pieces.source, data, <cnp.dtype> cnp.PyArray_DESCR(out))
    n = pieces.copies * pieces.step * pair.repeated * pair.out_bytes
    pieces.threads = _count_threads(n)
    pieces.scratch = _scratch(&target[0], target.shape[0], n, pieces.threads)
    try:
        if cnp.NpyIter_IterationNeedsAPI(pieces.source.chunks):
            _fill(&pieces, 0, &target[0])
        else:
            with nogil:
                _fill(&pieces, 0, &target[0])
    finally:
        free(pieces.scratch)
        cnp.NpyIter_Deallocate(pieces.source.chunks)
    return cnp.PyUFunc_getfperr()


cpdef int repeat_converted(cnp.ndarray data, Counts counts, int axis, cnp.ndarray out, Py_ssize_t piece) except -1:
    """`repeat_counted` for data of another dtype, as `replicate_converted`."""
    cdef CountedPieces pieces
    cdef Py_ssize_t size
    cdef const uint8_t[::1] _held
    cdef uint8_t[::1] target
    _check_conversion(data, out, piece)
    if not -1 <= axis < cnp.PyArray_NDIM(data):
        raise ValueError(f"`axis` expected an axis of data of shape {shape_of(data)}, got {axis}")
    counts.keep_from(out)
    _plan_counted(&pieces.plan, data, counts, axis, out, NULL)
    try:
        size = pieces.plan.size
        pieces.items = cnp.PyArray_SIZE(data) * cnp.PyArray_ITEMSIZE(out) // size
        pieces.step = max(<Py_ssize_t> 1, piece // size)
        pieces.group = counts.list.size
        if pieces.step >= pieces.group:
            pieces.step -= pieces.step % pieces.group
            pieces.group = pieces.step
        elif pieces.step < CHUNK:   # of counts that change, only a whole chunk keeps its sum
            counts.keep_from(out, True)
        else:
            pieces.step -= pieces.step % CHUNK
        room = np.empty(min(pieces.step, pieces.items) * size, np.uint8)
        pieces.room = <uint8_t *> cnp.PyArray_DATA(room)
        pieces.mapped = is_mapped(out)
        _held, target = extent(data), extent(out)
        _open(&pieces.source, data, <cnp.dtype> cnp.PyArray_DESCR(out))
        try:
            if cnp.NpyIter_IterationNeedsAPI(pieces.source.chunks):
                _fill_counted(&pieces, &target[0])
            else:
                with nogil:
                    _fill_counted(&pieces, &target[0])
        finally:
            cnp.NpyIter_Deallocate(pieces.source.chunks)
    finally:
        drop_counted(&pieces.plan)
    return cnp.PyUFunc_getfperr()


cdef int _check_conversion(cnp.ndarray data, cnp.ndarray out, Py_ssize_t piece) except -1:
    if (
        cnp.PyArray_SIZE(data) == 0 or cnp.PyArray_NBYTES(out) == 0 or piece < 1
        or not (cnp.PyArray_IS_C_CONTIGUOUS(out) and cnp.PyArray_ISWRITEABLE(out))
    ):
        raise ValueError("`out` expected a contiguous writeable array, and pieces of data, got others")
    return 0


cdef int _open(Source *source, cnp.ndarray data, cnp.dtype dtype, cnp.NPY_ORDER order=cnp.NPY_CORDER) except -1:
    """Begin to convert; what has converted the first chunk takes no more memory."""
    cdef cnp.PyArrayObject *array = <cnp.PyArrayObject *> data
    cdef cnp.PyArray_Descr *wanted = <cnp.PyArray_Descr *> dtype
    cdef cnp.npy_uint32 flags = cnp.NPY_ITER_READONLY | cnp.NPY_ITER_CONTIG
    if PyDataType_REFCHK(cnp.PyArray_DESCR(data)) or PyDataType_REFCHK(wanted) or dtype.itemsize == 0:
        raise TypeError(f"`data` expected items without references, got {_plain(data).dtype} for {dtype}")
    source.mapped = NULL
    source.done = 0
    source.row = 1
    if is_mapped(data):
        _note_rows(source, data)
    cnp.PyUFunc_clearfperr()
    source.chunks = NpyIter_AdvancedNew(
        1, &array, cnp.NPY_ITER_BUFFERED | cnp.NPY_ITER_EXTERNAL_LOOP, order, cnp.NPY_UNSAFE_CASTING, &flags, &wanted,
        -1, NULL, NULL, CONVERTED,
    )
    if source.chunks == NULL:
        raise MemoryError
    try:
        source.next = NpyIter_GetIterNext(source.chunks, NULL)
    except BaseException:
        cnp.NpyIter_Deallocate(source.chunks)
        raise
    source.chunk = cnp.NpyIter_GetDataPtrArray(source.chunks)
    source.length = cnp.NpyIter_GetInnerLoopSizePtr(source.chunks)
    source.taken = 0
    source.itemsize = dtype.itemsize
    return 0


cdef void _note_rows(Source *source, cnp.ndarray data) noexcept:
    """Find what lies together in the order of the data; all of it, if its outermost axis has not the longest steps."""
    cdef int axis = 0
    source.mapped_size = source.stride = reach(data, &source.mapped)
    source.row = cnp.PyArray_SIZE(data)
    while axis < cnp.PyArray_NDIM(data) and cnp.PyArray_DIM(data, axis) == 1:
        axis += 1
    if axis < cnp.PyArray_NDIM(data) and (
        cnp.PyArray_DIM(data, axis) * cnp.PyArray_STRIDE(data, axis) >= source.mapped_size
    ):
        source.row //= cnp.PyArray_DIM(data, axis)
        source.stride = cnp.PyArray_STRIDE(data, axis)


cdef int _take(Source *source, Py_ssize_t n, uint8_t *room) except? -1 nogil:
    """Put the next n items into `room`, or drop them if that is NULL."""
    cdef Py_ssize_t part, first = source.done // source.row
    source.done += n
    while n:
        if source.taken == source.length[0]:
            if not source.next(source.chunks):
                return -1
            source.taken = 0
        part = min(n, source.length[0] - source.taken)
        if room != NULL:
            memcpy(room, source.chunk[0] + source.taken * source.itemsize, part * source.itemsize)
            room += part * source.itemsize
        source.taken += part
        n -= part
    if source.mapped != NULL:
        first *= source.stride
        part = ((source.done - 1) // source.row + 1) * source.stride
        forget_range(source.mapped + first, min(part, source.mapped_size) - first)
    return 0


cdef int _drop(Source *source, Py_ssize_t n) except? -1 nogil:
    """Convert n items for nothing, by pieces, lest all of a mapped file be in memory at once."""
    cdef Py_ssize_t part
    while n:
        part = min(n, DROPPED)
        _take(source, part, NULL)
        n -= part
    return 0


cdef int _fill(Pieces *pieces, int level, uint8_t *out) except? -1 nogil:
    """Convert the data from a level on, and write each piece to all its places."""
    cdef const Pair *pair = &pieces.whole.pairs[level]
    cdef Py_ssize_t run = pair.repeated * pair.out_bytes, i = 0, n
    while i < pair.copied:
        n = 1
        if level < pieces.level:
            _fill(pieces, level + 1, out)
        else:
            n = min(pieces.step, pair.copied - i)
            _take(&pieces.source, n * pair.data_bytes // pieces.source.itemsize, pieces.room)
            pieces.last = n != pieces.step
            pieces.size = n * run
            _write_shares(
                _write_copies, pieces, pieces.room, out, pieces.copies * pieces.size, pieces.scratch, pieces.threads, 0,
                False,
            )
        out += n * run
        i += n
    return 0


cdef void _write_copies(
    const void *all_pieces, Py_ssize_t begin, Py_ssize_t end, const uint8_t *data, uint8_t *out, uint8_t *scratch,
) noexcept nogil:
    """Write a range of all copies of a piece, counted as if one stood behind the other."""
    cdef const Pieces *pieces = <const Pieces *> all_pieces
    cdef const Pair *pair
    cdef uint8_t *copy
    cdef Py_ssize_t at, nth, stop
    cdef int level
    while begin < end:
        nth = begin // pieces.size
        at = begin % pieces.size
        stop = min(pieces.size, at + end - begin)
        copy = out
        for level in range(pieces.level - 1, -1, -1):
            pair = &pieces.whole.pairs[level]
            copy += nth % pair.repeated * pair.out_bytes
            nth //= pair.repeated
        write_part(&pieces.plans[pieces.last], 0, at, stop, data, copy, copy + stop, scratch)
        if pieces.mapped:
            forget_range(copy + at, stop - at)
        begin += stop - at


cdef int _fill_counted(CountedPieces *pieces, uint8_t *out) except? -1 nogil:
    """Convert the data, and write each piece by its counts."""
    cdef Py_ssize_t item = 0, end, stop, size = pieces.plan.size, n
    pieces.begin = 0
    while item < pieces.items:
        end = min(pieces.items, min(item + pieces.step, (item // pieces.group + 1) * pieces.group))
        n = (end - item) * size
        _take(&pieces.source, n // pieces.source.itemsize, pieces.room)
        stop = units_before(&pieces.plan, end) * size
        pieces.plan.data_end = pieces.room + n
        _write_shares(
            _write_counted, pieces, pieces.room - item * size, out + pieces.begin, stop - pieces.begin, NULL,
            _count_threads(stop - pieces.begin), 0, pieces.mapped,
        )
        pieces.begin = stop
        item = end
    return 0


cdef void _write_counted(
    const void *all_pieces, Py_ssize_t begin, Py_ssize_t end, const uint8_t *data, uint8_t *out, uint8_t *scratch,
) noexcept nogil:
    """Write a range of the piece at hand."""
    cdef const CountedPieces *pieces = <const CountedPieces *> all_pieces
    cdef Py_ssize_t before = pieces.begin
    write_counted(&pieces.plan, before + begin, before + end, data, out - before, scratch)
