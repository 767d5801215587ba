cimport numpy as cnp
from libc.stdint cimport int32_t, int64_t, uint8_t

from bcast._rules.counts cimport CountList
from bcast._runtime.cpu cimport L1, LINE

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

    ctypedef struct Matrix "bcast_matrix":
        Py_ssize_t m, n, size, m_step, n_step, out_step

    ctypedef void (*CopyMatrix "bcast_copy_matrix")(
        const Matrix *matrix, const uint8_t *data, uint8_t *out
    ) noexcept nogil

cdef enum:
    MAX_PAIRS = 33      # 64 axes that alternate, and the run of items innermost
    SHUFFLED = 16       # bytes of the longest item that is shuffled, as of the smallest window
    SCRATCH = L1 + LINE     # bytes of a piece that is assembled in a cache, then streamed past it, and garbage after it

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

cdef struct CountedPlan:
    const CountList *counts
    const int64_t *tiled        # a copy of the counts for each of several outer positions, or NULL,
    Py_ssize_t items            # how many counts that makes, or that there are,
    Py_ssize_t units            # and how many items they make
    Py_ssize_t chunks
    Py_ssize_t[2] ends          # what `starts` is if there is but one chunk
    const Py_ssize_t *starts    # the items that the output has before those of each chunk
    Py_ssize_t size             # bytes of an item
    const uint8_t *data_end
    Leaves leaves
    Counted short_items

cdef CopyMatrix *transpose_of       # by the target's number: of items that lie side by side in the data, too
cdef CopyMatrix strided_copy

cdef Leaves usable_leaves() noexcept
cdef int make_plan(
    Plan *plan, tuple shape, tuple source, Py_ssize_t itemsize, const uint8_t *data, Py_ssize_t data_size,
    Py_ssize_t out_size,
) except -1
cdef void write_blocks(
    const Plan *plan, int level, Py_ssize_t n, const uint8_t *data, uint8_t *out, uint8_t *out_end,
) noexcept nogil
cdef void write_part(
    const Plan *plan, int level, Py_ssize_t begin, Py_ssize_t end, const uint8_t *data, uint8_t *out, uint8_t *out_end,
    uint8_t *scratch,
) noexcept nogil
cdef int make_counted(
    CountedPlan *plan, const CountList *counts, Py_ssize_t outer, Py_ssize_t size, const uint8_t *data,
) except -1
cdef void drop_counted(CountedPlan *plan) noexcept
cdef Py_ssize_t units_before(const CountedPlan *plan, Py_ssize_t item) noexcept nogil
cdef void write_counted(
    const void *all_plan, Py_ssize_t begin, Py_ssize_t end, const uint8_t *data, uint8_t *out, uint8_t *scratch,
) noexcept nogil
cdef cnp.ndarray packed(cnp.ndarray data, tuple shape, int threads, bint releasing)
cdef void write_strided(cnp.ndarray data, uint8_t *out, int threads, bint releasing) noexcept
