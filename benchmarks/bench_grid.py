"""The whole grid under pytest-benchmark: every workload, dtype and state is a group, and competitors stand in it.

On a shared machine the speed of memory drifts within seconds, and competitors timed one after the other would not meet
the same conditions. So all that are selected of a group are timed by turns, when the first of them is due, and
pytest-benchmark is given each one's rounds as they were, by a clock that replays them.
"""

from itertools import cycle

import pytest

from bcast._bench import head, measure
from bcast._peers import DTYPES, STATES, competitors, grid, prepare

SECONDS = 0.3  # for each competitor of a group

CELLS = [
    pytest.param(workload, dtype, state, name, id=f"{workload.name}-{dtype}-{state}-{name}")
    for dtype in DTYPES
    for workload in grid(dtype)
    for state in STATES
    for name in competitors(workload, dtype, state)
]


class Replay:
    """A clock that only `step` moves, by the next of the recorded rounds."""

    __name__ = "interleaved"

    def __init__(self):
        self.now = 0.0
        self.rounds = cycle([0.0])

    def __call__(self):
        """Tell the time."""
        return self.now

    def step(self):
        """Let one round pass."""
        self.now += next(self.rounds)


clock = Replay()
measured = {}


def rounds_of(session, workload, dtype, state):
    """Time those competitors of a group that were selected, all of them at its first cell."""
    group = (workload, dtype, state)
    if group not in measured:
        measured.clear()
        names = [
            params["competitor"]
            for params in (item.callspec.params for item in session.items)
            if (params["workload"], params["dtype"], params["state"]) == group
        ]
        measured[group] = measure(prepare(workload, dtype, state, names), SECONDS * len(names))
    return measured[group]


@pytest.fixture(scope="session")
def machine(request):
    return head(dict.fromkeys(item.callspec.params["competitor"] for item in request.session.items))


@pytest.mark.benchmark(timer=clock)
@pytest.mark.parametrize(("workload", "dtype", "state", "competitor"), CELLS)
def test_grid(request, benchmark, machine, workload, dtype, state, competitor):
    rounds = rounds_of(request.session, workload, dtype, state)[competitor]
    benchmark.group = f"{workload.name}, {dtype}, {state}"
    benchmark.extra_info = {
        "workload": workload.name,
        "family": workload.group,
        "innermost": workload.innermost,
        "dtype": dtype,
        "state": state,
        "competitor": competitor,
        "bytes": workload.nbytes(dtype),
        "machine": machine,
    }
    clock.now, clock.rounds = 0.0, cycle(rounds)
    benchmark.pedantic(clock.step, rounds=len(rounds), iterations=1)
