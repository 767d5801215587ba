"""What NumPy's C API says of arrays and ufuncs, for modules of plain Python: without their attribute lookups."""

cimport numpy as cnp

cdef extern from "numpy/arrayobject.h":
    bint PyDataType_REFCHK(cnp.PyArray_Descr *dtype)

cdef extern from "numpy/ufuncobject.h":
    ctypedef struct UFunc "PyUFuncObject":
        int nin
        int core_enabled    # whether it has a signature

cnp.import_array()


cdef int check_axes(tuple shape) except -1:
    """Refuse a shape that buffers of `MAX_AXES` lengths have no room for."""
    if len(shape) > MAX_AXES:
        raise ValueError(f"`shape` expected at most {MAX_AXES} axes, got {len(shape)}")
    return 0


cpdef tuple shape_of(cnp.ndarray array):
    """`array.shape`."""
    return cnp.PyArray_IntTupleFromIntp(cnp.PyArray_NDIM(array), cnp.PyArray_DIMS(array))


cpdef int type_of(cnp.ndarray array):
    """`array.dtype.num`."""
    return cnp.PyArray_TYPE(array)


cpdef Py_ssize_t size_of(cnp.ndarray array):
    """`array.size`."""
    return cnp.PyArray_SIZE(array)


cpdef bint has_references(cnp.ndarray array):
    """`array.dtype.hasobject`."""
    return PyDataType_REFCHK(cnp.PyArray_DESCR(array))


cpdef bint is_binary(cnp.ufunc function):
    """Whether a ufunc takes two operands and has no signature."""
    return (<UFunc *> function).nin == 2 and not (<UFunc *> function).core_enabled


cpdef reshaped(cnp.ndarray array, tuple shape):
    """`array.reshape(shape)` for an array of the base class and at most 64 lengths."""
    cdef cnp.npy_intp[MAX_AXES] dims
    cdef cnp.PyArray_Dims wanted
    cdef int axis
    check_axes(shape)
    for axis in range(len(shape)):
        dims[axis] = shape[axis]
    wanted.ptr = dims
    wanted.len = <int> len(shape)
    return cnp.PyArray_Newshape(array, &wanted, cnp.NPY_CORDER)
