"""Gradients of chains, compared with derivatives from elsewhere.

The oracles are NumPy's complex functions, in which a step of 1e-200 along the imaginary axis gives a derivative without
rounding errors; differences in long double; autograd and JAX, if they are installed; and values computed by hand.
"""

import math
import tracemalloc
import warnings
from functools import partial

import numpy as np
import pytest
from _ways import blocks_of
from hypothesis import given, settings
from hypothesis import strategies as st

import bcast

UFUNCS = (np.add, np.subtract, np.multiply, np.divide, np.maximum, np.minimum)
REDUCTIONS = (np.sum, np.mean, np.max, np.min, np.prod)
BLOCKS = [1, 100, 3000, 4 << 20]


def arrays_of(steps):
    """The operands that have a gradient."""
    pairs = [step for step in steps if isinstance(step, tuple) and step[0] in UFUNCS]
    return [operand for _, operand in pairs if isinstance(operand, np.ndarray)]


def run(module, data, operands, steps):
    """Do the steps by the functions of a module that has NumPy's names, with such arrays for operands."""
    rest = list(operands)
    result = data
    for step in steps:
        if isinstance(step, partial):
            result = getattr(module, step.func.__name__)(result, **step.keywords)
            continue
        function, *given = step if isinstance(step, tuple) else (step,)
        own = getattr(module, function.__name__)
        if function in REDUCTIONS:
            result = own(result, axis=given[0])
        elif given:
            result = own(result, rest.pop(0) if isinstance(given[0], np.ndarray) else given[0])
        else:
            result = own(result)
    return result


def filled(shape, seed, low=0.5, high=2.0, dtype="f8"):
    return np.random.default_rng(seed).uniform(low, high, shape).astype(dtype)


def gradients(data, *steps, gradient=None, **options):
    """The gradients that `chain_vjp` gives, with their shapes and dtypes checked."""
    value, vjp = bcast.chain_vjp(data, *steps, **options)
    expected = bcast.chain(data, *steps, **options)
    assert np.array_equal(value, expected, equal_nan=True)
    assert type(value) is type(expected)
    found = vjp(np.ones_like(value) if gradient is None else gradient)
    given = [data, *arrays_of(steps)]
    assert [(each.shape, each.dtype) for each in found] == [(each.shape, each.dtype) for each in given]
    return found


# What each step and reduction does.

A, B = filled((5, 1, 3), 1), filled((4, 3), 2)
ROWS, COLUMN, LINE = filled((5, 6), 3, -2, 2), filled((5, 1), 4), filled(6, 5, -2, 2)
CHAINS = {
    "add": (ROWS, (np.add, LINE)),
    "subtract": (ROWS, (np.subtract, COLUMN)),
    "multiply": (ROWS, (np.multiply, LINE)),
    "multiply by a number": (ROWS, (np.multiply, 2.5), (np.subtract, 1)),
    "divide": (ROWS, (np.divide, COLUMN)),
    "data are stretched": (COLUMN, (np.multiply, LINE), (np.divide, ROWS)),
    "axes are added": (LINE, (np.multiply, ROWS), (np.add, filled((2, 1, 6), 6))),
    "functions of one": (ROWS, np.square, (np.add, 0.5), np.sqrt, np.negative, np.exp, np.reciprocal, np.log),
    "absolute": (ROWS, np.absolute, np.sqrt),
    "maximum": (ROWS, (np.maximum, LINE), (np.maximum, 0.25)),
    "minimum": (ROWS, (np.minimum, COLUMN), (np.minimum, 0.75)),
    "sum": (ROWS, np.square, (np.sum, 0)),
    "sums of all": (ROWS, np.square, (np.sum, None), np.sqrt),
    "mean": (ROWS, np.square, (np.mean, (0, 1))),
    "max": (ROWS, (np.multiply, LINE), (np.max, 1)),
    "min": (ROWS, (np.multiply, LINE), (np.min, None)),
    "prod": (ROWS, (np.multiply, LINE), (np.prod, 1)),
    "products of all": (A, (np.subtract, B), (np.prod, (0, 2)), (np.prod, None)),
    "distances": (A, (np.subtract, B), np.square, (np.sum, -1), np.sqrt),
    "the nearest": (A, (np.subtract, B), np.square, (np.sum, -1), (np.min, -1), (np.sum, 0)),
    "deviations": (ROWS, partial(np.mean, axis=0, keepdims=True), (np.subtract, ROWS), np.square, (np.mean, None)),
    "softmax": (ROWS, np.exp, partial(np.sum, axis=-1, keepdims=True), np.reciprocal, (np.multiply, np.exp(ROWS))),
    "log of a sum": (A, (np.multiply, B), (np.sum, -1), np.exp, (np.sum, -1), np.log, (np.mean, 0)),
    "an operand after the reduction": (
        A,
        (np.multiply, B),
        (np.sum, 2),
        (np.divide, filled((2, 5, 4), 7)),
        (np.max, 0),
    ),
    "no axes": (np.array(1.5), np.square, (np.multiply, np.array(3.0))),
    "no items": (np.ones((0, 3)), (np.multiply, np.ones(3)), (np.sum, 0)),
}


TIED = {
    "a maximum of all": (np.array([1.0, 2, 2, 0, 2]), (np.max, None)),
    "rows": (np.array([[1.0, 2, 2], [3, 3, 3], [0, -1, -1]]), (np.min, 1)),
    "both operands": (np.array([[1.0, 2], [0, 0]]), (np.maximum, np.array([1.0, 3])), (np.sum, 0)),
    "bounds": (np.array([-1.0, 0, 1]), (np.maximum, 0.0), (np.minimum, np.array([0.0, 1, 1]))),
    "a root of 0": (np.array([0.0, 4.0]), np.sqrt),
    "divided by 0": (np.array([1.0, 0.0]), (np.divide, np.array([0.0, 0.0]))),
    "infinities": (np.array([np.inf, 1.0, -np.inf]), (np.maximum, np.array([np.inf, 1, 1])), (np.sum, None)),
    "a maximum that is infinite": (np.array([np.inf, 1.0, np.inf]), (np.max, None)),
    "NaN among operands": (np.array([np.nan, 1.0, 2.0]), (np.maximum, np.array([1.0, np.nan, 1]))),
    "NaN is the maximum": (np.array([[np.nan, 1.0], [2.0, 3.0]]), (np.max, 1)),
    "NaN is summed": (np.array([[np.nan, 1.0], [2.0, 3.0]]), np.square, (np.sum, 1)),
}


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("name", CHAINS)
def test_differences_in_long_double(name, block):
    data, *steps = CHAINS[name]
    inputs = [data, *arrays_of(steps)]
    random = np.random.default_rng(9)
    directions = [random.normal(size=each.shape).astype("g") for each in inputs]
    moved = []
    for step in (1e-6, -1e-6):
        first, *others = [each + np.longdouble(step) * way for each, way in zip(inputs, directions, strict=True)]
        moved.append(run(np, first, others, steps))
    difference = (moved[0] - moved[1]) / 2e-6
    weights = random.normal(size=np.shape(difference))
    with blocks_of(block):
        found = gradients(data, *steps, gradient=weights)
    slope = sum(np.sum(each * way) for each, way in zip(found, directions, strict=True))
    assert slope == pytest.approx(float(np.sum(difference * weights)), rel=1e-8, abs=1e-10)


@pytest.mark.peers
@pytest.mark.parametrize("block", [100, 4 << 20])
@pytest.mark.parametrize("name", [*CHAINS, *TIED])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_autograd_has_the_same_gradients(name, block):
    pytest.importorskip("autograd")
    import autograd.numpy
    from autograd import make_vjp

    data, *steps = (CHAINS | TIED)[name]
    inputs = (data, *arrays_of(steps))
    vjp, value = make_vjp(lambda inputs: run(autograd.numpy, inputs[0], inputs[1:], steps))(inputs)
    weights = filled(np.shape(value), 8)
    with blocks_of(block):
        found = gradients(data, *steps, gradient=weights)
    for mine, peers in zip(found, vjp(weights), strict=True):
        np.testing.assert_allclose(mine, peers, rtol=1e-12, atol=1e-14)


def jaxs(data, steps, weights):
    """JAX's results in float64, and in the dtype of the data."""
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64():
        operands = [jax.numpy.asarray(each) for each in (data, *arrays_of(steps))]
        value, vjp = jax.vjp(lambda first, *others: run(jax.numpy, first, others, steps), *operands)
        return [np.asarray(each) for each in vjp(jax.numpy.asarray(weights, value.dtype))]


@pytest.mark.peers
@pytest.mark.parametrize("block", [1, 4 << 20])
@pytest.mark.parametrize("name", [*CHAINS, *TIED])
@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::DeprecationWarning")
def test_jax_has_the_same_gradients(name, block):
    data, *steps = (CHAINS | TIED)[name]
    weights = filled(np.shape(bcast.chain(data, *steps)), 8)
    with blocks_of(block):
        found = gradients(data, *steps, gradient=weights)
    for mine, peers in zip(found, jaxs(data, steps, weights), strict=True):
        np.testing.assert_allclose(mine, peers, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("block", BLOCKS)
def test_ties_zeros_and_nan_by_hand(block):
    """Half for each of two equal operands, equal parts for extremes, 0 for the magnitude of 0; NaN spreads."""
    with blocks_of(block), np.errstate(all="ignore"):
        assert gradients(*TIED["a maximum of all"], gradient=6.0)[0].tolist() == [0, 2, 2, 0, 2]
        assert gradients(*TIED["rows"])[0].tolist() == [[1, 0, 0], [1 / 3] * 3, [0, 0.5, 0.5]]
        products = np.array([[2.0, 3, 4], [2, 0, 4], [0, 3, 0]])
        assert gradients(products, (np.prod, 1))[0].tolist() == [[12, 8, 6], [0, 8, 0], [0, 0, 0]]
        assert gradients(products.astype("f2"), (np.prod, 1))[0].tolist() == [[12, 8, 6], [0, 8, 0], [0, 0, 0]]
        first, second = gradients(*TIED["both operands"])
        assert first.tolist() == [[0.5, 0], [0, 0]]
        assert second.tolist() == [1.5, 2]
        assert gradients(np.array([0.0, -0.0, -2.0]), np.absolute)[0].tolist() == [0, 0, -1]
        assert gradients(*TIED["a root of 0"])[0].tolist() == [np.inf, 0.25]
        assert [each.tolist() for each in gradients(*TIED["NaN among operands"])] == [[0, 0, 1], [0, 0, 0]]
        found = gradients(*TIED["NaN is the maximum"])[0]
        assert np.isnan(found[0]).all()
        assert found[1].tolist() == [0, 1]


# Shapes.


@st.composite
def smooth_chains(draw):
    """Data and steps that complex numbers can do: shapes that stretch on both sides, reductions in between."""
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=0, max_size=3)))
    seed = draw(st.integers(0, 1000))
    data = filled(shape, seed)
    steps = []
    for i in range(draw(st.integers(1, 5))):
        kind = draw(st.sampled_from(("binary", "binary", "unary", "reduced")))
        if kind == "unary":
            steps.append(draw(st.sampled_from((np.square, np.sqrt, np.negative, np.reciprocal))))
            if steps[-1] is np.negative:
                steps.append((np.add, 9.0))  # roots of negative numbers are complex
        elif kind == "binary":
            lengths = [
                draw(st.sampled_from((1, length))) if length > 1 else draw(st.integers(1, 3)) for length in shape
            ]
            more = draw(st.lists(st.integers(1, 3), max_size=2))
            other = (*more, *lengths[draw(st.integers(0, len(lengths))) if not more else 0 :])
            steps.append((draw(st.sampled_from((np.add, np.multiply, np.divide))), filled(other, seed + i + 1)))
            shape = np.broadcast_shapes(shape, other)
        else:
            axis = draw(st.one_of(st.none(), st.sets(st.sampled_from(range(len(shape))))) if shape else st.none())
            axis = axis if axis is None else tuple(axis)
            function = draw(st.sampled_from((np.sum, np.mean)))
            keepdims = draw(st.booleans())
            steps.append(partial(function, axis=axis, keepdims=True) if keepdims else (function, axis))
            shape = np.sum(np.empty(shape), axis=axis, keepdims=keepdims).shape
    return data, steps


@settings(deadline=None, max_examples=150)
@given(smooth_chains(), st.sampled_from(BLOCKS), st.integers(0, 1000))
def test_derivatives_by_complex_steps(chain, block, seed):
    data, steps = chain
    inputs = [data, *arrays_of(steps)]
    random = np.random.default_rng(seed)
    directions = [random.normal(size=each.shape) for each in inputs]
    first, *others = [each + 1e-200j * way for each, way in zip(inputs, directions, strict=True)]
    derivative = np.imag(run(np, first, others, steps)) / 1e-200
    weights = random.normal(size=np.shape(derivative))
    with blocks_of(block):
        found = gradients(data, *steps, gradient=weights)
    terms = [each * way for each, way in zip(found, directions, strict=True)]
    size = sum(np.sum(np.abs(each)) for each in terms) + np.sum(np.abs(derivative * weights))
    assert abs(sum(map(np.sum, terms)) - np.sum(derivative * weights)) <= 1e-12 * size


@settings(deadline=None, max_examples=100)
@given(st.data())
def test_extremes_of_any_shape(data):
    """The oracle spreads a gradient evenly over the extremes, in NumPy, on whole arrays."""
    shape = tuple(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    other = tuple(data.draw(st.sampled_from((1, length))) for length in shape)
    random = np.random.default_rng(data.draw(st.integers(0, 1000)))
    x, y = random.integers(0, 4, shape).astype("f8"), random.integers(0, 4, other).astype("f8")
    axis = data.draw(st.one_of(st.none(), st.sampled_from(range(len(shape)))))
    function = data.draw(st.sampled_from((np.max, np.min)))
    whole = x + y
    extreme = function(whole, axis=axis, keepdims=True)
    weights = random.integers(1, 9, extreme.shape) * 12.0
    is_extreme = whole == extreme
    expected = is_extreme * weights / np.sum(is_extreme, axis=axis, keepdims=True)
    over = tuple(at for at, length in enumerate(other) if length == 1)
    with blocks_of(data.draw(st.sampled_from(BLOCKS))):
        steps = (np.add, y), partial(function, axis=axis, keepdims=True)
        first, second = gradients(x, *steps, gradient=weights)
    np.testing.assert_allclose(first, expected, rtol=1e-15)
    np.testing.assert_allclose(second, expected.sum(over, keepdims=True), rtol=1e-15)


def test_modes_lists_and_several_calls():
    images, bias = filled((2, 3, 4), 1), filled(3, 2)
    value, vjp = bcast.chain_vjp(images, (np.multiply, bias), (np.sum, None), mode="pdpd", axis=1)
    for gradient in (1.0, 2.0):
        first, second = vjp(gradient)
        np.testing.assert_allclose(first, np.broadcast_to(gradient * bias[:, None], images.shape))
        np.testing.assert_allclose(second, gradient * images.sum((0, 2)))
    assert value == pytest.approx(np.sum(images * bias[:, None]))
    first, second = bcast.chain_vjp([1.0, 2.0], [np.multiply, [3.0, 4.0]])[1]([1, 1])
    assert first.tolist() == [3, 4]
    assert second.tolist() == [1, 2]
    assert len(bcast.chain_vjp([1.0, 2.0], (np.multiply, 3))[1]([1, 1])) == 1


# Dtypes and precision.


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "g", ">f4", "bfloat16"])
@pytest.mark.parametrize("block", [64, 4 << 20])
def test_gradients_have_the_dtype_of_their_operand(dtype, block):
    own = np.dtype(pytest.importorskip("ml_dtypes").bfloat16 if dtype == "bfloat16" else dtype)
    points = np.arange(12).reshape(4, 1, 3).astype(own)
    centre = np.array([1, 2, 3]).astype(own)
    with blocks_of(block):
        first, second = gradients(points, (np.subtract, centre), np.square, (np.sum, None))
    exact = 2 * (points.astype("g") - centre.astype("g"))
    assert np.array_equal(first, exact.astype(own))
    assert np.array_equal(second, -exact.sum((0, 1)).astype(own))


def test_operands_of_other_dtypes():
    x, y = filled((5, 3), 1, dtype="f4"), filled(3, 2)
    first, second = gradients(x, (np.multiply, y), (np.sum, None))
    assert np.array_equal(first, np.broadcast_to(y, (5, 3)).astype("f4"))
    np.testing.assert_allclose(second, x.astype("f8").sum(0), rtol=1e-15)
    picture = np.arange(12, dtype="u1").reshape(4, 3)
    _, vjp = bcast.chain_vjp(picture, (np.divide, np.float32([1, 2, 4])), (np.sum, None), dtype="f4")
    of_picture, of_scale = vjp(1)
    assert of_picture.dtype == of_scale.dtype == np.float32
    assert of_picture.tolist() == [[1, 0.5, 0.25]] * 4
    assert of_scale.tolist() == [-18, -22 / 4, -26 / 16]
    narrow = bcast.chain_vjp(filled(3, 1), np.square, (np.sum, None), dtype="f4")[1](1)[0]
    assert narrow.dtype == np.float64  # the data's own


@pytest.mark.parametrize(("dtype", "size"), [("f4", 3_000_000), ("f8", 700_000)])
def test_sums_along_broadcasts_are_as_exact_as_unbroadcast(dtype, size):
    """Over some blocks: within a unit of the exact sum, where NumPy's are far from it, or of its terms' magnitudes."""
    x = (filled(size, 1) - 0.25).astype(dtype)
    offset = np.zeros(1, dtype)
    of_offset = gradients(x, (np.subtract, offset), np.square)[1]
    exact = -2 * math.fsum(x.tolist())
    assert abs(of_offset[0] - exact) <= np.spacing(np.abs(of_offset[0]))


def test_a_gradient_of_another_dtype_is_converted():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    for dtype in ("f2", "f4", ml_dtypes.bfloat16):
        for gradient in (2, 2.0, np.longdouble(2), True):
            found = bcast.chain_vjp(np.ones(3, dtype), np.square, (np.sum, None))[1](gradient)[0]
            assert np.array_equal(found, np.full(3, 2 * gradient, dtype))


def test_long_means_of_halves():
    """There are more items than a float16 can count."""
    found = gradients(np.ones(100_000, "f2"), (np.mean, None), gradient=np.float16(32768))[0]
    assert np.array_equal(found, np.full(100_000, 0.32768, "f2"))


# Memory.


@pytest.mark.parametrize("last", [(), ((np.min, -1),), (np.sqrt, (np.sum, None))])
def test_no_array_of_the_broadcast_is_made(last):
    """The broadcast would have 192 MB, and what is first reduced 64."""
    a, b = filled((2000, 3), 1), filled((4000, 3), 2)
    value, vjp = bcast.chain_vjp(a[:, None], (np.subtract, b), np.square, (np.sum, -1), *last)
    gradient = np.ones_like(value)
    tracemalloc.start()
    vjp(gradient)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < (2 + 4) * (4 << 20) + 6 * (a.nbytes + b.nbytes)


def test_gradients_without_broadcasts_have_their_own_memory():
    x = filled((2000, 1000), 1, dtype="f4")
    _, vjp = bcast.chain_vjp(x, np.square, np.sqrt, (np.sum, None))
    tracemalloc.start()
    vjp(1)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < x.nbytes + (2 + 4) * (4 << 20)


# Errors.

X = np.ones((2, 3))
FIRST, SECOND = r"^`steps\[0\]` expected ", r"^`steps\[1\]` expected "
FUNCTION, REDUCTION = (
    "a function that has a gradient, of absolute, ",
    "a reduction that has a gradient, of sum, mean, max, min, prod, ",
)
FLOATS = "floating-point numbers, got "
REFUSED = {
    "a function without a gradient": (TypeError, SECOND + FUNCTION, X, np.sqrt, np.floor),
    "a comparison": (TypeError, FIRST + FUNCTION, X, (np.less, X)),
    "a bound": (TypeError, FIRST + FUNCTION, X, (np.clip, 0, 1)),
    "rounded": (TypeError, FIRST + FUNCTION, X, np.round),
    "a position": (TypeError, SECOND + REDUCTION + "got argmin$", X, np.square, (np.argmin, -1)),
    "any": (TypeError, FIRST + REDUCTION + "got any$", X, (np.any, -1)),
    "integers": (TypeError, f"^`data` expected {FLOATS}int64; use dtype=np.float64$", np.arange(3), np.square),
    "objects": (TypeError, f"^`data` expected {FLOATS}object", np.array([1.0, None]), np.square),
    "complex numbers": (TypeError, f"^`data` expected {FLOATS}complex128", X * 1j, np.square),
    "operands of integers": (TypeError, f"{FIRST}{FLOATS}int64; convert them", X, (np.add, [1, 2, 3])),
    "a complex number": (TypeError, f"{FIRST}{FLOATS}1j", X, (np.add, 1j)),
    "a sum of integers": (TypeError, f"{FIRST}{FLOATS}int64; leave out", X, partial(np.sum, axis=0, dtype=int)),
    "a reduction alone": (TypeError, FIRST + "a pair of a reduction", X, np.sum),
    "shapes": (ValueError, "^`data, steps` expected lengths that are equal or 1", X, (np.add, np.ones(4))),
    "masks": (TypeError, "^`data` expected arrays of the base class", np.ma.array(X), np.square),
    "an axis": (np.exceptions.AxisError, "^`axis` expected an axis of data of shape", X, (np.sum, 2)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_steps_without_gradients_are_refused_first(name, monkeypatch):
    error, message, data, *steps = REFUSED[name]
    monkeypatch.setattr("bcast._api.gradients.chain", lambda *_, **__: pytest.fail("was computed"))
    with pytest.raises(error, match=message):
        bcast.chain_vjp(data, *steps)


def test_gradients_that_do_not_fit_are_refused():
    _, vjp = bcast.chain_vjp(X, np.square, (np.sum, 0))
    with pytest.raises(ValueError, match=r"^`gradient` expected shape \(3,\), that of the value, got \(2, 3\)$"):
        vjp(X)
    with pytest.raises(TypeError, match=r"^`gradient` expected real numbers, got complex128$"):
        vjp(np.ones(3) * 1j)


def test_the_value_tells_of_errors_and_the_gradient_of_none():
    zeros = np.zeros(3)
    with pytest.warns(RuntimeWarning, match="^divide by zero encountered in log$"):
        _, vjp = bcast.chain_vjp(zeros, np.log)
    with warnings.catch_warnings(action="error"):
        assert vjp(np.ones(3))[0].tolist() == [np.inf] * 3


def test_arguments_are_not_written_to():
    data, operand, gradient = filled((4, 3), 1), filled(3, 2), filled((4, 3), 3)
    kept = [each.copy() for each in (data, operand, gradient)]
    gradients(data, (np.multiply, operand), np.negative, gradient=gradient)
    found = gradients(data, (np.add, operand), gradient=gradient)
    assert all(map(np.array_equal, kept, (data, operand, gradient)))
    assert not any(np.shares_memory(found[0], each) for each in (data, operand, gradient))


def test_it_is_the_derivative_that_training_needs():
    """Descend the mean squared error of a line: its slope and offset are found."""
    x = np.linspace(-1, 1, 50)
    y = 3 * x + 0.5
    slope, offset = np.array(0.0), np.array(0.0)
    for _ in range(200):
        chain = (np.multiply, slope), (np.add, offset), (np.subtract, y), np.square, (np.mean, None)
        _, vjp = bcast.chain_vjp(x, *chain)
        _, of_slope, of_offset, _ = vjp(1.0)
        slope, offset = slope - 0.5 * of_slope, offset - 0.5 * of_offset
    assert slope == pytest.approx(3)
    assert offset == pytest.approx(0.5)


def test_an_extreme_of_one_number():
    _, vjp = bcast.chain_vjp(np.ones((2, 3)), (np.sum, None), (np.maximum, 0.0))
    np.testing.assert_array_equal(vjp(1.0)[0], np.ones((2, 3)))


@pytest.mark.parametrize("dtype", [">f4", ">f8"])
def test_data_in_another_order_of_bytes(dtype):
    data = np.ones((2, 3), dtype)
    value, vjp = bcast.chain_vjp(data, (np.multiply, np.arange(3.0)), (np.sum, 0))
    assert value.tolist() == [0, 2, 4]
    of_data, of_operand = vjp(np.ones(3))
    assert of_data.dtype == data.dtype
    assert of_data.tolist() == [[0, 1, 2]] * 2
    assert of_operand.tolist() == [2, 2, 2]
