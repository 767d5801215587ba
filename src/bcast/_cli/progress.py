"""What a long run shows on stderr: a line that changes on a terminal, a plain one elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

__all__ = ["progress", "size_text"]

SHOWN = 100_000_000  # bytes of output; less is written before anybody reads a line
EVERY = 0.1  # seconds
UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB", "EB")


@contextmanager
def progress(name: str, total: int) -> Iterator[Callable[[int], object]]:
    """Show how much of a large output is written.

    Parameters
    ----------
    name : str
        What is written.
    total : int
        Its bytes.

    Yields
    ------
    callable
        To be called with the number of bytes that have been written since the last call.
    """
    if total < SHOWN or sys.stderr is None:
        yield lambda _: None
    elif sys.stderr.isatty():
        line = _Line(total)
        try:
            yield line.advance
        finally:
            line.show("")
    else:
        _print(f"bcast: writing {size_text(total)} to {' '.join(name.split())}\n")
        yield lambda _: None


def size_text(size: int) -> str:
    """Return a number of bytes as it is read best, such as 8.0 GB."""
    power = 0
    while size >= 1000 ** (power + 1) * 0.99995 and power < len(UNITS) - 1:
        power += 1
    return f"{size} bytes" if power == 0 else f"{size / 1000**power:.1f} {UNITS[power]}"


class _Line:
    """A line on a terminal that tells how far a run is."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0
        self._begun = self._shown = time.monotonic()
        self._width = 0

    def advance(self, size: int) -> None:
        """Count what has been written, and show it now and then."""
        self._done += size
        now = time.monotonic()
        if now - self._shown < EVERY:
            return
        self._shown = now
        rate = self._done / (now - self._begun)
        left = (self._total - self._done) / rate
        self.show(
            f"bcast: {size_text(self._done)} of {size_text(self._total)}, {100 * self._done // self._total} %, "
            f"{size_text(round(rate))}/s, {_time_text(left)} left"
        )

    def show(self, text: str) -> None:
        """Replace the line's text."""
        _print("\r" + text.ljust(self._width) + ("" if text else "\r"))
        self._width = len(text)


def _time_text(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def _print(text: str) -> None:
    with suppress(OSError):  # nobody reads it; the run goes on
        print(text, end="", file=sys.stderr, flush=True)
