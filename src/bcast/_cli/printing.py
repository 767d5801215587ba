"""What the command line prints: results to stdout, all else to stderr."""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

__all__ = ["complain", "refuse", "say", "to_stdout"]

BAD_INPUT = 2
NAMES = "axes_mapping|axis|broadcast_axes|casting|chunks|dtype|max_memory|mode|names|repeats|reps|shape|shards"
PIPE_CLOSED = 141  # 128 + SIGPIPE, as in a shell


def as_options(message: str) -> str:
    """Call the arguments of functions by the names of the options that stand for them."""

    def option(match: re.Match[str]) -> str:
        return "--" + match[1].replace("_", "-") + (f" {match[2]}" if match[2] else "")

    message = re.sub(f"(?<=`)({NAMES})()(?=`)", option, message)
    message = re.sub(rf"\b({NAMES})='(\w+)'", option, message)
    return re.sub(rf"\b({NAMES})=\[(\d+(?:, \d+)*)\]", lambda match: option(match).replace(", ", ","), message)


def refuse(error: Exception) -> int:
    """Report bad input in one line."""
    if isinstance(error, OSError) and error.strerror and error.filename:
        message = f"{error.filename}: {error.strerror}"
    else:
        message = as_options(str(error)) or ("out of memory" if isinstance(error, MemoryError) else repr(error))
    complain(f"error: {message}")
    return BAD_INPUT


def say(text: str = "", end: str = "\n") -> None:
    """Print and flush, so that a failure of stdout is noticed here, not when the interpreter exits."""
    with to_stdout():
        print(text, end=end, flush=True)


@contextmanager
def to_stdout() -> Iterator[None]:
    """End the program if stdout fails: quietly if its reader has gone."""
    try:
        yield
    except OSError as error:
        _discard(sys.stdout)
        if isinstance(error, BrokenPipeError):  # the reader has seen enough
            raise SystemExit(PIPE_CLOSED) from None
        error.filename = "standard output"
        raise SystemExit(refuse(error)) from None


def complain(text: str) -> None:
    """Print one line to stderr, if there is one, whatever characters the names in it have."""
    if sys.stderr is None:
        return
    try:
        print(f"bcast: {' '.join(text.split())}", file=sys.stderr, flush=True)
    except OSError:  # only the exit status is left to tell it
        _discard(sys.stderr)


def _discard(stream: TextIO) -> None:
    """Discard a stream's output, including what it still holds and the interpreter would flush."""
    with suppress(OSError):  # from a stream that is not a file
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
