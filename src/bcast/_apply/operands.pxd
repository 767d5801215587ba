# cython: cdivision=True
cimport numpy as cnp
from cpython.object cimport PyObject
from libc.stdint cimport uint8_t

from bcast._apply.ufuncs cimport BoundLoop, Cast, RowLoop
from bcast._nest.core cimport MAX_OPERANDS, Nest

cdef enum:
    MAX_STEPS = 24          # of a chain of MAX_OPERANDS operands, with all its conversions

cdef enum:                  # modes, by which operands that are not the first one are aligned with the result
    BY_NUMPY = 0            # all operands stretch the result
    BY_NONE = 1             # they have its shape
    UNIDIRECTIONAL = 2      # they are stretched
    PDPD = 3                # they are stretched, from an axis of it on

cdef struct Rule:
    int mode
    int axis                # at which axis of the result operands begin by 'pdpd'; -1 if they end with its last one

cdef struct Operand:
    PyObject *array         # the caller holds it; NULL for a Python scalar
    Py_ssize_t *strides     # the operand's row of the nest's strides: 0 where it is repeated
    Py_ssize_t size         # of an item in memory, in bytes
    Py_ssize_t loop_size    # of an item as the loop takes it, in bytes
    Cast cast               # from items in memory to those of the loop, or back for the output; NULL if they are alike
    int swapped             # bytes of the units that lie in memory in the other order; 0 if none do
    bint readable           # C may read the items where they lie: they are aligned, and in the machine's order

cdef struct Step:           # of a chain: a loop, or a conversion
    const char *name        # as floating-point errors are told
    bint tells_errors       # they are told
    bint clears_errors      # it clears the errors of all that was before it
    BoundLoop loop          # without a function for a conversion
    Cast cast               # NULL for a loop
    int second              # number of the loop's second operand; 0 if it has none
    int third               # number of the loop's third operand; 0 if it has none
    bint is_implied         # a conversion that the next step asks for
    bint in_pieces          # what it takes has several axes; known where errors of conversions are noted
    Py_ssize_t item_count   # how many items it takes; known where errors of conversions are noted
    Py_ssize_t size         # of an item that it gives, in bytes
    int fused_count         # steps, from this one on, that may run as one loop; 0 or 1 if this runs alone
    uint8_t function        # the number that it has in fused loops, or NOT_FUSED

cdef struct Call:           # a ufunc or a chain of steps, and its operands
    Nest nest               # the axes of the result; the output is the last operand
    Operand[MAX_OPERANDS] operands
    long double[MAX_OPERANDS][2] scalars    # Python scalars, as items of the loop's dtypes
    # What is computed:
    BoundLoop loop          # of a ufunc
    RowLoop row_loop        # that can serve in its place; NULL if there is none
    int step_count          # of a chain; 0 for a ufunc
    Step[MAX_STEPS] steps
    int number              # NumPy's number for the dtype that the steps so far give
    # What is known of the loops:
    bint thread_safe        # they may run on any thread
    int cost                # time of an item, in times of a sum's of that size
    bint tells_errors       # floating-point errors are looked for
    bint side_by_side       # they take only items side by side, or one for all
    int slow_with_stride_0  # bits of operands of which one item for all makes a loop slow
    int slow_unfused        # the same of steps that are fused where they can be, for where they cannot
    # What is known of the operands:
    int compared_bools      # bits of operands that are bools whose bytes a loop compares
    int noted               # bits of operands that are floats whose conversions' errors are noted on their own
    int reshaped            # bits of operands that have more axes when NumPy gets them
    bint in_place           # the output is an operand, too

cdef Rule rule_of_mode(int mode, axis) except *
cdef bint align_operands(Call *call, a, b, const Rule *rule) noexcept
cdef bint map_operand(Call *call, int k, operand, const Rule *rule) noexcept
cdef bint describe(Call *call, int k, value, cnp.dtype dtype, Cast cast) except -1
cdef bint has_items(const Call *call) noexcept
cdef bint is_reshaped(const Call *call, int k) noexcept
cdef bint runs_backwards(const Call *call) noexcept
cdef bint has_sure_strides(const Call *call, bint repeating) noexcept
cdef void make_bools_plain(Call *call) noexcept
cdef object new_result(Call *call, cnp.dtype dtype, int n)
cdef bint accept_out(Call *call, out, cnp.dtype dtype, int casting) except -1
cdef bint are_equal(const void *a, const void *b, int n) noexcept


cdef inline int rank_of(operand) noexcept:
    """How many axes an operand has; a scalar has none."""
    return cnp.PyArray_NDIM(<cnp.ndarray> operand) if cnp.PyArray_CheckExact(operand) else 0
