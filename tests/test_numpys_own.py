"""NumPy's own tests of the functions that bcast has, too, with bcast's in their place."""

import importlib
import inspect

import numpy as np
import pytest

import bcast

OURS = ("broadcast_arrays", "broadcast_shapes", "broadcast_to", "meshgrid", "repeat", "tile")
STRIDES = "numpy.lib.tests.test_stride_tricks"
CLASSES = {
    "TestTile": "numpy.lib.tests.test_shape_base",
    "TestMeshgrid": "numpy.lib.tests.test_function_base",
    "TestRepeat": "numpy._core.tests.test_multiarray",
}
# Tests of what is so by intent: NumPy's results are views, or of a subclass.
LEFT_OUT = {
    "test_subclasses": "`subok` asks for subclasses; bcast's results are of the base class",
    "test_writeable": "NumPy's results are views, some of them read-only or with a warning on writing",
    "test_writeable_memoryview": "NumPy's results are views that export no writeable buffer",
}
# And those of functions that bcast has not.
OTHERS = {"test_as_strided", "test_broadcast_shape", "as_strided_writeable"}


class Numpy:
    """NumPy with some functions replaced."""

    def __getattr__(self, name):
        return getattr(bcast if name in OURS else np, name)


def module(name):
    try:
        return importlib.import_module(name)
    except ImportError as error:
        pytest.skip(f"NumPy was installed without its tests: {error}")


def methods(name):
    """Name the tests of a class, if it is there."""
    try:
        return [each for each in vars(getattr(importlib.import_module(CLASSES[name]), name)) if each.startswith("test")]
    except (ImportError, AttributeError):
        return ["all"]


def functions():
    """Name the tests of the functions of broadcasting, if they are there."""
    try:
        tests = vars(importlib.import_module(STRIDES)).items()
    except ImportError:
        return ["all"]
    return [
        name for name, test in tests if inspect.isfunction(test) and name.startswith("test_") and name not in OTHERS
    ]


@pytest.fixture
def replaced(monkeypatch):
    """Return a function that imports a module of NumPy's tests, in which bcast's functions are NumPy's."""

    def replace(name):
        tests = module(name)
        for ours in OURS:
            monkeypatch.setattr(tests, ours, getattr(bcast, ours), raising=False)
        monkeypatch.setattr(tests, "np", Numpy())
        return tests

    return replace


def instance(kind, replaced):
    """Return an instance of a class of NumPy's tests, made ready as pytest does; some of NumPy 2.0's need it."""
    tests = getattr(replaced(CLASSES[kind]), kind)()
    getattr(tests, "setup_method", lambda: None)()
    return tests


@pytest.mark.parametrize(("kind", "test"), [(kind, test) for kind in CLASSES for test in methods(kind)])
def test_class(kind, test, replaced):
    getattr(instance(kind, replaced), test)()


@pytest.mark.parametrize("test", functions())
def test_function(test, replaced):
    if test in LEFT_OUT:
        pytest.skip(LEFT_OUT[test])
    getattr(replaced(STRIDES), test)()


def test_it_is_ours_that_is_tested(replaced, monkeypatch):
    """Each of our functions, if it did nothing, would fail a test."""
    calls = {
        "tile": lambda: instance("TestTile", replaced).test_basic(),
        "repeat": lambda: instance("TestRepeat", replaced).test_basic(),
        "meshgrid": lambda: instance("TestMeshgrid", replaced).test_return_type(),
        "broadcast_to": lambda: replaced(STRIDES).test_broadcast_to_succeeds(),
        "broadcast_arrays": lambda: replaced(STRIDES).test_one_off(),
        "broadcast_shapes": lambda: replaced(STRIDES).test_broadcast_shapes_succeeds(),
    }
    assert calls.keys() == set(OURS)
    for name, call in calls.items():
        call()
        with monkeypatch.context() as patch:
            patch.setattr(bcast, name, lambda *_, **__: ((), ()))
            with pytest.raises((AssertionError, AttributeError)):
                call()
