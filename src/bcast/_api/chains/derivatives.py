"""The derivatives of steps and reductions: the gradients of inputs, given the gradient of the result.

In: values of a block. Out: steps of a chain that runs on a gradient, so products need one pass.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bcast._api.adjoints import wide_dtype
from bcast._api.chains.folds import REDUCTIONS, Fold
from bcast._reduction import kind_of_sums

Steps = list[Any]
Value = Any  # an array, or a Python number


class Values(NamedTuple):
    """The inputs and the result of a step in a block."""

    first: NDArray[Any]
    second: Value  # None for a function of one operand
    result: NDArray[Any]


class Derivative(NamedTuple):
    """The steps that turn the gradient of a result into the gradient of each operand."""

    first: Callable[[Values], Steps]
    second: Callable[[Values], Steps]


def _of_one(steps: Callable[[Values], Steps]) -> Derivative:
    """Return the derivative of a function of one operand."""
    return Derivative(steps, _none)


def _none(values: Values) -> Steps:  # noqa: ARG001
    return []


def _sign(values: Values) -> Steps:
    return [(np.multiply, np.sign(values.first))]


def _part_of_first(values: Values) -> Steps:
    return [(np.multiply, _part(values.first, values.second, values.result))]


def _part_of_second(values: Values) -> Steps:
    return [(np.multiply, _part(values.second, values.first, values.result))]


def _part(own: Value, other: Value, result: NDArray[Any]) -> NDArray[Any]:
    """Return an operand's share of the gradient of `maximum` or `minimum`: half of it where both are equal."""
    part: NDArray[Any] = np.asarray(np.equal(own, result), np.float32)
    part[np.broadcast_to(np.equal(own, other), part.shape)] = 0.5
    return part


DERIVATIVES: dict[np.ufunc, Derivative] = {
    np.add: Derivative(_none, _none),
    np.subtract: Derivative(_none, lambda _: [np.negative]),
    np.multiply: Derivative(lambda v: [(np.multiply, v.second)], lambda v: [(np.multiply, v.first)]),
    np.true_divide: Derivative(
        lambda v: [(np.true_divide, v.second)],
        lambda v: [(np.multiply, v.result), (np.true_divide, v.second), np.negative],
    ),
    np.maximum: Derivative(_part_of_first, _part_of_second),
    np.minimum: Derivative(_part_of_first, _part_of_second),
    np.negative: _of_one(lambda _: [np.negative]),
    np.square: _of_one(lambda v: [(np.multiply, v.first), (np.multiply, 2)]),
    np.sqrt: _of_one(lambda v: [(np.true_divide, v.result), (np.multiply, 0.5)]),
    np.reciprocal: _of_one(lambda v: [(np.multiply, v.result), (np.multiply, v.result), np.negative]),
    np.absolute: _of_one(_sign),
    np.exp: _of_one(lambda v: [(np.multiply, v.result)]),
    np.log: _of_one(lambda v: [(np.true_divide, v.first)]),
}
REDUCED = ("sum", "mean", "max", "min", "prod")


def is_float(dtype: np.dtype[Any]) -> bool:
    """Return whether items of a dtype are real floating-point numbers, of whichever package."""
    return dtype.kind == "f" or kind_of_sums(dtype) == "f"


class Spread:
    """The gradient of a reduction's input, given the gradient of its result, part by part."""

    def __init__(self, fold: Fold, gradient: NDArray[Any]) -> None:
        self.fold = fold
        self.gradient = gradient  # with the axes of the reduction's input
        self.extreme: Any = None
        self.ties: Any = 0  # numbers of items equal to the extreme
        self.product: Any = 1  # the product of the items that are not 0
        self.zeros: Any = 0

    def looks_ahead(self) -> bool:
        """Return whether all parts must be read first."""
        return self.fold.name in ("max", "min", "prod")

    def look(self, part: NDArray[Any], result: NDArray[Any]) -> None:
        """Read a part of the terms of a result."""
        axes = tuple(self.fold.axes)
        if self.fold.name == "prod":
            is_zero = part == 0
            self.zeros = self.zeros + np.count_nonzero(is_zero, axis=axes, keepdims=True)
            others = REDUCTIONS["prod"](np.where(is_zero, 1, part), axes, wide_dtype(part.dtype), keepdims=True)
            self.product = self.product * others
            return
        self.extreme = result
        self.ties = self.ties + np.count_nonzero(part == result, axis=axes, keepdims=True)

    def over(self, part: NDArray[Any]) -> tuple[NDArray[Any], Steps]:
        """Return the gradient of a part, in its shape, and the steps that have yet to run on it."""
        gradient = self.gradient
        steps: Steps = []
        if self.fold.name == "mean":
            gradient = gradient / gradient.dtype.type(self.fold.count)
        elif self.fold.name == "prod":
            steps = [(np.multiply, self._product_of_others(part).astype(gradient.dtype))]
        elif self.looks_ahead():
            gradient = gradient / self.ties.astype(gradient.dtype)
            steps = [(np.multiply, part == self.extreme)]
        return np.broadcast_to(gradient, part.shape), steps

    def _product_of_others(self, part: NDArray[Any]) -> NDArray[Any]:
        """Return, for each item of a part, the product of all other items: 0 if one of these is 0."""
        is_zero = part == 0
        found: NDArray[Any] = np.where(self.zeros == is_zero, self.product / np.where(is_zero, 1, part), 0)
        return found
