# The C types of _api/broadcast.py, which is plain Python without them.
from numpy cimport ndarray

from bcast._rules.alignment cimport Alignment, align, align_shapes, shape_argument
from bcast._kernel cimport replicate
from bcast._runtime.result cimport result_array, shape_of

cpdef ndarray as_array(str name, data)
cpdef materialise(ndarray data, Alignment alignment, out, str name)
