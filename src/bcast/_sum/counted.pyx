# cython: cdivision=True
"""Sums over runs of rows, as many for each item as its count says: the adjoint of `_copy/counted.pyx`.

If there are outer axes, all counts come again for each outer position; a few are copied side by side, so that they make
whole chunks.

Items are summed in groups, whose accumulators and packed terms stay in a cache. Runs that lie dense are left to a leaf
of their own; longer rows are added up item by item. An item that is too large for a group is planned as an ordinary
sum, and so is one whose sum came out infinite or NaN.

Any range of rows and items can be summed, on any thread. An item is summed by the thread in whose range it begins, and
each item alike wherever it stands: so the bits of a result do not depend on the number of threads.
"""

from libc.math cimport isfinite
from libc.stdint cimport int64_t
from libc.string cimport memset

from bcast._rules.counts cimport CHUNK, find_chunk, read_chunk
from bcast._sum.plan cimport (
    BLOCK, FEWEST, ROW, SET, WRITE, Axis, CountedRuns, Reduction, Results, Sink, Terms, dtypes, pack, plan_sum,
)
from bcast._sum.walk cimport add_rows, sum_unit


cdef struct Group:
    const int64_t *counts
    Py_ssize_t items
    Py_ssize_t rows         # of all of them
    const char *x
    char *out


cdef void plan_counted_sum(
    CountedSum *plan, const Terms *terms, const CountList *counts, const Axis *axis, int n,
) noexcept:
    """Plan the sum over the one axis of `n` that is not kept; they are in the order of memory, outermost first."""
    cdef Py_ssize_t width = 1, whole
    cdef int64_t[CHUNK] room
    cdef const int64_t *few
    cdef int i, j
    plan.counts = counts
    plan.terms = terms
    plan.outers = 0
    plan.positions = plan.times = 1
    plan.copies = 0
    plan.inner = Axis(1, terms.size, 0, True)
    for i in range(n):
        if not axis[i].kept:
            plan.rows = axis[i]
    for i in range(n):
        if not axis[i].kept:
            continue
        if i == n - 1:
            plan.inner = axis[i]
        elif (
            2 * counts.size <= CHUNK and plan.copies == 0
            and axis[i].step == counts.total * plan.rows.step
            and axis[i].out_step == counts.size * plan.rows.out_step
        ):
            plan.times = axis[i].length
            plan.copies = min(plan.times, <Py_ssize_t> CHUNK // counts.size)
        else:
            plan.outer[plan.outers] = axis[i]
            plan.outers += 1
            plan.positions *= axis[i].length
    if plan.copies:
        few = read_chunk(counts, 0, room)
        for i in range(plan.copies):
            for j in range(counts.size):
                plan.tiled[i * counts.size + j] = few[j]
    width = plan.inner.length
    whole = counts.total * plan.times * width
    plan.length = plan.times * (counts.total + counts.size)
    plan.side_by_side = terms.writes and plan.rows.out_step == width * terms.size and (
        width == 1 or plan.inner.out_step == terms.size
    )
    plan.sums_most = min(<Py_ssize_t> BLOCK, min(<Py_ssize_t> CHUNK, counts.size * plan.times) * width)
    plan.packed_most = min(<Py_ssize_t> (FEWEST * ROW), whole) if terms.packed else 0
    # The last is what `plan_sum` may ask for.
    plan.scratch = 2 * sizeof(double) * plan.sums_most + plan.packed_most * sizeof(double)
    plan.scratch += 2 * sizeof(double) * min(<Py_ssize_t> BLOCK, whole) + (FEWEST * ROW * 8 if terms.packed else 0)


cdef void sum_counted_share(
    const CountedSum *plan, Py_ssize_t begin, Py_ssize_t end, const char *x, char *out, char *scratch,
) noexcept nogil:
    """Sum the items that begin in a range of rows and items, counted through all positions of the outer axes."""
    cdef Py_ssize_t position = begin // plan.length, rest, at, first
    cdef const char *x_here
    cdef char *out_here
    cdef int i
    while position * plan.length < end:
        rest = position
        x_here = x
        out_here = out
        for i in range(plan.outers - 1, -1, -1):
            at = rest % plan.outer[i].length
            rest //= plan.outer[i].length
            x_here += at * plan.outer[i].step
            out_here += at * plan.outer[i].out_step
        first = position * plan.length
        _sum_range(plan, max(begin - first, <Py_ssize_t> 0), min(end - first, plan.length), x_here, out_here, scratch)
        position += 1


cdef void _sum_range(
    const CountedSum *plan, Py_ssize_t begin, Py_ssize_t end, const char *x, char *out, char *scratch,
) noexcept nogil:
    """The same for one position."""
    cdef const CountList *list = plan.counts
    cdef int64_t[CHUNK] room
    cdef const int64_t *counts = &plan.tiled[0]
    cdef Py_ssize_t c, first, row, rows, n, i
    cdef Group group
    if plan.copies:
        c = begin // (plan.copies * (list.size + list.total))
    else:
        c = find_chunk(list, begin, 1)
    while True:
        if plan.copies:
            first = c * plan.copies * list.size
            row = c * plan.copies * list.total
            n = plan.copies * list.size
            rows = plan.copies * list.total
        else:
            first = c * CHUNK
            if first >= list.size:
                return
            row = list.starts[c] if list.starts != NULL else 0
            rows = list.starts[c + 1] - row if list.starts != NULL else list.total
            n = min(<Py_ssize_t> CHUNK, list.size - first)
        if first + row >= end:
            return
        if not plan.copies:
            counts = read_chunk(list, c, room)
        i = 0
        while first + i + row < begin:
            row += counts[i]
            i += 1
        while i < n and first + i + row < end:
            group = Group(counts + i, n, rows, x + row * plan.rows.step, out + (first + i) * plan.rows.out_step)
            if i or first + row + n + rows > end or not _fits(plan, n, rows):
                group.items = group.rows = 0
            else:
                i = n
            while i < n and first + i + row < end and _fits(plan, group.items + 1, group.rows + counts[i]):
                group.items += 1
                group.rows += counts[i]
                row += counts[i]
                i += 1
            if group.items:
                _sum_group(plan, &group, scratch)
            else:
                _sum_alone(plan, counts[i], group.x, group.out, scratch)
                row += counts[i]
                i += 1
        c += 1


cdef inline bint _fits(const CountedSum *plan, Py_ssize_t items, Py_ssize_t rows) noexcept nogil:
    """Whether a group may have so many items and rows."""
    return items * plan.inner.length <= plan.sums_most and (
        not plan.terms.packed or rows * plan.inner.length <= plan.packed_most
    )


cdef void _sum_group(const CountedSum *plan, const Group *group, char *scratch) noexcept nogil:
    """Sum the items of a group."""
    cdef const Terms *terms = plan.terms
    cdef Py_ssize_t width = plan.inner.length, step = plan.rows.step, size = plan.sums_most * terms.sum_size
    cdef Sink block = Sink(SET, scratch, scratch + size), to = Sink(WRITE, group.out, group.out)
    cdef const char *x = group.x
    cdef char *packed = scratch + 2 * size
    cdef char *rest = packed + plan.packed_most * sizeof(double)
    cdef CountedRuns runs
    cdef Group item = group[0]
    cdef Py_ssize_t _i
    if terms.packed:
        _pack(plan, group, packed)
        x = packed
        step = width * terms.size
    if step == width * terms.size and (width <= 4 or width < terms.leaves.lanes):
        runs = CountedRuns(x, x + group.rows * step, group.counts, group.items, width)
        if not plan.side_by_side or terms.leaves.sum_counted_runs(&runs, &to):
            terms.leaves.sum_counted_runs(&runs, &block)
            _store(plan, group, block, rest)
        return
    item.items = 1
    for _i in range(group.items):
        item.rows = item.counts[0]
        to.sum = to.error = item.out
        if item.rows == 0:
            _write_zeros(plan, item.out)
        elif (
            not plan.side_by_side or item.rows > FEWEST
            or add_rows(terms, x, item.rows, step, width, to)
        ):
            add_rows(terms, x, item.rows, step, width, block)
            _store(plan, &item, block, rest)
        x += item.rows * step
        item.x += item.rows * plan.rows.step
        item.out += plan.rows.out_step
        item.counts += 1


cdef void _write_zeros(const CountedSum *plan, char *out) noexcept nogil:
    """Write the sums of an item without rows."""
    cdef int size = dtypes[plan.terms.result].size
    cdef Py_ssize_t i
    if plan.inner.out_step == size:
        memset(out, 0, plan.inner.length * size)
    else:
        for i in range(plan.inner.length):
            memset(out + i * plan.inner.out_step, 0, size)


cdef void _pack(const CountedSum *plan, const Group *group, char *packed) noexcept nogil:
    """Pack the terms of a group."""
    cdef const Terms *terms = plan.terms
    cdef Py_ssize_t width = plan.inner.length, i
    if width == 1:
        pack(&terms.packing, packed, group.x, plan.rows.step, group.rows)
    elif plan.rows.step == width * plan.inner.step:
        pack(&terms.packing, packed, group.x, plan.inner.step, group.rows * width)
    else:
        for i in range(group.rows):
            pack(&terms.packing, packed + i * width * terms.size, group.x + i * plan.rows.step, plan.inner.step, width)


cdef void _store(const CountedSum *plan, const Group *group, Sink block, char *scratch) noexcept nogil:
    """Write the sums of a group; what is not finite is summed again, each item for itself."""
    cdef const Terms *terms = plan.terms
    cdef Py_ssize_t width = plan.inner.length, n = group.items * width, i, j
    cdef Results results = Results(terms.result, terms.sum_size, group.out, plan.inner.out_step)
    cdef bint special = terms.compensated and terms.target.add_errors(
        <double *> block.sum, <const double *> block.error, n
    )
    cdef const char *x = group.x
    if width == 1:
        results.step = plan.rows.out_step
    if width == 1 or group.items == 1 or plan.rows.out_step == width * plan.inner.out_step:
        terms.target.store(&results, block.sum, n)
    else:
        for i in range(group.items):
            terms.target.store(&results, block.sum + i * width * terms.sum_size, width)
            results.to += plan.rows.out_step
    for i in range(group.items if special else 0):
        for j in range(i * width, (i + 1) * width):
            if not isfinite((<const double *> block.sum)[j]):
                _sum_alone(plan, group.counts[i], x, group.out + i * plan.rows.out_step, scratch)
                break
        x += group.counts[i] * plan.rows.step


cdef void _sum_alone(
    const CountedSum *plan, int64_t count, const char *x, char *out, char *scratch,
) noexcept nogil:
    """Sum one item as an ordinary sum over its rows, without segments."""
    cdef Reduction reduction
    cdef Axis[2] axis
    cdef Py_ssize_t unit
    cdef int n = 1
    if count == 0:
        _write_zeros(plan, out)
        return
    axis[0] = Axis(count, plan.rows.step, 0, False)
    if plan.rows.step < 0:
        x += (count - 1) * plan.rows.step
        axis[0].step = -plan.rows.step
    if plan.inner.length > 1:
        n = 1 if count == 1 else 2
        axis[n - 1] = plan.inner
    plan_sum(&reduction, plan.terms, axis, n, 1)
    for unit in range(reduction.tiles):
        sum_unit(&reduction, unit, x, out, scratch, NULL)
