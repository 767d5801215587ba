"""`elementwise`: the examples of both specifications, the rules against the oracle, the arguments of the function."""

from functools import partial
from itertools import product

import numpy as np
import pytest
from _arithmetic import difference, told
from _examples import load
from _reference import reference
from hypothesis import strategies as st
from numpy.exceptions import AxisError
from test_errors import refuse, refuse_with_out, rows, untouched
from test_properties import LENGTHS, for_all

import bcast


def worked():
    """Yield the pages' worked examples: mode, axis, shape of A, of B, of the result or None where it is refused."""
    for page, examples in load().items():
        for each in examples:
            given = each.arguments.get("mode", "numpy")
            result = None if each.result is None else tuple(each.result)
            if each.call == "broadcast_arrays":
                yield f"{page}, {each.where}", ("numpy", -1, tuple(each.data), tuple(each.target), result)
            elif each.call == "broadcast" and given in ("numpy", "pdpd"):
                mode, axis = "pdpd" if given == "pdpd" else "unidirectional", each.arguments.get("axis", -1)
                yield f"{page}, {each.where}", (mode, axis, tuple(each.target), tuple(each.data), result)


MODES = ("numpy", "none", "unidirectional", "pdpd")
DEEP = (1,) * 3 + (2,) + (1,) * 60
EXAMPLES = {**dict(worked()), "pdpd, 64 axes": ("pdpd", 3, DEEP, (2,), DEEP)}
assert len(EXAMPLES) > 30


def counted(shape, first):
    """Numbers whose pairs all have different sums."""
    return np.arange(first, first + np.prod(shape), dtype=float).reshape(shape)


def stretched(mode, axis, a_shape, b_shape):
    """The shape of the result and the one that b is reshaped to, by the oracle."""
    if mode == "numpy":
        shape, _ = reference(a_shape, b_shape, mode="bidirectional") or (None, None)
        return None if shape is None else (shape, reference(b_shape, shape)[1])
    known = {"none": {"mode": "none"}, "unidirectional": {"mode": "numpy"}, "pdpd": {"mode": "pdpd", "axis": axis}}
    return reference(b_shape, a_shape, **known[mode])


def check(mode, axis, a_shape, b_shape, dtype="f8"):
    """Compare a call, without `out` and with it, with the oracle; return the result's shape, None if it is refused."""
    found = stretched(mode, axis, a_shape, b_shape)
    a, b = counted(a_shape, 1).astype(dtype), (1000 * counted(b_shape, 1)).astype(dtype)
    call = partial(bcast.elementwise, np.subtract, a, b, mode=mode, axis=axis)
    if found is None:
        with pytest.raises(ValueError, match=r"^`(a|b|a, b|axis)` expected "):
            call()
        with untouched(a_shape, float) as out, pytest.raises(ValueError, match="expected"):
            call(out=out)
        return None
    expected = np.subtract(a, b.reshape(found[1]))
    np.testing.assert_array_equal(call(), expected, strict=True)
    out = np.empty(found[0], dtype)
    assert call(out=out) is out
    np.testing.assert_array_equal(out, expected, strict=True)
    return found[0]


@pytest.mark.parametrize(("mode", "axis", "a_shape", "b_shape", "shape"), EXAMPLES.values(), ids=EXAMPLES)
def test_examples_have_the_shape_of_the_specification(mode, axis, a_shape, b_shape, shape):
    assert check(mode, axis, a_shape, b_shape) == shape


@pytest.mark.parametrize("dtype", ["f8", "m8[s]"])  # which is left to NumPy
@pytest.mark.parametrize("mode", MODES)
def test_all_small_shapes(mode, dtype):
    shapes = [shape for rank in range(4) for shape in product(range(3), repeat=rank)]
    for a_shape, b_shape in product(shapes, repeat=2):
        for axis in range(-2, len(a_shape) + 2) if mode == "pdpd" else (-1,):
            check(mode, axis, a_shape, b_shape, dtype)


SHAPES = st.lists(LENGTHS, max_size=4).map(tuple)


@for_all(st.sampled_from(MODES), st.integers(-1, 5), SHAPES, st.data())
def test_any_shapes_as_the_oracle(mode, axis, a_shape, data_strategy):
    near = st.lists(st.sampled_from([1, *a_shape]), max_size=5).map(tuple)
    b_shape = data_strategy.draw(st.one_of(SHAPES, near, st.just(a_shape)))
    check(mode, axis if mode == "pdpd" else -1, a_shape, b_shape)


# What is handed on, and what comes back.


class Tagged(np.ndarray):
    pass


def test_operands_are_views():
    a, b = np.zeros((2, 3, 4)), np.arange(3.0)
    for mode, axis, shape in (("pdpd", 1, (1, 3, 1)), ("pdpd", 1, (1, 3, 1)), ("none", -1, (3,))):
        met = bcast.elementwise(lambda *operands: operands, a if mode == "pdpd" else b, b, mode=mode, axis=axis)
        assert met[0] is (a if mode == "pdpd" else b)
        assert met[1].shape == shape
        assert np.shares_memory(met[1], b)
    for mode in ("numpy", "unidirectional", "pdpd"):
        assert bcast.elementwise(lambda *operands: operands[1], np.zeros((2, 3)), b, mode=mode) is b
    for step in 1, -1, 2:
        b = np.arange(12.0).reshape(4, 3).T[:, ::step]
        met = bcast.elementwise(lambda _, b: b, np.zeros((2, *b.shape, 5)), b, mode="pdpd", axis=1)
        assert np.shares_memory(met, b)
        np.testing.assert_array_equal(met, b[None, ..., None], strict=True)


def test_subclasses_are_handed_on():
    a, b = np.zeros((2, 3)), np.arange(2.0).view(Tagged)
    assert type(bcast.elementwise(np.add, a, b, mode="pdpd", axis=0)) is Tagged
    masked = np.ma.array([1.0, 2.0], mask=[True, False])
    result = bcast.elementwise(np.add, a, masked, mode="pdpd", axis=0)
    np.testing.assert_array_equal(result.mask, [[True] * 3, [False] * 3])


SCALARS = (True, 2, 2.5, 2j)


@pytest.mark.parametrize("scalar", SCALARS)
@pytest.mark.parametrize("mode", ["numpy", "unidirectional", "pdpd"])
def test_scalars_adapt_to_the_other_dtype(scalar, mode):
    a = np.ones((2, 2), np.float32)
    assert bcast.elementwise(np.multiply, a, scalar, mode=mode).dtype == np.multiply(a, scalar).dtype
    if mode == "numpy":
        assert bcast.elementwise(np.multiply, scalar, a).dtype == np.multiply(scalar, a).dtype


@pytest.mark.parametrize("scalar", SCALARS)
def test_scalars_have_no_axes(scalar):
    none, one = np.ones(()), np.ones(1)
    for mode in ("numpy", "none", "unidirectional", "pdpd"):
        for a, b in ((none, scalar), (scalar, none), (scalar, scalar)):
            assert np.shape(bcast.elementwise(np.add, a, b, mode=mode)) == ()
    for mode in ("none", "unidirectional", "pdpd"):
        with pytest.raises(ValueError, match="got "):
            bcast.elementwise(np.add, scalar, one, mode=mode)
    with pytest.raises(ValueError, match="got "):
        bcast.elementwise(np.add, one, scalar, mode="none")


def test_the_functions_result_is_returned():
    assert type(bcast.elementwise(np.add, 1.5, np.float64(2))) is np.float64
    quotient, remainder = bcast.elementwise(np.divmod, [7, 8], 3)
    assert (quotient.tolist(), remainder.tolist()) == ([2, 2], [1, 2])
    assert bcast.elementwise(lambda a, b: (a.shape, b.shape), [1], 2) == ((1,), ())
    assert bcast.elementwise(np.greater, [1, 2], [2, 1], mode="none").dtype == bool
    assert bcast.elementwise(np.frompyfunc(lambda a, b: f"{a}{b}", 2, 1), [1, 2], 3).tolist() == ["13", "23"]


def test_out_is_handed_on():
    quotient, remainder = np.empty(2, int), np.empty(2, int)
    assert bcast.elementwise(np.divmod, [7, 8], 3, out=(quotient, remainder))[1] is remainder
    assert (quotient.tolist(), remainder.tolist()) == ([2, 2], [1, 2])
    out = np.empty(2, np.float32)
    assert bcast.elementwise(np.add, [1, 2], 3, out=(out,)) is out

    def function(a, b, out):
        out[...] = a + b
        return "done"

    assert bcast.elementwise(function, [1, 2], 3, out=out) == "done"
    assert out.tolist() == [4, 5]


def test_exceptions_of_the_function_pass_through():
    with pytest.raises(ZeroDivisionError):
        bcast.elementwise(lambda a, b: a.size // (b.size - 1), [1], [2])
    with pytest.raises(TypeError, match="ufunc 'bitwise_and' not supported"):
        bcast.elementwise(np.bitwise_and, [1.0], [2.0])
    with pytest.raises(TypeError, match="Cannot cast ufunc 'add' output") as caught:
        bcast.elementwise(np.add, np.ones(2), np.ones(2), out=np.empty(2, int))
    assert caught.value.__notes__ == ["Give casting='unsafe', or an `out` of another dtype."]


class Refusing:
    def __add__(self, other):
        raise ValueError("of the item")


@pytest.mark.parametrize("mode", [None, "numpy"])
def test_shapes_are_compared_where_a_ufunc_fails(mode):
    items = np.array([Refusing(), Refusing()])
    with pytest.raises(ValueError, match="of the item"):
        bcast.elementwise(np.add, items, items, mode=mode)
    for other in (np.ones(3, object), np.ma.ones(3)):
        with pytest.raises(ValueError, match=r"^`a, b` expected lengths"):
            bcast.elementwise(np.add, items, other, mode=mode)


ROW = np.arange(3.0)
MATRIX = np.zeros((2, 3))
MISUSES = {
    "mode": (partial(bcast.elementwise, np.add, MATRIX, ROW, mode="explicit"), ValueError, "mode"),
    "mode_of_another_kind": (partial(bcast.elementwise, np.add, MATRIX, ROW, mode=b"none"), TypeError, "mode"),
    "axis": (partial(bcast.elementwise, np.add, MATRIX, ROW, mode="unidirectional", axis=1), ValueError, "axis"),
    "axis_of_another_kind": (partial(bcast.elementwise, np.add, MATRIX, ROW, mode="pdpd", axis=1.0), TypeError, "axis"),
    "axis_bool": (partial(bcast.elementwise, np.add, MATRIX, ROW, mode="pdpd", axis=True), TypeError, "axis"),
    "axis_numpy_bool": (partial(bcast.elementwise, np.add, MATRIX, ROW, mode="pdpd", axis=np.True_), TypeError, "axis"),
    "axis_outside": (partial(bcast.elementwise, np.add, MATRIX, ROW, mode="pdpd", axis=2), AxisError, "axis"),
    "numpy": (partial(bcast.elementwise, np.add, MATRIX, [1, 2]), ValueError, "a, b"),
    "none": (partial(bcast.elementwise, np.add, MATRIX, ROW, mode="none"), ValueError, "b"),
    "unidirectional": (partial(bcast.elementwise, np.add, ROW, MATRIX, mode="unidirectional"), ValueError, "a"),
    "pdpd": (partial(bcast.elementwise, np.add, MATRIX, ROW, mode="pdpd", axis=0), ValueError, "a"),
    "casting": (partial(bcast.elementwise, np.add, MATRIX, ROW, casting="maybe"), ValueError, "casting"),
    "dtype": (partial(bcast.elementwise, np.add, MATRIX, ROW, dtype="nonsense"), TypeError, "dtype"),
    "unary": (partial(bcast.elementwise, np.sin, MATRIX, ROW), TypeError, "ufunc"),  # which would write to `b`
    "generalised": (partial(bcast.elementwise, np.matmul, MATRIX, ROW), TypeError, "ufunc"),
    "no_function": (partial(bcast.elementwise, "add", MATRIX, ROW), TypeError, "ufunc"),
    "ragged": (partial(bcast.elementwise, np.add, MATRIX, [[1], [1, 2]]), ValueError, "b"),
}
OF_CHAINS = {"a, b": "data, steps", "a": "data", "b": "steps[0]", "ufunc": "steps[0]"}
MISUSES |= {
    f"chain: {name}": (partial(bcast.chain, a, (ufunc, b), **call.keywords), error, OF_CHAINS.get(argument, argument))
    for name, (call, error, argument) in MISUSES.items()
    for ufunc, a, b in [call.args]
}
STEPS = {
    "numpy_of_steps": ([(np.add, np.ones((2, 1, 1))), (np.add, np.ones((3, 1, 1)))], ValueError, "data, steps"),
    "of_no_function": ([np.sqrt, (5, ROW)], TypeError, "steps[1]"),
    "alone": ([np.add], TypeError, "steps[0]"),
    "three": ([np.sqrt, (np.add, ROW, ROW)], TypeError, "steps[1]"),
    "generalised_alone": ([np.linalg._umath_linalg.inv], TypeError, "steps[0]"),
    "two_results": ([(np.divmod, 2)], TypeError, "steps[0]"),
    "two_results_of_one": ([np.modf], TypeError, "steps[0]"),
    "masked": ([(np.add, [np.ma.array(ROW, mask=[1, 0, 0])])], TypeError, "steps[0]"),
}
MISUSES |= {name: (partial(bcast.chain, MATRIX, *steps), *rest) for name, (steps, *rest) in STEPS.items()}
MISUSES |= {
    f"where_{where.shape}": (partial(bcast.elementwise, np.add, MATRIX[:1], 1, where=where), ValueError, "where")
    for where in (np.ones((1, 2, 3), bool), np.ones((2, 3), bool))
}
MISUSES["conversion"] = partial(bcast.chain, MATRIX, np.sqrt, dtype="i4"), TypeError, "dtype"


@pytest.mark.parametrize(("call", "error", "argument"), **rows(MISUSES))
def test_bad_arguments_are_refused_before_anything_is_written(call, error, argument):
    refuse_with_out(call, error, argument, (2, 3), float)


@pytest.mark.parametrize("where", [None, 0, 1, [1, 0, 1], np.False_], ids=repr)
def test_where_accepts_the_bools_of_ufuncs(where):
    out, expected = np.full(3, 7.0), np.full(3, 7.0)
    bcast.elementwise(np.add, ROW, 1.0, where=where, out=out)
    np.add(ROW, 1.0, where=where, out=expected)
    assert out.tolist() == expected.tolist()


def test_a_chain_whose_result_cannot_be_converted_writes_nothing():
    for items, dtype in ([1, 2, -3], "u1"), (["1", "x", "2"], "f8"):
        with untouched((3,), dtype) as out, pytest.raises((OverflowError, ValueError)):
            bcast.chain(np.array(items, object), out=out, casting="unsafe")


@pytest.mark.parametrize("mode", ["numpy", "unidirectional", "pdpd"])
def test_out_of_another_shape(mode):
    """A ufunc would broadcast the result to it."""
    call, chain = partial(bcast.elementwise, np.add, MATRIX, ROW, mode=mode), partial(bcast.chain, MATRIX, mode=mode)
    for shape in ((4, 2, 3), (1, 2, 3), (3, 2)):
        with untouched(shape, float) as out:
            for given in (out, (out,)):
                refuse(partial(call, out=given), ValueError, "out")
            refuse(partial(chain, (np.add, ROW), out=out), ValueError, "out")
    for out in ("x", [1, 2], ("x",)):
        refuse(partial(call, out=out), TypeError, "out")
        refuse(partial(chain, out=out), TypeError, "out")
    refuse(partial(chain, out=(np.zeros((2, 3)),)), TypeError, "out")
    for given in (partial(call, where=MATRIX > 0), call, partial(chain, np.sqrt)):
        refuse(partial(given, out=np.broadcast_to(1.0, (2, 3))), ValueError, "out")
    with untouched((2, 3), "i4") as out:
        refuse(partial(chain, np.sqrt, out=out), TypeError, "out")


# Where versions of NumPy differ: all that NumPy at hand gives is right.

SPANS, DAYS = np.array([2**63 - 5, 5, -7], "m8[s]"), np.array([2**63 - 5, 5, -(2**63) + 3], "M8[s]")
ENDS = [(np.add, SPANS, SPANS), (np.add, DAYS, SPANS), (np.subtract, DAYS, -SPANS), (np.multiply, SPANS, 3)]
ENDS += [(np.add, SPANS, SPANS[1:2]), (np.subtract, DAYS, SPANS[2:]), (np.negative, DAYS.view("m8[s]"), None)]


@pytest.mark.parametrize(("ufunc", "x", "y"), ENDS, ids=lambda each: getattr(each, "__name__", None))
def test_dates_beyond_their_ends_are_numpys(ufunc, x, y):
    """From 2.5 on they raise, and `out` stays as it was; before that they wrap."""
    operands = (x,) if y is None else (x, y)
    expected, warned = told(lambda: ufunc(*operands))
    step = ufunc if y is None else (ufunc, y)
    for make in (0, 1):
        out = np.full(3, 99, x.dtype) if make else None
        calls = [lambda out=out: bcast.chain(x, step, out=out)]
        if y is not None:
            calls.append(lambda out=out: bcast.elementwise(ufunc, x, y, out=out))
        for call in calls:
            result, mine = told(call)
            assert difference(result, expected, False) is None
            assert mine == warned
            if isinstance(expected, tuple) and make:
                assert out.tolist() == np.full(3, 99, x.dtype).tolist()
    summed, numpys = (told(lambda sums=sums: sums(np.stack([SPANS, SPANS]), 0)) for sums in (bcast.sum, np.sum))
    assert difference(summed[0], numpys[0], False) is None


@pytest.mark.parametrize("size", [7, 200_000])
@pytest.mark.parametrize("number", [255, 256, -1, 2**40, 2**70, 1.5, 1e300])
@pytest.mark.parametrize("dtype", ["u1", "i8", "f4"])
def test_scalars_of_where_that_a_dtype_cannot_represent(dtype, number, size):
    items = np.arange(size, dtype=dtype)
    mask = np.arange(size) % 3 == 0
    for operands in (items, number), (number, items), (number, number):
        expected, warned = told(lambda operands=operands: np.where(mask, *operands))
        result, mine = told(lambda operands=operands: bcast.where(mask, *operands))
        assert difference(result, expected, False) is None
        assert mine == warned
        with bcast.patched_numpy(["where"]):
            patched, mine = told(lambda operands=operands: np.where(mask, *operands))
        assert difference(patched, expected, False) is None
        assert mine == warned
