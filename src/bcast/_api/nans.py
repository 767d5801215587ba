"""`nansum`, `nanmean`, `nanvar`, `nanstd`, `nanmax` and `nanmin`: NumPy's reductions that leave NaN out.

In: NumPy's arguments. Out: NumPy's results, but for the last bits of sums, and its warnings. What the core has no
kernels for is NumPy's to do.

A sum, mean or variance is NaN if a term is. So it is computed as if there were none, and again, without them, if it
comes out NaN: data without NaN is read no oftener than by `sum`.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bcast._api import reductions, statistics
from bcast._api.converted import as_base, as_operand, is_handed_on
from bcast._api.reductions import reduced_axes
from bcast._api.statistics import PLAIN, given_ddof
from bcast._reduction import has_kernels, reduce_onto, sum_numbers_onto
from bcast._rules.alignment import Alignment, aligned
from bcast._rules.arguments import Shape, dtype_argument
from bcast._rules.types import Axes, DType, Out
from bcast._runtime.arrays import refuse_repeated, result_array, rounded_to

NUMBERS_SQUARE, NUMBER, NUMBERS_COUNT = 1, 2, 3  # as `_reduce/simd/sum.h` numbers what is made of items
GREATEST_NUMBER, LEAST_NUMBER = 5, 6  # as `_reduce/simd/combine.h` does operations
FEW = 1024  # items; of fewer, functions of NumPy's in C take less time
SQUARES = ("nanvar", "nanstd")
FIRST = {"nanmax": np.fmax, "nanmin": np.fmin}
ZERO = np.zeros((), np.float64)
NO_VALUE = getattr(np, "_NoValue")  # noqa: B009 (stubs do not know it)

# even if they are replaced
NUMPYS: dict[str, Callable[..., Any]] = {
    "nansum": np.nansum,
    "nanmean": np.nanmean,
    "nanvar": np.nanvar,
    "nanstd": np.nanstd,
    "nanmax": np.nanmax,
    "nanmin": np.nanmin,
}
# the functions that do not leave NaN out
WITH_NAN: dict[str, Callable[..., Any]] = {
    "nansum": statistics.sum,
    "nanmean": statistics.mean,
    "nanvar": statistics.var,
    "nanstd": statistics.std,
    "nanmax": reductions.max,
    "nanmin": reductions.min,
}


def nansum(
    a: ArrayLike,
    axis: Axes = None,
    dtype: DType = None,
    out: Out = None,
    keepdims: bool = False,
    initial: Any = NO_VALUE,
    where: Any = NO_VALUE,
) -> Any:
    """Sum the items of an array that are no NaN along axes: `numpy.nansum`, faster and with a bounded error.

    Parameters
    ----------
    a, axis, dtype, out, keepdims
        As in `sum`, and so are errors.
    initial, where
        As `numpy.nansum` takes them. That function does calls with either.

    Returns
    -------
    ndarray or scalar
        As `sum` returns them; 0 where all items are NaN.

    See Also
    --------
    nanmean, nanvar, nanstd, nanmax, nanmin

    Notes
    -----
    Integers and bools have no NaN: `sum` does their calls. `numpy.nansum` itself does what no kernel sums, as in `sum`,
    complex numbers, other byte orders, and an `out` of another dtype than the result.

    Data with a NaN is read twice. NaNs of bfloat16 are left out, too, which NumPy does not know.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast
    >>> bcast.nansum(np.array([[1.0, np.nan], [3.0, 4.0]]), axis=1)
    array([1., 7.])
    """
    return _reduced("nansum", a, axis, out, keepdims, {"dtype": dtype}, {"initial": initial, "where": where})


def nanmean(
    a: ArrayLike, axis: Axes = None, dtype: DType = None, out: Out = None, keepdims: bool = False, **others: Any
) -> Any:
    """Average the items of an array that are no NaN along axes: `numpy.nanmean`, faster along short axes.

    Parameters
    ----------
    a, axis, dtype, out, keepdims
        As in `mean`, and so are errors.
    **others
        `where`, as `numpy.nanmean` takes it. That function does calls with masks.

    Returns
    -------
    ndarray or scalar
        As `mean` returns them. Where all items are NaN, the mean is NaN, with NumPy's warning.

    Notes
    -----
    As in `nansum`.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast
    >>> bcast.nanmean(np.array([[1.0, np.nan], [3.0, 4.0]]), axis=0)
    array([2., 4.])
    """
    return _reduced("nanmean", a, axis, out, keepdims, {"dtype": dtype}, others)


def nanvar(
    a: ArrayLike,
    axis: Axes = None,
    dtype: DType = None,
    out: Out = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    correction: float | None = None,
    **others: Any,
) -> Any:
    """Compute variances of the items that are no NaN along axes: `numpy.nanvar` without temporaries of the data's size.

    Parameters
    ----------
    a, axis, dtype, out, ddof, keepdims, correction
        As in `var`, and so are errors.
    **others
        `where` and `mean`, as `numpy.nanvar` takes them. That function does calls with masks or means.

    Returns
    -------
    ndarray or scalar
        As `var` returns them. Where no more items than `ddof` are left, the variance is NaN, with NumPy's warning.

    Notes
    -----
    As in `nansum`. Data with a NaN is read three times more.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast
    >>> bcast.nanvar(np.array([[1.0, np.nan, 3.0], [3.0, 4.0, 8.0]]), axis=1)
    array([1.        , 4.66666667])
    """
    options = {"dtype": dtype, "ddof": given_ddof(ddof, correction)}
    return _reduced("nanvar", a, axis, out, keepdims, options, others)


def nanstd(
    a: ArrayLike,
    axis: Axes = None,
    dtype: DType = None,
    out: Out = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    correction: float | None = None,
    **others: Any,
) -> Any:
    """Compute standard deviations of the items that are no NaN along axes: `numpy.nanstd`, faster along short axes.

    Parameters
    ----------
    a, axis, dtype, out, ddof, keepdims, correction, **others
        As in `nanvar`, and so are errors and notes.

    Returns
    -------
    ndarray or scalar
        The roots of what `nanvar` computes, taken before that is rounded.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast
    >>> bcast.nanstd(np.array([[1.0, np.nan, 3.0], [2.0, 2.0, 2.0]]), axis=1)
    array([1., 0.])
    """
    options = {"dtype": dtype, "ddof": given_ddof(ddof, correction)}
    return _reduced("nanstd", a, axis, out, keepdims, options, others)


def nanmax(
    a: ArrayLike,
    axis: Axes = None,
    out: Out = None,
    keepdims: bool = False,
    initial: Any = NO_VALUE,
    where: Any = NO_VALUE,
) -> Any:
    """Find the greatest items that are no NaN along axes: `numpy.nanmax`, faster along short axes.

    Parameters
    ----------
    a, axis, out, keepdims
        As in `max`, and so are errors.
    initial, where
        As `numpy.nanmax` takes them. That function does calls with either.

    Returns
    -------
    ndarray or scalar
        As `max` returns them. Where all items are NaN, the result is NaN, with NumPy's warning.

    Notes
    -----
    `numpy.nanmax` itself does what no kernel reads, as in `max`.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast
    >>> bcast.nanmax(np.array([[1.0, np.nan], [3.0, 4.0]]), axis=1)
    array([1., 4.])
    """
    return _reduced("nanmax", a, axis, out, keepdims, {}, {"initial": initial, "where": where})


def nanmin(
    a: ArrayLike,
    axis: Axes = None,
    out: Out = None,
    keepdims: bool = False,
    initial: Any = NO_VALUE,
    where: Any = NO_VALUE,
) -> Any:
    """Find the least items that are no NaN along axes: `numpy.nanmin`, faster along short axes.

    Parameters
    ----------
    a, axis, out, keepdims, initial, where
        As in `nanmax`, and so are errors and notes.

    Returns
    -------
    ndarray or scalar
        As `nanmax` returns them.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast
    >>> bcast.nanmin(np.array([[1.0, np.nan], [3.0, 4.0]]), axis=0)
    array([1., 4.])
    """
    return _reduced("nanmin", a, axis, out, keepdims, {}, {"initial": initial, "where": where})


class _Call:
    """A call that the core does: its array with axes in the order of memory, and what is reduced of it."""

    array: NDArray[Any]
    alignment: Alignment  # of the result, with reduced axes of length 1, to the array
    wanted: np.dtype[Any]  # of the result
    ddof: float

    def filled(self, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return a new array for results."""
        return result_array(None, self.array, self.alignment.source, "a", dtype)

    def summed(self, deviation: int, means: NDArray[Any] = ZERO) -> NDArray[Any]:
        """Sum in float64 what is made of the items that are no NaN."""
        sums = self.filled(ZERO.dtype)
        sum_numbers_onto(self.array, self.alignment, sums, means, deviation)
        return sums


def _reduced(
    name: str, a: Any, axis: Any, out: Any, keepdims: Any, options: dict[str, Any], others: dict[str, Any]
) -> Any:
    """Do a call of the function of a name; NumPy's options that are no defaults are its to read."""
    others = {key: value for key, value in others.items() if value is not NO_VALUE}
    is_usual = out is None and not others and type(keepdims) is bool and (axis is None or type(axis) in (int, tuple))
    if is_usual and type(a) is np.ndarray and 0 < a.size <= FEW and a.dtype.kind == "f":
        found = _of_few(name, a, axis, keepdims, options)
        if found is not None:
            return found

    array = None
    if not others and type(keepdims) is bool and not is_handed_on(a):
        array = as_base(as_operand("a", a))
    if array is None:
        return _numpys(name, a, axis, out, keepdims, options | others)
    if array.dtype.kind in "biu" and array.size:
        return WITH_NAN[name](array, axis, out=out, keepdims=keepdims, **options)

    wanted = _dtype_of_result(array, options.get("dtype"), out)
    if wanted is None or not array.size or not array.ndim:
        return _numpys(name, array, axis, out, keepdims, options)
    axes = reduced_axes(axis, array.shape)
    call, order = _call_of(array, axes, wanted, options)
    count = array.size // np.prod(call.alignment.source, dtype=int)
    if count == 1 or not call.ddof < count:
        return _numpys(name, array, axes, out, keepdims, options)

    if name in FIRST:
        result, warning = _extreme(call, GREATEST_NUMBER if name == "nanmax" else LEAST_NUMBER)
    else:
        result, warning = _statistic(name, call)
    if warning:
        warnings.warn(warning, RuntimeWarning, stacklevel=3)
    return _given(result, axes, order, out, keepdims)


def _of_few(name: str, a: NDArray[Any], axis: Any, keepdims: bool, options: dict[str, Any]) -> Any:
    """Return the result of few items; None if it takes more than one step, or a warning."""
    if name in FIRST:
        reduce: Any = FIRST[name].reduce
        found = reduce(a, axis, None, None, keepdims)
        return None if _has_nan(found) else found
    if name in SQUARES:
        return None
    found = WITH_NAN[name](a, axis, keepdims=keepdims, **options)
    if name == "nansum" and _has_nan(found):
        return statistics.sum(np.where(a == a, a, 0), axis, keepdims=keepdims, **options)
    return None if _has_nan(found) else found


def _dtype_of_result(array: NDArray[Any], dtype: Any, out: Any) -> np.dtype[Any] | None:
    """Return the dtype of a result that the core finds; None for what NumPy is to do."""
    own = array.dtype
    wanted = own if dtype is None else dtype_argument(dtype)
    for each in (own, wanted):
        if not each.isnative or each.kind in "biuc" or not has_kernels(np.empty(0, each)):
            return None
    if out is not None and (type(out) not in PLAIN or out.dtype != wanted):
        return None
    return wanted


def _call_of(
    array: NDArray[Any], axes: Shape, wanted: np.dtype[Any], options: dict[str, Any]
) -> tuple[_Call, list[int] | None]:
    """Return what the core is to do, and the order of axes that it is given, if that is not the array's."""
    order = None
    if not array.flags.c_contiguous and array.ndim > 1:
        order = sorted(range(array.ndim), key=lambda at: -abs(array.strides[at]))
        array = array.transpose(order)
    source = [1 if (at if order is None else order[at]) in axes else array.shape[at] for at in range(array.ndim)]

    call = _Call()
    call.array = array
    call.alignment = aligned(array.shape, tuple(source))
    call.wanted = wanted
    call.ddof = options.get("ddof", 0)
    if isinstance(call.ddof, np.generic):
        call.ddof = call.ddof.item()
    return call, order


def _given(result: NDArray[Any], axes: Shape, order: list[int] | None, out: Any, keepdims: bool) -> Any:
    """Return a result with the caller's axes, or write it into `out`."""
    if order is not None:
        result = result.transpose([order.index(at) for at in range(result.ndim)])
    if not keepdims:
        result = result.squeeze(axes)
    if out is None:
        return result if result.ndim else result[()]
    result_array(out, result, result.shape, "a", out.dtype)  # which checks it
    np.copyto(out, result)
    return out


def _extreme(call: _Call, operation: int) -> tuple[NDArray[Any], str]:
    """Find extremes of numbers, and what is to be warned of."""
    result = call.filled(call.wanted)
    reduce_onto(call.array, call.alignment, result, operation)
    return result, "All-NaN slice encountered" if _has_nan(result) else ""


def _statistic(name: str, call: _Call) -> tuple[NDArray[Any], str]:
    """Compute a sum or a statistic: as if there were no NaN, and then without them."""
    axes = tuple([at for at in range(call.array.ndim) if call.alignment.source[at] != call.array.shape[at]])
    options: dict[str, Any] = {"ddof": call.ddof} if name in SQUARES else {}
    result = WITH_NAN[name](call.array, axes, call.wanted, keepdims=True, **options)
    if not _has_nan(result):
        return result, ""
    if name == "nansum":
        result = call.filled(call.wanted)
        sum_numbers_onto(call.array, call.alignment, result, ZERO, NUMBER)
        return result, ""

    with np.errstate(all="ignore"):
        counts = call.summed(NUMBERS_COUNT)
        result = call.summed(NUMBER) / counts
        warning = "" if counts.all() else "Mean of empty slice"
        if name != "nanmean":
            freedom = counts - call.ddof
            result = call.summed(NUMBERS_SQUARE, result) / freedom
            result[freedom <= 0] = np.nan
            warning = "Degrees of freedom <= 0 for slice." if (freedom <= 0).any() else ""
        if name == "nanstd":
            np.sqrt(result, out=result)
        return rounded_to(result, call.wanted), warning


def _has_nan(result: NDArray[Any]) -> bool:
    """Return whether a result is NaN somewhere."""
    greatest = result.item() if result.size == 1 else reductions.max(result)
    return bool(greatest != greatest)


def _numpys(name: str, a: Any, axis: Any, out: Any, keepdims: Any, options: dict[str, Any]) -> Any:
    """Call NumPy's function with the arguments that are no defaults: classes that override it need not know all."""
    if isinstance(out, np.ndarray):
        refuse_repeated(out, out)
    given = {"axis": axis, "out": out, **options}
    given = {key: value for key, value in given.items() if value is not None and not (key == "ddof" and value == 0)}
    if keepdims is not False:
        given["keepdims"] = keepdims
    return NUMPYS[name](a, **given)
