"""The standard streams. In: lines, and `-` for a file. Out: results on stdout, all else on stderr, exit statuses."""

import os
import select
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TextIO, TypeAlias

Wait: TypeAlias = Callable[[list[TextIO], list[TextIO]], object]  # until a stream can be read, or written

STREAM = "-"
WRITE_BYTES = getattr(select, "PIPE_BUF", 512)  # a writable pipe takes as many without blocking


def fail(error: Exception) -> int:
    """Report bad input in one line; return the exit status."""
    if isinstance(error, OSError) and error.strerror and error.filename:
        message = f"{error.filename}: {error.strerror}"
    else:
        message = str(error) or ("out of memory" if isinstance(error, MemoryError) else repr(error))
    warn(f"error: {message}")
    return 2


def print_line(text: str = "", end: str = "\n") -> None:
    """Print and flush, so that a failure of stdout is noticed here, not when the interpreter exits."""
    with _to_stdout():
        print(text, end=end, flush=True)


def warn(text: str) -> None:
    """Print one line to stderr, if there is one; names in it may have any characters."""
    if sys.stderr is None:
        return
    try:
        print(f"bcast: {' '.join(text.split())}", file=sys.stderr, flush=True)
    except OSError:  # only the exit status can report it
        _discard(sys.stderr)


@contextmanager
def named(source: str, target: str, wait: Wait) -> Iterator[tuple[str, str]]:
    """Yield the names of two files; at the end, write the second to stdout if asked. Call `wait` before blocking."""
    if STREAM not in (source, target):
        yield source, target
        return
    _refuse_terminal("IN", source, sys.stdin)
    _refuse_terminal("OUT", target, sys.stdout)
    with TemporaryDirectory(prefix="bcast-") as folder:
        stdin, stdout = Path(folder, "standard input"), Path(folder, "standard output")
        if source == STREAM:
            _write_stdin_to(stdin, wait)
        yield str(stdin) if source == STREAM else source, str(stdout) if target == STREAM else target
        if target == STREAM:
            _write_to_stdout(stdout, wait)


def _refuse_terminal(role: str, name: str, stream: TextIO | None) -> None:
    """Refuse a standard stream that is not redirected, or closed."""
    if name == STREAM and (stream is None or stream.isatty()):
        raise ValueError(f"`{role}` expected a file or a pipe, got {'a terminal' if stream else 'nothing'}")


def _write_stdin_to(path: Path, wait: Wait) -> None:
    """Write all of stdin to a file."""
    with path.open("wb") as file:
        while wait([sys.stdin], []) or (read := os.read(sys.stdin.fileno(), 2**20)):
            file.write(read)


def _write_to_stdout(path: Path, wait: Wait) -> None:
    """Write a file to stdout."""
    with path.open("rb") as file, _to_stdout():
        while read := file.read(WRITE_BYTES):
            wait([], [sys.stdout])
            sys.stdout.buffer.write(read)
            sys.stdout.flush()


@contextmanager
def _to_stdout() -> Iterator[None]:
    """End the program if stdout fails: quietly if its reader has gone."""
    try:
        yield
    except OSError as error:
        _discard(sys.stdout)
        if isinstance(error, BrokenPipeError):  # the reader has closed its end
            raise SystemExit(141) from None  # 128 + SIGPIPE, as in a shell
        error.filename = "standard output"
        raise SystemExit(fail(error)) from None


def _discard(stream: TextIO) -> None:
    """Discard a stream's output, including its buffer, which the interpreter would flush."""
    with suppress(OSError):  # the stream is not a file
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
