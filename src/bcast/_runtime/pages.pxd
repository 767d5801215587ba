cdef bint pays(size_t nbytes) noexcept nogil
cdef object page_handler()
cdef void *new_block(size_t nbytes) noexcept nogil
cdef void drop_block(void *data) noexcept nogil
cdef void drop_unused() noexcept
