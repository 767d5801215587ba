"""`apply`: broadcast a .npy file to another, piece by piece, with no more memory than a piece needs."""

import errno
import importlib
import itertools
import math
import os
import secrets
import shutil
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from bcast._alignment import Alignment, align
from bcast._kernel import replicate
from bcast._ops import materialise

__all__ = ["PIECE", "PROGRESS", "Written", "apply", "pieces"]

PIECE = 32 * 2**20  # bytes of output: far beyond what a call costs, far below what a machine has
MAX_BYTES = sys.maxsize // 2  # of output: far above any disk, and adding the header's size overflows nothing
PROGRESS = 100_000_000  # bytes of output: below, a progress bar would be gone before it is read

Index = tuple[Any, ...]  # of slices


class Written(NamedTuple):
    """What `apply` has written."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    nbytes: int


def apply(source: str, destination: str, shape: tuple[int, ...], **arguments: Any) -> Written:
    """Broadcast the array in the .npy file `source` and write the result to the .npy file `destination`.

    Parameters
    ----------
    source, destination : str
        The files, which may be the same one. `destination` appears, or changes, only when it is whole.
    shape : tuple of int
        The shape to reach.
    **arguments
        `axes_mapping`, `mode`, `axis` and `broadcast_axes`, as `bcast.broadcast` takes them.

    Returns
    -------
    Written
        Shape, dtype and size of the result.

    Raises
    ------
    ValueError, TypeError, numpy.exceptions.AxisError
        As `bcast.broadcast` raises them; `ValueError` also if `source` is no .npy file that can be mapped.
    OSError, MemoryError
        If a file cannot be read or written, or there is no room for it.
    SystemExit
        On a signal to end, where the program has no handler of its own.
    """
    data = _mapped(source)
    alignment = align(data.shape, shape, name="shape", **arguments)
    written = Written(alignment.shape, data.dtype, math.prod(alignment.shape) * data.dtype.itemsize)
    with _terminable(), _appearing(destination) as path:
        if written.nbytes:
            _write(path, data, alignment, written.nbytes)
        else:
            with path.open("wb") as file, _quiet():
                npy.write_array(file, materialise(data, alignment, None, "shape"), allow_pickle=False)
        del data  # Windows replaces no file that is mapped
    return written


def pieces(alignment: Alignment, itemsize: int) -> Iterator[tuple[Index, Index]]:
    """Cut an alignment into pieces of at most `PIECE` bytes of output, or of one item.

    Parameters
    ----------
    alignment : Alignment
        What is cut, first along its outermost axes, so that each piece is contiguous in the output.
    itemsize : int
        The size of an item; neither it nor a length is 0.

    Yields
    ------
    tuple of slice
        Where the piece stands in the output.
    tuple of slice
        Where its data stands in the data, at the shape ``alignment.source``.
    """
    shape, source = alignment.shape, alignment.source
    block = math.prod(shape) * itemsize
    cut = 0
    while block > PIECE and cut < len(shape):
        block //= shape[cut]
        cut += 1
    steps = list(shape)
    if cut:
        steps[:cut] = [1] * (cut - 1) + [max(1, PIECE // block)]
    along_axes = [
        [slice(start, min(start + step, length)) for start in range(0, length, step)]
        for length, step in zip(shape, steps, strict=True)
    ]
    for index in itertools.product(*along_axes):
        yield index, tuple([part if length != 1 else slice(None) for part, length in zip(index, source, strict=True)])


def _write(path: Path, data: NDArray[Any], alignment: Alignment, nbytes: int) -> None:
    """Write the output to `path` through a map of it; the map is gone on return."""
    if nbytes > MAX_BYTES:
        raise ValueError(f"`shape` expected an output of at most {MAX_BYTES} bytes, got one of {nbytes}")
    try:
        with _quiet():
            mapped = npy.open_memmap(path, mode="w+", dtype=data.dtype, shape=alignment.shape)
    except OSError as error:
        if error.errno not in (errno.EFBIG, errno.EINVAL):
            raise
        raise OSError(errno.EFBIG, f"{os.strerror(errno.EFBIG)} ({nbytes} bytes)") from error
    _reserve(path, mapped.offset + nbytes)
    out = np.asarray(mapped)
    data = np.asarray(data).reshape(alignment.source)
    with _progress(nbytes) as advance:
        for out_index, data_index in pieces(alignment, data.dtype.itemsize):
            # An index of `...` beside the slices makes a view of a 0-d array too, instead of a scalar.
            out_part, data_part = out[*out_index, ...], data[*data_index, ...]
            replicate(data_part, Alignment(out_part.shape, data_part.shape), out_part)
            advance(out_part.nbytes)
    mapped.flush()


def _mapped(source: str) -> NDArray[Any]:
    """Map the array in a .npy file, for reading."""
    path = Path(source)
    if path.exists() and not path.is_file():  # opening a pipe could wait for ever
        raise ValueError(f"`IN` expected a regular .npy file, neither pipe, device nor directory, got {source}")
    try:
        with _quiet():
            return npy.open_memmap(source, mode="r")
    except (OSError, MemoryError):
        raise
    except Exception as error:  # a damaged header raises many kinds
        raise ValueError(f"`IN` expected a whole .npy file, without objects, got {source}: {error}") from error


@contextmanager
def _appearing(destination: str) -> Iterator[Path]:
    """Give a new file beside `destination`, which takes its name and place in the end, or is removed on failure."""
    final = Path(os.path.realpath(destination))  # as open() does, write what a link points to
    try:
        _, name = os.path.split(destination)
        if name in ("", os.curdir) or final.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        _check_replaceable(final)
        path = final.with_name(f".bcast-{secrets.token_hex(8)}.tmp")
        try:
            with path.open("xb"):  # with the permissions that any new file gets
                pass
            if final.exists():
                shutil.copymode(final, path)
            yield path
            path.replace(final)
        except BaseException as error:
            traceback.clear_frames(error.__traceback__)  # of the map: Windows removes no file that is mapped
            path.unlink(missing_ok=True)
            raise
    except OSError as error:
        error.filename = destination  # the name that the user knows
        raise


def _check_replaceable(path: Path) -> None:
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "not a regular file")
    if path.exists() and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def _reserve(path: Path, size: int) -> None:
    """Have the disk promise `size` bytes: where a mapped page finds no room, there is no exception but a crash."""
    if hasattr(os, "posix_fallocate"):
        with path.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, size)
    elif shutil.disk_usage(path.parent).free < size:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@contextmanager
def _progress(total: int) -> Iterator[Callable[[int], object]]:
    """Show a progress bar, where there is time to see it and tqdm to draw it; give the function that advances it."""
    tqdm = None
    if total >= PROGRESS and sys.stderr is not None:
        with suppress(ImportError):
            tqdm = importlib.import_module("tqdm").tqdm
    if tqdm is None:
        yield lambda _: None
    else:
        with tqdm(total=total, unit="B", unit_scale=True, file=sys.stderr) as bar:
            yield bar.update


@contextmanager
def _terminable() -> Iterator[None]:
    """Have the signals that would end the process at once raise `SystemExit` instead, so that files are removed."""
    numbers = []
    if threading.current_thread() is threading.main_thread():  # no other may set handlers
        candidates = (getattr(signal, name, None) for name in ("SIGTERM", "SIGHUP"))
        # What is ignored, as under nohup, or handled already stays so.
        numbers = [number for number in candidates if number and signal.getsignal(number) == signal.SIG_DFL]

    def leave(number: int, _: FrameType | None) -> NoReturn:
        for other in numbers:
            signal.signal(other, signal.SIG_IGN)  # a second one shall not cut the removal short
        raise SystemExit(128 + number)

    try:
        for number in numbers:
            signal.signal(number, leave)
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep NumPy from warning of what the command's user cannot change: the version of a file's header, say."""
    with warnings.catch_warnings(action="ignore"):
        yield
