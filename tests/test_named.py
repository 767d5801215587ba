"""`bcast.add`, `bcast.sqrt` and the like: each has the results of `elementwise` and of NumPy's ufunc of its name."""

import copy
import inspect
import pickle
import pydoc
import random
import re

import numpy as np
import pytest
from _arithmetic import draw_named

import bcast
from bcast._api.named import BINARY, FUNCTIONS, UNARY
from bcast._apply.ufuncs import operands_of_ufuncs
from bcast._elementwise import NamedFunction

POINTS = np.arange(6.0).reshape(2, 3)
ROW = np.array([1.0, 2.0, 3.0])
REPEATED = np.lib.stride_tricks.as_strided(np.ones(1), (3,), (0,))


def test_each_ufunc_of_the_core_has_its_name():
    """But for `clip`, whose three operands chains take."""
    known = operands_of_ufuncs()
    assert known.pop("clip") == 3
    assert known == dict.fromkeys(BINARY, 2) | dict.fromkeys(UNARY, 1)
    assert set(FUNCTIONS) <= set(bcast.__all__)
    assert all(getattr(bcast, name).ufunc is getattr(np, name) for name in FUNCTIONS)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_random_calls_are_numpys(name):
    rng = random.Random(name)
    accepted = [draw_named(rng, name, 5000).check() for _ in range(60)]
    assert sum(accepted) > 3


@pytest.mark.parametrize("name", ["add", "less", "sqrt", "isnan"])
def test_names_and_attributes(name):
    function = getattr(bcast, name)
    assert pickle.loads(pickle.dumps(function)) is copy.deepcopy(function) is function
    assert (function.__name__, function.__qualname__, repr(function)) == (name, name, f"<function bcast.{name}>")
    assert (
        list(inspect.signature(function).parameters)[: function.nin] == ["a", "b"][:2] if function.nin == 2 else ["x"]
    )
    assert pydoc.plain(pydoc.render_doc(function)).count(function.__doc__.partition("\n")[0]) == 1
    assert function.reduce == getattr(np, name).reduce
    with pytest.raises(AttributeError, match="nothing"):
        function.nothing  # noqa: B018


def test_its_signature_is_that_of_elementwise():
    own, general = (inspect.signature(function).parameters for function in (bcast.add, bcast.elementwise))
    assert {name: each.default for name, each in own.items()} == {
        name: inspect.Parameter.empty if name == "b" else each.default
        for name, each in general.items()
        if name != "ufunc"
    }


def test_rules_and_options():
    np.testing.assert_array_equal(bcast.add(POINTS, [10, 20], axis=0), POINTS + [[10], [20]])
    with pytest.raises(ValueError, match=r"^`b` expected a's own shape"):
        bcast.add(POINTS, ROW, mode="none")
    assert bcast.add(POINTS, ROW, dtype=np.float32).dtype == np.float32
    out = POINTS.copy()
    for call in (lambda: bcast.add(out, ROW, out), lambda: bcast.add(out, ROW, out=out)):
        assert call() is out
    np.testing.assert_array_equal(out, POINTS + 2 * ROW)
    assert bcast.negative(out, out) is out
    assert bcast.negative(out, out=out) is out
    assert bcast.sqrt(POINTS, where=POINTS > 1, out=np.zeros((2, 3)))[0].tolist() == [0, 0, 2**0.5]


WRONG = {
    "no_a": (lambda: bcast.add(), TypeError, "`a` expected an array_like, got none"),
    "no_b": (lambda: bcast.add(POINTS), TypeError, "`b` expected an array_like, got none"),
    "no_x": (lambda: bcast.sqrt(), TypeError, "`x` expected an array_like, got none"),
    "b_by_name": (
        lambda: bcast.add(POINTS, b=POINTS), TypeError, "`b` expected an array_like by position, got it by name",
    ),
    "four": (lambda: bcast.add(1, 2, None, 4), TypeError, "`add` expected 2 operands and perhaps `out`, got 4"),
    "many": (lambda: bcast.add(*range(20)), TypeError, "`add` expected 2 operands and perhaps `out`, got 20"),
    "word": (lambda: bcast.add(1, 2, subok=True), TypeError, "`add` got an unexpected keyword argument 'subok'"),
    "mode": (lambda: bcast.sqrt(1, mode="none"), TypeError, "`sqrt` got an unexpected keyword argument 'mode'"),
    "twice": (lambda: bcast.add(1, 2, None, out=None), TypeError, "`add` got two values for keyword argument 'out'"),
    "shapes": (lambda: bcast.add(ROW, [1, 2]), ValueError, "`a, b` expected lengths that are equal or 1"),
    "out": (lambda: bcast.sqrt(ROW, out=POINTS), ValueError, "`out` expected shape (3,), got (2, 3)"),
    "repeated": (lambda: bcast.sqrt(ROW, out=REPEATED), ValueError, "`out` expected"),
    "where": (lambda: bcast.sqrt(ROW, where=[True] * 2, out=ROW.copy()), ValueError, "`where` expected"),
    "ragged": (lambda: bcast.sqrt([[1], [2, 3]]), ValueError, "`x` expected an array_like of one shape"),
    "casting": (lambda: bcast.sqrt(ROW, casting="rough"), ValueError, "`casting` expected"),
    "gufunc": (lambda: NamedFunction(np.matmul, "m", None, None, None), TypeError, "`ufunc` expected a ufunc of one"),
}  # fmt: skip


@pytest.mark.parametrize(("call", "error", "words"), WRONG.values(), ids=WRONG)
def test_wrong_calls(call, error, words):
    with pytest.raises(error, match=re.escape(words)):
        call()


class Own:
    """An operand whose class decides what becomes of it."""

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return ufunc.__name__, method, len(inputs), sorted(kwargs)


def test_other_classes_decide():
    assert bcast.add(Own(), 1) == ("add", "__call__", 2, [])
    assert bcast.sqrt(Own()) == ("sqrt", "__call__", 1, [])
    assert bcast.sqrt(POINTS, out=Own()) == ("sqrt", "__call__", 1, ["out"])
    masked = bcast.sqrt(np.ma.array([4.0, 9.0], mask=[False, True]))
    assert masked.tolist() == [2, None]


def test_functions_accept_each_other():
    steps = (bcast.subtract, ROW), bcast.square, (bcast.add.reduce, -1), bcast.sqrt
    numpys = (np.subtract, ROW), np.square, (np.add.reduce, -1), np.sqrt
    np.testing.assert_array_equal(bcast.chain(POINTS, *steps), bcast.chain(POINTS, *numpys))
    assert bcast.chain_memory(POINTS, *steps) == bcast.chain_memory(POINTS, *numpys)
    for own, expected in zip(
        bcast.chain_vjp(POINTS, *steps)[1](np.ones(2)), bcast.chain_vjp(POINTS, *numpys)[1](np.ones(2)), strict=True
    ):
        np.testing.assert_array_equal(own, expected)
    np.testing.assert_array_equal(bcast.elementwise(bcast.add, POINTS, [1, 2], axis=0), POINTS + [[1], [2]])
    with pytest.raises(TypeError, match="got sqrt of one"):
        bcast.elementwise(bcast.sqrt, POINTS, ROW)


def test_dask_arrays():
    da = pytest.importorskip("dask.array")
    import bcast.dask

    data = da.from_array(POINTS, chunks=1)
    np.testing.assert_array_equal(bcast.add(data, 1).compute(), POINTS + 1)
    np.testing.assert_array_equal(bcast.dask.elementwise(bcast.add, data, ROW).compute(), POINTS + ROW)
    np.testing.assert_array_equal(bcast.dask.chain(data, (bcast.add, ROW), bcast.square).compute(), (POINTS + ROW) ** 2)


LAYOUTS = {
    "rows_of_three": np.arange(30_000.0).reshape(6000, 5)[:, :3],
    "turned": np.arange(120_000.0).reshape(100, 400, 3).transpose(1, 2, 0),
    "every_other": np.arange(80_000.0)[::2],
    "backwards": np.arange(60_000.0)[::-1],
    "cut_fortran": np.asfortranarray(np.arange(60_000.0).reshape(300, 200))[::2, ::-1],
}


@pytest.mark.parametrize("x", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("name", ["sqrt", "negative", "isnan"])
def test_the_order_of_the_axes_in_memory_is_numpys(name, x):
    own, expected = getattr(bcast, name)(x), getattr(np, name)(x)
    assert own.strides == expected.strides
    np.testing.assert_array_equal(own, expected, strict=True)


@pytest.mark.parametrize("name", ["isnan", "isinf", "isfinite", "signbit"])
@pytest.mark.parametrize("dtype", ["f4", "f8", "f2"])
def test_predicates_into_bools_with_gaps(name, dtype):
    """NumPy 2.4's AVX2 loops write wrong items there; so the right ones are those of a new array."""
    for n in (5, 16, 33, 64, 1000, 100_000):
        items = np.where(np.arange(2 * n) % 3 == 0, np.nan, -np.arange(2 * n) % 7 - 3).astype(dtype)
        right = getattr(np, name)(items)
        for operand, result in (items[:n], right[:n]), (items[::2], right[::2]), (items.reshape(2, -1).T, None):
            result = right.reshape(2, -1).T if result is None else result
            for step in (2, 3, -1):
                out = np.zeros((n * 3, *operand.shape[1:]), bool)[::step][:n]
                assert getattr(bcast, name)(operand, out=out) is out
                assert np.array_equal(out, result), (n, step)
            out = np.zeros(operand.shape, bool)
            assert np.array_equal(getattr(bcast, name)(operand, out), result)
