# cython: cdivision=True
cimport numpy as cnp

cdef enum:
    MAX_AXES = 64       # the most axes of an array

cpdef tuple shape_of(cnp.ndarray array)
cpdef tuple reduced_shape(tuple shape, tuple axes, bint keeps)
cpdef int type_of(cnp.ndarray array) noexcept
cpdef Py_ssize_t size_of(cnp.ndarray array) noexcept
cpdef bint has_references(cnp.ndarray array) noexcept
cpdef dtype_of(cnp.ndarray array)
cpdef as_dtype(dtype)
cpdef bint are_alike(cnp.dtype a, cnp.dtype b)
cpdef bint are_numbers(cnp.dtype a, cnp.dtype b)
cpdef bint is_masked(array)
cpdef bint is_contiguous(cnp.ndarray array) noexcept
cpdef bint is_ordered(cnp.ndarray array) noexcept
cpdef bint keeps_dtype(cnp.ndarray data, out)
cpdef bint can_cast(cnp.ndarray data, cnp.dtype dtype, int casting)
cpdef bint may_warn(cnp.ndarray data, cnp.dtype dtype)
cpdef converted(cnp.ndarray data, cnp.dtype dtype)
cpdef convert_into(cnp.ndarray out, cnp.ndarray data)
cpdef bint is_binary(cnp.ufunc function) noexcept
cpdef reshaped(cnp.ndarray array, tuple shape)
cpdef cnp.ndarray stretched(cnp.ndarray array, tuple shape)

cpdef cnp.ndarray result_array(out, cnp.ndarray like, tuple shape, str name, cnp.dtype dtype=*, str owner=*)
cdef cnp.ndarray new_array(cnp.dtype dtype, tuple shape, name)
