# cython: cdivision=True
from bcast._apply.operands cimport Call
from bcast._apply.plan cimport FoldPlan

cdef Py_ssize_t share_bytes     # the least that a thread writes: WRITTEN_SHARE_BYTES, or a test's value

cdef int run_call(Call *call) except -1
cdef int run_noting(Call *call, int *errors) except *
cdef int run_folds(const FoldPlan *plan, list arrays) except -1
