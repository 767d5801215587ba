cimport numpy as cnp
from libc.stdint cimport uint8_t

cdef cnp.ndarray packed(cnp.ndarray data, tuple shape, int threads, bint releasing)
cdef void write_strided(cnp.ndarray data, uint8_t *out, int threads, bint releasing) noexcept
