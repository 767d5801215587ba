# cython: cdivision=True
cimport numpy as cnp
from libc.stdint cimport uintptr_t
from libc.stdlib cimport free, malloc

from bcast._runtime.tuning cimport THREAD_SHARES

cdef extern from "_runtime/cpu.h":
    enum:
        LINE "BCAST_LINE"
        PAGE "BCAST_PAGE"
        L1 "BCAST_L1"
        BYTES_OF_L2 "BCAST_L2"
        TARGET_COUNT "BCAST_TARGET_COUNT"
    const char **target_names "bcast_target_names"
    bint has_target "bcast_has"(int target)

cdef int target_number      # the number of the target whose kernels all calls use

ctypedef void (*Share)(void *work, int share, int worker) noexcept nogil
ctypedef void (*Fold)(void *work) noexcept nogil

cdef struct Job:
    # Work that is cut into shares for threads, and the memory that they need. core.pyx explains the phases of a job.
    void *work                  # common to all shares
    Share share                 # runs one of them
    Fold fold                   # combines their partial results; NULL if there are none
    int shares                  # their number
    int threads                 # the most threads that run them, including the caller
    Py_ssize_t scratch_bytes    # scratch of each thread; whole lines, so that no two threads write the same line
    Py_ssize_t found_bytes      # size of the memory for partial results, which is not cleared; 0 without any
    char *scratch               # from take_scratch to free_scratch: the first thread's, then the others', in lines
    char *found                 # the memory for partial results, after all scratch, at the start of a line
    char *allocated             # freed in the end; NULL if the caller's memory is enough

cpdef int free_threads(bint waking=*) noexcept nogil
cdef void run_job(const Job *job) noexcept nogil
cdef int run_without_gil(const Job *job, arrays) except *


cdef inline Py_ssize_t whole_lines(Py_ssize_t size) noexcept nogil:
    """The bytes of the whole cache lines for a size."""
    return (size + LINE - 1) & -LINE


cdef inline int count_shares(int threads, Py_ssize_t units) noexcept nogil:
    """The number of shares, at most one for each unit: one for one thread, several for each of several threads."""
    return 1 if threads == 1 else <int> min(units, <Py_ssize_t> THREAD_SHARES * threads)


cdef inline Job new_job(Share share, void *work, int threads, int shares) noexcept nogil:
    """Begin a job of some shares on some threads."""
    return Job(
        work=work,
        share=share,
        fold=NULL,
        shares=shares,
        threads=threads,
        scratch_bytes=0,
        found_bytes=0,
        scratch=NULL,
        found=NULL,
        allocated=NULL,
    )


cdef inline bint take_scratch(Job *job, char *own, Py_ssize_t own_bytes) noexcept nogil:
    """Find the memory that a job needs: the caller's own, or else new; return whether there is some.

    Memory of the caller's frame is in a cache already.
    """
    cdef Py_ssize_t all_scratch, needed

    job.scratch_bytes = whole_lines(job.scratch_bytes)
    all_scratch = job.threads * job.scratch_bytes
    needed = all_scratch + job.found_bytes + LINE - 1
    if needed > own_bytes:
        own = job.allocated = <char *> malloc(needed)
        if own == NULL:
            return False
    job.scratch = <char *> whole_lines(<Py_ssize_t> own)
    job.found = job.scratch + all_scratch
    return True


cdef inline char *scratch_of(const Job *job, int worker) noexcept nogil:
    """The scratch of a thread, if the job has any."""
    return job.scratch + worker * job.scratch_bytes


cdef inline void free_scratch(Job *job) noexcept nogil:
    """Free what was allocated for a job."""
    if job.allocated != NULL:
        free(job.allocated)


cdef inline int count_threads(Py_ssize_t size, Py_ssize_t least, Py_ssize_t waking, Py_ssize_t most) noexcept nogil:
    """The number of threads for work: each has `least` of its `size`; from `waking` times `least` on, sleepers wake."""
    # By divisions, because a product with a test's limit may wrap around.
    if size // 2 < least:
        return 1
    return <int> min(free_threads(size // waking >= least), min(size // least, most))


cdef inline Py_ssize_t cut(Py_ssize_t n, int i, int shares) noexcept nogil:
    """The beginning of share `i` of `n` units: n * i // shares, even if that product overflows."""
    if shares == 1:     # without a division, which is slower than the sum of a few terms
        return i * n
    return n // shares * i + n % shares * i // shares


cdef Py_ssize_t MAX_BYTES       # the most bytes of an array
cdef object block_handler       # the handler of the memory of arrays over blocks, as a capsule

cdef void drop_unused() noexcept
cdef void *take_block(void *ctx, size_t size) noexcept
cdef void give_back_block(void *ctx, void *data, size_t size) noexcept
cdef bint pays(size_t nbytes) noexcept nogil
cpdef bint is_mapped(cnp.ndarray array) except -1
cpdef forget(cnp.ndarray array)
cdef void forget_range(const void *begin, Py_ssize_t size) noexcept nogil


cdef inline Py_ssize_t reach(cnp.ndarray array, char **begin) noexcept:
    """Find the beginning of the memory of a non-empty array; return how many bytes it spans."""
    cdef Py_ssize_t size = cnp.PyArray_ITEMSIZE(array), along
    cdef int i
    begin[0] = <char *> cnp.PyArray_DATA(array)
    for i in range(cnp.PyArray_NDIM(array)):
        along = (cnp.PyArray_DIM(array, i) - 1) * cnp.PyArray_STRIDE(array, i)
        if along < 0:
            begin[0] += along
            along = -along      # `abs` would make a Python object
        size += along
    return size


cdef inline bint overlap(cnp.ndarray a, cnp.ndarray b) noexcept:
    """Whether two arrays may share memory: not if both own it; otherwise if their extents overlap."""
    cdef char *a_begin
    cdef char *b_begin
    cdef Py_ssize_t a_size, b_size
    if a is not b and cnp.PyArray_CHKFLAGS(a, cnp.NPY_ARRAY_OWNDATA) and cnp.PyArray_CHKFLAGS(b, cnp.NPY_ARRAY_OWNDATA):
        return False
    a_size = reach(a, &a_begin)
    b_size = reach(b, &b_begin)
    return <uintptr_t> a_begin < <uintptr_t> b_begin + b_size and <uintptr_t> b_begin < <uintptr_t> a_begin + a_size


cdef inline bint contiguous_overlap(cnp.ndarray a, cnp.ndarray b) noexcept:
    """The same for contiguous arrays, in half the time, for small calls."""
    cdef uintptr_t a_begin = <uintptr_t> cnp.PyArray_DATA(a)
    cdef uintptr_t b_begin = <uintptr_t> cnp.PyArray_DATA(b)
    return a_begin < b_begin + cnp.PyArray_NBYTES(b) and b_begin < a_begin + cnp.PyArray_NBYTES(a)
