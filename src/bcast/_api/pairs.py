"""`mean_std`: means and deviations, in the time of deviations.

In: an array and axes. Out: what `mean` and `std` return.
"""

import itertools
import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bcast._api import statistics
from bcast._api.converted import as_base, as_operand, is_handed_on
from bcast._api.reductions import check_pair, into_pair, mean_and_deviation, reduced_axes
from bcast._api.statistics import FLOAT64, PLAIN, given_ddof
from bcast._reduction import average_onto, has_kernels
from bcast._rules.alignment import aligned
from bcast._rules.arguments import axes_argument
from bcast._rules.types import Axes
from bcast._runtime.arrays import rounded_to
from bcast._runtime.errors import quietly

PAIR_BYTES = 2 << 20  # of a block of `mean_std`: on all threads together, it stays in the caches of cores
CUT_BYTES = 32 << 20  # of data that no cache holds
FEW_RESULTS = 64  # of which each block has means and sums of its own


def mean_std(
    a: ArrayLike,
    axis: Axes = None,
    *,
    ddof: float = 0,
    keepdims: bool = False,
    out: tuple[NDArray[Any], NDArray[Any]] | None = None,
) -> Any:
    """Compute means and standard deviations along axes, reading the data once from memory.

    Parameters
    ----------
    a, axis, ddof, keepdims
        As in `std`, including errors.
    out : pair of ndarray, optional
        As in `minmax`.

    Returns
    -------
    pair of ndarray or scalar
        The results of `mean` and `std`, which may differ in the last bit.

    Raises
    ------
    numpy.exceptions.AxisError, ValueError, TypeError
        As in `std`; or if `out` is no pair.

    Notes
    -----
    The means that `std` needs are kept. Data larger than any cache, with few results, is cut into blocks that stay in a
    cache for both the means and the squares, and the statistics of the blocks of one result are combined in float64. If
    float64 data differs so little from its mean that this would cost a unit of the deviation, the data is read again.
    Integers of 8 and 16 bits, and bools, are read twice, as by `std`.

    Examples
    --------
    >>> import numpy as np
    >>> import bcast
    >>> picture = np.array([[[0, 10, 50], [0, 20, 50]], [[4, 10, 50], [4, 20, 50]]], np.uint8)
    >>> bcast.mean_std(picture, axis=(0, 1))
    (array([ 2., 15., 50.]), array([2., 5., 0.]))
    """
    check_pair(out)
    ddof = given_ddof(ddof, None)
    if not is_handed_on(a):
        a = as_base(as_operand("a", a))
        axis = axis if axis is None else axes_argument(axis)
    data: Any = a
    found = None
    if type(data) in PLAIN and type(keepdims) is bool and _is_cut(data):
        found = _by_blocks(data, axis, ddof, keepdims)
    if found is None:
        found = mean_and_deviation(a, axis, ddof, keepdims)
    if found is None:
        found = (
            statistics.mean(a, axis, keepdims=keepdims),
            statistics.std(a, axis, ddof=ddof, keepdims=keepdims),
        )
    return into_pair(out, found)


# Blocks of what no cache holds stay in one: of each, the means and the sums of the squares of what items differ from
# these. Blocks along reduced axes have results in common, to which they are combined as Chan, Golub and LeVeque do.


def _is_cut(a: Any) -> bool:
    """Return whether data is so large that no cache holds it, and of floats or of integers of more than 16 bits."""
    dtype = a.dtype
    if a.nbytes < CUT_BYTES or not has_kernels(a) or not dtype.isnative:
        return False
    return dtype.kind == "f" or (dtype.kind in "iu" and dtype.itemsize > 2)


def _by_blocks(array: NDArray[Any], axis: Any, ddof: Any, keepdims: bool) -> Any:
    """Return means and deviations; None if blocks would have many results or harm their precision."""
    axes = reduced_axes(axis, array.shape)
    if isinstance(ddof, np.generic):
        ddof = ddof.item()
    source = tuple([1 if at in axes else length for at, length in enumerate(array.shape)])
    results = math.prod(source)
    count = array.size // max(1, results)
    if results > FEW_RESULTS or count <= 1 or not ddof < count:
        return None
    cuts = _cuts_of(array)
    parts = math.prod([len(cut) for at, cut in enumerate(cuts) if at in axes])  # that one result has
    if parts * results * FLOAT64.itemsize * 8 > array.nbytes:
        return None

    wanted = FLOAT64 if array.dtype.kind in "biu" else array.dtype
    counts = np.empty((parts,) + (1,) * array.ndim)
    means, squares = np.empty((parts, *source)), np.empty((parts, *source))
    for block in itertools.product(*map(enumerate, cuts)):
        part = 0
        for at in axes:
            part = part * len(cuts[at]) + block[at][0]
        place: Any = (part, *[slice(None) if at in axes else cut for at, (_, cut) in enumerate(block)])
        items = array[tuple([cut for _, cut in block])]
        _find_statistics(items, wanted, counts[part], means[place], squares[place])

    average, variance = quietly(_combined, counts, means, squares, count, count - ddof, wanted)
    if variance is None:
        return None
    pair = []
    for result in average, np.sqrt(variance):
        rounded = rounded_to(result, wanted)
        rounded = rounded if keepdims else rounded.squeeze(axes)
        pair.append(rounded if rounded.ndim else rounded[()])
    return tuple(pair)


def _cuts_of(array: NDArray[Any]) -> list[list[slice]]:
    """Return the pieces of each axis that make blocks, the axis with the longest stride first."""
    cuts = [[slice(None)]] * array.ndim
    nbytes = array.nbytes
    for at in sorted(range(array.ndim), key=lambda at: -abs(array.strides[at])):
        length = array.shape[at]
        if nbytes <= PAIR_BYTES or length == 1:
            continue
        piece = math.ceil(length / min(length, math.ceil(nbytes / PAIR_BYTES)))
        cuts[at] = [slice(begin, begin + piece) for begin in range(0, length, piece)]
        nbytes = nbytes // length * piece
    return cuts


def _find_statistics(
    block: NDArray[Any], wanted: np.dtype[Any], count: NDArray[Any], means: NDArray[Any], squares: NDArray[Any]
) -> None:
    """Write the number of terms of a block's results, their means and sums of squares."""
    alignment = aligned(block.shape, means.shape)
    is_rough = block.itemsize > 2 or wanted.itemsize < FLOAT64.itemsize
    count[...] = block.size // means.size
    if block.size == means.size:
        means[...], squares[...] = block, 0
        return
    average_onto(block, alignment, means, block.size // means.size, None, False, is_rough)
    average_onto(block, alignment, squares, 1, np.ascontiguousarray(means))


def _combined(
    counts: NDArray[Any], means: NDArray[Any], squares: NDArray[Any], count: int, divisor: float, wanted: np.dtype[Any]
) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Combine parts to means and variances; to none if the errors of the parts' means are of matter.

    A mean that is off by e changes the sum of squares by 2 * e * count * (its distance from the mean of all).
    """
    if len(counts) == 1:
        return means[0], squares[0] / divisor
    average = statistics.sum(counts * means, 0) / count
    apart = np.abs(means - average)
    distances = counts * apart
    total = statistics.sum(squares + distances * apart, 0)
    of_mean, of_result = (2.0**-52, 2.0**-52) if wanted == FLOAT64 else (2.0**-44, 2.0**-30)
    doubt = 2 * of_mean * statistics.sum(distances * np.abs(means), 0)
    is_precise = bool((doubt <= of_result * total).all())
    return average, total / divisor if is_precise else None
