# The C types of _api/converted.py, which is plain Python without them.
from numpy cimport dtype as Dtype, generic, ndarray

from bcast._apply.ufuncs cimport may_fail
from bcast._elementwise cimport run_steps, with_plain_bytes
from bcast._kernel cimport repeat_counted, replicate
from bcast._rules.arguments cimport dtype_argument, mode_of
from bcast._runtime.arrays cimport (
    are_alike, are_numbers, can_cast, convert_into, converted, dtype_of, is_contiguous, is_masked, is_ordered,
    keeps_dtype, may_warn, reshaped, result_array, shape_of, size_of, stretched,
)
from bcast._runtime.core cimport forget, is_mapped
from bcast._rules.alignment cimport Alignment
from bcast._rules.counts cimport Counts, counts_of_array, counts_of_tuple

cdef Py_ssize_t block_size, few_times, MANY_PARTS, LARGE_BLOCKS
cdef str SAME_KIND, UNSAFE_KIND
cdef int NUMBER_OF_SAME_KIND, UNSAFE
cdef object MAPPED

cpdef ndarray as_array(str name, data)
cpdef bint overrides(value) except -1
cpdef bint is_handed_on(value) except -1
cpdef as_base(value)
cpdef as_operand(str name, value)
cpdef bint is_tensor(out)
cdef _view_of(out)
cdef _exported(expected, tensor, written)
cpdef materialise(ndarray data, Alignment alignment, tuple shape, out, str name, dtype, casting)
cpdef bint converts(ndarray data, out, dtype, casting) except -1
cpdef int casting_number(casting) except -1
cpdef tuple prepared(ndarray data, tuple shape, out, dtype, casting)
cpdef convert_onto(ndarray data, Alignment alignment, ndarray out, Dtype dtype, bint fresh)
cdef bint _convert_small(ndarray data, Alignment alignment, ndarray out, Dtype dtype, bint fresh) except -1
cdef bint _convert_large(ndarray data, Alignment alignment, ndarray out, Dtype dtype, bint fresh) except -1
cdef tuple _prepared_others(ndarray data, tuple shape, wanted, bint is_given, casting)
cpdef convert_counted(ndarray data, Counts counts, int axis, ndarray out, Dtype dtype)
cpdef tuple without_dropped(ndarray data, Counts counts, int axis)
cdef bint _convert_in_place(ndarray data, Alignment alignment, ndarray out, Dtype dtype, bint once) except -1
cdef bint _convert_by_blocks(ndarray data, Alignment alignment, ndarray out, Dtype dtype, bint is_sure) except -1
cdef _by_blocks(data, Alignment alignment, out, Dtype dtype, bint sure)
cpdef _convert_blocks(data, out, Dtype dtype)
cpdef bint is_of_package(Dtype dtype)
cdef tuple _aligned(ndarray data, Alignment alignment, ndarray out)
cdef _converted(ndarray data, Dtype dtype)
cpdef bint follows_values(own, wanted) except -1
cdef bint _is_open(dtype) except -1
