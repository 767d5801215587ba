"""`unrepeat`: every count against a sum term by term, dtypes, layouts, errors in last places, threads and refusals."""

import itertools
import math
from contextlib import nullcontext
from functools import partial

import numpy as np
import pytest
from _ways import SUMS, THREADS, in_order, summed
from hypothesis import strategies as st
from numpy.exceptions import AxisError, ComplexWarning
from test_errors import refuse_with_out, rows, untouched
from test_fenced import PAINT, rooms  # noqa: F401 (a fixture)
from test_ops import LAYOUTS, Arena, assert_fresh
from test_properties import SUMMED, check_adjoint, for_all, numbers, windows

import bcast
from bcast._reduction import sum_counted
from bcast._rules.counts import counts_of_array

CHUNK, KEPT = 512, 4096  # as in `_rules/counts.pyx`
GROUP = 4096  # sums of a group, and terms that are packed at once: as in `_reduce/counted.pyx`
ways = pytest.mark.parametrize(("leaf", "threads"), SUMS)


def scattered(grad, counts, axis, dtype=None):
    """Add each term to its sum, in a dtype that holds all sums."""
    wide = dtype or {"c": complex, "f": "g", "O": object}.get(grad.dtype.kind, int)
    sums = np.zeros((*grad.shape[:axis], len(counts), *grad.shape[axis:][1:]), wide)
    terms = np.moveaxis(grad.astype(wide), axis, 0)
    np.add.at(np.moveaxis(sums, axis, 0), np.repeat(np.arange(len(counts)), np.asarray(counts, int)), terms)
    return sums


def small(shape, dtype):
    """Numbers so small that no sum of thousands of them is rounded, in any dtype but float16."""
    terms = np.arange(math.prod(shape)).reshape(shape) * 7 % 5 - 2
    return (terms * (1 + 2j) if np.dtype(dtype).kind == "c" else terms).astype(dtype)


# Values.


@ways
@pytest.mark.parametrize("inner", [(), (2,), (3,), (4,), (5,), (9,)], ids=str)
def test_all_counts_of_a_few_items(inner, leaf, threads):
    dtypes = itertools.cycle(["f4", "f8", "f2", "i4", "u1", "c8"])
    with summed(leaf, threads):
        for n in (2, 3, 4):
            for counts in itertools.product((0, 1, 2, 3, 9), repeat=n):
                for dtype in itertools.islice(dtypes, 1 if n > 3 else 6):
                    grad = small((sum(counts), *inner), dtype)
                    result = bcast.unrepeat(grad, counts, 0)
                    np.testing.assert_array_equal(result, scattered(grad, counts, 0).astype(dtype), strict=True)


@pytest.mark.parametrize("dtype", ["f4", "f8", ">f4", "f2", "i2", "i8", "c16", "c8", "g", "O", "bfloat16"])
def test_short_and_long_runs(dtype):
    dtype = pytest.importorskip("ml_dtypes").bfloat16 if dtype == "bfloat16" else dtype
    sizes = (4, 3), (7, 20), (CHUNK + 9, 3), (KEPT + 1, 2), (9, 9000)
    for width, (n, most) in itertools.product([1, 2, 3, 7, 8, 40, 5000], sizes):
        if n * most * width > 300_000:
            continue
        rng = np.random.default_rng(width)
        counts = rng.integers(0, most + 1, n)
        counts[n // 2] = most * 2 if most < 100 else 2 * GROUP + 77
        counts[-1] = 0
        grad = rng.integers(0, 2, (counts.sum(), width)).astype(dtype).squeeze(1 if width == 1 else ())
        wide = complex if np.dtype(dtype).kind == "c" else int
        expected = scattered(grad, counts, 0, wide).astype(dtype)
        for way in SUMS:
            with summed(*way):
                np.testing.assert_array_equal(bcast.unrepeat(grad, counts, 0), expected, str(way), strict=True)


@ways
@pytest.mark.parametrize("order", list(itertools.permutations(range(3))), ids=str)
def test_every_axis_in_any_order_of_memory(order, leaf, threads):
    counts = np.array([2, 0, 3, 1, 1])
    for axis, dtype in itertools.product([0, 1, 2, -1], ["f4", "f8", "i2", "c8"]):
        shape = [4, 3, 6]
        shape[axis] = 7
        base = small([shape[i] for i in order], dtype).transpose(np.argsort(order))
        with summed(leaf, threads):
            for grad in (base, base[::-1], base[:, ::-1], base[..., ::-1], base.repeat(2, 2)[..., ::2]):
                result = bcast.unrepeat(grad, counts, axis)
                np.testing.assert_array_equal(result, scattered(grad, counts, axis % 3).astype(dtype), strict=True)
                assert_fresh(result, grad)


@ways
@pytest.mark.parametrize("dtype", ["f4", "f8", "i2", "c8"])
def test_counts_that_come_again_for_each_outer_position(dtype, leaf, threads):
    for n, outer, inner in (2, 1000, 1), (3, 999, 5), (200, 31, 1), (256, 4, 3), (257, 4, 2):
        counts = np.arange(n) * 11 % 4
        grad = small((2, outer, counts.sum(), inner), dtype)
        with summed(leaf, threads):
            for each, axis in ((grad, 2), (grad[:, ::2], 2), (grad[..., 0], 2), (grad.swapaxes(0, 2), 0)):
                result = bcast.unrepeat(each, counts, axis)
                np.testing.assert_array_equal(result, scattered(each, counts, axis).astype(dtype), strict=True)


def test_a_gradient_that_is_repeated_by_strides():
    for grad, axis in (
        (np.broadcast_to(np.float32(2), (6, 3)), 0),
        (np.broadcast_to(np.arange(3.0), (6, 3)), 0),
        (np.broadcast_to(np.arange(6)[:, None], (6, 3)), 0),
        (np.broadcast_to(np.arange(6)[:, None], (6, 3)).T, 1),
    ):
        np.testing.assert_array_equal(bcast.unrepeat(grad, [1, 5], axis), scattered(grad, [1, 5], axis))


def test_counts_for_all_items_alike():
    grad = np.arange(24.0).reshape(2, 12)
    expected = grad.reshape(2, 4, 3).sum(2)
    for three in (3, 3.0, np.int8(3), np.array(3)):
        np.testing.assert_array_equal(bcast.unrepeat(grad, three, 1), expected, strict=True)
    np.testing.assert_array_equal(bcast.unrepeat(grad[0], 3), expected[0], strict=True)
    np.testing.assert_array_equal(bcast.unrepeat(grad, 1, 0), grad, strict=True)
    np.testing.assert_array_equal(bcast.unrepeat(grad, (), ()), grad, strict=True)
    assert bcast.unrepeat(np.empty((2, 0)), 3, 1).shape == (2, 0)


def test_one_count_in_a_sequence_is_that_of_one_item():
    """Sums as over any segments; the counts determine their number."""
    grad = np.arange(24.0).reshape(2, 12)
    for twelve in ([12], (12.0,), np.array([12]), np.array([12], ">u2"), range(12, 13), iter([12])):
        np.testing.assert_array_equal(bcast.unrepeat(grad, twelve, 1), np.add.reduceat(grad, [0], 1), strict=True)
    for zero in ([0], np.array([0]), (0.0,)):
        assert bcast.unrepeat([], zero).tolist() == [0.0]
    assert bcast.unrepeat(np.ones((2, 0)), [0], 1).tolist() == [[0.0], [0.0]]
    assert bcast.unrepeat(grad, ([2], 3), (0, 1)).tolist() == grad.sum(0).reshape(1, 4, 3).sum(2).tolist()
    for three in ([3], np.array([3])):
        with pytest.raises(ValueError, match=r"^`repeats` expected .* 12 of `grad`'s axis 1, .*; .* integer 3"):
            bcast.unrepeat(grad, three, 1)


def test_64_axes():
    grad = np.arange(4.0).reshape((2, 2) + (1,) * 62)
    assert bcast.unrepeat(grad, 2, 1).ravel().tolist() == [1, 5]
    assert bcast.unrepeat(grad, [1, 1, 0], 0).shape == (3, 2) + (1,) * 62
    assert bcast.unrepeat(grad, ([1, 1, 0], 2), (0, 1)).ravel().tolist() == [1, 5, 0]
    assert bcast.unrepeat(grad, [0, 1], 63).shape == (2, 2) + (1,) * 61 + (2,)


SEVERAL = {
    "integers": ((2, 3), (0, 1)), "one_for_all": (2, (0, 1)), "counts_and_an_integer": (([3, 0, 1], 3), (0, 1)),
    "an_integer_and_counts": ((2, [4, 1, 1]), (0, 1)), "counts": (([1, 3], np.array([4, 1, 0, 1], "u1")), (0, -1)),
    "in_any_order": (([4, 1, 1], [1, 3]), (1, 0)), "one_axis": (([1, 3],), (0,)),
}  # fmt: skip


@pytest.mark.parametrize(("repeats", "axes"), **rows(SEVERAL))
def test_several_axes(repeats, axes):
    for dtype, way in itertools.product(["f4", "i2", "c8", "O", "g"], SUMS):
        grad = small((4, 6), dtype)
        expected = grad
        for count, axis in zip([2, 2] if isinstance(repeats, int) else repeats, axes, strict=True):
            counts = [count] * (grad.shape[axis] // count) if isinstance(count, int) else count
            expected = scattered(expected, counts, axis % 2)
        with summed(*way):
            result = bcast.unrepeat(grad, repeats, axes)
            np.testing.assert_array_equal(result, expected.astype(dtype), strict=True)
            out = np.empty(result.shape[::-1], dtype).T
            assert bcast.unrepeat(grad, repeats, axes, out=out) is out
        np.testing.assert_array_equal(out, result, strict=True)


# Dtypes.


@pytest.mark.parametrize("code", ["?", "i1", "u4", "f2", "f4", ">f8", "c8", "g"])
def test_the_result_has_the_dtype_wanted(code):
    counts = [0, 3, 1, 40, 0]
    grad = (np.arange(44 * 2).reshape(44, 2) % 3).astype(code)
    for to, way in itertools.product(["i1", "u2", "i8", "f2", "f4", "f8", "c8", "c16", "g"], SUMS):
        lost = np.dtype(code).kind == "c" and np.dtype(to).kind != "c"
        terms = grad.real if lost else grad
        with summed(*way), pytest.warns(ComplexWarning, match="imaginary") if lost else nullcontext():
            result = bcast.unrepeat(grad, counts, 0, dtype=to)
        np.testing.assert_array_equal(result, scattered(terms.astype(to), counts, 0, to), strict=True)


def test_time_spans_and_objects():
    spans = np.array([1, 2, 3], "m8[s]")
    np.testing.assert_array_equal(bcast.unrepeat(spans, [2, 0, 1]), np.array([3, 0, 3], "m8[s]"), strict=True)
    assert bcast.unrepeat(np.array([2**80, 1, 0.5], object), [2, 0, 1]).tolist() == [2**80 + 1, 0, 0.5]


def test_integers_wrap_around():
    grad = np.full((1000, 3), 100, np.int8)
    assert bcast.unrepeat(grad, [0, 3, 997], 0)[:, 0].tolist() == [0, 44, 116]
    assert bcast.unrepeat(grad, [0, 3, 997], 0, dtype=int)[:, 0].tolist() == [0, 300, 99_700]


# Precision.


@pytest.mark.parametrize("width", [1, 3, 20])
@pytest.mark.parametrize(("dtype", "units"), [("f2", 1), ("f4", 1), ("f8", 1.5)])
def test_sums_of_terms_of_one_sign_are_right_to_the_last_place(dtype, units, width):
    rng = np.random.default_rng(0)
    counts = np.concatenate([rng.integers(0, 40, 60), [0, 700, 5000, 1]])
    grad = (rng.random((counts.sum(), width)) * 2.0 ** rng.integers(-9, 1, (counts.sum(), width))).astype(dtype)
    parts = [part.T.tolist() for part in np.split(grad, counts.cumsum()[:-1])]
    exact = np.array([[math.fsum(column) for column in part] for part in parts])
    for way in SUMS:
        with summed(*way):
            result = bcast.unrepeat(grad, counts, 0)
        assert (np.abs(result.astype(float) - exact) <= units * np.spacing(result).astype(float)).all(), way


def test_sums_of_sums_do_not_overflow():
    grad = np.array([[6e4, 6e4, 0], [6e4, 0, -6e4], [0, -6e4, -6e4]], "f2")
    for repeats in ([3, [0, 3]], [[0, 3], [3, 0]]):
        assert not bcast.unrepeat(grad, repeats, (0, 1)).any()
        assert not bcast.unrepeat(grad, repeats, (1, 0)).any()


@ways
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_zeros_have_no_sign(dtype, leaf, threads):
    """The position of a run must not decide whether zeros are added to its terms."""
    counts = np.array([*range(20), 0, 40, *[1] * 9, 0])
    for width in (1, 2, 3, 4, 9):
        with summed(leaf, threads):
            result = bcast.unrepeat(np.full((counts.sum(), width), -0.0, dtype), counts, 0)
        assert not np.signbit(result).any()


def test_sums_along_several_axes_are_rounded_once():
    rng = np.random.default_rng(1)
    grad = rng.random((400, 300)).astype("f4")
    result = bcast.unrepeat(grad, ([150, 250], [100, 0, 200]), (0, 1))
    parts = [np.split(half, [100, 100], 1) for half in np.split(grad, [150])]
    exact = [[math.fsum(part.ravel().tolist()) for part in half] for half in parts]
    assert (np.abs(result - np.array(exact)) <= np.spacing(result)).all()


@ways
@pytest.mark.parametrize("width", [1, 2, 3, 9])
def test_sums_that_overflow_on_their_way(width, leaf, threads):
    big, inf, nan = 1.7e308, math.inf, math.nan
    parts = [[big, big, -big, -big], [big, -big, big], [inf, 1], [], [inf, -inf], [nan, 1], [big, big], [-inf], [1, 2]]
    expected = [0, big, inf, 0, nan, nan, inf, -inf, 3]
    counts = [len(part) for part in parts]
    grad = np.repeat(np.array(list(itertools.chain(*parts)))[:, None], width, 1)
    with summed(leaf, threads):
        for g in (grad, np.asfortranarray(grad), grad[::-1].copy()[::-1], np.stack([grad, grad], 2)[..., 0]):
            result = bcast.unrepeat(g, counts, 0)
            np.testing.assert_array_equal(result, np.repeat(np.array(expected)[:, None], width, 1))


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "c8"])
@pytest.mark.parametrize("width", [1, 2, 3, 6, 8, 30])
def test_the_bits_depend_on_no_thread_and_no_place(width, dtype):
    rng = np.random.default_rng(width)
    counts = rng.integers(0, 30, 1500)
    counts[700:720] = 2000 // width
    grad = rng.standard_normal((counts.sum(), width)).astype(dtype)
    with summed(threads=1):
        expected = bcast.unrepeat(grad, counts, 0)
    for order, threads in itertools.product(range(4), (2, 5, 64)):
        with summed(threads=THREADS, shared=True), in_order(order, threads):
            assert bcast.unrepeat(grad, counts, 0).tobytes() == expected.tobytes()
    ends = counts.cumsum()
    for i in (0, 3, 17, 705, 1499):
        alone = bcast.unrepeat(grad[ends[i] - counts[i] : ends[i]], [0, counts[i]], 0)
        assert alone[1].tobytes() == expected[i].tobytes()


# Where results go.


@pytest.mark.parametrize("layout", LAYOUTS)
def test_out_of_any_strides_gets_the_sums(layout):
    for dtype in ("u1", "f4", ">f8", "c16", "g", "m8[s]"):
        grad = np.arange(42).reshape(2, 7, 3).astype(dtype)
        expected = bcast.unrepeat(grad, [3, 0, 2, 2], 1)
        arena = Arena(layout, expected.shape, dtype)
        assert bcast.unrepeat(grad, [3, 0, 2, 2], 1, out=arena.array) is arena.array
        assert (arena.array == expected).all()
        assert arena.untouched_outside()


def test_out_overlaps_the_counts_or_all():
    for n in (40, KEPT + 1):
        counts = np.arange(n) % 4
        grad = np.arange(counts.sum())
        expected = scattered(grad, counts, 0)
        np.testing.assert_array_equal(bcast.unrepeat(grad, counts, out=counts), expected)
        counts = np.arange(n) % 4
        np.testing.assert_array_equal(bcast.unrepeat(grad, counts, out=grad[n // 9 :][:n]), expected)
        for begin, to in ((0, 700), (700, 0)):  # where results are written to counts that are read later
            room = np.arange(n + 700) % 4
            counts = room[begin:][:n]
            grad = np.arange(counts.sum())
            expected = scattered(grad, counts, 0)
            np.testing.assert_array_equal(bcast.unrepeat(grad, counts, out=room[to:][:n]), expected)


@for_all(st.data(), st.sampled_from(SUMS), st.integers(2, 30), st.sampled_from(["u1", "i8"]))
def test_out_overlaps_grad_and_counts(data_strategy, way, n, dtype):
    draw = data_strategy.draw
    room = np.resize(np.array(draw(st.lists(st.integers(0, 3), min_size=1, max_size=50)), dtype), 5 * n)
    counts = draw(windows(room, (n,)))
    grad = None if counts is None else draw(windows(room, (int(counts.sum()),)))
    out = None if grad is None else draw(windows(room, (n,)))
    if out is None:
        return
    expected = scattered(grad, counts.copy(), 0).astype(dtype)
    with summed(*way):
        bcast.unrepeat(grad, counts, out=out)
    np.testing.assert_array_equal(out, expected)


@for_all(st.data(), st.sampled_from(SUMS), st.lists(st.integers(1, 6), min_size=1, max_size=4).map(tuple))
def test_unrepeat_is_the_adjoint(data_strategy, way, shape):
    """Sums of any counts, dtype, layout and way."""
    draw = data_strategy.draw
    dtype = draw(st.sampled_from(list(SUMMED)))
    axis = draw(st.integers(0, len(shape) - 1))
    counts = draw(st.lists(st.sampled_from([0, 1, 2, 3, 7]), min_size=shape[axis], max_size=shape[axis]))
    counts = max(counts[0], 1) if len(counts) == 1 else counts
    data = numbers(draw, shape, dtype)
    repeated, call = bcast.repeat(data, counts, axis), partial(bcast.unrepeat, repeats=counts, axis=axis)
    check_adjoint(draw, way, data, dtype, repeated, call)


# Memory.


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "i4", "i8", "c8"])
def test_no_byte_outside_the_buffers(rooms, dtype):  # noqa: F811
    dtype = np.dtype(dtype)
    rng = np.random.default_rng(dtype.num)
    grad_room, out_room, flush = rooms
    for _ in range(300):
        n, most = int(rng.integers(2, 6 if rng.random() < 0.3 else 1500)), int(rng.choice([1, 2, 5, 30, 400]))
        width = int(rng.choice([1, 1, 2, 3, 4, 5, 7, 8, 9, 33]))
        outer = int(rng.integers(1, 9)) if rng.random() < 0.3 else 1
        n = max(2, min(n, len(grad_room) // ((most + 1) * dtype.itemsize * outer * width)))
        counts = rng.integers(0, most + 1, n) * (rng.random(n) < rng.choice([0.1, 1]))
        shape = (outer, int(counts.sum()), width)
        if math.prod(shape) * dtype.itemsize > len(grad_room):
            continue
        grad = flush(grad_room, math.prod(shape) * dtype.itemsize).view(dtype).reshape(shape)
        grad[...] = rng.integers(0, 2, shape)
        out_room[:] = PAINT
        out = flush(out_room, outer * n * width * dtype.itemsize)
        with summed(*SUMS[rng.integers(0, len(SUMS))]):
            bcast.unrepeat(grad, counts, 1, out=out.view(dtype).reshape(outer, n, width))
        expected = scattered(grad, counts, 1, complex if dtype.kind == "c" else int)
        np.testing.assert_array_equal(out.view(dtype).reshape(outer, n, width), expected.astype(dtype))
        out[:] = PAINT
        assert (out_room == PAINT).all()


@ways
def test_counts_that_change_once_they_are_summed(rooms, leaf, threads):  # noqa: F811
    """Numbers may be wrong then, but no byte outside is read or written."""
    grad_room, out_room, flush = rooms
    for changed, n, width in itertools.product((1, 9, -5, 1 << 62, 0), (100, KEPT + 1, 9000), (1, 3, 8)):
        shared = np.arange(n) % 4
        counts = counts_of_array(shared)
        shape = (counts.total, width)
        if math.prod(shape) * 4 > len(grad_room):
            continue
        grad = flush(grad_room, math.prod(shape) * 4).view("f4").reshape(shape)
        out_room[:] = PAINT
        out = flush(out_room, n * width * 4)
        shared[n // 3 :] = changed
        with summed(leaf, threads):
            sum_counted(grad, counts, 0, out.view("f4").reshape(n, width))
        out[:] = PAINT
        assert (out_room == PAINT).all()


@pytest.mark.parametrize("count", [2**62, 2**70])
def test_no_items_of_counts_that_are_too_long_for_any_array(count):
    result = bcast.unrepeat(np.empty((0, 3), np.float32), count, 0)
    assert (result.shape, result.dtype) == ((0, 3), np.float32)


# Refusals.

GRAD = np.arange(12.0).reshape(4, 3)
MISUSES = {
    "another_total": (partial(bcast.unrepeat, GRAD, [1, 2], 0), ValueError, "repeats"),
    "another_total_of_many": (partial(bcast.unrepeat, GRAD, np.ones(9000, int), 1), ValueError, "repeats"),
    "no_divisor": (partial(bcast.unrepeat, GRAD, 3, 0), ValueError, "repeats"),
    "more_than_any_array": (partial(bcast.unrepeat, GRAD, [2**62] * 4, 0), ValueError, "repeats"),
    "negative": (partial(bcast.unrepeat, GRAD, -1, 0), ValueError, "repeats"),
    "floats": (partial(bcast.unrepeat, GRAD, [1.5, 2.5], 0), TypeError, "repeats"),
    "no_axis": (partial(bcast.unrepeat, GRAD, [2, 2]), ValueError, "grad"),
    "no_such_axis": (partial(bcast.unrepeat, GRAD, [2, 2], 2), AxisError, "axis"),
    "an_axis_twice": (partial(bcast.unrepeat, GRAD, ([2, 2], 2), (0, -2)), ValueError, "axis"),
    "bools": (partial(bcast.unrepeat, np.array([True, False]), [1, 1]), TypeError, "grad"),
    "masked": (partial(bcast.unrepeat, np.ma.ones(2), [1, 1]), TypeError, "grad"),
    "no_divisor_among_several": (partial(bcast.unrepeat, GRAD, (2, 2), (0, 1)), ValueError, "repeats"),
    "never": (partial(bcast.unrepeat, np.empty(0), 0), ValueError, "repeats"),
    "negative_among_counts": (partial(bcast.unrepeat, GRAD, [5, -1], 0), ValueError, "repeats"),
    "strings": (partial(bcast.unrepeat, np.array(["a", "b"]), [1, 1]), TypeError, "grad"),
}


@pytest.mark.parametrize(("call", "error", "argument"), **rows(MISUSES))
def test_errors_come_before_any_write(call, error, argument):
    refuse_with_out(call, error, argument, (2, 3), float)


@pytest.mark.parametrize("repeats", [[2, 2], 2, ([2, 2], [1, 2])], ids=["counts", "integer", "several"])
@pytest.mark.filterwarnings("error::numpy.exceptions.ComplexWarning")
def test_a_warning_that_is_an_error_does_not_change_out(repeats):
    axis = (0, 1) if isinstance(repeats, tuple) else 0
    with untouched((2, 2) if isinstance(repeats, tuple) else (2, 3), "f8") as out, pytest.raises(ComplexWarning):
        bcast.unrepeat(GRAD + 1j, repeats, axis, dtype="f8", out=out)
