from typing import Any

from numpy.typing import NDArray

from bcast._rules.alignment import Alignment

def replicate(data: NDArray[Any], alignment: Alignment, out: NDArray[Any]) -> NDArray[Any]: ...
def set_limits(share: int = ..., streamed: int = ...) -> None: ...
