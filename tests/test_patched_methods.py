"""Array methods under the patch: they call bcast's functions through the globals of NumPy's module."""

import itertools
import warnings

import numpy as np
import pytest
from _patched import expect_passed_on
from test_patched_ufuncs import Sub, described

import bcast
from bcast._api.patching import GROUPS, time_calls

EXACT = ("max", "min", "any", "all", "prod")
ROUNDED = ("sum", "mean", "var", "std")
METHODS = np._core._methods


def arrays():
    rng = np.random.default_rng(5)
    integers = rng.integers(0, 4, (7, 5, 3))
    for dtype in ("?", "i1", "u2", "i4", "i8", "u8", "f2", "f4", "f8", "F", ">f4", "g", "O"):
        yield integers.astype(dtype)
    floats = rng.normal(0, 1, (9, 4, 3))
    yield from (floats, floats.T, floats[::2, ::-1], np.where(floats > 1, np.nan, floats), floats.astype("f4").T)
    yield from (
        floats[:0],
        floats[:, :1],
        floats.reshape(9, 1, 4, 3).copy("F"),
        floats.view(Sub),
        np.ma.array(floats, mask=floats > 1),
        np.zeros(20_000),
    )


def seen(result):
    """The flags of a result, except for its ownership of memory: with another order of axes, it is a view."""
    return [each[::2] if isinstance(each, tuple) and len(each) == 3 else each for each in described(result)]


def outcome(array, name, options):
    """The result of a method, and its warnings."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            result = getattr(array, name)(**options)
        except Exception as error:
            return type(error), str(error)
    return result, sorted({str(each.message) for each in told})


@pytest.mark.parametrize("name", EXACT)
def test_methods_match_numpy(name):
    """Bits, classes, layouts, warnings and errors."""
    taken = 0
    for array in arrays():
        for axis, keepdims in itertools.product([None, 0, 1, -1, (0, 1), (-1, 0), (0, 1, 2), 5], (False, True)):
            choices = [{"axis": axis, "keepdims": keepdims}, {"axis": axis, "initial": 1}]
            choices += [{"axis": axis, "where": array == array}] if array.ndim == 3 else []
            choices += [{"axis": axis, "dtype": "f8"}] if name == "prod" else []
            for options in choices:
                right = outcome(array, name, options)
                with bcast.patched_numpy("reductions"):
                    before = bcast.patch_info()[f"ndarray.{name}"].taken
                    found = outcome(array, name, options)
                    taken += bcast.patch_info()[f"ndarray.{name}"].taken - before
                assert seen(found[0]) == seen(right[0]), (array.dtype, name, options)
                assert found[1] == right[1]
    assert taken > 50


def assert_close(found, right, *dtypes):
    """Compare sums that are made in one of some dtypes."""
    eps = max(float(np.finfo(each).eps) if np.dtype(each).kind in "fc" else 0 for each in dtypes)
    np.testing.assert_allclose(np.asarray(found), np.asarray(right), 16 * eps + 1e-14, 4 * eps + 1e-14)


@pytest.mark.parametrize("name", ROUNDED)
def test_sums_differ_from_numpys_in_their_last_bits_alone(name):
    taken = 0
    for array in arrays():
        if array.dtype == object:
            continue
        for axis, keepdims in itertools.product([None, 0, 1, -1, (0, 1)], (False, True)):
            for options in ({}, {"dtype": "f4"}, {"dtype": "i8"} if name == "sum" else {"dtype": "f8"}):
                given = {"axis": axis, "keepdims": keepdims, **options}
                right = outcome(array, name, given)
                with bcast.patched_numpy("sums"):
                    before = bcast.patch_info()["ndarray.sum"].taken
                    found = outcome(array, name, given)
                    taken += bcast.patch_info()["ndarray.sum"].taken - before
                if isinstance(right[0], type):
                    assert found == right
                    continue
                assert described(found[0])[:4] == described(right[0])[:4]
                assert_close(found[0], right[0], array.dtype, options.get("dtype", array.dtype))
    assert taken > 50


POINTS = np.arange(300.0).reshape(100, 3)
REASONS = [
    ("max", POINTS.view(Sub), {"axis": 0}, "subclass"),
    ("max", POINTS, {}, "small"),
    ("max", POINTS[:4], {"axis": 0}, "small"),
    ("max", POINTS, {"axis": 0, "initial": 3}, "keyword"),
    ("max", POINTS, {"axis": 0, "where": POINTS > 3, "initial": 3}, "keyword"),
    ("min", POINTS + 1j, {"axis": 0}, "dtype"),
    ("min", POINTS.astype(object), {"axis": 0}, "dtype"),
    ("any", POINTS > 3, {}, "small"),
    ("any", np.ones((2, 20_000), bool), {"axis": 1}, "small"),  # NumPy stops at once
    ("any", POINTS, {"axis": 0, "where": POINTS > 3}, "keyword"),
    ("prod", POINTS, {"axis": 0}, "dtype"),
    ("sum", POINTS.astype("m8[s]"), {"axis": 0}, "dtype"),
    ("sum", POINTS.view(Sub), {"axis": 0}, "subclass"),
]


@pytest.mark.parametrize(("name", "array", "options", "reason"), REASONS, ids=lambda value: str(value)[:20])
def test_calls_are_passed_on_for_a_reason(name, array, options, reason):
    expect_passed_on(f"ndarray.{name}", lambda: getattr(array, name)(**options), reason)


@pytest.mark.parametrize("name", [*EXACT, *ROUNDED])
def test_arguments_that_only_functions_accept_are_errors(name):
    array, given = POINTS.astype("i8"), {"axis": 1, "keepdims": np._NoValue}
    with bcast.patched_numpy("reductions", "sums"):
        found = outcome(array, name, given)
    assert found == outcome(array, name, given)
    assert found[0] is TypeError


@pytest.mark.parametrize("dtype", ["?", "i1", "u1"])
def test_sums_of_many_bytes_are_taken(dtype):
    array = np.ones(1 << 20, dtype)
    with bcast.patched_numpy("sums"):
        before = bcast.patch_info()["ndarray.sum"]
        assert array.sum() == 1 << 20
        assert array[1:].sum() == (1 << 20) - 1
        after = bcast.patch_info()["ndarray.sum"]
    assert (after.taken - before.taken, after.passed - before.passed) == (1, 1)


def test_calls_of_methods_are_timed_if_that_is_wanted():
    small, large = np.ones((4, 3)), np.ones((40, 3))
    with bcast.patched_numpy("ndarray.max"):
        seen = []
        for wanted in (False, True, False):
            time_calls(wanted)
            try:
                small.max(1), large.max(1)
            finally:
                time_calls(False)
            seen.append(bcast.patch_info()["ndarray.max"])
    before, timed, after = seen
    assert (timed.taken, timed.passed) == (before.taken + 1, before.passed + 1)
    assert timed.seconds_taken > before.seconds_taken
    assert timed.seconds_passed > before.seconds_passed
    assert (after.taken, after.passed) == (timed.taken + 1, timed.passed + 1)
    assert after[3:] == timed[3:]


def test_methods_are_patched_and_put_back():
    functions = {name: getattr(METHODS, name) for name in ("umr_maximum", "umr_minimum", "umr_sum", "umr_any")}
    with bcast.patched_numpy("reductions", "sums"):
        assert all(getattr(METHODS, name) is not function for name, function in functions.items())
        assert all(type(getattr(METHODS, name)) is type(function) for name, function in functions.items())
        assert bcast.is_patched("ndarray.max")
        assert np.maximum.reduce(POINTS).tolist() == POINTS[-1].tolist()
        before = bcast.patch_info()["ndarray.max"].taken
        np.testing.assert_array_equal(POINTS.max(0), POINTS[-1])
        np.testing.assert_array_equal(POINTS.max(0, out=np.zeros(3)), POINTS[-1])
        assert bcast.patch_info()["ndarray.max"].taken == before + 2
    assert all(getattr(METHODS, name) is function for name, function in functions.items())
    assert not bcast.is_patched()


def test_a_method_s_function_that_was_kept_and_put_back_is_not_in_the_way():
    function = METHODS.umr_sum
    with bcast.patched_numpy("sums"):
        kept = METHODS.umr_sum
    METHODS.umr_sum = kept
    before = bcast.patch_info()["ndarray.sum"]
    assert np.ones(3).sum() == np.ones((100, 3)).sum() / 100 == 3
    assert bcast.patch_info()["ndarray.sum"] == before
    assert not bcast.is_patched()
    with bcast.patched_numpy("sums"):
        assert bcast.is_patched("ndarray.sum")
        assert np.ones((100, 3)).sum(0).tolist() == [100, 100, 100]
    assert METHODS.umr_sum is function


def test_groups_have_the_documented_names():
    assert list(GROUPS) == ["copies", "ufuncs", "reductions", "sums"]
    names = [name for group in GROUPS.values() for name in group]
    assert len(names) == len(set(names))
    with bcast.patched_numpy(*GROUPS):
        assert all(bcast.is_patched(name) for name in names)
        assert not bcast.is_patched("broadcast_arrays")  # whose results are no views: by name alone
    with bcast.patched_numpy("copies", "sum"):
        assert [name for name in names if bcast.is_patched(name)] == [*GROUPS["copies"], "sum"]
    assert bcast.is_patched("copies") is False
    assert not bcast.is_patched()
