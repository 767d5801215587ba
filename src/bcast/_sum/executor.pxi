# From a plan to sums: the loop nest around the kernels' calls.
#
# In: a SumPlan, its shares, where terms and results are, scratch. Out: results, or the sums of shares in `partials`,
# which `add_shares` adds. A share is a tile, or some of its summed terms. Either the kernel writes the results, or it
# adds the terms onto the block of accumulators, packed before where it cannot read them as they are. Then the block is
# folded (`_fold`) and stored (`_store`). What overflowed is summed again (`_sum_again`).

cdef double SUM_LARGE_TERM = 2.0 ** 900     # from here on terms are scaled: 2^60 of them overflow no more
cdef double SUM_LARGE_SCALE = 2.0 ** -100


cdef struct Tile:
    const char *src
    char *dst
    Axis[SUM_MAX_AXES] axes     # of the block, one of which is cut
    Py_ssize_t width            # accumulators of a group


cdef void _read_tile(
    const SumPlan *plan, Py_ssize_t number, const char *src, char *dst, Tile *tile,
) noexcept nogil:
    """Find tile `number` of the block."""
    cdef const Axis *axis = &plan.block.axes[plan.tiles.axis]
    cdef Py_ssize_t at = 0
    cdef int i
    if plan.tiles.count > 1:
        at = number % plan.tiles.along * plan.tiles.length
        src += at * axis.src_step
        dst += at * axis.dst_step
        _seek(plan.loops.axes, plan.loops.rank, number // plan.tiles.along, &src, &dst)
    tile.src = src
    tile.dst = dst
    tile.width = 1
    for i in range(plan.block.rank):
        tile.axes[i] = plan.block.axes[i]
    tile.axes[plan.tiles.axis].length = min(plan.tiles.length, axis.length - at)
    for i in range(1, plan.block.rank):
        tile.width *= tile.axes[i].length


cdef void _seek(const Axis *axes, int n, Py_ssize_t number, const char **src, char **dst) noexcept nogil:
    """Go to position `number` of the kept ones among `n` axes."""
    cdef int i
    for i in range(n - 1, -1, -1):
        if axes[i].kept:
            src[0] += number % axes[i].length * axes[i].src_step
            dst[0] += number % axes[i].length * axes[i].dst_step
            number //= axes[i].length


cdef inline void _advance_sink(const Terms *terms, Sink *dst, Py_ssize_t n) noexcept nogil:
    """Move on by `n` accumulators."""
    dst.sum += n * terms.sum_size
    dst.error += n * terms.sum_size


cdef void sum_shares(
    const SumPlan *plan, Py_ssize_t begin, Py_ssize_t end, const char *src, char *dst, char *scratch, char *partials,
) noexcept nogil:
    """Sum some shares: of tiles that have no other into `dst`, and else into their places in `partials`."""
    while begin < end:
        _sum_share(plan, begin, src, dst, scratch, partials)
        begin += 1


cdef void _sum_share(
    const SumPlan *plan, Py_ssize_t share, const char *src, char *dst, char *scratch, char *partials,
) noexcept nogil:
    cdef Py_ssize_t number = share // plan.shares.each if plan.shares.each > 1 else share
    cdef Tile tile
    cdef Py_ssize_t size = plan.block.items * plan.terms.sum_size
    cdef Py_ssize_t[SUM_MAX_AXES] at
    cdef LoopNest loops
    cdef Py_ssize_t rows = plan.call.along.length, begin, full
    cdef Sink block = Sink(SET, scratch, scratch + size)
    cdef char *packed = scratch + (2 * size if plan.terms.compensated else size)
    cdef int i
    _read_tile(plan, number, src, dst, &tile)
    if plan.call.writes and not _add(plan, &tile, rows, tile.src, Sink(WRITE, tile.dst, tile.dst), NULL):
        return
    src = tile.src
    for i in range(plan.loops.rank):
        loops.axes[i] = plan.loops.axes[i]
        at[i] = 0
    if plan.shares.each > 1:
        full = rows if plan.shares.axis < 0 else loops.axes[plan.shares.axis].length
        i = <int> (share - number * plan.shares.each)
        begin = cut(full, i, <int> plan.shares.each)
        full = cut(full, i + 1, <int> plan.shares.each) - begin
        if plan.shares.axis < 0:
            rows = full
            src += begin * plan.call.along.src_step
        else:
            loops.axes[plan.shares.axis].length = full
            src += begin * loops.axes[plan.shares.axis].src_step
    while True:
        _add(plan, &tile, rows, src, block, packed)
        block.mode = ADD
        if not _advance(loops.axes, at, plan.loops.rank, False, &src, &dst):
            break
    full = tile.axes[0].length * tile.width
    if plan.block.folded:
        full = _fold(plan, &tile, block)
    if plan.shares.each == 1:
        _store(plan, &tile, block)
    else:
        partials += share * 2 * size
        memcpy(partials, block.sum, full * plan.terms.sum_size)
        if plan.terms.compensated:
            memcpy(partials + size, block.error, full * plan.terms.sum_size)


cdef inline bint _advance(
    const Axis *axis, Py_ssize_t *at, int n, bint kept, const char **src, char **dst,
) noexcept nogil:
    """Move on along the innermost of `n` axes, kept or not, that has not come to its end; tell whether there is one."""
    cdef int i
    for i in range(n - 1, -1, -1):
        if axis[i].kept != kept:
            continue
        if at[i] + 1 < axis[i].length:
            at[i] += 1
            src[0] += axis[i].src_step
            dst[0] += axis[i].dst_step
            return True
        src[0] -= at[i] * axis[i].src_step
        dst[0] -= at[i] * axis[i].dst_step
        at[i] = 0
    return False


cdef void add_shares(const SumPlan *plan, const char *src, char *dst, char *partials) noexcept nogil:
    """Add the sums of each tile's shares, in order, and write them to `dst`."""
    cdef Py_ssize_t size = plan.block.items * plan.terms.sum_size, sums, number, i
    cdef Sink block, more
    cdef Tile tile
    for number in range(plan.tiles.count):
        _read_tile(plan, number, src, dst, &tile)
        sums = 1
        for i in range(plan.block.rank):
            if plan.block.axes[i].kept:
                sums *= tile.axes[i].length
        block = more = Sink(ADD, partials, partials + size)
        for i in range(1, plan.shares.each):
            more.sum += 2 * size
            more.error += 2 * size
            plan.terms.kernels.add_accumulators(&block, &more, sums)
        _store(plan, &tile, block)
        partials += plan.shares.each * 2 * size


cdef bint _add(
    const SumPlan *plan, const Tile *tile, Py_ssize_t rows, const char *src, Sink dst, char *packed,
) noexcept nogil:
    """Have the kernel sum all of a tile's groups or runs; tell whether it could not write the results."""
    cdef const Terms *terms = plan.terms
    cdef Py_ssize_t step = plan.call.within * plan.call.along.src_step, full, rest, _i
    cdef Py_ssize_t advance = plan.block.axes[0].dst_step if dst.mode == WRITE else tile.width * terms.sum_size
    cdef Runs runs
    if plan.call.runs:
        runs = Runs(src, tile.axes[0].length, tile.axes[0].src_step, rows * tile.width, tile.width)
        if terms.packed:
            _add_packed_runs(plan, &runs, dst, packed)
            return False
        return terms.kernels.sum_runs(&runs, &dst)
    full = rows // plan.call.within if plan.call.within > 1 else rows
    rest = (rows - full * plan.call.within) * (tile.width // plan.call.within) if plan.call.within > 1 else 0
    for _i in range(tile.axes[0].length):
        if _add_rows(plan, src, full, step, tile.width, dst, packed):
            return True
        if rest:
            _add_rows(plan, src + full * step, 1, 0, rest, Sink(ADD, dst.sum, dst.error), packed)
        src += plan.block.axes[0].src_step
        dst.sum += advance
        dst.error += advance
    return False


cdef bint add_rows(
    const Terms *terms, const char *src, Py_ssize_t rows, Py_ssize_t step, Py_ssize_t width, Sink dst,
) noexcept nogil:
    """Add rows of `width` items, up to SUM_CALL_ROWS at a time; tell whether the kernel could not write the results.

    They are taken from the four quarters of all by turns, as memory gives several streams faster than one; four at a
    time where eight would share lines of a cache.
    """
    cdef bint by_four = step % (PAGE // 2) == 0 or terms.compensated and width * terms.size <= PAGE
    cdef Py_ssize_t most = 4 if by_four and dst.mode != WRITE else SUM_CALL_ROWS, advance = most // 4 * step, done = 0
    cdef Rows some = Rows(src, rows // most, advance, most, rows // most * advance, step, width)
    if some.turns:
        if terms.kernels.sum_rows(&some, &dst):
            return True
        dst.mode = ADD
        done = some.turns * most
    if done == rows:
        return False
    some = Rows(src + done * step, 1, 0, rows - done, step, 4 * step, width)
    return terms.kernels.sum_rows(&some, &dst)


cdef void pack_rows(
    const Terms *terms, char *packed, const char *src, Py_ssize_t rows, Py_ssize_t step, Py_ssize_t width,
    Py_ssize_t item_step,
) noexcept nogil:
    """Pack rows of `width` items one behind the other."""
    cdef Py_ssize_t i
    if step == width * item_step:
        pack(&terms.packing, packed, src, item_step, rows * width)
    else:
        for i in range(rows):
            pack(&terms.packing, packed + i * width * terms.size, src + i * step, item_step, width)


cdef bint _add_rows(
    const SumPlan *plan, const char *src, Py_ssize_t rows, Py_ssize_t step, Py_ssize_t width, Sink dst, char *packed,
) noexcept nogil:
    """`add_rows` as they are, or by way of `packed`, SUM_CALL_ROWS at a time."""
    cdef const Terms *terms = plan.terms
    cdef Py_ssize_t item_step = plan.block.axes[plan.block.rank - 1].src_step, size = width * terms.size, done = 0
    cdef Rows some
    if not terms.packed:
        return add_rows(terms, src, rows, step, width, dst)
    while done < rows:
        some = Rows(packed, 1, 0, min(rows - done, <Py_ssize_t> SUM_CALL_ROWS), size, 4 * size, width)
        pack_rows(terms, packed, src + done * step, some.rows, step, width, item_step)
        terms.kernels.sum_rows(&some, &dst)
        dst.mode = ADD
        done += some.rows
    return False


cdef void _add_packed_runs(const SumPlan *plan, const Runs *runs, Sink dst, char *packed) noexcept nogil:
    """Add runs by way of `packed`: as many as that has room for, or parts of one."""
    cdef Py_ssize_t step = plan.call.along.src_step, rows = runs.length, i = 0, j, n
    cdef int mode = dst.mode
    cdef Runs some = Runs(packed, 0, 0, 0, 1)
    while i < runs.count:
        some.count = max(<Py_ssize_t> 1, min(SUM_CALL_ROWS * SUM_ROW_ITEMS // rows, runs.count - i))
        dst.mode = mode
        j = 0
        while j < rows:
            n = min(rows - j, <Py_ssize_t> SUM_CALL_ROWS * SUM_ROW_ITEMS)
            pack_rows(plan.terms, packed, runs.src + i * runs.step + j * step, some.count, runs.step, n, step)
            some.length = n
            some.step = n * plan.terms.size
            plan.terms.kernels.sum_runs(&some, &dst)
            dst.mode = ADD
            j += n
        i += some.count
        dst.sum += some.count * plan.terms.sum_size
        dst.error += some.count * plan.terms.sum_size


cdef Py_ssize_t _fold(const SumPlan *plan, const Tile *tile, Sink block) noexcept nogil:
    """Add up what the block has kept of summed axes, outermost first; return how many sums are left."""
    cdef Py_ssize_t before = 1, after = tile.axes[0].length * tile.width, size = plan.terms.sum_size
    cdef Py_ssize_t length, left, half, i, j
    cdef Sink dst, more
    for j in range(plan.block.rank):
        length = tile.axes[j].length
        after //= length
        if plan.block.axes[j].kept:
            before *= length
            continue
        for i in range(before):     # by halves, so that few and long rows are added
            dst = more = block
            _advance_sink(plan.terms, &dst, i * length * after)
            left = length
            while left > 1:
                half = left // 2
                more = dst
                _advance_sink(plan.terms, &more, (left - half) * after)
                plan.terms.kernels.add_accumulators(&dst, &more, half * after)
                left -= half
            memmove(block.sum + i * after * size, dst.sum, after * size)
            if plan.terms.compensated:
                memmove(block.error + i * after * size, dst.error, after * size)
    return before


cdef void _store(const SumPlan *plan, const Tile *tile, Sink block) noexcept nogil:
    """Write a tile's sums, along the kept axes of its block: the innermost ones at once that are one axis of `dst`."""
    cdef Py_ssize_t[SUM_MAX_AXES] at
    cdef int first = plan.block.last, i
    cdef Results results = Results(plan.terms.result, plan.terms.sum_size, tile.dst, tile.axes[first].dst_step)
    cdef Py_ssize_t n = tile.axes[first].length, j
    cdef const char *src = tile.src
    cdef const char *again
    cdef char *dst
    while first > 0:
        if tile.axes[first - 1].kept and tile.axes[first - 1].dst_step != n * results.step:
            break
        first -= 1
        if tile.axes[first].kept:
            n *= tile.axes[first].length
    for i in range(first):
        at[i] = 0
    while True:
        if plan.terms.compensated and plan.terms.target.add_errors(
            <double *> block.sum, <const double *> block.error, n
        ):
            for j in range(n):
                if not isfinite((<double *> block.sum)[j]):
                    again = src
                    dst = results.dst   # goes nowhere
                    _seek(&tile.axes[first], plan.block.last + 1 - first, j, &again, &dst)
                    (<double *> block.sum)[j] = _sum_again(plan, again)
        plan.terms.target.store(&results, block.sum, n)
        _advance_sink(plan.terms, &block, n)
        if not _advance(tile.axes, at, first, True, &src, &results.dst):
            return


cdef double _sum_again(const SumPlan *plan, const char *src) noexcept nogil:
    """Sum the terms of one element, whose accumulator overflowed, perhaps only on its way: large ones scaled down.

    Terms that are infinite or no numbers themselves give what a plain sum of them gives.
    """
    cdef Py_ssize_t[SUM_MAX_AXES] at
    cdef double[2] high = [0, 0]
    cdef double[2] error = [0, 0]
    cdef double plain = 0, term, sum, part
    cdef char *dst = NULL   # goes nowhere
    cdef int i, large
    for i in range(plan.rank):
        at[i] = 0
    while True:
        if plan.terms.packed:
            pack(&plan.terms.packing, <char *> &term, src, 0, 1)
        else:
            memcpy(&term, src, sizeof(double))
        if isfinite(term):
            large = fabs(term) >= SUM_LARGE_TERM
            if large:
                term *= SUM_LARGE_SCALE
            sum = high[large] + term        # two_sum
            part = sum - high[large]
            error[large] += (high[large] - (sum - part)) + (term - part)
            high[large] = sum
        else:
            plain += term
        if plain != plain or not _advance(plan.axes, at, plan.rank, False, &src, &dst):
            break
    if plain != 0:      # or NaN
        return plain
    if high[1] == 0 and error[1] == 0:
        return high[0] + error[0]
    return (high[1] + (error[1] + (high[0] + error[0]) * SUM_LARGE_SCALE)) / SUM_LARGE_SCALE
