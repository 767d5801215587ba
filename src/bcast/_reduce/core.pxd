from libc.stdint cimport int64_t

from bcast._rules.core cimport TiledCounts
from bcast._runtime.core cimport MAX_AXES

cdef extern from "_reduce/simd/sum.h":
    enum: U8 "BCAST_KIND_u8", U16 "BCAST_KIND_u16", U32 "BCAST_KIND_u32", U64 "BCAST_KIND_u64", F64 "BCAST_KIND_f64"
    enum: SET "BCAST_SET", ADD "BCAST_ADD", WRITE "BCAST_WRITE"

    ctypedef struct Rows "bcast_term_rows":
        const char *src
        Py_ssize_t turns, advance, rows, step, half_step, width

    ctypedef struct Runs "bcast_term_runs":
        const char *src
        Py_ssize_t count, step, length, interleave

    ctypedef struct CountedRuns "bcast_counted_runs":
        const char *src
        const char *end
        const int64_t *counts
        Py_ssize_t count, interleave

    ctypedef struct Products "bcast_term_products":
        const char *a
        const char *b
        Py_ssize_t count, a_advance, b_advance, width, rows, step, ahead

    ctypedef struct Sink "bcast_sink":
        int mode
        char *sum
        char *error

    ctypedef struct Kernels "bcast_sum_kernels":
        int lanes
        bint (*sum_rows)(const Rows *rows, const Sink *dst) noexcept nogil
        bint (*sum_runs)(const Runs *runs, const Sink *dst) noexcept nogil
        bint (*sum_counted_runs)(const CountedRuns *runs, const Sink *dst) noexcept nogil
        void (*add_accumulators)(const Sink *dst, const Sink *src, Py_ssize_t n) noexcept nogil
        void (*fold)(const Sink *all, Py_ssize_t groups, Py_ssize_t length, Py_ssize_t n) noexcept nogil
        void (*multiply)(const Products *products, void *sums) noexcept nogil
        void (*deviate)(const char *src, const double *means, Py_ssize_t step, double *dst, Py_ssize_t n) noexcept nogil

    ctypedef struct Results "bcast_results":
        int dtype, sum_size
        char *dst
        Py_ssize_t step, sum_step

    ctypedef struct Target "bcast_sum_target":
        Kernels *kernels
        void (*store)(const Results *results, const void *sums, Py_ssize_t n) noexcept nogil
        bint (*add_errors)(double *sum, const double *error, Py_ssize_t n) noexcept nogil
        void (*divide)(double *sums, double by, bint root, Py_ssize_t n) noexcept nogil

cdef extern from "_reduce/simd/dtypes.h":
    enum: BOOL "BCAST_BOOL", INT8 "BCAST_INT8", UINT8 "BCAST_UINT8", UINT64 "BCAST_UINT64"
    enum: DTYPE_COUNT "BCAST_DTYPE_COUNT"
    enum: FLOAT16 "BCAST_FLOAT16", FLOAT32 "BCAST_FLOAT32", FLOAT64 "BCAST_FLOAT64"

    ctypedef struct Dtype "bcast_dtype":
        int size, kind
        bint is_float
        const char *name

    const Dtype *dtypes "bcast_dtypes"
    void pack "bcast_pack"(int dtype, bint as_real, char *dst, const char *src, Py_ssize_t step, Py_ssize_t n) nogil

cdef extern from "_reduce/simd/idempotent.h":
    enum: GREATEST "BCAST_GREATEST", LEAST "BCAST_LEAST"
    enum: SOME_NONZERO "BCAST_SOME_NONZERO", SOME_ZERO "BCAST_SOME_ZERO"

cdef struct Axis:
    Py_ssize_t length, src_step, dst_step   # bytes in `grad` and in the result: 0 in this if the axis is summed
    bint kept
    Py_ssize_t times_step       # bytes in what `grad` is multiplied by

cdef struct LoopNest:
    int rank
    Axis[MAX_AXES + 1] axes     # outermost first; complex numbers have two parts

cdef struct Terms:
    const Target *target
    const Kernels *kernels      # of the terms' kind
    int dtype                   # as which terms are packed
    bint as_real, packed        # as what they are packed, and whether they must be for the kernels to read them
    bint compensated
    int size, sum_size          # bytes of a term as the kernels read it, and of an accumulator
    int result                  # dtype of the results
    bint writes                 # whether results are terms of the kind, which kernels can write
    int times                   # dtype of the factors that terms are multiplied by; -1 if there are none
    const Kernels *multiplier   # the kernels that multiply or deviate as terms lie; NULL if these must be packed before
    bint folds                  # whether products are added up as they are packed
    int ahead                   # bytes by which they are prefetched; 0 if caches hold them
    bint deviates               # whether terms are squares of differences from `times`, and not products
    double divisor              # of the sums; 0 if these are the results
    bint root                   # whether results are the roots of the quotients
    bint idempotent             # whether a term may be taken twice, and accumulators are as long as items
    Py_ssize_t factor           # by which sums are multiplied: how often each term comes along axes of stride 0

cdef struct KernelCall:
    bint runs                   # whether the kernel sums runs; else rows
    bint writes                 # whether it writes results; else accumulators are folded and stored
    bint gathers                # whether rows are pieces, which lie apart along axis 1 of the block
    Axis along                  # from row to row, or along the terms of a run
    Py_ssize_t within           # how many positions of `along` lie side by side in a block of rows

cdef struct Block:
    int rank
    Axis[MAX_AXES + 1] axes     # the groups of rows, or the runs; then the items of each, nested
    Py_ssize_t items            # accumulators before they are folded, as some of the axes may be summed

cdef struct Tiles:
    int axis                    # of the block, which is cut: 0 or 1
    Py_ssize_t length, along    # of the cut axis in a tile, the last of which may be shorter; tiles along that axis
    Py_ssize_t count            # tiles of the result

cdef struct Shares:
    int axis                    # the loop nest's summed axis that is cut, or -1 for `along`
    Py_ssize_t each, count      # shares of a tile, and of all tiles

cdef struct Place:              # in all arrays
    const char *src
    const char *times           # NULL without factors
    char *dst


cdef inline void move(Place *place, const Axis *axis, Py_ssize_t by) noexcept nogil:
    """Go so far along an axis."""
    place.src += by * axis.src_step
    place.times += by * axis.times_step
    place.dst += by * axis.dst_step


cdef struct SumPlan:
    Place first
    const Terms *terms
    const Axis *axes            # up to the last summed one: a single result is summed again along these
    int rank                    # of the axes
    LoopNest loops              # around the kernel's calls; kept and summed axes as the memory has them
    KernelCall call
    Block block
    Tiles tiles
    Shares shares
    Py_ssize_t scratch          # bytes that a thread needs

cdef struct CountedSum:
    Place first
    TiledCounts counts
    const Terms *terms
    Axis rows                   # of which an item sums as many as its count; `dst_step` is from item to item
    Axis inner                  # the items of a row
    LoopNest loops              # around both
    Py_ssize_t positions        # of the loops
    Py_ssize_t length           # rows and items of one position: what shares are cut by
    bint side_by_side           # whether the results of all items are
    Py_ssize_t group_sums, packed_terms     # of a group of items
    Py_ssize_t scratch          # bytes that a thread needs

cdef const Target **sum_target_of   # by the target's number
cdef const Kernels *idempotent_kernels(int target, int operation, int dtype) noexcept nogil

# The caller sets `first`, `terms` and `counts.list` of a plan, which refers to these and to the axes.
cdef void plan_sum(SumPlan *plan, const Axis *axis, int n, Py_ssize_t shares) noexcept nogil
cdef void sum_shares(const SumPlan *plan, Py_ssize_t i, Py_ssize_t end, char *scratch, char *partials) noexcept nogil
cdef void add_shares(const SumPlan *plan, char *partials) noexcept nogil
cdef bint takes_turns(const Terms *terms, const Axis *axis) noexcept nogil
cdef void plan_counted_sum(CountedSum *plan, const Axis *axis, int n) noexcept nogil
cdef void sum_counted_share(const CountedSum *plan, Py_ssize_t begin, Py_ssize_t end, char *scratch) noexcept nogil
