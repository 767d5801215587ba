# cython: cdivision=True
"""From operands to blocks on which a loop runs: the plan, and the nest that walks it.

`sort_axes` and `merge_axes` make few long axes of many. `plan_blocks` chooses the part of them that is a block, and how
the loop gets each operand's items of one. `run_blocks` fills buffers, calls the loop, and writes what it left in a
buffer. Buffers stay in a first-level cache, and are the only memory there is beside the operands.
"""

from libc.stdint cimport uint8_t
from libc.string cimport memcpy

from bcast._copy.core cimport Matrix, Plan, make_plan, strided_copy, transpose_of, write_planned
from bcast._runtime.cpu cimport L1, LINE, target_number

cdef extern from "_apply/casts.h":
    void swap_bytes "bcast_swap_bytes"(Py_ssize_t n, int size, void *items) noexcept nogil

cdef enum:
    BLOCK_BYTES = 3 * L1 // 16      # of a block, of all operands that go through buffers; twice that halves the speed
    MOST_ITEMS = 8192       # of a block
    DIRECT_ITEMS = 65536    # of one without buffers, which need not stay in a cache
    LONG_ROW = 384          # items; a longer row is worth a call of the loop
    FEW_ROWS = 32           # which are called for in the time in which buffers are planned
    SMALL_ROW = 512         # items of a row that needs no plan
    TILE_ROW = 128          # items of a row of a tile, whose columns lie side by side in memory,
    TILE_ROWS = 32          # and of a column


cdef bint sort_axes(const Nest *nest, int n, int *order) noexcept:
    """List the axes as NumPy iterates over the first `n` operands, outermost first; tell whether that is their order.

    The axis with the shorter strides is within. Where operands disagree, or say nothing, the order of the axes counts.
    """
    cdef int rank = nest.rank, i, j, k, at
    cdef Py_ssize_t a, b
    cdef bint known, swap, same = True
    for i in range(rank - 1, -1, -1):   # insert axis i among those that are within
        at = i
        for j in range(i + 1, rank):
            known = swap = False
            for k in range(n):
                a = _magnitude(nest.operands[k].strides[i])
                b = _magnitude(nest.operands[k].strides[order[j]])
                if a and b:
                    if b <= a:
                        swap = False
                    elif not known:
                        swap = True
                    known = True
            if known:
                if not swap:
                    break
                at = j
        for j in range(i, at):
            order[j] = order[j + 1]
        order[at] = i
        same = same and at == i
    return same


cdef inline Py_ssize_t _magnitude(Py_ssize_t step) noexcept nogil:
    return -step if step < 0 else step


cdef void merge_axes(Nest *nest, const int *order) noexcept:
    """Put the axes in order, merge those that are one for all operands, and drop those of length 1; keep two."""
    cdef int rank = 0, i, k, axis
    cdef Py_ssize_t length
    cdef bint one
    cdef Py_ssize_t[NEST_AXES] shape
    cdef Py_ssize_t[MAX_OPERANDS][NEST_AXES] strides
    for i in range(nest.rank):
        axis = i if order == NULL else order[i]
        length = nest.shape[axis]
        if length == 1:
            continue
        one = rank > 0
        for k in range(nest.n):
            if one and strides[k][rank - 1] != length * nest.operands[k].strides[axis]:
                one = False
        if one:
            shape[rank - 1] *= length
        else:
            shape[rank] = length
            rank += 1
        for k in range(nest.n):
            strides[k][rank - 1] = nest.operands[k].strides[axis]
    i = max(0, 2 - rank)    # axes to be added in front
    nest.rank = rank + i
    for axis in range(i):
        nest.shape[axis] = 1
        for k in range(nest.n):
            nest.operands[k].strides[axis] = 0
    for axis in range(rank):
        nest.shape[i + axis] = shape[axis]
        for k in range(nest.n):
            nest.operands[k].strides[i + axis] = strides[k][axis]


cdef bint is_small(const Nest *nest) noexcept:
    """Whether there are few rows, each of which one call of the loop reads and writes where it lies."""
    cdef const Operand *operand
    cdef int k
    if nest.rank != 2 or nest.shape[0] > FEW_ROWS or nest.shape[1] > SMALL_ROW:
        return False
    for k in range(nest.n):
        operand = &nest.operands[k]
        if operand.cast != NULL or operand.swapped or not operand.aligned or (
            operand.strides[1] and operand.strides[1] != operand.size
        ):
            return False
    return True


cdef void run_small(const Nest *nest) noexcept:
    """Run the loop on the rows of a small nest."""
    cdef char *at[MAX_OPERANDS]
    cdef Py_ssize_t[MAX_OPERANDS] steps
    cdef Py_ssize_t _i
    cdef int k
    for k in range(nest.n):
        at[k] = nest.operands[k].data
        steps[k] = nest.operands[k].strides[1]
    for _i in range(nest.shape[0]):
        nest.loop(nest.context, at, &nest.shape[1], steps, nest.auxdata)
        for k in range(nest.n):
            at[k] += nest.operands[k].strides[0]


cdef void plan_blocks(Nest *nest) noexcept:
    """Choose the blocks, and how the loop gets each operand."""
    cdef int last = nest.rank - 1, i, k
    cdef Py_ssize_t n = nest.shape[last], rows = 1, items = 0, bytes_ = 0
    cdef Operand *operand
    for i in range(last):
        rows *= nest.shape[i]
    nest.rows = n >= LONG_ROW or rows <= FEW_ROWS
    for k in range(nest.n):
        operand = &nest.operands[k]
        if operand.cast != NULL or operand.swapped or not operand.aligned or (
            not nest.rows and _is_uneven(nest, operand)
        ):
            bytes_ += operand.loop_size
    items = min(<Py_ssize_t> MOST_ITEMS, BLOCK_BYTES // bytes_) if bytes_ else <Py_ssize_t> DIRECT_ITEMS
    nest.row_parts = 1
    nest.row = n
    if nest.rows:
        nest.cut = last - 1
        if _has_tiles(nest):
            items = TILE_ROW * TILE_ROWS
            nest.row = _even(n, TILE_ROW)
        elif n > items:
            nest.row = _even(n, items)
        nest.row_parts = (n + nest.row - 1) // nest.row
        nest.inner = nest.row
    else:
        nest.cut = last
        nest.inner = 1
        while nest.cut and 2 * nest.inner * nest.shape[nest.cut] <= items:
            nest.inner *= nest.shape[nest.cut]
            nest.cut -= 1
    nest.part = _even(nest.shape[nest.cut], max(<Py_ssize_t> 1, items // nest.inner))
    nest.parts = (nest.shape[nest.cut] + nest.part - 1) // nest.part
    nest.blocks = nest.parts * nest.row_parts
    for i in range(nest.cut):
        nest.blocks *= nest.shape[i]
    nest.once_bytes = nest.own_bytes = 0
    for k in range(nest.n):
        _plan_operand(nest, &nest.operands[k], k == nest.n - 1)


cdef inline Py_ssize_t _even(Py_ssize_t length, Py_ssize_t limit) noexcept:
    """The length of the parts if a length is cut into as few parts of about the same length as `limit` allows, about.
    """
    cdef Py_ssize_t parts = (length + limit - 1) // limit
    cdef Py_ssize_t part = (length + parts - 1) // parts
    return part if parts == 1 or part < LINE else (part + LINE - 1) & -LINE     # so that they begin with a line


cdef bint _is_uneven(const Nest *nest, const Operand *operand) noexcept:
    """Whether more than one step leads from item to item."""
    cdef int i
    for i in range(nest.rank - 1):
        if nest.shape[i] > 1 and operand.strides[i] != nest.shape[i + 1] * operand.strides[i + 1]:
            return True
    return False


cdef bint _has_tiles(const Nest *nest) noexcept:
    """Whether items that are neighbours in a row lie lines apart for some operand, and those in a column closer."""
    cdef int last = nest.rank - 1, k
    cdef Py_ssize_t step, row_step
    if nest.shape[last - 1] < 4:
        return False
    for k in range(nest.n):
        step = _magnitude(nest.operands[k].strides[last])
        row_step = _magnitude(nest.operands[k].strides[last - 1])
        if step >= LINE and row_step and row_step < step:
            return True
    return False


cdef inline Py_ssize_t _length(const Nest *nest, int axis) noexcept nogil:
    """How much of an axis a block has, if it is whole."""
    if axis == nest.cut:
        return nest.part
    return nest.row if nest.rows and axis == nest.rank - 1 else nest.shape[axis]


cdef void _plan_operand(Nest *nest, Operand *operand, bint is_out) noexcept:
    cdef int last = nest.rank - 1, i
    cdef bint as_it_lies = operand.cast == NULL and operand.swapped == 0 and operand.aligned
    cdef bint repeated = False, moves = False, even = True
    cdef Py_ssize_t items = 1, inner = operand.strides[last], dense = operand.size, at
    for i in range(last, nest.cut - 1, -1):
        if _length(nest, i) == 1:
            continue
        if operand.strides[i] == 0:
            repeated = True
            continue
        if operand.strides[i] != dense:
            even = False
        dense = _length(nest, i) * operand.strides[i]
        items *= _length(nest, i)
    operand.dense = even
    operand.step = inner
    operand.row_step = operand.strides[nest.cut]
    operand.expanded = repeated and items > 1 and not nest.rows
    operand.plan = 0
    if items == 1:
        operand.step = operand.row_step = 0
    if as_it_lies and (inner % operand.size == 0) and (nest.rows or _is_even(nest, operand)):
        if nest.rows and _has_tiles(nest) and _magnitude(inner) >= LINE and _magnitude(operand.row_step) < inner:
            pass        # a tile of it is transposed
        elif not nest.side_by_side or operand.step == operand.loop_size or operand.step == 0:
            operand.way = DIRECT
            return
    operand.way = EACH
    if not is_out:
        for i in range(nest.cut):
            moves = moves or operand.strides[i] != 0
        moves = moves or (operand.strides[nest.cut] != 0 and nest.parts > 1)
        moves = moves or (nest.row_parts > 1 and inner != 0)
        if not moves:
            operand.way = ONCE
    at = nest.once_bytes if operand.way == ONCE else nest.own_bytes
    operand.buffer = at
    at += _aligned_size(items * operand.size)
    operand.cast_buffer = at
    if operand.cast != NULL:
        at += _aligned_size(items * operand.loop_size)
    operand.full_buffer = at
    if operand.expanded:
        at += _aligned_size(nest.part * nest.inner * operand.loop_size)
        operand.plan = at
        at += _aligned_size(sizeof(Plan))
    if operand.way == ONCE:
        nest.once_bytes = at
    else:
        nest.own_bytes = at
    operand.step = 0 if items == 1 or (nest.rows and inner == 0) else operand.loop_size


cdef inline Py_ssize_t _aligned_size(Py_ssize_t size) noexcept nogil:
    return (size + LINE - 1) & -LINE


cdef bint _is_even(const Nest *nest, const Operand *operand) noexcept:
    """Whether one step leads from each item of a block to the next."""
    cdef int i
    for i in range(nest.cut, nest.rank - 1):
        if _length(nest, i) > 1 and operand.strides[i] != nest.shape[i + 1] * operand.strides[i + 1]:
            return False
    return True


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


cdef int run_blocks(const Nest *nest, Py_ssize_t begin, Py_ssize_t end, const char *once, char *own) noexcept nogil:
    """Run the loop on the blocks from `begin` to `end`; tell whether it has failed."""
    cdef const Operand *operand
    cdef char *data[MAX_OPERANDS]
    cdef char *at[MAX_OPERANDS]
    cdef Py_ssize_t[MAX_OPERANDS] steps, row_steps
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
                    _fill(nest, operand, data[k], part, row, own)
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
