cdef int thread_count() noexcept nogil
