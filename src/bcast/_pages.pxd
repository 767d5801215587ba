cdef bint pays(size_t nbytes) noexcept nogil
cdef object page_handler()
