"""bcast for dask arrays: the same functions, rules and arguments, for arrays larger than memory or than one machine.

Functions return Dask arrays immediately, with known shape, dtype and chunks, and compute nothing. They have the
arguments, results and errors of the functions of the same name in ``bcast``; `broadcast` describes `chunks` and
`materialise`. One task makes each chunk of a copy from slices of the data. Sums have a task for each chunk of `grad`,
and more tasks that add partial sums.

This module needs the extra ``dask``. It builds graphs from Dask's own `blockwise`, `reduction`, `rechunk` and
`concatenate`, so it also works with Dask's option ``array.query-planning``. Under that option, Dask cannot flatten
arrays, so `meshgrid` needs coordinates with one axis. There is no `out`: use `dask.array.store` or `to_zarr`.

In a worker, each task uses one thread, and bcast keeps at most a twentieth of the worker's memory for the next results;
BCAST_NUM_THREADS and BCAST_IDLE_BYTES override this.
"""

import builtins
from typing import Any

import numpy as np

from bcast._api.adjoints import lengths_left, wanted_dtype
from bcast._api.adjoints import unbroadcast as unbroadcast_in_memory
from bcast._api.chains.folds import is_fold
from bcast._api.chains.stages import Stage, parts_of, plan_stages
from bcast._api.copies import align_like, counts_along, order, tuple_of_one
from bcast._api.elementwise import (
    axis_argument,
    check_function,
    is_clip,
    is_round,
    read_chain,
    rule_argument,
    step_shapes,
    with_ufuncs,
)
from bcast._api.elementwise import chain as chain_in_memory
from bcast._api.elementwise import where as where_in_memory
from bcast._rules.alignment import (
    GRAD,
    GRAD_OF_SCALAR,
    Alignment,
    align,
    align_shapes,
    merge,
    right_aligned,
)
from bcast._rules.arguments import axes_argument, counts_argument, mode_of, shape_argument, show
from bcast._rules.types import ChainCasting, DType, SizesLike
from bcast.typing import AxesLike, Casting, CountsLike, ElementwiseMode, Indexing, Mode, ShapeLike

try:
    from bcast._dask.arrays import AnyArray, Array, SplitEvery, as_dask, converted_dtype, in_memory
    from bcast._dask.chains import Link, linked
    from bcast._dask.chunks import given_chunks
    from bcast._dask.copies import broadcast_along, chosen, repeated, tiled, without_empty
    from bcast._dask.reductions import all, any, argmax, argmin, max, min, minmax, nanmax, nanmin, prod
    from bcast._dask.statistics import mean, mean_std, nanmean, nanstd, nansum, nanvar, std, sum, var
    from bcast._dask.sums import segments_summed, segments_summed_exactly, summed, summed_exactly
    from bcast._dask.vectors import cross, matvec, norm, stack, vecdot
except ModuleNotFoundError as error:
    if error.name != "dask":
        raise
    raise ImportError('bcast.dask needs Dask: pip install "bcast[dask]"', name="dask") from error

__all__ = ["broadcast", "broadcast_like", "broadcast_to", "meshgrid", "repeat", "tile"]
__all__ += ["chain", "elementwise", "mean", "std", "sum", "unbroadcast", "unrepeat", "var", "where"]
__all__ += ["cross", "matvec", "norm", "stack", "vecdot"]
__all__ += ["all", "any", "argmax", "argmin", "max", "mean_std", "min", "minmax", "prod"]
__all__ += ["nanmax", "nanmean", "nanmin", "nanstd", "nansum", "nanvar"]


def broadcast(
    data: AnyArray,
    target_shape: ShapeLike,
    axes_mapping: ShapeLike | None = None,
    *,
    mode: Mode | None = None,
    axis: int = -1,
    broadcast_axes: AxesLike | None = None,
    dtype: DType = None,
    casting: Casting = "same_kind",
    chunks: Any = None,
    materialise: bool = False,
) -> Array:
    """Broadcast `data` to a dask array of `target_shape`, like `bcast.broadcast`.

    Parameters
    ----------
    data : dask array or array_like
        The array to replicate. Its chunks must be NumPy arrays without masks, of known lengths.
    chunks : int, tuple, dict or str, optional
        The chunks of the result, as in `dask.array.broadcast_to`. They may differ from `data`'s only along axes
        that are new or stretched. By default, these axes are cut so that no chunk exceeds Dask's option
        ``array.chunk-size``.
    materialise : bool, optional
        Whether each block is a contiguous, writeable array, as from `bcast.broadcast`. By default, blocks are
        read-only views with strides of 0; workers send and spill only the small array behind them.

    Examples
    --------
    >>> import dask.array as da
    >>> import bcast.dask
    >>> bias = da.arange(64, chunks=32, dtype="float32")
    >>> batch = bcast.dask.broadcast(bias, (1000, 64, 224, 224), axes_mapping=[1], mode="explicit")
    >>> batch.chunksize
    (20, 32, 224, 224)
    >>> bool((batch[-1, :, 0, 0] == bias).all())
    True
    """
    array = as_dask("data", data)
    target = in_memory("target_shape", target_shape)
    alignment = align(array.shape, target, axes_mapping, mode, axis, broadcast_axes)
    return broadcast_along(array, alignment, converted_dtype(array, dtype, casting), chunks, None, materialise)


def broadcast_to(
    array: AnyArray,
    shape: SizesLike,
    chunks: Any = None,
    *,
    dtype: DType = None,
    casting: Casting = "same_kind",
    materialise: bool = False,
) -> Array:
    """Broadcast `array` to a dask array of `shape`: `dask.array.broadcast_to`, with new axes cut into chunks.

    If there is nothing to do, the result is `array` itself.

    Examples
    --------
    >>> import dask.array as da
    >>> import bcast.dask
    >>> bcast.dask.broadcast_to(da.arange(3), (4, 3), chunks=(2, 3)).numblocks
    (2, 1)
    """
    data = as_dask("array", array)
    alignment = right_aligned(data.shape, shape_argument("shape", tuple_of_one(in_memory("shape", shape))), "shape")
    return broadcast_along(data, alignment, converted_dtype(data, dtype, casting), chunks, None, materialise)


def broadcast_like(
    data: AnyArray,
    like: AnyArray,
    axes_mapping: ShapeLike | None = None,
    *,
    mode: Mode | None = None,
    axis: int = -1,
    broadcast_axes: AxesLike | None = None,
    dtype: DType = None,
    casting: Casting = "same_kind",
    chunks: Any = None,
    materialise: bool = False,
) -> Array:
    """Broadcast `data` to a dask array of `like`'s shape, like `bcast.broadcast_like`.

    The values of `like` are not computed. Axes that `data` lacks get its chunks.

    Examples
    --------
    >>> import dask.array as da
    >>> import bcast.dask
    >>> images = da.zeros((90, 8, 8), chunks=(30, 8, 8))
    >>> bcast.dask.broadcast_like(da.ones((8, 8)), images).chunks == images.chunks
    True
    """
    array, target = as_dask("data", data), as_dask("like", like)
    alignment = align_like(array.shape, target.shape, like, axes_mapping, mode, axis, broadcast_axes)
    own = target.chunks if alignment.shape == target.shape else None
    return broadcast_along(array, alignment, converted_dtype(array, dtype, casting), chunks, own, materialise)


def tile(
    A: AnyArray, reps: SizesLike, *, dtype: DType = None, casting: Casting = "same_kind", chunks: Any = None
) -> Array:
    """Repeat the whole array `A`, `reps` times along each axis, like `bcast.tile`.

    `chunks` may have any value. By default, a chunk has as many repetitions as fit. If not even one fits, `A`'s own
    chunks are repeated. Blocks are contiguous and writeable.

    Examples
    --------
    >>> import dask.array as da
    >>> import bcast.dask
    >>> bcast.dask.tile(da.arange(3, chunks=2), 2).compute()
    array([0, 1, 2, 0, 1, 2])
    """
    array = as_dask("A", A)
    counts = counts_argument("reps", in_memory("reps", reps), False)
    counts = (1,) * (array.ndim - len(counts)) + counts
    shape = (1,) * (len(counts) - array.ndim) + array.shape
    shape_argument("reps", tuple(length * count for length, count in zip(shape, counts, strict=True)))
    return tiled(array, counts, converted_dtype(array, dtype, casting), chunks)


def repeat(
    a: AnyArray,
    repeats: CountsLike,
    axis: SizesLike | None = None,
    *,
    dtype: DType = None,
    casting: Casting = "same_kind",
    chunks: Any = None,
) -> Array:
    """Repeat each item of `a` along an axis, or along several at once, like `bcast.repeat`.

    `repeats` must not be a Dask array, because its values determine the shape. `axis` is optional only if `a` has one
    axis; otherwise `NotImplementedError` is raised. `chunks` may have any value. By default, each chunk of `a` makes
    one chunk, or several if one would be too large. Blocks are contiguous and writeable.

    Examples
    --------
    >>> import dask.array as da
    >>> import bcast.dask
    >>> bcast.dask.repeat(da.arange(4, chunks=2), [3, 0, 1, 2]).compute()
    array([0, 0, 0, 2, 3, 3])
    """
    array = as_dask("a", a)
    if not array.ndim and axis != ():
        array = array[None]  # as in NumPy, a scalar has an axis here
    if axis is None and array.ndim != 1:
        raise NotImplementedError(f"`axis` expected an axis of `a`, which has shape {array.shape}, got None")
    counts = _plain(counts_along(in_memory("repeats", repeats), axes_argument(axis), array.shape, True))
    totals = [n * c if isinstance(c, int) else int(c.sum()) for n, c in zip(array.shape, counts, strict=True)]
    shape_argument("repeats", tuple(totals))
    return repeated(array, counts, converted_dtype(array, dtype, casting), chunks)


def meshgrid(
    *xi: AnyArray, sparse: bool = False, indexing: Indexing = "xy", chunks: Any = None, materialise: bool = False
) -> tuple[Array, ...]:
    """Make a grid from the coordinates of its axes, like `bcast.meshgrid`.

    By default, the grid has the chunks of the coordinates.

    Examples
    --------
    >>> import dask.array as da
    >>> import bcast.dask
    >>> x, y = bcast.dask.meshgrid(da.arange(3), da.arange(2))
    >>> x.compute()
    array([[0, 1, 2],
           [0, 1, 2]])
    """
    swapped = mode_of(indexing, ("xy", "ij"), "indexing") == "xy"
    lines = [_line(as_dask("xi", each)) for each in xi]
    rank = len(lines)
    places = [1, 0, *range(2, rank)] if swapped and rank > 1 else list(range(rank))  # the axis of each line
    along = [lines[axis] for axis in places]  # the line of each axis: a swap is its own inverse
    shape = shape_argument("xi", tuple(line.shape[0] for line in along))
    natural = [line.chunks[0] for line in along]
    cut = natural if chunks is None else given_chunks(chunks, shape, _largest_dtype(lines), natural)

    grid = []
    for line, place in zip(lines, places, strict=True):
        line = line.rechunk({0: cut[place]})[(None,) * place + (slice(None),) + (None,) * (rank - place - 1)]
        if not sparse:
            line = broadcast_along(line, Alignment(shape, line.shape), line.dtype, None, cut, materialise)
        grid.append(line)
    return tuple(grid)


def _line(array: Array) -> Array:
    """Return coordinates as an array of one axis."""
    if array.ndim == 0:
        return array[None]
    return array if array.ndim == 1 else without_empty(array).reshape(-1)


def _largest_dtype(arrays: list[Array]) -> np.dtype[Any]:
    """Return the dtype with the largest items: the size of a chunk in bytes applies to it."""
    return builtins.max((array.dtype for array in arrays), key=lambda dtype: dtype.itemsize, default=np.dtype(float))


def unbroadcast(
    grad: AnyArray,
    data_shape: ShapeLike,
    axes_mapping: ShapeLike | None = None,
    *,
    mode: Mode | None = None,
    axis: int = -1,
    broadcast_axes: AxesLike | None = None,
    dtype: DType = None,
    exact: bool = False,
    split_every: SplitEvery = None,
) -> Array:
    """Sum `grad` back to `data_shape`, like `bcast.unbroadcast`: the adjoint of `broadcast`.

    Parameters
    ----------
    exact : bool, optional
        Whether to round exact sums once, as in `bcast.dask.sum`.
    split_every : int or dict, optional
        How many partial sums one task adds, as in `dask.array.sum`.

    Notes
    -----
    Partial sums are float64 for narrower floating-point numbers, and carry their rounding errors to the last task,
    which rounds once: sums of float16, bfloat16 and float32 are the same for nearly any chunking. Sums of float64
    differ by the error of `bcast.unbroadcast` in each chunk. If the sum of one chunk overflows, the result is infinite
    or NaN, even if the sum of all chunks is finite.

    Examples
    --------
    >>> import dask.array as da
    >>> import bcast.dask
    >>> grad = da.ones((1000, 64, 28, 28), chunks=(100, 64, 28, 28), dtype="float32")
    >>> bcast.dask.unbroadcast(grad, (64,), axes_mapping=[1])[:2].compute()
    array([784000., 784000.], dtype=float32)
    """
    array = as_dask("grad", grad)
    shape = shape_argument("data_shape", in_memory("data_shape", data_shape))
    wanted = wanted_dtype(np.empty(0, array.dtype), dtype) or array.dtype
    if exact:
        unbroadcast_in_memory(np.ones(2, array.dtype), (), dtype=dtype, exact=True)  # refuses what has no exact sums
    role = GRAD if shape else GRAD_OF_SCALAR
    alignment = align_shapes(shape, array.shape, axes_mapping, mode, axis, broadcast_axes, role)
    sums = (summed_exactly if exact else summed)(array, alignment, wanted, split_every)
    return _reshaped(sums, shape)


def unrepeat(
    grad: AnyArray, repeats: CountsLike, axis: SizesLike | None = None, *, dtype: DType = None, exact: bool = False
) -> Array:
    """Sum `grad` over the repetitions of each item, like `bcast.unrepeat`: the adjoint of `repeat`.

    `repeats` must not be a Dask array, because its values determine the shape. If several chunks have repetitions of an
    item, they are summed as in `unbroadcast`, without pairs. Each chunk of the result has the items whose repetitions
    end in one chunk of `grad`. With `exact`, which takes counts along one axis only, `grad` is first rechunked, so that
    each item has its repetitions in one chunk: sums are rounded once, as in memory.

    Examples
    --------
    >>> import dask.array as da
    >>> import bcast.dask
    >>> bcast.dask.unrepeat(da.ones(6, chunks=4), [3, 0, 1, 2]).compute()
    array([3., 0., 1., 2.])
    """
    array = as_dask("grad", grad)
    wanted = wanted_dtype(np.empty(0, array.dtype), dtype) or array.dtype
    counts = counts_along(in_memory("repeats", repeats), axes_argument(axis), array.shape, False)
    lengths_left(counts, array.shape)
    if exact and len(order(counts)) > 1:
        got = f"{len(order(counts))} passes of sums"
        raise ValueError(f"`repeats` expected counts along one axis if `exact`, got {got}")
    total = segments_summed_exactly if exact else segments_summed
    return total(array, _plain(counts), wanted)


def elementwise(
    ufunc: Any, a: AnyArray, b: AnyArray, /, *, mode: ElementwiseMode | None = None, axis: int = -1
) -> Array:
    """Apply a ufunc to `a` and `b`, broadcast under the rule of `mode`, like `bcast.elementwise`.

    The result is Dask's own, for operands reshaped by the rule.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> import bcast.dask
    >>> images, bias = da.ones((90, 16, 8, 8), chunks=30), da.arange(16)
    >>> bcast.dask.elementwise(np.add, images, bias, axis=1)[0, :3, 0, 0].compute()
    array([1., 2., 3.])
    """
    (ufunc,) = with_ufuncs((ufunc,))
    second = _operand("b", b)
    first = _operand("a", a) if hasattr(second, "chunks") else as_dask("a", a, computes=True)
    if not isinstance(ufunc, np.ufunc):
        raise TypeError(f"`ufunc` expected a ufunc of two operands, got {show(ufunc)}")
    check_function(ufunc)
    rule = rule_argument(mode, axis)
    axis = axis_argument(axis, rule)
    aligned, _ = step_shapes("b", "a", _shape_of(second), _shape_of(first), rule, axis)
    return ufunc(first, _reshaped(second, aligned))


def chain(
    data: AnyArray,
    *steps: Any,
    dtype: DType = None,
    casting: ChainCasting = "same_kind",
    mode: ElementwiseMode | None = None,
    axis: int = -1,
) -> Array:
    """Convert `data`, then apply one function after another, like `bcast.chain`: one task for each chunk.

    Steps may reduce. If the axis is in one chunk, the task of the chunk reduces it and continues. If chunks divide
    the axis, tasks reduce parts, and others combine them. No task makes an array of the broadcast's size. Chunks of
    reduced results are as large as Dask's `array.chunk-size` allows. Sums and means are as accurate as in `sum`. Other
    results equal the results of `bcast.chain` bit for bit, except products of floats. Objects and strings can only be
    reduced along axes that are in one chunk.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> import bcast.dask
    >>> pictures = da.ones((90, 64, 64, 3), chunks=(30, -1, -1, -1), dtype="uint8")
    >>> steps = (np.subtract, np.float32([1, 2, 3])), (np.multiply, 0.5)
    >>> batch = bcast.dask.chain(pictures.transpose(0, 3, 1, 2), *steps, dtype="float32", axis=1)
    >>> batch[89, :, 0, 0].compute()
    array([ 0. , -0.5, -1. ], dtype=float32)

    Find the nearest of 600 centres without an array of all distances:

    >>> points, centres = da.ones((9000, 3), chunks=(3000, 3)), da.zeros((600, 3), chunks=(200, 3))
    >>> steps = (np.subtract, centres), np.square, (np.sum, -1), (np.argmin, -1)
    >>> bcast.dask.chain(points[:, np.newaxis], *steps)[:3].compute()
    array([0, 0, 0])
    """
    array = as_dask("data", data, computes=True)
    if casting == "saturate":
        own = chain_in_memory(np.empty(0, array.dtype), dtype=dtype, casting=casting).dtype
    else:
        own = converted_dtype(array, dtype, casting)
    call = read_chain((), None, casting, mode, axis)
    read = [_read_step(f"steps[{i}]", step) for i, step in enumerate(with_ufuncs(steps))]
    # A chain in memory of operands with strides of 0 raises the errors, and determines shapes and dtypes.
    stages = plan_stages(_example_of(array), own, [_example_of_step(step) for step in read], call.plain_step)
    allowed: ChainCasting = "saturate" if casting == "saturate" else "unsafe"  # already checked
    return linked(array, own, stages, _links(read, stages), allowed)


def _read_step(name: str, step: Any) -> Any:
    """Return a step with dask arrays as operands. Return a wrong step unchanged: the chain in memory refuses it."""
    function, *given = step if isinstance(step, (tuple, list)) and len(step) else (step,)
    if is_fold(step) or not given or (len(given) > 1 and not is_clip(function)):
        return step
    return (function, *[value if is_round(function) or value is None else _operand(name, value) for value in given])


def _example_of_step(step: Any) -> Any:
    """Return a step with arrays in memory, of the shapes and dtypes of its operands."""
    return tuple(map(_example_of, step)) if isinstance(step, tuple) else step


def _example_of(operand: Any) -> Any:
    """Return a view of one item that has the shape and dtype of a dask array; return other operands unchanged."""
    if not hasattr(operand, "chunks"):
        return operand
    return np.broadcast_to(np.zeros((), operand.dtype), operand.shape)


def _links(steps: list[Any], stages: list[Stage]) -> list[list[Link]]:
    """Return the element-wise steps of each stage, with dask arrays that broadcast by NumPy's rule."""
    given = iter([parts_of(step) for step in steps if not is_fold(step)])
    links: list[list[Link]] = []
    for stage in stages:
        own = []
        for step in stage.steps:
            function, operands = next(given)
            pairs = zip(operands, parts_of(step)[1], strict=True)
            own.append(
                Link(
                    function,
                    [_reshaped(each, example.shape) if hasattr(each, "chunks") else each for each, example in pairs],
                )
            )
        links.append(own)
    return links


def where(condition: AnyArray, x: AnyArray, y: AnyArray, /) -> Array:
    """Choose items of `x` where a condition is true, of `y` elsewhere, like `bcast.where`: one task for each chunk.

    Examples
    --------
    >>> import dask.array as da
    >>> import bcast.dask
    >>> land = da.arange(4, chunks=2) > 1
    >>> bcast.dask.where(land, da.ones((2, 4), chunks=2), 0).compute()
    array([[0., 0., 1., 1.],
           [0., 0., 1., 1.]])
    """
    named = {"condition": condition, "x": x, "y": y}
    operands = [_operand(name, value) for name, value in named.items()]
    if not builtins.any(hasattr(each, "chunks") for each in operands):
        operands[0] = as_dask("condition", condition)
    shape = merge([_shape_of(each) for each in operands], "condition, x, y")
    empty = [np.empty(0, each.dtype) if hasattr(each, "chunks") else each for each in operands]
    return chosen(operands, len(shape), where_in_memory(*empty).dtype)


def _plain(counts: list[Any]) -> list[Any]:
    """Return the counts along each axis as integers, or as private copies of arrays."""
    return [count if isinstance(count, int) else count.to_array() for count in counts]


def _operand(name: str, value: Any) -> Any:
    """Convert an operand to a dask array without empty chunks, unless it is a Python scalar."""
    return value if type(value) in (bool, int, float, complex) else without_empty(as_dask(name, value, computes=True))


def _shape_of(operand: Any) -> tuple[int, ...]:
    """Return the shape of an operand; a Python scalar has no axes."""
    return getattr(operand, "shape", ())


def _reshaped(array: Any, shape: tuple[int, ...]) -> Any:
    """Drop or add axes of length 1, unless this is a Python scalar."""
    if getattr(array, "shape", shape) == shape:
        return array
    return broadcast_along(array, Alignment(shape, shape), array.dtype, None, None, False)
