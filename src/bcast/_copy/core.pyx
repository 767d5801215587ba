# cython: cdivision=True
"""The copy core: from a buffer and an alignment to the bytes of the output.

In: two contiguous buffers, or strided data, and an alignment that `_kernel` has compared with their sizes; or counts.
Out: the bytes of the output, each written at least once. Each part says what goes in and what comes out. No byte
outside the two buffers is read or written, and once writing has begun, nothing allocates, raises or runs Python.
"""

cimport numpy as cnp
from cpython.pyport cimport PY_SSIZE_T_MAX
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uintptr_t
from libc.stdlib cimport free, llabs, malloc
from libc.string cimport memcpy

from bcast._nest.core cimport Nest, coalesce_axes
from bcast._rules.core cimport CHUNK, CountList, Counts, find_chunk, read_chunk, tile_counts
from bcast._runtime.core cimport L1, LINE, MAX_AXES, PAGE, cut, forget_range, run_shares, target_number
from bcast._runtime.tuning cimport (
    COPY_BYTES_A_DESCRIBED_ONE, COPY_BYTES_A_VISIT, COPY_READ_BACK_BYTES, COPY_SHARE_BYTES, COPY_SHARE_MAX_BYTES,
    COPY_STREAMED_BYTES, COPY_TILE_ITEMS, COUNTED_REACH_BYTES, THREAD_SHARES,
)

cdef extern from "_copy/simd/shuffle.h":
    const Kernels *kernels_of "bcast_copy_kernels_of"

cdef extern from "_copy/simd/transpose.h":
    CopyMatrix *bcast_copy_matrix_of

cdef extern from "_runtime/stream.h":
    void bcast_stream(uint8_t *dst, const uint8_t *src, size_t size) noexcept nogil
    void bcast_store_fence() noexcept nogil
    bint bcast_pages_resident(const uint8_t *dst, size_t size) noexcept nogil

cnp.import_array()

copy_matrix_of = <CopyMatrix *> bcast_copy_matrix_of

include "plan.pxi"
include "executor.pxi"
include "strided.pxi"
include "counted.pxi"
include "shares.pxi"
