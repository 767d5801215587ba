# From an alignment to a plan: pairs of a copied and a repeated axis, and a shuffle table for the innermost pairs.
#
# In: the shape, the shape of the data at its rank, the size of an item, the sizes of both buffers. Out: a Plan.

cdef enum:
    COPY_TABLE_BYTES = 64       # that a table describes at least; for an output of less than twice that it does not pay
    COPY_FILLED_BYTES = 16384   # of output; below, a table costs more to describe than it saves over filling each run
    COPY_TABLE_WRITES = 64      # bytes of output, at least, for each byte that a table describes
    COPY_VISIT_BYTES = 16       # that can be described in the time in which the executor visits one block
    COPY_BLOCK_BYTES = 131072   # a longer block is not read back from a cache, but written again from the data
    COPY_TABLE_VECTORS = 16     # with more, a pass over each group of them is too sparse for the prefetcher


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
    plan.kernels = kernels_of[target_number]
    _choose_strategy(plan)
    return 0


cdef void cut_plan(Plan *part, const Plan *whole, int level, Py_ssize_t n) noexcept:
    """Plan `n` blocks of the pair at `level`."""
    cdef int i
    part.last = whole.last - level
    for i in range(part.last + 1):
        part.pairs[i] = whole.pairs[level + i]
    part.pairs[0].copied = n
    if part.pairs[0].repeated == 1:     # a run of items, which is one long item
        part.pairs[0] = Pair(1, 1, n * part.pairs[0].src_bytes, n * part.pairs[0].dst_bytes)
    part.kernels = whole.kernels
    _choose_strategy(part)


cdef uint8_t[COPY_SHUFFLED_BYTES][COPY_VECTOR_BYTES] INDICES    # for each size of an item, what fills a vector with it


cdef void _fill_indices() noexcept:
    cdef int size, i
    for size in range(1, COPY_SHUFFLED_BYTES + 1):
        for i in range(COPY_VECTOR_BYTES):
            INDICES[size - 1][i] = <uint8_t> (i % size)


_fill_indices()


# The strategies: the first row that fits writes the innermost pairs. README.md has the table in words.

cdef struct Facts:
    const Pair *last
    Py_ssize_t vector
    Py_ssize_t run              # bytes of an item of the last pair, repeated
    Py_ssize_t written          # bytes of output from which the rest is replicated

cdef struct StrategyRow:
    const char *name
    bint (*fits)(const Plan *plan, const Facts *facts) noexcept
    void (*use)(Plan *plan, const Facts *facts) noexcept

cdef StrategyRow[5] STRATEGIES = [      # in the order of their names in core.pxd
    StrategyRow(b"copy", _is_long, _use_nothing),
    StrategyRow(b"repeat rows", _is_no_shuffle, _use_rows),
    StrategyRow(b"fill", _fills, _use_fill),
    StrategyRow(b"double", _is_small_or_one, _use_nothing),
    StrategyRow(b"shuffle", _is_any, _use_shuffle),
]


cdef inline void _choose_strategy(Plan *plan) noexcept:
    """Choose how the innermost pairs are written."""
    cdef const Pair *first = &plan.pairs[0]
    cdef const Pair *last = &plan.pairs[plan.last]
    cdef Py_ssize_t once = min(first.repeated * first.dst_bytes, max(first.dst_bytes, <Py_ssize_t> COPY_SPAN_BYTES))
    cdef Facts facts
    facts.last = last       # one by one: a struct that is copied at once waits for its stores
    facts.vector = plan.kernels.vector
    facts.run = last.repeated * last.dst_bytes
    facts.written = first.copied * once
    plan.shuffle_level = -1
    plan.longest_row = 0
    plan.read_back = COPY_BLOCK_BYTES
    plan.span_blocks = 1
    plan.strategy = 0
    while not STRATEGIES[plan.strategy].fits(plan, &facts):
        plan.strategy += 1
    STRATEGIES[plan.strategy].use(plan, &facts)


cdef bint _is_long(const Plan *plan, const Facts *facts) noexcept:
    return facts.last.dst_bytes > COPY_ITEM_VECTORS * facts.vector


cdef bint _is_no_shuffle(const Plan *plan, const Facts *facts) noexcept:
    return facts.last.dst_bytes > COPY_SHUFFLED_BYTES


cdef bint _fills(const Plan *plan, const Facts *facts) noexcept:
    """Whether filling runs is as fast as a shuffle table; short runs if they are many and overlap little."""
    cdef Py_ssize_t run = facts.run, vector = facts.vector
    if run < vector or vector % facts.last.dst_bytes:
        return False
    if facts.written < COPY_FILLED_BYTES or run >= vector * COPY_GROUP_VECTORS:
        return True
    return facts.last.copied * run >= COPY_SPAN_BYTES and 4 * run >= (run + vector - 1) // vector * vector * 3


cdef bint _is_small_or_one(const Plan *plan, const Facts *facts) noexcept:
    return facts.written < 2 * COPY_TABLE_BYTES or (plan.last == 0 and facts.last.copied == 1)


cdef bint _is_any(const Plan *_plan, const Facts *_facts) noexcept:
    return True


cdef void _use_nothing(Plan *_plan, const Facts *_facts) noexcept:
    """No kernel: blocks are written one by one and replicated."""


cdef void _use_rows(Plan *plan, const Facts *facts) noexcept:
    """Items are kept in registers, if their run is short."""
    cdef bint whole = facts.last.dst_bytes % facts.vector == 0      # stores of an item do not overlap
    plan.longest_row = L1 if whole else PAGE // 2
    if whole and facts.run >= facts.vector * COPY_GROUP_VECTORS:
        plan.read_back = PAGE       # registers are as fast as reading more back


cdef void _use_fill(Plan *plan, const Facts *facts) noexcept:
    """Each item fills a vector."""
    if facts.run >= facts.vector * COPY_GROUP_VECTORS:
        plan.read_back = PAGE
    plan.shuffle_level = plan.last
    plan.table.src_reach = COPY_WINDOW_BYTES
    memcpy(plan.table.index, &INDICES[facts.last.dst_bytes - 1][0], COPY_VECTOR_BYTES)


cdef void _use_shuffle(Plan *plan, const Facts *facts) noexcept:
    """Describe the outermost pair whose blocks are short enough, or of which there would be few to visit."""
    cdef const Pair *pair = &plan.pairs[0]
    cdef Py_ssize_t most = min(facts.written // COPY_TABLE_WRITES, <Py_ssize_t> COPY_SPAN_BYTES)
    cdef Py_ssize_t limit = max(<Py_ssize_t> COPY_TABLE_BYTES, most)
    cdef Py_ssize_t run = pair.repeated * pair.dst_bytes
    cdef Py_ssize_t blocks = pair.copied        # that are visited if this pair is not described
    plan.shuffle_level = 0
    while pair.dst_bytes > limit // 2:      # which an item is not
        if run <= min(<Py_ssize_t> COPY_SPAN_BYTES, COPY_VISIT_BYTES * blocks):
            limit = run
            break
        plan.shuffle_level += 1
        pair += 1
        blocks *= pair.copied
        run = pair.repeated * pair.dst_bytes
    if run > limit:     # a part of a run, written by one loop
        plan.span_times = _span(
            pair.dst_bytes, pair.repeated, min(limit, <Py_ssize_t> COPY_GROUP_VECTORS * facts.vector), facts.vector,
        )
    else:
        plan.span_blocks = _span(run, pair.copied, limit, facts.vector)
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
    return {"strategy": STRATEGIES[plan.strategy].name.decode(), "pairs": pairs}


cdef Py_ssize_t _span(Py_ssize_t size, Py_ssize_t times, Py_ssize_t limit, int vector) noexcept:
    """How many of `times` runs or blocks of `size` bytes make a span of few and nearly full vectors."""
    cdef Py_ssize_t n, vectors, cost, best = 1, least = 0
    for n in range(1, max(1, min(times, min(limit, <Py_ssize_t> COPY_TABLE_VECTORS * vector) // size)) + 1):
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
        b += _add_vector(&plan.kernels, table, sources, b)
    if b > size and before <= size - plan.kernels.vector:  # move the last vector back to end with the span,
        table.vectors -= 1
        b = size - plan.kernels.vector
        b += _add_vector(&plan.kernels, table, sources, b)
        if b < size:    # if the data allows that
            table.vectors -= 1
            b = last + _add_vector(&plan.kernels, table, sources, last)
    table.exact = b == size
    table.dst_reach = table.dst_at[table.vectors - 1] + plan.kernels.vector


cdef Py_ssize_t _add_vector(
    const Kernels *kernels, ShuffleTable *table, const int16_t *sources, Py_ssize_t start,
) noexcept:
    """Describe the vector that begins at `start`; return how many of its bytes are right."""
    table.dst_at[table.vectors] = <int32_t> start
    if kernels.vector == 16:
        return _add_vector_of(16, table, sources + start)
    return _add_vector_of(32, table, sources + start)


cdef inline int _add_vector_of(int vector, ShuffleTable *table, const int16_t *sources) noexcept:
    """Describe a vector, whose width is a constant where this is inlined."""
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
