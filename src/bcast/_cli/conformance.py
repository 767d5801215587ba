"""The worked examples of the specifications that `bcast` implements, as data, and the check of their results."""

import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from bcast import broadcast, broadcast_arrays, broadcast_shapes, infer_shape, unbroadcast

__all__ = ["Example", "check", "failure", "load"]

Result = TypeVar("Result")


@dataclass(frozen=True, kw_only=True)
class Example:
    """One example of a page.

    Attributes
    ----------
    page, where : str
        The page, and the place of the example on it.
    call : str
        'broadcast'; 'broadcast_arrays' if `data` and `target` are two inputs of an element-wise operation;
        'unbroadcast' if the page says over which axes the gradient with respect to the output is summed.
    data, target : list of int
        The two shapes.
    arguments : dict
        The other arguments of `bcast.broadcast`.
    result : list of int, or None
        The shape of the result; None if the page says that the example is refused.
    source : list of int, optional
        The data's shape at the output's rank, if NumPy itself would align it otherwise.
    items, values : list, optional
        The items of the data and of the output, if the page shows them.
    """

    page: str
    where: str
    call: str = "broadcast"
    data: list[int]
    target: list[int]
    arguments: dict[str, Any] = field(default_factory=dict)
    result: list[int] | None
    source: list[int] | None = None
    items: list[Any] | None = None
    values: list[Any] | None = None


def load() -> dict[str, list[Example]]:
    """Read the examples of each page."""
    pages = json.loads(resources.files("bcast._cli").joinpath("examples.json").read_text(encoding="utf-8"))
    return {page: [Example(page=page, **row) for row in rows] for page, rows in pages.items()}


def check(examples: Iterable[Example]) -> tuple[int, list[str]]:
    """Run the examples; return how many passed, and a line on each that failed."""
    outcomes = [(example, failure(example)) for example in examples]
    failures = [f"{example.page}, {example.where}: {problem}" for example, problem in outcomes if problem is not None]
    return len(outcomes) - len(failures), failures


def failure(example: Example) -> str | None:
    """Run one example; say what is wrong with the shape or the values of the result, or return None."""
    if example.call == "unbroadcast":
        return _backprop_failure(example)
    inputs = [_array(example.data, example.items)]
    if example.call == "broadcast_arrays":
        inputs.append(_array(example.target, None))
        shape = _unless_refused(lambda: broadcast_shapes(example.data, example.target))
        outputs = _unless_refused(lambda: broadcast_arrays(*inputs))
    else:
        shape = _unless_refused(lambda: infer_shape(example.data, example.target, **example.arguments))
        outputs = _unless_refused(lambda: (broadcast(inputs[0], example.target, **example.arguments),))
    shapes = [shape, None] if outputs is None else [shape, *(output.shape for output in outputs)]
    for found in shapes:
        if found != (None if example.result is None else tuple(example.result)):
            return f"expected {_show(example.result)}, got {_show(found)}"
    for array, output in zip(inputs, outputs or (), strict=outputs is not None):
        expected = _expected(example, array)
        if output.dtype != expected.dtype or not np.array_equal(output, expected):
            return f"expected the values {expected.tolist()}, got {output.tolist()}"
    return None


def _backprop_failure(example: Example) -> str | None:
    """Run one example of a backward pass, whose `target` is the shape of the gradient."""
    delta = _array(example.target, None)
    found = _unless_refused(lambda: unbroadcast(delta, example.data, **example.arguments))
    shape = None if found is None else found.shape
    if shape != (None if example.result is None else tuple(example.result)):
        return f"expected {_show(example.result)}, got {_show(shape)}"
    expected = delta.sum(tuple(example.arguments["broadcast_axes"]))
    if found is None or np.array_equal(found, expected):
        return None
    return f"expected the values {expected.tolist()}, got {found.tolist()}"


def _array(shape: Sequence[int], items: list[Any] | None) -> NDArray[Any]:
    """Return the data of an example: its own items, or numbers that all differ."""
    return np.reshape(np.arange(math.prod(shape)) if items is None else np.array(items), shape)


def _expected(example: Example, array: NDArray[Any]) -> NDArray[Any]:
    """Return the expected output of an example, found without bcast."""
    if example.values is not None:
        return np.array(example.values)
    aligned = array if example.source is None else array.reshape(example.source)
    return np.broadcast_to(aligned, example.result or ())


def _unless_refused(call: Callable[[], Result]) -> Result | None:
    try:
        return call()
    except ValueError:
        return None


def _show(shape: Sequence[int] | None) -> str:
    return "a refusal" if shape is None else f"shape {tuple(shape)}"
