"""`nansum`, `nanmean`, `nanvar`, `nanstd`, `nanmax` and `nanmin`: NumPy's reductions that ignore NaN.

In: NumPy's arguments. Out: NumPy's results, except for the last bits of sums, and its warnings. NumPy handles the calls
for which the core has no kernels.

A sum, mean or variance is NaN if a term is NaN. It is therefore first computed as if there were no NaN, and again
without them if the result is NaN: data without NaN is read only as often as by `sum`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bcast._api.converted import as_base, as_operand, is_handed_on, is_of_package
from bcast._api.reductions import Reduction, axis_for_numpy, rounded_into, without_nan
from bcast._api.statistics import given_ddof
from bcast._reduction import kind_of_sums
from bcast._rules.arguments import dtype_argument
from bcast._rules.types import Axes, DType, Out
from bcast._runtime.arrays import refuse_repeated

PLAIN = (np.ndarray, np.memmap)
NO_VALUE = getattr(np, "_NoValue")  # noqa: B009 (stubs do not know it)

# NumPy's own functions, even under a patch, by the names of the functions that do not ignore NaN
NUMPYS: dict[str, Callable[..., Any]] = {
    "sum": np.nansum,
    "mean": np.nanmean,
    "var": np.nanvar,
    "std": np.nanstd,
    "max": np.nanmax,
    "min": np.nanmin,
}


def nansum(
    a: ArrayLike,
    axis: Axes = None,
    dtype: DType = None,
    out: Out = None,
    keepdims: bool = False,
    initial: Any = NO_VALUE,
    where: Any = NO_VALUE,
    *,
    exact: bool = False,
) -> Any:
    """Sum the items of an array that are not NaN along axes: `numpy.nansum`, faster and with a bounded error.

    Parameters
    ----------
    a, axis, dtype, out, keepdims
        As in `sum`, including errors.
    initial, where
        As in `numpy.nansum`. Calls with either go to that function, unless they are `exact`.
    exact : bool, optional
        Whether to round exact sums once, as in `sum`. This works for all dtypes.

    Returns
    -------
    ndarray or scalar
        Like the results of `sum`; 0 where all items are NaN.

    See Also
    --------
    nanmean, nanvar, nanstd, nanmax, nanmin

    Notes
    -----
    Integers and bools have no NaN, so they go to `sum`. `numpy.nansum` handles the calls that `sum` leaves to NumPy,
    and also complex numbers, other byte orders, and an `out` whose dtype is not the result's.

    Data with a NaN is read twice. Unlike NumPy's function, this one also ignores NaN in floats of other packages, such
    as bfloat16.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast
    >>> bcast.nansum(np.array([[1.0, np.nan], [3.0, 4.0]]), axis=1)
    array([1., 7.])
    """
    options = {"initial": initial, "where": where}
    if exact:
        options["exact"] = True
    return without_nan("sum", a, axis, dtype, out, keepdims, 0, options, _numpys)


def nanmean(
    a: ArrayLike,
    axis: Axes = None,
    dtype: DType = None,
    out: Out = None,
    keepdims: bool = False,
    *,
    exact: bool = False,
    **others: Any,
) -> Any:
    """Average the items of an array that are not NaN along axes: `numpy.nanmean`, faster along short axes.

    Parameters
    ----------
    a, axis, dtype, out, keepdims
        As in `mean`, including errors.
    exact : bool, optional
        Whether to round exact means once, as in `mean`.
    **others
        `where`, as in `numpy.nanmean`. Calls with masks go to that function, unless they are `exact`.

    Returns
    -------
    ndarray or scalar
        Like the results of `mean`. Where all items are NaN, the mean is NaN, with NumPy's warning.

    Notes
    -----
    The notes of `nansum` apply, but data with a NaN is read three times.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast
    >>> bcast.nanmean(np.array([[1.0, np.nan], [3.0, 4.0]]), axis=0)
    array([2., 4.])
    """
    if exact:
        others["exact"] = True
    return without_nan("mean", a, axis, dtype, out, keepdims, 0, others, _numpys)


def nanvar(
    a: ArrayLike,
    axis: Axes = None,
    dtype: DType = None,
    out: Out = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    correction: float | None = None,
    exact: bool = False,
    **others: Any,
) -> Any:
    """Compute variances of the items that are not NaN: `numpy.nanvar` without temporaries of the data's size.

    Parameters
    ----------
    a, axis, dtype, out, ddof, keepdims, correction
        As in `var`, including errors.
    exact : bool, optional
        Whether variances are exact, then rounded once, as in `var`.
    **others
        `where` and `mean`, as in `numpy.nanvar`. Calls with masks or means go to that function.

    Returns
    -------
    ndarray or scalar
        Like the results of `var`. If the number of items without NaN is `ddof` or less, the variance is NaN, with
        NumPy's warning.

    Notes
    -----
    The notes of `nansum` apply, but data with a NaN is read four times, and other data twice.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast
    >>> bcast.nanvar(np.array([[1.0, np.nan, 3.0], [3.0, 4.0, 8.0]]), axis=1)
    array([1.        , 4.66666667])
    """
    if exact:
        others["exact"] = True
    return without_nan("var", a, axis, dtype, out, keepdims, given_ddof(ddof, correction), others, _numpys)


def nanstd(
    a: ArrayLike,
    axis: Axes = None,
    dtype: DType = None,
    out: Out = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    correction: float | None = None,
    exact: bool = False,
    **others: Any,
) -> Any:
    """Compute standard deviations of the items that are not NaN along axes: `numpy.nanstd`, faster along short axes.

    Parameters
    ----------
    a, axis, dtype, out, ddof, keepdims, correction, exact, **others
        As in `nanvar`, including errors and notes.

    Returns
    -------
    ndarray or scalar
        The square roots of the variances of `nanvar`, taken before these are rounded.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast
    >>> bcast.nanstd(np.array([[1.0, np.nan, 3.0], [2.0, 2.0, 2.0]]), axis=1)
    array([1., 0.])
    """
    if exact:
        others["exact"] = True
    return without_nan("std", a, axis, dtype, out, keepdims, given_ddof(ddof, correction), others, _numpys)


def nanmax(
    a: ArrayLike,
    axis: Axes = None,
    out: Out = None,
    keepdims: bool = False,
    initial: Any = NO_VALUE,
    where: Any = NO_VALUE,
) -> Any:
    """Find the largest items that are not NaN along axes: `numpy.nanmax`, faster along short axes.

    Parameters
    ----------
    a, axis, out, keepdims
        As in `max`, including errors.
    initial, where
        As in `numpy.nanmax`. Calls with either go to that function.

    Returns
    -------
    ndarray or scalar
        Like the results of `max`. Where all items are NaN, the result is NaN, with NumPy's warning.

    Notes
    -----
    `numpy.nanmax` handles the calls that `max` leaves to NumPy.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast
    >>> bcast.nanmax(np.array([[1.0, np.nan], [3.0, 4.0]]), axis=1)
    array([1., 4.])
    """
    options = {"initial": initial, "where": where}
    return without_nan("max", a, axis, None, out, keepdims, 0, options, _numpys)


def nanmin(
    a: ArrayLike,
    axis: Axes = None,
    out: Out = None,
    keepdims: bool = False,
    initial: Any = NO_VALUE,
    where: Any = NO_VALUE,
) -> Any:
    """Find the smallest items that are not NaN along axes: `numpy.nanmin`, faster along short axes.

    Parameters
    ----------
    a, axis, out, keepdims, initial, where
        As in `nanmax`, including errors and notes.

    Returns
    -------
    ndarray or scalar
        Like the results of `nanmax`.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast
    >>> bcast.nanmin(np.array([[1.0, np.nan], [3.0, 4.0]]), axis=0)
    array([1., 4.])
    """
    options = {"initial": initial, "where": where}
    return without_nan("min", a, axis, None, out, keepdims, 0, options, _numpys)


def _numpys(call: Reduction, options: dict[str, Any]) -> Any:
    """Have NumPy's function compute a call: classes that override it may lack some arguments."""
    if isinstance(call.out, np.ndarray):
        refuse_repeated(call.out, call.out)
    options = {key: value for key, value in options.items() if value is not NO_VALUE}
    axis = axis_for_numpy(call)
    if axis is not None:
        options["axis"] = axis
    if call.keepdims is not False:
        options["keepdims"] = call.keepdims
    if type(call.ddof) is not int or call.ddof != 0:
        options["ddof"] = call.ddof

    floats = _floats_of_package(call.a)
    return _called(call, call.a, options) if floats is None else _of_widened(call, floats, options)


def _called(call: Reduction, a: Any, options: dict[str, Any]) -> Any:
    """Call NumPy's function, with `dtype` and `out` if they are given."""
    for key, value in (("dtype", call.dtype), ("out", call.out)):
        if value is not None:
            options[key] = value
    return NUMPYS[call.name](a, **options)


# NumPy's functions do not recognise NaN in another package's dtype, so they get its floats as float64.


def _floats_of_package(a: Any) -> NDArray[Any] | None:
    """Return the user's `a` as an array if its items are another package's floats, or else None."""
    if is_handed_on(a):
        return None
    array: NDArray[Any] = as_base(as_operand("a", a))
    return array if is_of_package(array.dtype) and kind_of_sums(array.dtype) == "f" else None


def _of_widened(call: Reduction, floats: NDArray[Any], options: dict[str, Any]) -> Any:
    """Have NumPy's function compute a call with float64 in place of another package's floats; round the result."""
    wide, out = floats.astype(np.float64), call.out
    if out is not None and type(out) not in PLAIN:
        return _called(call, wide, options)

    if call.dtype is not None:
        wanted = dtype_argument(call.dtype)
    else:
        wanted = floats.dtype if out is None else out.dtype
    if not is_of_package(wanted):
        if out is None or not is_of_package(out.dtype):
            return _called(call, wide, options)
        options["dtype"] = wanted
    return rounded_into(out, NUMPYS[call.name](wide, **options), wanted)
