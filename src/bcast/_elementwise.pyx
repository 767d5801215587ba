# cython: cdivision=True, boundscheck=False, wraparound=False
"""`apply`, `run_steps`, `choose`: ufuncs, chains of them and `where`, by blocks in a first-level cache, on threads.

In: ufuncs, operands and what the user asked of the result, as the front end has checked them. Out: the result; or
nothing, where a call is not sure to give NumPy's answer, and so is left to it. `_apply/loops.pxi` has the loop that
NumPy gives for a ufunc and two dtypes, `casts.pxi` what converts to these, `operands.pxi` finds how operands lie along
the result's axes, `plan.pxi` plans the blocks on which the loop runs, `blocks.pxi` runs it, and `chain.pxi` several.
This module shares the blocks among threads.
"""

cimport cython
cimport numpy as cnp
from cpython.object cimport Py_TPFLAGS_HEAPTYPE, PyObject
from cpython.pycapsule cimport PyCapsule_GetPointer
from cpython.ref cimport Py_INCREF
from libc.float cimport DBL_MAX, FLT_MAX
from libc.math cimport fabs, isfinite
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, llabs, malloc
from libc.string cimport memcmp, memcpy, memset

from contextvars import copy_context

import numpy as np

from bcast._copy.plan cimport Plan, make_plan
from bcast._copy.run cimport Matrix, copy_matrix_of, write_planned
from bcast._nest.core cimport (
    MAX_OPERANDS, Nest, coalesce_axes, drop_unit_axes, find_numpys_order, keep_rank, put_in_order, swap_axes,
)
from bcast._rules.alignment cimport merge
from bcast._runtime.arrays cimport MAX_AXES, are_alike, new_array, shape_of, stretched
from bcast._runtime.core cimport L1, LINE, count_threads, cut, overlap, pays, run_shares, target_number
from bcast._runtime.tuning cimport (
    APPLY_BLOCK_BYTES, APPLY_DIRECT_ITEMS, APPLY_FEW_ROWS, APPLY_LONG_ROW_ITEMS, APPLY_SEEN_BLOCKS,
    APPLY_SHARE_BYTES, APPLY_SHORT_ROW_ITEMS, APPLY_TILE_ROWS, APPLY_TILE_ROW_BYTES, APPLY_WHOLE_ITEMS, FEW_BOUNDS,
    MANY_BOUNDS, RELEASING_BYTES, SLOW_WEIGHT, THREAD_SHARES, WAKING_TIMES,
)

cdef extern from "numpy/arrayobject.h":
    cnp.ndarray PyArray_Empty(int rank, const cnp.npy_intp *shape, cnp.dtype dtype, int order)
    bint PyArray_CanCastTypeTo(cnp.PyArray_Descr *src, cnp.PyArray_Descr *dst, int casting)
    object PyArray_FromScalar(object scalar, cnp.PyArray_Descr *dtype)
    int PyArray_Pack(cnp.PyArray_Descr *descr, void *item, object value) except -1

cdef extern from "numpy/ufuncobject.h":
    ctypedef struct UFunc "PyUFuncObject":
        int nin, nout, core_enabled
        const char *name
    void PyUFunc_clearfperr() nogil
    int PyUFunc_getfperr() nogil
    int PyUFunc_GiveFloatingpointErrors(const char *name, int flags) except -1

cdef extern from "Python.h":
    bint PyType_HasFeature(object kind, unsigned long feature)
    long long PyLong_AsLongLongAndOverflow(object value, int *overflow) except? -1
    object PyObject_Vectorcall(object callable, PyObject **args, size_t n, PyObject *names)

cnp.import_array()
cnp.import_ufunc()

include "_apply/casts.pxi"
include "_apply/plan.pxi"
include "_apply/chain.pxi"
include "_apply/blocks.pxi"
include "_apply/loops.pxi"
include "_apply/operands.pxi"

cdef object UFUNC = np.ufunc
cdef object CLIP = np.clip, ROUND = np.round, AROUND = np.around    # even if they are replaced
cdef tuple ONLY_OUT = ("out",), ONLY_WHERE = ("where",), OUT_AND_WHERE = ("out", "where")
cdef enum:
    SCALAR_BYTES = 32       # for a Python scalar as an item of any dtype
    MOST_DECIMALS = 22      # of `round`, whose power of ten is exact in float64
    SATURATE = 5            # a casting of our own, beside NumPy's numbers for its ones
    HAS_NAN = 1             # among bounds
    HAS_ZERO = 2
cdef Py_ssize_t share_bytes = APPLY_SHARE_BYTES    # or what a test has set


def set_limits(share=APPLY_SHARE_BYTES):
    """Set the least number of bytes for a thread to write: for tests of small arrays."""
    global share_bytes
    if share < 1:
        raise ValueError(f"`share` expected bytes, at least 1, got {share}")
    share_bytes = share


cpdef compute(function, a, b, out):
    """Apply a function as NumPy broadcasts, here or by itself; NotImplemented where that takes more care."""
    cdef PyObject *args[2]
    cdef int number
    if (
        type(function) is not UFUNC or (<UFunc *> function).nin != 2 or (<UFunc *> function).core_enabled
        or not _is_plain(a) or not _is_plain(b)
    ):
        return NotImplemented
    number = _number_of(a)
    found = None if number == OTHER else _find(function, number, _number_of(b), NONE, cnp.NPY_SAME_KIND_CASTING)
    result = None if found is None else _apply_found(found, a, b, 0, -1, out, cnp.NPY_SAME_KIND_CASTING)
    if result is not None:
        return result
    if _is_bool(a) or _is_bool(b):
        a, b = with_plain_bools((a, b))
    if out is not None:
        return pass_on(function, a, b, 0, -1, out, None)
    args[0], args[1] = <PyObject *> a, <PyObject *> b
    try:    # Cython's own calls do not check that an error has an exception: NumPy's may have none
        return PyObject_Vectorcall(function, args, 2, NULL)
    except ValueError:      # the ufunc itself finds whether shapes fit
        merge((operand_shape(a), operand_shape(b)), "a, b")
        raise


cdef inline bint _is_plain(operand) noexcept:
    return cnp.PyArray_Check(operand) or type(operand) is float or type(operand) is int


cdef inline bint _is_bool(operand) noexcept:
    """Whether this is an array of bools, of the base class."""
    return cnp.PyArray_CheckExact(operand) and cnp.PyArray_TYPE(<cnp.ndarray> operand) == cnp.NPY_BOOL


cpdef tuple with_plain_bools(tuple operands):
    """Operands for NumPy, whose bools have bytes of 0 and 1.

    NumPy's loops compare the bytes of bools that stand for several items; other packages convert bytes as numbers.
    """
    cdef list plain = []
    for operand in operands:
        plain.append(with_plain_bytes(operand))
    return tuple(plain)


cpdef with_plain_bytes(operand):
    """The same of one operand, which is returned if it is no array of bools, or has these bytes."""
    if _is_bool(operand) and _has_other_bytes(<cnp.ndarray> operand):
        return _of_plain_bytes(<cnp.ndarray> operand)
    return operand


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
    """A copy of bools with bytes of 0 and 1; what is repeated by a stride of 0 still is, as it decides on layouts."""
    cdef list index = []
    cdef int i
    for i in range(cnp.PyArray_NDIM(bools)):
        index.append(slice(1) if cnp.PyArray_STRIDE(bools, i) == 0 else slice(None))
    once = bools[tuple(index)] if index else bools
    return stretched(once.view(np.uint8).astype(np.bool_), shape_of(bools))


cpdef tuple operand_shape(operand):
    """The shape of an array, of any subclass, or of a scalar."""
    return shape_of(<cnp.ndarray> operand) if cnp.PyArray_Check(operand) else ()


cpdef apply(cnp.ufunc function, a, b, int rule, axis, out, dtype, int casting):
    """Apply a binary ufunc to arrays or scalars that fit under a rule; None if that is left to NumPy, or to an error.

    `rule` is 0, 1, 2 or 3 for modes 'numpy', 'none', 'unidirectional' and 'pdpd'; in the last one `b` begins at `axis`
    of `a`, or for -1 ends with it. `dtype` is the one wanted for the result, or None; `casting` is NumPy's number for a
    rule, from 0 for 'no' to 4 for 'unsafe'.
    """
    cdef int wanted = NONE if dtype is None else _eligible((<cnp.dtype?> dtype).type_num) if dtype.isnative else OTHER
    found = _find(function, _number_of(a), _number_of(b), wanted, casting)
    return None if found is None else _apply_found(found, a, b, rule, axis, out, casting)


cdef _apply_found(Found found, a, b, int rule, axis, out, int casting):
    """The same, whose loop is known."""
    cdef MapPlan plan
    cdef char[2][32] scalars
    cdef int flags, k
    cdef int[4] told        # errors of the loop, and of operands
    if not _align(&plan, a, b, rule, axis) or not _has_items(&plan):
        return None
    plan.nest.n, plan.n_steps = 3, 0
    for k in range(2):
        if not _describe(&plan, k, b if k else a, <cnp.dtype> found.dtypes[k], found.casts[k], scalars[k]):
            return None
    plan.loop, plan.context, plan.auxdata = found.loop, <void *> found.context, found.auxdata
    plan.side_by_side, plan.row_loop = found.side_by_side, found.row_loop
    plan.slow_with_stride_0 = found.slow_with_stride_0
    plan.tells = found.tells
    plan.reshaped = _is_reshaped(&plan, 1) << 1 if rule == 3 else 0
    if found.compares_bytes:
        plan.bools = 3
        _convert_repeated_bools(&plan)
    if out is None:
        out = _fresh(&plan, <cnp.dtype> found.dtypes[2], 2)
    elif not _fits(&plan, out, <cnp.dtype> found.dtypes[2], casting):
        return None
    if found.uneven and not _has_sure_steps(&plan, found.ufunc is np.multiply):
        return None
    if found.tells:
        memset(told, 0, sizeof(told))
        _run_planned(&plan, found.shared, found.weight, True, told)
        flags = told[0]
        if told[1] | told[2]:
            flags |= _tell_conversions(&plan, told + 1, found.clears_errors)
        if not found.errors:
            flags = 0
    else:
        flags = _run(&plan, found.shared, found.weight, found.errors)
    if flags:
        PyUFunc_GiveFloatingpointErrors((<UFunc *> found.ufunc).name, flags)
    return out


cpdef pass_on(function, a, b, int rule, axis, out, where):
    """Call a ufunc with operands that fit under a rule, and whose result `out` and `where` fit, as they are.

    It returns NotImplemented where the shapes do not fit, or have to be looked into with more care.
    """
    cdef MapPlan plan
    cdef PyObject *args[4]
    cdef size_t n = 2
    cdef int k, start
    if cnp.PyArray_Check(a) and not cnp.PyArray_CheckExact(a) or cnp.PyArray_Check(b) and not cnp.PyArray_CheckExact(b):
        return NotImplemented
    args[0], args[1] = <PyObject *> a, <PyObject *> b
    if rule == 3 or not _align(&plan, a, b, rule, axis):    # where `b` may have to be reshaped
        return NotImplemented
    for k in range(2):
        operand = where if k else out
        if operand is None:
            continue
        start = plan.nest.rank - _rank_of(operand)
        if not cnp.PyArray_CheckExact(operand) or start < 0 or k == 0 and (
            start or not cnp.PyArray_ISWRITEABLE(<cnp.ndarray> operand)
        ) or not _are_equal(cnp.PyArray_DIMS(<cnp.ndarray> operand), plan.nest.shape + start, plan.nest.rank - start):
            return NotImplemented
        args[n] = <PyObject *> operand
        n += 1
    names = OUT_AND_WHERE if n == 4 else ONLY_WHERE if out is None else ONLY_OUT
    try:
        return PyObject_Vectorcall(function, args, 2, NULL if n == 2 else <PyObject *> names)
    except TypeError as error:
        if hasattr(error, "out_i"):     # as NumPy calls it where `out` has a dtype that casting forbids
            error.add_note("Give casting='unsafe', or an `out` of another dtype.")
        raise


cpdef run_steps(data, tuple steps, int rule, axis, dtype, int casting, out):
    """Convert an array, and apply ufuncs one after the other; None if that is left to others, or to an error.

    A step is a ufunc, or a tuple of one and its second operand, which fits what is before it under a rule, as for
    `apply`; or NumPy's `clip` with two bounds, or `round`, with decimals or without. `dtype` is what the array is
    converted to, or None; `casting` is for that and for `out`, as NumPy's number or as SATURATE. A new result is
    C-contiguous.
    """
    cdef MapPlan plan
    cdef char[MAX_OPERANDS * SCALAR_BYTES] scalars
    cdef int[MAX_STEPS + MAX_OPERANDS] errors
    cdef cnp.dtype given
    cdef int number = _number_of(data), k, weight = 1
    # The first casting, 'no', forbids another order of bytes, too.
    if not cnp.PyArray_CheckExact(data) or number == OTHER or len(steps) > MAX_OPERANDS - 2 or casting == 0:
        return None
    steps = _with_arrays(steps)
    plan.nest.rank = _rank_of(data)
    for step in steps:
        if type(step) is tuple and rule == 0:
            for k in range(1, len(<tuple> step)):
                plan.nest.rank = max(plan.nest.rank, _rank_of((<tuple> step)[k]))
    plan.nest.n, plan.n_steps, plan.side_by_side, plan.in_place, plan.row_loop = 1, 0, True, False, NULL
    plan.slow_with_stride_0, plan.slow_unfused = 0, 0
    plan.bools = plan.tells = plan.reshaped = 0
    if not _describe(&plan, 0, data, <cnp.dtype> cnp.PyArray_DESCR(<cnp.ndarray> data), NULL, NULL):
        return None
    _map_operand(&plan, 0, data, 0, -1)
    if dtype is not None and (
        not (steps or out is not None or dtype.isnative) or not _convert_step(&plan, &number, dtype, casting)
    ):
        return None
    if steps and (plan.operands[0].swapped or dtype is not None and not dtype.isnative):
        function = (<tuple> steps[0])[0] if type(steps[0]) is tuple and steps[0] else steps[0]
        if function is ROUND or function is AROUND:
            return None     # which alone keeps the order of bytes
    for step in steps:
        if not _function_step(&plan, &number, step, rule, axis, scalars, &weight):
            return None
    plan.slow_with_stride_0 |= weight == 1      # if no step has a loop: conversions repeat nothing
    plan.nest.n += 1
    if not _has_items(&plan):
        return None
    if out is not None and not (
        cnp.PyArray_CheckExact(out)
        and _convert_step(&plan, &number, <cnp.dtype> cnp.PyArray_DESCR(<cnp.ndarray> out), casting)
    ):
        return None
    if plan.n_steps == 0:
        return None
    if plan.bools:
        _convert_repeated_bools(&plan)
    given = cnp.PyArray_DescrFromType(number)
    if out is None:
        out = _fresh(&plan, given, 0)
    elif not _fits(&plan, out, given, 1):
        return None
    if plan.in_place:
        plan.slow_with_stride_0 |= plan.slow_unfused
    else:
        find_fused(&plan)   # what is in error is computed once more
    pair_axes(&plan)
    memset(errors, 0, sizeof(errors))
    _run_planned(&plan, True, max(1, weight // 2), True, errors)
    for k in range(plan.n_steps + (plan.nest.n if plan.tells else 0)):
        if errors[k]:
            _tell_errors(&plan, errors)
            break
    return out


cdef int _tell_errors(MapPlan *plan, int *errors) except -1:
    """Tell the floating-point errors of each step of a chain, and of the conversions that it asks for."""
    cdef const Step *step
    cdef Py_ssize_t most = np.getbufsize()
    cdef int[2] own
    cdef bint whole = True      # NumPy converts what the step takes as a whole, or need not convert it
    cdef int left, k, i
    for k in range(plan.n_steps):
        step = &plan.steps[k]
        if step.implied:
            whole = not step.in_pieces and step.taken <= most
            if not whole and not plan.steps[k + 1].clears_errors:
                errors[k + 1] |= errors[k]
            elif whole and errors[k]:
                PyUFunc_GiveFloatingpointErrors(step.name, errors[k])
            continue
        if k == 0 and not plan.operands[0].readable:
            whole = not step.in_pieces and step.taken <= most
        own = [step.operand, step.other]
        left = 0
        for i in range(2):
            if own[i]:
                whole = _told_apart(plan, own[i], whole, most, errors[plan.n_steps + own[i]], &left)
        if not step.clears_errors:
            errors[k] |= left
        whole = True
        if errors[k] and step.tells_errors:
            PyUFunc_GiveFloatingpointErrors(step.name, errors[k])
    return 0


cdef int _tell_conversions(MapPlan *plan, const int *errors, bint cleared) except -1:
    """Tell the errors of both operands' conversions that NumPy tells as such; return those that it tells of the loop.

    There are none of these if the loop has `cleared` them.
    """
    cdef Py_ssize_t most = np.getbufsize()
    cdef int left = 0, k
    cdef bint whole = True
    for k in range(2):
        whole = _told_apart(plan, k, whole, most, errors[k], &left)
    return 0 if cleared else left


cdef bint _told_apart(MapPlan *plan, int k, bint whole, Py_ssize_t most, int errors, int *left) except -1:
    """Tell the errors of an operand's conversion, or leave them to the loop; tell whether the next one is told apart.

    NumPy converts operands as a whole before the loop, if they have one axis and few items, until one has not.
    """
    cdef const Operand *operand = &plan.operands[k]
    cdef cnp.ndarray array
    if operand.array == NULL or operand.cast == NULL and operand.readable:
        return whole
    array = <cnp.ndarray> operand.array
    if cnp.PyArray_NDIM(array) > 1 or cnp.PyArray_SIZE(array) > most or plan.reshaped >> k & 1:
        whole = False
    if not whole:
        left[0] |= errors
    elif errors:
        PyUFunc_GiveFloatingpointErrors(b"cast", errors)
    return whole


cdef int _is_reshaped(const MapPlan *plan, int k) noexcept:
    """Whether an operand of one axis gets others after it before NumPy gets it, as in mode 'pdpd'."""
    cdef const Operand *operand = &plan.operands[k]
    return operand.array != NULL and operand.strides[plan.nest.rank - 1] == 0 and (
        cnp.PyArray_SIZE(<cnp.ndarray> operand.array) > 1
    )


cdef tuple _with_arrays(tuple steps):
    """Steps with NumPy's scalars as arrays without axes, which give the same."""
    cdef list plain = None, operands
    cdef int i, k
    for i in range(len(steps)):
        if type(steps[i]) is not tuple:
            continue
        operands = None
        for k in range(1, len(<tuple> steps[i])):
            if is_numpys_scalar((<tuple> steps[i])[k]):
                operands = list(<tuple> steps[i]) if operands is None else operands
                operands[k] = PyArray_FromScalar(operands[k], NULL)
        if operands is not None:
            plain = list(steps) if plain is None else plain
            plain[i] = tuple(operands)
    return steps if plain is None else tuple(plain)


cdef inline bint is_numpys_scalar(value) noexcept:
    """Whether this is a scalar of one of NumPy's own types, which are static ones."""
    return (
        type(value) is not float and type(value) is not int and not cnp.PyArray_Check(value)
        and cnp.PyArray_CheckScalar(value) and not PyType_HasFeature(type(value), Py_TPFLAGS_HEAPTYPE)
    )


cdef bint _function_step(
    MapPlan *plan, int *number, step, int rule, axis, char *scalars, int *weight,
) except -1:
    """Add a step of the user's as one of ufuncs, or as several; tell whether that can be."""
    cdef object function = step
    cdef object low, high
    cdef tuple given = ()
    cdef int first = 0, count = 0       # number of the first operand in what is given, and how many there are
    if type(step) is tuple:
        given, first = step, 1
        count = len(given) - first
        if count < 0:
            return False
        function = given[0]
    if function is CLIP and count == 2:
        low, high = given[1], given[2]
        if _is_whole(number[0]) and number[0] != cnp.NPY_BOOL:
            low, high = bounds_in_effect(low, high, cnp.PyArray_DescrFromType(number[0]))
        if low is None and high is None:
            return number[0] != cnp.NPY_BOOL        # which NumPy refuses; numbers stay what they are
        if low is None:
            return _ufunc_step(plan, number, np.minimum, (high,), 0, rule, axis, scalars, weight)
        if high is None:
            return _ufunc_step(plan, number, np.maximum, (low,), 0, rule, axis, scalars, weight)
        return _are_sure_bounds(number[0], low, high) and _ufunc_step(
            plan, number, CLIP_UFUNC, (low, high), 0, rule, axis, scalars, weight
        )
    if count != first:      # a tuple of the function and its one operand, or the function alone
        return False
    if function is ROUND or function is AROUND:
        return _round_step(plan, number, given[first] if count else 0, scalars, weight)
    return _ufunc_step(plan, number, function, given, first, rule, axis, scalars, weight)


cpdef tuple bounds_in_effect(low, high, cnp.dtype dtype):
    """The bounds to which NumPy's `clip` cuts integers of a dtype: none where a Python int lies beyond all of them."""
    limits = np.iinfo(dtype)
    if type(low) is int and low <= limits.min:
        low = None
    if type(high) is int and high >= limits.max:
        high = None
    return low, high


cdef bint _are_sure_bounds(int number, low, high) except -1:
    """Whether what comes of both bounds does not depend on how NumPy hands them to its loop.

    Of floats it does where a bound is NaN; and where one is 0, which may have either sign, unless each bound is one for
    all items.
    """
    cdef bint is_float = not _is_whole(number), alike = True
    cdef int kind, found = 0
    for bound in (low, high):
        kind = _number_of(bound)
        if kind == OTHER or kind == A_COMPLEX or (kind >= cnp.NPY_CFLOAT and kind <= cnp.NPY_CLONGDOUBLE):
            return False
        is_float = is_float or not (_is_whole(kind) or kind == AN_INT)
    if not is_float:
        return True
    for bound in (low, high):
        if cnp.PyArray_CheckExact(bound):
            if cnp.PyArray_SIZE(<cnp.ndarray> bound) > MANY_BOUNDS:
                return False
            alike = alike and cnp.PyArray_SIZE(<cnp.ndarray> bound) == 1
        found |= _look_at(bound)
    return not found & HAS_NAN and (alike or not found & HAS_ZERO)


cdef int _look_at(bound) except -1:
    """Which of NaN and 0 there are among the items of a bound; NaN, too, if there are many at steps."""
    cdef cnp.ndarray array
    cdef Py_ssize_t n
    cdef const void *items
    if not cnp.PyArray_CheckExact(bound):
        return HAS_NAN if bound != bound else 0 if bound else HAS_ZERO
    array = bound
    n, items = cnp.PyArray_SIZE(array), cnp.PyArray_DATA(array)
    if cnp.PyArray_IS_C_CONTIGUOUS(array) and cnp.PyArray_ISBEHAVED_RO(array):     # in half a microsecond, not in five
        if cnp.PyArray_TYPE(array) == cnp.NPY_FLOAT:
            return _look_at_items(<const float *> items, n)
        if cnp.PyArray_TYPE(array) == cnp.NPY_DOUBLE:
            return _look_at_items(<const double *> items, n)
        if cnp.PyArray_TYPE(array) == cnp.NPY_FLOAT16:
            return _look_at_halves(<const uint16_t *> items, n)
        if _is_whole(cnp.PyArray_TYPE(array)):
            if cnp.PyArray_ITEMSIZE(array) == 1:
                return _look_at_items(<const uint8_t *> items, n)
            if cnp.PyArray_ITEMSIZE(array) == 2:
                return _look_at_items(<const uint16_t *> items, n)
            return _look_at_items(<const uint32_t *> items, n) if cnp.PyArray_ITEMSIZE(array) == 4 else (
                _look_at_items(<const uint64_t *> items, n)
            )
    if n > FEW_BOUNDS:
        return HAS_NAN
    return (HAS_NAN if np.any(bound != bound) else 0) | (0 if np.all(bound) else HAS_ZERO)


ctypedef fused const_number:
    const float
    const double
    const uint8_t
    const uint16_t
    const uint32_t
    const uint64_t


cdef int _look_at_items(const_number *items, Py_ssize_t n) noexcept:
    cdef bint has_nan = False, has_zero = False
    cdef Py_ssize_t i
    for i in range(n):
        has_nan |= items[i] != items[i]
        has_zero |= items[i] == 0
    return (HAS_NAN if has_nan else 0) | (HAS_ZERO if has_zero else 0)


cdef int _look_at_halves(const uint16_t *items, Py_ssize_t n) noexcept:
    cdef bint has_nan = False, has_zero = False
    cdef Py_ssize_t i
    for i in range(n):
        has_nan |= (items[i] & 0x7fff) > 0x7c00
        has_zero |= (items[i] & 0x7fff) == 0
    return (HAS_NAN if has_nan else 0) | (HAS_ZERO if has_zero else 0)


cdef inline bint _is_whole(int number) noexcept:
    """Whether this is the number of a dtype of integers or of bools."""
    return 0 <= number <= cnp.NPY_ULONGLONG


cdef bint _round_step(MapPlan *plan, int *number, decimals, char *scalars, int *weight) except -1:
    """Add what NumPy's `round` does: it scales, rounds to whole numbers and scales back; tell whether that can be."""
    cdef double factor = 1
    if type(decimals) is not int:
        return False
    if _is_whole(number[0]) and number[0] != cnp.NPY_BOOL:
        return decimals >= 0        # integers stay what they are
    if number[0] != cnp.NPY_FLOAT and number[0] != cnp.NPY_DOUBLE and number[0] != cnp.NPY_FLOAT16:
        return False
    if not -MOST_DECIMALS <= decimals <= MOST_DECIMALS:
        return False
    for _ in range(abs(decimals)):
        factor *= 10
    if decimals == 0:
        return _ufunc_step(plan, number, np.rint, (), 0, 0, -1, scalars, weight)
    before, after = (np.multiply, np.divide) if decimals > 0 else (np.divide, np.multiply)
    return (
        _ufunc_step(plan, number, before, (factor,), 0, 0, -1, scalars, weight)
        and _ufunc_step(plan, number, np.rint, (), 0, 0, -1, scalars, weight)
        and _ufunc_step(plan, number, after, (factor,), 0, 0, -1, scalars, weight)
    )


cdef bint _ufunc_step(
    MapPlan *plan, int *number, function, tuple given, int first, int rule, axis, char *scalars, int *weight,
) except -1:
    """Add the step of a ufunc, and a conversion before it if need be; tell whether that can be.

    Its operands are what is given from number `first` on.
    """
    cdef Found found
    cdef int count = len(given) - first, k = plan.nest.n, slow = 0, before = plan.n_steps, i
    cdef int[2] kinds = [NONE, NONE]
    if type(function) is not UFUNC:
        return False
    # Each one may need two conversions before it, and the result two more; the output is an operand, too.
    if k + count >= MAX_OPERANDS or plan.n_steps + 5 > MAX_STEPS:
        return False
    for i in range(count):
        kinds[i] = _number_of(given[first + i])
    found = _find(function, number[0], kinds[0], kinds[1], cnp.NPY_SAME_KIND_CASTING)
    if found is None or found.uneven or not found.shared:
        return False
    if found.inexact and plan.n_steps == 0 and found.casts[0] == NULL and _runs_backwards(plan):
        return False
    if found.casts[0] != NULL and not _convert_step(plan, number, found.dtypes[0], 4):
        return False
    result = <cnp.dtype> found.dtypes[count + 1]
    plan.steps[plan.n_steps] = Step(
        (<UFunc *> function).name, found.errors, found.clears_errors, found.loop, <void *> found.context, found.auxdata,
        NULL,
        k if count > 0 else 0, k + 1 if count > 1 else 0, False, False, 0, result.itemsize, 0, found.fused,
    )
    plan.n_steps += 1
    if found.tells:
        _note_taken(plan, before)
    if found.compares_bytes:
        plan.bools |= 1 << k | (plan.n_steps == 1)      # what steps give is 0 or 1
    number[0] = (<cnp.dtype> result).type_num
    weight[0] += found.weight
    for i in range(count):
        if not _map_operand(plan, k + i, given[first + i], rule, axis) or not _describe(
            plan, k + i, given[first + i], <cnp.dtype> found.dtypes[i + 1], found.casts[i + 1],
            scalars + (k + i) * SCALAR_BYTES,
        ):
            return False
        if found.tells:
            plan.tells |= (found.tells >> (i + 1) & 1) << (k + i)
            if rule == 3:
                plan.reshaped |= _is_reshaped(plan, k + i) << (k + i)
        slow |= (found.slow_with_stride_0 >> (i + 1) & 1) << (k + i)
        plan.nest.n += 1
    if count:
        slow |= found.slow_with_stride_0 & 1
    if found.fused == NOT_FUSED:
        plan.slow_with_stride_0 |= slow
    else:
        plan.slow_unfused |= slow
    return True


cdef void _note_taken(MapPlan *plan, int before) noexcept:
    """Note how much is taken by the steps from one on: conversions, and the step that asks for them."""
    cdef Py_ssize_t items = 1
    cdef bint in_pieces = False
    cdef int i, k
    for i in range(plan.nest.rank):
        items *= plan.nest.shape[i]
    for k in range(plan.nest.n):
        in_pieces = in_pieces or plan.operands[k].array != NULL and (
            cnp.PyArray_NDIM(<cnp.ndarray> plan.operands[k].array) > 1
        )
    for k in range(before, plan.n_steps):
        plan.steps[k].implied = k < plan.n_steps - 1
        plan.steps[k].taken, plan.steps[k].in_pieces = items, in_pieces


cdef bint _convert_step(MapPlan *plan, int *number, cnp.dtype dtype, int casting) except -1:
    """Add the step that converts to a dtype in the machine's order of bytes, if that is another; tell if it can."""
    cdef cnp.dtype given = cnp.PyArray_DescrFromType(number[0])
    cdef Cast cast
    cdef uint8_t fused = NOT_FUSED
    cdef bint saturating = False
    learn(dtype)
    if _eligible(dtype.type_num) == OTHER:
        return False
    if _are_same(given, dtype):
        return True
    if not dtype.isnative:
        dtype = dtype.newbyteorder("=")
    if casting == SATURATE:
        saturating = saturates(given, dtype)
        casting = cnp.NPY_SAME_KIND_CASTING
    if not saturating and not PyArray_CanCastTypeTo(<cnp.PyArray_Descr *> given, <cnp.PyArray_Descr *> dtype, casting):
        return False
    if number[0] == cnp.NPY_UBYTE and dtype.type_num == cnp.NPY_FLOAT16 and fuses_halves(target_number):
        given = cnp.PyArray_DescrFromType(cnp.NPY_FLOAT)    # by the fused loop, in a tenth of the time
        _convert_step(plan, number, given, casting)
    if saturating:
        cast = saturating_cast_of(target_number, given.type_num, dtype.type_num, bfloat16)
    else:
        cast = sure_cast(given, dtype)
    if cast == NULL:
        return False
    if number[0] == cnp.NPY_UBYTE and dtype.type_num == cnp.NPY_FLOAT and FUSES:
        fused = FROM_BYTES
    elif number[0] == cnp.NPY_FLOAT and dtype.type_num == cnp.NPY_FLOAT16 and fuses_halves(target_number):
        fused = TO_HALVES
    elif number[0] == cnp.NPY_FLOAT and dtype.type_num == cnp.NPY_UBYTE and fuses_more(target_number):
        fused = TO_CUT_BYTES if saturating else TO_BYTES
    plan.steps[plan.n_steps] = Step(
        b"cast", not saturating, False, NULL, NULL, NULL, cast, 0, 0, False, False, 0, dtype.itemsize, 0, fused,
    )
    plan.n_steps += 1
    number[0] = dtype.type_num
    return True


cpdef bint saturates(cnp.dtype given, cnp.dtype dtype) except -1:
    """Whether the casting 'saturate' rounds real numbers of one dtype, or cuts them, to integers of another."""
    learn(given)
    if not _is_whole_dtype(dtype) or cnp.PyTypeNum_ISUSERDEF(dtype.type_num) and dtype.itemsize > 1:
        return False    # a package's own limits are found by trying all bytes
    if _is_whole_dtype(given):
        return not PyArray_CanCastTypeTo(
            <cnp.PyArray_Descr *> given, <cnp.PyArray_Descr *> dtype, cnp.NPY_SAFE_CASTING
        )
    # Packages say that casts of their floats to their integers are safe.
    return _holds_all_of(cnp.NPY_DOUBLE, given) if cnp.PyTypeNum_ISUSERDEF(given.type_num) else given.kind == c"f"


cdef bint _is_whole_dtype(cnp.dtype dtype) except -1:
    """Whether this is a dtype of integers, of NumPy or of another package."""
    if cnp.PyTypeNum_ISUSERDEF(dtype.type_num):
        return _holds_all_of(cnp.NPY_INT64, dtype)
    return dtype.kind == c"i" or dtype.kind == c"u"


cdef bint _holds_all_of(int number, cnp.dtype dtype) except -1:
    """Whether a dtype of NumPy's has all numbers of another package's one."""
    cdef cnp.dtype wide = cnp.PyArray_DescrFromType(number)
    return PyArray_CanCastTypeTo(<cnp.PyArray_Descr *> dtype, <cnp.PyArray_Descr *> wide, cnp.NPY_SAFE_CASTING)


cpdef choose(condition, x, y, out):
    """Choose items of `x` where a condition holds, and of `y` elsewhere; None if that is left to NumPy, or to an error.

    The condition is an array of bools, or of real numbers, which hold where they are not 0. `out` has the dtype that
    NumPy finds for `x` and `y`, or is None.
    """
    cdef MapPlan plan
    cdef char[3][32] scalars
    cdef cnp.dtype common = _common_dtype(x, y), dtype = cnp.PyArray_DescrFromType(cnp.NPY_BOOL)
    cdef Cast cast = NULL
    cdef int[5] told        # errors of operands' conversions, after those of the choice
    cdef int k
    if common is None or _number_of(condition) < 0 or not cnp.PyArray_CheckExact(condition):
        return None
    operands = condition, x, y
    plan.nest.n, plan.n_steps, plan.nest.rank = 4, 0, 0
    for k in range(3):
        plan.nest.rank = max(plan.nest.rank, _rank_of(operands[k]))
    for k in range(3):
        if cnp.PyArray_CheckExact(operands[k]) and not _find_cast(
            <cnp.dtype> cnp.PyArray_DESCR(<cnp.ndarray> operands[k]), dtype, &cast
        ):
            return None
        if not _map_operand(&plan, k, operands[k], 0, -1) or not _describe(
            &plan, k, operands[k], dtype, cast, scalars[k]
        ):
            return None
        dtype = common
    if not _has_items(&plan):
        return None
    plan.loop, plan.context, plan.auxdata = select_loop(target_number), NULL, <void *> common.itemsize
    plan.side_by_side = common.itemsize in (1, 2, 4, 8)     # which are chosen by vector code
    plan.slow_with_stride_0, plan.row_loop, plan.tells = 0, NULL, 0
    for k in range(1, 3):       # of other operands, NumPy tells no errors
        if plan.operands[k].cast != NULL and cnp.PyArray_NDIM(<cnp.ndarray> operands[k]) == 0:
            plan.tells |= 1 << k
    if out is None:
        out = _fresh(&plan, common, 3)
    elif not _fits(&plan, out, common, 0):
        return None
    if not plan.tells:
        _run(&plan, True, 1, False)
        return out
    memset(told, 0, sizeof(told))
    _run_planned(&plan, True, 1, True, told)
    for k in range(1, 3):
        if told[1 + k]:
            PyUFunc_GiveFloatingpointErrors(b"cast", told[1 + k])
    return out


cdef cnp.dtype _common_dtype(x, y):
    """The dtype that NumPy finds for the items of two operands; None if that is left to NumPy."""
    cdef cnp.dtype a, b
    if _number_of(x) == OTHER or _number_of(y) == OTHER:
        if not cnp.PyArray_CheckExact(x) or not cnp.PyArray_CheckExact(y):
            return None
        a, b = <cnp.dtype> cnp.PyArray_DESCR(<cnp.ndarray> x), <cnp.dtype> cnp.PyArray_DESCR(<cnp.ndarray> y)
        if a.hasobject or a.itemsize == 0 or (<object> a).names is not None or not a.isnative:
            return None
        return a if are_alike(a, b) else None
    return np.result_type(x, y)


cdef struct Work:           # what the shares have in common
    const MapPlan *plan
    char *own
    int shares
    bint errors
    int steps               # of a chain, or 1
    int slots               # of each share's flags
    int *flags              # for each share, floating-point errors of each step; and of operands, if some tell theirs


cdef inline int _run(MapPlan *plan, bint shared, int weight, bint errors) except -1:
    """Compute the result; return the floating-point errors."""
    cdef int flags = 0
    if not shared or not is_small(plan):
        _run_planned(plan, shared, weight, errors, &flags)
        return flags
    if errors:
        PyUFunc_clearfperr()
    run_small(plan)
    return PyUFunc_getfperr() if errors else 0


cdef void _run_planned(MapPlan *plan, bint shared, int weight, bint errors, int *flags) except *:
    """Plan the blocks and run them; note the floating-point errors of each step. A loop may set an exception.

    If operands tell the errors of their conversions, these come after the steps', for each of the nest's operands.
    """
    cdef Work work
    cdef char *memory
    cdef char *buffers
    cdef Py_ssize_t cost = cnp.PyArray_SIZE(<cnp.ndarray> plan.operands[plan.nest.n - 1].array), widest = 0, size
    cdef int threads = 1, i
    plan_blocks(plan)
    for i in range(plan.nest.n):
        widest = max(widest, plan.operands[i].loop_size)
    cost *= widest * weight
    if shared:
        threads = count_threads(cost, share_bytes, WAKING_TIMES, plan.blocks)
    work.shares = <int> min(plan.blocks, <Py_ssize_t> (THREAD_SHARES * threads)) if threads > 1 else 1
    work.plan, work.errors, work.steps = plan, errors, max(1, plan.n_steps)
    work.slots = work.steps + (plan.nest.n if plan.tells else 0)
    size = aligned_size(work.shares * work.slots * sizeof(int))
    memory = <char *> malloc(size + threads * plan.scratch_bytes + LINE)
    if memory == NULL:
        raise MemoryError
    buffers = <char *> aligned_size(<Py_ssize_t> memory)
    memset(buffers, 0, size)
    work.flags, work.own = <int *> buffers, buffers + size
    try:
        plan_copies(plan, work.own, threads)
        if threads > 1 or not shared or cost >= RELEASING_BYTES:
            held = []   # so that no other thread can resize them
            for i in range(plan.nest.n):
                if plan.operands[i].array != NULL:
                    held.append(<object> plan.operands[i].array)
            with nogil:
                run_shares(_run_share, &work, work.shares, threads)
        else:
            _run_share(&work, 0, 0)
        for i in range(work.shares * work.slots):
            flags[i % work.slots] |= work.flags[i]
    finally:
        free(memory)


cdef void _run_share(void *all_work, int i, int worker) noexcept nogil:
    """Run one share of the blocks."""
    cdef Work *work = <Work *> all_work
    cdef Py_ssize_t blocks = work.plan.blocks
    if work.errors:
        PyUFunc_clearfperr()
    run_blocks(
        work.plan, cut(blocks, i, work.shares), cut(blocks, i + 1, work.shares),
        work.own + worker * work.plan.scratch_bytes, work.flags + i * work.slots,
    )
    if work.errors and work.plan.n_steps <= 1:
        work.flags[i * work.slots] |= PyUFunc_getfperr()
