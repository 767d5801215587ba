"""Exact sums and statistics of Dask arrays: the bits of arrays in memory, for any chunks and order of combination."""

import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from test_errors import rows
from test_exact_masks import chosen
from test_exact_squares import ITEMS, LARGEST, is_exact, items_of_results, variance
from test_exact_sums import nearest, rounded

import bcast

da = pytest.importorskip("dask.array")
import bcast.dask  # noqa: E402 (there may be no dask)

FUNCTIONS = ("sum", "mean", "var", "std", "nansum", "nanmean", "nanvar", "nanstd")
SHAPE = (6, 8)


def chunkings(rng, shape, count):
    """Random chunks, some of them of one item, or whole; and how many partial results a task combines."""
    for _ in range(count):
        chunks = []
        for length in shape:
            cuts = np.sort(rng.choice(np.arange(1, length), rng.integers(0, length), replace=False))
            chunks.append(tuple(np.diff([0, *cuts, length]).tolist()))
        yield tuple(chunks), int(rng.integers(2, 9))


def computed(name, data, chunks, *args, **options):
    with warnings.catch_warnings(action="ignore"):
        return getattr(bcast.dask, name)(da.from_array(data, chunks=chunks), *args, **options).compute(scheduler="sync")


@pytest.mark.parametrize("make", **rows(ITEMS))
def test_sixty_chunkings_have_the_bits_of_arrays_in_memory(make):
    rng = np.random.default_rng(30)
    data = make(rng, math.prod(SHAPE)).reshape(SHAPE)
    data[rng.random(SHAPE) < 0.1] = np.nan
    data[0] = data[:, 0] = 1.5
    numbers = [chosen(np.nan_to_num(data, nan=0), data == data, (axis,)) for axis in (0, 1)]
    for k, (chunks, every) in enumerate(chunkings(rng, SHAPE, 60)):
        axis = k % 2
        for name in ("nansum", "nanvar"):
            found = computed(name, data, chunks, axis, exact=True, split_every=every)
            for value, row in zip(found, numbers[axis], strict=True):
                exact = sum(row, Fraction(0)) if name == "nansum" else variance(row)
                assert is_exact(value, exact, False) if name == "nanvar" else value == rounded(exact)


@pytest.mark.parametrize("make", **rows(ITEMS))
def test_all_functions_have_the_bits_of_arrays_in_memory(make):
    rng = np.random.default_rng(31)
    data = make(rng, math.prod(SHAPE)).reshape(SHAPE)
    for chunks, every in chunkings(rng, SHAPE, 3):
        axis = [0, 1, None, (0, 1)][rng.integers(4)]
        for name in FUNCTIONS:
            expected = getattr(bcast, name)(data, axis, exact=True)
            assert np.array_equal(computed(name, data, chunks, axis, exact=True, split_every=every), expected), name
        pair = bcast.dask.mean_std(da.from_array(data, chunks=chunks), axis, ddof=1, exact=True)
        for found, expected in zip(pair, bcast.mean_std(data, axis, ddof=1, exact=True), strict=True):
            assert np.array_equal(found.compute(scheduler="sync"), expected)


@pytest.mark.parametrize("name", ["f2", "f4", "c8", "c16", ">f8", "i1", "u2", "i4", "i8", "u8", "?"])
def test_all_dtypes_have_the_bits_of_arrays_in_memory(name):
    rng = np.random.default_rng(32)
    dtype = np.dtype(name)
    bits = rng.integers(0, 2 if name == "?" else 256, (*SHAPE, dtype.itemsize), dtype=np.uint8)
    data = np.ascontiguousarray(bits).view(dtype)[..., 0]
    data = np.where(np.isfinite(data), data, 1).astype(dtype)
    for chunks, every in chunkings(rng, SHAPE, 2):
        for function in FUNCTIONS:
            for options in ({}, {"ddof": 0.5}) if function.endswith(("var", "std")) else ({},):
                expected = getattr(bcast, function)(data, 0, exact=True, keepdims=True, **options)
                found = computed(function, data, chunks, 0, exact=True, keepdims=True, split_every=every, **options)
                assert found.dtype == expected.dtype
                assert np.array_equal(found, expected), function


def test_sums_of_chunks_may_overflow_or_cancel():
    rng = np.random.default_rng(33)
    cases = (
        [LARGEST, LARGEST, 1, 5e-324, -LARGEST, -LARGEST],
        [LARGEST] * 3 + [-LARGEST] * 3 + [2.0**-1074, 1],
        [1e300, 1, 1e-300, -1e300, -1],
        [2.0**970, -1.0, 2.0**-1000, -(2.0**970), 5e-324],
    )
    for case in cases:
        terms = np.array(case)
        exact = sum(map(Fraction, case))
        for _ in range(10):
            rng.shuffle(terms)
            for data in (terms, terms + 1j * terms[::-1]):
                total = computed("sum", data, 1, exact=True, split_every=2)
                assert total.real == rounded(exact)
                mean = computed("mean", data, (2,), exact=True, split_every=2)
                assert mean.imag == (rounded(exact / len(case)) if data.dtype.kind == "c" else 0)
            chain = bcast.dask.chain(da.from_array(terms, 2), np.negative, (np.negative), _exact_sum())
            assert chain.compute(scheduler="sync") == rounded(exact)


def _exact_sum():
    import functools

    return functools.partial(bcast.sum, exact=True)


def test_infinities_and_nan_are_those_in_memory():
    nan, inf = math.nan, math.inf
    for special in ([inf, 1], [inf, -inf], [-inf, LARGEST], [nan, inf], [nan, 1], [nan, nan]):
        data = np.array([special, [1, 2], [LARGEST, LARGEST], [3, 3]])
        for name in FUNCTIONS:
            for axis in (0, 1):
                with warnings.catch_warnings(action="ignore"):
                    expected = getattr(bcast, name)(data, axis, exact=True)
                for chunks in (1, (2, 1), 4):
                    assert np.array_equal(computed(name, data, chunks, axis, exact=True), expected, equal_nan=True)


@pytest.mark.parametrize("exact", [False, True])
def test_masks_and_initial_values(exact):
    rng = np.random.default_rng(34)
    for dtype in ("f8", "f4", "c16", "i8", "?"):
        data = rng.integers(0, 2 if dtype == "?" else 100, SHAPE).astype(dtype)
        if dtype in ("f8", "f4"):
            data[rng.random(SHAPE) < 0.1] = np.nan
        masks = rng.random(SHAPE) < 0.6, rng.random(SHAPE[1]) < 0.6, np.arange(SHAPE[0])[:, np.newaxis] % 3 > 0
        for (chunks, every), mask in zip(chunkings(rng, SHAPE, 3), masks, strict=True):
            options = {"exact": exact, "split_every": every}
            for where in (mask, da.from_array(mask, chunks=2)):
                for name in ("sum", "nansum"):
                    for initial in (0, 7, -1.5) if data.dtype.kind in "fc" else (0, 7):
                        found = computed(name, data, chunks, 0, initial=initial, where=where, **options)
                        expected = getattr(np, name)(data, 0, initial=initial, where=mask)
                        assert found.dtype == expected.dtype
                        assert np.array_equal(found, expected, equal_nan=True)
                for name in ("mean", "nanmean"):
                    found = computed(name, data, chunks, 1, where=where, **options)
                    with warnings.catch_warnings(action="ignore"):
                        expected = getattr(bcast, name)(data, 1, where=mask, exact=True)
                    assert found.dtype == expected.dtype
                    assert np.allclose(found, expected, 1e-15 if found.dtype != "f4" else 1e-6, equal_nan=True)
                    assert not exact or np.array_equal(found, expected, equal_nan=True)


def test_an_initial_value_is_one_more_term():
    terms = np.array([1e300, 1, -1e300, 2.0**-60])
    for data in (terms, terms + 0j):
        for initial in (-1.0, 5e-324, 2.0**-1070, -LARGEST):
            exact = sum(map(Fraction, terms.tolist())) + Fraction(initial)
            for chunks in (1, 2, 4):
                assert computed("sum", data, chunks, exact=True, initial=initial, split_every=2) == rounded(exact)
    assert computed("sum", np.array([1.0, 2]), 1, dtype=complex, exact=True, initial=1j) == 3 + 1j
    assert computed("sum", np.array([1e300, 2.0**-1000]), 1, dtype=complex, exact=True, initial=1j - 1e300).imag == 1
    for exact in (False, True):
        for initial in (-0.0, None):
            found = computed("sum", np.array([[-0.0, -0.0], [-0.0, 0.0]]), 1, 1, exact=exact, initial=initial)
            assert np.signbit(found).tolist() == [True, False]


def test_dtypes_without_exact_sums_are_refused():
    wide = np.dtype(np.longdouble)
    for name in FUNCTIONS:
        function = getattr(bcast.dask, name)
        with pytest.raises(TypeError, match=f"`dtype` expected numbers of at most 64 bits if `exact`, got {wide}"):
            function(da.ones((4, 3)), 0, wide, exact=True)
        with pytest.raises(TypeError, match=f"`a` expected numbers of at most 64 bits if `exact`, got {wide}"):
            function(da.ones((4, 3), dtype=wide), 0, exact=True)
    with pytest.raises(TypeError, match=f"expected numbers of at most 64 bits if `exact`, got {wide}"):
        bcast.dask.unbroadcast(da.ones((4, 3)), (3,), dtype=wide, exact=True)


def test_variances_in_dtypes_of_packages_and_complex_ones():
    rng = np.random.default_rng(37)
    data = rng.standard_normal(SHAPE)
    for name in ("var", "std", "nanvar"):
        found = computed(name, data, (2, 3), 0, complex, exact=True)
        assert np.array_equal(found, getattr(bcast, name)(data, 0, complex, exact=True))
        assert found.dtype == complex
    ml_dtypes = pytest.importorskip("ml_dtypes")
    data = data.astype(ml_dtypes.bfloat16)
    for name in FUNCTIONS:
        found = computed(name, data, (2, 3), 0, exact=True)
        expected = getattr(bcast, name)(data, 0, exact=True)
        assert found.dtype == expected.dtype
        assert np.array_equal(found, expected), name
    for items, value in zip(
        items_of_results(data.astype(float), (0,)), computed("var", data, 2, 0, exact=True), strict=True
    ):
        neighbours = [np.nextafter(value, ml_dtypes.bfloat16(to)) for to in (0, 9)]
        away = abs(Fraction(float(value)) - variance(items))
        assert all(away <= abs(Fraction(float(each)) - variance(items)) for each in neighbours)


def test_wrong_masks_and_initial_values_are_refused():
    data = da.ones((4, 3), chunks=2)
    for name in ("sum", "mean", "nansum", "nanmean"):
        function = getattr(bcast.dask, name)
        with pytest.raises(TypeError, match="`where` expected bools, got int64"):
            function(data, where=[[1], [0], [1], [1]])
        with pytest.raises(ValueError, match=r"`where` expected a shape that broadcasts to \(4, 3\), got \(4,\)"):
            function(data, where=[True] * 4)
    with pytest.raises(ValueError, match=r"`initial` expected a number, got shape \(2,\)"):
        bcast.dask.sum(data, initial=[1, 2])


@pytest.mark.parametrize("make", **rows(ITEMS))
def test_segments_are_summed_exactly(make):
    rng = np.random.default_rng(35)
    grad = make(rng, math.prod(SHAPE)).reshape(SHAPE)
    for counts, axis in (([2, 0, 3, 1, 0], 0), ([0, 8], 1), ([1] * 6, 0), (4, 1), ((3, 2), (0, 1)), ([2, 0, 0, 4], 0)):
        expected = bcast.unrepeat(grad, counts, axis, exact=True)
        for chunks, _ in chunkings(rng, SHAPE, 3):
            found = computed("unrepeat", grad, chunks, counts, axis, exact=True)
            assert np.array_equal(found, expected), (counts, chunks)
    with pytest.raises(ValueError, match="`repeats` expected counts along one axis if `exact`, got 2 passes of sums"):
        bcast.dask.unrepeat(da.ones((4, 3), chunks=2), ([1, 3], [2, 1]), (0, 1), exact=True)


def test_narrow_results_are_rounded_once():
    rng = np.random.default_rng(36)
    data = rng.standard_normal(SHAPE)
    for dtype in ("f4", "f2"):
        for chunks, every in chunkings(rng, SHAPE, 4):
            found = computed("var", data, chunks, 0, dtype, exact=True, split_every=every)
            expected = [nearest(variance(items), np.dtype(dtype)) for items in items_of_results(data, (0,))]
            assert found.tolist() == [float(each) for each in expected]


def test_variances_without_terms_or_degrees_of_freedom():
    data = np.array([[1.0, 2.0, 4.0], [1.0, 1.0, 1.0]])
    assert computed("var", data, 1, 1, exact=True, ddof=3).tolist()[0] == np.inf
    assert computed("var", data[:, :1], 1, 1, exact=True).tolist() == [0, 0]
    assert computed("nanvar", np.array([[np.nan, 2], [1, 3]]), 1, 1, exact=True, ddof=1)[1] == 2
    assert np.isnan(computed("nanvar", np.array([[np.nan, 2], [1, 3]]), 1, 1, exact=True, ddof=1)[0])
    assert np.isnan(computed("nanstd", np.array([[np.nan, np.nan], [1, 3]]), 1, 1, exact=True)[0])


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("function", ["nanvar", "nanstd"])
def test_spreads_of_infinite_items_are_nan(function, exact):
    """An infinite item differs from an infinite mean by NaN, which is no missing item."""
    for column in ([np.inf], [-np.inf, np.nan], [np.inf, 1.0], [np.inf, np.inf, np.nan]):
        data = np.array(column)[:, None].repeat(2, 1)
        found = getattr(bcast.dask, function)(da.from_array(data, chunks=1), 0, exact=exact)
        with np.errstate(invalid="ignore"):
            assert np.isnan(found.compute(scheduler="sync")).all()
