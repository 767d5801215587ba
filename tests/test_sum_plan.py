"""The planner of sums alone, on paper: its plans for given axes, without arrays."""

import math
import random

import pytest

from bcast._reduce.plan import planned


def axes_of(shape, kept, size=8):
    """Return the axes of a contiguous array and of its sums, as the planner takes them."""
    axes, src_stride, dst_stride = [], size, size
    for length, is_kept in reversed(list(zip(shape, kept, strict=True))):
        axes.append((length, src_stride, dst_stride if is_kept else 0))
        src_stride *= length
        dst_stride *= length if is_kept else 1
    return axes[::-1]


def plan(shape, kept, size=8, **options):
    """Plan the sum of a contiguous array over the axes that are not kept."""
    got = planned(axes_of(shape, kept, size), size, **options)
    lengths = {name: [axis["length"] for axis in got[name]["axes"][: got[name]["rank"]]] for name in ("block", "loops")}
    return got | lengths | {"items": got["block"]["items"]}


# The shape, which axes are kept; whether runs are summed, and written; the block, its loops, tiles, shares of a tile.
PAPER = {
    "rows of 64": ((1000, 64), (0, 1), False, False, [1, 64], [], 1, 1),
    "eight rows": ((8, 100), (0, 1), False, True, [1, 100], [], 1, 1),
    "nine rows": ((9, 100), (0, 1), False, False, [1, 100], [], 1, 1),
    "runs": ((64, 1000), (1, 0), True, True, [64], [], 1, 1),
    "short runs": ((1000, 3), (1, 0), True, True, [1000], [], 1, 1),
    "parts of complex numbers": ((1000, 2), (0, 1), True, True, [1, 2], [], 1, 1),
    "joined rows": ((100_000, 3), (0, 1), False, False, [1, 170, 3], [], 1, 4),
    "images": ((8, 16, 2500), (0, 1, 0), True, False, [16], [8], 1, 4),
    "everything": ((1_000_000,), (0,), True, False, [1], [], 1, 15),
    "long rows": ((100, 100_000), (0, 1), False, False, [1, 100_000], [], 64, 1),
    "kept in the middle": ((50, 40, 30, 64), (0, 1, 0, 1), False, False, [40, 64], [50], 5, 12),
}


@pytest.mark.parametrize("case", PAPER.values(), ids=PAPER)
def test_chosen_plans(case):
    shape, kept, runs, writes, block, loops, tiles, each = case
    got = plan(shape, kept)
    assert (got["call"]["runs"], got["call"]["writes"]) == (runs, writes)
    assert (got["block"], got["loops"]) == (block, loops)
    assert (got["tiles"]["count"], got["shares"]["each"]) == (tiles, each)


def test_results_apart_are_not_written():
    assert planned([(64, 8000, 8), (1000, 8, 0)])["call"]["writes"]
    assert not planned([(64, 8000, 16), (1000, 8, 0)])["call"]["writes"]


@pytest.mark.parametrize(("groups", "length", "runs"), [(1, 64, False), (7, 64, False), (8, 64, True), (7, 600, True)])
def test_few_short_runs_of_each_call_are_rows(groups, length, runs):
    """One call of the kernel has many rows: the summed axis outside."""
    kept = [(groups, 1 << 14, 8)] if groups > 1 else []
    got = planned([(1000, 1 << 20, 0), *kept, (length, 8, 0)])
    assert got["call"]["runs"] == runs
    assert got["call"]["along"]["length"] == (length if runs else 1000)
    assert not got["call"]["along"]["kept"]


@pytest.mark.parametrize(
    ("groups", "inner", "gathers"), [(2000, 3, True), (4, 8, True), (3, 8, False), (2000, 9, False)]
)
@pytest.mark.parametrize("packed", [False, True])
def test_rows_of_pieces_apart_are_gathered(groups, inner, gathers, packed):
    axes = [(128, 1 << 20, 0), (groups, 384, 8 * inner), (inner, 8, 8)]
    got = planned(axes, packed=packed)
    assert got["call"]["gathers"] == gathers
    assert not got["call"]["writes"]
    assert got["block"]["axes"][1]["length"] == (groups if gathers else inner)
    if gathers:
        assert got["tiles"]["length"] * inner <= 512
        assert got["scratch"] >= got["block"]["items"] * 8 + 8 * 512 * 8


@pytest.mark.parametrize(("rows", "inner", "within"), [(100_000, 2, 256), (800, 3, 100), (64, 3, 8), (63, 3, 1)])
def test_rows_apart_are_gathered_into_longer_ones(rows, inner, within):
    got = planned([(rows, 384, 0), (inner, 8, 8)])
    assert got["call"]["gathers"] == (within > 1)
    assert got["call"]["within"] == within
    assert got["block"]["items"] == within * inner


def test_packed_terms_need_scratch_and_are_not_written():
    got = plan((64, 1000), (1, 0), packed=True)
    assert not got["call"]["writes"]
    assert got["scratch"] == 64 * 8 + 8 * 512 * 8


def test_the_longest_summed_axis_is_shared():
    assert plan((8, 16, 2500), (0, 1, 0))["shares"]["axis"] == 0
    assert plan((2, 2, 1_000_000), (0, 1, 0))["shares"]["axis"] == -1


def test_one_share_cuts_no_summed_axis():
    for shape, kept in ((1_000_000,), (0,)), ((100_000, 3), (0, 1)), ((8, 16, 2500), (0, 1, 0)):
        assert plan(shape, kept, shares=1)["shares"]["each"] == 1


def test_no_term_is_left_out():
    """The loops, the block and the calls within take each index once; tiles hold as many as a block has room for."""
    draw = random.Random(1)
    for _ in range(3000):
        shape = [draw.choice([2, 3, 5, 8, 31, 64, draw.randint(2, 500)]) for _ in range(draw.randint(1, 6))]
        kept = [draw.randint(0, 1) for _ in shape]
        size, packed = draw.choice([(4, False), (8, False), (8, True)])
        got = plan(shape, kept, size, packed=packed)
        tiles, call, block = got["tiles"], got["call"], got["block"]
        terms = math.prod(got["loops"]) * math.prod(block)
        if not call["along"]["kept"]:
            terms = terms // call["within"] * call["along"]["length"]
        assert terms == math.prod(shape)
        cut = block[tiles["axis"]]
        assert (tiles["along"] - 1) * tiles["length"] < cut <= tiles["along"] * tiles["length"]
        assert got["items"] == math.prod(block) // cut * tiles["length"]
        assert got["shares"]["count"] == tiles["count"] * got["shares"]["each"]
        assert got["scratch"] >= got["items"] * size


@pytest.mark.parametrize("axes", [[(1, 8, 8)], [(0, 8, 8)], [(2**60, 8, 0)], [(2, 8, 8)] * 60])
def test_axes_that_do_not_exist_are_refused(axes):
    with pytest.raises(ValueError, match="`axes` expected"):
        planned(axes)
