# cython: cdivision=True
"""The interface of reductions: `sum_onto`, `average_onto`, `sum_counted` and `reduce_onto`.

In: arrays that `_api` has checked, and an alignment, whose repeated axes are reduced, or the number of rows of each
item. Out: `out`, filled. Sums are the adjoints of `replicate` and of `repeat_counted`.

All functions have the same steps. The dtypes determine a `Reduction`: the conversion of items to terms, the operation,
and the conversion of accumulators to results. Arrays are made readable. If results cannot be written to `out`, they
get a new array. The axes become a nest of few loops, which is planned and then run on threads. The functions at the end
pass data without kernels to NumPy.
"""

cimport cython
cimport numpy as cnp
from libc.math cimport sqrt
from libc.stdlib cimport llabs
from libc.stdint cimport int64_t, uint64_t

import warnings

import numpy as np
from numpy.exceptions import ComplexWarning

from bcast._runtime.arrays import rounded_to

from bcast._nest.core cimport Nest, coalesce_axes, copy_axis, flip_negative_axes, sort_axes
from bcast._reduce.counted cimport CountedPlan, plan_counted, reduce_counted_share, is_faster_along_counts
from bcast._reduce.items cimport check_sizes, dtype_row, in_native_order, items_of, refuse_resized, row_of_dtype
from bcast._reduce.kernels cimport (
    BOOL, EXACT_DIGITS, F64, FLOAT16, FLOAT32, FLOAT64, INT64, INTEGERS_AT_ONCE, MEASURED_PARTS, NUMBER, NUMBERS_COUNT,
    NUMBERS_SQUARE, SQUARE, U16, U32, U64, U8, UINT64, BoundedSums, Dtype, Kernels, Measuring, Settling, Spreading,
    dtypes,
)
from bcast._reduce.plan cimport (
    DATA, DEVIATIONS, ITEMS, OPERANDS, OTHER, OWN_KIND, PRODUCTS, REALS, RESULTS, SAME_BYTES, SQUARES, Operation,
    Reduction, ReductionPlan, Terms, plan_reduction,
)
from bcast._reduce.run cimport (
    LOCAL_BYTES, DigitSums, ExactRows, bound_rows_of_integers, combine_shares, divide_sums, expand_exactly,
    finish_bounded_sums, finish_exact_sums, finish_expansions, finish_float_products, finish_scaled_products,
    finish_sums, finish_sums_once, has_special, measure_digits, measure_rows, operation_kernels, reduce_shares,
    repeat_terms, round_digits, settling_of, share_bytes, sum_again, sum_exactly, sum_target, threads_for,
    write_digits_of_rows,
)
from bcast._reduce.vectors cimport sum_short_products
from bcast._rules.alignment cimport Alignment
from bcast._rules.counts cimport Counts, counts_of_tuple
from bcast._runtime.arrays cimport MAX_AXES, shape_of
from bcast._runtime.core cimport (
    LINE, PAGE, Job, count_shares, cut, free_scratch, new_job, overlap, run_without_gil, scratch_of, take_scratch,
    target_number,
)
from bcast._runtime.tuning cimport LONG_AXIS_ITEMS, SUM_PREFETCHED_BYTES, SUM_SHARES

cdef extern from "_reduce/simd/combine.h":
    cpdef enum:     # Python imports these as well
        GREATEST "BCAST_GREATEST"
        LEAST "BCAST_LEAST"
        ANY "BCAST_ANY"
        ALL "BCAST_ALL"
        PRODUCT "BCAST_PRODUCT"
        GREATEST_NUMBER "BCAST_GREATEST_NUMBER"
        LEAST_NUMBER "BCAST_LEAST_NUMBER"
        SCALED_PRODUCT "BCAST_SCALED_PRODUCT"
        LEAST_AND_GREATEST "BCAST_LEAST_AND_GREATEST"
        EXACT_SUM "BCAST_EXACT_SUM"

cnp.import_array()

ZERO = np.zeros(1)     # the mean if deviations are from 0

cdef enum:
    MOST_SQUARES = 1 << 30      # the most squares of 32 bits with a sum of 64 bits

cdef enum:      # the operands of a nest of kept axes, in `_has_order_of`
    READ
    WRITTEN


# ---- Functions for `_api` ----


cpdef sum_onto(cnp.ndarray grad, Alignment alignment, cnp.ndarray out, cnp.ndarray times=None):
    """Sum `grad`, or `grad * times`, over the axes along which `alignment` repeats, into `out`, and return `out`.

    `grad`, of any layout, has the shape ``alignment.shape``. `out` is writeable, of the result's dtype and of any
    strides; its shape is ``alignment.source``, perhaps without some axes of length 1. It may overlap `grad`: the result
    is as if `grad` had been copied first. `times` broadcasts to `grad`.
    """
    cdef Reduction reduction
    cdef bint has_products
    if _is_rounded_from_float64(out):
        return _round_into(out, sum_onto(grad, alignment, _float64_like(out), times))

    if times is None:
        grad = _converted(grad, out)
    else:
        _check_other(grad, times)
        has_products = _choose_products(&reduction, grad, times, out)
        if has_products and sum_short_products(grad, times, alignment.source, out):
            return out
        if not has_products or _has_size_of(grad, out):
            grad, times = _product(np.asarray(grad), np.asarray(times), np.asarray(out)), None
    grad = _as_real_as(out, grad)
    check_sizes(grad, alignment.source, items_of(out))
    if _is_sum_of_nothing(grad, out):
        return out
    if times is None and (_has_size_of(grad, out) or not _choose_sums(&reduction, grad, out, False)):
        _leave_to_numpy(grad, alignment, out)
        return out

    _reduce_into(out, &reduction, grad, times, alignment)
    return out


# `_api` passes the user's options one by one. These functions turn them into a `Reduction` for the dtypes.
cpdef average_onto(
    cnp.ndarray data, Alignment alignment, cnp.ndarray out, double divisor, cnp.ndarray means=None, bint root=False,
    bint rough=False, bint once=False,
):
    """Sum `data`, or the squares of its differences from `means`, and divide the sums; write them or their roots.

    Arrays are as in `sum_onto`, but each result has several terms, kernels read `data` (`has_kernels`), and results are
    floats or complex. `means` are float64 and broadcast to `data`. Sums of narrow floats may be `rough`, with the
    precision for narrow results. With `once`, sums are not computed again if a partial sum overflows or an item is NaN;
    sums may then be NaN because of the overflow.
    """
    cdef Reduction reduction
    cdef bint is_chosen = False
    if means is not None and cnp.PyArray_TYPE(means) != cnp.NPY_DOUBLE:
        raise TypeError(f"`means` expected float64, got {means.dtype}")
    if _is_rounded_from_float64(out):
        return _round_into(out, average_onto(data, alignment, _float64_like(out), divisor, means, root, rough, once))

    data = _converted(data, out)
    if means is not None:
        _check_other(data, means)
        is_chosen = not _has_size_of(data, out) and _choose_deviations(&reduction, data, means, out)
    data = _as_real_as(out, data)
    check_sizes(data, alignment.source, items_of(out))
    if _is_sum_of_nothing(data, out):
        return out
    if means is None:
        is_chosen = not _has_size_of(data, out) and _choose_sums(&reduction, data, out, rough)
    if not is_chosen:       # `_api` has checked this, but user code has run since
        refuse_resized()
    if not dtypes[reduction.outcome.dtype].is_float:
        raise ValueError(f"`out` expected floats, got {out.dtype}")

    if once:
        reduction.operation.finish = finish_sums_once
    _divide(&reduction, divisor, root)
    _reduce_into(out, &reduction, data, means, alignment)
    return out


cpdef bint sum_exactly_onto(
    cnp.ndarray data, Alignment alignment, cnp.ndarray out, double divisor, bint skips_nan=False,
    cnp.ndarray times=None, cnp.ndarray divisors=None, double initial=0,
) except -1:
    """Sum `data`, or `data * times`, and an initial value exactly, divide by an integer and round once.

    Arrays are as in `sum_onto`, but each result has several terms, and results are floats or complex. NaN in `data` may
    be skipped. Otherwise, without `times`, each result may have its own divisor: `divisors` are float64 from 1 to 2^53
    and broadcast to `data`, with length 1 along the summed axes. Return whether kernels read `data` and write `out`;
    otherwise do nothing. Kernels do not read integers of 64 bits, because float64 cannot represent all of them. `times`
    broadcasts to `data`; then, both are real, and each result may have one term. Options come one by one, and checks
    are clearer whole.
    """
    cdef Reduction reduction
    cdef cnp.ndarray other = ZERO if skips_nan else divisors if times is None else times
    if divisors is not None:
        _check_divisors(data, divisors, alignment.source)
    if times is not None:
        _check_other(data, times)
        if skips_nan or divisors is not None or not _choose_exact_products(&reduction, data, times, out):
            return False
    else:
        data = _as_real_as(out, data)
        if _has_size_of(data, out) or not _choose_exact_sums(&reduction, data, out, skips_nan):
            return False
    check_sizes(data, alignment.source, items_of(out))
    if _is_sum_of_nothing(data, out):
        return True

    reduction.outcome.divisor = divisor
    reduction.outcome.initial = initial
    reduction.outcome.divides_each = divisors is not None
    if divisor != 1 or initial != 0 or divisors is not None:
        reduction.outcome.are_terms = False
    _reduce_into(out, &reduction, data, other, alignment)
    return True


cdef int _check_divisors(cnp.ndarray data, cnp.ndarray divisors, tuple source) except -1:
    """Check that there is a divisor for each sum."""
    if cnp.PyArray_TYPE(divisors) != cnp.NPY_DOUBLE:
        raise TypeError(f"`divisors` expected float64, got {divisors.dtype}")
    _check_other(data, divisors)
    if shape_of(divisors) != source:
        refuse_resized()
    return 0


cpdef bint expand_onto(
    cnp.ndarray data, Alignment alignment, cnp.ndarray out, cnp.ndarray times=None, bint bounded=False,
) except -1:
    """Write exact sums of `data`, or `data * times`, as expansions: sums of three numbers, along `out`'s first axis.

    Each part is the rounded remainder after the parts before it. The last part has an odd last bit if a remainder
    follows, so that rounding the sum of the parts equals rounding the exact sum. `out` is a C-contiguous array of
    float64, or of complex128 if `data` is complex, and overlaps nothing. `sum_exactly_onto` describes the arguments.

    If sums are `bounded`, which costs a fraction of the time, the third part is a bound of the error of the others.
    """
    cdef Reduction reduction
    cdef cnp.ndarray first
    _check_parts(out, data)
    first = out[0]
    if times is not None:
        _check_other(data, times)
        if not _choose_exact_products(&reduction, data, times, first):
            return False
    elif not _choose_exact_sums(&reduction, data, first, False):
        return False
    check_sizes(data, alignment.source, items_of(first))
    if _is_sum_of_nothing(data, out):
        return True

    reduction.outcome.are_terms = False
    reduction.outcome.arrays = 3
    reduction.outcome.apart = cnp.PyArray_NBYTES(first)
    reduction.operation.finish = finish_bounded_sums if bounded else finish_expansions
    reduction.operation.again = expand_exactly
    _reduce_along(&reduction, _readable(data), None if times is None else in_native_order(times), alignment, first)
    return True


cdef int _check_parts(cnp.ndarray out, cnp.ndarray data) except -1:
    """Check that `out` has room for three numbers for each sum."""
    if dtype_row(out) != FLOAT64 or cnp.PyArray_ISCOMPLEX(out) != cnp.PyArray_ISCOMPLEX(data):
        raise TypeError(f"`out` expected float64, or complex128 for complex numbers, got {out.dtype}")
    if cnp.PyArray_NDIM(out) == 0 or cnp.PyArray_DIM(out, 0) != 3 or not cnp.PyArray_ISCARRAY(out):
        raise ValueError(f"`out` expected a contiguous array of three parts, got shape {shape_of(out)}")
    return 0


cpdef norm_onto(cnp.ndarray data, Alignment alignment, cnp.ndarray out):
    """Sum the squares of `data`, like `average_onto` with a mean of 0, and write the roots.

    Each result has several terms. Floats are squared like the products of `sum_onto`, which is faster along short axes.
    """
    cdef Reduction reduction
    if _is_rounded_from_float64(out):
        return _round_into(out, norm_onto(data, alignment, _float64_like(out)))

    data = _converted(data, out)
    if not cnp.PyTypeNum_ISFLOAT(cnp.PyArray_TYPE(data)):
        return average_onto(data, alignment, out, 1, ZERO.reshape((1,) * cnp.PyArray_NDIM(data)), True)
    check_sizes(data, alignment.source, items_of(out))
    if _is_sum_of_nothing(data, out):
        return out
    if _has_size_of(data, out) or not _choose_products(&reduction, data, data, out):
        refuse_resized()
    _divide(&reduction, 1, True)
    _reduce_into(out, &reduction, data, data, alignment)
    return out


cpdef bint spread_onto(
    cnp.ndarray data, Alignment alignment, cnp.ndarray means, cnp.ndarray spread, double divisor, bint root,
) except -1:
    """Write variances of 8- or 16-bit integers or of bools, or their roots, into `spread`; and `means`, unless None.

    Both follow from exact sums of items and of their squares. `divisor` divides the sum of squared differences. Both
    arrays are float64 and overlap nothing. Return whether kernels can do this, into contiguous and aligned arrays;
    otherwise do nothing.
    """
    cdef Reduction reduction
    cdef ExactSums exact
    cdef cnp.ndarray sums, squares
    cdef Py_ssize_t results = items_of(spread)

    if not _has_exact_squares(data, results):
        return False
    for out in (spread, spread if means is None else means):
        if dtype_row(out) != FLOAT64 or items_of(out) != results:
            raise TypeError(f"`spread` expected as many float64 as there are results, got {out.dtype}")
        if not cnp.PyArray_ISCARRAY(out):
            return False
    check_sizes(data, alignment.source, results)

    sums, squares = np.empty(alignment.source, np.int64), np.empty(alignment.source, np.int64)
    sum_onto(data, alignment, sums)
    _choose_sums(&reduction, data, squares, False)
    reduction.terms.packed_as = SQUARES
    _reduce_into(squares, &reduction, data, None, alignment)
    exact = ExactSums(
        sums=<const int64_t *> cnp.PyArray_DATA(sums),
        squares=<const uint64_t *> cnp.PyArray_DATA(squares),
        count=items_of(data) // results,
        divisor=divisor,
        root=root,
        means=NULL,
        spread=<double *> cnp.PyArray_DATA(spread),
    )
    if means is not None:
        exact.means = <double *> cnp.PyArray_DATA(means)
    _write_spread(&exact, results)
    return True


cdef inline bint _has_exact_squares(cnp.ndarray data, Py_ssize_t results) noexcept:
    """Whether items are 8- or 16-bit integers or bools, and the sum of squares of each result is exact."""
    cdef int dtype = dtype_row(data)
    if dtype < 0 or dtypes[dtype].is_float or dtypes[dtype].size > 2 or not cnp.PyArray_ISNOTSWAPPED(data):
        return False
    return results > 0 and 1 < items_of(data) // results <= MOST_SQUARES


cdef struct ExactSums:
    const int64_t *sums         # sums of each result's items
    const uint64_t *squares     # sums of the items' squares
    Py_ssize_t count            # items of a result
    double divisor              # divisor of a sum of squared differences
    bint root                   # whether to write roots instead of variances
    double *means               # the array for means; NULL if they are not wanted
    double *spread              # the array for variances, or for their roots


cdef void _write_spread(const ExactSums *exact, Py_ssize_t n) noexcept nogil:
    """Write means, and variances or their roots, from exact sums of items and of their squares.

    The squared differences of items from a whole number near the mean have an exact sum as well. The distance of that
    number from the mean is at most 1/2; subtracting its square cancels at most half of the sum.
    """
    cdef double mean, variance
    cdef int64_t middle, rest
    cdef uint64_t around
    cdef Py_ssize_t i

    for i in range(n):
        mean = <double> exact.sums[i] / <double> exact.count
        middle = <int64_t> (mean + (0.5 if mean >= 0 else -0.5))
        rest = exact.sums[i] - middle * exact.count
        around = exact.squares[i] - <uint64_t> middle * <uint64_t> (exact.sums[i] + rest)  # wraps, and back
        variance = (<double> <int64_t> around - <double> rest * <double> rest / <double> exact.count) / exact.divisor
        exact.spread[i] = sqrt(variance) if exact.root else variance
        if exact.means != NULL:
            exact.means[i] = mean


cpdef bint sum_numbers_onto(
    cnp.ndarray data, Alignment alignment, cnp.ndarray out, cnp.ndarray means, int deviation,
) except -1:
    """Sum a function of the differences of `data` from `means` into `out`; NaN adds nothing.

    NUMBER sums the differences, NUMBERS_SQUARE their squares, NUMBERS_COUNT counts them. `data` has floats; other
    arguments are as in `average_onto`. Return whether kernels read `data`; otherwise do nothing.
    """
    cdef Reduction reduction
    if cnp.PyArray_TYPE(means) != cnp.NPY_DOUBLE:
        raise TypeError(f"`means` expected float64, got {means.dtype}")
    if not NUMBERS_SQUARE <= deviation <= NUMBERS_COUNT:
        raise ValueError(f"`deviation` expected one of numbers, got {deviation}")
    _check_other(data, means)
    if _has_size_of(data, out) or not _choose_deviations(&reduction, data, means, out):
        return False
    check_sizes(data, alignment.source, items_of(out))
    if items_of(data) == 0:
        refuse_resized()
    reduction.terms.deviation = deviation
    _reduce_into(out, &reduction, data, means, alignment)
    return True


cpdef sum_counted(cnp.ndarray grad, Counts counts, int along, cnp.ndarray out, bint exact=False):
    """Sum the rows of `grad` for each item, by its count, into `out`, and return `out`; if `exact`, round floats once.

    Axis `along` has length ``counts.total`` in `grad` and ``counts.size`` in `out`. Arrays are as in `sum_onto`.
    """
    cdef Reduction reduction
    cdef cnp.ndarray results
    if not 0 <= along < cnp.PyArray_NDIM(grad):
        raise ValueError(f"`axis` expected an axis of data of shape {shape_of(grad)}, got {along}")
    if _is_rounded_from_float64(out) and not exact:
        return _round_into(out, sum_counted(grad, counts, along, _float64_like(out)))

    grad = _as_real_as(out, _converted(grad, out))
    _check_counts(grad, counts, along, out)
    if _is_sum_of_nothing(grad, out):
        return out
    if exact:
        if not _choose_exact_sums(&reduction, grad, out, False):
            raise TypeError(f"`grad` expected numbers whose exact sum rounds to {out.dtype}, got {grad.dtype}")
    elif not _choose_sums(&reduction, grad, out, False):
        _leave_counts_to_numpy(grad, counts, along, out)
        return out

    grad = _readable(grad)
    results = out if _can_write_to(out, grad, None, None) else _results_like(out, grad)
    counts.keep_from(results)
    _reduce_counted(&reduction, grad, counts, along, results, exact)
    if results is not out:
        np.copyto(np.asarray(out), results)
    return out


cpdef bint reduce_onto(cnp.ndarray data, Alignment alignment, cnp.ndarray out, int operation) except -1:
    """Reduce `data` along axes on which `alignment` repeats, into `out`, by an operation other than a sum.

    GREATEST and LEAST write items, NaN if there is one; GREATEST_NUMBER and LEAST_NUMBER write NaN only if all items
    are NaN. ANY and ALL write bools. PRODUCT writes products: integers that wrap around in 64 bits, or floats rounded
    to the dtype of `out`. SCALED_PRODUCT writes products of floats without intermediate overflow. Arrays are as in
    `sum_onto`, and each result has several terms. Return whether kernels read `data`; otherwise do nothing.
    """
    cdef Reduction reduction
    if operation == PRODUCT or operation == SCALED_PRODUCT:
        if not _choose_product(&reduction, data, out):
            return False
        if operation == SCALED_PRODUCT:
            if not dtypes[reduction.outcome.dtype].is_float:
                return False
            _scale_factors(&reduction)
    else:
        if not _choose_same_width(&reduction, data, operation):
            return False
        if dtypes[reduction.outcome.dtype].size != cnp.PyArray_ITEMSIZE(out):
            raise TypeError(f"`out` expected items of {dtypes[reduction.outcome.dtype].size} bytes, got {out.dtype}")
    check_sizes(data, alignment.source, items_of(out))
    if items_of(data) == 0:
        refuse_resized()
    _reduce_into(out, &reduction, data, None, alignment)
    return True


cpdef bint find_extremes_onto(cnp.ndarray data, Alignment alignment, cnp.ndarray low, cnp.ndarray high) except -1:
    """Write minima along axes on which `alignment` repeats into `low`, and maxima into `high`.

    Kernels find both at once. Arrays are as in `reduce_onto`, with the data's dtype; `low` and `high` do not overlap
    each other. Return whether kernels read `data`; otherwise do nothing.
    """
    cdef Reduction reduction
    cdef cnp.ndarray first = low, second = high
    if not _choose_same_width(&reduction, data, LEAST_AND_GREATEST):
        return False
    for out in (low, high):
        if dtype_row(out) != reduction.terms.dtype:
            raise TypeError("`out` expected arrays of the dtype of the data")
        check_sizes(data, alignment.source, items_of(out))
    if items_of(data) == 0:
        refuse_resized()

    data = _readable(data)
    if not _can_write_both(low, high, data, alignment):
        first, second = _results_like(low, data), _results_like(high, data)
    _reduce_pair_along(&reduction, data, alignment, first, second)
    if first is not low:
        np.copyto(np.asarray(low), first)
        np.copyto(np.asarray(high), second)
    return True


cdef bint _can_write_both(cnp.ndarray low, cnp.ndarray high, cnp.ndarray data, Alignment alignment) except -1:
    """Whether both results of a pair have the same layout, and can be written while the data is read."""
    cdef int i
    if not _can_write_to(low, data, None, alignment) or not _can_write_to(high, data, None, alignment):
        return False
    if cnp.PyArray_IS_C_CONTIGUOUS(low) and cnp.PyArray_IS_C_CONTIGUOUS(high):
        return True
    if cnp.PyArray_NDIM(low) != cnp.PyArray_NDIM(high):
        return False
    for i in range(cnp.PyArray_NDIM(low)):
        if cnp.PyArray_STRIDE(low, i) != cnp.PyArray_STRIDE(high, i):
            return False
    return True


cdef int _reduce_pair_along(
    Reduction *reduction, cnp.ndarray data, Alignment alignment, cnp.ndarray low, cnp.ndarray high,
) except -1:
    """Read the axes of an alignment, plan a reduction of two results and run it."""
    cdef Layout layout
    cdef Py_ssize_t nbytes
    _read_axes(&layout, data, None, alignment.source, low)
    nbytes = cnp.PyArray_NBYTES(data) // layout.repeats
    _suit_layout(reduction, &layout, nbytes)
    if not cnp.PyArray_IS_C_CONTIGUOUS(low):
        _use_strides_of(low, &layout.nest)
    reduction.operation.arrays = 2      # minima and maxima
    reduction.outcome.arrays = 2
    reduction.outcome.apart = <char *> cnp.PyArray_DATA(high) - <char *> cnp.PyArray_DATA(low)
    return _run_planned(reduction, &layout.nest, nbytes, data, high, low)


cpdef bint has_kernels(cnp.ndarray array) noexcept:
    """Whether the items of an array are numbers that the core reads."""
    return dtype_row(array) >= 0


# ---- Dtypes ----


cpdef str kind_of_sums(cnp.dtype dtype):
    """The kind of sums of this dtype: "b" bools, "i" integers, "f" floats, "c" complex; "" if the core has none.

    Floats of other packages that have no row in the table are rounded from sums of float64.
    """
    cdef int number = dtype.type_num
    if number == cnp.NPY_BOOL:
        return "b"
    if cnp.PyTypeNum_ISINTEGER(number):
        return "i"
    if row_of_dtype(dtype) >= 0:
        return "c" if cnp.PyTypeNum_ISCOMPLEX(number) else "f"
    return "f" if _wider(dtype) is not None else ""


cpdef converted_terms(cnp.dtype dtype):
    """float32 or float64 if terms of this dtype, of another package, are converted to it; otherwise None."""
    if not cnp.PyTypeNum_ISUSERDEF(dtype.type_num) or row_of_dtype(dtype) >= 0:
        return None
    if np.can_cast(dtype, np.float32):
        return np.dtype(np.float32)
    return np.dtype(np.float64) if np.can_cast(dtype, np.float64) else None


cdef inline bint _is_rounded_from_float64(cnp.ndarray out) except -1:
    """Whether results are floats of another package that no kernel writes; then they are rounded from float64."""
    if not cnp.PyTypeNum_ISUSERDEF(cnp.PyArray_TYPE(out)):
        return False
    return dtype_row(out) < 0 and _wider(out.dtype) is not None


cdef cnp.ndarray _float64_like(cnp.ndarray out):
    """An array of float64 for sums, before they are rounded."""
    return np.empty(shape_of(out), np.float64)


cdef _round_into(cnp.ndarray out, wide):
    """Round sums of float64 to the dtype of `out`; return `out`."""
    np.copyto(np.asarray(out), rounded_to(wide, np.asarray(out).dtype))
    return out


cdef inline cnp.ndarray _converted(cnp.ndarray grad, cnp.ndarray out):
    """Convert terms of another package's dtype to floats, if a dtype of the table has all of its numbers."""
    cdef int result
    if not cnp.PyTypeNum_ISUSERDEF(cnp.PyArray_TYPE(grad)):
        return grad
    result = dtype_row(out)
    wide = converted_terms(np.asarray(grad).dtype) if result >= 0 and dtypes[result].is_float else None
    return grad if wide is None else np.asarray(grad).astype(wide)


cdef inline cnp.ndarray _as_real_as(cnp.ndarray out, cnp.ndarray grad):
    """`grad`, or its real part if only results are real."""
    if not cnp.PyArray_ISCOMPLEX(grad) or cnp.PyArray_ISCOMPLEX(out):
        return grad
    if not cnp.PyArray_ISNUMBER(out) and dtype_row(out) < 0:
        return grad
    # NumPy's own warning may be an error, or run user code, so it comes before sizes are compared.
    warnings.warn("Casting complex values to real discards the imaginary part", ComplexWarning, stacklevel=1)
    return np.asarray(grad).real


# ---- Sizes: user code may have changed them since they were read ----


cdef int _check_other(cnp.ndarray grad, cnp.ndarray other) except -1:
    """Check the size of an array that broadcasts to `grad`."""
    cdef int more = cnp.PyArray_NDIM(grad) - cnp.PyArray_NDIM(other), i
    cdef bint fits = more >= 0
    for i in range(cnp.PyArray_NDIM(other) if fits else 0):
        fits = fits and (
            cnp.PyArray_DIM(other, i) == 1 or cnp.PyArray_DIM(other, i) == cnp.PyArray_DIM(grad, more + i)
        )
    if not fits:
        refuse_resized()
    return 0


cdef int _check_counts(cnp.ndarray grad, Counts counts, int along, cnp.ndarray out) except -1:
    """Check the sizes of arrays against counts."""
    cdef bint fits = along < cnp.PyArray_NDIM(grad) and cnp.PyArray_NDIM(grad) == cnp.PyArray_NDIM(out)
    cdef int i
    for i in range(cnp.PyArray_NDIM(grad) if fits else 0):
        fits = fits and cnp.PyArray_DIM(grad, i) == (counts.total if i == along else cnp.PyArray_DIM(out, i))
    if not fits or cnp.PyArray_DIM(out, along) != counts.size:
        refuse_resized()
    return 0


cdef inline bint _has_size_of(cnp.ndarray grad, cnp.ndarray out) noexcept:
    """Whether each term is a result, so that nothing is summed."""
    return items_of(grad) == items_of(out)


cdef inline bint _is_sum_of_nothing(cnp.ndarray grad, cnp.ndarray out) except -1:
    """Whether there are no terms. Then write zeros to the results, if there are any."""
    if items_of(grad) != 0:
        return False
    if items_of(out) != 0:
        np.asarray(out)[...] = 0
    return True


# ---- Sums: how terms are read, summed and stored ----


cdef inline void _begin(Reduction *reduction) noexcept:
    """Initialise for items that kernels read in place."""
    reduction.target = sum_target(target_number)
    reduction.terms.made_of = ITEMS
    reduction.terms.other_dtype = -1
    reduction.terms.ahead = 0
    reduction.terms.multiplier = NULL
    reduction.terms.multiplier_adds = False
    reduction.terms.spreads = False
    reduction.terms.in_bulk = reduction.terms.has_errors = False
    reduction.outcome.repeats = 1
    reduction.outcome.arrays = 1
    reduction.outcome.apart = 0
    reduction.outcome.divisor = 0
    reduction.outcome.root = False
    reduction.outcome.divides_each = False
    reduction.outcome.initial = 0


cdef inline void _sum_as(Reduction *reduction, int kind) noexcept:
    """Set the operation to a sum of terms of a kind."""
    cdef Operation *operation = &reduction.operation
    cdef int size = 1 if kind == U8 else 2 if kind == U16 else 4 if kind == U32 else 8
    _operate(operation, &reduction.target.kernels[kind], size)
    operation.arrays = 2 if kind == F64 else 1
    operation.finish = finish_sums
    operation.again = sum_again


cdef inline void _divide(Reduction *reduction, double divisor, bint root) noexcept:
    """Have sums of floats divided, and perhaps replaced by the root."""
    reduction.operation.scale = divide_sums
    reduction.outcome.divisor = divisor
    reduction.outcome.root = root
    reduction.outcome.are_terms = False


cdef inline void _operate(Operation *operation, const Kernels *kernels, int accumulator_size) noexcept:
    """Set an operation from its kernels, which also combine repeated terms. Accumulators are results."""
    operation.kernels = kernels
    operation.accumulator_size = accumulator_size
    operation.arrays = 1
    operation.idempotent = kernels.is_idempotent
    operation.identity = 0
    operation.finish = repeat_terms
    operation.again = NULL
    operation.scale = NULL


cdef bint _choose_sums(Reduction *reduction, cnp.ndarray grad, cnp.ndarray out, bint rough) noexcept:
    """Choose how items are read, summed and written; return whether kernels can do it.

    It is clearer whole: all fields follow from the terms, the results and the kind of sums.
    """
    cdef int term = dtype_row(grad), result = dtype_row(out)
    cdef int kind = -1 if term < 0 or result < 0 else _kind_of(term, result, rough)
    cdef int size
    cdef bint has_size_of_result

    if kind < 0:
        return False

    size = dtypes[term].size
    has_size_of_result = size == dtypes[result].size
    _begin(reduction)
    _sum_as(reduction, kind)
    reduction.terms.packed = kind == F64 and term != FLOAT64 or kind == U64 and size < 8
    reduction.terms.packed_as = REALS if kind == F64 else OWN_KIND
    reduction.terms.size = 8 if reduction.terms.packed else size
    # Integers of 32 bits are packed unchanged, like the 4 bytes of a float; their own row would widen them.
    reduction.terms.dtype = FLOAT32 if kind == U32 else term
    reduction.outcome.dtype = result
    reduction.outcome.are_terms = term == result or not dtypes[term].is_float and has_size_of_result
    if reduction.terms.packed:
        reduction.outcome.are_terms = False
    return True


cdef inline int _kind_of(int term, int result, bint rough) noexcept:
    """The kind of sums from items of one dtype to results of another; -1 if there is none."""
    cdef bint is_float = dtypes[term].is_float
    cdef bint needs_error_terms
    cdef int size = dtypes[term].size, result_size = dtypes[result].size
    if result == BOOL or is_float and not dtypes[result].is_float:
        return -1
    if dtypes[result].is_float:
        needs_error_terms = not is_float or size < result_size and not rough
        return F64 if needs_error_terms else dtypes[term].kind
    return dtypes[term].kind if size == result_size else U64


cdef void _choose_narrow(Reduction *reduction, const Nest *nest) noexcept:
    """Sum 8- and 16-bit integers in their own width if results are no wider: rows in place, and runs that fill a
    vector.
    """
    cdef const Dtype *dtype = &dtypes[reduction.terms.dtype]
    cdef Py_ssize_t item_stride = nest.stride[DATA][nest.rank - 1]
    if reduction.terms.packed_as != OWN_KIND or reduction.terms.made_of != ITEMS:
        return
    if dtype.size > 2 or dtype.is_float or reduction.terms.dtype == BOOL:
        return
    if dtypes[reduction.outcome.dtype].size > dtype.size or item_stride != dtype.size:
        return
    if _are_short_runs(nest):
        return      # these are packed, several at once

    _sum_as(reduction, U8 if dtype.size == 1 else U16)
    reduction.terms.packed = False
    reduction.terms.size = dtype.size
    reduction.outcome.are_terms = (
        reduction.outcome.repeats == 1 and dtypes[reduction.outcome.dtype].size == dtype.size
    )


cdef inline bint _are_short_runs(const Nest *nest) noexcept:
    """Whether runs have fewer terms than a vector. Two or four items may be interleaved in a run."""
    cdef int inner = nest.rank - 1
    cdef Py_ssize_t items = nest.shape[inner]
    if nest.stride[RESULTS][inner] == 0:
        return items < LONG_AXIS_ITEMS
    if nest.rank < 2 or items != 2 and items != 4:
        return False
    return nest.stride[RESULTS][inner - 1] == 0 and items * nest.shape[inner - 1] < LONG_AXIS_ITEMS


cdef bint _choose_exact_sums(Reduction *reduction, cnp.ndarray data, cnp.ndarray out, bint skips_nan) noexcept:
    """Choose how items are read, summed exactly and written; return whether kernels can do it.

    It is clearer whole: all fields follow from the dtype that kernels read.
    """
    cdef int term = dtype_row(data), result = dtype_row(out), read
    if term < 0 or term == INT64 or term == UINT64 or result < 0 or not dtypes[result].is_float:
        return False

    # Kernels read narrow floats in place. Bounds of plain sums settle narrow results; sums of float16 are exact.
    read = term if dtypes[term].is_float and (term == FLOAT16 or result != FLOAT64) and not skips_nan else FLOAT64
    _begin(reduction)
    reduction.terms.dtype = term
    reduction.terms.packed = skips_nan or term != read
    reduction.terms.packed_as = REALS if read == FLOAT64 else OWN_KIND
    reduction.terms.size = dtypes[read].size
    if skips_nan:
        reduction.terms.made_of, reduction.terms.deviation, reduction.terms.other_dtype = DEVIATIONS, NUMBER, FLOAT64
    reduction.outcome.dtype = result
    reduction.outcome.are_terms = not reduction.terms.packed and read == result == FLOAT64
    reduction.outcome.divisor = 1

    _operate(&reduction.operation, operation_kernels(target_number, EXACT_SUM, read), 8)
    reduction.operation.arrays = 3
    reduction.operation.finish = finish_exact_sums
    reduction.operation.again = sum_exactly
    return True


cdef bint _choose_exact_products(
    Reduction *reduction, cnp.ndarray data, cnp.ndarray times, cnp.ndarray out,
) noexcept:
    """Choose how products of two arrays are computed, summed exactly and written; return whether kernels can do it."""
    cdef int term = dtype_row(data), factor = dtype_row(times)
    if cnp.PyArray_ISCOMPLEX(data) or cnp.PyArray_ISCOMPLEX(times) or factor == INT64 or factor == UINT64 or factor < 0:
        return False
    if not _choose_exact_sums(reduction, data, out, False):
        return False

    reduction.terms.made_of = PRODUCTS
    reduction.terms.other_dtype = factor
    reduction.terms.packed = reduction.terms.in_bulk = True
    reduction.terms.has_errors = _digits_of(term) + _digits_of(factor) > _digits_of(FLOAT64)
    reduction.terms.packed_as = REALS
    reduction.terms.size = 8
    reduction.outcome.are_terms = False
    reduction.operation.kernels = operation_kernels(target_number, EXACT_SUM, FLOAT64)
    return True


cdef inline int _digits_of(int dtype) noexcept:
    """The precision of a dtype's numbers, in bits."""
    if not dtypes[dtype].is_float:
        return 8 * dtypes[dtype].size
    return 53 if dtype == FLOAT64 else 24


# ---- Products and deviations ----


cdef bint _choose_products(Reduction *reduction, cnp.ndarray grad, cnp.ndarray times, cnp.ndarray out) noexcept:
    """Choose how products of two arrays are computed, summed and written; return whether kernels can do it.

    Products are packed as float64 or as 64 bits.
    """
    cdef int term = dtype_row(grad), factor = dtype_row(times), result = dtype_row(out), kind
    if term < 0 or factor < 0 or result < 0 or cnp.PyArray_ISCOMPLEX(grad) or cnp.PyArray_ISCOMPLEX(times):
        return False
    if dtypes[term].is_float or dtypes[factor].is_float:
        kind = F64
        if not dtypes[result].is_float:
            return False
    else:
        kind = U64
        if not _wrap_like_products(term, factor, result):
            return False

    _begin(reduction)
    _sum_as(reduction, kind)
    reduction.terms.made_of = PRODUCTS
    reduction.terms.dtype, reduction.terms.other_dtype = term, factor
    reduction.terms.packed = True
    reduction.terms.packed_as = REALS if kind == F64 else OWN_KIND
    reduction.terms.size = 8
    reduction.outcome.dtype = result
    reduction.outcome.are_terms = False
    return True


cdef inline bint _wrap_like_products(int term, int factor, int result) noexcept:
    """Whether sums of 64-bit products of integers equal the sums of NumPy's products, which wrap in their own width."""
    if dtypes[result].is_float or term == factor == BOOL:       # a product of bools is a bool
        return False
    if term != factor and (term == UINT64 or factor == UINT64):     # their product may be a float
        return False
    return dtypes[result].size <= max(dtypes[term].size, dtypes[factor].size)


cdef bint _choose_deviations(Reduction *reduction, cnp.ndarray data, cnp.ndarray means, cnp.ndarray out) noexcept:
    """The same for squared differences of items from means. Callers may set another deviation afterwards."""
    if not _choose_products(reduction, data, means, out):
        return False
    reduction.terms.made_of = DEVIATIONS
    reduction.terms.deviation = SQUARE
    return True


cdef void _choose_multiplier(Reduction *reduction, const Nest *nest) noexcept:
    """Choose the kernels that read both operands in place, if both are contiguous."""
    cdef Terms *terms = &reduction.terms
    cdef const Dtype *dtype = &dtypes[terms.dtype]
    cdef bint is_read_unconverted = dtype.kind != F64 or terms.dtype == FLOAT64
    cdef int items = nest.rank - 1      # the innermost axis

    if not dtype.is_float or nest.stride[DATA][items] != dtype.size or not is_read_unconverted:
        return
    if terms.has_errors:
        if terms.other_dtype == terms.dtype == FLOAT64 and nest.stride[OTHER][items] == dtype.size:
            terms.multiplier = reduction.operation.kernels
        return
    if terms.made_of == DEVIATIONS:
        terms.multiplier = &reduction.target.kernels[dtype.kind]
    elif terms.dtype == terms.other_dtype:
        terms.multiplier = &reduction.target.kernels[dtype.kind]
        # Sums of few products have rounding errors far below the result, or are compensated.
        terms.multiplier_adds = not terms.in_bulk and dtypes[reduction.outcome.dtype].size <= dtype.size
        terms.spreads = nest.stride[OTHER][items] != dtype.size or _has_own_short_rows(nest)


cdef inline bint _has_own_short_rows(const Nest *nest) noexcept:
    """Whether short rows of the data are contiguous, and rows of the second operand are not."""
    cdef int items = nest.rank - 1
    cdef Py_ssize_t length = nest.shape[items]
    if items == 0 or length >= LONG_AXIS_ITEMS:
        return False
    if nest.stride[DATA][items - 1] != length * nest.stride[DATA][items]:
        return False
    if nest.stride[RESULTS][items] == 0 and nest.stride[RESULTS][items - 1] != 0:      # each row has a result
        return False
    return nest.stride[OTHER][items - 1] != length * nest.stride[OTHER][items]


cdef cnp.ndarray _product(grad, times, out):
    """`grad * times`. If results are floats, products of floats narrower than float64 are exact."""
    dtype = np.multiply.resolve_dtypes((grad.dtype, times.dtype, None))[2]
    is_narrow = (dtype.kind == "f" and dtype.itemsize < 8) or _wider(dtype) is not None
    to_float = np.can_cast(out.dtype, np.complex128) and not np.can_cast(out.dtype, np.int64) or _wider(out.dtype)
    return np.asarray(np.multiply(grad, times, dtype=np.float64 if is_narrow and to_float else None))


# ---- Operations whose accumulators have the size of items: extremes and truths ----


cdef bint _choose_same_width(Reduction *reduction, cnp.ndarray data, int operation) noexcept:
    """Choose how items are read, combined, and written as items or bools; return whether kernels can do it."""
    cdef int dtype = dtype_row(data)
    cdef bint is_truth = operation == ANY or operation == ALL
    if dtype < 0 or cnp.PyArray_ISCOMPLEX(data):
        return False

    _begin(reduction)
    reduction.terms.dtype = reduction.outcome.dtype = dtype
    if is_truth:
        reduction.outcome.dtype = BOOL
    reduction.terms.packed = False
    reduction.terms.packed_as = SAME_BYTES
    reduction.terms.size = dtypes[dtype].size
    reduction.outcome.are_terms = not is_truth or dtypes[dtype].size == 1

    _operate(&reduction.operation, operation_kernels(target_number, operation, dtype), dtypes[dtype].size)
    return True


# ---- Products of all items ----


cdef bint _choose_product(Reduction *reduction, cnp.ndarray data, cnp.ndarray out) noexcept:
    """Choose how items are read, multiplied and written; return whether kernels can do it.

    Products have 64 bits: integers if results are integers, otherwise float64.
    """
    cdef int dtype = dtype_row(data), result = dtype_row(out), factor
    if dtype < 0 or result < 0 or cnp.PyArray_ISCOMPLEX(data) or cnp.PyArray_ISCOMPLEX(out):
        return False
    if not dtypes[result].is_float and (dtypes[dtype].is_float or dtypes[result].size != 8):
        return False

    factor = _factors_of(dtype, dtypes[result].is_float)
    _begin(reduction)
    _read_factors(&reduction.terms, dtype, factor)
    reduction.outcome.dtype = result
    reduction.outcome.are_terms = factor == dtype and (not dtypes[result].is_float or dtype == result)

    _operate(&reduction.operation, operation_kernels(target_number, PRODUCT, factor), 8)
    if dtypes[result].is_float:
        reduction.operation.finish = finish_float_products
    return True


cdef void _scale_factors(Reduction *reduction) noexcept:
    """Have floats multiplied as numbers from 1 to 2 with separate exponents."""
    cdef int factor = _factors_of(reduction.terms.dtype, True)
    _read_factors(&reduction.terms, reduction.terms.dtype, factor)
    reduction.outcome.are_terms = False
    _operate(&reduction.operation, operation_kernels(target_number, SCALED_PRODUCT, factor), 8)
    reduction.operation.arrays = 2
    reduction.operation.finish = finish_scaled_products


cpdef bint has_extremes(cnp.ndarray products) except -1:
    """Whether a contiguous array of floats that kernels write has a 0, an infinity or a NaN."""
    cdef int dtype = dtype_row(products)
    cdef const char *bits = cnp.PyArray_BYTES(products)
    cdef Py_ssize_t n = items_of(products)
    if dtype < 0 or not dtypes[dtype].is_float or not cnp.PyArray_ISCARRAY_RO(products):
        raise TypeError(f"`products` expected contiguous floats, got {products.dtype}")
    return has_special(dtype, bits, n)


cdef inline int _factors_of(int dtype, bint are_real) noexcept:
    """The dtype of the factors that kernels multiply: the items' own dtype, or the one to which they are packed."""
    if are_real:
        return dtype if dtype == FLOAT32 else FLOAT64
    return dtype


cdef inline void _read_factors(Terms *terms, int dtype, int factor) noexcept:
    """Have items read as factors of the dtype `factor`."""
    terms.dtype = dtype
    terms.size = dtypes[factor].size
    terms.packed = factor != dtype
    terms.packed_as = SAME_BYTES
    if terms.packed:
        terms.packed_as = REALS if factor == FLOAT64 else OWN_KIND


# ---- Arrays: readable by kernels, and writable with results ----


cdef int _reduce_into(
    cnp.ndarray out, Reduction *reduction, cnp.ndarray data, cnp.ndarray other, Alignment alignment,
) except -1:
    """Reduce along an alignment into `out`, or into a temporary array that is copied there."""
    cdef cnp.ndarray results
    data = _readable(data)
    if other is not None:
        other = in_native_order(other)
    results = out if _can_write_to(out, data, other, alignment) else _results_like(out, data)
    _reduce_along(reduction, data, other, alignment, results)
    if results is not out:
        np.copyto(np.asarray(out), results)
    return 0


cdef inline cnp.ndarray _readable(cnp.ndarray data):
    """The data in a form that kernels read: in native byte order; complex numbers must be adjacent along some axis."""
    if cnp.PyArray_ISCOMPLEX(data) and _has_gaps(data):
        data = np.array(np.asarray(data), order="K")    # a third of the time of sums of two parts
    return in_native_order(data)


cdef bint _has_gaps(cnp.ndarray array) noexcept:
    """Whether items have gaps between them along all axes."""
    cdef int i
    for i in range(cnp.PyArray_NDIM(array)):
        if cnp.PyArray_DIM(array, i) > 1 and llabs(cnp.PyArray_STRIDE(array, i)) <= cnp.PyArray_ITEMSIZE(array):
            return False
    return True


cdef bint _can_write_to(cnp.ndarray out, cnp.ndarray data, cnp.ndarray other, Alignment alignment) except -1:
    """Whether results can be written to `out` while operands are read, along an alignment or, without one, counts."""
    if cnp.PyArray_ISCOMPLEX(out) and not cnp.PyArray_ISCOMPLEX(data):      # imaginary parts would not be written
        return False
    if not cnp.PyArray_IS_C_CONTIGUOUS(out):
        if alignment is None or not _has_order_of(data, alignment.source, out):
            return False
    if not cnp.PyArray_ISNOTSWAPPED(out) or overlap(data, out):
        return False
    return other is None or not overlap(other, out)


cdef cnp.ndarray _results_like(cnp.ndarray out, cnp.ndarray data):
    """An array for results that cannot be written to `out` yet; it is real if terms are."""
    like = np.asarray(out) if cnp.PyArray_ISCOMPLEX(data) else np.asarray(out).real
    return np.empty(like.shape, like.dtype.newbyteorder("="))


@cython.boundscheck(False)      # source has data's rank
@cython.wraparound(False)
cdef bint _has_order_of(cnp.ndarray data, tuple source, cnp.ndarray out):
    """Whether the axes of `out` are contiguous in the order in which `_read_axes` sorts the axes of `data`."""
    cdef Nest nest      # the kept axes
    cdef Py_ssize_t expected = cnp.PyArray_ITEMSIZE(out)
    cdef int k = 0, i, axis

    nest.n = 2
    nest.rank = 0
    for i in range(cnp.PyArray_NDIM(data)):
        if <Py_ssize_t> source[i] == 1:
            continue
        while k < cnp.PyArray_NDIM(out) and cnp.PyArray_DIM(out, k) == 1:
            k += 1
        if k == cnp.PyArray_NDIM(out) or cnp.PyArray_DIM(out, k) != <Py_ssize_t> source[i]:
            return False
        nest.shape[nest.rank] = cnp.PyArray_DIM(out, k)
        nest.stride[READ][nest.rank] = cnp.PyArray_STRIDE(data, i)
        nest.stride[WRITTEN][nest.rank] = cnp.PyArray_STRIDE(out, k)
        nest.rank += 1
        k += 1

    sort_axes(&nest, READ)
    for axis in range(nest.rank - 1, -1, -1):
        if nest.stride[WRITTEN][axis] != expected:
            return False
        expected *= nest.shape[axis]
    return True


# ---- Axes: arrays become a nest of few loops ----


cdef struct Layout:
    # The addresses and strides of items and results.
    Nest nest
    Py_ssize_t repeats      # repetitions of each term along reduced axes of stride 0, which are dropped
    Py_ssize_t item_stride  # stride between items of the results along counts, in bytes


cdef int _read_axes(Layout *layout, cnp.ndarray data, cnp.ndarray other, tuple source, cnp.ndarray out) except -1:
    """Read the axes longer than 1, in the order of `data`'s memory; merge neighbours of one kind.

    Axes with negative strides are flipped; results are in C order. There is at least one axis.
    """
    cdef Nest *nest = &layout.nest
    _lay_out(nest, data, other, source, cnp.PyArray_ITEMSIZE(out))
    _set_first_items(nest, data, other, out)
    layout.repeats = _drop_repeated(nest)
    if not cnp.PyArray_IS_C_CONTIGUOUS(data):       # contiguous axes need neither a flip nor an order
        flip_negative_axes(nest, DATA)
        sort_axes(nest, DATA)
    _add_parts(nest, data, cnp.PyArray_ITEMSIZE(out))
    coalesce_axes(nest)
    return 0


cdef int _read_counted_axes(Layout *layout, cnp.ndarray data, int along, Counts counts, cnp.ndarray out) noexcept:
    """The same if counts reduce axis `along`. This axis keeps its direction, and is read even if its length is 1."""
    cdef Nest *nest = &layout.nest
    cdef Py_ssize_t result_stride = _lay_out_counted(
        nest, data, along, counts.size, cnp.PyArray_NBYTES(out), &layout.item_stride,
    )
    cdef Py_ssize_t stride = cnp.PyArray_STRIDE(data, along)
    cdef int counted = 0

    _set_first_items(nest, data, None, out)
    layout.repeats = 1
    flip_negative_axes(nest, DATA)
    sort_axes(nest, DATA)
    _add_parts(nest, data, result_stride)
    coalesce_axes(nest)
    if stride < 0:      # the counted axis was flipped, with the others
        while nest.stride[RESULTS][counted]:
            counted += 1
        nest.data[DATA] -= (nest.shape[counted] - 1) * stride
        nest.stride[DATA][counted] = stride
    return 0


@cython.boundscheck(False)      # source has data's rank
@cython.wraparound(False)
cdef int _lay_out(Nest *nest, cnp.ndarray data, cnp.ndarray other, tuple source, Py_ssize_t result_size) except -1:
    """Describe the axes longer than 1. Results have `result_size` bytes and are in C order."""
    cdef int missing = 0 if other is None else cnp.PyArray_NDIM(data) - cnp.PyArray_NDIM(other), i, n = 0
    cdef Py_ssize_t result_stride = result_size, length

    for i in range(cnp.PyArray_NDIM(data)):
        length = cnp.PyArray_DIM(data, i)
        if length == 1:
            continue
        nest.shape[n] = length
        nest.stride[DATA][n] = cnp.PyArray_STRIDE(data, i)
        nest.stride[OTHER][n] = nest.stride[RESULTS][n] = 0
        if other is not None and i >= missing and cnp.PyArray_DIM(other, i - missing) != 1:
            nest.stride[OTHER][n] = cnp.PyArray_STRIDE(other, i - missing)
        if <Py_ssize_t> source[i] != 1:
            nest.stride[RESULTS][n] = result_size       # marks a kept axis until its stride is known
        n += 1
    nest.rank = n

    for i in range(n - 1, -1, -1):
        if nest.stride[RESULTS][i]:
            nest.stride[RESULTS][i] = result_stride
            result_stride *= nest.shape[i]
    return 0


cdef Py_ssize_t _lay_out_counted(
    Nest *nest, cnp.ndarray data, int along, Py_ssize_t items, Py_ssize_t result_bytes, Py_ssize_t *item_stride,
) noexcept:
    """The same along counts. Their axis is a reduced one; return its stride in the results."""
    cdef Py_ssize_t result_stride = result_bytes, length
    cdef int i, n = 0

    for i in range(cnp.PyArray_NDIM(data)):
        length = cnp.PyArray_DIM(data, i)
        if length == 1 and i != along:
            continue
        nest.shape[n] = length
        nest.stride[DATA][n] = cnp.PyArray_STRIDE(data, i)
        nest.stride[OTHER][n] = nest.stride[RESULTS][n] = 0
        if i == along:
            result_stride //= items
            item_stride[0] = result_stride
        else:
            result_stride //= length
            nest.stride[RESULTS][n] = result_stride
        n += 1
    nest.rank = n
    return result_stride


cdef inline void _set_first_items(Nest *nest, cnp.ndarray data, cnp.ndarray other, cnp.ndarray out) noexcept:
    """Record the addresses of the operands."""
    nest.n = OPERANDS
    nest.data[DATA] = <char *> cnp.PyArray_DATA(data)
    nest.data[OTHER] = NULL if other is None else <char *> cnp.PyArray_DATA(other)
    nest.data[RESULTS] = <char *> cnp.PyArray_DATA(out)


cdef inline Py_ssize_t _drop_repeated(Nest *nest) noexcept:
    """Drop reduced axes of stride 0, along which all terms are the same; return the repetitions of each term."""
    cdef Py_ssize_t repeats = 1
    cdef int axis, left = 0
    for axis in range(nest.rank):
        if nest.stride[DATA][axis] == 0 and nest.stride[OTHER][axis] == 0 and nest.stride[RESULTS][axis] == 0:
            repeats *= nest.shape[axis]
            continue
        if left != axis:
            copy_axis(nest, left, axis)
        left += 1
    nest.rank = left
    return repeats


cdef inline void _add_parts(Nest *nest, cnp.ndarray data, Py_ssize_t result_stride) noexcept:
    """Add an axis of length 1 if there is none, and an axis for the two parts of complex numbers."""
    cdef Py_ssize_t size = cnp.PyArray_ITEMSIZE(data)
    if nest.rank == 0:
        _add_inner_axis(nest, 1, size, result_stride)
    if cnp.PyArray_ISCOMPLEX(data):
        _add_inner_axis(nest, 2, size // 2, result_stride // 2)


cdef inline void _add_inner_axis(Nest *nest, Py_ssize_t length, Py_ssize_t stride, Py_ssize_t result_stride) noexcept:
    """Add an axis inside of all others."""
    nest.shape[nest.rank] = length
    nest.stride[DATA][nest.rank], nest.stride[OTHER][nest.rank] = stride, 0
    nest.stride[RESULTS][nest.rank] = result_stride
    nest.rank += 1


cdef void _use_strides_of(cnp.ndarray out, Nest *nest) noexcept:
    """Replace the strides of results in C order with the strides of `out`, whose axes have the data's order.

    The plan and the bits stay the same. The parts of complex numbers keep their stride.
    """
    cdef Py_ssize_t *strides = &nest.stride[RESULTS][0]
    cdef Py_ssize_t[MAX_AXES + 1] in_c_order
    cdef Py_ssize_t c_stride = cnp.PyArray_ITEMSIZE(out), stride
    cdef int i, j

    for j in range(nest.rank):
        in_c_order[j] = strides[j]
    for i in range(cnp.PyArray_NDIM(out) - 1, -1, -1):
        if cnp.PyArray_DIM(out, i) == 1:
            continue
        stride = cnp.PyArray_STRIDE(out, i)
        for j in range(nest.rank):
            if llabs(in_c_order[j]) == c_stride:
                strides[j] = stride if in_c_order[j] > 0 else -stride
        c_stride *= cnp.PyArray_DIM(out, i)

    nest.data[RESULTS] = <char *> cnp.PyArray_DATA(out)
    for j in range(nest.rank):
        if in_c_order[j] < 0:
            nest.data[RESULTS] -= (nest.shape[j] - 1) * strides[j]


# ---- Plans, threads, memory ----


cdef struct Work:
    # Data common to all shares of a reduction.
    const ReductionPlan *plan       # NULL along counts
    const CountedPlan *counted
    Py_ssize_t units                # work to divide among threads: a plan's shares, or the rows and items of counts
    Job job                         # runs the shares, and stores the accumulators of tiles with several shares


cdef int _reduce_along(
    Reduction *reduction, cnp.ndarray data, cnp.ndarray other, Alignment alignment, cnp.ndarray out,
) except -1:
    """Read the axes of an alignment, plan a reduction and run it."""
    cdef Layout layout
    cdef Nest *nest = &layout.nest
    cdef Py_ssize_t nbytes
    cdef bint as_counts

    _read_axes(&layout, data, other, alignment.source, out)
    nbytes = cnp.PyArray_NBYTES(data)
    if layout.repeats != 1:     # divisions are slow
        nbytes //= layout.repeats
    _suit_layout(reduction, &layout, nbytes)
    if other is not None and reduction.terms.made_of != ITEMS:
        _choose_multiplier(reduction, nest)
    as_counts = is_faster_along_counts(reduction, nest)
    if not cnp.PyArray_IS_C_CONTIGUOUS(out):
        _use_strides_of(out, nest)

    if as_counts:       # each count is the length of the axis
        layout.item_stride = nest.shape[2] * nest.stride[RESULTS][2]
        nbytes = max(nbytes, cnp.PyArray_NBYTES(out))
        return _run_counted(reduction, &layout, counts_of_tuple((nest.shape[1],)), nbytes, data, out)
    _choose_narrow(reduction, nest)
    return _run_planned(reduction, nest, nbytes, data, other, out)


cdef int _reduce_counted(
    Reduction *reduction, cnp.ndarray data, Counts counts, int along, cnp.ndarray out, bint exact,
) except -1:
    """Read the axes of a reduction along counts, plan it and run it."""
    cdef Layout layout
    cdef Py_ssize_t nbytes = cnp.PyArray_NBYTES(data)
    cdef const Py_ssize_t *strides = &layout.nest.stride[RESULTS][0]
    cdef int rank

    _read_counted_axes(&layout, data, along, counts, out)
    rank = layout.nest.rank
    if rank > 2 and strides[rank - 1] and strides[rank - 2]:
        if _sum_in_order(data, counts, along, out, exact):
            return 0
    _suit_layout(reduction, &layout, nbytes)
    return _run_counted(reduction, &layout, counts, max(nbytes, cnp.PyArray_NBYTES(out)), data, out)


cdef inline void _suit_layout(Reduction *reduction, const Layout *layout, Py_ssize_t nbytes) noexcept:
    """Record the effects of the items' layout: packing, prefetching, and the repeat count."""
    if layout.nest.stride[DATA][layout.nest.rank - 1] != reduction.terms.size:
        reduction.terms.packed = True
    if nbytes >= SUM_PREFETCHED_BYTES:
        reduction.terms.ahead = 2 * PAGE
    if layout.repeats != 1 and not reduction.operation.idempotent:
        reduction.outcome.repeats = layout.repeats
        reduction.outcome.are_terms = False


cdef bint _sum_in_order(grad, Counts counts, int along, out, bint exact) except -1:
    """Sum into a result in the memory order of `grad`, which has longer rows, if `out` has another order."""
    grad, out = np.asarray(grad), np.asarray(out)
    order = (-np.abs(grad.strides)).argsort(kind="stable").tolist()
    if order == list(range(grad.ndim)):
        return False
    places = np.argsort(order)
    result = np.empty(out.transpose(order).shape, out.dtype)
    sum_counted(grad.transpose(order), counts, places[along], result, exact)
    np.copyto(out, result.transpose(places))
    return True


# Each plan has its own stack frame, so that small reductions do not touch uncached memory.


cdef int _run_planned(
    const Reduction *reduction, const Nest *nest, Py_ssize_t nbytes, cnp.ndarray data, cnp.ndarray other,
    cnp.ndarray out,
) except -1:
    """Plan a reduction along an alignment, and run it."""
    cdef ReductionPlan plan
    cdef int threads, shares
    cdef Work work

    plan.reduction = reduction
    plan_reduction(&plan, nest, SUM_SHARES)

    threads = threads_for(nbytes, plan.shares.count)
    shares = 1 if threads == 1 else <int> plan.shares.count
    work = Work(plan=&plan, counted=NULL, units=plan.shares.count, job=new_job(_run_share, &work, threads, shares))
    work.job.scratch_bytes = plan.scratch
    if plan.shares.each > 1:
        work.job.found_bytes = (
            work.units * reduction.operation.arrays * plan.block.items * reduction.operation.accumulator_size
        )
        work.job.fold = _combine_parts
    return _run(&work, nbytes, data, other, out)


cdef int _run_counted(
    const Reduction *reduction, const Layout *layout, Counts counts, Py_ssize_t nbytes, cnp.ndarray data,
    cnp.ndarray out,
) except -1:
    """Plan a reduction along counts, and run it."""
    cdef CountedPlan plan
    cdef Py_ssize_t units
    cdef int threads
    cdef Work work

    plan.reduction, plan.counts.list = reduction, counts.list
    plan_counted(&plan, &layout.nest, layout.item_stride)

    units = plan.positions * plan.length
    threads = threads_for(nbytes, units)
    work = Work(
        plan=NULL,
        counted=&plan,
        units=units,
        job=new_job(_run_share, &work, threads, count_shares(threads, units)),
    )
    work.job.scratch_bytes = plan.scratch
    return _run(&work, nbytes, data, None, out)


cdef int _run(Work *work, Py_ssize_t nbytes, cnp.ndarray data, other, cnp.ndarray out) except -1:
    """Run a job. A job that reads little is a single share, and keeps the GIL."""
    cdef char[LOCAL_BYTES + 2 * LINE] local
    cdef bint releasing = nbytes >= share_bytes or work.job.fold != NULL
    cdef tuple arrays = (data, other, out) if releasing else None   # may fail, so it precedes the scratch memory

    if not take_scratch(&work.job, local, sizeof(local)):
        raise MemoryError
    if releasing:
        run_without_gil(&work.job, arrays)
    else:
        _run_share(work, 0, 0)
    free_scratch(&work.job)
    return 0


cdef void _run_share(void *all_work, int share, int worker) noexcept nogil:
    """Run one share of the work."""
    cdef const Work *work = <const Work *> all_work
    cdef Py_ssize_t begin = cut(work.units, share, work.job.shares), end = cut(work.units, share + 1, work.job.shares)
    cdef char *scratch = scratch_of(&work.job, worker)
    if work.plan == NULL:
        reduce_counted_share(work.counted, begin, end, scratch)
    else:
        reduce_shares(work.plan, begin, end, scratch, work.job.found)


cdef void _combine_parts(void *all_work) noexcept nogil:
    """Combine the accumulators of each tile's shares."""
    cdef const Work *work = <const Work *> all_work
    combine_shares(work.plan, work.job.found)


# ---- Exact sums of rows, and of their squares ----


cdef enum:
    MOST_SHARES_OF_ROWS = 64

cdef int64_t MOST_COUNT = 2 ** 53     # the numbers of terms up to it are exact in float64

cdef struct RowWork:
    # A function of rows, which threads share.
    ExactRows rows
    double *squares             # of integers, to be bounded; otherwise NULL
    int[MOST_SHARES_OF_ROWS][2 * (MEASURED_PARTS + 1)] ranges   # of digits, of each share; if digits are written
    Job job


cpdef settle_spreads_onto(
    cnp.ndarray sums, cnp.ndarray squares, cnp.ndarray out, double count, double divisor, double rest, bint root,
    cnp.dtype to,
):
    """Write norms, variances or their roots from bounded sums, rounded once; or NaN where bounds leave them open.

    `squares` are three rows of float64: sums of squares as two numbers, and bounds. `sums` are three such rows for the
    sums of each part of the items, and `divisor + rest` is ``count * (count - ddof)``; norms have no `sums`. Results
    are float64, to be rounded to the dtype `to`. Options come one by one.
    """
    cdef Py_ssize_t n = items_of(out)
    cdef Settling settling = settling_of(row_of_dtype(to), 1)
    cdef Spreading how
    cdef BoundedSums bounded
    for array in (sums, squares):
        _check_contiguous(array, FLOAT64)
    _check_contiguous(out, FLOAT64, True)
    if items_of(squares) != 3 * n or n == 0 or items_of(sums) % (3 * n) != 0 or items_of(sums) > 3 * n * MEASURED_PARTS:
        refuse_resized()

    how.parts = <int> (items_of(sums) // (3 * n))
    how.count, how.divisor, how.rest, how.root = count, divisor, rest, root
    how.digits, how.least_normal = settling.digits, settling.least_normal
    bounded.squares = <const double *> cnp.PyArray_DATA(squares)
    bounded.sums = <const double *> cnp.PyArray_DATA(sums)
    bounded.apart = n
    sum_target(target_number).settle_spreads(&how, &bounded, <double *> cnp.PyArray_DATA(out), n)


cpdef bint bound_integers_onto(cnp.ndarray rows, cnp.ndarray sums, cnp.ndarray squares) except -1:
    """Write sums of rows of 64-bit integers, and of their squares, as two numbers and a bound each.

    Return whether the rows are so short that the core can; otherwise, do nothing.
    """
    cdef RowWork work
    _take_rows(&work, rows, False)
    if work.rows.dtype == FLOAT64:
        raise TypeError(f"`rows` expected integers of 64 bits, got {rows.dtype}")
    if work.rows.length > INTEGERS_AT_ONCE:
        return False
    for array in (sums, squares):
        _check_contiguous(array, FLOAT64, True)
        if items_of(array) != 3 * work.rows.count:
            refuse_resized()
    work.rows.results = <double *> cnp.PyArray_DATA(sums)
    work.squares = <double *> cnp.PyArray_DATA(squares)
    _run_rows(&work, rows, (sums, squares))
    return True


cpdef measure_rows_onto(
    cnp.ndarray rows, cnp.ndarray out, double ddof, bint has_means, bint root, bint to_odd, bint skips_nan,
):
    """Write the norm, the variance or its root of each row, rounded once; with `to_odd`, for a second rounding.

    Rows have float64 or integers of 64 bits, in the second axis. A third axis has the two parts of complex items, or
    one. A variance of `ddof` items or fewer is NaN. Options come one by one.
    """
    cdef RowWork work
    _take_rows(&work, rows, skips_nan)
    _check_contiguous(out, FLOAT64, True)
    if items_of(out) != work.rows.count:
        refuse_resized()
    work.rows.how.has_means, work.rows.how.is_root, work.rows.how.to_odd = has_means, root, to_odd
    work.rows.how.ddof = ddof
    work.rows.results = <double *> cnp.PyArray_DATA(out)
    _run_rows(&work, rows, (out,))


cpdef tuple digits_of_rows(cnp.ndarray rows, bint skips_nan):
    """Return exact sums of the items of each row, and of their squares, as integers of 4480 bits.

    Rows are as in `measure_rows_onto`. For each part of the items, and then for squares: the digits of 32 bits, one row
    for each sum; the range of the digits in use; the sums of infinite items and NaN, otherwise 0. Then the numbers of
    items follow.
    """
    cdef RowWork work
    cdef cnp.ndarray digits, specials, counts
    cdef int i, k, low, high
    _take_rows(&work, rows, skips_nan)
    shape = (work.rows.how.parts + 1, work.rows.count)
    digits = np.zeros(shape + (EXACT_DIGITS,), np.int64)
    specials, counts = np.zeros(shape), np.zeros(shape[1], np.int64)
    work.rows.digits = <int64_t *> cnp.PyArray_DATA(digits)
    work.rows.specials = <double *> cnp.PyArray_DATA(specials)
    work.rows.counts = <int64_t *> cnp.PyArray_DATA(counts)
    _run_rows(&work, rows, (digits, specials, counts))

    ranges = []
    for i in range(work.rows.how.parts + 1):
        low, high = EXACT_DIGITS, 0
        for k in range(work.job.shares):
            low, high = min(low, work.ranges[k][2 * i]), max(high, work.ranges[k][2 * i + 1])
        ranges.append((min(low, high), high + 1))
    return digits, ranges, specials, counts


cdef int _take_rows(RowWork *work, cnp.ndarray rows, bint skips_nan) except -1:
    """Read the layout of rows."""
    cdef ExactRows *to = &work.rows
    cdef int dtype = dtype_row(rows)
    if cnp.PyArray_NDIM(rows) != 3 or items_of(rows) == 0 or cnp.PyArray_DIM(rows, 2) > MEASURED_PARTS:
        refuse_resized()
    if dtype != FLOAT64 and dtype != INT64 and dtype != UINT64 or cnp.PyArray_ISCOMPLEX(rows):
        raise TypeError(f"`rows` expected float64 or integers of 64 bits, got {rows.dtype}")
    if not cnp.PyArray_ISNOTSWAPPED(rows) or dtype != FLOAT64 and cnp.PyArray_DIM(rows, 2) > 1:
        raise TypeError(f"`rows` expected real numbers in native byte order, got {rows.dtype}")
    to.src = <const char *> cnp.PyArray_DATA(rows)
    to.dtype = dtype
    to.count, to.length = cnp.PyArray_DIM(rows, 0), cnp.PyArray_DIM(rows, 1)
    to.advance, to.stride = cnp.PyArray_STRIDE(rows, 0), cnp.PyArray_STRIDE(rows, 1)
    to.part_stride = cnp.PyArray_STRIDE(rows, 2)
    to.how = Measuring(
        parts=<int> cnp.PyArray_DIM(rows, 2), has_means=True, is_root=False, to_odd=False, skips_nan=skips_nan, ddof=0,
    )
    to.results, to.digits, to.specials, to.counts = NULL, NULL, NULL, NULL
    work.squares = NULL
    return 0


cdef int _run_rows(RowWork *work, cnp.ndarray rows, tuple others) except -1:
    """Run a function of rows on threads."""
    cdef Py_ssize_t nbytes = cnp.PyArray_NBYTES(rows)
    cdef int threads = threads_for(nbytes, work.rows.count), i, k
    work.job = new_job(_run_share_of_rows, work, threads, count_shares(threads, work.rows.count))
    work.job.shares = min(work.job.shares, <int> MOST_SHARES_OF_ROWS)
    for k in range(work.job.shares):
        for i in range(MEASURED_PARTS + 1):
            work.ranges[k][2 * i], work.ranges[k][2 * i + 1] = EXACT_DIGITS, 0
    if nbytes < share_bytes:
        _run_share_of_rows(work, 0, 0)
    else:
        run_without_gil(&work.job, (rows, *others))
    return 0


cdef void _run_share_of_rows(void *all_work, int share, int worker) noexcept nogil:
    """Run one share of the rows."""
    cdef RowWork *work = <RowWork *> all_work
    cdef Py_ssize_t begin = cut(work.rows.count, share, work.job.shares)
    cdef Py_ssize_t end = cut(work.rows.count, share + 1, work.job.shares)
    if work.squares != NULL:
        bound_rows_of_integers(&work.rows, work.squares, begin, end)
    elif work.rows.digits != NULL:
        write_digits_of_rows(&work.rows, begin, end, work.ranges[share])
    else:
        measure_rows(&work.rows, begin, end)


cpdef round_digits_onto(
    cnp.ndarray digits, int low, cnp.ndarray specials, cnp.ndarray divisors, cnp.ndarray out, bint to_odd,
):
    """Write sums that digits give, divided by integers and rounded once; with `to_odd`, for a second rounding.

    `digits` has a row for each digit, from digit `low` on. `specials` are sums of infinite terms and NaN, otherwise 0.
    """
    cdef DigitSums sums
    _take_digits(&sums, digits, low, specials, divisors, out, 1)
    round_digits(&sums, <double *> cnp.PyArray_DATA(out), to_odd)


cpdef measure_digits_onto(
    tuple sums, tuple squares, cnp.ndarray counts, cnp.ndarray out, double ddof, bint root, bint to_odd,
):
    """Write norms, variances or their roots of sums and sums of squares that digits give, rounded once.

    `sums` and `squares` are digits, the place of the first one, and specials, as in `round_digits_onto`. The digits of
    sums have an axis more, the first, of the parts of items. Norms have no such part. Options come one by one.
    """
    cdef DigitSums all_sums, all_squares
    cdef Measuring how
    cdef cnp.ndarray digits = sums[0]
    cdef int parts = <int> cnp.PyArray_DIM(digits, 0) if cnp.PyArray_NDIM(digits) else -1
    if not 0 <= parts <= MEASURED_PARTS:
        refuse_resized()
    _take_digits(&all_squares, squares[0], squares[1], squares[2], counts, out, 1)
    if parts:
        _take_digits(&all_sums, digits, sums[1], squares[2], counts, out, parts)
    how = Measuring(
        parts=parts, has_means=parts > 0, is_root=root, to_odd=to_odd, skips_nan=False, ddof=ddof,
    )
    measure_digits(&how, &all_sums, &all_squares, <double *> cnp.PyArray_DATA(out))


cdef int _take_digits(
    DigitSums *sums, cnp.ndarray digits, int low, cnp.ndarray specials, cnp.ndarray divisors, cnp.ndarray out,
    int parts,
) except -1:
    """Read the layout of digits, of sums of each part of items, and check all arrays, which come one by one."""
    cdef Py_ssize_t i, each
    cdef const int64_t *each_divisor
    _check_contiguous(digits, INT64)
    _check_contiguous(specials, FLOAT64)
    _check_contiguous(divisors, INT64)
    _check_contiguous(out, FLOAT64, True)
    sums.count = items_of(out)
    if items_of(specials) != sums.count or items_of(divisors) != sums.count or sums.count == 0:
        refuse_resized()
    each = items_of(digits) // (parts * sums.count)
    if each * parts * sums.count != items_of(digits) or low < 0 or each > EXACT_DIGITS - low:
        refuse_resized()
    sums.digits = <const int64_t *> cnp.PyArray_DATA(digits)
    sums.low, sums.length = low, <int> each
    sums.specials = <const double *> cnp.PyArray_DATA(specials)
    sums.divisors = each_divisor = <const int64_t *> cnp.PyArray_DATA(divisors)
    for i in range(sums.count):
        if not 0 < each_divisor[i] <= MOST_COUNT:
            raise ValueError(f"`divisors` expected integers from 1 to 2**53, got {each_divisor[i]}")
    return 0


cdef int _check_contiguous(cnp.ndarray array, int dtype, bint is_written=False) except -1:
    """Check that an array has real items of a dtype side by side, and that they can be written if they are."""
    cdef bint fits = cnp.PyArray_ISCARRAY(array) if is_written else cnp.PyArray_ISCARRAY_RO(array)
    if dtype_row(array) != dtype or cnp.PyArray_ISCOMPLEX(array) or not fits:
        wanted = "float64" if dtype == FLOAT64 else "int64"
        raise TypeError(f"expected a contiguous array of {wanted}, got {array.dtype}")
    return 0


# ---- Calls for NumPy ----


cdef _leave_to_numpy(grad, Alignment alignment, out):
    """Run calls without sums, which are copies, and sums without kernels, such as those of long doubles and objects."""
    grad, out = np.asarray(grad), np.asarray(out)
    pairs = enumerate(zip(alignment.shape, alignment.source))
    axes = tuple([i for i, (length, kept) in pairs if kept != length])
    if axes:
        # Without `keepdims`, a sum of objects is not an array.
        grad = np.add.reduce(grad, axes, _dtype_of_terms(grad.dtype, out.dtype), keepdims=True)
    if not np.can_cast(grad.dtype, out.dtype) or np.may_share_memory(grad, out):
        grad = rounded_to(grad, out.dtype)      # this may fail or warn, so it comes before the write
    np.copyto(out, grad.reshape(out.shape), "unsafe")


cdef _leave_counts_to_numpy(grad, Counts counts, int along, out):
    """The same for counts. Empty runs are skipped, because `reduceat` returns the next term for them."""
    grad, out = np.asarray(grad), np.asarray(out)
    lengths = counts.to_array()
    kept = lengths != 0
    starts = (lengths.cumsum() - lengths)[kept]
    result = np.zeros(out.shape, out.dtype.newbyteorder("="))
    dtype = _dtype_of_terms(grad.dtype, out.dtype)
    result[(slice(None),) * along + (kept,)] = rounded_to(np.add.reduceat(grad, starts, along, dtype), result.dtype)
    np.copyto(out, result)


cdef _dtype_of_terms(own, out):
    """The dtype to which NumPy converts terms; None for their own. Units of time do not count."""
    if own.num in (cnp.NPY_LONGDOUBLE, cnp.NPY_CLONGDOUBLE) and kind_of_sums(out) in ("f", "c"):
        return None     # sums in higher precision are rounded once
    wide = None if out.kind in "iu" else _wider(own) or _wider(out)
    return wide or (None if own == out else out.newbyteorder("="))


cdef _wider(dtype):
    """The dtype in which floats of other packages, such as float8, are summed; None for other dtypes."""
    if not cnp.PyTypeNum_ISUSERDEF(dtype.num) or not np.can_cast(dtype, np.float64):
        return None
    half = np.asarray(0.5).astype(dtype)    # an integer dtype leaves 0
    return np.dtype(np.float64) if half.astype(np.float64) == 0.5 else None
