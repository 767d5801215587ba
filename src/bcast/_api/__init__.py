"""The public functions, in plain Python that Cython compiles.

In: the arguments as users pass them, that is anything array-like, shapes, axes and `out`. `_rules` reads shapes and
axes and finds the alignment, or raises. `_runtime` then allocates the result or checks `out`. Last, `_kernel`
copies along the alignment, or `_reduction` sums along it. Out: the result, which is an array of the base class, or
`out` itself. No result is allocated, and nothing is written, before every argument has been checked.
"""
