"""Sums and statistics of dask arrays: functions read NumPy's arguments and build graphs of partial sums."""

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bcast._api import statistics
from bcast._api.adjoints import wide_dtype
from bcast._api.elementwise import where
from bcast._api.reductions import reduced_axes
from bcast._dask.arrays import AnyArray, Array, SplitEvery, as_dask
from bcast._dask.copies import chained, without_empty
from bcast._dask.sums import averaged_exactly, meta_of, rounded_blocks, summed, summed_exactly
from bcast._dask.tasks import block_of
from bcast._rules.alignment import aligned
from bcast._rules.types import Axes, DType
from bcast._runtime.arrays import reduced_shape
from bcast._runtime.errors import quietly


def sum(
    a: AnyArray,
    axis: Axes = None,
    dtype: DType = None,
    keepdims: bool = False,
    *,
    exact: bool = False,
    split_every: SplitEvery = None,
) -> Array:
    """Sum the items of an array along axes, like `bcast.sum`.

    Errors and `split_every` are as in `bcast.dask.unbroadcast`. Sums that are `exact` do not depend on the chunks:
    tasks pass on three float64 numbers for each sum. Three suffice unless they cancel to less than 2**-80 of their
    size.

    Examples
    --------
    >>> import dask.array as da
    >>> import bcast.dask
    >>> bcast.dask.sum(da.ones((6, 4), chunks=3, dtype="uint8"), axis=0).compute()
    array([6, 6, 6, 6], dtype=uint64)
    """
    call = _Reduction(statistics.sum, a, axis, dtype, split_every)
    sums = call.exact_sum(call.array) if exact else call.sum(call.array, call.dtype)
    return call.without_axes(sums, keepdims)


def mean(
    a: AnyArray,
    axis: Axes = None,
    dtype: DType = None,
    keepdims: bool = False,
    *,
    exact: bool = False,
    split_every: SplitEvery = None,
) -> Array:
    """Average the items of an array along axes, like `bcast.mean`; `exact` is as in `sum`.

    Examples
    --------
    >>> import bcast.dask
    >>> bcast.dask.mean(range(10)).compute().item()
    4.5
    """
    call = _Reduction(statistics.mean, a, axis, dtype, split_every)
    exactly = exact and call.terms > 0 and call.dtype.kind not in "biu"
    average = call.exact_sum(call.array, call.terms) if exactly else rounded(call.mean(), call.dtype)
    return call.without_axes(average, keepdims)


def var(
    a: AnyArray,
    axis: Axes = None,
    dtype: DType = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    split_every: SplitEvery = None,
) -> Array:
    """Compute variances along axes, like `bcast.var`: the data is read twice.

    Examples
    --------
    >>> import bcast.dask
    >>> bcast.dask.var(range(10)).compute().item()
    8.25
    """
    call = _Reduction(statistics.var, a, axis, dtype, split_every)
    return call.without_axes(rounded(call.variance(ddof), call.dtype), keepdims)


def std(
    a: AnyArray,
    axis: Axes = None,
    dtype: DType = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    split_every: SplitEvery = None,
) -> Array:
    """Compute standard deviations along axes: the square roots of the variances of `var`.

    Examples
    --------
    >>> import bcast.dask
    >>> bcast.dask.std([0, 2, 4, 6]).compute().item()
    2.23606797749979
    """
    call = _Reduction(statistics.std, a, axis, dtype, split_every)
    return call.without_axes(rounded(np.sqrt(call.variance(ddof)), call.dtype), keepdims)


def mean_std(
    a: AnyArray, axis: Axes = None, *, ddof: float = 0, keepdims: bool = False, split_every: SplitEvery = None
) -> tuple[Array, Array]:
    """Compute means and standard deviations along axes, like `bcast.mean_std`: the data is read twice.

    Examples
    --------
    >>> import dask
    >>> import bcast.dask
    >>> mean, deviation = dask.compute(*bcast.dask.mean_std([[1.0, 5.0], [2.0, 6.0]], axis=1))
    >>> mean, deviation
    (array([3., 4.]), array([2., 2.]))
    """
    call = _Reduction(statistics.std, a, axis, None, split_every)
    mean = call.mean()
    deviation = np.sqrt(call.variance(ddof, mean))
    average = rounded(mean, statistics.mean(np.ones(2, call.array.dtype)).dtype)
    return call.without_axes(average, keepdims), call.without_axes(rounded(deviation, call.dtype), keepdims)


def nansum(
    a: AnyArray,
    axis: Axes = None,
    dtype: DType = None,
    keepdims: bool = False,
    *,
    exact: bool = False,
    split_every: SplitEvery = None,
) -> Array:
    """Sum the items of an array that are not NaN along axes, like `bcast.nansum`; `exact` is as in `sum`.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast.dask
    >>> bcast.dask.nansum([[1.0, np.nan], [3.0, 4.0]], axis=1).compute()
    array([1., 7.])
    """
    call = _Reduction(statistics.sum, a, axis, dtype, split_every)
    numbers = _numbers(call.array)
    return call.without_axes(call.exact_sum(numbers) if exact else call.sum(numbers, call.dtype), keepdims)


def nanmean(
    a: AnyArray,
    axis: Axes = None,
    dtype: DType = None,
    keepdims: bool = False,
    *,
    exact: bool = False,
    split_every: SplitEvery = None,
) -> Array:
    """Average the items of an array that are not NaN along axes, like `bcast.nanmean`, without its warnings.

    `exact` is as in `sum`.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast.dask
    >>> bcast.dask.nanmean([[1.0, np.nan], [3.0, 4.0]], axis=0).compute()
    array([2., 4.])
    """
    call = _Reduction(statistics.mean, a, axis, dtype, split_every)
    exactly = exact and call.terms > 0 and call.dtype.kind not in "biu"
    average = call.exact_mean_of_numbers() if exactly else rounded(call.mean_of_numbers(), call.dtype)
    return call.without_axes(average, keepdims)


def nanvar(
    a: AnyArray,
    axis: Axes = None,
    dtype: DType = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    split_every: SplitEvery = None,
) -> Array:
    """Compute variances of the items that are not NaN along axes, like `bcast.nanvar`, without its warnings.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast.dask
    >>> bcast.dask.nanvar([[1.0, np.nan, 3.0], [3.0, 4.0, 5.0]], axis=1, ddof=1).compute()
    array([2., 1.])
    """
    call = _Reduction(statistics.var, a, axis, dtype, split_every)
    return call.without_axes(rounded(call.variance_of_numbers(ddof), call.dtype), keepdims)


def nanstd(
    a: AnyArray,
    axis: Axes = None,
    dtype: DType = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    split_every: SplitEvery = None,
) -> Array:
    """Compute standard deviations of the items that are not NaN along axes: the square roots of `nanvar`'s variances.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast.dask
    >>> bcast.dask.nanstd([1.0, np.nan, 3.0]).compute().item()
    1.0
    """
    call = _Reduction(statistics.std, a, axis, dtype, split_every)
    return call.without_axes(rounded(np.sqrt(call.variance_of_numbers(ddof)), call.dtype), keepdims)


class _Reduction:
    """An array to reduce, the axes to reduce, and the dtypes of the results."""

    def __init__(self, function: Any, a: Any, axis: Any, dtype: Any, split_every: SplitEvery) -> None:
        """Read the arguments of a call; the `function` for arrays in memory determines the dtype of the result."""
        self.array = as_dask("a", a, computes=True)
        self.axes = reduced_axes(axis, self.array.shape)
        source = reduced_shape(self.array.shape, self.axes, True)
        self.alignment = aligned(self.array.shape, source)  # its results keep axes of length 1
        self.terms = math.prod(self.array.shape[at] for at in self.axes)  # the terms of each sum
        self.split_every = split_every

        self.dtype = function(np.ones(2, self.array.dtype), dtype=dtype).dtype  # the dtype of the result
        self.is_complex = self.array.dtype.kind == "c"
        self.wide = np.dtype(complex) if self.is_complex else wide_dtype(self.dtype)  # before the result is rounded

    def sum(self, array: Array, dtype: np.dtype[Any]) -> Array:
        """Sum this array, or one of its shape."""
        return summed(array, self.alignment, dtype, self.split_every)

    def exact_sum(self, array: Array, divisor: int = 1) -> Array:
        """Sum this array, or one of its shape, exactly; divide and round once."""
        return summed_exactly(array, self.alignment, self.dtype, self.split_every, divisor)

    def mean(self) -> Array:
        """Average the array, in a wide dtype."""
        return self.sum(self.array, self.wide) / self.terms

    def variance(self, ddof: float, mean: Array | None = None) -> Array:
        """Compute the variance of the array, in a wide dtype, around its mean."""
        squares = self._squares(self.mean() if mean is None else mean)
        return self.sum(squares, squares.dtype) / max(self.terms - ddof, 0)

    def mean_of_numbers(self) -> Array:
        """Average the items that are not NaN, in a wide dtype."""
        return _divided(self.sum(_numbers(self.array), self.wide), self._counts())

    def exact_mean_of_numbers(self) -> Array:
        """Average the items that are not NaN exactly, and round once."""
        return averaged_exactly(self.array, self.alignment, self.dtype, self.split_every)

    def variance_of_numbers(self, ddof: float) -> Array:
        """Compute the variance of the items that are not NaN, in a wide dtype."""
        squares = self._squares(self.mean_of_numbers())
        return _divided(self.sum(_numbers(squares), squares.dtype), self._counts() - ddof)

    def _squares(self, mean: Array) -> Array:
        """Square the differences of items from a mean, in a wide dtype; for complex numbers, their absolute values."""
        distance = [(np.absolute, 0)] if self.is_complex else []
        real = np.dtype(float) if self.is_complex else self.wide
        operands = [without_empty(self.array), mean]
        functions = [(np.subtract, 1), *distance, (np.square, 0)]
        return chained(operands, self.array.ndim, real, functions=functions, own=self.wide)

    def _counts(self) -> Array:
        """Count the items that are not NaN."""
        array = self.array
        return self.sum(array.map_blocks(are_numbers_of_block, dtype=bool, meta=meta_of(array, bool)), np.dtype(int))

    def without_axes(self, result: Array, keepdims: bool) -> Array:
        """Drop the reduced axes, unless the caller keeps them."""
        return result if keepdims else result.squeeze(self.axes)


def _numbers(array: Array) -> Array:
    """Replace NaN with 0."""
    if array.dtype.kind in "biu":
        return array
    return array.map_blocks(numbers_of_block, dtype=array.dtype, meta=meta_of(array, array.dtype))


def _divided(sums: Array, counts: Array) -> Array:
    """Divide sums by counts. If a count is 0, the result is NaN."""
    return sums.map_blocks(quotients_of_blocks, counts, dtype=sums.dtype, meta=meta_of(sums, sums.dtype))


def are_numbers_of_block(block: Any) -> NDArray[Any]:
    """Return where the items of a block are not NaN."""
    data = block_of("a", block)
    return np.asarray(data == data)


def numbers_of_block(block: Any) -> NDArray[Any]:
    """Return a block in which 0 replaces NaN."""
    data = block_of("a", block)
    return np.asarray(where(data == data, data, np.zeros((), data.dtype)))


def quotients_of_blocks(sums: Any, counts: Any) -> Any:
    """Divide sums by counts. If a count is 0, the result is NaN, without a warning."""
    divide = partial(np.divide, dtype=sums.dtype, casting="same_kind")
    return quietly(divide, sums, np.where(counts > 0, counts, np.nan))


def rounded(result: Array, to: np.dtype[Any]) -> Array:
    """Round the items of an array to a dtype; dtypes of other packages are rounded once as well."""
    if to.isbuiltin != 2:
        return result.astype(to)
    return rounded_blocks(result, to)
