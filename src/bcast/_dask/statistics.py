"""Sums and statistics of dask arrays: functions read NumPy's arguments and build graphs of partial sums."""

import math
from functools import partial
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from bcast._api import statistics
from bcast._api.adjoints import wide_dtype
from bcast._api.elementwise import where as choose_items
from bcast._api.exact_squares import Measuring
from bcast._api.reductions import reduced_axes
from bcast._dask.arrays import AnyArray, Array, SplitEvery, as_dask
from bcast._dask.copies import chained, without_empty
from bcast._dask.sums import (
    averaged_exactly,
    masked,
    meta_of,
    rounded_blocks,
    spread_exactly,
    summed,
    summed_exactly,
)
from bcast._dask.tasks import block_of
from bcast._rules.alignment import aligned
from bcast._rules.arguments import brief
from bcast._rules.types import Axes, DType
from bcast._runtime.arrays import reduced_shape
from bcast._runtime.errors import quietly

NO_VALUE = getattr(np, "_NoValue")  # noqa: B009 (stubs do not know it)


def sum(
    a: AnyArray,
    axis: Axes = None,
    dtype: DType = None,
    keepdims: bool = False,
    initial: Any = NO_VALUE,
    where: Any = NO_VALUE,
    *,
    exact: bool = False,
    split_every: SplitEvery = None,
) -> Array:
    """Sum the items of an array along axes, like `bcast.sum`.

    Errors and `split_every` are as in `bcast.dask.unbroadcast`. Sums that are `exact` do not depend on the chunks, and
    equal those of arrays in memory: tasks pass on exact sums, of as many digits as needed. `where` is an array of bools
    that broadcasts to `a`, perhaps a Dask array; items outside of it are not summed.

    Examples
    --------
    >>> import dask.array as da
    >>> import bcast.dask
    >>> bcast.dask.sum(da.ones((6, 4), chunks=3, dtype="uint8"), axis=0).compute()
    array([6, 6, 6, 6], dtype=uint64)
    """
    call = _Reduction(statistics.sum, a, axis, dtype, split_every, exact)
    return call.without_axes(call.sum_of(call.array, initial, where, exact), keepdims)


def mean(
    a: AnyArray,
    axis: Axes = None,
    dtype: DType = None,
    keepdims: bool = False,
    where: Any = NO_VALUE,
    *,
    exact: bool = False,
    split_every: SplitEvery = None,
) -> Array:
    """Average the items of an array along axes, like `bcast.mean`; `exact` and `where` are as in `sum`.

    Means of no items are NaN, without a warning.

    Examples
    --------
    >>> import bcast.dask
    >>> bcast.dask.mean(range(10)).compute().item()
    4.5
    """
    call = _Reduction(statistics.mean, a, axis, dtype, split_every, exact)
    exactly = exact and call.terms > 0 and call.dtype.kind not in "biu"
    mask = _mask_of(where, call.array)
    if mask is not None:
        average = call.mean_of_chosen(mask, exactly, skips_nan=False)
    else:
        average = call.exact_sum(call.array, call.terms) if exactly else rounded(call.mean(), call.dtype)
    return call.without_axes(average, keepdims)


def var(
    a: AnyArray,
    axis: Axes = None,
    dtype: DType = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    exact: bool = False,
    split_every: SplitEvery = None,
) -> Array:
    """Compute variances along axes, like `bcast.var`: the data is read twice, or once if `exact`.

    Results that are `exact` do not depend on the chunks, and equal those of arrays in memory, as in `sum`.

    Examples
    --------
    >>> import bcast.dask
    >>> bcast.dask.var(range(10)).compute().item()
    8.25
    """
    call = _Reduction(statistics.var, a, axis, dtype, split_every, exact)
    return call.without_axes(call.spread(ddof, exact), keepdims)


def std(
    a: AnyArray,
    axis: Axes = None,
    dtype: DType = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    exact: bool = False,
    split_every: SplitEvery = None,
) -> Array:
    """Compute standard deviations along axes: the square roots of the variances of `var`.

    Examples
    --------
    >>> import bcast.dask
    >>> bcast.dask.std([0, 2, 4, 6]).compute().item()
    2.23606797749979
    """
    call = _Reduction(statistics.std, a, axis, dtype, split_every, exact)
    return call.without_axes(call.spread(ddof, exact), keepdims)


def mean_std(
    a: AnyArray,
    axis: Axes = None,
    *,
    ddof: float = 0,
    keepdims: bool = False,
    exact: bool = False,
    split_every: SplitEvery = None,
) -> tuple[Array, Array]:
    """Compute means and standard deviations along axes, like `bcast.mean_std`: the data is read twice.

    Results that are `exact` are those of `mean` and `std`.

    Examples
    --------
    >>> import dask
    >>> import bcast.dask
    >>> mean, deviation = dask.compute(*bcast.dask.mean_std([[1.0, 5.0], [2.0, 6.0]], axis=1))
    >>> mean, deviation
    (array([3., 4.]), array([2., 2.]))
    """
    if exact:
        options: dict[str, Any] = {"keepdims": keepdims, "exact": True, "split_every": split_every}
        array = as_dask("a", a, computes=True)
        return mean(array, axis, **options), std(array, axis, ddof=ddof, **options)
    call = _Reduction(statistics.std, a, axis, None, split_every)
    wide = call.mean()
    deviation = np.sqrt(call.variance(ddof, wide))
    average = rounded(wide, statistics.mean(np.ones(2, call.array.dtype)).dtype)
    return call.without_axes(average, keepdims), call.without_axes(rounded(deviation, call.dtype), keepdims)


def nansum(
    a: AnyArray,
    axis: Axes = None,
    dtype: DType = None,
    keepdims: bool = False,
    initial: Any = NO_VALUE,
    where: Any = NO_VALUE,
    *,
    exact: bool = False,
    split_every: SplitEvery = None,
) -> Array:
    """Sum the items of an array that are not NaN along axes, like `bcast.nansum`; options are as in `sum`.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast.dask
    >>> bcast.dask.nansum([[1.0, np.nan], [3.0, 4.0]], axis=1).compute()
    array([1., 7.])
    """
    call = _Reduction(statistics.sum, a, axis, dtype, split_every, exact)
    return call.without_axes(call.sum_of(_numbers(call.array), initial, where, exact), keepdims)


def nanmean(
    a: AnyArray,
    axis: Axes = None,
    dtype: DType = None,
    keepdims: bool = False,
    where: Any = NO_VALUE,
    *,
    exact: bool = False,
    split_every: SplitEvery = None,
) -> Array:
    """Average the items of an array that are not NaN along axes, like `bcast.nanmean`, without its warnings.

    `exact` and `where` are as in `sum`.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast.dask
    >>> bcast.dask.nanmean([[1.0, np.nan], [3.0, 4.0]], axis=0).compute()
    array([2., 4.])
    """
    call = _Reduction(statistics.mean, a, axis, dtype, split_every, exact)
    exactly = exact and call.terms > 0 and call.dtype.kind not in "biu"
    mask = _mask_of(where, call.array)
    if mask is not None:
        average = call.mean_of_chosen(mask, exactly, skips_nan=True)
    else:
        average = call.exact_mean_of_numbers() if exactly else rounded(call.mean_of_numbers(), call.dtype)
    return call.without_axes(average, keepdims)


def nanvar(
    a: AnyArray,
    axis: Axes = None,
    dtype: DType = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    exact: bool = False,
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
    call = _Reduction(statistics.var, a, axis, dtype, split_every, exact)
    return call.without_axes(call.spread(ddof, exact, skips_nan=True), keepdims)


def nanstd(
    a: AnyArray,
    axis: Axes = None,
    dtype: DType = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    exact: bool = False,
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
    call = _Reduction(statistics.std, a, axis, dtype, split_every, exact)
    return call.without_axes(call.spread(ddof, exact, skips_nan=True), keepdims)


class _Reduction:
    """An array to reduce, the axes to reduce, and the dtypes of the results."""

    def __init__(
        self, function: Any, a: Any, axis: Any, dtype: Any, split_every: SplitEvery, exact: bool = False
    ) -> None:
        """Read the arguments of a call; the `function` for arrays in memory determines the dtype of the result."""
        self.array = as_dask("a", a, computes=True)
        self.axes = reduced_axes(axis, self.array.shape)
        source = reduced_shape(self.array.shape, self.axes, True)
        self.alignment = aligned(self.array.shape, source)  # its results keep axes of length 1
        self.terms = math.prod(self.array.shape[at] for at in self.axes)  # the terms of each sum
        self.split_every = split_every
        self.is_root = function is statistics.std  # whether the roots of variances are the result

        options = {"exact": True} if exact else {}  # refuses what is not summed exactly
        self.dtype = function(np.ones(2, self.array.dtype), dtype=dtype, **options).dtype  # of the result
        self.is_complex = self.array.dtype.kind == "c"
        self.wide = np.dtype(complex) if self.is_complex else wide_dtype(self.dtype)  # before the result is rounded

    def sum(self, array: Array, dtype: np.dtype[Any]) -> Array:
        """Sum this array, or one of its shape."""
        return summed(array, self.alignment, dtype, self.split_every)

    def sum_of(self, array: Array, initial: Any, where: Any, exact: bool) -> Array:
        """Sum the items in a mask of this array, or one of its shape, from an initial value."""
        mask = _mask_of(where, array)
        array = array if mask is None else _chosen(array, mask)
        start = None if initial is NO_VALUE or initial is None else initial
        if start is not None and np.ndim(start):
            raise ValueError(f"`initial` expected a number, got shape {np.shape(start)}")
        total = summed_exactly if exact else summed
        sums = total(array, self.alignment, self.dtype, self.split_every, initial=start)
        if _is_without_start(initial) and array.dtype.kind in "fc" and self.terms > 0:
            sums = _with_signs(sums, array, self.axes, self.split_every)
        return sums

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

    def spread(self, ddof: float, exact: bool, skips_nan: bool = False) -> Array:
        """Compute the variance or its root, and round it."""
        if exact and 1 < self.terms > ddof:
            real = np.empty(0, self.dtype).real.dtype
            how = Measuring("a", real, self.is_root, True, float(ddof), skips_nan)
            spread = spread_exactly(self.array, self.alignment, how, self.split_every)
            return spread if real == self.dtype else rounded(spread, self.dtype)
        variance = self.variance_of_numbers(ddof) if skips_nan else self.variance(ddof)
        return rounded(np.sqrt(variance) if self.is_root else variance, self.dtype)

    def mean_of_chosen(self, mask: Array, exact: bool, skips_nan: bool) -> Array:
        """Average the items in a mask, perhaps without NaN."""
        if exact:
            record = np.dtype([("item", self.array.dtype), ("is_chosen", bool)], align=True)
            records = da.map_blocks(masked, self.array, mask, dtype=record, meta=meta_of(self.array, record))
            return averaged_exactly(records, self.alignment, self.dtype, self.split_every, skips_nan)
        counted = mask & self._are_numbers() if skips_nan else mask
        sums = self.sum(_chosen(self.array, counted), self.wide)
        return rounded(_divided(sums, self.sum(counted, np.dtype(int))), self.dtype)

    def mean_of_numbers(self) -> Array:
        """Average the items that are not NaN, in a wide dtype."""
        return _divided(self.sum(_numbers(self.array), self.wide), self._counts())

    def exact_mean_of_numbers(self) -> Array:
        """Average the items that are not NaN exactly, and round once."""
        return averaged_exactly(self.array, self.alignment, self.dtype, self.split_every)

    def variance_of_numbers(self, ddof: float) -> Array:
        """Compute the variance of the items that are not NaN, in a wide dtype."""
        squares = self._squares(self.mean_of_numbers())
        counted = _chosen(squares, self._are_numbers())  # the square of an infinite item may be NaN, which counts
        return _divided(self.sum(counted, squares.dtype), self._counts() - ddof)

    def _squares(self, mean: Array) -> Array:
        """Square the differences of items from a mean, in a wide dtype; for complex numbers, their absolute values."""
        distance = [(np.absolute, 0)] if self.is_complex else []
        real = np.dtype(float) if self.is_complex else self.wide
        operands = [without_empty(self.array), mean]
        functions = [(np.subtract, 1), *distance, (np.square, 0)]
        return chained(operands, self.array.ndim, real, functions=functions, own=self.wide)

    def _counts(self) -> Array:
        """Count the items that are not NaN."""
        return self.sum(self._are_numbers(), np.dtype(int))

    def _are_numbers(self) -> Array:
        """Return where the items are not NaN."""
        return self.array.map_blocks(are_numbers_of_block, dtype=bool, meta=meta_of(self.array, bool))

    def without_axes(self, result: Array, keepdims: bool) -> Array:
        """Drop the reduced axes, unless the caller keeps them."""
        return result if keepdims else result.squeeze(self.axes)


def _mask_of(where: Any, array: Array) -> Array | None:
    """Return the user's mask with the shape and the chunks of an array; None if it selects all items."""
    if where is NO_VALUE or where is True or where is np.True_:
        return None
    mask = as_dask("where", where, computes=True)
    if mask.dtype != bool:
        raise TypeError(f"`where` expected bools, got {brief(mask.dtype)}")
    try:
        mask = da.broadcast_to(mask, array.shape)
    except ValueError:
        raise ValueError(f"`where` expected a shape that broadcasts to {array.shape}, got {mask.shape}") from None
    return mask.rechunk(array.chunks)


def _chosen(array: Array, mask: Array) -> Array:
    """Return an array in which 0 replaces the items outside of a mask."""
    return da.map_blocks(chosen_of_blocks, array, mask, dtype=array.dtype, meta=meta_of(array, array.dtype))


def _is_without_start(initial: Any) -> bool:
    """Return whether the sum of only negative zeros is one, as it does not start from 0.0."""
    if initial is NO_VALUE:
        return False
    return initial is None or bool(initial == 0 and (np.signbit(np.real(initial)) or np.signbit(np.imag(initial))))


def _with_signs(sums: Array, array: Array, axes: tuple[int, ...], split_every: SplitEvery) -> Array:
    """Make those sums -0.0 whose terms all are."""
    terms = array.map_blocks(are_negative_zeros, dtype=bool, meta=meta_of(array, bool))
    signs = summed(~terms, aligned(array.shape, reduced_shape(array.shape, axes, True)), np.dtype(int), split_every)
    return da.map_blocks(signed_sums, sums, signs, dtype=sums.dtype, meta=meta_of(sums, sums.dtype))


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


def chosen_of_blocks(block: Any, mask: Any) -> NDArray[Any]:
    """Return a block in which 0 replaces the items outside of a mask."""
    data = block_of("a", block)
    return np.asarray(choose_items(block_of("where", mask), data, np.zeros((), data.dtype)))


def are_negative_zeros(block: Any) -> NDArray[Any]:
    """Return where the items of a block are -0.0; of complex numbers, both parts."""
    data = block_of("a", block)
    return np.asarray((data == 0) & np.signbit(data.real) & (np.signbit(data.imag) if data.dtype.kind == "c" else True))


def signed_sums(sums: Any, others: Any) -> NDArray[Any]:
    """Return sums, but -0.0 for those without other terms."""
    zero = complex(-0.0, -0.0) if sums.dtype.kind == "c" else -0.0
    return np.where(np.asarray(others) == 0, np.array(zero, sums.dtype), sums)


def numbers_of_block(block: Any) -> NDArray[Any]:
    """Return a block in which 0 replaces NaN."""
    data = block_of("a", block)
    return np.asarray(choose_items(data == data, data, np.zeros((), data.dtype)))


def quotients_of_blocks(sums: Any, counts: Any) -> Any:
    """Divide sums by counts. If a count is 0, the result is NaN, without a warning."""
    divide = partial(np.divide, dtype=sums.dtype, casting="same_kind")
    return quietly(divide, sums, np.where(counts > 0, counts, np.nan))


def rounded(result: Array, to: np.dtype[Any]) -> Array:
    """Round the items of an array to a dtype; dtypes of other packages are rounded once as well."""
    if to.isbuiltin != 2:
        return result.astype(to)
    return rounded_blocks(result, to)
