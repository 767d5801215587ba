"""The leaves of sums, each on its own, in C: against plain loops and each other, on emulated machines too."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from _ways import SUM_TARGETS

CHECK = Path(__file__).with_name("sum_check.c")
SOURCES = CHECK.parents[1] / "src/bcast"
HEADER = SOURCES / "_sum/simd/sum.h"

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="fences the buffers by mprotect"),
    pytest.mark.skipif(not HEADER.exists(), reason="needs the sources of bcast"),
]


def tool(*names):
    """Return the path of the first of some programs that is installed."""
    for path in map(shutil.which, names):
        if path:
            return path
    pytest.skip(f"needs {' or '.join(names)}")
    return None


def compiled(tmp_path, compiler, *options):
    """Compile `sum_check.c`; return the path of the program."""
    program = tmp_path / "sum_check"
    command = [compiler, "-std=c11", "-O1", *options, f"-I{SOURCES}", str(CHECK), "-o", str(program)]
    subprocess.run(command, check=True)
    return str(program)


def checked(*command):
    """Run `sum_check`; return the names of the targets whose leaves it found right."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.split()


def test_leaves_of_this_machine(tmp_path):
    assert checked(compiled(tmp_path, tool("cc", "gcc", "clang")), "300") == list(SUM_TARGETS)


def test_leaves_of_one_lane(tmp_path):
    """What compilers without vectors of any length get."""
    program = compiled(tmp_path, tool("cc", "gcc", "clang"), "-DBCAST_ONE_LANE", "-fno-strict-aliasing", "-w")
    assert checked(program, "300") == ["plain"]


def test_leaves_of_aarch64_emulated(tmp_path):
    qemu = tool("qemu-aarch64", "qemu-aarch64-static")
    program = compiled(tmp_path, tool("aarch64-linux-gnu-gcc"), "-static")
    assert checked(qemu, program, "30") == ["plain"]


def test_fast_math_is_refused():
    """It would drop the error terms of float64, and results would depend on the target."""
    command = [tool("cc", "gcc", "clang"), "-ffast-math", "-fsyntax-only", "-xc", str(HEADER)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode
    assert "-ffast-math" in done.stderr
