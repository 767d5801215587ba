"""Runs of `apply` that end at random moments: a program of its own, as it forks.

Run in an empty folder, as ``python _interrupted.py WAY COUNT SEED``; it prints one JSON object.
"""

import json
import os
import random
import re
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
    """Begin a run of some hundred pieces in a forked process; its stderr goes to the file `<out>.err`."""
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # the child must not meet them before it can tell
    pid = os.fork()
    if pid:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        return pid
    status = 130  # of an interrupt before the run, or after it
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(os.open(f"../{out}.err", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
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
    """Kill runs, three at a time; others beside them, and those that come after, remove what is left."""
    wrong, named = [], []
    outs = ["0.npy", "1.npy", "2.npy"]
    for _ in range(count // 2 + 1):
        pids = {out: start(out) for out in outs}
        time.sleep(source.uniform(0, 1.2 * seconds))
        for out in source.sample(outs, 2):
            os.kill(pids.pop(out), signal.SIGKILL)
        statuses = {out: finish(pid) for out, pid in pids.items()}
        os.wait(), os.wait()
        wrong += [f"{out}: status {status}" for out, status in statuses.items() if status]
        named += [line for out in outs for line in Path(f"../{out}.err").read_text().splitlines()]
    if finish(start()):
        wrong.append("the last run failed")
    named += Path("../out.npy.err").read_text().splitlines()
    if not set(listing()) <= {"in.npy", "out.npy", *outs}:
        wrong.append(f"left {listing()}")
    form = re.compile(r"bcast: removed \S+/\.bcast-[0-9a-f-]{33}\.tmp, left by a run that was killed")
    wrong += [line for line in named if not form.fullmatch(line)]
    return {"wrong": wrong, "removed": len(named)}


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in SIGNALS[1:]:
        signal.signal(number, signal.SIG_DFL)
    cli_apply.PIECE = 8000
    folder = Path("work")
    folder.mkdir()
    os.chdir(folder)
    np.save("in.npy", np.arange(1000.0))
    report = {"signals": signals, "kills": kills}[sys.argv[1]]
    print(json.dumps(report(int(sys.argv[2]), random.Random(sys.argv[3]), duration())))
