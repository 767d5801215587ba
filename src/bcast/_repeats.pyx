# cython: cdivision=True
"""`repeat_counted`: repeat each item of an array along an axis by a count of its own, as bytes.

Here everything becomes contiguous that is not, or that overlaps the output. `_copy/counted.pyx` writes the output.
Threads, the GIL and streaming are those of `replicate`.
"""

cimport numpy as cnp
from libc.stdint cimport uint8_t

from bcast._copy.counted cimport CountedPlan, drop_counted, make_counted, write_counted
from bcast._kernel cimport count_threads, is_large, replicate, write_large, write_shares
from bcast._rules.alignment cimport aligned
from bcast._rules.counts cimport Counts
from bcast._runtime.arrays cimport shape_of
from bcast._runtime.extent cimport contiguous_overlap, extent
from bcast._runtime.result cimport new_array

cdef extern from "numpy/arrayobject.h":
    bint PyDataType_REFCHK(cnp.PyArray_Descr *dtype)

cnp.import_array()


cpdef repeat_counted(cnp.ndarray data, Counts counts, int axis, cnp.ndarray out):
    """Repeat the items of `data` along an axis into `out` and return `out`.

    Parameters
    ----------
    data : ndarray
        An array of any layout, whose items have no references.
    counts : Counts
        One for each item along the axis.
    axis : int
        The axis, 0 or more; or -1 for the items of the flattened data.
    out : ndarray
        A writeable array of `data`'s dtype and of any strides. Its shape is that of the data with the counts' total as
        the length of the axis. It may overlap `data` and the counts: the result is as if both had been copied first.

    Returns
    -------
    ndarray
        `out` itself.
    """
    if PyDataType_REFCHK(cnp.PyArray_DESCR(data)) or PyDataType_REFCHK(cnp.PyArray_DESCR(out)):
        raise TypeError(f"`data` expected items without references, got {data.dtype}")
    if cnp.PyArray_ITEMSIZE(data) != cnp.PyArray_ITEMSIZE(out):
        raise TypeError(f"`out` expected data's dtype {data.dtype}, got {out.dtype}")
    if not -1 <= axis < cnp.PyArray_NDIM(data):
        raise ValueError(f"`axis` expected an axis of data of shape {shape_of(data)}, got {axis}")
    if cnp.PyArray_SIZE(out) == 0 or cnp.PyArray_ITEMSIZE(out) == 0:
        return out
    if not cnp.PyArray_IS_C_CONTIGUOUS(out):
        whole = new_array(<cnp.dtype> cnp.PyArray_DESCR(data), shape_of(out), "repeats")
        return _copied(repeat_counted(data, counts, axis, whole), out)
    if not cnp.PyArray_IS_C_CONTIGUOUS(data) or contiguous_overlap(data, out):
        data = _copied(data, new_array(<cnp.dtype> cnp.PyArray_DESCR(data), shape_of(data), "a"))
    counts.keep_from(out)
    _repeat_contiguous(data, counts, axis, out)
    return out


cdef _copied(cnp.ndarray data, cnp.ndarray out):
    """Copy `data` into `out`, which has its shape."""
    cdef tuple shape = shape_of(data)
    return replicate(data, aligned(shape, shape), out)


cdef int _repeat_contiguous(cnp.ndarray data, Counts counts, int axis, cnp.ndarray out) except -1:
    cdef CountedPlan plan
    cdef Py_ssize_t outer = 1, size = cnp.PyArray_ITEMSIZE(data), nbytes = cnp.PyArray_NBYTES(out)
    cdef Py_ssize_t n = cnp.PyArray_SIZE(data)
    cdef int threads, i
    if axis >= 0:
        n = cnp.PyArray_DIM(data, axis)
        for i in range(axis):
            outer *= cnp.PyArray_DIM(data, i)
        for i in range(axis + 1, cnp.PyArray_NDIM(data)):
            size *= cnp.PyArray_DIM(data, i)
    # Arguments that run code of the user's can resize arrays; and `starts` may be wrong for more items than memory has.
    if (
        n != counts.list.size or outer * size == 0 or not counts.is_exact()
        or nbytes // (outer * size) != counts.list.total or nbytes % (outer * size)
    ):
        raise ValueError("`data` and `out` expected arrays that keep their sizes during the call, got resized ones")
    threads = count_threads(nbytes + n * counts.list.itemsize)
    make_counted(&plan, &counts.list, outer, size, <const uint8_t *> cnp.PyArray_DATA(data))
    try:
        if is_large(nbytes, threads):
            write_large(write_counted, &plan, extent(data), extent(out), threads)
        elif threads > 1:
            write_shares(
                write_counted, &plan, <const uint8_t *> cnp.PyArray_DATA(data), <uint8_t *> cnp.PyArray_DATA(out),
                nbytes, NULL, threads,
            )
        else:
            write_counted(
                &plan, 0, nbytes, <const uint8_t *> cnp.PyArray_DATA(data), <uint8_t *> cnp.PyArray_DATA(out), NULL,
            )
    finally:
        drop_counted(&plan)
    return 0
