"""Names in NumPy that bcast lacks: what to write instead, for the error message."""

import numpy as np

from bcast._api.named import FUNCTIONS

SUBMODULES = ("dask", "numpy", "onnx", "typing")
STEPS = {"clip": "(np.clip, low, high)", "round": "np.round", "around": "np.around"}  # steps other than ufuncs


def remedy_of(name: str) -> str:
    """Suggest a replacement for a name that bcast lacks; return nothing if none is known."""
    if name in SUBMODULES:
        return f"; import bcast.{name} first"
    if name.startswith("_") or name not in dir(np):  # it also lists names that NumPy imports on first use
        return ""
    if name in STEPS:
        return f"; use bcast.chain(a, {STEPS[name]})"
    found = vars(np).get(name)
    if isinstance(found, np.ufunc) and found.__name__ in FUNCTIONS:
        return f"; use bcast.{found.__name__}"
    if isinstance(found, np.ufunc) and found.signature is None:
        if found.nin == 2:
            return f"; use bcast.elementwise(np.{name}, a, b)"
        if found.nin == found.nout == 1:
            return f"; use bcast.chain(a, np.{name})"
    return f"; use numpy.{name}"
