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
cpdef settle_spreads_onto(
    ndarray sums, ndarray squares, ndarray out, double count, double divisor, double rest, bint root, Dtype to)
cpdef bint bound_integers_onto(ndarray rows, ndarray sums, ndarray squares) except -1
cpdef measure_rows_onto(
    ndarray rows, ndarray out, double ddof, bint has_means, bint root, bint to_odd, bint skips_nan)
cpdef tuple digits_of_rows(ndarray rows, bint skips_nan)
cpdef round_digits_onto(ndarray digits, int low, ndarray specials, ndarray divisors, ndarray out, bint to_odd)
cpdef measure_digits_onto(
    tuple sums, tuple squares, ndarray counts, ndarray out, double ddof, bint root, bint to_odd)
