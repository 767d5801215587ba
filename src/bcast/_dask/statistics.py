"""Sums and statistics of dask arrays: NumPy's arguments come in, graphs of partial sums go out."""

import math
from functools import partial
from typing import Any

import numpy as np

from bcast._api import statistics
from bcast._api.adjoints import wide_dtype
from bcast._api.reductions import reduced_axes
from bcast._dask.arrays import AnyArray, Array, SplitEvery, as_dask
from bcast._dask.copies import chained, without_empty
from bcast._dask.sums import round_to, summed
from bcast._rules.alignment import aligned
from bcast._rules.types import Axes, DType


def sum(
    a: AnyArray, axis: Axes = None, dtype: DType = None, keepdims: bool = False, *, split_every: SplitEvery = None
) -> Array:
    """Sum the items of an array along axes, as `bcast.sum` does.

    Errors are those of `bcast.dask.unbroadcast`, and so is `split_every`.

    Examples
    --------
    >>> import dask.array as da
    >>> import bcast.dask
    >>> bcast.dask.sum(da.ones((6, 4), chunks=3, dtype="uint8"), axis=0).compute()
    array([6, 6, 6, 6], dtype=uint64)
    """
    return _reduced("sum", a, axis, dtype, keepdims, 0, split_every)


def mean(
    a: AnyArray, axis: Axes = None, dtype: DType = None, keepdims: bool = False, *, split_every: SplitEvery = None
) -> Array:
    """Average the items of an array along axes, as `bcast.mean` does.

    Examples
    --------
    >>> import bcast.dask
    >>> bcast.dask.mean(range(10)).compute().item()
    4.5
    """
    return _reduced("mean", a, axis, dtype, keepdims, 0, split_every)


def var(
    a: AnyArray,
    axis: Axes = None,
    dtype: DType = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    split_every: SplitEvery = None,
) -> Array:
    """Compute variances along axes, as `bcast.var` does: the data is read twice.

    Examples
    --------
    >>> import bcast.dask
    >>> bcast.dask.var(range(10)).compute().item()
    8.25
    """
    return _reduced("var", a, axis, dtype, keepdims, ddof, split_every)


def std(
    a: AnyArray,
    axis: Axes = None,
    dtype: DType = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    split_every: SplitEvery = None,
) -> Array:
    """Compute standard deviations along axes: the roots of what `var` computes.

    Examples
    --------
    >>> import bcast.dask
    >>> bcast.dask.std([0, 2, 4, 6]).compute().item()
    2.23606797749979
    """
    return _reduced("std", a, axis, dtype, keepdims, ddof, split_every)


def _reduced(name: str, a: Any, axis: Any, dtype: Any, keepdims: bool, ddof: float, split_every: Any) -> Array:
    array = as_dask("a", a, computes=True)
    axes = reduced_axes(axis, array.shape)
    source = tuple(1 if at in axes else length for at, length in enumerate(array.shape))
    alignment = aligned(array.shape, source)
    to = getattr(statistics, name)(np.ones(2, array.dtype), dtype=dtype).dtype
    if name == "sum":
        result = summed(array, alignment, to, split_every)
    else:
        is_complex = array.dtype.kind == "c"
        wide = np.dtype(complex) if is_complex else wide_dtype(to)
        count = math.prod(array.shape[at] for at in axes)
        result = summed(array, alignment, wide, split_every) / count
        if name != "mean":
            operands = [without_empty(array), result]
            functions = [(np.subtract, 1), *([(np.absolute, 0)] if is_complex else []), (np.square, 0)]
            real = np.dtype(float) if is_complex else wide
            squares = chained(operands, array.ndim, real, functions=functions, own=wide)
            result = summed(squares, alignment, squares.dtype, split_every) / max(count - ddof, 0)
        result = _rounded(np.sqrt(result) if name == "std" else result, to)
    return result if keepdims else result.squeeze(axes)


def _rounded(result: Array, to: np.dtype[Any]) -> Array:
    """Round the items of an array; those of other packages' dtypes once."""
    if to.isbuiltin != 2:
        return result.astype(to)
    meta = np.zeros((0,) * result.ndim, to)
    return result.map_blocks(partial(round_to, dtype=to), dtype=to, meta=meta, token=f"bcast-round-{to.name}")
