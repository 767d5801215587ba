"""Arrays broadcast, tiled or repeated from one file to another, block by block, with the memory that a block needs."""

import math
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any, NamedTuple

import numpy as np

from bcast._api.broadcast import materialise
from bcast._api.converted import convert_onto, follows_values, prepared
from bcast._api.tiling import counts_of_axes, split
from bcast._cli.blocks import Index, Input, Output, blocks, part_of, planned
from bcast._cli.memory import SLACK, check_bound, peak
from bcast._cli.npy_files import NpyInput, NpyOutput
from bcast._cli.progress import progress
from bcast._cli.signals import DeferredSignals
from bcast._cli.zarr_files import ZarrInput, ZarrOutput, is_zarr, is_zarr_name
from bcast._rules.alignment import Alignment, align
from bcast._rules.arguments import dtype_argument, shape_argument
from bcast._rules.types import Casting

__all__ = ["PIECE", "Options", "Written", "apply", "repeat", "tile"]

PIECE = 16 * 2**20  # bytes of output: large beside the cost of a call and of a disk's, small beside a machine's memory
MAX_BYTES = sys.maxsize // 2  # of output: more than any disk has, yet adding the header's size cannot overflow


class Written(NamedTuple):
    """What has been written."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    nbytes: int


class Options(NamedTuple):
    """How a file is written.

    Attributes
    ----------
    dtype, casting : str, optional
        The dtype of the result, and which conversions to it are allowed, as `bcast.broadcast` takes them.
    chunks, shards : sequence of int, optional
        For Zarr, the lengths of a chunk, and of a shard: a file of many chunks. -1 stands for the whole axis.
    max_memory : int, optional
        The most memory in bytes that this process may have had when the run ends, what it had before included.
    clobber : bool
        Whether a file at the destination may be replaced.
    quiet : bool
        Whether stderr shows nothing of the run's progress.
    tell : callable
        Called with a line for each file that a killed run has left, for each kind of NumPy's warnings about values,
        and with `max_memory` for the bound that will hold.
    """

    dtype: str | None = None
    casting: Casting = "same_kind"
    chunks: Sequence[int] | None = None
    shards: Sequence[int] | None = None
    max_memory: int | None = None
    clobber: bool = True
    quiet: bool = False
    tell: Callable[[str], object] = lambda _: None


DEFAULTS = Options()


def apply(
    source: str, destination: str, shape: tuple[int, ...], options: Options = DEFAULTS, **arguments: Any
) -> Written:
    """Broadcast the array in the file `source` and write the result to the file `destination`.

    A name that ends with ``.zarr`` is that of an array in Zarr's format, as is a folder with such an array. Any other
    name is that of a .npy file.

    Parameters
    ----------
    source, destination : str
        The files, or Zarr's folders. `destination` appears, or changes, only when the output is whole. A .npy file is
        replaced, and may be `source`; a folder is not replaced.
    shape : tuple of int
        The shape to broadcast to.
    options : Options, optional
        How it is written.
    **arguments
        `axes_mapping`, `mode`, `axis` and `broadcast_axes`, as `bcast.broadcast` takes them.

    Returns
    -------
    Written
        Shape, dtype and size of the result.

    Raises
    ------
    ValueError, TypeError, numpy.exceptions.AxisError
        As `bcast.broadcast` raises them; `ValueError` also if `source` is not a file that can be read, or if
        `max_memory` is too little.
    ImportError
        If a file is Zarr's and the zarr package is not installed.
    OSError, MemoryError
        If a file cannot be read or written, or there is no room for it.
    KeyboardInterrupt, SystemExit
        On a signal to end, unless the program has a handler of its own.
    """
    with closing(_input(source)) as data:
        alignment = align(data.shape, shape, name="shape", **arguments)
        return _write(data, destination, alignment, alignment.shape, options)


def tile(source: str, destination: str, reps: tuple[int, ...], options: Options = DEFAULTS) -> Written:
    """Repeat the whole of the array in a file, as `bcast.tile` does, and write the result to a .npy file.

    Parameters
    ----------
    source, destination, options
        As in `apply`.
    reps : tuple of int
        The number of repetitions along each axis, aligned at the right.

    Returns
    -------
    Written
        Shape, dtype and size of the result.

    Raises
    ------
    ValueError, TypeError, ImportError, OSError, MemoryError, KeyboardInterrupt, SystemExit
        As `bcast.tile` and `apply` raise them.
    """
    with closing(_input(source)) as data:
        rank = max(len(data.shape), len(reps))
        shape = (1,) * (rank - len(data.shape)) + data.shape
        return _split(data, destination, shape, (1,) * (rank - len(reps)) + reps, True, options)


def repeat(
    source: str, destination: str, repeats: tuple[int, ...], axes: tuple[int, ...] | None, options: Options = DEFAULTS
) -> Written:
    """Repeat the items of the array in a file, as `bcast.repeat` does, and write the result to a .npy file.

    Parameters
    ----------
    source, destination, options
        As in `apply`.
    repeats : tuple of int
        One number of repetitions, or one for each of `axes`.
    axes : tuple of int, optional
        The axes; by default, the result has one axis, with all items.

    Returns
    -------
    Written
        Shape, dtype and size of the result.

    Raises
    ------
    ValueError, TypeError, ImportError, OSError, MemoryError, KeyboardInterrupt, SystemExit
        As `bcast.repeat` and `apply` raise them.
    """
    with closing(_input(source)) as data:
        if axes is None and len(repeats) != 1:
            raise ValueError(f"`repeats` expected one number without `axis`, got {repeats}")
        shape = (*data.shape, 1) if axes is None else data.shape or (1,)  # as in NumPy, a scalar has an axis here
        along = (len(data.shape),) if axes is None else axes
        counts = counts_of_axes(repeats, along, shape)
        return _split(data, destination, shape, counts, False, options, flat=axes is None)


def _split(
    data: Input,
    destination: str,
    shape: tuple[int, ...],
    counts: tuple[int, ...],
    tiled: bool,
    options: Options,
    flat: bool = False,
) -> Written:
    """Write an output each of whose axes is split in two while it is written; if `flat`, they are one in the file."""
    name = "reps" if tiled else "repeats"
    if min(counts, default=0) < 0:
        raise ValueError(f"`{name}` expected 0 or more times, got {min(counts)}")
    if is_zarr_name(destination):
        raise ValueError(f"`OUT` expected a .npy file, got {destination}; Zarr's are written by apply")
    whole = tuple([length * count for length, count in zip(shape, counts, strict=True)])
    if flat:
        whole = (math.prod(whole),)
    return _write(data, destination, split(shape, counts, tiled), shape_argument(name, whole), options)


def _input(name: str) -> Input:
    return ZarrInput(name) if is_zarr(name) else NpyInput(name)


def _write(data: Input, destination: str, alignment: Alignment, shape: tuple[int, ...], options: Options) -> Written:
    """Write an output of `shape`, which has the axes of the alignment, or some of them joined."""
    tell = options.tell
    wanted = _wanted(data, alignment, options.dtype, options.casting, options.max_memory)
    output = _output(destination, alignment.shape, shape, wanted, options.chunks, options.shards)
    written = Written(shape, output.dtype, _size(data, alignment, output.dtype))
    data.reshape(alignment.source)
    lengths = _lengths(data, output, alignment, options.max_memory, tell) if written.nbytes else ()
    with DeferredSignals() as signals, _telling(tell), output.appearing(destination, tell, options.clobber):
        if written.nbytes:
            with progress(destination, 0 if options.quiet else written.nbytes) as advance:
                _fill(data, output, alignment, lengths, signals.check, advance)
        data.close()  # Windows does not replace a mapped file
        signals.check()
    return written


def _wanted(
    data: Input, alignment: Alignment, dtype: str | None, casting: Casting, max_memory: int | None
) -> np.dtype[Any]:
    """Return the dtype of the result."""
    array = data.array
    if dtype is not None and follows_values(data.dtype, dtype_argument(dtype)):
        if max_memory is not None:  # all of the data would be read to find the unit
            raise ValueError(f"`dtype` expected one that names its unit where `max_memory` is given, got {dtype}")
        array = data.read(tuple([slice(0, length) for length in data.shape]))
    _, wanted = prepared(array, alignment.shape, None, dtype, casting)
    if wanted.hasobject:
        raise TypeError(f"`dtype` expected a dtype that .npy files store without pickling, got {wanted}")
    return wanted


def _output(
    name: str,
    shape: tuple[int, ...],
    joined: tuple[int, ...],
    dtype: np.dtype[Any],
    chunks: Sequence[int] | None,
    shards: Sequence[int] | None,
) -> Output:
    """Choose what is written, by its name."""
    if is_zarr_name(name):
        return ZarrOutput(shape, dtype, chunks, shards)
    for option, lengths in (("chunks", chunks), ("shards", shards)):
        if lengths is not None:
            raise ValueError(f"`{option}` expected None unless OUT ends with .zarr, got {tuple(lengths)}")
    return NpyOutput(shape, dtype, joined)


def _size(data: Input, alignment: Alignment, dtype: np.dtype[Any]) -> int:
    """Return the size of the output in bytes; refuse one that is beyond all systems."""
    nbytes = math.prod(alignment.shape) * dtype.itemsize
    if nbytes > MAX_BYTES:
        raise ValueError(f"`shape` expected an output of at most {MAX_BYTES} bytes, got one of {nbytes}")
    if not nbytes:  # there are shapes without items that no array can have
        materialise(data.array, alignment, alignment.shape, None, "shape", dtype, "unsafe")
    return nbytes


def _lengths(
    data: Input, output: Output, alignment: Alignment, max_memory: int | None, tell: Callable[[str], object]
) -> tuple[int, ...]:
    """Choose the lengths of a block; with `max_memory`, promise a bound or refuse."""
    if max_memory is None:
        return planned(data, output, alignment, PIECE, None).lengths
    held = peak()
    plan = planned(data, output, alignment, PIECE, max_memory - held - SLACK)
    tell(check_bound(held, plan.room + SLACK, max_memory))
    return plan.lengths


def _fill(
    data: Input,
    output: Output,
    alignment: Alignment,
    lengths: tuple[int, ...],
    check: Callable[[], object],
    advance: Callable[[int], object],
) -> None:
    """Broadcast the data block by block, with a check before each of them."""
    read: Index | None = None
    for index in blocks(alignment, lengths):
        check()
        place = part_of(index, alignment.source)
        if place != read:
            part = data.read(place)
            read = place
        block = output.block(index)
        convert_onto(part, Alignment(block.shape, part.shape), block, output.dtype, True)
        output.write(index, block)
        advance(block.nbytes)


@contextmanager
def _telling(tell: Callable[[str], object]) -> Iterator[None]:
    """Tell of each kind of warning once, however many blocks give rise to it."""
    told: set[str] = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        if str(message) not in told:
            told.add(str(message))
            tell(f"warning: {message}")

    with warnings.catch_warnings(action="always"):
        warnings.showwarning = show
        yield
