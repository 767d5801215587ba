"""`unbroadcast`: every mode and shape against a sum term by term, dtypes, `out`, and errors in last places."""

import itertools
import math
from contextlib import nullcontext

import numpy as np
import pytest
from _modes import FORMS, NAMES, every_call, readers
from _reference import reference, scattered
from _ways import SUMS, summed
from numpy.exceptions import ComplexWarning
from test_errors import rows
from test_ops import LAYOUTS, Arena

import bcast

ways = pytest.mark.parametrize(("leaf", "threads"), SUMS)


# Every shape.

LENGTHS = (0, 1, 2, 3)
SHAPES = [shape for rank in range(5) for shape in itertools.product(LENGTHS, repeat=rank)]


# How many of them fit, counted once: no test may pass by comparing nothing.
FITTING = {"numpy": 6081, "bidirectional": 6081, "pdpd-axis": 22878, "none": 341}
FITTING |= {"explicit-axes_mapping": 16418, "explicit-broadcast_axes": 4681}
CALLS = [(form, *SUMS[0]) for form in FORMS] + [("numpy", *way) for way in SUMS[1:]]


@pytest.mark.parametrize(("form", "leaf", "threads"), CALLS)
def test_every_shape(form, leaf, threads):
    dtypes = itertools.cycle(map(np.dtype, ["f4", "i1", "f8", "f2", "u4", "c8", "i8", ">f4", "u2", "O", "g"]))
    numbers = np.random.default_rng(1).integers(-9, 10, 3**4)
    found = 0
    with summed(leaf, threads):
        for data, shape, arguments in every_call(form, SHAPES):
            aligned = reference(data, shape, **arguments)
            if aligned is None or aligned[0] != shape:
                continue
            found += 1
            grad = numbers[: math.prod(shape)].reshape(shape)
            expected = scattered(grad, aligned[1]).astype(int).reshape(data)
            dtype = next(dtypes)  # negative numbers wrap around into unsigned ones
            result = bcast.unbroadcast(grad.astype(dtype), data, **arguments)
            assert result.shape == data
            assert result.dtype == dtype
            assert (result == expected.astype(dtype)).all(), (data, shape, arguments)
            if found % 7 == 0:
                x = numbers[: math.prod(shape[1:])].reshape(shape[1:])
                result = bcast.unbroadcast(grad.astype(dtype), data, **arguments, times=x.astype(dtype))
                expected = scattered(grad * x, aligned[1]).astype(int).reshape(data)
                np.testing.assert_array_equal(result, expected.astype(dtype.newbyteorder("=")), strict=True)
    assert found == FITTING.get(form, found) > 0


@pytest.mark.parametrize("mode", sorted({*NAMES} - readers("axes_mapping", "broadcast_axes")))
def test_every_refusal(mode):
    refused = 0
    for data, shape in itertools.product([shape for shape in SHAPES if len(shape) <= 3], repeat=2):
        aligned = reference(data, shape, mode=mode)
        if aligned is None or aligned[0] != shape:
            with pytest.raises(ValueError, match=r"^`(grad|axis)` expected "):
                bcast.unbroadcast(np.empty(shape), data, mode=mode)
            refused += 1
    assert refused > 5000


def test_no_axes_of_a_scalar_are_all_axes():
    assert bcast.unbroadcast(np.arange(6.0).reshape(2, 3), (), mode="explicit", broadcast_axes=[]) == 15


# Dtypes.

NUMERIC = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "l", "q", "f2", "f4", "f8", "g", "c8", "c16", "G"]
TARGETS = {(5,): (0,), (7, 1): (1,), (): (0, 1), (1, 5): (0,), (7, 5): ()}


@ways
@pytest.mark.parametrize("code", ["?", *NUMERIC])
def test_the_result_has_the_dtype_wanted(code, leaf, threads):
    for to, order in (*itertools.product(NUMERIC, "="), ("", "="), ("", "S")):
        dtype = np.dtype(code).newbyteorder(order)
        grad = (np.arange(35).reshape(7, 5) % 7 - 3).astype("?" if code == "?" else "i8").astype(dtype)
        if dtype.kind == "u" and to and np.dtype(to).kind in "fc":
            grad = grad & grad.dtype.type(7)  # no float holds the largest ones' sum
        if not to and code == "?":
            continue
        wanted = np.dtype(to) if to else dtype
        lost = dtype.kind == "c" and wanted.kind != "c"
        with summed(leaf, threads):
            for data, axes in TARGETS.items():
                with pytest.warns(ComplexWarning, match="imaginary part") if lost else nullcontext():
                    result = bcast.unbroadcast(grad, data, dtype=to or None)
                with np.errstate(invalid="ignore"):
                    right = (grad.real if lost else grad).astype(to or code).sum(axes, dtype=to or code).reshape(data)
                np.testing.assert_array_equal(result, np.asarray(right, wanted), strict=True)


# What comes in, and where it goes.


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("shape", "data"), [((4, 3), (3,)), ((4, 3), (4, 1)), ((4, 3), ()), ((4, 3), (4, 3)), ((2, 3, 4, 5), (3, 1, 5))]
)
def test_layouts(shape, data, layout):
    for dtype in ("u1", "i2", "f2", "f4", ">f4", "f8", ">f8", "c8", "c16", "g", "m8[s]"):
        grad = np.arange(math.prod(shape)).astype(dtype).reshape(shape)
        grad.flags.writeable = False
        factors = (np.arange(4, 4 + grad.size).reshape(shape) % 5).astype(dtype.replace("m8[s]", "i8"))
        for times in (None, factors):
            expected = bcast.unbroadcast(grad, data, times=times)
            arena = Arena(layout, data, expected.dtype)
            assert bcast.unbroadcast(grad, data, times=times, out=arena.array) is arena.array
            assert (arena.array == expected).all()
            assert arena.untouched_outside()
        expected = bcast.unbroadcast(grad, data)
        arena = Arena(layout, shape, dtype)
        arena.array[...] = grad
        for way in SUMS:
            with summed(*way):
                result = bcast.unbroadcast(arena.array, data)
            assert (result == expected).all()
            assert result.flags.c_contiguous


# Errors, in units in the last place.

floats = pytest.mark.parametrize("name", ["f2", "bfloat16", "f4", "f8"])
SHORT = 1e9  # a dtype whose numbers are all less has a short range


def dtype_of(name):
    return np.dtype(name if len(name) == 2 else getattr(pytest.importorskip("ml_dtypes"), name))


def precision(name):
    info = np.finfo(name) if len(name) == 2 else pytest.importorskip("ml_dtypes").finfo(dtype_of(name))
    return info.nmant + 1, info.minexp


def ulps(name):
    """The bound of the error: what is summed as float64 is rounded once more."""
    return 2 if name == "f8" else 1


def ulp(number, name):
    """The unit in the last place of a number; of 0, the smallest number."""
    bits, least = precision(name)
    return 2.0 ** (max(math.frexp(number)[1] - 1 if number else least, least) - bits + 1)


def alternating(terms):
    """Terms on axes of 2, with kept axes of 2 between the first of them."""
    axes = terms.size.bit_length() - 1
    kept = min(axes, 3)
    spread = terms.reshape((2, 1) * kept + (2,) * (axes - kept))
    grad = np.repeat(np.repeat(np.repeat(spread, 2, 1), 2, 3), 2, 5) if kept == 3 else spread
    return grad, (1, 2) * kept + (1,) * (axes - kept)


PATTERNS = {  # name -> a gradient whose sums are all that of the terms, and the data's shape
    "all": lambda terms: (terms, ()),
    "inner": lambda terms: (np.stack([terms] * 3), (3, 1)),
    "outer": lambda terms: (np.stack([terms] * 3, -1), (3,)),
    "outer_long_rows": lambda terms: (np.repeat(terms[:, np.newaxis], 40, 1), (40,)),
    "middle": lambda terms: (np.repeat(np.stack([terms] * 2)[..., np.newaxis], 5, -1), (2, 1, 5)),
    "channels": lambda terms: (np.repeat(terms.reshape(8, 1, -1), 3, 1), (3, 1)),
    "alternating": alternating,
    "strided": lambda terms: (np.repeat(terms, 2)[::2], ()),
    "backwards": lambda terms: (terms[::-1], (1,)),
}
COUNT = 2**15


def check_errors(terms, most):
    """Sum the terms in every pattern and way; check each error against what is allowed."""
    exact = math.fsum(terms.astype(float))
    for pattern, make in PATTERNS.items():
        grad, data = make(terms)
        for way in SUMS:
            with summed(*way):
                result = bcast.unbroadcast(grad, data)
            assert np.abs(result.astype(float) - exact).max() <= most, (pattern, way)


POSITIVE = {  # terms whose sum is some hundreds, but for the smallest ones
    "equal": lambda _: np.full(COUNT, 0.1 * 2**-4),
    "ascending": lambda _: np.exp2(np.linspace(-20, -6, COUNT)),
    "descending": lambda _: np.exp2(np.linspace(-6, -20, COUNT)),
    "shuffled": lambda _: np.random.default_rng(3).permutation(np.exp2(np.linspace(-20, -6, COUNT))),
    "subnormal": lambda name: np.random.default_rng(2).integers(1, 2**8, COUNT) * ulp(0.0, name),
    "halves_of_the_last_place": lambda name: np.array([1, *[2.0 ** -precision(name)[0]] * (COUNT - 1)]),
    "ties": lambda name: np.tile([1, *np.array([1, 0.5, 0.5]) * 2.0 ** -precision(name)[0]], COUNT // 4),
}


@floats
@pytest.mark.parametrize("make", **rows(POSITIVE))
def test_error_of_positive_terms(make, name):
    terms = make(name).astype(dtype_of(name))
    check_errors(terms, ulps(name) * ulp(math.fsum(terms.astype(float)), name))


@floats
def test_error_of_large_terms_that_cancel(name):
    """All large terms come before their opposites, so that partial sums are as large as can be."""
    rng = np.random.default_rng(4)
    large = np.full(COUNT // 2, 1e9 / 3 if largest(name) > SHORT else 0.9)
    terms = (np.concatenate([large, -large]) + rng.random(COUNT) * large[0] / 64).astype(dtype_of(name))
    exact, size = math.fsum(terms.astype(float)), math.fsum(np.abs(terms.astype(float)))
    # Half a unit of the result, and what the accumulators lose: they are float32 for some terms of a short range.
    lost = size * (2.0**-24 if largest(name) < SHORT else 4 * 2.0**-53 if name == "f8" else 2.0**-40)
    check_errors(terms, ulps(name) * ulp(exact, name) + lost)


@ways
def test_large_terms_that_cancel_keep_small_ones_or_not(leaf, threads):
    """The rounding errors of the first, plain additions of float64 depend on the layout, as documented."""
    grad = np.array([[1e16, 1, -1e16]] * 2)
    with summed(leaf, threads):
        assert bcast.unbroadcast(grad, (2, 1)).tolist() == [[0], [0]]
        assert bcast.unbroadcast(np.asfortranarray(grad), (2, 1)).tolist() == [[1], [1]]


SPREADS = {  # of one sign first and then of the other, so that partial sums are large
    "alike": lambda rng, n: np.sort(rng.standard_normal(n)),
    "of_many_sizes": lambda rng, n: np.sort(rng.standard_normal(n) * 2.0 ** rng.integers(-8, 8, n)),
    "mostly_of_one_sign": lambda rng, n: np.sort(rng.standard_normal(n) + 1),
}


@floats
@pytest.mark.parametrize("spread", **rows(SPREADS))
def test_error_in_units_of_the_sum_of_magnitudes(spread, name):
    scale = 1 if largest(name) > SHORT else 2.0**-18  # so that no sum overflows
    terms = (spread(np.random.default_rng(6), COUNT) * scale).astype(dtype_of(name))
    size = math.fsum(np.abs(terms.astype(float)))
    check_errors(terms, (2.5 if name == "f8" else 1) * ulp(size, name))


@ways
@floats
def test_error_of_millions_of_equal_terms(name, leaf, threads):
    number = np.array(0.1 if largest(name) > SHORT else 7e-4).astype(dtype_of(name))
    many = (leaf, threads) == SUMS[1]
    for grad, data in (
        (np.broadcast_to(number, (2**26 if many else 2**20,)), ()),
        (np.broadcast_to(np.full(2**14, number), (2**8, 2**14)), ()),  # one buffer again and again
        (np.broadcast_to(np.full((2**12, 4), number), (2**8, 2**12, 4)), (4,)),
    ):
        exact = float(number) * (grad.size // math.prod(data))
        with summed(leaf, threads):
            result = bcast.unbroadcast(grad, data)
        assert np.abs(result.astype(float) - exact).max() <= ulps(name) * ulp(exact, name)


def largest(name):
    bits, least = precision(name)
    return (2 - 2.0 ** (1 - bits)) * 2.0 ** (1 - least)


@floats
def test_sums_are_infinite_only_if_the_exact_sum_is(name):
    most = largest(name)
    bits, least = precision(name)
    half = 2.0 ** (1 - least - bits)  # of the largest number's last place
    cases = [
        ([most, most, -most, -most], 0), ([most] * 300 + [-most] * 299, most),
        ([-most] * 300 + [most] * 300 + [2.0**-9 * most], 2.0**-9 * most), ([most, half / 2], most),
        ([most, half], np.inf), ([most, most], np.inf), ([-most] * 40, -np.inf),
        ([most / 2] * 1000 + [-most / 2] * 998, most),
    ]  # fmt: skip
    for (terms, exact), make, way in itertools.product(cases, PATTERNS.values(), SUMS):
        filled = np.zeros(max(8, 1 << (len(terms) - 1).bit_length()))
        filled[: len(terms)] = terms
        grad, data = make(filled.astype(dtype_of(name)))
        with summed(*way), np.errstate(over="ignore"):
            result = bcast.unbroadcast(grad, data).astype(float)
        assert (result == exact).all(), (terms[:2], len(terms), result)


@ways
@floats
@pytest.mark.parametrize("data", [(), (33, 5), (8, 1, 5), (8, 33, 1), (1, 33, 1)], ids=str)
def test_infinities_and_nan(data, name, leaf, threads):
    rng, inf, nan = np.random.default_rng(5), np.inf, np.nan
    for special in [inf], [-inf], [nan], [inf, -inf], [inf, nan], [inf, inf, largest(name)]:
        grad = rng.integers(1, 8, (8, 33, 5)).astype(float)
        grad.reshape(-1)[rng.integers(0, grad.size, 2 * len(special))] = special * 2
        source = (1,) * (3 - len(data)) + data
        axes = tuple(axis for axis in range(3) if source[axis] == 1)
        with np.errstate(invalid="ignore", over="ignore"):
            expected = grad.sum(axes).reshape(data).astype(dtype_of(name))
            with summed(leaf, threads):
                result = bcast.unbroadcast(grad.astype(dtype_of(name)), data)
        np.testing.assert_array_equal(result.astype(float), expected.astype(float))
