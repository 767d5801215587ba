"""`mean_std`: means and deviations, in the time of deviations.

In: an array and axes. Out: what `mean` and `std` return.
"""

from typing import Any

from numpy.typing import ArrayLike, NDArray

from bcast._api import statistics
from bcast._api.converted import as_base, as_operand, is_handed_on
from bcast._api.reductions import check_pair, into_pair, mean_and_deviation
from bcast._api.statistics import given_ddof
from bcast._rules.arguments import axes_argument
from bcast._rules.types import Axes


def mean_std(
    a: ArrayLike,
    axis: Axes = None,
    *,
    ddof: float = 0,
    keepdims: bool = False,
    out: tuple[NDArray[Any], NDArray[Any]] | None = None,
    exact: bool = False,
) -> Any:
    """Compute means and standard deviations along axes, in about the time of the deviations.

    Parameters
    ----------
    a, axis, ddof, keepdims
        As in `std`, including errors.
    out : pair of ndarray, optional
        As in `minmax`.
    exact : bool, optional
        Whether results are those of `mean` and `std` with `exact`; the data is then read three times.

    Returns
    -------
    pair of ndarray or scalar
        The results of `mean` and `std`, which may differ in the last bit.

    Raises
    ------
    numpy.exceptions.AxisError, ValueError, TypeError
        As in `std`; or if `out` is not a pair.

    Notes
    -----
    The means that `std` needs are kept: the data is read as often as by `std`. Along one axis of 2 to 4 items, that is
    once.

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
    found = None if exact else mean_and_deviation(a, axis, ddof, keepdims)
    if found is None:
        found = (
            statistics.mean(a, axis, keepdims=keepdims, exact=exact),
            statistics.std(a, axis, ddof=ddof, keepdims=keepdims, exact=exact),
        )
    return into_pair(out, found)
