from libc.stdint cimport uint8_t

from bcast._copy.plan cimport Plan

cdef enum:
    PIECE = 32768               # bytes that are assembled in a cache and then streamed past it
    SCRATCH = PIECE + 64        # bytes of a piece and of the garbage that may follow it

cdef void write_blocks(
    const Plan *plan, int level, Py_ssize_t n, const uint8_t *data, uint8_t *out, uint8_t *out_end,
) noexcept nogil
cdef void write_part(
    const Plan *plan, int level, Py_ssize_t begin, Py_ssize_t end, const uint8_t *data, uint8_t *out, uint8_t *out_end,
    uint8_t *scratch,
) noexcept nogil
