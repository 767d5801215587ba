"""What `bcast.dask` builds graphs from: chunks, regions, and the functions that tasks run.

In: dask arrays with known chunks, alignments and counts. Out: dask arrays whose tasks call bcast's functions; in
copies, one for each chunk of the output. Graphs are made of Dask's own `blockwise`, `reduction`, `rechunk` and
`concatenate`. Nothing is computed while they are built, and the same arguments give the same names.
"""
