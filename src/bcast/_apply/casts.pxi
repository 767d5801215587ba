# Conversions from one dtype to another, with the bits and the floating-point errors of NumPy's.
#
# In: two dtypes. Out: what converts items, or NULL. What a conversion gives for numbers that the other dtype does not
# hold is nothing that C or NumPy says: it is compared with what NumPy gives, once.

cdef extern from "_apply/casts.h":
    Cast cast_for "bcast_cast_of"(int target, int src, int dst, int bfloat16, bint exact)
    void swap_bytes "bcast_swap_bytes"(Py_ssize_t n, int size, void *items) noexcept nogil

cdef dict compared = {}     # whether items are converted as by NumPy
# On both sides of what the dtypes hold, and of halves.
cdef list PROBES = [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 1.0009765625, 1e-3, -7e-5, 6e-8, 2.9e-8, 1e-40, -1e-300]
for _size in (7, 8, 15, 16, 31, 32, 63, 64):
    for _more in (-1.0, -0.75, 0.0, 0.75, 2.0):
        PROBES += [2.0 ** _size + _more, -(2.0 ** _size) - _more]
PROBES += [65504.0, 65519.0, 65520.0, -65536.5, 3.4e38, 1e39, -1e300, float("inf"), -float("inf"), float("nan")]


cdef extern from "_apply/simd/half.h":
    Cast half_cast "BCAST_F16_CAST"(int target)


cdef inline Cast cast_of(int src, int dst, bint exact) noexcept:
    if src == cnp.NPY_FLOAT and dst == cnp.NPY_FLOAT16 and not exact and half_cast(target_number) != NULL:
        return half_cast(target_number)
    return cast_for(target_number, src, dst, bfloat16, exact)


cdef Cast sure_cast(cnp.dtype src, cnp.dtype dst) except? NULL:
    """What converts items as NumPy does; NULL if nothing here is sure to."""
    cdef Cast cast = cast_of(src.type_num, dst.type_num, True)
    if cast != NULL:
        return cast
    cast = cast_of(src.type_num, dst.type_num, False)
    pair = src.type_num, dst.type_num
    if cast != NULL and pair not in compared:
        compared[pair] = _is_numpys(cast, src, dst)
    return cast if cast != NULL and compared[pair] else NULL


cdef bint _is_numpys(Cast cast, cnp.dtype src, cnp.dtype dst) except -1:
    """Compare a conversion with NumPy's: of all probes at once, then of each of them, with floating-point errors."""
    cdef cnp.ndarray items, expected, given
    cdef Py_ssize_t i, size = dst.itemsize
    with np.errstate(all="ignore"):
        items = np.array(PROBES).astype(src)
        expected = items.astype(dst)
        given = np.zeros_like(expected)
        cast(cnp.PyArray_SIZE(items), cnp.PyArray_DATA(items), cnp.PyArray_DATA(given))
        PyUFunc_clearfperr()
    if memcmp(cnp.PyArray_DATA(given), cnp.PyArray_DATA(expected), cnp.PyArray_NBYTES(given)) != 0:
        return False
    for i in range(cnp.PyArray_SIZE(items)):
        drop_converted(items[i:i + 1], dst)
        flags = PyUFunc_getfperr()
        cast(1, <char *> cnp.PyArray_DATA(items) + i * src.itemsize, cnp.PyArray_DATA(given))
        if PyUFunc_getfperr() != flags or memcmp(
            cnp.PyArray_DATA(given), <char *> cnp.PyArray_DATA(expected) + i * size, size,
        ) != 0:
            return False
    return True
