"""Reductions as steps of chains: which functions these are, how a step is read, how results of parts are combined.

In: a step of the user. Out: a `Fold`, which reduces an array, or its parts one after the other. For NumPy's functions,
it uses bcast's reductions of the same names.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bcast._api import reductions, statistics
from bcast._api.adjoints import wide_dtype
from bcast._api.exact_digits import added_states, exact_state, rounded_state
from bcast._api.reductions import reduced_axes
from bcast._reduction import has_kernels
from bcast._rules.arguments import Shape, show
from bcast._runtime.arrays import reduced_shape, rounded_to
from bcast._runtime.errors import quietly

REDUCTIONS: dict[str, Callable[..., Any]] = {
    "sum": statistics.sum,
    "mean": statistics.mean,
    "prod": reductions.prod,
    "max": reductions.max,
    "min": reductions.min,
    "any": reductions.any,
    "all": reductions.all,
    "argmax": reductions.argmax,
    "argmin": reductions.argmin,
}
OTHER_NAMES = {"amax": "max", "amin": "min"}
NUMPYS = {name: getattr(np, name) for name in (*REDUCTIONS, *OTHER_NAMES)}  # even if they are replaced
UFUNCS = {
    np.add: "sum",
    np.multiply: "prod",
    np.maximum: "max",
    np.minimum: "min",
    np.logical_or: "any",
    np.logical_and: "all",
}
OTHER_UFUNCS = (np.fmax, np.fmin, np.bitwise_and, np.bitwise_or, np.bitwise_xor)  # the order of terms does not matter
JOINED = {"prod": np.multiply, "max": np.maximum, "min": np.minimum, "any": np.logical_or, "all": np.logical_and}
POSITIONS = ("argmax", "argmin")
WITH_DTYPE = ("sum", "mean", "prod")
WITH_EXACT = ("sum", "mean")
KINDS_OF_PARTS = "biufcmM"  # NumPy dtypes whose reductions combine from reductions of parts


class Fold:
    """A reduction along some axes: a step that turns many items into one."""

    name: str  # the name of bcast's function, or else of the ufunc
    given: Callable[..., Any]  # the user's function
    function: Callable[..., Any]  # the function that computes the fold
    joined: np.ufunc | None  # makes the result of two parts; None for sums, means and positions
    axis: Any  # as the user gives it
    keeps: bool  # whether reduced axes stay, with length 1
    dtype: Any  # the user's; None if not given
    is_exact: bool  # whether exact sums are rounded once

    # The fields that `settle` fills in:
    axes: Shape  # the reduced axes, counted from 0
    count: int  # the number of terms of one result
    divisor: int  # the divisor of sums: `count` for a mean, otherwise 1
    shape: Shape  # the shape of the result
    result: np.dtype[Any]

    def settle(self, shape: Shape, dtype: np.dtype[Any]) -> None:
        """Find the shape and dtype of the fold's result from an array's; raise the errors of its function."""
        if dtype.hasobject and isinstance(getattr(self.given, "__self__", None), np.ufunc):
            self.function = self.given  # it returns an item; `any` and `all` return a bool
        is_scalar = shape == () and self.axis in (0, -1) and not isinstance(self.axis, tuple)  # valid in NumPy
        self.axes = () if is_scalar else reduced_axes(self.axis, shape)
        self.count = prod(shape[at] for at in self.axes)
        self.divisor = self.count if self.name == "mean" else 1
        self.shape = reduced_shape(shape, self.axes, self.keeps)
        self.result = _result_of(self.function, dtype, self.dtype, self.is_exact)

    def of(self, array: NDArray[Any]) -> NDArray[Any]:
        """Reduce a whole array."""
        found = self.function(array, axis=self.axis, keepdims=self.keeps, **self.options())
        return found if isinstance(found, np.ndarray) else np.array(found, self.result)  # objects may be any scalars

    def onto(self, array: NDArray[Any], out: NDArray[Any]) -> None:
        """Reduce a whole array into `out`, of the result's dtype."""
        self.function(array, axis=self.axis, out=out, keepdims=self.keeps, **self.options())

    def by_its_class(self, data: Any) -> Any:
        """Reduce an object whose class overrides NumPy, by the user's function."""
        keeps = {"keepdims": True} if self.keeps else {}
        return self.given(data, axis=self.axis, **keeps, **self.options())

    def options(self) -> dict[str, Any]:
        """Return the arguments of the function that only some calls have."""
        options = {} if self.dtype is None else {"dtype": self.dtype}
        return options | {"exact": True} if self.is_exact else options

    def takes_parts(self, dtype: np.dtype[Any]) -> bool:
        """Return whether an array of a dtype can be reduced part by part."""
        return dtype.kind in KINDS_OF_PARTS or has_kernels(np.empty(0, dtype))  # kernels for other packages' dtypes

    def parts(self, shape: Shape) -> Any:
        """Return an object that receives the parts of an array one by one, each with its start on each axis."""
        if self.name in POSITIONS:
            return _Positions(self, shape)
        if self.joined is not None:
            return _Joined(self)
        return _ExactSums(self) if self.is_exact and self.result.kind in "fc" else _Sums(self)


@lru_cache
def _result_of(function: Callable[..., Any], dtype: np.dtype[Any], given: Any, is_exact: bool) -> np.dtype[Any]:
    """Return the dtype of a reduction's result from the dtype of its terms; `given` is the user's, or None."""
    options = {} if given is None else {"dtype": given}
    if is_exact:
        options["exact"] = True
    terms = np.zeros(1 + is_exact, dtype)  # a single term would be copied, and to fewer dtypes
    result: np.dtype[Any] = quietly(partial(function, axis=0, keepdims=True, **options), terms).dtype
    return result


class _Joined:
    """Results of parts, which a ufunc combines into one."""

    def __init__(self, fold: Fold) -> None:
        self.fold = fold
        self.found: Any = None

    def take(self, part: NDArray[Any], starts: Shape) -> None:  # noqa: ARG002 (only positions need the starts of parts)
        found = self.fold.of(part)
        assert self.fold.joined is not None
        # Like `prod`, products report no error.
        self.found = found if self.found is None else quietly(self.fold.joined, self.found, found)

    def result(self) -> Any:
        return self.found


class _Sums:
    """Sums of parts, in higher precision than the result: each with its rounding error."""

    def __init__(self, fold: Fold) -> None:
        self.fold = fold
        self.wide = wide_dtype(fold.result)
        self.high: Any = None
        self.low: Any = None

    def take(self, part: NDArray[Any], starts: Shape) -> None:  # noqa: ARG002
        fold = self.fold
        wide = None if self.wide.kind == "m" else self.wide  # NumPy does not accept it as the dtype of a sum
        found = np.asarray(REDUCTIONS["sum"](part, fold.axis, wide, keepdims=fold.keeps))
        if self.high is None:
            self.high = found
            self.low = np.zeros_like(found) if found.dtype.kind in "fc" else None
        elif self.low is None:
            self.high = self.high + found
        else:
            quietly(self._add, found)

    def _add(self, found: NDArray[Any]) -> None:
        """Add a sum, and its rounding error."""
        self.high, rounded_off = two_sum(self.high, found)
        self.low = self.low + rounded_off

    def result(self) -> Any:
        return quietly(self._rounded)

    def _rounded(self) -> Any:
        """Return the result, and report floating-point errors."""
        total = self.high
        if self.low is not None:
            total = total + self.low
        if self.fold.name == "mean":
            total = _divided(total, self.fold.count)
        return rounded_to(np.asarray(total), self.fold.result)


class _ExactSums:
    """Exact sums of parts, rounded once, at the end."""

    def __init__(self, fold: Fold) -> None:
        self.fold = fold
        self.sums: Any = None
        self.is_complex = False

    def take(self, part: NDArray[Any], starts: Shape) -> None:  # noqa: ARG002
        self.is_complex = part.dtype.kind == "c"
        found = exact_state(part, reduced_shape(part.shape, self.fold.axes, True))
        self.sums = found if self.sums is None else added_states([self.sums, found])

    def result(self) -> Any:
        total = rounded_state(self.sums, self.fold.result, self.fold.divisor, self.is_complex)
        return total if self.fold.keeps else total.squeeze(self.fold.axes)


def two_sum(total: NDArray[Any], term: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return sums and their rounding errors, by Knuth's two_sum. Infinite sums have no rounding error."""
    result = np.asarray(total + term)
    added = result - total
    rounded_off = (total - (result - added)) + (term - added)
    return result, np.where(np.isfinite(rounded_off), rounded_off, 0)


def _divided(total: Any, count: int) -> Any:
    """Divide sums by a count; of complex sums, both parts."""
    if total.dtype.kind != "c":
        return np.true_divide(total, count)
    quotient = np.empty_like(total)
    quotient.real, quotient.imag = total.real / count, total.imag / count
    return quotient


class _Positions:
    """Positions of the extremes of parts, and the extremes: NaN wins over numbers, and the first of equals wins."""

    def __init__(self, fold: Fold, shape: Shape) -> None:
        self.fold = fold
        self.shape = shape  # the shape of the whole array
        self.better = np.greater if fold.name == "argmax" else np.less
        self.position: Any = None
        self.extreme: Any = None

    def take(self, part: NDArray[Any], starts: Shape) -> None:
        fold = self.fold
        if fold.axis is None:
            at = int(fold.function(part))
            extreme = part.reshape(-1)[at : at + 1].copy()  # the next part will overwrite this one
            index = zip(starts, np.unravel_index(at, part.shape), strict=True)
            position = np.array([np.ravel_multi_index([start + place for start, place in index], self.shape)])
        else:
            axis = fold.axes[0]
            within = np.asarray(fold.function(part, axis=axis, keepdims=True))
            extreme = np.take_along_axis(part, within, axis)
            position = within + starts[axis]
        if self.position is None:
            self.position, self.extreme = position, extreme
            return
        wins = quietly(self._wins, position, extreme)
        self.position = np.where(wins, position, self.position)
        self.extreme = np.where(wins, extreme, self.extreme)

    def _wins(self, position: NDArray[Any], extreme: NDArray[Any]) -> NDArray[np.bool]:
        """Return whether an extreme wins over the extreme of the previous parts."""
        is_nan, was_nan = extreme != extreme, self.extreme != self.extreme
        is_better = self.better(extreme, self.extreme) | (is_nan & ~was_nan)
        is_equal = (extreme == self.extreme) | (is_nan & was_nan)
        wins: NDArray[np.bool] = (is_better & ~was_nan) | (is_equal & (position < self.position))
        return wins

    def result(self) -> Any:
        if self.fold.axis is None:
            return self.position.reshape(self.fold.shape)
        return self.position if self.fold.keeps else self.position.squeeze(self.fold.axes)


# How a step is read.


def fold_of(name: str, step: Any) -> Fold | None:
    """Return the fold of a user's step; None for a step that is not a reduction."""
    given = _function_of(step)
    found = _known(given)
    if found is None:
        return None
    options = _options_of(name, step, given)
    fold = Fold()
    fold.given = given
    fold.name, fold.function, fold.joined = found
    own_axis = 0 if isinstance(getattr(given, "__self__", None), np.ufunc) else None  # the default
    fold.axis = options.get("axis", own_axis)
    fold.keeps = bool(options.get("keepdims", False))
    fold.dtype = options.get("dtype")
    if fold.dtype is not None:
        if fold.name not in WITH_DTYPE:
            raise TypeError(f"`{name}` expected no dtype for {_spelt(given)}, got {show(fold.dtype)}")
        fold.dtype = np.dtype(fold.dtype)
    fold.is_exact = bool(options.get("exact", False))
    if fold.is_exact and (fold.name not in WITH_EXACT or given is not REDUCTIONS[fold.name]):
        raise TypeError(f"`{name}` expected bcast.sum or bcast.mean with `exact`, got {_spelt(given)}")
    if fold.name in POSITIONS and isinstance(fold.axis, (tuple, list)):
        raise TypeError(f"`{name}` expected one axis or None for {_spelt(given)}, got {show(fold.axis)}")
    return fold


def _options_of(name: str, step: Any, given: Any) -> dict[str, Any]:
    """Return the options of a step beside its function: the axis of a pair, or the keywords of a partial."""
    if isinstance(step, partial):
        options = dict(step.keywords)
        if step.args or not options.keys() <= {"axis", "keepdims", "dtype", "exact"}:
            expected = "axis, keepdims, dtype or exact as keywords of the partial"
            raise TypeError(f"`{name}` expected {expected}, got {show(step)}")
        return options
    if isinstance(step, (tuple, list)) and len(step) == 2:
        return {"axis": step[1]}
    got = f"{_spelt(given) if step is given else show(step)}{_remedy(step, given)}"
    raise TypeError(f"`{name}` expected a pair of a reduction and its axis, got {got}")


def is_fold(step: Any) -> bool:
    """Return whether the function of a step is a reduction, in any form."""
    return _known(_function_of(step)) is not None


def _function_of(step: Any) -> Any:
    """Return the function of a step."""
    if isinstance(step, partial):
        return step.func
    return step[0] if isinstance(step, (tuple, list)) and step else step


def _known(function: Any) -> tuple[str, Callable[..., Any], np.ufunc | None] | None:
    """Return bcast's name for a reduction, its function, and the ufunc that joins parts; None for other functions."""
    name = getattr(function, "__name__", None)
    if not isinstance(name, str) or not callable(function):
        return None
    if name == "reduce":
        ufunc = getattr(function, "__self__", None)
        return _of_ufunc(ufunc) if isinstance(ufunc, np.ufunc) else None
    own = OTHER_NAMES.get(name, name)
    if own not in REDUCTIONS or not (function is NUMPYS[name] or function in (REDUCTIONS[own], getattr(np, name))):
        return None
    return own, REDUCTIONS[own], JOINED.get(own)


def _of_ufunc(ufunc: np.ufunc) -> tuple[str, Callable[..., Any], np.ufunc | None] | None:
    """Return the same for the method `reduce` of a ufunc."""
    if ufunc in UFUNCS:
        name = UFUNCS[ufunc]
        return name, REDUCTIONS[name], JOINED.get(name)
    return (ufunc.__name__, ufunc.reduce, ufunc) if ufunc in OTHER_UFUNCS else None


def _spelt(function: Any) -> str:
    """Return how a user writes a reduction."""
    ufunc = getattr(function, "__self__", None)
    if isinstance(ufunc, np.ufunc):
        return f"np.{ufunc.__name__}.reduce"
    module = "bcast" if str(getattr(function, "__module__", "")).startswith("bcast") else "np"
    return f"{module}.{function.__name__}"


def _remedy(step: Any, function: Any) -> str:
    """Suggest how to write a step with this reduction."""
    name = _spelt(function)
    if isinstance(step, (tuple, list)) and len(step) > 2:
        return f"; use ({name}, axis), or functools.partial({name}, axis=axis, keepdims=True)"
    return f"; use ({name}, axis), with None for all axes"
