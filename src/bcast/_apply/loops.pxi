# Loops, which NumPy gives for a ufunc and the dtypes of its operands; each is asked for once, and kept.
#
# In: a ufunc, the numbers of dtypes, a casting. Out: a Found; without a loop, where a call is left to the ufunc.

cdef extern from "_apply/simd/half.h":      # which includes loops.h
    Loop half_loop "BCAST_HALF_LOOP_FOR"(int target, bint is_bfloat, int function)
    Loop hypot_loop "bcast_hypot_float_loop"(int target)
    Loop divide_loop "bcast_divide_loop"(int target)
    Loop select_loop "bcast_select_loop"(int target)
    ctypedef struct Numpys "bcast_numpys":
        Loop loop
        void *context
        void *auxdata
    RowLoop row_loop "bcast_row_loop_for"(int target, bint is_float, int size, int function)

cdef enum:
    LOOPS_KEPT = 1024       # about
    # Steps of fused loops that are none of the functions there:
    CLIP_FUSED = 250        # two functions
    TO_CUT_BYTES = 251      # a conversion with which a fused loop may end: saturated bytes,
    TO_BYTES = 252          # bytes as C converts to them,
    TO_HALVES = 253         # float16
    FROM_BYTES = 254        # and one with which it may begin
    NOT_FUSED = 255
    # What stands for the dtype of a Python scalar:
    AN_INT = -1
    A_FLOAT = -2
    A_COMPLEX = -3
    NONE = -4               # no dtype given, or no second operand
    OTHER = -5              # an operand that is left to NumPy

ctypedef struct CallInfo:   # what is in a capsule of NumPy's, at its beginning
    Loop loop
    void **context          # caller, method, and where the descriptors are
    void *auxdata
    cnp.npy_bool needs_gil, no_errors


@cython.final
@cython.auto_pickle(False)
cdef class Found:
    """The loop of a ufunc for two dtypes; or that there is none to be used."""

    cdef object ufunc, capsule
    cdef tuple dtypes
    cdef long long code
    cdef Loop loop          # NULL if there is none
    cdef void *auxdata
    cdef Numpys numpys      # loop, where it serves one of our own
    cdef void *context[32]  # more than any loop has
    cdef Cast[4] casts      # of the operands to the dtypes of the loop; NULL for the result
    cdef bint errors        # whether floating-point errors are looked for,
    cdef bint shared        # the loop may run on any thread,
    cdef int weight         # how long an item takes, in times of a sum of that size
    cdef bint uneven        # what it computes depends on steps: on whether they are 0, and on their signs
    cdef bint inexact       # the last bits of what it computes for one operand may depend on the sign of its step
    cdef int tells          # bits of the operands, whether floats are converted, which may be in error;
    cdef bint clears_errors     # if so, whether the loop clears what errors there were before
    cdef bint side_by_side
    cdef bint compares_bytes    # of bools, if one stands for all: two that hold may differ then
    cdef int slow_with_stride_0     # bits of operands, and of the output, where it is slow
    cdef RowLoop row_loop   # of arithmetic on operands of one dtype; NULL where there is none
    cdef uint8_t fused      # its number in a fused loop of float32, or NOT_FUSED


cdef PyObject *table[LOOPS_KEPT]
cdef int n_found = 0
cdef object lock = object()
# NumPy's ufuncs by name. Those that have loops for float16 and bfloat16 here, in the order in half.h; the first six
# are those in fused.h:
cdef list HALVES = (
    "add subtract multiply divide maximum minimum equal not_equal less less_equal greater greater_equal"
).split()
cdef list SLOW_ONES = (
    "floor_divide remainder fmod hypot arctan2 nextafter logaddexp logaddexp2 power float_power gcd lcm"
).split()
cdef set SAFE = set(HALVES + SLOW_ONES + (      # whose loops may run on any thread, for numbers
    "fmax fmin logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor left_shift right_shift copysign "
    "heaviside clip"
).split())
# Functions of one operand, for the steps of chains: what they give does not depend on an item's place.
cdef set UNARY = set((
    "negative positive absolute fabs sign sqrt square reciprocal rint floor ceil trunc conjugate logical_not invert "
    "isnan isinf isfinite signbit exp exp2 expm1 log log2 log10 log1p tanh cbrt"
).split())
cdef set INEXACT = set("exp exp2 expm1 log log2 log10 log1p tanh cbrt".split())
cdef list OF_BOOLS = "add multiply logical_and logical_or bitwise_and bitwise_or".split()
cdef list OF_BYTES = HALVES[6:] + ["logical_xor", "bitwise_xor"]
# That of three operands, a number and its bounds, which NumPy's function `clip` calls; None where NumPy has none.
cdef object CLIP_UFUNC = getattr(np._core.umath, "clip", None)
cdef tuple STAND_INS = (complex, float, int)        # for A_COMPLEX, A_FLOAT, AN_INT
cdef bytes CAPSULE = b"numpy_1.24_ufunc_call_info"


def probe(name=b"numpy_1.24_ufunc_call_info"):
    """Forget all loops, for tests, and ask NumPy anew, in capsules of that name; tell whether it gives one."""
    global CAPSULE, n_found
    with cython.critical_section(lock):
        CAPSULE = name
        memset(table, 0, sizeof(table))     # what it had stays: somebody may be using it
        n_found = 0
    return _find(np.add, cnp.NPY_FLOAT, cnp.NPY_FLOAT, NONE, 4) is not None


cdef bint _agrees_with(Loop own, const CallInfo *info) noexcept:
    """Whether our loop for `hypot` of float32 gives NumPy's bits; some libraries round four of these otherwise."""
    cdef float[8] p = [16762473, 12252589, 10751338, 9997532, 0.3, 1, 7e-39, 3]
    cdef float[8] q = [4094.199951171875, 3500.369873046875, 3278.92333984375, 3161.887451171875, 0.7, -1.1, 2e-39, 0.1]
    cdef float[2][8] r
    cdef char *data[3]
    cdef Py_ssize_t n = 8
    cdef Py_ssize_t[3] steps = [sizeof(float), sizeof(float), sizeof(float)]
    data[0], data[1], data[2] = <char *> p, <char *> q, <char *> r[0]
    info.loop(info.context, data, &n, steps, info.auxdata)
    data[2] = <char *> r[1]
    own(info.context, data, &n, steps, info.auxdata)
    PyUFunc_clearfperr()    # items below the least normal number
    return memcmp(r[0], r[1], sizeof(r[0])) == 0


cdef Found _find(function, int a, int b, int dtype, int casting):
    """The loop of a ufunc for the dtypes of two operands, the one wanted for the result, and a casting; or None.

    `clip` has a third operand, whose dtype is given in place of that for the result.
    """
    global n_found
    if a == OTHER or b == OTHER or dtype == OTHER or not 2 <= casting <= 4:
        return None
    cdef long long code = (((<long long> (a + 8) << 12 | (b + 8)) << 12 | (dtype + 8)) << 3) | casting
    cdef size_t at = (<size_t> <PyObject *> function >> 4) * 31 + <size_t> (code * 40503 >> 9)
    cdef PyObject *kept
    while True:
        at &= LOOPS_KEPT - 1
        kept = table[at]
        if kept == NULL:
            break
        if (<Found> kept).code == code and (<Found> kept).ufunc is function:
            return <Found> kept if (<Found> kept).loop != NULL else None
        at += 1
    if n_found > LOOPS_KEPT // 2:
        return None
    cdef Found found = _resolved(function, a, b, dtype, casting, code)
    with cython.critical_section(lock):
        while table[at & (LOOPS_KEPT - 1)] != NULL:      # another thread may have been here
            at += 1
        Py_INCREF(found)    # it stays
        table[at & (LOOPS_KEPT - 1)] = <PyObject *> found
        n_found += 1
    return found if found.loop != NULL else None


cdef Found _resolved(function, int a, int b, int dtype, int casting, long long code):
    """Ask NumPy for a loop."""
    cdef Found found = Found.__new__(Found)
    cdef UFunc *c_function = <UFunc *> function
    cdef CallInfo *info
    cdef Loop own = NULL
    cdef int k, given_operands = 1 if b == NONE else 2
    cdef list operands = []
    cdef str name = function.__name__
    if function is CLIP_UFUNC:
        given_operands = 3
    elif getattr(np, name, None) is not function:
        name = ""       # of another package's
    found.ufunc, found.code = function, code
    if c_function.nin != given_operands or c_function.nout != 1 or c_function.core_enabled:
        return found
    if b == NONE and (name not in UNARY or a == cnp.NPY_FLOAT16 and name != "rint" or a == bfloat16):
        return found
    for given in (a, b, dtype)[:given_operands]:
        operands.append(STAND_INS[given] if given < 0 else cnp.PyArray_DescrFromType(given))
    operands.append(None)
    kwargs = {"casting": ("no", "equiv", "safe", "same_kind", "unsafe")[casting]}
    if dtype != NONE and given_operands < 3:
        kwargs["signature"] = (None, None, cnp.PyArray_DescrFromType(dtype))
    try:
        dtypes, capsule = function._resolve_dtypes_and_context(tuple(operands), **kwargs)
        function._get_strided_loop(capsule)
        info = <CallInfo *> PyCapsule_GetPointer(capsule, CAPSULE)
    except (TypeError, ValueError, AttributeError):     # which the ufunc will raise, or a new NumPy
        return found
    if info.loop == NULL or info.context == NULL:
        return found
    number, kind = (<cnp.dtype> dtypes[0]).type_num, dtypes[0].kind
    if name in HALVES:
        if number == (<cnp.dtype> dtypes[1]).type_num and (number == cnp.NPY_FLOAT16 or number == bfloat16):
            own = half_loop(target_number, number == bfloat16, HALVES.index(name))
    elif name == "hypot" and number == cnp.NPY_FLOAT and _agrees_with(hypot_loop(target_number), info):
        own = hypot_loop(target_number)
    elif name in ("floor_divide", "remainder") and kind == "i" and dtypes[0].itemsize == 8:
        own = divide_loop(target_number)
    if info.needs_gil and own == NULL:
        return found
    if name == "power" and kind == "i" or name in ("fmax", "fmin") and kind == "f":
        return found        # negative powers raise; which zero is the result depends on where an item is in a row
    for k in range(c_function.nin + 1):
        if _eligible((<cnp.dtype> dtypes[k]).type_num) == OTHER or not dtypes[k].isnative:
            return found
        given = operands[k] if k < c_function.nin else dtypes[k]
        if isinstance(given, cnp.dtype) and not (
            _find_cast(given, dtypes[k], &found.casts[k]) and np.can_cast(given, dtypes[k], "safe")
        ):
            return found
        if k < c_function.nin and found.casts[k] != NULL:
            found.tells |= (cnp.NPY_FLOAT <= (<cnp.dtype> given).type_num <= cnp.NPY_CLONGDOUBLE) << k
    found.shared = name in SAFE or b == NONE
    found.weight = 1 if own == NULL else SLOW_WEIGHT // 2
    if name in SLOW_ONES or not found.shared:
        found.weight = SLOW_WEIGHT
    found.uneven = name in ("power", "float_power", "arctan2") or (name in ("multiply", "square") and kind == "c")
    found.inexact = b == NONE and (name in INEXACT or kind == "c")
    found.errors = not info.no_errors
    found.dtypes, found.capsule = dtypes, capsule
    found.numpys = Numpys(info.loop, <void *> found.context, info.auxdata)
    found.auxdata = info.auxdata if own == NULL else <void *> &found.numpys if name == "floor_divide" else NULL
    memcpy(found.context, info.context, 3 * sizeof(void *))    # the rest may not be initialised, and is 0 here
    found.loop = info.loop if own == NULL else own
    # NumPy divides integers by one divisor in vector code, where they lie side by side:
    found.side_by_side = own != NULL or name == "floor_divide" and kind in "iu"
    found.fused = NOT_FUSED
    if name in HALVES[:6] and (<cnp.dtype> dtypes[1]).type_num == number and kind in "iuf":
        found.row_loop = row_loop(target_number, kind == "f", dtypes[0].itemsize, HALVES.index(name))
        if FUSES and number == cnp.NPY_FLOAT and (name in HALVES[:4] or fuses_more(target_number)):
            found.fused = HALVES.index(name)
    elif number == cnp.NPY_FLOAT and fuses_more(target_number):
        if name == "rint":
            found.fused = FUSED_RINT
        elif name == "clip":
            found.fused = CLIP_FUSED
    found.compares_bytes = kind == "b" and name in OF_BYTES
    # The vector code of these needs steps that are not 0:
    if own == NULL and (
        name in ("maximum", "minimum", "fmax", "fmin") or kind == "b" and name in OF_BOOLS
        or dtypes[0].itemsize == 1 and name in ("left_shift", "right_shift")
    ):
        found.slow_with_stride_0 = 3
    elif name == "power":
        found.slow_with_stride_0 = 1    # one exponent for all has faster code
    found.clears_errors = found.tells and _clears_errors(found, c_function.nin + 1)
    return found


cdef bint _clears_errors(Found found, int n) noexcept:
    """Whether a loop clears the errors that there were before, as those do that compare NaN."""
    cdef double[4][8] items     # each has room for a number of any dtype
    cdef char *data[4]
    cdef Py_ssize_t one = 1
    cdef Py_ssize_t[4] steps
    cdef bint cleared
    cdef int k
    memset(items, 0, sizeof(items))
    for k in range(n):
        data[k], steps[k] = <char *> items[k], sizeof(items[0])
    PyUFunc_clearfperr()
    raise_errors(FE_INVALID)
    found.loop(<void *> found.context, data, &one, steps, found.auxdata)
    cleared = not has_errors(FE_INVALID)
    PyUFunc_clearfperr()
    return cleared


cdef inline int _eligible(int number) noexcept:
    return number if 0 <= number <= cnp.NPY_CLONGDOUBLE or number == cnp.NPY_FLOAT16 or number == bfloat16 else OTHER


cdef inline int _number_of(operand) except? -99:
    """The number of an operand's dtype, or what stands for it."""
    cdef object kind = type(operand)
    if cnp.PyArray_CheckExact(operand):
        if cnp.PyArray_TYPE(<cnp.ndarray> operand) >= 256:
            learn(<cnp.dtype> cnp.PyArray_DESCR(<cnp.ndarray> operand))
        return _eligible(cnp.PyArray_TYPE(<cnp.ndarray> operand))
    if kind is int or kind is float:
        return AN_INT if kind is int else A_FLOAT
    return A_COMPLEX if kind is complex else cnp.NPY_BOOL if kind is bool else OTHER
