# The C types of _api/broadcast.py, which is plain Python without them.
from numpy cimport generic, ndarray

from bcast._rules.alignment cimport Alignment
from bcast._rules.modes cimport align, align_shapes
from bcast._rules.arguments cimport shape_argument
from bcast._api.converted cimport materialise_as
from bcast._kernel cimport replicate
from bcast._runtime.arrays cimport is_masked, keeps_dtype, result_array, shape_of

cdef str SAME_KIND

cpdef refuse_shape(shape)
cpdef ndarray as_array(str name, data)
cpdef bint is_tensor(out)
cpdef Alignment align_like(tuple data, tuple shape, like, axes_mapping, mode, axis, axes)
cpdef materialise(ndarray data, Alignment alignment, tuple shape, out, str name, dtype, casting)
