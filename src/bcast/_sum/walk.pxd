from bcast._sum.plan cimport Reduction

cdef void sum_unit(
    const Reduction *plan, Py_ssize_t unit, const char *x, char *out, char *scratch, char *partials,
) noexcept nogil
cdef void add_segments(
    const Reduction *plan, Py_ssize_t tile, const char *x, char *out, char *partials,
) noexcept nogil
