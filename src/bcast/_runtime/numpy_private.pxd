# All private parts of NumPy that this package uses.
#
# NumPy promises none of these. Each was checked, by the suite, with the NumPy versions 2.0, 2.4 and 2.5:
#
#   part                                use                                          if it is missing
#   ufunc._resolve_dtypes_and_context   dtypes of a ufunc's loop for its operands'   the ufunc itself is called
#   ufunc._get_strided_loop             the loop, in the capsule of the same call    the ufunc itself is called
#   the capsule and its struct          they hold the loop and its context           another name: the ufunc is called
#   numpy._core.umath.clip              the ufunc that `np.clip` calls               chains pass bounds to NumPy
#   globals of numpy._core._methods     functions that array methods call            patches do not reach the method
#   shape and strides set in place      new results whose axes are in another order  (fields of NumPy's C API since 1.0)
#   the field `mem_handler`             results own our blocks                       (a field of arrays since 1.22)
#
# The capsule's name contains the version of its struct: `numpy_1.24_ufunc_call_info`. A NumPy that changes the struct
# changes the name. Parts in brackets have no fallback: without them, nothing compiles.

cimport numpy as cnp
from cpython.object cimport PyObject
from cpython.pycapsule cimport PyCapsule_GetPointer
from cpython.ref cimport Py_INCREF

cdef extern from "numpy/arrayobject.h":
    ctypedef struct ArrayFields "PyArrayObject_fields":
        PyObject *mem_handler

# A loop on one row: `data` has the first item of each operand, `dims` the number of items, `strides` are in bytes.
# It returns -1 if it has raised.
ctypedef int (*Loop)(
    void *context, char *const *data, const Py_ssize_t *dims, const Py_ssize_t *strides, void *auxdata
) noexcept nogil

cdef enum:
    CONTEXT_SIZE = 3    # pointers of a context that a loop reads; NumPy 2.4 does not initialise the next ones

ctypedef struct CallInfo:   # the beginning of a capsule's contents
    Loop loop               # set by NumPy; NULL before, and if there is no loop
    void **context          # the ufunc, its method, and the address of the descriptors
    void *auxdata
    cnp.npy_bool needs_gil      # the loop takes the GIL, or needs it
    cnp.npy_bool no_errors      # the loop reports no floating-point errors


cdef inline tuple resolve_loop(function, tuple operands, dict options):
    """The dtypes of a ufunc's loop for operands' dtypes, and the capsule that has the loop.

    TypeError and ValueError are the ufunc's own, AttributeError says that this NumPy has no such methods.
    """
    dtypes, capsule = function._resolve_dtypes_and_context(operands, **options)
    function._get_strided_loop(capsule)
    return dtypes, capsule


cdef inline const CallInfo *call_info(capsule, const char *name) except NULL:
    """The contents of a capsule of that name; ValueError if it has another name."""
    return <const CallInfo *> PyCapsule_GetPointer(capsule, name)


cdef inline object clip_ufunc(numpy):
    """The ufunc of a number and two bounds, which NumPy's function `clip` calls; None if NumPy has none."""
    return getattr(numpy._core.umath, "clip", None)


cdef inline object methods_module(numpy):
    """The module of the Python functions behind array methods."""
    return numpy._core._methods


cdef inline str function_of_method(str method):
    """The name of the global that the Python function behind a method calls."""
    if method == "max" or method == "min":
        return f"umr_{method}imum"
    return f"umr_{method}"


cdef inline void set_layout(
    cnp.ndarray array, int rank, const Py_ssize_t *shape, const Py_ssize_t *strides,
) noexcept:
    """Change the shape and strides of a new array within its own memory. No other code may have a reference to it."""
    cdef int axis
    for axis in range(rank):
        cnp.PyArray_DIMS(array)[axis] = shape[axis]
        cnp.PyArray_STRIDES(array)[axis] = strides[axis]
    cnp.PyArray_UpdateFlags(array, cnp.NPY_ARRAY_C_CONTIGUOUS | cnp.NPY_ARRAY_F_CONTIGUOUS)


cdef inline void let_own_memory(cnp.ndarray array, handler) noexcept:
    """Let an array own its memory, as if NumPy had got it from a handler, a capsule; NumPy gives it back to that."""
    Py_INCREF(handler)
    (<ArrayFields *> array).mem_handler = <PyObject *> handler
    cnp.PyArray_ENABLEFLAGS(array, cnp.NPY_ARRAY_OWNDATA)
