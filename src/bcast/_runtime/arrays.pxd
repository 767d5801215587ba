from numpy cimport ndarray, ufunc as Ufunc

cdef enum:
    MAX_AXES = 64       # as many as an array may have

cdef int check_axes(tuple shape) except -1
cpdef tuple shape_of(ndarray array)
cpdef int type_of(ndarray array)
cpdef Py_ssize_t size_of(ndarray array)
cpdef bint has_references(ndarray array)
cpdef bint is_binary(Ufunc function)
cpdef reshaped(ndarray array, tuple shape)
