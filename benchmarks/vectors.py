"""The cells of vectors of 2 to 4 items: products, norms, matrices, stacks, of points and of pictures.

Results are compared with NumPy's in float64: sums of few products differ in their last bits.
"""

import math
from argparse import Namespace
from collections.abc import Iterator
from functools import partial

import numpy as np

from bcast._rules.arguments import Shape
from benchmarks.harness import Cell, near_numpy
from benchmarks.peers import Names, Way

__all__ = ["vector_cells"]

POINTS: list[Shape] = [(3,), (1000, 3), (1_000_000, 3), (1_000_000, 2), (1_000_000, 4), (1080, 1920, 3)]

# What is computed, and the call of each competitor. `one` is a vector, `matrix` one of 3 rows.
LINES: dict[str, dict[str, Way]] = {
    "vecdot(x, y)": {
        "bcast": "bcast.vecdot(x, y)",
        "numpy": "np.vecdot(x, y)",
        "torch": "torch.linalg.vecdot(x, y)",
        "jax": "jax.numpy.vecdot(x, y)",
    },
    "x @ one": {
        "bcast": "bcast.vecdot(x, one)",
        "numpy": "x @ one",
        "torch": "x @ one",
        "jax": "x @ one",
    },
    "x @ matrix.T": {
        "bcast": "bcast.matvec(matrix, x)",
        "numpy": "x @ matrix.T",
        "torch": "x @ matrix.T",
        "jax": "x @ matrix.T",
    },
    "norm(x)": {
        "bcast": "bcast.norm(x)",
        "numpy": "np.linalg.norm(x, axis=-1)",
        "torch": "torch.linalg.vector_norm(x, dim=-1)",
        "jax": "jax.numpy.linalg.norm(x, axis=-1)",
    },
    "cross(x, y)": {
        "bcast": "bcast.cross(x, y)",
        "numpy": "np.cross(x, y)",
        "torch": "torch.linalg.cross(x, y)",
        "jax": "jax.numpy.cross(x, y)",
    },
    "stack of columns": {
        "bcast": "bcast.stack(columns, -1)",
        "numpy": "np.stack(columns, -1)",
    },
}


def vector_names(shape: Shape, dtype: str) -> Names:
    """Make random vectors."""
    rng = np.random.default_rng(0)
    x, y = (rng.random(shape).astype(dtype) for _ in range(2))
    length = shape[-1]
    one, matrix = y.reshape(-1, length)[0], rng.random((3, length)).astype(dtype)
    columns = [np.ascontiguousarray(x[..., k]) for k in range(length)]
    return {"x": x, "y": y, "one": one, "matrix": matrix, "columns": columns}


def vector_cells(options: Namespace) -> Iterator[Cell]:
    """Yield each line, of points and of a picture."""
    for line, ways in LINES.items():
        for shape in POINTS:
            if line.startswith("cross") and shape[-1] != 3:
                continue
            for dtype in ("float32", "float64"):
                nbytes = math.prod(shape) * np.dtype(dtype).itemsize
                title = f"{line} of {' x '.join(map(str, shape))}"
                room = 1e-5 if dtype == "float32" else 1e-13
                names, judge = partial(vector_names, shape, dtype), near_numpy(room, room)
                yield Cell("vectors", title, line, dtype, "fresh", options.threads, nbytes, names, ways, judge)
