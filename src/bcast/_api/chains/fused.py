"""Stages of chains that compiled loops do: terms are folded where they are made.

Such a stage is arithmetic of float32 or float64 that is summed, or whose extremes are found, or a comparison that ends
in `any`, `all` or a count. In ``(np.subtract, b), np.square, (np.sum, -1)``, the coordinates of points are read, and
sums are written: what steps give is nowhere in memory. A square root that follows is taken of the sums while they are
in a cache. Such a loop may have floating-point errors that NumPy would not tell, and does not know of which step they
are: then `NotFusedError` says that the steps are to be run one by one.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bcast._api.chains.layouts import Scratch
from bcast._api.chains.stages import Region, Stage
from bcast._elementwise import fold_terms, takes_fold

LEAST, MOST = 1e-30, 1e30  # magnitudes of Python's numbers that become float32 without an error


class NotFusedError(Exception):
    """A region is to be computed by single steps."""


class Fusion:
    """A stage that compiled loops do."""

    stage: Stage
    functions: tuple[np.ufunc, ...]  # of the steps
    operands: list[NDArray[Any] | None]  # the second one of each step; None for functions of one
    takes_roots: bool  # of what the stage gives: the first step of the next one
    scratch: Scratch  # for results

    def __init__(
        self, stage: Stage, functions: tuple[np.ufunc, ...], operands: list[NDArray[Any] | None], takes_roots: bool
    ) -> None:
        self.stage = stage
        self.functions = functions
        self.operands = operands
        self.takes_roots = takes_roots
        assert stage.fold is not None
        self.scratch = Scratch(stage.fold.result)

    def fold(self, source: NDArray[Any], region: Region, out: NDArray[Any] | None) -> NDArray[Any]:
        """Return what the stage's reduction gives in a region: `out`, if it can be written there."""
        stage, fold = self.stage, self.stage.fold
        assert fold is not None
        operands: list[NDArray[Any] | None] = [source]
        for operand in self.operands:
            operands.append(None if operand is None else operand[stage.index(operand.shape, region)])
        if not all(each is None or each.flags.aligned for each in operands):
            raise NotFusedError

        shape = stage.lengths(region)
        kept = tuple(length for at, length in enumerate(shape) if at not in fold.axes)
        given = shape if not fold.keeps else tuple(1 if at in fold.axes else n for at, n in enumerate(shape))
        is_in_place = out is not None and out.flags.c_contiguous and out.flags.aligned
        results = out.reshape(kept) if is_in_place and out is not None else self.scratch.shaped(kept)
        if not fold_terms(operands, shape, fold.axes, self.functions, fold.name, self.takes_roots, results):
            raise NotFusedError
        if is_in_place and out is not None:
            return out
        return results.reshape(given) if fold.keeps else results


def fusion_of(stage: Stage, after: Stage) -> Fusion | None:
    """Return how compiled loops do a stage, and maybe the first step of the one after it; None if none do."""
    fold = stage.fold
    if fold is None or fold.dtype is not None or not stage.steps:
        return None
    dtype = stage.source
    functions: list[np.ufunc] = []
    second: list[NDArray[Any] | None] = []
    for step in stage.steps:
        function, *operands = step if isinstance(step, tuple) else (step,)
        if not isinstance(function, np.ufunc) or len(operands) + 1 != function.nin:
            return None
        operand = _operand_of(operands[0], dtype) if operands else None
        if operands and operand is None:
            return None
        functions.append(function)
        second.append(operand)
    if not takes_fold(tuple(functions), fold.name, dtype):
        return None
    is_arithmetic = fold.result == dtype == stage.dtype
    if not is_arithmetic and not (stage.dtype == np.bool and fold.result in (np.bool, np.intp)):
        return None
    takes_roots = is_arithmetic and bool(after.steps) and after.steps[0] is np.sqrt
    return Fusion(stage, tuple(functions), second, takes_roots)


def _operand_of(value: Any, dtype: np.dtype[Any]) -> NDArray[Any] | None:
    """Return an operand as an array of a dtype; None for what has another one, or may not fit."""
    if isinstance(value, (np.ndarray, np.generic)):
        return np.asarray(value) if value.dtype == dtype else None
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return np.array(value, dtype) if type(value) is int and limits.min <= value <= limits.max else None
    if type(value) not in (int, float) or not (value == 0 or LEAST < abs(value) < MOST):
        return None
    return np.array(value, dtype)
