from typing import Any

import numpy as np
from numpy.typing import NDArray

from bcast._rules.alignment import Alignment
from bcast._rules.counts import Counts

def sum_onto(
    grad: NDArray[Any], alignment: Alignment, out: NDArray[Any], times: NDArray[Any] | None = None
) -> NDArray[Any]: ...
def average_onto(
    data: NDArray[Any],
    alignment: Alignment,
    out: NDArray[Any],
    divisor: float,
    means: NDArray[Any] | None = None,
    root: bool = False,
    rough: bool = False,
) -> NDArray[Any]: ...
def has_kernels(array: NDArray[Any]) -> bool: ...
def kind_of_sums(dtype: np.dtype[Any]) -> str: ...
def converted_terms(dtype: np.dtype[Any]) -> np.dtype[Any] | None: ...
def sum_counted(grad: NDArray[Any], counts: Counts, along: int, out: NDArray[Any]) -> NDArray[Any]: ...
def reduce_onto(data: NDArray[Any], alignment: Alignment, out: NDArray[Any], operation: int) -> bool: ...
