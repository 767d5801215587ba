"""`tile` and `repeat`, compared with NumPy's: values, shapes, dtypes; options that NumPy lacks; refused arguments."""

from functools import partial

import numpy as np
import pytest
from _calls import Index
from _ways import written
from hypothesis import strategies as st
from numpy.exceptions import AxisError
from test_errors import refuse_with_out, rows
from test_numpy import assert_same
from test_properties import DTYPES, LENGTHS, check_copies, drawn_data, filled, for_all, ways, windows

import bcast

A3, A4 = np.array([1, 2, 3]), np.arange(4)
A23 = np.arange(6.0).reshape(2, 3)
RECORDS = np.array([(1, 2.0), (3, 4.0)], [("a", "i4"), ("b", "f8")])
A234 = np.arange(24).reshape(2, 3, 4)
TALL = np.empty((1,) * 63 + (3,))
TALL[...] = A3
HUGE = np.full(100, 1 << 63, np.uint64)


def check_against(function, ours, data, *arguments):
    expected = function(data, *arguments)
    assert_same(ours(data, *arguments), np.asarray(expected))
    out = np.empty(expected.shape, expected.dtype)
    assert ours(data, *arguments, out=out) is out
    np.testing.assert_array_equal(out, expected, strict=True)
    spread = np.empty(2 * expected.size, expected.dtype)[::2].reshape(expected.shape)
    assert ours(data, *arguments, out=spread) is spread
    np.testing.assert_array_equal(spread, expected, strict=True)


TILES = {
    "int": (A3, 2), "no_reps": (A23, ()), "list": ([[1, 2], [3, 4]], [2, 1]), "array_of_reps": (A3, np.array([2, 2])),
    "array_of_no_reps": (A3, np.array([], int)), "numpy_int": (A3, np.int64(2)),
    "numpy_uint8": (A3, (np.uint8(200), 2)), "bool": (A3, True), "array_of_bools": (A3, np.array([True, False])),
    "numpy_bool": (A3, (np.True_, 2)), "range": (A3, range(1, 4)), "bytes": (b"abc", 3),
    "objects": (np.array([[None, "text"]], object), (2, 3)), "byte_order": (np.array([1, 2, 3], ">i2"), (2, 2)),
    "64_axes": (TALL, (1,) * 62 + (2, 2)),
}  # fmt: skip


@pytest.mark.parametrize(("data", "reps"), TILES.values(), ids=TILES)
def test_tile_is_numpys(data, reps):
    check_against(np.tile, bcast.tile, data, reps)


REPEATS = {
    "int": (A3, 2), "scalar": (7, 3), "scalar_along_0": (7, 3, 0), "list": ([[1, 2], [3, 4]], 2, 1),
    "list_of_one": (A23, [2], 1), "numpy_int": (A23, np.int64(2), 0), "numpy_scalar_array": (A3, np.array(2)),
    "bool": (A3, True), "float": (A3, 2.0), "numpy_axis": (A23, 2, np.int64(1)),
    "axis_of_an_index": (A23, 2, Index(-1)), "each_of_all": (A23, range(6)),
    "each_column": (A23, np.array([2, 0, 1], np.uint8), -1), "each_of_a_list": ([1, 2], (3, 1)),
    "each_by_floats_and_ints": (A23, (2, np.float32(3)), 0), "each_of_none": ([], []),
    "each_object": (np.array([None, "text"], object), [2, 1]), "bytes": (b"abc", 3),
    "objects_flattened": (np.array([[None, "text"], [1, 2]], object).T, 2), "64_axes": (TALL, 2, 0),
    "64_axes_flattened": (TALL, 2),
}  # fmt: skip


@pytest.mark.parametrize("arguments", REPEATS.values(), ids=REPEATS)
def test_repeat_is_numpys(arguments):
    check_against(np.repeat, bcast.repeat, *arguments)


def test_arguments_have_numpys_names():
    assert_same(bcast.tile(A=A3, reps=2), np.tile(A=A3, reps=2))
    assert_same(bcast.repeat(a=A23, repeats=2, axis=1), np.repeat(a=A23, repeats=2, axis=1))


def test_objects_that_are_integers_in_python():
    assert_same(bcast.tile(A3, Index(2)), np.tile(A3, 2))
    assert_same(bcast.tile(A3, (Index(2), 3)), np.tile(A3, (2, 3)))
    assert_same(bcast.repeat(A3, Index(2)), np.repeat(A3, 2))
    assert_same(bcast.repeat(A3, [Index(1), 0, 2]), np.repeat(A3, [1, 0, 2]))
    assert_same(bcast.repeat(A23, (Index(2), 1), (Index(0), 1)), np.repeat(A23, 2, 0))


@pytest.mark.parametrize("data", [A23, A23.T, RECORDS], ids=["C", "F", "records"])
def test_calls_without_effect_return_copies(data):
    for result in (bcast.tile(data, 1), bcast.repeat(data, 1, 0), bcast.repeat(data, 3, ())):
        assert not np.shares_memory(result, data)
    assert_same(bcast.repeat(data, (), ()), data)


# What NumPy takes as lists of Python's integers, but not as arrays: uint64 and floats that are whole.
WHOLE = {
    "float": 2.0, "negative_zero": -0.0, "numpy_float16": np.float16(2), "float_scalar_array": np.array(2.0),
    "list_of_one_float": [2.0], "floats_and_ints": (1, 0.0, np.float32(2)),
    "array_of_floats": np.array([1.0, 0.0, 2.0]),
    "array_of_swapped_floats": np.array([1, 0, 2], np.dtype(float).newbyteorder()),
    "objects": np.array([1.0, 0, np.float32(2)], object),
    "list_of_unsigned": [np.uint64(1), np.uint64(0), np.uint64(2)],
}  # fmt: skip


@pytest.mark.parametrize("repeats", WHOLE.values(), ids=WHOLE)
def test_repeats_that_are_whole_numbers(repeats):
    check_against(lambda *_: np.repeat(A3, np.asarray(repeats).astype(int)), bcast.repeat, A3, repeats)
    data = A3[:, np.newaxis]
    check_against(lambda *_: np.repeat(data, np.asarray(repeats).astype(int), 0), bcast.repeat, data, repeats, 0)


AXES = {
    "both": ((2, 3), (0, 1)), "both_alike": (2, (0, 1)), "from_the_end": ((2, 3), (-1, -3)),
    "arrays": (np.array([2, 3]), np.array([0, 1])),
    "numpy_ints": ((np.int8(2), np.uint64(3)), (np.int64(0), np.int8(1))), "floats": ((2.0, np.float32(3)), (0, 1)),
    "array_of_floats": (np.array([2.0, 3.0]), (0, 1)), "float": (2.0, (0, 1)),
    "unsigned": (np.array([2, 3], np.uint64), (0, 1)), "counts_of_rows": (([2, 0], 2), (0, 1)),
    "counts_of_columns": ((2, [1, 0, 3]), (0, 1)), "counts_of_both": (([2, 3], [1, 0, 3]), (0, 1)),
    "counts_in_arrays": ((np.array([2, 3]), np.array([1, 0, 3], "u1")), (0, 1)),
    "counts_in_any_order": (([1, 0, 3, 1], [2, 3]), (-1, 0)), "counts_of_none": (([0, 0], 3), (0, 1)),
    "counts_of_one_for_all": (([2], np.array([3])), (0, 1)), "counts_in_whole_floats": (([2.0, 1.0], 2.0), (0, 1)),
    "counts_and_a_numpy_int": (([2, 1], np.int8(3)), (0, 1)),
}  # fmt: skip


@pytest.mark.parametrize(("repeats", "axes"), AXES.values(), ids=AXES)
@pytest.mark.parametrize("data", [A234, A234.T.copy().T, A234[::-1, ::-1], A234.astype(object)], ids=range(4))
def test_several_axes_repeat_as_one_after_the_other(data, repeats, axes):
    expected = data
    for count, axis in zip(repeats if isinstance(repeats, tuple | np.ndarray) else (repeats,) * 2, axes, strict=True):
        expected = np.repeat(expected, np.asarray(count).astype(int), axis)
    check_against(lambda *_: expected, bcast.repeat, data, repeats, axes)


# What is refused: for `tile(A3, reps)`, `repeat(A3, repeats)`, `repeat(A23, 2, axis)` and others.
BAD_REPS = {
    TypeError: [None, "2", np.array([[2, 2]]), {2}, np.ma.array([2, 2]), 1.0],
    ValueError: [(0, -1), (1,) * 65, (1 << 62, 1 << 62), (1 << 70, -1 << 70), np.array([1, 1 << 63], "u8"), 1 << 70],
}
BAD_REPEATS = {
    TypeError: [None, "2", 2.7, np.float32("nan"), np.timedelta64(2, "ns"), [1.0, 2.7, 3.0], np.array([1, np.inf, 2])],
    ValueError: [-1, [1.0, -1.0, 1.0], [[1], [1, 2]], 1 << 62, np.uint64(1 << 63), [1 << 70], [1, 1 << 70, 0]],
}
BAD_REPEATS[TypeError] += [[1.0, "1", 1.0]]
BAD_REPEATS[ValueError] += [[1, 1 << 70, -1 << 70], np.array([1, 1e30, 0]), np.array([1, 1 << 63, 0], "u8")]
BAD_AXES = {
    TypeError: [1.0, (0, True), np.True_, ((0, 1),)],
    ValueError: [(1, -1)],
    AxisError: [(0, -3), -(1 << 70), 2],
}
MISUSES = {
    "reps_negative_of_none": (partial(bcast.tile, np.empty(0), -1), ValueError, "reps"),
    "axis_of_a_scalar": (partial(bcast.repeat, 7, 3, 1), AxisError, "axis"),
    # NumPy crashes
    "repeats_in_an_array_that_wrap": (partial(bcast.repeat, A4, np.array([1 << 62] * 4)), ValueError, "repeats"),
    "repeats_that_wrap": (partial(bcast.repeat, A4, [1 << 62] * 4), ValueError, "repeats"),
    "repeats_unsigned_that_wrap_around": (partial(bcast.repeat, np.arange(100), HUGE), ValueError, "repeats"),
    "repeats_for_each": (partial(bcast.repeat, A23, [1, 2], 1), ValueError, "repeats"),
    "repeats_float_of_axes": (partial(bcast.repeat, A23, (1.0, 2.5), (0, 1)), TypeError, "repeats"),
    "repeats_of_axes": (partial(bcast.repeat, A23, (1, 2, 3), (0, 1)), ValueError, "repeats"),
    "repeats_for_each_of_axes": (partial(bcast.repeat, A23, np.array([[1, 2], [2, 1]]), (0, 1)), TypeError, "repeats"),
    "masked": (partial(bcast.repeat, np.ma.array([1]), 2), TypeError, "a"),
}
MISUSES |= {
    f"{argument}_{bad!r:.40}": (partial(*call, bad), error, argument)
    for argument, call, table in (
        ("reps", (bcast.tile, A3), BAD_REPS),
        ("repeats", (bcast.repeat, A3), BAD_REPEATS),
        ("axis", (bcast.repeat, A23, 2), BAD_AXES),
    )
    for error, values in table.items()
    for bad in values
}


@pytest.mark.parametrize(("call", "error", "argument"), **rows(MISUSES))
def test_bad_counts_and_axes_are_refused_before_anything_is_written(call, error, argument):
    refuse_with_out(call, error, argument, (4, 3), float)


# Properties.

COUNTS = st.sampled_from([0, 1, 1, 2, 2, 3, 4, 5, 9])


def small(shape):
    return np.prod(shape) <= 300


@for_all(
    st.data(), ways, st.lists(LENGTHS, max_size=4).filter(small).map(tuple), st.lists(COUNTS, max_size=4).filter(small)
)
def test_any_tile_and_repeat_as_numpy(data_strategy, way, shape, counts):
    draw = data_strategy.draw
    data = drawn_data(draw, shape, draw(st.sampled_from(DTYPES)))
    raw = data.view(f"V{data.itemsize}")
    if draw(st.booleans()):
        call, arguments, expected = bcast.tile, (counts,), np.tile(raw, counts)
    else:
        axes = draw(st.permutations(range(len(shape))))[: len(counts)]
        counts = counts[: len(axes)]
        call, arguments, expected = bcast.repeat, (counts, axes), raw
        for count, axis in zip(counts, axes, strict=True):
            expected = np.repeat(expected, count, axis)
        if draw(st.booleans()):
            count = draw(COUNTS)
            arguments, expected = (count,), np.repeat(raw, count)
    check_copies(draw, way, partial(call, data, *arguments), data, expected)


AXES_REPEATED = st.lists(st.tuples(st.integers(1, 4), st.integers(1, 3)), max_size=3)


@for_all(st.data(), ways, AXES_REPEATED, st.sampled_from(["u1", "f4", "V3"]))
def test_out_overlaps_data(data_strategy, way, axes, dtype):
    draw = data_strategy.draw
    shape, counts = tuple(n for n, _ in axes), tuple(k for _, k in axes)
    room = filled(draw, 300, dtype)
    data, out = draw(windows(room, shape)), draw(windows(room, tuple(n * k for n, k in axes)))
    if data is None or out is None:
        return
    if draw(st.booleans()):
        expected = np.tile(data, counts).tobytes()
        call = partial(bcast.tile, data, counts)
    else:
        expected = data
        for axis, count in enumerate(counts):
            expected = np.repeat(expected, count, axis)
        expected = expected.tobytes()
        call = partial(bcast.repeat, data, counts, tuple(range(len(counts))))
    with written(*way):
        call(out=out)
    assert out.tobytes() == expected


@pytest.mark.parametrize("axis", [None, 0])
def test_an_out_that_does_not_fit_is_refused_before_anything_is_repeated(axis):
    for data in np.arange(6.0), np.arange(6.0).astype(object):
        for out in np.zeros(7, data.dtype), np.zeros(21, "i4"), [0]:
            with pytest.raises((TypeError, ValueError), match=r"^`out` expected "):
                bcast.repeat(data, np.arange(1, 7), axis, out=out)
            assert not np.any(out)
