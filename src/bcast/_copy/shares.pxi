# Shares of an output: how many threads write it, where each share begins and ends, what is streamed.
#
# In: what writes any range of an output's bytes, and its plan. Out: all bytes. Outputs that no cache holds are streamed
# but for as much as one can hold. Pages of mapped files are given back share by share.

cdef struct Work:       # what the shares of an output have in common
    Write write
    const void *plan
    const uint8_t *src
    uint8_t *dst
    Py_ssize_t size
    uint8_t *scratch    # COPY_SCRATCH_BYTES for each thread, where the output is streamed
    int shares
    Py_ssize_t read     # bytes of data in a mapped file, or 0; its pages and
    bint mapped         # those of an output in such a file are forgotten share by share


def set_limits(share=COPY_SHARE_BYTES, streamed=COPY_STREAMED_BYTES):
    """Set the least bytes that a thread writes and of what is streamed; other than these: for tests."""
    global share_bytes, streamed_bytes
    if share < 1 or streamed < 1:
        raise ValueError(f"`share`, `streamed` expected bytes, at least 1, got {share}, {streamed}")
    share_bytes, streamed_bytes = share, streamed


set_limits()


cdef void write_shares(
    Write write, const void *plan, const uint8_t *src, uint8_t *dst, Py_ssize_t size, int threads, Py_ssize_t read,
    bint mapped,
) noexcept nogil:
    """Fill an output on so many threads."""
    cdef Work work = Work(write, plan, src, dst, size, NULL, 1, read, mapped)
    if size // (1 if threads == 1 else 2) >= streamed_bytes and bcast_pages_resident(dst, size):
        work.scratch = <uint8_t *> malloc(threads * COPY_SCRATCH_BYTES)     # without memory, nothing is streamed
    if threads > 1 or mapped or read:
        work.shares = <int> max(
            max(threads, min(size // share_bytes, <Py_ssize_t> THREAD_SHARES * threads)), size // COPY_SHARE_MAX_BYTES
        )
    run_shares(_write_share, &work, work.shares, threads)
    free(work.scratch)


cdef void _write_share(void *all_work, int i, int worker) noexcept nogil:
    """Write one share. If outputs are streamed, every second share is not, up to as much as a cache can hold."""
    cdef const Work *work = <const Work *> all_work
    cdef Py_ssize_t begin = _page_cut(work, i), end = _page_cut(work, i + 1)
    cdef uint8_t *scratch = NULL
    cdef bint kept = i % 2 == 1 and i // 2 * (end - begin) < streamed_bytes // 4 * 3
    if work.scratch != NULL and not kept:   # some threads write to the cache while others wait for the memory
        scratch = work.scratch + worker * COPY_SCRATCH_BYTES
    work.write(work.plan, begin, end, work.src, work.dst, scratch)
    if scratch != NULL:
        bcast_store_fence()
    if work.mapped:
        forget_range(work.dst + begin, end - begin)
    if work.read:
        forget_range(work.src, work.read)


cdef inline Py_ssize_t _page_cut(const Work *work, int i) noexcept nogil:
    """Where share `i` begins: at a page boundary, so that no two threads touch the same page."""
    cdef Py_ssize_t at = cut(work.size, i, work.shares)
    return min(work.size, at + <Py_ssize_t> (-<uintptr_t> (work.dst + at) & (PAGE - 1))) if i else 0
