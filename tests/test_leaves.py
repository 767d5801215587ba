"""The kernels of each target: the choice, equal results on all targets, and checks in C, also on emulated machines."""

import mmap
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from _commands import printed, python
from _ways import THREADS, WAYS, written
from test_strided import items

import bcast
from bcast._runtime import core as runtime

LEAVES = runtime.TARGETS

# The data's shape, the output's, and the itemsize. What becomes of some depends on the length of the target's vectors.
CASES = {
    "one item": ((1,), (1,), 16),
    "one long item": ((9, 400), (9, 400), 1),
    "output too short for a shuffle table": ((5, 1), (5, 9), 1),
    "output as short as that of a shuffle table may be": ((8, 1), (8, 16), 1),
    "spans of whole vectors": ((700, 1), (700, 2), 1),
    "spans of less than a group of vectors": ((700, 1), (700, 3), 1),
    "last vector laid back": ((300, 1), (300, 7), 1),
    "last vector that cannot be laid back": ((300, 1), (300, 2), 11),
    "last of many vectors that cannot be laid back": ((500, 1), (500, 2), 7),
    "spans of many vectors": ((520, 1), (520, 17), 8),
    "spans of many vectors, more than a chunk": ((9000, 1), (9000, 17), 8),
    "short rest of a stretch": ((519, 1), (519, 16), 5),
    "windows as long as items": ((100, 1), (100, 2), 16),
    "data shorter than a window": ((3, 1), (3, 43), 1),
    "nested data shorter than a window": ((2, 1, 2, 1), (2, 5, 2, 9), 1),
    "nested axes within a window": ((50, 1, 20, 1), (50, 2, 20, 2), 1),
    "nested axes beyond a window": ((50, 1, 30, 1), (50, 2, 30, 2), 1),
    "many nested axes": ((2, 1, 3, 1) * 3, (2, 2, 3, 3) * 3, 1),
    "nested axes in a long one": ((500, 1, 2, 1, 3, 1, 2), (500, 2, 2, 3, 3, 2, 2), 1),
    "nested axes, all repeated": ((1, 7, 1), (999, 7, 3), 2),
    "shuffle table in blocks that are tiled": ((3, 1, 300, 1), (3, 4, 300, 3), 1),
    "shuffle table in blocks that are written anew": ((2, 1, 50_000, 1), (2, 3, 50_000, 3), 1),
    "shuffle table in blocks longer than a piece": ((3, 1, 20_000, 1), (3, 3, 20_000, 2), 1),
    "long rows in blocks longer than a piece": ((1, 2, 1, 5000), (2, 2, 10, 5000), 1),
    "run of a short item": ((90, 1), (90, 1000), 3),
    "few runs, each described whole": ((32, 1, 32, 1), (32, 2, 32, 2), 1),
    "few nested runs, each described whole": ((2, 1, 20, 1, 5, 1), (2, 1500, 20, 3, 5, 2), 3),
    "run of a short item, laid back at its end": ((90, 1), (90, 1001), 16),
    "items that are filled": ((90, 1), (90, 1024), 4),
    "items that are filled, to an end between vectors": ((90, 1), (90, 777), 1),
    "items that are filled, in a small output": ((20, 1), (20, 70), 1),
    "items that are filled, at places not of their size": ((1, 3, 1, 1), (2, 3, 3, 333), 2),
    "filled blocks that are written anew": ((1, 7, 1), (3, 7, 4000), 8),
    "run of a short row": ((40, 1, 5), (40, 300, 5), 1),
    "run of a nested block": ((30, 1, 3, 1), (30, 700, 3, 5), 3),
    "run of a nested block whose stretch is tiled": ((1, 5, 1), (300, 5, 2), 6),
    "runs of nested blocks whose stretch is tiled": ((2, 1, 2, 1, 3), (2, 9000, 2, 2, 3), 3),
    "run of all, of an item": ((1,), (5000,), 7),
    "item longer than a piece": ((1, 40_000), (3, 40_000), 1),
    "long items, more often than in places by turns": ((5, 1, 5000), (5, 6, 5000), 1),
    "items too long for rows": ((9, 1, 600), (9, 3, 600), 1),
    "rows in a run too long for rows": ((9, 1), (9, 300), 20),
    "lists of runs": ((50, 1, 3, 1), (50, 2, 3, 2), 64),
    "lists of runs, blocks that are repeated more often than listed": ((3, 1, 5, 1), (3, 100, 5, 3), 100),
    "lists of runs in many nested axes": ((2, 1) * 6, (2, 2) * 6, 72),
    "lists of runs in blocks that are written anew": ((3, 1, 90, 1, 2, 1), (3, 3, 90, 2, 2, 3), 128),
}
# Rows of 1 to 8 vectors of any leaf, full ones and others.
CASES |= {f"rows of {n} bytes": ((12, 1), (12, 3), n) for n in (17, 31, *range(32, 513, 16), *range(40, 540, 23))}


@pytest.mark.parametrize(("source", "shape", "itemsize"), CASES.values(), ids=CASES)
def test_each_leaf_writes_the_same(source, shape, itemsize):
    data = items(source, itemsize)
    expected = np.broadcast_to(data, shape)
    for way in WAYS:
        out = np.zeros(shape, data.dtype)
        with written(*way):
            bcast.broadcast(data, shape, out=out)
        np.testing.assert_array_equal(out, expected, str(way), strict=True)


@pytest.mark.parametrize("leaf", LEAVES)
@pytest.mark.parametrize(("itemsize", "times"), [(20, 3), (33, 2), (65, 2), (11, 2), (7, 2), (5, 2)])
def test_no_thread_writes_over_the_part_of_the_next(itemsize, times, leaf):
    """Long parts end just after a run, inside of a vector; other threads have begun the next part by then."""
    dtype, run = np.dtype((np.void, itemsize)), itemsize * times
    n = 6_000_000 // run
    data = np.random.default_rng(0).integers(0, 256, n * itemsize, np.uint8).view(dtype).reshape(n, 1)
    expected = np.broadcast_to(data, (n, times)).tobytes()
    room = np.zeros(n * run + 2 * mmap.PAGESIZE, np.uint8)
    for after in (0, 1, 9):
        cut = -(-n // THREADS) * run + after
        out = room[-(room.ctypes.data + cut) % mmap.PAGESIZE :][: n * run]
        with written(leaf, "threads"):
            bcast.broadcast(data, (n, times), out=out.view(dtype).reshape(n, times))
        assert out.tobytes() == expected, f"{after} bytes after a run"


@pytest.mark.parametrize("leaf", [*LEAVES, ""])
def test_the_environment_chooses_a_leaf(leaf):
    code = "from bcast._runtime.core import use_target; print(use_target('plain'), use_target('plain'))"
    assert printed("-c", code, BCAST_TARGET=leaf).split() == [leaf or LEAVES[0], "plain"]


def test_an_unknown_leaf_is_refused():
    done = python("-c", "import bcast", env=os.environ | {"BCAST_TARGET": " "})
    assert done.returncode == 1
    assert "\nValueError: `BCAST_TARGET` expected one of " in done.stderr
    for name in (" ", "avx", "AVX2", "plain "):
        with pytest.raises(ValueError, match=r"^`BCAST_TARGET` expected one of "):
            runtime.use_target(name)


# Each in C: copies against loops over bytes, sums against plain loops and each other.

HERE = Path(__file__).parent
SOURCES = HERE.parent / "src/bcast"

needs_fences = pytest.mark.skipif(sys.platform == "win32", reason="fences the buffers by mprotect")


def tool(*names):
    """Return the path of the first of some programs that is installed; by default of a compiler."""
    for path in map(shutil.which, names):
        if path:
            return path
    pytest.skip(f"needs {' or '.join(names)}")
    return None


KERNELS = {"leaf_check": "_copy/simd/kernels.cpp", "sum_check": "_reduce/simd/kernels.cpp"}  # which the check links


def compiled(name, tmp_path, compiler, *options):
    """Compile a check; link it as C, so that kernels in C++ need nothing of its library."""
    if not SOURCES.exists():
        pytest.skip("needs the sources of bcast")
    program, kernels = tmp_path / name, str(tmp_path / "kernels.o")
    subprocess.run([compiler, "-std=c++17", *options, "-c", str(SOURCES / KERNELS[name]), "-o", kernels], check=True)
    command = [compiler, "-std=c11", *options, f"-I{SOURCES}", str(HERE / f"{name}.c"), kernels]
    subprocess.run([*command, "-o", str(program), "-lm"], check=True)
    return str(program)


def checked(*command):
    """Run a check; return the names of the targets whose kernels it found right."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.split()


CC = "cc", "gcc", "clang"


def test_kernels_of_copies_call_only_c(tmp_path):
    """The unit is C++17, but it links nothing of that language's library, and no exceptions."""
    if not SOURCES.exists():
        pytest.skip("needs the sources of bcast")
    unit = str(tmp_path / "kernels.o")
    source = str(SOURCES / KERNELS["leaf_check"])
    subprocess.run([tool(*CC), "-std=c++17", "-O1", "-fno-stack-protector", "-c", source, "-o", unit], check=True)
    done = subprocess.run([tool("nm"), "-u", unit], capture_output=True, text=True, check=True)
    names = {word.lstrip("_") for word in done.stdout.split() if len(word) > 1}
    assert names <= {"memcpy", "memmove", "memset"}


@needs_fences
@pytest.mark.parametrize("rounds", [300, pytest.param(1000, marks=pytest.mark.soak)])
def test_copies_on_this_machine(tmp_path, rounds):
    assert checked(compiled("leaf_check", tmp_path, tool(*CC), "-O3"), str(rounds)) == list(LEAVES)


@needs_fences
@pytest.mark.parametrize(
    "rounds", [40, pytest.param(100, marks=pytest.mark.soak), pytest.param(3000, marks=pytest.mark.drill)]
)
def test_sums_on_this_machine(tmp_path, rounds):
    # -Og compiles in half the time, but inlines no kernel that is an argument of another one.
    assert checked(compiled("sum_check", tmp_path, tool(*CC), "-O1"), str(rounds)) == list(LEAVES)


@needs_fences
@pytest.mark.soak
def test_sums_of_one_lane(tmp_path):
    """The kernels for compilers without vectors of any length."""
    options = "-O1", "-DBCAST_ONE_LANE", "-w"
    assert checked(compiled("sum_check", tmp_path, tool(*CC), *options), "300") == list(LEAVES)


@needs_fences
@pytest.mark.soak
@pytest.mark.parametrize(("name", "level", "rounds"), [("leaf_check", "-O3", "300"), ("sum_check", "-O1", "30")])
def test_both_on_aarch64_emulated(tmp_path, name, level, rounds):
    qemu = tool("qemu-aarch64", "qemu-aarch64-static")
    program = compiled(name, tmp_path, tool("aarch64-linux-gnu-gcc"), level, "-static")
    assert checked(qemu, program, rounds) == ["neon", "plain"]


def test_fast_math_is_refused():
    """-ffast-math would drop the error terms of float64, and results would depend on the target."""
    header = SOURCES / "_reduce/simd/sum.h"
    if not header.exists():
        pytest.skip("needs the sources of bcast")
    command = [tool(*CC), "-ffast-math", "-fsyntax-only", "-xc", str(header)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode
    assert "-ffast-math" in done.stderr
