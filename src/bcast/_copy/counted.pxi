# Items repeated by a count for each: what the leaf `repeat_counted` and the leaves for rows make of chunks of counts.
#
# In: counts, data, a range of bytes of the output. Out: these bytes. The counts say where the next item of the data
# begins. If there are outer axes, all counts come again for each outer position; a few counts are copied side by side,
# so that they make whole chunks.
#
# Any range of bytes can be written, on any thread: binary search finds its first chunk. The chunks at both ends of the
# range are cut to it.

cdef enum:
    MOST = 16                   # windows that the leaf writes of each item: 256 bytes are cheaper than a wrong guess
    REACH = 512                 # bytes that a leaf may write behind a run
    NEAR = 4 * REACH            # bytes of short runs that are written at once near the end of a buffer


cdef struct Kept:       # counts of a chunk
    Py_ssize_t begin, end


cdef uint8_t[SHUFFLED][WIDEST] INDICES      # for each size of an item, what fills a vector with it


cdef void _fill_indices() noexcept:
    cdef int size, i
    for size in range(1, SHUFFLED + 1):
        for i in range(WIDEST):
            INDICES[size - 1][i] = <uint8_t> (i % size)


_fill_indices()


cdef int plan_counted(
    CountedPlan *plan, cnp.ndarray data, Counts of_items, int axis, cnp.ndarray out, const uint8_t *begin,
) except -1:
    """Plan the repetition of data, or of what it is converted to, into `out`, which is contiguous."""
    cdef const CountList *counts = &of_items.list
    cdef Py_ssize_t outer = 1, size = cnp.PyArray_ITEMSIZE(out), nbytes = cnp.PyArray_NBYTES(out)
    cdef Py_ssize_t n = cnp.PyArray_SIZE(data), copies, i
    cdef int64_t[CHUNK] room
    cdef int64_t *tiled
    if axis >= 0:
        n = cnp.PyArray_DIM(data, axis)
        for i in range(axis):
            outer *= cnp.PyArray_DIM(data, <int> i)
        for i in range(axis + 1, cnp.PyArray_NDIM(data)):
            size *= cnp.PyArray_DIM(data, <int> i)
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
    plan.data_end = begin + outer * counts.size * size
    plan.leaves = leaves_of[target_number]
    if size <= SHUFFLED:
        plan.short_items.size = size
        memcpy(plan.short_items.index, &INDICES[size - 1][0], WIDEST)
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
    const void *all_plan, Py_ssize_t begin, Py_ssize_t end, const uint8_t *data, uint8_t *out, uint8_t *scratch,
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
            memcpy(out + begin, data + item * size + begin % size, stop - begin)
        else:
            stop *= size
            if scratch == NULL or stop - begin < PAGE:    # its ends are no whole lines
                _write_runs(plan, counts, n, (stop - begin) // size, data + item * size, out + begin, out + end)
            else:
                _stream_runs(plan, counts, n, data + item * size, out + begin, scratch)
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
    const CountedPlan *plan, const int64_t *counts, Py_ssize_t n, Py_ssize_t total, const uint8_t *data, uint8_t *out,
    const uint8_t *out_end,
) noexcept nogil:
    """Write n runs of `total` items together; bytes from there to `out_end` may get anything."""
    cdef Py_ssize_t size = plan.size
    cdef Py_ssize_t likely = 2 * total // n + (total < 3 * n)       # few counts of most distributions are higher
    cdef Py_ssize_t room = out_end - out - total * size, rest = 0, fast
    cdef Counted items
    cdef Rows rows
    if total == n and _are_ones(counts, n):
        memcpy(out, data, n * size)
    elif size <= SHUFFLED:
        items = plan.short_items
        items.windows = 1
        while items.windows < MOST and items.windows * WINDOW < likely * size:
            items.windows *= 2
        fast = _count_fast(
            counts, n, size, max(<Py_ssize_t> (items.windows * WINDOW), <Py_ssize_t> plan.leaves.vector) - room, &rest
        )
        while fast and plan.data_end - data - (fast - 1) * size < WINDOW:
            fast -= 1
            rest += counts[fast] * size
        plan.leaves.repeat_counted(&items, counts, fast, data, out)
        if rest:
            _write_near(plan, &items, counts + fast, n - fast, data + fast * size, out + total * size - rest)
    elif size <= PARTS * plan.leaves.vector and total * size < n * PAGE // 2:
        rows = Rows(n, max(<Py_ssize_t> 1, min(likely, REACH // size)), size)
        rows.count = _count_fast(counts, n, size, rows.times * size - room, &rest)
        plan.leaves.repeat_counted_rows(&rows, counts, data, out)
        if rest:
            _write_rows(
                plan, counts + rows.count, n - rows.count, data + rows.count * size, out + total * size - rest,
            )
    else:
        _write_rows(plan, counts, n, data, out)


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
    const CountedPlan *plan, const Counted *items, const int64_t *counts, Py_ssize_t n, const uint8_t *data,
    uint8_t *out,
) noexcept nogil:
    """`_write_runs` near the end of a buffer: on copies that have room behind them."""
    cdef uint8_t[CHUNK * SHUFFLED + WINDOW] near_data
    cdef uint8_t[NEAR + REACH] near_out
    cdef Py_ssize_t i = 0, first, total, size = items.size
    while i < n:
        first = i
        total = 0
        while i < n and total + counts[i] * size <= NEAR:
            total += counts[i] * size
            i += 1
        if total:
            memcpy(near_data, data + first * size, (i - first) * size)
            plan.leaves.repeat_counted(items, counts + first, i - first, near_data, near_out)
            memcpy(out, near_out, total)
            out += total
        if i < n:       # a long run
            memcpy(out, data + i * size, size)
            tile_block(&plan.leaves, out, size, counts[i] * size)
            out += counts[i] * size
            i += 1


cdef void _write_rows(
    const CountedPlan *plan, const int64_t *counts, Py_ssize_t n, const uint8_t *data, uint8_t *out,
) noexcept nogil:
    """Write n runs of items that are longer than a window, and no byte behind them."""
    cdef Py_ssize_t size = plan.size
    cdef Py_ssize_t longest = 0         # bytes; a shorter run is written from registers
    cdef Py_ssize_t i = 0, j, times
    cdef Rows rows
    if size <= PARTS * plan.leaves.vector:
        longest = PAGE // 2 if size % plan.leaves.vector else L1
    while i < n:
        times = counts[i]
        j = i + 1
        while j < n and counts[j] == times:
            j += 1
        if times == 1:
            memcpy(out, data, (j - i) * size)
        elif times and times * size < longest:
            rows = Rows(j - i, times, size)
            plan.leaves.repeat_rows(&rows, data, out)
        elif times:
            _write_long(plan, j - i, times, data, out)
        data += (j - i) * size
        out += (j - i) * times * size
        i = j


cdef void _write_long(
    const CountedPlan *plan, Py_ssize_t n, Py_ssize_t times, const uint8_t *data, uint8_t *out,
) noexcept nogil:
    """Write each of n items so many times, if the item or its run is long."""
    cdef Py_ssize_t _i, size = plan.size
    for _i in range(n):
        if size >= PAGE:
            write_pieces(&plan.leaves, size, times, data, out)
        else:
            memcpy(out, data, size)
            tile_block(&plan.leaves, out, size, times * size)
        data += size
        out += times * size


cdef void _stream_runs(
    const CountedPlan *plan, const int64_t *counts, Py_ssize_t n, const uint8_t *data, uint8_t *out, uint8_t *scratch,
) noexcept nogil:
    """`_write_runs` past the caches: as many runs as fit the scratch are assembled there; and parts of longer ones."""
    cdef Py_ssize_t size = plan.size
    cdef Py_ssize_t most = (L1 - REACH) // size
    cdef Py_ssize_t i = 0, first, total
    cdef int64_t times, part
    while i < n:
        first = i
        total = 0
        while i < n and total + counts[i] <= most:
            total += counts[i]
            i += 1
        if total:
            _write_runs(plan, counts + first, i - first, total, data + first * size, scratch, scratch + SCRATCH)
            bcast_stream(out, scratch, total * size)
            out += total * size
        if i < n and counts[i] > most:
            times = counts[i]
            if most == 0:
                _stream_long(size, times, data + i * size, out)
                out += times * size
                times = 0
            else:
                part = most
                _write_runs(plan, &part, 1, part, data + i * size, scratch, scratch + SCRATCH)
            while times:
                part = min(times, most)
                bcast_stream(out, scratch, part * size)
                out += part * size
                times -= part
            i += 1


cdef void _stream_long(Py_ssize_t size, Py_ssize_t times, const uint8_t *data, uint8_t *out) noexcept nogil:
    """Stream one item so many times, a piece of it to all its places at once."""
    cdef Py_ssize_t begin = 0, part, i
    while begin < size:
        part = min(<Py_ssize_t> L1, size - begin)
        for i in range(times):
            bcast_stream(out + i * size + begin, data + begin, part)
        begin += part
