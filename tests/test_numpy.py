"""Functions with NumPy's names, compared with NumPy's own: values, shapes, dtypes and errors."""

import numpy as np
import pytest
from _calls import OF_ARRAYS, check
from test_ops import assert_fresh

import bcast
from bcast._api.named import FUNCTIONS


def assert_same(result, expected):
    """Equal to NumPy's result, but an array of its own."""
    np.testing.assert_array_equal(result, expected, strict=True)
    assert result.dtype.str == expected.dtype.str
    assert_fresh(result)


A3 = np.array([1, 2, 3])
A23 = np.arange(6.0).reshape(2, 3)


def test_more_axes_than_numpy_merges():
    """NumPy's own functions stop at 32 here, half of what its arrays may have."""
    deep = np.ones((2,) + (1,) * 63)
    assert bcast.broadcast_shapes(deep.shape, 3) == (2,) + (1,) * 62 + (3,)
    for result in bcast.broadcast_arrays(deep, np.ones(3)):
        assert_same(result, np.ones((2,) + (1,) * 62 + (3,)))


GRIDS = {
    "none": (), "three": ([1, 2, 3], [4, 5], [6, 7, 8, 9]), "flattened": (A23, A3), "scalars": (1, A3, 2.0),
    "strings": (np.array(["a", "longer"]), np.array(["2000", "NaT"], "M8[D]")), "subclass": (A3.view(np.recarray), A3),
    "records": (np.array([(1, 2.0)], [("a", "i4"), ("b", "f8")]), A3), "32_axes": ([1, 2], *[[1]] * 30, [3, 4]),
}  # fmt: skip


@pytest.mark.parametrize("indexing", ["xy", "ij"])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("xi", GRIDS.values(), ids=GRIDS)
def test_meshgrid_is_numpys(xi, sparse, indexing):
    options = {"sparse": sparse, "indexing": indexing}
    results, expected = bcast.meshgrid(*xi, **options), np.meshgrid(*xi, **options)
    assert type(results) is tuple
    for result, own in zip(results, expected, strict=True):
        assert_same(result, np.asarray(own))
    xi = [np.asarray(x) for x in xi]
    views, expected = bcast.meshgrid(*xi, **options, copy=False), np.meshgrid(*xi, **options, copy=False)
    assert type(views) is tuple
    for x, view, own in zip(xi, views, expected, strict=True):
        assert type(view) is np.ndarray
        np.testing.assert_array_equal(view, own, strict=True)
        assert view.strides == own.strides
        assert np.may_share_memory(view, x) == np.may_share_memory(own, x)


def test_meshgrid_of_a_shape_that_is_too_large():
    """Sparse grids of such shapes work."""
    axes = [np.zeros(10_000, np.uint8)] * 5
    assert [result.size for result in bcast.meshgrid(*axes, sparse=True)] == [10_000] * 5
    for copy in (True, False):
        with pytest.raises(ValueError, match=r"^`xi` expected an output of at most "):
            bcast.meshgrid(*axes, copy=copy)
        with pytest.raises(ValueError, match=r"^`xi` expected at most 64 axes, got 65$"):
            bcast.meshgrid(*[[1]] * 65, copy=copy)


@pytest.mark.parametrize(("indexing", "error"), [("ji", ValueError), (None, TypeError)])
def test_meshgrid_in_another_order(indexing, error):
    with pytest.raises(error, match=r"^`indexing` expected "):
        bcast.meshgrid(A3, A3, indexing=indexing)


@pytest.mark.parametrize("copy", [True, False])
def test_meshgrid_of_a_mask(copy):
    with pytest.raises(TypeError, match=r"^`xi` expected an array without a mask, got MaskedArray; pass its \.filled"):
        bcast.meshgrid(A3, np.ma.array([1, 2], mask=[True, False]), copy=copy)


# In a process that puts our functions in the place of NumPy's own, which NumPy's other functions call, too.
SHARED = ("broadcast_arrays", "broadcast_shapes", "broadcast_to", "meshgrid", "repeat", "tile", "where")
SHARED += ("all", "any", "argmax", "argmin", "max", "mean", "min", "prod", "std", "sum", "var")
SHARED += ("cross", "stack", "vecdot", *(("matvec",) if hasattr(np, "matvec") else ()))
SHARED += ("nanmax", "nanmean", "nanmin", "nanstd", "nansum", "nanvar", *FUNCTIONS)


@pytest.mark.parametrize(("function", "make"), OF_ARRAYS.values(), ids=OF_ARRAYS)
def test_calls_work_where_numpys_functions_are_replaced(function, make, monkeypatch):
    call = make()
    for name in SHARED:
        monkeypatch.setattr(np, name, getattr(bcast, name))
    check(function, call, call.args, call.kwargs)


def test_every_name_shared_with_numpy_is_dropped_in():
    assert {name for name in bcast.__all__ if hasattr(np, name)} - {"broadcast"} == set(SHARED)  # that one is a class
