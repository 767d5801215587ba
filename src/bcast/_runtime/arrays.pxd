from numpy cimport ndarray, ufunc as Ufunc

cpdef tuple shape_of(ndarray array)
cpdef int type_of(ndarray array)
cpdef bint is_binary(Ufunc function)
cpdef reshaped(ndarray array, tuple shape)
