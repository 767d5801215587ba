"""How many threads a call uses: the rules one by one, in processes of their own where the process is what matters."""

import math
import os
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

import bcast
from bcast._threads import OPENMP

ROOT = Path(__file__).parents[1]
LINUX = sys.platform == "linux"
SETTINGS = ("OMP_", "GOMP_", "KMP_", "BCAST_")

needs_openmp = pytest.mark.skipif(not OPENMP, reason="built without OpenMP")
needs_linux = pytest.mark.skipif(not LINUX, reason="counts threads in /proc")

# What every script begins with. OpenMP keeps the threads that it has started, so that they can be counted afterwards.
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
    """Run a script and return what it prints and what it complains of."""
    command = [sys.executable, "-c", PRELUDE + script]
    done = subprocess.run(command, env=with_only(environment), capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split(), done.stderr


def expect(threads, printed):
    """Check what a script prints of `get_num_threads()` and `added()`."""
    threads = threads if OPENMP else 1
    assert printed == [str(threads), str(threads - 1 if LINUX else 0)]


@pytest.mark.parametrize(
    ("threads", "environment", "statement"),
    [
        (2, {"OMP_NUM_THREADS": "2"}, ""),
        (3, {"OMP_NUM_THREADS": "3"}, ""),
        (1, {"OMP_NUM_THREADS": "1"}, ""),
        (2, {"OMP_NUM_THREADS": "3", "BCAST_NUM_THREADS": "2"}, ""),
        (1, {"OMP_NUM_THREADS": "2", "BCAST_NUM_THREADS": "1"}, ""),
        (1, {"OMP_NUM_THREADS": "1", "BCAST_NUM_THREADS": "2"}, ""),
        (2, {"OMP_NUM_THREADS": "3", "OMP_THREAD_LIMIT": "2"}, ""),
        (1, {"OMP_NUM_THREADS": "2"}, "bcast.set_num_threads(1)"),
        (2, {"OMP_NUM_THREADS": "3"}, "bcast.set_num_threads(np.int8(2))"),
        (2, {"OMP_NUM_THREADS": "2"}, "bcast.set_num_threads(10**30)"),
        (1, {"OMP_NUM_THREADS": "1"}, "bcast.set_num_threads(2)"),
        (2, {"OMP_NUM_THREADS": "2", "BCAST_NUM_THREADS": "1"}, "bcast.set_num_threads(2)"),
        (1, {"OMP_NUM_THREADS": "2"}, "threadpoolctl.threadpool_limits(1)"),
        (2, {"OMP_NUM_THREADS": "3"}, "threadpoolctl.threadpool_limits(2)"),
        (2, {"OMP_NUM_THREADS": "2"}, "with threadpoolctl.threadpool_limits(1): pass"),
    ],
)
def test_the_least_limit_binds_the_main_thread(threads, environment, statement):
    script = f"import bcast, threadpoolctl\n{statement}\nprint(bcast.get_num_threads(), added())"
    printed, complaints = run(script, **environment)
    expect(threads, printed)
    assert complaints == ""


@pytest.mark.parametrize("value", ["0", "-1", "two", "1.5"])
def test_a_bad_environment_variable_is_named_and_ignored(value):
    script = "import bcast; print(bcast.get_num_threads(), added())"
    printed, complaints = run(script, OMP_NUM_THREADS="2", BCAST_NUM_THREADS=value)
    expect(2, printed)
    assert complaints.count("RuntimeWarning") == 1
    assert f"`BCAST_NUM_THREADS` expected an integer of at least 1, got {value!r}; it is ignored" in complaints


@pytest.mark.parametrize("value", ["", " ", " 2 ", str(10**30)])
def test_an_environment_variable_without_effect(value):
    script = "import bcast; print(bcast.get_num_threads(), added())"
    printed, complaints = run(script, OMP_NUM_THREADS="2", BCAST_NUM_THREADS=value)
    expect(2, printed)
    assert complaints == ""


def test_another_thread_works_alone():
    script = "import bcast; print(in_thread(bcast.get_num_threads), in_thread(added))"
    for environment in ({}, {"BCAST_NUM_THREADS": "2"}):
        expect(1, run(script, OMP_NUM_THREADS="2", **environment)[0])


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
    assert printed[2:] == ["1", "2" if OPENMP else "1", "1"]  # what one thread sets holds for no other


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


# What a child must find: one thread, whatever it asks for, and right results.
CHILD = """
def child():
    import bcast
    assert bcast.get_num_threads() == 1
    bcast.set_num_threads(2)
    assert bcast.get_num_threads() == 1
    assert added() == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")
@pytest.mark.parametrize("used", [False, True], ids=["unused", "used"])
@pytest.mark.parametrize(
    "fork",
    [
        "print(in_fork(child), in_fork(lambda: in_fork(child) and 1 / 0))",  # and a child of a child
        """
import multiprocessing
process = multiprocessing.get_context("fork").Process(target=run_to_the_end, args=(child,))
process.start()
process.join()
print(process.exitcode, 0)
""",
        """
import ctypes
pid = ctypes.PyDLL(None).fork()  # of which Python knows nothing
if pid == 0:
    run_to_the_end(child)
print(os.waitpid(pid, 0)[1], 0)
""",
    ],
    ids=["os", "multiprocessing", "unknown to Python"],
)
def test_a_child_works_on_one_thread(fork, used):
    """OpenMP's threads do not come along with a fork; GCC's OpenMP would wait for them for ever."""
    script = f"import bcast\nif {used}: added()\n{CHILD}\n{fork}\nprint(bcast.get_num_threads())"
    printed, _ = run(script, OMP_NUM_THREADS="2")
    assert printed == ["0", "0", "2" if OPENMP else "1"]  # the parent goes on as before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")
def test_a_child_of_another_thread_works_on_one_thread():
    script = f"import bcast\nadded()\n{CHILD}\nprint(in_thread(lambda: in_fork(child)))"
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
    assert printed[:2] == ["2" if OPENMP else "1"] * 2
    expect(2, printed[2:])


@needs_linux
def test_a_child_that_imports_first_may_ask_for_threads():
    script = f"""
def child():
    import bcast
    assert bcast.get_num_threads() == 1
    assert added() == 0
    bcast.set_num_threads(2)
    assert bcast.get_num_threads() == {1 + OPENMP}
    assert added() == {int(OPENMP)}
print(in_fork(child))
"""
    for environment in ({}, {"BCAST_NUM_THREADS": "2"}):
        assert run(script, OMP_NUM_THREADS="2", **environment)[0] == ["0"]


@needs_openmp
@needs_linux
def test_a_child_that_imports_first_finds_the_openmp_of_others_used():
    """As torch's may be: the same library, if it was loaded first."""
    script = """
import bcast, threadpoolctl
print(*[library["filepath"] for library in threadpoolctl.threadpool_info() if library["prefix"] == "libgomp"])
"""
    libraries = run(script)[0]
    if not libraries:
        pytest.skip("not GCC's OpenMP")
    script = f"""
import ctypes
before = tasks()
free = ctypes.cast(ctypes.CDLL(None).free, ctypes.c_void_p)     # a function of one pointer: NULL will do
ctypes.CDLL({libraries[0]!r}).GOMP_parallel(free, None, 2, 0)
print(len(tasks() - before))
def child():
    import bcast
    assert bcast.get_num_threads() == 1
    assert added() == 0
print(in_fork(child))
"""
    assert run(script, OMP_NUM_THREADS="2")[0] == ["1", "0"]


@pytest.mark.parametrize(
    ("n", "error", "message"),
    [
        (0, ValueError, "`n` expected a number of threads of at least 1, got 0"),
        (-1, ValueError, "`n` expected a number of threads of at least 1, got -1"),
        (True, TypeError, "`n` expected an integer, got True"),
        (np.True_, TypeError, "`n` expected an integer, got np.True_"),
        (2.0, TypeError, "`n` expected an integer, got 2.0"),
        ("2", TypeError, "`n` expected an integer, got '2'"),
        (None, TypeError, "`n` expected an integer, got None"),
    ],
)
def test_set_num_threads_refuses(n, error, message):
    before = bcast.get_num_threads()
    with pytest.raises(error) as raised:
        bcast.set_num_threads(n)
    assert str(raised.value) == message
    assert bcast.get_num_threads() == before


@st.composite
def large(draw):
    """A shape of 256 KiB to 4 MiB in items of one to 16 bytes, and which of its axes are repeated."""
    itemsize = draw(st.sampled_from([1, 2, 3, 4, 8, 16]))
    lengths = draw(st.lists(st.one_of(st.integers(1, 9), st.integers(10, 3000)), min_size=1, max_size=6))
    while math.prod(lengths) * itemsize > 2**22:
        lengths.remove(max(lengths))
    total = math.prod(lengths) * itemsize
    lengths.insert(draw(st.integers(0, len(lengths))), draw(st.integers(2**18 // total + 1, 2**22 // total + 1)))
    repeated = draw(st.lists(st.booleans(), min_size=len(lengths), max_size=len(lengths)))
    return itemsize, tuple(lengths), repeated


@settings(max_examples=100, deadline=None, derandomize=True, database=None)
@given(large())
def test_results_are_the_same_on_any_number_of_threads(case):
    itemsize, shape, repeated = case
    source = [1 if again else length for length, again in zip(shape, repeated, strict=True)]
    size = math.prod(source) * itemsize
    data = (np.arange(size) * 37 % 251).astype(np.uint8).view(np.dtype((np.void, itemsize))).reshape(source)
    expected = np.broadcast_to(data, shape)

    def work():  # in a thread of its own, with which its settings end
        with threadpool_limits(3, user_api="openmp"):
            for n in (1, 2, 3):
                bcast.set_num_threads(n)
                assert bcast.get_num_threads() == (n if OPENMP else 1)
                np.testing.assert_array_equal(bcast.broadcast_to(data, shape), expected, strict=True)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()


def test_threads_that_each_use_threads():
    """Four at once, each with OpenMP threads of its own."""
    data, shape = np.arange(300, dtype=np.int32)[:, None], (300, 3000)
    expected = np.broadcast_to(data, shape)
    start = threading.Barrier(4, timeout=60)

    def work(n):
        bcast.set_num_threads(n)
        start.wait()
        return [np.array_equal(bcast.broadcast_to(data, shape), expected) for _ in range(10)]

    with ThreadPoolExecutor(4) as pool:
        assert all(all(results) for results in pool.map(work, [1, 2, 2, 3]))


@pytest.mark.drill
@pytest.mark.skipif(sys.platform == "win32", reason="compilers are told apart by a shell script")
def test_build_without_openmp(tmp_path):
    """The whole of it works on one thread; what is built is what was asked for and what the compiler can do."""
    pytest.importorskip("Cython")
    if not (compiler := shutil.which("cc")):
        pytest.skip("no compiler")
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("*.so", "*.c", "*.egg-info"))
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    without = tmp_path / "cc"
    refuse = 'case "$*" in *-fopenmp*) echo unknown option >&2; exit 1; esac'
    without.write_text(f'#!/bin/sh\n{refuse}\nexec {compiler} "$@"\n')
    without.chmod(0o755)

    def build(**environment):
        command = [sys.executable, "setup.py", "build_ext", "--inplace"]
        variables = with_only(environment)
        done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)
        assert "unknown option" not in done.stderr
        return done

    assert build(BCAST_OPENMP="0").returncode == 0
    says_no = "OpenMP: no, bcast will work on one thread"
    assert says_no in build(BCAST_OPENMP="0").stdout
    assert says_no in build(CC=str(without)).stdout
    refused = build(CC=str(without), BCAST_OPENMP="1")
    assert refused.returncode == 1
    assert "BCAST_OPENMP=1, but the compiler links no program with -fopenmp" in refused.stderr

    script = f"""
import bcast, bcast._threads
assert bcast.__file__.startswith({str(tmp_path)!r})
assert bcast._threads.OPENMP is False
bcast.set_num_threads(2)
print(bcast.get_num_threads(), added())
"""
    assert run(script, OMP_NUM_THREADS="2", PYTHONPATH=str(tmp_path / "src"))[0] == ["1", "0"]


@needs_openmp
def test_after_a_long_wait_calls_do_without_threads_for_a_while():
    script = """
import time
from bcast import get_num_threads
from bcast._threads import free_threads, note_wait

def alone():
    "Wait until threads are used again; return for how many of the 10 s that are noted they were not."
    note_wait(1e-4, 0.02)
    start = time.perf_counter()
    while free_threads() == 1:
        pass
    return time.perf_counter() - start

note_wait(1e-4, 1e-4)
note_wait(1.0, 0.5)
print(free_threads(), get_num_threads())
first, second, third = alone(), alone(), alone()
print(first >= 0.019, second >= 0.039, third >= 0.079)
for _ in range(3):
    note_wait(1e-4, 0.0)
note_wait(1e-4, 1000.0)
print(free_threads(), get_num_threads())
"""
    assert run(script, OMP_NUM_THREADS="2")[0] == ["2", "2", "True", "True", "True", "1", "2"]


@needs_openmp
def test_threads_are_woken_for_large_outputs_or_for_many():
    script = """
import time
from bcast._threads import free_threads
print(free_threads(False), free_threads(False), free_threads(True))
time.sleep(0.1)
print(free_threads(False))
time.sleep(0.1)
print(free_threads())
"""
    assert run(script, OMP_NUM_THREADS="2")[0] == ["1", "2", "2", "1", "2"]
