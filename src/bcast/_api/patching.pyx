"""Functions of NumPy's replaced by ours in NumPy's namespace, for programs that call them there.

In: names of functions. A `StandIn` takes the place of each; a `take_*` does the calls that are sure to give the same as
NumPy's: those for arrays of the base class whose dtype is plain, with arguments of the usual types. Other calls are
left to NumPy, as are those that raise: NumPy says it in its own words.

The GIL is the lock of all patches, or where there is none a critical section. While it is held, no code in Python runs
and no signal is handled: this module is compiled. A lock would have to be released, which takes memory.
"""

cimport cython
cimport numpy as cnp
from cpython.object cimport PyObject, PyTypeObject

from bcast._api.adjoints cimport reduced
from bcast._api.repeats cimport are_ones
from bcast._elementwise cimport choose
from bcast._rules.arguments cimport all_plain
from bcast._runtime.core cimport is_contiguous, shape_of, size_of

from collections.abc import Iterable
from types import MethodType
from typing import NamedTuple

import numpy as np
from numpy import generic, iinfo, integer, ndarray

from bcast._api.broadcast import broadcast, broadcast_arrays, meshgrid
from bcast._api.repeats import repeat, tile
from bcast._rules.arguments import FLOATS, INT64, show

cdef extern from "Python.h":
    """
    /* Let instances be called through the function whose address they keep at `offset`. Cython knows no slot for it;
       with `__call__`, a call that is passed on would take 50 ns more: 5 % of a small one. */
    static void bcast_take_vectorcalls(PyTypeObject *type, Py_ssize_t offset)
    {
        type->tp_vectorcall_offset = offset;
        type->tp_call = PyVectorcall_Call;
        type->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
    }
    """
    ctypedef object (*Vectorcall "vectorcallfunc")(object, PyObject *const *, size_t, PyObject *)
    void take_vectorcalls "bcast_take_vectorcalls"(PyTypeObject *type, Py_ssize_t offset)
    object PyObject_Vectorcall(object, PyObject *const *, size_t, PyObject *)
    Py_ssize_t PyVectorcall_NARGS(size_t)

cnp.import_array()

cdef object NO_VALUE = np._NoValue
cdef dict _places               # by the functions' names
cdef object _patches = None     # of patch_numpy: the names of the last one, and those before it


class PatchInfo(NamedTuple):
    """How many calls of a function of NumPy's have been taken and passed on while it was patched."""

    taken: int
    passed: int


cdef class StandIn


@cython.final
@cython.auto_pickle(False)
cdef class Place:
    """A function's place in NumPy's namespace. To change an attribute allocates nothing."""

    cdef object take
    cdef Py_ssize_t least       # arguments by position of a call that is taken
    cdef bint of_several        # whether the first argument is a sequence of arrays
    cdef Py_ssize_t uses        # how many patches there are
    cdef StandIn stand_in       # what the last one of them put there, or None
    cdef Py_ssize_t taken       # calls; without a GIL, some that happen at the same time may not be counted
    cdef Py_ssize_t passed

    def __cinit__(self, take not None, Py_ssize_t least=0, bint of_several=False):
        self.take = take
        self.least = least
        self.of_several = of_several

    cdef inline bint may_take(self, PyObject *const *arguments, Py_ssize_t count):
        """Whether the arguments let `take` be asked, which alone costs up to 7 % of a small call of NumPy's."""
        cdef Py_ssize_t i
        if count == 0 or count < self.least:
            return self.least == 0
        for i in range(count):
            each = <object> arguments[i]
            if cnp.PyArray_Check(each) and cnp.PyArray_TYPE(<cnp.ndarray> each) == cnp.NPY_OBJECT:
                return False
        each = <object> arguments[0]
        return are_one(each) if self.of_several else cnp.PyArray_CheckExact(each)


@cython.final
@cython.auto_pickle(False)
cdef class StandIn:
    """Stands in for a function of NumPy's; by what it says of itself, it is that function.

    Its place's `take` gets the arguments of each call, if these let it. It returns None for a call that it leaves
    to `original`. So does an error, which `original` then raises in its own words.
    """

    cdef Vectorcall call
    cdef readonly object original
    cdef Place place
    cdef public bint active             # or else all calls are passed on, and none is counted
    cdef object __weakref__

    def __cinit__(self, original not None, Place place not None):
        self.call = call
        self.original = original
        self.place = place
        self.active = True

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

    # Libraries keep tables of NumPy's functions. They find the one in the other's place.
    def __hash__(self):
        return hash(self.original)

    def __eq__(self, other):
        return self.original == (other.original if type(other) is StandIn else other)


cdef object call(object callee, PyObject *const *arguments, size_t count, PyObject *names):
    cdef StandIn stand_in = <StandIn> callee
    cdef Place place
    if not stand_in.active:
        return PyObject_Vectorcall(stand_in.original, arguments, count, names)
    place = stand_in.place
    if place.may_take(arguments, PyVectorcall_NARGS(count)):
        try:
            result = PyObject_Vectorcall(place.take, arguments, count, names)
        except Exception:
            result = None
        if result is not None:
            place.taken += 1
            return result
    place.passed += 1
    return PyObject_Vectorcall(stand_in.original, arguments, count, names)


cdef StandIn trial = StandIn(len, Place(len))
take_vectorcalls(<PyTypeObject *> StandIn, <char *> &trial.call - <char *> <PyObject *> trial)


def patch_numpy(names: str | Iterable[str] = ("tile", "repeat", "meshgrid"), *more: str) -> None:
    """Put functions of bcast in the place of NumPy's, for the whole process.

    ``np.tile``, ``np.repeat`` and ``np.meshgrid`` then run at the speed of memory where that changes nothing else: for
    arrays of the base class whose dtype is a number, a bool, a date, a duration or a string of fixed length. All else
    is left to NumPy's functions, and so are all errors.

    Parameters
    ----------
    names, *more : str or iterable of str, optional
        The functions to replace: 'tile', 'repeat' and 'meshgrid'. Others have to be named: 'where'; 'stack' and
        'dstack', of one array several times; 'broadcast_arrays', whose results are then new arrays, where NumPy's are
        views; 'sum', 'mean', 'var' and 'std', whose results then differ from NumPy's in their last bits.

    Notes
    -----
    The functions are replaced in NumPy's namespace. A module that has imported them by ``from numpy import tile``
    before the patch keeps what it has. ``python -m bcast run`` patches before a program starts.

    Patches nest. Each is to be taken back once, from any thread. What other libraries have put there before is called
    for what is passed on; what they put there since stays.

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
    with cython.critical_section(_places):
        patches = (chosen, _patches)  # before anything is replaced, as it takes memory
        _replace(chosen)
        _patches = patches


def unpatch_numpy() -> None:
    """Take back the last patch that `patch_numpy` made.

    Raises
    ------
    RuntimeError
        If all of them have been taken back.

    Examples
    --------
    >>> import bcast
    >>> bcast.patch_numpy("repeat")
    >>> bcast.unpatch_numpy()
    """
    global _patches
    with cython.critical_section(_places):
        if _patches is None:
            raise RuntimeError("`unpatch_numpy` expected a patch made by patch_numpy, got none")
        names, rest = _patches
        _put_back(names)
        _patches = rest


class patched_numpy:  # noqa: N801 (it is used as a function)
    """Put functions of bcast in the place of NumPy's for a ``with`` block.

    Parameters
    ----------
    names, *more : str or iterable of str, optional
        As in `patch_numpy`. Other threads see the patch, too.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast
    >>> with bcast.patched_numpy():
    ...     x = np.repeat(np.array([1, 2]), 2)
    >>> x
    array([1, 1, 2, 2])
    """

    def __init__(self, names: str | Iterable[str] = ("tile", "repeat", "meshgrid"), *more: str) -> None:
        self._names = _names_argument(names, more)

    def __enter__(self) -> None:
        names = self._names
        with cython.critical_section(_places):
            _replace(names)

    def __exit__(self, kind: object, error: object, traceback: object) -> None:     # `*error` would be allocated
        names = self._names
        with cython.critical_section(_places):
            _put_back(names)


def is_patched(name: str | None = None) -> bool:
    """Return whether a function of bcast stands in the place of one of NumPy's.

    Parameters
    ----------
    name : str, optional
        One of the names that `patch_numpy` takes. By default, any of them.

    Returns
    -------
    bool
        Whether it does now. After a patch, it does not if another library has replaced the function since.

    Examples
    --------
    >>> import bcast
    >>> with bcast.patched_numpy("tile"):
    ...     bcast.is_patched(), bcast.is_patched("tile"), bcast.is_patched("repeat")
    (True, True, False)
    """
    cdef Place place
    for each in _places if name is None else _names_argument(name, ()):
        place = _places[each]
        if place.stand_in is not None and place.stand_in.active and getattr(np, each, None) is place.stand_in:
            return True
    return False


def patch_info() -> dict[str, PatchInfo]:
    """Return how many calls of each function have been taken and passed on, by all patches so far.

    Returns
    -------
    dict of str to PatchInfo
        For each function that has been patched: `taken`, the calls that bcast has done, and `passed`, those that it
        left to NumPy. In an interpreter without a GIL, some of many calls at the same time may not be counted.

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
    cdef Place place
    found = {}
    for name in _places:
        place = _places[name]
        if place.stand_in is not None:
            found[name] = PatchInfo(place.taken, place.passed)
    return found


cdef int _replace(tuple names) except -1:
    """Put stand-ins in place. All that may fail comes first; from then on, no other thread comes in between."""
    cdef list stand_ins = []
    cdef Py_ssize_t i
    cdef Place place
    for name in names:
        original = getattr(np, name)
        while type(original) is StandIn and not original.active:  # somebody had kept it, and put it back
            original = original.original
        stand_ins.append(StandIn(original, _places[name]))
    for i in range(len(names)):
        place = _places[names[i]]
        if place.uses == 0:
            stand_ins[i], place.stand_in = place.stand_in, stand_ins[i]  # the old one is freed at the end
            setattr(np, names[i], place.stand_in)
        place.uses += 1
    return 0


cdef int _put_back(tuple names) except -1:
    """Take one patch back. Where something else has been put in the stand-in's place, that stays."""
    cdef Place place
    for name in names:
        place = _places[name]
        if place.uses == 0:
            raise RuntimeError("`patched_numpy` expected to be left once for each time that it is entered, got more")
        place.uses -= 1
        if place.uses == 0 and place.stand_in is not None:
            place.stand_in.active = False  # somebody may still have it
            if getattr(np, name) is place.stand_in:
                setattr(np, name, place.stand_in.original)
    return 0


cdef tuple _names_argument(names, tuple more):
    """Check the names of functions."""
    cdef list chosen = []
    if not more and (isinstance(names, bytes) or not isinstance(names, Iterable)):
        raise TypeError(f"`names` expected names among {', '.join(_places)}, got {show(names)}")
    for name in (names, *more) if more or isinstance(names, str) else names:
        if not isinstance(name, str) or name not in _places:
            remedy = f"; give {str(name)[3:]!r}" if str(name)[3:] in _places else ""    # without "np."
            raise ValueError(f"`names` expected names among {', '.join(_places)}, got {show(name)}{remedy}")
        if name not in chosen:
            chosen.append(name)
    return tuple(chosen)


def take_tile(A, reps):
    kind = type(reps)
    if not is_plain(A):
        return None
    if kind is not int and not ((kind is tuple or kind is list) and all_plain(tuple(reps))):
        reps = _multipliers(reps, A)
        if reps is None:
            return None
    if not is_contiguous(A) and (reps == 1 if kind is int else are_ones(tuple(reps))):
        # Nothing is repeated, and NumPy keeps the order of the axes in memory.
        return A.copy("K") if kind is int or len(reps) <= A.ndim else None
    return tile(A, reps)


def take_repeat(a, repeats, axis=None):
    kind = type(repeats)
    if not is_plain(a) or not (axis is None or type(axis) is int):
        return None
    if can_count(repeats):
        return repeat(a, repeats, axis) if repeats.ndim < 2 else None
    if kind is tuple or kind is list:  # where nothing is repeated, NumPy checks them
        return repeat(a, repeats, axis) if _are_whole(tuple(repeats)) and size_of(a) > 0 else None
    if not _are_whole((repeats,)):
        return None
    # As an integer of C: NumPy refuses larger ones for empty arrays, too.
    return repeat(a, <Py_ssize_t> int(repeats), axis)


def take_meshgrid(*xi, copy=True, sparse=False, indexing="xy"):
    if copy is not True or not isinstance(sparse, bool) or not _are_plain(xi):
        return None
    return meshgrid(*xi, sparse=sparse, indexing=indexing)


def take_broadcast_arrays(*args, subok=False):
    return broadcast_arrays(*args) if _are_plain(args) else None


def take_where(condition, x, y, /):
    return choose(condition, _scalar_as_array(x), _scalar_as_array(y), None)


cdef _scalar_as_array(x):
    """xarray and pandas pass NumPy's scalars, which promote as arrays do."""
    return x if cnp.PyArray_CheckExact(x) or not isinstance(x, generic) else np.asarray(x)


def take_stack(arrays, axis=0):
    cdef Py_ssize_t at
    first = arrays[0]
    if type(axis) is not int:
        return None
    shape = shape_of(first)
    at = axis if axis >= 0 else axis + len(shape) + 1
    if not 0 <= at <= len(shape):
        return None
    return broadcast(first, shape[:at] + (len(arrays),) + shape[at:], mode="explicit", broadcast_axes=(at,))


def take_dstack(tup):
    first = tup[0]
    return take_stack(tup, 2) if first.ndim == 2 else None


def take_sum(a, axis=None, dtype=None, out=None, keepdims=False, initial=NO_VALUE, where=NO_VALUE):
    return _take("sum", a, axis, dtype, out, keepdims, 0, initial is where is NO_VALUE)


def take_mean(a, axis=None, dtype=None, out=None, keepdims=False, *, where=NO_VALUE):
    return _take("mean", a, axis, dtype, out, keepdims, 0, where is NO_VALUE)


def take_var(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=NO_VALUE, mean=NO_VALUE):
    return _take("var", a, axis, dtype, out, keepdims, ddof, where is mean is NO_VALUE)


def take_std(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=NO_VALUE, mean=NO_VALUE):
    return _take("std", a, axis, dtype, out, keepdims, ddof, where is mean is NO_VALUE)


cdef _take(str name, a, axis, dtype, out, keepdims, ddof, bint of_all):
    cdef bint of_axes = axis is None or type(axis) is int or type(axis) is tuple and axis != ()
    if not of_all or not of_axes or not cnp.PyArray_CheckExact(a) or not has_terms(a, axis):
        return None
    return reduced(name, a, axis, dtype, out, keepdims, ddof)


cdef bint has_terms(cnp.ndarray array, axis):
    """Whether sums along one axis or all add something up: others, of tiny arrays, would gain less than they cost."""
    cdef Py_ssize_t at, rank = cnp.PyArray_NDIM(array)
    if type(axis) is not int or size_of(array) < 2:
        return size_of(array) > 1
    at = axis if axis >= 0 else axis + rank
    return 0 <= at < rank and cnp.PyArray_DIM(array, <int> at) > 1


cdef bint are_one(arrays):
    """Whether a sequence has one plain array several times, in the order that NumPy's result would have."""
    cdef bint are = (type(arrays) is list or type(arrays) is tuple) and len(arrays) > 1
    for array in arrays if are else ():
        if array is not arrays[0]:
            return False
    return are and is_plain(arrays[0]) and arrays[0].dtype.isnative and is_contiguous(arrays[0])


cdef tuple _multipliers(reps, array):
    """Return integers of NumPy's as Python's, if its products of them and the array's lengths do not wrap around."""
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
    """Return whether these are integers or whole floats, which NumPy takes unless they are an array's."""
    for count in counts:
        whole = type(count) is int or isinstance(count, integer)
        if not whole and not (isinstance(count, FLOATS) and count.is_integer()):
            return False
    return True


cdef bint _are_plain(tuple arrays):
    for array in arrays:
        if not is_plain(array):
            return False
    return len(arrays) > 0


cdef bint is_plain(array):
    """Whether this is an array of the base class, of numbers, bools, times or strings of one length each."""
    if not cnp.PyArray_CheckExact(array):
        return False
    cdef int number = cnp.PyArray_TYPE(<cnp.ndarray> array)
    return 0 <= number <= cnp.NPY_FLOAT16 and number != cnp.NPY_OBJECT and number != cnp.NPY_VOID


cdef bint can_count(array):
    """Whether this is an array of the base class, of integers that NumPy takes for counts."""
    if not cnp.PyArray_CheckExact(array):
        return False
    cdef int number = cnp.PyArray_TYPE(<cnp.ndarray> array)
    return cnp.NPY_BYTE <= number <= cnp.NPY_ULONGLONG and cnp.PyArray_CanCastSafely(number, cnp.NPY_INTP)


_places = {
    "tile": Place(take_tile), "repeat": Place(take_repeat), "meshgrid": Place(take_meshgrid),
    "broadcast_arrays": Place(take_broadcast_arrays), "where": Place(take_where, 3), "sum": Place(take_sum),
    "mean": Place(take_mean), "var": Place(take_var), "std": Place(take_std),
    "stack": Place(take_stack, 1, True), "dstack": Place(take_dstack, 1, True),
}
