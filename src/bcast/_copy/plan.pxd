# cython: cdivision=True
from libc.stdint cimport int32_t, int64_t, uint8_t

from bcast._nest.core cimport Nest

cdef extern from "_copy/simd/kernels.h":
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

    ctypedef struct Matrix "bcast_matrix":
        Py_ssize_t m, n, size, m_step, n_step, dst_step

    ctypedef struct Kernels "bcast_copy_kernels":
        int vector
        void (*execute)(const ShuffleTable *, int, Py_ssize_t, const uint8_t *, uint8_t *) noexcept nogil
        void (*fill)(const Rows *, const uint8_t *, uint8_t *) noexcept nogil
        void (*repeat_rows)(const Rows *, const int64_t *, const uint8_t *, uint8_t *) noexcept nogil
        void (*repeat_counted)(const Rows *, const int64_t *, const uint8_t *, uint8_t *) noexcept nogil
        void (*copy_to_many)(Py_ssize_t, Py_ssize_t, Py_ssize_t, const uint8_t *, uint8_t *) noexcept nogil
        void (*tile)(Py_ssize_t, Py_ssize_t, uint8_t *) noexcept nogil
        void (*copy_matrix)(const Matrix *, const uint8_t *, uint8_t *) noexcept nogil

cdef struct Buffers:        # contiguous ones, which do not overlap
    const uint8_t *src      # the data
    Py_ssize_t src_bytes
    uint8_t *dst            # the output
    Py_ssize_t dst_bytes

cdef struct Pair:           # a copied axis, and a repeated one inside of it
    Py_ssize_t copied       # number of blocks of the data
    Py_ssize_t repeated     # how often the output has each block
    Py_ssize_t src_bytes    # length of a block in the data
    Py_ssize_t dst_bytes    # length of a block in the output, where it comes `repeated` times

cdef enum:              # strategies: what writes the innermost blocks
    COPY                # no kernel: long items are copied one by one and replicated
    ROWS                # `repeat_rows`: an item stays in registers
    FILL                # `fill`: each block is an item, whose run has a vector or more
    DOUBLE              # no kernel: the first block is doubled
    SHUFFLE             # `execute`: the table shuffles a span of blocks at once

cdef struct Plan:
    Pair[33] pairs          # outermost first: 64 axes alternate, and there is one of items
    int last                # index of the innermost pair
    const uint8_t *src_end  # end of the data, which no load passes
    int strategy            # one of the enum above
    int shuffle_level       # index of the pair that the table describes, with all pairs inside; -1 without a table
    Py_ssize_t read_back    # bytes of the longest block that is read back to be replicated
    # With a table: blocks of the pair at `shuffle_level` in a span; and how often it has each of them, less often than
    # `repeated` where the span is a part of one run.
    Py_ssize_t span_blocks
    Py_ssize_t span_times
    Kernels kernels         # those of the target
    ShuffleTable table      # only of strategy SHUFFLE

cdef enum:      # the operands of a copy's nest
    COPY_DATA
    COPY_OUTPUT
    COPY_OPERANDS

cdef struct Extent:         # of what lies within an axis, in bytes
    Py_ssize_t src_bytes
    Py_ssize_t dst_bytes

cdef const Kernels *copy_kernels_of     # by the target's number

cdef int make_plan(Plan *plan, tuple shape, tuple source, Py_ssize_t itemsize, Buffers buffers) except -1
cdef void plan_nest(Plan *plan, Nest *nest, Py_ssize_t itemsize) noexcept


cdef inline void add_axis(Nest *nest, int axis, Py_ssize_t length, bint is_copied, Extent *within) noexcept:
    """Describe an axis of contiguous data and of a contiguous output, from the innermost axis out."""
    nest.shape[axis] = length

    nest.stride[COPY_OUTPUT][axis] = within.dst_bytes
    within.dst_bytes *= length

    nest.stride[COPY_DATA][axis] = within.src_bytes if is_copied else 0
    if is_copied:
        within.src_bytes *= length
