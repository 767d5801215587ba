"""Threads without chance: one thread runs the shares of 1 to 64 threads, from the last to the first or shuffled.

A share's results must depend neither on earlier shares nor on the thread that runs it. Real threads would show errors
only by chance.
"""

import itertools
import random

import numpy as np
import pytest
from _ways import REGIMES, SUM_TARGETS, in_order, summed, written
from test_adjoint import CASES as SUMS
from test_adjoint import sum_over
from test_leaves import CASES as COPIES
from test_strided import items

import bcast
from bcast._runtime import core as runtime

ORDERS = range(6)  # 0 is from the last to the first
THREADED = [regime for regime, limits in REGIMES.items() if "share" in limits]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("source", "shape", "itemsize"), COPIES.values(), ids=COPIES)
def test_copies_do_not_depend_on_the_order_of_shares(source, shape, itemsize, order):
    rng = random.Random(f"{source} {itemsize} {order}")
    data = items(source, itemsize)
    expected = np.broadcast_to(data, shape)
    for layout, regime in itertools.product((data, np.asfortranarray(data), np.repeat(data, 2, axis=0)[::2]), THREADED):
        with written(rng.choice(runtime.TARGETS), regime), in_order(order, rng.randint(1, 64)):
            np.testing.assert_array_equal(bcast.broadcast(layout, shape), expected, strict=True)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("shape", "axes"), SUMS.values(), ids=SUMS)
def test_sums_do_not_depend_on_the_order_of_shares(shape, axes, order):
    rng = random.Random(f"{shape} {order}")
    for dtype in "f2", "f4", "f8", "i4", "c8":
        grad = np.random.default_rng(order).standard_normal(shape).astype(dtype)
        leaf = rng.choice(SUM_TARGETS)
        with summed(leaf):
            alone = sum_over(grad, axes)
        with summed(leaf, shared=True), in_order(order, rng.randint(1, 64)):
            assert sum_over(grad, axes).tobytes() == alone.tobytes()


@pytest.mark.parametrize("threads", [1, 2, 3, 64])
@pytest.mark.parametrize("shares", [1, 2, 3, 7, 64, 1000])
def test_each_share_runs_once(shares, threads):
    for _ in range(20):
        ran = runtime.recorded_shares(shares, threads)
        assert sorted(share for share, _ in ran) == list(range(shares))
        assert {worker for _, worker in ran} <= set(range(threads))
    orders = set()
    for order in ORDERS:
        with in_order(order, threads):
            ran = runtime.recorded_shares(shares, threads)
        assert sorted(share for share, _ in ran) == list(range(shares))
        assert {worker for _, worker in ran} <= set(range(threads))
        orders.add(tuple(share for share, _ in ran))
        if order == 0:
            assert [share for share, _ in ran] == list(range(shares))[::-1]
    assert len(orders) >= min(shares, 4)
