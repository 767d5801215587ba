# The C types of _ops.py, which reads as plain Python without them.
from numpy cimport ndarray

from bcast._alignment cimport Alignment, align, shape_argument

cpdef ndarray as_array(str name, data)
cpdef tuple shape_of(ndarray array)
cpdef materialise(ndarray data, Alignment alignment, out, str name)
