cimport numpy as cnp
from libc.stdint cimport uintptr_t

cdef bint pays(size_t nbytes) noexcept nogil
cdef object page_handler()
cdef void *new_block(size_t nbytes) noexcept
cdef void drop_block(void *data) noexcept
cdef void drop_unused() noexcept

cpdef bint is_mapped(cnp.ndarray array) except -1
cpdef forget(cnp.ndarray array)
cdef void forget_range(const void *begin, Py_ssize_t size) noexcept nogil


cdef class Extent:
    cdef cnp.ndarray array
    cdef char *begin
    cdef Py_ssize_t size


cdef Extent extent(cnp.ndarray array)


cdef inline Py_ssize_t reach(cnp.ndarray array, char **begin) noexcept:
    """Find where the memory of a non-empty array begins; return how many bytes it spans."""
    cdef Py_ssize_t size = cnp.PyArray_ITEMSIZE(array), along
    cdef int i
    begin[0] = <char *> cnp.PyArray_DATA(array)
    for i in range(cnp.PyArray_NDIM(array)):
        along = (cnp.PyArray_DIM(array, i) - 1) * cnp.PyArray_STRIDE(array, i)
        if along < 0:
            begin[0] += along
            along = -along      # `abs` would make a Python object
        size += along
    return size


cdef inline bint overlap(cnp.ndarray a, cnp.ndarray b) noexcept:
    """Whether two arrays may share memory: not if both own theirs; otherwise if their extents meet."""
    cdef char *a_begin
    cdef char *b_begin
    cdef Py_ssize_t a_size, b_size
    if a is not b and cnp.PyArray_CHKFLAGS(a, cnp.NPY_ARRAY_OWNDATA) and cnp.PyArray_CHKFLAGS(b, cnp.NPY_ARRAY_OWNDATA):
        return False
    a_size = reach(a, &a_begin)
    b_size = reach(b, &b_begin)
    return <uintptr_t> a_begin < <uintptr_t> b_begin + b_size and <uintptr_t> b_begin < <uintptr_t> a_begin + a_size


cdef inline bint contiguous_overlap(cnp.ndarray a, cnp.ndarray b) noexcept:
    """The same for contiguous arrays, in half the time, so that small calls do not notice it."""
    cdef uintptr_t a_begin = <uintptr_t> cnp.PyArray_DATA(a)
    cdef uintptr_t b_begin = <uintptr_t> cnp.PyArray_DATA(b)
    return a_begin < b_begin + cnp.PyArray_NBYTES(b) and b_begin < a_begin + cnp.PyArray_NBYTES(a)
