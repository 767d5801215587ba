"""The adjoints of `broadcast` and `repeat`. In: a gradient. Out: its sums over the repetitions of each item."""

import math
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bcast._api.converted import as_array, into_tensor, is_tensor
from bcast._api.copies import counts_along, integers_of, order, split
from bcast._api.exact_products import MOST_AXES, halves_of, summed_products, without_unit_axes
from bcast._reduction import converted_terms, expand_onto, has_kernels, sum_counted, sum_exactly_onto, sum_onto
from bcast._rules.alignment import GRAD, GRAD_OF_SCALAR, Alignment, align_shapes, aligned
from bcast._rules.arguments import Shape, axes_argument, brief, dtype_argument, shape_argument, show
from bcast._rules.types import AxesLike, CountsLike, DType, Mode, Out, ShapeLike, SizesLike
from bcast._runtime.arrays import result_array, rounded_to, shape_of, size_of, type_of

FLOAT64, COMPLEX128 = np.dtype(np.float64), np.dtype(np.complex128)
MOST_TERMS = 2**53  # the numbers of terms up to it are exact in float64
MOST_INTEGERS = 2**31  # the most integers of 64 bits, whose sum has 95 bits


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
    exact: bool = False,
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
        As passed to `broadcast` or `broadcast_like`. Empty `broadcast_axes` mean no axes if `data_shape` is the shape
        of `grad`, and all axes if it is ``()``.
    times : array_like, optional
        An array that broadcasts to the shape of `grad` by NumPy's rule. The result is then the sum of ``grad * times``.
        This is the gradient with respect to a scale that multiplied `times`. Products of floats narrower than float64
        are exact, others are NumPy's. No array of products is made, except for complex numbers and some other dtypes.
    dtype : data-type, optional
        The dtype of the result: anything numeric that `numpy.dtype` accepts. The default is the dtype of `grad` or of
        ``grad * times``, because a gradient has the dtype of the data. Sums of narrow integers wrap around in it; `sum`
        promotes them, as `numpy.sum` does.
    out : ndarray or tensor, optional
        As in `broadcast`, except that it must have the dtype of the result. The result is as if `grad` had been copied
        first.
    exact : bool, optional
        Whether to round exact sums once, as in `sum`. With `times`, these are sums of exact products, for any finite
        factors.

    Returns
    -------
    ndarray
        Like the result of `broadcast`, even if nothing had to be summed. The sum over an empty axis is 0.

    Raises
    ------
    TypeError
        If `grad` or `dtype` is not numeric, or too wide for `exact`. (Bools are not numeric, but a `grad` of bools can
        be summed in another `dtype`.) Other errors are as in `broadcast`.

    Notes
    -----
    Integers wrap around. Floating-point and complex numbers are summed in higher precision than their dtype's: a result
    is infinite only if a term is infinite or the exact sum is too large, and its error has a bound that does not depend
    on the number of terms or on the axes along which they are added. If all terms have the same sign, the error is at
    most

    * 1 unit in the last place for float16, and for bfloat16 and float32 of up to 2**26 terms;
    * 1.5 units for float64, or 2.5 if pairs of terms exceed the sum of the terms before them.

    If terms cancel, the unit refers to the sum of the terms' magnitudes. Narrow floating-point numbers are summed in
    float64. Sums of float64 are compensated, as in Ogita, Rump and Oishi's Sum2: an error term collects the rounding
    error of each addition. Before that, pairs of float64 terms are added without compensation. The sum of
    ``[1e16, 1, -1e16]`` may therefore be 1 or 0, depending on the layout of `grad`. The bits of a result depend neither
    on the number of threads nor on the layout of `out`.

    This is true of NumPy's integers, float16, float32, float64, complex64, complex128 and the bfloat16 of `ml_dtypes`.
    Narrower floats of other packages, such as float8, are converted to float32 first, and sums in these dtypes are
    rounded once from float64. NumPy itself sums numbers of other dtypes, such as long double and objects, and
    floating-point numbers in an integer `dtype`, which it converts term by term. Sums of long doubles to a narrower
    `dtype` are rounded last. If `grad` is complex and `dtype` is real, the real parts are summed, with NumPy's
    `ComplexWarning`. If that warning is an error, `out` is left unchanged. Complex arrays with gaps between all items,
    such as every second item of an array, are copied first.

    Mode 'numpy' is the backward pass of NumPy's own broadcasting. Mode 'explicit' with `broadcast_axes` is the backprop
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

    Each row was multiplied by a scale, so its gradient is a sum of products. No array of these is made:

    >>> rows = np.array([[1.0, 0.5, 2.0], [0.1, 0.2, 0.3]])
    >>> bcast.unbroadcast(grad, (3,), times=rows)
    array([ 2.,  5., 15.])
    """
    if out is not None and is_tensor(out):
        rules = {"mode": mode, "axis": axis, "broadcast_axes": broadcast_axes, "times": times, "dtype": dtype}
        return into_tensor(unbroadcast, out, grad, data_shape, axes_mapping, exact=exact, **rules)
    array = as_array("grad", grad)
    shape = shape_argument("data_shape", data_shape)
    like, factor, owner = array, None, "grad"
    if times is not None:
        factor, like = factor_of(array, times)
        owner = "the product"
    wanted = wanted_dtype(like, dtype)
    role = GRAD if shape else GRAD_OF_SCALAR
    alignment = align_shapes(shape, shape_of(array), axes_mapping, mode, axis, broadcast_axes, role)
    result = result_array(out, like, shape, "data_shape", wanted, owner)
    if exact and factor is not None:
        return _write_exact_products(array, factor, alignment, result)
    if exact:
        return write_exact_sums("grad", array, alignment, result)
    return sum_onto(array, alignment, result, factor)


def _write_exact_products(
    grad: NDArray[Any], times: NDArray[Any], alignment: Alignment, out: NDArray[Any]
) -> NDArray[Any]:
    """Write exact sums of products, rounded once, into `out`, and return it. Products of integers are NumPy's."""
    if out.dtype.kind in "biu":
        return sum_onto(grad, alignment, out, times)
    if np.multiply.resolve_dtypes((grad.dtype, times.dtype, None))[2].kind in "biu":
        return write_exact_sums("grad", np.multiply(grad, times), alignment, out)
    sums = summed_products("grad", grad, times, alignment.source, out.dtype)
    np.copyto(out, sums.reshape(shape_of(out)))
    return out


def write_exact_sums(
    name: str,
    data: NDArray[Any],
    alignment: Alignment,
    out: NDArray[Any],
    divisor: float = 1.0,
    skips_nan: bool = False,
    divisors: NDArray[Any] | None = None,
    initial: Any = 0,
) -> NDArray[Any]:
    """Write exact sums, divided by integers and rounded once, into `out`; return it. Sums of integers wrap around.

    `name` is the name of the data in errors. `divisors`, if given, has a float64 for each sum, of shape
    ``alignment.source``. The initial value is one more term of each sum of floats. Options come one by one, and the
    function is clearer whole: calls that end early are kinds of calls.
    """
    if out.dtype.kind in "biu":
        return sum_onto(data, alignment, out)
    if initial == 0:
        initial = 0.0  # a complex one, too
    elif out.dtype.kind == "c":
        return _write_exact_parts(name, data, alignment, out, skips_nan, complex(initial))
    if data.ndim > MOST_AXES:
        _write_along_few_axes(name, data, alignment, out, divisor, skips_nan, divisors, initial)
        return out
    if divisor > MOST_TERMS:
        raise ValueError(f"`{name}` expected at most 2**53 terms of an exact mean, got {int(divisor)}")
    if size_of(data) == size_of(out):
        if initial == 0 and not skips_nan:
            np.copyto(out, np.reshape(rounded_to(data, out.dtype), shape_of(out)))
            return out
        source = alignment.source
        data = np.stack((data, np.zeros_like(data)), -1)  # sums of several terms
        alignment = aligned(shape_of(data), source + (1,))
        divisors = None if divisors is None else divisors[..., np.newaxis]

    terms, alignment = _exact_terms(data, alignment)
    if divisors is not None:
        divisors = divisors.reshape(alignment.source)
    if not sum_exactly_onto(terms, alignment, out, divisor, skips_nan, None, divisors, initial):
        wrong, dtype = ("dtype", out.dtype) if has_kernels(terms) else (name, data.dtype)
        raise TypeError(f"`{wrong}` expected numbers of at most 64 bits if `exact`, got {brief(dtype)}")
    return out


def _write_along_few_axes(
    name: str, data: NDArray[Any], alignment: Alignment, out: NDArray[Any], divisor: float, skips_nan: bool,
    divisors: NDArray[Any] | None, initial: Any,
) -> None:  # fmt: skip
    """Do the same without the axes of length 1, so that the parts of terms can have axes. Options come one by one."""
    shape = without_unit_axes(alignment.shape, alignment.shape)
    source = without_unit_axes(alignment.source, alignment.shape)
    reshaped = out.reshape(source)  # a view: lengths of 1 come and go
    write_exact_sums(name, data.reshape(shape), aligned(shape, source), reshaped, divisor, skips_nan, divisors, initial)


def _write_exact_parts(
    name: str, data: NDArray[Any], alignment: Alignment, out: NDArray[Any], skips_nan: bool, initial: complex
) -> NDArray[Any]:
    """Write exact sums of complex numbers from an initial value: those of each part."""
    parts = np.empty(shape_of(out), out.dtype.newbyteorder("="))
    write_exact_sums(name, data.real, alignment, parts.real, 1, skips_nan, None, initial.real)
    write_exact_sums(name, data.imag, alignment, parts.imag, 1, skips_nan, None, initial.imag)
    np.copyto(out, parts)
    return out


def expanded(name: str, data: NDArray[Any], source: Shape, bounded: bool = False) -> NDArray[Any]:
    """Return exact sums to shape `source` as expansions, each of three parts along a new first axis.

    If they are `bounded`, the third part is a bound of the error of the other two.
    """
    terms, alignment = _exact_terms(data, aligned(shape_of(data), source))
    parts = np.zeros((3,) + source, np.complex128 if data.dtype.kind == "c" else np.float64)
    if size_of(terms) == size_of(parts[0]):
        np.copyto(parts[0], terms)
        return parts
    if not expand_onto(terms, alignment, parts, None, bounded):
        raise TypeError(f"`{name}` expected numbers of at most 64 bits, got {brief(data.dtype)}")
    return parts


def added_expansions(parts: NDArray[Any]) -> NDArray[Any]:
    """Add expansions, whose parts follow each other along the first axis; return one expansion."""
    return expanded("parts", parts, (1,) + shape_of(parts)[1:])[:, 0]


def rounded_expansions(
    parts: NDArray[Any], dtype: np.dtype[Any], divisor: float, divisors: NDArray[Any] | None = None
) -> NDArray[Any]:
    """Add expansions, divide all sums by an integer, or each by its own, and round once to a dtype."""
    source = (1,) + shape_of(parts)[1:]
    total = np.empty(source, dtype)
    each = None if divisors is None else divisors.reshape(source)
    write_exact_sums("parts", parts, aligned(shape_of(parts), source), total, divisor, False, each)
    return np.asarray(total[0])


def set_means_of_nothing(means: NDArray[Any], are_empty: NDArray[np.bool]) -> None:
    """Replace means of no items by NaN, in both parts of complex numbers."""
    nothing = complex(math.nan, math.nan) if means.dtype.kind == "c" else math.nan
    np.copyto(means, np.array(nothing, means.dtype), where=are_empty)


def _exact_terms(data: NDArray[Any], alignment: Alignment) -> tuple[NDArray[Any], Alignment]:
    """Return the terms of exact sums along an alignment as kernels read them, and their alignment.

    Integers of 64 bits are summed first, into few float64 along a new first axis.
    """
    dtype, source = data.dtype, alignment.source
    if dtype.kind not in "iu" or dtype.itemsize < 8:
        wide = converted_terms(dtype)
        return data if wide is None else data.astype(wide), alignment

    if size_of(data) >= MOST_INTEGERS * math.prod(source):
        return _halves_of_integers(data, source)
    wrapped, nearest = np.empty(source, dtype.newbyteorder("=")), np.empty(source)
    sum_onto(data, alignment, wrapped)
    sum_onto(data, alignment, nearest)
    terms = _parts_of_integers(wrapped, nearest)
    return terms, aligned(shape_of(terms), (1,) + source)


def _parts_of_integers(wrapped: NDArray[Any], nearest: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return exact sums of integers of 64 bits as sums of three float64, along a new first axis.

    Given are the sums modulo 2**64, and float64 that differ from them by less than 2**63.
    """
    parts = np.empty((3,) + shape_of(nearest))
    whole = np.rint(nearest, out=parts[0, ...])
    high = np.floor(whole * 2.0**-32)
    held = high.astype(np.int64) << 32
    held += (whole - high * 2.0**32).astype(np.int64)  # modulo 2**64
    rest = np.subtract(wrapped.view(np.int64), held, out=held)
    np.multiply(rest >> 32, 2.0**32, out=parts[1, ...])
    np.copyto(parts[2], rest & 0xFFFFFFFF)
    return parts


def _halves_of_integers(data: NDArray[Any], source: Shape) -> tuple[NDArray[Any], Alignment]:
    """Return integers of 64 bits as two float64 each, along a new last axis, and their alignment to `source`."""
    terms = np.broadcast_to(halves_of(_once_each(data)), shape_of(data) + (2,))
    return terms, aligned(shape_of(terms), source + (1,))


def _once_each(data: NDArray[Any]) -> NDArray[Any]:
    """Return only the first items along axes of stride 0, which repeat them."""
    kept: list[slice] = []
    for axis in range(data.ndim):
        kept.append(slice(0, 1) if data.strides[axis] == 0 else slice(None))
    return np.asarray(data)[tuple(kept)]


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

    is_scalar = type(times) in (int, float, complex)  # its dtype follows the dtype of `grad`
    try:
        _, wanted, dtype = np.multiply.resolve_dtypes((own, type(times) if is_scalar else other, None))
    except TypeError as error:
        raise TypeError(f"`times` expected a dtype that can be multiplied with {own}, got {brief(other)}") from error
    return np.asarray(times, wanted) if is_scalar else factor, np.empty(0, dtype)


def unrepeat(
    grad: ArrayLike,
    repeats: CountsLike,
    axis: SizesLike | None = None,
    *,
    dtype: DType = None,
    out: Out = None,
    exact: bool = False,
) -> NDArray[Any]:
    """Sum `grad` over the repetitions of each item: the adjoint of `repeat`, and sums over segments of an axis.

    Item ``i`` of the result is the sum of ``repeats[i]`` neighbours along the axis. They begin after the neighbours of
    item ``i - 1``.

    Parameters
    ----------
    grad : array_like
        The gradient with respect to the result of `repeat`, of any kind that `unbroadcast` accepts.
    repeats, axis
        As passed to `repeat`. Without `axis`, `grad` must have one axis. An integer is the count for every item; the
        length of the axis then determines the number of items. A sequence has a count for each item, so one count means
        one item.
    dtype, out
        As in `unbroadcast`.
    exact : bool, optional
        Whether to round exact sums once, as in `sum`. At most one axis may then have a sequence of counts.

    Returns
    -------
    ndarray
        Like the result of `unbroadcast`. It has the shape of `grad`, except along the repeated axes. Items that were
        repeated 0 times are 0.

    Raises
    ------
    ValueError, numpy.exceptions.AxisError, TypeError, MemoryError
        If the counts do not add up to the length of the axis, or do not divide it; if the only count is the integer 0,
        which does not determine the number of items; otherwise as in `repeat` and `unbroadcast`.

    See Also
    --------
    unbroadcast : The adjoint of `broadcast`; its notes describe the precision.
    numpy.add.reduceat : Sum over segments; for an empty segment, it returns an item instead of 0.

    Notes
    -----
    Sums are computed as in `unbroadcast`, with the same error bounds. Several axes of float64 are summed one after the
    other, and the bound applies to each of them. No other thread may change an array of counts during the call.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast
    >>> values, lengths = np.array([7.5, 0.0, 2.5]), np.array([2, 0, 3])
    >>> decoded = bcast.repeat(values, lengths)
    >>> bcast.unrepeat(np.ones_like(decoded), lengths)
    array([2., 0., 3.])

    Sum the rows of each sequence in a batch of concatenated sequences:

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
        return into_tensor(unrepeat, out, grad, repeats, axis, dtype=dtype, exact=exact)
    array = as_array("grad", grad)
    wanted = wanted_dtype(array, dtype)
    shape = shape_of(array)
    counts = counts_along(repeats, axes_argument(axis), shape, False)
    whole = lengths_left(counts, shape)
    result = result_array(out, array, whole, "repeats", wanted, "grad")
    if size_of(result) == 0:  # counts may be too many for an array
        return result
    return _sum(array, counts, whole, result, exact)


def _sum(array: NDArray[Any], counts: list[Any], whole: Shape, result: NDArray[Any], exact: bool) -> NDArray[Any]:
    """Sum an array into a result of shape `whole`: the passes of `repeat` in reverse."""
    passes = order(counts)
    if exact and len(passes) > 1:
        raise ValueError(f"`repeats` expected counts along one axis if `exact`, got {len(passes)} passes of sums")
    for i in range(len(passes) - 1, -1, -1):
        at = -passes[i][1]  # the axis that is summed; -1 for all axes of integers
        lengths, dst = whole, result
        if i > 0:  # only the last sums are rounded
            lengths = _lengths_between(shape_of(array), counts, whole, at)
            dst = result_array(None, array, lengths, "repeats", wide_dtype(result.dtype))

        if at >= 0:
            array = (
                _sum_exactly_by_counts(array, counts[at], at, dst) if exact else sum_counted(array, counts[at], at, dst)
            )
        else:
            alignment = split(lengths, integers_of(counts), False)
            array = array.reshape(alignment.shape)
            array = write_exact_sums("grad", array, alignment, dst) if exact else sum_onto(array, alignment, dst)
    return array


def _sum_exactly_by_counts(data: NDArray[Any], counts: Any, at: int, out: NDArray[Any]) -> NDArray[Any]:
    """Sum by counts along axis `at`, exactly unless the sums wrap around."""
    dtype = data.dtype
    if not has_kernels(out):
        raise TypeError(f"`dtype` expected numbers of at most 64 bits if `exact`, got {brief(out.dtype)}")
    if out.dtype.kind in "biu" or dtype.kind not in "iu" or dtype.itemsize < 8:
        return sum_counted(data, counts, at, out, out.dtype.kind not in "biu")
    wrapped, nearest = np.empty(shape_of(out), dtype.newbyteorder("=")), np.empty(shape_of(out))
    sum_counted(data, counts, at, wrapped)
    sum_counted(data, counts, at, nearest)
    terms = _parts_of_integers(wrapped, nearest)
    return write_exact_sums("grad", terms, aligned(shape_of(terms), (1,) + shape_of(out)), out)


def _lengths_between(shape: Shape, counts: list[Any], whole: Shape, at: int) -> Shape:
    """Return a shape after a pass along axis `at`, or -1 for all axes of integers, which get the lengths of `whole`."""
    lengths: list[int] = []
    for axis in range(len(counts)):
        is_summed = axis == at or (at < 0 and type(counts[axis]) is int)
        lengths.append(whole[axis] if is_summed else shape[axis])
    return tuple(lengths)


def lengths_left(counts: list[Any], shape: Shape) -> Shape:
    """Return the shape of the data before `repeat`, if the counts fit `shape`."""
    lengths: list[int] = []
    for at in range(len(shape)):
        count = counts[at]
        if type(count) is int:
            if count == 0 or shape[at] % count:
                _refuse_integer(count, at, shape[at])
            lengths.append(shape[at] // count)
        else:
            if count.total != shape[at]:
                _refuse_total(count, at, shape[at])
            lengths.append(count.size)
    return tuple(lengths)


def _refuse_integer(count: int, at: int, length: int) -> NoReturn:
    """Refuse one count for all items of an axis whose length is no multiple of it."""
    if count == 0:
        raise ValueError("`repeats` expected a count of 1 or more for all items, got 0")
    whose = f"of the length {length} of `grad`'s axis {at}"
    raise ValueError(f"`repeats` expected a divisor {whose}, got {show(count)}")


def _refuse_total(counts: Any, at: int, length: int) -> NoReturn:
    """Refuse counts of the items of an axis that do not add up to its length."""
    whose = f"the length {length} of `grad`'s axis {at}"
    is_divisor = counts.size == 1 and counts.total and length % counts.total == 0
    remedy = f"; if this is the count of every item, use the integer {counts.total}" if is_divisor else ""
    got = f"{counts.total} in all{remedy}"
    raise ValueError(f"`repeats` expected integers that add up to {whose}, got {got}")


def wide_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return a dtype for sums that are summed again."""
    wide = COMPLEX128 if dtype.kind == "c" else FLOAT64
    return wide if dtype.kind in "cfV" and dtype.itemsize < wide.itemsize else dtype


def wanted_dtype(grad: NDArray[Any], dtype: DType) -> np.dtype[Any] | None:
    """Check that items of `grad` can be summed, in the user's `dtype` if given; return it, or None for their own."""
    number = type_of(grad)
    if dtype is None and (1 <= number <= 16 or number == 23):  # NumPy's integers, floats and complex; float16 is 23
        return None
    own = grad.dtype
    if not _adds(own) and (dtype is None or own.kind != "b"):
        remedy = "; use a numeric `dtype`" if own.kind == "b" else ""
        raise TypeError(f"`grad` expected a numeric dtype, got {brief(own)}{remedy}")
    if dtype is None:
        return None
    wanted = dtype_argument(dtype)
    if not _adds(wanted):
        raise TypeError(f"`dtype` expected a numeric dtype, got {brief(wanted)}")
    if wanted != own and "m" in (own.kind, wanted.kind):
        raise TypeError(f"`dtype` expected a dtype in which {own} can be summed, got {brief(wanted)}")
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
