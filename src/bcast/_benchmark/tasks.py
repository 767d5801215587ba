"""Workloads with their arrays, and the calls of bcast and NumPy that do them, as their own users would write them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bcast
from bcast._benchmark.workloads import Workload, grid

__all__ = ["ARITHMETIC", "CALLS", "Call", "Task", "calls_of"]

Call = Callable[[], Any]


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
ARITHMETIC = {  # a function, and the shapes of both operands
    "points + offset": (np.add, (1_000_000, 3), (3,)),
    "picture * mask": (np.multiply, (720, 1280, 3), (720, 1280, 1)),
    "picture == colour": (np.equal, (720, 1280, 3), (3,)),
    "outer sum": (np.add, (2000, 1), (1, 2000)),
}


def calls_of(name: str, dtype: str, state: str, threads: int) -> tuple[dict[str, Call], NDArray[Any] | None, int]:
    """Return the calls of a workload, which may be arithmetic; their `out`, and the bytes that they write."""
    if name not in ARITHMETIC:
        task = Task.of(next(each for each in grid(dtype) if each.name == name), dtype, state, threads)
        return {system: make(task) for system, make in CALLS.items()}, task.out, task.workload.nbytes(dtype)
    function, a, b = ARITHMETIC[name][0], *(np.resize(np.arange(101).astype(dtype), n) for n in ARITHMETIC[name][1:])
    result = function(a, b)
    bcast.set_num_threads(threads)
    options: dict[str, Any] = {"out": result} if state == "warm" else {}
    ours, theirs = (lambda: bcast.elementwise(function, a, b, **options)), (lambda: function(a, b, **options))
    return {"bcast": ours, "numpy": theirs}, options.get("out"), result.nbytes
