"""An object that stands in for a function: it takes the calls that it can do better, and passes the others on."""

cimport cython
cimport numpy as cnp
from cpython.object cimport Py_EQ, Py_NE, PyObject, PyTypeObject

from types import MethodType

cdef extern from "_runtime/stand_in.h":
    ctypedef object (*Vectorcall "vectorcallfunc")(object, PyObject *const *, size_t, PyObject *)
    void take_vectorcalls(PyTypeObject *type, Py_ssize_t offset)

cdef extern from "Python.h":
    object PyObject_Vectorcall(object, PyObject *const *, size_t, PyObject *)
    Py_ssize_t PyVectorcall_NARGS(size_t)

cnp.import_array()


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
