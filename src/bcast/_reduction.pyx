# cython: cdivision=True
"""`sum_onto` and `sum_counted`: the adjoints of `replicate` and of `repeat_counted`.

In: an array, and an alignment along whose repeated axes it is summed, or counts of the rows that each item sums. Out:
`out`, filled. Here arrays become what the sum core reads, the dtypes of terms and results choose a kind of sum, axes
are read, the GIL is released and threads get their shares. What the core has no kernels for is left to NumPy.
"""

cimport cython
cimport numpy as cnp
from libc.stdlib cimport free, llabs, malloc
from libc.string cimport strcmp, strrchr

import warnings

import numpy as np
from numpy.exceptions import ComplexWarning

from bcast._runtime.core import rounded_to

from bcast._nest.core cimport Nest, coalesce_axes, copy_axis, flip_negative_axes, sort_axes
from bcast._rules.core cimport Alignment, Counts, counts_of_tuple
from bcast._runtime.core cimport (
    MAX_AXES, PAGE, count_threads, cut, overlap, run_shares, shape_of, target_number,
)
from bcast._reduce.core cimport (
    BOOL, DTYPE_COUNT, F64, FLOAT16, FLOAT32, FLOAT64, INT8, SOME_NONZERO, SOME_ZERO, U8,
    U16, U32, U64, UINT64, UINT8, Axis, CountedSum, Dtype, Place, SumPlan, Terms, add_shares, dtypes,
    idempotent_kernels, plan_counted_sum, plan_sum, sum_counted_share, sum_shares, sum_target_of, takes_turns,
)
from bcast._runtime.tuning cimport (
    SUM_NARROW_TERMS, SUM_PREFETCHED_BYTES, SUM_SHARES, SUM_SHARE_BYTES, THREAD_SHARES, WAKING_TIMES,
)

cnp.import_array()

cdef struct Work:               # what the shares of a sum have in common
    const SumPlan *plan         # or NULL, and
    const CountedSum *counted
    char *scratch               # `room` bytes for each thread
    Py_ssize_t room
    char *partials              # the sums of shares that are parts of a tile
    Py_ssize_t units            # what is cut: a plan's shares, or the rows and items of counts
    Py_ssize_t shares           # of the threads; 0 if the plan cuts none

cdef Py_ssize_t share_bytes = SUM_SHARE_BYTES      # or what a test has set

RESIZED = "`grad` and `out` expected arrays that keep their sizes during the call, got resized ones"


def set_limits(shared=SUM_SHARE_BYTES):
    """Set how many bytes a thread reads at least: for tests of threads on small arrays."""
    global share_bytes
    if shared < 1:
        raise ValueError(f"`shared` expected bytes, at least 1, got {shared}")
    share_bytes = shared


cpdef sum_onto(cnp.ndarray grad, Alignment alignment, cnp.ndarray out, cnp.ndarray times=None):
    """Sum `grad`, or `grad * times`, over the axes along which `alignment` repeats, into `out`, and return `out`.

    `grad`, of any layout, has the shape ``alignment.shape``. `out` is writeable, of the result's dtype and of any
    strides; its shape is ``alignment.source`` without some of the 1s. It may overlap `grad`: the result is as if `grad`
    had been copied first. `times` broadcasts to `grad`.
    """
    return _sum_any(grad, alignment, None, -1, out, times)


cpdef average_onto(
    cnp.ndarray data, Alignment alignment, cnp.ndarray out, double divisor, cnp.ndarray means=None, bint root=False,
    bint rough=False,
):
    """Sum `data`, or the squares of its differences from `means`, and divide the sums; write them or their roots.

    As `sum_onto`, where something is summed, kernels read `data` (`has_kernels`) and results are floats or complex.
    `means` are of float64 and broadcast to `data`. Sums of narrow floats may be `rough`: as for narrow results.
    """
    if means is not None and cnp.PyArray_TYPE(means) != cnp.NPY_DOUBLE:
        raise TypeError(f"`means` expected float64, got {means.dtype}")
    return _sum_any(data, alignment, None, -1, out, means, divisor, root, rough)


cpdef bint has_kernels(cnp.ndarray array) noexcept:
    """Whether the items of an array are numbers that the core reads."""
    return _dtype_of(array) >= 0


cpdef str kind_of_sums(cnp.dtype dtype):
    """What sums of this dtype are: "b" bools, "i" integers, "f" floats, "c" complex; "" if the core makes none.

    Floats of other packages that are no row of the table are rounded from float64.
    """
    cdef int number = dtype.type_num
    if number == cnp.NPY_BOOL:
        return "b"
    if cnp.PyTypeNum_ISINTEGER(number):
        return "i"
    if _row_of(dtype) >= 0:
        return "c" if cnp.PyTypeNum_ISCOMPLEX(number) else "f"
    return "f" if _wider(dtype) is not None else ""


cpdef converted_terms(cnp.dtype dtype):
    """float32 or float64 if terms of this dtype are to be converted to it: another package's numbers that fit; or None.
    """
    if not cnp.PyTypeNum_ISUSERDEF(dtype.type_num) or _row_of(dtype) >= 0:
        return None
    if np.can_cast(dtype, np.float32):
        return np.dtype(np.float32)
    return np.dtype(np.float64) if np.can_cast(dtype, np.float64) else None


cpdef sum_counted(cnp.ndarray grad, Counts counts, int along, cnp.ndarray out):
    """Sum as many rows of `grad` for each item of `out` as its count says, into `out`, and return `out`.

    Axis `along` of `grad` has length ``counts.total``, that of `out` ``counts.size``. For the rest, see `sum_onto`.
    """
    if not 0 <= along < cnp.PyArray_NDIM(grad):
        raise ValueError(f"`axis` expected an axis of data of shape {shape_of(grad)}, got {along}")
    return _sum_any(grad, None, counts, along, out, None)


cpdef bint reduce_onto(cnp.ndarray data, Alignment alignment, cnp.ndarray out, int operation) except -1:
    """Reduce `data` along axes on which `alignment` repeats, into `out`, by an operation that may take a term twice.

    GREATEST and LEAST write items, NaN if there is one; SOME_NONZERO and SOME_ZERO write masks, unsigned integers as
    long as items, which are 0 where no term is, or is zero. Arrays are as for `sum_onto`, and something is reduced. It
    tells whether kernels read `data`, and does nothing otherwise.
    """
    cdef cnp.ndarray dst = out
    cdef Terms terms
    if not _choose_idempotent(&terms, data, operation):
        return False
    if dtypes[terms.result].size != cnp.PyArray_ITEMSIZE(out):
        raise TypeError(f"`out` expected items of {dtypes[terms.result].size} bytes, got {out.dtype}")
    _check_sizes(data, alignment.source, cnp.PyArray_SIZE(out))
    if cnp.PyArray_SIZE(data) == 0:
        raise ValueError(RESIZED)
    if not cnp.PyArray_ISNOTSWAPPED(data):
        data = cnp.PyArray_FROM_OF(data, cnp.NPY_ARRAY_NOTSWAPPED | cnp.NPY_ARRAY_ENSUREARRAY)
    if not _takes_results(data, alignment, out):
        dst = np.empty(shape_of(out), np.asarray(out).dtype.newbyteorder("="))
    _sum(
        &terms, data, None, alignment, None, -1, dst, cnp.PyArray_NBYTES(data),
        cnp.PyArray_SIZE(dst) * cnp.PyArray_ITEMSIZE(dst),
    )
    if dst is not out:
        np.copyto(np.asarray(out), dst)
    return True


cdef bint _takes_results(cnp.ndarray data, Alignment alignment, cnp.ndarray out) except -1:
    """Whether results can be written to `out` while `data` is read; without an alignment, by counts."""
    if not cnp.PyArray_IS_C_CONTIGUOUS(out) and (alignment is None or not _lies_like(data, alignment.source, out)):
        return False
    return cnp.PyArray_ISNOTSWAPPED(out) and not overlap(data, out)


cdef _sum_any(
    cnp.ndarray grad, Alignment alignment, Counts counts, int along, cnp.ndarray out, cnp.ndarray times,
    double divisor=0, bint root=False, bint rough=False,
):
    """Sum by an alignment or, along an axis of 0 or more, by counts: what the core reads, into what it writes."""
    cdef cnp.ndarray dst = out
    cdef Py_ssize_t items, results
    cdef Terms terms
    cdef bint chosen = False
    if cnp.PyTypeNum_ISUSERDEF(cnp.PyArray_TYPE(out)) and _dtype_of(out) < 0 and _wider(out.dtype) is not None:
        return _sum_and_round(grad, alignment, counts, along, out, times, divisor, root)
    if cnp.PyTypeNum_ISUSERDEF(cnp.PyArray_TYPE(grad)) and (times is None or divisor != 0):
        grad = _converted(grad, out)
    if times is not None:
        _check_times(grad, times)
        # Where nothing is summed, products are results.
        chosen = cnp.PyArray_SIZE(grad) != cnp.PyArray_SIZE(out) and _choose_products(&terms, grad, times, out)
        if not chosen and divisor == 0:
            grad, times = _product(np.asarray(grad), np.asarray(times), np.asarray(out)), None
    if cnp.PyArray_ISCOMPLEX(grad) and not cnp.PyArray_ISCOMPLEX(out) and (
        cnp.PyArray_ISNUMBER(out) or _dtype_of(out) >= 0
    ):
        # NumPy's own warning, which may be an error and run code of the user's: before sizes are compared.
        warnings.warn("Casting complex values to real discards the imaginary part", ComplexWarning, stacklevel=1)
        grad = np.asarray(grad).real
    items, results = cnp.PyArray_SIZE(grad), cnp.PyArray_SIZE(out)
    if along < 0:
        _check_sizes(grad, alignment.source, results)
    else:
        _check_counts(grad, counts, along, out)
    if results == 0:
        return out
    if items == 0:
        np.asarray(out)[...] = 0
        return out
    if not chosen and (
        along < 0 and items == results or times is not None or not _choose_terms(&terms, grad, out, rough)
    ):
        if divisor != 0:    # by the same code
            raise ValueError(RESIZED)
        if along < 0:
            _leave_to_numpy(grad, alignment, out)
        else:
            _leave_counts_to_numpy(grad, counts, along, out)
        return out
    if cnp.PyArray_ISCOMPLEX(grad) and _has_gaps(grad):
        grad = np.array(np.asarray(grad), order="K")    # a third of the time of sums of rows of two parts
    if not cnp.PyArray_ISNOTSWAPPED(grad):
        grad = cnp.PyArray_FROM_OF(grad, cnp.NPY_ARRAY_NOTSWAPPED | cnp.NPY_ARRAY_ENSUREARRAY)
    if times is not None and not cnp.PyArray_ISNOTSWAPPED(times):
        times = cnp.PyArray_FROM_OF(times, cnp.NPY_ARRAY_NOTSWAPPED | cnp.NPY_ARRAY_ENSUREARRAY)
    if (
        not _takes_results(grad, alignment, out) or times is not None and overlap(times, out)
        or cnp.PyArray_ISCOMPLEX(out) and not cnp.PyArray_ISCOMPLEX(grad)
    ):
        like = np.asarray(out) if cnp.PyArray_ISCOMPLEX(grad) else np.asarray(out).real
        dst = np.empty(like.shape, like.dtype.newbyteorder("="))
    if along >= 0:
        counts.keep_from(dst)
    terms.divisor, terms.root, terms.deviates = divisor, root, False
    if divisor != 0:
        if not dtypes[terms.result].is_float:
            raise ValueError(f"`out` expected floats, got {out.dtype}")
        terms.writes, terms.deviates = False, times is not None
    _sum(
        &terms, grad, times, alignment, counts, along, dst, items * cnp.PyArray_ITEMSIZE(grad),
        results * cnp.PyArray_ITEMSIZE(dst),
    )
    if dst is not out:
        np.copyto(np.asarray(out), dst)
    return out


cdef _sum_and_round(
    cnp.ndarray grad, Alignment alignment, Counts counts, int along, cnp.ndarray out, cnp.ndarray times,
    double divisor, bint root,
):
    """Sum to float64 what is to be floats of another package that are no row of the table, and round the sums."""
    wide = np.empty(shape_of(out), np.float64)
    _sum_any(grad, alignment, counts, along, wide, times, divisor, root, False)
    np.copyto(np.asarray(out), rounded_to(wide, np.asarray(out).dtype))
    return out


cdef cnp.ndarray _converted(cnp.ndarray grad, cnp.ndarray out):
    """Convert terms of another package that are to be summed to floats, if all of its numbers fit a dtype of the table.
    """
    cdef int result = _dtype_of(out)
    wide = converted_terms(np.asarray(grad).dtype) if result >= 0 and dtypes[result].is_float else None
    return grad if wide is None else np.asarray(grad).astype(wide)


cdef bint _has_gaps(cnp.ndarray array) noexcept:
    """Whether no item lies beside another one along any axis."""
    cdef int i
    for i in range(cnp.PyArray_NDIM(array)):
        if cnp.PyArray_DIM(array, i) > 1 and llabs(cnp.PyArray_STRIDE(array, i)) <= cnp.PyArray_ITEMSIZE(array):
            return False
    return True


@cython.boundscheck(False)      # source has grad's rank
@cython.wraparound(False)
cdef bint _lies_like(cnp.ndarray grad, tuple source, cnp.ndarray out):
    """Whether the axes of `out` lie side by side in the order in which `_read_axes` reads those of `grad`."""
    cdef Py_ssize_t[MAX_AXES] step, stride, length
    cdef Py_ssize_t own, expected = cnp.PyArray_ITEMSIZE(out)
    cdef int n = 0, k = 0, i, j
    for i in range(cnp.PyArray_NDIM(grad)):
        if <Py_ssize_t> source[i] == 1:
            continue
        while k < cnp.PyArray_NDIM(out) and cnp.PyArray_DIM(out, k) == 1:
            k += 1
        if k == cnp.PyArray_NDIM(out) or cnp.PyArray_DIM(out, k) != <Py_ssize_t> source[i]:
            return False
        own = llabs(cnp.PyArray_STRIDE(grad, i))
        j = n
        while j > 0 and (step[j - 1] < own or own == 0) and step[j - 1] != 0:
            step[j], stride[j], length[j] = step[j - 1], stride[j - 1], length[j - 1]
            j -= 1
        step[j], stride[j], length[j] = own, cnp.PyArray_STRIDE(out, k), cnp.PyArray_DIM(out, k)
        n += 1
        k += 1
    for j in range(n - 1, -1, -1):
        if stride[j] != expected:
            return False
        expected *= length[j]
    return True


cdef cnp.ndarray _product(grad, times, out):
    """`grad * times`; exact where it is of floats narrower than float64, and summed as such."""
    dtype = np.multiply.resolve_dtypes((grad.dtype, times.dtype, None))[2]
    is_narrow = (dtype.kind == "f" and dtype.itemsize < 8) or _wider(dtype) is not None
    to_float = np.can_cast(out.dtype, np.complex128) and not np.can_cast(out.dtype, np.int64) or _wider(out.dtype)
    return np.asarray(np.multiply(grad, times, dtype=np.float64 if is_narrow and to_float else None))


cdef int _sum(
    Terms *terms, cnp.ndarray grad, cnp.ndarray times, Alignment alignment, Counts counts, int along, cnp.ndarray out,
    Py_ssize_t nbytes, Py_ssize_t out_bytes,
) except -1:
    """Read the axes, plan a sum, and make it."""
    cdef Axis[MAX_AXES + 1] axis
    cdef Place first
    cdef int n
    first.src = <const char *> cnp.PyArray_DATA(grad)
    first.times = <const char *> cnp.PyArray_DATA(times) if times is not None else NULL
    first.dst = <char *> cnp.PyArray_DATA(out)
    if along < 0:
        n = _read_axes(axis, grad, times, alignment.source, out_bytes, &first, &terms.factor)
        nbytes //= terms.factor
        if terms.idempotent:
            terms.factor = 1
        terms.writes = terms.writes and terms.factor == 1
    else:
        n = _read_counted_axes(axis, grad, along, counts.size, out_bytes, &first)
        if n > 2 and axis[n - 1].kept and axis[n - 2].kept and _sum_in_order(grad, counts, along, out):
            return 0
    if axis[n - 1].src_step != terms.size:
        terms.packed = True
    terms.ahead = 2 * PAGE if nbytes >= SUM_PREFETCHED_BYTES else 0
    if times is not None:
        _choose_multiplier(terms, &axis[n - 1])
    cdef bint in_turns = along < 0 and n == 3 and not terms.idempotent and takes_turns(terms, axis)
    if not cnp.PyArray_IS_C_CONTIGUOUS(out):
        _take_strides(axis, n, out, &first)
    if along < 0 and not in_turns:
        _choose_narrow(terms, axis, n)
        return _sum_along(first, terms, axis, n, grad, times, out, nbytes)
    if along < 0:
        axis[1].dst_step = axis[2].length * axis[2].dst_step
        counts = counts_of_tuple((axis[1].length,))
    return _sum_by_counts(first, terms, axis, n, counts, grad, out, max(nbytes, out_bytes))


# Each plan in a frame of its own, lest small sums go to memory that is in no cache.


cdef int _sum_along(
    Place first, const Terms *terms, const Axis *axis, int n, cnp.ndarray grad, cnp.ndarray times, cnp.ndarray out,
    Py_ssize_t nbytes,
) except -1:
    cdef SumPlan plan
    cdef Work work
    cdef Py_ssize_t partials = 0
    plan.first, plan.terms = first, terms
    plan_sum(&plan, axis, n, SUM_SHARES)
    work.plan = &plan
    work.units = work.shares = plan.shares.count
    work.room = plan.scratch
    if plan.shares.each > 1:
        partials = work.units * 2 * plan.block.items * terms.sum_size
    return _run(&work, nbytes, partials, grad, times, out)


cdef int _sum_by_counts(
    Place first, const Terms *terms, const Axis *axis, int n, Counts counts, cnp.ndarray grad, cnp.ndarray out,
    Py_ssize_t nbytes,
) except -1:
    cdef CountedSum plan
    cdef Work work
    plan.first, plan.terms, plan.counts.list = first, terms, counts.list
    plan_counted_sum(&plan, axis, n)
    work.plan = NULL
    work.counted = &plan
    work.units = plan.positions * plan.length
    work.shares = 0
    work.room = plan.scratch
    return _run(&work, nbytes, 0, grad, None, out)


cdef int _run(Work *work, Py_ssize_t nbytes, Py_ssize_t partials, cnp.ndarray grad, times, cnp.ndarray out) except -1:
    """Make a planned sum of so many bytes, on several threads if it is worth it; `partials` of it are added then."""
    cdef char[2 * PAGE + 192] local     # a block of 8 KiB, rounded up; malloc would take a fifth of the time
    cdef char *memory = local
    cdef int threads = count_threads(nbytes, share_bytes, WAKING_TIMES // 2, work.units)
    if threads == 1 or work.shares == 0:
        work.shares = min(threads * THREAD_SHARES, work.units) if threads > 1 else 1
    work.room = work.room + 127 & ~63       # no two threads write one line
    if threads * work.room + partials > 2 * PAGE + 128:
        memory = <char *> malloc(threads * work.room + partials + 64)
        if memory == NULL:
            raise MemoryError
    work.scratch = <char *> (<size_t> memory + 63 & ~63)     # accumulators cross no lines
    work.partials = work.scratch + threads * work.room if partials else NULL
    if nbytes < share_bytes and not partials:
        _sum_share(work, 0, 0)
    else:
        _held = grad, times, out    # so that no other thread can resize them
        with nogil:
            run_shares(_sum_share, work, <int> work.shares, threads)
            if partials:
                add_shares(work.plan, work.partials)
    if memory != local:
        free(memory)
    return 0


cdef void _sum_share(void *all_work, int i, int worker) noexcept nogil:
    """Sum one share of the work."""
    cdef const Work *work = <const Work *> all_work
    cdef int shares = <int> work.shares
    cdef Py_ssize_t begin = cut(work.units, i, shares), end = cut(work.units, i + 1, shares)
    cdef char *scratch = work.scratch + worker * work.room
    if work.plan != NULL:
        sum_shares(work.plan, begin, end, scratch, work.partials)
    else:
        sum_counted_share(work.counted, begin, end, scratch)


cdef bint _sum_in_order(grad, Counts counts, int along, out) except -1:
    """Sum into a result whose axes are in the order of `grad`'s memory, if `out` has another: its rows are longer."""
    grad, out = np.asarray(grad), np.asarray(out)
    order = (-np.abs(grad.strides)).argsort(kind="stable").tolist()
    if order == list(range(grad.ndim)):
        return False
    places = np.argsort(order)
    result = np.empty(out.transpose(order).shape, out.dtype)
    _sum_any(grad.transpose(order), None, counts, places[along], result, None)
    np.copyto(out, result.transpose(places))
    return True


@cython.boundscheck(False)      # source has grad's rank
@cython.wraparound(False)
cdef int _check_sizes(cnp.ndarray grad, tuple source, Py_ssize_t results) except -1:
    """Compare the arrays with the alignment again: code of the user's may have run since it was made."""
    cdef Py_ssize_t sums = 1, length
    cdef bint fits = len(source) == cnp.PyArray_NDIM(grad)
    cdef int i
    for i in range(cnp.PyArray_NDIM(grad) if fits else 0):
        length = source[i]
        sums *= length
        fits = fits and (length == 1 or length == cnp.PyArray_DIM(grad, i))
    if not fits or sums != results:
        raise ValueError(RESIZED)
    return 0


cdef int _check_times(cnp.ndarray grad, cnp.ndarray times) except -1:
    """The same for what broadcasts to `grad`."""
    cdef int more = cnp.PyArray_NDIM(grad) - cnp.PyArray_NDIM(times), i
    cdef bint fits = more >= 0
    for i in range(cnp.PyArray_NDIM(times) if fits else 0):
        fits = fits and (
            cnp.PyArray_DIM(times, i) == 1 or cnp.PyArray_DIM(times, i) == cnp.PyArray_DIM(grad, more + i)
        )
    if not fits:
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
    """What nothing is summed of, or no kernel sums: copies, and dtypes such as long double and objects."""
    grad, out = np.asarray(grad), np.asarray(out)
    pairs = enumerate(zip(alignment.shape, alignment.source))
    axes = tuple([i for i, (length, kept) in pairs if kept != length])
    if axes:
        # Without `keepdims` a sum of objects is no array.
        grad = np.add.reduce(grad, axes, _dtype_of_terms(grad.dtype, out.dtype), keepdims=True)
    if not np.can_cast(grad.dtype, out.dtype) or np.may_share_memory(grad, out):
        grad = rounded_to(grad, out.dtype)      # which may fail or warn: before anything is written
    np.copyto(out, grad.reshape(out.shape), "unsafe")


cdef _leave_counts_to_numpy(grad, Counts counts, int along, out):
    """The same for counts: runs of no terms, for which `reduceat` gives the next term, are left out."""
    grad, out = np.asarray(grad), np.asarray(out)
    lengths = counts.to_array()
    kept = lengths != 0
    starts = (lengths.cumsum() - lengths)[kept]
    result = np.zeros(out.shape, out.dtype.newbyteorder("="))
    dtype = _dtype_of_terms(grad.dtype, out.dtype)
    result[(slice(None),) * along + (kept,)] = rounded_to(np.add.reduceat(grad, starts, along, dtype), result.dtype)
    np.copyto(out, result)


cdef _dtype_of_terms(own, out):
    """The dtype to which NumPy converts terms; None for their own. Units of time are no matter of it."""
    if own.num in (cnp.NPY_LONGDOUBLE, cnp.NPY_CLONGDOUBLE) and kind_of_sums(out) in ("f", "c"):
        return None     # what is summed in more precision is rounded once
    wide = None if out.kind in "iu" else _wider(own) or _wider(out)
    return wide or (None if own == out else out.newbyteorder("="))


cdef _wider(dtype):
    """The dtype in which floats of other packages are summed, such as float8; None for all else."""
    if not cnp.PyTypeNum_ISUSERDEF(dtype.num) or not np.can_cast(dtype, np.float64):
        return None
    half = np.asarray(0.5).astype(dtype)    # of an integer, nothing is left
    return np.dtype(np.float64) if half.astype(np.float64) == 0.5 else None


cdef bint _choose_terms(Terms *terms, cnp.ndarray grad, cnp.ndarray out, bint rough) noexcept:
    """Choose how terms are read, summed and written; tell whether there is a way."""
    cdef int term = _dtype_of(grad), result = _dtype_of(out)
    cdef int kind, size, out_size
    cdef bint is_float
    if term < 0 or result < 0 or result == BOOL:
        return False
    is_float = dtypes[term].is_float
    if is_float and not dtypes[result].is_float:
        return False
    size, out_size, kind = dtypes[term].size, dtypes[result].size, dtypes[term].kind
    if dtypes[result].is_float and (not is_float or size < out_size and not rough):
        kind = F64
    elif not is_float and size != out_size:
        kind = U64
    terms.packed = kind == F64 and term != FLOAT64 or kind == U64 and size < 8
    terms.as_real = terms.compensated = kind == F64
    terms.dtype = FLOAT32 if kind == U32 else term      # not widened
    if terms.packed:
        size = 8
    terms.target = sum_target_of[target_number]
    terms.kernels = &terms.target.kernels[kind]
    terms.writes = not terms.packed and (term == result or not is_float and size == out_size)
    terms.size = size
    terms.sum_size = size if kind <= U64 else 8
    terms.result = result
    terms.times, terms.multiplier, terms.folds, terms.factor, terms.idempotent = -1, NULL, False, 1, False
    return True


cdef bint _choose_products(Terms *terms, cnp.ndarray grad, cnp.ndarray times, cnp.ndarray out) noexcept:
    """The same for products, which are packed as float64 or as 64 bits."""
    cdef int term = _dtype_of(grad), factor = _dtype_of(times), result = _dtype_of(out), kind = U64
    if term < 0 or factor < 0 or result < 0 or cnp.PyArray_ISCOMPLEX(grad) or cnp.PyArray_ISCOMPLEX(times):
        return False
    if dtypes[term].is_float or dtypes[factor].is_float:
        kind = F64
        if not dtypes[result].is_float:
            return False
    elif (
        dtypes[result].is_float or term == factor == BOOL   # whose product is a bool; that of these is a float:
        or term != factor and (term == UINT64 or factor == UINT64)
        or dtypes[result].size > max(dtypes[term].size, dtypes[factor].size)    # to which products wrap
    ):
        return False
    terms.target = sum_target_of[target_number]
    terms.kernels = &terms.target.kernels[kind]
    terms.dtype, terms.times, terms.result = term, factor, result
    terms.as_real = terms.compensated = kind == F64
    terms.packed, terms.writes = True, False
    terms.size = terms.sum_size = 8
    terms.factor, terms.idempotent = 1, False
    return True


cdef bint _choose_idempotent(Terms *terms, cnp.ndarray data, int operation) noexcept:
    """The same for an operation that may take a term twice. Results are items, or masks that are as long."""
    cdef int dtype = _dtype_of(data)
    if dtype < 0 or cnp.PyArray_ISCOMPLEX(data):
        return False
    terms.target = sum_target_of[target_number]
    terms.kernels = idempotent_kernels(target_number, operation, dtype)
    terms.dtype = terms.result = dtype
    if operation == SOME_NONZERO or operation == SOME_ZERO:
        terms.result = _masks_of(dtypes[dtype].size)
    terms.size = terms.sum_size = dtypes[dtype].size
    terms.as_real = terms.packed = terms.compensated = False
    terms.writes = terms.idempotent = True
    terms.times, terms.multiplier, terms.folds, terms.factor = -1, NULL, False, 1
    terms.divisor, terms.root, terms.deviates = 0, False, False
    return True


cdef int _masks_of(int size) noexcept:
    """The dtype of masks that are as long as items."""
    return UINT8 + (size > 1) + (size > 2) + (size > 4)


cdef void _choose_narrow(Terms *terms, const Axis *axis, int n) noexcept:
    """Sum 8- and 16-bit integers in as many bits, if results have no more: rows as they lie, and runs of a vector."""
    cdef const Dtype *dtype = &dtypes[terms.dtype]
    cdef const Axis *run = &axis[n - 1]
    cdef Py_ssize_t length = run.length
    if (
        terms.idempotent
        or dtype.size > 2 or dtype.is_float or terms.dtype == BOOL or terms.as_real or terms.times >= 0
        or dtypes[terms.result].size > dtype.size or run.src_step != dtype.size
    ):
        return
    if run.kept and n > 1 and not axis[n - 2].kept and (length == 2 or length == 4):    # may take turns
        length *= axis[n - 2].length
    elif run.kept:
        length = SUM_NARROW_TERMS
    if length < SUM_NARROW_TERMS:
        return      # shorter runs are packed, several of them at once
    terms.kernels = &terms.target.kernels[U8 if dtype.size == 1 else U16]
    terms.packed = False
    terms.size = terms.sum_size = dtype.size
    terms.writes = terms.factor == 1 and dtypes[terms.result].size == dtype.size


cdef void _choose_multiplier(Terms *terms, const Axis *items) noexcept:
    """Choose the kernel that multiplies two arrays as they lie, if they do so side by side."""
    cdef const Dtype *dtype = &dtypes[terms.dtype]
    terms.multiplier = NULL
    terms.folds = False
    if not dtype.is_float or items.src_step != dtype.size or dtype.kind == F64 and terms.dtype != FLOAT64:
        return      # a kernel reads the dtype of its kind alone
    if terms.deviates or terms.dtype == terms.times and items.times_step == dtype.size:
        terms.multiplier = &terms.target.kernels[dtype.kind]
        # Rounded far below the result, or compensated.
        terms.folds = not terms.deviates and dtypes[terms.result].size <= dtype.size


cdef int _dtype_of(cnp.ndarray array) noexcept:
    """The row of the items of an array, or of their parts, in the table of dtypes; -1 for what no kernel sums."""
    return _row_of(<cnp.dtype> cnp.PyArray_DESCR(array))


cdef int _row_of(cnp.dtype dtype) noexcept:
    """The same for a dtype."""
    cdef int number = dtype.type_num
    cdef Py_ssize_t size = dtype.itemsize
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
    return _user_row_of(dtype) if cnp.PyTypeNum_ISUSERDEF(number) else -1


cdef int _user_row_of(cnp.dtype dtype) noexcept:
    """The row that has the name of the items' type; asked in C, where nothing can fail."""
    cdef int i
    cdef const char *name = dtype.typeobj.tp_name
    cdef const char *dot = strrchr(name, b".")
    for i in range(DTYPE_COUNT):
        if dtypes[i].name != NULL and dtypes[i].size == dtype.itemsize:
            if strcmp(name if dot == NULL else dot + 1, dtypes[i].name) == 0:
                return i
    return -1


cdef enum:      # the operands of a sum's nest
    GRAD
    TIMES
    SUMS
    SUM_OPERANDS


cdef int _read_axes(
    Axis *axes, cnp.ndarray grad, cnp.ndarray times, tuple source, Py_ssize_t out_bytes, Place *first,
    Py_ssize_t *factor,
) except -1:
    """Read the axes longer than 1, in the order of `grad`'s memory, neighbours of one kind as one; return how many.

    Axes that run backwards are flipped, to begin at `first`; `out` is contiguous. Summed axes of stride 0 are left out,
    and `factor` is multiplied by their lengths. There is at least one axis.
    """
    cdef Nest nest
    cdef Py_ssize_t sum_stride = _lay_out(&nest, grad, times, source, out_bytes, first)

    _leave_out_repeated(&nest, factor)
    flip_negative_axes(&nest, GRAD)
    sort_axes(&nest, GRAD)
    _add_parts(&nest, grad, sum_stride)
    coalesce_axes(&nest)
    return _give_axes(&nest, axes, first)


cdef int _read_counted_axes(
    Axis *axes, cnp.ndarray grad, int along, Py_ssize_t items, Py_ssize_t out_bytes, Place *first,
) except -1:
    """The same where axis `along` is summed by counts, whose sums are `items`. It is read as it runs, of any length."""
    cdef Nest nest
    cdef Py_ssize_t sum_stride = _lay_out_counted(&nest, grad, along, items, out_bytes, first)
    cdef Py_ssize_t along_sums = nest.stride[SUMS][nest.rank], stride = cnp.PyArray_STRIDE(grad, along)
    cdef int counted

    flip_negative_axes(&nest, GRAD)
    sort_axes(&nest, GRAD)
    _add_parts(&nest, grad, sum_stride)
    coalesce_axes(&nest)
    counted = 0
    while nest.stride[SUMS][counted]:
        counted += 1
    if stride < 0:      # flipped, with the others
        nest.data[GRAD] -= (nest.shape[counted] - 1) * stride
        nest.stride[GRAD][counted] = stride
    _give_axes(&nest, axes, first)
    axes[counted].dst_step = along_sums
    return nest.rank


@cython.boundscheck(False)      # source has grad's rank
@cython.wraparound(False)
cdef Py_ssize_t _lay_out(
    Nest *nest, cnp.ndarray grad, cnp.ndarray times, tuple source, Py_ssize_t out_bytes, const Place *first,
) except -1:
    """Describe the axes longer than 1 of a sum; return the bytes of a result."""
    cdef int more = 0 if times is None else cnp.PyArray_NDIM(grad) - cnp.PyArray_NDIM(times), i, n = 0
    cdef Py_ssize_t sum_stride = out_bytes, length

    _begin_nest(nest, first)
    for i in range(cnp.PyArray_NDIM(grad)):
        length = cnp.PyArray_DIM(grad, i)
        if length == 1:
            continue
        nest.shape[n] = length
        nest.stride[GRAD][n] = cnp.PyArray_STRIDE(grad, i)
        nest.stride[TIMES][n] = nest.stride[SUMS][n] = 0
        if times is not None and i >= more and cnp.PyArray_DIM(times, i - more) != 1:
            nest.stride[TIMES][n] = cnp.PyArray_STRIDE(times, i - more)
        if <Py_ssize_t> source[i] != 1:
            sum_stride //= length
            nest.stride[SUMS][n] = sum_stride
        n += 1
    nest.rank = n
    return sum_stride


cdef Py_ssize_t _lay_out_counted(
    Nest *nest, cnp.ndarray grad, int along, Py_ssize_t items, Py_ssize_t out_bytes, const Place *first,
) noexcept:
    """The same of a sum by counts. The counted axis is one that is summed; its stride in `out` is put behind the last.
    """
    cdef Py_ssize_t sum_stride = out_bytes, along_sums = 0, length
    cdef int i, n = 0

    _begin_nest(nest, first)
    for i in range(cnp.PyArray_NDIM(grad)):
        length = cnp.PyArray_DIM(grad, i)
        if length == 1 and i != along:
            continue
        nest.shape[n] = length
        nest.stride[GRAD][n] = cnp.PyArray_STRIDE(grad, i)
        nest.stride[TIMES][n] = nest.stride[SUMS][n] = 0
        if i == along:
            sum_stride //= items
            along_sums = sum_stride
        else:
            sum_stride //= length
            nest.stride[SUMS][n] = sum_stride
        n += 1
    nest.rank = n
    nest.stride[SUMS][n] = along_sums
    return sum_stride


cdef inline void _begin_nest(Nest *nest, const Place *first) noexcept:
    """Note the operands of a sum, and where they begin."""
    nest.n = SUM_OPERANDS
    nest.data[GRAD], nest.data[TIMES], nest.data[SUMS] = <char *> first.src, <char *> first.times, first.dst


cdef inline void _leave_out_repeated(Nest *nest, Py_ssize_t *factor) noexcept:
    """Leave out summed axes of stride 0, along which the terms are the same: multiply a factor by their lengths."""
    cdef int axis, kept = 0
    for axis in range(nest.rank):
        if nest.stride[GRAD][axis] == 0 and nest.stride[TIMES][axis] == 0 and nest.stride[SUMS][axis] == 0:
            factor[0] *= nest.shape[axis]
            continue
        if kept != axis:
            copy_axis(nest, kept, axis)
        kept += 1
    nest.rank = kept


cdef inline void _add_parts(Nest *nest, cnp.ndarray grad, Py_ssize_t sum_stride) noexcept:
    """Add an axis of a single item if there is none, and one of the two parts of complex numbers."""
    cdef Py_ssize_t size = cnp.PyArray_ITEMSIZE(grad)
    if nest.rank == 0:
        _add_inner_axis(nest, 1, size, sum_stride)
    if cnp.PyArray_ISCOMPLEX(grad):
        _add_inner_axis(nest, 2, size // 2, sum_stride // 2)


cdef inline void _add_inner_axis(Nest *nest, Py_ssize_t length, Py_ssize_t stride, Py_ssize_t sum_stride) noexcept:
    nest.shape[nest.rank] = length
    nest.stride[GRAD][nest.rank], nest.stride[TIMES][nest.rank] = stride, 0
    nest.stride[SUMS][nest.rank] = sum_stride
    nest.rank += 1


cdef int _give_axes(const Nest *nest, Axis *axes, Place *first) noexcept:
    """Write the nest as the axes that the sum core plans for; return how many there are."""
    cdef int i
    for i in range(nest.rank):
        axes[i] = Axis(
            nest.shape[i], nest.stride[GRAD][i], nest.stride[SUMS][i], nest.stride[SUMS][i] != 0, nest.stride[TIMES][i],
        )
    first.src, first.times, first.dst = nest.data[GRAD], nest.data[TIMES], nest.data[SUMS]
    return nest.rank


cdef void _take_strides(Axis *axis, int n, cnp.ndarray out, Place *first) noexcept:
    """Give axes that were read for a result in C order the steps of one that lies like the data.

    The plan stays as it is, and so do the bits. The parts of complex numbers keep their step.
    """
    cdef Py_ssize_t[MAX_AXES + 1] in_c_order
    cdef Py_ssize_t step = cnp.PyArray_ITEMSIZE(out), stride
    cdef int i, j
    for j in range(n):
        in_c_order[j] = axis[j].dst_step
    for i in range(cnp.PyArray_NDIM(out) - 1, -1, -1):
        if cnp.PyArray_DIM(out, i) == 1:
            continue
        stride = cnp.PyArray_STRIDE(out, i)
        for j in range(n):
            if llabs(in_c_order[j]) == step:
                axis[j].dst_step = stride if in_c_order[j] > 0 else -stride
        step *= cnp.PyArray_DIM(out, i)
    first.dst = <char *> cnp.PyArray_DATA(out)
    for j in range(n):
        if in_c_order[j] < 0:
            first.dst -= (axis[j].length - 1) * axis[j].dst_step
