"""Extremes, truths, products and positions of dask arrays: first for each chunk, then combined over the chunks.

Only products of floats depend on the chunks. Each chunk makes one record for each item of the result: a record of a
position has the extreme and its place in the whole array, and a record of a pair has both extremes.
"""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from bcast._api import reductions
from bcast._api.adjoints import wide_dtype
from bcast._api.reductions import reduced_axes, without_nan
from bcast._dask.arrays import AnyArray, Array, SplitEvery, as_dask
from bcast._dask.chunks import cuts
from bcast._dask.copies import Output, mapped, without_empty
from bcast._dask.sums import round_to
from bcast._dask.tasks import block_of
from bcast._rules.arguments import Shape
from bcast._rules.types import Axes, DType
from bcast._runtime.arrays import reduced_shape


def max(a: AnyArray, axis: Axes = None, keepdims: bool = False, *, split_every: SplitEvery = None) -> Array:
    """Find the largest items of an array along axes, like `bcast.max`.

    Examples
    --------
    >>> import dask.array as da
    >>> import bcast.dask
    >>> bcast.dask.max(da.arange(12, chunks=5).reshape(6, 2), axis=0).compute()
    array([10, 11])
    """
    return Call(reductions.max, a, axis, split_every).combined(keepdims)


def min(a: AnyArray, axis: Axes = None, keepdims: bool = False, *, split_every: SplitEvery = None) -> Array:
    """Find the smallest items of an array along axes, like `bcast.min`.

    Examples
    --------
    >>> import bcast.dask
    >>> bcast.dask.min([3, 1, 2]).compute().item()
    1
    """
    return Call(reductions.min, a, axis, split_every).combined(keepdims)


def nanmax(a: AnyArray, axis: Axes = None, keepdims: bool = False, *, split_every: SplitEvery = None) -> Array:
    """Find the largest items that are not NaN along axes, like `bcast.nanmax`, without its warnings.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast.dask
    >>> bcast.dask.nanmax([[1.0, np.nan], [3.0, 4.0]], axis=1).compute()
    array([1., 4.])
    """
    return Call(greatest_number, a, axis, split_every).combined(keepdims)


def nanmin(a: AnyArray, axis: Axes = None, keepdims: bool = False, *, split_every: SplitEvery = None) -> Array:
    """Find the smallest items that are not NaN along axes, like `bcast.nanmin`, without its warnings.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast.dask
    >>> bcast.dask.nanmin([[1.0, np.nan], [3.0, 4.0]], axis=0).compute()
    array([1., 4.])
    """
    return Call(least_number, a, axis, split_every).combined(keepdims)


def any(a: AnyArray, axis: Axes = None, keepdims: bool = False, *, split_every: SplitEvery = None) -> Array:
    """Test whether any item along axes is true, like `bcast.any`.

    Examples
    --------
    >>> import bcast.dask
    >>> bcast.dask.any([[0, 0], [0, 3]], axis=1).compute()
    array([False,  True])
    """
    return Call(reductions.any, a, axis, split_every).combined(keepdims)


def all(a: AnyArray, axis: Axes = None, keepdims: bool = False, *, split_every: SplitEvery = None) -> Array:
    """Test whether all items along axes are true, like `bcast.all`.

    Examples
    --------
    >>> import bcast.dask
    >>> bcast.dask.all([[0, 1], [2, 3]], axis=1).compute()
    array([False,  True])
    """
    return Call(reductions.all, a, axis, split_every).combined(keepdims)


def prod(
    a: AnyArray, axis: Axes = None, dtype: DType = None, keepdims: bool = False, *, split_every: SplitEvery = None
) -> Array:
    """Multiply the items of an array along axes, like `bcast.prod`.

    Products of floats are rounded once, from float64 if they are narrower; their last bits depend on the chunks.

    Examples
    --------
    >>> import bcast.dask
    >>> bcast.dask.prod([[1, 2, 3], [4, 5, 6]], axis=1).compute()
    array([  6, 120])
    """
    call = Call(reductions.prod, a, axis, split_every, dtype)
    return call.combined(keepdims, wide_dtype(call.dtype))


def minmax(
    a: AnyArray, axis: Axes = None, keepdims: bool = False, *, split_every: SplitEvery = None
) -> tuple[Array, Array]:
    """Find the smallest and the largest items of an array along axes, like `bcast.minmax`: each chunk is read once.

    Examples
    --------
    >>> import dask
    >>> import dask.array as da
    >>> import bcast.dask
    >>> dask.compute(*bcast.dask.minmax(da.arange(12, chunks=5).reshape(6, 2), axis=0))
    (array([0, 1]), array([10, 11]))
    """
    call = Call(reductions.min, a, axis, split_every)
    if not call.array.size:
        return call.combined(keepdims), Call(reductions.max, a, axis, split_every).combined(keepdims)

    pairs = call.reduced(pairs_of_block, pairs_of_pairs, record_of(("low", "high"), (call.dtype, call.dtype)))
    return call.without_axes(pairs["low"], keepdims), call.without_axes(pairs["high"], keepdims)


def argmax(a: AnyArray, axis: int | None = None, keepdims: bool = False, *, split_every: SplitEvery = None) -> Array:
    """Find the positions of the largest items along an axis, like `bcast.argmax`: the first of equal items.

    Examples
    --------
    >>> import dask.array as da
    >>> import bcast.dask
    >>> bcast.dask.argmax(da.arange(12, chunks=5) % 4).compute().item()
    3
    """
    return _position(reductions.argmax, a, axis, keepdims, split_every)


def argmin(a: AnyArray, axis: int | None = None, keepdims: bool = False, *, split_every: SplitEvery = None) -> Array:
    """Find the positions of the smallest items along an axis, like `bcast.argmin`: the first of equal items.

    Examples
    --------
    >>> import bcast.dask
    >>> bcast.dask.argmin([[3.0, 1.0], [0.5, 2.0]], axis=-1).compute()
    array([1, 0])
    """
    return _position(reductions.argmin, a, axis, keepdims, split_every)


def _position(function: Any, a: Any, axis: Any, keepdims: bool, split_every: SplitEvery) -> Array:
    """Find positions: each chunk makes records of its extremes, and the best win, or the first of equal ones."""
    if isinstance(axis, (tuple, list, np.ndarray)):
        function(np.zeros(2), axis)  # raises an error for this axis
    call = Call(function, a, axis, split_every)
    if not call.array.size:
        return call.combined(keepdims)

    array = call.array
    record = record_of(("item", "place"), (array.dtype, call.dtype))
    begins = [[begin for begin, _ in cuts(own)] for own in array.chunks]
    chunks = tuple((1,) * len(own) if at in call.axes else own for at, own in enumerate(array.chunks))
    lengths = tuple(array.shape[at] for at in call.axes)

    records = mapped(
        records_of_block, array, range(array.ndim), Output(chunks, begins, record),
        find=function, axes=call.axes, lengths=lengths,
    )  # fmt: skip
    return call.without_axes(best_of(records, call.axes, function, split_every)["place"], keepdims)


def best_of(records: Array, axes: Shape, function: Any, split_every: SplitEvery = None) -> Array:
    """Find the best records of all chunks along one axis or all axes; reduced axes keep length 1."""
    if not axes:
        return records

    best = partial(best_records, function=function)
    meta = np.zeros((0,) * records.ndim, records.dtype)
    return da.reduction(
        records,
        best,
        best,
        axis=axes,
        keepdims=True,
        dtype=records.dtype,
        split_every=split_every,
        combine=best,
        name=f"bcast-{function.__name__}-{records.dtype['item'].name}",  # some dtypes have equal tokens in Dask
        meta=meta,
    )


class Call:
    """An array to reduce, the axes to reduce, and the dtype of the result."""

    def __init__(self, function: Any, a: Any, axis: Any, split_every: SplitEvery, dtype: Any = None) -> None:
        """Read the arguments of a call; the `function` for arrays in memory determines the dtype of the result."""
        self.function = function
        self.array = without_empty(as_dask("a", a, computes=True))
        self.axes = reduced_axes(axis, self.array.shape)
        self.options = {} if dtype is None else {"dtype": dtype}
        self.dtype = np.asarray(function(np.ones(2, self.array.dtype), **self.options)).dtype
        self.split_every = split_every

    def combined(self, keepdims: bool, wide: np.dtype[Any] | None = None) -> Array:
        """Reduce each chunk by the function, then the results; in a `wide` dtype, if one is given."""
        if not self.array.size:
            return self._of_nothing(keepdims)

        options = {} if wide is None or wide == self.dtype else {"dtype": wide}
        block = partial(combined_block, function=self.function, options=options or self.options)
        last = partial(combined_block, function=self.function, options=options or self.options, to=self.dtype)
        return self.without_axes(self.reduced(block, last, self.dtype, combine=block), keepdims)

    def reduced(self, block: Any, last: Any, dtype: np.dtype[Any], combine: Any = None) -> Array:
        """Reduce each chunk by a function, then the results; the axes keep length 1."""
        if not self.axes:
            return da.map_blocks(partial(last, axis=()), self.array, dtype=dtype, meta=self._meta(dtype))
        return da.reduction(
            self.array,
            block,
            last,
            axis=self.axes,
            keepdims=True,
            dtype=dtype,
            split_every=self.split_every,
            combine=last if combine is None else combine,
            name=f"bcast-{self.function.__name__}-{self.dtype.name}",  # some dtypes have equal tokens in Dask
            meta=self._meta(dtype),
        )

    def without_axes(self, result: Array, keepdims: bool) -> Array:
        """Drop the reduced axes, unless the caller keeps them."""
        return result if keepdims else result.squeeze(self.axes)

    def _meta(self, dtype: np.dtype[Any]) -> NDArray[Any]:
        return np.zeros((0,) * self.array.ndim, dtype)

    def _of_nothing(self, keepdims: bool) -> Array:
        """Return the result for an array without items, if the function has one."""
        axes: Any = self.axes if len(self.axes) != 1 else self.axes[0]
        if len(self.axes) == self.array.ndim:
            axes = None

        least = np.zeros(tuple(int(length > 0) for length in self.array.shape), self.array.dtype)
        items = self.function(least, axes, **self.options)

        chunks = tuple(((1,) if at in self.axes else own) for at, own in enumerate(self.array.chunks))
        value = items.flat[0] if np.size(items) else np.zeros((), self.dtype)[()]
        shape = tuple(map(sum, chunks))
        return self.without_axes(da.full(shape, value, chunks=chunks, dtype=self.dtype), keepdims)


def record_of(names: Sequence[str], dtypes: Sequence[np.dtype[Any]]) -> np.dtype[Any]:
    """Return the dtype of records of two fields."""
    return np.dtype(list(zip(names, dtypes, strict=True)), align=True)


def combined_block(
    block: Any,
    axis: Sequence[int],
    function: Any,
    options: dict[str, Any],
    to: np.dtype[Any] | None = None,
    computing_meta: bool = False,
    **_: Any,
) -> Any:
    """Reduce a block, or earlier results of the same function, along some axes, which keep length 1.

    Dask passes arguments that all chunks share one by one.
    """
    if computing_meta:
        return block
    found = np.asarray(function(block_of("a", block), tuple(axis), keepdims=True, **options))
    return found if to is None or found.dtype == to else round_to(found, to)


def greatest_number(a: NDArray[Any], axis: Any = None, keepdims: bool = False) -> Any:
    """Find the largest items that are not NaN, without warnings: all items of a block may be NaN."""
    return without_nan("max", a, axis, None, None, keepdims, 0, {}, _numpys_numbers, 0)


def least_number(a: NDArray[Any], axis: Any = None, keepdims: bool = False) -> Any:
    """Find the smallest items that are not NaN, without warnings."""
    return without_nan("min", a, axis, None, None, keepdims, 0, {}, _numpys_numbers, 0)


def _numpys_numbers(call: reductions.Reduction, options: dict[str, Any]) -> Any:  # noqa: ARG001 (others have some)
    """Have NumPy find the extremes for which the core has no kernels."""
    find = np.fmax if call.name == "max" else np.fmin
    return find.reduce(call.a, call.axis, keepdims=call.keepdims)


def pairs_of_block(block: Any, axis: Sequence[int], computing_meta: bool = False, **_: Any) -> Any:
    """Find both extremes of a block along some axes, which keep length 1."""
    if computing_meta:
        return block
    low, high = map(np.asarray, reductions.minmax(block_of("a", block), tuple(axis), keepdims=True))
    return _pairs(low, high)


def pairs_of_pairs(block: Any, axis: Sequence[int], computing_meta: bool = False, **_: Any) -> Any:
    """Find both extremes of the pairs of several blocks along some axes, which keep length 1."""
    if computing_meta:
        return block
    if block.dtype.names is None:  # an array without reduced axes
        return pairs_of_block(block, axis)
    lows, highs = np.ascontiguousarray(block["low"]), np.ascontiguousarray(block["high"])
    low, high = reductions.min(lows, tuple(axis), keepdims=True), reductions.max(highs, tuple(axis), keepdims=True)
    return _pairs(np.asarray(low), np.asarray(high))


def _pairs(low: NDArray[Any], high: NDArray[Any]) -> NDArray[Any]:
    pairs = np.empty(low.shape, record_of(("low", "high"), (low.dtype, high.dtype)))
    pairs["low"], pairs["high"] = low, high
    return pairs


def records_of_block(
    block: Any, begins: Shape, to: np.dtype[Any], find: Any, axes: Shape, lengths: Shape
) -> NDArray[Any]:
    """Find the extremes of a block along one axis or all, and their positions in the whole array.

    `begins` has the index of the block's first item, and `lengths` the lengths of the whole array's reduced axes.
    """
    data = block_of("a", block)
    places: Any
    if len(axes) == 1:
        places = np.asarray(find(data, axes[0], keepdims=True))
        items = np.take_along_axis(data, places, axes[0])
        places = places + begins[axes[0]]
    else:
        index = np.unravel_index(int(find(data)), data.shape) if data.ndim else ()
        items = data[index]
        places = flat_index([at + begin for at, begin in zip(index, begins, strict=True)], lengths)

    records = np.empty(reduced_shape(data.shape, axes, True), to)
    records["item"] = items
    records["place"] = places
    return records


def flat_index(index: Sequence[Any], lengths: Shape) -> int:
    """Return the position of an item in the flattened array, in C order."""
    return sum(int(at) * math.prod(lengths[axis + 1 :]) for axis, at in enumerate(index))


def best_records(block: Any, axis: Sequence[int], function: Any, computing_meta: bool = False, **_: Any) -> Any:
    """Find the best records along one axis or all, and the first of equals; reduced axes keep length 1."""
    if computing_meta or not block.ndim:
        return block
    if len(axis) == 1:  # records are in the order of their positions
        best = np.asarray(function(np.ascontiguousarray(block["item"]), axis[0], keepdims=True))
        return np.take_along_axis(block, best, axis[0])
    records = block.ravel()
    records = records[np.argsort(records["place"])]
    return records[int(function(np.ascontiguousarray(records["item"])))].reshape((1,) * block.ndim)
