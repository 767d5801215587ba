from typing import Any

from numpy.typing import NDArray

from bcast._rules.alignment import Alignment
from bcast._rules.counts import Counts

def replicate(data: NDArray[Any], alignment: Alignment, out: NDArray[Any]) -> NDArray[Any]: ...
def repeat_counted(data: NDArray[Any], counts: Counts, axis: int, out: NDArray[Any]) -> NDArray[Any]: ...
