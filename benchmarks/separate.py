"""Calls in processes of their own, so that NumPy can be patched there before any package is imported.

Memory that a process has had stays with it, as in one that runs for long. Otherwise chance decides whether each large
array costs page faults: whether glibc returns its memory to the system depends on all that was freed before.

Chance also decides where arrays are in memory, which makes the same call up to 1.5 times as slow in one process as in
another. So each call has several processes, which take turns; the fastest round counts.
"""

import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from time import sleep
from typing import Any

from bcast._benchmark import timing

PROCESSES = 3  # of each call

REST_SECONDS = 20e-3  # before each turn: threads of OpenMP spin for 5 to 14 ms after their last work, then they sleep
WARM_UP_SECONDS = 16e-3  # calls before each turn that are not timed, but for one: threads are awake, and caches filled

WARM_HEAP = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 40)}  # glibc's; others know none of them

Make = Callable[..., Callable[[], Any]]  # makes a call; a function that another process can import


class Separate:
    """A call that other processes make, until nothing refers to it here.

    To call it returns the result, sent from one of them. They take turns, which they time: what is sent does not count.

    Parameters
    ----------
    make : function
        Makes the call in a process.
    *arguments
        What it is given.
    """

    def __init__(self, make: Make, *arguments: Any) -> None:
        self._processes = deque(start(make, arguments) for _ in range(PROCESSES))

    def __call__(self) -> Any:
        """Make the call once."""
        return self._answer("call")

    def turn(self) -> list[float]:
        """Make calls for a turn in the next process, and return the seconds of each round."""
        self._processes.rotate()
        seconds: list[float] = self._answer("turn")
        return seconds

    def _answer(self, request: str) -> Any:
        _, connection = self._processes[0]
        connection.send(request)
        answer = connection.recv()
        if isinstance(answer, Exception):
            raise answer
        return answer


def start(make: Make, arguments: tuple[Any, ...]) -> tuple[BaseProcess, Connection]:
    """Start a process that makes a call until the connection to it is closed."""
    spawn = get_context("spawn")
    ours, theirs = spawn.Pipe()
    with environment(WARM_HEAP):
        process = spawn.Process(target=serve, args=(theirs, make, arguments), daemon=True)
        process.start()
    theirs.close()
    return process, ours


@contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set variables that processes started meanwhile have."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def serve(connection: Connection, make: Make, arguments: tuple[Any, ...]) -> None:
    """Make a call, and do what the other process asks, until it has closed its end."""
    call = None
    while True:
        try:
            request = connection.recv()
        except EOFError:
            return
        try:
            call = call or make(*arguments)
            answer = call() if request == "call" else one_turn(call)
        except Exception as error:
            answer = error
        connection.send(answer)


def one_turn(call: Callable[[], Any]) -> list[float]:
    """Time a call as the harness does in each of its turns."""
    return timing.measure({"": call}, 0, WARM_UP_SECONDS, lambda: sleep(REST_SECONDS), 1)[""]
