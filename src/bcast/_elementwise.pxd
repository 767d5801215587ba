from numpy cimport ufunc

cpdef apply(ufunc function, a, b, int rule, axis, out, dtype, int casting)
cpdef choose(condition, x, y, out)
cpdef pass_on(function, a, b, int rule, axis, out, where)
