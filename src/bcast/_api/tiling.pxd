# The C types of _api/tiling.py, which is plain Python without them.
cimport cython

from bcast._rules.alignment cimport Alignment, aligned
from bcast._rules.arguments cimport (
    all_plain, axes_argument, counts_argument, dtype_argument, place_of, plain_counts, shape_argument, total_of,
)
from bcast._kernel cimport repeat_counted
from bcast._rules.counts cimport Counts, counts_of_array, counts_of_tuple
from bcast._runtime.arrays cimport has_references, keeps_dtype, result_array, shape_of, size_of, type_of
from bcast._api.broadcast cimport as_array, is_tensor, materialise
from bcast._api.converted cimport convert_counted

cdef Py_ssize_t MAX_SIZE
cdef str SAME_KIND
cdef int STRINGS


@cython.locals(lengths=list, source=list, i=Py_ssize_t)
cpdef Alignment split(tuple shape, tuple counts, bint tiled)

cpdef bint are_ones(tuple counts)
cdef bint _decides_by_values(int number)


@cython.locals(lengths=list, i=Py_ssize_t)
cdef tuple _products(tuple shape, tuple counts)


@cython.locals(counts=list, at=Py_ssize_t)
cpdef list counts_along(str name, repeats, axis, tuple shape, bint known)


@cython.locals(counts=list, at=Py_ssize_t, i=Py_ssize_t)
cpdef tuple counts_of_axes(repeats, tuple axes, tuple shape)


@cython.locals(items=tuple)
cpdef bint are_nested(repeats)

cdef bint _is_sequence(repeats)


@cython.locals(counts=list, i=Py_ssize_t, at=Py_ssize_t)
cpdef list nested_counts(repeats, tuple axes, tuple shape, bint known)


@cython.locals(
    counts=Counts, plain=tuple, items=Py_ssize_t, total=Py_ssize_t,
    array=object,       # NumPy's declarations of arrays would call its C API
)
cpdef repeats_argument(repeats, Py_ssize_t size, axis)


@cython.locals(shape=tuple, whole=tuple)
cdef _repeat_counted(array, Counts counts, int axis, out, dtype, casting)


cdef _repeat_converted(array, Counts counts, int axis, tuple whole, out, dtype, casting)


@cython.locals(lengths=list, alike=list, steps=list, i=Py_ssize_t, at=Py_ssize_t)
cdef _repeat_axes(array, list counts, out, dtype, casting)


cdef _repeat_alike(array, tuple shape, tuple counts, out, dtype, casting)

cdef _whole(array)
