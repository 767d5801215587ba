"""Convert arguments to dask arrays whose chunks are NumPy arrays of known lengths; refuse other arguments."""

import math
from functools import partial
from typing import Any, TypeAlias

import dask.array as da
import numpy as np
from dask.base import is_dask_collection
from dask.core import flatten
from numpy.typing import ArrayLike

from bcast._api.converted import as_array, as_operand, follows_values, overrides
from bcast._api.copies import broadcast
from bcast._dask.tasks import block_of
from bcast._rules.arguments import dtype_argument, show
from bcast._rules.types import Casting, DType
from bcast._runtime.arrays import is_masked

Array: TypeAlias = Any  # dask.array.Array, which has another class under `array.query-planning`
AnyArray: TypeAlias = ArrayLike | Array
SplitEvery: TypeAlias = int | dict[int, int] | None


def as_dask(name: str, data: Any, computes: bool = False) -> Array:
    """Convert the user's `data` to a dask array, unless it is one; refuse chunks of other kinds or unknown lengths.

    If the caller `computes`, refuse classes that override NumPy's functions as well, because tasks would lose their
    units and labels. Copies accept such classes and return plain arrays.
    """
    if computes:
        _refuse_overriding(name, data)
    array = data if isinstance(data, da.Array) else _from_other(name, data, computes)
    _check_chunks(name, array)
    # A block without axes may be a Python number, which cannot be indexed.
    return array if array.ndim else da.map_blocks(partial(block_of, name), array, dtype=array.dtype, meta=array._meta)


def _refuse_overriding(name: str, data: Any) -> None:
    """Refuse arrays, and dask arrays whose chunks are arrays, of a class that overrides NumPy's functions."""
    is_dasks = isinstance(data, da.Array)
    if overrides(getattr(data, "_meta", None) if is_dasks else data):
        got = f"chunks of {type(data._meta).__name__}" if is_dasks else type(data).__name__
        raise TypeError(f"`{name}` expected arrays that do not override NumPy, got {got}; convert them first")


def _from_other(name: str, data: Any, computes: bool) -> Array:
    """Convert an argument to a dask array: another Dask collection, a list of collections, or an array_like."""
    holds_collections = _holds_collections(data)
    if computes and not holds_collections:
        data = as_operand(name, data)
    if holds_collections or is_dask_collection(data):
        return da.asarray(data)
    whole = as_array(name, data)
    return da.from_array(whole, chunks=-1 if whole.dtype.hasobject else "auto")  # Dask cannot size objects


def _check_chunks(name: str, array: Array) -> None:
    """Refuse chunks with masks, chunks that are not NumPy arrays, and chunks of unknown lengths."""
    meta = array._meta
    if is_masked(meta):
        raise TypeError(f"`{name}` expected chunks without masks, got chunks of {type(meta).__name__}; fill them first")
    if not isinstance(meta, np.ndarray):
        kind = f"{type(meta).__module__}.{type(meta).__qualname__}"
        raise TypeError(f"`{name}` expected chunks that are NumPy arrays, got chunks of {kind}")
    if any(math.isnan(length) for length in array.shape):
        got = f"shape {array.shape}; call its compute_chunk_sizes() first"
        raise ValueError(f"`{name}` expected chunks of known lengths, got {got}")


def converted_dtype(array: Array, dtype: DType, casting: Casting) -> np.dtype[Any]:
    """Return the dtype of a result. `casting` must allow the conversion, and the dtype must not depend on values."""
    wanted = broadcast(np.empty(0, array.dtype), (0,), dtype=dtype, casting=casting).dtype
    if dtype is not None and follows_values(array.dtype, asked := dtype_argument(dtype)):
        expected = f"a length or a unit, which is unknown until items of {array.dtype} are computed"
        raise TypeError(f"`dtype` expected a dtype with {expected}, got {asked}")
    return wanted


def in_memory(name: str, value: Any) -> Any:
    """Refuse dask collections, alone or in sequences, in an argument that is needed while the graph is built."""
    if is_dask_collection(value) or _holds_collections(value):
        raise TypeError(f"`{name}` expected integers in memory, got {show(value)}; call compute() first")
    return value


def _holds_collections(data: Any) -> bool:
    """Return whether a nested list contains a Dask collection."""
    return isinstance(data, (list, tuple)) and any(is_dask_collection(each) for each in flatten(data))
