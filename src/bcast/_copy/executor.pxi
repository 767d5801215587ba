# From a plan to bytes: the loop nest around the leaves' calls.
#
# In: a Plan, data, a range of bytes of the output. Out: these bytes. `write_blocks` goes through the pairs from the
# outermost in: it writes each block once and then replicates it. The leaves in `simd` write the short blocks innermost.
# Outputs too large for any cache are assembled piece by piece in a scratch and streamed from there (`_stream_blocks`).
# `write_planned` writes any part of an output, wherever it begins and ends.
#
# Everything is written from front to back, so a store may run over bytes that are written next. It never passes
# `out_end`, where this thread's part ends, and no load passes the end of the data (`Plan.data_end`).


cdef void write_planned(
    const void *all_plan, Py_ssize_t begin, Py_ssize_t end, const uint8_t *data, uint8_t *out, uint8_t *scratch,
) noexcept nogil:
    """Write the bytes of an output from `begin` to `end`."""
    cdef const Plan *plan = <const Plan *> all_plan
    cdef const Pair *pair = &plan.pairs[0]
    if scratch == NULL and begin == 0 and end == pair.copied * pair.repeated * pair.out_bytes:
        write_blocks(plan, 0, pair.copied, data, out, out + end)    # without a division
    else:
        write_part(plan, 0, begin, end, data, out, out + end, scratch)


cdef void write_part(
    const Plan *plan, int level, Py_ssize_t begin, Py_ssize_t end, const uint8_t *data, uint8_t *out, uint8_t *out_end,
    uint8_t *scratch,
) noexcept nogil:
    """Write the bytes from `begin` to `end` of what the pair at `level` makes of `data`."""
    cdef const Pair *pair = &plan.pairs[level]
    cdef Py_ssize_t run = pair.repeated * pair.out_bytes
    cdef Py_ssize_t n, inside, size
    cdef const uint8_t *block
    while begin < end:
        block = data + begin // run * pair.data_bytes
        inside = begin % run
        if inside == 0 and end - begin >= run:      # whole runs
            n = (end - begin) // run
            size = n * run
            if scratch == NULL:
                write_blocks(plan, level, n, block, out + begin, out_end)
            else:
                _stream_blocks(plan, level, n, block, out + begin, scratch)
        else:
            size = min(run - inside, end - begin)
            inside %= pair.out_bytes
            if inside == 0 and size >= pair.out_bytes:      # whole blocks of a run
                n = size // pair.out_bytes
                size = n * pair.out_bytes
                if scratch == NULL:
                    _write_block(plan, level, n, block, out + begin, out_end)
                else:
                    _stream_block(plan, level, n, block, out + begin, scratch)
            else:       # a part of a block
                size = min(pair.out_bytes - inside, size)
                if level == plan.last:
                    memcpy(out + begin, block + inside, size)
                else:
                    write_part(plan, level + 1, inside, inside + size, block, out + begin - inside, out_end, scratch)
        begin += size


cdef void write_blocks(
    const Plan *plan, int level, Py_ssize_t n, const uint8_t *data, uint8_t *out, uint8_t *out_end,
) noexcept nogil:
    """Write `n` blocks of the pair at `level`, each as many times as it is repeated."""
    cdef const Pair *pair = &plan.pairs[level]
    cdef Py_ssize_t run = pair.repeated * pair.out_bytes
    cdef Py_ssize_t _i
    cdef Rows rows
    if level == plan.shuffle_level and (plan.strategy == FILL or plan.span_times == pair.repeated):
        if plan.strategy == FILL:
            _write_fills(plan, n, pair.repeated, data, out)
        else:
            _write_spans(plan, n, data, out, out_end)
    elif level == plan.last and run < plan.longest_row:
        rows = Rows(n, pair.repeated, pair.out_bytes)
        plan.leaves.repeat_rows(&rows, data, out)
    else:
        for _i in range(n):
            _write_block(plan, level, pair.repeated, data, out, out_end)
            data += pair.data_bytes
            out += run


cdef void _write_block(
    const Plan *plan, int level, Py_ssize_t times, const uint8_t *data, uint8_t *out, uint8_t *out_end,
) noexcept nogil:
    """Write a block of the pair at `level`, `times` times."""
    cdef const Pair *pair = &plan.pairs[level]
    cdef Rows rows
    if level == plan.shuffle_level:
        if plan.strategy == FILL:
            _write_fills(plan, 1, times, data, out)
        else:
            _write_run(plan, times * pair.out_bytes, data, out, out_end)
        return
    if level == plan.last:
        if times * pair.out_bytes < plan.longest_row:
            rows = Rows(1, times, pair.out_bytes)
            plan.leaves.repeat_rows(&rows, data, out)
            return
        if pair.out_bytes >= PAGE and times > 1:     # a long item is copied by pieces, each to all its places
            write_pieces(&plan.leaves, pair.out_bytes, times, data, out)
            return
        memcpy(out, data, pair.out_bytes)
    else:
        write_blocks(plan, level + 1, plan.pairs[level + 1].copied, data, out, out_end)
        while pair.out_bytes > plan.read_back and times > 1:
            out += pair.out_bytes
            times -= 1
            write_blocks(plan, level + 1, plan.pairs[level + 1].copied, data, out, out_end)
    tile_block(&plan.leaves, out, pair.out_bytes, times * pair.out_bytes)


cdef void write_pieces(
    const Leaves *leaves, Py_ssize_t size, Py_ssize_t times, const uint8_t *data, uint8_t *out,
) noexcept nogil:
    """Write a long item `times` times: each piece to all its places at once, while a cache holds it."""
    cdef Py_ssize_t begin = 0, part
    while begin < size:
        part = 2 * PAGE if size - begin >= 4 * PAGE else size - begin
        leaves.copy_to_many(times, size, part, data + begin, out + begin)
        begin += part


cdef void tile_block(const Leaves *leaves, uint8_t *out, Py_ssize_t block, Py_ssize_t size) noexcept nogil:
    """Replicate the finished first `block` bytes of `out` over `size` bytes; double it until it is long enough."""
    cdef Py_ssize_t done = block
    if size >= L1 and size >= 2 * block:
        _tile_long(leaves, out, block, size)
        return
    while done < size:
        memcpy(out + done, out, min(block, size - done))
        done += block
        if 2 * block <= L1 // 2:    # which a first-level cache still holds
            block = done


cdef void _tile_long(const Leaves *leaves, uint8_t *out, Py_ssize_t block, Py_ssize_t size) noexcept nogil:
    """`tile_block` by stores that cross no line; from registers if a few blocks make whole vectors that fit these."""
    cdef Py_ssize_t vector = leaves.vector
    cdef Py_ssize_t whole = block
    cdef Py_ssize_t begin, times
    cdef Rows rows
    while whole % vector and whole <= PARTS * vector:
        whole *= 2
    while 2 * block <= PAGE:    # stays in the first-level cache that all stores pass
        memcpy(out + block, out, block)
        block *= 2
    if whole <= PARTS * vector:
        begin = <Py_ssize_t> (-<uintptr_t> out & <uintptr_t> (vector - 1))
        times = (size - begin) // whole
        rows = Rows(1, times - 1, whole)
        leaves.repeat_rows(&rows, out + begin, out + begin + whole)
        memcpy(out + begin + times * whole, out + begin, size - begin - times * whole)
    else:
        leaves.tile(block, size, out)


cdef void _stream_blocks(
    const Plan *plan, int level, Py_ssize_t n, const uint8_t *data, uint8_t *out, uint8_t *scratch,
) noexcept nogil:
    """`write_blocks` past the caches: as many runs as fit the scratch are assembled there."""
    cdef const Pair *pair = &plan.pairs[level]
    cdef Py_ssize_t run = pair.repeated * pair.out_bytes
    cdef Py_ssize_t most = L1 // run
    cdef Py_ssize_t part
    if level == plan.shuffle_level and most > plan.span_blocks:
        most -= most % plan.span_blocks
    while n:
        part = min(n, max(most, 1))
        if most:
            write_blocks(plan, level, part, data, scratch, scratch + SCRATCH)
            bcast_stream(out, scratch, part * run)
        else:
            _stream_block(plan, level, pair.repeated, data, out, scratch)
        n -= part
        data += part * pair.data_bytes
        out += part * run


cdef void _stream_block(
    const Plan *plan, int level, Py_ssize_t times, const uint8_t *data, uint8_t *out, uint8_t *scratch,
) noexcept nogil:
    """`_write_block` past the caches: each assembled piece is streamed to all its places at once."""
    cdef const Pair *pair = &plan.pairs[level]
    cdef Py_ssize_t size = pair.out_bytes
    cdef Py_ssize_t most = min(L1 // size, times)
    cdef Py_ssize_t i, part, begin = 0
    cdef const uint8_t *piece
    if most:
        _write_block(plan, level, most, data, scratch, scratch + SCRATCH)
        while times:
            most = min(most, times)
            bcast_stream(out, scratch, most * size)
            out += most * size
            times -= most
    elif times == 1 and level < plan.last:
        _stream_blocks(plan, level + 1, plan.pairs[level + 1].copied, data, out, scratch)
    else:
        while begin < size:
            part = min(<Py_ssize_t> L1, size - begin)
            piece = data + begin
            if level < plan.last:
                write_part(
                    plan, level + 1, begin, begin + part, data, scratch - begin, scratch + SCRATCH, NULL
                )
                piece = scratch
            for i in range(times):
                bcast_stream(out + i * size + begin, piece, part)
            begin += part


cdef void _write_fills(
    const Plan *plan, Py_ssize_t n, Py_ssize_t times, const uint8_t *data, uint8_t *out,
) noexcept nogil:
    """Fill a run with each of `n` items."""
    cdef const Program *program = &plan.program
    cdef Py_ssize_t size = plan.pairs[plan.last].out_bytes
    cdef Py_ssize_t run = times * size
    cdef Py_ssize_t fast = min(n, _safe_count(size, program.data_reach, plan.data_end - data))
    cdef uint8_t[3 * WIDEST] near_data
    cdef Rows rows = Rows(fast, times, size)
    if run < plan.leaves.vector:      # where a thread's part begins or ends; n is 1
        memcpy(out, data, size)
        tile_block(&plan.leaves, out, size, run)
        return
    plan.leaves.fill(program, &rows, data, out)
    if fast < n:    # the last ones, which have less than a window and an item
        memcpy(near_data, data + fast * size, (n - fast) * size)
        rows.count = n - fast
        plan.leaves.fill(program, &rows, near_data, out + fast * run)


cdef void _write_spans(
    const Plan *plan, Py_ssize_t n, const uint8_t *data, uint8_t *out, uint8_t *out_end,
) noexcept nogil:
    """Write `n` runs by the program, which describes a few of them."""
    cdef const Pair *pair = &plan.pairs[plan.shuffle_level]
    cdef const Program *program = &plan.program
    cdef Py_ssize_t run = pair.repeated * pair.out_bytes
    cdef Py_ssize_t fast = min(
        n // plan.span_blocks,
        min(
            _safe_count(program.data_step, program.data_reach, plan.data_end - data),
            _safe_count(program.out_step, program.out_reach, out_end - out),
        )
    )
    plan.leaves.execute(program, program.vectors, fast, data, out)
    data += fast * program.data_step
    out += fast * program.out_step
    n -= fast * plan.span_blocks
    while n:
        fast = min(n, plan.span_blocks)
        _write_span(plan, fast * pair.data_bytes, fast * run, data, out, out_end)
        data += fast * pair.data_bytes
        out += fast * run
        n -= fast


cdef void _write_run(
    const Plan *plan, Py_ssize_t size, const uint8_t *data, uint8_t *out, uint8_t *out_end,
) noexcept nogil:
    """Write one run, of which the program describes a part."""
    cdef const Program *program = &plan.program
    cdef Py_ssize_t data_bytes = plan.pairs[plan.shuffle_level].data_bytes
    cdef Py_ssize_t step = program.out_step
    cdef Py_ssize_t executed = size         # the rest is replicated, which is faster if vectors are not full
    cdef Py_ssize_t whole, done
    if not program.exact or plan.data_end - data < program.data_reach:
        # The most recent stores may still be on their way to the cache and are slow to read back.
        executed = min(size, (PAGE + step - 1) // step * step)
    whole = executed // step
    if plan.data_end - data < program.data_reach:
        whole = 0
    whole = min(whole, _safe_count(step, program.out_reach, out_end - out))
    plan.leaves.execute(program, program.vectors, whole, data, out)
    done = whole * step
    if done < executed and done and program.exact:        # once more, moved back to end with the run
        plan.leaves.execute(program, program.vectors, 1, data, out + executed - step)
        done = executed
    while done < executed:
        whole = min(step, executed - done)
        _write_span(plan, data_bytes, whole, data, out + done, out_end)
        done += whole
    tile_block(&plan.leaves, out, executed, size)


cdef void _write_span(
    const Plan *plan, Py_ssize_t data_bytes, Py_ssize_t out_bytes, const uint8_t *data, uint8_t *out, uint8_t *out_end,
) noexcept nogil:
    """Write the first `out_bytes` of what the program describes; they take `data_bytes` of data."""
    cdef const Program *program = &plan.program
    cdef int vectors = program.vectors
    if out_bytes < program.out_step:
        vectors = <int> (vectors * out_bytes // program.out_step)
        while vectors < program.vectors and program.out_at[vectors] < out_bytes:
            vectors += 1
        while program.out_at[vectors - 1] >= out_bytes:
            vectors -= 1
    if plan.data_end - data >= program.data_reach and out_end - out >= program.out_reach:
        plan.leaves.execute(program, vectors, 1, data, out)
    else:
        _write_fenced(plan, vectors, data_bytes, out_bytes, data, out)


cdef void _write_fenced(
    const Plan *plan, int vectors, Py_ssize_t data_bytes, Py_ssize_t out_bytes, const uint8_t *data, uint8_t *out,
) noexcept nogil:
    """`_write_span` near the end of a buffer: on copies that have room behind them."""
    cdef uint8_t[SPAN + WIDEST] near_data
    cdef uint8_t[SPAN + WIDEST] near_out
    memcpy(near_data, data, data_bytes)
    plan.leaves.execute(&plan.program, vectors, 1, near_data, near_out)
    memcpy(out, near_out, out_bytes)


cdef inline Py_ssize_t _safe_count(Py_ssize_t step, Py_ssize_t reach, Py_ssize_t room) noexcept nogil:
    """How many steps fit in `room` if each touches `reach` bytes, `reach >= step`, from where it starts."""
    return 0 if room < reach else (room - reach) // step + 1
