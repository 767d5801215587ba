"""Signals that end the process. In: signals during a run. Out: an exception at a point where nothing is half done."""

import os
import select
import signal
import sys
import threading
from types import FrameType
from typing import Any, Self

# SIGINT is deferred first and restored last, so that no KeyboardInterrupt comes between changes to the others.
NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")


class DeferredSignals:
    """Defer the signals that end the process to the next `check`, or to the end of a ``with`` block.

    After a `check` has raised, signals have no effect, so that clean-up runs to its end. Signals that are ignored, as
    under nohup, or handled by the program are left alone. Only in the main thread has the block an effect.
    """

    def __init__(self) -> None:
        self._handlers: dict[int, Any] = {}  # to restore
        self._pending: list[int] = []
        self._raised = False
        self._pipe: tuple[int, ...] = ()

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in [getattr(signal, name) for name in NAMES if hasattr(signal, name)]:
                handler = signal.getsignal(number)
                if handler in (signal.SIG_DFL, signal.default_int_handler):
                    self._handlers[number] = handler
                    signal.signal(number, self._note)
            if sys.platform != "win32":
                self._pipe = os.pipe()
                os.set_blocking(self._pipe[1], False)
                self._woken = signal.set_wakeup_fd(self._pipe[1], warn_on_full_buffer=False)
        return self

    def __exit__(self, *_: object) -> None:
        if self._pipe:
            signal.set_wakeup_fd(self._woken)
        for end in self._pipe:
            os.close(end)
        for number, handler in reversed(self._handlers.items()):
            signal.signal(number, handler)
        if self._pending and not self._raised:
            signal.raise_signal(self._pending[0])

    def check(self) -> None:
        """Raise `KeyboardInterrupt` if SIGINT came first, or `SystemExit` if another signal did."""
        if self._pending and not self._raised:
            self._raised = True
            number = self._pending[0]
            raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)

    def wait(self, reads: list[Any], writes: list[Any]) -> None:
        """Wait until a stream can be read or written; raise if a signal comes.

        One that comes just before ``read(2)`` interrupts nothing: it would sleep on. But Python writes it to a pipe.
        """
        while self._pipe and not self._pending:
            if self._pipe[0] not in select.select([*reads, self._pipe[0]], writes, [])[0]:
                break
            os.read(self._pipe[0], 4096)
        self.check()

    def _note(self, number: int, _: FrameType | None) -> None:
        self._pending.append(number)
