"""Competitors are timed by turns."""

from collections.abc import Callable, Mapping
from time import perf_counter
from timeit import Timer
from typing import Any

from bcast._benchmark.machine import settle

__all__ = ["measure"]

ROUND = 2e-4  # seconds; what is faster is called several times a round
TURN = 2e-3  # seconds; what is faster has several rounds a turn, up to MAX_ROUNDS
MAX_ROUNDS = 10
MAX_TURNS = 20
WARM_UP = 16e-3  # seconds; how long the threads of OpenMP look out for work, 300 000 times, where that takes longest


def measure(calls: Mapping[str, Callable[[], Any]], seconds: float, warming: float = WARM_UP) -> dict[str, list[float]]:
    """Time calls by turns, so that whatever else the machine does meets all of them alike.

    Each turn waits until the others' threads are asleep.

    Parameters
    ----------
    calls : mapping of str to callable
        The competitors, already called once.
    seconds : float
        For all together; each call has its turn at least once.
    warming : float
        Seconds of untimed calls at the start of each turn.

    Returns
    -------
    dict of str to list of float
        Seconds of one call, a value for each round; their minimum is the one that other work disturbed least.
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
    """Call what is due untimed, until caches, heap and threads are as it leaves them, not as its neighbour did.

    The threads of an OpenMP region look out for the next one for some milliseconds, busily, and would take a processor
    from whoever is timed next.
    """
    end = perf_counter() + seconds
    while True:
        call()
        if perf_counter() > end:
            break
