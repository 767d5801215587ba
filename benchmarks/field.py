"""Calls of other packages as they are, by the patch of NumPy's functions, and by one changed line, in one run.

    python benchmarks/field.py [--rounds 25] [--only SUBSTRING] > field.md
    python benchmarks/field.py --lines > lines.md       # lines of NumPy's, by the length of the innermost axis
    python benchmarks/field.py --draw lines.md          # into lines.svg

Needs the packages of the cases; those of packages that are missing are left out. A changed line is either the user's,
with a call of bcast in its place, or one within the package, whose function is compiled anew with it. Results are
compared before they are timed: equal in all items, or within the `tolerance` of a case, which has sums. All have the
dtype that the package gives. Calls take turns; before each come 20 ms of calls that are not timed, and the least time
of all rounds counts.
"""

import argparse
import inspect
import math
import sys
import time
from contextlib import contextmanager, nullcontext
from importlib import import_module, metadata
from pathlib import Path
from typing import NamedTuple

import numpy as np
from plots import plot_lines

import bcast
from bcast._benchmark.table import machine

WARM_UP_SECONDS = 20e-3


class Case(NamedTuple):
    """A call of a package, the line that is changed and what stands in its place, and the names that are patched."""

    package: str
    what: str
    setup: str
    call: str
    line: str  # the call itself, if empty
    ours: str
    names: str = ""
    place: str = ""  # the function that has the line, where that is the package's
    tolerance: float = 0


GRAY = "gray = rng.integers(0, 256, (1080, 1920), np.uint8)"
TABLE = "from {} import *; table = rng.random((200_000, 8))"
FRAME = "import pandas; frame = pandas.DataFrame(rng.random((200_000, 8))); values = frame.to_numpy()"
CUBE = "import xarray; cube = xarray.DataArray(rng.random({}, np.float32), dims=('time', 'y', 'x'))"
BIASES = "import autograd, autograd.numpy as anp; x, b = rng.random({0}, np.float32), rng.random({0}[1], np.float32)"
GRADIENT = "autograd.grad(lambda b: anp.sum((x * b) ** 2))(b)"
CASES = (
    Case(
        "einops",
        "gray to RGB, 1080 x 1920, uint8",
        f"import einops; {GRAY}",
        "einops.repeat(gray, 'h w -> h w c', c=3)",
        "",
        "bcast.broadcast(gray, (1080, 1920, 3), axes_mapping=[0, 1])",
        "tile",
    ),
    Case(
        "einops",
        "pictures at twice the size, 8 x 540 x 960 x 3, uint8",
        "import einops; pictures = rng.integers(0, 256, (8, 540, 960, 3), np.uint8)",
        "einops.repeat(pictures, 'b h w c -> b (h 2) (w 2) c')",
        "",
        "bcast.repeat(pictures, 2, axis=(1, 2))",
        "tile",
    ),
    Case(
        "scikit-image",
        "gray to RGB, 1080 x 1920, uint8",
        f"import skimage; {GRAY}",
        "skimage.color.gray2rgb(gray)",
        "",
        "bcast.broadcast(gray, (1080, 1920, 3), axes_mapping=[0, 1])",
        "stack",
    ),
    Case(
        "scikit-image",
        "RGBA on white, 720 x 1280, float32",
        "import skimage; rgba = rng.random((720, 1280, 4), np.float32)",
        "skimage.color.rgba2rgb(rgba)",
        "(1 - alpha) * background + alpha * channels",
        "bcast.chain(channels, (np.multiply, alpha), (np.add, bcast.elementwise(np.multiply, 1 - alpha, background)))",
        place="skimage.color.colorconv.rgba2rgb",
    ),
    Case(
        "scikit-image",
        "means of blocks of 4 x 4, 1024 x 1024, float64",
        "import skimage; picture = rng.random((1024, 1024))",
        "skimage.measure.block_reduce(picture, (4, 4), np.mean)",
        "",
        "bcast.mean(picture.reshape(256, 4, 256, 4), (1, 3))",
        "mean",
        tolerance=1e-13,
    ),
    Case(
        "astropy",
        "pixels repeated, 1024 x 1024 by 4 x 4, float32",
        "from astropy.nddata import block_replicate; picture = rng.random((1024, 1024), np.float32)",
        "block_replicate(picture, 4, conserve_sum=False)",
        "",
        "bcast.repeat(picture, 4, axis=(0, 1))",
        "repeat",
    ),
    Case(
        "astropy",
        "sums of blocks of 4 x 4, 2048 x 2048, float32",
        "from astropy.nddata import block_reduce; picture = rng.random((2048, 2048), np.float32)",
        "block_reduce(picture, 4)",
        "",
        "bcast.sum(picture.reshape(512, 4, 512, 4), (1, 3))",
        tolerance=1e-6,
    ),
    Case(
        "albucore",
        "normalize for a network, 480 x 640 x 3, uint8",
        "import albucore; picture = rng.integers(0, 256, (480, 640, 3), np.uint8);"
        "mean, factor = np.float32([123.7, 116.3, 103.5]), 1 / np.float32([58.4, 57.1, 57.4])",
        "albucore.normalize(picture, mean, factor)",
        "",
        "bcast.chain(picture, (np.subtract, mean), (np.multiply, factor), dtype=np.float32)",
        tolerance=1e-5,
    ),
    Case(
        "scikit-learn",
        "StandardScaler, 200 000 x 8, float64",
        TABLE.format("sklearn.preprocessing") + "; scaler = StandardScaler().fit(table)",
        "scaler.transform(table)",
        "",
        "bcast.chain(table, (np.subtract, scaler.mean_), (np.divide, scaler.scale_))",
    ),
    Case(
        "scikit-learn",
        "rows of norm 1, 200 000 x 8, float64",
        TABLE.format("sklearn.preprocessing"),
        "normalize(table)",
        "",
        "bcast.elementwise(np.divide, table, np.sqrt(bcast.unbroadcast(table, (200_000, 1), times=table)))",
        tolerance=1e-13,
    ),
    Case(
        "networkx",
        "spring layout of 400 nodes, 50 steps",
        "import networkx; graph = networkx.random_geometric_graph(400, 0.1, seed=1)",
        "list(networkx.spring_layout(graph, seed=1).values())",
        "pos[:, np.newaxis, :] - pos[np.newaxis, :, :]",
        "bcast.elementwise(np.subtract, pos[:, np.newaxis, :], pos)",
        place="networkx.drawing.layout._fruchterman_reingold",
    ),
    Case(
        "networkx",
        "the changed line of the layout alone",
        "position = rng.random((400, 2))",
        "position[:, np.newaxis, :] - position[np.newaxis, :, :]",
        "",
        "bcast.elementwise(np.subtract, position[:, np.newaxis, :], position)",
    ),
    Case(
        "autograd",
        "gradient of a scale, 200 000 x 3, float32",
        BIASES.format("(200_000, 3)"),
        GRADIENT,
        "anp.sum(x, axis=broadcast_idx)",
        "bcast.unbroadcast(x, target_shape)",
        place="autograd.numpy.numpy_vjps.unbroadcast",
        tolerance=1e-3,
    ),
    Case(
        "autograd",
        "gradient of a scale, 4096 x 768, float32",
        BIASES.format("(4096, 768)"),
        GRADIENT,
        "anp.sum(x, axis=broadcast_idx)",
        "bcast.unbroadcast(x, target_shape)",
        place="autograd.numpy.numpy_vjps.unbroadcast",
        tolerance=1e-3,
    ),
    Case(
        "xarray",
        "anomalies, 120 x 180 x 360, float32",
        CUBE.format("(120, 180, 360)") + "; climate = cube.mean('time')",
        "cube - climate",
        "",
        "cube.copy(data=bcast.elementwise(np.subtract, cube.data, climate.data))",
    ),
    Case(
        "xarray",
        "bands less their means, 1024 x 1024 x 4, float32",
        "import xarray; bands = xarray.DataArray(rng.random((1024, 1024, 4), np.float32), dims=('y', 'x', 'band'));"
        "means = bands.mean(('y', 'x'))",
        "bands - means",
        "",
        "bands.copy(data=bcast.elementwise(np.subtract, bands.data, means.data))",
    ),
    Case(
        "xarray",
        "land alone, 120 x 180 x 360, float32",
        CUBE.format("(120, 180, 360)") + "; land = xarray.DataArray(rng.random((180, 360)) < 0.3, dims=('y', 'x'))",
        "cube.where(land)",
        "",
        "cube.copy(data=bcast.where(land.data, cube.data, np.float32(np.nan)))",
        "where",
    ),
    Case(
        "pandas",
        "columns less their means, 200 000 x 8, float64",
        FRAME,
        "frame - frame.mean()",
        "",
        "pandas.DataFrame(bcast.elementwise(np.subtract, values, bcast.mean(values, 0)), copy=False)",
        tolerance=1e-13,
    ),
    Case(
        "pandas",
        "values above a half, 200 000 x 8, float64",
        FRAME,
        "frame.where(frame > 0.5, 0.0)",
        "",
        "pandas.DataFrame(bcast.where(values > 0.5, values, 0.0), copy=False)",
        "where",
    ),
    Case(
        "pandas",
        "each row three times, 200 000 x 8, float64",
        FRAME,
        "pandas.DataFrame(np.repeat(frame.values, 3, axis=0))",
        "",
        "pandas.DataFrame(bcast.repeat(frame.values, 3, axis=0))",
        "repeat",
    ),
    Case(
        "pandas",
        "index of 3650 days and 300 places",
        "import pandas; days = pandas.date_range('2000', periods=3650)",
        "pandas.MultiIndex.from_product([days, range(300)]).codes",
        "np.tile(",
        "bcast.tile(",
        "tile,repeat",
        place="pandas.core.indexes.multi.cartesian_product",
    ),
    Case(
        "SciPy",
        "zscore of rows, 200 000 x 8, float64",
        TABLE.format("scipy.stats"),
        "zscore(table, axis=1)",
        "",
        "bcast.chain("
        "table, (np.subtract, bcast.mean(table, 1, keepdims=True)), (np.divide, bcast.std(table, 1, keepdims=True)))",
        tolerance=1e-9,
    ),
    Case(
        "SciPy",
        "whiten for k-means, 200 000 x 3, float64",
        "from scipy.cluster.vq import whiten; points = rng.random((200_000, 3))",
        "whiten(points)",
        "xp.std(obs, axis=0)",
        "bcast.std(obs, axis=0)",
        "std",
        place="scipy.cluster.vq.whiten",
        tolerance=1e-13,
    ),
    Case(
        "SciPy",
        "softmax of rows, 100 000 x 10, float32",
        "from scipy.special import softmax; logits = rng.random((100_000, 10), np.float32)",
        "softmax(logits, axis=-1)",
        "exp_x_shifted / xp.sum(exp_x_shifted, axis=axis, keepdims=True)",
        "bcast.elementwise(np.divide, exp_x_shifted, bcast.sum(exp_x_shifted, axis, keepdims=True))",
        place="scipy.special._logsumexp.softmax",
        tolerance=1e-6,
    ),
    Case(
        "trimesh",
        "centres of 81 920 triangles",
        "import trimesh; triangles = trimesh.creation.icosphere(6).triangles.view(np.ndarray)",
        "triangles.mean(axis=1)",
        "",
        "bcast.mean(triangles, 1)",
        tolerance=1e-13,
    ),
)

LENGTHS = (3, 32, 512, 8192)
ROWS = "n = {}; m = (1 << 20) // n; x = rng.random((m, n), np.float32); "
LINES = (  # what is set up, NumPy's line, and ours
    (
        "x = x[: m & -32, 0].reshape(32, -1)",
        "np.stack([x] * n, -1)",
        "bcast.broadcast(x, (*x.shape, n), axes_mapping=[0, 1])",
    ),
    ("x = x[:, 0].copy()", "np.repeat(x, n)", "bcast.repeat(x, n)"),
    ("x = x[0].copy()", "np.tile(x, (m, 1))", "bcast.tile(x, (m, 1))"),
    ("row = x[0].copy()", "x + row", "bcast.elementwise(np.add, x, row)"),
    ("column = x[:, :1].copy()", "x * column", "bcast.elementwise(np.multiply, x, column)"),
    ("mask = x[:, :1] > 0.5", "np.where(mask, x, 0)", "bcast.where(mask, x, 0)"),
    ("", "x.sum(0)", "bcast.sum(x, 0)"),
    ("", "x.mean(1)", "bcast.mean(x, 1)"),
    ("", "x.std(0)", "bcast.std(x, 0)"),
    ("a, s = x[0].copy(), x[1].copy() + 1", "(x - a) / s", "bcast.chain(x, (np.subtract, a), (np.divide, s))"),
    (
        "",
        "(x - x.mean(0)) / x.std(0)",
        "bcast.chain(x, (np.subtract, bcast.mean(x, 0)), (np.divide, bcast.std(x, 0)))",
    ),
    (
        "x = x.ravel(); starts = np.arange(0, x.size, n); counts = np.diff(starts, append=x.size)",
        "np.add.reduceat(x, starts)",
        "bcast.unrepeat(x, counts)",
    ),
)

HWC = "import cv2, einops; hwc = rng.integers(0, 256, (1080, 1920, 3), np.uint8); gray = hwc[..., 0].copy(); "
HWC += "chw = hwc.transpose(2, 0, 1); planes = np.ascontiguousarray(chw, np.float32); back = planes.transpose(1, 2, 0)"
BRIGHTER = "bcast.chain(hwc, (np.multiply, 1.2), (np.add, 10), dtype='f4', out=np.empty_like(hwc), casting='saturate')"
PICTURES = (  # NumPy's line or another's, and ours, of pictures of 1080 x 1920
    ("cv2.cvtColor(gray, cv2.COLOR_GRAY2RGB)", "bcast.broadcast(gray, (*gray.shape, 3), [0, 1])"),
    ("einops.repeat(gray, 'h w -> h w c', c=3)", "bcast.broadcast(gray, (*gray.shape, 3), [0, 1])"),
    ("einops.repeat(hwc, 'h w c -> (h 2) (w 2) c')", "bcast.repeat(hwc, 2, axis=(0, 1))"),
    ("cv2.resize(hwc, None, fx=2, fy=2, interpolation=cv2.INTER_NEAREST)", "bcast.repeat(hwc, 2, axis=(0, 1))"),
    ("np.ascontiguousarray(chw)", "bcast.broadcast(chw, chw.shape)"),
    ("np.ascontiguousarray(back)", "bcast.broadcast(back, back.shape)"),
    ("chw.astype(np.float32, order='C') / np.float32(255)", "bcast.chain(chw, (np.divide, np.float32(255)))"),
    (
        "cv2.dnn.blobFromImage(hwc, 1 / 64, mean=(120, 120, 120))",
        "bcast.chain(chw[np.newaxis], (np.subtract, np.float32(120)), (np.multiply, np.float32(1 / 64)))",
    ),
    ("hwc.mean((0, 1))", "bcast.mean(hwc, (0, 1))"),
    ("cv2.convertScaleAbs(hwc, alpha=1.2, beta=10)", BRIGHTER),
    ("np.clip(np.round(hwc * np.float32(1.2) + 10), 0, 255).astype(np.uint8)", BRIGHTER),
    ("np.clip(hwc, 20, 200)", "bcast.chain(hwc, (np.clip, 20, 200))"),
)


@contextmanager
def rewritten(case):
    """Replace the line within the package: its function, by whatever name it was imported, gets another code."""
    path, _, name = case.place.rpartition(".")
    module = import_module(path)
    function = inspect.unwrap(getattr(module, name))
    code, source = function.__code__, inspect.getsource(function)
    if case.line not in source:
        raise LookupError(f"{case.place} expected the line {case.line!r}: another version of {case.package}?")
    module.bcast, names = bcast, dict(vars(module))
    exec(compile(source.replace(case.line, case.ours), path, "exec"), names)
    function.__code__ = inspect.unwrap(names[name]).__code__
    try:
        yield
    finally:
        function.__code__ = code


def measured(case, rounds):
    """Return the least seconds of the call as it is, by the patch, and by the line; they are compared first."""
    names = {"np": np, "bcast": bcast, "rng": np.random.default_rng(0)}
    exec(case.setup, names)
    call = eval(f"lambda: {case.call}", names)
    changed = (call, lambda: rewritten(case)) if case.place else (eval(f"lambda: {case.ours}", names), nullcontext)
    ways = {"before": (call, nullcontext), "line": changed}
    if case.names:
        ways["patch"] = call, lambda: bcast.patched_numpy(case.names.split(","))
    expected, least = np.asarray(call()), dict.fromkeys(ways, math.inf)
    for done in range(rounds):
        for way, (function, context) in ways.items():
            with context():
                begin = time.perf_counter()
                result = np.asarray(function())
                if not done:
                    assert result.dtype == expected.dtype, f"{case}: {result.dtype} is not {expected.dtype}"
                    np.testing.assert_allclose(result, expected, case.tolerance, case.tolerance, err_msg=str(case))
                while time.perf_counter() < begin + WARM_UP_SECONDS:
                    function()
                for _ in range(3):
                    begin = time.perf_counter()
                    function()
                    least[way] = min(least[way], time.perf_counter() - begin)
    return least


def ratio(least, way):
    """Return how many times as fast a way is as the call before, in two digits."""
    return "" if way not in least else f"{(times := least['before'] / least[way]):.{1 if times < 9.95 else 0}f}"


def show_calls(options):
    """Print the table of calls, and the lines that are changed."""
    found = {}
    for case in CASES:
        if options.only in f"{case.package}: {case.what}":
            try:
                found[case] = measured(case, options.rounds)
            except ImportError as error:
                print(f"{case.package}: {error}", file=sys.stderr)
    packages = ", ".join(f"{name} {metadata.version(name)}" for name in dict.fromkeys(case.package for case in found))
    print(f"{machine(bcast.get_num_threads())}; {packages}.\n")
    print("| call | before, ms | by the patch | of | by the line |\n|---|--:|--:|---|--:|")
    for case, least in found.items():
        patch = f"{ratio(least, 'patch')} | {case.names.replace(',', ', ')}"
        print(f"| {case.package}: {case.what} | {least['before'] * 1e3:.2f} | {patch} | {ratio(least, 'line')} |")
    print("\n### The lines")
    for case in found:
        where = f", in `{case.place}`" * bool(case.place)
        lines = f"{case.line or case.call}\n{case.ours}".replace("'", '"')
        print(f"\n{case.package}: {case.what}{where}:\n\n```python\n{lines}\n```")


def show_lines(options):
    """Print the table of NumPy's lines."""
    print(f"{machine(bcast.get_num_threads())}; a million items of float32.\n")
    print("| NumPy | bcast |", " | ".join(map(str, LENGTHS)), f"|\n|---|---|{'--:|' * len(LENGTHS)}")
    for setup, line, ours in LINES:
        cases = [Case("", "", ROWS.format(n) + setup, line, "", ours, tolerance=1e-2) for n in LENGTHS]
        ratios = [ratio(measured(case, options.rounds), "line") for case in cases if options.only in line]
        print(f"| `{line}` | `{ours}` | {' | '.join(ratios)} |", flush=True)
    print("\nPictures are 1080 x 1920 bytes; `chw` is a view of `hwc`, and `back` one of floats the other way:\n")
    print("| the line | bcast | times |\n|---|---|--:|")
    for line, ours in PICTURES:
        if options.only in line:
            least = measured(Case("", "", HWC, line, "", ours, tolerance=1e-5), options.rounds)
            print(f"| `{line}` | `{ours}` | {ratio(least, 'line')} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--only", default="", help="a part of the names of the cases")
    parser.add_argument("--lines", dest="show", action="store_const", const=show_lines, default=show_calls)
    parser.add_argument("--draw", type=Path, metavar="LINES", help="draw the table of lines in a file, beside it")
    options = parser.parse_args()
    if options.draw is not None:
        plot_lines(options.draw.read_text(encoding="utf-8"), options.draw.with_suffix(".svg"))
    else:
        options.show(options)


if __name__ == "__main__":
    main()
