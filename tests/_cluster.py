"""A run on a cluster of two worker processes, for test_dask.py: ``python _cluster.py FOLDER [kill]`` prints a dict.

A broadcast of 3 GB is written to Zarr and summed back by workers of 700 MB each. With ``kill``, one of them is killed
in the middle of the sum.
"""

import os
import re
import signal
import sys
import time
from pathlib import Path

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, wait

import bcast
import bcast.dask

LIMIT = 700_000_000
TIMES = 750


def peak():
    return int(re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())[1]) * 1024


def main(folder, *kill):
    row = np.arange(1000 * 1000, dtype=np.float32).reshape(1000, 1000)
    cluster = LocalCluster(2, threads_per_worker=2, memory_limit=LIMIT, dashboard_address=None, local_directory=folder)
    with cluster, Client(cluster) as client:
        before = client.run(os.getpid)
        with dask.config.set({"array.chunk-size": "32MiB"}):
            large = bcast.dask.broadcast(da.from_array(row, chunks=500), (TIMES, 1000, 1000))
        large.to_zarr(f"{folder}/large.zarr")
        stored = da.from_zarr(f"{folder}/large.zarr")
        sums = bcast.dask.unbroadcast(stored, row.shape).persist()
        if kill:
            time.sleep(0.5)
            os.kill(next(iter(before.values())), signal.SIGKILL)
        wait(sums)
        right = bool((sums.compute() == (row.astype(float) * TIMES).astype(np.float32)).all())
        after = client.run(os.getpid)
        seen = {"right": right, "bytes": large.nbytes, "same": set(after.values()) == set(before.values())}
        if not kill:
            seen["peak"] = max(client.run(peak).values())
            seen["idle"] = max(info.limit for info in client.run(bcast.memory_info).values())
            seen["threads"] = max(client.submit(bcast.get_num_threads, pure=False).result() for _ in range(4))
    print(seen)


if __name__ == "__main__":
    main(*sys.argv[1:])
