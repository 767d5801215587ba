"""The suites under benchmarks/ run, and the report says what they measured."""

import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bcast._benchmark.machine import cpus, machine
from bcast._benchmark.peers import LIMIT
from bcast._benchmark.table import Cell
from bcast._benchmark.workloads import FLOATS

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"

CELLS = [
    Cell("row", "uint8", "fresh", 3000, {"bcast": 2e-6, "numpy": 20e-6, "torch": 1e-6, "jax": 4e-6, LIMIT: 1e-7}),
    Cell("row", "uint8", "warm", 3000, {"bcast": 2e-6, "numpy": 1e-6, LIMIT: 1e-6}),
    Cell("column", "float16", "fresh", 8000, {"bcast": 2e-6, "numpy": 1.92e-6, "jax": 1.9e-6}),
]


@pytest.fixture(scope="module")
def report():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCHMARKS)
        module = importlib.import_module("report")
        yield module
        for name in ("report", "runs", "plots"):
            del sys.modules[name]


def save(path, cells=CELLS, factor=1.0, suite="grid", threads=2, **changes):
    """Write cells as pytest-benchmark does."""
    benchmarks = [
        {
            "stats": {"min": seconds * (factor if name == "bcast" else 1)},
            "extra_info": {
                "suite": suite,
                "workload": cell.workload,
                "family": cell.workload.partition(",")[0] + "s",
                "innermost": 3 if cell.workload == "column" else 10,
                "dtype": cell.dtype,
                "state": cell.state,
                "threads": threads,
                "competitor": name,
                "bytes": cell.nbytes,
                "machine": "bcast 1; NumPy 2; a fast one",
                "peer": f"{name} 1.2" if name in {"torch", "jax"} else None,
                "error": cell.errors.get(name),
                **changes,
            },
        }
        for cell in cells
        for name, seconds in cell.times.items()
    ]
    path.write_text(json.dumps({"benchmarks": benchmarks}))
    return path


TOTALS = [
    "| cells | number | NumPy: mean | worst | best peer: mean | worst | limit: mean | worst |",
    "| --- | --: | --: | --: | --: | --: | --: | --: |",
    "| grid, fresh | 2 | 3.1 | 0.96 (column, float16) | **0.69** | **0.50** (row, uint8) | 5% | 5% (row, uint8) |",
    "| grid, fresh, innermost repeated axis of 2 to 4 | 1 | 0.96 | 0.96 (column, float16) | 0.95 "
    "| 0.95 (column, float16) |  |  |",
    "| grid, warm | 1 | **0.50** | **0.50** (row, uint8) |  |  | 50% | 50% (row, uint8) |",
]


def test_report_markdown(report, tmp_path):
    lines = report.markdown(report.load([save(tmp_path / "run.json")])).splitlines()
    assert lines[2:4] == ["    bcast 1; NumPy 2; a fast one", "    peers: torch 1.2; jax 1.2"]
    assert lines[7:] == [
        *TOTALS,
        "",
        "## Lost to NumPy: 1 of 3 cells",
        "",
        "- row, uint8, warm: **0.50** numpy",
        "",
        "## Lost to the best peer: 1 of 3 cells",
        "",
        "- row, uint8, fresh: **0.50** torch",
        "",
        "## The grid",
        "",
        "| workload | dtype | fresh: GB/s | fresh: limit | fresh: NumPy | fresh: best peer "
        "| warm: GB/s | warm: limit | warm: NumPy | warm: best peer |",
        "| --- | --- | --: | --: | --: | --: | --: | --: | --: | --: |",
        "| row | uint8 | 1.5 | 5% | 10.0 | **0.50** torch | 1.5 | 50% | **0.50** |  |",
        "| column | float16 | 4 |  | 0.96 | 0.95 jax |  |  |  |  |",
    ]


def test_report_of_several_runs_takes_the_fastest(report, tmp_path):
    runs = [save(tmp_path / "slow.json", factor=3.0), save(tmp_path / "fast.json", factor=0.25)]
    for order in (runs, runs[::-1]):
        text = report.markdown(report.load(order))
        assert "| row | uint8 | 6 | 20% | 40 | 2.0 torch | 6 | 200% | 2.0 |  |" in text
        assert text.count("None.") == 2


def test_report_of_random_shapes(report, tmp_path):
    runs = [save(tmp_path / "grid.json"), save(tmp_path / "random.json", [CELLS[1]], 0.5, "random")]
    run = report.load(runs)
    text = report.markdown(run)
    assert "| random shapes, warm | 1 | 1.00 | 1.00 (row, uint8) |  |  | 100% | 100% (row, uint8) |" in text
    assert "## Lost to NumPy: 1 of 4 cells" in text
    assert "## Random shapes" in text
    assert "| random shapes |  |  |  | 1.00 |  | 100% |" in report.summary(run)


def scaling_cells():
    for size, seconds in ((1 << 20, 1e-4), (1 << 26, 1e-2), (1 << 28, 5e-2)):
        for pattern in ("rank 12", "rank 3"):
            times = {"bcast": seconds * (1.2 if pattern == "rank 12" else 1), "numpy": 2 * seconds, LIMIT: seconds / 2}
            yield Cell(f"{pattern}, {size >> 20} MB", "float32", "warm", size, times)


def test_report_of_scaling(report, tmp_path):
    runs = [save(tmp_path / f"{n}.json", scaling_cells(), 1 / n, "scaling", n, family=None) for n in (1, 2)]
    for path in runs:  # the family of a pattern is its name
        saved = json.loads(path.read_text())
        for benchmark in saved["benchmarks"]:
            benchmark["extra_info"]["family"] = benchmark["extra_info"]["workload"].partition(",")[0]
        path.write_text(json.dumps(saved))
    text = report.markdown(report.load(runs))
    assert "| rank 12, 64 MB | warm | 2 | 11.2 | 83% | 3.3 |  |" in text
    assert "- rank 3, warm, threads: 1: from 64 MB on the dearest byte costs 1.25 of the cheapest" in text
    assert "- rank 12, warm, threads: 2: takes 1.20 of the time of rank 3, geometric mean" in text


def test_report_of_uses(report, tmp_path):
    kept = Cell("row, 40 MB", "float32", "kept", 40, {"bcast": 1e-3, "numpy": 3e-3, "jax": 2e-3})
    assert "| row, 40 MB | kept | 1 | 3.0 | 2.0 jax |" in report.markdown(
        report.load([save(tmp_path / "run.json", [kept], suite="use")])
    )


def test_report_of_drop_ins(report, tmp_path):
    cells = [
        Cell("tile", "uint8", "fresh", 3_000_000, {"bcast": 1e-4, "numpy": 3e-4, "opencv": 2e-4}),
        Cell("elementwise", "float32", "fresh", 40, {"bcast": 9e-7, "numpy": 5e-7}),
    ]
    runs = [save(tmp_path / f"{cell.workload}.json", [cell], suite="numpy", family=cell.workload) for cell in cells]
    lines = report.markdown(report.load(runs)).splitlines()
    assert "| tile | uint8 | 3 | 100 | 3.0 | 2.0 opencv |  |" in lines
    assert "| elementwise | float32 | 4e-05 | 0.9 |  |  | 400 |" in lines


def sum_cells():
    for nbytes, seconds in ((1 << 20, 1e-4), (1 << 22, 4e-4)):
        for dtype in FLOATS:
            times = {"bcast": seconds, "numpy": 8 * seconds, "torch": seconds * (1 << 20) / nbytes, LIMIT: seconds / 2}
            errors = {"bcast": 0.5, "numpy": 1234.5, "torch": 0.75}
            yield Cell(f"row, {nbytes >> 20} MB", dtype, "fresh", nbytes, times, errors)
    yield Cell("row, 4 MB", "float32", "warm", 1 << 22, {"bcast": 1e-4, "numpy": 1e-4}, {"bcast": 0.5, "numpy": 3e7})
    yield Cell("row, 4 MB", "int32", "fresh", 1 << 22, {"bcast": 1e-4, "numpy": 2e-4}, {"bcast": 0.0, "numpy": 0.0})


def test_report_of_the_adjoint(report, tmp_path):
    run = report.load([save(tmp_path / "run.json", sum_cells(), suite="adjoint")])
    lines = report.adjoint(run).splitlines()
    assert lines[2:4] == ["    bcast 1; NumPy 2; a fast one", "    peers: torch 1.2"]
    short = [line.replace("row, ", "") for line in lines[9:19]]
    assert short == [
        "| float16, float32, float64 | 7 | 5.9 | 1.00 (4 MB, float32) | **0.50** | **0.25** (4 MB, float16) "
        "| 50% | 50% (1 MB, float16) |",
        "| float16 | 2 | 8.0 | 8.0 (1 MB, float16) | **0.50** | **0.25** (4 MB, float16) | 50% | 50% (1 MB, float16) |",
        "| float32 | 3 | 4.0 | 1.00 (4 MB, float32) | **0.50** | **0.25** (4 MB, float32) "
        "| 50% | 50% (1 MB, float32) |",
        "| float64 | 2 | 8.0 | 8.0 (1 MB, float64) | **0.50** | **0.25** (4 MB, float64) | 50% | 50% (1 MB, float64) |",
        "| int32 | 1 | 2.0 | 2.0 (4 MB, int32) |  |  |  |  |",
        "| float16 from 4 MB on | 1 | 8.0 | 8.0 (4 MB, float16) | **0.25** | **0.25** (4 MB, float16) "
        "| 50% | 50% (4 MB, float16) |",
        "| float32 from 4 MB on | 2 | 2.8 | 1.00 (4 MB, float32) | **0.25** | **0.25** (4 MB, float32) "
        "| 50% | 50% (4 MB, float32) |",
        "| float64 from 4 MB on | 1 | 8.0 | 8.0 (4 MB, float64) | **0.25** | **0.25** (4 MB, float64) "
        "| 50% | 50% (4 MB, float64) |",
        "| warm | 1 | 1.00 | 1.00 (4 MB, float32) |  |  |  |  |",
        "",
    ]
    assert lines[19:24] == [
        "| largest error, ulp | float16 | float32 | float64 | int32 | complex64 |",
        "| --- | --: | --: | --: | --: | --: |",
        "| bcast | 0.5 | 0.5 | 0.5 | 0 |  |",
        "| numpy | 1.23e+03 (row, 1 MB) | 3.0e+07 (row, 4 MB) | 1.23e+03 (row, 1 MB) | 0 |  |",
        "| torch | 0.75 | 0.75 | 0.75 |  |  |",
    ]
    text = "\n".join(lines)
    assert "## Lost to the best peer: 3 of 8 cells\n\n- row, 4 MB, float16, fresh: **0.25** torch\n" in text
    assert "| rows | 8.0 | **0.25** to 1.00 (torch) | 50% | 1.00 to 8.0 | **0.25** to 1.00 (torch) | 50% |" in text
    assert "| row, 1 MB | float64 | fresh | 10.5 | 50% | 8.0 | 1.00 torch | 0.5 | 1.23e+03 | 0.75 |" in text


def test_report_of_several_runs_takes_the_largest_error(report, tmp_path):
    worse = [Cell("row, 4 MB", "int32", "fresh", 1 << 22, {"bcast": 1e-4, "numpy": 2e-4}, {"bcast": 2.0})]
    runs = [
        save(tmp_path / "run.json", sum_cells(), suite="adjoint"),
        save(tmp_path / "w.json", worse, suite="adjoint"),
    ]
    for order in (runs, runs[::-1]):
        assert "| bcast | 0.5 | 0.5 | 0.5 | 2 (row, 4 MB) |  |" in report.adjoint(report.load(order))


def test_report_summary(report, tmp_path):
    lines = report.summary(report.load([save(tmp_path / "run.json")])).splitlines()
    assert lines[:5] == [
        "| workload | fresh: NumPy | fresh: best peer | fresh: limit | warm: NumPy | warm: best peer | warm: limit |",
        "| --- | --: | --: | --: | --: | --: | --: |",
        "| rows | 10.0 | **0.50** (torch) | 5% | **0.50** |  | 50% |",
        "| columns | 0.96 | 0.95 (jax) |  |  |  |  |",
        "| geometric mean of all | 3.1 | **0.69** | 5% | **0.50** |  | 50% |",
    ]
    assert lines[-1] == "bcast 1; NumPy 2; a fast one<br>peers: torch 1.2; jax 1.2"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ([{"machine": "one"}, {"machine": "another"}], "expected a run of:\none\ngot one of:\nanother"),
        ([{"peer": "torch 1"}, {"peer": "torch 2"}], "expected torch 1, got torch 2"),
        ([], "expected times of both bcast and numpy"),
    ],
)
def test_report_refuses(report, tmp_path, changes, message):
    runs = [save(tmp_path / f"{i}.json", **change) for i, change in enumerate(changes)]
    with pytest.raises(ValueError, match=message):
        report.load(runs)


def test_report_is_read_again(report, tmp_path):
    """What is summed up of the tables is what the report says, so that pictures drawn from them are true."""
    run = report.read_report(BENCHMARKS / "results.md")
    said = (BENCHMARKS / "results.md").read_text(encoding="utf-8")
    assert "\n".join(report.totals(report.subsets(run))) in said
    cells = [cell for suite in ("grid", "random") for cell in run.suites[suite].values()]
    rivals = [cell for cell in cells if cell.best_peer]
    lost = [cell for cell in rivals if cell.ratio(cell.best_peer) < 0.945]  # what is rounded to 0.95 may be lost or not
    title = re.search(r"^## Lost to the best peer: (\d+) of (\d+) cells$", said, re.MULTILINE)
    number, among = map(int, title.groups())
    assert among == len(cells)
    assert len(lost) <= number <= sum(cell.ratio(cell.best_peer) < 0.955 for cell in rivals)
    lines = [f"- {each.workload}, {each.dtype}, {each.state}: **{each.ratio(each.best_peer):.2f}**" for each in lost]
    assert all(line in said for line in lines)
    assert sum(f"| {cell.workload} | {cell.state} | " in said for cell in run.suites["scaling"].values()) > 100
    (tmp_path / "empty.md").write_text("# A report\n\n    a machine\n    peers: none\n")
    with pytest.raises(ValueError, match="expected a report with tables"):
        report.read_report(tmp_path / "empty.md")


OPTIONS = ("markdown", "summary", "plot", "detail-plot", "scaling", "adjoint", "adjoint-plot")


@pytest.mark.filterwarnings("default")
def test_report_command(report, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    outputs = {name: tmp_path / f"{name}.svg" for name in OPTIONS}
    runs = [
        save(tmp_path / "run.json"),
        save(tmp_path / "sizes.json", scaling_cells(), suite="scaling"),
        save(tmp_path / "sums.json", list(sum_cells())[:1], suite="adjoint"),
    ]
    options = (text for name, path in outputs.items() for text in (f"--{name}", str(path)))
    report.main([*map(str, runs), *options])
    links = {"families of workloads": "plot.svg", "each workload and dtype": "detail-plot.svg"}
    links["sizes and threads"] = "scaling.svg"
    assert outputs["markdown"].read_text() == report.markdown(report.load(runs), links)
    assert "Pictures: [families of workloads](plot.svg), [each " in outputs["markdown"].read_text()
    assert outputs["summary"].read_text() == report.summary(report.load(runs))
    assert outputs["adjoint"].read_text() == report.adjoint(report.load(runs))
    assert all("<svg" in outputs[name].read_text() for name in ("plot", "detail-plot", "scaling", "adjoint-plot"))
    printed = capsys.readouterr().out.splitlines()
    assert printed[: 1 + len(TOTALS)] == ["10 cells", *TOTALS]
    assert [line.split(" | ")[0] for line in printed[1 + len(TOTALS) :]] == [
        "| float16, float32, float64",
        "| float16",
    ]
    with pytest.raises(SystemExit, match="2"):
        report.main([str(runs[0]), str(save(tmp_path / "other.json", machine="other"))])


@pytest.mark.filterwarnings("default")
def test_each_suite_runs_and_is_reported(report, tmp_path):
    """A small part of each suite, run for real, read by the report."""
    pytest.importorskip("pytest_benchmark")
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
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        BENCHMARKS,
        "--threads",
        "1",
        "--seed",
        "3",
    ]
    command += ["-k", f"({wanted}) and (bcast or numpy) and not 256", f"--benchmark-json={saved}"]
    # Under xdist, benchmarks do nothing: the tests may run there.
    alone = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XDIST")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=alone)
    assert done.returncode == 0, done.stdout + done.stderr
    run = report.load([saved])
    assert run.machine == machine(1)
    assert all(run.suites[suite] for suite in ("grid", "random", "scaling", "use", "adjoint", "numpy"))
    (cell,) = run.suites["adjoint"].values()
    assert cell.errors["bcast"] <= 0.5
    assert {key[3] for cells in run.suites.values() for key in cells} == {1}


def test_suites_refuse_more_threads_than_there_are():
    pytest.importorskip("pytest_benchmark")
    command = [sys.executable, "-m", "pytest", "-q", BENCHMARKS, "--threads", str(cpus() + 1), "--collect-only"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert f"--threads expected 1 to {cpus()}" in done.stderr
