"""The operator: `broadcast` and its relatives, an alignment each and the kernel behind it."""

from typing import Any, Literal, TypeAlias

import numpy as np
from numpy import ndarray
from numpy.ma import MaskedArray
from numpy.typing import ArrayLike, NDArray

from bcast._kernel import replicate
from bcast._rules.alignment import Alignment, align, align_shapes, shape_argument
from bcast._runtime.result import result_array, shape_of

__all__ = ["broadcast", "broadcast_like", "infer_shape"]

Mode: TypeAlias = Literal["numpy", "explicit", "bidirectional", "pdpd", "none"]
Integers = Any  # a 1-D sequence or array of integers; what else comes is refused with a message


def broadcast(
    data: ArrayLike,
    target_shape: Integers,
    axes_mapping: Integers | None = None,
    *,
    mode: Mode = "numpy",
    axis: int = -1,
    broadcast_axes: Integers | None = None,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """Broadcast `data` to a new array of `target_shape`.

    Parameters
    ----------
    data : array_like, shape (s_0, ..., s_k)
        What is replicated: of any dtype and memory layout. Masked arrays are refused, their mask would be lost.
    target_shape : 1-D sequence or array of int
        The shape to reach. There are no wildcards: 0 is an empty axis, negative lengths are refused.
    axes_mapping : 1-D sequence or array of int, optional
        Explicit mode: ``axes_mapping[i]`` is the axis of the output that axis ``i`` of `data` feeds. Strictly
        increasing, one for each axis of `data`; not counted from the end.
    mode : {'numpy', 'explicit', 'bidirectional', 'pdpd', 'none'}
        The rule by which axes of `data` meet axes of the output:

        ``'numpy'``
            Aligned at the right; each axis of `data` has the length of its output axis, or 1.
        ``'explicit'``
            By `axes_mapping`, where an axis of length 1 still stretches; or by `broadcast_axes`, where none does.
        ``'bidirectional'``
            Aligned at the right; axes of length 1 stretch in `data` and in `target_shape` alike, so that the
            output is ``data * ones(target_shape)`` in shape.
        ``'pdpd'``
            `data` without its trailing axes of length 1 is laid onto `target_shape` from `axis` on.
        ``'none'``
            Nothing is broadcast: `data` must have `target_shape`.
    axis : int, optional
        Mode 'pdpd': where `data` begins. The default, -1, stands for ``len(target_shape) - data.ndim``.
    broadcast_axes : 1-D sequence, array or set of int, optional
        Explicit mode: the axes of the output that `data` lacks. All others must have `data`'s lengths.
    out : ndarray, optional
        Where the result goes: exactly of its shape and dtype, writeable, of any strides. It may overlap `data`.

    Returns
    -------
    ndarray
        A new C-contiguous, writeable array of `data`'s dtype that owns its memory, or `out`. Unlike the result of
        `numpy.broadcast_to` it is not a view, even where nothing had to be replicated.

    Raises
    ------
    ValueError
        If `data` does not fit `target_shape` under `mode`; if `mode` is none of the five; if an argument is given in
        a mode where it has no meaning; if the output cannot be addressed; if `out` has another shape or is read-only.
    numpy.exceptions.AxisError
        If an axis is outside the output. It is a `ValueError` and an `IndexError`.
    TypeError
        If shapes or axes are not 1-D and integer; if `data` is masked; if `out` is no array or has another dtype.
    MemoryError
        If there is no memory for the output.

    See Also
    --------
    broadcast_like : The same, to the shape of another array.
    infer_shape : The shape of the result alone.
    unbroadcast : The adjoint: sum a gradient back to the data's shape.
    numpy.broadcast_to : A read-only view, without any copy.

    Notes
    -----
    Modes 'numpy', 'explicit' by `axes_mapping` and 'pdpd' are those of OpenVINO's Broadcast-1 and Broadcast-3, whose
    'bidirectional' is also the rule of ONNX Expand. `broadcast_axes` is nGraph's Broadcast. Bytes are copied and never
    computed: NaN payloads, the sign of zeros and the padding of structures arrive as they were.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast
    >>> bcast.broadcast([1, 2, 3], (2, 3))
    array([[1, 2, 3],
           [1, 2, 3]])

    A gray image becomes RGB: its two axes are the output's first two, the third repeats.

    >>> gray = np.array([[10, 20], [30, 40]], dtype=np.uint8)
    >>> rgb = bcast.broadcast(gray, (2, 2, 3), [0, 1], mode="explicit")
    >>> rgb[0].tolist()
    [[10, 10, 10], [20, 20, 20]]

    The two spellings of explicit mode: where the axes of the data go, and which axes are new.

    >>> bcast.broadcast([1, 2], (2, 3), axes_mapping=[0], mode="explicit")
    array([[1, 1, 1],
           [2, 2, 2]])
    >>> bcast.broadcast([1, 2], (2, 3), broadcast_axes=[1], mode="explicit")
    array([[1, 1, 1],
           [2, 2, 2]])

    A bias of three channels over a batch in NCHW order, by PaddlePaddle's rule:

    >>> bcast.broadcast([1.0, 2.0, 3.0], (8, 3, 32, 32), mode="pdpd", axis=1).shape
    (8, 3, 32, 32)
    """
    array = as_array("data", data)
    alignment = align(shape_of(array), target_shape, axes_mapping, mode, axis, broadcast_axes)
    return materialise(array, alignment, out, "target_shape")


def broadcast_like(
    data: ArrayLike,
    like: ArrayLike,
    axes_mapping: Integers | None = None,
    *,
    mode: Mode = "numpy",
    axis: int = -1,
    broadcast_axes: Integers | None = None,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """Broadcast `data` to a new array of `like`'s shape.

    Parameters
    ----------
    data : array_like
        What is replicated.
    like : array_like, shape (t_0, ..., t_n)
        Only its shape is used, neither its dtype nor its values.
    axes_mapping, mode, axis, broadcast_axes, out
        As in `broadcast`, with one difference that nGraph's BroadcastLike makes: empty `broadcast_axes` stand for
        all axes, so that `data` must be a scalar.

    Returns
    -------
    ndarray
        As `broadcast` returns it, of `data`'s dtype.

    Raises
    ------
    ValueError, numpy.exceptions.AxisError, TypeError, MemoryError
        As `broadcast` raises them.

    See Also
    --------
    broadcast : The same, to a shape.

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
    alignment = align_shapes(shape_of(array), shape, axes_mapping, mode, axis, broadcast_axes, "like", True, True)
    return materialise(array, alignment, out, "like")


def infer_shape(
    data_shape: Integers,
    target_shape: Integers,
    axes_mapping: Integers | None = None,
    *,
    mode: Mode = "numpy",
    axis: int = -1,
    broadcast_axes: Integers | None = None,
) -> tuple[int, ...]:
    """Return the shape that `broadcast` would give data of shape `data_shape`, without any data.

    Parameters
    ----------
    data_shape : 1-D sequence or array of int
        The shape of the data.
    target_shape, axes_mapping, mode, axis, broadcast_axes
        As in `broadcast`.

    Returns
    -------
    tuple of int
        `target_shape`, or in mode 'bidirectional' the merged shape.

    Raises
    ------
    ValueError, numpy.exceptions.AxisError, TypeError
        As `broadcast` raises them for the same shapes.

    See Also
    --------
    broadcast : The array itself.
    broadcast_shapes : Merge any number of shapes by NumPy's two-way rule.

    Examples
    --------
    >>> import bcast
    >>> bcast.infer_shape((16, 1, 1), (1, 16, 50, 50))
    (1, 16, 50, 50)
    >>> bcast.infer_shape((5, 2, 3, 1), (1, 3, 6), mode="bidirectional")
    (5, 2, 3, 6)
    """
    shape = shape_argument("data_shape", data_shape)
    return align(shape, target_shape, axes_mapping, mode, axis, broadcast_axes).shape


def as_array(name: str, data: ArrayLike) -> NDArray[Any]:
    """Turn the user's `data` into an array of the base class; refuse one whose mask would be lost."""
    if type(data) is ndarray:
        return data
    if isinstance(data, MaskedArray):
        raise TypeError(f"`{name}` expected an array without a mask, got {type(data).__name__}; fill it first")
    try:
        return np.asarray(data)
    except ValueError as error:
        raise ValueError(f"`{name}` expected an array_like of one shape, got {type(data).__name__}: {error}") from error


def materialise(data: NDArray[Any], alignment: Alignment, out: NDArray[Any] | None, name: str) -> NDArray[Any]:
    """Replicate `data` along `alignment` into `out`, or into a new array; `name` is what the user calls its shape."""
    return replicate(data, alignment, result_array(out, data, alignment.shape, name))
