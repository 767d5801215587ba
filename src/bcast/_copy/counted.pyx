# cython: cdivision=True
"""Items repeated by a count for each, that is, run-length decode.

In: counts, data, a range of bytes of the output. Out: these bytes. The counts say where the next item of the data
begins. If there are outer axes, all counts come again for each outer position.

Any range of bytes can be written, on any thread: binary search finds its first chunk. The chunks at both ends of the
range are cut to it.
"""

cimport numpy as cnp
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy

from bcast._copy.plan cimport COPY_ITEM_VECTORS, COPY_WINDOW_BYTES, Rows, copy_kernels_of
from bcast._copy.run cimport repeat_items
from bcast._rules.counts cimport CHUNK, CountList, Counts, find_chunk, read_chunk, tile_counts
from bcast._runtime.core cimport PAGE, target_number
from bcast._runtime.tuning cimport COUNTED_REACH_BYTES

cnp.import_array()

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
    """Write the bytes from `begin` to `end` of the output; never past the caches, which takes as long or longer."""
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
    """Find the items that are at places `first` to `stop` of the output, as far as one chunk has them."""
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
    if first > chunk_begin or stop < chunk_end or found.total == 1:     # of one, the item is asked for
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
    """Write items longer than a window from registers, each at least as often as is likely."""
    cdef Py_ssize_t size = plan.size, nbytes = runs.total * size, rest
    cdef Rows rows = Rows(runs.n, max(<Py_ssize_t> 1, min(likely, COUNTED_REACH_BYTES // size)), size)

    rows.count = _count_with_room(runs, size, rows.times * size - (dst_end - dst - nbytes), &rest)
    plan.kernels.repeat_rows(&rows, runs.counts, src, dst)
    _write_exactly(plan, runs.counts + rows.count, runs.n - rows.count, src + rows.count * size, dst + nbytes - rest)


cdef inline Py_ssize_t _count_with_room(
    const Stretch *runs, Py_ssize_t size, Py_ssize_t missing, Py_ssize_t *rest,
) noexcept nogil:
    """How many runs may be written beyond their end, where the last `missing` bytes of all may not.

    Find how many bytes the others have, which are the last.
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
    """Write n runs, and no byte beyond them; items with equal counts together."""
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
