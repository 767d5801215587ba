"""The suites under benchmarks/ run, and saved runs are put together as they should."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import report
from machines import cpus
from peers import LIMIT
from runs import Cell, load, read_report

from bcast._benchmark.workloads import machine

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"

CELLS = [
    Cell("row", "uint8", "fresh", 3000, {"bcast": 2e-6, "numpy": 20e-6, "torch": 1e-6, "jax": 4e-6, LIMIT: 1e-7}),
    Cell("row", "uint8", "warm", 3000, {"bcast": 2e-6, "numpy": 1e-6, LIMIT: 1e-6}),
    Cell("column", "float16", "fresh", 8000, {"bcast": 2e-6, "numpy": 1.92e-6, "jax": 1.9e-6}, {"bcast": 0.5}),
]


def save(path, factor=1.0, suite="grid", **changes):
    """Write `CELLS` as pytest-benchmark does, with the times of bcast multiplied by a factor."""
    benchmarks = [
        {
            "stats": {"min": seconds * (factor if name == "bcast" else 1)},
            "extra_info": {
                "suite": suite,
                "workload": cell.workload,
                "family": cell.workload + "s",
                "innermost": 3,
                "dtype": cell.dtype,
                "state": cell.state,
                "threads": 2,
                "competitor": name,
                "bytes": cell.nbytes,
                "machine": "bcast 1; NumPy 2; a fast one",
                "peer": f"{name} 1.2" if name in {"torch", "jax"} else None,
                "error": cell.errors.get(name),
                **changes,
            },
        }
        for cell in CELLS
        for name, seconds in cell.times.items()
    ]
    path.write_text(json.dumps({"benchmarks": benchmarks}))
    return path


def test_a_cell_knows_its_best_peer_and_to_whom_it_is_lost():
    assert [cell.best_peer for cell in CELLS] == ["torch", None, "jax"]
    assert [cell.lost_to for cell in CELLS] == [["torch"], ["numpy"], []]
    assert CELLS[0].bandwidth == pytest.approx(1.5e9)


def test_of_several_runs_the_fastest_round_and_the_largest_error_count(tmp_path):
    runs = [save(tmp_path / "slow.json", factor=3.0, error=2.0), save(tmp_path / "fast.json", factor=0.25)]
    for order in (runs, runs[::-1]):
        first, *_, last = load(order).suites["grid"].values()
        assert first.times == CELLS[0].times | {"bcast": 0.5e-6}
        assert last.errors == dict.fromkeys(CELLS[2].times, 2.0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ([{"machine": "one"}, {"machine": "another"}], "expected a run of:\none\ngot one of:\nanother"),
        ([{"peer": "torch 1"}, {"peer": "torch 2"}], "expected torch 1, got torch 2"),
        ([], "expected times of both bcast and numpy"),
    ],
)
def test_runs_that_cannot_be_compared_are_refused(tmp_path, changes, message):
    runs = [save(tmp_path / f"{i}.json", **change) for i, change in enumerate(changes)]
    with pytest.raises(ValueError, match=message):
        load(runs)


def test_report_is_read_again(tmp_path):
    """What is summed up of the tables is what the report says, so that pictures drawn from them are true."""
    run = read_report(BENCHMARKS / "results.md")
    said = (BENCHMARKS / "results.md").read_text(encoding="utf-8")
    assert "\n".join(report.totals(report.subsets(run))) in said
    cells = [cell for suite in ("grid", "random") for cell in run.suites[suite].values()]
    rivals = [cell for cell in cells if cell.best_peer]
    lost = [cell for cell in rivals if cell.ratio(cell.best_peer) < 0.945]  # what is rounded to 0.95 may be lost or not
    title = re.search(r"^## Lost to the best peer: (\d+) of (\d+) cells$", said, re.MULTILINE)
    number, among = map(int, title.groups())
    assert among == len(cells)
    assert len(lost) <= number <= sum(cell.ratio(cell.best_peer) < 0.955 for cell in rivals)
    assert len(run.suites["scaling"]) > 100
    (tmp_path / "empty.md").write_text("# A report\n\n    a machine\n    peers: none\n")
    with pytest.raises(ValueError, match="expected a report with tables"):
        read_report(tmp_path / "empty.md")


@pytest.mark.filterwarnings("default")
def test_each_suite_runs_and_is_reported(tmp_path):
    """A small part of each suite, run for real, read and drawn by the report."""
    for name in ("pytest_benchmark", "matplotlib"):
        pytest.importorskip(name)
    saved = tmp_path / "run.json"
    parts = [
        "4x3-uint8-fresh",
        "random-3-07",
        "tile and KB-float32-fresh and not 4 and not 6",
        "row and MB-float32-kept",
        "adjoint and eighteen and float32",
        "numpy-add and none",
    ]
    wanted = " or ".join(f"({part})" for part in parts)
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
