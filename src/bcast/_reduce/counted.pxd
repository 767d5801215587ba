# Reductions along counts: each item has a run of rows, as long as its count says.

from bcast._nest.core cimport Nest
from bcast._reduce.plan cimport Axes, Axis, Cursor, Reduction
from bcast._rules.counts cimport TiledCounts

cdef struct CountedPlan:
    const Reduction *reduction
    Cursor first            # the first items of all arrays
    TiledCounts counts
    Axis rows               # from row to row; its `dst_stride` is from item to item of the result
    Axis inner              # the items of a row
    Axes loops              # around both
    Py_ssize_t positions    # of the loops
    Py_ssize_t length       # rows and items of one position, counted together: what shares are cut by
    bint are_dense          # whether kernels can write results, which lie side by side
    Py_ssize_t group_accumulators   # of a group of items, at most
    Py_ssize_t group_terms          # of a group that are packed, at most; 0 if terms are not packed
    Py_ssize_t scratch      # bytes that a thread needs

# The caller sets `reduction` and `counts.list` of the plan, which refers to these. The one axis of the nest that is
# reduced has the rows; `item_stride` is from item to item of the results.
cdef void plan_counted(CountedPlan *plan, const Nest *nest, Py_ssize_t item_stride) noexcept nogil
cdef void reduce_counted_share(const CountedPlan *plan, Py_ssize_t begin, Py_ssize_t end, char *scratch) noexcept nogil
cdef bint is_faster_along_counts(const Reduction *reduction, const Nest *nest) noexcept nogil
