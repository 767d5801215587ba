"""Graphs of chains with reductions: a task runs as many steps as its chunks of the operands allow.

    chain(points[:, None], (np.subtract, centres), np.square, (np.sum, -1), (np.argmin, -1))

If each point has its coordinates in one chunk, a task computes the sums for its chunks of points and centres, and then
finds the nearest of these centres. No chunk holds the squared distances. If chunks divide the axis of a reduction, as
they may divide the axis of the centres here, tasks reduce their parts, and other tasks combine the results.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import dask.array as da
import numpy as np
from dask.array.core import common_blockdim
from numpy.typing import NDArray

from bcast._api.adjoints import wide_dtype
from bcast._api.chains.folds import POSITIONS, REDUCTIONS, Fold
from bcast._api.chains.stages import Labels, Stage
from bcast._api.elementwise import chain
from bcast._dask.arrays import Array
from bcast._dask.chunks import Chunks, cuts, default_chunks
from bcast._dask.copies import Values, without_empty
from bcast._dask.reductions import Call, best_of, flat_index, record_of
from bcast._dask.statistics import rounded
from bcast._dask.sums import summed, summed_exactly
from bcast._dask.tasks import block_of
from bcast._rules.alignment import aligned
from bcast._rules.arguments import Shape
from bcast._rules.types import ChainCasting
from bcast._runtime.arrays import reduced_shape

OF_POSITIONS = {"argmax": "max", "argmin": "min"}


class Link(NamedTuple):
    """An element-wise step: a function, and its operands after the first one, which may be dask arrays."""

    function: Any
    operands: list[Any]


def linked(
    array: Array, own: np.dtype[Any], stages: Sequence[Stage], links: Sequence[Sequence[Link]], casting: ChainCasting
) -> Array:
    """Convert the data to the dtype `own`, then run a chain; `links` has the element-wise steps of each stage."""
    run = _Tasks(without_empty(array), _labels(stages[0], array.ndim), own, casting)
    for stage, steps in zip(stages, links, strict=True):
        for link in steps:
            run.add(link, stage)
        fold = stage.fold
        if fold is None:
            break
        _expect_items(fold, stage)
        if not run.are_cut(stage.reduced()):
            run.functions.append((_spelt(fold), 0))
            continue
        if not fold.takes_parts(stage.dtype):
            place = f"steps[{stage.first + len(stage.steps)}]"
            got = f"several chunks of {stage.dtype}; rechunk it"
            raise ValueError(f"`{place}` expected an axis in one chunk, got {got}")
        whole = _whole(run, stage, fold)
        run = _Tasks(whole, _labels_of_result(stages, stage), None, "unsafe")
    last = stages[-1]
    return run.array(last.labels, last.dtype, len(stages) > 1)


def _labels(stage: Stage, rank: int) -> Labels:
    """Return the labels of the axes of an operand of a stage."""
    return stage.labels[len(stage.labels) - rank :]


def _labels_of_result(stages: Sequence[Stage], stage: Stage) -> Labels:
    """Return the labels of the axes of a stage's reduced result."""
    following = stages[stages.index(stage) + 1]
    assert stage.fold is not None
    return _labels(following, len(stage.fold.shape))


def _expect_items(fold: Fold, stage: Stage) -> None:
    """Raise the reduction's own error if it has no result for an empty axis."""
    if 0 in stage.shape:
        fold.of(np.zeros(tuple(int(length > 0) for length in stage.shape), stage.dtype))


def _spelt(fold: Fold, **options: Any) -> Any:
    """Return a reduction as a step, perhaps with other options."""
    own = {"axis": fold.axis, "keepdims": fold.keeps} | fold.options()
    return partial(fold.given, **(own | options))


class _Tasks:
    """The steps that one task runs for each chunk of the result, and their operands."""

    def __init__(self, data: Array, labels: Labels, own: np.dtype[Any] | None, casting: ChainCasting) -> None:
        self.operands: list[tuple[Any, Labels | None]] = [(data, labels)]  # scalars have no labels: None
        self.functions: list[tuple[Any, int]] = []  # each with its number of operands after the first one
        self.own = own
        self.casting = casting

    def add(self, link: Link, stage: Stage) -> None:
        """Add an element-wise step of a stage."""
        self.functions.append((link.function, len(link.operands)))
        for operand in link.operands:
            is_array = hasattr(operand, "chunks")
            self.operands.append((operand, _labels(stage, operand.ndim) if is_array else None))

    def are_cut(self, labels: Labels) -> bool:
        """Return whether an operand has several chunks along one of the axes."""
        for operand, own in self.operands:
            if own is not None and any(
                number > 1 for label, number in zip(own, operand.numblocks, strict=True) if label in labels
            ):
                return True
        return False

    def array(self, labels: Labels, dtype: np.dtype[Any], fits: bool) -> Array:
        """Return the result of the steps; its axes have these labels. If it `fits`, no chunk exceeds Dask's setting."""
        if not self.functions and self.own is None:
            return self.operands[0][0]
        operands, chunks = self._aligned(labels, (), dtype if fits else None)
        return self._tasks(steps_block, operands, labels, chunks, dtype)

    def parts(self, stage: Stage, dtype: np.dtype[Any], step: Any) -> Array:
        """Run the steps and a last `step` on each chunk of a stage; reduced axes keep length 1."""
        operands, chunks = self._aligned(stage.labels, stage.reduced(), dtype)
        self.functions.append((step, 0))
        return self._tasks(steps_block, operands, stage.labels, chunks, dtype)

    def records(self, stage: Stage, fold: Fold, dtype: np.dtype[Any]) -> Array:
        """Return, for each chunk of a stage, records of the extremes and their positions in the whole array."""
        operands, chunks = self._aligned(stage.labels, stage.reduced(), dtype)
        spans = [cuts(self._chunks_along(label, operands)) for label in stage.labels]
        extreme = partial(REDUCTIONS[OF_POSITIONS[fold.name]], axis=fold.axes, keepdims=True)
        lengths = tuple(stage.shape[at] for at in fold.axes)
        options = {"find": fold.given, "extreme": extreme, "axes": fold.axes, "lengths": lengths}
        return self._tasks(
            places_block, [*operands, (Values(spans), stage.labels)], stage.labels, chunks, dtype, **options
        )

    def _aligned(
        self, labels: Labels, reduced: Labels, dtype: np.dtype[Any] | None
    ) -> tuple[list[tuple[Any, Labels | None]], Chunks]:
        """Return the operands with the same chunks along each axis, and the chunks of a result with some labels.

        If the result's `dtype` is given, its chunks are cut until none exceeds Dask's setting.
        """
        common = self._common_chunks()
        operands = [(_rechunked(operand, own, common), own) for operand, own in self.operands]
        natural = [self._chunks_along(label, operands) for label in labels]
        chunks = tuple((1,) * len(own) if label in reduced else own for label, own in zip(labels, natural, strict=True))
        if dtype is None:
            return operands, chunks

        grains = [int(label not in reduced) for label in labels]
        chunks = default_chunks(chunks, grains, dtype.itemsize)
        wanted = {label: own for label, own in zip(labels, chunks, strict=True) if label not in reduced}
        return [(_rechunked(operand, own, wanted), own) for operand, own in operands], chunks

    def _common_chunks(self) -> dict[int, tuple[int, ...]]:
        """Return chunks that fit all operands, along each axis on which some operand has several items."""
        found: dict[int, set[tuple[int, ...]]] = {}
        for operand, own in self.operands:
            for label, chunks in zip(own or (), operand.chunks if own else (), strict=True):
                if chunks != (1,):
                    found.setdefault(label, set()).add(chunks)
        return {label: common_blockdim(chunks) for label, chunks in found.items()}

    def _chunks_along(self, label: int, operands: Sequence[tuple[Any, Labels | None]]) -> tuple[int, ...]:
        """Return the chunks that operands share along an axis; operands of length 1 are stretched to them."""
        found: tuple[int, ...] = (1,)
        for operand, own in operands:
            if own is not None and label in own:
                chunks = operand.chunks[own.index(label)]
                found = found if chunks == (1,) else chunks
        return found

    def _tasks(
        self,
        function: Any,
        operands: Sequence[tuple[Any, Labels | None]],
        labels: Labels,
        chunks: Chunks,
        dtype: np.dtype[Any],
        **options: Any,
    ) -> Array:
        """Call a function for each chunk of a result whose axes have labels, on the blocks of the operands there."""
        known = {label for _, own in operands if own is not None for label in own}
        return da.blockwise(
            function,
            labels,
            *[value for pair in operands for value in pair],
            new_axes={label: own for label, own in zip(labels, chunks, strict=True) if label not in known},
            adjust_chunks=dict(zip(labels, chunks, strict=True)),
            dtype=dtype,
            meta=np.zeros((0,) * len(labels), dtype),
            align_arrays=False,
            concatenate=False,
            token="bcast-chain",
            functions=tuple(self.functions),
            own=self.own,
            casting=self.casting,
            to=dtype,
            **options,
        )


def _rechunked(operand: Any, labels: Labels | None, wanted: dict[int, tuple[int, ...]]) -> Any:
    """Return an operand with the wanted chunks along its axes that are not stretched."""
    if labels is None:
        return operand
    pairs = enumerate(zip(labels, operand.shape, strict=True))
    return operand.rechunk({at: wanted[label] for at, (label, length) in pairs if label in wanted and length != 1})


def _whole(run: _Tasks, stage: Stage, fold: Fold) -> Array:
    """Reduce along axes that chunks divide: tasks reduce parts, and other tasks combine the results."""
    if fold.name in POSITIONS:
        record = record_of(("item", "place"), (stage.dtype, fold.result))
        records = run.records(stage, fold, record)
        whole = best_of(records, fold.axes, REDUCTIONS[fold.name])["place"]
    elif fold.joined is not None:
        whole = _joined(run, stage, fold)
    elif fold.is_exact:
        whole = _summed_exactly(run, stage, fold)
    else:
        whole = _summed(run, stage, fold)
    return whole if fold.keeps else whole.squeeze(fold.axes)


def _joined(run: _Tasks, stage: Stage, fold: Fold) -> Array:
    """Combine the results of parts in the same way as items."""
    assert fold.joined is not None
    is_product = fold.name == "prod"
    wide = wide_dtype(fold.result) if is_product else fold.result
    options = {"dtype": wide} if is_product else {}
    parts = run.parts(stage, wide, _spelt(fold, axis=fold.axes, keepdims=True, **options))
    function = REDUCTIONS.get(fold.name, fold.joined.reduce)
    call = Call(function, parts, fold.axes, None, fold.result if is_product else None)
    return call.combined(True, wide if is_product else None)


def _summed(run: _Tasks, stage: Stage, fold: Fold) -> Array:
    """Add sums of parts in higher precision than the result's."""
    wide = wide_dtype(fold.result)
    parts = run.parts(stage, wide, partial(REDUCTIONS["sum"], axis=fold.axes, keepdims=True, dtype=wide))
    alignment = aligned(parts.shape, reduced_shape(parts.shape, fold.axes, True))
    if fold.name == "sum":
        return summed(parts, alignment, fold.result, None)
    return rounded(summed(parts, alignment, wide, None) / fold.count, fold.result)


def _summed_exactly(run: _Tasks, stage: Stage, fold: Fold) -> Array:
    """Sum the results of the steps exactly, and round once."""
    terms = run.array(stage.labels, stage.dtype, True)
    alignment = aligned(terms.shape, reduced_shape(terms.shape, fold.axes, True))
    return summed_exactly(terms, alignment, fold.result, None, fold.divisor)


def _run(
    blocks: Sequence[Any], functions: Sequence[tuple[Any, int]], own: Any, casting: ChainCasting, *last: Any
) -> Any:
    """Run a chain on blocks of the data and of the operands, with a last step if one is given."""
    data, *others = blocks
    rest = iter([block_of("steps", each) if isinstance(each, list) else each for each in others])
    steps = [(function, *[next(rest) for _ in range(count)]) if count else function for function, count in functions]
    return chain(block_of("data", data), *steps, *last, dtype=own, casting=casting)


def steps_block(
    *blocks: Any,
    functions: Sequence[tuple[Any, int]],
    own: np.dtype[Any] | None,
    casting: ChainCasting,
    to: np.dtype[Any],
) -> NDArray[Any]:
    """Run steps, reductions among them, on blocks of the data and of the operands."""
    found = _run(blocks, functions, own, casting)
    return found if isinstance(found, np.ndarray) else np.array(found, to)  # a reduced object may be any scalar


def places_block(
    *blocks: Any,
    functions: Sequence[tuple[Any, int]],
    own: np.dtype[Any] | None,
    casting: ChainCasting,
    find: Any,
    extreme: Any,
    axes: Shape,
    lengths: Shape,
    to: np.dtype[Any],
) -> NDArray[Any]:
    """Run steps on blocks; find the extremes along one axis or all, and their positions in the whole array.

    The last block has the bounds of the chunk along each axis. The steps run twice, once for the extremes and once for
    the positions, because no array holds their results. Dask passes arguments that all chunks share one by one.
    """
    *operands, spans = blocks
    items = np.asarray(_run(operands, functions, own, casting, extreme))
    places: Any
    if len(axes) == 1:
        step = partial(find, axis=axes[0], keepdims=True)
        places = np.asarray(_run(operands, functions, own, casting, step)) + spans[axes[0]][0]
    else:
        at = int(_run(operands, functions, own, casting, (find, None)))
        index = np.unravel_index(at, [end - begin for begin, end in spans])
        places = flat_index([place + begin for place, (begin, _) in zip(index, spans, strict=True)], lengths)

    records = np.empty(items.shape, to)
    records["item"] = items
    records["place"] = places
    return records
