"""NumPy's own tests of functions that bcast has as well, run with bcast's functions; pytest collects them here."""

import inspect
from functools import partial

import numpy as np
import pytest

import bcast

OURS = {"broadcast_arrays", "broadcast_shapes", "broadcast_to", "meshgrid", "repeat", "tile"}
MODULES = {
    name: pytest.importorskip(name, reason="NumPy was installed without its tests", exc_type=ImportError)
    for name in (
        "numpy.lib.tests.test_stride_tricks",
        "numpy.lib.tests.test_shape_base",
        "numpy.lib.tests.test_function_base",
        "numpy._core.tests.test_multiarray",
    )
}
strides, shapes, functions, arrays = MODULES.values()

# Tests of what is so by intent: NumPy's results are views, some of them read-only, and `subok` asks for subclasses.
LEFT_OUT = {"test_subclasses", "test_writeable", "test_writeable_memoryview"}


class Numpy:
    def __getattr__(self, name):
        return getattr(bcast if name in OURS else np, name)


def call(name, *args, **kwargs):
    return getattr(bcast, name)(*args, **kwargs)


@pytest.fixture(autouse=True)
def replaced(monkeypatch):
    """Put bcast's functions where NumPy's tests find NumPy's."""
    for module in MODULES.values():
        for name in OURS & set(vars(module)):
            monkeypatch.setattr(module, name, partial(call, name))
        monkeypatch.setattr(module, "np", Numpy())


def names(code):
    """Name all that a function's code uses, within functions of its own, too."""
    return set(code.co_names).union(*[names(const) for const in code.co_consts if inspect.iscode(const)])


def of_ours(module):
    """Find the tests among a module's functions that use functions of ours, by themselves or through helpers."""
    functions = {name: value for name, value in vars(module).items() if inspect.isfunction(value)}
    used = OURS & set(vars(module))
    while users := {name for name in functions.keys() - used if used & names(functions[name].__code__)}:
        used |= users
    return {name: test for name, test in functions.items() if name.startswith("test_") and name in used - LEFT_OUT}


globals().update(of_ours(strides))
TestTile = shapes.TestTile
TestMeshgrid = functions.TestMeshgrid
TestRepeat = arrays.TestRepeat


def test_it_is_ours_that_is_tested(monkeypatch):
    """Each of our functions, if it did nothing, would fail a test."""
    repeats = TestRepeat()
    getattr(repeats, "setup_method", lambda: None)()  # which pytest calls; NumPy 2.0's has one
    tests = {
        "tile": TestTile().test_basic,
        "repeat": repeats.test_basic,
        "meshgrid": TestMeshgrid().test_return_type,
        "broadcast_to": strides.test_broadcast_to_succeeds,
        "broadcast_arrays": strides.test_one_off,
        "broadcast_shapes": strides.test_broadcast_shapes_succeeds,
    }
    assert tests.keys() == OURS
    assert {test.__name__ for test in tests.values() if inspect.isfunction(test)} <= set(globals())
    for name, test in tests.items():
        test()
        with monkeypatch.context() as patch:
            patch.setattr(bcast, name, lambda *_, **__: ((), ()))
            with pytest.raises((AssertionError, AttributeError)):
                test()
