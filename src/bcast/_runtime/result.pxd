from numpy cimport dtype as Dtype, ndarray

cpdef result_array(out, ndarray like, tuple shape, str name, Dtype dtype=*, str owner=*)
cdef new_array(Dtype dtype, tuple shape, name)
