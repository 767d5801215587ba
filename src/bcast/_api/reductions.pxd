# The C types of _api/reductions.py, which is plain Python without them.
cimport cython
from numpy cimport dtype as Dtype, ndarray

from bcast._api.adjoints cimport wide_dtype, write_exact_sums
from bcast._api.converted cimport as_base, as_operand, is_handed_on, is_of_package
from bcast._elementwise cimport choose, with_plain_bytes
from bcast._kernel cimport replicate
from bcast._reduce.search cimport find_positions_onto, find_truths_onto, is_searched
from bcast._reduce.vectors cimport find_statistics_onto
from bcast._reduction cimport (
    average_onto, converted_terms, find_extremes_onto, has_extremes, has_kernels, kind_of_sums, reduce_onto,
    spread_onto, sum_numbers_onto, sum_onto,
)
from bcast._rules.arguments cimport axes_argument, dtype_argument, place_of
from bcast._rules.alignment cimport Alignment, aligned
from bcast._runtime.arrays cimport (
    dtype_of, has_references, is_contiguous, reduced_shape, reshaped, result_array, shape_of, size_of,
)

cdef Dtype BOOL, INT64, UINT64, FLOAT32, FLOAT64, COMPLEX128
cdef object NO_VALUE, NOTHING, ZERO


@cython.freelist(4)
cdef class Reduction:
    cdef readonly str name
    cdef readonly object a, axis, dtype, out, keepdims, ddof, initial
    cdef object start, divisors
    cdef ndarray array, means
    cdef readonly bint has_squares
    cdef bint keeps, skips_nan, is_exact, has_means, lacks_terms
    cdef tuple axes, lengths, source, shape
    cdef Py_ssize_t count


@cython.locals(call=Reduction)
cpdef Reduction reduction(str name, a, axis, out, keepdims)


cdef bint read_call(Reduction call) except -1


@cython.locals(shape=tuple, at=Py_ssize_t, count=Py_ssize_t)
cdef bint read_axes(Reduction call) except -1


cdef _array_of(a)
cdef bint _can_be_read_again(axis) except -1
cdef _flag_of(value)


@cython.locals(axes=list, at=Py_ssize_t)
cpdef tuple reduced_axes(axis, tuple shape)


cpdef bint is_everywhere(where) except -1
cpdef bint are_usual(str name, initial, where) except -1
cpdef bint needs_initial(str name, where) except -1
cpdef axis_for_numpy(Reduction call)
cdef _order_of_result(Reduction call, out)
cdef _order_in_memory(array)
cdef list _without_unit_axes(tuple shape, strides)


@cython.locals(other=Reduction)
cdef Reduction _transposed(Reduction call, list order)


cdef _transposed_back(Reduction call, list order, result)


@cython.locals(other=Reduction)
cdef Reduction _of(Reduction call, array)


cdef _found(Reduction call, initial, where)
cpdef found_by_core(Reduction call)


@cython.locals(wanted=Dtype)
cdef _extreme_by_core(Reduction call, int operation)


@cython.locals(found=ndarray)
cdef _extreme_of_halves(Reduction call, int operation, Dtype wanted)


cdef bint _are_halves(Dtype dtype) except -1
cdef _with_first_nans(Reduction call, found)


@cython.locals(axes=list, at=Py_ssize_t)
cdef ndarray _table_of_terms(Reduction call)


cdef _combined_as(Reduction call, int operation, Dtype wanted)
cdef _out_or_new(Reduction call, ndarray found)
cdef _extremes(Reduction call, out)


cpdef check_pair(out)
cpdef into_pair(out, found)


@cython.locals(array=ndarray, to=Dtype)
cdef _rounded_for(target, result)


cdef bint _are_of_dtype(tuple pair, Dtype dtype) except -1
cdef _extremes_by_core(Reduction call)


@cython.locals(array=ndarray, dtype=Dtype)
cdef _write_extremes(Reduction call, first, second)


@cython.locals(own=Dtype, wanted=Dtype, given=Dtype)
cdef _product_by_core(Reduction call)


@cython.locals(found=ndarray)
cdef _product_of_floats(Reduction call, Dtype wanted)


@cython.locals(found=ndarray, is_sure=bint)
cdef ndarray _products(Reduction call, Dtype wanted)


@cython.locals(array=ndarray, result=ndarray)
cdef _position_by_core(Reduction call)


cdef ndarray _searchable(ndarray array, int axis, bint is_flat)
cdef bint _is_of_positions(ndarray out, tuple shape) except -1
cdef bint _takes_positions(ndarray out, ndarray array) except -1


@cython.locals(shape=tuple, copy=ndarray)
cdef _contiguous(ndarray array)


@cython.locals(array=ndarray, found=ndarray)
cdef _truth_by_core(Reduction call, int operation)


@cython.locals(array=ndarray, dtype=Dtype)
cdef bint _is_compared(Reduction call) except -1


@cython.locals(array=ndarray, result=ndarray)
cdef _combined(Reduction call, int operation, Dtype dtype, out)


@cython.locals(itemsize=Py_ssize_t)
cdef bint _is_worth_parts(Reduction call) except -1


@cython.locals(array=ndarray)
cdef bint _has_long_runs(Reduction call) except -1


@cython.locals(array=ndarray, shape=tuple, length=Py_ssize_t, at=Py_ssize_t)
cdef Py_ssize_t _length_of_rows(Reduction call) except -1


@cython.locals(array=ndarray, shape=tuple, last=Py_ssize_t, size=Py_ssize_t, left=Py_ssize_t)
cdef ndarray _as_rows(Reduction call)


@cython.locals(outer=Py_ssize_t)
cdef tuple _kept_by_rows(Reduction call, ndarray items)


@cython.locals(
    array=ndarray, size=Py_ssize_t, kept=tuple, items=ndarray, piece=ndarray, found=ndarray, results=ndarray,
    part=ndarray, begin=Py_ssize_t, rows=Py_ssize_t, length=Py_ssize_t, end=Py_ssize_t,
)
cdef _truths_by_parts(Reduction call, int operation)


@cython.locals(shape=tuple, found=ndarray)
cdef _truths_of_rows(Reduction call, ndarray items, int operation)


cdef _numpys(Reduction call, initial, where)


@cython.locals(beside=Reduction, found=ndarray)
cdef _truth_into_references(Reduction call, where)


@cython.locals(call=Reduction, has_more=bint)
cpdef statistic(str name, a, axis, dtype, out, keepdims, ddof, dict others, numpys)


cdef bint _read_options(Reduction call, dict others) except -1


@cython.locals(own=Dtype, wanted=Dtype, of_parts=bint)
cpdef reduced(Reduction call)


@cython.locals(written=Dtype)
cdef _reduced_otherwise(Reduction call, Dtype own, Dtype wanted, bint of_parts)


@cython.locals(start=ndarray, wide=Dtype)
cdef _sum_from_initial(Reduction call, Dtype wanted)


@cython.locals(terms=ndarray)
cdef _sign_zeros(Reduction call, ndarray total)


@cython.locals(real=Reduction, imaginary=Reduction)
cdef _of_both_parts(Reduction call)


cdef bint _is_dtype_of(ndarray out, Dtype dtype) except -1


@cython.locals(array=ndarray)
cpdef rounded_into(out, result, dtype)


@cython.locals(result=ndarray)
cdef _computed(Reduction call, Dtype wanted, out)


@cython.locals(other=Reduction)
cdef _computed_in_order(Reduction call, Dtype wanted, list order)


@cython.locals(array=ndarray, alignment=Alignment)
cdef _write_statistic(Reduction call, ddof, ndarray result, bint is_fresh)


@cython.locals(
    array=ndarray, blocks=Py_ssize_t, axis=Py_ssize_t, whole_length=Py_ssize_t, length=Py_ssize_t, begin=Py_ssize_t,
    whole=ndarray, means=ndarray,
)
cdef _write_squares(Reduction call, double divisor, ndarray out, bint is_fresh)


@cython.locals(nbytes=Py_ssize_t, means_bytes=Py_ssize_t)
cdef Py_ssize_t _blocks_for_means(ndarray array, ndarray out) except -1


@cython.locals(at=Py_ssize_t, axis=Py_ssize_t)
cdef Py_ssize_t _axis_of_blocks(tuple source, Py_ssize_t blocks) except -1


@cython.locals(alignment=Alignment, means=ndarray, is_narrow=bint, is_direct=bint, is_rough=bint)
cdef _write_squares_of_block(Reduction call, double divisor, ndarray data, ndarray averages, ndarray result)


@cython.locals(ddof=double, is_square=bint, made=int, first=ndarray, second=ndarray, counts=ndarray)
cdef bint _write_of_short_vectors(Reduction call, Alignment alignment, ndarray result) except -1


@cython.locals(call=Reduction, own=Dtype, wanted=Dtype)
cpdef mean_and_deviation(a, axis, ddof, keepdims)


@cython.locals(call=Reduction, are_defaults=bint)
cpdef without_nan(str name, a, axis, dtype, out, keepdims, ddof, dict others, numpys, int level=*)


cdef bint _are_defaults(dict options) except -1
cdef str _warning_of(str name)


@cython.locals(own=Dtype, wanted=Dtype, is_extreme=bint)
cdef _found_without_nan(Reduction call)


cdef bint _are_numbers_or_nan(ndarray array, Dtype own) except -1
cdef bint _is_result_without_nan(Reduction call, Dtype own, Dtype wanted) except -1


@cython.locals(found=ndarray)
cdef _extreme_of_numbers(Reduction call, Dtype dtype)


@cython.locals(size=Py_ssize_t, items=ndarray)
cdef bint _has_nan(ndarray found) except -1


@cython.locals(array=ndarray, counts=ndarray)
cdef _write_without_nan(Reduction call, Alignment alignment, ndarray out)


@cython.locals(alignment=Alignment, counts=ndarray, squares=ndarray)
cdef _write_squares_without_nan(Reduction call, ddof, ndarray data, ndarray out)


cdef ndarray _counts_of_numbers(ndarray data, Alignment alignment)


@cython.locals(means=ndarray)
cdef ndarray _means_of_numbers(ndarray data, Alignment alignment, ndarray counts)


@cython.locals(given=dict, wanted=Dtype)
cdef _reduced_exactly(Reduction call, dict others, numpys, int level)


cdef _give_axis_to_number(Reduction call)


@cython.locals(array=ndarray, is_masked=bint)
cdef _sum_of_integers(Reduction call, where, initial, dict given, numpys, int level)
cdef bint _is_negative_zero(initial) except -1
cdef _refuse_numbers(Reduction call, Dtype own)
cdef _spread_exactly_without_nan(Reduction call, dict others, numpys, int level)


cpdef check_is_exact(Reduction call, bint has_more)
cdef bint _is_exact_in_numpy(Reduction call, Dtype own) except -1


@cython.locals(is_of_out=bint)
cdef _refuse_class(Reduction call)


@cython.locals(own=Dtype, wanted=Dtype)
cdef Dtype _dtype_of_exact(Reduction call)


@cython.locals(start=ndarray)
cdef _start_of(initial, Dtype wanted)


@cython.locals(array=ndarray, own=Dtype, is_plain=bint)
cdef _leave_out(Reduction call, where, bint by_negative)


@cython.locals(mask=ndarray)
cdef ndarray _mask_of(where, tuple shape)


@cython.locals(zero=ndarray)
cdef ndarray _cleared(ndarray array, ndarray mask, bint by_negative)


@cython.locals(counts=ndarray)
cdef _clear(Reduction call, ndarray mask, bint by_negative=*)


@cython.locals(array=ndarray)
cdef _write_exactly(Reduction call, ddof, Alignment alignment, ndarray result)


@cython.locals(counts=ndarray, means=ndarray)
cdef _write_exact_means_of_some(Reduction call, Alignment alignment, ndarray result)


@cython.locals(array=ndarray, means=ndarray)
cdef _write_exact_means_of_numbers(Reduction call, Alignment alignment, ndarray result)


@cython.locals(to=Dtype)
cdef Dtype _dtype_of_result(Reduction call, Dtype own)


cdef Dtype _given_dtype(str name, Dtype own, Dtype wanted, Dtype to)
cdef bint _is_usual(str name, Dtype own)
cdef Dtype _dtype_of_terms(str name, Dtype own)
cdef bint _is_fit(str name, Dtype own, Dtype wanted)
cdef Dtype _dtype_beside(str name, Dtype own, Dtype to)
cdef Dtype _dtype_of_floats_beside(str name, Dtype own, Dtype to)
cdef Dtype _native(Dtype dtype)
cpdef Dtype real_dtype(Dtype dtype)
