# Short vectors of 2 to 4 items: products, norms, statistics and stacks for `_api`, and sums of products along such an
# axis for the interface.

from numpy cimport ndarray

from bcast._rules.alignment cimport Alignment

cpdef dot_vectors(a, b, out, int axis, otherwise=*)
cpdef transform_vectors(matrices, vectors, out, otherwise=*)
cpdef cross_vectors(a, b, int axis_of_a, int axis_of_b, int axis_of_result)
cpdef measure_vectors(ndarray data, int axis)
cpdef stack_vectors(arrays)
cpdef bint find_statistics_onto(
    ndarray data, Alignment alignment, ndarray first, ndarray second, int made, bint root=*, double ddof=*,
    bint skips_nan=*,
) except -1
cdef bint sum_short_products(ndarray grad, ndarray times, tuple source, ndarray out) except -1
