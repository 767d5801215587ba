"""Signals that end the process, deferred while something must not be left half done."""

import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Self

__all__ = ["DeferredSignals", "raised_signals", "waits"]

# SIGINT is deferred first and restored last, so that no KeyboardInterrupt comes between changes to the others.
NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")


class DeferredSignals:
    """Defer the signals that end the process to the next `check`, or to the end of a ``with`` block.

    After a `check` has raised, signals have no effect, so that clean-up runs to its end. Signals that the process
    ignores, as under nohup, and those that the program handles itself are left alone. Only the main thread can defer
    signals; in other threads the block has no effect.
    """

    def __init__(self) -> None:
        self._handlers: dict[int, Any] = {}  # to restore
        self._pending: list[int] = []
        self._raised = False

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in [getattr(signal, name) for name in NAMES if hasattr(signal, name)]:
                handler = signal.getsignal(number)
                if handler in (signal.SIG_DFL, signal.default_int_handler, _end):
                    self._handlers[number] = handler
                    signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in reversed(self._handlers.items()):
            signal.signal(number, handler)
        if self._pending and not self._raised:
            signal.raise_signal(self._pending[0])

    def check(self) -> None:
        """Raise `KeyboardInterrupt` if SIGINT came first, or `SystemExit` if another signal did."""
        if self._pending:
            self._raised = True
            number = self._pending[0]
            raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)

    def _note(self, number: int, _: FrameType | None) -> None:
        self._pending.append(number)


@contextmanager
def raised_signals() -> Iterator[None]:
    """Have the signals that would end the process at once raise `SystemExit`, so that clean-up runs first."""
    changed = []
    try:
        if threading.current_thread() is threading.main_thread():
            for number in [getattr(signal, name) for name in NAMES if hasattr(signal, name)]:
                if signal.getsignal(number) is signal.SIG_DFL:
                    changed.append(number)
                    signal.signal(number, _end)
        yield
    finally:
        for number in changed:
            signal.signal(number, signal.SIG_DFL)


def _end(number: int, _: FrameType | None) -> None:
    raise SystemExit(128 + number)


@contextmanager
def waits(descriptor: int) -> Iterator[Callable[[], None]]:
    """Yield a function that waits until a descriptor can be read, or until a signal's handler raises.

    A signal that arrives after Python's last look and before ``read(2)`` interrupts nothing: the read would sleep on.
    Python writes each signal to a pipe, which the wait watches as well.
    """
    if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    signalled, pipe = os.pipe()
    os.set_blocking(pipe, False)
    before = signal.set_wakeup_fd(pipe, warn_on_full_buffer=False)

    def wait() -> None:
        while signalled in select.select([descriptor, signalled], [], [])[0]:
            os.read(signalled, 4096)

    try:
        yield wait
    finally:
        signal.set_wakeup_fd(before)
        os.close(signalled)
        os.close(pipe)
