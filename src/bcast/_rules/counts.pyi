from typing import Any

import numpy as np
from numpy.typing import NDArray

class Counts:
    size: int
    total: int
    def to_array(self) -> NDArray[np.intp]: ...

def counts_of_array(repeats: Any) -> Counts | None: ...
def counts_of_tuple(repeats: tuple[int, ...]) -> Counts: ...
