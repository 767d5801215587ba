from numpy cimport dtype as Dtype, ndarray

from bcast._rules.alignment cimport Alignment
from bcast._rules.counts cimport Counts

cpdef sum_onto(ndarray grad, Alignment alignment, ndarray out, ndarray times=*)
cpdef average_onto(
    ndarray data, Alignment alignment, ndarray out, double divisor, ndarray means=*, bint root=*, bint rough=*,
    bint once=*,
)
cpdef bint sum_exactly_onto(
    ndarray data, Alignment alignment, ndarray out, double divisor, bint skips_nan=*, ndarray times=*,
    ndarray divisors=*, double initial=*,
) except -1
cpdef bint expand_onto(
    ndarray data, Alignment alignment, ndarray out, ndarray times=*, bint bounded=*,
) except -1
cpdef norm_onto(ndarray data, Alignment alignment, ndarray out)
cpdef bint spread_onto(
    ndarray data, Alignment alignment, ndarray means, ndarray spread, double divisor, bint root,
) except -1
cpdef bint sum_numbers_onto(
    ndarray data, Alignment alignment, ndarray out, ndarray means, int deviation,
) except -1
cpdef bint has_kernels(ndarray array) noexcept
cpdef str kind_of_sums(Dtype dtype)
cpdef converted_terms(Dtype dtype)
cpdef sum_counted(ndarray grad, Counts counts, int along, ndarray out, bint exact=*)
cpdef bint find_extremes_onto(ndarray data, Alignment alignment, ndarray low, ndarray high) except -1
cpdef bint reduce_onto(ndarray data, Alignment alignment, ndarray out, int operation) except -1
cpdef bint has_extremes(ndarray products) except -1
