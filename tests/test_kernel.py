"""The kernel on its own: every way in which short axes alternate, the sizes at which it changes its ways, threads."""

import itertools
import os
import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from _ways import THREADS, WAYS, overlaps, written

import bcast
from bcast import _adjoint
from bcast._copy import core
from bcast._kernel import replicate
from bcast._rules.alignment import Alignment
from bcast._runtime import cpu


def replicated(data, shape):
    out = np.empty(shape, data.dtype)
    source = (1,) * (len(shape) - data.ndim) + data.shape
    assert replicate(data, Alignment(shape, source), out) is out
    return out


def items(shape, itemsize):
    size = int(np.prod(shape)) * itemsize
    return (np.arange(size) * 37 % 251).astype(np.uint8).view(np.dtype((np.void, itemsize))).reshape(shape)


@pytest.mark.parametrize("itemsize", [1, 2, 3, 4, 8, 16, 17])
@pytest.mark.parametrize("rank", range(6))
def test_all_short_axes(rank, itemsize):
    rng = random.Random(itemsize)
    for shape in itertools.product([1, 2, 3], repeat=rank):
        for repeats in itertools.product([False, True], repeat=rank):
            source = tuple(1 if repeated else length for length, repeated in zip(shape, repeats, strict=True))
            data = items(source, itemsize)
            with written(rng.choice(cpu.TARGETS), "ordinary"):
                result = replicated(data, shape)
            np.testing.assert_array_equal(result, np.broadcast_to(data, shape), strict=True)


# Where programs begin, where they end and runs are doubled, where blocks are written out of registers, where they are
# no longer doubled, where streaming and long items take several pieces, and where blocks are written anew.
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


@pytest.mark.skipif("BCAST_NUM_THREADS" in os.environ, reason="the environment limits the threads")
def test_the_ways_of_these_tests_leave_nothing_behind():
    threads = bcast.get_num_threads()
    for leaf, regime in WAYS:
        with written(leaf, regime):
            assert bcast.get_num_threads() == (THREADS if "threads" in regime else threads)
        assert bcast.get_num_threads() == threads


@pytest.mark.parametrize("limits", [{"share": 0}, {"streamed": -1}, {"shared": 0}])
def test_limits_that_make_no_sense_are_refused(limits):
    with pytest.raises(ValueError, match="at least 1"):
        (_adjoint if "shared" in limits else core).set_limits(**limits)


def test_as_many_alternating_axes_as_an_array_has():
    shape = (2, 2) * 8 + (1,) * 16 + (1, 1) * 16
    data = items((2, 1) * 8 + (1,) * 48, 1)
    np.testing.assert_array_equal(replicated(data, shape), np.broadcast_to(data, shape), strict=True)


def test_other_threads_run_while_bytes_are_written():
    data, out = np.ones(1, np.uint8), np.empty(2**28, np.uint8)
    assert overlaps(lambda: replicate(data, Alignment(out.shape, data.shape), out))


def test_many_threads_at_once():
    cases = [
        ((1, 1000, 1), (50, 1000, 3)),
        ((2, 1) * 8, (2, 2) * 8),
        ((100, 1), (100, 700)),
        ((7,), (9, 7)),
        ((), (5,)),
    ]
    arrays = [(items(source, itemsize), shape) for source, shape in cases for itemsize in (1, 3, 16)]
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda case: replicated(*case), arrays * 20))
    for result, (data, shape) in zip(results, arrays * 20, strict=True):
        np.testing.assert_array_equal(result, np.broadcast_to(data, shape), strict=True)


@pytest.mark.parametrize("repeats", [(2,), (5,), (1, 3), (2, 1, 2)])
@pytest.mark.parametrize(
    "data",
    [
        items((40, 50), 3)[:20, 5:25],
        items((20, 30), 4).T,
        items((1000,), 8)[::-1],
        items((700, 700), 1)[::2, ::2],
        items((30,), 2)[4:5, None][..., ::-1],
    ],
    ids=["crop", "transposed", "reversed", "stepped", "one"],
)
def test_strided_blocks_repeated_outermost(data, repeats):
    shape = repeats + data.shape
    np.testing.assert_array_equal(replicated(data, shape), np.broadcast_to(data, shape), strict=True)
