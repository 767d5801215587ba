from numpy cimport dtype as Dtype, ndarray, ufunc as Ufunc

cdef enum:
    MAX_AXES = 64       # as many as an array may have

cdef int check_axes(tuple shape) except -1
cpdef tuple shape_of(ndarray array)
cpdef int type_of(ndarray array)
cpdef Py_ssize_t size_of(ndarray array)
cpdef bint has_references(ndarray array)
cpdef dtype_of(ndarray array)
cpdef as_dtype(dtype)
cpdef bint are_alike(Dtype a, Dtype b)
cpdef bint are_numbers(Dtype a, Dtype b)
cpdef bint is_masked(array)
cpdef bint is_contiguous(ndarray array)
cpdef bint keeps_dtype(ndarray data, out)
cpdef bint can_cast(ndarray data, Dtype dtype, int casting)
cpdef bint may_warn(ndarray data, Dtype dtype)
cpdef converted(ndarray data, Dtype dtype)
cpdef convert_into(ndarray out, ndarray data)
cpdef bint is_binary(Ufunc function)
cpdef reshaped(ndarray array, tuple shape)

cpdef result_array(out, ndarray like, tuple shape, str name, Dtype dtype=*, str owner=*)
cdef new_array(Dtype dtype, tuple shape, name)
