"""What NumPy's C API says of arrays and ufuncs, for modules of plain Python: without their attribute lookups."""

cimport numpy as cnp
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF

cdef extern from "numpy/arrayobject.h":
    bint PyDataType_REFCHK(cnp.PyArray_Descr *dtype)
    bint PyArray_CanCastArrayTo(cnp.ndarray array, cnp.PyArray_Descr *dtype, int casting)
    int PyArray_DescrConverter(object dtype, cnp.PyArray_Descr **descr) except 0
    object PyArray_NewLikeArray(cnp.ndarray array, int order, cnp.dtype dtype, int subok)

cdef extern from "numpy/ufuncobject.h":
    ctypedef struct UFunc "PyUFuncObject":
        int nin
        int core_enabled    # whether it has a signature

cnp.import_array()

cdef enum:
    SAMPLE = 32         # counts
    MANY = 4096
    LITTLE = 3          # repetitions, in the mean


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


cpdef dtype_of(cnp.ndarray array):
    """`np.asarray(array).dtype`: a subclass's `dtype` may differ."""
    return <cnp.dtype> cnp.PyArray_DESCR(array)


cpdef as_dtype(dtype):
    """`np.dtype(dtype)`."""
    cdef cnp.PyArray_Descr *descr = NULL
    PyArray_DescrConverter(dtype, &descr)
    result = <object> <PyObject *> descr
    Py_DECREF(result)   # the reference that the call gave
    return result


cpdef bint are_alike(cnp.dtype a, cnp.dtype b):
    """Whether items of one dtype are items of the other, byte by byte."""
    return a is b or (a.kind == b.kind and a.itemsize == b.itemsize and a == b)


cpdef bint are_numbers(cnp.dtype a, cnp.dtype b):
    """Whether both dtypes are NumPy's own of bools, integers, floats or complex numbers."""
    return _is_number(a.type_num) and _is_number(b.type_num)


cdef inline bint _is_number(int number) noexcept:
    return 0 <= number <= cnp.NPY_CLONGDOUBLE or number == cnp.NPY_FLOAT16


cpdef bint is_tensor(out):
    """Whether this is an array of another library, whose memory may be an array's."""
    return not isinstance(out, cnp.ndarray) and hasattr(type(out), "__dlpack__")


cpdef bint is_plain(array):
    """Whether this is an array of the base class, of numbers, bools, times or strings of one length each."""
    if not cnp.PyArray_CheckExact(array):
        return False
    cdef int number = cnp.PyArray_TYPE(<cnp.ndarray> array)
    return _is_number(number) or number in (cnp.NPY_STRING, cnp.NPY_UNICODE, cnp.NPY_DATETIME, cnp.NPY_TIMEDELTA)


cpdef bint can_count(array):
    """Whether this is an array of the base class, of integers that NumPy takes for counts."""
    if not cnp.PyArray_CheckExact(array):
        return False
    cdef int number = cnp.PyArray_TYPE(<cnp.ndarray> array)
    return cnp.NPY_BYTE <= number <= cnp.NPY_ULONGLONG and cnp.PyArray_CanCastSafely(number, cnp.NPY_INTP)


cpdef bint repeats_little(cnp.ndarray counts):
    """Whether there are many counts, a sample of which says that most items are repeated once or never.

    Where the mean is 1.5, NumPy takes 0.65 to 0.9 of the time of `repeat_counted` for 10,000 items.
    """
    cdef Py_ssize_t size = cnp.PyArray_SIZE(counts), step = size // SAMPLE, i
    cdef long long total = 0
    if size < MANY or counts.ndim != 1 or counts.dtype.num != cnp.NPY_INTP or not cnp.PyArray_ISBEHAVED_RO(counts):
        return False
    for i in range(SAMPLE):
        total += (<cnp.npy_intp *> cnp.PyArray_GETPTR1(counts, i * step))[0]
    return total < LITTLE * SAMPLE


cpdef bint is_contiguous(cnp.ndarray array):
    """`array.flags.c_contiguous`."""
    return cnp.PyArray_IS_C_CONTIGUOUS(array)


cpdef bint keeps_dtype(cnp.ndarray data, out):
    """Whether `out` asks for no other dtype than the data's: it is an array of that dtype, or it is no array."""
    if not isinstance(out, cnp.ndarray):
        return True
    return are_alike(<cnp.dtype> cnp.PyArray_DESCR(data), <cnp.dtype> cnp.PyArray_DESCR(<cnp.ndarray> out))


cpdef bint can_cast(cnp.ndarray data, cnp.dtype dtype, int casting):
    """Whether `data.astype(dtype)` is allowed under a rule, given as NumPy's number for it."""
    return PyArray_CanCastArrayTo(data, <cnp.PyArray_Descr *> dtype, casting)


cpdef bint may_warn(cnp.ndarray data, cnp.dtype dtype):
    """Whether items may be refused or warned of when they are converted: not if integers stay such, or if all fit."""
    if not _is_whole(<cnp.dtype> cnp.PyArray_DESCR(data)):
        return True
    return not _is_whole(dtype) and not can_cast(data, dtype, cnp.NPY_SAFE_CASTING)


cdef inline bint _is_whole(cnp.dtype dtype) noexcept:
    """Whether a dtype is one of bools or integers."""
    return dtype.kind == c"b" or dtype.kind == c"u" or dtype.kind == c"i"


cpdef converted(cnp.ndarray data, cnp.dtype dtype):
    """`data.astype(dtype, subok=False)`, in half the time."""
    if dtype.itemsize == 0:     # the length follows from the values
        return data.astype(dtype, subok=False)
    Py_INCREF(dtype)    # the call steals a reference
    cdef cnp.ndarray result = PyArray_NewLikeArray(data, cnp.NPY_KEEPORDER, dtype, 0)
    convert_into(result, data)
    return result


cpdef convert_into(cnp.ndarray out, cnp.ndarray data):
    """`np.copyto(out, data, casting="unsafe")`, in half the time."""
    # NumPy parses dates in bytes without the GIL, and crashes at words that are no dates; those in strings it refuses.
    if cnp.PyArray_TYPE(data) == cnp.NPY_STRING and cnp.PyArray_TYPE(out) == cnp.NPY_DATETIME:
        data = data.astype("U")
    cnp.PyArray_CopyInto(out, data)


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
