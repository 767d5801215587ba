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
    cnp.NpyIter *chunks     # of the data, converted
    Next next
    char **chunk            # where the current one is
    cnp.npy_intp *length    # how many items it has
    Py_ssize_t taken        # how many of them were taken
    Py_ssize_t itemsize
    char *mapped_src        # where data in a mapped file begins, whose pages are to be forgotten; or NULL
    Py_ssize_t mapped_size  # bytes of it
    uint8_t *room           # or NULL: what is converted is dropped
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
    return _convert(&pieces, src, dtype, cnp.NPY_KEEPORDER, NULL)


cdef int write_converted(cnp.ndarray src, tuple shape, cnp.ndarray dst, Py_ssize_t piece) except -1:
    """Write data, converted, along an alignment."""
    cdef Pieces pieces
    cdef Plan *plan = &pieces.plan
    cdef Pair *pair = &plan.pairs[0]
    cdef Py_ssize_t itemsize = cnp.PyArray_ITEMSIZE(dst), size
    cdef uint8_t *begin = <uint8_t *> cnp.PyArray_DATA(dst)
    make_plan(
        plan, shape, shape_of(src), itemsize, NULL, cnp.PyArray_SIZE(src) * itemsize, cnp.PyArray_NBYTES(dst),
    )
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
    pieces.items = cnp.PyArray_SIZE(src) * itemsize // pieces.size
    pieces.step = min(pieces.group, max(<Py_ssize_t> 1, piece // pieces.size))
    pieces.mapped = is_mapped(dst)
    size = pieces.copies * pieces.step * pieces.run
    pieces.threads = threads_for(size)
    pieces.scratch = new_scratch(begin, cnp.PyArray_NBYTES(dst), size, pieces.threads)
    try:
        return _convert(&pieces, src, <cnp.dtype> cnp.PyArray_DESCR(dst), cnp.NPY_CORDER, begin)
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
    pieces.mapped = is_mapped(dst)
    return _convert(
        &pieces, src, <cnp.dtype> cnp.PyArray_DESCR(dst), cnp.NPY_CORDER, <uint8_t *> cnp.PyArray_DATA(dst),
    )


cdef int _convert(
    Pieces *pieces, cnp.ndarray src, cnp.dtype dtype, cnp.NPY_ORDER order, uint8_t *dst,
) except -1:
    """Convert all pieces, and write each of them unless there is no output. The caller keeps both arrays alive."""
    cdef cnp.PyArrayObject *array = <cnp.PyArrayObject *> src
    cdef cnp.PyArray_Descr *wanted = <cnp.PyArray_Descr *> dtype
    cdef cnp.npy_uint32 flags = cnp.NPY_ITER_READONLY | cnp.NPY_ITER_CONTIG
    cdef void *memory = NULL
    pieces.room = NULL
    pieces.chunks = NULL
    pieces.mapped_src = NULL
    pieces.taken = 0
    pieces.itemsize = dtype.itemsize
    if is_mapped(src):
        pieces.mapped_size = reach(src, &pieces.mapped_src)
    cnp.PyUFunc_clearfperr()
    if dst != NULL:
        memory = malloc(min(pieces.step, pieces.items) * pieces.size + LINE)
        if memory == NULL:
            raise MemoryError
        pieces.room = <uint8_t *> (<uintptr_t> memory + LINE - 1 & -<uintptr_t> LINE)
    try:
        pieces.chunks = NpyIter_AdvancedNew(
            1, &array, cnp.NPY_ITER_BUFFERED | cnp.NPY_ITER_EXTERNAL_LOOP, order, cnp.NPY_UNSAFE_CASTING, &flags,
            &wanted, -1, NULL, NULL, 4096,
        )
        if pieces.chunks == NULL:
            raise MemoryError
        # What has converted the first chunk takes no more memory.
        pieces.next = NpyIter_GetIterNext(pieces.chunks, NULL)
        pieces.chunk = cnp.NpyIter_GetDataPtrArray(pieces.chunks)
        pieces.length = cnp.NpyIter_GetInnerLoopSizePtr(pieces.chunks)
        if cnp.NpyIter_IterationNeedsAPI(pieces.chunks):
            _convert_pieces(pieces, dst)
        else:
            with nogil:
                _convert_pieces(pieces, dst)
    finally:
        free(memory)
        if pieces.chunks != NULL:
            cnp.NpyIter_Deallocate(pieces.chunks)
    return 0


cdef int _convert_pieces(Pieces *pieces, uint8_t *dst) except? -1 nogil:
    """Convert the data piece by piece, and write each piece to all its places."""
    cdef Py_ssize_t item = 0, n
    while item < pieces.items:
        n = min(pieces.items - item, min(pieces.step, pieces.group - item % pieces.group))
        _take(pieces, n * pieces.size // pieces.itemsize)
        if pieces.room != NULL:
            if pieces.level < 0:
                _write_piece_counted(pieces, item, n, dst)
            else:
                _write_piece(pieces, item, n, dst)
        item += n
    return 0


cdef int _take(Pieces *pieces, Py_ssize_t n) except? -1 nogil:
    """Put the next n items into the room, or drop them if there is none."""
    cdef Py_ssize_t part
    cdef uint8_t *room = pieces.room
    while n:
        if pieces.taken == pieces.length[0]:
            if not pieces.next(pieces.chunks):
                return -1
            pieces.taken = 0
        part = min(n, pieces.length[0] - pieces.taken)
        if room != NULL:
            memcpy(room, pieces.chunk[0] + pieces.taken * pieces.itemsize, part * pieces.itemsize)
            room += part * pieces.itemsize
        pieces.taken += part
        n -= part
    if pieces.mapped_src != NULL:
        forget_range(pieces.mapped_src, pieces.mapped_size)
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
