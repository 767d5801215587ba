# cython: cdivision=True, boundscheck=False, wraparound=False
"""`apply`, `run_steps`, `choose`: ufuncs, chains of them and `where`, by blocks in a first-level cache, on threads.

In: ufuncs, operands and what the user asked of the result, as the front end has checked them. Out: the result; or
nothing, where a call is not sure to give NumPy's answer, and so is left to it. `_apply/loops.pxi` has the loop that
NumPy gives for a ufunc and two dtypes, `casts.pxi` what converts to these, `operands.pxi` finds how operands lie along
the result's axes, `nest.pxi` plans the blocks on which the loop runs, `blocks.pxi` runs it, and `chain.pxi` several.
This module shares the blocks among threads.
"""

cimport cython
cimport numpy as cnp
from cpython.object cimport PyObject
from cpython.pycapsule cimport PyCapsule_GetPointer
from cpython.ref cimport Py_INCREF
from libc.float cimport DBL_MAX, FLT_MAX
from libc.math cimport fabs, isfinite
from libc.stdint cimport uint8_t
from libc.stdlib cimport free, llabs, malloc
from libc.string cimport memcmp, memcpy, memset

from contextvars import copy_context

import numpy as np

from bcast._copy.core cimport Matrix, Plan, copy_matrix_of, make_plan, write_planned
from bcast._rules.core cimport merge
from bcast._runtime.core cimport (
    L1, LINE, MAX_AXES, RELEASING, SHARES, WAKING, are_alike, count_threads, cut, new_array, overlap, pays,
    run_shares, shape_of, target_number,
)

cdef extern from "numpy/arrayobject.h":
    cnp.ndarray PyArray_Empty(int rank, const cnp.npy_intp *shape, cnp.dtype dtype, int order)
    bint PyArray_CanCastTypeTo(cnp.PyArray_Descr *src, cnp.PyArray_Descr *dst, int casting)
    int PyArray_Pack(cnp.PyArray_Descr *descr, void *item, object value) except -1

cdef extern from "numpy/ufuncobject.h":
    ctypedef struct UFunc "PyUFuncObject":
        int nin, nout, core_enabled
        const char *name
    void PyUFunc_clearfperr() nogil
    int PyUFunc_getfperr() nogil
    int PyUFunc_GiveFloatingpointErrors(const char *name, int flags) except -1

cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object value, int *overflow) except? -1
    object PyObject_Vectorcall(object callable, PyObject **args, size_t n, PyObject *names)

cnp.import_array()
cnp.import_ufunc()

include "_apply/casts.pxi"
include "_apply/nest.pxi"
include "_apply/chain.pxi"
include "_apply/blocks.pxi"
include "_apply/loops.pxi"
include "_apply/operands.pxi"

cdef object UFUNC = np.ufunc
cdef tuple ONLY_OUT = ("out",), ONLY_WHERE = ("where",), OUT_AND_WHERE = ("out", "where")
cdef Py_ssize_t APPLY_SHARE_BYTES = 256 << 10   # another thread that would write less costs more than it saves


def set_limits(share=256 << 10):
    """Set the least number of bytes for a thread to write: for tests of small arrays."""
    global APPLY_SHARE_BYTES
    if share < 1:
        raise ValueError(f"`share` expected bytes, at least 1, got {share}")
    APPLY_SHARE_BYTES = share


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
    cdef Nest nest
    cdef char[2][32] scalars
    cdef int flags, k
    if not _align(&nest, a, b, rule, axis) or not _has_items(&nest):
        return None
    nest.n, nest.n_steps = 3, 0
    for k in range(2):
        if not _describe(&nest.operands[k], b if k else a, <cnp.dtype> found.dtypes[k], found.casts[k], scalars[k]):
            return None
    nest.loop, nest.context, nest.auxdata = found.loop, <void *> found.context, found.auxdata
    nest.side_by_side, nest.spread, nest.row_loop = found.side_by_side, found.spread, found.row_loop
    if found.compares_bytes:
        nest.bools = 3
        _convert_repeated_bools(&nest)
    if out is None:
        out = _fresh(&nest, <cnp.dtype> found.dtypes[2], 2)
    elif not _fits(&nest, out, <cnp.dtype> found.dtypes[2], casting):
        return None
    if found.uneven and not _has_sure_steps(&nest, found.ufunc is np.multiply):
        return None
    flags = _run(&nest, found.shared, found.weight, found.errors)
    if flags:
        PyUFunc_GiveFloatingpointErrors((<UFunc *> found.ufunc).name, flags)
    return out


cpdef pass_on(function, a, b, int rule, axis, out, where):
    """Call a ufunc with operands that fit under a rule, and whose result `out` and `where` fit, as they are.

    It returns NotImplemented where the shapes do not fit, or have to be looked into with more care.
    """
    cdef Nest nest
    cdef PyObject *args[4]
    cdef size_t n = 2
    cdef int k, start
    if cnp.PyArray_Check(a) and not cnp.PyArray_CheckExact(a) or cnp.PyArray_Check(b) and not cnp.PyArray_CheckExact(b):
        return NotImplemented
    args[0], args[1] = <PyObject *> a, <PyObject *> b
    if rule == 3 or not _align(&nest, a, b, rule, axis):    # where `b` may have to be reshaped
        return NotImplemented
    for k in range(2):
        operand = where if k else out
        if operand is None:
            continue
        start = nest.rank - _rank_of(operand)
        if not cnp.PyArray_CheckExact(operand) or start < 0 or k == 0 and (
            start or not cnp.PyArray_ISWRITEABLE(<cnp.ndarray> operand)
        ) or not _are_equal(cnp.PyArray_DIMS(<cnp.ndarray> operand), nest.shape + start, nest.rank - start):
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
    `apply`. `dtype` is what the array is converted to, or None; `casting` is for that and for `out`. A new result is
    C-contiguous.
    """
    cdef Nest nest
    cdef char[MAX_OPERANDS][32] scalars
    cdef int[MAX_STEPS] errors
    cdef cnp.dtype given
    cdef Found found
    cdef int number = _number_of(data), k, weight = 1
    # The first casting, 'no', forbids another order of bytes, too.
    if not cnp.PyArray_CheckExact(data) or number == OTHER or len(steps) > MAX_OPERANDS - 2 or casting == 0:
        return None
    nest.rank = _rank_of(data)
    for step in steps:
        if type(step) is tuple and len(<tuple> step) == 2 and rule == 0:
            nest.rank = max(nest.rank, _rank_of((<tuple> step)[1]))
    nest.n, nest.n_steps, nest.side_by_side, nest.in_place, nest.row_loop = 1, 0, True, False, NULL
    nest.spread = not steps     # conversions repeat nothing
    nest.bools = 0
    if not _describe(&nest.operands[0], data, <cnp.dtype> cnp.PyArray_DESCR(<cnp.ndarray> data), NULL, NULL):
        return None
    _map_operand(&nest, 0, data, 0, -1)
    if dtype is not None and (
        not (steps or out is not None or dtype.isnative) or not _convert_step(&nest, &number, dtype, casting)
    ):
        return None
    for step in steps:
        found = _ufunc_step(&nest, &number, step, rule, axis, scalars[nest.n])
        if found is None:
            return None
        weight += found.weight
    nest.n += 1
    if not _has_items(&nest):
        return None
    if out is not None and not (
        cnp.PyArray_CheckExact(out)
        and _convert_step(&nest, &number, <cnp.dtype> cnp.PyArray_DESCR(<cnp.ndarray> out), casting)
    ):
        return None
    if nest.n_steps == 0:
        return None
    if nest.bools:
        _convert_repeated_bools(&nest)
    given = cnp.PyArray_DescrFromType(number)
    if out is None:
        out = _fresh(&nest, given, 0)
    elif not _fits(&nest, out, given, 1):
        return None
    if not nest.in_place:
        find_fused(&nest)   # what is in error is computed once more
    pair_axes(&nest)
    memset(errors, 0, sizeof(errors))
    _run_planned(&nest, True, max(1, weight // 2), True, errors)
    for k in range(nest.n_steps):
        if errors[k] and nest.steps[k].tells_errors:
            PyUFunc_GiveFloatingpointErrors(nest.steps[k].name, errors[k])
    return out


cdef Found _ufunc_step(Nest *nest, int *number, step, int rule, axis, char *scalar):
    """Add the step of a ufunc, with its operand, and with a conversion before it if need be; None if it is left."""
    cdef Found found
    cdef int kind = NONE, k = nest.n
    cdef bint pair = type(step) is tuple
    function = step
    if pair:
        if len(<tuple> step) != 2:
            return None
        function, operand = <tuple> step
        kind = _number_of(operand)
    found = _find(function, number[0], kind, NONE, cnp.NPY_SAME_KIND_CASTING) if type(function) is UFUNC else None
    if found is None or found.uneven or not found.shared:
        return None
    if found.inexact and nest.n_steps == 0 and found.casts[0] == NULL and _runs_backwards(nest):
        return None
    if found.casts[0] != NULL and not _convert_step(nest, number, found.dtypes[0], 4):
        return None
    given = <cnp.dtype> found.dtypes[<int> pair + 1]
    nest.steps[nest.n_steps] = Step(
        (<UFunc *> function).name, found.errors, found.loop, <void *> found.context, found.auxdata, NULL,
        k if pair else 0, given.itemsize, 0, found.fused,
    )
    nest.n_steps += 1
    if found.compares_bytes:
        nest.bools |= 1 << k | (nest.n_steps == 1)      # what steps give is 0 or 1
    number[0] = (<cnp.dtype> given).type_num
    if not pair:
        return found
    if not _map_operand(nest, k, operand, rule, axis) or not _describe(
        &nest.operands[k], operand, <cnp.dtype> found.dtypes[1], found.casts[1], scalar
    ):
        return None
    nest.spread |= (found.spread >> 1 & 1) << k | (found.spread & 1)
    nest.n += 1
    return found


cdef bint _convert_step(Nest *nest, int *number, cnp.dtype dtype, int casting) except -1:
    """Add the step that converts to a dtype in the machine's order of bytes, if that is another; tell if it can."""
    cdef cnp.dtype given = cnp.PyArray_DescrFromType(number[0])
    cdef Cast cast
    cdef uint8_t fused = NOT_FUSED
    learn(dtype)
    if _eligible(dtype.type_num) == OTHER:
        return False
    if _are_same(given, dtype):
        return True
    if not dtype.isnative:
        dtype = dtype.newbyteorder("=")
    if not PyArray_CanCastTypeTo(<cnp.PyArray_Descr *> given, <cnp.PyArray_Descr *> dtype, casting):
        return False
    if number[0] == cnp.NPY_UBYTE and dtype.type_num == cnp.NPY_FLOAT16 and fuses_halves(target_number):
        given = cnp.PyArray_DescrFromType(cnp.NPY_FLOAT)    # by the fused loop, in a tenth of the time
        _convert_step(nest, number, given, casting)
    cast = sure_cast(given, dtype)
    if cast == NULL:
        return False
    if number[0] == cnp.NPY_UBYTE and dtype.type_num == cnp.NPY_FLOAT and FUSES:
        fused = FROM_BYTES
    elif number[0] == cnp.NPY_FLOAT and dtype.type_num == cnp.NPY_FLOAT16 and fuses_halves(target_number):
        fused = TO_HALVES
    nest.steps[nest.n_steps] = Step(b"cast", True, NULL, NULL, NULL, cast, 0, dtype.itemsize, 0, fused)
    nest.n_steps += 1
    number[0] = dtype.type_num
    return True


cpdef choose(condition, x, y, out):
    """Choose items of `x` where a condition holds, and of `y` elsewhere; None if that is left to NumPy, or to an error.

    The condition is an array of bools, or of real numbers, which hold where they are not 0. `out` has the dtype that
    NumPy finds for `x` and `y`, or is None.
    """
    cdef Nest nest
    cdef char[3][32] scalars
    cdef cnp.dtype common = _common_dtype(x, y), dtype = cnp.PyArray_DescrFromType(cnp.NPY_BOOL)
    cdef Cast cast = NULL
    cdef int k
    if common is None or _number_of(condition) < 0 or not cnp.PyArray_CheckExact(condition):
        return None
    operands = condition, x, y
    nest.n, nest.n_steps, nest.rank = 4, 0, 0
    for k in range(3):
        nest.rank = max(nest.rank, _rank_of(operands[k]))
    for k in range(3):
        if cnp.PyArray_CheckExact(operands[k]) and not _find_cast(
            <cnp.dtype> cnp.PyArray_DESCR(<cnp.ndarray> operands[k]), dtype, &cast
        ):
            return None
        if not _map_operand(&nest, k, operands[k], 0, -1) or not _describe(
            &nest.operands[k], operands[k], dtype, cast, scalars[k]
        ):
            return None
        dtype = common
    if not _has_items(&nest):
        return None
    nest.loop, nest.context, nest.auxdata = select_loop(target_number), NULL, <void *> common.itemsize
    nest.side_by_side, nest.spread, nest.row_loop = False, 0, NULL
    if out is None:
        out = _fresh(&nest, common, 3)
    elif not _fits(&nest, out, common, 0):
        return None
    _run(&nest, True, 1, False)
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
    const Nest *nest
    char *own
    int shares
    bint errors
    int steps               # of a chain, or 1
    int *flags              # for each share and each step, floating-point errors


cdef inline int _run(Nest *nest, bint shared, int weight, bint errors) except -1:
    """Compute the result; return the floating-point errors."""
    cdef int flags = 0
    if not shared or not is_small(nest):
        _run_planned(nest, shared, weight, errors, &flags)
        return flags
    if errors:
        PyUFunc_clearfperr()
    run_small(nest)
    return PyUFunc_getfperr() if errors else 0


cdef void _run_planned(Nest *nest, bint shared, int weight, bint errors, int *flags) except *:
    """Plan the blocks and run them; note the floating-point errors of each step. A loop may set an exception."""
    cdef Work work
    cdef char *memory
    cdef char *buffers
    cdef Py_ssize_t cost = cnp.PyArray_SIZE(<cnp.ndarray> nest.operands[nest.n - 1].array), widest = 0, size
    cdef int threads = 1, i
    plan_blocks(nest)
    for i in range(nest.n):
        widest = max(widest, nest.operands[i].loop_size)
    cost *= widest * weight
    if shared:
        threads = count_threads(cost, APPLY_SHARE_BYTES, WAKING, nest.blocks)
    work.shares = <int> min(nest.blocks, <Py_ssize_t> (SHARES * threads)) if threads > 1 else 1
    work.nest, work.errors, work.steps = nest, errors, max(1, nest.n_steps)
    size = aligned_size(work.shares * work.steps * sizeof(int))
    memory = <char *> malloc(size + threads * nest.own_bytes + LINE)
    if memory == NULL:
        raise MemoryError
    buffers = <char *> aligned_size(<Py_ssize_t> memory)
    memset(buffers, 0, size)
    work.flags, work.own = <int *> buffers, buffers + size
    try:
        plan_copies(nest, work.own, threads)
        if threads > 1 or not shared or cost >= RELEASING:
            held = []   # so that no other thread can resize them
            for i in range(nest.n):
                if nest.operands[i].array != NULL:
                    held.append(<object> nest.operands[i].array)
            with nogil:
                run_shares(_run_share, &work, work.shares, threads)
        else:
            _run_share(&work, 0, 0)
        for i in range(work.shares * work.steps):
            flags[i % work.steps] |= work.flags[i]
    finally:
        free(memory)


cdef void _run_share(void *all_work, int i, int worker) noexcept nogil:
    """Run one share of the blocks."""
    cdef Work *work = <Work *> all_work
    cdef Py_ssize_t blocks = work.nest.blocks
    if work.errors:
        PyUFunc_clearfperr()
    run_blocks(
        work.nest, cut(blocks, i, work.shares), cut(blocks, i + 1, work.shares),
        work.own + worker * work.nest.own_bytes, work.flags + i * work.steps,
    )
    if work.errors and work.nest.n_steps <= 1:
        work.flags[i] = PyUFunc_getfperr()
