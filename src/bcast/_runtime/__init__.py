"""Support for the cores: the CPU's target, threads, pages of memory, arrays for results."""
