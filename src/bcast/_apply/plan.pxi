# From operands to blocks on which a loop runs.
#
# In: operands, and the axes of the result. Out: a MapPlan. `merge_axes` makes few long axes of the nest's many ones;
# `plan_blocks` chooses the part of them that is a block, and how the loop gets each operand's items of one.

cdef enum:
    MAX_STEPS = 24      # of a chain of MAX_OPERANDS operands, with all its conversions

# Loops as NumPy's: on items at steps of their own, which they may not have in common.
ctypedef int (*Loop)(
    void *context, char *const *data, const Py_ssize_t *dims, const Py_ssize_t *steps, void *auxdata
) noexcept nogil

ctypedef void (*RowLoop)(   # of our own, in loops.h
    Py_ssize_t rows, Py_ssize_t n, char *const *data, const Py_ssize_t *steps, const Py_ssize_t *row_steps
) noexcept nogil

cdef struct Items:          # of an operand, in a block, but for repetitions: a run of them that is one long item,
    Py_ssize_t size         # of so many bytes, and further ones along some axes, innermost first
    int rank
    Py_ssize_t[MAX_AXES] lengths, strides
    Py_ssize_t[MAX_AXES] packed     # strides where they lie side by side
    Py_ssize_t count
    Py_ssize_t full_count   # with repetitions

cdef struct Operand:
    PyObject *array         # which the caller holds; NULL for a Python scalar
    Py_ssize_t *strides     # in the nest: 0 where the operand is repeated
    Py_ssize_t size         # bytes of an item in memory,
    Py_ssize_t loop_size    # and of one that the loop takes
    Cast cast               # from the one to the other, or back for the output; NULL if they are the same
    int swapped             # bytes of the units that lie in memory in the other order; 0 if none do
    bint readable           # C may read the items where they lie: they are aligned, and in the machine's order
    # What the plan says:
    Items items             # of a block, if no axis ends in it
    bint direct             # the loop reads or writes them where they lie; if not, in a buffer
    bint expanded           # items are repeated in the buffer
    Py_ssize_t step         # the loop's, between items,
    Py_ssize_t row_step     # and between rows, where it lies
    Py_ssize_t buffer, cast_buffer, full_buffer     # where buffers begin: of items as they are, converted, repeated;
    Py_ssize_t loop_buffer  # which of them the loop gets;
    Py_ssize_t copies       # and the plan of the copies that repeat items

cdef struct Step:           # of a chain: a loop, or a conversion
    const char *name        # as floating-point errors are told,
    bint tells_errors       # unless NumPy says of its loop that it has none
    bint clears_errors      # of all that was before it
    Loop loop               # NULL for a conversion
    void *context
    void *auxdata
    Cast cast               # NULL for a loop
    int operand             # the second one of the loop, or 0,
    int other               # and the third one, or 0
    bint implied            # a conversion that the next step asks for
    bint in_pieces          # what it takes has several axes; found where errors of conversions are noted,
    Py_ssize_t taken        # as is how many items that has
    Py_ssize_t size         # bytes of an item that it gives
    int fused               # steps, from this one on, that are one loop; 0 or 1 if there is none
    uint8_t function        # the number that it has there

cdef struct MapPlan:
    Nest nest               # the axes of the result, and the operands, of which the output is the last one
    Loop loop               # of all but chains
    void *context
    void *auxdata
    RowLoop row_loop        # in place of the loop where the plan has many short rows; NULL if there is none
    int n_steps             # of a chain; 0 if it is none
    Step[MAX_STEPS] steps
    bint side_by_side       # the loop takes only items side by side, or one for all;
    int slow_with_stride_0  # bits of operands of which it takes one item for all, but slowly: a buffer repeats it
    int slow_unfused        # the same of those steps that are fused where they can be, for where they cannot
    int bools               # bits of operands that are bools whose bytes the loop compares
    int tells               # bits of operands that are floats whose conversions' errors are noted on their own
    int reshaped            # bits of operands that have more axes when NumPy gets them
    bint in_place           # the output is an operand, too
    Operand[MAX_OPERANDS] operands
    # What the plan says: a block has one index of each axis before `cut`, and one call of the loop for all others; or
    # if `by_rows`, for each index of the last axis but one.
    bint by_rows
    int cut
    Py_ssize_t[MAX_AXES] lengths    # of a block, if no axis ends in it,
    Py_ssize_t[MAX_AXES] parts      # and how many blocks there are along each axis
    Py_ssize_t blocks
    Py_ssize_t scratch_bytes        # of the buffers that each thread has
    Py_ssize_t[2] values    # where the buffers begin of what steps of a chain give



cdef void merge_axes(MapPlan *plan, const int *order) noexcept:
    """Put the axes in an order, if there is one, and merge those that are one for all operands; keep two."""
    if order != NULL:
        put_in_order(&plan.nest, order)
    drop_unit_axes(&plan.nest)
    coalesce_axes(&plan.nest)
    keep_rank(&plan.nest, 2)


cdef void plan_blocks(MapPlan *plan) noexcept:
    """Choose the block that is computed at a time, and how the loop gets each operand's items of one."""
    cdef int k

    _choose_layout(plan)
    if plan.by_rows:
        _cut_rows(plan, _most_items(plan))
    else:
        _cut_whole_axes(plan, _most_items(plan))
    _count_blocks(plan)

    plan.scratch_bytes = 0
    for k in range(plan.nest.n):
        _choose_access(plan, k)
    _lay_out_values(plan)


cdef inline void _choose_layout(MapPlan *plan) noexcept:
    """Choose whether the loop is called for each row, or once for a block; or a loop of our own for many rows."""
    cdef int last = plan.nest.rank - 1, axis
    cdef Py_ssize_t rows = 1
    for axis in range(last):
        rows *= plan.nest.shape[axis]

    # A call for a row costs nothing beside a long row, and few calls cost nothing.
    plan.by_rows = (plan.nest.shape[last] >= APPLY_LONG_ROW_ITEMS or rows <= APPLY_FEW_ROWS) and (
        not _has_slow_repetition(plan)
    )
    if plan.by_rows or not _suits_row_loop(plan):
        plan.row_loop = NULL
    if plan.row_loop != NULL:
        plan.by_rows = True


cdef inline bint _has_slow_repetition(const MapPlan *plan) noexcept:
    """Whether an operand has one item for a row, which the loop takes slowly: a buffer is to repeat it."""
    cdef int last = plan.nest.rank - 1, k
    for k in range(plan.nest.n):
        if plan.slow_with_stride_0 >> k & 1 and plan.operands[k].strides[last] == 0:
            return True
    return False


cdef inline bint _suits_row_loop(const MapPlan *plan) noexcept:
    """Whether rows are many, not short, and as a loop of our own takes them: one operand at most is one item for each.
    """
    cdef int last = plan.nest.rank - 1
    if plan.nest.shape[last] < APPLY_SHORT_ROW_ITEMS or plan.nest.shape[last - 1] < APPLY_FEW_ROWS:
        return False
    return _is_adjacent(plan) and (plan.operands[0].strides[last] != 0 or plan.operands[1].strides[last] != 0)


cdef inline Py_ssize_t _most_items(const MapPlan *plan) noexcept:
    """How many items a block may have: if some go through buffers, what a first-level cache holds of all operands."""
    cdef int last = plan.nest.rank - 1, output = plan.nest.n - 1, k
    cdef Py_ssize_t item_bytes = 0      # of all operands, and of what steps give
    cdef bint is_buffered = plan.n_steps > 1, is_one_for_a_row

    for k in range(plan.nest.n):
        is_buffered = is_buffered or _needs_buffer(plan, k)
        is_one_for_a_row = plan.n_steps > 0 and plan.by_rows and plan.operands[k].strides[last] == 0
        if k == output or not is_one_for_a_row:
            item_bytes += plan.operands[k].loop_size
    if plan.n_steps > 1 and plan.steps[0].fused < plan.n_steps:
        item_bytes += 2 * _widest_step(plan)
    return APPLY_BLOCK_BYTES // item_bytes if is_buffered else <Py_ssize_t> APPLY_DIRECT_ITEMS


cdef inline bint _needs_buffer(const MapPlan *plan, int k) noexcept:
    """Whether an operand's items go through a buffer, as far as that can be said before there are blocks."""
    cdef const Operand *operand = &plan.operands[k]
    cdef Py_ssize_t stride = operand.strides[plan.nest.rank - 1]

    if plan.by_rows and plan.n_steps and _is_transposed(plan, operand):
        return True
    if operand.cast != NULL or not operand.readable:
        return not (plan.by_rows and stride == 0)
    if plan.side_by_side and stride != 0 and stride != operand.size:
        return True
    if plan.by_rows:
        return False
    return plan.slow_with_stride_0 >> k & 1 and stride == 0 or not _is_even(plan, operand, 0, plan.nest.shape[0])


cdef inline void _cut_rows(MapPlan *plan, Py_ssize_t items) noexcept:
    """Take rows, or parts of them, from the last axis but one: of transposed operands, tiles of few and long rows."""
    cdef int last = plan.nest.rank - 1, axis
    cdef Py_ssize_t row_length = plan.nest.shape[last], part = row_length, widest = 0   # of transposed items
    cdef bint is_transposed = False
    cdef const Operand *operand

    for axis in range(plan.nest.n):
        operand = &plan.operands[axis]
        if _is_transposed(plan, operand):
            is_transposed = True
            if llabs(operand.strides[last]) >= LINE:
                widest = max(widest, operand.loop_size)

    if widest:
        part = _even(row_length, APPLY_TILE_ROW_BYTES // widest)
        if part * widest & 1023 == 0:      # rows of the buffer would share the same few places of a cache
            part = _even(row_length, APPLY_LONG_ROW_ITEMS)
        items = APPLY_TILE_ROWS * part
    elif is_transposed:
        part = _even(row_length, max(items // plan.nest.shape[last - 1], <Py_ssize_t> APPLY_LONG_ROW_ITEMS))
        items = part * plan.nest.shape[last - 1]
    elif row_length > items:
        part = _even(row_length, items)

    plan.cut = last - 1
    for axis in range(plan.cut):
        plan.lengths[axis] = 1
    plan.lengths[plan.cut] = _even(plan.nest.shape[plan.cut], max(<Py_ssize_t> 1, items // part))
    plan.lengths[last] = part


cdef inline void _cut_whole_axes(MapPlan *plan, Py_ssize_t items) noexcept:
    """Take as many of the innermost axes whole as fit a block, and a part of the next one."""
    cdef int axis
    cdef Py_ssize_t inner = 1, enough = APPLY_WHOLE_ITEMS

    plan.cut = plan.nest.rank - 1
    while plan.cut and 2 * inner * plan.nest.shape[plan.cut] <= items:
        plan.lengths[plan.cut] = plan.nest.shape[plan.cut]
        inner *= plan.nest.shape[plan.cut]
        plan.cut -= 1

    if _has_slow_repetition(plan):
        enough *= 4     # one item for a row is one axis of copies
    if inner >= enough:
        items = inner
    for axis in range(plan.cut):
        plan.lengths[axis] = 1
    plan.lengths[plan.cut] = _even(plan.nest.shape[plan.cut], max(<Py_ssize_t> 1, items // inner))


cdef inline void _count_blocks(MapPlan *plan) noexcept:
    """Count the blocks along each axis, and all of them."""
    cdef int axis
    plan.blocks = 1
    for axis in range(plan.nest.rank):
        plan.parts[axis] = (plan.nest.shape[axis] + plan.lengths[axis] - 1) // plan.lengths[axis]
        plan.blocks *= plan.parts[axis]


cdef inline void _lay_out_values(MapPlan *plan) noexcept:
    """Give what steps of a chain give, in turns, two buffers behind those of operands."""
    cdef int last = plan.nest.rank - 1, k
    cdef Py_ssize_t items = plan.lengths[last] if plan.by_rows else plan.operands[plan.nest.n - 1].items.full_count
    for k in range(2 if plan.n_steps else 0):
        plan.values[k] = plan.scratch_bytes
        plan.scratch_bytes += aligned_size(items * _widest_step(plan))


cdef inline Py_ssize_t _widest_step(const MapPlan *plan) noexcept:
    """The bytes of the widest item that a step of a chain gives."""
    cdef Py_ssize_t widest = 0
    cdef int i
    for i in range(plan.n_steps):
        widest = max(widest, plan.steps[i].size)
    return widest


cdef inline Py_ssize_t _even(Py_ssize_t length, Py_ssize_t limit) noexcept:
    """The length of a part if a length is cut into as few parts of about the same length as `limit` allows, about."""
    cdef Py_ssize_t parts = (length + limit - 1) // limit
    cdef Py_ssize_t part = (length + parts - 1) // parts
    return part if parts == 1 or part < LINE else aligned_size(part)       # so that they begin with a line


cdef inline Py_ssize_t aligned_size(Py_ssize_t size) noexcept nogil:
    return (size + LINE - 1) & -LINE


cdef bint _is_even(const MapPlan *plan, const Operand *operand, int axis, Py_ssize_t length) noexcept:
    """Whether one step leads from item to item along an axis, of which there is that length, and all axes within."""
    cdef int i
    for i in range(axis, plan.nest.rank - 1):
        if (length if i == axis else plan.nest.shape[i]) > 1 and (
            operand.strides[i] != plan.nest.shape[i + 1] * operand.strides[i + 1]
        ):
            return False
    return True


cdef inline bint _is_transposed(const MapPlan *plan, const Operand *operand) noexcept:
    """Whether neighbours in a column lie closer than those in a row: a tile of such rows is transposed.

    Those in a row lie lines apart, or cannot be read where they lie. Only columns that overlap are longer than a line.
    """
    cdef int last = plan.nest.rank - 1
    cdef Py_ssize_t step = llabs(operand.strides[last]), row_step = llabs(operand.strides[last - 1])
    if row_step == 0 or row_step >= step:
        return False
    return plan.nest.shape[last - 1] >= 4 if step >= LINE else plan.side_by_side and plan.nest.shape[last - 1] < LINE


cdef bint _is_adjacent(const MapPlan *plan) noexcept:
    """Whether each operand's items of a row lie side by side, or are one for all of it."""
    cdef int last = plan.nest.rank - 1, k
    for k in range(plan.nest.n):
        if plan.operands[k].strides[last] and plan.operands[k].strides[last] != plan.operands[k].size:
            return False
    return True


cdef void _choose_access(MapPlan *plan, int k) noexcept:
    """Choose whether the loop gets an operand's items where they lie, or in a buffer: converted, or repeated, there."""
    cdef Operand *operand = &plan.operands[k]
    cdef Py_ssize_t stride = operand.strides[plan.nest.rank - 1]
    cdef bint has_several

    find_items(plan, operand, plan.lengths, &operand.items)
    has_several = operand.items.count > 1
    operand.expanded = operand.items.full_count > operand.items.count and not plan.by_rows and (
        has_several or plan.slow_with_stride_0 >> k & 1
    )
    operand.step = stride if has_several else 0
    operand.row_step = operand.strides[plan.cut] if has_several else 0
    operand.direct = _is_read_in_place(plan, operand, has_several)
    if not operand.direct:
        _lay_out_buffers(plan, operand)
        operand.step = 0
        if operand.expanded or has_several and not (plan.by_rows and stride == 0):
            operand.step = operand.loop_size


cdef inline bint _is_read_in_place(const MapPlan *plan, const Operand *operand, bint has_several) noexcept:
    """Whether the loop takes an operand's items, or gives them, where they lie."""
    if operand.cast != NULL or not operand.readable or operand.strides[plan.nest.rank - 1] % operand.size:
        return False
    if plan.side_by_side and operand.step != operand.loop_size and operand.step != 0:
        return False
    if plan.by_rows:
        return not _is_transposed(plan, operand)
    return _is_even(plan, operand, plan.cut, plan.lengths[plan.cut]) and (has_several or not operand.expanded)


cdef inline void _lay_out_buffers(MapPlan *plan, Operand *operand) noexcept:
    """Give an operand buffers in the scratch: for its items as they are, converted, and repeated."""
    operand.buffer = operand.loop_buffer = plan.scratch_bytes
    plan.scratch_bytes += aligned_size(operand.items.count * operand.size)
    if operand.cast != NULL:
        operand.cast_buffer = operand.loop_buffer = plan.scratch_bytes
        plan.scratch_bytes += aligned_size(operand.items.count * operand.loop_size)
    if operand.expanded:
        operand.full_buffer = operand.loop_buffer = plan.scratch_bytes
        operand.copies = plan.scratch_bytes + aligned_size(operand.items.full_count * operand.loop_size)
        plan.scratch_bytes = operand.copies + aligned_size(sizeof(Plan))


cdef void find_items(
    const MapPlan *plan, const Operand *operand, const Py_ssize_t *lengths, Items *items,
) noexcept nogil:
    cdef int i
    items.size, items.rank, items.count, items.full_count = operand.size, 0, 1, 1
    for i in range(plan.nest.rank - 1, plan.cut - 1, -1):
        items.full_count *= lengths[i]
        if operand.strides[i] == 0 or lengths[i] == 1:
            continue
        if items.rank == 0 and operand.strides[i] == items.size:
            items.size *= lengths[i]
        else:
            items.lengths[items.rank], items.strides[items.rank] = lengths[i], operand.strides[i]
            items.packed[items.rank] = items.count * operand.size
            items.rank += 1
        items.count *= lengths[i]
