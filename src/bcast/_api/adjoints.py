"""The adjoints of `broadcast` and `repeat`: a gradient comes in, sums over what was replicated go out."""

import operator
from typing import Any

import numpy as np
from numpy import memmap, ndarray
from numpy.typing import ArrayLike, NDArray

from bcast._api.converted import as_array, as_base, as_operand, into_tensor, is_handed_on, is_tensor
from bcast._api.repeats import counts_along, integers_of, order, split
from bcast._reduction import average_onto, converted_terms, has_kernels, kind_of_sums, sum_counted, sum_onto
from bcast._rules.alignment import Alignment, align_shapes, aligned
from bcast._rules.arguments import Shape, axes_argument, brief, dtype_argument, place_of, shape_argument, show
from bcast._rules.types import AxesLike, CountsLike, DType, Mode, Out, ShapeLike, SizesLike
from bcast._runtime.arrays import dtype_of, reshaped, result_array, rounded_to, shape_of, size_of, type_of
from bcast._runtime.core import MEANS_BLOCK_BYTES, MEANS_ITEMS

INT64, UINT64 = np.dtype(np.int64), np.dtype(np.uint64)
FLOAT32, FLOAT64, COMPLEX128 = np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.complex128)
LONG_DOUBLES = (np.dtype(np.longdouble).num, np.dtype(np.clongdouble).num)
SQUARES = ("var", "std")
READ_AGAIN = (tuple, list, ndarray)  # axes that are the same whenever they are read
NO_VALUE = getattr(np, "_NoValue")  # noqa: B009 (stubs do not know it)


def unbroadcast(
    grad: ArrayLike,
    data_shape: ShapeLike,
    axes_mapping: ShapeLike | None = None,
    *,
    mode: Mode | None = None,
    axis: int = -1,
    broadcast_axes: AxesLike | None = None,
    times: ArrayLike | None = None,
    dtype: DType = None,
    out: Out = None,
) -> NDArray[Any]:
    """Sum `grad` back to `data_shape`: the adjoint of `broadcast`, and the backward pass of anything that broadcasts.

    Every element of the result is the sum of `grad` over all the positions to which `broadcast` copies that element of
    the data.

    Parameters
    ----------
    grad : array_like, shape (t_0, ..., t_n)
        The gradient with respect to the output of the broadcast, of any numeric dtype.
    data_shape : 1-D sequence or array of int
        The shape of the data that was broadcast.
    axes_mapping, mode, axis, broadcast_axes
        As they were given to `broadcast` or `broadcast_like`. Empty `broadcast_axes` mean no axes if `data_shape` is
        the shape of `grad`, and all axes if it is ``()``.
    times : array_like, optional
        What broadcasts to the shape of `grad`, as NumPy broadcasts: ``grad * times`` is summed. That is the gradient
        with respect to a scale, where `times` is what it multiplied. Products of floats narrower than float64 are
        exact, others are NumPy's. No array of them is made, except for complex numbers and some other dtypes.
    dtype : data-type, optional
        The dtype of the result: anything numeric that `numpy.dtype` accepts. The default is `grad`'s dtype, or that of
        ``grad * times``, as that of a gradient is the data's. Sums of short integers wrap around in it: `sum` promotes
        them, as `numpy.sum` does.
    out : ndarray or tensor, optional
        As in `broadcast`, except that it must have the dtype of the result. The result is as if `grad` had been copied
        first.

    Returns
    -------
    ndarray
        As `broadcast` returns it, even if nothing had to be summed. The sum over an empty axis is 0.

    Raises
    ------
    TypeError
        If `grad` or `dtype` is not numeric (bool is not, but a `grad` of bools is summed in another `dtype`). Other
        errors are as in `broadcast`.

    Notes
    -----
    Integers wrap around. Floating-point and complex numbers are summed in more precision than their dtype has: a result
    is infinite only if a term is infinite or the exact sum is too large, and its error has a bound that does not depend
    on the number of terms, nor on the axes along which they lie. If all terms have the same sign, the error is at most

    * 1 unit in the last place for float16, and for bfloat16 and float32 of up to 2**26 terms;
    * 1.5 units for float64, or 2.5 where pairs of terms exceed the sum of the terms before them.

    If terms cancel, the unit is that of the sum of the terms' magnitudes. Narrow floating-point numbers are summed in
    float64. Sums of float64 are compensated, as in Ogita, Rump and Oishi's Sum2: an error term collects what each
    addition rounds off. Before that, pairs of float64 terms are added without compensation. The sum of
    ``[1e16, 1, -1e16]`` may therefore be 1 or 0, depending on the layout of `grad`. The bits of a result depend neither
    on the number of threads nor on the layout of `out`.

    All this holds for NumPy's integers, float16, float32, float64, complex64, complex128 and the bfloat16 of
    `ml_dtypes`. Narrower floats of other packages, such as float8, are converted to float32 first, and sums to them are
    rounded once from float64. NumPy itself sums numbers of other dtypes, such as long double and objects, and
    floating-point numbers in an integer `dtype`, which it converts term by term. Sums of long doubles to a narrower
    `dtype` are rounded last. If `grad` is complex and `dtype` is real, the real parts are summed, with NumPy's
    `ComplexWarning`. If that warning is an error, `out` is left unchanged. Complex numbers with gaps between all of
    them, such as every second one of an array, are copied first.

    Mode 'numpy' is the backward pass of NumPy's own broadcasting. Mode 'explicit' by `broadcast_axes` is the backprop
    of nGraph's Broadcast and BroadcastLike.

    Examples
    --------
    A bias was added to each row, so its gradient is the sum of the rows' gradients.

    >>> import numpy as np
    >>> import bcast
    >>> grad = np.array([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]])
    >>> bcast.unbroadcast(grad, (3,))
    array([11., 22., 33.])

    The gradient of one value per channel, over a batch in NCHW order:

    >>> batch = np.ones((8, 3, 32, 32), dtype=np.float32)
    >>> bcast.unbroadcast(batch, (3,), [1], mode="explicit")
    array([8192., 8192., 8192.], dtype=float32)

    Integers wrap around in `grad`'s dtype, unless `dtype` names a wider one:

    >>> bcast.unbroadcast(np.full(3, 100, dtype=np.uint8), ())
    array(44, dtype=uint8)
    >>> bcast.unbroadcast(np.full(3, 100, dtype=np.uint8), (), dtype=int)
    array(300)

    Each row was multiplied by a scale, so its gradient is the sum of products, of which no array is made:

    >>> rows = np.array([[1.0, 0.5, 2.0], [0.1, 0.2, 0.3]])
    >>> bcast.unbroadcast(grad, (3,), times=rows)
    array([ 2.,  5., 15.])
    """
    if out is not None and is_tensor(out):
        rules = {"mode": mode, "axis": axis, "broadcast_axes": broadcast_axes, "times": times, "dtype": dtype}
        return into_tensor(unbroadcast, out, grad, data_shape, axes_mapping, **rules)
    array = as_array("grad", grad)
    shape = shape_argument("data_shape", data_shape)
    like, factor, owner = array, None, "grad"
    if times is not None:
        factor, like = factor_of(array, times)
        owner = "the product"
    wanted = wanted_dtype(like, dtype)
    alignment = align_shapes(shape, shape_of(array), axes_mapping, mode, axis, broadcast_axes, "grad", not shape, False)
    return sum_onto(array, alignment, result_array(out, like, shape, "data_shape", wanted, owner), factor)


def factor_of(grad: NDArray[Any], times: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
    """Check that `times` broadcasts to `grad`; return it as an array, and an array of the dtype of products."""
    factor, like = as_array("times", times), grad
    own, other = grad.dtype, factor.dtype
    if own is not other or not own.isnative or own.kind not in "iufc":
        factor, like = _of_one_dtype(grad, times, factor)

    shape, lengths = shape_of(grad), shape_of(factor)
    start = len(shape) - len(lengths)
    fits = start >= 0
    for axis in range(len(lengths) if fits else 0):
        fits = fits and lengths[axis] in (1, shape[start + axis])
    if not fits:
        raise ValueError(f"`times` expected a shape that broadcasts to {shape}, that of `grad`, got {lengths}")
    return factor, like


def _of_one_dtype(grad: NDArray[Any], times: ArrayLike, factor: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return `factor`, the array of `times`, in the dtype in which it multiplies `grad`, and an array of products."""
    own, other = grad.dtype, factor.dtype
    for name, dtype in (("grad", own), ("times", other)):
        if dtype.kind != "b" and not _adds(dtype):
            raise TypeError(f"`{name}` expected a numeric dtype, got {brief(dtype)}")

    is_scalar = type(times) in (int, float, complex)  # whose dtype follows that of `grad`
    try:
        _, wanted, dtype = np.multiply.resolve_dtypes((own, type(times) if is_scalar else other, None))
    except TypeError as error:
        raise TypeError(f"`times` expected a dtype that multiplies {own}, got {brief(other)}") from error
    return np.asarray(times, wanted) if is_scalar else factor, np.empty(0, dtype)


def unrepeat(
    grad: ArrayLike, repeats: CountsLike, axis: SizesLike | None = None, *, dtype: DType = None, out: Out = None
) -> NDArray[Any]:
    """Sum `grad` over the repetitions of each item: the adjoint of `repeat`, and sums over segments of an axis.

    Item ``i`` of the result is the sum of ``repeats[i]`` neighbours along the axis, which begin where those of item
    ``i - 1`` end.

    Parameters
    ----------
    grad : array_like
        The gradient with respect to the result of `repeat`, of any kind that `unbroadcast` takes.
    repeats, axis
        As they were given to `repeat`. Without an axis, `grad` has one. An integer counts for all items, whose number
        then follows from the length of the axis. A sequence has a count for each item: with one count, there is one.
    dtype, out
        As in `unbroadcast`.

    Returns
    -------
    ndarray
        As `unbroadcast` returns it. Its shape is that of `grad`, except along the axes that were repeated. Items that
        were repeated 0 times are 0.

    Raises
    ------
    ValueError, numpy.exceptions.AxisError, TypeError, MemoryError
        If the numbers of repetitions do not add up to the length of the axis, or do not divide it; if there is but one
        number, 0, from which the number of items does not follow; and as `repeat` and `unbroadcast` raise them.

    See Also
    --------
    unbroadcast : The adjoint of `broadcast`, where precision is described.
    numpy.add.reduceat : Sum over segments; what it gives for empty ones is not their sum.

    Notes
    -----
    Sums are those of `unbroadcast`, with the same bounds of error. Along several axes of float64, one after the other
    is summed, and the bound holds for each of them. If another thread changes an array of counts during the call, the
    result may be wrong.

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
    counts = counts_along(repeats, axes_argument(axis), shape, False)
    whole = lengths_left(counts, shape)
    result = result_array(out, array, whole, "repeats", wanted, "grad")
    if size_of(result) == 0:  # counts may be more than an array has room for
        return result
    return _sum(array, counts, whole, result)


def statistic(
    name: str, a: Any, axis: Any, dtype: Any, out: Any, keepdims: Any, ddof: Any, others: dict[str, Any], numpys: Any
) -> Any:  # what NumPy's functions take
    """Return a sum or a statistic, by the core, or else by `numpys`: NumPy's function with the same arguments.

    This is compiled, so that no line of Python follows what writes to `out`: an interrupt would come between.
    """
    left, initial = _options(others, name == "sum") if others else (others, None)
    result = None if left else reduced(name, a, axis, dtype, out, keepdims, ddof, initial)
    return numpys(name, keepdims, others, a, axis, dtype, out, ddof) if result is None else result


def _options(others: dict[str, Any], of_sums: bool = True) -> tuple[dict[str, Any], Any]:
    """Return the options that are left to NumPy, without those that say the default, and the `initial` of sums."""
    left, initial = {}, None
    for name, value in others.items():
        if name == "initial" and of_sums:
            initial = None if value is NO_VALUE else value
        elif value is not NO_VALUE and not (name == "where" and (value is True or value is np.True_)):
            left[name] = value
    return left, initial


def reduced(
    name: str, a: Any, axis: Any, dtype: Any, out: Any, keepdims: Any, ddof: Any, initial: Any = None
) -> Any:  # what NumPy's functions take
    """Return what NumPy's function of this name would; None for what that function is to do."""
    array = a if type(a) is ndarray else array_of("a", a)
    if array is None or not (out is None or type(out) is ndarray or type(out) is memmap):
        return None
    own = dtype_of(array)
    keeps = keepdims if type(keepdims) is bool else flag_of(keepdims)
    if keeps is None or not can_be_read_again(axis):  # NumPy would find nothing left in an iterator
        return None
    if not has_kernels(array) and converted_terms(own) is None:
        return None

    wanted = _dtype_of_result(name, own, dtype, None if out is None else dtype_of(out))
    shape = shape_of(array)
    if wanted is None or not shape:
        return None
    axes = summed_axes(axis, shape)
    if type(ddof) is not int and isinstance(ddof, np.generic):
        ddof = ddof.item()  # NumPy's scalars compute in their own dtype, which may be narrow

    of_parts = (own.kind == "c" or wanted.kind == "c") and name in SQUARES
    if out is None and initial is None and not of_parts:  # as in nearly all calls
        return _compute(name, array, shape, axes, keeps, ddof, wanted, None)
    if initial is not None or (of_parts and own.kind == "c"):
        result = _compute_wide(name, array, shape, axes, keeps, ddof, wanted, initial)
    else:
        written = real_dtype(wanted) if of_parts else wanted
        if out is not None and _is_dtype_of(out, written):
            return _compute(name, array, shape, axes, keeps, ddof, dtype_of(out), out)
        result = _compute(name, array, shape, axes, keeps, ddof, written, None)
    return None if result is None else rounded_into(out, result, wanted)


def _is_dtype_of(out: NDArray[Any], dtype: np.dtype[Any]) -> bool:
    """Return whether the items of `out` are of a dtype, in any order of bytes."""
    own = dtype_of(out)
    return own is dtype or own.newbyteorder("=") == dtype


def rounded_into(out: Any, result: Any, dtype: Any) -> Any:
    """Round a result to `dtype`, if given; convert it into `out`, if given, or else return it."""
    array = np.asarray(result)
    if dtype is not None:
        array = rounded_to(array, dtype_argument(dtype))
    if out is None:
        return array if array.ndim else array[()]
    result_array(out, array, shape_of(array), "a", out.dtype)
    np.copyto(out, rounded_to(array, out.dtype))  # what may fail or warn comes before anything is written
    return out


def array_of(name: str, a: Any) -> NDArray[Any] | None:
    """Return the user's `a` as an array of the base class; None for what has, or may have, ways of its own."""
    return None if is_handed_on(a) else as_base(as_operand(name, a))


def can_be_read_again(axis: Any) -> bool:
    """Return whether what the user gives for axes can be read more than once, unlike an iterator."""
    return type(axis) is int or axis is None or type(axis) in READ_AGAIN or isinstance(axis, np.generic)


def flag_of(value: Any) -> bool | None:
    """Return the bool that a value stands for; None for what NumPy is to refuse."""
    if isinstance(value, np.bool):
        return bool(value)
    try:
        return value is not NO_VALUE and operator.index(value) != 0
    except TypeError:
        return None


def _compute(
    name: str, array: NDArray[Any], shape: Shape, axes: Shape, keeps: bool, ddof: Any, wanted: np.dtype[Any], out: Any
) -> Any:
    """Compute what the core sums, rounded to `wanted`, the dtype of `out` if that is given; or return None."""
    source, left, count = lengths_after(shape, axes, keeps)
    if count <= 1 or size_of(array) == 0 or not ddof < count:
        return None
    order = order_in_memory(array) if out is None and len(left) > 1 else None
    if order is not None:  # the result has it, too, as NumPy's has
        places = list(map(order.index, range(len(shape))))
        turned = tuple(map(places.__getitem__, axes))
        view = array.transpose(order)
        result = _compute(name, view, shape_of(view), turned, True, ddof, wanted, None).transpose(places)
        return result if keeps else result.squeeze(axes)
    alignment = aligned(shape, source)
    result = result_array(out, array, left, "a", wanted)
    if name == "sum":
        sum_onto(array, alignment, result)
    elif name == "mean":
        average_onto(array, alignment, result, count)
    else:
        _deviations(array, alignment, result, count, count - ddof, name == "std", out is None)
    return result[()] if out is None and not left else result


def _compute_wide(
    name: str, array: NDArray[Any], shape: Shape, axes: Shape, keeps: bool, ddof: Any, wanted: np.dtype[Any],
    initial: Any,
) -> Any:  # fmt: skip
    """Compute what is added up after the core's sums, in float64 for what is narrower; or return None."""
    if name == "sum":
        start = np.array(initial, wanted)  # as NumPy reads it
        total = None if start.ndim else _compute(name, array, shape, axes, keeps, 0, wide_dtype(wanted), None)
        return None if total is None else np.asarray(total) + start.astype(wide_dtype(wanted))
    # The variance of complex numbers is that of their real parts and that of their imaginary parts.
    total = _compute("var", array.real, shape, axes, keeps, ddof, FLOAT64, None)
    if total is None:
        return None
    total = total + _compute("var", array.imag, shape, axes, keeps, ddof, FLOAT64, None)
    return np.sqrt(total) if name == "std" else total


def lengths_after(shape: Shape, axes: Shape, keeps: bool) -> tuple[Shape, Shape, int]:
    """Return a shape with 1 for each axis that is reduced, that of the result, and how many terms each result has."""
    source: list[int] = []
    left: list[int] = []
    count = 1
    for at in range(len(shape)):
        is_reduced = at in axes
        source.append(1 if is_reduced else shape[at])
        if is_reduced:
            count *= shape[at]
        if keeps or not is_reduced:
            left.append(source[at])
    return tuple(source), tuple(left), count


def summed_axes(axis: Any, shape: Shape) -> Shape:
    """Return the axes of `shape` that the user's `axis` means, counted from 0."""
    if type(axis) is int:  # as in nearly all small calls
        return (place_of(axis, shape),)
    if axis is None:
        return tuple(range(len(shape)))
    axes: list[int] = []
    given: Any = axes_argument(axis)
    for each in (given,) if type(given) is int else given:
        at = place_of(each, shape)
        if at in axes:
            raise ValueError(f"`axis` expected axes that differ, got {show(axis)}")
        axes.append(at)
    return tuple(axes)


def order_in_memory(array: NDArray[Any]) -> list[int] | None:
    """Return the axes of an array in the order of its memory, as NumPy's iterators find it, if that is another."""
    strides: Any = array.strides
    order: list[int] = []  # the innermost axis first
    is_other = False
    for at in range(len(strides) - 1, -1, -1):
        place = i = len(order)
        while i > 0 and not 0 < abs(strides[order[i - 1]]) <= abs(strides[at]):
            i -= 1
            place = i if strides[at] and strides[order[i]] else place
        is_other |= place < len(order)
        order.insert(place, at)
    return order[::-1] if is_other else None


def _dtype_of_result(name: str, own: np.dtype[Any], dtype: Any, to: np.dtype[Any] | None) -> np.dtype[Any] | None:
    """Return the dtype to which a sum or a statistic is rounded; None if NumPy is to find it.

    If `out` has another one, `to`, the result is then converted to that.
    """
    is_free = dtype is None and (to is None or to is own)
    if is_free and (own is FLOAT64 or own is FLOAT32 or (own is INT64 and name == "sum")):  # as in most small calls
        return own
    if name == "std" and to is not None and kind_of_sums(to) in ("b", "i"):  # NumPy writes variances before it refuses
        raise TypeError(f"`out` expected a dtype of floats, got {to}")
    if dtype is not None:
        wanted = dtype_argument(dtype)
        is_left = to is not None and kind_of_sums(to) in ("", "b") and to.num not in LONG_DOUBLES
        return wanted if not is_left and _is_fit(name, own, wanted) else None
    return _dtype_of_terms(name, own) if to is None else _dtype_beside(name, own, to)


def _dtype_of_terms(name: str, own: np.dtype[Any]) -> np.dtype[Any] | None:
    """Return the dtype of a sum or a statistic that follows from the terms' alone; None if NumPy is to find it."""
    kind = own.kind
    if kind in "biu" and name != "sum":
        return FLOAT64
    if kind in "biu" and own.itemsize < 8:
        return UINT64 if kind == "u" else INT64
    if kind == "V" and kind_of_sums(own) == "":
        return None
    if kind == "c" and name in SQUARES:
        return real_dtype(own)
    return own if own.isnative else own.newbyteorder("=")


def _is_fit(name: str, own: np.dtype[Any], wanted: np.dtype[Any]) -> bool:
    """Return whether the core rounds sums or a statistic to the dtype that the user wants."""
    to = kind_of_sums(wanted)
    if to == "i":
        return name == "sum" and kind_of_sums(own) in ("b", "i") and wanted.isnative
    of_real_part = own.kind == "c" and to == "f" and name in SQUARES  # NumPy warns
    return to in ("f", "c") and wanted.isnative and not of_real_part


def _dtype_beside(name: str, own: np.dtype[Any], to: np.dtype[Any]) -> np.dtype[Any] | None:
    """Return the dtype to which a sum or a statistic is rounded if only `out` has one, `to`: as a rule, that."""
    terms, target = kind_of_sums(own), kind_of_sums(to)
    of_integers = terms in ("b", "i")
    of_wholes = target == "i" and (of_integers or terms == "")
    if name != "sum" and (of_wholes or to.num in LONG_DOUBLES):
        return COMPLEX128 if own.kind == "c" and name == "mean" else FLOAT64

    if target == "f" or target == "c" or (target == "i" and of_integers):
        return to if to.isnative else to.newbyteorder("=")
    if target != "i" or terms == "":
        return None
    if own.isbuiltin == 2:  # another package's
        return FLOAT64
    return np.result_type(real_dtype(own) if name in SQUARES else own, to)


def real_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of the parts of complex numbers; another dtype unchanged."""
    if dtype.kind != "c":
        return dtype
    return np.dtype(np.float32 if dtype.itemsize == 8 else np.float64)


def _deviations(
    array: NDArray[Any],
    alignment: Alignment,
    out: NDArray[Any],
    count: float,
    divisor: float,
    root: bool,
    is_fresh: bool,
) -> None:
    """Write variances or their roots: the means first, then the mean squares of what is left, both by the block."""
    shape, source = alignment.shape, alignment.source
    blocks = 1
    if size_of(out) > MEANS_ITEMS:
        blocks += max(array.nbytes, FLOAT64.itemsize * size_of(out)) // MEANS_BLOCK_BYTES
    axis = 0
    for at in range(len(shape)):  # the first one that is long enough, or the longest
        if source[at] != 1 and source[axis] < blocks and source[at] > source[axis]:
            axis = at
    length = shape[axis]
    step = -(-length // blocks)
    whole = out
    if (
        step < length and not is_fresh
    ):  # what overlaps is read to the end, and what fails halfway leaves `out` as it was
        whole = result_array(None, array, shape_of(out), "a", out.dtype)
    result = reshaped(whole, source)
    for begin in range(0, length, step):
        part = array, result
        if step < length:
            where = (slice(None),) * axis + (slice(begin, begin + step),)
            part = array[where], result[where]
        places = aligned(shape_of(part[0]), shape_of(part[1]))
        means = result_array(None, array, places.source, "a", FLOAT64)
        average_onto(part[0], places, means, count, None, False, array.itemsize > 2 or out.itemsize < 8)
        average_onto(part[0], places, part[1], divisor, means, root)
        del means  # before there are others
    if whole is not out:
        np.copyto(out, whole)


def _sum(array: NDArray[Any], counts: list[Any], whole: Shape, result: NDArray[Any]) -> NDArray[Any]:
    """Sum an array into a result of shape `whole`: the steps of `repeat` in reverse."""
    steps = order(counts)
    for i in range(len(steps) - 1, -1, -1):
        at, lengths, dst = -steps[i][1], whole, result
        if i > 0:  # of `at`, or of all axes of integers if it is -1; sums of sums are rounded once
            left: list[int] = []
            for axis in range(len(counts)):
                summed = axis == at or (at < 0 and type(counts[axis]) is int)
                left.append(whole[axis] if summed else array.shape[axis])
            lengths = tuple(left)
            dst = result_array(None, array, lengths, "repeats", wide_dtype(result.dtype))
        if at >= 0:
            array = sum_counted(array, counts[at], at, dst)
        else:
            alignment = split(lengths, integers_of(counts), False)
            array = sum_onto(array.reshape(alignment.shape), alignment, dst)
    return array


def lengths_left(counts: list[Any], shape: Shape) -> Shape:
    """Return the shape of what was repeated, if the counts fit `shape`."""
    lengths: list[int] = []
    for at in range(len(shape)):
        count = counts[at]
        if type(count) is int:
            if count == 0:
                raise ValueError("`repeats` expected 1 or more times for all items, got 0")
            if shape[at] % count:
                whose = f"of the length {shape[at]} of `grad`'s axis {at}"
                raise ValueError(f"`repeats` expected a divisor {whose}, got {show(count)}")
            lengths.append(shape[at] // count)
        else:
            if count.total != shape[at]:
                whose = f"the length {shape[at]} of `grad`'s axis {at}"
                divides = count.size == 1 and count.total and shape[at] % count.total == 0
                remedy = f"; if each item had as many, give {count.total} and no sequence" if divides else ""
                got = f"{count.total} in all{remedy}"
                raise ValueError(f"`repeats` expected integers that add up to {whose}, got {got}")
            lengths.append(count.size)
    return tuple(lengths)


def wide_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return a dtype for sums that are summed again."""
    wide = np.dtype(np.complex128) if dtype.kind == "c" else FLOAT64
    return wide if dtype.kind in "cfV" and dtype.itemsize < wide.itemsize else dtype


def wanted_dtype(grad: NDArray[Any], dtype: DType) -> np.dtype[Any] | None:
    """Check that items of `grad` can be summed, in the user's `dtype` if given; return that, or None for their own."""
    number = type_of(grad)
    if dtype is None and (1 <= number <= 16 or number == 23):  # NumPy's integers, floats and complex; float16 is 23
        return None
    own = grad.dtype
    if not _adds(own) and (dtype is None or own.kind != "b"):
        remedy = "; give `dtype` to count in" if own.kind == "b" else ""
        raise TypeError(f"`grad` expected a numeric dtype, got {brief(own)}{remedy}")
    if dtype is None:
        return None
    wanted = dtype_argument(dtype)
    if not _adds(wanted):
        raise TypeError(f"`dtype` expected a numeric dtype, got {brief(wanted)}")
    if wanted != own and "m" in (own.kind, wanted.kind):
        raise TypeError(f"`dtype` expected a dtype that sums {own}, got {brief(wanted)}")
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
