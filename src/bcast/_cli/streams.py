"""stdin and stdout in the place of files: copies on the disk stand in for what is read or written only in order."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

from bcast._cli.printing import to_stdout
from bcast._cli.signals import raised_signals, waits

__all__ = ["STREAM", "named"]

STREAM = "-"
PIECE = 2**20


@contextmanager
def named(source: str, destination: str) -> Iterator[tuple[str, str]]:
    """Give files for `source` and `destination`, either of which may be ``-``.

    Parameters
    ----------
    source, destination : str
        Names of files; ``-`` is stdin, or stdout.

    Yields
    ------
    tuple of str
        Names of files. When the block ends without an error, what is in the second one goes to stdout.

    Raises
    ------
    ValueError
        If stdin or stdout is a terminal.
    OSError
        If stdin cannot be read, stdout cannot be written, or the disk is full.
    """
    if STREAM not in (source, destination):
        yield source, destination
        return
    for role, name, stream in (("IN", source, sys.stdin), ("OUT", destination, sys.stdout)):
        if name == STREAM and (stream is None or stream.isatty()):
            what = "nothing: it is closed" if stream is None else "a terminal"
            raise ValueError(f"`{role}` expected a file or a pipe, got {what}")
    with raised_signals(), TemporaryDirectory(prefix="bcast-") as folder:
        files = Path(folder, "standard input"), Path(folder, "standard output")
        if source == STREAM:
            with files[0].open("wb") as file, waits(sys.stdin.fileno()) as wait:
                _copy(sys.stdin.buffer, file, wait)
        try:
            yield (
                str(files[0]) if source == STREAM else source,
                str(files[1]) if destination == STREAM else destination,
            )
        except ValueError as error:
            raise ValueError(str(error).replace(str(files[0]), "stdin")) from error
        if destination == STREAM:
            with files[1].open("rb") as file, to_stdout():
                _copy(file, sys.stdout.buffer)


def _copy(source: BinaryIO, destination: BinaryIO, wait: Callable[[], None] = lambda: None) -> None:
    """Copy all bytes; what there is of stdin is taken as it comes."""
    wait()
    while piece := os.read(source.fileno(), PIECE):
        destination.write(piece)
        wait()
    destination.flush()
