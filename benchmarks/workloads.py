"""Broadcasts from real programs with their arrays, and the calls of bcast and NumPy that do them."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bcast
from bcast._rules.arguments import Shape
from bcast._rules.core import align

__all__ = ["CALLS", "DTYPES", "STATES", "Call", "Task", "Workload", "grid"]

DTYPES = ("uint8", "float16", "float32", "float64", "complex128")
STATES = ("fresh", "warm")  # into a new array, dropped at once; into the same `out` again and again

Call = Callable[[], Any]


@dataclass(frozen=True)
class Workload:
    """One broadcast: its name and family, the shapes of data and output, and in explicit mode the output's axes."""

    name: str
    group: str
    data: Shape
    output: Shape
    axes: tuple[int, ...] | None = None

    @property
    def source(self) -> Shape:
        """The data's shape with its axes lined up under the output's."""
        return align(self.data, self.output, self.axes, "numpy" if self.axes is None else "explicit").source

    def nbytes(self, dtype: str) -> int:
        """Bytes of the output."""
        return math.prod(self.output) * np.dtype(dtype).itemsize


def grid(dtype: str) -> Iterator[Workload]:
    """Yield all workloads for one dtype; the sizes of some depend on it."""
    yield Workload("3 -> 4x3", "tiny", (3,), (4, 3))
    yield Workload("scalar -> 64", "tiny", (), (64,))
    yield Workload("bias NCHW", "channel bias", (64,), (8, 64, 56, 56), (1,))
    yield Workload("bias NHWC", "channel bias", (64,), (8, 56, 56, 64))
    yield Workload("gray -> RGB 1080p", "gray image to RGB, RGBA", (1080, 1920), (1080, 1920, 3), (0, 1))
    yield Workload("gray -> RGBA 1080p", "gray image to RGB, RGBA", (1080, 1920), (1080, 1920, 4), (0, 1))
    itemsize = np.dtype(dtype).itemsize
    sizes = [(n, z) for n in (3, 4, 100, 1000) for z in (4, 5, 6) if n * 10**z * itemsize <= 2e8]  # bytes of output
    family = {3: "3 or 4", 4: "3 or 4", 100: "100 or 1000", 1000: "100 or 1000"}
    for n, z in sizes:
        yield Workload(f"row of {n} x 1e{z}", f"row of {family[n]}", (n,), (10**z, n))
    for n, z in sizes:
        yield Workload(f"column of 1e{z} x {n}", f"column x {family[n]}", (10**z, 1), (10**z, n))
    yield Workload("batch of 64 images", "batch of images", (224, 224, 3), (64, 224, 224, 3))
    yield Workload("64,1,64,1 -> 64^4", "alternating axes", (64, 1, 64, 1), (64, 64, 64, 64))
    yield Workload("1,64,1,64 -> 64^4", "alternating axes", (1, 64, 1, 64), (64, 64, 64, 64))
    for k in (2, 3):
        yield Workload(f"upsample x{k} 270x480", "nearest upsampling", (270, 1, 480, 1, 3), (270, k, 480, k, 3))
    yield Workload("ten axes of 2", "ten axes of 2", (2, 1) * 10, (2, 2) * 10)
    for zeros in (3, 6, 8):
        yield Workload(f"scalar -> 1e{zeros} bytes", "scalar to 1e3 to 1e8 bytes", (), (10**zeros // itemsize,))


@dataclass(frozen=True)
class Task:
    """A workload with its arrays, which are the same for every competitor.

    `out` is None if each call returns a new array. No item of `data` is 0, and neighbouring rows differ.
    """

    workload: Workload
    data: NDArray[Any]
    out: NDArray[Any] | None
    threads: int = 1

    @classmethod
    def of(cls, workload: Workload, dtype: str, state: str, threads: int = 1) -> "Task":
        """Make the arrays of a workload."""
        data = np.resize((np.arange(101) * 37 % 101 + 1).astype(dtype), workload.data)
        return cls(workload, data, np.empty(workload.output, dtype) if state == "warm" else None, threads)

    @property
    def lined_up(self) -> NDArray[Any]:
        """The data as a view of the output's rank."""
        return self.data.reshape(self.workload.source)


def _bcast(task: Task) -> Call:
    data, shape, axes, out = task.data, task.workload.output, task.workload.axes, task.out
    bcast.set_num_threads(task.threads)
    if axes is not None:  # large outputs, for which it does not count that `out` may be None
        return lambda: bcast.broadcast(data, shape, axes, mode="explicit", out=out)
    return (lambda: bcast.broadcast(data, shape)) if out is None else (lambda: bcast.broadcast(data, shape, out=out))


def _numpy(task: Task) -> Call:
    data, shape, out = task.lined_up, task.workload.output, task.out
    return (lambda: np.broadcast_to(data, shape).copy()) if out is None else (lambda: np.copyto(out, data))


CALLS: dict[str, Callable[[Task], Call]] = {"bcast": _bcast, "numpy": _numpy}
