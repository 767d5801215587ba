"""The plan of a chain with reductions: its stages, their axes, and the blocks.

A stage is the element-wise steps up to a reduction, or up to the end. Axes have labels, which they keep from stage to
stage, so a part of the result determines the part of each operand that it needs:

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

Region: TypeAlias = dict[int, slice]  # of the axes that are cut, by their labels: which part of each
Labels: TypeAlias = tuple[int, ...]

THREAD_BYTES = 1 << 20  # of a thread's own buffers, at most
PARTS_AT_ONCE = 8  # arrays of results of parts
WIDEST = 16  # bytes of an item in more precision

block_bytes = PASSES_BLOCK_BYTES  # or what a test has set


def set_limits(block: int = PASSES_BLOCK_BYTES) -> None:
    """Set how many bytes of a stage a block has: for tests of small arrays."""
    global block_bytes
    if block < 1:
        raise ValueError(f"`block` expected bytes, at least 1, got {block}")
    block_bytes = block


class Stage:
    """Some steps of a chain, and the reduction that follows them."""

    first: int  # number of the first step among those of the chain
    steps: list[Any]  # ufuncs, or tuples of one and its operands, which broadcast by NumPy's rule
    source: np.dtype[Any]  # of what the first step takes
    shape: Shape  # of what the last step gives
    dtype: np.dtype[Any]  # of that
    labels: Labels  # of its axes
    item_bytes: int  # of the widest item that is made on the way; 0 if the stage makes nothing
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
        """Return the labels of the axes that it reduces."""
        return self._labels(True)

    def _labels(self, are_reduced: bool) -> Labels:
        axes = self.fold.axes if self.fold is not None else ()
        return tuple(label for at, label in enumerate(self.labels) if (at in axes) == are_reduced)

    def lengths(self, region: Region) -> Shape:
        """Return the shape that the stage has in a region."""
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


# What comes of the steps.


def plan_stages(
    array: NDArray[Any], own: np.dtype[Any], steps: Sequence[Any], plain_step: Callable[..., Any]
) -> list[Stage]:
    """Check the steps of a chain on an array that is converted to a dtype; return its stages.

    `plain_step` checks and aligns element-wise steps. The last stage has no reduction, and maybe no steps.
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
    """Add an element-wise step, and the shape and dtype that it gives; axes that an operand adds are fresh ones."""
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
    """Yield the blocks of a region of a chain's result, as regions; of the stages that are `fused`, nothing is kept."""
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
    """Yield the parts of a region that the reduction of stage number `k` makes one of, in the order of their items."""
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
    """Shorten the part of an axis until each stage that has the axis fits a block, but not rows that are short.

    `rows` is the number of rows that may make a block; 0 allows rows of any length.
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
    """Yield the regions of which axes have such parts, evenly cut, in the order of items; none for axes left whole."""
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
    """Return how much memory a chain takes at most."""
    last = stages[-1]
    region = next(cut_result(stages, {}, ()))
    blocks = THREAD_BYTES * get_num_threads()
    for k, stage in enumerate(stages[:-1]):
        sizes = [_size(stage.lengths(each)) for each in cut_reduced(stages, k, region)]
        # What steps give, and if they are done one by one, what they take and give.
        blocks += 3 * max(sizes) * stage.item_bytes
        # What a stage gives that one loop does, and a copy of it; what reductions give of a part, and of all so far.
        blocks += 2 * block_bytes
        arrays = PARTS_AT_ONCE if len(sizes) > 1 else 1
        if stage.fold is not None and stage.fold.is_exact:
            arrays *= 2  # expansions have three parts
        blocks += arrays * _size(stages[k + 1].lengths(region)) * WIDEST
    return ChainMemory(_size(last.shape) * last.dtype.itemsize, blocks)


def _size(shape: Shape) -> int:
    """Return how many items an array of a shape has."""
    return prod(shape)
