"""What the cores run on: the CPU's target, threads, pages of memory, arrays for results.

In: counts and sizes. Out: the target, shares that run on threads, memory, and arrays over it. Nothing here knows of
alignments, modes or sums. A call that fails leaves NumPy's state, the threads and the idle memory as they were.
"""
