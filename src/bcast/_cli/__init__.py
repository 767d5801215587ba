"""The commands of `python -m bcast`. In: paths and arguments as typed. Out: files, lines of text and an exit status."""
