"""The cells of the reductions whose values are NumPy's: extremes, positions, truths, products of integers.

Products of floats and statistics are near NumPy's, all else is equal bit by bit.
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
from benchmarks.harness import Cell, Check, Judge, equals, near_numpy
from benchmarks.peers import Call, Names, Way

__all__ = ["reduction_cells"]

DTYPES = ("bool", "uint8", "float32", "float64", "int64")
FUNCTIONS = ("max", "min", "minmax", "argmax", "argmin", "any", "all", "prod", "mean_std")
WITHOUT_NAN = ("nansum", "nanmean", "nanvar", "nanstd", "nanmax", "nanmin")
NAN_SHARES = (0, 0.05)
DATA: list[tuple[str, Shape, int | tuple[int, ...]]] = [  # name, shape, axis
    ("points", (1_000_000, 3), 1),
    ("points", (1_000_000, 3), 0),
    ("table", (300_000, 8), 1),
    ("table", (100_000, 32), 1),
    ("picture", (1080, 1920, 3), 2),
    ("picture", (1080, 1920, 3), (0, 1)),
    ("blocks", (256, 4, 256, 4), (1, 3)),
    ("channels first", (8, 3, 224, 224), 1),
    ("channels first", (8, 3, 224, 224), (0, 2, 3)),
    ("square", (1000, 1000), 0),
    ("square", (1000, 1000), 1),
    ("long", (8, 400_000), 1),
    ("tiny", (10, 3), 1),
]


def equal_values(_names: Names, numpys: Call) -> Check:
    """Judge results by NumPy's: each item must be equal; torch's truths and JAX's products have dtypes of their own."""
    return equals(numpys(), any_dtype=True)


def pairs_of_jax(first: str, second: str) -> Way:
    """Return what makes a jitted call of two functions at once."""

    def make(x: NDArray[Any], axis: int | tuple[int, ...], **_: Any) -> Call:
        jax = import_module("jax")
        data = jax.numpy.asarray(x)
        one, other = getattr(jax.numpy, first), getattr(jax.numpy, second)
        jitted = jax.jit(lambda data: (one(data, axis), other(data, axis)))
        return lambda: jax.block_until_ready(jitted(data))

    return make


def pair_ways(name: str, dtype: str) -> dict[str, Way]:
    """Return the calls of each competitor that returns two results."""
    if name == "minmax":
        return {
            "bcast": "bcast.minmax(x, axis)",
            "numpy": "(x.min(axis), x.max(axis))",
            "torch": "(torch.amin(x, axis), torch.amax(x, axis))",
            "jax": pairs_of_jax("min", "max"),
        }
    ways: dict[str, Way] = {"bcast": "bcast.mean_std(x, axis)", "numpy": "(x.mean(axis), x.std(axis))"}
    if "float" in dtype:
        ways["torch"] = "torch.std_mean(x, axis, correction=0)[::-1]"
        ways["jax"] = pairs_of_jax("mean", "std")
    return ways


def reduction_ways(name: str, dtype: str, axis: int | tuple[int, ...]) -> dict[str, Way]:
    """Return the call of each competitor."""
    if name in ("minmax", "mean_std"):
        return pair_ways(name, dtype)
    ways: dict[str, Way] = {
        "bcast": f"bcast.{name}(x, axis)",
        "numpy": f"np.{name}(x, axis)",
        "jax": f"jax.numpy.{name}(x, axis)",
    }
    torchs = {"max": "amax", "min": "amin"}.get(name, name)
    is_of_one = name in ("argmax", "argmin", "prod")
    if not (is_of_one and isinstance(axis, tuple)) and not (name.startswith("arg") and dtype == "bool"):
        ways["torch"] = f"torch.{torchs}(x, axis)"
    return ways


def reduction_names(name: str, shape: Shape, dtype: str, axis: int | tuple[int, ...]) -> Names:
    """Make random numbers; bools that decide nothing early; factors whose products are neither 0 nor infinite."""
    rng = np.random.default_rng(0)
    if dtype == "bool":
        x = np.full(shape, name != "any")
    elif name == "prod" and dtype.startswith("float"):
        x = (1 + (rng.random(shape) - 0.5) / 1000).astype(dtype)
    elif name == "any":
        x = np.zeros(shape, dtype)
    else:
        x = (rng.random(shape) * 99 + 1).astype(dtype)
    return {"x": x, "axis": axis}


def nan_names(name: str, shape: Shape, dtype: str, axis: int | tuple[int, ...], share: float) -> Names:
    """Make random numbers, with a share of NaN."""
    names = reduction_names(name, shape, dtype, axis)
    names["x"][np.random.default_rng(1).random(shape) < share] = np.nan
    return names


def nan_cells(options: Namespace) -> Iterator[Cell]:
    """Yield each function that leaves NaN out, of data with and without."""
    for name in WITHOUT_NAN:
        for what, shape, axis in DATA:
            for dtype in "float32", "float64":
                for share in NAN_SHARES:
                    title = f"{name} of {what}, {' x '.join(map(str, shape))}, axis={axis}, {share:.0%} NaN"
                    room = 2e-3 if dtype == "float32" else 1e-10  # which NumPy needs
                    judge: Judge = near_numpy(0, 0) if name in ("nanmax", "nanmin") else near_numpy(room, room)
                    ways: dict[str, Way] = {
                        "bcast": f"bcast.{name}(x, axis)",
                        "numpy": f"np.{name}(x, axis)",
                        "jax": f"jax.numpy.{name}(x, axis)",
                    }
                    if not isinstance(axis, tuple):
                        ways["bottleneck"] = f"bottleneck.{name}(x, axis)"
                    nbytes = math.prod(shape) * np.dtype(dtype).itemsize
                    yield Cell(
                        "reductions", title, name, dtype, "fresh", options.threads, nbytes,
                        partial(nan_names, name, shape, dtype, axis, share), ways, judge,
                    )  # fmt: skip


def reduction_cells(options: Namespace) -> Iterator[Cell]:
    """Yield each function along the axes of each array, of each dtype."""
    for name in FUNCTIONS:
        for what, shape, axis in DATA:
            if isinstance(axis, tuple) and name.startswith("arg"):
                continue
            for dtype in DTYPES:
                title = f"{name} of {what}, {' x '.join(map(str, shape))}, axis={axis}"
                room = 2e-3 if dtype == "float32" else 1e-10  # which NumPy needs
                is_near = name == "mean_std" or (name == "prod" and "float" in dtype)
                judge: Judge = near_numpy(room, room) if is_near else equal_values
                nbytes = math.prod(shape) * np.dtype(dtype).itemsize
                yield Cell(
                    "reductions", title, name, dtype, "fresh", options.threads, nbytes,
                    partial(reduction_names, name, shape, dtype, axis), reduction_ways(name, dtype, axis),
                    judge,
                )  # fmt: skip
    yield from nan_cells(options)
