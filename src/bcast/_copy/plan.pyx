# cython: cdivision=True
"""Plans a copy: pairs of a copied and a repeated axis, and a shuffle table for the innermost pairs.

In: the shape, the data's shape padded to the same rank, the size of an item, both buffers. Out: a `Plan`, which run.pyx
executes. The kernels are linked here because the plan depends on their vectors.

The axes become a nest of two operands, the data and the output. Both are contiguous, so adjacent axes merge if the data
is copied along both, or repeated along both. The remaining axes alternate:

    (270, 1, 480, 1, 3) -> (270, 3, 480, 3, 3), of bytes

        shape              270     3   480     3     3
        stride of data    1440     0     3     0     1
        stride of output 12960  4320     9     3     1

A copied innermost axis makes long items: here of 3 bytes. The other axes make pairs: (270, 3), (480, 3).
"""

cimport cython
from libc.stdint cimport int16_t, int32_t, uint8_t

from bcast._nest.core cimport Nest, coalesce_axes, drop_unit_axes
from bcast._runtime.arrays cimport MAX_AXES
from bcast._runtime.core cimport L1, LINE, PAGE, target_number
from bcast._runtime.tuning cimport COPY_BYTES_A_DESCRIBED_ONE, COPY_BYTES_A_VISIT

cdef extern from "_copy/simd/kernels.h":
    const Kernels *bcast_copy_kernels_of

copy_kernels_of = bcast_copy_kernels_of


cdef int make_plan(Plan *plan, tuple shape, tuple source, Py_ssize_t itemsize, Buffers buffers) except -1:
    """Plan a copy between two buffers: along each axis, the data has the length of the output's `shape`, or 1."""
    cdef Nest nest
    cdef Extent described

    if len(shape) > MAX_AXES or len(source) != len(shape):
        raise ValueError(f"`alignment` expected at most {MAX_AXES} axes, on either side, got {shape} and {source}")
    _lay_out(&nest, shape, source, itemsize, &described)

    # Converting arguments to integers may run the user's code, which can resize arrays.
    if described.src_bytes != buffers.src_bytes or described.dst_bytes != buffers.dst_bytes:
        raise ValueError("`data` and `out` expected arrays that keep their sizes during the call, got resized ones")

    plan_nest(plan, &nest, itemsize)
    plan.src_end = buffers.src + buffers.src_bytes
    return 0


@cython.boundscheck(False)      # the ranks are compared first
@cython.wraparound(False)
cdef int _lay_out(Nest *nest, tuple shape, tuple source, Py_ssize_t itemsize, Extent *described) except -1:
    """Describe contiguous data and a contiguous output along the axes of an alignment; record the bytes of both."""
    cdef Extent within = Extent(src_bytes=itemsize, dst_bytes=itemsize)
    cdef Py_ssize_t length
    cdef bint is_shape = True
    cdef int axis

    nest.n = COPY_OPERANDS
    nest.rank = <int> len(shape)
    for axis in range(nest.rank - 1, -1, -1):
        length = shape[axis]
        is_shape = is_shape and length >= 0
        add_axis(nest, axis, length, <Py_ssize_t> source[axis] != 1, &within)

    described.src_bytes = within.src_bytes
    described.dst_bytes = within.dst_bytes if is_shape else -1      # impossible for a buffer
    return 0


cdef void plan_nest(Plan *plan, Nest *nest, Py_ssize_t itemsize) noexcept:
    """Plan the copy of contiguous data to a contiguous output along a nest of these two operands.

    The plan still lacks `src_end`, the end of the data.
    """
    drop_unit_axes(nest)
    coalesce_axes(nest)
    _pair_axes(plan, nest, itemsize)
    plan.kernels = copy_kernels_of[target_number]
    _choose_strategy(plan)


cdef void _pair_axes(Plan *plan, const Nest *nest, Py_ssize_t itemsize) noexcept:
    """Make pairs of copied and repeated axes, which alternate, and find the bytes of their blocks."""
    cdef Py_ssize_t item = itemsize
    cdef int rank = nest.rank, axis
    cdef Pair *pair = &plan.pairs[0]

    if rank and nest.stride[COPY_DATA][rank - 1]:    # copied: a run of items is one long item
        rank -= 1
        item *= nest.shape[rank]

    plan.last = 0
    pair.copied = pair.repeated = 1
    for axis in range(rank):
        if nest.stride[COPY_DATA][axis] == 0:
            pair.repeated = nest.shape[axis]
            continue
        if axis:        # it comes after a repeated one
            plan.last += 1
            pair += 1
            pair.repeated = 1
        pair.copied = nest.shape[axis]

    pair.src_bytes = pair.dst_bytes = item
    for axis in range(plan.last, 0, -1):
        pair = &plan.pairs[axis]
        plan.pairs[axis - 1].src_bytes = pair.copied * pair.src_bytes
        plan.pairs[axis - 1].dst_bytes = pair.copied * pair.repeated * pair.dst_bytes


cdef void _choose_strategy(Plan *plan) noexcept:
    """Choose how the innermost pairs are written: by the first matching row of README's table."""
    cdef const Pair *outer = &plan.pairs[0]
    cdef const Pair *inner = &plan.pairs[plan.last]
    cdef Py_ssize_t vector = plan.kernels.vector, item = inner.dst_bytes, run = inner.repeated * item
    cdef Py_ssize_t written = _written_anew(outer)
    cdef bint is_one_run = plan.last == 0 and inner.copied == 1

    plan.shuffle_level = -1
    plan.span_blocks = 1
    if item > COPY_ITEM_VECTORS * vector:
        plan.strategy = COPY
    elif item > COPY_WINDOW_BYTES:
        plan.strategy = ROWS
    elif run >= vector and vector % item == 0 and _fills_beat_a_table(inner, vector, written):
        plan.strategy = FILL
    elif written < 2 * LINE or is_one_run:
        plan.strategy = DOUBLE
    else:
        plan.strategy = SHUFFLE
        _plan_table(plan, written)

    plan.read_back = 4 * L1     # longer blocks are written again from the data, which is shorter
    if run >= COPY_GROUP_VECTORS * vector and _writes_from_registers(plan.strategy, item, vector):
        plan.read_back = PAGE   # writing from registers is as fast as reading back more


cdef inline bint _writes_from_registers(int strategy, Py_ssize_t item, Py_ssize_t vector) noexcept:
    """Whether an item's vectors are loaded once and written repeatedly."""
    return strategy == FILL or strategy == ROWS and item % vector == 0


cdef inline Py_ssize_t _written_anew(const Pair *outer) noexcept:
    """The number of output bytes written from the data; the other bytes are replicas of these."""
    cdef Py_ssize_t run = outer.repeated * outer.dst_bytes
    return outer.copied * min(run, max(outer.dst_bytes, <Py_ssize_t> COPY_SPAN_BYTES))


cdef inline bint _fills_beat_a_table(const Pair *inner, Py_ssize_t vector, Py_ssize_t written) noexcept:
    """Whether runs of a vector or more are written faster by filling each than by a shuffle table, which is made first.

    A table pays in long outputs, for a few short runs, or if their last stores overlap much.
    """
    cdef Py_ssize_t run = inner.repeated * inner.dst_bytes
    cdef Py_ssize_t stored = (run + vector - 1) // vector * vector
    cdef bint wastes_a_quarter = 4 * run < 3 * stored

    if written < L1 // 2 or run >= COPY_GROUP_VECTORS * vector:
        return True
    return inner.copied * run >= COPY_SPAN_BYTES and not wastes_a_quarter


cdef void _plan_table(Plan *plan, Py_ssize_t written) noexcept:
    """Choose whether a shuffle table describes a span of blocks or of a run, and create it."""
    cdef Py_ssize_t limit = _choose_level(plan, written), vector = plan.kernels.vector
    cdef const Pair *pair = &plan.pairs[plan.shuffle_level]
    cdef Py_ssize_t run = pair.repeated * pair.dst_bytes

    if run > limit:     # a part of a run, written by one loop
        plan.span_times = _best_count(pair.dst_bytes, pair.repeated, min(limit, COPY_GROUP_VECTORS * vector), vector)
    else:
        plan.span_blocks = _best_count(run, pair.copied, limit, vector)
        plan.span_times = pair.repeated

    _make_table(plan)
    if plan.span_times < pair.repeated:
        plan.table.src_step = 0     # the next span reads the same data


cdef Py_ssize_t _choose_level(Plan *plan, Py_ssize_t written) noexcept:
    """Let the table describe the outermost pair whose blocks are short enough, or few enough to visit.

    Return the number of bytes of output that it may describe.
    """
    cdef const Pair *pair = &plan.pairs[0]
    cdef Py_ssize_t run = pair.repeated * pair.dst_bytes
    cdef Py_ssize_t visits = pair.copied        # to blocks, if the table does not describe this pair
    cdef Py_ssize_t worth_describing = written // COPY_BYTES_A_DESCRIBED_ONE
    cdef Py_ssize_t limit = max(<Py_ssize_t> LINE, min(worth_describing, <Py_ssize_t> COPY_SPAN_BYTES))

    plan.shuffle_level = 0
    while pair.dst_bytes > limit // 2:      # an item is shorter
        if run <= min(<Py_ssize_t> COPY_SPAN_BYTES, COPY_BYTES_A_VISIT * visits):
            return run
        plan.shuffle_level += 1
        pair += 1
        visits *= pair.copied
        run = pair.repeated * pair.dst_bytes
    return limit


cdef Py_ssize_t _best_count(Py_ssize_t size, Py_ssize_t most, Py_ssize_t limit, Py_ssize_t vector) noexcept:
    """The number of runs or blocks of `size` bytes in a span of few and nearly full vectors, within `limit` bytes."""
    cdef Py_ssize_t n, vectors, cost, best = 1, least = 0

    limit = min(limit, 4 * COPY_GROUP_VECTORS * vector)     # in more passes, each is too sparse for the prefetcher
    for n in range(1, max(1, min(most, limit // size)) + 1):
        vectors = (n * size + vector - 1) // vector
        cost = (10000 if vectors <= COPY_GROUP_VECTORS else 12000) * vectors // (n * size)
        if n == 1 or cost <= least:
            least = cost
            best = n
    return best


def explain(shape, source, Py_ssize_t itemsize=1):
    """Return the strategy of contiguous data's copy along an alignment, as README.md names it, and the plan's pairs.

    `shape` is the output's; `source` has the same lengths, or 1 for axes that repeat.
    """
    cdef Plan plan
    cdef Buffers buffers
    shape, source = tuple(shape), tuple(source)
    src_bytes = dst_bytes = itemsize
    fits = len(shape) == len(source) and itemsize > 0
    for length, copied in zip(shape, source):
        fits = fits and length > 0 and copied in (1, length)
        src_bytes *= copied
        dst_bytes *= length
    if not fits:
        raise ValueError(f"`source` expected lengths of {shape} or 1, got {source} and items of {itemsize} bytes")

    buffers.src, buffers.dst = NULL, NULL
    buffers.src_bytes, buffers.dst_bytes = src_bytes, dst_bytes
    make_plan(&plan, shape, source, itemsize, buffers)
    pairs = []
    for i in range(plan.last + 1):
        pairs.append(plan.pairs[i])
    return {"strategy": ("copy", "repeat rows", "fill", "double", "shuffle")[plan.strategy], "pairs": pairs}


# The shuffle table


cdef void _make_table(Plan *plan) noexcept:
    """Describe a span of output as vectors."""
    cdef int16_t[COPY_SPAN_BYTES + COPY_VECTOR_BYTES] sources      # for each byte, its position in the data
    cdef ShuffleTable *table = &plan.table
    cdef Py_ssize_t size = _list_sources(plan, sources), vector = plan.kernels.vector
    cdef Py_ssize_t end, last = 0, before = 0, b

    for b in range(COPY_VECTOR_BYTES):
        sources[size + b] = sources[size - 1]
    table.src_step = plan.span_blocks * plan.pairs[plan.shuffle_level].src_bytes
    table.dst_step = size
    table.vectors = 0
    table.src_reach = 0

    end = 0
    while end < size:
        before, last = last, end
        end = _add_vector(plan, sources, end)
    if end > size and before <= size - vector:      # move the last vector back to end with the span,
        table.vectors -= 1
        end = _add_vector(plan, sources, size - vector)
        if end < size:      # if the data allows that
            table.vectors -= 1
            end = _add_vector(plan, sources, last)

    table.exact = end == size
    table.dst_reach = table.dst_at[table.vectors - 1] + vector


cdef Py_ssize_t _list_sources(const Plan *plan, int16_t *sources) noexcept:
    """List the source in the data of each byte of a span; return their number."""
    cdef Py_ssize_t size = plan.pairs[plan.last].dst_bytes, b
    cdef Pair pair
    cdef int level

    for b in range(size):
        sources[b] = <int16_t> b
    for level in range(plan.last, plan.shuffle_level - 1, -1):
        pair = plan.pairs[level]
        if level == plan.shuffle_level:
            pair.copied, pair.repeated = plan.span_blocks, plan.span_times
        size = _list_blocks(&pair, size, sources)
    return size


cdef Py_ssize_t _list_blocks(const Pair *pair, Py_ssize_t size, int16_t *sources) noexcept:
    """List the sources of a pair's blocks, of `size` bytes, from those of its first block; return their number."""
    cdef Py_ssize_t done = 0, block, _again, b
    cdef int16_t shift

    for block in range(pair.copied):
        shift = <int16_t> (block * pair.src_bytes)
        for _again in range(pair.repeated):
            if done:
                for b in range(size):
                    sources[done + b] = sources[b] + shift
            done += size
    return done


cdef Py_ssize_t _add_vector(Plan *plan, const int16_t *sources, Py_ssize_t start) noexcept:
    """Describe the vector that begins at `start`; return where its right bytes end."""
    plan.table.dst_at[plan.table.vectors] = <int32_t> start
    if plan.kernels.vector == 16:
        return start + _add_vector_of(16, &plan.table, sources + start)
    return start + _add_vector_of(32, &plan.table, sources + start)


cdef inline int _add_vector_of(int vector, ShuffleTable *table, const int16_t *sources) noexcept:
    """Describe a vector, whose width is a constant if this is inlined; return how many of its bytes are right."""
    cdef uint8_t *index = table.index + table.vectors * vector
    cdef int16_t low = sources[0], high = sources[0], begin
    cdef int right = vector, i

    for i in range(vector):
        low = min(low, sources[i])
        high = max(high, sources[i])
    if high - low >= COPY_WINDOW_BYTES:
        right = _bytes_of_window(sources, &begin)
        low = begin     # a copy: a variable with an address is in no register

    table.src_at[table.vectors] = low
    table.src_reach = max(table.src_reach, low + COPY_WINDOW_BYTES)
    for i in range(vector):
        index[i] = (sources[i] - low) & (COPY_WINDOW_BYTES - 1)
    table.vectors += 1
    return right


cdef inline int _bytes_of_window(const int16_t *sources, int16_t *begin) noexcept:
    """The number of leading bytes whose sources fit one window of the data; find the start of the window."""
    cdef int16_t low = sources[0], high = sources[0], lower, higher
    cdef int n = 1

    while True:
        lower = min(low, sources[n])
        higher = max(high, sources[n])
        if higher - lower >= COPY_WINDOW_BYTES:
            break
        low = lower
        high = higher
        n += 1
    begin[0] = low
    return n
