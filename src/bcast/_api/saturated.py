"""Saturating conversions of real numbers to integers, for dtypes without a loop in the core."""

from typing import Any

import numpy as np

from bcast._runtime.errors import quietly


def saturated(data: Any, dtype: Any) -> Any:
    """Return real numbers as integers of a dtype: rounded, ties to even, and clipped to its range; NaN becomes 0."""
    return quietly(_rounded_and_cut, data, dtype)


def _rounded_and_cut(data: Any, dtype: Any) -> Any:
    """Do the same, and report floating-point errors."""
    least, most = _limits(dtype)
    own = data.dtype
    if np.can_cast(own, np.int64) or own.kind == "u":
        whole = data if own.kind in "iu" else data.astype(np.int64)  # another package's integers
        low, high = _limits(whole.dtype)
        return np.clip(whole, max(low, least), min(high, most)).astype(dtype)
    numbers = np.asarray(np.rint(data if own.char == "g" else data.astype(np.float64)))
    result = np.zeros(numbers.shape, dtype if dtype.kind in "iu" else np.int16)
    above, below = numbers >= float(most), numbers < least
    within = ~(above | below | np.isnan(numbers))
    result[within] = numbers[within].astype(result.dtype)
    result[above], result[below] = most, least
    return result if result.dtype == dtype else result.astype(dtype)


def _limits(dtype: Any) -> tuple[int, int]:
    """Return the smallest and the largest integer of a dtype; another package's integers have one byte."""
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return limits.min, limits.max
    every = np.arange(256, dtype=np.uint8).view(dtype).astype(np.int64)
    return int(every.min()), int(every.max())
