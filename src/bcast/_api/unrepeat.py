"""`unrepeat`, the adjoint of `repeat`: it sums what `repeat` has made of each item."""

from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from bcast._adjoint import sum_counted, sum_onto
from bcast._api.broadcast import as_array, into_tensor, is_tensor
from bcast._api.tiling import counts_along, split
from bcast._api.unbroadcast import wanted_dtype
from bcast._rules.arguments import Shape, show
from bcast._rules.types import CountsLike, ShapeLike
from bcast._runtime.arrays import result_array, shape_of, size_of

__all__ = ["lengths_left", "unrepeat", "wide_dtype"]


def unrepeat(
    grad: ArrayLike,
    repeats: CountsLike,
    axis: ShapeLike | SupportsIndex | None = None,
    *,
    dtype: DTypeLike | None = None,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """Sum `grad` over the repetitions of each item: the adjoint of `repeat`, and sums over segments of an axis.

    Item ``i`` of the result is the sum of ``repeats[i]`` neighbours along the axis, which begin where those of item
    ``i - 1`` end.

    Parameters
    ----------
    grad : array_like
        The gradient with respect to the result of `repeat`, of any memory layout and any numeric dtype. Masked arrays
        are refused, because their mask would be lost.
    repeats, axis
        As they were given to `repeat`. Without an axis, `grad` has one. An integer counts for all items, whose number
        then follows from the length of the axis. A sequence has a count for each item: with one count, there is one.
    dtype : data-type, optional
        The dtype of the result: anything numeric that `numpy.dtype` accepts. The default is `grad`'s dtype; unlike
        `numpy.sum`, short integers are not promoted.
    out : ndarray or tensor, optional
        The array to write the result into. It must have the shape and dtype of the result and be writeable; its
        strides are free. It may overlap `grad`: the result is as if `grad` had been copied first.

    Returns
    -------
    ndarray
        A new C-contiguous, writeable array that owns its memory; or `out`, if given. Its shape is that of `grad`,
        except along the axes that were repeated. Items that were repeated 0 times are 0.

    Raises
    ------
    ValueError
        If a number of repetitions is negative; if they do not add up to the length of the axis, or do not divide it; if
        there is but one number, 0, from which the number of items does not follow; if an axis is named twice; if `out`
        has another shape or is read-only.
    numpy.exceptions.AxisError
        If `grad` has no such axis. This error is both a `ValueError` and an `IndexError`.
    TypeError
        If `axis` is not integer; if `repeats` is neither integer nor made of whole floats; if `grad` is masked; if
        `grad` or `dtype` is not numeric; if `out` is not an array or has another dtype.
    MemoryError
        If there is not enough memory for the result.

    See Also
    --------
    repeat : The operation of which this is the adjoint.
    unbroadcast : The adjoint of `broadcast`, where precision is described.
    numpy.add.reduceat : Sum over segments; what it gives for empty ones is not their sum.

    Notes
    -----
    Sums are those of `unbroadcast`: integers wrap around, and floating-point numbers are summed in more precision than
    their dtype has, with the same bounds of error. Along several axes of float64, one after the other is summed, and
    the bound holds for each of them. The bits of a result do not depend on the number of threads. If another thread
    changes an array of counts during the call, the result may be wrong.

    Arrays and tensors of other libraries are read and written as `broadcast` does, and NumPy arrays come back.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast
    >>> values, lengths = np.array([7.5, 0.0, 2.5]), np.array([2, 0, 3])
    >>> decoded = bcast.repeat(values, lengths)
    >>> bcast.unrepeat(np.ones_like(decoded), lengths)
    array([2., 0., 3.])

    Sum the rows of each sequence of a batch whose sequences lie one behind the other:

    >>> rows = np.array([[1, 10], [2, 20], [3, 30], [4, 40]])
    >>> bcast.unrepeat(rows, [1, 3], axis=0)
    array([[ 1, 10],
           [ 9, 90]])

    The gradient of an image whose size was doubled:

    >>> bcast.unrepeat(np.ones((4, 6)), (2, 2), axis=(0, 1))
    array([[4., 4., 4.],
           [4., 4., 4.]])
    """
    if out is not None and is_tensor(out):
        return into_tensor(unrepeat, out, grad, repeats, axis, dtype=dtype)
    array = as_array("grad", grad)
    wanted = wanted_dtype(array, dtype)
    shape = shape_of(array)
    counts = counts_along("grad", repeats, axis, shape, False)
    whole = lengths_left(repeats, counts, shape)
    result = result_array(out, array, whole, "repeats", wanted, "grad")
    if size_of(array) == 0:
        np.asarray(result)[...] = 0
        return result
    steps = _order(counts, shape)
    for i in range(len(steps) - 1):  # sums of sums are rounded once
        left = _left(shape_of(array), counts, steps[i])
        array = _sum(array, counts, steps[i], result_array(None, array, left, "repeats", wide_dtype(result.dtype)))
    return _sum(array, counts, steps[len(steps) - 1], result)


def lengths_left(repeats: Any, counts: list[Any], shape: Shape) -> Shape:
    """Return the shape of what was repeated, if the counts fit `shape`."""
    lengths: list[int] = []
    for at in range(len(shape)):
        count = counts[at]
        if type(count) is int:
            if count == 0:
                raise ValueError(f"`repeats` expected 1 or more times for all items, got {show(repeats)}")
            if shape[at] % count:
                whose = f"of the length {shape[at]} of `grad`'s axis {at}"
                raise ValueError(f"`repeats` expected a divisor {whose}, got {show(count)}")
            lengths.append(shape[at] // count)
        else:
            if count.total != shape[at]:
                whose = f"the length {shape[at]} of `grad`'s axis {at}"
                divides = count.size == 1 and count.total and shape[at] % count.total == 0
                remedy = f"; if each item had as many, give {count.total} and no sequence" if divides else ""
                raise ValueError(
                    f"`repeats` expected integers that add up to {whose}, got {count.total} in all{remedy}"
                )
            lengths.append(count.size)
    return tuple(lengths)


def _order(counts: list[Any], shape: Shape) -> list[int]:
    """Return the axes of counts in the order in which they are summed, and -1 for all others together.

    What leaves least of the array comes first, so that the arrays between are small.
    """
    growth = 1.0
    steps: list[Any] = []
    for at in range(len(counts)):
        if type(counts[at]) is int:
            growth *= counts[at]
        else:
            steps.append((counts[at].size / max(shape[at], 1), at))
    if growth != 1 or not steps:
        steps.append((1 / growth, -1))
    steps.sort()
    axes: list[int] = []
    for step in steps:
        axes.append(step[1])
    return axes


def _left(shape: Shape, counts: list[Any], at: int) -> Shape:
    """Return what is left of `shape` when axis `at` has been summed, or all axes of integers if it is -1."""
    left: list[int] = []
    for i in range(len(shape)):
        length = shape[i]
        if type(counts[i]) is int:
            if at < 0:
                length //= counts[i]
        elif i == at:
            length = counts[i].size
        left.append(length)
    return tuple(left)


def _sum(array: NDArray[Any], counts: list[Any], at: int, result: NDArray[Any]) -> NDArray[Any]:
    """Sum along axis `at`, or along all axes of integers if it is -1, into `result`."""
    if at >= 0:
        return sum_counted(array, counts[at], at, result)
    alike: list[int] = []
    for count in counts:
        alike.append(count if type(count) is int else 1)
    alignment = split(_left(shape_of(array), counts, -1), tuple(alike), False)
    return sum_onto(array.reshape(alignment.shape), alignment, result)


def wide_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return a dtype for sums that are summed again."""
    if dtype.kind == "c":
        return np.dtype(np.complex128) if dtype.itemsize < 16 else dtype
    if dtype.kind in "fV":
        return np.dtype(np.float64) if dtype.itemsize < 8 else dtype
    return dtype
