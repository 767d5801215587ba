# cython: cdivision=True
"""Searches along an axis: for the position of the first extreme, and for the bool that decides `any` or `all`.

In: an array whose items are contiguous along the axis or across it, and an array for results. Out: a position along the
axis for each result; or the bool at that position.

A search needs no accumulators: its intermediate result is a position. So it has a small plan of its own. The kept axes
become a nest, which is cut into pieces of neighbouring results. Each piece is one call of a kernel: for runs if items
are contiguous along the axis, otherwise for columns, which are searched together. If there are too few pieces for
threads, the axis is cut into parts as well. Each part then finds a candidate for each result, and `_choose_positions`
chooses the best, or the first of equal ones. A unit of work is one piece in one part: 1,000 rows of 500 items are cut
into pieces of a few rows, and one row of 500,000 items into parts.

A search for a bool ends at the first one that it finds. Each thread begins with a part near the beginning of the axis,
and no part is read after an earlier one has found a bool.
"""

cimport numpy as cnp
from libc.stdint cimport int64_t

from bcast._nest.core cimport Nest, coalesce_axes
from bcast._reduce.items cimport dtype_row, in_native_order, items_of, refuse_resized
from bcast._reduce.kernels cimport BOOL, INT64, SHORT_MOST, Cells, PositionKernels
from bcast._reduce.plan cimport ceil_div
from bcast._reduce.run cimport LOCAL_BYTES, position_kernels, share_bytes, threads_for
from bcast._runtime.core cimport (
    LINE, Job, count_shares, cut, free_scratch, new_job, run_without_gil, take_scratch, target_number,
)
from bcast._runtime.tuning cimport DECIDING_BYTES, SEARCHED_ITEMS, SEARCHED_ROW_BYTES, SUM_SHARES

cdef extern from "_runtime/atomic.h":
    long load "bcast_load"(volatile long *at) noexcept nogil
    void store "bcast_store"(volatile long *at, long value) noexcept nogil

cnp.import_array()

cdef enum:
    MAX_PARTS = 64          # the most parts of the searched axis, for one result
    SEARCHED_COLUMNS = 512  # the fewest columns of a piece: the kernel searches this number at once

cdef enum:      # the operands of a search
    READ
    WRITTEN

cdef struct Search:
    # A search for extremes along an axis of an array. A unit is a part of that axis for a piece of the results.
    const PositionKernels *kernels
    bint greatest
    bint in_runs                # whether items are contiguous along the axis; otherwise along a row of results
    bint is_truth               # whether runs have bools: the first true one, or the first false one, ends a search
    Nest nest                   # the kept axes; the last one is along a row of results
    Py_ssize_t length           # length of the searched axis
    Py_ssize_t stride           # stride along the searched axis, in bytes
    Py_ssize_t results          # results of all rows
    int cut_axis                # the axis of the nest that pieces cut; axes inside of it stay whole
    Py_ssize_t width            # results for each position of the cut axis
    Py_ssize_t piece            # the most positions of a piece
    Py_ssize_t pieces           # pieces of the cut axis
    Py_ssize_t parts            # parts of the searched axis: 1 unless threads would have too few pieces
    Py_ssize_t units            # pieces of all rows, times parts
    long[MAX_PARTS] decided     # for bools: a part in which the search for each result ended, if there are parts
    Job job                     # runs shares of the units; they find the positions of each part


# ---- Functions for `_api` ----


cpdef bint find_positions_onto(cnp.ndarray data, int axis, cnp.ndarray out, bint greatest) except -1:
    """Find the first greatest or least item along an axis, and write its position into `out`.

    `is_searched` holds for `data`. `out` is a C-contiguous array of int64, with the shape of `data` without the axis,
    and overlaps nothing. The first NaN wins over all numbers. Return whether kernels read `data`; otherwise do nothing.
    """
    cdef Search search
    cdef int dtype = dtype_row(data)
    if dtype < 0 or cnp.PyArray_ISCOMPLEX(data):
        return False
    if not 0 <= axis < cnp.PyArray_NDIM(data) or items_of(data) == 0:
        refuse_resized()
    if items_of(out) != items_of(data) // cnp.PyArray_DIM(data, axis):
        refuse_resized()
    if dtype_row(out) != INT64 or not cnp.PyArray_ISCARRAY(out):     # int64 has two names in C
        raise TypeError(f"`out` expected contiguous and aligned int64, got {out.dtype}")

    data = in_native_order(data)
    if not is_searched(data, axis):
        raise TypeError("`data` expected items side by side along the axis, or across it")
    _plan_search(&search, data, axis, out)
    search.kernels = position_kernels(target_number, dtype)
    search.greatest = greatest
    search.is_truth = search.in_runs and dtype == BOOL
    _run_search(&search, cnp.PyArray_NBYTES(data), data, out)
    return True


cpdef bint find_truths_onto(cnp.ndarray data, cnp.ndarray out, bint any_) except -1:
    """Write into `out` whether any item of each row of `data` is true; or without `any_`, whether all items are.

    Reading stops at the item that decides. Items have one byte and are adjacent along the last axis. `out` is a
    C-contiguous array of bools, with the shape of `data` without that axis, and overlaps nothing.
    """
    cdef Search search
    cdef int axis = cnp.PyArray_NDIM(data) - 1
    cdef cnp.ndarray positions

    if axis < 0 or items_of(data) == 0:
        refuse_resized()
    if items_of(out) != items_of(data) // cnp.PyArray_DIM(data, axis):
        refuse_resized()
    if cnp.PyArray_ITEMSIZE(data) != 1 or dtype_row(data) < 0 or not cnp.PyArray_IS_C_CONTIGUOUS(out):
        raise TypeError(f"`data` expected items of one byte, got {data.dtype}")
    if dtype_row(out) != BOOL or cnp.PyArray_DIM(data, axis) > 1 and cnp.PyArray_STRIDE(data, axis) != 1:
        raise TypeError("`data` expected items side by side along the last axis, and `out` bools")

    positions = cnp.PyArray_EMPTY(cnp.PyArray_NDIM(out), cnp.PyArray_DIMS(out), cnp.NPY_INT64, 0)
    _plan_search(&search, data, axis, positions)
    search.kernels = position_kernels(target_number, BOOL)
    search.greatest = any_
    search.is_truth = True
    _run_search(&search, cnp.PyArray_NBYTES(data), data, positions)
    _write_truths(&search, <char *> cnp.PyArray_DATA(out))
    return True


cdef void _write_truths(const Search *search, char *truths) noexcept nogil:
    """Write the bools at the found positions, as 0 or 1."""
    cdef const int64_t *positions = <const int64_t *> search.nest.data[WRITTEN]
    cdef Py_ssize_t result
    for result in range(search.results):
        truths[result] = _run_of_result(search, result)[positions[result]] != 0


cpdef bint is_searched(cnp.ndarray data, int axis) noexcept:
    """Whether kernels search for extremes along an axis in place; other arrays are first made contiguous.

    Items are adjacent along the axis, or along the innermost of the other axes. A few items may be anywhere. Many short
    rows with gaps are made contiguous, too, and several of them are searched as one.
    """
    cdef int i
    if not 0 <= axis < cnp.PyArray_NDIM(data):
        return False
    if cnp.PyArray_DIM(data, axis) == 1 or cnp.PyArray_STRIDE(data, axis) == cnp.PyArray_ITEMSIZE(data):
        return True
    for i in range(cnp.PyArray_NDIM(data) - 1, -1, -1):
        if i != axis and cnp.PyArray_DIM(data, i) != 1:
            return cnp.PyArray_STRIDE(data, i) == cnp.PyArray_ITEMSIZE(data) and not _has_short_rows(data, axis, i)
    return items_of(data) <= SEARCHED_COLUMNS // 2


cdef bint _has_short_rows(cnp.ndarray data, int axis, int inner) noexcept:
    """Whether an array has many rows of a few bytes across an axis, with gaps between them, that are fast to copy."""
    cdef Py_ssize_t size = cnp.PyArray_ITEMSIZE(data), width = cnp.PyArray_DIM(data, inner), i
    cdef bint is_word
    for i in range(inner - 1, -1, -1):      # axes that continue the rows
        if i != axis and cnp.PyArray_DIM(data, i) != 1:
            if cnp.PyArray_STRIDE(data, i) == width * size:
                width *= cnp.PyArray_DIM(data, i)
            else:
                break
    if width * size > SEARCHED_ROW_BYTES or cnp.PyArray_STRIDE(data, axis) == width * size:
        return False
    is_word = size == 1 and (width == 8 or width == 16)
    if width > SHORT_MOST and not is_word:      # five items take up to eight times as long to copy as to search
        return False
    return cnp.PyArray_DIM(data, axis) * width >= SEARCHED_ITEMS


# ---- The plan: axes, pieces and parts ----


cdef void _plan_search(Search *search, cnp.ndarray data, int axis, cnp.ndarray out) noexcept:
    """Describe the axes of a search."""
    cdef Nest *nest = &search.nest
    cdef Py_ssize_t result_stride = cnp.PyArray_NBYTES(out), size = cnp.PyArray_ITEMSIZE(data), length
    cdef int i

    search.length, search.stride = cnp.PyArray_DIM(data, axis), cnp.PyArray_STRIDE(data, axis)
    search.results = items_of(out)
    nest.n = 2
    nest.rank = 0
    for i in range(cnp.PyArray_NDIM(data)):
        length = cnp.PyArray_DIM(data, i)
        if i == axis or length == 1:
            continue
        result_stride //= length
        nest.shape[nest.rank] = length
        nest.stride[READ][nest.rank] = cnp.PyArray_STRIDE(data, i)
        nest.stride[WRITTEN][nest.rank] = result_stride
        nest.rank += 1
    coalesce_axes(nest)
    if nest.rank == 0:
        nest.rank = 1
        nest.shape[0], nest.stride[READ][0], nest.stride[WRITTEN][0] = 1, size, sizeof(int64_t)
    nest.data[READ] = <char *> cnp.PyArray_DATA(data)
    nest.data[WRITTEN] = <char *> cnp.PyArray_DATA(out)

    search.in_runs = search.stride == size or search.length == 1
    search.cut_axis, search.width = nest.rank - 1, 1
    if not search.in_runs and nest.rank > 1 and nest.shape[nest.rank - 1] < SEARCHED_COLUMNS:
        search.cut_axis, search.width = nest.rank - 2, nest.shape[nest.rank - 1]


cdef int _run_search(Search *search, Py_ssize_t nbytes, cnp.ndarray data, cnp.ndarray out) except -1:
    """Cut a search into units, and run it."""
    cdef char[LOCAL_BYTES + 2 * LINE] local
    cdef int threads = threads_for(nbytes, SUM_SHARES)
    cdef tuple arrays = None

    _cut_search(search, SUM_SHARES if threads > 1 else 1)
    if search.is_truth and search.parts > 1 and _is_decided_soon(search):
        return 0

    search.job = new_job(_run_searches, search, threads, count_shares(threads, search.units))
    if search.parts > 1:
        search.job.found_bytes = search.results * search.parts * <Py_ssize_t> sizeof(int64_t)
        search.job.fold = _choose_positions
    if nbytes >= share_bytes:
        arrays = (data, out)        # this may fail, so it comes before the scratch memory
    if not take_scratch(&search.job, local, sizeof(local)):
        raise MemoryError

    if arrays is None:      # one share has whole axes
        _run_searches(search, 0, 0)
    else:
        run_without_gil(&search.job, arrays)
    free_scratch(&search.job)
    return 0


cdef void _cut_search(Search *search, Py_ssize_t wanted) noexcept:
    """Cut a search into about the wanted number of units: into pieces and, if these are too few, the axis into parts.
    """
    cdef Py_ssize_t positions = search.nest.shape[search.cut_axis]      # positions of the axis that pieces cut
    cdef Py_ssize_t rows = search.results // (positions * search.width)
    cdef Py_ssize_t least = 1 if search.in_runs or search.width > 1 else SEARCHED_COLUMNS

    search.pieces = max(<Py_ssize_t> 1, min(ceil_div(wanted, rows), positions // least))
    search.piece = ceil_div(positions, search.pieces)
    search.pieces = ceil_div(positions, search.piece)

    search.parts = min(wanted // (rows * search.pieces), search.length // SEARCHED_COLUMNS)
    search.parts = max(<Py_ssize_t> 1, min(search.parts, <Py_ssize_t> MAX_PARTS))
    search.units = rows * search.pieces * search.parts


# ---- Units ----


cdef void _run_searches(void *work, int share, int worker) noexcept nogil:
    """Search in the units of one share."""
    cdef Search *search = <Search *> work
    cdef Py_ssize_t unit, end
    if search.is_truth:
        share = _interleaved(share, &search.job)
    end = cut(search.units, share + 1, search.job.shares)
    for unit in range(cut(search.units, share, search.job.shares), end):
        _search_unit(search, unit)


cdef void _search_unit(Search *search, Py_ssize_t unit) noexcept nogil:
    """Find the positions of a piece of the results, in one part of the axis."""
    cdef int part = <int> (unit % search.parts)
    cdef Py_ssize_t positions = search.nest.shape[search.cut_axis]
    cdef Py_ssize_t row = unit // (search.parts * search.pieces)
    cdef Py_ssize_t first = unit // search.parts % search.pieces * search.piece
    cdef Py_ssize_t begin = cut(search.length, part, <int> search.parts), i
    cdef int64_t *found = _found_in_part(search, part) + (row * positions + first) * search.width
    cdef Cells cells = Cells(
        src=_row_of_results(search, search.cut_axis, row) + begin * search.stride,
        count=min(search.piece, positions - first),
        advance=search.nest.stride[READ][search.cut_axis],
        length=cut(search.length, part + 1, <int> search.parts) - begin,
        stride=search.stride,
        width=search.width,
    )

    cells.src += first * cells.advance

    if search.is_truth and search.parts > 1:        # then a piece is one result
        if load(&search.decided[unit // search.parts]) < part:
            found[0] = begin        # any position serves, because an earlier part has found a bool
            return
        _search_cells(search, cells, found)
        if _ends_search(search, cells.src + found[0]):
            store(&search.decided[unit // search.parts], part)
    else:
        _search_cells(search, cells, found)
    if begin > 0:
        for i in range(cells.count * search.width):
            found[i] += begin


cdef inline void _search_cells(const Search *search, Cells cells, int64_t *found) noexcept nogil:
    """Have a kernel search in cells: runs, or columns. If columns are cut, one cell has all of them."""
    if search.in_runs:
        search.kernels.in_runs(search.greatest, cells.src, cells.count, cells.advance, cells.length, found)
        return
    if search.cut_axis == search.nest.rank - 1:
        cells.width, cells.count, cells.advance = cells.count, 1, 0
    search.kernels.in_columns(search.greatest, &cells, found)


cdef inline int64_t *_found_in_part(const Search *search, int part) noexcept nogil:
    """The memory for positions found in a part of the axis: the results, if it is the only part."""
    if search.parts == 1:
        return <int64_t *> search.nest.data[WRITTEN]
    return <int64_t *> search.job.found + part * search.results


cdef const char *_row_of_results(const Search *search, int inner, Py_ssize_t row) noexcept nogil:
    """The first item of a row of results, by its number; a row has axis `inner` of the nest and the axes inside of it.
    """
    cdef const char *src = search.nest.data[READ]
    cdef int axis
    for axis in range(inner - 1, -1, -1):
        src += row % search.nest.shape[axis] * search.nest.stride[READ][axis]
        row //= search.nest.shape[axis]
    return src


cdef inline const char *_run_of_result(const Search *search, Py_ssize_t result) noexcept nogil:
    """The first item of a result's run, by the result's number."""
    cdef int inner = search.nest.rank - 1
    cdef Py_ssize_t width = search.nest.shape[inner]
    return _row_of_results(search, inner, result // width) + result % width * search.nest.stride[READ][inner]


cdef void _choose_positions(void *work) noexcept nogil:
    """Choose each result among the candidates that the parts of the axis found."""
    cdef const Search *search = <const Search *> work
    cdef Py_ssize_t result, part
    cdef const int64_t *found = <const int64_t *> search.job.found
    cdef int64_t *positions = <int64_t *> search.nest.data[WRITTEN]
    cdef int64_t[MAX_PARTS] candidates
    cdef const char *src

    for result in range(search.results):
        for part in range(search.parts):
            candidates[part] = found[part * search.results + result]
        src = _run_of_result(search, result)
        positions[result] = search.kernels.best_of(search.greatest, src, search.stride, candidates, search.parts)


# ---- Searches for a bool, which end early ----


cdef bint _is_decided_soon(Search *search) noexcept:
    """Whether the first bools of each run end its search. If so, write their positions, and wake no threads.

    Otherwise, note that no part has ended the search for any result yet.
    """
    cdef int64_t *positions = <int64_t *> search.nest.data[WRITTEN]
    cdef Py_ssize_t length = min(search.length, <Py_ssize_t> DECIDING_BYTES), result
    cdef const char *src
    cdef bint is_decided = True

    for result in range(search.results):
        search.decided[result] = search.parts
        src = _run_of_result(search, result)
        if is_decided:
            search.kernels.in_runs(search.greatest, src, 1, 0, length, &positions[result])
            is_decided = _ends_search(search, src + positions[result])
    return is_decided


cdef inline bint _ends_search(const Search *search, const char *item) noexcept nogil:
    """Whether the search is for this bool."""
    return (item[0] != 0) == search.greatest


cdef inline int _interleaved(int share, const Job *job) noexcept nogil:
    """The number of a share in an order in which all threads read neighbouring memory, though each has its own shares.
    """
    cdef int each = job.shares // job.threads
    if each * job.threads != job.shares:
        return share
    return share % each * job.threads + share // each
