"""`sum`, `mean`, `var` and `std`: NumPy's reductions, on the core that sums gradients.

In: NumPy's arguments. Out: NumPy's result, except for its last bits. NumPy handles the calls for which the core has no
kernels.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bcast._api.converted import as_base, is_of_package
from bcast._api.reductions import (
    LONG_DOUBLES,
    SQUARES,
    Reduction,
    axis_for_numpy,
    reduced_axes,
    rounded_into,
    statistic,
)
from bcast._elementwise import choose, with_plain_bytes
from bcast._reduction import converted_terms, has_kernels, kind_of_sums
from bcast._rules.arguments import brief, dtype_argument, show
from bcast._rules.types import Axes, DType, Out
from bcast._runtime.arrays import refuse_repeated

FLOAT64 = np.dtype(np.float64)
PLAIN = (np.ndarray, np.memmap)
NO_VALUE = getattr(np, "_NoValue")  # noqa: B009 (stubs do not know it)

# NumPy's own, even under a patch
NUMPYS_WHERE = np.where
NUMPYS: dict[str, Callable[..., Any]] = {"sum": np.sum, "mean": np.mean, "var": np.var, "std": np.std}


def sum(
    a: ArrayLike,
    axis: Axes = None,
    dtype: DType = None,
    out: Out = None,
    keepdims: bool = False,
    *,
    exact: bool = False,
    **others: Any,
) -> Any:
    """Sum the items of an array along axes: `numpy.sum`, faster along short axes and with a bounded error.

    Parameters
    ----------
    a : array_like
        Numbers, of any layout.
    axis : int or tuple of int, optional
        The axes to sum along. The default is all.
    dtype : data-type, optional
        The dtype of the result. The default is the dtype of `out`, if given; otherwise the dtype of `a`, or int64 or
        uint64 for bools and narrower integers.
    out : ndarray, optional
        The array to write the result into, with the shape of the result. If its dtype is not `dtype`, the result is
        converted as `numpy.sum` converts it.
    keepdims : bool, optional
        Whether the result keeps the summed axes, with length 1.
    exact : bool, optional
        Whether floats and complex numbers are summed exactly, then rounded once, as in ``math.fsum``, for any terms,
        order and layout. The default has the error bounds of the notes, and takes less time.
    **others
        `where` and `initial`, as in `numpy.sum`. If the mask is an array of bools over real numbers, or if `exact`,
        bcast makes a copy in which the other items are 0. `numpy.sum` handles all other calls with masks. An `initial`
        value is a further term of an exact sum.

    Returns
    -------
    ndarray or scalar
        The sums; a scalar if no axis remains; or `out`, if given.

    Raises
    ------
    numpy.exceptions.AxisError, ValueError, TypeError
        If `axis` names an axis that `a` lacks, or one axis twice; if `out` has another shape; if `exact` is given for
        an `a` that `numpy.sum` has to sum. Exceptions of `numpy.sum` pass through.

    See Also
    --------
    unbroadcast : Sums to a shape; its notes on errors and bits also hold here.

    Notes
    -----
    Results differ from NumPy's in their last bits. Overflow and infinities of both signs give no warning, unless
    `numpy.sum` handles the call. The error bound does not depend on the layout and byte order of `a` and `out`, or on
    the spelling of the other arguments. `initial` is added to the sum, which may add half a unit to the error.

    `numpy.sum` handles data that no kernel sums: long double, whose sums in a narrower dtype are rounded last; objects;
    dates; floating-point numbers to an integer dtype; empty arrays and axes of length 1; subclasses of ndarray other
    than `numpy.memmap`, and other objects that override NumPy. If `a` is transposed, the last bits depend on whether
    `out` is given.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast
    >>> points = np.arange(6.0).reshape(2, 3)
    >>> bcast.sum(points, axis=1)
    array([ 3., 12.])
    >>> rows = np.full((2**22, 2), 0.1, np.float32)
    >>> bcast.sum(rows, axis=0) / 2**22  # NumPy's: 0.096
    array([0.1, 0.1], dtype=float32)
    >>> bcast.sum(np.array([1e16, 1.0, -1e16]), exact=True)
    np.float64(1.0)
    >>> bcast.sum(np.array([1e16, 1.0, 2.0]), exact=True, where=np.array([True, True, False]), initial=-1e16)
    np.float64(1.0)
    """
    if exact:
        others["exact"] = True
    elif others and "where" in others and dtype is None and out is None and _is_masked(a, keepdims, others):
        return sum(_cleared(a, others["where"]), axis, keepdims=keepdims)
    return statistic("sum", a, axis, dtype, out, keepdims, 0, others, _numpys)


def mean(
    a: ArrayLike,
    axis: Axes = None,
    dtype: DType = None,
    out: Out = None,
    keepdims: bool = False,
    *,
    exact: bool = False,
    **others: Any,
) -> Any:
    """Average the items of an array along axes: `numpy.mean`, faster along short axes and with a bounded error.

    Parameters
    ----------
    a, axis, out, keepdims
        As in `sum`, including errors.
    dtype : data-type, optional
        The dtype of the result. The default is the dtype of `out`, if given; otherwise the dtype of `a`, or float64
        for integers and bools.
    exact : bool, optional
        Whether exact means are rounded once, as in `sum`.
    **others
        `where`, as in `numpy.mean`. Masks are as in `sum`; if a mask leaves no item for a result, the result is NaN,
        with NumPy's warning.

    Returns
    -------
    ndarray or scalar
        Like the results of `sum`.

    Notes
    -----
    The sum has higher precision than the result; it is divided, then rounded once. Sums of float16 or float32 never
    overflow before the division. If all terms have the same sign, the error is at most 1 unit in the last place for
    float16 and float32, and 4 for float64. As in `sum`, overflow and infinities of both signs give no warning, unless
    `numpy.mean` handles the call. `numpy.mean` handles the calls that `sum` leaves to NumPy.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast
    >>> bcast.mean(np.array([[1, 2], [3, 5]]), axis=0)
    array([2. , 3.5])
    """
    if exact:
        others["exact"] = True
    elif others and "where" in others and dtype is None and out is None and _is_masked(a, keepdims, others):
        result = _mean_under_mask(a, axis, keepdims, others["where"])
        if result is not None:
            return result
    return statistic("mean", a, axis, dtype, out, keepdims, 0, others, _numpys)


def var(
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
    """Compute variances along axes: `numpy.var` without temporaries of the data's size.

    Parameters
    ----------
    a, axis, dtype, out, keepdims
        As in `mean`, including errors.
    ddof, correction : float, optional
        Sums of squares are divided by the number of items minus this number. The two names mean the same argument: give
        only one of them.
    exact : bool, optional
        Whether variances follow from exact sums of items and of their squares: each is the number nearest to the exact
        variance, for any items and any `ddof`. The default takes less time.
    **others
        `where` and `mean`, as in `numpy.var`. Calls with masks or means go to that function.

    Returns
    -------
    ndarray or scalar
        Like the results of `sum`.

    Notes
    -----
    The means are computed first, in float64, then the sums of the squared differences from them, in blocks that fit
    into a cache. Each square has three roundings, and their sum is compensated. The result is rounded once, to within 1
    unit in the last place for float16 and float32, and 4 for float64. The square of the error of the mean adds to this:
    a variance below 2**-50 of the squared mean is meaningless in float64. Integers beyond 2**53 are rounded to float64
    first, as in NumPy, and the bounds apply to the rounded numbers: the variance of ``[3 * 10**18, 3 * 10**18 + 9]`` is
    0. Variances of integers of 8 and 16 bits follow from exact sums of the items and of their squares. Along one axis
    of 2 to 4 items, everything is computed in one pass, within the same bounds.

    With `exact`, a result is the exact variance, rounded once, ties to even. Integers are not rounded first, and the
    variance of equal items is 0. An infinity or NaN among the items makes it NaN. Results depend neither on the order
    of the items nor on the layout or the threads.

    The variance of complex numbers is the sum of the variances of their real and imaginary parts; float64 has an error
    of 1 unit more there. If there are many results, they are computed in a separate array before `out` is written, so a
    call that fails does not leave it half written. `numpy.var` handles the calls that `sum` leaves to NumPy, and calls
    with complex numbers and a real `dtype`.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast
    >>> bcast.var(np.array([[1.0, 2.0], [3.0, 5.0]]), axis=0, ddof=1)
    array([2. , 4.5])
    >>> bcast.var([3 * 10**18, 3 * 10**18 + 9], exact=True)
    np.float64(20.25)
    """
    if exact:
        others["exact"] = True
    return statistic("var", a, axis, dtype, out, keepdims, given_ddof(ddof, correction), others, _numpys)


def std(
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
    """Compute standard deviations along axes: `numpy.std` without temporaries of the data's size.

    Parameters
    ----------
    a, axis, dtype, out, ddof, keepdims, correction, exact, **others
        As in `var`, including errors.

    Returns
    -------
    ndarray or scalar
        The square roots of the variances of `var`, taken before these are rounded. If `exact`, each is the number
        nearest to the exact deviation.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast
    >>> x = np.array([[1.0, 2.0], [3.0, 6.0]])
    >>> bcast.std(x, axis=0)
    array([1., 2.])
    >>> scaled = bcast.chain(x, (np.subtract, bcast.mean(x, axis=0)), (np.divide, bcast.std(x, axis=0)))
    >>> scaled.tolist()
    [[-1.0, -1.0], [1.0, 1.0]]
    """
    if exact:
        others["exact"] = True
    return statistic("std", a, axis, dtype, out, keepdims, given_ddof(ddof, correction), others, _numpys)


def _is_masked(a: Any, keepdims: Any, others: dict[str, Any]) -> bool:
    """Return whether the array and its mask are plain, and the items are real numbers.

    The caller sets the other items to 0 in a new array, which is faster than NumPy's loops over masks.
    """
    mask = others["where"]
    if type(a) is not np.ndarray or type(mask) is not np.ndarray or type(keepdims) is not bool or len(others) != 1:
        return False
    if mask.dtype != bool or a.dtype.kind not in "iuf" or not has_kernels(a) or a.size == 0:
        return False
    if not a.dtype.isnative or mask.ndim > a.ndim:
        return False
    lengths = zip(mask.shape[::-1], a.shape[::-1], strict=False)
    return all(length in (1, whole) for length, whole in lengths)


def _cleared(a: Any, mask: Any) -> Any:
    """Return a copy in which the items outside of the mask are 0; `_is_masked` is true."""
    chosen = choose(mask, a, 0, None)
    return NUMPYS_WHERE(mask, a, 0) if chosen is None else chosen


def _mean_under_mask(a: Any, axis: Any, keepdims: bool, mask: Any) -> Any:
    """Average the items in a mask; None if some result has no items: NumPy then warns."""
    shape = a.shape
    axes = reduced_axes(axis, shape)
    mask = mask.reshape((1,) * (a.ndim - mask.ndim) + mask.shape)
    counts = sum(mask, axes, keepdims=True)
    for at in axes:
        if mask.shape[at] == 1:
            counts = counts * shape[at]
    if not np.all(counts):
        return None

    total = sum(_cleared(a, mask), axes, FLOAT64, keepdims=True)
    result = np.asarray(total / counts)
    if a.dtype.kind == "f":
        result = result.astype(a.dtype, copy=False)
    if not keepdims:
        result = result.reshape([length for at, length in enumerate(result.shape) if at not in axes])
    return result if result.ndim else result[()]


def given_ddof(ddof: Any, correction: Any) -> Any:
    """Return the value of `ddof` or `correction`, two names for one argument."""
    if correction is NO_VALUE:  # NumPy's default, which callers may pass on
        correction = None
    if correction is not None:
        if ddof:
            raise ValueError(f"`correction` expected None if `ddof` is given, got {show(correction)}")
        ddof = correction
    if type(ddof) is not int and not hasattr(ddof, "__rsub__"):
        raise TypeError(f"`{'ddof' if correction is None else 'correction'}` expected a number, got {show(ddof)}")
    return ddof


def _numpys(call: Reduction, options: dict[str, Any]) -> Any:
    """Have NumPy's function compute a call; `options` are the arguments that a `Reduction` does not have."""
    if isinstance(call.out, np.ndarray):
        refuse_repeated(call.out, call.out)
    _add_given(call, options)
    if type(call.a) in PLAIN and (call.out is None or type(call.out) in PLAIN):
        return _of_plain_arrays(call, options)
    if call.dtype is not None:
        options["dtype"] = call.dtype
    return _called(call, call.a, options)


def _add_given(call: Reduction, options: dict[str, Any]) -> None:
    """Add the arguments that differ from defaults to the options: classes that override NumPy may lack others."""
    axis = axis_for_numpy(call)
    if call.keepdims is not False:
        options["keepdims"] = bool(call.keepdims) if isinstance(call.keepdims, np.bool) else call.keepdims
    if axis is not None:
        options["axis"] = axis
    if type(call.ddof) is not int or call.ddof != 0:
        options["ddof"] = call.ddof


def _of_plain_arrays(call: Reduction, options: dict[str, Any]) -> Any:
    """Have NumPy's function compute a call with arrays of the base class; round its result once."""
    dtype, out = call.dtype, call.out
    wanted = None if dtype is None else dtype_argument(dtype)
    precise = _precise_dtype(call.name, call.a.dtype, wanted, out)
    if dtype is not None:
        options["dtype"] = dtype if precise is None else precise
    if precise is not None:
        return rounded_into(out, NUMPYS[call.name](call.a, **options), dtype)

    a = with_plain_bytes(as_base(call.a)) if _has_casts_of_package(wanted, out) else call.a
    if out is None or not call.has_squares:
        return _called(call, a, options)
    # NumPy writes the sums to `out` before it divides them, and may fail in between.
    written = np.empty_like(out, subok=False)
    return rounded_into(out, NUMPYS[call.name](a, out=written, **options), None)


def _called(call: Reduction, a: Any, options: dict[str, Any]) -> Any:
    """Call NumPy's function, with `out` if there is one."""
    function = NUMPYS[call.name]
    return function(a, **options) if call.out is None else function(a, out=call.out, **options)


def _has_casts_of_package(wanted: np.dtype[Any] | None, out: Any) -> bool:
    """Return whether the call runs casts of another package."""
    if wanted is not None and is_of_package(wanted):
        return True
    return isinstance(out, np.ndarray) and is_of_package(out.dtype)


def _precise_dtype(name: str, own: np.dtype[Any], wanted: np.dtype[Any] | None, out: Any) -> np.dtype[Any] | None:
    """Return the long double in which NumPy computes a result, before it is rounded to `wanted` and into `out`.

    No kernel computes these: long doubles, sums in long double, and variances of complex numbers in real dtypes. None
    means that NumPy's function gets `wanted` and `out`. In the other cases, it would sum in the narrower one.
    """
    if not _is_rounded_after(name, own, wanted, out):
        return None
    if not _is_number(own) or not (wanted is None or _is_native_float(wanted)):
        return None
    if out is not None:
        if not _is_real_or_complex(out.dtype):
            return None
        if name == "std" and out.dtype.kind in "iu":
            raise TypeError(f"`out` expected a floating-point dtype, got {brief(out.dtype)}")
    is_complex = (own if wanted is None else wanted).kind == "c"
    return np.dtype(np.clongdouble if is_complex else np.longdouble)


def _is_rounded_after(name: str, own: np.dtype[Any], wanted: np.dtype[Any] | None, out: Any) -> bool:
    """Return whether a result is computed in a dtype other than its own, one of them long double or complex."""
    if wanted is None:
        return out is not None and own.num in LONG_DOUBLES
    if wanted.num in LONG_DOUBLES:
        return out is not None
    is_to_real = own.kind == "c" and wanted.kind != "c" and name in SQUARES
    return is_to_real or own.num in LONG_DOUBLES


def _is_native_float(dtype: np.dtype[Any]) -> bool:
    """Return whether a dtype has floats or complex numbers, in native byte order."""
    return dtype.isnative and _is_float(dtype)


def _is_real_or_complex(dtype: np.dtype[Any]) -> bool:
    """Return whether a dtype has numbers other than bools."""
    return _is_float(dtype) or dtype.kind in "iu"


def _is_number(dtype: np.dtype[Any]) -> bool:
    """Return whether NumPy converts items of a dtype to long double without loss."""
    return dtype.kind in "biufc" or kind_of_sums(dtype) != "" or converted_terms(dtype) is not None


def _is_float(dtype: np.dtype[Any]) -> bool:
    """Return whether a dtype, of any package, has floats or complex numbers."""
    return dtype.kind in "fc" or kind_of_sums(dtype) == "f"
