# Chains: several loops and conversions, one after the other, on the items of a block.
#
# In: rows of a block, and the steps of a MapPlan. Out: the rows' results, and floating-point errors of each step. What
# a step gives lies in one of two buffers, in turns, and is what the next one takes.

cdef extern from "_apply/fused.h":
    enum: FUSES "BCAST_FUSES"
    bint fuses_halves "BCAST_FUSES_HALVES"(int target)
    bint fuses_more "BCAST_FUSES_MORE"(int target)
    enum:
        FUSED_RINT "bcast_fused_rint"
        FUSED_AT_LEAST "bcast_fused_at_least"
        FUSED_AT_MOST "bcast_fused_at_most"
        INTO_FLOATS "bcast_into_floats"
        INTO_HALVES "bcast_into_halves"
        INTO_BYTES "bcast_into_bytes"
        INTO_CUT_BYTES "bcast_into_cut_bytes"
    ctypedef struct Fusion "bcast_fusion":
        Py_ssize_t n
        int bytes, into, steps
        const uint8_t *functions
        const float *const *operands
        const Py_ssize_t *strides
        const void *src
        void *dst
    void fuse "bcast_fuse"(int target, const Fusion *all) noexcept nogil
    int has_errors "fetestexcept"(int errors) noexcept nogil
    int raise_errors "feraiseexcept"(int errors) noexcept nogil
    enum: ERRORS "(FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW | FE_INVALID)"
    enum: FE_INVALID


cdef enum Look:         # at floating-point errors:
    LATER               # the caller looks, at those of many rows
    AT_FUSED            # after each fused loop, which is done again by single steps if there are some
    AT_SINGLE           # after each step: none is fused, as the row before had errors


cdef int run_chain(
    const MapPlan *plan, const Rows *rows, Py_ssize_t items, char *own, int *errors, Look *look,
) noexcept nogil:
    """Run all steps on one row; tell whether one has failed."""
    cdef const Step *step
    cdef char *value = rows.at[0]       # what the step at hand takes
    cdef char *dst                      # where what it gives goes
    cdef char *data[4]
    cdef Py_ssize_t stride = rows.steps[0]
    cdef Py_ssize_t given           # the stride of what a step gives
    cdef Py_ssize_t[4] strides
    cdef int i = 0, taken, inputs, turn = 0
    cdef int single = plan.n_steps if look[0] == AT_SINGLE else 0   # steps before it are not fused
    cdef bint erred = False
    while i < plan.n_steps:
        step = &plan.steps[i]
        # Which step an error belongs to is found by running single ones.
        taken = step.fused if step.fused > 1 and i >= single and stride else 1
        if i + taken == plan.n_steps:
            dst = rows.at[plan.nest.n - 1]
            given = rows.steps[plan.nest.n - 1]
        else:
            dst = own + plan.values[turn]
            given = plan.steps[i + taken - 1].size
        if taken > 1:
            _run_fused(plan, step, taken, rows, items, value, dst)
            if look[0] != LATER and has_errors(ERRORS):
                PyUFunc_clearfperr()
                single = i + taken
                continue
        elif step.cast != NULL:
            step.cast(items if stride else 1, value, dst)
            if stride == 0 and i + 1 < plan.n_steps:
                given = 0
        else:
            data[0], strides[0] = value, stride
            inputs = 1
            if step.operand:
                data[1], strides[1] = rows.at[step.operand], rows.steps[step.operand]
                inputs = 2
            if step.other:
                data[2], strides[2] = rows.at[step.other], rows.steps[step.other]
                inputs = 3
            data[inputs], strides[inputs] = dst, given
            if step.loop(step.context, data, &items, strides, step.auxdata):
                return True
        if taken == 1 and plan.n_steps > 1 and has_errors(ERRORS):
            errors[i] |= PyUFunc_getfperr()
            erred = True
        value, stride = dst, given
        turn = 1 - turn
        i += taken
    if look[0] != LATER:
        look[0] = AT_SINGLE if erred else AT_FUSED
    return False


cdef void _run_fused(
    const MapPlan *plan, const Step *step, int n, const Rows *rows, Py_ssize_t items, const char *src, char *dst,
) noexcept nogil:
    """Run n steps as one loop: the first one may convert bytes, the last one to float16 or to bytes."""
    cdef Fusion all
    cdef uint8_t[2 * MAX_STEPS] functions
    cdef const float *operands[2 * MAX_STEPS]
    cdef Py_ssize_t[2 * MAX_STEPS] strides
    cdef float none = 0     # in place of an operand
    cdef const Step *end = step + n
    cdef int last = step[n - 1].function, count = 0
    all.n, all.src, all.dst = items, src, dst
    all.functions, all.operands, all.strides = functions, operands, strides
    all.bytes = step.function == FROM_BYTES
    all.into = INTO_FLOATS
    if all.bytes:
        step += 1
    if last == TO_HALVES or last == TO_BYTES or last == TO_CUT_BYTES:
        all.into = INTO_HALVES if last == TO_HALVES else INTO_BYTES if last == TO_BYTES else INTO_CUT_BYTES
        end -= 1
    while step < end:
        functions[count], operands[count], strides[count] = step.function, &none, 0
        if step.operand:
            operands[count], strides[count] = <const float *> rows.at[step.operand], rows.steps[step.operand]
        if step.function == CLIP_FUSED:
            functions[count] = FUSED_AT_LEAST
            count += 1
            functions[count] = FUSED_AT_MOST
            operands[count], strides[count] = <const float *> rows.at[step.other], rows.steps[step.other]
        count += 1
        step += 1
    all.steps = count
    fuse(target_number, &all)


cdef void pair_axes(MapPlan *plan) noexcept:
    """Put the axis along which the first operand's neighbours lie next to the last one: a block has items of both.

    Where the last axis is short, a block has several whole axes.
    """
    cdef int to = plan.nest.rank - 2, axis = plan.nest.rank - 1, i
    cdef Py_ssize_t nearest = llabs(plan.operands[0].strides[axis]), step
    for i in range(plan.nest.rank - 1):
        step = llabs(plan.operands[0].strides[i])
        if 0 < step < nearest:
            nearest, axis = step, i
    for i in range(axis, to if 4 * plan.nest.shape[to + 1] >= LINE else 0):
        swap_axes(&plan.nest, i, i + 1)


cdef void find_fused(MapPlan *plan) noexcept:
    """Find steps that one loop can do."""
    cdef int i, end = plan.n_steps      # of those after step i
    cdef Step *step
    for i in range(plan.n_steps - 1, -1, -1):
        step = &plan.steps[i]
        step.fused = 0
        if step.function == NOT_FUSED:
            end = i
        elif TO_CUT_BYTES <= step.function <= TO_HALVES:
            end = i + 1
        else:
            step.fused = end - i
        if step.function == FROM_BYTES:
            end = i
