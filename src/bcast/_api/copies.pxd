# The C types of _api/copies.py, which is plain Python without them.
cimport cython
from numpy cimport ndarray

from bcast._api.converted cimport as_array, convert_counted, converts, is_tensor, materialise, prepared, without_dropped
from bcast._kernel cimport repeat_counted
from bcast._rules.arguments cimport (
    all_plain, axes_argument, counts_argument, dtype_argument, mode_of, place_of, plain_counts, shape_argument,
    total_of,
)
from bcast._rules.alignment cimport Alignment, align, align_shapes, aligned, merge, right_aligned
from bcast._rules.counts cimport Counts, counts_of_array, counts_of_tuple
from bcast._runtime.arrays cimport has_references, result_array, shape_of, size_of, type_of

cdef Py_ssize_t MAX_SIZE

cpdef refuse_shape(shape)
cpdef Alignment align_like(tuple data, tuple shape, like, axes_mapping, mode, axis, axes)


@cython.locals(
    rank=Py_ssize_t, i=Py_ssize_t, axis=Py_ssize_t, arrays=list, lengths=list, array=object, shape=tuple, source=tuple,
)
cdef tuple _grid(tuple xi, bint copy, bint sparse, bint swapped)


cdef Py_ssize_t _axis_of(Py_ssize_t i, bint swapped)
cdef _broadcast_line(array, tuple source, tuple shape)

cpdef bint are_ones(tuple counts)
cpdef tuple integers_of(list counts)
cpdef bint _is_sequence(repeats)


cdef bint _lacks_axis(tuple shape, along) except -1
cdef _times_along(repeats, Py_ssize_t size, axis)


@cython.locals(lengths=list, i=Py_ssize_t)
cdef tuple _lengths_after(tuple shape, tuple counts, str name)


@cython.locals(shape=tuple, whole=tuple)
cdef _decode(array, Counts counts, int axis, out, dtype, casting)


cdef _decode_by_numpy(array, Counts counts, int axis, tuple whole, out, wanted)


@cython.locals(passes=list, times=tuple, whole=tuple, i=Py_ssize_t, at=Py_ssize_t)
cdef _repeat_axes(array, tuple shape, list counts, out, dtype, casting)


@cython.locals(lengths=list, at=Py_ssize_t)
cdef tuple _lengths_after_runs(tuple shape, list counts)


@cython.locals(at=Py_ssize_t)
cdef _without_any_dropped(array, list counts)


@cython.locals(lengths=list, source=list, i=Py_ssize_t)
cpdef Alignment split(tuple shape, tuple counts, bint tiled)


@cython.locals(passes=list, at=Py_ssize_t)
cpdef list order(list counts)


@cython.locals(counts=list, at=Py_ssize_t)
cpdef list counts_along(repeats, along, tuple shape, bint known)


@cython.locals(counts=list, places=list, given=tuple, is_nested=bint, at=Py_ssize_t, i=Py_ssize_t)
cdef list _counts_along_several(repeats, tuple axes, tuple shape, bint known)


@cython.locals(items=tuple)
cdef tuple _nested_counts(repeats)


cdef tuple _counts_of_any(array, repeats)
cdef _expect_counts(repeats, Py_ssize_t items, Py_ssize_t total, Py_ssize_t size, axis)


@cython.locals(counts=Counts, items=Py_ssize_t, total=Py_ssize_t)
cpdef repeats_argument(repeats, Py_ssize_t size, axis)


@cython.locals(
    counts=Counts, plain=tuple,
    array=object,       # NumPy's declarations of arrays would call its C API
)
cdef _read_counts(repeats)
