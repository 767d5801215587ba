from numpy cimport ufunc

cpdef apply(ufunc function, a, b, int rule, axis, out, dtype, int casting)
cpdef compute(function, a, b, out)
cpdef compute_one(function, x, out)
cpdef apply_to_one(function, x, out)
cpdef choose(condition, x, y, out)
cpdef run_steps(data, tuple steps, int rule, axis, dtype, int casting, out)
cpdef tuple operand_shape(operand)
cpdef pass_on(function, a, b, int rule, axis, out, where)
cpdef int report_kinds(bytes name, int kinds) except -1
cpdef tuple with_plain_bools(tuple operands)
cpdef with_plain_bytes(operand)

cdef int open_gate(ufunc function, int cost) except -1
cdef int close_gate(ufunc function) except -1
cdef bint has_gate(ufunc function) except -1
cdef int time_gates(bint wanted) except -1
cdef tuple counts_at_gate(ufunc function)
