from libc.stdint cimport int32_t, int64_t, uint8_t

cdef extern from "_copy/simd/program.h":
    enum:
        SPAN "BCAST_SPAN"
        WIDEST "BCAST_WIDEST"
        WINDOW "BCAST_WINDOW"
        GROUP "BCAST_GROUP"
        PARTS "BCAST_PARTS"

    ctypedef struct Program "bcast_program":
        int vectors
        int exact
        Py_ssize_t data_step
        Py_ssize_t out_step
        Py_ssize_t data_reach
        Py_ssize_t out_reach
        int32_t *out_at
        int32_t *data_at
        uint8_t *index

    ctypedef struct Rows "bcast_rows":
        Py_ssize_t count, times, size

    ctypedef struct Counted "bcast_counted":
        Py_ssize_t size
        int windows
        uint8_t *index

    ctypedef struct Leaves "bcast_copy_leaves":
        int vector
        void (*execute)(
            const Program *program, int vectors, Py_ssize_t times, const uint8_t *data, uint8_t *out
        ) noexcept nogil
        void (*fill)(const Program *program, const Rows *rows, const uint8_t *data, uint8_t *out) noexcept nogil
        void (*repeat_rows)(const Rows *rows, const uint8_t *data, uint8_t *out) noexcept nogil
        void (*repeat_counted)(
            const Counted *items, const int64_t *counts, Py_ssize_t n, const uint8_t *data, uint8_t *out
        ) noexcept nogil
        void (*repeat_counted_rows)(
            const Rows *rows, const int64_t *counts, const uint8_t *data, uint8_t *out
        ) noexcept nogil
        void (*copy_to_many)(
            Py_ssize_t times, Py_ssize_t step, Py_ssize_t size, const uint8_t *data, uint8_t *out
        ) noexcept nogil
        void (*tile)(Py_ssize_t block, Py_ssize_t size, uint8_t *out) noexcept nogil

cdef enum:
    MAX_PAIRS = 33      # 64 axes that alternate, and the run of items innermost
    SHUFFLED = 16       # bytes of the longest item that is shuffled, as of the smallest window

cdef struct Pair:
    Py_ssize_t copied       # how many blocks the data has,
    Py_ssize_t repeated     # how often the output repeats each of them,
    Py_ssize_t data_bytes   # and the size of a block in each of the two
    Py_ssize_t out_bytes

cdef enum Strategy:     # what writes the blocks at the shuffle level:
    BLOCKS              # no leaf: blocks are written one by one and replicated
    FILL                # each block is an item, which fills vectors
    SHUFFLE             # the program shuffles a span of blocks at once

cdef struct Plan:
    int last
    Pair[MAX_PAIRS] pairs
    const uint8_t *data_end
    Strategy strategy
    int shuffle_level       # the pair that the strategy writes, with all pairs inside; -1 for BLOCKS
    Py_ssize_t longest_row  # bytes; a shorter run of the innermost items is written from registers
    Py_ssize_t read_back    # bytes of the longest block that is read back to be replicated
    Py_ssize_t span_blocks  # how many of its blocks the program describes,
    Py_ssize_t span_times   # and how many times each of them
    Leaves leaves
    Program program

cdef Leaves usable_leaves() noexcept
cdef int make_plan(
    Plan *plan, tuple shape, tuple source, Py_ssize_t itemsize, const uint8_t *data, Py_ssize_t data_size,
    Py_ssize_t out_size,
) except -1
