"""The patch of NumPy's functions: taken calls have NumPy's results, and passed calls behave as without the patch."""

import contextlib
import copy
import importlib.util
import inspect
import itertools
import os
import pickle
import random
import re
import tempfile
import textwrap
import threading
import warnings
import weakref

import numpy as np
import pytest
from _commands import python
from _patched import errors_in_threads, expect_passed_on
from hypothesis import given
from hypothesis import strategies as st

import bcast

NAMES = ("tile", "repeat", "meshgrid", "broadcast_arrays", "where")
ORIGINAL = {name: getattr(np, name) for name in NAMES}


class Sub(np.ndarray):
    pass


class Duck:
    def __array_function__(self, function, types, args, kwargs):
        return function, args, kwargs


def mapped(array):
    """The same array in a file."""
    with tempfile.TemporaryFile() as file:  # which its map outlives
        mapped = np.memmap(file, array.dtype, "w+", shape=array.shape)
    mapped[...] = array
    return mapped


ROW = np.arange(3)
GRID = np.arange(12.0).reshape(3, 4)
DATA = {
    "row": ROW, "grid": GRID, "transposed": GRID.T, "strided": GRID[::-1, ::2], "scalar": np.array(2.5),
    "fortran": np.asfortranarray(np.ones((2, 3, 4), np.float16)), "empty": np.empty((0, 3)),
    "none": np.empty((3, 0, 2), np.int8), "swapped": ROW.astype(">i4"), "bools": ROW > 1, "complex": ROW + 1j,
    "long": ROW.astype(np.longdouble), "strings": np.array(["a", "bcd"]), "bytes": np.array([b"a", b"bcd"]),
    "times": ROW.astype("M8[s]"), "spans": ROW.astype("m8[ns]"), "read-only": np.broadcast_to(ROW, (2, 3)),
    "objects": np.array([None, "a", 3]), "fields": np.zeros(2, "i4, f8"), "list": [1, 2, 3], "int": 7,
    "variable": np.array(["a", "bcd" * 20], np.dtypes.StringDType()), "generic": np.float32(1.5),
    "subclass": ROW.view(Sub), "matrix": GRID.view(np.matrix), "masked": np.ma.array(ROW, mask=[0, 1, 0]),
    "duck": Duck(), "nothing": None, "mapped": mapped(GRID), "mapped turned": mapped(GRID).T,
}  # fmt: skip
PLAIN = {"row", "grid", "transposed", "fortran", "strided", "scalar", "empty", "none", "swapped", "bools", "complex",
         "long", "strings", "bytes", "times", "spans", "read-only", "mapped", "mapped turned"}  # fmt: skip
COUNTS = [
    0, 1, 2, -1, True, 2.0, 2.5, "2", None, (), (2,), (1, 1), (2, 3), [2, 1, 3], [2], [], (0, 2), (1, 1, 1, 1), (2, -1),
    [1.0, 2.0, 3.0], [True, False, True], [1, None, 2], np.int64(2), np.uint8(2), np.uint64(2), np.float64(2),
    np.array(2), np.array([2]), np.array([1, 0, 2]), np.array([1, 0, 2], np.int8), np.array([1, 0, 2], np.uint64),
    np.array([1.0, 0, 2]), np.array([True, False, True]), np.array([[1, 2]]), np.array([1, -1, 2]), ROW.view(Sub),
    np.array([2, 1]), np.array(0), np.array([3], np.uint8), np.array([2, 2], ">i4"), np.array([], int), np.int8(100),
    np.int32(2), np.float32(3), np.float16("inf"), np.float64("nan"), np.longdouble(2), -2.0, 1e300, 1.0, (1.0, 1),
    [np.int64(2), 3], (np.uint64(1), np.int8(2), 1), [1, 2.0, np.float32(3)], [1, 2.5, 1],
    [np.timedelta64(1, "s"), 1, 1], np.array(2, object), np.zeros((0, 1), int),
    np.uint64(2**64 - 1), [np.uint64(2**64 - 1), 1, 1], [np.array(1), 2, 3],
    np.ma.array([1, 2, 3]), 2**70, [2**70, 1, 1], {2}, range(3), Duck(), np.timedelta64(2, "s"),
]  # fmt: skip
AXES = [None, 0, 1, -1, 5, -5, True, 1.0, "0", (0,), (0, 1), np.int8(0), np.array(0)]


@pytest.fixture
def patched():
    with bcast.patched_numpy(NAMES):
        yield
    assert not bcast.is_patched()


def outcome(name, args, kwargs, original):
    try:
        result = (ORIGINAL[name] if original else getattr(np, name))(*args, **kwargs)
    except Exception as error:
        return type(error), str(error), repr(error.__context__)
    views = name == "broadcast_arrays"  # NumPy's are: they have the data's order in memory
    return [described(each, views) for each in result] if isinstance(result, tuple) else described(result, views)


def described(result, views):
    if not isinstance(result, np.ndarray):
        return repr(result)
    flags = None if views else (result.flags.c_contiguous, result.flags.f_contiguous, result.flags.writeable)
    return type(result), result.dtype, result.shape, flags, repr(result.tolist())


def taken(name, *args, **kwargs):
    before = bcast.patch_info()[name]
    found = outcome(name, args, kwargs, False)
    after = bcast.patch_info()[name]
    assert found == outcome(name, args, kwargs, True)
    assert after.taken + after.passed == before.taken + before.passed + 1
    return after.taken > before.taken


@pytest.mark.usefixtures("patched")
@pytest.mark.filterwarnings("ignore:.*")
@pytest.mark.parametrize("data", DATA)
def test_tile_and_repeat_match_numpy(data):
    for counts in COUNTS:
        took = taken("tile", DATA[data], counts)
        assert took <= (data in PLAIN)
        assert took <= taken("tile", A=DATA[data], reps=counts)
        for axis in AXES:
            assert taken("repeat", DATA[data], counts, axis) <= (data in PLAIN)
        assert taken("repeat", repeats=counts, a=DATA[data]) <= (data in PLAIN)


@pytest.mark.usefixtures("patched")
@pytest.mark.parametrize("data", sorted(PLAIN))
def test_common_calls_are_taken(data):
    array = DATA[data]
    for n in 2, (2, 3), [2, 3, 1], 1, np.int64(2), np.uint8(2), np.array([2, 3]), np.array(2, "i4"), (np.int64(2), 3):
        assert taken("tile", array, n), n
    for repeats in (2, 2.0, np.float64(2), np.uint64(2), np.int64(2), np.array(2), np.ones(array.size, np.intp)):
        assert taken("repeat", array, repeats), repeats
    for one in (1, 1.0, np.int64(1)):
        assert taken("repeat", array, [one] * array.size) == (array.size > 0)
    assert taken("repeat", array, 2, axis=0)
    assert taken("meshgrid", array, array)
    assert taken("meshgrid", array, ROW, sparse=True, indexing="ij")
    assert taken("broadcast_arrays", array, array.copy()) == (array.size > 0 or array.ndim > 0)


POINTS = np.arange(12.0).reshape(4, 3) + 1


def test_functions_of_vectors():
    """Last bits may differ from NumPy's."""
    names = ["vecdot", "cross", "linalg.norm", *(["matvec"] if hasattr(np, "matvec") else [])]
    calls = [
        ("vecdot", (POINTS, POINTS[0]), {}), ("vecdot", (POINTS.T, POINTS.T), {"axis": 0}),
        ("vecdot", (POINTS, POINTS), {"out": np.empty(4)}), ("cross", (POINTS, POINTS[::-1]), {"axis": -1}),
        ("linalg.norm", (POINTS,), {}), ("linalg.norm", (POINTS, None, 1), {"keepdims": True}),
        ("linalg.norm", (POINTS[0].astype("f2"),), {}), ("linalg.norm", (POINTS * 1j,), {"axis": 0}),
    ]  # fmt: skip
    calls += [("matvec", (POINTS[:3], POINTS), {})] if "matvec" in names else []
    for name, args, kwargs in calls:
        module, _, attribute = name.rpartition(".")
        place = getattr(np, module) if module else np
        right = getattr(place, attribute)(*args, **kwargs)
        with bcast.patched_numpy(names):
            assert bcast.is_patched(name)
            before = bcast.patch_info()[name]
            found = getattr(place, attribute)(*args, **kwargs)
            assert bcast.patch_info()[name].taken == before.taken + 1
        assert not bcast.is_patched(name)
        assert getattr(place, attribute) is not bcast.norm
        assert type(found) is type(right)
        assert found.dtype == right.dtype
        np.testing.assert_allclose(found, right, rtol=1e-3 if found.dtype == np.float16 else 1e-14)


@pytest.mark.parametrize("name", ["max", "min", "any", "all", "argmax", "argmin", "prod"])
def test_reductions_match_numpy(name):
    """NumPy's bits of numbers, its classes, orders and errors; products of floats are passed on."""
    rng, original = np.random.default_rng(3), getattr(np, name)
    integers = rng.integers(0, 4, (5, 4, 3))
    terms = [integers.astype(dtype) for dtype in ("?", "i1", "u2", "i4", "i8", "u8", "f2", "f4", "f8")]
    terms += [np.where(integers > 2, np.nan, integers), terms[3].transpose(2, 0, 1), terms[7][::2, ::-1]]
    terms += [mapped(terms[1]), mapped(terms[8])]
    passed = [integers.astype(">i4"), integers + 1j, integers.view(Sub), integers.tolist(), integers.astype(object)]
    is_place = name.startswith("arg")
    axes = [0, 1, -1, None] if is_place else [0, 1, -1, None, (0, 1), (-1, 0), (0, 1, 2)]
    with bcast.patched_numpy(name):
        for data, axis, keepdims in itertools.product([*terms, *passed], axes, (False, True)):
            before = bcast.patch_info()[name].taken
            result = getattr(np, name)(data, axis, keepdims=keepdims)
            is_taken = any(data is each for each in terms) and not (name == "prod" and data.dtype.kind == "f")
            assert bcast.patch_info()[name].taken - before == is_taken
            expected = original(data, axis, keepdims=keepdims)
            assert type(result) is type(expected)
            np.testing.assert_array_equal(result, expected)
            assert np.asarray(result).dtype == np.asarray(expected).dtype
            if isinstance(expected, np.ndarray):
                assert result.flags.c_contiguous == expected.flags.c_contiguous
                assert result.flags.f_contiguous == expected.flags.f_contiguous

        for data in terms[4], terms[0]:
            out = np.zeros((5, 3), original(data, 1).dtype)
            assert getattr(np, name)(data, 1, out=out) is out
            np.testing.assert_array_equal(out, original(data, 1))
        for arguments in ((integers, 3), (integers, (0, 0)), (integers[:0],), (integers, 0, np.empty(7)), ()):
            with contextlib.suppress(Exception):
                expected = original(*arguments)
                np.testing.assert_array_equal(getattr(np, name)(*arguments), expected)
                continue
            with pytest.raises(Exception) as expected:
                original(*arguments)
            with pytest.raises(type(expected.value)) as found:
                getattr(np, name)(*arguments)
            assert str(found.value) == str(expected.value)
    assert getattr(np, name) is original


@pytest.mark.parametrize("name", ["var", "std", "nanvar", "nanstd"])
def test_correction_is_another_name_for_ddof(name):
    original = getattr(np, name)
    data = np.random.default_rng(5).random((50, 7)).astype(np.float32)
    refused = [{"ddof": 1, "correction": 1}, {"correction": None}, {"correction": np.ones(3)}]
    with bcast.patched_numpy(name):
        before = bcast.patch_info()[name].taken
        for value in (0, 1, 0.5, np.float32(2.5)):
            expected = getattr(np, name)(data, 1, ddof=value)
            np.testing.assert_array_equal(getattr(np, name)(data, 1, correction=value), expected)
        np.testing.assert_array_equal(getattr(np, name)(data, 1, ddof=0, correction=2.5), expected)
        assert bcast.patch_info()[name].taken - before == 9
        for options in refused:
            with pytest.raises((TypeError, ValueError)) as numpys:
                original(data, 1, **options)
            with pytest.raises(numpys.type, match=re.escape(str(numpys.value))):
                getattr(np, name)(data, 1, **options)


@pytest.mark.parametrize("name", ["nansum", "nanmean", "nanvar", "nanstd", "nanmax", "nanmin"])
def test_functions_without_nan_match_numpy(name):
    """Last bits of sums may differ; warnings name the caller's line, and raise like NumPy's."""
    original = getattr(np, name)
    integers = np.random.default_rng(3).integers(0, 4, (5, 4, 3))
    terms = [integers.astype(dtype) for dtype in ("?", "u1", "i8", "f2", "f4", "f8")]
    terms += [np.where(integers > 2, np.nan, integers), np.where(integers > 1, np.nan, integers).astype("f4").T]
    terms += [np.full((2, 3, 4), np.nan), mapped(terms[5])]
    passed = [integers.astype(">f4"), integers + 1j, terms[6].view(Sub), terms[6].tolist(), terms[6].astype("g")]
    with bcast.patched_numpy(name):
        for data, axis, keepdims in itertools.product(
            [*terms, *passed], [0, 1, -1, None, (0, 1), (0, 1, 2)], (False, True)
        ):
            before = bcast.patch_info()[name].taken
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                result = getattr(np, name)(data, axis, keepdims=keepdims)
            assert bcast.patch_info()[name].taken - before == any(data is each for each in terms)
            with warnings.catch_warnings(record=True) as numpys:
                warnings.simplefilter("always")
                expected = original(data, axis, keepdims=keepdims)
            assert [str(each.message) for each in told] == [str(each.message) for each in numpys]
            assert {each.filename for each in told} <= {__file__} or not any(data is each for each in terms)
            assert type(result) is type(expected)
            assert np.asarray(result).dtype == np.asarray(expected).dtype
            exact = name in ("nanmax", "nanmin")
            eps = 0 if exact or expected.dtype.kind in "iu" else 4 * float(np.finfo(expected.dtype).eps)
            np.testing.assert_allclose(result, expected, eps, eps)

        with warnings.catch_warnings():
            warnings.simplefilter("error")
            if name != "nansum":
                with pytest.raises(RuntimeWarning, match=r"NaN|empty|freedom"):
                    getattr(np, name)(terms[8], 0)
        out = np.empty((5, 3))
        assert getattr(np, name)(terms[5], 1, out=out) is out
        np.testing.assert_allclose(out, original(terms[5], 1), 1e-14)
        for options in {"where": terms[0]}, {"axis": 7}, {"axis": (0, 0)}:
            with contextlib.suppress(Exception):
                expected = original(terms[5], **options)
                np.testing.assert_array_equal(getattr(np, name)(terms[5], **options), expected)
                continue
            with pytest.raises(Exception) as expected:
                original(terms[5], **options)
            with pytest.raises(type(expected.value), match=re.escape(str(expected.value))):
                getattr(np, name)(terms[5], **options)
    assert getattr(np, name) is original


def test_calls_without_gain_are_passed_on():
    """Sums that add nothing up, arrays that differ, objects; or a condition alone."""
    objects, ones = np.ones((3, 2), object), np.ones((3, 1))
    calls = {
        "where": [((GRID > 3,), False), ((GRID > 3, GRID, objects[:, :1]), False), ((GRID > 3, GRID, 0), True)],
        "stack": [(([ROW, ROW.copy()],), False), (((ROW,),), False), (([ROW, ROW],), True), (([[1], [1]],), False)],
        "dstack": [(([GRID, GRID.copy()],), False), (([GRID, GRID],), True)],
        "sum": [((ones, 1), False), ((ones, -1), False), ((ones, 0), True), ((ones[:1],), False)],
        "mean": [((objects, 0), False), ((ones, 2), False), ((GRID, -2), True), ((GRID, (0, 1)), True)],
        "repeat": [((objects, 2, 0), False), ((GRID, 2, 0), True)],
        "vecdot": [((ones, ones), False), ((POINTS, POINTS), True), ((POINTS, [1, 2, 3]), False)],
        "cross": [((POINTS, POINTS[:1]), True), ((POINTS.astype("g"), POINTS), False)],
    }
    for name, rows in calls.items():
        original = getattr(np, name)
        with bcast.patched_numpy(name):
            for arguments, takes in rows:
                before = bcast.patch_info()[name]
                try:
                    result = getattr(np, name)(*arguments)
                except np.exceptions.AxisError:
                    result = None
                after = bcast.patch_info()[name]
                assert (after.taken - before.taken, after.passed - before.passed) == (takes, not takes), name
                if result is not None:
                    np.testing.assert_equal(result, original(*arguments))


@pytest.mark.usefixtures("patched")
def test_calls_that_libraries_make():
    """Products of indexes as pandas and xarray make them; counts, however small; and tables."""
    lengths = np.fromiter((2, 3, 4), np.intp)
    ends = np.cumprod(lengths)
    times, tiles = ends[-1] / ends, np.roll(ends, 1)
    tiles[0] = 1
    for i in range(3):
        codes = np.arange(lengths[i])
        assert taken("repeat", codes, times[i])
        assert taken("tile", np.repeat(codes, times[i]), tiles[i])
    for size, high in itertools.product((4095, 4096, 10_000), (1, 2, 40)):
        counts = np.random.default_rng(size).integers(0, high, size, endpoint=True)
        for each in counts, np.repeat(counts, 2)[::2], counts.astype(">i8"):
            assert taken("repeat", np.arange(size), each)
    function, args, kwargs = np.repeat(Duck(), 2, axis=0)
    assert function in {np.repeat}
    assert (len(args), args[1], kwargs) == (2, 2, {"axis": 0})
    row, _ = np.broadcast_arrays(ROW, GRID.T, subok=True)  # copies, though NumPy's are views
    assert not np.shares_memory(row, ROW)
    assert row.flags.writeable


@pytest.mark.usefixtures("patched")
@pytest.mark.filterwarnings("ignore:.*")
def test_grids_and_broadcast_arrays_match_numpy():
    for names in itertools.product(DATA, repeat=2):
        arrays = [DATA[name] for name in names]
        plain = set(names) <= PLAIN
        assert taken("meshgrid", *arrays) <= plain
        assert taken("meshgrid", *arrays, indexing="ij") <= plain
        for name, value in *(("sparse", x) for x in (True, 1, "a")), *(("indexing", x) for x in ("yx", None)):
            assert taken("meshgrid", *arrays, **{name: value}) <= plain
        assert not taken("meshgrid", *arrays, copy=0)
    assert not taken("meshgrid", GRID, GRID, copy=False)
    assert not taken("meshgrid")
    assert taken("meshgrid", ROW)
    assert taken("meshgrid", *[ROW[:2]] * 5)
    assert not taken("broadcast_arrays")
    assert not taken("broadcast_arrays", ROW, [1, 2, 3])
    assert not taken("broadcast_arrays", ROW, GRID)  # do not fit
    assert not taken("broadcast_arrays", ROW, Duck())


@pytest.mark.usefixtures("patched")
@pytest.mark.filterwarnings("ignore:.*")
def test_lengths_that_wrap_around_are_left_to_numpy():
    for length, count in ((200, np.uint8(2)), (100, np.int8(2)), (300, np.uint8(0)), (1 << 15, np.int16(1))):
        assert not taken("tile", np.zeros(length, bool), count)
        assert not taken("tile", np.zeros((1, length), bool), np.array([2, count]).astype(count.dtype))
        assert taken("tile", np.zeros(length, bool), count.astype(int))


WRAPPING = {  # what NumPy's functions compute modulo 2**64; most end in a write past the memory that they get
    "repeat": [
        "np.arange(3), 6148914691236517206",
        "np.arange(3), -6148914691236517205",
        "np.arange(3), [6148914691236517206]",
        "np.arange(3), np.int64(6148914691236517206)",
        "np.arange(3), np.array(6148914691236517206)",
        "np.arange(3), np.uint64(12297829382473034411)",
        "np.arange(3), np.uint64(2**63)",
        "np.arange(2), 2**62",
        "np.arange(3), 6148914691236517888.0",
        "np.arange(3), np.float64(6148914691236517888)",
        "np.arange(3), '6148914691236517206'",
        "np.arange(3, dtype='i1'), repeats=6148914691236517206",
        "np.arange(3, dtype='c16'), 6148914691236517206, 0",
        "a=np.ones((2, 3)), repeats=6148914691236517206, axis=1",
        "np.ones((2, 3)), 3074457345618258603",
        "np.ones((2, 3)), 6148914691236517206, -1",
        "np.empty((0, 3)), 6148914691236517206, 1",
        "np.arange(4), [2**62] * 3 + [2**62 + 4]",
        "np.arange(4), np.array([2**62] * 3 + [2**62 + 4])",
        "np.arange(4), tuple([2**62] * 3 + [2**62 + 4]), 0",
        "np.arange(4), np.array([2**62] * 3 + [2**62 + 4], '>i8')",
        "np.arange(4), np.array([2**62, 0, 2**62, 0, 2**62, 0, 2**62 + 4, 0])[::2]",
        "np.arange(5000), np.array([2**62] * 4 + [1] * 4996)",
        "[1, 2, 3], 6148914691236517206",
        "[[1, 2, 3]], 6148914691236517206, 1",
        "(1, 2, 3, 4), [2**62] * 3 + [2**62 + 4]",
        "np.array([None] * 3), 6148914691236517206",
        "np.zeros(3, 'i4, f8'), 6148914691236517206",
        "np.ones((1, 3)).view(np.matrix), 6148914691236517206, 1",
        "np.ma.array([1, 2, 3], mask=[0, 1, 0]), 6148914691236517206",
        "np.array(['a', 'b', 'c']), 6148914691236517206",
    ],
    "tile": [
        "np.ones((3, 1)), (1, 6148914691236517206)",
        "np.ones((3, 1)), [1, 6148914691236517206]",
        "np.ones((3, 1)), np.array([1, 6148914691236517206])",
        "np.ones((3, 1)), (1, np.int64(6148914691236517206))",
        "A=np.ones((3, 1), bool), reps=6148914691236517206",
        "np.ones((1, 1), bool), (3, 6148914691236517206)",
        "np.ones((3, 1)), (1, -6148914691236517205)",
        "[[1], [2], [3]], (1, 6148914691236517206)",
        "np.ones((3, 1)), (2**40, 2**40)",
        "np.array([[None]] * 3), (1, 6148914691236517206)",
        "np.ones((3, 1)).view(np.matrix), 6148914691236517206",
        "np.ones((3, 1)), np.array([1, 6148914691236517206], object)",
        "np.ones((3, 1)), np.array([1, 6148914691236517206], np.uint64)",
        "np.ones((3, 1)), np.array([1, 6148914691236517206], 'm8[s]')",
        "np.ones((3, 1)), array.array('q', [1, 6148914691236517206])",
        "np.ones((3, 1)), {1: 0, 6148914691236517206: 0}",
        "np.ones((3, 1)), collections.deque([1, 6148914691236517206])",
        "np.ones((3, 1)), [[1], [6148914691236517206]]",
        "np.ones((3, 1)), Index()",
        "np.ones((3, 1)), iter([1, 6148914691236517206])",
        "np.ones((3, 1)), reps=(each for each in (1, 6148914691236517206))",
        "np.array([[None]] * 3), map(int, ['1', '6148914691236517206'])",
        "np.ones((3, 1)), iter(np.array([1, 6148914691236517206]))",
        "np.ones((3, 1)), Once([1, 6148914691236517206])",
    ],
}  # fmt: skip

SURVIVING = """
import array, collections, fractions, sys, numpy as np, bcast
class Index:
    def __index__(self):
        return 6148914691236517206
class Once(collections.deque):
    def __iter__(self):
        while self:
            yield self.popleft()
name = sys.argv[1]
original = getattr(np, name)
for call in sys.stdin.read().splitlines():
    plain = call.replace(".view(np.matrix)", "").replace("np.ma.array([1, 2, 3], mask=[0, 1, 0])", "[1, 2, 3]")
    plain = plain.replace("{1: 0, 6148914691236517206: 0}", "(1, 6148914691236517206)")
    errors = []
    with bcast.patched_numpy(name):
        before = bcast.patch_info()[name]
        for function in (f"np.{name}", f"bcast.{name}"):
            try:
                eval(f"{function}({call if function.startswith('np') else plain})")
            except (TypeError, ValueError) as error:
                errors.append((type(error), str(error)))
        after = bcast.patch_info()[name]
    assert len(errors) == 2 and errors[0] == errors[1], (call, errors)
    assert after.taken - before.taken == 1 and after.passed == before.passed, call
print("alive")
"""


@pytest.mark.parametrize("name", WRAPPING)
def test_lengths_that_wrap_around_in_numpy_are_refused(name):
    """With the error of bcast's function for any data: NumPy's function would end the process."""
    done = python("-c", SURVIVING, name, input="\n".join(WRAPPING[name]))
    assert (done.returncode, done.stdout, done.stderr) == (0, "alive\n", "")


class Once(list):
    """A sequence whose items can be read once."""

    def __iter__(self):
        while self:
            yield self.pop(0)


def broken(error):
    """Return a maker of iterators that raise after the first item."""

    def items(reps):
        yield from reps[:1]
        raise error("broken")

    return items


ONCE = [iter, Once, lambda reps: (each for each in reps), lambda reps: map(abs, reps), dict.fromkeys,
        lambda reps: bytes(map(abs, map(int, reps))), broken(TypeError), broken(ValueError),
        broken(OverflowError)]  # fmt: skip


@pytest.mark.parametrize("make", ONCE)
def test_iterators_are_read_once_and_their_items_passed_on(make):
    """NumPy's function finds in an iterator what it would have found."""
    for data in (ROW, GRID, [1, 2], [], ROW.view(Sub), np.array([None, 1]), Duck()):
        for reps in ([2], [2, 3], [0, 1], [1, 1, 1, 2], [], [1.5], [-1, 2], [np.int64(2), 1], [True]):
            results = []
            for patched in (False, True):
                given = make(list(reps))
                with bcast.patched_numpy("tile") if patched else contextlib.nullcontext():
                    before = sum(bcast.patch_info().get("tile", (0, 0))[:2])
                    found = outcome("tile", (data,), {"reps": given}, not patched)
                    assert sum(bcast.patch_info().get("tile", (0, 0))[:2]) == before + patched
                if isinstance(data, Duck):  # which gets what was given, unread
                    assert found[1:] == [repr((data,)), repr({"reps": given})]
                    found = None
                results.append(found)
            assert results[0] == results[1], reps


HUGE = np.broadcast_to(np.int8(1), (2**33,))


@pytest.mark.filterwarnings("ignore:.*")
@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("repeat", (ROW, 2**63)),
        ("repeat", (ROW, 2**61)),  # so large that NumPy raises an error
        ("repeat", (ROW, [2**63, 1, 1])),
        ("repeat", (ROW, [2**62, 2**62, -1])),
        ("repeat", (ROW, [2**62, 2**62])),
        ("repeat", (ROW, np.array([2.0**62] * 3))),
        ("repeat", (ROW, -(2**61))),
        ("repeat", (ROW, 2**62, 3)),
        ("repeat", (np.empty((0, 3)), 2**62, 0)),
        ("repeat", (np.empty(0), 2**62)),
        *(
            ("repeat", (data, count))
            for data in (ROW, ROW[:2], [1, 2])
            for count in (1e300, np.inf, np.float16("-inf"))
        ),
        *(("tile", (GRID, (1, count))) for count in (1e300, np.nan, np.float16("inf"), "3", 2**70)),
        ("repeat", ([], [2**62])),
        ("tile", (ROW, 2**61)),
        ("tile", (ROW, 6148914691236517206)),  # one row, so many times
        ("tile", (np.ones((0, 3)), (1, 6148914691236517206))),
        ("tile", (np.ones((0, 3)), (2**62, 1))),
        ("tile", ([[1], [2]], (0, 2**62))),
        ("meshgrid", (HUGE, HUGE)),
        ("broadcast_arrays", (HUGE, HUGE[:, None])),
        ("where", (HUGE, HUGE[:, None], 0)),
        ("stack", ([np.broadcast_to(np.int8(1), (2**62,))] * 4,)),
        ("dstack", ([np.broadcast_to(np.int8(1), (2**62, 1))] * 4,)),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)[:20]),
)
def test_sizes_that_numpy_refuses_itself(name, args):
    original = getattr(np, name)
    with bcast.patched_numpy(name):
        results = []
        for function in (original, getattr(np, name)):
            try:
                result = function(*args)
                results.append(getattr(result, "shape", result))
            except Exception as error:
                results.append((type(error), str(error)))
    assert results[0] == results[1]


@given(
    shape=st.lists(st.integers(0, 3), max_size=3),
    order=st.sampled_from("CF"),
    counts=st.integers(-1, 3) | st.lists(st.integers(-1, 3), max_size=4),
    axis=st.none() | st.integers(-4, 3),
)
def test_any_shape_and_count(shape, order, counts, axis):
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape).copy(order)
    with bcast.patched_numpy():
        taken("tile", array, counts)
        taken("repeat", array, counts, axis)
        taken("repeat", array, np.array(counts), axis)


# The objects in NumPy's namespace.


@pytest.mark.usefixtures("patched")
def test_a_stand_in_has_the_functions_attributes():
    for name, original in ORIGINAL.items():
        function = getattr(np, name)
        assert function is not original
        assert function == original
        assert (function != original) is False
        assert function != ORIGINAL["tile" if name == "repeat" else "repeat"]
        assert function != 5
        assert {original: 1}[function] == {function: 1}[original] == 1
        assert (function.__doc__, function.__name__, function.__module__) == (original.__doc__, name, "numpy")
        assert inspect.signature(function) == inspect.signature(original)
        assert repr(function) == repr(original)
        assert pickle.loads(pickle.dumps(function)) is copy.deepcopy(function) is function
        assert weakref.ref(function)() is function
        assert function.__wrapped__ is original.__wrapped__
        with pytest.raises(AttributeError, match="nonsense"):
            _ = function.nonsense
        with pytest.raises(TypeError):
            _ = function < original
    assert pickle.loads(pickle.dumps(np.tile)) is np.tile
    assert type("Class", (Sub,), {"tile": np.tile})(3).tile(2).shape == (6,)


@pytest.mark.usefixtures("patched")
def test_an_error_of_ours_is_numpys():
    with pytest.raises(np.exceptions.AxisError) as caught:
        np.repeat(ROW, 2, axis=3)
    assert str(caught.value) == "axis 3 is out of bounds for array of dimension 1"
    assert caught.value.__context__ is None


# Patches.


def test_nothing_is_patched_on_import():
    code = "import numpy as np; tile = np.tile; import bcast; assert np.tile is tile; "
    done = python("-c", code + "assert not bcast.is_patched()")
    assert (done.returncode, done.stderr) == (0, "")


def test_patches_are_undone_if_memory_runs_out():
    code = """
        import _testcapi, numpy as np, bcast
        tile = np.tile
        held = [tuple([i, i, i]) for i in range(5000)]  # no tuple is left to be used again
        try:
            with bcast.patched_numpy():
                _testcapi.set_nomemory(0, 1)
        except MemoryError:
            pass
        finally:
            _testcapi.remove_mem_hooks()
        assert np.tile is tile
    """
    pytest.importorskip("_testcapi")
    done = python("-c", textwrap.dedent(code))
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.usefixtures("patched")
def test_where_promotes_scalars_like_numpy():
    for scalar in (np.float32("nan"), np.float64(2), np.int8(3), np.uint64(5), np.bool(True), np.complex64(1j)):
        for data in (GRID, GRID.astype("f4"), GRID.astype(np.uint8)):
            assert taken("where", GRID > 5, data, scalar)
            assert taken("where", GRID > 5, scalar, data)
    assert not taken("where", GRID > 5, GRID, np.str_("a"))


def test_patches_nest():
    bcast.patch_numpy()
    assert [name for name in NAMES if bcast.is_patched(name)] == ["tile", "repeat", "meshgrid", "where"]
    first = np.tile
    bcast.patch_numpy("tile", "tile", "broadcast_arrays")
    assert np.tile is first
    bcast.unpatch_numpy()
    assert [name for name in NAMES if bcast.is_patched(name)] == ["tile", "repeat", "meshgrid", "where"]
    with bcast.patched_numpy("tile"):
        bcast.unpatch_numpy()
        assert np.tile is first
        assert np.repeat is ORIGINAL["repeat"]
    assert {name: getattr(np, name) for name in NAMES} == ORIGINAL
    assert all(getattr(np, name) is ORIGINAL[name] for name in NAMES)
    with pytest.raises(RuntimeError, match=r"^`unpatch_numpy` expected a patch made by patch_numpy, got none$"):
        bcast.unpatch_numpy()


def test_functions_of_other_libraries_are_called_and_stay(monkeypatch):
    def before(*_):
        return "before"

    def since(*args):
        return inner(*args)

    monkeypatch.setattr(np, "tile", before)
    with bcast.patched_numpy():
        assert np.tile([1], 2) == "before"
        assert np.tile(ROW, 2).shape == (6,)
        inner = np.tile
        np.tile = since
        assert not bcast.is_patched("tile")
        assert np.tile(ROW, 2).shape == (6,)
    assert np.tile is since
    info = bcast.patch_info()["tile"]
    assert np.tile(ROW, 2) == "before"  # bcast's function is not called
    assert bcast.patch_info()["tile"] == info
    with bcast.patched_numpy("tile"):
        assert np.tile(ROW, 2).shape == (6,)
    assert np.tile is since


def test_a_stand_in_that_other_code_put_back_is_inactive():
    bcast.patch_numpy("tile")
    kept = np.tile
    bcast.unpatch_numpy()
    np.tile = kept
    assert not bcast.is_patched()
    with bcast.patched_numpy("tile"):
        assert bcast.is_patched("tile")
        assert np.tile.original is ORIGINAL["tile"]
    assert np.tile is ORIGINAL["tile"]


def test_a_patch_is_left_once():
    patch = bcast.patched_numpy("tile")
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"^`patched_numpy` expected one exit for each entry"):
            patch.__exit__(None, None, None)
    with patch:
        assert bcast.is_patched()
    assert not bcast.is_patched()


def test_leaving_a_patch_too_often_undoes_nothing():
    """Neither another caller's patch, nor a part of it."""
    other, second = bcast.patched_numpy("repeat", "tile"), bcast.patched_numpy("tile", "meshgrid")
    with other:
        for never in (second, bcast.patched_numpy(), bcast.patched_numpy("tile")):
            with pytest.raises(
                RuntimeError, match=r"^`patched_numpy` expected one exit for each entry, .*; use it in a `with`"
            ):
                never.__exit__(None, None, None)
            assert [bcast.is_patched(name) for name in ("repeat", "tile", "meshgrid")] == [True, True, False]
        with second:
            pass
        with pytest.raises(RuntimeError):
            second.__exit__(None, None, None)
        with other, other:
            assert bcast.is_patched("repeat")
        assert [bcast.is_patched(name) for name in ("repeat", "tile", "meshgrid")] == [True, True, False]
    with pytest.raises(RuntimeError):
        other.__exit__(None, None, None)
    bcast.patch_numpy("tile")
    with pytest.raises(RuntimeError):
        bcast.patched_numpy("tile").__exit__(None, None, None)
    assert bcast.is_patched("tile")
    bcast.unpatch_numpy()
    assert not bcast.is_patched()


# Decorated functions.


def test_a_decorated_function_patches_each_call():
    patch = bcast.patched_numpy("repeat")

    @patch
    def doubled(x, *, deeper=0):
        """Say so."""
        assert bcast.is_patched("repeat")
        assert not bcast.is_patched("tile")
        if deeper:
            doubled(x, deeper=deeper - 1)
            assert bcast.is_patched("repeat")
        return np.repeat(x, 2)

    assert (doubled.__name__, doubled.__doc__) == ("doubled", "Say so.")
    assert str(inspect.signature(doubled)) == "(x, *, deeper=0)"
    for deeper in (0, 3):
        assert not bcast.is_patched()
        before = bcast.patch_info().get("repeat", (0, 0))[0]
        assert doubled(ROW, deeper=deeper).tolist() == [0, 0, 1, 1, 2, 2]
        assert bcast.patch_info()["repeat"].taken == before + deeper + 1
    with patch:
        assert doubled(ROW).size == 6
        assert bcast.is_patched("repeat")
    assert not bcast.is_patched()


def test_decorated_functions_that_raise_and_methods():
    class Users:
        @bcast.patched_numpy(["tile"])
        def failing(self, error):
            assert bcast.is_patched("tile")
            raise error

        @classmethod
        @bcast.patched_numpy()
        def made(cls):
            return cls, bcast.is_patched("tile")

    for error in (ValueError("own"), KeyboardInterrupt(), GeneratorExit()):
        with pytest.raises(type(error)):
            Users().failing(error)
        assert not bcast.is_patched()
    assert Users.made() == (Users, True)
    assert bcast.patched_numpy()(lambda: bcast.is_patched())()
    assert not bcast.is_patched()


def test_a_decorated_function_on_threads():
    """No thread takes back the patch of another one, which is in the middle of a call."""
    inside, go = threading.Barrier(5), threading.Event()

    @bcast.patched_numpy("tile")
    def held():
        inside.wait(60)
        go.wait(60)
        return bcast.is_patched("tile")

    found = []
    threads = [threading.Thread(target=lambda: found.append(held())) for _ in range(4)]
    for thread in threads:
        thread.start()
    inside.wait(60)
    assert bcast.is_patched("tile")
    go.set()
    for thread in threads:
        thread.join()
    assert found == [True] * 4
    assert not bcast.is_patched()


def test_threads_may_patch_at_the_same_time():
    """Without a GIL, too, each thread undoes its own number of patches, and NumPy's functions are back in the end."""
    names = ["tile", "max", "mean", "linalg.norm", "ndarray.sum", "ndarray.max", "where", "add", "copies"]
    functions = [np.tile, np.max, np.mean, np.linalg.norm, np._core._methods.umr_sum, np.where]

    def work(seed):
        choose = random.Random(seed)
        for _ in range(300):
            with bcast.patched_numpy(choose.sample(names, 3)):
                bcast.patch_numpy(choose.choice(names))
                bcast.unpatch_numpy()

    assert errors_in_threads(work, 4) == []
    assert not bcast.is_patched()
    now = [np.tile, np.max, np.mean, np.linalg.norm, np._core._methods.umr_sum, np.where]
    assert all(each is function for each, function in zip(now, functions, strict=True))


def test_functions_that_cannot_be_decorated():
    async def coroutine():
        pass

    def generator():
        yield

    async def both():
        yield

    for function, kind in ((coroutine, "coroutine"), (generator, "generator"), (both, "coroutine")):
        expected = "`func` expected a function that finishes its work before it returns"
        with pytest.raises(TypeError, match=f"^{expected}, got the {kind} {function.__name__};"):
            bcast.patched_numpy()(function)
    with pytest.raises(TypeError, match=r"^`func` expected a function, got 5$"):
        bcast.patched_numpy()(5)
    for decorator in (bcast.patched_numpy, bcast.patch_numpy):
        with pytest.raises(TypeError, match=r"^`names` expected .*; write @bcast.patched_numpy\(\) to decorate it$"):
            decorator(generator)
    assert not bcast.is_patched()


@pytest.mark.parametrize(
    ("names", "remedy"),
    [
        ("mean,std", "; use 'mean', 'std'"),
        ("mean std", "; use 'mean', 'std'"),
        (["tile, np.mean"], "; use 'tile', 'mean'"),
        ("np.mean", "; use 'mean'"),
        ("numpy.tile", "; use 'tile'"),
        ([np.tile], "; use 'tile'"),
        (np.mean, "; use 'mean'"),
        (["nanargmax"], ""),
        (["nanargmin", "tile"], ""),
        ("np.nanargmax", ""),
        ("mean,nanargmax", ""),
        ("", ""),
        (", ", ""),
        ([None], ""),
        (np.cumsum, ""),
        (5, ""),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)[:20]),
)
def test_names_that_are_nearly_right(names, remedy):
    for function in (bcast.patch_numpy, bcast.patched_numpy):
        with pytest.raises((TypeError, ValueError)) as caught:
            function(names)
        message, _, hint = str(caught.value).partition("; ")
        assert message.startswith("`names` expected names among tile, repeat, ")
        assert hint == remedy.removeprefix("; ")


REASONS = [
    ("repeat", ([1, 2], 2), {}, "no array"),
    ("repeat", (Duck(), 2), {}, "no array"),
    ("repeat", (np.ma.array(ROW), 2), {}, "subclass"),
    ("repeat", (), {"a": ROW.view(Sub), "repeats": 2}, "subclass"),
    ("repeat", (np.array([None]), 2), {}, "dtype"),
    ("repeat", (np.zeros(2, "i4, f8"), 2), {}, "dtype"),
    ("repeat", (ROW, 2.5), {}, "argument"),
    ("repeat", (np.empty(0), []), {}, "small"),
    ("repeat", (ROW, 2, 5), {}, "error"),
    ("tile", ([1, 2], 2), {}, "no array"),
    ("tile", (np.broadcast_to(ROW[:0], (2, 0)), 2), {}, "small"),
    ("tile", (ROW, 2.0), {}, "argument"),
    ("meshgrid", (ROW, ROW), {"copy": False}, "keyword"),
    ("meshgrid", (ROW, [1, 2]), {}, "no array"),
    ("meshgrid", (), {}, "argument"),
    ("broadcast_arrays", (GRID, GRID.view(np.matrix)), {}, "subclass"),
    ("where", (GRID > 3,), {}, "argument"),
    ("where", (GRID > 3, GRID, [1.0, 2, 3, 4]), {}, "no array"),
    ("where", (GRID > 3, GRID, GRID.view(Sub)), {}, "subclass"),
    ("where", (GRID > 3, GRID.astype("i4, i4")[:, :1], np.zeros((), "i4, f8")), {}, "dtype"),
    ("where", (GRID[:0] > 3, GRID[:0], 0), {}, "small"),
    ("stack", ([ROW, ROW + 1],), {}, "argument"),
    ("dstack", ([GRID.view(Sub)] * 2,), {}, "subclass"),
    ("sum", (GRID, 0), {"where": GRID > 3}, "keyword"),
    ("sum", (GRID, 0), {"dtype": "g"}, "keyword"),
    ("sum", (GRID[:1], 0), {}, "small"),
    ("sum", (ROW.astype("m8[s]"), 0), {}, "dtype"),
    ("mean", (GRID.view(Sub), 0), {}, "subclass"),
    ("var", (GRID,), {"mean": 5.5}, "keyword"),
    ("var", (GRID,), {"keepdims": np.True_}, "argument"),
    ("std", ([1.0, 2.0],), {}, "no array"),
    ("max", (GRID, 0), {"initial": 3}, "keyword"),
    ("sum", (GRID, 0), {"initial": -0.0}, "keyword"),
    ("sum", (GRID.astype("F"), 0), {"initial": complex(0.0, -0.0)}, "keyword"),
    ("min", (GRID, 0), {"where": GRID > 3, "initial": 3}, "keyword"),
    ("max", (GRID.view(Sub), 0), {}, "subclass"),
    ("max", (GRID + 1j, 0), {}, "dtype"),
    ("max", (GRID.astype(">f4"), 0), {}, "dtype"),
    ("max", (GRID[:1], 0), {}, "small"),
    ("sum", (np.array(2.0),), {}, "small"),
    ("mean", (), {"a": GRID, "where": GRID > 3}, "keyword"),
    ("sum", (GRID,), {"where": [True] * 4}, "keyword"),
    ("all", (GRID,), {"where": GRID > 3}, "keyword"),
    ("where", ([True, False], ROW[:2], ROW[:2]), {}, "no array"),
    ("where", (GRID > 3, [1.0, 2, 3, 4], GRID), {}, "no array"),
    ("stack", ([GRID, GRID + 1],), {}, "argument"),
    ("stack", ((GRID, GRID, GRID + 1),), {}, "argument"),
    ("min", (GRID[:0], 0), {}, "small"),
    ("max", (GRID, 0), {"out": np.empty(4, "f4")}, "keyword"),
    ("any", (GRID, 0), {"where": GRID > 3}, "keyword"),
    ("all", ([True, False],), {}, "no array"),
    ("argmax", (GRID, np.int64(0)), {}, "argument"),
    ("prod", (GRID, 0), {}, "dtype"),
    ("prod", (ROW,), {"dtype": "f8"}, "keyword"),
    ("vecdot", (GRID, GRID.view(Sub)), {}, "subclass"),
    ("vecdot", (POINTS, POINTS.astype("g")), {}, "dtype"),
    ("cross", (POINTS[:, :2], POINTS), {}, "argument"),
]


@pytest.mark.filterwarnings("ignore:.*")
@pytest.mark.parametrize(("name", "args", "kwargs", "reason"), REASONS, ids=lambda value: str(value)[:20])
def test_calls_are_passed_on_for_a_reason(name, args, kwargs, reason):
    expect_passed_on(name, lambda: getattr(np, name)(*args, **kwargs), reason)


@pytest.mark.parametrize("names", [None, 3, b"tile", [["tile"]], ["tile", "cumsum"], "broadcast_to", [5], [""]])
def test_bad_names_change_nothing(names):
    error = ValueError if isinstance(names, str | list) else TypeError
    for function in (bcast.patch_numpy, bcast.patched_numpy):
        with pytest.raises(error, match=r"^`names` expected names among tile, repeat, "):
            function(names)
        with pytest.raises(ValueError, match=r"^`names` expected names among tile, repeat, "):
            function("tile", names)
    with pytest.raises(KeyError), bcast.patched_numpy():
        raise KeyError
    assert not bcast.is_patched()


def test_calls_are_counted_over_all_patches():
    with bcast.patched_numpy("tile"):
        pass
    before = bcast.patch_info()["tile"]
    for _ in range(3):
        with bcast.patched_numpy("tile"):
            np.tile(ROW, 2)
            np.tile([1], 2)
            np.tile([1], 2)
    after = bcast.patch_info()["tile"]
    assert (after.taken, after.passed, after.items) == (before.taken + 3, before.passed + 6, before.items + 18)


def test_threads_may_patch_and_call_at_the_same_time():
    failures = []

    def work(seed):
        choose = random.Random(seed)
        try:
            for _ in range(300):
                with bcast.patched_numpy(choose.sample(NAMES, 2)):
                    assert np.tile(ROW, 2).tolist() == [0, 1, 2, 0, 1, 2]
                    assert np.repeat([1, 2], 2).tolist() == [1, 1, 2, 2]
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert all(getattr(np, name) is ORIGINAL[name] for name in NAMES)


# Others' own tests, run while NumPy is patched.

ASTROPYS = "nddata.tests.test_blocks units.tests.test_quantity_non_ufuncs"
SCIPYS = "interpolate.tests.test_rgi interpolate.tests.test_ndgriddata"


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("package", "modules", "functions"),
    [
        ("numpy", "lib.tests.test_shape_base", "tile"),
        pytest.param("numpy", "lib.tests.test_function_base", "tile repeat meshgrid", marks=pytest.mark.soak),
        pytest.param("einops", "tests", "tile", marks=pytest.mark.peers),
        pytest.param("astropy", ASTROPYS, "tile repeat meshgrid", marks=pytest.mark.peers),
        pytest.param("scipy", SCIPYS, "tile meshgrid", marks=pytest.mark.peers),
    ],
    ids=lambda value: value.split(" ")[0],
)  # fmt: skip
def test_tests_of_others_pass_under_the_patch(package, modules, functions):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-W", "ignore"]
    targets = [f"{package}.{module}" for module in modules.split(" ")]
    ours = {"EINOPS_TEST_BACKENDS": "numpy", "OPENBLAS_NUM_THREADS": "1"}
    environment = os.environ | ours | {"PYTEST_ADDOPTS": ""}  # options meant for our tests are none of theirs
    done = python("-m", "bcast", "run", "--counts", "-m", "pytest", *options, "--pyargs", *targets, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    for function in functions.split(" "):
        assert f"bcast: numpy.{function}: calls taken " in done.stderr
        assert f"bcast: numpy.{function}: calls taken 0," not in done.stderr
