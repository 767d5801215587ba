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
