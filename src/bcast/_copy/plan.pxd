# cython: cdivision=True
from libc.stdint cimport int32_t, int64_t, uint8_t

cdef extern from "_copy/simd/program.h":
    enum:
        COPY_SPAN_BYTES "BCAST_SPAN_BYTES"
        COPY_VECTOR_BYTES "BCAST_VECTOR_BYTES"
        COPY_WINDOW_BYTES "BCAST_WINDOW_BYTES"
        COPY_GROUP_VECTORS "BCAST_GROUP_VECTORS"
        COPY_ITEM_VECTORS "BCAST_ITEM_VECTORS"

    ctypedef struct ShuffleTable "bcast_shuffle_table":
        int vectors, exact
        Py_ssize_t src_step, dst_step, src_reach, dst_reach
        int32_t *dst_at
        int32_t *src_at
        uint8_t *index

    ctypedef struct Rows "bcast_rows":
        Py_ssize_t count, times, size

    ctypedef struct Kernels "bcast_copy_kernels":
        int vector
        void (*execute)(const ShuffleTable *, int, Py_ssize_t, const uint8_t *, uint8_t *) noexcept nogil
        void (*fill)(const Rows *, const uint8_t *, uint8_t *) noexcept nogil
        void (*repeat_rows)(const Rows *, const int64_t *, const uint8_t *, uint8_t *) noexcept nogil
        void (*repeat_counted)(const Rows *, const int64_t *, const uint8_t *, uint8_t *) noexcept nogil
        void (*copy_to_many)(Py_ssize_t, Py_ssize_t, Py_ssize_t, const uint8_t *, uint8_t *) noexcept nogil
        void (*tile)(Py_ssize_t, Py_ssize_t, uint8_t *) noexcept nogil

cdef struct Pair:
    Py_ssize_t copied       # blocks of the data
    Py_ssize_t repeated     # times that the output has each of them
    Py_ssize_t src_bytes    # of a block
    Py_ssize_t dst_bytes

cdef enum:              # what writes the innermost blocks:
    COPY                # no kernel: long items are copied one by one and replicated
    ROWS                # runs of items are written from registers
    FILL                # each block is an item, which fills vectors
    DOUBLE              # no kernel: the first block is doubled
    SHUFFLE             # the table shuffles a span of blocks at once

cdef struct Plan:
    int last
    Pair[33] pairs          # of 64 axes that alternate, and the run of items innermost
    const uint8_t *src_end
    int strategy
    int shuffle_level       # the pair that the table describes, with all pairs inside; -1 if there is none
    Py_ssize_t read_back    # bytes of the longest block that is read back to be replicated
    Py_ssize_t span_blocks  # blocks of the level that the table describes
    Py_ssize_t span_times   # times that it describes each of them
    Kernels kernels
    ShuffleTable table

cdef const Kernels *copy_kernels_of     # by the target's number

cdef int make_plan(
    Plan *plan, tuple shape, tuple source, Py_ssize_t itemsize, const uint8_t *src, Py_ssize_t src_size,
    Py_ssize_t dst_size,
) except -1
