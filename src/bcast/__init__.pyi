from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, Never, Protocol, SupportsIndex, TypedDict, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from typing_extensions import TypeVar

from bcast._api.chains.stages import ChainMemory
from bcast._api.patching import is_patched, patch_info, patch_numpy, patched_numpy, unpatch_numpy
from bcast._rules.types import ChainCasting, DType, SizesLike
from bcast._runtime.core import get_num_threads, memory_info, release_memory, set_idle_limit, set_num_threads
from bcast.typing import AxesLike, Casting, CountsLike, ElementwiseMode, Indexing, Mode, ShapeLike

__version__: str
__all__ = ["broadcast", "broadcast_arrays", "broadcast_like", "broadcast_shapes", "broadcast_to", "infer_shape"]
__all__ += ["meshgrid", "repeat", "tile"]
__all__ += ["chain", "chain_memory", "chain_vjp", "elementwise", "where"]
__all__ += [
    "all",
    "any",
    "argmax",
    "argmin",
    "max",
    "mean",
    "mean_std",
    "min",
    "minmax",
    "nanmax",
    "nanmean",
    "nanmin",
    "nanstd",
    "nansum",
    "nanvar",
    "prod",
    "std",
    "sum",
    "unbroadcast",
    "unrepeat",
    "var",
]
__all__ += [
    "absolute",
    "add",
    "arctan2",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "cbrt",
    "ceil",
    "conjugate",
    "copysign",
    "divide",
    "equal",
    "exp",
    "exp2",
    "expm1",
    "fabs",
    "float_power",
    "floor",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "gcd",
    "greater",
    "greater_equal",
    "heaviside",
    "hypot",
    "invert",
    "isfinite",
    "isinf",
    "isnan",
    "lcm",
    "left_shift",
    "less",
    "less_equal",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logaddexp2",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "multiply",
    "negative",
    "nextafter",
    "not_equal",
    "positive",
    "power",
    "reciprocal",
    "remainder",
    "right_shift",
    "rint",
    "sign",
    "signbit",
    "sqrt",
    "square",
    "subtract",
    "tanh",
    "trunc",
]
__all__ += ["cross", "matvec", "norm", "stack", "vecdot"]
__all__ += ["is_patched", "patch_info", "patch_numpy", "patched_numpy", "unpatch_numpy"]
__all__ += ["get_num_threads", "memory_info", "release_memory", "set_idle_limit", "set_num_threads"]

_ScalarT = TypeVar("_ScalarT", bound=np.generic)
_ScalarT_co = TypeVar("_ScalarT_co", bound=np.generic, covariant=True)
_ResultT = TypeVar("_ResultT")

class _Data(Protocol[_ScalarT_co]):
    """An array or a scalar of NumPy's, or what is converted to one, of a known dtype."""

    def __array__(self) -> np.ndarray[Any, np.dtype[_ScalarT_co]]: ...

class _Memory(Protocol):
    """An array, or a tensor of another library in the CPU's memory."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

class _OfOneResult(Protocol):
    """A ufunc that returns one array."""

    @property
    def nout(self) -> Literal[1]: ...

class _Comparison(_OfOneResult, Protocol):
    """A ufunc that returns bools."""

    @property
    def __name__(self) -> Literal["equal", "greater", "greater_equal", "less", "less_equal", "not_equal"]: ...

class _Function(Protocol):
    """A function that is no ufunc, such as `numpy.clip` and `numpy.round`."""

    @property
    def __code__(self) -> Any: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

class _Named(Protocol):
    """What functions under the names of ufuncs have of these."""

    ufunc: np.ufunc
    def __getattr__(self, name: str) -> Any: ...

class _OptionsOfOne(TypedDict, total=False):
    """Options of functions of one operand, by name."""

    dtype: DType
    casting: Casting
    where: ArrayLike

class _OptionsOfTwo(_OptionsOfOne, total=False):
    """Options of functions of two operands, by name."""

    mode: ElementwiseMode | None
    axis: int

class _Binary(_Named, Protocol):
    @overload
    def __call__(self, a: _Scalar, b: _Scalar, /, out: None = None, **options: Unpack[_OptionsOfTwo]) -> Any: ...
    @overload
    def __call__(
        self, a: ArrayLike, b: ArrayLike, /, out: _OutT | None = None, **options: Unpack[_OptionsOfTwo]
    ) -> _OutT: ...

class _BinaryTruth(_Named, Protocol):
    @overload
    def __call__(self, a: _Scalar, b: _Scalar, /, out: None = None, **options: Unpack[_OptionsOfTwo]) -> Any: ...
    @overload
    def __call__(
        self, a: ArrayLike, b: ArrayLike, /, out: None = None, **options: Unpack[_OptionsOfTwo]
    ) -> NDArray[np.bool]: ...
    @overload
    def __call__(self, a: ArrayLike, b: ArrayLike, /, out: _OutT, **options: Unpack[_OptionsOfTwo]) -> _OutT: ...

class _Unary(_Named, Protocol):
    @overload
    def __call__(self, x: _Scalar, /, out: None = None, **options: Unpack[_OptionsOfOne]) -> Any: ...
    @overload
    def __call__(self, x: ArrayLike, /, out: _OutT | None = None, **options: Unpack[_OptionsOfOne]) -> _OutT: ...

class _UnaryTruth(_Named, Protocol):
    @overload
    def __call__(self, x: _Scalar, /, out: None = None, **options: Unpack[_OptionsOfOne]) -> Any: ...
    @overload
    def __call__(self, x: ArrayLike, /, out: None = None, **options: Unpack[_OptionsOfOne]) -> NDArray[np.bool]: ...
    @overload
    def __call__(self, x: ArrayLike, /, out: _OutT, **options: Unpack[_OptionsOfOne]) -> _OutT: ...

_Reduction = Callable[..., Any]
_Bound = ArrayLike | None
_Step = (
    np.ufunc
    | _Function
    | tuple[np.ufunc, ArrayLike]
    | _Unary
    | _UnaryTruth
    | tuple[_Binary | _BinaryTruth, ArrayLike]
    | tuple[_Function, SupportsIndex]
    | tuple[_Function, _Bound, _Bound]
    | tuple[_Reduction, AxesLike | SupportsIndex | None]
    | partial[Any]
)
_Scalar = complex | str | bytes | np.generic  # operands without axes, of which ufuncs make a scalar
_OutT = TypeVar("_OutT", bound=_Memory, default=NDArray[Any])
_SumT = TypeVar("_SumT", bound=_Memory, default=Any)
_Axes = AxesLike | SupportsIndex | None
_Along = SizesLike | None
_DType = type[_ScalarT] | np.dtype[_ScalarT]

@overload
def broadcast(
    data: _Data[_ScalarT],
    target_shape: ShapeLike,
    axes_mapping: ShapeLike | None = None,
    *,
    mode: Mode | None = None,
    axis: int = -1,
    broadcast_axes: AxesLike | None = None,
    dtype: None = None,
    casting: Casting = "same_kind",
    out: None = None,
) -> NDArray[_ScalarT]: ...
@overload
def broadcast(
    data: ArrayLike,
    target_shape: ShapeLike,
    axes_mapping: ShapeLike | None = None,
    *,
    mode: Mode | None = None,
    axis: int = -1,
    broadcast_axes: AxesLike | None = None,
    dtype: _DType[_ScalarT],
    casting: Casting = "same_kind",
    out: None = None,
) -> NDArray[_ScalarT]: ...
@overload
def broadcast(
    data: ArrayLike,
    target_shape: ShapeLike,
    axes_mapping: ShapeLike | None = None,
    *,
    mode: Mode | None = None,
    axis: int = -1,
    broadcast_axes: AxesLike | None = None,
    dtype: DType = None,
    casting: Casting = "same_kind",
    out: _OutT | None = None,
) -> _OutT: ...
@overload
def broadcast(data: ArrayLike, target_shape: None = None, *, shape: None) -> Never: ...
@overload
def broadcast_like(
    data: _Data[_ScalarT],
    like: ArrayLike,
    axes_mapping: ShapeLike | None = None,
    *,
    mode: Mode | None = None,
    axis: int = -1,
    broadcast_axes: AxesLike | None = None,
    dtype: None = None,
    casting: Casting = "same_kind",
    out: None = None,
) -> NDArray[_ScalarT]: ...
@overload
def broadcast_like(
    data: ArrayLike,
    like: ArrayLike,
    axes_mapping: ShapeLike | None = None,
    *,
    mode: Mode | None = None,
    axis: int = -1,
    broadcast_axes: AxesLike | None = None,
    dtype: _DType[_ScalarT],
    casting: Casting = "same_kind",
    out: None = None,
) -> NDArray[_ScalarT]: ...
@overload
def broadcast_like(
    data: ArrayLike,
    like: ArrayLike,
    axes_mapping: ShapeLike | None = None,
    *,
    mode: Mode | None = None,
    axis: int = -1,
    broadcast_axes: AxesLike | None = None,
    dtype: DType = None,
    casting: Casting = "same_kind",
    out: _OutT | None = None,
) -> _OutT: ...
@overload
def infer_shape(
    data_shape: ShapeLike,
    target_shape: ShapeLike,
    axes_mapping: ShapeLike | None = None,
    *,
    mode: Mode | None = None,
    axis: int = -1,
    broadcast_axes: AxesLike | None = None,
) -> tuple[int, ...]: ...
@overload
def infer_shape(data_shape: ShapeLike, target_shape: None = None, *, shape: None) -> Never: ...
def chain(
    data: ArrayLike,
    *steps: _Step,
    dtype: DType = None,
    casting: ChainCasting = "same_kind",
    mode: ElementwiseMode | None = None,
    axis: int = -1,
    out: _OutT | None = None,
) -> _OutT: ...
def chain_memory(
    data: ArrayLike,
    *steps: _Step,
    dtype: DType = None,
    casting: ChainCasting = "same_kind",
    mode: ElementwiseMode | None = None,
    axis: int = -1,
) -> ChainMemory: ...
def chain_vjp(
    data: ArrayLike, *steps: _Step, dtype: DType = None, mode: ElementwiseMode | None = None, axis: int = -1
) -> tuple[Any, Callable[[ArrayLike], tuple[NDArray[Any], ...]]]: ...
@overload
def elementwise(
    ufunc: Callable[..., _ResultT],
    a: _Scalar,
    b: _Scalar,
    /,
    *,
    mode: ElementwiseMode | None = None,
    axis: int = -1,
    out: None = None,
    dtype: DType = None,
    casting: Casting = "same_kind",
    where: ArrayLike = True,
) -> _ResultT: ...
@overload
def elementwise(
    ufunc: _Comparison,
    a: ArrayLike,
    b: ArrayLike,
    /,
    *,
    mode: ElementwiseMode | None = None,
    axis: int = -1,
    out: None = None,
    dtype: DType = None,
    casting: Casting = "same_kind",
    where: ArrayLike = True,
) -> NDArray[np.bool]: ...
@overload
def elementwise(
    ufunc: _OfOneResult,
    a: ArrayLike,
    b: ArrayLike,
    /,
    *,
    mode: ElementwiseMode | None = None,
    axis: int = -1,
    out: _OutT | None = None,
    dtype: DType = None,
    casting: Casting = "same_kind",
    where: ArrayLike = True,
) -> _OutT: ...
@overload
def elementwise(
    ufunc: Callable[..., _ResultT],
    a: ArrayLike,
    b: ArrayLike,
    /,
    *,
    mode: ElementwiseMode | None = None,
    axis: int = -1,
    out: _Memory | tuple[NDArray[Any], ...] | None = None,
    dtype: DType = None,
    casting: Casting = "same_kind",
    where: ArrayLike = True,
) -> _ResultT: ...

add: _Binary
subtract: _Binary
multiply: _Binary
divide: _Binary
floor_divide: _Binary
remainder: _Binary
fmod: _Binary
power: _Binary
float_power: _Binary
maximum: _Binary
minimum: _Binary
fmax: _Binary
fmin: _Binary
copysign: _Binary
heaviside: _Binary
nextafter: _Binary
hypot: _Binary
arctan2: _Binary
logaddexp: _Binary
logaddexp2: _Binary
gcd: _Binary
lcm: _Binary
equal: _BinaryTruth
not_equal: _BinaryTruth
less: _BinaryTruth
less_equal: _BinaryTruth
greater: _BinaryTruth
greater_equal: _BinaryTruth
logical_and: _BinaryTruth
logical_or: _BinaryTruth
logical_xor: _BinaryTruth
bitwise_and: _Binary
bitwise_or: _Binary
bitwise_xor: _Binary
left_shift: _Binary
right_shift: _Binary
negative: _Unary
positive: _Unary
absolute: _Unary
fabs: _Unary
sign: _Unary
signbit: _UnaryTruth
conjugate: _Unary
rint: _Unary
floor: _Unary
ceil: _Unary
trunc: _Unary
square: _Unary
sqrt: _Unary
cbrt: _Unary
reciprocal: _Unary
exp: _Unary
exp2: _Unary
expm1: _Unary
log: _Unary
log2: _Unary
log10: _Unary
log1p: _Unary
tanh: _Unary
isnan: _UnaryTruth
isinf: _UnaryTruth
isfinite: _UnaryTruth
logical_not: _UnaryTruth
invert: _Unary

@overload
def broadcast_to(
    array: _Data[_ScalarT], shape: SizesLike, *, dtype: None = None, casting: Casting = "same_kind", out: None = None
) -> NDArray[_ScalarT]: ...
@overload
def broadcast_to(
    array: ArrayLike, shape: SizesLike, *, dtype: _DType[_ScalarT], casting: Casting = "same_kind", out: None = None
) -> NDArray[_ScalarT]: ...
@overload
def broadcast_to(
    array: ArrayLike, shape: SizesLike, *, dtype: DType = None, casting: Casting = "same_kind", out: _OutT | None = None
) -> _OutT: ...
@overload
def broadcast_arrays(*args: _Data[_ScalarT]) -> tuple[NDArray[_ScalarT], ...]: ...
@overload
def broadcast_arrays(*args: ArrayLike) -> tuple[NDArray[Any], ...]: ...
def broadcast_shapes(*args: SizesLike) -> tuple[int, ...]: ...
@overload
def meshgrid(
    *xi: _Data[_ScalarT], copy: bool = True, sparse: bool = False, indexing: Indexing = "xy"
) -> tuple[NDArray[_ScalarT], ...]: ...
@overload
def meshgrid(
    *xi: ArrayLike, copy: bool = True, sparse: bool = False, indexing: Indexing = "xy"
) -> tuple[NDArray[Any], ...]: ...
@overload
def tile(
    A: _Data[_ScalarT], reps: SizesLike, *, dtype: None = None, casting: Casting = "same_kind", out: None = None
) -> NDArray[_ScalarT]: ...
@overload
def tile(
    A: ArrayLike, reps: SizesLike, *, dtype: _DType[_ScalarT], casting: Casting = "same_kind", out: None = None
) -> NDArray[_ScalarT]: ...
@overload
def tile(
    A: ArrayLike, reps: SizesLike, *, dtype: DType = None, casting: Casting = "same_kind", out: _OutT | None = None
) -> _OutT: ...
@overload
def repeat(
    a: _Data[_ScalarT],
    repeats: CountsLike,
    axis: _Along = None,
    *,
    dtype: None = None,
    casting: Casting = "same_kind",
    out: None = None,
) -> NDArray[_ScalarT]: ...
@overload
def repeat(
    a: ArrayLike,
    repeats: CountsLike,
    axis: _Along = None,
    *,
    dtype: _DType[_ScalarT],
    casting: Casting = "same_kind",
    out: None = None,
) -> NDArray[_ScalarT]: ...
@overload
def repeat(
    a: ArrayLike,
    repeats: CountsLike,
    axis: _Along = None,
    *,
    dtype: DType = None,
    casting: Casting = "same_kind",
    out: _OutT | None = None,
) -> _OutT: ...
@overload
def unbroadcast(
    grad: _Data[_ScalarT],
    data_shape: ShapeLike,
    axes_mapping: ShapeLike | None = None,
    *,
    mode: Mode | None = None,
    axis: int = -1,
    broadcast_axes: AxesLike | None = None,
    times: None = None,
    dtype: None = None,
    out: None = None,
    exact: bool = False,
) -> NDArray[_ScalarT]: ...
@overload
def unbroadcast(
    grad: ArrayLike,
    data_shape: ShapeLike,
    axes_mapping: ShapeLike | None = None,
    *,
    mode: Mode | None = None,
    axis: int = -1,
    broadcast_axes: AxesLike | None = None,
    times: ArrayLike | None = None,
    dtype: _DType[_ScalarT],
    out: None = None,
    exact: bool = False,
) -> NDArray[_ScalarT]: ...
@overload
def unbroadcast(
    grad: ArrayLike,
    data_shape: ShapeLike,
    axes_mapping: ShapeLike | None = None,
    *,
    mode: Mode | None = None,
    axis: int = -1,
    broadcast_axes: AxesLike | None = None,
    times: ArrayLike | None = None,
    dtype: DType = None,
    out: _OutT | None = None,
    exact: bool = False,
) -> _OutT: ...
@overload
def unrepeat(
    grad: _Data[_ScalarT],
    repeats: CountsLike,
    axis: _Along = None,
    *,
    dtype: None = None,
    out: None = None,
    exact: bool = False,
) -> NDArray[_ScalarT]: ...
@overload
def unrepeat(
    grad: ArrayLike,
    repeats: CountsLike,
    axis: _Along = None,
    *,
    dtype: _DType[_ScalarT],
    out: None = None,
    exact: bool = False,
) -> NDArray[_ScalarT]: ...
@overload
def unrepeat(
    grad: ArrayLike,
    repeats: CountsLike,
    axis: _Along = None,
    *,
    dtype: DType = None,
    out: _OutT | None = None,
    exact: bool = False,
) -> _OutT: ...
@overload
def where(
    condition: ArrayLike, x: _Data[_ScalarT], y: _Data[_ScalarT], /, *, out: None = None
) -> NDArray[_ScalarT]: ...
@overload
def where(condition: ArrayLike, x: ArrayLike, y: ArrayLike, /, *, out: _OutT | None = None) -> _OutT: ...
def sum(
    a: ArrayLike,
    axis: _Axes = None,
    dtype: DType = None,
    out: _SumT | None = None,
    keepdims: bool = False,
    *,
    exact: bool = False,
    **others: Any,
) -> _SumT: ...
def mean(
    a: ArrayLike,
    axis: _Axes = None,
    dtype: DType = None,
    out: _SumT | None = None,
    keepdims: bool = False,
    *,
    exact: bool = False,
    **others: Any,
) -> _SumT: ...
def max(
    a: ArrayLike,
    axis: _Axes = None,
    out: _SumT | None = None,
    keepdims: bool = False,
    initial: Any = ...,
    where: Any = ...,
) -> _SumT: ...
def min(
    a: ArrayLike,
    axis: _Axes = None,
    out: _SumT | None = None,
    keepdims: bool = False,
    initial: Any = ...,
    where: Any = ...,
) -> _SumT: ...
def minmax(
    a: ArrayLike,
    axis: _Axes = None,
    out: tuple[NDArray[Any], NDArray[Any]] | None = None,
    keepdims: bool = False,
) -> tuple[Any, Any]: ...
def prod(
    a: ArrayLike,
    axis: _Axes = None,
    dtype: DType = None,
    out: _SumT | None = None,
    keepdims: bool = False,
    initial: Any = ...,
    where: Any = ...,
) -> _SumT: ...
def argmax(a: ArrayLike, axis: Any = None, out: _SumT | None = None, *, keepdims: Any = ...) -> _SumT: ...
def argmin(a: ArrayLike, axis: Any = None, out: _SumT | None = None, *, keepdims: Any = ...) -> _SumT: ...
def any(
    a: ArrayLike, axis: _Axes = None, out: _SumT | None = None, keepdims: bool = False, *, where: Any = ...
) -> _SumT: ...
def all(
    a: ArrayLike, axis: _Axes = None, out: _SumT | None = None, keepdims: bool = False, *, where: Any = ...
) -> _SumT: ...
def var(
    a: ArrayLike,
    axis: _Axes = None,
    dtype: DType = None,
    out: _SumT | None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    correction: float | None = None,
    exact: bool = False,
    **others: Any,
) -> _SumT: ...
def std(
    a: ArrayLike,
    axis: _Axes = None,
    dtype: DType = None,
    out: _SumT | None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    correction: float | None = None,
    exact: bool = False,
    **others: Any,
) -> _SumT: ...
@overload
def vecdot(
    x1: _Data[_ScalarT],
    x2: _Data[_ScalarT],
    /,
    out: None = None,
    *,
    axis: int = -1,
    exact: bool = False,
    **others: Any,
) -> NDArray[_ScalarT] | _ScalarT: ...
@overload
def vecdot(
    x1: ArrayLike, x2: ArrayLike, /, out: _OutT | None = None, *, axis: int = -1, exact: bool = False, **others: Any
) -> _OutT: ...
@overload
def matvec(x1: _Data[_ScalarT], x2: _Data[_ScalarT], /, out: None = None, **others: Any) -> NDArray[_ScalarT]: ...
@overload
def matvec(x1: ArrayLike, x2: ArrayLike, /, out: _OutT | None = None, **others: Any) -> _OutT: ...
@overload
def cross(
    a: _Data[_ScalarT],
    b: _Data[_ScalarT],
    axisa: int = -1,
    axisb: int = -1,
    axisc: int = -1,
    axis: int | None = None,
) -> NDArray[_ScalarT]: ...
@overload
def cross(
    a: ArrayLike, b: ArrayLike, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> NDArray[Any]: ...
def norm(x: ArrayLike, axis: _Axes = -1, *, keepdims: bool = False, exact: bool = False) -> Any: ...
@overload
def stack(arrays: Sequence[_Data[_ScalarT]], axis: int = 0, out: None = None, **others: Any) -> NDArray[_ScalarT]: ...
@overload
def stack(arrays: Sequence[ArrayLike], axis: int = 0, out: _OutT | None = None, **others: Any) -> _OutT: ...
def nanmax(
    a: ArrayLike,
    axis: _Axes = None,
    out: _SumT | None = None,
    keepdims: bool = False,
    initial: Any = ...,
    where: Any = ...,
) -> _SumT: ...
def nanmean(
    a: ArrayLike,
    axis: _Axes = None,
    dtype: DType = None,
    out: _SumT | None = None,
    keepdims: bool = False,
    *,
    exact: bool = False,
    **others: Any,
) -> _SumT: ...
def nanmin(
    a: ArrayLike,
    axis: _Axes = None,
    out: _SumT | None = None,
    keepdims: bool = False,
    initial: Any = ...,
    where: Any = ...,
) -> _SumT: ...
def nanstd(
    a: ArrayLike,
    axis: _Axes = None,
    dtype: DType = None,
    out: _SumT | None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    correction: float | None = None,
    exact: bool = False,
    **others: Any,
) -> _SumT: ...
def nanvar(
    a: ArrayLike,
    axis: _Axes = None,
    dtype: DType = None,
    out: _SumT | None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    correction: float | None = None,
    exact: bool = False,
    **others: Any,
) -> _SumT: ...
def nansum(
    a: ArrayLike,
    axis: _Axes = None,
    dtype: DType = None,
    out: _SumT | None = None,
    keepdims: bool = False,
    initial: Any = ...,
    where: Any = ...,
    *,
    exact: bool = False,
) -> _SumT: ...
def mean_std(
    a: ArrayLike,
    axis: _Axes = None,
    *,
    ddof: float = 0,
    keepdims: bool = False,
    out: tuple[NDArray[Any], NDArray[Any]] | None = None,
    exact: bool = False,
) -> tuple[Any, Any]: ...
