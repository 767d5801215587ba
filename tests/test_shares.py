"""Threads without luck: shares run on one thread, from the last to the first and shuffled, as those of 1 to 64 threads.

What a share writes must depend neither on those before it nor on the thread that runs it. Real threads show that only
by chance.
"""

import random

import numpy as np
import pytest
from _ways import SUM_TARGETS, in_order, summed, written

import bcast
from bcast._runtime import cpu
from bcast._runtime import threads as runtime_threads

ORDERS = range(6)  # 0 is from the last to the first

COPIES = {
    "rows": ((1000,), (300, 1000)),
    "short runs": ((5000, 1), (5000, 3)),
    "runs": ((300, 1), (300, 1000)),
    "nested": ((40, 1, 30, 1, 3), (40, 3, 30, 3, 3)),
    "one block": ((1,), (50_000,)),
    "a plain copy": ((70_001,), (70_001,)),
}

SUMS = {
    "columns": ((3000, 100), (1, 100)),
    "rows": ((100, 3000), (100, 1)),
    "short runs": ((20_000, 5), (20_000, 1)),
    "few rows": ((3, 40_000), (1, 40_000)),
    "channels": ((100, 50, 50, 3), (1, 1, 1, 3)),
    "everything": ((70_001,), (1,)),
    "segments": ((1000, 7, 100), (1, 7, 1)),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("regime", ["threads", "streamed by threads", "streamed in part by threads"])
@pytest.mark.parametrize(("source", "shape"), COPIES.values(), ids=COPIES)
def test_copies_do_not_depend_on_the_order_of_shares(source, shape, regime, order):
    rng = random.Random(f"{source} {regime} {order}")
    for itemsize in 1, 3, 8:
        data = (np.arange(np.prod(source) * itemsize) * 37 % 251).astype(np.uint8).view(f"V{itemsize}").reshape(source)
        expected = np.broadcast_to(data, shape)
        for layout in data, np.asfortranarray(data), np.repeat(data, 2, axis=0)[::2]:
            with written(rng.choice(cpu.TARGETS), regime), in_order(order, rng.randint(1, 64)):
                np.testing.assert_array_equal(bcast.broadcast(layout, shape), expected, strict=True)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i4", "c8"])
@pytest.mark.parametrize(("shape", "data_shape"), SUMS.values(), ids=SUMS)
def test_sums_do_not_depend_on_the_order_of_shares(shape, data_shape, dtype, order):
    rng = random.Random(f"{shape} {dtype} {order}")
    grad = np.random.default_rng(order).standard_normal(shape).astype(dtype)
    leaf = rng.choice(SUM_TARGETS)
    with summed(leaf):
        alone = bcast.unbroadcast(grad, data_shape)
    with summed(leaf, shared=True), in_order(order, rng.randint(1, 64)):
        assert bcast.unbroadcast(grad, data_shape).tobytes() == alone.tobytes()


@pytest.mark.parametrize("threads", [1, 2, 3, 64])
@pytest.mark.parametrize("shares", [1, 2, 3, 7, 64, 1000])
def test_each_share_runs_once(shares, threads):
    for _ in range(20):
        ran = runtime_threads.recorded_shares(shares, threads)
        assert sorted(share for share, _ in ran) == list(range(shares))
        assert {worker for _, worker in ran} <= set(range(threads))
    orders = set()
    for order in ORDERS:
        with in_order(order, threads):
            ran = runtime_threads.recorded_shares(shares, threads)
        assert sorted(share for share, _ in ran) == list(range(shares))
        assert {worker for _, worker in ran} <= set(range(threads))
        orders.add(tuple(share for share, _ in ran))
        if order == 0:
            assert [share for share, _ in ran] == list(range(shares))[::-1]
    assert len(orders) >= min(shares, 4)
