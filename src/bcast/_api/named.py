"""`bcast.add`, `bcast.sqrt` and so on: the ufuncs that the element-wise core runs, each under its own name.

In: operands, and the options of `elementwise`. Out: the ufunc's result. One class makes all of them
(`NamedFunction` of `_elementwise.pyx`) from the tables below, which describe each function in words.
"""

from __future__ import annotations

from inspect import Signature, signature
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bcast._api.elementwise import elementwise, of_one
from bcast._elementwise import NamedFunction
from bcast._rules.types import Casting, DType, ElementwiseMode


class Row(NamedTuple):
    """A description of a function in words, and an example: its operands, and the items of the result."""

    summary: str
    operands: str
    result: str


BINARY: dict[str, Row] = {
    "add": Row("Add `a` and `b`", "[[1], [2]], [10, 20]", "[[11, 21], [12, 22]]"),
    "subtract": Row("Subtract `b` from `a`", "[[1], [2]], [10, 20]", "[[-9, -19], [-8, -18]]"),
    "multiply": Row("Multiply `a` by `b`", "[[1], [2]], [10, 20]", "[[10, 20], [20, 40]]"),
    "divide": Row("Divide `a` by `b`, as floats", "[[1], [2]], [2, 4]", "[[0.5, 0.25], [1.0, 0.5]]"),
    "floor_divide": Row("Divide `a` by `b`, rounded down", "[[7], [-7]], [2, 4]", "[[3, 1], [-4, -2]]"),
    "remainder": Row(
        "Find the remainder of `a` divided by `b`, with the sign of `b`", "[[7], [-7]], [2, 4]", "[[1, 3], [1, 1]]"
    ),
    "fmod": Row(
        "Find the remainder of `a` divided by `b`, with the sign of `a`", "[[7], [-7]], [2, 4]", "[[1, 3], [-1, -3]]"
    ),
    "power": Row("Raise `a` to the power `b`", "[[2], [3]], [2, 3]", "[[4, 8], [9, 27]]"),
    "float_power": Row(
        "Raise `a` to the power `b`, as float64 or complex128 at least",
        "[[2], [4]], [2, -1]",
        "[[4.0, 0.5], [16.0, 0.25]]",
    ),
    "maximum": Row("Find the larger of `a` and `b`; NaN if either is NaN", "[[1], [5]], [2, 8]", "[[2, 8], [5, 8]]"),
    "minimum": Row("Find the smaller of `a` and `b`; NaN if either is NaN", "[[1], [5]], [2, 8]", "[[1, 1], [2, 5]]"),
    "fmax": Row(
        "Find the larger of `a` and `b`, ignoring a NaN", "[[1.0], [np.nan]], [2, 8]", "[[2.0, 8.0], [2.0, 8.0]]"
    ),
    "fmin": Row(
        "Find the smaller of `a` and `b`, ignoring a NaN", "[[1.0], [np.nan]], [2, 8]", "[[1.0, 1.0], [2.0, 8.0]]"
    ),
    "copysign": Row("Give `a` the sign of `b`", "[[1], [2]], [-1, 1]", "[[-1.0, 1.0], [-2.0, 2.0]]"),
    "heaviside": Row(
        "Compute the Heaviside step function of `a`, with the value `b` at 0",
        "[[-1], [0]], [0.5, 1]",
        "[[0.0, 0.0], [0.5, 1.0]]",
    ),
    "nextafter": Row(
        "Find the next float after `a` towards `b`", "[1.0], [2, 0]", "[1.0000000000000002, 0.9999999999999999]"
    ),
    "hypot": Row("Compute the hypotenuse of a right triangle with legs `a` and `b`", "[3, 8], [4, 6]", "[5.0, 10.0]"),
    "arctan2": Row(
        "Compute the angle of the point with y coordinate `a` and x coordinate `b`, in radians",
        "[0, 1], [1, 0]",
        "[0.0, 1.5707963267948966]",
    ),
    "logaddexp": Row("Compute ``log(exp(a) + exp(b))``", "[[0], [1]], [-np.inf, -np.inf]", "[[0.0, 0.0], [1.0, 1.0]]"),
    "logaddexp2": Row("Compute ``log2(2**a + 2**b)``", "[0, 1], [0, 1]", "[1.0, 2.0]"),
    "gcd": Row("Find the greatest common divisor of `a` and `b`", "[[12], [15]], [8, 9]", "[[4, 3], [1, 3]]"),
    "lcm": Row("Find the least common multiple of `a` and `b`", "[[12], [15]], [8, 9]", "[[24, 36], [120, 45]]"),
    "equal": Row("Compare `a` and `b`: ``a == b``", "[[1], [2]], [1, 2]", "[[True, False], [False, True]]"),
    "not_equal": Row("Compare `a` and `b`: ``a != b``", "[[1], [2]], [1, 2]", "[[False, True], [True, False]]"),
    "less": Row("Compare `a` and `b`: ``a < b``", "[[1], [2]], [1, 2]", "[[False, True], [False, False]]"),
    "less_equal": Row("Compare `a` and `b`: ``a <= b``", "[[1], [2]], [1, 2]", "[[True, True], [False, True]]"),
    "greater": Row("Compare `a` and `b`: ``a > b``", "[[1], [2]], [1, 2]", "[[False, False], [True, False]]"),
    "greater_equal": Row("Compare `a` and `b`: ``a >= b``", "[[1], [2]], [1, 2]", "[[True, False], [True, True]]"),
    "logical_and": Row(
        "Find where both `a` and `b` are true", "[[True], [False]], [True, False]", "[[True, False], [False, False]]"
    ),
    "logical_or": Row(
        "Find where `a` or `b` is true", "[[True], [False]], [True, False]", "[[True, True], [True, False]]"
    ),
    "logical_xor": Row(
        "Find where exactly one of `a` and `b` is true",
        "[[True], [False]], [True, False]",
        "[[False, True], [True, False]]",
    ),
    "bitwise_and": Row("Combine the bits of `a` and `b` by AND", "[[12], [6]], [10, 3]", "[[8, 0], [2, 2]]"),
    "bitwise_or": Row("Combine the bits of `a` and `b` by OR", "[[12], [6]], [10, 3]", "[[14, 15], [14, 7]]"),
    "bitwise_xor": Row("Combine the bits of `a` and `b` by XOR", "[[12], [6]], [10, 3]", "[[6, 15], [12, 5]]"),
    "left_shift": Row("Shift the bits of `a` to the left by `b` places", "[[1], [3]], [1, 4]", "[[2, 16], [6, 48]]"),
    "right_shift": Row("Shift the bits of `a` to the right by `b` places", "[[16], [48]], [1, 4]", "[[8, 1], [24, 3]]"),
}
UNARY: dict[str, Row] = {
    "negative": Row("Negate `x`", "[1, -2]", "[-1, 2]"),
    "positive": Row("Copy `x`, with its sign", "[1, -2]", "[1, -2]"),
    "absolute": Row("Compute the absolute value of `x`", "[1, -2]", "[1, 2]"),
    "fabs": Row("Compute the absolute value of `x`, as floats", "[1, -2]", "[1.0, 2.0]"),
    "sign": Row("Find the sign of `x`: -1, 0 or 1", "[3, 0, -2]", "[1, 0, -1]"),
    "signbit": Row(
        "Find where the sign bit of `x` is set: for negative numbers and -0.0", "[1.0, -0.0]", "[False, True]"
    ),
    "conjugate": Row("Compute the complex conjugate of `x`", "[1 + 2j, 3 - 4j]", "[(1-2j), (3+4j)]"),
    "rint": Row("Round `x` to the nearest integers, halves to even", "[0.4, 0.5, 1.5]", "[0.0, 0.0, 2.0]"),
    "floor": Row("Round `x` down", "[1.5, -1.5]", "[1.0, -2.0]"),
    "ceil": Row("Round `x` up", "[1.5, -1.5]", "[2.0, -1.0]"),
    "trunc": Row("Round `x` towards 0", "[1.5, -1.5]", "[1.0, -1.0]"),
    "square": Row("Square `x`", "[1, 2, 3]", "[1, 4, 9]"),
    "sqrt": Row("Compute the square root of `x`", "[1, 4, 9]", "[1.0, 2.0, 3.0]"),
    "cbrt": Row("Compute the cube root of `x`", "[1.0, 8.0]", "[1.0, 2.0]"),
    "reciprocal": Row("Compute ``1 / x``; integers stay integers", "[1.0, 2.0, 4.0]", "[1.0, 0.5, 0.25]"),
    "exp": Row("Compute ``e**x``", "[0.0]", "[1.0]"),
    "exp2": Row("Compute ``2**x``", "[0, 1, 10]", "[1.0, 2.0, 1024.0]"),
    "expm1": Row("Compute ``e**x - 1``, accurately for small `x`", "[0.0, 1e-10]", "[0.0, 1.00000000005e-10]"),
    "log": Row("Compute the natural logarithm of `x`", "[1.0]", "[0.0]"),
    "log2": Row("Compute the base-2 logarithm of `x`", "[1, 8]", "[0.0, 3.0]"),
    "log10": Row("Compute the base-10 logarithm of `x`", "[1, 100]", "[0.0, 2.0]"),
    "log1p": Row("Compute ``log(1 + x)``, accurately for small `x`", "[0.0, 1e-10]", "[0.0, 9.999999999500001e-11]"),
    "tanh": Row("Compute the hyperbolic tangent of `x`", "[0.0, np.inf]", "[0.0, 1.0]"),
    "isnan": Row("Find where `x` is NaN", "[1.0, np.nan, np.inf]", "[False, True, False]"),
    "isinf": Row("Find where `x` is infinite", "[1.0, np.nan, np.inf]", "[False, False, True]"),
    "isfinite": Row("Find where `x` is neither infinite nor NaN", "[1.0, np.nan, np.inf]", "[True, False, False]"),
    "logical_not": Row("Find where `x` is false", "[True, False]", "[False, True]"),
    "invert": Row("Invert the bits of `x`", "[0, 5]", "[-1, -6]"),
}

HOW = """{lead}
Parameters
----------
{operands}
out : ndarray, optional
    The array to write the result into, of exactly {shape}. It may be an operand, or overlap one.
{rule}dtype, casting
    The dtype of the computation and the result, and the allowed conversions, as in `numpy.{{name}}`.
where : array_like of bool, optional
    Where to compute; elsewhere, `out` stays unchanged.

Returns
-------
ndarray or scalar
    An array of {shape}, with the dtype of the result of `numpy.{{name}}`; or `out`, if given. A scalar if
    {scalars}.

Raises
------
{errors}

See Also
--------
{also}chain : Several functions in one pass.

Notes
-----
{notes}

Examples
--------
"""
HOW_BINARY = HOW.format(
    lead="\n`a` and `b` are broadcast under the rule of `mode`.\n",
    operands="""a, b : array_like
    The operands. Their shapes must fit under the rule of `mode`: by default, axes of length 1 stretch in both.""",
    shape="the broadcast shape",
    rule="""mode : {{'numpy', 'none', 'unidirectional', 'pdpd'}}, optional
    The broadcasting rule, as in `elementwise`. The default is 'pdpd' if `axis` is given, and otherwise 'numpy'.
axis : int, optional
    In mode 'pdpd', the axis of `a` at which `b` starts.
""",
    scalars="neither operand has axes",
    errors="""ValueError, numpy.exceptions.AxisError, TypeError
    As in `elementwise`: if the shapes do not fit, or `numpy.{name}` does not support the dtypes.""",
    also="elementwise : The same for any function of two operands.\n",
    notes="""This function is ``elementwise(np.{name}, a, b)`` with the same options. Its rules come from NumPy, ONNX
(multidirectional and unidirectional broadcasting), OpenVINO and PaddlePaddle ('pdpd'). Results match NumPy's bit for
bit.""",
)
HOW_UNARY = HOW.format(
    lead="",
    operands="x : array_like\n    The operand, of any shape.",
    shape="the shape of `x`",
    rule="",
    scalars="`x` has no axes",
    errors="ValueError, TypeError\n    If `out` does not fit; if `numpy.{name}` does not support the dtype.",
    also="",
    notes="""Results match `numpy.{name}` bit for bit, and their axes have the same order in memory. Large arrays are
computed on several threads, and arrays with short rows in memory, such as ``x[:, :3]``, block by block. Small arrays
take as long as in NumPy.""",
)


def document(ufunc: np.ufunc) -> str:
    """Return the docstring of the function under a ufunc's name."""
    name = ufunc.__name__
    row = BINARY.get(name) or UNARY[name]
    how = HOW_BINARY if name in BINARY else HOW_UNARY
    imports = ">>> import numpy as np\n" if "np." in row.operands else ""
    example = f">>> import bcast\n>>> bcast.{name}({row.operands}).tolist()\n{row.result}\n"
    return f"{row.summary}, item by item.\n{how.format(name=name)}{imports}{example}"


# Users give the arguments of such functions one by one.
def _of_two(
    a: ArrayLike,
    b: ArrayLike,
    /,
    out: Any = None,
    *,
    mode: ElementwiseMode | None = None,
    axis: int = -1,
    dtype: DType = None,
    casting: Casting = "same_kind",
    where: Any = True,
) -> Any:
    """Define the signature of functions of two operands."""


def _of_one(
    x: ArrayLike,
    /,
    out: Any = None,
    *,
    dtype: DType = None,
    casting: Casting = "same_kind",
    where: Any = True,
) -> Any:
    """Define the signature of functions of one operand."""


def _named(names: dict[str, Row], otherwise: Any, declared: Signature) -> dict[str, NamedFunction]:
    """Return the functions of a table by their names."""
    return {name: NamedFunction(getattr(np, name), __name__, otherwise, document, declared) for name in names}


FUNCTIONS = _named(BINARY, elementwise, signature(_of_two)) | _named(UNARY, of_one, signature(_of_one))
globals().update(FUNCTIONS)  # pickles find them here


def __getattr__(name: str) -> Any:
    """Let doctest find the examples, which are only written on demand."""
    if name == "__test__":
        return {each: document(function.ufunc) for each, function in FUNCTIONS.items()}
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
