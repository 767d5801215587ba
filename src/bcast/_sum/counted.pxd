from libc.stdint cimport int64_t

from bcast._rules.counts cimport CHUNK, CountList
from bcast._sum.plan cimport MAX_AXES, Axis, Terms

cdef struct CountedSum:
    const CountList *counts
    int64_t[CHUNK] tiled    # copies of few counts that come again, side by side,
    Py_ssize_t copies       # how many, or 0,
    Py_ssize_t times        # and how many times all counts come one behind the other
    const Terms *terms
    Axis rows               # of which each item sums as many as its count; `out_step` is that from item to item
    Axis inner              # the items of a row
    int outers
    Axis[MAX_AXES] outer    # walked
    Py_ssize_t positions    # of these
    Py_ssize_t length       # rows and items of one position: what shares are cut by
    bint side_by_side       # whether the results of all items are
    Py_ssize_t sums_most    # accumulators of a group of items,
    Py_ssize_t packed_most  # its packed terms,
    Py_ssize_t scratch      # and bytes that a thread needs

cdef void plan_counted_sum(
    CountedSum *plan, const Terms *terms, const CountList *counts, const Axis *axis, int n,
) noexcept
cdef void sum_counted_share(
    const CountedSum *plan, Py_ssize_t begin, Py_ssize_t end, const char *x, char *out, char *scratch,
) noexcept nogil
