# Reductions along counts: each item is reduced from a run of rows, and its count is the length of the run.

from bcast._nest.core cimport Nest
from bcast._reduce.plan cimport Axes, Axis, Cursor, Reduction
from bcast._rules.counts cimport TiledCounts

cdef struct CountedPlan:
    const Reduction *reduction
    Cursor first            # the first items of all arrays
    TiledCounts counts
    Axis rows               # the axis from row to row; its `dst_stride` is the stride between items of the result
    Axis inner              # the axis along the items of a row
    Axes loops              # the axes outside of both
    Py_ssize_t positions    # the number of positions of the loops
    Py_ssize_t length       # rows plus items of one position; shares are cut by this number
    bint are_dense          # whether results are contiguous, so kernels can write them
    Py_ssize_t group_accumulators   # the most accumulators of a group of items
    Py_ssize_t group_terms          # the most packed terms of a group; 0 if terms are not packed
    Py_ssize_t scratch      # the scratch of a thread, in bytes

# The caller sets `reduction` and `counts.list` of the plan, which keeps references to them. The nest has one reduced
# axis, along the rows; `item_stride` is the stride between items of the results.
cdef void plan_counted(CountedPlan *plan, const Nest *nest, Py_ssize_t item_stride) noexcept nogil
cdef void reduce_counted_share(const CountedPlan *plan, Py_ssize_t begin, Py_ssize_t end, char *scratch) noexcept nogil
cdef bint is_faster_along_counts(const Reduction *reduction, const Nest *nest) noexcept nogil
