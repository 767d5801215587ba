"""Materialised broadcasting at the speed of memory, under the rules of NumPy, OpenVINO, ONNX and nGraph."""

from contextlib import suppress as _suppress

from bcast._elementwise import elementwise
from bcast._numpy import broadcast_arrays, broadcast_shapes, broadcast_to, meshgrid
from bcast._ops import broadcast, broadcast_like, infer_shape
from bcast._pages import memory_info, release_memory, set_idle_limit
from bcast._threads import get_num_threads, set_num_threads
from bcast._tiling import repeat, tile
from bcast._unbroadcast import unbroadcast

with _suppress(ImportError):  # threadpoolctl is not there, or too old for pools that it does not know
    from bcast import _threadpoolctl as _threadpoolctl

__version__ = "0.1.0"

__all__ = [
    "broadcast",
    "broadcast_arrays",
    "broadcast_like",
    "broadcast_shapes",
    "broadcast_to",
    "elementwise",
    "get_num_threads",
    "infer_shape",
    "memory_info",
    "meshgrid",
    "release_memory",
    "repeat",
    "set_idle_limit",
    "set_num_threads",
    "tile",
    "unbroadcast",
]
