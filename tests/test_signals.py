"""Termination signals: a run stops at its next piece and leaves the disk unchanged."""

import contextlib
import itertools
import signal
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from _commands import OLD, fail_with, files, halfway, succeed

from bcast.__main__ import main
from bcast._cli import apply as cli_apply
from bcast._cli import atomic, npy_files
from bcast._cli import signals as cli_signals
from bcast._cli.signals import DeferredSignals

SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
DEFAULTS = {number: signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL for number in SIGNALS}

pytestmark = pytest.mark.usefixtures("folder", "defaults")


def receive(number):
    """Handle a signal like Python; a real one finds too small a stack beside some libraries."""
    handler = signal.getsignal(number)
    if callable(handler):
        handler(number, None)


@pytest.fixture
def defaults(monkeypatch):
    """Set the signals as a terminal would, even if the tests run under nohup; give a list of those sent again."""
    before = {number: signal.signal(number, handler) for number, handler in DEFAULTS.items()}
    again = []
    monkeypatch.setattr(signal, "raise_signal", lambda number: (again.append(number), receive(number)))
    yield again
    for number, handler in before.items():
        signal.signal(number, handler)


def handlers():
    return {number: signal.getsignal(number) for number in SIGNALS}


# Deferred signals.


def test_the_first_signal_decides_and_the_others_change_nothing(defaults):
    steps = []

    def check():
        with DeferredSignals() as signals:
            try:
                receive(signal.SIGINT)
                receive(signal.SIGTERM)
                signals.check()
            finally:
                receive(signal.SIGTERM)
                receive(signal.SIGINT)
                steps.append("cleaned up")

    with pytest.raises(KeyboardInterrupt):
        check()
    assert steps == ["cleaned up"]
    assert defaults == []
    assert handlers() == DEFAULTS


def test_a_signal_without_a_check_is_sent_again(defaults):
    steps = []

    def defer():
        with DeferredSignals():
            receive(signal.SIGINT)
            steps.append("undisturbed")

    with pytest.raises(KeyboardInterrupt):
        defer()
    assert steps == ["undisturbed"]
    assert defaults == [signal.SIGINT]
    assert handlers() == DEFAULTS


@pytest.mark.parametrize("own", [signal.SIG_IGN, lambda *_: None], ids=["ignored", "handled"])
@pytest.mark.parametrize("number", SIGNALS[::2])
def test_other_handlers_stay(run, monkeypatch, number, own):
    """Signals that were ignored before, such as SIGHUP under nohup."""
    np.save("in.npy", np.arange(3.0))
    signal.signal(number, own)

    def send():
        assert signal.getsignal(number) == own
        receive(number)

    halfway(monkeypatch, send)
    succeed(run, "in.npy", "out.npy", "--shape", "9,3")
    assert handlers() == DEFAULTS | {number: own}


def test_other_threads_defer_nothing(folder):
    np.save("in.npy", np.arange(3.0))
    before = handlers()
    seen = []

    def apply():
        with DeferredSignals() as signals:
            seen.append(handlers())
            signals.check()
        assert main(["apply", "in.npy", "out.npy", "--shape", "9,3", "--quiet"]) == 0

    thread = threading.Thread(target=apply)
    thread.start()
    thread.join()
    assert seen == [before]
    assert np.load(folder / "out.npy").shape == (9, 3)


# Runs.


@pytest.mark.parametrize("number", SIGNALS[:2])
@pytest.mark.usefixtures("bad_files")
def test_signal_leaves_nothing_behind(run, folder, monkeypatch, number):
    """Also one at the last of four pieces: the file has no name yet; and an interrupt from elsewhere."""
    before = files()
    for rows, act in (9, lambda: receive(number)), (4, lambda: receive(number)), (9, fail_with(KeyboardInterrupt())):
        with monkeypatch.context() as patch:
            pieces = halfway(patch, act)
            status = run("apply", "in.npy", "out.npy", "--shape", f"{rows},3")
        expected = signal.SIGINT if act.__name__ == "fail" else number
        assert status == (128 + expected, "", "bcast: interrupted\n" if expected == signal.SIGINT else "")
        assert len(pieces) == 4
        assert (folder / "out.npy").read_bytes() == OLD
        assert files() == before
        assert handlers() == DEFAULTS


@pytest.mark.parametrize("again", [False, True], ids=["once", "from_there_on"])
def test_signal_at_any_line(folder, monkeypatch, again):
    """SIGINT at the n-th line that a run executes, or at that one and all later ones, for every n."""
    np.save("in.npy", np.arange(3.0))
    monkeypatch.setattr(cli_apply, "BLOCK_BYTES", 24)
    new = np.broadcast_to(np.arange(3.0), (2, 3))
    for first in itertools.count(1):
        Path("out.npy").write_bytes(OLD)
        with contextlib.suppress(KeyboardInterrupt):
            if interrupted_at(first, again) < first:
                break
        assert files() == ["in.npy", "out.npy"], f"line {first}"
        if (folder / "out.npy").read_bytes() != OLD:
            np.testing.assert_array_equal(np.load("out.npy"), new, strict=True)
        assert handlers() == DEFAULTS, f"line {first}"
    assert first > 100  # or else the lines of some room were not seen


ROOMS = {module.__file__ for module in (atomic, cli_apply, npy_files, cli_signals, contextlib)}


def interrupted_at(first, again):
    count = 0

    def trace(frame, event, _):
        nonlocal count
        if frame.f_code.co_filename not in ROOMS:
            return None
        count += event == "line"
        if event == "line" and (count >= first if again else count == first):
            receive(signal.SIGINT)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        main(["apply", "in.npy", "out.npy", "--shape", "2,3", "--quiet"])
    finally:
        sys.settrace(before)
    return count
