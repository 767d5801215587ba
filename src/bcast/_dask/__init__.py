"""The graphs of `bcast.dask`: chunks, regions, and the functions that tasks run.

In: dask arrays with known chunks, alignments and counts. Out: dask arrays whose tasks call bcast's functions. Building
them computes nothing, and the same arguments give the same names.
"""
