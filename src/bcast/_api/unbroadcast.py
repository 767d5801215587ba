"""`unbroadcast`, the adjoint of `broadcast`: it finds the alignment and sums along it, in dtypes that have a sum."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from bcast._adjoint import sum_onto
from bcast._api.broadcast import as_array, into_tensor, is_tensor
from bcast._rules.arguments import dtype_argument, shape_argument
from bcast._rules.modes import align_shapes
from bcast._rules.types import AxesLike, Mode, ShapeLike
from bcast._runtime.arrays import result_array, shape_of, type_of

__all__ = ["unbroadcast"]


def unbroadcast(
    grad: ArrayLike,
    data_shape: ShapeLike,
    axes_mapping: ShapeLike | None = None,
    *,
    mode: Mode = "numpy",
    axis: int = -1,
    broadcast_axes: AxesLike | None = None,
    dtype: DTypeLike | None = None,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """Sum `grad` back to `data_shape`: the adjoint of `broadcast`, and the backward pass of anything that broadcasts.

    Every element of the result is the sum of `grad` over all the positions to which `broadcast` copies that element of
    the data.

    Parameters
    ----------
    grad : array_like, shape (t_0, ..., t_n)
        The gradient with respect to the output of the broadcast. It has the shape of that output, any memory layout
        and any numeric dtype. Masked arrays are refused, because their mask would be lost.
    data_shape : 1-D sequence or array of int
        The shape of the data that was broadcast.
    axes_mapping, mode, axis, broadcast_axes
        As they were given to `broadcast` or `broadcast_like`. Empty `broadcast_axes` mean no axes if `data_shape` is
        the shape of `grad`, and all axes if it is ``()``.
    dtype : data-type, optional
        The dtype of the result: anything numeric that `numpy.dtype` accepts. The default is `grad`'s dtype; unlike
        `numpy.sum`, short integers are not promoted.
    out : ndarray or tensor, optional
        The array to write the result into. It must have the shape `data_shape` and the dtype of the result and be
        writeable; its strides are free. It may overlap `grad`: the result is as if `grad` had been copied first.

    Returns
    -------
    ndarray
        A new C-contiguous, writeable array that owns its memory, even if nothing had to be summed; or `out`, if given.
        The sum over an empty axis is 0.

    Raises
    ------
    ValueError
        If data of shape `data_shape` does not broadcast to `grad`'s shape under `mode`; if an argument is refused as in
        `broadcast`; if `out` has another shape or is read-only.
    numpy.exceptions.AxisError
        If an axis lies outside `grad`. This error is both a `ValueError` and an `IndexError`.
    TypeError
        If shapes or axes are not 1-D sequences of integers; if `grad` is masked; if `grad` or `dtype` is not numeric
        (bool is not, but a `grad` of bools is summed in another `dtype`); if `out` is not an array or has another
        dtype.
    MemoryError
        If there is not enough memory for the result.

    See Also
    --------
    broadcast : The operation of which this is the adjoint.
    numpy.sum : Sum over axes that the caller names.

    Notes
    -----
    Integers wrap around. Floating-point and complex numbers are summed in more precision than their dtype has: a result
    is infinite only if a term is infinite or the exact sum is too large, and its error has a bound that does not depend
    on the number of terms, nor on the axes along which they lie. If all terms have the same sign, the error is at most

    * 1 unit in the last place for float16, and for bfloat16 and float32 of up to 2**26 terms;
    * 1.5 units for float64, or 2.5 where nearly every term exceeds the sum of the terms before it.

    If terms cancel, the unit is that of the sum of the terms' magnitudes. Narrow floating-point numbers are summed in
    float64. Sums of float64 are compensated, as in algorithm Sum2 of [1]_: an error term collects what each addition
    rounds off, which Knuth's two_sum [2]_ or Dekker's fast_two_sum [3]_ finds. Before that, pairs of float64 terms are
    added without compensation. The sum of ``[1e16, 1, -1e16]`` may therefore be 1 or 0, depending on the layout of
    `grad`. The bits of a result depend neither on the number of threads nor on the layout of `out`.

    All this holds for NumPy's integers, float16, float32, float64, complex64, complex128 and the bfloat16 of
    `ml_dtypes`. NumPy itself sums numbers of other dtypes, such as long double and objects, and floating-point numbers
    in an integer `dtype`, which it converts term by term. Narrower floats of other packages, such as float8, it sums in
    float64, and the sum is rounded. If `grad` is complex and `dtype` is real, the real parts are
    summed, with NumPy's `ComplexWarning`. If that warning is an error, `out` is left unchanged.

    Mode 'numpy' is the backward pass of NumPy's own broadcasting. Mode 'explicit' by `broadcast_axes` is the backprop
    of nGraph's Broadcast and BroadcastLike.

    References
    ----------
    .. [1] T. Ogita, S. M. Rump, S. Oishi, "Accurate sum and dot product", SIAM Journal on Scientific Computing 26
       (2005), pages 1955-1988.
    .. [2] D. E. Knuth, "The Art of Computer Programming", volume 2, section 4.2.2.
    .. [3] T. J. Dekker, "A floating-point technique for extending the available precision", Numerische Mathematik 18
       (1971), pages 224-242.

    Arrays and tensors of other libraries are read and written as `broadcast` does, and NumPy arrays come back.

    Examples
    --------
    A bias was added to each row, so its gradient is the sum of the rows' gradients.

    >>> import numpy as np
    >>> import bcast
    >>> grad = np.array([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]])
    >>> bcast.unbroadcast(grad, (3,))
    array([11., 22., 33.])
    >>> bcast.unbroadcast(grad, (2, 1))
    array([[ 6.],
           [60.]])

    The gradient of one value per channel, over a batch in NCHW order:

    >>> batch = np.ones((8, 3, 32, 32), dtype=np.float32)
    >>> bcast.unbroadcast(batch, (3,), [1], mode="explicit")
    array([8192., 8192., 8192.], dtype=float32)

    Results have `grad`'s dtype, in which integers wrap around, unless `dtype` names a wider one:

    >>> bcast.unbroadcast(np.full(3, 100, dtype=np.uint8), ())
    array(44, dtype=uint8)
    >>> bcast.unbroadcast(np.full(3, 100, dtype=np.uint8), (), dtype=int)
    array(300)
    """
    if out is not None and is_tensor(out):
        rules = {"mode": mode, "axis": axis, "broadcast_axes": broadcast_axes, "dtype": dtype}
        return into_tensor(unbroadcast, out, grad, data_shape, axes_mapping, **rules)
    array = as_array("grad", grad)
    shape = shape_argument("data_shape", data_shape)
    wanted = wanted_dtype(array, dtype)
    alignment = align_shapes(shape, shape_of(array), axes_mapping, mode, axis, broadcast_axes, "grad", not shape, False)
    return sum_onto(array, alignment, result_array(out, array, shape, "data_shape", wanted, "grad"))


def wanted_dtype(grad: NDArray[Any], dtype: DTypeLike | None) -> np.dtype[Any] | None:
    """Check that items of `grad` can be summed, in the user's `dtype` if given; return that, or None for their own."""
    number = type_of(grad)
    if dtype is None and (1 <= number <= 16 or number == 23):  # NumPy's integers, floats and complex; float16 is 23
        return None
    own = grad.dtype
    if own.kind != "b" and not _adds(own):
        raise TypeError(f"`grad` expected a numeric dtype, got {own}")
    if dtype is None:
        if own.kind == "b":
            raise TypeError("`grad` expected a numeric dtype, got bool; give `dtype` to count in")
        return None
    wanted = dtype_argument(dtype)
    if not _adds(wanted):
        raise TypeError(f"`dtype` expected a numeric dtype, got {wanted}")
    if wanted != own and "m" in (own.kind, wanted.kind):
        raise TypeError(f"`dtype` expected a dtype that sums {own}, got {wanted}")
    return wanted


def _adds(dtype: np.dtype[Any]) -> bool:
    """Return whether values of this dtype are numbers whose sum has the same dtype."""
    if dtype.kind != "V":
        return dtype.kind in "iufcmO"
    try:
        np.add.resolve_dtypes((dtype, dtype, None))  # dtypes that other packages add, such as bfloat16
    except TypeError:
        return False
    return True
