cimport numpy as cnp
from libc.stdint cimport int64_t

cdef enum:
    CHUNK = 512         # counts that are read together

cdef struct CountList:
    Py_ssize_t size             # number of counts, including copies in `TiledCounts`
    Py_ssize_t total            # their sum; -1 if one is negative, MAX_SIZE if it is that or more
    const int64_t *kept         # a private copy of them; NULL if the shared ones are read
    const char *shared          # the shared ones, which another thread may change
    int type                    # NumPy's number for the type of the shared ones
    int itemsize
    # For each chunk, the sum of the counts before it, followed by the sum of all; NULL if there is only one chunk.
    const Py_ssize_t *starts

cdef struct TiledCounts:
    CountList list              # with `starts`, even of one chunk
    int64_t[CHUNK] few          # copies of few counts side by side
    # Of one chunk: 0 and the sum of its counts. `list.starts` points to it then, so that this struct is not copied.
    Py_ssize_t[2] ends

cdef class Counts:
    cdef readonly Py_ssize_t size, total    # as in `list`
    cdef CountList list
    cdef int64_t *owned         # the same as `kept`, unless that is an array's
    cdef cnp.ndarray array      # the array of `shared`, or of `kept` unless it is owned

    cpdef cnp.ndarray to_array(self)
    cdef bint is_exact(self) noexcept
    cdef int check(self) except -1
    cpdef int keep_from(self, cnp.ndarray out) except -1

cpdef Counts counts_of_array(repeats)
cpdef Counts counts_of_tuple(tuple repeats)
cdef Py_ssize_t find_chunk(const CountList *counts, Py_ssize_t at, Py_ssize_t each) noexcept nogil
cdef const int64_t *read_chunk(const CountList *counts, Py_ssize_t c, int64_t *room) noexcept nogil
cdef void tile_counts(TiledCounts *counts, Py_ssize_t times) noexcept nogil
