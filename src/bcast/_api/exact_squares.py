"""Exact norms, variances and standard deviations: from exact sums of items and of their squares.

In: an array, and the shape with axes of length 1 to which it is reduced. Out: a new array of that shape. Sums are
first two float64 and a bound. If the bound does not settle a result, it is computed again from expansions.
`docs/design/sums.md` proves the bounds.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bcast._api.adjoints import expanded
from bcast._api.exact_products import expanded_products, parts_of
from bcast._reduction import converted_terms, expand_onto, sum_exactly_onto
from bcast._rules.alignment import aligned
from bcast._rules.arguments import Shape
from bcast._runtime.arrays import rounded_to
from bcast._runtime.core import L2
from bcast._runtime.errors import quietly

Floats: TypeAlias = NDArray[Any]
Sums: TypeAlias = tuple[list[Floats], Floats]  # sums of the items, or of each of their parts, and of squares
Finish: TypeAlias = Callable[[Sums, bool], tuple[Floats, NDArray[np.bool]]]  # results, and which of them are settled
LEAST_SQUARES, MOST_SQUARES = 2.0**-850, 2.0**900  # all parts of such sums stay in the range of float64
SLACK = 2.0**-90  # more than all roundings of a Newton step, relative to its result
ROUNDINGS = 2.0**-50  # more than a few rounding errors of float64


def norms(data: NDArray[Any], source: Shape, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return roots of exact sums of squares."""

    def finish(sums: Sums, are_bounded: bool) -> tuple[Floats, NDArray[np.bool]]:
        return _in_blocks(sums[1], lambda block: _norms(sums[1][:, block], are_bounded, dtype))

    return _finished("x", data, source, dtype, 1, finish)


def spreads(data: NDArray[Any], source: Shape, dtype: np.dtype[Any], ddof: Any, is_root: bool) -> NDArray[Any]:
    """Return variances, or their roots, from exact sums."""
    count = data.size // int(np.prod(source))
    divisor = count * (count - Fraction(ddof))
    how = count, divisor, is_root, dtype

    def finish(sums: Sums, are_bounded: bool) -> tuple[Floats, NDArray[np.bool]]:
        return _in_blocks(sums[1], lambda block: _spreads(sums, block, are_bounded, *how))

    return _finished("a", data, source, dtype, 1 if is_root else 2, finish)


def _finished(
    name: str, data: NDArray[Any], source: Shape, dtype: np.dtype[Any], power: int, finish: Finish
) -> NDArray[Any]:
    """Return results of sums with bounds; results that are not settled are computed again, from scaled items."""
    wide = converted_terms(data.dtype)
    data = data if wide is None else data.astype(wide)
    shape = source
    kept = [axis for axis in range(data.ndim) if data.shape[axis] != 1]  # the parts of sums need axes as well
    source = tuple(source[axis] for axis in kept)
    data = data.reshape([data.shape[axis] for axis in kept])

    found, is_settled = finish(_sums_of(name, data, source, True), True)
    result = quietly(rounded_to, found, dtype)

    chosen = np.flatnonzero(~is_settled)
    if chosen.size:
        items = _terms_of(data, source, chosen)
        sizes = _sizes_of(items)
        is_finite = np.isfinite(sizes)
        result[chosen[~is_finite]] = sizes[~is_finite] if name == "x" else np.nan
        chosen, items = chosen[is_finite], items[is_finite]
    if chosen.size:
        items, exponents = _scaled(quietly(_centred, items) if name == "a" else items)
        scaled = _of_rows(name, items, finish)
        result[chosen] = quietly(rounded_to, quietly(np.ldexp, scaled, power * exponents), dtype)
    return result.reshape(shape)


def _centred(items: NDArray[Any]) -> NDArray[Any]:
    """Subtract a mean from each row, if all differences are exact, as they are for equal items."""
    if items.dtype.kind not in "fc":
        return items
    first = items[:, :1]
    mean = first + (items - first).mean(1, keepdims=True)
    moved = items - mean
    added = moved - items
    is_exact = ~((items - (moved - added)) - (mean + added)).any(1)
    return np.where(is_exact[:, np.newaxis], moved, items)


def _of_rows(name: str, items: NDArray[Any], finish: Finish) -> Floats:
    """Return results for rows of items: from sums with bounds or, if these do not settle them, from expansions."""
    source = (len(items), 1)
    result, is_settled = finish(_sums_of(name, items, source, True), True)
    chosen = np.flatnonzero(~is_settled)
    if chosen.size:
        result[chosen], _ = finish(_sums_of(name, items[chosen], (chosen.size, 1), False), False)
    return result


def _scaled(items: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Divide rows by powers of 2 if their squares may leave the range of float64; also return the exponents."""
    sizes, least = _sizes_of(items), np.sqrt(LEAST_SQUARES)
    exponents = np.where((sizes >= least) & (sizes <= 1 / least), 0, np.frexp(sizes)[1])
    if items.dtype.kind not in "iu" or items.dtype.itemsize < 8:
        items = items.astype(complex if items.dtype.kind == "c" else float, copy=False)
    if not exponents.any():
        return items, exponents
    by = -exponents[:, np.newaxis]
    if items.dtype.kind != "c":
        return np.ldexp(items, by), exponents
    return np.ldexp(items.real, by) + 1j * np.ldexp(items.imag, by), exponents


def _sizes_of(items: NDArray[Any]) -> Floats:
    """Return the largest magnitude in each row; complex numbers count by their parts."""
    sizes = np.maximum(np.abs(items.real), np.abs(items.imag)) if items.dtype.kind == "c" else np.abs(items)
    return np.asarray(sizes.max(1), float)


def _terms_of(data: NDArray[Any], source: Shape, chosen: NDArray[np.intp]) -> NDArray[Any]:
    """Return the terms of some results, by their numbers, as rows of a new array."""
    reduced = [axis for axis, length in enumerate(source) if length == 1]
    kept = [axis for axis, length in enumerate(source) if length != 1]
    places = np.unravel_index(chosen, tuple(source[axis] for axis in kept)) if kept else ()
    items = data.transpose(kept + reduced)[places]
    return items.reshape(len(chosen), -1)


def _sums_of(name: str, data: NDArray[Any], source: Shape, are_bounded: bool) -> Sums:
    """Return sums and sums of squares for all results; norms (`name` is "x") need no sums."""
    parts, whole = (parts_of(data), (*source, 1)) if data.dtype.kind == "c" else (data, source)
    squares = expanded_products(name, parts, parts, whole, are_bounded).reshape(3, -1)
    if name == "x":
        return [], squares
    sums = expanded(name, data, source, are_bounded).reshape(3, -1)
    if data.dtype.kind != "c":
        return [sums], squares
    return [np.ascontiguousarray(sums.real), np.ascontiguousarray(sums.imag)], squares


def _in_blocks(
    squares: Floats, made: Callable[[slice], tuple[Floats, NDArray[np.bool]]]
) -> tuple[Floats, NDArray[np.bool]]:
    """Return a result for each sum of squares, computed in blocks that fit a cache."""
    n = squares.shape[1]
    at_once = L2 // squares[:, :1].nbytes
    result, is_settled = np.empty(n), np.empty(n, bool)
    for begin in range(0, n, at_once):
        block = slice(begin, begin + at_once)
        result[block], is_settled[block] = quietly(made, block)
    first, second, _ = squares
    is_settled &= (first >= LEAST_SQUARES) & (first <= MOST_SQUARES) | (first == 0) & (second == 0)
    return result, is_settled


def _norms(squares: Floats, are_bounded: bool, dtype: np.dtype[Any]) -> tuple[Floats, NDArray[np.bool]]:
    """Return the roots of sums of squares."""
    first, second, third = squares
    if _is_narrow(dtype):
        return _narrow_roots(first, third + ROUNDINGS * first, dtype)
    return _roots([first, second], third) if are_bounded else _roots([first, second, third], 0)


def _spreads(
    sums: Sums,
    block: slice,
    are_bounded: bool,
    count: int,
    divisor: Fraction,
    is_root: bool,
    dtype: np.dtype[Any],
) -> tuple[Floats, NDArray[np.bool]]:
    """Return variances, or their roots: `count` times the sum of squares, minus the squared sums, and divided.

    Arguments that all blocks share come one by one.
    """
    first, second, third = sums[1][:, block]
    pairs: list[tuple[Any, Any]] = [(first, count), (second, count)]
    bound: Any = count * third
    if not are_bounded:
        pairs.append((third, count))
        bound = 0
    for each in sums[0]:
        first, second, third = each[:, block]
        pairs += [(-first, first), (-2 * first, second), (-second, second)]
        if are_bounded:
            bound = bound + third * (2 * np.abs(first) + 3 * np.abs(second) + third)
        elif third.any():
            pairs += [(-2 * first, third), (-2 * second, third), (-third, third)]
    by = float(divisor)
    if _is_narrow(dtype):
        quotient = _sum_of_pairs(pairs) / by
        reach = bound / by + ROUNDINGS * quotient
        return _narrow_roots(quotient, reach, dtype) if is_root else _narrow(quotient, reach, dtype)

    total = _sums_of_pairs(pairs, are_bounded)
    if are_bounded:
        bound = (bound + total[2]) * (1 + 2.0**-40)
        total = total[:2]

    rest = float(divisor - Fraction(by))
    quotient = total[0] / by
    pairs = [*((part, 1) for part in total), (-quotient, by)]
    more = _sum_of_pairs(pairs + [(-quotient, rest)] if rest else pairs) / by
    bound = bound / by
    if is_root:
        return _roots([quotient, more], bound)
    return _between(quotient, more, bound + SLACK * quotient)


def _is_narrow(dtype: np.dtype[Any]) -> bool:
    """Return whether results have so few bits that plain float64 arithmetic suffices before they are rounded."""
    return dtype.kind == "f" and dtype.itemsize < np.dtype(float).itemsize


def _narrow(value: Floats, reach: Floats, dtype: np.dtype[Any]) -> tuple[Floats, NDArray[np.bool]]:
    """Return values, and whether all numbers within `reach` round to the same number of a narrower dtype."""
    return value, (value - reach).astype(dtype) == (value + reach).astype(dtype)


def _narrow_roots(square: Floats, reach: Floats, dtype: np.dtype[Any]) -> tuple[Floats, NDArray[np.bool]]:
    """Return the same for square roots."""
    root = np.sqrt(square)
    return _narrow(root, reach / np.where(root > 0, 2 * root, 1) + ROUNDINGS * root, dtype)


def _between(first: Floats, second: Floats, reach: Any) -> tuple[Floats, NDArray[np.bool]]:
    """Return `first` + `second`, and whether all numbers within `reach` of it round to the same number."""
    low, high = first + (second - reach), first + (second + reach)
    is_settled = np.asarray(low == high)
    return np.where(is_settled, low, first + second), is_settled


def _roots(squares: list[Floats], bound: Any) -> tuple[Floats, NDArray[np.bool]]:
    """Return the square roots of sums: Newton's step from the root of the first part."""
    root = np.sqrt(squares[0])
    rest = _sum_of_pairs([*((part, 1) for part in squares), (-root, root)])
    twice = np.where(root > 0, 2 * root, 1)  # 1 also for NaN, which is then the result
    step = rest / twice
    return _between(root, np.where(np.isfinite(step), step, 0), bound / twice + SLACK * root)


def _factors_of(pairs: list[tuple[Any, Any]]) -> tuple[Floats, Floats]:
    """Return pairs of factors as two arrays with one row for each pair."""
    shape = len(pairs), np.size(pairs[0][0])
    data, times = np.empty(shape), np.empty(shape)
    for k, (a, b) in enumerate(pairs):
        data[k], times[k] = a, b
    return data, times


def _sum_of_pairs(pairs: list[tuple[Any, Any]]) -> Floats:
    """Return exact sums of products of float64, rounded once."""
    data, times = _factors_of(pairs)
    result = np.empty((1, data.shape[1]))
    sum_exactly_onto(data, aligned(data.shape, result.shape), result, 1, times=times)
    return result.reshape(-1)


def _sums_of_pairs(pairs: list[tuple[Any, Any]], are_bounded: bool) -> Floats:
    """Return exact sums of products as sums of two float64 and bounds, or as expansions."""
    data, times = _factors_of(pairs)
    result = np.empty((3, 1, data.shape[1]))
    expand_onto(data, aligned(data.shape, (1, data.shape[1])), result, times, are_bounded)
    return result.reshape(3, -1)
