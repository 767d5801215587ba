"""Materialised broadcasting at the speed of memory, under the rules of NumPy, OpenVINO, ONNX and nGraph."""

import sys as _sys
from contextlib import suppress as _suppress

from bcast._api.adjoints import unbroadcast, unrepeat
from bcast._api.copies import (
    broadcast,
    broadcast_arrays,
    broadcast_like,
    broadcast_shapes,
    broadcast_to,
    infer_shape,
    meshgrid,
    repeat,
    tile,
)
from bcast._api.elementwise import chain, chain_memory, elementwise, where
from bcast._api.gradients import chain_vjp
from bcast._api.named import FUNCTIONS as _FUNCTIONS
from bcast._api.nans import nanmax, nanmean, nanmin, nanstd, nansum, nanvar
from bcast._api.pairs import mean_std
from bcast._api.patching import is_patched, patch_info, patch_numpy, patched_numpy, unpatch_numpy
from bcast._api.reductions import all, any, argmax, argmin, max, min, minmax, prod
from bcast._api.statistics import mean, std, sum, var
from bcast._api.vectors import cross, matvec, norm, stack, vecdot
from bcast._runtime.core import get_num_threads, memory_info, release_memory, set_idle_limit, set_num_threads

with _suppress(ImportError):  # threadpoolctl is not there, or too old for pools that it does not know
    from bcast._runtime.controller import register_pool as _register_pool

    _register_pool()

globals().update(_FUNCTIONS)  # `add`, `sqrt` and so on, by the names of NumPy's ufuncs

__version__ = "0.1.0"

__all__ = ["broadcast", "broadcast_arrays", "broadcast_like", "broadcast_shapes", "broadcast_to", "infer_shape"]
__all__ += ["meshgrid", "repeat", "tile"]
__all__ += ["chain", "chain_memory", "chain_vjp", "elementwise", "where"]
__all__ += [*_FUNCTIONS]
__all__ += ["mean", "mean_std", "std", "sum", "unbroadcast", "unrepeat", "var"]
__all__ += ["all", "any", "argmax", "argmin", "max", "min", "minmax", "prod"]
__all__ += ["nanmax", "nanmean", "nanmin", "nanstd", "nansum", "nanvar"]
__all__ += ["cross", "matvec", "norm", "stack", "vecdot"]
__all__ += ["is_patched", "patch_info", "patch_numpy", "patched_numpy", "unpatch_numpy"]
__all__ += ["get_num_threads", "memory_info", "release_memory", "set_idle_limit", "set_num_threads"]


def __getattr__(name: str) -> object:
    """Raise an error for a missing name that suggests a replacement."""
    from bcast._api.missing import remedy_of

    remedy = remedy_of(name)
    # Without a remedy, Python finds names that are like it.
    whose = {} if remedy else {"name": name, "obj": _sys.modules[__name__]}
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{remedy}", **whose)
