cpdef int free_threads(bint waking=*) noexcept nogil
cdef double clock() noexcept nogil
cpdef void note_wait(double worked, double waited) noexcept nogil
