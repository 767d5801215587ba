"""What the suites under pytest-benchmark share: the number of threads, and competitors timed by turns.

A module of a suite has a function `cases`, which yields each `Case` with the competitors that are timed against each
other. On a shared machine the speed of memory drifts within seconds, and competitors timed one after the other would
not meet the same conditions. So all that are selected of a case are timed by turns, when the first of them is due, and
pytest-benchmark is given each one's rounds as they were, by a clock that replays them.
"""

import os
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import cycle

import pytest
from machines import cpus, measure
from peers import COMPETITORS, OWN, bound, prepare, version
from shapes import SEED, innermost
from sum_peers import SUMMERS
from workloads import Task, Workload

from bcast._benchmark.table import machine


@dataclass(frozen=True)
class Case:
    """What competitors are timed in against each other.

    Attributes
    ----------
    suite : str
        The module that has it.
    workload : Workload
        The broadcast.
    dtype, state : str
        Of the result, and where it goes or what is done with it.
    threads : int
        On how many threads at most.
    seconds : float
        For each competitor.
    """

    suite: str
    workload: Workload
    dtype: str
    state: str
    threads: int
    seconds: float

    @property
    def name(self):
        """Unique, and what -k looks at."""
        return f"{self.suite}-{self.workload.name}-{self.dtype}-{self.state}-{self.threads}"

    @property
    def innermost(self):
        """How many times the innermost repeated axis repeats."""
        return innermost(self.workload)

    def calls(self, names):
        """Make the calls of some competitors, and tell the errors of those that have any."""
        return prepare(Task.of(self.workload, self.dtype, self.state, self.threads), names), {}


def pytest_addoption(parser):
    parser.addoption(
        "--threads", type=int, default=cpus(), help="threads of each competitor (default: one for each CPU)"
    )
    parser.addoption("--seed", type=int, default=SEED, help=f"of the random shapes (default: {SEED})")


def pytest_configure(config):
    threads = config.getoption("threads")
    if not 1 <= threads <= cpus():
        raise pytest.UsageError(f"--threads expected 1 to {cpus()}, the number of CPUs, got {threads}")
    stack = ExitStack()
    stack.enter_context(bound(threads))
    config.add_cleanup(stack.close)


def pytest_report_header(config):
    load = f"; load: {os.getloadavg()[0]:.2f}, which should be near 0" if hasattr(os, "getloadavg") else ""
    return f"threads: {config.getoption('threads')}; seed of the random shapes: {config.getoption('seed')}{load}"


def pytest_generate_tests(metafunc):
    cells = [
        pytest.param(case, name, id=f"{case.name}-{name}")
        for case, names in metafunc.module.cases(metafunc.config)
        for name in names
    ]
    metafunc.parametrize(("case", "competitor"), cells)


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


def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(pytest.mark.benchmark(timer=clock))


def rounds_of(session, case):
    """Time those competitors of a case that were selected, all of them at its first cell; return their errors, too."""
    if case not in measured:
        measured.clear()
        selected = (item.callspec.params for item in session.items)
        names = [params["competitor"] for params in selected if params["case"] == case]
        calls, errors = case.calls(names)
        measured[case] = measure(calls, case.seconds * len(names)), errors
    return measured[case]


@pytest.fixture(scope="session")
def run_on(request):
    """Tell the machine and the number of threads."""
    return machine(request.config.getoption("threads"))


@pytest.fixture
def timed(request, benchmark, run_on, case, competitor):
    """Return a function that times the cell and saves what it is."""

    def run():
        rounds, errors = rounds_of(request.session, case)
        workload = case.workload
        benchmark.group = case.name
        benchmark.extra_info = {
            "suite": case.suite,
            "workload": workload.name,
            "family": workload.group,
            "innermost": case.innermost,
            "dtype": case.dtype,
            "state": case.state,
            "threads": case.threads,
            "competitor": competitor,
            "bytes": workload.nbytes(case.dtype),
            "machine": run_on,
            "peer": None if competitor in OWN else version(competitor, SUMMERS | COMPETITORS),
            "error": errors.get(competitor),
        }
        clock.now, clock.rounds = 0.0, cycle(rounds[competitor])
        benchmark.pedantic(clock.step, rounds=len(rounds[competitor]), iterations=1)

    return run
