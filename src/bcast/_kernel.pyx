# cython: cdivision=True
"""`replicate`: copy an array along an alignment, as bytes.

The alignment's axes are merged into pairs of a copied and a repeated axis, outermost first. `_fill` walks them by
blocked strides: each block is written once and then replicated. Where blocks are too short to be worth a visit each,
`_stage` widens many of them at a time instead, one pair after the other. Both end in `_repeat`, the one leaf.

The output is written from front to back, so that a store may run over what comes next; it never passes the end of the
output (`Plan.out_end`), and no load passes the end of the data (`Plan.data_end`).
"""

cimport cython
cimport numpy as cnp
from cpython.buffer cimport PyBuffer_FillInfo
from libc.stdint cimport uint16_t, uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

import numpy as np

from bcast._alignment cimport Alignment

cdef extern from "numpy/arrayobject.h":
    bint PyDataType_REFCHK(cnp.PyArray_Descr *dtype)

cnp.import_array()

cdef enum:
    MAX_PAIRS = 33      # 64 axes that alternate, and the run of items innermost
    SHORT = 512         # bytes; blocks below it are widened in stages
    SCRATCH = 16384     # bytes; what one stage hands to the next stays in the first-level cache
    BLOCK = 131072      # bytes; a block replicated from itself stays in half of a small second-level cache
    LONG_RUN = 512      # bytes; from here on a run is replicated from its own beginning
    VECTOR = 16         # bytes of one load or store
    SCRATCH_BYTES = 2 * SCRATCH + VECTOR
    SMALL = 65536       # bytes; below, views and giving the GIL away and back show (benchmarks/bench_gil.py)


cdef struct Vector:
    uint64_t low
    uint64_t high


cdef struct Pair:
    Py_ssize_t copied       # how many blocks there are in the data,
    Py_ssize_t repeated     # how many times each of them stands in the output,
    Py_ssize_t data_bytes   # and their sizes in the two
    Py_ssize_t out_bytes


cdef struct Plan:
    int last
    Pair[MAX_PAIRS] pairs
    const unsigned char *data_end
    unsigned char *out_end
    unsigned char *scratch      # of SCRATCH_BYTES where there are stages


@cython.final
@cython.freelist(4)
cdef class _Bytes:
    """The memory of a C-contiguous array as plain bytes: NumPy exports no buffer of datetimes or added dtypes."""

    cdef cnp.ndarray array

    def __getbuffer__(self, Py_buffer *buffer, int flags):
        PyBuffer_FillInfo(
            buffer, self, cnp.PyArray_DATA(self.array), cnp.PyArray_NBYTES(self.array),
            not cnp.PyArray_ISWRITEABLE(self.array), flags,
        )


cdef _Bytes _bytes(cnp.ndarray array):
    cdef _Bytes exporter = _Bytes.__new__(_Bytes)
    exporter.array = array
    return exporter


def replicate(cnp.ndarray data not None, Alignment alignment not None, cnp.ndarray out not None):
    """Copy `data` along `alignment` into `out` and return `out`.

    Parameters
    ----------
    data : ndarray
        Of any layout; its shape is ``alignment.source`` without some of the 1s.
    alignment : Alignment
        Where the data goes.
    out : ndarray
        Writeable, of shape ``alignment.shape`` and `data`'s dtype, of any strides. It may overlap `data`: the result
        is as if `data` had been copied first.

    Returns
    -------
    ndarray
        `out` itself.
    """
    cdef tuple shape = alignment.shape, source = alignment.source
    if cnp.PyArray_NBYTES(out) == 0:
        return out
    if PyDataType_REFCHK(cnp.PyArray_DESCR(out)) or not cnp.PyArray_IS_C_CONTIGUOUS(out):
        _assign(out, data, source)
    elif cnp.PyArray_IS_C_CONTIGUOUS(data):
        _replicate_contiguous(data, shape, source, out)
    else:
        _replicate_strided(data, shape, source, out)
    return out


cdef int _replicate_contiguous(cnp.ndarray data, tuple shape, tuple source, cnp.ndarray out) except -1:
    cdef Plan plan
    if _overlap(data, out):
        data = _plain(data).copy()
    _make_plan(&plan, shape, source, data, out)
    if plan.last and plan.pairs[plan.last - 1].out_bytes < SHORT:
        plan.scratch = <unsigned char *> malloc(SCRATCH_BYTES)
        if plan.scratch == NULL:
            raise MemoryError
    else:
        plan.scratch = NULL
    try:
        if cnp.PyArray_NBYTES(out) < SMALL:
            _fill(&plan, 0, <const unsigned char *> cnp.PyArray_DATA(data), <unsigned char *> cnp.PyArray_DATA(out))
        else:
            _fill_without_gil(&plan, _bytes(data), _bytes(out))
    finally:
        free(plan.scratch)
    return 0


cdef _replicate_strided(data, tuple shape, tuple source, out):
    """One strided copy by NumPy, which orders its loops well, and the rest from there."""
    data = _plain(data).reshape(source)
    outermost = 0
    while outermost < len(source) and source[outermost] == 1:
        outermost += 1
    if source[outermost:] == shape[outermost:]:     # one block, which the outermost axes repeat
        first = (0,) * outermost + (...,)
        block = _plain(out)[first]
        _assign(block, data[first], source[outermost:])
        _replicate_first(_bytes(out), block.nbytes)
    else:
        # A stride of 0 repeats already: such an axis is as good as one of length 1.
        once = data[tuple([slice(1) if stride == 0 else slice(None) for stride in data.strides])]
        _replicate_contiguous(np.ascontiguousarray(once), shape, once.shape, out)


cdef _assign(out, data, source):
    """Leave it to NumPy."""
    data, out = _plain(data), _plain(out)
    if np.may_share_memory(data, out):      # NumPy itself overlooks steps of different lengths
        data = data.copy()
    np.copyto(out, data.reshape(source))


cdef _plain(array):
    """`array` as a base-class array; a structured one as raw items, padding and all."""
    plain = np.asarray(array)
    dtype = plain.dtype
    if dtype.names is not None and not dtype.hasobject:
        plain = plain.view(np.dtype((np.void, dtype.itemsize)))
    return plain


cdef bint _overlap(cnp.ndarray a, cnp.ndarray b) noexcept:
    """Whether two contiguous arrays share memory."""
    cdef uintptr_t a_start = <uintptr_t> cnp.PyArray_DATA(a)
    cdef uintptr_t b_start = <uintptr_t> cnp.PyArray_DATA(b)
    return a_start < b_start + cnp.PyArray_NBYTES(b) and b_start < a_start + cnp.PyArray_NBYTES(a)


cdef int _make_plan(Plan *plan, tuple shape, tuple source, cnp.ndarray data, cnp.ndarray out) except -1:
    """Merge neighbouring axes that are both copied or both repeated."""
    cdef Py_ssize_t length, item_run = cnp.PyArray_ITEMSIZE(out)
    cdef Pair *pair = &plan.pairs[0]
    cdef int i
    pair.copied = pair.repeated = 1
    plan.last = 0
    for i in range(len(shape)):
        length = shape[i]
        if <Py_ssize_t> source[i] == 1:     # also where the output's length is 1, which changes nothing
            pair.repeated *= length
        else:
            if pair.repeated != 1:
                plan.last += 1
                pair += 1
                pair.copied = pair.repeated = 1
            pair.copied *= length
    if pair.repeated == 1:      # the innermost axes are copied: a run of items is one long item
        item_run *= pair.copied
        pair.copied = 1
        if plan.last:
            plan.last -= 1
    plan.pairs[plan.last].data_bytes = plan.pairs[plan.last].out_bytes = item_run
    for i in range(plan.last, 0, -1):
        pair = &plan.pairs[i]
        plan.pairs[i - 1].data_bytes = pair.copied * pair.data_bytes
        plan.pairs[i - 1].out_bytes = pair.copied * pair.repeated * pair.out_bytes
    pair = &plan.pairs[0]
    if (
        pair.copied * pair.data_bytes != cnp.PyArray_NBYTES(data)
        or pair.copied * pair.repeated * pair.out_bytes != cnp.PyArray_NBYTES(out)
    ):      # what the user's own conversion of an argument to integers can do
        raise ValueError("`data` and `out` expected arrays that keep their sizes during the call, got resized ones")
    plan.data_end = <const unsigned char *> cnp.PyArray_DATA(data) + cnp.PyArray_NBYTES(data)
    plan.out_end = <unsigned char *> cnp.PyArray_DATA(out) + cnp.PyArray_NBYTES(out)
    return 0


@cython.boundscheck(False)      # index 0 of buffers that are not empty
@cython.wraparound(False)
cdef int _fill_without_gil(Plan *plan, const unsigned char[::1] data, unsigned char[::1] out) except -1:
    """Fill a large output: the views hold both buffers while other threads may run."""
    with nogil:
        _fill(plan, 0, &data[0], &out[0])
    return 0


@cython.boundscheck(False)
@cython.wraparound(False)
cdef int _replicate_first(unsigned char[::1] out, Py_ssize_t block) except -1:
    """Replicate the first `block` bytes of an output over all of it."""
    with nogil:
        _tile(&out[0], block, out.shape[0])
    return 0


cdef void _fill(Plan *plan, int level, const unsigned char *data, unsigned char *out) noexcept nogil:
    """Write all blocks of the pair at `level`, each as many times as it is repeated."""
    cdef const Pair *pair = &plan.pairs[level]
    cdef Py_ssize_t _i, _j
    if level == plan.last:
        _repeat(pair.copied, pair.repeated, pair.out_bytes, data, plan.data_end, out, plan.out_end)
    elif pair.out_bytes < SHORT:
        _stage(plan, level, pair.copied, data, out, plan.out_end, plan.scratch)
    else:
        for _i in range(pair.copied):
            if pair.out_bytes <= BLOCK:
                _fill(plan, level + 1, data, out)
                _tile(out, pair.out_bytes, pair.repeated * pair.out_bytes)
                out += pair.repeated * pair.out_bytes
            else:   # too long to be read back from a cache: the data itself is nearer
                for _j in range(pair.repeated):
                    _fill(plan, level + 1, data, out)
                    out += pair.out_bytes
            data += pair.data_bytes


cdef void _stage(
    Plan *plan, int level, Py_ssize_t count, const unsigned char *data, unsigned char *out, unsigned char *out_end,
    unsigned char *scratch,
) noexcept nogil:
    """Widen `count` blocks: through all the pairs inside into the scratch, and from there into the output."""
    cdef const Pair *pair = &plan.pairs[level]
    cdef const Pair *inner = &plan.pairs[level + 1]
    cdef unsigned char *scratch_end = plan.scratch + SCRATCH_BYTES
    cdef unsigned char *rest
    cdef Py_ssize_t most = SCRATCH // pair.out_bytes
    cdef Py_ssize_t n
    while count:
        n = min(count, most)
        if level + 1 == plan.last:
            _repeat(n * inner.copied, inner.repeated, inner.out_bytes, data, plan.data_end, scratch, scratch_end)
        else:
            # What the pairs inside hand on is at most half as long each time, so the rest of the scratch is enough.
            rest = scratch + n * pair.out_bytes
            _stage(plan, level + 1, n * inner.copied, data, scratch, rest, rest)
        _repeat(n, pair.repeated, pair.out_bytes, scratch, scratch_end, out, out_end)
        count -= n
        data += n * pair.data_bytes
        out += n * pair.repeated * pair.out_bytes


cdef void _repeat(
    Py_ssize_t n, Py_ssize_t k, Py_ssize_t size, const unsigned char *data, const unsigned char *data_end,
    unsigned char *out, const unsigned char *out_end,
) noexcept nogil:
    """Write each of `n` items of `size` bytes `k` times."""
    if k == 1:
        memcpy(out, data, n * size)
    elif size == 1:
        _repeat_sized(n, k, 1, data, out, out_end)
    elif size == 2:
        _repeat_sized(n, k, 2, data, out, out_end)
    elif size == 4:
        _repeat_sized(n, k, 4, data, out, out_end)
    elif size == 8:
        _repeat_sized(n, k, 8, data, out, out_end)
    elif size == 16:
        _repeat_sized(n, k, 16, data, out, out_end)
    elif k * size < LONG_RUN:
        _put_items(n, k, size, data, data_end, out, out_end)
    else:
        _put_runs(n, k, size, data, out)


cdef inline void _repeat_sized(
    Py_ssize_t n, Py_ssize_t k, Py_ssize_t size, const unsigned char *data,
    unsigned char *out, const unsigned char *out_end,
) noexcept nogil:
    """`_repeat` where the item size is a constant that divides a vector's."""
    if k * size <= VECTOR:
        _put_short(n, k, size, data, out, out_end)
    else:
        _put_vectors(n, k, size, data, out)


cdef inline void _put_short(
    Py_ssize_t n, Py_ssize_t k, Py_ssize_t size, const unsigned char *data,
    unsigned char *out, const unsigned char *out_end,
) noexcept nogil:
    """`_repeat` where a run is no longer than a vector: one store each, over the end of the run."""
    cdef Py_ssize_t run = k * size
    cdef Py_ssize_t reach = VECTOR // 2 if run <= VECTOR // 2 else VECTOR
    cdef Py_ssize_t roomy = _roomy(n, run, reach, out_end - out)
    cdef Py_ssize_t i, j
    cdef Vector vector
    if reach < VECTOR:
        for i in range(roomy):
            vector = _splatted(data + i * size, size)
            memcpy(out + i * run, &vector.low, VECTOR // 2)
    else:
        for i in range(roomy):
            vector = _splatted(data + i * size, size)
            memcpy(out + i * run, &vector, VECTOR)
    for i in range(roomy, n):
        for j in range(k):
            memcpy(out + i * run + j * size, data + i * size, size)


cdef inline void _put_vectors(
    Py_ssize_t n, Py_ssize_t k, Py_ssize_t size, const unsigned char *data, unsigned char *out,
) noexcept nogil:
    """`_repeat` where a run takes more than a vector: the last one is laid back to end with the run, still in phase."""
    cdef Py_ssize_t run = k * size
    cdef Py_ssize_t i, j
    cdef Vector vector
    if run <= 2 * VECTOR:
        for i in range(n):
            vector = _splatted(data + i * size, size)
            memcpy(out + i * run, &vector, VECTOR)
            memcpy(out + (i + 1) * run - VECTOR, &vector, VECTOR)
        return
    for i in range(n):
        if size == 1 and run >= LONG_RUN:
            memset(out, data[i], run)
        else:
            vector = _splatted(data + i * size, size)
            j = 0
            while j <= run - 4 * VECTOR:
                memcpy(out + j, &vector, VECTOR)
                memcpy(out + j + VECTOR, &vector, VECTOR)
                memcpy(out + j + 2 * VECTOR, &vector, VECTOR)
                memcpy(out + j + 3 * VECTOR, &vector, VECTOR)
                j += 4 * VECTOR
            while j < run - VECTOR:
                memcpy(out + j, &vector, VECTOR)
                j += VECTOR
            memcpy(out + run - VECTOR, &vector, VECTOR)
        out += run


cdef void _put_runs(
    Py_ssize_t n, Py_ssize_t k, Py_ssize_t size, const unsigned char *data, unsigned char *out,
) noexcept nogil:
    """`_repeat` where a run is long: written once, replicated from its own beginning."""
    cdef Py_ssize_t i
    for i in range(n):
        memcpy(out, data + i * size, size)
        _tile(out, size, k * size)
        out += k * size


cdef void _put_items(
    Py_ssize_t n, Py_ssize_t k, Py_ssize_t size, const unsigned char *data, const unsigned char *data_end,
    unsigned char *out, const unsigned char *out_end,
) noexcept nogil:
    """`_repeat` where a run of items of any size is short: whole vectors, over the end of each item."""
    cdef Py_ssize_t run = k * size
    cdef Py_ssize_t reach = (size + VECTOR - 1) // VECTOR * VECTOR
    cdef Py_ssize_t roomy = min(
        _roomy(n, size, reach, data_end - data), _roomy(n, run, run - size + reach, out_end - out)
    )
    cdef Py_ssize_t _i, j, part
    cdef Vector vector
    for _i in range(roomy):
        for j in range(k):
            part = 0
            while part < size:
                memcpy(&vector, data + part, VECTOR)
                memcpy(out + j * size + part, &vector, VECTOR)
                part += VECTOR
        data += size
        out += run
    for _i in range(roomy, n):
        for j in range(k):
            memcpy(out + j * size, data, size)
        data += size
        out += run


cdef void _tile(unsigned char *out, Py_ssize_t block, Py_ssize_t total) noexcept nogil:
    """Replicate the finished first `block` bytes of `out` over `total`: by doubling, until a block is long enough."""
    cdef Py_ssize_t done = block
    while done < total:
        memcpy(out + done, out, min(block, total - done))
        done += block
        if 2 * block <= BLOCK:
            block = done


cdef inline Vector _splatted(const unsigned char *item, Py_ssize_t size) noexcept nogil:
    """A vector full of copies of the item, whose size is a constant where this is inlined."""
    cdef Vector vector
    cdef uint16_t two
    cdef uint32_t four
    if size == 1:
        vector.low = item[0] * <uint64_t> 0x0101010101010101
    elif size == 2:
        memcpy(&two, item, 2)
        vector.low = two * <uint64_t> 0x0001000100010001
    elif size == 4:
        memcpy(&four, item, 4)
        vector.low = four * <uint64_t> 0x0000000100000001
    else:
        memcpy(&vector.low, item, 8)
    vector.high = vector.low
    if size == 16:
        memcpy(&vector.high, item + 8, 8)
    return vector


cdef inline Py_ssize_t _roomy(Py_ssize_t n, Py_ssize_t step, Py_ssize_t reach, Py_ssize_t room) noexcept nogil:
    """How many of `n` steps can reach `reach` bytes, `reach >= step`, from where they start without leaving `room`."""
    return 0 if room < reach else min(n, (room - reach) // step + 1)
