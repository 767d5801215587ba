# The C types of _numpy.py, which reads as plain Python without them.
from bcast._alignment cimport Alignment, merge, right_aligned, shape_argument
from bcast._memory cimport shape_of
from bcast._ops cimport as_array, materialise
