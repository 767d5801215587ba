"""Timing in turns: each competitor runs for a moment, then the next, so that other work affects all of them equally."""

from collections.abc import Callable, Mapping
from time import perf_counter
from timeit import Timer
from typing import Any

ROUND_SECONDS = 2e-4  # a faster call is repeated within a round, and a round of such calls is repeated within a turn


def measure(
    calls: Mapping[str, Callable[[], Any]],
    seconds: float,
    warming: float,
    rest: Callable[[], object] = bool,
    turns: int = 1,
) -> dict[str, list[float]]:
    """Time calls for `seconds` seconds together, but each call for at least `turns` turns. Callers have made each once.

    Each turn begins with `rest()`, which lets the threads of the previous call go to sleep, and with calls that are not
    timed, for `warming` seconds. The result has the seconds of one call for each round; other work disturbed the
    fastest round least.
    """
    end = perf_counter() + seconds
    timers = {name: Timer(call) for name, call in calls.items()}
    plans = []
    for name, timer in timers.items():
        once = timer.timeit(1)
        loops = max(1, int(ROUND_SECONDS / once))
        plans.append((name, loops, max(1, int(10 * ROUND_SECONDS / (loops * once)))))
    rounds: dict[str, list[float]] = {name: [] for name in calls}
    while True:
        for name, loops, repeats in plans:
            rest()
            warm = perf_counter() + warming  # caches, heap and threads are as this call leaves them, not the one before
            while perf_counter() < warm:
                calls[name]()
            rounds[name] += [taken / loops for taken in timers[name].repeat(repeats, loops)]
        plans.reverse()
        turns -= 1
        if turns <= 0 and perf_counter() > end:
            return rounds
