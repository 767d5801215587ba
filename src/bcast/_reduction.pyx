# cython: cdivision=True
"""From axes to sums: a plan of what the leaves of `_sum_leaves.h` add up, and the walk that follows it.

An array is walked in the order of its memory, whichever of its axes are summed. The leaf takes the innermost ones: it
adds rows of kept items onto a block of accumulators, or sums runs of adjacent terms. Where the innermost axes are
short, some of the summed ones are kept in the block at first, so that rows are long, and folded when all else has been
added.

The result is cut into tiles, and where these are few, a summed axis into segments whose sums are added in order: both
by shape and strides alone, so that the bits of a result do not depend on how many threads share the work.
"""

from libc.math cimport fabs, isfinite
from libc.string cimport memcpy, memmove

cdef enum:
    BLOCK = 4096        # accumulators; with their rows they fit a second-level cache
    JOINED = 512        # accumulators; a row made of several shorter ones needs no more, and each must be folded
    PACKED = 512        # the same where terms are packed first, eight rows at a time
    ROW = 512           # items; a row is not cut into shorter chunks for the sake of threads
    RUN = 4096          # terms; nor is a run
    GROUPS = 32         # runs shorter than that which a tile has at least: the leaf sums them side by side
    ALONE = 512         # terms; runs shorter than that are added as rows where fewer than FEWEST are side by side
    UNIT = 65536        # terms; what a unit sums, if that makes no more units than
    UNITS = 64          # so many: enough for most machines' threads
    TOGETHER = 64       # elements that are summed again at once: rows of 512 bytes

cdef double LARGE = 2.0 ** 900      # terms from here on are summed times SCALE, which 2^60 of them do not overflow
cdef double SCALE = 2.0 ** -100


cdef int plan_axes(Reduction *plan, const Axis *axis, int n) noexcept:
    """Plan the sum over `n` axes, longer than 1 and outermost first; `plan.terms` and `plan.far` are there."""
    cdef Py_ssize_t limit = BLOCK if plan.terms.pack == NULL else PACKED
    cdef Py_ssize_t items = 1, summed = 1
    cdef int i
    plan.summed = 0
    for i in range(n):
        items *= axis[i].length
        if not axis[i].kept:
            summed *= axis[i].length
            plan.sums[plan.summed] = axis[i]
            plan.summed += 1
    plan.rows = plan.block[0] = Axis(1, 0, 0, True)
    plan.within = 1
    plan.split = 0
    plan.blocks = 1
    i = n - 1 - interleaved(&plan.terms, axis, n)      # the axis of runs
    plan.runs = i >= 0 and not axis[i].kept and (
        summed // axis[i].length < FEWEST
        or axis[i].length * axis[i].step >= LONG * plan.terms.size
        and (axis[i].length >= ALONE or _groups(axis, i) >= FEWEST)
    )
    if plan.runs:
        plan.rows = axis[i]
        if i < n - 1:
            plan.block[1] = axis[i + 1]
            plan.blocks = 2
        n = i
    else:
        n = _plan_block(plan, axis, n, limit, summed)
    _plan_outer(plan, axis, n)
    _plan_units(plan, items, limit)
    return 0


cdef Py_ssize_t _groups(const Axis *axis, int n) noexcept:
    """The length of the innermost kept one of `n` axes."""
    while n > 0:
        n -= 1
        if axis[n].kept:
            return axis[n].length
    return 1


cdef bint interleaved(const Terms *terms, const Axis *axis, int n) noexcept:
    """Whether the terms of as many items as one run may have take turns in the innermost axes."""
    if n < 2 or terms.pack != NULL or not axis[n - 1].kept or axis[n - 2].kept:
        return False
    if axis[n - 1].length > terms.sums.m_most or axis[n - 1].length == 3:
        return False
    return axis[n - 2].step == axis[n - 1].length * axis[n - 1].step


cdef int _plan_block(Reduction *plan, const Axis *axis, int n, Py_ssize_t limit, Py_ssize_t summed) noexcept:
    """Take the innermost axes for the block of accumulators; return how many are left."""
    cdef const Axis *next
    cdef Py_ssize_t within, inner = 1
    cdef int first = n      # of the axes that are taken whole
    cdef int i
    while first > 0 and _joins(axis, first, n, inner):
        next = &axis[first - 1]
        if inner * next.length > limit or not (next.kept or summed // next.length >= FEWEST):
            break
        if not next.kept:
            summed //= next.length
        inner *= next.length
        first -= 1
    i = first
    if first > 0 and _joins(axis, first, n, inner):     # a part of the next one
        next = &axis[first - 1]
        within = min(min(limit, <Py_ssize_t> JOINED) // inner, next.length // FEWEST)
        if next.kept:
            plan.split = 1
            plan.block[1] = next[0]
            plan.blocks = 2
            i -= 1
        elif within > 1:
            plan.rows = next[0]
            plan.within = within
            plan.block[1] = Axis(within, next.step, 0, False)
            plan.blocks = 2
            i -= 1
    for first in range(first, n):
        plan.block[plan.blocks] = axis[first]
        plan.blocks += 1
    return i


cdef inline bint _joins(const Axis *axis, int first, int n, Py_ssize_t inner) noexcept:
    """Whether the axis before `first` lies side by side with those from there on, and these are short alone."""
    return first == n or (axis[n - 1].length < LONG and axis[first - 1].step == inner * axis[n - 1].step)


cdef void _plan_outer(Reduction *plan, const Axis *axis, int n) noexcept:
    """Give the leaf the innermost axes that are left, a kept one for groups and a summed one; the rest is walked."""
    cdef int groups = -1, rows = -1, i
    for i in range(n):
        if axis[i].kept:
            groups = i
        else:
            rows = i
    if plan.split == 0 and groups >= 0:
        plan.block[0] = axis[groups]
    else:
        groups = -1
    if plan.rows.kept and rows >= 0:
        plan.rows = axis[rows]
    else:
        rows = -1
    plan.outers = 0
    for i in range(n):
        if i != groups and i != rows:
            plan.outer[plan.outers] = axis[i]
            plan.outers += 1


cdef void _plan_units(Reduction *plan, Py_ssize_t items, Py_ssize_t limit) noexcept:
    """Cut the result into tiles and a summed axis into segments."""
    cdef Axis *split = &plan.block[plan.split]
    cdef Py_ssize_t wanted = min(<Py_ssize_t> UNITS, max(<Py_ssize_t> 1, items // UNIT))
    cdef Py_ssize_t rest = 1, tiles = 1, longest, length
    cdef int i
    for i in range(plan.blocks):
        if i != plan.split:
            rest *= plan.block[i].length
    for i in range(plan.outers):
        if plan.outer[i].kept:
            tiles *= plan.outer[i].length
    plan.chunks = min(split.length, _parts(wanted, tiles))
    if plan.split:
        plan.chunks = min(plan.chunks, split.length * rest // ROW)
    elif plan.runs and plan.rows.length < RUN:
        plan.chunks = min(plan.chunks, split.length // GROUPS)
    plan.chunks = max(plan.chunks, _parts(split.length, max(<Py_ssize_t> 1, limit // rest)))
    plan.chunk = _parts(split.length, plan.chunks)
    plan.chunks = _parts(split.length, plan.chunk)
    plan.tiles = tiles * plan.chunks
    plan.sums_most = plan.chunk * rest
    plan.cut = -1
    longest = plan.rows.length // (RUN if plan.runs else FEWEST * plan.within)
    for i in range(plan.outers):
        length = plan.outer[i].length
        if not plan.outer[i].kept and length > longest:
            longest = length
            plan.cut = i
    plan.segments = max(<Py_ssize_t> 1, min(longest, _parts(wanted, plan.tiles)))
    plan.scratch = (2 if plan.terms.paired else 1) * plan.sums_most * plan.terms.sum_size
    if plan.terms.pack != NULL:
        plan.scratch += FEWEST * PACKED * plan.terms.size


cdef inline Py_ssize_t _parts(Py_ssize_t length, Py_ssize_t most) noexcept nogil:
    """How many parts of at most that length there are."""
    return (length + most - 1) // most


cdef struct Place:      # of a tile
    const char *x
    char *out
    Py_ssize_t groups   # the lengths of the block's first two axes
    Py_ssize_t second
    Py_ssize_t m        # accumulators of a group


cdef Place _place(const Reduction *plan, Py_ssize_t tile, const char *x, char *out) noexcept nogil:
    cdef const Axis *axis = &plan.block[plan.split]
    cdef Py_ssize_t at = tile % plan.chunks * plan.chunk
    cdef Place place
    cdef int i
    tile //= plan.chunks
    place.groups = plan.block[0].length
    place.second = plan.block[1].length if plan.blocks > 1 else 1
    if plan.split:
        place.second = min(plan.chunk, axis.length - at)
    else:
        place.groups = min(plan.chunk, axis.length - at)
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
    place.m = place.second
    for i in range(2, plan.blocks):
        place.m *= plan.block[i].length
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
    x = place.x
    for i in range(plan.outers):
        length[i] = plan.outer[i].length
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
        if plan.terms.pack == NULL:
            _add(plan, &place, rows, x, high, low, add)
        elif plan.runs:
            _add_packed_runs(plan, &place, rows, x, high, low, packed, add)
        else:
            _add_packed(plan, &place, rows, x, high, low, packed, add)
        add = True
        i = plan.outers - 1
        while i >= 0:
            if not plan.outer[i].kept:
                at[i] += 1
                x += plan.outer[i].step
                if at[i] < length[i]:
                    break
                x -= at[i] * plan.outer[i].step
                at[i] = 0
            i -= 1
        if i < 0:
            break
    full = _fold(plan, &place, high, low) * plan.terms.sum_size
    if plan.segments == 1:
        _put(plan, &place, high, low)
    else:
        partials += unit * 2 * plan.sums_most * plan.terms.sum_size
        memcpy(partials, high, full)
        if plan.terms.paired:
            memcpy(partials + plan.sums_most * plan.terms.sum_size, low, full)


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


cdef void _add(
    const Reduction *plan, const Place *place, Py_ssize_t rows, const char *x, char *high, char *low, bint add,
) noexcept nogil:
    """Add what the leaf can walk alone."""
    cdef Py_ssize_t step = plan.rows.step, size = plan.terms.sum_size
    cdef Py_ssize_t m = place.m, full = rows // plan.within, rest = rows % plan.within, i
    if plan.runs:
        plan.terms.sums.add_runs(high, low, x, place.groups, plan.block[0].step, rows * m, m, plan.far, add)
        return
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


cdef void _add_packed_runs(
    const Reduction *plan, const Place *place, Py_ssize_t rows, const char *x, char *high, char *low, char *packed,
    bint add,
) noexcept nogil:
    """The same for runs: as many as `packed` has room for, or parts of one."""
    cdef Py_ssize_t size = plan.terms.size, sum_size = plan.terms.sum_size
    cdef Py_ssize_t step = plan.rows.step, next = plan.block[0].step, i = 0, j, k, n, count
    while i < place.groups:
        count = max(<Py_ssize_t> 1, min(FEWEST * PACKED // rows, place.groups - i))
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
    return place.groups if i == 0 else place.second if i == 1 else plan.block[i].length


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
    if last > 0 and plan.block[last - 1].kept and plan.block[last - 1].out_step == n * plan.block[last].out_step:
        first -= 1      # both are one axis of `out`
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
