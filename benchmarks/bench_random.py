"""Broadcasts of random shapes, fresh and warm: what no one thought of when the kernel was written.

    python -m pytest benchmarks/bench_random.py --seed 7

A name holds the seed and the number of the shape, so that `--seed 7 -k random-7-03` times one of them again.
"""

from conftest import Case
from peers import competitors
from shapes import random_workloads
from workloads import STATES

SECONDS = 0.1


def cases(config):
    """Yield every shape in its two dtypes and in every state."""
    for workload, dtypes in random_workloads(config.getoption("seed")):
        for dtype in dtypes:
            for state in STATES:
                names = competitors(workload, dtype, state)
                yield Case("random", workload, dtype, state, config.getoption("threads"), SECONDS), names


def test_random(timed):
    timed()
