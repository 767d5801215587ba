cimport numpy as cnp
from libc.stdint cimport uintptr_t


cdef class Extent:
    cdef cnp.ndarray array
    cdef char *begin
    cdef Py_ssize_t size


cdef Extent extent(cnp.ndarray array)


cdef inline Py_ssize_t reach(cnp.ndarray array, char **begin) noexcept:
    """Where the memory of an array that is not empty begins, and how many bytes on it ends."""
    cdef Py_ssize_t size = cnp.PyArray_ITEMSIZE(array), along
    cdef int i
    begin[0] = <char *> cnp.PyArray_DATA(array)
    for i in range(cnp.PyArray_NDIM(array)):
        along = (cnp.PyArray_DIM(array, i) - 1) * cnp.PyArray_STRIDE(array, i)
        if along < 0:
            begin[0] += along
            along = -along      # `abs` would make an object of it
        size += along
    return size


cdef inline bint overlap(cnp.ndarray a, cnp.ndarray b) noexcept:
    """Whether two arrays may share memory: not if both own theirs, else if their extents meet."""
    cdef char *a_begin
    cdef char *b_begin
    cdef Py_ssize_t a_size, b_size
    if a is not b and cnp.PyArray_CHKFLAGS(a, cnp.NPY_ARRAY_OWNDATA) and cnp.PyArray_CHKFLAGS(b, cnp.NPY_ARRAY_OWNDATA):
        return False
    a_size = reach(a, &a_begin)
    b_size = reach(b, &b_begin)
    return <uintptr_t> a_begin < <uintptr_t> b_begin + b_size and <uintptr_t> b_begin < <uintptr_t> a_begin + a_size


cdef inline bint contiguous_overlap(cnp.ndarray a, cnp.ndarray b) noexcept:
    """The same of contiguous arrays, in half the time: a small call is to notice nothing of it."""
    cdef uintptr_t a_begin = <uintptr_t> cnp.PyArray_DATA(a)
    cdef uintptr_t b_begin = <uintptr_t> cnp.PyArray_DATA(b)
    return a_begin < b_begin + cnp.PyArray_NBYTES(b) and b_begin < a_begin + cnp.PyArray_NBYTES(a)
