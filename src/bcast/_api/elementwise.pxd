# The C types of _api/elementwise.py, which is plain Python without them.
cimport cython
from numpy cimport ndarray

from bcast._rules.arguments cimport dtype_argument, integer, mode_of
from bcast._rules.alignment cimport Alignment, expect_default_axis, merge, pdpd, right_aligned, rule_of
from bcast._runtime.arrays cimport are_alike, convert_into, dtype_of, is_binary, reshaped, shape_of
from bcast._api.converted cimport (
    as_array, as_base, as_operand, casting_number, is_handed_on, is_tensor, overrides, prepared,
)
from bcast._apply.ufuncs cimport saturates
from bcast._elementwise cimport (
    apply, choose, compute, compute_one, operand_shape, pass_on, report_kinds, run_steps, with_plain_bools,
    with_plain_bytes,
)

cdef tuple MODES
cdef str NUMPY, NONE, UNIDIRECTIONAL, PDPD, SAME_KIND
cdef int NUMBER_OF_SAME_KIND, UNSAFE, SATURATE
cdef tuple CHAIN_CASTINGS
cdef type UFUNC
cdef object MAPPED, NUMPYS_WHERE, BOOL, NO_VALUE, CLIP, ROUND, AROUND
cdef tuple SCALARS

cpdef tuple step_shapes(str name, str owner, tuple given, tuple shape, rule, axis)
cdef int _number(str rule) except -1
cpdef str rule_argument(mode, axis)
cpdef axis_argument(axis, str rule)


cdef class _Options:
    cdef readonly object axis, dtype, casting, out
    cdef int number
    cdef str rule


@cython.final
cdef class _Call(_Options):
    cdef object function
    cdef object where   # True, or a mask: as it was given, and an array from `_by_rule` on
    cdef bint is_ufunc


@cython.final
cdef class Chain(_Options):
    cdef readonly object steps


cdef bint _is_plain_pair(x, out) except -1
cdef _condition_for(x, where)
cdef bint _override(tuple values) except -1
cdef bint _expect_binary(function, b) except -1
cdef bint _are_plain(a, b, _Call call)
cdef bint _any_overrides(a, b, _Call call) except -1
cdef _by_core(_Call call, a, b)
cdef _passed_on(_Call call, a, b)
cdef _by_function(_Call call, a, b)
cdef _dispatched(_Call call, a, b)
cdef dict _options(_Call call)
cdef _of_plain_arrays(array, Chain call)
cdef tuple _first_conversion(array, Chain call)
cdef tuple _plain_steps(Chain call, tuple steps, int first, tuple shape, dtype)
cpdef Chain read_chain(tuple steps, dtype, casting, mode, axis)
cpdef tuple with_ufuncs(tuple steps)
cpdef plain_data(data, tuple steps)
cdef Chain _chain_of(str rule, dtype, casting, int number, axis, out, steps)
cdef bint _has_reductions(steps) except -1
cdef _reduced(array, Chain call)
cdef bint _is_reduction(step) except -1
cdef tuple _align_operands(int i, function, list operands, tuple shape, Chain call)
cdef _chain_target(Chain call, tuple shape, last)
cdef _handed_on(data, Chain call)
cdef Py_ssize_t _check_handed_on(data, list functions, Chain call) except -1
cdef _called(result, list functions, Py_ssize_t aligned, Chain call)
cdef bint _is_of_package(dtype) except -1
cdef bint _takes(function, Py_ssize_t count, bint is_pair) except -1
cdef _by_rule(_Call call, a, b)
cdef _of_ufunc(_Call call, a, b)
cdef _operand(str name, value, bint weak, other)
cdef _aligned(operand, tuple shape, tuple source)
cpdef check_function(ufunc)
cdef _check_out(out, tuple shape)
cdef _writable(out, tuple shape)
cdef tuple _step(str name, step)
cdef _function_of(step)
cpdef int chain_casting(casting) except -1
cdef str _casting_remedy(last, wanted)
cpdef bint is_clip(function)
cpdef bint is_round(function)
cdef bint _is_simple(function)
cdef _dtype_after(function, given, list kinds)
cdef _stepped(step, result)


@cython.locals(array=ndarray, axis=int)
cdef bint _repeats(out) except -1
