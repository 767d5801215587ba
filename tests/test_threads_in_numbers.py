"""Dozens of threads, forks beside them, exits during calls: nothing hangs or crashes, and all results are right."""

import os
import random
import threading
import time

import numpy as np
import pytest
from _commands import printed

import bcast
from bcast._runtime import core as runtime

PATIENCE = 120  # seconds until a process counts as hung

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")


def run(script):
    # From 3.12 on, Python warns of forks beside threads, which these tests are about.
    return printed("-X", "faulthandler", "-W", "ignore:This process:DeprecationWarning", "-c", script)


def call_together(callers, rounds):
    """Call from many threads while two more change every limit that there is; return how many results were wrong.

    Each thread has numbers of its own, and holds some results, whose memory no other one may get.
    """
    wrong, stop, start = [], threading.Event(), threading.Barrier(callers + 2, timeout=PATIENCE)

    def call(seed):
        rng, held = random.Random(seed), []
        data = np.arange(seed, seed + 256, dtype=np.int32)[:, None]
        start.wait()
        for _ in range(rounds):
            bcast.set_num_threads(rng.randint(1, 8))
            held = [bcast.broadcast(data, (256, rng.randint(200, 6000))), *held[:3]]  # up to 6 MB, by threads
            for result in held:
                sums = bcast.unbroadcast(result, data.shape)
                if (result != data).any() or not np.array_equal(sums, result.shape[1] * data):
                    wrong.append(seed)

    def change(seed):
        rng = random.Random(seed)
        start.wait()
        while not stop.is_set():
            runtime.set_pool_limit(rng.randint(1, 64))
            if rng.random() < 0.1:
                bcast.set_idle_limit(rng.choice((0, 1 << 20, 1 << 28)))
                bcast.release_memory()
            time.sleep(0.001)

    idle, limit = bcast.set_idle_limit(1 << 28), runtime.get_pool_limit()
    changing = [threading.Thread(target=change, args=(seed,)) for seed in range(2)]
    calling = [threading.Thread(target=call, args=(seed,)) for seed in range(callers)]
    for thread in changing + calling:
        thread.start()
    for thread in calling:
        thread.join(PATIENCE)
    stop.set()
    for thread in changing:
        thread.join(PATIENCE)
    bcast.set_idle_limit(idle)
    runtime.set_pool_limit(limit)
    assert not any(thread.is_alive() for thread in changing + calling)
    return len(wrong)


@pytest.mark.parametrize(("callers", "rounds"), [(12, 10), *[pytest.param(64, 4, marks=pytest.mark.drill)] * 20])
def test_threads_call_at_once_while_others_change_the_limits(callers, rounds):
    assert call_together(callers, rounds) == 0


ENDING = """
import os, sys, threading, time
import numpy as np, bcast
from bcast._runtime import core
core.set_pool_limit(8)
data, sums = np.arange(64, dtype=np.uint8)[:, None], np.ones((64, 1 << 19), np.float32)
def call():
    bcast.set_num_threads(8)
    while True:
        bcast.broadcast(data, (64, 1 << 19))
        bcast.unbroadcast(sums, (64, 1))
for _ in range({callers}):
    threading.Thread(target=call, daemon=True).start()
time.sleep({seconds})
{end}
"""


@pytest.mark.parametrize("seed", [*range(4), *[pytest.param(seed, marks=pytest.mark.drill) for seed in range(4, 44)]])
def test_a_process_may_end_in_mid_call(seed):
    rng = random.Random(seed)
    end = rng.choice(("", "sys.exit(0)", "os._exit(0)", "bcast.broadcast(data, (64, 1 << 19))"))
    run(ENDING.format(callers=rng.randint(1, 6), seconds=rng.uniform(0, 0.3), end=end))


FORKING = """
import os, signal, sys, threading
import numpy as np, bcast
from bcast._runtime import core
core.set_pool_limit(8)
data, shape = np.arange(64, dtype=np.uint8)[:, None], (64, 2**15)
stop = threading.Event()
def work():
    bcast.set_num_threads(4)
    while not stop.is_set():
        bcast.unbroadcast(bcast.broadcast(data, shape), data.shape)
workers = [threading.Thread(target=work) for _ in range(4)]
for worker in workers:
    worker.start()
failed = 0
for _ in range({forks}):
    pid = os.fork()
    if pid == 0:
        signal.alarm(30)
        status = 1
        try:
            for count in 1, 3:
                bcast.set_num_threads(count)
                status = not np.array_equal(bcast.broadcast(data, shape), np.broadcast_to(data, shape))
        finally:
            os._exit(status)
    failed += os.waitpid(pid, 0)[1] != 0
stop.set()
for worker in workers:
    worker.join()
print(failed)
"""


@needs_fork
@pytest.mark.parametrize("forks", [10, *[pytest.param(100, marks=pytest.mark.drill)] * 20])
def test_forks_with_busy_threads(forks):
    assert run(FORKING.format(forks=forks)) == "0\n"
