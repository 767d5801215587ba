"""Compare `bcast.dask`'s functions with Dask's own, on a cluster of two worker processes.

    python benchmarks/bench_dask.py [--rounds 5]

Each result is made in the workers' memory and dropped. The two take turns, and the fastest of several rounds counts;
tasks are those that the scheduler gets. Needs the extra `dask` and the package `distributed`.
"""

import argparse
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, wait

import bcast.dask

Make = Callable[[], Any]


def cases() -> Iterator[tuple[str, Make, Make]]:
    """Yield a name, and the calls of Dask's function and of ours."""
    square = da.ones((2560, 2560), chunks=256)
    short = da.ones((2_000_000, 3), chunks=(200_000, 3), dtype="float32")
    sprite = da.ones((64, 64), chunks=64, dtype="uint8")
    gray = da.ones((16, 1080, 1920), chunks=(1, 1080, 1920), dtype="uint8")
    yield (
        "tile 2560x2560 in 100 chunks, (3, 3)",
        lambda: da.tile(square, (3, 3)),
        lambda: bcast.dask.tile(square, (3, 3)),
    )
    yield (
        "tile a sprite of 64x64, (100, 100)",
        lambda: da.tile(sprite, (100, 100)),
        lambda: bcast.dask.tile(sprite, (100, 100)),
    )
    yield "repeat 2560x2560 in 100 chunks, 3", lambda: da.repeat(square, 3, 0), lambda: bcast.dask.repeat(square, 3, 0)
    yield "repeat 2560x2560, 3 along the rows", lambda: da.repeat(square, 3, 1), lambda: bcast.dask.repeat(square, 3, 1)
    yield "repeat 2560x2560, 30", lambda: da.repeat(square, 30, 0), lambda: bcast.dask.repeat(square, 30, 0)
    yield "repeat rows of 3, 8", lambda: da.repeat(short, 8, 1), lambda: bcast.dask.repeat(short, 8, 1)

    def both(data: Any, shape: tuple[int, ...]) -> tuple[Make, Make]:
        return (
            lambda: da.broadcast_to(data, shape).map_blocks(np.ascontiguousarray, meta=data._meta),
            lambda: bcast.dask.broadcast_to(data, shape, materialise=True),
        )

    yield "broadcast gray images to RGB", *both(gray[..., None], (16, 1080, 1920, 3))
    yield "broadcast rows of 3, 32 times", *both(short, (32, 2_000_000, 3))
    yield "broadcast 2560x2560, 8 times", *both(square, (8, 2560, 2560))


def seconds(client: Client, make: Make) -> float:
    """Time a call, from the function to the last chunk in the workers' memory."""
    begin = perf_counter()
    result = client.persist(make())
    wait(result)
    end = perf_counter()
    del result
    client.run(int)  # the workers have dropped it
    return end - begin


def tasks(array: Any) -> int:
    """Count what the scheduler gets."""
    return len(dict(dask.optimize(array)[0].__dask_graph__()))


def main() -> None:
    """Print a line for each case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    with LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        print(f"{'':38} {'dask, tasks':>12} {'bcast, tasks':>13} {'bcast, ms':>10} {'dask / bcast':>13}")
        for name, theirs, ours in cases():
            best = [float("inf")] * 2
            for _ in range(rounds):
                best = [min(before, seconds(client, make)) for before, make in zip(best, (theirs, ours), strict=True)]
            print(
                f"{name:38} {tasks(theirs()):12} {tasks(ours()):13} {best[1] * 1e3:10.0f} {best[0] / best[1]:13.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
