from libc.stdint cimport int32_t, uint8_t

cdef extern from "_copy/simd/program.h":
    enum:
        STRETCH "BCAST_STRETCH"
        WIDEST "BCAST_WIDEST"
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

    ctypedef struct Leaf "bcast_leaf":
        const char *name
        int vector
        int window
        void (*run)(
            const Program *program, int vectors, Py_ssize_t times, const uint8_t *data, uint8_t *out
        ) noexcept nogil
        void (*fill)(
            const Program *program, Py_ssize_t n, Py_ssize_t run, Py_ssize_t size, const uint8_t *data, uint8_t *out
        ) noexcept nogil
        void (*rows)(
            Py_ssize_t n, Py_ssize_t times, Py_ssize_t size, const uint8_t *data, uint8_t *out
        ) noexcept nogil
        void (*gather)(
            const Program *program, int runs, Py_ssize_t n, Py_ssize_t times, Py_ssize_t size,
            const uint8_t *data, uint8_t *out,
        ) noexcept nogil
        void (*spread)(
            Py_ssize_t times, Py_ssize_t apart, Py_ssize_t size, const uint8_t *data, uint8_t *out
        ) noexcept nogil
        void (*tile)(Py_ssize_t block, Py_ssize_t size, uint8_t *out) noexcept nogil

cdef enum:
    MAX_AXES = 64       # as many as an array may have
    MAX_PAIRS = 33      # 64 axes that alternate, and the run of items innermost
    SHUFFLED = 16       # bytes of the longest item that is shuffled, as of the smallest window

cdef struct Pair:
    Py_ssize_t copied       # how many blocks the data has,
    Py_ssize_t repeated     # how often the output repeats each of them,
    Py_ssize_t data_bytes   # and the size of a block in each of the two
    Py_ssize_t out_bytes

cdef struct Plan:
    int last
    Pair[MAX_PAIRS] pairs
    const uint8_t *data_end
    int programmed              # the pair that the program writes, with all pairs inside; -1 without a program
    bint filled                 # whether its blocks are items, each of which fills vectors
    bint gathered               # whether its blocks are lists of runs of items, which vectors copy
    Py_ssize_t read_back        # bytes of the longest block that is replicated from the output itself
    Py_ssize_t stretch_blocks   # how many of its blocks the program describes,
    Py_ssize_t stretch_times    # and how many times each of them
    Leaf leaf
    Program program

cdef int make_plan(
    Plan *plan, tuple shape, tuple source, Py_ssize_t itemsize, const uint8_t *data, Py_ssize_t data_size,
    Py_ssize_t out_size,
) except -1
