# From operands to blocks on which a loop runs.
#
# In: operands, and the axes of the result. Out: a Nest. `sort_axes` and `merge_axes` make few long axes of many;
# `plan_blocks` chooses the part of them that is a block, and how the loop gets each operand's items of one.

cdef enum:
    MAX_OPERANDS = 4    # of `where`: three that are read, and the output, which is always the last one
    NEST_AXES = MAX_AXES + 1    # one more, so that a block always has two

# Loops as NumPy's: on items at steps of their own, which they may not have in common.
ctypedef int (*Loop)(
    void *context, char *const *data, const Py_ssize_t *dims, const Py_ssize_t *steps, void *auxdata
) noexcept nogil
ctypedef void (*Cast)(Py_ssize_t n, const void *src, void *dst) noexcept nogil

cdef enum Way:          # how the loop gets a block of an operand:
    DIRECT              # it reads or writes the items where they lie
    ONCE                # from a buffer that is the same for all blocks
    EACH                # from a buffer that is filled for each block, or through one, if it is the output

cdef struct Operand:
    char *data
    Py_ssize_t[NEST_AXES] strides   # 0 where the operand is repeated
    Py_ssize_t size         # bytes of an item in memory,
    Py_ssize_t loop_size    # and of one that the loop takes
    Cast cast               # from the one to the other, or back for the output; NULL if they are the same
    int swapped             # bytes of the units that lie in memory in the other order; 0 if none do
    bint aligned            # whether C may read the items where they lie
    # What the plan says:
    Way way
    bint dense              # the items of a block lie side by side in memory, in order,
    bint expanded           # and are repeated within a block
    Py_ssize_t step         # the loop's, between items,
    Py_ssize_t row_step     # and between rows, where it lies
    Py_ssize_t buffer       # where its buffers begin: of items as they are,
    Py_ssize_t cast_buffer  # converted,
    Py_ssize_t full_buffer  # and repeated
    Py_ssize_t plan         # and the plan of the copies that repeat them

cdef struct Nest:
    Loop loop
    void *context
    void *auxdata
    bint side_by_side       # the loop takes only items side by side, or one for all;
    int spread              # bits of the operands of which it takes one for all, but slowly: that is repeated in a buffer
    int n                   # operands
    int rank
    Py_ssize_t[NEST_AXES] shape     # outermost first
    Operand[MAX_OPERANDS] operands
    # What the plan says: a block has `part` of the axis `cut`, and all axes within whole, in one call of the loop; or
    # if `rows`, it has up to `row` of the last axis in one call for each index of the axis before.
    bint rows
    int cut
    Py_ssize_t part, parts  # of the axis `cut`, and how many blocks there are along it
    Py_ssize_t row, row_parts
    Py_ssize_t inner        # items of a block for each index of `cut`
    Py_ssize_t blocks
    Py_ssize_t once_bytes   # of the buffers that all threads share,
    Py_ssize_t own_bytes    # and of those that each thread has

cdef enum:
    APPLY_BLOCK_BYTES = 9 * L1 // 16    # of all operands of a block, if some go through buffers
    APPLY_BLOCK_ITEMS = 8192        # of a block
    APPLY_WHOLE_ITEMS = 1024        # of axes that are whole: several of these would make copies of more axes
    APPLY_DIRECT_ITEMS = 65536      # of one without buffers, which need not stay in a cache
    APPLY_LONG_ROW_ITEMS = 384      # a longer row is worth a call of the loop; few shorter ones need no plan
    APPLY_FEW_ROWS = 32             # which are called for in the time in which buffers are planned
    APPLY_TILE_ROWS = 32            # of a tile, whose columns lie side by side in memory,
    APPLY_TILE_ROW_BYTES = 8192     # and of such a row, all of which are one stream where they are whole,
    APPLY_TILE_ROW_ITEMS = 400      # unless the rows of its buffer would share the same few places of a cache


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
    if nest.rank != 2 or nest.shape[0] > APPLY_FEW_ROWS or nest.shape[1] > APPLY_LONG_ROW_ITEMS:
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
    cdef Py_ssize_t n = nest.shape[last], rows = 1, items = APPLY_DIRECT_ITEMS, bytes_ = 0, size
    cdef bint one, buffered, through = False
    cdef Operand *operand
    for i in range(last):
        rows *= nest.shape[i]
    nest.rows = n >= APPLY_LONG_ROW_ITEMS or rows <= APPLY_FEW_ROWS
    for k in range(nest.n):
        if nest.spread >> k & 1 and nest.operands[k].strides[last] == 0:
            nest.rows = False
    for k in range(nest.n):
        operand = &nest.operands[k]
        one = operand.strides[last] == 0    # for a row
        buffered = operand.cast != NULL or operand.swapped or not operand.aligned
        if (buffered and not one) if nest.rows else (buffered or (nest.spread >> k & 1 and one) or _is_uneven(nest, operand)):
            through = True
        bytes_ += operand.loop_size
    if through:
        items = min(<Py_ssize_t> APPLY_BLOCK_ITEMS, APPLY_BLOCK_BYTES // bytes_)
    nest.row_parts = 1
    nest.row = n
    if nest.rows:
        nest.cut = last - 1
        size = _tile_size(nest)
        if size:
            nest.row = _even(n, APPLY_TILE_ROW_BYTES // size)
            if nest.row * size & 1023 == 0:
                nest.row = _even(n, APPLY_TILE_ROW_ITEMS)
            items = APPLY_TILE_ROWS * nest.row
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
    if not nest.rows and nest.inner >= APPLY_WHOLE_ITEMS:
        items = nest.inner
    nest.part = _even(nest.shape[nest.cut], max(<Py_ssize_t> 1, items // nest.inner))
    nest.parts = (nest.shape[nest.cut] + nest.part - 1) // nest.part
    nest.blocks = nest.parts * nest.row_parts
    for i in range(nest.cut):
        nest.blocks *= nest.shape[i]
    nest.once_bytes = nest.own_bytes = 0
    for k in range(nest.n):
        _plan_operand(nest, &nest.operands[k], k == nest.n - 1, nest.spread >> k & 1)


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


cdef Py_ssize_t _tile_size(const Nest *nest) noexcept:
    """The bytes of an item if neighbours in a row lie lines apart for some operand, and those in a column closer; or 0.

    Items of the widest such operand count.
    """
    cdef int last = nest.rank - 1, k
    cdef Py_ssize_t size = 0
    for k in range(nest.n if nest.shape[last - 1] >= 4 else 0):
        if _is_turned(&nest.operands[k], last):
            size = max(size, nest.operands[k].loop_size)
    return size


cdef inline bint _is_turned(const Operand *operand, int last) noexcept:
    cdef Py_ssize_t step = _magnitude(operand.strides[last]), row_step = _magnitude(operand.strides[last - 1])
    return step >= LINE and row_step and row_step < step


cdef inline Py_ssize_t _length(const Nest *nest, int axis) noexcept nogil:
    """How much of an axis a block has, if it is whole."""
    if axis == nest.cut:
        return nest.part
    return nest.row if nest.rows and axis == nest.rank - 1 else nest.shape[axis]


cdef void _plan_operand(Nest *nest, Operand *operand, bint is_out, bint spread) noexcept:
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
        # No row follows a part of one, whose last is shorter.
        dense = 0 if i == last and nest.row_parts > 1 else _length(nest, i) * operand.strides[i]
        items *= _length(nest, i)
    operand.dense = even
    operand.step = inner
    operand.row_step = operand.strides[nest.cut]
    operand.expanded = repeated and not nest.rows and (items > 1 or spread)
    operand.plan = 0
    if items == 1:
        operand.step = operand.row_step = 0
    if as_it_lies and (inner % operand.size == 0) and (nest.rows or _is_even(nest, operand)) and not (
        operand.expanded and items == 1
    ):
        if nest.rows and nest.shape[last - 1] >= 4 and _is_turned(operand, last):
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
    operand.step = operand.loop_size if operand.expanded or (items > 1 and not (nest.rows and inner == 0)) else 0


cdef inline Py_ssize_t _aligned_size(Py_ssize_t size) noexcept nogil:
    return (size + LINE - 1) & -LINE


cdef bint _is_even(const Nest *nest, const Operand *operand) noexcept:
    """Whether one step leads from each item of a block to the next."""
    cdef int i
    for i in range(nest.cut, nest.rank - 1):
        if _length(nest, i) > 1 and operand.strides[i] != nest.shape[i + 1] * operand.strides[i + 1]:
            return False
    return True
