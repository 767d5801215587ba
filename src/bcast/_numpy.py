"""NumPy's own broadcasting functions, with NumPy's signatures: a few lines each over an alignment."""

import operator
from typing import Any

from numpy.typing import ArrayLike, NDArray

from bcast._alignment import merge, right_aligned, shape_argument
from bcast._memory import shape_of
from bcast._ops import Integers, as_array, materialise

__all__ = ["broadcast_arrays", "broadcast_shapes", "broadcast_to"]


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
    arrays = [as_array("args", arg) for arg in args]
    shapes = [shape_of(array) for array in arrays]
    shape = merge(shapes, "args")
    alignments = [right_aligned(own, shape, "args") for own in shapes]
    return tuple([materialise(array, alignments[i], None, "args") for i, array in enumerate(arrays)])


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
    return merge([shape_argument("args", _tuple_of_one(arg)) for arg in args], "args")


def _tuple_of_one(shape: Any) -> Any:
    """Let a bare integer stand for a shape of one axis, as NumPy does; all shapes are checked later."""
    if type(shape) is tuple or type(shape) is list:
        return shape
    try:
        operator.index(shape)
    except TypeError:
        return shape
    return (shape,)
