"""The types of arguments."""

from collections.abc import Sequence, Set
from typing import Any, Literal, SupportsIndex, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

ShapeLike: TypeAlias = Sequence[SupportsIndex] | NDArray[np.integer[Any]]
AxesLike: TypeAlias = ShapeLike | Set[SupportsIndex]
CountsLike: TypeAlias = (
    SupportsIndex
    | float
    | Sequence[SupportsIndex | float | Sequence[SupportsIndex | float] | NDArray[Any]]
    | NDArray[np.integer[Any] | np.floating[Any]]
)

SizesLike: TypeAlias = ShapeLike | SupportsIndex
Axes: TypeAlias = AxesLike | int | None
DType: TypeAlias = DTypeLike | None
Out: TypeAlias = NDArray[Any] | None

Mode: TypeAlias = Literal["numpy", "explicit", "bidirectional", "pdpd", "none"]
ElementwiseMode: TypeAlias = Literal["numpy", "none", "unidirectional", "pdpd"]
Casting: TypeAlias = Literal["no", "equiv", "safe", "same_kind", "unsafe"]
ChainCasting: TypeAlias = Casting | Literal["saturate"]
Indexing: TypeAlias = Literal["xy", "ij"]
