from libc.stdint cimport uint8_t
from numpy cimport ndarray

from bcast._rules.alignment cimport Alignment

# Writes the bytes of an output from `begin` to `end`: past the caches if there is a scratch.
ctypedef void (*Write)(
    const void *plan, Py_ssize_t begin, Py_ssize_t end, const uint8_t *data, uint8_t *out, uint8_t *scratch
) noexcept nogil

cpdef replicate(ndarray data, Alignment alignment, ndarray out)
cdef int count_threads(Py_ssize_t size) noexcept
cdef bint is_large(Py_ssize_t size, int threads) noexcept
cdef int write_large(
    Write write, const void *plan, const uint8_t[::1] data, uint8_t[::1] out, int threads,
) except -1
cdef void write_shares(
    Write write, const void *plan, const uint8_t *data, uint8_t *out, Py_ssize_t size, uint8_t *scratch, int threads,
) noexcept nogil
