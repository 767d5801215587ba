"""The leaves of sums, each on its own, in C: against plain loops and each other, on emulated machines too."""

import subprocess

import pytest
from _leaf_checks import SOURCES, checked, compiled, needs_fences, tool

from bcast._runtime import cpu

LONGER = (100, pytest.mark.soak), (3000, pytest.mark.drill)


@needs_fences
@pytest.mark.parametrize("rounds", [40, *[pytest.param(n, marks=mark) for n, mark in LONGER]])
def test_leaves_of_this_machine(tmp_path, rounds):
    program = compiled("sum_check", tmp_path, tool("cc", "gcc", "clang"), "-Og")  # which compiles fast
    assert checked(program, str(rounds)) == list(cpu.TARGETS)


@needs_fences
@pytest.mark.soak
def test_leaves_of_one_lane(tmp_path):
    """What compilers without vectors of any length get."""
    options = "-O1", "-DBCAST_ONE_LANE", "-fno-strict-aliasing", "-w"
    assert checked(compiled("sum_check", tmp_path, tool("cc", "gcc", "clang"), *options), "300") == list(cpu.TARGETS)


@needs_fences
@pytest.mark.soak
def test_leaves_of_aarch64_emulated(tmp_path):
    qemu = tool("qemu-aarch64", "qemu-aarch64-static")
    program = compiled("sum_check", tmp_path, tool("aarch64-linux-gnu-gcc"), "-O1", "-static")
    assert checked(qemu, program, "30") == ["neon", "plain"]


def test_fast_math_is_refused():
    """It would drop the error terms of float64, and results would depend on the target."""
    header = SOURCES / "_sum/simd/sum.h"
    if not header.exists():
        pytest.skip("needs the sources of bcast")
    command = [tool("cc", "gcc", "clang"), "-ffast-math", "-fsyntax-only", "-xc", str(header)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode
    assert "-ffast-math" in done.stderr
