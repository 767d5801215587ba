"""Exact sums of parts of the data, which can be added in any order: for tasks that combine results of others.

In: an array, and the shape with axes of length 1 to which it is reduced. Out: `ExactSums`, integers of as many digits
as the items have; and what sums of several parts give: sums, means, norms, variances, each rounded once. Nothing is
lost before, whatever the items.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bcast._api.adjoints import added_expansions, expanded, rounded_expansions
from bcast._api.exact_squares import Measuring, moved, readable
from bcast._reduction import converted_terms, digits_of_rows, measure_digits_onto, round_digits_onto
from bcast._rules.arguments import Shape
from bcast._runtime.arrays import rounded_to
from bcast._runtime.core import L2
from bcast._runtime.errors import quietly

MOST_ROWS = 256  # at once, which have all digits meanwhile
FLOAT64 = np.dtype(np.float64)


class ExactSums(NamedTuple):
    """Exact sums: integers of 32-bit digits, each digit in an array of the sums' shape, with room for carries.

    Those of complex numbers have one axis more, the last, of the parts.
    """

    low: int  # the place of the first digit
    digits: NDArray[np.int64]
    specials: NDArray[np.float64]  # sums of infinite terms and NaN, otherwise 0


ExactState: TypeAlias = NDArray[Any] | ExactSums


class RowSums(NamedTuple):
    """Exact sums of items, for each part of them, and of squares; and the numbers of items."""

    sums: list[ExactSums]
    squares: ExactSums
    counts: NDArray[np.int64]


# Exact sums as expansions, which take less time, or if these lack digits, as integers.


def exact_state(data: NDArray[Any], source: Shape) -> ExactState:
    """Return exact sums to shape `source`."""
    parts = expanded("data", data, source)
    return parts if _have_all_digits(parts) else exact_sums(data, source)


def _have_all_digits(parts: NDArray[Any]) -> bool:
    """Return whether expansions are exact. The last part of those that are not has an odd last bit, or is infinite."""
    last = np.ascontiguousarray(parts[2]).reshape(-1).view(np.int64)
    return bool(np.isfinite(parts).all() and not (last & 1).any())


def added_states(states: Sequence[ExactState]) -> ExactState:
    """Add exact sums."""
    expansions = [state for state in states if isinstance(state, np.ndarray)]
    others = [state for state in states if isinstance(state, ExactSums)]
    if expansions:
        parts = np.concatenate(expansions)
        if not others:
            total = added_expansions(parts)
            if _have_all_digits(total):
                return total
        sums = exact_sums(parts, (1, *parts.shape[1:]))
        others.append(ExactSums(sums.low, sums.digits[:, 0], sums.specials[0]))
    return added_sums(others)


def rounded_state(state: ExactState, dtype: np.dtype[Any], divisors: Any = 1, is_complex: bool = False) -> NDArray[Any]:
    """Divide exact sums, of complex numbers perhaps, by integers, and round once."""
    if isinstance(state, ExactSums):
        return rounded_sums(state, dtype, divisors, is_complex)
    if np.ndim(divisors) == 0:
        return rounded_expansions(state, dtype, divisors)
    return rounded_expansions(state, dtype, 1, np.asarray(divisors, np.float64))


# Sums as integers.


def row_sums(data: NDArray[Any], source: Shape, skips_nan: bool = False) -> RowSums:
    """Return exact sums of the items and of their squares, to shape `source`; perhaps without NaN."""
    parts = 2 if data.dtype.kind == "c" else 1
    n = int(np.prod(source))
    if data.size == 0:
        nothing = ExactSums(0, np.zeros((0, *source), np.int64), np.zeros(source))
        return RowSums([nothing] * parts, nothing, np.zeros(source, np.int64))

    wide = converted_terms(data.dtype)
    rows = moved(data if wide is None else data.astype(wide), source).reshape(n, -1)
    found: list[list[ExactSums]] = [[] for _ in range(parts + 1)]
    counts = []
    at_once = min(MOST_ROWS, max(1, L2 // (rows.itemsize * rows.shape[1])))
    for begin in range(0, n, at_once):
        block = readable(rows[begin : begin + at_once], skips_nan)
        digits, ranges, specials, own_counts = digits_of_rows(block, skips_nan and data.dtype.kind in "fcV")
        for k, (low, end) in enumerate(ranges):
            found[k].append(ExactSums(low, digits[k, :, low:end].T.copy(), specials[k]))
        counts.append(own_counts)
    joined = [_joined(each, source) for each in found]
    return RowSums(joined[:parts], joined[parts], np.concatenate(counts).reshape(source))


def exact_sums(data: NDArray[Any], source: Shape) -> ExactSums:
    """Return exact sums of the items, to shape `source`."""
    sums = row_sums(data, source).sums
    return sums[0] if len(sums) == 1 else stacked(sums, -1)


def added_sums(parts: Sequence[ExactSums]) -> ExactSums:
    """Add sums of the same shape, of fewer than 2**30 parts in all."""
    low, end = _range_of(parts)
    digits = np.zeros((end - low, *parts[0].specials.shape), np.int64)
    for part in parts:
        digits[_places_of(part, low)] += part.digits
    return ExactSums(low, digits, quietly(sum, [part.specials for part in parts]))


def added_row_sums(parts: Sequence[RowSums]) -> RowSums:
    """Add sums of rows, and of their squares."""
    sums = [added_sums(each) for each in zip(*(part.sums for part in parts), strict=True)]
    return RowSums(sums, added_sums([part.squares for part in parts]), np.sum([part.counts for part in parts], 0))


def rounded_sums(sums: ExactSums, dtype: np.dtype[Any], divisors: Any = 1, is_complex: bool = False) -> NDArray[Any]:
    """Divide sums by integers, and round once."""
    shape = sums.specials.shape
    each = np.broadcast_to(np.asarray(divisors, np.int64)[..., np.newaxis] if is_complex else divisors, shape)
    found = np.empty(shape)
    round_digits_onto(
        np.ascontiguousarray(sums.digits),
        sums.low,
        np.ascontiguousarray(sums.specials),
        np.ascontiguousarray(each, np.int64),
        found,
        dtype not in (FLOAT64, np.dtype(complex)),
    )
    whole = found.view(complex)[..., 0] if is_complex else found
    return np.asarray(quietly(rounded_to, whole.real if is_complex and dtype.kind != "c" else whole, dtype))


def measured_rows(rows: RowSums, how: Measuring) -> NDArray[Any]:
    """Return what is made of the sums of rows, rounded once; NaN where there are no items."""
    found = np.empty(rows.counts.shape)
    sums = stacked(rows.sums, 1) if how.has_means else rows.squares
    digits = np.moveaxis(sums.digits, 1, 0) if how.has_means else np.empty(0, np.int64)
    measure_digits_onto(
        (np.ascontiguousarray(digits), sums.low),
        (np.ascontiguousarray(rows.squares.digits), rows.squares.low, np.ascontiguousarray(rows.squares.specials)),
        np.maximum(rows.counts, 1),
        found,
        how.ddof,
        how.is_root,
        how.dtype != FLOAT64,
    )
    found[rows.counts == 0] = np.nan
    return np.asarray(quietly(rounded_to, found, how.dtype))


def stacked(parts: Sequence[ExactSums], axis: int) -> ExactSums:
    """Join sums along a new axis of their digits."""
    low, end = _range_of(parts)
    padded = []
    for part in parts:
        digits = np.zeros((end - low, *part.specials.shape), np.int64)
        digits[_places_of(part, low)] = part.digits
        padded.append(digits)
    specials = np.stack([part.specials for part in parts], -1)
    return ExactSums(low, np.stack(padded, axis), specials)


def _joined(blocks: Sequence[ExactSums], source: Shape) -> ExactSums:
    """Join sums of blocks of rows; their digits have one axis of rows."""
    low, end = _range_of(blocks)
    n = sum(len(block.specials) for block in blocks)
    digits, begin = np.zeros((end - low, n), np.int64), 0
    for block in blocks:
        rows = slice(begin, begin + len(block.specials))
        digits[_places_of(block, low), rows] = block.digits
        begin = rows.stop
    specials = np.concatenate([block.specials for block in blocks])
    return ExactSums(low, digits.reshape(-1, *source), specials.reshape(source))


def _range_of(parts: Sequence[ExactSums]) -> tuple[int, int]:
    """Return the place of the first digit of all parts, and the one after the last."""
    return min(part.low for part in parts), max(part.low + len(part.digits) for part in parts)


def _places_of(part: ExactSums, low: int) -> slice:
    """Return the places of a part's digits in an array that begins with digit `low`."""
    return slice(part.low - low, part.low - low + len(part.digits))
