# cython: cdivision=True
"""From axes to a plan of what the leaves of `_sum/simd/leaves.h` add up, which `_sum/walk.pyx` walks.

An array is walked in the order of its memory, whichever of its axes are summed. The leaf takes the innermost ones: it
adds rows of kept items onto a block of accumulators, or sums runs of adjacent terms. Where the innermost axes are
short, some of the summed ones are kept in the block at first, so that rows are long, and folded when all else has been
added.

The result is cut into tiles, and where these are few, a summed axis into segments whose sums are added in order: both
by shape and strides alone, so that the bits of a result do not depend on how many threads share the work.
"""

cdef enum:
    LONG = 32           # items; shorter innermost axes are joined with others
    UNIT = 65536        # terms that a unit sums at least


cdef void plan_sum(
    Reduction *plan, const Terms *terms, const Axis *axis, int n, Py_ssize_t units,
) noexcept nogil:
    """Plan the sum over `n` axes, longer than 1 and outermost first, in so many units or a few more.

    The plan refers to the axes and to `terms`. Of one unit, no axis is cut into segments.
    """
    cdef Py_ssize_t limit = ROW if terms.packed else BLOCK
    cdef Py_ssize_t items = 1, summed = 1
    cdef int i, left
    plan.terms = terms
    plan.axes = axis
    plan.rank = n
    for i in range(n):
        items *= axis[i].length
        if not axis[i].kept:
            summed *= axis[i].length
    plan.along = plan.block[0] = Axis(1, 0, 0, True)
    plan.within = plan.blocks = 1
    plan.split = plan.last = 0
    plan.folded = False
    i = n - 1 - _is_interleaved(terms, axis, n)     # the axis of runs
    plan.runs = i >= 0 and not axis[i].kept and (   # and rows would be few, or the runs are long
        summed < FEWEST * axis[i].length or axis[i].length * axis[i].step >= LONG * axis[n - 1].step
    )
    if plan.runs:
        plan.along = axis[i]
        if i < n - 1:
            plan.block[1] = axis[n - 1]
            plan.blocks = 2
            plan.last = 1
        left = i
    else:
        left = _plan_block(plan, axis, n, limit, summed)
    _plan_outer(plan, axis, left)
    _plan_units(plan, items, limit, units)
    plan.writes = plan.segments == 1 and plan.along.length == summed and _has_results_side_by_side(plan)
    plan.scratch = plan.sums_most * terms.sum_size * (2 if terms.compensated else 1)
    if terms.packed:
        plan.scratch += FEWEST * ROW * terms.size


cdef bint _is_interleaved(const Terms *terms, const Axis *axis, int n) noexcept nogil:
    """Whether the terms of two or four items take turns in the innermost axes."""
    return (
        n >= 2 and not terms.packed and axis[n - 1].kept and not axis[n - 2].kept
        and (axis[n - 1].length == 2 or axis[n - 1].length == 4)
        and axis[n - 2].step == axis[n - 1].length * axis[n - 1].step
    )


cdef bint _has_results_side_by_side(const Reduction *plan) noexcept nogil:
    """Whether the leaf can write results: of runs, or few rows, whose terms are as it reads them."""
    cdef Py_ssize_t size = plan.terms.size
    cdef int i
    if plan.terms.packed or not plan.terms.writes or not (plan.runs or plan.along.length <= FEWEST):
        return False
    for i in range(plan.blocks - 1, -1 if plan.runs else 0, -1):    # groups of rows may be anywhere
        if plan.block[i].length > 1 and plan.block[i].out_step != size:
            return False
        size *= plan.block[i].length
    return True


cdef int _plan_block(Reduction *plan, const Axis *axis, int n, Py_ssize_t limit, Py_ssize_t summed) noexcept nogil:
    """Take the innermost axes for the block of accumulators; return how many are left."""
    cdef const Axis *next
    cdef Py_ssize_t within, inner = 1
    cdef int first = n      # of the axes that are taken whole
    cdef int i
    while first > 0 and _joins(axis, first, n, inner):
        next = &axis[first - 1]
        if inner * next.length > limit or not (next.kept or summed >= FEWEST * next.length):
            break
        if not next.kept:
            summed //= next.length
        inner *= next.length
        first -= 1
    i = first
    if first > 0 and _joins(axis, first, n, inner):     # a part of the next one
        next = &axis[first - 1]
        within = min(min(limit, <Py_ssize_t> ROW) // inner, next.length // FEWEST)
        if next.kept:
            plan.split = plan.last = 1
            plan.block[1] = next[0]
            plan.blocks = 2
            i -= 1
        elif within > 1:
            plan.along = next[0]
            plan.within = within
            plan.folded = True
            plan.block[1] = Axis(within, next.step, 0, False)
            plan.blocks = 2
            i -= 1
    for first in range(first, n):
        plan.block[plan.blocks] = axis[first]
        if axis[first].kept:
            plan.last = plan.blocks
        else:
            plan.folded = True
        plan.blocks += 1
    return i


cdef inline bint _joins(const Axis *axis, int first, int n, Py_ssize_t inner) noexcept nogil:
    """Whether the axis before `first` lies side by side with those from there on, and these are short alone."""
    return first == n or (axis[n - 1].length < LONG and axis[first - 1].step == inner * axis[n - 1].step)


cdef void _plan_outer(Reduction *plan, const Axis *axis, int n) noexcept nogil:
    """Give the leaf the innermost axes that are left: a kept one for groups, a summed one for rows; walk the rest."""
    cdef int groups = -1, rows = -1, i
    for i in range(n):
        if axis[i].kept and plan.split == 0:
            groups = i
        elif not axis[i].kept and plan.along.kept:
            rows = i
    if groups >= 0:
        plan.block[0] = axis[groups]
    if rows >= 0:
        plan.along = axis[rows]
    plan.outers = 0
    for i in range(n):
        if i != groups and i != rows:
            plan.outer[plan.outers] = axis[i]
            plan.outers += 1


cdef void _plan_units(Reduction *plan, Py_ssize_t items, Py_ssize_t limit, Py_ssize_t most) noexcept nogil:
    """Cut the result into tiles and a summed axis into segments."""
    cdef Axis *split = &plan.block[plan.split]
    cdef Py_ssize_t wanted = min(most, max(<Py_ssize_t> 1, items // UNIT))
    cdef Py_ssize_t rest = 1, longest
    cdef int i
    for i in range(plan.blocks):
        if i != plan.split:
            rest *= plan.block[i].length
    plan.tiles = plan.segments = plan.chunks = 1
    for i in range(plan.outers):
        if plan.outer[i].kept:
            plan.tiles *= plan.outer[i].length
    plan.cut = -1
    plan.chunk = split.length
    plan.sums_most = rest * split.length
    if wanted == 1 and plan.sums_most <= limit:
        return
    plan.chunks = max(
        min(
            _parts(wanted, plan.tiles),
            plan.sums_most * plan.along.length // UNIT if plan.runs else plan.sums_most // ROW,
        ),
        _parts(split.length, max(<Py_ssize_t> 1, limit // rest)),
    )
    plan.chunk = _parts(split.length, plan.chunks)
    if plan.runs:
        plan.chunk = min(split.length, plan.chunk + 3 & ~3)     # the leaf sums four at a time
    plan.chunks = _parts(split.length, plan.chunk)
    plan.tiles *= plan.chunks
    plan.sums_most = plan.chunk * rest
    longest = plan.along.length // (FEWEST * (ROW if plan.runs else plan.within))
    for i in range(plan.outers):
        if not plan.outer[i].kept and plan.outer[i].length > longest:
            longest = plan.outer[i].length
            plan.cut = i
    if longest > 1 and wanted > plan.tiles:
        plan.segments = min(longest, _parts(wanted, plan.tiles))


cdef inline Py_ssize_t _parts(Py_ssize_t length, Py_ssize_t most) noexcept nogil:
    """How many parts of at most that length there are."""
    return (length + most - 1) // most
