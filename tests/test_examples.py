"""The worked examples of the four specifications, and a check that a wrong result would be noticed."""

from dataclasses import replace

import pytest
from _examples import failure, load

EXAMPLES = [example for examples in load().values() for example in examples]


def test_no_example_is_missing():
    assert [len(examples) for examples in load().values()] == [7, 25, 9, 6]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: f"{example.page}: {example.where}")
def test_every_worked_example_of_the_specifications_holds(example):
    assert failure(example) is None


def find(where):
    (example,) = [example for example in EXAMPLES if example.where == where]
    return example


# A change that makes an example wrong.
WRONG = {
    "another_shape": ("layer 1, numpy", {"result": [1, 16, 50, 51]}),
    "not_refused": ("numpy 5", {"result": None}),
    "refused": ("PDPD 7, axis 1, refused", {"result": [8, 1, 6, 1]}),
    "values": ("AxisSet{1}", {"values": [["a", "b"], ["a", "b"], ["a", "b"]]}),
    "backprop_shape": ("Backprop, AxisSet{0}", {"result": [2]}),
    "alignment": ("layer 3, explicit", {"target": [50] * 3, "result": [50] * 3, "source": [50, 50, 1]}),
}


@pytest.mark.parametrize(("where", "change"), WRONG.values(), ids=WRONG)
def test_wrong_example_is_noticed(where, change):
    assert failure(replace(find(where), **change)).startswith("expected ")
