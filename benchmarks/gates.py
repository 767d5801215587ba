"""Calls that the patch passes on to NumPy: their times without the patch, and what the patch adds.

Each call alternates between rounds with and without the patch, in one process, and the fastest round of both counts.
The place of code in memory changes each difference by a few nanoseconds, so several processes differ.
"""

import operator
from argparse import Namespace
from collections.abc import Iterator
from timeit import Timer
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bcast

__all__ = ["measure_gates"]

ROUND_SECONDS = 1e-4
ROUNDS_OF_TURN = 40  # without and with the patch, for each of `--rounds`
GROUPS = ("copies", "ufuncs", "reductions", "sums")


class Sub(np.ndarray[Any, Any]):
    """A class that NumPy handles under the patch, too."""


def names_of_calls() -> dict[str, Any]:
    """Make the operands of all calls."""
    rng = np.random.default_rng(0)
    x, y, table, other = rng.random(3), rng.random(3), rng.random((4, 3)), rng.random((4, 3))
    arrays: dict[str, NDArray[Any]] = {"x": x, "y": y, "table": table, "other": other, "whole": np.arange(3)}
    arrays |= {"wide": rng.random((4, 6))[:, ::2], "one": np.ones(1), "scalar": np.array(2.0), "out": np.empty(3)}
    arrays |= {"mask": x > 0.5, "sub": x.view(Sub), "masked": np.ma.array(x, mask=x > 0.5)}
    arrays |= {"objects": x.astype(object), "dates": np.arange(3).astype("M8[D]"), "long": rng.random(10_000)}
    return {"np": np, "operator": operator, "number": np.float64(2), "items": x.tolist(), **arrays}


CALLS = {
    "operators": (
        "x + y", "x + 1", "2.0 * x", "x * number", "-x", "x < y", "x == 1", "whole % 2", "table + other", "table.T - 1",
        "x + scalar", "scalar + 1", "x - one", "table + wide", "objects + 1", "dates - dates", "sub + y", "masked + y",
        "number + number", "long + long", "operator.iadd(x, 0.0)", "operator.iadd(table, other)",
    ),
    "ufuncs": (
        "np.add(x, y)", "np.add(x, y, out)", "np.add(x, y, out=out)", "np.add(x, y, out, where=mask)",
        "np.add(x, y, dtype=float)", "np.add(2.0, 3)", "np.add(items, items)", "np.sqrt(x)", "np.sqrt(2.0)",
        "np.sqrt(number)", "np.sqrt(scalar)", "np.sqrt(sub)", "np.maximum(x, 0)", "np.add.reduce(x)",
    ),
    "methods": (
        "x.max()", "x.sum()", "x.mean()", "x.std()", "x.any()", "mask.all()", "whole.prod()", "table.max(1)",
        "table.sum(0)", "x.sum(where=mask)", "scalar.max()", "objects.sum()", "sub.max()", "masked.max()", "long.max()",
    ),
    "functions": (
        "np.sum(items)", "np.sum(objects)", "np.sum(sub)", "np.sum(masked)", "np.sum(scalar)", "np.sum(x, where=mask)",
        "np.max(items)", "np.prod(x)", "np.where(mask)", "np.where(mask, items, items)", "np.stack([x, y])",
        "np.repeat(items, 2)", "np.tile(items, 2)", "np.linalg.norm(items)",
    ),
}  # fmt: skip


def measure_gates(options: Namespace) -> None:
    """Print the time of each call in nanoseconds, what the patch adds, and the percentage."""
    names = names_of_calls()
    print("| call | NumPy, ns | patched, ns more | percent |", "|---|--:|--:|--:|", sep="\n")
    for group, calls in CALLS.items():
        added = []
        for call in calls:
            if options.only not in f"{group}, {call}" or is_taken(call, names):
                continue
            before, more = measured(Timer(call, globals=names), ROUNDS_OF_TURN * options.rounds)
            added.append(more)
            print(f"| `{call}` | {before:.0f} | {more:+.1f} | {100 * more / before:+.1f} |", flush=True)
        if added:
            print(f"| all {len(added)} {group}: the mean | | {sum(added) / len(added):+.1f} | |")


def is_taken(call: str, names: dict[str, Any]) -> bool:
    """Return whether the patch takes a call of its own."""
    before = sum(info.taken for info in bcast.patch_info().values())
    with bcast.patched_numpy(GROUPS):
        eval(call, names)
    return sum(info.taken for info in bcast.patch_info().values()) > before


def measured(timer: Timer, rounds: int) -> tuple[float, float]:
    """Return the nanoseconds of a call without the patch, and those that the patch adds."""
    loops = max(1, int(ROUND_SECONDS / min(timer.repeat(20, 20)) * 20))
    fastest = [min(times) for times in zip(*turns(timer, rounds, loops), strict=True)]
    before, patched = (1e9 * seconds / loops for seconds in fastest)
    return before, patched - before


def turns(timer: Timer, rounds: int, loops: int) -> Iterator[tuple[float, float]]:
    """Yield the seconds of rounds without and with the patch."""
    for _ in range(rounds):
        before = timer.timeit(loops)
        with bcast.patched_numpy(GROUPS):
            patched = timer.timeit(loops)
        yield before, patched
