cdef extern from "_sum/simd/sum.h":
    enum:
        U8 "BCAST_U8"
        U16 "BCAST_U16"
        U32 "BCAST_U32"
        U64 "BCAST_U64"
        F16 "BCAST_F16"
        BF16 "BCAST_BF16"
        F32 "BCAST_F32"
        F64 "BCAST_F64"
        BOOL "BCAST_BOOL"
        INT8 "BCAST_INT8"
        UINT8 "BCAST_UINT8"
        FLOAT16 "BCAST_FLOAT16"
        BFLOAT16 "BCAST_BFLOAT16"
        FLOAT32 "BCAST_FLOAT32"
        FLOAT64 "BCAST_FLOAT64"

    ctypedef struct Sums "bcast_sums":
        void (*add_rows)(
            void *high, void *low, const char *x, Py_ssize_t count, Py_ssize_t step, Py_ssize_t rows,
            Py_ssize_t row_step, Py_ssize_t m, int add
        ) noexcept nogil
        void (*add_runs)(
            void *high, void *low, const char *x, Py_ssize_t count, Py_ssize_t step, Py_ssize_t n, Py_ssize_t m,
            int far, int add
        ) noexcept nogil
        int (*put_runs)(
            char *to, const char *x, Py_ssize_t count, Py_ssize_t step, Py_ssize_t n, Py_ssize_t m, int far,
            int streamed
        ) noexcept nogil
        int (*put_rows)(
            char *to, const char *x, Py_ssize_t rows, Py_ssize_t row_step, Py_ssize_t m, int streamed
        ) noexcept nogil
        void (*add_accumulators)(
            void *high, void *low, const void *high_2, const void *low_2, Py_ssize_t n
        ) noexcept nogil
        Py_ssize_t m_most
        Py_ssize_t lanes

    bint is_short "bcast_is_short"(Py_ssize_t n, Py_ssize_t m, Py_ssize_t lanes) noexcept nogil

    ctypedef void (*Pack "bcast_pack")(void *to, const char *x, Py_ssize_t step, Py_ssize_t n) noexcept nogil
    ctypedef void (*Store "bcast_store")(
        char *to, Py_ssize_t step, const void *sums, Py_ssize_t n
    ) noexcept nogil

    ctypedef struct SumLeaf "bcast_sum_leaf":
        Sums *sums
        Store *store
        Store *store_wide
        int (*merge)(double *high, const double *low, Py_ssize_t n) noexcept nogil

cdef enum:
    MAX_AXES = 65       # 64, and the two parts of complex numbers
    LONG = 32           # items; shorter innermost axes are joined with others
    FEWEST = 8          # what is added to each accumulator at least, where they must be folded
    PACKED = 512        # accumulators of a block where terms are packed first, eight rows at a time

cdef struct Axis:
    Py_ssize_t length
    Py_ssize_t step         # in grad, in bytes
    Py_ssize_t out_step
    bint kept

cdef struct Terms:          # how they are read, summed and written
    Sums sums
    Pack pack               # NULL where the leaves read grad itself
    Store store
    int (*merge)(double *high, const double *low, Py_ssize_t n) noexcept nogil
    int size                # of a term as the leaves read it,
    int sum_size            # and of an accumulator
    bint paired

cdef struct Reduction:
    Terms terms
    int summed              # the number of summed axes,
    Axis[MAX_AXES] sums     # which the sum of a single element walks again
    int outers
    Axis[MAX_AXES] outer    # walked; kept and summed ones as the memory has them
    bint runs               # whether the leaf sums runs, or rows,
    bint alone              # of runs: whether each is short, and a result of its own
    bint far                # and whether they come from past the caches
    bint few                # of rows: whether results are sums of few, and of nothing else
    bint streamed           # whether results of short runs or few rows go past the caches
    Axis rows               # what it sums: rows, or what follows each other in a run
    Py_ssize_t within       # how many of the rows' positions lie side by side in a block
    int blocks
    Axis[MAX_AXES] block    # of the accumulators: first the groups, at any step from each other; the others are nested
    int groups              # the number of its axes that are groups: one, but for short runs
    int split               # which of its axes is cut into chunks,
    Py_ssize_t chunk        # of what length,
    Py_ssize_t chunks       # and how many
    Py_ssize_t tiles        # of the result, all in all
    int cut                 # the summed axis that is cut into segments: one of the outer ones, or -1 for the rows
    Py_ssize_t segments
    Py_ssize_t sums_most    # accumulators of a tile before they are folded
    Py_ssize_t scratch      # bytes that a thread needs
    char *begin             # of `out`
    int strided             # the number of its axes if it is not contiguous: all of the above takes it for that,
    Axis[MAX_AXES] stride   # and steps become out_steps where results are written

cdef bint interleaved(const Terms *terms, const Axis *axis, int n) noexcept
cdef int plan_axes(Reduction *plan, const Axis *axis, int n) noexcept
