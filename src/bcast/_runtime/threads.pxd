cdef enum:
    SHARES = 8          # for each thread, so that a thread that starts late or is slow takes fewer of them
    RELEASING = 524288  # bytes for a thread; below, views and releasing the GIL take noticeable time (bench_gil.py)

ctypedef void (*Share)(void *work, int share, int worker) noexcept nogil

cdef int thread_count() noexcept nogil
cpdef int free_threads(bint waking=*) noexcept nogil
cdef void run_shares(Share share, void *work, int shares, int threads) noexcept nogil
