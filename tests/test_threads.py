"""The number of threads of a call: the rules one by one, in separate processes if a rule depends on the process."""

import os
import platform
import sys
from pathlib import Path

import numpy as np
import pytest
from _commands import python
from test_errors import refuse

import bcast

ROOT = Path(__file__).parents[1]
LINUX = sys.platform == "linux"
SETTINGS = ("OMP_", "GOMP_", "KMP_", "BCAST_")

needs_linux = pytest.mark.skipif(not LINUX, reason="counts threads in /proc")

# What every script begins with. The pool keeps the threads that it has started, so that they can be counted afterwards.
PRELUDE = """
import os, signal, sys, threading
import numpy as np

def tasks():
    return set(os.listdir("/proc/self/task")) if sys.platform == "linux" else set()

def added():
    "Broadcast to 64 MB; return how many threads the process has that it had not before."
    import bcast
    data, shape = np.arange(64, dtype=np.uint8)[:, None], (64, 2**20)
    before = tasks()
    result = bcast.broadcast_to(data, shape)
    assert np.array_equal(result, np.broadcast_to(data, shape))
    return len(tasks() - before)

def in_thread(call):
    result = []
    thread = threading.Thread(target=lambda: result.append(call()))
    thread.start()
    thread.join()
    return result[0]

def in_fork(call):
    "Make a call in a forked child, which ends after 30 s at the latest; return its status, 0 if all is well."
    pid = os.fork()
    if pid == 0:
        run_to_the_end(call)
    return os.waitpid(pid, 0)[1]

def run_to_the_end(call):
    signal.alarm(30)
    status = 1
    try:
        call()
        status = 0
    finally:
        os._exit(status)
"""


def with_only(environment):
    """Return this process's environment, of all variables about threads only those given."""
    return {name: value for name, value in os.environ.items() if not name.startswith(SETTINGS)} | environment


def run(script, **environment):
    done = python("-c", PRELUDE + script, env=with_only(environment))
    assert done.returncode == 0, done.stderr
    return done.stdout.split(), done.stderr


def expect(threads, printed):
    """Check what a script prints of `get_num_threads()` and `added()`."""
    assert printed == [str(threads), str(threads - 1 if LINUX else 0)]


@pytest.mark.parametrize(
    ("threads", "environment", "statement"),
    [
        (3, {"OMP_NUM_THREADS": "3"}, ""),
        (2, {"OMP_NUM_THREADS": "3", "BCAST_NUM_THREADS": "2"}, ""),
        (1, {"OMP_NUM_THREADS": "1", "BCAST_NUM_THREADS": "2"}, ""),
        (2, {"OMP_NUM_THREADS": "3", "OMP_THREAD_LIMIT": "2"}, "bcast.set_num_threads(10**30)"),
        (2, {"OMP_NUM_THREADS": "3", "BCAST_NUM_THREADS": "1"}, "bcast.set_num_threads(np.int8(2))"),
        (2, {"OMP_NUM_THREADS": "3", "BCAST_NUM_THREADS": "two"}, "threadpoolctl.threadpool_limits(2)"),
        (2, {"OMP_NUM_THREADS": "2"}, "with threadpoolctl.threadpool_limits(1): pass"),
    ],
)
def test_the_least_limit_binds_the_main_thread(threads, environment, statement):
    script = f"""
import bcast, threadpoolctl
before = tasks()
{statement}
print(bcast.get_num_threads(), added())
for task in tasks() - before:  # signals go to the threads of Python: another one would leave the main one asleep
    lines = open(f"/proc/self/task/{{task}}/status").read().splitlines()
    blocked = int(next(line for line in lines if line.startswith("SigBlk")).split()[1], 16)
    assert all(blocked >> number - 1 & 1 for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM))
print(in_thread(bcast.get_num_threads), in_thread(added))  # another thread works alone
"""
    printed, complaints = run(script, **environment)
    expect(threads, printed[:2])
    expect(1, printed[2:])
    assert complaints.count("RuntimeWarning: `BCAST_NUM_THREADS` expected ") == ("two" in environment.values())


def test_another_thread_asks_for_more():
    script = """
import bcast
def work():
    bcast.set_num_threads(2)
    return bcast.get_num_threads(), added()
print(*in_thread(work))
print(in_thread(bcast.get_num_threads))
bcast.set_num_threads(1)
print(in_thread(work)[0], bcast.get_num_threads())
"""
    printed, _ = run(script, OMP_NUM_THREADS="3")
    expect(2, printed[:2])
    assert printed[2:] == ["1", "2", "1"]  # what one thread sets holds for no other


def test_the_main_thread_is_known_where_another_one_imports():
    script = """
in_thread(lambda: __import__("bcast"))
import bcast
print(bcast.get_num_threads(), added())
print(in_thread(bcast.get_num_threads), in_thread(added))
"""
    printed, _ = run(script, OMP_NUM_THREADS="2")
    expect(2, printed[:2])
    expect(1, printed[2:])


# What a child must find: one thread, until it asks for more, and right results.
CHILD = """
def child():
    import bcast
    assert bcast.get_num_threads() == 1
    assert added() == 0
    bcast.set_num_threads(2)
    assert bcast.get_num_threads() == 2
    assert added() == (1 if sys.platform == "linux" else 0)
"""


# Forks by os, also of a child of a child; by multiprocessing; and by C code without Python's knowledge.
FORK = """
print(in_fork(child), in_fork(lambda: in_fork(child) and 1 / 0))
import ctypes, multiprocessing
process = multiprocessing.get_context("fork").Process(target=run_to_the_end, args=(child,))
process.start()
process.join()
pid = ctypes.PyDLL(None).fork()
if pid == 0:
    run_to_the_end(child)
print(process.exitcode, os.waitpid(pid, 0)[1])
import bcast
print(bcast.get_num_threads())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")
@pytest.mark.parametrize("before", ["", "import bcast", "added()"], ids=["not imported", "unused", "used"])
def test_a_child_works_on_one_thread_until_it_asks_for_more(before):
    """The pool's threads do not come along with a fork; a child has a pool of its own."""
    if not before and not LINUX:
        pytest.skip("only Linux tells a process that it was forked")
    printed, _ = run(before + CHILD + FORK, OMP_NUM_THREADS="2")
    assert printed == [*"0000", "2"]  # the parent does not change


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")
def test_a_child_of_another_thread_works_on_one_thread():
    script = f"import bcast\nbcast.set_num_threads(2)\nadded()\n{CHILD}\nprint(in_thread(lambda: in_fork(child)))"
    assert run(script, OMP_NUM_THREADS="2")[0] == ["0"]


def test_a_program_run_from_here_changes_nothing():
    """No fork is left behind where the child runs another program, here or there."""
    script = """
import bcast, subprocess
command = [sys.executable, "-c", "import bcast; print(bcast.get_num_threads())"]
print(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
print(subprocess.run(command, capture_output=True, text=True, check=True, close_fds=False).stdout)
print(bcast.get_num_threads(), added())
"""
    printed, _ = run(script, OMP_NUM_THREADS="2")
    assert printed[:2] == ["2"] * 2
    expect(2, printed[2:])


@needs_linux
@pytest.mark.parametrize("lack", ["memory", "threads"])
def test_without_room_for_threads_the_caller_does_all_the_work(lack):
    """The stack of a thread needs address space, and a user may have only a limited number of threads."""
    script = f"""
import resource, bcast
bcast.set_num_threads(3)
data, shape = np.arange(64, dtype=np.uint8)[:, None], (64, 2**18)
out = np.empty(shape, np.uint8)
if {lack!r} == "memory":
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 2**21, resource.RLIM_INFINITY))
elif os.getuid() == 0:
    os.setuid(54321)    # an unused user id
    resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
else:
    resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
before = tasks()
bcast.broadcast_to(data, shape, out=out)
total = bcast.unbroadcast(out, (64, 1), dtype=int)
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(len(tasks() - before), np.array_equal(out, np.broadcast_to(data, shape)), total[1, 0])
"""
    started, *rest = run(script, OMP_NUM_THREADS="3")[0]
    assert started == "0" or (lack == "memory" and platform.libc_ver()[0] != "glibc")  # the stacks of musl are short
    assert rest == ["True", "262144"]


@needs_linux
def test_threads_are_started_again_once_there_is_room():
    script = """
import resource, time, bcast
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
data, out = np.arange(64, dtype=np.uint8)[:, None], np.empty((64, 2**18), np.uint8)
before = tasks()
resource.setrlimit(resource.RLIMIT_AS, (used + 2**21, resource.RLIM_INFINITY))
bcast.broadcast_to(data, out.shape, out=out)
print(len(tasks() - before))
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
time.sleep(1.1)
bcast.broadcast_to(data, out.shape, out=out)
print(len(tasks() - before))
"""
    assert run(script, OMP_NUM_THREADS="2")[0] == ["0", "1"]


CPUS = len(os.sched_getaffinity(0)) if sys.platform == "linux" else 0


@pytest.mark.skipif(CPUS < 2, reason="needs two CPUs, and Linux, which tells what threads may have")
def test_a_helper_that_is_woken_is_kept_off_the_callers_cpu():
    script = """
import time, bcast
def allowed():
    return [os.sched_getaffinity(int(task)) for task in tasks() - before]
before, mine = tasks(), os.sched_getaffinity(0)
data, out = np.arange(64, dtype=np.uint8)[:, None], np.empty((64, 2**20), np.uint8)
end = time.monotonic() + 60
while not any(mine - cpus for cpus in allowed()) and time.monotonic() < end:
    time.sleep(0.01)
    bcast.broadcast_to(data, out.shape, out=out)
print(len(mine) - len(allowed()[0]), allowed()[0] <= mine)
"""
    assert run(script, OMP_NUM_THREADS="2")[0] == ["1", "True"]


def test_the_pool_is_known_to_threadpoolctl():
    script = """
import bcast, threadpoolctl
def pools():
    return [pool for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "bcast"]
print(len(pools()), pools()[0]["num_threads"])
with threadpoolctl.threadpool_limits(2, user_api="bcast"):
    print(pools()[0]["num_threads"], bcast.get_num_threads(), in_thread(lambda: pools()[0]["num_threads"]))
print(bcast.get_num_threads())
"""
    assert run(script, OMP_NUM_THREADS="3")[0] == ["1", "3", "2", "2", "3", "3"]


@pytest.mark.parametrize("n", [0, -1, True, np.True_, 2.0, "2", None], ids=repr)
def test_set_num_threads_refuses(n):
    before = bcast.get_num_threads()
    refuse(lambda: bcast.set_num_threads(n), ValueError if type(n) is int else TypeError, "n")
    assert bcast.get_num_threads() == before


def test_after_a_long_wait_calls_do_without_threads_for_a_while():
    script = """
from bcast import get_num_threads
from bcast._runtime.core import free_threads, note_loss, set_clock

now = 1000.0
set_clock(now)
note_loss(1e-4)
print(free_threads(), get_num_threads())
for times in 4, 8, 16, 32, 64, 128, 256, 256:   # each loss comes soon after the one before
    note_loss(0.5)
    set_clock(now + 0.5 * times - 1e-3)
    alone = free_threads()
    now += 0.5 * times + 1e-3
    set_clock(now)
    print(alone, free_threads(), get_num_threads())
now += 1000.0
set_clock(now)
note_loss(0.5)
set_clock(now + 2 - 1e-3)
alone = free_threads()
set_clock(now + 2 + 1e-3)
print(alone, free_threads())
"""
    words = run(script, OMP_NUM_THREADS="2")[0]
    assert words == ["2", "2", *["1", "2", "2"] * 8, "1", "2"]


def test_threads_are_woken_for_large_outputs_or_for_many():
    script = """
from bcast._runtime.core import free_threads, note_loss, recorded_shares, set_clock
now = 1000.0
def at(seconds, waking):
    set_clock(now + seconds)
    return free_threads(waking)
print(at(0, False), at(0, True))
set_clock(now + 0.1)
recorded_shares(1, 1)   # ends now, however long it took
print(at(0.10004, False), at(0.10006, False), at(0.2, True))    # the first follows closely
note_loss(0.0, True)    # they were woken in vain: for a moment, they are not woken again
print(at(0.20001, True), at(0.20015, True), at(0.2003, True))
"""
    assert run(script, OMP_NUM_THREADS="2")[0] == ["1", "2", "2", "1", "2", "1", "1", "2"]
