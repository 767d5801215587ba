"""The cells of chains that end in a reduction: lines of NumPy's that make an array of the broadcast first.

Sums are compared with NumPy's nearly, all else bit by bit.
"""

import math
from argparse import Namespace
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from bcast._rules.arguments import Shape
from benchmarks.harness import Cell, Check, Judge, equals, near_numpy
from benchmarks.peers import Call, Names, Way

__all__ = ["chain_reduction_cells"]


class Line(NamedTuple):
    """A line of NumPy's, and what its users write in its place; `a` and `b` are the operands."""

    name: str
    shapes: tuple[Shape, Shape]
    numpy: str
    bcast: str
    torch: str
    dtypes: tuple[str, ...] = ("float32", "float64")
    scipy: str = ""


OF_POINTS = (2000, 3), (2000, 3)
SQUARES = "(np.subtract, b), np.square, (np.sum, -1)"
ALL = ("uint8", "float32", "float64")
LINES = [
    Line(
        "squared distances", OF_POINTS, "((a[:, None] - b) ** 2).sum(-1)", f"bcast.chain(a[:, None], {SQUARES})",
        "((a[:, None] - b) ** 2).sum(-1)", scipy="scipy.spatial.distance.cdist(a, b, 'sqeuclidean')",
    ),
    Line(
        "distances", OF_POINTS, "np.sqrt(((a[:, None] - b) ** 2).sum(-1))",
        f"bcast.chain(a[:, None], {SQUARES}, np.sqrt)",
        "torch.cdist(a, b, compute_mode='donot_use_mm_for_euclid_dist')", scipy="scipy.spatial.distance.cdist(a, b)",
    ),
    Line(
        "nearest points", OF_POINTS, "((a[:, None] - b) ** 2).sum(-1).argmin(1)",
        f"bcast.chain(a[:, None], {SQUARES}, (np.argmin, -1))", "((a[:, None] - b) ** 2).sum(-1).argmin(1)",
        scipy="scipy.spatial.distance.cdist(a, b, 'sqeuclidean').argmin(1)",
    ),
    Line(
        "nearest of ten centres", ((100_000, 3), (10, 3)), "((a[:, None] - b) ** 2).sum(-1).argmin(1)",
        f"bcast.chain(a[:, None], {SQUARES}, (np.argmin, -1))", "((a[:, None] - b) ** 2).sum(-1).argmin(1)",
        scipy="scipy.spatial.distance.cdist(a, b, 'sqeuclidean').argmin(1)",
    ),
    Line(
        "distances of 64 coordinates", ((1000, 64), (1000, 64)), "np.abs(a[:, None] - b).sum(-1)",
        "bcast.chain(a[:, None], (np.subtract, b), np.abs, (np.sum, -1))", "torch.cdist(a, b, p=1)",
        scipy="scipy.spatial.distance.cdist(a, b, 'cityblock')",
    ),
    Line(
        "weighted sums", ((1_000_000, 3), (1_000_000, 1)), "(a * b).sum(0)",
        "bcast.chain(a, (np.multiply, b), (np.sum, 0))",
        "(a * b).sum(0)",
    ),
    Line(
        "norms", ((1_000_000, 3), (1,)), "np.sqrt(np.square(a).sum(-1))",
        "bcast.chain(a, np.square, (np.sum, -1), np.sqrt)", "torch.sqrt(torch.square(a).sum(-1))",
    ),
    Line(
        "the largest difference", ((1000, 1000), (1000, 1000)), "np.abs(a - b).max()",
        "bcast.chain(a, (np.subtract, b), np.abs, (np.max, None))", "torch.abs(a - b).max()",
    ),
    Line(
        "points in a box", ((1_000_000, 3), (3,)), "np.less(a, b).all(-1)",
        "bcast.chain(a, (np.less, b), (np.all, -1))",
        "(a < b).all(-1)", ALL,
    ),
    Line(
        "a palette", ((512, 512, 1, 3), (16, 3)), "(a == b).all(-1)", "bcast.chain(a, (np.equal, b), (np.all, -1))",
        "(a == b).all(-1)", ("uint8",),
    ),
    Line(
        "counts of classes", ((1_000_000, 1), (10,)), "(a == b).sum(0)", "bcast.chain(a, (np.equal, b), (np.sum, 0))",
        "(a == b).sum(0)", ALL,
    ),
    Line(
        "membership", ((1_000_000, 1), (10,)), "(a == b).any(1)", "bcast.chain(a, (np.equal, b), (np.any, 1))",
        "(a == b).any(1)", ALL,
    ),
    Line(
        "dot products of rows of 8", ((300_000, 8), (300_000, 8)), "(a * b).sum(-1)",
        "bcast.chain(a, (np.multiply, b), (np.sum, -1))", "(a * b).sum(-1)",
    ),
    Line(
        "mean deviations", ((1000, 1000), (1000, 1)), "np.abs(a - b).mean(-1)",
        "bcast.chain(a, (np.subtract, b), np.abs, (np.mean, -1))", "torch.abs(a - b).mean(-1)",
    ),
]  # fmt: skip


def equal_values(_names: Names, numpys: Call) -> Check:
    """Judge results by NumPy's: each item must be equal; JAX's positions have a dtype of their own."""
    return equals(numpys(), any_dtype=True)


def line_names(line: Line, dtype: str) -> Names:
    """Make random numbers."""
    rng = np.random.default_rng(0)
    most = 20 if dtype == "uint8" else 1
    a, b = (rng.random(shape) * most for shape in line.shapes)
    return {"a": a.astype(dtype), "b": b.astype(dtype)}


def chain_reduction_cells(options: Namespace) -> Iterator[Cell]:
    """Yield each line of each dtype."""
    for line in LINES:
        for dtype in line.dtypes:
            shapes = " and ".join(" x ".join(map(str, shape)) for shape in line.shapes)
            ways: dict[str, Way] = {
                "bcast": line.bcast,
                "numpy": line.numpy,
                "torch": line.torch,
                "jax": line.numpy.replace("np.", "jax.numpy."),
            }
            if line.scipy and dtype == "float64":
                ways["scipy"] = line.scipy
            is_sum = "sum" in line.numpy or "mean" in line.numpy
            room = 1e-3 if dtype == "float32" else 1e-10
            judge: Judge = near_numpy(room, room) if is_sum and "argmin" not in line.numpy else equal_values
            nbytes = sum(map(math.prod, line.shapes)) * np.dtype(dtype).itemsize
            yield Cell(
                "chain reductions", f"{line.name}, {shapes}", line.name, dtype, "fresh", options.threads, nbytes,
                partial(line_names, line, dtype), ways, judge,
            )  # fmt: skip
