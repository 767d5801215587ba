"""Competitors are timed by turns, each when the threads of the one before have come to rest."""

from collections.abc import Callable, Mapping
from time import perf_counter, process_time, sleep
from timeit import Timer
from typing import Any

__all__ = ["measure"]

ROUND = 2e-4  # seconds; what is faster is called several times a round
MAX_ROUNDS = 200
BREATH = 1e-3  # seconds; how long a look takes whether threads of the last turn are still busy
PATIENCE = 2e-2  # seconds; no turn waits longer for them


def measure(calls: Mapping[str, Callable[[], Any]], seconds: float) -> dict[str, list[float]]:
    """Time calls by turns, so that whatever else the machine does meets all of them alike.

    Parameters
    ----------
    calls : mapping of str to callable
        The competitors, already called once.
    seconds : float
        For all together; each call has its turn at least once.

    Returns
    -------
    dict of str to list of float
        Seconds of one call, a value for each round; their minimum is the one that other work disturbed least.
    """
    end = perf_counter() + seconds
    timers = {name: Timer(call) for name, call in calls.items()}
    turns = [(name, max(1, int(ROUND / timer.timeit(1)))) for name, timer in timers.items()]
    rounds: dict[str, list[float]] = {name: [] for name in calls}
    for played in range(MAX_ROUNDS):
        if played and perf_counter() > end:
            break
        for name, loops in turns:
            settle()
            calls[name]()  # untimed: then caches and heap are as this one leaves them, not as its neighbour did
            rounds[name].append(timers[name].timeit(loops) / loops)
        turns.reverse()
    return rounds


def settle() -> None:
    """Wait until no thread of this process is busy.

    The threads of OpenMP, and those of others, look out for more work for some milliseconds after they have done
    theirs, which takes a processor from whoever is timed next.
    """
    end = perf_counter() + PATIENCE
    busy = BREATH
    while busy > BREATH / 2 and perf_counter() < end:
        before = process_time()
        sleep(BREATH)
        busy = process_time() - before
