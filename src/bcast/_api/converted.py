"""Results of another dtype than the data's: a piece of the data that a cache holds is converted, then replicated.

So the small side is converted, not the result, and no array of the data's size stands between the two. What one call of
`astype` on the broadcast array would warn of or refuse is warned of once, or refused before `out` is written.
"""

import sys
import warnings
from typing import Any

import numpy as np
from numpy import ndarray
from numpy.typing import DTypeLike, NDArray

from bcast._kernel import repeat_counted, replicate
from bcast._rules.alignment import Alignment, aligned
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
from bcast._runtime.memory import forget, is_mapped

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
UNORDERED = 32  # pieces of data that is not in C's order are converted at once: by pieces, they take 1.4 times as long
LINES = 128  # bytes of a line of transposed data that a piece takes at least, lest each piece read every line again

DIVIDE, OVERFLOW, UNDERFLOW, INVALID = 1, 2, 4, 8  # NumPy's flags


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
        if dtype is None:
            raise TypeError(
                f"`out` expected data's dtype {own}, or one that casting={casting!r} allows for it, got {wanted}"
            )
        raise TypeError(f"`dtype` expected a dtype that casting={casting!r} allows for data of {own}, got {wanted}")
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
    if fresh and size_of(data) == size_of(out) and is_contiguous(data):
        convert_into(reshaped(out, alignment.shape), reshaped(data, alignment.shape))
        return out
    size = size_of(data) * dtype.itemsize
    if (
        size <= PIECE
        or (size <= UNORDERED * PIECE and not _is_ordered(data))
        or _converts_whole(data, out, dtype, fresh)
    ):
        return replicate(converted(data, dtype), alignment, out)
    to = np.asarray(out).reshape(alignment.shape)  # a view, as this only splits axes
    data = data.reshape(alignment.source)
    data = _real_part(_once(data), dtype)
    _run(data, to, dtype, None, 0, fresh)
    return out


def convert_counted(
    data: NDArray[Any], counts: Counts, axis: int, out: NDArray[Any], dtype: np.dtype[Any], fresh: bool
) -> NDArray[Any]:
    """Convert `data` to `dtype` and repeat its items by `counts` into `out`, which it returns; none has references."""
    if size_of(data) * dtype.itemsize <= PIECE or not is_contiguous(out) or _converts_whole(data, out, dtype, fresh):
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
    if axis < 0:
        data, axis = data.reshape(-1), 0
    counts.keep_from(out)
    _run(_real_part(data, dtype), np.asarray(out), dtype, counts, axis, fresh)
    return out


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
    numbers = numbers[kept]
    data = data.compress(kept, axis if axis >= 0 else None)
    return data, counts_of_array(numbers) or counts_of_tuple(tuple(numbers.tolist()))


def convert_nothing(data: NDArray[Any], out: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Warn of what the dtypes alone give rise to; return `out`, which is empty."""
    np.empty(0, data.dtype).astype(dtype)
    return out


def _run(
    data: NDArray[Any], out: NDArray[Any], dtype: np.dtype[Any], counts: Counts | None, axis: int, fresh: bool
) -> None:
    """Fill `out`, and give one warning of what all pieces give rise to.

    If that may raise and `out` is the user's, all pieces are tried before the first is written.
    """
    own, room = data.dtype, np.empty(PIECE // dtype.itemsize, dtype)
    if not may_warn(data, dtype):
        _write(data, out, room, counts, axis)
        return
    tried = not fresh and (own.kind in "mM" or dtype.kind in "mM" or _warning_may_raise())
    flags: list[int] = []
    with np.errstate(all="call", call=lambda _, flag: flags.append(flag)):
        if tried:
            _try(data, room)
        else:
            _write(data, out, room, counts, axis)
    if flags and counts is not None and counts.has_zeros():
        data, counts = without_dropped(data, counts, axis)
        _run(data, out, dtype, counts, axis, fresh)
        return
    if flags:
        _warn(flags)
    if tried:
        with np.errstate(all="ignore"):
            _write(data, out, room, counts, axis)


def _write(data: NDArray[Any], out: NDArray[Any], room: NDArray[Any], counts: Counts | None, axis: int) -> None:
    """Convert `data` and write it to `out` by `counts` along an axis, or if there are none, along all axes."""
    if counts is None:
        _fill(data, out, room)
    else:
        _fill_counted(data, out, room, counts, axis)


def _fill(data: NDArray[Any], out: NDArray[Any], room: NDArray[Any]) -> None:
    """Convert `data` and replicate it into `out`, of as many axes, cut along the outermost axes first.

    Pieces are converted in `room`.
    """
    if _is_piece(data, room):
        replicate(_piece(data, room), aligned(out.shape, data.shape), out)
        forget(out)
        forget(data)
    elif data.size == out.size and _is_ordered(data) and not is_mapped(out) and not is_mapped(data):
        convert_into(out, data)
    elif data.shape[:2] == (1, 1) and is_contiguous(out):
        _fill(data[0], out.reshape((-1,) + out.shape[2:]), room)
    elif data.shape[0] == 1:
        _fill(data[0, ...], out[0, ...], room)
        if out.shape[0] > 1:  # one block, which the outermost axis repeats
            rest = out[1:]
            replicate(out[:1], aligned(rest.shape, (1,) + rest.shape[1:]), rest)
    else:
        step = _step(data, room)
        for begin in range(0, data.shape[0], step):
            _fill(data[begin : begin + step], out[begin : begin + step], room)


def _fill_counted(data: NDArray[Any], out: NDArray[Any], room: NDArray[Any], counts: Counts, axis: int) -> None:
    """Convert `data` and repeat its items into `out`, cut along the outermost axes first."""
    if _is_piece(data, room):
        _repeat_piece(data, out, room, counts, axis)
    elif axis > 0:
        step = _step(data, room)
        for begin in range(0, data.shape[0], step):
            piece, to = data[begin : begin + step], out[begin : begin + step]
            if step > 1:
                _repeat_piece(piece, to, room, counts, axis)
            else:
                _fill_counted(piece[0], to[0], room, counts, axis - 1)
    else:
        step = counts.whole_chunks(_step(data, room))
        written = 0
        for begin in range(0, data.shape[0], step):
            piece = data[begin : begin + step]
            own = counts.part(begin, begin + piece.shape[0])
            _repeat_piece(piece, out[written : written + own.total], room, own, 0)
            written += own.total


def _repeat_piece(data: NDArray[Any], out: NDArray[Any], room: NDArray[Any], counts: Counts, axis: int) -> None:
    repeat_counted(_piece(data, room), counts, axis, out)
    forget(out)
    forget(data)


def _try(data: NDArray[Any], room: NDArray[Any]) -> None:
    """Convert `data` piece by piece for nothing but what that raises."""
    if _is_piece(data, room):
        _piece(data, room)
    else:
        step = _step(data, room)
        for begin in range(0, data.shape[0], step):
            _try(data[begin : begin + step] if step > 1 else data[begin, ...], room)


def _is_piece(data: NDArray[Any], room: NDArray[Any]) -> bool:
    """Return whether data is converted at once."""
    if data.ndim == 0 or data.size <= room.size:
        return True
    return data.shape[0] * data.itemsize <= LINES and not _is_ordered(data)


def _piece(data: NDArray[Any], room: NDArray[Any]) -> NDArray[Any]:
    """Convert a piece; in `room`, unless it is too large or lies in memory in another order, which it keeps."""
    if not is_contiguous(data) or data.size > room.size:
        return converted(data, room.dtype)
    piece = room[: data.size].reshape(data.shape)
    convert_into(piece, data)
    return piece


def _step(data: NDArray[Any], room: NDArray[Any]) -> int:
    """Return how many indices of the outermost axis make a piece: one, if even that is too large."""
    step: int = room.size // (data.size // data.shape[0])
    return max(step, 1 if _is_ordered(data) else LINES // data.itemsize, 1)


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
    """Return whether the whole data must be converted first: that may run others' code, or `out` overlaps the data."""
    return not (_is_plain(dtype_of(data)) and _is_plain(dtype)) or (not fresh and np.may_share_memory(data, out))


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
    if data.dtype.kind != "c" or dtype.kind not in "iuf":
        return data
    np.zeros(1, data.dtype).astype(dtype)
    return data.real


def _warning_may_raise() -> bool:
    """Return whether a warning from NumPy may become an error, or call code of the user's."""
    modes = set(np.geterr().values())
    if modes <= {"ignore", "print"}:
        return False
    usual = warnings.showwarning is getattr(warnings, "_showwarning_orig", None)
    if usual and modes <= {"ignore", "print", "warn"} and not getattr(sys.flags, "context_aware_warnings", False):
        return any(action == "error" for action, *_ in warnings.filters)
    return True


def _warn(flags: list[int]) -> None:
    """Have NumPy warn, or raise, as the user has told it to, by a cast that sets the same flags."""
    numbers = {OVERFLOW: 0x7E37E43C8800759C, UNDERFLOW: 0x01A56E1FC2F8F359, INVALID: 0x7FF0000000000001}
    found = [number for flag, number in numbers.items() if any(each & flag for each in flags)]
    np.array(found, np.uint64).view(np.float64).astype(np.float32)  # 1e300, 1e-300 and a signalling NaN
