from libc.stdint cimport int64_t

cdef extern from "_sum/simd/sum.h":
    enum:
        U64 "BCAST_KIND_u64"
        F64 "BCAST_KIND_f64"

    enum:
        SET "BCAST_SET"
        ADD "BCAST_ADD"
        WRITE "BCAST_WRITE"

    ctypedef struct Rows "bcast_rows":
        const char *x
        Py_ssize_t turns, advance, rows, step, fifth, width

    ctypedef struct Runs "bcast_runs":
        const char *x
        Py_ssize_t count, step, length, interleave

    ctypedef struct CountedRuns "bcast_counted_runs":
        const char *x
        const char *end
        const int64_t *counts
        Py_ssize_t count, interleave

    ctypedef struct Sink "bcast_sink":
        int mode
        char *sum
        char *error

    ctypedef struct Leaves "bcast_sums":
        int lanes
        bint (*sum_rows)(const Rows *rows, const Sink *to) noexcept nogil
        bint (*sum_runs)(const Runs *runs, const Sink *to) noexcept nogil
        bint (*sum_counted_runs)(const CountedRuns *runs, const Sink *to) noexcept nogil
        void (*add_accumulators)(const Sink *to, const Sink *source, Py_ssize_t n) noexcept nogil

    ctypedef struct Results "bcast_results":
        int dtype
        int sum_size
        char *to
        Py_ssize_t step

    ctypedef struct Target "bcast_sum_target":
        Leaves *sums
        void (*store)(const Results *results, const void *sums, Py_ssize_t n) noexcept nogil
        bint (*add_errors)(double *sum, const double *error, Py_ssize_t n) noexcept nogil

cdef extern from "_sum/simd/dtypes.h":
    enum:
        BOOL "BCAST_BOOL"
        INT8 "BCAST_INT8"
        UINT8 "BCAST_UINT8"
        FLOAT16 "BCAST_FLOAT16"
        FLOAT32 "BCAST_FLOAT32"
        FLOAT64 "BCAST_FLOAT64"
        DTYPE_COUNT "BCAST_DTYPE_COUNT"
        AS_IS "BCAST_AS_IS"
        AS_INTEGER "BCAST_AS_INTEGER"
        AS_REAL "BCAST_AS_REAL"

    ctypedef struct Dtype "bcast_dtype":
        int size
        bint is_float
        int kind
        const char *name

    ctypedef struct Packing "bcast_packing":
        int dtype
        int how

    const Dtype *dtypes "bcast_dtypes"
    void pack "bcast_pack"(
        const Packing *packing, char *to, const char *x, Py_ssize_t step, Py_ssize_t n
    ) noexcept nogil

cdef enum:
    MAX_AXES = 65       # 64, and the two parts of complex numbers
    UNITS = 64          # enough for most machines' threads
    BLOCK = 4096        # accumulators; with their rows they fit a second-level cache
    FEWEST = 8          # what is added to each accumulator at least, where they must be folded; rows of one leaf's call
    ROW = 512           # items: of a row that is joined from short ones, or packed, at most; of a tile's rows at least

cdef struct Axis:
    Py_ssize_t length
    Py_ssize_t step         # in grad, in bytes
    Py_ssize_t out_step
    bint kept

cdef struct Terms:          # how they are read, summed and written
    const Target *target
    const Leaves *leaves    # of their kind
    Packing packing
    bint packed             # whether the leaves read what is packed, not grad itself
    bint compensated
    int size                # of a term as the leaves read it,
    int sum_size            # and of an accumulator
    int result              # its dtype
    bint writes             # whether results are terms of the kind

cdef struct Reduction:
    const Terms *terms
    bint runs               # whether the leaf sums runs; else rows
    bint writes             # whether it writes results; else they are accumulated, folded and stored
    const Axis *axes        # all of them, which the sum of a single element walks again
    int rank
    int outers
    Axis[MAX_AXES] outer    # walked; kept and summed ones as the memory has them
    Axis along              # what the leaf sums along: from row to row, or the terms of a run
    Py_ssize_t within       # how many of its positions lie side by side in a block of rows
    int blocks
    Axis[MAX_AXES] block    # of the accumulators: first the groups of rows, or the runs; then the items of each, nested
    bint folded             # whether some of the block's axes are summed
    int last                # the last of them that is kept
    int split               # which of its axes is cut into chunks, 0 or 1,
    Py_ssize_t chunk        # of what length,
    Py_ssize_t chunks       # and how many
    Py_ssize_t tiles        # of the result, all in all
    int cut                 # the summed axis that is cut into segments: one of the outer ones, or -1 for `along`
    Py_ssize_t segments
    Py_ssize_t sums_most    # accumulators of a tile before they are folded
    Py_ssize_t scratch      # bytes that a thread needs

cdef void plan_sum(
    Reduction *plan, const Terms *terms, const Axis *axis, int n, Py_ssize_t units,
) noexcept nogil
