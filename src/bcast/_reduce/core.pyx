# cython: cdivision=True
"""The sum core: from the axes of an array to its sums.

In: axes, kept or summed, and how terms are read, as `_reduction` has checked them. Out: results. plan.pxi chooses the
block of accumulators, tiles and shares; executor.pxi has the kernels in `simd` add the terms up and writes the results;
counted.pxi does both for runs of rows by counts. Nothing allocates, raises or runs Python once writing has begun.
"""

from libc.math cimport fabs, fma, isfinite
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memmove, memset

from bcast._rules.core cimport CHUNK, CountList, find_chunk, read_chunk, tile_counts
from bcast._runtime.core cimport MAX_AXES, PAGE, cut
from bcast._runtime.tuning cimport (
    SUM_BLOCK_ITEMS, SUM_CALL_ROWS, SUM_FEW_RUNS, SUM_LONG_ITEMS, SUM_PIECE_ITEMS, SUM_ROW_ITEMS, SUM_SHARES,
    SUM_SHARE_TERMS,
)

cdef extern from "_reduce/simd/kernels.h":
    const Target **kernels_of_target "bcast_sum_target_of"
    void fetch "bcast_fetch"(const char *src, Py_ssize_t nbytes) noexcept nogil
    void gather "bcast_gather"(
        char *dst, const char *src, Py_ssize_t step, Py_ssize_t count, Py_ssize_t size) noexcept nogil

cdef extern from "_reduce/simd/idempotent.h":
    const Kernels *bcast_idempotent_kernels(int target, int operation, int dtype) nogil

sum_target_of = <const Target **> kernels_of_target


cdef const Kernels *idempotent_kernels(int target, int operation, int dtype) noexcept nogil:
    """The kernels of an operation that may take a term twice, for a target and a dtype of the table."""
    return bcast_idempotent_kernels(target, operation, dtype)


include "plan.pxi"
include "executor.pxi"
include "counted.pxi"
