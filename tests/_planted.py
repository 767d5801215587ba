"""Functions with planted bugs, one each, that show if an allocation fails; the drill of `_faults.py` must find all.

`CALLS` has the call of each function, under the finding that the drill must report.
"""

import contextlib
import mmap
import os
import signal
import time

import numpy as np
from _calls import Call, numbers, room

import bcast

KEPT = []


def allocate():
    """An operation that fails or is interrupted here."""
    return [bytearray(1000) for _ in range(2)]


def does_nothing_wrong(x):
    allocate()
    return x.copy()


def writes_first(x, out):
    np.copyto(out, x)
    allocate()
    return out


def on_failure(act, then=lambda x: x.copy(), error=None):
    """Make a function that does something where it fails or is interrupted, and raises that, or another error."""

    def function(x):
        try:
            allocate()
        except BaseException:
            act(x)
            if error is not None:
                raise error("x") from None
            raise
        return then(x)

    return function


def keep(make):
    return lambda x: KEPT.append(make(x))


raises_another = on_failure(id, error=KeyError)
keeps_memory = on_failure(keep(lambda _: bytearray(5000)))
keeps_pages = on_failure(keep(lambda _: mmap.mmap(-1, 1 << 16)))
keeps_an_argument = on_failure(keep(lambda x: x))
keeps_a_function = on_failure(keep(lambda _: bcast.tile))
spoils_the_next = on_failure(keep(lambda x: x.size), lambda x: x + len(KEPT))
dies = on_failure(lambda _: os.kill(os.getpid(), signal.SIGSEGV))


def swallows(x):
    try:
        allocate()
    except BaseException:
        return np.zeros_like(x)
    return x.copy()


def goes_on(x):
    with contextlib.suppress(BaseException):
        allocate()
    return x.copy()


def hangs(x):
    try:
        object()
    except BaseException:
        time.sleep(3600)
    return x.copy()


def call(**kwargs):
    return Call(numbers(4), numbers(4), **kwargs)


CALLS = {
    "does_nothing_wrong": {"": call},
    "writes_first": {"an argument has changed": lambda: call(out=room(4))},
    "swallows": {"a wrong result": call},
    "goes_on": {"the interrupt was swallowed": call},
    "raises_another": {"KeyError": call},
    "keeps_memory": {"live": call},
    "keeps_pages": {"mapped": call},
    "keeps_an_argument": {"references to array": call},
    "keeps_a_function": {"references": call},
    "spoils_the_next": {"the next call": call},
    "dies": {"died of SIGSEGV": call},
    "hangs": {"hangs": call},
}
