from typing import Any

from numpy.typing import NDArray

def new_array(like: NDArray[Any], shape: tuple[int, ...], name: str) -> NDArray[Any]: ...
