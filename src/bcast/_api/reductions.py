"""`max`, `min`, `any` and `all`: NumPy's reductions whose operation may take a term twice.

In: NumPy's arguments. Out: NumPy's result. What the core has no kernels for is NumPy's to do.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import memmap, ndarray
from numpy.typing import ArrayLike, NDArray

from bcast._api.adjoints import (
    NO_VALUE,
    array_of,
    can_be_read_again,
    flag_of,
    lengths_after,
    order_in_memory,
    summed_axes,
)
from bcast._api.converted import is_handed_on, is_of_package
from bcast._elementwise import with_plain_bytes
from bcast._reduction import has_kernels, reduce_onto
from bcast._rules.alignment import aligned
from bcast._rules.arguments import Shape, axes_argument
from bcast._rules.types import Axes, Out
from bcast._runtime.arrays import dtype_of, is_contiguous, refuse_repeated, reshaped, result_array, shape_of, size_of
from bcast._runtime.core import DECIDING_BYTES

GREATEST, LEAST, SOME_NONZERO, SOME_ZERO = range(4)  # as `_reduce/simd/idempotent.h` numbers them
BOOL = np.dtype(bool)
MASKS = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}

# even if they are replaced
NUMPYS: dict[str, Callable[..., Any]] = {"max": np.max, "min": np.min, "any": np.any, "all": np.all}


def max(
    a: ArrayLike,
    axis: Axes = None,
    out: Out = None,
    keepdims: bool = False,
    initial: Any = NO_VALUE,
    where: Any = NO_VALUE,
) -> Any:
    """Find the greatest items of an array along axes: `numpy.max`, faster along short axes.

    Parameters
    ----------
    a : array_like
        Numbers, of any layout.
    axis : int or tuple of int, optional
        The axes to reduce. The default is all.
    out : ndarray, optional
        The array to write the result into, of its shape. It may overlap `a`: the result is as if `a` had been copied
        first.
    keepdims : bool, optional
        Whether the axes that were reduced are left in the result, with length 1.
    initial, where
        As `numpy.max` takes them. That function does calls with either.

    Returns
    -------
    ndarray or scalar
        The greatest items, of `a`'s dtype; a scalar if no axis is left; `out` if that is given.

    Raises
    ------
    numpy.exceptions.AxisError, ValueError, TypeError
        If `axis` has axes that `a` does not have, or one twice; if `out` has another shape; if there is no item to
        choose from. Exceptions of `numpy.max` pass through.

    See Also
    --------
    min, any, all

    Notes
    -----
    If there is a NaN among the items, the result is NaN. Which one of 0.0 and -0.0 is the result is not said.

    `numpy.max` itself does what no kernel reads: complex numbers, long double, objects, dates and strings; another byte
    order; an `out` of another dtype; empty arrays and axes of length 1; subclasses of ndarray, other than
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
    return _extreme("max", GREATEST, a, axis, out, keepdims, initial, where)


def min(
    a: ArrayLike,
    axis: Axes = None,
    out: Out = None,
    keepdims: bool = False,
    initial: Any = NO_VALUE,
    where: Any = NO_VALUE,
) -> Any:
    """Find the least items of an array along axes: `numpy.min`, faster along short axes.

    Parameters
    ----------
    a, axis, out, keepdims, initial, where
        As in `max`, and so are errors and notes.

    Returns
    -------
    ndarray or scalar
        The least items, as `max` returns the greatest.

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
    return _extreme("min", LEAST, a, axis, out, keepdims, initial, where)


def any(a: ArrayLike, axis: Axes = None, out: Out = None, keepdims: bool = False, *, where: Any = NO_VALUE) -> Any:
    """Tell whether any item is true along axes: `numpy.any`, faster along short axes.

    Parameters
    ----------
    a : array_like
        Bools or numbers, of any layout. Numbers are true if they are not zero; NaN is.
    axis, out, keepdims
        As in `max`.
    where
        As `numpy.any` takes it. That function does calls with it.

    Returns
    -------
    ndarray or scalar
        Bools; a scalar if no axis is left; `out` if that is given.

    Raises
    ------
    numpy.exceptions.AxisError, ValueError, TypeError
        As in `max`, but for empty axes: nothing is true there. Exceptions of `numpy.any` pass through.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast
    >>> bcast.any(np.array([[0, 0], [0, 3]]), axis=1)
    array([False,  True])
    """
    return _truth("any", SOME_NONZERO, a, axis, out, keepdims, where)


def all(a: ArrayLike, axis: Axes = None, out: Out = None, keepdims: bool = False, *, where: Any = NO_VALUE) -> Any:
    """Tell whether all items are true along axes: `numpy.all`, faster along short axes.

    Parameters
    ----------
    a, axis, out, keepdims, where
        As in `any`, and so are errors; all items of an empty axis are true.

    Returns
    -------
    ndarray or scalar
        As `any` returns them.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast
    >>> picture = np.array([[[9, 4, 7], [1, 8, 8]]], np.uint8)
    >>> bcast.all(picture == np.array([1, 8, 8], np.uint8), axis=-1)  # where the picture has a colour
    array([[False,  True]])
    """
    return _truth("all", SOME_ZERO, a, axis, out, keepdims, where)


def _extreme(name: str, operation: int, a: Any, axis: Any, out: Any, keepdims: Any, initial: Any, where: Any) -> Any:
    """Do a call of `max` or `min`."""
    array = _readable(a, axis, out) if initial is NO_VALUE and _is_everywhere(where) else None
    keeps = flag_of(keepdims)
    if array is None or keeps is None:
        return _numpys(name, a, axis, out, keepdims, where, initial)
    wanted = dtype_of(array)
    if out is not None and dtype_of(out) != wanted:
        return _numpys(name, a, axis, out, keepdims, where, initial)

    found = _reduced(array, summed_axes(axis, shape_of(array)), operation, wanted, keeps, out)
    if found is None:
        return _numpys(name, a, axis, out, keepdims, where, initial)
    if wanted.num == BOOL.num:  # what holds may be another byte than 1
        np.not_equal(found.view(np.uint8), 0, out=found)
    if out is not None:
        return out
    return found if found.ndim else found[()]


def _truth(name: str, operation: int, a: Any, axis: Any, out: Any, keepdims: Any, where: Any) -> Any:
    """Do a call of `any` or `all`."""
    array = _readable(a, axis, out) if _is_everywhere(where) else None
    keeps = flag_of(keepdims)
    if array is None or keeps is None or (out is not None and dtype_of(out) is not BOOL):
        return _numpys(name, a, axis, out, keepdims, where)

    dtype = MASKS[array.itemsize]
    axes = summed_axes(axis, shape_of(array))
    masks: NDArray[Any] | None
    if len(axes) == array.ndim and array.nbytes >= 2 * DECIDING_BYTES and is_contiguous(array):
        masks = _by_parts(array, operation, dtype, keeps)
    else:
        masks = _reduced(array, axes, operation, dtype, keeps, None)
    if masks is None:
        return _numpys(name, a, axis, out, keepdims, where)
    if out is not None:
        result_array(out, array, shape_of(masks), "a", BOOL)  # which checks it
    compare = np.not_equal if operation == SOME_NONZERO else np.equal
    return compare(masks, 0, out=out)


def _by_parts(array: NDArray[Any], operation: int, dtype: np.dtype[Any], keeps: bool) -> NDArray[Any]:
    """Reduce all of a contiguous array by growing parts, until one decides: what is found early costs no pass."""
    size = size_of(array)
    items = reshaped(array, (size,))
    masks = np.zeros((1,) * array.ndim if keeps else (), dtype)
    begin, length = 0, DECIDING_BYTES // array.itemsize
    while begin < size and not masks.any():
        end = begin + length if size - begin >= 2 * length else size
        reduce_onto(items[begin:end], aligned((end - begin,), (1,)), reshaped(masks, (1,)), operation)
        begin, length = end, 16 * length
    return masks


def _is_everywhere(where: Any) -> bool:
    """Return whether a mask leaves nothing out, as far as that can be seen."""
    return where is NO_VALUE or where is True or where is np.True_


def _readable(a: Any, axis: Any, out: Any) -> NDArray[Any] | None:
    """Return an array that kernels read, if results are for NumPy's arrays; None for what is NumPy's to do."""
    if not (out is None or type(out) is ndarray or type(out) is memmap) or not can_be_read_again(axis):
        return None
    array = a if type(a) is ndarray else array_of("a", a)
    if array is None or not array.ndim or not has_kernels(array):
        return None
    dtype = dtype_of(array)
    return array if dtype.isnative and dtype.kind != "c" else None


def _reduced(
    array: NDArray[Any], axes: Shape, operation: int, dtype: np.dtype[Any], keeps: bool, out: Any
) -> NDArray[Any] | None:
    """Reduce axes of an array by an operation, into `out` or a new array of a dtype; None for what is NumPy's to do.

    A new array has the order of axes that the data have in memory, as NumPy's results do.
    """
    shape = shape_of(array)
    source, left, count = lengths_after(shape, axes, keeps)
    if count <= 1 or size_of(array) == 0:
        return None

    order = order_in_memory(array) if out is None and len(left) > 1 else None
    if order is not None:
        places = list(map(order.index, range(len(shape))))
        turned = tuple(map(places.__getitem__, axes))
        result = _reduced(array.transpose(order), turned, operation, dtype, True, None)
        result = np.asarray(result).transpose(places)
        return result if keeps else result.squeeze(axes)

    result = result_array(out, array, left, "a", dtype)
    reduce_onto(array, aligned(shape, source), result, operation)
    return result


def _numpys(name: str, a: Any, axis: Any, out: Any, keepdims: Any, where: Any, initial: Any = NO_VALUE) -> Any:
    """Call NumPy's function with the arguments that are no defaults: classes that override it need not know all."""
    if isinstance(out, ndarray):
        refuse_repeated(out, out)
    if axis is not None and type(axis) is not int and type(axis) is not tuple and not is_handed_on(a):
        rest = {"where": where} if initial is NO_VALUE else {"where": where, "initial": initial}
        return OURS[name](a, axes_argument(axis), out, keepdims, **rest)  # an iterator has its items only once
    if isinstance(out, ndarray) and is_of_package(dtype_of(out)):
        a = with_plain_bytes(a)
    options: dict[str, Any] = {}
    for key, value in (("axis", axis), ("out", out)):
        if value is not None:
            options[key] = value
    if keepdims is not False:
        options["keepdims"] = keepdims
    for key, value in (("where", where), ("initial", initial)):
        if value is not NO_VALUE:
            options[key] = value
    return NUMPYS[name](a, **options)


OURS: dict[str, Callable[..., Any]] = {"max": max, "min": min, "any": any, "all": all}
