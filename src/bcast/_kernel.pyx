# cython: cdivision=True
"""`replicate` and `repeat_counted`: copy an array along an alignment, or each item as often as its count, as bytes.

NumPy copies items that cannot be copied as bytes, and writes strided outputs of `replicate`. All other calls need two
buffers and a plan of the copy core, for an alignment or for counts. This module releases the GIL and cuts the output
into shares of equal length, which threads write.
"""

cimport numpy as cnp
from libc.stdint cimport uint8_t

import numpy as np

from bcast._copy.plan cimport Buffers, Plan, make_plan
from bcast._copy.run cimport (
    CountedPlan, Output, Write, is_large, plan_counted, threads_for, write_counted, write_planned, write_shares,
    write_strided,
)
from bcast._rules.alignment cimport Alignment, aligned
from bcast._rules.counts cimport Counts
from bcast._runtime.arrays cimport new_array, shape_of
from bcast._runtime.core cimport contiguous_overlap, forget, is_mapped, overlap
from bcast._runtime.tuning cimport RELEASING_BYTES

cdef extern from "numpy/arrayobject.h":
    bint PyDataType_REFCHK(cnp.PyArray_Descr *dtype)

cnp.import_array()


cpdef replicate(cnp.ndarray data, Alignment alignment, cnp.ndarray out):
    """Copy `data` along `alignment` into `out` and return `out`.

    `data` has any layout; its shape is ``alignment.source``, perhaps without some of the 1s. `out` is writeable, of
    `data`'s dtype and of any strides; its shape is ``alignment.shape``, perhaps with some neighbouring axes merged and
    without some of the 1s. It may overlap `data`: the result is as if `data` had been copied first.
    """
    cdef tuple shape = alignment.shape, source = alignment.source
    if cnp.PyArray_DESCR(data) != cnp.PyArray_DESCR(out) and (
        cnp.PyArray_ITEMSIZE(data) != cnp.PyArray_ITEMSIZE(out)
        or PyDataType_REFCHK(cnp.PyArray_DESCR(data)) != PyDataType_REFCHK(cnp.PyArray_DESCR(out))
    ):
        raise TypeError(f"`out` expected data's dtype {_plain(data).dtype}, got {_plain(out).dtype}")
    if cnp.PyArray_SIZE(out) == 0 or cnp.PyArray_ITEMSIZE(out) == 0:
        return out
    if PyDataType_REFCHK(cnp.PyArray_DESCR(out)) or not cnp.PyArray_IS_C_CONTIGUOUS(out):
        _assign(out, shape, data, source)
    elif cnp.PyArray_IS_C_CONTIGUOUS(data):
        _replicate_contiguous(data, shape, source, out)
    else:
        _replicate_strided(data, shape, source, out)
    return out


cpdef repeat_counted(cnp.ndarray data, Counts counts, int axis, cnp.ndarray out):
    """Repeat the items of `data` along an axis into `out` and return `out`.

    `data` has any layout, and items without references. There is one count for each item along `axis`, which is 0 or
    more, or -1 for the items of the flattened data. `out` is as for `replicate`, with the counts' total as the length
    of the axis, and may overlap the counts, too.
    """
    cdef CountedPlan plan
    cdef Py_ssize_t size
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
        _assign(out, shape_of(out), repeat_counted(data, counts, axis, whole), shape_of(out))
        return out
    if not cnp.PyArray_IS_C_CONTIGUOUS(data) or contiguous_overlap(data, out):
        shape = shape_of(data)
        data = replicate(data, aligned(shape, shape), new_array(<cnp.dtype> cnp.PyArray_DESCR(data), shape, "a"))
    counts.keep_from(out)
    size = cnp.PyArray_NBYTES(out)
    plan_counted(&plan, data, counts, axis, out)
    _write(write_counted, &plan, data, out, size, threads_for(size + counts.list.size * counts.list.itemsize))
    return out


cdef int _replicate_contiguous(cnp.ndarray data, tuple shape, tuple source, cnp.ndarray out) except -1:
    cdef Plan plan
    cdef Py_ssize_t size = cnp.PyArray_NBYTES(out)
    cdef int threads = threads_for(size)
    if contiguous_overlap(data, out):
        data = _plain(data).copy()
    make_plan(&plan, shape, source, cnp.PyArray_ITEMSIZE(out), _buffers_of(data, out))
    return _write(write_planned, &plan, data, out, size, threads)


cdef int _replicate_strided(cnp.ndarray data, tuple shape, tuple source, cnp.ndarray out) except -1:
    """Make the data contiguous and replicate it; if only the outermost axes repeat, make it contiguous within `out`."""
    cdef bint apart = not overlap(data, out)
    cdef cnp.ndarray whole
    _expect_size(data, source)
    if _repeats_already(data):
        data = _once(_plain(data).reshape(source))
        source = shape_of(data)

    if apart and source == shape and cnp.PyArray_NBYTES(data) == cnp.PyArray_NBYTES(out):
        _write_contiguously(data, <uint8_t *> cnp.PyArray_DATA(out))
        forget(out)
        return 0
    if apart and _only_outermost_repeat(shape, source):
        return _replicate_block(data, out)

    whole = new_array(<cnp.dtype> cnp.PyArray_DESCR(data), source, "data")
    _write_contiguously(data, <uint8_t *> cnp.PyArray_DATA(whole))
    return _replicate_contiguous(whole, shape, source, out)


cdef inline int _expect_size(cnp.ndarray data, tuple source) except -1:
    """Refuse data whose size no longer matches the alignment."""
    cdef Py_ssize_t size = cnp.PyArray_ITEMSIZE(data)
    for length in source:
        size *= <Py_ssize_t> length
    if size != cnp.PyArray_NBYTES(data):
        raise ValueError("`data` expected an array that keeps its size during the call, got a resized one")
    return 0


cdef inline bint _repeats_already(cnp.ndarray data) noexcept:
    """Whether the data has an axis of stride 0."""
    cdef int axis
    for axis in range(cnp.PyArray_NDIM(data)):
        if cnp.PyArray_STRIDE(data, axis) == 0 and cnp.PyArray_DIM(data, axis) > 1:
            return True
    return False


cdef inline bint _only_outermost_repeat(tuple shape, tuple source) except -1:
    """Whether all repeated axes are outside the data's own axes, so that the output consists of equal blocks."""
    cdef Py_ssize_t outermost = 0
    while outermost < len(source) and <Py_ssize_t> source[outermost] == 1:
        outermost += 1
    return source[outermost:] == shape[outermost:]


cdef inline int _write_contiguously(cnp.ndarray data, uint8_t *dst) except -1:
    """Write the items of strided data contiguously, on as many threads as their bytes pay for."""
    cdef Py_ssize_t size = cnp.PyArray_NBYTES(data)
    cdef int threads = threads_for(size)
    return write_strided(data, dst, threads, size // threads >= RELEASING_BYTES)


cdef int _replicate_block(cnp.ndarray data, cnp.ndarray out) except -1:
    """Write the data as the first of the equal blocks of `out`, and copy that block to the others.

    Everything that can fail comes before the first write.
    """
    cdef Plan plan
    cdef Py_ssize_t block_bytes = cnp.PyArray_NBYTES(data)
    cdef Output others = _output_behind(block_bytes, out)
    cdef int threads = threads_for(others.size)
    cdef bint large = is_large(others.size, threads)
    cdef uint8_t[::1] whole

    others.plan = &plan
    others.is_mapped = large and is_mapped(out)
    _plan_blocks(&plan, &others, block_bytes)
    if large:
        whole = _bytes(out)
    _write_contiguously(data, <uint8_t *> cnp.PyArray_DATA(out))
    if large:
        return _write_views(&others, whole[:block_bytes], whole[block_bytes:], threads)
    write_shares(&others, threads)
    return 0


cdef inline Output _output_behind(Py_ssize_t block_bytes, cnp.ndarray out) noexcept:
    """The blocks of `out` after the first one, which is copied to them."""
    cdef uint8_t *block = <uint8_t *> cnp.PyArray_DATA(out)
    return Output(
        write=write_planned,
        plan=NULL,
        src=block,
        dst=block + block_bytes,
        size=cnp.PyArray_NBYTES(out) - block_bytes,
        is_mapped=False,
        mapped_src_bytes=0,
    )


cdef inline int _plan_blocks(Plan *plan, const Output *others, Py_ssize_t block_bytes) except -1:
    """Plan copies of one block to all others."""
    cdef Buffers buffers
    buffers.src, buffers.src_bytes = others.src, block_bytes
    buffers.dst, buffers.dst_bytes = others.dst, others.size
    make_plan(plan, (others.size // block_bytes, block_bytes), (1, block_bytes), 1, buffers)
    return 0


cdef cnp.ndarray _once(cnp.ndarray data):
    """A view of the data with length 1 along axes of stride 0, which already repeat it."""
    cdef list index = []
    cdef int axis
    for axis in range(cnp.PyArray_NDIM(data)):
        index.append(slice(None) if cnp.PyArray_STRIDE(data, axis) else slice(1))
    return data[tuple(index)]


cdef _assign(out, tuple shape, data, tuple source):
    """Have NumPy assign `data` to `out`."""
    data, out = _plain(data), _plain(out).reshape(shape)    # a view, as this only splits axes
    if np.may_share_memory(data, out):      # NumPy itself misses overlaps of unequal strides
        data = data.copy()
    np.copyto(out, data.reshape(source))


cdef _plain(array):
    """`array` as an array of the base class; a structured array as raw items, including padding."""
    plain = np.asarray(array)
    dtype = plain.dtype
    if dtype.names is not None and not dtype.hasobject:
        plain = plain.view(f"V{dtype.itemsize}")     # `np.dtype((np.void, n))` may drop an interrupt
    return plain


cdef inline int _write(
    Write write, const void *plan, cnp.ndarray data, cnp.ndarray out, Py_ssize_t size, int threads,
) except -1:
    """Fill a contiguous output of `size` bytes from contiguous data."""
    cdef const uint8_t *src = <const uint8_t *> cnp.PyArray_DATA(data)
    cdef uint8_t *dst = <uint8_t *> cnp.PyArray_DATA(out)
    cdef bint large = is_large(size, threads)
    cdef Output output

    if threads == 1 and not large:
        write(plan, 0, size, src, dst, NULL)
        return 0

    output = Output(
        write=write, plan=plan, src=src, dst=dst, size=size, is_mapped=large and is_mapped(out), mapped_src_bytes=0,
    )
    if large:
        output.mapped_src_bytes = cnp.PyArray_NBYTES(data) if is_mapped(data) else 0
        return _write_views(&output, _bytes(data), _bytes(out), threads)
    write_shares(&output, threads)
    return 0


cdef inline Buffers _buffers_of(cnp.ndarray data, cnp.ndarray out) noexcept:
    """The bytes of two contiguous arrays."""
    cdef Buffers buffers
    buffers.src = <const uint8_t *> cnp.PyArray_DATA(data)
    buffers.src_bytes = cnp.PyArray_NBYTES(data)
    buffers.dst = <uint8_t *> cnp.PyArray_DATA(out)
    buffers.dst_bytes = cnp.PyArray_NBYTES(out)
    return buffers


cdef cnp.ndarray _bytes(cnp.ndarray array):
    """The bytes of a contiguous array, whose memory does not move while this view exists."""
    cdef cnp.npy_intp size = cnp.PyArray_NBYTES(array)
    cdef cnp.ndarray view = cnp.PyArray_SimpleNewFromData(1, &size, cnp.NPY_UINT8, cnp.PyArray_DATA(array))
    cnp.set_array_base(view, array)
    return view


cdef int _write_views(const Output *output, const uint8_t[::1] _data, uint8_t[::1] _out, int threads) except -1:
    """Fill a large output without the GIL; the views of both arrays keep these from being resized."""
    with nogil:
        write_shares(output, threads)
    return 0
