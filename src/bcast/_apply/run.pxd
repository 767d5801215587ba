# cython: cdivision=True
from bcast._apply.operands cimport Call

cdef int run_call(Call *call) except -1
cdef int run_noting(Call *call, int *errors) except *
