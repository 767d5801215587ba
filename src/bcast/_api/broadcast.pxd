# The C types of _api/broadcast.py, which is plain Python without them.
from numpy cimport ndarray

from bcast._rules.alignment cimport Alignment, align, align_shapes
from bcast._rules.arguments cimport shape_argument
from bcast._kernel cimport replicate
from bcast._runtime.arrays cimport shape_of
from bcast._runtime.result cimport result_array

cpdef ndarray as_array(str name, data)
cpdef materialise(ndarray data, Alignment alignment, out, str name)
