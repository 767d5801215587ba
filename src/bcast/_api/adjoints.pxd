# The C types of _api/adjoints.py, which is plain Python without them.
cimport cython
from numpy cimport dtype as Dtype, ndarray

from bcast._api.converted cimport as_array, is_tensor
from bcast._api.copies cimport counts_along, integers_of, order, split
from bcast._reduction cimport converted_terms, expand_onto, sum_counted, sum_exactly_onto, sum_onto
from bcast._rules.arguments cimport axes_argument, dtype_argument, shape_argument
from bcast._rules.alignment cimport Alignment, align_shapes, aligned
from bcast._runtime.arrays cimport result_array, shape_of, size_of, type_of

cdef Dtype FLOAT64, COMPLEX128

cpdef wide_dtype(dtype)
cdef bint _adds(dtype)
cdef ndarray _write_exact_products(ndarray grad, ndarray times, Alignment alignment, ndarray out)


@cython.locals(passes=list, lengths=tuple, i=Py_ssize_t, at=Py_ssize_t, alignment=Alignment)
cdef _sum(array, list counts, tuple whole, result, bint exact)


@cython.locals(terms=ndarray, source=tuple)
cpdef write_exact_sums(
    str name, ndarray data, Alignment alignment, ndarray out, double divisor=*, bint skips_nan=*, ndarray divisors=*,
    initial=*,
)


@cython.locals(parts=ndarray)
cdef _write_exact_parts(
    str name, ndarray data, Alignment alignment, ndarray out, bint skips_nan, initial,
)


@cython.locals(terms=ndarray, parts=ndarray)
cpdef expanded(str name, ndarray data, tuple source, bint bounded=*)


@cython.locals(kept=list, axis=Py_ssize_t)
cdef ndarray _once_each(ndarray data)


@cython.locals(dtype=Dtype, source=tuple, wrapped=ndarray, nearest=ndarray, terms=ndarray)
cdef tuple _exact_terms(ndarray data, Alignment alignment)


@cython.locals(parts=ndarray)
cdef ndarray _parts_of_integers(ndarray wrapped, ndarray nearest)


@cython.locals(halves=ndarray, shape=tuple)
cdef tuple _halves_of_integers(ndarray data, tuple source)


@cython.locals(dtype=Dtype, wrapped=ndarray, nearest=ndarray, terms=ndarray)
cdef _sum_exactly_by_counts(ndarray data, counts, Py_ssize_t at, ndarray out)


@cython.locals(lengths=list, axis=Py_ssize_t, is_summed=bint)
cdef tuple _lengths_between(tuple shape, list counts, tuple whole, Py_ssize_t at)


@cython.locals(lengths=list, at=Py_ssize_t)
cpdef tuple lengths_left(list counts, tuple shape)


@cython.locals(number=int)
cpdef Dtype wanted_dtype(ndarray grad, dtype)


@cython.locals(shape=tuple, lengths=tuple, start=Py_ssize_t, axis=Py_ssize_t, fits=bint)
cpdef tuple factor_of(ndarray grad, times)
