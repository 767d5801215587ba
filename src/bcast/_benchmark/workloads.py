"""The workloads: typical calls, each as the text of NumPy's call and of bcast's, with the arrays that these name."""

from collections.abc import Iterator
from typing import Any

import numpy as np

import bcast

KNOWN = {  # typical calls of programs: NumPy's, and bcast's
    "gray picture to RGB": ("np.stack([gray] * 3, -1)", "bcast.broadcast_like(gray, rgb, axes_mapping=[0, 1])"),
    "picture twice as large": ("rgb.repeat(2, 0).repeat(2, 1)", "bcast.repeat(rgb, 2, axis=(0, 1))"),
    "points moved": ("points + offset", "bcast.elementwise(np.add, points, offset)"),
    "all differences": ("few[:, None] - few", "bcast.elementwise(np.subtract, few[:, None], few)"),
    "masked picture": ("np.where(mask, rgb, 0)", "bcast.where(mask, rgb, 0)"),
    "ready for a network": ("((chw - mean) / std).copy()", "bcast.chain(chw, (np.subtract, mean), (np.divide, std))"),
    "columns standardised": (
        "(points - points.mean(0)) / points.std(0)",
        "bcast.chain(points, (np.subtract, bcast.mean(points, 0)), (np.divide, bcast.std(points, 0)))",
    ),
    "mean of each row": ("points.mean(1)", "bcast.mean(points, 1)"),
}
COPIES = {  # one for each layout of the inner axes: the shapes of `x` and of the result
    "few items": ((3,), (4, 3)),
    "bias, channels first": ((64, 1, 1), (8, 64, 56, 56)),
    "bias, channels last": ((64,), (8, 56, 56, 64)),
    "row of 3 x 1e6": ((3,), (1_000_000, 3)),
    "row of 1000 x 1e4": ((1000,), (10_000, 1000)),
    "column of 1e6 x 3": ((1_000_000, 1), (1_000_000, 3)),
    "column of 1e5 x 100": ((100_000, 1), (100_000, 100)),
    "alternating axes": ((64, 1, 64, 1), (64, 64, 64, 64)),
    "ten axes of 2": ((2, 1) * 10, (2,) * 20),
    "scalar": ((), (1_000_000,)),
}


def _arrays() -> dict[str, Any]:
    """Create the arrays that the calls in `KNOWN` name."""
    rng = np.random.default_rng(0)
    rgb, points = rng.integers(0, 256, (720, 1280, 3), np.uint8), rng.random((200_000, 3), np.float32)
    gray, mask, chw = rgb[..., 0].copy(), rgb[..., :1] > 99, rgb.transpose(2, 0, 1)
    few, offset = points[:400], points[7].copy()
    mean, std = np.array([[123.7, 116.3, 103.5], [58.4, 57.1, 57.4]], np.float32)[..., None, None]
    return globals() | locals()


def rows(short: bool) -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """Yield workloads, only typical ones if `short`: the name, NumPy's call, bcast's call, and their arrays."""
    arrays = _arrays()
    for name, (numpys, ours) in KNOWN.items():
        yield name, numpys, ours, arrays
    for name, (source, shape) in () if short else COPIES.items():
        for dtype in "uint8", "float32":
            x, out = np.resize(np.arange(101).astype(dtype), source), np.empty(shape, dtype)
            arrays = {"np": np, "bcast": bcast, "x": x, "out": out, "shape": shape}
            yield name, f"np.broadcast_to(x, shape).copy()  # {dtype}", "bcast.broadcast(x, shape)", arrays
            yield name, f"np.copyto(out, x)  # {dtype}", "bcast.broadcast(x, shape, out=out)", arrays
