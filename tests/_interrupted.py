"""Runs of `apply` that signals end at random moments: a program of its own, as it forks.

Run in an empty folder, as ``python _interrupted.py COUNT SEED``; it prints one JSON object.
"""

import json
import os
import random
import signal
import statistics
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np

from bcast import _apply
from bcast.__main__ import main

OLD = b"what was there before"
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
# Done; a signal came and the run cleaned up; a signal came before the run took hold of it, or after it let go.
STATUSES = {0, *(128 + number for number in SIGNALS), *(-number for number in SIGNALS)}


def start():
    """Begin a run of some hundred pieces in a forked process."""
    pid = os.fork()
    if pid:
        return pid
    status = 99
    try:
        status = main(["apply", "in.npy", "out.npy", "--shape", "300,1000"])
    except SystemExit as error:
        status = error.code
    except KeyboardInterrupt:  # after the run, or before it
        status = 130
    finally:
        os._exit(status)


def finish(pid):
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def interrupt(source, seconds):
    """Send one to three signals to a run within its `seconds`; give its status."""
    pid = start()
    time.sleep(source.uniform(0, 1.2 * seconds))
    for _ in range(source.choice([1, 2, 2, 3])):
        os.kill(pid, source.choice(SIGNALS))
        time.sleep(10 ** source.uniform(-5, -3))
    return finish(pid)


def check(status, new):
    """Tell what is wrong after a run."""
    left = sorted(path.name for path in Path().iterdir())
    content = Path("out.npy").read_bytes()
    if left != ["in.npy", "out.npy"]:
        yield f"status {status}: left {left}"
    if content not in ((new,) if status == 0 else (OLD, new)):
        yield f"status {status}: out.npy is neither as before nor whole"
    if status not in STATUSES:
        yield f"status {status}"


def run(count, seed):
    """Interrupt `count` runs."""
    source = random.Random(seed)
    np.save("in.npy", np.arange(1000.0))
    times = []
    for _ in range(5):
        Path("out.npy").write_bytes(OLD)
        begin = time.perf_counter()
        assert finish(start()) == 0
        times.append(time.perf_counter() - begin)
    new = Path("out.npy").read_bytes()
    wrong, statuses = [], Counter()
    for _ in range(count):
        Path("out.npy").write_bytes(OLD)
        status = interrupt(source, statistics.median(times))
        statuses[status] += 1
        wrong += check(status, new)
        for path in Path().glob(".bcast-*"):
            path.unlink()
    return {"wrong": wrong, "statuses": statuses}


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in SIGNALS[1:]:
        signal.signal(number, signal.SIG_DFL)
    _apply.PIECE = 8000
    report = os.dup(1)
    for stream in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    os.write(report, json.dumps(run(int(sys.argv[1]), int(sys.argv[2]))).encode())
