# cython: cdivision=True, boundscheck=False, wraparound=False
"""Ufuncs: the table of their properties, their loops for dtypes, and conversions between dtypes.

In: a ufunc, the numbers of its operands' dtypes, a casting. Out: a UfuncLoop, which has no loop if the ufunc itself
must do the call. Each is requested once, and kept.

To add a loop of our own for a function, write it in `simd/loops.inc.h`, and add the flag OWN_LOOPS to the column `own`
of its row below. `simd/kernels.h` lists the kernels.
"""

cimport cython
cimport numpy as cnp
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport uint8_t
from libc.string cimport memcmp, memcpy, memset

from contextvars import copy_context

import numpy as np

from bcast._runtime.core cimport target_number
from bcast._runtime.numpy_private cimport CONTEXT_SIZE, CallInfo, Loop, call_info, clip_ufunc, resolve_loop
from bcast._runtime.tuning cimport SLOW_WEIGHT

cdef extern from "numpy/arrayobject.h":
    bint PyArray_CanCastTypeTo(cnp.PyArray_Descr *src, cnp.PyArray_Descr *dst, int casting)

cdef extern from "numpy/ufuncobject.h":
    ctypedef struct UFunc "PyUFuncObject":
        int nin, nout, core_enabled
    void PyUFunc_clearfperr() nogil
    int PyUFunc_getfperr() nogil

cdef extern from "fenv.h":
    int has_errors "fetestexcept"(int errors) noexcept nogil
    int raise_errors "feraiseexcept"(int errors) noexcept nogil
    enum: FE_INVALID

cdef extern from "_apply/simd/kernels.h":
    enum:
        ADD "bcast_number_add"
        SUBTRACT "bcast_number_subtract"
        MULTIPLY "bcast_number_multiply"
        DIVIDE "bcast_number_divide"
        MAXIMUM "bcast_number_maximum"
        MINIMUM "bcast_number_minimum"
        EQUAL "bcast_number_equal"
        NOT_EQUAL "bcast_number_not_equal"
        LESS "bcast_number_less"
        LESS_EQUAL "bcast_number_less_equal"
        GREATER "bcast_number_greater"
        GREATER_EQUAL "bcast_number_greater_equal"
        RINT "bcast_number_rint"

    Loop named_loop "bcast_loop_of"(int target, const char *ufunc, char kind, int size)
    Loop half_loop "bcast_half_loop"(int target, bint is_bfloat, int function)
    Loop select_loop "bcast_select_loop"(int target)
    RowLoop row_loop_of "bcast_row_loop_of"(int target, bint is_float, int size, int function)

    Cast cast_of "bcast_cast_of"(int target, int src, int dst, int bfloat16, bint exact)
    Cast saturating_cast_of "bcast_saturating_cast_of"(int target, int src, int dst, int bfloat16)
    void bcast_swap_bytes(int target, Py_ssize_t n, int size, void *items) noexcept nogil

    bint fuses "bcast_fuses"(int target)
    bint fuses_halves "bcast_fuses_halves"(int target)
    bint fuses_more "bcast_fuses_more"(int target)
    void bcast_fuse(int target, const Fusion *fusion) noexcept nogil
    void bcast_fold(int target, const Folding *folding, Folded *onto) noexcept nogil
    void bcast_keep_positions(int target, const PositionRows *rows) noexcept nogil
    void bcast_find_position(int target, const PositionRows *row, Folded *onto) noexcept nogil
    void bcast_take_roots(int target, int size, Py_ssize_t n, void *items) noexcept nogil

cnp.import_array()
cnp.import_ufunc()


# The table


# Dtypes, by NumPy's characters for them.
cdef str ANY = "*"
cdef str BOOL = "?"
cdef str BYTES = "bB"
cdef str SIGNED = "bhilq"
cdef str INTEGERS = "bBhHiIlLqQ"
cdef str HALF = "e"
cdef str FLOATS = "efdg"
cdef str COMPLEX = "FDG"

cdef enum:
    # Operands, as bits:
    FIRST = 1
    BOTH = 3

    # Loops of our own, as bits:
    HALVES = 1          # loops of float16 and bfloat16, in simd/halves.inc.h
    ROWS = 2            # loops over many short rows, in simd/rows.inc.h
    FUSED = 4           # loops of several steps of float32, in simd/fused.inc.h
    OWN_LOOPS = 8       # loops of the dtypes that simd/loops.inc.h lists beside the ufunc
    HYPOT_COMPARED = 16     # the same for hypot, if it gives NumPy's bits: some libraries round differently


@cython.final
@cython.auto_pickle(False)
cdef class Ufunc:
    """A row of the table. Columns of dtypes list the dtypes of the loop's first operand."""

    cdef int operands
    cdef bint thread_safe           # no loop for numbers raises or takes the GIL, except the ones left to NumPy
    cdef int cost                   # time of an item, relative to a sum of items of that size
    cdef str left_to_numpy          # dtypes for which the ufunc itself is called,
    cdef str left_as_given          # the same by the given dtype of the only operand, before conversion
    cdef str bits_by_strides        # dtypes whose bits depend on whether strides are negative, or longer than items
    cdef str bits_by_repetition     # dtypes whose bits depend on whether the second operand's stride is 0
    cdef str bits_by_direction      # dtypes whose last bits may depend on whether the stride is negative
    cdef str slow_with_stride_0     # dtypes for which NumPy's loop has vector code, but not for a repeated item
    cdef int slow_operands          # the operands, by bits, to which that applies
    cdef str fast_side_by_side      # dtypes for which NumPy's loop has vector code only for contiguous items
    cdef bint compares_bytes        # whether the loop compares the bytes of bools
    cdef int number                 # its number in our loops, from simd/kernels.h
    cdef int own                    # the flags of bcast's own loops
    cdef int own_cost               # time of an item in our loop that replaces NumPy's, as in `cost`

    # Columns of the table come one by one, by keywords, so that a row names only what is special about its ufunc.
    def __init__(
        self, *, int operands=2, bint thread_safe=True, int cost=1, str left_to_numpy="", str left_as_given="",
        str bits_by_strides="", str bits_by_repetition="", str bits_by_direction="", str slow_with_stride_0="",
        int slow_operands=BOTH, str fast_side_by_side="", bint compares_bytes=False, int number=NOT_FUSED, int own=0,
        int own_cost=SLOW_WEIGHT // 2,
    ):
        self.operands, self.thread_safe, self.cost = operands, thread_safe, cost
        self.left_to_numpy, self.left_as_given = left_to_numpy, left_as_given
        self.bits_by_strides, self.bits_by_repetition = bits_by_strides, bits_by_repetition
        self.bits_by_direction = bits_by_direction
        self.slow_with_stride_0, self.slow_operands = slow_with_stride_0, slow_operands
        self.fast_side_by_side, self.compares_bytes = fast_side_by_side, compares_bytes
        self.number, self.own, self.own_cost = number, own, own_cost


cdef dict TABLE = {
    "add": Ufunc(number=ADD, own=HALVES | ROWS | FUSED, slow_with_stride_0=BOOL),
    "subtract": Ufunc(number=SUBTRACT, own=HALVES | ROWS | FUSED),
    "multiply": Ufunc(
        number=MULTIPLY, own=HALVES | ROWS | FUSED, slow_with_stride_0=BOOL,
        bits_by_strides=COMPLEX,    # only vector code fuses products and sums, which shows in infinite parts
    ),
    "divide": Ufunc(number=DIVIDE, own=HALVES | ROWS | FUSED),
    "maximum": Ufunc(number=MAXIMUM, own=HALVES | ROWS | FUSED, slow_with_stride_0=ANY),
    "minimum": Ufunc(number=MINIMUM, own=HALVES | ROWS | FUSED, slow_with_stride_0=ANY),
    # Which of two zeros is the result depends on where in a row an item is.
    "fmax": Ufunc(left_to_numpy=FLOATS, slow_with_stride_0=ANY),
    "fmin": Ufunc(left_to_numpy=FLOATS, slow_with_stride_0=ANY),
    "clip": Ufunc(operands=3, number=CLIP_FUSED, own=FUSED),
    "copysign": Ufunc(),
    "heaviside": Ufunc(),

    "equal": Ufunc(number=EQUAL, own=HALVES, compares_bytes=True),
    "not_equal": Ufunc(number=NOT_EQUAL, own=HALVES, compares_bytes=True),
    "less": Ufunc(number=LESS, own=HALVES, compares_bytes=True),
    "less_equal": Ufunc(number=LESS_EQUAL, own=HALVES, compares_bytes=True),
    "greater": Ufunc(number=GREATER, own=HALVES, compares_bytes=True),
    "greater_equal": Ufunc(number=GREATER_EQUAL, own=HALVES, compares_bytes=True),
    "logical_and": Ufunc(slow_with_stride_0=BOOL),
    "logical_or": Ufunc(slow_with_stride_0=BOOL),
    "logical_xor": Ufunc(compares_bytes=True),

    "bitwise_and": Ufunc(slow_with_stride_0=BOOL),
    "bitwise_or": Ufunc(slow_with_stride_0=BOOL),
    "bitwise_xor": Ufunc(compares_bytes=True),
    "left_shift": Ufunc(slow_with_stride_0=BYTES),
    "right_shift": Ufunc(slow_with_stride_0=BYTES),

    "floor_divide": Ufunc(cost=SLOW_WEIGHT, own=OWN_LOOPS, fast_side_by_side=INTEGERS),
    "remainder": Ufunc(cost=SLOW_WEIGHT, own=OWN_LOOPS),
    "fmod": Ufunc(cost=SLOW_WEIGHT),
    "gcd": Ufunc(cost=SLOW_WEIGHT),
    "lcm": Ufunc(cost=SLOW_WEIGHT),
    "hypot": Ufunc(cost=SLOW_WEIGHT, own=OWN_LOOPS | HYPOT_COMPARED),
    "nextafter": Ufunc(cost=SLOW_WEIGHT),
    "logaddexp": Ufunc(cost=SLOW_WEIGHT),
    "logaddexp2": Ufunc(cost=SLOW_WEIGHT),
    "arctan2": Ufunc(cost=SLOW_WEIGHT, bits_by_strides=ANY, bits_by_repetition=ANY),
    # There are loops for one exponent, and vector code whose last bits differ. Integers raise if one is negative.
    "power": Ufunc(
        cost=SLOW_WEIGHT, left_to_numpy=SIGNED, bits_by_strides=ANY, bits_by_repetition=ANY,
        slow_with_stride_0=ANY, slow_operands=FIRST,
    ),
    "float_power": Ufunc(cost=SLOW_WEIGHT, bits_by_strides=ANY, bits_by_repetition=ANY),

    # Functions of one operand, for the steps of chains. NumPy computes them for float16.
    "rint": Ufunc(operands=1, number=RINT, own=FUSED, bits_by_direction=COMPLEX),
    "negative": Ufunc(operands=1, left_as_given=HALF, bits_by_direction=COMPLEX),
    "positive": Ufunc(operands=1, left_as_given=HALF, bits_by_direction=COMPLEX),
    "absolute": Ufunc(operands=1, left_as_given=HALF, bits_by_direction=COMPLEX),
    "fabs": Ufunc(operands=1, left_as_given=HALF, bits_by_direction=COMPLEX),
    "sign": Ufunc(operands=1, left_as_given=HALF, bits_by_direction=COMPLEX),
    "sqrt": Ufunc(operands=1, left_as_given=HALF, bits_by_direction=COMPLEX),
    "square": Ufunc(operands=1, left_as_given=HALF, bits_by_direction=COMPLEX, bits_by_strides=COMPLEX),
    "reciprocal": Ufunc(operands=1, left_as_given=HALF, bits_by_direction=COMPLEX),
    "floor": Ufunc(operands=1, left_as_given=HALF, bits_by_direction=COMPLEX),
    "ceil": Ufunc(operands=1, left_as_given=HALF, bits_by_direction=COMPLEX),
    "trunc": Ufunc(operands=1, left_as_given=HALF, bits_by_direction=COMPLEX),
    "conjugate": Ufunc(operands=1, left_as_given=HALF, bits_by_direction=COMPLEX),
    "logical_not": Ufunc(operands=1, left_as_given=HALF, bits_by_direction=COMPLEX),
    "invert": Ufunc(operands=1, left_as_given=HALF, bits_by_direction=COMPLEX),
    "isnan": Ufunc(operands=1, left_as_given=HALF, bits_by_direction=COMPLEX),
    "isinf": Ufunc(operands=1, left_as_given=HALF, bits_by_direction=COMPLEX),
    "isfinite": Ufunc(operands=1, left_as_given=HALF, bits_by_direction=COMPLEX),
    "signbit": Ufunc(operands=1, left_as_given=HALF, bits_by_direction=COMPLEX),
    "exp": Ufunc(operands=1, left_as_given=HALF, bits_by_direction=ANY),
    "exp2": Ufunc(operands=1, left_as_given=HALF, bits_by_direction=ANY),
    "expm1": Ufunc(operands=1, left_as_given=HALF, bits_by_direction=ANY),
    "log": Ufunc(operands=1, left_as_given=HALF, bits_by_direction=ANY),
    "log2": Ufunc(operands=1, left_as_given=HALF, bits_by_direction=ANY),
    "log10": Ufunc(operands=1, left_as_given=HALF, bits_by_direction=ANY),
    "log1p": Ufunc(operands=1, left_as_given=HALF, bits_by_direction=ANY),
    "tanh": Ufunc(operands=1, left_as_given=HALF, bits_by_direction=ANY),
    "cbrt": Ufunc(operands=1, left_as_given=HALF, bits_by_direction=ANY),
}
# The row of all other ufuncs of two operands, also other packages': their loops run on the caller's thread.
cdef Ufunc UNKNOWN = Ufunc(thread_safe=False, cost=SLOW_WEIGHT)
CLIP_UFUNC = clip_ufunc(np)


def operands_of_ufuncs():
    """Return the number of operands of each ufunc of the table, by its name."""
    cdef Ufunc row
    found = {}
    for name in TABLE:
        row = TABLE[name]
        found[name] = row.operands
    return found


cdef Ufunc _row_of(ufunc):
    """The properties of a ufunc. Another package's ufunc may have the name of NumPy's."""
    cdef str name = ufunc.__name__
    cdef bint is_numpys = ufunc is CLIP_UFUNC or getattr(np, name, None) is ufunc
    return TABLE.get(name, UNKNOWN) if is_numpys else UNKNOWN


def costs_of_ufuncs():
    """The names of NumPy's ufuncs of one or two operands that are in the table, and the cost of an item of each."""
    cdef Ufunc row
    costs = {}
    for name in TABLE:
        row = TABLE[name]
        if row.operands < 3:
            costs[name] = row.cost
    return costs


cdef inline bint _names(str column, cnp.dtype dtype) except -1:
    """Whether a column of dtypes has one."""
    return column == ANY or (<object> dtype).char in column


# The loop of a ufunc for the dtypes of its operands


cdef enum:
    LOOPS_KEPT = 4096       # at most half as many

cdef struct Wanted:         # a request for a loop
    int a
    int b                   # NONE for a single operand
    int third               # dtype of the result, or of the third operand
    int casting             # NumPy's number for the rule

cdef PyObject *kept_loops[LOOPS_KEPT]      # a hash table; its loops stay
cdef int kept_count = 0
cdef object lock = object()
cdef bytes CAPSULE = b"numpy_1.24_ufunc_call_info"
cdef tuple CASTINGS = ("no", "equiv", "safe", "same_kind", "unsafe")


def probe(name=b"numpy_1.24_ufunc_call_info"):
    """Forget all loops, for tests, and ask NumPy again, with capsules of that name; return whether it gives one."""
    global CAPSULE, kept_count
    with cython.critical_section(lock):
        CAPSULE = name
        memset(kept_loops, 0, sizeof(kept_loops))   # the loops themselves stay: somebody may be using them
        kept_count = 0
    return find_loop(np.add, cnp.NPY_FLOAT, cnp.NPY_FLOAT, NONE, cnp.NPY_UNSAFE_CASTING) is not None


cdef UfuncLoop find_loop(ufunc, int a, int b, int third, int casting):
    """The loop of a ufunc for the dtypes of its operands, the wanted dtype of the result, and a casting; or None.

    `clip` has a third operand, whose dtype replaces the result's here.
    """
    # 12 bits for each dtype, whose numbers begin below 0 (OTHER), and 3 for the casting; spread by a large odd factor
    cdef long long key = (((<long long> (a + 8) << 12 | (b + 8)) << 12 | (third + 8)) << 3) | casting
    cdef size_t place = (<size_t> <PyObject *> ufunc >> 4) * 31 + <size_t> (key * 40503 >> 9)
    cdef UfuncLoop found

    if a == OTHER or b == OTHER or third == OTHER:
        return None
    if casting < cnp.NPY_SAFE_CASTING or casting > cnp.NPY_UNSAFE_CASTING:
        return None

    found = _kept_loop(ufunc, key, &place)
    if found is None:
        if kept_count > LOOPS_KEPT // 2:
            return None
        found = UfuncLoop.__new__(UfuncLoop)
        found.ufunc, found.key = ufunc, key
        _resolve(found, Wanted(a=a, b=b, third=third, casting=casting))
        _keep(found, place)
    return found if found.loop.function != NULL else None


cdef inline UfuncLoop _kept_loop(ufunc, long long key, size_t *place):
    """The loop in the table with this key, from a place on; None if there is none before a free place."""
    cdef PyObject *kept
    while True:
        place[0] &= LOOPS_KEPT - 1
        kept = kept_loops[place[0]]
        if kept == NULL:
            return None
        if (<UfuncLoop> kept).key == key and (<UfuncLoop> kept).ufunc is ufunc:
            return <UfuncLoop> kept
        place[0] += 1


cdef int _keep(UfuncLoop found, size_t place) except -1:
    """Keep a loop in the table, in the first free place from `place` on: another thread may have used that one."""
    global kept_count
    with cython.critical_section(lock):
        while kept_loops[place & (LOOPS_KEPT - 1)] != NULL:
            place += 1
        Py_INCREF(found)    # it stays
        kept_loops[place & (LOOPS_KEPT - 1)] = <PyObject *> found
        kept_count += 1
    return 0


@cython.final
@cython.auto_pickle(False)
cdef class UfuncLoop:
    """The loop of a ufunc for dtypes, and its properties; or the fact that none can be used."""


cdef int _resolve(UfuncLoop found, Wanted wanted) except -1:
    """Ask NumPy for a loop; none is found if the ufunc itself must do the call."""
    cdef Ufunc row = _row_of(found.ufunc)
    cdef const CallInfo *numpys
    cdef Loop own

    if not _may_be_asked(found.ufunc, row, &wanted):
        return 0
    given = _given_dtypes(row, &wanted)
    numpys = _ask_numpy(found, given, &wanted)
    if numpys == NULL or not _are_ours(found.dtypes) or not _find_casts(found, given):
        return 0
    if _names(row.left_to_numpy, found.dtypes[0]):
        return 0
    own = _own_loop(found.ufunc, row, found.dtypes, numpys)
    if numpys.needs_gil and own == NULL:
        return 0

    _describe_loop(found, row, own)
    _bind_loop(found, row, own, numpys)
    found.reports_errors = not numpys.no_errors
    found.clears_errors = (found.noted or wanted.b == NONE) and _clears_errors(found)
    return 0


cdef bint _may_be_asked(ufunc, Ufunc row, const Wanted *wanted) except -1:
    """Whether a ufunc has as many operands as are given, and one result, item by item."""
    cdef const UFunc *fields = <const UFunc *> ufunc
    cdef int operands = 3 if ufunc is CLIP_UFUNC else 1 if wanted.b == NONE else 2
    if fields.nin != operands or fields.nout != 1 or fields.core_enabled:
        return False
    if operands == 1:
        if row.operands != 1 or wanted.a == bfloat16:
            return False
        return not _names(row.left_as_given, cnp.PyArray_DescrFromType(wanted.a))
    return operands == 2 or wanted.third != NONE


cdef list _given_dtypes(Ufunc row, const Wanted *wanted):
    """The description of each operand for NumPy: its dtype; for a Python scalar, its type."""
    cdef int[3] numbers = [wanted.a, wanted.b, wanted.third]
    cdef int operands = 1 if wanted.b == NONE else 3 if row.operands == 3 else 2
    cdef int k
    cdef list given = []

    for k in range(operands):
        if numbers[k] == AN_INT:
            given.append(int)
        elif numbers[k] == A_FLOAT:
            given.append(float)
        elif numbers[k] == A_COMPLEX:
            given.append(complex)
        else:
            given.append(cnp.PyArray_DescrFromType(numbers[k]))
    return given


cdef const CallInfo *_ask_numpy(UfuncLoop found, list given, const Wanted *wanted) except? NULL:
    """Let NumPy resolve the dtypes and return its loop; NULL if the ufunc raises, or NumPy has none."""
    cdef dict options = {"casting": CASTINGS[wanted.casting]}
    cdef list operands = list(given)
    cdef const CallInfo *numpys

    if wanted.third != NONE and len(given) == 2:
        options["signature"] = (None, None, cnp.PyArray_DescrFromType(wanted.third))
    operands.append(None)
    try:
        found.dtypes, found.capsule = resolve_loop(found.ufunc, tuple(operands), options)
        numpys = call_info(found.capsule, CAPSULE)
    except (TypeError, ValueError, AttributeError):     # errors of the ufunc, or of a new NumPy
        return NULL
    return numpys if numpys.loop != NULL and numpys.context != NULL else NULL


cdef bint _are_ours(tuple dtypes) except -1:
    """Whether all dtypes of a loop are numbers in native byte order."""
    for dtype in dtypes:
        if eligible((<cnp.dtype> dtype).type_num) == OTHER or not dtype.isnative:
            return False
    return True


cdef bint _find_casts(UfuncLoop found, list given) except -1:
    """Find conversions of operands to the dtypes of the loop; return whether there is one for each, without a loss."""
    cdef cnp.dtype own, dtype
    cdef int k
    for k in range(len(given)):
        if not isinstance(given[k], cnp.dtype):
            continue
        own, dtype = given[k], found.dtypes[k]
        if not find_cast(own, dtype, &found.casts[k]) or not np.can_cast(own, dtype, "safe"):
            return False
        if found.casts[k] != NULL:
            found.noted |= (cnp.NPY_FLOAT <= own.type_num <= cnp.NPY_CLONGDOUBLE) << k
    return True


cdef Loop _own_loop(ufunc, Ufunc row, tuple dtypes, const CallInfo *numpys) except? NULL:
    """Our loop that replaces NumPy's; NULL if there is none."""
    cdef bytes name
    cdef Loop own
    cdef cnp.dtype dtype = dtypes[0]
    cdef int number = dtype.type_num
    cdef bint is_half = number == cnp.NPY_FLOAT16 or number == bfloat16

    if row.own & HALVES and is_half and (<cnp.dtype> dtypes[1]).type_num == number:
        return half_loop(target_number, number == bfloat16, row.number)
    if not row.own & OWN_LOOPS:
        return NULL

    name = ufunc.__name__.encode()
    own = named_loop(target_number, name, dtype.kind, <int> dtype.itemsize)
    if own == NULL or row.own & HYPOT_COMPARED and not _is_numpys_hypot(own, numpys):
        return NULL
    return own


cdef int _describe_loop(UfuncLoop found, Ufunc row, Loop own) except -1:
    """Record the properties of the loop for these dtypes."""
    cdef cnp.dtype dtype = found.dtypes[0], second = found.dtypes[1]

    found.thread_safe = row.thread_safe
    found.cost = row.cost if own == NULL else row.own_cost
    found.bits_by_strides = _names(row.bits_by_strides, dtype)
    found.bits_by_repetition = _names(row.bits_by_repetition, dtype)
    found.bits_by_direction = _names(row.bits_by_direction, dtype)
    found.side_by_side = own != NULL or _names(row.fast_side_by_side, dtype)
    if own == NULL and _names(row.slow_with_stride_0, dtype):
        found.slow_with_stride_0 = row.slow_operands
    found.compares_bytes = row.compares_bytes and dtype.type_num == cnp.NPY_BOOL

    found.fused = NOT_FUSED
    if dtype.type_num == second.type_num:
        _find_other_loops(found, row, dtype)
    return 0


cdef int _find_other_loops(UfuncLoop found, Ufunc row, cnp.dtype dtype) except -1:
    """Find the loop for many short rows, and the number in fused loops, if both operands have a dtype."""
    if row.own & ROWS and (_names(INTEGERS, dtype) or _names(FLOATS, dtype)):
        found.row_loop = row_loop_of(target_number, dtype.kind == c"f", <int> dtype.itemsize, row.number)
    if row.own & FUSED and dtype.type_num == cnp.NPY_FLOAT and _fuses(row.number):
        found.fused = row.number
    return 0


cdef inline bint _fuses(int number) noexcept:
    """Whether fused loops of this CPU have a function: they all have the first four."""
    return fuses(target_number) if number <= DIVIDE else fuses_more(target_number)


cdef void _bind_loop(UfuncLoop found, Ufunc row, Loop own, const CallInfo *numpys) noexcept:
    """Record the loop and its context."""
    memcpy(found.context, numpys.context, CONTEXT_SIZE * sizeof(void *))    # the rest is 0
    found.numpys.function, found.numpys.auxdata = numpys.loop, numpys.auxdata
    found.numpys.context = <void *> found.context
    found.loop = found.numpys
    if own != NULL:
        found.loop.function = own
        found.loop.auxdata = <void *> &found.numpys


cdef bint _is_numpys_hypot(Loop own, const CallInfo *numpys) noexcept:
    """Whether our loop for `hypot` of float32 gives NumPy's bits; some libraries round four of these differently."""
    cdef float[8] p = [16762473, 12252589, 10751338, 9997532, 0.3, 1, 7e-39, 3]
    cdef float[8] q = [4094.199951171875, 3500.369873046875, 3278.92333984375, 3161.887451171875, 0.7, -1.1, 2e-39, 0.1]
    cdef float[2][8] results
    cdef char *data[3]
    cdef Py_ssize_t items = 8
    cdef Py_ssize_t[3] strides = [sizeof(float), sizeof(float), sizeof(float)]

    data[0], data[1], data[2] = <char *> p, <char *> q, <char *> results[0]
    numpys.loop(numpys.context, data, &items, strides, numpys.auxdata)
    data[2] = <char *> results[1]
    own(numpys.context, data, &items, strides, numpys.auxdata)
    PyUFunc_clearfperr()    # clear the flags of items below the smallest normal number
    return memcmp(results[0], results[1], sizeof(results[0])) == 0


cdef bint _clears_errors(UfuncLoop found) noexcept:
    """Whether a loop clears earlier errors, like loops that compare NaN."""
    cdef double[4][8] items     # each fits a number of any dtype
    cdef char *data[4]
    cdef Py_ssize_t one = 1
    cdef Py_ssize_t[4] strides
    cdef bint cleared
    cdef int k

    memset(items, 0, sizeof(items))
    for k in range(4):
        data[k], strides[k] = <char *> items[k], sizeof(items[0])
    PyUFunc_clearfperr()
    raise_errors(FE_INVALID)
    found.loop.function(found.loop.context, data, &one, strides, found.loop.auxdata)
    cleared = not has_errors(FE_INVALID)
    PyUFunc_clearfperr()
    return cleared


cdef BoundLoop where_loop(Py_ssize_t size) noexcept:
    """The loop of `where`, which chooses items of a size, in bytes."""
    cdef BoundLoop loop
    loop.function, loop.context, loop.auxdata = select_loop(target_number), NULL, <void *> size
    return loop


# Conversions, with the bits and the floating-point errors of NumPy's
#
# Neither C nor NumPy defines the conversion of numbers that do not fit the other dtype: results are compared with
# NumPy's, once.


bfloat16 = -9
cdef dict compared = {}     # whether items are converted as by NumPy
cdef enum: PROBES_IN_ROW = 70      # more items than any vector, and some extra
# On both sides of the limits of dtypes, and of halves.
cdef list PROBES = [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 1.0009765625, 1e-3, -7e-5, 6e-8, 2.9e-8, 1e-40, -1e-300]
for _size in (7, 8, 15, 16, 31, 32, 63, 64):
    for _more in (-1.0, -0.75, 0.0, 0.75, 2.0):
        PROBES += [2.0 ** _size + _more, -(2.0 ** _size) - _more]
PROBES += [65504.0, 65519.0, 65520.0, -65536.5, 3.4e38, 1e39, -1e300, float("inf"), -float("inf"), float("nan")]


cdef int learn(cnp.dtype dtype) except -1:
    """Record the number of a dtype if it is the bfloat16 of ml_dtypes, unless that is known."""
    global bfloat16
    if bfloat16 < 0 and dtype.type_num >= OF_PACKAGES and dtype.itemsize == 2:
        kind = (<object> dtype).type
        if kind.__module__ == "ml_dtypes" and kind.__name__ == "bfloat16":
            bfloat16 = dtype.type_num
    return 0


cdef bint are_same(cnp.dtype given, cnp.dtype dtype) noexcept:
    """Whether items have the same dtype, apart from the byte order."""
    cdef int a = given.type_num, b = dtype.type_num
    return a == b or cnp.PyArray_EquivTypenums(a, b)


cdef bint find_cast(cnp.dtype given, cnp.dtype dtype, Cast *cast) except -1:
    """Find the conversion from one dtype to another, NULL if they are the same; return whether there is one.

    It loses nothing, so all conversions agree.
    """
    if are_same(given, dtype):
        cast[0] = NULL
        return True
    cast[0] = cast_of(target_number, given.type_num, dtype.type_num, bfloat16, True)
    return cast[0] != NULL


cdef Cast numpys_cast(cnp.dtype given, cnp.dtype dtype) except? NULL:
    """The conversion that gives NumPy's items; NULL if none here surely does."""
    cdef Cast cast
    learn(given)
    learn(dtype)
    cast = cast_of(target_number, given.type_num, dtype.type_num, bfloat16, True)
    if cast != NULL:
        return cast
    cast = cast_of(target_number, given.type_num, dtype.type_num, bfloat16, False)
    pair = given.type_num, dtype.type_num
    if cast != NULL and pair not in compared:
        compared[pair] = _is_numpys(cast, given, dtype)
    return cast if cast != NULL and compared[pair] else NULL


cdef Cast saturating_cast(cnp.dtype given, cnp.dtype dtype) noexcept:
    """The conversion of casting 'saturate'; NULL if there is none."""
    return saturating_cast_of(target_number, given.type_num, dtype.type_num, bfloat16)


cdef void swap_bytes(Py_ssize_t n, int size, void *items) noexcept nogil:
    """Reverse the bytes of n units of 2, 4 or 8 bytes."""
    bcast_swap_bytes(target_number, n, size, items)


cdef Cast plain_bools_cast() noexcept:
    """The conversion of bools to bools whose bytes are 0 or 1."""
    return cast_of(target_number, cnp.NPY_BOOL, cnp.NPY_BOOL, bfloat16, True)


cdef uint8_t fused_cast(int given, int number, bint saturating) noexcept:
    """The number of a conversion between two dtypes in fused loops, or NOT_FUSED.

    Clearer whole: a table with a line for each conversion, which says which targets have it.
    """
    if given == cnp.NPY_UBYTE and number == cnp.NPY_FLOAT:
        return FROM_BYTES if fuses(target_number) else NOT_FUSED
    if given == cnp.NPY_FLOAT and number == cnp.NPY_FLOAT16:
        return TO_HALVES if fuses_halves(target_number) else NOT_FUSED
    if given == cnp.NPY_FLOAT and number == cnp.NPY_UBYTE and fuses_more(target_number):
        return TO_CUT_BYTES if saturating else TO_BYTES
    return NOT_FUSED


cdef void fuse(const Fusion *fusion) noexcept nogil:
    """Compute several functions of float32, one after the other."""
    bcast_fuse(target_number, fusion)


cdef void fold(const Folding *folding, Folded *onto) noexcept nogil:
    """Compute results from terms: functions one after the other, then a sum, an extreme, or a reduction of bools."""
    bcast_fold(target_number, folding, onto)


cdef void keep_positions(const PositionRows *rows) noexcept nogil:
    """Update the extreme of each column from some rows, and the number of its row."""
    bcast_keep_positions(target_number, rows)


cdef void find_position(const PositionRows *row, Folded *onto) noexcept nogil:
    """Update the extreme of a row, and its position."""
    bcast_find_position(target_number, row, onto)


cdef void take_roots(int size, Py_ssize_t n, void *items) noexcept nogil:
    """Replace floats by their square roots."""
    bcast_take_roots(target_number, size, n, items)


cpdef bint saturates(cnp.dtype given, cnp.dtype dtype) except -1:
    """Whether the casting 'saturate' rounds or clips real numbers of one dtype to integers of another."""
    learn(given)
    if not _is_whole_dtype(dtype) or cnp.PyTypeNum_ISUSERDEF(dtype.type_num) and dtype.itemsize > 1:
        return False    # a package's own limits are found by trying all bytes
    if _is_whole_dtype(given):
        return not PyArray_CanCastTypeTo(
            <cnp.PyArray_Descr *> given, <cnp.PyArray_Descr *> dtype, cnp.NPY_SAFE_CASTING
        )
    # Packages declare casts of their floats to their integers safe.
    return _holds_all_of(cnp.NPY_DOUBLE, given) if cnp.PyTypeNum_ISUSERDEF(given.type_num) else given.kind == c"f"


cdef bint _is_whole_dtype(cnp.dtype dtype) except -1:
    """Whether this is a dtype of integers, of NumPy or another package."""
    if cnp.PyTypeNum_ISUSERDEF(dtype.type_num):
        return _holds_all_of(cnp.NPY_INT64, dtype)
    return dtype.kind == c"i" or dtype.kind == c"u"


cdef bint _holds_all_of(int number, cnp.dtype dtype) except -1:
    """Whether a NumPy dtype has all numbers of another package's dtype."""
    cdef cnp.dtype wide = cnp.PyArray_DescrFromType(number)
    return PyArray_CanCastTypeTo(<cnp.PyArray_Descr *> dtype, <cnp.PyArray_Descr *> wide, cnp.NPY_SAFE_CASTING)


cpdef bint may_fail(cnp.ndarray data, cnp.dtype dtype) except -1:
    """Whether the conversion of some item may have an error: one has, or there is no conversion here."""
    cdef Cast cast = numpys_cast(<cnp.dtype> cnp.PyArray_DESCR(data), dtype)
    cdef cnp.ndarray items
    cdef const char *src
    cdef uint8_t[16 * 512] converted
    cdef Py_ssize_t left = cnp.PyArray_SIZE(data)

    if cast == NULL or cnp.PyArray_ISBYTESWAPPED(data):
        return True

    items = cnp.PyArray_GETCONTIGUOUS(data)
    src = <const char *> cnp.PyArray_DATA(items)
    PyUFunc_clearfperr()
    while left > 0:
        cast(min(left, <Py_ssize_t> 512), src, converted)
        src += 512 * cnp.PyArray_ITEMSIZE(items)
        left -= 512
    return PyUFunc_getfperr() != 0


cdef bint _is_numpys(Cast cast, cnp.dtype src, cnp.dtype dst) except -1:
    """Compare a conversion with NumPy's: of all probes together, then of each one, with floating-point errors.

    Each probe also fills a row, for vector code: compilers need not give it the errors of single items.
    """
    cdef cnp.ndarray items, expected, given, rows
    cdef list errors
    cdef Py_ssize_t i, count, size = dst.itemsize
    cdef bint same

    items, expected, errors = copy_context().run(_by_numpy, src, dst)   # nobody else sees its error state
    rows = np.repeat(items, PROBES_IN_ROW)
    given = np.zeros(max(len(items), PROBES_IN_ROW), dst)

    cast(cnp.PyArray_SIZE(items), cnp.PyArray_DATA(items), cnp.PyArray_DATA(given))
    same = memcmp(cnp.PyArray_DATA(given), cnp.PyArray_DATA(expected), cnp.PyArray_NBYTES(expected)) == 0
    for i in range(cnp.PyArray_SIZE(items)):
        for count in 1, PROBES_IN_ROW:
            PyUFunc_clearfperr()
            cast(count, <char *> cnp.PyArray_DATA(rows) + i * PROBES_IN_ROW * src.itemsize, cnp.PyArray_DATA(given))
            same = same and PyUFunc_getfperr() == errors[i] and memcmp(
                cnp.PyArray_DATA(given), <char *> cnp.PyArray_DATA(expected) + i * size, size,
            ) == 0
    return same


def _by_numpy(src, dst):
    """The probes as items of a dtype, NumPy's conversions of them, and the errors of each."""
    errors = []
    np.seterr(all="ignore")
    items = np.array(PROBES).astype(src)
    for i in range(len(items)):
        PyUFunc_clearfperr()
        items[i:i + 1].astype(dst)
        errors.append(PyUFunc_getfperr())
    return items, items.astype(dst), errors
