"""Failing allocations and interrupts: calls raise a clean exception or return the right result, and leave no debris.

`_calls.py` has the calls, `_faults.py` injects the faults, and `fault_shim.c` makes malloc fail. These tests cover the
three cores, conversions, and the reuse of results' memory, to which all other public functions pass their arrays.
"""

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import _planted
import pytest
from _calls import CALLS

HERE = Path(__file__).parent
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="a process for each fault is forked")

COPIES, FUNCTIONS = ("broadcast", "repeat"), ("add", "chain", "elementwise", "sqrt", "where")
SUMS = ("unbroadcast", "unrepeat", "sum", "mean", "var", "std", "mean_std")
EXTREMES = ("max", "min", "minmax", "argmax", "argmin", "any", "all", "prod", "nanmax", "nanmin")
WITHOUT_NAN = ("nansum", "nanmean", "nanvar", "nanstd")
VECTORS = ("vecdot", "matvec", "cross", "norm", "stack")
REDUCTIONS = (*SUMS, *EXTREMES, *WITHOUT_NAN, *VECTORS)
MEMORY = ("memory_info", "release_memory", "set_idle_limit", "set_num_threads")
# Kinds of calls that NumPy makes by and large, or whose message it writes: it dies of some failing allocations.
NUMPYS = re.compile(
    "objects|strings|subclass|bounds and decimals|halves between bounds|long double|refused"
    "|products of complex|products that nothing|longer ones|NumPy's own"
)
ROWS = [
    [name, kind]
    for name in (*COPIES, *REDUCTIONS, *FUNCTIONS, *MEMORY)
    for kind in CALLS[name]
    if not NUMPYS.search(kind)
]
# Chains that reduce are plain Python from block to block, and so is what measures and stacks vectors. Where CPython
# finds no memory for a frame, or as it imports a module, it loses references, or dies: interrupts alone drill them.
DRILLED = [
    [name, kind] for name, kind in ROWS if name not in ("norm", "stack", "mean_std") and not kind.startswith("reduced")
]


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
def drill(shim):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("BCAST_")}
    environment |= {"LD_PRELOAD": shim, "PYTHONMALLOC": "malloc", "OPENBLAS_NUM_THREADS": "1"}  # threads hinder forks

    def run(rows, fault="allocations", cold=False, every=1, planted=False, patience=60):
        """Return how many faults came in some rows, and what was wrong."""
        options = {"fault": fault, "cold": cold, "every": every, "rows": rows, "planted": planted, "patience": patience}
        command = [sys.executable, str(HERE / "_faults.py"), json.dumps(options)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=3600, check=False)
        assert done.returncode == 0, done.stderr
        report = json.loads(done.stdout)
        return report["points"], report["bad"]

    def run_twice(rows, **options):
        """Report growth only if memory also grows in another interpreter, with other hashes and free lists."""
        points, bad = run(rows, **options)
        grown = [list(row) for row in {tuple(each[:2]) for each in bad if grows(each)}]
        again = [each[:2] for each in run(grown, **options)[1] if grows(each)] if grown else []
        return points, [each for each in bad if not grows(each) or each[:2] in again]

    return run_twice


def grows(found):
    """Return whether growth is the only finding."""
    return all(finding.endswith(" each time") for finding in found[4])


def listed(bad):
    return "\n".join(f"{name}: {kind}: {n}{' and after' * on}: {findings}" for name, kind, n, on, findings in bad)


# What goes wrong, whether in the first call of a process; one fault of how many for every run of the tests, how many in
# the longer ones and in the drill; and how many faults there are at least.
RUNS = {
    "allocations": ("allocations", False, (48, 6, 1), 2000),
    "allocations of a first call": ("allocations", True, (480, 80, 4), 2000),
    "lines of Python": ("interrupts", False, (16, 4, 1), 100),
}
LENGTHS = [pytest.param(i, id=("short", "soak", "drill")[i], marks=marks) for i, marks in enumerate(
    ((), pytest.mark.soak, pytest.mark.drill)
)]  # fmt: skip


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize(("fault", "cold", "parts", "least"), RUNS.values(), ids=RUNS)
def test_some_faults(drill, fault, cold, parts, least, length):
    every = parts[length]
    points, bad = drill(ROWS if fault == "interrupts" else DRILLED, fault=fault, cold=cold, every=every)
    assert not bad, listed(bad)
    assert points >= least // every


INTO_OUT = [
    [name, kind] for name, kind in DRILLED if "another dtype" in kind or (name in REDUCTIONS and "into `out`" in kind)
]


@pytest.mark.parametrize("every", [9, pytest.param(1, marks=pytest.mark.soak)])
def test_allocations_before_out_is_written(drill, every):
    """Conversions are tried before, or made whole; sums are written last."""
    points, bad = drill(INTO_OUT, every=every)
    assert not bad, listed(bad)
    assert points >= 300 // every


# What must be found in functions that do wrong, by which drill


LASTING = {"keeps_memory", "keeps_pages", "keeps_a_function"}  # in one process
PLANTED = {
    "allocations": ("allocations", False, 1, {"goes_on"}),
    "allocations of a first call": ("allocations", True, 1, {"goes_on", *LASTING}),
    "lines": ("interrupts", False, 1, {"swallows", "keeps_pages", "keeps_memory"}),
}


@pytest.mark.parametrize(("fault", "cold", "every", "others"), PLANTED.values(), ids=PLANTED)
def test_planted_bugs_are_found(drill, fault, cold, every, others):
    names = [name for name in _planted.CALLS if name not in {*others, "hangs"}]
    rows = [[name, kind] for name in names for kind in _planted.CALLS[name]]
    _, bad = drill(rows, fault=fault, cold=cold, every=every, planted=True)
    found = {name: [finding for each in bad if each[0] == name for finding in each[4]] for name in _planted.CALLS}
    assert found["does_nothing_wrong"] == []
    for name, expected in rows:
        assert any(expected in finding for finding in found[name]) == bool(expected), (name, found[name])


def test_hanging_calls_are_found(drill):
    _, bad = drill([["hangs", "hangs"]], planted=True, patience=0.5)
    assert {tuple(each[4]) for each in bad} == {("hangs",)}
