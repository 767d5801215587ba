"""`elementwise`, `chain` and `where` in blocks: NumPy's bits, dtypes, strides, warnings and exceptions."""

import ctypes
import functools
import gc
import itertools
import math
import os
import random
import sys
import tracemalloc
import warnings
from pathlib import Path

import _arithmetic
import numpy as np
import pytest
from _arithmetic import (
    DTYPES,
    UFUNCS,
    bits,
    chained,
    draw_chain,
    draw_elementwise,
    draw_items,
    draw_where,
    told,
    with_plain_bools,
)
from _commands import printed
from _ways import COMPUTED, THREADS, computed, forked, in_order
from hypothesis import given as drawn
from hypothesis import strategies as st
from test_elementwise import Tagged
from test_fenced import PAINT, rooms  # noqa: F401 (a fixture)
from test_properties import drill_or_not, search

import bcast
from bcast import _elementwise
from bcast._apply import ufuncs
from bcast._runtime import core as runtime

ml_dtypes = pytest.importorskip("ml_dtypes")

ROWS = ["u1", "i2", "i4", "u4", "i8", "q", "f2", "f4", "f8", "g"]


@drill_or_not
@pytest.mark.parametrize("draw", [draw_elementwise, draw_chain, draw_where])
def test_any_call_matches_numpy(examples, draw):
    @drawn(st.randoms(use_true_random=False), st.sampled_from(COMPUTED))
    def prop(rng, way):
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            twin = draw(rng, rng.choice((50, 3000)))
        with computed(*way):
            twin.check()

    search(examples, prop)


@pytest.mark.parametrize("ufunc", UFUNCS)
def test_every_function_of_every_dtype(ufunc):
    """In rows so short that both operands are expanded, so long that they are not, and by one scalar."""
    rng = random.Random(ufunc.__name__)
    shapes = ((900, 1, 3), (1, 7, 3)), ((3, 700), (3, 1)), ((9000,), ()), ((2000, 3), (2000, 1)), ((5,), (5,))
    ways = itertools.cycle(COMPUTED)
    for dtype, (a, b) in itertools.product(DTYPES, shapes):
        x, y = (draw_items(rng, np.dtype(dtype), int(np.prod(shape))).reshape(shape) for shape in (a, b))
        expected = told(lambda x=x, y=y: ufunc(with_plain_bools(x), with_plain_bools(y)))
        with computed(*next(ways)):
            mine = told(lambda x=x, y=y: bcast.elementwise(ufunc, x, y))
        assert mine[1] == expected[1]
        if isinstance(expected[0], tuple):
            assert mine[0] == expected[0]
        else:
            assert mine[0].dtype == expected[0].dtype
            assert bits(mine[0]) == bits(expected[0]), (dtype, a, b)


@pytest.mark.parametrize("way", COMPUTED)
@pytest.mark.parametrize("dtypes", [("f4", "f4"), ("u1", "f4"), ("f8", ">f8"), ("c16", "c16"), ("i2", "i2")])
def test_turned_operands(way, dtypes):
    """In tiles: of whole rows, of parts, and of rows that would share places of a cache."""
    rng = random.Random(f"{way} {dtypes}")
    for shape in (37, 1030), (33, 1024), (5, 9000), (4, 7, 500):
        a, b = (draw_items(rng, np.dtype(dtype), int(np.prod(shape))).reshape(shape) for dtype in dtypes)
        a = np.asarray(a, order="F")
        for x, y in ((a, b), (b, a)):
            for out in (None, np.empty(shape, np.result_type(*dtypes), order=rng.choice("CF"))):
                with computed(*way), np.errstate(all="ignore"):
                    mine = bcast.elementwise(np.add, x, y, out=out)
                    assert bits(mine) == bits(np.add(x, y))
                    assert bits(bcast.where(x != y, x, y)) == bits(np.where(x != y, x, y))


@pytest.mark.parametrize("way", COMPUTED)
@pytest.mark.parametrize("dtypes", [*zip(ROWS, ROWS, strict=True), ("u1", "f4"), ("f4", ">f8"), ("i4", "i8")])
def test_many_rows_that_are_short(way, dtypes):
    """In bcast's own loop: one item for a whole row, of either operand or of both, in place, and with errors."""
    rng = random.Random(f"{way} {dtypes}")
    for n, ufunc in itertools.product((31, 32, 100, 383, 1000), UFUNCS[:6]):
        a, b = (draw_items(rng, np.dtype(dtype), 90 * n).reshape(90, n) for dtype in dtypes)
        whole = np.broadcast_to(a[:, :1], a.shape), np.broadcast_to(b[0, 0], b.shape)
        for x, y in (a, b), (a, b[:, :1]), (a[:, :1], b), (a[:1], b), whole:
            expected = told(lambda x=x, y=y, ufunc=ufunc: ufunc(x, y))
            with computed(*way):
                mine = told(lambda x=x, y=y, ufunc=ufunc: bcast.elementwise(ufunc, x, y))
            assert mine[1] == expected[1]
            assert bits(mine[0]) == bits(expected[0])
        with computed(*way), np.errstate(all="ignore"):
            expected = ufunc(a, b[:1])
            out = a.astype(expected.dtype)
            assert bits(bcast.elementwise(ufunc, out, b[:1], out=out)) == bits(expected)


@pytest.mark.parametrize("way", COMPUTED)
@pytest.mark.parametrize("dtype", ["u1", "f8", "c16", "S3", "V20"])
def test_one_condition_for_each_row(way, dtype):
    """Rows that are copied, or filled with one item; and columns with one condition each."""
    rng = np.random.default_rng(9)
    size = np.dtype(dtype).itemsize
    for n in 384, 1000, 1025:
        x, y = rng.integers(1, 255, (2, 70, n * size), "u1").view(dtype)
        for mask in rng.random((70, 1)) < 0.5, rng.random(n) < 0.5:
            for a, b in (x, y), (x, y[:1]), (x[:, :1], y), (x[0, 0], y[1, 1]), (x[:, ::-1], y), (x[::-1], y[:, :1]):
                expected = np.where(mask, a, b)
                with computed(*way):
                    assert bcast.where(mask, a, b).tobytes() == expected.tobytes()
                    out = np.empty(expected.shape[::-1], dtype).T
                    assert bcast.where(mask, a, b, out=out).tobytes() == expected.tobytes()
            expected, out = np.where(mask, x, y), x.copy()
            with computed(*way):
                assert bcast.where(mask, out, y, out=out).tobytes() == expected.tobytes()


@pytest.mark.parametrize("way", COMPUTED)
def test_lengths_of_float32(way):
    """`hypot`, which has a loop in bcast: also beside infinities and NaN, and in place."""
    rng = np.random.default_rng(4)
    for n, rare in itertools.product((1, 127, 129, 3000), (0, 1, 40)):
        x, y = rng.integers(0, 1 << 32, (2, n), "u4").view("f4")
        x[np.isnan(x)], y[np.isnan(y)] = 0, 1  # those that signal, above all
        for each in x, y:
            each[rng.integers(0, n, rare)] = rng.choice(np.array([np.inf, -np.inf, np.nan, 0, 1e-45], "f4"), rare)
        near = (1 + rng.random(n)).astype("f4")
        half = near + np.spacing(near).astype("f8") / 2
        far = np.sqrt((half - near) * (half + near)).astype("f4")  # lengths are halfway between two numbers, or nearly
        for a, b in ((x, y), (x, y[:1]), (x[:, None][:50], y[:50]), (near, far)):
            with computed(*way):
                mine = told(functools.partial(bcast.elementwise, np.hypot, a, b))
            expected = told(functools.partial(np.hypot, a, b))
            assert mine[1] == expected[1]
            assert bits(mine[0]) == bits(expected[0])
        expected = np.hypot(x, y)
        with computed(*way), np.errstate(all="ignore"):
            assert bits(bcast.elementwise(np.hypot, x, y, out=x)) == bits(expected)


@pytest.mark.parametrize("way", COMPUTED)
@pytest.mark.parametrize("ufunc", [np.floor_divide, np.remainder])
def test_quotients_of_int64(way, ufunc):
    """`//` and `%`, which have loops in bcast: next to whole quotients, beside zeros, in place and in chains."""
    rng = np.random.default_rng(5)
    for n, rare in itertools.product((1, 127, 129, 3000), (0, 1, 40)):
        y = rng.integers(1, 1 << rng.integers(1, 52, n), dtype="i8") * rng.choice((-1, 1), n)
        x = y * rng.integers(0, 2**52 // np.abs(y)) * rng.choice((-1, 1), n) + rng.integers(-1, 2, n)
        x[rng.integers(0, n, rare)] = rng.choice((-(2**63), 2**63 - 1, 2**52, -(2**52) - 1, 2**53 + 1, 0), rare)
        y[rng.integers(0, n, rare)] = rng.choice((0, -1, 1, 2**62, -(2**63)), rare)
        at = rng.integers(0, n, rare)  # numbers that float64 does not hold
        x[at], y[at] = rng.integers(2**53, 2**60, rare) | 1, rng.choice((1, 3, -7), rare)
        for a, b in ((x, y), (x, y[:1]), (x[:1], y), (x[:, None][:50], y[:50]), (x, np.array(0)), (x, -7)):
            expected = told(functools.partial(ufunc, a, b))
            for call in bcast.elementwise, lambda ufunc, a, b: bcast.chain(a, (ufunc, b)):
                with computed(*way):
                    mine = told(functools.partial(call, ufunc, a, b))
                assert mine[1] == expected[1]
                assert bits(mine[0]) == bits(expected[0])
        with computed(*way), np.errstate(all="ignore"):
            expected = ufunc(x, y)
            assert bits(bcast.elementwise(ufunc, x, y, out=y)) == bits(expected)


HALVES = [np.dtype("f2"), np.dtype(ml_dtypes.bfloat16)]
OF_HALVES = [ufunc.__name__ for ufunc in UFUNCS[:6] + UFUNCS[8:14]]


def every_half(dtype):
    """All items of a dtype of 16 bits; NaN that would signal do not."""
    items = np.arange(1 << 16, dtype="u2")
    infinity, quiet = (0x7C00, 0x200) if dtype.kind == "f" else (0x7F80, 0x40)
    items[(items & 0x7FFF) > infinity] |= quiet
    return items.view(dtype)


@pytest.mark.parametrize("name", OF_HALVES)
@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("leaf", runtime.TARGETS)
def test_halves_have_numpys_bits(dtype, name, leaf):
    """Each half beside many, and the floating-point errors of few of them."""
    ufunc, every, rng = getattr(np, name), every_half(dtype), np.random.default_rng(1)
    odd = [0, 0x8000, 1, 0x3C00, 0x3F80, 0x7C00, 0x7E00, 0x7FC0, 0xFFC0, 0x400, 0x3FF, 0x7BFF, 0x7F80, 0x80, 0x7F]
    with computed(leaf):
        for other in [*odd, *rng.integers(0, 1 << 16, 5)]:
            one = every[other : other + 1]
            for a, b in ((every, one), (one, every), (every[:3], one), (one, every[:3])):
                check_halves(ufunc, a, b)
        check_halves(ufunc, every[0x3C01:][:1], every[0x3FF:][:1])  # float16: a product that is tiny until rounded
        for _ in range(100):
            few = every[rng.integers(0, 1 << 16, (2, rng.integers(1, 12)))]
            check_halves(ufunc, *few)


def check_halves(ufunc, a, b):
    with np.errstate(all="warn"):
        expected, mine = told(lambda: ufunc(a, b)), told(lambda: bcast.elementwise(ufunc, a, b))
    assert mine[1] == expected[1], (a, b)
    both = np.isnan(a.astype("f4")) & np.isnan(b.astype("f4"))  # either may be the result
    found, right = (result[0].view("u2") if result[0].dtype == a.dtype else result[0] for result in (mine, expected))
    np.testing.assert_array_equal(found[~both], right[~both])
    np.testing.assert_array_equal(np.isnan(mine[0][both].astype("f4")), np.isnan(expected[0][both].astype("f4")))


# Memory.


@pytest.mark.parametrize("dtype", ["u1", "f4", "c16", ">f8"])
@pytest.mark.parametrize("way", COMPUTED)
def test_nothing_outside_is_read_or_written(rooms, way, dtype):  # noqa: F811
    """Each operand ends at a fence in turn; the result always does."""
    data_room, out_room, flush = rooms
    dtype = np.dtype(dtype)
    rng = random.Random(f"{way} {dtype}")
    ufunc = np.add
    out_room[:] = PAINT
    with computed(*way), np.errstate(all="ignore"):
        for _ in range(60):
            shape = tuple(rng.choice((1, 2, 3, 5, 8, 17, 64, 130, 1000)) for _ in range(rng.randint(1, 4)))
            shape = tuple(length if np.prod(shape) <= 30_000 else min(length, 5) for length in shape)
            a, b = (
                draw_items(rng, dtype, int(np.prod(each))).reshape(each)
                for each in [tuple(1 if rng.random() < 0.4 else n for n in shape) for _ in range(2)]
            )
            expected = np.add(a, b)
            for fenced in (0, 1):
                operands = [a, b]
                room = flush(data_room, operands[fenced].nbytes).view(dtype).reshape(operands[fenced].shape)
                room[...] = operands[fenced]
                operands[fenced] = room
                out = flush(out_room, expected.nbytes).view(expected.dtype).reshape(expected.shape)
                bcast.elementwise(ufunc, *operands, out=out)
                assert bits(out) == bits(expected)
                mask = np.asarray(a != 0)
                out = out.view(dtype.newbyteorder("="))
                bcast.where(mask, *operands, out=out)
                assert bits(out) == bits(np.where(mask, a, b))
                for given, by in (operands, (b, a)), (operands[::-1], (a, b)):
                    bcast.chain(given[0], (ufunc, given[1]), np.square, (np.maximum, 3), out=out)
                    assert bits(out) == bits(chained(by[1], (ufunc, by[0]), np.square, (np.maximum, 3)))
                flush(out_room, expected.nbytes)[:] = PAINT
                assert (out_room == PAINT).all()


CALLS_OF_MUCH = {
    "short rows": lambda: (np.ones((1 << 20, 3), "f4"), np.ones(3, "f4")),
    "columns": lambda: (np.ones((1 << 20, 3), "f4"), np.ones((1 << 20, 1), "f4")),
    "transposed": lambda: (np.ones((1 << 11, 1 << 11), "f4").T, np.ones((1 << 11, 1 << 11), "f4")),
    "two dtypes": lambda: (np.ones(1 << 21, "u1"), np.ones(1 << 21, "f4")),
    "another byte order": lambda: (np.ones(1 << 20, ">f8"), np.ones(1 << 20)),
    "pairs": lambda: (np.ones((1500, 1, 3), "f4"), np.ones((1, 1500, 3), "f4")),
    "pictures": lambda: (np.ones((1 << 10, 1 << 10, 3), "u1").transpose(2, 0, 1), np.ones((3, 1, 1), "f4")),
}


def test_no_temporary_is_large():
    """Only the process knows what malloc has given; a limit on its memory leaves room for the buffers alone."""
    if sys.platform != "linux":
        pytest.skip("limits the memory as Linux does")
    code = f"""
import resource, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import numpy as np, bcast
from test_arithmetic import CALLS_OF_MUCH
bcast.set_num_threads(1)
for name, make in CALLS_OF_MUCH.items():
    a, b = make()
    out = np.add(a, b)
    steps = (np.add, b), np.square, (np.less, a), (np.subtract, 0.5)
    bcast.chain(bcast.elementwise(np.add, a[:1], b[:1]), *steps[1:2], steps[3], dtype="f4")
    pages = int(open("/proc/self/statm").read().split()[0])
    limit = pages * resource.getpagesize() + (1 << 20)
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
    bcast.elementwise(np.add, a, b, out=out)
    bcast.chain(a, *steps, dtype="f4", out=out, casting="unsafe")
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
"""
    assert printed("-c", code) == ""


def test_loops_are_found_once():
    a, b = np.ones((30, 4)), np.ones(4)
    for _ in range(10):
        bcast.chain(bcast.elementwise(np.add, a, b), (np.add, b), np.sqrt, dtype="f4")
    gc.collect()
    tracemalloc.start()
    for _ in range(200):
        bcast.elementwise(np.add, a, b)
        bcast.elementwise(np.add, a, b.astype(">f8"))
        bcast.chain(a, (np.add, b), np.sqrt, dtype="f4")
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert size < 5000


def test_operands_and_results_that_overlap():
    """Results are as if operands had been copied first, or NumPy's if the result overlaps itself."""
    strided = np.lib.stride_tricks.as_strided
    for shape, steps, out_steps in (
        ((40, 40), (4, 160), (160, 4)),  # the transposed result is the operand
        ((40, 40), (-160, 4), (160, 4)),
        ((3000, 40), (160, 4), (4, 4)),  # items of the result are one
        ((40, 40), (0, 4), (160, 4)),
    ):
        results = []
        for function in (np.subtract, lambda a, b, out: bcast.elementwise(np.subtract, a, b, out=out)):
            memory = np.arange(3000 * 40, dtype="f4")
            room = memory if shape[0] == 40 else memory.copy()
            a = strided(room[40 * 39 if steps[0] < 0 else 0 :], shape, steps)
            with computed(runtime.TARGETS[0], THREADS), in_order(0, THREADS):
                function(a, np.arange(40, dtype="f4"), out=strided(memory, shape, out_steps))
            results.append(memory)
        np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("step", [64, 128, 192])
def test_rows_that_overlap_are_read_to_their_ends(step):
    """Rows begin as far apart as parts of a row are long."""
    rows = np.lib.stride_tricks.sliding_window_view(np.arange(4000), 200)[::step]
    turned = np.asfortranarray(np.arange(rows.size).reshape(rows.shape) % 7)
    for data in rows.astype("f4"), np.lib.stride_tricks.sliding_window_view(np.arange(4000, dtype="f4"), 200)[::step]:
        np.testing.assert_array_equal(bcast.elementwise(np.add, data, turned), data + turned)
        np.testing.assert_array_equal(bcast.where(data % 3, data, turned), np.where(data % 3, data, turned))
    swapped = np.lib.stride_tricks.sliding_window_view(np.arange(4000, dtype=">i8"), 200)[::step]
    np.testing.assert_array_equal(bcast.elementwise(np.add, swapped, turned), rows + turned)


def test_axes_of_equal_strides_keep_their_order():
    windows = np.lib.stride_tricks.sliding_window_view(np.arange(50.0), 5)
    assert windows.strides == (8, 8)
    assert bcast.elementwise(np.add, windows, 1).strides == np.add(windows, 1).strides
    assert bcast.elementwise(np.add, windows[::-1], 1).strides == np.add(windows[::-1], 1).strides


def test_a_buffer_of_a_shorter_block_is_filled_anew():
    """Two blocks make an axis, the second of them shorter; every third is a share's first."""
    a = np.arange(18 * 2 * 210 * 10, dtype="f4").reshape(18, 2, 210, 10)[:, :, :200]
    b = np.arange(180, dtype="f4").reshape(18, 1, 1, 10)
    for seed in range(8):
        with computed(runtime.TARGETS[0], THREADS), in_order(seed, THREADS):
            np.testing.assert_array_equal(bcast.elementwise(np.add, a, b), a + b)


# Threads.


ORDINARY = [np.add, np.multiply, np.less, np.divide, np.maximum]


@pytest.mark.parametrize("order", range(5))
def test_results_do_not_depend_on_the_order_of_shares(order):
    rng = random.Random(order)
    for _ in range(60):
        for twin in draw_elementwise(rng, 50_000, ORDINARY), draw_chain(rng, 50_000, ORDINARY):
            with computed(runtime.TARGETS[0], THREADS), in_order(order, rng.randint(1, 64)):
                twin.check()


def test_errors_of_other_threads_are_reported_once():
    a, b = np.ones((200_000, 3), "f4"), np.zeros((200_000, 1), "f4")
    b[:-1] = 1
    with computed(runtime.TARGETS[0], THREADS):
        for _ in range(20):
            with pytest.warns(RuntimeWarning, match=r"^divide by zero encountered in divide$") as caught:
                bcast.elementwise(np.divide, a, b)
            assert len(caught) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_fork_computes_alone():
    a, b = np.arange(900_000, dtype="f4").reshape(-1, 3), np.ones(3, "f4")
    with computed(runtime.TARGETS[0], THREADS):
        for call in functools.partial(bcast.elementwise, np.add, a, b), functools.partial(bcast.chain, a, (np.add, b)):
            expected = call()
            assert forked(lambda call=call, expected=expected: np.testing.assert_array_equal(call(), expected)) == 0


# What floating-point errors do.


WRONG = np.array([1e300, 2, -1, 0, 5, np.nan, 1e-300])
STEPS = (np.divide, np.array([1, 1, 1, 0, 0, 1, 1], "f4")), np.log, np.exp, (np.multiply, 1e38)


def test_errstate_in_six_ways(capfd):
    """The errors of each step of a chain come once and in order, from however many blocks."""
    a, b = np.ones((2000, 3)), np.zeros(3)
    wrong = np.concatenate([np.ones((20_000, 7)), np.tile(WRONG, (20_000, 1))])
    calls = [
        (functools.partial(function, np.divide, a, b), np.zeros((2000, 3)))
        for function in (lambda ufunc, *args, **given: ufunc(*args, **given), bcast.elementwise)
    ]
    for array in wrong, wrong[19_999:20_001]:
        for function in chained, bcast.chain:
            call = functools.partial(function, array, *STEPS, dtype="f4", casting="unsafe")
            calls.append((call, np.zeros(array.shape, "i4")))
    met = []

    class Log:
        def write(self, text):
            met.append(text)

    for way, (call, out) in itertools.product(("ignore", "warn", "raise", "call", "print", "log"), calls):
        handler = Log() if way == "log" else lambda *what: warnings.warn(str(what), stacklevel=2)
        with np.errstate(all=way, call=handler), computed(runtime.TARGETS[0], THREADS):
            met.append(told(lambda call=call, out=out: call(out=out).shape))
        met.append(capfd.readouterr())
        assert call.func is not bcast.elementwise or np.isinf(out).all()  # written, also where that is an exception
        if call.func in (bcast.elementwise, bcast.chain):
            half = len(met) // 2
            assert met[:half] == met[half:]
            assert way != "warn" or met[0][1] == ["RuntimeWarning"]
            met.clear()


def test_the_first_error_of_a_thread_is_forgotten():
    np.float64(1) / np.float64(3)
    with np.errstate(all="ignore"):
        np.divide(np.ones(5), np.zeros(5))
    with np.errstate(all="raise"):
        bcast.elementwise(np.add, np.ones((50, 3)), np.ones(3))


# What is left to NumPy.


def raising(a, b):
    if a == 7:
        raise KeyError("seven")
    return a + b


def test_functions_that_raise_in_the_middle():
    a = np.arange(20).reshape(10, 2)
    with pytest.raises(KeyError, match="seven"):
        bcast.elementwise(np.frompyfunc(raising, 2, 1), a, [1, 2])
    with pytest.raises(ValueError, match=r"^Integers to negative integer powers are not allowed.$"):
        bcast.elementwise(np.power, np.ones((90_000, 3), int), [1, 2, -1])
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError, match=r"^divide by zero encountered in divide"):
        bcast.elementwise(np.divide, np.ones((90_000, 3)), [1, 2, 0])


def test_operands_of_others_are_passed_on():
    row = np.arange(3.0)
    assert bcast.elementwise(np.add, row.view(Tagged), row).__class__ is Tagged
    masked = bcast.elementwise(np.add, np.ma.array(row, mask=[1, 0, 0]), row)
    assert masked.mask.tolist() == [True, False, False]
    out = row.copy().view(Tagged)
    assert bcast.elementwise(np.add, row, row, out=out) is out
    assert bcast.elementwise(np.add, np.array([object], object)[:0], row[:0]).dtype == object
    assert bcast.elementwise(np.add, np.array(["a"]), np.array(["b"])).tolist() == ["ab"]
    dates = np.array(["2020-01-01", "2020-01-03"], "M8[D]")
    assert bcast.elementwise(np.subtract, dates, dates[:1]).tolist() == (dates - dates[0]).tolist()
    assert type(bcast.elementwise(np.add, np.array(1), 2)) is np.int64
    assert bcast.elementwise(np.add, row[:0], 2).shape == (0,)


@pytest.mark.parametrize("shape", [(4, 3), (1000, 3), (40, 500)])
def test_bools_beside_floats_are_stored_as_floats(shape):
    """Bools as the loop reads them: a bool is not a weak scalar, and its item is not converted again."""
    floats = np.arange(1, shape[0] * shape[1] + 1, dtype="f4").reshape(shape)
    for scalar in (True, False):
        assert bits(bcast.elementwise(np.subtract, scalar, floats)) == bits(np.subtract(scalar, floats))
        assert bits(bcast.where(floats > 2, floats, scalar)) == bits(np.where(floats > 2, floats, scalar))


@pytest.fixture
def without_loops():
    assert not ufuncs.probe(b"another name")
    yield
    assert ufuncs.probe()


def test_all_is_right_without_numpys_loops(without_loops, monkeypatch):  # noqa: ARG001
    monkeypatch.setattr(_arithmetic, "ANY_BYTES", False)  # which NumPy compares as bytes
    assert _elementwise.apply(np.add, np.ones((3, 2)), np.ones(2), 0, -1, None, None, 3) is None
    rng = random.Random(3)
    for _ in range(300):
        draw_elementwise(rng, 300).check()
        draw_chain(rng, 300).check()
        draw_where(rng, 300).check()


# `where`.


def test_where_accepts_the_arguments_of_numpy():
    mask = np.array([[True], [False]])
    assert bcast.where(np.array([np.nan, 0.0, -0.0]), 1, 2).tolist() == [1, 2, 2]
    for size in range(1, 40):
        x, y = (np.frombuffer(bytes([value] * size * 6), f"V{size}").reshape(2, 3) for value in (1, 2))
        assert bcast.where(mask, x, y).tolist() == np.where(mask, x, y).tolist()


def test_where_into_out():
    mask, x, out = np.array([[True], [False]]), np.arange(3), np.zeros((2, 3), int)
    assert bcast.where(mask, x, 7, out=out) is out
    assert out.tolist() == [[0, 1, 2], [7, 7, 7]]
    bcast.where(mask, out, out[::-1], out=out)
    assert out.tolist() == [[0, 1, 2], [0, 1, 2]]
    with pytest.raises(ValueError, match=r"^`condition, x, y` expected lengths that are equal or 1"):
        bcast.where(mask, x, np.arange(4))


def moving_add():
    """A ufunc that adds, whose loop moves the addresses that it is given, as those of SciPy do."""

    @ctypes.CFUNCTYPE(None, *[ctypes.POINTER(ctypes.c_ssize_t)] * 3, ctypes.c_void_p)
    def loop(addresses, lengths, steps, _):
        for _ in range(lengths[0]):
            a, b, out = (ctypes.c_double.from_address(addresses[k]) for k in range(3))
            out.value = a.value + b.value
            for k in range(3):
                addresses[k] += steps[k]

    pointer, number, text = ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p
    get = ctypes.PYFUNCTYPE(ctypes.POINTER(pointer), ctypes.py_object, text)
    api = get(("PyCapsule_GetPointer", ctypes.pythonapi))(np._core._multiarray_umath._UFUNC_API, None)
    make = ctypes.PYFUNCTYPE(ctypes.py_object, *[pointer] * 3, *[number] * 4, *[text] * 2, number)(api[1])
    parts = (pointer * 1)(ctypes.cast(loop, pointer)), (pointer * 1)(), ctypes.create_string_buffer(b"\f\f\f")
    return make(*parts, 1, 2, 1, -1, b"moving_add", b"", 0), (loop, parts)


def test_loops_may_move_the_addresses_that_they_get():
    add, _kept = moving_add()
    whole = np.arange(20_000.0)
    for shape in (4, 3), (40, 5), (3, 9, 7), (2, 3000):
        a = whole[: 4 * math.prod(shape)].reshape(*shape[:-1], -1)[..., : 2 * shape[-1] : 2]
        for b in a, a[..., ::-1], a[..., :1], a[:1], a[0, ..., :1], 2.0:
            np.testing.assert_array_equal(bcast.elementwise(add, a, b), a + b, strict=True)


@pytest.mark.parametrize("way", COMPUTED)
@pytest.mark.parametrize("dtype", ["u1", "i1", "i2", "u2", "i4", "u8", "f2", "f4", "c8", "c16"])
def test_choices_and_quotients_of_items_apart(way, dtype):
    """Items at a step, backwards or transposed are chosen and divided as those side by side, in rows of all lengths."""
    for shape in (5,), (9000,), (300, 500), (500, 300), (3000, 3), (3, 40, 50):
        items = (np.arange(3 * math.prod(shape)) % 120).astype(dtype).reshape(*shape[:-1], -1)
        mask = items.real > 50
        for part in slice(None, None, 3), slice(None, None, -3):
            x, c = items[..., part], mask[..., part]
            with computed(*way):
                for a, b, chosen in (
                    (x, x[::-1], c),
                    (x.T, x.T.copy(), c.T),
                    (x, x[..., :1], c),
                    (x, x.copy(), c[..., :1]),
                ):
                    assert bits(bcast.where(chosen, a, b)) == bits(np.where(chosen, a, b))
                if np.dtype(dtype).kind in "iu":
                    seven = x.dtype.type(7)
                    assert bits(bcast.elementwise(np.floor_divide, x, seven)) == bits(np.floor_divide(x, seven))
                    out = x.copy()
                    bcast.elementwise(np.floor_divide, out[..., ::-1], seven, out=out[..., ::-1])
                    assert bits(out) == bits(np.floor_divide(x, seven))
