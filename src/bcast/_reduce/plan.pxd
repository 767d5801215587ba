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
    RESULTS                 # the results, with strides of 0 along reduced axes
    OPERANDS

cdef struct Axis:
    # An axis of the nest, or a part of one, in a loop, a block or a call.
    Py_ssize_t length
    Py_ssize_t src_stride       # stride between items of the data, in bytes
    Py_ssize_t other_stride     # stride between items of the second operand, in bytes; 0 without one
    Py_ssize_t dst_stride       # stride between results, in bytes; 0 along a reduced axis
    bint kept                   # whether the result has this axis; otherwise it is reduced

cdef struct Axes:
    # Axes of a nest of loops, the outermost first.
    int rank
    Axis[MAX_AXES + 1] axis     # one more than arrays have, for the parts of complex numbers

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
    int dtype               # dtype of an item, or of a part of a complex item: its row in the table of dtypes
    int other_dtype         # dtype of the second operand's items: its row; -1 without a second operand
    bint packed             # whether terms are packed first: items in other layouts, and PRODUCTS without `multiplier`
    int packed_as           # SAME_BYTES, OWN_KIND, REALS or SQUARES
    int size                # size of a term that kernels read, in bytes
    int ahead               # prefetch distance in bytes; 0 if a cache holds the items
    const Kernels *multiplier       # reads both operands in place; NULL if terms are packed
    bint multiplier_adds    # whether it also adds the products of several rows, or of a run
    # Whether the second operand's items are first expanded to the layout of the first one's, for `multiplier`: if they
    # are not adjacent, or short rows of them do not follow each other. Both factors then have one dtype of floats.
    bint spreads
    # In exact sums of products: whether scratch is filled with rows before they are reduced; and whether the rounding
    # errors of products are terms as well, which a kernel writes PACKED_TERMS after the products.
    bint in_bulk
    bint has_errors

cdef struct Reduction
cdef struct ReductionPlan

cdef struct Operation:
    # A sum, an extreme, a truth or a product: all that plans and loops know of an operation.
    const Kernels *kernels          # combine terms with accumulators, and accumulators with each other
    int accumulator_size            # size of an accumulator, in bytes
    int arrays                      # of accumulators: 2 with error terms, exponents or parts of pairs, 3 with bounds
    bint idempotent                 # whether a term may be combined twice, so repeated terms do not matter
    int identity                    # each byte of a result without terms, as for counts of 0
    # Turns `n` accumulators into values to store. Returns whether some must be computed again, one by one.
    bint (*finish)(const Reduction *reduction, const Sink *block, Py_ssize_t n) noexcept nogil
    # Computes one result again from its terms, which begin at `first`, and overwrites its accumulators.
    void (*again)(const ReductionPlan *plan, Cursor first, const Sink *accumulators) noexcept nogil
    # Scales the values in a last step, after `finish` and `again`. NULL if there is none.
    void (*scale)(const Reduction *reduction, const Sink *block, Py_ssize_t n) noexcept nogil

cdef struct Outcome:
    # How accumulators become results.
    int dtype               # dtype of the results, or of their complex parts: its row in the table of dtypes
    bint are_terms          # whether kernels can write results: as terms or 64-bit products, without a conversion
    Py_ssize_t repeats      # repetitions of each term along axes of stride 0, which the plan omits; 1 if idempotent
    int arrays              # arrays of results: 2 for pairs, 3 for expansions
    Py_ssize_t apart        # distance from one array of results to the next, in bytes
    double divisor          # divisor of sums; 0 if sums are the results
    bint root               # whether results are the square roots of the quotients
    bint divides_each       # whether each sum has its own divisor: an item of the second operand, a float64
    double initial          # a further term of each exact sum

cdef struct Reduction:
    const Target *target
    Terms terms
    Operation operation
    Outcome outcome


# ---- The plan ----

cdef struct KernelCall:
    # What one call of a kernel reduces.
    bint runs               # whether it reduces runs, each inside vectors; otherwise rows, onto a row of accumulators
    bint writes             # whether the kernel writes the results; otherwise accumulators are folded and stored
    bint gathers            # whether the pieces of a row are gathered, along axis 1 of the block
    Axis along              # the axis from row to row, or along the terms of a run
    Py_ssize_t within       # positions of `along` in one row; 1 unless rows include a part of a reduced axis

cdef struct Block:
    # The accumulators of one kernel call.
    Axes axes               # the axis from group to group of rows or from run to run, then the axes of a row
    Py_ssize_t items        # accumulators of a tile before folding, which combines those along reduced axes

cdef struct Tiles:
    # How the result is cut, for threads and caches.
    int axis                # the axis of the block that is cut: 0, groups or runs; or 1, a kept axis partly in rows
    Py_ssize_t length       # length of a tile along that axis; the last tile may be shorter
    Py_ssize_t along        # tiles along that axis
    Py_ssize_t count        # tiles of the result

cdef struct Shares:
    # How a tile's terms are cut, for threads.
    int axis                # the reduced axis that is cut: its number among the loops, or -1 for `along` of the call
    Py_ssize_t each         # shares of a tile
    Py_ssize_t count        # shares of all tiles

cdef struct ReductionPlan:
    const Reduction *reduction
    Cursor first            # the first items of all arrays
    Axes axes               # all axes of the nest; to compute a result again, a loop visits the reduced ones
    Py_ssize_t items        # items of the data that are read; repeated items count once
    Py_ssize_t depth        # terms of one result
    Axes loops              # axes of the loops around the kernel's calls
    KernelCall call
    Block block
    Tiles tiles
    Shares shares
    Py_ssize_t scratch      # the scratch of a thread, in bytes

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
