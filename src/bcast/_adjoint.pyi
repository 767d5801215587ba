from typing import Any

from numpy.typing import NDArray

from bcast._alignment import Alignment

LEAVES: tuple[str, ...]

def set_limits(shared: int = ..., far: int = ...) -> None: ...
def use_leaf(name: str) -> str: ...
def sum_onto(grad: NDArray[Any], alignment: Alignment, out: NDArray[Any]) -> NDArray[Any]: ...
