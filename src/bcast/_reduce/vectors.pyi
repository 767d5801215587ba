from typing import Any

from numpy.typing import NDArray

from bcast._rules.alignment import Alignment

def find_statistics_onto(
    data: NDArray[Any],
    alignment: Alignment,
    first: NDArray[Any],
    second: NDArray[Any] | None,
    made: int,
    root: bool = False,
    ddof: float = 0,
    skips_nan: bool = False,
) -> bool: ...
def dot_vectors(a: Any, b: Any, out: Any, axis: int, otherwise: Any = None) -> Any: ...
def transform_vectors(matrices: Any, vectors: Any, out: Any, otherwise: Any = None) -> Any: ...
def cross_vectors(a: Any, b: Any, axis_of_a: int, axis_of_b: int, axis_of_result: int) -> Any: ...
def measure_vectors(data: NDArray[Any], axis: int) -> Any: ...
def stack_vectors(arrays: Any) -> Any: ...
