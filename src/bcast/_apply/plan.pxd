# cython: cdivision=True
from bcast._apply.operands cimport Call
from bcast._apply.ufuncs cimport Cast, Folding, RowLoop
from bcast._nest.core cimport MAX_OPERANDS, Nest
from bcast._runtime.arrays cimport MAX_AXES

cdef struct Items:
    # An operand's items in a block, without repetitions: runs of adjacent items, along axes from the innermost out.
    Py_ssize_t size                     # size of a run, in bytes
    int rank
    Py_ssize_t[MAX_AXES] lengths
    Py_ssize_t[MAX_AXES] strides        # strides between runs in memory, in bytes
    Py_ssize_t[MAX_AXES] packed         # strides between runs in a buffer, in bytes
    Py_ssize_t count                    # number of items in all runs
    Py_ssize_t full_count               # number of items with repetitions

cdef struct Access:                     # how the loop reads or writes an operand's items of a block
    Items items                         # items of a block in which no axis ends
    bint is_direct                      # in place; otherwise in a buffer
    bint is_expanded                    # items are repeated in the buffer
    Py_ssize_t stride                   # stride between items for the loop, in bytes
    Py_ssize_t row_stride               # stride between rows in place, in bytes; 0 if all rows have the same items
    # Offsets in a thread's scratch, in bytes:
    Py_ssize_t buffer                   # unchanged items
    Py_ssize_t cast_buffer              # converted items
    Py_ssize_t full_buffer              # repeated items
    Py_ssize_t loop_buffer              # the loop's items: one of these three
    Py_ssize_t copies                   # the plan of the copies that repeat items

cdef struct BlockPlan:
    const Call *call
    bint by_rows                        # the loop is called for each row of a block; otherwise once for a block
    RowLoop row_loop                    # called once for all rows of a block; NULL if the call's loop is used
    int cut                             # a block has one index of outer axes, and inner ones whole; rows may be cut
    Py_ssize_t[MAX_AXES] lengths        # lengths of a block in which no axis ends
    Py_ssize_t[MAX_AXES] parts          # number of blocks along each axis
    Py_ssize_t blocks                   # number of all blocks
    Py_ssize_t scratch_bytes            # scratch of each thread
    Py_ssize_t[2] values                # offsets in scratch of two buffers for the outputs of a chain's steps
    Access[MAX_OPERANDS] access

cdef struct FoldPlan:
    # How terms are folded. The nest has outer axes, then `many`, `depth` and `lanes`, each possibly of length 1. Its
    # last operand is the results, the one before them the output of the first fold: it is never made, so its strides
    # alone count.
    Nest nest
    Folding kernel                      # a call of the kernel, without addresses
    Cast cast                           # converts the first operand's items after they are gathered; or NULL
    int given_size                      # size of an unconverted item, in bytes
    Py_ssize_t given                    # offset in a thread's scratch where these are gathered
    bint is_along                       # lanes are terms of one result; otherwise each lane has its own result
    bint takes_roots                    # whether results are square roots
    bint has_signed_zeros               # a term may be -0
    bint has_positions                  # results are positions of extremes in the output of the first fold
    bint seeks_greatest                 # extremes are the greatest items
    int many, depth, lanes              # indices of these axes in the nest
    int sought                          # number of the axis that positions refer to: `many` or `lanes`
    int outer_kept                      # number of outer axes that are kept; the others are reduced
    Py_ssize_t piece                    # items along the axis `lanes` at once: all, or a multiple of LONG_AXIS_ITEMS
    Py_ssize_t rows                     # rows of `many` in one call
    Py_ssize_t parts                    # parts of the terms of a result, for threads; each part has its own results
    Py_ssize_t units                    # units of work
    bint[MAX_OPERANDS] is_gathered      # whether an operand's items of a piece are gathered
    Py_ssize_t[MAX_OPERANDS] gathered   # offset in a thread's scratch
    # Strides for kernels: from lane to lane, from term to term, and from row to row.
    Py_ssize_t[MAX_OPERANDS] strides
    Py_ssize_t[MAX_OPERANDS] depth_strides
    Py_ssize_t[MAX_OPERANDS] row_strides
    int result_size                     # bytes
    bint is_scattered                   # rows of results are computed in scratch, then copied
    Py_ssize_t scattered                # offset of these rows
    Py_ssize_t best                     # offset of the extremes of lanes, followed by their positions
    Py_ssize_t states                   # offset of the results of a piece's rows while lanes are their terms
    Py_ssize_t scratch_bytes            # scratch of each thread

cdef bint is_small(const Call *call) noexcept
cdef void pair_axes(Call *call) noexcept
cdef void find_fused(Call *call) noexcept
cdef void plan_blocks(const Call *call, BlockPlan *plan) noexcept
cdef void find_items(const BlockPlan *plan, int k, const Py_ssize_t *lengths, Items *items) noexcept nogil
cdef bint plan_folds(FoldPlan *plan) noexcept


cdef inline Py_ssize_t count_pieces(Py_ssize_t n, Py_ssize_t piece) noexcept nogil:
    """The number of pieces in n items; the last one may be shorter."""
    return (n + piece - 1) // piece
