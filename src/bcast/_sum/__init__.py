"""The sum core: from the axes of an array to its sums.

What comes in is the axes of an array, kept or summed, and how its terms are read: `_adjoint` has checked them. `plan`
chooses the block of accumulators, the tiles and the segments; `walk` has the leaves in `simd` add the terms up and
writes the results. The bits of a result depend on shape, strides and dtype alone: not on the number of threads, the
layout of `out` or the target. Nothing allocates, raises or runs Python once writing has begun.
"""
