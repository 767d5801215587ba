"""Exact sums of products: results of `exact=True`, compared with fractions that are rounded once."""

import math
from fractions import Fraction

import numpy as np
import pytest
from _ways import SUMS, summed
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from test_errors import rows
from test_exact_sums import TERMS, nearest, rounded

import bcast

LARGEST, LEAST = np.finfo(float).max, 5e-324
WIDE = np.dtype(np.longdouble)


def of(make):
    return lambda rng, n: (make(rng, n), make(rng, n))


def cancelling(rng, n):
    """Pairs of equal products with other signs, beside small ones."""
    a, b = (rng.standard_normal(n // 3 + 1) * 2.0 ** rng.integers(-90, 90, n // 3 + 1) for _ in "ab")
    small = rng.standard_normal(n // 3 + 1) * 2.0**-160
    order = rng.permutation(n)
    return np.resize(np.concatenate([a, a, small]), n)[order], np.resize(np.concatenate([b, -b, small]), n)[order]


def halves_of_ties(rng, n):
    """Products that add up to the middle of two floats, or beside it."""
    terms = np.resize([1, 2.0**-53, rng.choice([0.0, 1, -1]) * 2.0**-300, 1, -1], n)
    order = rng.permutation(n)
    scale = 2.0 ** rng.integers(-9, 9, n)
    return (terms * scale)[order], (1 / scale)[order]


def beyond_the_range(rng, n):
    """Products that overflow, or have no float64, and cancel."""
    power = rng.choice([600, -600, 500, -530], n)
    a, b = rng.standard_normal(n) * 2.0**power, rng.standard_normal(n) * 2.0**power
    b[n // 2 : 2 * (n // 2)] = -b[: n // 2]
    a[n // 2 : 2 * (n // 2)] = a[: n // 2]
    return a, b


FACTORS = {name: of(make) for name, make in TERMS.items()} | {
    "that_cancel": cancelling,
    "of_ties": halves_of_ties,
    "beyond_the_range": beyond_the_range,
    "whose_errors_are_subnormal": of(lambda rng, n: rng.standard_normal(n) * 2.0 ** rng.choice([-480, -510], n)),
    "large_and_small": lambda rng, n: (rng.random(n) * LARGEST, rng.integers(-9, 9, n) * LEAST),
}
CUTS = {  # shapes of both factors, and axes that are summed
    "a_run": ((1000,), (1000,), (0,)),
    "a_long_run": ((9001,), (9001,), (0,)),
    "short_runs": ((40, 3), (40, 3), (1,)),
    "short_runs_of_one_factor": ((40, 3), (3,), (1,)),
    "runs": ((9, 70), (9, 70), (1,)),
    "runs_with_a_factor_each": ((9, 70), (9, 1), (1,)),
    "long_runs": ((3, 1030), (1030,), (1,)),
    "rows": ((66, 37), (66, 37), (0,)),
    "many_rows": ((300, 17), (300, 17), (0,)),
    "rows_by_a_row": ((66, 37), (37,), (0,)),
    "rows_by_a_column": ((66, 37), (66, 1), (0,)),
    "narrow_rows": ((500, 2), (500, 2), (0,)),
    "channels": ((4, 3, 60), (3, 1), (0, 2)),
    "single_terms": ((5, 7), (5, 7), ()),
    "all": ((3, 5, 7), (3, 5, 7), (0, 1, 2)),
}


def exact_sums(a, b, axes):
    """The exact sums of products, in C order."""
    products = np.vectorize(Fraction, otypes=[object])(a) * np.vectorize(Fraction, otypes=[object])(b)
    last = np.moveaxis(products, axes, range(-len(axes), 0))
    kept = [length for axis, length in enumerate(a.shape) if axis not in axes]
    return [sum(row, Fraction(0)) for row in last.reshape(math.prod(kept), -1).tolist()]


@pytest.mark.parametrize("make", **rows(FACTORS))
def test_sums_of_products_are_rounded_once(make):
    rng = np.random.default_rng(3)
    for name, (shape, other, axes) in CUTS.items():
        a, b = make(rng, math.prod(shape))
        a, b = a.reshape(shape), b[: math.prod(other)].reshape(other)
        expected = [rounded(exact) for exact in exact_sums(a, np.broadcast_to(b, shape), axes)]
        source = tuple(1 if axis in axes else length for axis, length in enumerate(shape))
        for leaf, threads in SUMS:
            for grad in (a, np.asfortranarray(a), np.repeat(a, 2, -1)[..., ::2]):
                with summed(leaf, threads):
                    found = bcast.unbroadcast(grad, source, times=b, exact=True)
                assert np.ravel(found).tolist() == expected, (name, leaf, threads, grad.strides)


@pytest.mark.parametrize("make", **rows(FACTORS))
def test_dot_products_are_rounded_once(make):
    rng = np.random.default_rng(4)
    for length in (1, 2, 3, 4, 5, 33, 700):
        a, b = (each.reshape(6, length) for each in make(rng, 6 * length))
        expected = [rounded(exact) for exact in exact_sums(a, b, (1,))]
        assert bcast.vecdot(a, b, exact=True).tolist() == expected
        assert bcast.vecdot(a.T.copy(), b.T, axis=0, exact=True).tolist() == expected
        out = np.zeros((6, 2))
        assert np.shares_memory(bcast.vecdot(a, b, out[:, 1], exact=True), out)
        assert out[:, 1].tolist() == expected
        alone = bcast.vecdot(a[0], b[0], exact=True)
        assert type(alone) is np.float64
        assert alone == expected[0]
        by_one = [rounded(exact) for exact in exact_sums(a, np.broadcast_to(b[2], a.shape), (1,))]
        assert bcast.vecdot(a, b[2], exact=True).tolist() == by_one
        assert bcast.vecdot(b[2], a, exact=True).tolist() == by_one


@pytest.mark.parametrize("leaf", [leaf for leaf, threads in SUMS if threads == 1])
def test_many_products_are_rounded_once(leaf):
    rng = np.random.default_rng(5)
    for shape, axis in (((20_011,), 0), ((3, 9001), 1), ((400, 150), 0), ((3000, 3), 0)):
        a, b = rng.standard_normal(shape), rng.standard_normal(shape)
        expected = [rounded(exact) for exact in exact_sums(a, b, (axis,))]
        source = tuple(1 if at == axis else length for at, length in enumerate(shape))
        with summed(leaf, 2):
            assert np.ravel(bcast.unbroadcast(a, source, times=b, exact=True)).tolist() == expected


@pytest.mark.parametrize("name", ["f2", "f4", "c8", "c16", "i4", "i8", "u8"])
@pytest.mark.parametrize("other", ["f8", "f4", "i8", "c16"])
def test_products_of_all_dtypes_are_rounded_once(name, other):
    rng = np.random.default_rng(6)
    factors = []
    for dtype in (np.dtype(name), np.dtype(other)):
        bits = rng.integers(0, 256, (30, 9, dtype.itemsize), dtype=np.uint8)
        items = np.ascontiguousarray(bits).view(dtype)[..., 0]
        factors.append(np.where(np.isfinite(items), items, 1).astype(dtype))
    a, b = factors
    found = bcast.unbroadcast(a, (9,), times=b, exact=True)
    assert found.dtype == np.multiply(a[:0], b[:0]).dtype
    if found.dtype.kind in "iu":
        assert np.array_equal(found, bcast.unbroadcast(a, (9,), times=b))
        return

    def exact(first, second):
        return np.array(exact_sums(first.astype(object), second.astype(object), (0,)), object)

    real, imag = exact(a.real, b.real) - exact(a.imag, b.imag), exact(a.real, b.imag) + exact(a.imag, b.real)
    real = np.array([nearest(each, found.real.dtype) for each in real])
    assert np.array_equal(found.real, real)
    dots = bcast.vecdot(b, a, axis=0, exact=True)
    if found.dtype.kind == "c":
        assert np.array_equal(found.imag, np.array([nearest(each, found.real.dtype) for each in imag]))
        real = exact(a.real, b.real) + exact(a.imag, b.imag)
        assert np.array_equal(dots.real, np.array([nearest(each, found.real.dtype) for each in real]))
    else:
        assert np.array_equal(dots, real)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ([math.inf, 1.0], [2.0, LARGEST], math.inf),
        ([math.inf, -math.inf], [1.0, 1.0], math.nan),
        ([math.inf, 1.0], [0.0, 1.0], math.nan),
        ([math.nan, 1.0], [0.0, 1.0], math.nan),
        ([LARGEST, LARGEST, 3.0], [LARGEST, -LARGEST, 1.0], 3.0),
        ([LARGEST, LARGEST], [2.0, -1.0], LARGEST),
        ([LARGEST, 1.0], [2.0, 1.0], math.inf),
        ([LARGEST, LEAST], [LEAST, 1.0], rounded(Fraction(LARGEST) * Fraction(LEAST) + Fraction(LEAST))),
        ([LEAST, LEAST], [0.25, 0.25], 0.0),
        ([LEAST, LEAST, LEAST], [0.25, 0.25, 2.0**-60], LEAST),
    ],
)
def test_infinities_and_overflow_are_those_of_the_exact_sum(a, b, expected):
    a, b = np.array(a), np.array(b)
    for times in (1, 9, 300):
        many, others = np.tile(a, (times, 1)), np.tile(b, (times, 1))
        for found in (
            bcast.vecdot(many, others, exact=True),
            bcast.vecdot(many.T.copy(), others.T.copy(), axis=0, exact=True),
            bcast.unbroadcast(many, (times, 1), times=others, exact=True)[:, 0],
        ):
            assert np.array_equal(found, [expected] * times, equal_nan=True)


def test_factors_that_repeat_are_multiplied():
    a, b = np.array([[1e300, 2.0**-600], [3.0, 0.1]]), np.array([[1e300, 2.0**-600], [0.1, 0.7]])
    for times in (3, 2**40 - 1):
        many, others = (np.broadcast_to(each, (times, 2, 2)) for each in (a, b))
        expected = [rounded(exact * times) for exact in exact_sums(a, b, (0,))]
        assert bcast.unbroadcast(many, (2,), times=others, exact=True).tolist() == expected


def test_a_narrower_result_is_rounded_once():
    step = float(np.finfo("f4").eps)
    for below in (0.0, 2.0**-100, -(2.0**-100)):
        a, b = np.array([[1.0, step / 2, below]] * 5), np.array([0.5, 0.5, 0.5])
        found = bcast.unbroadcast(a, (5, 1), times=b, dtype="f4", exact=True)
        assert found.tolist() == [[0.5 + step / 2 * (below > 0)]] * 5


def test_dtypes_that_cannot_be_rounded_once_are_refused_before_any_write():
    numbers, out = np.ones((4, 3)), np.full(4, 7.0)
    with pytest.raises(ValueError, match="`exact` expected False with other keywords"):
        bcast.vecdot(numbers, numbers, out, dtype=float, exact=True)
    with pytest.raises(TypeError, match=f"`x2` expected numbers of at most 64 bits if `exact`, got {WIDE}"):
        bcast.vecdot(numbers, numbers.astype(WIDE), out, exact=True)
    with pytest.raises(TypeError, match="`x1` expected an array of NumPy's own class if `exact`"):
        bcast.vecdot(np.ma.masked_array(numbers), numbers, out, exact=True)
    with pytest.raises(ValueError, match="mismatch"):
        bcast.vecdot(numbers, numbers[:, :2], out, exact=True)
    with pytest.raises(TypeError, match="`grad` expected numbers of at most 64 bits if `exact`"):
        bcast.unbroadcast(numbers.astype(WIDE), (4, 1), times=numbers, exact=True)
    with pytest.raises(TypeError, match="`times` expected numbers of at most 64 bits if `exact`"):
        bcast.unbroadcast(numbers, (4, 1), times=numbers.astype(WIDE), dtype=float, exact=True)
    assert out.tolist() == [7, 7, 7, 7]
    assert bcast.vecdot(np.arange(3), np.arange(3), exact=True) == 5
    assert bcast.vecdot(numbers[:, :0], numbers[:, :0], exact=True).tolist() == [0] * 4


@settings(deadline=None)
@given(st.data())
def test_exact_dot_products_are_those_of_fractions(data):
    numbers = st.floats(allow_nan=False, allow_infinity=False, width=64)
    shape = data.draw(st.tuples(st.integers(1, 5), st.integers(1, 9)))
    a, b = (data.draw(arrays(np.float64, shape, elements=numbers)) for _ in "ab")
    for axis in (0, 1):
        expected = [rounded(exact) for exact in exact_sums(a, b, (axis,))]
        assert bcast.vecdot(a, b, axis=axis, exact=True).tolist() == expected


def test_dot_products_of_dask_arrays_are_those_in_memory():
    da = pytest.importorskip("dask.array")
    import bcast.dask

    a, b = (each.reshape(20, 30) for each in cancelling(np.random.default_rng(7), 600))
    expected = bcast.vecdot(a, b, exact=True)
    for chunks in ((3, 7), (20, 1), (1, 30)):
        found = bcast.dask.vecdot(da.from_array(a, chunks), da.from_array(b, chunks), exact=True)
        assert np.array_equal(found.compute(scheduler="sync"), expected)


@pytest.mark.parametrize("dtype", ["i8", "u8"])
@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinities_times_integers_are_infinite(dtype, value):
    """Also where one half of an integer is 0, or has another sign."""
    numbers = [1, 5, 2**32, 2**32 + 1, 2**60 + 1] + (
        [-1, -5, -(2**32), -(2**32) - 1, -(2**63)] if dtype == "i8" else []
    )
    x, y = np.full((len(numbers), 1), value), np.array(numbers, dtype)[:, np.newaxis]
    expected = (value * np.sign(numbers)).tolist()
    assert bcast.vecdot(x, y, exact=True).tolist() == expected
    assert bcast.unbroadcast(y, y.shape, times=x, exact=True, dtype=float)[:, 0].tolist() == expected
    assert np.isnan(bcast.vecdot(x[:1], np.zeros((1, 1), dtype), exact=True)).all()


def test_vecdot_casts_to_out_as_numpy_does():
    x, out = np.array([1.5, 2.5]), np.zeros((), int)
    with pytest.raises(TypeError, match="same_kind"):
        bcast.vecdot(x, x, out=out, exact=True)
    assert out == 0
