"""Stages of chains that one loop does: arithmetic of float32 or float64, whose terms are folded in registers.

In ``(np.subtract, b), np.square, (np.sum, -1)``, the coordinates of a row of points are read, and sums are written:
what steps give is nowhere in memory. Such a loop may have floating-point errors that NumPy would not tell, and does not
know of which step they are: then `NotFusedError` says that the steps are to be run one by one.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bcast._api.chains.layouts import Copies, Order, Scratch, in_own_order, laid, order_of
from bcast._api.chains.stages import Region, Stage
from bcast._elementwise import MOST_FOLDED_STEPS, fold_rows, folded_function, folds
from bcast._rules.arguments import Shape

LEAST, MOST = 1e-30, 1e30  # magnitudes of Python's numbers that become float32 without an error


class NotFusedError(Exception):
    """A region is to be computed by single steps."""


class Fusion:
    """A stage that one loop does."""

    stage: Stage
    functions: bytes  # numbers of the steps
    operands: list[NDArray[Any] | None]  # the second one of each step; None for functions of one
    copies: Copies  # of operands as the loop reads them
    orders: dict[tuple[Shape, Shape], Order | None]  # in which regions of these shapes lie
    scratch: Scratch  # for results

    def __init__(self, stage: Stage, functions: bytes, operands: list[NDArray[Any] | None]) -> None:
        self.stage = stage
        self.functions = functions
        self.operands = operands
        self.copies = Copies()
        self.orders = {}
        self.scratch = Scratch(stage.dtype)

    def fold(self, source: NDArray[Any], region: Region, out: NDArray[Any] | None) -> NDArray[Any]:
        """Return what the stage's reduction gives in a region: `out`, if it can be written there."""
        stage, fold = self.stage, self.stage.fold
        assert fold is not None
        shape = stage.lengths(region)
        shapes = shape, source.shape
        if shapes not in self.orders:
            self.orders[shapes] = order_of(stage, *shapes)
        order = self.orders[shapes]
        if order is None or order[0] != fold.axes[0]:
            raise NotFusedError
        operands: list[NDArray[Any] | None] = [laid(source, order)]
        for i, operand in enumerate(self.operands):
            part = None if operand is None else operand[stage.index(operand.shape, region)]
            operands.append(None if part is None else self.copies.laid(i, part, order))
        if not all(each is None or each.flags.aligned for each in operands):
            raise NotFusedError

        kept = order[1:]
        is_in_place = out is not None and kept == tuple(range(len(kept))) and not fold.keeps
        if is_in_place and out is not None and out.flags.c_contiguous and out.flags.aligned:
            results = out
        else:
            results = self.scratch.shaped(tuple(shape[at] for at in kept))
        if not fold_rows(operands, self.functions, fold.name, results):
            raise NotFusedError
        return results if results is out else self._as_numpy_has_it(results, kept)

    def _as_numpy_has_it(self, results: NDArray[Any], kept: Order) -> NDArray[Any]:
        """Return results with axes in the order of the stage's, and the one that was reduced, if it stays."""
        fold = self.stage.fold
        assert fold is not None
        found = in_own_order(results, kept)
        shape: Shape = found.shape
        return found.reshape(*shape, 1) if fold.keeps else found


def fusion_of(stage: Stage) -> Fusion | None:
    """Return how one loop does a stage; None if none does."""
    fold = stage.fold
    if fold is None or fold.dtype is not None or len(fold.axes) != 1 or fold.axes[0] != len(stage.shape) - 1:
        return None
    dtype = stage.dtype
    if not folds(fold.name, dtype) or stage.source != dtype or fold.result != dtype:
        return None
    if not 0 < len(stage.steps) <= MOST_FOLDED_STEPS:
        return None

    functions = bytearray()
    second: list[NDArray[Any] | None] = []
    for step in stage.steps:
        function, *operands = step if isinstance(step, tuple) else (step,)
        number = folded_function(function)
        if number < 0:
            return None
        functions.append(number)
        operand = _operand_of(operands[0], dtype) if operands else None
        if operands and operand is None:
            return None
        second.append(operand)
    return Fusion(stage, bytes(functions), second)


def _operand_of(value: Any, dtype: np.dtype[Any]) -> NDArray[Any] | None:
    """Return an operand as an array of a dtype; None for what has another one, or may not fit."""
    if isinstance(value, np.ndarray):
        return value if value.dtype == dtype else None
    if type(value) not in (int, float) or not (value == 0 or LEAST < abs(value) < MOST):
        return None
    return np.array(value, dtype)
