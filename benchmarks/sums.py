"""The cells of the sum core: adjoints, products, statistics, sums by counts.

Sums are no copies: results are not compared bit by bit but judged, by how many units in the last place (ulp) the worst
item is off. A competitor whose error exceeds that of rounding after each term is wrong.
"""

import math
from argparse import Namespace
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bcast._rules.arguments import Shape
from benchmarks.copies import COUNTED, STATES, Broadcast, itemsize, random_counts, replaced, size_name
from benchmarks.harness import Cell, Check, equals
from benchmarks.peers import LIMIT, Call, Names, Way, fastest_read

__all__ = ["FLOATS", "SUM_DTYPES", "adjoint_cells", "exact_cells", "product_cells", "statistic_cells", "unrepeat_cells"]


def reduced_axes(source: Shape, shape: Shape) -> tuple[int, ...]:
    """Return the axes along which `source` is broadcast to `shape`, which its adjoint sums."""
    return tuple(axis for axis, (kept, length) in enumerate(zip(source, shape, strict=True)) if kept != length)


# The adjoint of a broadcast: gradients of the output's shape are summed to the data's shape.

FLOATS = ("float16", "float32", "float64")  # which are summed in all patterns
SUM_DTYPES = (*FLOATS, "int32", "complex64")
SUM_SIZES = (1 << 10, 1 << 14, 1 << 18, 1 << 22, 1 << 26)  # bytes of what is summed
LARGE_RESULT = 1 << 20  # bytes of a result that it matters to have anew: it is timed warm, too
BLOCK = 65_537  # random numbers, which are repeated as often as it takes; a prime
HALF_BITS = 26  # below one half of a float64's digits; as many terms as 2 to this power are summed exactly


def adjoints(dtype: str) -> Iterator[Broadcast]:
    """Yield the broadcasts whose adjoint is timed.

    Patterns that scale come in sizes from 1 KB to 64 MB. Dtypes other than `FLOATS` have only these, in one size.
    """
    for nbytes in SUM_SIZES if dtype in FLOATS else SUM_SIZES[3:4]:
        for name, data, output in scaled_adjoints(nbytes // itemsize(dtype)):
            yield Broadcast(f"{name}, {size_name(nbytes)}", name, data, output)
    if dtype not in FLOATS:
        return
    yield Broadcast("8,8 -> 1,8", "tiny", (1, 8), (8, 8))
    yield Broadcast("8,8 -> 8,1", "tiny", (8, 1), (8, 8))
    yield Broadcast("4,4 -> 4", "tiny", (4,), (4, 4))
    yield Broadcast("NCHW -> 1,C,1,1", "channels", (1, 64, 1, 1), (32, 64, 56, 56))
    yield Broadcast("NCHW -> C, explicit", "channels", (64,), (8, 64, 56, 56), (1,))
    yield Broadcast("NHWC -> C", "channels", (64,), (32, 56, 56, 64))
    yield Broadcast("batch of 64 images", "batch of images", (1, 3, 224, 224), (64, 3, 224, 224))
    yield Broadcast("64^4 -> 64,1,64,1", "alternating axes", (64, 1, 64, 1), (64, 64, 64, 64))
    yield Broadcast("64^4 -> 1,64,1,64", "alternating axes", (1, 64, 1, 64), (64, 64, 64, 64))
    yield Broadcast("eighteen axes of 2", "alternating axes", (2, 1) * 9, (2, 2) * 9)
    yield Broadcast("square -> column", "square", (2048, 1), (2048, 2048))
    yield Broadcast("square -> row", "square", (1, 2048), (2048, 2048))


def scaled_adjoints(n: int) -> Iterator[tuple[str, Shape, Shape]]:
    """Yield name, data and output of each pattern that scales, for a number of items."""
    yield "N -> ()", (), (n,)
    yield "N,3 -> 3", (3,), (n // 3, 3)
    for m in (2, 3, 4, 8, 16, 32, 64):
        yield f"N,{m} -> N,1", (n // m, 1), (n // m, m)
    yield "N,64 -> 1,64", (1, 64), (n // 64, 64)
    yield "64,N -> 64,1", (64, 1), (64, n // 64)
    yield "64,N -> 1,N", (1, n // 64), (64, n // 64)


def terms(broadcast: Broadcast) -> int:
    """Count the terms of each sum."""
    return math.prod(broadcast.output) // math.prod(broadcast.data)


def gradient(broadcast: Broadcast, dtype: str) -> NDArray[Any]:
    """Make what is summed: integers of all sizes, or positive numbers below 1 whose sums are finite.

    Floats are multiples of 2 to the power of -24, of -53 if they are float64.
    """
    kind, rng = np.dtype(dtype), np.random.default_rng(1)
    if kind.kind == "i":
        block = rng.integers(np.iinfo(kind).min, np.iinfo(kind).max, BLOCK, kind, endpoint=True)
    elif kind == np.float16:
        too_long = (terms(broadcast) - 1).bit_length() - 15  # the largest float16 is almost 2 to the power of 16
        block = (rng.random(BLOCK, np.float32) * 2.0 ** -max(too_long, 0)).astype(kind)
    elif kind.kind == "c":
        block = rng.random(2 * BLOCK, np.float32).view(kind)
    else:
        block = rng.random(BLOCK, kind.type)
    return np.resize(block, broadcast.output)


def adjoint_names(broadcast: Broadcast, dtype: str, state: str, threads: int) -> Names:
    """Make the gradient, what calls say about its axes, and `out`, if the state is warm."""
    axes = reduced_axes(broadcast.source, broadcast.output)
    return {
        "grad": gradient(broadcast, dtype),
        "shape": broadcast.data,
        "axes": axes,
        "explicit_axes": broadcast.axes,
        "keepdims": len(broadcast.data) == len(broadcast.output),  # all that are summed stay, with length 1, or none
        "forced": dtype if dtype == "int32" else None,  # the others would give wider integers
        "kept": [axis for axis in range(len(broadcast.output)) if axis not in axes],
        "terms": terms(broadcast),
        "threads": threads,
        "out": np.empty(broadcast.data, dtype) if state == "warm" else None,
    }


def adjoint_ways(broadcast: Broadcast, dtype: str, state: str) -> dict[str, Way]:
    """Return the call of each competitor; jax's arrays are immutable, so that none is warm."""
    warm, explicit = state == "warm", broadcast.axes is not None
    into = ", out=out" if warm else ""
    by_rule = ", explicit_axes, mode='explicit'" if explicit else ""
    by_axes = f"torch.sum(grad, axes, keepdim=keepdims, dtype=grad.dtype{into})"
    ways: dict[str, Way] = {
        "bcast": f"bcast.unbroadcast(grad, shape{by_rule}{into})",
        "numpy": f"grad.sum(axis=axes, dtype=forced, keepdims=keepdims{into})",
        "torch": by_axes if warm or explicit or dtype == "int32" else "grad.sum_to_size(shape)",
        "einsum": "np.einsum(grad, list(range(grad.ndim)), kept).reshape(shape)",
        LIMIT: lambda grad, threads, **_: fastest_read(grad.nbytes, threads),
    }
    if warm:
        reshaped = "out.reshape([grad.shape[axis] for axis in kept])"
        ways["einsum"] = f"np.einsum(grad, list(range(grad.ndim)), kept, out={reshaped})"
    else:
        ways["jax"] = "jax.numpy.sum(grad, axes, dtype=forced, keepdims=keepdims)"
    return {name: ways[name] for name in ("bcast", "numpy", "torch", "jax", "einsum", LIMIT) if name in ways}


def judge_adjoint(names: Names, _numpys: Call) -> Check:
    """Return a check that finds the largest error of a result, in ulp.

    Integers are off by their difference, and must be exact. Floats of up to 32 bits are summed exactly in float64,
    whatever the order; so are the two halves that float64 is cut into, and a result less their sums is exact again.
    """
    grad, integers = real_parts(names["grad"]), names["forced"] is not None
    halves = [grad] if integers else exact_halves(grad)
    wide = np.dtype(names["forced"] or np.float64)
    sums = [half.sum(axis=names["axes"], dtype=wide, keepdims=names["keepdims"]) for half in halves]
    unit = 1 if integers else np.spacing(np.sum(sums, 0).astype(grad.dtype)).astype(wide)
    dtype, shape = names["grad"].dtype, names["shape"]

    def check(result: Any) -> float:
        result = np.asarray(result)
        fits = result.dtype == dtype and result.shape == shape
        assert fits, f"{result.dtype} of {result.shape}, not {dtype} of {shape}"
        off = real_parts(result).astype(np.float64)
        for part in sums:
            off = off - part
        error = float(np.max(np.abs(off) / unit))
        assert error <= (0 if integers else names["terms"]), f"off by {error} ulp"
        return error

    return check


def real_parts(array: NDArray[Any]) -> NDArray[Any]:
    """Give real and imaginary parts an axis of their own, the last one."""
    if array.dtype.kind != "c":
        return array
    return array.reshape(-1).view(array.real.dtype).reshape(*array.shape, 2)


def exact_halves(grad: NDArray[Any]) -> list[NDArray[Any]]:
    """Split float64 into two numbers whose sums are exact."""
    if grad.dtype != np.float64:
        return [grad]
    high = np.floor(grad * 2.0**HALF_BITS) / 2.0**HALF_BITS
    return [high, grad - high]


def adjoint_cell(broadcast: Broadcast, dtype: str, state: str, threads: int) -> Cell:
    """Make the cell of the adjoint of a broadcast."""
    names = partial(adjoint_names, broadcast, dtype, state, threads)
    of_broadcast = (broadcast.name, broadcast.group, dtype, state, threads, broadcast.nbytes(dtype))
    return Cell("adjoint", *of_broadcast, names, adjoint_ways(broadcast, dtype, state), judge_adjoint)


def adjoint_cells(options: Namespace) -> Iterator[Cell]:
    """Yield every adjoint in every dtype, fresh, and warm where the result is large."""
    for dtype in SUM_DTYPES:
        for broadcast in adjoints(dtype):
            large = math.prod(broadcast.data) * itemsize(dtype) >= LARGE_RESULT
            for state in STATES if large else STATES[:1]:
                yield adjoint_cell(broadcast, dtype, state, options.threads)


# Gradients with respect to scales.

LAYERS: list[tuple[str, Shape, Shape, str]] = [  # a layer, the shapes of its gradient and of its scale, a dtype
    ("batch norm, NCHW", (32, 64, 56, 56), (1, 64, 1, 1), "float32"),
    ("batch norm, NCHW", (32, 256, 14, 14), (1, 256, 1, 1), "float32"),
    ("batch norm, NCHW", (32, 256, 14, 14), (1, 256, 1, 1), "float16"),
    ("batch norm, NCHW", (8, 64, 56, 56), (1, 64, 1, 1), "float64"),
    ("batch norm, NHWC", (32, 56, 56, 64), (64,), "float32"),
    ("batch norm, NHWC", (32, 14, 14, 256), (256,), "float32"),
    ("layer norm, rows", (4096, 768), (4096, 1), "float32"),
    ("linear", (4096, 768), (768,), "float32"),
    ("linear", (4096, 768), (768,), "float64"),
    ("linear", (4096, 768), (768,), "float16"),
    ("attention, rows", (8, 12, 512, 64), (8, 12, 512, 1), "float32"),
    ("attention, softmax", (4, 12, 512, 512), (4, 12, 512, 1), "float32"),
    ("scale of all", (4096, 768), (), "float32"),
]
PRODUCT_WAYS: dict[str, Way] = {
    "bcast": "bcast.unbroadcast(grad, shape, times=x)",
    "numpy": "(grad * x).sum(axes, keepdims=keepdims)",
    "torch": "(grad * x).sum(axes, keepdim=keepdims)",
    "jax": "(grad * x).sum(axes, keepdims=keepdims)",
    "einsum": "np.einsum(grad, every, x, every, kept).reshape(shape)",
}


def product_names(grad_shape: Shape, shape: Shape, dtype: str) -> Names:
    """Make the gradient and what it is multiplied with."""
    rank, rng = len(grad_shape), np.random.default_rng(0)
    grad, x = rng.standard_normal((2, *grad_shape), "f8" if dtype == "float64" else "f4").astype(dtype)
    axes = reduced_axes((1,) * (rank - len(shape)) + shape, grad_shape)
    every, kept = list(range(rank)), [axis for axis in range(rank) if axis not in axes]
    keepdims = len(shape) == rank
    return {"grad": grad, "x": x, "shape": shape, "axes": axes, "keepdims": keepdims, "every": every, "kept": kept}


def judge_product(names: Names, _numpys: Call) -> Check:
    """Compare with sums in long double; the unit is that of the sum of the products' magnitudes."""
    grad, shape = names["grad"], names["shape"]
    products = grad.astype("g") * names["x"].astype("g")
    right, size = (each.sum(names["axes"]).reshape(shape) for each in (products, np.abs(products)))
    unit = np.spacing(size.astype(grad.dtype)).astype("g")

    def check(result: Any) -> float:
        result = np.asarray(result)
        assert result.shape == shape, f"{result.shape}, not {shape}"
        error = float(np.max(np.abs(result.astype("g") - right) / unit))
        assert error <= grad.size / right.size, f"off by {error} ulp"
        return error

    return check


def product_cell(layer: str, grad: Shape, scale: Shape, dtype: str, threads: int) -> Cell:
    """Make the cell of a layer's gradient with respect to its scale."""
    name, nbytes = f"{layer}, {' x '.join(map(str, grad))}", 2 * math.prod(grad) * itemsize(dtype)
    names = partial(product_names, grad, scale, dtype)
    return Cell("products", name, layer, dtype, "", threads, nbytes, names, PRODUCT_WAYS, judge_product)


def product_cells(options: Namespace) -> Iterator[Cell]:
    """Yield the layers."""
    yield from (product_cell(*row, options.threads) for row in LAYERS)


# `sum`, `mean`, `var` and `std`.

REDUCTIONS: list[tuple[Shape, int | tuple[int, ...]]] = [  # shape, axis
    ((1_000_000, 2), 1),
    ((1_000_000, 3), 1),
    ((200_000, 16), 1),
    ((50_000, 64), 1),
    ((1_000_000, 3), 0),
    ((2000, 2000), 1),
    ((2000, 2000), 0),
    ((1080, 1920, 3), (0, 1)),
    ((1080, 1920, 3), 2),
    ((32, 3, 224, 224), (0, 2, 3)),
]


def loops_of_numba(name: str, x: NDArray[Any], axis: int, **_: Any) -> Call:
    """Make a call of two loops in parallel, over arrays of two axes."""
    numba = import_module("numba")
    is_sum, is_mean, is_root = name == "sum", name == "mean", name == "std"
    prange = numba.prange

    def of_rows(rows: Any) -> Any:
        result = np.empty(rows.shape[0])
        for i in prange(rows.shape[0]):
            total = 0.0
            for j in range(rows.shape[1]):
                total += rows[i, j]
            if not is_sum:
                total /= rows.shape[1]
            if not (is_sum or is_mean):
                squares = 0.0
                for j in range(rows.shape[1]):
                    squares += (rows[i, j] - total) ** 2
                total = squares / rows.shape[1]
            result[i] = np.sqrt(total) if is_root else total
        return result

    return partial(numba.njit(parallel=True)(of_rows), x if axis == 1 else x.T)


def statistic_ways(name: str, shape: Shape, axis: int | tuple[int, ...], dtype: str) -> dict[str, Way]:
    """Return the call of each competitor; bytes become float64 for means and deviations."""
    spread, is_bytes = name in ("var", "std"), dtype == "uint8"
    torchs = "x.double()" if is_bytes and name != "sum" else "x"
    wide = ", dtype='float64'" if is_bytes and name != "sum" else ""
    ways: dict[str, Way] = {
        "bcast": f"bcast.{name}(x, axis=axis)",
        "numpy": f"np.{name}(x, axis=axis)",
        "torch": f"torch.{name}({torchs}, axis{', correction=0' if spread else ''})",
        "jax": f"jax.numpy.{name}(x, axis=axis{wide})",
    }
    if name == "mean" and is_bytes:
        ways["torch"] = "torch.mean(x, axis, dtype=torch.float64)"
    if isinstance(axis, int) and dtype in ("float32", "float64"):
        ways["bottleneck"] = f"bottleneck.nan{name}(x, axis)"  # on one thread
    if len(shape) == 2 and dtype != "float16":
        ways["numba"] = partial(loops_of_numba, name)
    return ways


def judge_statistic(name: str, names: Names, _numpys: Call) -> Check:
    """Compare with NumPy's result in long double, or in int64.

    NumPy's squares of float16 overflow; such items are infinitely far off, and told, but not refused.
    """
    x, axis = names["x"], names["axis"]
    is_count = x.dtype == np.uint8 and name == "sum"
    wide = x.astype("i8" if is_count else "g")
    right = np.asarray(getattr(np, name)(wide, axis=axis))
    most = 4 * x.size / right.size  # as each term is rounded a few times
    if name in ("var", "std"):
        most = most * (1 + np.abs(wide.mean(axis)) / wide.std(axis))  # differences from the mean have fewer digits

    def check(result: Any) -> float:
        result = np.asarray(result)
        assert result.shape == right.shape, f"{result.shape}, not {right.shape}"
        unit = np.spacing(np.abs(right).astype(result.dtype)) if result.dtype.kind == "f" else 1
        errors = np.abs(result.astype(right.dtype) - right) / unit
        overflows = np.isinf(result) & (result.dtype == np.float16)
        too_far = ~overflows & ~(errors <= most)
        assert not too_far.any(), f"off by {np.max(errors[too_far])} ulp"
        return float(np.nanmax(errors))

    return check


def statistic_names(shape: Shape, axis: int | tuple[int, ...], dtype: str) -> Names:
    """Make random numbers from 20 to 120."""
    return {"x": (np.random.default_rng(0).random(shape) * 100 + 20).astype(dtype), "axis": axis}


def statistic_cell(name: str, shape: Shape, axis: int | tuple[int, ...], dtype: str, threads: int) -> Cell:
    """Make the cell of one of the four functions."""
    title, nbytes = f"{name} of {' x '.join(map(str, shape))}, axis={axis}", math.prod(shape) * itemsize(dtype)
    ways, judge = statistic_ways(name, shape, axis, dtype), partial(judge_statistic, name)
    names = partial(statistic_names, shape, axis, dtype)
    return Cell("statistics", title, name, dtype, "", threads, nbytes, names, ways, judge)


def statistic_cells(options: Namespace) -> Iterator[Cell]:
    """Yield the four functions along axes of all kinds."""
    for shape, axis in REDUCTIONS:
        for dtype in ("uint8", "float16", "float32", "float64"):
            for name in ("sum", "mean", "var", "std"):
                yield statistic_cell(name, shape, axis, dtype, options.threads)


# Exact sums, beside bcast's and others' sums that are not exact.

EXACT_SHAPES: list[tuple[Shape, int | tuple[int, ...]]] = [
    ((8, 8), 0),
    ((100, 100), 1),
    ((10_000, 3), 1),
    ((1_000_000, 3), 1),
    ((1_000_000, 3), 0),
    ((300_000, 8), 1),
    ((100_000, 32), 1),
    ((10_000,), 0),
    ((1_000_000,), 0),
    ((20_000_000,), 0),
    ((512, 512), 0),
    ((1000, 1000), 0),
    ((1000, 1000), 1),
    ((8, 65_536), 0),
    ((1080, 1920, 3), (0, 1)),
    ((32, 3, 224, 224), (0, 2, 3)),
]


def exact_cells(options: Namespace) -> Iterator[Cell]:
    """Yield exact sums of floats along axes of all kinds."""
    ways: dict[str, Way] = {
        "bcast": "bcast.sum(x, axis=axis, exact=True)",
        "bcast, not exact": "bcast.sum(x, axis=axis)",
        "numpy": "np.sum(x, axis=axis)",
        "torch": "torch.sum(x, axis)",
    }
    for shape, axis in EXACT_SHAPES:
        for dtype in ("float32", "float64"):
            title, nbytes = f"{' x '.join(map(str, shape))}, axis={axis}", math.prod(shape) * itemsize(dtype)
            names, judge = partial(statistic_names, shape, axis, dtype), partial(judge_statistic, "sum")
            yield Cell("exact", title, "sum", dtype, "", options.threads, nbytes, names, ways, judge)


# Sums by counts, the adjoint of `repeat`: competitors are given counts, and sum nothing for the items without terms.

MOST_TERMS = 20_000_000


def sums_of_reduceat(grad: NDArray[Any], counts: NDArray[np.int64], **_: Any) -> Call:
    """Make a call of `np.add.reduceat`, which has no empty sums."""

    def call() -> NDArray[Any]:
        some = counts > 0
        sums = np.zeros((len(counts), *grad.shape[1:]), grad.dtype)
        sums[some] = np.add.reduceat(grad, (counts.cumsum() - counts)[some], 0)
        return sums

    return call


NUMBERED = "jax.numpy.repeat(jax.numpy.arange(n), counts, total_repeat_length=total)"
UNREPEAT_WAYS: dict[str, Way] = {
    "bcast": "bcast.unrepeat(grad, counts, 0)",
    "numpy": sums_of_reduceat,
    "torch": "torch.segment_reduce(grad, 'sum', lengths=counts, unsafe=True)",
    "jax": f"jax.ops.segment_sum(grad, {NUMBERED}, n, indices_are_sorted=True)",
}
BINCOUNT: dict[str, Way] = {"bincount": "np.bincount(np.repeat(np.arange(n), counts), grad, n)"}


def judge_unrepeat(_names: Names, numpys: Call) -> Check:
    """Compare with NumPy's result, in its dtype: `bincount` gives float64."""
    return equals(numpys(), any_dtype=True)


def of_counts(n: int, mean: float, width: int, dtypes: str, threads: int) -> Iterator[Cell]:
    """Yield `unrepeat` with a count for each item, over rows of a width, or terms if it is 0."""
    counts = random_counts(n, mean)
    total = int(counts.sum())
    shape = (total, width) if width else (total,)
    name = f"unrepeat {n:g} items{f' of {width}' if width else ''} by {mean:g} each, in the mean"
    ways = UNREPEAT_WAYS | ({} if width else BINCOUNT)
    constants = {"counts": counts, "total": total, "n": n}
    of_call = (name, "unrepeat", shape, dtypes, threads, {"grad": shape}, constants)
    yield from replaced(*of_call, ways, int(mean), judge_unrepeat)


def unrepeat_cells(options: Namespace) -> Iterator[Cell]:
    """Yield sums by counts."""
    for n, mean in COUNTED:
        for width in (0, 3, 64):
            if n * mean * max(width, 1) <= MOST_TERMS:
                yield from of_counts(n, mean, width, "float32" if width > 3 else "float32 float64", options.threads)
