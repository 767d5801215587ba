# cython: cdivision=True
"""From a plan to results: the loops around the kernels' calls.

In: a `ReductionPlan`, the numbers of shares, memory. Out: results. Shares of a tile that has several write accumulators
to `partials` instead, and `combine_shares` combines these. Nothing here allocates, raises or runs Python, except that
tests set a limit.

A share is a tile, or some of its terms. If the kernel can write a tile's results, nothing else is done
(`_write_results`). Otherwise each call combines terms with the block of accumulators, and terms that the kernel cannot
read in place are packed before (`_accumulate`). Then the block is folded and stored (`_fold`, `_store`). An operation
may finish accumulators before they are stored. The last sections of this module finish sums and products; no function
above them depends on the operation.
"""

from libc.math cimport NAN, fabs, fma, isfinite, ldexp, pow
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memmove, memset

from bcast._reduce.kernels cimport (
    ADD, EXACT_DIGITS, FLOAT16, FLOAT32, FLOAT64, INT64, MEASURED_PARTS, NUMBER, NUMBERS_COUNT, SET, SQUARE, WRITE,
    Measuring, Products, Results, Rows, Runs, Settling, dtypes,
)
from bcast._reduce.plan cimport (
    DEVIATIONS, ITEMS, PACKED_TERMS, PRODUCTS, REALS, SAME_BYTES, SQUARES, Axis, Operation, move,
)
from bcast._runtime.arrays cimport MAX_AXES
from bcast._runtime.core cimport LINE, PAGE, cut, target_number
from bcast._runtime.tuning cimport LONG_AXIS_ITEMS, SUM_CALL_ROWS, SUM_ROW_ITEMS, SUM_SHARE_BYTES

cdef extern from "_reduce/simd/kernels.h":
    const Target *bcast_sum_target_of(int target) nogil
    const BlockKernels *bcast_block_kernels_of(int target) noexcept nogil
    const Kernels *bcast_operation_kernels(int target, int operation, int dtype) nogil
    const PositionKernels *bcast_position_kernels_of(int target, int dtype) nogil
    ShortKernel bcast_short_kernel_of(int target, int operation, int kind, int length, int rows) nogil
    void pack "bcast_pack"(int dtype, bint as_real, char *dst, const char *src, Py_ssize_t stride, Py_ssize_t n) nogil

cdef extern from "_reduce/simd/pieces.h":
    void fetch "bcast_fetch"(const char *src, Py_ssize_t nbytes) noexcept nogil
    void gather "bcast_gather"(
        char *dst, const char *src, Py_ssize_t stride, Py_ssize_t count, Py_ssize_t size) noexcept nogil
    void spread "bcast_spread"(
        Py_ssize_t size, char *dst, const char *src, Py_ssize_t piece_stride, Py_ssize_t pieces, Py_ssize_t stride,
        Py_ssize_t n) noexcept nogil
    bint has_special_16 "bcast_has_special_16"(const uint16_t *bits, Py_ssize_t n, uint16_t infinity) noexcept nogil
    bint has_special_32 "bcast_has_special_32"(const uint32_t *bits, Py_ssize_t n, uint32_t infinity) noexcept nogil
    bint has_special_64 "bcast_has_special_64"(const uint64_t *bits, Py_ssize_t n, uint64_t infinity) noexcept nogil
    void pack_squares "bcast_pack_squares"(
        int dtype, uint64_t *dst, const char *src, Py_ssize_t stride, Py_ssize_t n) noexcept nogil

cdef extern from "_reduce/simd/sum.h":
    ctypedef struct BlockKernels "bcast_block_kernels":
        pass

cdef extern from "_reduce/simd/exact.h":
    ctypedef struct Cascade "bcast_cascade":
        double *sum
        double *error
        double *bound
        double special

    ctypedef struct ExactSum "bcast_exact":
        double special

    ctypedef struct ScaledCascade "bcast_scaled_cascade":
        Cascade sum
        double scale
        double lost

    double special_sum "bcast_special_sum"(const char *src, Py_ssize_t stride, Py_ssize_t n) noexcept nogil
    void add_scaled_to_cascade "bcast_cascade_add_scaled"(
        ScaledCascade *sum, const double *terms, Py_ssize_t n) noexcept nogil
    void add_to_cascade "bcast_cascade_add"(Cascade *sum, const double *terms, Py_ssize_t n) noexcept nogil
    void fold_cascade "bcast_cascade_fold"(Cascade *sum) noexcept nogil
    void begin_exactly "bcast_exact_begin"(ExactSum *sum, const BlockKernels *kernels) noexcept nogil
    void add_exactly "bcast_exact_add"(ExactSum *sum, const double *terms, Py_ssize_t n) noexcept nogil
    void multiply_exactly "bcast_exact_multiply"(ExactSum *sum, uint64_t by) noexcept nogil
    double round_exactly "bcast_exact_result"(ExactSum *sum, uint64_t divisor, bint to_odd) noexcept nogil

cdef extern from "_reduce/simd/exact_products.h":
    void split_products "bcast_split_products"(double *a, double *b, Py_ssize_t n) noexcept nogil
    void add_products_exactly "bcast_exact_add_products"(
        ExactSum *sum, const double *a, const double *b, Py_ssize_t n) noexcept nogil

cdef extern from "_reduce/simd/exact_squares.h":
    ctypedef struct RowSums "bcast_row_sums":
        ExactSum[MEASURED_PARTS] sums
        ExactSum squares

    ctypedef struct IntegerSums "bcast_integer_sums":
        pass

    void begin_row "bcast_row_begin"(RowSums *row, const BlockKernels *kernels) noexcept nogil
    void clear_row "bcast_row_clear"(RowSums *row) noexcept nogil
    Py_ssize_t add_floats_of_row "bcast_row_add_floats"(
        ExactSum *sum, ExactSum *squares, const char *src, Py_ssize_t stride, Py_ssize_t n,
        bint skips_nan) noexcept nogil
    void add_integers_of_row "bcast_row_add_integers"(
        ExactSum *sum, ExactSum *squares, bint has_sign, const char *src, Py_ssize_t stride,
        Py_ssize_t n) noexcept nogil
    void sum_integers "bcast_sum_integers"(
        IntegerSums *sums, bint has_sign, const char *src, Py_ssize_t stride, Py_ssize_t n) noexcept nogil
    void bound_integers "bcast_bound_integers"(
        const IntegerSums *sums, double *sum, double *squares, Py_ssize_t apart) noexcept nogil
    double measured "bcast_measured"(const Measuring *how, RowSums *row, uint64_t n) noexcept nogil
    void write_digits "bcast_exact_write_digits"(ExactSum *sum, int64_t *digits, int *low, int *high) noexcept nogil
    void read_digits "bcast_exact_read_digits"(
        ExactSum *sum, const int64_t *digits, Py_ssize_t stride, int low, int n) noexcept nogil

cdef extern from "_runtime/floats.h":
    void two_sum "bcast_two_sum"(double *sum, double *error, double term) noexcept nogil

ctypedef void (*AddTerms)(void *sum, const double *terms, Py_ssize_t n) noexcept nogil

cdef enum:
    REPEATED_AT_ONCE = 64   # accumulators in one block on the stack, to be repeated or divided by their own divisors
    PACKED_EXACTLY = 256    # terms in one block on the stack, converted to float64
    PARTS = 3               # parts of an expansion
    MANY_TERMS = 2 * PACKED_EXACTLY     # the least number of terms that are summed as integers without a cascade

cdef double TINY = 2.0 ** -700, LEAST_NORMAL = 2.0 ** -1022

cdef struct Tile:
    # A tile of the result.
    Cursor first            # the first items of the tile
    Axes axes               # the axes of the block, with the tile's length along the cut one
    Py_ssize_t width        # accumulators of a group
    Py_ssize_t results      # accumulators of all groups after folding

cdef struct Share:
    # The terms of a tile that one thread reduces.
    Cursor first
    Py_ssize_t length       # length of one call: rows of each group, or terms of each item in a run
    const Axes *loops       # axes of the loops around the calls

cdef struct Call:
    # One call for all groups or runs of a tile.
    Cursor first
    Py_ssize_t length       # rows of each group, or terms of each item in a run
    Sink dst
    char *packed            # memory for packed terms; NULL if kernels write results

cdef struct TermRows:
    # Rows of terms that are combined with one row of accumulators.
    Cursor first            # at the first item of the first row
    Axis along              # the axis from row to row; its length is not used
    Py_ssize_t count        # number of rows
    Py_ssize_t width        # terms of a row


def set_limits(shared=SUM_SHARE_BYTES):
    """Set the bytes that justify a thread, so that tests can use threads on small arrays."""
    global share_bytes
    if shared < 1:
        raise ValueError(f"`shared` expected bytes, at least 1, got {shared}")
    share_bytes = shared


set_limits()


cdef const Target *sum_target(int target) noexcept nogil:
    """The kernels that sum on a target."""
    return bcast_sum_target_of(target)


cdef const Kernels *operation_kernels(int target, int operation, int dtype) noexcept nogil:
    """The kernels of an operation other than a sum, for a target and a dtype of the table."""
    return bcast_operation_kernels(target, operation, dtype)


cdef const PositionKernels *position_kernels(int target, int dtype) noexcept nogil:
    """The kernels that find the position of an extreme, for a target and a dtype of the table."""
    return bcast_position_kernels_of(target, dtype)


cdef ShortKernel short_kernel(int target, int operation, int kind, int length, int rows) noexcept nogil:
    """The kernel of short vectors for an operation, a kind of items, and lengths of vectors and of results."""
    return bcast_short_kernel_of(target, operation, kind, length, rows)


cdef void pack_items(
    int dtype, bint as_real, char *dst, const char *src, Py_ssize_t stride, Py_ssize_t n,
) noexcept nogil:
    """Write items contiguously: all as float64, or else floats unchanged and integers with 64 bits."""
    pack(dtype, as_real, dst, src, stride, n)


# ---- Shares and tiles ----


cdef void reduce_shares(
    const ReductionPlan *plan, Py_ssize_t begin, Py_ssize_t end, char *scratch, char *partials,
) noexcept nogil:
    """Reduce a range of shares: to the results, or to `partials` if tiles have several shares."""
    cdef Py_ssize_t number
    for number in range(begin, end):
        if plan.shares.each == 1:
            _reduce_tile(plan, number, scratch)
        else:
            _reduce_part(plan, number, scratch, partials)


cdef inline void _reduce_tile(const ReductionPlan *plan, Py_ssize_t number, char *scratch) noexcept nogil:
    """Reduce all terms of a tile, and write its results."""
    cdef Tile tile
    cdef Share share

    _find_tile(plan, number, &tile)
    if plan.call.writes and _write_results(plan, &tile):
        return
    share = Share(first=tile.first, length=plan.call.along.length, loops=&plan.loops)
    _store(plan, &tile, _accumulate(plan, &tile, &share, scratch))


cdef void _reduce_part(const ReductionPlan *plan, Py_ssize_t number, char *scratch, char *partials) noexcept nogil:
    """Reduce a share of a tile's terms to accumulators in `partials`."""
    cdef Py_ssize_t size = plan.block.items * plan.reduction.operation.accumulator_size
    cdef int part = <int> (number % plan.shares.each), each = <int> plan.shares.each
    cdef Axes loops = plan.loops
    cdef const Axis *axis = &plan.call.along if plan.shares.axis < 0 else &plan.loops.axis[plan.shares.axis]
    cdef Py_ssize_t begin = cut(axis.length, part, each)
    cdef Py_ssize_t length = cut(axis.length, part + 1, each) - begin
    cdef Tile tile
    cdef Share share
    cdef Sink dst

    _find_tile(plan, number // plan.shares.each, &tile)
    share = Share(first=tile.first, length=plan.call.along.length, loops=&loops)
    move(&share.first, axis, begin)
    if plan.shares.axis < 0:
        share.length = length
    else:
        loops.axis[plan.shares.axis].length = length

    partials += plan.reduction.operation.arrays * number * size
    dst = Sink(mode=SET, sum=partials, error=partials + size)
    _copy_accumulators(plan.reduction, dst, _accumulate(plan, &tile, &share, scratch), tile.results)


cdef void combine_shares(const ReductionPlan *plan, char *partials) noexcept nogil:
    """Combine the accumulators of each tile's shares, in order, and write the results."""
    cdef Py_ssize_t size = plan.block.items * plan.reduction.operation.accumulator_size
    cdef Py_ssize_t share_bytes = plan.reduction.operation.arrays * size
    cdef Py_ssize_t number, _share
    cdef Sink block, other
    cdef Tile tile

    for number in range(plan.tiles.count):
        _find_tile(plan, number, &tile)
        block = other = Sink(mode=ADD, sum=partials, error=partials + size)
        for _share in range(1, plan.shares.each):
            other = _moved(other, share_bytes)
            plan.reduction.operation.kernels.combine(&block, &other, tile.results)
        _store(plan, &tile, block)
        partials += plan.shares.each * share_bytes


cdef void _find_tile(const ReductionPlan *plan, Py_ssize_t number, Tile *tile) noexcept nogil:
    """Find a tile by its number."""
    cdef const Axes *block = &plan.block.axes
    cdef const Axis *axis = &block.axis[plan.tiles.axis]
    cdef Py_ssize_t begin = 0
    cdef int i

    tile.first = plan.first
    if plan.tiles.count > 1:
        begin = number % plan.tiles.along * plan.tiles.length
        move(&tile.first, axis, begin)
        seek(&plan.loops, True, number // plan.tiles.along, &tile.first)

    tile.axes.rank = block.rank
    for i in range(block.rank):
        tile.axes.axis[i] = block.axis[i]
    tile.axes.axis[plan.tiles.axis].length = min(plan.tiles.length, axis.length - begin)

    tile.width = 1
    tile.results = tile.axes.axis[0].length
    for i in range(1, block.rank):
        tile.width *= tile.axes.axis[i].length
        if block.axis[i].kept:
            tile.results *= tile.axes.axis[i].length


cdef bint seek(const Axes *axes, bint kept, Py_ssize_t number, Cursor *cursor) noexcept nogil:
    """Move to a position, by its number, along the kept or along the reduced axes; return whether it exists."""
    cdef const Axis *axis
    cdef Py_ssize_t outer
    cdef int i

    for i in range(axes.rank - 1, -1, -1):
        axis = &axes.axis[i]
        if axis.kept == kept:
            outer = number // axis.length if number >= axis.length else 0   # divisions are slow
            move(cursor, axis, number - outer * axis.length)
            number = outer
    return number == 0


cdef inline Sink _moved(Sink dst, Py_ssize_t by) noexcept nogil:
    """The sink after `by` bytes."""
    return Sink(mode=dst.mode, sum=dst.sum + by, error=dst.error + by)


cdef inline void _copy_accumulators(const Reduction *reduction, Sink dst, Sink src, Py_ssize_t n) noexcept nogil:
    """Copy `n` accumulators, which may overlap."""
    cdef Py_ssize_t nbytes = n * reduction.operation.accumulator_size, i
    for i in range(reduction.operation.arrays):
        memmove(dst.sum + i * (dst.error - dst.sum), src.sum + i * (src.error - src.sum), nbytes)


# ---- A tile's terms ----


cdef inline bint _write_results(const ReductionPlan *plan, const Tile *tile) noexcept nogil:
    """Let the kernel write a tile's results; return whether it could."""
    cdef Call call = Call(
        first=tile.first,
        length=plan.call.along.length,
        dst=Sink(mode=WRITE, sum=tile.first.dst, error=tile.first.dst + plan.reduction.outcome.apart),
        packed=NULL,
    )
    return not _reduce_block(plan, tile, &call)


cdef inline Sink _accumulate(
    const ReductionPlan *plan, const Tile *tile, const Share *share, char *scratch,
) noexcept nogil:
    """Reduce a share to accumulators in `scratch`, and fold those along reduced axes."""
    cdef Py_ssize_t size = plan.block.items * plan.reduction.operation.accumulator_size, number = 0
    cdef Call call = Call(
        first=share.first,
        length=share.length,
        dst=Sink(mode=SET, sum=scratch, error=scratch + size),
        packed=scratch + plan.reduction.operation.arrays * size,
    )

    while seek(share.loops, False, number, &call.first):
        _reduce_block(plan, tile, &call)
        call.dst.mode = ADD
        call.first = share.first
        number += 1
    if tile.results < tile.axes.axis[0].length * tile.width:
        _fold(plan, tile, call.dst)
    return call.dst


cdef bint _reduce_block(const ReductionPlan *plan, const Tile *tile, const Call *call) noexcept nogil:
    """Have the kernel reduce all groups or runs of a tile; return whether it could not write the results."""
    cdef Runs runs
    if not plan.call.runs:
        return _reduce_groups(plan, tile, call)

    runs = Runs(
        src=call.first.src,
        count=tile.axes.axis[0].length,
        stride=tile.axes.axis[0].src_stride,
        length=call.length * tile.width,
        interleave=tile.width,
    )
    if plan.reduction.terms.packed:
        _reduce_packed_runs(plan, &runs, call)
        return False
    return plan.reduction.operation.kernels.reduce_runs(&runs, &call.dst)


cdef bint _reduce_groups(const ReductionPlan *plan, const Tile *tile, const Call *call) noexcept nogil:
    """The same for groups of rows. An incomplete last row is combined with the first accumulators."""
    cdef Py_ssize_t within = plan.call.within, advance, left = 0, _group
    cdef Sink dst = call.dst
    cdef Cursor group = call.first
    cdef TermRows rows = TermRows(first=group, along=plan.call.along, count=call.length, width=tile.width)

    if within > 1:
        rows.count = call.length // within
        left = (call.length - rows.count * within) * (tile.width // within)
        rows.along.src_stride *= within
        rows.along.other_stride *= within
    if dst.mode == WRITE:
        advance = plan.block.axes.axis[0].dst_stride
    else:
        advance = tile.width * plan.reduction.operation.accumulator_size

    for _group in range(tile.axes.axis[0].length):
        rows.first = group
        if plan.reduction.terms.made_of == DEVIATIONS:
            rows.first.other = _means_of_row(tile, group.other, call.packed + PACKED_TERMS * sizeof(double))
        if _reduce_term_rows(plan, &rows, dst, call.packed):
            return True
        if left:
            _reduce_last_row(plan, &rows, left, dst, call.packed)
        move(&group, &plan.block.axes.axis[0], 1)
        dst = _moved(dst, advance)
    return False


cdef inline void _reduce_last_row(
    const ReductionPlan *plan, const TermRows *rows, Py_ssize_t width, Sink dst, char *packed,
) noexcept nogil:
    """Combine the row after the given rows, which is narrower, with the first of their accumulators."""
    cdef TermRows last = rows[0]
    last.count = 1
    last.width = width
    move(&last.first, &rows.along, rows.count)
    dst.mode = ADD
    _reduce_term_rows(plan, &last, dst, packed)


cdef const char *_means_of_row(const Tile *tile, const char *means, char *scratch) noexcept nogil:
    """Return contiguous means of a row's items: in place if possible, otherwise copied to `scratch`."""
    cdef const Axes *axes = &tile.axes
    cdef Py_ssize_t[MAX_AXES + 1] position      # an item's index along each axis of the row
    cdef Py_ssize_t i
    cdef int j

    if axes.rank == 2 and axes.axis[1].other_stride == sizeof(double):
        return means

    memset(position, 0, axes.rank * sizeof(Py_ssize_t))
    for i in range(tile.width):
        (<double *> scratch)[i] = (<const double *> means)[0]
        for j in range(axes.rank - 1, 0, -1):
            means += axes.axis[j].other_stride
            position[j] += 1
            if position[j] < axes.axis[j].length:
                break
            means -= axes.axis[j].length * axes.axis[j].other_stride
            position[j] = 0
    return scratch


# ---- Rows ----


cdef inline bint _reduce_term_rows(
    const ReductionPlan *plan, const TermRows *rows, Sink dst, char *packed,
) noexcept nogil:
    """Reduce rows, in place or packed; return whether the kernel could not write the results."""
    cdef ItemRows items
    if plan.call.gathers:
        _reduce_gathered_rows(plan, rows, dst, packed)
        return False
    if plan.reduction.terms.packed:
        _reduce_packed_rows(plan, rows, dst, packed)
        return False

    items = ItemRows(
        src=rows.first.src,
        dtype=plan.reduction.terms.dtype,
        count=rows.count,
        stride=rows.along.src_stride,
        width=rows.width,
        item_stride=plan.reduction.terms.size,
    )
    return reduce_rows(plan.reduction, &items, dst)


cdef bint reduce_rows(const Reduction *reduction, const ItemRows *rows, Sink dst) noexcept nogil:
    """Reduce rows of terms side by side; return whether the kernel could not write the results.

    The kernel adds up to SUM_CALL_ROWS rows in each turn. They come from the four quarters of all rows, because memory
    delivers several streams faster than one.
    """
    cdef const Terms *terms = &reduction.terms
    cdef Py_ssize_t stride = rows.stride
    cdef Py_ssize_t at_once = _rows_of_turn(reduction, rows, dst.mode)
    cdef Py_ssize_t advance = at_once // 4 * stride, done = 0, turns
    cdef bint are_dense = 4 * LINE <= stride == rows.width * terms.size
    cdef Rows some

    if terms.ahead and are_dense and rows.count * stride <= 4 * PAGE:   # the CPU sees no stream in four quarters
        fetch(rows.src + terms.ahead, rows.count * stride)
    if rows.count >= at_once:
        turns = rows.count // 4 if at_once == 4 else rows.count // SUM_CALL_ROWS    # by shifts: divisions are slow
        some = Rows(
            src=rows.src,
            turns=turns,
            advance=advance,
            rows=at_once,
            stride=turns * advance,
            half_stride=stride,
            width=rows.width,
        )
        if reduction.operation.kernels.reduce_rows(&some, &dst):
            return True
        dst.mode = ADD
        done = turns * at_once
    if done == rows.count:
        return False

    some = Rows(
        src=rows.src + done * stride,
        turns=1,
        advance=0,
        rows=rows.count - done,
        stride=stride,
        half_stride=4 * stride,
        width=rows.width,
    )
    return reduction.operation.kernels.reduce_rows(&some, &dst)


cdef inline Py_ssize_t _rows_of_turn(const Reduction *reduction, const ItemRows *rows, int mode) noexcept nogil:
    """The number of rows that the kernel adds in a turn: four where eight would compete for lines of a cache."""
    cdef const Operation *operation = &reduction.operation
    cdef bint has_errors = operation.arrays > 1 and not (
        operation.idempotent or operation.finish == finish_scaled_products
    )
    cdef bint share_lines = rows.stride % (PAGE // 2) == 0 or (has_errors and rows.width * reduction.terms.size <= PAGE)
    return 4 if share_lines and mode != WRITE else SUM_CALL_ROWS


cdef inline Rows _packed_rows(
    const Terms *terms, const char *packed, Py_ssize_t count, Py_ssize_t width,
) noexcept nogil:
    """Rows of packed terms, contiguous."""
    cdef Py_ssize_t size = width * terms.size
    return Rows(src=packed, turns=1, advance=0, rows=count, stride=size, half_stride=4 * size, width=width)


cdef void _reduce_packed_rows(
    const ReductionPlan *plan, const TermRows *rows, Sink dst, char *packed,
) noexcept nogil:
    """Pack SUM_CALL_ROWS rows at a time and reduce them. A multiplier that adds packs one row of sums of products."""
    cdef const Terms *terms = &plan.reduction.terms
    cdef const Axis *items = &plan.block.axes.axis[plan.block.axes.rank - 1]
    cdef Py_ssize_t room = PACKED_TERMS // rows.width      # rows of terms, or of factors, that fit scratch
    cdef Py_ssize_t at_once = room if terms.in_bulk else min(<Py_ssize_t> SUM_CALL_ROWS, room)
    cdef Py_ssize_t added = 1       # rows of products that the multiplier adds to one row
    cdef Py_ssize_t count = rows.count
    cdef Cursor first = rows.first
    cdef Products products
    cdef Rows some

    if _adds_rows(&plan.reduction.terms, rows):
        added = min(count, room) if terms.spreads else count
    while count > 0:
        added = min(added, count)
        some = _packed_rows(terms, packed, 1 if added > 1 else min(count, at_once), rows.width)
        products = Products(
            a=first.src,
            b=first.other,
            count=some.rows,
            a_advance=rows.along.src_stride,
            b_advance=rows.along.other_stride,
            width=rows.width,
            rows=added,
            stride=rows.along.src_stride,
            ahead=terms.ahead,
        )
        if terms.spreads:
            _spread_factors(plan, &products, packed + PACKED_TERMS * terms.size, count == rows.count)
        _pack_terms(plan.reduction, &products, items, 1, packed)
        _reduce_call(plan.reduction, &some, &dst)
        if terms.has_errors:
            some.src += PACKED_TERMS * terms.size
            _reduce_call(plan.reduction, &some, &dst)
        if added > 1 and terms.other_dtype == FLOAT64:      # the sums' error terms follow the sums
            some.src += rows.width * terms.size
            plan.reduction.operation.kernels.reduce_rows(&some, &dst)
        move(&first, &rows.along, some.rows * added)
        count -= some.rows * added


cdef inline void _reduce_call(const Reduction *reduction, const Rows *rows, Sink *dst) noexcept nogil:
    """Reduce packed rows, SUM_CALL_ROWS at a time."""
    cdef Rows some = rows[0]
    if rows.rows > SUM_CALL_ROWS:
        some.turns = rows.rows // SUM_CALL_ROWS
        some.rows = SUM_CALL_ROWS
        some.advance = SUM_CALL_ROWS * rows.stride
        reduction.operation.kernels.reduce_rows(&some, dst)
        dst.mode = ADD
        some.src += some.turns * some.advance
        some.rows = rows.rows - some.turns * SUM_CALL_ROWS
        some.turns = 1
    if some.rows > 0:
        reduction.operation.kernels.reduce_rows(&some, dst)
        dst.mode = ADD


cdef inline bint _adds_rows(const Terms *terms, const TermRows *rows) noexcept nogil:
    """Whether a kernel adds rows of products as it makes them: it needs equal strides between rows of both operands."""
    cdef Py_ssize_t other_stride = rows.along.other_stride
    if terms.spreads:
        other_stride = rows.width * dtypes[terms.other_dtype].size
    return terms.multiplier_adds and rows.along.src_stride == other_stride


cdef inline void _spread_factors(
    const ReductionPlan *plan, Products *products, char *factors, bint are_first,
) noexcept nogil:
    """Copy the second operand's items side by side. If all rows have the same items, copy those of the first rows only.
    """
    if products.b_advance != 0 or are_first:
        _spread_rows(plan, products, &plan.block.axes.axis[plan.block.axes.rank - 1], factors)
    else:
        products.b, products.b_advance = factors, products.width * dtypes[plan.reduction.terms.other_dtype].size


cdef void _spread_rows(
    const ReductionPlan *plan, Products *products, const Axis *items, char *factors,
) noexcept nogil:
    """Copy the second operand's items side by side, row after row, as a kernel reads them."""
    cdef Py_ssize_t size = dtypes[plan.reduction.terms.other_dtype].size
    cdef Py_ssize_t row_bytes = products.width * size
    cdef Py_ssize_t length = min(items.length, products.width)      # items of a piece along one axis
    cdef Py_ssize_t pieces = products.width // length
    cdef Py_ssize_t i

    if pieces == 1:
        spread(
            size, factors, products.b, products.b_advance, products.count * products.rows, items.other_stride, length,
        )
    else:
        for i in range(products.count * products.rows):
            spread(
                size, factors + i * row_bytes, products.b + i * products.b_advance,
                plan.block.axes.axis[plan.block.axes.rank - 2].other_stride, pieces, items.other_stride, length,
            )
    products.b, products.b_advance = factors, row_bytes


cdef void _reduce_gathered_rows(
    const ReductionPlan *plan, const TermRows *rows, Sink dst, char *packed,
) noexcept nogil:
    """Copy the pieces of SUM_CALL_ROWS rows at a time to contiguous rows, and reduce these."""
    cdef const Terms *terms = &plan.reduction.terms
    cdef const Axes *block = &plan.block.axes
    cdef Py_ssize_t at_once = min(<Py_ssize_t> SUM_CALL_ROWS, PACKED_TERMS // rows.width)
    cdef Py_ssize_t row_bytes = rows.width * terms.size, count = rows.count, i
    cdef ItemRows pieces = ItemRows(
        src=NULL,
        dtype=terms.dtype,
        count=0,
        stride=block.axis[1].src_stride,
        width=1,
        item_stride=block.axis[block.rank - 1].src_stride,
    )
    cdef Cursor row = rows.first
    cdef Rows some
    cdef int j

    for j in range(2, block.rank):
        pieces.width *= block.axis[j].length
    pieces.count = rows.width // pieces.width
    while count > 0:
        some = _packed_rows(terms, packed, min(count, at_once), rows.width)
        for i in range(some.rows):
            pieces.src = row.src
            if terms.packed:
                pack_rows(terms, &pieces, packed + i * row_bytes)
            else:
                gather(packed + i * row_bytes, row.src, pieces.stride, pieces.count, pieces.width * terms.size)
            move(&row, &rows.along, 1)
        plan.reduction.operation.kernels.reduce_rows(&some, &dst)
        dst.mode = ADD
        count -= some.rows


# ---- Runs that are packed ----


cdef void _reduce_packed_runs(const ReductionPlan *plan, const Runs *runs, const Call *call) noexcept nogil:
    """Pack the number of runs that fits, or parts of one run, and reduce them."""
    cdef const Reduction *reduction = plan.reduction
    cdef Py_ssize_t part = min(runs.length, <Py_ssize_t> PACKED_TERMS)      # terms of a run that are packed at once
    cdef Py_ssize_t run = 0, term       # the first run and the first term that are packed
    cdef Runs packed = Runs(src=call.packed, count=0, stride=0, length=0, interleave=runs.interleave)
    cdef Sink dst = call.dst
    cdef Products terms

    if reduction.terms.multiplier_adds and runs.length >= LONG_AXIS_ITEMS:
        _reduce_runs_of_products(plan, runs, call)
        return
    while run < runs.count:
        packed.count = max(<Py_ssize_t> 1, min(PACKED_TERMS // part, runs.count - run))
        dst.mode = call.dst.mode
        term = 0
        while term < runs.length:
            packed.length = min(runs.length - term, part)
            packed.stride = packed.length * reduction.terms.size
            terms = _terms_of_runs(plan, runs, call, run, term)
            terms.count, terms.width = packed.count, packed.length
            if reduction.terms.spreads:
                _spread_rows(plan, &terms, &plan.call.along, call.packed + PACKED_TERMS * reduction.terms.size)
            _join_rows(&reduction.terms, &terms)
            _pack_terms(reduction, &terms, _items_of_runs(plan, runs), 0, call.packed)
            reduction.operation.kernels.reduce_runs(&packed, &dst)
            dst.mode = ADD
            if reduction.terms.has_errors:
                packed.src += PACKED_TERMS * reduction.terms.size
                reduction.operation.kernels.reduce_runs(&packed, &dst)
                packed.src = call.packed
            term += part
        run += packed.count
        dst = _moved(dst, packed.count * runs.interleave * reduction.operation.accumulator_size)


cdef inline void _join_rows(const Terms *terms, Products *products) noexcept nogil:
    """Join rows that are contiguous in both operands into one row: kernels read long rows faster."""
    cdef Py_ssize_t row_bytes = products.width * dtypes[terms.dtype].size
    if terms.made_of == PRODUCTS and terms.multiplier != NULL and products.a_advance == products.b_advance == row_bytes:
        products.width *= products.count
        products.count = 1


cdef void _reduce_runs_of_products(const ReductionPlan *plan, const Runs *runs, const Call *call) noexcept nogil:
    """The same with a multiplier that adds: it packs a vector of sums for each run, and perhaps one of error terms."""
    cdef const Terms *terms = &plan.reduction.terms
    cdef Py_ssize_t lanes = terms.multiplier.lanes
    cdef Py_ssize_t room = 2 * lanes if terms.other_dtype == FLOAT64 else lanes     # scratch for a run's sums, in terms
    cdef Py_ssize_t at_once = PACKED_TERMS // room      # runs that fit scratch
    cdef Py_ssize_t part = runs.length                  # terms of a run that are multiplied at once
    cdef Py_ssize_t run = 0                             # the first run that is multiplied
    cdef Runs sums = Runs(src=call.packed, count=0, stride=room * terms.size, length=lanes, interleave=1)
    cdef Call some = call[0]

    if terms.spreads:
        part = min(part, <Py_ssize_t> SUM_ROW_ITEMS)
        at_once = min(at_once, PACKED_TERMS // part)
    while run < runs.count:
        sums.count = min(at_once, runs.count - run)
        _reduce_products_of_runs(plan, runs, &some, run, part, &sums)
        run += sums.count
        some.dst = _moved(some.dst, sums.count * plan.reduction.operation.accumulator_size)


cdef void _reduce_products_of_runs(
    const ReductionPlan *plan, const Runs *runs, const Call *call, Py_ssize_t run, Py_ssize_t part, const Runs *sums,
) noexcept nogil:
    """Add products of `sums.count` runs, from number `run` on, to `sums`, and reduce these, part by part."""
    cdef const Terms *terms = &plan.reduction.terms
    cdef Py_ssize_t term = 0
    cdef Runs errors = sums[0]
    cdef Sink dst = call.dst
    cdef Products products

    errors.src += terms.multiplier.lanes * terms.size
    while term < runs.length:
        products = _terms_of_runs(plan, runs, call, run, term)
        products.count, products.width = sums.count, min(runs.length - term, part)
        if terms.spreads:
            _spread_rows(plan, &products, &plan.call.along, call.packed + PACKED_TERMS * terms.size)
        products.rows = 0
        terms.multiplier.multiply(&products, call.packed)
        plan.reduction.operation.kernels.reduce_runs(sums, &dst)
        dst.mode = ADD
        if terms.other_dtype == FLOAT64:
            plan.reduction.operation.kernels.reduce_runs(&errors, &dst)
        term += part


cdef inline const Axis *_items_of_runs(const ReductionPlan *plan, const Runs *runs) noexcept nogil:
    """The axis along the items of runs: the interleaved items, if runs are interleaved."""
    return &plan.block.axes.axis[1] if runs.interleave > 1 else &plan.call.along


cdef inline Products _terms_of_runs(
    const ReductionPlan *plan, const Runs *runs, const Call *call, Py_ssize_t run, Py_ssize_t term,
) noexcept nogil:
    """The operands of terms, beginning with a term of a run."""
    cdef const Axis *items = _items_of_runs(plan, runs)
    cdef Py_ssize_t other_stride = plan.block.axes.axis[0].other_stride
    return Products(
        a=runs.src + run * runs.stride + term * items.src_stride,
        b=call.first.other + run * other_stride + term * items.other_stride,
        count=0,
        a_advance=runs.stride,
        b_advance=other_stride,
        width=0,
        rows=1,
        stride=0,
        ahead=plan.reduction.terms.ahead,
    )


# ---- Packing ----


cdef void pack_rows(const Terms *terms, const ItemRows *rows, char *packed) noexcept nogil:
    """Pack rows of items contiguously, as terms that kernels read."""
    cdef bint as_real = terms.packed_as == REALS
    cdef Py_ssize_t row_bytes = rows.width * terms.size, i
    cdef bint are_one = rows.stride == rows.width * rows.item_stride

    if terms.packed_as == SAME_BYTES:
        for i in range(rows.count):
            gather(packed + i * row_bytes, rows.src + i * rows.stride, rows.item_stride, rows.width, terms.size)
    elif terms.packed_as == SQUARES:
        for i in range(1 if are_one else rows.count):
            pack_squares(
                rows.dtype, <uint64_t *> (packed + i * row_bytes), rows.src + i * rows.stride, rows.item_stride,
                rows.count * rows.width if are_one else rows.width,
            )
    elif are_one:
        pack(rows.dtype, as_real, packed, rows.src, rows.item_stride, rows.count * rows.width)
    else:
        for i in range(rows.count):
            pack(rows.dtype, as_real, packed + i * row_bytes, rows.src + i * rows.stride, rows.item_stride, rows.width)


cdef void _pack_terms(
    const Reduction *reduction, const Products *rows, const Axis *items, Py_ssize_t means_stride, char *packed,
) noexcept nogil:
    """Pack terms of any kind: in rows, or in runs if `means_stride` is 0.

    There is one mean for each item of a row, or one for each run.
    """
    cdef const Terms *terms = &reduction.terms
    cdef ItemRows operand
    cdef Products both

    if terms.made_of == DEVIATIONS:
        _pack_deviations(reduction, rows, items.src_stride, means_stride, packed)
        return
    if terms.multiplier != NULL:
        terms.multiplier.multiply(rows, packed)
        return

    operand = ItemRows(
        src=rows.a,
        dtype=terms.dtype,
        count=rows.count,
        stride=rows.a_advance,
        width=rows.width,
        item_stride=items.src_stride,
    )
    pack_rows(terms, &operand, packed)
    if terms.made_of == ITEMS:
        return

    both = Products(
        a=packed, b=packed + PACKED_TERMS * terms.size, count=1, a_advance=0, b_advance=0,
        width=rows.count * rows.width, rows=1, stride=0, ahead=0,
    )
    operand.src, operand.dtype = rows.b, terms.other_dtype
    operand.stride, operand.item_stride = rows.b_advance, items.other_stride
    pack_rows(terms, &operand, <char *> both.b)
    reduction.operation.kernels.multiply(&both, packed)


cdef void _pack_deviations(
    const Reduction *reduction, const Products *rows, Py_ssize_t item_stride, Py_ssize_t means_stride, char *packed,
) noexcept nogil:
    """Pack deviations of items from their means: from one mean for each item of a row, or from one for each run."""
    cdef const Terms *terms = &reduction.terms
    cdef const char *src = rows.a
    cdef const double *means = <const double *> rows.b
    cdef double *dst = <double *> packed
    cdef Py_ssize_t advance = rows.b_advance // <Py_ssize_t> sizeof(double)     # stride between rows of means, in items
    cdef Py_ssize_t count = rows.count, width = rows.width, _row

    if means_stride == 0 and width < LONG_AXIS_ITEMS and rows.a_advance == width * item_stride:
        # Short runs are one row, with a mean for each item.
        spread(sizeof(double), packed + PACKED_TERMS * sizeof(double), rows.b, rows.b_advance, count, 0, width)
        means = dst + PACKED_TERMS
        width, count, means_stride = width * count, 1, 1

    for _row in range(count):
        if terms.multiplier != NULL:
            terms.multiplier.deviate(terms.deviation, src, means, means_stride, dst, width)
        else:
            pack(terms.dtype, terms.packed_as == REALS, <char *> dst, src, item_stride, width)
            reduction.operation.kernels.deviate(terms.deviation, <char *> dst, means, means_stride, dst, width)
        src += rows.a_advance
        means += advance
        dst += width


# ---- From accumulators to results ----


cdef void _fold(const ReductionPlan *plan, const Tile *tile, Sink block) noexcept nogil:
    """Combine the accumulators along the reduced axes of the block, the outermost first."""
    cdef const Kernels *kernels = plan.reduction.operation.kernels
    cdef Py_ssize_t size = plan.reduction.operation.accumulator_size
    cdef Py_ssize_t groups = 1                                              # positions of the outer axes that are kept
    cdef Py_ssize_t inner = tile.axes.axis[0].length * tile.width           # accumulators inside of the axis
    cdef Py_ssize_t length, i
    cdef Sink rows
    cdef int j

    for j in range(tile.axes.rank):
        length = tile.axes.axis[j].length
        inner //= length
        if plan.block.axes.axis[j].kept:
            groups *= length
        elif groups > 1 and inner < SUM_CALL_ROWS:
            kernels.fold(&block, groups, length, inner)
        else:
            for i in range(groups):
                rows = _moved(block, i * length * inner * size)
                _fold_by_halves(plan.reduction, rows, length, inner)
                _copy_accumulators(plan.reduction, _moved(block, i * inner * size), rows, inner)


cdef inline void _fold_by_halves(
    const Reduction *reduction, Sink rows, Py_ssize_t length, Py_ssize_t inner,
) noexcept nogil:
    """Combine rows of accumulators: add the last half to the first, as two long rows, until one row remains."""
    cdef Py_ssize_t row_bytes = inner * reduction.operation.accumulator_size, half
    cdef Sink last
    while length > 1:
        half = length // 2
        last = _moved(rows, (length - half) * row_bytes)
        reduction.operation.kernels.combine(&rows, &last, half * inner)
        length -= half


cdef void _store(const ReductionPlan *plan, const Tile *tile, Sink block) noexcept nogil:
    """Write a tile's results, along one axis at a time."""
    cdef const Reduction *reduction = plan.reduction
    cdef Results results
    cdef Cursor cursor
    cdef Axes outer
    cdef Axis inner
    cdef Py_ssize_t i
    cdef int array

    _finish(plan, tile, block)
    inner = _read_result_axes(reduction, tile, &outer)
    results = Results(
        dtype=reduction.outcome.dtype,
        sum_size=reduction.operation.accumulator_size,
        dst=NULL,
        stride=inner.dst_stride,
        sum_stride=inner.src_stride,
    )
    for i in range(_positions_of(&outer)):
        cursor = Cursor(src=block.sum, other=NULL, dst=tile.first.dst)
        seek(&outer, True, i, &cursor)
        results.dst = cursor.dst
        for array in range(reduction.outcome.arrays):
            reduction.target.store(&results, cursor.src + array * (block.error - block.sum), inner.length)
            results.dst += reduction.outcome.apart


cdef inline Py_ssize_t _positions_of(const Axes *axes) noexcept nogil:
    """The number of positions along axes."""
    cdef Py_ssize_t positions = 1
    cdef int i
    for i in range(axes.rank):
        positions *= axes.axis[i].length
    return positions


cdef inline Axis _read_result_axes(const Reduction *reduction, const Tile *tile, Axes *outer) noexcept nogil:
    """Return the axis along which results are stored: the innermost, or if that is short, the longest. List the others.

    Neighbouring axes that form one axis of the results are joined. `src_stride` is the stride between accumulators.
    """
    cdef int size = reduction.operation.accumulator_size, longest = 0, i
    cdef Py_ssize_t count = 1       # accumulators inside of the next axis
    cdef const Axis *axis
    cdef Axis *last = NULL          # the axis that was listed last; the innermost one is listed first
    cdef Axis inner

    outer.rank = 0
    for i in range(tile.axes.rank - 1, -1, -1):
        axis = &tile.axes.axis[i]
        if not axis.kept or axis.length == 1:
            continue
        if last != NULL and axis.dst_stride == last.length * last.dst_stride:
            last.length *= axis.length
        else:
            last = &outer.axis[outer.rank]
            last[0] = Axis(
                length=axis.length, src_stride=count * size, other_stride=0, dst_stride=axis.dst_stride, kept=True,
            )
            outer.rank += 1
        count *= axis.length
    if outer.rank == 0:
        return Axis(length=1, src_stride=0, other_stride=0, dst_stride=0, kept=True)

    if outer.axis[0].length < LONG_AXIS_ITEMS:
        for i in range(outer.rank):
            if outer.axis[i].length > outer.axis[longest].length:
                longest = i
    inner = outer.axis[longest]
    outer.rank -= 1
    outer.axis[longest] = outer.axis[outer.rank]
    return inner


cdef inline void _finish(const ReductionPlan *plan, const Tile *tile, Sink block) noexcept nogil:
    """Have the operation finish a tile's accumulators, which are then ready to be rounded."""
    cdef const Operation *operation = &plan.reduction.operation
    if plan.reduction.outcome.divides_each:
        if _finish_each(plan, tile, block):
            _make_again(plan, tile, block)
    elif operation.finish(plan.reduction, &block, tile.results):
        _make_again(plan, tile, block)
    if operation.scale != NULL:
        operation.scale(plan.reduction, &block, tile.results)


cdef bint _finish_each(const ReductionPlan *plan, const Tile *tile, Sink block) noexcept nogil:
    """Finish accumulators, each with its own divisor; return whether some must be computed again."""
    cdef double[REPEATED_AT_ONCE] divisors
    cdef bint some_again = False
    cdef Py_ssize_t done = 0, n, i
    cdef Cursor first

    while done < tile.results:
        n = min(tile.results - done, <Py_ssize_t> REPEATED_AT_ONCE)
        for i in range(n):
            first = tile.first
            seek(&tile.axes, True, done + i, &first)
            divisors[i] = _divisor_at(plan, &first)
        some_again |= _finish_some(plan.reduction, _moved(block, done * sizeof(double)), divisors, n)
        done += n
    return some_again


cdef bint _finish_some(const Reduction *reduction, Sink block, double *divisors, Py_ssize_t n) noexcept nogil:
    """Finish a few accumulators: those with equal divisors together. Each divisor becomes 0 when its sums are finished.

    This is clearer whole: it gathers accumulators and returns them to their places.
    """
    cdef double *sums = <double *> block.sum
    cdef double[3 * REPEATED_AT_ONCE] memory
    cdef Py_ssize_t[REPEATED_AT_ONCE] places
    cdef Py_ssize_t apart = (block.error - block.sum) // <Py_ssize_t> sizeof(double), count, i, j, k
    cdef Sink some = Sink(mode=SET, sum=<char *> memory, error=<char *> &memory[REPEATED_AT_ONCE])
    cdef Reduction same = reduction[0]
    cdef bint some_again = False

    for i in range(n):
        if divisors[i] == 0:
            continue
        same.outcome.divisor = divisors[i]
        count = 0
        for j in range(i, n):
            if divisors[j] == same.outcome.divisor:
                divisors[j] = 0
                places[count] = j
                for k in range(3):
                    memory[k * REPEATED_AT_ONCE + count] = sums[k * apart + j]
                count += 1
        some_again |= same.operation.finish(&same, &some, count)
        for j in range(count):
            sums[places[j]] = memory[j]
    return some_again


cdef inline double _divisor_at(const ReductionPlan *plan, const Cursor *first) noexcept nogil:
    """The divisor of the result whose first term is at a cursor."""
    if plan.reduction.outcome.divides_each:
        return (<const double *> first.other)[0]
    return plan.reduction.outcome.divisor


cdef void _make_again(const ReductionPlan *plan, const Tile *tile, Sink block) noexcept nogil:
    """Compute results again, one by one, whose accumulators are infinite or NaN."""
    cdef const double *sums = <const double *> block.sum
    cdef Sink accumulators
    cdef Cursor first
    cdef Py_ssize_t i
    for i in range(tile.results):
        if not isfinite(sums[i]):
            first = tile.first
            seek(&tile.axes, True, i, &first)
            accumulators = _moved(block, i * sizeof(double))
            plan.reduction.operation.again(plan, first, &accumulators)


# ---- Repeated terms, of any operation ----


cdef bint repeat_terms(const Reduction *reduction, const Sink *block, Py_ssize_t n) noexcept nogil:
    """Combine accumulators with themselves as often as their terms are repeated; none must be computed again."""
    cdef Py_ssize_t at_once = min(<Py_ssize_t> REPEATED_AT_ONCE, n), left = n
    cdef Sink some = block[0]
    if reduction.outcome.repeats == 1:
        return False
    while left > 0:
        _repeat(reduction, some, min(at_once, left))
        some = _moved(some, at_once * reduction.operation.accumulator_size)
        left -= at_once
    return False


cdef void _repeat(const Reduction *reduction, Sink block, Py_ssize_t n) noexcept nogil:
    """Combine a few accumulators with themselves by doubling: for 13 repetitions, combine those of 1, 4 and 8."""
    cdef const Kernels *kernels = reduction.operation.kernels
    cdef double[2 * REPEATED_AT_ONCE] memory
    cdef Sink found = Sink(mode=ADD, sum=<char *> memory, error=<char *> &memory[REPEATED_AT_ONCE])
    cdef Py_ssize_t left = reduction.outcome.repeats

    while left % 2 == 0:
        kernels.combine(&block, &block, n)
        left //= 2
    _copy_accumulators(reduction, found, block, n)
    while left > 1:
        kernels.combine(&block, &block, n)
        left //= 2
        if left % 2 == 1:
            kernels.combine(&found, &block, n)
    _copy_accumulators(reduction, block, found, n)


# ---- Finishing sums ----


cdef bint finish_sums(const Reduction *reduction, const Sink *block, Py_ssize_t n) noexcept nogil:
    """Multiply sums by the repeat count of their terms, and add error terms; return whether some are not finite."""
    if reduction.outcome.repeats != 1:
        _multiply(reduction, block, n)
    if reduction.operation.arrays == 1:
        return False
    return reduction.target.add_errors(<double *> block.sum, <const double *> block.error, n)


cdef bint finish_sums_once(const Reduction *reduction, const Sink *block, Py_ssize_t n) noexcept nogil:
    """The same, but compute none again: a sum stays infinite or NaN if a partial sum overflows."""
    finish_sums(reduction, block, n)
    return False


cdef void _multiply(const Reduction *reduction, const Sink *block, Py_ssize_t n) noexcept nogil:
    """Multiply sums by the repeat count of their terms. A compensated sum's error term absorbs the rounding error."""
    cdef double *sums = <double *> block.sum
    cdef double *errors = <double *> block.error
    cdef double by = <double> reduction.outcome.repeats, product
    cdef Py_ssize_t i

    if reduction.operation.arrays > 1:
        for i in range(n):
            product = sums[i] * by
            errors[i] = fma(errors[i], by, fma(sums[i], by, -product))
            sums[i] = product
    elif dtypes[reduction.outcome.dtype].is_float:
        for i in range(n):
            sums[i] *= by
    else:
        _multiply_integers(reduction, block.sum, n)


cdef void _multiply_integers(const Reduction *reduction, char *sums, Py_ssize_t n) noexcept nogil:
    """The same for integers, which wrap around. Narrow ones are multiplied as uint32_t, because int would overflow."""
    cdef Py_ssize_t repeats = reduction.outcome.repeats, i
    cdef int size = reduction.operation.accumulator_size
    if size == 8:
        for i in range(n):
            (<uint64_t *> sums)[i] *= <uint64_t> repeats
    elif size == 4:
        for i in range(n):
            (<uint32_t *> sums)[i] *= <uint32_t> repeats
    elif size == 2:
        for i in range(n):
            (<uint16_t *> sums)[i] = <uint16_t> ((<uint16_t *> sums)[i] * <uint32_t> repeats)
    else:
        for i in range(n):
            (<uint8_t *> sums)[i] = <uint8_t> ((<uint8_t *> sums)[i] * <uint32_t> repeats)


cdef void sum_again(const ReductionPlan *plan, Cursor first, const Sink *accumulators) noexcept nogil:
    """Sum the terms of one result again, because its accumulator overflowed: large terms are scaled down.

    Perhaps only a partial sum overflowed. If there are infinite or NaN terms, the result is their plain sum.
    """
    cdef double least_large = 2.0 ** 900, scale = 2.0 ** -100   # 2^60 large terms, scaled, do not overflow
    cdef double[2] sums = [0, 0]        # sums of small terms, and of large ones scaled down
    cdef double[2] errors = [0, 0]
    cdef double special = 0             # the sum of infinite terms and NaNs
    cdef Py_ssize_t number = 0
    cdef Cursor cursor = first
    cdef double term, total
    cdef bint is_large

    while special == special and seek(&plan.axes, False, number, &cursor):
        term = _term_at(&plan.reduction.terms, &cursor)
        if isfinite(term):
            is_large = fabs(term) >= least_large
            two_sum(&sums[is_large], &errors[is_large], term * scale if is_large else term)
        else:
            special += term
        cursor = first
        number += 1

    if special != 0:    # or NaN
        total = special
    elif sums[1] == 0 and errors[1] == 0:
        total = sums[0] + errors[0]
    else:
        total = (sums[1] + (errors[1] + (sums[0] + errors[0]) * scale)) / scale
    (<double *> accumulators.sum)[0] = total * plan.reduction.outcome.repeats


cdef double _term_at(const Terms *terms, const Cursor *cursor) noexcept nogil:
    """One term, as a float64."""
    cdef double item, other
    pack(terms.dtype, terms.packed_as == REALS, <char *> &item, cursor.src, 0, 1)
    if terms.made_of == ITEMS:
        return item
    pack(terms.other_dtype, terms.packed_as == REALS, <char *> &other, cursor.other, 0, 1)
    if terms.made_of == PRODUCTS:
        return item * other
    if terms.deviation == SQUARE:
        return (item - other) ** 2
    if item != item:
        return 0
    if terms.deviation == NUMBERS_COUNT:
        return 1
    return item - other if terms.deviation == NUMBER else (item - other) ** 2


cdef void divide_sums(const Reduction *reduction, const Sink *block, Py_ssize_t n) noexcept nogil:
    """Divide sums to means or variances; compute the roots if these are the results."""
    reduction.target.divide(<double *> block.sum, reduction.outcome.divisor, reduction.outcome.root, n)


# ---- Finishing exact sums ----


cdef bint finish_exact_sums(const Reduction *reduction, const Sink *block, Py_ssize_t n) noexcept nogil:
    """Multiply sums by the repeat count of their terms, add the initial value, divide and round once.

    Return whether some are not settled: their bounds do not determine how they round.
    """
    cdef Settling how = _settling(reduction)
    if reduction.outcome.repeats != 1:
        _multiply_exactly(reduction, block, n)
    if reduction.outcome.initial != 0:      # or NaN
        _add_initial(reduction, block, n)
    if how.divisor != 1 and how.digits == 53 and _are_tiny(<const double *> block.sum, n):
        return _settle_tiny(reduction, &how, block, n)
    return reduction.target.settle(&how, block, n)


cdef inline bint _are_tiny(const double *sums, Py_ssize_t n) noexcept nogil:
    """Whether all sums are tiny: the remainders of their quotients may underflow."""
    cdef Py_ssize_t i
    if n == 0 or not 0 < fabs(sums[0]) < TINY:
        return False
    for i in range(n):
        if not fabs(sums[i]) < TINY:
            return False
    return True


cdef bint _settle_tiny(
    const Reduction *reduction, const Settling *how, const Sink *block, Py_ssize_t n,
) noexcept nogil:
    """Scale tiny sums up, divide them, and scale the quotients down; subnormal quotients are not settled."""
    cdef double *sums = <double *> block.sum
    cdef double *errors = <double *> block.error
    cdef double *bounds = errors + (errors - sums)
    cdef double scale = 2.0 ** 256
    cdef bint some_again
    cdef Py_ssize_t i

    for i in range(n):
        sums[i] *= scale
        errors[i] *= scale
        bounds[i] *= scale
    some_again = reduction.target.settle(how, block, n)
    for i in range(n):
        sums[i] /= scale
        if fabs(sums[i]) < LEAST_NORMAL and sums[i] != 0:
            sums[i] = NAN
            some_again = True
    return some_again


cdef inline Settling _settling(const Reduction *reduction) noexcept nogil:
    """How sums become results."""
    return settling_of(reduction.outcome.dtype, reduction.outcome.divisor)


cdef Settling settling_of(int dtype, double divisor) noexcept nogil:
    """The divisor of sums, and the precision to which results of a dtype are rounded."""
    if dtype == FLOAT64:
        return Settling(divisor=divisor, digits=53, least_normal=2.0 ** -1022)
    if dtype == FLOAT32:
        return Settling(divisor=divisor, digits=24, least_normal=2.0 ** -126)
    if dtype == FLOAT16:
        return Settling(divisor=divisor, digits=11, least_normal=2.0 ** -14)
    return Settling(divisor=divisor, digits=8, least_normal=2.0 ** -126)    # bfloat16


cdef void _multiply_exactly(const Reduction *reduction, const Sink *block, Py_ssize_t n) noexcept nogil:
    """Multiply exact sums by the repeat count of their terms. If float64 cannot represent the count, they become NaN.
    """
    cdef double *sums = <double *> block.sum
    cdef double *errors = <double *> block.error
    cdef double *bounds = errors + (errors - sums)
    cdef double by = <double> reduction.outcome.repeats, product, lost, rest
    cdef Py_ssize_t i

    if <Py_ssize_t> by != reduction.outcome.repeats:
        by = NAN
    for i in range(n):
        product = sums[i] * by
        lost = fma(sums[i], by, -product)
        sums[i] = product

        product = errors[i] * by
        bounds[i] = bounds[i] * by + fabs(fma(errors[i], by, -product))
        rest = 0
        two_sum(&product, &rest, lost)
        errors[i] = product
        bounds[i] += fabs(rest)


cdef void _add_initial(const Reduction *reduction, const Sink *block, Py_ssize_t n) noexcept nogil:
    """Add the initial value to exact sums."""
    cdef double *sums = <double *> block.sum
    cdef double *errors = <double *> block.error
    cdef double *bounds = errors + (errors - sums)
    cdef double lost, rest
    cdef Py_ssize_t i

    for i in range(n):
        lost = rest = 0
        two_sum(&sums[i], &lost, reduction.outcome.initial)
        two_sum(&errors[i], &rest, lost)
        bounds[i] += fabs(rest)


cdef void sum_exactly(const ReductionPlan *plan, Cursor first, const Sink *accumulators) noexcept nogil:
    """Sum the terms of one result by a cascade, or as integers if that does not settle it; divide and round once."""
    cdef Reduction reduction
    cdef bint is_rounded_again = plan.reduction.outcome.dtype != FLOAT64
    cdef ExactSum sum

    if _sum_specials(plan, first, accumulators):
        return
    reduction = plan.reduction[0]
    reduction.outcome.divisor = _divisor_at(plan, &first)
    if plan.depth < MANY_TERMS:
        if _sum_by_cascade(plan, first, accumulators):
            if not plan.reduction.terms.has_errors:     # then products may be out of range
                return
        elif not finish_exact_sums(&reduction, accumulators, 1):
            return
        elif not plan.reduction.terms.has_errors and _sum_by_scaled_cascade(plan, first, accumulators, &reduction):
            return
    _sum_as_integers(plan, first, &sum)
    (<double *> accumulators.sum)[0] = round_exactly(&sum, <uint64_t> reduction.outcome.divisor, is_rounded_again)


cdef inline bint _sum_specials(const ReductionPlan *plan, Cursor first, const Sink *accumulators) noexcept nogil:
    """Search for infinite terms and NaN along one axis of float64; if there are some, write their sum and return True.
    """
    cdef const Terms *terms = &plan.reduction.terms
    cdef const Axis *axis = NULL
    cdef double special
    cdef int i

    if terms.dtype != FLOAT64 or terms.made_of != ITEMS or not isfinite(plan.reduction.outcome.initial):
        return False
    for i in range(plan.axes.rank):
        if not plan.axes.axis[i].kept:
            if axis != NULL:
                return False
            axis = &plan.axes.axis[i]
    if axis == NULL:
        return False
    special = special_sum(first.src, axis.src_stride, axis.length)
    if special == 0:
        return False
    (<double *> accumulators.sum)[0] = special      # or NaN
    return True


cdef bint _sum_by_scaled_cascade(
    const ReductionPlan *plan, Cursor first, const Sink *accumulators, const Reduction *reduction,
) noexcept nogil:
    """Sum large terms of one result by a cascade, scaled down so that no sum overflows; return whether that settles it.
    """
    cdef double *error = <double *> accumulators.error
    cdef double *bound = error + (error - <double *> accumulators.sum)
    cdef Reduction scaled = reduction[0]
    cdef ScaledCascade sum
    memset(&sum, 0, sizeof(sum))
    sum.scale = 2.0 ** -100
    scaled.outcome.initial *= sum.scale
    if scaled.outcome.initial / sum.scale != reduction.outcome.initial:
        return False

    _add_terms_exactly(plan, first, <AddTerms> add_scaled_to_cascade, &sum)
    fold_cascade(&sum.sum)
    (<double *> accumulators.sum)[0] = sum.sum.sum[0]
    error[0] = sum.sum.error[0]
    bound[0] = sum.sum.bound[0] + sum.lost * 2.0 ** -1073
    if fabs(sum.sum.sum[0]) < 2.0 ** 900 or finish_exact_sums(&scaled, accumulators, 1):
        return False
    (<double *> accumulators.sum)[0] /= sum.scale
    return True


cdef bint finish_expansions(const Reduction *reduction, const Sink *block, Py_ssize_t n) noexcept nogil:
    """Write exact sums as expansions: each part rounds the rest of the sum. Sums that are not exact become NaN."""
    cdef double *sums = <double *> block.sum
    cdef double *errors = <double *> block.error
    cdef const double *bounds = errors + (errors - sums)
    cdef bint has_special = False
    cdef Py_ssize_t i

    _round_sums(reduction, block, n)
    for i in range(n):
        if not bounds[i] == 0:
            sums[i] = NAN
        has_special |= not isfinite(sums[i])
    return has_special


cdef bint finish_bounded_sums(const Reduction *reduction, const Sink *block, Py_ssize_t n) noexcept nogil:
    """Write exact sums as sums of two numbers, and bounds of the rest."""
    cdef double *errors = <double *> block.error
    cdef double *bounds = errors + (errors - <double *> block.sum)
    cdef Py_ssize_t i

    _round_sums(reduction, block, n)
    for i in range(n):
        bounds[i] *= 1.0625     # the bounds themselves were rounded
    return False


cdef void _round_sums(const Reduction *reduction, const Sink *block, Py_ssize_t n) noexcept nogil:
    """Multiply exact sums by the repeat count of their terms; then the first of two parts is their rounded sum."""
    cdef double *sums = <double *> block.sum
    cdef double *errors = <double *> block.error
    cdef double rest
    cdef Py_ssize_t i

    if reduction.outcome.repeats != 1:
        _multiply_exactly(reduction, block, n)
    for i in range(n):
        rest = 0
        two_sum(&sums[i], &rest, errors[i])
        errors[i] = rest


cdef void expand_exactly(const ReductionPlan *plan, Cursor first, const Sink *accumulators) noexcept nogil:
    """Sum the terms of one result by a cascade, or as integers if that is not exact; write the sum as an expansion."""
    cdef Py_ssize_t apart = accumulators.error - accumulators.sum
    cdef double part = 0, subtracted
    cdef ExactSum sum, copy
    cdef int i

    if plan.reduction.terms.has_errors and plan.depth >= MANY_TERMS:
        pass    # a cascade rarely holds all digits of products
    elif _sum_by_cascade(plan, first, accumulators):
        if not plan.reduction.terms.has_errors:
            return
    elif not finish_expansions(plan.reduction, accumulators, 1):
        return
    _sum_as_integers(plan, first, &sum)
    for i in range(PARTS):
        copy = sum
        part = round_exactly(&copy, 1, i == PARTS - 1)
        (<double *> (accumulators.sum + i * apart))[0] = part if isfinite(part) or i == 0 else 0
        subtracted = -part
        add_exactly(&sum, &subtracted, 1)


cdef bint _sum_by_cascade(const ReductionPlan *plan, Cursor first, const Sink *accumulators) noexcept nogil:
    """Sum the terms of one result by a cascade; return whether terms are infinite or NaN: then write the sum of these.
    """
    cdef double *error = <double *> accumulators.error
    cdef double *bound = error + (error - <double *> accumulators.sum)
    cdef Cascade sum
    memset(&sum, 0, sizeof(sum))
    if not isfinite(plan.reduction.outcome.initial):
        sum.special = plan.reduction.outcome.initial
    _add_terms_exactly(plan, first, <AddTerms> add_to_cascade, &sum)
    if sum.special != 0:    # or NaN
        (<double *> accumulators.sum)[0] = sum.special
        error[0] = bound[0] = 0
        return True
    fold_cascade(&sum)
    (<double *> accumulators.sum)[0] = sum.sum[0]
    error[0] = sum.error[0]
    bound[0] = sum.bound[0]
    return False


cdef void _sum_as_integers(const ReductionPlan *plan, Cursor first, ExactSum *sum) noexcept nogil:
    """Sum the terms of one result as integers, multiply them by their repeat count, and add the initial value."""
    cdef double initial = plan.reduction.outcome.initial
    begin_exactly(sum, bcast_block_kernels_of(target_number))
    _add_terms_exactly(plan, first, <AddTerms> add_exactly, sum)
    if plan.reduction.outcome.repeats != 1:
        multiply_exactly(sum, plan.reduction.outcome.repeats)
    if initial != 0:
        add_exactly(sum, &initial, 1)


cdef void _add_terms_exactly(const ReductionPlan *plan, Cursor first, AddTerms add, void *sum) noexcept nogil:
    """Add all terms of one result."""
    cdef Py_ssize_t number = 0
    cdef Cursor cursor = first
    cdef Axes outer
    cdef Axis inner = _longest_reduced(&plan.axes, &outer)

    while seek(&outer, False, number, &cursor):
        if plan.reduction.terms.made_of == PRODUCTS:
            _add_products(&plan.reduction.terms, &cursor, &inner, add, sum)
        else:
            _add_items_exactly(&plan.reduction.terms, cursor.src, &inner, add, sum)
        cursor = first
        number += 1


cdef inline Axis _longest_reduced(const Axes *axes, Axes *others) noexcept nogil:
    """Return the longest reduced axis, and list the other reduced axes."""
    cdef Axis longest = Axis(length=1, src_stride=0, other_stride=0, dst_stride=0, kept=False)
    cdef int i
    others.rank = 0
    for i in range(axes.rank):
        if axes.axis[i].kept:
            continue
        others.axis[others.rank] = axes.axis[i]
        if axes.axis[i].length >= longest.length:
            others.axis[others.rank] = longest
            longest = axes.axis[i]
        others.rank += 1
    return longest


cdef void _add_items_exactly(
    const Terms *terms, const char *src, const Axis *axis, AddTerms add, void *sum,
) noexcept nogil:
    """Add the items along an axis, as float64. Deviations from 0 skip NaN."""
    cdef double[PACKED_EXACTLY] packed
    cdef Py_ssize_t done = 0, n, i
    while done < axis.length:
        n = min(axis.length - done, <Py_ssize_t> PACKED_EXACTLY)
        pack(terms.dtype, True, <char *> packed, src + done * axis.src_stride, axis.src_stride, n)
        if terms.made_of == DEVIATIONS:
            for i in range(n):
                if packed[i] != packed[i]:
                    packed[i] = 0
        add(sum, packed, n)
        done += n


cdef void _add_products(
    const Terms *terms, const Cursor *first, const Axis *axis, AddTerms add, void *sum,
) noexcept nogil:
    """Add the products along an axis with their rounding errors, or as integers, which hold products of any size."""
    cdef double[PACKED_EXACTLY] a, b
    cdef Py_ssize_t done = 0, n
    while done < axis.length:
        n = min(axis.length - done, <Py_ssize_t> PACKED_EXACTLY)
        pack(terms.dtype, True, <char *> a, first.src + done * axis.src_stride, axis.src_stride, n)
        pack(terms.other_dtype, True, <char *> b, first.other + done * axis.other_stride, axis.other_stride, n)
        if add == <AddTerms> add_exactly:
            add_products_exactly(<ExactSum *> sum, a, b, n)
        else:
            split_products(a, b, n)
            add(sum, a, n)
            if terms.has_errors:
                add(sum, b, n)
        done += n


# ---- Exact sums of rows ----


cdef void measure_rows(const ExactRows *rows, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Write norms, variances or deviations of rows, rounded once."""
    cdef RowSums sums
    cdef Py_ssize_t i, count
    begin_row(&sums, bcast_block_kernels_of(target_number))
    for i in range(begin, end):
        count = _add_row(rows, i, &sums)
        rows.results[i] = measured(&rows.how, &sums, count)
        clear_row(&sums)


cdef void write_digits_of_rows(const ExactRows *rows, Py_ssize_t begin, Py_ssize_t end, int *range_) noexcept nogil:
    """Write the digits of the sums of rows, and then those of their squares; extend the ranges of digits in use."""
    cdef RowSums sums
    cdef Py_ssize_t i, place, apart = rows.count * EXACT_DIGITS
    cdef int part
    begin_row(&sums, bcast_block_kernels_of(target_number))
    for i in range(begin, end):
        rows.counts[i] = _add_row(rows, i, &sums)
        place = i * EXACT_DIGITS
        for part in range(rows.how.parts):
            write_digits(&sums.sums[part], &rows.digits[part * apart + place], &range_[2 * part], &range_[2 * part + 1])
            rows.specials[part * rows.count + i] = sums.sums[part].special
        part = rows.how.parts
        write_digits(&sums.squares, &rows.digits[part * apart + place], &range_[2 * part], &range_[2 * part + 1])
        rows.specials[part * rows.count + i] = sums.squares.special
        clear_row(&sums)


cdef inline Py_ssize_t _add_row(const ExactRows *rows, Py_ssize_t i, RowSums *sums) noexcept nogil:
    """Add the items of a row, and their squares; return how many there are."""
    cdef const char *src = rows.src + i * rows.advance
    cdef Py_ssize_t count = rows.length
    cdef int part
    if rows.dtype != FLOAT64:
        add_integers_of_row(&sums.sums[0], &sums.squares, rows.dtype == INT64, src, rows.stride, rows.length)
        return count
    for part in range(rows.how.parts):
        count = add_floats_of_row(
            &sums.sums[part] if rows.how.has_means else NULL, &sums.squares, src + part * rows.part_stride,
            rows.stride, rows.length, rows.how.skips_nan)
    return count


cdef void bound_rows_of_integers(
    const ExactRows *rows, double *squares, Py_ssize_t begin, Py_ssize_t end,
) noexcept nogil:
    """Write sums of rows of integers, and of their squares, as two numbers and a bound each."""
    cdef IntegerSums sums
    cdef Py_ssize_t i
    for i in range(begin, end):
        sum_integers(&sums, rows.dtype == INT64, rows.src + i * rows.advance, rows.stride, rows.length)
        bound_integers(&sums, &rows.results[i], &squares[i], rows.count)


cdef void round_digits(const DigitSums *sums, double *results, bint to_odd) noexcept nogil:
    """Write sums that digits give, divided by integers and rounded once."""
    cdef ExactSum sum
    cdef Py_ssize_t i
    begin_exactly(&sum, bcast_block_kernels_of(target_number))
    for i in range(sums.count):
        read_digits(&sum, &sums.digits[i], sums.count, sums.low, sums.length)
        sum.special = sums.specials[i]
        results[i] = round_exactly(&sum, <uint64_t> sums.divisors[i], to_odd)


cdef void measure_digits(
    const Measuring *how, const DigitSums *sums, const DigitSums *squares, double *results,
) noexcept nogil:
    """Write norms, variances or deviations of sums that digits give, rounded once."""
    cdef RowSums row
    cdef Py_ssize_t i
    cdef int part
    begin_row(&row, bcast_block_kernels_of(target_number))
    for i in range(squares.count):
        for part in range(how.parts if how.has_means else 0):
            read_digits(
                &row.sums[part], &sums.digits[part * sums.length * sums.count + i], sums.count, sums.low, sums.length)
        read_digits(&row.squares, &squares.digits[i], squares.count, squares.low, squares.length)
        row.squares.special = squares.specials[i]
        results[i] = measured(how, &row, <uint64_t> squares.divisors[i])


# ---- Finishing products ----


cdef bint has_special(int dtype, const char *items, Py_ssize_t n) noexcept nogil:
    """Whether some of `n` contiguous, aligned floats are 0, infinite or NaN: such products are computed again."""
    if dtype == FLOAT64:
        return has_special_64(<const uint64_t *> items, n, <uint64_t> 0x7ff0000000000000)
    if dtype == FLOAT32:
        return has_special_32(<const uint32_t *> items, n, 0x7f800000)
    if dtypes[dtype].size == 2:
        return has_special_16(<const uint16_t *> items, n, 0x7c00 if dtype == FLOAT16 else 0x7f80)
    return True     # the bits of other dtypes have other meanings


cdef bint finish_float_products(const Reduction *reduction, const Sink *block, Py_ssize_t n) noexcept nogil:
    """Raise products to the power of the repeat count of their terms: `pow` rounds once, `repeat_terms` many times."""
    cdef double *products = <double *> block.sum
    cdef Py_ssize_t i
    if reduction.outcome.repeats != 1:
        for i in range(n):
            products[i] = pow(products[i], <double> reduction.outcome.repeats)
    return False


cdef bint finish_scaled_products(const Reduction *reduction, const Sink *block, Py_ssize_t n) noexcept nogil:
    """Raise products to that power, and join them with their exponents, which replace error terms, to float64."""
    cdef double *products = <double *> block.sum
    cdef const double *exponents = <const double *> block.error
    cdef Py_ssize_t i
    repeat_terms(reduction, block, n)
    for i in range(n):
        products[i] = _unscaled(products[i], exponents[i])
    return False


cdef inline double _unscaled(double number, double exponent) noexcept nogil:
    """number * 2 ** exponent, for a number from 1 to 2; an infinite exponent makes it infinite or 0."""
    if exponent != exponent:        # a NaN, or 0 times infinity
        return exponent
    exponent = min(<double> 4000, max(<double> -4000, exponent))        # far beyond those of float64
    return ldexp(number, <int> exponent)
