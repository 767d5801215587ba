from typing import Any

import numpy as np
from numpy.typing import NDArray

from bcast._rules.alignment import Alignment
from bcast._rules.core import Counts

def replicate(data: NDArray[Any], alignment: Alignment, out: NDArray[Any]) -> NDArray[Any]: ...
def repeat_counted(data: NDArray[Any], counts: Counts, axis: int, out: NDArray[Any]) -> NDArray[Any]: ...
def may_fail(data: NDArray[Any], dtype: np.dtype[Any]) -> bool: ...
