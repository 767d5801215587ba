# The positions of extremes along one axis, and whether any or all bools are true: for `_api`.

from numpy cimport ndarray

cpdef bint find_positions_onto(ndarray data, int axis, ndarray out, bint greatest) except -1
cpdef bint find_truths_onto(ndarray data, ndarray out, bint any_) except -1
cpdef bint is_searched(ndarray data, int axis) noexcept
