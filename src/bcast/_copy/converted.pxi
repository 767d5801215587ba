# Data of another dtype: pieces of it are converted in a room, and written from there to all their places.
#
# In: an array, an output of the other dtype, a shape or counts, the bytes of a piece. Out: the output, and flags of the
# CPU. NumPy's iterator converts. It takes its memory at first, and no memory while it converts: what may fail comes
# before the first write.

cdef extern from "numpy/arrayobject.h":
    ctypedef int (*Next "NpyIter_IterNextFunc *")(cnp.NpyIter *chunks) noexcept nogil
    # In NumPy's own declarations, one raises no error where memory fails, and the other has a wrong type.
    cnp.NpyIter *NpyIter_AdvancedNew(
        int n, cnp.PyArrayObject **arrays, cnp.npy_uint32 flags, cnp.NPY_ORDER order, cnp.NPY_CASTING casting,
        cnp.npy_uint32 *own_flags, cnp.PyArray_Descr **dtypes, int ndim, int **axes, const cnp.npy_intp *shape,
        cnp.npy_intp size,
    )
    Next NpyIter_GetIterNext(cnp.NpyIter *chunks, char **message) except NULL

cdef struct Pieces:
    Py_ssize_t itemsize     # of the converted items
    char *mapped_src        # where data in a mapped file begins, whose pages are to be forgotten;
    Py_ssize_t mapped_size  # and bytes of it, or 0
    uint8_t *room           # for a piece
    Py_ssize_t items        # of the data: what a plan takes for items
    Py_ssize_t size         # bytes of such an item, converted
    Py_ssize_t step         # items of a piece
    Py_ssize_t group        # items whose multiples no piece crosses
    bint mapped             # whether pages of the output are to be forgotten
    # Along an alignment; the items are blocks of the pair at `level`, or parts of one that is longer than a piece.
    int level               # or -1: by counts
    Plan plan
    Py_ssize_t run          # bytes that an item makes of each copy
    Py_ssize_t copies       # that outer pairs make of a piece
    Py_ssize_t begin        # of the piece at hand, in bytes of what the pair at `level` makes
    Py_ssize_t copy_bytes   # of one copy of the piece
    uint8_t *scratch
    int threads
    # By counts.
    CountedPlan counted


cdef int drop_converted(cnp.ndarray src, cnp.dtype dtype) except -1:
    """Convert data for nothing but the flags."""
    cdef Pieces pieces
    pieces.items = pieces.group = cnp.PyArray_SIZE(src)
    pieces.size = dtype.itemsize
    pieces.step = 1 << 18       # between two looks at what a mapped file may give back
    return _convert(&pieces, src, dtype, None)


cdef int write_converted(cnp.ndarray src, tuple shape, cnp.ndarray dst, Py_ssize_t piece) except -1:
    """Write data, converted, along an alignment."""
    cdef Pieces pieces
    cdef Plan *plan = &pieces.plan
    cdef Pair *pair = &plan.pairs[0]
    cdef Py_ssize_t itemsize = cnp.PyArray_ITEMSIZE(dst), size = cnp.PyArray_SIZE(src) * itemsize
    make_plan(plan, shape, shape_of(src), itemsize, NULL, size, cnp.PyArray_NBYTES(dst))
    pieces.level = 0
    pieces.copies = 1
    while pieces.level <= plan.last and pair.src_bytes > max(piece, itemsize):
        pieces.copies *= pair.repeated
        pieces.level += 1
        pair += 1
    if pieces.level > plan.last:        # not even a run of items is a piece
        plan.last = pieces.level
        pair[0] = Pair(1, 1, pair[-1].src_bytes, pair[-1].src_bytes)
        pieces.size = pieces.run = itemsize
        pieces.group = pair.src_bytes // itemsize
    else:
        pieces.size = pair.src_bytes
        pieces.run = pair.repeated * pair.dst_bytes
        pieces.group = pair.copied
    pieces.items = size // pieces.size
    pieces.step = min(pieces.group, max(<Py_ssize_t> 1, piece // pieces.size))
    size = pieces.copies * pieces.step * pieces.run
    pieces.threads = threads_for(size)
    pieces.scratch = new_scratch(
        <const uint8_t *> cnp.PyArray_DATA(dst), cnp.PyArray_NBYTES(dst), size, pieces.threads,
    )
    try:
        return _convert(&pieces, src, <cnp.dtype> cnp.PyArray_DESCR(dst), dst)
    finally:
        free(pieces.scratch)


cdef int write_converted_counted(
    cnp.ndarray src, Counts counts, int axis, cnp.ndarray dst, Py_ssize_t piece,
) except -1:
    """Write items of data, converted, each as often as its count says."""
    cdef Pieces pieces
    plan_counted(&pieces.counted, src, counts, axis, dst, NULL)
    pieces.level = -1
    pieces.size = pieces.counted.size
    pieces.items = cnp.PyArray_SIZE(src) * cnp.PyArray_ITEMSIZE(dst) // pieces.size
    pieces.step = max(<Py_ssize_t> 1, piece // pieces.size)
    pieces.group = counts.list.size
    if pieces.step >= pieces.group:
        pieces.step -= pieces.step % pieces.group
        pieces.group = pieces.step
    elif pieces.step < CHUNK:   # of counts that change, only a whole chunk keeps its sum
        counts.keep_from(dst, True)
        if pieces.counted.counts.kept == NULL:
            pieces.counted.counts.kept = counts.list.kept
    else:
        pieces.step -= pieces.step % CHUNK
    return _convert(&pieces, src, <cnp.dtype> cnp.PyArray_DESCR(dst), dst)


cdef int _convert(Pieces *pieces, cnp.ndarray src, cnp.dtype dtype, cnp.ndarray dst) except -1:
    """Convert all pieces, and write each of them unless there is no output. The caller keeps both arrays alive."""
    cdef cnp.PyArrayObject *array = <cnp.PyArrayObject *> src
    cdef cnp.PyArray_Descr *wanted = <cnp.PyArray_Descr *> dtype
    cdef cnp.npy_uint32 flags = cnp.NPY_ITER_READONLY | cnp.NPY_ITER_CONTIG
    cdef cnp.NPY_ORDER order = cnp.NPY_KEEPORDER if dst is None else cnp.NPY_CORDER
    cdef uint8_t *begin = NULL if dst is None else <uint8_t *> cnp.PyArray_DATA(dst)
    cdef cnp.NpyIter *chunks = NULL
    cdef void *memory
    cdef Next next
    pieces.itemsize = dtype.itemsize
    pieces.mapped = dst is not None and is_mapped(dst)
    pieces.mapped_size = reach(src, &pieces.mapped_src) if is_mapped(src) else 0
    cnp.PyUFunc_clearfperr()
    memory = malloc((0 if dst is None else min(pieces.step, pieces.items) * pieces.size) + LINE)
    try:
        if memory != NULL:
            pieces.room = <uint8_t *> (<uintptr_t> memory + LINE - 1 & -<uintptr_t> LINE)
            chunks = NpyIter_AdvancedNew(
                1, &array, cnp.NPY_ITER_BUFFERED | cnp.NPY_ITER_EXTERNAL_LOOP, order, cnp.NPY_UNSAFE_CASTING, &flags,
                &wanted, -1, NULL, NULL, 4096,
            )
        if chunks == NULL:
            raise MemoryError
        next = NpyIter_GetIterNext(chunks, NULL)    # what has converted the first chunk takes no more memory
        if cnp.NpyIter_IterationNeedsAPI(chunks):
            _convert_pieces(pieces, chunks, next, begin)
        else:
            with nogil:
                _convert_pieces(pieces, chunks, next, begin)
    finally:
        free(memory)
        if chunks != NULL:
            cnp.NpyIter_Deallocate(chunks)
    return 0


cdef int _convert_pieces(Pieces *pieces, cnp.NpyIter *chunks, Next next, uint8_t *dst) except? -1 nogil:
    """Convert the data piece by piece, and write each piece to all its places."""
    cdef char **chunk = cnp.NpyIter_GetDataPtrArray(chunks)                     # where the current one is,
    cdef cnp.npy_intp *length = cnp.NpyIter_GetInnerLoopSizePtr(chunks)         # how many items it has,
    cdef Py_ssize_t item = 0, taken = 0, n, filled, part                        # and how many bytes were taken
    while item < pieces.items:
        n = min(pieces.items - item, min(pieces.step, pieces.group - item % pieces.group))
        filled = 0
        while filled < n * pieces.size:
            if taken == length[0] * pieces.itemsize:
                if not next(chunks):
                    return -1
                taken = 0
            part = min(n * pieces.size - filled, length[0] * pieces.itemsize - taken)
            if dst != NULL:
                memcpy(pieces.room + filled, chunk[0] + taken, part)
            taken += part
            filled += part
        if pieces.mapped_size:
            forget_range(pieces.mapped_src, pieces.mapped_size)
        if dst != NULL and pieces.level < 0:
            _write_piece_counted(pieces, item, n, dst)
        elif dst != NULL:
            _write_piece(pieces, item, n, dst)
        item += n
    return 0


cdef void _write_piece(Pieces *pieces, Py_ssize_t item, Py_ssize_t n, uint8_t *dst) noexcept nogil:
    """Write a piece along the alignment."""
    cdef Py_ssize_t outer = item // pieces.group
    cdef const Pair *pair
    cdef int level
    item %= pieces.group
    pieces.begin = item * pieces.run
    pieces.copy_bytes = n * pieces.run
    pieces.plan.src_end = pieces.room + n * pieces.size
    for level in range(pieces.level - 1, -1, -1):
        pair = &pieces.plan.pairs[level]
        dst += outer % pair.copied * pair.repeated * pair.dst_bytes
        outer //= pair.copied
    write_shares(
        _write_copies, pieces, pieces.room - item * pieces.size, dst + pieces.begin, pieces.copies * pieces.copy_bytes,
        pieces.scratch, pieces.threads, 0, False,
    )


cdef void _write_copies(
    const void *all_pieces, Py_ssize_t begin, Py_ssize_t end, const uint8_t *src, uint8_t *dst, uint8_t *scratch,
) noexcept nogil:
    """Write a range of all copies of a piece: of 16 KiB of it, which a cache holds, one after the other."""
    cdef const Pieces *pieces = <const Pieces *> all_pieces
    cdef const Pair *pair
    cdef uint8_t *copy
    cdef Py_ssize_t at, nth, stop, block, size
    cdef int level
    while begin < end:
        block = begin // (L1 // 2 * pieces.copies) * (L1 // 2)
        size = min(<Py_ssize_t> (L1 // 2), pieces.copy_bytes - block)
        nth = (begin - block * pieces.copies) // size
        at = block + (begin - block * pieces.copies) % size
        stop = min(block + size, at + end - begin)
        begin += stop - at
        at += pieces.begin
        stop += pieces.begin
        copy = dst - pieces.begin
        for level in range(pieces.level - 1, -1, -1):
            pair = &pieces.plan.pairs[level]
            copy += nth % pair.repeated * pair.dst_bytes
            nth //= pair.repeated
        write_part(&pieces.plan, pieces.level, at, stop, src, copy, copy + stop, scratch)
        if pieces.mapped:
            forget_range(copy + at, stop - at)


cdef void _write_piece_counted(Pieces *pieces, Py_ssize_t item, Py_ssize_t n, uint8_t *dst) noexcept nogil:
    """Write a piece by its counts."""
    cdef CountedPlan *plan = &pieces.counted
    cdef Py_ssize_t size = units_before(plan, item + n) * plan.size - plan.begin
    plan.src_end = pieces.room + n * plan.size
    write_shares(
        write_counted, plan, pieces.room - item * plan.size, dst + plan.begin, size, NULL, threads_for(size), 0,
        pieces.mapped,
    )
    plan.begin += size
