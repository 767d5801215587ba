# cython: cdivision=True
# What reductions read of arrays: the rows of their dtypes in the kernels' table, and their sizes, which user code may
# have changed meanwhile. Each module compiles these functions for itself.

cimport cython
cimport numpy as cnp
from libc.string cimport strcmp, strrchr

from bcast._reduce.kernels cimport (
    BOOL, DTYPE_COUNT, FLOAT16, FLOAT32, FLOAT64, INT8, UINT8, dtypes,
)


# ---- Dtypes ----


cdef inline int dtype_row(cnp.ndarray array) noexcept:
    """The row of an array's items, or of their complex parts, in the table of dtypes; -1 if no kernel reads them."""
    return row_of_dtype(<cnp.dtype> cnp.PyArray_DESCR(array))


cdef inline int row_of_dtype(cnp.dtype dtype) noexcept:
    """The same for a dtype."""
    cdef int number = dtype.type_num
    cdef Py_ssize_t size = dtype.itemsize
    if number == cnp.NPY_BOOL:
        return BOOL
    if cnp.PyTypeNum_ISINTEGER(number):
        return (UINT8 if cnp.PyTypeNum_ISUNSIGNED(number) else INT8) + (size > 1) + (size > 2) + (size > 4)
    if number == cnp.NPY_FLOAT16:
        return FLOAT16
    if number == cnp.NPY_FLOAT or number == cnp.NPY_CFLOAT:
        return FLOAT32
    if number == cnp.NPY_DOUBLE or number == cnp.NPY_CDOUBLE:
        return FLOAT64
    return row_of_package(dtype) if cnp.PyTypeNum_ISUSERDEF(number) else -1


cdef inline int row_of_package(cnp.dtype dtype) noexcept:
    """The row with the name of a package's type; -1 if there is none. This reads C fields only, so it cannot fail."""
    cdef const char *name = dtype.typeobj.tp_name
    cdef const char *dot = strrchr(name, b".")
    cdef int i
    for i in range(DTYPE_COUNT):
        if dtypes[i].name != NULL and dtypes[i].size == dtype.itemsize:
            if strcmp(name if dot == NULL else dot + 1, dtypes[i].name) == 0:
                return i
    return -1


cdef inline cnp.ndarray in_native_order(cnp.ndarray array):
    """An array in native byte order."""
    if cnp.PyArray_ISNOTSWAPPED(array):
        return array
    return cnp.PyArray_FROM_OF(array, cnp.NPY_ARRAY_NOTSWAPPED | cnp.NPY_ARRAY_ENSUREARRAY)


# ---- Sizes ----


cdef inline Py_ssize_t items_of(cnp.ndarray array) noexcept:
    """`PyArray_SIZE` without a function call; each reduction needs it several times."""
    cdef Py_ssize_t size = 1
    cdef int i
    for i in range(cnp.PyArray_NDIM(array)):
        size *= cnp.PyArray_DIM(array, i)
    return size


cdef inline int refuse_resized() except -1:
    """Raise the error about sizes that have changed."""
    raise ValueError(
        "`out` and the array to reduce expected arrays that keep their sizes during the call, got resized ones"
    )


@cython.boundscheck(False)      # source has the data's rank
@cython.wraparound(False)
cdef inline int check_sizes(cnp.ndarray data, tuple source, Py_ssize_t results) except -1:
    """Check the arrays against the alignment again: user code may have run since."""
    cdef bint fits = len(source) == cnp.PyArray_NDIM(data)
    cdef Py_ssize_t wanted = 1, length
    cdef int i
    for i in range(cnp.PyArray_NDIM(data) if fits else 0):
        length = source[i]
        wanted *= length
        fits = fits and (length == 1 or length == cnp.PyArray_DIM(data, i))
    if not fits or wanted != results:
        refuse_resized()
    return 0
