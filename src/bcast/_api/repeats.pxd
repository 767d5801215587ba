# The C types of _api/repeats.py, which is plain Python without them.
cimport cython

from bcast._rules.arguments cimport (
    all_plain, axes_argument, counts_argument, dtype_argument, place_of, plain_counts, shape_argument, total_of,
)
from bcast._kernel cimport repeat_counted
from bcast._rules.alignment cimport Alignment, aligned
from bcast._rules.counts cimport Counts, counts_of_array, counts_of_tuple
from bcast._runtime.arrays cimport has_references, result_array, shape_of, size_of, type_of
from bcast._api.converted cimport as_array, convert_counted, converts, is_tensor, materialise, prepared, without_dropped

cdef Py_ssize_t MAX_SIZE

cpdef bint are_ones(tuple counts)
cpdef tuple integers_of(list counts)
cpdef bint _is_sequence(repeats)


@cython.locals(lengths=list, i=Py_ssize_t)
cdef _materialise(array, tuple shape, tuple counts, bint tiled, str name, out, dtype, casting)


@cython.locals(shape=tuple, whole=tuple)
cdef _decode(array, Counts counts, int axis, out, dtype, casting)


@cython.locals(lengths=list, steps=list, times=tuple, i=Py_ssize_t, at=Py_ssize_t)
cdef _repeat_axes(array, tuple shape, list counts, out, dtype, casting)


@cython.locals(lengths=list, source=list, i=Py_ssize_t)
cpdef Alignment split(tuple shape, tuple counts, bint tiled)


@cython.locals(steps=list, at=Py_ssize_t)
cpdef list order(list counts)


@cython.locals(counts=list, at=Py_ssize_t)
cpdef list counts_along(repeats, along, tuple shape, bint known)


@cython.locals(counts=list, places=list, items=tuple, given=tuple, at=Py_ssize_t, i=Py_ssize_t)
cdef list _counts_along_several(repeats, tuple axes, tuple shape, bint known)


cdef tuple _counts_of_any(array, repeats)
cdef _expect_counts(repeats, Py_ssize_t items, Py_ssize_t total, Py_ssize_t size, axis)


@cython.locals(
    counts=Counts, plain=tuple, items=Py_ssize_t, total=Py_ssize_t,
    array=object,       # NumPy's declarations of arrays would call its C API
)
cpdef repeats_argument(repeats, Py_ssize_t size, axis)
