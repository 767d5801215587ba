"""Gradients summed onto the shape of the data, by speed and by error, all in three dtypes, a few in two more."""

import math
from dataclasses import dataclass

import numpy as np
from conftest import Case
from peers import competitors
from shapes import SUM_DTYPES, sums
from sum_peers import SUMMERS, SumTask, prepare_sums

SECONDS = 0.1
LARGE = 1 << 20  # bytes of a result that it matters to have anew


@dataclass(frozen=True)
class Adjoint(Case):
    """A case whose gradients are summed."""

    def calls(self, names):
        """Make the calls of some competitors, and measure their errors."""
        return prepare_sums(SumTask.of(self.workload, self.dtype, self.state, self.threads), names)


def cases(config):
    """Yield every workload in every dtype, fresh, and warm where the result is large."""
    for dtype in SUM_DTYPES:
        for workload in sums(dtype):
            large = math.prod(workload.data) * np.dtype(dtype).itemsize >= LARGE
            for state in ("fresh", "warm") if large else ("fresh",):
                names = competitors(workload, dtype, state, SUMMERS)
                yield Adjoint("adjoint", workload, dtype, state, config.getoption("threads"), SECONDS), names


def test_adjoint(timed):
    timed()
