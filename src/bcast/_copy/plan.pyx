# cython: cdivision=True
"""From an alignment to a plan: pairs of a copied and a repeated axis, and a shuffle table for the innermost pairs.

In: the shape, the shape of the data at its rank, the size of an item, the sizes of both buffers. Out: a `Plan`, along
which run.pyx writes. The kernels are compiled here, as their vectors decide what is planned.
"""

from libc.stdint cimport int16_t, int32_t, uint8_t

from bcast._runtime.arrays cimport MAX_AXES
from bcast._runtime.core cimport L1, LINE, PAGE, target_number
from bcast._runtime.tuning cimport COPY_BYTES_A_DESCRIBED_ONE, COPY_BYTES_A_VISIT, COPY_READ_BACK_BYTES

cdef extern from "_copy/simd/shuffle.h":
    const Kernels *bcast_copy_kernels_of

copy_kernels_of = bcast_copy_kernels_of


cdef int make_plan(
    Plan *plan, tuple shape, tuple source, Py_ssize_t itemsize, const uint8_t *src, Py_ssize_t src_size,
    Py_ssize_t dst_size,
) except -1:
    """Merge neighbouring axes that are both copied or both repeated, and describe the innermost pairs by a table."""
    cdef Py_ssize_t length, item_run = itemsize
    cdef Pair *pair = &plan.pairs[0]
    cdef Py_ssize_t shortest = 0
    cdef int i
    if len(shape) > MAX_AXES or len(source) != len(shape):
        raise ValueError(f"`alignment` expected at most {MAX_AXES} axes, on either side, got {shape} and {source}")
    pair.copied = pair.repeated = 1
    plan.last = 0
    for i in range(len(shape)):
        length = shape[i]
        shortest = min(shortest, length)
        if <Py_ssize_t> source[i] == 1:     # also an axis of length 1 in the output, which changes nothing
            pair.repeated *= length
        else:
            if pair.repeated != 1:
                plan.last += 1
                pair += 1
                pair.copied = pair.repeated = 1
            pair.copied *= length
    if pair.repeated == 1:      # the innermost axes are copied: a run of items is one long item
        item_run *= pair.copied
        pair.copied = 1
        if plan.last:
            plan.last -= 1
    plan.pairs[plan.last].src_bytes = plan.pairs[plan.last].dst_bytes = item_run
    for i in range(plan.last, 0, -1):
        pair = &plan.pairs[i]
        plan.pairs[i - 1].src_bytes = pair.copied * pair.src_bytes
        plan.pairs[i - 1].dst_bytes = pair.copied * pair.repeated * pair.dst_bytes
    pair = &plan.pairs[0]
    if (
        shortest < 0 or pair.copied * pair.src_bytes != src_size
        or pair.copied * pair.repeated * pair.dst_bytes != dst_size
    ):      # arguments that run code of the user's when converted to integers can resize arrays
        raise ValueError("`data` and `out` expected arrays that keep their sizes during the call, got resized ones")
    plan.src_end = src + src_size
    plan.kernels = copy_kernels_of[target_number]
    _choose_strategy(plan)
    return 0


cdef void _choose_strategy(Plan *plan) noexcept:
    """Choose how the innermost pairs are written: by the first row of README's table that fits."""
    cdef const Pair *first = &plan.pairs[0]
    cdef const Pair *last = &plan.pairs[plan.last]
    cdef Py_ssize_t vector = plan.kernels.vector, size = last.dst_bytes, run = last.repeated * size
    cdef Py_ssize_t once = min(first.repeated * first.dst_bytes, max(first.dst_bytes, <Py_ssize_t> COPY_SPAN_BYTES))
    cdef Py_ssize_t written = first.copied * once       # bytes of output from which the rest is replicated
    plan.shuffle_level = -1
    plan.read_back = COPY_READ_BACK_BYTES
    plan.span_blocks = 1
    if size > COPY_ITEM_VECTORS * vector:
        plan.strategy = COPY
    elif size > COPY_WINDOW_BYTES:
        plan.strategy = ROWS
    elif run >= vector and vector % size == 0 and (
        written < L1 // 2 or run >= COPY_GROUP_VECTORS * vector
        or last.copied * run >= COPY_SPAN_BYTES and 4 * run >= (run + vector - 1) // vector * vector * 3
    ):      # a table pays in long outputs, for short runs that are few or whose last stores overlap much
        plan.strategy = FILL
    elif written < 2 * LINE or plan.last == 0 and last.copied == 1:
        plan.strategy = DOUBLE
    else:
        plan.strategy = SHUFFLE
        _plan_spans(plan, written)
    if run >= COPY_GROUP_VECTORS * vector and (plan.strategy == FILL or plan.strategy == ROWS and size % vector == 0):
        plan.read_back = PAGE       # registers are as fast as reading more back


cdef void _plan_spans(Plan *plan, Py_ssize_t written) noexcept:
    """Describe the outermost pair whose blocks are short enough, or of which there would be few to visit."""
    cdef const Pair *pair = &plan.pairs[0]
    cdef Py_ssize_t vector = plan.kernels.vector
    cdef Py_ssize_t pays = written // COPY_BYTES_A_DESCRIBED_ONE
    cdef Py_ssize_t limit = max(<Py_ssize_t> LINE, min(pays, <Py_ssize_t> COPY_SPAN_BYTES))
    cdef Py_ssize_t run = pair.repeated * pair.dst_bytes
    cdef Py_ssize_t blocks = pair.copied        # that are visited if this pair is not described
    plan.shuffle_level = 0
    while pair.dst_bytes > limit // 2:      # which an item is not
        if run <= min(<Py_ssize_t> COPY_SPAN_BYTES, COPY_BYTES_A_VISIT * blocks):
            limit = run
            break
        plan.shuffle_level += 1
        pair += 1
        blocks *= pair.copied
        run = pair.repeated * pair.dst_bytes
    if run > limit:     # a part of a run, written by one loop
        plan.span_times = _span(pair.dst_bytes, pair.repeated, min(limit, COPY_GROUP_VECTORS * vector), vector)
    else:
        plan.span_blocks = _span(run, pair.copied, limit, vector)
        plan.span_times = pair.repeated
    _compile(plan)
    if plan.span_times < pair.repeated:
        plan.table.src_step = 0     # the next span takes the same data


def explain(shape, source, Py_ssize_t itemsize=1):
    """Return the strategy of contiguous data's copy along an alignment, as README.md names it, and the plan's pairs.

    `shape` is the output's, `source` has 1 in place of each axis that repeats, or is one of them.
    """
    cdef Plan plan
    shape, source = tuple(shape), tuple(source)
    size = dst_size = itemsize
    fits = len(shape) == len(source) and itemsize > 0
    for length, copied in zip(shape, source):
        fits = fits and length > 0 and copied in (1, length)
        size *= copied
        dst_size *= length
    if not fits:
        raise ValueError(f"`source` expected lengths of {shape} or 1, got {source} and items of {itemsize} bytes")
    make_plan(&plan, shape, source, itemsize, NULL, size, dst_size)
    pairs = []
    for i in range(plan.last + 1):
        pairs.append(plan.pairs[i])
    return {"strategy": ("copy", "repeat rows", "fill", "double", "shuffle")[plan.strategy], "pairs": pairs}


cdef Py_ssize_t _span(Py_ssize_t size, Py_ssize_t times, Py_ssize_t limit, int vector) noexcept:
    """How many of `times` runs or blocks of `size` bytes make a span of few and nearly full vectors."""
    cdef Py_ssize_t n, vectors, cost, best = 1, least = 0
    limit = min(limit, 4 * COPY_GROUP_VECTORS * vector)     # in more passes, each is too sparse for the prefetcher
    for n in range(1, max(1, min(times, limit // size)) + 1):
        vectors = (n * size + vector - 1) // vector
        cost = (10000 if vectors <= COPY_GROUP_VECTORS else 12000) * vectors // (n * size)
        if n == 1 or cost <= least:
            least = cost
            best = n
    return best


cdef Py_ssize_t _describe(const Plan *plan, int16_t *sources) noexcept:
    """List which byte of the data each byte of a span copies; return their number."""
    cdef Py_ssize_t size = plan.pairs[plan.last].dst_bytes
    cdef const Pair *pair
    cdef Py_ssize_t i, _j, b, copied, repeated, done
    cdef int16_t shift
    cdef int level
    for b in range(size):
        sources[b] = <int16_t> b
    for level in range(plan.last, plan.shuffle_level - 1, -1):
        pair = &plan.pairs[level]
        copied = pair.copied if level > plan.shuffle_level else plan.span_blocks
        repeated = pair.repeated if level > plan.shuffle_level else plan.span_times
        done = 0
        for i in range(copied):
            shift = <int16_t> (i * pair.src_bytes)
            for _j in range(repeated):
                if done:
                    for b in range(size):
                        sources[done + b] = sources[b] + shift
                done += size
        size = done
    return size


cdef void _compile(Plan *plan) noexcept:
    """Describe a span of output as vectors."""
    cdef int16_t[COPY_SPAN_BYTES + COPY_VECTOR_BYTES] sources      # for each byte, its position in the data
    cdef ShuffleTable *table = &plan.table
    cdef Py_ssize_t size = _describe(plan, sources)
    cdef Py_ssize_t b, last, before
    for b in range(COPY_VECTOR_BYTES):
        sources[size + b] = sources[size - 1]
    table.src_step = plan.span_blocks * plan.pairs[plan.shuffle_level].src_bytes
    table.dst_step = size
    table.vectors = 0
    table.src_reach = 0
    b = last = before = 0
    while b < size:
        before, last = last, b
        b = _add_vector(&plan.kernels, table, sources, b)
    if b > size and before <= size - plan.kernels.vector:  # move the last vector back to end with the span,
        table.vectors -= 1
        b = _add_vector(&plan.kernels, table, sources, size - plan.kernels.vector)
        if b < size:    # if the data allows that
            table.vectors -= 1
            b = _add_vector(&plan.kernels, table, sources, last)
    table.exact = b == size
    table.dst_reach = table.dst_at[table.vectors - 1] + plan.kernels.vector


cdef Py_ssize_t _add_vector(
    const Kernels *kernels, ShuffleTable *table, const int16_t *sources, Py_ssize_t start,
) noexcept:
    """Describe the vector that begins at `start`; return where its right bytes end."""
    table.dst_at[table.vectors] = <int32_t> start
    if kernels.vector == 16:
        return start + _add_vector_of(16, table, sources + start)
    return start + _add_vector_of(32, table, sources + start)


cdef inline int _add_vector_of(int vector, ShuffleTable *table, const int16_t *sources) noexcept:
    """Describe a vector, whose width is a constant where this is inlined; return how many of its bytes are right."""
    cdef uint8_t *index = table.index + table.vectors * vector
    cdef int16_t low = sources[0], high = sources[0], lower, higher
    cdef int i, right = vector
    for i in range(vector):
        low = min(low, sources[i])
        high = max(high, sources[i])
    if high - low >= COPY_WINDOW_BYTES:
        low = high = sources[0]
        right = 1
        while True:
            lower = min(low, sources[right])
            higher = max(high, sources[right])
            if higher - lower >= COPY_WINDOW_BYTES:
                break
            low = lower
            high = higher
            right += 1
    table.src_at[table.vectors] = low
    table.src_reach = max(table.src_reach, low + COPY_WINDOW_BYTES)
    for i in range(vector):
        index[i] = (sources[i] - low) & (COPY_WINDOW_BYTES - 1)
    table.vectors += 1
    return right
