from numpy cimport ndarray

cpdef result_array(out, ndarray like, tuple shape, str name)
cpdef tuple shape_of(ndarray array)
