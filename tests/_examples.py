"""The specifications' worked examples from `examples.json`, and descriptions of results that differ."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bcast import broadcast, broadcast_arrays, broadcast_shapes, infer_shape, unbroadcast


@dataclass(frozen=True, kw_only=True)
class Example:
    """One example of a page: a call, its arguments, and the shape of its result, None where the page refuses it."""

    page: str
    where: str
    call: str = "broadcast"  # or 'broadcast_arrays', or 'unbroadcast' of a gradient of shape `target`
    data: list[int]  # a shape
    target: list[int]
    arguments: dict[str, Any] = field(default_factory=dict)
    result: list[int] | None
    source: list[int] | None = None  # the data's shape at the output's rank, if NumPy would align it otherwise
    items: list[Any] | None = None  # of the data, if the page shows them
    values: list[Any] | None = None  # and of the output


def load() -> dict[str, list[Example]]:
    """Read the examples of each page."""
    pages = json.loads(Path(__file__).with_name("examples.json").read_text(encoding="utf-8"))
    return {page: [Example(page=page, **row) for row in rows] for page, rows in pages.items()}


def failure(example: Example) -> str | None:
    """Run one example; return what is wrong with the shape or the values of the result, or None."""
    data, target, rules = example.data, example.target, example.arguments
    array = _array(data, example.items)
    inputs = [array]
    if example.call == "broadcast_arrays":
        inputs = [array, _array(target, None)]
        shape = _unless_refused(lambda: broadcast_shapes(data, target))
        outputs = _unless_refused(lambda: broadcast_arrays(*inputs))
    elif example.call == "unbroadcast":
        inputs = [_array(target, None)]
        outputs = _unless_refused(lambda: (unbroadcast(inputs[0], data, **rules),))
        shape = None if outputs is None else outputs[0].shape
    else:
        shape = _unless_refused(lambda: infer_shape(data, target, **rules))
        outputs = _unless_refused(lambda: (broadcast(array, target, **rules),))
    for found in [shape, None] if outputs is None else [shape, *(output.shape for output in outputs)]:
        if found != (None if example.result is None else tuple(example.result)):
            return f"expected {_show(example.result)}, got {_show(found)}"
    for given, output in zip(inputs, outputs or (), strict=outputs is not None):
        expected = _expected(example, given)
        if output.dtype != expected.dtype or not np.array_equal(output, expected):
            return f"expected the values {expected.tolist()}, got {output.tolist()}"
    return None


def _array(shape: Sequence[int], items: list[Any] | None) -> NDArray[Any]:
    """Return an array of the items that a page shows, or of numbers that all differ."""
    return np.reshape(np.arange(math.prod(shape)) if items is None else np.array(items), shape)


def _expected(example: Example, array: NDArray[Any]) -> NDArray[Any]:
    """Return the expected output of an example, found without bcast."""
    if example.call == "unbroadcast":
        return np.asarray(array.sum(tuple(example.arguments["broadcast_axes"])))
    if example.values is not None:
        return np.array(example.values)
    aligned = array if example.source is None else array.reshape(example.source)
    return np.broadcast_to(aligned, example.result or ())


def _unless_refused(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except ValueError:
        return None


def _show(shape: Sequence[int] | None) -> str:
    return "a refusal" if shape is None else f"shape {tuple(shape)}"
