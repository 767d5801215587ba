# The C types of _numpy.py, which reads as plain Python without them.
from numpy cimport ndarray

from bcast._alignment cimport aligned, merge, right_aligned, shape_argument
from bcast._memory cimport shape_of
from bcast._ops cimport as_array, materialise
