"""What `python -m bcast` does: `apply` broadcasts files, `conformance` checks the specifications' worked examples.

In: paths and arguments as typed. Out: files and lines of text. A file takes its name only when it is whole, and an
interrupted run leaves nothing behind.
"""
