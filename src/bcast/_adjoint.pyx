# cython: cdivision=True
"""`sum_onto` and `sum_counted`: the adjoints of `replicate` and of `repeat_counted`.

The first sums an array over the axes along which an alignment repeats, the second over the repetitions of each item.
Here the dtypes of terms and results choose a kind of sum, axes are read from the arrays, the GIL is given away, and
threads get their shares. `_sum/plan.pyx` plans the sum, `_sum/walk.pyx` walks it, and `_sum/counted.pyx` does both for
counts; what they do not do is left to NumPy.
"""

cimport cython
cimport numpy as cnp
from libc.stdint cimport uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport strcmp, strrchr

import warnings

import numpy as np
from numpy.exceptions import ComplexWarning

from bcast._rules.alignment cimport Alignment
from bcast._runtime.arrays cimport shape_of
from bcast._rules.counts cimport Counts
from bcast._runtime.cpu cimport PAGE, TARGET_COUNT, has_target, target_names, target_number
from bcast._runtime.memory cimport Extent, extent, overlap
from bcast._runtime.threads cimport RELEASING, SHARES, free_threads, run_shares
from bcast._sum.counted cimport CountedSum, plan_counted_sum, sum_counted_share
from bcast._sum.plan cimport (
    AS_INTEGER, AS_IS, AS_REAL, BOOL, DTYPE_COUNT, F64, FLOAT16, FLOAT32, FLOAT64, INT8, MAX_AXES, U64, UINT8, UNITS,
    Axis, Packing, Reduction, Target, Terms, dtypes, plan_sum,
)
from bcast._sum.walk cimport add_segments, sum_unit

cdef extern from "_sum/simd/leaves.h":
    const Target **target_of "bcast_sum_target_of"

cnp.import_array()

cdef struct Work:       # what the shares of a sum have in common
    const Reduction *plan
    const char *x
    char *to
    char *scratch       # `room` bytes for each thread
    Py_ssize_t room
    char *partials      # of all segments
    int shares

cdef struct CountedWork:
    const CountedSum *plan
    const char *x
    char *to
    char *scratch
    Py_ssize_t room
    int shares

cdef Py_ssize_t SHARED = RELEASING     # bytes; a thread that would read less costs more than it saves

RESIZED = "`grad` and `out` expected arrays that keep their sizes during the call, got resized ones"

cdef int[DTYPE_COUNT] user_numbers      # of dtypes that other packages have added, once an array of one was seen


def set_limits(shared=RELEASING):
    """Set how many bytes a thread reads at least: for tests of threads on small arrays."""
    global SHARED
    SHARED = shared


def targets():
    """Return the names of the targets that sum by leaves of their own, best first: for tests of each."""
    cdef dict names = {}
    cdef int target
    for target in range(TARGET_COUNT):
        if has_target(target):
            names.setdefault(<size_t> target_of[target], target_names[target].decode())
    return tuple(reversed(names.values()))


cpdef sum_onto(cnp.ndarray grad, Alignment alignment, cnp.ndarray out):
    """Sum `grad` over the axes along which `alignment` repeats, into `out`, and return `out`.

    Parameters
    ----------
    grad : ndarray
        Of any layout; its shape is ``alignment.shape``.
    alignment : Alignment
        Where the data went.
    out : ndarray
        Writeable, of the result's dtype and of any strides; its shape is ``alignment.source`` without some of the 1s.
        It may overlap `grad`: the result is as if `grad` had been copied first.

    Returns
    -------
    ndarray
        `out` itself.
    """
    return _sum_any(grad, alignment, None, -1, out)


cpdef sum_counted(cnp.ndarray grad, Counts counts, int along, cnp.ndarray out):
    """Sum as many rows of `grad` for each item of `out` as its count says, into `out`, and return `out`.

    Parameters
    ----------
    grad : ndarray
        Of any layout; its axis `along` has length ``counts.total``.
    counts : Counts
        How many rows each item had.
    along : int
        The axis, 0 or more.
    out : ndarray
        As for `sum_onto`; its shape is that of `grad`, but for axis `along`, of length ``counts.size``.

    Returns
    -------
    ndarray
        `out` itself.
    """
    if not 0 <= along < cnp.PyArray_NDIM(grad):
        raise ValueError(f"`axis` expected an axis of data of shape {shape_of(grad)}, got {along}")
    return _sum_any(grad, None, counts, along, out)


cdef _sum_any(cnp.ndarray grad, Alignment alignment, Counts counts, int along, cnp.ndarray out):
    """Sum by an alignment or, along an axis of 0 or more, by counts."""
    cdef Reduction plan
    cdef Terms terms
    cdef Axis[MAX_AXES] axis
    cdef const char *x = <const char *> cnp.PyArray_DATA(grad)
    cdef char *to = <char *> cnp.PyArray_DATA(out)
    cdef Py_ssize_t items = cnp.PyArray_SIZE(grad), sums = cnp.PyArray_SIZE(out)
    cdef Py_ssize_t nbytes = items * cnp.PyArray_ITEMSIZE(grad)
    cdef int n
    if cnp.PyArray_ISCOMPLEX(grad) and _is_real(out):
        # NumPy's own warning, which may be an error and run code of the user's: before sizes are compared.
        warnings.warn("Casting complex values to real discards the imaginary part", ComplexWarning, stacklevel=1)
        return _sum_any(np.asarray(grad).real, alignment, counts, along, out)
    if along < 0:
        _check_sizes(grad, alignment, out)
    else:
        _check_counts(grad, counts, along, out)
    if sums == 0:
        return out
    if items == 0:
        np.asarray(out)[...] = 0
        return out
    if along < 0 and items == sums or not _choose_terms(&terms, grad, out):
        if along < 0:
            _leave_to_numpy(grad, alignment, out)
        else:
            _leave_counts_to_numpy(grad, counts, along, out)
        return out
    if (
        not cnp.PyArray_IS_C_CONTIGUOUS(out) or not cnp.PyArray_ISNOTSWAPPED(out) or overlap(grad, out)
        or cnp.PyArray_ISCOMPLEX(out) and not cnp.PyArray_ISCOMPLEX(grad)
    ):
        _sum_aside(grad, alignment, counts, along, out)
        return out
    if not cnp.PyArray_ISNOTSWAPPED(grad):
        native = np.asarray(grad)
        return _sum_any(native.astype(native.dtype.newbyteorder("=")), alignment, counts, along, out)
    if along >= 0:
        counts.keep_from(out)
        _sum_by_counts(&terms, grad, counts, along, out)
        return out
    n = _read_axes(axis, grad, alignment.source, -1, 0, sums * cnp.PyArray_ITEMSIZE(out), &x, &to)
    if axis[n - 1].step != terms.size:
        terms.packed = True
    plan_sum(&plan, &terms, axis, n, UNITS)
    if nbytes < SHARED and plan.segments == 1:
        _sum_small(&plan, x, to)
    else:
        _sum_large(&plan, grad, out, x, to)
    return out


cdef _sum_aside(cnp.ndarray grad, Alignment alignment, Counts counts, int along, cnp.ndarray out):
    """Sum into an array of its own, contiguous and of the machine's byte order, and copy that."""
    target = np.asarray(out)
    if cnp.PyArray_ISCOMPLEX(out) and not cnp.PyArray_ISCOMPLEX(grad):
        result = np.empty(shape_of(out), target.real.dtype.newbyteorder("="))
    else:
        result = np.empty(shape_of(out), target.dtype.newbyteorder("="))
    np.copyto(target, _sum_any(grad, alignment, counts, along, result))


@cython.boundscheck(False)      # shape and source have one length
@cython.wraparound(False)
cdef int _check_sizes(cnp.ndarray grad, Alignment alignment, cnp.ndarray out) except -1:
    """Compare the arrays with the alignment again: code of the user's may have run since it was made."""
    cdef tuple shape = alignment.shape, source = alignment.source
    cdef Py_ssize_t sums = 1, length
    cdef bint fits = len(shape) == cnp.PyArray_NDIM(grad) and len(source) == len(shape)
    cdef int i
    for i in range(len(shape) if fits else 0):
        length = source[i]
        sums *= length
        fits = fits and cnp.PyArray_DIM(grad, i) == <Py_ssize_t> shape[i]
        fits = fits and (length == 1 or length == cnp.PyArray_DIM(grad, i))
    if not fits or sums != cnp.PyArray_SIZE(out):
        raise ValueError(RESIZED)
    return 0


cdef int _check_counts(cnp.ndarray grad, Counts counts, int along, cnp.ndarray out) except -1:
    """The same for counts."""
    cdef bint fits = along < cnp.PyArray_NDIM(grad) and cnp.PyArray_NDIM(grad) == cnp.PyArray_NDIM(out)
    cdef int i
    for i in range(cnp.PyArray_NDIM(grad) if fits else 0):
        fits = fits and cnp.PyArray_DIM(grad, i) == (counts.total if i == along else cnp.PyArray_DIM(out, i))
    if not fits or cnp.PyArray_DIM(out, along) != counts.size:
        raise ValueError(RESIZED)
    return 0


cdef _leave_to_numpy(grad, Alignment alignment, out):
    """What nothing is summed of, or no leaf sums: copies, and dtypes such as long double and objects."""
    grad, out = np.asarray(grad), np.asarray(out)
    pairs = enumerate(zip(alignment.shape, alignment.source))
    axes = tuple([i for i, (length, kept) in pairs if kept != length])
    if axes:
        # Units of time are no matter of `dtype`; without `keepdims` a sum of objects is no array.
        dtype = _wider(grad.dtype) or (None if grad.dtype == out.dtype else out.dtype.newbyteorder("="))
        grad = np.add.reduce(grad, axes, dtype, keepdims=True)
    elif not np.can_cast(grad.dtype, out.dtype) or np.may_share_memory(grad, out):
        grad = grad.astype(out.dtype)       # which may fail or warn: before anything is written
    np.copyto(out, grad.reshape(out.shape), "unsafe")


cdef _leave_counts_to_numpy(grad, Counts counts, int along, out):
    """The same for counts: runs of no terms, for which `reduceat` gives the next term, are left out."""
    grad, out = np.asarray(grad), np.asarray(out)
    lengths = counts.to_array()
    kept = lengths != 0
    starts = (lengths.cumsum() - lengths)[kept]
    result = np.zeros(out.shape, out.dtype.newbyteorder("="))
    dtype = _wider(grad.dtype) or (None if grad.dtype == out.dtype else result.dtype)
    result[(slice(None),) * along + (kept,)] = np.add.reduceat(grad, starts, along, dtype)
    np.copyto(out, result)


cdef _wider(dtype):
    """The dtype in which floats of other packages are summed, such as float8; None for all else."""
    if not cnp.PyTypeNum_ISUSERDEF(dtype.num) or not np.can_cast(dtype, np.float64):
        return None
    half = np.asarray(0.5).astype(dtype)    # of an integer, nothing is left
    return np.dtype(np.float64) if half.astype(np.float64) == 0.5 else None


cdef bint _choose_terms(Terms *terms, cnp.ndarray grad, cnp.ndarray out) noexcept:
    """Choose how terms are read, summed and written; tell whether there is a way."""
    cdef int term = _dtype_of(grad), result = _dtype_of(out)
    cdef int kind, size, out_size
    cdef bint is_float
    if term < 0 or result < 0 or result == BOOL:
        return False
    is_float = dtypes[term].is_float
    if is_float and not dtypes[result].is_float:
        return False
    size = dtypes[term].size
    out_size = dtypes[result].size
    kind = dtypes[term].kind
    if dtypes[result].is_float and (not is_float or size < out_size):
        kind = F64
    elif not is_float and size != out_size:
        kind = U64
    terms.packed = kind == F64 and term != FLOAT64 or kind == U64 and size < 8
    if terms.packed:
        terms.packing = Packing(term, AS_REAL if kind == F64 else AS_INTEGER)
        size = 8
    else:
        terms.packing = Packing(FLOAT16 if size == 2 else FLOAT32 if size == 4 else FLOAT64, AS_IS)
    terms.target = target_of[target_number]
    terms.leaves = &terms.target.sums[kind]
    terms.writes = not terms.packed and (term == result or not is_float and size == out_size)
    terms.size = size
    terms.sum_size = size if kind <= U64 else 8
    terms.compensated = kind == F64
    terms.result = result
    return True


cdef bint _is_real(cnp.ndarray array) noexcept:
    """Whether the items of an array are numbers without an imaginary part."""
    if cnp.PyArray_ISNUMBER(array):
        return not cnp.PyArray_ISCOMPLEX(array)
    return cnp.PyTypeNum_ISUSERDEF(cnp.PyArray_TYPE(array)) and _dtype_of(array) >= 0


cdef int _dtype_of(cnp.ndarray array) noexcept:
    """The row of the items of an array, or of their parts, in the table of dtypes; -1 for what no leaf sums."""
    cdef int number = cnp.PyArray_TYPE(array)
    cdef int size = cnp.PyArray_ITEMSIZE(array)
    if number == cnp.NPY_BOOL:
        return BOOL
    if cnp.PyTypeNum_ISINTEGER(number):
        return (UINT8 if cnp.PyTypeNum_ISUNSIGNED(number) else INT8) + (size > 1) + (size > 2) + (size > 4)
    if number == cnp.NPY_FLOAT16:
        return FLOAT16
    if number == cnp.NPY_FLOAT or number == cnp.NPY_CFLOAT:
        return FLOAT32
    if number == cnp.NPY_DOUBLE or number == cnp.NPY_CDOUBLE:
        return FLOAT64
    return _user_dtype_of(array) if cnp.PyTypeNum_ISUSERDEF(number) else -1


cdef int _user_dtype_of(cnp.ndarray array) noexcept:
    """The row that has the name of the items' type; asked in C, where nothing can fail. Its number is kept."""
    cdef int number = cnp.PyArray_TYPE(array), i
    cdef const char *name = (<cnp.dtype> cnp.PyArray_DESCR(array)).typeobj.tp_name
    cdef const char *dot = strrchr(name, b".")
    for i in range(DTYPE_COUNT):
        if user_numbers[i] == number:       # of NumPy's own, 0 is bool
            return i
    for i in range(DTYPE_COUNT):
        if dtypes[i].name != NULL and dtypes[i].size == cnp.PyArray_ITEMSIZE(array):
            if strcmp(name if dot == NULL else dot + 1, dtypes[i].name) == 0:
                user_numbers[i] = number
                return i
    return -1


@cython.boundscheck(False)      # source has grad's rank
@cython.wraparound(False)
cdef int _read_axes(
    Axis *axis, cnp.ndarray grad, tuple source, int along, Py_ssize_t items, Py_ssize_t out_step, const char **x,
    char **to,
) except -1:
    """Read the axes longer than 1, in the order of `grad`'s memory, neighbours of one kind as one; return how many.

    Axes that run backwards are turned, to begin at `x` and `to`; `out` is contiguous. If one is summed by counts, it is
    number `along`, and read in any case as it runs; `out` has so many `items` along it.
    """
    cdef int n = 0, i, j
    cdef bint counted
    cdef Axis next
    for i in range(cnp.PyArray_NDIM(grad)):
        next.length = cnp.PyArray_DIM(grad, i)
        counted = i == along
        if next.length == 1 and not counted:
            continue
        next.step = cnp.PyArray_STRIDE(grad, i)
        next.kept = <Py_ssize_t> source[i] != 1 if along < 0 else not counted
        next.out_step = 0
        if next.kept or counted:
            out_step //= items if counted else next.length
            next.out_step = out_step
        if next.step < 0 and not counted:
            x[0] += (next.length - 1) * next.step
            to[0] += (next.length - 1) * next.out_step
            next.step = -next.step
            next.out_step = -next.out_step
        j = n
        while j > 0 and axis[j - 1].step != 0 and (_size(axis[j - 1].step) < _size(next.step) or next.step == 0):
            axis[j] = axis[j - 1]
            j -= 1
        axis[j] = next
        n += 1
    if cnp.PyArray_ISCOMPLEX(grad):
        axis[n] = Axis(2, cnp.PyArray_ITEMSIZE(grad) // 2, out_step // 2, True)
        n += 1
    j = 0
    for i in range(1, n):
        if (
            axis[j].kept == axis[i].kept
            and axis[j].step == axis[i].length * axis[i].step
            and axis[j].out_step == axis[i].length * axis[i].out_step
        ):
            next = axis[i]
            next.length *= axis[j].length
            axis[j] = next
        else:
            j += 1
            axis[j] = axis[i]
    return min(n, j + 1)


cdef inline Py_ssize_t _size(Py_ssize_t step) noexcept:
    return -step if step < 0 else step


cdef int _sum_by_counts(Terms *terms, cnp.ndarray grad, Counts counts, int along, cnp.ndarray out) except -1:
    """Sum by counts, on several threads if it is worth it."""
    cdef char[2 * PAGE] room
    cdef char *scratch = room
    cdef CountedSum plan
    cdef Axis[MAX_AXES] axis
    cdef const char *x = <const char *> cnp.PyArray_DATA(grad)
    cdef char *to = <char *> cnp.PyArray_DATA(out)
    cdef Py_ssize_t nbytes = max(cnp.PyArray_NBYTES(grad), cnp.PyArray_NBYTES(out)), whole, thread_room
    cdef int threads = 1, n
    cdef CountedWork work
    n = _read_axes(axis, grad, None, along, counts.size, cnp.PyArray_NBYTES(out), &x, &to)
    if n > 2 and axis[n - 1].kept and axis[n - 2].kept and _sum_in_order(grad, counts, along, out):
        return 0
    if axis[n - 1].step != terms.size:
        terms.packed = True
    plan_counted_sum(&plan, terms, &counts.list, axis, n)
    whole = plan.positions * plan.length
    if nbytes >= SHARED:
        threads = <int> max(1, min(free_threads(), nbytes // SHARED))
    thread_room = plan.scratch + 127 & ~63      # no two threads write one line
    if threads * thread_room > 2 * PAGE:
        scratch = <char *> malloc(threads * thread_room)
        if scratch == NULL:
            raise MemoryError
    work = CountedWork(&plan, x, to, scratch, thread_room, <int> min(threads * SHARES, whole) if threads > 1 else 1)
    try:
        if nbytes < SHARED:
            sum_counted_share(&plan, 0, whole, x, to, scratch)
        else:
            _sum_counted_large(&work, grad, out, threads)
    finally:
        if scratch != room:
            free(scratch)
    return 0


cdef bint _sum_in_order(grad, Counts counts, int along, out) except -1:
    """Sum into a result whose axes are in the order of `grad`'s memory, if `out` has another: its rows are longer."""
    grad, out = np.asarray(grad), np.asarray(out)
    order = (-np.abs(grad.strides)).argsort(kind="stable").tolist()
    if order == list(range(grad.ndim)):
        return False
    places = np.argsort(order)
    result = np.empty(out.transpose(order).shape, out.dtype)
    _sum_any(grad.transpose(order), None, counts, places[along], result)
    np.copyto(out, result.transpose(places))
    return True


@cython.boundscheck(False)      # index 0 of buffers that are not empty
@cython.wraparound(False)
cdef int _sum_counted_large(CountedWork *work, cnp.ndarray grad, cnp.ndarray out, int threads) except -1:
    """The views hold both arrays while the GIL is given away."""
    cdef Extent grad_extent = extent(grad), out_extent = extent(out)
    cdef const uint8_t[::1] terms = grad_extent
    cdef uint8_t[::1] results = out_extent
    work.x += <const char *> &terms[0] - grad_extent.begin
    work.to += <char *> &results[0] - out_extent.begin
    with nogil:
        if threads == 1:
            _sum_counted_share(work, 0, 0)
        else:
            run_shares(_sum_counted_share, work, work.shares, threads)
    return 0


cdef void _sum_counted_share(void *all_work, int i, int worker) noexcept nogil:
    """Sum one share of the rows and items."""
    cdef const CountedWork *work = <const CountedWork *> all_work
    cdef Py_ssize_t whole = work.plan.positions * work.plan.length
    sum_counted_share(
        work.plan, whole // work.shares * i + min(<Py_ssize_t> i, whole % work.shares),
        whole // work.shares * (i + 1) + min(<Py_ssize_t> (i + 1), whole % work.shares),
        work.x, work.to, work.scratch + worker * work.room,
    )


cdef int _sum_small(const Reduction *plan, const char *x, char *to) except -1:
    """Sum what takes less time than views and giving the GIL away."""
    cdef char[2 * PAGE] room
    cdef char *scratch = room
    cdef Py_ssize_t unit
    if plan.scratch > 2 * PAGE:
        scratch = <char *> malloc(plan.scratch)
        if scratch == NULL:
            raise MemoryError
    for unit in range(plan.tiles):
        sum_unit(plan, unit, x, to, scratch, NULL)
    if scratch != room:
        free(scratch)
    return 0


@cython.boundscheck(False)      # index 0 of buffers that are not empty
@cython.wraparound(False)
cdef int _sum_large(Reduction *plan, cnp.ndarray grad, cnp.ndarray out, const char *x, char *to) except -1:
    """Sum on several threads; the views hold both arrays while the GIL is given away."""
    cdef Extent grad_extent = extent(grad), out_extent = extent(out)
    cdef const uint8_t[::1] terms = grad_extent
    cdef uint8_t[::1] results = out_extent
    cdef Py_ssize_t units = plan.tiles * plan.segments
    cdef int threads = <int> max(1, min(free_threads(), min(units, cnp.PyArray_NBYTES(grad) // SHARED)))
    cdef Py_ssize_t room = plan.scratch + 127 & ~63     # no two threads write one line
    cdef char *scratch = <char *> malloc(threads * room)
    cdef Work work = Work(plan, x, to, scratch, room, NULL, <int> units if threads > 1 else 1)
    cdef Py_ssize_t tile
    if plan.segments > 1:
        work.partials = <char *> malloc(units * 2 * plan.sums_most * plan.terms.sum_size)
    if scratch == NULL or (work.partials == NULL and plan.segments > 1):
        free(scratch)
        free(work.partials)
        raise MemoryError
    work.x += <const char *> &terms[0] - grad_extent.begin
    work.to += <char *> &results[0] - out_extent.begin
    with nogil:
        if threads == 1:
            _sum_share(&work, 0, 0)
        else:
            run_shares(_sum_share, &work, work.shares, threads)
        if plan.segments > 1:
            for tile in range(plan.tiles):
                add_segments(plan, tile, work.x, work.to, work.partials)
        free(scratch)
        free(work.partials)
    return 0


cdef void _sum_share(void *all_work, int i, int worker) noexcept nogil:
    """Sum one share of the units."""
    cdef const Work *work = <const Work *> all_work
    cdef const Reduction *plan = work.plan
    cdef Py_ssize_t units = plan.tiles * plan.segments, unit
    for unit in range(units * i // work.shares, units * (i + 1) // work.shares):
        sum_unit(plan, unit, work.x, work.to, work.scratch + worker * work.room, work.partials)
