"""Norms, variances and deviations with `exact=True`, compared with fractions that are rounded once."""

import itertools
import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from _ways import SUMS, summed
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from test_errors import rows
from test_exact_sums import TERMS, nearest

import bcast
import bcast._api.exact_squares

LARGEST, LEAST = np.finfo(float).max, 5e-324
WIDE = np.dtype(np.longdouble)


def far_from_zero(rng, n):
    return 1e9 * rng.choice([1, 3]) + rng.standard_normal(n)


def nearly_equal(rng, n):
    """Items a few last places from each other."""
    item = rng.random() * 10.0 ** rng.integers(-300, 300)
    return item + rng.integers(-2, 3, n) * np.spacing(item)


ITEMS = TERMS | {
    "far_from_zero": far_from_zero,
    "nearly_equal": nearly_equal,
    "equal": lambda rng, n: np.full(n, rng.random()),
    "equal_but_one": lambda _, n: np.where(np.arange(n) == n // 2, np.nextafter(0.1, 1), 0.1),
    "large_and_equal": lambda _, n: np.full(n, LARGEST),
    "of_two_sizes": lambda rng, n: rng.choice([1, 2.0**-53, 2.0**-105], n) * rng.choice([1, -1], n),
    "whole_numbers": lambda rng, n: np.round(rng.random(n) * 2**27),  # whose variances are often halfway
    "with_tiny_squares": lambda rng, n: rng.standard_normal(n) * 2.0 ** rng.choice([-500, -540, -300]),
    "with_large_squares": lambda rng, n: rng.standard_normal(n) * 2.0 ** rng.choice([500, 520, 480]),
}
CUTS = {
    "a_run": ((1000,), (0,)),
    "short_runs": ((40, 3), (1,)),
    "runs": ((9, 70), (1,)),
    "long_runs": ((3, 1030), (1,)),
    "rows": ((66, 37), (0,)),
    "channels": ((4, 3, 60), (0, 2)),
    "interleaved": ((6, 5, 3), (1,)),
    "all": ((3, 5, 7), (0, 1, 2)),
}


def items_of_results(data, axes):
    """The items of each result, as fractions."""
    last = np.moveaxis(data, axes, range(-len(axes), 0))
    kept = [length for axis, length in enumerate(data.shape) if axis not in axes]
    return [[Fraction(item) for item in row] for row in last.reshape(math.prod(kept), -1).tolist()]


def variance(items, ddof=0):
    n = len(items)
    return (n * sum(item * item for item in items) - sum(items) ** 2) / (n * (n - Fraction(ddof)))


def root_of(square):
    """A fraction that is rounded, to any dtype, as the root of another one is: with 140 bits, the last one odd if there
    are more."""
    if square == 0:
        return Fraction(0)
    shift = max(0, 140 - (square.numerator.bit_length() - square.denominator.bit_length()) // 2)
    scaled = (square.numerator << 2 * shift) // square.denominator
    root = math.isqrt(scaled)
    is_root = root * root * square.denominator == square.numerator << 2 * shift
    return Fraction(2 * root + (not is_root), 2 << shift)


def is_exact(found, square, is_root):
    """Whether a result is the number nearest to its exact value."""
    found = np.asarray(found)
    return nearest(root_of(square) if is_root else square, found.dtype) == found


@pytest.mark.parametrize("make", **rows(ITEMS))
def test_statistics_are_rounded_once(make):
    rng = np.random.default_rng(3)
    for shape, axes in CUTS.values():
        data = make(rng, math.prod(shape)).reshape(shape)
        results = items_of_results(data, axes)
        squares = [
            [variance(items) for items in results],
            [variance(items, 0.5) for items in results],
            [sum(item * item for item in items) for items in results],
        ]
        whole = statistics_of(data, axes)
        for found, exact, is_root in zip(whole, [squares[k] for k in (0, 0, 1, 1, 2)], (0, 1, 0, 1, 1), strict=True):
            assert all(is_exact(*pair, is_root) for pair in zip(found, exact, strict=True)), shape
        for leaf, threads in SUMS:
            with summed(leaf, threads):
                for array in (data, np.asfortranarray(data)):
                    assert statistics_of(array, axes) == whole, (shape, leaf)


def statistics_of(data, axes):
    options = {"axis": axes, "exact": True}
    found = [function(data, **options, ddof=ddof) for ddof in (0, 0.5) for function in (bcast.var, bcast.std)]
    return [np.ravel(each).tolist() for each in (*found, bcast.norm(data, **options))]


@pytest.mark.parametrize("make", **rows(ITEMS))
def test_results_do_not_depend_on_order_or_layout(make):
    rng = np.random.default_rng(4)
    data = make(rng, 700)
    functions = bcast.var, bcast.std, bcast.norm
    expected = [function(data, exact=True) for function in functions]
    for _ in range(5):
        rng.shuffle(data)
        for array in (data, data.reshape(70, 10), np.asfortranarray(data.reshape(7, 20, 5))):
            assert [function(array, None, exact=True) for function in functions] == expected


@pytest.mark.parametrize("name", ["f2", "f4", "c8", "c16", "i1", "u2", "i4", "i8", "u8", "?"])
@pytest.mark.parametrize("axis", [0, 1, None])
def test_all_dtypes_of_numbers_are_rounded_once(name, axis):
    rng = np.random.default_rng(7)
    dtype = np.dtype(name)
    bits = rng.integers(0, 2 if name == "?" else 256, (30, 9, dtype.itemsize), dtype=np.uint8)
    data = np.ascontiguousarray(bits).view(dtype)[..., 0]
    data = np.where(np.isfinite(data), data, 1).astype(dtype)
    axes = (0, 1) if axis is None else (axis,)
    real, imag = (items_of_results(part.astype(object), axes) for part in (data.real, data.imag))
    for function, is_root in ((bcast.var, False), (bcast.std, True), (bcast.norm, True)):
        if name == "?" and function is bcast.norm:
            continue
        found = function(data, axis, exact=True)
        assert found.dtype == function(np.ones((2, 2), dtype), axis).dtype
        for k, (first, second) in enumerate(zip(real, imag, strict=True)):
            if function is bcast.norm:
                square = sum(item * item for item in first + second)
            else:
                square = variance(first) + variance(second)
            assert is_exact(np.ravel(found)[k], square, is_root)


def test_integers_are_not_rounded_first():
    assert bcast.var(np.array([3 * 10**18, 3 * 10**18 + 9]), exact=True) == 20.25
    assert bcast.norm(np.array([2**62 + 1, 0, 0]), exact=True) == float(2**62 + 1)
    assert bcast.std(np.array([2**63, 2**63 + 4], "u8"), exact=True) == 2


@pytest.mark.parametrize("special", [math.inf, -math.inf, math.nan])
def test_special_items_make_their_results_special(special):
    data = np.random.default_rng(5).random((40, 9))
    data[3, 4] = special
    data[:, 7] *= 1e200
    for function in (bcast.var, bcast.std):
        found = function(data, 0, exact=True)
        assert np.isnan(found[4])
        assert np.array_equal(np.delete(found, 4), function(np.delete(data, 4, 1), 0, exact=True))
    norms = bcast.norm(data, 0, exact=True)
    assert np.array_equal(norms[4], abs(special), equal_nan=True)
    assert np.array_equal(np.delete(norms, 4), bcast.norm(np.delete(data, 4, 1), 0, exact=True))


def test_the_result_goes_to_out_and_keeps_axes():
    data = np.array([[1.0, 2.0, 6.0], [1.0, 1.0, 1.0]])
    out = np.full((2, 2), 7.0)
    assert bcast.var(data, 1, out=out[:, 1], exact=True) is not None
    assert out.tolist() == [[7, 14 / 3], [7, 0]]
    assert bcast.std(data, 1, keepdims=True, exact=True).shape == (2, 1)
    assert bcast.norm(data, 1, keepdims=True, exact=True).shape == (2, 1)
    assert bcast.var(data[:, :1], 1, exact=True).tolist() == [0, 0]
    assert bcast.norm(data[:, :1], 1, exact=True).tolist() == [1, 1]
    assert bcast.norm(data[:, :0], 1, exact=True).tolist() == [0, 0]
    assert type(bcast.std(data, exact=True)) is np.float64
    narrow = np.zeros(2, np.float32)
    assert bcast.std(data, 1, out=narrow, exact=True) is narrow
    assert bcast.var(data, 1, complex, exact=True).dtype == complex
    mean, deviation = bcast.mean_std(data, 1, ddof=1, exact=True)
    assert np.array_equal(mean, bcast.mean(data, 1, exact=True))
    assert np.array_equal(deviation, bcast.std(data, 1, ddof=1, exact=True))
    with np.errstate(invalid="ignore"), pytest.warns(RuntimeWarning, match="Degrees of freedom"):
        assert np.isnan(bcast.var(data[1], ddof=3, exact=True))


@pytest.mark.parametrize(("large", "small"), [(1e300, 1.0), (1e160, 1e-140), (1.0, 1e-155), (1.0, 1e-300)])
def test_a_constant_part_of_complex_numbers_hides_no_other(large, small):
    items = large + small * 1j * np.array([1, 2, 4])
    for data in items, 1j * items.conj():
        assert bcast.std(data, exact=True) == bcast.std(np.array([1, 2, 4]) * small, exact=True)


@pytest.mark.parametrize("make", [np.float64, np.complex128])
def test_as_many_axes_as_numpy_has(make):
    data = (np.arange(12.0) * make(1)).reshape((1,) * 62 + (3, 4))
    for statistic in bcast.var, bcast.std, bcast.norm:
        expected = statistic(data.reshape(3, 4), -1, exact=True)
        found = statistic(data, -1, exact=True)
        assert found.shape == (1,) * 62 + (3,)
        assert np.array_equal(found.reshape(3), expected)


def test_blocks_of_results_make_no_difference():
    data = np.random.default_rng(6).random((5000, 3))
    for function in (bcast.var, bcast.std, bcast.norm):
        some = [function(data[begin : begin + 999], 1, exact=True) for begin in range(0, 5000, 999)]
        assert np.array_equal(function(data, 1, exact=True), np.concatenate(some))


def test_friendly_items_are_settled_at_once(monkeypatch):
    rng = np.random.default_rng(9)
    monkeypatch.delattr(bcast._api.exact_squares, "measure_rows_onto")  # which computes the others again
    for shape, axis in (((4000,), 0), ((300, 40), 1), ((300, 40), 0), ((900, 3), 1)):
        for data in (rng.standard_normal(shape), 100 + rng.random(shape), rng.random(shape, "f4"), np.zeros(shape)):
            for function in (bcast.var, bcast.std, bcast.norm):
                assert np.isfinite(function(data, axis, exact=True)).all()


@pytest.mark.parametrize("make", **rows(ITEMS))
def test_items_that_are_nan_are_ignored(make):
    rng = np.random.default_rng(10)
    for (shape, axes), ddof in itertools.product(CUTS.values(), (0, 1)):
        data = make(rng, math.prod(shape)).reshape(shape)
        seen = rng.random(shape) < rng.choice([0.6, 1 - 1 / shape[0]])
        seen[tuple(slice(2) if axis in axes else slice(None) for axis in range(len(shape)))] = True
        items = [
            [item for item, is_seen in zip(row, mask, strict=True) if is_seen]
            for row, mask in zip(items_of_results(data, axes), items_of_results(seen, axes), strict=True)
        ]
        expected = [variance(each, ddof) for each in items]
        data = np.where(seen, data, np.nan)
        for array in (data, np.asfortranarray(data)):
            found = np.ravel(bcast.nanvar(array, axes, ddof=ddof, exact=True))
            assert all(is_exact(*pair, False) for pair in zip(found, expected, strict=True)), shape
            found = np.ravel(bcast.nanstd(array, axes, ddof=ddof, exact=True))
            assert all(is_exact(*pair, True) for pair in zip(found, expected, strict=True)), shape


@pytest.mark.parametrize("name", ["f2", "f4", "c8", "c16", ">f8", "i1", "i8", "?"])
def test_all_dtypes_ignore_nan(name):
    rng = np.random.default_rng(11)
    data = rng.integers(0, 100, (40, 7)).astype(name)
    if data.dtype.kind in "fc":
        data[rng.random(data.shape) < 0.3] = np.nan
    if data.dtype.kind == "c":
        data[rng.random(data.shape) < 0.2] += complex(0, np.nan)
    for axis, row in ((0, data.T), (None, data.reshape(1, -1))):
        expected = [bcast.var(each[each == each], exact=True) for each in row]
        found = bcast.nanvar(data, axis, exact=True, keepdims=True)
        assert found.dtype == np.nanvar(np.ones((2, 2), data.dtype), 0).dtype.newbyteorder("=")
        assert found.ravel().tolist() == expected
        assert bcast.nanstd(data, axis, exact=True).dtype == found.dtype


@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_too_few_numbers_warn_before_out_is_written(dtype):
    data, out = np.array([[1, np.nan, 3], [np.nan, 2, np.nan], [1, np.inf, 5], [np.nan] * 3], dtype), np.full(4, 7.0)
    for function, first in ((bcast.nanvar, 2), (bcast.nanstd, math.sqrt(2))):
        with pytest.warns(RuntimeWarning, match="Degrees of freedom <= 0 for slice"):
            found = function(data, 1, ddof=1, exact=True)
        assert np.array_equal(found, [first, np.nan, np.nan, np.nan], equal_nan=True)
        with warnings.catch_warnings(action="error"):
            with pytest.raises(RuntimeWarning):
                function(data, 1, out=out, ddof=1, exact=True)
            assert function(data[:3], 1, out=out[:3], exact=True) is not None
            assert np.array_equal(out, [1, 0, np.nan, 7], equal_nan=True)
        out[:] = 7
        with pytest.warns(RuntimeWarning, match="Degrees of freedom"):
            assert np.isnan(function(data[:2, :1], ddof=2, exact=True))
        with pytest.raises(ValueError, match="`exact` expected False with `where` or `mean`, got True"):
            function(data, 1, exact=True, where=data == 1)
        with pytest.raises(TypeError, match="`a` expected numbers of at most 64 bits if `exact`"):
            function(data.real.astype(WIDE), 1, exact=True)


def test_what_has_no_kernel_is_refused():
    numbers, out = np.ones((4, 3)), np.full(4, 7.0)
    for function in (bcast.var, bcast.std):
        with pytest.raises(ValueError, match="`exact` expected False with `where` or `mean`, got True"):
            function(numbers, 1, out=out, exact=True, where=np.tri(4, 3, dtype=bool))
        with pytest.raises(TypeError, match=f"`a` expected numbers of at most 64 bits if `exact`, got {WIDE}"):
            function(numbers.astype(WIDE), 1, out=out, exact=True)
        with pytest.raises(TypeError, match="`a` expected an array of NumPy's own class if `exact`"):
            function(np.ma.masked_array(numbers), 1, exact=True)
    with pytest.raises(TypeError, match=f"`x` expected numbers of at most 64 bits if `exact`, got {WIDE}"):
        bcast.norm(numbers.astype(WIDE), exact=True)
    with pytest.raises(TypeError, match="`x` expected an array of NumPy's own class if `exact`"):
        bcast.norm(np.ma.masked_array(numbers), exact=True)
    assert out.tolist() == [7] * 4


@settings(deadline=None)
@given(st.data())
def test_statistics_of_any_numbers_are_rounded_once(data):
    numbers = st.floats(allow_nan=False, allow_infinity=False, width=64)
    shape = data.draw(st.tuples(st.integers(1, 4), st.integers(2, 7)))
    array = data.draw(arrays(np.float64, shape, elements=numbers))
    spread, norms = bcast.std(array, 1, exact=True), bcast.norm(array, 1, exact=True)
    for k, items in enumerate(items_of_results(array, (1,))):
        assert is_exact(spread[k], variance(items), True)
        assert is_exact(norms[k], sum(item * item for item in items), True)


def test_norms_of_dask_arrays_are_those_in_memory():
    da = pytest.importorskip("dask.array")
    import bcast.dask

    data = far_from_zero(np.random.default_rng(7), 600).reshape(20, 30)
    for chunks in ((3, 7), (20, 1), (1, 30)):
        found = bcast.dask.norm(da.from_array(data, chunks), exact=True)
        assert np.array_equal(found.compute(scheduler="sync"), bcast.norm(data, exact=True))
