from bcast._sum.plan cimport Reduction, Sink, Terms

cdef void sum_unit(
    const Reduction *plan, Py_ssize_t unit, const char *x, char *out, char *scratch, char *partials,
) noexcept nogil
cdef void add_segments(
    const Reduction *plan, Py_ssize_t tile, const char *x, char *out, char *partials,
) noexcept nogil
cdef bint add_rows(
    const Terms *terms, const char *x, Py_ssize_t rows, Py_ssize_t step, Py_ssize_t width, Sink to,
) noexcept nogil
