# Sums over runs of rows, as many for each item as its count says: the adjoint of run-length decoding.
#
# In: counts, axes of which one is summed, a range of rows and items. Out: the results of the items that begin in it.
#
# If there are outer axes, all counts come again for each outer position. Items are summed in groups, whose accumulators
# and packed terms stay in a cache. Dense runs have a kernel of their own; longer rows are added up item by item. An
# item that is too large for a group is planned as an ordinary sum, and so is one whose sum came out infinite or NaN.
# Each item is summed by the thread in whose range it begins, alike wherever it stands: the bits of a result do not
# depend on the number of threads.


cdef struct Group:
    const int64_t *counts
    Py_ssize_t items
    Py_ssize_t rows         # of all of them
    const char *src
    char *dst


cdef bint takes_turns(const Terms *terms, const Axis *axis) noexcept nogil:
    """Whether three axes are few rows, all side by side: of three items, or as many as only counted runs may have."""
    return (
        axis[0].kept and not axis[1].kept and axis[2].kept and axis[1].length <= 2 * SUM_LONG_ITEMS
        and (axis[2].length == 3 or 4 < axis[2].length < terms.kernels.lanes) and terms.times < 0 and terms.factor == 1
        and axis[0].src_step == axis[1].length * axis[1].src_step == axis[1].length * axis[2].length * axis[2].src_step
        and axis[0].dst_step == axis[2].length * axis[2].dst_step
    )


cdef void plan_counted_sum(CountedSum *plan, const Axis *axis, int n) noexcept nogil:
    """Plan the sum over the one axis of `n` that is not kept; they are in the order of memory, outermost first."""
    cdef Py_ssize_t size = plan.counts.list.size, total = plan.counts.list.total, times = 1, width, whole
    cdef int i
    plan.loops.rank = 0
    plan.positions = 1
    for i in range(n):
        if not axis[i].kept:
            plan.rows = plan.inner = axis[i]
    plan.inner.length = 1
    for i in range(n):
        if not axis[i].kept:
            continue
        if i == n - 1:
            plan.inner = axis[i]
        elif (
            2 * size <= CHUNK and times == 1 and axis[i].src_step == total * plan.rows.src_step
            and axis[i].dst_step == size * plan.rows.dst_step
        ):
            times = axis[i].length
        else:
            plan.loops.axes[plan.loops.rank] = axis[i]
            plan.loops.rank += 1
            plan.positions *= axis[i].length
    tile_counts(&plan.counts, times)
    width = plan.inner.length
    whole = total * times * width
    plan.length = times * (total + size)
    plan.side_by_side = plan.terms.writes and (
        plan.rows.dst_step == width * plan.inner.dst_step == width * plan.terms.size
    )
    plan.group_sums = min(<Py_ssize_t> SUM_BLOCK_ITEMS, min(<Py_ssize_t> CHUNK, size * times) * width)
    plan.packed_terms = min(<Py_ssize_t> SUM_PACKED_TERMS, whole) if plan.terms.packed else 0
    # Sums, errors and packed terms: of a group, then of what is planned as an ordinary sum.
    plan.scratch = sizeof(double) * (2 * plan.group_sums + plan.packed_terms)
    plan.scratch += sizeof(double) * 2 * min(<Py_ssize_t> SUM_BLOCK_ITEMS, whole)
    plan.scratch += sizeof(double) * SUM_PACKED_TERMS if plan.terms.packed else 0


cdef void sum_counted_share(const CountedSum *plan, Py_ssize_t begin, Py_ssize_t end, char *scratch) noexcept nogil:
    """Sum the items that begin in a range of rows and items, counted through all positions of the outer axes."""
    cdef Py_ssize_t position = begin // plan.length, first
    cdef Place at
    while position * plan.length < end:
        at = plan.first
        _seek(plan.loops.axes, plan.loops.rank, True, position, &at)
        first = position * plan.length
        _sum_range(plan, max(begin - first, <Py_ssize_t> 0), min(end - first, plan.length), at.src, at.dst, scratch)
        position += 1


cdef void _sum_range(
    const CountedSum *plan, Py_ssize_t begin, Py_ssize_t end, const char *src, char *dst, char *scratch,
) noexcept nogil:
    """The same for one position."""
    cdef const CountList *list = &plan.counts.list
    cdef int64_t[CHUNK] room
    cdef const int64_t *counts
    cdef Py_ssize_t unit = list.size + list.total, chunks = (list.size + CHUNK - 1) // CHUNK
    cdef Py_ssize_t k = begin // unit * chunks + find_chunk(list, begin % unit, 1)      # of the chunks of all copies
    cdef Py_ssize_t c, first, row, rows, n, i
    cdef Group group
    while True:
        c = k % chunks
        first = k // chunks * list.size + c * CHUNK
        row = k // chunks * list.total + list.starts[c]
        rows = list.starts[c + 1] - list.starts[c]
        if first + row >= end:
            return
        n = min(<Py_ssize_t> CHUNK, list.size - c * CHUNK)
        counts = read_chunk(list, c, room)
        i = 0
        while first + i + row < begin:
            row += counts[i]
            i += 1
        while i < n and first + i + row < end:
            group = Group(counts + i, n, rows, src + row * plan.rows.src_step, dst + (first + i) * plan.rows.dst_step)
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
                _sum_alone(plan, counts[i], group.src, group.dst, scratch)
                row += counts[i]
                i += 1
        k += 1


cdef inline bint _fits(const CountedSum *plan, Py_ssize_t items, Py_ssize_t rows) noexcept nogil:
    """Whether a group may have so many items and rows."""
    return items * plan.inner.length <= plan.group_sums and (
        not plan.terms.packed or rows * plan.inner.length <= plan.packed_terms
    )


cdef void _sum_group(const CountedSum *plan, const Group *group, char *scratch) noexcept nogil:
    """Sum the items of a group."""
    cdef const Terms *terms = plan.terms
    cdef Py_ssize_t width = plan.inner.length, step = plan.rows.src_step, size = plan.group_sums * terms.sum_size
    cdef Sink block = Sink(SET, scratch, scratch + size), dst = Sink(WRITE, group.dst, group.dst)
    cdef const char *src = group.src
    cdef char *packed = scratch + 2 * size
    cdef char *rest = packed + plan.packed_terms * sizeof(double)
    cdef CountedRuns runs
    cdef Group item = group[0]
    cdef Py_ssize_t _i
    if terms.packed:
        pack_rows(terms, terms.dtype, packed, src, group.rows, step, width, plan.inner.src_step)
        src = packed
        step = width * terms.size
    if step == width * terms.size and (width <= 4 or width < terms.kernels.lanes):
        runs = CountedRuns(src, src + group.rows * step, group.counts, group.items, width)
        if not plan.side_by_side or terms.kernels.sum_counted_runs(&runs, &dst):
            terms.kernels.sum_counted_runs(&runs, &block)
            _store_group(plan, group, block, rest)
        return
    item.items = 1
    for _i in range(group.items):
        item.rows = item.counts[0]
        dst.sum = dst.error = item.dst
        if item.rows == 0:
            _sum_alone(plan, 0, item.src, item.dst, rest)
        elif (
            not plan.side_by_side or item.rows > SUM_CALL_ROWS
            or add_rows(terms, src, item.rows, step, width, dst)
        ):
            add_rows(terms, src, item.rows, step, width, block)
            _store_group(plan, &item, block, rest)
        src += item.rows * step
        item.src += item.rows * plan.rows.src_step
        item.dst += plan.rows.dst_step
        item.counts += 1


cdef void _store_group(const CountedSum *plan, const Group *group, Sink block, char *scratch) noexcept nogil:
    """Write the sums of a group; what is not finite is summed again, each item for itself."""
    cdef const Terms *terms = plan.terms
    cdef Py_ssize_t width = plan.inner.length, n = group.items * width, i, j
    cdef Results results = Results(
        terms.result, terms.sum_size, group.dst, plan.inner.dst_step, terms.sum_size,
    )
    cdef bint special = terms.compensated and terms.target.add_errors(
        <double *> block.sum, <const double *> block.error, n
    )
    cdef const char *src = group.src
    if terms.divisor != 0:
        terms.target.divide(<double *> block.sum, terms.divisor, terms.root, n)
    if group.items == 1 or plan.rows.dst_step == width * plan.inner.dst_step:
        terms.target.store(&results, block.sum, n)
    else:
        for i in range(group.items):
            terms.target.store(&results, block.sum + i * width * terms.sum_size, width)
            results.dst += plan.rows.dst_step
    for i in range(group.items if special else 0):
        for j in range(i * width, (i + 1) * width):
            if not isfinite((<const double *> block.sum)[j]):
                _sum_alone(plan, group.counts[i], src, group.dst + i * plan.rows.dst_step, scratch)
                break
        src += group.counts[i] * plan.rows.src_step


cdef void _sum_alone(
    const CountedSum *plan, int64_t count, const char *src, char *dst, char *scratch,
) noexcept nogil:
    """Sum one item as an ordinary sum over its rows, in one share; without rows, to zeros."""
    cdef Py_ssize_t size = dtypes[plan.terms.result].size, pieces, i
    cdef SumPlan whole
    cdef Axis[2] axis
    cdef int n = 1
    if count == 0:
        pieces = 1 if plan.inner.dst_step == size else plan.inner.length    # of which each lies side by side
        for i in range(pieces):
            memset(dst + i * plan.inner.dst_step, 0, plan.inner.length // pieces * size)
        return
    axis[0] = Axis(count, plan.rows.src_step, 0, False, 0)
    if plan.rows.src_step < 0:
        src += (count - 1) * plan.rows.src_step
        axis[0].src_step = -plan.rows.src_step
    if plan.inner.length > 1:
        n = 1 if count == 1 else 2
        axis[n - 1] = plan.inner
    whole.first, whole.terms = Place(src, NULL, dst), plan.terms
    plan_sum(&whole, axis, n, 1)
    sum_shares(&whole, 0, whole.shares.count, scratch, NULL)
