"""`unbroadcast(grad, shape, times=x)`: sums of products against exact fractions, NumPy's arithmetic and itself."""

import itertools
from contextlib import nullcontext
from fractions import Fraction

import numpy as np
import pytest
from _ways import SUMS, summed
from numpy.exceptions import ComplexWarning
from test_adjoint import CASES, DTYPES, expected, layouts, sum_over, terms
from test_converted import peak_of
from test_errors import refuse_with_out
from test_unbroadcast import PATTERNS, dtype_of, floats, largest, precision, ulp, ulps, ways

import bcast

FACTORS = ["?", *DTYPES]


def factors_of(shape, rng):
    """Shapes that broadcast to a shape: itself, a number, the last axis, and some with lengths of 1."""
    yield shape
    yield ()
    yield shape[-1:]
    for _ in range(2):
        yield tuple(np.where(rng.random(len(shape)) < 0.5, 1, shape).tolist())


def product(grad, x):
    """NumPy's products; those of narrow floats exactly, in the dtype of a sum that holds them."""
    exact = np.asarray(grad * x)
    if exact.dtype.kind not in "iucb" and exact.dtype.itemsize < 8:
        return grad.astype("f8") * x.astype("f8"), exact.dtype
    return exact, exact.dtype


@pytest.mark.parametrize("number", range(len(CASES)), ids=[*CASES])
def test_every_way_and_dtype(number):
    shape, axes = [*CASES.values()][number]
    rng = np.random.default_rng(number)
    pairs = [(dtype, dtype) for dtype in DTYPES]
    pairs += [(DTYPES[rng.integers(len(DTYPES))], FACTORS[rng.integers(len(FACTORS))]) for _ in range(6)]
    for (dtype, other), leaf in zip(pairs, itertools.cycle(SUMS), strict=False):
        for factors in factors_of(shape, rng):
            small = 9 if "f2" in (dtype, other) or "bfloat16" in (dtype, other) else 100
            grad = (terms(shape, "i8", 1) % small).astype(dtype)
            x = np.asarray(terms(factors, "i8", 2) % small, other)
            right, own = product(grad, x)
            with summed(*leaf):
                got = sum_over(grad, axes, own, times=x)
            what = f"{dtype} * {other} {factors} {leaf}"
            np.testing.assert_array_equal(got, expected(right, axes, own), what, strict=True)


@pytest.mark.parametrize("number", range(0, len(CASES), 3))
def test_layouts_of_both(number):
    shape, axes = [*CASES.values()][number]
    for dtype in ("u1", "f2", "f4", "f8", "c8"):
        grad, x = ((terms(shape, "i8", seed) % 9).astype(dtype) for seed in (1, 2))
        grads, others = dict(layouts(grad)), dict(layouts(x * x.dtype.type(1 + 1j) if dtype == "c8" else x))
        for i, name in enumerate(grads):
            for other in (name, [*others][(i * 7 + number) % len(others)]):
                grad, x = grads[name], others[other]
                right, own = product(grad, x)
                own = own.newbyteorder("=")
                got = sum_over(grad, axes, own, times=x)
                np.testing.assert_array_equal(got, expected(right, axes, own), f"{dtype} {name} {other}", strict=True)


SPREAD = {
    "one for each short row": ((6000, 3), (6000, 1)),
    "one for each column": ((6000, 3), (3,)),
    "one for each long row": ((7, 5000), (7, 1)),
    "one for each of long columns": ((5000, 40), (40,)),
    "one for each picture": ((5, 90, 3), (5, 1, 1)),
    "one for each channel": ((4, 6, 900), (6, 1)),
    "one for each pixel": ((40, 50, 7), (40, 50, 1)),
    "one for each line and channel": ((40, 50, 3), (40, 1, 3)),
}


@ways
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("case", SPREAD.values(), ids=SPREAD)
def test_factors_that_many_terms_share(case, dtype, leaf, threads):
    """Factors are laid side by side as often as scratch has room for them, along every set of axes."""
    shape, factors = case
    grad, x = (terms(shape, "i8", 1) % 9).astype(dtype), (terms(factors, "i8", 2) % 9).astype(dtype)
    for count in range(1, len(shape) + 1):
        for axes in itertools.combinations(range(len(shape)), count):
            right = (grad.astype("i8") * x.astype("i8")).sum(axes, keepdims=True).astype("f8")
            with summed(leaf, threads):
                got = bcast.unbroadcast(grad, right.shape, times=x, dtype="f8")
                narrow = bcast.unbroadcast(grad, right.shape, times=x)
            np.testing.assert_array_equal(got, right, f"{axes}", strict=True)
            with np.errstate(over="ignore"):
                np.testing.assert_array_equal(narrow, right.astype(dtype), f"{axes}", strict=True)


WIDENED = [(dtype, to) for dtype in ["i1", "u2", "f2", "f4", "f8"] for to in ["i1", "i8", "f2", "f4", "f8", "c16"]]


@ways
@pytest.mark.parametrize(("dtype", "to"), WIDENED)
def test_other_dtypes_of_the_result(dtype, to, leaf, threads):
    for name in "short runs", "short rows", "channels", "runs longer than what is packed":
        shape, axes = CASES[name]
        grad, x = (terms(shape, "i8", seed) % 9 for seed in (1, 2))
        grad, x = grad.astype(dtype), x.astype(dtype)
        right = (grad * x).astype(np.dtype("c16" if to == "c16" else "f8" if to[0] == "f" else "i8"))
        with summed(leaf, threads), np.errstate(over="ignore", invalid="ignore"):
            got = bcast.unbroadcast(grad, [1 if i in axes else n for i, n in enumerate(shape)], times=x, dtype=to)
            right = right.sum(axes, keepdims=True).astype(to)
        np.testing.assert_array_equal(got, right, name, strict=True)


# What is given.


@pytest.mark.parametrize("times", [2, 2.5, True, np.float64(2.5), np.float32(2), [1, 2.5, 3], [[2], [3]]], ids=repr)
@pytest.mark.parametrize("dtype", ["i1", "u8", "f2", "f4", "f8", "c8", "?", "m8[s]", "O", "g"])
def test_numbers_and_lists(dtype, times):
    """The dtype is that of NumPy's product, in which Python's numbers have none of their own."""
    grad = np.array([[0, 1, 1], [1, 0, 1]]).astype(dtype)
    right = grad * times
    given = {"dtype": "i8"} if right.dtype.kind == "b" else {}
    result = bcast.unbroadcast(grad, (3,), times=times, **given)
    right = right.sum(0, dtype=None if dtype == "m8[s]" else given.get("dtype", right.dtype))
    np.testing.assert_array_equal(result, right, strict=True)


def test_timedeltas_are_products_of_one_kind_and_a_number():
    spans = np.array([[1, 2], [3, 4]], "m8[s]")
    assert bcast.unbroadcast([[1, 1], [2, 2]], (2,), times=spans).tolist() == (spans * [[1], [2]]).sum(0).tolist()


@ways
def test_out_overlaps_a_factor(leaf, threads):
    for dtype in ("f4", "f8", "u1"):
        room = np.arange(300).astype(dtype)
        for start in (0, 7, 100):
            for grad, x in ((room[:120], room[150:270]), (room[150:270], room[:120]), (room[:120], room[:120])):
                both = grad.reshape(40, 3).copy(), x.reshape(40, 3).copy()
                right = (both[0] * both[1]).sum(0, dtype=dtype)
                whole = room.copy()
                with summed(leaf, threads):
                    bcast.unbroadcast(grad.reshape(40, 3), (3,), times=x.reshape(40, 3), out=room[start : start + 3])
                assert (room[start : start + 3] == right).all()
                room[:] = whole


# Errors of sums, in units in the last place.

COUNT = 2**13
DRAWN = {
    "positive": lambda rng: rng.random((2, COUNT)) + 0.5,
    "of many sizes": lambda rng: np.exp2(rng.uniform(-7, 0, (2, COUNT))),
    "of both signs": lambda rng: rng.standard_normal((2, COUNT)),
    "sorted": lambda rng: np.sort(rng.standard_normal((2, COUNT))),
    "many sums of one pair": lambda rng: np.repeat(rng.random((2, 1)), COUNT, 1),
}


def exact_sum(grad, x):
    """The exact sum of the products: of exact ones, or of float64 as NumPy rounds them; and that of their sizes."""
    pairs = zip(grad.astype(float).tolist(), x.astype(float).tolist(), strict=True)
    products = [Fraction(a * b) if grad.dtype == "f8" else Fraction(a) * Fraction(b) for a, b in pairs]
    return sum(products), sum(map(abs, products))


@floats
@pytest.mark.parametrize("make", DRAWN.values(), ids=DRAWN)
def test_errors_are_those_of_sums(make, name):
    grad, x = (make(np.random.default_rng(5)) * (1 if largest(name) > 1e9 else 2.0**-3)).astype(dtype_of(name))
    exact, size = exact_sum(grad, x)
    one_sign = abs(exact) == size
    for pattern, way, to in itertools.product(PATTERNS, SUMS, {name, "f8"}):
        most = Fraction((ulps(to) if one_sign else 2.5 if to == "f8" else 1) * ulp(float(size), to))
        (terms_, data), (factors, _) = PATTERNS[pattern](grad), PATTERNS[pattern](x)
        with summed(*way):
            results = bcast.unbroadcast(terms_, data, times=factors, dtype=None if to == name else to)
        assert results.dtype == dtype_of(to)
        for result in {float(each) for each in results.ravel()}:
            assert abs(Fraction(result) - exact) <= most, (pattern, way, to)


@floats
def test_narrow_products_are_exact_and_others_numpys(name):
    """(1 + e)^2 - (1 + 2e) is e^2, which a rounded product loses."""
    e = 2.0 ** -(precision(name)[0] * 2 // 3)
    grad = np.tile([1 + e, 1 + 2 * e], (40, 1)).astype(dtype_of(name))
    x = np.tile([1 + e, -1], (40, 1)).astype(dtype_of(name))
    for data, count in (((), 40), ((40, 1), 1)):
        for way in SUMS:
            with summed(*way):
                results = bcast.unbroadcast(grad, data, times=x)
            right = count * e * e if name != "f8" else (grad * x).sum() * count / 40
            assert (results.astype(float) == right).all()


@ways
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_more_than_caches_hold(dtype, leaf, threads):
    """Both arrays are prefetched, and rows are added two at a time."""
    for shape, axes in (((1 << 21, 3), (0,)), ((70_001, 67), (0,)), ((3001, 1999), (0,)), ((2999, 2001), (1,))):
        grad, x = (np.resize(np.arange(period) % 5 - 2, shape).astype(dtype) for period in (1009, 1013))
        with summed(leaf, threads):
            got = sum_over(grad, axes, times=x)
        np.testing.assert_array_equal(got, expected(grad * x, axes), strict=True)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_errors_beside_long_double(dtype):
    rng = np.random.default_rng(7)
    for shape, data in (((9, 64, 7, 7), (64, 1, 1)), ((5, 14, 14, 96), (96,)), ((300, 768), (300, 1)), ((700, 40), ())):
        grad, x = rng.standard_normal((2, *shape)).astype(dtype)
        axes = tuple(i for i, n in enumerate(shape) if ((1,) * (len(shape) - len(data)) + data)[i] != n)
        wide = grad.astype("g") * x.astype("g")
        right = wide.sum(axes).reshape(data)
        most = np.abs(wide).sum(axes).reshape(data) * (2.5 if dtype == "f8" else 1) * np.finfo(dtype).eps
        assert (np.abs(bcast.unbroadcast(grad, data, times=x) - right) <= most).all()


# Bits, special terms, memory.


@pytest.mark.parametrize(("shape", "axes"), CASES.values(), ids=CASES)
def test_the_same_bits_from_all_targets_and_threads(shape, axes):
    rng = np.random.default_rng(1)
    for name in ("f2", "f4", "f8", *DTYPES[13:]):
        grad = (rng.standard_normal(shape) * np.exp2(rng.integers(-3, 3, shape))).astype(name)
        for factors in (shape, shape[-1:], (shape[0],) + (1,) * (len(shape) - 1)):
            x = np.asarray(rng.standard_normal(factors)).astype(name)
            alone = sum_over(grad, axes, times=x)
            for way in (*SUMS, (SUMS[0][0], 7)):
                with summed(*way):
                    assert sum_over(grad, axes, times=x).tobytes() == alone.tobytes(), (name, way)


@ways
@floats
@pytest.mark.parametrize("data", [(), (33, 5), (8, 1, 5), (8, 33, 1), (8, 33, 5)], ids=str)
def test_infinities_and_nan(data, name, leaf, threads):
    rng = np.random.default_rng(5)
    most = largest(name)
    special = [(np.inf, 2)], [(-3, np.inf)], [(0, np.inf)], [(np.nan, 1)], [(np.inf, 1), (np.inf, -1)]
    large = [(most, most)], [(most, most), (most, -most)], [(most, 1), (-most, 1), (most, 1), (-most, 1)]
    for pairs in special + large:
        grad, x = rng.integers(1, 3, (2, 8, 33, 5)).astype(float)
        places = rng.choice(grad.size, len(pairs), replace=False)
        if len(pairs) > 1:  # the same sum
            places = np.arange(len(pairs)) if data == () else places
        grad.flat[places], x.flat[places] = np.transpose(pairs)
        source = (1,) * (3 - len(data)) + data
        axes = tuple(axis for axis in range(3) if source[axis] == 1 != grad.shape[axis])
        with np.errstate(invalid="ignore", over="ignore"):
            products = (grad * x).astype("g")
            right, size = (each.sum(axes).reshape(data) for each in (products, np.abs(products)))
            rounded = right.astype(float).astype(dtype_of(name)).astype(float)
            with summed(leaf, threads):
                result = bcast.unbroadcast(grad.astype(dtype_of(name)), data, times=x.astype(dtype_of(name)))
            result = result.astype(float)
            lost = size * 2.0 ** (2 - precision(name)[0])
            close = (np.abs(result - right) <= lost) & np.isfinite(lost)
        assert (close | (result == rounded) | np.isnan(result) & np.isnan(rounded)).all()


@pytest.mark.parametrize(("dtype", "factor"), [("f4", "f4"), ("f2", "f2"), ("f8", "f8"), ("f4", "f8"), ("i4", "i2")])
def test_no_array_of_products_is_made(dtype, factor):
    grad = np.ones((1000, 1000), dtype)
    whole, column = np.ones((1000, 1000), factor), np.ones((1000, 1), factor)
    for x in (whole, whole.T, np.ones(1000, factor), column):
        for data in (1000,), (1000, 1), ():
            assert peak_of(lambda x=x, data=data: bcast.unbroadcast(grad, data, times=x)) < 64 << 10


# Refusals.

REFUSED = {
    "strings": (np.ones((2, 3)), "a", TypeError, "times"),
    "instants": (np.ones((2, 3)), np.zeros(3, "M8[s]"), TypeError, "times"),
    "strings in grad": (np.array([["a"] * 3] * 2), 2, TypeError, "grad"),
    "spans of both": (np.ones((2, 3), "m8[s]"), np.ones(3, "m8[s]"), TypeError, "times"),
    "another length": (np.ones((2, 3)), np.ones(2), ValueError, "times"),
    "an axis too many": (np.ones((2, 3)), np.ones((1, 2, 3)), ValueError, "times"),
    "no items": (np.ones((2, 3)), np.ones((0, 3)), ValueError, "times"),
    "ragged": (np.ones((2, 3)), [[1], [2, 3]], ValueError, "times"),
    "masked": (np.ones((2, 3)), np.ma.ones(3), TypeError, "times"),
    "bools": (np.ones((2, 3), bool), True, TypeError, "grad"),
}


@pytest.mark.parametrize(("grad", "times", "error", "argument"), REFUSED.values(), ids=REFUSED)
def test_refusals(grad, times, error, argument):
    refuse_with_out(lambda out=None: bcast.unbroadcast(grad, (3,), times=times, out=out), error, argument, (3,))


def test_out_has_the_dtype_of_the_product():
    grad = np.ones((2, 3), "f4")
    with pytest.raises(TypeError, match=r"^`out` expected the product's dtype float64, got float32$"):
        bcast.unbroadcast(grad, (3,), times=np.ones(3), out=np.empty(3, "f4"))
    lost = pytest.warns(ComplexWarning, match="imaginary part")
    for times, warns in ((1j, lost), (1.5, nullcontext())):
        with warns:
            assert bcast.unbroadcast(grad, (3,), times=times, dtype="f4").tolist() == [0 if times == 1j else 3] * 3
