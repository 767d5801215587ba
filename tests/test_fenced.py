"""No byte outside of the two buffers is read or written: each borders on a page without access rights.

A stray access kills the process, and so fails the test. A stray write within accessible pages changes known bytes.
Shapes are distributed over the ways of `_ways.py`.
"""

import ctypes
import itertools
import math
import mmap
import sys

import numpy as np
import pytest
from _ways import SUMS, WAYS, summed, written

import bcast
from bcast._runtime import core as runtime

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="fences the buffers by mprotect")

PROT_NONE = 0
LENGTHS = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 100, 130, 520, 1000, 5000)
ROOM = 1 << 20
PAINT = 0xA5


@pytest.fixture(scope="module", params=["end", "start"])
def rooms(request):
    """Two writable stretches of memory fenced at both ends, and a function that lays bytes flush against one end."""
    maps = [mmap.mmap(-1, ROOM + 2 * mmap.PAGESIZE) for _ in range(2)]
    mprotect = ctypes.CDLL(None, use_errno=True).mprotect
    mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]

    def protect(map_, protection):
        address = ctypes.addressof(ctypes.c_char.from_buffer(map_))
        for fence in (address, address + mmap.PAGESIZE + ROOM):
            assert mprotect(fence, mmap.PAGESIZE, protection) == 0, ctypes.get_errno()

    for map_ in maps:
        protect(map_, PROT_NONE)
    rooms = [np.frombuffer(map_, np.uint8, ROOM, mmap.PAGESIZE) for map_ in maps]
    yield (*rooms, (lambda room, n: room[ROOM - n :]) if request.param == "end" else (lambda room, n: room[:n]))
    for map_ in maps:
        protect(map_, mmap.PROT_READ | mmap.PROT_WRITE)


def random_shapes(rng, itemsize):
    """Return the shape of some data and the one it is broadcast to, of axes that alternate as luck has it."""
    rank = rng.integers(1, 8)
    while True:
        weights = 1 / np.array(LENGTHS) ** rng.uniform(0, 1.5)
        shape = tuple(rng.choice(LENGTHS, rank, p=weights / weights.sum()).tolist())
        if math.prod(shape) * itemsize <= ROOM:
            break
    return tuple(np.where(rng.random(rank) < 0.5, 1, shape).tolist()), shape


def random_way(rng):
    return WAYS[rng.integers(len(WAYS))]


def broadcast_fenced(rooms, way, data, shape):
    """Broadcast data to the other room, which is `PAINT` before and after."""
    _, out_room, flush = rooms
    out = flush(out_room, math.prod(shape) * data.itemsize)
    array = out.view(data.dtype).reshape(shape)
    what = f"{data.shape}, {data.strides} -> {shape} of {data.itemsize} bytes, {' '.join(way)}"
    with written(*way):
        bcast.broadcast(data, shape, out=array)
    np.testing.assert_array_equal(array, np.broadcast_to(data, shape), err_msg=what)
    out[:] = PAINT
    assert (out_room == PAINT).all(), f"{what} wrote outside"


def fenced(rooms, itemsize, shape):
    """An array of any bytes, flush against a fence."""
    return rooms[2](rooms[0], math.prod(shape) * itemsize).view((np.void, itemsize)).reshape(shape)


def check(rooms, way, itemsize, source, shape):
    broadcast_fenced(rooms, way, fenced(rooms, itemsize, source), shape)


def check_turned(rooms, way, itemsize, lengths, order, rng):
    """Copy data whose axes have another order in memory, with or without gaps, from one buffer to the other."""
    base = [n + int(rng.integers(3)) * (rng.random() < 0.3) for n in lengths]
    if math.prod(base) * itemsize > ROOM:
        base = lengths
    data = fenced(rooms, itemsize, base)
    ends = data.ctypes.data != rooms[0].ctypes.data  # then the last item is at the fence, or else the first
    cut = tuple(slice(m - n, m) if ends else slice(n) for n, m in zip(lengths, base, strict=True))
    data = data[cut].transpose(order)
    broadcast_fenced(rooms, way, data, data.shape)


def fill(rooms, rng):
    rooms[0][:] = rng.integers(0, 256, ROOM, np.uint8)
    rooms[1][:] = PAINT


@pytest.mark.parametrize("count", [200, pytest.param(500, marks=pytest.mark.soak)], ids=["short", "soak"])
@pytest.mark.parametrize("itemsize", range(1, 34))
def test_random_shapes_stay_within_the_fences(rooms, itemsize, count):
    rng = np.random.default_rng(itemsize)
    fill(rooms, rng)
    for _ in range(count):
        check(rooms, random_way(rng), itemsize, *random_shapes(rng, itemsize))


@pytest.mark.parametrize("name", ["max", "min", "any", "all", "argmax", "argmin", "prod"])
@pytest.mark.parametrize("dtype", ["?", "u1", "i2", "f2", "f4", "i8", "f8"])
def test_reductions(rooms, dtype, name):
    """Runs and rows of any length, whose last vectors are moved back."""
    rng = np.random.default_rng(0)
    fill(rooms, rng)
    data_room, out_room, flush = rooms
    dtype = np.dtype(dtype)
    function, numpys = getattr(bcast, name), getattr(np, name)
    for n in (*range(2, 70), 127, 129, 300):
        cells = (((5, n, 2), 1), ((4, 3, n), 1))
        for shape, axis in ((3, n), 1), ((n, 3), 1), ((n, 3), 0), ((2, n), 0), ((9, n), 0), ((n,), 0), *cells:
            data = flush(data_room, math.prod(shape) * dtype.itemsize)
            data[:] &= 1
            data = data.view(dtype).reshape(shape)
            right = np.asarray(numpys(data, axis))
            out = flush(out_room, right.nbytes)
            array = out.view(right.dtype).reshape(right.shape)
            with summed(*SUMS[rng.integers(len(SUMS))]):
                function(data, axis, out=array)
            np.testing.assert_array_equal(array, right)
            out[:] = PAINT
            assert (out_room == PAINT).all(), (shape, axis)


@pytest.mark.parametrize("dtype", ["?", "u1", "i2", "f2", "f4", "i8", "f8"])
def test_pairs(rooms, dtype):
    """One of both results ends at the fence."""
    rng = np.random.default_rng(0)
    fill(rooms, rng)
    data_room, out_room, flush = rooms
    dtype = np.dtype(dtype)
    for n in (*range(2, 70), 127, 129, 300):
        for shape, axis in ((3, n), 1), ((n, 3), 1), ((n, 3), 0), ((2, n), 0), ((9, n), 0), ((5, n, 2), 1), ((n,), 0):
            data = flush(data_room, math.prod(shape) * dtype.itemsize)
            data[:] &= 1
            data = data.view(dtype).reshape(shape)
            right = np.stack([data.min(axis), data.max(axis)])
            out = flush(out_room, right.nbytes)
            pair = out.view(dtype).reshape(right.shape)
            for step in 1, -1:
                with summed(*SUMS[rng.integers(len(SUMS))]):
                    bcast.minmax(data, axis, (pair[::step][0, ...], pair[::step][1, ...]))
                np.testing.assert_array_equal(pair[::step], right)
            out[:] = PAINT
            assert (out_room == PAINT).all(), (shape, axis)


@pytest.mark.parametrize("itemsize", range(1, 34))
def test_strided_data(rooms, itemsize):
    rng = np.random.default_rng(itemsize)
    fill(rooms, rng)
    for _ in range(200):
        lengths = random_shapes(rng, itemsize)[1]
        check_turned(rooms, random_way(rng), itemsize, lengths, rng.permutation(len(lengths)), rng)


@pytest.mark.parametrize("step", [-3, -2, -1, 2, 3, 4, 5])
@pytest.mark.parametrize("itemsize", [1, 2, 4, 8, 16])
def test_rows_at_a_step_of_few_items(rooms, itemsize, step):
    """Vectors of them are shuffled: on both sides of what fills one, no vector reads behind the last item."""
    rng = np.random.default_rng(itemsize)
    fill(rooms, rng)
    for target in runtime.TARGETS:
        for n in (*range(1, 70), 127, 128, 129, 255, 256, 257, 1000):
            data = fenced(rooms, itemsize, ((n - 1) * abs(step) + 1,))[::step]
            broadcast_fenced(rooms, (target, "ordinary"), data, (n,))
        for rows, n in (2, 40), (3, 65), (5, 130), (40, 3):
            data = fenced(rooms, itemsize, (rows, (n - 1) * abs(step) + 1))[:, ::step]
            broadcast_fenced(rooms, (target, "ordinary"), data, (rows, n))


@pytest.mark.drill
@pytest.mark.parametrize("seed", range(60))
def test_many_random_shapes(rooms, seed):
    rng = np.random.default_rng((seed, 2026))
    fill(rooms, rng)
    for _ in range(4000):
        itemsize = int(rng.integers(1, 34))
        check(rooms, random_way(rng), itemsize, *random_shapes(rng, itemsize))


@pytest.mark.parametrize("itemsize", range(1, 34))
@pytest.mark.parametrize("n", [1, 2, 15, 17])
def test_every_short_run(rooms, itemsize, n):
    rng = np.random.default_rng((itemsize, n))
    fill(rooms, rng)
    for k in (2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 129, 511, 512, 513):
        check(rooms, random_way(rng), itemsize, (n, 1), (n, k))
        check(rooms, random_way(rng), itemsize, (1, n), (k, n))


@pytest.mark.parametrize("size", [17, 24, 31, 32, 48, 63, 96, 100, 192, 224, 257, 999, 1000, 1024, 2049, 4001])
def test_long_runs_stay_within_the_fences(rooms, size):
    """Repetitions of a short pattern, by stores that begin at whole vectors, for any start of the output."""
    rng = np.random.default_rng(size)
    fill(rooms, rng)
    for room in (32767, 32768, 32800, 40000, 70000):
        for k in (room // size, room // size + 1):
            check(rooms, random_way(rng), size, (1, 1), (k, 1))
            check(rooms, random_way(rng), size, (3, 1), (3, k))
            check(rooms, random_way(rng), 1, (1, 7, 1, size), (k // 21 + 1, 7, 3, size))


@pytest.mark.parametrize("dtype", ["u1", "i4", "i8", "f2", "f4", "f8"])
def test_short_vectors(rooms, dtype):
    """Every count up to a few registers: dense, in columns, or a repeated vector."""
    source, other, laid = rooms
    for way in SUMS:
        for length in (2, 3, 4):
            for count in (*range(1, 19), 255, 256, 257):
                items = [laid(room, count * length * np.dtype(dtype).itemsize).view(dtype) for room in (source, other)]
                for each in items:
                    each[...] = np.arange(each.size) % 7
                a, b = (each.reshape(count, length) for each in items)
                c, d = (each.reshape(length, count).T for each in items)
                with summed(*way):
                    for x, y in ((a, b), (c, d), (a, d), (a, b[:1]), (c[:1], d)):
                        right = (x.astype("i8") * y.astype("i8")).sum(-1).astype(dtype)
                        assert np.array_equal(bcast.vecdot(x, y), right)
                        if length == 3 and dtype != "f2":
                            assert np.array_equal(bcast.cross(x, y), np.cross(x, y))
                    assert np.array_equal(bcast.matvec(b[:3], a), a @ b[:3].T)
                    squares = (a.astype("f8") ** 2).sum(-1)
                    assert np.allclose(bcast.norm(a).astype("f8") ** 2, squares, rtol=1e-2 if dtype == "f2" else 1e-6)
                    columns = [items[0][k * count : (k + 1) * count] for k in range(length)]
                    assert np.array_equal(bcast.stack(columns, -1), np.stack(columns, -1))
                    for x in a, c:
                        spread = x.astype("f8").std(-1)
                        room = 1e-2 if dtype == "f2" else 1e-6
                        assert np.allclose(bcast.mean_std(x, -1)[1], spread, room)
                        assert np.allclose(bcast.nanstd(x, -1), spread, room)
                    out = items[1][:count]
                    if dtype[0] == "f":
                        assert np.allclose(bcast.std(a, -1, out=out), a.astype("f8").std(-1), room)
                    assert bcast.vecdot(a, a[0], out=out) is out
                    assert np.array_equal(out, (a.astype("i8") * a[0].astype("i8")).sum(-1).astype(dtype))


@pytest.mark.parametrize("dtype", ["u1", "i2", "f4", "f8"])
def test_chains_that_reduce(rooms, dtype):
    """Pieces of lanes, and rows of results, of every length around vectors and tiles."""
    data_room, out_room, flush = rooms
    for length, shape in itertools.product((*range(32, 67), 127, 129, 130, 300), ((-1, 3), (3, -1), (-1, 40), (-1, 1))):
        shape = tuple(length if each < 0 else each for each in shape)
        data = flush(data_room, math.prod(shape) * np.dtype(dtype).itemsize).view(dtype).reshape(shape)
        data[...] = np.arange(data.size).reshape(shape) % 7
        limit = np.full(shape[-1], 3, dtype)
        calls = [((np.less, limit), (np.all, axis)) for axis in (0, 1)] + [((np.less, limit), (np.sum, 0))]
        if dtype in ("f4", "f8"):
            calls += [((np.subtract, limit), (np.max, 0)), ((np.subtract, limit), np.square, (np.sum, 1))]
        for *steps, (reduction, axis) in calls:
            terms = data
            for step in steps:
                terms = step[0](terms, step[1]) if isinstance(step, tuple) else step(terms)
            right = reduction(terms, axis=axis)
            out_room[:] = PAINT
            out = flush(out_room, right.nbytes)
            bcast.chain(data, *steps, (reduction, axis), out=out.view(right.dtype).reshape(right.shape))
            np.testing.assert_array_equal(out.view(right.dtype).reshape(right.shape), right)
            out[:] = PAINT
            assert (out_room == PAINT).all()
