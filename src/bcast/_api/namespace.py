"""The functions of `bcast.numpy`: stand-ins as in `patch_numpy`, and functions for ufuncs.

NumPy itself does not change. A stand-in takes the calls whose results surely equal NumPy's, and passes all others on;
so does a function for a ufunc. Functions that would return arrays instead of NumPy's views are left out.
"""

import copyreg
import pkgutil
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from bcast._api import patching
from bcast._api.named import FUNCTIONS
from bcast._api.patching import StandIn
from bcast._elementwise import NamedFunction

LEFT_OUT = ("broadcast_arrays",)  # a patch has it, but NumPy's function makes views
NAMES = tuple(
    name for name in patching.FUNCTION_NAMES if name not in LEFT_OUT and not name.startswith("ndarray.")
)  # names with a dot are in NumPy's submodules


def functions_of(module: ModuleType, prefix: str = "") -> dict[str, Any]:
    """Return the stand-ins for functions of a NumPy module, by their names there."""
    found: dict[str, Any] = {}
    for name in NAMES:
        owner, _, attribute = name.rpartition(".")
        if owner == prefix:
            found[attribute] = patching.stand_in_for(_own(getattr(module, attribute)), name)
    return found


def _own(function: Any) -> Any:
    """Return NumPy's function, even under a patch."""
    while type(function) is StandIn:
        function = function.original
    return function


def ufuncs_of(module: ModuleType) -> dict[str, Any]:
    """Return the functions for NumPy's ufuncs, by all their names: `abs` and `absolute` are one."""
    ufuncs = [function.ufunc for function in FUNCTIONS.values()]
    own = {ufunc: NamedFunction(ufunc, "bcast.numpy", None, _document, None) for ufunc in ufuncs}
    return {name: own[value] for name, value in vars(module).items() if isinstance(value, np.ufunc) and value in own}


def _document(ufunc: np.ufunc) -> str:
    return str(ufunc.__doc__)


def forward(module: ModuleType, name: str) -> Callable[[str], Any]:
    """Return a module's ``__getattr__`` that looks up missing names in NumPy's module."""

    def find(attribute: str) -> Any:
        try:
            return getattr(module, attribute)
        except AttributeError as error:
            words = str(error).replace(f"module {module.__name__!r}", f"module {name!r}")
        raise AttributeError(words, name=attribute)

    return find


def _reduced(stand_in: Any) -> Any:
    """Pickle a stand-in by the name of NumPy's function, which also exists without a patch."""
    original = stand_in.original
    return pkgutil.resolve_name, (f"{original.__module__}:{original.__qualname__}",)


copyreg.pickle(StandIn, _reduced)
