# The C types of _api/patching.py, which is plain Python without them.
cimport cython

cdef object _patches


cdef class Place:
    cdef object stand_in
    cdef Py_ssize_t uses
    cdef Py_ssize_t taken
    cdef Py_ssize_t passed


cdef Place _place(str name)


@cython.locals(stand_ins=list, i=Py_ssize_t, place=Place)
cdef int _replace(tuple names) except -1


@cython.locals(place=Place)
cdef int _put_back(tuple names) except -1


cdef tuple _names_argument(names)
