"""Exact sums of products, for `unbroadcast` with `times`, `vecdot`, and sums of squares.

In: arrays of numbers. Out: new arrays, of sums that are rounded once, or of expansions: sums of three float64. Kernels
read real factors of at most 53 bits. So complex numbers are split into their parts, and integers of 64 bits into
halves, along a further axis that is also summed.
"""

import warnings
from typing import Any

import numpy as np
from numpy.exceptions import ComplexWarning
from numpy.typing import NDArray

from bcast._api.converted import as_base, as_operand, is_handed_on
from bcast._reduction import converted_terms, expand_onto, has_kernels, sum_exactly_onto
from bcast._rules.alignment import aligned, merge
from bcast._rules.arguments import Shape, brief, show

MOST_AXES = 60  # of terms and factors whose parts have axes, too
Factors = tuple[NDArray[Any], NDArray[Any], Shape]  # two factors, and the shape to which their products are summed


def without_unit_axes(shape: Shape, whole: Shape) -> Shape:
    """Return a shape without the axes at which `whole`, of as many axes, has length 1."""
    return tuple(length for length, most in zip(shape, whole, strict=True) if most != 1)


def summed_products(
    name: str, data: NDArray[Any], times: NDArray[Any], source: Shape, dtype: np.dtype[Any]
) -> NDArray[Any]:
    """Return exact sums of `data * times`, which broadcasts to `data`, to shape `source`, rounded once to a dtype.

    `name` is the name of the data in errors.
    """
    if data.ndim > MOST_AXES:
        times = times.reshape((1,) * (data.ndim - times.ndim) + times.shape)
        own, factors, kept = (without_unit_axes(shape, data.shape) for shape in (data.shape, times.shape, source))
        return summed_products(name, data.reshape(own), times.reshape(factors), kept, dtype).reshape(source)
    result = np.empty(source, dtype)
    if data.dtype.kind != "c" and times.dtype.kind != "c":
        if dtype.kind != "c":
            _write_sums(name, (data, times, source), result)
        else:
            result[...] = summed_products(name, data, times, source, result.real.dtype)
        return result

    if dtype.kind != "c":
        message = "Casting complex values to real discards the imaginary part"
        warnings.warn(message, ComplexWarning, stacklevel=3)
    _write_sums(name, _factors_of_part(data, times, source, False), result.real)
    if dtype.kind == "c":
        _write_sums(name, _factors_of_part(data, times, source, True), result.imag)
    return result


def expanded_products(
    name: str, data: NDArray[Any], times: NDArray[Any], source: Shape, bounded: bool = False
) -> NDArray[Any]:
    """Return exact sums of real products as expansions, or with bounds, like `expanded`."""
    data, times, whole = _readable(name, (data, times, source))
    parts = np.empty((3, *whole))
    expand_onto(data, aligned(data.shape, whole), parts, times, bounded)
    return parts.reshape((3, *source))


def _write_sums(name: str, factors: Factors, out: NDArray[Any]) -> None:
    """Write exact sums of real products, rounded once, into a new array."""
    data, times, source = _readable(name, factors)
    if not sum_exactly_onto(data, aligned(data.shape, source), out, 1, times=times):
        raise TypeError(f"`dtype` expected numbers of at most 64 bits if `exact`, got {brief(out.dtype)}")


def _factors_of_part(data: NDArray[Any], times: NDArray[Any], source: Shape, is_imaginary: bool) -> Factors:
    """Return real factors whose sum of products is the real or the imaginary part of a complex one."""
    if times.dtype.kind != "c":
        return (data.imag if is_imaginary else data.real), times, source
    if data.dtype.kind != "c":
        return data, (times.imag if is_imaginary else times.real), source
    others = (times.imag, times.real) if is_imaginary else (times.real, -times.imag)
    return parts_of(data), np.stack(others, -1), (*source, 1)


def parts_of(array: NDArray[Any]) -> NDArray[Any]:
    """Return the parts of complex numbers along a new last axis: a view, if they are contiguous."""
    if array.ndim and array.flags.c_contiguous:
        return array.view(array.real.dtype).reshape(*array.shape, 2)
    return np.stack((array.real, array.imag), -1)


def _readable(name: str, factors: Factors) -> Factors:
    """Return factors in dtypes that kernels read."""
    data, times, source = factors
    is_square = data is times
    data = _converted(name, data)
    times = data if is_square else _converted("times", times)
    if _is_wide(data.dtype):
        data, times, source = halves_of(data), times[..., np.newaxis], (*source, 1)
    if _is_wide(times.dtype):
        times, source = halves_of(times), (*source, 1)
        data = np.broadcast_to(data[..., np.newaxis], (*data.shape, 2))
    return data, times, source


def _converted(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """Return an array, or floats of another package as floats that kernels read."""
    wide = converted_terms(array.dtype)
    array = array if wide is None else array.astype(wide)
    if not has_kernels(array):
        raise TypeError(f"`{name}` expected numbers of at most 64 bits if `exact`, got {brief(array.dtype)}")
    return array


def _is_wide(dtype: np.dtype[Any]) -> bool:
    """Return whether a dtype has integers that float64 cannot represent."""
    return dtype.kind in "iu" and dtype.itemsize == 8


def halves_of(integers: NDArray[Any]) -> NDArray[Any]:
    """Return integers of 64 bits as sums of two float64, along a new last axis.

    Both have the integer's sign, and only 0 has halves of 0, so products with infinite factors are infinite.
    """
    halves = np.empty((*integers.shape, 2))
    high, low = halves[..., 0], halves[..., 1]
    np.multiply(integers >> 32, 2.0**32, out=high)
    np.copyto(low, integers & 0xFFFFFFFF)

    crosses_zero = (high < 0) & (low > 0)
    high[crosses_zero] += 2.0**32
    low[crosses_zero] -= 2.0**32
    is_short = (high == 0) | (low == 0)
    halves[is_short] = (high + low)[is_short, np.newaxis] / 2
    return halves


# ---- Dot products ----


def own_array(name: str, value: Any) -> NDArray[Any]:
    """Return an argument of an exact function as an array of NumPy's own class."""
    if is_handed_on(value):
        raise TypeError(f"`{name}` expected an array of NumPy's own class if `exact`, got {show(type(value))}")
    return np.asarray(as_base(as_operand(name, value)))


def _fits(dtype: np.dtype[Any], out: NDArray[Any] | None) -> bool:
    """Return whether NumPy's functions would write results of a dtype into `out`."""
    return out is None or np.can_cast(dtype, out.dtype, "same_kind")


def vecdots(x1: Any, x2: Any, out: Any, axis: int) -> NDArray[Any] | None:
    """Return exact dot products, rounded once; None if NumPy's function is exact, or raises.

    It is clearer whole: a condition for each call of the latter kinds.
    """
    a, b = own_array("x1", x1), own_array("x2", x2)
    if out is not None:
        if is_handed_on(out):
            own_array("out", out)
        if not isinstance(out, np.ndarray):
            return None
    _converted("x1", a), _converted("x2", b)
    dtype = np.vecdot.resolve_dtypes((a.dtype, b.dtype, None))[2]
    if dtype.kind in "biu" or not a.ndim or not b.ndim or not _fits(dtype, out):
        return None
    if out is not None and out.dtype.kind in "fc":
        dtype = out.dtype
        if not has_kernels(out):
            raise TypeError(f"`out` expected numbers of at most 64 bits if `exact`, got {brief(dtype)}")

    a, b = np.moveaxis(a, axis, -1), np.moveaxis(b, axis, -1)
    if a.shape[-1] != b.shape[-1]:
        return None
    shape = merge([a.shape, b.shape], "x1, x2")
    if out is not None and out.shape != shape[:-1]:
        return None
    if a.dtype.kind == "c":
        a = np.conjugate(a)
    if a.size < b.size:
        a, b = b, a
    whole = np.broadcast_to(a, shape)
    return summed_products("x1", whole, b, (*shape[:-1], 1), dtype)[..., 0]
