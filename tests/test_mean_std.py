"""`mean_std`: errors of at most a few units."""

import math
from fractions import Fraction

import numpy as np
import pytest
from test_statistics import DTYPES, SHAPES, difference, exact

import bcast


@pytest.mark.parametrize("dtype", ["u1", "i8", "f2", "f4", "f8"])
@pytest.mark.parametrize(("shape", "axis"), SHAPES.values(), ids=SHAPES)
def test_errors_are_within_their_bounds(shape, axis, dtype):
    rng = np.random.default_rng(0)
    data = (rng.random(shape) * 100 + 20).astype(dtype)
    for view in data, data[::-1]:
        for options in {}, {"ddof": 1}, {"keepdims": True}:
            mean, std = bcast.mean_std(view, axis, **options)
            right = np.std(view.astype("g"), axis=axis, **options)
            options.pop("ddof", None)
            for result, exact_one in (mean, np.mean(view.astype("g"), axis=axis, **options)), (std, right):
                assert result.dtype == np.mean(data[:1], axis=axis).dtype
                assert np.shape(result) == np.shape(exact_one)
                units = np.abs(result - exact_one) / np.spacing(result)
                assert units.max() <= (4 if result.itemsize > 4 else 1)


@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i2", "u2", ">i2"])
def test_narrow_integers(dtype):
    """Exact sums for any layout, also of items at the ends of the range, and of items that differ by one."""
    rng = np.random.default_rng(2)
    low, high = (0, 1) if dtype == "?" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    shapes = ((40, 3), 0), ((40, 3), 1), ((7, 3, 3), 1), ((2000,), None), ((30, 40, 3), (0, 1)), ((3, 65, 70), (1, 2))
    for shape, axis in (*shapes, ((9, 5000), 0), ((5000, 9), 1), ((2, 2, 5), 0)):
        for items in ([low, high], [high - 1, high], [low, low + 1], range(low, high + 1)):
            data = rng.choice(np.array(items), shape).astype(dtype)
            data.flat[0] = high if len(items) == 2 else low
            wide = np.zeros((*shape[:-1], 2 * shape[-1]), dtype)
            wide[..., 1::2] = data
            for view in data, data[::-1], wide[..., 1::2], np.asfortranarray(data):
                for ddof in 0, 1:
                    pair = bcast.mean_std(view, axis, ddof=ddof)
                    spread = bcast.std(view, axis, ddof=ddof), bcast.var(view, axis, ddof=ddof) ** 0.5
                    terms = view.astype("i8")
                    count = terms.size // np.size(pair[0])
                    total, squares = terms.sum(axis), (terms * terms).sum(axis)
                    assert np.array_equal(pair[0], total / count)
                    around = [
                        count * int(b) - int(a) ** 2 for a, b in zip(np.ravel(total), np.ravel(squares), strict=True)
                    ]
                    right = [math.sqrt(Fraction(each, count * (count - ddof))) for each in around]
                    for found in pair[1], *spread:
                        np.testing.assert_allclose(np.ravel(found), right, 4e-16)


@pytest.mark.parametrize(
    ("shift", "dtype"), [(0, "f8"), (3, "f8"), (1e6, "f8"), (2**14, "f4"), (1e9, "f8"), (-500, "f2")]
)
def test_exact_fractions(shift, dtype):
    for seed, n in enumerate((2, 40, 1000, 9000)):
        for slope in 0, 1:  # where means of blocks differ as much as items do
            noise = np.random.default_rng(seed).normal(size=n) + slope * np.linspace(-2, 2, n)
            data = (noise + shift).astype(dtype)
            pair = bcast.mean_std(data)
            room = 4 * float(np.spacing(np.abs(data).mean(dtype="f8").astype(dtype)))
            assert difference(pair[0], exact("mean", data), "mean") <= room
            of_mean = float(np.spacing(np.float64(shift))) ** 2 / float(pair[1])
            assert difference(pair[1], exact("std", data), "std") <= 4 * float(np.spacing(pair[1])) + of_mean


@pytest.mark.parametrize("dtype", DTYPES)
def test_layouts_and_dtypes(dtype):
    data = (np.random.default_rng(0).random((20, 30, 6)) * 100).astype(dtype)
    for view in data, data.T, data[..., ::2], data[:, ::-1], np.broadcast_to(data[:, :1], data.shape), data[:0]:
        for axis in 0, 1, (0, 2), None, -1:
            if not view.size:
                continue
            for ours, name in zip(bcast.mean_std(view, axis), ("mean", "std"), strict=True):
                right = getattr(bcast, name)(view, axis)
                assert type(ours) is type(right)
                assert ours.dtype == right.dtype
                assert np.allclose(ours, right, 1e-3 if ours.itemsize == 2 else 1e-6)


def test_infinities_and_overflow():
    for first in np.inf, np.nan, 1e300, -1e308:
        data = np.ones((700, 3))
        data[0] = first
        with np.errstate(all="ignore"):
            for ours, name in zip(bcast.mean_std(data, 0), ("mean", "std"), strict=True):
                assert np.allclose(ours, getattr(bcast, name)(data, 0), equal_nan=True)


def test_bits_do_not_depend_on_threads():
    data = np.random.default_rng(0).random((40_000, 3)).astype("f4")
    before = bcast.get_num_threads()
    found = []
    for threads in 1, 2, 5:
        bcast.set_num_threads(threads)
        found.append([part.tobytes() for part in bcast.mean_std(data, 0)])
    bcast.set_num_threads(before)
    assert found[0] == found[1] == found[2]


def test_into_a_pair():
    data = np.arange(12.0).reshape(3, 4)
    out = np.zeros(3), np.zeros((3, 2), "f4")[:, 0]
    pair = bcast.mean_std(data, 1, out=out)
    assert pair is out
    assert out[0].tolist() == [1.5, 5.5, 9.5]
    assert np.allclose(out[1], math.sqrt(1.25))


def test_other_calls():
    data = [[1, 2], [3, 5]]
    assert np.array_equal(bcast.mean_std(data, iter([0])), (np.mean(data, 0), np.std(data, 0)))
    masked = np.ma.masked_array(data, [[0, 1], [0, 0]])
    assert bcast.mean_std(masked)[0] == masked.mean()
    with pytest.raises(np.exceptions.AxisError):
        bcast.mean_std(np.zeros((2, 2)), 2)
    with pytest.raises(TypeError, match=r"^`ddof` expected a number"):
        bcast.mean_std(np.zeros((2, 2)), ddof="1")
    with np.errstate(all="ignore"), pytest.warns(RuntimeWarning, match="Degrees of freedom"):
        bcast.mean_std(np.zeros((1, 2)), 0, ddof=1)
    assert float(bcast.mean_std(np.array([0.1, 0.3]))[1]) == pytest.approx(float(Fraction(1, 10)))


@pytest.mark.parametrize("dtype", ["?", "u1", "i2", "i4", "i8", "f2", "f4", "f8"])
@pytest.mark.parametrize("length", [2, 3, 4, 5])
def test_short_vectors(length, dtype):
    """Dense or as columns, packed or not, on both sides of a register and of what is packed at once."""
    rng = np.random.default_rng(0)
    for count in 1, 3, 4, 255, 257, 4099:
        dense = (rng.random((count, length)) * 250 - (0 if dtype in "?u1" else 100)).astype(dtype)
        for data, axis in (
            (dense, 1),
            (np.ascontiguousarray(dense.T), 0),
            (dense[::-1], 1),
            (dense.repeat(2, 0)[::2], 1),
        ):
            for ddof in 0, 1, 1.5:
                mean, std = bcast.mean_std(data, axis, ddof=ddof)
                terms = data.astype("g")
                for found, right in (
                    (mean, terms.mean(axis)),
                    (std, terms.std(axis, ddof=ddof)),
                    (bcast.var(data, axis, ddof=ddof), terms.var(axis, ddof=ddof)),
                ):
                    assert found.dtype == np.mean(data[:1], axis=axis).dtype
                    np.testing.assert_allclose(found, right, 2 * np.finfo(found.dtype).eps, 2e-13)


def test_short_vectors_of_large_numbers():
    """Neither partial sums of items nor those of squares overflow; infinities and NaN stay in their results."""
    data = np.array([[1e308, 1.5e308, 1e308], [1, 2, 4], [1e154, -1e154, 0], [np.inf, 1, 2], [1, np.nan, 3]] * 5)
    mean, std = bcast.mean_std(data, 1)
    assert np.allclose(mean[:3], [3.5 / 3 * 1e308, 7 / 3, 0])
    assert np.allclose(std[1:3], [np.std([1, 2, 4]), math.sqrt(2 / 3) * 1e154])
    assert mean[3] == np.inf
    assert np.isnan([std[3], mean[4], std[4]]).all()
