"""The adjoint of the operator: `unbroadcast`, an alignment and the sum along it; which dtypes have one."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from bcast._adjoint import sum_onto
from bcast._api.broadcast import Integers, Mode, as_array
from bcast._rules.alignment import align_shapes, shape_argument
from bcast._runtime.result import result_array, shape_of, type_of

__all__ = ["unbroadcast"]


def unbroadcast(
    grad: ArrayLike,
    data_shape: Integers,
    axes_mapping: Integers | None = None,
    *,
    mode: Mode = "numpy",
    axis: int = -1,
    broadcast_axes: Integers | None = None,
    dtype: DTypeLike | None = None,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """Sum `grad` back to `data_shape`: the adjoint of `broadcast`, and the backward pass of all that broadcasts.

    Every element of the result is the sum of `grad` over all the places to which `broadcast` copies that element of
    the data.

    Parameters
    ----------
    grad : array_like, shape (t_0, ..., t_n)
        What is summed, the gradient by the broadcast's output: of its shape, of any memory layout and of any numeric
        dtype. Masked arrays are refused, their mask would be lost.
    data_shape : 1-D sequence or array of int
        The shape of the data that was broadcast.
    axes_mapping, mode, axis, broadcast_axes
        As they were given to `broadcast` or `broadcast_like`. Empty `broadcast_axes` stand for none where `data_shape`
        is that of `grad`, and for all where it is ``()``.
    dtype : data-type, optional
        The dtype of the result: anything that `numpy.dtype` takes and that is numeric. By default it is `grad`'s:
        unlike in `numpy.sum`, short integers stay what they are.
    out : ndarray, optional
        Where the result goes: exactly of `data_shape` and of the result's dtype, writeable, of any strides. It may
        overlap `grad`: the result is as if `grad` had been copied first.

    Returns
    -------
    ndarray
        A new C-contiguous, writeable array that owns its memory, even where nothing had to be summed, or `out`. The
        sum over an empty axis is 0.

    Raises
    ------
    ValueError
        If no data of `data_shape` broadcasts to `grad`'s shape under `mode`; if an argument is not fit as in
        `broadcast`; if `out` has another shape or is read-only.
    numpy.exceptions.AxisError
        If an axis is outside `grad`. It is a `ValueError` and an `IndexError`.
    TypeError
        If shapes or axes are not 1-D and integer; if `grad` is masked; if `grad` or `dtype` is not numeric: bool is
        not, but arrays of it can be counted, by another `dtype`; if `out` is no array or has another dtype.
    MemoryError
        If there is no memory for the result.

    See Also
    --------
    broadcast : The operation itself.
    numpy.sum : Sums over axes, one by one.

    Notes
    -----
    Integers wrap around. Floating-point and complex numbers are summed more precisely than in their own type: the error
    does not grow with the number of terms, whichever axes they lie on, and a result is infinite only if a term is or
    the exact sum is too large. If all terms have one sign, it is off by at most 1 unit in the last place, of float64 by
    1.5, or by 2.5 where nearly every term exceeds the sum of those before it. If terms cancel, these are units of the
    sum of their magnitudes. Pairs of float64 terms are added plainly first, so that the sum of ``[1e16, 1, -1e16]`` is
    1 or 0: that depends on the layout of `grad`. The bits of a result depend neither on the number of threads nor on
    the layout of `out`.

    This holds for NumPy's integers, float16, float32, float64, complex64, complex128 and the bfloat16 of `ml_dtypes`.
    Sums of other numbers, long double or objects say, and those of floating-point numbers in an integer `dtype`, are
    NumPy's own: each term is converted first. Of complex numbers a real `dtype` takes the real parts, with NumPy's
    `ComplexWarning`. A warning that is an error leaves `out` as it was.

    Mode 'numpy' is the backward pass of NumPy's own broadcasting, 'explicit' by `broadcast_axes` nGraph's Backprop of
    Broadcast and BroadcastLike.

    Examples
    --------
    A bias was added to each row; its gradient is the sum of the rows' gradients.

    >>> import numpy as np
    >>> import bcast
    >>> grad = np.array([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]])
    >>> bcast.unbroadcast(grad, (3,))
    array([11., 22., 33.])
    >>> bcast.unbroadcast(grad, (2, 1))
    array([[ 6.],
           [60.]])

    The gradient of one value per channel, from a batch in NCHW order:

    >>> batch = np.ones((8, 3, 32, 32), dtype=np.float32)
    >>> bcast.unbroadcast(batch, (3,), [1], mode="explicit")
    array([8192., 8192., 8192.], dtype=float32)

    Results have `grad`'s dtype: integers wrap around in it, unless `dtype` names a wider one.

    >>> bcast.unbroadcast(np.full(3, 100, dtype=np.uint8), ())
    array(44, dtype=uint8)
    >>> bcast.unbroadcast(np.full(3, 100, dtype=np.uint8), (), dtype=int)
    array(300)
    """
    array = as_array("grad", grad)
    shape = shape_argument("data_shape", data_shape)
    wanted = _wanted_dtype(array, dtype)
    alignment = align_shapes(shape, shape_of(array), axes_mapping, mode, axis, broadcast_axes, "grad", not shape, False)
    return sum_onto(array, alignment, result_array(out, array, shape, "data_shape", wanted, "grad"))


def _wanted_dtype(grad: NDArray[Any], dtype: DTypeLike | None) -> np.dtype[Any] | None:
    """Check that the items of `grad` add up, in the user's `dtype` if that is given; return it, None for their own."""
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
    try:
        wanted: np.dtype[Any] = np.dtype(dtype)
    except TypeError as error:
        raise TypeError(f"`dtype` expected a dtype or what stands for one, got {dtype!r}") from error
    if not _adds(wanted):
        raise TypeError(f"`dtype` expected a numeric dtype, got {wanted}")
    if wanted != own and "m" in (own.kind, wanted.kind):
        raise TypeError(f"`dtype` expected a dtype that sums {own}, got {wanted}")
    return wanted


def _adds(dtype: np.dtype[Any]) -> bool:
    """Tell whether values of this dtype are numbers whose sum has the dtype, too."""
    if dtype.kind != "V":
        return dtype.kind in "iufcmO"
    try:
        np.add.resolve_dtypes((dtype, dtype, None))  # of the added types, such as bfloat16
    except TypeError:
        return False
    return True
