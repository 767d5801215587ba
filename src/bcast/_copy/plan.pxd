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

cdef struct Buffers:        # contiguous, without overlap
    const uint8_t *src      # the data
    Py_ssize_t src_bytes    # bytes of the data; `make_plan` compares them with the alignment's
    uint8_t *dst            # the output
    Py_ssize_t dst_bytes    # bytes of the output

cdef struct Pair:           # a copied axis, and a repeated one inside of it
    Py_ssize_t copied       # number of blocks of the data
    Py_ssize_t repeated     # repetitions of each block in the output
    Py_ssize_t src_bytes    # length of a block in the data
    Py_ssize_t dst_bytes    # length of one repetition of a block in the output

cdef enum:              # strategies: how the innermost blocks are written
    COPY                # no kernel: long items are copied one by one and replicated
    ROWS                # `repeat_rows`: an item stays in registers
    FILL                # `fill`: each block is an item, and its run has a vector or more
    DOUBLE              # no kernel: the first block is doubled
    SHUFFLE             # `execute`: the table shuffles a span of blocks at once

cdef struct Plan:
    Pair[33] pairs          # outermost first: 64 alternating axes, and one of items
    int last                # index of the innermost pair
    const uint8_t *src_end  # end of the data, and the limit of loads
    int strategy            # one of the enum above
    int shuffle_level       # index of the outermost pair in the table; -1 without a table
    Py_ssize_t read_back    # bytes of the longest block that is read back and replicated
    # With a table: the number of blocks of the pair at `shuffle_level` in a span, and the repetitions of each, fewer
    # than `repeated` if the span is a part of one run.
    Py_ssize_t span_blocks
    Py_ssize_t span_times
    Kernels kernels         # the kernels of the target
    ShuffleTable table      # only for strategy SHUFFLE

cdef enum:      # the operands of a copy's nest
    COPY_DATA
    COPY_OUTPUT
    COPY_OPERANDS

cdef struct Extent:         # all bytes inside an axis
    Py_ssize_t src_bytes
    Py_ssize_t dst_bytes

cdef const Kernels *copy_kernels_of     # by the target's number

cdef int make_plan(Plan *plan, tuple shape, tuple source, Py_ssize_t itemsize, Buffers buffers) except -1
cdef void plan_nest(Plan *plan, Nest *nest, Py_ssize_t itemsize) noexcept


cdef inline void add_axis(Nest *nest, int axis, Py_ssize_t length, bint is_copied, Extent *within) noexcept:
    """Describe an axis of contiguous data and a contiguous output; axes are added from the innermost out."""
    nest.shape[axis] = length

    nest.stride[COPY_OUTPUT][axis] = within.dst_bytes
    within.dst_bytes *= length

    nest.stride[COPY_DATA][axis] = within.src_bytes if is_copied else 0
    if is_copied:
        within.src_bytes *= length
