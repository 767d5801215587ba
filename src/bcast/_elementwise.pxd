from numpy cimport ufunc

cpdef apply(ufunc function, a, b, int rule, axis, out, dtype, int casting)
cpdef choose(condition, x, y, out)
cpdef run_steps(data, tuple steps, int rule, axis, dtype, int casting, out)
cpdef pass_on(function, a, b, int rule, axis, out, where)
