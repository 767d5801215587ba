# The C types of _api/adjoints.py, which is plain Python without them.
cimport cython
from numpy cimport dtype as Dtype, ndarray

from bcast._api.converted cimport as_array, as_base, as_operand, is_handed_on, is_tensor
from bcast._api.repeats cimport counts_along, integers_of, order, split
from bcast._reduction cimport average_onto, converted_terms, has_kernels, kind_of_sums, sum_counted, sum_onto
from bcast._rules.arguments cimport axes_argument, dtype_argument, place_of, shape_argument
from bcast._rules.alignment cimport Alignment, align_shapes, aligned
from bcast._runtime.arrays cimport dtype_of, reshaped, result_array, shape_of, size_of, type_of

cdef Dtype INT64, UINT64, FLOAT32, FLOAT64, COMPLEX128

cpdef wide_dtype(dtype)
cdef bint _adds(dtype)


@cython.locals(
    steps=list, left=list, lengths=tuple, i=Py_ssize_t, at=Py_ssize_t, axis=Py_ssize_t, alignment=Alignment,
)
cdef _sum(array, list counts, tuple whole, result)


@cython.locals(lengths=list, at=Py_ssize_t)
cpdef tuple lengths_left(list counts, tuple shape)


@cython.locals(number=int)
cpdef Dtype wanted_dtype(ndarray grad, dtype)


@cython.locals(shape=tuple, lengths=tuple, start=Py_ssize_t, axis=Py_ssize_t, fits=bint)
cpdef tuple factor_of(ndarray grad, times)


@cython.locals(
    array=ndarray, shape=tuple, axes=tuple, own=Dtype, to=Dtype, wanted=Dtype, written=Dtype, of_parts=bint,
)
cpdef reduced(str name, a, axis, dtype, out, keepdims, ddof, initial=*)


@cython.locals(array=ndarray)
cpdef rounded_into(out, result, dtype)


cpdef array_of(str name, a)
cpdef bint can_be_read_again(axis)
cpdef flag_of(value)
cpdef order_in_memory(array)


@cython.locals(source=tuple, left=tuple, count=Py_ssize_t, alignment=Alignment, view=ndarray)
cdef _compute(str name, ndarray array, tuple shape, tuple axes, bint keeps, ddof, Dtype wanted, out)


@cython.locals(start=ndarray)
cdef _compute_wide(str name, ndarray array, tuple shape, tuple axes, bint keeps, ddof, Dtype wanted, initial)


@cython.locals(source=list, left=list, at=Py_ssize_t, count=Py_ssize_t, is_reduced=bint)
cpdef tuple lengths_after(tuple shape, tuple axes, bint keeps)


@cython.locals(axes=list, at=Py_ssize_t)
cpdef tuple summed_axes(axis, tuple shape)


cdef Dtype _dtype_of_result(str name, Dtype own, dtype, Dtype to)
cdef bint _is_dtype_of(ndarray out, Dtype dtype) except -1
cdef Dtype _dtype_of_terms(str name, Dtype own)
cdef bint _is_fit(str name, Dtype own, Dtype wanted)
cdef Dtype _dtype_beside(str name, Dtype own, Dtype to)
cpdef Dtype real_dtype(Dtype dtype)


@cython.locals(
    at=Py_ssize_t, length=Py_ssize_t, step=Py_ssize_t, begin=Py_ssize_t, axis=Py_ssize_t, blocks=Py_ssize_t,
    means=ndarray, whole=ndarray,
)
cdef _deviations(
    ndarray array, Alignment alignment, ndarray out, double count, double divisor, bint root, bint is_fresh,
)
