"""The copy core: from a buffer and an alignment to the bytes of the output.

In: two contiguous buffers, or strided data, which `strided` makes contiguous, and an alignment that `_kernel` has
compared with their sizes. `plan` merges the axes and describes the innermost ones as programs of byte shuffles. `walk`
follows the plan and writes through the leaves in `simd`. Out: the bytes of `out`, each written at least once. No byte
outside the two buffers is read or written, and once writing has begun, nothing allocates, raises or runs Python.
"""
