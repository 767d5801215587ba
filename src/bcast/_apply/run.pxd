# cython: cdivision=True
from bcast._apply.operands cimport Call
from bcast._apply.plan cimport FoldPlan

cdef Py_ssize_t share_bytes     # that a thread writes at least: WRITTEN_SHARE_BYTES, or what a test has set

cdef int run_call(Call *call) except -1
cdef int run_noting(Call *call, int *errors) except *
cdef int run_folds(const FoldPlan *plan, list arrays) except -1
