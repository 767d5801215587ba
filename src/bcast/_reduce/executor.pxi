# From a plan to sums: the loop nest around the kernels' calls.
#
# In: a SumPlan, its shares, where terms and results are, scratch. Out: results, or the sums of shares in `partials`,
# which `add_shares` adds. A share is a tile, or some of its summed terms. Either the kernel writes the results, or it
# adds the terms onto the block of accumulators, packed before where it cannot read them as they are. Then the block is
# folded (`_fold`) and stored (`_store`). What overflowed is summed again (`_sum_again`).


cdef struct Tile:
    Place at
    Axis[MAX_AXES + 1] axes     # of the block, one of which is cut
    Py_ssize_t width, sums      # accumulators of a group, and of all groups once they are folded


cdef void _read_tile(const SumPlan *plan, Py_ssize_t number, Tile *tile) noexcept nogil:
    """Find tile `number` of the block."""
    cdef const Axis *axis = &plan.block.axes[plan.tiles.axis]
    cdef Py_ssize_t at = 0
    cdef int i
    tile.at = plan.first
    if plan.tiles.count > 1:
        at = number % plan.tiles.along * plan.tiles.length
        move(&tile.at, axis, at)
        _seek(plan.loops.axes, plan.loops.rank, True, number // plan.tiles.along, &tile.at)
    for i in range(plan.block.rank):
        tile.axes[i] = plan.block.axes[i]
    tile.axes[plan.tiles.axis].length = min(plan.tiles.length, axis.length - at)
    tile.width = 1
    tile.sums = tile.axes[0].length
    for i in range(1, plan.block.rank):
        tile.width *= tile.axes[i].length
        if tile.axes[i].kept:
            tile.sums *= tile.axes[i].length


cdef inline bint _seek(const Axis *axes, int n, bint kept, Py_ssize_t number, Place *place) noexcept nogil:
    """Go to position `number` of the kept or the summed ones among `n` axes; tell whether there is one."""
    cdef Py_ssize_t left
    cdef int i
    for i in range(n - 1, -1, -1):
        if axes[i].kept == kept:
            left = number // axes[i].length if number >= axes[i].length else 0      # divisions are slow
            number -= left * axes[i].length
            move(place, &axes[i], number)
            number = left
    return number == 0


cdef inline Sink _moved(Sink dst, Py_ssize_t by) noexcept nogil:
    """The sink that is so many bytes further on."""
    return Sink(dst.mode, dst.sum + by, dst.error + by)


cdef void sum_shares(const SumPlan *plan, Py_ssize_t i, Py_ssize_t end, char *scratch, char *partials) noexcept nogil:
    """Sum shares from number `i` on: of tiles that have no other into the results, and else into `partials`."""
    cdef Py_ssize_t each = plan.shares.each, size = plan.block.items * plan.terms.sum_size
    cdef char *packed = scratch + (2 * size if plan.terms.compensated else size)
    cdef Py_ssize_t number, begin
    cdef Axis[MAX_AXES + 1] loops
    cdef Axis along
    cdef Axis *axis
    cdef Place first, here
    cdef Sink block
    cdef Tile tile
    cdef int j
    for i in range(i, end):
        _read_tile(plan, i // each if each > 1 else i, &tile)
        block = Sink(WRITE, tile.at.dst, tile.at.dst)
        if plan.call.writes and not _add(plan, &tile, plan.call.along.length, tile.at, block, NULL):
            continue
        first, along = tile.at, plan.call.along
        for j in range(plan.loops.rank):
            loops[j] = plan.loops.axes[j]
        if each > 1:
            axis = &along if plan.shares.axis < 0 else &loops[plan.shares.axis]
            begin = cut(axis.length, <int> (i % each), <int> each)
            axis.length = cut(axis.length, <int> (i % each) + 1, <int> each) - begin
            move(&first, axis, begin)
        block = Sink(SET, scratch, scratch + size)
        here = first
        number = 0
        while _seek(loops, plan.loops.rank, False, number, &here):
            _add(plan, &tile, along.length, here, block, packed)
            block.mode = ADD
            here = first
            number += 1
        if tile.sums < tile.axes[0].length * tile.width:
            _fold(plan, &tile, block)
        if each == 1:
            _store(plan, &tile, block)
        else:
            _copy_sums(plan.terms, Sink(SET, partials + 2 * i * size, partials + (2 * i + 1) * size), block, tile.sums)


cdef inline void _copy_sums(const Terms *terms, Sink dst, Sink src, Py_ssize_t n) noexcept nogil:
    """Copy `n` accumulators."""
    memmove(dst.sum, src.sum, n * terms.sum_size)
    if terms.compensated:
        memmove(dst.error, src.error, n * terms.sum_size)


cdef void add_shares(const SumPlan *plan, char *partials) noexcept nogil:
    """Add the sums of each tile's shares, in order, and write them."""
    cdef Py_ssize_t size = plan.block.items * plan.terms.sum_size, number, _i
    cdef Sink block, more
    cdef Tile tile
    for number in range(plan.tiles.count):
        _read_tile(plan, number, &tile)
        block = more = Sink(ADD, partials, partials + size)
        for _i in range(1, plan.shares.each):
            more = _moved(more, 2 * size)
            plan.terms.kernels.add_accumulators(&block, &more, tile.sums)
        _store(plan, &tile, block)
        partials += plan.shares.each * 2 * size


cdef bint _add(
    const SumPlan *plan, const Tile *tile, Py_ssize_t rows, Place at, Sink dst, char *packed,
) noexcept nogil:
    """Have the kernel sum all of a tile's groups or runs; tell whether it could not write the results."""
    cdef const Terms *terms = plan.terms
    cdef Axis along = plan.call.along
    cdef Py_ssize_t full, rest, _i
    cdef Py_ssize_t advance = plan.block.axes[0].dst_step if dst.mode == WRITE else tile.width * terms.sum_size
    cdef Runs runs
    cdef Place here, first
    if plan.call.runs:
        runs = Runs(at.src, tile.axes[0].length, tile.axes[0].src_step, rows * tile.width, tile.width)
        if terms.packed:
            _add_packed_runs(plan, &runs, at.times, dst, packed)
            return False
        return terms.kernels.sum_runs(&runs, &dst)
    full = rows // plan.call.within if plan.call.within > 1 else rows
    rest = (rows - full * plan.call.within) * (tile.width // plan.call.within) if plan.call.within > 1 else 0
    along.src_step *= plan.call.within
    along.times_step *= plan.call.within
    for _i in range(tile.axes[0].length):
        first = at
        if terms.deviates:
            first.times = _means_of_row(plan, tile, at.times, packed + SUM_PACKED_TERMS * terms.size)
        if _add_rows(plan, first, &along, full, tile.width, dst, packed):
            return True
        if rest:
            here = first
            move(&here, &along, full)
            _add_rows(plan, here, &along, 1, rest, Sink(ADD, dst.sum, dst.error), packed)
        move(&at, &plan.block.axes[0], 1)
        dst = _moved(dst, advance)
    return False


cdef const char *_means_of_row(const SumPlan *plan, const Tile *tile, const char *means, char *room) noexcept nogil:
    """Find the means of the items of each row side by side, in `room` if they lie in no other place so."""
    cdef Py_ssize_t[MAX_AXES + 1] number
    cdef Py_ssize_t i
    cdef int j
    if plan.block.rank == 2 and tile.axes[1].times_step == sizeof(double):
        return means
    memset(number, 0, plan.block.rank * sizeof(Py_ssize_t))
    for i in range(tile.width):
        (<double *> room)[i] = (<const double *> means)[0]
        for j in range(plan.block.rank - 1, 0, -1):
            means += tile.axes[j].times_step
            number[j] += 1
            if number[j] < tile.axes[j].length:
                break
            means -= tile.axes[j].length * tile.axes[j].times_step
            number[j] = 0
    return room


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
    if terms.ahead and 256 <= step == width * terms.size and rows * step <= 4 * PAGE:     # no stream to the CPU
        fetch(src + terms.ahead, rows * step)
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
    const Terms *terms, int dtype, char *packed, const char *src, Py_ssize_t rows, Py_ssize_t step, Py_ssize_t width,
    Py_ssize_t item_step,
) noexcept nogil:
    """Pack rows of `width` items one behind the other."""
    cdef Py_ssize_t i
    if terms.idempotent:
        for i in range(rows):
            gather(packed + i * width * terms.size, src + i * step, item_step, width, terms.size)
    elif step == width * item_step:
        pack(dtype, terms.as_real, packed, src, item_step, rows * width)
    else:
        for i in range(rows):
            pack(dtype, terms.as_real, packed + i * width * terms.size, src + i * step, item_step, width)


cdef void _pack(
    const Terms *terms, char *packed, const Products *rows, const Axis *items, Py_ssize_t means_step,
) noexcept nogil:
    """Pack rows of terms, products or squares of deviations, whose items lie along an axis."""
    cdef Products both
    if terms.deviates:
        _deviate(terms, packed, rows, items.src_step, means_step)
        return
    if terms.multiplier != NULL:
        terms.multiplier.multiply(rows, packed)
        return
    pack_rows(terms, terms.dtype, packed, rows.a, rows.count, rows.a_advance, rows.width, items.src_step)
    if terms.times >= 0:
        both = Products(packed, packed + SUM_PACKED_TERMS * terms.size, 1, 0, 0, rows.count * rows.width, 1, 0, 0)
        pack_rows(terms, terms.times, <char *> both.b, rows.b, rows.count, rows.b_advance, rows.width, items.times_step)
        terms.kernels.multiply(&both, packed)


cdef void _deviate(
    const Terms *terms, char *packed, const Products *rows, Py_ssize_t item_step, Py_ssize_t step,
) noexcept nogil:
    """Pack the squares of what rows of terms differ from means: as many, or by a `step` of 0, one for each row."""
    cdef const char *src = rows.a
    cdef const double *means = <const double *> rows.b
    cdef double *dst = <double *> packed
    cdef double *room = dst + SUM_PACKED_TERMS
    cdef Py_ssize_t count = rows.count, width = rows.width, advance = rows.b_advance // <Py_ssize_t> sizeof(double)
    cdef Py_ssize_t i, j
    if step == 0 and width < SUM_LONG_ITEMS and rows.a_advance == width * item_step:     # as one row, with all means
        for i in range(count):
            for j in range(width):
                room[i * width + j] = means[i * advance]
        means = room
        width, count, step = width * count, 1, 1
    for i in range(count):
        if terms.multiplier != NULL:
            terms.multiplier.deviate(src, means, step, dst, width)
        else:
            pack(terms.dtype, terms.as_real, <char *> dst, src, item_step, width)
            terms.kernels.deviate(<char *> dst, means, step, dst, width)
        src += rows.a_advance
        means += advance
        dst += width


cdef inline bint _add_rows(
    const SumPlan *plan, Place at, const Axis *along, Py_ssize_t rows, Py_ssize_t width, Sink dst, char *packed,
) noexcept nogil:
    """`add_rows` as they are, or by way of `packed`: SUM_CALL_ROWS at a time, or of products the sum of all."""
    cdef const Terms *terms = plan.terms
    cdef Py_ssize_t size = width * terms.size, fold = 1, most
    cdef Rows some
    cdef Products products
    if plan.call.gathers:
        _add_gathered_rows(plan, at, along, rows, width, dst, packed)
        return False
    if not terms.packed:
        return add_rows(terms, at.src, rows, along.src_step, width, dst)
    if terms.folds and along.src_step == along.times_step:
        fold = rows
    most = min(<Py_ssize_t> SUM_CALL_ROWS, SUM_PACKED_TERMS // width)
    while rows > 0:
        some = Rows(packed, 1, 0, min(rows // fold, most), size, 4 * size, width)
        products = Products(
            at.src, at.times, some.rows, along.src_step, along.times_step, width, fold, along.src_step, terms.ahead,
        )
        _pack(terms, packed, &products, &plan.block.axes[plan.block.rank - 1], 1)
        terms.kernels.sum_rows(&some, &dst)
        dst.mode = ADD
        if fold > 1 and terms.times == FLOAT64:     # error terms
            some.src += size
            terms.kernels.sum_rows(&some, &dst)
        move(&at, along, some.rows * fold)
        rows -= some.rows * fold
    return False


cdef void _add_gathered_rows(
    const SumPlan *plan, Place at, const Axis *along, Py_ssize_t rows, Py_ssize_t width, Sink dst, char *packed,
) noexcept nogil:
    """Add rows by way of `packed`, where the pieces of each are laid side by side."""
    cdef const Terms *terms = plan.terms
    cdef Py_ssize_t step = plan.block.axes[1].src_step, item_step = plan.block.axes[plan.block.rank - 1].src_step
    cdef Py_ssize_t inner = 1, size = width * terms.size, most, i
    cdef Rows some
    cdef int j
    for j in range(2, plan.block.rank):
        inner *= plan.block.axes[j].length
    most = min(<Py_ssize_t> SUM_CALL_ROWS, SUM_PACKED_TERMS // width)
    while rows > 0:
        some = Rows(packed, 1, 0, min(rows, most), size, 4 * size, width)
        for i in range(some.rows):
            if terms.packed:
                pack_rows(terms, terms.dtype, packed + i * size, at.src, width // inner, step, inner, item_step)
            else:
                gather(packed + i * size, at.src, step, width // inner, inner * terms.size)
            move(&at, along, 1)
        terms.kernels.sum_rows(&some, &dst)
        dst.mode = ADD
        rows -= some.rows


cdef void _add_packed_runs(
    const SumPlan *plan, const Runs *runs, const char *times, Sink dst, char *packed,
) noexcept nogil:
    """Add runs by way of `packed`: as many as that has room for, or parts of one; of products few sums of all."""
    cdef const Terms *terms = plan.terms
    cdef const Axis *items = &plan.block.axes[1] if runs.interleave > 1 else &plan.call.along
    cdef Py_ssize_t times_step = plan.block.axes[0].times_step, rows = runs.length, i = 0, j, most
    cdef Py_ssize_t length, step
    cdef int mode = dst.mode
    cdef Runs some = Runs(packed, 0, 0, 0, runs.interleave)
    cdef Products products
    most = length = step = min(rows, <Py_ssize_t> SUM_PACKED_TERMS)
    if terms.folds:
        most = rows
        length = terms.multiplier.lanes
        step = 2 * length if terms.times == FLOAT64 else length     # with error terms
    while i < runs.count:
        some.count = max(<Py_ssize_t> 1, min(SUM_PACKED_TERMS // step, runs.count - i))
        dst.mode = mode
        j = 0
        while j < rows:
            some.length = length if terms.folds else min(rows - j, length)
            products = Products(
                runs.src + i * runs.step + j * items.src_step, times + i * times_step + j * items.times_step,
                some.count, runs.step, times_step, some.length, 1, 0, terms.ahead,
            )
            if terms.folds:
                products.width, products.rows = rows, 0
            _pack(terms, packed, &products, items, 0)
            some.step = (step if terms.folds else some.length) * terms.size
            terms.kernels.sum_runs(&some, &dst)
            dst.mode = ADD
            if step > length:
                some.src += length * terms.size
                terms.kernels.sum_runs(&some, &dst)
                some.src = packed
            j += most
        i += some.count
        dst = _moved(dst, some.count * runs.interleave * terms.sum_size)


cdef void _fold(const SumPlan *plan, const Tile *tile, Sink block) noexcept nogil:
    """Add up what the block has kept of summed axes, outermost first."""
    cdef Py_ssize_t before = 1, after = tile.axes[0].length * tile.width, size = plan.terms.sum_size
    cdef Py_ssize_t length, left, half, i, j
    cdef Sink dst, more
    for j in range(plan.block.rank):
        length = tile.axes[j].length
        after //= length
        if plan.block.axes[j].kept:
            before *= length
        elif before > 1 and after < SUM_CALL_ROWS:
            plan.terms.kernels.fold(&block, before, length, after)
        else:
            for i in range(before):     # by halves, so that few and long rows are added
                dst = _moved(block, i * length * after * size)
                left = length
                while left > 1:
                    half = left // 2
                    more = _moved(dst, (left - half) * after * size)
                    plan.terms.kernels.add_accumulators(&dst, &more, half * after)
                    left -= half
                _copy_sums(plan.terms, _moved(block, i * after * size), dst, after)


cdef void _store(const SumPlan *plan, const Tile *tile, Sink block) noexcept nogil:
    """Write a tile's sums, along an axis of the result at a time: the innermost one, or if that is short, the longest.

    Neighbouring axes are one if they are in the result.
    """
    cdef const Terms *terms = plan.terms
    cdef Results results = Results(terms.result, terms.sum_size, NULL, 0, terms.sum_size)
    cdef Axis[MAX_AXES + 1] kept    # innermost first; `src_step` is from one accumulator to the next
    cdef Py_ssize_t count = 1, i
    cdef Axis inner
    cdef Place at
    cdef int rank = 0, longest = 0, j
    _finish(plan, tile, block)
    for j in range(plan.block.rank - 1, -1, -1):
        if not tile.axes[j].kept or tile.axes[j].length == 1:
            continue
        if rank and tile.axes[j].dst_step == kept[rank - 1].length * kept[rank - 1].dst_step:
            kept[rank - 1].length *= tile.axes[j].length
        else:
            kept[rank] = Axis(tile.axes[j].length, count * terms.sum_size, tile.axes[j].dst_step, True, 0)
            rank += 1
        count *= tile.axes[j].length
    inner = Axis(1, 0, 0, True, 0)
    if rank:
        for j in range(rank if kept[0].length < SUM_LONG_ITEMS else 0):
            if kept[j].length > kept[longest].length:
                longest = j
        inner = kept[longest]
        rank -= 1
        kept[longest] = kept[rank]
    results.step = inner.dst_step
    results.sum_step = inner.src_step
    for i in range(tile.sums // inner.length):
        at = Place(block.sum, NULL, tile.at.dst)
        _seek(kept, rank, True, i, &at)
        results.dst = at.dst
        terms.target.store(&results, at.src, inner.length)


cdef void _finish(const SumPlan *plan, const Tile *tile, Sink block) noexcept nogil:
    """Turn a tile's accumulators into results that need only be rounded."""
    cdef const Terms *terms = plan.terms
    cdef double *sums = <double *> block.sum
    cdef Py_ssize_t i
    cdef Place at
    if terms.factor != 1:
        _multiply(terms, block, tile.sums)
    if terms.compensated and terms.target.add_errors(sums, <const double *> block.error, tile.sums):
        for i in range(tile.sums):
            if not isfinite(sums[i]):
                at = tile.at
                _seek(tile.axes, plan.block.rank, True, i, &at)
                sums[i] = _sum_again(plan, at) * terms.factor
    if terms.divisor != 0:
        terms.target.divide(sums, terms.divisor, terms.root, tile.sums)


cdef void _multiply(const Terms *terms, Sink block, Py_ssize_t n) noexcept nogil:
    """Multiply accumulators by how often their terms come. What rounds a compensated one is kept in its error term."""
    cdef double *sums = <double *> block.sum
    cdef double *errors = <double *> block.error
    cdef double by = <double> terms.factor, product
    cdef Py_ssize_t i
    if terms.compensated:
        for i in range(n):
            product = sums[i] * by
            errors[i] = fma(errors[i], by, fma(sums[i], by, -product))
            sums[i] = product
    elif dtypes[terms.result].is_float:
        for i in range(n):
            sums[i] *= by
    elif terms.sum_size == 8:
        for i in range(n):
            (<uint64_t *> block.sum)[i] *= <uint64_t> terms.factor
    elif terms.sum_size == 4:
        for i in range(n):
            (<uint32_t *> block.sum)[i] *= <uint32_t> terms.factor
    elif terms.sum_size == 2:
        for i in range(n):      # as uint32_t, because ints would overflow
            (<uint16_t *> block.sum)[i] = <uint16_t> ((<uint16_t *> block.sum)[i] * <uint32_t> terms.factor)
    else:
        for i in range(n):
            (<uint8_t *> block.sum)[i] = <uint8_t> ((<uint8_t *> block.sum)[i] * <uint32_t> terms.factor)


cdef double _sum_again(const SumPlan *plan, Place first) noexcept nogil:
    """Sum the terms of one element, whose accumulator overflowed, perhaps only on its way: large ones scaled down.

    Terms that are infinite or no numbers themselves give what a plain sum of them gives.
    """
    cdef double least = 2.0 ** 900, scale = 2.0 ** -100     # of large terms: 2^60 of them overflow no more
    cdef double[2] high = [0, 0]
    cdef double[2] error = [0, 0]
    cdef double plain = 0, term, factor, sum, part
    cdef Py_ssize_t number = 0
    cdef Place here = first
    cdef int large
    while plain == plain and _seek(plan.axes, plan.rank, False, number, &here):
        pack(plan.terms.dtype, plan.terms.as_real, <char *> &term, here.src, 0, 1)
        if plan.terms.times >= 0:
            pack(plan.terms.times, plan.terms.as_real, <char *> &factor, here.times, 0, 1)
            term = (term - factor) ** 2 if plan.terms.deviates else term * factor
        if isfinite(term):
            large = fabs(term) >= least
            if large:
                term *= scale
            sum = high[large] + term        # two_sum
            part = sum - high[large]
            error[large] += (high[large] - (sum - part)) + (term - part)
            high[large] = sum
        else:
            plain += term
        here = first
        number += 1
    if plain != 0:      # or NaN
        return plain
    if high[1] == 0 and error[1] == 0:
        return high[0] + error[0]
    return (high[1] + (error[1] + (high[0] + error[0]) * scale)) / scale
