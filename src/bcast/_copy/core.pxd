# cython: cdivision=True
cimport numpy as cnp
from libc.stdint cimport int32_t, int64_t, uint8_t

from bcast._rules.counts cimport CountList, Counts
from bcast._runtime.cpu cimport L1, LINE
from bcast._runtime.threads cimport RELEASING, WAKING, count_threads

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

cdef enum:              # what writes the innermost blocks:
    COPY                # no leaf: long items are copied one by one and replicated
    ROWS                # runs of items are written from registers
    FILL                # each block is an item, which fills vectors
    DOUBLE              # no leaf: the first block is doubled
    PROGRAM             # the program shuffles a span of blocks at once

cdef struct Plan:
    int last
    Pair[MAX_PAIRS] pairs
    const uint8_t *data_end
    int strategy
    int shuffle_level       # the pair that the strategy writes, with all pairs inside; -1 if no leaf does that
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

# Writes the bytes of an output from `begin` to `end`: past the caches if there is a scratch.
ctypedef void (*Write)(
    const void *plan, Py_ssize_t begin, Py_ssize_t end, const uint8_t *data, uint8_t *out, uint8_t *scratch
) noexcept nogil

cdef Py_ssize_t COPY_SHARE_BYTES        # another thread that would write less costs more than it saves
cdef Py_ssize_t COPY_STREAMED_BYTES     # a smaller output may stay in some cache for its reader

cdef CopyMatrix *transpose_of       # by the target's number: of items that lie side by side in the data, too
cdef CopyMatrix strided_copy

cdef int make_plan(
    Plan *plan, tuple shape, tuple source, Py_ssize_t itemsize, const uint8_t *data, Py_ssize_t data_size,
    Py_ssize_t out_size,
) except -1
cdef void write_planned(
    const void *all_plan, Py_ssize_t begin, Py_ssize_t end, const uint8_t *data, uint8_t *out, uint8_t *scratch,
) noexcept nogil
cdef int plan_counted(
    CountedPlan *plan, cnp.ndarray data, Counts counts, int axis, cnp.ndarray out, const uint8_t *begin,
) except -1
cdef void drop_counted(CountedPlan *plan) noexcept
cdef void write_counted(
    const void *all_plan, Py_ssize_t begin, Py_ssize_t end, const uint8_t *data, uint8_t *out, uint8_t *scratch,
) noexcept nogil
cdef cnp.ndarray packed(cnp.ndarray data, tuple shape, int threads, bint releasing)
cdef void write_strided(cnp.ndarray data, uint8_t *out, int threads, bint releasing) noexcept
cdef uint8_t *new_scratch(const uint8_t *out, Py_ssize_t size, Py_ssize_t written, int threads) noexcept
cdef void write_shares(
    Write write, const void *plan, const uint8_t *data, uint8_t *out, Py_ssize_t size, uint8_t *scratch, int threads,
    Py_ssize_t read, bint mapped,
) noexcept nogil
cdef int drop_converted(cnp.ndarray data, cnp.dtype dtype) except -1
cdef int write_converted(cnp.ndarray data, tuple shape, cnp.ndarray out, Py_ssize_t piece) except -1
cdef int write_converted_counted(
    cnp.ndarray data, Counts counts, int axis, cnp.ndarray out, Py_ssize_t piece,
) except -1


cdef inline int threads_for(Py_ssize_t size) noexcept nogil:
    """How many threads write an output of `size` bytes."""
    return count_threads(size, COPY_SHARE_BYTES, WAKING * COPY_SHARE_BYTES, size)


cdef inline bint is_large(Py_ssize_t size, int threads) noexcept:
    """Whether views of the buffers and releasing the GIL pay for an output of `size` bytes."""
    return size // threads >= RELEASING or size >= COPY_STREAMED_BYTES
