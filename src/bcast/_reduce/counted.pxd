# Reductions along counts: each item has a run of rows, whose number is its count.

from bcast._nest.core cimport Nest
from bcast._reduce.plan cimport Axes, Axis, Cursor, Reduction
from bcast._rules.counts cimport TiledCounts

cdef struct CountedPlan:
    const Reduction *reduction
    Cursor first            # the first items of all arrays
    TiledCounts counts
    Axis rows               # from row to row; its `dst_stride` is between items of the result
    Axis inner              # the items of a row
    Axes loops              # around both
    Py_ssize_t positions    # of the loops
    Py_ssize_t length       # rows plus items of one position; shares are cut by it
    bint are_dense          # whether results are contiguous, so kernels can write them
    Py_ssize_t group_accumulators   # of a group of items, at most
    Py_ssize_t group_terms          # packed terms of a group, at most; 0 if terms are not packed
    Py_ssize_t scratch      # bytes that a thread needs

# The caller sets `reduction` and `counts.list` of the plan, which keeps references to them. The rows are along the only
# reduced axis of the nest; `item_stride` is between items of the results.
cdef void plan_counted(CountedPlan *plan, const Nest *nest, Py_ssize_t item_stride) noexcept nogil
cdef void reduce_counted_share(const CountedPlan *plan, Py_ssize_t begin, Py_ssize_t end, char *scratch) noexcept nogil
cdef bint is_faster_along_counts(const Reduction *reduction, const Nest *nest) noexcept nogil
