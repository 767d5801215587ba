from collections.abc import Iterable
from typing import Any

def explain(shape: Iterable[int], source: Iterable[int], itemsize: int = ...) -> dict[str, Any]: ...
