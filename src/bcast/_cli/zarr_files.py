"""Arrays in Zarr's folders. In: names, places of blocks. Out: blocks.

Each call of Zarr's is for one chunk: one for many goes on with the others after a failure, and nobody waits for it.
"""

import importlib
import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bcast._cli.atomic import atomic_write
from bcast._cli.blocks import Index, cells, within


class ZarrInput:
    """The array in one of Zarr's folders."""

    def __init__(self, name: str) -> None:
        """Read what describes the array; raise `ValueError` if the folder does not hold one."""
        zarr = _zarr()
        self._name = name
        with self._refusing():
            self._zarr = zarr.open_array(zarr.storage.LocalStore(name, read_only=True), mode="r")
            self.array: NDArray[Any] = np.broadcast_to(np.zeros((), self._zarr.dtype), self._zarr.shape)  # a stand-in
            self._chunk: tuple[int, ...] = self._zarr.shards or self._zarr.chunks
        self.chunk = math.prod(self._chunk)  # items that are read at once, however few are asked for
        # Bytes that reading a part takes beside it: Zarr drops some copies late, and the heap keeps some.
        self.room = 6 * self.chunk * self.array.itemsize

    def unit(self, items: int) -> tuple[int, ...]:
        """Return the lengths of a chunk, which is decoded as a whole, if it has no more items."""
        return self._chunk if self.chunk <= items else (1,) * self.array.ndim

    def read(self, index: Index) -> NDArray[Any]:
        """Read and decode a part."""
        to = np.empty([part.stop - part.start for part in index], self.array.dtype)
        with self._refusing():
            for cell in cells(index, self._chunk):
                to[within(index, cell)] = self._zarr[cell or ...]
        return to

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """Raise in one form what Zarr raises of a folder that it cannot read, which may be anything."""
        try:
            with warnings.catch_warnings(action="ignore"):  # of what the command's user cannot change
                yield
        except MemoryError:
            raise
        except Exception as error:
            raise ValueError(f"`IN` expected a Zarr array, got {self._name}: {error!r}") from error


class ZarrOutput:
    """An array in one of Zarr's folders, which is written chunk by chunk."""

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any], chunks: tuple[int, ...] | None) -> None:
        """Check the chunks, of which -1 is a whole axis; no file is touched. Zarr keeps no byte order."""
        self.dtype = dtype.newbyteorder("=")
        self._options = {"shape": shape, "dtype": self.dtype}
        # Zarr takes items for fill values that equal them, such as -0.0 in complex numbers and structures.
        self._options["config"] = {"write_empty_chunks": self.dtype.kind in "cV"}
        if chunks is not None:
            if len(chunks) != len(shape) or min(chunks, default=1) < -1 or 0 in chunks:
                raise ValueError(f"`chunks` expected {len(shape)} lengths, each at least 1 or -1, got {chunks}")
            whole = [n if n > 0 else max(1, length) for n, length in zip(chunks, shape, strict=True)]
            self._options["chunks"] = tuple(whole)
        with warnings.catch_warnings(action="ignore"):  # of what the array itself gives rise to later
            self._array = self._created(_zarr().storage.MemoryStore())
        self.unit: tuple[int, ...] = self._array.chunks  # lengths of which a block has a multiple, except at an end
        # Bytes that writing a block takes beside it: a chunk's items, those of it that are compared, its bytes.
        self.room = 3 * math.prod(self.unit) * self.dtype.itemsize

    @contextmanager
    def written(self, name: str, clobber: bool) -> Iterator[None]:
        """Make an array of nothing but fill values, which takes its name after the block."""
        with atomic_write(name, clobber, folder=True) as folder:
            self._array = self._created(_zarr().storage.LocalStore(folder))
            yield

    def block(self, index: Index) -> NDArray[Any]:
        """Return a contiguous array to fill."""
        return np.empty([part.stop - part.start for part in index], self.dtype)

    def write(self, index: Index, block: NDArray[Any]) -> None:
        """Write a block, but for its chunks of nothing but fill values."""
        for cell in cells(index, self.unit):
            self._array[cell or ...] = block[within(index, cell)]

    def _created(self, store: Any) -> Any:
        reason = None
        try:
            array = _zarr().create_array(store, **self._options)
            if array.dtype == self.dtype:
                return array
        except (ValueError, TypeError) as error:
            reason = error
        raise TypeError(f"`dtype` expected a dtype that Zarr stores, got {self.dtype}") from reason


def _zarr() -> Any:
    try:
        zarr = importlib.import_module("zarr")
    except ImportError as error:
        raise ImportError(f'Zarr arrays need the package zarr: pip install "bcast[zarr]" ({error})') from error
    if int(zarr.__version__.partition(".")[0]) < 3:
        raise ImportError(f"Zarr arrays need the package zarr from 3.0 on, got {zarr.__version__}")
    zarr.config.set({"async.concurrency": 1})  # chunks that a call has in memory at once
    return zarr
