"""What `python -m bcast` does. In: paths and arguments as typed. Out: files, lines of text and an exit status."""
