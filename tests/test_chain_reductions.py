"""Chains with reductions: NumPy's values, dtypes, warnings and errors, in the memory of a few blocks.

The oracle is NumPy's own functions, one after the other, on whole arrays. If sums are compared bit by bit, numbers are
small integers, so that NumPy's sums are exact as well.
"""

import functools
import itertools
import math
import subprocess
import sys
import tracemalloc
import warnings

import numpy as np
import pytest
from _arithmetic import bits
from _ways import blocks_of
from hypothesis import given, settings
from hypothesis import strategies as st

import bcast
from bcast._elementwise import fold_terms
from bcast._runtime import core

FOLDS = ["sum", "mean", "prod", "max", "min", "any", "all", "argmax", "argmin"]
EXACT = ["max", "min", "any", "all", "argmax", "argmin"]
REDUCES = [np.add, np.multiply, np.maximum, np.minimum, np.logical_or, np.logical_and, np.fmax, np.bitwise_xor]
BLOCKS = [1, 40, 1000, 1 << 20]


def is_reduction(step):
    return isinstance(step, tuple) and not isinstance(step[0], np.ufunc) and step[0] is not np.clip


def numpys(data, *steps, dtype=None):
    """NumPy's result, step by step."""
    result = data if dtype is None else data.astype(dtype)
    for step in steps:
        if is_reduction(step):
            result = step[0](result, axis=step[1])
        else:
            result = step[0](result, *step[1:]) if isinstance(step, tuple) else step(result)
    return result


def check(data, *steps, own=None, blocks=BLOCKS, **options):
    """Compare a chain with NumPy's steps, or with NumPy's `own`: bits, dtypes, shapes and types."""
    with np.errstate(all="ignore"):
        expected = numpys(data, *own or steps, dtype=options.get("dtype"))
        for block in blocks:
            with blocks_of(block):
                result = bcast.chain(data, *steps, **options)
                assert type(result) is type(expected)
                assert result.dtype == expected.dtype
                assert result.shape == expected.shape
                assert bits(np.asarray(result)) == bits(np.asarray(expected))
                out = np.full(expected.shape, 7, expected.dtype)
                assert bcast.chain(data, *steps, out=out, **options) is out
                assert bits(out) == bits(np.asarray(expected))


def whole(rng, *shape, dtype="f8"):
    return rng.integers(-4, 5, shape).astype(dtype)


# Values.


@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i4", "u8", "f2", "f4", "f8", "c8", "c16", "g", ">f4"])
@pytest.mark.parametrize("name", FOLDS)
def test_each_reduction_of_each_dtype_along_each_axis(name, dtype):
    rng = np.random.default_rng(3)
    a, b = whole(rng, 5, 1, 3, dtype=dtype), whole(rng, 4, 3, dtype=dtype)
    step = np.logical_xor if dtype == "?" else np.subtract
    axes = [0, -1, None] if name.startswith("arg") else [0, 1, -1, None, (0, 2), (1, 0), ()]
    if name in ("mean", "prod") and dtype == "f2":
        axes = [0, -1]  # of others, NumPy's is rounded twice, or overflows on the way
    if np.dtype(dtype).kind == "c" and name in ("mean", "prod"):
        axes = [()]  # NumPy divides by a complex number, and signs of zeros follow from the order of factors
    for axis in axes:
        check(a, (step, b), (getattr(np, name), axis), blocks=[1, 40])
        whole_block = {"own": [(step, b), (getattr(np, name), axis)], "blocks": [1 << 20]}
        check(a, (step, b), (getattr(bcast, name), axis), **whole_block)


@pytest.mark.parametrize("dtype", ["c8", "c16"])
@pytest.mark.parametrize("name", ["mean", "prod"])
def test_means_and_products_of_complex_numbers(name, dtype):
    rng = np.random.default_rng(3)
    a, b = whole(rng, 5, 1, 3, dtype=dtype), whole(rng, 4, 3, dtype=dtype) * np.array(1j, dtype)
    for axis in [0, 1, -1, None, (0, 2)]:
        expected = numpys(a, (np.subtract, b), (getattr(np, name), axis))
        for block in BLOCKS:
            with blocks_of(block):
                result = bcast.chain(a, (np.subtract, b), (getattr(np, name), axis))
            assert result.dtype == expected.dtype
            np.testing.assert_allclose(result, expected, rtol=1e-6 if dtype == "c8" else 1e-14)


@pytest.mark.parametrize("ufunc", REDUCES, ids=lambda ufunc: ufunc.__name__)
def test_methods_of_ufuncs(ufunc):
    rng = np.random.default_rng(4)
    a, b = whole(rng, 5, 1, 3, dtype="i4"), whole(rng, 4, 3, dtype="i4")
    for axis in (0, (0, 1), None, -1):
        check(a, (np.add, b), (ufunc.reduce, axis))


def test_steps_and_reductions_may_follow():
    rng = np.random.default_rng(5)
    a, b, c = whole(rng, 6, 3), whole(rng, 7, 3), whole(rng, 4, 6)
    squares = (np.subtract, b), np.square, (np.sum, -1)
    for rest in (
        [np.sqrt],
        [(np.argmin, -1)],
        [(np.min, 0), np.sqrt, (np.add, c[:, 0, None])],
        [(np.max, -1), (np.add, c), (np.mean, 0), (np.less, 5)],
        [(np.less, 9), (np.any, 1), (np.multiply, c), (np.argmax, None)],
        [np.negative, (np.max, None)],
    ):
        check(a[:, None], *squares, *rest)
    check(a, (np.sum, 0))
    check(a, (np.max, -1), dtype="f4")
    check(a, (np.max, -1), np.square, (np.sum, 0))


def test_axes_that_are_kept_stretch_again():
    """Softmax's parts: without the greatest item, and divided by the sum of exponentials."""
    rng = np.random.default_rng(6)
    x, y = whole(rng, 4, 6), whole(rng, 3, 1, 6)
    greatest = functools.partial(np.max, axis=-1, keepdims=True)
    summed = functools.partial(np.add.reduce, axis=(0, 1), keepdims=True, dtype="f4")
    check(
        x,
        greatest,
        (np.subtract, x),
        np.square,
        (np.sum, 0),
        own=[lambda x: x.max(-1, keepdims=True), *[(np.subtract, x), np.square, (np.sum, 0)]],
    )
    check(
        x,
        (np.add, y),
        summed,
        (np.subtract, y),
        functools.partial(np.min),
        own=[
            (np.add, y),
            lambda x: np.add.reduce(x, (0, 1), "f4", keepdims=True),
            (np.subtract, y),
            lambda x: np.min(x),
        ],
    )
    first = functools.partial(np.argmax, axis=0, keepdims=True)
    check(x, (np.add, y), first, (np.add, y), own=[(np.add, y), lambda x: np.argmax(x, 0, keepdims=True), (np.add, y)])


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "M8[s]", "m8[D]"])
def test_nan_and_nat_wherever_blocks_are_cut(name, dtype):
    rng = np.random.default_rng(7)
    x = rng.permutation(np.arange(80)).reshape(8, 10).astype("i8").astype(dtype)
    if np.dtype(dtype).kind in "mM":
        shift = (np.add, np.timedelta64(1, "s" if dtype[0] == "M" else "D"))
        if name in ("any", "all"):
            return
    else:
        shift = (np.add, 1)
    for places in ([], [(3, 4)], [(3, 4), (6, 4), (3, 9)], [(7, 9)]):
        y = x.copy()
        for place in places:
            y[place] = np.nan if y.dtype.kind == "f" else "NaT"
        for axis in (0, 1, None):
            check(y, shift, (getattr(np, name), axis))


def test_ties_and_zeros_give_the_first_position():
    x = np.zeros((6, 10))
    x[2:, 5] = -0.0
    x[4:, 7] = 1
    for axis in (0, 1, None):
        check(x, np.abs, (np.argmax, axis))
        check(x, np.abs, (np.argmin, axis))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_sums_are_as_exact_as_bcasts(dtype):
    """Also where a reduced axis is cut, and terms cancel."""
    rng = np.random.default_rng(8)
    a, b = rng.standard_normal((2, 400)).astype(dtype), rng.standard_normal((2, 1)).astype(dtype)
    a[:, ::2] *= 1e6
    terms = np.multiply(a, b)
    for axis, exact in ((1, [math.fsum(row) for row in terms]), (None, math.fsum(terms.ravel()))):
        room = 4 * np.finfo(dtype).eps * np.abs(terms.astype("f8")).sum(axis) * 2.0 ** (-20 if dtype == "f4" else 0)
        room = room + np.finfo(dtype).eps * np.abs(exact)
        for block in BLOCKS:
            with blocks_of(block):
                assert np.all(np.abs(bcast.chain(a, (np.multiply, b), (np.sum, axis)) - exact) <= room)
                mean = bcast.chain(a, (np.multiply, b), (np.mean, axis))
                assert np.all(np.abs(mean * (terms.size // np.size(exact)) - exact) <= 2 * room)


def test_bits_do_not_depend_on_threads():
    rng = np.random.default_rng(9)
    a, b = rng.standard_normal((300, 3)), rng.standard_normal((5000, 3))
    before = bcast.get_num_threads()
    results = []
    for threads in (1, 2, 5):
        bcast.set_num_threads(threads)
        results.append(
            [bcast.chain(a[:, None], (np.subtract, b), np.square, (np.sum, axis)) for axis in (-1, 1, (0, 1), None)]
        )
    bcast.set_num_threads(before)
    for other in results[1:]:
        assert [bits(np.asarray(x)) for x in other] == [bits(np.asarray(x)) for x in results[0]]


def test_close_points_do_not_cancel():
    points = 1e8 + np.arange(6.0).reshape(3, 2)
    result = bcast.chain(points[:, None], (np.subtract, points), np.square, (np.sum, -1))
    assert result.tolist() == [[0, 8, 32], [8, 0, 8], [32, 8, 0]]


@st.composite
def calls(draw):
    """A chain of small whole numbers with one or two reductions."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    shape = tuple(draw(st.lists(st.integers(0, 7), min_size=1, max_size=4)))
    dtype = draw(st.sampled_from(["u1", "i2", "f4", "f8", "f2", ">i4", "?"]))
    data = whole(rng, *shape, dtype=dtype)
    if draw(st.booleans()) and data.ndim > 1:
        data = data.transpose(rng.permutation(data.ndim))[::-1]
    steps = []
    result = data
    for _ in range(draw(st.integers(1, 2))):
        for _ in range(draw(st.integers(0, 2))):
            length = result.ndim + draw(st.integers(-2, 1))
            given = [draw(st.integers(1, 4)) for _ in range(max(0, length))]
            for i in range(1, min(len(given), result.ndim) + 1):
                if result.shape[-i] != 1:
                    given[-i] = draw(st.sampled_from([1, result.shape[-i]]))
            operand = whole(rng, *given, dtype=draw(st.sampled_from(["i1", "f4", "f8"])))
            step = (draw(st.sampled_from([np.add, np.multiply, np.maximum, np.less])), operand)
            steps.append(step)
            result = numpys(result, step)
        if result.size == 0 and result.ndim == 0:
            break
        name = draw(st.sampled_from(FOLDS))
        if name == "prod" and np.asarray(result).dtype.kind == "f":  # their bits depend on the order of factors
            name = "sum"
        count = draw(st.integers(0, result.ndim))
        axes = [int(axis) for axis in rng.permutation(result.ndim)[:count]]
        axis = draw(st.sampled_from([None, tuple(axes), *axes[:1]]))
        if name.startswith("arg"):
            axis = axes[0] if axes else None
        step = (getattr(np, name), axis)
        try:
            with warnings.catch_warnings(action="ignore"):
                result = np.asarray(numpys(result, step))
        except ValueError:  # of no items
            return data, [*steps, step], None
        steps.append(step)
        if name in ("mean", "prod"):
            break
    return data, steps, result


@settings(max_examples=300, deadline=None)
@given(calls(), st.sampled_from([1, 8, 64, 512, 1 << 20]))
def test_random_chains(call, block):
    data, steps, expected = call
    with blocks_of(block), warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
        if expected is None:
            with pytest.raises(ValueError):
                bcast.chain(data, *steps)
            return
        result = np.asarray(bcast.chain(data, *steps))
    assert result.dtype == expected.dtype
    assert result.shape == expected.shape
    if expected.dtype == np.float16 or steps[-1][0] is np.mean:
        np.testing.assert_allclose(result, expected, rtol=2 * float(np.finfo(expected.dtype).eps))
    else:
        assert np.array_equal(result, expected, equal_nan=True)


# What arrays are given.


def test_modes_layouts_and_out():
    rng = np.random.default_rng(11)
    pictures, mean = rng.integers(0, 99, (2, 30, 20, 3), "u1"), np.array([1, 2, 3], "f4")
    first = pictures.transpose(0, 3, 1, 2)
    steps = (np.subtract, mean), np.square
    result = bcast.chain(first, *steps, (np.mean, (2, 3)), dtype="f4", mode="pdpd", axis=1)
    exact = np.square(first.astype("f8") - mean[:, None, None]).mean((2, 3))
    assert np.array_equal(result, exact.astype("f4"))
    out = np.zeros((3, 2), ">f8")[::-1].T
    assert bcast.chain(first, *steps, (np.max, (2, 3)), dtype="f4", axis=1, out=out) is out
    assert np.array_equal(out, np.square(first.astype("f4") - mean[:, None, None]).max((2, 3)))
    cut = np.zeros((2, 3), "u1")
    bcast.chain(first, *steps, (np.sum, (2, 3)), dtype="f4", axis=1, out=cut, casting="saturate")
    assert np.all(cut == 255)
    for options in ({"mode": "none"}, {"mode": "unidirectional"}):
        with pytest.raises(ValueError, match=r"steps\[1\]|data"):
            bcast.chain(first, (np.max, -1), (np.add, np.ones((2, 2, 3, 30))), **options)


def test_out_that_overlaps_is_as_if_operands_had_been_copied():
    items = np.arange(12.0)
    expected = np.subtract(items[:9].reshape(3, 3), items[3:6]).max(-1)
    for block in BLOCKS:
        with blocks_of(block):
            x = items.copy()
            bcast.chain(x[:9].reshape(3, 3), (np.subtract, x[3:6]), (np.max, -1), out=x[2:5])
            assert np.array_equal(x[2:5], expected)


def test_subclasses_and_objects():
    masked = np.ma.array(np.arange(6.0).reshape(2, 3), mask=[[0, 0, 1], [0, 0, 0]])
    result = bcast.chain(masked, (np.add, 1), (np.sum, -1))
    assert result.tolist() == [3, 15]
    objects = np.array([[1, 2], [3, 2**70]], object)
    for block in BLOCKS:
        with blocks_of(block):
            assert bcast.chain(objects, (np.add, 1), (np.sum, 0)).tolist() == [6, 2**70 + 4]
            assert bcast.chain(objects, (np.max, None)) == 2**70


# Errors.


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (np.sum, r"`steps\[1\]` expected a pair of a reduction and its axis, got .*; use \(np.sum, axis\)"),
        (bcast.max, r"use \(bcast.max, axis\)"),
        (np.add.reduce, r"use \(np.add.reduce, axis\)"),
        ((np.sum,), r"use \(np.sum, axis\)"),
        ((np.sum, 0, True), r"functools.partial\(np.sum, axis=axis, keepdims=True\)"),
        (functools.partial(np.sum, 0), "as keywords of the partial"),
        (functools.partial(np.sum, axis=0, where=True), "expected axis, keepdims, dtype or exact as keywords"),
        (functools.partial(np.max, axis=0, dtype="f8"), "expected no dtype for np.max"),
        (functools.partial(bcast.max, axis=0, exact=True), "expected bcast.sum or bcast.mean with `exact`"),
        (functools.partial(np.sum, axis=0, exact=True), "expected bcast.sum or bcast.mean with `exact`, got np.sum"),
        ((np.argmax, (0, 1)), "expected one axis or None for np.argmax"),
        ((np.sum, "x"), "`axis` expected"),
        ((np.sum, (0, 0)), "`axis` expected distinct axes"),
        ((np.var, 0), "pass the result of the chain to bcast.var"),
        ((max, 0), r"`steps\[1\]` expected a ufunc"),
        ((np.median, 0), r"`steps\[1\]` expected a ufunc"),
    ],
    ids=itertools.count(),
)
def test_invalid_steps_are_refused(step, words):
    with pytest.raises((TypeError, ValueError), match=words):
        bcast.chain(np.ones((2, 3)), np.sqrt, step)


def test_steps_after_objects_became_one_item():
    items = np.array([1, 2, 3, 1], object)
    out = np.empty((), object)
    assert bcast.chain(items, (np.max, None), np.negative) == -3
    assert bcast.chain(items, (np.sum, 0), (np.multiply, 2), out=out) is out
    assert out == 14
    assert bcast.chain(np.array(["a", "b"], object), (np.sum, None), (np.add, "c")) == "abc"


def test_truths_of_objects_by_ufuncs_are_items():
    items = np.array([[0, 2], [3, 1]], object)
    for reduce in np.logical_or.reduce, np.logical_and.reduce:
        assert bcast.chain(items, (reduce, 0)).tolist() == reduce(items, 0).tolist()
        assert bcast.chain(items, (reduce, None)) == reduce(items, None)


@pytest.mark.parametrize("axis", [0, -1])
def test_numbers_have_the_axes_that_numpy_gives_them(axis):
    for function in np.sum, np.max, np.any, np.argmin:
        found = bcast.chain(np.array(3.0, np.float32), (function, axis))
        assert found == function(np.float32(3), axis=axis)
        assert found.dtype == function(np.float32(3), axis=axis).dtype
    assert bcast.chain(np.ones(3), (np.sum, 0), (np.max, axis)) == 3


def test_axes_that_are_not_there_and_no_items():
    out = np.full(3, 5.0)
    with pytest.raises(np.exceptions.AxisError):
        bcast.chain(np.ones((2, 3)), (np.max, 0), (np.max, 1), out=out)
    with pytest.raises(ValueError, match="zero-size"):
        bcast.chain(np.ones((0, 3)), np.sqrt, (np.max, 0), out=out)
    with pytest.raises(ValueError, match="`out` expected shape"):
        bcast.chain(np.ones((2, 3)), (np.max, -1), out=out)
    with pytest.raises(TypeError, match="`out` expected a dtype"):
        bcast.chain(np.ones((2, 3)), (np.max, 0), out=out.astype("i4"))
    assert out.tolist() == [5, 5, 5]


def told(call):
    """The warnings of a call, in order."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    return [str(each.message) for each in found]


@pytest.mark.parametrize("block", BLOCKS)
def test_errors_are_reported_once_with_the_steps_name(block):
    x = np.ones((8, 10))
    x[6, 7] = 0
    y = np.zeros(10)
    y[7] = 1e300
    steps = (np.divide, x), (np.add, y), np.square, (np.max, -1), (np.subtract, np.inf), (np.multiply, 0)
    with blocks_of(block), np.errstate(all="warn", under="ignore"):
        assert told(lambda: bcast.chain(x, *steps)) == told(lambda: numpys(x, *steps))
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            bcast.chain(x, *steps)
        assert {each.filename for each in found} == {__file__}
    with blocks_of(block), np.errstate(all="raise"), pytest.raises(FloatingPointError, match="encountered in divide"):
        bcast.chain(np.ones(3), (np.divide, np.zeros((2, 3))), (np.any, -1))
    calls = []
    with blocks_of(block), np.errstate(all="call", call=lambda *given: calls.append(given)):
        bcast.chain(np.ones((5, 3)), (np.divide, np.zeros(3)), (np.any, -1))
    assert calls == [("divide by zero", 1)]


# Memory.


@pytest.mark.parametrize("axis", [-1, (0, 1), None])
def test_no_array_of_the_broadcast_is_made(axis):
    """The broadcast would have 96 MB; results have 8 at most, which are `out`."""
    a, b = np.ones((1000, 3)), np.ones((4000, 3))
    steps = (np.subtract, b), np.square, (np.sum, axis)
    memory = bcast.chain_memory(a[:, None], *steps)
    out = np.empty(numpys(a[:1, None], *steps).shape if axis != -1 else (1000, 4000))
    bcast.chain(a[:, None], *steps, out=out)
    tracemalloc.start()
    bcast.chain(a[:, None], *steps, out=out)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert memory.result == out.nbytes
    assert peak < memory.blocks < 32 << 20


def test_steps_without_kernels_also_run_in_blocks():
    x = np.ones((4000, 700), "g")
    tracemalloc.start()
    result = bcast.chain(x, (np.add, x[:1]), np.square, (np.max, None))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert result == 4
    assert peak < bcast.chain_memory(x, (np.add, x[:1]), np.square, (np.max, None)).blocks < 32 << 20 < x.nbytes


POINTS = """
import resource, sys
import numpy as np, bcast
n = int(sys.argv[1])
a, b = np.random.default_rng(1).random((2, n, 3))
bcast.chain(a[:9, None], (np.subtract, b[:9]), np.square, (np.sum, -1), (np.argmin, -1))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
nearest = bcast.chain(a[:, None], (np.subtract, b), np.square, (np.sum, -1), (np.argmin, -1))
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="counts KiB")
@pytest.mark.parametrize("n", [2000, pytest.param(6000, marks=pytest.mark.slow)])
def test_the_peak_of_a_process(n):
    """The nearest of as many points: differences would take 96 MB, or 864."""
    result = subprocess.run([sys.executable, "-c", POINTS, str(n)], capture_output=True, text=True, check=True)
    assert int(result.stdout) < 64


def test_memory_is_predicted():
    a = np.zeros((1000, 3))
    small = bcast.chain_memory(a, np.sqrt)
    assert small.result == a.nbytes
    memory = bcast.chain_memory(a[:, None], (np.subtract, a), (np.sum, -1), dtype="f4", casting="same_kind")
    assert memory.result == 8 * 1000 * 1000
    with pytest.raises(TypeError, match="base class"):
        bcast.chain_memory(np.ma.array(a), (np.sum, -1))
    with pytest.raises(TypeError, match="expected a pair of a reduction"):
        bcast.chain_memory(a, np.sum)


# Stages that one loop does.


@pytest.fixture(params=core.TARGETS)
def target(request):
    before = core.use_target(request.param)
    yield request.param
    core.use_target(before)


def folded(name, terms):
    """The result of a reduction along the last axis; sums are exact and then rounded."""
    if name in ("max", "min"):
        return getattr(np, name)(terms, -1)
    sums = np.array([math.fsum(row) for row in terms.reshape(-1, terms.shape[-1])]).reshape(terms.shape[:-1])
    return (sums / (terms.shape[-1] if name == "mean" else 1)).astype(terms.dtype)


@pytest.mark.usefixtures("target")
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", ["sum", "mean", "max", "min"])
def test_lengths_around_tiles_and_vectors(name, dtype):
    rng = np.random.default_rng(20)
    for n, depth in zip((32, 33, 35, 47, 48, 49, 67, 300), itertools.cycle((2, 3, 9)), strict=False):
        a, b = rng.standard_normal((3, 1, depth)).astype(dtype), rng.standard_normal((n, depth)).astype(dtype)
        terms = np.abs(np.square(np.multiply(np.subtract(a, b), 3)) / (b + 7))
        steps = (np.subtract, b), (np.multiply, 3), np.square, (np.divide, b + b.dtype.type(7)), np.abs
        result = bcast.chain(a, *steps, (getattr(np, name), -1))
        assert result.dtype == dtype
        if name in ("max", "min"):
            assert bits(result) == bits(folded(name, terms))
        else:
            units = 2 if name == "mean" else 1  # the oracle rounds twice, too
            np.testing.assert_allclose(result, folded(name, terms), rtol=units * float(np.finfo(dtype).eps))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_the_longest_axis_is_in_the_rows(dtype):
    """Many points and few centres: results are transposed back."""
    rng = np.random.default_rng(21)
    a, b = whole(rng, 70, 3, dtype=dtype), whole(rng, 5, 3, dtype=dtype)
    for rest in ([], [np.sqrt], [(np.argmin, -1)], [(np.add, b[:, 0])]):
        check(a[:, None], (np.subtract, b), np.square, (np.sum, -1), *rest, blocks=[1000, 1 << 20])
        check(a[::-1, None], (np.subtract, b[:, ::-1]), np.square, (np.max, -1), *rest, blocks=[1 << 20])
    keeping = functools.partial(np.max, axis=-1, keepdims=True)
    check(a[:, None], (np.subtract, b), keeping, np.sqrt, own=[
        (np.subtract, b), lambda x: x.max(-1, keepdims=True), np.sqrt
    ])  # fmt: skip


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e308, 1e-308])
def test_items_beyond_all_numbers(name, value):
    """If the loop finds an error, the terms are computed again and the errors reported, step by step."""
    a, b = np.ones((10, 3)), np.ones((40, 3))
    a[4, 1], b[7, 2] = value, value
    steps = (np.subtract, b), (np.multiply, 1.5), np.square, (getattr(np, name), -1), np.sqrt
    with np.errstate(all="warn"):
        found = told(lambda: bcast.chain(a[:, None], *steps))
        expected = told(lambda: numpys(a[:, None], *steps))
    assert [text for text in found if "reduce" not in text] == [text for text in expected if "reduce" not in text]
    check(a[:, None], *steps, blocks=[1000, 1 << 20])


def test_terms_that_cancel():
    """Sums of float64 keep what rounding costs."""
    a = np.array([[1e16, 1.0, -1e16, 1.0]]).repeat(40, 0)
    result = bcast.chain(a[:, None], (np.multiply, np.ones((40, 4))), (np.sum, -1))
    assert (result == 2).all()


def broadcast_operand(rng, shape, dtype):
    """An operand that fits a shape: some axes have length 1; items have any order, strides, or run backwards."""
    lengths = [length if rng.random() < 0.7 else 1 for length in shape]
    reach = [2 * length if rng.random() < 0.3 else length for length in lengths]
    order = rng.permutation(len(shape))
    items = rng.integers(0 if np.dtype(dtype).kind == "u" else -4, 5, [reach[at] for at in order]).astype(dtype)
    items = items.transpose(np.argsort(order))
    items = items[tuple(slice(0, at, 2 if at > 1 and at == 2 * n else 1) for at, n in zip(reach, lengths, strict=True))]
    return items[::-1] if rng.random() < 0.2 else items


def random_folds(rng, dtypes, count):
    """Shapes on both sides of the sizes of vectors, tiles and pieces, and axes with some reduced ones."""
    lengths = [1, 2, 3, 7, 16, 31, 32, 33, 70, 130, 300]
    found = 0
    while found < count:
        shape = tuple(int(length) for length in rng.choice(lengths, rng.integers(1, 5)))
        if rng.random() < 0.2:
            shape = (*shape[:1], int(rng.integers(4000, 9000)))
        axes = tuple(axis for axis in range(len(shape)) if rng.random() < 0.4)
        if math.prod(shape) > 100_000:
            continue
        dtype = dtypes[found % len(dtypes)]
        found += 1
        yield broadcast_operand(rng, shape, dtype), broadcast_operand(rng, shape, dtype), shape, axes


def fold_whole(a, b, shape, axes, functions, name, result, takes_roots=False):
    """The result of compiled loops, and whether it is certain; None if they decline the call."""
    out = np.full([length for at, length in enumerate(shape) if at not in axes], 7, result)
    operands = [a, *(b if function.nin == 2 else None for function in functions)]
    return out, fold_terms(operands, shape, axes, functions, name, takes_roots, out)


@pytest.mark.usefixtures("target")
@pytest.mark.parametrize("function", [np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal])
def test_truths_of_numbers_along_any_axes(function):
    rng = np.random.default_rng(30)
    taken = 0
    dtypes = ["f4", "f8", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]
    for (a, b, shape, axes), name in zip(random_folds(rng, dtypes, 120), itertools.cycle(["any", "all", "sum"])):
        if a.dtype.kind == "f":
            a = np.where(rng.random(a.shape) < 0.1, np.array(np.nan, a.dtype), a)
        result = np.intp if name == "sum" else np.bool
        found, is_sure = fold_whole(a, b, shape, axes, (function,), name, result)
        expected = getattr(np, name)(np.broadcast_to(function(a, b), shape), axis=axes)
        assert is_sure is not False
        if is_sure:
            taken += 1
            assert np.array_equal(found, expected)
    assert taken > 40


@pytest.mark.usefixtures("target")
@pytest.mark.parametrize("name", ["sum", "mean", "max", "min"])
def test_arithmetic_along_any_axes(name):
    rng = np.random.default_rng(31)
    taken = 0
    lists = [(np.subtract, np.square), (np.subtract, np.absolute), (np.multiply,), (np.square,), (np.add, np.subtract)]
    for (a, b, shape, axes), functions in zip(random_folds(rng, ["f4", "f8"], 150), itertools.cycle(lists)):
        terms = a
        for function in functions:
            terms = function(terms, b) if function.nin == 2 else function(terms)
        takes_roots = functions[-1] is np.square
        expected = getattr(np, name)(np.broadcast_to(terms, shape).astype("f8"), axis=axes).astype(a.dtype)
        expected = np.sqrt(expected) if takes_roots else expected
        found, is_sure = fold_whole(a, b, shape, axes, functions, name, a.dtype, takes_roots)
        if is_sure and name == "mean":
            np.testing.assert_allclose(found, expected, rtol=2 * float(np.finfo(a.dtype).eps))
        elif is_sure:
            assert np.array_equal(found, expected)
        taken += bool(is_sure)
    assert taken > 50


@pytest.mark.usefixtures("target")
@pytest.mark.parametrize("dtype", ["u1", "i8", "f4", "f8"])
@pytest.mark.parametrize("name", ["any", "all", "sum", "max"])
def test_steps_after_truths_and_counts(name, dtype):
    """Truths and counts are not numbers of the loop that computes them, so it leaves later steps to others."""
    rng = np.random.default_rng(3)
    pixels = rng.integers(0, 3, (9, 40, 1, 3)).astype(dtype)
    palette = rng.integers(0, 3, (16, 3)).astype(dtype)
    found = getattr(np, name)(pixels == palette, -1)
    steps = (np.equal, palette), (getattr(np, name), -1)
    for position, axis in itertools.product((np.argmax, np.argmin), (-1, 0, None)):
        np.testing.assert_array_equal(bcast.chain(pixels, *steps, (position, axis)), position(found, axis))
    roots = bcast.chain(pixels, *steps, np.sqrt)
    assert roots.dtype == np.sqrt(found).dtype
    np.testing.assert_array_equal(roots, np.sqrt(found))


@pytest.mark.usefixtures("target")
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", ["argmin", "argmax"])
def test_nearest_points_without_their_distances(dtype, name):
    """Ties give the first position, also where all distances are infinite, and wherever pieces end."""
    rng = np.random.default_rng(32)
    sought = getattr(np, name)
    for n, m, depth in ((1, 40, 3), (7, 33, 2), (40, 5, 3), (100, 31, 1), (33, 3000, 3), (3000, 12, 3), (90, 70, 40)):
        a, b = whole(rng, n, depth, dtype=dtype), whole(rng, m, depth, dtype=dtype)
        for fill in (None, np.inf):
            if fill is not None:
                a[n // 2], b[m // 3] = fill, -fill
            squares = (np.subtract, b), np.square, (np.sum, -1)
            for axis in (0, 1, -1):
                for roots in ([], [np.sqrt]):
                    check(a[:, None], *squares, *roots, (sought, axis), blocks=[1 << 20])
    keeping = functools.partial(sought, axis=1, keepdims=True)
    a, b = whole(rng, 50, 3, dtype=dtype), whole(rng, 60, 3, dtype=dtype)
    largest = (np.subtract, b), np.absolute, (np.max, -1)
    check(a[:, None], *largest, keeping, own=[*largest, lambda x: sought(x, 1, keepdims=True)], blocks=[1 << 20])
    check(a[:, None], *largest, (sought, 1), (np.add, 3), (np.max, 0), blocks=[1 << 20])


@pytest.mark.parametrize("value", [np.nan, 1e200, 1e-200])
def test_nearest_points_with_errors_are_found_step_by_step(value):
    a, b = np.ones((40, 3)), np.ones((50, 3))
    a[4, 1], b[7, 2] = value, value
    steps = (np.subtract, b), np.square, (np.sum, -1), np.sqrt, (np.argmin, 1)
    with np.errstate(all="warn"):
        assert told(lambda: bcast.chain(a[:, None], *steps)) == told(lambda: numpys(a[:, None], *steps))
    check(a[:, None], *steps, blocks=[1000, 1 << 20])


@pytest.mark.usefixtures("target")
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("given", ["?", "u1", "i1", "u2", "i4", "i8", "f2", "f4", "f8"])
def test_data_are_converted_where_they_are_gathered(given, dtype):
    """Pictures and palettes: by `dtype`, or as the first step converts them."""
    rng = np.random.default_rng(34)
    for (data, operand, _, axes), lanes in zip(random_folds(rng, [dtype], 12), itertools.cycle([40, 3]), strict=False):
        picture = np.abs(rng.integers(0, 9, (lanes, 37, 1, 3))).astype(given)
        palette = whole(rng, 33 if lanes == 3 else 5, 3, dtype=dtype)
        nearest = (np.subtract, palette), np.square, (np.sum, -1), (np.argmin, -1)
        check(picture, *nearest, dtype=dtype, blocks=[1 << 20])
        data = np.abs(data).astype(given)
        for reduction in ((np.less, operand), (np.sum, axes)), ((np.subtract, operand), np.square, (np.max, axes)):
            check(data, *reduction, dtype=dtype, blocks=[1 << 20])
            if np.result_type(given, dtype) == dtype:
                check(data, *reduction, blocks=[1 << 20])


@pytest.mark.parametrize("steps", [[(np.less, 3), (np.all, -1)], [np.square, (np.sum, 0)]], ids=["truths", "sums"])
def test_conversions_report_their_errors(steps):
    x = np.full((40, 3), 1e300)
    with np.errstate(all="warn"):
        expected = told(lambda: numpys(x.astype("f4"), *steps))
        assert told(lambda: bcast.chain(x, *steps, dtype="f4", casting="unsafe")) == expected


def test_zeros_have_numpys_signs():
    for first in (0.0, -0.0):
        x = np.full(5000, first)
        x[1000::7] = -first
        for name in ("max", "min"):
            check(x, (np.multiply, np.ones(5000)), (getattr(np, name), None))
            check(x.reshape(50, 100), (np.multiply, np.ones(100)), (getattr(np, name), 0))


def test_any_and_all_of_parts():
    """A decision in one piece is valid for all pieces."""
    for n in (31, 4096, 300_000):
        for at in (0, n // 2, n - 1):
            x = np.zeros(n)
            x[at] = 1
            for a, b in ((x, np.array([1.0, 2, 0])), (1 - x, np.array([0.0, 2, 1]))):
                for name in ("any", "all", "sum"):
                    check(a[:, None], (np.equal, b), (getattr(np, name), 0), blocks=[1 << 20])
                    check(a[:, None], (np.not_equal, b), (getattr(np, name), 0), blocks=[1 << 20])


def test_data_that_does_not_fit_compiled_loops_is_refused():
    a, out, axes = np.ones((40, 4, 5)), np.ones((4, 5)), (0,)
    product, square, less = (np.multiply,), (np.square,), (np.less,)
    assert fold_terms([a, a], a.shape, axes, product, "sum", False, out)
    assert (out == 40).all()
    assert fold_terms([a[:4], a[:4]], (4, 4, 5), axes, product, "sum", False, out) is None
    assert fold_terms([a[:0], a[:0]], (0, 4, 5), axes, product, "sum", False, out) is None
    for operands, shape, functions, name, results in (
        ([], a.shape, (), "sum", out),
        ([a], a.shape, (), "sum", out),
        ([a], a.shape, product, "sum", out),
        ([a] * 9, a.shape, product * 8, "sum", out),
        ([None, a], a.shape, product, "sum", out),
        ([a, None], a.shape, square, "prod", out),
        ([a, None], a.shape, (np.exp,), "sum", out),
        ([a, None], a.shape, square, "sum", out.T),
        ([a, None], a.shape, square, "sum", out.T.copy()),
        ([a, None], a.shape, square, "sum", out[0]),
        ([a, None], a.shape, square, "sum", out.astype("i8")),
        ([a, None], a.shape, square, "sum", out.astype("f4")),
        ([a, None], a.shape, square, "any", out.astype("?")),
        ([a, a], a.shape, less, "any", out),
        ([a, a], a.shape, less, "sum", out),
        ([a, a, a], a.shape, (np.less, np.equal), "any", out.astype("?")),
        ([a[:, :3], None], a.shape, square, "sum", out),
        ([a[None], None], a.shape, square, "sum", out),
        ([a, a.astype("f4")], a.shape, product, "sum", out),
        ([a.astype(">f8"), None], a.shape, square, "sum", out),
        ([np.frombuffer(bytes(6401), "f8", 800, 1).reshape(40, 4, 5), None], a.shape, square, "sum", out),
    ):
        with pytest.raises(ValueError, match="expected"):
            fold_terms(operands, shape, axes, functions, name, False, results)


def test_sums_of_many_timedeltas():
    """More than one block has: NumPy takes their dtype for no dtype of a sum."""
    times = np.arange(1_500_000).astype("m8[s]")
    for name in "sum", "mean":
        assert bcast.chain(times, np.abs, (getattr(np, name), None)) == getattr(np, name)(times)
    assert bcast.chain(times[:3], (np.multiply, 2.5), (np.sum, 0)) == np.sum(times[:3] * 2.5)


def test_products_of_many_floats_report_no_error():
    items = np.ones(1_500_000)
    items[:600], items[-600:] = 16, 1 / 16
    with np.errstate(all="raise"):
        bcast.chain(items, (np.multiply, 1.0), (np.prod, None))
        assert bcast.chain(np.ones(2, "f2"), (np.logical_and, 1e10), (np.any, None))


@pytest.mark.parametrize(("data", "operand"), ["ql", "lq", "QL", "LQ"])
def test_two_names_of_an_integer_are_compared(data, operand):
    """NumPy has two numbers for integers of one size."""
    x, y = np.arange(12).astype(data).reshape(4, 3), np.full((4, 3), 5, operand)
    found = bcast.chain(x, (np.greater, y), (np.any, -1))
    np.testing.assert_array_equal(found, np.greater(x, y).any(-1), strict=True)
