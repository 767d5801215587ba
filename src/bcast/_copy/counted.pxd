# cython: cdivision=True
cimport numpy as cnp
from libc.stdint cimport uint8_t

from bcast._copy.plan cimport Kernels
from bcast._rules.counts cimport Counts, TiledCounts

cdef struct CountedPlan:
    TiledCounts counts
    Py_ssize_t size             # bytes of an item
    const uint8_t *src_end
    Kernels kernels

cdef int plan_counted(CountedPlan *plan, cnp.ndarray src, Counts counts, int axis, cnp.ndarray dst) except -1
cdef void write_counted(const void *, Py_ssize_t, Py_ssize_t, const uint8_t *, uint8_t *, uint8_t *) noexcept nogil
