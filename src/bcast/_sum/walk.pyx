# cython: cdivision=True
"""From a plan to sums: the walk that has the leaves of `_sum/simd/leaves.h` add up what `_sum/plan.pyx` has planned.

`sum_unit` sums one segment of a tile. Either the leaf writes the results, or it adds the terms onto the block of
accumulators, packed before where it cannot read them as they are. Then the block is folded (`_fold`) and stored
(`_store`), or kept until `add_segments` adds the sums of all the tile's segments. What overflowed is summed again
(`_sum_again`).
"""

from libc.math cimport fabs, isfinite
from libc.string cimport memcpy, memmove

from bcast._sum.plan cimport (
    ADD, FEWEST, MAX_AXES, ROW, SET, WRITE, Axis, Reduction, Results, Rows, Runs, Sink, Terms, pack,
)
from bcast._runtime.cpu cimport PAGE

cdef double LARGE = 2.0 ** 900      # terms from here on are summed times SCALE, which 2^60 of them do not overflow
cdef double SCALE = 2.0 ** -100


cdef struct Place:      # of a tile
    const char *x
    char *out
    Py_ssize_t split    # the length of the block's axis that is cut
    Py_ssize_t groups   # of its first one
    Py_ssize_t width    # accumulators of a group


cdef Place _place(const Reduction *plan, Py_ssize_t tile, const char *x, char *out) noexcept nogil:
    cdef const Axis *axis = &plan.block[plan.split]
    cdef Py_ssize_t at = 0
    cdef Place place
    cdef int i
    if plan.tiles > 1:
        at = tile % plan.chunks * plan.chunk
        tile //= plan.chunks
        x += at * axis.step
        out += at * axis.out_step
        for i in range(plan.outers - 1, -1, -1):
            if plan.outer[i].kept:
                x += tile % plan.outer[i].length * plan.outer[i].step
                out += tile % plan.outer[i].length * plan.outer[i].out_step
                tile //= plan.outer[i].length
    place.split = min(plan.chunk, axis.length - at)
    place.groups = _length(plan, &place, 0)
    place.x = x
    place.out = out
    place.width = 1
    for i in range(1, plan.blocks):
        place.width *= _length(plan, &place, i)
    return place


cdef inline Py_ssize_t _length(const Reduction *plan, const Place *place, int i) noexcept nogil:
    """The length of the block's axis `i` in this tile."""
    return place.split if i == plan.split else plan.block[i].length


cdef inline void _advance_sink(const Terms *terms, Sink *to, Py_ssize_t n) noexcept nogil:
    """Move on by `n` accumulators."""
    to.sum += n * terms.sum_size
    to.error += n * terms.sum_size


cdef void sum_unit(
    const Reduction *plan, Py_ssize_t unit, const char *x, char *out, char *scratch, char *partials,
) noexcept nogil:
    """Sum one segment of a tile: into `out` if it has no other, and else into its part of `partials`."""
    cdef Py_ssize_t segment = unit % plan.segments if plan.segments > 1 else 0
    cdef Place place = _place(plan, unit // plan.segments if plan.segments > 1 else unit, x, out)
    cdef Py_ssize_t size = plan.sums_most * plan.terms.sum_size     # of the block
    cdef Py_ssize_t[MAX_AXES] length, at
    cdef Py_ssize_t rows = plan.along.length, begin, full
    cdef Sink block = Sink(SET, scratch, scratch + size)
    cdef char *packed = scratch + (2 * size if plan.terms.compensated else size)
    cdef int i
    if plan.writes and not _add(plan, &place, rows, place.x, Sink(WRITE, place.out, place.out), NULL):
        return
    x = place.x
    for i in range(plan.outers):
        length[i] = 1 if plan.outer[i].kept else plan.outer[i].length
        at[i] = 0
    if plan.segments > 1:
        full = rows if plan.cut < 0 else length[plan.cut]
        begin = full * segment // plan.segments
        full = full * (segment + 1) // plan.segments - begin
        if plan.cut < 0:
            rows = full
            x += begin * plan.along.step
        else:
            length[plan.cut] = full
            x += begin * plan.outer[plan.cut].step
    while True:
        _add(plan, &place, rows, x, block, packed)
        block.mode = ADD
        if not _advance(plan.outer, length, at, plan.outers, &x, &out):
            break
    full = place.groups * place.width
    if plan.folded:
        full = _fold(plan, &place, block)
    if plan.segments == 1:
        _store(plan, &place, block)
    else:
        partials += unit * 2 * size
        memcpy(partials, block.sum, full * plan.terms.sum_size)
        if plan.terms.compensated:
            memcpy(partials + size, block.error, full * plan.terms.sum_size)


cdef inline bint _advance(
    const Axis *axis, const Py_ssize_t *length, Py_ssize_t *at, int n, const char **x, char **out,
) noexcept nogil:
    """Move on along the innermost of `n` axes that has not come to its end; tell whether there is one."""
    cdef int i
    for i in range(n - 1, -1, -1):
        if at[i] + 1 < length[i]:
            at[i] += 1
            x[0] += axis[i].step
            out[0] += axis[i].out_step
            return True
        x[0] -= at[i] * axis[i].step
        out[0] -= at[i] * axis[i].out_step
        at[i] = 0
    return False


cdef void add_segments(
    const Reduction *plan, Py_ssize_t tile, const char *x, char *out, char *partials,
) noexcept nogil:
    """Add the sums of a tile's segments, in order, and write them to `out`."""
    cdef Place place = _place(plan, tile, x, out)
    cdef Py_ssize_t size = plan.sums_most * plan.terms.sum_size, sums = 1, i
    cdef Sink block, more
    for i in range(plan.blocks):
        if plan.block[i].kept:
            sums *= _length(plan, &place, <int> i)
    partials += tile * plan.segments * 2 * size
    block = Sink(ADD, partials, partials + size)
    for i in range(1, plan.segments):
        more = Sink(ADD, partials + 2 * i * size, partials + (2 * i + 1) * size)
        plan.terms.leaves.add_accumulators(&block, &more, sums)
    _store(plan, &place, block)


cdef bint _add(
    const Reduction *plan, const Place *place, Py_ssize_t rows, const char *x, Sink to, char *packed,
) noexcept nogil:
    """Have the leaf sum all of a tile's groups or runs; tell whether it could not write the results."""
    cdef const Terms *terms = plan.terms
    cdef Py_ssize_t step = plan.within * plan.along.step, full, rest, _i
    cdef Py_ssize_t advance = plan.block[0].out_step if to.mode == WRITE else place.width * terms.sum_size
    cdef Runs runs
    if plan.runs:
        runs = Runs(x, place.groups, plan.block[0].step, rows * place.width, place.width)
        if terms.packed:
            _add_packed_runs(plan, &runs, to, packed)
            return False
        return terms.leaves.sum_runs(&runs, &to)
    full = rows // plan.within if plan.within > 1 else rows
    rest = (rows - full * plan.within) * (place.width // plan.within) if plan.within > 1 else 0
    for _i in range(place.groups):
        if terms.packed:
            _add_packed_rows(plan, x, full, step, place.width, to, packed)
            if rest:
                _add_packed_rows(plan, x + full * step, 1, 0, rest, Sink(ADD, to.sum, to.error), packed)
        else:
            if add_rows(terms, x, full, step, place.width, to):
                return True
            if rest:
                add_rows(terms, x + full * step, 1, 0, rest, Sink(ADD, to.sum, to.error))
        x += plan.block[0].step
        to.sum += advance
        to.error += advance
    return False


cdef bint add_rows(
    const Terms *terms, const char *x, Py_ssize_t rows, Py_ssize_t step, Py_ssize_t width, Sink to,
) noexcept nogil:
    """Add rows of `width` items, up to FEWEST at a time; tell whether the leaf could not write the results.

    They are taken from the four quarters of all by turns, as memory gives several streams faster than one; four at a
    time where eight would share lines of a cache.
    """
    cdef bint by_four = step % (PAGE // 2) == 0 or terms.compensated and width * terms.size <= PAGE
    cdef Py_ssize_t most = 4 if by_four and to.mode != WRITE else FEWEST, advance = most // 4 * step, done = 0
    cdef Rows some = Rows(x, rows // most, advance, most, rows // most * advance, step, width)
    if some.turns:
        if terms.leaves.sum_rows(&some, &to):
            return True
        to.mode = ADD
        done = some.turns * most
    if done == rows:
        return False
    some = Rows(x + done * step, 1, 0, rows - done, step, 4 * step, width)
    return terms.leaves.sum_rows(&some, &to)


cdef void _add_packed_rows(
    const Reduction *plan, const char *x, Py_ssize_t rows, Py_ssize_t step, Py_ssize_t width, Sink to, char *packed,
) noexcept nogil:
    """Add rows of `width` items by way of `packed`, up to FEWEST at a time."""
    cdef const Terms *terms = plan.terms
    cdef Py_ssize_t item_step = plan.block[plan.blocks - 1].step, size = width * terms.size, done = 0, i
    cdef Rows some
    while done < rows:
        some = Rows(packed, 1, 0, min(rows - done, <Py_ssize_t> FEWEST), size, 4 * size, width)
        for i in range(some.rows):
            pack(&terms.packing, packed + i * size, x + (done + i) * step, item_step, width)
        terms.leaves.sum_rows(&some, &to)
        to.mode = ADD
        done += some.rows


cdef void _add_packed_runs(const Reduction *plan, const Runs *runs, Sink to, char *packed) noexcept nogil:
    """Add runs by way of `packed`: as many as that has room for, or parts of one."""
    cdef Py_ssize_t size = plan.terms.size, step = plan.along.step, rows = runs.length, i = 0, j, k, n
    cdef int mode = to.mode
    cdef Runs some = Runs(packed, 0, 0, 0, 1)
    while i < runs.count:
        some.count = max(<Py_ssize_t> 1, min(FEWEST * ROW // rows, runs.count - i))
        to.mode = mode
        j = 0
        while j < rows:
            n = min(rows - j, <Py_ssize_t> FEWEST * ROW)
            if runs.step == rows * step:
                pack(&plan.terms.packing, packed, runs.x + i * runs.step + j * step, step, some.count * n)
            else:
                for k in range(some.count):
                    pack(&plan.terms.packing, packed + k * n * size, runs.x + (i + k) * runs.step + j * step, step, n)
            some.length = n
            some.step = n * size
            plan.terms.leaves.sum_runs(&some, &to)
            to.mode = ADD
            j += n
        i += some.count
        to.sum += some.count * plan.terms.sum_size
        to.error += some.count * plan.terms.sum_size


cdef Py_ssize_t _fold(const Reduction *plan, const Place *place, Sink block) noexcept nogil:
    """Add up what the block has kept of summed axes, outermost first; return how many sums are left."""
    cdef Py_ssize_t before = 1, after = place.groups * place.width, size = plan.terms.sum_size
    cdef Py_ssize_t length, left, half, i, j
    cdef Sink to, more
    for j in range(plan.blocks):
        length = _length(plan, place, <int> j)
        after //= length
        if plan.block[j].kept:
            before *= length
            continue
        for i in range(before):     # by halves, so that few and long rows are added
            to = more = block
            _advance_sink(plan.terms, &to, i * length * after)
            left = length
            while left > 1:
                half = left // 2
                more = to
                _advance_sink(plan.terms, &more, (left - half) * after)
                plan.terms.leaves.add_accumulators(&to, &more, half * after)
                left -= half
            memmove(block.sum + i * after * size, to.sum, after * size)
            if plan.terms.compensated:
                memmove(block.error + i * after * size, to.error, after * size)
    return before


cdef void _store(const Reduction *plan, const Place *place, Sink block) noexcept nogil:
    """Write a tile's sums, along the kept axes of its block: the innermost ones at once that are one axis of `out`."""
    cdef Py_ssize_t[MAX_AXES] length, at
    cdef int first = plan.last, i
    cdef Results results = Results(plan.terms.result, plan.terms.sum_size, place.out, plan.block[first].out_step)
    cdef Py_ssize_t n = _length(plan, place, first), j
    cdef const char *x = place.x
    while first > 0 and (not plan.block[first - 1].kept or plan.block[first - 1].out_step == n * results.step):
        first -= 1
        if plan.block[first].kept:
            n *= _length(plan, place, first)
    for i in range(plan.last + 1):
        length[i] = _length(plan, place, i) if plan.block[i].kept else 1
        at[i] = 0
    while True:
        if plan.terms.compensated and plan.terms.target.add_errors(
            <double *> block.sum, <const double *> block.error, n
        ):
            for j in range(n):
                if not isfinite((<double *> block.sum)[j]):
                    (<double *> block.sum)[j] = _sum_again(plan, _item(plan, length, first, j, x))
        plan.terms.target.store(&results, block.sum, n)
        _advance_sink(plan.terms, &block, n)
        if not _advance(plan.block, length, at, first, &x, &results.to):
            return


cdef const char *_item(
    const Reduction *plan, const Py_ssize_t *length, int first, Py_ssize_t j, const char *x,
) noexcept nogil:
    """Where the terms of item `j` begin, of the block's axes from `first` on."""
    cdef int i
    for i in range(plan.last, first - 1, -1):
        if plan.block[i].kept:
            x += j % length[i] * plan.block[i].step
            j //= length[i]
    return x


cdef double _sum_again(const Reduction *plan, const char *x) noexcept nogil:
    """Sum the terms of one element, whose accumulator overflowed, perhaps only on its way: large ones scaled down.

    Terms that are infinite or no numbers themselves give what a plain sum of them gives.
    """
    cdef Py_ssize_t[MAX_AXES] length, at
    cdef double[2] high = [0, 0]
    cdef double[2] error = [0, 0]
    cdef double plain = 0, term, sum, part
    cdef char *out = NULL   # goes nowhere
    cdef int i, large
    for i in range(plan.rank):
        length[i] = 1 if plan.axes[i].kept else plan.axes[i].length
        at[i] = 0
    while True:
        if plan.terms.packed:
            pack(&plan.terms.packing, <char *> &term, x, 0, 1)
        else:
            memcpy(&term, x, sizeof(double))
        if isfinite(term):
            large = fabs(term) >= LARGE
            if large:
                term *= SCALE
            sum = high[large] + term        # two_sum
            part = sum - high[large]
            error[large] += (high[large] - (sum - part)) + (term - part)
            high[large] = sum
        else:
            plain += term
        if plain != plain or not _advance(plan.axes, length, at, plan.rank, &x, &out):
            break
    if plain != 0:      # or NaN
        return plain
    if high[1] == 0 and error[1] == 0:
        return high[0] + error[0]
    return (high[1] + (error[1] + (high[0] + error[0]) * SCALE)) / SCALE
