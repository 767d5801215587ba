"""The benchmark: competitors do what they say, the tables say what was measured."""

import dataclasses
import importlib.util
import json
import math
from pathlib import Path

import numpy as np
import pytest

import bcast
from bcast import _bench, _peers
from bcast._bench import Cell, head, measure, render, table
from bcast._peers import COMPETITORS, DTYPES, LARGEST, LIMIT, STATES, Task, Workload, competitors, grid, prepare

REPORT = Path(__file__).parents[1] / "benchmarks" / "report.py"


def in_small(workload):
    """The same workload with no axis longer than 5."""
    data, output = ([min(length, 5) for length in shape] for shape in (workload.data, workload.output))
    return dataclasses.replace(workload, data=tuple(data), output=tuple(output))


def small_workloads(dtype):
    """One workload for each different task."""
    workloads = {}
    for workload in map(in_small, grid(dtype)):
        workloads.setdefault((workload.name.split()[0], workload.data, workload.output), workload)
    return list(workloads.values())


@pytest.mark.filterwarnings("default")  # what the peers warn of among themselves is not ours to judge
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("name", [name for name in COMPETITORS if name != LIMIT])
def test_competitor_gives_numpys_result(name, state):
    if not COMPETITORS[name].installed():
        pytest.skip(f"{name} is not installed")
    cases = [(workload, "uint8") for workload in small_workloads("uint8")]
    cases += [(workload, dtype) for dtype in DTYPES[1:] for workload in small_workloads(dtype)[:4]]
    for workload, dtype in cases:
        if COMPETITORS[name].does(workload, dtype, state):
            data = (np.arange(math.prod(workload.data)) + 1).astype(dtype).reshape(workload.data)
            out = np.zeros(workload.output, dtype) if state == "warm" else None
            task = Task(workload, data, out)
            result = COMPETITORS[name].call(task)()
            expected = np.broadcast_to(data.reshape(workload.source), workload.output)
            np.testing.assert_array_equal(result if out is None else out, expected, strict=True, err_msg=str(workload))


@pytest.mark.parametrize("state", STATES)
def test_real_shapes(state):
    for dtype in DTYPES:
        for workload in grid(dtype):
            if workload.nbytes(dtype) <= 1_000_000:
                calls = prepare(workload, dtype, state, ["bcast", "numpy", LIMIT])
                assert list(calls) == ["bcast", "numpy", LIMIT]


@pytest.mark.parametrize("state", STATES)
def test_a_wrong_competitor_is_found_out(state, monkeypatch):
    wrong = dataclasses.replace(COMPETITORS["numpy"], call=lambda task: lambda: np.ones((4, 3), task.data.dtype))
    monkeypatch.setitem(COMPETITORS, "wrong", wrong)
    with pytest.raises(AssertionError, match=f"wrong is wrong in '3 -> 4x3', float32, {state}"):
        prepare(next(grid("float32")), "float32", state, ["numpy", "wrong"])


@pytest.mark.parametrize("dtype", DTYPES)
def test_grid(dtype):
    workloads = list(grid(dtype))
    names = [workload.name for workload in workloads]
    assert len(set(names)) == len(names)
    for workload in workloads:
        if workload.name.startswith(("row", "column")):
            assert workload.nbytes(dtype) <= LARGEST
    for n in (3, 4, 100, 1000):
        assert f"row of {n} x 1e4" in names
        assert f"column of 1e4 x {n}" in names
    assert ("row of 100 x 1e6" in names) == (dtype in {"uint8", "float16"})
    scalars = [workload for workload in workloads if workload.name.endswith("bytes")]
    assert [round(workload.nbytes(dtype), -1) for workload in scalars] == pytest.approx([10**3, 10**6, 10**8], rel=0.02)


def test_names_of_the_table_are_in_the_grid():
    assert {workload.name for workload in grid("uint8")} >= {*_bench.REPRESENTATIVE, *_bench.SHORT}


@pytest.mark.parametrize(
    ("data", "output", "axes", "innermost"),
    [
        ((3,), (4, 3), None, 4),  # rows
        ((5, 1), (5, 4), None, 4),  # columns
        ((), (2, 3), None, 6),  # neighbours merge
        ((3, 1, 1), (3, 2, 5), None, 10),
        ((5, 6), (5, 6, 3), (0, 1), 3),
        ((2, 1, 4, 1, 3), (2, 7, 4, 9, 3), None, 9),
        ((3, 1, 1), (3, 5, 1), None, 5),  # an axis of length 1 is none
        ((1, 1, 3), (5, 1, 3), None, 5),
        ((3,), (3,), None, 1),
    ],
)
def test_innermost(data, output, axes, innermost):
    assert Workload("", "", data, output, axes).innermost == innermost


def test_competitors_that_cannot_are_left_out(monkeypatch):
    everywhere = {name: dataclasses.replace(each, modules=()) for name, each in COMPETITORS.items()}
    monkeypatch.setattr(_peers, "COMPETITORS", everywhere)
    tiny = next(grid("uint8"))
    assert competitors(tiny, "uint8", "fresh") == ["bcast", "numpy", "torch", "jax", "onnxruntime", "openvino", LIMIT]
    assert competitors(tiny, "complex128", "warm") == ["bcast", "numpy", "torch", LIMIT]
    everywhere["torch"] = dataclasses.replace(everywhere["torch"], modules=("no_such_module",))
    assert competitors(tiny, "complex128", "warm") == ["bcast", "numpy", LIMIT]


def test_measure_takes_turns(monkeypatch):
    monkeypatch.setattr(_bench, "ROUND", 0.0)
    played = []
    rounds = measure({name: lambda name=name: played.append(name) for name in "abc"}, seconds=0)
    assert "".join(played) == "abc" + "aabbcc"
    assert {name: len(times) for name, times in rounds.items()} == {"a": 1, "b": 1, "c": 1}
    played.clear()
    monkeypatch.setattr(_bench, "MAX_ROUNDS", 2)
    measure({name: lambda name=name: played.append(name) for name in "abc"}, seconds=60)
    assert "".join(played) == "abc" + "aabbcc" + "ccbbaa"


CELLS = [
    Cell("row", "uint8", "fresh", 3000, {"bcast": 2e-6, "numpy": 20e-6, "torch": 1e-6, "jax": 4e-6, LIMIT: 1e-7}),
    Cell("row", "uint8", "warm", 3000, {"bcast": 2e-6, "numpy": 1e-6, LIMIT: 1e-6}),
    Cell("column", "float16", "fresh", 8000, {"bcast": 2e-6, "numpy": 1.92e-6, "jax": 1.9e-6}),
]


def test_cell():
    assert [cell.best_peer for cell in CELLS] == ["torch", None, "jax"]
    assert [cell.lost_to for cell in CELLS] == [["torch"], ["numpy"], []]
    assert CELLS[0].bandwidth == pytest.approx(1.5e9)
    assert math.isnan(CELLS[1].ratio("torch"))


def test_render():
    lines = render(CELLS, "bcast 1; NumPy 2").splitlines()
    assert lines[0] == "bcast 1; NumPy 2"
    assert "below 0.95 the cell is lost" in "\n".join(lines)
    assert lines[-6].split() == ["workload", "dtype", "state", "bcast,", "us", "GB/s", "NumPy", "best", "peer"]
    assert lines[-5].split() == [
        "row",
        "uint8",
        "fresh",
        "2.00",
        "1.5",
        "10.00",
        "0.50",
        "torch",
        "lost",
        "to",
        "torch",
    ]
    assert lines[-4].split() == ["row", "uint8", "warm", "2.00", "1.5", "0.50", "-", "lost", "to", "numpy"]
    assert lines[-3].split() == ["column", "float16", "fresh", "2.00", "4.0", "0.96", "0.95", "jax"]
    assert lines[-1] == "2 of 3 cells lost"
    assert max(map(len, lines)) <= 110


def test_head():
    machine, peers = head(["bcast", "numpy", LIMIT]).splitlines()
    assert machine.startswith(f"bcast {bcast.__version__}; NumPy {np.__version__}; ")
    assert _bench.cpu() in machine
    assert peers == "bcast on 1 thread; peers as they come: none"


def test_short_table():
    text = table(seconds=0.4, short=True)
    assert text.startswith("bcast ")
    assert "torch" not in text
    assert [line.split()[0] for line in text.splitlines() if " uint8 " in line][:2] == ["3", "3"]
    assert " lost" in text.splitlines()[-1]


def test_table_without_time_says_so():
    assert "cells (no time left)" in table(seconds=0.0, short=True)


@pytest.mark.filterwarnings("default")
def test_table_names_the_peers(monkeypatch, tmp_path):
    monkeypatch.setattr(_bench, "REPRESENTATIVE", ("3 -> 4x3",))
    peers = [name for name in COMPETITORS if name not in _bench.OWN and COMPETITORS[name].installed()]
    (tmp_path / "broken_peer.py").write_text("raise ImportError('no such library')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(COMPETITORS, "broken", dataclasses.replace(COMPETITORS["numpy"], modules=("broken_peer",)))
    _, versions, missing, *_ = table(seconds=10.0).splitlines()
    named = versions.partition("peers as they come: ")[2].split("; ")
    assert [version.split()[0] for version in named] == (peers or ["none"])
    assert missing == "missing: broken (no such library)"


@pytest.fixture(scope="module")
def report():
    spec = importlib.util.spec_from_file_location("report", REPORT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def save(path, factor=1.0, machine="bcast 1; NumPy 2\na fast one, 2 CPUs"):
    """Write CELLS as pytest-benchmark does."""
    benchmarks = [
        {
            "stats": {"min": seconds * (factor if name == "bcast" else 1)},
            "extra_info": {
                "workload": cell.workload,
                "family": f"{cell.workload}s",
                "innermost": 3 if cell.workload == "column" else 10,
                "dtype": cell.dtype,
                "state": cell.state,
                "competitor": name,
                "bytes": cell.nbytes,
                "machine": machine,
            },
        }
        for cell in CELLS
        for name, seconds in cell.times.items()
    ]
    path.write_text(json.dumps({"benchmarks": benchmarks}))
    return path


def test_report_markdown(report, tmp_path):
    lines = report.markdown(report.load([save(tmp_path / "run.json")])).splitlines()
    assert "    bcast 1; NumPy 2" in lines
    assert "    a fast one, 2 CPUs" in lines
    start = lines.index("Against NumPy:")
    assert lines[start + 2 :] == [
        "- fresh, all: geometric mean 3.1 of 2 cells, worst 0.96 (column, float16)",
        "- fresh, innermost repeated axis of 2 to 4: geometric mean 0.96 of 1 cells, worst 0.96 (column, float16)",
        "- warm, all: geometric mean **0.50** of 1 cells, worst **0.50** (row, uint8)",
        "",
        "| workload | dtype | fresh: GB/s | fresh: of bound | fresh: NumPy | fresh: best peer "
        "| warm: GB/s | warm: of bound | warm: NumPy | warm: best peer |",
        "| --- | --- | --: | --: | --: | --: | --: | --: | --: | --: |",
        "| row | uint8 | 1.5 | 5% | 10.0 | **0.50** torch | 1.5 | 50% | **0.50** |  |",
        "| column | float16 | 4 |  | 0.96 | 0.95 jax |  |  |  |  |",
        "",
        "## Lost to NumPy: 1 of 3 cells",
        "",
        "- row, uint8, warm: **0.50** numpy",
        "",
        "## Lost to the best peer: 1 of 3 cells",
        "",
        "- row, uint8, fresh: **0.50** torch",
    ]


def test_report_of_several_runs_takes_the_fastest(report, tmp_path):
    runs = [save(tmp_path / "slow.json", 3.0), save(tmp_path / "fast.json", 0.25)]
    text = report.markdown(report.load(runs))
    assert "| row | uint8 | 6 | 20% | 40 | 2.0 torch | 6 | 200% | 2.0 |  |" in text
    assert text.count("None.") == 2


def test_report_summary(report, tmp_path):
    lines = report.summary(report.load([save(tmp_path / "run.json")])).splitlines()
    assert lines[:4] == [
        "| workload | fresh: NumPy | fresh: best peer | warm: NumPy | warm: best peer |",
        "| --- | --: | --: | --: | --: |",
        "| rows | 10.0 | **0.50** (torch) | **0.50** |  |",
        "| columns | 0.96 | 0.95 (jax) |  |  |",
    ]
    assert lines[-1] == "bcast 1; NumPy 2<br>a fast one, 2 CPUs"


@pytest.mark.parametrize(
    ("machines", "message"),
    [
        (["one", "another"], "expected a run of:\none\ngot one of:\nanother"),
        ([], "expected times of both bcast and numpy"),
    ],
)
def test_report_refuses(report, tmp_path, machines, message):
    runs = [save(tmp_path / f"{machine}.json", machine=machine) for machine in machines]
    with pytest.raises(ValueError, match=message):
        report.load(runs)


@pytest.mark.filterwarnings("default")
def test_report_command(report, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    outputs = {name: tmp_path / f"OUT.{name}" for name in ("markdown", "summary", "svg")}
    run = save(tmp_path / "run.json")
    options = ["--markdown", outputs["markdown"], "--summary", outputs["summary"], "--plot", outputs["svg"]]
    report.main([str(run), *map(str, options)])
    assert outputs["markdown"].read_text() == report.markdown(report.load([run]))
    assert outputs["summary"].read_text() == report.summary(report.load([run]))
    assert "<svg" in outputs["svg"].read_text()
    assert capsys.readouterr().out.startswith("3 cells\n- fresh, all: ")
    with pytest.raises(SystemExit, match="2"):
        report.main([str(run), str(save(tmp_path / "other.json", machine="other"))])
