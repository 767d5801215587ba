"""Exact sums and means under masks, with an initial value, and of dtypes that are converted first."""

import math
from fractions import Fraction

import numpy as np
import pytest
from _ways import SUMS, summed
from test_errors import rows
from test_exact_sums import CUTS, LARGEST, TERMS, nearest, rounded

import bcast


def chosen(terms, mask, axes):
    """The items of each result that a mask leaves, as fractions: a list for each, in C order."""
    last = np.moveaxis(terms, axes, range(-len(axes), 0)).reshape(-1, math.prod(terms.shape[axis] for axis in axes))
    kept = np.moveaxis(np.broadcast_to(mask, terms.shape), axes, range(-len(axes), 0)).reshape(last.shape)
    return [list(map(Fraction, row[mine].tolist())) for row, mine in zip(last, kept, strict=True)]


@pytest.mark.parametrize(("leaf", "threads"), SUMS)
@pytest.mark.parametrize("make", **rows(TERMS))
def test_masked_sums_and_means_are_rounded_once(make, leaf, threads):
    rng = np.random.default_rng(20)
    for name, (shape, axes) in CUTS.items():
        terms = make(rng, math.prod(shape)).reshape(shape)
        mask = rng.random(shape) < 0.6
        mask[tuple(0 if axis in axes else slice(None) for axis in range(len(shape)))] = True
        items = chosen(terms, mask, axes)
        unseen = np.where(mask, terms, rng.choice([np.nan, np.inf, 1e308], shape))
        for grad in (unseen, np.asfortranarray(unseen)):
            with summed(leaf, threads):
                total = bcast.sum(grad, axes, exact=True, where=mask)
                mean = bcast.mean(grad, axes, exact=True, where=mask)
            assert np.ravel(total).tolist() == [rounded(sum(row, Fraction(0))) for row in items], name
            assert np.ravel(mean).tolist() == [rounded(sum(row, Fraction(0)) / len(row)) for row in items], name


@pytest.mark.parametrize("make", **rows(TERMS))
def test_an_initial_value_is_one_more_term(make):
    rng = np.random.default_rng(21)
    for shape, axes in CUTS.values():
        terms = make(rng, math.prod(shape)).reshape(shape)
        mask = rng.random(shape) < 0.5
        for where in (True, mask):
            sums = [sum(row, Fraction(0)) for row in chosen(terms, np.asarray(where), axes)]
            for initial in (1.0, -(2.0**-53), 5e-324, -LARGEST, -rounded(sums[0]), *make(rng, 1).tolist()):
                if math.isinf(initial):
                    continue
                expected = [rounded(exact + Fraction(initial)) for exact in sums]
                for function, grad in ((bcast.sum, terms), (bcast.nansum, np.asfortranarray(terms))):
                    found = function(grad, axes, exact=True, initial=initial, where=where)
                    assert np.ravel(found).tolist() == expected


@pytest.mark.parametrize(
    ("terms", "initial", "expected"),
    [
        ([LARGEST, LARGEST], -LARGEST, LARGEST),
        ([LARGEST, LARGEST], -math.inf, -math.inf),
        ([math.inf, 1.0], -math.inf, math.nan),
        ([1.0, 2], math.nan, math.nan),
        ([1e16, 1], -1e16, 1),
        ([1.0], 2.0**-53, 1),
        ([1 + 2.0**-52], 2.0**-53, 1 + 2.0**-51),
    ],
)
def test_initial_values_of_any_size(terms, initial, expected):
    for many in (np.array(terms), np.repeat(np.array(terms)[:, np.newaxis], 9, 1)):
        found = bcast.sum(many, 0, exact=True, initial=initial)
        assert np.array_equal(found, np.full(many.shape[1:], expected), equal_nan=True)


def test_repeated_terms_and_an_initial_value():
    terms = np.broadcast_to(np.array([0.1, 0.3])[:, np.newaxis], (2, 10**9 + 1))
    exact = Fraction(0.1) * (10**9 + 1)
    assert bcast.sum(terms, 1, exact=True, initial=-rounded(exact))[0] == rounded(exact - Fraction(rounded(exact)))


@pytest.mark.parametrize("name", ["f2", "f4", "f8", ">f8", "c8", "c16", ">c16", "i1", "u2", "i4", "i8", "u8", ">i8"])
@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1), ()])
@pytest.mark.parametrize("function", ["sum", "mean", "nansum", "nanmean"])
def test_all_dtypes_are_rounded_once_under_a_mask(name, axes, function):
    rng = np.random.default_rng(22)
    dtype = np.dtype(name)
    skips = function.startswith("nan")
    bits = rng.integers(0, 256, (30, 9, dtype.itemsize), dtype=np.uint8)
    terms = np.ascontiguousarray(bits).view(dtype)[..., 0]
    terms = np.where(np.isfinite(terms), terms, 1).astype(dtype)
    mask = rng.random(terms.shape) < 0.7
    mask[0] = mask[:, 0] = True
    numbers = mask & (rng.random(terms.shape) < 0.8) if skips and dtype.kind in "fc" else mask
    numbers[0] = numbers[:, 0] = True
    if axes == ():
        mask = numbers = np.ones_like(mask)
    seen = np.where(numbers, terms, np.nan if skips and dtype.kind in "fc" else terms).astype(dtype)

    def results(parts, dtype):
        items = chosen(parts.astype(object), numbers, axes)
        divisor = 1 if function.endswith("sum") else None
        return np.array([nearest(sum(row, Fraction(0)) / (divisor or len(row)), dtype) for row in items])

    for order in "CF":
        for where in (mask, mask.tolist()):
            found = getattr(bcast, function)(np.array(seen, order=order), axes, exact=True, where=where)
            if found.dtype.kind in "iu":
                assert np.array_equal(found, np.sum(terms, axes, where=mask))
                continue
            assert found.dtype == np.mean(terms[:1, :1]).dtype
            assert np.array_equal(np.ravel(found.real), results(terms.real, found.real.dtype))
            if dtype.kind == "c":
                assert np.array_equal(np.ravel(found.imag), results(terms.imag, found.real.dtype))


def test_masks_broadcast_and_results_go_to_out():
    terms = np.arange(12.0).reshape(3, 4)
    row, column = np.array([True, False, True, True]), np.array([[True], [False], [True]])
    out = np.zeros(3, "f4")
    for mask in (row, column, np.True_, np.array(True), [True, False, False, True]):
        for axis in (0, 1, None):
            expected = np.sum(terms, axis, where=mask, initial=5)
            assert np.array_equal(bcast.sum(terms, axis, where=mask, initial=5, exact=True), expected)
    assert bcast.mean(terms, 0, where=column, exact=True).tolist() == [4, 5, 6, 7]
    assert bcast.mean(terms, 1, where=row, exact=True).tolist() == [5 / 3, 17 / 3, 29 / 3]
    assert bcast.sum(terms, 1, out=out, where=row, exact=True) is out
    assert out.tolist() == [5, 17, 29]
    with pytest.warns(RuntimeWarning, match="Mean of empty slice"):
        found = bcast.mean(terms, 0, where=row, exact=True)
    assert np.array_equal(found, [4, np.nan, 6, 7], equal_nan=True)
    assert bcast.sum(terms, 0, where=row, keepdims=True, exact=True).tolist() == [[12, 0, 18, 21]]
    assert type(bcast.sum(terms, where=row, exact=True)) is np.float64
    overlapping = terms.copy()
    assert bcast.sum(overlapping, 0, out=overlapping[0], where=row, exact=True).tolist() == [12, 0, 18, 21]


@pytest.mark.parametrize(("name", "wide"), [("i8", 2**62), ("u8", 2**63)])
def test_integers_of_64_bits_are_rounded_once(name, wide):
    rng = np.random.default_rng(23)
    low = -wide if name == "i8" else 0
    for shape, axes in CUTS.values():
        terms = rng.integers(low, wide, shape, dtype=name)
        terms.flat[::3] = rng.integers(0, 3, terms.flat[::3].shape)
        items = chosen(terms.astype(object), True, axes)
        for dtype in (np.dtype(float), np.dtype("f4")):
            for grad in (terms, np.asfortranarray(terms), np.repeat(terms, 2, -1)[..., ::2]):
                total = np.ravel(bcast.sum(grad, axes, dtype, exact=True))
                assert total.tolist() == [nearest(sum(row), dtype) for row in items]
                mean = np.ravel(bcast.mean(grad, axes, dtype, exact=True))
                assert mean.tolist() == [nearest(Fraction(sum(row), len(row)), dtype) for row in items]
        counts = [0, 2, terms.shape[0] - 2]
        found = bcast.unrepeat(terms, counts, 0, dtype=float, exact=True)
        columns = terms.reshape(len(terms), -1).T.tolist()
        expected = [[0 * len(each) for each in columns]]
        expected += [[rounded(Fraction(sum(each[part]))) for each in columns] for part in (slice(2), slice(2, None))]
        assert found.reshape(3, -1).tolist() == expected


def test_cancelling_integers_of_64_bits():
    most = np.iinfo("i8")
    for terms in ([most.min, most.max, 1], [most.min] * 3 + [most.max] * 3 + [1, 2], [most.max, 1, most.max, 3]):
        assert bcast.sum(np.array(terms), dtype=float, exact=True) == float(sum(terms))
        assert bcast.mean(np.array(terms), exact=True) == rounded(Fraction(sum(terms), len(terms)))
    terms = np.full(5, 2**64 - 1, "u8")
    assert bcast.sum(terms, dtype=float, exact=True) == float(5 * (2**64 - 1))


def test_single_terms_are_rounded_once():
    """1 + 2**-8 is halfway between two bfloat16, and rounding to float32 first would drop 2**-40."""
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    above = 1 + 2.0**-8 + 2.0**-40
    for terms in (np.array([[above]]), np.array([above]), np.array(above)):
        assert float(np.ravel(bcast.sum(terms, dtype=bfloat16, exact=True))[0]) == 1 + 2.0**-7
        assert float(np.ravel(bcast.nansum(terms, dtype=bfloat16, exact=True))[0]) == 1 + 2.0**-7
        assert float(np.ravel(bcast.sum(terms, dtype=bfloat16, exact=True, initial=-1))[0]) == 2.0**-8
    assert bcast.unbroadcast(np.array([above, above]), (2,), dtype=bfloat16, exact=True).tolist() == [1 + 2.0**-7] * 2
    assert bcast.sum(np.array([[2**60 + 2**36 + 1]]), 0, "f4", exact=True)[0] == np.float32(2**60 + 2**37)
    assert bcast.nansum(np.array([[np.nan, 1]]), 0, exact=True).tolist() == [0, 1]
    with pytest.warns(RuntimeWarning, match="Mean of empty slice"):
        assert np.isnan(bcast.nanmean(np.array([[np.nan, 1]]), 0, exact=True)).tolist() == [True, False]


def test_complex_numbers_beside_nan():
    terms = np.array([[1e16 + 1j, complex(np.nan, 5), 1 - 1j, -1e16], [complex(2, np.nan), 3, 4j, 1]])
    assert bcast.nansum(terms, 1, exact=True).tolist() == [1, 4 + 4j]
    assert bcast.nanmean(terms, 1, exact=True).tolist() == [1 / 3, (4 + 4j) / 3]
    assert bcast.nansum(terms, 1, exact=True, initial=1j).tolist() == [1 + 1j, 4 + 5j]
    assert bcast.sum(terms[:, 3], exact=True, initial=1e16 + 2j) == 1 + 2j


def test_masks_and_initial_values_that_are_refused_write_nothing():
    numbers, out = np.ones((4, 3)), np.full(3, 7.0)
    with pytest.raises(TypeError, match="`where` expected bools, got int64"):
        bcast.sum(numbers, 0, out=out, exact=True, where=np.ones((4, 3), int))
    with pytest.raises(ValueError, match=r"`where` expected a shape that broadcasts to \(4, 3\), got \(2, 3\)"):
        bcast.sum(numbers, 0, out=out, exact=True, where=np.ones((2, 3), bool))
    with pytest.raises(ValueError, match=r"`initial` expected a number if `exact`, got shape \(2,\)"):
        bcast.sum(numbers, 0, out=out, exact=True, initial=[1.0, 2.0])
    with pytest.raises(TypeError, match="initial"):
        bcast.mean(numbers, 0, out=out, exact=True, initial=1.0)
    with pytest.raises(TypeError, match="odd"):
        bcast.sum(numbers, 0, out=out, exact=True, odd=1)
    assert out.tolist() == [7, 7, 7]


def any_halves(rng, shape, dtype):
    bits = rng.integers(0, 2**16, shape, dtype=np.uint16)
    infinity = 0x7C00 if dtype == np.float16 else 0x7F80
    return np.where(bits & infinity == infinity, 0, bits).astype(np.uint16).view(dtype)


HALVES = {  # of float16, and of bfloat16
    "of_any_bits": any_halves,
    "small_integers": lambda rng, shape, dtype: rng.integers(-9, 99, shape).astype(dtype),
    "large": lambda rng, shape, dtype: rng.choice([65504 if dtype == np.float16 else 2.0**120], shape).astype(dtype),
    "of_sizes": lambda rng, shape, dtype: rng.choice([1, -1, 2.0**-14, 2.0**-24, 3 * 2.0**-24], shape).astype(dtype),
}


@pytest.mark.parametrize(("leaf", "threads"), SUMS)
@pytest.mark.parametrize("make", **rows(HALVES))
@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_halves_are_rounded_once(name, make, leaf, threads):
    dtype = np.dtype(name) if name == "float16" else np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
    rng = np.random.default_rng(24)
    for shape, axis in (
        ((20_003,), 0),
        ((3, 9001), 1),
        ((9000, 6), 0),
        ((45, 150), 0),
        ((70, 5), 1),
        ((3, 140, 31), 1),
    ):
        terms = make(rng, shape, dtype)
        wide = np.moveaxis(terms.astype(float), axis, -1).reshape(-1, shape[axis])
        sums = [Fraction(math.fsum(row)) if name == "float16" else sum(map(Fraction, row.tolist())) for row in wide]
        for grad in (terms, np.asfortranarray(terms), np.repeat(terms, 2, -1)[..., ::2]):
            with summed(leaf, threads):
                found = np.ravel(bcast.sum(grad, axis, float, exact=True))
                mean = np.ravel(bcast.mean(grad, axis, float, exact=True))
                total = np.ravel(bcast.sum(grad, axis, "f4", exact=True))
                own = np.ravel(bcast.sum(grad, axis, exact=True))
            assert found.tolist() == [rounded(exact) for exact in sums]
            assert mean.tolist() == [rounded(exact / shape[axis]) for exact in sums]
            assert total.tolist() == [float(nearest(exact, np.dtype("f4"))) for exact in sums]
            if name == "float16":
                assert own.tolist() == [float(nearest(exact, dtype)) for exact in sums]


@pytest.mark.parametrize("n", [511, 512, 513, 1000, 1027, 5003])
def test_blocks_of_terms_of_all_sizes(n):
    """Sums that no bound settles, of terms that blocks add in one pass, in several, scaled, or not at all."""
    rng = np.random.default_rng(25)
    signs = rng.choice([1.0, -1], n)
    for exponents in (
        rng.integers(-80, 80, n),
        rng.integers(-300, 300, n),
        rng.integers(-1074, 1000, n),
        rng.integers(990, 1010, n),
        rng.integers(-1074, -1000, n),
        rng.choice([-1074, 1010], n),
        np.where(np.arange(n) < 300, 1005, rng.integers(-1074, 900, n)),
    ):
        half = signs * np.ldexp(1 + rng.random(n), exponents)
        terms = rng.permutation(np.concatenate([half, -half, [2.0**-1074, 0.0, -0.0]]))
        assert bcast.sum(terms, exact=True) == 2.0**-1074
        assert bcast.sum(np.stack([terms, -terms], -1), 0, exact=True).tolist() == [2.0**-1074, -(2.0**-1074)]
        assert bcast.sum(half, exact=True) == rounded(sum(map(Fraction, half.tolist())))
        assert bcast.mean(half, exact=True) == rounded(sum(map(Fraction, half.tolist())) / n)
        for special in (math.inf, -math.inf, math.nan):
            terms[n // 2] = special
            assert np.array_equal(bcast.sum(terms, exact=True), special, equal_nan=True)


@pytest.mark.parametrize("n", [2, 3, 7, 40, 500])
def test_short_sums_that_overflow_or_are_tiny(n):
    rng = np.random.default_rng(26)
    for scale in (2.0**1020, 2.0**1023, 2.0**-960, 2.0**-1015, 2.0**-1060):
        terms = rng.uniform(-1, 1, (50, n)) * scale
        terms[::5, 0] = 2.0**-1074
        terms[3] = 0
        exact = [sum(map(Fraction, row.tolist())) for row in terms]
        for grad, axis in ((terms, 1), (terms.T.copy(), 0)):
            assert bcast.sum(grad, axis, exact=True).tolist() == [rounded(each) for each in exact]
            assert bcast.mean(grad, axis, exact=True).tolist() == [rounded(each / n) for each in exact]
            found = bcast.sum(grad, axis, exact=True, initial=-LARGEST)
            assert found.tolist() == [rounded(each - Fraction(LARGEST)) for each in exact]


@pytest.mark.parametrize("make", **rows({name: make for name, make in TERMS.items() if name != "large"}))
def test_chunks_of_dask_arrays_change_no_mean_beside_nan(make):
    da = pytest.importorskip("dask.array")
    import bcast.dask

    rng = np.random.default_rng(27)
    terms = make(rng, 1200).reshape(120, 10)
    terms[rng.random(terms.shape) < 0.3] = np.nan
    terms[:, 4] = np.nan
    terms[7] = 1.5
    items = chosen(np.nan_to_num(terms), terms == terms, (0,))
    expected = [rounded(sum(row, Fraction(0)) / len(row)) for row in items]
    for _ in range(20):
        chunks = tuple(int(rng.integers(1, length + 1)) for length in terms.shape)
        grad = da.from_array(terms, chunks=chunks)
        every = int(rng.integers(2, 9))
        found = bcast.dask.nanmean(grad, 0, exact=True, split_every=every).compute(scheduler="sync")
        assert found.tolist() == expected, chunks
    of_nothing = da.from_array(np.array([[np.nan, 1], [np.nan, 2]]), chunks=1)
    found = bcast.dask.nanmean(of_nothing, 0, exact=True, keepdims=True).compute(scheduler="sync")
    assert np.array_equal(found, [[np.nan, 1.5]], equal_nan=True)


@pytest.mark.parametrize("initial", [0, 0j, -0.0])
def test_complex_sums_from_zero(initial):
    assert bcast.sum(np.array([1 + 2j, 3]), exact=True, initial=initial) == 4 + 2j
    assert bcast.nansum(np.array([1 + 2j, np.nan]), exact=True, initial=initial) == 1 + 2j


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dtype", ["f4", "f8", "c16"])
def test_means_of_no_items_warn_before_out_is_written(dtype):
    data, out = np.full((2, 3), np.nan, dtype), np.full(2, 7, dtype)
    calls = (
        lambda **options: bcast.nanmean(data, 1, exact=True, **options),
        lambda **options: bcast.mean(data * 0 + 1, 1, exact=True, where=False, **options),
    )
    for call in calls:
        with pytest.raises(RuntimeWarning, match="Mean of empty slice"):
            call(out=out)
        assert (out == 7).all()
        with pytest.warns(RuntimeWarning, match="Mean of empty slice"):
            found = call()
        assert np.isnan(found.real).all()
        assert np.isnan(found.imag).all() == (dtype == "c16")


def test_dask_means_of_no_items_are_those_in_memory():
    da = pytest.importorskip("dask.array")
    import bcast.dask

    data = np.array([[np.nan, np.nan], [1 + 2j, np.nan]])
    found = bcast.dask.nanmean(da.from_array(data, chunks=1), 1, exact=True).compute(scheduler="sync")
    with pytest.warns(RuntimeWarning, match="Mean of empty slice"):
        expected = bcast.nanmean(data, 1, exact=True)
    assert np.isnan(expected[0].imag)
    np.testing.assert_array_equal(found.view(float), expected.view(float))


@pytest.mark.parametrize("name", ["?", "i1", "u2", "i8", ">i4"])
def test_integers_under_a_mask_are_summed_by_the_core(name, monkeypatch):
    rng = np.random.default_rng(24)
    data = rng.integers(0, 2 if name == "?" else 100, (30, 7)).astype(name)
    mask = rng.random((30, 7)) < 0.5
    expected = [np.sum(data, axis, where=mask, initial=5) for axis in (0, 1, None)]
    for names in (bcast._api.statistics.NUMPYS, bcast._api.nans.NUMPYS):
        monkeypatch.delitem(names, "sum")
    for function in (bcast.sum, bcast.nansum):
        for axis, right in zip((0, 1, None), expected, strict=True):
            found = function(data, axis, where=mask, initial=5, exact=True)
            assert np.array_equal(found, right)
            assert found.dtype == right.dtype
            assert np.array_equal(function(data, axis, where=mask, exact=True), right - 5)
    out = np.zeros(7, "f4")
    assert bcast.sum(data, 0, out=out, where=mask, exact=True) is out
    assert np.array_equal(out, expected[0] - 5)
    with pytest.raises(TypeError, match="`where` expected bools, got int64"):
        bcast.sum(data, 0, where=mask.astype(int), exact=True)


@pytest.mark.parametrize("initial", [-0.0, None, 0.0, np.float32(-0.0)])
@pytest.mark.parametrize("dtype", ["f8", "f2", "c16"])
def test_the_sign_of_zero_is_numpys(initial, dtype):
    zeros = np.array([[-0.0, -0.0], [-0.0, 0.0], [1, -1], [-0.0, 7]], dtype)
    masks = True, np.array([[True, True]] * 3 + [[True, False]]), np.zeros((4, 2), bool)
    for mask in masks:
        start = 0.0 if initial is None and mask is not True else initial
        expected = np.sum(zeros, 1, where=mask, initial=start)
        for out in (None, np.empty(4, dtype)):
            found = bcast.sum(zeros, 1, where=mask, initial=start, out=out, exact=True)
            assert np.array_equal(np.signbit(found.real), np.signbit(expected.real))
            assert np.array_equal(found, expected)
    assert np.signbit(bcast.sum(zeros[0].real, initial=-0.0, exact=True))
    assert not np.signbit(bcast.sum(zeros[0].real, exact=True))


@pytest.mark.parametrize("axis", [None, 0, -1, (), (0,), (-1,), 1])
def test_axes_of_a_number_are_those_of_numpy(axis):
    for name in ("sum", "mean", "nansum", "nanmean"):
        for number in (np.float64(2.5), np.array(2.5)):
            found = []
            for module, options in ((bcast, {"exact": True}), (np, {})):
                for keepdims in (False, True):
                    try:
                        result = getattr(module, name)(number, axis, keepdims=keepdims, **options)
                    except np.exceptions.AxisError:
                        result = None
                    found.append(result)
            assert found[:2] == found[2:], name


@pytest.mark.parametrize("dtype", ["i8", "f8", "c16"])
def test_as_many_axes_as_numpy_has(dtype):
    data = np.arange(12).astype(dtype)
    whole, small = data.reshape((1,) * 62 + (3, 4)), data.reshape(3, 4)
    to = {} if dtype != "i8" else {"dtype": float}
    out = np.empty((1,) * 62 + (6,), dtype if dtype != "i8" else float)[..., ::2]
    for function in (bcast.sum, bcast.mean, bcast.nansum, bcast.nanmean):
        expected = function(small, 1, **to, exact=True)
        assert np.array_equal(np.ravel(function(whole, -1, **to, exact=True)), expected)
        assert np.array_equal(np.ravel(function(whole, -1, out=out, exact=True)), expected)
    mask = np.arange(4) > 1
    assert np.array_equal(
        np.ravel(bcast.mean(whole, -1, where=mask, exact=True)), bcast.mean(small, 1, where=mask, exact=True)
    )
    factor = (data + 0.5)[:4]
    expected = bcast.unbroadcast(small, (3, 1), times=factor, exact=True)
    found = bcast.unbroadcast(whole, (*whole.shape[:-1], 1), times=factor, exact=True)
    assert np.array_equal(np.ravel(found), expected[:, 0])
    assert np.array_equal(np.ravel(bcast.vecdot(whole, factor, exact=True)), bcast.vecdot(small, factor, exact=True))


def test_errors_name_the_wrong_argument():
    numbers, wide = np.ones((2, 3)), np.dtype(np.longdouble)
    calls = (
        ("dtype", lambda: bcast.sum(numbers, dtype=wide, exact=True)),
        ("out", lambda: bcast.sum(numbers, 0, out=np.zeros(3, wide), exact=True)),
        ("dtype", lambda: bcast.var(numbers, 0, dtype=wide, exact=True)),
        ("a", lambda: bcast.sum(numbers.astype(wide), exact=True)),
        ("x2", lambda: bcast.vecdot(numbers, numbers.astype(wide), exact=True)),
        ("out", lambda: bcast.vecdot(numbers, numbers, np.zeros(2, wide), exact=True)),
        ("times", lambda: bcast.unbroadcast(numbers, (3,), times=numbers.astype(wide), exact=True)),
        ("dtype", lambda: bcast.unbroadcast(numbers, (3,), dtype=wide, exact=True)),
        ("dtype", lambda: bcast.unbroadcast(numbers, (3,), times=numbers, dtype=wide, exact=True)),
        ("dtype", lambda: bcast.unrepeat(numbers, [1, 1], 0, dtype=wide, exact=True)),
    )
    for name, call in calls:
        with pytest.raises(TypeError, match=f"`{name}` expected numbers of at most 64 bits if `exact`, got {wide}"):
            call()


def test_out_of_dot_products_is_as_in_numpy():
    numbers, out = np.arange(6.0).reshape(2, 3), np.zeros(2)
    assert bcast.vecdot(numbers, numbers, out=(out,), exact=True) is out
    assert out.tolist() == [5, 50]
    assert bcast.vecdot(numbers, numbers, out=(None,), exact=True).tolist() == [5, 50]
    for wrong, error in (((out, out), ValueError), ("a", TypeError)):
        with pytest.raises(error) as numpys:
            np.vecdot(numbers, numbers, out=wrong)
        with pytest.raises(error) as own:
            bcast.vecdot(numbers, numbers, out=wrong, exact=True)
        assert str(own.value) == str(numpys.value)


def test_dot_products_of_package_floats_have_numpys_dtype():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    for dtype in (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn):
        numbers = np.array([1.5, 2, 3]).astype(dtype)
        try:
            expected = np.vecdot(numbers, numbers)
        except TypeError:
            with pytest.raises(TypeError):
                bcast.vecdot(numbers, numbers, exact=True)
            continue
        found = bcast.vecdot(numbers, numbers, exact=True)
        assert found.dtype == expected.dtype
        assert found == expected
