"""The copy core: from a buffer and an alignment to the bytes of the output.

What comes in is two contiguous buffers, or strided data, which `strided` makes contiguous, and an alignment that fits
them: `_kernel` has checked that. `plan` merges the axes and describes the innermost ones as programs of byte shuffles,
`walk` writes along the plan by the leaves in `simd`. What goes out is bytes in `out`, each written at least once; none
is read or written outside of the two buffers, and nothing allocates, raises or runs Python once writing has begun.
"""
