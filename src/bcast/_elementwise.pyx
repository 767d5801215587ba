# cython: cdivision=True
"""`apply` and `choose`: binary ufuncs and `where`, by blocks that stay in a first-level cache, on several threads.

NumPy gives the loop of a ufunc for its operands' dtypes; this module finds it once and keeps it. `_apply/nest.pyx`
makes blocks of operands of any layout and dtype, on which the loop runs. A call that is not sure to give NumPy's answer
is returned to the caller, who leaves it to NumPy.
"""

cimport cython
cimport numpy as cnp
from cpython.object cimport PyObject
from cpython.pycapsule cimport PyCapsule_GetPointer
from cpython.ref cimport Py_INCREF
from libc.float cimport DBL_MAX, FLT_MAX
from libc.math cimport fabs, isfinite
from libc.stdint cimport uint8_t, uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

import numpy as np

from bcast._apply.nest cimport (
    Cast, Loop, Nest, Operand, is_small, merge_axes, plan_blocks, plan_copies, run_blocks, run_small, sort_axes,
)
from bcast._runtime.arrays cimport MAX_AXES, new_array
from bcast._runtime.cpu cimport LINE, target_number
from bcast._runtime.memory cimport extent, overlap, pays
from bcast._runtime.threads cimport RELEASING, SHARES, WAKING, count_threads, cut, run_shares

cdef extern from "numpy/arrayobject.h":
    object PyArray_NewFromDescr(
        void *subtype, cnp.dtype descr, int nd, const cnp.npy_intp *dims, const cnp.npy_intp *strides, void *data,
        int flags, PyObject *obj,
    )
    bint PyArray_CanCastTypeTo(cnp.PyArray_Descr *src, cnp.PyArray_Descr *dst, int casting)
    int PyArray_Pack(cnp.PyArray_Descr *descr, void *item, object value) except -1
    void PyArray_UpdateFlags(cnp.ndarray array, int flags)
    bint PyDataType_REFCHK(cnp.PyArray_Descr *dtype)
    void *ARRAY "(&PyArray_Type)"

cdef extern from "numpy/ufuncobject.h":
    ctypedef struct UFunc "PyUFuncObject":
        int nin, nout, core_enabled
        const char *name
    void PyUFunc_clearfperr() nogil
    int PyUFunc_getfperr() nogil
    int PyUFunc_GiveFloatingpointErrors(const char *name, int flags) except -1

cdef extern from "_apply/casts.h":
    Cast cast_of "bcast_cast_of"(char src, int src_size, char dst, int dst_size)

cdef extern from "_apply/simd/half.h":
    Loop half_loop_of "bcast_half_loop_of"(int target, int is_bfloat, int function)

cdef extern from "_apply/select.h":
    Loop select_of "bcast_select_of"(int target, Py_ssize_t size)

cdef extern from "Python.h":
    """
    /* For the exception that a loop may have set. */
    static int bcast_take_exception(void) { return PyErr_Occurred() != NULL ? -1 : 0; }
    """
    int take_exception "bcast_take_exception"() except -1
    long long PyLong_AsLongLongAndOverflow(object value, int *overflow) except? -1
    object PyObject_Vectorcall(object callable, PyObject **args, size_t n, PyObject *names)

cnp.import_array()
cnp.import_ufunc()

cdef enum:
    SLOW = 8                # times as long takes an item of a slow function, at least
    CONTEXT_BYTES = 256     # more than the context of any loop has
    TABLE = 1024            # loops that are kept, about
    HUGE = 0x7fffffff       # bytes: this much, or more
    # What stands for the dtype of a Python scalar:
    AN_INT = -1
    A_FLOAT = -2
    A_COMPLEX = -3
    NONE = -4               # no dtype given
    OTHER = -5              # an operand that is left to NumPy

UNFIT = object()
cdef object _unfit = UNFIT
cdef tuple ONLY_OUT = ("out",), ONLY_WHERE = ("where",), OUT_AND_WHERE = ("out", "where")
cdef Py_ssize_t SHARE = 256 << 10       # bytes; another thread that would write less costs more than it saves

ctypedef struct CallInfo:   # what is in a capsule of NumPy's, at its beginning
    Loop loop
    void **context          # caller, method, and where the descriptors are
    void *auxdata
    cnp.npy_bool needs_gil, no_errors


@cython.final
@cython.auto_pickle(False)
cdef class Found:
    """The loop of a ufunc for two dtypes; or that there is none to be used."""

    cdef object ufunc, capsule, dtypes
    cdef long long code
    cdef Loop loop          # NULL if there is none
    cdef void *auxdata
    cdef char[CONTEXT_BYTES] context
    cdef int[3] sizes       # bytes of an item
    cdef Cast[2] casts
    cdef bint errors        # whether floating-point errors are looked for,
    cdef bint shared        # the loop may run on any thread,
    cdef int weight         # how long an item takes, in times of a sum of that size
    cdef bint uneven        # what it computes depends on steps: on whether they are 0, and on their signs
    cdef bint side_by_side


cdef struct Work:           # what the shares have in common
    const Nest *nest
    const char *once
    char *own
    int shares
    bint errors
    int *flags              # for each share, floating-point errors


cdef PyObject *table[TABLE]
cdef int n_found = 0
cdef object lock = object()
cdef object SAFE = None     # the ufuncs whose loops may run on any thread, for numbers; None before the probe
cdef set SLOW_ONES = set(), UNEVEN = set()
cdef object MULTIPLY = np.multiply
cdef dict HALVES = {}       # the functions that have loops for float16 and bfloat16 here, and their numbers
cdef int bfloat16 = OTHER   # the number that NumPy gave to the dtype of ml_dtypes, if that is known
cdef bint works = False     # whether NumPy gives loops as expected
cdef bytes CAPSULE = b"numpy_1.24_ufunc_call_info"


def set_limits(share=256 << 10):
    """Set the size from which threads share the work: for tests of small arrays.

    Parameters
    ----------
    share : int, optional
        The least number of bytes for a thread to write.

    Raises
    ------
    ValueError
        If it is less than 1.
    """
    global SHARE
    if share < 1:
        raise ValueError(f"`share` expected bytes, at least 1, got {share}")
    SHARE = share


def probe(name=b"numpy_1.24_ufunc_call_info"):
    """Test whether NumPy gives its loops as expected, and forget those that it gave: at the first call, and for tests.

    Parameters
    ----------
    name : bytes, optional
        What the capsules are called.

    Returns
    -------
    bool
        Whether it does. If not, all calls are left to the ufuncs.
    """
    global works, SAFE, HALVES, CAPSULE, n_found
    cdef Found found
    cdef double[3] x = [1.5, -2.0, 8.0]
    cdef double[3] y = [0.25, 5.0, -3.0]
    cdef double[3] z = [0.0, 0.0, 0.0]
    cdef char *data[3]
    cdef Py_ssize_t n = 3
    cdef Py_ssize_t[3] steps = [8, 8, 8]
    with cython.critical_section(lock):
        names = "add subtract multiply divide maximum minimum equal not_equal less less_equal greater greater_equal"
        halves = {}
        for each in names.split():      # in the order of the loops in half.h
            halves[getattr(np, each)] = len(halves)
        names += (
            " fmax fmin logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor left_shift "
            "right_shift floor_divide remainder fmod hypot arctan2 copysign nextafter logaddexp logaddexp2 heaviside "
            "power float_power gcd lcm"
        )
        safe = set()
        for each in names.split():
            safe.add(getattr(np, each))
        for each in ("floor_divide remainder fmod hypot arctan2 nextafter logaddexp logaddexp2 power float_power gcd "
                     "lcm").split():
            SLOW_ONES.add(getattr(np, each))
            UNEVEN.update((np.power, np.float_power, np.arctan2))
        HALVES = halves
        CAPSULE = name
        n_found = TABLE     # the table keeps what it has: somebody may be using it
        memset(table, 0, sizeof(table))
        n_found = 0
        SAFE = safe
        works = True
        found = _resolved(np.add, cnp.NPY_DOUBLE, cnp.NPY_DOUBLE, NONE, 4, 0)
        works = found.loop != NULL
        if works:
            data[0], data[1], data[2] = <char *> x, <char *> y, <char *> z
            found.loop(<void *> found.context, data, &n, steps, found.auxdata)
            works = z[0] == 1.75 and z[1] == 3 and z[2] == 5
    return works


cdef Found _find(function, int a, int b, int dtype, int casting):
    """The loop of a ufunc for the dtypes of two operands, the one wanted for the result, and a casting."""
    global n_found
    cdef long long code = (((<long long> (a + 8) << 12 | (b + 8)) << 12 | (dtype + 8)) << 3) | casting
    cdef size_t at = (<size_t> <PyObject *> function >> 4) * 31 + <size_t> (code * 40503 >> 9)
    cdef PyObject *kept
    while True:
        at &= TABLE - 1
        kept = table[at]
        if kept == NULL:
            break
        if (<Found> kept).code == code and (<Found> kept).ufunc is function:
            return <Found> kept
        at += 1
    if SAFE is None:
        probe()
        return _find(function, a, b, dtype, casting)
    if n_found > TABLE // 2:
        return None
    cdef Found found = _resolved(function, a, b, dtype, casting, code)
    with cython.critical_section(lock):
        while table[at & (TABLE - 1)] != NULL:      # another thread may have been here
            at += 1
        Py_INCREF(found)    # it stays
        table[at & (TABLE - 1)] = <PyObject *> found
        n_found += 1
    return found


cdef Found _resolved(function, int a, int b, int dtype, int casting, long long code):
    """Ask NumPy for a loop."""
    cdef Found found = Found.__new__(Found)
    cdef CallInfo *info
    cdef Loop own = NULL
    cdef int k
    found.ufunc, found.code = function, code
    cdef UFunc *c_function = <UFunc *> function
    if not works or c_function.nin != 2 or c_function.nout != 1 or c_function.core_enabled:
        return found
    kwargs = {"casting": ("no", "equiv", "safe", "same_kind", "unsafe")[casting]}
    if dtype != NONE:
        kwargs["signature"] = (None, None, cnp.PyArray_DescrFromType(dtype))
    try:
        dtypes, capsule = function._resolve_dtypes_and_context((_stand_in(a), _stand_in(b), None), **kwargs)
        function._get_strided_loop(capsule)
        info = <CallInfo *> PyCapsule_GetPointer(capsule, CAPSULE)
    except (TypeError, ValueError, AttributeError):     # which the ufunc will raise, or a new NumPy
        return found
    if info.loop == NULL or info.context == NULL:
        return found
    if function in HALVES:
        k = (<cnp.dtype> dtypes[0]).type_num
        if k == (<cnp.dtype> dtypes[1]).type_num and (k == cnp.NPY_FLOAT16 or k == bfloat16):
            own = half_loop_of(target_number, k == bfloat16, HALVES[function])
    if info.needs_gil and own == NULL:
        return found
    for k in range(3):
        if _eligible((<cnp.dtype> dtypes[k]).type_num) == OTHER or not dtypes[k].isnative:
            return found
        found.sizes[k] = dtypes[k].itemsize
    for k in range(2):
        given = b if k else a
        if given >= 0 and not _are_same(cnp.PyArray_DescrFromType(given), dtypes[k]):
            wanted = cnp.PyArray_DescrFromType(given)
            found.casts[k] = _cast(wanted, dtypes[k])
            if found.casts[k] == NULL or not np.can_cast(wanted, dtypes[k], "safe"):
                return found
    found.shared = function in SAFE
    if function is np.power and dtypes[0].kind == "i":
        return found        # negative powers raise
    if (function is np.fmax or function is np.fmin) and dtypes[0].kind == "f":
        return found        # which zero it is depends on where an item is in a row
    found.weight = SLOW if function in SLOW_ONES or not found.shared else 4 if own != NULL else 1
    found.uneven = function in UNEVEN or (function is MULTIPLY and dtypes[0].kind == "c")
    found.errors = not info.no_errors
    found.dtypes, found.capsule = dtypes, capsule
    found.auxdata = info.auxdata
    memcpy(found.context, info.context, 3 * sizeof(void *))    # the rest may not be initialised, and is 0 here
    found.loop = info.loop if own == NULL else own
    found.side_by_side = own != NULL
    return found


cdef inline Cast _cast(cnp.dtype src, cnp.dtype dst) noexcept:
    """What converts items; NULL if nothing here does."""
    return cast_of(src.kind, src.itemsize, dst.kind, dst.itemsize)


cdef _stand_in(int number):
    """What NumPy resolves in place of an operand."""
    if number == AN_INT:
        return int
    if number == A_FLOAT:
        return float
    return complex if number == A_COMPLEX else cnp.PyArray_DescrFromType(number)


cdef inline int _eligible(int number) noexcept:
    return number if 0 <= number <= cnp.NPY_CLONGDOUBLE or number in (cnp.NPY_FLOAT16, bfloat16) else OTHER


cdef inline int _number_of(operand) except? -99:
    """The number of an operand's dtype, or what stands for it."""
    cdef object kind = type(operand)
    cdef int number
    if cnp.PyArray_CheckExact(operand):
        number = _eligible(cnp.PyArray_TYPE(<cnp.ndarray> operand))
        return _learnt(<cnp.ndarray> operand) if number == OTHER else number
    if kind is int:
        return AN_INT
    if kind is float:
        return A_FLOAT
    if kind is complex:
        return A_COMPLEX
    return cnp.NPY_BOOL if kind is bool else OTHER


cdef int _learnt(cnp.ndarray array) except? -99:
    """The number of an array's dtype if it is the bfloat16 of ml_dtypes, which is then known."""
    global bfloat16
    cdef cnp.dtype dtype = <cnp.dtype> cnp.PyArray_DESCR(array)
    if bfloat16 == OTHER and dtype.type_num >= 256 and dtype.itemsize == 2:
        kind = (<object> dtype).type
        if kind.__module__ == "ml_dtypes" and kind.__name__ == "bfloat16":
            bfloat16 = dtype.type_num
    return bfloat16 if bfloat16 == dtype.type_num else OTHER


cpdef apply(cnp.ufunc function, a, b, int rule, axis, out, dtype, int casting):
    """Apply a binary ufunc to operands that fit under a rule; None if that is left to NumPy, or to an error.

    Parameters
    ----------
    function : numpy.ufunc
        A ufunc of two operands, without a signature.
    a, b : ndarray or scalar
        The operands.
    rule : int
        0, 1, 2, 3 for modes 'numpy', 'none', 'unidirectional' and 'pdpd'.
    axis : int
        In mode 'pdpd', the axis of `a` at which `b` begins, or -1.
    out : ndarray or None
        The array for the result.
    dtype : dtype or None
        Of the result, if the user named it.
    casting : int
        NumPy's number for a rule, from 0 for 'no' to 4 for 'unsafe'.

    Returns
    -------
    ndarray or None
        The result.
    """
    cdef int a_number = _number_of(a), b_number = _number_of(b), wanted = NONE, flags = 0, k
    cdef Found found
    cdef Nest nest
    cdef char[2][32] scalars
    if dtype is not None:
        wanted = _eligible((<cnp.dtype?> dtype).type_num) if dtype.isnative else OTHER
    if a_number == OTHER or b_number == OTHER or wanted == OTHER or not 2 <= casting <= 4:
        return None
    found = _find(function, a_number, b_number, wanted, casting)
    if found is None or found.loop == NULL:
        return None
    if not _align(&nest, a, b, rule, axis) or not _has_items(&nest):
        return None
    nest.n = 3
    for k in range(2):
        operand = b if k else a
        nest.operands[k].loop_size = found.sizes[k]
        if cnp.PyArray_CheckExact(operand):
            _describe(&nest.operands[k], <cnp.ndarray> operand, found.casts[k])
        elif _store_scalar(operand, <cnp.dtype> found.dtypes[k], scalars[k]):
            _describe_scalar(&nest.operands[k], scalars[k])
        else:
            return None
    if found.uneven and not _leads_forwards(&nest, out):
        return None
    nest.operands[2].loop_size = found.sizes[2]
    nest.loop, nest.context, nest.auxdata = found.loop, <void *> found.context, found.auxdata
    nest.side_by_side = found.side_by_side
    if out is None:
        out = _fresh(&nest, <cnp.dtype> found.dtypes[2])
    elif not _fits(&nest, out, a, b, None, <cnp.dtype> found.dtypes[2], casting):
        return None
    if found.uneven and not _is_even(&nest, function is MULTIPLY):
        return None
    if found.shared and is_small(&nest):
        if found.errors:
            PyUFunc_clearfperr()
        run_small(&nest)
        if found.errors:
            flags = PyUFunc_getfperr()
    else:
        flags = _run(&nest, a, b, None, out, found.shared, found.weight, found.errors)
    if flags:
        PyUFunc_GiveFloatingpointErrors((<UFunc *> function).name, flags)
    return out


cpdef pass_on(function, a, b, int rule, axis, out, where):
    """Call a ufunc with operands that fit under a rule, and whose result `out` and `where` fit, as they are.

    Returns
    -------
    object
        What the ufunc returns; UNFIT where the shapes do not fit, or have to be looked into with more care.
    """
    cdef Nest nest
    cdef PyObject *args[4]
    cdef size_t n = 2
    cdef int i, k, rank, start
    if cnp.PyArray_Check(a) and not cnp.PyArray_CheckExact(a) or cnp.PyArray_Check(b) and not cnp.PyArray_CheckExact(b):
        return _unfit
    if not _align(&nest, a, b, rule, axis):
        return _unfit
    if rule == 3 and cnp.PyArray_CheckExact(b) and cnp.PyArray_NDIM(<cnp.ndarray> b) != nest.rank:
        return _unfit
    args[0], args[1] = <PyObject *> a, <PyObject *> b
    for k in range(2):
        operand = where if k else out
        if operand is None:
            continue
        if not cnp.PyArray_CheckExact(operand):
            return _unfit
        rank = cnp.PyArray_NDIM(<cnp.ndarray> operand)
        start = nest.rank - rank
        if start and (k == 0 or start < 0):
            return _unfit
        for i in range(rank):
            if cnp.PyArray_DIM(<cnp.ndarray> operand, i) != nest.shape[start + i]:
                return _unfit
        args[n] = <PyObject *> operand
        n += 1
    return PyObject_Vectorcall(
        function, args, 2, NULL if n == 2 else <PyObject *> (
            OUT_AND_WHERE if n == 4 else ONLY_WHERE if out is None else ONLY_OUT
        )
    )


cpdef choose(condition, x, y, out):
    """Choose items of `x` where a condition holds, and of `y` elsewhere; None if that is left to NumPy, or to an error.

    Parameters
    ----------
    condition : ndarray
        Bools, or real numbers, which hold where they are not 0.
    x, y : ndarray or scalar
        The operands.
    out : ndarray or None
        The array for the result, of the dtype that NumPy finds for `x` and `y`.

    Returns
    -------
    ndarray or None
        The result.
    """
    cdef Nest nest
    cdef char[3][32] scalars
    cdef cnp.dtype common = _common_dtype(x, y), dtype = cnp.PyArray_DescrFromType(cnp.NPY_BOOL)
    cdef Operand *operand
    cdef cnp.ndarray array
    cdef Cast cast
    cdef int i, k
    if common is None or _number_of(condition) < 0 or not cnp.PyArray_CheckExact(condition):
        return None
    operands = condition, x, y
    nest.n = 4
    nest.rank = 0
    for k in range(3):
        if cnp.PyArray_CheckExact(operands[k]):
            nest.rank = max(nest.rank, cnp.PyArray_NDIM(<cnp.ndarray> operands[k]))
    for i in range(nest.rank):
        nest.shape[i] = 1
    for k in range(3):
        operand = &nest.operands[k]
        operand.loop_size = dtype.itemsize
        if cnp.PyArray_CheckExact(operands[k]):
            array = operands[k]
            cast = NULL
            if not _are_same(<cnp.dtype> cnp.PyArray_DESCR(array), dtype):
                cast = _cast(<cnp.dtype> cnp.PyArray_DESCR(array), dtype)
                if cast == NULL:
                    return None
            _describe(operand, array, cast)
            if not _lay(&nest, k, array, cnp.PyArray_NDIM(array), nest.rank - cnp.PyArray_NDIM(array), True):
                return None
        elif _store_scalar(operands[k], dtype, scalars[k]):
            _describe_scalar(operand, scalars[k])
            _lay(&nest, k, None, 0, nest.rank, True)
        else:
            return None
        dtype = common
    if not _has_items(&nest):
        return None
    nest.operands[3].loop_size = common.itemsize
    nest.loop, nest.context, nest.auxdata = select_of(target_number, common.itemsize), NULL, <void *> common.itemsize
    nest.side_by_side = False
    if out is None:
        out = _fresh(&nest, common)
    elif not _fits(&nest, out, condition, x, y, common, 0):
        return None
    _run(&nest, condition, x, y, out, True, 1, False)
    return out


cdef cnp.dtype _common_dtype(x, y):
    """The dtype that NumPy finds for the items of two operands; None if that is left to NumPy."""
    cdef cnp.dtype a, b
    if _number_of(x) == OTHER or _number_of(y) == OTHER:
        if not cnp.PyArray_CheckExact(x) or not cnp.PyArray_CheckExact(y):
            return None
        a, b = <cnp.dtype> cnp.PyArray_DESCR(<cnp.ndarray> x), <cnp.dtype> cnp.PyArray_DESCR(<cnp.ndarray> y)
        if PyDataType_REFCHK(<cnp.PyArray_Descr *> a) or a.itemsize == 0:
            return None
        if (<object> a).names is not None or not (<object> a).isnative:
            return None
        return a if a is b or (a.type_num == b.type_num and a.itemsize == b.itemsize and a == b) else None
    return np.result_type(
        <cnp.dtype> cnp.PyArray_DESCR(<cnp.ndarray> x) if cnp.PyArray_CheckExact(x) else x,
        <cnp.dtype> cnp.PyArray_DESCR(<cnp.ndarray> y) if cnp.PyArray_CheckExact(y) else y,
    )


cdef inline bint _are_same(cnp.dtype given, cnp.dtype dtype) noexcept:
    """Whether items are of the same dtype, but for the order of their bytes."""
    return given is dtype or given.type_num == dtype.type_num or cnp.PyArray_EquivTypenums(
        given.type_num, dtype.type_num
    )


cdef bint _leads_forwards(const Nest *nest, out) noexcept:
    """Whether no stride is negative."""
    cdef int i
    for i in range(nest.rank):
        if nest.operands[0].strides[i] < 0 or nest.operands[1].strides[i] < 0:
            return False
    if cnp.PyArray_CheckExact(out):
        for i in range(cnp.PyArray_NDIM(<cnp.ndarray> out)):
            if cnp.PyArray_STRIDE(<cnp.ndarray> out, i) < 0:
                return False
    return True


cdef bint _is_even(const Nest *nest, bint repeating) noexcept:
    """Whether NumPy's loop is sure to see adjacent items, or one for all: of `b` on all axes, or it is `repeating`."""
    cdef const Operand *operand
    cdef int last = nest.rank - 1, i, k
    if nest.shape[0] == 1 and nest.shape[last] == 1:
        return False
    for k in range(nest.n):
        operand = &nest.operands[k]
        if operand.strides[last] and operand.strides[last] != operand.size:
            return False
    if not repeating and nest.operands[1].strides[last] == 0:
        for i in range(last):
            if nest.operands[1].strides[i]:
                return False
    return True


cdef inline bint _has_items(const Nest *nest) noexcept:
    """Whether the result has axes, and items."""
    cdef int i
    for i in range(nest.rank):
        if nest.shape[i] == 0:
            return False
    return nest.rank > 0


cdef bint _align(Nest *nest, a, b, int rule, axis) except -1:
    """Find the shape of the result, and how the operands lie in it; tell whether they fit under the rule."""
    cdef int a_rank = cnp.PyArray_NDIM(<cnp.ndarray> a) if cnp.PyArray_CheckExact(a) else 0
    cdef int b_rank = cnp.PyArray_NDIM(<cnp.ndarray> b) if cnp.PyArray_CheckExact(b) else 0
    cdef int start = a_rank - b_rank, i
    nest.rank = a_rank if rule else max(a_rank, b_rank)
    if rule == 1 and start or rule == 3 and axis != -1:
        start = axis if rule == 3 and type(axis) is int and 0 <= axis < a_rank else -1
    if rule and start < 0:
        return False
    if rule == 3:
        while b_rank and cnp.PyArray_DIM(<cnp.ndarray> b, b_rank - 1) == 1:
            b_rank -= 1
        if start + b_rank > a_rank:
            return False
    for i in range(nest.rank):
        nest.shape[i] = 1
    if not _lay(nest, 0, a, a_rank, max(0, -start), True) or not _lay(nest, 1, b, b_rank, max(0, start), rule == 0):
        return False
    if rule == 1:
        for i in range(nest.rank):
            if cnp.PyArray_DIM(<cnp.ndarray> b, i) != nest.shape[i]:
                return False
    return True


cdef inline bint _lay(Nest *nest, int k, array, int rank, int start, bint stretching) noexcept:
    """Note the strides of an operand that begins at an axis of the result; tell whether it fits there."""
    cdef Py_ssize_t *strides = nest.operands[k].strides
    cdef Py_ssize_t length
    cdef int i
    for i in range(start):
        strides[i] = 0
    for i in range(start + rank, nest.rank):
        strides[i] = 0
    for i in range(rank):
        length = cnp.PyArray_DIM(<cnp.ndarray> array, i)
        if length == 1:
            strides[start + i] = 0
            continue
        strides[start + i] = cnp.PyArray_STRIDE(<cnp.ndarray> array, i)
        if nest.shape[start + i] == 1 and stretching:
            nest.shape[start + i] = length
        elif nest.shape[start + i] != length:
            return False
    return True


cdef inline void _describe(Operand *operand, cnp.ndarray array, Cast cast) noexcept:
    """Note what the nest needs to know of an array, but for its strides."""
    operand.data = <char *> cnp.PyArray_DATA(array)
    operand.size = cnp.PyArray_ITEMSIZE(array)
    operand.cast = cast
    operand.aligned = cnp.PyArray_ISALIGNED(array)
    operand.swapped = 0
    if not cnp.PyArray_ISNOTSWAPPED(array):
        operand.swapped = <int> operand.size // (2 if cnp.PyArray_ISCOMPLEX(array) else 1)


cdef inline void _describe_scalar(Operand *operand, char *item) noexcept:
    operand.data = item
    operand.size = operand.loop_size
    operand.cast = NULL
    operand.swapped = 0
    operand.aligned = True


cdef bint _store_scalar(value, cnp.dtype dtype, char *item) except -1:
    """Store a Python scalar as an item of a dtype; tell whether that is possible without an error or a warning."""
    cdef bint narrow = dtype.type_num == cnp.NPY_FLOAT16
    cdef object kind = type(value)
    cdef int beyond = 0, lost
    cdef long long whole = PyLong_AsLongLongAndOverflow(value, &beyond) if kind is int else 0
    if beyond:
        return False
    if dtype.kind == c"u" or dtype.kind == c"i":
        lost = 64 - 8 * <int> dtype.itemsize    # bits
        if kind is not int or (whole < 0 if dtype.kind == c"u" else whole << lost >> lost != whole) or (
            dtype.kind == c"u" and <long long> (<unsigned long long> whole << lost >> lost) != whole
        ):
            return False
    elif dtype.kind == c"b":
        if kind is not bool:
            return False
    elif kind is complex:
        if dtype.type_num != cnp.NPY_CDOUBLE:
            return False
    elif dtype.type_num == cnp.NPY_FLOAT or dtype.type_num == cnp.NPY_DOUBLE or narrow:
        if not -(<long long> 1 << 53) <= whole <= <long long> 1 << 53:
            return False
        if isfinite(<double> value) and fabs(<double> value) > (
            65504 if narrow else FLT_MAX if dtype.type_num == cnp.NPY_FLOAT else DBL_MAX
        ):
            return False
    else:
        return False
    PyArray_Pack(<cnp.PyArray_Descr *> dtype, item, value)
    return True


cdef object _fresh(Nest *nest, cnp.dtype dtype):
    """A new array for the result, whose axes are in the order of the operands'; and the nest's axes in that order."""
    cdef int[MAX_AXES] order
    cdef cnp.npy_intp[MAX_AXES] lengths
    cdef Operand *operand = &nest.operands[nest.n - 1]
    cdef Py_ssize_t size = dtype.itemsize, step
    cdef int i
    cdef bint same = sort_axes(nest, nest.n - 1, order)
    cdef cnp.ndarray array
    for i in range(nest.rank):
        lengths[i] = nest.shape[order[i]]
        size = size * lengths[i] if max(size, lengths[i]) >> 31 == 0 else HUGE
    if pays(size):
        array = new_array(dtype, cnp.PyArray_IntTupleFromIntp(nest.rank, lengths), "a, b")
    else:
        Py_INCREF(dtype)    # the call steals a reference
        array = PyArray_NewFromDescr(ARRAY, dtype, nest.rank, lengths, NULL, NULL, 0, NULL)
    step = dtype.itemsize
    for i in range(nest.rank - 1, -1, -1):
        operand.strides[order[i]] = step
        step *= lengths[i]
    if not same:    # nobody else has seen the array
        for i in range(nest.rank):
            cnp.PyArray_DIMS(array)[i] = nest.shape[i]
            cnp.PyArray_STRIDES(array)[i] = operand.strides[i]
        PyArray_UpdateFlags(array, cnp.NPY_ARRAY_C_CONTIGUOUS | cnp.NPY_ARRAY_F_CONTIGUOUS)
    _describe(operand, array, NULL)
    merge_axes(nest, NULL if same else order)
    return array


cdef bint _fits(Nest *nest, out, a, b, c, cnp.dtype dtype, int casting) except -1:
    """Whether the result can be written to the user's array, block by block; then it is described in the nest."""
    cdef int[MAX_AXES] order
    cdef Operand *operand = &nest.operands[nest.n - 1]
    cdef Cast cast = NULL
    cdef cnp.ndarray array
    cdef cnp.dtype given
    cdef int i, k
    if not cnp.PyArray_CheckExact(out):
        return False
    array = out
    given = <cnp.dtype> cnp.PyArray_DESCR(array)
    if cnp.PyArray_NDIM(array) != nest.rank or not cnp.PyArray_ISWRITEABLE(array):
        return False
    if given is not dtype:
        if not PyArray_CanCastTypeTo(<cnp.PyArray_Descr *> dtype, <cnp.PyArray_Descr *> given, casting):
            return False
        if not _are_same(given, dtype) or PyDataType_REFCHK(<cnp.PyArray_Descr *> given):
            cast = _cast(dtype, given)
            if cast == NULL:
                return False
    for i in range(nest.rank):
        if cnp.PyArray_DIM(array, i) != nest.shape[i]:
            return False
        operand.strides[i] = cnp.PyArray_STRIDE(array, i) if nest.shape[i] != 1 else 0
    if not cnp.PyArray_IS_C_CONTIGUOUS(array) and _overlaps_itself(nest, operand, cnp.PyArray_ITEMSIZE(array)):
        return False
    for k in range(nest.n - 1):
        each = (a, b, c)[k]
        if cnp.PyArray_CheckExact(each) and overlap(<cnp.ndarray> each, array):
            if cnp.PyArray_DATA(<cnp.ndarray> each) != cnp.PyArray_DATA(array):
                return False
            if cnp.PyArray_ITEMSIZE(<cnp.ndarray> each) != cnp.PyArray_ITEMSIZE(array):
                return False
            if cnp.PyArray_NDIM(<cnp.ndarray> each) != nest.rank:
                return False
            for i in range(nest.rank):      # those of axes of length 1, too: NumPy writes to a copy if they differ
                if cnp.PyArray_STRIDE(<cnp.ndarray> each, i) != cnp.PyArray_STRIDE(array, i):
                    return False
                if cnp.PyArray_DIM(<cnp.ndarray> each, i) != nest.shape[i]:
                    return False
    _describe(operand, array, cast)
    merge_axes(nest, NULL if sort_axes(nest, nest.n, order) else order)
    return True


cdef bint _overlaps_itself(const Nest *nest, const Operand *operand, Py_ssize_t size) noexcept:
    """Whether items of an array may overlap: they do not where each stride is longer than what is within."""
    cdef Py_ssize_t reach = size, step, nearest
    cdef bint[MAX_AXES] done
    cdef int i, _k, at
    for i in range(nest.rank):
        done[i] = nest.shape[i] == 1
    for _k in range(nest.rank):
        at = -1
        nearest = 0
        for i in range(nest.rank):
            step = operand.strides[i] if operand.strides[i] >= 0 else -operand.strides[i]
            if not done[i] and (at < 0 or step < nearest):
                at, nearest = i, step
        if at < 0:
            break
        if nearest < reach:
            return True
        done[at] = True
        reach += (nest.shape[at] - 1) * nearest
    return False


cdef int _run(Nest *nest, a, b, c, cnp.ndarray out, bint shared, int weight, bint errors) except -1:
    """Plan the blocks and run them; return the floating-point errors."""
    cdef Work work
    cdef char *memory = NULL
    cdef char *buffers
    cdef Py_ssize_t cost = cnp.PyArray_SIZE(out), widest = 0
    cdef int threads = 1, flags = 0, i
    plan_blocks(nest)
    for i in range(nest.n):
        widest = max(widest, nest.operands[i].loop_size)
    cost *= widest * weight
    if shared:
        threads = count_threads(cost, SHARE, WAKING * SHARE, nest.blocks)
    work.shares = <int> min(nest.blocks, <Py_ssize_t> (SHARES * threads)) if threads > 1 else 1
    work.nest, work.once, work.own, work.errors, work.flags = nest, NULL, NULL, errors, &flags
    if threads > 1 or nest.once_bytes or nest.own_bytes:
        i = (work.shares * sizeof(int) + LINE - 1) & -LINE
        memory = <char *> malloc(i + nest.once_bytes + threads * nest.own_bytes + LINE)
        if memory == NULL:
            raise MemoryError
        buffers = <char *> ((<uintptr_t> memory + LINE - 1) & -<uintptr_t> LINE)
        memset(buffers, 0, i)
        work.flags = <int *> buffers
        work.once = buffers + i
        work.own = buffers + i + nest.once_bytes
    try:
        if memory != NULL:
            plan_copies(nest, <char *> work.once, work.own, threads)
        if threads > 1 or not shared or cost >= RELEASING:
            _run_shares(&work, a, b, c, out, threads)
        else:
            _run_share(&work, 0, 0)
        for i in range(work.shares):
            flags |= work.flags[i]
    finally:
        free(memory)
    if not shared:
        take_exception()
    return flags


@cython.boundscheck(False)      # of buffers that are not empty
@cython.wraparound(False)
cdef int _run_shares(Work *work, a, b, c, out, int threads) except -1:
    """Run all shares without the GIL; the views hold the arrays meanwhile."""
    cdef const uint8_t[::1] _a, _b, _c, _out
    if cnp.PyArray_CheckExact(a):
        _a = extent(a)
    if cnp.PyArray_CheckExact(b):
        _b = extent(b)
    if cnp.PyArray_CheckExact(c):
        _c = extent(c)
    _out = extent(out)
    with nogil:
        if threads > 1:
            run_shares(_run_share, work, work.shares, threads)
        else:
            _run_share(work, 0, 0)
    return 0


cdef void _run_share(void *all_work, int i, int worker) noexcept nogil:
    """Run one share of the blocks."""
    cdef Work *work = <Work *> all_work
    cdef Py_ssize_t blocks = work.nest.blocks
    if work.errors:
        PyUFunc_clearfperr()
    run_blocks(
        work.nest, cut(blocks, i, work.shares), cut(blocks, i + 1, work.shares), work.once,
        work.own + worker * work.nest.own_bytes,
    )
    if work.errors:
        work.flags[i] = PyUFunc_getfperr()
