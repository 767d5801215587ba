"""ONNX's broadcasting operators, for the reference evaluator of the onnx package.

``ReferenceEvaluator(model, new_ops=bcast.onnx.OPS)`` runs a model with these operators instead of the evaluator's own.
They follow the specification where the evaluator does not: Mean broadcasts in all directions; Gemm and PRelu broadcast
in one direction only; Clip makes infinities finite if it has no bound; inputs must have the types that the schema
allows; and functions of integers are computed in integers.

This module needs the extra ``onnx``. It follows the rules of opset 7 and later; earlier operators raise an error.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bcast import broadcast, broadcast_shapes, chain, elementwise, infer_shape, tile, where
from bcast._rules.arguments import show
from bcast._runtime.arrays import counted, is_masked
from bcast._runtime.errors import quietly

try:
    from onnx import NodeProto
    from onnx.defs import OpSchema, get_schema
    from onnx.reference.op_run import OpRun, RuntimeTypeError
except ModuleNotFoundError as error:
    if error.name != "onnx":
        raise
    raise ImportError('bcast.onnx needs the onnx package: pip install "bcast[onnx]"', name="onnx") from error

__all__ = ["OPS", "Add", "And", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Clip", "Div", "Equal", "Expand"]
__all__ += ["Gemm", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Mean", "Min", "Mod", "Mul", "Or"]
__all__ += ["PRelu", "Pow", "Sub", "Sum", "Tile", "Where", "Xor"]

Array: TypeAlias = NDArray[Any]


class _Operator(OpRun):
    """A node of the graph: it checks the types of its inputs, then computes by IEEE 754, without warnings."""

    since: ClassVar[int]  # the first version of the operator that broadcasts as implemented here
    function: ClassVar[Callable[..., Any]]  # a function of the inputs and attributes
    earlier: ClassVar[tuple[int, Callable[..., Any]] | None]  # the function of versions before this one

    def __init__(self, onnx_node: NodeProto, run_params: dict[str, Any]) -> None:
        opset = run_params["opsets"][onnx_node.domain]
        schema = get_schema(onnx_node.op_type, opset, onnx_node.domain)
        if schema.since_version < self.since:
            expected = f"version {self.since} of the operator or later, whose broadcasting it follows"
            got = f"opset {opset}; onnx.version_converter can update it"
            raise NotImplementedError(f"{onnx_node.op_type} expected {expected}, got {got}")

        super().__init__(onnx_node, run_params, schema)

        is_earlier = self.earlier is not None and schema.since_version < self.earlier[0]
        self._function = self.earlier[1] if self.earlier and is_earlier else type(self).function

        parameters = list(schema.inputs)
        self._parameters = parameters + parameters[-1:] * len(onnx_node.input)  # the last one may be variadic

    def _run(self, *inputs: Any, **attributes: Any) -> tuple[Any, ...]:
        # Other operators return scalars, and a subclass may misstate its dtype.
        arrays = [np.asarray(value) if _is_plain(value) else value for value in inputs]
        try:
            self._check_types(arrays)
            return (np.asarray(quietly(partial(self._function, **attributes), *arrays)),)
        except (TypeError, ValueError) as error:
            # The evaluator would report another TypeError without its message.
            kind = RuntimeTypeError if isinstance(error, TypeError) else ValueError
            name = f"{self.op_type} {self.onnx_node.name!r}" if self.onnx_node.name else self.op_type
            triples = zip(self._parameters, self.onnx_node.input, arrays, strict=False)
            got = [f"`{p.name}` {given!r} of shape {getattr(x, 'shape', 'unknown')}" for p, given, x in triples]
            raise kind(f"{name}: {error}; its inputs are {', '.join(got)}") from error

    def _check_types(self, inputs: Sequence[Any]) -> None:
        """Check inputs against the schema: which types each may have, and which must have the same type."""
        bound: dict[str, tuple[str, str]] = {}  # a type variable -> the first input that has it, and its type
        for parameter, value in zip(self._parameters, inputs, strict=False):
            if value is None and parameter.option == OpSchema.FormalParameterOption.Optional:
                continue

            kind = _type_of(value)
            if kind not in parameter.types:
                allowed = ", ".join(sorted(parameter.types))
                raise TypeError(f"`{parameter.name}` expected one of {allowed}, got {kind}")

            first, expected = bound.setdefault(parameter.type_str, (parameter.name, kind))
            if kind != expected:
                raise TypeError(f"`{parameter.name}` expected the type of `{first}`, {expected}, got {kind}")


def _is_plain(value: Any) -> bool:
    """Return whether a value is an array or a NumPy scalar that loses nothing as an array of the base class."""
    return isinstance(value, (np.ndarray, np.generic)) and not is_masked(value)


def _type_of(value: Any) -> str:
    """Return ONNX's name for an array's type, such as ``"tensor(float)"``."""
    if not _is_plain(value):
        return type(value).__name__
    if value.dtype.kind in "OSTU":
        return "tensor(string)"
    name = value.dtype.name
    return f"tensor({ {'float32': 'float', 'float64': 'double'}.get(name, name) })"


def _tile(data: Array, repeats: Array) -> Array:
    """Tile with one number of repetitions for each axis."""
    if repeats.shape != (data.ndim,) or (repeats < 0).any():
        expected = f"{counted(data.ndim, 'count', 'counts')}, one for each axis of data of shape {data.shape}"
        raise ValueError(f"`repeats` expected {expected}, got {show(repeats.tolist())}")
    return tile(data, repeats)


def _divide(a: Array, b: Array) -> Any:
    """Divide; integers first lose their remainder, which has the sign of `a`, so that the division is exact."""
    if a.dtype.kind not in "iu":
        return elementwise(np.divide, a, b)
    quotient = np.asarray(elementwise(np.fmod, a, b))
    elementwise(np.subtract, a, quotient, out=quotient)
    return elementwise(np.floor_divide, quotient, b, out=quotient)


def _power(base: Array, exponent: Array) -> Array:
    """Compute the power in a type that is wide enough for both, and write it in the base's type."""
    power = np.empty(broadcast_shapes(base.shape, exponent.shape), base.dtype)
    kinds = base.dtype.kind + exponent.dtype.kind

    if set(kinds) <= set("iu"):
        # Modulo 2**64, which holds every narrower product. It also gives 1 and -1 their negative powers.
        elementwise(np.power, base, exponent, out=power, dtype=np.uint64, casting="unsafe")
        if kinds[1] == "i" and (exponent < 0).any():
            np.copyto(power, 0, where=(exponent < 0) & (base != 1) & (base != -1))
        return power

    wide = max(base.itemsize, exponent.itemsize) == 8 or "i" in kinds or "u" in kinds
    dtype = np.float64 if wide else np.float32
    return elementwise(np.power, base, exponent, out=power, dtype=dtype, casting="unsafe")


def _modulo(a: Array, b: Array, *, fmod: int) -> Any:
    """Return the remainder, with the sign of `b`; with `fmod`, with the sign of `a`, like C's function `fmod`."""
    if fmod not in (0, 1):
        raise ValueError(f"`fmod` expected 0 or 1, got {fmod}")
    return elementwise(np.fmod if fmod else np.remainder, a, b)


def _modulo_of_integers(a: Array, b: Array, *, fmod: int) -> Any:
    """Do the same before opset 28, in which floats have no remainder with the sign of `b`."""
    if fmod == 0 and a.dtype.kind not in "iu":
        raise TypeError(f"`fmod` expected 1 for {_type_of(a)}, got 0, which needs opset 28 or later")
    return _modulo(a, b, fmod=fmod)


def _shift(x: Array, bits: Array, *, direction: str) -> Any:
    """Shift integers. A shift by all bits, or by a negative number, gives 0, or -1 for negative integers."""
    if direction not in ("LEFT", "RIGHT"):
        raise ValueError(f"`direction` expected LEFT or RIGHT, got {direction}")
    return elementwise(np.left_shift if direction == "LEFT" else np.right_shift, x, bits)


def _clip(data: Array, least: Any = None, most: Any = None, **attributes: float) -> Array:
    """Limit `data` by `least`, then by `most`, each a scalar or None; before opset 11, they are attributes.

    Where there is none, floats are limited by the largest that is finite, which infinities then become.
    """
    bounds = {"min": least, "max": most, **attributes}
    steps: list[Any] = []
    for name, ufunc, infinity in (("min", np.maximum, -np.inf), ("max", np.minimum, np.inf)):
        bound = bounds[name]
        if bound is None:
            if data.dtype.kind in "iu":
                continue
            bound = np.nextafter(np.asarray(infinity, data.dtype), np.zeros((), data.dtype))

        if np.shape(bound) not in ((), (1,)):
            raise ValueError(f"`{name}` expected a scalar, got shape {np.shape(bound)}")
        steps.append((ufunc, np.asarray(bound, data.dtype).reshape(())))

    return chain(data, *steps)


def _of_all(ufunc: np.ufunc, first: Array, *others: Array) -> Array:
    """Apply a ufunc to one array or more, from left to right in one pass."""
    return chain(first, *[(ufunc, other) for other in others])


def _total(*inputs: Array, steps: Sequence[Any] = ()) -> Array:
    """Add up the inputs, then run more steps; halves in single precision: partial sums may leave their range."""
    own = inputs[0].dtype
    terms = [(np.add, other) for other in inputs[1:]]
    out = np.empty(broadcast_shapes(*[each.shape for each in inputs]), own)
    return chain(inputs[0], *terms, *steps, dtype=np.float32 if own.itemsize == 2 else own, out=out)


# The parameters come one by one, with ONNX's names.
def _gemm(a: Array, b: Array, c: Array | None = None, *, alpha: float, beta: float, transA: int, transB: int) -> Array:
    """Multiply matrices: halves in single precision, and integers as integers."""
    dtype = a.dtype
    a, b = _factors(a, b, transA, transB)
    if c is not None:
        infer_shape(c.shape, (a.shape[0], b.shape[1]))  # an error even if beta is 0
    product = np.matmul(a, b)

    alpha, beta = _scale_of(dtype, alpha), _scale_of(dtype, beta)
    steps: list[Any] = [] if alpha == 1 else [(np.multiply, alpha)]
    if c is not None and beta != 0:  # otherwise it is not read
        steps.append((np.add, c if beta == 1 else c * beta))

    out = product if product.dtype == dtype else np.empty(product.shape, dtype)
    return chain(product, *steps, casting="unsafe", mode="unidirectional", out=out)


def _factors(a: Array, b: Array, transA: int, transB: int) -> tuple[Array, Array]:
    """Return matrices to multiply: transposed as ONNX says, and halves in single precision."""
    for name, factor in (("A", a), ("B", b)):
        if factor.ndim != 2:
            raise ValueError(f"`{name}` expected 2 axes, got {factor.ndim}: shape {factor.shape}")

    a, b = a.T if transA else a, b.T if transB else b
    if a.shape[1] != b.shape[0]:
        raise ValueError(f"`B` expected a shape that can be multiplied with {a.shape}, got {b.shape}")
    if a.dtype.kind not in "iu" and a.dtype.itemsize == 2:
        return a.astype(np.float32), b.astype(np.float32)
    return a, b


def _scale_of(dtype: np.dtype[Any], scale: float) -> float:
    """Return a scale as an integer if it is whole, so that integers stay integers."""
    return int(scale) if dtype.kind in "iu" and float(scale).is_integer() else scale


def _prelu(x: Array, slope: Array) -> Array:
    return where(np.less(x, 0), chain(x, (np.multiply, slope), mode="unidirectional"), x)


def _made(
    name: str,
    function: Callable[..., Any],
    note: str = "",
    since: int = 7,
    earlier: tuple[int, Callable[..., Any]] | None = None,
) -> type[_Operator]:
    """Return the operator that applies a function."""
    content = {"function": staticmethod(function), "since": since, "earlier": earlier, "__doc__": f"ONNX {name}{note}."}
    return type(name, (_Operator,), {**content, "__module__": __name__})


# Multidirectional operators of two inputs.
Add = _made("Add", partial(elementwise, np.add), "; integers wrap")
Sub = _made("Sub", partial(elementwise, np.subtract), "; integers wrap")
Mul = _made("Mul", partial(elementwise, np.multiply), "; integers wrap")
Div = _made("Div", _divide, "; quotients of integers are truncated toward zero, and 0 if the divisor is 0")
Pow = _made("Pow", _power, ", in the base's type; integers wrap, and their negative powers are truncated toward zero")
Equal = _made("Equal", partial(elementwise, np.equal), ", also for strings")
Greater = _made("Greater", partial(elementwise, np.greater))
Less = _made("Less", partial(elementwise, np.less))
GreaterOrEqual = _made("GreaterOrEqual", partial(elementwise, np.greater_equal), since=12)
LessOrEqual = _made("LessOrEqual", partial(elementwise, np.less_equal), since=12)
And = _made("And", partial(elementwise, np.logical_and), ", for booleans only")
Or = _made("Or", partial(elementwise, np.logical_or), ", for booleans only")
Xor = _made("Xor", partial(elementwise, np.logical_xor), ", for booleans only")
BitwiseAnd = _made("BitwiseAnd", partial(elementwise, np.bitwise_and), ", for integers only", 18)
BitwiseOr = _made("BitwiseOr", partial(elementwise, np.bitwise_or), ", for integers only", 18)
BitwiseXor = _made("BitwiseXor", partial(elementwise, np.bitwise_xor), ", for integers only", 18)
BitShift = _made("BitShift", _shift, "; a shift by all bits or more leaves 0, or -1 if the sign is shifted in", 11)
Mod = _made(
    "Mod",
    _modulo,
    ", with the sign of the divisor, or where `fmod` is 1 of the dividend; 0 if the divisor is the integer 0. Before "
    "opset 28, floats need `fmod`",
    10,
    (28, _modulo_of_integers),
)

# Multidirectional operators of more inputs.
Max = _made("Max", partial(_of_all, np.maximum), " of one input or more; NaN wins", 8)
Min = _made("Min", partial(_of_all, np.minimum), " of one input or more; NaN wins", 8)
Sum = _made("Sum", _total, " of one input or more; halves are added in single precision", 8)
Mean = _made("Mean", lambda *xs: _total(*xs, steps=[(np.divide, float(len(xs)))]), " of inputs, added up as in Sum", 8)
Clip = _made(
    "Clip", _clip, " by scalars, by default the largest finite numbers; ``max`` wins over ``min``, NaN over both", 6
)
Where = _made("Where", where, "; all three inputs broadcast")

# Unidirectional operators, and those that copy.
Gemm = _made("Gemm", _gemm, ": only ``C`` broadcasts. Halves are computed in single precision, integers as integers")
PRelu = _made("PRelu", _prelu, ": only the slope broadcasts")
Expand = _made("Expand", partial(broadcast, mode="bidirectional"), ": `bcast.broadcast` in mode 'bidirectional'")
Tile = _made("Tile", _tile, ": `bcast.tile` with one number of repetitions for each axis", 6)

OPS: list[type[OpRun]] = [globals()[name] for name in __all__ if name != "OPS"]
