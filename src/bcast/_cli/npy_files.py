"""Arrays in .npy files. In: names, places of blocks. Out: blocks of maps, whose pages do not stay in memory."""

import errno
import mmap
import os
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from math import isqrt, prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from bcast._cli.atomic import atomic_write
from bcast._cli.blocks import Index


class NpyInput:
    """The array in a .npy file."""

    def __init__(self, name: str) -> None:
        """Map the array; raise `ValueError` if the file does not hold one."""
        path = Path(name)
        if path.exists() and not path.is_file():  # opening a pipe could block forever
            raise ValueError(f"`IN` expected a regular .npy file, neither pipe, device nor directory, got {name}")
        try:
            with warnings.catch_warnings(action="ignore"), path.open("rb") as file:  # such as one of a header's version
                version = npy.read_magic(file)
                shape = (npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0)(file)[0]
                if min(shape, default=0) < 0:  # some of them make NumPy divide by zero
                    raise ValueError(f"negative lengths in shape {shape}")
                self.array: Any = npy.open_memmap(name, mode="r")
        except OSError as error:
            error.filename = name
            raise
        except Exception as error:  # a damaged header raises many kinds of errors, even the parser's MemoryError
            raise ValueError(f"`IN` expected a whole .npy file, without objects, got {name}: {error!r}") from error

    def unit(self, items: int) -> tuple[int, ...]:
        """Return lengths of parts that are contiguous in the file, if its order is not C order."""
        lengths, left = [], 1 if self.array.flags.c_contiguous else isqrt(items)
        for whole in self.array.shape:
            lengths.append(max(1, min(whole, left)))
            left //= lengths[-1]
        return tuple(lengths)

    def read(self, index: Index) -> NDArray[Any]:
        """Return a part, valid until the next one is read: from the map if contiguous there, otherwise a copy."""
        _forget(self.array)
        window: NDArray[Any] = self.array[(*index, ...)]  # with `...`, a 0-d array gives a view, too
        if window.flags.forc:
            return window
        part: NDArray[Any] = np.empty_like(window, subok=False)
        if self.array.flags.c_contiguous:
            _copy_runs(part, window, window)
        else:
            _copy_runs(part.T, window.T, window.T)
        return part


class NpyOutput:
    """A .npy file that is written block by block."""

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any], joined: tuple[int, ...]) -> None:
        """Store the shape that blocks are cut from, and the shape in the file, which joins some of its axes."""
        self.dtype = dtype
        self._shape, self._joined = shape, joined
        self._array: Any = None

    @contextmanager
    def written(self, name: str, clobber: bool) -> Iterator[None]:
        """Make the file, which takes its name after the block; reserve the disk's room for it first."""
        with atomic_write(name, clobber) as path:
            size = prod(self._shape) * self.dtype.itemsize
            if shutil.disk_usage(path.parent).free < size:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            with warnings.catch_warnings(action="ignore"):  # about the header's version, which the dtype needs
                if size:
                    self._array = npy.open_memmap(path, "w+", self.dtype, self._joined).reshape(self._shape)
                else:
                    with path.open("wb") as file:
                        np.save(file, np.ndarray(self._joined, self.dtype, b""))
            try:
                if hasattr(os, "posix_fallocate"):  # or else a full disk would end the process
                    with path.open("r+b") as file:
                        os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
                yield
                if size:
                    self._array.flush()
            finally:
                self._array = None  # Windows renames and removes no mapped file

    def block(self, index: Index) -> NDArray[Any]:
        """Return a contiguous array to fill."""
        window: NDArray[Any] = self._array[(*index, ...)]
        return window if window.flags.c_contiguous else np.empty(window.shape, self.dtype)

    def write(self, index: Index, block: NDArray[Any]) -> None:
        """Write a block."""
        if not isinstance(block, np.memmap):
            window = self._array[(*index, ...)]
            _copy_runs(window, block, window)
        _forget(self._array)


def _copy_runs(to: NDArray[Any], source: NDArray[Any], window: Any) -> None:
    """Copy; release the pages of a map after each window of contiguous items."""
    depth = 0
    while not window[(0,) * depth].flags.c_contiguous:
        depth += 1
    for place in np.ndindex(window.shape[:depth]):
        to[place] = source[place]
        _forget(window)


def _forget(array: Any) -> None:
    if hasattr(mmap, "MADV_DONTNEED"):
        array._mmap.madvise(mmap.MADV_DONTNEED)
