"""The loop nest, on paper: each step against NumPy's own strides, and all steps against a loop over the nest."""

import itertools
import random

import numpy as np
import pytest

from bcast._nest.core import small_nest


def visits(shape, strides, begins):
    """Return the places that a nest visits, one tuple for all operands each, in an order of their own."""
    places = []
    for index in itertools.product(*map(range, shape)):
        places.append(
            tuple(
                begin + sum(i * step for i, step in zip(index, steps, strict=True))
                for begin, steps in zip(begins, strides, strict=True)
            )
        )
    return sorted(places)


# What a step makes of a nest: the shape and the strides of operands, then the same after it, and where they begin.
PAPER = {
    "axes of length 1": ("drop", (1, 4, 1, 3), [(9, 24, 7, 8)], (4, 3), [(24, 8)], [0]),
    "all of them": ("drop", (1, 1), [(8, 8)], (), [()], [0]),
    "rows that go on": ("coalesce", (2, 3, 4), [(96, 32, 8)], (24,), [(8,)], [0]),
    "a gap": ("coalesce", (2, 3, 4), [(100, 32, 8)], (2, 12), [(100, 8)], [0]),
    "an operand that is repeated": ("coalesce", (2, 3, 4), [(96, 32, 8), (0, 8, 0)], (2, 3, 4), None, [0, 0]),
    "one item for all": ("coalesce", (2, 3, 4), [(96, 32, 8), (0, 0, 0)], (24,), [(8,), (0,)], [0, 0]),
    "a sum over the outer axes": ("coalesce", (5, 4, 6), [(192, 48, 8), (0, 0, 8)], (20, 6), [(48, 8), (0, 8)], [0, 0]),
    "backwards": ("flip", (5, 6), [(-48, 8), (0, 8)], (5, 6), [(48, 8), (0, 8)], [-192, 0]),
    "backwards, and the others": ("flip", (5,), [(-8,), (8,)], (5,), [(8,), (-8,)], [-32, 32]),
    "a transposed array": ("sort", (3, 4), [(8, 24), (32, 8)], (4, 3), [(24, 8), (8, 32)], [0, 0]),
    "equal strides stay": ("sort", (3, 4), [(8, 8), (1, 2)], (3, 4), [(8, 8), (1, 2)], [0, 0]),
    "strides of 0 are outside": ("sort", (3, 4, 5), [(40, 0, 8)], (4, 3, 5), [(0, 40, 8)], [0]),
    "NumPy keeps them": ("numpy", (3, 4, 5), [(40, 0, 8)], (3, 4, 5), [(40, 0, 8)], [0]),
    "NumPy asks all operands": ("numpy", (3, 4), [(8, 24), (8, 24)], (4, 3), [(24, 8), (24, 8)], [0, 0]),
    "one is enough to stay": ("numpy", (3, 4), [(8, 24), (32, 8)], (3, 4), [(8, 24), (32, 8)], [0, 0]),
    "two axes at least": ("two", (6,), [(8,), (0,)], (1, 6), [(0, 8), (0, 0)], [0, 0]),
}


@pytest.mark.parametrize("case", PAPER.values(), ids=PAPER)
def test_steps(case):
    step, shape, strides, left, after, begins = case
    assert small_nest(shape, strides, [step]) == (left, strides if after is None else after, begins)


@pytest.mark.parametrize("seed", range(200))
def test_all_steps_visit_the_same_places(seed):
    rng = random.Random(seed)
    rank, count = rng.randint(0, 5), rng.randint(1, 3)
    shape = tuple(rng.choice((1, 1, 2, 3, 4)) for _ in range(rank))
    strides = []
    for _ in range(count):
        places = rng.sample(range(rank), rank)
        step, own = 8, [0] * rank
        for axis in places:
            own[axis] = rng.choice((1, 1, 1, -1, 0, 2)) * step
            step = max(step, abs(own[axis])) * shape[axis]
        strides.append(tuple(own))
    steps = rng.choice((["drop", "flip", "sort", "coalesce", "two"], ["numpy", "drop", "coalesce"], ["drop", "sort"]))
    by = rng.randrange(count)
    left, after, begins = small_nest(shape, strides, steps, by)
    assert visits(left, after, begins) == visits(shape, strides, [0] * count)
    if "sort" in steps:
        own = [abs(step) for step, length in zip(after[by], left, strict=True) if step and length > 1]
        assert own == sorted(own, reverse=True)
    if "coalesce" in steps and "two" not in steps:
        for axis in range(1, len(left)):
            assert any(each[axis - 1] != left[axis] * each[axis] for each in after)


@pytest.mark.parametrize("seed", range(200))
def test_the_order_of_axes_is_numpys(seed):
    """The result of a ufunc has the order in which NumPy iterates over its operands."""
    rng = np.random.default_rng(seed)
    shape = tuple(rng.choice((2, 3, 4), rng.integers(1, 5)).tolist())
    operands = []
    for _ in range(2):
        lengths = [1 if rng.random() < 0.3 else length for length in shape]
        order = rng.permutation(len(shape))
        array = np.zeros([lengths[axis] for axis in order]).transpose(np.argsort(order))
        operands.append(np.broadcast_to(array, shape))
    iterator = np.nditer([*operands, None], op_flags=[["readonly"]] * 2 + [["writeonly", "allocate"]], order="K")
    strides = [each.strides for each in operands]
    _, after, _ = small_nest(shape, strides, ["numpy"])
    result = iterator.operands[2]
    order = sorted(range(len(shape)), key=lambda axis: -result.strides[axis])
    assert after == [tuple(each[axis] for axis in order) for each in strides]


@pytest.mark.parametrize("arguments", [((1,) * 65, [(0,) * 65], []), ((2,), [], []), ((2,), [(8,)], ["turn"])])
def test_refusals(arguments):
    with pytest.raises(ValueError, match=r"^`s(hape|teps)` expected "):
        small_nest(*arguments)
