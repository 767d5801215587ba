# The C types of _api/converted.py, which is plain Python without them.
from numpy cimport dtype as Dtype, ndarray

from bcast._kernel cimport repeat_counted, replicate
from bcast._rules.alignment cimport Alignment, aligned
from bcast._rules.arguments cimport dtype_argument, mode_of
from bcast._runtime.arrays cimport (
    are_alike, are_numbers, can_cast, convert_into, converted, dtype_of, is_contiguous, is_masked, may_warn, reshaped,
    result_array, shape_of, size_of,
)
from bcast._rules.counts cimport Counts, counts_of_array, counts_of_tuple
from bcast._runtime.memory cimport forget, is_mapped

cdef Py_ssize_t PIECE, UNORDERED, FEW
cdef str SAME_KIND
cdef int NUMBER_OF_SAME_KIND

cpdef materialise_as(ndarray data, Alignment alignment, tuple shape, out, str name, dtype, casting)
cpdef convert_onto(ndarray data, Alignment alignment, ndarray out, Dtype dtype, bint fresh)
cpdef convert_counted(ndarray data, Counts counts, int axis, ndarray out, Dtype dtype, bint fresh)
cpdef tuple prepared(ndarray data, tuple shape, out, dtype, casting)
cpdef tuple without_dropped(ndarray data, Counts counts, int axis)
cdef _write(data, out, room, Counts counts, int axis)
cdef _fill(data, out, room)
cdef _fill_counted(data, out, room, Counts counts, int axis)
cdef _repeat_piece(data, out, room, Counts counts, int axis)
cdef _try(data, room)
cdef bint _is_piece(data, room) except -1
cdef _piece(data, room)
cdef _step(data, room)
cdef _once(data)
cdef bint _is_ordered(data) except -1
cdef bint _converts_whole(data, out, dtype, fresh) except -1
cdef _unless_warned(data, dtype)
cdef bint _is_plain(dtype) except -1
cpdef bint follows_values(own, wanted) except -1
cdef bint _is_open(dtype) except -1
cdef _real_part(data, dtype)
