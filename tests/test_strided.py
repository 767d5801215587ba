"""Copies of strided data to contiguous arrays: every layout, sizes near squares and tiles, targets, threads."""

import itertools
import random

import numpy as np
import pytest
from _ways import WAYS, written
from numpy.lib.stride_tricks import as_strided

import bcast
from bcast._kernel import replicate
from bcast._rules.alignment import Alignment
from bcast._runtime import core as runtime

ITEMSIZES = [1, 2, 3, 4, 6, 8, 12, 16, 17, 40]


def items(shape, itemsize):
    size = int(np.prod(shape)) * itemsize
    return (np.arange(size, dtype=np.uint32) * 40_503 >> 8).astype(np.uint8).view((np.void, itemsize)).reshape(shape)


def check(data, way, shape=None):
    shape = data.shape if shape is None else shape
    with written(*way):
        result = bcast.broadcast(data, shape)
    assert result.flags.c_contiguous
    np.testing.assert_array_equal(result, np.broadcast_to(data, shape), strict=True, err_msg=f"{data.strides} {way}")


# Sides of squares, of pairs of squares, and of tiles; one less and one more.
SIDES = sorted({n + d for n in (2, 4, 8, 16, 32, 64, 128, 256, 512) for d in (-1, 0, 1)} | {5, 40, 100, 1030})


@pytest.mark.parametrize("itemsize", ITEMSIZES)
def test_matrices_around_every_side(itemsize):
    rng, targets = random.Random(itemsize), itertools.cycle(runtime.TARGETS)
    for n in SIDES:
        for m in (1, 2, 3, 4, n, *rng.sample(SIDES, 2)):
            base = items((n + 2, m + 3), itemsize)
            inside = base[1:-1, 2:-1].T  # with gaps
            for data in (items((n, m), itemsize).T, inside, inside[::-1], inside[:, ::-1], base[::2, ::3].T):
                check(data, (next(targets), "ordinary"))


LAYOUTS = {
    "short axes around a long one": lambda: items((3, 500, 2), 4).T,
    "channels first": lambda: items((50, 70, 3), 1).transpose(2, 0, 1),
    "channels last": lambda: items((4, 50, 70), 2).transpose(1, 2, 0),
    "two channels of a batch": lambda: items((3, 40, 50, 2), 4).transpose(0, 3, 1, 2),
    "three of four channels": lambda: items((50, 70, 4), 1)[..., :3].transpose(2, 0, 1),
    "channels of rows with gaps": lambda: items((50, 80, 3), 1)[:, :70].transpose(2, 0, 1),
    "many channels first": lambda: items((2, 30, 20, 64), 1).transpose(0, 3, 1, 2),
    "width and height": lambda: items((90, 60, 3), 1).swapaxes(0, 1),
    "all axes turned round": lambda: items((30, 40, 3, 5), 2).T,
    "axes in a circle": lambda: items((7, 30, 40), 8).transpose(1, 2, 0),
    "short innermost axes": lambda: items((100, 3, 200, 2), 1).transpose(2, 0, 3, 1),
    "short axes outermost": lambda: items((2, 3, 100, 90), 1).transpose(3, 1, 2, 0),
    "axes of 2": lambda: items((2,) * 14, 1).T,
    "as many axes as an array has": lambda: items((2, 1, 1, 1) * 13 + (1,) * 12, 2).T,
    "stepped": lambda: items((3000,), 4)[::3],
    "stepped, in rows of two": lambda: items((3000, 4), 2)[:, ::2],
    "backwards": lambda: items((3000,), 2)[::-1],
    "backwards on each axis": lambda: items((30, 40, 5), 1)[::-1, ::-1, ::-1].transpose(1, 0, 2),
    "long runs": lambda: items((9, 3000), 1)[:, 5:2900],
    "long runs turned": lambda: items((9, 8, 300), 1).swapaxes(0, 1),
    "one item": lambda: items((40, 50), 4)[3:4, 7:8],
    "diagonal": lambda: as_strided(items((90, 90), 4), (90,), (91 * 4,)),
    "windows": lambda: as_strided(items((900,), 1), (300, 600), (1, 1)),
    "a matrix repeated already": lambda: as_strided(items((60, 50), 2), (50, 7, 60), (2, 0, 100)),
    "a row repeated already": lambda: as_strided(items((60,), 2), (70, 60), (0, 2)),
    "an item repeated already": lambda: as_strided(items((1,), 16), (70, 60), (0, 0)),
    "unaligned": lambda: items((60 * 50 * 8 + 3,), 1)[3:].view((np.void, 8)).reshape(60, 50).T,
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_strided_data_is_copied_from_every_layout(layout):
    data = LAYOUTS[layout]()
    data.flags.writeable = False
    for way in itertools.product(runtime.TARGETS, ["ordinary", "threads"]):
        check(data, way)
        if data.ndim < 60:
            check(data, way, (3, *data.shape))
            check(data[:, None], way, (data.shape[0], 2, *data.shape[1:]))


@pytest.mark.parametrize("itemsize", ITEMSIZES)
def test_random_layouts(itemsize):
    rng = random.Random(itemsize)
    for _ in range(150):
        lengths = [rng.choice([1, 2, 3, 4, 5, 8, 16, 17, 33, 64, 100]) for _ in range(rng.randint(1, 5))]
        while np.prod(lengths) > 50_000:
            lengths[lengths.index(max(lengths))] = 2
        steps = [rng.choice([1, 1, 1, 2, -1, -3]) for _ in lengths]
        base = items([n * abs(step) + rng.randint(0, 2) for n, step in zip(lengths, steps, strict=True)], itemsize)
        cut = base[tuple(slice(None, None, step) for step in steps)][tuple(map(slice, lengths))]
        data = cut.transpose(rng.sample(range(cut.ndim), cut.ndim))
        check(data, rng.choice(WAYS), tuple(rng.choice([1, 2, 3]) if n == 1 else n for n in data.shape))


@pytest.mark.parametrize("itemsize", [1, 4, 16, 24])
def test_the_result_may_take_the_place_of_the_data(itemsize):
    for data in items((300, 300), itemsize), items((8, 8), itemsize):
        expected = data.T.copy()
        assert bcast.broadcast(data.T, data.shape, out=data) is data
        np.testing.assert_array_equal(data, expected, strict=True)
    room = items((400, 100), itemsize)
    expected = np.broadcast_to(room[:100].T, (3, 100, 100)).copy()
    out = room[50:350].reshape(3, 100, 100)
    bcast.broadcast(room[:100].T, out.shape, out=out)
    np.testing.assert_array_equal(out, expected, strict=True)


def test_resized_data_is_refused():
    out = np.empty((50, 40))
    for shape in (40, 51), (41, 50), (0, 50), (40,), (40, 50, 2):
        data = np.zeros(shape[::-1] + (2,))[..., 0]
        with pytest.raises(ValueError, match="resized"):
            replicate(data, Alignment((50, 40), (50, 40)), out)
    for size in 1999, 2001, 4001:
        with pytest.raises(ValueError, match=r"resized|reshape"):
            replicate(np.zeros((40, 50)).T, Alignment((50, 40), (50, 40)), np.empty(size))
