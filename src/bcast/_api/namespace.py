"""What `bcast.numpy` has in the place of NumPy's functions: the stand-ins of `patch_numpy`, and functions for ufuncs.

Nothing of NumPy's changes. A stand-in takes the calls that are sure to give what NumPy gives, and passes all others on;
so does a function for a ufunc. Functions that would make arrays where NumPy makes views are not among them.
"""

import copyreg
import pkgutil
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from bcast._api import patching
from bcast._api.named import FUNCTIONS
from bcast._api.patching import Place, StandIn
from bcast._elementwise import NamedFunction

# What takes the calls of each function, with the arguments of its place; names with a dot are of a module of NumPy's.
PLACES: dict[str, dict[str, Any]] = {
    "tile": {"reading": patching.read_for_tile, "refusal": patching.refusal_of_tile},
    "repeat": {"refusal": patching.refusal_of_repeat},
    "meshgrid": {},
    "where": {"least": 3},
    "sum": {},
    "mean": {},
    "var": {},
    "std": {},
    "max": {},
    "min": {},
    "any": {},
    "all": {},
    "argmax": {},
    "argmin": {},
    "prod": {},
    "nansum": {},
    "nanmean": {},
    "nanvar": {},
    "nanstd": {},
    "nanmax": {},
    "nanmin": {},
    "stack": {"least": 1, "of_several": True},
    "dstack": {"least": 1, "of_several": True},
    "vecdot": {"least": 2},
    "matvec": {"least": 2},
    "cross": {"least": 2},
    "linalg.norm": {"least": 1},
}
LEFT_OUT = ("broadcast_arrays",)  # of those that patches know: NumPy's gives views


def functions_of(module: ModuleType, prefix: str = "") -> dict[str, Any]:
    """Return what stands in the place of functions of a module of NumPy's, by their names there."""
    found: dict[str, Any] = {}
    for name, options in PLACES.items():
        owner, _, attribute = name.rpartition(".")
        if owner == prefix and hasattr(module, attribute):  # NumPy 2.0 lacks some
            take = getattr(patching, f"take_{attribute}")
            found[attribute] = StandIn(_own(getattr(module, attribute)), Place(take, **options))
    return found


def _own(function: Any) -> Any:
    """Return NumPy's function, whatever has been patched."""
    while type(function) is StandIn:
        function = function.original
    return function


def ufuncs_of(module: ModuleType) -> dict[str, Any]:
    """Return what stands in the place of NumPy's ufuncs, by all their names: `abs` and `absolute` are one."""
    ufuncs = [function.ufunc for function in FUNCTIONS.values()]
    own = {ufunc: NamedFunction(ufunc, "bcast.numpy", None, _document, None) for ufunc in ufuncs}
    return {name: own[value] for name, value in vars(module).items() if isinstance(value, np.ufunc) and value in own}


def _document(ufunc: np.ufunc) -> str:
    return str(ufunc.__doc__)


def forward(module: ModuleType, name: str) -> Callable[[str], Any]:
    """Return a module's ``__getattr__`` that finds what it lacks in NumPy's module."""

    def find(attribute: str) -> Any:
        try:
            return getattr(module, attribute)
        except AttributeError as error:
            words = str(error).replace(f"module {module.__name__!r}", f"module {name!r}")
        raise AttributeError(words, name=attribute)

    return find


def _reduced(stand_in: Any) -> Any:
    """Pickle a stand-in by the name of what it stands for, which is found where no patch is, too."""
    original = stand_in.original
    return pkgutil.resolve_name, (f"{original.__module__}:{original.__qualname__}",)


copyreg.pickle(StandIn, _reduced)
