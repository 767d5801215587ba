"""`vecdot`, `matvec`, `cross`, `norm` and `stack`: NumPy's functions of vectors, faster for vectors of 2 to 4 items.

In: NumPy's arguments. Out: NumPy's results, except for the last bits of sums. NumPy's functions, in `NUMPYS`, compute
the calls without kernels: longer vectors, complex numbers, objects, other arguments.
"""

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy import ndarray
from numpy.typing import ArrayLike, NDArray

from bcast._api.converted import as_base, as_operand, is_handed_on, is_of_package, overrides
from bcast._api.exact_products import own_array
from bcast._api.exact_products import vecdots as exact_vecdots
from bcast._api.exact_squares import norms as exact_norms
from bcast._api.reductions import reduced_axes, rounded_into
from bcast._reduce.vectors import cross_vectors, dot_vectors, measure_vectors, stack_vectors, transform_vectors
from bcast._reduction import has_kernels, norm_onto, sum_onto
from bcast._rules.alignment import aligned
from bcast._rules.types import Axes, Out
from bcast._runtime.arrays import reduced_shape, result_array
from bcast._runtime.core import LONG_AXIS_ITEMS, MANY_PRODUCTS

MAX_AXES = 64  # the most axes of an array
FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
LENGTHS = range(5, LONG_AXIS_ITEMS + 1)  # for many vectors of these lengths, `sum_onto` is faster than BLAS
CONVERTED: tuple[Any, ...] = (list, tuple)  # NumPy's functions convert these to arrays


def _matvec_by_matmul(x1: Any, x2: Any, /, **options: Any) -> Any:
    """Replace `numpy.matvec`, which NumPy 2.0 and 2.1 lack."""
    return np.matmul(x1, np.asarray(x2)[..., None], **options)[..., 0]


# NumPy's own, even under a patch
NUMPYS: dict[str, Callable[..., Any]] = {
    "vecdot": np.vecdot,
    "matvec": getattr(np, "matvec", _matvec_by_matmul),
    "cross": np.cross,
    "norm": np.linalg.norm,
    "stack": np.stack,
}


def vecdot(
    x1: ArrayLike, x2: ArrayLike, /, out: Out = None, *, axis: int = -1, exact: bool = False, **others: Any
) -> Any:
    """Compute dot products of vectors: `numpy.vecdot`, faster for short vectors.

    Parameters
    ----------
    x1, x2 : array_like
        Arrays of vectors, of any layout. All axes except the vector axis broadcast by NumPy's rule.
    out : ndarray, optional
        The array to write the result into. It may overlap `x1` and `x2`: the result is as if they had been copied
        first.
    axis : int, optional
        The axis of the vectors in both arrays. The default is the last one.
    exact : bool, optional
        Whether sums of floats and complex numbers are exact, then rounded once, for any finite items: their products
        are added with their rounding errors. The default takes less time.
    **others
        Other keywords of `numpy.vecdot`, such as `axes` and `dtype`. Calls with them go to that function.

    Returns
    -------
    ndarray or scalar
        The sums, of NumPy's dtype; a scalar if no axis remains; or `out`, if given.

    Raises
    ------
    ValueError, TypeError
        Exceptions of `numpy.vecdot`, if the shapes or `out` do not fit. If `exact` is given with other keywords, or
        with arrays that no kernel reads: long double, objects and subclasses of ndarray.

    See Also
    --------
    matvec, cross, norm
    unbroadcast : With `times`, it sums products along any axes.

    Notes
    -----
    Sums of float16 and float32 are rounded once, from float64. Products of float64 are rounded, and their sums are
    compensated, so the error does not grow when they cancel. Sums of integers wrap around as in NumPy. Overflow and
    invalid values are reported as by `numpy.vecdot`, but sums of 2 to 4 items do not overflow in intermediate results.
    If one product is infinite, products of finite items therefore do not matter; if one is NaN, nothing is reported.

    With `exact`, an infinite or NaN result is that of IEEE arithmetic without intermediate overflow, and nothing is
    reported.

    Kernels multiply vectors of 2 to 4 items, and large numbers of vectors of 5 to 32 items of float32 or float64 along
    the last axis, without `out`. `numpy.vecdot` handles all other calls: vectors of other lengths; bools, complex
    numbers, long double and objects; dtypes of other packages; an `out` of another dtype; subclasses of ndarray.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast
    >>> picture = np.array([[[100, 150, 200], [0, 80, 40]]], np.uint8)
    >>> bcast.vecdot(picture, [0.25, 0.5, 0.25])  # gray
    array([[150.,  50.]])
    >>> bcast.vecdot([1e300, 1.0, 1e300], [1e300, 0.5, -1e300], exact=True)
    np.float64(0.5)
    """
    if exact:
        if others or type(axis) is not int:
            raise ValueError("`exact` expected False with other keywords than `axis`, an integer, got True")
        found = _exact_vecdot(x1, x2, out, axis)
        if found is not None:
            return found
    if others or type(axis) is not int or not -MAX_AXES <= axis < MAX_AXES:
        return _vecdot_of_numpy(x1, x2, out, axis, **others)
    a = np.asarray(x1) if type(x1) in CONVERTED else x1
    b = np.asarray(x2) if type(x2) in CONVERTED else x2
    return dot_vectors(a, b, out, axis, _vecdot_of_longer)


def _exact_vecdot(x1: Any, x2: Any, out: Any, axis: int) -> Any:
    """Return exact dot products; None if NumPy's function is exact, or raises."""
    if type(out) is tuple:  # as ufuncs take it
        if len(out) != 1:
            return None
        out = out[0]
    sums = exact_vecdots(x1, x2, out, axis)
    return None if sums is None else rounded_into(out, sums, None)


def _vecdot_of_longer(x1: Any, x2: Any, out: Any, axis: int) -> Any:
    """Multiply vectors for which there is no kernel of short vectors."""
    sums = _sum_products(x1, x2) if out is None and axis == -1 else None
    return _vecdot_of_numpy(x1, x2, out, axis) if sums is None else sums


def _sum_products(a: Any, b: Any) -> NDArray[Any] | None:
    """Return the sums of products of many vectors along the last axis, if they are faster than BLAS and are finite."""
    if type(a) is not ndarray or type(b) is not ndarray or a.size < MANY_PRODUCTS > b.size:
        return None
    if a.size < b.size or (a.size == b.size and a.ndim < b.ndim):
        a, b = b, a
    if a.dtype != b.dtype or a.dtype not in (FLOAT32, FLOAT64) or not _are_short_vectors(a, b):
        return None

    source = (*a.shape[:-1], 1)
    sums = np.empty(source, a.dtype)
    sum_onto(a, aligned(a.shape, source), sums, b)
    is_finite = np.logical_and.reduce(np.isfinite(sums), axis=None)
    return sums.reshape(a.shape[:-1]) if is_finite else None  # for others, NumPy reports the errors


def _are_short_vectors(a: NDArray[Any], b: NDArray[Any]) -> bool:
    """Return whether two arrays have vectors of one of `LENGTHS`, and `b` broadcasts to `a`."""
    if not 0 < b.ndim <= a.ndim or a.shape[-1] != b.shape[-1] or a.shape[-1] not in LENGTHS:
        return False
    return all(own in (1, length) for own, length in zip(b.shape, a.shape[a.ndim - b.ndim :], strict=True))


def _vecdot_of_numpy(x1: Any, x2: Any, out: Any, axis: Any, /, **others: Any) -> Any:
    """Have NumPy multiply vectors, with only the arguments that it needs: classes that override it see them."""
    if axis != -1:
        others["axis"] = axis
    return NUMPYS["vecdot"](x1, x2, **others) if out is None else NUMPYS["vecdot"](x1, x2, out=out, **others)


def matvec(x1: ArrayLike, x2: ArrayLike, /, out: Out = None, **others: Any) -> Any:
    """Multiply matrices and vectors: `numpy.matvec`, faster for matrices of 2 to 4 rows and columns.

    Parameters
    ----------
    x1 : array_like
        One matrix or many, along the last two axes.
    x2 : array_like
        Vectors, along the last axis. All other axes of both broadcast by NumPy's rule.
    out : ndarray, optional
        As in `vecdot`.
    **others
        Other keywords of `numpy.matvec`. Calls with them go to that function.

    Returns
    -------
    ndarray
        Vectors, along the last axis: ``bcast.matvec(matrix, points)`` is ``points @ matrix.T``.

    Raises
    ------
    ValueError, TypeError
        Exceptions of `numpy.matvec`.

    Notes
    -----
    Values, errors and the calls that go to NumPy are as in `vecdot`. A single matrix with fewer than 2 or more than 4
    columns also goes to NumPy. Several matrices, and matrices with more rows, are multiplied row by row.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast
    >>> turn = np.array([[0.0, -1.0], [1.0, 0.0]])
    >>> bcast.matvec(turn, np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[-2.,  1.],
           [-4.,  3.]])
    """
    if others:
        return _matvec_of_numpy(x1, x2, out, **others)
    a = np.asarray(x1) if type(x1) in CONVERTED else x1
    b = np.asarray(x2) if type(x2) in CONVERTED else x2
    return transform_vectors(a, b, out, _matvec_of_numpy)


def _matvec_of_numpy(x1: Any, x2: Any, out: Any, /, **others: Any) -> Any:
    """Have NumPy multiply matrices and vectors, with only the arguments that it needs."""
    return NUMPYS["matvec"](x1, x2, **others) if out is None else NUMPYS["matvec"](x1, x2, out=out, **others)


def cross(
    a: ArrayLike, b: ArrayLike, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Any:
    """Compute cross products of vectors: `numpy.cross`, faster for vectors of 3 items.

    Parameters
    ----------
    a, b : array_like
        Arrays of vectors, of any layout. All axes except the vector axis broadcast by NumPy's rule.
    axisa, axisb, axisc : int, optional
        The axes of the vectors in `a`, in `b` and in the result. The default is the last one.
    axis : int, optional
        One axis for all three.

    Returns
    -------
    ndarray
        The products, equal to NumPy's bit for bit.

    Raises
    ------
    ValueError, numpy.exceptions.AxisError
        Exceptions of `numpy.cross`.

    Notes
    -----
    `numpy.cross` handles calls without kernels: vectors of 2 items, float16, bools, complex numbers and subclasses of
    ndarray; also calls with overflow or invalid values, for which it warns.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast
    >>> edges = np.array([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0]])
    >>> bcast.cross(edges, [0.0, 0.0, 1.0])
    array([[ 0., -1.,  0.],
           [ 2.,  0.,  0.]])
    """
    one = np.asarray(a) if type(a) in CONVERTED else a
    other = np.asarray(b) if type(b) in CONVERTED else b
    result = None
    own = axisa, axisb, axisc, axis
    if axis is not None:
        axisa = axisb = axisc = axis
    if _are_axes(axisa, axisb, axisc):
        result = cross_vectors(one, other, axisa, axisb, axisc)
    return NUMPYS["cross"](a, b, *own) if result is None else result


def _are_axes(*axes: Any) -> bool:
    """Return whether all of these are integers that may be axes."""
    for axis in axes:  # noqa: SIM110 (a generator is half as fast)
        if type(axis) is not int or not -MAX_AXES <= axis < MAX_AXES:
            return False
    return True


def norm(x: ArrayLike, axis: Axes = -1, *, keepdims: bool = False, exact: bool = False) -> Any:
    """Compute the 2-norm of vectors along axes: the root of the sum of squares.

    Parameters
    ----------
    x : array_like
        Numbers, of any layout.
    axis : int or tuple of int, optional
        The axes of the vectors. The default is the last one; None means all.
    keepdims : bool, optional
        Whether the result keeps these axes, with length 1.
    exact : bool, optional
        Whether each norm is the number nearest to the root of the exact sum of squares, for any items. The default
        takes less time.

    Returns
    -------
    ndarray or scalar
        For one axis, the result of ``numpy.linalg.norm(x, axis=axis, keepdims=keepdims)`` except for the last bits:
        real numbers, of float64 if `x` has integers. Several axes make one long vector; for two axes, its norm is the
        matrix norm that NumPy computes.

    Raises
    ------
    numpy.exceptions.AxisError, ValueError
        If `axis` names an axis that `x` lacks, or one axis twice. Exceptions of `numpy.linalg.norm` pass through.
    TypeError
        If `exact` is given with data that no kernel reads: long double, objects and subclasses of ndarray.

    See Also
    --------
    vecdot

    Notes
    -----
    The data is read once. Squares are added in float64, with compensation if the data is float64, and the root is
    rounded once. Norms of float16 and float32 never overflow in intermediate results, and neither do norms of 2 to 4
    items of float64, which also lose no digits if the squares are tiny. For more items of float64, the sum of the
    squares may overflow or lose digits. There is no warning.

    `numpy.linalg.norm` handles data that no kernel reads: long double, objects; subclasses of ndarray; empty arrays.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast
    >>> points = np.array([[3.0, 4.0], [6e200, 8e200]])
    >>> bcast.norm(points)
    array([5.e+000, 1.e+201])
    >>> points / bcast.norm(points, keepdims=True)
    array([[0.6, 0.8],
           [0.6, 0.8]])
    >>> bcast.norm([3e-200, 4e-200, 0, 0, 0], exact=True)
    np.float64(5e-200)
    """
    if exact:
        return _exact_norm(own_array("x", x), axis, keepdims)
    array = x if type(x) is ndarray else None if is_handed_on(x) else as_base(as_operand("x", x))
    if array is None:
        return _norm_of_numpy(x, axis, keepdims)
    if type(axis) is int and keepdims is False and -array.ndim <= axis < array.ndim:
        result = measure_vectors(array, axis)
        if result is not None:
            return result
    return _norm_along(array, axis, keepdims)


def _exact_norm(array: Any, axis: Any, keepdims: Any) -> Any:
    """Return norms within 1 unit in the last place."""
    axes = reduced_axes(axis, array.shape)
    keeps = operator.index(keepdims) != 0
    own = array.dtype.newbyteorder("=")
    source = reduced_shape(array.shape, axes, True)
    real = own if own.kind == "f" or is_of_package(own) else FLOAT64 if own.kind != "c" else array.real.dtype
    if array.size == 0 or (source == array.shape and own.kind != "c"):
        return _norm_along(array, axis, keepdims)
    return _without_axes(exact_norms(array, source, real.newbyteorder("=")), axes, keeps)


def _norm_along(array: Any, axis: Any, keepdims: Any) -> Any:
    """Return norms along any axes."""
    shape = array.shape
    axes = reduced_axes(axis, shape)
    keeps = operator.index(keepdims) != 0
    if len(axes) == 1 and 2 <= shape[axes[0]] <= 4:
        result = measure_vectors(array, axes[0])
        if result is not None:
            return np.expand_dims(result, axes[0]) if keeps else result
    if not has_kernels(array) or array.size == 0:
        return _norm_of_numpy(array, axis if axis is None else axes, keeps)

    own = array.dtype.newbyteorder("=")
    if own.kind == "c":
        return _norm_of_parts(array, axes, keeps, own)
    return _without_axes(_norm_of_reals(array, axes, own if own.kind == "f" else FLOAT64), axes, keeps)


def _norm_of_reals(array: Any, axes: tuple[int, ...], dtype: Any) -> Any:
    """Return norms of real numbers, with the reduced axes."""
    shape = array.shape
    source = reduced_shape(shape, axes, True)
    if source == shape:
        return np.abs(array.astype(dtype, copy=False))
    if array.flags.c_contiguous:
        result = result_array(None, array, source, "x", dtype)
    else:
        result = np.empty_like(array, dtype, shape=source)  # in the data's memory order, as in NumPy
    norm_onto(array, aligned(shape, source), result)
    return result


def _norm_of_parts(array: Any, axes: tuple[int, ...], keeps: bool, own: Any) -> Any:
    """Return norms of complex numbers, whose parts become items along a new axis."""
    if array.flags.c_contiguous and array.ndim:
        real = np.dtype(f"f{own.itemsize // 2}")
        plain = array if array.dtype.isnative else array.astype(own)
        parts = plain.view(real).reshape((*plain.shape, 2))
    else:
        parts = np.stack((array.real, array.imag), -1)
    result = _norm_along(parts, (*axes, parts.ndim - 1), False)
    return np.expand_dims(result, axes) if keeps and axes else result


def _without_axes(result: Any, axes: tuple[int, ...], keeps: bool) -> Any:
    """Return a result without axes of length 1, or with them; a scalar if no axis remains."""
    if not keeps:
        result = result.reshape([length for at, length in enumerate(result.shape) if at not in axes])
    return result if result.ndim else result[()]


def _norm_of_numpy(x: Any, axis: Any, keepdims: Any) -> Any:
    """Have NumPy compute norms of vectors. Several axes form one vector here; NumPy would treat two as a matrix."""
    if axis is None or type(axis) is int or isinstance(axis, np.integer):
        return NUMPYS["norm"](x, axis=axis, keepdims=keepdims)
    axes = tuple(axis)
    if len(axes) == 1 or len(axes) == 2:
        return NUMPYS["norm"](x, axis=axes, keepdims=keepdims)
    items = x if overrides(x) else np.asarray(x)  # like `numpy.linalg.norm`, also for subclasses
    size = np.abs(items * 1.0)  # integers become float64, because their squares would wrap around
    return np.sqrt(np.sum(size * size, axis=axes, keepdims=keepdims))


def stack(arrays: Sequence[ArrayLike], axis: int = 0, out: Out = None, **others: Any) -> Any:
    """Join arrays along a new axis: `numpy.stack`, at the speed of memory for 2 to 4 arrays along the last axis.

    Parameters
    ----------
    arrays : sequence of array_like
        Arrays of one shape.
    axis : int, optional
        The new axis of the result. The default is the first one.
    out : ndarray, optional
        The array to write the result into, as in `numpy.stack`.
    **others
        `dtype` and `casting`, as in `numpy.stack`.

    Returns
    -------
    ndarray
        The arrays, or `out`.

    Raises
    ------
    ValueError, numpy.exceptions.AxisError, TypeError
        Exceptions of `numpy.stack`.

    Notes
    -----
    Contiguous arrays of one dtype of 1, 2, 4 or 8 bytes, along the last axis, are interleaved in one pass, on several
    threads. `numpy.stack` itself handles all other calls.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast
    >>> x, y = np.array([1.0, 2.0]), np.array([5.0, 6.0])
    >>> bcast.stack((x, y), axis=-1)
    array([[1., 5.],
           [2., 6.]])
    """
    if out is None and not others and type(arrays) in CONVERTED and type(axis) is int and arrays:
        first: Any = arrays[0]
        if type(first) is ndarray and (axis == -1 or axis == first.ndim):
            result = stack_vectors(arrays)
            if result is not None:
                return result
    return NUMPYS["stack"](arrays, axis=axis, out=out, **others)
