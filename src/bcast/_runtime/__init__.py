"""What the cores run on: the CPU's target, threads, pages of memory, arrays for results."""
