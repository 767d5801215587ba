# From axes to a plan of what the kernels add up, which executor.pxi carries out.
#
# In: axes, longer than 1, sorted by their steps in `grad`, outermost first; how terms are read. Out: a SumPlan.
#
# Where the innermost axes are short, the block of accumulators keeps some of the summed ones at first, so that rows are
# long. The result is cut into tiles, and where these are few, a summed axis into shares whose sums are added in order:
# both by shape and strides alone, so that the bits of a result do not depend on how many threads there are.

cdef enum:
    SUM_PACKED_TERMS = SUM_CALL_ROWS * SUM_ROW_ITEMS    # at a time


cdef void plan_sum(SumPlan *plan, const Axis *axis, int n, Py_ssize_t shares) noexcept nogil:
    """Plan the sum over `n` axes in so many shares or a few more."""
    cdef const Terms *terms = plan.terms
    cdef Py_ssize_t limit = SUM_BLOCK_ITEMS
    cdef Py_ssize_t items = 1, summed = 1
    cdef int i, left
    if terms.packed:
        limit = SUM_ROW_ITEMS if terms.multiplier == NULL else 2 * SUM_ROW_ITEMS
    plan.axes = axis
    plan.rank = 0
    for i in range(n):
        items *= axis[i].length
        if not axis[i].kept:
            summed *= axis[i].length
            plan.rank = i + 1
    plan.call.along = plan.block.axes[0] = Axis(1, 0, 0, True, 0)
    plan.call.within = plan.block.rank = 1
    plan.call.gathers = False
    plan.tiles.axis = 0
    left = n - 1 - _is_interleaved(terms, axis, n)      # axes outside that of runs
    plan.call.runs = left >= 0 and not axis[left].kept and (    # and rows would be few, or the runs are long
        summed < SUM_CALL_ROWS * axis[left].length
        or axis[left].length * axis[left].src_step >= SUM_LONG_ITEMS * axis[n - 1].src_step
        and not _has_few_runs(axis, left)
    )
    if plan.call.runs:
        plan.call.along = axis[left]
        plan.block.axes[1] = axis[n - 1]    # if that is another
        plan.block.rank = n - left
    else:
        left = _plan_block(plan, axis, n, limit, summed)
        if plan.call.gathers:
            limit = SUM_ROW_ITEMS
    _plan_loops(plan, axis, left)
    if terms.times >= 0 and items > 64 * summed:
        items //= 2     # rows of accumulators that shares leave take a part of the time
    _plan_tiles(plan, limit, min(shares, max(<Py_ssize_t> 1, items // SUM_SHARE_TERMS)))
    plan.shares.count = plan.tiles.count * plan.shares.each
    plan.call.writes = plan.shares.each == 1 and plan.call.along.length == summed and _has_results_side_by_side(plan)
    plan.scratch = plan.block.items * terms.sum_size * (2 if terms.compensated else 1)
    if terms.packed or plan.call.gathers:
        plan.scratch += SUM_PACKED_TERMS * terms.size
        if terms.times >= 0 and (terms.multiplier == NULL or terms.deviates):
            plan.scratch += SUM_PACKED_TERMS * terms.size


cdef bint _has_few_runs(const Axis *axis, int left) noexcept nogil:
    """Whether each call of the kernel would sum few and short runs along axis `left`: rows of terms then have more."""
    cdef int i
    if axis[left].length > SUM_ROW_ITEMS:
        return False
    for i in range(left - 1, -1, -1):
        if axis[i].kept:
            return axis[i].length < SUM_FEW_RUNS
    return True


cdef bint _is_interleaved(const Terms *terms, const Axis *axis, int n) noexcept nogil:
    """Whether the terms of two or four items take turns in the innermost axes."""
    return (
        n >= 2 and axis[n - 1].kept and not axis[n - 2].kept and (axis[n - 1].length == 2 or axis[n - 1].length == 4)
        and axis[n - 2].src_step == axis[n - 1].length * axis[n - 1].src_step
        and not (terms.packed and (terms.times >= 0 or dtypes[terms.dtype].is_float))
        and not (terms.packed and axis[n - 2].length > SUM_PACKED_TERMS)
    )


cdef bint _has_results_side_by_side(const SumPlan *plan) noexcept nogil:
    """Whether the kernel can write results: of runs, or few rows, whose terms are as it reads them."""
    cdef Py_ssize_t size = plan.terms.size
    cdef int i
    if plan.terms.packed or plan.call.gathers or not plan.terms.writes:
        return False
    if not plan.call.runs and plan.call.along.length > SUM_CALL_ROWS:
        return False
    for i in range(plan.block.rank - 1, -1 if plan.call.runs else 0, -1):    # groups of rows may be anywhere
        if plan.block.axes[i].length > 1 and plan.block.axes[i].dst_step != size:
            return False
        size *= plan.block.axes[i].length
    return True


cdef int _plan_block(SumPlan *plan, const Axis *axis, int n, Py_ssize_t limit, Py_ssize_t summed) noexcept nogil:
    """Take the innermost axes for the block of accumulators; return how many are left."""
    cdef const Axis *next
    cdef Py_ssize_t within, inner = 1
    cdef int first = n, i   # of the axes that are taken whole
    while first > 0 and _joins(plan.terms, axis, first, n, inner):
        next = &axis[first - 1]
        if inner * next.length > limit or not (
            next.kept or summed >= SUM_CALL_ROWS * next.length      # or rows would be narrow, as in pools of pixels
            or inner < SUM_CALL_ROWS and summed > next.length <= SUM_CALL_ROWS
        ):
            break
        if not next.kept:
            summed //= next.length
        inner *= next.length
        first -= 1
    i = first
    if first > 0 and _joins(plan.terms, axis, first, n, inner):     # a part of the next one
        next = &axis[first - 1]
        within = min(min(limit, <Py_ssize_t> SUM_ROW_ITEMS) // inner, next.length // SUM_CALL_ROWS)
        if next.kept or within > 1:
            plan.block.axes[1] = next[0]
            plan.block.rank = 2
            i -= 1
        if next.kept:
            plan.tiles.axis = 1
        elif within > 1:
            plan.call.along = next[0]
            plan.call.within = plan.block.axes[1].length = within
    elif first > 0 and _is_gathered(plan.terms, &axis[first - 1], inner):
        next = &axis[first - 1]
        within = min(<Py_ssize_t> SUM_ROW_ITEMS // inner, next.length // SUM_CALL_ROWS)
        plan.call.gathers = summed > 1 if next.kept else within >= SUM_CALL_ROWS
        if plan.call.gathers:
            plan.block.axes[1] = next[0]
            plan.block.rank = 2
            i -= 1
        if plan.call.gathers and next.kept:
            plan.tiles.axis = 1
        elif plan.call.gathers:
            plan.call.along = next[0]
            plan.call.within = plan.block.axes[1].length = within
    for first in range(first, n):
        plan.block.axes[plan.block.rank] = axis[first]
        plan.block.rank += 1
    return i


cdef inline bint _is_gathered(const Terms *terms, const Axis *next, Py_ssize_t inner) noexcept nogil:
    """Whether rows are made of pieces along the axis before, as their items alone are few."""
    return terms.times < 0 and inner <= SUM_PIECE_ITEMS and inner * next.length >= SUM_LONG_ITEMS


cdef inline bint _joins(const Terms *terms, const Axis *axis, int first, int n, Py_ssize_t inner) noexcept nogil:
    """Whether the axis before `first` lies side by side with those from there on, and these are short alone."""
    return first == n or (
        axis[n - 1].length < SUM_LONG_ITEMS
        and axis[first - 1].src_step == inner * axis[n - 1].src_step
        and (terms.deviates or axis[first - 1].times_step == inner * axis[n - 1].times_step)
    )


cdef void _plan_loops(SumPlan *plan, const Axis *axis, int n) noexcept nogil:
    """Give the kernel the innermost axes left, a kept one for groups and a summed one for rows; loop over the rest."""
    cdef int groups = -1, rows = -1, i
    for i in range(n):
        if axis[i].kept and plan.tiles.axis == 0:
            groups = i
        elif not axis[i].kept and plan.call.along.kept:
            rows = i
    if groups >= 0:
        plan.block.axes[0] = axis[groups]
    if rows >= 0:
        plan.call.along = axis[rows]
    plan.loops.rank = 0
    for i in range(n):
        if i != groups and i != rows:
            plan.loops.axes[plan.loops.rank] = axis[i]
            plan.loops.rank += 1


cdef void _plan_tiles(SumPlan *plan, Py_ssize_t limit, Py_ssize_t wanted) noexcept nogil:
    """Cut the result into tiles and a summed axis into shares, so many as are wanted."""
    cdef Tiles *tiles = &plan.tiles
    cdef Py_ssize_t whole = plan.block.axes[tiles.axis].length, rest = 1, longest, most
    cdef int i
    for i in range(plan.block.rank):
        if i != tiles.axis:
            rest *= plan.block.axes[i].length
    tiles.count = tiles.along = plan.shares.each = 1
    for i in range(plan.loops.rank):
        if plan.loops.axes[i].kept:
            tiles.count *= plan.loops.axes[i].length
    plan.shares.axis = -1
    tiles.length = whole
    plan.block.items = rest * whole
    if wanted == 1 and plan.block.items <= limit:
        return
    if plan.call.runs:
        most = plan.block.items * plan.call.along.length // SUM_SHARE_TERMS
    else:
        most = plan.block.items // SUM_ROW_ITEMS
    most = max(min(_quotient_up(wanted, tiles.count), most), _quotient_up(whole, max(<Py_ssize_t> 1, limit // rest)))
    tiles.length = _quotient_up(whole, most)
    if plan.call.runs:
        tiles.length = min(whole, tiles.length + 3 & ~3)    # the kernel sums four at a time
    tiles.along = _quotient_up(whole, tiles.length)
    tiles.count *= tiles.along
    plan.block.items = tiles.length * rest
    longest = plan.call.along.length // (SUM_CALL_ROWS * (SUM_ROW_ITEMS if plan.call.runs else plan.call.within))
    for i in range(plan.loops.rank):
        if not plan.loops.axes[i].kept and plan.loops.axes[i].length > longest:
            longest = plan.loops.axes[i].length
            plan.shares.axis = i
    if longest > 1 and wanted > tiles.count:
        plan.shares.each = min(longest, _quotient_up(wanted, tiles.count))


cdef inline Py_ssize_t _quotient_up(Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    return (a + b - 1) // b


def planned(axes, int size=8, bint packed=False, Py_ssize_t shares=SUM_SHARES):
    """Plan a sum on paper, for tests. Axes are tuples of a length, two steps in bytes, and whether they are kept."""
    cdef Axis[MAX_AXES + 1] axis
    cdef Terms terms = Terms(
        NULL, NULL, 0, False, packed, False, size, size, 0, not packed, -1, NULL, False, 0, False, 0, False, False, 1,
    )
    cdef SumPlan plan
    cdef int n = 0
    items = 1
    memset(&plan, 0, sizeof(SumPlan))
    for length, src_step, dst_step, kept in axes:
        items *= length
        if not 1 < length <= items < 2 ** 60:
            raise ValueError(f"`axes` expected axes longer than 1 and less than 2^60 items, got {axes!r}")
        axis[n] = Axis(length, src_step, dst_step, kept, 0)
        n += 1
    plan.terms = &terms
    plan_sum(&plan, axis, n, max(<Py_ssize_t> 1, shares))
    return {
        "call": plan.call, "block": plan.block, "loops": plan.loops, "tiles": plan.tiles, "shares": plan.shares,
        "scratch": plan.scratch,
    }
