# From an alignment to a plan: pairs of a copied and a repeated axis, and a program for the innermost pairs.
#
# In: the shape, the shape of the data at its rank, the size of an item, the sizes of both buffers. Out: a Plan.

cdef enum:
    LEAST = 64      # bytes that a program describes at least; for an output of less than twice that it does not pay
    FEW = 16384     # bytes of output; below, a program costs more to describe than it saves over filling each run
    PAYS = 64       # bytes of output, at least, for each byte that a program describes
    VISIT = 16      # bytes that can be described in the time in which the walk visits one block
    BLOCK = 131072      # bytes; a longer block is not read back from a cache, but written again from the data
    MANY = 16       # vectors; with more, a pass over each group of them is too sparse for the prefetcher


cdef int make_plan(
    Plan *plan, tuple shape, tuple source, Py_ssize_t itemsize, const uint8_t *data, Py_ssize_t data_size,
    Py_ssize_t out_size,
) except -1:
    """Merge neighbouring axes that are both copied or both repeated, and describe the innermost pairs by a program."""
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
    plan.pairs[plan.last].data_bytes = plan.pairs[plan.last].out_bytes = item_run
    for i in range(plan.last, 0, -1):
        pair = &plan.pairs[i]
        plan.pairs[i - 1].data_bytes = pair.copied * pair.data_bytes
        plan.pairs[i - 1].out_bytes = pair.copied * pair.repeated * pair.out_bytes
    pair = &plan.pairs[0]
    if (
        shortest < 0 or pair.copied * pair.data_bytes != data_size
        or pair.copied * pair.repeated * pair.out_bytes != out_size
    ):      # arguments that run code of the user's when converted to integers can resize arrays
        raise ValueError("`data` and `out` expected arrays that keep their sizes during the call, got resized ones")
    plan.data_end = data + data_size
    plan.leaves = usable_leaves()
    _choose_strategy(plan)
    return 0


cdef Leaves usable_leaves() noexcept:
    """The leaves of this process's target."""
    return leaves_of[target_number]


cdef void _choose_strategy(Plan *plan) noexcept:
    """Choose how the innermost pairs are written; for a program, the outermost pair whose blocks are short enough."""
    cdef const Pair *pair = &plan.pairs[0]
    cdef const Pair *last = &plan.pairs[plan.last]
    cdef Py_ssize_t vector = plan.leaves.vector
    cdef Py_ssize_t once = max(pair.out_bytes, <Py_ssize_t> SPAN)
    cdef Py_ssize_t written = pair.copied * min(pair.repeated * pair.out_bytes, once)   # the rest is replicated from it
    cdef Py_ssize_t limit = max(<Py_ssize_t> LEAST, min(written // PAYS, <Py_ssize_t> SPAN))
    cdef Py_ssize_t run = last.repeated * last.out_bytes
    cdef Py_ssize_t blocks = pair.copied        # that the walk visits if this pair is not described
    plan.strategy = BLOCKS
    plan.shuffle_level = -1
    plan.longest_row = 0
    plan.read_back = BLOCK
    plan.span_blocks = plan.span_times = 1
    if last.out_bytes > PARTS * vector:
        return
    if last.out_bytes > SHUFFLED:
        plan.longest_row = PAGE // 2 if last.out_bytes % vector else L1     # if stores of an item do not overlap
        if last.out_bytes % vector == 0 and run >= vector * GROUP:
            plan.read_back = PAGE       # registers are as fast as reading more back
        return
    if run >= vector and vector % last.out_bytes == 0 and (written < FEW or _fills(last, run, vector)):
        if run >= vector * GROUP:
            plan.read_back = PAGE
        _fill_vectors(plan)
        return
    if written < 2 * LEAST or (plan.last == 0 and pair.copied == 1):    # a small output, or one block to replicate
        return
    plan.shuffle_level = 0
    run = pair.repeated * pair.out_bytes
    while pair.out_bytes > limit // 2:
        if run <= min(<Py_ssize_t> SPAN, VISIT * blocks):
            limit = run
            break
        if plan.shuffle_level == plan.last:
            plan.shuffle_level = -1
            return
        plan.shuffle_level += 1
        pair += 1
        blocks *= pair.copied
        run = pair.repeated * pair.out_bytes
    if run > limit:     # a part of a run, written by one loop
        plan.span_times = _span(pair.out_bytes, pair.repeated, min(limit, <Py_ssize_t> GROUP * vector), vector)
    else:
        plan.span_blocks = _span(run, pair.copied, limit, vector)
        plan.span_times = pair.repeated
    plan.strategy = SHUFFLE
    _compile(plan)
    if plan.span_times < pair.repeated:
        plan.program.data_step = 0      # the next span takes the same data


cdef inline bint _fills(const Pair *pair, Py_ssize_t run, Py_ssize_t vector) noexcept:
    """Whether filling runs is as fast as a program; short runs if they are many and overlap little."""
    if run >= vector * GROUP:
        return True
    return pair.copied * run >= SPAN and 4 * run >= (run + vector - 1) // vector * vector * 3


cdef void _fill_vectors(Plan *plan) noexcept:
    """Describe a vector that is filled with one item."""
    cdef Py_ssize_t b, size = plan.pairs[plan.last].out_bytes
    plan.strategy = FILL
    plan.shuffle_level = plan.last
    plan.program.data_reach = WINDOW
    for b in range(plan.leaves.vector):
        plan.program.index[b] = b & (size - 1)


cdef Py_ssize_t _span(Py_ssize_t size, Py_ssize_t times, Py_ssize_t limit, int vector) noexcept:
    """How many of `times` runs or blocks of `size` bytes make a span of few and nearly full vectors."""
    cdef Py_ssize_t n, vectors, cost, best = 1, least = 0
    for n in range(1, max(1, min(times, min(limit, <Py_ssize_t> MANY * vector) // size)) + 1):
        vectors = (n * size + vector - 1) // vector
        cost = (10000 if vectors <= GROUP else 12000) * vectors // (n * size)
        if n == 1 or cost <= least:
            least = cost
            best = n
    return best


cdef Py_ssize_t _describe(const Plan *plan, int16_t *sources) noexcept:
    """List which byte of the data each byte of a span copies; return their number."""
    cdef Py_ssize_t size = plan.pairs[plan.last].out_bytes
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
            shift = <int16_t> (i * pair.data_bytes)
            for _j in range(repeated):
                if done:
                    for b in range(size):
                        sources[done + b] = sources[b] + shift
                done += size
        size = done
    return size


cdef void _compile(Plan *plan) noexcept:
    """Describe a span of output as vectors."""
    cdef int16_t[SPAN + WIDEST] sources      # for each byte, its position in the data
    cdef Program *program = &plan.program
    cdef Py_ssize_t size = _describe(plan, sources)
    cdef Py_ssize_t b, last, before
    for b in range(WIDEST):
        sources[size + b] = sources[size - 1]
    program.data_step = plan.span_blocks * plan.pairs[plan.shuffle_level].data_bytes
    program.out_step = size
    program.vectors = 0
    program.data_reach = 0
    b = last = before = 0
    while b < size:
        before, last = last, b
        b += _add_vector(&plan.leaves, program, sources, b)
    if b > size and before <= size - plan.leaves.vector:  # move the last vector back to end with the span,
        program.vectors -= 1
        b = size - plan.leaves.vector
        b += _add_vector(&plan.leaves, program, sources, b)
        if b < size:    # if the data allows that
            program.vectors -= 1
            b = last + _add_vector(&plan.leaves, program, sources, last)
    program.exact = b == size
    program.out_reach = program.out_at[program.vectors - 1] + plan.leaves.vector


cdef Py_ssize_t _add_vector(const Leaves *leaves, Program *program, const int16_t *sources, Py_ssize_t start) noexcept:
    """Describe the vector that begins at `start`; return how many of its bytes are right."""
    program.out_at[program.vectors] = <int32_t> start
    if leaves.vector == 16:
        return _add_vector_of(16, program, sources + start)
    return _add_vector_of(32, program, sources + start)


cdef inline int _add_vector_of(int vector, Program *program, const int16_t *sources) noexcept:
    """Describe a vector, whose width is a constant where this is inlined."""
    cdef uint8_t *index = program.index + program.vectors * vector
    cdef int16_t low = sources[0], high = sources[0], lower, higher
    cdef int i, right = vector
    for i in range(vector):
        low = min(low, sources[i])
        high = max(high, sources[i])
    if high - low >= WINDOW:
        low = high = sources[0]
        right = 1
        while True:
            lower = min(low, sources[right])
            higher = max(high, sources[right])
            if higher - lower >= WINDOW:
                break
            low = lower
            high = higher
            right += 1
    program.data_at[program.vectors] = low
    program.data_reach = max(program.data_reach, low + WINDOW)
    for i in range(vector):
        index[i] = (sources[i] - low) & (WINDOW - 1)
    program.vectors += 1
    return right
