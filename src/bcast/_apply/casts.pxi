# Conversions from one dtype to another, with the bits and the floating-point errors of NumPy's.
#
# In: two dtypes. Out: what converts items, or NULL. What a conversion gives for numbers that the other dtype does not
# hold is nothing that C or NumPy says: it is compared with what NumPy gives, once.

cdef extern from "_apply/casts.h":
    ctypedef void (*Cast "bcast_cast")(Py_ssize_t n, const void *src, void *dst) noexcept nogil  # side by side
    Cast cast_of "bcast_cast_of"(int target, int src, int dst, int bfloat16, bint exact)
    void swap_bytes "bcast_swap_bytes"(int target, Py_ssize_t n, int size, void *items) noexcept nogil

cdef extern from "_apply/saturate.h":
    Cast saturating_cast_of "bcast_saturating_cast_of"(int target, int src, int dst, int bfloat16)

cdef int bfloat16 = -9      # the number that NumPy gave to the dtype of ml_dtypes; less as long as that is not known
cdef dict compared = {}     # whether items are converted as by NumPy
cdef enum: PROBES_IN_ROW = 70      # more than any vector has items, and some
# On both sides of what the dtypes hold, and of halves.
cdef list PROBES = [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 1.0009765625, 1e-3, -7e-5, 6e-8, 2.9e-8, 1e-40, -1e-300]
for _size in (7, 8, 15, 16, 31, 32, 63, 64):
    for _more in (-1.0, -0.75, 0.0, 0.75, 2.0):
        PROBES += [2.0 ** _size + _more, -(2.0 ** _size) - _more]
PROBES += [65504.0, 65519.0, 65520.0, -65536.5, 3.4e38, 1e39, -1e300, float("inf"), -float("inf"), float("nan")]


cdef int learn(cnp.dtype dtype) except -1:
    """Note the number of a dtype if it is the bfloat16 of ml_dtypes, unless that is known."""
    global bfloat16
    if bfloat16 < 0 and dtype.type_num >= 256 and dtype.itemsize == 2:
        kind = (<object> dtype).type
        if kind.__module__ == "ml_dtypes" and kind.__name__ == "bfloat16":
            bfloat16 = dtype.type_num
    return 0


cdef Cast sure_cast(cnp.dtype src, cnp.dtype dst) except? NULL:
    """What converts items as NumPy does; NULL if nothing here is sure to."""
    cdef Cast cast
    learn(src)
    learn(dst)
    cast = cast_of(target_number, src.type_num, dst.type_num, bfloat16, True)
    if cast != NULL:
        return cast
    cast = cast_of(target_number, src.type_num, dst.type_num, bfloat16, False)
    pair = src.type_num, dst.type_num
    if cast != NULL and pair not in compared:
        compared[pair] = _is_numpys(cast, src, dst)
    return cast if cast != NULL and compared[pair] else NULL


cpdef bint may_fail(cnp.ndarray data, cnp.dtype dtype) except -1:
    """Whether some item may be in error when it is converted: one is, or nothing here converts them."""
    cdef Cast cast = sure_cast(<cnp.dtype> cnp.PyArray_DESCR(data), dtype)
    cdef cnp.ndarray items
    cdef const char *src
    cdef uint8_t[16 * 512] room
    cdef Py_ssize_t left = cnp.PyArray_SIZE(data)
    if cast == NULL or cnp.PyArray_ISBYTESWAPPED(data):
        return True
    items = cnp.PyArray_GETCONTIGUOUS(data)
    src = <const char *> cnp.PyArray_DATA(items)
    PyUFunc_clearfperr()
    while left > 0:
        cast(min(left, <Py_ssize_t> 512), src, room)
        src += 512 * cnp.PyArray_ITEMSIZE(items)
        left -= 512
    return PyUFunc_getfperr() != 0


cdef bint _is_numpys(Cast cast, cnp.dtype src, cnp.dtype dst) except -1:
    """Compare a conversion with NumPy's: of all probes at once, then of each of them, with floating-point errors.

    Each probe fills a row, too, which takes vector code: compilers need not give it the errors of single items.
    """
    cdef cnp.ndarray items, expected, given, rows
    cdef list errors
    cdef Py_ssize_t i, count, size = dst.itemsize
    cdef bint same
    items, expected, errors = copy_context().run(_by_numpy, src, dst)   # whose error state nobody else sees
    rows = np.repeat(items, PROBES_IN_ROW)
    given = np.zeros(max(len(items), PROBES_IN_ROW), dst)
    cast(cnp.PyArray_SIZE(items), cnp.PyArray_DATA(items), cnp.PyArray_DATA(given))
    same = memcmp(cnp.PyArray_DATA(given), cnp.PyArray_DATA(expected), cnp.PyArray_NBYTES(expected)) == 0
    for i in range(cnp.PyArray_SIZE(items)):
        for count in 1, PROBES_IN_ROW:
            PyUFunc_clearfperr()
            cast(count, <char *> cnp.PyArray_DATA(rows) + i * PROBES_IN_ROW * src.itemsize, cnp.PyArray_DATA(given))
            same = same and PyUFunc_getfperr() == errors[i] and memcmp(
                cnp.PyArray_DATA(given), <char *> cnp.PyArray_DATA(expected) + i * size, size,
            ) == 0
    return same


def _by_numpy(src, dst):
    """The probes as items of a dtype, what NumPy converts them to, and the errors that each of them gives rise to."""
    errors = []
    np.seterr(all="ignore")
    items = np.array(PROBES).astype(src)
    for i in range(len(items)):
        PyUFunc_clearfperr()
        items[i:i + 1].astype(dst)
        errors.append(PyUFunc_getfperr())
    return items, items.astype(dst), errors
