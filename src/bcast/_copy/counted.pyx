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
    # Arguments that run code of the user's can resize arrays; and `starts` may be wrong for more items than memory has.
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


cdef void write_counted(
    const void *all_plan, Py_ssize_t begin, Py_ssize_t end, const uint8_t *src, uint8_t *dst, uint8_t *_scratch,
) noexcept nogil:
    """Write the bytes from `begin` to `end` of the output; never past the caches, which takes as long or longer."""
    cdef const CountedPlan *plan = <const CountedPlan *> all_plan
    cdef int64_t[CHUNK] room
    cdef const CountList *list = &plan.counts.list
    cdef const int64_t *counts
    cdef Py_ssize_t c, n, first, item, unit, last, stop, skip, excess, size = plan.size
    cdef bint partly
    while begin < end:
        unit = begin // size
        last = unit // list.total * list.total      # where all counts begin once more; then, where a chunk ends
        c = find_chunk(list, unit - last, 0)
        item = unit // list.total * list.size + c * CHUNK
        n = min(<Py_ssize_t> CHUNK, list.size - c * CHUNK)
        skip = unit - last - list.starts[c]
        last += list.starts[c + 1]
        partly = begin % size or end // size <= unit        # only a part of one item is written
        stop = unit + 1 if partly else min(last, end // size)
        counts = read_chunk(list, c, room)
        if partly or skip or stop < last:       # cut the first and the last counts
            if counts != room:
                memcpy(room, counts, n * sizeof(int64_t))
            excess = last - stop
            while n and room[n - 1] <= excess:
                n -= 1
                excess -= room[n]
            if n:
                room[n - 1] -= excess
            first = 0
            while first < n and room[first] <= skip:
                skip -= room[first]
                first += 1
            if first < n:
                room[first] -= skip
            counts = room + first
            n -= first
            item += first
        if partly:
            stop = min(end, stop * size)
            memcpy(dst + begin, src + item * size + begin % size, stop - begin)
        else:
            stop *= size
            _write_runs(plan, counts, n, (stop - begin) // size, src + item * size, dst + begin, dst + end)
        begin = stop


cdef void _write_runs(
    const CountedPlan *plan, const int64_t *counts, Py_ssize_t n, Py_ssize_t total, const uint8_t *src, uint8_t *dst,
    const uint8_t *dst_end,
) noexcept nogil:
    """Write n runs of `total` items together; bytes from there to `dst_end` may get anything."""
    cdef Py_ssize_t size = plan.size, left = total * size, room = dst_end - dst - left, rest = 0, reach, likely, i
    cdef int64_t any_bits = 0, common_bits = -1
    cdef bint short = size <= COPY_WINDOW_BYTES
    cdef uint8_t[CHUNK * COPY_WINDOW_BYTES + COPY_WINDOW_BYTES] near_src
    cdef uint8_t[PAGE] near_dst
    cdef Rows rows = Rows(n, 1, size)
    for i in range(n):
        any_bits |= counts[i]
        common_bits &= counts[i]
    if any_bits == common_bits and (any_bits <= 1 or not short):
        if any_bits:
            repeat_items(&plan.kernels, size, n, any_bits, src, dst)
        return

    # Few counts of most distributions are higher than twice their mean, and none is higher than all bits together.
    likely = min(2 * total // n + (total < 3 * n), <Py_ssize_t> any_bits)
    if short:
        while rows.times * COPY_WINDOW_BYTES < min(likely * size, <Py_ssize_t> COUNTED_REACH_BYTES):
            rows.times *= 2
        reach = max(rows.times * COPY_WINDOW_BYTES, <Py_ssize_t> plan.kernels.vector)
        if plan.src_end - src < (n - 1) * size + COPY_WINDOW_BYTES:     # the last items have no windows; a copy has
            memcpy(near_src, src, n * size)
            src = near_src
    elif size <= COPY_ITEM_VECTORS * plan.kernels.vector and left < n * PAGE // 2:
        rows.times = max(<Py_ssize_t> 1, min(likely, COUNTED_REACH_BYTES // size))
        reach = rows.times * size
    else:
        _write_exactly(plan, counts, n, src, dst)
        return
    while rows.count and room + rest < reach:       # the last runs have no room behind them
        rows.count -= 1
        rest += counts[rows.count] * size
    if short:
        plan.kernels.repeat_counted(&rows, counts, src, dst)
    else:
        plan.kernels.repeat_rows(&rows, counts, src, dst)
    counts += rows.count
    src += rows.count * size
    dst += left - rest
    rows.count = n - rows.count
    if short and 0 < rest <= PAGE - reach:
        plan.kernels.repeat_counted(&rows, counts, src, near_dst)
        memcpy(dst, near_dst, rest)
    else:
        _write_exactly(plan, counts, rows.count, src, dst)


cdef void _write_exactly(
    const CountedPlan *plan, const int64_t *counts, Py_ssize_t n, const uint8_t *src, uint8_t *dst,
) noexcept nogil:
    """Write n runs, and no byte behind them; items of equal counts together."""
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
