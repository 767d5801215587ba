"""Arrays in Zarr's folders, read and written by the zarr package: each block is a whole number of chunks."""

import importlib
import math
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bcast._cli.appearing import appearing_folder
from bcast._cli.blocks import Index, cells, lengths_of
from bcast._runtime.system import cpus

__all__ = ["ZarrInput", "ZarrOutput", "is_zarr", "is_zarr_name"]

AT_ONCE = 32 * 2**20  # bytes that the chunks take that are encoded or decoded at once, unless one takes more
WRITTEN = 3  # copies of a chunk while it is encoded: its items, those of it that are compared, its bytes
READ = 6  # and while it is decoded: Zarr drops some of them late, and the heap keeps some for the next one


def is_zarr_name(name: str) -> bool:
    """Return whether a file of this name is written in Zarr's format."""
    return Path(name).name.endswith(".zarr")


def is_zarr(name: str) -> bool:
    """Return whether a name is that of an array in Zarr's format."""
    path = Path(name)
    return is_zarr_name(name) or (path / "zarr.json").is_file() or (path / ".zarray").is_file()


class ZarrInput:
    """The array in one of Zarr's folders."""

    def __init__(self, name: str) -> None:
        """Read what describes the array.

        Parameters
        ----------
        name : str
            The folder.

        Raises
        ------
        ImportError
            Without the zarr package.
        ValueError
            If the folder does not hold an array that can be read.
        OSError
            If it cannot be read.
        """
        zarr = _zarr()
        self._name = name
        path = Path(name)
        path.stat()  # its error says more
        if not ((path / "zarr.json").is_file() or (path / ".zarray").is_file()):  # to read a pipe could take for ever
            raise ValueError(f"`IN` expected a Zarr array, got {name}: it has no regular file zarr.json or .zarray")
        with self._told():
            self._array = zarr.open_array(zarr.storage.LocalStore(name, read_only=True), mode="r")
            self.dtype: np.dtype[Any] = np.dtype(self._array.dtype)
            self.shape: tuple[int, ...] = tuple(self._array.shape)
            self.array: NDArray[Any] = np.broadcast_to(np.zeros((), self.dtype), self.shape)  # stands in for it
            self._chunk: tuple[int, ...] = self._array.shards or self._array.chunks
        self._flight = _Flight(self._chunk, self.dtype, READ)
        self._grid = self._chunk

    def reshape(self, shape: tuple[int, ...]) -> None:
        """Put in or take out axes of length 1."""
        chunk = iter([part for part, length in zip(self._chunk, self.shape, strict=True) if length != 1])
        self._chunk = tuple([next(chunk) if length != 1 else 1 for length in shape])
        self.shape = shape

    def read(self, index: Index) -> NDArray[Any]:
        """Read and decode a part."""
        parts = iter([part for part, length in zip(index, self.shape, strict=True) if length != 1])
        own = tuple([next(parts) if length != 1 else slice(0, 1) for length in self._array.shape])
        to: NDArray[Any] = np.empty(lengths_of(own), self.dtype)
        with self._told(), self._flight.threads() as run:
            for cell in cells(own, self._grid):
                run(self._read_cell, to, own, cell)
        return to.reshape(lengths_of(index))

    def _read_cell(self, to: NDArray[Any], index: Index, cell: Index) -> None:
        """Read one chunk's share of a part."""
        to[_within(index, cell)] = self._array[cell or ...]

    def room(self, lengths: tuple[int, ...]) -> int:
        """Return how many bytes a part takes, beside the one before it, and what is decoded for it at once."""
        return 2 * math.prod(lengths) * self.dtype.itemsize + self._flight.room

    def unit(self, items: int) -> tuple[int, ...]:
        """Return the lengths of a chunk, or of a shard of them, which is decoded as a whole."""
        return self._chunk if math.prod(self._chunk) <= items else (1,) * len(self.shape)

    def chunk(self) -> int:
        """Return the number of items of a chunk, or of a shard."""
        return math.prod(self._chunk)

    def close(self) -> None:
        """Do nothing: no file is open between two reads."""

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Tell in one form what Zarr raises of a folder that it cannot read, which may be anything."""
        try:
            with warnings.catch_warnings(action="ignore"):  # of what the command's user cannot change
                yield
        except MemoryError:
            raise
        except Exception as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            reason = str(error) or repr(error)
            raise ValueError(f"`IN` expected a Zarr array, got {self._name}: {reason}") from error


class ZarrOutput:
    """An array in one of Zarr's folders, which is written block by block."""

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        chunks: Sequence[int] | None = None,
        shards: Sequence[int] | None = None,
    ) -> None:
        """Check the chunks; no file is touched.

        Parameters
        ----------
        shape : tuple of int
            The array's shape.
        dtype : dtype
            The dtype of its items. Zarr keeps no byte order; it is that of the machine.
        chunks, shards : sequence of int, optional
            Lengths of a chunk, and of a shard, a file of many chunks. -1 stands for the whole axis. Without `chunks`,
            Zarr chooses them; without `shards`, each chunk is a file.

        Raises
        ------
        ImportError
            Without the zarr package.
        ValueError
            If there are not as many lengths as axes, or a shard is no whole number of chunks.
        TypeError
            If Zarr has no such dtype.
        """
        self.shape = shape
        self.dtype = dtype.newbyteorder("=")
        chunk = None if chunks is None else _lengths("chunks", chunks, shape)
        shard = None if shards is None else _lengths("shards", shards, shape)
        if shard is not None:
            _check_shard(shard, chunk, self.dtype)
        self._options = {
            "shape": shape,
            "dtype": self.dtype,
            "chunks": "auto" if chunk is None else chunk,
            "shards": shard,
        }
        with warnings.catch_warnings(action="ignore"):  # of what the array itself gives rise to later
            trial = self._created(_zarr().storage.MemoryStore())
        self._unit: tuple[int, ...] = trial.shards or trial.chunks
        self._flight = _Flight(self._unit, self.dtype, WRITTEN)
        self._array: Any = None
        self._exact: Any = None  # the same array, but it writes chunks of nothing but fill values, too
        self._room = np.empty(0, self.dtype)

    def unit(self) -> tuple[int, ...]:
        """Return the lengths of a chunk, or of a shard: nobody else writes it."""
        return self._unit

    def room(self, size: int) -> int:
        """Return how many bytes a block takes, and what is encoded of it at once."""
        return size + self._flight.room

    @contextmanager
    def appearing(self, name: str, tell: Callable[[str], object], clobber: bool) -> Iterator[None]:  # noqa: ARG002
        """Make an array of nothing but fill values; no folder is replaced, whatever `clobber` says."""
        with appearing_folder(name, tell) as folder:
            self._array = self._created(_zarr().storage.LocalStore(folder))
            self._exact = self._array.with_config({"write_empty_chunks": True})
            yield

    def block(self, index: Index) -> NDArray[Any]:
        """Return an array for a block."""
        lengths = lengths_of(index)
        if not self._room.size:  # no block is larger than the first one
            self._room = np.empty(math.prod(lengths), self.dtype)
        return self._room[: math.prod(lengths)].reshape(lengths)

    def write(self, index: Index, block: NDArray[Any]) -> None:
        """Write a block, but for its chunks of nothing but fill values; on return, nothing more is written."""
        with self._flight.threads() as run:
            for cell in cells(index, self._unit):
                run(self._write_cell, cell, block[_within(index, cell)])

    def _write_cell(self, cell: Index, items: NDArray[Any]) -> None:
        """Write one chunk."""
        array = self._exact if self.dtype.kind in "cV" and self._seems_empty(items) else self._array
        try:
            array[cell or ...] = items
        except (OSError, MemoryError):
            raise
        except Exception as error:
            raise RuntimeError(f"Zarr cannot write a chunk of {self.dtype}: {error!r}") from error

    def _created(self, store: Any) -> Any:
        reason = None
        try:
            array = _zarr().create_array(store, **self._options)
            if array.dtype == self.dtype:
                return array
        except (ValueError, TypeError) as error:
            reason = error
        raise TypeError(f"`dtype` expected a dtype that Zarr stores, got {self.dtype}") from reason

    def _seems_empty(self, items: NDArray[Any]) -> bool:
        """Return whether some items equal the fill value but have other bytes, as a complex number of -0.0 has."""
        fill = np.asarray(self._array.fill_value, self.dtype)
        plain = np.dtype((np.void, self.dtype.itemsize))
        return bool(((items == fill) & (items.view(plain) != fill.view(plain))).any())


class _Flight:
    """How many chunks are encoded or decoded at once, and what that takes.

    A call of Zarr's that reads or writes many chunks goes on with the others after one has failed, and nobody waits for
    it. So each call is for one chunk, on a thread of ours.
    """

    def __init__(self, chunk: tuple[int, ...], dtype: np.dtype[Any], copies: int) -> None:
        size = max(1, math.prod(chunk) * dtype.itemsize)
        self.count = max(1, min(cpus(), AT_ONCE // (copies * size)))
        self.room = self.count * copies * size

    @contextmanager
    def threads(self) -> Iterator[Callable[..., None]]:
        """Yield a function that calls another one on one of the threads; on leaving, wait for all of them."""
        running: deque[Future[None]] = deque()

        def run(function: Callable[..., None], *arguments: Any) -> None:
            while len(running) >= 2 * self.count:
                running.popleft().result()
            running.append(pool.submit(function, *arguments))

        with _zarr().config.set({"async.concurrency": self.count}), ThreadPoolExecutor(self.count) as pool:
            try:
                yield run
                while running:
                    running.popleft().result()
            finally:
                pool.shutdown(cancel_futures=True)


def _within(index: Index, cell: Index) -> Any:
    """Return the place of a cell in a part of an array; with `...`, a 0-d array gives a view, too."""
    return (*[slice(at.start - part.start, at.stop - part.start) for part, at in zip(index, cell, strict=True)], ...)


def _lengths(name: str, lengths: Sequence[int], shape: tuple[int, ...]) -> tuple[int, ...]:
    """Check lengths of chunks; -1 stands for the whole axis."""
    if len(lengths) != len(shape) or min(lengths, default=1) < -1 or 0 in lengths:
        raise ValueError(f"`{name}` expected {len(shape)} lengths, each at least 1 or -1, got {tuple(lengths)}")
    return tuple([n if n > 0 else max(1, whole) for n, whole in zip(lengths, shape, strict=True)])


def _check_shard(shard: tuple[int, ...], chunk: tuple[int, ...] | None, dtype: np.dtype[Any]) -> None:
    """Refuse a shard that is no whole number of chunks, and what Zarr fails to put into shards."""
    if not shard:
        raise ValueError("`shards` expected None for an output without axes, got ()")
    if dtype.kind == "V":
        raise TypeError(f"`dtype` expected a dtype that Zarr stores in shards, got {dtype}")
    if chunk is None:
        raise ValueError("`chunks` expected the lengths of a shard's chunks, got None")
    if any(length % part for length, part in zip(shard, chunk, strict=True)):
        raise ValueError(f"`shards` expected a whole number of chunks {chunk} along each axis, got {shard}")


def _zarr() -> Any:
    try:
        zarr = importlib.import_module("zarr")
    except ImportError as error:
        raise ImportError(f'Zarr arrays need the package zarr: pip install "bcast[zarr]" ({error})') from error
    if int(zarr.__version__.partition(".")[0]) < 3:
        raise ImportError(f"Zarr arrays need the package zarr from 3.0 on, got {zarr.__version__}")
    return zarr
