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
from bcast._runtime.arrays cimport shape_of
from bcast._runtime.cpu cimport PAGE, target_number
from bcast._runtime.extent cimport Extent, extent, overlap
from bcast._sum.plan cimport (
    AS_INTEGER, AS_IS, AS_REAL, BOOL, DTYPE_COUNT, F64, FLOAT16, FLOAT32, FLOAT64, INT8, MAX_AXES, U64, UINT8, Axis,
    Packing, Reduction, Target, Terms, dtypes, plan_sum,
)
from bcast._sum.walk cimport add_segments, sum_unit
from bcast._runtime.threads cimport RELEASING, free_threads, run_shares

cdef extern from "_sum/simd/leaves.h":
    const Target *target_of "bcast_sum_target_of"(int target)

cnp.import_array()

cdef struct Work:       # what the shares of a sum have in common
    const Reduction *plan
    const char *x
    char *to
    char *scratch       # `room` bytes for each thread
    Py_ssize_t room
    char *partials      # of all segments
    int shares

cdef Py_ssize_t SHARED = RELEASING     # bytes; a thread that would read less costs more than it saves

cdef int[DTYPE_COUNT] user_numbers      # of dtypes that other packages have added, once an array of one was seen


def set_limits(shared=RELEASING):
    """Set how many bytes a thread reads at least: for tests of threads on small arrays."""
    global SHARED
    SHARED = shared


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
        return sum_onto(np.asarray(grad).real, alignment, out)
    _check_sizes(grad, alignment, out)
    if sums == 0:
        return out
    if items == 0:
        np.asarray(out)[...] = 0
        return out
    if items == sums or not _choose_terms(&terms, grad, out):
        _leave_to_numpy(grad, alignment, out)
        return out
    if (
        not cnp.PyArray_IS_C_CONTIGUOUS(out) or not cnp.PyArray_ISNOTSWAPPED(out) or overlap(grad, out)
        or cnp.PyArray_ISCOMPLEX(out) and not cnp.PyArray_ISCOMPLEX(grad)
    ):
        _sum_aside(grad, alignment, out)
        return out
    if not cnp.PyArray_ISNOTSWAPPED(grad):
        native = np.asarray(grad)
        return sum_onto(native.astype(native.dtype.newbyteorder("=")), alignment, out)
    n = _read_axes(axis, grad, alignment.source, sums * cnp.PyArray_ITEMSIZE(out), &x, &to)
    if axis[n - 1].step != terms.size:
        terms.packed = True
    plan_sum(&plan, &terms, axis, n)
    if nbytes < SHARED and plan.segments == 1:
        _sum_small(&plan, x, to)
    else:
        _sum_large(&plan, grad, out, x, to)
    return out


cdef _sum_aside(cnp.ndarray grad, Alignment alignment, cnp.ndarray out):
    """Sum into an array of its own, contiguous and of the machine's byte order, and copy that."""
    target = np.asarray(out)
    if cnp.PyArray_ISCOMPLEX(out) and not cnp.PyArray_ISCOMPLEX(grad):
        result = np.empty(shape_of(out), target.real.dtype.newbyteorder("="))
    else:
        result = np.empty(shape_of(out), target.dtype.newbyteorder("="))
    np.copyto(target, sum_onto(grad, alignment, result))


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
    terms.target = target_of(target_number)
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
    Axis *axis, cnp.ndarray grad, tuple source, Py_ssize_t out_step, const char **x, char **to,
) except -1:
    """Read the axes longer than 1, in the order of `grad`'s memory, neighbours of one kind as one; return how many.

    Axes that run backwards are turned, to begin at `x` and `to`; `out` is contiguous.
    """
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
