# cython: auto_pickle=False
"""NumPy's reductions other than statistics: `max`, `min`, `minmax`, `prod`, `argmax`, `argmin`, `any` and `all`.

This module also has the code that they share with the statistics, which reads and runs a call of a reduction. `sum`,
`mean`, `var` and `std` themselves are in `_api/statistics.py`.

In: the arguments of NumPy's functions. Out: NumPy's results, except for the last bits of sums. NumPy handles the calls
for which the core has no kernels.

A call becomes a `Reduction`. `read_call` and `read_axes` note in it the meaning of the arguments.
"""

import operator
import warnings
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
from numpy import memmap, ndarray
from numpy.typing import ArrayLike, NDArray

from bcast._api.adjoints import set_means_of_nothing, wide_dtype, write_exact_sums
from bcast._api.converted import as_base, as_operand, is_handed_on, is_of_package
from bcast._api.exact_squares import spreads
from bcast._elementwise import choose, with_plain_bytes
from bcast._kernel import replicate
from bcast._reduce.search import find_positions_onto, find_truths_onto, is_searched
from bcast._reduce.vectors import find_statistics_onto
from bcast._reduction import (
    ALL,
    ANY,
    GREATEST,
    GREATEST_NUMBER,
    LEAST,
    LEAST_NUMBER,
    PRODUCT,
    SCALED_PRODUCT,
    average_onto,
    converted_terms,
    find_extremes_onto,
    has_extremes,
    has_kernels,
    kind_of_sums,
    reduce_onto,
    spread_onto,
    sum_numbers_onto,
    sum_onto,
)
from bcast._rules.alignment import Alignment, aligned
from bcast._rules.arguments import Shape, axes_argument, brief, dtype_argument, place_of, show
from bcast._rules.types import Axes, DType, Out
from bcast._runtime.arrays import (
    dtype_of,
    has_references,
    is_contiguous,
    reduced_shape,
    refuse_repeated,
    reshaped,
    result_array,
    rounded_to,
    shape_of,
    size_of,
)
from bcast._runtime.core import DECIDING_BYTES, DECIDING_GROWTH, L2, MANY_FACTORS, PASSES_BLOCK_BYTES, SEARCHED_BYTES
from bcast._runtime.errors import quietly

# the numbers of `_reduce/simd/sum.h`
NUMBERS_SQUARE, NUMBER, NUMBERS_COUNT = range(1, 4)
SHORT_SUM, SHORT_MEAN, SHORT_SPREAD, SHORT_MEAN_AND_SPREAD = range(4)  # the numbers of `_reduce/simd/short_vectors.h`
BOOL, INT64, UINT64 = np.dtype(bool), np.dtype(np.int64), np.dtype(np.uint64)
FLOAT32, FLOAT64, COMPLEX128 = np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.complex128)
ZERO = np.zeros((), np.float64)
LONG_DOUBLES = (np.dtype(np.longdouble).num, np.dtype(np.clongdouble).num)
SQUARES = ("var", "std")
READ_AGAIN = (tuple, list, ndarray)  # axes that can be read several times
NO_VALUE = getattr(np, "_NoValue")  # noqa: B009 (stubs do not know it)
NOTHING = object()  # an `initial` of None: in a `Reduction`, that says 0


NUMPYS_WHERE = np.where  # even under a patch
# NumPy's functions, even under a patch; an axis of None, their default, is not passed on
NUMPYS: dict[str, Callable[..., Any]] = {
    "max": np.max,
    "min": np.min,
    "prod": np.prod,
    "argmax": np.argmax,
    "argmin": np.argmin,
    "any": np.any,
    "all": np.all,
}


def max(
    a: ArrayLike,
    axis: Axes = None,
    out: Out = None,
    keepdims: bool = False,
    initial: Any = NO_VALUE,
    where: Any = NO_VALUE,
) -> Any:
    """Find the largest items of an array along axes: `numpy.max`, faster along short axes.

    Parameters
    ----------
    a : array_like
        Numbers, of any layout.
    axis : int or tuple of int, optional
        The axes to reduce. The default is all.
    out : ndarray, optional
        The array to write the result into, with the shape of the result. It may overlap `a`: the result is as if `a`
        had been copied first.
    keepdims : bool, optional
        Whether the result keeps the reduced axes, with length 1.
    initial, where
        As in `numpy.max`. Calls with either go to that function.

    Returns
    -------
    ndarray or scalar
        The largest items, of `a`'s dtype; a scalar if no axis remains; or `out`, if given.

    Raises
    ------
    numpy.exceptions.AxisError, ValueError, TypeError
        If `axis` names an axis that `a` lacks, or one axis twice; if `out` has another shape; if there is no item to
        choose from. Exceptions of `numpy.max` pass through.

    See Also
    --------
    min, any, all

    Notes
    -----
    If any item is NaN, the result is NaN, with the sign and payload of any of them; for 16-bit floats, of the first.
    Between 0.0 and -0.0, either may be the result.

    `numpy.max` handles data that no kernel reads: complex numbers, long double, objects, dates and strings; another
    byte order; an `out` of another dtype; empty arrays and axes of length 1; subclasses of ndarray other than
    `numpy.memmap`, and other objects that override NumPy.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast
    >>> points = np.array([[1.0, 5.0, 2.0], [7.0, 3.0, np.nan]])
    >>> bcast.max(points, axis=1)
    array([ 5., nan])
    >>> bcast.max(points[:, :2], axis=0, keepdims=True)
    array([[7., 5.]])
    """
    return _found(reduction("max", a, axis, out, keepdims), initial, where)


def min(
    a: ArrayLike,
    axis: Axes = None,
    out: Out = None,
    keepdims: bool = False,
    initial: Any = NO_VALUE,
    where: Any = NO_VALUE,
) -> Any:
    """Find the smallest items of an array along axes: `numpy.min`, faster along short axes.

    Parameters
    ----------
    a, axis, out, keepdims, initial, where
        As in `max`, including errors and notes.

    Returns
    -------
    ndarray or scalar
        The smallest items, as `max` returns the largest.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast
    >>> picture = np.array([[[9, 4, 7], [1, 8, 8]]], np.uint8)
    >>> bcast.min(picture, axis=-1)
    array([[4, 1]], dtype=uint8)
    >>> bcast.min(picture)
    np.uint8(1)
    """
    return _found(reduction("min", a, axis, out, keepdims), initial, where)


def minmax(
    a: ArrayLike, axis: Axes = None, out: tuple[NDArray[Any], NDArray[Any]] | None = None, keepdims: bool = False
) -> Any:
    """Find the smallest and the largest items of an array along axes, reading it once.

    Parameters
    ----------
    a, axis, keepdims
        As in `max`.
    out : pair of ndarray, optional
        The arrays to write the results into. They must not overlap, and ``"same_kind"`` casting must allow their
        dtypes. None means a new array.

    Returns
    -------
    pair of ndarray or scalar
        The results of `min` and `max`.

    Raises
    ------
    numpy.exceptions.AxisError, ValueError, TypeError
        As in `max`; or if `out` is not such a pair.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast
    >>> points = np.array([[1.0, 5.0], [7.0, 3.0], [4.0, 4.0]])
    >>> low, high = bcast.minmax(points, axis=0)  # the bounds of some points
    >>> low, high
    (array([1., 3.]), array([7., 5.]))
    """
    return _extremes(reduction("min", a, axis, None, keepdims), out)


def prod(
    a: ArrayLike,
    axis: Axes = None,
    dtype: DType = None,
    out: Out = None,
    keepdims: bool = False,
    initial: Any = NO_VALUE,
    where: Any = NO_VALUE,
) -> Any:
    """Multiply the items of an array along axes: `numpy.prod`, faster along short axes.

    Parameters
    ----------
    a, axis, out, keepdims
        As in `max`.
    dtype : data-type, optional
        The dtype of the result. The default is the dtype of `a`, or int64 or uint64 for bools and narrower integers.
        `numpy.prod` handles calls with another dtype.
    initial, where
        As in `numpy.prod`. Calls with either go to that function.

    Returns
    -------
    ndarray or scalar
        The products; a scalar if no axis remains; or `out`, if given.

    Raises
    ------
    numpy.exceptions.AxisError, ValueError, TypeError
        As in `max`, except for empty axes, whose product is 1. Exceptions of `numpy.prod` pass through.

    Notes
    -----
    Integers wrap around. Floats are multiplied in float64, in a different order from NumPy's, and rounded once at the
    end. From 128 factors on, and if a product is infinite, NaN or 0, exponents are kept apart, so an intermediate
    overflow does not matter. Intermediate products of fewer factors that are below the smallest normal number lose
    digits, as in NumPy. Overflow gives no warning. Items in the other byte order are multiplied by NumPy.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast
    >>> bcast.prod(np.array([[1, 2, 3], [4, 5, 6]]), axis=1)
    array([  6, 120])
    """
    call = reduction("prod", a, axis, out, keepdims)
    call.dtype = dtype
    return _found(call, initial, where)


def argmax(a: ArrayLike, axis: Any = None, out: Out = None, *, keepdims: Any = NO_VALUE) -> Any:
    """Find the positions of the largest items along an axis: `numpy.argmax`, faster along short axes.

    Parameters
    ----------
    a : array_like
        Numbers, of any layout.
    axis : int, optional
        The axis to search along. The default is the whole array, in C order.
    out : ndarray, optional
        The array to write the result into, with the shape of the result and dtype intp.
    keepdims : bool, optional
        Whether the result keeps the reduced axis, with length 1.

    Returns
    -------
    ndarray of intp or scalar
        The position of the first of the largest items, or of the first NaN if there is one.

    Raises
    ------
    numpy.exceptions.AxisError, ValueError, TypeError
        If `a` has no such axis; if there is no item to choose from; if `out` has another shape or dtype. Exceptions of
        `numpy.argmax` pass through.

    See Also
    --------
    argmin, max

    Notes
    -----
    `numpy.argmax` handles the calls that `max` leaves to NumPy.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast
    >>> scores = np.array([[0.1, 0.7, 0.2], [0.5, 0.1, 0.5]])
    >>> bcast.argmax(scores, axis=1)
    array([1, 0])
    """
    keeps = False if keepdims is NO_VALUE else keepdims
    return _found(reduction("argmax", a, axis, out, keeps), NO_VALUE, NO_VALUE)


def argmin(a: ArrayLike, axis: Any = None, out: Out = None, *, keepdims: Any = NO_VALUE) -> Any:
    """Find the positions of the smallest items along an axis: `numpy.argmin`, faster along short axes.

    Parameters
    ----------
    a, axis, out, keepdims
        As in `argmax`, including errors and notes.

    Returns
    -------
    ndarray of intp or scalar
        The position of the first of the smallest items, or of the first NaN if there is one.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast
    >>> distances = np.array([[3.0, 1.0], [0.5, 2.0]])
    >>> bcast.argmin(distances, axis=-1)  # the nearest of two
    array([1, 0])
    """
    keeps = False if keepdims is NO_VALUE else keepdims
    return _found(reduction("argmin", a, axis, out, keeps), NO_VALUE, NO_VALUE)


def any(a: ArrayLike, axis: Axes = None, out: Out = None, keepdims: bool = False, *, where: Any = NO_VALUE) -> Any:
    """Test whether any item along axes is true: `numpy.any`, faster along short axes.

    Parameters
    ----------
    a : array_like
        Bools or numbers, of any layout. A number is true if it is not zero; NaN is true.
    axis, out, keepdims
        As in `max`.
    where
        As in `numpy.any`. Calls with it go to that function.

    Returns
    -------
    ndarray or scalar
        Bools; a scalar if no axis remains; or `out`, if given.

    Raises
    ------
    numpy.exceptions.AxisError, ValueError, TypeError
        As in `max`, except for empty axes: nothing is true there. Exceptions of `numpy.any` pass through.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast
    >>> bcast.any(np.array([[0, 0], [0, 3]]), axis=1)
    array([False,  True])
    """
    return _found(reduction("any", a, axis, out, keepdims), NO_VALUE, where)


def all(a: ArrayLike, axis: Axes = None, out: Out = None, keepdims: bool = False, *, where: Any = NO_VALUE) -> Any:
    """Test whether all items along axes are true: `numpy.all`, faster along short axes.

    Parameters
    ----------
    a, axis, out, keepdims, where
        As in `any`, including errors; all items of an empty axis are true.

    Returns
    -------
    ndarray or scalar
        Like the results of `any`.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast
    >>> picture = np.array([[[9, 4, 7], [1, 8, 8]]], np.uint8)
    >>> bcast.all(picture == np.array([1, 8, 8], np.uint8), axis=-1)  # where the picture has a colour
    array([[False,  True]])
    """
    return _found(reduction("all", a, axis, out, keepdims), NO_VALUE, where)


# How a call is read.


class Reduction:
    """A call of one of NumPy's reductions: its arguments as given, and their meaning."""

    name: str  # the name of NumPy's function
    a: Any
    axis: Any
    dtype: Any  # the dtype of sums and statistics; None by default
    out: Any
    keepdims: Any
    ddof: Any  # the `ddof` of variances; otherwise 0
    initial: Any  # the initial value of sums; None for the usual 0, and NOTHING if the first term replaces it
    skips_nan: bool  # whether sums and statistics ignore NaN
    has_squares: bool  # whether it is a variance or a standard deviation
    is_exact: bool  # whether sums or means are exact, and rounded once
    start: Any  # one more term of each exact sum
    divisors: Any  # the divisors of exact means: float64 of shape `source`; None if all have `count`
    has_means: bool  # whether the caller wants means, too

    # `read_call` sets these.
    array: NDArray[Any]  # `a`
    keeps: bool  # whether reduced axes stay in the result, with length 1

    # `read_axes` sets these.
    axes: Shape  # the reduced ones, counted from 0
    lengths: Shape  # the lengths of the data's axes
    source: Shape  # the same, but 1 for each reduced axis
    shape: Shape  # the shape of the result
    count: int  # the number of terms of one result

    # The functions for variances set this, if wanted.
    means: NDArray[Any]  # means in the dtype and the shape of the result

    # The functions that ignore NaN set this.
    lacks_terms: bool  # whether some result has no terms, or no degree of freedom


def reduction(name: str, a: Any, axis: Any, out: Any, keepdims: Any) -> Reduction:
    """Record the arguments that all of NumPy's reductions have."""
    call = Reduction.__new__(Reduction)
    call.name = name
    call.a = a
    call.axis = axis
    call.out = out
    call.keepdims = keepdims
    call.ddof = 0
    call.dtype = None
    call.skips_nan = False
    call.has_squares = False
    call.is_exact = False
    call.start = 0
    call.divisors = None
    call.has_means = False
    call.lacks_terms = False
    return call


def read_call(call: Reduction) -> bool:
    """Read the data and `keepdims`; return whether the classes of the arguments let the core do the call."""
    array = call.a if type(call.a) is ndarray else _array_of(call.a)
    out = call.out
    if array is None or not (out is None or type(out) is ndarray or type(out) is memmap):
        return False
    keeps = call.keepdims if type(call.keepdims) is bool else _flag_of(call.keepdims)
    if keeps is None:
        return False

    if not _can_be_read_again(call.axis):  # an iterator yields its items only once
        call.axis = axes_argument(call.axis)
    call.array = array
    call.keeps = keeps
    return True


def read_axes(call: Reduction) -> bool:
    """Find the reduced axes and the shape of the result; return whether there are terms to combine."""
    shape = shape_of(call.array)
    if not shape:
        return False
    call.axes = reduced_axes(call.axis, shape)
    call.lengths = shape

    count = 1
    for at in call.axes:
        count *= shape[at]
    call.count = count

    call.source = reduced_shape(shape, call.axes, True)
    call.shape = call.source if call.keeps else reduced_shape(shape, call.axes, False)
    return count > 1 and size_of(call.array) > 0


def _array_of(a: Any) -> NDArray[Any] | None:
    """Return the user's `a` as an array of the base class; None if its class overrides NumPy, or may do so."""
    return None if is_handed_on(a) else as_base(as_operand("a", a))


def _can_be_read_again(axis: Any) -> bool:
    """Return whether the user's axes can be read several times, unlike an iterator."""
    return type(axis) is int or axis is None or type(axis) in READ_AGAIN or isinstance(axis, np.generic)


def _flag_of(value: Any) -> bool | None:
    """Return the truth of a value for `keepdims`; None if NumPy refuses it."""
    if isinstance(value, np.bool):
        return bool(value)
    try:
        return value is not NO_VALUE and operator.index(value) != 0
    except TypeError:
        return None


def reduced_axes(axis: Any, shape: Shape) -> Shape:
    """Return the axes of `shape` that the user's `axis` means, counted from 0."""
    if type(axis) is int:  # as in nearly all small calls
        return (place_of(axis, shape),)
    if axis is None:
        return tuple(range(len(shape)))
    axes: list[int] = []
    given: Any = axes_argument(axis)
    for each in (given,) if type(given) is int else given:
        at = place_of(each, shape)
        if at in axes:
            raise ValueError(f"`axis` expected distinct axes, got {show(axis)}")
        axes.append(at)
    return tuple(axes)


def is_everywhere(where: Any) -> bool:
    """Return whether a mask obviously selects all items."""
    return where is NO_VALUE or where is True or where is np.True_


def are_usual(name: str, initial: Any, where: Any) -> bool:
    """Return whether a reduction is given neither an `initial` nor a mask."""
    return initial is NO_VALUE and is_everywhere(where) and not needs_initial(name, where)


def needs_initial(name: str, where: Any) -> bool:
    """Return whether NumPy refuses a mask without an `initial`: for extremes, even one that selects all items."""
    return where is np.True_ and (name == "max" or name == "min")


def axis_for_numpy(call: Reduction) -> Any:
    """Return `axis` as NumPy's functions take it; unchanged if the class of the data overrides NumPy."""
    axis = call.axis
    if axis is None or type(axis) is int or type(axis) is tuple or is_handed_on(call.a):
        return axis
    return axes_argument(axis)


# As in NumPy, the axes of a new result have the same order in memory as the data's.


def _order_of_result(call: Reduction, out: Any) -> list[int] | None:
    """Return the order of the data's axes in memory, for a new result; None for C order, or if there is an `out`."""
    return _order_in_memory(call.array) if out is None and len(call.shape) > 1 else None


def _order_in_memory(array: NDArray[Any]) -> list[int] | None:
    """Return the axes of an array in the order of its memory, as NumPy's iterators sort them; None for C order."""
    strides: Any = array.strides
    if 1 in array.shape:
        strides = _without_unit_axes(array.shape, strides)
    order: list[int] = []  # the innermost axis first
    is_other = False
    for at in range(len(strides) - 1, -1, -1):
        place = i = len(order)
        while i > 0 and not 0 < abs(strides[order[i - 1]]) <= abs(strides[at]):
            i -= 1
            place = i if strides[at] and strides[order[i]] else place
        is_other |= place < len(order)
        order.insert(place, at)
    return order[::-1] if is_other else None


def _without_unit_axes(shape: Shape, strides: Any) -> list[int]:
    """Return strides with 0 for axes of length 1: as in NumPy's iterators, these do not affect the order."""
    found: list[int] = []
    for at in range(len(shape)):
        found.append(0 if shape[at] == 1 else strides[at])
    return found


def _transposed(call: Reduction, order: list[int]) -> Reduction:
    """Return the same reduction of the data with its axes in another order. The result keeps all axes."""
    other = _of(call, call.array.transpose(order))
    other.source = tuple(map(call.source.__getitem__, order))
    other.shape = other.source
    if call.divisors is not None:
        other.divisors = call.divisors.transpose(order)
    return other


def _transposed_back(call: Reduction, order: list[int], result: NDArray[Any]) -> NDArray[Any]:
    """Return the result of a call, given the result of its `_transposed` reduction."""
    places = list(map(order.index, range(len(order))))
    result = result.transpose(places)
    return result if call.keeps else result.squeeze(call.axes)


def _of(call: Reduction, array: NDArray[Any]) -> Reduction:
    """Return the same reduction of another array of the same shape."""
    other = reduction(call.name, call.a, call.axis, call.out, call.keepdims)
    other.ddof = call.ddof
    other.has_squares = call.has_squares
    other.skips_nan = call.skips_nan
    other.is_exact = call.is_exact
    other.start = call.start
    other.divisors = call.divisors
    other.has_means = call.has_means
    other.array = array
    other.keeps = call.keeps
    other.axes = call.axes
    other.lengths = shape_of(array)
    other.source = call.source
    other.shape = call.shape
    other.count = call.count
    return other


# Functions other than statistics: one operation combines all terms, or finds a position.


def _found(call: Reduction, initial: Any, where: Any) -> Any:
    """Run a call of a function of `NUMPYS`."""
    found = None
    if are_usual(call.name, initial, where):
        found = found_by_core(call)
    return _numpys(call, initial, where) if found is None else found


def found_by_core(call: Reduction) -> Any:
    """Return the result of a call of a function in `NUMPYS`, without further options; None to leave it to NumPy."""
    # A line for each function: a table would need a lookup in each call.
    name = call.name
    if name == "argmax" or name == "argmin":
        return _position_by_core(call)
    if not _is_compared(call):
        return None
    if name == "max" or name == "min":
        return _extreme_by_core(call, GREATEST if name == "max" else LEAST)
    if name == "any" or name == "all":
        return _truth_by_core(call, ANY if name == "any" else ALL)
    if name == "prod":
        return _product_by_core(call)
    raise ValueError(f"expected a function of NUMPYS, got {name}")


def _extreme_by_core(call: Reduction, operation: int) -> Any:
    """Find extremes with the core; return None to leave the call to NumPy."""
    wanted = dtype_of(call.array)
    if wanted.num == BOOL.num:
        return _truth_by_core(call, ANY if operation == GREATEST else ALL)
    if _are_halves(wanted):
        return _extreme_of_halves(call, operation, wanted)
    return _combined_as(call, operation, wanted)


def _extreme_of_halves(call: Reduction, operation: int, wanted: np.dtype[Any]) -> Any:
    """Find extremes of floats of 16 bits. A NaN is the first one among the terms, whose bits kernels lose."""
    out = call.out
    if (out is not None and dtype_of(out) != wanted) or not read_axes(call):
        return None
    found = _combined(call, operation, wanted, None)
    if _has_nan(found):
        found = np.asarray(_with_first_nans(call, found))
    if out is not None:
        result_array(out, found, shape_of(found), "a", wanted)
        np.copyto(out, found)
    return _out_or_new(call, found)


def _are_halves(dtype: np.dtype[Any]) -> bool:
    """Return whether items are floats of 16 bits."""
    return dtype.itemsize == 2 and dtype.kind not in "iu"


def _with_first_nans(call: Reduction, found: Any) -> Any:
    """Replace each NaN among the results with the first NaN of its terms, at the position that `argmax` finds."""
    terms = _table_of_terms(call)
    first = np.expand_dims(np.asarray(argmax(terms, -1)), -1)
    results = np.asarray(found)  # keeps their order in memory
    nans = np.take_along_axis(terms, first, -1).reshape(results.shape)
    np.copyto(results, nans, where=np.isnan(results))
    return results[()]


def _table_of_terms(call: Reduction) -> NDArray[Any]:
    """Return the array as a table: a row has the terms of one result, and results are in C order."""
    axes: list[int] = []
    for at in range(len(call.source)):  # `call.axes` differ if the array has been transposed
        if call.source[at] == 1:
            axes.append(at)
    return np.moveaxis(call.array, axes, range(-len(axes), 0)).reshape(-1, call.count)


def _combined_as(call: Reduction, operation: int, wanted: np.dtype[Any]) -> Any:
    """Combine terms by an operation into results of a dtype; return None to leave the call to NumPy."""
    if call.out is not None and dtype_of(call.out) != wanted:
        return None
    if not read_axes(call):
        return None
    return _out_or_new(call, _combined(call, operation, wanted, call.out))


def _out_or_new(call: Reduction, found: NDArray[Any]) -> Any:
    """Return the results: in `out`, if given; otherwise as a new array, or a scalar if it has no axes."""
    if call.out is not None:
        return call.out
    return found if found.ndim else found[()]


def _extremes(call: Reduction, out: Any) -> Any:
    """Run a call of `minmax`."""
    check_pair(out)
    found = None
    if _is_compared(call) and read_axes(call):
        if dtype_of(call.array).num == BOOL.num and (_has_long_runs(call) or _is_worth_parts(call)):
            # The first bools often decide one of the extremes, which then needs no pass.
            return into_pair(out, (_truth_by_core(call, ALL), _truth_by_core(call, ANY)))
        keeps_nan = not _are_halves(dtype_of(call.array))
        if keeps_nan and out is not None and _are_of_dtype(out, dtype_of(call.array)):
            _write_extremes(call, out[0], out[1])
            return out
        found = _extremes_by_core(call)
        if not keeps_nan and _has_nan(np.asarray(found[0])):  # the other one has NaN at the same positions
            found = _with_first_nans(call, found[0]), _with_first_nans(call, found[1])
    if found is None:
        found = (min(call.a, call.axis, None, call.keepdims), max(call.a, call.axis, None, call.keepdims))
    return into_pair(out, found)


def _are_of_dtype(pair: Any, dtype: np.dtype[Any]) -> bool:
    """Return whether both parts of a pair are arrays of a dtype."""
    first, second = pair
    return first is not None and second is not None and dtype_of(first) == dtype == dtype_of(second)


def check_pair(out: Any) -> None:
    """Refuse an `out` that is not a pair of arrays without common memory; each of them may be None."""
    if out is None:
        return
    if type(out) is not tuple or len(out) != 2:
        raise TypeError(f"`out` expected a pair of arrays, got {show(out)}")
    first, second = out
    for each in out:
        if each is not None and not isinstance(each, ndarray):
            raise TypeError(f"`out` expected a pair of arrays, or None instead of either, got {show(out)}")
    if first is None or second is None or not np.may_share_memory(first, second):
        return
    if np.shares_memory(first, second):
        raise ValueError("`out` expected two arrays that share no memory, got two that do")


def into_pair(out: Any, found: Any) -> Any:
    """Convert two results into the arrays of `out`, and return these; where `out` has None, return the result.

    All that may fail or warn comes before the first write.
    """
    if out is None:
        return found
    first, second = out
    low, high = _rounded_for(first, found[0]), _rounded_for(second, found[1])
    if first is not None:
        np.copyto(first, low)
    if second is not None:
        np.copyto(second, high)
    if first is not None and second is not None:
        return out
    return (found[0] if first is None else first), (found[1] if second is None else second)


def _rounded_for(target: Any, result: Any) -> Any:
    """Convert a result to the dtype of `target`, and check that it fits; return it unchanged if `target` is None."""
    if target is None:
        return result
    array, to = np.asarray(result), dtype_of(target)
    if not np.can_cast(array.dtype, to, "same_kind"):
        raise TypeError(f"`out` expected dtypes to which {brief(array.dtype)} can be cast, got {brief(to)}")
    result_array(target, array, shape_of(array), "a", to)
    return rounded_to(array, to)


def _extremes_by_core(call: Reduction) -> Any:
    """Find both extremes with the core."""
    order = _order_of_result(call, None)
    if order is not None:
        low, high = _extremes_by_core(_transposed(call, order))
        return _transposed_back(call, order, low), _transposed_back(call, order, high)

    low, high = _write_extremes(call, None, None)
    return (low, high) if call.shape else (low[()], high[()])


def _write_extremes(call: Reduction, first: Any, second: Any) -> Any:
    """Write both extremes into two arrays, new ones if None, and return these."""
    array = call.array
    dtype = dtype_of(array)
    low = result_array(first, array, call.shape, "a", dtype)
    high = result_array(second, array, call.shape, "a", dtype)
    find_extremes_onto(array, aligned(call.lengths, call.source), low, high)
    return low, high


def _product_by_core(call: Reduction) -> Any:
    """Multiply items with the core; return None to leave the call to NumPy."""
    own = dtype_of(call.array)
    wanted = _dtype_of_terms("sum", own)  # NumPy has the same rule for sums and products
    if wanted is not None and call.dtype is not None:
        given = dtype_argument(call.dtype)  # equal dtypes may differ in name: the result has the user's
        wanted = given if given == wanted else None
    if wanted is None:
        return None
    return _product_of_floats(call, wanted) if wanted.kind not in "iu" else _combined_as(call, PRODUCT, wanted)


def _product_of_floats(call: Reduction, wanted: np.dtype[Any]) -> Any:
    """Multiply floats with the core: many as numbers with exponents; few, if the product is 0, infinite or NaN.

    All products are complete before the first write to `out`, which may overlap the data.
    """
    out = call.out
    if (out is not None and dtype_of(out) != wanted) or not read_axes(call):
        return None
    found = _products(call, wanted)
    if out is not None:
        result_array(out, found, shape_of(found), "a", wanted)
        np.copyto(out, found)
    return _out_or_new(call, found)


def _products(call: Reduction, wanted: np.dtype[Any]) -> Any:
    """Return a new array of products of floats."""
    if call.count >= MANY_FACTORS:
        # A narrow result would hide an overflow of its own; float64 does not.
        found = _combined(call, SCALED_PRODUCT, FLOAT64 if wanted.itemsize < 8 else wanted, None)
        return found if dtype_of(found) is wanted else quietly(rounded_to, found, wanted)

    found = _combined(call, PRODUCT, wanted, None)
    is_sure = dtype_of(call.array) is FLOAT32 and call.count <= 7  # float64 holds such products
    if not is_sure and has_extremes(found if is_contiguous(found) else found.ravel("K")):
        is_right = np.isfinite(found) & (found != 0)
        np.copyto(found, _combined(call, SCALED_PRODUCT, wanted, None), where=~is_right)
    return found


def _position_by_core(call: Reduction) -> Any:
    """Find positions with the core; return None to leave the call to NumPy."""
    is_place = call.axis is None or type(call.axis) is int
    if not is_place or not _is_compared(call) or size_of(call.array) == 0:
        return None
    read_axes(call)
    array, out = call.array, call.out
    if out is not None and not _is_of_positions(out, call.shape):
        return None

    result = result_array(out, array, call.shape, "a", INT64)
    axis = 0 if call.axis is None else call.axes[0]
    array = _searchable(array, axis, call.axis is None)
    if out is not None and not _takes_positions(out, array):
        result = np.empty(call.shape, INT64)
    find_positions_onto(array, axis, result, call.name == "argmax")
    if out is not None and result is not out:
        np.copyto(out, result)
    return _out_or_new(call, result)


def _searchable(array: NDArray[Any], axis: int, is_flat: bool) -> Any:
    """Return the items in a layout that the core searches along an axis; as one axis if the array counts as flat."""
    if is_flat and array.ndim > 1:
        return reshaped(array if is_contiguous(array) else _contiguous(array), (size_of(array),))
    return array if is_searched(array, axis) else _contiguous(array)


def _is_of_positions(out: NDArray[Any], shape: Shape) -> bool:
    """Return whether an array has the dtype and the shape of positions. If not, NumPy converts them."""
    return bool(dtype_of(out) == INT64 and shape_of(out) == shape)


def _takes_positions(out: NDArray[Any], array: NDArray[Any]) -> bool:
    """Return whether the core can write positions to `out` while it searches an array."""
    return bool(is_contiguous(out) and out.flags.aligned and not np.may_share_memory(out, array))


def _contiguous(array: NDArray[Any]) -> Any:
    """Return a C-contiguous copy: for strided items, in a fraction of NumPy's time."""
    shape = shape_of(array)
    copy = result_array(None, array, shape, "a", dtype_of(array))
    replicate(array, aligned(shape, shape), copy)
    return copy


def _truth_by_core(call: Reduction, operation: int) -> Any:
    """Find whether items are true with the core; return None to leave the call to NumPy."""
    array, out = call.array, call.out
    if out is not None and dtype_of(out) is not BOOL:
        return None
    if not read_axes(call):
        return None

    if _has_long_runs(call) or _is_worth_parts(call):
        found = _truths_by_parts(call, operation)
        if out is not None:
            result_array(out, array, call.shape, "a", BOOL)[...] = found
    else:
        found = _combined(call, operation, BOOL, out)
    return _out_or_new(call, found)


def _is_compared(call: Reduction) -> bool:
    """Read a call; return whether kernels combine its items: native, real, with a row in the table of dtypes."""
    if not read_call(call):
        return False
    array = call.array
    if not array.ndim or not has_kernels(array):
        return False
    dtype = dtype_of(array)
    return dtype.isnative and dtype.kind != "c"


def _combined(call: Reduction, operation: int, dtype: np.dtype[Any], out: Any) -> NDArray[Any]:
    """Combine terms by an operation, into `out` or a new array of a dtype."""
    order = _order_of_result(call, out)
    if order is not None:
        return _transposed_back(call, order, _combined(_transposed(call, order), operation, dtype, None))
    array = call.array
    result = result_array(out, array, call.shape, "a", dtype)
    if not reduce_onto(array, aligned(call.lengths, call.source), result, operation):
        raise TypeError(f"`a` expected a dtype that the operation supports, got {dtype_of(array)}")
    return result


def _is_worth_parts(call: Reduction) -> bool:
    """Return whether rows are so long that their first items may decide the result, at little cost if they do not."""
    itemsize = call.array.itemsize
    if itemsize * call.count < 2 * DECIDING_BYTES:  # nearly all small calls
        return False
    return itemsize * _length_of_rows(call) >= 2 * DECIDING_BYTES


def _has_long_runs(call: Reduction) -> bool:
    """Return whether terms are bytes in long contiguous rows, which kernels search for the deciding one."""
    array = call.array
    if array.itemsize != 1 or call.count < SEARCHED_BYTES:
        return False
    return _length_of_rows(call) >= SEARCHED_BYTES and array.strides[array.ndim - 1] == 1


def _length_of_rows(call: Reduction) -> int:
    """Return how many adjacent items are terms of one result; 0 if the array does not consist of rows."""
    array, shape = call.array, call.lengths
    if array.ndim == 2 and len(call.axes) == 1:
        return shape[1] if call.axes[0] == 1 else 0
    if not is_contiguous(array):
        return 0
    length = 1
    for at in range(len(shape) - 1, -1, -1):
        if call.source[at] != 1:
            break
        length *= shape[at]
    return length


def _truths_by_parts(call: Reduction, operation: int) -> NDArray[Any]:
    """Reduce rows in growing parts, until the result is certain. Kernels search bytes instead."""
    array = call.array
    items = _as_rows(call)
    if _has_long_runs(call):
        return np.asarray(_truths_of_rows(call, items, operation))

    kept = _kept_by_rows(call, items)
    size = shape_of(items)[items.ndim - 1]
    found = np.empty(call.shape, BOOL)
    results = reshaped(found, kept)
    part = results
    combine, undecided = (np.logical_or, b"\0") if operation == ANY else (np.logical_and, b"\1")
    begin, rows = 0, size_of(items) // (size * size_of(found))  # rows of each result
    length = DECIDING_BYTES // array.itemsize // rows + 1
    while begin < size:
        end = begin + length if size - begin >= 2 * length else size
        piece = items[..., begin:end]
        reduce_onto(piece, aligned(shape_of(piece), kept), part, operation)
        if part is not results:
            combine(results, part, results)
        if undecided not in found.tobytes():
            break
        part = np.empty(kept, BOOL)
        begin, length = end, DECIDING_GROWTH * length
    return found


def _truths_of_rows(call: Reduction, items: NDArray[Any], operation: int) -> Any:
    """Search each row, and combine the rows of each result."""
    shape = shape_of(items)[: items.ndim - 1]
    found = np.empty(shape, BOOL)
    find_truths_onto(items, found, operation == ANY)
    if size_of(found) > size_of(items) // call.count:
        combine = np.logical_or if operation == ANY else np.logical_and
        found = combine.reduce(found, axis=tuple([at for at in call.axes if at < items.ndim - 1]))
    return reshaped(np.asarray(found), call.shape)


def _as_rows(call: Reduction) -> NDArray[Any]:
    """Return the array with one axis along its long rows."""
    array, shape = call.array, call.lengths
    last = len(shape)
    size = left = _length_of_rows(call)
    while left > 1:
        last -= 1
        left //= shape[last]
    return array if last + 1 == len(shape) else reshaped(array, shape[:last] + (size,))


def _kept_by_rows(call: Reduction, items: NDArray[Any]) -> tuple[int, ...]:
    """Return the shape of the results of rows, with length 1 along the rows."""
    outer = items.ndim - 1
    return call.source[:outer] + (1,)


def _numpys(call: Reduction, initial: Any, where: Any) -> Any:
    """Call NumPy's function, with only the arguments that differ from defaults: overriding classes may lack others."""
    a, out = call.a, call.out
    if isinstance(out, ndarray):
        refuse_repeated(out, out)
        if is_of_package(dtype_of(out)):
            a = with_plain_bytes(a)

        if call.name in ("any", "all") and has_references(out):
            return _truth_into_references(call, where)

    options: dict[str, Any] = {}
    axis = axis_for_numpy(call)
    for key, value in (("axis", axis), ("dtype", call.dtype), ("out", out)):
        if value is not None:
            options[key] = value
    if call.keepdims is not False:
        options["keepdims"] = call.keepdims
    for key, value in (("where", where), ("initial", initial)):
        if value is not NO_VALUE:
            options[key] = value
    return NUMPYS[call.name](a, **options)


def _truth_into_references(call: Reduction, where: Any) -> Any:
    """Have NumPy compute `any` or `all` for an `out` of objects or strings, outside of it: NumPy overruns a buffer."""
    beside = reduction(call.name, call.a, call.axis, None, call.keepdims)
    found = np.asarray(_numpys(beside, NO_VALUE, where))
    result_array(call.out, found, shape_of(found), "a", dtype_of(call.out))
    np.copyto(call.out, found.astype(dtype_of(call.out)))
    return call.out


# The code of `sum`, `mean`, `var` and `std`. It is compiled, so that no line of Python, and no interrupt, follows a
# write to `out`.


def statistic(
    name: str, a: Any, axis: Any, dtype: Any, out: Any, keepdims: Any, ddof: Any, others: dict[str, Any], numpys: Any
) -> Any:  # NumPy's arguments, one by one, become a `Reduction` here
    """Return a sum or a statistic from the core; otherwise from `numpys`, which calls NumPy's function."""
    call = reduction(name, a, axis, out, keepdims)
    call.dtype = dtype
    call.ddof = ddof
    call.has_squares = name != "sum" and name != "mean"
    has_more = _read_options(call, others) if others else False
    if call.is_exact and not call.has_squares:
        return _reduced_exactly(call, others, numpys, 2)
    result = None if has_more else reduced(call)
    if result is None and call.is_exact:
        check_is_exact(call, has_more)
    return numpys(call, others) if result is None else result


def _read_options(call: Reduction, others: dict[str, Any]) -> bool:
    """Remove `exact` and `initial` from the other options; return whether any others differ from the default."""
    has_more = False
    call.is_exact = others.pop("exact", False)
    if call.is_exact and not call.has_squares:
        return False
    for name, value in others.items():
        if name == "initial" and call.name == "sum":
            call.initial = _initial_of_sum(value)
        elif name == "initial" or (value is not NO_VALUE and not (name == "where" and is_everywhere(value))):
            has_more = True
    return has_more


def _initial_of_sum(value: Any) -> Any:
    """Return the `initial` of a `Reduction`, given NumPy's."""
    if value is NO_VALUE:
        return None
    return NOTHING if value is None else value


def reduced(call: Reduction) -> Any:
    """Return the result of NumPy's sum or statistic; None to leave the call to NumPy."""
    if not read_call(call):
        return None
    own = dtype_of(call.array)
    if not has_kernels(call.array) and converted_terms(own) is None:
        return None
    wanted = _dtype_of_result(call, own)
    if wanted is None or not read_axes(call):
        return None

    of_parts = call.has_squares and (own.kind == "c" or wanted.kind == "c")
    if call.out is None and call.initial is None and not of_parts:  # as in nearly all calls
        return _computed(call, wanted, None)
    return _reduced_otherwise(call, own, wanted, of_parts)


def _reduced_otherwise(call: Reduction, own: np.dtype[Any], wanted: np.dtype[Any], of_parts: bool) -> Any:
    """Do the same with an `out` or an `initial`, and for variances of complex numbers or in complex dtypes."""
    if call.initial is not None:
        result = _sum_from_initial(call, wanted)
    elif of_parts and own.kind == "c" and not call.is_exact:
        result = _of_both_parts(call)
    else:
        written = real_dtype(wanted) if of_parts else wanted
        if call.out is not None and _is_dtype_of(call.out, written):
            return _computed(call, dtype_of(call.out), call.out)
        result = _computed(call, written, None)
    return None if result is None else rounded_into(call.out, result, wanted)


def _sum_from_initial(call: Reduction, wanted: np.dtype[Any]) -> Any:
    """Return a sum with `initial` added last, in float64 for narrower dtypes; None to leave the call to NumPy."""
    wide = wide_dtype(wanted)
    if call.initial is NOTHING:
        start = np.array(-np.zeros((), wide))
    else:
        start = np.array(call.initial, wanted).astype(wide)  # as NumPy reads it
    if start.ndim:
        return None
    found = _computed(call, wide, None)
    if found is None:
        return None

    total = np.asarray(found)
    if wide.kind in "fc" and start == 0 and (np.signbit(start.real) or np.signbit(start.imag)):
        _sign_zeros(call, total)
    return total + start


def _sign_zeros(call: Reduction, total: NDArray[Any]) -> None:
    """Make those sums -0.0 whose terms are all -0.0, as sums are that do not start from 0.0."""
    terms = call.array
    if kind_of_sums(dtype_of(terms)) not in ("f", "c"):
        return
    parts = [(total.real, terms.real)]
    if total.dtype.kind == terms.dtype.kind == "c":
        parts.append((total.imag, terms.imag))
    for sums, items in parts:
        if not all(sums):
            np.copyto(sums, -0.0, where=all(np.signbit(items) & (items == 0), call.axes, None, call.keeps))


def _of_both_parts(call: Reduction) -> Any:
    """Return the variance or deviation of complex numbers: add the variances of both parts."""
    real, imaginary = _of(call, call.array.real), _of(call, call.array.imag)
    real.name = imaginary.name = "var"
    total = _computed(real, FLOAT64, None)
    if total is None:
        return None
    total = total + _computed(imaginary, FLOAT64, None)
    return np.sqrt(total) if call.name == "std" else total


def _is_dtype_of(out: NDArray[Any], dtype: np.dtype[Any]) -> bool:
    """Return whether `out` has a dtype, in either byte order."""
    own = dtype_of(out)
    return own is dtype or own.newbyteorder("=") == dtype


def rounded_into(out: Any, result: Any, dtype: Any) -> Any:
    """Round a result to `dtype`, if given; then convert it into `out`, if given, and return it."""
    array = np.asarray(result)
    if dtype is not None:
        array = rounded_to(array, dtype_argument(dtype))
    if out is None:
        return array if array.ndim else array[()]
    result_array(out, array, shape_of(array), "a", out.dtype)
    np.copyto(out, rounded_to(array, out.dtype))  # all that may fail or warn comes before the write
    return out


def _computed(call: Reduction, wanted: np.dtype[Any], out: Any) -> Any:
    """Return the core's result, rounded to `wanted`, the dtype of `out` if given; None if there are no terms."""
    ddof = call.ddof
    if type(ddof) is not int and isinstance(ddof, np.generic):
        ddof = ddof.item()  # a NumPy scalar would compute in its own dtype, perhaps a narrow one
    if isinstance(ddof, ndarray) and ddof.ndim:  # it broadcasts to the result
        return None
    if not ddof < call.count:
        return None
    order = _order_of_result(call, out)
    if order is not None:
        return _computed_in_order(call, wanted, order)

    result = result_array(out, call.array, call.shape, "a", wanted)
    if call.has_means:
        call.means = result_array(None, call.array, call.shape, "a", wanted)
    _write_statistic(call, ddof, result, out is None)
    return result[()] if out is None and not call.shape else result


def _computed_in_order(call: Reduction, wanted: np.dtype[Any], order: list[int]) -> Any:
    """Return the core's result for the array with its axes in another order."""
    other = _transposed(call, order)
    found = _computed(other, wanted, None)
    call.lacks_terms = other.lacks_terms
    if call.has_means:
        call.means = _transposed_back(call, order, other.means)
    return _transposed_back(call, order, found)


def _write_statistic(call: Reduction, ddof: Any, result: NDArray[Any], is_fresh: bool) -> None:
    """Write a sum or a statistic. `is_fresh`: nobody else has the array of results yet."""
    array = call.array
    alignment = aligned(call.lengths, call.source)
    if call.is_exact:
        _write_exactly(call, ddof, alignment, result)
        return
    if (call.skips_nan or call.has_squares) and _write_of_short_vectors(call, alignment, result):
        return
    if call.has_squares:
        _write_squares(call, call.count - ddof, result, is_fresh)
    elif call.skips_nan:
        _write_without_nan(call, alignment, result)
    elif call.name == "sum":
        sum_onto(array, alignment, result)
    else:
        average_onto(array, alignment, result, call.count)


def _write_squares(call: Reduction, divisor: float, out: NDArray[Any], is_fresh: bool) -> None:
    """Write variances or their roots, in blocks of data that stay in a cache between means and squares.

    `out` is `is_fresh` if nobody sees it should this fail.
    """
    array = call.array
    blocks = _blocks_for_means(array, out)
    axis = _axis_of_blocks(call.source, blocks)
    whole_length = array.shape[axis]
    length = -(-whole_length // blocks)
    means = reshaped(call.means, call.source) if call.has_means else None
    if length == whole_length:
        _write_squares_of_block(call, divisor, array, means, reshaped(out, call.source))
        return

    whole = out
    if not is_fresh:  # `out` may overlap the data, and must not change if the call fails
        whole = result_array(None, array, shape_of(out), "a", out.dtype)
    result = reshaped(whole, call.source)
    for begin in range(0, whole_length, length):
        block = (slice(None),) * axis + (slice(begin, begin + length),)
        _write_squares_of_block(call, divisor, array[block], None if means is None else means[block], result[block])
    if whole is not out:
        np.copyto(out, whole)


def _blocks_for_means(array: NDArray[Any], out: NDArray[Any]) -> int:
    """Return the number of blocks for variances: 1, unless there are many means or the data is large."""
    nbytes, means_bytes = array.nbytes, FLOAT64.itemsize * size_of(out)
    if means_bytes <= L2:  # the cache keeps them for the second pass
        return 1
    return 1 + (nbytes if nbytes > means_bytes else means_bytes) // PASSES_BLOCK_BYTES


def _axis_of_blocks(source: Shape, blocks: int) -> int:
    """Return the axis to cut into blocks: the first kept one that is long enough, or the longest."""
    axis = 0
    for at in range(len(source)):
        if source[at] != 1 and source[axis] < blocks and source[at] > source[axis]:
            axis = at
    return axis


def _write_squares_of_block(
    call: Reduction, divisor: float, data: NDArray[Any], averages: NDArray[Any] | None, result: NDArray[Any]
) -> None:
    """Write variances or their roots: the means first, then the mean squares of the deviations from them.

    Those of narrow integers come of exact sums. `averages` are the means as they are wanted, too, if they are.
    """
    alignment = aligned(shape_of(data), shape_of(result))
    is_narrow = data.itemsize <= 2
    is_direct = is_narrow and dtype_of(result) is FLOAT64 and is_contiguous(result)
    if (
        is_direct
        and not np.may_share_memory(result, data)
        and spread_onto(data, alignment, averages, result, divisor, call.name == "std")
    ):
        return
    means = result_array(None, data, alignment.source, "a", FLOAT64)
    is_rough = not is_narrow or result.itemsize < 8
    average_onto(data, alignment, means, call.count, None, False, is_rough, call.skips_nan)
    if averages is not None:
        np.copyto(averages, quietly(rounded_to, means, dtype_of(averages)))
    if call.skips_nan and _has_nan(means):
        _write_squares_without_nan(call, call.count - divisor, data, result)
    else:
        average_onto(data, alignment, result, divisor, means, call.name == "std")


def _write_of_short_vectors(call: Reduction, alignment: Alignment, result: NDArray[Any]) -> bool:
    """Write a statistic along one axis of 2 to 4 items, or a sum that ignores NaN; return whether kernels can."""
    ddof = float(call.ddof)
    is_square = call.has_squares
    made = SHORT_SPREAD if is_square else SHORT_SUM if call.name == "sum" else SHORT_MEAN
    first, second = result, None
    if call.has_means:
        made, first, second = SHORT_MEAN_AND_SPREAD, call.means, result
    if not find_statistics_onto(call.array, alignment, first, second, made, call.name == "std", ddof, call.skips_nan):
        return False

    if call.skips_nan and call.name != "sum" and _has_nan(result):
        counts = _counts_of_numbers(call.array, alignment)
        call.lacks_terms = any(counts <= (ddof if is_square else 0))
    return True


def mean_and_deviation(a: Any, axis: Any, ddof: Any, keepdims: Any) -> Any:
    """Return the results of `mean` and `std` from one call of the core; None if they need two."""
    call = reduction("std", a, axis, None, keepdims)
    call.ddof = ddof
    call.has_squares = True
    call.has_means = True
    if not read_call(call):
        return None
    own = dtype_of(call.array)
    if own.kind == "c" or not has_kernels(call.array):
        return None
    wanted = _dtype_of_result(call, own)
    if wanted is None or not read_axes(call):
        return None
    deviation = _computed(call, wanted, None)
    if deviation is None:
        return None
    return (call.means if call.shape else call.means[()]), deviation


# The functions that ignore NaN. A sum is NaN if a term is. So the sum is first computed with all terms, and again
# without NaN only if it is NaN: data without NaN is read as often as by `sum`.


def without_nan(
    name: str, a: Any, axis: Any, dtype: Any, out: Any, keepdims: Any, ddof: Any, others: dict[str, Any], numpys: Any,
    level: int = 2,
) -> Any:  # fmt: skip
    """Return an extreme, a sum or a statistic that ignores NaN, from the core or from `numpys`; warn as NumPy does.

    NumPy's arguments come one by one; they become a `Reduction` here.
    Warnings name the caller at a `level` of Python's stack: 2 is this function's caller. At level 0, there are none.
    """
    call = reduction(name, a, axis, out, keepdims)
    call.dtype = dtype
    call.ddof = ddof
    call.has_squares = name in SQUARES
    call.is_exact = others.pop("exact", False)
    if call.is_exact:
        call.skips_nan = True
        if call.has_squares:
            return _spread_exactly_without_nan(call, others, numpys, level)
        return _reduced_exactly(call, others, numpys, level)
    found = None
    are_defaults = not others or (_are_defaults(others) and not needs_initial(name, others.get("where")))
    if are_defaults:
        found = _found_without_nan(call)
    if found is None:
        return numpys(call, others)

    if call.lacks_terms and level > 0:
        _warn_if_out_fits(name, found, out, level)
    return found if out is None or found is out else rounded_into(out, found, None)


def _are_defaults(options: dict[str, Any]) -> bool:
    """Return whether options of NumPy's functions equal the defaults."""
    for name, value in options.items():
        if value is not NO_VALUE and not (name == "where" and is_everywhere(value)):
            return False
    return True


def _warn_if_out_fits(name: str, found: Any, out: Any, level: int) -> None:
    """Warn of results of too few terms; raise an error instead if `out` does not fit."""
    if out is not None and found is not out:
        result_array(out, np.asarray(found), np.shape(found), "a", out.dtype)
    warnings.warn(_warning_of(name), RuntimeWarning, stacklevel=level)


def _warning_of(name: str) -> str:
    """Return NumPy's warning for results of too few terms."""
    if name == "max" or name == "min":
        return "All-NaN slice encountered"
    return "Mean of empty slice" if name == "mean" else "Degrees of freedom <= 0 for slice."


def _found_without_nan(call: Reduction) -> Any:
    """Return the core's results, or `out` if it already has them; None to leave the call to NumPy."""
    if not read_call(call):
        return None
    is_extreme = call.name == "max" or call.name == "min"
    own = dtype_of(call.array)
    if own.kind in "biu":
        return found_by_core(call) if is_extreme else reduced(call)
    if not _are_numbers_or_nan(call.array, own):
        return None

    wanted = own if call.dtype is None else dtype_argument(call.dtype)
    if not _is_result_without_nan(call, own, wanted) or not read_axes(call):
        return None
    call.skips_nan = True
    return _extreme_of_numbers(call, own) if is_extreme else _computed(call, wanted, None)


def _are_numbers_or_nan(array: NDArray[Any], own: np.dtype[Any]) -> bool:
    """Return whether kernels read an array and ignore NaN: it has real floats in native byte order."""
    return bool(own.kind != "c" and own.isnative and has_kernels(array))


def _is_result_without_nan(call: Reduction, own: np.dtype[Any], wanted: np.dtype[Any]) -> bool:
    """Return whether the core makes results of a dtype: the items' own, or another float that `out` has, too."""
    if wanted is not own and not (kind_of_sums(wanted) == "f" and wanted.isnative):
        return False
    return bool(call.out is None or dtype_of(call.out) == wanted)


def _extreme_of_numbers(call: Reduction, dtype: np.dtype[Any]) -> Any:
    """Find extremes of the items that are not NaN."""
    found = _combined(call, GREATEST_NUMBER if call.name == "max" else LEAST_NUMBER, dtype, None)
    if _has_nan(found):
        call.lacks_terms = True
        if dtype.itemsize == 2:  # kernels for these lose the bits of NaN
            np.copyto(found, np.array(np.nan, dtype), where=found != found)
    return found if found.ndim else found[()]


def _has_nan(found: NDArray[Any]) -> bool:
    """Return whether any result is NaN."""
    size = size_of(found)
    if size > 1:
        items = reshaped(found, (size,)) if is_contiguous(found) else found.ravel("K")
        found = np.empty(1, dtype_of(found))
        reduce_onto(items, aligned((size,), (1,)), found, GREATEST)
    item = found.item()
    return bool(item != item)


def _write_without_nan(call: Reduction, alignment: Alignment, out: NDArray[Any]) -> None:
    """Write sums or means of the items that are not NaN."""
    array = call.array
    average_onto(array, alignment, out, 1 if call.name == "sum" else call.count, None, False, False, True)
    if not _has_nan(out):
        return
    if call.name == "sum":
        sum_numbers_onto(array, alignment, out, ZERO, NUMBER)
        return
    counts = _counts_of_numbers(array, alignment)
    call.lacks_terms = not all(counts)
    means = _means_of_numbers(array, alignment, counts)
    np.copyto(reshaped(out, call.source), quietly(rounded_to, means, dtype_of(out)))


def _write_squares_without_nan(call: Reduction, ddof: float, data: NDArray[Any], out: NDArray[Any]) -> None:
    """Write variances, or their roots, of the items that are not NaN."""
    alignment = aligned(shape_of(data), shape_of(out))
    counts = _counts_of_numbers(data, alignment)
    squares = result_array(None, data, alignment.source, "a", FLOAT64)
    sum_numbers_onto(data, alignment, squares, _means_of_numbers(data, alignment, counts), NUMBERS_SQUARE)
    counts -= ddof
    lacks = counts <= 0
    if any(lacks):
        call.lacks_terms = True
        counts[lacks] = np.nan
    np.copyto(out, quietly(_rounded_spread, squares, counts, call.name == "std", dtype_of(out)))


def _rounded_spread(squares: NDArray[Any], counts: NDArray[Any], is_root: bool, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Turn sums of squares into variances or their roots, in place."""
    np.divide(squares, counts, out=squares)
    if is_root:
        np.sqrt(squares, out=squares)
    return rounded_to(squares, dtype)


def _counts_of_numbers(data: NDArray[Any], alignment: Alignment) -> NDArray[Any]:
    """Count the items that are not NaN, in float64."""
    counts = result_array(None, data, alignment.source, "a", FLOAT64)
    sum_numbers_onto(data, alignment, counts, ZERO, NUMBERS_COUNT)
    return counts


def _means_of_numbers(data: NDArray[Any], alignment: Alignment, counts: NDArray[Any]) -> NDArray[Any]:
    """Average the items that are not NaN, in float64."""
    means = result_array(None, data, alignment.source, "a", FLOAT64)
    sum_numbers_onto(data, alignment, means, ZERO, NUMBER)
    quietly(np.divide, means, counts, means)
    return means


# Exact sums and means, rounded once.


def check_is_exact(call: Reduction, has_more: bool) -> None:
    """Check that NumPy's function rounds variances once: there is nothing to round."""
    if has_more:
        raise ValueError("`exact` expected False with `where` or `mean`, got True")
    array: NDArray[Any] | None = call.array  # None if `read_call` left it to NumPy
    if array is None:
        _refuse_class(call)
    if not _is_exact_in_numpy(call, dtype_of(array)):
        _refuse_numbers(call, dtype_of(array))


def _refuse_numbers(call: Reduction, own: np.dtype[Any]) -> NoReturn:
    """Refuse the dtype of the data, or of the results, that no kernel has."""
    name, dtype = "a", own
    if has_kernels(call.array) or converted_terms(own) is not None:
        if call.dtype is not None:
            name, dtype = "dtype", dtype_argument(call.dtype)
        elif call.out is not None:
            name, dtype = "out", dtype_of(call.out)
    raise TypeError(f"`{name}` expected numbers of at most 64 bits if `exact`, got {brief(dtype)}")


def _is_exact_in_numpy(call: Reduction, own: np.dtype[Any]) -> bool:
    """Return whether NumPy's function rounds once: not if it sums floats, or if another package rounds.

    It is clearer whole: a condition for each reason.
    """
    wanted = call.dtype if call.dtype is not None or call.out is None else call.out.dtype
    dtype = own if wanted is None else dtype_argument(wanted)
    if dtype.kind in "biu" and not call.has_squares:
        return True
    if call.has_squares and np.ndim(call.ddof) == 0 and read_axes(call) and not call.ddof < call.count:
        return True
    if size_of(call.array) > 0 and shape_of(call.array) and read_axes(call):
        return False
    return dtype == own or not is_of_package(dtype)


def _reduced_exactly(call: Reduction, others: dict[str, Any], numpys: Any, level: int) -> Any:
    """Return an exact sum or mean; NumPy's function does the calls whose arguments it refuses, and empty ones.

    `level` is as in `without_nan`. This is clearer whole: a case for each kind of call.
    """
    given = dict(others)
    where, initial = others.pop("where", NO_VALUE), others.pop("initial", NO_VALUE)
    if not read_call(call):
        _refuse_class(call)
    if others or (call.name == "mean" and initial is not NO_VALUE) or size_of(call.array) == 0:
        return numpys(call, given)
    wanted = _dtype_of_exact(call)
    if wanted is None:  # integers, which wrap around
        return _sum_of_integers(call, where, initial, given, numpys, level)

    _give_axis_to_number(call)
    read_axes(call)
    call.start = _start_of(initial, wanted)
    starts_below = call.name == "sum" and _is_negative_zero(initial)
    _leave_out(call, where, starts_below)
    has_more = call.divisors is not None or call.skips_nan or starts_below
    if call.out is not None and _is_dtype_of(call.out, wanted) and not has_more:
        return _computed(call, dtype_of(call.out), call.out)

    found = _computed(call, wanted, None)
    if starts_below:
        found = np.asarray(found)
        _sign_zeros(call, found)
    if call.lacks_terms and level > 0:  # before `out` is written: a warning may be an error
        warnings.warn("Mean of empty slice", RuntimeWarning, stacklevel=level)
    return rounded_into(call.out, found, wanted)


def _give_axis_to_number(call: Reduction) -> None:
    """Make an array without axes a row of one item. NumPy's sums accept 0 and -1 as its axis, but its means do not."""
    if call.array.ndim:
        return
    is_int = not isinstance(call.axis, READ_AGAIN)
    has_axis = is_int and (call.name == "sum" or call.skips_nan)
    reduced_axes(call.axis, (1,) if has_axis else ())
    call.array = call.array.reshape(1)
    call.axis = None
    call.keeps = False


def _spread_exactly_without_nan(call: Reduction, others: dict[str, Any], numpys: Any, level: int) -> Any:
    """Return exact variances or deviations of the items that are not NaN; those of too few items are left to NumPy."""
    has_more = not _are_defaults(others)
    found = None
    if not has_more and read_call(call) and size_of(call.array) > 0:
        own = dtype_of(call.array)
        wanted = None
        if has_kernels(call.array) or converted_terms(own) is not None:
            wanted = _dtype_of_result(call, own)
        if wanted is not None and read_axes(call):
            found = _computed(call, real_dtype(wanted), None)
    if found is None:
        read_call(call)
        check_is_exact(call, has_more)
        return numpys(call, others)
    if call.lacks_terms and level > 0:  # before `out` is written: a warning may be an error
        warnings.warn(_warning_of(call.name), RuntimeWarning, stacklevel=level)
    return rounded_into(call.out, found, wanted)


def _sum_of_integers(call: Reduction, where: Any, initial: Any, given: dict[str, Any], numpys: Any, level: int) -> Any:
    """Return a sum of integers; those outside of a mask become 0, in a copy. NumPy does the other calls.

    The arguments of `_reduced_exactly` come one by one.
    """
    name, a = call.name, call.a
    array = call.array
    is_masked = not is_everywhere(where)
    if name == "sum" and array.ndim and dtype_of(array).kind in "biu" and (is_masked or call.skips_nan):
        if is_masked:
            a = _cleared(array, _mask_of(where, shape_of(array)), False)
        options = {} if initial is NO_VALUE else {"initial": initial}
        return statistic(name, a, call.axis, call.dtype, call.out, call.keepdims, 0, options, numpys)
    if call.skips_nan:
        return without_nan(name, a, call.axis, call.dtype, call.out, call.keepdims, 0, given, numpys, level)
    return statistic(name, a, call.axis, call.dtype, call.out, call.keepdims, 0, given, numpys)


def _is_negative_zero(initial: Any) -> bool:
    """Return whether a sum of only negative zeros is one, as it does not start from 0.0."""
    if initial is NO_VALUE:
        return False
    return initial is None or bool(initial == 0 and (np.signbit(np.real(initial)) or np.signbit(np.imag(initial))))


def _refuse_class(call: Reduction) -> NoReturn:
    """Refuse arguments that `read_call` leaves to NumPy."""
    is_of_out = call.out is not None and type(call.a) is ndarray
    name, given = ("out", call.out) if is_of_out else ("a", call.a)
    raise TypeError(f"`{name}` expected an array of NumPy's own class if `exact`, got {show(type(given))}")


def _dtype_of_exact(call: Reduction) -> np.dtype[Any] | None:
    """Return the dtype to which exact sums or means are rounded; None for integers."""
    own, out = dtype_of(call.array), call.out
    wanted = None
    if has_kernels(call.array) or converted_terms(own) is not None:
        wanted = _dtype_of_result(call, own)
    if wanted is not None:
        return None if wanted.kind in "biu" else wanted

    given = call.dtype if call.dtype is not None or out is None else dtype_of(out)
    if (own if given is None else dtype_argument(given)).kind in "biu":
        return None
    _refuse_numbers(call, own)


def _start_of(initial: Any, wanted: np.dtype[Any]) -> Any:
    """Return the initial value of exact sums, as NumPy reads it."""
    if initial is NO_VALUE or initial is None:
        return 0
    start = np.array(initial, wanted)
    if start.ndim:
        raise ValueError(f"`initial` expected a number if `exact`, got shape {shape_of(start)}")
    return complex(start) if wanted.kind == "c" else float(start)


def _leave_out(call: Reduction, where: Any, by_negative: bool) -> None:
    """Replace the items outside of a mask by 0, and those that are NaN if the call skips them; count the others.

    This is clearer whole: both kinds of masks are joined.
    """
    array, mask = call.array, None
    own = dtype_of(array)
    if call.skips_nan and own.kind not in "biu":
        is_plain = own.kind != "c" and own.isnative and has_kernels(array) and call.count > 1
        if not is_plain or not is_everywhere(where):
            mask = array == array
    if not is_everywhere(where):
        given = _mask_of(where, shape_of(array))
        mask = given if mask is None else mask & given
    if mask is None:
        call.skips_nan = call.skips_nan and own.kind not in "biu"
    else:
        call.skips_nan = False
        _clear(call, mask, by_negative)


def _mask_of(where: Any, shape: Shape) -> NDArray[Any]:
    """Return the user's mask for an array of a shape."""
    mask = np.asarray(where)
    if dtype_of(mask).kind != "b":
        raise TypeError(f"`where` expected bools, got {brief(dtype_of(mask))}")
    try:
        return np.broadcast_to(mask, shape)
    except ValueError:
        raise ValueError(f"`where` expected a shape that broadcasts to {shape}, got {shape_of(mask)}") from None


def _cleared(array: NDArray[Any], mask: NDArray[Any], by_negative: bool) -> NDArray[Any]:
    """Return a copy of an array in which 0, or -0.0, replaces the items outside of a mask of its shape."""
    zero = np.zeros((), dtype_of(array))
    if by_negative:
        zero = np.asarray(-zero)
    cleared = choose(mask, array, zero, None)
    return NUMPYS_WHERE(mask, array, zero) if cleared is None else cleared


def _clear(call: Reduction, mask: NDArray[Any], by_negative: bool = False) -> None:
    """Reduce only the items in a mask, of the shape of the array: the others become 0, in a copy."""
    call.array = _cleared(call.array, mask, by_negative)
    if call.name == "mean":
        counts = np.empty(call.source, np.int64)
        sum_onto(mask, aligned(shape_of(mask), call.source), counts)
        call.divisors = counts.astype(np.float64)


def _write_exactly(call: Reduction, ddof: Any, alignment: Alignment, result: NDArray[Any]) -> None:
    """Write exact sums or means, rounded once, or variances or their roots from exact sums."""
    array = call.array
    if call.has_squares:
        skips_nan = call.skips_nan and dtype_of(array).kind not in "biu"
        found, call.lacks_terms = spreads(array, call.source, dtype_of(result), ddof, call.name == "std", skips_nan)
        np.copyto(result, reshaped(found, shape_of(result)))
    elif call.divisors is not None:
        _write_exact_means_of_some(call, alignment, result)
    elif call.name == "sum":
        write_exact_sums("a", array, alignment, result, 1, call.skips_nan, None, call.start)
    elif call.skips_nan:
        _write_exact_means_of_numbers(call, alignment, result)
    else:
        write_exact_sums("a", array, alignment, result, call.count)


def _write_exact_means_of_some(call: Reduction, alignment: Alignment, result: NDArray[Any]) -> None:
    """Write exact means with a divisor for each; those of no items are NaN."""
    counts = call.divisors
    if all(counts):
        write_exact_sums("a", call.array, alignment, result, 1, False, counts)
        return
    call.lacks_terms = True
    means = result_array(None, call.array, shape_of(result), "a", dtype_of(result))
    write_exact_sums("a", call.array, alignment, means, 1, False, np.maximum(counts, 1))
    set_means_of_nothing(reshaped(means, call.source), counts == 0)
    np.copyto(result, means)


def _write_exact_means_of_numbers(call: Reduction, alignment: Alignment, result: NDArray[Any]) -> None:
    """Write exact means of the items that are not NaN: of all items first, and again if some are NaN."""
    array = call.array
    means = result_array(None, array, shape_of(result), "a", dtype_of(result))
    write_exact_sums("a", array, alignment, means, call.count)
    if _has_nan(means):
        _clear(call, array == array)
        _write_exact_means_of_some(call, alignment, means)
    np.copyto(result, means)


# The dtype of a sum or a statistic.


def _dtype_of_result(call: Reduction, own: np.dtype[Any]) -> np.dtype[Any] | None:
    """Return the dtype to which a sum or a statistic is rounded; None to leave the choice to NumPy.

    If `out` has another dtype, the result is then converted to that.
    """
    name, dtype = call.name, call.dtype
    to = None if call.out is None else dtype_of(call.out)
    if dtype is None and (to is None or to is own) and _is_usual(name, own):
        return own
    if to is not None and name == "std" and kind_of_sums(to) in ("b", "i"):  # NumPy writes before it raises
        raise TypeError(f"`out` expected a floating-point dtype, got {to}")
    if dtype is not None:
        return _given_dtype(name, own, dtype_argument(dtype), to)
    return _dtype_of_terms(name, own) if to is None else _dtype_beside(name, own, to)


def _given_dtype(
    name: str, own: np.dtype[Any], wanted: np.dtype[Any], to: np.dtype[Any] | None
) -> np.dtype[Any] | None:
    """Return the dtype that the user wants; None if NumPy has to compute such results, or convert them into `out`."""
    if to is not None and kind_of_sums(to) in ("", "b") and to.num not in LONG_DOUBLES:
        return None
    return wanted if _is_fit(name, own, wanted) else None


def _is_usual(name: str, own: np.dtype[Any]) -> bool:
    """Return whether a result has the dtype of the terms, like most small calls."""
    return own is FLOAT64 or own is FLOAT32 or (own is INT64 and name == "sum")


def _dtype_of_terms(name: str, own: np.dtype[Any]) -> np.dtype[Any] | None:
    """Return the dtype of a sum or a statistic, given only the dtype of the terms; None to leave it to NumPy."""
    kind = own.kind
    if kind in "biu" and name != "sum":
        return FLOAT64
    if kind in "biu" and own.itemsize < 8:
        return UINT64 if kind == "u" else INT64
    if kind == "V" and kind_of_sums(own) == "":
        return None
    if kind == "c" and name in SQUARES:
        return real_dtype(own)
    return _native(own)


def _is_fit(name: str, own: np.dtype[Any], wanted: np.dtype[Any]) -> bool:
    """Return whether the core rounds sums or a statistic to the dtype that the user wants."""
    to = kind_of_sums(wanted)
    if to == "i":
        return name == "sum" and kind_of_sums(own) in ("b", "i") and wanted.isnative
    of_real_part = own.kind == "c" and to == "f" and name in SQUARES  # NumPy warns
    return to in ("f", "c") and wanted.isnative and not of_real_part


def _dtype_beside(name: str, own: np.dtype[Any], to: np.dtype[Any]) -> np.dtype[Any] | None:
    """Return the dtype to which a sum or a statistic is rounded if only `out` sets one: usually that dtype, `to`.

    It is clearer whole: each condition is a rule of NumPy's.
    """
    terms, target = kind_of_sums(own), kind_of_sums(to)
    if name == "mean" and to.num in LONG_DOUBLES and terms in ("b", "i"):
        return None  # NumPy divides in extended precision
    if name != "sum" and (to.num in LONG_DOUBLES or (target == "i" and terms in ("", "b", "i"))):
        return COMPLEX128 if own.kind == "c" and name == "mean" else FLOAT64
    if target in ("f", "c"):
        return _native(to)
    if target != "i" or terms == "":
        return None
    return _native(to) if terms in ("b", "i") else _dtype_of_floats_beside(name, own, to)


def _dtype_of_floats_beside(name: str, own: np.dtype[Any], to: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of a sum of floats before its conversion to the integers of `out`."""
    if own.isbuiltin == 2:  # a dtype of another package
        return FLOAT64
    return np.result_type(real_dtype(own) if name in SQUARES else own, to)


def _native(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return a dtype in native byte order."""
    return dtype if dtype.isnative else dtype.newbyteorder("=")


def real_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of the parts of complex numbers; return any other dtype unchanged."""
    if dtype.kind != "c":
        return dtype
    return FLOAT32 if dtype.itemsize == 8 else FLOAT64
