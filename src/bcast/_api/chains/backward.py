"""Gradients of a chain, block by block: the values of a block are computed again, and its gradient runs back.

In: a checked chain, and the gradient of its result. Out: the gradients of data and operands. A block of the result
needs a block of each stage, or several parts of one if a stage has many items for each result. In each part, the steps
of the stage run again, and their results are kept. Then the steps are walked backwards. The gradient of each operand is
summed along the axes that it was stretched along, and added to the gradients from other parts.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bcast._api.adjoints import unbroadcast, wide_dtype
from bcast._api.chains.derivatives import DERIVATIVES, Spread, Steps, Values
from bcast._api.chains.folds import two_sum
from bcast._api.chains.fused import NotFusedError
from bcast._api.chains.layouts import Copies, Order, in_own_order, order_of
from bcast._api.chains.reducing import Run
from bcast._api.chains.stages import Region, Stage, cut_reduced, cut_result, parts_of
from bcast._rules.arguments import Shape
from bcast._runtime.arrays import reduced_shape, rounded_to
from bcast._runtime.errors import quietly

FLOAT32 = np.dtype(np.float32)


class Gathered:
    """The gradient of an array, gathered part by part.

    If several parts are added to an item (`adds`), it is a sum in higher precision, with its rounding error.
    """

    def __init__(self, shape: Shape, dtype: np.dtype[Any], adds: bool) -> None:
        self.dtype = dtype
        self.high = np.zeros(shape, wide_dtype(dtype) if adds else dtype)
        self.low = np.zeros_like(self.high) if adds else None

    def take(self, index: tuple[Any, ...], part: NDArray[Any]) -> None:
        """Add a part, in higher precision, to the items with an index."""
        if self.low is None:
            self.high[index] = rounded_to(part, self.dtype)
            return
        self.high[index], rounded_off = two_sum(self.high[index], part)
        self.low[index] += rounded_off

    def result(self) -> NDArray[Any]:
        """Return the gradient, rounded once."""
        return self.high if self.low is None else rounded_to(np.asarray(self.high + self.low), self.dtype)


class Backward:
    """The way back through a chain."""

    def __init__(self, array: NDArray[Any], dtype: Any, stages: list[Stage], run: Callable[..., Any]) -> None:
        self.given = array.dtype
        self.array = array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
        self.dtype = dtype  # the data is converted to it first; None for its own
        self.stages = stages
        self.run = run  # runs element-wise steps on an array
        self.copies = Copies()  # copies of operands in the order of blocks
        self.forward = Run(self.array, dtype, stages, run, joins_stages=False)
        self.gathered: dict[tuple[int, int], Gathered] = {}  # by the numbers of a stage and a step; (0, -1) for data

    def gradients(self, gradient: NDArray[Any]) -> list[NDArray[Any]]:
        """Return the gradients of data and of the arrays among operands, in the order of the steps."""
        self._prepare()
        narrow = gradient.dtype.itemsize < FLOAT32.itemsize
        whole = gradient.astype(FLOAT32) if narrow else gradient
        quietly(self._walk, whole)
        found = [self.gathered[place].result() for place in sorted(self.gathered)]
        self.gathered = {}
        if self.array.dtype != self.given:  # its byte order differs
            found[0] = found[0].astype(self.given)
        return found

    def _prepare(self) -> None:
        """Make the arrays that gather gradients: the first block shows which axes are cut."""
        region = next(cut_result(self.stages, {}, ()))
        for k in reversed(range(len(self.stages))):
            stage = self.stages[k]
            region = next(cut_reduced(self.stages, k, region)) if stage.fold is not None else region
            if k == 0:
                dtype = self.array.dtype if self.array.dtype.kind not in "biu" else self.dtype
                self.gathered[0, -1] = Gathered(self.array.shape, dtype, _is_shared(stage, self.array, region))
            for j, step in enumerate(stage.steps):
                operand = _array_of(step)
                if operand is not None:
                    self.gathered[k, j] = Gathered(operand.shape, operand.dtype, _is_shared(stage, operand, region))

    def _walk(self, gradient: NDArray[Any]) -> None:
        """Walk back from each block of the result."""
        last = len(self.stages) - 1
        for region in cut_result(self.stages, {}, ()):
            self._back(last, region, gradient[self.stages[last].index(gradient.shape, region)])

    def _back(self, k: int, region: Region, gradient: NDArray[Any]) -> None:
        """Walk back from the result of stage `k` in a region, given its gradient."""
        stage = self.stages[k]
        fold = stage.fold
        if fold is None:
            self._back_through_steps(k, region, self._values(k, region), gradient, [])
            return

        parts = list(cut_reduced(self.stages, k, region))
        spread = Spread(fold, gradient.reshape(reduced_shape(stage.lengths(region), fold.axes, True)))
        if len(parts) > 1 and spread.looks_ahead():
            result = self._source(k + 1, region).reshape(spread.gradient.shape)
            for each in parts:
                spread.look(self._values(k, each).last(), result)
        for each in parts:
            block = self._values(k, each)
            value = block.last()
            if len(parts) == 1 and spread.looks_ahead():
                spread.look(value, fold.of(value).reshape(spread.gradient.shape))
            given, steps = spread.over(value)
            self._back_through_steps(k, each, block, given, steps)

    def _source(self, k: int, region: Region) -> NDArray[Any]:
        """Return the input of the first step of a stage in a region."""
        try:
            return np.asarray(self.forward.source(k, region))
        except NotFusedError:
            self.forward.leave_loops()
            return np.asarray(self.forward.source(k, region))

    def _values(self, k: int, region: Region) -> "_Block":
        """Run the steps of a stage in a region, and keep the result of each."""
        stage = self.stages[k]
        source = self._source(k, region)
        block = _Block(stage, source, stage.lengths(region))
        value = block.laid(source)
        if block.order is not None:
            value = np.ascontiguousarray(value)
        if k == 0 and self.dtype is not None:
            value = np.asarray(self.run(value, [], self.dtype, None))
        block.results.append(value)
        for j, step in enumerate(stage.steps):
            function, operands = parts_of(step)
            second = operands[0] if operands else None
            if isinstance(second, np.ndarray):
                part = second[stage.index(second.shape, region)]
                second = self.copies.laid((k, j), part, block.order) if block.order else block.laid(part)
            block.seconds.append(second)
            given = function if second is None else (function, second)
            block.results.append(np.asarray(self.run(block.results[-1], [given], None, None)))
        return block

    def _back_through_steps(self, k: int, region: Region, block: "_Block", gradient: NDArray[Any], due: Steps) -> None:
        """Walk back through the steps of a stage; `due` steps have yet to run on the gradient of its last result."""
        stage = self.stages[k]
        gradient = block.laid(gradient)
        due = [block.laid_step(step) for step in due]
        for j in reversed(range(len(stage.steps))):
            step = stage.steps[j]
            function, _ = parts_of(step)
            values = Values(block.results[j], block.seconds[j], block.results[j + 1])
            derivative = DERIVATIVES[function]
            if (k, j) in self.gathered:
                gradient, due = self._run(gradient, due), []
                operand = self._summed(gradient, derivative.second(values), values.second.shape)
                self._gather((k, j), _array_of(step), stage, region, block.own(operand))
            due += derivative.first(values)
            if values.first.shape != values.result.shape:
                gradient, due = self._summed(gradient, due, values.first.shape), []
        gradient = self._run(gradient, due)

        if k:
            source = block.own(gradient)
            self._back(k - 1, region, source.reshape(block.shape_of_source))
        else:
            self._gather((0, -1), self.array, stage, region, block.own(gradient))

    def _run(self, gradient: NDArray[Any], steps: Steps) -> NDArray[Any]:
        """Run steps on a gradient."""
        return np.asarray(self.run(gradient, steps, None, None)) if steps else gradient

    def _summed(self, gradient: NDArray[Any], steps: Steps, shape: Shape) -> NDArray[Any]:
        """Run steps on a gradient, then sum it along the axes that have length 1 in a shape."""
        if gradient.shape == shape:
            return self._run(gradient, steps)
        if len(steps) == 1 and isinstance(steps[0], tuple) and steps[0][0] is np.multiply:
            times = steps[0][1]
            if isinstance(times, np.ndarray) and times.dtype == gradient.dtype:
                return unbroadcast(gradient, shape, times=times, dtype=wide_dtype(gradient.dtype))
        whole = self._run(gradient, steps)
        return unbroadcast(whole, shape, dtype=wide_dtype(whole.dtype))

    def _gather(self, place: tuple[int, int], array: Any, stage: Stage, region: Region, gradient: NDArray[Any]) -> None:
        """Add the gradient of a part of an array to the gradients of the other parts."""
        index = stage.index(array.shape, region)
        self.gathered[place].take(index, gradient.reshape(array[index].shape))


class _Block:
    """The values of a part of a stage, with all its axes, in their order in memory."""

    def __init__(self, stage: Stage, source: NDArray[Any], shape: Shape) -> None:
        self.shape_of_source = source.shape
        self.rank = len(shape)
        self.order: Order | None = order_of(stage, shape, source.shape)
        self.seconds: list[Any] = []  # second operands of the steps
        self.results: list[NDArray[Any]] = []  # the input of the first step, and the result of each step

    def laid(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return an array with all axes, in the order of the block."""
        whole = array.reshape((1,) * (self.rank - array.ndim) + array.shape)
        return whole if self.order is None else whole.transpose(self.order)

    def laid_step(self, step: Any) -> Any:
        """Return a step with its operand in the order of the block."""
        function, operands = parts_of(step)
        return (function, self.laid(operands[0])) if operands else step

    def own(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return an array of the block with its axes in the order of the stage."""
        return array if self.order is None else in_own_order(array, self.order)

    def last(self) -> NDArray[Any]:
        """Return the result of the last step, with axes in the order of the stage."""
        return self.own(self.results[-1])


def _array_of(step: Any) -> Any:
    """Return the second operand of a step if it is an array: Python numbers have no gradient."""
    _, operands = parts_of(step)
    return operands[0] if operands and isinstance(operands[0], np.ndarray) else None


def _is_shared(stage: Stage, array: NDArray[Any], region: Region) -> bool:
    """Return whether several parts, cut along the axes of a region, share items of an array."""
    labels = stage.labels[len(stage.labels) - array.ndim :]
    own = {label for label, length in zip(labels, array.shape, strict=True) if length != 1}
    return not region.keys() <= own
