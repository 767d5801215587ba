cdef class Alignment:
    cdef readonly tuple shape
    cdef readonly tuple source
