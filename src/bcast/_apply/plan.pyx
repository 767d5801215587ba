# cython: cdivision=True, boundscheck=False, wraparound=False
"""Plans the blocks on which a loop runs.

In: a Call with merged axes. Out: a BlockPlan: a block's length along each axis, and how the loop reads or writes each
operand's items. A block is one row for the loop, or several.

For example, (1000000, 3) + (3,) of float32 has short rows. A block has 512 of them, 1536 items, as one row. The first
operand is read in place, the second one from a buffer that repeats its three items and is filled once for all blocks.
(720, 1280, 3) + (720, 1280, 3) has one axis of 2,764,800 items and needs no buffer: 43 blocks of 64,320 items make
shares for threads.
"""

from libc.stdlib cimport llabs

from bcast._apply.operands cimport Operand, Step
from bcast._apply.ufuncs cimport FROM_BYTES, NOT_FUSED, TO_CUT_BYTES, TO_HALVES, FOLD_COUNT, Folded
from bcast._copy.plan cimport Plan
from bcast._nest.core cimport Nest, coalesce_axes, drop_unit_axes, swap_axes
from bcast._runtime.core cimport L1, LINE, PAGE, whole_lines
from bcast._runtime.tuning cimport (
    APPLY_BLOCK_BYTES, APPLY_FEW_ROWS, APPLY_LONG_ROW_ITEMS, APPLY_TILE_ROWS, FEW_UNITS, FOLD_MANY_TERMS,
    LONG_AXIS_ITEMS, SHARE_ITEMS, SUM_BLOCK_ITEMS, SUM_CALL_ROWS, SUM_SHARES,
)

cdef enum:
    CACHE_SETS_BYTES = 1024     # rows of a buffer at multiples of this distance share few sets of a cache
    MOST_BYTE_TERMS = 255       # the most terms whose count fits a byte


cdef bint is_small(const Call *call) noexcept:
    """Whether there are few rows, and one call of the loop reads and writes each in place."""
    cdef int k
    if call.nest.rank != 2 or call.nest.shape[0] > APPLY_FEW_ROWS or call.nest.shape[1] > APPLY_LONG_ROW_ITEMS:
        return False
    for k in range(call.nest.n):
        if call.operands[k].cast != NULL or not call.operands[k].readable:
            return False
    return _is_adjacent(call)


cdef bint _is_adjacent(const Call *call) noexcept:
    """Whether each operand's items of a row are contiguous, or a single repeated item."""
    cdef int last = call.nest.rank - 1, k
    for k in range(call.nest.n):
        if call.operands[k].strides[last] and call.operands[k].strides[last] != call.operands[k].size:
            return False
    return True


cdef void pair_axes(Call *call) noexcept:
    """Put the axis of the first operand's shortest stride next to the last one, so that a block extends along both.

    If the last axis is short, a block has several whole axes.
    """
    cdef int last = call.nest.rank - 1, nearest_axis = last, axis
    cdef Py_ssize_t nearest = llabs(call.operands[0].strides[last]), stride
    if 4 * call.nest.shape[last] < LINE:
        return
    for axis in range(last):
        stride = llabs(call.operands[0].strides[axis])
        if 0 < stride < nearest:
            nearest, nearest_axis = stride, axis
    for axis in range(nearest_axis, last - 1):
        swap_axes(&call.nest, axis, axis + 1)


cdef void find_fused(Call *call) noexcept:
    """Find steps that one loop can fuse: float32 arithmetic, with conversions to float32 before and from it after."""
    cdef int end = call.step_count      # end of the steps after step i that can share its loop
    cdef int i
    cdef Step *step

    for i in range(call.step_count - 1, -1, -1):
        step = &call.steps[i]
        step.fused_count = 0
        if step.function == NOT_FUSED:
            end = i
        elif TO_CUT_BYTES <= step.function <= TO_HALVES:
            end = i + 1
        else:
            step.fused_count = end - i
        if step.function == FROM_BYTES:
            end = i


cdef void plan_blocks(const Call *call, BlockPlan *plan) noexcept:
    """Choose the block, and how the loop reads or writes each operand's items of it."""
    cdef int k
    plan.call = call
    _choose_layout(plan)
    if plan.by_rows:
        _cut_rows(plan, _most_items(plan))
    else:
        _cut_whole_axes(plan, _most_items(plan))
    _count_blocks(plan)

    plan.scratch_bytes = 0
    for k in range(call.nest.n):
        _choose_access(plan, k)
    _lay_out_values(plan)


# Whether a block is some rows, or one long row


cdef inline void _choose_layout(BlockPlan *plan) noexcept:
    """Choose whether the loop is called for each row or once for a block, or our loop for many rows is called."""
    cdef const Call *call = plan.call
    cdef int last = call.nest.rank - 1, axis
    cdef Py_ssize_t rows = 1

    for axis in range(last):
        rows *= call.nest.shape[axis]

    # The cost of a call is negligible for a long row, or if there are few calls.
    plan.by_rows = (call.nest.shape[last] >= APPLY_LONG_ROW_ITEMS or rows <= APPLY_FEW_ROWS) and (
        not _has_slow_repetition(call)
    )
    plan.row_loop = NULL
    if not plan.by_rows and call.row_loop != NULL and _suits_row_loop(call):
        plan.row_loop, plan.by_rows = call.row_loop, True


cdef inline bint _has_slow_repetition(const Call *call) noexcept:
    """Whether a buffer must repeat an operand's only item of a row, because the loop is slow with a stride of 0."""
    cdef int last = call.nest.rank - 1, k
    for k in range(call.nest.n):
        if call.slow_with_stride_0 >> k & 1 and call.operands[k].strides[last] == 0:
            return True
    return False


cdef inline bint _suits_row_loop(const Call *call) noexcept:
    """Whether our loop for many rows suits: many rows, not short, at most one operand with a single item for each."""
    cdef int last = call.nest.rank - 1
    if call.nest.shape[last] < LONG_AXIS_ITEMS or call.nest.shape[last - 1] < APPLY_FEW_ROWS:
        return False
    return _is_adjacent(call) and (call.operands[0].strides[last] != 0 or call.operands[1].strides[last] != 0)


# The extent of a block along each axis


cdef inline Py_ssize_t _most_items(const BlockPlan *plan) noexcept:
    """The most items of a block: if some go through buffers, those of all operands fit a first-level cache."""
    cdef const Call *call = plan.call
    cdef int last = call.nest.rank - 1, output = call.nest.n - 1, k
    cdef Py_ssize_t item_bytes = 0      # size of the items of all operands, and of the results of steps
    cdef bint is_buffered = call.step_count > 1, is_one_for_a_row

    for k in range(call.nest.n):
        is_buffered = is_buffered or _needs_buffer(plan, k)
        is_one_for_a_row = call.step_count > 0 and plan.by_rows and call.operands[k].strides[last] == 0
        if k == output or not is_one_for_a_row:
            item_bytes += call.operands[k].loop_size
    if call.step_count > 1 and call.steps[0].fused_count < call.step_count:
        item_bytes += 2 * _widest_step(call)
    return APPLY_BLOCK_BYTES // item_bytes if is_buffered else <Py_ssize_t> SHARE_ITEMS


cdef inline bint _needs_buffer(const BlockPlan *plan, int k) noexcept:
    """Whether an operand's items go through a buffer, as far as known before blocks are chosen."""
    cdef const Call *call = plan.call
    cdef const Operand *operand = &call.operands[k]
    cdef Py_ssize_t stride = operand.strides[call.nest.rank - 1]

    if plan.by_rows and call.step_count and _is_transposed(call, k):
        return True
    if operand.cast != NULL or not operand.readable:
        return not (plan.by_rows and stride == 0)
    if call.side_by_side and stride != 0 and stride != operand.size:
        return True
    if plan.by_rows:
        return False
    return call.slow_with_stride_0 >> k & 1 and stride == 0 or not _is_even(call, k, 0, call.nest.shape[0])


cdef inline bint _is_transposed(const Call *call, int k) noexcept:
    """Whether an operand's neighbours in a column are closer than those in a row: a tile of such rows is transposed.

    Neighbours in a row are cache lines apart, or cannot be read in place. Only columns that overlap exceed a line.
    """
    cdef int last = call.nest.rank - 1
    cdef Py_ssize_t rows = call.nest.shape[last - 1]
    cdef Py_ssize_t stride = llabs(call.nest.stride[k][last]), row_stride = llabs(call.nest.stride[k][last - 1])
    if row_stride == 0 or row_stride >= stride:
        return False
    return stride >= LINE or (call.side_by_side and rows < LINE)


cdef bint _is_even(const Call *call, int k, int axis, Py_ssize_t length) noexcept:
    """Whether a single stride separates the items along an axis, over this length, and all axes within."""
    cdef const Py_ssize_t *strides = call.nest.stride[k]
    cdef int i
    for i in range(axis, call.nest.rank - 1):
        if (length if i == axis else call.nest.shape[i]) > 1 and (
            strides[i] != call.nest.shape[i + 1] * strides[i + 1]
        ):
            return False
    return True


cdef inline void _cut_rows(BlockPlan *plan, Py_ssize_t items) noexcept:
    """Cut rows, or parts of them, from the last axis but one; of transposed operands, tiles of a few long rows."""
    cdef const Call *call = plan.call
    cdef int last = call.nest.rank - 1, axis, k
    cdef Py_ssize_t row_length = call.nest.shape[last], rows = call.nest.shape[last - 1], part = row_length
    cdef Py_ssize_t widest = 0      # bytes of an item of the transposed operands with items cache lines apart
    cdef bint has_transposed = False

    for k in range(call.nest.n):
        if _is_transposed(call, k):
            has_transposed = True
            if llabs(call.operands[k].strides[last]) >= LINE:
                widest = max(widest, call.operands[k].loop_size)

    if widest:
        part = _even(row_length, 2 * PAGE // widest)     # each row is one stream
        if part * widest % CACHE_SETS_BYTES == 0:
            part = _even(row_length, APPLY_LONG_ROW_ITEMS)
        items = APPLY_TILE_ROWS * part
    elif has_transposed:
        part = _even(row_length, max(items // rows, <Py_ssize_t> APPLY_LONG_ROW_ITEMS))
        items = part * rows
    elif row_length > items:
        part = _even(row_length, items)

    plan.cut = last - 1
    for axis in range(plan.cut):
        plan.lengths[axis] = 1
    plan.lengths[plan.cut] = _even(rows, max(<Py_ssize_t> 1, items // part))
    plan.lengths[last] = part


cdef inline void _cut_whole_axes(BlockPlan *plan, Py_ssize_t items) noexcept:
    """Choose as many whole innermost axes as fit a block, and a part of the next one."""
    cdef const Call *call = plan.call
    cdef int axis
    cdef Py_ssize_t inner = 1, enough = APPLY_LONG_ROW_ITEMS

    plan.cut = call.nest.rank - 1
    while plan.cut and 2 * inner * call.nest.shape[plan.cut] <= items:
        plan.lengths[plan.cut] = call.nest.shape[plan.cut]
        inner *= call.nest.shape[plan.cut]
        plan.cut -= 1

    if _has_slow_repetition(call):
        enough *= 4     # one item for a row is one axis of copies
    if inner >= enough:
        items = inner
    for axis in range(plan.cut):
        plan.lengths[axis] = 1
    plan.lengths[plan.cut] = _even(call.nest.shape[plan.cut], max(<Py_ssize_t> 1, items // inner))


cdef inline Py_ssize_t _even(Py_ssize_t length, Py_ssize_t limit) noexcept:
    """The length of a part if a length is cut into the fewest nearly equal parts of about `limit` at most."""
    cdef Py_ssize_t parts = (length + limit - 1) // limit
    cdef Py_ssize_t part = (length + parts - 1) // parts
    return part if parts == 1 or part < LINE else whole_lines(part)       # so that parts begin at a line


cdef inline void _count_blocks(BlockPlan *plan) noexcept:
    """Count the blocks along each axis, and all of them."""
    cdef int axis
    plan.blocks = 1
    for axis in range(plan.call.nest.rank):
        plan.parts[axis] = (plan.call.nest.shape[axis] + plan.lengths[axis] - 1) // plan.lengths[axis]
        plan.blocks *= plan.parts[axis]


# How the loop accesses operands


cdef void _choose_access(BlockPlan *plan, int k) noexcept:
    """Choose whether the loop accesses an operand's items in place, or in a buffer, converted or repeated there."""
    cdef const Operand *operand = &plan.call.operands[k]
    cdef Access *access = &plan.access[k]
    cdef Py_ssize_t stride = operand.strides[plan.call.nest.rank - 1]
    cdef bint has_several, repeats_slowly

    find_items(plan, k, plan.lengths, &access.items)
    has_several = access.items.count > 1
    repeats_slowly = plan.call.slow_with_stride_0 >> k & 1
    access.is_expanded = access.items.full_count > access.items.count and not plan.by_rows and (
        has_several or repeats_slowly
    )
    access.stride = stride if has_several else 0
    access.row_stride = operand.strides[plan.cut] if has_several else 0
    access.is_direct = _is_read_in_place(plan, k)
    if not access.is_direct:
        _lay_out_buffers(plan, k)
        access.stride = 0
        if access.is_expanded or has_several and not (plan.by_rows and stride == 0):
            access.stride = operand.loop_size


cdef inline bint _is_read_in_place(const BlockPlan *plan, int k) noexcept:
    """Whether the loop reads, or writes, an operand's items in place."""
    cdef const Call *call = plan.call
    cdef const Operand *operand = &call.operands[k]
    cdef const Access *access = &plan.access[k]

    if operand.cast != NULL or not operand.readable or operand.strides[call.nest.rank - 1] % operand.size:
        return False
    if call.side_by_side and access.stride != operand.loop_size and access.stride != 0:
        return False
    if plan.by_rows:
        return not _is_transposed(call, k)
    return _is_even(call, k, plan.cut, plan.lengths[plan.cut]) and (
        access.items.count > 1 or not access.is_expanded
    )


cdef inline void _lay_out_buffers(BlockPlan *plan, int k) noexcept:
    """Assign an operand buffers in the scratch: for its items unchanged, converted, and repeated."""
    cdef const Operand *operand = &plan.call.operands[k]
    cdef Access *access = &plan.access[k]
    access.buffer = access.loop_buffer = plan.scratch_bytes
    plan.scratch_bytes += whole_lines(access.items.count * operand.size)
    if operand.cast != NULL:
        access.cast_buffer = access.loop_buffer = plan.scratch_bytes
        plan.scratch_bytes += whole_lines(access.items.count * operand.loop_size)
    if access.is_expanded:
        access.full_buffer = access.loop_buffer = plan.scratch_bytes
        access.copies = plan.scratch_bytes + whole_lines(access.items.full_count * operand.loop_size)
        plan.scratch_bytes = access.copies + whole_lines(sizeof(Plan))


cdef void find_items(const BlockPlan *plan, int k, const Py_ssize_t *lengths, Items *items) noexcept nogil:
    """Describe an operand's items in a block of these lengths."""
    cdef const Operand *operand = &plan.call.operands[k]
    cdef int axis
    items.size, items.rank, items.count, items.full_count = operand.size, 0, 1, 1
    for axis in range(plan.call.nest.rank - 1, plan.cut - 1, -1):
        items.full_count *= lengths[axis]
        if operand.strides[axis] == 0 or lengths[axis] == 1:
            continue
        if items.rank == 0 and operand.strides[axis] == items.size:
            items.size *= lengths[axis]
        else:
            items.lengths[items.rank] = lengths[axis]
            items.strides[items.rank] = operand.strides[axis]
            items.packed[items.rank] = items.count * operand.size
            items.rank += 1
        items.count *= lengths[axis]


cdef inline void _lay_out_values(BlockPlan *plan) noexcept:
    """Assign the results of a chain's steps two alternating buffers after those of operands."""
    cdef const Call *call = plan.call
    cdef Py_ssize_t items = plan.access[call.nest.n - 1].items.full_count
    cdef int k
    if call.step_count == 0:
        return
    if plan.by_rows:
        items = plan.lengths[call.nest.rank - 1]
    for k in range(2):
        plan.values[k] = plan.scratch_bytes
        plan.scratch_bytes += whole_lines(items * _widest_step(call))


cdef inline Py_ssize_t _widest_step(const Call *call) noexcept:
    """The bytes of the widest item among the results of a chain's steps."""
    cdef Py_ssize_t widest = 0
    cdef int i
    for i in range(call.step_count):
        widest = max(widest, call.steps[i].size)
    return widest


# Folds


cdef bint plan_folds(FoldPlan *plan) noexcept:
    """Choose the axis along which vectors run, and the unit of work; return whether there is such an axis.

    The caller has described the nest, the kernel's items and functions, and the size of results. If each lane has a
    result, as in distances of points, the coordinates of a piece of points are gathered first, one row for each:

        many    other points: the gathered items serve all of them, or a lane's results are contiguous
        depth   terms of a result
        lanes   results

    If lanes are terms of one result, as in counts of classes, `many` are results that read the same piece. The search
    for positions of extremes, such as nearest points, runs along lanes or `many`, over rows that are in no array.
    """
    cdef Nest *nest = &plan.nest
    cdef bint along_lanes
    drop_unit_axes(nest)
    coalesce_axes(nest)
    plan.is_along = False
    plan.lanes = _lanes_of_results(plan)
    plan.sought = _sought_axis(plan)
    if plan.has_positions and (plan.lanes < 0 or plan.sought < 0):
        return False
    if plan.lanes >= 0 and (plan.has_positions or not _are_better_along(plan)):
        along_lanes = plan.sought == plan.lanes
        _place_axes(plan, _many_of_results(plan), _first_reduced(nest))
        plan.sought = plan.lanes if along_lanes else plan.many
    else:
        plan.is_along = True
        plan.lanes = _lanes_along(plan)
        if plan.lanes < 0:
            return False
        _place_axes(plan, _last_kept(nest), -1)
    return _plan_pieces(plan)


cdef inline int size_of_items(const FoldPlan *plan, int k) noexcept:
    """The bytes of an item of an operand."""
    return plan.given_size if k == 0 and plan.cast != NULL else plan.kernel.size


cdef inline bint is_kept(const Nest *nest, int axis) noexcept:
    """Whether an axis is kept: no terms are folded along it."""
    return nest.stride[nest.n - 2][axis] != 0


cdef int _first_reduced(const Nest *nest) noexcept:
    """The outermost axis along which terms are folded; -1 if there is none."""
    cdef int axis
    for axis in range(nest.rank):
        if not is_kept(nest, axis):
            return axis
    return -1


cdef int _last_kept(const Nest *nest) noexcept:
    """The innermost axis of the results; -1 if there is none."""
    cdef int axis
    for axis in range(nest.rank - 1, -1, -1):
        if is_kept(nest, axis):
            return axis
    return -1


cdef int _sought_axis(const FoldPlan *plan) noexcept:
    """The axis along which positions are sought; -1 if there is none."""
    cdef const Nest *nest = &plan.nest
    cdef int axis
    for axis in range(nest.rank):
        if is_kept(nest, axis) and nest.stride[nest.n - 1][axis] == 0:
            return axis
    return -1


cdef int _lanes_of_results(const FoldPlan *plan) noexcept:
    """The axis of results along which vectors would run: the last one, or if it is short, the longest; else -1.

    One call of the kernel folds all terms of a result: along one axis.
    """
    cdef const Nest *nest = &plan.nest
    cdef int last = _last_kept(nest), longest = last, reduced = 0, axis
    for axis in range(nest.rank):
        if not is_kept(nest, axis):
            reduced += 1
        elif nest.shape[axis] > nest.shape[longest]:
            longest = axis
    if last < 0 or reduced > 1:
        return -1
    if _can_be_lanes(plan, last):
        return last
    return longest if _can_be_lanes(plan, longest) else -1


cdef inline bint _can_be_lanes(const FoldPlan *plan, int axis) noexcept:
    """Whether vectors can run along an axis: it is long, and converted terms have separate items along it."""
    return plan.nest.shape[axis] >= LONG_AXIS_ITEMS and (plan.cast == NULL or plan.nest.stride[0][axis])


cdef bint _are_better_along(const FoldPlan *plan) noexcept:
    """Whether lanes should be terms of one result: there are many, and only one result would use the gathered terms."""
    cdef const Nest *nest = &plan.nest
    cdef int reduced = _first_reduced(nest), axis, k
    cdef Py_ssize_t stride
    cdef bint is_shared

    if reduced < 0 or nest.shape[reduced] < FOLD_MANY_TERMS or _lanes_along(plan) < 0:
        return False
    for k in range(nest.n - 2):
        stride = nest.stride[k][plan.lanes]
        if stride == 0 or stride == size_of_items(plan, k):
            continue
        is_shared = False
        for axis in range(nest.rank):
            is_shared = is_shared or is_kept(nest, axis) and nest.stride[k][axis] == 0
        if not is_shared:
            return True
    return False


cdef int _lanes_along(const FoldPlan *plan) noexcept:
    """The axis of terms along which vectors would run: it has the most contiguous operands; or -1."""
    cdef const Nest *nest = &plan.nest
    cdef int best = -1, most = -1, neighbours, axis, k
    for axis in range(nest.rank):
        if is_kept(nest, axis) or nest.shape[axis] < LONG_AXIS_ITEMS:
            continue
        neighbours = 0
        for k in range(nest.n - 2):
            neighbours += nest.stride[k][axis] == size_of_items(plan, k)
        if neighbours > most or neighbours == most and nest.shape[axis] > nest.shape[best]:
            best, most = axis, neighbours
    return best


cdef int _many_of_results(const FoldPlan *plan) noexcept:
    """The axis of rows that are computed together: the last one if lanes are not contiguous; otherwise one along which
    the gathered items serve all rows, or else the longest one. -1 if there is none.
    """
    cdef const Nest *nest = &plan.nest
    cdef int last = _last_kept(nest), best = -1, axis
    cdef bint serves, best_serves = False

    if plan.has_positions and plan.sought != plan.lanes:
        return plan.sought
    if last != plan.lanes and not plan.has_positions:
        return last
    for axis in range(nest.rank):
        if axis == plan.lanes or not is_kept(nest, axis):
            continue
        serves = _serves_rows_along(plan, axis)
        if best < 0 or serves > best_serves or serves == best_serves and nest.shape[axis] > nest.shape[best]:
            best, best_serves = axis, serves
    return best


cdef inline bint _serves_rows_along(const FoldPlan *plan, int axis) noexcept:
    """Whether some operand has the same lanes for all rows along an axis."""
    cdef const Nest *nest = &plan.nest
    cdef int k
    for k in range(nest.n - 2):
        if nest.stride[k][axis] == 0 and nest.stride[k][plan.lanes]:
            return True
    return False


cdef void _place_axes(FoldPlan *plan, int many, int depth) noexcept:
    """Put three axes inside all others, where axes with results come first; an axis -1 becomes one of length 1."""
    cdef Nest placed = plan.nest
    cdef int rank = 0, axis, part
    for part in range(2):       # kept outer axes, then reduced ones
        for axis in range(plan.nest.rank):
            if axis in (many, depth, plan.lanes) or is_kept(&plan.nest, axis) != (part == 0):
                continue
            _take_axis(&placed, rank, &plan.nest, axis)
            rank += 1
        if part == 0:
            plan.outer_kept = rank
    _take_axis(&placed, rank, &plan.nest, many)
    _take_axis(&placed, rank + 1, &plan.nest, depth)
    _take_axis(&placed, rank + 2, &plan.nest, plan.lanes)
    plan.many, plan.depth, plan.lanes = rank, rank + 1, rank + 2
    placed.rank = rank + 3
    plan.nest = placed


cdef inline void _take_axis(Nest *to, int place, const Nest *nest, int axis) noexcept:
    """Copy an axis of one nest, or for -1 one of length 1, to a place in another."""
    cdef int k
    to.shape[place] = nest.shape[axis] if axis >= 0 else 1
    for k in range(nest.n):
        to.stride[k][place] = nest.stride[k][axis] if axis >= 0 else 0


cdef bint _plan_pieces(FoldPlan *plan) noexcept:
    """Choose the lanes and rows of a unit, and the operands to gather; return whether a cache holds them."""
    cdef Py_ssize_t many = plan.nest.shape[plan.many], kept, lane_bytes
    cdef bint seeks_rows = plan.has_positions and plan.sought == plan.many

    plan.kernel.depth = plan.nest.shape[plan.depth]
    if _counts_overflow(plan):
        return False

    plan.rows = many if seeks_rows else min(many, <Py_ssize_t> SUM_CALL_ROWS)
    if not _choose_gathered(plan):
        return False

    kept = _count_kept(plan)
    lane_bytes = _bytes_of_lane(plan)
    _choose_piece(plan, lane_bytes, kept)
    if plan.piece * lane_bytes > 8 * L1:
        return False

    _lay_out_gathered(plan)
    _cut_units(plan, kept)
    return True


cdef inline bint _counts_overflow(const FoldPlan *plan) noexcept:
    """Whether the terms of a lane are bytes, and more than a byte can count."""
    cdef const Folding *kernel = &plan.kernel
    return kernel.fold == FOLD_COUNT and kernel.size == 1 and not plan.is_along and kernel.depth > MOST_BYTE_TERMS


cdef bint _choose_gathered(FoldPlan *plan) noexcept:
    """Record which operands are not contiguous along the lanes; return whether converted data have lanes."""
    cdef const Nest *nest = &plan.nest
    cdef int results = nest.n - 1, k
    cdef Py_ssize_t stride

    for k in range(results - 1):
        stride = nest.stride[k][plan.lanes]
        plan.is_gathered[k] = stride != 0 and stride != plan.kernel.size
    if plan.cast != NULL:
        plan.is_gathered[0] = True

    plan.is_scattered = nest.stride[results][plan.lanes] != plan.result_size
    plan.is_scattered = plan.is_scattered and not plan.is_along and not plan.has_positions
    return plan.cast == NULL or nest.stride[0][plan.lanes] != 0


cdef Py_ssize_t _bytes_of_lane(const FoldPlan *plan) noexcept:
    """The bytes of scratch per lane."""
    cdef Py_ssize_t size = plan.kernel.size, nbytes = 0
    cdef int k

    for k in range(plan.nest.n - 2):
        if plan.is_gathered[k]:
            nbytes += _gathered_rows(plan, k) * size
    if plan.cast != NULL:
        nbytes += _gathered_rows(plan, 0) * plan.given_size
    if plan.is_scattered:
        nbytes += plan.rows * plan.result_size
    if plan.has_positions:
        nbytes += 3 * size
    return nbytes


cdef Py_ssize_t _count_kept(const FoldPlan *plan) noexcept:
    """The number of units if neither lanes nor terms are cut."""
    cdef Py_ssize_t kept = count_pieces(plan.nest.shape[plan.many], plan.rows)
    cdef int axis

    for axis in range(plan.outer_kept):
        kept *= plan.nest.shape[axis]
    return kept


cdef void _choose_piece(FoldPlan *plan, Py_ssize_t lane_bytes, Py_ssize_t kept) noexcept:
    """Choose the lanes of a unit: their scratch fits a cache, and there are enough for all threads."""
    cdef Py_ssize_t lanes = plan.nest.shape[plan.lanes]
    cdef bint makes_rows = plan.has_positions and plan.sought == plan.lanes     # whole ones

    plan.piece = SUM_BLOCK_ITEMS
    if lane_bytes:
        plan.piece = min(plan.piece, L1 // lane_bytes // LONG_AXIS_ITEMS * LONG_AXIS_ITEMS)
        plan.piece = max(plan.piece, 2 * <Py_ssize_t> LONG_AXIS_ITEMS)

    if kept < FEW_UNITS and not plan.is_along and not makes_rows:
        plan.piece = min(plan.piece, max(4 * <Py_ssize_t> LONG_AXIS_ITEMS, count_pieces(lanes, FEW_UNITS)))
        plan.piece = count_pieces(plan.piece, LONG_AXIS_ITEMS) * LONG_AXIS_ITEMS
    plan.piece = min(plan.piece, lanes)


cdef void _cut_units(FoldPlan *plan, Py_ssize_t kept) noexcept:
    """Count the units that threads share, and the parts of the terms of one result."""
    cdef Py_ssize_t chunks = 1
    cdef int axis

    for axis in range(plan.outer_kept, plan.many):
        chunks *= plan.nest.shape[axis]
    if not plan.has_positions or plan.sought == plan.many:
        chunks *= count_pieces(plan.nest.shape[plan.lanes], plan.piece)

    plan.parts = 1
    if not plan.is_along:
        plan.units = kept * chunks
        return
    # By shapes alone, because the bits of sums depend on the parts.
    if kept < FEW_UNITS and chunks * plan.piece >= 2 * SHARE_ITEMS:
        plan.parts = min(chunks, <Py_ssize_t> SUM_SHARES)
    plan.units = kept * plan.parts


cdef inline Py_ssize_t _gathered_rows(const FoldPlan *plan, int k) noexcept:
    """The number of an operand's rows that are gathered together."""
    cdef const Nest *nest = &plan.nest
    if plan.is_along:
        return plan.rows if nest.stride[k][plan.many] else 1
    return nest.shape[plan.depth] if nest.stride[k][plan.depth] else 1


cdef Py_ssize_t _lay_out_operand(FoldPlan *plan, int k, Py_ssize_t at) noexcept:
    """Assign places from `at` on to the gathered items of an operand, and strides; return their end."""
    cdef Py_ssize_t rows = _gathered_rows(plan, k), row_bytes = plan.piece * plan.kernel.size
    plan.gathered[k] = at
    at += whole_lines(rows * row_bytes)
    if k == 0 and plan.cast != NULL:
        plan.given = at
        at += whole_lines(rows * plan.piece * plan.given_size)

    plan.strides[k] = plan.kernel.size
    if plan.is_along and plan.row_strides[k]:
        plan.row_strides[k] = row_bytes
    if not plan.is_along and plan.depth_strides[k]:
        plan.depth_strides[k] = row_bytes
    return at


cdef void _lay_out_gathered(FoldPlan *plan) noexcept:
    """Assign places in a thread's scratch, and the strides that kernels get."""
    cdef const Nest *nest = &plan.nest
    cdef Py_ssize_t at = 0, size = plan.kernel.size
    cdef int k

    for k in range(nest.n - 2):
        plan.strides[k] = nest.stride[k][plan.lanes]
        plan.depth_strides[k] = nest.stride[k][plan.depth]
        plan.row_strides[k] = nest.stride[k][plan.many]
        if plan.is_gathered[k]:
            at = _lay_out_operand(plan, k, at)
    plan.scattered = at
    if plan.is_scattered:
        at += whole_lines(plan.rows * plan.piece * plan.result_size)
    if plan.has_positions:
        at += whole_lines(plan.piece * size)
    plan.best = at
    if plan.has_positions:
        at += 2 * whole_lines(plan.piece * size)
    plan.states = at
    if plan.is_along or plan.has_positions:
        at += plan.rows * <Py_ssize_t> sizeof(Folded)
    plan.scratch_bytes = at
