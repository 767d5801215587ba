"""Stages of chains in compiled loops, which reduce terms as they compute them.

Such a stage is arithmetic of float32 or float64 that ends in a sum or an extreme, or a comparison that ends in `any`,
`all` or a count. In ``(np.subtract, b), np.square, (np.sum, -1)``, the loop reads the coordinates of points and writes
sums: the results of steps are never in memory. If a square root or a search for the position of an extreme follows, the
loop does it while the sums are in a cache. Such a loop may have floating-point errors that NumPy would not report, and
cannot assign them to a step: then it raises `NotFusedError`, and the steps run one by one.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bcast._api.chains.folds import POSITIONS, Fold
from bcast._api.chains.layouts import Scratch
from bcast._api.chains.stages import Region, Stage, parts_of
from bcast._elementwise import fold_terms, takes_fold
from bcast._rules.arguments import Shape
from bcast._runtime.arrays import reduced_shape

LEAST, MOST = 1e-30, 1e30  # magnitudes of Python numbers that become float32 without an error


class NotFusedError(Exception):
    """Raised if a region must be computed by single steps."""


class Fusion:
    """A stage that compiled loops compute."""

    stage: Stage
    number: int  # the number of the stage
    sought: Stage | None  # the next stage, if it searches for positions
    functions: tuple[np.ufunc, ...]  # the functions of the steps
    operands: list[NDArray[Any] | None]  # the second one of each step; None for functions of one operand
    dtype: np.dtype[Any] | None  # the input of the first step is converted to it; None for its own
    takes_roots: bool  # whether the first step of the next stage computes square roots
    scratch: Scratch  # for results

    def __init__(
        self, stage: Stage, number: int, functions: tuple[np.ufunc, ...], operands: list[NDArray[Any] | None]
    ) -> None:
        self.stage = stage
        self.number = number
        self.sought = None
        self.functions = functions
        self.operands = operands
        self.dtype = None
        self.takes_roots = False
        assert stage.fold is not None
        self.scratch = Scratch(stage.fold.result)

    def join(self, after: Stage) -> None:
        """Add to the loop its part of the next stage: a square root, and then a search for positions."""
        fold = self.stage.fold
        assert fold is not None
        if fold.result != self.stage.dtype or fold.result.kind != "f":  # bools and counts have no such loop
            return
        self.takes_roots = bool(after.steps) and after.steps[0] is np.sqrt
        found = after.fold
        if found is None or len(after.steps) > self.takes_roots or found.name not in POSITIONS or fold.keeps:
            return
        if len(found.axes) == 1 and after.labels[found.axes[0]] in self.stage.labels:
            self.sought = after
            self.scratch = Scratch(found.result)

    def steps_joined(self) -> int:
        """Return how many steps the loop runs of the stage after the last one that it runs as a whole."""
        return 1 if self.takes_roots and self.sought is None else 0

    def fold(self, source: NDArray[Any], region: Region, out: NDArray[Any] | None) -> NDArray[Any]:
        """Return the result of the loop's last reduction in a region: `out`, if the loop can write to it."""
        stage, fold, last = self.stage, self.stage.fold, self.sought or self.stage
        assert fold is not None
        assert last.fold is not None
        name, sought_axis = "", -1
        if self.sought is not None:
            name, sought_axis = last.fold.name, stage.labels.index(last.labels[last.fold.axes[0]])

        shape = stage.lengths(region)
        kept = tuple(length for at, length in enumerate(shape) if at not in (*fold.axes, sought_axis))
        written = out if _takes_results(out) else None
        results = self.scratch.shaped(kept) if written is None else written.reshape(kept)
        is_sure = fold_terms(
            self._operands_in(source, region),
            shape,
            fold.axes,
            self.functions,
            fold.name,
            self.takes_roots,
            results,
            sought=name,
            sought_axis=sought_axis,
            dtype=self.dtype,
        )
        if not is_sure:
            raise NotFusedError
        if written is not None:
            return written
        return results.reshape(self._shape_of_results(region)) if last.fold.keeps else results

    def _operands_in(self, source: NDArray[Any], region: Region) -> list[NDArray[Any] | None]:
        """Return the operands of the loop in a region."""
        operands: list[NDArray[Any] | None] = [source]
        for operand in self.operands:
            operands.append(None if operand is None else operand[self.stage.index(operand.shape, region)])
        if not all(each is None or each.flags.aligned for each in operands):
            raise NotFusedError
        return operands

    def _shape_of_results(self, region: Region) -> Shape:
        """Return the shape of the loop's result in a region, including kept axes of length 1."""
        last = self.stage if self.sought is None else self.sought
        assert last.fold is not None
        return reduced_shape(last.lengths(region), last.fold.axes, True)


def fusion_of(stage: Stage, number: int) -> Fusion | None:
    """Return the compiled loop of a stage, given its number; None if there is none."""
    fold = stage.fold
    if fold is None or not _has_fused_loops(stage, fold):
        return None

    dtype = _dtype_of_items(stage)
    steps = [parts_of(step) for step in stage.steps]
    functions = tuple(function for function, _ in steps)
    if not all(_is_called_as_ufunc(*step) for step in steps) or not takes_fold(functions, fold.name, dtype):
        return None

    second = _second_operands(steps, dtype)
    if second is None or not _gives_dtypes_of_loops(stage, fold, dtype):
        return None
    fusion = Fusion(stage, number, functions, second)
    fusion.dtype = None if dtype == stage.source else dtype
    return fusion


def _has_fused_loops(stage: Stage, fold: Fold) -> bool:
    """Return whether a stage has steps, and the reduction after them no options that loops do not know."""
    return bool(stage.steps) and fold.dtype is None and not fold.is_exact


def _takes_results(out: NDArray[Any] | None) -> bool:
    """Return whether the loop can write its results into an array."""
    return out is not None and bool(out.flags.c_contiguous and out.flags.aligned)


def _second_operands(steps: list[Any], dtype: np.dtype[Any]) -> list[NDArray[Any] | None] | None:
    """Return each step's second operand, None where a step has none; None instead if the loop cannot read one."""
    second: list[NDArray[Any] | None] = []
    for _, operands in steps:
        operand = _operand_of(operands[0], dtype) if operands else None
        if operand is None and operands:
            return None
        second.append(operand)
    return second


def _gives_dtypes_of_loops(stage: Stage, fold: Fold, dtype: np.dtype[Any]) -> bool:
    """Return whether steps and reduction keep the dtype of items, or compare items and reduce the bools."""
    is_arithmetic = fold.result == dtype == stage.dtype
    is_comparison = stage.dtype == np.bool and fold.result in (np.bool, np.intp)
    return is_arithmetic or is_comparison


def _is_called_as_ufunc(function: Any, operands: tuple[Any, ...]) -> bool:
    """Return whether a step is a ufunc with all its operands but the first, the result of the previous step."""
    return isinstance(function, np.ufunc) and len(operands) + 1 == function.nin


def _dtype_of_items(stage: Stage) -> np.dtype[Any]:
    """Return the dtype in which the first step computes: its operand's, if the operand has floats and all items."""
    first = stage.steps[0]
    operand = first[1] if isinstance(first, tuple) and len(first) == 2 else None
    if isinstance(operand, np.ndarray) and operand.dtype.kind == "f" and stage.source.kind in "biuf":
        common: np.dtype[Any] = np.result_type(stage.source, operand.dtype)
        if common == operand.dtype:
            return common
    return stage.source


def _operand_of(value: Any, dtype: np.dtype[Any]) -> NDArray[Any] | None:
    """Return an operand as an array of a dtype; None if its dtype differs, or it may not fit."""
    if isinstance(value, (np.ndarray, np.generic)):
        return np.asarray(value) if value.dtype == dtype else None
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return np.array(value, dtype) if type(value) is int and limits.min <= value <= limits.max else None
    if type(value) not in (int, float) or not (value == 0 or LEAST < abs(value) < MOST):
        return None
    return np.array(value, dtype)
