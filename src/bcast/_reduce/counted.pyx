# cython: cdivision=True
"""Reductions along counts, the adjoint of run-length decoding: each item is reduced from as many rows as its count.

In: counts, a nest with one reduced axis, a range of rows and items. Out: the results of the items that begin in it.

All counts are repeated at each position of the outer axes. Items are reduced in groups, whose accumulators and packed
terms fit a cache. Runs of few dense terms have a separate kernel; longer rows are reduced item by item. An item that is
too large for a group is planned as an ordinary reduction, and so is an item whose accumulator must be computed again.
An item is reduced by the thread whose range contains its first row, in the same way wherever ranges begin. So the bits
of a result do not depend on the number of threads.
"""

from libc.math cimport isfinite
from libc.stdint cimport int64_t
from libc.string cimport memset

from bcast._nest.core cimport Nest, flip_negative_axes
from bcast._reduce.kernels cimport SET, WRITE, CountedRuns, Kernels, Results, Sink, dtypes
from bcast._reduce.plan cimport (
    DATA, ITEMS, OPERANDS, OTHER, PACKED_TERMS, RESULTS, Axes, Axis, Cursor, Operation, Reduction, ReductionPlan, Terms,
    ceil_div, plan_reduction, read_nest,
)
from bcast._reduce.run cimport ItemRows, pack_rows, reduce_rows, reduce_shares, seek
from bcast._rules.counts cimport CHUNK, CountList, find_chunk, read_chunk, tile_counts
from bcast._runtime.tuning cimport LONG_AXIS_ITEMS, SUM_BLOCK_ITEMS, SUM_CALL_ROWS

cdef struct Span:
    # A range of rows and items at one position of the loops, numbered together from the first ones of the position.
    const char *src         # the first row of the position
    char *dst               # the first result of the position
    Py_ssize_t begin
    Py_ssize_t end

cdef struct Memory:
    # A thread's scratch.
    Sink block              # accumulators of a group
    char *packed            # packed terms of a group
    char *alone             # scratch for an item that is planned as an ordinary reduction

cdef struct Items:
    # Consecutive items and their rows.
    const int64_t *counts
    Py_ssize_t items
    Py_ssize_t rows         # rows of all these items
    Py_ssize_t item         # the number of the first item, within its position of the loops
    Py_ssize_t row          # the number of the first item's first row


cdef bint is_faster_along_counts(const Reduction *reduction, const Nest *nest) noexcept nogil:
    """Whether the kernel of counts is faster for a reduction of the middle of three axes: it has few, adjacent rows.

    A row has three items, or a number of items that only that kernel supports. These conditions are clearer whole.
    """
    cdef const Kernels *kernels = reduction.operation.kernels
    cdef Py_ssize_t rows, items     # rows of a result, items of a row
    if nest.rank != 3 or kernels.reduce_counted_runs == NULL:
        return False
    if not nest.stride[RESULTS][0] or nest.stride[RESULTS][1] or not nest.stride[RESULTS][2]:
        return False
    rows, items = nest.shape[1], nest.shape[2]
    return (
        rows <= 2 * LONG_AXIS_ITEMS
        and (items == 3 or 4 < items < kernels.lanes)
        and reduction.terms.made_of == ITEMS and reduction.outcome.repeats == 1 and not reduction.outcome.divides_each
        and reduction.outcome.arrays == 1
        and nest.stride[DATA][1] == items * nest.stride[DATA][2]
        and nest.stride[DATA][0] == rows * nest.stride[DATA][1]
        and nest.stride[RESULTS][0] == items * nest.stride[RESULTS][2]
    )


# ---- The plan ----


cdef void plan_counted(CountedPlan *plan, const Nest *nest, Py_ssize_t item_stride) noexcept nogil:
    """Plan the reduction of the only reduced axis, along counts."""
    cdef const Reduction *reduction = plan.reduction
    cdef Py_ssize_t copies = _take_axes(plan, nest, item_stride)
    cdef Py_ssize_t items = copies * plan.counts.list.size, rows = copies * plan.counts.list.total
    cdef Py_ssize_t width = plan.inner.length

    tile_counts(&plan.counts, copies)
    plan.length = items + rows
    plan.are_dense = reduction.outcome.are_terms and (
        plan.rows.dst_stride == width * plan.inner.dst_stride == width * reduction.terms.size
    )
    plan.group_accumulators = min(<Py_ssize_t> SUM_BLOCK_ITEMS, min(<Py_ssize_t> CHUNK, items) * width)
    plan.group_terms = min(<Py_ssize_t> PACKED_TERMS, rows * width) if reduction.terms.packed else 0
    plan.scratch = _scratch_bytes(plan, rows * width)


cdef Py_ssize_t _take_axes(CountedPlan *plan, const Nest *nest, Py_ssize_t item_stride) noexcept nogil:
    """Find the axes of the rows and of their items; all other axes become loops.

    Return how often one outer axis repeats all counts side by side, if the rows continue along it; otherwise 1.
    """
    cdef Py_ssize_t copies = 1
    cdef const Axis *axis
    cdef Axes axes
    cdef int i

    plan.first = read_nest(nest, &axes)
    for i in range(axes.rank):
        if not axes.axis[i].kept:
            plan.rows = axes.axis[i]
    plan.rows.dst_stride = item_stride
    plan.inner = plan.rows
    plan.inner.length = 1
    plan.loops.rank = 0
    plan.positions = 1

    for i in range(axes.rank):
        axis = &axes.axis[i]
        if not axis.kept:
            continue
        if i == axes.rank - 1:
            plan.inner = axis[0]
        elif copies == 1 and _goes_on(plan, axis):
            copies = axis.length
        else:
            plan.loops.axis[plan.loops.rank] = axis[0]
            plan.loops.rank += 1
            plan.positions *= axis.length
    return copies


cdef inline bint _goes_on(const CountedPlan *plan, const Axis *axis) noexcept nogil:
    """Whether rows and results continue along an outer axis where those of all counts end, and the counts are few."""
    cdef const CountList *list = &plan.counts.list
    return (
        2 * list.size <= CHUNK
        and axis.src_stride == list.total * plan.rows.src_stride
        and axis.dst_stride == list.size * plan.rows.dst_stride
    )


cdef inline Py_ssize_t _scratch_bytes(const CountedPlan *plan, Py_ssize_t terms) noexcept nogil:
    """The scratch of a thread, in bytes: for a group, and for an item that is planned as an ordinary reduction."""
    cdef int arrays = plan.reduction.operation.arrays
    cdef Py_ssize_t group = arrays * plan.group_accumulators + plan.group_terms
    cdef Py_ssize_t alone = arrays * min(<Py_ssize_t> SUM_BLOCK_ITEMS, terms)
    if plan.reduction.terms.packed:
        alone += PACKED_TERMS
    return sizeof(double) * (group + alone)


# ---- A share: positions, chunks of counts, groups of items ----


cdef void reduce_counted_share(const CountedPlan *plan, Py_ssize_t begin, Py_ssize_t end, char *scratch) noexcept nogil:
    """Reduce the items that begin in a range of rows and items, numbered across all positions of the outer axes."""
    cdef Py_ssize_t position = begin // plan.length, before
    cdef Cursor cursor
    cdef Memory memory = _lay_out(plan, scratch)
    cdef Span span

    while position * plan.length < end:
        cursor = plan.first
        seek(&plan.loops, True, position, &cursor)
        before = position * plan.length
        span = Span(
            src=cursor.src,
            dst=cursor.dst,
            begin=max(begin - before, <Py_ssize_t> 0),
            end=min(end - before, plan.length),
        )
        _reduce_span(plan, &span, &memory)
        position += 1


cdef inline Memory _lay_out(const CountedPlan *plan, char *scratch) noexcept nogil:
    """Divide a thread's scratch: the arrays of accumulators, packed terms, and the rest."""
    cdef Py_ssize_t size = plan.group_accumulators * plan.reduction.operation.accumulator_size
    cdef char *packed = scratch + plan.reduction.operation.arrays * size
    return Memory(
        block=Sink(mode=SET, sum=scratch, error=scratch + size),
        packed=packed,
        alone=packed + plan.group_terms * sizeof(double),
    )


cdef void _reduce_span(const CountedPlan *plan, const Span *span, const Memory *memory) noexcept nogil:
    """Reduce the items that begin in a span."""
    cdef const CountList *list = &plan.counts.list
    cdef Py_ssize_t list_length = list.size + list.total, chunks = ceil_div(list.size, CHUNK)
    cdef Py_ssize_t copy = span.begin // list_length                            # the number of a repetition of the list
    cdef Py_ssize_t chunk = find_chunk(list, span.begin % list_length, 1)       # the number of a chunk within it
    cdef int64_t[CHUNK] room
    cdef Items left         # items of the chunk that are not reduced yet

    while True:
        left.item = copy * list.size + chunk * CHUNK
        left.row = copy * list.total + list.starts[chunk]
        if left.item + left.row >= span.end:
            return
        left.items = min(<Py_ssize_t> CHUNK, list.size - chunk * CHUNK)
        left.rows = list.starts[chunk + 1] - list.starts[chunk]
        left.counts = read_chunk(list, chunk, room)

        while left.items and left.item + left.row < span.begin:     # these belong to the previous share
            _drop_first(&left)
        while left.items and left.item + left.row < span.end:
            _reduce_next(plan, span, &left, memory)
        chunk += 1
        if chunk == chunks:
            chunk = 0
            copy += 1


cdef inline void _drop_first(Items *left) noexcept nogil:
    """Drop the first item."""
    left.row += left.counts[0]
    left.rows -= left.counts[0]
    left.counts += 1
    left.item += 1
    left.items -= 1


cdef inline void _reduce_next(
    const CountedPlan *plan, const Span *span, Items *left, const Memory *memory,
) noexcept nogil:
    """Reduce a group of the first items, or the first item alone if it does not fit a group; drop what is reduced."""
    cdef Items group = _take_group(plan, left, span.end)
    if group.items:
        _reduce_group(plan, span, &group, memory)
    else:
        _reduce_alone(plan, span, left, memory)
        _drop_first(left)


cdef inline Items _take_group(const CountedPlan *plan, Items *left, Py_ssize_t end) noexcept nogil:
    """Take the first items, if they begin before an end and fit a group; none if the first one does not fit."""
    cdef Items group = left[0]
    if left.item + left.row + left.items + left.rows <= end and _fits(plan, left.items, left.rows):
        left.items = 0
        return group

    group.items = group.rows = 0
    while left.items and left.item + left.row < end and _fits(plan, group.items + 1, group.rows + left.counts[0]):
        group.items += 1
        group.rows += left.counts[0]
        _drop_first(left)
    return group


cdef inline bint _fits(const CountedPlan *plan, Py_ssize_t items, Py_ssize_t rows) noexcept nogil:
    """Whether a group has memory for a number of items and of rows."""
    if items * plan.inner.length > plan.group_accumulators:
        return False
    return not plan.reduction.terms.packed or rows * plan.inner.length <= plan.group_terms


# ---- A group ----


cdef inline const char *_first_row(const CountedPlan *plan, const Span *span, const Items *items) noexcept nogil:
    """The first row of items."""
    return span.src + items.row * plan.rows.src_stride


cdef inline char *_first_result(const CountedPlan *plan, const Span *span, const Items *items) noexcept nogil:
    """The result of the first item."""
    return span.dst + items.item * plan.rows.dst_stride


cdef void _reduce_group(
    const CountedPlan *plan, const Span *span, const Items *group, const Memory *memory,
) noexcept nogil:
    """Reduce the items of a group: together if their rows are dense and narrow, otherwise one by one."""
    cdef const Terms *terms = &plan.reduction.terms
    cdef Py_ssize_t width = plan.inner.length
    cdef ItemRows rows = ItemRows(
        src=_first_row(plan, span, group),
        dtype=terms.dtype,
        count=group.rows,
        stride=plan.rows.src_stride,
        width=width,
        item_stride=plan.inner.src_stride,
    )

    if terms.packed:
        pack_rows(terms, &rows, memory.packed)
        rows.src = memory.packed
        rows.stride = width * terms.size
    if rows.stride == width * terms.size and (width <= 4 or width < plan.reduction.operation.kernels.lanes):
        _reduce_at_once(plan, span, group, &rows, memory)
    else:
        _reduce_one_by_one(plan, span, group, &rows, memory)


cdef inline void _reduce_at_once(
    const CountedPlan *plan, const Span *span, const Items *group, const ItemRows *rows, const Memory *memory,
) noexcept nogil:
    """Reduce a group whose rows are dense and narrow."""
    cdef const Operation *operation = &plan.reduction.operation
    cdef char *results = _first_result(plan, span, group)
    cdef Sink dst = Sink(mode=WRITE, sum=results, error=results)
    cdef CountedRuns runs = CountedRuns(
        src=rows.src,
        end=rows.src + rows.count * rows.stride,
        counts=group.counts,
        count=group.items,
        interleave=rows.width,
    )
    if not plan.are_dense or operation.kernels.reduce_counted_runs(&runs, &dst):
        operation.kernels.reduce_counted_runs(&runs, &memory.block)
        _store_group(plan, span, group, memory)


cdef void _reduce_one_by_one(
    const CountedPlan *plan, const Span *span, const Items *group, const ItemRows *all_rows, const Memory *memory,
) noexcept nogil:
    """Reduce a group whose rows are wide or have gaps."""
    cdef ItemRows rows = all_rows[0]
    cdef Items item = group[0]
    cdef char *result = _first_result(plan, span, group)
    cdef Py_ssize_t _i
    cdef Sink dst

    item.items = 1
    for _i in range(group.items):
        item.rows = rows.count = item.counts[0]
        dst = Sink(mode=WRITE, sum=result, error=result)
        if rows.count == 0:
            _write_identity(plan, result)
        elif not plan.are_dense or rows.count > SUM_CALL_ROWS or reduce_rows(plan.reduction, &rows, dst):
            reduce_rows(plan.reduction, &rows, memory.block)
            _store_group(plan, span, &item, memory)
        rows.src += rows.count * rows.stride
        result += plan.rows.dst_stride
        item.row += item.rows
        item.item += 1
        item.counts += 1


cdef void _store_group(
    const CountedPlan *plan, const Span *span, const Items *group, const Memory *memory,
) noexcept nogil:
    """Finish a group's accumulators and write its results."""
    cdef const Reduction *reduction = plan.reduction
    cdef const Operation *operation = &reduction.operation
    cdef Py_ssize_t width = plan.inner.length, n = group.items * width, i
    cdef char *accumulators = memory.block.sum
    cdef bint has_special = operation.finish(reduction, &memory.block, n)
    cdef Results results = Results(
        dtype=reduction.outcome.dtype,
        sum_size=operation.accumulator_size,
        dst=_first_result(plan, span, group),
        stride=plan.inner.dst_stride,
        sum_stride=operation.accumulator_size,
    )

    if operation.scale != NULL:
        operation.scale(reduction, &memory.block, n)
    if group.items == 1 or plan.rows.dst_stride == width * plan.inner.dst_stride:
        reduction.target.store(&results, accumulators, n)
    else:
        for i in range(group.items):
            reduction.target.store(&results, accumulators + i * width * operation.accumulator_size, width)
            results.dst += plan.rows.dst_stride
    if has_special:
        _make_again(plan, span, group, memory)


cdef void _make_again(
    const CountedPlan *plan, const Span *span, const Items *group, const Memory *memory,
) noexcept nogil:
    """Compute each item again, alone, whose result is infinite or NaN."""
    cdef const double *accumulators = <const double *> memory.block.sum
    cdef Py_ssize_t width = plan.inner.length, i, j
    cdef Items left = group[0]
    for i in range(group.items):
        for j in range(i * width, (i + 1) * width):
            if not isfinite(accumulators[j]):
                _reduce_alone(plan, span, &left, memory)
                break
        _drop_first(&left)


# ---- One item ----


cdef void _reduce_alone(
    const CountedPlan *plan, const Span *span, const Items *left, const Memory *memory,
) noexcept nogil:
    """Reduce the first item as an ordinary reduction over its rows, in one share."""
    cdef Py_ssize_t count = left.counts[0]
    cdef char *results = _first_result(plan, span, left)
    cdef ReductionPlan alone
    cdef Nest nest

    if count == 0:
        _write_identity(plan, results)
        return

    nest.n, nest.rank = OPERANDS, 0
    nest.data[DATA], nest.data[OTHER] = <char *> _first_row(plan, span, left), NULL
    nest.data[RESULTS] = results
    if count > 1 or plan.inner.length == 1:
        _append_axis(&nest, count, plan.rows.src_stride, 0)
        flip_negative_axes(&nest, DATA)
    if plan.inner.length > 1:
        _append_axis(&nest, plan.inner.length, plan.inner.src_stride, plan.inner.dst_stride)

    alone.reduction = plan.reduction
    plan_reduction(&alone, &nest, 1)
    reduce_shares(&alone, 0, alone.shares.count, memory.alone, NULL)


cdef inline void _append_axis(
    Nest *nest, Py_ssize_t length, Py_ssize_t src_stride, Py_ssize_t dst_stride,
) noexcept nogil:
    """Append an axis, inside of all others."""
    nest.shape[nest.rank] = length
    nest.stride[DATA][nest.rank] = src_stride
    nest.stride[OTHER][nest.rank] = 0
    nest.stride[RESULTS][nest.rank] = dst_stride
    nest.rank += 1


cdef void _write_identity(const CountedPlan *plan, char *dst) noexcept nogil:
    """Write the result of an item without rows."""
    cdef Py_ssize_t size = dtypes[plan.reduction.outcome.dtype].size, width = plan.inner.length, i
    if plan.inner.dst_stride == size:
        memset(dst, plan.reduction.operation.identity, width * size)
    else:
        for i in range(width):
            memset(dst + i * plan.inner.dst_stride, plan.reduction.operation.identity, size)
