# cython: cdivision=True
from bcast._runtime.arrays cimport MAX_AXES

cdef enum:
    MAX_OPERANDS = 10       # the most operands of a chain: its inputs and the output
    NEST_AXES = MAX_AXES + 1        # the parts of complex numbers are an axis of 2

cdef struct Nest:
    # A loop nest over `n` operands, outermost axis first; core.pyx explains it.
    int rank
    int n                                       # operands; the last one is the output
    Py_ssize_t[NEST_AXES] shape
    Py_ssize_t[MAX_OPERANDS][NEST_AXES] stride  # in bytes, of any sign; 0 repeats an input, or reduces into an output
    char *data[MAX_OPERANDS]                    # the first item of each operand

cdef void keep_rank(Nest *nest, int least) noexcept nogil
cdef void flip_negative_axes(Nest *nest, int by) noexcept nogil
cdef void sort_axes(Nest *nest, int by) noexcept nogil
cdef bint find_numpys_order(const Nest *nest, int n, int *order) noexcept nogil
cdef void put_in_order(Nest *nest, const int *order) noexcept nogil


cdef inline bint are_one_axis(const Nest *nest, int outer, int inner) noexcept nogil:
    """Whether each operand's outer stride is its inner stride times the inner length: one loop can run both axes."""
    cdef int k
    for k in range(nest.n):
        if nest.stride[k][outer] != nest.shape[inner] * nest.stride[k][inner]:
            return False
    return True


cdef inline void copy_axis(Nest *nest, int to, int axis) noexcept nogil:
    """Copy an axis to number `to`."""
    cdef int k
    nest.shape[to] = nest.shape[axis]
    for k in range(nest.n):
        nest.stride[k][to] = nest.stride[k][axis]


cdef inline void swap_axes(Nest *nest, int a, int b) noexcept nogil:
    """Exchange two axes."""
    cdef int k
    nest.shape[a], nest.shape[b] = nest.shape[b], nest.shape[a]
    for k in range(nest.n):
        nest.stride[k][a], nest.stride[k][b] = nest.stride[k][b], nest.stride[k][a]


cdef inline void drop_unit_axes(Nest *nest) noexcept nogil:
    """Remove the axes of length 1."""
    cdef int kept = 0, axis
    for axis in range(nest.rank):
        if nest.shape[axis] == 1:
            continue
        if kept != axis:
            copy_axis(nest, kept, axis)
        kept += 1
    nest.rank = kept


cdef inline void coalesce_axes(Nest *nest) noexcept nogil:
    """Merge adjacent axes that are one axis of each operand."""
    cdef int last = 0, axis
    for axis in range(1, nest.rank):
        if are_one_axis(nest, last, axis):
            nest.shape[axis] *= nest.shape[last]
        else:
            last += 1
        if last != axis:
            copy_axis(nest, last, axis)
    if nest.rank:
        nest.rank = last + 1
