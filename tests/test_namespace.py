"""`import bcast.numpy as np`: NumPy's names, bcast's functions where they are faster, NumPy's values for all calls."""

import copy
import inspect
import pickle
import random
import warnings

import _arithmetic
import numpy
import pytest
from _arithmetic import draw_named
from _commands import printed

import bcast
import bcast.numpy as np
from bcast._api import patching
from bcast._api.named import FUNCTIONS
from bcast._api.namespace import LEFT_OUT, NAMES
from bcast._api.patching import StandIn
from bcast._elementwise import NamedFunction

OURS = {name for name in NAMES if name != "linalg.norm"}
UFUNCS = {name for name, value in vars(numpy).items() if isinstance(value, numpy.ufunc) and value.__name__ in FUNCTIONS}


def test_every_name_of_numpys_is_there():
    assert dir(np) == dir(numpy)
    assert np.__all__ == numpy.__all__
    for name in dir(numpy):
        if name.startswith("__") or name in OURS | UFUNCS | {"linalg"}:
            continue
        assert getattr(np, name) is getattr(numpy, name), name
    assert dir(np.linalg) == dir(numpy.linalg)
    for name in set(dir(numpy.linalg)) - {"norm"}:
        assert name.startswith("__") or getattr(np.linalg, name) is getattr(numpy.linalg, name), name


def test_functions_are_those_of_patches_and_of_the_core():
    known = (*patching.DEFAULT_NAMES, *patching.OTHER_NAMES)
    patched = {name for name in known if not name.startswith("ndarray.")}  # methods are in no namespace
    patched -= set(patching.GROUPS)
    assert {*NAMES, *LEFT_OUT} == patched - set(FUNCTIONS)
    assert all(type(getattr(np, name)) is StandIn for name in OURS)
    assert type(np.linalg.norm) is StandIn
    assert all(type(getattr(np, name)) is NamedFunction for name in UFUNCS)
    assert {*FUNCTIONS, "abs", "mod", "true_divide", "conj"} <= UFUNCS
    assert np.abs is np.absolute


def test_numpy_does_not_change():
    assert not bcast.is_patched()
    assert isinstance(numpy.add, numpy.ufunc)
    assert type(numpy.tile) is not StandIn


@pytest.mark.parametrize("name", sorted(OURS | UFUNCS | {"linalg.norm"}))
def test_descriptions_equal_numpys(name):
    owner, _, attribute = name.rpartition(".")
    own, numpys = (getattr(module.linalg if owner else module, attribute) for module in (np, numpy))
    assert own.__name__ == numpys.__name__
    assert own.__doc__ == numpys.__doc__
    assert repr(own) == repr(numpys)
    assert hash(own) == hash(numpys)
    assert own == numpys
    assert pickle.loads(pickle.dumps(own)) is numpys
    assert copy.copy(own) == numpys
    if not isinstance(numpys, numpy.ufunc) or hasattr(numpys, "__signature__"):
        assert inspect.signature(own) == inspect.signature(numpys)


def test_star_import_and_submodules():
    names = {}
    exec("from bcast.numpy import *", names)
    assert names.keys() - {"__builtins__"} == set(numpy.__all__)
    assert names["tile"] is np.tile
    assert names["linalg"] is np.linalg
    from bcast.numpy.linalg import norm, solve

    assert norm is np.linalg.norm
    assert solve is numpy.linalg.solve
    assert np.random is numpy.random
    assert np.__version__ == numpy.__version__


@pytest.mark.parametrize("name", ["nothing", "float", "Inf", "in1d_"])
def test_a_name_that_numpy_lacks(name):
    with pytest.raises(AttributeError) as own:
        getattr(np, name)
    with pytest.raises(AttributeError) as numpys:
        getattr(numpy, name)
    assert str(own.value) == str(numpys.value).replace("'numpy'", "'bcast.numpy'")
    with pytest.raises(AttributeError, match=r"^module 'bcast.numpy.linalg' has no attribute 'nothing'$"):
        np.linalg.nothing  # noqa: B018


IMPORT = """
import sys
import bcast
assert "bcast.numpy" not in sys.modules
before = set(sys.modules)
import bcast.numpy as np
print(*sorted(set(sys.modules) - before))
"""


def test_the_import_loads_only_its_own_modules():
    loaded = printed("-I", "-c", IMPORT).split()
    assert {name for name in loaded if not name.startswith("bcast")} <= {"pkgutil", "copyreg", "importlib.util"}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_random_calls_of_ufuncs_are_numpys(name, monkeypatch):
    monkeypatch.setattr(_arithmetic, "ANY_BYTES", False)  # which NumPy compares as they are
    rng = random.Random(name)
    for _ in range(40):
        draw_named(rng, name, 5000, getattr(np, name)).check()


def test_ufuncs_keep_their_methods():
    row = numpy.arange(3.0)
    assert np.add.reduce(row) == 3
    assert np.multiply.outer(row, row).shape == (3, 3)
    np.add.at(row, [0, 0], 1)
    assert row.tolist() == [2, 1, 2]
    assert np.add.accumulate(row).tolist() == [2, 3, 5]
    assert (np.add.nin, np.add.identity, np.add.ufunc) == (2, 0, numpy.add)
    assert not isinstance(np.add, numpy.ufunc)  # as the documentation says
    out = numpy.empty(3)
    assert np.add(row, 1, out) is out
    for module in (np, numpy):
        with pytest.raises(ValueError, match=r"^operands could not be broadcast together with shapes \(3,\) \(2,\) "):
            module.add(row, numpy.ones(2))
    assert np.add(row, row, subok=True, order="F", signature="dd->d").tolist() == [4, 2, 4]


GRID = numpy.random.default_rng(0).normal(size=(60, 3))
CUBE = numpy.random.default_rng(1).integers(-9, 9, (20, 3, 4))


class Sub(numpy.ndarray):
    pass


DATA = {
    "floats": GRID, "single": GRID.astype("f4"), "turned": GRID.T, "half": GRID.astype("f2"), "integers": CUBE,
    "bytes": CUBE.astype("u1"), "bools": CUBE > 0, "complex": GRID + 1j, "list": GRID.tolist(), "number": 2.5,
    "objects": GRID.astype(object), "masked": numpy.ma.array(GRID, mask=GRID > 1), "subclass": GRID.view(Sub),
    "with_nan": numpy.where(GRID > 1, numpy.nan, GRID), "swapped": GRID.astype(">f8"), "one": numpy.array(3.0),
}  # fmt: skip
EXACT = {"max", "min", "any", "all", "argmax", "argmin", "nanmax", "nanmin"}
SUMS = {"sum", "mean", "var", "std", "nansum", "nanmean", "nanvar", "nanstd", "prod"}
OPTIONS = ({}, {"axis": 0}, {"axis": -1}, {"axis": 9}, {"axis": 0, "keepdims": True}, {"axis": "x"}, {"out": 3})


def outcome(function, *args, **kwargs):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            result = function(*args, **kwargs)
        except Exception as error:
            result = type(error), str(error)
    return result, sorted({(each.category, str(each.message)) for each in told}, key=str)


def assert_numpys(own, numpys, is_exact):
    """Check a result and warnings, or an error, against NumPy's."""
    (result, words), (expected, numpys_words) = own, numpys
    assert words == numpys_words
    assert type(result) is type(expected)
    if isinstance(expected, tuple) and expected and not isinstance(expected[0], numpy.ndarray):
        assert result == expected
        return
    for each, right in zip(
        *(value if isinstance(value, (list, tuple)) else [value] for value in (result, expected)), strict=True
    ):
        assert numpy.asarray(each).dtype == numpy.asarray(right).dtype
        if is_exact or numpy.asarray(right).dtype.kind not in "fc":
            numpy.testing.assert_array_equal(each, right)
        else:
            error = 2e-2 if numpy.asarray(right).dtype.itemsize == 2 else 1e-5
            numpy.testing.assert_allclose(each, right, rtol=error, atol=1e-6)


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("name", sorted(EXACT | SUMS))
def test_reductions_give_numpys_values(name, data):
    for options in OPTIONS:
        own, numpys = (outcome(getattr(module, name), DATA[data], **options) for module in (np, numpy))
        assert_numpys(own, numpys, name in EXACT)


OTHERS = {
    "tile": ((GRID, 2), (GRID, (2, 1, 2)), ([1, 2], 2), (GRID, "x")),
    "repeat": ((GRID, 3), (GRID, 2, 1), (GRID, [1, 2, 0], 1), (GRID, -1), ([1], 2)),
    "meshgrid": ((GRID[0], GRID[:, 0]), ([1, 2], [3]), (), ("x",)),
    "where": ((GRID > 0, GRID, 0.0), (GRID > 0,), (GRID[:, :1] > 0, GRID, GRID[0]), (GRID > 0, GRID)),
    "stack": (([GRID, GRID], 2), ([GRID, GRID.T],), ([GRID[0]] * 3, -1), ([],)),
    "dstack": (([GRID, GRID],), ([[1], [2]],)),
    "vecdot": ((GRID, GRID), (GRID, GRID[0]), (GRID, [1, 2]), ([1, 2], [3, 4])),
    "matvec": ((numpy.eye(3), GRID), (GRID, GRID), ([[1]], [2])),
    "cross": ((GRID, GRID[::-1]), (GRID, GRID[0]), (GRID, [1, 2, 3, 4]), ([1, 2, 3], [3, 4, 5])),
    "linalg.norm": ((GRID,), (GRID, None, 1), (GRID, 2), (GRID, 1, 0), ([3, 4],), (GRID, None, 5)),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_other_functions_give_numpys_values(name):
    owner, _, attribute = name.rpartition(".")
    if not hasattr(numpy.linalg if owner else numpy, attribute):
        pytest.skip("this NumPy has none")
    for args in OTHERS[name]:
        own, numpys = (outcome(getattr(module.linalg if owner else module, attribute), *args) for module in (np, numpy))
        assert_numpys(own, numpys, name not in ("vecdot", "matvec", "cross", "linalg.norm"))


def test_all_functions_are_tested():
    assert (EXACT | SUMS | OTHERS.keys()) - {"matvec"} == set(NAMES) - {"matvec"}  # which NumPy 2.0 lacks


def test_functions_are_steps_of_chains():
    centre = GRID.mean(0)
    own, numpys = (
        bcast.chain(GRID, (module.subtract, centre), module.square, (module.sum, -1), module.sqrt)
        for module in (np, numpy)
    )
    numpy.testing.assert_array_equal(own, numpys)
    assert bcast.elementwise(np.add, GRID, centre).tolist() == (GRID + centre).tolist()


def test_beside_a_patch():
    with bcast.patched_numpy("tile"):
        assert np.tile(GRID, 2).tolist() == numpy.tile(GRID, 2).tolist()
        assert pickle.loads(pickle.dumps(numpy.tile)) is numpy.tile
    assert np.tile(GRID, 2).tolist() == numpy.tile(GRID, 2).tolist()
