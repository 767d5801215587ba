"""NumPy's own broadcasting functions, with NumPy's signatures: each finds an alignment and copies along it."""

import operator
from collections.abc import Sequence
from typing import Any, SupportsIndex

from numpy import broadcast_arrays as views_of  # bound here, as users may replace NumPy's by ours
from numpy import ndarray
from numpy.typing import ArrayLike, DTypeLike, NDArray

from bcast._api.broadcast import as_array, into_tensor, is_tensor, materialise
from bcast._rules.alignment import aligned, merge, right_aligned
from bcast._rules.arguments import shape_argument, show
from bcast._rules.types import Casting, Indexing, ShapeLike
from bcast._runtime.arrays import shape_of

__all__ = ["broadcast_arrays", "broadcast_shapes", "broadcast_to", "meshgrid", "tuple_of_one"]


def broadcast_to(
    array: ArrayLike,
    shape: ShapeLike | SupportsIndex,
    *,
    dtype: DTypeLike | None = None,
    casting: Casting = "same_kind",
    out: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """Broadcast `array` to a new array of `shape`: `numpy.broadcast_to` with a result to keep and write to.

    Parameters
    ----------
    array : array_like
        The array to replicate.
    shape : int, or 1-D sequence or array of int
        The shape to broadcast to; an int means a shape of one axis.
    dtype, casting, out
        As in `broadcast`.

    Returns
    -------
    ndarray
        A new C-contiguous, writeable array that owns its memory, of `array`'s dtype or of `dtype`; or `out`, if given.
        It is never a view, as NumPy's is.

    Raises
    ------
    ValueError
        If `array` does not fit `shape` by NumPy's rule; if `out` has another shape or is read-only; if there is no such
        `casting`, or an item cannot be converted.
    TypeError
        If `shape` is not integer; if `array` is masked; if `casting` does not allow the conversion; if `out` is not an
        array or has another dtype than `dtype`.

    See Also
    --------
    broadcast : Broadcast under other rules, too.
    numpy.broadcast_to : Make a read-only view, without copying.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast
    >>> bcast.broadcast_to(np.array([1, 2, 3]), (3, 3))
    array([[1, 2, 3],
           [1, 2, 3],
           [1, 2, 3]])
    >>> bcast.broadcast_to(np.array([1, 2, 3]), (2, 3), dtype=np.float32)
    array([[1., 2., 3.],
           [1., 2., 3.]], dtype=float32)
    """
    if out is not None and is_tensor(out):
        return into_tensor(broadcast_to, out, array, shape, dtype=dtype, casting=casting)
    data = as_array("array", array)
    alignment = right_aligned(shape_of(data), shape_argument("shape", tuple_of_one(shape)), "shape")
    return materialise(data, alignment, alignment.shape, out, "shape", dtype, casting)


def broadcast_arrays(*args: ArrayLike) -> tuple[NDArray[Any], ...]:
    """Broadcast any number of arrays against each other.

    Parameters
    ----------
    *args : array_like
        The arrays, which must be compatible by NumPy's two-way rule.

    Returns
    -------
    tuple of ndarray
        New C-contiguous, writeable arrays of the common shape, each of which owns its memory. NumPy's are views.

    Raises
    ------
    ValueError
        If the shapes are not compatible.
    TypeError
        If an array is masked.

    See Also
    --------
    broadcast_shapes : Find the common shape only.
    numpy.broadcast_arrays : Make views, without copying.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast
    >>> x, y = bcast.broadcast_arrays([[1, 2, 3]], [[4], [5]])
    >>> x
    array([[1, 2, 3],
           [1, 2, 3]])
    >>> y
    array([[4, 4, 4],
           [5, 5, 5]])
    """
    arrays, shapes, results = [], [], []
    for arg in args:
        array = as_array("args", arg)
        arrays.append(array)
        shapes.append(shape_of(array))
    shape = merge(shapes, "args")
    for i in range(len(arrays)):
        alignment = right_aligned(shapes[i], shape, "args")
        results.append(materialise(arrays[i], alignment, shape, None, "args", None, "same_kind"))
    return tuple(results)


def broadcast_shapes(*args: ShapeLike | SupportsIndex) -> tuple[int, ...]:
    """Return the shape that arrays of the given shapes have when broadcast against each other.

    Parameters
    ----------
    *args : int, or 1-D sequence or array of int
        The shapes; an int means a shape of one axis.

    Returns
    -------
    tuple of int
        The common shape; ``()`` if no shapes are given.

    Raises
    ------
    ValueError
        If the shapes are not compatible by NumPy's two-way rule, or a length is negative.
    TypeError
        If a shape is not integer.

    See Also
    --------
    infer_shape : Find the output's shape under other rules, too.
    numpy.broadcast_shapes : NumPy's own function.

    Examples
    --------
    >>> import bcast
    >>> bcast.broadcast_shapes((1, 2), (3, 1), (3, 2))
    (3, 2)
    >>> bcast.broadcast_shapes((6, 7), (5, 6, 1), (7,), (5, 1, 7))
    (5, 6, 7)
    """
    shapes = []
    for arg in args:
        shapes.append(shape_argument("args", tuple_of_one(arg)))
    return merge(shapes, "args")


def meshgrid(
    *xi: ArrayLike, copy: bool = True, sparse: bool = False, indexing: Indexing = "xy"
) -> tuple[NDArray[Any], ...]:
    """Make a grid from the coordinates `xi` along each axis: one array for each of them, over all points of the grid.

    Parameters
    ----------
    *xi : array_like
        The coordinates along each axis. Arrays that are not 1-D are flattened.
    copy : bool, optional
        Whether the results are new arrays. Otherwise they are views of `xi`, as NumPy makes them; items of dense views
        share memory.
    sparse : bool, optional
        Whether each result keeps length 1 along the axes of the others, for operations that broadcast.
    indexing : {'xy', 'ij'}, optional
        The order of the axes. With 'ij' it is the order of `xi`. With 'xy' the first two axes are swapped: axis 0
        belongs to the second of `xi` and axis 1 to the first, as the rows and columns of an image.

    Returns
    -------
    tuple of ndarray
        One array for each of `xi`, of the same dtype: new, C-contiguous, writeable, and owning its memory. Without
        `copy`, views.

    Raises
    ------
    ValueError
        If `indexing` is neither of the two; if a dense grid would be too large to address.
    TypeError
        If one of `xi` is masked.
    MemoryError
        If there is not enough memory for the grid.

    See Also
    --------
    broadcast_arrays : Broadcast arrays of any shape against each other.
    numpy.meshgrid : NumPy's own function.

    Examples
    --------
    >>> import bcast
    >>> x, y = bcast.meshgrid([1, 2, 3], [4, 5])
    >>> x
    array([[1, 2, 3],
           [1, 2, 3]])
    >>> y
    array([[4, 4, 4],
           [5, 5, 5]])
    >>> [axis.shape for axis in bcast.meshgrid([1, 2, 3], [4, 5], sparse=True)]
    [(1, 3), (2, 1)]
    """
    given: object = indexing
    if not isinstance(given, str) or given not in ("xy", "ij"):
        kind = ValueError if isinstance(given, str) else TypeError
        raise kind(f"`indexing` expected 'xy' or 'ij', got {show(given)}")
    grid = _grid(xi, copy, sparse, indexing == "xy" and len(xi) > 1)
    return grid if copy or sparse else views_of(*grid)


def _grid(xi: Sequence[ArrayLike], copy: bool, sparse: bool, swapped: bool) -> tuple[NDArray[Any], ...]:
    """Return the arrays of a grid, or without `copy` views that broadcast to it; `swapped` swaps the first two axes."""
    rank = len(xi)
    arrays: list[NDArray[Any]] = []
    lengths = [1] * rank
    for i in range(rank):
        array = as_array("xi", xi[i])
        arrays.append(array)
        lengths[1 - i if swapped and i < 2 else i] = array.size
    shape = shape_argument("xi", (1,) * rank if sparse else tuple(lengths))
    for i in range(rank):
        array, axis = arrays[i], 1 - i if swapped and i < 2 else i
        source = (1,) * axis + (lengths[axis],) + (1,) * (rank - axis - 1)
        if copy:
            flat = array if array.ndim == 1 else array.reshape(-1)
            alignment = aligned(source if sparse else shape, source)
            arrays[i] = materialise(flat, alignment, alignment.shape, None, "xi", None, "same_kind")
        else:
            arrays[i] = array.reshape(source)
    return tuple(arrays)


def tuple_of_one(shape: Any) -> Any:
    """Let a bare integer stand for a shape of one axis, as NumPy does; all shapes are checked later."""
    if type(shape) is tuple or type(shape) is list:
        return shape
    if isinstance(shape, ndarray) and shape_of(shape):
        return shape  # even if its class has an `__index__`
    try:
        operator.index(shape)
    except TypeError:
        return shape
    return (shape,)
