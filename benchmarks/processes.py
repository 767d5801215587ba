"""Whole processes: `python -m bcast apply` on large files, and dask arrays on a cluster of workers."""

import json
import subprocess
import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

__all__ = ["measure_apply", "measure_dask"]

# `apply` writes an output that is larger than a bound on memory, beside what a user would write instead. Linux only.

PEAK = """
import json
with open("/proc/self/status") as file:
    print(json.dumps([int(line.split()[1]) / 1e3 for line in file if line.startswith("VmHWM")][0]))
"""
LIMIT = """
import mmap, os, sys
room = mmap.mmap(-1, 16 << 20)
room.write(bytes(16 << 20))
file = os.open("out.npy", os.O_RDWR | os.O_CREAT | os.O_DIRECT)
size = int(sys.argv[1])
os.posix_fallocate(file, 0, size)
for at in range(0, size, len(room)):
    os.pwrite(file, room, at)
os.fsync(file)
"""
APPLY = """
import sys
from bcast.__main__ import main
main(["apply", "in.npy", "out.npy", "--shape", sys.argv[1]])
"""
MAPPED = """
import sys
import numpy as np
from numpy.lib.format import open_memmap
data = np.load("in.npy")
shape = tuple(map(int, sys.argv[1].split(",")))
out = open_memmap("out.npy", "w+", data.dtype, shape)
"""
COPYTO = MAPPED + "np.copyto(out, data)\nout.flush()\n"
BCAST = MAPPED + "import bcast\nbcast.broadcast(data, shape, out=out)\nout.flush()\n"
BLOCK = 1 << 24  # bytes that the limit writes at once


def programs(gigabytes: float) -> dict[str, tuple[str, str]]:
    """Return the program and the argument of each competitor. The limit writes past the system's cache of files."""
    shape = f"{round(gigabytes * 250_000)},1000"
    return {
        "limit: zeros to one file": (LIMIT, str(max(1, round(gigabytes * 1e9) // BLOCK) * BLOCK)),
        "apply to .npy": (APPLY, shape),
        "broadcast, out=memmap": (BCAST, shape),
        "numpy.copyto, memmap": (COPYTO, shape),
    }


def run(folder: Path, program: str, argument: str) -> tuple[float, float]:
    """Run a program in the folder; return its seconds, and the peak of its memory in MB."""
    command = [sys.executable, "-c", program + PEAK, argument]
    begin = perf_counter()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    seconds = perf_counter() - begin
    if done.returncode:
        sys.exit(done.stderr)
    (folder / "out.npy").unlink(missing_ok=True)
    return seconds, json.loads(done.stdout.splitlines()[-1])


def measure_apply(options: Namespace) -> None:
    """Print the seconds and the peak memory of each competitor, each a process of its own.

    Its time includes Python's start, and ends when the disk has the file. The folder needs room for two outputs.
    """
    every = {name: each for name, each in programs(options.gigabytes).items() if options.only in name}
    best = dict.fromkeys(every, (float("inf"), float("inf")))
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        np.save(folder / "in.npy", np.random.default_rng(1).random(1000, "f4"))
        for _ in range(options.rounds):
            for competitor, (program, argument) in every.items():
                best[competitor] = min(best[competitor], run(folder, program, argument))
    print(f"{'':32} {'seconds':>8} {'GB/s':>6} {'MB of memory':>13}")
    for competitor, (seconds, memory) in best.items():
        print(f"{competitor:32} {seconds:8.1f} {options.gigabytes / seconds:6.2f} {memory:13.0f}")


# dask: each result is made in the memory of two workers, and dropped.

Make = Callable[[], Any]


def dask_calls() -> Iterator[tuple[str, Make, Make]]:
    """Yield a name, and the calls of Dask's function and of ours."""
    da, ours = import_module("dask.array"), import_module("bcast.dask")
    square = da.ones((2560, 2560), chunks=256)
    short = da.ones((2_000_000, 3), chunks=(200_000, 3), dtype="float32")
    sprite = da.ones((64, 64), chunks=64, dtype="uint8")
    gray = da.ones((16, 1080, 1920), chunks=(1, 1080, 1920), dtype="uint8")

    def both(function: str, *arguments: Any) -> tuple[Make, Make]:
        return lambda: getattr(da, function)(*arguments), lambda: getattr(ours, function)(*arguments)

    def broadcasts(data: Any, shape: tuple[int, ...]) -> tuple[Make, Make]:
        return (
            lambda: da.broadcast_to(data, shape).map_blocks(np.ascontiguousarray, meta=data._meta),
            lambda: ours.broadcast_to(data, shape, materialise=True),
        )

    yield "tile 2560x2560 in 100 chunks, (3, 3)", *both("tile", square, (3, 3))
    yield "tile a sprite of 64x64, (100, 100)", *both("tile", sprite, (100, 100))
    yield "repeat 2560x2560 in 100 chunks, 3", *both("repeat", square, 3, 0)
    yield "repeat 2560x2560, 3 along the rows", *both("repeat", square, 3, 1)
    yield "repeat 2560x2560, 30", *both("repeat", square, 30, 0)
    yield "repeat rows of 3, 8", *both("repeat", short, 8, 1)
    yield "broadcast gray images to RGB", *broadcasts(gray[..., None], (16, 1080, 1920, 3))
    yield "broadcast rows of 3, 32 times", *broadcasts(short, (32, 2_000_000, 3))
    yield "broadcast 2560x2560, 8 times", *broadcasts(square, (8, 2560, 2560))


def seconds_of(client: Any, make: Make) -> float:
    """Time a call, from the function to the last chunk in the workers' memory."""
    begin = perf_counter()
    result = client.persist(make())
    import_module("distributed").wait(result)
    end = perf_counter()
    del result
    client.run(int)  # the workers have dropped it
    return end - begin


def tasks(array: Any) -> int:
    """Count what the scheduler gets."""
    return len(dict(import_module("dask").optimize(array)[0].__dask_graph__()))


def measure_dask(options: Namespace) -> None:
    """Print how Dask's functions for dask arrays and ours compare, in time and in tasks, on two worker processes."""
    distributed = import_module("distributed")
    with (
        distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        print(f"{'':38} {'dask, tasks':>12} {'bcast, tasks':>13} {'bcast, ms':>10} {'dask / bcast':>13}")
        for name, theirs, ours in dask_calls():
            if options.only not in name:
                continue
            turns = [(seconds_of(client, theirs), seconds_of(client, ours)) for _ in range(options.rounds)]
            their_best, our_best = map(min, zip(*turns, strict=True))
            counts = f"{tasks(theirs()):12} {tasks(ours()):13}"
            print(f"{name:38} {counts} {our_best * 1e3:10.0f} {their_best / our_best:13.2f}", flush=True)
