"""Exact sums and means: results of `exact=True`, compared with fractions that are rounded once."""

import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from _ways import SUMS, blocks_of, summed
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from test_errors import rows

import bcast

LARGEST = np.finfo(float).max
WIDE = np.dtype(np.longdouble)


def with_any_bits(rng, n):
    terms = rng.integers(0, 2**64, n, dtype=np.uint64).view(float)
    return np.where(np.isfinite(terms), terms, 1)


def cancelling(rng, n):
    large = rng.standard_normal(n // 3 + 1) * 2.0 ** rng.integers(-50, 50, n // 3 + 1)
    small = rng.standard_normal(n // 3 + 1) * 2.0**-60
    return rng.permutation(np.resize(np.concatenate([large, -large, small]), n))


TERMS = {
    "of_any_bits": with_any_bits,
    "cancelling": cancelling,
    "powers_of_two": lambda rng, n: rng.choice([1.0, -1], n) * 2.0 ** rng.integers(-120, 120, n),
    "ties": lambda rng, n: rng.permutation(
        np.resize([1, 2.0**-53, 0, 0, rng.choice([0.0, 1, -1]) * 2.0**-105, 1, -1], n)
    ),
    "large": lambda rng, n: rng.choice([1.0, -1], n) * LARGEST * rng.choice([1, 0.5, 0.25], n),
    "subnormal": lambda rng, n: rng.integers(-99, 99, n) * 5e-324 * rng.choice([1, 2.0**40], n),
    "of_many_sizes": lambda rng, n: rng.standard_normal(n) * 10.0 ** rng.integers(-30, 30, n),
    "uniform": lambda rng, n: rng.random(n),
    "normal": lambda rng, n: rng.standard_normal(n),
    "tenths": lambda rng, n: rng.integers(-1000, 1000, n) / 10,
    "growing": lambda rng, n: np.exp(np.arange(n) / 9.0 % 40) * rng.choice([1, -1, 0], n),
    "zeros": lambda rng, n: rng.choice([0.0, -0.0], n),
}
CUTS = {  # shapes, and axes that are summed
    "a_run": ((1000,), (0,)),
    "a_long_run": ((5003,), (0,)),
    "short_runs": ((40, 3), (1,)),
    "runs": ((9, 70), (1,)),
    "long_runs": ((5, 1030), (1,)),
    "interleaved": ((6, 37, 2), (1,)),
    "few_rows": ((7, 60), (0,)),
    "rows": ((66, 37), (0,)),
    "many_rows": ((600, 17), (0,)),
    "narrow_rows": ((500, 2), (0,)),
    "channels": ((4, 3, 90), (0, 2)),
    "pools": ((8, 2, 6, 3), (1, 3)),
    "all": ((3, 5, 7), (0, 1, 2)),
}


def rounded(exact):
    """A fraction as the nearest float, ties to even: Python divides integers so."""
    try:
        return exact.numerator / exact.denominator
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def exact_sums(terms, axes):
    """The exact sums, in C order, and how many terms each has."""
    count = math.prod(terms.shape[axis] for axis in axes)
    last = np.moveaxis(terms, axes, range(-len(axes), 0)).reshape(terms.size // max(count, 1), count)
    return [sum(map(Fraction, row), Fraction(0)) for row in last.tolist()], count


@pytest.mark.parametrize(("leaf", "threads"), SUMS)
@pytest.mark.parametrize("make", **rows(TERMS))
def test_sums_and_means_are_rounded_once(make, leaf, threads):
    rng = np.random.default_rng(3)
    for name, (shape, axes) in CUTS.items():
        terms = make(rng, math.prod(shape)).reshape(shape)
        sums, count = exact_sums(terms, axes)
        source = tuple(1 if axis in axes else length for axis, length in enumerate(shape))
        for grad in (terms, np.asfortranarray(terms), np.repeat(terms, 2, -1)[..., ::2]):
            with summed(leaf, threads):
                total, mean = bcast.sum(grad, axes, exact=True), bcast.mean(grad, axes, exact=True)
                adjoint = bcast.unbroadcast(grad, source, exact=True)
            assert np.ravel(total).tolist() == [rounded(exact) for exact in sums], (name, grad.strides)
            assert np.ravel(mean).tolist() == [rounded(exact / count) for exact in sums], (name, grad.strides)
            assert np.ravel(adjoint).tolist() == np.ravel(total).tolist()


def jumping(rng, n):
    """Terms whose size changes at places that no block ends at."""
    return rng.standard_normal(n) * 10.0 ** np.resize(np.repeat(rng.integers(-290, 290, 9), 1100), n)


def sparse(rng, n):
    return np.where(rng.random(n) < 0.002, rng.standard_normal(n) * 2.0 ** rng.integers(-80, 80, n), 0)


def of_columns(rng, n):
    """Columns of sizes of their own, if rows have 150 of them."""
    return rng.standard_normal(n) * 2.0 ** np.resize(rng.integers(-1000, 900, 150), n)


MANY_TERMS = {
    "uniform": lambda rng, n: rng.random(n),
    "normal": lambda rng, n: rng.standard_normal(n),
    "far_from_zero": lambda rng, n: 1e9 + rng.random(n),
    "jumping": jumping,
    "sparse": sparse,
    "of_columns": of_columns,
    "cancelling": cancelling,
    "integers": lambda rng, n: rng.integers(-(2**53), 2**53, n).astype(float),
    "growing": lambda rng, n: np.exp(np.arange(n) / 40.0 % 600) * rng.choice([1, -1], n),
    "tiny": lambda rng, n: rng.standard_normal(n) * 2.0**-1010,
    "huge": lambda rng, n: rng.standard_normal(n) * 2.0**1005,
}
MANY_CUTS = [((20_003,), 0), ((3, 5001), 1), ((800, 150), 0), ((45, 150), 0), ((6000, 3), 0), ((3, 140, 31), 1)]


@pytest.mark.parametrize(("leaf", "threads"), SUMS)
@pytest.mark.parametrize("make", **rows(MANY_TERMS))
def test_sums_of_many_terms_are_those_of_fsum(make, leaf, threads):
    rng = np.random.default_rng(8)
    for shape, axis in MANY_CUTS:
        terms = make(rng, math.prod(shape)).reshape(shape)
        with summed(leaf, threads):
            found = bcast.sum(terms, axis, exact=True)
        expected = np.apply_along_axis(math.fsum, axis, terms)
        assert np.array_equal(found, expected), shape


def with_one(size):
    """Ordinary terms, of which one makes additions round, at any place."""

    def make(rng, n):
        terms = rng.standard_normal(n)
        terms[rng.integers(n)] = size
        return terms

    return make


NARROW_TERMS = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "uniform": lambda rng, n: rng.random(n),
    "tenths": lambda rng, n: rng.integers(-1000, 1000, n) / 10,
    "one_large": with_one(3e38),
    "one_tiny": with_one(1e-44),
    "one_infinite": with_one(np.inf),
    "one_nan": with_one(np.nan),
    "of_many_sizes": lambda rng, n: rng.standard_normal(n) * 10.0 ** rng.integers(-36, 36, n),
    "of_blocks": lambda rng, n: rng.standard_normal(n) * 10.0 ** np.resize(np.repeat([0, -30, 2, 30], 1100), n),
    "zeros": lambda rng, n: rng.choice([0.0, -0.0], n),
    "negative_zeros": lambda rng, n: rng.choice([-0.0], n),
}
NARROW_CUTS = [
    ((9000, 3), 0), ((3000, 3), 1), ((70, 9), 1), ((130, 1030), 0), ((700, 17), 0), ((9, 2100), 0), ((4, 5000), 1),
    ((20_003,), 0), ((3, 3000, 2), 1), ((2, 2500, 4), 1), ((40, 24, 2), 1), ((5, 7, 600), (0, 2)), ((9, 2048), 1),
]  # fmt: skip


def fsum(terms):
    """The sum, rounded once; of infinities and NaN, what their sum is."""
    return math.fsum(terms) if np.isfinite(terms).all() else terms.sum()


@pytest.mark.parametrize(("leaf", "threads"), SUMS)
@pytest.mark.parametrize("make", **rows(NARROW_TERMS))
def test_blocks_of_narrow_terms_that_round_are_summed_again(make, leaf, threads):
    """Plain sums stand for the blocks in which no addition rounds: one that rounds changes no bit of a result."""
    rng = np.random.default_rng(15)
    for shape, axis in NARROW_CUTS:
        terms = make(rng, math.prod(shape)).astype("f4").reshape(shape)
        axes = (axis,) if isinstance(axis, int) else axis
        last = np.moveaxis(terms, axes, range(-len(axes), 0))
        last = last.reshape(*last.shape[: terms.ndim - len(axes)], -1).astype("f8")
        expected = np.apply_along_axis(fsum, -1, last)
        midway = np.asarray(expected).view("u8") % 2**29 == 2**28  # of two float32, as far as float64 tells
        with summed(leaf, threads):
            wide, narrow = bcast.sum(terms, axis, dtype="f8", exact=True), bcast.sum(terms, axis, exact=True)
            zeros = [bcast.sum(np.copysign(np.float32(0), terms), axis, exact=exact) for exact in (False, True)]
        np.testing.assert_array_equal(wide, expected, str(shape))
        np.testing.assert_array_equal(narrow[~midway], expected[~midway].astype("f4"), str(shape))
        np.testing.assert_array_equal(*map(np.signbit, zeros), str(shape))


@pytest.mark.parametrize(("leaf", "threads"), SUMS)
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_sums_of_negative_zeros_are_zero(dtype, leaf, threads):
    with summed(leaf, threads):
        for shape, axis in [*NARROW_CUTS, ((9, 50), 0), ((9,), 0)]:
            zeros = np.full(shape, -0.0, dtype)
            results = [bcast.sum(zeros, axis, dtype=to, exact=True) for to in ("f4", "f8")]
            results += [bcast.nansum(zeros, axis, exact=True), bcast.mean(zeros, axis, exact=True)]
            assert not any(np.signbit(each).any() for each in results), (shape, axis)
        rows = np.full((12, 3), -0.0, dtype)
        segments = [bcast.unrepeat(rows, counts, axis=0, exact=True) for counts in (3, [2, 4, 6])]
        assert not any(np.signbit(each).any() for each in (*segments, bcast.unbroadcast(rows, (1, 3), exact=True)))


@pytest.mark.parametrize(("leaf", "threads"), SUMS)
def test_many_narrow_terms_are_rounded_once(leaf, threads):
    """Sums of integers that are often halfway between two float32, and sums that float64 holds exactly."""
    rng = np.random.default_rng(9)
    for shape, axis in MANY_CUTS:
        for terms in (rng.integers(-9, 200_000, shape).astype("f4"), rng.random(shape, "f4")):
            with summed(leaf, threads):
                total, mean = bcast.sum(terms, axis, exact=True), bcast.mean(terms, axis, exact=True)
            sums = terms.sum(axis, dtype=float)
            assert np.array_equal(total, sums.astype("f4"))
            assert np.array_equal(mean, (sums / shape[axis]).astype("f4"))
            assert np.array_equal(bcast.sum(terms, axis, exact=True, dtype=float), sums)


@pytest.mark.parametrize(
    ("special", "expected"),
    [([math.inf], math.inf), ([-math.inf], -math.inf), ([math.nan], math.nan), ([math.inf, -math.inf], math.nan)],
)
def test_a_special_term_among_many_makes_its_sum_special(special, expected):
    terms = np.random.default_rng(10).random((700, 150))
    terms[[20, 650][: len(special)], 77] = special
    for grad in (terms, terms.astype("f4"), terms.astype("f2"), np.asfortranarray(terms)):
        of_columns, total = bcast.sum(grad, 0, exact=True), bcast.sum(grad, exact=True)
        assert np.array_equal([of_columns[77], total], [expected, expected], equal_nan=True)
        assert np.isfinite(np.delete(of_columns, 77)).all()


@pytest.mark.parametrize("make", **rows(TERMS))
def test_runs_of_counts_are_rounded_once(make):
    rng = np.random.default_rng(4)
    counts = np.array([3, 0, 1, 40, 7, 2, 2, 2, 9, 300, 5])
    for width in (1, 2, 3, 9):
        terms = make(rng, counts.sum() * width).reshape(-1, width)
        for leaf, threads in SUMS:
            with summed(leaf, threads):
                found = bcast.unrepeat(terms, counts, axis=0, exact=True)
            for k, end in enumerate(np.cumsum(counts)):
                if counts[k] == 0:
                    assert not found[k].any()
                    continue
                exact = exact_sums(terms[end - counts[k] : end], (0,))[0]
                assert found[k].tolist() == [rounded(each) for each in exact]


@pytest.mark.parametrize("make", **rows(TERMS))
def test_repeated_terms_are_rounded_once(make):
    terms = make(np.random.default_rng(5), 60).reshape(6, 10)
    sums = exact_sums(terms, (1,))[0]
    for times in (2, 3, 10**6 + 1, 2**40 - 1):
        grad = np.broadcast_to(terms[:, np.newaxis], (6, times, 10))
        assert bcast.sum(grad, (1, 2), exact=True).tolist() == [rounded(exact * times) for exact in sums]
        assert bcast.mean(grad, (1, 2), exact=True).tolist() == [rounded(exact / 10) for exact in sums]


@pytest.mark.parametrize("make", **rows(TERMS))
def test_numbers_beside_nan_are_rounded_once(make):
    rng = np.random.default_rng(6)
    terms = make(rng, 900).reshape(30, 30)
    with_nan = np.where(rng.random(terms.shape) < 0.1, np.nan, terms)
    expected = [rounded(sum(map(Fraction, row[row == row].tolist()), Fraction(0))) for row in with_nan]
    assert bcast.nansum(with_nan, 1, exact=True).tolist() == expected
    assert bcast.nansum(terms, 1, exact=True).tolist() == bcast.sum(terms, 1, exact=True).tolist()


@pytest.mark.parametrize("name", ["f4", "f2"])
def test_narrower_results_are_rounded_once(name):
    """Beside the middle of two narrow numbers, where rounding to float64 first would leave a tie."""
    step = np.finfo(name).eps
    for below in (0.0, 2.0**-60, -(2.0**-60), 2.0**-200):
        for terms in ([1, step / 2, below], [1 + step, step / 2, below], [-1, -step / 2, below]):
            many = np.tile(terms, (5, 1))
            right = 1 + step * (below > 0) if terms[0] == 1 else 1 + step * (1 + (below >= 0)) if terms[0] > 0 else None
            right = -(1 + step * (below < 0)) if right is None else right
            assert bcast.sum(many, 1, name, exact=True).tolist() == [right] * 5
            assert bcast.sum(many.T.copy(), 0, name, exact=True).tolist() == [right] * 5


def test_a_narrower_mean_is_rounded_once():
    step = float(np.finfo("f4").eps)
    for below in (0.0, 2.0**-60, -(2.0**-60)):
        terms = np.tile([3, 3 * step / 2, 3 * below], (4, 1))
        assert bcast.mean(terms, 1, "f4", exact=True).tolist() == [1 + step * (below > 0)] * 4


@pytest.mark.parametrize("name", ["f2", "f4", "c8", "c16", "i1", "u2", "i4", "i8", "u8"])
@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)])
def test_all_dtypes_of_numbers_are_rounded_once(name, axes):
    rng = np.random.default_rng(7)
    dtype = np.dtype(name)
    bits = rng.integers(0, 256, (40, 9, dtype.itemsize), dtype=np.uint8)
    terms = np.ascontiguousarray(bits).view(dtype)[..., 0]
    terms = np.where(np.isfinite(terms), terms, 1).astype(dtype)
    count = math.prod(terms.shape[axis] for axis in axes)

    def means(parts):
        exact = [each / count for each in exact_sums(parts.astype(object), axes)[0]]
        return np.array([nearest(each, result.real.dtype) for each in exact])

    for order in "CF":
        result = bcast.mean(np.array(terms, order=order), axes, exact=True)
        assert result.dtype == np.mean(terms[:1, :1]).dtype
        assert np.array_equal(np.ravel(result.real), means(terms.real), equal_nan=True)
        if dtype.kind == "c":
            assert np.array_equal(np.ravel(result.imag), means(terms.imag), equal_nan=True)
    if dtype.kind in "iu":
        assert np.array_equal(bcast.sum(terms, axes, exact=True), np.sum(terms, axes))


def nearest(exact, dtype):
    """A fraction as the nearest number of a dtype, ties to even, by a search among neighbours."""
    with np.errstate(over="ignore"):
        guess = dtype.type(rounded(exact))
    if dtype == np.float64 or not np.isfinite(guess):
        return guess
    neighbours = [np.nextafter(guess, dtype.type(-np.inf)), guess, np.nextafter(guess, dtype.type(np.inf))]
    is_odd = [int(each.view(f"u{dtype.itemsize}")) & 1 for each in neighbours]
    away = [abs(Fraction(float(each)) - exact) if np.isfinite(each) else math.inf for each in neighbours]
    return neighbours[min(range(3), key=lambda i: (away[i], is_odd[i]))]


@pytest.mark.parametrize("make", **rows(TERMS))
def test_means_of_numbers_beside_nan_are_rounded_once(make):
    rng = np.random.default_rng(8)
    terms = np.where(rng.random((40, 12)) < 0.3, np.nan, make(rng, 480).reshape(40, 12))
    terms[3] = 1.5
    numbers = [list(map(Fraction, row[row == row].tolist())) for row in terms]
    expected = [rounded(sum(row, Fraction(0)) / len(row)) for row in numbers]
    assert bcast.nanmean(terms, 1, exact=True).tolist() == expected
    assert bcast.nanmean(terms.T.copy(), 0, exact=True).tolist() == expected


def test_a_mean_of_only_nan_is_nan_with_a_warning():
    terms = np.array([[np.nan, np.nan], [1, np.nan]])
    with pytest.warns(RuntimeWarning, match="Mean of empty slice"):
        result = bcast.nanmean(terms, 1, exact=True)
    assert np.array_equal(result, [np.nan, 1], equal_nan=True)
    assert bcast.nansum(terms, 1, exact=True).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        ([math.inf, 1.0, -1e308], math.inf),
        ([math.inf, -math.inf, 1.0], math.nan),
        ([math.nan, math.inf, 1.0], math.nan),
        ([LARGEST, LARGEST, -LARGEST], LARGEST),
        ([LARGEST, LARGEST, 1.0], math.inf),
        ([-LARGEST, -LARGEST, LARGEST, LARGEST], 0),
    ],
)
def test_infinities_and_overflow_are_those_of_the_exact_sum(terms, expected):
    for shape in ((-1,), (-1, 1), (1, -1)):
        array = np.array(terms).reshape(shape)
        assert np.array_equal(bcast.sum(array, exact=True), expected, equal_nan=True)
        many = np.repeat(array.reshape(-1, 1), 9, 1)
        for data, axis in ((many, 0), (many.T.copy(), 1)):
            assert np.array_equal(bcast.sum(data, axis, exact=True), [expected] * 9, equal_nan=True)
            mean = bcast.mean(data, axis, exact=True)[0]
            if np.isfinite(terms).all():
                assert mean == rounded(sum(map(Fraction, map(float, terms))) / len(terms))
            else:
                assert np.array_equal(mean, expected, equal_nan=True)


def test_the_result_goes_to_out_and_keeps_axes():
    terms = np.array([[1e16, 1.0, -1e16], [2.0, 3.0, 4.0]])
    out = np.full((2, 2), 7.0)
    assert bcast.sum(terms, 1, out=out[:, 1], exact=True) is not None
    assert out.tolist() == [[7, 1], [7, 9]]
    assert bcast.sum(terms, 1, keepdims=True, exact=True).tolist() == [[1], [9]]
    assert type(bcast.sum(terms, exact=True)) is np.float64
    assert bcast.sum(terms[:, :1], 1, exact=True).tolist() == [1e16, 2]
    assert bcast.sum(terms[:0], 0, exact=True).tolist() == [0, 0, 0]
    assert bcast.unbroadcast(terms, (2, 3), exact=True).tolist() == terms.tolist()
    narrow = np.zeros(2, np.float32)
    bcast.sum(terms, 1, out=narrow, exact=True)
    assert narrow.tolist() == [1, 9]


def test_dtypes_that_cannot_be_rounded_once_are_refused_before_any_write():
    numbers, out = np.ones((4, 3)), np.full(3, 7.0)
    with pytest.raises(TypeError, match=f"`a` expected numbers of at most 64 bits if `exact`, got {WIDE}"):
        bcast.sum(numbers.astype(np.longdouble), 0, out=out, exact=True)
    with pytest.raises(TypeError, match=r"`out` expected an array of NumPy's own class if `exact`, got .*float64"):
        bcast.sum(numbers, 0, out=np.float64(1), exact=True)
    with pytest.raises(TypeError, match="`a` expected an array of NumPy's own class if `exact`"):
        bcast.mean(np.ma.masked_array(numbers), 0, exact=True)
    with pytest.raises(TypeError, match=f"`grad` expected numbers of at most 64 bits if `exact`, got {WIDE}"):
        bcast.unbroadcast(numbers.astype(np.longdouble), (3,), exact=True)
    with pytest.raises(ValueError, match="`repeats` expected counts along one axis if `exact`"):
        bcast.unrepeat(numbers, ([1, 3], [2, 1]), (0, 1), exact=True)
    assert out.tolist() == [7, 7, 7]


@settings(deadline=None)
@given(st.data())
def test_exact_sums_are_those_of_fsum(data):
    shape = data.draw(array_shapes(max_dims=4, max_side=6))
    numbers = st.floats(allow_nan=False, allow_infinity=False, width=64)
    terms = data.draw(arrays(np.float64, shape, elements=numbers))
    axes = tuple(data.draw(st.sets(st.integers(0, len(shape) - 1), min_size=1)))
    terms = terms.transpose(data.draw(st.permutations(range(len(shape)))))
    axes = tuple(axis for axis in axes if axis < terms.ndim)
    sums, count = exact_sums(terms, axes)
    assert np.ravel(bcast.sum(terms, axes, exact=True)).tolist() == [rounded(exact) for exact in sums]
    assert np.ravel(bcast.mean(terms, axes, exact=True)).tolist() == [rounded(exact / count) for exact in sums]


@pytest.mark.parametrize("make", **rows({name: make for name, make in TERMS.items() if name != "large"}))
def test_chunks_of_dask_arrays_change_no_bit(make):
    da = pytest.importorskip("dask.array")
    import bcast.dask

    rng = np.random.default_rng(9)
    terms = make(rng, 1200).reshape(120, 10)
    sums, count = exact_sums(terms, (0,))
    for _ in range(60):
        chunks = tuple(int(rng.integers(1, length + 1)) for length in terms.shape)
        grad = da.from_array(terms, chunks=chunks)
        every = int(rng.integers(2, 9))
        for function, divisor in ((bcast.dask.sum, 1), (bcast.dask.mean, count)):
            found = function(grad, 0, exact=True, split_every=every).compute(scheduler="sync")
            assert found.tolist() == [rounded(exact / divisor) for exact in sums], chunks
    adjoint = bcast.dask.unbroadcast(grad, (10,), exact=True).compute(scheduler="sync")
    assert adjoint.tolist() == [rounded(exact) for exact in sums]
    with_nan = da.from_array(np.vstack([terms, np.full(10, np.nan)]), chunks=7)
    found = bcast.dask.nansum(with_nan, 0, exact=True).compute(scheduler="sync")
    assert found.tolist() == [rounded(exact) for exact in sums]


@pytest.mark.parametrize("order", ["C", "F", (1, 0, 2), (2, 0, 1)])
def test_means_of_numbers_in_any_order_of_axes(order):
    data = np.random.default_rng(10).standard_normal((3, 4, 5))
    data = np.array(data, order=order) if isinstance(order, str) else data.transpose(order)
    for axes in (0, 1, 2, (0, 1), (0, 2), (1, 2), None):
        expected = bcast.mean(np.ascontiguousarray(data), axes, exact=True)
        assert np.array_equal(bcast.nanmean(data, axes, exact=True), expected), axes


def test_means_of_many_repeated_terms():
    n = 1184869193
    terms = np.array([[2 * 33493853 * 2.0**-20], [-(2.0**-60)]])
    exact = sum(map(Fraction, terms[:, 0].tolist())) / 2
    assert bcast.mean(np.broadcast_to(terms, (2, n)), dtype="f4", exact=True) == nearest(exact, np.dtype("f4"))
    with pytest.raises(ValueError, match="at most 2\\*\\*53 terms"):
        bcast.mean(np.broadcast_to(terms, (2, 2**54 + 1)), exact=True)
    integers = np.broadcast_to(np.array([2**62 + 1, 3])[:, np.newaxis], (2, 2**40))
    assert bcast.mean(integers, exact=True) == rounded(Fraction(2**62 + 4, 2))


def test_means_of_dask_arrays_in_integers_and_of_nothing():
    da = pytest.importorskip("dask.array")
    import bcast.dask

    terms = da.from_array(np.array([1, 2, 4, 6]), chunks=2)
    assert bcast.dask.mean(terms, dtype=int, exact=True).compute() == 3
    wide = da.from_array(np.array([[2**60 + 2**36 + 1]]), chunks=1)
    assert bcast.dask.mean(wide, 0, "f4", exact=True).compute()[0] == np.float32(2**60 + 2**37)
    with np.errstate(invalid="ignore"):
        assert np.isnan(bcast.dask.mean(da.zeros((0, 3), chunks=(1, 3)), 0, exact=True).compute()).all()


WITHOUT_OVERFLOW = {name: make for name, make in TERMS.items() if name != "large"}  # of the sum of a part


@pytest.mark.parametrize("nbytes", [1 << 12, 1 << 20])
@pytest.mark.parametrize("make", **rows(WITHOUT_OVERFLOW))
def test_chains_round_exact_sums_once(make, nbytes):
    """Blocks pass on their sums as expansions."""
    terms = make(np.random.default_rng(11), 40 * 31).reshape(40, 31)
    factors = np.array([2.0**-7, -1.0, 0.75] * 13 + [0.5])[:, np.newaxis]
    products = terms * factors
    for axis in (0, 1, (0, 1)):
        sums, count = exact_sums(products, np.atleast_1d(axis))
        with blocks_of(nbytes):
            found = bcast.chain(terms, (np.multiply, factors), partial(bcast.sum, axis=axis, exact=True))
            mean = partial(bcast.mean, axis=axis, exact=True, keepdims=True)
            means = bcast.chain(terms, (np.multiply, factors), mean)
        assert np.ravel(found).tolist() == [rounded(exact) for exact in sums]
        assert np.ravel(means).tolist() == [rounded(exact / count) for exact in sums]
        assert means.ndim == 2


def test_chains_round_exact_sums_of_other_dtypes_once():
    rng = np.random.default_rng(12)
    for terms in (
        rng.integers(-(2**62), 2**62, (60, 50)),
        rng.random((60, 50), "f4") * 2**30,
        rng.standard_normal((60, 50)) + 1j * rng.standard_normal((60, 50)) * 2.0**50,
        rng.integers(0, 255, (60, 50)).astype("u1"),
    ):
        for function in (bcast.sum, bcast.mean):
            for axis in (0, 1, None):
                with blocks_of(1 << 12):
                    found = bcast.chain(terms, np.negative, partial(function, axis=axis, exact=True))
                expected = function(np.negative(terms), axis, exact=True)
                assert np.array_equal(found, expected)
                assert found.dtype == expected.dtype
    with pytest.raises(TypeError, match="of at most 64 bits if `exact`"):
        bcast.chain(np.ones((3, 4), WIDE), np.negative, partial(bcast.sum, axis=0, exact=True))


def test_chains_sum_exactly_to_bfloat16():
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    step = partial(bcast.sum, axis=0, exact=True, dtype=bfloat16)
    assert bcast.chain(np.ones((3, 4), "f4"), np.negative, step).tolist() == [-3] * 4


@pytest.mark.parametrize("make", **rows(WITHOUT_OVERFLOW))
def test_chunks_of_dask_arrays_change_no_bit_of_chains(make):
    da = pytest.importorskip("dask.array")
    import bcast.dask

    rng = np.random.default_rng(13)
    terms, factors = make(rng, 1200).reshape(120, 10), np.array([1, -0.5, 0.5, 0.75, -1] * 2)
    for function in (bcast.sum, bcast.mean):
        for axis in (0, None):
            steps = (np.multiply, factors), partial(function, axis=axis, exact=True)
            expected = bcast.chain(terms, *steps)
            for _ in range(5):
                chunks = tuple(int(rng.integers(1, length + 1)) for length in terms.shape)
                found = bcast.dask.chain(da.from_array(terms, chunks=chunks), *steps).compute(scheduler="sync")
                assert np.array_equal(found, expected), chunks
