"""The cells of the copy core: broadcasts, tiles, repeats, grids, conversions, layouts.

Each has the call of bcast and of its peers. The cells of broadcasts share theirs: `broadcast_cell`.
"""

import math
import random
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bcast._rules.alignment import align
from bcast._rules.arguments import Shape
from benchmarks.harness import Cell, Check, Judge, as_numpy, equals
from benchmarks.numba_loops import fill, repeater
from benchmarks.peers import LIMIT, Call, Names, Way, call_of, fastest_fill

__all__ = ["DTYPES", "SEED", "STATES", "UNITS", "Broadcast", "broadcast_cell", "grid", "random_broadcasts"]

DTYPES = ("uint8", "float16", "float32", "float64", "complex128")  # of the grid and of random shapes
STATES = ("fresh", "warm")  # into a new array, dropped at once; into the same `out` again and again
SEED = 1  # of random shapes
UNITS = ((30, "GB"), (20, "MB"), (10, "KB"))


def size_name(nbytes: int) -> str:
    """Write a number of bytes in the largest unit that goes into it."""
    shift, unit = next((shift, unit) for shift, unit in UNITS if nbytes >> shift)
    return f"{nbytes >> shift} {unit}"


def items(shape: Shape, dtype: str) -> NDArray[Any]:
    """Make data whose neighbouring items and rows differ; no item is 0."""
    return np.resize((np.arange(101) * 37 % 101 + 1).astype(dtype), shape)


def made(arrays: Mapping[str, tuple[Shape, str]], **constants: Any) -> Names:
    """Make arrays of these shapes and dtypes, and add what else calls name."""
    return {name: items(shape, dtype) for name, (shape, dtype) in arrays.items()} | constants


def itemsize(dtype: str) -> int:
    """Return the bytes of an item."""
    return np.dtype(dtype).itemsize


# One broadcast, and how competitors do it.


@dataclass(frozen=True)
class Broadcast:
    """A broadcast: its name and group, the shapes of data and output, and in explicit mode the output's axes."""

    name: str
    group: str
    data: Shape
    output: Shape
    axes: tuple[int, ...] | None = None

    @property
    def source(self) -> Shape:
        """The data's shape with its axes lined up under the output's."""
        mode = "numpy" if self.axes is None else "explicit"
        return align(self.data, self.output, self.axes, mode).source

    @property
    def innermost(self) -> int:
        """The number of repetitions along the innermost repeated axes, merged into one."""
        repeated = 1
        for stretched, length in zip(reversed(self.source), reversed(self.output), strict=True):
            if stretched == length:
                if length != 1 and repeated != 1:
                    break
            else:
                repeated *= length
        return repeated

    def nbytes(self, dtype: str) -> int:
        """Count the bytes of the output."""
        return math.prod(self.output) * itemsize(dtype)

    def names(self, dtype: str, state: str, threads: int) -> Names:
        """Make the data `x`, `view`, which is `x` with the output's rank, and `out`, if the state is warm."""
        x = items(self.data, dtype)
        view = x.reshape(self.source)
        out = np.empty(self.output, dtype) if state.startswith("warm") else None
        of_call = {"x": x, "view": view, "shape": self.output, "axes": self.axes, "out": out}
        return {**of_call, "name": self.name, "threads": threads}


FRESH: dict[str, Way] = {
    "bcast": "bcast.broadcast(x, shape)",
    "numpy": "np.broadcast_to(view, shape).copy()",
    "torch": "view.expand(shape).contiguous()",
    "jax": "jax.lax.broadcast_in_dim(view, shape, range(len(shape)))",
}
WARM: dict[str, Way] = {  # jax's arrays are immutable
    "bcast": "bcast.broadcast(x, shape, out=out)",
    "numpy": "np.copyto(out, view)",
    "torch": "out.copy_(view)",
}


def by_onnxruntime(view: NDArray[Any], shape: Shape, out: NDArray[Any] | None, threads: int, **_: Any) -> Call | None:
    """Make a session of one Expand; into `out` by I/O binding."""
    if view.dtype.kind == "c":
        return None
    onnxruntime, helper = import_module("onnxruntime"), import_module("onnx").helper
    kind, int64 = map(helper.np_dtype_to_tensor_dtype, (view.dtype, np.dtype(np.int64)))
    graph = helper.make_graph(
        [helper.make_node("Expand", ["data", "shape"], ["out"])],
        "expand",
        [helper.make_tensor_value_info("data", kind, view.shape)],
        [helper.make_tensor_value_info("out", kind, shape)],
        [helper.make_tensor("shape", int64, (len(shape),), shape)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])

    if out is None:
        return lambda: session.run(None, {"data": view})[0]
    binding = session.io_binding()
    binding.bind_cpu_input("data", view)
    binding.bind_output("out", "cpu", 0, out.dtype, out.shape, out.ctypes.data)
    return lambda: session.run_with_iobinding(binding)


def by_openvino(view: NDArray[Any], shape: Shape, out: NDArray[Any] | None, threads: int, **_: Any) -> Call | None:
    """Compile one Broadcast; its result is copied out of the request, or the request's tensor is `out`."""
    if view.dtype.kind == "c":
        return None
    # On import, this module would fork a process that reports the import over the network. OpenVINO works without it.
    sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]
    openvino, ops = import_module("openvino"), import_module("openvino.opset13")
    parameter = ops.parameter(view.shape, view.dtype)
    node = ops.broadcast(parameter, ops.constant(np.array(shape, np.int64)))
    config = {"INFERENCE_NUM_THREADS": threads}
    compiled = openvino.compile_model(openvino.Model([node], [parameter]), "CPU", config)

    if out is None:
        return lambda: compiled(view, share_outputs=False)[0]  # if shared, the next call would overwrite it
    request = compiled.create_infer_request()
    request.set_input_tensor(openvino.Tensor(view, shared_memory=True))
    request.set_output_tensor(openvino.Tensor(out, shared_memory=True))
    return lambda: request.infer()


def by_opencv(
    name: str, x: NDArray[Any], view: NDArray[Any], shape: Shape, out: NDArray[Any] | None, **_: Any
) -> Call | None:
    """Make a call of `cvtColor` or `merge`, `resize`, or `repeat`, if one of them is the operation."""
    kind = name.split()[0]
    if kind not in ("gray", "upsample", "row", "column") or x.dtype.name not in ("uint8", "float32", "float64"):
        return None
    cv2 = import_module("cv2")
    if kind == "gray":
        if shape[-1] == 3 and x.dtype != np.float64:
            return lambda: cv2.cvtColor(x, cv2.COLOR_GRAY2RGB, dst=out)
        channels = (x,) * shape[-1]  # GRAY2RGBA would make the fourth channel opaque
        return lambda: cv2.merge(channels, dst=out)
    if kind == "upsample":
        height, factor, width, _one, depth = shape
        image, size = x.reshape(height, width, depth), (width * factor, height * factor)
        dst = None if out is None else out.reshape(size[1], size[0], depth)
        return lambda: cv2.resize(image, size, dst=dst, interpolation=cv2.INTER_NEAREST).reshape(shape)
    down, right = shape[0] // view.shape[0], shape[1] // view.shape[1]
    return lambda: cv2.repeat(view, down, right, dst=out)


def by_numba(view: NDArray[Any], shape: Shape, out: NDArray[Any] | None, threads: int, **_: Any) -> Call:
    """Make a call of jitted loops, into `np.empty(shape)` or into `out`."""
    write, merged_shape, word = fill(view, shape, threads)
    if out is not None:
        return partial(write, out.view(word).reshape(merged_shape))

    def fresh() -> NDArray[Any]:
        new = np.empty(shape, view.dtype)
        write(new.view(word).reshape(merged_shape))
        return new

    return fresh


def limit(shape: Shape, view: NDArray[Any], threads: int, **_: Any) -> Call:
    """Write as many bytes of warm memory, whether the result is fresh or not."""
    return fastest_fill(math.prod(shape) * view.itemsize, threads)


OTHERS: dict[str, Way] = {"onnxruntime": by_onnxruntime, "openvino": by_openvino, "opencv": by_opencv}
OTHERS |= {"numba": by_numba, LIMIT: limit}
ALL = tuple({**FRESH, **OTHERS})


def judge_copy(names: Names, _numpys: Call) -> Check:
    """Compare with NumPy's view, which takes no memory."""
    return equals(np.broadcast_to(names["view"], names["shape"]))


def broadcast_ways(broadcast: Broadcast, state: str, competitors: tuple[str, ...]) -> dict[str, Way]:
    """Return the calls of some competitors, into a new array or into `out`."""
    ways = (FRESH if state == "fresh" else WARM) | OTHERS
    if broadcast.axes is not None:
        ways["bcast"] = "bcast.broadcast(x, shape, axes, mode='explicit', out=out)"
    return {name: ways[name] for name in competitors if name in ways}


def broadcast_cell(
    family: str, broadcast: Broadcast, dtype: str, state: str, threads: int, competitors: tuple[str, ...] = ALL
) -> Cell:
    """Make the cell of a broadcast, into a new array ('fresh') or into the same `out` ('warm')."""
    names = partial(broadcast.names, dtype, state, threads)
    ways = broadcast_ways(broadcast, state, competitors)
    of_broadcast = (broadcast.name, broadcast.group, dtype, state, threads, broadcast.nbytes(dtype))
    return Cell(family, *of_broadcast, names, ways, judge_copy, broadcast.innermost)


# Broadcasts that programs really do.


def grid(dtype: str) -> Iterator[Broadcast]:
    """Yield the grid; the sizes of some broadcasts depend on the dtype."""
    yield Broadcast("3 -> 4x3", "tiny", (3,), (4, 3))
    yield Broadcast("scalar -> 64", "tiny", (), (64,))
    yield Broadcast("bias NCHW", "channel bias", (64,), (8, 64, 56, 56), (1,))
    yield Broadcast("bias NHWC", "channel bias", (64,), (8, 56, 56, 64))
    yield Broadcast("gray -> RGB 1080p", "gray image to RGB, RGBA", (1080, 1920), (1080, 1920, 3), (0, 1))
    yield Broadcast("gray -> RGBA 1080p", "gray image to RGB, RGBA", (1080, 1920), (1080, 1920, 4), (0, 1))

    lengths = [(n, z) for n in (3, 4, 100, 1000) for z in (4, 5, 6) if n * 10**z * itemsize(dtype) <= 2e8]
    group = {3: "3 or 4", 4: "3 or 4", 100: "100 or 1000", 1000: "100 or 1000"}
    for n, z in lengths:
        yield Broadcast(f"row of {n} x 1e{z}", f"row of {group[n]}", (n,), (10**z, n))
    for n, z in lengths:
        yield Broadcast(f"column of 1e{z} x {n}", f"column x {group[n]}", (10**z, 1), (10**z, n))

    yield Broadcast("batch of 64 images", "batch of images", (224, 224, 3), (64, 224, 224, 3))
    yield Broadcast("64,1,64,1 -> 64^4", "alternating axes", (64, 1, 64, 1), (64, 64, 64, 64))
    yield Broadcast("1,64,1,64 -> 64^4", "alternating axes", (1, 64, 1, 64), (64, 64, 64, 64))
    for k in (2, 3):
        yield Broadcast(f"upsample x{k} 270x480", "nearest upsampling", (270, 1, 480, 1, 3), (270, k, 480, k, 3))
    yield Broadcast("ten axes of 2", "ten axes of 2", (2, 1) * 10, (2, 2) * 10)
    for z in (3, 6, 8):
        yield Broadcast(f"scalar -> 1e{z} bytes", "scalar to 1e3 to 1e8 bytes", (), (10**z // itemsize(dtype),))


def grid_cells(options: Namespace) -> Iterator[Cell]:
    """Yield the grid in five dtypes, fresh and warm."""
    for dtype in DTYPES:
        for broadcast in grid(dtype):
            for state in STATES:
                yield broadcast_cell("grid", broadcast, dtype, state, options.threads)


# Broadcasts of random shapes.

RANDOM_BYTES = (1_000, 64_000_000)  # of the outputs


def random_broadcasts(seed: int = SEED, count: int = 60) -> Iterator[tuple[Broadcast, tuple[str, str]]]:
    """Yield broadcasts of random shapes, each with two dtypes, which take turns.

    Ranks are 2 to 6. Lengths are 1 to 100, uniform on a logarithmic scale. Each axis of the data is copied or repeated
    at random, and at least one axis longer than 1 is repeated. A name has the seed and a number; the same seed gives
    the same shapes, whatever `count` is.
    """
    rng = random.Random(seed)
    shortest, longest = RANDOM_BYTES
    for number in range(count):
        dtypes = DTYPES[2 * number % len(DTYPES)], DTYPES[(2 * number + 1) % len(DTYPES)]
        low, high = sorted(map(itemsize, dtypes))
        while True:
            output = tuple(round(math.exp(rng.uniform(0, math.log(100)))) for _ in range(rng.randint(2, 6)))
            data = tuple(length if rng.random() < 0.5 else 1 for length in output)
            if data != output and shortest <= math.prod(output) * low and math.prod(output) * high <= longest:
                break
        shapes = " -> ".join("x".join(map(str, shape)) for shape in (data, output))
        yield Broadcast(f"random-{seed}-{number:02} {shapes}", f"random, rank {len(output)}", data, output), dtypes


def random_cells(options: Namespace) -> Iterator[Cell]:
    """Yield random shapes in two dtypes each, fresh and warm."""
    for broadcast, dtypes in random_broadcasts(options.seed):
        for dtype in dtypes:
            for state in STATES:
                yield broadcast_cell("random", broadcast, dtype, state, options.threads)


# The same patterns from 1 KB to 4 GB, and from one thread to all.

SCALED_COMPETITORS = ("bcast", "numpy", "torch", LIMIT)
TWO_PATTERNS = 1 << 28  # bytes beyond which two patterns must do


def scaled_broadcasts(nbytes: int) -> Iterator[Broadcast]:
    """Yield each pattern with an output of float32 of about a number of bytes."""
    n, size = nbytes // itemsize("float32"), size_name(nbytes)
    yield Broadcast(f"row tile, {size}", "row tile", (1, 64), (n // 64, 64))
    yield Broadcast(f"scalar fill, {size}", "scalar fill", (1,), (n,))
    if nbytes > TWO_PATTERNS:
        return
    yield Broadcast(f"column x 3, {size}", "column x 3", (n // 3, 1), (n // 3, 3))
    if outer := n >> 16:  # both read 2048 items and have an inner run of 64
        yield Broadcast(f"rank 12, {size}", "rank 12", (1, *(2, 1) * 5, 64), (outer, *(2, 2) * 5, 64))
        yield Broadcast(f"rank 3, {size}", "rank 3", (32, 1, 64), (32, 32 * outer, 64))


def memory() -> int:
    """Return the available memory in bytes; 2 GB if the system does not report it."""
    with suppress(OSError):
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable"):
                return int(line.split()[1]) << 10
    return 1 << 31


def scaling_cells(options: Namespace) -> Iterator[Cell]:
    """Yield warm results on 1, 2, 4 and so on to all threads, fresh ones on all; as large as three fit into memory."""
    counts = sorted({*(1 << power for power in range(options.threads.bit_length())), options.threads})
    for size in (1 << power for power in range(10, 33, 2) if 3 << power <= memory()):
        for broadcast in scaled_broadcasts(size):
            for threads, state in [*((count, "warm") for count in counts), (options.threads, "fresh")]:
                yield broadcast_cell("scaling", broadcast, "float32", state, threads, SCALED_COMPETITORS)


# Results as programs use them: kept until the next one is there, and read as soon as they are written. Both punish what
# the time of a call alone would not show: pages that come from the system each time, and stores past the caches from
# which the next step would have read.


def used_broadcasts(megabytes: int) -> Iterator[Broadcast]:
    """Yield results of float32 of a number of MB."""
    n = megabytes * 250_000
    yield Broadcast(f"row of 1000, {megabytes} MB", "row of 1000", (1000,), (n // 1000, 1000))
    yield Broadcast(f"column x 4, {megabytes} MB", "column x 4", (n // 4, 1), (n // 4, 4))


def kept(competitor: str, **names: Any) -> Call:
    """Let each result live until the next one is there."""
    call, last = call_of(competitor, FRESH[competitor], names), [None]
    assert call is not None

    def keep() -> Any:
        last[0] = call()
        return last[0]

    return keep


def read(competitor: str, out: NDArray[Any] | None, **names: Any) -> Call:
    """Reduce the result by NumPy as soon as it is written, whoever wrote it."""
    ways = FRESH if out is None else WARM
    call = call_of(competitor, ways[competitor], {**names, "out": out})
    assert call is not None
    if out is None:
        return lambda: np.max(call())

    def written() -> Any:
        call()
        return np.max(out)

    return written


def judge_use(names: Names, numpys: Call) -> Check:
    """Compare the maximum, or the whole result where that is at hand."""
    is_number = names["out"] is None and names["state"] != "kept"
    return equals(names["x"].max()) if is_number else judge_copy(names, numpys)


def use_cell(broadcast: Broadcast, state: str, threads: int, competitors: tuple[str, ...]) -> Cell:
    """Make the cell of a result that is used."""

    def names() -> Names:
        return {**broadcast.names("float32", state, threads), "state": state}

    use = kept if state == "kept" else read
    ways: dict[str, Way] = {name: partial(use, name) for name in competitors}
    of_broadcast = (broadcast.name, broadcast.group, "float32", state, threads, broadcast.nbytes("float32"))
    return Cell("use", *of_broadcast, names, ways, judge_use, broadcast.innermost)


def use_cells(options: Namespace) -> Iterator[Cell]:
    """Yield results in a loop, then results that are read."""
    for megabytes in (40, 256):
        for broadcast in used_broadcasts(megabytes):
            yield use_cell(broadcast, "kept", options.threads, ("bcast", "numpy", "torch", "jax"))
    for megabytes in (1, 16, 40, 256):
        for broadcast in used_broadcasts(megabytes):
            for state in ("fresh, read", "warm, read"):
                yield use_cell(broadcast, state, options.threads, ("bcast", "numpy"))


# Beside other libraries' pools: calls follow each other, and each finds the threads of the one before at work or awake.


def awake_cells(options: Namespace) -> Iterator[Cell]:
    """Yield fresh results beside pools that are awake."""
    for megabytes in (2, 6, 14, 28):
        n = megabytes * 250_000
        for name, data, output in (
            ("bias NHWC", (64,), (n // 64, 64)),
            ("bias NCHW", (64, 1), (64, n // 64)),
            ("gray -> RGB", (n // 3, 1), (n // 3, 3)),
            ("batch of 16", (1, n // 16), (16, n // 16)),
        ):
            broadcast = Broadcast(f"{name}, {megabytes} MB", name, data, output)
            competitors = ("bcast", "numpy", "torch", "jax", "onnxruntime")
            cell = broadcast_cell("awake", broadcast, "float32", "fresh", options.threads, competitors)
            yield replace(cell, awake=True)


# Strided data made contiguous, into a warm `out`.

LAYOUTS: dict[str, tuple[Shape, tuple[int, ...], str]] = {
    # the shape of contiguous data, the order in which its axes are wanted, and the part of these that is taken
    "8 x 8": ((8, 8), (1, 0), "..."),
    "32 x 32": ((32, 32), (1, 0), "..."),
    "300 x 40": ((40, 300), (1, 0), "..."),
    "1000 x 1000": ((1000, 1000), (1, 0), "..."),
    "4096 x 4096": ((4096, 4096), (1, 0), "..."),
    "image, channels first": ((1080, 1920, 3), (2, 0, 1), "..."),
    "image, channels last": ((3, 1080, 1920), (1, 2, 0), "..."),
    "features, channels first": ((8, 56, 56, 64), (0, 3, 1, 2), "..."),
    "features, channels last": ((8, 64, 56, 56), (0, 2, 3, 1), "..."),
    "heads": ((8, 128, 12, 64), (0, 2, 1, 3), "..."),
    "pairs of 16, transposed": ((2000, 2, 16), (0, 2, 1), "..."),
    "width and height": ((1080, 1920, 3), (1, 0, 2), "..."),
    "every second": ((1000, 2000), (0, 1), ":, ::2"),
    "crop": ((1000, 2000), (0, 1), ":, :1000"),
}


def strided_names(shape: Shape, order: tuple[int, ...], part: str, dtype: str) -> Names:
    """Make the strided data `x`, and `out`."""
    contiguous = (np.arange(math.prod(shape)) % 251).astype(dtype).reshape(shape)
    x = eval(f"contiguous.transpose(order)[{part}]", {"contiguous": contiguous, "order": order})
    return {"x": x, "out": np.empty(x.shape, dtype)}


STRIDED_WAYS = {"bcast": "bcast.broadcast(x, x.shape, out=out)", "numpy": "np.copyto(out, x)", "torch": "out.copy_(x)"}


def strided_cells(options: Namespace) -> Iterator[Cell]:
    """Yield copies of strided data."""
    for dtype in ("uint8", "uint16", "float32", "float64", "complex128"):
        for name, (shape, order, part) in LAYOUTS.items():
            nbytes = math.prod(shape) * itemsize(dtype) // (1 if part == "..." else 2)
            names = partial(strided_names, shape, order, part, dtype)
            of_layout = (name, "strided", dtype, "warm", options.threads, nbytes)
            yield Cell("strided", *of_layout, names, STRIDED_WAYS, as_numpy)


# What bcast puts in the place of NumPy's functions that are broadcasts: new arrays. NumPy's result is the right one.


def replaced(
    name: str,
    group: str,
    output: Shape,
    dtypes: str,
    threads: int,
    arrays: Mapping[str, Shape],
    constants: Names,
    ways: Mapping[str, Way],
    innermost: int = 1,
    judge: Judge = as_numpy,
) -> Iterator[Cell]:
    """Yield the cell of a function in each of some dtypes.

    Calls name arrays of these shapes and of the dtype, the constants, and the number of threads.
    """
    for dtype in dtypes.split():
        nbytes = math.prod(output) * itemsize(dtype)
        names = partial(made, {key: (shape, dtype) for key, shape in arrays.items()}, threads=threads, **constants)
        yield Cell("replaced", name, group, dtype, "fresh", threads, nbytes, names, ways, judge, innermost)


TILES: list[tuple[Shape, int | tuple[int, ...], str]] = [  # shape, repetitions, dtypes
    ((4,), (4, 1), "float32"),
    ((4,), 4, "float32"),
    ((2, 3), (2, 2), "float32"),
    ((3,), 1000, "uint8 float64"),
    ((3,), 1_000_000, "uint8 float64"),
    ((1000,), (1000, 1), "uint8 float32"),
    ((270, 480, 3), (2, 2, 1), "uint8 float32"),
    ((1000, 100), (1, 10), "uint8 float32"),
    ((100_000, 2), (1, 3), "uint8 float32"),
]
REPEATS: list[tuple[Shape, int, int | None, str]] = [  # shape, count, axis, dtypes
    ((4,), 4, None, "float32"),
    ((2, 3), 2, 0, "float32"),
    *[((1_000_000,), count, None, "uint8 float32 float64") for count in (2, 3, 4)],
    ((1000,), 3, None, "uint8 float64"),
    ((100_000,), 100, None, "uint8 float32"),
    ((1000, 1000), 3, 0, "uint8 float32"),
    ((1000, 1000), 3, 1, "uint8 float32"),
    ((100, 100, 100), 2, 1, "uint8 float32"),
    ((1_000_000, 3), 4, 1, "uint8"),
    ((1_000_000, 3), 2, 0, "uint8 float32"),
]
UPSAMPLED: list[tuple[Shape, int]] = [((270, 480, 3), 2), ((1080, 1920), 2), ((540, 960, 3), 4)]  # image, factor
HEADS: list[tuple[Shape, int]] = [
    ((1, 8, 1024, 128), 4),
    ((4, 8, 2048, 64), 8),
]  # (batch, heads, length, depth), groups
GRIDS: list[tuple[Shape, str]] = [
    ((4, 4), "float32"),
    ((512, 512), "float32"),
    ((1000, 1000), "float32 float64"),
    ((4000, 3000), "uint8 float32"),
    ((100, 100, 100), "float64"),
]


def tile_cells(shape: Shape, reps: int | tuple[int, ...], dtypes: str, threads: int) -> Iterator[Cell]:
    """Yield calls of `tile`."""
    output = np.tile(np.empty(shape, np.uint8), reps).shape
    ways = {"bcast": "bcast.tile(x, reps)", "numpy": "np.tile(x, reps)"}
    inner = reps if isinstance(reps, int) else reps[-1]
    of_call = (f"tile {shape} by {reps}", "tile", output, dtypes, threads)
    yield from replaced(*of_call, {"x": shape}, {"reps": reps}, ways, inner)


def repeat_cells(shape: Shape, count: int, axis: int | None, dtypes: str, threads: int) -> Iterator[Cell]:
    """Yield calls of `repeat` along one axis, or of all items."""
    name = f"repeat {shape} by {count}" + ("" if axis is None else f", axis {axis}")
    output = np.repeat(np.empty(shape, np.uint8), count, axis).shape
    ways = {"bcast": "bcast.repeat(x, count, axis)", "numpy": "np.repeat(x, count, axis)"}
    constants = {"count": count, "axis": axis}
    yield from replaced(name, "repeat", output, dtypes, threads, {"x": shape}, constants, ways, count)


def upsample_cells(shape: Shape, factor: int, dtypes: str, threads: int) -> Iterator[Cell]:
    """Yield nearest upsampling of an image: `repeat` along two axes."""
    name, output = f"upsample {shape} by {factor}", (shape[0] * factor, shape[1] * factor, *shape[2:])
    ways = {
        "bcast": "bcast.repeat(x, (factor, factor), (0, 1))",
        "numpy": "np.repeat(np.repeat(x, factor, 0), factor, 1)",
        "opencv": "cv2.resize(x, size, interpolation=cv2.INTER_NEAREST)",
    }
    constants = {"factor": factor, "size": (output[1], output[0])}
    yield from replaced(name, "two axes", output, dtypes, threads, {"x": shape}, constants, ways, factor)


def repeat_kv_cells(shape: Shape, groups: int, dtypes: str, threads: int) -> Iterator[Cell]:
    """Yield the repeated heads of grouped-query attention."""
    batch, heads, length, depth = shape
    name, output = f"repeat_kv {shape} by {groups}", (batch, heads * groups, length, depth)
    ways = {
        "bcast": "bcast.repeat(x, groups, 1)",
        "numpy": "np.repeat(x, groups, 1)",
        "torch": "x[:, :, None].expand(apart).reshape(output)",
    }
    constants = {"groups": groups, "apart": (batch, heads, groups, length, depth), "output": output}
    yield from replaced(name, "repeat_kv", output, dtypes, threads, {"x": shape}, constants, ways, groups)


def meshgrid_cells(lengths: Shape, dtypes: str, threads: int) -> Iterator[Cell]:
    """Yield dense grids."""
    coordinates = {name: (n,) for name, n in zip("abc", lengths, strict=False)}
    called = ", ".join(coordinates)
    ways = {"bcast": f"bcast.meshgrid({called})", "numpy": f"np.meshgrid({called})"}
    output = (len(lengths), *lengths)
    yield from replaced(f"meshgrid {lengths}", "meshgrid", output, dtypes, threads, coordinates, {}, ways)


def broadcast_arrays_cells(a: Shape, b: Shape, dtypes: str, threads: int) -> Iterator[Cell]:
    """Yield small calls of `broadcast_arrays`; NumPy returns views."""
    name, output = f"broadcast_arrays {a} and {b}", (2, *np.broadcast_shapes(a, b))
    ways = {"bcast": "bcast.broadcast_arrays(a, b)", "numpy": "np.broadcast_arrays(a, b)"}
    yield from replaced(name, "broadcast_arrays", output, dtypes, threads, {"a": a, "b": b}, {}, ways)


# `repeat` with a count for each item.

COUNTED = [(n, mean) for n in (128, 2000, 100_000, 1_000_000) for mean in (0.5, 2, 4, 30, 100)]  # items, mean count


def random_counts(n: int, mean: float) -> NDArray[np.int64]:
    """Draw a count for each item, of 0 to twice the mean."""
    return np.random.default_rng(1).integers(0, int(2 * mean) + 1, n)


def runs_of_pyarrow(x: NDArray[Any], counts: NDArray[np.int64], **_: Any) -> Call:
    """Decode runs, which have items each."""
    pyarrow, compute = import_module("pyarrow"), import_module("pyarrow.compute")
    some = counts > 0
    ends, values = pyarrow.array(np.cumsum(counts[some])), pyarrow.array(x[some])
    runs = pyarrow.RunEndEncodedArray.from_arrays(ends, values)
    return lambda: compute.run_end_decode(runs)


def repeated_by_numba(x: NDArray[Any], counts: NDArray[np.int64], threads: int, **_: Any) -> Call:
    """Repeat by jitted loops."""
    return partial(repeater(), x, counts, threads)


COUNTED_WAYS: dict[str, Way] = {
    "bcast": "bcast.repeat(x, counts)",
    "numpy": "np.repeat(x, counts)",
    "torch": "torch.repeat_interleave(x, counts)",
    "torch, output_size": "torch.repeat_interleave(x, counts, output_size=total)",
    "jax": "jax.numpy.repeat(x, counts, total_repeat_length=total)",
    "pyarrow": runs_of_pyarrow,
    "numba": repeated_by_numba,
}


def counted_cells(n: int, mean: float, dtypes: str, threads: int) -> Iterator[Cell]:
    """Yield calls of `repeat` with a count for each item."""
    name, counts = f"repeat {n:g} items by {mean:g} each, in the mean", random_counts(n, mean)
    total, inner = int(counts.sum()), int(mean)
    constants = {"counts": counts, "total": total}
    yield from replaced(name, "repeat, counts", (total,), dtypes, threads, {"x": (n,)}, constants, COUNTED_WAYS, inner)


# A broadcast to another dtype, beside conversions before it and after it.

CONVERSIONS: list[tuple[str, Shape, Shape, str, str]] = [  # name, shapes of data and output, their dtypes
    ("gray to RGB, bytes", (1080, 1920, 1), (1080, 1920, 3), "uint8", "float32"),
    ("4K gray to RGB, bytes", (2160, 3840, 1), (2160, 3840, 3), "uint8", "float32"),
    ("mask of 8 x 8 heads", (1, 1, 512, 512), (8, 8, 512, 512), "bool", "float32"),
    ("bias of float64, rows", (1, 1000), (10_000, 1000), "float64", "float32"),
    ("float32, each item by 4", (1000, 1000, 1), (1000, 1000, 4), "float32", "float16"),
    ("float64, each item by 3", (2000, 4000, 1), (2000, 4000, 3), "float64", "float32"),
    ("a short row", (1, 4), (3, 4), "uint8", "float32"),
]
CONVERTED_WAYS: dict[str, Way] = {
    "bcast": "bcast.broadcast(x, output, dtype=dtype)",
    "bcast, converted first": "bcast.broadcast(x.astype(dtype), output)",
    "numpy": "np.ascontiguousarray(np.broadcast_to(x.astype(dtype), output))",
    "numpy, converted last": "np.broadcast_to(x, output).astype(dtype, order='C')",
    "torch": "x.to(getattr(torch, dtype)).expand(output).contiguous()",
}


def convert_cell(name: str, shape: Shape, output: Shape, own: str, dtype: str, threads: int) -> Cell:
    """Make the cell of a broadcast of items of one dtype to another."""
    names = partial(made, {"x": (shape, own)}, output=output, dtype=dtype)
    of_result = (f"dtype, {name}", "dtype", dtype, "fresh", threads, math.prod(output) * itemsize(dtype))
    return Cell("replaced", *of_result, names, CONVERTED_WAYS, as_numpy, output[-1] // shape[-1])


def replaced_cells(options: Namespace) -> Iterator[Cell]:
    """Yield the functions that replace NumPy's."""
    threads = options.threads
    for tile in TILES:
        yield from tile_cells(*tile, threads)
    for repeat in REPEATS:
        yield from repeat_cells(*repeat, threads)
    for counted in COUNTED:
        yield from counted_cells(*counted, "uint8 float32 float64", threads)
    yield from counted_cells(10_000_000, 2, "uint8 float32", threads)
    for image in UPSAMPLED:
        yield from upsample_cells(*image, "uint8 float32", threads)
    for heads in HEADS:
        yield from repeat_kv_cells(*heads, "float16 float32", threads)
    for grid_of_lengths in GRIDS:
        yield from meshgrid_cells(*grid_of_lengths, threads)
    yield from broadcast_arrays_cells((4,), (4, 1), "float32", threads)
    yield from (convert_cell(*row, threads) for row in CONVERSIONS)
