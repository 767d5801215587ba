"""The whole grid: broadcasts that programs really do, in five dtypes, fresh and warm."""

from conftest import Case
from peers import competitors
from workloads import DTYPES, STATES, grid

SECONDS = 0.1


def cases(config):
    """Yield every workload in every dtype and state."""
    for dtype in DTYPES:
        for workload in grid(dtype):
            for state in STATES:
                names = competitors(workload, dtype, state)
                yield Case("grid", workload, dtype, state, config.getoption("threads"), SECONDS), names


def test_grid(timed):
    timed()
