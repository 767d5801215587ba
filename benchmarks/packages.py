"""Calls of other packages, and lines of NumPy's: as they are, with one line changed, and with NumPy patched.

A changed line is either the user's, with a call of bcast in its place, or one within the package, whose function is
compiled anew with it. Results have the dtype that the package gives, and equal its items, or are within the tolerance
of the row, where there are sums. Here "numpy" is the call as it is, "bcast" the changed line, and "bcast, patched" the
call under all groups of the patch. Calls of packages are made in processes of their own, so that the patch is there
before the package is imported, as under `python -m bcast run`.
"""

import inspect
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import numpy as np

import bcast
from benchmarks.harness import Cell, Check, Judge, is_close
from benchmarks.peers import Call, Names, Way
from benchmarks.separate import Separate

__all__ = ["CALLS", "LENGTHS", "LINES", "PICTURES", "line_cells", "package_cells", "picture_cells"]

MODULES = {  # others have the package's name
    "NumPy": "numpy", "scikit-image": "skimage", "scikit-learn": "sklearn", "SciPy": "scipy",
}  # fmt: skip
GROUPS = ("copies", "ufuncs", "reductions", "sums")


class PackageCall(NamedTuple):
    """A call of a package, and what replaces it.

    Attributes
    ----------
    package, what : str
        Whose call it is, and what it does.
    setup, call : str
        What makes the arrays, from `rng`; the call.
    line : str
        The line that is changed; the call itself, if empty.
    ours : str
        What replaces it.
    place : str
        The function that has the line, where that is the package's.
    tolerance : float
        How far an item may be off, relative and absolute.
    """

    package: str
    what: str
    setup: str
    call: str
    line: str
    ours: str
    place: str = ""
    tolerance: float = 0.0

    @property
    def name(self) -> str:
        """The name in the table."""
        return f"{self.package}: {self.what}"


GRAY = "gray = rng.integers(0, 256, (1080, 1920), np.uint8)"
TABLE = "from {} import *; table = rng.random((200_000, 8))"
PANDAS = "import pandas; pandas.set_option('compute.use_numexpr', False); "  # as it is without this option
FRAME = PANDAS + "frame = pandas.DataFrame(rng.random((200_000, 8))); values = frame.to_numpy()"
CUBE = "import xarray; cube = xarray.DataArray(rng.random({}, np.float32), dims=('time', 'y', 'x'))"
TRIANGLES = "import trimesh; triangles = trimesh.creation.icosphere(6).triangles.view(np.ndarray)"
BIASES = "import autograd, autograd.numpy as anp; x, b = rng.random({0}, np.float32), rng.random({0}[1], np.float32)"
GRADIENT = "autograd.grad(lambda b: anp.sum((x * b) ** 2))(b)"
CALLS = (
    PackageCall(
        "einops",
        "gray to RGB, 1080 x 1920, uint8",
        f"import einops; {GRAY}",
        "einops.repeat(gray, 'h w -> h w c', c=3)",
        "",
        "bcast.broadcast(gray, (1080, 1920, 3), axes_mapping=[0, 1])",
    ),
    PackageCall(
        "einops",
        "pictures upscaled by 2, 8 x 540 x 960 x 3, uint8",
        "import einops; pictures = rng.integers(0, 256, (8, 540, 960, 3), np.uint8)",
        "einops.repeat(pictures, 'b h w c -> b (h 2) (w 2) c')",
        "",
        "bcast.repeat(pictures, 2, axis=(1, 2))",
    ),
    PackageCall(
        "scikit-image",
        "gray to RGB, 1080 x 1920, uint8",
        f"import skimage; {GRAY}",
        "skimage.color.gray2rgb(gray)",
        "",
        "bcast.broadcast(gray, (1080, 1920, 3), axes_mapping=[0, 1])",
    ),
    PackageCall(
        "scikit-image",
        "RGBA on white, 720 x 1280, float32",
        "import skimage; rgba = rng.random((720, 1280, 4), np.float32)",
        "skimage.color.rgba2rgb(rgba)",
        "(1 - alpha) * background + alpha * channels",
        "bcast.chain(channels, (np.multiply, alpha), (np.add, bcast.elementwise(np.multiply, 1 - alpha, background)))",
        place="skimage.color.colorconv.rgba2rgb",
    ),
    PackageCall(
        "scikit-image",
        "means of blocks of 4 x 4, 1024 x 1024, float64",
        "import skimage; picture = rng.random((1024, 1024))",
        "skimage.measure.block_reduce(picture, (4, 4), np.mean)",
        "",
        "bcast.mean(picture.reshape(256, 4, 256, 4), (1, 3))",
        tolerance=1e-13,
    ),
    PackageCall(
        "astropy",
        "pixels repeated, 1024 x 1024 by 4 x 4, float32",
        "from astropy.nddata import block_replicate; picture = rng.random((1024, 1024), np.float32)",
        "block_replicate(picture, 4, conserve_sum=False)",
        "",
        "bcast.repeat(picture, 4, axis=(0, 1))",
    ),
    PackageCall(
        "astropy",
        "sums of blocks of 4 x 4, 2048 x 2048, float32",
        "from astropy.nddata import block_reduce; picture = rng.random((2048, 2048), np.float32)",
        "block_reduce(picture, 4)",
        "",
        "bcast.sum(picture.reshape(512, 4, 512, 4), (1, 3))",
        tolerance=1e-6,
    ),
    PackageCall(
        "albucore",
        "normalize for a network, 480 x 640 x 3, uint8",
        "import albucore; picture = rng.integers(0, 256, (480, 640, 3), np.uint8);"
        "mean, factor = np.float32([123.7, 116.3, 103.5]), 1 / np.float32([58.4, 57.1, 57.4])",
        "albucore.normalize(picture, mean, factor)",
        "",
        "bcast.chain(picture, (np.subtract, mean), (np.multiply, factor), dtype=np.float32)",
        tolerance=1e-5,
    ),
    PackageCall(
        "scikit-learn",
        "StandardScaler, 200 000 x 8, float64",
        TABLE.format("sklearn.preprocessing") + "; scaler = StandardScaler().fit(table)",
        "scaler.transform(table)",
        "",
        "bcast.chain(table, (np.subtract, scaler.mean_), (np.divide, scaler.scale_))",
        tolerance=1e-12,
    ),
    PackageCall(
        "scikit-learn",
        "rows of norm 1, 200 000 x 8, float64",
        TABLE.format("sklearn.preprocessing"),
        "normalize(table)",
        "",
        "bcast.elementwise(np.divide, table, np.sqrt(bcast.unbroadcast(table, (200_000, 1), times=table)))",
        tolerance=1e-13,
    ),
    PackageCall(
        "networkx",
        "spring layout of 400 nodes, 50 steps",
        "import networkx; graph = networkx.random_geometric_graph(400, 0.1, seed=1)",
        "list(networkx.spring_layout(graph, seed=1).values())",
        "pos[:, np.newaxis, :] - pos[np.newaxis, :, :]",
        "bcast.elementwise(np.subtract, pos[:, np.newaxis, :], pos)",
        place="networkx.drawing.layout._fruchterman_reingold",
        tolerance=1e-9,
    ),
    PackageCall(
        "networkx",
        "the changed line of the layout alone",
        "position = rng.random((400, 2))",
        "position[:, np.newaxis, :] - position[np.newaxis, :, :]",
        "",
        "bcast.elementwise(np.subtract, position[:, np.newaxis, :], position)",
    ),
    PackageCall(
        "autograd",
        "gradient of a scale, 200 000 x 3, float32",
        BIASES.format("(200_000, 3)"),
        GRADIENT,
        "anp.sum(x, axis=broadcast_idx)",
        "bcast.unbroadcast(x, target_shape)",
        place="autograd.numpy.numpy_vjps.unbroadcast",
        tolerance=1e-3,
    ),
    PackageCall(
        "autograd",
        "gradient of a scale, 4096 x 768, float32",
        BIASES.format("(4096, 768)"),
        GRADIENT,
        "anp.sum(x, axis=broadcast_idx)",
        "bcast.unbroadcast(x, target_shape)",
        place="autograd.numpy.numpy_vjps.unbroadcast",
        tolerance=1e-3,
    ),
    PackageCall(
        "xarray",
        "anomalies, 120 x 180 x 360, float32",
        CUBE.format("(120, 180, 360)") + "; climate = cube.mean('time')",
        "cube - climate",
        "",
        "cube.copy(data=bcast.elementwise(np.subtract, cube.data, climate.data))",
        tolerance=1e-5,
    ),
    PackageCall(
        "xarray",
        "bands minus their means, 1024 x 1024 x 4, float32",
        "import xarray; bands = xarray.DataArray(rng.random((1024, 1024, 4), np.float32), dims=('y', 'x', 'band'));"
        "means = bands.mean(('y', 'x'))",
        "bands - means",
        "",
        "bands.copy(data=bcast.elementwise(np.subtract, bands.data, means.data))",
        tolerance=1e-4,
    ),
    PackageCall(
        "xarray",
        "land only, 120 x 180 x 360, float32",
        CUBE.format("(120, 180, 360)") + "; land = xarray.DataArray(rng.random((180, 360)) < 0.3, dims=('y', 'x'))",
        "cube.where(land)",
        "",
        "cube.copy(data=bcast.where(land.data, cube.data, np.float32(np.nan)))",
    ),
    PackageCall(
        "pandas",
        "columns minus their means, 200 000 x 8, float64",
        FRAME,
        "frame - frame.mean()",
        "",
        "pandas.DataFrame(bcast.elementwise(np.subtract, values, bcast.mean(values, 0)), copy=False)",
        tolerance=1e-13,
    ),
    PackageCall(
        "pandas",
        "values above a half, 200 000 x 8, float64",
        FRAME,
        "frame.where(frame > 0.5, 0.0)",
        "",
        "pandas.DataFrame(bcast.where(values > 0.5, values, 0.0), copy=False)",
    ),
    PackageCall(
        "pandas",
        "each row three times, 200 000 x 8, float64",
        FRAME,
        "pandas.DataFrame(np.repeat(frame.values, 3, axis=0))",
        "",
        "pandas.DataFrame(bcast.repeat(frame.values, 3, axis=0))",
    ),
    PackageCall(
        "pandas",
        "index of 3650 days and 300 places",
        "import pandas; days = pandas.date_range('2000', periods=3650)",
        "pandas.MultiIndex.from_product([days, range(300)]).codes",
        "np.tile(",
        "bcast.tile(",
        place="pandas.core.indexes.multi.cartesian_product",
    ),
    PackageCall(
        "SciPy",
        "zscore of rows, 200 000 x 8, float64",
        TABLE.format("scipy.stats"),
        "zscore(table, axis=1)",
        "",
        "bcast.chain("
        "table, (np.subtract, bcast.mean(table, 1, keepdims=True)), (np.divide, bcast.std(table, 1, keepdims=True)))",
        tolerance=1e-9,
    ),
    PackageCall(
        "SciPy",
        "whiten for k-means, 200 000 x 3, float64",
        "from scipy.cluster.vq import whiten; points = rng.random((200_000, 3))",
        "whiten(points)",
        "xp.std(obs, axis=0)",
        "bcast.std(obs, axis=0)",
        place="scipy.cluster.vq.whiten",
        tolerance=1e-13,
    ),
    PackageCall(
        "SciPy",
        "softmax of rows, 100 000 x 10, float32",
        "from scipy.special import softmax; logits = rng.random((100_000, 10), np.float32)",
        "softmax(logits, axis=-1)",
        "exp_x_shifted / xp.sum(exp_x_shifted, axis=axis, keepdims=True)",
        "bcast.elementwise(np.divide, exp_x_shifted, bcast.sum(exp_x_shifted, axis, keepdims=True))",
        place="scipy.special._logsumexp.softmax",
        tolerance=1e-6,
    ),
    PackageCall(
        "trimesh",
        "centres of 81 920 triangles",
        TRIANGLES,
        "triangles.mean(axis=1)",
        "",
        "bcast.mean(triangles, 1)",
        tolerance=1e-13,
    ),
    PackageCall(
        "trimesh",
        "cross products of the edges of 81 920 triangles",
        TRIANGLES,
        "trimesh.triangles.cross(triangles)",
        "np.cross(vectors[:, 0], vectors[:, 1])",
        "bcast.cross(vectors[:, 0], vectors[:, 1])",
        place="trimesh.triangles.cross",
        tolerance=1e-15,
    ),
    PackageCall(
        "trimesh",
        "boxes around 81 920 triangles",
        TRIANGLES,
        "np.column_stack((triangles.min(axis=1), triangles.max(axis=1)))",
        "",
        "np.concatenate(bcast.minmax(triangles, 1), axis=1)",
    ),
    PackageCall(
        "trimesh",
        "bounds of 1 000 000 points",
        "import trimesh; points = rng.random((1_000_000, 3)); cloud = trimesh.PointCloud(points)",
        "cloud.bounds",
        "",
        "np.array(bcast.minmax(points, 0))",
    ),
    PackageCall(
        "trimesh",
        "normals of 81 920 triangles",
        TRIANGLES,
        "trimesh.triangles.normals(triangles)[0]",
        "unitize(crosses, check_valid=True)",
        "bcast.elementwise(np.divide, crosses, bcast.norm(crosses, 1, keepdims=True)), None",
        place="trimesh.triangles.normals",
        tolerance=1e-12,
    ),
    PackageCall(
        "SciPy",
        "200 000 points rotated",
        "from scipy.spatial.transform import Rotation; points = rng.random((200_000, 3));"
        "rotation = Rotation.from_rotvec([0.1, 0.2, 0.3])",
        "rotation.apply(points)",
        "",
        "bcast.matvec(rotation.as_matrix(), points)",
        tolerance=1e-14,
    ),
    PackageCall(
        "xarray",
        "means weighted by latitude, 120 x 180 x 360, float32",
        CUBE.format("(120, 180, 360)") + "; weights = xarray.DataArray(np.cos(np.linspace(-1.5, 1.5, 180)), dims='y');"
        "values = cube.to_numpy(); latitudes = weights.to_numpy()[:, None]",
        "cube.weighted(weights).mean(('y', 'x')).to_numpy()",
        "",
        "bcast.unbroadcast(values, (120, 1, 1), times=latitudes)[:, 0, 0] / (latitudes.sum() * 360)",
        tolerance=1e-6,
    ),
    PackageCall(
        "scikit-image",
        "Sobel edges, 1024 x 1024, float64",
        "import skimage; picture = rng.random((1024, 1024))",
        "skimage.filters.sobel(picture)",
        "np.sqrt(output) / np.sqrt(ndim, dtype=output.dtype)",
        "bcast.chain(output, np.sqrt, (np.divide, np.sqrt(ndim, dtype=output.dtype)))",
        place="skimage.filters.edges._generic_edge_filter",
    ),
    PackageCall(
        "scikit-image",
        "an unsharp mask, 1024 x 1024, float64",
        "import skimage; picture = rng.random((1024, 1024))",
        "skimage.filters.unsharp_mask(picture)",
        "image + (image - blurred) * amount",
        "bcast.chain(image, (np.subtract, blurred), (np.multiply, amount), (np.add, image))",
        place="skimage.filters._unsharp_mask._unsharp_mask_single_channel",
    ),
    PackageCall(
        "albumentations",
        "a flip and normalize, 480 x 640 x 3, uint8",
        "import albumentations; picture = rng.integers(0, 256, (480, 640, 3), np.uint8);"
        "pipeline = albumentations.Compose([albumentations.HorizontalFlip(p=1), albumentations.Normalize()])",
        "pipeline(image=picture)['image']",
        "normalize_lut(img, mean, denominator)",
        "bcast.chain(img, (np.subtract, mean), (np.multiply, denominator), dtype=np.float32)",
        place="albucore.functions.normalize",
        tolerance=1e-5,
    ),
    PackageCall(
        "MDAnalysis",
        "distances of 2000 and 2000 atoms, float32",
        "from MDAnalysis.lib.distances import distance_array; a, b = rng.random((2, 2000, 3), np.float32)",
        "distance_array(a, b)",
        "",
        "bcast.chain(np.float64(a)[:, None], (np.subtract, np.float64(b)), np.square, (np.sum, -1), np.sqrt)",
        tolerance=1e-6,
    ),
    PackageCall(
        "MDAnalysis",
        "RMSD of 200 000 atoms about their centres, float32",
        "from MDAnalysis.analysis.rms import rmsd; a, b = rng.random((2, 200_000, 3), np.float32)",
        "rmsd(a, b, center=True)",
        "a - np.average(a, axis=0, weights=weights)",
        "a - bcast.mean(a, axis=0)",
        place="MDAnalysis.analysis.rms.rmsd",
        tolerance=1e-4,
    ),
    PackageCall(
        "NumPy",
        "k-means by hand: labels of 100 000 points, 10 centres, float32",
        "points, centres = rng.random((100_000, 3), np.float32), rng.random((10, 3), np.float32)",
        "((points[:, None] - centres) ** 2).sum(-1).argmin(1)",
        "",
        "bcast.chain(points[:, None], (np.subtract, centres), np.square, (np.sum, -1), (np.argmin, -1))",
    ),
    PackageCall(
        "NumPy",
        "nearest of a palette's 16 colours, 256 x 256 x 3, float32",
        "picture, palette = rng.random((256, 256, 3), np.float32), rng.random((16, 3), np.float32)",
        "np.abs(picture[:, :, None] - palette).sum(-1).argmin(-1)",
        "",
        "bcast.chain(picture[:, :, None], (np.subtract, palette), np.abs, (np.sum, -1), (np.argmin, -1))",
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


def names_of(setup: str) -> Names:
    """Run what a row sets up, and return all that it names."""
    names: dict[str, Any] = {"np": np, "bcast": bcast, "rng": np.random.default_rng(0)}
    exec(setup, names)
    return names


def with_other_code(row: PackageCall, **names: Any) -> Call:
    """Make the call while the package's function has the changed line."""
    call = eval(f"lambda: {row.call}", names)
    function, code = rewritten(row)

    def changed() -> Any:
        with replaced_code(function, code):
            return call()

    return changed


def call_in_process(way: str, row: PackageCall, threads: int) -> Call:
    """Make the call of a row in a process that has imported no package yet; NumPy may be patched there."""
    if way == "bcast, patched":
        bcast.patch_numpy(GROUPS)
    bcast.set_num_threads(threads)
    names = names_of(row.setup)
    if way == "bcast" and row.place:
        return with_other_code(row, **names)
    call: Call = eval(f"lambda: {row.ours if way == 'bcast' else row.call}", dict(names))
    return call


def rewritten(row: PackageCall) -> tuple[FunctionType, CodeType]:
    """Return the function that has the line, and its code with the line changed."""
    path, _, name = row.place.rpartition(".")
    module = import_module(path)
    function = inspect.unwrap(getattr(module, name))
    source = inspect.getsource(function)
    if row.line not in source:
        raise LookupError(f"{row.place} expected the line {row.line!r}: another version of {row.package}?")

    module.bcast = bcast  # type: ignore[attr-defined]
    names = dict(vars(module))
    exec(compile(source.replace(row.line, row.ours), path, "exec"), names)
    return function, inspect.unwrap(names[name]).__code__


@contextmanager
def replaced_code(function: FunctionType, code: CodeType) -> Iterator[None]:
    """Replace the code of a function, so that all names under which it was imported change."""
    before = function.__code__
    function.__code__ = code
    try:
        yield
    finally:
        function.__code__ = before


def row_cell(family: str, name: str, group: str, state: str, row: PackageCall, threads: int) -> Cell:
    """Make the cell of a row."""
    ways: dict[str, Way] = {"bcast": row.ours, "numpy": row.call}
    return Cell(family, name, group, "", state, threads, 0, partial(names_of, row.setup), ways, judge_of(row))


def package_cell(row: PackageCall, threads: int) -> Cell:
    """Make the cell of a package's call, with a process for each way."""

    def in_process(way: str) -> Way:
        return lambda: Separate(call_in_process, way, row, threads)

    ways = {way: in_process(way) for way in ("bcast", "numpy", "bcast, patched")}
    return Cell("packages", row.name, row.package, "", "", threads, 0, dict, ways, judge_of(row))


def judge_of(row: PackageCall) -> Judge:
    """Make what compares results with those of the call as it is."""

    def judge(_names: Names, numpys: Call) -> Check:
        return is_close(np.asarray(numpys()), row.tolerance, row.tolerance)

    return judge


def package_cells(options: Namespace) -> Iterator[Cell]:
    """Yield the calls of those packages that are installed."""
    for row in CALLS:
        if find_spec(MODULES.get(row.package, row.package)):
            yield package_cell(row, options.threads)


def line_cells(options: Namespace) -> Iterator[Cell]:
    """Yield the lines of NumPy's, by the length of the innermost axis."""
    for setup, line, ours in LINES:
        for n in LENGTHS:
            row = PackageCall("", line, ROWS.format(n) + setup, line, "", ours, tolerance=1e-2)
            yield row_cell("lines", line, "lines", f"n = {n}", row, options.threads)


def picture_cells(options: Namespace) -> Iterator[Cell]:
    """Yield the lines about pictures of 1080 x 1920."""
    for line, ours in PICTURES:
        if all(find_spec(module) for module in ("cv2", "einops")):
            row = PackageCall("", line, HWC, line, "", ours, tolerance=1e-5)
            yield row_cell("pictures", line, "pictures", "", row, options.threads)
