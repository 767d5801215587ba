# cython: cdivision=True
"""Plans a reduction: from its axes to the calls of kernels, which `run` makes.

In: a nest of axes longer than 1 in memory order, and the operation. Out: a `ReductionPlan`, which describes what one
kernel call reduces, the loops around the calls, and how the work is cut. Sums, extremes and truths have the same plans.
A row has the items along the innermost axis. Its length decides the plan:

* Long rows along a reduced axis: an inner reduction. Each row is a run. Its terms are combined inside vectors, and the
  lanes at its end. (64, 1000) -> (64, 1) has 64 runs of 1000.
* Long rows along a kept axis: an outer reduction. Rows are combined with a row of accumulators, eight in one call.
  (1000, 64) -> (1, 64) has 1000 rows of 64.
* Short rows (of 3 items) or short runs (of 2): adjacent axes, kept and reduced, are joined into long rows in memory
  order. Each item of a joined row has an accumulator, and the accumulators are folded at the end. (100000, 3) -> (1, 3)
  has 588 rows of 170 x 3 items, and 40 x 3 more.

Results are cut into tiles whose accumulators fit a cache. If there are few tiles, a reduced axis is cut into shares,
whose partial results are combined in order. Both cuts depend on shapes and strides alone, so the bits of a result do
not depend on the number of threads.
"""

from libc.string cimport memset

from bcast._reduce.kernels cimport dtypes
from bcast._runtime.tuning cimport (
    LONG_AXIS_ITEMS, SHARE_ITEMS, SUM_BLOCK_ITEMS, SUM_CALL_ROWS, SUM_PIECE_ITEMS, SUM_ROW_ITEMS, SUM_SHARES,
)

cdef struct JoinedRow:
    # The innermost axes, joined into one row of accumulators.
    int first               # number of the outermost joined axis
    Py_ssize_t items        # items of the row, each with an accumulator
    Py_ssize_t depth        # terms for each accumulator; each reduced axis in the row divides this number


cdef void plan_reduction(ReductionPlan *plan, const Nest *nest, Py_ssize_t shares) noexcept nogil:
    """Plan a reduction that is cut into about `shares` shares."""
    cdef const Axes *axes = &plan.axes
    cdef int outside        # axes outside the kernel's call and the block

    plan.first = read_nest(nest, &plan.axes)
    _count_items(plan, axes)
    _begin(plan)

    if _are_runs(plan, axes):
        outside = _take_runs(plan, axes)
    else:
        outside = _take_rows(plan, axes)
    _loop_over(plan, axes, outside)

    shares = min(shares, max(<Py_ssize_t> 1, _items_for_shares(plan) // SHARE_ITEMS))
    _cut_tiles(plan, shares)
    _cut_shares(plan, shares)

    plan.call.writes = _can_kernels_write(plan)
    plan.scratch = _scratch_bytes(plan)


cdef inline void _count_items(ReductionPlan *plan, const Axes *axes) noexcept nogil:
    """Count the items, and the terms of one result."""
    cdef int i
    plan.items = plan.depth = 1
    for i in range(axes.rank):
        plan.items *= axes.axis[i].length
        if not axes.axis[i].kept:
            plan.depth *= axes.axis[i].length


cdef inline void _begin(ReductionPlan *plan) noexcept nogil:
    """Begin with a call for one group of one row."""
    plan.call.along = plan.block.axes.axis[0] = Axis(length=1, src_stride=0, other_stride=0, dst_stride=0, kept=True)
    plan.call.within = 1
    plan.call.gathers = False
    plan.block.axes.rank = 1
    plan.tiles.axis = 0


# ---- Runs: rows are long, and reduced ----


cdef bint _are_runs(ReductionPlan *plan, const Axes *axes) noexcept nogil:
    """Whether the kernel reduces runs."""
    cdef const Axis *run
    cdef int number = axes.rank - 1 - _is_interleaved(&plan.reduction.terms, axes)
    cdef bint is_long

    plan.call.runs = False
    if number < 0 or axes.axis[number].kept:
        return False
    run = &axes.axis[number]
    is_long = run.length * run.src_stride >= LONG_AXIS_ITEMS * axes.axis[axes.rank - 1].src_stride
    plan.call.runs = (
        plan.depth < SUM_CALL_ROWS * run.length             # there would be few rows
        or is_long and not _are_few_and_short(axes, number)
    )
    return plan.call.runs


cdef bint _is_interleaved(const Terms *terms, const Axes *axes) noexcept nogil:
    """Whether the terms of two or four items are interleaved in the innermost axes."""
    cdef const Axis *items
    cdef const Axis *run
    if axes.rank < 2:
        return False
    items = &axes.axis[axes.rank - 1]
    run = &axes.axis[axes.rank - 2]
    if not items.kept or run.kept or items.length != 2 and items.length != 4:
        return False
    if run.src_stride != items.length * items.src_stride:
        return False
    if terms.packed:    # interleaved runs are packed as a whole, and only integers are
        return terms.made_of == ITEMS and not dtypes[terms.dtype].is_float and run.length <= PACKED_TERMS
    return True


cdef bint _are_few_and_short(const Axes *axes, int run) noexcept nogil:
    """Whether each call would reduce few and short runs along an axis; calls for rows then do more work."""
    cdef int i
    if axes.axis[run].length > SUM_ROW_ITEMS:
        return False
    for i in range(run - 1, -1, -1):
        if axes.axis[i].kept:
            return axes.axis[i].length < SUM_CALL_ROWS
    return True


cdef int _take_runs(ReductionPlan *plan, const Axes *axes) noexcept nogil:
    """Reduce along the innermost reduced axis; return the number of axes outside of it."""
    cdef int run = axes.rank - 1
    if axes.axis[run].kept:     # its items are interleaved in each run
        plan.block.axes.axis[1] = axes.axis[run]
        plan.block.axes.rank = 2
        run -= 1
    plan.call.along = axes.axis[run]
    return run


# ---- Rows: of one axis, or joined ----


cdef int _take_rows(ReductionPlan *plan, const Axes *axes) noexcept nogil:
    """Give the innermost axes to a row of accumulators; return the number of axes outside of it."""
    cdef const Terms *terms = &plan.reduction.terms
    cdef JoinedRow row = JoinedRow(first=axes.rank, items=1, depth=plan.depth)
    cdef const Axis *next
    cdef Py_ssize_t limit = _block_limit(plan), part
    cdef int outside

    while _can_join(terms, axes, &row) and _is_worth_joining(&row, &axes.axis[row.first - 1], limit):
        row.first -= 1
        row.items *= axes.axis[row.first].length
        if not axes.axis[row.first].kept:
            row.depth //= axes.axis[row.first].length

    outside = row.first
    if row.first > 0:
        next = &axes.axis[row.first - 1]
        part = next.length // SUM_CALL_ROWS     # of a reduced axis: larger parts would leave a call too few rows
        if _can_join(terms, axes, &row):
            part = min(min(limit, <Py_ssize_t> SUM_ROW_ITEMS) // row.items, part)
            if next.kept or part > 1:
                _take_part(plan, next, part)
                outside -= 1
        elif _is_worth_gathering(terms, next, row.items):
            part = min(SUM_ROW_ITEMS // row.items, part)
            plan.call.gathers = row.depth > 1 if next.kept else part >= SUM_CALL_ROWS
            if plan.call.gathers:
                _take_part(plan, next, part)
                outside -= 1

    _append_axes(&plan.block.axes, axes, row.first)
    return outside


cdef inline bint _can_join(const Terms *terms, const Axes *axes, const JoinedRow *row) noexcept nogil:
    """Whether an outer axis continues a row in memory, and the innermost axis alone is short."""
    cdef const Axis *innermost = &axes.axis[axes.rank - 1]
    cdef const Axis *next = &axes.axis[row.first - 1]
    if row.first == 0:
        return False
    if row.first == axes.rank:
        return True
    if innermost.length >= LONG_AXIS_ITEMS or next.src_stride != row.items * innermost.src_stride:
        return False
    if terms.spreads:       # the second operand's items may have any strides, along two axes
        return row.first == axes.rank - 1
    return terms.made_of == DEVIATIONS or next.other_stride == row.items * innermost.other_stride


cdef inline bint _is_worth_joining(const JoinedRow *row, const Axis *next, Py_ssize_t limit) noexcept nogil:
    """Whether a row should include all of another axis: it must fit the block, and folding a reduced axis must pay."""
    if row.items * next.length > limit:
        return False
    if next.kept or row.depth >= SUM_CALL_ROWS * next.length:
        return True
    return row.items < SUM_CALL_ROWS and row.depth > next.length <= SUM_CALL_ROWS   # narrow rows, as in pooling


cdef inline bint _is_worth_gathering(const Terms *terms, const Axis *next, Py_ssize_t piece) noexcept nogil:
    """Whether to gather rows from separate pieces along another axis: this pays if pieces have few items."""
    return terms.made_of == ITEMS and piece <= SUM_PIECE_ITEMS and piece * next.length >= LONG_AXIS_ITEMS


cdef inline void _take_part(ReductionPlan *plan, const Axis *axis, Py_ssize_t part) noexcept nogil:
    """Put an axis into the block: all of a kept axis, which tiles cut, or a part of a reduced axis in each row."""
    plan.block.axes.axis[1] = axis[0]
    plan.block.axes.rank = 2
    if axis.kept:
        plan.tiles.axis = 1
    else:
        plan.call.along = axis[0]
        plan.call.within = plan.block.axes.axis[1].length = part


cdef inline void _append_axes(Axes *to, const Axes *axes, int first) noexcept nogil:
    """Append the axes of a nest from number `first` on."""
    cdef int i
    for i in range(first, axes.rank):
        to.axis[to.rank] = axes.axis[i]
        to.rank += 1


# ---- The loops around the calls ----


cdef void _loop_over(ReductionPlan *plan, const Axes *axes, int outside) noexcept nogil:
    """Give the call the innermost axes outside: a kept axis as groups, a reduced one as rows. Loop over the others."""
    cdef int groups = -1, rows = -1, i
    cdef bint has_no_groups = plan.tiles.axis == 0, has_no_rows = plan.call.along.kept

    for i in range(outside):
        if axes.axis[i].kept and has_no_groups:
            groups = i
        elif not axes.axis[i].kept and has_no_rows:
            rows = i
    if groups >= 0:
        plan.block.axes.axis[0] = axes.axis[groups]
    if rows >= 0:
        plan.call.along = axes.axis[rows]

    plan.loops.rank = 0
    for i in range(outside):
        if i != groups and i != rows:
            plan.loops.axis[plan.loops.rank] = axes.axis[i]
            plan.loops.rank += 1


# ---- Tiles and shares ----


cdef inline Py_ssize_t _items_for_shares(const ReductionPlan *plan) noexcept nogil:
    """The number of items that justify shares."""
    if plan.reduction.terms.made_of != ITEMS and plan.items // plan.depth > SUM_SHARES:
        return plan.items // 2      # the rows of accumulators of each share cost time as well
    return plan.items


cdef inline Py_ssize_t _block_limit(const ReductionPlan *plan) noexcept nogil:
    """The most accumulators of a block."""
    if plan.call.gathers:
        return SUM_ROW_ITEMS
    if plan.reduction.terms.in_bulk:
        return SUM_ROW_ITEMS // 4   # short rows, so that many are packed at once
    if plan.reduction.terms.packed:
        return SUM_ROW_ITEMS if plan.reduction.terms.multiplier == NULL else 2 * SUM_ROW_ITEMS
    return SUM_BLOCK_ITEMS


cdef void _cut_tiles(ReductionPlan *plan, Py_ssize_t shares) noexcept nogil:
    """Cut the result into tiles whose block of accumulators fits a cache: if possible, one tile or more for each share.
    """
    cdef Tiles *tiles = &plan.tiles
    cdef Py_ssize_t whole = plan.block.axes.axis[tiles.axis].length
    cdef Py_ssize_t others = 1      # accumulators for one position of the axis that is cut
    cdef Py_ssize_t limit = _block_limit(plan), along
    cdef int i

    for i in range(plan.block.axes.rank):
        if i != tiles.axis:
            others *= plan.block.axes.axis[i].length
    plan.block.items = others * whole
    tiles.length = whole
    tiles.along = tiles.count = 1
    for i in range(plan.loops.rank):
        if plan.loops.axis[i].kept:
            tiles.count *= plan.loops.axis[i].length
    if shares == 1 and plan.block.items <= limit:
        return

    along = min(ceil_div(shares, tiles.count), _most_tiles(plan))
    along = max(along, ceil_div(whole, max(<Py_ssize_t> 1, limit // others)))
    tiles.length = ceil_div(whole, along)
    if plan.call.runs:
        tiles.length = min(whole, tiles.length + 3 & ~3)    # the kernel reduces four runs at a time
    tiles.along = ceil_div(whole, tiles.length)
    tiles.count *= tiles.along
    plan.block.items = tiles.length * others


cdef inline Py_ssize_t _most_tiles(const ReductionPlan *plan) noexcept nogil:
    """The most tiles of a block that is cut for threads."""
    if plan.call.runs:
        return plan.block.items * plan.call.along.length // SHARE_ITEMS
    return plan.block.items // SUM_ROW_ITEMS


cdef void _cut_shares(ReductionPlan *plan, Py_ssize_t shares) noexcept nogil:
    """Cut the longest reduced axis into shares, if there are fewer tiles than the wanted number of shares."""
    cdef Py_ssize_t longest     # units along the axis that different shares may have
    cdef Py_ssize_t least = SUM_CALL_ROWS * (SUM_ROW_ITEMS if plan.call.runs else plan.call.within)
    cdef int i

    plan.shares.axis = -1
    plan.shares.each = 1
    plan.shares.count = plan.tiles.count
    if shares <= plan.tiles.count:
        return

    longest = plan.call.along.length // least
    for i in range(plan.loops.rank):
        if not plan.loops.axis[i].kept and plan.loops.axis[i].length > longest:
            longest = plan.loops.axis[i].length
            plan.shares.axis = i
    if longest > 1:
        plan.shares.each = min(longest, ceil_div(shares, plan.tiles.count))
        plan.shares.count = plan.tiles.count * plan.shares.each


# ---- Whether kernels write the results, and scratch ----


cdef bint _can_kernels_write(const ReductionPlan *plan) noexcept nogil:
    """Whether one call completes the results, of runs or of few rows, and the results are contiguous."""
    cdef const Reduction *reduction = plan.reduction
    cdef const Axis *axis
    cdef Py_ssize_t stride = dtypes[reduction.outcome.dtype].size
    cdef int outermost = 0 if plan.call.runs else 1     # groups of rows may be anywhere
    cdef int i

    if plan.shares.each > 1 or plan.call.along.length != plan.depth:
        return False
    if reduction.terms.packed or plan.call.gathers or not reduction.outcome.are_terms:
        return False
    if not plan.call.runs and plan.call.along.length > SUM_CALL_ROWS:
        return False

    for i in range(plan.block.axes.rank - 1, outermost - 1, -1):
        axis = &plan.block.axes.axis[i]
        if axis.length > 1 and axis.dst_stride != stride:
            return False
        stride *= axis.length
    return True


cdef inline Py_ssize_t _scratch_bytes(const ReductionPlan *plan) noexcept nogil:
    """The scratch of a thread, in bytes: accumulators, their error terms, and packed terms of one or two operands."""
    cdef const Terms *terms = &plan.reduction.terms
    cdef const Operation *operation = &plan.reduction.operation
    cdef Py_ssize_t packed_bytes = PACKED_TERMS * terms.size
    cdef Py_ssize_t nbytes = plan.block.items * operation.accumulator_size * operation.arrays

    if terms.packed or plan.call.gathers:
        nbytes += packed_bytes
        if terms.made_of == DEVIATIONS or terms.spreads or terms.has_errors:
            nbytes += packed_bytes
        elif terms.made_of == PRODUCTS and terms.multiplier == NULL:
            nbytes += packed_bytes
    return nbytes


# ---- For tests ----


def planned(axes, int size=8, bint packed=False, Py_ssize_t shares=SUM_SHARES):
    """Plan a sum on paper. Axes are tuples of a length and the strides of items and results, in bytes."""
    cdef Nest nest
    cdef Reduction reduction
    cdef ReductionPlan plan

    memset(&nest, 0, sizeof(Nest))
    memset(&reduction, 0, sizeof(Reduction))
    memset(&plan, 0, sizeof(ReductionPlan))
    nest.n = OPERANDS
    items = 1
    for length, src_stride, dst_stride in axes:
        items *= length
        if not 1 < length <= items < 2 ** 60:
            raise ValueError(f"`axes` expected axes longer than 1 and less than 2^60 items, got {axes!r}")
        nest.shape[nest.rank] = length
        nest.stride[DATA][nest.rank] = src_stride
        nest.stride[RESULTS][nest.rank] = dst_stride
        nest.rank += 1

    reduction.terms.made_of, reduction.terms.other_dtype = ITEMS, -1
    reduction.terms.size = reduction.operation.accumulator_size = size
    reduction.operation.arrays = 1
    reduction.terms.packed = packed
    reduction.outcome.are_terms = not packed
    reduction.outcome.repeats = 1
    while dtypes[reduction.outcome.dtype].size != size:
        reduction.outcome.dtype += 1
    plan.reduction = &reduction
    plan_reduction(&plan, &nest, max(<Py_ssize_t> 1, shares))
    block, loops = plan.block.axes, plan.loops
    return {
        "call": plan.call,
        "block": {"rank": block.rank, "axes": block.axis, "items": plan.block.items},
        "loops": {"rank": loops.rank, "axes": loops.axis},
        "tiles": plan.tiles,
        "shares": plan.shares,
        "scratch": plan.scratch,
    }
