# cython: cdivision=True
"""`replicate`: copy an array along an alignment, as bytes.

`_plan.pyx` turns the alignment into pairs of a copied and a repeated axis, outermost first. `_put_blocks` walks them by
blocked strides: each block is written once and then replicated. Short blocks innermost are written by the leaves of
`_leaf.h`. Outputs too large for any cache are put together piece by piece in a scratch and streamed from there
(`_stream_blocks`). Threads get parts of the output of equal length, which may begin and end anywhere (`_put_part`).

Everything is written from front to back, so that a store may run over what comes next; it never passes `out_end`, where
this thread's part ends, and no load passes the end of the data (`Plan.data_end`).
"""

cimport cython
cimport numpy as cnp
from cpython.buffer cimport PyBuffer_FillInfo
from cython.parallel cimport prange
from libc.stdint cimport uint8_t, uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

import numpy as np

from bcast._alignment cimport Alignment
from bcast._plan cimport PARTS, SHUFFLED, STRETCH, WIDEST, Pair, Plan, Program, make_plan
from bcast._threads cimport clock, free_threads, note_wait

cdef extern from "numpy/arrayobject.h":
    bint PyDataType_REFCHK(cnp.PyArray_Descr *dtype)

cdef extern from "_stream.h":
    void bcast_stream(uint8_t *out, const uint8_t *data, size_t size) noexcept nogil
    void bcast_streamed() noexcept nogil
    bint bcast_touched(const uint8_t *out, size_t size) noexcept nogil

cnp.import_array()

cdef enum:
    LONG_RUN = 2048     # bytes; from here on a run is replicated from its own beginning
    SETTLED = 4096      # bytes; what was written more recently is still on its way to the cache, and slow to read back
    DOUBLED = 16384     # bytes; doubling a block ends here, where it is still in a first-level cache
    BLOCK = 131072      # bytes; what is longer is not read back from a cache, but written anew from the data
    FILLED_BLOCK = 16384    # bytes; the same where blocks are filled, which is as fast as reading back
    PIECE = 32768       # bytes; what is gathered in cache to be streamed past it
    SMALL = 524288      # bytes; below, views and giving the GIL away and back show (benchmarks/bench_gil.py)

cdef Py_ssize_t SHARE = 256 << 10   # bytes; a thread that would write less costs more than it saves
cdef Py_ssize_t STREAMED = 32 << 20     # bytes; below, some cache may hold the output for its reader


def set_limits(share=256 << 10, streamed=32 << 20):
    """Set from how many bytes on threads share the work and outputs are streamed: for tests of small arrays.

    Parameters
    ----------
    share : int, optional
        What a thread writes at least.
    streamed : int, optional
        The smallest output that is streamed.
    """
    global SHARE, STREAMED
    SHARE, STREAMED = share, streamed


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


cpdef replicate(cnp.ndarray data, Alignment alignment, cnp.ndarray out):
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
    if cnp.PyArray_SIZE(out) == 0 or cnp.PyArray_ITEMSIZE(out) == 0:
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
    cdef Py_ssize_t size = cnp.PyArray_NBYTES(out)
    cdef uint8_t *begin = <uint8_t *> cnp.PyArray_DATA(out)
    if _overlap(data, out):
        data = _plain(data).copy()
    make_plan(&plan, shape, source, data, out)
    if size < SMALL and size < SHARE and size < STREAMED:
        _put_blocks(&plan, 0, plan.pairs[0].copied, <const uint8_t *> cnp.PyArray_DATA(data), begin, begin + size)
    else:
        _put_large(&plan, _bytes(data), _bytes(out), <int> max(1, min(free_threads(), size // SHARE)))
    return 0


cdef _replicate_strided(data, tuple shape, tuple source, out):
    """One strided copy by NumPy, which orders its loops well, and the rest from there."""
    data = _plain(data).reshape(source)
    outermost = 0
    while outermost < len(source) and source[outermost] == 1:
        outermost += 1
    if source[outermost:] == shape[outermost:]:     # one block, which the outermost axes repeat
        blocks = _plain(out).reshape((-1, *shape[outermost:]))
        _assign(blocks[0], data[(0,) * outermost], source[outermost:])
        if len(blocks) > 1:
            _replicate_contiguous(blocks[:1], blocks[1:].shape, blocks[:1].shape, blocks[1:])
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


@cython.boundscheck(False)      # index 0 of buffers that are not empty
@cython.wraparound(False)
cdef int _put_large(Plan *plan, const uint8_t[::1] data, uint8_t[::1] out, int threads) except -1:
    """Fill a large output on several threads; the views hold both buffers while the GIL is given away."""
    cdef uint8_t *scratch = NULL
    cdef Py_ssize_t size = out.shape[0]
    cdef double begun, done = 0
    cdef int i
    if size >= STREAMED * min(threads, 2) and bcast_touched(&out[0], size):
        scratch = <uint8_t *> malloc(threads * (PIECE + WIDEST))    # without it, there is no streaming
    with nogil:
        if threads == 1:
            _put_share(plan, 0, 1, &data[0], &out[0], size, scratch, &done)
        else:
            begun = clock()
            for i in prange(threads, num_threads=threads, schedule="static"):
                _put_share(plan, i, threads, &data[0], &out[0], size, scratch, &done)
            note_wait(done - begun, clock() - done)
        free(scratch)
    return 0


cdef void _put_share(
    const Plan *plan, int i, int threads, const uint8_t *data, uint8_t *out, Py_ssize_t size, uint8_t *scratch,
    double *done,
) noexcept nogil:
    """Write the share of thread `i`; the first one, which is the caller, notes when it is `done`."""
    cdef Py_ssize_t begin = _cut(i, threads, out, size)
    cdef Py_ssize_t end = _cut(i + 1, threads, out, size)
    if scratch != NULL:
        scratch += i * (PIECE + WIDEST)
    _put_part(plan, 0, begin, end, data, out, out + end, scratch)
    if scratch != NULL:
        bcast_streamed()
    if i == 0:
        done[0] = clock()


cdef inline Py_ssize_t _cut(int i, int threads, const uint8_t *out, Py_ssize_t size) noexcept nogil:
    """Where share `i` begins: at a page of its own, so that no two threads fetch or write the same one."""
    cdef Py_ssize_t at
    if i == 0 or i == threads:
        return size if i else 0
    at = size // threads * i
    return min(size, at + <Py_ssize_t> (-<uintptr_t> (out + at) & 4095))


cdef void _put_part(
    const Plan *plan, int level, Py_ssize_t begin, Py_ssize_t end, const uint8_t *data, uint8_t *out, uint8_t *out_end,
    uint8_t *scratch,
) noexcept nogil:
    """Write the bytes from `begin` to `end` of what the pair at `level` makes of `data`."""
    cdef const Pair *pair = &plan.pairs[level]
    cdef Py_ssize_t run = pair.repeated * pair.out_bytes
    cdef Py_ssize_t n, inside, size
    cdef const uint8_t *block
    while begin < end:
        block = data + begin // run * pair.data_bytes
        inside = begin % run
        if inside == 0 and end - begin >= run:      # whole runs
            n = (end - begin) // run
            size = n * run
            if scratch == NULL:
                _put_blocks(plan, level, n, block, out + begin, out_end)
            else:
                _stream_blocks(plan, level, n, block, out + begin, scratch)
        else:
            size = min(run - inside, end - begin)
            inside %= pair.out_bytes
            if inside == 0 and size >= pair.out_bytes:      # whole blocks of a run
                n = size // pair.out_bytes
                size = n * pair.out_bytes
                if scratch == NULL:
                    _put_block(plan, level, n, block, out + begin, out_end)
                else:
                    _stream_block(plan, level, n, block, out + begin, scratch)
            else:       # a part of a block
                size = min(pair.out_bytes - inside, size)
                if level == plan.last:
                    memcpy(out + begin, block + inside, size)
                else:
                    _put_part(plan, level + 1, inside, inside + size, block, out + begin - inside, out_end, scratch)
        begin += size


cdef void _put_blocks(
    const Plan *plan, int level, Py_ssize_t n, const uint8_t *data, uint8_t *out, uint8_t *out_end,
) noexcept nogil:
    """Write `n` blocks of the pair at `level`, each as many times as it is repeated."""
    cdef const Pair *pair = &plan.pairs[level]
    cdef Py_ssize_t run = pair.repeated * pair.out_bytes
    cdef Py_ssize_t _i
    if level == plan.programmed and plan.filled:
        _put_fills(plan, n, pair.repeated, data, out)
    elif level == plan.programmed and plan.stretch_times == pair.repeated:
        _put_stretches(plan, n, data, out, out_end)
    elif level == plan.last and SHUFFLED < pair.out_bytes <= PARTS * plan.leaf.vector and run < LONG_RUN:
        _put_rows(plan, n, data, out, out_end)
    else:
        for _i in range(n):
            _put_block(plan, level, pair.repeated, data, out, out_end)
            data += pair.data_bytes
            out += run


cdef void _put_block(
    const Plan *plan, int level, Py_ssize_t times, const uint8_t *data, uint8_t *out, uint8_t *out_end,
) noexcept nogil:
    """Write a block of the pair at `level` as many `times`."""
    cdef const Pair *pair = &plan.pairs[level]
    if level == plan.programmed and plan.filled:
        _put_fills(plan, 1, times, data, out)
        return
    if level == plan.programmed:
        _put_run(plan, times * pair.out_bytes, data, out, out_end)
        return
    if level == plan.last:
        memcpy(out, data, pair.out_bytes)
    else:
        _put_blocks(plan, level + 1, plan.pairs[level + 1].copied, data, out, out_end)
        while pair.out_bytes > (FILLED_BLOCK if plan.filled else BLOCK) and times > 1:
            out += pair.out_bytes
            times -= 1
            _put_blocks(plan, level + 1, plan.pairs[level + 1].copied, data, out, out_end)
    _tile(out, pair.out_bytes, times * pair.out_bytes)


cdef void _tile(uint8_t *out, Py_ssize_t block, Py_ssize_t size) noexcept nogil:
    """Replicate the finished first `block` bytes of `out` over `size`: by doubling, until a block is long enough."""
    cdef Py_ssize_t done = block
    while done < size:
        memcpy(out + done, out, min(block, size - done))
        done += block
        if 2 * block <= DOUBLED:
            block = done


cdef void _stream_blocks(
    const Plan *plan, int level, Py_ssize_t n, const uint8_t *data, uint8_t *out, uint8_t *scratch,
) noexcept nogil:
    """`_put_blocks` past the caches: as many runs as fit the scratch are put together there."""
    cdef const Pair *pair = &plan.pairs[level]
    cdef Py_ssize_t run = pair.repeated * pair.out_bytes
    cdef Py_ssize_t most = PIECE // run
    cdef Py_ssize_t part
    if level == plan.programmed and most > plan.stretch_blocks:
        most -= most % plan.stretch_blocks
    while n:
        part = min(n, max(most, 1))
        if most:
            _put_blocks(plan, level, part, data, scratch, scratch + PIECE + WIDEST)
            bcast_stream(out, scratch, part * run)
        else:
            _stream_block(plan, level, pair.repeated, data, out, scratch)
        n -= part
        data += part * pair.data_bytes
        out += part * run


cdef void _stream_block(
    const Plan *plan, int level, Py_ssize_t times, const uint8_t *data, uint8_t *out, uint8_t *scratch,
) noexcept nogil:
    """`_put_block` past the caches: what is put together is streamed to all its places at once."""
    cdef const Pair *pair = &plan.pairs[level]
    cdef Py_ssize_t size = pair.out_bytes
    cdef Py_ssize_t most = min(PIECE // size, times)
    cdef Py_ssize_t i, part, begin = 0
    cdef const uint8_t *piece
    if most:
        _put_block(plan, level, most, data, scratch, scratch + PIECE + WIDEST)
        while times:
            most = min(most, times)
            bcast_stream(out, scratch, most * size)
            out += most * size
            times -= most
    elif times == 1 and level < plan.last:
        _stream_blocks(plan, level + 1, plan.pairs[level + 1].copied, data, out, scratch)
    else:
        while begin < size:
            part = min(<Py_ssize_t> PIECE, size - begin)
            piece = data + begin
            if level < plan.last:
                _put_part(
                    plan, level + 1, begin, begin + part, data, scratch - begin, scratch + PIECE + WIDEST, NULL
                )
                piece = scratch
            for i in range(times):
                bcast_stream(out + i * size + begin, piece, part)
            begin += part


cdef void _put_fills(
    const Plan *plan, Py_ssize_t n, Py_ssize_t times, const uint8_t *data, uint8_t *out,
) noexcept nogil:
    """Fill a run with each of `n` items."""
    cdef const Program *program = &plan.program
    cdef Py_ssize_t size = plan.pairs[plan.last].out_bytes
    cdef Py_ssize_t run = times * size
    cdef Py_ssize_t fast = min(n, _roomy(size, program.data_reach, plan.data_end - data))
    cdef uint8_t[3 * WIDEST] near_data
    if run < plan.leaf.vector:      # where a thread's part begins or ends: n is 1
        memcpy(out, data, size)
        _tile(out, size, run)
        return
    plan.leaf.fill(program, fast, run, size, data, out)
    if fast < n:    # the last ones, of less than a window and an item
        memcpy(near_data, data + fast * size, (n - fast) * size)
        plan.leaf.fill(program, n - fast, run, size, near_data, out + fast * run)


cdef void _put_rows(
    const Plan *plan, Py_ssize_t n, const uint8_t *data, uint8_t *out, uint8_t *out_end,
) noexcept nogil:
    """Write `n` items of some vectors' length, each as many times as it is repeated."""
    cdef const Pair *pair = &plan.pairs[plan.last]
    cdef Py_ssize_t size = pair.out_bytes
    cdef Py_ssize_t run = pair.repeated * size
    cdef Py_ssize_t reach = (size + plan.leaf.vector - 1) // plan.leaf.vector * plan.leaf.vector
    cdef Py_ssize_t fast = min(
        n, min(_roomy(size, reach, plan.data_end - data), _roomy(run, run - size + reach, out_end - out))
    )
    cdef Py_ssize_t _i
    plan.leaf.rows(fast, pair.repeated, size, data, out)
    for _i in range(fast, n):
        memcpy(out + _i * run, data + _i * size, size)
        _tile(out + _i * run, size, run)


cdef void _put_stretches(
    const Plan *plan, Py_ssize_t n, const uint8_t *data, uint8_t *out, uint8_t *out_end,
) noexcept nogil:
    """Write `n` runs by the program, which describes some of them."""
    cdef const Pair *pair = &plan.pairs[plan.programmed]
    cdef const Program *program = &plan.program
    cdef Py_ssize_t run = pair.repeated * pair.out_bytes
    cdef Py_ssize_t fast = min(
        n // plan.stretch_blocks,
        min(
            _roomy(program.data_step, program.data_reach, plan.data_end - data),
            _roomy(program.out_step, program.out_reach, out_end - out),
        )
    )
    plan.leaf.run(program, program.vectors, fast, data, out)
    data += fast * program.data_step
    out += fast * program.out_step
    n -= fast * plan.stretch_blocks
    while n:
        fast = min(n, plan.stretch_blocks)
        _put_stretch(plan, fast * pair.data_bytes, fast * run, data, out, out_end)
        data += fast * pair.data_bytes
        out += fast * run
        n -= fast


cdef void _put_run(
    const Plan *plan, Py_ssize_t size, const uint8_t *data, uint8_t *out, uint8_t *out_end,
) noexcept nogil:
    """Write one run, of which the program describes a part."""
    cdef const Program *program = &plan.program
    cdef Py_ssize_t data_bytes = plan.pairs[plan.programmed].data_bytes
    cdef Py_ssize_t step = program.out_step
    cdef Py_ssize_t programmed = size       # the rest is replicated, which is faster where vectors are not full
    cdef Py_ssize_t whole, done
    if not program.exact or plan.data_end - data < program.data_reach:
        programmed = min(size, (SETTLED + step - 1) // step * step)
    whole = programmed // step
    if plan.data_end - data < program.data_reach:
        whole = 0
    whole = min(whole, _roomy(step, program.out_reach, out_end - out))
    plan.leaf.run(program, program.vectors, whole, data, out)
    done = whole * step
    if done < programmed and done and program.exact:        # once more, laid back to end with the run
        plan.leaf.run(program, program.vectors, 1, data, out + programmed - step)
        done = programmed
    while done < programmed:
        whole = min(step, programmed - done)
        _put_stretch(plan, data_bytes, whole, data, out + done, out_end)
        done += whole
    _tile(out, programmed, size)


cdef void _put_stretch(
    const Plan *plan, Py_ssize_t data_bytes, Py_ssize_t out_bytes, const uint8_t *data, uint8_t *out, uint8_t *out_end,
) noexcept nogil:
    """Write the first `out_bytes` of what the program describes, which it makes of `data_bytes`."""
    cdef const Program *program = &plan.program
    cdef int vectors = program.vectors
    if out_bytes < program.out_step:
        vectors = <int> (vectors * out_bytes // program.out_step)
        while vectors < program.vectors and program.out_at[vectors] < out_bytes:
            vectors += 1
        while program.out_at[vectors - 1] >= out_bytes:
            vectors -= 1
    if plan.data_end - data >= program.data_reach and out_end - out >= program.out_reach:
        plan.leaf.run(program, vectors, 1, data, out)
    else:
        _put_fenced(plan, vectors, data_bytes, out_bytes, data, out)


cdef void _put_fenced(
    const Plan *plan, int vectors, Py_ssize_t data_bytes, Py_ssize_t out_bytes, const uint8_t *data, uint8_t *out,
) noexcept nogil:
    """`_put_stretch` where a buffer ends: on copies with some room behind them."""
    cdef uint8_t[STRETCH + WIDEST] near_data
    cdef uint8_t[STRETCH + WIDEST] near_out
    memcpy(near_data, data, data_bytes)
    plan.leaf.run(&plan.program, vectors, 1, near_data, near_out)
    memcpy(out, near_out, out_bytes)


cdef inline Py_ssize_t _roomy(Py_ssize_t step, Py_ssize_t reach, Py_ssize_t room) noexcept nogil:
    """How many steps can reach `reach` bytes, `reach >= step`, from where they start without leaving `room`."""
    return 0 if room < reach else (room - reach) // step + 1
