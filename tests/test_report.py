"""Saved benchmark runs are merged correctly, and reports and pictures are made from them."""

import json
import os
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from bcast._benchmark.table import machine
from benchmarks import report
from benchmarks.__main__ import main as run_benchmarks
from benchmarks.harness import Measured, save
from benchmarks.runs import load, read_report

CHECKOUT = Path(__file__).parents[1]
CELL = Measured("grid", "3 -> 4x3", "tiny", "uint8", "fresh", 1, 12, 4, {"bcast": 1.0, "numpy": 2.0, "torch": 3.0})
SUM = Measured(
    "adjoint", "8,8 -> 8,1", "tiny", "float32", "fresh", 1, 256, 8, {"bcast": 1.0, "numpy": 2.0}, {"bcast": 0.25}
)


@pytest.fixture
def saved(tmp_path):
    """Return a function that saves cells as a run, and gives its path."""

    def write(name, *cells, where="a machine", **peers):
        path = tmp_path / name
        path.write_text(json.dumps({"machine": where, "peers": peers, "cells": [asdict(cell) for cell in cells]}))
        return path

    return write


@pytest.mark.filterwarnings("default")
def test_families_are_measured_and_reported(tmp_path):
    """A small part of each family that is published, measured for real, read and drawn by the report."""
    pytest.importorskip("matplotlib")
    paths = []
    for families, words in (
        (["grid"], "3 -> 4x3, uint8"),
        (["random"], "random-1-57"),
        (["scaling"], "KB"),
        (["use"], "row of 1000, 1 MB"),
        (["replaced"], "(4,)"),
        (["adjoint"], "8,8 -> 1,8"),
        (["lines"], "x.mean(1)"),
        (["reductions"], "any of tiny"),
        (["vectors"], "vecdot(x, y) of 3"),
    ):
        paths.append(tmp_path / f"{families[0]}.json")
        run_benchmarks([*families, "--only", words, "--rounds=1", "--threads=1", f"--json={paths[-1]}"])
    run = load(paths)
    assert run.machine == machine(1)
    assert {cell.threads for family in run.families for cell in run.cells(family)} == {1}
    assert all(0 <= cell.errors["bcast"] <= 0.5 for cell in run.cells("adjoint"))
    names = ("markdown", "summary", "adjoint", "lines", "reductions", "vectors", "plot", "scaling")
    outputs = [tmp_path / f"{name}.svg" for name in names]
    report.main([*map(str, paths), *(f"--{name}={path}" for name, path in zip(names, outputs, strict=True))])
    assert all(path.stat().st_size for path in outputs)
    markdown = outputs[0].read_text()
    assert all(
        title in markdown
        for title in ("## The grid", "## Random shapes", "## From 1 KB", "## Results in use", "## Replacements")
    )


def test_the_fastest_round_of_all_runs_counts_and_the_largest_error(saved):
    slower = replace(CELL, times={"bcast": 4.0, "numpy": 1.0, "jax": 5.0})
    worse = replace(SUM, errors={"bcast": 0.5})
    run = load([saved("a", CELL, SUM, torch="torch 1"), saved("b", slower, worse, jax="jax 2")])
    (cell,), (total,) = run.cells("grid"), run.cells("adjoint")
    assert cell.times == {"bcast": 1.0, "numpy": 1.0, "torch": 3.0, "jax": 5.0}
    assert total.errors == {"bcast": 0.5}
    assert run.head == ["a machine", "peers: torch 1; jax 2"]


def test_dtypes_of_a_name_are_adjacent(saved):
    cells = [replace(CELL, name=name, dtype=dtype) for dtype in ("uint8", "float32") for name in ("a", "b")]
    found = load([saved("a", *cells)]).cells("grid")
    assert [(cell.name, cell.dtype) for cell in found] == [(n, d) for n in ("a", "b") for d in ("uint8", "float32")]


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"where": "another machine"}, "b expected a run of:\na machine\ngot one of:\nanother machine"),
        ({"torch": "torch 2"}, "b expected torch 1, got torch 2"),
    ],
)
def test_runs_that_cannot_be_compared_are_refused(saved, other, message):
    paths = [saved("a", CELL, torch="torch 1"), saved("b", CELL, **other)]
    with pytest.raises(ValueError, match=message):
        load(paths)


def test_a_run_without_cells_is_refused(saved):
    with pytest.raises(ValueError, match="expected cells, got none"):
        load([saved("a")])


def test_saved_runs_are_read(tmp_path):
    save(tmp_path / "run.json", "a machine", [CELL, SUM])
    run = load([tmp_path / "run.json"])
    assert run.cells("grid") == [CELL]
    assert run.cells("adjoint") == [SUM]


def test_the_published_report_is_read():
    """Pictures are drawn from the figures in its tables."""
    run = read_report(CHECKOUT / "benchmarks" / "results.md")
    assert [len(run.families[family]) for family in ("grid", "random", "scaling")] == [346, 240, 138]
    cell = run.families["grid"]["3 -> 4x3", "float64", "warm", 0]
    assert cell.ratio("numpy") == pytest.approx(1.51)
    assert cell.best_peer == "numba"
    assert cell.bandwidth == pytest.approx(0.455e9)
    assert cell.ratio("limit") == pytest.approx(0.38)


def test_lost_cells_are_listed(saved):
    lost = replace(CELL, times={"bcast": 1.0, "numpy": 0.5, "torch": 0.9})
    lines = report.markdown(load([saved("a", lost, torch="torch 1")])).splitlines()
    assert "## Lost to NumPy: 1 of 1 cells" in lines
    assert "- 3 -> 4x3, uint8, fresh: **0.50** numpy" in lines
    assert "- 3 -> 4x3, uint8, fresh: **0.90** torch" in lines


def test_calls_of_packages_are_written_as_they_are_published(saved):
    """The rows and lines of field.md have the form that the report writes."""
    published = (CHECKOUT / "benchmarks" / "field.md").read_text(encoding="utf-8")
    times = {"numpy": 1.62e-3, "bcast": 1.62e-3 / 38, "bcast, patched": 1.62e-3 / 34}
    cell = Measured("packages", "einops: gray to RGB, 1080 x 1920, uint8", "einops", "", "", 2, 0, 0, times)
    written = report.packages(load([saved("a", cell, einops="einops 0.8.2")])).splitlines()
    assert written[0] == "a machine; einops 0.8.2."
    written.remove("With the patch alone, 1 of 1 calls take at most two thirds of their original time.")
    assert all(line in published.splitlines() for line in written[1:])


def test_lines_are_written_as_they_are_published(saved):
    published = (CHECKOUT / "benchmarks" / "lines.md").read_text(encoding="utf-8").splitlines()
    gains = {"n = 3": 3.1, "n = 32": 19, "n = 512": 197, "n = 8192": 559}
    cells = [
        Measured("lines", "np.stack([x] * n, -1)", "lines", "", state, 2, 0, 0, {"numpy": gain, "bcast": 1.0})
        for state, gain in gains.items()
    ]
    cells.append(
        Measured("pictures", "np.clip(hwc, 20, 200)", "pictures", "", "", 2, 0, 0, {"numpy": 4.4, "bcast": 1.0})
    )
    written = report.numpy_lines(load([saved("a", *cells)])).splitlines()
    assert published[2:5] == written[2:5]
    assert [line.split(" | ")[:2] for line in written[5:]] != []
    assert any(line.startswith("| `np.clip(hwc, 20, 200)` | ") and line.endswith(" | 4.4 |") for line in written)


@pytest.mark.filterwarnings("default")
def test_a_cell_runs_under_pytest_benchmark():
    pytest.importorskip("pytest_benchmark")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "benchmarks"]
    command += ["-k", "grid and 4x3 and uint8 and warm and (bcast or numpy)", "--benchmark-columns=min,rounds"]
    # Under xdist, benchmarks do nothing: the tests may run there.
    alone = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XDIST")}
    done = subprocess.run(
        command, cwd=CHECKOUT, capture_output=True, text=True, check=False, env=alone | {"BCAST_NUM_THREADS": "1"}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout
    assert "benchmark 'grid: 3 -> 4x3, uint8, warm': 2 tests" in done.stdout
