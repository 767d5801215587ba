"""Calls in which an allocation fails or an interrupt comes: a clean exception or a right result, and nothing half-done.

`_calls.py` has the calls, `_faults.py` what is done to them, `fault_shim.c` makes malloc fail.
"""

import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import _faults
import _planted
import pytest
from _calls import CALLS, Row

import bcast

HERE = Path(__file__).parent
POINTS = 1400  # allocations to fail in all calls together, at least
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="a process for each fault is forked")


@pytest.fixture(scope="module")
def shim(tmp_path_factory):
    """The library that makes the C library's allocations fail where it is preloaded."""
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if platform.libc_ver()[0] != "glibc" or compiler is None:
        pytest.skip("needs glibc and a compiler")
    if "LD_PRELOAD" in os.environ:
        pytest.skip("another library is preloaded")
    library = tmp_path_factory.mktemp("shim") / "shim.so"
    command = [compiler, "-std=c11", "-O2", "-shared", "-fPIC", str(HERE / "fault_shim.c"), "-o", str(library), "-ldl"]
    subprocess.run(command, check=True)
    return str(library)


@pytest.fixture
def drill(request):
    def run(fault, cold=False, every=1, names=None, kinds="", planted=False, patience=60, **environment):
        if fault == "python":
            pytest.importorskip("_testcapi")
        if fault == "malloc":
            environment["LD_PRELOAD"] = request.getfixturevalue("shim")
        options = {"fault": fault, "cold": cold, "every": every, "names": names or list(CALLS), "kinds": kinds}
        options |= {"planted": planted, "patience": patience}
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("BCAST_")}
        done = subprocess.run(
            [sys.executable, str(HERE / "_faults.py"), json.dumps(options)],
            env=inherited | {"OPENBLAS_NUM_THREADS": "1"} | environment,  # threads and forks do not mix
            capture_output=True,
            text=True,
            timeout=3600,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        report = json.loads(done.stdout)
        return sum(report["points"].values()), report["bad"]

    def run_twice(*args, names=None, **kwargs):
        """Have what grew in one interpreter grow in another, with other hashes and free lists, before it counts.

        With Python 3.12 and NumPy 2.5 one run in six finds a block too many each time, in another row every time.
        """
        points, bad = run(*args, names=names, **kwargs)
        grown = {each[0] for each in bad if grows(each)}
        again = run(*args, names=sorted(grown), **kwargs)[1] if grown else []
        rows = [each[:2] for each in again if grows(each)]
        return points, [each for each in bad if not grows(each) or each[:2] in rows]

    return run_twice


def grows(found):
    """Tell whether all that was found is that something grows."""
    return all(finding.endswith(" each time") for finding in found[4])


def listed(bad):
    return "\n".join(f"{name}: {kind}: {n}{' and after' * on}: {findings}" for name, kind, n, on, findings in bad)


def test_every_public_function_is_called():
    """A new one needs a row in `_calls.py`."""
    assert sorted(CALLS) == sorted(bcast.__all__)
    assert all(CALLS.values())


# Which fault, whether in the first call of a process, how Python allocates, and how many faults there are at least.
# Each of Python's allocators has other ones; that for debugging finds memory that is freed twice or written to later.
ALLOCATIONS = {
    "Python's": ("python", False, {}, POINTS),
    "Python's, in a first call": ("python", True, {}, POINTS),
    "Python's, checked": ("python", False, {"PYTHONMALLOC": "debug"}, POINTS),
    "Python's, checked, in a first call": ("python", True, {"PYTHONMALLOC": "debug"}, POINTS),
    "malloc's": ("malloc", False, {}, 100),
    "malloc's, in a first call": ("malloc", True, {}, 100),
    "malloc's and Python's": ("malloc", False, {"PYTHONMALLOC": "malloc"}, POINTS),
    "malloc's and Python's, in a first call": ("malloc", True, {"PYTHONMALLOC": "malloc"}, POINTS),
}

# One fault in so many is for every run of the tests; the longer ones have eight times as many.
PART = {"Python's, checked": 40, "Python's, in a first call": 480, "malloc's": 24, "malloc's, in a first call": 112}


@pytest.mark.parametrize("long", [False, pytest.param(True, marks=pytest.mark.soak)], ids=["short", "soak"])
@pytest.mark.parametrize("name", PART)
def test_some_failing_allocations(drill, name, long):
    fault, cold, environment, least = ALLOCATIONS[name]
    every = PART[name] // (8 if long else 1)
    points, bad = drill(fault, cold, every, **environment)
    assert not bad, listed(bad)
    assert points >= least // every


@pytest.mark.drill
@pytest.mark.parametrize(("fault", "cold", "environment", "least"), ALLOCATIONS.values(), ids=ALLOCATIONS)
def test_all_failing_allocations(drill, fault, cold, environment, least):
    points, bad = drill(fault, cold, **environment)
    print(f"{points} allocations failed")
    assert not bad, listed(bad)
    assert points >= least


def test_every_allocation_of_conversions(drill):
    """Which are tried before `out` is written, or made whole."""
    points, bad = drill("python", names=["broadcast", "repeat", "tile"], kinds="another dtype")
    assert not bad, listed(bad)
    assert points >= 100


@pytest.mark.parametrize("every", [9, pytest.param(1, marks=pytest.mark.soak)])
def test_allocations_of_statistics_into_out(drill, every):
    """Which is written last, and whole."""
    points, bad = drill("python", every=every, names=["sum", "mean", "var", "std"], kinds="into `out`")
    assert not bad, listed(bad)
    assert points >= 100 // every


@pytest.mark.parametrize(
    ("cold", "every", "least"),
    [
        *[(False, 16, 10), (True, 160, 10)],
        *[pytest.param(*case, marks=pytest.mark.soak) for case in ((False, 4, 10), (True, 40, 10))],
        *[pytest.param(*case, marks=pytest.mark.drill) for case in ((False, 1, 500), (True, 1, 500))],
    ],
)
def test_interrupts_at_lines_of_python(drill, cold, every, least):
    points, bad = drill("interrupts", cold, every)
    assert not bad, listed(bad)
    assert points >= least


# What must be found in functions that do wrong, by which drill


LASTING = {"keeps_memory", "keeps_much_memory", "keeps_pages", "keeps_a_function"}  # in one process
PLANTED = {
    "Python's": ("python", False, 3, {"goes_on", "keeps_pages", "keeps_much_memory"}),
    "Python's, in a first call": ("python", True, 3, {"goes_on", *LASTING}),
    "malloc's": ("malloc", False, 1, {"goes_on"}),
    "lines": ("interrupts", False, 3, {"swallows", "keeps_pages", "keeps_much_memory"}),
}


@pytest.mark.parametrize(("fault", "cold", "every", "others"), PLANTED.values(), ids=PLANTED)
def test_what_goes_wrong_is_found(drill, fault, cold, every, others):
    names = [name for name in _planted.CALLS if name not in {*others, "hangs"}]
    _, bad = drill(fault, cold, every, planted=True, names=[*names, "does_nothing_wrong"])
    found = {name: [finding for each in bad if each[0] == name for finding in each[4]] for name in _planted.CALLS}
    assert found["does_nothing_wrong"] == []
    for name in names:
        for expected in _planted.CALLS[name]:
            assert any(expected in finding for finding in found[name]) == bool(expected), (name, found[name])


def test_what_numpy_releases_unasked_is_no_finding(monkeypatch):
    """At one place of a call with a subclass, that is; all that is said of other calls, or of two places, stays."""
    monkeypatch.setattr(_faults, "drilled", lambda *_: [])  # as if NumPy had no fault that shows
    rows = CALLS["elementwise"]
    said = [["bad", 9, False, ["-1 references to 5"]], ["point"], ["bad", 9, True, ["died of SIGSEGV: at 0"]]]
    twice = [*said, ["bad", 12, False, ["died of SIGABRT: at 0"]]]
    subclass, plain = (Row(rows[kind]) for kind in ("a ufunc of a subclass", "a ufunc"))
    assert _faults.not_numpys(said, subclass, None, False, 1) == [["point"]]
    assert _faults.not_numpys(twice, subclass, None, False, 1) == twice
    assert _faults.not_numpys(said, plain, None, False, 1) == said
    said.append(["bad", 9, False, ["a wrong result"]])
    assert _faults.not_numpys(said, subclass, None, False, 1)[1:] == said[-1:]


def test_what_hangs_is_found(drill):
    _, bad = drill("python", planted=True, names=["hangs"], patience=0.5)
    assert [each[2:] for each in bad] == [[0, False, ["hangs"]], [0, True, ["hangs"]]]
