"""The extent of an array: the memory between its first and its last byte.

A memoryview of an extent keeps the array alive and its size fixed, even for dtypes whose buffer NumPy does not export:
datetimes and the dtypes of other packages. The functions that every small call uses are in `_runtime/extent.pxd`, so
that they are inlined.
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
        if self.array is None:      # it was made by Python code
            raise BufferError("`Extent` expected an array, got none")
        Py_DECREF(None)     # Cython has put this reference into `buffer.obj`, which is overwritten next
        PyBuffer_FillInfo(buffer, self, self.begin, self.size, not cnp.PyArray_ISWRITEABLE(self.array), flags)


cdef Extent extent(cnp.ndarray array):
    cdef Extent result = Extent.__new__(Extent)
    result.array = array
    result.size = reach(array, &result.begin)
    return result
