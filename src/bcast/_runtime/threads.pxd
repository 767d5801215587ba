# cython: cdivision=True
cdef enum:
    SHARES = 8          # for each thread, so that a thread that starts late or is slow takes fewer of them
    WAKING = 8          # threads' least work; for less, waking threads that sleep costs more than it saves
    RELEASING = 524288  # bytes for a thread; below, views and releasing the GIL take noticeable time (bench_gil.py)

ctypedef void (*Share)(void *work, int share, int worker) noexcept nogil

cdef int thread_count() noexcept nogil
cpdef int free_threads(bint waking=*) noexcept nogil
cdef void run_shares(Share share, void *work, int shares, int threads) noexcept nogil


cdef inline int count_threads(Py_ssize_t size, Py_ssize_t least, Py_ssize_t waking, Py_ssize_t most) noexcept nogil:
    """How many threads share work: each has `least` of its `size`, and from `waking` on those that sleep are woken."""
    return <int> min(free_threads(size >= waking), min(size // least, most)) if size >= 2 * least else 1


cdef inline Py_ssize_t cut(Py_ssize_t n, int i, int shares) noexcept nogil:
    """Where share `i` of `n` units begins: at n * i // shares, even if that product is too long."""
    if shares == 1:     # without a division, which takes longer than the sum of few terms
        return i * n
    return n // shares * i + n % shares * i // shares
