cimport numpy as cnp

cpdef bint is_mapped(cnp.ndarray array) except -1
cpdef forget(cnp.ndarray array)
cdef void forget_range(const void *begin, Py_ssize_t size) noexcept nogil
