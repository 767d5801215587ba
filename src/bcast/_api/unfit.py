"""The words of an error: why something is not a function of two operands, and what to pass instead."""

from typing import Any

import numpy as np
from numpy import ndarray

from bcast._rules.arguments import show
from bcast._runtime.arrays import is_binary

NUMPYS_WHERE = np.where  # even if it is replaced
CLIP, ROUND, AROUND = np.clip, np.round, np.around

METHODS = ("reduce", "accumulate", "reduceat", "outer", "at")  # of ufuncs: not for two operands
BUILTINS = (max, min, sum)  # Python's, for the items of one sequence or for numbers
NO_OPERANDS = ("axis", "axes", "decimals", "shape", "repeats", "reps", "shift", "dtype")  # as second arguments
PAIRWISE = {
    "max": "maximum", "amax": "maximum", "min": "minimum", "amin": "minimum", "sum": "add", "prod": "multiply",
    "any": "logical_or", "all": "logical_and",
}  # fmt: skip


def unfit_ufunc(ufunc: Any) -> str:
    """Describe a ufunc, and suggest a call to make instead; "" if it has two operands and one result."""
    if is_binary(ufunc):
        return ""
    if ufunc.nin != 1:
        return f"{ufunc.__name__} of {ufunc.nin}, of signature {ufunc.signature}"
    remedy = f"; use chain(a, np.{ufunc.__name__})" if ufunc.nout == 1 else ""
    return f"{ufunc.__name__} of one{remedy}"


def unfit_function(function: Any) -> str:
    """Do the same for an object other than a ufunc."""
    if not callable(function):
        return f"{type(function).__name__}; the function comes first" if _is_operand(function) else show(function)
    if function is CLIP:
        return "clip of three; use chain(a, (np.clip, low, high))"
    if function == NUMPYS_WHERE:
        return "where of three; use bcast.where(condition, x, y)"
    if function is ROUND or function is AROUND:
        return "round of one; use chain(a, (np.round, decimals))"
    if function in BUILTINS or _second_parameter(function) in NO_OPERANDS:
        name = name_of(function)
        return f"{name} of one{f'; use np.{PAIRWISE[name]}' if name in PAIRWISE else ''}"
    return _unfit_method(function)


def _unfit_method(function: Any) -> str:
    """Do the same for a function that may be a method of a ufunc."""
    owner = getattr(function, "__self__", None)
    if not isinstance(owner, np.ufunc) or function.__name__ not in METHODS:
        return ""
    name = owner.__name__
    own = f"np.{name}" if getattr(np, name, None) is owner else name
    return f"the method {function.__name__} of {name}; use {own}"


def _is_operand(value: Any) -> bool:
    """Return whether this may be `a` or `b`."""
    return isinstance(value, ndarray) or hasattr(type(value), "__array__") or type(value) in (list, tuple)


def _second_parameter(function: Any) -> str:
    """Return the name of the second parameter of NumPy's or bcast's function; "" if it is not known.

    Users may choose any name.
    """
    module = getattr(function, "__module__", None)
    if not isinstance(module, str) or module.partition(".")[0] not in ("numpy", "bcast"):
        return ""
    code = getattr(getattr(function, "__wrapped__", function), "__code__", None)
    return "" if code is None or code.co_argcount < 2 else code.co_varnames[1]


def name_of(function: Any) -> str:
    """Return the name of a function for a message, or the beginning of its `repr` if it has none."""
    name = getattr(function, "__name__", None)
    return name if isinstance(name, str) else show(function)
