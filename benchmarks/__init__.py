"""The benchmarks: bcast's speed against other libraries, cell by cell. See `python -m benchmarks --list`."""
