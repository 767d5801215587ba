"""From users' arguments to tuples of Python integers, or to an error that says what was expected.

Shapes and axes of the broadcasts are read strictly; counts and axes of `tile` and `repeat` as NumPy reads them.
"""

import operator
import sys
from collections.abc import Iterable, Mapping, Set
from typing import Any, NoReturn

import cython
import numpy as np
from numpy import ndarray
from numpy.exceptions import AxisError
from numpy.typing import DTypeLike

from bcast._runtime.arrays import as_dtype, is_masked, type_of

Shape = tuple[int, ...]

CASTINGS = ("no", "equiv", "safe", "same_kind", "unsafe")  # in the order of NumPy's numbers for them

MAX_RANK = 64  # NumPy's own limit
MOST_SHOWN = 200  # the most characters of a value in a message
MOST_ITEMS = 8  # the most items of an array that is shown whole
MAX_SIZE = sys.maxsize
INT64 = np.int64
FLOATS = (float, np.floating)
UNFIT = (str, bytes, bytearray, Mapping)  # iterable, but never meant as a sequence of integers
UNFIT_AS_SEQUENCE = UNFIT + (Set,)


def shape_argument(name: str, value: Any) -> Shape:
    """Check that the user's `value` is the shape of a possible array, and return it as a tuple."""
    shape = integers(name, value, False)
    if len(shape) > MAX_RANK or not is_countable(shape):
        if min(shape) < 0:
            raise ValueError(f"`{name}` expected lengths of 0 or more, got {show(value)}")
        check_rank(name, shape)
        refuse_size(name, shape)
    return shape


@cython.cdivision(True)  # no length of 0 is a divisor
def is_countable(shape: Shape) -> bool:
    """Return whether an index can count the elements; as in NumPy, a length of 0 does not excuse the others."""
    room = MAX_SIZE
    try:
        for length in shape:
            if length < 0:
                return False
            if length:
                room //= length
    except OverflowError:  # in compiled code, for a length that C cannot hold
        return False
    return room > 0


def mode_of(value: object, modes: tuple[str, ...], name: str) -> str:
    """Check that the user's `value` is one of `modes`; return the string object in `modes`, to be compared by `is`."""
    for mode in modes:
        if value is mode:  # literals are interned, so this nearly always finds it
            return mode
    if isinstance(value, str) and value in modes:
        return modes[modes.index(value)]
    kind = ValueError if isinstance(value, str) else TypeError
    raise kind(f"`{name}` expected one of {', '.join(map(repr, modes))}, got {show(value)}")


def dtype_argument(dtype: DTypeLike) -> np.dtype[Any]:
    """Convert the user's `dtype` to a dtype, or raise an error."""
    try:
        return as_dtype(dtype)
    except TypeError as error:
        raise TypeError(f"`dtype` expected a dtype, or the name or type of one, got {show(dtype)}") from error


def all_plain(items: tuple[Any, ...]) -> bool:
    """Return whether all items are Python ints, as they nearly always are."""
    for item in items:  # noqa: SIM110 (compiled, the loop takes a third of the generator's time)
        if type(item) is not int:
            return False
    return True


def integers(name: str, value: Any, unordered: bool) -> Shape:
    """Check that `value` is a 1-D sequence of integers, or if `unordered` a set of them; return Python ints."""
    kind = type(value)
    if kind is tuple or kind is list or (unordered and (kind is set or kind is frozenset)):
        items = tuple(value)
        if all_plain(items):
            return items
    if hasattr(value, "__array__"):  # the arrays of any library
        found = _integers_of_array(value)
    else:
        found = _integers_in(name, value, UNFIT if unordered else UNFIT_AS_SEQUENCE)
    if found is None:
        raise TypeError(f"`{name}` expected a 1-D sequence of integers, got {show(value)}{_shape_remedy(name, value)}")
    return found


def _integers_of_array(value: Any) -> Shape | None:
    """Return the items of an array of integers with one axis and no mask; None for other arrays."""
    array = np.asarray(value)
    if array.ndim == 1 and array.dtype.kind in "iu" and not is_masked(value):
        return tuple(array.tolist())
    return None


def _integers_in(name: str, value: Any, unfit: tuple[type, ...]) -> Shape | None:
    """Return the items of an iterable of integers; None for other iterables, and for the `unfit` classes."""
    if not isinstance(value, Iterable) or isinstance(value, unfit):
        return None
    items: list[int] = []
    try:
        for item in value:
            items.append(integer(name, item))
    except (TypeError, NotImplementedError):  # memoryviews of several axes raise the latter
        return None  # a message shows the whole value
    return tuple(items)


def _shape_remedy(name: str, value: Any) -> str:
    """Suggest a shape to pass instead of an integer, or the order of arguments."""
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool) and value >= 0:
        return f"; use ({value},)"
    swapped = isinstance(value, ndarray) and value.ndim > 1 and "shape" in name
    return "; the array comes before the shape" if swapped else ""


def integer(name: str, value: Any) -> int:
    """Check that `value` is an integer, and not a bool; return it as a Python int."""
    if type(value) is int:
        return value
    if hasattr(value, "__array__"):  # NumPy's scalars, and the arrays of any library
        array = np.asarray(value)
        if array.ndim == 0 and array.dtype.kind in "iu" and not is_masked(value):
            return int(array)
    elif not isinstance(value, bool):
        try:
            return operator.index(value)
        except TypeError:
            pass  # one message serves every kind
    raise TypeError(f"`{name}` expected an integer, got {show(value)}")


def counts_argument(name: str, value: Any, floats: bool) -> Shape:
    """Check that `value` is one count or a 1-D sequence of counts; return Python ints. `floats` allows whole floats."""
    counts = (value,) if type(value) is int else plain_counts(value)
    if counts is None:
        items = []
        try:
            for item in _items(value):
                items.append(_count(item, floats))
        except TypeError:
            expected = "an integer or a 1-D sequence of integers"
            raise TypeError(f"`{name}` expected {expected}, got {show(value)}{_counts_remedy(name, value)}") from None
        counts = tuple(items)
    if total_of(counts) < 0:
        raise ValueError(f"`{name}` expected counts of 0 or more, got {show(value)}")
    return counts


def _counts_remedy(name: str, value: Any) -> str:
    """Suggest counts to pass instead of floats, or the order of arguments."""
    if hasattr(value, "__array__") and not isinstance(value, ndarray):
        try:
            value = np.asarray(value)
        except (TypeError, ValueError, RuntimeError):  # a tensor's on another device
            return ""
    if isinstance(value, ndarray) and value.ndim > 1:  # integers may be counts of several axes
        return "; the array comes before the counts" if name == "reps" or value.dtype.kind not in "iu" else ""
    return "; round floats first" if _has_floats(value) else ""


def _has_floats(value: Any) -> bool:
    """Return whether a value is a float, or has floats as items."""
    items: Any = (value,)
    if isinstance(value, (tuple, list)):
        items = value
    elif isinstance(value, Iterable) and np.ndim(value):  # type: ignore[arg-type]
        items = np.asarray(value).ravel()
    for item in items:  # noqa: SIM110 (compiled, a generator would be a class of its own)
        if isinstance(item, FLOATS):
            return True
    return False


def plain_counts(value: Any) -> Shape | None:
    """Return the counts if `value` is of a common kind, faster than `_items` does; None otherwise."""
    kind = type(value)
    if kind is tuple or kind is list:
        items = tuple(value)
        return items if all_plain(items) else None
    if kind is INT64:
        return (int(value),)
    if kind is ndarray and value.ndim == 1 and 1 <= type_of(value) <= 10:  # NumPy's integers
        return tuple(value.tolist())
    return None


def total_of(counts: Shape) -> int:
    """Return the sum of all counts, at most MAX_SIZE; -1 if one of them is negative."""
    total = 0
    try:
        for count in counts:
            if count < 0:
                return -1
            total = total + count if count < MAX_SIZE - total else MAX_SIZE
    except OverflowError:  # in compiled code, for a large count
        return -1 if min(counts) < 0 else MAX_SIZE
    return total


def _items(value: Any) -> Any:
    """Return the items of a sequence; anything else is returned as the only item."""
    if type(value) is tuple or type(value) is list:
        return value
    if isinstance(value, UNFIT_AS_SEQUENCE) or is_masked(value):
        raise TypeError
    if isinstance(value, ndarray):
        return _items_of_array(value)
    several = isinstance(value, Iterable) and getattr(value, "ndim", 1) != 0
    if not several and hasattr(value, "__array__"):  # NumPy's scalars, and the arrays of any library
        return _items_of_array(value)
    return value if several else (value,)


def _items_of_array(value: Any) -> Any:
    """Return an array, or if it has no axes, its item in a tuple."""
    array = np.asarray(value)  # attributes of subclasses may mislead
    return array if array.ndim else (array[()],)


def _count(item: Any, floats: bool) -> int:
    """Return an item as a Python int; bools are accepted, as in NumPy, and whole floats if `floats`."""
    if not hasattr(item, "__index__") and hasattr(item, "__array__") and np.ndim(item) == 0:
        item = np.asarray(item)[()]
    if type(item) is np.bool or (floats and isinstance(item, FLOATS) and item.is_integer()):
        return int(item)
    return operator.index(item)


def axes_argument(axis: Any) -> int | Shape | None:
    """Check that `axis` is None, an integer or a 1-D sequence of integers; return Python ints."""
    if axis is None or type(axis) is int or (type(axis) is tuple and all_plain(axis)):
        return axis
    axes: list[int] = []
    try:
        items = _items(axis)
        for item in items:
            axes.append(integer("axis", item))
    except TypeError:
        raise TypeError(f"`axis` expected None, an integer or a 1-D sequence of integers, got {show(axis)}") from None
    is_one = type(items) is tuple and items is not axis
    return axes[0] if is_one else tuple(axes)


def place_of(axis: int, shape: Shape) -> int:
    """Return the axis of data of `shape`, counted from 0."""
    rank = len(shape)
    try:
        at = axis
    except OverflowError:  # in compiled code
        at = rank
    if at < 0:
        at += rank
    if not 0 <= at < rank:
        raise AxisError(f"`axis` expected an axis of data of shape {shape}, got {show(axis)}")
    return at


def check_rank(name: str, shape: Shape) -> None:
    """Refuse a shape of more axes than an array can have."""
    if len(shape) > MAX_RANK:
        raise ValueError(f"`{name}` expected at most {MAX_RANK} axes, got {len(shape)}")


def refuse_size(name: str, shape: Shape) -> NoReturn:
    """Refuse a shape of more elements than an index can count."""
    raise ValueError(f"`{name}` expected an output of at most {MAX_SIZE} elements, got {show(shape)}")


def show(value: Any) -> str:
    """Show a value of any kind and size on one short line."""
    try:
        return brief(" ".join(_shown(value, MAX_RANK).split()))
    except ValueError:  # an integer has more digits than Python converts
        return f"a {type(value).__name__} too long to show"


def brief(value: object) -> str:
    """Return the `str` of a value, cut off if it is long: dtypes may have thousands of fields."""
    text = str(value)
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}..."


def _shown(value: Any, depth: int) -> str:
    """Return the beginning of a value's `repr`, without making the rest; for arrays, shape and dtype.

    `depth` limits how deeply nested lists are shown.
    """
    kind = type(value)
    if isinstance(value, ndarray):
        array = np.asarray(value)  # attributes of subclasses may mislead
        is_long = array.size > MOST_ITEMS
        return f"{kind.__name__} of shape {array.shape} and {array.dtype}" if is_long else repr(value)
    if isinstance(value, (dict, set, frozenset)) and len(value) > MOST_SHOWN:
        return f"{kind.__name__} of {len(value)} items"
    if kind is str or kind is bytes or kind is bytearray:
        return repr(value[: MOST_SHOWN + 1])
    if kind is tuple or kind is list:
        return _shown_items(value, depth)
    return repr(value)


def _shown_items(value: Any, depth: int) -> str:
    """Return the beginning of the `repr` of a tuple or list; at depth 0, "..." replaces all items."""
    begin, end = ("[", "]") if type(value) is list else ("(", ",)" if len(value) == 1 else ")")
    text = "" if depth else "..."
    for item in value if depth else ():
        text += f", {_shown(item, depth - 1)}" if text else _shown(item, depth - 1)
        if len(text) > MOST_SHOWN:
            return begin + text
    return begin + text + end
