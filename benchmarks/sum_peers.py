"""The adjoint's competitors: each sums a gradient onto a shape by what its own user would write, and errs as it does.

As in `peers.py`, a competitor turns a task into a call without arguments. Sums are no copies: results are
not compared bit by bit but judged, as the task's numbers are such that their exact sums are known.
"""

import importlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import loops
import numpy as np
from numpy.typing import NDArray
from peers import COMPETITORS, LIMIT, Competitor, fastest, in_pieces, new_arrays
from workloads import Call, Workload

import bcast

__all__ = ["SUMMERS", "SumTask", "judge", "prepare_sums"]

BLOCK = 65_537  # random numbers, which are repeated as often as it takes; a prime
HALF_BITS = 26  # below one half of a float64's digits; as many terms as 2 to this power are summed exactly


@dataclass(frozen=True)
class SumTask:
    """The adjoint of a workload with its arrays; every competitor gets the same ones.

    Attributes
    ----------
    workload : Workload
        Whose output's shape is the gradient's, and whose data's shape is the result's.
    grad : ndarray
        What is summed.
    out : ndarray or None
        Where the result goes; None asks for a new array from each call.
    threads : int
        On how many threads at most.
    """

    workload: Workload
    grad: NDArray[Any]
    out: NDArray[Any] | None
    threads: int = 1

    @classmethod
    def of(cls, workload: Workload, dtype: str, state: str, threads: int = 1) -> "SumTask":
        """Make the arrays of a workload: integers of all sizes, or positive numbers below 1 whose sums are finite.

        Floats are multiples of 2 to the power of -24, of -53 if they are float64.
        """
        kind, rng = np.dtype(dtype), np.random.default_rng(1)
        if kind.kind == "i":
            block = rng.integers(np.iinfo(kind).min, np.iinfo(kind).max, BLOCK, kind, endpoint=True)
        elif kind == np.float16:
            too_long = (terms(workload) - 1).bit_length() - 15  # the largest float16 is almost 2 to the power of 16
            block = (rng.random(BLOCK, np.float32) * 2.0 ** -max(too_long, 0)).astype(kind)
        elif kind.kind == "c":
            block = rng.random(2 * BLOCK, np.float32).view(kind)
        else:
            block = rng.random(BLOCK, kind.type)
        return cls(
            workload,
            np.resize(block, workload.output),
            np.empty(workload.data, dtype) if state == "warm" else None,
            threads,
        )

    @property
    def axes(self) -> tuple[int, ...]:
        """The gradient's axes that are summed."""
        lengths = zip(self.workload.source, self.workload.output, strict=True)
        return tuple(axis for axis, (kept, length) in enumerate(lengths) if kept != length)

    @property
    def keepdims(self) -> bool:
        """Whether the axes that are summed stay, with length 1; they all do or none."""
        return len(self.workload.data) == len(self.workload.output)

    @property
    def forced(self) -> np.dtype[Any] | None:
        """The dtype that must be asked for, since the others would give wider integers."""
        return self.grad.dtype if self.grad.dtype.kind == "i" else None

    def into(self, out: Any) -> dict[str, Any]:
        """Return the argument for `out`, if there is one."""
        return {} if self.out is None else {"out": out}


def terms(workload: Workload) -> int:
    """Count the terms of each sum."""
    return math.prod(workload.output) // math.prod(workload.data)


def _bcast(task: SumTask) -> Call:
    bcast.set_num_threads(task.threads)
    axes, options = task.workload.axes, task.into(task.out)
    if axes is None:
        return partial(bcast.unbroadcast, task.grad, task.workload.data, **options)
    return partial(bcast.unbroadcast, task.grad, task.workload.data, axes, mode="explicit", **options)


def _numpy(task: SumTask) -> Call:
    return partial(task.grad.sum, axis=task.axes, dtype=task.forced, keepdims=task.keepdims, **task.into(task.out))


def _torch(task: SumTask) -> Call:
    torch = importlib.import_module("torch")
    torch.set_num_threads(task.threads)
    grad = torch.from_numpy(task.grad)
    if task.out is None and task.forced is None and task.workload.axes is None:
        return partial(grad.sum_to_size, task.workload.data)
    out = task.into(None if task.out is None else torch.from_numpy(task.out))
    return partial(torch.sum, grad, task.axes, keepdim=task.keepdims, dtype=grad.dtype, **out)


def _jax(task: SumTask) -> Call:
    jax = importlib.import_module("jax")
    jax.config.update("jax_enable_x64", True)  # else float64 comes back as float32
    axes, keepdims, dtype = task.axes, task.keepdims, task.forced
    grad = jax.numpy.asarray(task.grad)
    summed = jax.jit(lambda x: jax.numpy.sum(x, axes, dtype=dtype, keepdims=keepdims))
    return lambda: summed(grad).block_until_ready()


def _einsum(task: SumTask) -> Call:
    grad, shape, every = task.grad, task.workload.data, list(range(task.grad.ndim))
    kept = [axis for axis in every if axis not in task.axes]
    if task.out is None:
        return lambda: np.einsum(grad, every, kept).reshape(shape)
    return partial(np.einsum, grad, every, kept, out=task.out.reshape([grad.shape[axis] for axis in kept]))


def _limit(task: SumTask) -> Call:
    """Read as many bytes in the fastest of the ways there are."""
    return fastest(reads(np.ones(-(-task.grad.nbytes // 8), np.uint64), task.threads))


def reads(words: NDArray[np.uint64], threads: int) -> dict[str, Call]:
    """Return the ways to read words on so many threads."""
    calls: dict[str, Call] = {"reduce": partial(np.add.reduce, words)}
    if threads > 1:
        calls["pieces"] = in_pieces(np.add.reduce, words, threads)
    if COMPETITORS["numba"].installed():
        alone, together = loops.readers()
        calls["loop"] = partial(alone, words)
        if threads > 1:
            loops.use_threads(threads)
            calls["loops"] = partial(together, words, threads)
    for call in calls.values():
        call()  # which compiles it
    return calls


SUMMERS = {
    "bcast": Competitor(("bcast",), _bcast),
    "numpy": Competitor(("numpy",), _numpy),
    "torch": Competitor(("torch",), _torch),
    "jax": Competitor(("jax",), _jax, new_arrays),
    "einsum": Competitor(("numpy",), _einsum),
    LIMIT: Competitor((), _limit),
}


def prepare_sums(task: SumTask, names: list[str]) -> tuple[dict[str, Call], dict[str, float]]:
    """Make the calls that do a task, and measure the largest error of each, in units in the last place.

    Raises
    ------
    AssertionError
        If a competitor's result is wrong: of another shape or dtype, or farther off than a sum can be that is rounded
        after each term.
    """
    error_of = judge(task)
    calls, errors = {}, {}
    for name in names:
        if task.out is not None:
            task.out.reshape(-1).view(np.uint8).fill(255)  # no numbers
        call = calls[name] = SUMMERS[name].call(task)
        result = call()
        if name == LIMIT:
            continue
        result = np.asarray(result) if task.out is None else task.out
        fits = result.dtype == task.grad.dtype and result.shape == task.workload.data
        error = errors[name] = error_of(result) if fits else math.nan
        if not error <= (terms(task.workload) if task.forced is None else 0):
            raise AssertionError(f"{name} is wrong in {task.workload.name!r}, {task.grad.dtype}: off by {error} ulp")
    return calls, errors


def judge(task: SumTask) -> Callable[[NDArray[Any]], float]:
    """Return a function that tells by how many units in the last place a result is off, where it is the farthest.

    Integers are off by their difference. Floats of up to 32 bits are summed exactly in float64, whatever the order; so
    are the two halves that float64 is cut into, and a result less their sums is exact again.
    """
    grad = _parts(task.grad, task.grad.shape)
    if task.forced is not None:
        halves, wide = [grad], task.forced
    else:
        halves, wide = _halves(grad), np.dtype(np.float64)
    sums = [half.sum(axis=task.axes, dtype=wide, keepdims=task.keepdims) for half in halves]
    unit = 1 if task.forced is not None else np.spacing(sum(sums).astype(grad.dtype)).astype(wide)

    def error(result: NDArray[Any]) -> float:
        off = _parts(result, task.workload.data).astype(np.float64)
        for part in sums:
            off = off - part
        return float(np.max(np.abs(off) / unit))

    return error


def _parts(array: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Give real and imaginary parts an axis of their own."""
    return array.reshape(-1).view(array.real.dtype).reshape(*shape, 2) if array.dtype.kind == "c" else array


def _halves(grad: NDArray[Any]) -> list[NDArray[Any]]:
    """Cut float64 in two, each of which has no digits beyond those that its sums can hold."""
    if grad.dtype != np.float64:
        return [grad]
    high = np.floor(grad * 2.0**HALF_BITS) / 2.0**HALF_BITS
    return [high, grad - high]
