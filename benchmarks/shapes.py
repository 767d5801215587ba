"""The workloads beyond the grid: broadcasts of random shapes, and sums."""

import math
import random
from collections.abc import Iterator

import numpy as np
from workloads import DTYPES, Workload

from bcast._rules.arguments import Shape

__all__ = ["FLOATS", "SEED", "SUM_DTYPES", "SUM_SIZES", "innermost", "label", "random_workloads", "sums"]

SEED = 1  # of the random shapes
RANDOM_SIZES = (1_000, 64_000_000)  # bytes of their outputs
FLOATS = ("float16", "float32", "float64")  # which are summed in all workloads of `sums`
SUM_DTYPES = (*FLOATS, "int32", "complex64")
SUM_SIZES = (1 << 10, 1 << 14, 1 << 18, 1 << 22, 1 << 26)  # bytes of what is summed
UNITS = ((30, "GB"), (20, "MB"), (10, "KB"))


def innermost(workload: Workload) -> int:
    """How many times the innermost repeated axes repeat, merged into one."""
    repeated = 1
    for stretched, length in zip(reversed(workload.source), reversed(workload.output), strict=True):
        if stretched == length:
            if length != 1 and repeated != 1:
                break
        else:
            repeated *= length
    return repeated


def sums(dtype: str) -> Iterator[Workload]:
    """Yield the workloads whose adjoint is timed: gradients of the output's shape are summed to the data's shape.

    Patterns that scale come in sizes from 1 KB to 64 MB. Dtypes other than `FLOATS` have only these, in one size.
    """
    itemsize = np.dtype(dtype).itemsize
    for nbytes in SUM_SIZES if dtype in FLOATS else SUM_SIZES[3:4]:
        for name, data, output in _scaled_sums(nbytes // itemsize):
            yield Workload(f"{name}, {label(nbytes)}", name, data, output)
    if dtype not in FLOATS:
        return
    yield Workload("8,8 -> 1,8", "tiny", (1, 8), (8, 8))
    yield Workload("8,8 -> 8,1", "tiny", (8, 1), (8, 8))
    yield Workload("4,4 -> 4", "tiny", (4,), (4, 4))
    yield Workload("NCHW -> 1,C,1,1", "channels", (1, 64, 1, 1), (32, 64, 56, 56))
    yield Workload("NCHW -> C, explicit", "channels", (64,), (8, 64, 56, 56), (1,))
    yield Workload("NHWC -> C", "channels", (64,), (32, 56, 56, 64))
    yield Workload("batch of 64 images", "batch of images", (1, 3, 224, 224), (64, 3, 224, 224))
    yield Workload("64^4 -> 64,1,64,1", "alternating axes", (64, 1, 64, 1), (64, 64, 64, 64))
    yield Workload("64^4 -> 1,64,1,64", "alternating axes", (1, 64, 1, 64), (64, 64, 64, 64))
    yield Workload("eighteen axes of 2", "alternating axes", (2, 1) * 9, (2, 2) * 9)
    yield Workload("square -> column", "square", (2048, 1), (2048, 2048))
    yield Workload("square -> row", "square", (1, 2048), (2048, 2048))


def _scaled_sums(items: int) -> Iterator[tuple[str, Shape, Shape]]:
    """Yield name, source and output of each pattern that scales, for that many items."""
    yield "N -> ()", (), (items,)
    yield "N,3 -> 3", (3,), (items // 3, 3)
    for m in (2, 3, 4, 8, 16, 32, 64):
        yield f"N,{m} -> N,1", (items // m, 1), (items // m, m)
    yield "N,64 -> 1,64", (1, 64), (items // 64, 64)
    yield "64,N -> 64,1", (64, 1), (64, items // 64)
    yield "64,N -> 1,N", (1, items // 64), (64, items // 64)


def label(nbytes: int) -> str:
    """Write a number of bytes in the largest unit of which there is at least one."""
    shift, unit = next((shift, unit) for shift, unit in UNITS if nbytes >> shift)
    return f"{nbytes >> shift} {unit}"


def random_workloads(seed: int = SEED, count: int = 60) -> Iterator[tuple[Workload, tuple[str, str]]]:
    """Yield workloads of random shapes, each with two dtypes, which take turns.

    Ranks are 2 to 6. Lengths are 1 to 100, uniform on a logarithmic scale. Each axis of the data is copied or repeated
    at random, and at least one axis longer than 1 is repeated.

    Parameters
    ----------
    seed : int
        The seed, which is part of the workloads' names. The same seed gives the same workloads, whatever `count` is.
    count : int
        The number of workloads.
    """
    rng = random.Random(seed)
    shortest, longest = RANDOM_SIZES
    for number in range(count):
        dtypes = DTYPES[2 * number % len(DTYPES)], DTYPES[(2 * number + 1) % len(DTYPES)]
        low, high = sorted(np.dtype(dtype).itemsize for dtype in dtypes)
        while True:
            output = tuple(round(math.exp(rng.uniform(0, math.log(100)))) for _ in range(rng.randint(2, 6)))
            data = tuple(length if rng.random() < 0.5 else 1 for length in output)
            items = math.prod(output)
            if data != output and shortest <= items * low and items * high <= longest:
                break
        shapes = " -> ".join("x".join(map(str, shape)) for shape in (data, output))
        yield Workload(f"random-{seed}-{number:02} {shapes}", f"random, rank {len(output)}", data, output), dtypes
