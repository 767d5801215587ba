"""`apply`: broadcast a .npy file to another one, piece by piece, with no more memory than a piece needs."""

import errno
import importlib
import itertools
import math
import os
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import BytesIO, FileIO
from mmap import mmap
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from bcast._api.broadcast import materialise
from bcast._api.converted import Casting, convert_onto, prepared
from bcast._cli.appearing import appearing
from bcast._cli.signals import DeferredSignals
from bcast._rules.alignment import Alignment, align

__all__ = ["PIECE", "PROGRESS", "Written", "apply", "pieces"]

PIECE = 32 * 2**20  # bytes of output: large beside the cost of a call, small beside a machine's memory
MAX_BYTES = sys.maxsize // 2  # of output: more than any disk has, yet adding the header's size cannot overflow
PROGRESS = 100_000_000  # bytes of output; for less, a progress bar would be gone before anybody reads it

Index = tuple[Any, ...]  # of slices


class Written(NamedTuple):
    """What `apply` has written."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    nbytes: int


def apply(
    source: str,
    destination: str,
    shape: tuple[int, ...],
    *,
    dtype: str | None = None,
    casting: Casting = "same_kind",
    tell: Callable[[str], object] = lambda _: None,
    **arguments: Any,
) -> Written:
    """Broadcast the array in the .npy file `source` and write the result to the .npy file `destination`.

    Parameters
    ----------
    source, destination : str
        The files, which may be the same one. `destination` appears, or changes, only when the output is whole.
    shape : tuple of int
        The shape to broadcast to.
    dtype, casting : str, optional
        The dtype of the result, and which conversions to it are allowed, as `bcast.broadcast` takes them.
    tell : callable, optional
        Called with a line for each file that a killed run has left, and for each kind of NumPy's warnings about values.
    **arguments
        `axes_mapping`, `mode`, `axis` and `broadcast_axes`, as `bcast.broadcast` takes them.

    Returns
    -------
    Written
        Shape, dtype and size of the result.

    Raises
    ------
    ValueError, TypeError, numpy.exceptions.AxisError
        As `bcast.broadcast` raises them; `ValueError` also if `source` is not a .npy file that can be mapped.
    OSError, MemoryError
        If a file cannot be read or written, or there is no room for it.
    KeyboardInterrupt, SystemExit
        On a signal to end, unless the program has a handler of its own.
    """
    data = _mapped(source)
    alignment = align(data.shape, shape, name="shape", **arguments)
    data, wanted = prepared(data, alignment.shape, None, dtype, casting)
    if wanted.hasobject:
        raise TypeError(f"`dtype` expected a dtype that .npy files store without pickling, got {wanted}")
    written = Written(alignment.shape, wanted, math.prod(alignment.shape) * wanted.itemsize)
    with DeferredSignals() as signals, appearing(destination, tell) as file, _telling(tell):
        _write(file, data, alignment, written, signals.check)
        del data  # Windows does not replace a mapped file
    return written


def pieces(alignment: Alignment, itemsize: int) -> Iterator[tuple[Index, Index]]:
    """Cut an alignment into pieces of at most `PIECE` bytes of output, or of one item.

    Parameters
    ----------
    alignment : Alignment
        The alignment, which is cut along its outermost axes first, so that each piece is contiguous in the output.
    itemsize : int
        The size of an item. Neither it nor any length is 0.

    Yields
    ------
    tuple of slice
        The place of the piece in the output.
    tuple of slice
        The place of its data in the data, at the shape ``alignment.source``.
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


def _write(
    file: FileIO, data: NDArray[Any], alignment: Alignment, written: Written, check: Callable[[], object]
) -> None:
    """Write the output to a file through a memory map, which is gone on return."""
    nbytes = written.nbytes
    if nbytes > MAX_BYTES:
        raise ValueError(f"`shape` expected an output of at most {MAX_BYTES} bytes, got one of {nbytes}")
    if not nbytes:
        materialise(
            data, alignment, alignment.shape, None, "shape", written.dtype, "unsafe"
        )  # refuses shapes that no array can have
    header = _header(written.dtype, alignment.shape)
    try:
        _reserve(file, len(header) + nbytes)
        mapped = mmap(file.fileno(), len(header) + nbytes)
    except OSError as error:
        if error.errno not in (errno.EFBIG, errno.EINVAL):
            raise
        raise OSError(errno.EFBIG, f"{os.strerror(errno.EFBIG)} ({nbytes} bytes)") from error
    mapped[: len(header)] = header
    if nbytes:
        out = np.ndarray(alignment.shape, written.dtype, mapped, len(header))
        _fill(out, np.asarray(data).reshape(alignment.source), check)
    mapped.flush()
    check()


def _fill(out: NDArray[Any], data: NDArray[Any], check: Callable[[], object]) -> None:
    """Broadcast the data piece by piece, with a check before each piece."""
    with _progress(out.nbytes) as advance:
        for out_index, data_index in pieces(Alignment(out.shape, data.shape), out.dtype.itemsize):
            check()
            # With `...` beside the slices, a 0-d array gives a view too, instead of a scalar.
            out_part, data_part = out[*out_index, ...], data[*data_index, ...]
            convert_onto(data_part, Alignment(out_part.shape, data_part.shape), out_part, out.dtype, True)
            advance(out_part.nbytes)


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
    except OSError:
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
    """Reserve `size` bytes of disk: if a mapped page finds no room, the process crashes instead of raising."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, size)
        return
    if shutil.disk_usage(Path(os.fsdecode(file.name)).parent).free < size:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    file.truncate(size)


@contextmanager
def _progress(total: int) -> Iterator[Callable[[int], object]]:
    """Show a progress bar if the output is large and tqdm is installed; yield the function that advances it."""
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
def _telling(tell: Callable[[str], object]) -> Iterator[None]:
    """Tell of each kind of warning once, however many pieces give rise to it."""
    told: set[str] = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        if str(message) not in told:
            told.add(str(message))
            tell(f"warning: {message}")

    with warnings.catch_warnings(action="always"):
        warnings.showwarning = show
        yield


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress NumPy's warnings, whose causes the command's user cannot change, such as a header's version."""
    with warnings.catch_warnings(action="ignore"):
        yield
