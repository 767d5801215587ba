"""The extent of an array: the memory between its first and its last byte.

A memoryview of it holds an array whose buffer NumPy does not export, as those of datetimes and of added dtypes. What
each small call asks stands in `_runtime/extent.pxd`, to be compiled where it is used.
"""

cimport cython
cimport numpy as cnp
from cpython.buffer cimport PyBuffer_FillInfo
from cpython.ref cimport Py_DECREF

cnp.import_array()


@cython.final
@cython.auto_pickle(False)
@cython.freelist(4)
cdef class Extent:
    """The memory between an array's first and last byte, as plain bytes."""

    def __getbuffer__(self, Py_buffer *buffer, int flags):
        if self.array is None:      # made by Python
            raise BufferError("`Extent` expected an array, got none")
        Py_DECREF(None)     # the reference that Cython has put into `buffer.obj`, which is overwritten
        PyBuffer_FillInfo(buffer, self, self.begin, self.size, not cnp.PyArray_ISWRITEABLE(self.array), flags)


cdef Extent extent(cnp.ndarray array):
    cdef Extent result = Extent.__new__(Extent)
    result.array = array
    result.size = reach(array, &result.begin)
    return result
