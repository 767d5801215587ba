cdef int thread_count() noexcept nogil
cdef int free_threads() noexcept nogil
cdef double clock() noexcept nogil
cdef void note_wait(double worked, double waited) noexcept nogil
