# cython: cdivision=True, boundscheck=False, wraparound=False
"""`apply`, `run_steps`, `choose`: ufuncs, chains of them and `where`, in blocks that fit a first-level cache, on
threads.

In: ufuncs, operands and the user's options, which the front end has checked. Out: the result; or None if the result may
differ from NumPy's, so that the caller leaves the call to NumPy. This module describes a computation as a `Call`:
`_apply/ufuncs.pyx` finds loops and conversions, and `operands.pyx` finds the layouts of operands. `plan.pyx` divides
the result into blocks, and `run.pyx` computes them.
"""

cimport cython
cimport numpy as cnp
from cpython.object cimport Py_TPFLAGS_HEAPTYPE, PyObject, PyTypeObject
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memset

from pkgutil import resolve_name

import numpy as np

from bcast._apply.operands cimport (
    BY_NUMPY, MAX_STEPS, PDPD, Call, Operand, Rule, Step, accept_out, align_operands, are_equal, describe, has_items,
    has_sure_strides, is_reshaped, make_bools_plain, map_operand, new_result, rank_of, rule_of_mode, runs_backwards,
)
from bcast._apply.plan cimport FoldPlan, find_fused, pair_axes, plan_folds
from bcast._apply.run cimport run_call, run_folds, run_noting, share_bytes
from bcast._apply.ufuncs cimport (
    A_COMPLEX, AN_INT, CLIP_UFUNC, FOLD_ALL, FOLD_ANY, FOLD_COUNT, FOLD_GREATEST, FOLD_LEAST, FOLD_SUM,
    FOLDED_ABSOLUTE, FOLDED_ADD, FOLDED_DIVIDE, FOLDED_EQUAL, FOLDED_GREATER, FOLDED_GREATER_EQUAL, FOLDED_LESS,
    FOLDED_LESS_EQUAL, FOLDED_MULTIPLY, FOLDED_NOT_EQUAL, FOLDED_SQUARE, FOLDED_SUBTRACT, NONE, NOT_FUSED, OTHER,
    TO_HALVES, Cast, Folding, UfuncLoop, are_same, eligible, find_cast, find_loop, fused_cast, learn, number_of,
    numpys_cast, saturates, saturating_cast, where_loop,
)
from bcast._nest.core cimport MAX_OPERANDS
from bcast._rules.alignment cimport merge
from bcast._runtime.arrays cimport MAX_AXES, are_alike, shape_of, stretched
from bcast._runtime.core cimport count_threads
from bcast._runtime.tuning cimport (
    FEW_BOUNDS,
    PATCHED_ITEMS, PATCHED_WAKING_TIMES,
)
from bcast._runtime.vectorcall cimport PyVectorcall_NARGS, Vectorcall, take_vectorcalls

cdef extern from "numpy/arrayobject.h":
    bint PyArray_CanCastTypeTo(cnp.PyArray_Descr *src, cnp.PyArray_Descr *dst, int casting)
    object PyArray_FromScalar(object scalar, cnp.PyArray_Descr *dtype)

cdef extern from "numpy/ufuncobject.h":
    ctypedef struct UFunc "PyUFuncObject":
        int nin, core_enabled
        const char *name
    int PyUFunc_GiveFloatingpointErrors(const char *name, int flags) except -1

cdef extern from "Python.h":
    bint PyType_HasFeature(object kind, unsigned long feature)

cdef extern from "_apply/gate.h":
    enum:
        REASONS "BCAST_REASONS"
        DTYPE "BCAST_DTYPE"
        ARGUMENT "BCAST_ARGUMENT"
        SMALL "BCAST_SMALL"
    ctypedef struct Gate "bcast_gate":
        PyObject *ufunc
        int operands, cost
        long long passed_early, taken, items
        long long passed[REASONS]
        double seconds_taken, seconds_passed
    object (*take_calls "bcast_take")(Gate *, PyObject *, PyObject *, PyObject *, int, int *)
    bint takes_ellipsis "bcast_takes_ellipsis"
    Gate *gate_of "bcast_gate_of"(object ufunc)
    bint is_open "bcast_is_open"(const Gate *gate)
    void open_at "bcast_open_gate"(
        object ufunc, int operands, int cost, Py_ssize_t bytes_for_threads, bint out_by_name
    )
    void time_all "bcast_time_gates"(bint wanted)
    void close_at "bcast_close_gate"(object ufunc)
    object call_past_gate "bcast_call_past_gate"(object function, PyObject **args, size_t n, PyObject *names)

cnp.import_array()
cnp.import_ufunc()

cdef object UFUNC = np.ufunc
cdef object CLIP = np.clip, ROUND = np.round, AROUND = np.around    # even if they are replaced
cdef tuple PREDICATES = ("isnan", "isinf", "isfinite", "signbit")
cdef tuple ONLY_OUT = ("out",), ONLY_WHERE = ("where",), OUT_AND_WHERE = ("out", "where")
cdef Rule NUMPYS_RULE = Rule(mode=BY_NUMPY, axis=-1)
cdef enum:
    MOST_DECIMALS = 22      # the most decimals of `round` whose power of ten is exact in float64
    STEPS_OF_UFUNC = 5      # the most steps of a ufunc: itself, two conversions before it, and two of the result
    SATURATE = 5            # a casting of bcast's own, after NumPy's numbers for castings
    MOST_GIVEN = 9          # the most arguments of a function with a ufunc's name, including the ufunc
    HAS_NAN = 1             # flags for bounds
    HAS_ZERO = 2


# One function


cpdef compute(function, a, b, out):
    """Apply a function under NumPy's rule, here or by calling it; NotImplemented if that needs more checks."""
    if type(function) is not UFUNC or (<UFunc *> function).nin != 2 or (<UFunc *> function).core_enabled:
        return NotImplemented
    if not _is_plain(a) or not _is_plain(b):
        return NotImplemented
    result = _compute_here(function, a, b, out)
    return _computed_by_numpy(function, a, b, out) if result is None else result


cdef inline _compute_here(function, a, b, out):
    """Apply a binary ufunc to arrays and numbers under NumPy's rule; None to leave it to NumPy, or to an error."""
    cdef UfuncLoop found = None
    cdef int number = number_of(a)
    if number != OTHER:
        found = find_loop(function, number, number_of(b), NONE, cnp.NPY_SAME_KIND_CASTING)
    if found is None:
        return None
    return _apply_loop(found, a, b, &NUMPYS_RULE, out, cnp.NPY_SAME_KIND_CASTING)


cdef inline bint _is_plain(operand) noexcept:
    return cnp.PyArray_Check(operand) or type(operand) is float or type(operand) is int


cpdef apply(cnp.ufunc function, a, b, int rule, axis, out, dtype, int casting):
    """Apply a binary ufunc to arrays or scalars that fit under a rule; None to leave the call to NumPy, or to an error.

    `rule` is 0, 1, 2 or 3 for modes 'numpy', 'none', 'unidirectional' and 'pdpd'; in the last one `b` begins at `axis`
    of `a`, or for -1 ends with it. `dtype` is the wanted dtype of the result, or None; `casting` is NumPy's number for
    a casting, from 0 for 'no' to 4 for 'unsafe'. The user's arguments come one by one.
    """
    cdef Rule by = rule_of_mode(rule, axis)
    cdef int wanted = NONE
    if dtype is not None:
        wanted = eligible((<cnp.dtype?> dtype).type_num) if dtype.isnative else OTHER
    found = find_loop(function, number_of(a), number_of(b), wanted, casting)
    return None if found is None else _apply_loop(found, a, b, &by, out, casting)


cdef _apply_loop(UfuncLoop found, a, b, const Rule *rule, out, int casting):
    """Apply a ufunc whose loop is known; None to leave the call to NumPy, or to an error."""
    cdef Call call
    cdef int errors
    if not align_operands(&call, a, b, rule) or not has_items(&call):
        return None
    _take_loop(&call, found)
    if not _describe_pair(&call, found, a, b):
        return None
    call.reshaped = is_reshaped(&call, 1) << 1 if rule.mode == PDPD else 0
    if found.compares_bytes:
        call.compared_bools = 3
        make_bools_plain(&call)

    out = _result(&call, out, <cnp.dtype> found.dtypes[2], 2, casting)
    if out is None:
        return None
    if found.bits_by_strides and not has_sure_strides(&call, not found.bits_by_repetition):
        return None

    errors = run_call(&call) if not call.noted else _run_with_conversions(&call, found)
    if errors:
        PyUFunc_GiveFloatingpointErrors((<UFunc *> found.ufunc).name, errors)
    return out


cdef inline void _take_loop(Call *call, UfuncLoop found) noexcept:
    """Describe a call of the loop of a binary ufunc."""
    call.nest.n = 3
    call.loop, call.row_loop, call.step_count = found.loop, found.row_loop, 0
    call.thread_safe, call.cost, call.reports_errors = found.thread_safe, found.cost, found.reports_errors
    call.side_by_side, call.slow_with_stride_0 = found.side_by_side, found.slow_with_stride_0
    call.noted = found.noted


cdef inline bint _describe_pair(Call *call, UfuncLoop found, a, b) except -1:
    """Describe both operands of a loop; return whether it can read them."""
    if not describe(call, 0, a, <cnp.dtype> found.dtypes[0], found.casts[0]):
        return False
    return describe(call, 1, b, <cnp.dtype> found.dtypes[1], found.casts[1])


cdef inline _result(Call *call, out, cnp.dtype dtype, int n, int casting):
    """The array for the result: the user's, or a new one with the axis order of the first `n` operands.

    None if blocks of the result cannot be written to the user's array.
    """
    if out is None:
        return new_result(call, dtype, n)
    return out if accept_out(call, out, dtype, casting) else None


cdef int _run_with_conversions(Call *call, UfuncLoop found) except -1:
    """Compute the result, and report the errors of both operands' conversions that NumPy reports separately.

    Return the errors of the loop, including those of conversions that NumPy reports with them.
    """
    cdef int[4] errors      # errors of the loop, and of the conversions of three operands
    cdef int own
    memset(errors, 0, sizeof(errors))
    call.reports_errors = True
    run_noting(call, errors)
    own = errors[0]
    if errors[1] | errors[2]:
        own |= _report_conversions(call, errors + 1, found.clears_errors)
    return own if found.reports_errors else 0


# Functions of one operand


cpdef compute_one(function, x, out):
    """Apply a ufunc of one operand, here or by calling it; an `out` is an array of the operand's shape."""
    cdef PyObject *args[2]
    if cnp.PyArray_CheckExact(x):
        if _gains(<cnp.ndarray> x):
            result = apply_to_one(function, x, out)
            if result is not None:
                return result
        if _is_bool(x):
            x, = with_plain_bools((x,))
    args[0], args[1] = <PyObject *> x, <PyObject *> out
    if out is None or not _may_be_miswritten(function, x, out):
        return call_past_gate(function, args, 1 if out is None else 2, NULL)
    result = call_past_gate(function, args, 1, NULL)
    np.copyto(out, result)
    return out


cdef bint _may_be_miswritten(function, x, out) except -1:
    """Whether NumPy's AVX2 loops may write wrong items: NumPy 2.4's predicates of floats, into bools with gaps."""
    if not _is_bool(out) or not cnp.PyArray_ISWRITEABLE(<cnp.ndarray> out) or function.__name__ not in PREDICATES:
        return False
    if not cnp.PyArray_CheckExact(x) or cnp.PyArray_NDIM(<cnp.ndarray> x) != cnp.PyArray_NDIM(<cnp.ndarray> out):
        return True
    if cnp.PyArray_IS_C_CONTIGUOUS(<cnp.ndarray> x) and cnp.PyArray_IS_C_CONTIGUOUS(<cnp.ndarray> out):
        return False
    return not (cnp.PyArray_IS_F_CONTIGUOUS(<cnp.ndarray> x) and cnp.PyArray_IS_F_CONTIGUOUS(<cnp.ndarray> out))


cdef inline bint _gains(cnp.ndarray x) noexcept:
    """Whether NumPy's own call is slower: this is so for rows of few items, and if threads help."""
    if cnp.PyArray_NBYTES(x) >= 2 * share_bytes:
        return True
    if cnp.PyArray_NDIM(x) < 2 or cnp.PyArray_IS_C_CONTIGUOUS(x) or cnp.PyArray_IS_F_CONTIGUOUS(x):
        return False
    return cnp.PyArray_SIZE(x) >= PATCHED_ITEMS


cpdef apply_to_one(function, x, out):
    """Apply a ufunc of one operand to an array; None to leave the call to NumPy, or to an error.

    A new result has the axis order of the operand.
    """
    cdef Call call
    cdef int steps, i
    if not _begin_chain(&call, x, (function,), &NUMPYS_RULE) or not _add_ufunc(&call, (function,), &NUMPYS_RULE):
        return None
    call.nest.n += 1
    if not has_items(&call):
        return None
    steps = call.step_count
    if out is not None and not _add_cast_to(&call, out, cnp.NPY_SAME_KIND_CASTING):
        return None
    if call.step_count > steps and call.steps[steps - 1].clears_errors:
        return None     # the errors depend on the size of NumPy's buffers
    for i in range(steps, call.step_count):
        call.steps[i].is_to_out = True
    return _run_chain(&call, out, 1)


# Ufuncs while NumPy is patched


cdef int open_gate(cnp.ufunc function, int cost) except -1:
    """Route all calls of a NumPy ufunc through its gate."""
    open_at(
        function, (<UFunc *> function).nin, cost, 2 * share_bytes // cost,
        function is np.maximum or function is np.minimum,
    )
    return 0


cdef int close_gate(cnp.ufunc function) except -1:
    """Return all calls of a ufunc to NumPy."""
    close_at(function)
    return 0


cdef bint has_gate(cnp.ufunc function) except -1:
    """Whether calls of a ufunc go through its gate."""
    cdef const Gate *gate = gate_of(function)
    return gate.ufunc != NULL and is_open(gate)


cdef int time_gates(bint wanted) except -1:
    """Start or stop timing calls."""
    time_all(wanted)
    return 0


cdef tuple counts_at_gate(cnp.ufunc function):
    """The taken calls, the items of their results, the passed calls by reason, and the seconds of both kinds."""
    cdef const Gate *gate = gate_of(function)
    cdef list passed = []
    cdef int why
    for why in range(REASONS):
        passed.append(gate.passed[why] + (gate.passed_early if why == SMALL else 0))
    return gate.taken, gate.items, tuple(passed), gate.seconds_taken, gate.seconds_passed


cdef object _take(Gate *gate, PyObject *first, PyObject *second, PyObject *result, int by_threads, int *why):
    """Compute a call with NumPy's result; return NotImplemented and set the reason to leave it to NumPy.

    One operand is an array. The other one, if any, is an array or a number. `result` is an array of the base class, or
    NULL.
    """
    cdef object a = _as_operand(<object> first), b = _as_operand(<object> second)
    cdef object out = None if result == NULL else <object> result
    if by_threads and not _gains_by_threads(gate, a, b):
        why[0] = SMALL
        return NotImplemented
    if gate.operands == 1:
        found = _taken_of_one(<object> gate.ufunc, a, out, why)
    else:
        found = _taken_of_two(<object> gate.ufunc, a, b, out, why)
    if found is None:
        return NotImplemented
    gate.taken += 1
    gate.items += cnp.PyArray_SIZE(<cnp.ndarray> found)
    return found


take_calls = _take


cdef inline _as_operand(operand):
    """Convert NumPy's scalars to arrays without axes, which give equal results."""
    return PyArray_FromScalar(operand, NULL) if _is_numpys_scalar(operand) else operand


cdef inline bint _gains_by_threads(const Gate *gate, a, b) noexcept:
    """Whether other threads may share the work, and this pays."""
    cdef Py_ssize_t size = max(_size_of(a), _size_of(b)) * gate.cost
    return count_threads(size, share_bytes, PATCHED_WAKING_TIMES, size) > 1


cdef inline Py_ssize_t _size_of(operand) noexcept:
    return cnp.PyArray_NBYTES(<cnp.ndarray> operand) if cnp.PyArray_CheckExact(operand) else 0


cdef _taken_of_two(function, a, b, out, int *why):
    """Apply a ufunc to two operands; None, with the reason in `why`, to leave the call to NumPy."""
    found = find_loop(function, number_of(a), number_of(b), NONE, cnp.NPY_SAME_KIND_CASTING)
    if found is None:
        why[0] = DTYPE
        return None
    why[0] = ARGUMENT
    return _apply_loop(found, a, b, &NUMPYS_RULE, out, cnp.NPY_SAME_KIND_CASTING)


cdef _taken_of_one(function, data, out, int *why):
    """Apply a ufunc to one operand; None, with the reason in `why`, to leave the call to NumPy."""
    why[0] = DTYPE
    return apply_to_one(function, data, out)


cdef bint _takes_ellipsis() except -1:
    try:
        return np.add(1, 1, out=...) is not None
    except TypeError:
        return False


takes_ellipsis = _takes_ellipsis()


# `where`


cpdef choose(condition, x, y, out):
    """Choose items of `x` where a condition holds, and of `y` elsewhere; None to leave the call to NumPy, or to an
    error.

    The condition is an array of bools, or of real numbers, which hold where they are not 0. `out` has the dtype that
    NumPy finds for `x` and `y`, or is None.
    """
    cdef Call call
    cdef cnp.dtype common = _common_dtype(x, y)
    if common is None or number_of(condition) < 0 or not cnp.PyArray_CheckExact(condition):
        return None
    call.nest.rank = max(rank_of(condition), rank_of(x), rank_of(y))
    if not (
        _describe_choice(&call, 0, condition, cnp.PyArray_DescrFromType(cnp.NPY_BOOL))
        and _describe_choice(&call, 1, x, common) and _describe_choice(&call, 2, y, common)
    ):
        return None
    if not has_items(&call):
        return None

    _take_choice(&call, common.itemsize)
    out = _result(&call, out, common, 3, cnp.NPY_NO_CASTING)
    if out is None:
        return None
    if call.noted:
        _choose_with_conversions(&call)
    else:
        run_call(&call)
    return out


cdef bint _describe_choice(Call *call, int k, operand, cnp.dtype dtype) except -1:
    """Describe an operand of `where`, which is converted to a dtype; return whether that is possible."""
    cdef Cast cast = NULL
    if cnp.PyArray_CheckExact(operand) and not find_cast(
        <cnp.dtype> cnp.PyArray_DESCR(<cnp.ndarray> operand), dtype, &cast
    ):
        return False
    return map_operand(call, k, operand, &NUMPYS_RULE) and describe(call, k, operand, dtype, cast)


cdef void _take_choice(Call *call, Py_ssize_t size) noexcept:
    """Describe a call of the loop of `where`; NumPy reports no conversion errors for operands with axes."""
    cdef int k
    call.nest.n = 4
    call.loop, call.row_loop, call.step_count = where_loop(size), NULL, 0
    call.thread_safe, call.cost, call.reports_errors = True, 1, False
    call.side_by_side = size in (1, 2, 4, 8)        # vector code chooses these
    call.slow_with_stride_0 = call.reshaped = call.noted = 0
    for k in range(1, 3):
        if call.operands[k].cast != NULL and cnp.PyArray_NDIM(<cnp.ndarray> call.operands[k].array) == 0:
            call.noted |= 1 << k


cdef int _choose_with_conversions(Call *call) except -1:
    """Choose items, and report the errors of operands' conversions."""
    cdef int[5] errors      # errors of the choice, and of the conversions of four operands
    cdef int k
    memset(errors, 0, sizeof(errors))
    call.reports_errors = True
    run_noting(call, errors)
    for k in range(1, 3):
        if errors[1 + k]:
            PyUFunc_GiveFloatingpointErrors(b"cast", errors[1 + k])
    return 0


cdef cnp.dtype _common_dtype(x, y):
    """The common dtype of two operands under NumPy's rules; None if NumPy has to find it."""
    cdef cnp.dtype a, b
    if number_of(x) != OTHER and number_of(y) != OTHER:
        return np.result_type(x, y)
    if not cnp.PyArray_CheckExact(x) or not cnp.PyArray_CheckExact(y):
        return None
    a, b = <cnp.dtype> cnp.PyArray_DESCR(<cnp.ndarray> x), <cnp.dtype> cnp.PyArray_DESCR(<cnp.ndarray> y)
    if a.hasobject or a.itemsize == 0 or (<object> a).names is not None or not a.isnative:
        return None
    return a if are_alike(a, b) else None


# Chains


cpdef run_steps(data, tuple steps, int rule, axis, dtype, int casting, out):
    """Convert an array, and apply ufuncs one after the other; None to leave the call to others, or to an error.

    A step is a ufunc, or a tuple of a ufunc and its second operand; the operand fits the previous result under a rule,
    as in `apply`. A step may also be NumPy's `clip` with two bounds, or `round` with or without decimals. The array is
    first converted to `dtype`, unless that is None. `casting` is NumPy's number or SATURATE, and applies to this
    conversion and to `out`. A new result is C-contiguous. The user's arguments come one by one.
    """
    cdef Call call
    cdef Rule by = rule_of_mode(rule, axis)
    if casting == cnp.NPY_NO_CASTING:       # this forbids another byte order as well
        return None
    steps = _with_arrays(steps)
    if not _begin_chain(&call, data, steps, &by):
        return None
    if _keeps_order_of_bytes(&call, steps, dtype, out):
        return None
    if dtype is not None and not _add_cast(&call, dtype, casting):
        return None

    for step in steps:
        if not _add_step(&call, step, &by):
            return None
    call.slow_with_stride_0 |= call.cost == 1       # without loops, there are only conversions, which repeat nothing
    call.nest.n += 1
    if not has_items(&call):
        return None
    if out is not None and not _add_cast_to(&call, out, casting) or call.step_count == 0:
        return None
    return _run_chain(&call, out)


cdef bint _begin_chain(Call *call, data, tuple steps, const Rule *rule) except -1:
    """Begin a chain, whose first operand is the data; return whether it is supported. Operands determine the rank."""
    cdef int k
    call.number = number_of(data)
    if not cnp.PyArray_CheckExact(data) or call.number == OTHER or len(steps) > MAX_OPERANDS - 2:
        return False
    call.nest.rank = rank_of(data)
    if rule.mode == BY_NUMPY:
        for step in steps:
            if type(step) is tuple:
                for k in range(1, len(<tuple> step)):
                    call.nest.rank = max(call.nest.rank, rank_of((<tuple> step)[k]))
    call.nest.n = 1
    map_operand(call, 0, data, &NUMPYS_RULE)

    call.row_loop, call.step_count = NULL, 0
    call.thread_safe, call.cost, call.reports_errors, call.side_by_side = True, 1, True, True
    call.slow_with_stride_0 = call.slow_unfused = call.compared_bools = call.noted = call.reshaped = 0
    call.in_place = False
    return describe(call, 0, data, <cnp.dtype> cnp.PyArray_DESCR(<cnp.ndarray> data), NULL)


cdef bint _keeps_order_of_bytes(const Call *call, tuple steps, dtype, out) except -1:
    """Whether NumPy returns a result in non-native byte order: for data without steps, or rounded data."""
    if not steps:
        return dtype is not None and out is None and not dtype.isnative
    if not call.operands[0].swapped and (dtype is None or dtype.isnative):
        return False
    function = (<tuple> steps[0])[0] if type(steps[0]) is tuple and steps[0] else steps[0]
    return function is ROUND or function is AROUND


cdef bint _add_cast_to(Call *call, out, int casting) except -1:
    """Add the conversion to the dtype of the user's array, if that differs; return whether this is possible."""
    if not cnp.PyArray_CheckExact(out):
        return False
    return _add_cast(call, <cnp.dtype> cnp.PyArray_DESCR(<cnp.ndarray> out), casting)


cdef _run_chain(Call *call, out, int ordered=0):
    """Run a chain whose steps are known; return the result, or None if it cannot be written to the user's array.

    A new result has the axis order of the first `ordered` operands.
    """
    cdef int[MAX_STEPS + MAX_OPERANDS] errors
    cdef cnp.dtype given = cnp.PyArray_DescrFromType(call.number)
    cdef int k

    if call.compared_bools:
        make_bools_plain(call)
    out = _result(call, out, given, ordered, cnp.NPY_EQUIV_CASTING)
    if out is None:
        return None

    if call.in_place:
        call.slow_with_stride_0 |= call.slow_unfused
    else:
        find_fused(call)    # blocks with errors are recomputed
    pair_axes(call)
    call.cost = max(1, call.cost // 2)
    memset(errors, 0, sizeof(errors))
    run_noting(call, errors)
    for k in range(call.step_count + (call.nest.n if call.noted else 0)):
        if errors[k]:
            _report_errors(call, errors)
            break
    return out


# Chains that fold several terms to each result


cdef dict ARITHMETIC = {
    np.add: FOLDED_ADD, np.subtract: FOLDED_SUBTRACT, np.multiply: FOLDED_MULTIPLY, np.divide: FOLDED_DIVIDE,
    np.square: FOLDED_SQUARE, np.absolute: FOLDED_ABSOLUTE, np.fabs: FOLDED_ABSOLUTE,
}
cdef dict COMPARISONS = {
    np.equal: FOLDED_EQUAL, np.not_equal: FOLDED_NOT_EQUAL, np.less: FOLDED_LESS, np.less_equal: FOLDED_LESS_EQUAL,
    np.greater: FOLDED_GREATER, np.greater_equal: FOLDED_GREATER_EQUAL,
}
cdef dict FOLDS_OF_NUMBERS = {"sum": FOLD_SUM, "mean": FOLD_SUM, "max": FOLD_GREATEST, "min": FOLD_LEAST}
cdef dict FOLDS_OF_TRUTHS = {"any": FOLD_ANY, "max": FOLD_ANY, "all": FOLD_ALL, "min": FOLD_ALL, "sum": FOLD_COUNT}
cdef enum:
    REDUCED = 1             # the role of an axis along which terms are folded
    SOUGHT = 2              # the role of an axis along which positions are results
    MOST_FOLDED = MAX_OPERANDS - 3      # the most functions; the other operands are data, folded terms and results

MOST_FOLDED_STEPS = MOST_FOLDED


def takes_fold(tuple functions, str name, cnp.dtype dtype):
    """Return whether a loop computes terms by these ufuncs from items of a dtype, and folds them by a reduction."""
    if not 1 <= len(functions) <= MOST_FOLDED or not dtype.isnative:
        return False
    if functions[0] in COMPARISONS:
        return len(functions) == 1 and name in FOLDS_OF_TRUTHS and _kind_of_items(dtype) != 0
    if name not in FOLDS_OF_NUMBERS or not _is_folded_float(dtype):
        return False
    for function in functions:
        if function not in ARITHMETIC:
            return False
    return True


cdef inline bint _is_folded_float(cnp.dtype dtype) noexcept:
    return dtype.type_num == cnp.NPY_FLOAT or dtype.type_num == cnp.NPY_DOUBLE


cdef inline char _kind_of_items(cnp.dtype dtype) noexcept:
    """NumPy's letter for the kind of items, if they are compared here; otherwise 0."""
    if _is_folded_float(dtype):
        return c"f"
    if cnp.NPY_BYTE <= dtype.type_num <= cnp.NPY_ULONGLONG:
        return c"u" if cnp.PyTypeNum_ISUNSIGNED(dtype.type_num) else c"i"
    return 0


# Arguments describe a reduction one by one; `FoldPlan` collects them.
def fold_terms(
    list operands, tuple shape, tuple axes, tuple functions, str name, bint takes_roots, cnp.ndarray out,
    str sought="", int sought_axis=-1, cnp.dtype dtype=None,
):
    """Write the reduction of the terms that functions compute; return whether the results are certain.

    `operands` has the data and the second operand of each function, or None. They are aligned arrays of one dtype, and
    broadcast to `shape`. Terms along the reduced axes give one result. `out` is C-contiguous, has the other axes, and
    overlaps no operand. For "argmax" and "argmin", results are positions along a further axis that `out` lacks. The
    data is first converted to `dtype`, of floats, unless that is None. Return None, and write nothing, if this is not
    supported, for example along short axes. Results are not certain after a floating-point error, or if the sign of a
    zero may differ from NumPy's.
    """
    cdef FoldPlan plan
    cdef uint8_t[MOST_FOLDED] numbers
    cdef cnp.ndarray first

    if not operands or len(operands) != len(functions) + 1 or not isinstance(operands[0], np.ndarray):
        raise ValueError(f"`operands` expected an array and one for each function, got {len(operands)}")

    first = operands[0]
    plan.cast, plan.given_size = NULL, <int> cnp.PyArray_ITEMSIZE(first)
    if dtype is None:
        dtype = <cnp.dtype> cnp.PyArray_DESCR(first)
    elif not _choose_cast(&plan, first, dtype):
        return None
    if not takes_fold(functions, name, dtype) or len(shape) > MAX_AXES:
        raise ValueError(f"`functions` expected ones with a loop for {name}, got {functions}")

    _describe_terms(&plan, operands, shape, dtype)
    _describe_kernel(&plan, functions, name, dtype, numbers)
    plan.has_positions, plan.seeks_greatest = sought != "", sought == "argmax"
    _describe_results(&plan, _roles_of_axes(len(shape), axes, sought_axis if sought else -1), takes_roots, out)

    if 0 in shape or not plan_folds(&plan):
        return None
    return run_folds(&plan, operands + [out]) == 0


cdef bint _choose_cast(FoldPlan *plan, cnp.ndarray data, cnp.dtype dtype) except -1:
    """Record the conversion of data to a dtype, if necessary; return whether it is supported here."""
    if not _is_folded_float(dtype):
        raise ValueError(f"`dtype` expected float32 or float64, got {dtype}")
    if dtype.type_num == cnp.PyArray_TYPE(data) and cnp.PyArray_ISNOTSWAPPED(data):
        return True
    plan.cast = _cast_of_data(data, dtype)
    return plan.cast != NULL


cdef bytearray _roles_of_axes(Py_ssize_t rank, tuple reduced, Py_ssize_t sought):
    """The role of each axis: REDUCED, SOUGHT, or 0 if results have it."""
    cdef bytearray roles = bytearray(rank)
    for axis in reduced:
        roles[axis] = REDUCED
    if sought >= 0:
        roles[sought] = SOUGHT
    return roles


cdef Cast _cast_of_data(cnp.ndarray data, cnp.dtype dtype) except? NULL:
    """The function that converts data to a dtype; NULL if there is none."""
    cdef cnp.dtype given = <cnp.dtype> cnp.PyArray_DESCR(data)
    learn(given)
    if not given.isnative or eligible(given.type_num) == OTHER or cnp.PyTypeNum_ISCOMPLEX(given.type_num):
        return NULL
    return numpys_cast(given, dtype)


cdef int _describe_terms(FoldPlan *plan, list operands, tuple shape, cnp.dtype dtype) except -1:
    """Record the inputs of terms, and their addresses."""
    cdef int i
    plan.nest.rank, plan.nest.n = <int> len(shape), <int> len(operands) + 2
    for i in range(plan.nest.rank):
        plan.nest.shape[i] = shape[i]
    for i in range(len(operands)):
        _describe_folded(plan, i, operands[i], operands[0], dtype)
    return 0


cdef int _describe_folded(FoldPlan *plan, int k, operand, cnp.ndarray first, cnp.dtype dtype) except -1:
    """Record the address and strides of an operand; check that it fits the terms."""
    cdef cnp.ndarray array = first if operand is None else operand
    cdef int number = cnp.PyArray_TYPE(first) if array is first and plan.cast != NULL else dtype.type_num
    cdef bint is_alike = cnp.PyArray_EquivTypenums(cnp.PyArray_TYPE(array), number)
    if not is_alike or not cnp.PyArray_ISBEHAVED_RO(array) or cnp.PyArray_NDIM(array) > plan.nest.rank:
        raise ValueError("`operands` expected aligned arrays of one dtype that fit `shape`")
    plan.nest.data[k] = cnp.PyArray_BYTES(array)
    _note_folded_strides(plan, k, array, operand is None)
    return 0


cdef int _note_folded_strides(FoldPlan *plan, int k, cnp.ndarray array, bint is_one_item) except -1:
    """Record the strides of an operand that broadcasts to the terms; check its lengths. A single item has none."""
    cdef int start = plan.nest.rank - cnp.PyArray_NDIM(array), axis
    cdef Py_ssize_t length
    for axis in range(plan.nest.rank):
        length = cnp.PyArray_DIM(array, axis - start) if axis >= start else 1
        plan.nest.stride[k][axis] = 0
        if length == 1 or is_one_item:
            continue
        if length != plan.nest.shape[axis]:
            raise ValueError("`operands` expected shapes that fit `shape`")
        plan.nest.stride[k][axis] = cnp.PyArray_STRIDE(array, axis - start)
    return 0


cdef int _describe_kernel(FoldPlan *plan, tuple functions, str name, cnp.dtype dtype, uint8_t *numbers) except -1:
    """Record the reduction and the functions' numbers; terms of a mean are counted later."""
    cdef Folding *kernel = &plan.kernel
    cdef bint compares = functions[0] in COMPARISONS
    cdef int i

    for i in range(len(functions)):
        numbers[i] = COMPARISONS[functions[i]] if compares else ARITHMETIC[functions[i]]
    kernel.functions = numbers
    kernel.kind = _kind_of_items(dtype)
    kernel.size = dtype.itemsize
    kernel.steps, kernel.compares = len(functions), compares
    kernel.fold = FOLDS_OF_TRUTHS[name] if compares else FOLDS_OF_NUMBERS[name]
    kernel.divisor = 0 if name == "mean" else 1
    plan.has_signed_zeros = functions[len(functions) - 1] not in (np.square, np.absolute, np.fabs)
    return 0


cdef int _describe_results(FoldPlan *plan, bytearray roles, bint takes_roots, cnp.ndarray out) except -1:
    """Record the layout of results; check that they have the remaining axes, and the right dtype."""
    cdef int results = plan.nest.n - 1
    if not _place_results(plan, roles, out):
        raise ValueError("`out` expected a C-contiguous array with the axes of `shape` that are left")
    if cnp.PyArray_TYPE(out) != _dtype_of_results(plan, out) or takes_roots and plan.kernel.compares:
        raise ValueError("`out` expected the dtype of the reduction's results")

    _place_folded(plan, roles)
    plan.nest.data[results] = plan.nest.data[results - 1] = cnp.PyArray_BYTES(out)
    plan.result_size = <int> cnp.PyArray_ITEMSIZE(out)
    plan.takes_roots = takes_roots
    return 0


cdef bint _place_results(FoldPlan *plan, bytearray roles, cnp.ndarray out) except -1:
    """Record the strides of results; return whether their axes are those without a role."""
    cdef int results = plan.nest.n - 1, rank = cnp.PyArray_NDIM(out), axis, at = 0
    for axis in range(plan.nest.rank):
        plan.nest.stride[results][axis] = 0
        if roles[axis]:
            continue
        if at == rank or cnp.PyArray_DIM(out, at) != plan.nest.shape[axis]:
            return False
        plan.nest.stride[results][axis] = cnp.PyArray_STRIDE(out, at)
        at += 1
    return at == rank and cnp.PyArray_ISCARRAY(out)


cdef int _dtype_of_results(const FoldPlan *plan, cnp.ndarray out) noexcept:
    """The number of the dtype that `out` must have; -1 if it can have none."""
    cdef int number = cnp.PyArray_TYPE(out)
    if plan.has_positions:
        return -1 if plan.kernel.compares else cnp.NPY_INTP
    if plan.kernel.compares:
        return cnp.NPY_INTP if plan.kernel.fold == FOLD_COUNT else cnp.NPY_BOOL
    return number if cnp.PyTypeNum_ISFLOAT(number) and cnp.PyArray_ITEMSIZE(out) == plan.kernel.size else -1


cdef int _place_folded(FoldPlan *plan, bytearray roles) except -1:
    """Record the strides that an array of folded terms would have, which is never allocated; count the terms of a mean.
    """
    cdef int folded = plan.nest.n - 2, axis
    cdef Py_ssize_t stride = plan.kernel.size, terms = 1
    for axis in range(plan.nest.rank - 1, -1, -1):
        if roles[axis] == REDUCED:
            plan.nest.stride[folded][axis] = 0
            terms *= plan.nest.shape[axis]
        else:
            plan.nest.stride[folded][axis] = stride
            stride *= plan.nest.shape[axis]
    if plan.kernel.divisor == 0:
        plan.kernel.divisor = <double> terms
    return 0


# Steps of chains


cdef tuple _with_arrays(tuple steps):
    """Steps in which arrays without axes replace NumPy's scalars; their results are the same."""
    cdef list plain = None, operands
    cdef int i, k
    for i in range(len(steps)):
        if type(steps[i]) is not tuple:
            continue
        operands = None
        for k in range(1, len(<tuple> steps[i])):
            if _is_numpys_scalar((<tuple> steps[i])[k]):
                operands = list(<tuple> steps[i]) if operands is None else operands
                operands[k] = PyArray_FromScalar(operands[k], NULL)
        if operands is not None:
            plain = list(steps) if plain is None else plain
            plain[i] = tuple(operands)
    return steps if plain is None else tuple(plain)


cdef inline bint _is_numpys_scalar(value) noexcept:
    """Whether this is a scalar of one of NumPy's own types, which are static."""
    if type(value) is float or type(value) is int or cnp.PyArray_Check(value):
        return False
    return cnp.PyArray_CheckScalar(value) and not PyType_HasFeature(type(value), Py_TPFLAGS_HEAPTYPE)


cdef bint _add_step(Call *call, given, const Rule *rule) except -1:
    """Add a user's step as one or several ufunc steps; return whether that is possible."""
    cdef bint has_operands = type(given) is tuple
    cdef tuple step = given if has_operands else (given,)
    if len(step) == 0:
        return False
    function = step[0]
    if function is CLIP and len(step) == 3:
        return _add_clip(call, step[1], step[2], rule)
    if len(step) != 1 + has_operands:
        return False
    if function is ROUND or function is AROUND:
        return _add_round(call, step[1] if has_operands else 0)
    return _add_ufunc(call, step, rule)


cdef bint _add_clip(Call *call, low, high, const Rule *rule) except -1:
    """Add the steps of NumPy's `clip`; return whether that is possible."""
    if _is_whole(call.number) and call.number != cnp.NPY_BOOL:
        low, high = bounds_in_effect(low, high, cnp.PyArray_DescrFromType(call.number))
    if low is None and high is None:
        return call.number != cnp.NPY_BOOL      # NumPy rejects bools; numbers remain unchanged
    if low is None:
        return _add_ufunc(call, (np.minimum, high), rule)
    if high is None:
        return _add_ufunc(call, (np.maximum, low), rule)
    return _are_sure_bounds(call.number, low, high) and _add_ufunc(call, (CLIP_UFUNC, low, high), rule)


cdef bint _add_round(Call *call, decimals) except -1:
    """Add the steps of NumPy's `round`: scale, round to integers, scale back; return whether that is possible."""
    if type(decimals) is not int:
        return False
    if _is_whole(call.number) and call.number != cnp.NPY_BOOL:
        return decimals >= 0        # integers remain unchanged
    if call.number not in (cnp.NPY_FLOAT, cnp.NPY_DOUBLE, cnp.NPY_FLOAT16):
        return False
    if not -MOST_DECIMALS <= decimals <= MOST_DECIMALS:
        return False
    if decimals == 0:
        return _add_ufunc(call, (np.rint,), &NUMPYS_RULE)
    return _add_scaled_round(call, decimals)


cdef bint _add_scaled_round(Call *call, int decimals) except -1:
    """Add a product or quotient by a power of ten, a rounding to whole numbers, and the quotient or product back."""
    cdef double factor = 1
    for _ in range(decimals if decimals > 0 else -decimals):
        factor *= 10
    before, after = (np.multiply, np.divide) if decimals > 0 else (np.divide, np.multiply)
    return (
        _add_ufunc(call, (before, factor), &NUMPYS_RULE)
        and _add_ufunc(call, (np.rint,), &NUMPYS_RULE)
        and _add_ufunc(call, (after, factor), &NUMPYS_RULE)
    )


cdef bint _add_ufunc(Call *call, tuple step, const Rule *rule) except -1:
    """Add the ufunc of a step, and a conversion before it if necessary; return whether that is possible."""
    cdef int first = call.nest.n, before = call.step_count, i
    cdef UfuncLoop found = _loop_of_step(call, step)
    if found is None:
        return False
    if found.casts[0] != NULL and not _add_cast(call, found.dtypes[0], cnp.NPY_UNSAFE_CASTING):
        return False
    _append_loop(call, found, len(step) - 1)
    if found.noted:
        _note_counts(call, before)
    if found.compares_bytes:
        call.compared_bools |= 1 << first | (call.step_count == 1)      # results of steps are 0 or 1
    for i in range(1, len(step)):
        if not _add_operand(call, found, i, step[i], rule):
            return False
    return True


cdef UfuncLoop _loop_of_step(const Call *call, tuple step):
    """The loop of a step's ufunc, or None to decline the chain: bits must not depend on the position of blocks."""
    cdef int operands = len(step) - 1, i
    cdef int[2] numbers = [NONE, NONE]
    cdef UfuncLoop found

    if type(step[0]) is not UFUNC:
        return None
    # The output is an operand as well.
    if call.nest.n + operands >= MAX_OPERANDS or call.step_count + STEPS_OF_UFUNC > MAX_STEPS:
        return None
    for i in range(operands):
        numbers[i] = number_of(step[i + 1])
    found = find_loop(step[0], call.number, numbers[0], numbers[1], cnp.NPY_SAME_KIND_CASTING)
    if found is None or found.bits_by_strides or not found.thread_safe:
        return None
    if found.bits_by_direction and call.step_count == 0 and found.casts[0] == NULL and runs_backwards(call):
        return None
    return found


cdef int _append_loop(Call *call, UfuncLoop found, int operands) except -1:
    """Append the step of a loop; its operands after the first one are added next."""
    cdef Step *step = &call.steps[call.step_count]
    cdef int first = call.nest.n, slow = found.slow_with_stride_0
    cdef cnp.dtype result = <cnp.dtype> found.dtypes[operands + 1]

    step.name, step.loop, step.cast = (<UFunc *> found.ufunc).name, found.loop, NULL
    step.reports_errors, step.clears_errors = found.reports_errors, found.clears_errors
    step.second = first if operands > 0 else 0
    step.third = first + 1 if operands > 1 else 0
    step.is_implied = step.is_to_out = step.in_pieces = False
    step.item_count, step.size = 0, result.itemsize
    step.fused_count, step.function = 0, found.fused

    call.step_count += 1
    call.number = result.type_num
    call.cost += found.cost
    slow = (slow & 1 | slow >> 1 << first) if operands else 0
    if found.fused == NOT_FUSED:
        call.slow_with_stride_0 |= slow
    else:
        call.slow_unfused |= slow
    return 0


cdef bint _add_operand(Call *call, UfuncLoop found, int i, value, const Rule *rule) except -1:
    """Add operand number `i` of a step, whose first operand is the previous result; return whether it fits."""
    cdef int k = call.nest.n
    if not map_operand(call, k, value, rule):
        return False
    if not describe(call, k, value, <cnp.dtype> found.dtypes[i], found.casts[i]):
        return False
    if found.noted:
        call.noted |= (found.noted >> i & 1) << k
        if rule.mode == PDPD:
            call.reshaped |= is_reshaped(call, k) << k
    call.nest.n += 1
    return True


cdef bint _add_cast(Call *call, cnp.dtype dtype, int casting) except -1:
    """Add the step that converts to a dtype in native byte order, if that differs; return whether that is possible."""
    cdef cnp.dtype given = cnp.PyArray_DescrFromType(call.number)
    cdef bint is_saturating = False
    cdef Cast cast

    learn(dtype)
    if eligible(dtype.type_num) == OTHER:
        return False
    if are_same(given, dtype):
        return True
    if not dtype.isnative:
        dtype = dtype.newbyteorder("=")
    if casting == SATURATE:
        is_saturating = saturates(given, dtype)
        casting = cnp.NPY_SAME_KIND_CASTING
    if not is_saturating and not PyArray_CanCastTypeTo(
        <cnp.PyArray_Descr *> given, <cnp.PyArray_Descr *> dtype, casting
    ):
        return False

    if call.number == cnp.NPY_UBYTE and fused_cast(cnp.NPY_FLOAT, dtype.type_num, False) == TO_HALVES:
        given = cnp.PyArray_DescrFromType(cnp.NPY_FLOAT)    # the fused loop needs a tenth of the time
        _add_cast(call, given, casting)
    cast = saturating_cast(given, dtype) if is_saturating else numpys_cast(given, dtype)
    if cast == NULL:
        return False
    _append_cast(call, cast, dtype, is_saturating)
    return True


cdef void _append_cast(Call *call, Cast cast, cnp.dtype dtype, bint is_saturating) noexcept:
    """Append the step of a conversion."""
    cdef Step *step = &call.steps[call.step_count]
    step.name, step.cast, step.loop.function = b"cast", cast, NULL
    step.reports_errors, step.clears_errors = not is_saturating, False
    step.second = step.third = 0
    step.is_implied = step.is_to_out = step.in_pieces = False
    step.item_count, step.size = 0, dtype.itemsize
    step.fused_count, step.function = 0, fused_cast(call.number, dtype.type_num, is_saturating)
    call.step_count += 1
    call.number = dtype.type_num


# Bounds of `clip`


cpdef tuple bounds_in_effect(low, high, cnp.dtype dtype):
    """The bounds to which NumPy's `clip` cuts integers of a dtype: None for a Python int beyond the dtype's range."""
    limits = np.iinfo(dtype)
    if type(low) is int and low <= limits.min:
        low = None
    if type(high) is int and high >= limits.max:
        high = None
    return low, high


cdef bint _are_sure_bounds(int number, low, high) except -1:
    """Whether the results for both bounds do not depend on how NumPy passes them to its loop.

    Results of floats depend on it if a bound is NaN. They also do if a bound is 0, because zeros have two signs, unless
    both bounds are single numbers.
    """
    cdef int a = number_of(low), b = number_of(high)
    if not _has_order(a) or not _has_order(b):
        return False
    if _is_whole(number) and (_is_whole(a) or a == AN_INT) and (_is_whole(b) or b == AN_INT):
        return True
    return _are_sure_floats(low, high)


cdef inline bint _has_order(int number) noexcept:
    """Whether numbers of a dtype, or of a Python type, can be bounds here: those that are not complex."""
    return number != OTHER and number != A_COMPLEX and not cnp.NPY_CFLOAT <= number <= cnp.NPY_CLONGDOUBLE


cdef bint _are_sure_floats(low, high) except -1:
    """Whether bounds have no NaN, and no 0 unless both bounds are single numbers."""
    cdef bint are_single = True
    cdef int found = 0
    for bound in (low, high):
        if cnp.PyArray_CheckExact(bound):
            are_single = are_single and cnp.PyArray_SIZE(<cnp.ndarray> bound) == 1
        found |= _specials_of(bound)
    return not found & HAS_NAN and (are_single or not found & HAS_ZERO)


cdef int _specials_of(bound) except -1:
    """The flags of a bound: whether it has NaN or 0. A bound of many items counts as NaN."""
    cdef cnp.ndarray array
    cdef int found
    if not cnp.PyArray_CheckExact(bound):
        return _specials_of_scalar(bound)
    array = bound
    if cnp.PyArray_SIZE(array) > FEW_BOUNDS:
        return HAS_NAN
    if cnp.PyArray_IS_C_CONTIGUOUS(array) and cnp.PyArray_ISBEHAVED_RO(array):     # 0.5 instead of 5 microseconds
        found = _specials_of_array(array)
        if found >= 0:
            return found
    return (HAS_NAN if np.any(bound != bound) else 0) | (0 if np.all(bound) else HAS_ZERO)


cdef int _specials_of_scalar(bound) except -1:
    """The flags of a single number."""
    if bound != bound:
        return HAS_NAN
    return 0 if bound else HAS_ZERO


cdef int _specials_of_array(cnp.ndarray array) noexcept:
    """The flags of contiguous items; less than 0 for other dtypes."""
    cdef const void *items = cnp.PyArray_DATA(array)
    cdef Py_ssize_t n = cnp.PyArray_SIZE(array)
    cdef int number = cnp.PyArray_TYPE(array), size = <int> cnp.PyArray_ITEMSIZE(array)

    if number == cnp.NPY_FLOAT:
        return _specials_of_items(<const float *> items, n)
    if number == cnp.NPY_DOUBLE:
        return _specials_of_items(<const double *> items, n)
    if number == cnp.NPY_FLOAT16:
        return _specials_of_halves(<const uint16_t *> items, n)
    if not _is_whole(number):
        return -1
    if size == 1:
        return _specials_of_items(<const uint8_t *> items, n)
    if size == 2:
        return _specials_of_items(<const uint16_t *> items, n)
    if size == 4:
        return _specials_of_items(<const uint32_t *> items, n)
    return _specials_of_items(<const uint64_t *> items, n)


ctypedef fused const_number:
    const float
    const double
    const uint8_t
    const uint16_t
    const uint32_t
    const uint64_t


cdef int _specials_of_items(const_number *items, Py_ssize_t n) noexcept:
    cdef bint has_nan = False, has_zero = False
    cdef Py_ssize_t i
    for i in range(n):
        has_nan |= items[i] != items[i]
        has_zero |= items[i] == 0
    return (HAS_NAN if has_nan else 0) | (HAS_ZERO if has_zero else 0)


cdef int _specials_of_halves(const uint16_t *items, Py_ssize_t n) noexcept:
    cdef bint has_nan = False, has_zero = False
    cdef Py_ssize_t i
    for i in range(n):
        has_nan |= (items[i] & 0x7fff) > 0x7c00
        has_zero |= (items[i] & 0x7fff) == 0
    return (HAS_NAN if has_nan else 0) | (HAS_ZERO if has_zero else 0)


cdef inline bint _is_whole(int number) noexcept:
    """Whether this is the number of a dtype of integers or of bools."""
    return 0 <= number <= cnp.NPY_ULONGLONG


# Floating-point errors, reported like NumPy's
#
# NumPy converts operands with one axis and few items as a whole, before the loop, up to the first operand of another
# form. It reports the errors of these conversions "in cast", and the errors of others in the name of the function.


cpdef int report_kinds(bytes name, int kinds) except -1:
    """Report floating-point errors of a function under the user's settings. The kinds are NumPy's numbers."""
    PyUFunc_GiveFloatingpointErrors(name, kinds)
    return 0


cdef void _note_counts(Call *call, int before) noexcept:
    """Record the number of items of the steps from `before` on: a user's step, and the conversions before it."""
    cdef Py_ssize_t items = 1
    cdef bint in_pieces = False
    cdef const Operand *operand
    cdef int i, k

    for i in range(call.nest.rank):
        items *= call.nest.shape[i]
    for k in range(call.nest.n):
        operand = &call.operands[k]
        in_pieces = in_pieces or operand.array != NULL and cnp.PyArray_NDIM(<cnp.ndarray> operand.array) > 1

    for i in range(before, call.step_count):
        call.steps[i].is_implied = i < call.step_count - 1
        call.steps[i].item_count, call.steps[i].in_pieces = items, in_pieces


cdef int _report_errors(Call *call, int *errors) except -1:
    """Report the floating-point errors of each step of a chain, and of its conversions."""
    cdef const Step *step
    cdef Py_ssize_t most = np.getbufsize()
    cdef bint is_whole = True       # whether NumPy converts the step's data as a whole, or not at all
    cdef int i

    _attribute_to_ufunc(call, errors)
    for i in range(call.step_count):
        step = &call.steps[i]
        if step.is_implied:
            is_whole = not step.in_pieces and step.item_count <= most
            if not is_whole and not call.steps[i + 1].clears_errors:
                errors[i + 1] |= errors[i]
            elif is_whole and errors[i]:
                PyUFunc_GiveFloatingpointErrors(step.name, errors[i])
            continue
        if i == 0 and not call.operands[0].readable:
            is_whole = not step.in_pieces and step.item_count <= most
        _report_errors_of_step(call, i, is_whole, errors)
        is_whole = True
    return 0


cdef void _attribute_to_ufunc(Call *call, int *errors) noexcept:
    """Attribute errors of the conversion to `out` to the previous ufunc: NumPy reports them together, in its name."""
    cdef int i
    for i in range(call.step_count - 1, 0, -1):
        if call.steps[i].is_to_out and errors[i]:
            errors[i - 1] |= errors[i]
            errors[i] = 0
            call.steps[i - 1].reports_errors = True


cdef int _report_errors_of_step(Call *call, int i, bint is_whole, int *errors) except -1:
    """Report the errors of one step and of its operands' conversions. In `errors`, the latter follow all steps."""
    cdef const Step *step = &call.steps[i]
    cdef Py_ssize_t most = np.getbufsize()
    cdef int left = 0
    cdef int *of_operands = errors + call.step_count

    if step.second:
        is_whole = _report_conversion(call, step.second, is_whole, most, of_operands[step.second], &left)
    if step.third:
        _report_conversion(call, step.third, is_whole, most, of_operands[step.third], &left)
    if not step.clears_errors:
        errors[i] |= left
    if errors[i] and step.reports_errors:
        PyUFunc_GiveFloatingpointErrors(step.name, errors[i])
    return 0


cdef int _report_conversions(Call *call, const int *errors, bint cleared) except -1:
    """Report the errors of both operands' conversions that NumPy reports separately; return the loop's.

    The loop has none if it has `cleared` them.
    """
    cdef Py_ssize_t most = np.getbufsize()
    cdef int left = 0
    cdef bint is_whole = _report_conversion(call, 0, True, most, errors[0], &left)
    _report_conversion(call, 1, is_whole, most, errors[1], &left)
    return 0 if cleared else left


cdef bint _report_conversion(Call *call, int k, bint is_whole, Py_ssize_t most, int errors, int *left) except -1:
    """Report the errors of an operand's conversion, or add them to `left`, the loop's.

    Return whether NumPy converts the next operand separately.
    """
    cdef const Operand *operand = &call.operands[k]
    cdef cnp.ndarray array
    if operand.array == NULL or operand.cast == NULL and operand.readable:
        return is_whole
    array = <cnp.ndarray> operand.array
    if cnp.PyArray_NDIM(array) > 1 or cnp.PyArray_SIZE(array) > most or call.reshaped >> k & 1:
        is_whole = False
    if not is_whole:
        left[0] |= errors
    elif errors:
        PyUFunc_GiveFloatingpointErrors(b"cast", errors)
    return is_whole


# Calls left to NumPy


cdef _computed_by_numpy(function, a, b, out):
    """Call a function directly, under NumPy's rule; NotImplemented if that needs more checks."""
    cdef PyObject *args[2]
    if _is_bool(a) or _is_bool(b):
        a, b = with_plain_bools((a, b))
    if out is not None:
        return pass_on(function, a, b, BY_NUMPY, -1, out, None)
    args[0], args[1] = <PyObject *> a, <PyObject *> b
    try:    # Cython's own calls do not check that an error sets an exception, and NumPy's may set none
        return call_past_gate(function, args, 2, NULL)
    except ValueError:      # shapes may not fit
        merge((operand_shape(a), operand_shape(b)), "a, b")
        raise


cpdef pass_on(function, a, b, int rule, axis, out, where):
    """Call a ufunc with unchanged arguments, if operands fit under a rule, and `out` and `where` fit the result.

    Return NotImplemented if shapes do not fit, or need a closer check. The user's arguments come one by one.
    """
    cdef Rule by = rule_of_mode(rule, axis)
    cdef PyObject *args[4]
    cdef size_t n = 2

    if not _fit_as_they_are(a, b, &by, out, where):
        return NotImplemented
    args[0], args[1] = <PyObject *> a, <PyObject *> b
    if out is not None:
        args[n] = <PyObject *> out
        n += 1
    if where is not None:
        args[n] = <PyObject *> where
        n += 1

    names = OUT_AND_WHERE if n == 4 else ONLY_WHERE if out is None else ONLY_OUT
    try:
        return call_past_gate(function, args, 2, NULL if n == 2 else <PyObject *> names)
    except TypeError as error:
        if hasattr(error, "out_i"):     # NumPy's attribute if casting forbids the dtype of `out`
            error.add_note("Give casting='unsafe', or an `out` of another dtype.")
        raise


cdef inline bint _fit_as_they_are(a, b, const Rule *rule, out, where) noexcept:
    """Whether operands fit under a rule, and `out` and `where` fit the result, without a reshape."""
    cdef Call call
    if _is_subclass(a) or _is_subclass(b):
        return False
    if rule.mode == PDPD or not align_operands(&call, a, b, rule):      # 'pdpd' may need to reshape `b`
        return False
    if out is not None and not _fits_result(&call, out, True):
        return False
    return where is None or _fits_result(&call, where, False)


cdef inline bint _is_subclass(operand) noexcept:
    return cnp.PyArray_Check(operand) and not cnp.PyArray_CheckExact(operand)


cdef inline bint _fits_result(const Call *call, array, bint is_out) noexcept:
    """Whether an array has the result's last axes; if it is `out`, all of them, and can be written to."""
    cdef int start = call.nest.rank - rank_of(array)
    if not cnp.PyArray_CheckExact(array) or start < 0:
        return False
    if is_out and (start or not cnp.PyArray_ISWRITEABLE(<cnp.ndarray> array)):
        return False
    return are_equal(cnp.PyArray_DIMS(<cnp.ndarray> array), call.nest.shape + start, call.nest.rank - start)


cpdef tuple operand_shape(operand):
    """The shape of an array, of any subclass, or of a scalar."""
    return shape_of(<cnp.ndarray> operand) if cnp.PyArray_Check(operand) else ()


cpdef tuple with_plain_bools(tuple operands):
    """Operands for NumPy, whose bools have bytes of 0 and 1.

    NumPy's loops compare the bytes of bools, several at once; other packages convert bytes as numbers.
    """
    cdef list plain = []
    for operand in operands:
        plain.append(with_plain_bytes(operand))
    return tuple(plain)


cpdef with_plain_bytes(operand):
    """The same for one operand; it is returned unchanged if it is not an array of bools, or already has these bytes."""
    if _is_bool(operand) and _has_other_bytes(<cnp.ndarray> operand):
        return _of_plain_bytes(<cnp.ndarray> operand)
    return operand


cdef inline bint _is_bool(operand) noexcept:
    """Whether this is an array of bools, of the base class."""
    return cnp.PyArray_CheckExact(operand) and cnp.PyArray_TYPE(<cnp.ndarray> operand) == cnp.NPY_BOOL


cdef bint _has_other_bytes(cnp.ndarray bools) except -1:
    """Whether a byte of these bools is neither 0 nor 1."""
    cdef const uint8_t *bytes_of
    cdef uint8_t seen = 0
    cdef Py_ssize_t i
    if not cnp.PyArray_IS_C_CONTIGUOUS(bools) and not cnp.PyArray_IS_F_CONTIGUOUS(bools):
        return bool(np.any(bools.view(np.uint8) > 1))
    bytes_of = <const uint8_t *> cnp.PyArray_DATA(bools)
    for i in range(cnp.PyArray_SIZE(bools)):
        seen |= bytes_of[i]
    return seen > 1


cdef _of_plain_bytes(cnp.ndarray bools):
    """A copy of bools with bytes of 0 and 1, with the same strides of 0, because these determine layouts."""
    cdef list index = []
    cdef int i
    for i in range(cnp.PyArray_NDIM(bools)):
        index.append(slice(1) if cnp.PyArray_STRIDE(bools, i) == 0 else slice(None))
    once = bools[tuple(index)] if index else bools
    return stretched(once.view(np.uint8).astype(np.bool_), shape_of(bools))


# Functions under the names of ufuncs


@cython.final
@cython.auto_pickle(False)
cdef class NamedFunction:
    """A ufunc that runs here, under its own name: `bcast.add`, `bcast.sqrt`.

    Most calls have only operands, and go straight to `compute`. For all others, `otherwise` is called, with the ufunc
    before the arguments; if it is None, the ufunc itself is called. Attributes that this object lacks are the ufunc's.
    """

    cdef Vectorcall call
    cdef readonly object ufunc
    cdef str module             # the module in which Python finds it by its name
    cdef object otherwise
    cdef object document        # returns the docstring
    cdef object signature
    cdef tuple keywords         # the names of its arguments
    cdef object __weakref__

    def __cinit__(self, ufunc not None, str module not None, otherwise, document, signature):
        if type(ufunc) is not UFUNC or (<UFunc *> ufunc).nin > 2 or (<UFunc *> ufunc).core_enabled:
            raise TypeError(f"`ufunc` expected a ufunc of one operand or two, got {ufunc!r}")
        self.call = call_named
        self.ufunc, self.otherwise, self.document = ufunc, otherwise, document
        self.module, self.signature = module, signature
        self.keywords = () if signature is None else tuple(signature.parameters)

    @property
    def __module__(self):
        return self.module

    @property
    def __name__(self):
        return self.ufunc.__name__

    @property
    def __qualname__(self):
        return self.ufunc.__name__

    @property
    def __doc__(self):
        return self.document(self.ufunc)

    def __getattr__(self, str name not None):
        if name == "__signature__" and self.signature is not None:      # the class itself must not have one
            return self.signature
        return getattr(self.ufunc, name)

    def __repr__(self):
        return repr(self.ufunc) if self.otherwise is None else f"<function bcast.{self.ufunc.__name__}>"

    def __reduce__(self):
        name = self.ufunc.__name__
        # Python finds the name in the module. Without `otherwise`, the object is pickled as NumPy's.
        return name if self.otherwise is not None else (resolve_name, (f"numpy:{name}",))

    # Libraries keep tables of NumPy's functions.
    def __hash__(self):
        return hash(self.ufunc)

    def __eq__(self, other):
        return self.ufunc is (other.ufunc if type(other) is NamedFunction else other)


cdef object call_named(object callee, PyObject *const *arguments, size_t count, PyObject *names):
    """Call a function under the name of a ufunc."""
    cdef NamedFunction function = <NamedFunction> callee
    cdef Py_ssize_t n = PyVectorcall_NARGS(count)
    if names == NULL and n == (<UFunc *> function.ufunc).nin and _is_quick(<object> arguments[0]):
        if n == 1:
            return compute_one(function.ufunc, <object> arguments[0], None)
        if _is_quick(<object> arguments[1]):
            result = _compute_here(function.ufunc, <object> arguments[0], <object> arguments[1], None)
            if result is not None:
                return result
            if function.otherwise is not None:
                return _computed_by_numpy(function.ufunc, <object> arguments[0], <object> arguments[1], None)
    if function.otherwise is None:      # errors are then NumPy's, word for word
        return call_past_gate(function.ufunc, <PyObject **> arguments, count, names)
    return _call_otherwise(function, arguments, n, names)


cdef inline bint _is_quick(operand) noexcept:
    return cnp.PyArray_CheckExact(operand) or type(operand) is float or type(operand) is int


cdef object _call_otherwise(NamedFunction function, PyObject *const *arguments, Py_ssize_t n, PyObject *names):
    """Call `otherwise` with the ufunc before the arguments. A positional argument after the operands is `out`."""
    cdef PyObject *given[MOST_GIVEN]
    cdef tuple keywords = () if names == NULL else <tuple> names
    cdef int operands = (<UFunc *> function.ufunc).nin
    cdef Py_ssize_t i, total = n + len(keywords)

    if n < operands:
        _refuse_missing(operands, n, keywords)
    if n > operands + 1 or total > MOST_GIVEN - 1:
        name = function.ufunc.__name__
        raise TypeError(f"`{name}` expected {operands} operands and perhaps `out`, got {n} by position")
    _check_keywords(function, keywords, n > operands)
    given[0] = <PyObject *> function.ufunc
    for i in range(total):
        given[i + 1] = arguments[i]
    if n > operands:
        keywords = ("out", *keywords)
    return call_past_gate(function.otherwise, given, operands + 1, <PyObject *> keywords)


cdef int _refuse_missing(int operands, Py_ssize_t n, tuple keywords) except -1:
    """Raise the error of a call with fewer operands than its function has."""
    missing = "x" if operands == 1 else "a" if n == 0 else "b"
    words = "array_like by position, got it by name" if missing in keywords else "array_like, got none"
    raise TypeError(f"`{missing}` expected an {words}")


cdef int _check_keywords(NamedFunction function, tuple keywords, bint has_out) except -1:
    """Refuse keywords that a function does not have, and an `out` by name beside one by position."""
    for name in keywords:
        if name not in function.keywords or (has_out and name == "out"):
            what = "two values for" if name == "out" else "an unexpected"
            raise TypeError(f"`{function.ufunc.__name__}` got {what} keyword argument {name!r}")
    return 0


cdef NamedFunction _trial = NamedFunction(np.add, "", None, None, None)
take_vectorcalls(<PyTypeObject *> NamedFunction, <char *> &_trial.call - <char *> <PyObject *> _trial)
