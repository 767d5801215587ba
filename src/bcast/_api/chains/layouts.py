"""The order of a stage's items in a block, chosen so that loops are long and reductions add whole rows.

In ``(np.subtract, b), np.square, (np.sum, -1)`` on points of shape (500, 1, 3), with `b` of shape (700, 3), rows end
after three items, and each has another operand. With the coordinates outermost, (3, 500, 700), each row combines 700
items of `b` with one number, and a sum adds three long rows. `b` is copied into that order once, and the points of a
block once for each block: both are small compared with their differences.
"""

from collections.abc import Iterator
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bcast._api.chains.stages import Stage, parts_of
from bcast._rules.arguments import Shape
from bcast._runtime.core import FEW_TIMES, FOLD_MANY_TERMS, LONG_AXIS_ITEMS

Order: TypeAlias = tuple[int, ...]  # the axes of a stage, the outermost first


def order_of(stage: Stage, shape: Shape, source: Shape) -> Order | None:
    """Return the order of a stage's axes in blocks of a shape; None to keep it.

    `source` is the shape of the first step's input. Short innermost axes that are reduced come first, unless a large
    operand has them.
    """
    rank = len(shape)
    fold = stage.fold
    if fold is None or not stage.steps or (fold.axis is None and fold.name.startswith("arg")):
        return None
    first = rank
    while first and first - 1 in fold.axes:
        first -= 1
    if first in (0, rank) or prod(shape[first:]) > FOLD_MANY_TERMS or prod(shape[:first]) < LONG_AXIS_ITEMS:
        return None
    for given in (source, *_shapes_of_operands(stage)):
        if _is_large(given, shape, first):
            return None
    return (*range(first, rank), *_with_longest_last(shape, first))


def _shapes_of_operands(stage: Stage) -> Iterator[Shape]:
    """Yield the shapes of the operands of a stage's steps."""
    for step in stage.steps:
        for operand in parts_of(step)[1]:
            if isinstance(operand, np.ndarray):
                yield operand.shape


def _is_large(given: Shape, shape: Shape, first: int) -> bool:
    """Return whether an operand that has axes from number `first` on is not much smaller than a block."""
    lengths = (1,) * (len(shape) - len(given)) + given
    if prod(lengths[first:]) == 1:
        return False
    repeated = prod(length for length, own in zip(shape[:first], lengths[:first], strict=True) if own == 1)
    return repeated <= FEW_TIMES


def _with_longest_last(shape: Shape, rank: int) -> Order:
    """Return the order of the first axes: unchanged, or if the last one is short, with the longest one last."""
    axes = list(range(rank))
    longest = max(axes, key=lambda at: (shape[at], at))
    if shape[rank - 1] < LONG_AXIS_ITEMS <= shape[longest]:
        axes.append(axes.pop(longest))
    return tuple(axes)


def laid(array: NDArray[Any], order: Order) -> NDArray[Any]:
    """Return an operand with all axes of an order, in that order, also in memory."""
    rank = len(order)
    whole = array.reshape((1,) * (rank - array.ndim) + array.shape)
    return np.ascontiguousarray(whole.transpose(order))


class Copies:
    """The last copies of parts of operands: a part that the previous block copied is not copied again."""

    def __init__(self) -> None:
        self.last: dict[Any, tuple[Any, NDArray[Any]]] = {}  # by a key: the origin of a part, and its copy

    def laid(self, key: Any, part: NDArray[Any], order: Order) -> NDArray[Any]:
        """Return a part of the operand with a key, in an order."""
        place = part.__array_interface__["data"], part.shape, order
        if key not in self.last or self.last[key][0] != place:
            self.last[key] = place, laid(part, order)
        return self.last[key][1]


class Scratch:
    """Memory for an array that each block writes again."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.items = np.empty(0, dtype)

    def shaped(self, shape: Shape) -> NDArray[Any]:
        """Return an array of a shape, in place of the last one."""
        size = prod(shape)
        if self.items.size < size:
            self.items = np.empty(size, self.items.dtype)
        return self.items[:size].reshape(shape)


def in_own_order(value: NDArray[Any], order: Order) -> NDArray[Any]:
    """Return a view of an array in some order, with the axes of the stage."""
    return value.transpose(np.argsort(order))
