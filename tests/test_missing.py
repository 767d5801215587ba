"""Names that bcast lacks, and values in errors: messages are short, and say what to write instead."""

import subprocess
import sys

import numpy as np
import pytest

import bcast

REMEDIES = {
    "mod": "use bcast.remainder",
    "abs": "use bcast.absolute",
    "ldexp": "use bcast.elementwise(np.ldexp, a, b)",
    "divmod": "use bcast.elementwise(np.divmod, a, b)",
    "sin": "use bcast.chain(a, np.sin)",
    "modf": "use numpy.modf",
    "matmul": "use numpy.matmul",
    "median": "use numpy.median",
    "clip": "use bcast.chain(a, (np.clip, low, high))",
    "round": "use bcast.chain(a, np.round)",
    "concatenate": "use numpy.concatenate",
    "pi": "use numpy.pi",
    "float32": "use numpy.float32",
    "newaxis": "use numpy.newaxis",
    "random": "use numpy.random",
    "fft": "use numpy.fft",
    "ma": "use numpy.ma",
}


@pytest.mark.parametrize(("name", "remedy"), REMEDIES.items(), ids=REMEDIES)
def test_names_of_numpys(name, remedy):
    assert not hasattr(bcast, name)
    assert name not in dir(bcast)
    with pytest.raises(AttributeError) as caught:
        getattr(bcast, name)
    assert str(caught.value) == f"module 'bcast' has no attribute {name!r}; {remedy}"
    with pytest.raises(ImportError, match=rf"^cannot import name '{name}' from 'bcast'"):
        exec(f"from bcast import {name}")


def test_unknown_names():
    for name in "brodcast", "_private", "__path_of_nothing__":
        with pytest.raises(AttributeError, match=rf"^module 'bcast' has no attribute '{name}'$") as caught:
            getattr(bcast, name)
        assert (caught.value.name, caught.value.obj) == (name, bcast)  # from which Python finds names that are like it


def test_modules_that_are_not_imported():
    code = """
import bcast
for name in "dask", "onnx", "typing":
    try:
        getattr(bcast, name)
    except AttributeError as error:
        assert str(error) == f"module 'bcast' has no attribute {name!r}; import bcast.{name} first", error
    else:
        raise AssertionError(name)
from bcast import typing
assert bcast.typing is typing
"""
    subprocess.run([sys.executable, "-c", code], check=True)


V, T = np.arange(5.0), np.ones((2, 5))
FUNCTIONS = {
    "an array": (V, "ndarray; the function comes first"),
    "a large array": (np.zeros((300, 300)), "ndarray; the function comes first"),
    "a list": ([1, 2] * 1000, "list; the function comes first"),
    "clip": (np.clip, "clip of three; use chain(a, (np.clip, low, high))"),
    "where": (np.where, "where of three; use bcast.where(condition, x, y)"),
    "a name": ("add", "'add'"),
}


@pytest.mark.parametrize(("function", "got"), FUNCTIONS.values(), ids=FUNCTIONS)
def test_functions_of_other_than_two_operands(function, got):
    for mode in None, "pdpd":
        with pytest.raises(TypeError) as caught:
            bcast.elementwise(function, V, 0, mode=mode)
        assert str(caught.value) == f"`ufunc` expected an element-wise function of two operands, got {got}"


class Long:
    def __repr__(self):
        return "long " * 10**5


LARGE = [
    np.arange(9), np.zeros((100, 100)), list(range(10**4)), tuple(range(10**4)), [[0.5] * 100] * 100,
    "x" * 10**4, b"x" * 10**4, set(range(10**4)), dict.fromkeys(range(10**4)), Long(), [Long(), Long()], 10**4000,
    [np.zeros(10**4)] * 2, np.dtype([(f"field{i}", "f8") for i in range(10**4)]), np.ma.zeros(10**4),
]  # fmt: skip


@pytest.mark.parametrize("value", LARGE, ids=range(len(LARGE)))
def test_messages_are_short(value):
    calls = [
        lambda: bcast.broadcast(V, [value]), lambda: bcast.broadcast(V, (2, 5), mode=value),
        lambda: bcast.broadcast(V, (2, 5), [value, value]), lambda: bcast.broadcast(V, (2, 5), axis=value),
        lambda: bcast.broadcast(V, (2, 5), broadcast_axes=[value]), lambda: bcast.broadcast(V, (2, 5), casting=value),
        lambda: bcast.broadcast(V, shape=value), lambda: bcast.tile(V, [value, -1]), lambda: bcast.repeat(V, [[value]]),
        lambda: bcast.repeat(V, 2, axis=[value]), lambda: bcast.repeat(V, 2, axis=(0,) * 10**5),
        lambda: bcast.elementwise(np.add, V, V, mode=value), lambda: bcast.elementwise(np.add, V, V, axis=[value]),
        lambda: bcast.elementwise(value, V, V), lambda: bcast.chain(V, value), lambda: bcast.chain(V, [value, 1, 1]),
        lambda: bcast.chain(V, (np.add, np.add, value)), lambda: bcast.sum(V, [value]),
        lambda: bcast.var(V, ddof=1, correction=value), lambda: bcast.std(V, ddof=value),
        lambda: bcast.patch_numpy([value]), lambda: bcast.set_num_threads(value), lambda: bcast.set_idle_limit(value),
        lambda: bcast.broadcast(V, (2, 5), dtype=[value]), lambda: bcast.broadcast(V, (2, 5), dtype=value),
        lambda: bcast.chain(V, dtype=value), lambda: bcast.unbroadcast(T, (5,), dtype=value),
        lambda: bcast.meshgrid(V, indexing=value), lambda: bcast.unrepeat(V, value),
        lambda: bcast.broadcast(V, (2, 5), out=value), lambda: bcast.chain(V, np.sqrt, out=value),
    ]  # fmt: skip
    for i, call in enumerate(calls):
        try:
            call()
        except Exception as error:
            assert len(str(error)) < 1000, i  # noqa: PT017 (with what was expected)
            assert "\n" not in str(error), i  # noqa: PT017
