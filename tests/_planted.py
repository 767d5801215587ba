"""Functions that do wrong where something fails or interrupts, each in one way; the drill must find every one of them.

`CALLS` has the call of each function, under what the drill must say of it.
"""

import contextlib
import ctypes
import mmap
import os
import signal
import time

import numpy as np
from _calls import Call, numbers, room

import bcast

KEPT = []
PATIENT = 0.002  # seconds that an interrupt is waited for


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


def writes_to_the_data(x):
    try:
        allocate()
    except BaseException:
        x[0] += 1
        raise
    return x.copy()


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


def raises_another(x):
    try:
        allocate()
    except BaseException:
        raise KeyError("x") from None
    return x.copy()


def refuses_otherwise(x):  # noqa: ARG001
    try:
        allocate()
    except BaseException:
        raise TypeError("x") from None
    raise ValueError("x")


def keeps_memory(x):
    try:
        allocate()
    except BaseException:
        KEPT.append(object())
        raise
    return x.copy()


def keeps_much_memory(x):
    try:
        allocate()
    except BaseException:
        KEPT.append(bytearray(5000))
        raise
    return x.copy()


def keeps_pages(x):
    try:
        allocate()
    except BaseException:
        KEPT.append(mmap.mmap(-1, 1 << 16))
        raise
    return x.copy()


def keeps_an_argument(x):
    try:
        allocate()
    except BaseException:
        KEPT.append(x)
        raise
    return x.copy()


def keeps_a_function(x):
    try:
        allocate()
    except BaseException:
        KEPT.append(bcast.tile)
        raise
    return x.copy()


def spoils_the_next(x):
    try:
        allocate()
    except BaseException:
        KEPT.append(x.size)
        raise
    return x + len(KEPT)


def changes_the_allocator(x):
    try:
        allocate()
    except BaseException:
        set_handler(another_handler())
        raise
    return x.copy()


def changes_the_treatment_of_errors(x):
    np.seterr(invalid="ignore")
    allocate()
    np.seterr(invalid="warn")
    return x.copy()


def another_handler():
    """NumPy's own memory handler under another name, as NEP 49 has it."""
    python = ctypes.pythonapi
    python.PyCapsule_GetPointer.restype = ctypes.c_void_p
    python.PyCapsule_GetPointer.argtypes = ctypes.py_object, ctypes.c_char_p
    python.PyCapsule_New.restype = ctypes.py_object
    python.PyCapsule_New.argtypes = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
    size = 128 + 5 * ctypes.sizeof(ctypes.c_void_p)
    own = python.PyCapsule_GetPointer(set_handler(None), HANDLER)
    copy = ctypes.create_string_buffer(ctypes.string_at(own, size), size)
    copy[:7] = b"planted"
    KEPT.append(copy)
    return python.PyCapsule_New(ctypes.addressof(copy), HANDLER, None)


def set_handler(handler):
    """`PyDataMem_SetHandler`, by its place in NumPy's C API."""
    python = ctypes.pythonapi
    python.PyCapsule_GetPointer.restype = ctypes.c_void_p
    python.PyCapsule_GetPointer.argtypes = ctypes.py_object, ctypes.c_char_p
    table = python.PyCapsule_GetPointer(np._core.multiarray._ARRAY_API, None)
    function = ctypes.cast(table, ctypes.POINTER(ctypes.c_void_p))[304]
    given = ctypes.c_void_p if handler is None else ctypes.py_object
    return ctypes.PYFUNCTYPE(ctypes.py_object, given)(function)(handler)


HANDLER = b"mem_handler"


def dies(x):
    try:
        allocate()
    except BaseException:
        os.kill(os.getpid(), signal.SIGSEGV)
    return x.copy()


def hangs(x):
    try:
        object()
    except BaseException:
        time.sleep(3600)
    return x.copy()


def prints(x):
    try:
        allocate()
    except BaseException:
        os.write(2, b"oh")
        raise
    return x.copy()


def swallows_slowly(x):
    with contextlib.suppress(BaseException):
        wait()
    return x.copy()


def writes_slowly(x, out):
    out[:2] = x[:2]
    wait()
    out[2:] = x[2:]
    return out


def wait():
    """Be interrupted, most likely."""
    end = time.perf_counter() + PATIENT
    while time.perf_counter() < end:
        pass


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
    "changes_the_allocator": {"NumPy's memory comes from": call},
    "changes_the_treatment_of_errors": {"NumPy's errors are treated": call},
    "dies": {"died of SIGSEGV": call},
    "hangs": {"hangs": call},
    "prints": {"wrote": call},
    "swallows_slowly": {"1 interrupts came and 0 exceptions": call},
    "writes_slowly": {"an argument has changed": lambda: call(out=room(4))},
}
