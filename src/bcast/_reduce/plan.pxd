# cython: cdivision=True
# A reduction in three structs: what is made of items (`Reduction`), along which axes (`Nest`), and in what order
# (`ReductionPlan`). The face fills the first two, `plan_reduction` the third, and `run` follows it.

from bcast._nest.core cimport Nest
from bcast._reduce.kernels cimport Kernels, Sink, Target
from bcast._runtime.arrays cimport MAX_AXES

cdef extern from "_runtime/tuning.h":
    enum:
        PACKED_TERMS "BCAST_PACKED_TERMS"   # terms that are packed at once, at most


cdef enum:
    ARRAYS = 3      # of accumulators with error terms: sums, error terms, and what these have lost at most


# ---- The axes ----

cdef enum:      # the operands of a reduction's nest
    DATA                    # what is reduced
    OTHER                   # the second operand; without one, NULL and strides of 0
    RESULTS                 # of stride 0 along the axes that are reduced
    OPERANDS

cdef struct Axis:
    # An axis of the nest, or a part of one, as it goes from loops to blocks and calls.
    Py_ssize_t length
    Py_ssize_t src_stride       # between items of what is reduced, in bytes
    Py_ssize_t other_stride     # between items of the second operand, in bytes; 0 without one
    Py_ssize_t dst_stride       # between results, in bytes; 0 along an axis that is reduced
    bint kept                   # whether the result has this axis; else it is reduced

cdef struct Axes:
    # Axes of a nest of loops, the outermost first.
    int rank
    Axis[MAX_AXES + 1] axis     # one more than arrays have: complex numbers have two parts

cdef struct Cursor:
    # A position in all arrays.
    const char *src             # an item of what is reduced
    const char *other           # an item of the second operand
    char *dst                   # a result


cdef inline void move(Cursor *cursor, const Axis *axis, Py_ssize_t by) noexcept nogil:
    """Move by some items along an axis."""
    cursor.src += by * axis.src_stride
    cursor.other += by * axis.other_stride
    cursor.dst += by * axis.dst_stride


# ---- What is made of the items ----

cdef enum:
    # What a term is made of.
    ITEMS                   # an item alone
    PRODUCTS                # an item times one of the second operand
    DEVIATIONS              # what an item differs from a mean, which is the second operand's item; as a rule its square

cdef enum:
    # What terms are after they were packed.
    SAME_BYTES              # items as they are, side by side
    OWN_KIND                # integers of 64 bits, or of 32 where sums have these; floats as they are
    REALS                   # float64
    SQUARES                 # integers of 64 bits: the squares of items of 8 or 16

cdef struct Terms:
    # How items become terms, as the kernels read them.
    int made_of             # ITEMS, PRODUCTS or DEVIATIONS
    int deviation           # what is made of these: SQUARE, NUMBERS_SQUARE, NUMBER or NUMBERS_COUNT
    int dtype               # of an item, or of its part if it is complex: its row in the table of dtypes
    int other_dtype         # of the second operand's items; -1 without one
    # Whether kernels cannot read items where they lie, so that terms are packed before; products where no `multiplier`.
    bint packed
    int packed_as           # SAME_BYTES, OWN_KIND, REALS or SQUARES
    int size                # of a term that kernels read, in bytes
    int ahead               # bytes by which items are prefetched; 0 if a cache holds them
    const Kernels *multiplier       # what reads both operands where they lie; NULL if they are packed before
    bint multiplier_adds    # whether it adds the products of several rows, or of a run, too
    # Whether the second operand's items are laid side by side for `multiplier` before, as the first one's lie: where
    # PRODUCTS are of one dtype of floats, and one factor or one row of factors serves many items.
    bint spreads

cdef struct Reduction
cdef struct ReductionPlan

cdef struct Operation:
    # What is made of terms: a sum, an extreme, a truth or a product. Plans and loops know no more than this.
    const Kernels *kernels          # they combine terms in accumulators, and accumulators with each other
    int accumulator_size            # in bytes
    bint has_errors                 # whether each accumulator has an error term beside it
    bint idempotent                 # whether a term may be combined twice, so that repeated ones are of no matter
    int identity                    # each byte of a result that has no terms, as counts of 0 say
    # Makes of `n` accumulators what is to be stored; whether some have to be made again, one by one. NULL if they are
    # that already.
    bint (*finish)(const Reduction *reduction, const Sink *block, Py_ssize_t n) noexcept nogil
    # Computes one result again from its terms, from `first` on; returns what `finish` would have made of it.
    double (*again)(const ReductionPlan *plan, Cursor first) noexcept nogil
    # Takes the last step, from what `finish` and `again` have made. NULL if there is none.
    void (*scale)(const Reduction *reduction, const Sink *block, Py_ssize_t n) noexcept nogil

cdef struct Outcome:
    # What becomes of accumulators.
    int dtype               # of the results, or of their parts: a row in the table of dtypes
    bint are_terms          # whether kernels can write results themselves: as terms, or products in 64 bits, are
    Py_ssize_t repeats      # how often each term comes, along axes of stride 0, which are left out of the plan
    double divisor          # of sums, a whole number where terms are items; 0 if sums are the results
    bint once               # whether infinite results and NaN are wanted as they come
    bint root               # whether results are the square roots of the quotients

cdef struct Reduction:
    const Target *target
    Terms terms
    Operation operation
    Outcome outcome


# ---- The plan ----

cdef struct KernelCall:
    # What one call of a kernel reduces.
    bint runs               # runs, each inside vectors; else rows, which are combined with a row of accumulators
    bint writes             # whether the kernel writes the results; else accumulators are folded and stored
    bint gathers            # whether the pieces of a row lie apart, along axis 1 of the block, and are copied together
    Axis along              # from row to row; or along the terms of a run
    Py_ssize_t within       # positions of `along` that one row has; 1 unless a part of a reduced axis is in the rows

cdef struct Block:
    # The accumulators that one call of a kernel has.
    Axes axes               # the first one is from group to group of rows, or from run to run; then those of a row
    Py_ssize_t items        # accumulators of a tile before they are folded, as some of the axes may be reduced

cdef struct Tiles:
    # How the result is cut, for threads and for caches.
    int axis                # of the block, which is cut: 0 or 1
    Py_ssize_t length       # of a tile along that axis; the last one may be shorter
    Py_ssize_t along        # tiles along that axis
    Py_ssize_t count        # tiles of the result

cdef struct Shares:
    # How a tile's terms are cut, for threads.
    int axis                # the number of the reduced axis among the loops that is cut; -1 for `along` of the call
    Py_ssize_t each         # shares of a tile
    Py_ssize_t count        # shares of all tiles

cdef struct ReductionPlan:
    const Reduction *reduction
    Cursor first            # the first items of all arrays
    Axes axes               # all of them: a result that is made again goes along the reduced ones
    Py_ssize_t items        # of what is reduced
    Py_ssize_t depth        # terms of one result
    Axes loops              # around the kernel's calls
    KernelCall call
    Block block
    Tiles tiles
    Shares shares
    Py_ssize_t scratch      # bytes that a thread needs

# The caller sets `reduction` of the plan, which refers to this.
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
