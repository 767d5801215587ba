"""`nansum`, `nanmean`, `nanvar`, `nanstd`, `nanmax` and `nanmin`: NumPy's values, warnings and errors."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import bcast

SUMS = ("nansum", "nanmean", "nanvar", "nanstd")
EXTREMES = ("nanmax", "nanmin")
NAMES = SUMS + EXTREMES
DTYPES = ("f2", "f4", "f8")
SHAPES = {
    "rows of 2": ((4000, 2), 1), "rows of 3": ((3001, 3), -1), "rows of 8": ((301, 8), 1), "rows": ((9, 5000), 1),
    "few columns": ((5000, 3), 0), "columns": ((700, 90), 0), "two rows": ((2, 5000), 0), "all": ((40, 300), None),
    "a picture": ((60, 90, 3), (0, 1)), "its channels": ((60, 90, 3), 2), "a batch": ((4, 3, 20, 21), (0, 2, 3)),
    "the channels of a batch": ((4, 3, 20, 21), 1), "outer and middle": ((5, 6, 7, 8), (2, 0)),
    "one item": ((5, 1), 1), "a vector": ((7,), 0), "tiny": ((2, 2), 1), "long": ((300_000,), None),
}  # fmt: skip
SHARES = (0, 0.01, 0.5, 1)  # of NaN


def items(dtype, shape, share, seed=0):
    rng = np.random.default_rng(seed)
    data = (rng.normal(size=shape) * 3 + 1).astype(dtype)
    data[rng.random(shape) < share] = np.nan
    return data


def called(function, *args, **kwargs):
    """The result of a call and the warnings it gave."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = function(*args, **kwargs)
    return result, [(each.category, str(each.message)) for each in caught]


def agree(name, found, right, dtype):
    """Whether a result is NumPy's, computed in float64: sums may differ by their rounding."""
    assert found.dtype == dtype
    assert np.shape(found) == np.shape(right)
    with np.errstate(all="ignore"):
        right = np.asarray(right).astype(dtype)
    if name in EXTREMES:
        return np.array_equal(found, right, equal_nan=True)
    eps = float(np.finfo(dtype).eps)
    return np.allclose(np.asarray(found, "f8"), np.asarray(right, "f8"), 16 * eps, 40 * eps, equal_nan=True)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "axis"), SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("name", NAMES)
def test_numpys_results_and_warnings(name, shape, axis, dtype):
    ours, numpys = getattr(bcast, name), getattr(np, name)
    for share in SHARES:
        data = items(dtype, shape, share)
        for options in {}, {"keepdims": True}:
            right, told = called(numpys, data.astype("f8"), axis, **options)
            found, ours_told = called(ours, data, axis, **options)
            assert agree(name, found, right, dtype)
            assert ours_told == told
            assert type(found) is type(numpys(np.zeros(shape, dtype), axis, **options))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("axis", [0, 1, 2, (0, 2), (1, 2), None])
def test_layouts(name, axis):
    data = items("f4", (30, 41, 6), 0.2)
    for view in (
        data.T, data[::2], data[:, ::-1], data[..., ::2], data.transpose(1, 0, 2), data.astype(">f4"),
        np.broadcast_to(data[:, :1], data.shape), np.lib.stride_tricks.as_strided(data, (30, 6, 6), (984, 24, 4)),
    ):  # fmt: skip
        right, told = called(getattr(np, name), view.astype("f8"), axis)
        found, ours_told = called(getattr(bcast, name), view, axis)
        assert agree(name, found, right, "f4")
        assert ours_told == told


@pytest.mark.parametrize("name", NAMES)
def test_into_out(name):
    data = items("f4", (300, 5), 0.2)
    data[7] = np.nan
    for out in np.full(300, 9, "f4"), np.full((300, 2), 9, "f4")[:, 0], np.full(300, 9, "f8"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            right = getattr(np, name)(data.astype("f8"), 1)
            assert getattr(bcast, name)(data, 1, out=out) is out
        assert np.allclose(out, right, 1e-5, 1e-5, equal_nan=True)
    over = data.copy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        getattr(bcast, name)(over, 0, out=over[0])
        assert np.allclose(over[0], getattr(np, name)(data, 0), 1e-5, 1e-5, equal_nan=True)


@pytest.mark.parametrize("name", NAMES)
def test_calls_that_fail_do_not_change_out(name):
    data, out = items("f4", (30, 5), 0.2), np.full(4, 9, "f4")
    with pytest.raises(ValueError, match="out"):
        getattr(bcast, name)(data, 0, out=out)
    with pytest.raises(np.exceptions.AxisError):
        getattr(bcast, name)(data, 2, out=out)
    with pytest.raises(ValueError, match="axis"):
        getattr(bcast, name)(data, (0, 0), out=out)
    assert (out == 9).all()
    data[3] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if name != "nansum":
            with pytest.raises(RuntimeWarning):
                getattr(bcast, name)(data, 1, out=(room := np.full(30, 9, "f4")))
            assert (room == 9).all()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["?", "u1", "i4", "i8"])
def test_integers_have_no_nan(name, dtype):
    data = np.arange(60).reshape(20, 3).astype(dtype)
    found, right = getattr(bcast, name)(data, 1), getattr(np, name)(data, 1)
    assert found.dtype == right.dtype
    assert np.allclose(found, right)


@pytest.mark.parametrize("name", NAMES)
def test_behaviour_of_numpy(name):
    ours, numpys = getattr(bcast, name), getattr(np, name)
    data = items("f8", (20, 3), 0.2)
    for args, kwargs in (
        ((data.tolist(), 1), {}),
        ((data, 1), {"where": data != data[0, 0]}),
        ((data.astype("g"), 1), {}),
        ((np.float64(3),), {}),
        ((data[:1], 0), {}),
        ((data, ()), {}),
        ((data, iter([1])), {}),
    ):
        if "where" in kwargs and name in EXTREMES:
            kwargs = {"where": kwargs["where"], "initial": 0}
        right, told = called(numpys, *args[:1], *[1 if hasattr(arg, "__next__") else arg for arg in args[1:]], **kwargs)
        found, ours_told = called(ours, *args, **kwargs)
        assert np.allclose(found, right, equal_nan=True)
        assert type(found) is type(right)
        assert ours_told == told
    if name in SUMS:
        assert np.allclose(ours(data + 1j, 1), numpys(data + 1j, 1))
    empty = np.zeros((3, 0))
    if name in EXTREMES:
        with pytest.raises(ValueError, match="reduction operation"):
            ours(empty, 1)
    else:
        assert np.array_equal(called(ours, empty, 1)[0], called(numpys, empty, 1)[0], equal_nan=True)
        assert called(ours, empty, 1)[1] == called(numpys, empty, 1)[1]


def test_warnings_name_the_callers_line():
    with pytest.warns(RuntimeWarning, match="All-NaN slice encountered") as caught:
        bcast.nanmax(np.full((3, 2), np.nan), 1)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("name", ["nanmax", "nanmin", "nanmean", "nanstd"])
def test_an_out_that_does_not_fit_is_refused_without_a_warning(name):
    out = np.ones((1, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match="`out` expected shape"):
            getattr(bcast, name)(np.full((2, 3), np.nan), 0, out=out)
    assert out.tolist() == [[1, 1, 1]]


@pytest.mark.parametrize("name", ["nanvar", "nanstd"])
@pytest.mark.parametrize("ddof", [1, 2, 0.5, -1, np.float32(1.5), 3, 7])
def test_degrees_of_freedom(name, ddof):
    data = items("f8", (200, 3), 0.5)
    right, told = called(getattr(np, name), data, 1, ddof=ddof)
    found, ours_told = called(getattr(bcast, name), data, 1, ddof=ddof)
    assert np.allclose(found, right, 1e-12, 1e-12, equal_nan=True)
    assert ours_told == told
    assert np.allclose(called(getattr(bcast, name), data, 1, correction=ddof)[0], right, 1e-12, 1e-12, equal_nan=True)


def test_sums_are_as_exact_as_those_without_nan():
    rng = np.random.default_rng(5)
    for shape, axis in ((1000, 3), 1), ((3, 1000), 1), ((1000, 3), 0), ((9, 70, 3), (0, 1)):
        for data in (rng.random(shape) * 10.0 ** rng.integers(-9, 9, shape)), rng.normal(size=shape) + 1e9:
            data[rng.random(shape) < 0.3] = np.nan
            moved = np.moveaxis(data, axis, range(np.size(axis)))
            columns = moved.reshape(math.prod(moved.shape[: np.size(axis)]), -1).T
            kept = [column[column == column].tolist() for column in columns]
            sums = np.array([math.fsum(column) for column in kept])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                assert (np.abs(bcast.nansum(data, axis).ravel() - sums) <= 1.5 * np.spacing(sums)).all()
                means = sums / np.array([len(column) for column in kept])
                assert np.allclose(bcast.nanmean(data, axis).ravel(), means, 1e-15, 0, equal_nan=True)
                right = [
                    math.fsum((term - mean) ** 2 for term in column) / len(column) if column else np.nan
                    for column, mean in zip(kept, means, strict=True)
                ]
                np.testing.assert_allclose(bcast.nanvar(data, axis).ravel(), right, 1e-14, 1e-13)


def test_infinities_and_overflow():
    data = np.array([[np.inf, np.nan, 1], [np.inf, -np.inf, np.nan], [-np.inf, 1, 2], [1e308, 1e308, np.nan]])
    for name in NAMES:
        with np.errstate(all="ignore"):
            right = called(getattr(np, name), data, 1)[0]
        right[-1] = {"nanmean": 1e308, "nanvar": 0, "nanstd": 0}.get(name, right[-1])  # NumPy's sums overflow
        assert np.array_equal(called(getattr(bcast, name), data, 1)[0], right, equal_nan=True)


@pytest.mark.parametrize("name", NAMES)
def test_bits_do_not_depend_on_threads(name):
    data = items("f4", (200_000, 3), 0.1)
    for axis in 0, 1, None:
        found = []
        before = bcast.get_num_threads()
        for threads in 1, 2, 5:
            bcast.set_num_threads(threads)
            found.append(called(getattr(bcast, name), data, axis)[0])
        bcast.set_num_threads(before)
        assert np.array_equal(found[0], found[1], equal_nan=True)
        assert np.array_equal(found[0], found[2], equal_nan=True)


def test_bfloat16():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    wide = items("f4", (500, 3), 0.3)
    data = wide.astype(ml_dtypes.bfloat16)
    wide = data.astype("f8")
    for name in NAMES:
        for axis in 0, 1, None:
            found, told = called(getattr(bcast, name), data, axis)
            right, numpys_told = called(getattr(np, name), wide, axis)
            assert found.dtype == data.dtype
            assert np.allclose(np.asarray(found, "f8"), right, 2**-7, 2**-7, equal_nan=True)
            assert told == numpys_told


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("code", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_nan_of_other_packages_is_left_out_by_numpys_functions_too(name, code):
    """NumPy's functions treat this NaN as a number. They get calls without reduced axes, or with masks."""
    dtype = np.dtype(getattr(pytest.importorskip("ml_dtypes"), code))
    ours, numpys = getattr(bcast, name), getattr(np, name)
    for shape, axis in ((3, 1), 1), ((1, 4), 0), ((2, 0), 1), ((4,), ()), ((), None), ((5, 2), 0), ((5, 2), None):
        data = np.resize([np.nan, 2, np.nan, 1.5, np.nan], shape).astype(dtype)
        wide = data.astype("f8")
        if data.size == 0 and name in EXTREMES:
            with pytest.raises(ValueError, match="zero-size"):
                ours(data, axis)
            continue
        right, told = called(numpys, wide, axis)
        found, ours_told = called(ours, data, axis)
        assert found.dtype == dtype
        assert ours_told == told
        assert np.allclose(np.asarray(found, "f8"), right, 0.25, equal_nan=True)
        for to in "f8", ">f4", dtype:
            out = np.full(right.shape, 7.0).astype(to)
            assert called(ours, data, axis, out=out)[0] is out
            assert np.allclose(out.astype("f8"), right, 0.25, equal_nan=True)
        if name not in EXTREMES:
            assert called(ours, data, axis, "f4")[0].dtype == "f4"
            assert called(ours, data, axis, dtype)[0].dtype == dtype
            out = np.full(right.shape, 7.0).astype(dtype)
            assert np.array_equal(
                called(ours, data, axis, "f4", out)[0].astype("f8"),
                called(ours, data, axis, "f4")[0].astype(dtype).astype("f8"),
                equal_nan=True,
            )
    mask = np.array([True, True, False])
    least = {"initial": 0} if name in EXTREMES else {}
    data = np.array([np.nan, 2, 9]).astype(dtype)
    assert ours(data, where=mask, **least) == numpys(np.array([np.nan, 2, 9]), where=mask, **least)
    assert called(ours, [dtype.type("nan"), dtype.type(2)])[0] == numpys([np.nan, 2])


@pytest.mark.parametrize("name", EXTREMES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_nan_has_numpys_bits(name, dtype):
    data = np.full((40, 9), np.nan, dtype)
    data[::2] = 1
    for axis in 0, 1:
        right, found = called(getattr(np, name), data, axis)[0], called(getattr(bcast, name), data, axis)[0]
        assert found.tobytes() == right.tobytes()


floats = hnp.arrays(
    st.sampled_from(DTYPES),
    hnp.array_shapes(min_dims=1, max_dims=4, max_side=6),
    elements=st.sampled_from([0.0, -0.0, 1.0, -3.0, 2.5, np.nan, np.nan]),
)


@given(data=st.data(), array=floats, name=st.sampled_from(NAMES))
def test_any_array(data, array, name):
    axis = data.draw(st.sampled_from([None, *range(array.ndim), tuple(range(0, array.ndim, 2))]))
    right, told = called(getattr(np, name), array.astype("f8"), axis)
    found, ours_told = called(getattr(bcast, name), array, axis)
    assert agree(name, found, right, array.dtype)
    assert ours_told == told


@pytest.mark.parametrize("name", ["nanvar", "nanstd"])
def test_overflow_gives_no_warning_with_nan_or_without(name):
    rows = np.array([[3e38, -3e38, np.nan], [6e37, -3e38, 1]], np.float32)
    with np.errstate(all="raise"):
        for data in rows, rows[:, :2], rows[:1]:
            assert getattr(bcast, name)(data, axis=1).dtype == np.float32
        assert bcast.nanvar(rows[:1], axis=1) == np.inf
