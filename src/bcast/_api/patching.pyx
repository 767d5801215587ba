"""The patch: replaces functions in NumPy's namespace with bcast's, and puts gates before NumPy's ufuncs.

Callers name the functions. Ufuncs stay the same objects: `_elementwise.pyx` has their gates, through which operators
pass as well. A `StandIn` replaces each other function. Its `take_*` function computes the calls whose result is
certainly NumPy's: those with base-class arrays of plain dtypes, and arguments of the usual types. NumPy computes all
other calls, which are counted by `Reason`. It also computes the calls that raise, so that errors have NumPy's words.
There is one exception, lengths of results that exceed an index: NumPy's `repeat` and `tile` compute them modulo 2**64,
and write past the end of their memory. `wrapping.py` finds these calls. An iterator yields its items only once, so
`wrapping.py` passes on the items that it has read.

The GIL, or a mutex in builds without one, guards all patches. No Python code runs and no signal is handled meanwhile,
because this module is compiled. A critical section is no guard: it is suspended while another lock is awaited, as to
set an attribute of a module. Other locks allocate memory when they are released.
"""

cimport cython
cimport numpy as cnp
from cpython.object cimport PyObject, PyTypeObject
from libc.stdint cimport uint32_t, uint64_t

from bcast._api.copies cimport are_ones
from bcast._api.reductions cimport (
    Reduction, are_usual, found_by_core, is_everywhere, reduced, reduction, without_nan,
)
from bcast._elementwise cimport choose, close_gate, counts_at_gate, has_gate, open_gate, time_gates
from bcast._reduce.vectors cimport cross_vectors, dot_vectors, transform_vectors
from bcast._reduction cimport has_kernels
from bcast._rules.arguments cimport all_plain
from bcast._runtime.arrays cimport is_contiguous, shape_of, size_of
from bcast._runtime.numpy_private cimport function_of_method, methods_module
from bcast._runtime.tuning cimport METHOD_ROW_ITEMS
from bcast._runtime.vectorcall cimport (
    BuiltIn, PyCFunction_GET_SELF, PyVectorcall_NARGS, Vectorcall, built_in, built_in_of, take_vectorcalls,
)

import atexit
from collections.abc import Iterable
from contextlib import ContextDecorator
from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction
from types import FunctionType, MethodType
from typing import NamedTuple

import numpy as np
from numpy import generic, iinfo, integer, ndarray

from bcast._api.converted import as_base as base_of
from bcast._api.copies import broadcast, broadcast_arrays, meshgrid, repeat, tile
from bcast._api.vectors import norm
from bcast._api.wrapping import read_for_tile, refusal_of_repeat, refusal_of_tile
from bcast._apply.ufuncs import costs_of_ufuncs
from bcast._rules.arguments import FLOATS, INT64, show

cdef extern from "Python.h":
    object PyObject_Vectorcall(object, PyObject *const *, size_t, PyObject *)
    long long PyLong_AsLongLongAndOverflow(object value, int *overflow) except? -1

cdef extern from "Python.h":
    """
    #ifdef Py_GIL_DISABLED
    static PyMutex bcast_patching = {0};
    #define bcast_begin_patching() PyMutex_Lock(&bcast_patching)
    #define bcast_end_patching() PyMutex_Unlock(&bcast_patching)
    #else
    #define bcast_begin_patching() ((void) 0)
    #define bcast_end_patching() ((void) 0)
    #endif
    """
    void begin_patching "bcast_begin_patching"()
    void end_patching "bcast_end_patching"()

cdef extern from "_api/methods.h":
    enum:
        AN_EXTREME "BCAST_AN_EXTREME"
        A_TRUTH "BCAST_A_TRUTH"
        A_SUM "BCAST_A_SUM"
        A_PRODUCT "BCAST_A_PRODUCT"
        ANOTHER_DTYPE "BCAST_ANOTHER_DTYPE"
        TOO_SMALL "BCAST_TOO_SMALL"
    ctypedef struct MethodGate "bcast_method_gate":
        Py_ssize_t *passed
        BuiltIn former
        PyObject *former_self
        int finds
    Vectorcall call_stand_in "bcast_call_stand_in"
    Py_ssize_t gate_offset "bcast_gate_offset"
    BuiltIn call_for_method "bcast_call_for_method"
    bint gain_by_threads "bcast_gain_by_threads"(Py_ssize_t items)
    int why_not_method "bcast_why_not_method"(int finds, cnp.ndarray array, object axis)
    void set_method_gate "bcast_set_method_gate"(MethodGate *gate, bint is_open)

cdef extern from "_runtime/clock.h":
    double clock "bcast_clock"() nogil

cnp.import_array()

cdef object NO_VALUE = np._NoValue
cdef object BOOL = np.dtype(bool)
cdef dict NO_OPTIONS = {}
cdef object FILE_ARRAY = np.memmap      # its arrays differ from others only in the class of some results

DEFAULT_NAMES = ("copies", "ufuncs", "reductions")      # groups whose results have NumPy's bits
cdef dict _places               # the places of functions, by the functions' names
cdef bint is_timing = False
cdef object _patches = None     # the patches of `patch_numpy`: the names of the last one, and the earlier patches


# ---- Reasons to pass on a call, and places of functions ----


class PatchInfo(NamedTuple):
    """The calls of a NumPy function while it was patched: how many bcast took, and how many it passed on."""

    taken: int
    passed: int
    items: int              # items in the results of taken calls
    seconds_taken: float    # the time of taken calls while calls were timed
    seconds_passed: float


cdef enum:
    REASONS = 7                 # the number of reasons to pass on a call

    AN_ARRAY = 0                # what the first argument of a function is
    SEVERAL = 1
    TERMS = 2

    SURELY_SMALL = 1 << 16      # products of smaller counts and the length of any array do not wrap around


@cython.final
@cython.auto_pickle(False)
cdef class Reason:
    """Why NumPy computes a call."""

    cdef Py_ssize_t number
    cdef str name

    def __cinit__(self, Py_ssize_t number, str name not None):
        self.number = number
        self.name = name


cdef Reason NO_ARRAY = Reason(0, "no array")    # a list, a number, or another library's array
cdef Reason SUBCLASS = Reason(1, "subclass")
cdef Reason DTYPE = Reason(ANOTHER_DTYPE, "dtype")
cdef Reason KEYWORD = Reason(3, "keyword")
cdef Reason ARGUMENT = Reason(4, "argument")    # an argument of a kind or value that only NumPy accepts
cdef Reason SMALL = Reason(TOO_SMALL, "small")          # too small to gain
cdef Reason ERROR = Reason(6, "error")
cdef tuple _reasons = (NO_ARRAY, SUBCLASS, DTYPE, KEYWORD, ARGUMENT, SMALL, ERROR)


cdef class StandIn


@cython.final
@cython.auto_pickle(False)
cdef class Place:
    """A function's place in NumPy's namespace. Changing its attributes allocates nothing."""

    cdef object owner           # the module that has the function
    cdef str attribute          # the function's name there
    cdef object take            # the `take_*` function
    cdef Py_ssize_t least       # the fewest positional arguments of a call that is taken
    cdef int first              # the first argument: AN_ARRAY, SEVERAL arrays, or TERMS to reduce along axes
    cdef object reading         # returns the arguments as NumPy's function would read them; or None
    cdef object refusal         # returns the error for a length that wraps around in NumPy's function; or None
    cdef int finds              # the kind of result for array methods; 0 if no method calls the function
    cdef Py_ssize_t uses        # the number of patches
    cdef StandIn stand_in       # the stand-in of the last patch, or None
    cdef object placed          # the new function: the stand-in, or a built-in function that calls it
    cdef Py_ssize_t taken       # taken calls; without a GIL, simultaneous calls may be counted once
    cdef Py_ssize_t items       # items in the results of these calls
    cdef Py_ssize_t[REASONS] passed
    cdef double seconds_taken, seconds_passed       # while calls are timed

    # Each field has a keyword, so that a row of the table names only the fields that differ from the defaults.
    def __cinit__(
        self, take not None, Py_ssize_t least=0, int first=AN_ARRAY, reading=None, refusal=None, int finds=0
    ):
        self.finds = finds
        self.take = take
        self.least = least
        self.first = first
        self.reading = reading
        self.refusal = refusal

    cdef inline Reason why_not(self, PyObject *const *arguments, Py_ssize_t count, PyObject *names):
        """None if the arguments allow a call of `take`, which alone costs up to 7 % of a small NumPy call."""
        cdef Py_ssize_t i
        if count == 0 or count < self.least:
            return None if self.least == 0 else ARGUMENT
        for i in range(count):
            each = <object> arguments[i]
            if cnp.PyArray_Check(each) and cnp.PyArray_TYPE(<cnp.ndarray> each) == cnp.NPY_OBJECT:
                return DTYPE
        each = <object> arguments[0]
        if self.first == SEVERAL:
            return why_not_one(each)
        if self.first == TERMS and cnp.PyArray_CheckExact(each):
            return why_not_terms(<cnp.ndarray> each, arguments + count, names)
        return why_no_array(each)

    cdef inline Reason why_not_reduced(self, PyObject *const *arguments, Py_ssize_t count):
        """None if a method's array and axis allow a call of `take`, which is then as fast as NumPy."""
        cdef int number
        if count < 2 or not cnp.PyArray_CheckExact(<object> arguments[0]):
            return why_no_array(<object> arguments[0]) or SUBCLASS if count > 0 else ARGUMENT
        number = why_not_method(self.finds, <cnp.ndarray> arguments[0], <object> arguments[1])
        if number >= 0:
            return <Reason> _reasons[number]
        return SMALL if has_few_long_rows(<cnp.ndarray> arguments[0], <object> arguments[1]) else None

    cdef tuple counts(self):
        """The taken calls, the items of their results, the passed calls by reason, and the seconds of both kinds."""
        cdef list passed = []
        cdef Py_ssize_t i
        for i in range(REASONS):
            passed.append(self.passed[i])
        return self.taken, self.items, tuple(passed), self.seconds_taken, self.seconds_passed

    cdef bint is_patched(self) except -1:
        if self.stand_in is None or not self.stand_in.active:
            return False
        return getattr(self.owner, self.attribute, None) is self.placed


@cython.final
@cython.auto_pickle(False)
cdef class UfuncPlace:
    """A ufunc. While it is patched, its calls go through a gate. Opening the gate allocates nothing."""

    cdef object function
    cdef int cost               # the time of an item, relative to an addition
    cdef Py_ssize_t uses        # the number of patches
    cdef bint was_patched

    def __cinit__(self, function not None, int cost):
        self.function = function
        self.cost = cost


cdef Reason why_not_terms(cnp.ndarray array, PyObject *const *values, PyObject *names):
    """The reason to pass on a reduction, if the array or a mask shows it; `take` would need ten times as long."""
    cdef Py_ssize_t i
    if cnp.PyArray_SIZE(array) < 2:
        return SMALL
    for i in range(0 if names == NULL else len(<tuple> names)):
        if (<tuple> names)[i] == "where" and cnp.PyArray_Check(<object> values[i]):
            return KEYWORD
    return None


cdef bint has_few_long_rows(cnp.ndarray array, axis) except -1:
    """Whether the array has a few long rows of bools: NumPy may stop in each before another thread would wake."""
    cdef int last = cnp.PyArray_NDIM(array) - 1
    if cnp.PyArray_TYPE(array) != cnp.NPY_BOOL or not cnp.PyArray_IS_C_CONTIGUOUS(array) or type(axis) is not int:
        return False
    if axis != -1 and axis != last:
        return False
    return cnp.PyArray_DIM(array, last) >= METHOD_ROW_ITEMS and not gain_by_threads(cnp.PyArray_SIZE(array))


cdef inline Reason why_no_array(argument):
    """None for an array of the base class, or of a mapped file."""
    if cnp.PyArray_CheckExact(argument) or type(argument) is FILE_ARRAY:
        return None
    return SUBCLASS if cnp.PyArray_Check(argument) else NO_ARRAY


@cython.final
@cython.auto_pickle(False)
cdef class StandIn:
    """Replaces a NumPy function, and has that function's name, docstring and signature.

    Calls whose arguments qualify go to the `take` function of its place, which returns a `Reason` if it declines. All
    other calls go to `original`. So do calls for which `take` raises: `original` then raises its own error.
    """

    cdef Vectorcall call
    cdef MethodGate gate                # its `former` is the original's C function, or NULL if Python must call it
    cdef readonly object original
    cdef Place place
    cdef bint active                    # otherwise, all calls are passed on, and none is counted
    cdef object __weakref__

    def __cinit__(self, original not None, Place place not None):
        self.call = call
        self.gate.former = built_in_of(original)
        self.gate.former_self = NULL if self.gate.former == NULL else PyCFunction_GET_SELF(original)
        self.gate.finds = place.finds
        self.gate.passed = place.passed
        self.original = original
        self.place = place
        self.set_active(True)

    cdef int set_active(self, bint active) except -1:
        self.active = active
        set_method_gate(&self.gate, active and not is_timing)
        return 0

    def __getattr__(self, str name not None):
        return getattr(self.original, name)

    @property
    def __doc__(self):
        return self.original.__doc__

    @property
    def __module__(self):
        return self.original.__module__

    def __get__(self, instance, owner):
        return self if instance is None else MethodType(self, instance)

    def __repr__(self):
        return repr(self.original)

    def __reduce__(self):
        return self.original.__reduce__()

    # Libraries keep tables of NumPy's functions. A stand-in works as a key for its original.
    def __hash__(self):
        return hash(self.original)

    def __eq__(self, other):
        return self.original == (other.original if type(other) is StandIn else other)


# ---- Calls of stand-ins ----


cdef struct Given:
    # The arguments of a vectorcall.
    PyObject *const *arguments
    size_t count            # number of positional arguments, with a flag of Python's
    PyObject *names         # a tuple of the names of keyword arguments, which follow; NULL if there are none


cdef inline object call_with(object function, const Given *given):
    return PyObject_Vectorcall(function, given.arguments, given.count, given.names)


cdef object call(object callee, PyObject *const *arguments, size_t count, PyObject *names):
    """Call the `take` function of a stand-in's place, or the original."""
    cdef StandIn stand_in = <StandIn> callee
    if not stand_in.active:
        return PyObject_Vectorcall(stand_in.original, arguments, count, names)

    return consider(stand_in, arguments, count, names)


cdef object placeable(StandIn stand_in):
    """The object for NumPy's namespace: a built-in function if an array method calls one, or the stand-in."""
    return built_in(call_for_method, stand_in) if stand_in.gate.finds and stand_in.gate.former != NULL else stand_in


cdef StandIn stand_in_of(function):
    """The stand-in behind a function of NumPy's namespace, or None."""
    if built_in_of(function) == call_for_method:
        return <StandIn> PyCFunction_GET_SELF(function)
    return <StandIn> function if type(function) is StandIn else None


cdef object consider(StandIn stand_in, PyObject *const *arguments, size_t count, PyObject *names):
    """Call the `take` function of an active stand-in's place, or the original."""
    cdef Place place = stand_in.place
    cdef Reason reason
    cdef double begun = clock() if is_timing else 0

    if place.finds:
        reason = place.why_not_reduced(arguments, PyVectorcall_NARGS(count))
    else:
        reason = place.why_not(arguments, PyVectorcall_NARGS(count), names)
    if reason is None:
        try:
            result = PyObject_Vectorcall(place.take, arguments, count, names)
        except Exception:
            result = ERROR
        if type(result) is not Reason:
            place.taken += 1
            place.items += items_of(result)
            if is_timing:
                place.seconds_taken += clock() - begun
            return result
        reason = <Reason> result

    if place.refusal is not None and may_wrap(arguments, PyVectorcall_NARGS(count), names):
        return pass_unless_it_wraps(stand_in, reason, Given(arguments, count, names))
    place.passed[reason.number] += 1
    if not is_timing:
        return PyObject_Vectorcall(stand_in.original, arguments, count, names)
    begun = clock()
    result = PyObject_Vectorcall(stand_in.original, arguments, count, names)
    place.seconds_passed += clock() - begun
    return result


cdef inline Py_ssize_t items_of(result) except -1:
    """Count the items of a result: an array, several arrays, or a scalar."""
    cdef Py_ssize_t items = 0
    if cnp.PyArray_Check(result):
        return cnp.PyArray_SIZE(<cnp.ndarray> result)
    if type(result) is not tuple and type(result) is not list:
        return 1
    for each in result:
        items += items_of(each)
    return items


# ---- Lengths that wrap around in NumPy's functions ----


cdef object pass_unless_it_wraps(StandIn stand_in, Reason reason, Given given):
    """Have the original run a call, or raise the error for a length that it would compute modulo 2**64."""
    cdef Place place = stand_in.place
    read = None
    if place.reading is not None:
        try:
            read = call_with(place.reading, &given)
        except TypeError:   # the function lacks such arguments
            read = None
        except Exception:   # an iterator raised
            place.passed[reason.number] += 1
            raise

    error = error_of_length(place, read, &given)
    if error is not None:
        place.taken += 1
        raise error
    place.passed[reason.number] += 1
    return call_with(stand_in.original, &given) if read is None else stand_in.original(*read)


cdef object error_of_length(Place place, read, const Given *given):
    """The error for a length that the original would compute modulo 2**64; None if there is no such length."""
    try:
        return call_with(place.refusal, given) if read is None else place.refusal(*read)
    except MemoryError:
        raise
    except Exception:   # NumPy refuses such arguments
        return None


cdef bint may_wrap(PyObject *const *arguments, Py_ssize_t count, PyObject *names) except -1:
    """Whether an argument after the array may be a large count."""
    cdef Py_ssize_t all_of_them = count + (0 if names == NULL else len(<tuple> names)), i
    try:
        for i in range(1 if count > 0 else 0, all_of_them):
            if not is_surely_small(<object> arguments[i]):
                return True
    except MemoryError:
        raise
    except Exception:   # a user's class raised; NumPy's function raises as well, or refuses the count
        return False
    return False


cdef bint is_surely_small(counts) except -1:
    """Whether an argument is no count, or has integers from 0 to `SURELY_SMALL`. This is faster than a call."""
    if counts is None or type(counts) is bool:
        return True
    if type(counts) is int:
        return is_small_integer(counts)
    if type(counts) is list or type(counts) is tuple:
        return are_small_integers(counts)
    if cnp.PyArray_CheckExact(counts):
        return has_small_items(counts)
    if isinstance(counts, float):
        return 0 <= <double> counts < SURELY_SMALL
    if isinstance(counts, np.timedelta64):      # an integer by its class only
        return False
    return isinstance(counts, integer) and is_small_integer(int(counts))


cdef bint are_small_integers(counts) except -1:
    """The same for the items of a list or tuple, if all are Python integers."""
    for each in counts:
        if type(each) is not int or not is_small_integer(each):
            return False
    return True


cdef bint has_small_items(cnp.ndarray array) except -1:
    """The same for the items of an array, if they are integers that C can read in place."""
    if cnp.PyArray_TYPE(array) > cnp.NPY_ULONGLONG or not (
        cnp.PyArray_ISBEHAVED_RO(array) and cnp.PyArray_IS_C_CONTIGUOUS(array)
    ):
        return False
    if cnp.PyArray_ITEMSIZE(array) == 8:
        return bits_of(<const uint64_t *> cnp.PyArray_DATA(array), cnp.PyArray_SIZE(array)) < SURELY_SMALL
    if cnp.PyArray_ITEMSIZE(array) == 4:
        return bits_of(<const uint32_t *> cnp.PyArray_DATA(array), cnp.PyArray_SIZE(array)) < SURELY_SMALL
    return True


ctypedef fused Bits:
    uint32_t
    uint64_t


cdef Bits bits_of(const Bits *items, Py_ssize_t n) noexcept nogil:
    """The bitwise or of all items."""
    cdef Bits bits = 0
    cdef Py_ssize_t i
    for i in range(n):
        bits |= items[i]
    return bits


cdef inline bint is_small_integer(count) except -1:
    cdef int overflow
    cdef long long value = PyLong_AsLongLongAndOverflow(count, &overflow)
    return overflow == 0 and 0 <= value < SURELY_SMALL


cdef StandIn trial = StandIn(len, Place(len))
take_vectorcalls(<PyTypeObject *> StandIn, <char *> &trial.call - <char *> <PyObject *> trial)
gate_offset = <char *> &trial.gate - <char *> <PyObject *> trial
call_stand_in = call


# ---- Public functions ----


def patch_numpy(names: str | Iterable[str] = DEFAULT_NAMES, *more: str) -> None:
    """Replace NumPy's functions with bcast's, for the whole process.

    Copies such as ``np.tile(x, 2)``, operators and ufuncs such as ``x + row``, and reductions such as ``x.max(0)`` then
    run at the speed of memory, if that changes nothing else: for arrays of the base class with a numeric dtype, and for
    copies also bools, dates, durations and strings of fixed length. NumPy's functions handle all other calls, and raise
    all errors.

    Parameters
    ----------
    names, *more : str or iterable of str, optional
        Groups, or names of single functions. The default is 'copies', 'ufuncs' and 'reductions', whose results equal
        NumPy's bit for bit. The last bits of 'sums' differ, so this group must be named.

        'copies'
            'tile', 'repeat', 'meshgrid', 'where'; 'stack' and 'dstack' of one array, several times.
        'ufuncs'
            'add', 'sqrt' and all other ufuncs of one or two operands that bcast computes.
        'reductions'
            'max', 'min', 'any', 'all', 'argmax', 'argmin', 'nanmax', 'nanmin'; 'prod' of integers; and the methods
            'ndarray.max', 'ndarray.min', 'ndarray.any', 'ndarray.all', 'ndarray.prod'.
        'sums'
            'sum', 'mean', 'var', 'std', 'nansum', 'nanmean', 'nanvar', 'nanstd', 'vecdot', 'matvec', 'cross',
            'linalg.norm'; and 'ndarray.sum', which `ndarray.mean`, `ndarray.var` and `ndarray.std` also use.

        'broadcast_arrays' is in no group: under the patch, its results are new arrays instead of views.

    Notes
    -----
    Ufuncs stay the same objects. A patch also reaches operators, in-place operators and comparisons, because they call
    ufuncs, and ufuncs that a module has imported by name. It does not reach methods such as ``np.add.reduce``.

    All other functions are replaced in NumPy's namespace, and 'linalg.norm' in `numpy.linalg`. A module that imported
    such a function by name before the patch keeps NumPy's. ``python -m bcast run`` patches before a program starts.

    Patches nest. Undo each one once, from any thread. If another library replaced a function earlier, calls that bcast
    passes on go to its replacement; if it replaces the function later, its replacement stays.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast
    >>> bcast.patch_numpy()
    >>> np.tile(np.array([0, 1]), 2)
    array([0, 1, 0, 1])
    >>> bcast.is_patched()
    True
    >>> bcast.unpatch_numpy()
    >>> bcast.is_patched()
    False
    """
    chosen = _names_argument(names, more)
    global _patches
    begin_patching()
    try:
        patches = (chosen, _patches)  # first, because it allocates memory
        _replace(chosen)
        _patches = patches
    finally:
        end_patching()


def unpatch_numpy() -> None:
    """Undo the last patch that `patch_numpy` made.

    Raises
    ------
    RuntimeError
        If there is no patch to undo.

    Examples
    --------
    >>> import bcast
    >>> bcast.patch_numpy("repeat")
    >>> bcast.unpatch_numpy()
    """
    global _patches
    begin_patching()
    try:
        if _patches is None:
            raise RuntimeError("`unpatch_numpy` expected a patch made by patch_numpy, got none")
        names, rest = _patches
        _put_back(names)
        _patches = rest
    finally:
        end_patching()


@cython.final
@cython.auto_pickle(False)
cdef class Entries:
    """The number of entries of a `patched_numpy`, in C: access to Python's attributes may run Python code."""

    cdef Py_ssize_t count       # entries minus exits


class patched_numpy(ContextDecorator):  # noqa: N801 (it is used as a function)
    """Replace NumPy's functions with bcast's for a ``with`` block, or for each call of a function.

    Parameters
    ----------
    names, *more : str or iterable of str, optional
        As in `patch_numpy`. Other threads see the patch, too.

    Notes
    -----
    As a decorator, it patches when the function is called, and undoes the patch when the function returns. Calls nest,
    and may come from several threads. Coroutines and generators raise an error, because they run later.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast
    >>> with bcast.patched_numpy():
    ...     x = np.repeat(np.array([1, 2]), 2)
    >>> x
    array([1, 1, 2, 2])
    >>> @bcast.patched_numpy("repeat")
    ... def doubled(x):
    ...     return np.repeat(x, 2)
    >>> doubled(np.array([1, 2]))
    array([1, 1, 2, 2])
    """

    def __init__(self, names: str | Iterable[str] = DEFAULT_NAMES, *more: str) -> None:
        self._names = _names_argument(names, more)
        self._entries = Entries()

    def __call__(self, func):
        if not callable(func):
            raise TypeError(f"`func` expected a function, got {show(func)}")
        if iscoroutinefunction(func) or isgeneratorfunction(func) or isasyncgenfunction(func):
            kind = "generator" if isgeneratorfunction(func) else "coroutine"
            got = f"the {kind} {func.__name__}; use a `with` statement inside it"
            raise TypeError(f"`func` expected a function that finishes its work before it returns, got {got}")
        return ContextDecorator.__call__(self, func)

    def __enter__(self) -> None:
        cdef Entries entries = self._entries
        names = self._names
        begin_patching()
        try:
            _replace(names)
            entries.count += 1
        finally:
            end_patching()

    def __exit__(self, kind: object, error: object, traceback: object) -> None:     # `*error` would allocate a tuple
        cdef Entries entries = self._entries
        names = self._names
        begin_patching()
        try:
            if entries.count == 0:
                raise RuntimeError(
                    "`patched_numpy` expected one exit for each entry, got more exits; "
                    "use it in a `with` statement"
                )
            entries.count -= 1
            _put_back(names)
        finally:
            end_patching()


def is_patched(name: str | None = None) -> bool:
    """Return whether a NumPy function is replaced with bcast's.

    Parameters
    ----------
    name : str, optional
        One of the names that `patch_numpy` takes. By default, any of them.

    Returns
    -------
    bool
        Also False if another library has replaced the function since the patch.

    Examples
    --------
    >>> import bcast
    >>> with bcast.patched_numpy("tile"):
    ...     bcast.is_patched(), bcast.is_patched("tile"), bcast.is_patched("repeat")
    (True, True, False)
    """
    for each in _places if name is None else _names_argument(name, ()):
        place = _places[each]
        if type(place) is UfuncPlace:
            if has_gate((<UfuncPlace> place).function):
                return True
        elif (<Place> place).is_patched():
            return True
    return False


def patch_info() -> dict[str, PatchInfo]:
    """Return how many calls of each function bcast has taken and passed on, under all patches so far.

    Returns
    -------
    dict of str to PatchInfo
        For each function that has been patched: `taken`, the calls that bcast handled, and `passed`, the calls that it
        left to NumPy; `items`, the items of the results; and the time of each kind, if ``python -m bcast run --counts``
        measures it. In an interpreter without a GIL, simultaneous calls may be counted once.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast
    >>> before = bcast.patch_info().get("repeat", (0, 0))
    >>> with bcast.patched_numpy("repeat"):
    ...     _ = np.repeat(np.array([1, 2]), 2)
    ...     _ = np.repeat([1, 2], 2)  # a list
    >>> after = bcast.patch_info()["repeat"]
    >>> after.taken - before[0], after.passed - before[1]
    (1, 1)
    """
    found = {}
    for name in _places:
        if _was_patched(_places[name]):
            taken, items, passed, seconds_taken, seconds_passed = _counts_of(_places[name])
            found[name] = PatchInfo(taken, sum(passed), items, seconds_taken, seconds_passed)
    return found


def reasons_of_passed() -> dict[str, dict[str, int]]:
    """Return the number of passed calls of each function, by reason."""
    cdef Reason reason
    found = {}
    for name in _places:
        passed = _counts_of(_places[name])[2]
        by_reason = {}
        for reason in _reasons:
            if passed[reason.number] > 0:
                by_reason[reason.name] = passed[reason.number]
        found[name] = by_reason
    return found


def time_calls(bint wanted: bool = True) -> None:
    """Start or stop timing all calls of patched functions. Timing adds about 50 ns to a call."""
    global is_timing
    begin_patching()
    try:
        is_timing = wanted
        time_gates(wanted)
        for place in _places.values():
            if type(place) is Place and (<Place> place).stand_in is not None:
                (<Place> place).stand_in.set_active((<Place> place).stand_in.active)
    finally:
        end_patching()


# ---- Applying and undoing patches ----


cdef bint _was_patched(place) except -1:
    return (<UfuncPlace> place).was_patched if type(place) is UfuncPlace else (<Place?> place).stand_in is not None


cdef tuple _counts_of(place):
    return counts_at_gate((<UfuncPlace> place).function) if type(place) is UfuncPlace else (<Place?> place).counts()


cdef int _replace(tuple names) except -1:
    """Put stand-ins in place. All that may fail comes first; then no other thread can interfere."""
    cdef list stand_ins = [], placed = []
    cdef Py_ssize_t i
    cdef Place place
    cdef StandIn kept

    for i in range(len(names)):
        if type(_places[names[i]]) is UfuncPlace:
            stand_ins.append(None)
            placed.append(None)
            continue
        place = _places[names[i]]
        original = getattr(place.owner, place.attribute)
        kept = stand_in_of(original)
        while kept is not None and not kept.active:     # other code kept a stand-in, and put it back
            original = kept.original
            kept = stand_in_of(original)
        stand_ins.append(StandIn(original, place))
        placed.append(placeable(stand_ins[i]))
    for i in range(len(names)):
        if stand_ins[i] is None:
            _open(<UfuncPlace> _places[names[i]])
            continue
        place = _places[names[i]]
        if place.uses == 0:
            stand_ins[i], place.stand_in = place.stand_in, stand_ins[i]     # the old one is freed on return
            placed[i], place.placed = place.placed, placed[i]
            setattr(place.owner, place.attribute, place.placed)
        place.uses += 1
    return 0


cdef int _put_back(tuple names) except -1:
    """Undo a patch. If another library has replaced the stand-in, its replacement stays."""
    cdef Place place
    for name in names:
        if type(_places[name]) is UfuncPlace:
            _close(<UfuncPlace> _places[name])
            continue
        place = _places[name]
        place.uses -= 1
        if place.uses == 0 and place.stand_in is not None:
            place.stand_in.set_active(False)  # other code may still hold it
            if getattr(place.owner, place.attribute) is place.placed:
                setattr(place.owner, place.attribute, place.stand_in.original)
    return 0


cdef int _open(UfuncPlace place) except -1:
    if place.uses == 0:
        open_gate(place.function, place.cost)
        place.was_patched = True
    place.uses += 1
    return 0


cdef int _close(UfuncPlace place) except -1:
    place.uses -= 1
    if place.uses == 0:
        close_gate(place.function)
    return 0


def _close_all() -> None:
    """Close all gates at exit, when modules lose their globals."""
    begin_patching()
    try:
        for place in _places.values():
            if type(place) is UfuncPlace and (<UfuncPlace> place).uses > 0:
                close_gate((<UfuncPlace> place).function)
    finally:
        end_patching()


cdef tuple _names_argument(names, tuple more):
    """Check the names of functions and groups; replace each group with its functions."""
    cdef list chosen = []
    if not more and (isinstance(names, bytes) or not isinstance(names, Iterable)):
        raise TypeError(_names_expected(names))
    for name in (names, *more) if more or isinstance(names, str) else names:
        if not isinstance(name, str) or name not in _places and name not in GROUPS:
            raise ValueError(_names_expected(name))
        for each in GROUPS.get(name, (name,)):
            if each not in chosen:
                chosen.append(each)
    return tuple(chosen)


cdef str _names_expected(got):
    functions = ", ".join(FUNCTION_NAMES)
    groups = ", ".join(GROUPS)
    expected = f"names among {functions}, ufuncs, or groups among {groups}"
    return f"`names` expected {expected}, got {show(got)}{_names_remedy(got)}"


cdef str _names_remedy(name):
    """Suggest the right form for several names in one string, for names with a module, or for a function."""
    cdef list meant = []
    if type(name) is FunctionType:
        return "; write @bcast.patched_numpy() to decorate it"
    text = name if isinstance(name, str) else getattr(name, "__name__", "")
    rest = text.replace(",", " ") if isinstance(text, str) else ""
    while rest:     # `split` may return a result despite an error when memory runs out
        word, _, rest = rest.partition(" ")
        word = word.removeprefix("np.").removeprefix("numpy.")
        if word in _places or word in GROUPS:
            meant.append(repr(word))
        elif word:
            return ""
    return f"; use {', '.join(meant)}" if meant else ""


# ---- Copies ----

# All functions that begin with `take_` have the parameters of NumPy's functions. They return a `Reason` for passing on
# the call if they do not compute it.


cdef inline as_base(value):
    return base_of(value) if type(value) is FILE_ARRAY else value


cdef _of_class(result, array):
    """Convert the result for an array of a mapped file to the class of NumPy's result."""
    return result.view(FILE_ARRAY) if type(array) is FILE_ARRAY and type(result) is ndarray else result


cdef tuple _of_classes(results, arrays):
    cdef list found = []
    for result, array in zip(results, arrays):
        found.append(_of_class(result, array))
    return tuple(found)


def take_tile(A, reps):
    return _of_class(_tiled(as_base(A), reps), A)


cdef _tiled(A, reps):
    if not is_plain(A):
        return why_not_plain(A)
    if size_of(A) == 0 and not cnp.PyArray_ISWRITEABLE(<cnp.ndarray> A):    # NumPy's result is a view of it
        return SMALL
    if not _are_plain_counts(reps):
        reps = _multipliers(reps, A)
        if reps is None:
            return ARGUMENT
    if not is_contiguous(A) and (reps == 1 if type(reps) is int else are_ones(tuple(reps))):
        # Nothing is repeated, and NumPy keeps the order of the axes in memory.
        return A.copy("K") if type(reps) is int or len(reps) <= A.ndim else ARGUMENT
    return tile(A, reps)


cdef inline bint _are_plain_counts(reps):
    """Whether this is a Python integer, or a tuple or list of them."""
    if type(reps) is int:
        return True
    return (type(reps) is tuple or type(reps) is list) and all_plain(tuple(reps))


def take_repeat(a, repeats, axis=None):
    return _of_class(_repeated(as_base(a), as_base(repeats), axis), a)


cdef _repeated(a, repeats, axis):
    kind = type(repeats)
    if not is_plain(a):
        return why_not_plain(a)
    if not (axis is None or type(axis) is int):
        return ARGUMENT
    if can_count(repeats):
        return repeat(a, repeats, axis) if repeats.ndim < 2 else ARGUMENT
    if kind is tuple or kind is list:  # if nothing is repeated, NumPy checks them
        if not _are_whole(tuple(repeats)):
            return ARGUMENT
        return repeat(a, repeats, axis) if size_of(a) > 0 else SMALL
    if not _are_whole((repeats,)):
        return ARGUMENT
    # It must fit a C integer: NumPy refuses larger ones for empty arrays, too.
    return repeat(a, <Py_ssize_t> int(repeats), axis)


def take_meshgrid(*xi, copy=True, sparse=False, indexing="xy"):
    if copy is not True or not isinstance(sparse, bool):
        return KEYWORD
    reason = why_not_all_plain(xi)
    if reason is not None:
        return reason
    return _of_classes(meshgrid(*xi, sparse=sparse, indexing=indexing), xi)


def take_broadcast_arrays(*args, subok=False):
    reason = why_not_all_plain(args)
    if reason is not None:
        return reason
    results = broadcast_arrays(*args)
    return _of_classes(results, args) if subok else results     # NumPy's own `meshgrid` asks for classes


def take_where(condition, x, y, /):
    if type(x) is list or type(y) is list or type(condition) is list:
        return NO_ARRAY
    result = choose(as_base(condition), _operand(x), _operand(y), None)
    return _why_not_chosen(condition, x, y) if result is None else result


cdef Reason _why_not_chosen(condition, x, y):
    """The reason to pass on `where` that a single operand shows, or None."""
    cdef bint is_empty = False
    for operand in (condition, x, y):
        if isinstance(operand, (bool, int, float, complex, generic)) and operand is not condition:
            continue
        reason = why_no_array(operand)
        if reason is not None:
            return reason
        is_empty |= size_of(operand) == 0
    return SMALL if is_empty else DTYPE


cdef _operand(x):
    """Convert NumPy's scalars, which promote like arrays: xarray and pandas pass these."""
    return np.asarray(x) if isinstance(x, generic) else as_base(x)


def take_stack(arrays, axis=0):
    cdef Py_ssize_t at
    first = as_base(arrays[0])
    if type(axis) is not int or not cnp.PyArray_CheckExact(first):
        return ARGUMENT
    shape = shape_of(first)
    at = axis if axis >= 0 else axis + len(shape) + 1
    if not 0 <= at <= len(shape):
        return ERROR
    return broadcast(first, shape[:at] + (len(arrays),) + shape[at:], mode="explicit", broadcast_axes=(at,))


def take_dstack(tup):
    first = tup[0]
    return take_stack(tup, 2) if first.ndim == 2 else ARGUMENT


# ---- Reductions ----


def take_sum(a, axis=None, dtype=None, out=None, keepdims=False, initial=NO_VALUE, where=NO_VALUE):     # NumPy's own
    cdef Reduction call = reduction("sum", a, axis, out, keepdims)
    call.dtype = dtype
    call.initial = None if initial is NO_VALUE else initial
    if initial is None or is_negative_zero(initial) or not is_everywhere(where):    # sums of -0.0 may be -0.0
        return KEYWORD
    return reduced_here(call)


cdef inline bint is_negative_zero(initial) except -1:
    """Whether this initial value is -0.0: NumPy's sums of -0.0 are then -0.0, and bcast's are 0."""
    if not isinstance(initial, (float, complex, np.inexact)) or initial != 0:
        return False
    return np.signbit(initial.real) or np.signbit(initial.imag)


def take_mean(a, axis=None, dtype=None, out=None, keepdims=False, *, where=NO_VALUE):
    cdef Reduction call = reduction("mean", a, axis, out, keepdims)
    call.dtype = dtype
    return reduced_here(call) if is_everywhere(where) else KEYWORD


def take_var(
    a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=NO_VALUE, mean=NO_VALUE, correction=NO_VALUE
):  # NumPy's own
    return _take_spread(reduction("var", a, axis, out, keepdims), dtype, as_ddof(ddof, correction), where, mean)


def take_std(
    a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=NO_VALUE, mean=NO_VALUE, correction=NO_VALUE
):  # NumPy's own
    return _take_spread(reduction("std", a, axis, out, keepdims), dtype, as_ddof(ddof, correction), where, mean)


cdef inline as_ddof(ddof, correction):
    """Return the value of `ddof` or `correction`, two names for one argument. NumPy refuses both at once."""
    if correction is NO_VALUE:
        return ddof
    if ddof != 0:
        raise ValueError("`ddof` expected 0 if `correction` is given")   # NumPy then raises its own error
    return correction


cdef _take_spread(Reduction call, dtype, ddof, where, mean):
    """Return a variance or standard deviation, or the reason to pass on the call."""
    call.dtype = dtype
    call.ddof = ddof
    call.has_squares = True
    return reduced_here(call) if is_everywhere(where) and mean is NO_VALUE else KEYWORD


cdef reduced_here(Reduction call):
    """Return the result of NumPy's sum or statistic, or the reason to pass on the call."""
    cdef Reason reason = why_not_reduced(call)
    if reason is not None:
        return reason

    result = reduced(call)
    if result is not None:
        return result
    if not has_kernels(call.a):
        return DTYPE
    # Either the data has no terms, or the core has no sums of this dtype.
    return SMALL if call.dtype is None and call.out is None and call.initial is None else KEYWORD


def take_max(a, axis=None, out=None, keepdims=False, initial=NO_VALUE, where=NO_VALUE):     # NumPy's own
    return found_here(reduction("max", a, axis, out, keepdims), initial, where)


def take_min(a, axis=None, out=None, keepdims=False, initial=NO_VALUE, where=NO_VALUE):     # NumPy's own
    return found_here(reduction("min", a, axis, out, keepdims), initial, where)


def take_any(a, axis=None, out=None, keepdims=False, *, where=NO_VALUE):
    return found_here(reduction("any", a, axis, out, keepdims), NO_VALUE, where)


def take_all(a, axis=None, out=None, keepdims=False, *, where=NO_VALUE):
    return found_here(reduction("all", a, axis, out, keepdims), NO_VALUE, where)


def take_prod(a, axis=None, dtype=None, out=None, keepdims=False, initial=NO_VALUE, where=NO_VALUE):    # NumPy's own
    cdef Reduction call
    array = as_base(a)
    if cnp.PyArray_CheckExact(array) and cnp.PyArray_TYPE(<cnp.ndarray> array) > cnp.NPY_ULONGLONG:
        return DTYPE    # products of floats would differ in their last bits
    call = reduction("prod", a, axis, out, keepdims)
    call.dtype = dtype
    return found_here(call, initial, where)


def take_argmax(a, axis=None, out=None, *, keepdims=False):
    return _take_position(reduction("argmax", a, axis, out, keepdims))


def take_argmin(a, axis=None, out=None, *, keepdims=False):
    return _take_position(reduction("argmin", a, axis, out, keepdims))


cdef _take_position(Reduction call):
    """Return positions, or the reason to pass on the call."""
    array = call.a      # perhaps of a mapped file
    if call.axis is not None and type(call.axis) is not int:
        return ARGUMENT
    result = found_here(call, NO_VALUE, NO_VALUE)
    return result if call.out is not None else _of_class(result, array)


cdef found_here(Reduction call, initial, where):
    """Return the result of NumPy's function, or the reason to pass on the call."""
    cdef Reason reason
    if not are_usual(call.name, initial, where):
        return KEYWORD
    reason = why_not_reduced(call)
    if reason is not None:
        return reason

    result = found_by_core(call)
    if result is not None:
        return result
    if not is_compared(call.a):
        return DTYPE
    return SMALL if call.dtype is None and call.out is None else KEYWORD


# ---- Reductions for array methods ----

# Array methods pass arguments one by one, among them `dtype`. Only NumPy's functions accept NO_VALUE as `keepdims`.


def take_greatest(a, axis=None, dtype=None, out=None, keepdims=False, initial=NO_VALUE, where=True):
    if dtype is not None or keepdims is NO_VALUE:
        return KEYWORD
    return found_here(reduction("max", a, axis, out, keepdims), initial, where)


def take_least(a, axis=None, dtype=None, out=None, keepdims=False, initial=NO_VALUE, where=True):
    if dtype is not None or keepdims is NO_VALUE:
        return KEYWORD
    return found_here(reduction("min", a, axis, out, keepdims), initial, where)


def take_any_true(a, axis=None, dtype=None, out=None, keepdims=False, initial=NO_VALUE, where=True):
    if dtype is not BOOL or keepdims is NO_VALUE:
        return KEYWORD
    return found_here(reduction("any", a, axis, out, keepdims), initial, where)


def take_all_true(a, axis=None, dtype=None, out=None, keepdims=False, initial=NO_VALUE, where=True):
    if dtype is not BOOL or keepdims is NO_VALUE:
        return KEYWORD
    return found_here(reduction("all", a, axis, out, keepdims), initial, where)


def take_product(a, axis=None, dtype=None, out=None, keepdims=False, initial=NO_VALUE, where=True):
    return ARGUMENT if keepdims is NO_VALUE else take_prod(a, axis, dtype, out, keepdims, initial, where)


def take_total(a, axis=None, dtype=None, out=None, keepdims=False, initial=NO_VALUE, where=True):
    return ARGUMENT if keepdims is NO_VALUE else take_sum(a, axis, dtype, out, keepdims, initial, where)


# ---- Reductions without NaN ----


def take_nansum(a, axis=None, dtype=None, out=None, keepdims=False, initial=NO_VALUE, where=NO_VALUE):  # NumPy's own
    return _without_nan_here("sum", a, axis, dtype, out, keepdims, 0, are_usual("sum", initial, where))


def take_nanmean(a, axis=None, dtype=None, out=None, keepdims=False, *, where=NO_VALUE):
    return _without_nan_here("mean", a, axis, dtype, out, keepdims, 0, is_everywhere(where))


def take_nanvar(
    a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=NO_VALUE, mean=NO_VALUE, correction=NO_VALUE
):  # NumPy's own
    is_usual = is_everywhere(where) and mean is NO_VALUE
    return _without_nan_here("var", a, axis, dtype, out, keepdims, as_ddof(ddof, correction), is_usual)


def take_nanstd(
    a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=NO_VALUE, mean=NO_VALUE, correction=NO_VALUE
):  # NumPy's own
    is_usual = is_everywhere(where) and mean is NO_VALUE
    return _without_nan_here("std", a, axis, dtype, out, keepdims, as_ddof(ddof, correction), is_usual)


def take_nanmax(a, axis=None, out=None, keepdims=False, initial=NO_VALUE, where=NO_VALUE):  # NumPy's own
    return _without_nan_here("max", a, axis, None, out, keepdims, 0, are_usual("max", initial, where))


def take_nanmin(a, axis=None, out=None, keepdims=False, initial=NO_VALUE, where=NO_VALUE):  # NumPy's own
    return _without_nan_here("min", a, axis, None, out, keepdims, 0, are_usual("min", initial, where))


# NumPy's arguments come one by one; they become a `Reduction` here.
cdef _without_nan_here(str name, a, axis, dtype, out, keepdims, ddof, bint is_usual):
    """Return the result of NumPy's function that ignores NaN, or the reason to pass on the call."""
    cdef Reduction call
    cdef Reason reason
    if not is_usual:
        return KEYWORD
    call = reduction(name, a, axis, out, keepdims)
    reason = why_not_reduced(call)
    if reason is not None:
        return reason
    return without_nan(name, call.a, axis, dtype, out, keepdims, ddof, NO_OPTIONS, _why_with_nan, 1)


def _why_with_nan(Reduction call, options):
    """The reason to pass on a call that the core does not compute."""
    if not is_compared(call.a):
        return DTYPE
    return SMALL if call.dtype is None and call.out is None else KEYWORD


cdef bint is_compared(array) except -1:
    """Whether the core compares and multiplies the items of an array: real numbers in native byte order."""
    return has_kernels(array) and array.dtype.isnative and array.dtype.kind != "c"


cdef Reason why_not_reduced(Reduction call):
    """None if the data and axes of a call allow asking the core. The data becomes an array of the base class."""
    call.a = as_base(call.a)
    if not cnp.PyArray_CheckExact(call.a):
        return why_no_array(call.a)
    if not are_axes(call.axis) or isinstance(call.keepdims, np.bool):    # NumPy refuses these
        return ARGUMENT
    return None if has_terms(call.a, call.axis) else SMALL


cdef bint are_axes(axis):
    """Whether this names axes for NumPy's functions, and at least one."""
    if type(axis) is tuple:
        return axis != ()
    return axis is None or isinstance(axis, (int, integer))


cdef bint has_terms(cnp.ndarray array, axis):
    """Whether sums along one axis or all have several terms. Other sums, of tiny arrays, would not gain."""
    cdef Py_ssize_t at, rank = cnp.PyArray_NDIM(array)
    if type(axis) is not int or size_of(array) < 2:
        return size_of(array) > 1
    at = axis if axis >= 0 else axis + rank
    return 0 <= at < rank and cnp.PyArray_DIM(array, <int> at) > 1


# ---- Arguments of copies ----


cdef Reason why_not_one(arrays):
    """None if a sequence has one plain array several times, contiguous like NumPy's result."""
    if type(arrays) is list and len(<list> arrays) > 1 and (<list> arrays)[0] is not (<list> arrays)[1]:
        return ARGUMENT     # in most calls, and found in less time than below
    if not (type(arrays) is list or type(arrays) is tuple) or len(arrays) < 2:
        return ARGUMENT
    first = arrays[0]
    for array in arrays:
        if array is not first:
            return ARGUMENT
    if not is_plain(as_base(first)):
        return why_not_plain(first)
    if not first.dtype.isnative:
        return DTYPE
    return None if is_contiguous(first) else ARGUMENT


cdef tuple _multipliers(reps, array):
    """Return the counts as Python integers, if NumPy's products with the array's lengths do not wrap around."""
    cdef list counts = []
    if type(reps) is ndarray:
        if reps.dtype.kind not in "iu":
            return None
        reps = reps[()]  # an integer, if there are no axes
    longest = max(shape_of(array), default=1)
    for item in reps if type(reps) is tuple or type(reps) is list or type(reps) is ndarray else (reps,):
        kind = type(item)
        whole = kind is int or kind is INT64
        if not whole and not (isinstance(item, integer) and max(int(item), 1) * longest <= iinfo(kind).max):
            return None
        counts.append(int(item))
    return tuple(counts)


cdef bint _are_whole(tuple counts):
    """Return whether these are integers or whole floats, which NumPy accepts outside of arrays."""
    for count in counts:
        whole = type(count) is int or isinstance(count, integer)
        if not whole and not (isinstance(count, FLOATS) and count.is_integer()):
            return False
    return True


cdef Reason why_not_all_plain(tuple arrays):
    """None if there are arrays, and each is plain."""
    for array in arrays:
        if not is_plain(as_base(array)):
            return why_not_plain(array)
    return None if len(arrays) > 0 else ARGUMENT


cdef Reason why_not_plain(argument):
    reason = why_no_array(argument)
    return DTYPE if reason is None else reason


cdef bint is_plain(array):
    """Whether this is an array of the base class, of numbers, bools, times or strings of fixed length."""
    if not cnp.PyArray_CheckExact(array):
        return False
    cdef int number = cnp.PyArray_TYPE(<cnp.ndarray> array)
    return 0 <= number <= cnp.NPY_FLOAT16 and number != cnp.NPY_OBJECT and number != cnp.NPY_VOID


cdef bint can_count(array):
    """Whether this is an array of the base class, of integers that NumPy accepts as counts."""
    if not cnp.PyArray_CheckExact(array):
        return False
    cdef int number = cnp.PyArray_TYPE(<cnp.ndarray> array)
    return cnp.NPY_BYTE <= number <= cnp.NPY_ULONGLONG and cnp.PyArray_CanCastSafely(number, cnp.NPY_INTP)


# ---- Vectors ----


def take_vecdot(x1, x2, /, out=None, *, axis=-1):
    result = dot_vectors(x1, x2, out, axis) if is_small_axis(axis) else None
    return why_not_vectors(x1, x2) if result is None else result


def take_matvec(x1, x2, /, out=None):
    result = transform_vectors(x1, x2, out)
    return why_not_vectors(x1, x2) if result is None else result


def take_cross(a, b, axisa=-1, axisb=-1, axisc=-1, axis=None):
    result = None
    if axis is not None:
        axisa = axisb = axisc = axis
    if is_small_axis(axisa) and is_small_axis(axisb) and is_small_axis(axisc):
        result = cross_vectors(a, b, axisa, axisb, axisc)
    return why_not_vectors(a, b) if result is None else result


def take_norm(x, ord=None, axis=None, keepdims=False):
    if ord is not None or type(keepdims) is not bool or not (axis is None or type(axis) is int):
        return KEYWORD
    if not has_kernels(x):
        return DTYPE
    return SMALL if size_of(x) == 0 else norm(as_base(x), axis, keepdims=keepdims)


cdef inline bint is_small_axis(axis) except -1:
    """Whether this is an integer that may be an axis."""
    return type(axis) is int and -65 < axis < 65


cdef Reason why_not_vectors(a, b):
    """The reason to pass on two arrays that each shows by itself, or None."""
    for each in (a, b):
        reason = why_no_array(each)
        if reason is not None:
            return reason
    return ARGUMENT if has_kernels(a) and has_kernels(b) else DTYPE


# ---- The table of functions, and the groups that users name ----


_places = {
    "tile": Place(take_tile, reading=read_for_tile, refusal=refusal_of_tile),
    "repeat": Place(take_repeat, refusal=refusal_of_repeat),
    "meshgrid": Place(take_meshgrid),
    "broadcast_arrays": Place(take_broadcast_arrays), "where": Place(take_where, 3),
    "sum": Place(take_sum, first=TERMS), "mean": Place(take_mean, first=TERMS),
    "var": Place(take_var, first=TERMS), "std": Place(take_std, first=TERMS),
    "max": Place(take_max, first=TERMS), "min": Place(take_min, first=TERMS),
    "any": Place(take_any, first=TERMS), "all": Place(take_all, first=TERMS),
    "argmax": Place(take_argmax, first=TERMS), "argmin": Place(take_argmin, first=TERMS),
    "prod": Place(take_prod, first=TERMS),
    "nansum": Place(take_nansum, first=TERMS), "nanmean": Place(take_nanmean, first=TERMS),
    "nanvar": Place(take_nanvar, first=TERMS), "nanstd": Place(take_nanstd, first=TERMS),
    "nanmax": Place(take_nanmax, first=TERMS), "nanmin": Place(take_nanmin, first=TERMS),
    "stack": Place(take_stack, 1, SEVERAL), "dstack": Place(take_dstack, 1, SEVERAL),
    "vecdot": Place(take_vecdot, 2), "matvec": Place(take_matvec, 2), "cross": Place(take_cross, 2),
    "linalg.norm": Place(take_norm, 1),
    # Array methods call these, too; `mean`, `var` and `std` call the function of `sum`.
    "ndarray.max": Place(take_greatest, finds=AN_EXTREME), "ndarray.min": Place(take_least, finds=AN_EXTREME),
    "ndarray.any": Place(take_any_true, finds=A_TRUTH), "ndarray.all": Place(take_all_true, finds=A_TRUTH),
    "ndarray.prod": Place(take_product, finds=A_PRODUCT), "ndarray.sum": Place(take_total, finds=A_SUM),
}
if not hasattr(np, "matvec"):       # NumPy 2.0 and 2.1
    del _places["matvec"]


cdef int _find_owners() except -1:
    """Find the module of each function."""
    cdef Place place
    for name in list(_places):
        place = _places[name]
        module, _, place.attribute = name.rpartition(".")
        if module == "ndarray":
            place.owner, place.attribute = methods_module(np), function_of_method(place.attribute)
            if not hasattr(place.owner, place.attribute):
                del _places[name]
        else:
            place.owner = getattr(np, module) if module else np
    return 0


def stand_in_for(original not None, str name not None):
    """Return a stand-in that no patch puts in place, with a copy of the place that has the name."""
    cdef Place place = _places[name]
    place = Place(place.take, place.least, place.first, place.reading, place.refusal, place.finds)
    return StandIn(original, place)


_find_owners()
FUNCTION_NAMES = tuple(_places)
for _name, _cost in costs_of_ufuncs().items():
    _places[_name] = UfuncPlace(getattr(np, _name), _cost)
atexit.register(_close_all)


cdef tuple _those_there(str names):
    """The names that this NumPy has."""
    cdef list found = []
    for name in names.split():
        if name in _places:
            found.append(name)
    return tuple(found)


GROUPS = {
    "copies": _those_there("tile repeat meshgrid where stack dstack"),
    "ufuncs": tuple(costs_of_ufuncs()),
    "reductions": _those_there(
        "max min any all argmax argmin nanmax nanmin prod "
        "ndarray.max ndarray.min ndarray.any ndarray.all ndarray.prod"
    ),
    "sums": _those_there(
        "sum mean var std nansum nanmean nanvar nanstd vecdot matvec cross linalg.norm ndarray.sum"
    ),
}

OTHER_NAMES = ("sums",) + FUNCTION_NAMES      # further names that users may pass
