"""What `python -m bcast` does: `apply` broadcasts files, `conformance` checks the specifications' worked examples.

What comes in is paths and arguments as typed; what goes out is files and lines of text. A file takes its name only when
it is whole; an interrupted run leaves nothing behind.
"""
