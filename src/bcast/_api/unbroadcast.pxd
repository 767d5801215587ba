# The C types of _api/unbroadcast.py, which is plain Python without them.
cimport cython
from numpy cimport dtype as Dtype, ndarray

from bcast._adjoint cimport sum_onto
from bcast._rules.modes cimport align_shapes
from bcast._rules.arguments cimport dtype_argument, shape_argument
from bcast._runtime.arrays cimport result_array, shape_of, type_of
from bcast._api.broadcast cimport as_array, is_tensor


@cython.locals(number=int)
cpdef Dtype wanted_dtype(ndarray grad, dtype)
cdef bint _adds(dtype)
