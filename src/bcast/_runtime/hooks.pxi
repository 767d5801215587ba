# Hooks of tests: what follows from time, from the order of threads and from sizes happens when a test says so.

cdef bint in_order = False          # whether all shares run on the calling thread
cdef unsigned long long seed = 0    # of their order


def let_time_pass(time_t seconds):
    """Make all idle blocks older by so many seconds."""
    cdef int i
    for i in range(idle_blocks):
        idle[i].since -= seconds


def set_limits(large=MAP_MIN_BYTES):
    """Set the size in bytes of the smallest map whose pages are forgotten."""
    global map_min_bytes
    map_min_bytes = large


def note_loss(double seconds, bint in_vain=False):
    """Note that helpers kept a call of this thread from its work for so long, and whether it woke them in vain."""
    c_note_loss(seconds, in_vain)


def set_clock(seconds=None):
    """Stop the clock by which calls do without helpers at a time, 0 or more; without one, it shows the time."""
    global stopped_at
    stopped_at = -1 if seconds is None else seconds


def set_order(order=None):
    """Run all shares on the calling thread, from the last to the first if `order` is 0; another number is a seed."""
    global in_order, seed
    in_order = order is not None
    seed = order or 0


cdef void _run_in_order(Share share, void *work, int shares, int threads) noexcept nogil:
    cdef unsigned long long random = seed, stride = shares - 1, first = 0
    cdef unsigned long long[4] primes = [2147483647, 2147483629, 2147483587, 2147483579]    # no number of shares is one
    cdef int i
    if seed:
        random = random * 6364136223846793005ULL + 1442695040888963407ULL
        stride = primes[(random >> 33) % 4]
        first = (random >> 17) % shares
    for i in range(shares):
        random = random * 6364136223846793005ULL + 1442695040888963407ULL
        share(work, <int> ((stride * (i + 1) + first) % shares), <int> ((random >> 33) % threads))


def recorded_shares(int shares, int threads):
    """Run shares that do nothing; return the number of each and of its thread, in the order in which they began."""
    cdef cnp.ndarray rows
    if shares < 1 or threads < 1:
        raise ValueError(f"`shares`, `threads` expected 1 or more, got {shares}, {threads}")
    rows = np.zeros((shares + 1, 2), "l")
    with nogil:
        run_shares(_record, cnp.PyArray_DATA(rows), shares, threads)
    return list(map(tuple, rows[1:].tolist()))


cdef void _record(void *rows, int share, int worker) noexcept nogil:
    cdef long *row = <long *> rows
    row += 2 + 2 * next_of(row)
    row[0] = share
    row[1] = worker
