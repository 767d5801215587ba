"""The benchmark: competitors do what they say, the table says what was measured."""

import dataclasses
import math

import loops
import numpy as np
import pytest
from bench_search import drawn
from peers import COMPETITORS, LIMIT, prepare
from shapes import FLOATS, SUM_DTYPES, sums
from sum_peers import SUMMERS, SumTask, judge, prepare_sums
from workloads import DTYPES, STATES, Task, Workload, grid

from bcast._benchmark import workloads
from bcast._benchmark.table import table


def in_small(workload):
    data, output = ([min(length, 5) for length in shape] for shape in (workload.data, workload.output))
    return dataclasses.replace(workload, data=tuple(data), output=tuple(output))


def small_workloads(dtype, all_of_them=grid):
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
