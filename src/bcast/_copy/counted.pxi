# Items repeated by a count for each, that is, run-length decode.
#
# In: counts, data, a range of bytes of the output. Out: these bytes. The counts say where the next item of the data
# begins. If there are outer axes, all counts come again for each outer position; a few counts are copied side by side,
# so that they make whole chunks.
#
# Any range of bytes can be written, on any thread: binary search finds its first chunk. The chunks at both ends of the
# range are cut to it.

cdef enum:
    COUNTED_WINDOWS = 16            # that the kernel writes of each item: 256 bytes are cheaper than a wrong guess
    COUNTED_REACH_BYTES = 512       # that a kernel may write behind a run
    COUNTED_NEAR_BYTES = 2048       # of short runs that are written at once near the end of a buffer


cdef struct Kept:       # counts of a chunk
    Py_ssize_t begin, end


cdef int plan_counted(
    CountedPlan *plan, cnp.ndarray src, Counts of_items, int axis, cnp.ndarray dst, const uint8_t *begin,
) except -1:
    """Plan the repetition of data, or of what it is converted to, into `out`, which is contiguous."""
    cdef const CountList *counts = &of_items.list
    cdef Py_ssize_t outer = 1, size = cnp.PyArray_ITEMSIZE(dst), nbytes = cnp.PyArray_NBYTES(dst)
    cdef Py_ssize_t n = cnp.PyArray_SIZE(src), copies, i
    cdef int64_t[CHUNK] room
    cdef int64_t *tiled
    if axis >= 0:
        n = cnp.PyArray_DIM(src, axis)
        for i in range(axis):
            outer *= cnp.PyArray_DIM(src, <int> i)
        for i in range(axis + 1, cnp.PyArray_NDIM(src)):
            size *= cnp.PyArray_DIM(src, <int> i)
    # Arguments that run code of the user's can resize arrays; and `starts` may be wrong for more items than memory has.
    if (
        n != counts.size or outer * size == 0 or not of_items.is_exact()
        or nbytes // (outer * size) != counts.total or nbytes % (outer * size)
    ):
        raise ValueError("`data` and `out` expected arrays that keep their sizes during the call, got resized ones")
    copies = min(outer, <Py_ssize_t> CHUNK // counts.size)
    plan.counts = counts
    plan.tiled = NULL
    plan.items = counts.size
    plan.units = counts.total
    plan.chunks = (counts.size + CHUNK - 1) // CHUNK
    plan.starts = counts.starts
    plan.size = size
    plan.src_end = begin + outer * counts.size * size
    plan.kernels = kernels_of[target_number]
    if size <= COPY_SHUFFLED_BYTES:
        plan.short_items.size = size
        memcpy(plan.short_items.index, &INDICES[size - 1][0], COPY_VECTOR_BYTES)
    if copies > 1:
        plan.items *= copies
        plan.units *= copies
        tiled = <int64_t *> malloc(plan.items * sizeof(int64_t))
        if tiled == NULL:
            raise MemoryError
        plan.tiled = tiled
        for i in range(copies):
            memcpy(tiled + i * counts.size, read_chunk(counts, 0, room), counts.size * sizeof(int64_t))
    if plan.chunks == 1:
        plan.ends[0] = 0
        plan.ends[1] = plan.units
        plan.starts = plan.ends
    return 0


cdef void drop_counted(CountedPlan *plan) noexcept:
    """Free what a plan holds."""
    free(<void *> plan.tiled)


cdef Py_ssize_t units_before(const CountedPlan *plan, Py_ssize_t item) noexcept nogil:
    """How many items the output has before the repetitions of an item of the data."""
    cdef int64_t[CHUNK] room
    cdef Py_ssize_t units = item // plan.items * plan.units, c, i
    cdef const int64_t *counts
    item %= plan.items
    c = item // CHUNK
    units += plan.starts[c]
    if item % CHUNK:
        counts = plan.tiled if plan.tiled != NULL else read_chunk(plan.counts, c, room)
        for i in range(item % CHUNK):
            units += counts[i]
    return units


cdef void write_counted(
    const void *all_plan, Py_ssize_t begin, Py_ssize_t end, const uint8_t *src, uint8_t *dst, uint8_t *scratch,
) noexcept nogil:
    """Write the bytes from `begin` to `end` of the output."""
    cdef const CountedPlan *plan = <const CountedPlan *> all_plan
    cdef int64_t[CHUNK] room
    cdef const int64_t *counts
    cdef Py_ssize_t c = 0, n, item, unit, last, stop, skip, size = plan.size
    cdef bint partly
    cdef Kept kept
    while begin < end:
        unit = begin // size
        item = unit // plan.units * plan.items
        last = unit // plan.units * plan.units      # where all counts begin once more; then, where a chunk ends
        if plan.chunks > 1:
            c = find_chunk(plan.counts, unit - last, 0)
            item += c * CHUNK
        n = min(<Py_ssize_t> CHUNK, plan.items - c * CHUNK)
        skip = unit - last - plan.starts[c]
        last += plan.starts[c + 1]
        partly = begin % size or end // size <= unit
        stop = unit + 1 if partly else min(last, end // size)
        counts = plan.tiled if plan.tiled != NULL else read_chunk(plan.counts, c, room)
        if partly or skip or stop < last:
            if counts != room:
                memcpy(room, counts, n * sizeof(int64_t))
            kept = _cut_counts(room, n, skip, last - stop)
            n = kept.end - kept.begin
            counts = room + kept.begin
            item += kept.begin
        if partly:
            stop = min(end, stop * size)
            memcpy(dst + begin, src + item * size + begin % size, stop - begin)
        else:
            stop *= size
            if scratch == NULL or stop - begin < PAGE:    # its ends are no whole lines
                _write_runs(plan, counts, n, (stop - begin) // size, src + item * size, dst + begin, dst + end)
            else:
                _stream_runs(plan, counts, n, src + item * size, dst + begin, scratch)
        begin = stop


cdef Kept _cut_counts(int64_t *counts, Py_ssize_t n, Py_ssize_t skip, Py_ssize_t excess) noexcept nogil:
    """Take `skip` from the first counts and `excess` from the last ones; return which of them remain."""
    cdef Py_ssize_t i = 0
    while n and counts[n - 1] <= excess:
        n -= 1
        excess -= counts[n]
    if n:
        counts[n - 1] -= excess
    while i < n and counts[i] <= skip:
        skip -= counts[i]
        i += 1
    if i < n:
        counts[i] -= skip
    return Kept(i, n)


cdef void _write_runs(
    const CountedPlan *plan, const int64_t *counts, Py_ssize_t n, Py_ssize_t total, const uint8_t *src, uint8_t *dst,
    const uint8_t *dst_end,
) noexcept nogil:
    """Write n runs of `total` items together; bytes from there to `dst_end` may get anything."""
    cdef Py_ssize_t size = plan.size
    cdef Py_ssize_t likely = 2 * total // n + (total < 3 * n)       # few counts of most distributions are higher
    cdef Py_ssize_t room = dst_end - dst - total * size, rest = 0, fast, reach
    cdef Counted items
    cdef Rows rows
    if total == n and _are_ones(counts, n):
        memcpy(dst, src, n * size)
    elif size <= COPY_SHUFFLED_BYTES:
        items = plan.short_items
        items.windows = 1
        while items.windows < COUNTED_WINDOWS and items.windows * COPY_WINDOW_BYTES < likely * size:
            items.windows *= 2
        reach = max(<Py_ssize_t> (items.windows * COPY_WINDOW_BYTES), <Py_ssize_t> plan.kernels.vector)
        fast = _count_fast(counts, n, size, reach - room, &rest)
        while fast and plan.src_end - src - (fast - 1) * size < COPY_WINDOW_BYTES:
            fast -= 1
            rest += counts[fast] * size
        plan.kernels.repeat_counted(&items, counts, fast, src, dst)
        if rest:
            _write_near(plan, &items, counts + fast, n - fast, src + fast * size, dst + total * size - rest)
    elif size <= COPY_ITEM_VECTORS * plan.kernels.vector and total * size < n * PAGE // 2:
        rows = Rows(n, max(<Py_ssize_t> 1, min(likely, COUNTED_REACH_BYTES // size)), size)
        rows.count = _count_fast(counts, n, size, rows.times * size - room, &rest)
        plan.kernels.repeat_counted_rows(&rows, counts, src, dst)
        if rest:
            _write_rows(
                plan, counts + rows.count, n - rows.count, src + rows.count * size, dst + total * size - rest,
            )
    else:
        _write_rows(plan, counts, n, src, dst)


cdef Py_ssize_t _count_fast(
    const int64_t *counts, Py_ssize_t n, Py_ssize_t size, Py_ssize_t least, Py_ssize_t *rest,
) noexcept nogil:
    """How many of n runs have at least so many bytes of others behind them; `rest` is what these others have."""
    while n and rest[0] < least:
        n -= 1
        rest[0] += counts[n] * size
    return n


cdef bint _are_ones(const int64_t *counts, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        if counts[i] != 1:
            return False
    return True


cdef void _write_near(
    const CountedPlan *plan, const Counted *items, const int64_t *counts, Py_ssize_t n, const uint8_t *src,
    uint8_t *dst,
) noexcept nogil:
    """`_write_runs` near the end of a buffer: on copies that have room behind them."""
    cdef uint8_t[CHUNK * COPY_SHUFFLED_BYTES + COPY_WINDOW_BYTES] near_src
    cdef uint8_t[COUNTED_NEAR_BYTES + COUNTED_REACH_BYTES] near_dst
    cdef Py_ssize_t i = 0, first, total, size = items.size
    while i < n:
        first = i
        total = 0
        while i < n and total + counts[i] * size <= COUNTED_NEAR_BYTES:
            total += counts[i] * size
            i += 1
        if total:
            memcpy(near_src, src + first * size, (i - first) * size)
            plan.kernels.repeat_counted(items, counts + first, i - first, near_src, near_dst)
            memcpy(dst, near_dst, total)
            dst += total
        if i < n:       # a long run
            repeat_item(&plan.kernels, size, counts[i], src + i * size, dst)
            dst += counts[i] * size
            i += 1


cdef void _write_rows(
    const CountedPlan *plan, const int64_t *counts, Py_ssize_t n, const uint8_t *src, uint8_t *dst,
) noexcept nogil:
    """Write n runs of items that are longer than a window, and no byte behind them."""
    cdef Py_ssize_t size = plan.size
    cdef Py_ssize_t longest = 0         # bytes; a shorter run is written from registers
    cdef Py_ssize_t i = 0, j, k, times
    cdef Rows rows
    if size <= COPY_ITEM_VECTORS * plan.kernels.vector:
        longest = PAGE // 2 if size % plan.kernels.vector else L1
    while i < n:
        times = counts[i]
        j = i + 1
        while j < n and counts[j] == times:
            j += 1
        if times == 1:
            memcpy(dst, src, (j - i) * size)
        elif times and times * size < longest:
            rows = Rows(j - i, times, size)
            plan.kernels.repeat_rows(&rows, src, dst)
        elif times:
            for k in range(j - i):
                repeat_item(&plan.kernels, size, times, src + k * size, dst + k * times * size)
        src += (j - i) * size
        dst += (j - i) * times * size
        i = j


cdef void _stream_runs(
    const CountedPlan *plan, const int64_t *counts, Py_ssize_t n, const uint8_t *src, uint8_t *dst, uint8_t *scratch,
) noexcept nogil:
    """`_write_runs` past the caches: as many runs as fit the scratch are assembled there; and parts of longer ones."""
    cdef Py_ssize_t size = plan.size
    cdef Py_ssize_t most = (L1 - COUNTED_REACH_BYTES) // size
    cdef Py_ssize_t i = 0, first, total
    cdef int64_t times, part
    cdef const uint8_t *end = scratch + COPY_SCRATCH_BYTES
    while i < n:
        first = i
        total = 0
        while i < n and total + counts[i] <= most:
            total += counts[i]
            i += 1
        if total:
            _write_runs(plan, counts + first, i - first, total, src + first * size, scratch, end)
            bcast_stream(dst, scratch, total * size)
            dst += total * size
        if i < n and counts[i] > most:
            times = counts[i]
            if most == 0:
                _stream_long(size, times, src + i * size, dst)
                dst += times * size
                times = 0
            else:
                part = most
                _write_runs(plan, &part, 1, part, src + i * size, scratch, end)
            while times:
                part = min(times, most)
                bcast_stream(dst, scratch, part * size)
                dst += part * size
                times -= part
            i += 1


cdef void _stream_long(Py_ssize_t size, Py_ssize_t times, const uint8_t *src, uint8_t *dst) noexcept nogil:
    """Stream one item so many times, a piece of it to all its places at once."""
    cdef Py_ssize_t begin = 0, part, i
    while begin < size:
        part = min(<Py_ssize_t> L1, size - begin)
        for i in range(times):
            bcast_stream(dst + i * size + begin, src + begin, part)
        begin += part
