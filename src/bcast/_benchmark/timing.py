"""Timing by turns: each competitor runs for a moment, then the next."""

from collections.abc import Callable, Mapping
from time import perf_counter
from timeit import Timer
from typing import Any

from bcast._benchmark.machine import settle

__all__ = ["measure"]

ROUND = 2e-4  # seconds; a faster call is repeated within a round
TURN = 2e-3  # seconds; a faster round is repeated within a turn, up to MAX_ROUNDS times
MAX_ROUNDS = 10
MAX_TURNS = 20
WARM_UP = 16e-3  # seconds; threads of OpenMP may spin for up to this long, 300 000 times, before they sleep


def measure(calls: Mapping[str, Callable[[], Any]], seconds: float, warming: float = WARM_UP) -> dict[str, list[float]]:
    """Time calls by turns, so that other work on the machine affects all of them alike.

    Each turn waits until the threads of the other competitors sleep.

    Parameters
    ----------
    calls : mapping of str to callable
        The competitors, each of which was called once before.
    seconds : float
        The time for all calls together. Each call has at least one turn.
    warming : float
        How long to call without timing at the start of each turn, in seconds.

    Returns
    -------
    dict of str to list of float
        Seconds of one call, one value for each round. The minimum is the round that other work disturbed least.
    """
    end = perf_counter() + seconds
    timers = {name: Timer(call) for name, call in calls.items()}
    plans = []
    for name, timer in timers.items():
        once = timer.timeit(1)
        loops = max(1, int(ROUND / once))
        plans.append((name, loops, max(1, min(MAX_ROUNDS, int(TURN / (loops * once))))))
    rounds: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(MAX_TURNS):
        if turn and perf_counter() > end:
            break
        for name, loops, repeats in plans:
            settle()
            warm_up(calls[name], warming)
            rounds[name] += [taken / loops for taken in timers[name].repeat(repeats, loops)]
        plans.reverse()
    return rounds


def warm_up(call: Callable[[], Any], seconds: float) -> None:
    """Call without timing until caches, heap and threads are as this call leaves them, not as the previous one did.

    After a parallel region, the threads of OpenMP spin for some milliseconds. They would take a CPU from the competitor
    that is timed next.
    """
    end = perf_counter() + seconds
    while True:
        call()
        if perf_counter() > end:
            break
