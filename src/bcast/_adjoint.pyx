# cython: cdivision=True
"""`sum_onto`: the adjoint of `replicate`, which sums an array over the axes along which an alignment repeats.

Here the dtypes of terms and results choose a kind of sum, axes are read from the arrays, the GIL is given away, and
threads get their shares. `_sum/plan.pyx` plans the sum, `_sum/walk.pyx` walks it; what they do not do is left to NumPy.
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
from bcast._runtime.cpu cimport target_number
from bcast._runtime.extent cimport Extent, extent, overlap
from bcast._runtime.arrays cimport shape_of
from bcast._sum.plan cimport (
    BFLOAT16, BOOL, F16, F64, FEWEST, FLOAT16, FLOAT32, FLOAT64, INT8, LONG, MAX_AXES, U8, U64, UINT8, Axis, Pack,
    Reduction, SumLeaf, Terms, interleaved, is_short, plan_axes,
)
from bcast._sum.walk cimport add_segments, sum_unit
from bcast._runtime.threads cimport free_threads, run_shares

cdef extern from "_sum/simd/leaves.h":
    const SumLeaf *leaf_of "bcast_sum_leaf_of"(int target)

cdef extern from "_runtime/stream.h":
    void bcast_store_fence() noexcept nogil
    bint pages_resident "bcast_pages_resident"(const uint8_t *out, size_t size) noexcept nogil

cdef extern from "_sum/simd/term.h":
    Pack pack_widened "bcast_pack_widened"(int term, int kind, int swapped)
    Pack pack_same "bcast_pack_same"(int size, int swapped)

cnp.import_array()

cdef enum:
    SMALL = 524288      # bytes; below, views and giving the GIL away and back show
    ROOM = 8192         # bytes of scratch that the stack has room for
    DIRECT = 2048       # bytes; 16 of accumulators for 4 or more of terms fit ROOM, and planning would show

cdef struct Work:       # what the shares of a sum have in common
    const Reduction *plan
    const char *x
    char *to
    char *scratch       # `room` bytes for each thread
    Py_ssize_t room
    char *partials      # of all segments
    int shares

cdef Py_ssize_t SHARED = 512 << 10      # bytes; a thread that would read less costs more than it saves
cdef Py_ssize_t FAR = 18 << 20          # bytes; much of what is larger comes from past the caches, of twice that all

cdef int bfloat16_number = -1       # of the dtype that another package has added, once an array of it was seen


def set_limits(shared=512 << 10, far=18 << 20):
    """Set from which size on `grad` is treated as a large one: for tests of small arrays.

    Parameters
    ----------
    shared : int, optional
        Bytes that a thread reads at least.
    far : int, optional
        Bytes from which on runs are read in several streams.
    """
    global SHARED, FAR
    SHARED = shared
    FAR = far


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
    cdef Reduction plan
    cdef Axis[MAX_AXES] axis
    cdef cnp.ndarray result
    cdef const char *x = <const char *> cnp.PyArray_DATA(grad)
    cdef char *to = <char *> cnp.PyArray_DATA(out)
    cdef Py_ssize_t items = cnp.PyArray_SIZE(grad), sums = cnp.PyArray_SIZE(out)
    cdef int n
    if cnp.PyArray_ISCOMPLEX(grad) and _is_real(out):
        # NumPy's own warning, which may be an error and run code of the user's: before sizes are compared.
        warnings.warn("Casting complex values to real discards the imaginary part", ComplexWarning, stacklevel=1)
        return sum_onto(np.asarray(grad).real, alignment, out)
    _check_sizes(grad, alignment, out)
    if sums == 0:
        return out
    if items == 0:
        np.asarray(out)[...] = 0
        return out
    if items == sums or not _choose_terms(&plan.terms, grad, out):
        _leave_to_numpy(grad, alignment, out)
        return out
    if (
        not cnp.PyArray_ISNOTSWAPPED(out) or overlap(grad, out)
        or cnp.PyArray_ISCOMPLEX(out) and not cnp.PyArray_ISCOMPLEX(grad)
    ):
        target = np.asarray(out)
        like = target.real if cnp.PyArray_ISCOMPLEX(out) and not cnp.PyArray_ISCOMPLEX(grad) else target
        result = np.empty(shape_of(out), like.dtype.newbyteorder("="))
        np.copyto(target, sum_onto(grad, alignment, result))
        return out
    plan.begin = to
    plan.strided = 0 if cnp.PyArray_IS_C_CONTIGUOUS(out) else _read_strides(plan.stride, grad, out)
    n = _read_axes(axis, grad, alignment.source, out, &x, &to)
    if plan.strided:
        _lay_out(&plan, axis, n, &to)
    if plan.terms.pack == NULL and n and axis[n - 1].step != plan.terms.size:
        plan.terms.pack = pack_same(plan.terms.size, False)
    if n <= 2 and not plan.strided and items * cnp.PyArray_ITEMSIZE(grad) <= DIRECT:
        if _sum_direct(&plan.terms, axis, n, x, to):
            return out
    plan.far = cnp.PyArray_NBYTES(grad) >= FAR
    plan_axes(&plan, axis, n)
    plan.streamed = (plan.alone or plan.few) and cnp.PyArray_NBYTES(grad) >= 2 * FAR
    plan.streamed = plan.streamed and cnp.PyArray_NBYTES(out) >= FAR // 2
    plan.streamed = plan.streamed and pages_resident(<const uint8_t *> plan.begin, cnp.PyArray_NBYTES(out))
    if cnp.PyArray_NBYTES(grad) < min(<Py_ssize_t> SMALL, SHARED) and plan.segments == 1:
        _sum_small(&plan, x, to)
    else:
        _sum_large(&plan, grad, out, x, to)
    return out


@cython.boundscheck(False)      # shape and source have one length
@cython.wraparound(False)
cdef int _check_sizes(cnp.ndarray grad, Alignment alignment, cnp.ndarray out) except -1:
    """Compare the arrays with the alignment again: code of the user's may have run since it was made."""
    cdef tuple shape = alignment.shape, source = alignment.source
    cdef int rank = len(shape), i, k = 0
    cdef bint fits = rank == cnp.PyArray_NDIM(grad) and rank == len(source)
    for i in range(rank if fits else 0):
        fits = fits and cnp.PyArray_DIM(grad, i) == <Py_ssize_t> shape[i]
        if <Py_ssize_t> source[i] != 1:
            while k < cnp.PyArray_NDIM(out) and cnp.PyArray_DIM(out, k) == 1:
                k += 1
            fits = fits and k < cnp.PyArray_NDIM(out) and cnp.PyArray_DIM(out, k) == <Py_ssize_t> source[i]
            k += 1
    for k in range(k, cnp.PyArray_NDIM(out)):
        fits = fits and cnp.PyArray_DIM(out, k) == 1
    if not fits:
        raise ValueError("`grad` and `out` expected arrays that keep their sizes during the call, got resized ones")
    return 0


cdef _leave_to_numpy(grad, Alignment alignment, out):
    """What nothing is summed of, or no leaf sums: copies, and dtypes such as long double and objects."""
    grad, out = np.asarray(grad), np.asarray(out)
    pairs = enumerate(zip(alignment.shape, alignment.source))
    axes = tuple([i for i, (length, kept) in pairs if kept != length])
    if axes:
        # Units of time are no matter of `dtype`; without `keepdims` a sum of objects is no array.
        dtype = None if grad.dtype == out.dtype else out.dtype.newbyteorder("=")
        grad = np.add.reduce(grad, axes, dtype, keepdims=True)
    elif not np.can_cast(grad.dtype, out.dtype) or np.may_share_memory(grad, out):
        grad = grad.astype(out.dtype)       # which may fail or warn: before anything is written
    np.copyto(out, grad.reshape(out.shape), "unsafe")


cdef bint _choose_terms(Terms *terms, cnp.ndarray grad, cnp.ndarray out) noexcept:
    """Choose how terms are read, summed and written; tell whether there is a way."""
    cdef const SumLeaf *leaf = leaf_of(target_number)
    cdef int term = _term_of(grad), result = _term_of(out)
    cdef bint swapped = not cnp.PyArray_ISNOTSWAPPED(grad)
    cdef bint is_complex = cnp.PyArray_ISCOMPLEX(grad)
    cdef int size = cnp.PyArray_ITEMSIZE(grad) >> is_complex
    cdef int out_size = cnp.PyArray_ITEMSIZE(out) >> <bint> cnp.PyArray_ISCOMPLEX(out)
    cdef int kind
    if term < 0 or result < 0 or result == BOOL:
        return False
    if term >= FLOAT16 and result < FLOAT16:
        return False
    terms.pack = NULL
    if term < FLOAT16 and result >= FLOAT16 or term >= FLOAT16 and size < out_size:
        kind = F64
    elif term >= FLOAT16:
        kind = F16 + term - FLOAT16
    elif term == BOOL or size != out_size:
        kind = U64
    else:
        kind = U8 + (term - INT8) % 4
    if kind == F64 and term != FLOAT64 or kind == U64 and size != 8:
        terms.pack = pack_widened(term, kind, swapped)
        size = 8
    elif swapped:
        terms.pack = pack_same(size, True)
    terms.sums = leaf.sums[kind]
    if term != result and (term >= FLOAT16 or size != out_size):
        terms.sums.put_runs = NULL      # they are no terms
        terms.sums.put_rows = NULL
    terms.store = leaf.store_wide[result] if kind == U64 else leaf.store[result]
    terms.merge = leaf.merge
    terms.size = size
    terms.sum_size = size if kind <= U64 else 8
    terms.paired = kind == F64
    return True


cdef bint _is_real(cnp.ndarray array) noexcept:
    """Whether the items of an array are numbers without an imaginary part."""
    if cnp.PyArray_ISNUMBER(array):
        return not cnp.PyArray_ISCOMPLEX(array)
    return _term_of(array) == BFLOAT16


cdef int _term_of(cnp.ndarray array) noexcept:
    """What the items of an array, or their parts, are in memory; -1 for what no leaf sums."""
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
    if number == bfloat16_number or (cnp.PyTypeNum_ISUSERDEF(number) and size == 2 and _is_bfloat16(array)):
        return BFLOAT16
    return -1


cdef bint _is_bfloat16(cnp.ndarray array) noexcept:
    """Whether the items' type is called bfloat16; asked in C, where nothing can fail. Its number is kept."""
    global bfloat16_number
    cdef const char *name = (<cnp.dtype> cnp.PyArray_DESCR(array)).typeobj.tp_name
    cdef const char *dot = strrchr(name, b".")
    if strcmp(name if dot == NULL else dot + 1, "bfloat16") != 0:
        return False
    bfloat16_number = cnp.PyArray_TYPE(array)
    return True


@cython.boundscheck(False)      # source has grad's rank
@cython.wraparound(False)
cdef int _read_axes(
    Axis *axis, cnp.ndarray grad, tuple source, cnp.ndarray out, const char **x, char **to,
) except -1:
    """Read the axes longer than 1, in the order of `grad`'s memory, neighbours of one kind as one; return how many.

    Axes that run backwards are turned, to begin at `x` and `to`. Whatever the layout of `out`, it is taken for
    contiguous: the plan, and with it the bits of the result, shall not depend on that.
    """
    cdef Py_ssize_t out_step = cnp.PyArray_NBYTES(out)
    cdef int n = 0, i, j
    cdef Axis next
    for i in range(cnp.PyArray_NDIM(grad)):
        next.length = cnp.PyArray_DIM(grad, i)
        if next.length == 1:
            continue
        next.step = cnp.PyArray_STRIDE(grad, i)
        next.kept = <Py_ssize_t> source[i] != 1
        next.out_step = 0
        if next.kept:
            out_step //= next.length
            next.out_step = out_step
        if next.step < 0:
            x[0] += (next.length - 1) * next.step
            to[0] += (next.length - 1) * next.out_step
            next.step = -next.step
            next.out_step = -next.out_step
        j = n
        while j > 0 and axis[j - 1].step != 0 and (axis[j - 1].step < next.step or next.step == 0):
            axis[j] = axis[j - 1]
            j -= 1
        axis[j] = next
        n += 1
    if cnp.PyArray_ISCOMPLEX(grad):
        axis[n] = Axis(2, cnp.PyArray_ITEMSIZE(grad) // 2, cnp.PyArray_ITEMSIZE(out) // 2, True)
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


cdef int _read_strides(Axis *axis, cnp.ndarray grad, cnp.ndarray out) noexcept:
    """Read the axes of `out` longer than 1, neighbours as one; their `step` is that of a contiguous array."""
    cdef Py_ssize_t step = cnp.PyArray_NBYTES(out)
    cdef int rank = cnp.PyArray_NDIM(out), n = 0, i
    cdef bint is_complex = cnp.PyArray_ISCOMPLEX(grad)
    cdef Axis next
    for i in range(rank + is_complex):
        next = Axis(2, step // 2, step // 2, True)      # the two parts
        if i < rank:
            next.length = cnp.PyArray_DIM(out, i)
            next.step = step // next.length
            next.out_step = cnp.PyArray_STRIDE(out, i)
        if next.length == 1:
            continue
        step = next.step
        if n and axis[n - 1].out_step == next.length * next.out_step:
            n -= 1
            next.length *= axis[n].length
        axis[n] = next
        n += 1
    return n


cdef void _lay_out(Reduction *plan, Axis *axis, int n, char **to) noexcept:
    """Give each axis its step in `out` itself, if all of them have one."""
    cdef Py_ssize_t[MAX_AXES] steps
    cdef Py_ssize_t times
    cdef int i, j
    for i in range(n):
        steps[i] = 0
        for j in range(plan.strided if axis[i].kept else 0):
            times = axis[i].out_step // plan.stride[j].step
            if times and -plan.stride[j].length <= times * axis[i].length <= plan.stride[j].length:
                steps[i] = times * plan.stride[j].out_step
                break
        else:
            if axis[i].kept:    # it runs over several axes of `out`
                return
    to[0] = plan.begin
    for i in range(n):
        if axis[i].out_step < 0:
            to[0] -= (axis[i].length - 1) * steps[i]
        axis[i].out_step = steps[i]
    plan.strided = 0


cdef int _sum_small(const Reduction *plan, const char *x, char *to) except -1:
    """Sum what takes less time than views and giving the GIL away."""
    cdef char[ROOM] room
    cdef char *scratch = room
    cdef Py_ssize_t unit
    if plan.scratch > ROOM:
        scratch = <char *> malloc(plan.scratch)
        if scratch == NULL:
            raise MemoryError
    for unit in range(plan.tiles):
        sum_unit(plan, unit, x, to, scratch, NULL)
    if scratch != room:
        free(scratch)
    return 0


cdef bint _sum_direct(const Terms *terms, const Axis *axis, int n, const char *x, char *to) noexcept:
    """Sum few terms along one of at most two axes by one call of a leaf, the one that a plan makes; or tell to plan.

    What needs more than that call is planned: terms to be packed, rows to be joined, sums that are infinite or NaN.
    """
    cdef char[ROOM] room
    cdef char *high = room
    cdef char *low = room + ROOM // 2
    cdef const Axis *last = &axis[n - 1]
    cdef Axis kept = Axis(1, 0, 0, True)
    if terms.pack != NULL or (n == 2 and axis[0].kept == last.kept):
        return False
    if last.kept:
        kept = last[0]
        if interleaved(terms, axis, n):
            terms.sums.add_runs(high, low, x, 1, 0, axis[0].length * kept.length, kept.length, False, False)
        elif axis[0].length >= 2 * FEWEST and kept.length < LONG:
            return False
        else:
            terms.sums.add_rows(high, low, x, 1, 0, axis[0].length, axis[0].step, kept.length, False)
    else:
        if n == 2:
            kept = axis[0]
        if (
            terms.sums.put_runs != NULL and kept.out_step == terms.size
            and is_short(last.length, 1, terms.sums.lanes)
        ):
            return not terms.sums.put_runs(to, x, kept.length, kept.step, last.length, 1, False, False)
        terms.sums.add_runs(high, low, x, kept.length, kept.step, last.length, 1, False, False)
    if terms.paired and terms.merge(<double *> high, <const double *> low, kept.length):
        return False
    terms.store(to, kept.out_step, high, kept.length)
    return True


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
    if plan.streamed:
        bcast_store_fence()
