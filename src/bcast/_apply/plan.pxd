# cython: cdivision=True
from bcast._apply.operands cimport Call
from bcast._apply.ufuncs cimport RowLoop
from bcast._nest.core cimport MAX_OPERANDS
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

cdef bint is_small(const Call *call) noexcept
cdef void pair_axes(Call *call) noexcept
cdef void find_fused(Call *call) noexcept
cdef void plan_blocks(const Call *call, BlockPlan *plan) noexcept
cdef void find_items(const BlockPlan *plan, int k, const Py_ssize_t *lengths, Items *items) noexcept nogil
