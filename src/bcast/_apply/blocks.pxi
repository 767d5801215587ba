# Blocks, which the loop computes one after the other.
#
# In: a MapPlan, and buffers. Out: the result's items. `run_blocks` fills the buffers, calls the loop, and writes
# what it left in a buffer. Buffers stay in a first-level cache, and are the only memory there is beside the operands.

cdef bint is_small(const MapPlan *plan) noexcept:
    """Whether there are few rows, each of which one call of the loop reads and writes where it lies."""
    cdef int k
    if plan.nest.rank != 2 or plan.nest.shape[0] > APPLY_FEW_ROWS or plan.nest.shape[1] > APPLY_LONG_ROW_ITEMS:
        return False
    for k in range(plan.nest.n):
        if plan.operands[k].cast != NULL or not plan.operands[k].readable:
            return False
    return _is_adjacent(plan)


cdef struct Rows:           # of each operand: where a row begins, the loop's step, and the one to the next row
    char *at[MAX_OPERANDS]
    Py_ssize_t[MAX_OPERANDS] steps, row_steps


cdef inline bint _run_rows(
    const MapPlan *plan, Rows *rows, Py_ssize_t count, Py_ssize_t items, char *own, int *errors, Look *look,
) noexcept nogil:
    """Run the loop, or the steps of a chain, on rows of so many items; tell whether it has failed."""
    cdef char *at[MAX_OPERANDS]
    cdef bint failed = False
    cdef int k
    if plan.n_steps == 1 and plan.steps[0].cast != NULL and rows.steps[0]:     # short rows take no longer than the cast
        while count > 0:
            plan.steps[0].cast(items, rows.at[0], rows.at[1])
            rows.at[0] += rows.row_steps[0]
            rows.at[1] += rows.row_steps[1]
            count -= 1
        return False
    while count > 0 and not failed:
        if plan.n_steps:
            failed = run_chain(plan, rows, items, own, errors, look)
        else:
            for k in range(plan.nest.n):
                at[k] = rows.at[k]      # SciPy's loops move what they are given
            failed = plan.loop(plan.context, at, &items, rows.steps, plan.auxdata)
        for k in range(plan.nest.n):
            rows.at[k] += rows.row_steps[k]
        count -= 1
    return failed


cdef void run_small(const MapPlan *plan) noexcept:
    """Run the loop on the rows of a small nest."""
    cdef Rows rows
    cdef int k
    for k in range(plan.nest.n):
        rows.at[k] = plan.nest.data[k]
        rows.row_steps[k], rows.steps[k] = plan.operands[k].strides[0], plan.operands[k].strides[1]
    _run_rows(plan, &rows, plan.nest.shape[0], plan.nest.shape[1], NULL, NULL, NULL)


cdef void run_blocks(const MapPlan *plan, Py_ssize_t begin, Py_ssize_t end, char *own, int *errors) noexcept nogil:
    """Run the loop, or the steps of a chain, on the blocks from `begin` to `end`, or until it fails.

    Floating-point errors of each step are added to `errors`, and after them those of the conversions of each operand
    that tells; those of one step alone are left in the CPU's flags. To look at these, a CPU waits for all that is under
    way: if all steps are fused, it does so once for many blocks, until some are in error.
    """
    cdef const Operand *operand
    cdef char *data[MAX_OPERANDS]
    cdef char *filled[MAX_OPERANDS]     # from where a buffer has the items of a whole block
    cdef Rows rows
    cdef Py_ssize_t[MAX_AXES] lengths
    cdef bint ends                      # whether an axis ends in the block
    cdef Py_ssize_t block = begin, rest, index, items
    cdef Py_ssize_t seen = begin        # blocks before this one are done
    cdef Look look = AT_FUSED
    cdef int k, axis, last = plan.nest.rank - 1, out = plan.nest.n - 1
    memset(filled, 0, sizeof(filled))
    if plan.n_steps > 1 and plan.steps[0].fused == plan.n_steps and plan.operands[0].step and not plan.tells:
        look = LATER
    while block < end:
        rest = block
        items = plan.operands[out].items.full_count
        ends = False
        for k in range(plan.nest.n):
            data[k] = plan.nest.data[k]
        for axis in range(last, -1, -1):
            lengths[axis] = plan.lengths[axis]
            if plan.parts[axis] == 1:
                continue
            index = rest % plan.parts[axis] * plan.lengths[axis]
            rest //= plan.parts[axis]
            if plan.nest.shape[axis] - index < plan.lengths[axis]:
                lengths[axis] = plan.nest.shape[axis] - index
                items = items // plan.lengths[axis] * lengths[axis]
                ends = True
            for k in range(plan.nest.n):
                data[k] += index * plan.operands[k].strides[axis]
        for k in range(plan.nest.n):
            operand = &plan.operands[k]
            rows.at[k], rows.steps[k], rows.row_steps[k] = data[k], operand.step, operand.row_step
            if not operand.direct:
                # A neighbour that differs along an axis on which the operand repeats has the same items.
                if k != out and (data[k] != filled[k] or ends and plan.by_rows):
                    if plan.tells >> k & 1:
                        _fill_and_note(plan, k, lengths, data[k], own, errors)
                    else:
                        _fill(plan, operand, lengths, data[k], own)
                    filled[k] = NULL if ends else data[k]
                rows.at[k] = own + operand.loop_buffer
                if operand.row_step:
                    rows.row_steps[k] = (lengths[last] if operand.strides[last] else 1) * operand.loop_size
        if plan.by_rows:
            items = lengths[last]
        if plan.row_loop != NULL:
            plan.row_loop(lengths[last - 1], items, rows.at, rows.steps, rows.row_steps)
        elif _run_rows(plan, &rows, lengths[last - 1] if plan.by_rows else 1, items, own, errors, &look):
            return
        if not plan.operands[out].direct:
            _empty(plan, &plan.operands[out], lengths, data[out], own)
        block += 1
        if look == LATER and (block == end or block - seen == APPLY_SEEN_BLOCKS):
            if has_errors(ERRORS):
                PyUFunc_clearfperr()
                block, look = seen, AT_FUSED
            seen = block


cdef void _fill_and_note(
    const MapPlan *plan, int k, const Py_ssize_t *lengths, const char *src, char *buffers, int *errors,
) noexcept nogil:
    """Fill the buffers of operand k, and note the errors of its conversion."""
    if has_errors(ERRORS):      # of the loop, in the blocks before
        errors[0] |= PyUFunc_getfperr()
    _fill(plan, &plan.operands[k], lengths, src, buffers)
    if has_errors(ERRORS):
        errors[max(1, plan.n_steps) + k] |= PyUFunc_getfperr()


cdef void _fill(
    const MapPlan *plan, const Operand *operand, const Py_ssize_t *lengths, const char *src, char *buffers,
) noexcept nogil:
    """Fill an operand's buffers with the items of a block: side by side, then converted, then repeated."""
    cdef Items items
    cdef char *dst = buffers + operand.buffer
    cdef Plan *copies
    find_items(plan, operand, lengths, &items)
    if items.rank or not operand.readable or (operand.cast == NULL and not operand.expanded):
        _copy_items(&items, items.rank, items.strides, items.packed, <const uint8_t *> src, <uint8_t *> dst)
        if operand.swapped:
            swap_bytes(target_number, items.count * operand.size // operand.swapped, operand.swapped, dst)
        src = dst
    if operand.cast != NULL:
        dst = buffers + operand.cast_buffer
        operand.cast(items.count, src, dst)
        src = dst
    if operand.expanded:
        dst = buffers + operand.full_buffer
        copies = <Plan *> (buffers + operand.copies)
        copies.src_end = <const uint8_t *> src + items.count * operand.loop_size
        write_planned(
            copies, 0, items.full_count * operand.loop_size, <const uint8_t *> src, <uint8_t *> dst, NULL,
        )


cdef void _empty(
    const MapPlan *plan, const Operand *operand, const Py_ssize_t *lengths, char *dst, char *own,
) noexcept nogil:
    """Write the output's items of a block from its buffer: converted, then to their places."""
    cdef Items items
    cdef char *src = own + operand.buffer
    find_items(plan, operand, lengths, &items)
    if operand.cast != NULL:
        operand.cast(items.count, own + operand.cast_buffer, src)
    if operand.swapped:
        swap_bytes(target_number, items.count * operand.size // operand.swapped, operand.swapped, src)
    _copy_items(&items, items.rank, items.packed, items.strides, <const uint8_t *> src, <uint8_t *> dst)


cdef void _copy_items(
    const Items *items, int rank, const Py_ssize_t *src_steps, const Py_ssize_t *dst_steps, const uint8_t *src,
    uint8_t *dst,
) noexcept nogil:
    """Copy items along so many axes from places at some steps to places at others."""
    cdef Py_ssize_t size = items.size, i
    cdef int inner = dst_steps[0] != size if rank else 0
    cdef int outer = 1 - inner
    cdef Matrix matrix
    if rank == 0:
        memcpy(dst, src, size)
    elif rank == 1:
        if dst_steps[0] == size:
            matrix = Matrix(1, items.lengths[0], size, 0, src_steps[0], 0)
        else:
            matrix = Matrix(items.lengths[0], 1, size, src_steps[0], size, dst_steps[0])
        copy_matrix_of[target_number](&matrix, src, dst)
    elif rank == 2 and dst_steps[inner] == size:
        matrix = Matrix(
            items.lengths[outer], items.lengths[inner], size, src_steps[outer], src_steps[inner], dst_steps[outer],
        )
        copy_matrix_of[target_number](&matrix, src, dst)
    else:
        for i in range(items.lengths[rank - 1]):
            _copy_items(
                items, rank - 1, src_steps, dst_steps, src + i * src_steps[rank - 1], dst + i * dst_steps[rank - 1],
            )


cdef int plan_copies(const MapPlan *plan, char *own, int threads) except -1:
    """Plan the copies that repeat items within a block, for each thread."""
    cdef const Operand *operand
    cdef char *copies
    cdef list shape, source
    cdef int i, k
    for k in range(plan.nest.n - 1):
        operand = &plan.operands[k]
        if operand.expanded and not operand.direct:
            shape = []
            source = []
            for i in range(plan.cut, plan.nest.rank):
                shape.append(plan.lengths[i])
                source.append(plan.lengths[i] if operand.strides[i] else 1)
            copies = own + operand.copies
            make_plan(
                <Plan *> copies, tuple(shape), tuple(source), operand.loop_size, NULL,
                operand.items.count * operand.loop_size, operand.items.full_count * operand.loop_size,
            )
            for i in range(1, threads):
                memcpy(copies + i * plan.scratch_bytes, copies, sizeof(Plan))
    return 0
