"""The functions that copy: `broadcast` and related functions, `tile` and `repeat`. In: array-likes. Out: arrays.

`broadcast` finds an alignment and copies along it; `infer_shape` and `broadcast_shapes` only find the shape. The rules
of other systems come first, then NumPy's functions.

Repeating each of n items k times broadcasts (n, 1) to (n, k). Tiling n items k times broadcasts (1, n) to (k, n). The
result then has one axis of n * k items, but that changes nothing in memory. If each item has its own number of
repetitions, these are run lengths. The functions at the end read such numbers.
"""

import operator
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy import broadcast_arrays as views_of  # bound at import: users may patch NumPy's
from numpy import ndarray
from numpy.typing import ArrayLike, NDArray

from bcast._api.converted import (
    as_array,
    convert_counted,
    converts,
    into_tensor,
    is_tensor,
    materialise,
    prepared,
    without_dropped,
)
from bcast._kernel import repeat_counted
from bcast._rules.alignment import LIKE, Alignment, align, align_shapes, aligned, merge, right_aligned
from bcast._rules.arguments import (
    UNFIT,
    Shape,
    all_plain,
    axes_argument,
    counts_argument,
    dtype_argument,
    mode_of,
    place_of,
    plain_counts,
    shape_argument,
    show,
    total_of,
)
from bcast._rules.counts import Counts, counts_of_array, counts_of_tuple
from bcast._rules.types import AxesLike, Casting, CountsLike, DType, Indexing, Mode, Out, ShapeLike, SizesLike
from bcast._runtime.arrays import has_references, result_array, shape_of, size_of, type_of

MAX_SIZE = sys.maxsize


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


# The user's arguments, one by one: `broadcast_like` describes them.
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
    """Return the axis of a grid that coordinates number `i` belong to."""
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


# Items and arrays that are repeated


def tile(
    A: ArrayLike, reps: SizesLike, *, dtype: DType = None, casting: Casting = "same_kind", out: Out = None
) -> NDArray[Any]:
    """Repeat the whole array `A`, `reps` times along each axis: a faster `numpy.tile`.

    Parameters
    ----------
    A : array_like
        The array to tile, of any kind that `broadcast` accepts.
    reps : int, or 1-D sequence or array of int
        The number of repetitions along each axis, 0 or more. `reps` and ``A.shape`` are aligned on the right.
    dtype, casting, out
        As in `broadcast`, including errors.

    Returns
    -------
    ndarray
        Like the result of `broadcast`.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast
    >>> bcast.tile([0, 1, 2], 2)
    array([0, 1, 2, 0, 1, 2])
    >>> bcast.tile(np.array([[1, 2], [3, 4]]), (1, 2))
    array([[1, 2, 1, 2],
           [3, 4, 3, 4]])
    """
    array = as_array("A", A)
    shape = shape_of(array)
    counts = counts_argument("reps", reps, False)
    if len(shape) < len(counts):
        shape = shape_argument("reps", (1,) * (len(counts) - len(shape)) + shape)
    if are_ones(counts):
        return materialise(array, aligned(shape, shape), shape, out, "reps", dtype, casting)
    if len(counts) < len(shape):
        counts = (1,) * (len(shape) - len(counts)) + counts
    whole = _lengths_after(shape, counts, "reps")
    return materialise(array, split(shape, counts, True), whole, out, "reps", dtype, casting)


def repeat(
    a: ArrayLike,
    repeats: CountsLike,
    axis: SizesLike | None = None,
    *,
    dtype: DType = None,
    casting: Casting = "same_kind",
    out: Out = None,
) -> NDArray[Any]:
    """Repeat each item of `a` along one or several axes: a faster `numpy.repeat`.

    Parameters
    ----------
    a : array_like
        The array whose items are repeated, of any kind that `broadcast` accepts.
    repeats : int, 1-D sequence or array of int, or sequence of these
        The number of repetitions, 0 or more; or one number for each item along the axis. For several axes: one number
        for all, or a sequence with a number or numbers for each axis. Whole floats are accepted.
    axis : int, or 1-D sequence of int, optional
        The axis; or the axes, which NumPy does not offer. Negative axes count from the end. By default, `a` is
        flattened first.
    dtype, casting, out
        As in `broadcast`, including errors.

    Returns
    -------
    ndarray
        Like the result of `broadcast`. It has the shape of `a`, except along the repeated axes.

    See Also
    --------
    tile : Repeat the whole array instead of each item.
    unrepeat : The adjoint, which sums the repetitions of each item.

    Notes
    -----
    `numpy.repeat` truncates floats in `repeats`, unless they are in an array, and converts strings. Here, 2.0 always
    counts as 2, while 2.7, NaN, infinity and strings are errors. Unlike in NumPy, arrays of uint64 are accepted. No
    other thread may change an array of counts during the call.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast
    >>> bcast.repeat([1, 2, 3], 2)
    array([1, 1, 2, 2, 3, 3])
    >>> image = np.array([[1, 2], [3, 4]])
    >>> bcast.repeat(image, 3, axis=1)
    array([[1, 1, 1, 2, 2, 2],
           [3, 3, 3, 4, 4, 4]])

    Double the size of an image, in one pass; or make its first row and its last column wider:

    >>> bcast.repeat(image, (2, 2), axis=(0, 1)).tolist()
    [[1, 1, 2, 2], [1, 1, 2, 2], [3, 3, 4, 4], [3, 3, 4, 4]]
    >>> bcast.repeat(image, ([2, 1], [1, 3]), axis=(0, 1)).tolist()
    [[1, 2, 2, 2], [1, 2, 2, 2], [3, 4, 4, 4]]

    Decode runs: each value has its own count.

    >>> values, lengths = np.array([7.5, 0.0, 2.5]), np.array([2, 3, 1])
    >>> bcast.repeat(values, lengths)
    array([7.5, 7.5, 0. , 0. , 0. , 2.5])

    Find the row of each entry of a sparse matrix from CSR's row pointers:

    >>> pointers = np.array([0, 2, 2, 5])
    >>> bcast.repeat(np.arange(3), np.diff(pointers))
    array([0, 0, 2, 2, 2])
    """
    if out is not None and is_tensor(out):
        return into_tensor(repeat, out, a, repeats, axis, dtype=dtype, casting=casting)
    if dtype is not None:
        dtype = dtype_argument(dtype)  # may run user code, so it comes before the counts
    array = as_array("a", a)
    shape = shape_of(array)
    along: Any = axes_argument(axis)
    if _lacks_axis(shape, along):
        shape = (1,)  # as in NumPy, a scalar has an axis here
        array = array.reshape(shape)
    if type(along) is tuple:
        return _repeat_axes(array, shape, counts_along(repeats, along, shape, True), out, dtype, casting)

    at = -1 if along is None else place_of(along, shape)
    times: Any = _times_along(repeats, size_of(array) if at < 0 else shape[at], along)
    if type(times) is not int:
        return _decode(array, times, at, out, dtype, casting)
    if at < 0:
        whole = shape_argument("repeats", (size_of(array) * times,))
        counts = (1,) * len(shape) + (times,)
        shape += (1,)  # each item is repeated along it
    else:
        counts = (1,) * at + (times,) + (1,) * (len(shape) - at - 1)
        whole = _lengths_after(shape, counts, "repeats")
    return materialise(array, split(shape, counts, False), whole, out, "repeats", dtype, casting)


def _lacks_axis(shape: Shape, along: Any) -> bool:
    """Return whether data without axes is to be repeated along an axis."""
    return not shape and along is not None and along != ()


def _times_along(repeats: Any, size: int, axis: Any) -> Any:
    """Return one count for all items, or `Counts`; the usual case, a plain integer, at once."""
    return repeats if type(repeats) is int and repeats >= 0 else repeats_argument(repeats, size, axis)


def _lengths_after(shape: Shape, counts: Shape, name: str) -> Shape:
    """Return the shape after one count for each axis; the user's name for the counts is `name`."""
    lengths: list[int] = []
    for i in range(len(shape)):
        lengths.append(shape[i] * counts[i])
    return shape_argument(name, tuple(lengths))


def _decode(array: NDArray[Any], counts: Counts, axis: int, out: Any, dtype: Any, casting: Casting) -> NDArray[Any]:
    """Repeat each item along an axis, or of the flattened array if it is -1, by its run length."""
    whole: Shape = (counts.total,)
    if axis >= 0:
        shape = shape_of(array)
        whole = shape[:axis] + whole + shape[axis + 1 :]

    wanted = None
    if converts(array, out, dtype, casting):
        if has_references(array) or type_of(array) in (18, 19):  # whether these fail depends on values
            array, counts = without_dropped(array, counts, axis)
        array, wanted = prepared(array, whole, out, dtype, casting)

    if has_references(array) or (wanted is not None and wanted.hasobject):
        return _decode_by_numpy(array, counts, axis, whole, out, wanted)
    result = result_array(out, array, whole, "repeats", wanted)
    if wanted is None:
        return repeat_counted(array, counts, axis, result)
    return convert_counted(array, counts, axis, result, wanted)


def _decode_by_numpy(
    array: NDArray[Any], counts: Counts, axis: int, whole: Shape, out: Any, wanted: Any
) -> NDArray[Any]:
    """Do the same for items with references, which only NumPy copies, to a result of shape `whole`."""
    if out is not None:
        result_array(out, array, whole, "repeats", wanted)  # raises errors before the work
    if wanted is not None:
        array = array.astype(wanted)
    # NumPy before 2.2 repeats a StringDType as bytes, and then frees them twice.
    array = array.take(np.arange(counts.size).repeat(counts.to_array()), axis if axis >= 0 else None)
    if out is None:
        return array
    return materialise(array, aligned(array.shape, array.shape), whole, out, "repeats", None, "same_kind")


def _repeat_axes(
    array: NDArray[Any], shape: Shape, counts: list[Any], out: Any, dtype: Any, casting: Casting
) -> NDArray[Any]:
    """Repeat along each axis by an integer or by run lengths: axes of integers at once, the others one by one."""
    times = tuple(counts)
    if all_plain(times):
        whole = _lengths_after(shape, times, "repeats")
        return materialise(array, split(shape, times, False), whole, out, "repeats", dtype, casting)

    passes = order(counts)
    times = integers_of(counts)
    whole = _lengths_after_runs(shape, counts)
    wanted = None
    if converts(array, out, dtype, casting):
        if 0 not in whole:
            array = _without_any_dropped(array, counts)
        array, wanted = prepared(array, whole, out, dtype, casting)
        casting = "unsafe"
    if out is not None:
        result_array(out, array, whole, "repeats", wanted)  # raises errors before the work

    for i in range(len(passes)):
        at, dst = -passes[i][1], out if i == len(passes) - 1 else None
        if at >= 0:
            array = _decode(array, counts[at], at, dst, wanted, casting)
        else:
            shape = shape_of(array)
            between = _lengths_after(shape, times, "repeats")
            array = materialise(array, split(shape, times, False), between, dst, "repeats", wanted, casting)
    return array


def _lengths_after_runs(shape: Shape, counts: list[Any]) -> Shape:
    """Return the shape after an integer or run lengths for each axis."""
    lengths: list[int] = []
    for at in range(len(counts)):
        lengths.append(shape[at] * counts[at] if type(counts[at]) is int else counts[at].total)
    return shape_argument("repeats", tuple(lengths))


def _without_any_dropped(array: NDArray[Any], counts: list[Any]) -> NDArray[Any]:
    """Leave out the items that run lengths repeat 0 times along any axis, from the array and from the counts."""
    for at in range(len(counts)):
        if type(counts[at]) is not int:
            array, counts[at] = without_dropped(array, counts[at], at)
    return array


# Numbers of repetitions


def split(shape: Shape, counts: Shape, tiled: bool) -> Alignment:
    """Align data of `shape` with an output in which each axis is split in two; if `tiled`, the data's part is inside.

    Axes of length 1 are left out, so the number of axes stays within an array's limit.
    """
    lengths, source = [], []
    for i in range(len(shape)):
        if tiled and counts[i] != 1:
            lengths.append(counts[i])
            source.append(1)
        if shape[i] != 1:
            lengths.append(shape[i])
            source.append(shape[i])
        if not tiled and counts[i] != 1:
            lengths.append(counts[i])
            source.append(1)
    return aligned(tuple(lengths), tuple(source))


def are_ones(counts: Shape) -> bool:
    """Return whether all counts are 1, so that nothing is repeated."""
    for count in counts:  # noqa: SIM110 (compiled, the loop takes a third of the generator's time)
        if count != 1:
            return False
    return True


def order(counts: list[Any]) -> list[tuple[float, int]]:
    """Return the passes of a repetition: by how much the array grows, and minus the axis; 1 for all axes of integers.

    The pass with the smallest growth comes first, so intermediate arrays are small. The adjoint reverses the order.
    """
    growth = 1.0
    passes: list[Any] = []
    for at in range(len(counts)):
        if type(counts[at]) is int:
            growth *= counts[at]
        else:
            passes.append((counts[at].total / max(counts[at].size, 1), -at))
    if growth != 1 or not passes:
        passes.append((growth, 1))
    passes.sort()
    return passes


def integers_of(counts: list[Any]) -> Shape:
    """Return the counts, with 1 for run lengths: their axes have separate passes."""
    integers: list[int] = []
    for count in counts:
        integers.append(count if type(count) is int else 1)
    return tuple(integers)


def counts_along(repeats: Any, along: Any, shape: Shape, known: bool) -> list[Any]:
    """Check the user's counts and axes; return an integer or `Counts` for each axis of an array of `shape`.

    If `shape` does not determine the numbers of items (`known`), the counts do: a sequence of one means one item.
    """
    if type(along) is tuple:
        return _counts_along_several(repeats, along, shape, known)
    if along is None and len(shape) != 1:
        raise ValueError(f"`grad` expected 1 axis, or an `axis` along which it was repeated, got shape {shape}")
    at = 0 if along is None else place_of(along, shape)
    counts: list[Any] = [1] * len(shape)
    counts[at] = repeats_argument(repeats, shape[at] if known else -1, along)
    return counts


def _counts_along_several(repeats: Any, axes: Shape, shape: Shape, known: bool) -> list[Any]:
    """Do the same for a tuple of axes: `repeats` is one integer for all, or has one entry for each."""
    given = _nested_counts(repeats)
    is_nested = given is not None
    if given is None:
        given = counts_argument("repeats", repeats, True)
        if len(given) == 1:
            given *= len(axes)
    if len(given) != len(axes):
        got = show(repeats)
        raise ValueError(f"`repeats` expected one integer for each of the axes {show(axes)}, or one for all, got {got}")

    counts: list[Any] = [1] * len(shape)
    places: list[int] = []
    for i in range(len(axes)):
        at = place_of(axes[i], shape)
        if at in places:
            raise ValueError(f"`axis` expected each axis once, got {show(axes)}")
        places.append(at)
        counts[at] = repeats_argument(given[i], shape[at] if known else -1, axes[i]) if is_nested else given[i]
    return counts


def _nested_counts(repeats: Any) -> Any:
    """Return the items of a sequence if any of them is a sequence, and otherwise None."""
    if type(repeats) is not tuple and type(repeats) is not list:
        return None
    items = tuple(repeats)
    return items if not all_plain(items) and any(map(_is_sequence, items)) else None


def _is_sequence(repeats: Any) -> bool:
    """Return whether these are counts for single items, not one count for all."""
    if isinstance(repeats, Iterable):
        return not isinstance(repeats, UNFIT) and getattr(repeats, "ndim", 1) != 0
    return hasattr(repeats, "__array__") and np.ndim(repeats) != 0


def repeats_argument(repeats: Any, size: int, axis: int | None) -> Any:
    """Check the counts along one axis of `size` items, or of any number if that is -1; return one count, or `Counts`.

    The one count is at most `MAX_SIZE`.
    """
    counts = None
    plain: Any = _read_counts(repeats)
    if type(plain) is tuple:
        items, total = len(plain), total_of(plain)
    else:
        counts = plain
        items, total = counts.size, counts.total
    if total < 0:
        raise ValueError(f"`repeats` expected counts of 0 or more, got {show(repeats)}")
    if items == 1 and (size >= 0 or type(repeats) is int or not _is_sequence(repeats)):
        return total
    _expect_counts(repeats, items, total, size, axis)
    return counts_of_tuple(plain) if counts is None else counts


def _read_counts(repeats: Any) -> Counts | Shape:
    """Read the user's counts: an array of integers stays an array, others become a tuple."""
    counts = counts_of_array(repeats)
    if counts is not None:
        return counts
    plain = (repeats,) if type(repeats) is int else plain_counts(repeats)
    if plain is not None:
        return plain
    array = _whole_numbers(as_array("repeats", repeats))
    counts = counts_of_array(array)
    return _counts_of_any(array, repeats) if counts is None else counts


def _whole_numbers(array: Any) -> Any:
    """Return floats as integers of 64 bits if all of them are; return other arrays unchanged."""
    if array.dtype.kind != "f":
        return array
    wide = array if array.itemsize > 8 else array.astype(np.float64)
    if not ((wide >= -(2.0**63)) & (wide < 2.0**63)).all():  # NaN fails this, too
        return array
    whole = wide.astype(np.int64)
    return whole if (whole == wide).all() else array


def _counts_of_any(array: Any, repeats: Any) -> Shape:
    """Return the counts of an array that the core does not read, or raise the error about `repeats`."""
    if array.ndim > 1 or array.dtype.kind not in "biu":  # no integers, or not NumPy's
        return counts_argument("repeats", repeats, True)
    return tuple(array.ravel().tolist())


def _expect_counts(repeats: Any, items: int, total: int, size: int, axis: int | None) -> None:
    """Refuse counts whose number differs from the items of an axis, or whose sum is too long for an array."""
    if items != size and size >= 0:
        along = "in all" if axis is None else f"along axis {axis}"
        each = "the only item" if size == 1 else f"each of the {size} items"
        raise ValueError(f"`repeats` expected one integer, or one for {each} {along}, got {items}")
    if total >= MAX_SIZE:
        expected = f"an output of at most {MAX_SIZE} elements"
        if size < 0:
            expected = "integers that add up to the length of an axis"
        raise ValueError(f"`repeats` expected {expected}, got {show(repeats)}")
