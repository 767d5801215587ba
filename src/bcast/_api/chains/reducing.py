"""Chains with reductions, block by block, without an array of the broadcast's size.

In: data and steps that the front end has read. Out: the result, and the floating-point errors of each step, which the
front end reports. Each stage of a block is computed into scratch, and reduced there.
"""

from collections.abc import Callable
from contextvars import copy_context
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bcast._api.chains.fused import Fusion, NotFusedError, fusion_of
from bcast._api.chains.layouts import Copies, Order, Scratch, in_own_order, laid, order_of
from bcast._api.chains.stages import Region, Stage, cut_reduced, cut_result
from bcast._rules.arguments import Shape

KINDS = {"divide by zero": 1, "overflow": 2, "underflow": 4, "invalid value": 8}  # NumPy's numbers for errors
REDUCING, INTO_OUT = 1, 2  # the actions after the steps of a stage
Errors = list[tuple[str, int]]


class Noted:
    """NumPy's log of floating-point errors, by their places in a chain."""

    def __init__(self) -> None:
        self.place: tuple[int, int, int] = (0, 0, 0)  # the stage, kind and step of the current action
        self.errors: dict[tuple[int, int, int], dict[str, int]] = {}
        self.has_new = False

    def write(self, text: str) -> None:
        """Record a line of NumPy's log: `Warning: overflow encountered in multiply`."""
        kind, _, name = text.strip().removeprefix("Warning: ").partition(" encountered in ")
        found = self.errors.setdefault(self.place, {})
        found[name] = found.get(name, 0) | KINDS[kind]
        self.has_new = True

    def forget(self) -> None:
        """Forget the notes of this place."""
        self.errors.pop(self.place, None)
        self.has_new = False

    def in_order(self) -> Errors:
        """Return the names of functions and their errors, in the order of the steps."""
        return [(name, kinds) for place in sorted(self.errors) for name, kinds in self.errors[place].items()]


class Run:
    """The computation of a chain's result, block by block."""

    def __init__(
        self,
        array: NDArray[Any],
        dtype: Any,
        stages: list[Stage],
        run_steps: Callable[..., Any],
        joins_stages: bool = True,
    ) -> None:
        self.array = array
        self.dtype = dtype  # the data is converted to it first; None for its own
        self.stages = stages
        self.run_steps = run_steps  # runs element-wise steps on an array
        self.noted = Noted()
        self.in_error: set[int] = set()  # stages whose steps run one by one, because some had errors
        self.scratch: dict[int, Scratch] = {}  # for the results of the steps of each stage
        self.sources: dict[int, tuple[Any, Any]] = {}  # the last input of a stage, and its region
        self.orders: dict[int, Order | None] = {}  # the orders of each stage's items in memory
        self.copies = Copies()  # copies of operands in these orders
        self.joins_stages = joins_stages  # the loop of a stage may run a step of the next one
        self.fusions = self._fusions()

    def _fusions(self) -> dict[int, Fusion]:
        """Return the fused loops, by the last stage of each."""
        found: dict[int, Fusion] = {}
        for k, stage in enumerate(self.stages[:-1]):
            fusion = fusion_of(stage, k)
            if fusion is None:
                continue
            if k == 0 and self.dtype is not None:
                if stage.source.kind != "f" or fusion.dtype is not None:  # integers may be truncated in between
                    continue
                fusion.dtype = stage.source
            if self.joins_stages:
                fusion.join(self.stages[k + 1])
            found[k if fusion.sought is None else k + 1] = fusion
        return found

    def _not_kept(self) -> set[int]:
        """Return the stages that make no array, because loops run them."""
        found = set(self.fusions) | {fusion.number for fusion in self.fusions.values()}
        last = len(self.stages) - 1
        return found if self._steps_left(last) else {last, *found}

    def _steps_left(self, k: int) -> list[Any]:
        """Return the steps of a stage that the previous stage's loop does not run."""
        steps = self.stages[k].steps
        return steps[self.fusions[k - 1].steps_joined() :] if k - 1 in self.fusions else steps

    def write(self, out: NDArray[Any]) -> None:
        """Compute the result into `out`, region by region; the regions are larger if loops run whole stages."""
        for region in cut_result(self.stages, {}, self._not_kept()):
            if self.fusions:
                try:
                    self._write_block(region, out)
                    continue
                except NotFusedError:
                    self.leave_loops()
            for part in cut_result(self.stages, region, ()):
                self._write_block(part, out)

    def leave_loops(self) -> None:
        """Run single steps from now on."""
        self.fusions.clear()
        self.sources.clear()

    def _write_block(self, region: Region, out: NDArray[Any]) -> None:
        """Compute a region of the result."""
        last = len(self.stages) - 1
        stage = self.stages[last]
        block = out[stage.index(out.shape, region)]
        if self._steps_left(last) or not self._is_written_at_once(last - 1, region, block):
            self._steps(last, self.source(last, region), region, block)

    def _is_written_at_once(self, k: int, region: Region, block: NDArray[Any]) -> bool:
        """Let a reduction write a block of the result itself, if possible; return whether it has."""
        fold = self.stages[k].fold
        if fold is None or fold.result != block.dtype:
            return False
        if k in self.fusions:
            found = self._fused(k, region, block)
            if found is not block:
                block[...] = found
            return True
        if len(list(cut_reduced(self.stages, k, region))) != 1:
            return False
        value = self._value(k, region)
        self.noted.place = (k, REDUCING, 0)
        fold.onto(value, block)
        return True

    def _value(self, k: int, region: Region) -> NDArray[Any]:
        """Return the result of the steps of stage `k` in a region."""
        stage = self.stages[k]
        source: NDArray[Any] = self.source(k, region)
        if not self._steps_left(k) and (k or self.dtype is None):
            return source
        shape = stage.lengths(region)
        if k not in self.orders:  # the first block is a largest one
            self.orders[k] = order_of(stage, shape, source.shape)
        order = self.orders[k]
        if order is None:
            return self._steps(k, source, region, self._scratch_of(k, shape))
        scratch = self._scratch_of(k, tuple(shape[at] for at in order))
        return in_own_order(self._steps(k, laid(source, order), region, scratch), order)

    def source(self, k: int, region: Region) -> NDArray[Any]:
        """Return the input of the first step of a stage in a region: data, or the result of the previous stage."""
        stage = self.stages[k]
        if k == 0:
            data: NDArray[Any] = self.array[stage.index(self.array.shape, region)]
            return data
        before = self.stages[k - 1]
        own = {label: part for label, part in region.items() if label in before.labels}
        if k not in self.sources or self.sources[k][0] != own:
            self.sources[k] = own, self._folded(k - 1, own)
        found: NDArray[Any] = self.sources[k][1]
        return found

    def _fused(self, k: int, region: Region, block: NDArray[Any] | None) -> NDArray[Any]:
        """Return the result of stage `k` and the loop that ends there, in a region: in a block, if possible."""
        fusion = self.fusions[k]
        return fusion.fold(self.source(fusion.number, region), region, block)

    def _folded(self, k: int, region: Region) -> NDArray[Any]:
        """Return the result of the reduction of a stage in a region."""
        fold = self.stages[k].fold
        assert fold is not None
        if k in self.fusions:
            return self._fused(k, region, None)
        regions = list(cut_reduced(self.stages, k, region))
        if len(regions) == 1:
            value = self._value(k, region)
            self.noted.place = (k, REDUCING, 0)
            return fold.of(value)

        stage = self.stages[k]
        parts = fold.parts(stage.lengths(region))
        for each in regions:
            value = self._value(k, each)
            self.noted.place = (k, REDUCING, 0)
            parts.take(value, tuple(0 if label not in each else each[label].start for label in stage.labels))
        return np.asarray(parts.result())

    def _scratch_of(self, k: int, shape: Shape) -> NDArray[Any]:
        """Return an array of a shape for the results of the steps of a stage."""
        if k not in self.scratch:
            self.scratch[k] = Scratch(self.stages[k].dtype)
        return self.scratch[k].shaped(shape)

    def _steps(self, k: int, source: NDArray[Any], region: Region, out: NDArray[Any]) -> NDArray[Any]:
        """Run the steps of a stage in a region: all at once, or one by one if some have errors."""
        stage = self.stages[k]
        order = self.orders.get(k)
        steps = [self._within(step, stage, region, order) for step in self._steps_left(k)]
        dtype = self.dtype if k == 0 else None
        if k not in self.in_error:
            self.noted.place = (k, 0, -1)
            self.noted.has_new = False
            self.run_steps(source, steps, dtype, out)
            if not self.noted.has_new:
                return out
            self.noted.forget()
            self.in_error.add(k)
        return self._single_steps(k, source, steps, out)

    def _within(self, step: Any, stage: Stage, region: Region, order: Order | None) -> Any:
        """Return a step with the items of its operands that belong to a region."""
        if not isinstance(step, tuple):
            return step
        function, *operands = step
        for i, operand in enumerate(operands):
            if isinstance(operand, np.ndarray) and operand.ndim:
                part = operand[stage.index(operand.shape, region)]
                operands[i] = part if order is None else self.copies.laid((id(operand), order), part, order)
        return (function, *operands)

    def _single_steps(self, k: int, source: NDArray[Any], steps: list[Any], out: NDArray[Any]) -> NDArray[Any]:
        """Run steps one by one, and note the errors of each."""
        result = source
        if k == 0 and self.dtype is not None:
            self.noted.place = (k, 0, -1)
            result = self.run_steps(result, [], self.dtype, None)
        for i, step in enumerate(steps):
            self.noted.place = (k, 0, i)
            result = self.run_steps(result, [step], None, None)
        self.noted.place = (k, INTO_OUT, 0)
        self.run_steps(result, [], None, out)
        return out


def reduce_blocks(array: NDArray[Any], dtype: Any, stages: list[Stage], run_steps: Any, out: NDArray[Any]) -> Errors:
    """Compute a chain into an `out` that overlaps nothing; return the floating-point errors of its steps."""
    run = Run(array, dtype, stages, run_steps)
    # A separate context need not restore the caller's settings: `errstate` fails to do so if memory runs out.
    copy_context().run(_write_noting_errors, run, out)
    return run.noted.in_order()


def _write_noting_errors(run: Run, out: NDArray[Any]) -> None:
    """Compute a chain into `out`, and note all floating-point errors in this context from now on."""
    np.seterr(all="log")
    np.seterrcall(run.noted)
    run.write(out)
