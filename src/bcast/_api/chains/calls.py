"""A call of `chain` with reductions: from the arguments that the front end has read to the result, or to its memory.

The front end is above these modules. It passes a `Chain`, whose methods check and run single steps.
"""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bcast._api.chains.reducing import Errors, reduce_blocks
from bcast._api.chains.stages import ChainMemory, Stage, memory_of, parts_of, plan_stages
from bcast._rules.arguments import Shape
from bcast._runtime.arrays import result_array
from bcast._runtime.core import PASSES_BLOCK_BYTES


class Chain(Protocol):
    """The part of the front end's chain that these modules use."""

    dtype: Any  # None if not given
    out: Any
    steps: Any

    def first_conversion(self, array: Any) -> tuple[Any, Any]: ...
    def plain_step(self, step: Any, i: int, shape: Shape, dtype: Any) -> tuple[list[Any], Shape, Any]: ...
    def target(self, shape: Shape, last: Any) -> Any: ...
    def run(self, array: Any, steps: list[Any], dtype: Any, out: Any) -> Any: ...


def reduced(array: NDArray[Any], call: Chain) -> tuple[Any, Any, Errors]:
    """Run a chain that has reductions, on plain arrays, block by block.

    Return its result; the array to store it into, if it is not there yet; and the errors to report. The front end does
    both: then no line of Python comes after `out` is written, and a warning shows the user's line.
    """
    array, own = call.first_conversion(array)
    stages = plan_stages(array, own, call.steps, call.plain_step)
    shape, last = stages[-1].shape, stages[-1].dtype
    target = call.target(shape, last)
    # A result that fits a block is made outside `out`, so an interrupted call does not change `out`.
    is_apart = target is None or target.nbytes <= PASSES_BLOCK_BYTES or _shares_memory(target, array, stages)
    result = result_array(None, array, shape, "data", last) if is_apart else target
    errors = reduce_blocks(array, None if call.dtype is None else own, stages, call.run, result)

    if target is not None:
        return result, target if is_apart else None, errors
    return result if shape else result[()], None, errors


def memory(array: NDArray[Any], call: Chain) -> ChainMemory:
    """Return the most memory that a chain needs."""
    array, own = call.first_conversion(array)
    return memory_of(plan_stages(array, own, call.steps, call.plain_step))


def _shares_memory(target: NDArray[Any], array: NDArray[Any], stages: list[Stage]) -> bool:
    """Return whether the array of `out` may overlap the data or operands of a chain."""
    if np.may_share_memory(target, array):
        return True
    for stage in stages:
        for step in stage.steps:
            for operand in parts_of(step)[1]:
                if isinstance(operand, np.ndarray) and np.may_share_memory(target, operand):
                    return True
    return False
