# cython: cdivision=True
cimport numpy as cnp
from cpython.object cimport PyObject
from libc.stdint cimport uint8_t

from bcast._apply.ufuncs cimport BoundLoop, Cast, RowLoop
from bcast._nest.core cimport MAX_OPERANDS, Nest

cdef enum:
    MAX_STEPS = 24          # the most steps of a chain of MAX_OPERANDS operands, with all its conversions

cdef enum:                  # modes that align operands other than the first one with the result
    BY_NUMPY = 0            # all operands stretch the result
    BY_NONE = 1             # they have its shape
    UNIDIRECTIONAL = 2      # they are stretched
    PDPD = 3                # they are stretched, starting at one of its axes

cdef struct Rule:
    int mode
    int axis                # the result's axis at which operands begin by 'pdpd'; -1 if they end with the last axis

cdef struct Operand:
    PyObject *array         # the caller holds it; NULL for a Python scalar
    Py_ssize_t *strides     # the operand's row of the nest's strides, in bytes: negative if reversed, 0 if repeated
    Py_ssize_t size         # size of an item in memory, in bytes
    Py_ssize_t loop_size    # size of an item of the loop's dtype, in bytes
    Cast cast               # converts items in memory to items of the loop, or back for the output; NULL if equal
    int swapped             # bytes of the units that are byte-swapped in memory; 0 without any
    bint readable           # C may read the items in place: they are aligned and in native byte order

cdef struct Step:           # a step of a chain: a loop, or a conversion
    const char *name        # in reports of floating-point errors
    bint reports_errors       # its errors are reported
    bint clears_errors      # it clears the errors of earlier steps
    BoundLoop loop          # without a function for a conversion
    Cast cast               # NULL for a loop
    int second              # number of the loop's second operand; 0 if it has none
    int third               # number of the loop's third operand; 0 if it has none
    bint is_implied         # a conversion that the next step needs
    bint is_to_out          # a conversion to the dtype of `out`, which a single ufunc does by itself
    bint in_pieces          # its input has several axes; known if errors of conversions are noted
    Py_ssize_t item_count   # items of its input; known if errors of conversions are noted
    Py_ssize_t size         # size of an item of its output, in bytes
    int fused_count         # steps, from this one on, that may run as one loop; 0 or 1 if this one runs alone
    uint8_t function        # its number in fused loops: a function's or a conversion's; or NOT_FUSED

cdef struct Call:           # a ufunc or a chain of steps, and its operands
    Nest nest               # the axes of the result; the output is the last operand
    Operand[MAX_OPERANDS] operands
    long double[MAX_OPERANDS][2] scalars    # Python scalars, as items of the loop's dtypes
    # What is computed:
    BoundLoop loop          # the loop of a ufunc
    RowLoop row_loop        # a substitute for it; NULL if there is none
    int step_count          # number of steps of a chain; 0 for a ufunc
    Step[MAX_STEPS] steps
    int number              # for a chain: NumPy's number for the output dtype of the steps so far; otherwise not set
    # Properties of the loops:
    bint thread_safe        # they may run on any thread
    # Time of an item, relative to a sum of items of that size. Of a chain, 1 and all steps until it runs, then half.
    int cost
    bint reports_errors       # floating-point errors are checked
    bint side_by_side       # they accept only contiguous items, or a single repeated one
    int slow_with_stride_0  # bit mask: operands that make a loop slow if a single item is repeated
    int slow_unfused        # the same for steps that could be fused, if they are not
    # Properties of the operands, as bit masks:
    int compared_bools      # bools whose bytes a loop compares
    int noted               # floats whose conversions' errors are noted separately
    int reshaped            # flags of the operands that NumPy gets with more axes
    bint in_place           # not a mask: the output is an operand, too

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
    """The number of an operand's axes, 0 for a scalar."""
    return cnp.PyArray_NDIM(<cnp.ndarray> operand) if cnp.PyArray_CheckExact(operand) else 0
