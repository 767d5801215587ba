"""Results of another dtype than the data's: a piece of the data that a cache holds is converted, then replicated.

So the small side is converted, not the result, and no array of the data's size stands between the two. What one call of
`astype` on the broadcast array would warn of or refuse is warned of once, or refused, before a user's `out` is written.
"""

from typing import Any

import numpy as np
from numpy import ndarray
from numpy.typing import DTypeLike, NDArray

from bcast._kernel import repeat_converted, repeat_counted, replicate, replicate_converted, try_conversion
from bcast._rules.alignment import Alignment
from bcast._rules.arguments import CASTINGS, dtype_argument, mode_of
from bcast._rules.counts import Counts, counts_of_array, counts_of_tuple
from bcast._rules.types import Casting
from bcast._runtime.arrays import (
    are_alike,
    are_numbers,
    can_cast,
    convert_into,
    converted,
    dtype_of,
    is_contiguous,
    is_masked,
    may_warn,
    reshaped,
    result_array,
    shape_of,
    size_of,
)
from bcast._runtime.memory import is_mapped

__all__ = [
    "Casting",
    "convert_counted",
    "convert_nothing",
    "convert_onto",
    "follows_values",
    "materialise_as",
    "prepared",
    "set_limits",
]


SAME_KIND: Casting = "same_kind"
NUMBER_OF_SAME_KIND = CASTINGS.index(SAME_KIND)
PIECE = 1 << 20  # bytes of a converted piece: caches hold it, and what it is replicated to is worth two threads
FEW = 4096  # items that are converted in less time than an error state is set
MOST = 32  # pieces that are converted at once if one by one takes longer: not in C's order, or tried before
LINES = 128  # bytes of a line of transposed data that a piece takes at least, lest each piece read every line again

OVERFLOW, UNDERFLOW, INVALID = 2, 4, 8  # NumPy's flags


def set_limits(piece: int = 1 << 20) -> None:
    """Set the size of the pieces in bytes: for tests of small arrays."""
    global PIECE
    if piece < 1:
        raise ValueError(f"`piece` expected bytes, at least 1, got {piece}")
    PIECE = piece


def materialise_as(
    data: NDArray[Any],
    alignment: Alignment,
    shape: tuple[int, ...],
    out: NDArray[Any] | None,
    name: str,
    dtype: DTypeLike | None,
    casting: Casting,
) -> NDArray[Any]:
    """Convert `data` and replicate it, as `materialise` does where nothing is to be converted."""
    data, wanted = prepared(data, shape, out, dtype, casting)
    return convert_onto(data, alignment, result_array(out, data, shape, name, wanted), wanted, out is None)


def prepared(
    data: NDArray[Any], shape: tuple[int, ...], out: NDArray[Any] | None, dtype: DTypeLike | None, casting: Casting
) -> tuple[NDArray[Any], np.dtype[Any]]:
    """Check `dtype` and `casting`; return the data and the dtype of the result, which has `shape`.

    The data comes back converted if its values decide what the dtype is, as the length of strings.
    """
    rule = NUMBER_OF_SAME_KIND if casting is SAME_KIND else CASTINGS.index(mode_of(casting, CASTINGS, "casting"))
    own = dtype_of(data)
    if dtype is not None:
        wanted = dtype_argument(dtype)
    elif isinstance(out, ndarray) and not is_masked(out):
        wanted = dtype_of(out)
    else:
        wanted = own
    if are_alike(own, wanted):
        return data, wanted
    open_ended = False
    if not are_numbers(own, wanted):
        if wanted.subdtype is not None:
            raise TypeError(f"`dtype` expected a dtype without a shape of its own, got {wanted}")
        open_ended = dtype is not None and 0 not in shape and follows_values(own, wanted)
        if dtype is not None and not open_ended and _is_open(wanted):
            wanted = np.empty(0, own).astype(wanted).dtype
    if not can_cast(data, wanted, rule):
        got = f"{wanted}; give casting='unsafe'" if casting == SAME_KIND and are_numbers(own, wanted) else wanted
        if dtype is None:
            raise TypeError(
                f"`out` expected data's dtype {own}, or one that casting={casting!r} allows for it, got {got}"
            )
        raise TypeError(f"`dtype` expected a dtype that casting={casting!r} allows for data of {own}, got {got}")
    if open_ended:
        data = data.astype(wanted)
        wanted = data.dtype
    return data, wanted


def convert_onto(
    data: NDArray[Any], alignment: Alignment, out: NDArray[Any], dtype: np.dtype[Any], fresh: bool
) -> NDArray[Any]:
    """Convert `data` to `dtype` and replicate it along `alignment` into `out`, which it returns.

    Parameters
    ----------
    data, alignment, out
        As for `replicate`, except that `out` has the dtype `dtype`.
    dtype : dtype
        One to which the data may be cast.
    fresh : bool
        Whether nobody sees `out` if this raises.
    """
    if size_of(out) == 0:
        return convert_nothing(data, out, dtype)
    if are_alike(dtype_of(data), dtype):
        return replicate(data, alignment, out)
    whole = size_of(data) == size_of(out) and is_contiguous(data)
    if fresh and whole:
        convert_into(reshaped(out, alignment.shape), reshaped(data, alignment.shape))
        return out
    size = size_of(data) * dtype.itemsize
    if (
        size <= PIECE
        or (size <= MOST * PIECE and (not _is_ordered(data) or (not fresh and may_warn(data, dtype))))
        or _converts_whole(data, out, dtype, fresh)
    ):
        return replicate(converted(data, dtype), alignment, out)
    if whole and not may_warn(data, dtype) and not is_mapped(out) and not is_mapped(data):
        convert_into(reshaped(out, alignment.shape), reshaped(data, alignment.shape))
    else:
        _run(data, alignment, None, 0, out, dtype, fresh)
    return out


def convert_counted(
    data: NDArray[Any], counts: Counts, axis: int, out: NDArray[Any], dtype: np.dtype[Any], fresh: bool
) -> NDArray[Any]:
    """Convert `data` to `dtype` and repeat its items by `counts` into `out`, which it returns; none has references."""
    size = size_of(data) * dtype.itemsize
    if size > PIECE and not _converts_whole(data, out, dtype, fresh):
        _run(data, None, counts, axis, out, dtype, fresh)
        return out
    if not may_warn(data, dtype) or not counts.has_zeros():
        return repeat_counted(converted(data, dtype), counts, axis, out)
    if _is_plain(data.dtype) and _is_plain(dtype):
        if size_of(out) <= FEW or size_of(out) <= 2 * size_of(data):
            whole = result_array(None, data, shape_of(out), "repeats")
            repeat_counted(data, counts, axis, whole)
            convert_into(out, whole if fresh else converted(whole, dtype))
            return out
        data = _real_part(data, dtype)
        quiet = _unless_warned(data, dtype)
        if quiet is not None:
            return repeat_counted(quiet, counts, axis, out)
    data, counts = without_dropped(data, counts, axis)
    return repeat_counted(converted(data, dtype), counts, axis, out)


def _unless_warned(data: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any] | None:
    """Convert data; None if some of it gives rise to a warning or an error."""
    try:
        with np.errstate(all="raise"):
            return converted(data, dtype)
    except (FloatingPointError, ValueError, OverflowError):
        return None


def without_dropped(data: NDArray[Any], counts: Counts, axis: int) -> tuple[NDArray[Any], Counts]:
    """Leave out the items that are repeated 0 times, lest their conversion fail."""
    numbers = counts.to_array()
    kept = numbers > 0
    numbers = numbers.compress(kept)  # `numbers[kept]` fails without an error where memory does
    data = data.compress(kept, axis if axis >= 0 else None)
    return data, counts_of_array(numbers) or counts_of_tuple(tuple(numbers.tolist()))


def convert_nothing(data: NDArray[Any], out: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Warn of what the dtypes alone give rise to; return `out`, which is empty."""
    np.empty(0, data.dtype).astype(dtype)
    return out


def _run(
    data: NDArray[Any],
    alignment: Alignment | None,
    counts: Counts | None,
    axis: int,
    out: NDArray[Any],
    dtype: np.dtype[Any],
    fresh: bool,
) -> None:
    """Convert piece by piece, and warn once of what all pieces give rise to: before a user's `out` is written.

    What warns may run code of the user's that resizes arrays, so that all views are made anew after it.
    """
    _real_part(data, dtype)
    warns = may_warn(data, dtype)
    tried = warns and not fresh and not set(np.geterr().values()) <= {"ignore", "print"}
    flags = try_conversion(_once(_real(data, dtype)), dtype) if tried else _write(data, alignment, counts, axis, out)
    if warns and flags:
        if counts is not None and counts.has_zeros():
            data, counts = without_dropped(_real(data, dtype), counts, axis)
            convert_counted(data, counts, axis, out, dtype, fresh)
            return
        _warn(flags)
    if tried:
        _write(data, alignment, counts, axis, out)


def _write(data: NDArray[Any], alignment: Alignment | None, counts: Counts | None, axis: int, out: NDArray[Any]) -> int:
    """Write the converted data by an alignment or by counts; return the flags that this set."""
    data = _real(data, dtype_of(out))
    if counts is not None:
        return repeat_converted(data, counts, axis, out, PIECE)
    assert alignment is not None
    data = _once(data.reshape(alignment.source))
    piece = PIECE
    if not _is_ordered(data):
        rows = data.squeeze()
        piece = max(PIECE, min(LINES // data.itemsize, len(rows)) * rows[0].size * out.itemsize)
    return replicate_converted(data, alignment.shape, out, piece)


def _once(data: NDArray[Any]) -> NDArray[Any]:
    """Return the data without what its strides repeat."""
    index: list[Any] = []
    for stride in data.strides:
        index.append(slice(None) if stride else slice(1))
    index.append(Ellipsis)  # lest an array without axes become a scalar
    view: NDArray[Any] = data[tuple(index)]
    return view


def _is_ordered(data: NDArray[Any]) -> bool:
    """Return whether the outermost axis is the one with the longest steps, as in C's order."""
    longest = -1
    for length, stride in zip(data.shape, data.strides, strict=True):
        if length > 1 and longest < 0:
            longest = abs(stride)
        elif length > 1 and abs(stride) > longest:
            return False
    return True


def _converts_whole(data: NDArray[Any], out: NDArray[Any], dtype: np.dtype[Any], fresh: bool) -> bool:
    """Return whether the whole data must be converted first.

    That may run others' code, or fail and leave a user's `out` half written; or `out` is strided, or overlaps the data.
    """
    own = dtype_of(data)
    if not (is_contiguous(out) and _is_plain(own) and _is_plain(dtype)):
        return True
    return not fresh and (not are_numbers(own, dtype) or np.may_share_memory(data, out))


def _is_plain(dtype: np.dtype[Any]) -> bool:
    """Return whether items are numbers or times, NumPy's own or of other packages; they convert alike each time."""
    return dtype.kind in "biufcmM" or (dtype.num >= 256 and not dtype.hasobject)


def follows_values(own: np.dtype[Any], wanted: np.dtype[Any]) -> bool:
    """Return whether items of one dtype decide about a length or a unit that the other does not name."""
    return (own.kind in "OT" or (own.kind in "SU" and wanted.kind in "mM")) and _is_open(wanted)


def _is_open(dtype: np.dtype[Any]) -> bool:
    """Return whether the data decides about a length or a unit that the dtype does not name."""
    if dtype.kind in "mM":
        return np.datetime_data(dtype)[0] == "generic"
    return dtype.itemsize == 0 and dtype.names is None


def _real_part(data: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return the real part if nothing else remains in `dtype`, with NumPy's warning, which each piece would repeat."""
    if data.dtype.kind == "c" and dtype.kind in "iuf":
        np.zeros(1, data.dtype).astype(dtype)
    return _real(data, dtype)


def _real(data: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    return data.real if data.dtype.kind == "c" and dtype.kind in "iuf" else data


def _warn(flags: int) -> None:
    """Have NumPy warn, or raise, as the user has told it to, by a cast that sets the same flags."""
    numbers = {OVERFLOW: 0x7E37E43C8800759C, UNDERFLOW: 0x01A56E1FC2F8F359, INVALID: 0x7FF0000000000001}
    found = [number for flag, number in numbers.items() if flags & flag]
    np.array(found, np.uint64).view(np.float64).astype(np.float32)  # 1e300, 1e-300 and a signalling NaN
