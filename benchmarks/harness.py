"""How a cell is timed: results are checked first, then competitors take turns, and the fastest round of each counts.

The speed of memory on a shared machine drifts within seconds, so competitors that were timed one after the other would
not meet the same conditions. Other work only ever adds time, so the fastest round tells most.
"""

import json
import math
import random
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib import metadata
from pathlib import Path
from statistics import median
from time import perf_counter, sleep
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bcast._benchmark import timing
from bcast._benchmark.table import LOST
from benchmarks import peers
from benchmarks.peers import LIMIT, OWN, Call, Names, Way, call_of
from benchmarks.separate import REST_SECONDS, WARM_UP_SECONDS, Separate

ROUNDS = 7  # turns of each competitor
LARGE = 1 << 28  # bytes from which on a cell has a third of the turns
AWAKE = 8  # calls of each competitor for each round without rests
PIECE = 1 << 26  # bytes that are compared at once


Check = Callable[[Any], float | None]  # from a result to its error in ulp; raises AssertionError if it is wrong
Judge = Callable[[Names, Call], Check]  # of the names of a cell, and NumPy's call, which gives what is expected


@dataclass(frozen=True)
class Cell:
    """One thing that is timed.

    Attributes
    ----------
    family, name, group : str
        What the command line takes; what is done; what cells are summed up together.
    dtype, state : str
        Of the result; where it goes, as a rule 'fresh' (a new array, dropped at once) or 'warm' (the same `out` again).
    threads : int
        Of each competitor, at most.
    nbytes : int
        Bytes that must be moved: written by copies, read by sums, both by arithmetic. The limit moves as many.
    names : function
        Makes the arrays and numbers that the calls name, the same for every competitor. If `out` is one of them and not
        None, each call writes its result there.
    ways : mapping of str to str or function
        The call of each competitor: what its own user would write.
    judge : function
        Makes the check that each result must pass.
    innermost : int
        How many times the innermost repeated axis repeats; 0 where it does not count.
    awake : bool
        Whether nobody rests: calls follow each other in random order, and medians count.
    """

    family: str
    name: str
    group: str
    dtype: str
    state: str
    threads: int
    nbytes: int
    names: Callable[[], Names] = field(compare=False)
    ways: Mapping[str, Way] = field(compare=False)
    judge: Judge = field(compare=False)
    innermost: int = 0
    awake: bool = False

    @property
    def label(self) -> str:
        """The text that `--only` searches."""
        return label_of(self)

    @property
    def competitors(self) -> list[str]:
        """The competitors that are installed."""
        return [name for name in self.ways if peers.installed(name)]


@dataclass(frozen=True)
class Measured:
    """What was measured of a cell.

    Attributes
    ----------
    family, name, group, dtype, state, threads, nbytes, innermost
        As those of the cell.
    times : mapping of str to float
        Seconds of one call, by competitor.
    errors : mapping of str to float
        The error of the worst item of the result, in units in the last place, by competitor; only sums have any.
    """

    family: str
    name: str
    group: str
    dtype: str
    state: str
    threads: int
    nbytes: int
    innermost: int
    times: Mapping[str, float]
    errors: Mapping[str, float] = field(default_factory=dict)

    def ratio(self, competitor: str) -> float:
        """Return the time of a competitor divided by that of bcast; NaN if it has none."""
        return self.times.get(competitor, math.nan) / self.times["bcast"]

    @property
    def best_peer(self) -> str | None:
        """The fastest competitor except NumPy; other ways to call bcast are none."""
        rivals = (name for name in self.times if name not in OWN and not name.startswith("bcast,"))
        return min(rivals, key=self.times.__getitem__, default=None)

    @property
    def lost_to(self) -> list[str]:
        """NumPy and the best peer, if they are faster than bcast."""
        return [name for name in ("numpy", self.best_peer) if name and self.ratio(name) < LOST]

    @property
    def bandwidth(self) -> float:
        """Bytes that bcast moves in a second."""
        return self.nbytes / self.times["bcast"]


def label_of(cell: Cell | Measured) -> str:
    """Write what a cell is; of those that scale, with the number of threads."""
    threads = f"threads: {cell.threads}" if cell.family == "scaling" else ""
    return ", ".join(filter(None, (cell.name, cell.dtype, cell.state, threads)))


def prepared(cell: Cell) -> tuple[dict[str, Call], dict[str, float]]:
    """Make the call of each competitor that is installed and can do the cell, and check its result once.

    Raises
    ------
    AssertionError
        If the result of bcast is wrong. Other competitors with wrong results are left out, and named.
    """
    names = cell.names()
    out = names.get("out")
    check = cell.judge(names, partial(result_of_numpy, cell.ways, names))
    calls, errors = dict[str, Call](), dict[str, float]()

    for name in cell.competitors:
        peers.peer(name).set_up(cell.threads)
        call = call_of(name, cell.ways[name], names)
        if call is None:
            continue
        calls[name] = call
        result = result_of(name, call, out)
        if name == LIMIT:
            continue
        try:
            error = check(result)
        except AssertionError as reason:
            if name == "bcast":
                raise AssertionError(f"bcast is wrong in {cell.label}: {reason}") from None
            print(f"left out: {name} is wrong in {cell.label}: {reason}", file=sys.stderr)
            del calls[name]
            continue
        if error is not None:
            errors[name] = error
    return calls, errors


def result_of(competitor: str, call: Call, out: NDArray[Any] | None) -> Any:
    """Make a call, and return what it has made: what it returns, or what was NaN, or 0, in `out` before."""
    if out is None:
        return call()
    out.fill(np.nan if out.dtype.kind in "fc" else 0)
    returned = call()
    return returned if peers.peer(competitor).makes_its_own else out


def result_of_numpy(ways: Mapping[str, Way], names: Names) -> Any:
    """Return what NumPy's call makes, in an array of its own."""
    call, out = call_of("numpy", ways["numpy"], names), names.get("out")
    assert call is not None
    result = result_of("numpy", call, out)
    return result if out is None else result.copy()


def timed(cell: Cell, rounds: int) -> tuple[dict[str, list[float]], dict[str, float]]:
    """Check all competitors of a cell, then time them; return the seconds of a call in each round, and errors."""
    with np.errstate(all="ignore"):
        calls, errors = prepared(cell)
        if cell.awake:
            return in_random_order(calls, AWAKE * rounds), errors
        turns = rounds if cell.nbytes < LARGE else -(-rounds // 3)
        if any(isinstance(call, Separate) for call in calls.values()):
            return in_processes(calls, turns), errors
        return timing.measure(calls, 0, WARM_UP_SECONDS, lambda: sleep(REST_SECONDS), turns), errors


def in_processes(calls: Mapping[str, Call], turns: int) -> dict[str, list[float]]:
    """Time calls that are made in other processes, by turns; after each, in the other order."""
    taken: dict[str, list[float]] = {name: [] for name in calls}
    order = list(calls)
    for _ in range(turns):
        for name in order:
            call = calls[name]
            assert isinstance(call, Separate)
            taken[name] += call.turn()
        order.reverse()
    return taken


def in_random_order(calls: Mapping[str, Call], times: int) -> dict[str, list[float]]:
    """Time calls that follow each other without a rest."""
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(times):
        for name in random.sample(list(calls), len(calls)):
            begin = perf_counter()
            calls[name]()
            taken[name].append(perf_counter() - begin)
    return taken


def measured(cell: Cell, rounds: int = ROUNDS) -> Measured:
    """Check and time all competitors of a cell. The fastest round counts, or the median without rests."""
    of_rounds, errors = timed(cell, rounds)
    times = {name: median(taken) if cell.awake else min(taken) for name, taken in of_rounds.items()}
    of_cell = (cell.family, cell.name, cell.group, cell.dtype, cell.state, cell.threads, cell.nbytes, cell.innermost)
    return Measured(*of_cell, times, errors)


# Checks of results.


def as_numpy(_names: Names, numpys: Call) -> Check:
    """Judge results by NumPy's: they must be equal."""
    return equals(numpys())


def near_numpy(relative: float, absolute: float = 0.0) -> Judge:
    """Judge results by NumPy's: they must be near; integers and bools must be equal."""

    def judge(_names: Names, numpys: Call) -> Check:
        expected = np.asarray(numpys())
        return is_close(expected, relative, absolute) if expected.dtype.kind in "fc" else equals(expected)

    return judge


def equals(expected: Any, any_dtype: bool = False) -> Check:
    """Return a check that a result, or each of several, has the dtype, the shape and the items that are expected."""

    def check(result: Any) -> None:
        found, wanted = (each if isinstance(each, (tuple, list)) else (each,) for each in (result, expected))
        assert len(found) == len(wanted), f"{len(found)} results, not {len(wanted)}"
        for one, other in zip(map(np.asarray, found), map(np.asarray, wanted), strict=True):
            same_kind(one.astype(other.dtype) if any_dtype else one, other)
            assert equal_by_pieces(one, other), "items differ"

    return check


def is_close(expected: NDArray[Any], relative: float, absolute: float = 0.0) -> Check:
    """Return a check that a result has the dtype and the shape that are expected, and items that are near."""

    def check(result: Any) -> None:
        result = np.asarray(result).reshape(expected.shape)
        same_kind(result, expected)
        np.testing.assert_allclose(result, expected, relative, absolute)

    return check


def same_kind(found: NDArray[Any], wanted: NDArray[Any]) -> None:
    """Compare dtypes and shapes."""
    assert found.dtype == wanted.dtype, f"{found.dtype}, not {wanted.dtype}"
    assert found.shape == wanted.shape, f"{found.shape}, not {wanted.shape}"


def equal_by_pieces(found: NDArray[Any], wanted: NDArray[Any]) -> bool:
    """Compare arrays of one shape in pieces, because comparing allocates another array."""
    if found.ndim == 0:
        return bool(found == wanted)
    rows = 1 + PIECE * len(wanted) // max(1, wanted.nbytes)
    pieces = (slice(row, row + rows) for row in range(0, len(wanted), rows))
    return all(np.array_equal(found[piece], wanted[piece]) for piece in pieces)


# What is printed, and saved.


def mean(ratios: Iterable[float]) -> float:
    """Return the geometric mean, NaN of nothing."""
    logarithms = [math.log(ratio) for ratio in ratios]
    return math.exp(math.fsum(logarithms) / len(logarithms)) if logarithms else math.nan


def row(cells: Iterable[str]) -> str:
    """Write a row of a table in Markdown."""
    return f"| {' | '.join(cells)} |"


def head(competitors: list[str], with_errors: bool) -> list[str]:
    """Write the head of a family's table: bcast's time and speed, the time of each other / bcast's, and errors."""
    others = [name for name in competitors if name != "bcast"]
    columns = ["cell", "bcast, us", "GB/s", *others]
    if with_errors:
        columns += ["ulp: bcast", *(name for name in others if name != LIMIT)]
    return [row(columns), f"|---{'|--:' * (len(columns) - 1)}|"]


def line(found: Measured, competitors: list[str], with_errors: bool) -> str:
    """Write what was measured of one cell."""
    others = [name for name in competitors if name != "bcast"]
    columns = [label_of(found)]
    columns += [f"{found.times['bcast'] * 1e6:.4g}", f"{found.bandwidth / 1e9:.3g}" if found.nbytes else ""]
    columns += [f"{found.ratio(name):.2f}" if name in found.times else "" for name in others]
    if with_errors:
        judged = [name for name in competitors if name != LIMIT]
        columns += [f"{found.errors[name]:.2g}" if name in found.errors else "" for name in judged]
    return row(columns)


def summary(found: list[Measured]) -> list[str]:
    """Write means and least of the ratios to NumPy and to the best peers, and the cells that are lost."""
    lines = []
    to_numpy = [(each.ratio("numpy"), "numpy", each) for each in found if "numpy" in each.times]
    to_peers = [(each.ratio(name), name, each) for each in found if (name := each.best_peer)]
    for rival, ratios in (("NumPy", to_numpy), ("the best peer", to_peers)):
        if ratios:
            middle, least = mean(ratio for ratio, *_ in ratios), min(ratio for ratio, *_ in ratios)
            lost = [f"  {ratio:.2f} {name}: {label_of(each)}" for ratio, name, each in ratios if ratio < LOST]
            among = f"lost {len(lost)} of {len(ratios)}"
            lines += [f"{rival}: {middle:.2f} in the geometric mean, least {least:.2f}, {among}", *lost]
    return lines


def save(path: Path, machine: str, found: list[Measured]) -> None:
    """Save what was measured, where, and by which versions of the peers, as JSON."""
    names = dict.fromkeys(name for each in found for name in each.times if name not in OWN and "," not in name)
    packages = dict.fromkeys(each.group for each in found if each.family == "packages")
    versions = {name: peers.version(name) for name in names if peers.installed(name)}
    versions |= {name: f"{name} {metadata.version(name)}" for name in packages}
    saved = {
        "machine": machine,
        "peers": versions,
        "cells": [asdict(each) for each in found],
    }
    path.write_text(json.dumps(saved, indent=1) + "\n", encoding="utf-8")
