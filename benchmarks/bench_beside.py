"""What does a call cost beside other libraries' pools? bcast, torch, jax and onnxruntime in one process, call by call.

    python benchmarks/bench_beside.py [--rounds 60]

The competitors take turns call by call, in random order, into fresh results, and nobody waits for anybody's threads to
sleep: each call finds the threads of the one before still looking out for work. Medians count; a cell is lost where a
peer's is less than 0.95 of bcast's.
"""

import argparse
import random
import sys
from statistics import median
from time import perf_counter

from machines import Load, cpus
from peers import COMPETITORS, bound, prepare
from workloads import Task, Workload

from bcast._benchmark.table import cpu

NAMES = ("bcast", "numpy", "torch", "jax", "onnxruntime")
SIZES = (2, 6, 14, 28)  # MB of float32


def workloads(megabytes: int) -> list[Workload]:
    """Return broadcasts that programs really do, to about so many megabytes."""
    items = megabytes * 250_000
    return [
        Workload("bias NHWC", "", (64,), (items // 64, 64)),
        Workload("bias NCHW", "", (64, 1), (64, items // 64)),
        Workload("gray -> RGB", "", (items // 3, 1), (items // 3, 3)),
        Workload("batch of 16", "", (1, items // 16), (16, items // 16)),
    ]


def main() -> None:
    """Print a line for each cell: bcast's median, and the others' over it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=60)
    rounds = parser.parse_args().rounds
    names = [name for name in NAMES if COMPETITORS[name].installed()]
    load, lost = Load(), 0
    print(f"{cpu()}, {cpus()} CPUs")
    print(f"{'workload':<14} {'MB':>3} {'bcast, us':>10}" + "".join(f"{name:>12}" for name in names[1:]))
    with bound(cpus()):
        for megabytes in SIZES:
            for workload in workloads(megabytes):
                calls = prepare(Task.of(workload, "float32", "fresh", cpus()), names)
                times: dict[str, list[float]] = {name: [] for name in names}
                for _ in range(rounds):
                    for name in random.sample(names, len(names)):
                        begin = perf_counter()
                        calls[name]()
                        times[name].append(perf_counter() - begin)
                medians = {name: median(each) for name, each in times.items()}
                ratios = [medians[name] / medians["bcast"] for name in names[1:]]
                lost += min(ratios) < 0.95
                beside = "".join(f"{ratio:12.2f}" for ratio in ratios)
                print(f"{workload.name:<14} {megabytes:3} {medians['bcast'] * 1e6:10.1f}{beside}", flush=True)
    print(f"{lost} of {len(SIZES) * len(workloads(1))} cells lost", load.caveat(), sep="; " if load.caveat() else "")


if __name__ == "__main__":
    sys.exit(main())
