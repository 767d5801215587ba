# `write_strided`: copy the items of strided data one after the other, in C order, as bytes.
#
# In: an array of any layout. Out: its items, contiguous. A cache line of the output takes items from many lines of the
# data, and a line of the data goes to many lines of the output. So the work is cut into tiles of at least one line
# either way, which a cache holds while they are transposed. Tiles are taken in the order of the data. The kernels in
# `simd/transpose.h` transpose two axes of a tile: the one along which items are neighbours in the output, and the one
# along which they are nearest to each other in the data.

cdef struct StridedAxis:
    Py_ssize_t length, src_step, dst_step
    Py_ssize_t block        # how much of it a tile has, or less than twice as much at its end
    Py_ssize_t part         # how much the current tile has

cdef struct StridedCopy:
    const uint8_t *src
    uint8_t *dst
    Py_ssize_t size             # bytes of an item, or of a run that is one
    int rank
    StridedAxis[MAX_AXES] axes  # in the order of the output
    int inner, other            # which is innermost in the output, and which of the others in the data
    int outer_loops             # loops over tiles
    int n_loops                 # all loops, with those within a tile
    int[2 * MAX_AXES] loops     # the axis along which each loop runs
    int cut, shares             # the axis that is cut into so many shares


cdef void write_strided(cnp.ndarray src, uint8_t *dst, int threads, bint releasing) noexcept:
    """Copy data that is not empty to `out`, which must not overlap it; an axis of stride 0 is copied once.

    If `releasing`, the GIL is released meanwhile. The caller keeps both arrays alive.
    """
    cdef StridedCopy copy
    copy.src = <const uint8_t *> cnp.PyArray_DATA(src)
    copy.dst = dst
    _read_axes(&copy, src)
    _cut_tiles(&copy)
    _order_loops(&copy)
    if releasing:
        with nogil:
            _share_tiles(&copy, threads)
    else:
        _share_tiles(&copy, threads)


cdef void _read_axes(StridedCopy *copy, cnp.ndarray src) noexcept:
    """Merge axes that are one in the data too; a run of items that are neighbours in both becomes one long item."""
    cdef StridedAxis *axes = &copy.axes[0]
    cdef Nest nest      # of the data alone: the output is contiguous, so that axes which are one there are one in both
    cdef int i, rank

    nest.n, nest.rank = 1, 0
    for i in range(cnp.PyArray_NDIM(src)):
        if cnp.PyArray_DIM(src, i) > 1 and cnp.PyArray_STRIDE(src, i):
            nest.shape[nest.rank] = cnp.PyArray_DIM(src, i)
            nest.stride[0][nest.rank] = cnp.PyArray_STRIDE(src, i)
            nest.rank += 1
    coalesce_axes(&nest)

    rank = nest.rank
    for i in range(rank):
        axes[i].length, axes[i].src_step = nest.shape[i], nest.stride[0][i]
    copy.size = cnp.PyArray_ITEMSIZE(src)
    if rank and axes[rank - 1].src_step == copy.size:
        rank -= 1
        copy.size *= axes[rank].length
    while rank < 2:     # a kernel takes two
        axes[rank] = axes[0]
        axes[0].length = 1
        axes[0].src_step = axes[1].length * axes[1].src_step if rank else copy.size
        rank += 1
    copy.rank = rank


cdef void _cut_tiles(StridedCopy *copy) noexcept:
    """Give each axis its step in the output, and tiles enough of it to make whole lines there and in the data."""
    cdef StridedAxis *inner = &copy.axes[copy.rank - 1]
    cdef StridedAxis *other = &copy.axes[0]
    cdef StridedAxis *axis
    cdef Py_ssize_t narrow = L1 // 4    # bytes of a tile at least, if the data or the output is narrow
    cdef Py_ssize_t step = copy.size, tile = copy.size
    cdef Py_ssize_t dst_side = 4 * LINE         # bytes of a tile that are neighbours in the output,
    cdef Py_ssize_t src_side = min(dst_side, LINE * copy.size)      # and in the data: as many if items are long
    cdef int i
    if copy.size >= 16 and inner.src_step & (PAGE - 1):
        dst_side = L1 // 2      # lines of the data stay in a second-level cache, but for those whole pages apart
        src_side = LINE
    copy.inner = copy.rank - 1
    copy.other = 0
    for i in range(copy.rank - 1, -1, -1):
        axis = &copy.axes[i]
        axis.dst_step = step
        step *= axis.length
        axis.block = max(_part(axis, dst_side, tile), _part(axis, src_side, llabs(axis.src_step)))
        tile *= axis.block
        if i < copy.inner and llabs(axis.src_step) < llabs(copy.axes[copy.other].src_step):
            copy.other = i
    if copy.axes[copy.other].length * inner.length < COPY_TILE_ITEMS:
        for i in range(copy.inner):
            if copy.axes[i].length > copy.axes[copy.other].length:
                copy.other = i
    other = &copy.axes[copy.other]
    if llabs(inner.src_step) < llabs(other.src_step):      # a single row
        inner.block = max(inner.block, _part(inner, narrow, copy.size))
    elif inner.src_step == other.length * other.src_step:   # rows that are packed
        inner.block = max(inner.block, _part(inner, narrow, other.length * copy.size))
    if other.dst_step == inner.length * copy.size:
        other.block = max(other.block, _part(other, narrow, other.dst_step))


cdef inline Py_ssize_t _part(const StridedAxis *axis, Py_ssize_t wanted, Py_ssize_t each) noexcept:
    """How many items of an axis, of `each` bytes, make `wanted` bytes; at most all of them."""
    return min(axis.length, (wanted + each - 1) // each)


cdef void _order_loops(StridedCopy *copy) noexcept:
    """Order the loops as the data lies, forwards: over tiles, then along the axes of a tile that the kernel kernels."""
    cdef StridedAxis *axes = &copy.axes[0]
    cdef int[MAX_AXES] order
    cdef int i, j, k
    for i in range(copy.rank):
        if i != copy.inner and axes[i].src_step < 0:
            copy.src += (axes[i].length - 1) * axes[i].src_step
            copy.dst += (axes[i].length - 1) * axes[i].dst_step
            axes[i].src_step = -axes[i].src_step
            axes[i].dst_step = -axes[i].dst_step
        j = i
        while j and llabs(axes[order[j - 1]].src_step) < llabs(axes[i].src_step):
            order[j] = order[j - 1]
            j -= 1
        order[j] = i
    copy.n_loops = 0
    for k in range(copy.rank):
        i = order[k]
        axes[i].part = axes[i].length
        if axes[i].length >= 2 * axes[i].block:
            copy.loops[copy.n_loops] = i
            copy.n_loops += 1
    copy.outer_loops = copy.n_loops
    for k in range(copy.rank):
        i = order[k]
        if i != copy.inner and i != copy.other and axes[i].block > 1:
            copy.loops[copy.n_loops] = i
            copy.n_loops += 1


cdef void _share_tiles(StridedCopy *copy, int threads) noexcept nogil:
    """Copy on several threads, which share the axis with the most blocks."""
    cdef Py_ssize_t most = 0
    cdef int i
    for i in range(copy.rank):
        if copy.axes[i].length // copy.axes[i].block > most:
            most = copy.axes[i].length // copy.axes[i].block
            copy.cut = i
    copy.shares = <int> min(threads * THREAD_SHARES, most) if threads > 1 else 1
    run_shares(_write_tile_share, copy, copy.shares, threads)


cdef void _write_tile_share(void *whole, int i, int _worker) noexcept nogil:
    """Copy one share; shares are cut between blocks."""
    cdef StridedCopy own
    cdef StridedCopy *copy = <StridedCopy *> whole
    if copy.shares > 1:     # each has a length of its own
        own = copy[0]
        copy = &own
    cdef StridedAxis *axis = &copy.axes[copy.cut]
    cdef Py_ssize_t blocks = axis.length // axis.block
    cdef Py_ssize_t begin = cut(blocks, i, copy.shares) * axis.block
    cdef Py_ssize_t end = axis.length if i + 1 == copy.shares else cut(blocks, i + 1, copy.shares) * axis.block
    axis.length = end - begin
    _write_tiles(copy, 0, copy.src + begin * axis.src_step, copy.dst + begin * axis.dst_step)


cdef void _write_tiles(StridedCopy *copy, int level, const uint8_t *src, uint8_t *dst) noexcept nogil:
    """Run the loops from `level` on."""
    cdef const StridedAxis *other = &copy.axes[copy.other]
    cdef const StridedAxis *inner = &copy.axes[copy.inner]
    cdef StridedAxis *axis
    cdef Py_ssize_t left, part = 1
    cdef Matrix matrix
    if level == copy.n_loops:
        matrix = Matrix(other.part, inner.part, copy.size, other.src_step, inner.src_step, other.dst_step)
        copy_matrix_of[target_number](&matrix, src, dst)
        return
    axis = &copy.axes[copy.loops[level]]
    left = axis.length if level < copy.outer_loops else axis.part
    while left:
        if level < copy.outer_loops:
            part = axis.part = axis.block if left >= 2 * axis.block else left
        _write_tiles(copy, level + 1, src, dst)
        src += part * axis.src_step
        dst += part * axis.dst_step
        left -= part
