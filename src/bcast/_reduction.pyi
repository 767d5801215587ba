from typing import Any

import numpy as np
from numpy.typing import NDArray

from bcast._rules.alignment import Alignment
from bcast._rules.counts import Counts

GREATEST: int
LEAST: int
ANY: int
ALL: int
PRODUCT: int
GREATEST_NUMBER: int
LEAST_NUMBER: int
SCALED_PRODUCT: int
LEAST_AND_GREATEST: int
EXACT_SUM: int

def sum_onto(
    grad: NDArray[Any], alignment: Alignment, out: NDArray[Any], times: NDArray[Any] | None = None
) -> NDArray[Any]: ...
def average_onto(
    data: NDArray[Any],
    alignment: Alignment,
    out: NDArray[Any],
    divisor: float,
    means: NDArray[Any] | None = None,
    root: bool = False,
    rough: bool = False,
    once: bool = False,
) -> NDArray[Any]: ...
def sum_exactly_onto(
    data: NDArray[Any],
    alignment: Alignment,
    out: NDArray[Any],
    divisor: float,
    skips_nan: bool = False,
    times: NDArray[Any] | None = None,
    divisors: NDArray[Any] | None = None,
    initial: float = 0,
) -> bool: ...
def expand_onto(
    data: NDArray[Any],
    alignment: Alignment,
    out: NDArray[Any],
    times: NDArray[Any] | None = None,
    bounded: bool = False,
) -> bool: ...
def norm_onto(data: NDArray[Any], alignment: Alignment, out: NDArray[Any]) -> NDArray[Any]: ...
def spread_onto(
    data: NDArray[Any],
    alignment: Alignment,
    means: NDArray[Any] | None,
    spread: NDArray[Any],
    divisor: float,
    root: bool,
) -> bool: ...
def sum_numbers_onto(
    data: NDArray[Any], alignment: Alignment, out: NDArray[Any], means: NDArray[Any], deviation: int
) -> bool: ...
def has_kernels(array: NDArray[Any]) -> bool: ...
def kind_of_sums(dtype: np.dtype[Any]) -> str: ...
def converted_terms(dtype: np.dtype[Any]) -> np.dtype[Any] | None: ...
def sum_counted(
    grad: NDArray[Any], counts: Counts, along: int, out: NDArray[Any], exact: bool = False
) -> NDArray[Any]: ...
def find_extremes_onto(data: NDArray[Any], alignment: Alignment, low: NDArray[Any], high: NDArray[Any]) -> bool: ...
def reduce_onto(data: NDArray[Any], alignment: Alignment, out: NDArray[Any], operation: int) -> bool: ...
def has_extremes(products: NDArray[Any]) -> bool: ...
def settle_spreads_onto(
    sums: NDArray[Any],
    squares: NDArray[Any],
    out: NDArray[Any],
    count: float,
    divisor: float,
    rest: float,
    root: bool,
    to: np.dtype[Any],
) -> None: ...
def bound_integers_onto(rows: NDArray[Any], sums: NDArray[Any], squares: NDArray[Any]) -> bool: ...
def measure_rows_onto(
    rows: NDArray[Any],
    out: NDArray[Any],
    ddof: float,
    has_means: bool,
    root: bool,
    to_odd: bool,
    skips_nan: bool,
) -> None: ...
def digits_of_rows(
    rows: NDArray[Any], skips_nan: bool
) -> tuple[NDArray[np.int64], list[tuple[int, int]], NDArray[np.float64], NDArray[np.int64]]: ...
def round_digits_onto(
    digits: NDArray[np.int64],
    low: int,
    specials: NDArray[np.float64],
    divisors: NDArray[np.int64],
    out: NDArray[np.float64],
    to_odd: bool,
) -> None: ...
def measure_digits_onto(
    sums: tuple[NDArray[np.int64], int],
    squares: tuple[NDArray[np.int64], int, NDArray[np.float64]],
    counts: NDArray[np.int64],
    out: NDArray[np.float64],
    ddof: float,
    root: bool,
    to_odd: bool,
) -> None: ...
