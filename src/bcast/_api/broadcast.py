"""`broadcast` and its kin, which find an alignment and copy along it: shapes, axes and array-likes in, arrays out.

`infer_shape` and `broadcast_shapes` only find the shape. The rules of other systems come first, then NumPy's functions.
"""

import operator
from collections.abc import Sequence
from typing import Any

from numpy import broadcast_arrays as views_of  # bound here, as users may replace NumPy's by ours
from numpy import ndarray
from numpy.typing import ArrayLike, NDArray

from bcast._api.converted import as_array, materialise
from bcast._rules.alignment import LIKE, Alignment, align, align_shapes, aligned, merge, right_aligned
from bcast._rules.arguments import Shape, mode_of, shape_argument, show
from bcast._rules.types import AxesLike, Casting, DType, Indexing, Mode, Out, ShapeLike, SizesLike
from bcast._runtime.arrays import shape_of


def broadcast(
    data: ArrayLike,
    target_shape: ShapeLike | None = None,
    axes_mapping: ShapeLike | None = None,
    *,
    mode: Mode | None = None,
    axis: int = -1,
    broadcast_axes: AxesLike | None = None,
    dtype: DType = None,
    casting: Casting = "same_kind",
    out: Out = None,
    shape: Any = None,
) -> NDArray[Any]:
    """Broadcast `data` to a new array of `target_shape`.

    Parameters
    ----------
    data : array_like, shape (s_0, ..., s_k)
        The array to replicate, of any dtype and memory layout. Masked arrays raise an error, because the mask would be
        lost.
    target_shape : 1-D sequence or array of int
        The shape to broadcast to. There are no wildcards: 0 means an empty axis, and negative lengths are errors.
    axes_mapping : 1-D sequence or array of int, optional
        In explicit mode, ``axes_mapping[i]`` is the axis of the output that axis ``i`` of `data` feeds. The axes are
        strictly increasing, one for each axis of `data`, and are not counted from the end.
    mode : str, optional
        The rule that matches axes of `data` with axes of the output. The default is 'explicit' if `axes_mapping` or
        `broadcast_axes` is given, 'pdpd' if `axis` is given, and otherwise 'numpy':

        ``'numpy'``
            Shapes are aligned on the right. Each axis of `data` has the length of its output axis, or length 1.
        ``'explicit'``
            Either `axes_mapping` places the axes of `data`, and axes of length 1 still stretch; or `broadcast_axes`
            names the axes that `data` lacks, and no axis stretches.
        ``'bidirectional'``
            Shapes are aligned on the right. Axes of length 1 stretch both in `data` and in `target_shape`, so the
            output has the shape of ``data * ones(target_shape)``.
        ``'pdpd'``
            `data`, without its trailing axes of length 1, is aligned with `target_shape` starting at `axis`.
        ``'none'``
            Nothing is broadcast: `data` must have the shape `target_shape`.
    axis : int, optional
        In mode 'pdpd', the output axis at which `data` starts. The default, -1, means
        ``len(target_shape) - data.ndim``.
    broadcast_axes : 1-D sequence, array or set of int, optional
        In explicit mode, the axes of the output that `data` lacks. The other axes must have exactly `data`'s lengths.
    dtype : data-type, optional
        The dtype of the result, to which items are converted before they are replicated. The default is that of `out`
        if it is given, or else `data`'s.
    casting : {'no', 'equiv', 'safe', 'same_kind', 'unsafe'}, optional
        The allowed conversions, by the rules of `numpy.can_cast`.
    out : ndarray or tensor, optional
        The array to write the result into. It must have the shape of the result and be writeable; it may have any
        strides, except 0 along an axis of several items. Its dtype must be `dtype`, or if that is not given, one that
        `casting` allows. It may overlap `data`.
    shape : None
        Not supported. Use `target_shape`, the operators' name for it.

    Returns
    -------
    ndarray
        A new C-contiguous, writeable array that owns its memory, of `data`'s dtype or of `dtype`; or `out`, if given.
        Unlike the result of `numpy.broadcast_to`, it is never a view, even if nothing had to be replicated.

    Raises
    ------
    ValueError
        If `data` does not fit `target_shape` under `mode`; if `mode` or `casting` is unknown; if an argument is given
        that the mode does not use; if the output would be too large to address; if `out` has another shape or is
        read-only; if an item cannot be converted, such as a word to a number.
    numpy.exceptions.AxisError
        If an axis lies outside the output. This error is both a `ValueError` and an `IndexError`.
    TypeError
        If shapes or axes are not 1-D sequences of integers; if `data` is masked; if `casting` does not allow the
        conversion; if `out` is not an array or has another dtype than `dtype`.
    MemoryError
        If there is not enough memory for the output.

    See Also
    --------
    broadcast_like : Broadcast to the shape of another array.
    infer_shape : Find the shape of the result only.
    unbroadcast : The adjoint, which sums a gradient back to the data's shape.
    numpy.broadcast_to : Make a read-only view, without copying.

    Notes
    -----
    Modes 'numpy', 'explicit' (with `axes_mapping`) and 'pdpd' come from OpenVINO's Broadcast-1 and Broadcast-3. Mode
    'bidirectional' comes from Broadcast-3, and is the rule of ONNX Expand. `broadcast_axes` is the argument of nGraph's
    Broadcast. Copies preserve all bytes: NaN payloads, the signs of zeros and the padding of structures.

    With another `dtype`, the result and NumPy's warnings are the same as for
    ``broadcast(...).astype(dtype, casting=casting)``, but only `data` is converted, block by block. If a conversion is
    not allowed, or a warning is an error, `out` stays unchanged.

    Arrays of other libraries are accepted, and the result is a NumPy array. PyTorch tensors and JAX arrays in CPU
    memory are read in place. Arrays on other devices, such as all CuPy arrays, raise an error. Units and labels, such
    as astropy's and xarray's, are lost. Dask arrays are computed; use `bcast.dask` instead. `out` may also be a tensor
    in CPU memory, which is then returned.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast
    >>> bcast.broadcast([1, 2, 3], (2, 3))
    array([[1, 2, 3],
           [1, 2, 3]])

    A gray image becomes RGB: its two axes become the output's first two. Alternatively, name the axis that repeats:

    >>> gray = np.array([[10, 20], [30, 40]], dtype=np.uint8)
    >>> rgb = bcast.broadcast(gray, (2, 2, 3), [0, 1], mode="explicit")
    >>> rgb[0].tolist()
    [[10, 10, 10], [20, 20, 20]]
    >>> bool((bcast.broadcast(gray, (2, 2, 3), broadcast_axes=[2], mode="explicit") == rgb).all())
    True

    The same in floats, without an intermediate array of floats:

    >>> bcast.broadcast(gray, (2, 2, 3), [0, 1], mode="explicit", dtype=np.float32)[0]
    array([[10., 10., 10.],
           [20., 20., 20.]], dtype=float32)

    A bias for three channels over a batch in NCHW order, by PaddlePaddle's rule:

    >>> bcast.broadcast([1.0, 2.0, 3.0], (8, 3, 32, 32), mode="pdpd", axis=1).shape
    (8, 3, 32, 32)
    """
    if shape is not None:
        refuse_shape(shape)
    array = as_array("data", data)
    alignment = align(shape_of(array), target_shape, axes_mapping, mode, axis, broadcast_axes)
    return materialise(array, alignment, alignment.shape, out, "target_shape", dtype, casting)


def broadcast_like(
    data: ArrayLike,
    like: ArrayLike,
    axes_mapping: ShapeLike | None = None,
    *,
    mode: Mode | None = None,
    axis: int = -1,
    broadcast_axes: AxesLike | None = None,
    dtype: DType = None,
    casting: Casting = "same_kind",
    out: Out = None,
) -> NDArray[Any]:
    """Broadcast `data` to a new array of `like`'s shape.

    Parameters
    ----------
    data : array_like
        The array to replicate.
    like : array_like, shape (t_0, ..., t_n)
        The array whose shape is the target. Its dtype and values are not used.
    axes_mapping, mode, axis, broadcast_axes, dtype, casting, out
        As in `broadcast`, including errors. Empty `broadcast_axes` mean all axes, as in nGraph's BroadcastLike.

    Returns
    -------
    ndarray
        Like the result of `broadcast`.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast
    >>> image = np.zeros((2, 3), dtype=np.float32)
    >>> bcast.broadcast_like([1, 2, 3], image)
    array([[1, 2, 3],
           [1, 2, 3]])
    >>> bcast.broadcast_like(7, image, mode="explicit", broadcast_axes=[])
    array([[7, 7, 7],
           [7, 7, 7]])
    """
    array = as_array("data", data)
    shape = shape_of(like if isinstance(like, ndarray) else as_array("like", like))
    alignment = align_like(shape_of(array), shape, like, axes_mapping, mode, axis, broadcast_axes)
    return materialise(array, alignment, alignment.shape, out, "like", dtype, casting)


# The user's arguments, as many as there are: `broadcast_like` describes them.
def align_like(
    data: tuple[int, ...], shape: tuple[int, ...], like: Any, axes_mapping: Any, mode: Any, axis: Any, axes: Any
) -> Alignment:
    """Align the shape of data with the shape of `like`; raise an error that helps if `like` looks like a shape."""
    try:
        return align_shapes(data, shape, axes_mapping, mode, axis, axes, LIKE)
    except ValueError as error:
        if isinstance(like, (tuple, list)):
            text = str(error).partition("; ")[0]
            raise type(error)(f"{text}; `like` is an array: to pass a shape, call `broadcast`") from None
        raise


def infer_shape(
    data_shape: ShapeLike,
    target_shape: ShapeLike | None = None,
    axes_mapping: ShapeLike | None = None,
    *,
    mode: Mode | None = None,
    axis: int = -1,
    broadcast_axes: AxesLike | None = None,
    shape: Any = None,
) -> tuple[int, ...]:
    """Return the shape of the result of `broadcast` for data of shape `data_shape`.

    Parameters
    ----------
    data_shape : 1-D sequence or array of int
        The shape of the data.
    target_shape, axes_mapping, mode, axis, broadcast_axes, shape
        As in `broadcast`, including errors.

    Returns
    -------
    tuple of int
        `target_shape`, or in mode 'bidirectional' the merged shape.

    Examples
    --------
    >>> import bcast
    >>> bcast.infer_shape((16, 1, 1), (1, 16, 50, 50))
    (1, 16, 50, 50)
    """
    if shape is not None:
        refuse_shape(shape)
    own = shape_argument("data_shape", data_shape)
    return align(own, target_shape, axes_mapping, mode, axis, broadcast_axes).shape


def refuse_shape(shape: object) -> None:
    """Refuse `shape`, NumPy's name for what the operators call `target_shape`."""
    raise TypeError(f"`target_shape` expected the output's shape, got it as `shape`; use target_shape={show(shape)}")


def broadcast_to(
    array: ArrayLike, shape: SizesLike, *, dtype: DType = None, casting: Casting = "same_kind", out: Out = None
) -> NDArray[Any]:
    """Broadcast `array` to a new array of `shape`: `numpy.broadcast_to` with a writable result.

    Parameters
    ----------
    array : array_like
        The array to replicate.
    shape : int, or 1-D sequence or array of int
        The shape to broadcast to; an int means a shape of one axis.
    dtype, casting, out
        As in `broadcast`, including errors.

    Returns
    -------
    ndarray
        Like the result of `broadcast`: never a view, unlike NumPy's.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast
    >>> bcast.broadcast_to(np.array([1, 2, 3]), (2, 3))
    array([[1, 2, 3],
           [1, 2, 3]])
    """
    data = as_array("array", array)
    alignment = right_aligned(shape_of(data), shape_argument("shape", tuple_of_one(shape)), "shape")
    return materialise(data, alignment, alignment.shape, out, "shape", dtype, casting)


def broadcast_arrays(*args: ArrayLike) -> tuple[NDArray[Any], ...]:
    """Broadcast any number of arrays against each other.

    Parameters
    ----------
    *args : array_like
        The arrays, whose shapes must be compatible by NumPy's two-way rule. Errors are as in `broadcast`.

    Returns
    -------
    tuple of ndarray
        New C-contiguous, writeable arrays of the common shape that own their memory. NumPy's are views.

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


def broadcast_shapes(*args: SizesLike) -> tuple[int, ...]:
    """Return the common shape to which arrays of the given shapes broadcast.

    Parameters
    ----------
    *args : int, or 1-D sequence or array of int
        The shapes, which must be compatible by NumPy's two-way rule; an int means a shape of one axis.

    Returns
    -------
    tuple of int
        The common shape; ``()`` if no shapes are given.

    Examples
    --------
    >>> import bcast
    >>> bcast.broadcast_shapes((1, 2), (3, 1), (3, 2))
    (3, 2)
    """
    shapes = []
    for arg in args:
        shapes.append(shape_argument("args", tuple_of_one(arg)))
    return merge(shapes, "args")


def meshgrid(
    *xi: ArrayLike, copy: bool = True, sparse: bool = False, indexing: Indexing = "xy"
) -> tuple[NDArray[Any], ...]:
    """Make the coordinates of all points of a grid from the coordinates `xi` along each axis.

    Parameters
    ----------
    *xi : array_like
        The coordinates along each axis. Arrays that are not 1-D are flattened. Errors are as in `broadcast`.
    copy : bool, optional
        Whether the results are new arrays. Otherwise they are views of `xi`, as NumPy makes them.
    sparse : bool, optional
        Whether each result keeps length 1 along the axes of the others, for operations that broadcast.
    indexing : {'xy', 'ij'}, optional
        The order of the axes. With 'ij' it is the order of `xi`. With 'xy' the first two axes are swapped, like the
        rows and columns of an image.

    Returns
    -------
    tuple of ndarray
        One array for each of `xi`, of the same dtype, as `broadcast` returns it; without `copy`, a view.

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
    swapped = mode_of(indexing, ("xy", "ij"), "indexing") == "xy"
    grid = _grid(xi, copy, sparse, swapped and len(xi) > 1)
    return grid if copy or sparse else views_of(*grid)


def _grid(xi: Sequence[ArrayLike], copy: bool, sparse: bool, swapped: bool) -> tuple[NDArray[Any], ...]:
    """Return the arrays of a grid, or without `copy` views that broadcast to it; `swapped` swaps the first two axes."""
    rank = len(xi)
    arrays: list[NDArray[Any]] = []
    lengths = [1] * rank
    for i in range(rank):
        array = as_array("xi", xi[i])
        arrays.append(array)
        lengths[_axis_of(i, swapped)] = array.size
    shape = shape_argument("xi", (1,) * rank if sparse else tuple(lengths))

    for i in range(rank):
        axis = _axis_of(i, swapped)
        source = (1,) * axis + (lengths[axis],) + (1,) * (rank - axis - 1)
        array = arrays[i]
        arrays[i] = _broadcast_line(array, source, source if sparse else shape) if copy else array.reshape(source)
    return tuple(arrays)


def _axis_of(i: int, swapped: bool) -> int:
    """Return the axis of a grid that the coordinates number `i` belong to."""
    return 1 - i if swapped and i < 2 else i


def _broadcast_line(array: NDArray[Any], source: Shape, shape: Shape) -> NDArray[Any]:
    """Broadcast the items of an array, which has shape `source` in the grid, to a new array."""
    flat = array if array.ndim == 1 else array.reshape(-1)
    return materialise(flat, aligned(shape, source), shape, None, "xi", None, "same_kind")


def tuple_of_one(shape: Any) -> Any:
    """Turn a bare integer into a shape of one axis, as NumPy does; all shapes are checked later."""
    if type(shape) is tuple or type(shape) is list or (isinstance(shape, ndarray) and shape_of(shape)):
        return shape  # even if its class has an `__index__`
    try:
        operator.index(shape)
    except TypeError:
        return shape
    return (shape,)
