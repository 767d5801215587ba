"""Functions that do wrong where something fails or interrupts, each in one way; the drill must find every one of them.

`CALLS` has the call of each function, under what the drill must say of it.
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
    """What fails or is interrupted here: in Python's allocators, and in malloc."""
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


def spoil(x):
    x[0] += 1


def keep(make):
    return lambda x: KEPT.append(make(x))


def refuse(_):
    raise ValueError("x")


writes_to_the_data = on_failure(spoil)
raises_another = on_failure(id, error=KeyError)
refuses_otherwise = on_failure(id, refuse, TypeError)
keeps_memory = on_failure(keep(lambda _: object()))
keeps_much_memory = on_failure(keep(lambda _: bytearray(5000)))
keeps_pages = on_failure(keep(lambda _: mmap.mmap(-1, 1 << 16)))
keeps_an_argument = on_failure(keep(lambda x: x))
keeps_a_function = on_failure(keep(lambda _: bcast.tile))
spoils_the_next = on_failure(keep(lambda x: x.size), lambda x: x + len(KEPT))
dies = on_failure(lambda _: os.kill(os.getpid(), signal.SIGSEGV))
prints = on_failure(lambda _: os.write(2, b"oh"))


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


def changes_the_treatment_of_errors(x):
    np.seterr(invalid="ignore")
    allocate()
    np.seterr(invalid="warn")
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
    "writes_to_the_data": {"an argument has changed": lambda: Call(numbers(4), numbers(4).copy())},
    "swallows": {"a wrong result": call},
    "goes_on": {"the interrupt was swallowed": call},
    "raises_another": {"KeyError": call},
    "refuses_otherwise": {"TypeError": lambda: Call(ValueError, numbers(4))},
    "keeps_memory": {"blocks": call},
    "keeps_much_memory": {"live": call},
    "keeps_pages": {"mapped": call},
    "keeps_an_argument": {"references to array": call},
    "keeps_a_function": {"references": call},
    "spoils_the_next": {"the next call": call},
    "changes_the_treatment_of_errors": {"NumPy's errors are treated": call},
    "dies": {"died of SIGSEGV": call},
    "hangs": {"hangs": call},
    "prints": {"wrote": call},
}
