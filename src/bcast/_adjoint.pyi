from typing import Any

from numpy.typing import NDArray

from bcast._rules.alignment import Alignment

def set_limits(shared: int = ...) -> None: ...
def sum_onto(grad: NDArray[Any], alignment: Alignment, out: NDArray[Any]) -> NDArray[Any]: ...
