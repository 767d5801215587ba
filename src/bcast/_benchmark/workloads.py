"""What is measured, and where: broadcasts from real programs, and the line that names the machine."""

import math
import os
import platform
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import bcast
from bcast._rules.arguments import Shape
from bcast._rules.core import align

__all__ = ["DTYPES", "LOST", "STATES", "Workload", "cpu", "grid", "machine"]

DTYPES = ("uint8", "float16", "float32", "float64", "complex128")
STATES = ("fresh", "warm")  # into a new array, dropped at once; into the same `out` again and again
LOST = 0.95  # ratios from here to 1 count as equal: no machine is quiet enough to tell


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


def cpu() -> str:
    """Name the processor."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def machine(threads: int) -> str:
    """Describe what is measured, where, and on how many threads, in one line."""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    where = f"{cpu()}, {os.cpu_count()} CPUs, {platform.system()}; on {threads} thread{'s' * (threads > 1)} each"
    return f"bcast {bcast.__version__}; NumPy {np.__version__}; {python}; {where}, NumPy on 1"
