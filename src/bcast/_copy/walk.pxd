from libc.stdint cimport uint8_t

from bcast._copy.plan cimport Leaves, Plan
from bcast._runtime.cpu cimport L1, LINE

cdef enum:
    SCRATCH = L1 + LINE     # bytes of a piece that is assembled in a cache, then streamed past it, and garbage after it

cdef void write_blocks(
    const Plan *plan, int level, Py_ssize_t n, const uint8_t *data, uint8_t *out, uint8_t *out_end,
) noexcept nogil
cdef void write_part(
    const Plan *plan, int level, Py_ssize_t begin, Py_ssize_t end, const uint8_t *data, uint8_t *out, uint8_t *out_end,
    uint8_t *scratch,
) noexcept nogil
cdef void write_pieces(
    const Leaves *leaves, Py_ssize_t size, Py_ssize_t times, const uint8_t *data, uint8_t *out,
) noexcept nogil
cdef void tile_block(const Leaves *leaves, uint8_t *out, Py_ssize_t block, Py_ssize_t size) noexcept nogil
