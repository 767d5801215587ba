# cython: cdivision=True
# Three structs describe a reduction: the operation and its terms (`Reduction`), the axes (`Nest`), and the order of the
# work (`ReductionPlan`). The interface fills the first two, `plan_reduction` the third, and `run` executes it.

from bcast._nest.core cimport Nest
from bcast._reduce.kernels cimport Kernels, Sink, Target
from bcast._runtime.arrays cimport MAX_AXES

cdef extern from "_runtime/tuning.h":
    enum:
        PACKED_TERMS "BCAST_PACKED_TERMS"   # the most terms packed at once


# ---- The axes ----

cdef enum:      # the operands of a reduction's nest
    DATA                    # the reduced operand
    OTHER                   # the second operand; without one, NULL and strides of 0
    RESULTS                 # of stride 0 along reduced axes
    OPERANDS

cdef struct Axis:
    # An axis of the nest, or a part of one: in a loop, a block or a call.
    Py_ssize_t length
    Py_ssize_t src_stride       # between items of the data, in bytes
    Py_ssize_t other_stride     # between items of the second operand, in bytes; 0 without one
    Py_ssize_t dst_stride       # between results, in bytes; 0 along a reduced axis
    bint kept                   # whether the result has this axis; otherwise it is reduced

cdef struct Axes:
    # Axes of a nest of loops, the outermost first.
    int rank
    Axis[MAX_AXES + 1] axis     # one more than arrays have: the parts of complex numbers

cdef struct Cursor:
    # A position in all arrays.
    const char *src             # an item of the data
    const char *other           # an item of the second operand
    char *dst                   # a result


cdef inline void move(Cursor *cursor, const Axis *axis, Py_ssize_t by) noexcept nogil:
    """Move by a number of items along an axis."""
    cursor.src += by * axis.src_stride
    cursor.other += by * axis.other_stride
    cursor.dst += by * axis.dst_stride


# ---- Terms and operations ----

cdef enum:
    # How a term is computed.
    ITEMS                   # an item alone
    PRODUCTS                # an item times an item of the second operand
    DEVIATIONS              # an item minus a mean, the second operand's item; usually squared

cdef enum:
    # How terms are packed.
    SAME_BYTES              # items unchanged, contiguous
    OWN_KIND                # integers of 64 bits, or of 32 if sums have 32; floats unchanged
    REALS                   # float64
    SQUARES                 # integers of 64 bits: the squares of items of 8 or 16 bits

cdef struct Terms:
    # How items become the terms that kernels read.
    int made_of             # ITEMS, PRODUCTS or DEVIATIONS
    int deviation           # the function of DEVIATIONS: SQUARE, NUMBERS_SQUARE, NUMBER or NUMBERS_COUNT
    int dtype               # of an item, or of a part of a complex item: its row in the table of dtypes
    int other_dtype         # of the second operand's items; -1 without one
    # Whether terms are packed first, because kernels cannot read items in place; PRODUCTS without `multiplier` are.
    bint packed
    int packed_as           # SAME_BYTES, OWN_KIND, REALS or SQUARES
    int size                # of a term that kernels read, in bytes
    int ahead               # prefetch distance in bytes; 0 if a cache holds the items
    const Kernels *multiplier       # reads both operands in place; NULL if terms are packed
    bint multiplier_adds    # whether it also adds the products of several rows, or of a run
    # Whether the second operand's items are first expanded to the layout of the first one's, for `multiplier`: if they
    # are not adjacent, or short rows of them do not follow each other. Both factors then have one dtype of floats.
    bint spreads
    # Of exact sums of products: whether as many rows are packed as there is room for, and whether the rounding errors
    # of products are terms, too, which a kernel puts PACKED_TERMS behind these.
    bint in_bulk
    bint has_errors

cdef struct Reduction
cdef struct ReductionPlan

cdef struct Operation:
    # A sum, an extreme, a truth or a product: all that plans and loops know of an operation.
    const Kernels *kernels          # combine terms with accumulators, and accumulators with each other
    int accumulator_size            # in bytes
    int arrays                      # of accumulators: 2 with error terms or second parts of pairs, 3 with bounds
    bint idempotent                 # whether a term may be combined twice, so repeated terms do not matter
    int identity                    # each byte of a result without terms, as for counts of 0
    # Turns `n` accumulators into values to store; returns whether some have to be computed again, one by one.
    bint (*finish)(const Reduction *reduction, const Sink *block, Py_ssize_t n) noexcept nogil
    # Computes one result again from its terms, from `first` on, in the place of its accumulators.
    void (*again)(const ReductionPlan *plan, Cursor first, const Sink *accumulators) noexcept nogil
    # Takes the last step, after `finish` and `again`. NULL if there is none.
    void (*scale)(const Reduction *reduction, const Sink *block, Py_ssize_t n) noexcept nogil

cdef struct Outcome:
    # How accumulators become results.
    int dtype               # of the results, or of their parts: a row in the table of dtypes
    bint are_terms          # whether kernels can write results: as terms or 64-bit products, without a conversion
    Py_ssize_t repeats      # repetitions of each term along axes of stride 0, which the plan omits; 1 if idempotent
    int arrays              # of results: 2 of pairs, 3 of expansions
    Py_ssize_t apart        # bytes from a result to the same one of the next array
    double divisor          # of sums; 0 if sums are the results
    bint root               # whether results are the square roots of the quotients
    bint divides_each       # whether each sum has a divisor of its own: an item of the second operand, a float64
    double initial          # one more term of each exact sum

cdef struct Reduction:
    const Target *target
    Terms terms
    Operation operation
    Outcome outcome


# ---- The plan ----

cdef struct KernelCall:
    # What one call of a kernel reduces.
    bint runs               # runs, each inside vectors; otherwise rows, combined with a row of accumulators
    bint writes             # whether the kernel writes the results; otherwise accumulators are folded and stored
    bint gathers            # whether the pieces of a row are gathered, along axis 1 of the block
    Axis along              # from row to row; or along the terms of a run
    Py_ssize_t within       # positions of `along` in one row; 1 unless rows include a part of a reduced axis

cdef struct Block:
    # The accumulators of one kernel call.
    Axes axes               # the first one is from group to group of rows, or from run to run; then those of a row
    Py_ssize_t items        # accumulators of a tile before folding: some of the axes may be reduced

cdef struct Tiles:
    # How the result is cut, for threads and caches.
    int axis                # of the block, which is cut: 0, groups or runs; or 1, a kept axis of which rows have a part
    Py_ssize_t length       # of a tile along that axis; the last one may be shorter
    Py_ssize_t along        # tiles along that axis
    Py_ssize_t count        # tiles of the result

cdef struct Shares:
    # How a tile's terms are cut, for threads.
    int axis                # the reduced axis that is cut: its number among the loops; -1 for `along` of the call
    Py_ssize_t each         # shares of a tile
    Py_ssize_t count        # shares of all tiles

cdef struct ReductionPlan:
    const Reduction *reduction
    Cursor first            # the first items of all arrays
    Axes axes               # all of them: a result that is computed again iterates over the reduced ones
    Py_ssize_t items        # of the data that are read: repeated ones count once
    Py_ssize_t depth        # terms of one result
    Axes loops              # around the kernel's calls
    KernelCall call
    Block block
    Tiles tiles
    Shares shares
    Py_ssize_t scratch      # bytes that a thread needs

# The caller sets `plan.reduction`; the plan keeps a reference to it.
cdef void plan_reduction(ReductionPlan *plan, const Nest *nest, Py_ssize_t shares) noexcept nogil


cdef inline Cursor read_nest(const Nest *nest, Axes *axes) noexcept nogil:
    """Read all axes of a nest; return the first items."""
    cdef int i
    axes.rank = nest.rank
    for i in range(nest.rank):
        axes.axis[i] = Axis(
            length=nest.shape[i],
            src_stride=nest.stride[DATA][i],
            other_stride=nest.stride[OTHER][i],
            dst_stride=nest.stride[RESULTS][i],
            kept=nest.stride[RESULTS][i] != 0,
        )
    return Cursor(src=nest.data[DATA], other=nest.data[OTHER], dst=nest.data[RESULTS])


cdef inline Py_ssize_t ceil_div(Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    """The quotient, rounded up."""
    return (a + b - 1) // b
