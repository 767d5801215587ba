"""Exact norms, variances and standard deviations: from exact sums of items and of their squares, rounded once.

In: an array, and the shape with axes of length 1 to which it is reduced. Out: a new array of that shape. Sums are
first two float64 and a bound. If these do not settle a result, its items are summed again, as integers of any size.
`docs/design/sums.md` proves the bounds.
"""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bcast._api.adjoints import expanded
from bcast._api.exact_products import expanded_products, parts_of
from bcast._reduction import bound_integers_onto, converted_terms, has_kernels, measure_rows_onto, settle_spreads_onto
from bcast._rules.arguments import Shape, brief
from bcast._runtime.arrays import rounded_to
from bcast._runtime.core import L2
from bcast._runtime.errors import quietly

Floats: TypeAlias = NDArray[Any]
FLOAT64 = np.dtype(np.float64)


class Measuring(NamedTuple):
    """What is made of each vector."""

    name: str  # of the data in errors
    dtype: np.dtype[Any]  # of results
    is_root: bool
    has_means: bool  # whether squares are of differences from the mean
    ddof: float
    skips_nan: bool


def norms(data: NDArray[Any], source: Shape, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return roots of exact sums of squares."""
    return _measured(data, source, Measuring("x", dtype, True, False, 0, False))[0]


def spreads(
    data: NDArray[Any], source: Shape, dtype: np.dtype[Any], ddof: Any, is_root: bool, skips_nan: bool = False
) -> tuple[NDArray[Any], bool]:
    """Return variances, or their roots, and whether some are NaN because they have `ddof` items or fewer."""
    return _measured(data, source, Measuring("a", dtype, is_root, True, float(ddof), skips_nan))


def divisor_of(count: int, ddof: float) -> tuple[float, float]:
    """Return ``count * (count - ddof)`` as a float and its rounding error."""
    divisor = count * (count - Fraction(ddof))
    if divisor > Fraction(2) ** 1000:
        return np.inf, 0
    return float(divisor), float(divisor - Fraction(float(divisor)))


def _measured(data: NDArray[Any], source: Shape, how: Measuring) -> tuple[NDArray[Any], bool]:
    """Return what is made of exact sums: of bounded ones, and of integers where bounds leave results open."""
    wide = converted_terms(data.dtype)
    data = data if wide is None else data.astype(wide)
    if not has_kernels(data):
        raise TypeError(f"`{how.name}` expected numbers of at most 64 bits if `exact`, got {brief(data.dtype)}")
    shape = source
    kept = [axis for axis in range(data.ndim) if data.shape[axis] != 1]  # the parts of sums need axes as well
    source = tuple(source[axis] for axis in kept)
    data = data.reshape([data.shape[axis] for axis in kept])

    found = _settled(data, source, how)
    lacks_terms = False
    open_ones = np.flatnonzero(found != found)
    for chosen, rows in _rows_of(data, source, open_ones):
        values = np.empty(len(rows))
        rows = readable(rows, how.skips_nan)
        to_odd = how.dtype != FLOAT64
        measure_rows_onto(rows, values, how.ddof, how.has_means, how.is_root, to_odd, how.skips_nan)
        found[chosen] = values
        if how.skips_nan:
            numbers = rows[values != values, :, 0]
            lacks_terms |= bool(np.any(np.count_nonzero(numbers == numbers, axis=1) <= how.ddof))
    return quietly(rounded_to, found, how.dtype).reshape(shape), lacks_terms


def _settled(data: NDArray[Any], source: Shape, how: Measuring) -> Floats:
    """Return what is made of bounded sums, as one axis; NaN where the bounds leave a result open."""
    n = int(np.prod(source))
    found = np.full(n, np.nan)
    if not has_kernels(np.empty(0, how.dtype)):  # their roundings are unknown
        return found
    bounded = _bounded_integers(data, source) if _is_wide(data.dtype) else _bounded_floats(data, source, how)
    if bounded is not None:
        sums, squares = bounded
        count = data.size // n
        divisor, rest = divisor_of(count, how.ddof) if how.has_means else (1, 0)
        sums = sums if how.has_means else np.empty(0)
        settle_spreads_onto(sums, squares, found, count, divisor, rest, how.is_root, how.dtype)
    return found


def _bounded_floats(data: NDArray[Any], source: Shape, how: Measuring) -> tuple[Floats, Floats]:
    """Return sums, of each part of the items, and sums of squares, as two numbers and a bound."""
    parts, whole = (parts_of(data), (*source, 1)) if data.dtype.kind == "c" else (data, source)
    squares = expanded_products(how.name, parts, parts, whole, True).reshape(3, -1)
    if not how.has_means:
        return np.empty(0), squares
    sums = expanded(how.name, data, source, True).reshape(3, -1)
    return (np.stack((sums.real, sums.imag)) if data.dtype.kind == "c" else sums), squares


def _bounded_integers(data: NDArray[Any], source: Shape) -> tuple[Floats, Floats] | None:
    """Return the same for integers of 64 bits; None if there are too many of one result."""
    n = int(np.prod(source))
    sums, squares = np.empty((3, n)), np.empty((3, n))
    rows = moved(data, source).reshape(n, -1, 1)
    rows = rows if rows.dtype.isnative else rows.astype(rows.dtype.newbyteorder("="))
    return (sums, squares) if bound_integers_onto(rows, sums, squares) else None


def _is_wide(dtype: np.dtype[Any]) -> bool:
    """Return whether these are integers that float64 does not hold."""
    return dtype.kind in "iu" and dtype.itemsize == 8


def moved(data: NDArray[Any], source: Shape) -> NDArray[Any]:
    """Return the data with its reduced axes behind the others."""
    reduced = [axis for axis, length in enumerate(source) if length == 1]
    return data.transpose([axis for axis, length in enumerate(source) if length != 1] + reduced)


def _rows_of(
    data: NDArray[Any], source: Shape, chosen: NDArray[np.intp]
) -> Iterator[tuple[NDArray[np.intp], NDArray[Any]]]:
    """Yield some results, by their numbers, and their terms as rows: as many as a cache holds, or all in place."""
    if not chosen.size:
        return
    items = moved(data, source)
    n = int(np.prod(source))
    kept = items.shape[: sum(length != 1 for length in source)]
    if chosen.size == n and (items.flags.c_contiguous or n == 1):
        yield chosen, items.reshape(n, -1)
        return
    at_once = max(1, L2 // (data.itemsize * (data.size // n)))
    for begin in range(0, chosen.size, at_once):
        block = chosen[begin : begin + at_once]
        places = np.unravel_index(block, kept) if kept else ()
        yield block, items[places].reshape(len(block), -1)


def readable(rows: NDArray[Any], skips_nan: bool) -> NDArray[Any]:
    """Return rows as the core reads them: float64, or integers of 64 bits, with an axis for the parts of items."""
    if rows.dtype.kind == "c":
        rows = np.ascontiguousarray(rows, complex)
        if skips_nan:
            rows = np.where(rows == rows, rows, complex(np.nan, np.nan))
        return rows.view(float).reshape(*rows.shape, 2)
    wide = rows.dtype.newbyteorder("=") if _is_wide(rows.dtype) else FLOAT64
    return rows.astype(wide, copy=False)[..., np.newaxis]
