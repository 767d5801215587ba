"""The public functions, in plain Python that Cython compiles.

What comes in is what users pass: anything array-like, shapes, axes, `out`. `_rules` reads it and finds the alignment,
or raises; `_runtime.result` allocates the result or checks `out`; `_kernel` copies along the alignment, `_adjoint`
sums. What goes out is the result, an array of the base class or `out` itself. Nothing is allocated, and nothing
written, before every argument has been checked.
"""
