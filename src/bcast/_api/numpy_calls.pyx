"""Calls of NumPy's functions: `StandIn` stands in for one, and `take_*` do the calls that are sure to give the same.

These are the calls for arrays of the base class whose dtype is plain, with arguments of the usual types. Each `take_*`
returns None for a call that is left to NumPy's. So is a call that raises: NumPy says it in its own words. Only programs
that patch import this module.
"""

cimport cython
cimport numpy as cnp
from cpython.object cimport Py_EQ, Py_NE, PyObject, PyTypeObject

from bcast._api.tiling cimport are_ones
from bcast._elementwise cimport choose
from bcast._rules.arguments cimport all_plain
from bcast._runtime.arrays cimport is_contiguous, shape_of, size_of

import operator
from types import MethodType

from numpy import iinfo, integer, ndarray

from bcast._api.numpy_names import broadcast_arrays, meshgrid
from bcast._api.tiling import repeat, tile
from bcast._rules.arguments import FLOATS, INT64

cdef extern from "_api/stand_in.h":
    ctypedef object (*Vectorcall "vectorcallfunc")(object, PyObject *const *, size_t, PyObject *)
    void take_vectorcalls(PyTypeObject *type, Py_ssize_t offset)

cdef extern from "Python.h":
    object PyObject_Vectorcall(object, PyObject *const *, size_t, PyObject *)
    Py_ssize_t PyVectorcall_NARGS(size_t)

cnp.import_array()

cdef enum:
    SAMPLE_COUNTS = 32  # of an array of MANY_COUNTS or more
    MANY_COUNTS = 4096
    LITTLE = 3          # repetitions, in the mean


@cython.final
@cython.auto_pickle(False)
cdef class StandIn:
    """Stands in for a function of NumPy's; by what it says of itself, it is that function.

    Parameters
    ----------
    original : callable
        The function.
    take : callable
        Called with the arguments of each call, unless the first is no array of the base class. It returns None for a
        call that it leaves to `original`, and so does an error, which `original` then raises in its own words.
    """

    cdef Vectorcall call
    cdef readonly object original
    cdef readonly Py_ssize_t taken      # calls; without a GIL, some that happen at the same time may not be counted
    cdef readonly Py_ssize_t passed
    cdef public bint active             # or else all calls are passed on, and none is counted
    cdef object take
    cdef object __weakref__

    def __cinit__(self, original not None, take not None):
        self.call = call
        self.original = original
        self.take = take
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

    def __richcmp__(self, other, int operation):
        if operation != Py_EQ and operation != Py_NE:
            return NotImplemented
        if isinstance(other, StandIn):
            other = (<StandIn> other).original
        return (self.original == other) == (operation == Py_EQ)


cdef object call(object callee, PyObject *const *arguments, size_t count, PyObject *names):
    cdef StandIn stand_in = <StandIn> callee
    if not stand_in.active:
        return PyObject_Vectorcall(stand_in.original, arguments, count, names)
    if PyVectorcall_NARGS(count) == 0 or cnp.PyArray_CheckExact(<object> arguments[0]):
        try:
            result = PyObject_Vectorcall(stand_in.take, arguments, count, names)
        except Exception:
            result = None
        if result is not None:
            stand_in.taken += 1
            return result
    stand_in.passed += 1
    return PyObject_Vectorcall(stand_in.original, arguments, count, names)


cdef StandIn trial = StandIn(len, len)
take_vectorcalls(<PyTypeObject *> StandIn, <char *> &trial.call - <char *> <PyObject *> trial)


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
    cdef Py_ssize_t count
    kind = type(repeats)
    if kind is bool or not is_plain(a) or not (axis is None or type(axis) is int):
        return None
    if kind is int:
        count = repeats  # as an integer of C: NumPy refuses larger ones for empty arrays, too
        return repeat(a, count, axis)
    if can_count(repeats):
        if repeats.ndim == 0:
            return repeat(a, repeats.item(), axis)
        return None if repeats.ndim > 1 or repeats_little(repeats) else repeat(a, repeats, axis)
    if (kind is tuple or kind is list) and (all_plain(tuple(repeats)) or _are_whole(tuple(repeats))):
        # Where nothing is repeated, NumPy checks them.
        return repeat(a, repeats, axis) if size_of(a) > 0 else None
    if not _are_whole((repeats,)):
        return None
    count = operator.index(repeats) if isinstance(repeats, integer) else int(repeats)
    return repeat(a, count, axis)


def take_meshgrid(*xi, copy=True, sparse=False, indexing="xy"):
    if copy is not True or not isinstance(sparse, bool) or not _are_plain(xi):
        return None
    return meshgrid(*xi, sparse=sparse, indexing=indexing)


def take_broadcast_arrays(*args, subok=False):
    return broadcast_arrays(*args) if _are_plain(args) else None


def take_where(condition, x, y, /):
    return choose(condition, x, y, None)


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
    if 0 <= number <= cnp.NPY_CLONGDOUBLE or number == cnp.NPY_FLOAT16:
        return True
    return number in (cnp.NPY_STRING, cnp.NPY_UNICODE, cnp.NPY_DATETIME, cnp.NPY_TIMEDELTA)


cdef bint can_count(array):
    """Whether this is an array of the base class, of integers that NumPy takes for counts."""
    if not cnp.PyArray_CheckExact(array):
        return False
    cdef int number = cnp.PyArray_TYPE(<cnp.ndarray> array)
    return cnp.NPY_BYTE <= number <= cnp.NPY_ULONGLONG and cnp.PyArray_CanCastSafely(number, cnp.NPY_INTP)


cdef bint repeats_little(cnp.ndarray counts):
    """Whether there are many counts, a sample of which says that most items are repeated once or never.

    Where the mean is 1.5, NumPy takes 0.65 to 0.9 of the time of `repeat_counted` for 10,000 items.
    """
    cdef Py_ssize_t size = cnp.PyArray_SIZE(counts), step = size // SAMPLE_COUNTS, i
    cdef long long total = 0
    if size < MANY_COUNTS or counts.ndim != 1 or counts.dtype.num != cnp.NPY_INTP:
        return False
    if not cnp.PyArray_ISBEHAVED_RO(counts):
        return False
    for i in range(SAMPLE_COUNTS):
        total += (<cnp.npy_intp *> cnp.PyArray_GETPTR1(counts, i * step))[0]
    return total < LITTLE * SAMPLE_COUNTS
