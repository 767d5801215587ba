"""`repeat` with a count for each item: values, layouts, threads, memory, and counts that change during the call."""

import itertools
import threading
from functools import partial

import numpy as np
import pytest
from _ways import THREADS, WAYS, in_order, written
from hypothesis import strategies as st
from test_errors import refuse, refuse_with_out, rows
from test_fenced import PAINT, fill, random_way, rooms  # noqa: F401 (a fixture)
from test_numpy import assert_same
from test_properties import DTYPES, check_copies, drawn_data, for_all, raw_dtype, ways, windows
from test_strided import items

import bcast
from bcast._kernel import repeat_counted
from bcast._reduction import sum_counted
from bcast._rules.counts import counts_of_array
from bcast._runtime import core as runtime

CHUNK, KEPT = 512, 4096  # as in `_rules/counts.pyx`
MANY = (1 << 21) // 8 + 1  # counts of int64 that several threads sum, asleep or not
INTEGERS = ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", ">i2", ">u4", ">i8", ">u8")
A23 = np.arange(6.0).reshape(2, 3)


def check(data, counts, axis=None):
    expected = data.repeat(np.asarray(counts).astype(int), axis)
    result = bcast.repeat(data, counts, axis)
    assert result.shape == expected.shape
    assert result.tobytes() == expected.tobytes()
    out = np.zeros(expected.shape, data.dtype)
    assert bcast.repeat(data, counts, axis, out=out) is out
    assert out.tobytes() == expected.tobytes()


# Values.


@pytest.mark.parametrize("itemsize", [1, 2, 3, 4, 7, 8, 11, 15, 16, 17, 24, 32, 40])
def test_all_counts_of_a_few_items(itemsize):
    for target, n in itertools.product(runtime.TARGETS, (0, 2, 3, 4)):
        data = items((n,), itemsize)
        with written(target, "ordinary"):
            for counts in itertools.product(range(5), repeat=n):
                expected = data.repeat(counts).tobytes()
                assert bcast.repeat(data, np.array(counts, int)).tobytes() == expected, counts
                if n < 4:
                    assert bcast.repeat(data, counts, 0).tobytes() == expected, counts


@pytest.mark.parametrize("itemsize", [1, 3, 8, 16, 17, 32, 40, 64, 300, 5000])
def test_chunks_of_equal_counts(itemsize):
    """Alone and beside others: each chunk is written by the bits that its counts have, or have in common."""
    for n in (1, 2, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK + 3):
        data = items((n,), itemsize)
        for count in (0, 1, 2, 3, 4, 7) if itemsize < 5000 else (0, 1, 2):
            equal = np.full(n, count)
            check(data, equal)
            for at, other in itertools.product((0, n // 2, n - 1), (0, 1, 6)):
                counts = equal.copy()
                counts[at] = other
                check(data, counts)


@pytest.mark.parametrize("shape", [(3, 3, 3), (2, 5, 1), (1, 3, 7), (7, 600, 2), (600, 2, 9), (300, 7, 3)])
def test_every_axis(shape):
    for itemsize, axis in itertools.product([1, 3, 4, 16, 20, 100], [0, 1, 2, -1]):
        counts = np.arange(shape[axis]) * 7 % 5
        if len(counts) > 1:
            check(items(shape, itemsize), counts, axis)
            check(items(shape, itemsize), counts[::-1] // 4, axis)


@pytest.mark.parametrize("way", WAYS, ids=" ".join)
def test_every_way_of_writing(way):
    most_of = itertools.cycle([1, 2, 4, 9, 40, 300])
    for itemsize in (1, 2, 3, 4, 5, 8, 16, 17, 48, 256, 257, 5000, 40_000):
        rng = np.random.default_rng(itemsize)
        for n in (2, 17, CHUNK, CHUNK + 1, KEPT, KEPT + 1, MANY):
            if n * itemsize > 1 << 20:
                break
            data = items((n,), itemsize)
            with written(*way):
                for most in itertools.islice(most_of, 2):
                    if n * itemsize * most < 4 << 20:
                        check(data, rng.integers(0, most + 1, n))
                check(data, np.ones(n, int))
                check(data, np.where(np.arange(n) == n // 2, 1 + (1 << 20) // itemsize, 0))


@pytest.mark.parametrize("way", WAYS, ids=" ".join)
def test_counts_that_come_again_for_each_outer_position(way):
    for n, outer, inner in (3, 1000, 1), (3, 999, 5), (200, 31, 1), (5000, 3, 2), (600, 7, 40):
        data = items((outer, n, inner), 1)
        with written(*way):
            check(data, np.arange(n) * 11 % 4, 1)
            check(data, np.arange(n) % 2, 1)


@pytest.mark.parametrize("dtype", [*INTEGERS, "?", "f2", ">f4", ">f8", "g"])
def test_counts_of_any_dtype_and_layout(dtype):
    for n in (2, 100, CHUNK + 1, KEPT + 1, MANY):
        data, counts = np.arange(n), (np.arange(n) * 7 % 5).astype(dtype)
        counts.flags.writeable = False
        unaligned = np.empty(counts.nbytes + 1, np.uint8)[1:].view(dtype)
        unaligned[:] = counts
        repeated = np.lib.stride_tricks.as_strided(counts, (n,), (0,))
        for each in (counts, counts[::-1], np.repeat(counts, 3)[::3], repeated, unaligned):
            assert_same(bcast.repeat(data, each), np.repeat(data, each.astype(int)))
        if n <= KEPT + 1:
            assert_same(bcast.repeat(data, counts.tolist()), np.repeat(data, counts.astype(int)))


def test_bools_of_any_byte_count_once():
    data = np.arange(300)
    counts = (np.arange(300) % 3).astype(np.uint8).view(bool)
    assert_same(bcast.repeat(data, counts), np.repeat(data, counts != 0))


def test_subclasses_and_views_of_counts():
    counts = np.array([1, 0, 2])
    for each in (counts.view(np.recarray), memoryview(counts), range(1, 4)):
        assert_same(bcast.repeat([5, 6, 7], each), np.repeat([5, 6, 7], np.asarray(each)))


def test_counts_along_several_axes_into_out_that_overlaps_everything():
    room = np.arange(1, 20) % 3
    expected = room[:6].reshape(2, 3).repeat([1, 2], 0).repeat(room[3:6], 1)
    out = room[2 : 2 + expected.size].reshape(expected.shape)
    bcast.repeat(room[:6].reshape(2, 3), ([1, 2], room[3:6]), (0, 1), out=out)
    np.testing.assert_array_equal(out, expected)


# Messages.

LONG, LAST = np.full(5000, 1 << 52), np.where(np.arange(5000) == 4999, -1, 1)
MISUSES = {
    "negative_and_too_long": (partial(bcast.repeat, A23, np.array([1 << 62, 1 << 62, -1]), 1), ValueError, "repeats"),
    "negative_among_many": (partial(bcast.repeat, np.arange(5000), LAST), ValueError, "repeats"),
    "too_long": (partial(bcast.repeat, np.arange(5000), LONG), ValueError, "repeats"),
    "too_few_along_one_of_two": (partial(bcast.repeat, A23, ([1, 2], [1, 2]), (0, -1)), ValueError, "repeats"),
    "negative_along_one_of_two": (partial(bcast.repeat, A23, ([1, -2], 2), (0, 1)), ValueError, "repeats"),
    "negative_along_the_other": (partial(bcast.repeat, A23, ([1, 2], -2), (0, 1)), ValueError, "repeats"),
    "floats_along_one_of_two": (partial(bcast.repeat, A23, ([1, 2.5], 2), (0, 1)), TypeError, "repeats"),
    "nested_twice": (partial(bcast.repeat, A23, ([[1, 2]], 2), (0, 1)), TypeError, "repeats"),
    "nested_for_too_few_axes": (partial(bcast.repeat, A23, ([1, 2],), (0, 1)), ValueError, "repeats"),
    "nested_too_long": (partial(bcast.repeat, A23, ([1 << 40, 1], 1 << 40), (0, 1)), ValueError, "repeats"),
}


@pytest.mark.parametrize(("call", "error", "argument"), **rows(MISUSES))
def test_errors_come_before_any_write(call, error, argument):
    refuse_with_out(call, error, argument, (2, 3), float)


def test_more_items_than_memory_has():
    refuse(lambda: bcast.repeat(A23, np.array([1 << 61, 0, 0]), 1), ValueError, "repeats")
    for counts in ([1 << 50, 1], [1 << 55, 1]):
        with pytest.raises(MemoryError):
            bcast.repeat(np.zeros(2, np.uint8), counts)
    for data in np.zeros(5000), np.zeros(5000, object):
        with pytest.raises((MemoryError, ValueError)):
            bcast.repeat(data, np.where(np.arange(5000) == 7, 1 << 55, 1))
    assert bcast.repeat(np.zeros((2, 0)), [1 << 55, 1], 0).shape == ((1 << 55) + 1, 0)


# Memory.


@pytest.mark.parametrize("itemsize", [1, 2, 3, 4, 5, 8, 12, 16, 17, 31, 33, 64, 300])
def test_no_byte_outside_the_buffers(rooms, itemsize):  # noqa: F811
    rng = np.random.default_rng(itemsize)
    data_room, out_room, flush = rooms
    fill(rooms, rng)
    for _ in range(300):
        way = random_way(rng)
        n, most = int(rng.integers(2, 6 if rng.random() < 0.3 else 3000)), int(rng.choice([1, 2, 5, 30, 400]))
        outer = int(rng.integers(1, 9)) if rng.random() < 0.3 else 1
        n = max(2, min(n, len(out_room) // (most * itemsize * outer)))
        counts = rng.integers(0, most + 1, n) * (rng.random(n) < rng.choice([0.1, 1]))
        data = flush(data_room, outer * n * itemsize).view(f"V{itemsize}").reshape(outer, n)
        expected = data.repeat(counts, 1)
        out = flush(out_room, expected.nbytes)
        with written(*way):
            bcast.repeat(data, counts, 1, out=out.view(data.dtype).reshape(expected.shape))
        assert out.tobytes() == expected.tobytes(), (n, most, way)
        out[:] = PAINT
        assert (out_room == PAINT).all(), (n, most, way)


@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_no_share_writes_over_another(order):
    """Whatever the order of the shares, which are all written by the same thread here."""
    rng = np.random.default_rng(order)
    for itemsize, n, most in itertools.product((1, 3, 8, 24), (100, 5000, KEPT + 1), (1, 3, 30)):
        data, counts = items((n,), itemsize), rng.integers(0, most + 1, n)
        with written(runtime.TARGETS[0], "threads"), in_order(order, THREADS):
            result = bcast.repeat(data, counts)
        assert result.tobytes() == data.repeat(counts).tobytes()


@pytest.mark.parametrize("way", WAYS, ids=" ".join)
def test_counts_that_change_once_they_are_summed(rooms, way):  # noqa: F811
    """Many counts are read again where they are. Whatever they are by then, no byte outside the buffers is touched."""
    data_room, out_room, flush = rooms
    for changed, (n, itemsize) in itertools.product((1, -5, 1 << 62, 0), ((KEPT + 1, 1), (KEPT + 9, 3), (9000, 24))):
        repeated, summed = np.arange(n) % 4, np.arange(n) % 4
        counts_of_copy, counts_of_sum = counts_of_array(repeated), counts_of_array(summed)
        repeated[n // 3 :] = summed[n // 3 :] = changed
        out_room[:] = PAINT

        out = flush(out_room, counts_of_copy.total * itemsize).view(f"V{itemsize}")
        terms = flush(data_room, counts_of_sum.total * 4).view("f4")
        with written(*way):
            repeat_counted(flush(data_room, n * itemsize).view(out.dtype), counts_of_copy, 0, out)
            out.view("u1")[:] = PAINT
            sums = flush(out_room, n * 4)
            sum_counted(terms, counts_of_sum, 0, sums.view("f4"))
        sums[:] = PAINT
        assert (out_room == PAINT).all()


def test_counts_that_change_while_they_are_summed(rooms):  # noqa: F811
    """Their total is that of some moment, and holds from then on."""
    data_room, out_room, flush = rooms
    n = KEPT + 5000
    data = flush(data_room, n)
    shared, values = np.ones(n, np.int64), np.array([0, 1, 2, 1 << 40, -1])
    stop = threading.Event()

    def change():
        rng = np.random.default_rng(0)
        while not stop.is_set():
            shared[:] = values[rng.integers(0, 5)]
            shared[:] = 1

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(100):
            out_room[:] = PAINT
            counts = counts_of_array(shared)
            if 0 < counts.total <= len(out_room):
                out = flush(out_room, counts.total)
                repeat_counted(data, counts, 0, out)
                out[:] = PAINT
                assert (out_room == PAINT).all()
    finally:
        stop.set()
        thread.join()


def test_counts_that_are_summed_keep_their_size():
    shared = np.ones(KEPT + 1, int)
    counts = counts_of_array(shared)
    with pytest.raises(ValueError, match="cannot resize"):
        shared.resize(2)
    assert counts.total == KEPT + 1


# Properties.

COUNTS = st.sampled_from([0, 0, 1, 1, 1, 2, 3, 4, 9, 40])


@for_all(st.data(), ways, st.lists(st.sampled_from([0, 1, 2, 3, 5, 8, 30]), min_size=1, max_size=4).map(tuple))
def test_any_counts_as_numpy(data_strategy, way, shape):
    draw = data_strategy.draw
    if np.prod(shape) > 3000:
        return
    data = drawn_data(draw, shape, draw(st.sampled_from(DTYPES)))
    axis = draw(st.sampled_from([None, *range(-len(shape), len(shape))]))
    n = data.size if axis is None else shape[axis]
    counts = np.resize(draw(st.lists(COUNTS, min_size=1, max_size=40)), n)
    expected = data.view(raw_dtype(data)).repeat(counts, axis)
    counts = counts.astype(draw(st.sampled_from(INTEGERS)))
    if draw(st.booleans()):
        counts = np.repeat(counts, 2)[::2]
    check_copies(draw, way, partial(bcast.repeat, data, counts, axis), data, expected)


@for_all(st.data(), ways, st.integers(2, 40), st.sampled_from(["u1", "i8"]), st.booleans())
def test_out_overlaps_data_and_counts(data_strategy, way, n, dtype, many):
    draw = data_strategy.draw
    n += KEPT * many
    room = np.resize(np.array(draw(st.lists(st.integers(0, 3), min_size=1, max_size=50)), dtype), 4 * n)
    data, counts = draw(windows(room, (n,))), draw(windows(room, (n,)))
    if data is None or counts is None:
        return
    expected = data.repeat(counts.astype(int))
    out = draw(windows(room, expected.shape))
    if out is None:
        return
    with written(*way):
        bcast.repeat(data, counts, out=out)
    np.testing.assert_array_equal(out, expected)
