from typing import Any

from numpy.typing import NDArray

def result_array(out: NDArray[Any] | None, like: NDArray[Any], shape: tuple[int, ...], name: str) -> NDArray[Any]: ...
