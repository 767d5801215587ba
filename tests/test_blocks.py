"""Outputs that are cut into blocks: whole units of the output, few reads of the input, limited memory."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bcast._cli.blocks import blocks, refit, units
from bcast._rules.alignment import Alignment

ALIGNMENTS = {
    "scalar": Alignment((), ()),
    "alternating": Alignment((3, 4, 3, 4), (3, 1, 1, 4)),
    "leading_1s": Alignment((1, 1, 3, 1, 8), (1, 1, 3, 1, 1)),
    "long_inner": Alignment((2, 97), (2, 97)),
}


def part_of(place, source):
    return refit(place, source, source, slice(0, 1))


@pytest.mark.parametrize("items", [1, 6, 50, 10**6])
@pytest.mark.parametrize("alignment", ALIGNMENTS.values(), ids=ALIGNMENTS)
def test_blocks_cover_the_output_once_and_are_adjacent(alignment, items):
    times = np.zeros(alignment.shape, dtype=np.uint8)
    data = np.zeros(alignment.source)
    lengths = units(alignment.shape, [1] * len(alignment.shape), items)
    places = list(blocks(alignment, lengths))
    for place in places:
        part = times[*place, ...]
        assert part.flags.c_contiguous
        assert part.size <= items
        assert np.broadcast_shapes(data[*part_of(place, alignment.source), ...].shape, part.shape) == part.shape
        part += 1
    assert (times == 1).all()
    # No more blocks than the size asks for, but for a short one at the end of each row of them.
    assert len(places) <= 2 * times.size // items + 1


@st.composite
def cuts(draw):
    """Give a shape, lengths that are wanted, and a number of items."""
    shape = tuple(draw(st.lists(st.integers(1, 12), max_size=4)))
    wanted = [draw(st.integers(1, 15)) for _ in shape]
    return shape, wanted, draw(st.integers(1, 300))


@given(cuts())
def test_blocks_are_as_long_as_wanted_if_there_is_room(cut):
    shape, wanted, items = cut
    lengths = units(*cut)
    assert math.prod(lengths) <= items
    assert all(1 <= length <= whole for length, whole in zip(lengths, shape, strict=True))
    least = [min(pair) for pair in zip(wanted, shape, strict=True)]
    if math.prod(least) <= items:
        assert all(length >= low for length, low in zip(lengths, least, strict=True))


@given(cuts(), st.lists(st.booleans(), min_size=4, max_size=4))
def test_no_part_of_the_data_is_read_twice(cut, stretched):
    shape = cut[0]
    alignment = Alignment(shape, tuple(1 if one else n for n, one in zip(shape, stretched, strict=False)))
    times = np.zeros(shape, dtype=np.uint8)
    parts = []
    for place in blocks(alignment, units(*cut)):
        times[*place, ...] += 1
        parts.append(str(part_of(place, alignment.source)))
    assert (times == 1).all()
    assert len(list(itertools.groupby(parts))) == len(set(parts))


def test_refit_moves_values_with_their_axes():
    assert refit("abc", (2, 1, 3), (1, 2, 3, 1), "-") == ("-", "a", "c", "-")
    assert refit("ab", (1, 1), (), "-") == ()
