"""The benchmark: competitors do what they say, the table says what was measured."""

import dataclasses
import math
import re

import loops
import numpy as np
import peers
import pytest
import sum_peers
from peers import COMPETITORS, LIMIT, prepare
from shapes import FLOATS, RANDOM_SIZES, SUM_DTYPES, random_workloads, sums
from sum_peers import SUMMERS, SumTask, judge, prepare_sums

import bcast
from bcast._benchmark import table as benchmark_table
from bcast._benchmark import timing
from bcast._benchmark.table import FULL, table
from bcast._benchmark.tasks import ARITHMETIC, CALLS, Task
from bcast._benchmark.timing import measure
from bcast._benchmark.workloads import DTYPES, LARGEST, STATES, Workload, grid, machine


def in_small(workload):
    """The same workload with no axis longer than 5."""
    data, output = ([min(length, 5) for length in shape] for shape in (workload.data, workload.output))
    return dataclasses.replace(workload, data=tuple(data), output=tuple(output))


def small_workloads(dtype, all_of_them=grid):
    """One workload for each different task."""
    workloads = {}
    for workload in map(in_small, all_of_them(dtype)):
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
            task = Task.of(workload, dtype, state, threads=1)
            result = COMPETITORS[name].call(task)()
            expected = np.broadcast_to(task.lined_up, workload.output)
            result = result if task.out is None else task.out
            np.testing.assert_array_equal(result, expected, strict=True, err_msg=str(workload))


@pytest.mark.parametrize("state", STATES)
def test_a_wrong_competitor_is_found_out(state, monkeypatch):
    wrong = dataclasses.replace(COMPETITORS["numpy"], call=lambda task: lambda: np.ones((4, 3), task.data.dtype))
    monkeypatch.setitem(COMPETITORS, "wrong", wrong)
    with pytest.raises(AssertionError, match="wrong is wrong in '3 -> 4x3', float32"):
        prepare(Task.of(next(grid("float32")), "float32", state), ["numpy", "wrong"])


@pytest.mark.parametrize("piece", [1, 8, 16, 100])
def test_a_wrong_item_is_found_in_any_piece(monkeypatch, piece):
    monkeypatch.setattr(peers, "PIECE", piece)
    expected = np.arange(12, dtype=np.int32).reshape(6, 2)
    assert peers._equal(expected.copy(), expected)
    for i in range(12):
        wrong = expected.copy()
        wrong.flat[i] = -1
        assert not peers._equal(wrong, expected)
    assert not peers._equal(expected[:5], expected)
    assert not peers._equal(np.vstack([expected, expected[:1]]), expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_names_of_the_grid_are_unique_and_sizes_bounded(dtype):
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


def test_random_workloads():
    workloads = list(random_workloads())
    assert workloads == list(random_workloads(1, 60))
    assert workloads[:7] == list(random_workloads(1, 7))
    assert workloads[0][0] != next(random_workloads(2))[0]
    assert len({workload.name for workload, _ in workloads}) == 60
    assert {len(workload.output) for workload, _ in workloads} == {2, 3, 4, 5, 6}
    lengths = {length for workload, _ in workloads for length in workload.output}
    assert min(lengths) == 1
    assert 90 < max(lengths) <= 100
    for workload, dtypes in workloads:
        assert workload.data != workload.output
        assert workload.source == workload.data
        for dtype in dtypes:
            assert RANDOM_SIZES[0] <= workload.nbytes(dtype) <= RANDOM_SIZES[1]
    assert [dtype for _, dtypes in workloads[:5] for dtype in dtypes] == list(DTYPES) * 2


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
    monkeypatch.setattr(loops, "PARALLEL", 0)
    data = np.arange(1, math.prod(source) + 1, dtype=np.float32).reshape(source)
    fill, lengths, word = loops.fill(data, shape, threads)
    out = np.zeros(shape, np.float32)
    fill(out.view(word).reshape(lengths))
    np.testing.assert_array_equal(out, np.broadcast_to(data, shape))


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("n", [5, 2000, 300_000])
def test_loop_over_counts_gives_numpys_result(n, threads):
    pytest.importorskip("numba")
    data, counts = np.arange(n, dtype=np.float32), np.arange(n) * 7 % 5
    np.testing.assert_array_equal(loops.repeater()(data, counts, threads), np.repeat(data, counts), strict=True)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("name", [name for name in SUMMERS if name != LIMIT])
def test_summer_gives_the_sum(name, state):
    if not SUMMERS[name].installed():
        pytest.skip(f"{name} is not installed")
    for dtype in SUM_DTYPES:
        for workload in small_workloads(dtype, sums)[: None if dtype == "float32" else 4]:
            if SUMMERS[name].does(workload, dtype, state):
                task = SumTask.of(workload, dtype, state)
                task.grad[...] = np.arange(task.grad.size).reshape(workload.output) % 7  # whose sums are exact
                result = SUMMERS[name].call(task)()
                result = np.asarray(result) if task.out is None else task.out
                expected = task.grad.sum(task.axes, keepdims=True, dtype=dtype).reshape(workload.data)
                np.testing.assert_array_equal(result, expected, strict=True, err_msg=f"{workload}, {dtype}")


ROWS = Workload("rows", "", (3,), (4000, 3))


@pytest.mark.parametrize("dtype", FLOATS)
def test_judge_counts_units_in_the_last_place(dtype):
    task = SumTask.of(ROWS, dtype, "fresh")
    error = judge(task)
    exact = np.array([math.fsum(column) for column in task.grad.T.tolist()]).astype(dtype)  # rounded once
    assert 0 < error(exact) <= 0.5
    exact[1] = np.nextafter(exact[1], exact.dtype.type(np.inf))
    assert 0.5 <= error(exact) <= 1.5
    exact[1] = np.inf
    assert error(exact) == np.inf


@pytest.mark.parametrize("state", STATES)
def test_errors_are_measured(state):
    calls, errors = prepare_sums(SumTask.of(ROWS, "float32", state), ["bcast", "numpy", LIMIT])
    assert list(calls) == ["bcast", "numpy", LIMIT]
    assert list(errors) == ["bcast", "numpy"]
    assert errors["bcast"] <= 0.5 < errors["numpy"]  # which adds 4000 terms one by one


WRONG = {
    "the dtype": lambda grad: grad.sum(0, dtype=np.float64),
    "the shape": lambda grad: grad.sum(0, keepdims=True),
    "the terms": lambda grad: grad[:2000].sum(0) + 1000,
    "not a number": lambda grad: grad.sum(0) * np.nan,
}


@pytest.mark.parametrize("reason", WRONG)
def test_a_wrong_sum_is_found_out(reason, monkeypatch):
    wrong = dataclasses.replace(SUMMERS["numpy"], call=lambda task: lambda: WRONG[reason](task.grad))
    monkeypatch.setitem(SUMMERS, "wrong", wrong)
    with pytest.raises(AssertionError, match=r"wrong is wrong in 'rows', float32: off by .* ulp"):
        prepare_sums(SumTask.of(ROWS, "float32", "fresh"), ["numpy", "wrong"])


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_limit_reads_every_word(threads, monkeypatch):
    read = []
    pieces = sum_peers.in_pieces
    monkeypatch.setattr(
        sum_peers, "in_pieces", lambda work, *rest: pieces(lambda piece: read.append(work(piece)), *rest)
    )
    words = np.random.default_rng(1).integers(0, 1 << 64, 1003, np.uint64)
    ways = sum_peers.reads(words, threads)
    expected = ["reduce", "pieces", "loop", "loops"]
    if not COMPETITORS["numba"].installed():
        expected = expected[:2]
    assert list(ways) == expected[:: 2 if threads == 1 else 1]
    total = int(words.sum())
    for name, call in ways.items():
        read.clear()
        result = call()
        assert int(np.sum(read, dtype=np.uint64) if name == "pieces" else result) == total


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_limit_writes_every_byte(threads):
    block = np.empty(1001, np.uint8)
    ways = peers.fills(block, threads)
    assert list(ways) == (["memset", "own"] if threads == 1 else ["memset", "pieces", "own"])
    for call in ways.values():
        block.fill(0)
        call()
        assert (block == 1).all()


def test_measure_takes_turns(monkeypatch):
    monkeypatch.setattr(timing, "ROUND_SECONDS", 0.0)
    monkeypatch.setattr(timing, "TURN_SECONDS", 0.0)
    played = []
    calls = {name: lambda name=name: played.append(name) for name in "abc"}
    rounds = measure(calls, seconds=0, warming=0)
    assert "".join(played) == "abc" + "aabbcc"
    assert {name: len(times) for name, times in rounds.items()} == {"a": 1, "b": 1, "c": 1}
    played.clear()
    monkeypatch.setattr(timing, "MAX_TURNS", 2)
    measure(calls, seconds=60, warming=0)
    assert "".join(played) == "abc" + "aabbcc" + "ccbbaa"


def measured(text):
    """Return the rows of a table, split."""
    return [line.split() for line in text.splitlines() if re.search(" (fresh|warm) +[0-9]", line)]


@pytest.mark.parametrize("short", [True, False])
def test_the_table_has_a_row_for_each_cell_within_its_time(short, monkeypatch):
    monkeypatch.setattr(benchmark_table, "FULL", ("3 -> 4x3", "bias NCHW"))
    dots = []
    text = table(seconds=0.4, short=short, grow=dots.append)
    assert text.splitlines()[0] == machine(bcast.get_num_threads())
    assert 0 < len(measured(text)) == len(dots) <= (16 if short else 8)
    assert "no time left for 16" in table(seconds=0.0, short=True)


def test_the_table_measures_nothing_that_is_wrong(monkeypatch):
    assert {workload.name for workload in grid("uint8")} | {*ARITHMETIC} >= {*FULL}
    monkeypatch.setitem(CALLS, "numpy", lambda task: lambda: np.zeros(task.workload.output))
    with pytest.raises(AssertionError, match="differ in '3 -> 4x3', uint8, fresh"):
        table(seconds=0.4, short=True)


def test_the_table_marks_what_is_lost_and_what_is_unsteady(monkeypatch):
    rounds = iter([{"bcast": [2.0, 2.0], "numpy": [1.0, 1.0]}, {"bcast": [1.0, 1.3], "numpy": [2.0, 2.0]}])
    steady = {"bcast": [1.0], "numpy": [0.96]}
    monkeypatch.setattr(benchmark_table, "measure", lambda *_: next(rounds, steady))
    rows = measured(table(seconds=60.0, short=True))
    assert [row[row.index("uint8") + 4 :] for row in rows[:2]] == [["0.50", "LOST"], ["2.00", "?"]]
    assert rows[2][-1] == "0.96"
