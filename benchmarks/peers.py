"""The benchmark's competitors: each does a workload as its own user would write it, on a given number of threads.

A competitor turns a `Task` into a call without arguments, which returns the result or fills the task's `out`. Work that
is needed only once is done outside that call: converting arrays, lining up axes, compiling graphs. No peer is imported
before it is asked for, and one that is not installed is simply missing.
"""

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import loops
import numpy as np
from machines import measure
from numpy.typing import NDArray
from workloads import CALLS, Call, Task, Workload

import bcast

__all__ = [
    "COMPETITORS",
    "LIMIT",
    "OWN",
    "Competitor",
    "bound",
    "competitors",
    "fastest",
    "in_pieces",
    "new_arrays",
    "prepare",
    "version",
]

OWN = ("bcast", "numpy", "limit")  # not peers
LIMIT = "limit"  # not a competitor: the least time in which as many bytes can be written
TRIAL = 0.02  # seconds, to find the fastest way to write
PIECE = 1 << 26  # bytes that are compared at once


@contextmanager
def bound(threads: int) -> Iterator[None]:
    """Limit the number of threads of the libraries that are imported within this block.

    Tasks set the number of threads of every competitor except JAX, which decides it when it is imported.
    """
    before = os.environ.get("NPROC")  # JAX reads this variable
    mask = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
    os.environ["NPROC"] = str(threads)
    if threads < len(mask):
        os.sched_setaffinity(0, sorted(mask)[:threads])
    try:
        yield
    finally:
        if threads < len(mask):
            os.sched_setaffinity(0, mask)
        os.environ.pop("NPROC")
        if before is not None:
            os.environ["NPROC"] = before


def _torch(task: Task) -> Call:
    torch = importlib.import_module("torch")
    torch.set_num_threads(task.threads)
    data, shape = torch.from_numpy(task.lined_up), task.workload.output
    if task.out is None:
        return lambda: data.expand(shape).contiguous()
    out = torch.from_numpy(task.out)
    return lambda: out.copy_(data)


def _jax(task: Task) -> Call:
    jax = importlib.import_module("jax")
    jax.config.update("jax_enable_x64", True)  # otherwise float64 becomes float32
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
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = task.threads
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    if out is None:
        return lambda: session.run(None, {"data": data})[0]
    binding = session.io_binding()
    binding.bind_cpu_input("data", data)
    binding.bind_output("out", "cpu", 0, out.dtype, out.shape, out.ctypes.data)
    return lambda: session.run_with_iobinding(binding)


def _openvino(task: Task) -> Call:
    # On import, this module would fork a process that reports the import over the network. OpenVINO works without it.
    sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]
    openvino = importlib.import_module("openvino")
    ops = importlib.import_module("openvino.opset13")
    data, out = task.lined_up, task.out
    parameter = ops.parameter(data.shape, data.dtype)
    node = ops.broadcast(parameter, ops.constant(np.array(task.workload.output, np.int64)))
    config = {"INFERENCE_NUM_THREADS": task.threads}
    compiled = openvino.compile_model(openvino.Model([node], [parameter]), "CPU", config)
    if out is None:
        return lambda: compiled(data, share_outputs=False)[0]  # if shared, the next call would overwrite it
    request = compiled.create_infer_request()
    request.set_input_tensor(openvino.Tensor(data, shared_memory=True))
    request.set_output_tensor(openvino.Tensor(out, shared_memory=True))
    return lambda: request.infer()


def _opencv(task: Task) -> Call:
    cv2 = importlib.import_module("cv2")
    cv2.setNumThreads(task.threads)
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


def _limit(task: Task) -> Call:
    """Write as many bytes of warm memory in the fastest way, whether the result is fresh or not."""
    return fastest(fills(np.ones(task.workload.nbytes(task.data.dtype.name), np.uint8), task.threads))


def fastest(calls: dict[str, Call]) -> Call:
    """Return the fastest of some calls, found by a short trial."""
    if len(calls) == 1:
        return next(iter(calls.values()))
    times = measure(calls, TRIAL)
    return calls[min(calls, key=lambda name: min(times[name]))]


def fills(block: NDArray[Any], threads: int) -> dict[str, Call]:
    """Return the ways to set a block of bytes to 1 on that many threads."""
    calls: dict[str, Call] = {"memset": partial(block.fill, 1)}  # writing zeros past the caches may be twice as fast
    if threads > 1:
        calls["pieces"] = in_pieces(lambda piece: piece.fill(1), block, threads)
    one = np.ones((), np.uint8)
    calls["own"] = lambda: bcast.broadcast(one, block.shape, out=block)  # past the caches if that is faster
    return calls


def in_pieces(work: Callable[[NDArray[Any]], Any], block: NDArray[Any], threads: int) -> Call:
    """Work on a piece of the block in each thread: NumPy releases the GIL."""
    own, *others = np.array_split(block, threads)
    pool = _pool(threads - 1)

    def call() -> None:
        running = [pool.submit(work, piece) for piece in others]
        work(own)
        for piece in running:
            piece.result()

    return call


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads)


def _anything(workload: Workload, dtype: str, state: str) -> bool:  # noqa: ARG001
    return True


def _not_complex(workload: Workload, dtype: str, state: str) -> bool:  # noqa: ARG001
    return dtype != "complex128"


def new_arrays(workload: Workload, dtype: str, state: str) -> bool:  # noqa: ARG001
    """Return whether a competitor that cannot write into `out` can do the workload."""
    return state == "fresh"


def _images_and_matrices(workload: Workload, dtype: str, state: str) -> bool:  # noqa: ARG001
    kinds, dtypes = {"gray", "upsample", "row", "column"}, {"uint8", "float32", "float64"}
    return workload.name.split()[0] in kinds and dtype in dtypes


@dataclass(frozen=True)
class Competitor:
    """The modules to import, the function that makes the call for a task, and the predicate of what can be done."""

    modules: tuple[str, ...]
    call: Callable[[Any], Call]
    does: Callable[[Workload, str, str], bool] = _anything

    def installed(self) -> bool:
        """Return whether all modules are installed, without importing them."""
        return all(importlib.util.find_spec(module) for module in self.modules)


COMPETITORS = {
    "bcast": Competitor(("bcast",), CALLS["bcast"]),
    "numpy": Competitor(("numpy",), CALLS["numpy"]),
    "torch": Competitor(("torch",), _torch),
    "jax": Competitor(("jax",), _jax, new_arrays),
    "onnxruntime": Competitor(("onnxruntime", "onnx"), _onnxruntime, _not_complex),
    "openvino": Competitor(("openvino",), _openvino, _not_complex),
    "opencv": Competitor(("cv2",), _opencv, _images_and_matrices),
    "numba": Competitor(("numba",), loops.numba_call),
    LIMIT: Competitor((), _limit),
}


def competitors(workload: Workload, dtype: str, state: str, among: Mapping[str, Competitor] | None = None) -> list[str]:
    """Name the installed competitors that can do the workload, bcast first and the limit last."""
    all_of_them = COMPETITORS if among is None else among
    names = [name for name, each in all_of_them.items() if each.installed() and each.does(workload, dtype, state)]
    return sorted(names, key=LIMIT.__eq__)


def version(name: str, known: Mapping[str, Competitor] = COMPETITORS) -> str:
    """Return a competitor's name and version; what follows a comma says how it was called."""
    package = name.partition(",")[0]
    module = known[package].modules[0] if package in known else package
    return f"{name} {importlib.import_module(module).__version__.partition('-')[0]}"


def prepare(task: Task, names: list[str]) -> dict[str, Call]:
    """Make the calls that do a task, and check each once against NumPy's view of the result.

    Raises
    ------
    AssertionError
        If a competitor's result is wrong.
    """
    expected = np.broadcast_to(task.lined_up, task.workload.output)
    calls = {}
    for name in names:
        if task.out is not None:
            task.out.fill(0)  # the data has no 0
        call = calls[name] = COMPETITORS[name].call(task)
        result = call()
        if name != LIMIT:
            result = np.asarray(result) if task.out is None else task.out
            if result.dtype != expected.dtype or not _equal(result, expected):
                raise AssertionError(f"{name} is wrong in {task.workload.name!r}, {task.data.dtype}")
    return calls


def _equal(result: NDArray[Any], expected: NDArray[Any]) -> bool:
    """Compare arrays in pieces, because comparing allocates another array."""
    rows = 1 + PIECE * len(expected) // expected.nbytes
    pieces = (slice(row, row + rows) for row in range(0, len(expected), rows))
    return result.shape == expected.shape and all(np.array_equal(result[rows], expected[rows]) for rows in pieces)
