"""Products, norms and stacks of vectors in dask arrays: rechunking puts each vector into one chunk if necessary."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import dask.array as da
import numpy as np

from bcast._api import vectors
from bcast._api.reductions import reduced_axes
from bcast._dask.arrays import AnyArray, Array, as_dask
from bcast._rules.arguments import place_of
from bcast._rules.types import Axes, Casting, DType

ONE = "(i),(i)->()"
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def vecdot(x1: AnyArray, x2: AnyArray, /, *, axis: int = -1, exact: bool = False) -> Array:
    """Compute dot products of vectors, like `bcast.vecdot`. The axis of the vectors becomes one chunk.

    Because of this, `exact` dot products equal those of arrays in memory for any chunks.

    Examples
    --------
    >>> import dask.array as da
    >>> import bcast.dask
    >>> bcast.dask.vecdot(da.ones((4, 3), chunks=2), [1, 2, 3]).compute()
    array([6., 6., 6., 6.])
    """
    a, b = as_dask("x1", x1), as_dask("x2", x2)
    return _applied(partial(vectors.vecdot, exact=exact), ONE, [(axis,), (axis,), ()], a, b)


def matvec(x1: AnyArray, x2: AnyArray, /) -> Array:
    """Multiply matrices and vectors, like `bcast.matvec`. The axes of both become one chunk.

    Examples
    --------
    >>> import dask.array as da
    >>> import bcast.dask
    >>> bcast.dask.matvec([[0, 2], [1, 0]], da.ones((3, 2), chunks=2)).compute()
    array([[2., 1.],
           [2., 1.],
           [2., 1.]])
    """
    return _applied(vectors.matvec, "(i,j),(j)->(i)", [(-2, -1), (-1,), (-1,)], as_dask("x1", x1), as_dask("x2", x2))


def cross(
    a: AnyArray, b: AnyArray, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Array:
    """Compute cross products of vectors of 3 items, like `bcast.cross`. The axis of the vectors becomes one chunk.

    Examples
    --------
    >>> import dask.array as da
    >>> import bcast.dask
    >>> bcast.dask.cross(da.eye(3, chunks=2), [0, 0, 1]).compute()
    array([[ 0., -1.,  0.],
           [ 1.,  0.,  0.],
           [ 0.,  0.,  0.]])
    """
    axes = (axisa, axisb, axisc) if axis is None else (axis, axis, axis)
    return _applied(vectors.cross, "(i),(i)->(i)", [(at,) for at in axes], as_dask("a", a), as_dask("b", b))


def norm(x: AnyArray, axis: Axes = -1, *, keepdims: bool = False, exact: bool = False) -> Array:
    """Compute the 2-norm of vectors along axes, like `bcast.norm`. These axes become one chunk each.

    Because of this, `exact` norms equal those of arrays in memory for any chunks.

    Examples
    --------
    >>> import dask.array as da
    >>> import bcast.dask
    >>> bcast.dask.norm(da.ones((2, 4), chunks=2), keepdims=True).compute()
    array([[2.],
           [2.]])
    """
    array = as_dask("x", x)
    axes = reduced_axes(axis, array.shape)
    signature = f"({','.join(LETTERS[: len(axes)])})->()"
    function = partial(vectors.norm, axis=tuple(range(-len(axes), 0)), exact=exact)
    result = _applied(function, signature, [axes, ()], array)
    return np.expand_dims(result, axes) if keepdims else result


def stack(
    arrays: Sequence[AnyArray] | Array, axis: int = 0, *, dtype: DType = None, casting: Casting = "same_kind"
) -> Array:
    """Join arrays along a new axis, like `bcast.stack`: one task for each chunk. The new axis is one chunk.

    Examples
    --------
    >>> import dask.array as da
    >>> import bcast.dask
    >>> bcast.dask.stack((da.arange(3, chunks=2), [4, 5, 6]), axis=-1).compute()
    array([[0, 4],
           [1, 5],
           [2, 6]])
    """
    own = [as_dask("arrays", array) for array in arrays]
    function = partial(_stacked, dtype=dtype, casting=casting)
    result = function(*[np.empty(0, array.dtype) for array in own]).dtype  # or raises NumPy's error

    for array in own:
        if array.shape != own[0].shape:
            raise ValueError(f"`arrays` expected arrays of the same shape, got {own[0].shape} and {array.shape}")

    at = place_of(axis, (*own[0].shape, len(own)))
    axes = [*[()] * len(own), (at,)]
    signature = ",".join(["()"] * len(own)) + "->(i)"
    return da.apply_gufunc(
        function, signature, *own, axes=axes, allow_rechunk=True, output_dtypes=result, output_sizes={"i": len(own)}
    )


def _stacked(*arrays: Any, dtype: DType, casting: Casting) -> Any:
    """Stack chunks along the last axis, which `apply_gufunc` moves to its final place."""
    return vectors.stack(arrays, axis=-1, dtype=dtype, casting=casting)


def _applied(function: Any, signature: str, axes: list[tuple[int, ...]], *arrays: Array) -> Array:
    """Apply a function of vectors along the last axes to chunks that contain these axes as a whole."""
    examples = []
    for array, own in zip(arrays, axes, strict=False):
        examples.append(np.ones([array.shape[at] for at in own], array.dtype))

    dtype = np.asarray(function(*examples)).dtype
    return da.apply_gufunc(function, signature, *arrays, axes=axes, allow_rechunk=True, output_dtypes=dtype)
