# The kernels of `simd/` for Cython. `simd/sum.h` is their contract and documents each field; `simd/table.h` has the
# table of dtypes. `run` looks up kernels in the tables of `simd/kernels.h`.

from libc.stdint cimport int64_t

cdef extern from "_reduce/simd/sum.h":
    enum: U8 "BCAST_KIND_u8", U16 "BCAST_KIND_u16", U32 "BCAST_KIND_u32", U64 "BCAST_KIND_u64", F64 "BCAST_KIND_f64"
    enum: SQUARE "BCAST_SQUARE", NUMBERS_SQUARE "BCAST_NUMBERS_SQUARE"
    enum: NUMBER "BCAST_NUMBER", NUMBERS_COUNT "BCAST_NUMBERS_COUNT"
    enum: SET "BCAST_SET", ADD "BCAST_ADD", WRITE "BCAST_WRITE"

    ctypedef struct Rows "bcast_term_rows":
        const char *src
        Py_ssize_t turns
        Py_ssize_t advance
        Py_ssize_t rows
        Py_ssize_t stride
        Py_ssize_t half_stride
        Py_ssize_t width

    ctypedef struct Runs "bcast_term_runs":
        const char *src
        Py_ssize_t count
        Py_ssize_t stride
        Py_ssize_t length
        Py_ssize_t interleave

    ctypedef struct CountedRuns "bcast_counted_runs":
        const char *src
        const char *end
        const int64_t *counts
        Py_ssize_t count
        Py_ssize_t interleave

    ctypedef struct Products "bcast_term_products":
        const char *a
        const char *b
        Py_ssize_t count
        Py_ssize_t a_advance
        Py_ssize_t b_advance
        Py_ssize_t width
        Py_ssize_t rows
        Py_ssize_t stride
        Py_ssize_t ahead

    ctypedef struct Sink "bcast_sink":
        int mode
        char *sum
        char *error

    ctypedef struct Kernels "bcast_sum_kernels":
        int lanes
        bint is_idempotent
        bint (*reduce_rows)(const Rows *rows, const Sink *dst) noexcept nogil
        bint (*reduce_runs)(const Runs *runs, const Sink *dst) noexcept nogil
        bint (*reduce_counted_runs)(const CountedRuns *runs, const Sink *dst) noexcept nogil
        void (*combine)(const Sink *dst, const Sink *src, Py_ssize_t n) noexcept nogil
        void (*fold)(const Sink *all, Py_ssize_t groups, Py_ssize_t length, Py_ssize_t n) noexcept nogil
        void (*multiply)(const Products *products, void *sums) noexcept nogil
        void (*deviate)(
            int made, const char *src, const double *means, Py_ssize_t stride, double *dst,
            Py_ssize_t n) noexcept nogil

    ctypedef struct Results "bcast_results":
        int dtype
        int sum_size
        char *dst
        Py_ssize_t stride
        Py_ssize_t sum_stride

    ctypedef struct Settling "bcast_settling":
        double divisor
        int digits
        double least_normal

    ctypedef struct Spreading "bcast_spreading":
        double count
        double divisor
        double rest
        int parts
        bint root
        int digits
        double least_normal

    ctypedef struct BoundedSums "bcast_bounded_sums":
        const double *squares
        const double *sums
        Py_ssize_t apart

    ctypedef struct Target "bcast_sum_target":
        Kernels *kernels
        void (*store)(const Results *results, const void *sums, Py_ssize_t n) noexcept nogil
        bint (*add_errors)(double *sum, const double *error, Py_ssize_t n) noexcept nogil
        void (*divide)(double *sums, double by, bint root, Py_ssize_t n) noexcept nogil
        bint (*settle)(const Settling *how, const Sink *block, Py_ssize_t n) noexcept nogil
        void (*settle_spreads)(
            const Spreading *how, const BoundedSums *sums, double *results, Py_ssize_t n) noexcept nogil

cdef extern from "_reduce/simd/table.h":
    enum: BOOL "BCAST_BOOL", INT8 "BCAST_INT8", INT64 "BCAST_INT64", UINT8 "BCAST_UINT8", UINT64 "BCAST_UINT64"
    enum: DTYPE_COUNT "BCAST_DTYPE_COUNT"
    enum: FLOAT16 "BCAST_FLOAT16", BFLOAT16 "BCAST_BFLOAT16", FLOAT32 "BCAST_FLOAT32", FLOAT64 "BCAST_FLOAT64"

    ctypedef struct Dtype "bcast_dtype":
        int size
        int kind
        bint is_float
        const char *name

    const Dtype *dtypes "bcast_dtypes"

cdef extern from "_reduce/simd/positions.h":
    ctypedef struct Cells "bcast_cells":
        const char *src
        Py_ssize_t count
        Py_ssize_t advance
        Py_ssize_t length
        Py_ssize_t stride
        Py_ssize_t width
    ctypedef struct PositionKernels "bcast_position_kernels":
        void (*in_runs)(
            bint greatest, const char *src, Py_ssize_t count, Py_ssize_t stride, Py_ssize_t length,
            int64_t *positions) noexcept nogil
        void (*in_columns)(bint greatest, const Cells *cells, int64_t *positions) noexcept nogil
        int64_t (*best_of)(
            bint greatest, const char *src, Py_ssize_t stride, const int64_t *positions,
            Py_ssize_t count) noexcept nogil

cdef extern from "_reduce/simd/short_vectors.h":
    enum:
        SHORT_LANES "BCAST_SHORT_LANES"
        SHORT_LEAST "BCAST_SHORT_LEAST"
        SHORT_MOST "BCAST_SHORT_MOST"
    enum: DOT "BCAST_DOT", CROSS "BCAST_CROSS", NORM "BCAST_NORM", MATVEC "BCAST_MATVEC", STACK "BCAST_STACK"
    enum: STATISTICS "BCAST_STATISTICS"
    enum: SHORT_SPREAD "BCAST_SHORT_SPREAD", SHORT_MEAN_AND_SPREAD "BCAST_SHORT_MEAN_AND_SPREAD"
    enum:
        SHORT_F32 "BCAST_SHORT_F32"
        SHORT_F64 "BCAST_SHORT_F64"
        SHORT_U64 "BCAST_SHORT_U64"
        SHORT_U32 "BCAST_SHORT_U32"
        SHORT_U16 "BCAST_SHORT_U16"
        SHORT_U8 "BCAST_SHORT_U8"

    ctypedef struct ShortVectors "bcast_short_vectors":
        char **items
        Py_ssize_t advance
        bint dense

    ctypedef struct ShortStatistics "bcast_short_statistics":
        int made
        bint root
        bint skips_nan
        bint compensates
        double ddof

    ctypedef struct ShortCall "bcast_short_call":
        ShortVectors a
        ShortVectors b
        const void *matrix
        ShortStatistics statistics
        ShortVectors dst
        Py_ssize_t count

    ctypedef void (*ShortKernel "bcast_short_kernel")(const ShortCall *call) noexcept nogil

cdef extern from "_reduce/simd/exact_squares.h":
    enum: EXACT_DIGITS "BCAST_EXACT_DIGITS", MEASURED_PARTS "BCAST_MEASURED_PARTS"
    enum: INTEGERS_AT_ONCE "BCAST_INTEGERS_AT_ONCE"

    ctypedef struct Measuring "bcast_measuring":
        int parts
        bint has_means
        bint is_root
        bint to_odd
        bint skips_nan
        double ddof
