"""The benchmark's workloads, and the competitors that do them: each by what its own user would write.

A competitor turns a `Task` into a call without arguments that returns the result, or fills the task's `out`. What can
be done once is done outside that call: arrays are handed over, axes lined up, graphs compiled. No peer is imported
before it is asked for, and one that is not installed is simply missing.
"""

import importlib
import importlib.util
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bcast
from bcast._alignment import Shape, align

__all__ = ["COMPETITORS", "DTYPES", "LIMIT", "STATES", "Task", "Workload", "competitors", "grid", "prepare"]

Call = Callable[[], Any]

DTYPES = ("uint8", "float16", "float32", "float64", "complex128")
STATES = ("fresh", "warm")  # into a new array, dropped at once; into the same `out` again and again
LIMIT = "limit (memset)"  # no competitor: the time in which the same bytes can be written at all
LARGEST = 200_000_000  # bytes; rows and columns whose output is larger are left out


@dataclass(frozen=True)
class Workload:
    """One broadcast that programs really do.

    Attributes
    ----------
    name : str
        Unique in a grid.
    group : str
        The family it belongs to.
    data, output : tuple of int
        The shapes.
    axes : tuple of int, optional
        The output axes that the data's axes feed. Without them shapes are aligned at the right.
    """

    name: str
    group: str
    data: Shape
    output: Shape
    axes: tuple[int, ...] | None = None

    @property
    def source(self) -> Shape:
        """The data's shape with its axes lined up under the output's."""
        return align(self.data, self.output, self.axes, "numpy" if self.axes is None else "explicit").source

    @property
    def innermost(self) -> int:
        """How many times the innermost repeated axes, merged, repeat."""
        repeated = 1
        for stretched, length in zip(reversed(self.source), reversed(self.output), strict=True):
            if stretched == length:
                if length != 1 and repeated != 1:
                    break
            else:
                repeated *= length
        return repeated

    def nbytes(self, dtype: str) -> int:
        """Bytes of the output."""
        return math.prod(self.output) * np.dtype(dtype).itemsize


def _lengths(n: int) -> str:
    return "3 or 4" if n < 100 else "100 or 1000"


def grid(dtype: str) -> Iterator[Workload]:
    """Yield all workloads for one dtype, on which the sizes of some depend."""
    yield Workload("3 -> 4x3", "tiny", (3,), (4, 3))
    yield Workload("scalar -> 64", "tiny", (), (64,))
    yield Workload("bias NCHW", "channel bias", (64,), (8, 64, 56, 56), (1,))
    yield Workload("bias NHWC", "channel bias", (64,), (8, 56, 56, 64))
    yield Workload("gray -> RGB 1080p", "gray image to RGB, RGBA", (1080, 1920), (1080, 1920, 3), (0, 1))
    yield Workload("gray -> RGBA 1080p", "gray image to RGB, RGBA", (1080, 1920), (1080, 1920, 4), (0, 1))
    sizes = [(n, zeros) for n in (3, 4, 100, 1000) for zeros in (4, 5, 6)]
    sizes = [(n, zeros) for n, zeros in sizes if n * 10**zeros * np.dtype(dtype).itemsize <= LARGEST]
    for n, zeros in sizes:
        yield Workload(f"row of {n} x 1e{zeros}", f"row of {_lengths(n)}", (n,), (10**zeros, n))
    for n, zeros in sizes:
        yield Workload(f"column of 1e{zeros} x {n}", f"column x {_lengths(n)}", (10**zeros, 1), (10**zeros, n))
    yield Workload("batch of 64 images", "batch of images", (224, 224, 3), (64, 224, 224, 3))
    yield Workload("64,1,64,1 -> 64^4", "alternating axes", (64, 1, 64, 1), (64, 64, 64, 64))
    yield Workload("1,64,1,64 -> 64^4", "alternating axes", (1, 64, 1, 64), (64, 64, 64, 64))
    for k in (2, 3):
        yield Workload(f"upsample x{k} 270x480", "nearest upsampling", (270, 1, 480, 1, 3), (270, k, 480, k, 3))
    yield Workload("ten axes of 2", "ten axes of 2", (2, 1) * 10, (2, 2) * 10)
    for zeros in (3, 6, 8):
        items = 10**zeros // np.dtype(dtype).itemsize
        yield Workload(f"scalar -> 1e{zeros} bytes", "scalar to 1e3 to 1e8 bytes", (), (items,))


@dataclass(frozen=True)
class Task:
    """A workload with its arrays; every competitor gets the same ones.

    Attributes
    ----------
    workload : Workload
        What is to be done.
    data : ndarray
        Of the workload's data shape.
    out : ndarray or None
        Where the result goes; None asks for a new array from each call.
    """

    workload: Workload
    data: NDArray[Any]
    out: NDArray[Any] | None

    @property
    def lined_up(self) -> NDArray[Any]:
        """The data as a view of the output's rank."""
        return self.data.reshape(self.workload.source)


def _bcast(task: Task) -> Call:
    data, shape, axes, out = task.data, task.workload.output, task.workload.axes, task.out
    if axes is None:
        if out is None:
            return lambda: bcast.broadcast(data, shape)
        return lambda: bcast.broadcast(data, shape, out=out)
    if out is None:
        return lambda: bcast.broadcast(data, shape, axes, mode="explicit")
    return lambda: bcast.broadcast(data, shape, axes, mode="explicit", out=out)


def _numpy(task: Task) -> Call:
    data, shape, out = task.lined_up, task.workload.output, task.out
    if out is None:
        return lambda: np.broadcast_to(data, shape).copy()
    return lambda: np.copyto(out, data)


def _torch(task: Task) -> Call:
    torch = importlib.import_module("torch")
    data, shape = torch.from_numpy(task.lined_up), task.workload.output
    if task.out is None:
        return lambda: data.expand(shape).contiguous()
    out = torch.from_numpy(task.out)
    return lambda: out.copy_(data)


def _jax(task: Task) -> Call:
    jax = importlib.import_module("jax")
    jax.config.update("jax_enable_x64", True)  # else float64 comes back as float32
    shape = task.workload.output
    data = jax.numpy.asarray(task.lined_up)
    broadcast = jax.jit(lambda x: jax.lax.broadcast_in_dim(x, shape, range(len(shape))))
    return lambda: broadcast(data).block_until_ready()


def _onnxruntime(task: Task) -> Call:
    onnxruntime = importlib.import_module("onnxruntime")
    helper = importlib.import_module("onnx").helper
    data, shape, out = task.lined_up, task.workload.output, task.out
    kind = helper.np_dtype_to_tensor_dtype(data.dtype)
    graph = helper.make_graph(
        [helper.make_node("Expand", ["data", "shape"], ["out"])],
        "expand",
        [helper.make_tensor_value_info("data", kind, data.shape)],
        [helper.make_tensor_value_info("out", kind, shape)],
        [helper.make_tensor("shape", helper.np_dtype_to_tensor_dtype(np.dtype(np.int64)), (len(shape),), shape)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    if out is None:
        return lambda: session.run(None, {"data": data})[0]
    binding = session.io_binding()
    binding.bind_cpu_input("data", data)
    binding.bind_output("out", "cpu", 0, out.dtype, out.shape, out.ctypes.data)
    return lambda: session.run_with_iobinding(binding)


def _openvino(task: Task) -> Call:
    # Imported, it would fork a process that reports the import over the network; it does without just as well.
    sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]
    openvino = importlib.import_module("openvino")
    ops = importlib.import_module("openvino.opset13")
    data, out = task.lined_up, task.out
    parameter = ops.parameter(data.shape, data.dtype)
    node = ops.broadcast(parameter, ops.constant(np.array(task.workload.output, np.int64)))
    compiled = openvino.compile_model(openvino.Model([node], [parameter]), "CPU")
    if out is None:
        return lambda: compiled(data, share_outputs=False)[0]  # shared, the next call would overwrite it
    request = compiled.create_infer_request()
    request.set_input_tensor(openvino.Tensor(data, shared_memory=True))
    request.set_output_tensor(openvino.Tensor(out, shared_memory=True))
    return lambda: request.infer()


def _opencv(task: Task) -> Call:
    cv2 = importlib.import_module("cv2")
    data, shape, out = task.data, task.workload.output, task.out
    kind = task.workload.name.split()[0]
    if kind == "gray":
        if shape[-1] == 3 and data.dtype != np.float64:
            return lambda: cv2.cvtColor(data, cv2.COLOR_GRAY2RGB, dst=out)
        channels = (data,) * shape[-1]  # GRAY2RGBA would make the fourth channel opaque
        return lambda: cv2.merge(channels, dst=out)
    if kind == "upsample":
        height, factor, width, _, depth = shape
        image, size = data.reshape(height, width, depth), (width * factor, height * factor)
        dst = None if out is None else out.reshape(size[1], size[0], depth)
        return lambda: cv2.resize(image, size, dst=dst, interpolation=cv2.INTER_NEAREST).reshape(shape)
    matrix = task.lined_up
    vertically, horizontally = shape[0] // matrix.shape[0], shape[1] // matrix.shape[1]
    return lambda: cv2.repeat(matrix, vertically, horizontally, dst=out)


def _memset(task: Task) -> Call:
    block = np.ones(task.workload.nbytes(task.data.dtype.name), np.uint8)
    return lambda: block.fill(0)


def _anything(workload: Workload, dtype: str, state: str) -> bool:  # noqa: ARG001
    return True


def _not_complex(workload: Workload, dtype: str, state: str) -> bool:  # noqa: ARG001
    return dtype != "complex128"


def _new_arrays(workload: Workload, dtype: str, state: str) -> bool:  # noqa: ARG001
    return state == "fresh"


def _images_and_matrices(workload: Workload, dtype: str, state: str) -> bool:  # noqa: ARG001
    kinds, dtypes = {"gray", "upsample", "row", "column"}, {"uint8", "float32", "float64"}
    return workload.name.split()[0] in kinds and dtype in dtypes


@dataclass(frozen=True)
class Competitor:
    """What must be imported, how a task is done, and which (workload, dtype, state) can be."""

    modules: tuple[str, ...]
    call: Callable[[Task], Call]
    does: Callable[[Workload, str, str], bool] = _anything

    def installed(self) -> bool:
        """Tell whether all modules are there, without importing them."""
        return all(importlib.util.find_spec(module) for module in self.modules)


COMPETITORS = {
    "bcast": Competitor(("bcast",), _bcast),
    "numpy": Competitor(("numpy",), _numpy),
    "torch": Competitor(("torch",), _torch),
    "jax": Competitor(("jax",), _jax, _new_arrays),
    "onnxruntime": Competitor(("onnxruntime", "onnx"), _onnxruntime, _not_complex),
    "openvino": Competitor(("openvino",), _openvino, _not_complex),
    "opencv": Competitor(("cv2",), _opencv, _images_and_matrices),
    LIMIT: Competitor((), _memset),
}


def competitors(workload: Workload, dtype: str, state: str) -> list[str]:
    """Name the installed competitors that can do the workload, bcast first and the limit last."""
    return [name for name, each in COMPETITORS.items() if each.installed() and each.does(workload, dtype, state)]


def prepare(workload: Workload, dtype: str, state: str, names: list[str]) -> dict[str, Call]:
    """Make the calls that do a workload, each checked once against NumPy's view of the result.

    Raises
    ------
    AssertionError
        If a competitor's result is wrong.
    """
    size = math.prod(workload.data)
    data = (np.arange(size) * 37 % 101 + 1).astype(dtype).reshape(workload.data)
    out = np.empty(workload.output, dtype) if state == "warm" else None
    task = Task(workload, data, out)
    expected = np.broadcast_to(task.lined_up, workload.output)
    calls = {}
    for name in names:
        if out is not None:
            out.fill(0)  # which is no value of the data
        call = calls[name] = COMPETITORS[name].call(task)
        result = call()
        if name != LIMIT:
            result = np.asarray(result) if out is None else out
            if result.dtype != expected.dtype or not np.array_equal(result, expected):
                raise AssertionError(f"{name} is wrong in {workload.name!r}, {dtype}, {state}")
    return calls
