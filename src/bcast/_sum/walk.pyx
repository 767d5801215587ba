# cython: cdivision=True
"""From a plan to sums: the walk that has the leaves of `_sum/simd/leaves.h` add up what `_sum/plan.pyx` has planned.

`sum_unit` walks one segment of a tile: the leaf adds its terms onto the block of accumulators, packed before where it
cannot read them as they are (`_add_packed`). Then the block is folded (`_fold`) and written (`_put`), or kept until
`add_segments` adds the sums of all the tile's segments. What overflowed is summed again (`_sum_special`).
"""

from libc.math cimport fabs, isfinite
from libc.string cimport memcpy, memmove

from bcast._sum.plan cimport FEWEST, MAX_AXES, PACKED, Axis, Reduction

cdef enum:
    TOGETHER = 64       # elements that are summed again at once: rows of 512 bytes

cdef double LARGE = 2.0 ** 900      # terms from here on are summed times SCALE, which 2^60 of them do not overflow
cdef double SCALE = 2.0 ** -100


cdef struct Place:      # of a tile
    const char *x
    char *out
    Py_ssize_t split    # the length of the block's axis that is cut
    Py_ssize_t groups   # of its first one
    Py_ssize_t m        # accumulators of a group


cdef Place _place(const Reduction *plan, Py_ssize_t tile, const char *x, char *out) noexcept nogil:
    cdef const Axis *axis = &plan.block[plan.split]
    cdef Py_ssize_t at = tile % plan.chunks * plan.chunk
    cdef Place place
    cdef int i
    tile //= plan.chunks
    place.split = min(plan.chunk, axis.length - at)
    place.groups = _length(plan, &place, 0)
    x += at * axis.step
    out += at * axis.out_step
    for i in range(plan.outers - 1, -1, -1):
        axis = &plan.outer[i]
        if axis.kept:
            x += tile % axis.length * axis.step
            out += tile % axis.length * axis.out_step
            tile //= axis.length
    place.x = x
    place.out = out
    place.m = 1
    for i in range(1, plan.blocks):
        place.m *= _length(plan, &place, i)
    return place


cdef void sum_unit(
    const Reduction *plan, Py_ssize_t unit, const char *x, char *out, char *scratch, char *partials,
) noexcept nogil:
    """Sum one segment of a tile: into `out` if it has no other, and else into its part of `partials`."""
    cdef Py_ssize_t segment = unit % plan.segments
    cdef Place place = _place(plan, unit // plan.segments, x, out)
    cdef Py_ssize_t[MAX_AXES] length, at
    cdef Py_ssize_t rows = plan.rows.length, begin, full
    cdef char *high = scratch
    cdef char *low = scratch + plan.sums_most * plan.terms.sum_size
    cdef char *packed = low + plan.sums_most * plan.terms.sum_size if plan.terms.paired else low
    cdef bint add = False
    cdef int i
    if plan.alone:
        _sum_alone(plan, &place, high, low)
        return
    if plan.few and _put_rows(plan, &place):
        return
    x = place.x
    for i in range(plan.outers):
        length[i] = 1 if plan.outer[i].kept else plan.outer[i].length
        at[i] = 0
    full = rows if plan.cut < 0 else length[plan.cut]
    begin = full * segment // plan.segments
    full = full * (segment + 1) // plan.segments - begin
    if plan.cut < 0:
        rows = full
        x += begin * plan.rows.step
    else:
        length[plan.cut] = full
        x += begin * plan.outer[plan.cut].step
    while True:
        if plan.runs:
            _add_runs(plan, &place, rows, x, high, low, packed, add)
        elif plan.terms.pack == NULL:
            _add(plan, &place, rows, x, high, low, add)
        else:
            _add_packed(plan, &place, rows, x, high, low, packed, add)
        add = True
        if not _advance(plan.outer, length, at, plan.outers, &x):
            break
    full = _fold(plan, &place, high, low) * plan.terms.sum_size
    if plan.segments == 1:
        _put(plan, &place, high, low)
    else:
        partials += unit * 2 * plan.sums_most * plan.terms.sum_size
        memcpy(partials, high, full)
        if plan.terms.paired:
            memcpy(partials + plan.sums_most * plan.terms.sum_size, low, full)


cdef inline bint _advance(
    const Axis *axis, const Py_ssize_t *length, Py_ssize_t *at, int n, const char **x,
) noexcept nogil:
    """Move `x` on along the innermost of `n` axes that has not come to its end; tell whether there is one."""
    cdef int i
    for i in range(n - 1, -1, -1):
        at[i] += 1
        x[0] += axis[i].step
        if at[i] < length[i]:
            return True
        x[0] -= at[i] * axis[i].step
        at[i] = 0
    return False


cdef void add_segments(
    const Reduction *plan, Py_ssize_t tile, const char *x, char *out, char *partials,
) noexcept nogil:
    """Add the sums of a tile's segments, in order, and write them to `out`."""
    cdef Place place = _place(plan, tile, x, out)
    cdef Py_ssize_t part = plan.sums_most * plan.terms.sum_size
    cdef char *high = partials + tile * plan.segments * 2 * part
    cdef Py_ssize_t sums = _folded(plan, &place)
    cdef Py_ssize_t i
    for i in range(1, plan.segments):
        plan.terms.sums.add_accumulators(high, high + part, high + 2 * i * part, high + (2 * i + 1) * part, sums)
    _put(plan, &place, high, high + part)


cdef void _sum_alone(const Reduction *plan, const Place *place, char *high, char *low) noexcept nogil:
    """Write sums of short runs: by the leaf itself, if they lie side by side and none is infinite or no number."""
    cdef Py_ssize_t n = plan.rows.length * place.m, step = plan.block[0].step, done = 0
    cdef Py_ssize_t most = plan.sums_most // place.m
    cdef Place part = place[0]
    if plan.terms.sums.put_runs != NULL and _is_dense(plan, 0):
        if not plan.terms.sums.put_runs(
            place.out, place.x, place.groups, step, n, place.m, plan.far, plan.streamed,
        ):
            return
    while done < place.groups:
        part.groups = part.split = min(most, place.groups - done)
        part.x = place.x + done * step
        part.out = place.out + done * plan.block[0].out_step
        plan.terms.sums.add_runs(high, low, part.x, part.groups, step, n, part.m, plan.far, False)
        _put(plan, &part, high, low)
        done += part.groups


cdef bint _put_rows(const Reduction *plan, const Place *place) noexcept nogil:
    """Write sums of few rows by the leaf itself; tell whether that could be done."""
    cdef Py_ssize_t i
    if plan.terms.sums.put_rows == NULL or not _is_dense(plan, 1) or place.m < plan.terms.sums.lanes:
        return False
    for i in range(place.groups):
        if plan.terms.sums.put_rows(
            place.out + i * plan.block[0].out_step, place.x + i * plan.block[0].step, plan.rows.length, plan.rows.step,
            place.m, plan.streamed,
        ):
            return False
    return True


cdef bint _is_dense(const Reduction *plan, int first) noexcept nogil:
    """Whether results along the axes of the block from `first` on are terms of their own, one after the other."""
    cdef Py_ssize_t size = plan.terms.size
    cdef int i
    if plan.strided:
        return False
    for i in range(plan.blocks - 1, first - 1, -1):
        if plan.block[i].out_step != size:
            return False
        size *= plan.block[i].length
    return True


cdef void _add(
    const Reduction *plan, const Place *place, Py_ssize_t rows, const char *x, char *high, char *low, bint add,
) noexcept nogil:
    """Add what the leaf can walk alone."""
    cdef Py_ssize_t step = plan.rows.step, size = plan.terms.sum_size
    cdef Py_ssize_t m = place.m, full = rows // plan.within, rest = rows % plan.within, i
    plan.terms.sums.add_rows(high, low, x, place.groups, plan.block[0].step, full, plan.within * step, m, add)
    if rest:
        x += full * plan.within * step
        rest *= m // plan.within
        for i in range(place.groups):
            plan.terms.sums.add_rows(
                high + i * m * size, low + i * m * size, x + i * plan.block[0].step, 1, 0, 1, 0, rest, True,
            )


cdef void _add_packed(
    const Reduction *plan, const Place *place, Py_ssize_t rows, const char *x, char *high, char *low, char *packed,
    bint add,
) noexcept nogil:
    """The same by way of `packed`, where terms lie side by side in the machine's own form."""
    cdef Py_ssize_t size = plan.terms.size, sum_size = plan.terms.sum_size, m = place.m
    cdef Py_ssize_t step = plan.rows.step, item_step = plan.block[plan.blocks - 1].step
    cdef Py_ssize_t _i, j, k, n
    for _i in range(place.groups):
        j = 0
        while j < rows:
            if rows - j >= plan.within:
                n = min((rows - j) // plan.within, <Py_ssize_t> FEWEST)
                for k in range(n):
                    plan.terms.pack(packed + k * m * size, x + (j + k * plan.within) * step, item_step, m)
                plan.terms.sums.add_rows(high, low, packed, 1, 0, n, m * size, m, add or j > 0)
                n *= plan.within
            else:
                n = rows - j
                plan.terms.pack(packed, x + j * step, item_step, n * (m // plan.within))
                plan.terms.sums.add_rows(high, low, packed, 1, 0, 1, 0, n * (m // plan.within), True)
            j += n
        x += plan.block[0].step
        high += sum_size * m
        low += sum_size * m


cdef void _add_runs(
    const Reduction *plan, const Place *place, Py_ssize_t rows, const char *x, char *high, char *low, char *packed,
    bint add,
) noexcept nogil:
    """Add runs, as many at once as lie in even steps, and walk the other axes of the block."""
    cdef Py_ssize_t[MAX_AXES] length, at
    cdef int last = plan.groups - 1, first = last, i
    cdef Py_ssize_t step = plan.block[last].step, count = _length(plan, place, last)
    cdef Py_ssize_t m = 1 if plan.groups == plan.blocks else plan.block[plan.groups].length
    while first > 0 and plan.block[first - 1].step == count * step:
        first -= 1
        count *= _length(plan, place, first)
    for i in range(first):
        length[i] = _length(plan, place, i)
        at[i] = 0
    while True:
        if plan.terms.pack == NULL:
            plan.terms.sums.add_runs(high, low, x, count, step, rows * m, m, plan.far, add)
        else:
            _add_packed_runs(plan, rows, x, count, step, high, low, packed, add)
        high += count * m * plan.terms.sum_size
        low += count * m * plan.terms.sum_size
        if not _advance(plan.block, length, at, first, &x):
            return


cdef void _add_packed_runs(
    const Reduction *plan, Py_ssize_t rows, const char *x, Py_ssize_t groups, Py_ssize_t next, char *high, char *low,
    char *packed, bint add,
) noexcept nogil:
    """Add runs by way of `packed`: as many as that has room for, or parts of one."""
    cdef Py_ssize_t size = plan.terms.size, sum_size = plan.terms.sum_size
    cdef Py_ssize_t step = plan.rows.step, i = 0, j, k, n, count
    while i < groups:
        count = max(<Py_ssize_t> 1, min(FEWEST * PACKED // rows, groups - i))
        j = 0
        while j < rows:
            n = min(rows - j, <Py_ssize_t> FEWEST * PACKED)
            if next == rows * step:
                plan.terms.pack(packed, x + j * step, step, count * n)
            else:
                for k in range(count):
                    plan.terms.pack(packed + k * n * size, x + k * next + j * step, step, n)
            plan.terms.sums.add_runs(high, low, packed, count, n * size, n, 1, False, add or j > 0)
            j += n
        i += count
        x += count * next
        high += count * sum_size
        low += count * sum_size


cdef Py_ssize_t _length(const Reduction *plan, const Place *place, int i) noexcept nogil:
    """The length of the block's axis `i` in this tile."""
    return place.split if i == plan.split else plan.block[i].length


cdef Py_ssize_t _folded(const Reduction *plan, const Place *place) noexcept nogil:
    """How many sums of the tile's are left after folding."""
    cdef Py_ssize_t sums = 1
    cdef int i
    for i in range(plan.blocks):
        if plan.block[i].kept:
            sums *= _length(plan, place, i)
    return sums


cdef Py_ssize_t _fold(const Reduction *plan, const Place *place, char *high, char *low) noexcept nogil:
    """Add up what the block has kept of summed axes, outermost first; return how many sums are left."""
    cdef Py_ssize_t before = 1, after = place.groups * place.m, size = plan.terms.sum_size
    cdef Py_ssize_t length, left, half, at, to, i, j
    for j in range(plan.blocks):
        length = _length(plan, place, <int> j)
        after //= length
        if plan.block[j].kept:
            before *= length
            continue
        for i in range(before):     # by halves, so that few and long rows are added
            at = i * length * after * size
            left = length
            while left > 1:
                half = left // 2
                plan.terms.sums.add_accumulators(
                    high + at, low + at, high + at + (left - half) * after * size,
                    low + at + (left - half) * after * size, half * after,
                )
                left -= half
            to = i * after * size
            memmove(high + to, high + at, after * size)
            if plan.terms.paired:
                memmove(low + to, low + at, after * size)
    return before


cdef void _put(const Reduction *plan, const Place *place, char *high, const char *low) noexcept nogil:
    """Write a tile's sums, along the kept axes of its block."""
    cdef Py_ssize_t[MAX_AXES] at
    cdef Py_ssize_t n, inner, j
    cdef const char *x = place.x
    cdef char *out = place.out
    cdef int last = plan.blocks - 1, first, i
    while last > 0 and not plan.block[last].kept:
        last -= 1
    n = inner = _length(plan, place, last)
    first = last
    i = last - 1
    while i >= 0 and not plan.block[i].kept:
        i -= 1
    if i >= 0 and plan.block[i].out_step == n * plan.block[last].out_step:
        first = i       # both are one axis of `out`
        n *= _length(plan, place, first)
    for i in range(first):
        at[i] = 0
    while True:
        if plan.terms.paired and plan.terms.merge(<double *> high, <const double *> low, n):
            for j in range(n // inner):
                _sum_special(
                    plan, x + j * plan.block[first].step, plan.block[last].step, <double *> high + j * inner, inner,
                )
        if plan.strided:
            _scatter(plan, out, plan.block[last].out_step, high, n)
        else:
            plan.terms.store(out, plan.block[last].out_step, high, n)
        high += n * plan.terms.sum_size
        low += n * plan.terms.sum_size
        i = first - 1
        while i >= 0:
            if plan.block[i].kept:
                at[i] += 1
                x += plan.block[i].step
                out += plan.block[i].out_step
                if at[i] < _length(plan, place, i):
                    break
                x -= at[i] * plan.block[i].step
                out -= at[i] * plan.block[i].out_step
                at[i] = 0
            i -= 1
        if i < 0:
            return


cdef void _scatter(const Reduction *plan, char *out, Py_ssize_t step, const char *sums, Py_ssize_t n) noexcept nogil:
    """Write sums to where their places in a contiguous result are in `out`, as far as one step leads at a time."""
    cdef const Axis *axis
    cdef Py_ssize_t rest, at, count, times = 0, out_step = 0
    cdef char *to
    cdef int along = 0, i
    while along < plan.strided:     # the axis on which they lie
        axis = &plan.stride[along]
        times = step // axis.step
        if times and -axis.length < times < axis.length:
            out_step = times * axis.out_step
            break
        along += 1
    while n > 0:
        rest = out - plan.begin
        to = plan.begin
        count = n
        for i in range(plan.strided):
            axis = &plan.stride[i]
            at = rest // axis.step
            rest -= at * axis.step
            to += at * axis.out_step
            if i == along:
                count = min(n, 1 + ((axis.length - 1 - at) // times if times > 0 else at // -times))
        plan.terms.store(to, out_step, sums, count)
        sums += count * plan.terms.sum_size
        out += count * step
        n -= count


cdef void _sum_special(
    const Reduction *plan, const char *x, Py_ssize_t step, double *sums, Py_ssize_t n,
) noexcept nogil:
    """Sum again what is infinite or no number, perhaps only on its way: neighbours in memory together."""
    cdef Py_ssize_t most = TOGETHER if step < plan.sums[plan.summed - 1].step else 1
    cdef Py_ssize_t i = 0, count
    while i < n:
        count = 0
        while count < min(most, n - i) and not isfinite(sums[i + count]):
            count += 1
        if count:
            _sum_again(plan, x + i * step, step, sums + i, count)
        i += max(<Py_ssize_t> 1, count)


cdef void _sum_again(
    const Reduction *plan, const char *x, Py_ssize_t step, double *sums, Py_ssize_t n,
) noexcept nogil:
    """Sum the terms of up to `TOGETHER` elements whose accumulators overflowed, large ones scaled down.

    Terms that are infinite or no numbers themselves give what a plain sum of them gives.
    """
    cdef Py_ssize_t[MAX_AXES] at
    cdef double[TOGETHER] plain
    cdef double[2][TOGETHER] high, low
    cdef double term, sum, part
    cdef Py_ssize_t left = n, j     # elements that are not NaN
    cdef int i, large
    for j in range(n):
        plain[j] = high[0][j] = high[1][j] = low[0][j] = low[1][j] = 0
    for i in range(plan.summed):
        at[i] = 0
    while left:
        for j in range(n):
            if plan.terms.pack == NULL:
                memcpy(&term, x + j * step, sizeof(double))
            else:
                plan.terms.pack(&term, x + j * step, 0, 1)
            if isfinite(term):
                large = fabs(term) >= LARGE
                if large:
                    term *= SCALE
                sum = high[large][j] + term
                part = sum - high[large][j]
                low[large][j] += (high[large][j] - (sum - part)) + (term - part)
                high[large][j] = sum
            elif plain[j] == plain[j]:
                plain[j] += term
                left -= plain[j] != plain[j]
        i = plan.summed - 1
        while i >= 0:
            at[i] += 1
            x += plan.sums[i].step
            if at[i] < plan.sums[i].length:
                break
            x -= at[i] * plan.sums[i].step
            at[i] = 0
            i -= 1
        if i < 0:
            break
    for j in range(n):
        if plain[j] != 0:       # or NaN
            sums[j] = plain[j]
        elif high[1][j] == 0 and low[1][j] == 0:
            sums[j] = high[0][j] + low[0][j]
        else:
            sums[j] = (high[1][j] + (low[1][j] + (high[0][j] + low[0][j]) * SCALE)) / SCALE
