"""The copy kernel alone: every alternation of short axes, the sizes at which it changes its strategy, threads."""

import importlib
import itertools
import random

import numpy as np
import pytest
from _commands import python
from _ways import WAYS, overlaps, written
from test_strided import items

import bcast
from bcast._kernel import replicate
from bcast._rules.alignment import Alignment
from bcast._runtime import core as runtime


def replicated(data, shape):
    out = np.empty(shape, data.dtype)
    source = (1,) * (len(shape) - data.ndim) + data.shape
    assert replicate(data, Alignment(shape, source), out) is out
    return out


@pytest.mark.parametrize("itemsize", [1, 2, 3, 4, 8, 16, 17])
@pytest.mark.parametrize("rank", range(6))
def test_all_short_axes(rank, itemsize):
    rng = random.Random(itemsize)
    for shape in itertools.product([1, 2, 3], repeat=rank):
        for repeats in itertools.product([False, True], repeat=rank):
            source = tuple(1 if repeated else length for length, repeated in zip(shape, repeats, strict=True))
            data = items(source, itemsize)
            with written(rng.choice(runtime.TARGETS), "ordinary"):
                result = replicated(data, shape)
            np.testing.assert_array_equal(result, np.broadcast_to(data, shape), strict=True)


# Where shuffle tables begin, where they end and runs are doubled, where blocks are written out of registers, where they
# are no longer doubled, where streaming and long items take several pieces, and where blocks are written anew.
SIZES = [n + d for n in (128, 2048, 4096, 16384, 32768, 131072) for d in (-17, -16, -1, 0, 1, 15, 16, 17)]


@pytest.mark.parametrize("itemsize", [1, 2, 3, 8, 16, 24])
@pytest.mark.parametrize("size", SIZES)
def test_around_every_threshold(size, itemsize):
    rng = random.Random(f"{size} {itemsize}")
    n = max(1, size // itemsize)
    for source, shape in [
        ((n,), (3, n)),  # a row
        ((3, 1), (3, n)),  # a run
        ((2, 1, n), (2, 3, n)),  # rows of a block
        ((2, 1, max(1, n // 2), 1), (2, 3, max(1, n // 2), 2)),  # blocks of short runs
        ((n, 1, 2, 1), (n, 2, 2, 2)),  # short axes over many blocks
        ((2, 1, 2, 1, 3), (2, n, 2, 2, 3)),  # a block repeated that often
        ((1, 3, 1, n), (2, 3, 2, n)),
    ]:
        data = items(source, itemsize)
        for way in rng.sample(WAYS, 2):
            with written(*way):
                result = replicated(data, shape)
            np.testing.assert_array_equal(result, np.broadcast_to(data, shape), strict=True, err_msg=str(way))


HOOKS = {  # what each module's limits are called, in the order of its arguments
    "bcast._copy.run": ("share", "streamed"),
    "bcast._reduce.run": ("shared",),
    "bcast._apply.run": ("share",),
    "bcast._api.converted": ("block_bytes",),
}


@pytest.mark.parametrize("module", HOOKS)
def test_limits_that_make_no_sense_are_refused(module):
    hook = importlib.import_module(module).set_limits
    for name in HOOKS[module]:
        for bad in (0, -1):
            with pytest.raises(ValueError, match=f"`{name}`.* expected bytes, .*got .*{bad}"):
                hook(**{name: bad})


CALLS_UNDER_LIMITS = """
import importlib, sys
import numpy as np, bcast
bcast.set_num_threads(2)
set_limits = importlib.import_module(sys.argv[1]).set_limits
rows, tall = np.arange(9000.0).reshape(-1, 3), np.ones((600_000, 3), "f4")
for n in (int(argument) for argument in sys.argv[2:]):
    try:
        set_limits(n, 5) if sys.argv[1] == "bcast._copy.run" else set_limits(n)
    except ValueError:  # more than any memory has, but no call gives a wrong result for it
        assert n >= 1 << 57
        continue
    for each in (rows, tall):
        assert (bcast.broadcast(each, (2, *each.shape)) == each).all()
        assert (bcast.broadcast(each, (2, *each.shape), dtype="f8") == each).all()
        assert (bcast.repeat(each, np.full(len(each), 2), 0)[::2] == each).all()
        assert (bcast.elementwise(np.add, each, each[0]) == each + each[0]).all()
        assert (bcast.chain(each, (np.add, each[0])) == each + each[0]).all()
        assert (bcast.sum(each, 0) == each.sum(0, "f8")).all()
        assert (bcast.unrepeat(each, np.full(len(each) // 2, 2), 0) == each[::2] + each[1::2]).all()
"""


@pytest.mark.parametrize("module", HOOKS)
def test_limits_of_any_size_are_safe(module):
    """Products of a limit may not wrap around: 2 * 2**62 and 8 * 2**61 would be no divisors and no sizes."""
    limits = [1, 7, *(2**bits + more for bits in (57, 60, 61, 62) for more in (-1, 0, 1)), 2**63 - 1]
    done = python("-c", CALLS_UNDER_LIMITS, module, *map(str, limits))
    assert (done.returncode, done.stderr) == (0, "")


ITEMS = np.ones(4_000_000, np.uint8)
LARGE = {
    "bytes": lambda: bcast.broadcast(ITEMS[:1], (1 << 27,)),
    "transposed": lambda: bcast.broadcast(ITEMS.reshape(-1, 2000).T, (20, 2000, 2000)),
    "counts": lambda: bcast.repeat(ITEMS, np.full(ITEMS.size, 8, np.uint8)),
    "axes": lambda: bcast.repeat(ITEMS.reshape(-1, 4000), (2, 4), (0, 1)),
    "grids": lambda: bcast.meshgrid(ITEMS[:4000], ITEMS[:4000]),
    "sum": lambda: bcast.unbroadcast(ITEMS.reshape(-1, 1000), (1000,), dtype=int),
    "sums by counts": lambda: bcast.unrepeat(ITEMS, np.full(ITEMS.size // 8, 8), dtype=int),
    "function": lambda: bcast.elementwise(np.hypot, ITEMS.reshape(-1, 4), ITEMS[:4]),
    "chain": lambda: bcast.chain(ITEMS.reshape(-1, 4), (np.add, ITEMS[:4]), np.sqrt, dtype="f4"),
}


@pytest.mark.parametrize("call", LARGE.values(), ids=LARGE)
def test_other_threads_run_meanwhile(call):
    assert any(overlaps(call) for _ in range(1000))  # one is nearly always enough
