from typing import Any, NamedTuple, SupportsIndex

from numpy.typing import NDArray

CHAIN_BLOCK_ROWS: int
CONVERTED_BLOCK_BYTES: int
COPY_STREAMED_BYTES: int
DECIDING_BYTES: int
DECIDING_GROWTH: int
FEW_TIMES: int
FEW_UNITS: int
FOLD_MANY_TERMS: int
L2: int
LONG_AXIS_ITEMS: int
MANY_FACTORS: int
MANY_PRODUCTS: int
PASSES_BLOCK_BYTES: int
SEARCHED_BYTES: int
SHARE_ITEMS: int

class MemoryInfo(NamedTuple):
    idle: int
    lent: int
    limit: int

def set_idle_limit(nbytes: SupportsIndex) -> int: ...
def release_memory() -> None: ...
def memory_info() -> MemoryInfo: ...
def is_mapped(array: NDArray[Any]) -> bool: ...
def forget(array: NDArray[Any]) -> None: ...
def set_num_threads(n: SupportsIndex) -> None: ...
def get_num_threads() -> int: ...
def get_pool_limit() -> int: ...
def set_pool_limit(limit: int) -> None: ...
