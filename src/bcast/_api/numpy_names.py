"""NumPy's own broadcasting functions, with NumPy's signatures: a few lines each over an alignment."""

import operator
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from numpy import broadcast_arrays as views_of  # bound here, for users may put our own in its place
from numpy import ndarray
from numpy.typing import ArrayLike, NDArray

from bcast._api.broadcast import Integers, as_array, materialise
from bcast._rules.alignment import aligned, merge, right_aligned, shape_argument, show
from bcast._runtime.result import shape_of

__all__ = ["broadcast_arrays", "broadcast_shapes", "broadcast_to", "meshgrid"]

Indexing: TypeAlias = Literal["xy", "ij"]


def broadcast_to(array: ArrayLike, shape: Integers | int, *, out: NDArray[Any] | None = None) -> NDArray[Any]:
    """Broadcast `array` to a new array of `shape`: `numpy.broadcast_to` with a result to keep and to write to.

    Parameters
    ----------
    array : array_like
        What is replicated.
    shape : int, or 1-D sequence or array of int
        The shape to reach; an int stands for one axis.
    out : ndarray, optional
        Where the result goes: exactly of its shape and dtype, writeable, of any strides. It may overlap `array`.

    Returns
    -------
    ndarray
        A new C-contiguous, writeable array that owns its memory, or `out`; never a view, as NumPy's is.

    Raises
    ------
    ValueError
        If `array` does not fit `shape` by NumPy's rule; if `out` has another shape or is read-only.
    TypeError
        If `shape` is not integer; if `array` is masked; if `out` is no array or has another dtype.

    See Also
    --------
    broadcast : The same under any of five rules.
    numpy.broadcast_to : A read-only view, without any copy.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast
    >>> bcast.broadcast_to(np.array([1, 2, 3]), (3, 3))
    array([[1, 2, 3],
           [1, 2, 3],
           [1, 2, 3]])
    """
    data = as_array("array", array)
    alignment = right_aligned(shape_of(data), shape_argument("shape", _tuple_of_one(shape)), "shape")
    return materialise(data, alignment, out, "shape")


def broadcast_arrays(*args: ArrayLike) -> tuple[NDArray[Any], ...]:
    """Broadcast any number of arrays against each other.

    Parameters
    ----------
    *args : array_like
        The arrays, which must be compatible by NumPy's two-way rule.

    Returns
    -------
    tuple of ndarray
        The arrays at their common shape: new, C-contiguous, writeable, each owning its memory. NumPy's are views.

    Raises
    ------
    ValueError
        If the shapes are not compatible.
    TypeError
        If an array is masked.

    See Also
    --------
    broadcast_shapes : The common shape alone.
    numpy.broadcast_arrays : Views, without any copy.

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
        results.append(materialise(arrays[i], right_aligned(shapes[i], shape, "args"), None, "args"))
    return tuple(results)


def broadcast_shapes(*args: Integers | int) -> tuple[int, ...]:
    """Return the shape that arrays of the given shapes have when broadcast against each other.

    Parameters
    ----------
    *args : int, or 1-D sequence or array of int
        The shapes; an int stands for one axis.

    Returns
    -------
    tuple of int
        The common shape; ``()`` of no shapes.

    Raises
    ------
    ValueError
        If the shapes are not compatible by NumPy's two-way rule, or a length is negative.
    TypeError
        If a shape is not integer.

    See Also
    --------
    infer_shape : The output's shape under any of five rules.
    numpy.broadcast_shapes : NumPy's own.

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
        shapes.append(shape_argument("args", _tuple_of_one(arg)))
    return merge(shapes, "args")


def meshgrid(
    *xi: ArrayLike, copy: bool = True, sparse: bool = False, indexing: Indexing = "xy"
) -> tuple[NDArray[Any], ...]:
    """Make the grid of which `xi` are the coordinates along each axis: for each of them, an array over all its points.

    Parameters
    ----------
    *xi : array_like
        The coordinates; what is not 1-D is flattened.
    copy : bool, optional
        Whether the results are arrays of their own. Otherwise they are views of `xi`, as NumPy makes them: items of a
        dense one share their memory.
    sparse : bool, optional
        Whether to leave each result at length 1 along the axes of the others, for operations that broadcast.
    indexing : {'xy', 'ij'}, optional
        Whether the first two axes of the results are those of the second and the first of `xi`, as rows and columns of
        an image, or in the order of `xi`.

    Returns
    -------
    tuple of ndarray
        One for each of `xi`, of its dtype: new, C-contiguous, writeable, each owning its memory; not so without `copy`.

    Raises
    ------
    ValueError
        If `indexing` is neither of the two; if a dense grid cannot be addressed.
    TypeError
        If one of `xi` is masked.
    MemoryError
        If there is no memory for the grid.

    See Also
    --------
    broadcast_arrays : Broadcast arrays of any shape against each other.
    numpy.meshgrid : NumPy's own.

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
    """Return the arrays of a grid, or without `copy` what broadcasts to them; `swapped` are its first two axes."""
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
            arrays[i] = materialise(flat, aligned(source if sparse else shape, source), None, "xi")
        else:
            arrays[i] = array.reshape(source)
    return tuple(arrays)


def _tuple_of_one(shape: Any) -> Any:
    """Let a bare integer stand for a shape of one axis, as NumPy does; all shapes are checked later."""
    if type(shape) is tuple or type(shape) is list:
        return shape
    if isinstance(shape, ndarray) and shape_of(shape):
        return shape  # whatever its class says of an index
    try:
        operator.index(shape)
    except TypeError:
        return shape
    return (shape,)
