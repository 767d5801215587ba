# The C types of _api/elementwise.py, which is plain Python without them.
cimport cython
from numpy cimport ndarray

from bcast._rules.alignment cimport Alignment, merge, pdpd, right_aligned
from bcast._rules.arguments cimport dtype_argument, mode_of
from bcast._runtime.arrays cimport are_alike, dtype_of, is_binary, is_tensor, reshaped, shape_of
from bcast._api.broadcast cimport as_array
from bcast._elementwise cimport apply, choose, pass_on

cdef tuple MODES
cdef str NUMPY, NONE, UNIDIRECTIONAL, PDPD, SAME_KIND
cdef int NUMBER_OF_SAME_KIND
cdef type UFUNC
cdef object NOT_FIT
cdef tuple SCALARS

cdef _only(out)
cdef dict _given(dtype, casting, where, tuple shape)

cdef _operand(str name, value, bint weak, other)
cdef tuple _shape(operand)


@cython.locals(added=Py_ssize_t, i=Py_ssize_t, length=Py_ssize_t, laid=Py_ssize_t)
cdef _laid(operand, tuple shape, tuple source)

cdef _reshaped(operand, tuple source)

cpdef check_function(ufunc)
cdef _axis(axis, str mode)
cdef _check_out(out, tuple shape)
