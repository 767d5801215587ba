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
    BLOCK = 4096        # accumulators; with their rows they fit a second-level cache
    FEW = 1024          # accumulators to which fewer than FEWEST rows are added: a first-level cache holds them
    JOINED = 512        # accumulators; a row made of several shorter ones needs no more, and each must be folded
    ROW = 512           # items; a row is not cut into shorter chunks for the sake of threads
    RUN = 4096          # terms; nor is a run
    GROUPS = 32         # runs shorter than that which a tile has at least: the leaf sums them side by side
    ALONE = 512         # terms; runs shorter than that are added as rows where fewer than FEWEST are side by side
    LINE = 64           # short runs; their results are whole lines of memory
    UNIT = 65536        # terms; what a unit sums, if that makes no more units than
    UNITS = 64          # so many: enough for most machines' threads


cdef int plan_axes(Reduction *plan, const Axis *axis, int n) noexcept:
    """Plan the sum over `n` axes, longer than 1 and outermost first; `plan.terms` and `plan.far` are there."""
    cdef Py_ssize_t limit = BLOCK if plan.terms.pack == NULL else PACKED
    cdef Py_ssize_t items = 1, summed = 1, within
    cdef int i, left
    plan.summed = 0
    for i in range(n):
        items *= axis[i].length
        if not axis[i].kept:
            summed *= axis[i].length
            plan.sums[plan.summed] = axis[i]
            plan.summed += 1
    plan.rows = plan.block[0] = Axis(1, 0, 0, True)
    plan.within = 1
    plan.split = 0
    plan.blocks = plan.groups = 1
    i = n - 1 - interleaved(&plan.terms, axis, n)      # the axis of runs
    plan.runs = i >= 0 and not axis[i].kept and (
        summed // axis[i].length < FEWEST
        or axis[i].length * axis[i].step >= LONG * plan.terms.size
        and (axis[i].length >= ALONE or _groups(axis, i) >= FEWEST)
    )
    if plan.runs:
        plan.rows = axis[i]
        left = i
        if summed // axis[i].length < FEWEST and axis[i].length < ALONE:
            left = _plan_groups(plan, axis, i)
        plan.groups = plan.blocks
        if plan.split:
            limit = PACKED      # where the longest comes last, lines of memory are met more than once
        if i < n - 1:
            plan.block[plan.blocks] = axis[i + 1]
            plan.blocks += 1
        _plan_outer(plan, axis, left, left == i)
    else:
        if summed < FEWEST:
            limit = min(limit, <Py_ssize_t> FEW)
        left = _plan_block(plan, axis, n, limit, summed)
        _plan_outer(plan, axis, left, plan.split == 0)
    within = plan.block[1].length if plan.blocks > 1 else 1
    plan.alone = (
        plan.runs and plan.groups == 1 and plan.terms.pack == NULL and _all_kept(plan)
        and is_short(plan.rows.length * within, within, plan.terms.sums.lanes)
    )
    plan.few = (
        not plan.runs and plan.terms.pack == NULL and plan.rows.length == summed and 1 < summed < FEWEST
        and _all_kept(plan)
    )
    _plan_units(plan, items, limit)
    return 0


cdef Py_ssize_t _groups(const Axis *axis, int n) noexcept:
    """The length of the innermost kept one of `n` axes."""
    while n > 0:
        n -= 1
        if axis[n].kept:
            return axis[n].length
    return 1


cdef bint interleaved(const Terms *terms, const Axis *axis, int n) noexcept:
    """Whether the terms of as many items as one run may have take turns in the innermost axes."""
    if n < 2 or terms.pack != NULL or not axis[n - 1].kept or axis[n - 2].kept:
        return False
    if axis[n - 1].length > terms.sums.m_most or axis[n - 1].length == 3:
        return False
    return axis[n - 2].step == axis[n - 1].length * axis[n - 1].step


cdef int _plan_groups(Reduction *plan, const Axis *axis, int n) noexcept:
    """Take the innermost axes as the groups of short runs, summed ones among them, until these are many.

    Return how many axes are left. The outermost kept one of those taken is cut into chunks. If runs lie in even steps
    along short axes alone, a longer one comes last: the leaf walks that one.
    """
    cdef Py_ssize_t groups = 1
    cdef int first = n, longest = -1, last, inner, i
    cdef Axis moved
    while first > 0 and (groups < GROUPS or not axis[first].kept):
        first -= 1
        groups *= axis[first].length
    plan.blocks = 0
    plan.split = -1
    for i in range(first, n):
        if axis[i].kept and plan.split < 0:
            plan.split = plan.blocks
        plan.block[plan.blocks] = axis[i]
        plan.blocks += 1
    if plan.split < 0:      # nothing is kept
        plan.split = plan.blocks
        plan.block[plan.blocks] = Axis(1, 0, 0, True)
        plan.blocks += 1
    last = inner = plan.blocks - 1
    groups = plan.block[last].length
    while inner > 0 and plan.block[inner - 1].step == groups * plan.block[last].step:
        inner -= 1
        groups *= plan.block[inner].length
    if groups < GROUPS and plan.rows.length < LONG:
        for i in range(inner):
            if plan.block[i].kept and plan.block[i].length > groups:
                groups = plan.block[i].length
                longest = i
    if longest >= 0:
        moved = plan.block[longest]
        for i in range(longest, last):
            plan.block[i] = plan.block[i + 1]
        plan.block[last] = moved
        if plan.split == longest:
            plan.split = last
    return first


cdef int _plan_block(Reduction *plan, const Axis *axis, int n, Py_ssize_t limit, Py_ssize_t summed) noexcept:
    """Take the innermost axes for the block of accumulators; return how many are left."""
    cdef const Axis *next
    cdef Py_ssize_t within, inner = 1
    cdef int first = n      # of the axes that are taken whole
    cdef int i
    while first > 0 and _joins(axis, first, n, inner):
        next = &axis[first - 1]
        if inner * next.length > limit or not (next.kept or summed // next.length >= FEWEST):
            break
        if not next.kept:
            summed //= next.length
        inner *= next.length
        first -= 1
    i = first
    if first > 0 and _joins(axis, first, n, inner):     # a part of the next one
        next = &axis[first - 1]
        within = min(min(limit, <Py_ssize_t> JOINED) // inner, next.length // FEWEST)
        if next.kept:
            plan.split = 1
            plan.block[1] = next[0]
            plan.blocks = 2
            i -= 1
        elif within > 1:
            plan.rows = next[0]
            plan.within = within
            plan.block[1] = Axis(within, next.step, 0, False)
            plan.blocks = 2
            i -= 1
    for first in range(first, n):
        plan.block[plan.blocks] = axis[first]
        plan.blocks += 1
    return i


cdef inline bint _joins(const Axis *axis, int first, int n, Py_ssize_t inner) noexcept:
    """Whether the axis before `first` lies side by side with those from there on, and these are short alone."""
    return first == n or (axis[n - 1].length < LONG and axis[first - 1].step == inner * axis[n - 1].step)


cdef void _plan_outer(Reduction *plan, const Axis *axis, int n, bint grouped) noexcept:
    """Give the leaf the innermost axes that are left: a kept one if groups are wanted, a summed one; walk the rest."""
    cdef int groups = -1, rows = -1, i
    for i in range(n):
        if axis[i].kept:
            groups = i
        else:
            rows = i
    if grouped and groups >= 0:
        plan.block[0] = axis[groups]
    else:
        groups = -1
    if plan.rows.kept and rows >= 0:
        plan.rows = axis[rows]
    else:
        rows = -1
    plan.outers = 0
    for i in range(n):
        if i != groups and i != rows:
            plan.outer[plan.outers] = axis[i]
            plan.outers += 1


cdef bint _all_kept(const Reduction *plan) noexcept:
    """Whether none of the outer axes is summed."""
    cdef int i
    for i in range(plan.outers):
        if not plan.outer[i].kept:
            return False
    return True


cdef void _plan_units(Reduction *plan, Py_ssize_t items, Py_ssize_t limit) noexcept:
    """Cut the result into tiles and a summed axis into segments."""
    cdef Axis *split = &plan.block[plan.split]
    cdef Py_ssize_t wanted = min(<Py_ssize_t> UNITS, max(<Py_ssize_t> 1, items // UNIT))
    cdef Py_ssize_t rest = 1, tiles = 1, least, longest, length
    cdef int i
    for i in range(plan.blocks):
        if i != plan.split:
            rest *= plan.block[i].length
    for i in range(plan.outers):
        if plan.outer[i].kept:
            tiles *= plan.outer[i].length
    plan.chunks = min(split.length, _parts(wanted, tiles))
    if plan.runs and plan.rows.length < RUN:
        plan.chunks = min(plan.chunks, split.length * rest // GROUPS)
    elif plan.split:
        plan.chunks = min(plan.chunks, split.length * rest // ROW)
    least = 1 if plan.alone else _parts(split.length, max(<Py_ssize_t> 1, limit // rest))
    plan.chunks = max(plan.chunks, least)
    plan.chunk = _parts(split.length, plan.chunks)
    if plan.alone:
        plan.chunk = min(split.length, _parts(plan.chunk, LINE) * LINE)
    plan.chunks = _parts(split.length, plan.chunk)
    plan.tiles = tiles * plan.chunks
    plan.sums_most = min(plan.chunk * rest, <Py_ssize_t> BLOCK) if plan.alone else plan.chunk * rest
    plan.cut = -1
    longest = plan.rows.length // (RUN if plan.runs else FEWEST * plan.within)
    for i in range(plan.outers):
        length = plan.outer[i].length
        if not plan.outer[i].kept and length > longest:
            longest = length
            plan.cut = i
    plan.segments = max(<Py_ssize_t> 1, min(longest, _parts(wanted, plan.tiles)))
    plan.scratch = (2 if plan.terms.paired else 1) * plan.sums_most * plan.terms.sum_size
    if plan.terms.pack != NULL:
        plan.scratch += FEWEST * PACKED * plan.terms.size


cdef inline Py_ssize_t _parts(Py_ssize_t length, Py_ssize_t most) noexcept:
    """How many parts of at most that length there are."""
    return (length + most - 1) // most
