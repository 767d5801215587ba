"""The suites under benchmarks/ run, and saved runs are put together as they should."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import report
from machines import cpus
from runs import load

from bcast._benchmark.table import machine

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.mark.filterwarnings("default")
def test_each_suite_runs_and_is_reported(tmp_path):
    """A small part of each suite, run for real, read and drawn by the report."""
    for name in ("pytest_benchmark", "matplotlib"):
        pytest.importorskip(name)
    saved = tmp_path / "run.json"
    wanted = "4x3-uint8-fresh or random-3-07 or (tile and KB-float32-fresh and not 4 and not 6) or (numpy-add and none)"
    wanted += " or (row and MB-float32-kept) or (adjoint and eighteen and float32)"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", BENCHMARKS, "--threads=1", "--seed=3"]
    command += ["-k", f"({wanted}) and (bcast or numpy) and not 256", f"--benchmark-json={saved}"]
    # Under xdist, benchmarks do nothing: the tests may run there.
    alone = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XDIST")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=alone)
    assert done.returncode == 0, done.stdout + done.stderr
    run = load([saved])
    assert run.machine == machine(1)
    assert all(run.suites[suite] for suite in ("grid", "random", "scaling", "use", "adjoint", "numpy"))
    (cell,) = run.suites["adjoint"].values()
    assert cell.errors["bcast"] <= 0.5
    assert {key[3] for cells in run.suites.values() for key in cells} == {1}
    outputs = [f"--{name}={tmp_path / name}.svg" for name in ("markdown", "summary", "adjoint", "plot", "scaling")]
    report.main([str(saved), *outputs])
    assert all((tmp_path / each.rpartition("/")[2]).stat().st_size for each in outputs)


def test_suites_refuse_more_threads_than_there_are():
    pytest.importorskip("pytest_benchmark")
    command = [sys.executable, "-m", "pytest", "-q", BENCHMARKS, "--threads", str(cpus() + 1), "--collect-only"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert f"--threads expected 1 to {cpus()}" in done.stderr
