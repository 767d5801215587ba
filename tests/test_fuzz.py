"""A few cases of `fuzz.py`, and checks that the fuzzer detects errors."""

import random
import re
import sys

import fuzz
import numpy as np
import pytest

import bcast

GIVING_ARRAYS = [
    name
    for name in bcast.__all__
    if not name.startswith(
        ("get", "set", "infer", "is_", "broadcast_s", "chain_memory", "memory", "patch", "release", "unpatch")
    )
]


MANY = [pytest.param(seed, 5000, marks=pytest.mark.drill) for seed in range(100, 150)]


@pytest.mark.parametrize(("seed", "count"), [*[(seed, 400) for seed in range(5)], *MANY])
def test_some_cases_of_the_fuzz_hold(seed, count):
    for number in range(count):
        fuzz.run_case(seed, number)


def test_every_public_function_is_called():
    called = {name for number in range(1200) for name in fuzz.run_case(0, number)}
    assert called - set(fuzz.NAMED) == set(bcast.__all__) - set(fuzz.NAMED)
    assert len(called & set(fuzz.NAMED)) > 10  # of 64


def test_a_case_is_drawn_from_its_seed_and_number_alone(monkeypatch):
    calls = []
    monkeypatch.setattr(bcast, "broadcast", lambda *_, **options: calls.append(repr(options)))
    for _ in range(2):
        for number in range(20):
            with pytest.raises((AssertionError, AttributeError)):
                fuzz.run_case(7, number, {"broadcast": fuzz.fuzz_broadcast})
    half = len(calls) // 2  # threads of one case call in any order
    assert sorted(calls[:half]) == sorted(calls[half:])


@pytest.mark.parametrize("name", GIVING_ARRAYS)
def test_a_wrong_byte_is_found(name, monkeypatch):
    function = getattr(bcast, name)

    def wrong(*args, **kwargs):
        result = function(*args, **kwargs)
        for array in result if isinstance(result, tuple) else (result,):
            if isinstance(array, np.ndarray) and array.size and not array.dtype.hasobject:
                last = fuzz.raw(array)[-1:] if array.ndim else fuzz.raw(array)
                last[...] = np.bitwise_not(np.frombuffer(last.tobytes(), np.uint8)).view(last.dtype).reshape(last.shape)
        return result

    monkeypatch.setattr(bcast, name, wrong)
    with pytest.raises((AssertionError, ValueError)):
        _ = [fuzz.run_case(0, number, {name: fuzz.FUNCTIONS[name]}) for number in range(100)]


def test_a_byte_outside_is_found():
    for number in range(100):
        operands = fuzz.Operands(random.Random(number), np.dtype("f4"), (3, 4), (3, 4))
        if operands.kept.any() and operands.out is not None and not operands.spoilt:
            break
    expected = operands.data.copy()

    def beside(out):
        np.copyto(out, expected)
        operands.room[np.flatnonzero(operands.kept)[-1]] += 1
        return out

    with pytest.raises(AssertionError, match="wrote elsewhere"):
        operands.check(beside, expected)


@pytest.mark.parametrize("end", ["raise AssertionError", "import os; os.abort()", "exit(3)"])
def test_the_case_that_ends_the_child_is_named(end, tmp_path, monkeypatch, capfd):
    script = tmp_path / "cases.py"
    script.write_text(f"print(0)\nprint(12, flush=True)\n{end}\n")
    monkeypatch.setattr(fuzz, "__file__", str(script))
    assert fuzz.watch(5, 1) != 0
    assert capfd.readouterr().out.endswith("case 12 failed; again: python tests/fuzz.py --seed 5 --case 12\n")


def test_the_command_fuzzes_and_counts(capfd, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["fuzz.py", "--seconds", "1", "--seed", "3"])
    assert fuzz.main() == 0
    out, err = capfd.readouterr()
    assert out.endswith("with seed 3\n")
    assert re.match(r"\d+ cases: \w+ \d+ ", err)
    monkeypatch.setattr(sys, "argv", ["fuzz.py", "--only", "chain", "--count", "30", "--seed", "3"])
    assert fuzz.main() == 0
    assert capfd.readouterr().err.startswith("30 cases: chain ")
