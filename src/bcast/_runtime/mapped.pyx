"""Arrays in mapped files: the pages of a large one leave this process's memory as soon as they are written or read.

The system keeps them in its cache of files and writes them to the disk when it likes; what a process has mapped counts
as that process's memory until then. A shared map loses nothing by it. A private one would lose what was written, so
only the arrays of `numpy.memmap` are taken, and of these only the modes that share the file.
"""

cimport numpy as cnp

from mmap import mmap

import numpy as np

from bcast._runtime.extent cimport reach

cdef extern from "_runtime/mapped.h":
    void bcast_forget(const void *begin, size_t size) nogil

cnp.import_array()

cdef object file_array = np.memmap
cdef tuple SHARED = ("r", "r+", "w+")
cdef Py_ssize_t LARGE = 128 << 20   # bytes of a map: smaller ones stay, so that whoever reads or writes again is faster


def set_limits(large=128 << 20):
    """Set the size in bytes of the smallest map whose pages are forgotten: for tests of small files."""
    global LARGE
    LARGE = large


cpdef bint is_mapped(cnp.ndarray array) except -1:
    """Return whether an array lies in a large file that is mapped and shared."""
    cdef object base = array, mode = None
    if cnp.PyArray_BASE(array) == NULL:
        return False
    while isinstance(base, cnp.ndarray):
        if isinstance(base, file_array):
            mode = base.mode
        base = base.base
    return isinstance(base, mmap) and mode in SHARED and len(base) >= LARGE


cpdef forget(cnp.ndarray array):
    """Have the pages of an array leave this process's memory if it lies in a large file that is mapped and shared."""
    cdef char *begin
    cdef Py_ssize_t size
    if cnp.PyArray_SIZE(array) and is_mapped(array):
        size = reach(array, &begin)
        forget_range(begin, size)


cdef void forget_range(const void *begin, Py_ssize_t size) noexcept nogil:
    """Have the pages of a range in a file that is mapped and shared leave this process's memory."""
    bcast_forget(begin, size)
