"""Runs of `apply` that end at random moments: a program of its own, as it forks.

Run in an empty folder, as ``python _interrupted.py WAY COUNT SEED``; it prints one JSON object.
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

from bcast.__main__ import main
from bcast._cli import apply as cli_apply

OLD = b"what was there before"
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
# Done; a signal came and the run cleaned up; a signal came before the run took hold of it, or after it let go.
STATUSES = {0, *(128 + number for number in SIGNALS), *(-number for number in SIGNALS)}


def start(out="out.npy"):
    """Begin a run of some hundred blocks in a forked process."""
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # the child must not meet them before it can tell
    pid = os.fork()
    if pid:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        return pid
    status = 130  # of an interrupt before the run, or after it
    try:
        for stream in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        status = main(["apply", "in.npy", out, "--shape", "300,1000"])
    except SystemExit as error:
        status = error.code
    except Exception:
        status = 99
    finally:
        os._exit(status)


def finish(pid):
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def duration():
    """Measure an undisturbed run, in seconds."""
    times = []
    for _ in range(5):
        Path("out.npy").write_bytes(OLD)
        begin = time.perf_counter()
        assert finish(start()) == 0
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def listing():
    return sorted(path.name for path in Path().iterdir())


def signals(count, source, seconds):
    """Send one to three signals to each run."""
    new = Path("out.npy").read_bytes()
    wrong, statuses = [], Counter()
    for _ in range(count):
        Path("out.npy").write_bytes(OLD)
        pid = start()
        time.sleep(source.uniform(0, 1.2 * seconds))
        for _ in range(source.choice([1, 2, 2, 3])):
            os.kill(pid, source.choice(SIGNALS))
            time.sleep(10 ** source.uniform(-5, -3))
        status = finish(pid)
        statuses[status] += 1
        if listing() != ["in.npy", "out.npy"]:
            wrong.append(f"status {status}: left {listing()}")
        if Path("out.npy").read_bytes() not in ((new,) if status == 0 else (OLD, new)):
            wrong.append(f"status {status}: out.npy is neither as before nor whole")
        if status not in STATUSES:
            wrong.append(f"status {status}")
        for path in Path().glob(".bcast-*"):
            path.unlink()
    return {"wrong": wrong, "statuses": statuses}


def kills(count, source, seconds):
    """Kill two of three runs at a time."""
    new = Path("out.npy").read_bytes()
    wrong = []
    outs = ["0.npy", "1.npy", "2.npy"]
    for _ in range(count // 2 + 1):
        for out in outs:
            Path(out).write_bytes(OLD)
        pids = {out: start(out) for out in outs}
        time.sleep(source.uniform(0, 1.2 * seconds))
        for out in source.sample(outs, 2):
            os.kill(pids.pop(out), signal.SIGKILL)
        wrong += [f"{out}: status {status}" for out, pid in pids.items() if (status := finish(pid))]
        os.wait(), os.wait()
        wrong += [f"{out} is neither as before nor whole" for out in outs if Path(out).read_bytes() not in (OLD, new)]
        wrong += [f"{out} is not whole" for out in pids if Path(out).read_bytes() != new]
    return {"wrong": wrong}


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in SIGNALS[1:]:
        signal.signal(number, signal.SIG_DFL)
    cli_apply.BLOCK_BYTES = 8000
    folder = Path("work")
    folder.mkdir()
    os.chdir(folder)
    np.save("in.npy", np.arange(1000.0))
    report = {"signals": signals, "kills": kills}[sys.argv[1]]
    print(json.dumps(report(int(sys.argv[2]), random.Random(sys.argv[3]), duration())))
