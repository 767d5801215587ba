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
    int spread              # bits of operands of which it takes one item for all, but slowly: a buffer repeats it;
    int spread_alone        # the same of those steps that are fused where they can be, for where they cannot
    int bools               # bits of operands that are bools whose bytes the loop compares
    int tells               # bits of operands that are floats whose conversions' errors are noted on their own
    int reshaped            # bits of operands that have more axes when NumPy gets them
    bint in_place           # the output is an operand, too
    Operand[MAX_OPERANDS] operands
    # What the plan says: a block has one index of each axis before `cut`, and one call of the loop for all others; or
    # if `rows`, for each index of the last axis but one.
    bint rows
    int cut
    Py_ssize_t[MAX_AXES] lengths    # of a block, if no axis ends in it,
    Py_ssize_t[MAX_AXES] parts      # and how many blocks there are along each axis
    Py_ssize_t blocks
    Py_ssize_t own_bytes    # of the buffers that each thread has
    Py_ssize_t[2] values    # where the buffers begin of what steps of a chain give

cdef enum:
    APPLY_BLOCK_BYTES = 9 * L1 // 16    # of all operands of a block, if some go through buffers
    APPLY_WHOLE_ITEMS = 1024        # of axes that are whole: several of these would make copies of more axes
    APPLY_DIRECT_ITEMS = 65536      # of a block without buffers, which need not stay in a cache
    APPLY_LONG_ROW_ITEMS = 384      # a longer row is worth a call of the loop; few shorter ones need no plan
    APPLY_SHORT_ROW_ITEMS = 32      # a shorter one is one of many in a long row
    APPLY_FEW_ROWS = 32             # which are called for in the time in which buffers are planned; of a tile
    APPLY_SEEN_BLOCKS = 32          # whose errors are looked at together
    APPLY_TILE_ROW_BYTES = 8192     # whole rows of a tile are one stream


cdef void merge_axes(MapPlan *plan, const int *order) noexcept:
    """Put the axes in an order, if there is one, and merge those that are one for all operands; keep two."""
    if order != NULL:
        put_in_order(&plan.nest, order)
    drop_unit_axes(&plan.nest)
    coalesce_axes(&plan.nest)
    keep_rank(&plan.nest, 2)


cdef void plan_blocks(MapPlan *plan) noexcept:
    """Choose the blocks, and how the loop gets each operand."""
    cdef int last = plan.nest.rank - 1, i, k
    cdef Py_ssize_t n = plan.nest.shape[last], rows = 1, inner, items = APPLY_DIRECT_ITEMS, loop_bytes = 0, turned = 0
    cdef Py_ssize_t widest = 0
    cdef bint one, spread = False, interleaved = False, buffered = plan.n_steps > 1
    cdef Operand *operand
    for i in range(last):
        rows *= plan.nest.shape[i]
        plan.lengths[i] = 1
    for k in range(plan.nest.n):
        spread = spread or plan.spread >> k & 1 and plan.operands[k].strides[last] == 0
    plan.rows = not spread and (n >= APPLY_LONG_ROW_ITEMS or rows <= APPLY_FEW_ROWS)
    if (
        plan.rows or n < APPLY_SHORT_ROW_ITEMS or plan.nest.shape[last - 1] < APPLY_FEW_ROWS or not _is_adjacent(plan)
        or plan.operands[0].strides[last] == plan.operands[1].strides[last] == 0
    ):
        plan.row_loop = NULL
    plan.rows = plan.rows or plan.row_loop != NULL
    for k in range(plan.nest.n):
        operand = &plan.operands[k]
        one = operand.strides[last] == 0    # for a row
        if operand.cast != NULL or not operand.readable:
            buffered = buffered or not (plan.rows and one)
        elif plan.side_by_side and not one and operand.strides[last] != operand.size:
            buffered = True
        elif not plan.rows:
            buffered = buffered or plan.spread >> k & 1 and one or not _is_even(plan, operand, 0, plan.nest.shape[0])
        if plan.rows and _is_turned(plan, operand):
            if llabs(operand.strides[last]) >= LINE:
                turned = max(turned, operand.loop_size)
            interleaved = True
            buffered = buffered or plan.n_steps > 0
        if not (plan.n_steps and plan.rows and one) or k == plan.nest.n - 1:
            loop_bytes += operand.loop_size
    for k in range(plan.n_steps):
        widest = max(widest, plan.steps[k].size)
    if plan.n_steps > 1 and plan.steps[0].fused < plan.n_steps:
        loop_bytes += 2 * widest
    if buffered:
        items = APPLY_BLOCK_BYTES // loop_bytes
    if plan.rows:
        plan.cut = last - 1
        inner = n
        if turned:
            inner = _even(n, APPLY_TILE_ROW_BYTES // turned)
            if inner * turned & 1023 == 0:      # rows of the buffer would share the same few places of a cache
                inner = _even(n, APPLY_LONG_ROW_ITEMS)
            items = APPLY_FEW_ROWS * inner
        elif interleaved:
            inner = _even(n, max(items // plan.nest.shape[last - 1], <Py_ssize_t> APPLY_LONG_ROW_ITEMS))
            items = inner * plan.nest.shape[last - 1]
        elif n > items:
            inner = _even(n, items)
        plan.lengths[last] = inner
    else:
        plan.cut = last
        inner = 1
        while plan.cut and 2 * inner * plan.nest.shape[plan.cut] <= items:
            plan.lengths[plan.cut] = plan.nest.shape[plan.cut]
            inner *= plan.nest.shape[plan.cut]
            plan.cut -= 1
        if inner >= (4 if spread else 1) * APPLY_WHOLE_ITEMS:   # one item for a row is one axis of copies
            items = inner
    plan.lengths[plan.cut] = _even(plan.nest.shape[plan.cut], max(<Py_ssize_t> 1, items // inner))
    plan.blocks = 1
    for i in range(plan.nest.rank):
        plan.parts[i] = (plan.nest.shape[i] + plan.lengths[i] - 1) // plan.lengths[i]
        plan.blocks *= plan.parts[i]
    plan.own_bytes = 0
    for k in range(plan.nest.n):
        _plan_operand(plan, &plan.operands[k], k)
    items = plan.lengths[last] if plan.rows else plan.operands[plan.nest.n - 1].items.full_count
    for k in range(2 if plan.n_steps else 0):
        plan.values[k] = plan.own_bytes
        plan.own_bytes += aligned_size(items * widest)


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


cdef inline bint _is_turned(const MapPlan *plan, const Operand *operand) noexcept:
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


cdef void _plan_operand(MapPlan *plan, Operand *operand, int k) noexcept:
    cdef int last = plan.nest.rank - 1
    cdef bint many
    cdef Py_ssize_t inner = operand.strides[last]
    find_items(plan, operand, plan.lengths, &operand.items)
    many = operand.items.count > 1
    operand.expanded = operand.items.full_count > operand.items.count and not plan.rows and (
        many or plan.spread >> k & 1
    )
    operand.step = inner if many else 0
    operand.row_step = operand.strides[plan.cut] if many else 0
    operand.direct = operand.cast == NULL and operand.readable and inner % operand.size == 0 and (
        not _is_turned(plan, operand) if plan.rows
        else _is_even(plan, operand, plan.cut, plan.lengths[plan.cut]) and (many or not operand.expanded)
    ) and (not plan.side_by_side or operand.step == operand.loop_size or operand.step == 0)
    if operand.direct:
        return
    operand.buffer = operand.loop_buffer = plan.own_bytes
    plan.own_bytes += aligned_size(operand.items.count * operand.size)
    if operand.cast != NULL:
        operand.cast_buffer = operand.loop_buffer = plan.own_bytes
        plan.own_bytes += aligned_size(operand.items.count * operand.loop_size)
    if operand.expanded:
        operand.full_buffer = operand.loop_buffer = plan.own_bytes
        operand.copies = plan.own_bytes + aligned_size(operand.items.full_count * operand.loop_size)
        plan.own_bytes = operand.copies + aligned_size(sizeof(Plan))
    operand.step = operand.loop_size if operand.expanded or (many and not (plan.rows and inner == 0)) else 0


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
