"""The cells under pytest-benchmark: `python -m pytest benchmarks -k "grid and uint8"`, on `BCAST_NUM_THREADS` threads.

All competitors of a cell are timed by turns when the first of them is due, as `python -m benchmarks` does. Then
pytest-benchmark is given each one's rounds as they were, by a clock that replays them.
"""

from argparse import Namespace
from collections.abc import Iterator
from itertools import cycle
from typing import Any

import pytest

import bcast
from benchmarks.cells import FAMILIES
from benchmarks.copies import SEED
from benchmarks.harness import ROUNDS, Cell, timed
from benchmarks.peers import bound

OPTIONS = Namespace(threads=bcast.get_num_threads(), seed=SEED)
ALL_CELLS = [cell for family in FAMILIES.values() for cell in family.cells(OPTIONS)]


class Replay:
    """A clock that only `step` moves, by the next of the recorded rounds."""

    __name__ = "interleaved"

    def __init__(self) -> None:
        self.now = 0.0
        self.rounds: Iterator[float] = cycle([0.0])

    def __call__(self) -> float:
        """Return the time."""
        return self.now

    def step(self) -> None:
        """Let one round pass."""
        self.now += next(self.rounds)


CLOCK = Replay()
LAST: dict[Cell, dict[str, list[float]]] = {}  # the rounds of the last cell, by competitor


@pytest.fixture(scope="session", autouse=True)
def _bound_to_cpus() -> Iterator[None]:
    """Limit the process to as many CPUs as there are threads."""
    with bound(OPTIONS.threads):
        yield


@pytest.mark.filterwarnings("default")  # what the peers warn of among themselves is not ours to judge
@pytest.mark.benchmark(timer=CLOCK)
@pytest.mark.parametrize(
    ("cell", "competitor"),
    [
        pytest.param(cell, name, id=f"{cell.family}: {cell.label}, {name}")
        for cell in ALL_CELLS
        for name in cell.competitors
    ],
)
def test_cell(benchmark: Any, cell: Cell, competitor: str) -> None:
    if cell not in LAST:
        LAST.clear()
        LAST[cell], _ = timed(cell, ROUNDS)
    if competitor not in LAST[cell]:
        pytest.skip(f"{competitor} does not do {cell.label}")
    rounds = LAST[cell][competitor]
    benchmark.group = f"{cell.family}: {cell.label}"
    CLOCK.now, CLOCK.rounds = 0.0, cycle(rounds)
    benchmark.pedantic(CLOCK.step, rounds=len(rounds), iterations=1)
