# cython: cdivision=True
"""Writes the bytes of an output from a plan, counts or strided data: shares on threads, loops around kernels, tiles.

In: a `Plan`, or another function that writes any range of an output's bytes; two buffers. Out: all bytes of the output,
each written at least once. No byte outside the two buffers is read or written. Once writing has begun, nothing
allocates, raises or runs Python.

`write_shares` cuts an output for threads. Outputs too large for a cache are streamed, except a part that fits: they are
assembled piece by piece in scratch and streamed from there (`_stream_blocks`). Pages of mapped files are released after
each share.

`write_planned` writes any part of an output. `write_blocks` iterates over the pairs from the outermost in: it writes
each block once and then replicates it. The kernels in `simd` write the short innermost blocks. Everything is written
from front to back, so a store may spill into bytes that are written next. No store passes `dst_end`, the end of this
thread's part, and no load passes the end of the data (`Plan.src_end`): the last spans are written through copies that
are followed by free space.

`write_counted` also writes any part of an output, for items with individual counts. The counts determine where the next
item of the data begins. If there are outer axes, all counts apply again at each outer position. Binary search finds the
first chunk of counts of a part, and the chunks at both ends of the part are cut to it.

`write_strided` copies the items of strided data in C order. A cache line of the output has items from many lines of the
data, and a line of the data goes to many lines of the output. So the work is cut into tiles at least one line long on
both sides, which stay in a cache while they are transposed. Tiles follow each other in the order of the data. The
kernel `copy_matrix` transposes two axes of a tile: the one with the output's shortest stride, and the one with the
data's shortest stride.
"""

cimport numpy as cnp
from cpython.pyport cimport PY_SSIZE_T_MAX
from libc.stdint cimport int64_t, uint8_t, uintptr_t
from libc.stdlib cimport llabs
from libc.string cimport memcpy

from bcast._copy.plan cimport (
    COPY_ITEM_VECTORS, COPY_SPAN_BYTES, COPY_VECTOR_BYTES, COPY_WINDOW_BYTES, FILL, Kernels, Matrix, Pair, Plan, Rows,
    ShuffleTable, copy_kernels_of,
)
from bcast._nest.core cimport Nest, coalesce_axes
from bcast._rules.counts cimport CHUNK, CountList, Counts, find_chunk, read_chunk, tile_counts
from bcast._runtime.arrays cimport MAX_AXES
from bcast._runtime.core cimport (
    L1, LINE, PAGE, Job, count_shares, cut, forget_range, free_scratch, new_job, run_job, run_without_gil, scratch_of,
    take_scratch, target_number,
)
from bcast._runtime.tuning cimport (
    COPY_SHARE_MAX_BYTES, COPY_STREAMED_BYTES, COPY_TILE_ITEMS, COUNTED_REACH_BYTES, THREAD_SHARES, WRITTEN_SHARE_BYTES,
)

cdef extern from "_runtime/stream.h":
    void bcast_stream(uint8_t *dst, const uint8_t *src, size_t size) noexcept nogil
    void bcast_store_fence() noexcept nogil
    bint bcast_pages_resident(const uint8_t *dst, size_t size) noexcept nogil

cnp.import_array()


# Shares of an output

cdef struct Work:
    # Data common to all shares of an output.
    const Output *output
    const Job *job
    bint is_streamed    # past the caches, through scratch


def set_limits(share=WRITTEN_SHARE_BYTES, streamed=COPY_STREAMED_BYTES):
    """Set the smallest numbers of bytes for a thread and for streaming, for tests."""
    global share_bytes, streamed_bytes
    if share < 1 or streamed < 1:
        raise ValueError(f"`share`, `streamed` expected bytes, at least 1, got {share}, {streamed}")
    share_bytes, streamed_bytes = share, streamed


set_limits()


cdef void write_shares(const Output *output, int threads) noexcept nogil:
    """Fill an output on some threads."""
    cdef Work work = Work(output=output, job=NULL, is_streamed=False)
    cdef Job job = new_job(_write_share, &work, threads, _count_shares(output, threads))
    work.job = &job
    if output.size // (1 if threads == 1 else 2) >= streamed_bytes and bcast_pages_resident(output.dst, output.size):
        job.scratch_bytes = COPY_SCRATCH_BYTES
        work.is_streamed = take_scratch(&job, NULL, 0)
    run_job(&job)
    free_scratch(&job)


cdef inline int _count_shares(const Output *output, int threads) noexcept nogil:
    """The number of shares of an output: one for one thread, except in mapped files, whose pages are released."""
    cdef Py_ssize_t shares
    if threads == 1 and not output.is_mapped and output.mapped_src_bytes == 0:
        return 1
    shares = max(threads, min(output.size // share_bytes, <Py_ssize_t> THREAD_SHARES * threads))
    return <int> max(shares, output.size // COPY_SHARE_MAX_BYTES)


cdef void _write_share(void *all_work, int share, int worker) noexcept nogil:
    """Write one share; release pages of mapped files, of the output and of the data."""
    cdef const Work *work = <const Work *> all_work
    cdef const Output *output = work.output
    cdef Py_ssize_t begin = _page_cut(work, share), end = _page_cut(work, share + 1)
    cdef uint8_t *scratch = NULL

    if work.is_streamed and not _is_kept_in_cache(share, end - begin):
        scratch = <uint8_t *> scratch_of(work.job, worker)

    output.write(output.plan, begin, end, output.src, output.dst, scratch)
    if scratch != NULL:
        bcast_store_fence()
    if output.is_mapped:
        forget_range(output.dst + begin, end - begin)
    if output.mapped_src_bytes:
        forget_range(output.src, output.mapped_src_bytes)


cdef inline bint _is_kept_in_cache(int share, Py_ssize_t size) noexcept nogil:
    """Whether a share is not streamed: every second one, up to the capacity of a cache.

    Some threads write to the cache then, while others wait for the memory.
    """
    return share % 2 == 1 and share // 2 * size < streamed_bytes // 4 * 3


cdef inline Py_ssize_t _page_cut(const Work *work, int share) noexcept nogil:
    """The beginning of a share, at a page boundary, so that no two threads touch the same page."""
    cdef const Output *output = work.output
    cdef Py_ssize_t at = cut(output.size, share, work.job.shares)
    if share == 0:
        return 0
    return min(output.size, at + <Py_ssize_t> (-<uintptr_t> (output.dst + at) & (PAGE - 1)))


# From a plan to bytes. Blocks, their repetitions, data, output and its end change from level to level. They come one by
# one, up to eight parameters: each call would have to fill a struct again.


cdef void write_planned(
    const void *all_plan, Py_ssize_t begin, Py_ssize_t end, const uint8_t *src, uint8_t *dst, uint8_t *scratch,
) noexcept nogil:
    """Write the bytes of an output from `begin` to `end`."""
    cdef const Plan *plan = <const Plan *> all_plan
    cdef const Pair *pair = &plan.pairs[0]
    if scratch == NULL and begin == 0 and end == pair.copied * pair.repeated * pair.dst_bytes:
        write_blocks(plan, 0, pair.copied, pair.repeated, src, dst, dst + end)    # without a division
    else:
        write_part(plan, 0, begin, end, src, dst, dst + end, scratch)


cdef void write_part(
    const Plan *plan, int level, Py_ssize_t begin, Py_ssize_t end, const uint8_t *src, uint8_t *dst, uint8_t *dst_end,
    uint8_t *scratch,
) noexcept nogil:
    """Write the bytes from `begin` to `end` of the output of the pair at `level` for `data`."""
    cdef const Pair *pair = &plan.pairs[level]
    cdef Py_ssize_t run = pair.repeated * pair.dst_bytes
    cdef Py_ssize_t n, times, inside, size
    cdef const uint8_t *block

    while begin < end:
        block = src + begin // run * pair.src_bytes
        inside = begin % run
        n = 1
        times = min(run - inside, end - begin) // pair.dst_bytes
        inside %= pair.dst_bytes
        if times == pair.repeated:      # whole runs
            n = (end - begin) // run
        size = n * times * pair.dst_bytes
        if inside or size == 0:         # a part of a block
            size = min(pair.dst_bytes - inside, end - begin)
            if level == plan.last:
                memcpy(dst + begin, block + inside, size)
            else:
                write_part(plan, level + 1, inside, inside + size, block, dst + begin - inside, dst_end, scratch)
        elif scratch == NULL:
            write_blocks(plan, level, n, times, block, dst + begin, dst_end)
        else:
            _stream_blocks(plan, level, n, times, block, dst + begin, scratch)
        begin += size


cdef void write_blocks(
    const Plan *plan, int level, Py_ssize_t n, Py_ssize_t times, const uint8_t *src, uint8_t *dst, uint8_t *dst_end,
) noexcept nogil:
    """Write `n` blocks of the pair at `level`, each `times` times: all at once, if a kernel does, or run by run.

    A run is one block with its repetitions.
    """
    cdef const Pair *pair = &plan.pairs[level]
    cdef Py_ssize_t run = times * pair.dst_bytes, _i
    cdef bint is_innermost = level == plan.last             # a block is one item
    cdef bint is_described = level == plan.shuffle_level    # the shuffle table writes some or all of the output

    if is_described and times == pair.repeated == plan.span_times:
        _write_spans(plan, n * run, src, dst, dst_end)      # a span has whole runs
    elif is_innermost and plan.strategy == FILL and run >= plan.kernels.vector:
        _write_fills(plan, n, times, src, dst)
    elif is_innermost and not is_described:
        repeat_items(&plan.kernels, pair.dst_bytes, n, times, src, dst)
    else:
        for _i in range(n):
            if is_described:
                _write_described_run(plan, run, src, dst, dst_end)
            else:
                _write_nested_run(plan, level, times, src, dst, dst_end)
            src += pair.src_bytes
            dst += run


cdef void _write_nested_run(
    const Plan *plan, int level, Py_ssize_t times, const uint8_t *src, uint8_t *dst, uint8_t *dst_end,
) noexcept nogil:
    """Write one block through the pairs inside of it, then replicate it.

    A block too long to be read back from a near cache is written again from the data, which is shorter.
    """
    cdef const Pair *inside = &plan.pairs[level + 1]
    cdef Py_ssize_t block = plan.pairs[level].dst_bytes, j

    if block > plan.read_back:
        for j in range(times):
            write_blocks(plan, level + 1, inside.copied, inside.repeated, src, dst + j * block, dst_end)
    else:
        write_blocks(plan, level + 1, inside.copied, inside.repeated, src, dst, dst_end)
        tile_block(&plan.kernels, dst, block, times * block)


cdef void repeat_items(
    const Kernels *kernels, Py_ssize_t size, Py_ssize_t n, Py_ssize_t times, const uint8_t *src, uint8_t *dst,
) noexcept nogil:
    """Write each of n items `times` times, and no byte beyond them."""
    cdef Py_ssize_t begin, part, _i
    cdef Rows rows
    if times == 1:
        memcpy(dst, src, n * size)
    elif COPY_WINDOW_BYTES < size <= COPY_ITEM_VECTORS * kernels.vector and (
        times * size < (PAGE // 2 if size & (kernels.vector - 1) else L1)       # whole vectors do not overlap
    ):
        rows = Rows(n, times, size)
        kernels.repeat_rows(&rows, NULL, src, dst)
    else:
        for _i in range(n):
            if size < PAGE:
                memcpy(dst, src, size)
                tile_block(kernels, dst, size, times * size)
            else:       # in pieces: each is written to all its places while it is in a cache
                begin = 0
                while begin < size:
                    part = 2 * PAGE if size - begin >= 4 * PAGE else size - begin
                    kernels.copy_to_many(times, size, part, src + begin, dst + begin)
                    begin += part
            src += size
            dst += times * size


cdef void tile_block(const Kernels *kernels, uint8_t *dst, Py_ssize_t block, Py_ssize_t size) noexcept nogil:
    """Replicate the finished first `block` bytes of an output over its `size`: a short one by doubling, a long one by
    stores that cross no line.
    """
    cdef Py_ssize_t vector = kernels.vector, whole = block, begin, times
    cdef Py_ssize_t longest = min(size, <Py_ssize_t> (L1 // 2)) if size < L1 else PAGE
    cdef Rows rows

    while 2 * block <= longest:     # remains in the first-level cache that all stores pass through
        memcpy(dst + block, dst, block)
        block *= 2
    if size < L1 or size < 2 * block:
        begin = block
        while begin < size:
            memcpy(dst + begin, dst, min(block, size - begin))
            begin += block
        return
    while whole % vector and whole <= COPY_ITEM_VECTORS * vector:
        whole *= 2
    if whole <= COPY_ITEM_VECTORS * vector:     # a few blocks make whole vectors that fit the registers
        begin = <Py_ssize_t> (-<uintptr_t> dst & <uintptr_t> (vector - 1))
        times = (size - begin) // whole
        rows = Rows(1, times - 1, whole)
        kernels.repeat_rows(&rows, NULL, dst + begin, dst + begin + whole)
        memcpy(dst + begin + times * whole, dst + begin, size - begin - times * whole)
    else:
        kernels.tile(block, size, dst)


cdef void _stream_blocks(
    const Plan *plan, int level, Py_ssize_t n, Py_ssize_t times, const uint8_t *src, uint8_t *dst, uint8_t *scratch,
) noexcept nogil:
    """`write_blocks` past the caches: assemble as much as fits the scratch, then stream it to all its places."""
    cdef const Pair *pair = &plan.pairs[level]
    cdef Py_ssize_t run = times * pair.dst_bytes, part
    cdef Py_ssize_t runs = L1 // run        # fit the scratch

    if level == plan.shuffle_level and runs > plan.span_blocks:
        runs -= runs % plan.span_blocks
    while n:
        part = min(n, max(runs, 1))
        if pair.dst_bytes <= L1:
            _stream_short_blocks(plan, level, part, times, src, dst, scratch)
        elif times == 1 and level < plan.last:
            _stream_blocks(plan, level + 1, pair[1].copied, pair[1].repeated, src, dst, scratch)
        else:
            _stream_long_block(plan, level, times, src, dst, scratch)
        n -= part
        src += part * pair.src_bytes
        dst += part * run


cdef void _stream_short_blocks(
    const Plan *plan, int level, Py_ssize_t n, Py_ssize_t times, const uint8_t *src, uint8_t *dst, uint8_t *scratch,
) noexcept nogil:
    """Assemble as many repetitions as fit the scratch, of `n` blocks whose runs fit it, or of one."""
    cdef Py_ssize_t size = plan.pairs[level].dst_bytes
    cdef Py_ssize_t at_once = min(times, <Py_ssize_t> (L1 // size))
    cdef Py_ssize_t piece = n * at_once * size, whole = n * times * size, done = 0
    write_blocks(plan, level, n, at_once, src, scratch, scratch + COPY_SCRATCH_BYTES)
    while done < whole:
        bcast_stream(dst + done, scratch, min(piece, whole - done))
        done += piece


cdef void _stream_long_block(
    const Plan *plan, int level, Py_ssize_t times, const uint8_t *src, uint8_t *dst, uint8_t *scratch,
) noexcept nogil:
    """Write a block too large for the scratch in pieces, each to all its places."""
    cdef Py_ssize_t size = plan.pairs[level].dst_bytes, done = 0, piece, i
    cdef const uint8_t *begin
    while done < size:
        piece = min(<Py_ssize_t> L1, size - done)
        begin = src + done
        if level < plan.last:
            write_part(plan, level + 1, done, done + piece, src, scratch - done, scratch + COPY_SCRATCH_BYTES, NULL)
            begin = scratch
        for i in range(times):
            bcast_stream(dst + i * size + done, begin, piece)
        done += piece


cdef void _write_fills(
    const Plan *plan, Py_ssize_t n, Py_ssize_t times, const uint8_t *src, uint8_t *dst,
) noexcept nogil:
    """Fill a run with each of `n` items."""
    cdef Py_ssize_t size = plan.pairs[plan.last].dst_bytes
    cdef Py_ssize_t fast = min(n, _safe_count(size, COPY_WINDOW_BYTES, plan.src_end - src))
    cdef uint8_t[3 * COPY_VECTOR_BYTES] near_src
    cdef Rows rows = Rows(fast, times, size)
    plan.kernels.fill(&rows, src, dst)
    if fast < n:    # the last items: less than a window and an item remains
        memcpy(near_src, src + fast * size, (n - fast) * size)
        rows.count = n - fast
        plan.kernels.fill(&rows, near_src, dst + fast * times * size)


cdef void _write_described_run(
    const Plan *plan, Py_ssize_t size, const uint8_t *src, uint8_t *dst, uint8_t *dst_end,
) noexcept nogil:
    """Write one run by a shuffle table that describes a part of it."""
    cdef Py_ssize_t step = plan.table.dst_step
    cdef Py_ssize_t executed = size         # the rest is replicated, which is faster if vectors are not full
    if not plan.table.exact or plan.src_end - src < plan.table.src_reach:
        # The most recent stores may still be on their way to the cache and are slow to read back.
        executed = min(size, (PAGE + step - 1) // step * step)
    _write_spans(plan, executed, src, dst, dst_end)
    tile_block(&plan.kernels, dst, executed, size)


cdef void _write_spans(
    const Plan *plan, Py_ssize_t size, const uint8_t *src, uint8_t *dst, uint8_t *dst_end,
) noexcept nogil:
    """Write `size` bytes by the shuffle table; spans near the end of a buffer on copies followed by free space."""
    cdef const ShuffleTable *table = &plan.table
    cdef uint8_t[COPY_SPAN_BYTES + COPY_VECTOR_BYTES] near_src
    cdef uint8_t[COPY_SPAN_BYTES + COPY_VECTOR_BYTES] near_dst
    cdef Py_ssize_t fast = min(
        size // table.dst_step, _safe_count(table.src_step, table.src_reach, plan.src_end - src),
        _safe_count(table.dst_step, table.dst_reach, dst_end - dst),
    )
    cdef Py_ssize_t part
    cdef int vectors

    plan.kernels.execute(table, table.vectors, fast, src, dst)
    src += fast * table.src_step
    dst += fast * table.dst_step
    size -= fast * table.dst_step
    while size:
        part = min(size, table.dst_step)
        vectors = table.vectors
        while table.dst_at[vectors - 1] >= part:
            vectors -= 1
        if plan.src_end - src >= table.src_reach and dst_end - dst >= table.dst_reach:
            plan.kernels.execute(table, vectors, 1, src, dst)
        else:
            memcpy(near_src, src, min(table.src_reach, plan.src_end - src))
            plan.kernels.execute(table, vectors, 1, near_src, near_dst)
            memcpy(dst, near_dst, part)
        src += table.src_step
        dst += part
        size -= part


cdef inline Py_ssize_t _safe_count(Py_ssize_t step, Py_ssize_t reach, Py_ssize_t room) noexcept nogil:
    """The number of steps that fit in `room` if each touches `reach` bytes, `reach >= step`, from its start."""
    if room < reach:
        return 0
    return (room - reach) // step + 1 if step else PY_SSIZE_T_MAX


# Items repeated by counts, that is, run-length decoding


cdef int plan_counted(CountedPlan *plan, cnp.ndarray src, Counts of_items, int axis, cnp.ndarray dst) except -1:
    """Plan the repetition of data into `dst`; both are contiguous."""
    cdef const CountList *counts = &of_items.list
    cdef Py_ssize_t outer = 1, size = cnp.PyArray_ITEMSIZE(dst), nbytes = cnp.PyArray_NBYTES(dst)
    cdef Py_ssize_t n = cnp.PyArray_SIZE(src), i

    if axis >= 0:
        n = cnp.PyArray_DIM(src, axis)
        for i in range(axis):
            outer *= cnp.PyArray_DIM(src, <int> i)
        for i in range(axis + 1, cnp.PyArray_NDIM(src)):
            size *= cnp.PyArray_DIM(src, <int> i)
    # Arguments may run user code, which can resize arrays; and `starts` may be wrong for more items than memory holds.
    if (
        n != counts.size or outer * size == 0 or not of_items.is_exact()
        or nbytes // (outer * size) != counts.total or nbytes % (outer * size)
    ):
        raise ValueError("`data` and `out` expected arrays that keep their sizes during the call, got resized ones")
    plan.size = size
    plan.src_end = <const uint8_t *> cnp.PyArray_DATA(src) + outer * counts.size * size
    plan.kernels = copy_kernels_of[target_number]
    plan.counts.list = counts[0]
    tile_counts(&plan.counts, outer)
    return 0


cdef struct Stretch:            # neighbouring items whose counts are available
    const int64_t *counts
    Py_ssize_t n                # number of the items
    Py_ssize_t total            # sum of the counts: the number of output items
    Py_ssize_t item             # index of the first one in the data


cdef void write_counted(
    const void *all_plan, Py_ssize_t begin, Py_ssize_t end, const uint8_t *src, uint8_t *dst, uint8_t *_scratch,
) noexcept nogil:
    """Write the bytes from `begin` to `end` of the output; never past the caches, which is no faster."""
    cdef const CountedPlan *plan = <const CountedPlan *> all_plan
    cdef int64_t[CHUNK] room
    cdef Stretch stretch
    cdef Py_ssize_t size = plan.size, written

    while begin < end:
        if begin % size or end - begin < size:      # only a part of one item is written
            _read_counts(plan, begin // size, begin // size + 1, room, &stretch)
            written = min(size - begin % size, end - begin)
            memcpy(dst + begin, src + stretch.item * size + begin % size, written)
        else:
            _read_counts(plan, begin // size, end // size, room, &stretch)
            written = stretch.total * size
            _write_runs(plan, &stretch, src + stretch.item * size, dst + begin, dst + end)
        begin += written


cdef void _read_counts(
    const CountedPlan *plan, Py_ssize_t first, Py_ssize_t stop, int64_t *room, Stretch *found,
) noexcept nogil:
    """Find the items at places `first` to `stop` of the output, as far as they are in one chunk."""
    cdef const CountList *list = &plan.counts.list
    cdef Py_ssize_t turn = first // list.total      # all counts apply again to each outer position
    cdef Py_ssize_t turn_begin = turn * list.total
    cdef Py_ssize_t c = find_chunk(list, first - turn_begin, 0)
    cdef Py_ssize_t chunk_begin = turn_begin + list.starts[c], chunk_end = turn_begin + list.starts[c + 1]

    stop = min(stop, chunk_end)
    found.total = stop - first
    found.item = turn * list.size + c * CHUNK
    found.n = min(<Py_ssize_t> CHUNK, list.size - c * CHUNK)
    found.counts = read_chunk(list, c, room)
    if first > chunk_begin or stop < chunk_end or found.total == 1:     # for a total of 1, the caller needs the item
        _cut_counts(found, room, first - chunk_begin, chunk_end - stop)


cdef void _cut_counts(Stretch *found, int64_t *room, Py_ssize_t skipped, Py_ssize_t excess) noexcept nogil:
    """Drop the first and the last places of a chunk, and then items without places, counts of 0 there included."""
    cdef Py_ssize_t n = found.n, first = 0

    if found.counts != room:
        memcpy(room, found.counts, n * sizeof(int64_t))

    while n and room[n - 1] <= excess:
        n -= 1
        excess -= room[n]
    if n:
        room[n - 1] -= excess

    while first < n and room[first] <= skipped:
        skipped -= room[first]
        first += 1
    if first < n:
        room[first] -= skipped

    found.counts = room + first
    found.n = n - first
    found.item += first


cdef void _write_runs(
    const CountedPlan *plan, const Stretch *runs, const uint8_t *src, uint8_t *dst, const uint8_t *dst_end,
) noexcept nogil:
    """Repeat each item by its count; bytes after the runs, up to `dst_end`, may be overwritten."""
    cdef Py_ssize_t size = plan.size, n = runs.n, likely, i
    cdef int64_t any_bits = 0, common_bits = -1
    cdef bint is_short = size <= COPY_WINDOW_BYTES, fits_registers

    for i in range(n):
        any_bits |= runs.counts[i]
        common_bits &= runs.counts[i]
    if any_bits == common_bits and (any_bits <= 1 or not is_short):     # all counts are equal
        if any_bits:
            repeat_items(&plan.kernels, size, n, any_bits, src, dst)
        return

    # Few counts of most distributions are higher than twice their mean, and none is higher than all bits together.
    likely = min(2 * runs.total // n + (runs.total < 3 * n), <Py_ssize_t> any_bits)
    fits_registers = size <= COPY_ITEM_VECTORS * plan.kernels.vector and runs.total * size < n * PAGE // 2
    if is_short:
        _write_short_items(plan, runs, likely * size, src, dst, dst_end)
    elif fits_registers:
        _write_long_items(plan, runs, likely, src, dst, dst_end)
    else:
        _write_exactly(plan, runs.counts, n, src, dst)


cdef void _write_short_items(
    const CountedPlan *plan, const Stretch *runs, Py_ssize_t likely_bytes, const uint8_t *src, uint8_t *dst,
    const uint8_t *dst_end,
) noexcept nogil:
    """Write items of at most a window by a kernel that writes at least `reach` bytes of each."""
    cdef uint8_t[CHUNK * COPY_WINDOW_BYTES + COPY_WINDOW_BYTES] near_src
    cdef uint8_t[PAGE] near_dst
    cdef Py_ssize_t size = plan.size, nbytes = runs.total * size, reach, rest
    cdef Rows rows = Rows(runs.n, 1, size)
    cdef const int64_t *counts = runs.counts

    while rows.times * COPY_WINDOW_BYTES < min(likely_bytes, <Py_ssize_t> COUNTED_REACH_BYTES):
        rows.times *= 2
    reach = max(rows.times * COPY_WINDOW_BYTES, <Py_ssize_t> plan.kernels.vector)
    if plan.src_end - src < (runs.n - 1) * size + COPY_WINDOW_BYTES:    # the last items have no windows; a copy has
        memcpy(near_src, src, runs.n * size)
        src = near_src

    rows.count = _count_with_room(runs, size, reach - (dst_end - dst - nbytes), &rest)
    plan.kernels.repeat_counted(&rows, counts, src, dst)

    counts += rows.count
    src += rows.count * size
    dst += nbytes - rest
    rows.count = runs.n - rows.count
    if 0 < rest <= PAGE - reach:
        plan.kernels.repeat_counted(&rows, counts, src, near_dst)
        memcpy(dst, near_dst, rest)
    else:
        _write_exactly(plan, counts, rows.count, src, dst)


cdef void _write_long_items(
    const CountedPlan *plan, const Stretch *runs, Py_ssize_t likely, const uint8_t *src, uint8_t *dst,
    const uint8_t *dst_end,
) noexcept nogil:
    """Write items longer than a window from registers, each as often as most counts require, or more."""
    cdef Py_ssize_t size = plan.size, nbytes = runs.total * size, rest
    cdef Rows rows = Rows(runs.n, max(<Py_ssize_t> 1, min(likely, COUNTED_REACH_BYTES // size)), size)

    rows.count = _count_with_room(runs, size, rows.times * size - (dst_end - dst - nbytes), &rest)
    plan.kernels.repeat_rows(&rows, runs.counts, src, dst)
    _write_exactly(plan, runs.counts + rows.count, runs.n - rows.count, src + rows.count * size, dst + nbytes - rest)


cdef inline Py_ssize_t _count_with_room(
    const Stretch *runs, Py_ssize_t size, Py_ssize_t missing, Py_ssize_t *rest,
) noexcept nogil:
    """The number of runs that may be written beyond their end; the last `missing` bytes of all may not be.

    Find how many bytes the remaining runs have, which come last.
    """
    cdef Py_ssize_t count = runs.n
    rest[0] = 0
    while count and rest[0] < missing:
        count -= 1
        rest[0] += runs.counts[count] * size
    return count


cdef void _write_exactly(
    const CountedPlan *plan, const int64_t *counts, Py_ssize_t n, const uint8_t *src, uint8_t *dst,
) noexcept nogil:
    """Write n runs, and no byte after them; items with equal counts together."""
    cdef Py_ssize_t i = 0, same
    while i < n:
        same = 1
        while i + same < n and counts[i + same] == counts[i]:
            same += 1
        if counts[i]:
            repeat_items(&plan.kernels, plan.size, same, counts[i], src, dst)
        src += same * plan.size
        dst += same * counts[i] * plan.size
        i += same


# Strided data

cdef struct StridedAxis:
    Py_ssize_t length, src_step, dst_step
    Py_ssize_t block        # its length in a tile, or less than twice that in the last tile
    Py_ssize_t part         # its length in the current tile

cdef struct StridedCopy:
    const uint8_t *src
    uint8_t *dst
    Py_ssize_t size             # bytes of an item, or of a run that is one
    int rank
    StridedAxis[MAX_AXES] axes  # in the order of the output
    int inner, other            # the innermost axis in the output, and among the others in the data
    int outer_loops             # loops over tiles
    int n_loops                 # all loops, with those within a tile
    int[2 * MAX_AXES] loops     # the axis along which each loop runs
    int cut                     # the axis that is cut into shares
    int shares                  # the number of shares


cdef int write_strided(cnp.ndarray src, uint8_t *dst, int threads, bint releasing) except -1:
    """Copy data that is not empty to `out`, which must not overlap it; an axis of stride 0 is copied once.

    If `releasing`, the GIL is released meanwhile. The caller keeps both arrays alive.
    """
    cdef StridedCopy copy
    cdef Job job
    copy.src = <const uint8_t *> cnp.PyArray_DATA(src)
    copy.dst = dst
    _read_axes(&copy, src)
    _cut_tiles(&copy)
    _order_loops(&copy)

    copy.shares = count_shares(threads, _cut_longest_axis(&copy))
    job = new_job(_write_tile_share, &copy, threads, copy.shares)
    if releasing:
        run_without_gil(&job, src)
    else:
        run_job(&job)
    return 0


cdef void _read_axes(StridedCopy *copy, cnp.ndarray src) noexcept:
    """Merge axes that are also mergeable in the data; a run of items adjacent in both becomes one long item."""
    cdef StridedAxis *axes = &copy.axes[0]
    cdef Nest nest      # only the data: the output is contiguous, so axes that merge in the data merge in both
    cdef int i, rank

    nest.n, nest.rank = 1, 0
    for i in range(cnp.PyArray_NDIM(src)):
        if cnp.PyArray_DIM(src, i) > 1 and cnp.PyArray_STRIDE(src, i):
            nest.shape[nest.rank] = cnp.PyArray_DIM(src, i)
            nest.stride[0][nest.rank] = cnp.PyArray_STRIDE(src, i)
            nest.rank += 1
    coalesce_axes(&nest)

    rank = nest.rank
    for i in range(rank):
        axes[i].length, axes[i].src_step = nest.shape[i], nest.stride[0][i]
    copy.size = cnp.PyArray_ITEMSIZE(src)
    if rank and axes[rank - 1].src_step == copy.size:
        rank -= 1
        copy.size *= axes[rank].length
    while rank < 2:     # the kernel needs two
        axes[rank] = axes[0]
        axes[0].length = 1
        axes[0].src_step = axes[1].length * axes[1].src_step if rank else copy.size
        rank += 1
    copy.rank = rank


cdef void _cut_tiles(StridedCopy *copy) noexcept:
    """Choose the axes for the kernel, and the length of each axis in a tile."""
    _choose_kernels_axes(copy)
    _take_whole_lines(copy)
    _widen_narrow_tiles(copy)


cdef void _choose_kernels_axes(StridedCopy *copy) noexcept:
    """Choose the innermost axis of the output, and among the others the innermost of the data."""
    cdef const StridedAxis *axes = &copy.axes[0]
    cdef int i

    copy.inner = copy.rank - 1
    copy.other = 0
    for i in range(copy.inner - 1, -1, -1):
        if llabs(axes[i].src_step) < llabs(axes[copy.other].src_step):
            copy.other = i

    if axes[copy.other].length * axes[copy.inner].length < COPY_TILE_ITEMS:
        for i in range(copy.inner):
            if axes[i].length > axes[copy.other].length:
                copy.other = i


cdef void _take_whole_lines(StridedCopy *copy) noexcept:
    """Find each axis's step in the output, and choose tiles of whole cache lines in output and data."""
    cdef const StridedAxis *inner = &copy.axes[copy.inner]
    cdef StridedAxis *axis
    cdef Py_ssize_t step = copy.size, tile = copy.size      # bytes within an axis: in the output, in a tile
    cdef Py_ssize_t dst_side = 4 * LINE                             # bytes of a tile side by side in the output
    cdef Py_ssize_t src_side = min(dst_side, LINE * copy.size)      # the side in the data: the same for long items
    cdef bint are_whole_pages_apart = inner.src_step & (PAGE - 1) == 0
    cdef int i

    if copy.size >= 16 and not are_whole_pages_apart:   # lines of the data stay in a second-level cache
        dst_side = L1 // 2
        src_side = LINE
    for i in range(copy.rank - 1, -1, -1):
        axis = &copy.axes[i]
        axis.dst_step = step
        step *= axis.length
        axis.block = max(_part(axis, dst_side, tile), _part(axis, src_side, llabs(axis.src_step)))
        tile *= axis.block


cdef void _widen_narrow_tiles(StridedCopy *copy) noexcept:
    """If the data or the output is narrow, choose tiles of a quarter of a first-level cache."""
    cdef StridedAxis *inner = &copy.axes[copy.inner]
    cdef StridedAxis *other = &copy.axes[copy.other]
    cdef Py_ssize_t narrow = L1 // 4

    if llabs(inner.src_step) < llabs(other.src_step):      # a single row
        inner.block = max(inner.block, _part(inner, narrow, copy.size))
    elif inner.src_step == other.length * other.src_step:   # rows that are packed
        inner.block = max(inner.block, _part(inner, narrow, other.length * copy.size))
    if other.dst_step == inner.length * copy.size:
        other.block = max(other.block, _part(other, narrow, other.dst_step))


cdef inline Py_ssize_t _part(const StridedAxis *axis, Py_ssize_t wanted, Py_ssize_t each) noexcept:
    """The number of an axis's items, of `each` bytes, that have `wanted` bytes; at most all of them."""
    return min(axis.length, (wanted + each - 1) // each)


cdef void _order_loops(StridedCopy *copy) noexcept:
    """Order the loops in the data's memory order: over tiles, then along the axes of a tile outside the kernel."""
    cdef int[MAX_AXES] order
    cdef StridedAxis *axis
    cdef int k

    _run_forwards(copy)
    _sort_by_data(copy, order)

    copy.n_loops = 0
    for k in range(copy.rank):
        axis = &copy.axes[order[k]]
        axis.part = axis.length
        if axis.length >= 2 * axis.block:
            _add_loop(copy, order[k])
    copy.outer_loops = copy.n_loops
    for k in range(copy.rank):
        if order[k] != copy.inner and order[k] != copy.other and copy.axes[order[k]].block > 1:
            _add_loop(copy, order[k])


cdef void _run_forwards(StridedCopy *copy) noexcept:
    """Flip axes along which the data has a negative stride, except the innermost of the output."""
    cdef StridedAxis *axis
    cdef int i
    for i in range(copy.rank):
        axis = &copy.axes[i]
        if i == copy.inner or axis.src_step >= 0:
            continue
        copy.src += (axis.length - 1) * axis.src_step
        copy.dst += (axis.length - 1) * axis.dst_step
        axis.src_step = -axis.src_step
        axis.dst_step = -axis.dst_step


cdef void _sort_by_data(const StridedCopy *copy, int *order) noexcept:
    """List the axes by the data's steps, the longest first; equal steps keep their order."""
    cdef int i, place
    for i in range(copy.rank):
        place = i
        while place and llabs(copy.axes[order[place - 1]].src_step) < llabs(copy.axes[i].src_step):
            order[place] = order[place - 1]
            place -= 1
        order[place] = i


cdef inline void _add_loop(StridedCopy *copy, int axis) noexcept:
    """Let the next loop run along an axis."""
    copy.loops[copy.n_loops] = axis
    copy.n_loops += 1


cdef inline Py_ssize_t _cut_longest_axis(StridedCopy *copy) noexcept nogil:
    """Choose the axis with the most blocks, to be cut into shares between blocks; return the number of blocks."""
    cdef Py_ssize_t most = 0, blocks
    cdef int i
    for i in range(copy.rank):
        blocks = copy.axes[i].length // copy.axes[i].block
        if blocks > most:
            most = blocks
            copy.cut = i
    return most


cdef void _write_tile_share(void *whole, int i, int _worker) noexcept nogil:
    """Copy one share; shares are cut between blocks."""
    cdef StridedCopy own
    cdef StridedCopy *copy = <StridedCopy *> whole
    if copy.shares > 1:     # each share has its own length
        own = copy[0]
        copy = &own
    cdef StridedAxis *axis = &copy.axes[copy.cut]
    cdef Py_ssize_t blocks = axis.length // axis.block
    cdef Py_ssize_t begin = cut(blocks, i, copy.shares) * axis.block
    cdef Py_ssize_t end = axis.length if i + 1 == copy.shares else cut(blocks, i + 1, copy.shares) * axis.block
    axis.length = end - begin
    _write_tiles(copy, 0, copy.src + begin * axis.src_step, copy.dst + begin * axis.dst_step)


cdef void _write_tiles(StridedCopy *copy, int level, const uint8_t *src, uint8_t *dst) noexcept nogil:
    """Run the loops from `level` on."""
    cdef const StridedAxis *other = &copy.axes[copy.other]
    cdef const StridedAxis *inner = &copy.axes[copy.inner]
    cdef StridedAxis *axis
    cdef Py_ssize_t left, part = 1
    cdef Matrix matrix

    if level == copy.n_loops:
        matrix = Matrix(other.part, inner.part, copy.size, other.src_step, inner.src_step, other.dst_step)
        copy_kernels_of[target_number].copy_matrix(&matrix, src, dst)
        return
    axis = &copy.axes[copy.loops[level]]
    left = axis.length if level < copy.outer_loops else axis.part
    while left:
        if level < copy.outer_loops:
            part = axis.part = axis.block if left >= 2 * axis.block else left
        _write_tiles(copy, level + 1, src, dst)
        src += part * axis.src_step
        dst += part * axis.dst_step
        left -= part
