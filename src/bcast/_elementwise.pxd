# The C types of _elementwise.py, which reads as plain Python without them.
from numpy cimport ndarray

from bcast._alignment cimport Alignment, align, merge, right_aligned
from bcast._memory cimport shape_of
from bcast._ops cimport as_array

cdef str NUMPY, NONE, UNIDIRECTIONAL, PDPD

cdef str _mode(value)
cdef _operand(str name, value, bint weak)
cdef tuple _shape(operand)
cdef _check_function(ufunc)
cdef _check_axis(axis, str mode)
cdef _check_out(out, tuple shape)
