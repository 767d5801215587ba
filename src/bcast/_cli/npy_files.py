"""Arrays in .npy files: parts are read through a memory map, blocks are written past the system's cache of files."""

import errno
import math
import mmap
import os
import shutil
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO, FileIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from bcast._cli.appearing import appearing
from bcast._cli.blocks import Index, lengths_of

__all__ = ["NpyInput", "NpyOutput"]

PAGE = 4096  # bytes: what direct writes are aligned to, and what the system reads at least
FOLIO = 2 * 2**20  # bytes around a byte of a map that is read, which Linux may map with it
SCRATCH = 2**20  # bytes for a span of the file of which only some items are wanted


class NpyInput:
    """The array in a .npy file."""

    def __init__(self, name: str) -> None:
        """Map the array.

        Parameters
        ----------
        name : str
            The file.

        Raises
        ------
        ValueError
            If it is not a .npy file that can be mapped.
        OSError
            If it cannot be read.
        """
        self._name = name
        self._entry = Path(name).stat()
        self.array: NDArray[Any] = _mapped(name)
        self._map: Any = self.array.base
        self._offset = int(getattr(self.array, "offset", 0))
        self._file: FileIO | None = None
        self._room: NDArray[Any] = np.empty(0, self.array.dtype)
        self._scratch = bytearray()

    @property
    def shape(self) -> tuple[int, ...]:
        """The array's shape."""
        return self.array.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The array's dtype."""
        return self.array.dtype

    def reshape(self, shape: tuple[int, ...]) -> None:
        """Put in or take out axes of length 1."""
        self.array = np.asarray(self.array).reshape(shape)

    def read(self, index: Index) -> NDArray[Any]:
        """Return a part: of the map if it lies together in the file, or else a copy.

        The pages of the map that the part before it needed are given back. A copy is read run by run: of a map, the
        system would keep more in memory than the runs.
        """
        if isinstance(self._map, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)
        whole: Any = (*index, ...)  # with `...`, a 0-d array gives a view, too, instead of a scalar
        part: NDArray[Any] = self.array[whole]
        if part.flags.forc or not hasattr(os, "preadv"):
            return part
        if self._file is None:
            self._file = FileIO(self._name)
            if not os.path.samestat(os.fstat(self._file.fileno()), self._entry):
                raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), self._name)
            self._scratch = bytearray(SCRATCH)
        if self._room.size < part.size:
            self._room = np.empty(part.size, self.dtype)
        order: Any = "C" if self.array.flags.c_contiguous else "F"
        copy: NDArray[Any] = self._room[: part.size].reshape(part.shape, order=order)
        at: int = sum([where.start * step for where, step in zip(index, self.array.strides, strict=True)])
        if order == "C":
            self._copy(self._file, copy, self.array.strides, self._offset + at)
        else:
            self._copy(self._file, copy.T, self.array.strides[::-1], self._offset + at)
        return copy

    def room(self, lengths: tuple[int, ...]) -> int:
        """Return how much memory a part takes at most: its items, or the pages of the map that have them."""
        size = math.prod(lengths) * self.dtype.itemsize
        if not self.array.flags.c_contiguous:
            size *= 2  # such a part is put in C's order before it is replicated
        return size + 2 * FOLIO

    def unit(self, items: int) -> tuple[int, ...]:
        """Return lengths of a part in which what lies together in the file is together, if that is not C's order."""
        lengths = [1] * len(self.shape)
        if not self.array.flags.c_contiguous:
            left = math.isqrt(items)
            for axis, whole in enumerate(self.shape):
                lengths[axis] = max(1, min(whole, left))
                left //= lengths[axis]
        return tuple(lengths)

    def chunk(self) -> int:
        """Return 1: any item can be read by itself."""
        return 1

    def close(self) -> None:
        """Forget the map and close the file: Windows does not replace one that is mapped or open."""
        self.array, self._map = np.empty(0), None
        if self._file is not None:
            self._file.close()

    def _copy(self, file: FileIO, to: NDArray[Any], steps: tuple[int, ...], at: int) -> None:
        """Read items that lie `steps` apart in the file, of which the first is the longest, into a contiguous array."""
        span = sum([(length - 1) * step for length, step in zip(to.shape, steps, strict=True)]) + to.itemsize
        if span == to.nbytes:
            items: Any = to.reshape(-1).view(np.uint8)
            _read_at(file, memoryview(items), at)
        elif span <= SCRATCH and span <= PAGE * to.size:
            _read_at(file, memoryview(self._scratch)[:span], at)
            to[...] = np.ndarray(to.shape, to.dtype, self._scratch, 0, steps)
        else:
            for i in range(to.shape[0]):
                self._copy(file, to[i, ...], steps[1:], at + i * steps[0])


class NpyOutput:
    """A .npy file that is written block by block, each while the next one is made."""

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any], joined: tuple[int, ...] | None = None) -> None:
        """Choose the header; no file is touched.

        Parameters
        ----------
        shape : tuple of int
            The array's shape.
        dtype : dtype
            The dtype of its items.
        joined : tuple of int, optional
            Its shape in the file, where some of its axes are one. The default is `shape`.
        """
        self.shape = shape
        self.dtype = dtype
        self._header = _header(dtype, shape if joined is None else joined)
        self._nbytes = math.prod(shape) * dtype.itemsize
        self._steps = [math.prod(shape[axis + 1 :]) * dtype.itemsize for axis in range(len(shape))]
        self._rooms: list[mmap.mmap] = []  # of the block that is being written, and of the one that is being made
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self._file: FileIO
        self._direct: int | None = None

    def unit(self) -> tuple[int, ...]:
        """Return the lengths of a block: any will do."""
        return (1,) * len(self.shape)

    def room(self, size: int) -> int:
        """Return how many bytes two blocks of such a size take."""
        return 2 * (size + 2 * PAGE)

    @contextmanager
    def appearing(self, name: str, tell: Callable[[str], object], clobber: bool) -> Iterator[None]:
        """Reserve the file's room and write its header; in the end, wait until the disk has all of it."""
        with appearing(name, tell, clobber) as self._file:
            self._reserve()
            try:
                self._direct = _direct(self._file)
                _write_at(self._file, memoryview(self._header), 0)
                yield
                self._wait()
                os.fsync(self._file.fileno())
            finally:
                if self._thread is not None:
                    self._thread.join()
                self._close_direct()

    def block(self, index: Index) -> NDArray[Any]:
        """Return an array for a block: not the one before it, which may still be being written."""
        lengths = lengths_of(index)
        if len(self._rooms) < 2:  # none is larger than the first block
            self._rooms.append(mmap.mmap(-1, math.prod(lengths) * self.dtype.itemsize + 2 * PAGE))
        else:
            self._rooms.reverse()
        return np.ndarray(lengths, self.dtype, self._rooms[-1], self._offset(index) % PAGE)

    def write(self, index: Index, block: NDArray[Any]) -> None:
        """Write a block, if there are more to come in another thread."""
        self._wait()
        work = index, block, self._rooms[-1]
        if block.nbytes == self._nbytes:
            self._write(*work)
            return
        self._thread = threading.Thread(target=self._write_later, args=work)
        try:
            self._thread.start()
        except RuntimeError:  # the system has no more threads
            self._thread = None
            self._write(*work)

    def _reserve(self) -> None:
        try:
            _reserve(self._file, len(self._header) + self._nbytes)
        except OSError as error:
            if error.errno not in (errno.EFBIG, errno.EINVAL):
                raise
            raise OSError(errno.EFBIG, f"{os.strerror(errno.EFBIG)} ({self._nbytes} bytes)") from error

    def _wait(self) -> None:
        """Wait for the block before, and raise what was raised there."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._error is not None:
            raise self._error

    def _write_later(self, *work: Any) -> None:
        try:
            self._write(*work)
        except BaseException as error:
            self._error = error

    def _write(self, index: Index, block: NDArray[Any], room: mmap.mmap) -> None:
        """Write what is contiguous in the file at once: from the innermost axis that the block has only a part of."""
        at = self._offset(index)
        whole = len(self.shape)
        while whole and block.shape[whole - 1] == self.shape[whole - 1]:
            whole -= 1
        outer = block.shape[: max(whole - 1, 0)]
        size = block.nbytes // math.prod(outer)
        begin = at % PAGE
        for number, place in enumerate(np.ndindex(outer)):
            offset = at + sum([step * n for step, n in zip(self._steps, place, strict=False)])
            start = begin + number * size
            run = memoryview(room)[start : start + size]
            self._write_run(run, offset, aligned=start % PAGE == offset % PAGE)

    def _write_run(self, run: memoryview, offset: int, *, aligned: bool) -> None:
        """Write bytes: whole pages past the cache of files, if they lie in memory as in the file."""
        first = -offset % PAGE
        last = first + (len(run) - first) // PAGE * PAGE
        if not aligned or self._direct is None or last <= first:
            _write_at(self._file, run, offset)
            return
        _write_at(self._file, run[:first], offset)
        try:
            _write_direct(self._direct, run[first:last], offset + first)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            self._close_direct()  # the file system wants it otherwise
            _write_at(self._file, run[first:last], offset + first)
        _write_at(self._file, run[last:], offset + last)

    def _close_direct(self) -> None:
        if self._direct is not None:
            os.close(self._direct)
            self._direct = None

    def _offset(self, index: Index) -> int:
        """Return where a block begins in the file."""
        begun: int = sum([part.start * step for part, step in zip(index, self._steps, strict=True)])
        return len(self._header) + begun


def _direct(file: FileIO) -> int | None:
    """Open a file again, to write past the system's cache of files; None if the system does not have that."""
    if not hasattr(os, "O_DIRECT"):
        return None
    try:
        return os.open(f"/proc/self/fd/{file.fileno()}", os.O_WRONLY | os.O_DIRECT)
    except OSError:
        return None


def _read_at(file: FileIO, memory: memoryview, offset: int) -> None:
    while memory:
        done = os.preadv(file.fileno(), [memory], offset)
        if not done:
            raise OSError(errno.EIO, "the file has become shorter", os.fsdecode(file.name))
        memory = memory[done:]
        offset += done


def _write_direct(descriptor: int, memory: memoryview, offset: int) -> None:
    while memory:
        done = os.pwrite(descriptor, memory, offset)
        memory = memory[done:]
        offset += done


def _write_at(file: FileIO, memory: memoryview, offset: int) -> None:
    while memory:
        file.seek(offset)
        done = file.write(memory)
        memory = memory[done:]
        offset += done


def _header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """Return the header of a .npy file, padded to whole cache lines."""
    fields = {"descr": npy.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    file = BytesIO()
    try:
        npy.write_array_header_1_0(file, fields)
    except ValueError:  # it is too long for version 1.0, or Latin-1 lacks a character of a name
        text = repr(fields).encode()
        text += b" " * (-(npy.MAGIC_LEN + 4 + len(text) + 1) % npy.ARRAY_ALIGN) + b"\n"
        return npy.magic(3, 0) + len(text).to_bytes(4, "little") + text
    return file.getvalue()


def _mapped(source: str) -> NDArray[Any]:
    """Map the array in a .npy file, for reading."""
    path = Path(source)
    if path.exists() and not path.is_file():  # opening a pipe could block for ever
        raise ValueError(f"`IN` expected a regular .npy file, neither pipe, device nor directory, got {source}")
    try:
        with _quiet():
            _check_lengths(path)
            return npy.open_memmap(source, mode="r")
    except OSError as error:
        error.filename = source
        raise
    except Exception as error:  # a damaged header raises many kinds of errors, even the parser's MemoryError
        reason = str(error) or repr(error)
        raise ValueError(f"`IN` expected a whole .npy file, without objects, got {source}: {reason}") from error


def _check_lengths(path: Path) -> None:
    """Refuse negative lengths: some of them make NumPy divide by zero."""
    with path.open("rb") as file:
        if npy.read_magic(file) == (1, 0):
            shape, _, _ = npy.read_array_header_1_0(file)
        else:  # versions 2.0 and 3.0 differ only in the encoding of names
            shape, _, _ = npy.read_array_header_2_0(file)
    if min(shape, default=0) < 0:
        raise ValueError(f"negative lengths in shape {shape}")


def _reserve(file: FileIO, size: int) -> None:
    """Reserve `size` bytes of disk, so that a run without enough of them fails before it begins."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, size)
        return
    if shutil.disk_usage(Path(os.fsdecode(file.name)).parent).free < size:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    file.truncate(size)


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress NumPy's warnings, whose causes the command's user cannot change, such as a header's version."""
    with warnings.catch_warnings(action="ignore"):
        yield
