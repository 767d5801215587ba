# Blocks, which the loop computes one after the other.
#
# In: a planned Nest, and buffers. Out: the result's items. `run_blocks` fills the buffers, calls the loop, and writes
# what it left in a buffer. Buffers stay in a first-level cache, and are the only memory there is beside the operands.

cdef extern from "_apply/casts.h":
    void swap_bytes "bcast_swap_bytes"(Py_ssize_t n, int size, void *items) noexcept nogil


cdef int run_blocks(const Nest *nest, Py_ssize_t begin, Py_ssize_t end, const char *once, char *own) noexcept nogil:
    """Run the loop on the blocks from `begin` to `end`; tell whether it has failed."""
    cdef const Operand *operand
    cdef char *data[MAX_OPERANDS]
    cdef char *at[MAX_OPERANDS]
    cdef char *filled[MAX_OPERANDS]     # from where a buffer has its items,
    cdef Py_ssize_t[MAX_OPERANDS] steps, row_steps, parts   # and of how much of the axis `cut`
    cdef Py_ssize_t row_before = -1
    cdef Py_ssize_t block, rest, index, items, part, row, _i
    cdef int k, axis, last = nest.rank - 1, out = nest.n - 1
    for block in range(begin, end):
        rest = block
        for k in range(nest.n):
            data[k] = nest.operands[k].data
        row = nest.row
        if nest.rows:
            index = rest % nest.row_parts * nest.row
            rest //= nest.row_parts
            row = min(row, nest.shape[last] - index)
            for k in range(nest.n):
                data[k] += index * nest.operands[k].strides[last]
        if row != row_before:
            row_before = row
            parts = [0, 0, 0, 0]
        index = rest % nest.parts * nest.part
        rest //= nest.parts
        part = min(nest.part, nest.shape[nest.cut] - index)
        for k in range(nest.n):
            data[k] += index * nest.operands[k].strides[nest.cut]
        for axis in range(nest.cut - 1, -1, -1):
            index = rest % nest.shape[axis]
            rest //= nest.shape[axis]
            for k in range(nest.n):
                data[k] += index * nest.operands[k].strides[axis]
        for k in range(nest.n):
            operand = &nest.operands[k]
            at[k] = data[k]
            steps[k] = operand.step
            row_steps[k] = operand.row_step
            if operand.way != DIRECT:
                if k == out:
                    at[k] = own + operand.buffer if operand.cast == NULL else own + operand.cast_buffer
                elif operand.way == ONCE:
                    at[k] = _filled(operand, once)
                else:
                    if part > parts[k] or data[k] != filled[k]:     # not just repeated along an axis without
                        _fill(nest, operand, data[k], part, row, own)
                        filled[k], parts[k] = data[k], part
                    at[k] = _filled(operand, own)
                if nest.rows:
                    row_steps[k] = (row if operand.strides[last] else 1) * operand.loop_size if operand.row_step else 0
        if nest.rows:
            items = row
            for _i in range(part):
                if nest.loop(nest.context, at, &items, steps, nest.auxdata):
                    return 1
                for k in range(nest.n):
                    at[k] += row_steps[k]
        else:
            items = part * nest.inner
            if nest.loop(nest.context, at, &items, steps, nest.auxdata):
                return 1
        if nest.operands[out].way != DIRECT:
            _empty(nest, &nest.operands[out], data[out], part, row, own)
    return 0


cdef inline char *_filled(const Operand *operand, const char *buffers) noexcept nogil:
    """The buffer from which the loop reads an operand."""
    return <char *> buffers + (
        operand.full_buffer if operand.expanded
        else operand.cast_buffer if operand.cast != NULL else operand.buffer
    )


cdef void _fill(
    const Nest *nest, const Operand *operand, const char *src, Py_ssize_t part, Py_ssize_t row, char *buffers,
) noexcept nogil:
    """Fill an operand's buffers with the items of a block: side by side, then converted, then repeated."""
    cdef Py_ssize_t items = 1, size
    cdef Py_ssize_t[NEST_AXES] lengths
    cdef int i, n = 0
    cdef int[NEST_AXES] axes
    cdef char *dst = buffers + operand.buffer
    cdef Plan *plan = <Plan *> (buffers + operand.plan)
    for i in range(nest.cut, nest.rank):
        if operand.strides[i]:
            lengths[n] = part if i == nest.cut else row if nest.rows and i == nest.rank - 1 else nest.shape[i]
            axes[n] = i
            items *= lengths[n]
            n += 1
    if not operand.dense or operand.swapped or not operand.aligned or (
        operand.cast == NULL and not operand.expanded
    ):
        _pack(operand, n, lengths, axes, <const uint8_t *> src, <uint8_t *> dst)
        if operand.swapped:
            swap_bytes(items * operand.size // operand.swapped, operand.swapped, dst)
        src = dst
    if operand.cast != NULL:
        dst = buffers + operand.cast_buffer
        operand.cast(items, src, dst)
        src = dst
    if operand.expanded:
        size = part * nest.inner * operand.loop_size
        dst = buffers + operand.full_buffer
        plan.src_end = <const uint8_t *> src + items * operand.loop_size
        write_planned(plan, 0, size, <const uint8_t *> src, <uint8_t *> dst, NULL)


cdef void _pack(
    const Operand *operand, int n, const Py_ssize_t *lengths, const int *axes, const uint8_t *src, uint8_t *dst,
) noexcept nogil:
    """Copy the items of some axes of an operand side by side."""
    cdef Py_ssize_t size = operand.size, outer = operand.strides[axes[0]] if n else 0, packed = operand.size, i
    cdef Matrix matrix
    cdef int runs = n
    while runs and operand.strides[axes[runs - 1]] == size:     # a run of items is one long item
        runs -= 1
        size *= lengths[runs]
    if runs == 0:
        memcpy(dst, src, size)
    elif runs == 1:
        matrix = Matrix(1, lengths[0], size, size, outer, 0)
        strided_copy(&matrix, src, dst)
    elif runs == 2:
        matrix = Matrix(lengths[0], lengths[1], size, outer, operand.strides[axes[1]], lengths[1] * size)
        if outer == size:
            transpose_of[target_number](&matrix, src, dst)
        else:
            strided_copy(&matrix, src, dst)
    else:
        for i in range(1, n):
            packed *= lengths[i]
        for i in range(lengths[0]):
            _pack(operand, n - 1, lengths + 1, axes + 1, src + i * outer, dst + i * packed)


cdef void _empty(
    const Nest *nest, const Operand *operand, char *dst, Py_ssize_t part, Py_ssize_t row, char *own,
) noexcept nogil:
    """Write the output's items of a block from its buffer: converted, then to their places."""
    cdef char *src = own + operand.buffer
    cdef Py_ssize_t items = part * (row if nest.rows else nest.inner)
    if operand.cast != NULL:
        operand.cast(items, own + operand.cast_buffer, src)
    if operand.swapped:
        swap_bytes(items * operand.size // operand.swapped, operand.swapped, src)
    if operand.dense:
        memcpy(dst, src, items * operand.size)
    else:
        _unpack(
            nest, operand, nest.cut, part, items * operand.size // part, row, <const uint8_t *> src, <uint8_t *> dst,
        )


cdef void _unpack(
    const Nest *nest, const Operand *operand, int axis, Py_ssize_t length, Py_ssize_t packed, Py_ssize_t row,
    const uint8_t *src, uint8_t *dst,
) noexcept nogil:
    """Copy items that lie side by side to their places along an axis, for each index of which there are so many bytes,
    and along those within.
    """
    cdef Py_ssize_t step = operand.strides[axis], inner = row if nest.rows else nest.shape[nest.rank - 1], i
    cdef int last = nest.rank - 1
    cdef Matrix matrix
    if axis == last:
        if step == operand.size:
            memcpy(dst, src, length * step)
        else:
            matrix = Matrix(length, 1, operand.size, operand.size, operand.size, step)
            strided_copy(&matrix, src, dst)
    elif axis == last - 1 and step == operand.size:
        matrix = Matrix(inner, length, operand.size, operand.size, inner * operand.size, operand.strides[last])
        transpose_of[target_number](&matrix, src, dst)
    else:
        for i in range(length):
            _unpack(
                nest, operand, axis + 1, inner if axis == last - 1 else nest.shape[axis + 1],
                operand.size if axis == last - 1 else packed // nest.shape[axis + 1], row,
                src + i * packed, dst + i * step,
            )


cdef int plan_copies(const Nest *nest, char *once, char *own, int threads) except -1:
    """Plan the copies that repeat items within a block, for each thread; fill the buffers that all threads share."""
    cdef const Operand *operand
    cdef char *plan
    cdef list shape, source
    cdef int i, k
    for k in range(nest.n - 1):
        operand = &nest.operands[k]
        if operand.way == DIRECT or not operand.expanded:
            continue
        shape = []
        source = []
        items = operand.loop_size
        for i in range(nest.cut, nest.rank):
            shape.append(_length(nest, i))
            source.append(_length(nest, i) if operand.strides[i] else 1)
            items *= source[len(source) - 1]
        plan = (once if operand.way == ONCE else own) + operand.plan
        make_plan(
            <Plan *> plan, tuple(shape), tuple(source), operand.loop_size, NULL, items,
            nest.part * nest.inner * operand.loop_size,
        )
        for i in range(1, threads if operand.way == EACH else 1):
            memcpy(plan + i * nest.own_bytes, plan, sizeof(Plan))
    for k in range(nest.n - 1):
        if nest.operands[k].way == ONCE:
            _fill(nest, &nest.operands[k], nest.operands[k].data, nest.part, nest.row, once)
    return 0
