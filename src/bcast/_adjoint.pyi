from typing import Any

from numpy.typing import NDArray

from bcast._rules.alignment import Alignment
from bcast._rules.core import Counts

def sum_onto(
    grad: NDArray[Any], alignment: Alignment, out: NDArray[Any], times: NDArray[Any] | None = None
) -> NDArray[Any]: ...
def sum_counted(grad: NDArray[Any], counts: Counts, along: int, out: NDArray[Any]) -> NDArray[Any]: ...
