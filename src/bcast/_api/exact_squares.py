"""Exact norms, variances and standard deviations: from exact sums of items and of their squares.

In: an array, and the shape with axes of length 1 to which it is reduced. Out: a new array of that shape. Sums are
expansions, of three float64 each. `docs/design/sums.md` proves the bounds.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bcast._api.adjoints import MOST_TERMS, expanded
from bcast._api.exact_products import expanded_products, parts_of
from bcast._reduction import converted_terms, expand_onto, sum_exactly_onto
from bcast._rules.alignment import aligned
from bcast._rules.arguments import Shape
from bcast._runtime.arrays import rounded_to
from bcast._runtime.core import L2
from bcast._runtime.errors import quietly

Floats = NDArray[Any]
LEAST_SQUARES, MOST_SQUARES = 2.0**-850, 2.0**900  # whose expansions do not leave the range of float64


def norms(data: NDArray[Any], source: Shape, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return roots of exact sums of squares."""
    return _rescaled("x", data, source, dtype, 1, _norms)


def spreads(data: NDArray[Any], source: Shape, dtype: np.dtype[Any], ddof: Any, is_root: bool) -> NDArray[Any]:
    """Return variances, or their roots, from exact sums."""
    count = data.size // int(np.prod(source))

    def of_sums(sums: list[Floats], squares: Floats, dtype: np.dtype[Any]) -> Floats:
        return _spreads(sums, squares, dtype, count, Fraction(ddof), is_root)

    return _rescaled("a", data, source, dtype, 1 if is_root else 2, of_sums)


def _rescaled(
    name: str, data: NDArray[Any], source: Shape, dtype: np.dtype[Any], power: int, made_of: Callable[..., Floats]
) -> NDArray[Any]:
    """Return what is made of exact sums; where squares leave the range of float64, of items divided by a power of 2."""
    wide = converted_terms(data.dtype)
    data = data if wide is None else data.astype(wide)
    sums, squares = _sums_of(name, data, source)
    result = made_of(sums, squares, dtype)

    first = squares[0]
    is_fit = ((first >= LEAST_SQUARES) & (first <= MOST_SQUARES)) | ~squares.any(0) | np.isnan(first)
    chosen = np.flatnonzero(~is_fit)
    if chosen.size:
        items = _terms_of(data, source, chosen)
        is_finite = np.isfinite(items).all(1)
        chosen, items = chosen[is_finite], items[is_finite]
    if chosen.size:
        sizes = np.abs(parts_of(items).reshape(len(items), -1) if items.dtype.kind == "c" else items)
        exponents = np.frexp(sizes.max(1))[1][:, np.newaxis]
        items = _times_power(items, -exponents)
        sums, squares = _sums_of(name, items, (len(items), 1))
        scaled = made_of(sums, squares, np.dtype(float))
        result[chosen] = quietly(rounded_to, quietly(np.ldexp, scaled, power * exponents[:, 0]), dtype)
    return result.reshape(source)


def _times_power(items: NDArray[Any], exponents: NDArray[Any]) -> NDArray[Any]:
    """Multiply float64 or complex128 by powers of 2."""
    if items.dtype.kind == "c":
        return np.asarray(np.ldexp(items.real, exponents) + 1j * np.ldexp(items.imag, exponents))
    return np.asarray(np.ldexp(items, exponents))


def _terms_of(data: NDArray[Any], source: Shape, chosen: NDArray[np.intp]) -> NDArray[Any]:
    """Return the terms of some results, by their numbers, as rows of a new array."""
    reduced = [axis for axis, length in enumerate(source) if length == 1]
    kept = [axis for axis, length in enumerate(source) if length != 1]
    places = np.unravel_index(chosen, tuple(source[axis] for axis in kept)) if kept else ()
    items = data.transpose(kept + reduced)[places]
    return items.reshape(len(chosen), -1)


def _sums_of(name: str, data: NDArray[Any], source: Shape) -> tuple[list[Floats], Floats]:
    """Return expansions of all sums, one for each part of complex numbers, and of sums of squares.

    Norms, of `x`, need no sums.
    """
    parts, whole = (parts_of(data), (*source, 1)) if data.dtype.kind == "c" else (data, source)
    squares = expanded_products(name, parts, parts, whole).reshape(3, -1)
    if name == "x":
        return [], squares
    sums = expanded(name, data, source).reshape(3, -1)
    if data.dtype.kind != "c":
        return [sums], squares
    return [np.ascontiguousarray(sums.real), np.ascontiguousarray(sums.imag)], squares


def _in_blocks(squares: Floats, dtype: np.dtype[Any], made: Callable[[slice], Floats]) -> Floats:
    """Return as many results as there are squares, made of some at a time: a cache holds their terms."""
    n = squares.shape[1]
    at_once = L2 // squares[:, :1].nbytes // 8
    result = np.empty(n, dtype)
    for begin in range(0, n, at_once):
        block = slice(begin, begin + at_once)
        result[block] = quietly(rounded_to, quietly(made, block), dtype)
    return result


def _norms(sums: list[Floats], squares: Floats, dtype: np.dtype[Any]) -> Floats:  # noqa: ARG001 (as `_spreads`)
    """Return the roots of expansions."""
    return _in_blocks(squares, dtype, lambda block: _roots(squares[:, block]))


def _spreads(
    sums: list[Floats], squares: Floats, dtype: np.dtype[Any], count: int, ddof: Fraction, is_root: bool
) -> Floats:
    """Return variances, or their roots."""
    divisor = count * (count - ddof)
    if divisor.denominator == 1 and divisor <= MOST_TERMS and not is_root:
        whole, own = float(divisor), dtype if dtype.kind == "f" else np.dtype(float)  # bfloat16 is rounded twice
        return _in_blocks(
            squares,
            dtype,
            lambda block: _sum_of(own, whole, *_terms_of_squares(sums, squares, block, count)),
        )

    def made(block: slice) -> Floats:
        factors = _terms_of_squares(sums, squares, block, count)
        total = np.empty((3, 1, factors[0].shape[1]))
        expand_onto(factors[0], aligned(factors[0].shape, total.shape[1:]), total, factors[1])
        quotient = _quotients(total[:, 0], divisor)
        return _roots(quotient) if is_root else np.asarray(quotient[0] + quotient[1])

    return _in_blocks(squares, dtype, made)


def _terms_of_squares(
    sums: list[Floats], squares: Floats, block: slice, count: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return factors of which the products add up to `count` times the sum of squares, less the squared sums."""
    some = squares[:, block]
    pairs: list[tuple[Any, Any]] = [(part, float(count)) for part in some]
    for each in sums:
        first, second, third = each[:, block]
        pairs += [(-first, first), (-2 * first, second), (-second, second)]
        if third.any():
            pairs += [(-2 * first, third), (-2 * second, third), (-third, third)]
    data, times = np.empty((len(pairs), some.shape[1])), np.empty((len(pairs), some.shape[1]))
    for k, (a, b) in enumerate(pairs):
        data[k], times[k] = a, b
    return data, times


def _sum_of(dtype: np.dtype[Any], divisor: float, data: NDArray[Any], times: NDArray[Any]) -> Floats:
    """Return exact sums of products along the first axis, divided and rounded once."""
    result = np.empty((1, data.shape[1]), dtype)
    sum_exactly_onto(data, aligned(data.shape, result.shape), result, divisor, times=times)
    return result.reshape(-1)


def _sum_of_pairs(*pairs: tuple[Any, Any]) -> Floats:
    """Return exact sums of products of float64, rounded once."""
    n = max(np.size(part) for pair in pairs for part in pair)
    data, times = np.empty((len(pairs), n)), np.empty((len(pairs), n))
    for k, (a, b) in enumerate(pairs):
        data[k], times[k] = a, b
    return _sum_of(data.dtype, 1, data, times)


def _quotients(total: Floats, divisor: Fraction) -> Floats:
    """Return expansions divided by a number, as sums of two float64."""
    by = float(divisor)
    rest = float(divisor - Fraction(by))
    first = total[0] / by
    remainder = _sum_of_pairs((total[0], 1), (total[1], 1), (total[2], 1), (-first, by), (-first, rest))
    return np.array([first, remainder / by])


def _roots(squares: Floats) -> Floats:
    """Return the square roots of sums of two or three float64: Newton's step from the root of the first one."""
    root = np.sqrt(squares[0])
    rest = _sum_of_pairs(*((part, 1) for part in squares), (-root, root))
    step = rest / (2 * root)
    return np.asarray(np.where(np.isfinite(step), root + step, root))
