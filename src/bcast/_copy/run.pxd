# cython: cdivision=True
cimport numpy as cnp
from libc.stdint cimport uint8_t

from bcast._copy.plan cimport Kernels
from bcast._rules.counts cimport Counts, TiledCounts
from bcast._runtime.core cimport L1, LINE, count_threads
from bcast._runtime.tuning cimport RELEASING_BYTES, WAKING_TIMES

cdef enum:
    COPY_SCRATCH_BYTES = L1 + LINE  # a piece, assembled in a cache and then streamed; and room for stores past it

# Writes the bytes of an output from `begin` to `end`, past the caches if `scratch` is given.
ctypedef void (*Write)(
    const void *plan, Py_ssize_t begin, Py_ssize_t end, const uint8_t *src, uint8_t *dst, uint8_t *scratch
) noexcept nogil

cdef struct Output:
    # An output, and a function that writes any part of it.
    Write write
    const void *plan                # passed to `write`
    const uint8_t *src
    uint8_t *dst
    Py_ssize_t size                 # size of the output, in bytes
    bint is_mapped                  # whether the output is in a mapped file
    Py_ssize_t mapped_src_bytes     # bytes of the data if it is in a mapped file; otherwise 0

cdef struct CountedPlan:
    # Items that are repeated by a count for each.
    TiledCounts counts
    Py_ssize_t size             # size of an item, in bytes
    const uint8_t *src_end
    Kernels kernels

cdef Py_ssize_t share_bytes, streamed_bytes     # the tuning constants of these names, or a test's values

cdef void write_planned(const void *, Py_ssize_t, Py_ssize_t, const uint8_t *, uint8_t *, uint8_t *) noexcept nogil
cdef int plan_counted(CountedPlan *plan, cnp.ndarray src, Counts counts, int axis, cnp.ndarray dst) except -1
cdef void write_counted(const void *, Py_ssize_t, Py_ssize_t, const uint8_t *, uint8_t *, uint8_t *) noexcept nogil
cdef int write_strided(cnp.ndarray src, uint8_t *dst, int threads, bint releasing) except -1
cdef void write_shares(const Output *output, int threads) noexcept nogil


cdef inline int threads_for(Py_ssize_t size) noexcept nogil:
    """The number of threads that write an output of `size` bytes."""
    return count_threads(size, share_bytes, WAKING_TIMES, size)


cdef inline bint is_large(Py_ssize_t size, int threads) noexcept:
    """Whether releasing the GIL pays for an output of `size` bytes."""
    return size // threads >= RELEASING_BYTES or size >= streamed_bytes
