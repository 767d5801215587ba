"""What `bcast.dask` builds graphs from: chunks, regions, and the functions that tasks run.

In: dask arrays with known chunks, alignments and counts. Out: dask arrays whose tasks call bcast's functions. Nothing
is computed while they are built, and the same arguments give the same names.
"""
