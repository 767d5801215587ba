from numpy cimport dtype as Dtype, ndarray, ufunc as Ufunc

cpdef result_array(out, ndarray like, tuple shape, str name, Dtype dtype=*, str owner=*)
cdef new_array(Dtype dtype, tuple shape, name)
cpdef bint is_binary(Ufunc function)
cpdef reshaped(ndarray array, tuple shape)
cpdef tuple shape_of(ndarray array)
cpdef int type_of(ndarray array)
