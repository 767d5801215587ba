"""The benchmarks: competitors compute the right results, wrong ones are detected, and no published cell is lost."""

import dataclasses
import json
import math
import re
import sys
from argparse import Namespace
from functools import partial
from importlib.util import find_spec
from os import getpid
from pathlib import Path

import numpy as np
import pytest

from bcast._benchmark import timing, workloads
from bcast._benchmark.table import table
from benchmarks import arithmetic, copies, harness, numba_loops, packages, sums, tuning
from benchmarks.__main__ import main as run_benchmarks
from benchmarks.cells import FAMILIES
from benchmarks.copies import DTYPES, STATES, Broadcast, broadcast_cell, grid
from benchmarks.harness import prepared
from benchmarks.peers import LIMIT, PEERS, cpus, installed
from benchmarks.search import drawn
from benchmarks.separate import Separate
from benchmarks.sums import FLOATS, SUM_DTYPES, adjoint_cell, adjoints

ROOT = Path(__file__).parents[1]
BENCHMARKS = ROOT / "benchmarks"
SUFFIXES = (".py", ".pyx", ".pxd", ".h", ".cpp")
OPTIONS = Namespace(threads=1, seed=1)


def in_small(broadcast):
    data, output = (tuple(min(length, 5) for length in shape) for shape in (broadcast.data, broadcast.output))
    return dataclasses.replace(broadcast, data=data, output=output)


def small_broadcasts(all_of_them):
    small = {}
    for broadcast in map(in_small, all_of_them):
        small.setdefault((broadcast.name.split()[0], broadcast.data, broadcast.output), broadcast)
    return list(small.values())


def small_grid():
    """Each kind of broadcast in bytes, a few in the other dtypes, fresh and warm."""
    for state in STATES:
        for dtype in DTYPES:
            for broadcast in small_broadcasts(grid(dtype))[: None if dtype == "uint8" else 4]:
                yield broadcast_cell("grid", broadcast, dtype, state, 1)


def small_adjoints():
    for state in STATES:
        for dtype in SUM_DTYPES:
            for broadcast in small_broadcasts(adjoints(dtype))[: None if dtype == "float32" else 4]:
                yield adjoint_cell(broadcast, dtype, state, 1)


def small_others():
    """Cells of the other families: those that are small, and small ones of kinds that have none."""
    for family in ("replaced", "strided", "elementwise", "small"):
        small = [cell for cell in FAMILIES[family].cells(OPTIONS) if cell.nbytes < 300_000]
        kinds = {(tuple(map(str, cell.ways.values())), cell.dtype): cell for cell in small}  # peers compile each
        yield from kinds.values()
    for name in ("sum", "mean", "var", "std"):
        for dtype in ("uint8", "float16", "float32", "float64"):
            yield sums.statistic_cell(name, (40, 3), 1, dtype, 1)
            yield sums.statistic_cell(name, (4, 5, 3), (0, 1), dtype, 1)
    yield from (cell for cell in FAMILIES["reductions"].cells(OPTIONS) if cell.nbytes < 300)
    for dtype in FLOATS:
        yield sums.product_cell("rows", (6, 5, 4), (6, 5, 1), dtype, 1)
        yield sums.product_cell("all", (6, 5, 4), (), dtype, 1)
        yield sums.product_cell("channels", (6, 5, 4), (4,), dtype, 1)
    for layout in arithmetic.AXES:
        for dtype in ("float32", "float16"):
            for state in STATES:
                yield arithmetic.chain_cell((2, 8, 9), layout, dtype, state, 1)
    yield from copies.repeat_kv_cells((1, 2, 3, 4), 2, "float32", 1)
    yield from copies.upsample_cells((4, 5, 3), 2, "uint8", 1)
    broadcast = Broadcast("row", "", (5,), (7, 5))
    yield copies.use_cell(broadcast, "kept", 1, ("bcast", "numpy", "torch", "jax"))
    yield from (copies.use_cell(broadcast, f"{state}, read", 1, ("bcast", "numpy")) for state in STATES)
    yield copies.convert_cell("rows", (1, 4), (9, 4), "uint8", "float32", 1)


@pytest.mark.filterwarnings("default")  # what the peers warn of among themselves is not ours to judge
@pytest.mark.parametrize("name", [name for name in PEERS if name != LIMIT])
@pytest.mark.parametrize("cells", [small_grid, small_adjoints, small_others])
def test_competitor_gives_the_right_result(name, cells):
    """A cell that is prepared has checked each of its competitors."""
    if not installed(name):
        pytest.skip(f"{name} is not installed")
    done = competes = 0
    for cell in cells():
        ways = {way: call for way, call in cell.ways.items() if way.partition(",")[0] == name}
        if not ways:
            continue
        if "numpy" in cell.ways:
            ways.setdefault("numpy", cell.ways["numpy"])
        with np.errstate(all="ignore"):
            calls, _ = prepared(dataclasses.replace(cell, ways=ways))
        competes += 1
        done += any(way.partition(",")[0] == name for way in calls)
    assert bool(done) == bool(competes)


def with_way(cell, way):
    return dataclasses.replace(cell, ways={"numpy": cell.ways["numpy"], "bcast": way})


WRONG_COPIES = {
    "the items": "np.full_like(np.broadcast_to(view, shape), 7)",
    "the dtype": "np.broadcast_to(view, shape).astype('f8')",
    "the shape": "np.broadcast_to(view, shape)[:1].copy()",
}


@pytest.mark.parametrize("reason", WRONG_COPIES)
def test_a_wrong_competitor_is_found_out(reason):
    cell = broadcast_cell("grid", next(grid("float32")), "float32", "fresh", 1)
    with pytest.raises(AssertionError, match="bcast is wrong in 3 -> 4x3, float32, fresh"):
        prepared(with_way(cell, WRONG_COPIES[reason]))


@pytest.mark.parametrize("way", ["None", "np.broadcast_to(view, shape).copy()", "np.copyto(out[1:], view)"])
def test_a_competitor_that_does_not_write_out_is_detected(way):
    cell = broadcast_cell("grid", next(grid("float32")), "float32", "warm", 1)
    with pytest.raises(AssertionError, match="bcast is wrong in 3 -> 4x3, float32, warm: items differ"):
        prepared(with_way(cell, way))


@pytest.mark.parametrize(
    "cell",
    [
        arithmetic.elementwise_cell("small", "power", ((3, 4), (4,)), False, "float32", 1),
        arithmetic.elementwise_cell("small", "equal", ((3, 4), (4,)), False, "uint8", 1),
        arithmetic.chain_cell((1, 4, 5), "HWC", "float32", "warm", 1),
        next(copies.tile_cells((2, 3), (2, 2), "float32", 1)),
        next(sums.of_counts(128, 2, 3, "float32", 1)),
    ],
    ids=lambda cell: cell.label,
)
def test_another_result_than_numpys_is_found_out(cell):
    way = cell.ways["numpy"]
    numpys = harness.call_of("numpy", way, names := cell.names())

    def one_item_is_off(out=None, **_):
        def call():
            result = np.array(numpys() if out is None else (numpys(), names["out"])[1])
            result.reshape(-1)[1] = 1 - result.reshape(-1)[1]
            return result if out is None else np.copyto(out, result)

        return call

    prepared(with_way(cell, way))
    with pytest.raises(AssertionError, match="bcast is wrong in"):
        prepared(with_way(cell, one_item_is_off))


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("source", "shape"),
    [
        ((1,), (7,)),  # one loop, which is cut
        ((9, 1), (9, 17)),  # too many to unroll
        ((3, 1), (3, 900)),  # the second axis is cut
        ((5, 1, 5, 1, 3), (5, 2, 5, 2, 3)),  # the last two are unrolled
        ((1, 3), (4099, 3)),  # no number of rows divides
        ((1, 3), (4096, 3)),  # in two stages
        ((5, 1, 3), (5, 4096, 3)),
        ((2, 1) * 5, (2, 3) * 5),  # in four stages
        ((1, 2) * 5, (3, 2) * 5),
    ],
)
@pytest.mark.parametrize("threads", [1, 3])
def test_loops_give_numpys_result(source, shape, threads, monkeypatch):
    pytest.importorskip("numba")
    monkeypatch.setattr(numba_loops, "PARALLEL", 0)
    data = np.arange(1, math.prod(source) + 1, dtype=np.float32).reshape(source)
    fill, lengths, word = numba_loops.fill(data, shape, threads)
    out = np.zeros(shape, np.float32)
    fill(out.view(word).reshape(lengths))
    np.testing.assert_array_equal(out, np.broadcast_to(data, shape))


ROWS = Broadcast("rows", "", (3,), (4000, 3))


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_judge_of_sums_counts_units_in_the_last_place(dtype):
    names = adjoint_cell(ROWS, dtype, "fresh", 1).names()
    check = sums.judge_adjoint(names, lambda: None)
    exact = np.array([math.fsum(column) for column in names["grad"].T.tolist()]).astype(dtype)  # rounded once
    assert 0 < check(exact) <= 0.5
    exact[1] = np.nextafter(exact[1], exact.dtype.type(np.inf))
    assert 0.5 <= check(exact) <= 1.5
    exact[1] = np.inf
    with pytest.raises(AssertionError, match="off by inf ulp"):
        check(exact)


WRONG_SUMS = {
    "the dtype": "grad.sum(0, dtype=np.float64)",
    "the shape": "grad.sum(0, keepdims=True)",
    "the terms": "grad[:2000].sum(0) + 1000",
    "not a number": "grad.sum(0) * np.nan",
}


@pytest.mark.parametrize("reason", WRONG_SUMS)
def test_a_wrong_sum_is_found_out(reason):
    with pytest.raises(AssertionError, match="bcast is wrong in rows, float32, fresh: "):
        prepared(with_way(adjoint_cell(ROWS, "float32", "fresh", 1), WRONG_SUMS[reason]))


@pytest.mark.parametrize(
    ("cell", "way"),
    [
        (sums.product_cell("rows", (500, 4), (4,), "float32", 1), "(grad * x)[1:].sum(axes) + 99"),
        (sums.statistic_cell("mean", (500, 4), 0, "float32", 1), "np.median(x, 0)"),
        (sums.statistic_cell("sum", (500, 4), 0, "uint8", 1), "np.sum(x, 0, dtype='u1')"),
        (sums.statistic_cell("var", (500, 4), 0, "float64", 1), "np.var(x, 0, ddof=1)"),
    ],
)
def test_a_wrong_product_or_statistic_is_found_out(cell, way):
    prepared(with_way(cell, cell.ways["bcast"]))
    with pytest.raises(AssertionError, match=r"off by .* ulp"):
        prepared(with_way(cell, way))


# How cells are timed.


def test_competitors_take_turns_and_rest_before_each():
    told = []
    calls = {name: partial(told.append, name) for name in ("a", "b")}
    rounds = timing.measure(calls, 0, 0, lambda: told.append("rest"), turns=3)
    order = [told[i + 1] for i, each in enumerate(told) if each == "rest"]
    assert order == ["a", "b", "b", "a", "a", "b"]
    assert set(rounds) == {"a", "b"}
    assert all(taken and min(taken) > 0 for taken in rounds.values())


def test_the_fastest_round_counts_or_the_median_without_rests(monkeypatch):
    cell = broadcast_cell("grid", next(grid("uint8")), "uint8", "fresh", 1, ("bcast", "numpy"))
    monkeypatch.setattr(harness, "timed", lambda *_: ({"bcast": [3.0, 1.0, 9.0], "numpy": [4.0, 2.0, 8.0]}, {}))
    found = harness.measured(cell)
    assert found.times == {"bcast": 1.0, "numpy": 2.0}
    assert found.ratio("numpy") == 2
    assert harness.measured(dataclasses.replace(cell, awake=True)).times == {"bcast": 3.0, "numpy": 4.0}


def test_lost_cells_are_reported():
    times = {"bcast": 1.0, "numpy": 0.9, "torch": 0.8, "bcast, converted first": 0.1, LIMIT: 0.2}
    found = harness.Measured("grid", "a", "b", "uint8", "warm", 1, 10, 0, times)
    assert found.best_peer == "torch"
    assert found.lost_to == ["numpy", "torch"]
    told = harness.summary([found])
    assert told[0] == "NumPy: 0.90 in the geometric mean, least 0.90, lost 1 of 1"
    assert told[2:] == [
        "the best peer: 0.80 in the geometric mean, least 0.80, lost 1 of 1",
        "  0.80 torch: a, uint8, warm",
    ]


def test_a_cell_is_run_by_its_name(tmp_path, capsys):
    saved = tmp_path / "run.json"
    run_benchmarks(["grid", "--only", "3 -> 4x3, uint8", "--rounds=1", "--threads=1", f"--json={saved}"])
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| 3")]
    assert [line.split(" | ")[0] for line in lines] == [f"| 3 -> 4x3, uint8, {state}" for state in STATES]
    cells = json.loads(saved.read_text())["cells"]
    assert [cell["state"] for cell in cells] == list(STATES)
    assert all(cell["times"]["bcast"] > 0 for cell in cells)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["grids"], "FAMILY expected one of grid, "),
        (["grid", "--threads", str(cpus() + 1)], f"--threads expected 1 to {cpus()}, "),
        (["grid", "--rounds", "0"], "--rounds expected 1 or more, got 0"),
    ],
)
def test_the_command_line_refuses(arguments, message, capsys):
    with pytest.raises(SystemExit):
        run_benchmarks(arguments)
    assert message in capsys.readouterr().err


def test_the_list_names_families_and_cells(capsys):
    run_benchmarks(["--list"])
    families = capsys.readouterr().out
    assert all(re.search(rf"^{name} ", families, re.MULTILINE) for name in FAMILIES)
    run_benchmarks(["--list", "--only", "gray -> RGB 1080p, float32"])
    found = capsys.readouterr().out.splitlines()
    assert [line.split(maxsplit=1)[1] for line in found] == [f"gray -> RGB 1080p, float32, {state}" for state in STATES]


# No cell is lost that is published.


def published_rows(page, *heads):
    """Return the first columns of the rows of those tables on a page whose heads begin with these."""
    rows, wanted = set(), False
    for line in (BENCHMARKS / page).read_text(encoding="utf-8").splitlines():
        cells = tuple(cell.strip("` ") for cell in line.strip("|").split(" | ")[: len(heads)])
        if not line.startswith("|"):
            wanted = False
        elif cells == heads:
            wanted = True
        elif wanted and not line.startswith(("|--", "| --")):
            rows.add(cells)
    return rows


@pytest.mark.parametrize(
    ("page", "heads", "families", "key", "count"),
    [
        ("results.md", ("workload", "dtype"), ("grid", "random"), ("name", "dtype"), 293),
        ("results.md", ("workload", "use"), ("use",), ("name", "state"), 20),
        ("results.md", ("call", "dtype"), ("replaced",), ("name", "dtype"), 213),
        ("adjoint.md", ("workload", "dtype", "state"), ("adjoint",), ("name", "dtype", "state"), 280),
        ("products.md", ("case",), ("products",), ("label",), 13),
        ("lines.md", ("NumPy",), ("lines",), ("name",), 12),
        ("lines.md", ("the line",), ("pictures",), ("name",), 9),
    ],
)
def test_no_published_cell_is_lost(page, heads, families, key, count):
    published = published_rows(page, *heads)
    cells = {tuple(getattr(cell, each) for each in key) for name in families for cell in FAMILIES[name].cells(OPTIONS)}
    assert len(published) == count
    if heads == ("the line",) and not (installed("opencv") and find_spec("einops")):
        pytest.skip("the pictures need OpenCV and einops")
    assert published <= cells


def test_no_published_size_is_lost(monkeypatch):
    monkeypatch.setattr(copies, "memory", lambda: 1 << 36)
    options = Namespace(threads=2, seed=1)
    cells = {(cell.name, cell.state, str(cell.threads)) for cell in FAMILIES["scaling"].cells(options)}
    published = published_rows("results.md", "workload", "state", "threads")
    assert len(published) == 138
    assert published <= cells


def test_no_published_call_is_lost():
    published = published_rows("field.md", "call")
    assert len(published) == 38
    assert published <= {(row.name,) for row in packages.CALLS}


def test_cells_have_labels_of_their_own():
    for name, family in FAMILIES.items():
        labels = [cell.label for cell in family.cells(OPTIONS)]
        assert labels or name in ("packages", "pictures"), name  # none of these may be installed
        assert len(labels) == len(set(labels)), name


# Calls of packages.


@pytest.fixture
def planted(tmp_path, monkeypatch):
    (tmp_path / "planted.py").write_text("def scaled(x):\n    y = x * 2\n    return y + 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield packages.PackageCall(
        "planted",
        "a line",
        "import planted; x = np.arange(3.0)",
        "planted.scaled(x)",
        "x * 2",
        "(x + x)",
        "planted.scaled",
    )
    sys.modules.pop("planted", None)


def test_a_line_within_a_package_is_changed_only_while_it_is_called(planted):
    names = packages.names_of(planted.setup)
    function = names["planted"].scaled
    before, code = function.__code__, packages.rewritten(planted)[1]
    assert code.co_code != before.co_code
    call = packages.with_other_code(planted, **names)
    np.testing.assert_array_equal(call(), [1, 3, 5])
    assert function.__code__ is before


def test_calls_of_packages_are_made_in_processes_of_their_own(planted, tmp_path):
    """These processes patch NumPy before they import the package, and end with their calls."""
    source = "from numpy import repeat\nPATCHED = type(repeat).__name__ == 'StandIn'\n"
    (tmp_path / "planted.py").write_text(f"{source}def scaled(x):\n    y = x * 2\n    return y + 1\n")
    asks = planted._replace(call="[float(planted.PATCHED), *planted.scaled(x)]", ours="(x + x)")
    calls = {way: packages.package_cell(asks, 1).ways[way]() for way in ("numpy", "bcast", "bcast, patched")}
    assert {way: call() for way, call in calls.items()} == {
        "numpy": [0, 1, 3, 5], "bcast": [0, 1, 3, 5], "bcast, patched": [1, 1, 3, 5],
    }  # fmt: skip
    times = harness.in_processes(calls, 4)
    assert all(0 < seconds < 1 for taken in times.values() for seconds in taken)
    assert all(len(taken) >= 4 for taken in times.values())

    processes = [process for call in calls.values() for process, _ in call._processes]
    assert len({process.pid for process in processes}) == 9
    calls.clear()
    assert [process.join(30) or process.exitcode for process in processes] == [0] * 9


def test_each_turn_is_another_process_s():
    call = Separate(partial, getpid)
    assert len({call() for _ in range(3) if call.turn()}) == 3


def test_a_changed_line_with_another_result_is_found_out(planted):
    wrong = planted._replace(ours="(x + 9)")
    with pytest.raises(AssertionError, match="bcast is wrong in planted: a line"):
        prepared(packages.package_cell(wrong, 1))
    with pytest.raises(LookupError, match=r"planted.scaled expected the line 'x \* 3'"):
        packages.rewritten(planted._replace(line="x * 3"))


# The table of `python -m bcast bench`, and the search.


def test_the_table_measures_nothing_that_is_wrong(monkeypatch):
    monkeypatch.setitem(workloads.KNOWN, "gray picture to RGB", ("np.arange(3)", "np.arange(3) + 1"))
    with pytest.raises(AssertionError, match="differ in 'gray picture to RGB': np"):
        table(seconds=0.4, short=True)


@pytest.mark.filterwarnings("ignore")  # of overflow, which small dtypes cannot avoid
def test_searched_calls_are_the_same_call_of_numpys():
    functions = set()
    for number in range(300):
        case = drawn(7, number, 3000)
        functions.add(case.title.split()[0])
        result = case.ours()
        ours = np.array(result)
        numpys = case.numpys()
        expected = result if numpys is None else np.asarray(numpys)  # `copyto` has written it
        assert ours.dtype == expected.dtype, (number, case.title)
        assert ours.shape == expected.shape, (number, case.title)
        if ours.dtype.kind in "fc":
            tolerance = 40 * float(np.finfo(ours.dtype).eps)
            finite = np.isfinite(expected)  # NumPy's squares of float16 overflow
            np.testing.assert_allclose(
                ours[finite], expected[finite], rtol=tolerance, err_msg=f"{number}: {case.title}"
            )
        else:
            np.testing.assert_array_equal(ours, expected, err_msg=f"{number}: {case.title}")
    names = "broadcast repeat tile sum mean var std unbroadcast unrepeat elementwise where chain"
    assert functions == set(names.split())


def test_a_searched_call_is_drawn_from_its_seed_and_number():
    titles = [[drawn(seed, number, 3000).title for number in range(20)] for seed in (1, 1, 2)]
    assert titles[0] == titles[1] != titles[2]


def test_each_number_has_cells_that_move_with_it():
    found = list(tuning.numbers((ROOT / tuning.HEADER).read_text(encoding="utf-8")))
    assert len(found) == len({number.name for number in found}) > 30
    assert all(number.families and FAMILIES.keys() >= {*number.families} for number in found)
    assert {number.name: number.value for number in found}["WRITTEN_SHARE_BYTES"] == 256 << 10


def test_thresholds_are_in_one_file():
    """Modules in Python and Cython read the file's numbers by their names."""
    named = {number.name for number in tuning.numbers((ROOT / tuning.HEADER).read_text(encoding="utf-8"))}
    listed = (ROOT / tuning.HEADER).with_suffix(".pxd").read_text(encoding="utf-8")
    assert set(re.findall(r"^        (\w+)$", listed, re.MULTILINE)) == named
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "src/bcast").rglob("*") if path.suffix in SUFFIXES]
    for name in named:
        assert sum(bool(re.search(rf"\b{name}\b", text)) for text in sources) > 2, f"{name} is read nowhere"
