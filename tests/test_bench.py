"""The benchmark: competitors do what they say, the tables say what was measured."""

import dataclasses
import itertools
import math
import os
import sys
import threading
from timeit import Timer

import loops
import numpy as np
import pytest
import sum_peers
from sum_peers import SUMMERS, SumTask, judge, prepare_sums

import bcast
from bcast._benchmark import machine as benchmark_machine
from bcast._benchmark import peers as benchmark_peers
from bcast._benchmark import table as benchmark_table
from bcast._benchmark import timing
from bcast._benchmark.machine import Load, cpus, machine, memory, settle
from bcast._benchmark.peers import COMPETITORS, LIMIT, Task, bound, competitors, prepare
from bcast._benchmark.table import Cell, head, render, table
from bcast._benchmark.timing import measure
from bcast._benchmark.workloads import (
    DTYPES,
    FLOATS,
    LARGEST,
    RANDOM_SIZES,
    STATES,
    SUM_DTYPES,
    SUM_SIZES,
    Workload,
    grid,
    label,
    random_workloads,
    sums,
)

ALL = COMPETITORS | {"numba": loops.NUMBA}


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
@pytest.mark.parametrize("name", [name for name in ALL if name != LIMIT])
def test_competitor_gives_numpys_result(name, state):
    if not ALL[name].installed():
        pytest.skip(f"{name} is not installed")
    cases = [(workload, "uint8") for workload in small_workloads("uint8")]
    cases += [(workload, dtype) for dtype in DTYPES[1:] for workload in small_workloads(dtype)[:4]]
    for workload, dtype in cases:
        if ALL[name].does(workload, dtype, state):
            task = Task.of(workload, dtype, state, threads=1)
            result = ALL[name].call(task)()
            expected = np.broadcast_to(task.lined_up, workload.output)
            result = result if task.out is None else task.out
            np.testing.assert_array_equal(result, expected, strict=True, err_msg=str(workload))


@pytest.mark.parametrize("state", STATES)
def test_competitors_agree_on_the_shapes_of_the_grid(state):
    for dtype in DTYPES:
        for workload in grid(dtype):
            if workload.nbytes(dtype) <= 1_000_000:
                calls = prepare(Task.of(workload, dtype, state), ["bcast", "numpy", LIMIT])
                assert list(calls) == ["bcast", "numpy", LIMIT]


@pytest.mark.parametrize("state", STATES)
def test_a_wrong_competitor_is_found_out(state, monkeypatch):
    wrong = dataclasses.replace(COMPETITORS["numpy"], call=lambda task: lambda: np.ones((4, 3), task.data.dtype))
    monkeypatch.setitem(COMPETITORS, "wrong", wrong)
    with pytest.raises(AssertionError, match=f"wrong is wrong in '3 -> 4x3', float32, {state}"):
        prepare(Task.of(next(grid("float32")), "float32", state), ["numpy", "wrong"])


@pytest.mark.parametrize("piece", [1, 8, 16, 100])
def test_a_wrong_item_is_found_in_any_piece(monkeypatch, piece):
    monkeypatch.setattr(benchmark_peers, "PIECE", piece)
    expected = np.arange(12, dtype=np.int32).reshape(6, 2)
    assert benchmark_peers._equal(expected.copy(), expected)
    for i in range(12):
        wrong = expected.copy()
        wrong.flat[i] = -1
        assert not benchmark_peers._equal(wrong, expected)
    assert not benchmark_peers._equal(expected[:5], expected)
    assert not benchmark_peers._equal(np.vstack([expected, expected[:1]]), expected)


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


def test_names_of_the_table_are_in_the_grid():
    assert {workload.name for workload in grid("uint8")} >= {*benchmark_table.REPRESENTATIVE, *benchmark_table.SHORT}


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
def test_innermost_counts_the_innermost_repetitions(data, output, axes, innermost):
    assert Workload("", "", data, output, axes).innermost == innermost


def test_competitors_that_cannot_are_left_out(monkeypatch):
    everywhere = {name: dataclasses.replace(each, modules=()) for name, each in COMPETITORS.items()}
    monkeypatch.setattr(benchmark_peers, "COMPETITORS", everywhere)
    tiny = next(grid("uint8"))
    peers = ["torch", "jax", "onnxruntime", "openvino"]
    assert competitors(tiny, "uint8", "fresh") == ["bcast", "numpy", *peers, LIMIT]
    assert competitors(tiny, "complex128", "warm") == ["bcast", "numpy", "torch", LIMIT]
    everywhere["torch"] = dataclasses.replace(everywhere["torch"], modules=("no_such_module",))
    assert competitors(tiny, "complex128", "warm") == ["bcast", "numpy", LIMIT]


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


@pytest.mark.parametrize(
    ("source", "shape", "kinds", "lengths"),
    [
        ((2, 3), (2, 3), "C", [6]),
        ((1, 1), (1, 1), "C", [1]),
        ((1, 3), (4, 3), "RC", [4, 3]),
        ((2, 1, 1, 3, 1, 5), (2, 1, 7, 3, 1, 5), "CRC", [2, 7, 15]),
        ((1, 1, 1, 3), (2, 2, 1, 3), "RC", [4, 3]),
    ],
)
def test_loops_merge_neighbouring_axes_of_one_kind(source, shape, kinds, lengths):
    assert loops.merged(source, shape) == (kinds, lengths)


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


@pytest.mark.parametrize("name", [name for name in SUMMERS | COMPETITORS if name not in benchmark_table.OWN])
def test_competitors_tell_their_versions(name):
    known = SUMMERS | COMPETITORS
    if not known[name].installed():
        pytest.skip(f"{name} is not installed")
    assert benchmark_table.version(name, known).split()[0] == name
    assert benchmark_table.version(f"{name}, called so", known).partition(",")[0] == name


@pytest.mark.parametrize("dtype", SUM_DTYPES)
def test_names_of_the_sums_are_unique_and_sizes_those_wanted(dtype):
    workloads = list(sums(dtype))
    assert len({workload.name for workload in workloads}) == len(workloads)
    for nbytes in SUM_SIZES if dtype in FLOATS else SUM_SIZES[3:4]:
        scaled = [workload for workload in workloads if workload.name.endswith(f", {label(nbytes)}")]
        assert len(scaled) == 12
        for workload in scaled:
            assert 0.9 * nbytes <= workload.nbytes(dtype) <= nbytes
    for workload in workloads:
        if workload.nbytes(dtype) <= 2000:
            task = SumTask.of(workload, dtype, "fresh")
            assert task.grad.sum(task.axes, keepdims=task.keepdims).shape == workload.data


def test_sizes_are_written_in_the_largest_unit():
    assert [label(nbytes) for nbytes in (1 << 10, 1 << 19, 1 << 20, 1 << 32)] == ["1 KB", "512 KB", "1 MB", "4 GB"]


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


def test_judge_of_other_numbers():
    task = SumTask.of(ROWS, "int32", "fresh")
    wrapped = task.grad.sum(0, dtype=np.int32)
    assert not np.array_equal(wrapped, task.grad.sum(0, dtype=np.int64))
    assert task.grad.min() < 0 < task.grad.max()
    assert judge(task)(wrapped) == 0
    assert judge(task)(wrapped + np.array([0, -2, 1], np.int32)) == 2
    for workload in (ROWS, dataclasses.replace(ROWS, data=())):
        task = SumTask.of(workload, "complex64", "fresh")
        exact = np.asarray(task.grad.sum(task.axes, dtype=np.complex128).astype(np.complex64))
        assert judge(task)(exact) <= 0.5
        last = (*[-1] * exact.ndim,)
        exact.imag[last] = np.nextafter(exact.imag[last], np.float32(0))
        assert 0.5 <= judge(task)(exact) <= 1.5


def test_sums_of_float16_are_finite_and_of_some_size():
    task = SumTask.of(Workload("", "", (), (1 << 20,)), "float16", "fresh")
    assert task.grad.min() > 0
    assert 2.0**12 < task.grad.sum(dtype=np.float64) < 2.0**15


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


def test_a_sum_that_is_not_written_is_found_out(monkeypatch):
    monkeypatch.setitem(SUMMERS, "idle", dataclasses.replace(SUMMERS["numpy"], call=lambda task: lambda: task.out))
    with pytest.raises(AssertionError, match="idle is wrong in 'rows', float32: off by nan ulp"):
        prepare_sums(SumTask.of(ROWS, "float32", "warm"), ["numpy", "idle"])


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
    if not loops.NUMBA.installed():
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
    ways = benchmark_peers.fills(block, threads)
    assert list(ways) == (["memset", "own"] if threads == 1 else ["memset", "pieces", "own"])
    for call in ways.values():
        block.fill(0)
        call()
        assert (block == 1).all()


def test_bound_limits_threads_and_restores_them(monkeypatch):
    monkeypatch.setenv("NPROC", "before")
    before = cpus()
    with bound(1):
        assert os.environ["NPROC"] == "1"
        assert cpus() == 1 or not hasattr(os, "sched_setaffinity")
    assert os.environ["NPROC"] == "before"
    assert cpus() == before


def test_available_memory_is_plausible():
    assert 1 << 26 < memory() < 1 << 50


def test_measure_takes_turns(monkeypatch):
    monkeypatch.setattr(timing, "ROUND", 0.0)
    monkeypatch.setattr(timing, "TURN", 0.0)
    played = []
    calls = {name: lambda name=name: played.append(name) for name in "abc"}
    rounds = measure(calls, seconds=0, warming=0)
    assert "".join(played) == "abc" + "aabbcc"
    assert {name: len(times) for name, times in rounds.items()} == {"a": 1, "b": 1, "c": 1}
    played.clear()
    monkeypatch.setattr(timing, "MAX_TURNS", 2)
    measure(calls, seconds=60, warming=0)
    assert "".join(played) == "abc" + "aabbcc" + "ccbbaa"


def test_measure_repeats_what_is_fast(monkeypatch):
    ticks = itertools.count(step=1e-4)  # a call takes 1e-4 seconds by this clock, and so does a look at it
    monkeypatch.setattr(timing, "Timer", lambda call: Timer(call, timer=lambda: next(ticks)))
    played = []
    (rounds,) = measure({"a": lambda: played.append("a")}, seconds=0, warming=0).values()
    assert rounds == [pytest.approx(5e-5)] * 10  # two calls a round, ten rounds a turn
    assert len(played) == 1 + 1 + 20


def test_a_turn_begins_with_calls_until_threads_rest(monkeypatch):
    monkeypatch.setattr(timing, "perf_counter", itertools.count(step=4e-3).__next__)
    played = []
    timing.warm_up(lambda: played.append("a"), 16e-3)
    assert len(played) == 5


CELLS = [
    Cell("row", "uint8", "fresh", 3000, {"bcast": 2e-6, "numpy": 20e-6, "torch": 1e-6, "jax": 4e-6, LIMIT: 1e-7}),
    Cell("row", "uint8", "warm", 3000, {"bcast": 2e-6, "numpy": 1e-6, LIMIT: 1e-6}),
    Cell("column", "float16", "fresh", 8000, {"bcast": 2e-6, "numpy": 1.92e-6, "jax": 1.9e-6}, steady=False),
]


def test_a_cell_knows_its_best_peer_and_to_whom_it_is_lost():
    assert [cell.best_peer for cell in CELLS] == ["torch", None, "jax"]
    assert [cell.lost_to for cell in CELLS] == [["torch"], ["numpy"], []]
    assert CELLS[0].bandwidth == pytest.approx(1.5e9)
    assert math.isnan(CELLS[1].ratio("torch"))


def test_the_table_has_legend_ratios_and_lost_cells():
    lines = render(CELLS, "bcast 1; NumPy 2").splitlines()
    assert lines[0] == "bcast 1; NumPy 2"
    assert "below 0.95 the cell is LOST" in " ".join(lines)
    assert lines[-6].split() == ["workload", "dtype", "state", "bcast,", "us", "GB/s", "NumPy", "best", "peer"]
    assert lines[-5].split() == ["row", "uint8", "fresh", "2.00", "1.5", "10.00", "0.50", "torch", "LOST"]
    assert lines[-4].split() == ["row", "uint8", "warm", "2.00", "1.5", "0.50", "-", "LOST"]
    assert lines[-3].split() == ["column", "float16", "fresh", "2.00", "4.0", "0.96", "0.95", "jax", "?"]
    assert lines[-1] == "2 of 3 cells lost"


def test_the_table_has_a_hundred_columns_at_most():
    cells = [
        Cell(
            workload.name, "float32", "fresh", 1 << 30, {"bcast": 1.0, "numpy": 999.0, "onnxruntime": 0.5}, steady=False
        )
        for workload in grid("float32")
    ]
    assert max(map(len, render(cells, machine(2) * 3).splitlines())) <= 100


def test_a_line_grows_by_a_dot_for_each_cell():
    dots = []
    text = table(seconds=0.4, short=True, grow=dots.append)
    cells = [line for line in text.splitlines() if " fresh " in line or " warm " in line]
    assert dots == ["."] * len(cells)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says what others use")
def test_a_busy_machine_is_told(monkeypatch):
    load = Load()
    assert load.others() <= cpus()
    monkeypatch.setattr(load, "begin", (0.0, 0.0, 0.0))
    monkeypatch.setattr(load, "_now", lambda: (9.0, 3.0, 4.0))
    assert load.caveat() == (f"this machine is busy: other processes used 1.5 of its {cpus()} CPUs; ratios may be off")
    monkeypatch.setattr(load, "_now", lambda: (3.9, 3.0, 4.0))
    assert load.caveat() == ""


@pytest.mark.parametrize(("at_work", "looks"), [(0, 1), (4, 5), (1000, 51)])
def test_settling_waits_for_threads_at_work_but_not_for_ever(at_work, looks, monkeypatch):
    now, used = [0.0], [0.0]

    def sleep(seconds):
        now[0] += seconds
        used[0] += seconds * (round(now[0] / seconds) <= at_work)

    monkeypatch.setattr(benchmark_machine, "sleep", sleep)
    monkeypatch.setattr(benchmark_machine, "perf_counter", lambda: now[0])
    monkeypatch.setattr(benchmark_machine, "process_time", lambda: used[0])
    monkeypatch.setattr(benchmark_machine, "_threads_at_work", lambda: None)
    settle(0.0505)
    assert round(now[0] / 1e-3) == looks


@pytest.mark.skipif(sys.platform != "linux", reason="the state of threads is that of Linux")
def test_settling_sees_a_thread_that_spins():
    assert not benchmark_machine._threads_at_work()
    terms, out = np.ones(1 << 24), np.empty(1 << 24)
    spinner = threading.Thread(target=np.cumsum, args=(terms,), kwargs={"out": out})  # which releases the GIL
    spinner.start()
    seen = []
    while spinner.is_alive():
        seen.append(benchmark_machine._threads_at_work())
    spinner.join()
    assert True in seen
    assert not benchmark_machine._threads_at_work()


def test_rounds_that_disagree_are_seen():
    assert benchmark_table._agree([1.0])
    assert benchmark_table._agree([1.0, 3.0, 1.1, 5.0])
    assert not benchmark_table._agree([1.0, 1.0, 1.3, 1.4])


def test_the_head_names_machine_threads_and_peers():
    where, peers = head(["bcast", "numpy", LIMIT], 2).splitlines()
    assert where == machine(2)
    assert where.startswith(f"bcast {bcast.__version__}; NumPy {np.__version__}; ")
    assert benchmark_machine.cpu() in where
    assert "; on 2 threads each, " in where
    assert "; on 1 thread each, " in machine(1)
    assert peers == "peers: none"


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
    monkeypatch.setattr(benchmark_table, "REPRESENTATIVE", ("3 -> 4x3",))
    monkeypatch.setattr(timing, "MAX_TURNS", 1)
    peers = [name for name in COMPETITORS if name not in benchmark_table.OWN and COMPETITORS[name].installed()]
    (tmp_path / "broken_peer.py").write_text("raise OSError('no such library')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(COMPETITORS, "broken", dataclasses.replace(COMPETITORS["numpy"], modules=("broken_peer",)))
    text = " ".join(table(seconds=100.0).splitlines())
    named = text.partition("peers: ")[2].partition(" missing: ")[0].split("; ")
    assert [version.split()[0] for version in named] == (peers or ["none"])
    assert "missing: broken (no such library) " in text
