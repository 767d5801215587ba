# Data of another dtype: pieces of it are converted in a room, and written from there to all their places.
#
# In: an array, an output of the other dtype, a shape or counts, the bytes of a piece. Out: the output, and flags of the
# CPU. What may fail comes before the first write.

cdef struct Reader:         # of an array's items in C's order, which it converts
    Cast cast               # NULL if only the order of bytes differs
    uint8_t *src
    Py_ssize_t size         # bytes of an item there,
    Py_ssize_t dst_size     # and converted
    int swapped, dst_swapped        # bytes of units that are to be reversed before, and after; or 0
    bint packed             # items need not be gathered before
    int rank
    Py_ssize_t[MAX_AXES] lengths, strides       # innermost first

cdef struct Pieces:
    Reader reader
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
    cdef uint8_t *begin = NULL if dst is None else <uint8_t *> cnp.PyArray_DATA(dst)
    cdef void *memory
    cdef Py_ssize_t item = 0, n
    _make_reader(&pieces.reader, src, dtype)
    pieces.mapped = dst is not None and is_mapped(dst)
    pieces.mapped_size = reach(src, &pieces.mapped_src) if is_mapped(src) else 0
    memory = malloc(min(pieces.step, pieces.items) * pieces.size + LINE + L1 // 2)
    if memory == NULL:
        raise MemoryError
    pieces.room = <uint8_t *> (<uintptr_t> memory + L1 // 2 + LINE - 1 & -<uintptr_t> LINE)
    PyUFunc_clearfperr()
    with nogil:
        while item < pieces.items:
            n = min(pieces.items - item, min(pieces.step, pieces.group - item % pieces.group))
            _read(
                &pieces.reader, item * (pieces.size // pieces.reader.dst_size),
                n * (pieces.size // pieces.reader.dst_size), pieces.room,
            )
            if pieces.mapped_size:
                forget_range(pieces.mapped_src, pieces.mapped_size)
            if begin != NULL and pieces.level < 0:
                _write_piece_counted(pieces, item, n, begin)
            elif begin != NULL:
                _write_piece(pieces, item, n, begin)
            item += n
        free(memory)
    return 0


cdef bint has_cast(cnp.dtype own, cnp.dtype dtype) except -1:
    """Whether items are converted here, as NumPy does: numbers, most of them."""
    if not cnp.PyArray_EquivTypenums(own.type_num, dtype.type_num):
        return sure_cast(own, dtype) != NULL
    return own.kind in b"biufc" and _swapped(own) <= 8 and _swapped(dtype) <= 8


cdef int _make_reader(Reader *reader, cnp.ndarray src, cnp.dtype dtype) except -1:
    """Describe an array whose items are to be converted."""
    cdef cnp.dtype own = <cnp.dtype> cnp.PyArray_DESCR(src)
    cdef Py_ssize_t length, step
    cdef int i
    if not has_cast(own, dtype):
        raise TypeError(f"`dtype` expected one to which {own} is converted here, got {dtype}")
    reader.cast = NULL if cnp.PyArray_EquivTypenums(own.type_num, dtype.type_num) else sure_cast(own, dtype)
    reader.src = <uint8_t *> cnp.PyArray_DATA(src)
    reader.size, reader.dst_size = own.itemsize, dtype.itemsize
    reader.swapped, reader.dst_swapped = _swapped(own), _swapped(dtype)
    reader.rank = 0
    for i in range(cnp.PyArray_NDIM(src) - 1, -1, -1):
        length, step = cnp.PyArray_DIM(src, i), cnp.PyArray_STRIDE(src, i)
        if length == 1:
            continue
        if reader.rank and step == reader.lengths[reader.rank - 1] * reader.strides[reader.rank - 1]:
            reader.lengths[reader.rank - 1] *= length
            continue
        reader.lengths[reader.rank], reader.strides[reader.rank] = length, step
        reader.rank += 1
    if reader.rank == 0:
        reader.lengths[0], reader.strides[0], reader.rank = 1, reader.size, 1
    reader.packed = reader.strides[0] == reader.size and cnp.PyArray_ISALIGNED(src) and not reader.swapped
    return 0


cdef int _swapped(cnp.dtype dtype) except -1:
    return 0 if dtype.isnative else <int> dtype.itemsize // (2 if dtype.kind == c"c" else 1)


cdef void _read(const Reader *reader, Py_ssize_t item, Py_ssize_t n, uint8_t *dst) noexcept nogil:
    """Convert n items; what is gathered for that lies in the room before the result."""
    cdef Py_ssize_t rest, part
    cdef const uint8_t *src
    cdef uint8_t *gathered = dst - L1 // 2
    cdef Matrix matrix
    cdef int axis
    while n:
        rest = item
        src = reader.src
        for axis in range(reader.rank):
            src += rest % reader.lengths[axis] * reader.strides[axis]
            rest //= reader.lengths[axis]
        part = min(n, reader.lengths[0] - item % reader.lengths[0])
        if not reader.packed:
            part = min(part, L1 // 2 // reader.size)
            matrix = Matrix(part, 1, reader.size, reader.strides[0], reader.size, reader.size)
            strided_copy(&matrix, src, gathered)
            if reader.swapped:
                swap_bytes(part * reader.size // reader.swapped, reader.swapped, gathered)
            src = gathered
        if reader.cast == NULL:
            memcpy(dst, src, part * reader.size)
        else:
            reader.cast(part, src, dst)
        if reader.dst_swapped:
            swap_bytes(part * reader.dst_size // reader.dst_swapped, reader.dst_swapped, dst)
        item += part
        n -= part
        dst += part * reader.dst_size


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
