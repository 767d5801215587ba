"""Failing allocations and interrupts in calls of the cores, and the state that each of them leaves.

Run as a program, with `fault_shim.c` preloaded, it forks a process for each tested row of `_calls.py`. The process
repeats the call for each of its allocations: first only this allocation fails, then this one and all later ones. The
calls are warm: earlier calls have filled caches and left idle memory. For cold calls, each fault gets its own process,
and happens in the first call. A process that dies or hangs is reported like any other finding.
"""

import ctypes
import faulthandler
import functools
import gc
import json
import os
import re
import select
import signal
import sys
import tempfile
import traceback
import types
import warnings
import zlib
from typing import NamedTuple

import _planted
import numpy as np
from _calls import CALLS, Row, difference, image, is_plain

import bcast
from bcast._apply import run as apply_run
from bcast._copy import run as copies
from bcast._reduce import run as reduce_run

MOST = 20_000  # no call allocates so often
SETTLING = 3  # calls that fill caches
FEW_TRIES, TRIES = 6, 300  # what grows each time leaks; what is cached does not
# What CPython says of a ufunc of NumPy's that found no memory and raised nothing; in its loop, it does not say of what.
LOST = re.compile(
    "<(ufunc|method 'reduce' of 'numpy.ufunc').* returned NULL without setting an exception$"
    "|error return without exception set$"
)
SIMPLE = (type(None), bool, int, float, str, type, types.FunctionType, types.ModuleType)


class Failure(NamedTuple):
    kind: type
    message: str


# The faults: each is armed right before a call and disarmed right after it. Neither step allocates.


class Allocations:
    """The n-th allocation of the C library fails, and with `on` all after it: Python's, mappings and threads, too."""

    clean = MemoryError

    def __init__(self):
        library = ctypes.CDLL(None)
        self.armed = ctypes.c_int.in_dll(library, "faults_armed")
        names = ("from", "to", "seen", "failed", "live", "mapped")
        self.variables = {name: ctypes.c_long.in_dll(library, f"faults_{name}") for name in names}

    def arm(self, n, on):
        for name, value in (("from", n), ("to", MOST if on else n + 1), ("seen", 0), ("failed", 0)):
            self.variables[name].value = value
        self.armed.value = 1

    def disarm(self):
        """Return whether the fault has come."""
        self.armed.value = 0
        return self.variables["failed"].value > 0

    def counters(self):
        return {name: self.variables[name].value for name in ("live", "mapped")}


class Interrupts(Allocations):
    """Ctrl-C comes at the n-th line of all Python that the call runs, NumPy's and that of the arguments."""

    clean = KeyboardInterrupt

    def arm(self, n, on):  # noqa: ARG002 (one is enough)
        left = n
        self.raised = False

        def trace(frame, event, _):
            nonlocal left
            if event in ("call", "line") and frame.f_code.co_filename != __file__:
                left -= 1
                if left < 0 and not self.raised:
                    self.raised = True
                    raise KeyboardInterrupt
            return trace

        sys.settrace(trace)

    def disarm(self):
        sys.settrace(None)
        return self.raised


FAULTS = {"allocations": Allocations, "interrupts": Interrupts}


def attempt(function, call, fault=None, n=0, on=False):
    """Make a call; return its result or its `Failure`, and whether the fault has come."""
    # The frame has its object beforehand: where CPython finds no memory for one, it raises a SystemError, or dies. What
    # it keeps of freed objects is emptied, so that new ones are allocated.
    sys._getframe()
    gc.collect()
    if fault is not None:
        fault.arm(n, on)
    try:
        result = function(*call.args, **call.kwargs)
    except BaseException as error:
        has_come = fault is not None and fault.disarm()
        return Failure(type(error), str(error)), has_come
    return result, fault is not None and fault.disarm()


# One call, and what it must leave as it was


def parts(value):
    """Yield an argument and what it consists of."""
    yield value
    if type(value) in (tuple, list):
        for item in value:
            yield from parts(item)
    elif isinstance(value, np.ndarray):
        yield value.dtype
        if value.base is not None:
            yield value.base


def memory_of(array):
    """Return the array that owns the memory of another one, and perhaps more."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def is_simple(part):
    """Return whether an object is immortal, so that its references are not counted."""
    return isinstance(part, SIMPLE) or (type(part) is tuple and not part)


class Before:
    """The state of all that a call is given, before the call."""

    def __init__(self, call, function):
        self.call = call
        given = [part for value in (*call.args, *call.kwargs.values()) for part in parts(value)]
        arrays = [memory_of(part) for part in given if isinstance(part, np.ndarray)]
        self.memory = {id(array): array for array in arrays}
        self.images = {key: image(array) for key, array in self.memory.items()}
        self.state = call.state and call.state()
        if any(isinstance(part, np.ufunc) for part in (*given, getattr(function, "ufunc", None))):
            # Loops are kept, with their dtypes.
            given = [part for part in given if not isinstance(part, (np.ufunc, np.dtype))]
        self.parts = list({id(part): part for part in given if not is_simple(part)}.values())
        del given, arrays
        self.counts = self.count()

    def count(self):
        return list(map(sys.getrefcount, self.parts))

    def references(self):
        """Return the arguments with more or fewer references than before."""
        counts = self.count()
        if counts != self.counts:
            gc.collect()  # an exception may be part of a cycle
            counts = self.count()
        for part, before, after in zip(self.parts, self.counts, counts, strict=True):
            if after != before:
                yield f"{after - before:+} references to {part!r:.80}"

    def written(self):
        """Return the arguments that have changed."""
        for key, array in self.memory.items():
            if image(array) != self.images[key]:
                yield f"an argument has changed: {array!r:.200}"

    def written_beside(self, expected):
        """Return the arguments that are neither unchanged nor, within `out`, as expected."""
        out = self.call.kwargs.get("out")
        outs = [] if out is None else zip(out, expected, strict=True) if type(out) is tuple else [(out, expected)]
        for each, values in outs:
            memory = memory_of(each)
            copy = bytearray(self.images[id(memory)]) if is_plain(each.dtype) else image(memory)
            if is_plain(each.dtype):
                at = each.ctypes.data - memory.ctypes.data
                np.ndarray(each.shape, each.dtype, copy, at, each.strides)[...] = values
                copy = bytes(copy)
            self.images[id(memory)] = copy
        return self.written()


def judge(before, result, has_come, clean):
    """Describe the error of a result, or of a failure of an unexpected kind."""
    call = before.call
    if isinstance(result, Failure):
        is_refusal = isinstance(call.expected, type) and issubclass(result.kind, call.expected)
        is_clean = issubclass(result.kind, clean) or (result.kind is SystemError and LOST.match(result.message))
        if not is_refusal and not (has_come and is_clean):
            yield f"{result.kind.__name__}: {result.message}"
        yield from before.written()
        if call.state and call.state() != before.state:
            yield f"{call.state()} for {before.state} after a call that failed"
    elif has_come and clean is KeyboardInterrupt:
        yield "the interrupt was swallowed"
    elif wrong := difference(result, call.expected):
        yield wrong
    else:
        if isinstance(call.kwargs.get("out"), np.ndarray) and result is not call.kwargs["out"]:
            yield "another array than `out`"
        yield from before.written_beside(call.expected)


def undisturbed(function, make):
    """Make a call as it is; return what is wrong with it."""
    before = Before(make(), function)
    result, _ = attempt(function, before.call)
    return list(judge(before, result, False, ()))


def faulty(function, make, fault, n, on):
    """Make a call during which the n-th thing goes wrong; return what is wrong, and whether it came to that."""
    before = Before(make(), function)
    errors = np.geterr()
    result, has_come = attempt(function, before.call, fault, n, on)
    findings = list(judge(before, result, has_come, fault.clean))
    del result
    findings += before.references()
    handlers = [np._core.multiarray.get_handler_name(*array) for array in ((), (np.empty(1 << 20, np.uint8),))]
    if handlers != ["default_allocator"] * 2:
        findings.append(f"NumPy's memory comes from {handlers}")
    if np.geterr() != errors:
        findings.append(f"NumPy's errors are treated as in {np.geterr()}")
        np.seterr(**errors)
    return findings, has_come


# All faults of one row, each time in a process that reports by lines of JSON: where it is ("at", n, and on), what is
# wrong there ("bad", n, and on, findings), that a fault has come ("point"), and what is seen from outside ("died",).


def tell(file, *words):
    """Report to the process that has forked this one."""
    os.write(file, f"{json.dumps(words)}\n".encode())


def measures(fault):
    """Make a function that counts what a call must not leave behind."""
    held = {}
    for name, module in list(sys.modules.items()):
        if name == "bcast" or name.startswith("bcast."):
            held |= {id(value): value for value in vars(module).values()}
    held |= {id(np.dtype(code)): np.dtype(code) for code in np.typecodes["All"]}
    shared = [value for value in held.values() if not isinstance(value, SIMPLE[:5])]

    def measured():
        gc.collect()
        references = sum(map(sys.getrefcount, shared))
        return {"references": references, "idle": bcast.memory_info().idle, **fault.counters()}

    return measured


def strike(function, make, fault, n, on, report, measured):
    """Cause one fault, repeatedly if memory might leak; return whether it happened."""
    report("at", n, on)
    for i in range(TRIES):
        before = measured()
        findings, has_come = faulty(function, make, fault, n, on)
        findings += [f"the next call: {finding}" for finding in undisturbed(function, make)]
        if findings:
            report("bad", n, on, findings)
            return has_come
        after = measured()
        grown = {name: after[name] - value for name, value in before.items() if after[name] != value}
        if not has_come or not any(grown[name] > 0 or name == "references" for name in grown):
            return has_come
        if i == FEW_TRIES and "references" in grown:
            break  # while there are some left
    report("bad", n, on, [f"{name} {change:+} each time" for name, change in grown.items()])
    return has_come


def strike_warm(function, row, fault, every, begin, report):
    """Make each event from `begin` on fail in a warm call."""
    make = prepared(row)
    measured = measures(fault)
    report("at", *begin)
    for _ in range(SETTLING):
        findings = undisturbed(function, make)
        if findings:
            report("bad", *begin, [f"undisturbed: {finding}" for finding in findings])
            return
        faulty(function, make, fault, MOST, False)
    n, on = begin
    while strike(function, make, fault, n, on, report, measured) or on:
        if not on:
            report("point")
        n, on = following(n, on, fault, every)
    bcast.set_idle_limit(0)
    if bcast.memory_info().idle:
        report("bad", n, False, [f"{bcast.memory_info().idle} bytes stay idle"])


def strike_cold(function, row, fault, _, place, report):
    """Make one event fail in the first call of the process."""
    make, (n, on) = prepared(row), place
    report("at", n, on)
    findings, has_come = faulty(function, make, fault, n, on)
    findings += [f"the next call: {finding}" for finding in undisturbed(function, make)]
    if findings:
        report("bad", n, on, findings)
    if has_come and not on:
        report("point")


def following(n, on, fault, every):
    """Return what goes wrong next: after an allocation alone, that one and all after it."""
    return (n, True) if not on and fault.clean is MemoryError else (n + every, False)


def in_child(work, patience):
    """Call `work` with a function that reports in a forked process; return all it says, and signs of its end."""
    reader, writer = os.pipe()
    with tempfile.TemporaryFile() as messages:
        process = os.fork()
        if process == 0:
            os.dup2(messages.fileno(), 2)
            run(work, functools.partial(tell, writer))
        os.close(writer)
        said, hangs = heard(reader, process, patience)
        os.close(reader)
        code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        messages.seek(0)
        text = messages.read().decode(errors="replace").strip()[:1000]
    place = next((words[1:] for words in reversed(said) if words[0] == "at"), [0, False])
    if hangs:
        said.append(["bad", *place, ["hangs"]])
    elif code or text:
        end = f"died of {signal.Signals(-code).name if code < 0 else f'exit {code}'}" if code else "wrote"
        said.append(["bad", *place, [f"{end}: {text}"]])
    if hangs or code < 0:
        said.append(["died"])
    return said


def run(work, report):
    place = [0, False]
    status = 1

    def report_and_note(*words):
        if words[0] == "at":
            place[:] = words[1:]
        report(*words)

    def unraisable(event):
        report("bad", *place, [f"swallowed: {event.exc_value!r} in {event.object!r:.80}"])

    sys.unraisablehook = unraisable
    try:
        work(report_and_note)
        status = 0
    except BaseException as error:
        report("bad", *place, ["".join(traceback.format_exception(error))])
    finally:
        os._exit(status)


def heard(reader, process, patience):
    """Return all that comes out of a pipe, and whether the process at its other end had to be stopped."""
    text = b""
    while select.select([reader], [], [], patience)[0]:
        piece = os.read(reader, 1 << 16)
        if not piece:
            return [json.loads(line) for line in text.splitlines()], False
        text += piece
    os.kill(process, signal.SIGKILL)
    return [json.loads(line) for line in text.splitlines() if line.endswith(b"]")], True


# All rows


def prepared(row):
    """Set what a row says for this process; return how its calls are made."""
    if row.threads > 1:
        bcast.set_num_threads(row.threads)
    for module, limits in ((copies, row.copies), (reduce_run, row.sums), (apply_run, row.functions)):
        if limits:
            module.set_limits(**limits)
    return row.make


def drilled(function, row, fault, cold, every, first, patience):
    """Return the findings of processes for the faults of a row: for all, or for one in `every`, from `first` on."""
    said, place = [], (first, False)
    for _ in range(MOST):
        strike = strike_cold if cold else strike_warm
        heard_now = in_child(functools.partial(strike, function, row, fault, every, place), patience)
        said += heard_now
        has_died = ["died"] in heard_now
        if not has_died and not (cold and (place[1] or ["point"] in heard_now)):
            break
        if has_died:  # another process continues after that fault
            place = next((tuple(words[1:]) for words in reversed(heard_now) if words[0] == "at"), place)
            said += [] if place[1] else [["point"]]
        place = following(*place, fault, every)
    return said


def main(fault, cold, every, rows, planted, patience):
    """Drill rows, each a function's name and a kind of call; return how many faults came, and what was wrong."""
    fault = FAULTS[fault]()
    points, bad = 0, []
    for name, kind in rows:
        function, calls = (getattr(_planted, name), _planted.CALLS) if planted else (getattr(bcast, name), CALLS)
        row = calls[name][kind]
        first = zlib.crc32(f"{name}, {kind}".encode()) % every
        said = drilled(function, row if isinstance(row, Row) else Row(row), fault, cold, every, first, patience)
        points += said.count(["point"])
        bad += [[name, kind, *words[1:]] for words in said if words[0] == "bad"]
    return {"points": points, "bad": bad}


if __name__ == "__main__":
    faulthandler.enable()
    warnings.simplefilter("ignore")  # of imaginary parts that are discarded
    gc.collect()
    gc.freeze()  # what comes later is collected in no time
    gc.disable()
    print(json.dumps(main(**json.loads(sys.argv[1]))))
