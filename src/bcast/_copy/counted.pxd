from libc.stdint cimport int64_t, uint8_t

from bcast._copy.plan cimport Counted, Leaves
from bcast._rules.counts cimport CountList

cdef struct CountedPlan:
    const CountList *counts
    const int64_t *tiled        # a copy of the counts for each of several outer positions, or NULL,
    Py_ssize_t items            # how many counts that makes, or that there are,
    Py_ssize_t units            # and how many items they make
    Py_ssize_t chunks
    Py_ssize_t[2] ends          # what `starts` is if there is but one chunk
    const Py_ssize_t *starts    # the items that the output has before those of each chunk
    Py_ssize_t size             # bytes of an item
    const uint8_t *data_end
    Leaves leaves
    Counted short_items

cdef int make_counted(
    CountedPlan *plan, const CountList *counts, Py_ssize_t outer, Py_ssize_t size, const uint8_t *data,
) except -1
cdef void drop_counted(CountedPlan *plan) noexcept
cdef Py_ssize_t units_before(const CountedPlan *plan, Py_ssize_t item) noexcept nogil
cdef void write_counted(
    const void *all_plan, Py_ssize_t begin, Py_ssize_t end, const uint8_t *data, uint8_t *out, uint8_t *scratch,
) noexcept nogil
