"""The planner of copies alone, on paper: the strategy that it chooses for an alignment."""

import random

import pytest

from bcast._copy.plan import explain

# The output's shape, the source, bytes of an item.
PAPER = {
    "copy": [((2, 1000), (1, 1000), 4), ((3, 1, 257), (1, 1, 257), 1), ((5, 9), (5, 1), 1000)],
    "repeat rows": [((100, 3, 20), (100, 1, 20), 1), ((7,), (1,), 17), ((4, 2), (4, 1), 128)],
    "fill": [((10, 64), (10, 1), 4), ((1, 32), (1, 1), 1), ((10**6,), (1,), 16), ((9, 5000), (9, 1), 8)],
    "double": [((3, 5), (3, 1), 1), ((1,), (1,), 2), ((10**6,), (1,), 3), ((2, 2), (2, 1), 4), ((), (), 1)],
    "shuffle": [((480, 3, 3), (480, 1, 3), 1), ((270, 3, 480, 3), (270, 1, 480, 1), 1), ((1000, 50), (1000, 1), 3)],
}


@pytest.mark.parametrize(("strategy", "case"), [(name, case) for name, cases in PAPER.items() for case in cases])
def test_which_row_is_taken(strategy, case):
    assert explain(*case)["strategy"] == strategy


def test_every_alignment_has_a_strategy():
    draw = random.Random(1)
    taken = set()
    for _ in range(2000):
        shape = [draw.choice([1, 2, 3, 16, draw.randint(1, 300)]) for _ in range(draw.randint(0, 6))]
        source = [draw.choice([1, length]) for length in shape]
        itemsize = draw.choice([1, 2, 3, 4, 8, 12, 16, 40])
        got = explain(shape, source, itemsize)
        taken.add(got["strategy"])
        data = out = got["pairs"][-1]["dst_bytes"]
        for pair in got["pairs"][::-1]:
            assert (pair["src_bytes"], pair["dst_bytes"]) == (data, out)
            data *= pair["copied"]
            out *= pair["copied"] * pair["repeated"]
        for length, copied in zip(shape, source, strict=True):
            out, data = out // length, data // copied
        assert out == data == itemsize
    assert taken == PAPER.keys()


@pytest.mark.parametrize(
    "call", [((2,), (3,)), ((2,), (2, 1)), ((0,), (0,)), ((-1,), (1,)), ((2,), (1,), 0), ((), (), -1), ((1,) * 65,) * 2]
)
def test_invalid_alignments_are_refused(call):
    with pytest.raises(ValueError, match="expected"):
        explain(*call)
