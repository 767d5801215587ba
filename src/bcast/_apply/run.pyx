# cython: cdivision=True, boundscheck=False, wraparound=False
"""Runs loops on the blocks of a plan: on threads, block by block and step by step.

In: a Call. Out: the result's items, and floating-point errors. Buffers stay in a first-level cache; apart from these
and the operands, no memory is used. While blocks run, nothing allocates, raises or runs Python, except loops that are
not thread-safe.
"""

cimport numpy as cnp
from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcpy, memset

from bcast._apply.operands cimport MAX_STEPS, Operand, Step
from bcast._apply.plan cimport Access, BlockPlan, FoldPlan, Items, count_pieces, find_items, is_small, plan_blocks
from bcast._apply.ufuncs cimport (
    AT_LEAST, AT_MOST, CLIP_FUSED, FOLD_ALL, FOLD_ANY, FOLD_COUNT, FOLD_GREATEST, FOLD_LEAST, FOLD_SUM, FROM_BYTES,
    INTO_BYTES, INTO_FLOATS, INTO_HALVES, INTO_SATURATED_BYTES, TO_BYTES, TO_CUT_BYTES, TO_HALVES, Folded, Folding,
    Fusion, PositionRows, find_position, fold, fuse, keep_positions, swap_bytes, take_roots,
)
from bcast._copy.plan cimport COPY_OPERANDS, Extent, Matrix, Plan, add_axis, copy_kernels_of, plan_nest
from bcast._copy.run cimport write_planned
from bcast._nest.core cimport MAX_OPERANDS, Nest
from bcast._runtime.arrays cimport MAX_AXES
from bcast._runtime.core cimport (
    Job, count_shares, count_threads, cut, free_scratch, new_job, run_job, run_without_gil, scratch_of,
    take_scratch, target_number, whole_lines,
)
from bcast._runtime.tuning cimport APPLY_SEEN_BLOCKS, RELEASING_BYTES, WAKING_TIMES, WRITTEN_SHARE_BYTES

cdef extern from "numpy/ufuncobject.h":
    void PyUFunc_clearfperr() nogil
    int PyUFunc_getfperr() nogil

cdef extern from "fenv.h":
    int has_errors "fetestexcept"(int errors) noexcept nogil
    enum: ERRORS "(FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW | FE_INVALID)"

cnp.import_array()
cnp.import_ufunc()


def set_limits(share=WRITTEN_SHARE_BYTES):
    """Set the smallest number of bytes for a thread, for tests; gates made later use it, too."""
    global share_bytes
    if share < 1:
        raise ValueError(f"`share` expected bytes, at least 1, got {share}")
    share_bytes = share


set_limits()


cdef struct Rows:       # the arguments of a loop: rows of a block, for each operand
    char *at[MAX_OPERANDS]                  # the first item
    Py_ssize_t[MAX_OPERANDS] strides        # strides between items, in bytes
    Py_ssize_t[MAX_OPERANDS] row_strides    # strides between rows, in bytes

cdef struct Block:
    char *data[MAX_OPERANDS]                # each operand's first item in the block
    Py_ssize_t[MAX_AXES] lengths
    bint is_cut                             # the block is shortened by the end of an axis
    Py_ssize_t row_length                   # items in the rows that the loop gets
    Rows rows

cdef enum Look:         # when floating-point errors are read:
    LATER               # once for many blocks
    AT_FUSED            # after each fused loop; if there are errors, single steps run again
    AT_SINGLE           # after each step: no step is fused, because the previous row had errors

cdef struct Worker:     # the state of a share of the blocks
    const BlockPlan *plan
    char *scratch
    int *errors                             # errors of each step, followed by those of the operands that are noted
    char *filled[MAX_OPERANDS]              # the first item of the whole block in a buffer; NULL if it has none
    Look look

cdef struct Work:
    # Common to all shares of a call.
    const BlockPlan *plan
    Job job                                 # its partial results: the errors of each share, by step and operand
    int slots                               # places for the errors of a share
    int *errors                             # errors of all shares, for each slot; reported to the caller


# Threads


cdef int run_call(Call *call) except -1:
    """Compute the result of one ufunc; return the floating-point errors."""
    cdef int errors = 0
    if not call.thread_safe or not is_small(call):
        run_noting(call, &errors)
        return errors
    if call.reports_errors:
        PyUFunc_clearfperr()
    _run_small(call)
    return PyUFunc_getfperr() if call.reports_errors else 0


cdef inline int _error_slots(const Call *call) noexcept nogil:
    """The number of slots for errors: one for each step; if some operands are noted, also one for each operand."""
    return max(1, call.step_count) + (call.nest.n if call.noted else 0)


cdef int run_noting(Call *call, int *errors) except *:
    """Plan the blocks and run them; add the floating-point errors of steps and operands. A loop may raise."""
    cdef BlockPlan plan
    cdef Work work
    cdef Py_ssize_t cost = _cost_in_bytes(call)
    cdef int threads = 1

    plan_blocks(call, &plan)
    if call.thread_safe:
        threads = count_threads(cost, share_bytes, WAKING_TIMES, plan.blocks)
    work = Work(
        plan=&plan,
        job=new_job(_run_share, &work, threads, count_shares(threads, plan.blocks)),
        slots=_error_slots(call),
        errors=errors,
    )
    work.job.scratch_bytes = plan.scratch_bytes
    work.job.found_bytes = work.job.shares * work.slots * sizeof(int)
    work.job.fold = _fold_errors
    if not take_scratch(&work.job, NULL, 0):
        raise MemoryError
    memset(work.job.found, 0, work.job.found_bytes)
    _plan_copies(&work)

    try:
        if threads > 1 or not call.thread_safe or cost >= RELEASING_BYTES:
            run_without_gil(&work.job, _arrays_of(call))
        else:
            run_job(&work.job)
    finally:
        free_scratch(&work.job)
    return 0


cdef inline Py_ssize_t _cost_in_bytes(const Call *call) noexcept:
    """The cost of the call, as a number of bytes written in the same time."""
    cdef Py_ssize_t widest = 0
    cdef int k
    for k in range(call.nest.n):
        widest = max(widest, call.operands[k].loop_size)
    return cnp.PyArray_SIZE(<cnp.ndarray> call.operands[call.nest.n - 1].array) * widest * call.cost


cdef list _arrays_of(const Call *call):
    """The arrays of a call."""
    cdef list arrays = []
    cdef int k
    for k in range(call.nest.n):
        if call.operands[k].array != NULL:
            arrays.append(<object> call.operands[k].array)
    return arrays


cdef void _run_share(void *all_work, int share, int thread) noexcept nogil:
    """Run one share of the blocks."""
    cdef const Work *work = <const Work *> all_work
    cdef const BlockPlan *plan = work.plan
    cdef const Call *call = plan.call
    cdef Py_ssize_t begin = cut(plan.blocks, share, work.job.shares), end = cut(plan.blocks, share + 1, work.job.shares)
    cdef Worker worker

    worker.plan = plan
    worker.scratch = scratch_of(&work.job, thread)
    worker.errors = <int *> work.job.found + share * work.slots
    memset(worker.filled, 0, sizeof(worker.filled))
    worker.look = LATER if _can_look_later(plan) else AT_FUSED

    if call.reports_errors:
        PyUFunc_clearfperr()
    _run_blocks(&worker, begin, end)
    if call.reports_errors and call.step_count <= 1:
        worker.errors[0] |= PyUFunc_getfperr()


cdef void _fold_errors(void *all_work) noexcept nogil:
    """Collect the errors of all shares, slot by slot."""
    cdef const Work *work = <const Work *> all_work
    cdef const int *found = <const int *> work.job.found
    cdef int share, slot
    for share in range(work.job.shares):
        for slot in range(work.slots):
            work.errors[slot] |= found[share * work.slots + slot]


cdef inline bint _can_look_later(const BlockPlan *plan) noexcept nogil:
    """Whether all steps are fused, so that blocks with errors can be computed once more."""
    cdef const Call *call = plan.call
    if call.step_count <= 1 or call.noted:
        return False
    return call.steps[0].fused_count == call.step_count and plan.access[0].stride != 0


# Blocks


cdef void _run_small(const Call *call) noexcept:
    """Run the loop on the rows of a small nest."""
    cdef char *at[MAX_OPERANDS]
    cdef Py_ssize_t[MAX_OPERANDS] strides
    cdef Py_ssize_t items = call.nest.shape[1], row
    cdef int k

    for k in range(call.nest.n):
        strides[k] = call.operands[k].strides[1]
    for row in range(call.nest.shape[0]):
        for k in range(call.nest.n):
            at[k] = call.nest.data[k] + row * call.operands[k].strides[0]
        if call.loop.function(call.loop.context, at, &items, strides, call.loop.auxdata):
            return


cdef void _run_blocks(Worker *worker, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Run the loop, or the steps of a chain, on the blocks from `begin` to `end`, or until it fails.

    The errors of a single loop stay in the CPU's flags. To read these, a CPU waits for all pending instructions: if all
    steps are fused, they are read once for many blocks. If there are errors, these blocks are computed once more, and
    from then on the flags are read for each row.
    """
    cdef Block block
    cdef Py_ssize_t number = begin
    cdef Py_ssize_t seen = begin        # blocks before this one are done

    while number < end:
        _seek(worker.plan, number, &block)
        _find_rows(worker, &block)
        if _run_block(worker, &block):
            return
        _empty(worker, &block)
        number += 1

        if worker.look == LATER and (number == end or number - seen == APPLY_SEEN_BLOCKS):
            if has_errors(ERRORS):
                PyUFunc_clearfperr()
                number, worker.look = seen, AT_FUSED
            seen = number


cdef inline void _seek(const BlockPlan *plan, Py_ssize_t number, Block *block) noexcept nogil:
    """Find where a block begins, and its lengths; the last axis counts fastest."""
    cdef const Call *call = plan.call
    cdef int last = call.nest.rank - 1, output = call.nest.n - 1, axis, k
    cdef Py_ssize_t items = plan.access[output].items.full_count, index

    block.is_cut = False
    for k in range(call.nest.n):
        block.data[k] = call.nest.data[k]

    for axis in range(last, -1, -1):
        block.lengths[axis] = plan.lengths[axis]
        if plan.parts[axis] == 1:
            continue
        index = number % plan.parts[axis] * plan.lengths[axis]
        number //= plan.parts[axis]
        if call.nest.shape[axis] - index < plan.lengths[axis]:
            block.lengths[axis] = call.nest.shape[axis] - index
            items = items // plan.lengths[axis] * block.lengths[axis]
            block.is_cut = True
        for k in range(call.nest.n):
            block.data[k] += index * call.operands[k].strides[axis]
    block.row_length = block.lengths[last] if plan.by_rows else items


cdef inline void _find_rows(Worker *worker, Block *block) noexcept nogil:
    """Find where the loop reads each operand's rows, and fill the buffers that it reads."""
    cdef const BlockPlan *plan = worker.plan
    cdef const Call *call = plan.call
    cdef const Access *access
    cdef int last = call.nest.rank - 1, output = call.nest.n - 1, k

    for k in range(call.nest.n):
        access = &plan.access[k]
        block.rows.at[k] = block.data[k]
        block.rows.strides[k], block.rows.row_strides[k] = access.stride, access.row_stride
        if access.is_direct:
            continue
        # A neighbour that differs along an axis on which the operand repeats has the same items.
        if k != output and (block.data[k] != worker.filled[k] or block.is_cut and plan.by_rows):
            _fill(worker, k, block)
        block.rows.at[k] = worker.scratch + access.loop_buffer
        if access.row_stride:
            block.rows.row_strides[k] = call.operands[k].loop_size
            if call.operands[k].strides[last]:
                block.rows.row_strides[k] *= block.lengths[last]


cdef inline bint _run_block(Worker *worker, Block *block) noexcept nogil:
    """Run the loop, conversion or steps on a block; return whether that failed."""
    cdef const BlockPlan *plan = worker.plan
    cdef const Call *call = plan.call
    cdef Py_ssize_t rows = block.lengths[call.nest.rank - 2] if plan.by_rows else 1

    if plan.row_loop != NULL:
        plan.row_loop(rows, block.row_length, block.rows.at, block.rows.strides, block.rows.row_strides)
        return False
    if call.step_count == 1 and call.steps[0].cast != NULL and block.rows.strides[0]:
        _run_cast(call, &block.rows, rows, block.row_length)
        return False
    if call.step_count:
        return _run_chain(worker, &block.rows, rows, block.row_length)
    return _run_loop(call, &block.rows, rows, block.row_length)


cdef inline bint _run_loop(const Call *call, Rows *rows, Py_ssize_t count, Py_ssize_t items) noexcept nogil:
    """Run the loop on each row; return whether it has failed."""
    cdef char *at[MAX_OPERANDS]
    cdef int k
    while count > 0:
        for k in range(call.nest.n):
            at[k] = rows.at[k]      # SciPy's loops modify the pointers passed to them
        if call.loop.function(call.loop.context, at, &items, rows.strides, call.loop.auxdata):
            return True
        _go_on(call, rows)
        count -= 1
    return False


cdef inline void _run_cast(const Call *call, Rows *rows, Py_ssize_t count, Py_ssize_t items) noexcept nogil:
    """Convert each row: only by this loop, without other costs for short rows."""
    while count > 0:
        call.steps[0].cast(items, rows.at[0], rows.at[1])
        rows.at[0] += rows.row_strides[0]
        rows.at[1] += rows.row_strides[1]
        count -= 1


cdef inline void _go_on(const Call *call, Rows *rows) noexcept nogil:
    """Move to the next row."""
    cdef int k
    for k in range(call.nest.n):
        rows.at[k] += rows.row_strides[k]


# Buffers


cdef void _fill(Worker *worker, int k, const Block *block) noexcept nogil:
    """Fill the buffers of an operand, and record the errors of its conversion if these are reported separately."""
    cdef const Call *call = worker.plan.call
    cdef bint is_noted = call.noted >> k & 1
    if is_noted and has_errors(ERRORS):     # the loop had errors in the previous blocks
        worker.errors[0] |= PyUFunc_getfperr()
    _fill_buffers(worker, k, block)
    if is_noted and has_errors(ERRORS):
        worker.errors[max(1, call.step_count) + k] |= PyUFunc_getfperr()
    worker.filled[k] = NULL if block.is_cut else block.data[k]


cdef void _fill_buffers(Worker *worker, int k, const Block *block) noexcept nogil:
    """Fill an operand's buffers with the items of a block: contiguous, then converted, then repeated."""
    cdef const Operand *operand = &worker.plan.call.operands[k]
    cdef const Access *access = &worker.plan.access[k]
    cdef const char *src = block.data[k]
    cdef char *dst = worker.scratch + access.buffer
    cdef Items items

    find_items(worker.plan, k, block.lengths, &items)

    if items.rank or not operand.readable or (operand.cast == NULL and not access.is_expanded):
        _copy_items(&items, items.rank, items.strides, items.packed, <const uint8_t *> src, <uint8_t *> dst)
        _swap_units(operand, items.count, dst)
        src = dst
    if operand.cast != NULL:
        dst = worker.scratch + access.cast_buffer
        operand.cast(items.count, src, dst)
        src = dst
    if access.is_expanded:
        _repeat_items(worker, k, &items, src)


cdef inline void _repeat_items(Worker *worker, int k, const Items *items, const char *src) noexcept nogil:
    """Repeat an operand's items within a block, as planned."""
    cdef const Access *access = &worker.plan.access[k]
    cdef Py_ssize_t size = worker.plan.call.operands[k].loop_size
    cdef Plan *copies = <Plan *> (worker.scratch + access.copies)
    copies.src_end = <const uint8_t *> src + items.count * size
    write_planned(
        copies, 0, items.full_count * size, <const uint8_t *> src,
        <uint8_t *> (worker.scratch + access.full_buffer), NULL,
    )


cdef inline void _empty(Worker *worker, const Block *block) noexcept nogil:
    """Write the output's items of a block from its buffer, if it has one: converted, then copied to their places."""
    cdef int output = worker.plan.call.nest.n - 1
    cdef const Operand *operand = &worker.plan.call.operands[output]
    cdef const Access *access = &worker.plan.access[output]
    cdef Items items
    cdef char *src

    if access.is_direct:
        return
    src = worker.scratch + access.buffer
    find_items(worker.plan, output, block.lengths, &items)
    if operand.cast != NULL:
        operand.cast(items.count, worker.scratch + access.cast_buffer, src)
    _swap_units(operand, items.count, src)
    _copy_items(
        &items, items.rank, items.packed, items.strides, <const uint8_t *> src, <uint8_t *> block.data[output],
    )


cdef inline void _swap_units(const Operand *operand, Py_ssize_t count, char *items) noexcept nogil:
    """Swap the bytes of items that are not, or must not be, in native order."""
    if operand.swapped:
        swap_bytes(count * operand.size // operand.swapped, operand.swapped, items)


cdef void _copy_items(
    const Items *items, int rank, const Py_ssize_t *src_strides, const Py_ssize_t *dst_strides, const uint8_t *src,
    uint8_t *dst,
) noexcept nogil:
    """Copy items along some axes: one side is contiguous."""
    cdef int inner, outer
    cdef Py_ssize_t i
    cdef Matrix matrix

    if rank == 0:
        memcpy(dst, src, items.size)
        return
    inner = 0 if dst_strides[0] == items.size else 1    # the axis along which the copy is contiguous
    outer = 1 - inner
    matrix.size = items.size
    if rank == 1:
        if inner == 0:
            matrix.m, matrix.m_step, matrix.dst_step = 1, 0, 0
            matrix.n, matrix.n_step = items.lengths[0], src_strides[0]
        else:
            matrix.m, matrix.m_step, matrix.dst_step = items.lengths[0], src_strides[0], dst_strides[0]
            matrix.n, matrix.n_step = 1, items.size
        copy_kernels_of[target_number].copy_matrix(&matrix, src, dst)
    elif rank == 2 and dst_strides[inner] == items.size:
        matrix.m, matrix.m_step, matrix.dst_step = items.lengths[outer], src_strides[outer], dst_strides[outer]
        matrix.n, matrix.n_step = items.lengths[inner], src_strides[inner]
        copy_kernels_of[target_number].copy_matrix(&matrix, src, dst)
    else:
        for i in range(items.lengths[rank - 1]):
            _copy_items(
                items, rank - 1, src_strides, dst_strides, src + i * src_strides[rank - 1],
                dst + i * dst_strides[rank - 1],
            )


cdef void _plan_copies(const Work *work) noexcept:
    """Plan the copies that repeat items within a block, for each thread."""
    cdef const BlockPlan *plan = work.plan
    cdef const Call *call = plan.call
    cdef const Access *access
    cdef Plan *copies
    cdef int thread, k

    for k in range(call.nest.n - 1):
        access = &plan.access[k]
        if access.is_direct or not access.is_expanded:
            continue
        copies = <Plan *> (work.job.scratch + access.copies)
        _plan_copies_of(plan, k, copies)
        for thread in range(1, work.job.threads):
            memcpy(scratch_of(&work.job, thread) + access.copies, copies, sizeof(Plan))


cdef void _plan_copies_of(const BlockPlan *plan, int k, Plan *copies) noexcept:
    """Plan the copies that repeat the contiguous items of one operand within a block."""
    cdef const Operand *operand = &plan.call.operands[k]
    cdef Extent within = Extent(src_bytes=operand.loop_size, dst_bytes=operand.loop_size)
    cdef Nest nest
    cdef int i, axis

    nest.n = COPY_OPERANDS
    nest.rank = plan.call.nest.rank - plan.cut
    for i in range(nest.rank - 1, -1, -1):
        axis = plan.cut + i
        add_axis(&nest, i, plan.lengths[axis], operand.strides[axis] != 0, &within)
    plan_nest(copies, &nest, operand.loop_size)


# Chains: results of steps alternate between two buffers, and are the input of the next step


cdef struct Value:      # input or result of a step
    char *data
    Py_ssize_t stride   # stride between items, in bytes; 0 for a single item


cdef bint _run_chain(Worker *worker, Rows *rows, Py_ssize_t count, Py_ssize_t items) noexcept nogil:
    """Run all steps on each row; return whether one has failed."""
    while count > 0:
        if _run_steps(worker, rows, items):
            return True
        _go_on(worker.plan.call, rows)
        count -= 1
    return False


cdef inline bint _run_steps(Worker *worker, const Rows *rows, Py_ssize_t items) noexcept nogil:
    """Run all steps on one row; return whether one has failed.

    To find the step of an error, single steps run again after a fused loop that had errors. Clearer whole: the
    alternation of the two buffers, the remaining steps and the errors depend on each other.
    """
    cdef const Call *call = worker.plan.call
    cdef Value value = Value(data=rows.at[0], stride=rows.strides[0]), given
    cdef int i = 0, taken, turn = 0
    cdef int single = call.step_count if worker.look == AT_SINGLE else 0    # steps before this one are not fused
    cdef bint has_erred = False

    while i < call.step_count:
        taken = call.steps[i].fused_count if i >= single and value.stride else 1
        if taken > 1:
            given = _destination(worker, rows, i + taken, turn)
            _run_fused(call, i, rows, items, value.data, given.data)
            if worker.look != LATER and has_errors(ERRORS):
                PyUFunc_clearfperr()
                single = i + taken
                continue
        else:
            taken = 1
            given = _destination(worker, rows, i + 1, turn)
            if _run_step(call, i, rows, items, value, &given):
                return True
            has_erred = _note_errors(worker, i) or has_erred
        value = given
        turn = 1 - turn
        i += taken

    if worker.look != LATER:
        worker.look = AT_SINGLE if has_erred else AT_FUSED
    return False


cdef inline bint _note_errors(Worker *worker, int i) noexcept nogil:
    """Record the errors of one step of several; return whether there are any."""
    if worker.plan.call.step_count == 1 or not has_errors(ERRORS):
        return False
    worker.errors[i] |= PyUFunc_getfperr()
    return True


cdef inline Value _destination(const Worker *worker, const Rows *rows, int done, int turn) noexcept nogil:
    """The destination of step number `done`, counted from 1: the result, or one of two buffers."""
    cdef const Call *call = worker.plan.call
    cdef int output = call.nest.n - 1
    if done == call.step_count:
        return Value(data=rows.at[output], stride=rows.strides[output])
    return Value(data=worker.scratch + worker.plan.values[turn], stride=call.steps[done - 1].size)


cdef inline bint _run_step(
    const Call *call, int i, const Rows *rows, Py_ssize_t items, Value value, Value *given,
) noexcept nogil:
    """Run one step on a row; return whether it has failed. The conversion of a single item gives a single item."""
    cdef const Step *step = &call.steps[i]
    cdef char *data[4]
    cdef Py_ssize_t[4] strides
    cdef int inputs = 1

    if step.cast != NULL:
        step.cast(items if value.stride else 1, value.data, given.data)
        if value.stride == 0 and i + 1 < call.step_count:
            given.stride = 0
        return False

    data[0], strides[0] = value.data, value.stride
    if step.second:
        data[1], strides[1] = rows.at[step.second], rows.strides[step.second]
        inputs = 2
    if step.third:
        data[2], strides[2] = rows.at[step.third], rows.strides[step.third]
        inputs = 3
    data[inputs], strides[inputs] = given.data, given.stride
    return step.loop.function(step.loop.context, data, &items, strides, step.loop.auxdata) != 0


cdef void _run_fused(
    const Call *call, int first, const Rows *rows, Py_ssize_t items, const char *src, char *dst,
) noexcept nogil:
    """Run a step and the steps fused with it in one loop, which may convert bytes first, and float16 or bytes last."""
    cdef Fusion fusion
    cdef uint8_t[2 * MAX_STEPS] functions
    cdef const float *operands[2 * MAX_STEPS]
    cdef Py_ssize_t[2 * MAX_STEPS] strides
    cdef const Step *step = &call.steps[first]
    cdef const Step *end = step + step.fused_count
    cdef float none = 0     # in place of an operand
    cdef int n = 0

    fusion.n, fusion.src, fusion.dst = items, src, dst
    fusion.functions, fusion.operands, fusion.strides = functions, operands, strides

    fusion.bytes = step.function == FROM_BYTES
    if fusion.bytes:
        step += 1
    fusion.into = _into((end - 1).function)
    if fusion.into != INTO_FLOATS:
        end -= 1
    while step < end:
        functions[n], operands[n], strides[n] = step.function, &none, 0
        if step.second:
            operands[n], strides[n] = <const float *> rows.at[step.second], rows.strides[step.second]
        if step.function == CLIP_FUSED:
            functions[n] = AT_LEAST
            n += 1
            functions[n] = AT_MOST
            operands[n], strides[n] = <const float *> rows.at[step.third], rows.strides[step.third]
        n += 1
        step += 1
    fusion.steps = n
    fuse(&fusion)


cdef inline int _into(uint8_t function) noexcept nogil:
    """The result of a fused loop that ends with this step."""
    if function == TO_HALVES:
        return INTO_HALVES
    if function == TO_BYTES:
        return INTO_BYTES
    return INTO_SATURATED_BYTES if function == TO_CUT_BYTES else INTO_FLOATS


# Folds


cdef struct FoldWork:
    # Common to all shares of a fold.
    const FoldPlan *plan
    Job job                 # its partial results: errors of each share, then states of all results after each part
    Py_ssize_t results      # their number
    int errors              # errors of all shares, and of combining parts

cdef struct FoldUnit:
    # A unit of work: some rows of results, and lanes, each with a result, or a part of their terms.
    char *data[MAX_OPERANDS]        # addresses in the first row
    Py_ssize_t row, rows            # the first one, and their number
    Py_ssize_t begin, end           # lanes; or pieces of lanes, of all reduced outer axes, if lanes are terms
    Py_ssize_t part                 # number of the part of the terms
    Py_ssize_t first_result         # the number of the first row's result


cdef struct FoldPiece:
    # Terms that are folded together if lanes are terms: the same number of each row of a unit.
    char *data[MAX_OPERANDS]        # addresses in the first row
    Py_ssize_t rows, lanes
    Py_ssize_t seen                 # terms of each row in the previous pieces


cdef int run_folds(const FoldPlan *plan, list arrays) except -1:
    """Compute all results, on threads; return the floating-point errors, also if the sign of a zero may differ."""
    cdef FoldWork work
    cdef Py_ssize_t cost = plan.kernel.size * (plan.kernel.steps + 1), errors_bytes
    cdef int axis, threads

    work = FoldWork(plan=plan, results=1, errors=0)
    for axis in range(plan.nest.rank):
        cost *= plan.nest.shape[axis]
        if plan.nest.stride[plan.nest.n - 1][axis]:
            work.results *= plan.nest.shape[axis]

    threads = count_threads(cost, share_bytes, WAKING_TIMES, plan.units)
    work.job = new_job(_fold_share, &work, threads, count_shares(threads, plan.units))
    work.job.scratch_bytes = plan.scratch_bytes
    work.job.fold = _join_parts
    errors_bytes = whole_lines(work.job.shares * <Py_ssize_t> sizeof(int))
    work.job.found_bytes = errors_bytes
    if plan.parts > 1:
        work.job.found_bytes += plan.parts * work.results * <Py_ssize_t> sizeof(Folded)
    if not take_scratch(&work.job, NULL, 0):
        raise MemoryError
    try:
        if threads > 1 or cost >= RELEASING_BYTES:
            run_without_gil(&work.job, arrays)
        else:
            run_job(&work.job)
    finally:
        free_scratch(&work.job)
    return work.errors


cdef inline Folded _no_terms(bint seeks_least) noexcept nogil:
    """The state of a result before its first term."""
    cdef Folded state
    state.sum = state.error = 0
    state.extreme = INFINITY if seeks_least else -INFINITY
    state.count = 0
    return state


cdef inline Folded *_state_of(const FoldWork *work, Py_ssize_t part, Py_ssize_t result) noexcept nogil:
    """The state of a result after a part of its terms."""
    cdef char *states = work.job.found + whole_lines(work.job.shares * <Py_ssize_t> sizeof(int))
    return <Folded *> states + part * work.results + result


cdef void _fold_share(void *all_work, int share, int thread) noexcept nogil:
    """Run one share of all units."""
    cdef const FoldWork *work = <const FoldWork *> all_work
    cdef Py_ssize_t units = work.plan.units, number
    cdef FoldUnit unit
    cdef int errors = 0

    PyUFunc_clearfperr()
    for number in range(cut(units, share, work.job.shares), cut(units, share + 1, work.job.shares)):
        _find_unit(work, number, &unit)
        if work.plan.is_along:
            errors |= _fold_along(work, &unit, scratch_of(&work.job, thread))
        elif work.plan.has_positions:
            _find_positions(work.plan, &unit, scratch_of(&work.job, thread))
        else:
            _fold_rows(work.plan, &unit, scratch_of(&work.job, thread))
    errors |= PyUFunc_getfperr()
    if work.plan.kernel.compares and work.plan.cast == NULL:    # comparisons report NaN
        errors = 0
    (<int *> work.job.found)[share] = errors


cdef void _find_unit(const FoldWork *work, Py_ssize_t number, FoldUnit *unit) noexcept nogil:
    """Find the work of a unit: outer axes come first, then rows, then lanes."""
    cdef const FoldPlan *plan = work.plan
    cdef const Nest *nest = &plan.nest
    cdef Py_ssize_t many = nest.shape[plan.many], pieces = _count_all_pieces(plan), index
    cdef int axis, k

    if plan.is_along:
        unit.part = number % plan.parts
        number //= plan.parts
        unit.begin, unit.end = cut(pieces, <int> unit.part, <int> plan.parts), cut(
            pieces, <int> unit.part + 1, <int> plan.parts
        )
    elif plan.has_positions and plan.sought == plan.lanes:
        unit.part, unit.begin, unit.end = 0, 0, nest.shape[plan.lanes]
    else:
        unit.part = 0
        unit.begin = number % pieces * plan.piece
        unit.end = min(unit.begin + plan.piece, nest.shape[plan.lanes])
        number //= pieces

    unit.row = number % count_pieces(many, plan.rows) * plan.rows
    unit.rows = min(plan.rows, many - unit.row)
    number //= count_pieces(many, plan.rows)
    unit.first_result = number * many + unit.row
    for k in range(nest.n):
        unit.data[k] = nest.data[k] + unit.row * nest.stride[k][plan.many]
    for axis in range(plan.outer_kept - 1, -1, -1):
        index = number % nest.shape[axis]
        number //= nest.shape[axis]
        for k in range(nest.n):
            unit.data[k] += index * nest.stride[k][axis]


cdef inline Py_ssize_t _count_all_pieces(const FoldPlan *plan) noexcept nogil:
    """The number of pieces of lanes, along all outer axes that are reduced."""
    cdef Py_ssize_t pieces = count_pieces(plan.nest.shape[plan.lanes], plan.piece)
    cdef int axis
    for axis in range(plan.outer_kept, plan.many):
        pieces *= plan.nest.shape[axis]
    return pieces


cdef inline void _gather(
    const FoldPlan *plan, int k, const char *src, Py_ssize_t rows, Py_ssize_t lanes, char *scratch
) noexcept nogil:
    """Copy an operand's items of a piece into contiguous rows, and convert them if necessary."""
    cdef Py_ssize_t size = plan.kernel.size, lane_stride = plan.nest.stride[k][plan.lanes], row
    cdef Py_ssize_t stride = plan.nest.stride[k][plan.many if plan.is_along else plan.depth]    # between rows
    cdef char *gathered = scratch + plan.gathered[k]
    cdef char *given = gathered
    cdef Matrix matrix

    if k == 0 and plan.cast != NULL:
        size, given = plan.given_size, scratch + plan.given
    matrix = Matrix(rows, lanes, size, stride, lane_stride, plan.piece * size)
    copy_kernels_of[target_number].copy_matrix(&matrix, <const uint8_t *> src, <uint8_t *> given)
    if given == gathered:
        return
    for row in range(rows):
        plan.cast(lanes, given + row * plan.piece * size, gathered + row * plan.piece * plan.kernel.size)


# Each lane has its result


cdef void _fold_rows(const FoldPlan *plan, const FoldUnit *unit, char *scratch) noexcept nogil:
    """Compute the results of some lanes and rows."""
    cdef const Nest *nest = &plan.nest
    cdef Folding call = plan.kernel
    cdef const char *operands[MAX_OPERANDS]
    cdef int results = nest.n - 1, k
    cdef Py_ssize_t row
    cdef char *dst

    call.operands, call.strides, call.depth_strides = operands, plan.strides, plan.depth_strides
    call.n = unit.end - unit.begin
    for row in range(unit.rows):
        for k in range(results - 1):
            operands[k] = _items_of_lanes(plan, unit, k, row, scratch)
        if plan.is_scattered:
            dst = scratch + plan.scattered + row * plan.piece * plan.result_size
        else:
            dst = unit.data[results] + row * nest.stride[results][plan.many] + unit.begin * plan.result_size
        call.dst = dst
        fold(&call, NULL)
        if plan.takes_roots:
            take_roots(plan.result_size, call.n, dst)
    if plan.is_scattered:
        _scatter(plan, unit, scratch)


cdef void _find_positions(const FoldPlan *plan, const FoldUnit *unit, char *scratch) noexcept nogil:
    """Find the position of the extreme of each row, or of each column over all rows, which are computed one by one."""
    cdef FoldUnit piece = unit[0]
    cdef Folding call = plan.kernel
    cdef PositionRows rows
    cdef Folded *states = <Folded *> (scratch + plan.states)
    cdef const char *operands[MAX_OPERANDS]
    cdef Py_ssize_t row, begin
    cdef int k

    call.operands, call.strides, call.depth_strides = operands, plan.strides, plan.depth_strides
    call.dst = scratch + plan.scattered
    rows = PositionRows(
        size=call.size,
        greatest=plan.seeks_greatest,
        n=0,
        row=call.dst,
        number=0,
        best=scratch + plan.best,
        positions=scratch + plan.best + whole_lines(plan.piece * call.size),
    )
    if plan.sought == plan.lanes:
        for row in range(unit.rows):
            states[row] = _no_terms(not plan.seeks_greatest)

    begin = unit.begin
    while begin < unit.end:
        piece.begin, piece.end = begin, min(begin + plan.piece, unit.end)
        call.n = rows.n = piece.end - begin
        for row in range(unit.rows):
            for k in range(plan.nest.n - 2):
                operands[k] = _items_of_lanes(plan, &piece, k, row, scratch)
            fold(&call, NULL)
            if plan.takes_roots:
                take_roots(call.size, call.n, call.dst)
            if plan.sought == plan.lanes:
                rows.number = begin
                find_position(&rows, &states[row])
            else:
                rows.number = row
                keep_positions(&rows)
        begin = piece.end
    _write_positions(plan, unit, states, rows.positions)


cdef inline void _write_positions(
    const FoldPlan *plan, const FoldUnit *unit, const Folded *states, const void *positions
) noexcept nogil:
    """Write the positions found for rows or for lanes."""
    cdef int results = plan.nest.n - 1
    cdef Py_ssize_t stride, i
    if plan.sought == plan.lanes:
        stride = plan.nest.stride[results][plan.many]
        for i in range(unit.rows):
            (<int64_t *> (unit.data[results] + i * stride))[0] = states[i].count
        return
    stride = plan.nest.stride[results][plan.lanes]
    for i in range(unit.end - unit.begin):
        (<int64_t *> (unit.data[results] + (unit.begin + i) * stride))[0] = (
            (<const int32_t *> positions)[i] if plan.kernel.size == 4 else (<const int64_t *> positions)[i]
        )


cdef inline const char *_items_of_lanes(
    const FoldPlan *plan, const FoldUnit *unit, int k, Py_ssize_t row, char *scratch
) noexcept nogil:
    """The terms of an operand for a row of results; they are gathered, unless the previous row's terms serve."""
    cdef const char *items = unit.data[k] + row * plan.row_strides[k] + unit.begin * plan.nest.stride[k][plan.lanes]
    cdef Py_ssize_t rows = plan.kernel.depth if plan.nest.stride[k][plan.depth] else 1
    if not plan.is_gathered[k]:
        return items
    if row == 0 or plan.row_strides[k]:
        _gather(plan, k, items, rows, unit.end - unit.begin, scratch)
    return scratch + plan.gathered[k]


cdef inline void _scatter(const FoldPlan *plan, const FoldUnit *unit, const char *scratch) noexcept nogil:
    """Copy rows of results to their places: the results of a lane are contiguous."""
    cdef int results = plan.nest.n - 1
    cdef Py_ssize_t size = plan.result_size, stride = plan.nest.stride[results][plan.lanes]
    cdef Matrix matrix = Matrix(unit.end - unit.begin, unit.rows, size, size, plan.piece * size, stride)
    cdef char *dst = unit.data[results] + unit.begin * stride
    copy_kernels_of[target_number].copy_matrix(&matrix, <const uint8_t *> scratch + plan.scattered, <uint8_t *> dst)


# Lanes are terms of one result


cdef int _fold_along(const FoldWork *work, const FoldUnit *unit, char *scratch) noexcept nogil:
    """Fold a part of the terms of some rows' results, piece by piece; return its errors other than the CPU's."""
    cdef const FoldPlan *plan = work.plan
    cdef Folded *states = <Folded *> (scratch + plan.states)
    cdef FoldPiece piece
    cdef Py_ssize_t number, row, undecided

    piece.rows, piece.seen = unit.rows, 0
    for row in range(unit.rows):
        states[row] = _no_terms(plan.kernel.fold == FOLD_LEAST)
    for number in range(unit.begin, unit.end):
        _find_piece(plan, unit, number, &piece)
        undecided = _fold_piece(plan, &piece, states, scratch)
        piece.seen += piece.lanes
        if undecided == 0:
            break
    return _hand_on_states(work, unit, states, piece.seen)


cdef inline void _find_piece(
    const FoldPlan *plan, const FoldUnit *unit, Py_ssize_t number, FoldPiece *piece
) noexcept nogil:
    """Find the first terms of a piece from its number along the lanes and all outer axes that are reduced."""
    cdef const Nest *nest = &plan.nest
    cdef Py_ssize_t per_row = count_pieces(nest.shape[plan.lanes], plan.piece)
    cdef Py_ssize_t begin = number % per_row * plan.piece, index = number // per_row
    cdef int axis, k

    piece.lanes = min(plan.piece, nest.shape[plan.lanes] - begin)
    for k in range(nest.n - 2):
        piece.data[k] = unit.data[k] + begin * nest.stride[k][plan.lanes]
    for axis in range(plan.many - 1, plan.outer_kept - 1, -1):
        for k in range(nest.n - 2):
            piece.data[k] += index % nest.shape[axis] * nest.stride[k][axis]
        index //= nest.shape[axis]


cdef inline Py_ssize_t _fold_piece(
    const FoldPlan *plan, const FoldPiece *piece, Folded *states, char *scratch
) noexcept nogil:
    """Fold the terms of a piece onto the results of some rows; return how many of these further terms may change."""
    cdef Folding call = plan.kernel
    cdef const char *operands[MAX_OPERANDS]
    cdef const char *src
    cdef Py_ssize_t row, undecided = 0
    cdef int k

    call.operands, call.strides, call.depth_strides = operands, plan.strides, plan.depth_strides
    call.n = piece.lanes
    for k in range(plan.nest.n - 2):
        if plan.is_gathered[k]:
            _gather(plan, k, piece.data[k], piece.rows if plan.row_strides[k] else 1, piece.lanes, scratch)
    for row in range(piece.rows):
        if call.fold == FOLD_ANY and states[row].count or call.fold == FOLD_ALL and states[row].count < piece.seen:
            continue
        undecided += 1
        for k in range(plan.nest.n - 2):
            src = scratch + plan.gathered[k] if plan.is_gathered[k] else piece.data[k]
            operands[k] = src + row * plan.row_strides[k]
        fold(&call, &states[row])
    return undecided


cdef inline int _hand_on_states(
    const FoldWork *work, const FoldUnit *unit, Folded *states, Py_ssize_t seen
) noexcept nogil:
    """Write results, or keep the state of each after this part of the terms for later; return errors."""
    cdef const FoldPlan *plan = work.plan
    cdef int results = plan.nest.n - 1, errors = 0
    cdef Py_ssize_t row

    for row in range(unit.rows):
        if plan.kernel.fold == FOLD_ALL:
            states[row].count = states[row].count == seen
        if plan.parts > 1:
            _state_of(work, unit.part, unit.first_result + row)[0] = states[row]
        else:
            errors |= _write_folded(
                plan, &states[row], unit.data[results] + row * plan.nest.stride[results][plan.many]
            )
    return errors


cdef void _join_parts(void *all_work) noexcept nogil:
    """Collect the errors of all shares; combine the results of parts, in their order."""
    cdef FoldWork *work = <FoldWork *> all_work
    cdef const FoldPlan *plan = work.plan
    cdef Py_ssize_t result, part
    cdef Folded joined
    cdef int share

    for share in range(work.job.shares):
        work.errors |= (<const int *> work.job.found)[share]
    if plan.parts == 1:
        return
    PyUFunc_clearfperr()
    for result in range(work.results):
        joined = _state_of(work, 0, result)[0]
        for part in range(1, plan.parts):
            _join(plan.kernel.fold, &joined, _state_of(work, part, result))
        work.errors |= _write_folded(plan, &joined, plan.nest.data[plan.nest.n - 1] + result * plan.result_size)
    if not plan.kernel.compares:
        work.errors |= PyUFunc_getfperr()


cdef inline void _join(int reduction, Folded *joined, const Folded *part) noexcept nogil:
    """Combine the state after some parts with the state of the next part."""
    cdef double total, added
    if reduction == FOLD_SUM:   # Knuth's two_sum
        total = joined.sum + part.sum
        added = total - joined.sum
        joined.error += (joined.sum - (total - added)) + (part.sum - added) + part.error
        joined.sum = total
    elif reduction == FOLD_GREATEST:
        joined.extreme = max(joined.extreme, part.extreme)
    elif reduction == FOLD_LEAST:
        joined.extreme = min(joined.extreme, part.extreme)
    elif reduction == FOLD_ALL:
        joined.count = joined.count and part.count
    else:
        joined.count += part.count


cdef inline int _write_folded(const FoldPlan *plan, const Folded *found, char *dst) noexcept nogil:
    """Write a result; return 1 if it is a zero whose sign may differ in NumPy, or 0."""
    cdef double value
    if plan.kernel.fold == FOLD_COUNT:
        (<int64_t *> dst)[0] = found.count
        return 0
    if plan.kernel.compares:
        (<uint8_t *> dst)[0] = found.count != 0
        return 0
    value = found.extreme
    if plan.kernel.fold == FOLD_SUM:
        value = (found.sum + found.error) / plan.kernel.divisor
    if plan.result_size == sizeof(float):
        (<float *> dst)[0] = <float> value
    else:
        (<double *> dst)[0] = value
    if plan.takes_roots:
        take_roots(plan.result_size, 1, dst)
    return plan.kernel.fold != FOLD_SUM and value == 0 and plan.has_signed_zeros
