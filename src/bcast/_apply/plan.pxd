# cython: cdivision=True
from bcast._apply.operands cimport Call
from bcast._apply.ufuncs cimport Cast, Folding, RowLoop
from bcast._nest.core cimport MAX_OPERANDS, Nest
from bcast._runtime.arrays cimport MAX_AXES

cdef struct Items:
    # An operand's items in a block, but for repetitions: a run of them that is one long item, and where further runs
    # lie along some axes, innermost first.
    Py_ssize_t size                     # of the run, in bytes
    int rank
    Py_ssize_t[MAX_AXES] lengths
    Py_ssize_t[MAX_AXES] strides        # between runs in memory, in bytes
    Py_ssize_t[MAX_AXES] packed         # between runs in a buffer, in bytes
    Py_ssize_t count                    # of items in all runs
    Py_ssize_t full_count               # of items with repetitions

cdef struct Access:                     # how the loop gets an operand's items of a block
    Items items                         # of a block in which no axis ends
    bint is_direct                      # where they lie; if not, in a buffer
    bint is_expanded                    # items are repeated in the buffer
    Py_ssize_t stride                   # between items, as the loop gets them, in bytes
    Py_ssize_t row_stride               # between rows where they lie, in bytes; 0 if all rows have the same items
    # Where in a thread's scratch these begin, in bytes:
    Py_ssize_t buffer                   # items as they are
    Py_ssize_t cast_buffer              # items that are converted
    Py_ssize_t full_buffer              # items that are repeated
    Py_ssize_t loop_buffer              # those of them that the loop gets
    Py_ssize_t copies                   # the plan of the copies that repeat items

cdef struct BlockPlan:
    const Call *call
    bint by_rows                        # the loop is called for each row of a block; if not, once for a block
    RowLoop row_loop                    # is called once for all rows of a block; NULL if the call's loop is used
    int cut                             # the axis of which a block has a part: one index of those before, all others
    Py_ssize_t[MAX_AXES] lengths        # of a block in which no axis ends
    Py_ssize_t[MAX_AXES] parts          # how many blocks there are along each axis
    Py_ssize_t blocks                   # how many there are
    Py_ssize_t scratch_bytes            # of each thread
    Py_ssize_t[2] values                # where in it the buffers begin of what steps of a chain give
    Access[MAX_OPERANDS] access

cdef struct FoldPlan:
    # How terms are folded: the axes of a nest are outer ones, then `many`, `depth` and `lanes`, of which each may have
    # length 1. Its last operand are the results, the one before these what terms are folded to at first.
    Nest nest
    Folding kernel                      # a call of the kernel, but for places
    Cast cast                           # converts the first operand's items, which are gathered then; or NULL
    int given_size                      # of these, in bytes
    Py_ssize_t given                    # where in a thread's scratch they are gathered
    bint is_along                       # lanes are terms of one result; if not, each has its result
    bint takes_roots                    # of the results
    bint has_signed_zeros               # a term may be -0
    bint has_positions                  # results are positions of extremes among what terms are folded to
    bint seeks_greatest                 # of these extremes
    int many, depth, lanes              # the numbers of these axes
    int sought                          # that of the axis along which positions are; it is `many` or `lanes`
    int outer_kept                      # how many outer axes have results of their own; the others are reduced
    Py_ssize_t piece                    # items along the axis `lanes` at once: all, or a multiple of FOLD_LANES
    Py_ssize_t rows                     # of `many`, at once
    Py_ssize_t parts                    # of the terms of a result, for threads: each makes results of its own
    Py_ssize_t units                    # of work
    bint[MAX_OPERANDS] is_gathered      # an operand's items of a piece are copied side by side
    Py_ssize_t[MAX_OPERANDS] gathered   # where in a thread's scratch
    # As kernels get the operands: from lane to lane, from term to term, and from row to row.
    Py_ssize_t[MAX_OPERANDS] strides
    Py_ssize_t[MAX_OPERANDS] depth_strides
    Py_ssize_t[MAX_OPERANDS] row_strides
    int result_size                     # bytes
    bint is_scattered                   # rows of results are made in scratch, and copied
    Py_ssize_t scattered                # where
    Py_ssize_t best                     # where the extremes of lanes are, and then their positions
    Py_ssize_t states                   # where the results of a piece's rows are while lanes are terms of them
    Py_ssize_t scratch_bytes            # of each thread

cdef bint is_small(const Call *call) noexcept
cdef void pair_axes(Call *call) noexcept
cdef void find_fused(Call *call) noexcept
cdef void plan_blocks(const Call *call, BlockPlan *plan) noexcept
cdef void find_items(const BlockPlan *plan, int k, const Py_ssize_t *lengths, Items *items) noexcept nogil
cdef bint plan_folds(FoldPlan *plan) noexcept


cdef inline Py_ssize_t count_pieces(Py_ssize_t n, Py_ssize_t piece) noexcept nogil:
    """How many pieces, of which the last one may be shorter, n items are."""
    return (n + piece - 1) // piece
