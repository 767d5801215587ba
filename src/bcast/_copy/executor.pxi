# From a plan to bytes: the loop nest around the kernels' calls.
#
# In: a Plan, data, a range of bytes of the output. Out: these bytes. `write_blocks` goes through the pairs from the
# outermost in: it writes each block once and then replicates it. The kernels in `simd` write short blocks innermost.
# Outputs too large for any cache are assembled piece by piece in a scratch and streamed from there (`_stream_blocks`).
# `write_planned` writes any part of an output, wherever it begins and ends.
#
# Everything is written from front to back, so a store may run over bytes that are written next. It never passes
# `dst_end`, where this thread's part ends, and no load passes the end of the data (`Plan.src_end`): the last spans are
# written on copies that have room behind them.


cdef void write_planned(
    const void *all_plan, Py_ssize_t begin, Py_ssize_t end, const uint8_t *src, uint8_t *dst, uint8_t *scratch,
) noexcept nogil:
    """Write the bytes of an output from `begin` to `end`."""
    cdef const Plan *plan = <const Plan *> all_plan
    cdef const Pair *pair = &plan.pairs[0]
    if scratch == NULL and begin == 0 and end == pair.copied * pair.repeated * pair.dst_bytes:
        write_blocks(plan, 0, pair.copied, pair.repeated, src, dst, dst + end)    # without a division
    else:
        write_part(plan, 0, begin, end, src, dst, dst + end, scratch)


cdef void write_part(
    const Plan *plan, int level, Py_ssize_t begin, Py_ssize_t end, const uint8_t *src, uint8_t *dst, uint8_t *dst_end,
    uint8_t *scratch,
) noexcept nogil:
    """Write the bytes from `begin` to `end` of what the pair at `level` makes of `data`."""
    cdef const Pair *pair = &plan.pairs[level]
    cdef Py_ssize_t run = pair.repeated * pair.dst_bytes
    cdef Py_ssize_t n, times, inside, size
    cdef const uint8_t *block
    while begin < end:
        block = src + begin // run * pair.src_bytes
        inside = begin % run
        n = 1
        times = min(run - inside, end - begin) // pair.dst_bytes
        inside %= pair.dst_bytes
        if times == pair.repeated:      # whole runs
            n = (end - begin) // run
        size = n * times * pair.dst_bytes
        if inside or size == 0:         # a part of a block
            size = min(pair.dst_bytes - inside, end - begin)
            if level == plan.last:
                memcpy(dst + begin, block + inside, size)
            else:
                write_part(plan, level + 1, inside, inside + size, block, dst + begin - inside, dst_end, scratch)
        elif scratch == NULL:
            write_blocks(plan, level, n, times, block, dst + begin, dst_end)
        else:
            _stream_blocks(plan, level, n, times, block, dst + begin, scratch)
        begin += size


cdef void write_blocks(
    const Plan *plan, int level, Py_ssize_t n, Py_ssize_t times, const uint8_t *src, uint8_t *dst, uint8_t *dst_end,
) noexcept nogil:
    """Write `n` blocks of the pair at `level`, each `times` times."""
    cdef const Pair *pair = &plan.pairs[level]
    cdef Py_ssize_t run = times * pair.dst_bytes, anew = times if pair.dst_bytes > plan.read_back else 1, _i, j
    if level == plan.shuffle_level and times == pair.repeated == plan.span_times:
        _write_spans(plan, n * run, src, dst, dst_end)
    elif level == plan.last and plan.strategy == FILL and run >= plan.kernels.vector:
        _write_fills(plan, n, times, src, dst)
    elif level == plan.last != plan.shuffle_level:
        repeat_items(&plan.kernels, pair.dst_bytes, n, times, src, dst)
    else:
        for _i in range(n):
            if level == plan.shuffle_level:
                _write_run(plan, run, src, dst, dst_end)
            else:
                for j in range(anew):
                    write_blocks(
                        plan, level + 1, pair[1].copied, pair[1].repeated, src, dst + j * pair.dst_bytes, dst_end
                    )
                if anew == 1:
                    tile_block(&plan.kernels, dst, pair.dst_bytes, run)
            src += pair.src_bytes
            dst += run


cdef void repeat_items(
    const Kernels *kernels, Py_ssize_t size, Py_ssize_t n, Py_ssize_t times, const uint8_t *src, uint8_t *dst,
) noexcept nogil:
    """Write each of n items `times` times, and no byte behind them."""
    cdef Py_ssize_t begin, part, _i
    cdef Rows rows
    if times == 1:
        memcpy(dst, src, n * size)
    elif COPY_WINDOW_BYTES < size <= COPY_ITEM_VECTORS * kernels.vector and (
        times * size < (PAGE // 2 if size & (kernels.vector - 1) else L1)       # whole vectors do not overlap
    ):
        rows = Rows(n, times, size)
        kernels.repeat_rows(&rows, NULL, src, dst)
    else:
        for _i in range(n):
            if size < PAGE:
                memcpy(dst, src, size)
                tile_block(kernels, dst, size, times * size)
            else:       # by pieces, each to all its places at once, while a cache holds it
                begin = 0
                while begin < size:
                    part = 2 * PAGE if size - begin >= 4 * PAGE else size - begin
                    kernels.copy_to_many(times, size, part, src + begin, dst + begin)
                    begin += part
            src += size
            dst += times * size


cdef void tile_block(const Kernels *kernels, uint8_t *dst, Py_ssize_t block, Py_ssize_t size) noexcept nogil:
    """Replicate the finished first `block` bytes of an output over its `size`: a short one by doubling, a long one by
    stores that cross no line.
    """
    cdef Py_ssize_t vector = kernels.vector, whole = block, begin, times
    cdef Py_ssize_t longest = min(size, <Py_ssize_t> (L1 // 2)) if size < L1 else PAGE
    cdef Rows rows
    while 2 * block <= longest:     # stays in the first-level cache that all stores pass
        memcpy(dst + block, dst, block)
        block *= 2
    if size < L1 or size < 2 * block:
        begin = block
        while begin < size:
            memcpy(dst + begin, dst, min(block, size - begin))
            begin += block
        return
    while whole % vector and whole <= COPY_ITEM_VECTORS * vector:
        whole *= 2
    if whole <= COPY_ITEM_VECTORS * vector:     # a few blocks make whole vectors that fit the registers
        begin = <Py_ssize_t> (-<uintptr_t> dst & <uintptr_t> (vector - 1))
        times = (size - begin) // whole
        rows = Rows(1, times - 1, whole)
        kernels.repeat_rows(&rows, NULL, dst + begin, dst + begin + whole)
        memcpy(dst + begin + times * whole, dst + begin, size - begin - times * whole)
    else:
        kernels.tile(block, size, dst)


cdef void _stream_blocks(
    const Plan *plan, int level, Py_ssize_t n, Py_ssize_t times, const uint8_t *src, uint8_t *dst, uint8_t *scratch,
) noexcept nogil:
    """`write_blocks` past the caches: what the scratch has room for is assembled, then streamed to all its places."""
    cdef const Pair *pair = &plan.pairs[level]
    cdef Py_ssize_t size = pair.dst_bytes, run = times * size, done, part, piece, i
    cdef Py_ssize_t runs = L1 // run, blocks = L1 // size       # that the scratch has room for
    cdef uint8_t *scratch_end = scratch + COPY_SCRATCH_BYTES
    cdef const uint8_t *begin
    if level == plan.shuffle_level and runs > plan.span_blocks:
        runs -= runs % plan.span_blocks
    while n:
        part = min(n, max(runs, 1))
        done = 0
        if blocks:
            piece = part * min(times, blocks) * size
            write_blocks(plan, level, part, min(times, blocks), src, scratch, scratch_end)
            while done < part * run:
                bcast_stream(dst + done, scratch, min(piece, part * run - done))
                done += piece
        elif times == 1 and level < plan.last:
            _stream_blocks(plan, level + 1, pair[1].copied, pair[1].repeated, src, dst, scratch)
        else:
            while done < size:
                piece = min(<Py_ssize_t> L1, size - done)
                begin = src + done
                if level < plan.last:
                    write_part(plan, level + 1, done, done + piece, src, scratch - done, scratch_end, NULL)
                    begin = scratch
                for i in range(times):
                    bcast_stream(dst + i * size + done, begin, piece)
                done += piece
        n -= part
        src += part * pair.src_bytes
        dst += part * run


cdef void _write_fills(
    const Plan *plan, Py_ssize_t n, Py_ssize_t times, const uint8_t *src, uint8_t *dst,
) noexcept nogil:
    """Fill a run with each of `n` items."""
    cdef Py_ssize_t size = plan.pairs[plan.last].dst_bytes
    cdef Py_ssize_t fast = min(n, _safe_count(size, COPY_WINDOW_BYTES, plan.src_end - src))
    cdef uint8_t[3 * COPY_VECTOR_BYTES] near_src
    cdef Rows rows = Rows(fast, times, size)
    plan.kernels.fill(&rows, src, dst)
    if fast < n:    # the last ones, which have less than a window and an item
        memcpy(near_src, src + fast * size, (n - fast) * size)
        rows.count = n - fast
        plan.kernels.fill(&rows, near_src, dst + fast * times * size)


cdef void _write_run(
    const Plan *plan, Py_ssize_t size, const uint8_t *src, uint8_t *dst, uint8_t *dst_end,
) noexcept nogil:
    """Write one run, of which the shuffle table describes a part."""
    cdef Py_ssize_t step = plan.table.dst_step
    cdef Py_ssize_t executed = size         # the rest is replicated, which is faster if vectors are not full
    if not plan.table.exact or plan.src_end - src < plan.table.src_reach:
        # The most recent stores may still be on their way to the cache and are slow to read back.
        executed = min(size, (PAGE + step - 1) // step * step)
    _write_spans(plan, executed, src, dst, dst_end)
    tile_block(&plan.kernels, dst, executed, size)


cdef void _write_spans(
    const Plan *plan, Py_ssize_t size, const uint8_t *src, uint8_t *dst, uint8_t *dst_end,
) noexcept nogil:
    """Write `size` bytes by the shuffle table; spans near the end of a buffer on copies that have room behind them."""
    cdef const ShuffleTable *table = &plan.table
    cdef uint8_t[COPY_SPAN_BYTES + COPY_VECTOR_BYTES] near_src
    cdef uint8_t[COPY_SPAN_BYTES + COPY_VECTOR_BYTES] near_dst
    cdef Py_ssize_t fast = min(
        size // table.dst_step, _safe_count(table.src_step, table.src_reach, plan.src_end - src),
        _safe_count(table.dst_step, table.dst_reach, dst_end - dst),
    )
    cdef Py_ssize_t part
    cdef int vectors
    plan.kernels.execute(table, table.vectors, fast, src, dst)
    src += fast * table.src_step
    dst += fast * table.dst_step
    size -= fast * table.dst_step
    while size:
        part = min(size, table.dst_step)
        vectors = table.vectors
        while table.dst_at[vectors - 1] >= part:
            vectors -= 1
        if plan.src_end - src >= table.src_reach and dst_end - dst >= table.dst_reach:
            plan.kernels.execute(table, vectors, 1, src, dst)
        else:
            memcpy(near_src, src, min(table.src_reach, plan.src_end - src))
            plan.kernels.execute(table, vectors, 1, near_src, near_dst)
            memcpy(dst, near_dst, part)
        src += table.src_step
        dst += part
        size -= part


cdef inline Py_ssize_t _safe_count(Py_ssize_t step, Py_ssize_t reach, Py_ssize_t room) noexcept nogil:
    """How many steps fit in `room` if each touches `reach` bytes, `reach >= step`, from where it starts."""
    if room < reach:
        return 0
    return (room - reach) // step + 1 if step else PY_SSIZE_T_MAX
