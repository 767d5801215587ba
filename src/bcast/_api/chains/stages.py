"""The plan of a chain with reductions: its stages, their axes, and the blocks.

A stage is the element-wise steps up to a reduction, or up to the end. Axes have labels, which they keep from stage to
stage. A part of the result therefore determines the part that it needs of each operand:

    chain(a[:, None], (np.subtract, b), np.square, (np.sum, -1), np.sqrt)      a of shape (500, 3), b of (700, 3)

    stage   steps               shape           labels      then
    0       subtract, square    (500, 700, 3)   0, 1, 2     sum along label 2
    1       sqrt                (500, 700)      0, 1

A block is a part of the result that needs a limited number of bytes in each stage. If a single result needs more, the
stage is also cut along the reduced axes.
"""

from collections.abc import Callable, Container, Iterator, Sequence
from itertools import count, product
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bcast._api.chains.folds import Fold, fold_of
from bcast._rules.arguments import Shape
from bcast._runtime.arrays import dtype_of
from bcast._runtime.core import CHAIN_BLOCK_ROWS, PASSES_BLOCK_BYTES, get_num_threads

Region: TypeAlias = dict[int, slice]  # the part of each axis that is cut, by its label
Labels: TypeAlias = tuple[int, ...]

THREAD_BYTES = 1 << 20  # the most for one thread's buffers
PARTS_AT_ONCE = 8  # arrays of results of parts in memory together
WIDEST = 16  # bytes of an item in higher precision

block_bytes = PASSES_BLOCK_BYTES  # tests set others


def set_limits(block: int = PASSES_BLOCK_BYTES) -> None:
    """Set the bytes of a stage in a block: for tests of small arrays."""
    global block_bytes
    if block < 1:
        raise ValueError(f"`block` expected bytes, at least 1, got {block}")
    block_bytes = block


class Stage:
    """Some steps of a chain, and the reduction that follows them."""

    first: int  # number of the first step in the chain
    steps: list[Any]  # ufuncs, or tuples of a ufunc and operands, which broadcast by NumPy's rule
    source: np.dtype[Any]  # the dtype of the first step's input
    shape: Shape  # the shape of the last step's result
    dtype: np.dtype[Any]  # the dtype of the last step's result
    labels: Labels  # the labels of the stage's axes
    item_bytes: int  # the size of the widest item that the stage makes; 0 if it makes none
    fold: Fold | None

    def __init__(self, first: int, shape: Shape, dtype: np.dtype[Any], labels: Labels) -> None:
        self.first = first
        self.steps = []
        self.source = self.dtype = dtype
        self.shape = shape
        self.labels = labels
        self.item_bytes = 0
        self.fold = None

    def kept(self) -> Labels:
        """Return the labels of the axes that the reduction keeps."""
        return self._labels(False)

    def reduced(self) -> Labels:
        """Return the labels of the axes that the reduction reduces."""
        return self._labels(True)

    def _labels(self, are_reduced: bool) -> Labels:
        axes = self.fold.axes if self.fold is not None else ()
        return tuple(label for at, label in enumerate(self.labels) if (at in axes) == are_reduced)

    def lengths(self, region: Region) -> Shape:
        """Return the shape of the stage in a region."""
        if not region:
            return self.shape
        pairs = zip(self.labels, self.shape, strict=True)
        return tuple(part_length(region.get(label), length) for label, length in pairs)

    def index(self, shape: Shape, region: Region) -> tuple[Any, ...]:
        """Return the index of a region's items in an operand of a shape."""
        if not region:
            return (...,)
        labels = self.labels[len(self.labels) - len(shape) :]
        parts = [region.get(label) for label in labels]
        cuts = [slice(None) if part is None or length == 1 else part for part, length in zip(parts, shape, strict=True)]
        return (*cuts, ...)


def part_length(part: slice | None, length: int) -> int:
    """Return how long a part of an axis is; axes of length 1 have no parts."""
    return length if part is None or length == 1 else int(part.stop - part.start)


# From steps to stages.


def plan_stages(
    array: NDArray[Any], own: np.dtype[Any], steps: Sequence[Any], plain_step: Callable[..., Any]
) -> list[Stage]:
    """Check the steps of a chain on an array, which is first converted to a dtype; return its stages.

    `plain_step` checks and aligns element-wise steps. The last stage has no reduction, and may have no steps.
    """
    fresh = count(array.ndim)
    stage = Stage(0, array.shape, own, tuple(range(array.ndim)))
    stage.item_bytes = 0 if own == dtype_of(array) else own.itemsize
    stages = [stage]
    for i, step in enumerate(steps):
        fold = fold_of(f"steps[{i}]", step)
        if fold is None:
            _add_step(stage, plain_step(step, i, stage.shape, stage.dtype), fresh)
            continue
        fold.settle(stage.shape, stage.dtype)
        stage.fold = fold
        labels = _labels_after(stage, fold, fresh)
        stage = Stage(i + 1, fold.shape, fold.result, labels)
        stage.item_bytes = fold.result.itemsize
        stages.append(stage)
    return stages


def _add_step(stage: Stage, given: tuple[list[Any], Shape, np.dtype[Any]], fresh: Iterator[int]) -> None:
    """Add an element-wise step, and the shape and dtype of its result; axes that an operand adds get fresh labels."""
    steps, shape, dtype = given
    more = len(shape) - len(stage.shape)
    stage.labels = tuple(next(fresh) for _ in range(more)) + stage.labels
    stage.steps.extend(steps)
    stage.item_bytes = max(stage.item_bytes, stage.dtype.itemsize, dtype.itemsize)
    stage.shape, stage.dtype = shape, dtype


def parts_of(step: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return the function of an element-wise step of a stage, and its operands after the first."""
    return (step[0], step[1:]) if isinstance(step, tuple) else (step, ())


def _labels_after(stage: Stage, fold: Fold, fresh: Iterator[int]) -> Labels:
    """Return the labels of a reduction's result: a kept axis of length 1 gets a new label."""
    if not fold.keeps:
        return stage.kept()
    return tuple(next(fresh) if at in fold.axes else label for at, label in enumerate(stage.labels))


# Blocks.


def cut_result(stages: list[Stage], within: Region, fused: Container[int]) -> Iterator[Region]:
    """Yield the blocks of a region of a chain's result, as regions; stages that are `fused` keep nothing."""
    last = stages[-1]
    made = [stage for k, stage in enumerate(stages) if k not in fused and (stage is not last or stage.steps)]
    if _all_fit(made):
        yield within
        return
    bounds = _bounds(last, within)
    parts = {label: bound.stop - bound.start for label, bound in bounds.items()}
    for label in last.labels:
        _shorten(label, parts, made, CHAIN_BLOCK_ROWS)
    for each in _regions(last.labels, bounds, parts):
        yield within | each


def cut_reduced(stages: list[Stage], k: int, region: Region) -> Iterator[Region]:
    """Yield the parts of a region that the reduction of stage `k` combines, in the order of their items."""
    if _all_fit(stages[: k + 1]):
        yield region
        return
    stage = stages[k]
    bounds = _bounds(stage, region)
    parts = {label: bound.stop - bound.start for label, bound in bounds.items()}
    if stage.fold is not None and stage.fold.takes_parts(stage.dtype):
        for label in stage.reduced():
            _shorten(label, parts, stages[: k + 1], 0)
    for each in _regions(stage.reduced(), bounds, parts):
        yield region | each


def _all_fit(stages: list[Stage]) -> bool:
    """Return whether each stage fits a block as a whole."""
    return all(_size(stage.shape) * stage.item_bytes <= block_bytes for stage in stages)


def _bounds(stage: Stage, region: Region) -> Region:
    """Return where the axes of a stage begin and end in a region."""
    bounds: Region = {}
    for label, length in zip(stage.labels, stage.shape, strict=True):
        part = region.get(label)
        bounds[label] = slice(0, length) if part is None or length == 1 else part
    return bounds


def _shorten(label: int, parts: dict[int, int], stages: list[Stage], rows: int) -> None:
    """Shorten the part of an axis until each stage with the axis fits a block, but do not shorten short rows.

    Rows stay so long that `rows` of them fill a block; 0 allows rows of any length.
    """
    for stage in stages:
        if label not in stage.labels or not stage.item_bytes:
            continue
        needed, within = stage.item_bytes, stage.item_bytes
        is_inner = False
        for each, length in zip(stage.labels, stage.shape, strict=True):
            part = min(length, parts.get(each, length))
            needed *= part
            within *= part if is_inner else 1
            is_inner = is_inner or each == label
        if needed <= block_bytes or parts[label] <= 1:
            continue
        fitting = max(1, parts[label] * block_bytes // needed)
        least = -(-block_bytes // (rows * within)) if rows and within else 1
        parts[label] = min(parts[label], max(fitting, least))


def _regions(labels: Labels, bounds: Region, parts: dict[int, int]) -> Iterator[Region]:
    """Yield regions with parts of these lengths, evenly cut, in the order of items; whole axes have no part."""
    cuts: list[list[tuple[int, slice]]] = []
    for label in labels:
        bound = bounds[label]
        length = bound.stop - bound.start
        if parts[label] >= length:
            continue
        number = -(-length // parts[label])
        part = -(-length // number)
        begins = range(bound.start, bound.stop, part)
        cuts.append([(label, slice(at, min(at + part, bound.stop))) for at in begins])
    for each in product(*cuts):
        yield dict(each)


# Memory.


class ChainMemory(NamedTuple):
    """The result of `chain_memory`, in bytes."""

    result: int
    blocks: int


def memory_of(stages: list[Stage]) -> ChainMemory:
    """Return the most memory that a chain needs."""
    last = stages[-1]
    region = next(cut_result(stages, {}, ()))
    blocks = THREAD_BYTES * get_num_threads()
    for k, stage in enumerate(stages[:-1]):
        sizes = [_size(stage.lengths(each)) for each in cut_reduced(stages, k, region)]
        # The results of steps; if they run one by one, also their inputs.
        blocks += 3 * max(sizes) * stage.item_bytes
        # The result of a stage that one loop runs, and a copy of it; results of reductions of one part, and of all.
        blocks += 2 * block_bytes
        arrays = PARTS_AT_ONCE if len(sizes) > 1 else 1
        if stage.fold is not None and stage.fold.is_exact:
            arrays *= 2  # expansions have three parts
        blocks += arrays * _size(stages[k + 1].lengths(region)) * WIDEST
    return ChainMemory(_size(last.shape) * last.dtype.itemsize, blocks)


def _size(shape: Shape) -> int:
    """Return the number of items in an array of a shape."""
    return prod(shape)
