from typing import Any

import numpy as np
from numpy.typing import NDArray

def result_array(
    out: NDArray[Any] | None,
    like: NDArray[Any],
    shape: tuple[int, ...],
    name: str,
    dtype: np.dtype[Any] | None = ...,
    owner: str = ...,
) -> NDArray[Any]: ...
def is_binary(function: np.ufunc) -> bool: ...
def reshaped(array: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]: ...
def shape_of(array: NDArray[Any]) -> tuple[int, ...]: ...
def type_of(array: NDArray[Any]) -> int: ...
