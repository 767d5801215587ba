"""From data to results. In: what users pass, with an alignment or run lengths. Out: an array of copies.

`as_array` reads data. `materialise` replicates along an alignment. If the result has another dtype than the data, the
data is converted, then replicated: large data block by block, without an intermediate array of its size, except for run
lengths. One call of `astype` on the broadcast array would give the same errors and warnings. Each comes once, before a
user's `out` is written.
"""

import sys
from collections.abc import Callable
from typing import Any

import cython
import numpy as np
from numpy import generic, ndarray
from numpy.typing import ArrayLike, NDArray

from bcast._apply.ufuncs import may_fail
from bcast._elementwise import run_steps, with_plain_bytes
from bcast._kernel import repeat_counted, replicate
from bcast._rules.alignment import Alignment
from bcast._rules.arguments import CASTINGS, Shape, brief, dtype_argument, mode_of
from bcast._rules.counts import Counts, counts_of_array, counts_of_tuple
from bcast._rules.types import Casting, DType
from bcast._runtime.arrays import (
    are_alike,
    are_numbers,
    can_cast,
    convert_into,
    converted,
    dtype_of,
    is_contiguous,
    is_masked,
    is_ordered,
    keeps_dtype,
    may_warn,
    refuse_repeated,
    reshaped,
    result_array,
    shape_of,
    size_of,
    stretched,
)
from bcast._runtime.core import (
    CONVERTED_BLOCK_BYTES,
    COPY_STREAMED_BYTES,
    FEW_TIMES,
    FEW_UNITS,
    forget,
    is_mapped,
)
from bcast._runtime.errors import quietly

SAME_KIND: Casting = "same_kind"
NUMBER_OF_SAME_KIND = CASTINGS.index(SAME_KIND)
UNSAFE_KIND: Casting = "unsafe"
UNSAFE = CASTINGS.index(UNSAFE_KIND)
UNMASKED = "pass its .filled(), or its .data and its .mask in two calls"
NUMBERS = (int, float, complex, bool, str)
MAPPED = np.memmap
USUAL = frozenset((int, float, complex, bool, str, list, tuple, type(None), MAPPED))
ARRAY_UFUNC: Any = ndarray.__array_ufunc__
ARRAY_FUNCTION: Any = ndarray.__array_function__
MADE_BY_USERS = 1 << 9  # Python's flag of heap types; NumPy's scalars have static types
MOST_AXES = 64  # the most axes of an array that NumPy makes from nested lists
LAST_OF_NUMPY = 255  # the largest number of a dtype of NumPy's own
block_size = CONVERTED_BLOCK_BYTES  # tests set others
few_times = FEW_TIMES
MANY_PARTS = FEW_UNITS  # the most parts of a block; larger parts are worth a view, or a loop of bcast's own
LARGE_BLOCKS = COPY_STREAMED_BYTES // CONVERTED_BLOCK_BYTES  # too large for any cache


def set_limits(block_bytes: int = CONVERTED_BLOCK_BYTES) -> None:
    """Set the size of the blocks: for tests of small arrays."""
    global block_size
    most = sys.maxsize // 64  # products of it must not overflow
    if not 1 <= block_bytes <= most:
        raise ValueError(f"`block_bytes` expected bytes, from 1 to {most}, got {block_bytes}")
    block_size = block_bytes


def as_array(name: str, data: ArrayLike) -> NDArray[Any]:
    """Convert the user's `data` to an array, unless it is one of the base class; refuse masked arrays."""
    if type(data) is ndarray:
        return cython.cast(ndarray, data)  # type: ignore[attr-defined,no-any-return]
    if is_masked(data):
        raise TypeError(f"`{name}` expected an array without a mask, got {type(data).__name__}; {UNMASKED}")
    if isinstance(data, (list, tuple)):
        _expect_items(name, data)
    elif type(data) not in NUMBERS and not isinstance(data, generic) and is_tensor(data):
        return _exported(f"`{name}` expected an array that NumPy can read", data, False)
    try:
        array = np.asarray(data)
    except ValueError as error:
        raise ValueError(f"`{name}` expected an array_like of one shape, got {type(data).__name__}: {error}") from error
    if array.dtype.hasobject and array.ndim == 0 and overrides(data):  # NumPy has stored it as an object
        raise TypeError(f"`{name}` expected an array that NumPy can read, got {type(data).__name__}")
    return array


def _expect_items(name: str, data: Any) -> None:
    """Refuse masked arrays in a list, which would lose their masks, and tensors, which NumPy would store as objects."""
    for item in data:
        kind = type(item)
        if kind in NUMBERS:  # so are the others, or they are lists
            return
        if kind is list or kind is ndarray:
            continue
        if is_masked(item):
            got = f"a {type(data).__name__} with one"
            raise TypeError(f"`{name}` expected arrays without masks, got {got}; {UNMASKED}")
        if is_tensor(item) and not hasattr(item, "__array__"):
            got = f"a {type(data).__name__} of {kind.__name__}"
            raise TypeError(f"`{name}` expected items that NumPy converts, got {got}; stack them first")


def overrides(value: Any) -> bool:
    """Return whether the value's class overrides NumPy's ufuncs or functions."""
    kind: Any = type(value)
    if kind is ndarray or kind in USUAL or (isinstance(value, generic) and not kind.__flags__ & MADE_BY_USERS):
        return False
    if getattr(kind, "__array_ufunc__", ARRAY_UFUNC) is not ARRAY_UFUNC:
        return True
    return getattr(kind, "__array_function__", ARRAY_FUNCTION) is not ARRAY_FUNCTION


def is_handed_on(value: Any) -> bool:
    """Return whether arithmetic passes a value to NumPy unchanged, because its class may decide the result.

    This holds for all subclasses of ndarray except `numpy.memmap`, and for objects that override NumPy.
    """
    if type(value) is ndarray or type(value) is MAPPED:
        return False
    return isinstance(value, ndarray) or overrides(value)


def as_base(value: Any) -> Any:
    """Return a `numpy.memmap` as an array of the base class, and anything else unchanged."""
    return ndarray.view(value, ndarray) if type(value) is MAPPED else value


def as_operand(name: str, value: Any) -> Any:
    """Convert an operand of arithmetic to an array, unless NumPy gets it unchanged.

    Lists of objects that override NumPy raise an error: NumPy ignores the classes of items, so the result would lose
    what these add to numbers.
    """
    if is_handed_on(value):
        return value
    if isinstance(value, (list, tuple)):
        _refuse_overriding(name, value, type(value).__name__, MOST_AXES)
    return as_array(name, value)


def _refuse_overriding(name: str, items: Any, kind: str, depth: int) -> None:
    """Refuse a list, or a nested list, of objects that override NumPy; a number as an item ends the search."""
    for item in items:
        if type(item) in NUMBERS:
            break
        if isinstance(item, (list, tuple)):
            if depth > 1:
                _refuse_overriding(name, item, kind, depth - 1)
        elif overrides(item) and not is_masked(item):
            got = f"a {kind} of {type(item).__name__}"
            raise TypeError(f"`{name}` expected arrays or numbers, got {got}, which overrides NumPy; stack them first")


def is_tensor(out: Any) -> bool:
    """Return whether this is an array of another library that may share its memory."""
    return not isinstance(out, ndarray) and hasattr(type(out), "__dlpack__")


def into_tensor(function: Callable[..., Any], out: NDArray[Any], *args: Any, **kwargs: Any) -> NDArray[Any]:
    """Call a function with an array over the memory of `out`, a tensor of another library; return `out`."""
    function(*args, out=_view_of(out), **kwargs)
    return out


def _view_of(out: Any) -> NDArray[Any]:
    """Return an array over the memory of the user's `out`, a tensor that the CPU can write to, item by item."""
    view = _exported("`out` expected an array that NumPy can write to", out, True)
    refuse_repeated(view, out)
    return view


def _exported(expected: str, tensor: Any, written: bool) -> NDArray[Any]:
    """Return an array over the memory of a tensor; unless it is `written`, its own conversion may make the array.

    Tensors on other devices are refused: nobody asked for a copy.
    """
    try:
        kind, number = tensor.__dlpack_device__()
        if kind not in (1, 3):  # DLPack's numbers for the CPU and for memory that it shares with a GPU
            device = getattr(tensor, "device", f"{int(kind)}:{number}")
            raise TypeError(f"it is on device {device}; copy it to the CPU's memory first")
        if not written and hasattr(tensor, "__array__"):
            return np.asarray(tensor)
        if written and getattr(tensor, "is_neg", bool)():  # PyTorch would export the items before negation
            raise TypeError("its items are negated lazily; call .resolve_neg() first")
        return np.from_dlpack(tensor)
    except (AttributeError, TypeError, ValueError, RuntimeError, BufferError) as error:
        text = f"{expected}, got {type(tensor).__name__}: {error}"
        if "float" in str(getattr(tensor, "dtype", "")) and "nsupported" in str(error):
            text += "; NumPy has no such dtype: convert it by .float(), or pass its bits as a dtype of ml_dtypes"
        raise TypeError(text) from error


def materialise(
    data: NDArray[Any], alignment: Alignment, shape: Shape, out: Any, name: str, dtype: Any, casting: Casting
) -> NDArray[Any]:
    """Replicate `data` along `alignment` into `out`, or into a new array of `shape`, which the user calls `name`.

    The user's arguments come one by one: an object for them would cost a small call more than 10 ns.
    """
    if out is not None and type(out) is not ndarray:
        base = _view_of(out) if is_tensor(out) else as_base(out)
        if base is not out:
            materialise(data, alignment, shape, base, name, dtype, casting)
            return out  # type: ignore[no-any-return]
    if not converts(data, out, dtype, casting):
        return replicate(data, alignment, result_array(out, data, shape, name))
    data, wanted = prepared(data, shape, out, dtype, casting)
    return convert_onto(data, alignment, result_array(out, data, shape, name, wanted), wanted, out is None)


def converts(data: NDArray[Any], out: Any, dtype: Any, casting: Casting) -> bool:
    """Return whether a call may ask for another dtype than the data's."""
    return dtype is not None or casting is not SAME_KIND or (out is not None and not keeps_dtype(data, out))


def casting_number(casting: Casting) -> int:
    """Return NumPy's number for a rule of casting."""
    if casting is SAME_KIND:
        return NUMBER_OF_SAME_KIND
    return UNSAFE if casting is UNSAFE_KIND else CASTINGS.index(mode_of(casting, CASTINGS, "casting"))


def prepared(
    data: NDArray[Any], shape: Shape, out: Any, dtype: DType, casting: Casting
) -> tuple[NDArray[Any], np.dtype[Any]]:
    """Check `dtype` and `casting`; return the data and the dtype of the result, which has `shape`.

    The data is returned converted if its values decide the dtype, as with the length of strings.
    """
    rule = casting_number(casting)
    own = dtype_of(data)
    if dtype is not None:
        wanted = dtype_argument(dtype)
    elif isinstance(out, ndarray) and not is_masked(out):
        wanted = dtype_of(out)
    else:
        wanted = own

    if are_alike(own, wanted):
        return data, wanted
    if not are_numbers(own, wanted):
        return _prepared_others(data, shape, wanted, dtype is not None, casting)
    if not can_cast(data, wanted, rule):
        _refuse_cast(own, wanted, casting, dtype is None)
    return data, wanted


def _prepared_others(
    data: NDArray[Any], shape: Shape, wanted: np.dtype[Any], is_given: bool, casting: Casting
) -> tuple[NDArray[Any], np.dtype[Any]]:
    """Do the same unless both dtypes are numeric; `wanted` is the dtype of `out` unless it `is_given`."""
    own = dtype_of(data)
    if wanted.subdtype is not None:
        raise TypeError(f"`dtype` expected a dtype without a subarray shape, got {brief(wanted)}")
    follows = is_given and 0 not in shape and follows_values(own, wanted)
    if is_given and not follows and _is_open(wanted):
        wanted = np.empty(0, own).astype(wanted).dtype
    if not can_cast(data, wanted, casting_number(casting)):
        _refuse_cast(own, wanted, casting, not is_given)

    if is_of_package(wanted):
        data = with_plain_bytes(data)
    if follows:
        data = data.astype(wanted)
        wanted = data.dtype
    return data, wanted


def _refuse_cast(own: np.dtype[Any], wanted: np.dtype[Any], casting: Casting, is_of_out: bool) -> None:
    """Raise the error of a conversion that a rule of casting forbids."""
    is_near = casting == SAME_KIND and are_numbers(own, wanted)
    got = f"{wanted}; use casting='unsafe'" if is_near else brief(wanted)
    name = "out" if is_of_out else "dtype"
    raise TypeError(f"`{name}` expected a dtype that casting={casting!r} allows for data of {brief(own)}, got {got}")


def is_of_package(dtype: np.dtype[Any]) -> bool:
    """Return whether a dtype is another package's, whose conversion may read the raw bytes of bools."""
    return dtype.num > LAST_OF_NUMPY


def convert_onto(
    data: NDArray[Any], alignment: Alignment, out: NDArray[Any], dtype: np.dtype[Any], fresh: bool
) -> NDArray[Any]:
    """Convert `data` to `dtype`, the dtype of `out`; replicate it along `alignment` into `out`; return `out`.

    `out` is `fresh` if nobody sees it after an error.
    """
    if size_of(out) == 0:
        np.empty(0, data.dtype).astype(dtype)  # for a warning that depends on the dtypes alone
        return out
    if are_alike(dtype_of(data), dtype):
        return replicate(data, alignment, out)

    if size_of(data) * dtype.itemsize <= 4 * block_size:
        is_done = _convert_small(data, alignment, out, dtype, fresh)
    else:
        if data.dtype.kind == "c" and dtype.kind in "iuf":
            np.zeros(1, data.dtype).astype(dtype)  # for NumPy's warning, which each block would repeat
            data = data.real
        is_done = _convert_large(data, alignment, out, dtype, fresh)
    return out if is_done else replicate(_converted(data, dtype), alignment, out)


def _convert_small(
    data: NDArray[Any], alignment: Alignment, out: NDArray[Any], dtype: np.dtype[Any], fresh: bool
) -> bool:
    """Convert a few blocks straight into `out`; return False if converting them all at once is faster."""
    once = size_of(data) == size_of(out)
    if not once:
        # Items that repeat once or twice may be converted as often, if they are worth a view.
        is_worth_it = size_of(data) * dtype.itemsize >= block_size // MANY_PARTS
        if not is_worth_it or size_of(out) // few_times > size_of(data):
            return False

    is_sure = fresh or not may_warn(data, dtype)
    if not is_sure and is_contiguous(data):
        is_sure = not may_fail(data, dtype)  # faster than making another array
    if not is_sure or is_mapped(out) or is_mapped(data) or not (once or is_ordered(data)):
        return False
    return _convert_in_place(data, alignment, out, dtype, once)


def _convert_large(
    data: NDArray[Any], alignment: Alignment, out: NDArray[Any], dtype: np.dtype[Any], fresh: bool
) -> bool:
    """Convert many blocks straight into `out`; return False if converting them all at once is faster."""
    once = size_of(data) == size_of(out)
    is_sure = fresh or not may_warn(data, dtype)
    is_large = size_of(data) * dtype.itemsize > LARGE_BLOCKS * block_size
    mapped = is_mapped(out) or is_mapped(data)

    # Unless large, data in another order than C's, or whose conversion is tried first, converts faster all at once.
    if is_sure and not mapped and (once or is_large or is_ordered(data)):
        return _convert_in_place(data, alignment, out, dtype, once)
    return (is_large or mapped) and _convert_by_blocks(data, alignment, out, dtype, is_sure)


def _convert_in_place(
    data: NDArray[Any], alignment: Alignment, out: NDArray[Any], dtype: np.dtype[Any], once: bool
) -> bool:
    """Convert data that cannot fail straight into `out`, which has each item `once` or more often; or return False."""
    view, place = _aligned(data, alignment, out)
    # Items that become shorter are transposed after the conversion.
    is_direct = not once or is_ordered(data) or dtype.itemsize >= data.itemsize
    if is_direct and run_steps(view, (), 0, -1, dtype, UNSAFE, place) is not None:
        return True
    if once and is_contiguous(data) and is_contiguous(out):
        convert_into(place, view)
        return True
    return False


def _convert_by_blocks(
    data: NDArray[Any], alignment: Alignment, out: NDArray[Any], dtype: np.dtype[Any], is_sure: bool
) -> bool:
    """Convert numbers block by block into a contiguous `out` that does not overlap them; or return False."""
    if not are_numbers(data.dtype, dtype) or not is_contiguous(out) or np.may_share_memory(data, out):
        return False
    _by_blocks(data, alignment, out, dtype, is_sure)
    return True


def _aligned(data: NDArray[Any], alignment: Alignment, out: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return views of the data and of `out` that have one shape."""
    shape = alignment.shape
    view = data if shape_of(data) == alignment.source else reshaped(data, alignment.source)
    if size_of(data) != size_of(out):
        view = stretched(view, shape)
    return view, out if shape_of(out) == shape or not is_contiguous(out) else reshaped(out, shape)


def _by_blocks(data: NDArray[Any], alignment: Alignment, out: NDArray[Any], dtype: np.dtype[Any], sure: bool) -> None:
    """Convert numbers block by block, and warn once for all blocks; before a user's `out` is written.

    A warning may run user code that resizes arrays, so all views are made again after it.
    """
    tried = not sure and not set(np.geterr().values()) <= {"ignore", "print"}
    shapes = data.shape, out.shape
    kinds: dict[str, int] = {}
    with np.errstate(all="call", call=kinds.setdefault):
        view, place = (data, None) if tried else _aligned(data, alignment, out)
        _convert_blocks(view, place, dtype)
    # NumPy warns or raises, as the user has set it to, in a cast of 1e300, 1e-300 or a signalling NaN.
    numbers = {"overflow": 0x7E37E43C8800759C, "underflow": 0x01A56E1FC2F8F359, "invalid value": 0x7FF0000000000001}
    for kind in numbers:
        if kind not in kinds:
            numbers[kind] = 0
    np.array(tuple(numbers.values()), np.uint64).view(np.float64).astype(np.float32)
    if tried:
        if (data.shape, out.shape) != shapes:
            raise ValueError("`data` and `out` expected arrays that keep their sizes during the call, got resized ones")
        view, place = _aligned(data, alignment, out)
        quietly(_convert_blocks, view, place, dtype)


def _convert_blocks(data: NDArray[Any], out: NDArray[Any] | None, dtype: np.dtype[Any]) -> None:
    """Convert numbers into an array of the same shape, or into none; release the pages of mapped files."""
    if data.size > max(1, 4 * block_size // dtype.itemsize):
        axis = 0
        while data.shape[axis] == 1:
            axis += 1
        half = data.shape[axis] // 2
        for part in slice(half), slice(half, None):
            index = (slice(None),) * axis + (part,)
            _convert_blocks(data[index], None if out is None else out[index], dtype)
        return
    if run_steps(data, (), 0, -1, dtype, UNSAFE, out) is None:
        if out is None:
            converted(data, dtype)
        else:
            convert_into(out, data)
    forget(data)
    if out is not None:
        forget(out)


def convert_counted(
    data: NDArray[Any], counts: Counts, axis: int, out: NDArray[Any], dtype: np.dtype[Any]
) -> NDArray[Any]:
    """Convert `data` to `dtype`; repeat its items by `counts` into `out`; return `out`. No item has references."""
    if size_of(out) == 0:
        np.empty(0, data.dtype).astype(dtype)
        return out
    if may_warn(data, dtype) and may_fail(data, dtype):
        data, counts = without_dropped(data, counts, axis)
    return repeat_counted(_converted(data, dtype), counts, axis, out)


def without_dropped(data: NDArray[Any], counts: Counts, axis: int) -> tuple[NDArray[Any], Counts]:
    """Leave out the items that are repeated 0 times: their conversion could fail."""
    numbers = counts.to_array()
    if np.count_nonzero(numbers) == counts.size:
        return data, counts
    kept = numbers > 0
    numbers = numbers.compress(kept)  # `numbers[kept]` fails without an error if memory runs out
    data = data.compress(kept, axis if axis >= 0 else None)
    return data, counts_of_array(numbers) or counts_of_tuple(tuple(numbers.tolist()))


def _converted(data: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Convert an array: on several threads if it is large, and gathered by vectors if it is strided."""
    pays = size_of(data) * dtype.itemsize >= block_size // MANY_PARTS or (is_ordered(data) and not is_contiguous(data))
    result = run_steps(data, (), 0, -1, dtype, UNSAFE, None) if pays and not is_mapped(data) else None
    return converted(data, dtype) if result is None else result


def follows_values(own: np.dtype[Any], wanted: np.dtype[Any]) -> bool:
    """Return whether items of one dtype decide a length or a unit that the other leaves open."""
    return (own.kind in "OT" or (own.kind in "SU" and wanted.kind in "mM")) and _is_open(wanted)


def _is_open(dtype: np.dtype[Any]) -> bool:
    """Return whether the dtype leaves a length or a unit open, for the data to decide."""
    if dtype.kind in "mM":
        return np.datetime_data(dtype)[0] == "generic"
    return dtype.itemsize == 0 and dtype.names is None
