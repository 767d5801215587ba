# Types whose instances are called through a function in C.
from cpython.object cimport PyObject, PyTypeObject

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

    /* What a built-in function calls in C, if that takes arguments as they are in a vectorcall; else NULL. */
    static _PyCFunctionFastWithKeywords bcast_built_in_of(PyObject *function)
    {
        if (!PyCFunction_CheckExact(function))
            return NULL;
        if (PyCFunction_GET_FLAGS(function) != (METH_FASTCALL | METH_KEYWORDS))
            return NULL;
        return (_PyCFunctionFastWithKeywords) (void (*)(void)) PyCFunction_GET_FUNCTION(function);
    }

    /* A built-in function that calls `function` with `self`. The interpreter calls it without a look at its type, which
       saves 80 instructions of an instance's call. */
    static PyObject *bcast_built_in(_PyCFunctionFastWithKeywords function, PyObject *self)
    {
        static PyMethodDef method = {"reduce", NULL, METH_FASTCALL | METH_KEYWORDS, NULL};
        method.ml_meth = (PyCFunction) (void (*)(void)) function;
        return PyCFunction_New(&method, self);
    }
    """
    ctypedef object (*Vectorcall "vectorcallfunc")(object, PyObject *const *, size_t, PyObject *)
    void take_vectorcalls "bcast_take_vectorcalls"(PyTypeObject *type, Py_ssize_t offset)
    Py_ssize_t PyVectorcall_NARGS(size_t)
    ctypedef object (*BuiltIn "_PyCFunctionFastWithKeywords")(PyObject *, PyObject *const *, Py_ssize_t, PyObject *)
    BuiltIn built_in_of "bcast_built_in_of"(object function)
    PyObject *PyCFunction_GET_SELF(object function)
    object built_in "bcast_built_in"(BuiltIn function, object self)
