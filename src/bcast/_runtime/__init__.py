"""What the cores run on: the CPU's target, threads, pages of memory, arrays for results.

What comes in is counts and sizes; what goes out is a target, shares run on threads, memory and arrays. Nothing here
knows of alignments, modes or sums. A failed call leaves NumPy's state, the threads and the store as they were.
"""
