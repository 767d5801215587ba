"""The cells of the element-wise core: functions of two operands, `where`, modes, chains."""

import math
from argparse import Namespace
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bcast._rules.arguments import Shape
from benchmarks.copies import itemsize, replaced
from benchmarks.harness import Cell, as_numpy, near_numpy
from benchmarks.peers import LIMIT, Call, Names, Way, fastest_fill

__all__ = ["chain_cells", "elementwise_cells", "mode_cells"]


def numbers(shape: Shape, dtype: str, seed: int) -> NDArray[Any]:
    """Draw numbers from 1 to 5; a single one is an array without axes, too."""
    return np.asarray(np.random.default_rng(seed).random(shape) * 4 + 1, dtype)


# Functions of two operands, into a warm `out`; jax makes its own arrays.

OPERANDS: dict[str, tuple[Shape, Shape]] = {
    "same, 4 KiB": ((32, 32), (32, 32)),
    "same, 4 MiB": ((1024, 1024), (1024, 1024)),
    "same, 64 MiB": ((4096, 4096), (4096, 4096)),
    "scalar": ((1000, 1000), ()),
    "rows of 2": ((500_000, 2), (2,)),
    "rows of 3": ((1_000_000, 3), (3,)),
    "rows of 3, 12 KB": ((1000, 3), (3,)),
    "rows of 16": ((60_000, 16), (16,)),
    "rows of 128": ((8000, 128), (128,)),
    "rows of 1000": ((1000, 1000), (1000,)),
    "picture, mask": ((720, 1280, 3), (720, 1280, 1)),
    "columns": ((4096, 768), (4096, 1)),
    "outer": ((2000, 1), (1, 2000)),
    "pairs": ((500, 1, 3), (1, 500, 3)),
    "attention mask": ((8, 12, 128, 128), (8, 1, 1, 128)),
    "channels first": ((32, 64, 56, 56), (64, 1, 1)),
    "alternating": ((16, 1, 64, 1), (16, 1, 64)),
    "4 x 4": ((4, 4), (4, 4)),
    "4 x 4, row": ((4, 4), (4,)),
    "transposed": ((1000, 1000), (1000, 1000)),  # the first operand is
}
FUNCTIONS = {  # by dtype, or by those of both operands
    "float32": ("add", "multiply", "divide", "maximum", "less", "power", "hypot"),
    "float64": ("add", "multiply"),
    "float16": ("add", "multiply"),
    "uint8": ("add", "equal"),
    "int64": ("add", "floor_divide"),
    "uint8, float32": ("multiply",),
}
SIGNS = {"add": "+", "multiply": "*", "divide": "/", "less": "<", "equal": "==", "power": "**"}  # of numexpr
TOLERANCE = {"float16": 2e-3, "float32": 1e-5, "float64": 1e-14}  # of peers' powers and roots


def operand_names(function: str, shapes: tuple[Shape, Shape], transposed: bool, dtypes: list[str]) -> Names:
    """Make both operands, and `out` in the order of their axes."""
    a, b = numbers(shapes[0], dtypes[0], 0), numbers(shapes[1], dtypes[-1], 1)
    if transposed:
        a = a.T
    return {"a": a, "b": b, "out": np.empty_like(getattr(np, function)(a, b))}


def elementwise_cell(
    name: str, function: str, shapes: tuple[Shape, Shape], transposed: bool, dtypes: str, threads: int
) -> Cell:
    """Make the cell of a function of two operands; `dtypes` has that of both, or both, as in "uint8, float32"."""
    each = dtypes.split(", ")
    torchs = {"equal": "eq", "power": "pow"}.get(function, function)
    ways: dict[str, Way] = {
        "bcast": f"bcast.elementwise(np.{function}, a, b, out=out)",
        "numpy": f"np.{function}(a, b, out=out)",
        "torch": f"torch.{torchs}(a, b, out=out)",
        "jax": f"jax.numpy.{function}(a, b)",
    }
    if function in SIGNS and dtypes in ("float32", "float64"):
        ways["numexpr"] = f"numexpr.evaluate('a {SIGNS[function]} b', {{'a': a, 'b': b}}, out=out)"

    result = getattr(np, function)(np.ones(1, each[0]), np.ones(1, each[-1])).dtype
    read = math.prod(shapes[0]) * itemsize(each[0]) + math.prod(shapes[1]) * itemsize(each[-1])
    nbytes = read + math.prod(np.broadcast_shapes(*shapes)) * result.itemsize
    names = partial(operand_names, function, shapes, transposed, each)
    group = "same shape" if shapes[0] == shapes[1] else "broadcast"
    judge = near_numpy(TOLERANCE.get(result.name, 0))
    return Cell("elementwise", f"{name}: {function}", group, dtypes, "warm", threads, nbytes, names, ways, judge)


def where_cell(dtype: str, threads: int) -> Cell:
    """Make the cell of `where`, of a mask, a picture and a colour; NumPy's has no `out`, and makes a new array."""
    mask, x, y = (720, 1280, 1), (720, 1280, 3), (3,)

    def names() -> Names:
        chosen = np.random.default_rng(2).random(mask) < 0.5
        return {"mask": chosen, "x": numbers(x, dtype, 0), "y": numbers(y, dtype, 1), "warm": np.empty(x, dtype)}

    ways: dict[str, Way] = {"bcast": "bcast.where(mask, x, y, out=warm)", "numpy": "np.where(mask, x, y)"}
    nbytes = 2 * math.prod(x) * itemsize(dtype) + math.prod(mask)
    return Cell(
        "elementwise", "picture where a mask says", "where", dtype, "warm", threads, nbytes, names, ways, as_numpy
    )


def elementwise_cells(options: Namespace) -> Iterator[Cell]:
    """Yield functions of two operands, then `where`."""
    for dtypes, functions in FUNCTIONS.items():
        for name, shapes in OPERANDS.items():
            for function in functions:
                yield elementwise_cell(name, function, shapes, name == "transposed", dtypes, options.threads)
    yield from (where_cell(dtype, options.threads) for dtype in ("uint8", "float32"))


# `elementwise` under the rules of ONNX and OpenVINO, beside the ufunc and a view of the shape that it needs: what
# reading the rule adds.

MODES: list[tuple[Shape, Shape, Shape, str, int | None]] = [  # shapes of operands and of the view, mode, axis
    ((4,), (4,), (4,), "none", None),
    ((4, 4), (4,), (4,), "numpy", None),
    ((4, 4), (4,), (4,), "unidirectional", None),
    ((2, 3, 4, 5), (5,), (5,), "pdpd", None),
    ((2, 3, 4, 5), (3, 4), (1, 3, 4, 1), "pdpd", 1),
]


def mode_cells(options: Namespace) -> Iterator[Cell]:
    """Yield small sums under each mode."""
    for a, b, view, mode, axis in MODES:
        name = f"add {a} and {b}, mode {mode}" + ("" if axis is None else f", axis {axis}")
        by_axis = "" if axis is None else f", axis={axis}"
        ways = {"bcast": f"bcast.elementwise(np.add, a, b, mode={mode!r}{by_axis})", "numpy": "np.add(a, view)"}
        arrays = {"a": a, "b": b, "view": view}
        yield from replaced(name, "elementwise", a, "float32", options.threads, arrays, {}, ways)


# Chains: pictures made ready for a network. Bytes become floats, less a mean and divided by a deviation for each
# channel: in HWC, or from HWC to CHW. In float16, NumPy and bcast compute in float32. OpenCV's `LUT` looks results up,
# and its `blobFromImages` knows one deviation for all channels; both are in float32 alone, and so is albucore's.

PICTURES = (1, 224, 224), (32, 224, 224), (1, 512, 512), (1, 1080, 1080), (1, 2160, 3840)  # count, height, width
MEAN = np.array([123.675, 116.28, 103.53], np.float32)
STD = np.array([58.395, 57.12, 57.375], np.float32)
AXES = {"HWC": (0, 1, 2, 3), "CHW": (0, 3, 1, 2)}


def chain_names(picture: Shape, layout: str, dtype: str, state: str, threads: int) -> Names:
    """Make pictures of shape (count, height, width, 3), and all that calls name."""
    pictures = np.random.default_rng(0).integers(0, 256, (*picture, 3), np.uint8)
    transposed = pictures.transpose(AXES[layout])
    lined_up = (3,) if layout == "HWC" else (3, 1, 1)  # with the channels
    return {
        "pictures": pictures,
        "each": list(pictures),
        "tall": pictures.reshape(-1, *pictures.shape[2:]),
        "table": ((np.arange(256, dtype=np.float32)[:, None] - MEAN) / STD)[None],
        "transposed": transposed,
        "shape": transposed.shape,
        "axes": AXES[layout],
        "dtype": dtype,
        "means": MEAN,
        "deviations": STD,
        "mean": MEAN.reshape(lined_up),
        "std": STD.reshape(lined_up),
        "nbytes": pictures.size * (1 + itemsize(dtype)),
        "threads": threads,
        "out": np.empty(transposed.shape, dtype) if state == "warm" else None,
    }


def chain_ways(layout: str, dtype: str, state: str) -> dict[str, Way]:
    """Return the call of each competitor that can; jax, `blobFromImages` and albucore make their own arrays."""
    warm, single = state == "warm", dtype == "float32"
    new = "out" if warm else "np.empty(shape, dtype)"
    torchs = "out" if warm else f"torch.empty(shape, dtype=torch.{dtype})"
    rule = "" if layout == "HWC" else ", mode='pdpd', axis=1"
    into = "" if single and not warm else f", out={new}"
    steps = "(np.subtract, means), (np.divide, deviations)"
    normalized = "(transposed.astype(np.float32) - mean) / std"

    ways: dict[str, Way] = {
        "bcast": f"bcast.chain(transposed, {steps}, dtype=np.float32{rule}{into})",
        "numpy": f"np.copyto(out, {normalized})" if warm else f"np.ascontiguousarray({normalized}, dtype)",
        "torch": f"torch.sub(transposed, mean, out={torchs}).div_(std)",
        "jax": "((pictures.transpose(axes).astype('float32') - mean) / std).astype(dtype)",
    }
    if single:  # of float16, NumPy in place would round twice
        ways["numpy, in place"] = f"np.divide(np.subtract(transposed, mean, out=(new := {new})), std, out=new)"
        names = "{'x': transposed, 'm': mean, 's': std}"
        ways["numexpr"] = f"numexpr.evaluate('(x - m) / s', {names}, out={new}, casting='unsafe')"
    if single and layout == "HWC":
        ways["opencv"] = f"cv2.LUT(tall, table{', dst=out.reshape(tall.shape)' if warm else ''})"
        ways["albucore"] = "[albucore.normalize(picture, means, 1 / deviations) for picture in each]"
    elif single:
        ways["opencv blobs"] = "cv2.dnn.blobFromImages(each, 1 / 58, mean=means.tolist())"
    return ways | {LIMIT: written}


def written(nbytes: int, threads: int, **_: Any) -> Call:
    """Write as many bytes as are read and written."""
    return fastest_fill(nbytes, threads)


def chain_cell(picture: Shape, layout: str, dtype: str, state: str, threads: int) -> Cell:
    """Make the cell of a number of pictures of a height and a width, which become a layout and a dtype."""
    name, nbytes = f"{' x '.join(map(str, picture))}, {layout}", math.prod(picture) * 3 * (1 + itemsize(dtype))
    names = partial(chain_names, picture, layout, dtype, state, threads)
    judge = near_numpy(relative=0.02, absolute=0.01)  # peers round otherwise, and one has one deviation for all
    return Cell("chain", name, layout, dtype, state, threads, nbytes, names, chain_ways(layout, dtype, state), judge)


def chain_cells(options: Namespace) -> Iterator[Cell]:
    """Yield pictures, in both layouts and two dtypes."""
    for picture in PICTURES:
        for layout in AXES:
            for dtype in ("float32", "float16"):
                for state in ("warm", "fresh"):
                    yield chain_cell(picture, layout, dtype, state, options.threads)
