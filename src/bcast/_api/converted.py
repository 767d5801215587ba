"""The way of data to a result: what users pass comes in, with an alignment or run lengths; out goes an array of copies.

`as_array` reads data. `materialise` replicates along an alignment. For a result of another dtype than the data's, the
data is converted, then replicated: large data block by block, so that no array of its size stands between the two, but
for run lengths. What one call of `astype` on the broadcast array would warn of or refuse is warned of once, or refused,
before a user's `out` is written.
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
MADE_BY_USERS = 1 << 9  # Python's flag of types that are no static ones, as those of NumPy's scalars are
MOST_AXES = 64  # that NumPy makes of lists in lists
LAST_OF_NUMPY = 255  # among the numbers of dtypes
block_size = CONVERTED_BLOCK_BYTES  # or what a test has set
few_times = FEW_TIMES
MANY_PARTS = FEW_UNITS  # of a block: one of so many is worth a view, or a loop of our own
LARGE_BLOCKS = COPY_STREAMED_BYTES // CONVERTED_BLOCK_BYTES  # which no cache holds


def set_limits(block_bytes: int = CONVERTED_BLOCK_BYTES) -> None:
    """Set the size of the blocks: for tests of small arrays."""
    global block_size
    most = sys.maxsize // 64  # as products of it are made
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
    if array.dtype.hasobject and array.ndim == 0 and overrides(data):  # NumPy refers to it as an object
        raise TypeError(f"`{name}` expected an array that NumPy can read, got {type(data).__name__}")
    return array


def _expect_items(name: str, data: Any) -> None:
    """Refuse masked arrays in a list, which would lose their masks, and tensors to which NumPy would only refer."""
    for item in data:
        kind = type(item)
        if kind in NUMBERS:  # the others are numbers, too, or lists
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
    """Return whether the value's class has own definitions of NumPy's ufuncs or functions, which NumPy then calls."""
    kind: Any = type(value)
    if kind is ndarray or kind in USUAL or (isinstance(value, generic) and not kind.__flags__ & MADE_BY_USERS):
        return False
    if getattr(kind, "__array_ufunc__", ARRAY_UFUNC) is not ARRAY_UFUNC:
        return True
    return getattr(kind, "__array_function__", ARRAY_FUNCTION) is not ARRAY_FUNCTION


def is_handed_on(value: Any) -> bool:
    """Return whether arithmetic leaves a value to NumPy as it is: its class may have a say in what comes out.

    So have all subclasses of ndarray but `numpy.memmap`, and what `overrides` NumPy.
    """
    if type(value) is ndarray or type(value) is MAPPED:
        return False
    return isinstance(value, ndarray) or overrides(value)


def as_base(value: Any) -> Any:
    """Return a `numpy.memmap` as an array of the base class, anything else as it is: files are arrays like others."""
    return ndarray.view(value, ndarray) if type(value) is MAPPED else value


def as_operand(name: str, value: Any) -> Any:
    """Convert an operand of arithmetic to an array, unless NumPy gets it as it is.

    Items of lists are no operands, so that NumPy would not ask their classes: what these add to numbers would be lost.
    """
    if is_handed_on(value):
        return value
    if isinstance(value, (list, tuple)):
        _refuse_overriding(name, value, type(value).__name__, MOST_AXES)
    return as_array(name, value)


def _refuse_overriding(name: str, items: Any, kind: str, depth: int) -> None:
    """Refuse a list, or lists in it, of what overrides NumPy; items of one list are taken to be alike."""
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
    """Return whether this is an array of another library, whose memory may be an array's."""
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
    """Return an array over the memory of a tensor, or what its own conversion makes if it is not `written`.

    Tensors on other devices are refused: a copy is nothing that anybody has asked for.
    """
    try:
        kind, number = tensor.__dlpack_device__()
        if kind not in (1, 3):  # DLPack's numbers of the CPU and of memory that it shares with a GPU
            device = getattr(tensor, "device", f"{int(kind)}:{number}")
            raise TypeError(f"it is on device {device}; copy it to the CPU's memory first")
        if not written and hasattr(tensor, "__array__"):
            return np.asarray(tensor)
        if written and getattr(tensor, "is_neg", bool)():  # PyTorch exports the items as they are without it
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

    The arguments come one by one: to put the user's three into an object would cost a small call more than 10 ns.
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

    The data comes back converted if its values decide what the dtype is, as the length of strings.
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
    """Do the same for what are not numbers on both sides; the `wanted` dtype is that of `out` unless it `is_given`."""
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
    """Return whether a dtype is another package's, which may convert the bytes of bools as they are."""
    return dtype.num > LAST_OF_NUMPY


def convert_onto(
    data: NDArray[Any], alignment: Alignment, out: NDArray[Any], dtype: np.dtype[Any], fresh: bool
) -> NDArray[Any]:
    """Convert `data` to `dtype`, which `out` has, and replicate it along `alignment` into `out`, which is returned.

    `out` is `fresh` if nobody sees it should this raise.
    """
    if size_of(out) == 0:
        np.empty(0, data.dtype).astype(dtype)  # for the warning that the dtypes alone give rise to
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
    """Convert a few blocks straight into `out`; return False where it takes less time to convert them all at once."""
    once = size_of(data) == size_of(out)
    if not once:
        # What is repeated once or twice may as well be converted so often, if it is worth a view.
        is_worth_it = size_of(data) * dtype.itemsize >= block_size // MANY_PARTS
        if not is_worth_it or size_of(out) // few_times > size_of(data):
            return False

    is_sure = fresh or not may_warn(data, dtype)
    if not is_sure and is_contiguous(data):
        is_sure = not may_fail(data, dtype)  # which takes less time than another array
    if not is_sure or is_mapped(out) or is_mapped(data) or not (once or is_ordered(data)):
        return False
    return _convert_in_place(data, alignment, out, dtype, once)


def _convert_large(
    data: NDArray[Any], alignment: Alignment, out: NDArray[Any], dtype: np.dtype[Any], fresh: bool
) -> bool:
    """Convert many blocks straight into `out`; return False where it takes less time to convert them all at once."""
    once = size_of(data) == size_of(out)
    is_sure = fresh or not may_warn(data, dtype)
    is_large = size_of(data) * dtype.itemsize > LARGE_BLOCKS * block_size
    mapped = is_mapped(out) or is_mapped(data)

    # Up to large sizes, what is not in C's order takes less time all at once, and so does what is tried before.
    if is_sure and not mapped and (once or is_large or is_ordered(data)):
        return _convert_in_place(data, alignment, out, dtype, once)
    return (is_large or mapped) and _convert_by_blocks(data, alignment, out, dtype, is_sure)


def _convert_in_place(
    data: NDArray[Any], alignment: Alignment, out: NDArray[Any], dtype: np.dtype[Any], once: bool
) -> bool:
    """Convert data that cannot fail straight into `out`, which has each item `once` or more often; or return False."""
    view, place = _aligned(data, alignment, out)
    # What becomes shorter is transposed after it.
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
    """Convert numbers block by block, and warn once of what all blocks give rise to: of a user's `out`, beforehand.

    What warns may run code of the user's that resizes arrays, so that all views are made anew after it.
    """
    tried = not sure and not set(np.geterr().values()) <= {"ignore", "print"}
    shapes = data.shape, out.shape
    kinds: dict[str, int] = {}
    with np.errstate(all="call", call=kinds.setdefault):
        view, place = (data, None) if tried else _aligned(data, alignment, out)
        _convert_blocks(view, place, dtype)
    # Have NumPy warn, or raise, as the user has told it to, by a cast of 1e300, 1e-300 or a signalling NaN.
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
    """Convert `data` to `dtype` and repeat its items by `counts` into `out`, which it returns; none has references."""
    if size_of(out) == 0:
        np.empty(0, data.dtype).astype(dtype)
        return out
    if may_warn(data, dtype) and may_fail(data, dtype):
        data, counts = without_dropped(data, counts, axis)
    return repeat_counted(_converted(data, dtype), counts, axis, out)


def without_dropped(data: NDArray[Any], counts: Counts, axis: int) -> tuple[NDArray[Any], Counts]:
    """Leave out the items that are repeated 0 times, lest their conversion fail."""
    numbers = counts.to_array()
    if np.count_nonzero(numbers) == counts.size:
        return data, counts
    kept = numbers > 0
    numbers = numbers.compress(kept)  # `numbers[kept]` fails without an error where memory does
    data = data.compress(kept, axis if axis >= 0 else None)
    return data, counts_of_array(numbers) or counts_of_tuple(tuple(numbers.tolist()))


def _converted(data: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Convert an array: on several threads if it is large, and gathered by vectors if it is at steps."""
    pays = size_of(data) * dtype.itemsize >= block_size // MANY_PARTS or (is_ordered(data) and not is_contiguous(data))
    result = run_steps(data, (), 0, -1, dtype, UNSAFE, None) if pays and not is_mapped(data) else None
    return converted(data, dtype) if result is None else result


def follows_values(own: np.dtype[Any], wanted: np.dtype[Any]) -> bool:
    """Return whether items of one dtype decide about a length or a unit that the other does not name."""
    return (own.kind in "OT" or (own.kind in "SU" and wanted.kind in "mM")) and _is_open(wanted)


def _is_open(dtype: np.dtype[Any]) -> bool:
    """Return whether the data decides about a length or a unit that the dtype does not name."""
    if dtype.kind in "mM":
        return np.datetime_data(dtype)[0] == "generic"
    return dtype.itemsize == 0 and dtype.names is None
