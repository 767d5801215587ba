"""Time `python -m bcast apply` on outputs larger than a bound on memory, beside what a user would write instead.

    python benchmarks/bench_apply.py FOLDER [--gigabytes 8] [--rounds 2]

Each competitor is a process of its own; its time includes Python's start, and ends when the disk has the file. The
peak of its memory is that of the system's VmHWM. `limit` writes as many bytes past the cache of files, from a buffer.
FOLDER needs room for two outputs. Linux only.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from time import perf_counter

import numpy as np

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
main(["apply", "in.npy", sys.argv[1], "--shape", sys.argv[2]])
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


def cases(gigabytes: float) -> list[tuple[str, str, list[str]]]:
    """Return the name, the program and the arguments of each competitor; those of one output follow each other."""
    shape = f"{round(gigabytes * 250_000)},1000"
    return [
        ("limit: zeros to one file", LIMIT, [str(round(gigabytes * 10**9) // 2**24 * 2**24)]),
        ("apply to .npy", APPLY, ["out.npy", shape]),
        ("broadcast, out=memmap", BCAST, [shape]),
        ("numpy.copyto, memmap", COPYTO, [shape]),
    ]


def measured(folder: Path, program: str, arguments: list[str]) -> tuple[float, float]:
    """Run a program in the folder; return its seconds, and the peak of its memory in MB."""
    begin = perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", program + PEAK, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    end = perf_counter()
    if done.returncode:
        sys.exit(done.stderr)
    (folder / "out.npy").unlink(missing_ok=True)
    return end - begin, json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Print a line for each competitor: the best of several rounds, in which they take turns."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--gigabytes", type=float, default=8.0)
    parser.add_argument("--rounds", type=int, default=2)
    arguments = parser.parse_args()
    np.save(arguments.folder / "in.npy", np.random.default_rng(1).random(1000, "f4"))
    rows = cases(arguments.gigabytes)
    best = [(float("inf"), float("inf"))] * len(rows)
    for _ in range(arguments.rounds):
        for row, (_, program, options) in enumerate(rows):
            best[row] = min(best[row], measured(arguments.folder, program, options))
    (arguments.folder / "in.npy").unlink()
    print(f"{'':32} {'seconds':>8} {'GB/s':>6} {'MB of memory':>13}")
    for (name, _, _), (seconds, memory) in zip(rows, best, strict=True):
        print(f"{name:32} {seconds:8.1f} {arguments.gigabytes / seconds:6.2f} {memory:13.0f}")


if __name__ == "__main__":
    main()
