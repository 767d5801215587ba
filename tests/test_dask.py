"""`bcast.dask`: Dask's own tests with its functions in place, NumPy's results for all chunks, graphs, refusals."""

import ast
import itertools
import math
import operator
import pickle
import sys
import tracemalloc
import warnings
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from _commands import printed, python
from hypothesis import given, settings
from hypothesis import strategies as st

import bcast

pytestmark = pytest.mark.peers  # they run where Dask is sure to be installed

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

from dask._task_spec import Task  # noqa: E402 (there may be no Dask)
from dask.array.utils import assert_eq, same_keys  # noqa: E402
from dask.callbacks import Callback  # noqa: E402

import bcast.dask  # noqa: E402

assert_equal = partial(assert_eq, scheduler="sync")

LIMIT = 1 << 20  # bytes of a chunk in these tests


def fail(*_, **__):
    raise AssertionError("a graph was computed while it was built")


@pytest.fixture(autouse=True)
def lazy(request):
    """Compute nothing but where a test says so, and keep chunks small; give Dask's own tests our functions."""
    with pytest.MonkeyPatch.context() as patch:
        is_dasks = request.function.__module__.startswith("dask.")
        if is_dasks:
            module = sys.modules[request.function.__module__]
            patch.setattr(module, "da", Functions())
            patch.setattr(module, "broadcast_to", bcast.dask.broadcast_to, raising=False)
        with dask.config.set({"scheduler": "sync"} if is_dasks else {"scheduler": fail, "array.chunk-size": LIMIT}):
            yield


def tasks(array):
    """Count the tasks that a scheduler gets, without those that make the data."""
    graph = dict(dask.optimize(array)[0].__dask_graph__())
    return sum(isinstance(task, Task) and "ones" not in key[0] for key, task in graph.items())


def block_of(array):
    """Compute the first block, as it is where it is computed."""
    return dask.get(dict(array.__dask_graph__()), (array.name,) + (0,) * array.ndim)


def check(function, data, *args, chunks=None, expected=None, **kwargs):
    """Compare a function of one array with bcast's own, and its name with that of a second call."""
    lazily = data if chunks is None else da.from_array(data, chunks=chunks)
    result = getattr(bcast.dask, function)(lazily, *args, **kwargs)
    again = getattr(bcast.dask, function)(lazily, *args, **kwargs)
    assert same_keys(result, again)
    assert result.name == again.name
    for extra in ("chunks", "materialise", "split_every"):
        kwargs.pop(extra, None)
    expected = getattr(bcast, function)(data, *args, **kwargs) if expected is None else expected
    assert_equal(result, expected)
    assert result.dtype == expected.dtype
    return result


# Dask's own tests


class Functions:
    ours = ("tile", "repeat", "meshgrid", "broadcast_to")

    def __getattr__(self, name):
        return getattr(bcast.dask if name in self.ours else da, name)


for module, prefixes in (
    ("dask.array.tests.test_creation", ("test_tile", "test_repeat", "test_meshgrid")),
    ("dask.array.tests.test_array_core", ("test_broadcast_to",)),
):
    module = pytest.importorskip(module, reason="Dask was installed without its tests", exc_type=ImportError)
    globals().update({name: test for name, test in vars(module).items() if name.startswith(prefixes)})


# Results


@pytest.mark.parametrize("materialise", [False, True])
@pytest.mark.parametrize("chunks", [(4, 1, 6), (3, 1, 2), (1, 1, 1)])
@pytest.mark.parametrize(
    ("shape", "arguments"),
    [
        ((4, 5, 6), {}),
        ((2, 4, 1, 6), {}),
        ((2, 4, 0, 6), {}),
        ((4, 5, 6, 3), {"axes_mapping": [0, 1, 2], "mode": "explicit"}),
        ((2, 4, 1, 5, 6), {"broadcast_axes": {0, 3}, "mode": "explicit"}),
        ((1, 5, 1), {"mode": "bidirectional"}),
        ((2, 4, 1, 6, 7), {"mode": "pdpd", "axis": 1}),
        ((4, 1, 6), {"mode": "none"}),
    ],
)
@pytest.mark.parametrize("dtype", [None, np.float32])
def test_modes(shape, arguments, chunks, materialise, dtype):
    data = np.arange(24).reshape(4, 1, 6)
    result = check("broadcast", data, shape, chunks=chunks, materialise=materialise, dtype=dtype, **arguments)
    check("broadcast_like", data, np.empty(shape), chunks=chunks, materialise=materialise, dtype=dtype, **arguments)
    block = block_of(result)
    if materialise and block.size:
        assert block.flags.writeable
        assert block.flags.c_contiguous


@pytest.mark.parametrize("data", [5, np.float32(2), [1, 2], [[True], [False]], np.array("text"), np.array([None, 1])])
def test_array_likes(data):
    shape = np.shape(data)
    for function, argument in (("broadcast", (3, *shape)), ("broadcast_to", (3, *shape)), ("tile", (3, 1))):
        check(function, data, argument)
    assert_equal(bcast.dask.repeat(data, 2, axis=0), np.repeat(data, 2, axis=0))


def test_new_axes_are_cut():
    data = da.ones((100, 1, 30), chunks=(50, 1, 30), dtype="f8")
    result = bcast.dask.broadcast(data, (700, 100, 50, 30))
    assert result.chunks[1:] == ((50, 50), (50,), (30,))
    assert max(result.chunks[0]) == LIMIT // (50 * 50 * 30 * 8)
    huge = bcast.dask.broadcast_to(da.ones(()), (1000, 10**6))
    assert huge.chunksize == (1, LIMIT // 8)
    assert block_of(huge).strides == (0, 0)


@st.composite
def arrays(draw, ranks=(1, 3), most=7):
    shape = draw(st.lists(st.integers(0, most), min_size=ranks[0], max_size=ranks[1]))
    chunks = tuple(draw(cut(length)) for length in shape)
    data = np.arange(math.prod(shape)).reshape(shape)
    return data, da.from_array(data, chunks=chunks)


@st.composite
def cut(draw, length):
    at = sorted(draw(st.sets(st.integers(1, length - 1)))) if length > 1 else []
    return tuple(np.diff([0, *at, length]).tolist())


def drawn(test):
    return settings(deadline=None, max_examples=100)(given(st.data())(test))


SIZES = st.sampled_from([1, 8, 24, 100, 400, LIMIT])  # of a chunk, in bytes


@drawn
def test_tiles_of_all_chunks(draw):
    data, lazily = draw.draw(arrays())
    reps = draw.draw(st.lists(st.integers(0, 4), min_size=0, max_size=4))
    expected = np.tile(data, reps)
    with dask.config.set({"array.chunk-size": draw.draw(SIZES)}):
        assert_equal(bcast.dask.tile(lazily, reps), expected)
        chunks = tuple(draw.draw(cut(length)) for length in expected.shape)
        result = bcast.dask.tile(lazily, reps, chunks=chunks)
    assert result.chunks == chunks
    assert_equal(result, expected)


@drawn
def test_repetitions_of_all_chunks(draw):
    data, lazily = draw.draw(arrays())
    axis = draw.draw(st.integers(0, data.ndim - 1))
    items = data.shape[axis]
    counts = draw.draw(st.one_of(st.integers(0, 9), st.lists(st.integers(0, 9), min_size=items, max_size=items)))
    expected = np.repeat(data, counts, axis)
    with dask.config.set({"array.chunk-size": draw.draw(SIZES)}):
        result = bcast.dask.repeat(lazily, counts, axis)
        assert all(map(all, result.chunks)) or not expected.size
        assert_equal(result, expected)
        chunks = tuple(draw.draw(cut(length)) for length in expected.shape)
        result = bcast.dask.repeat(lazily, counts, axis, chunks=chunks)
    assert result.chunks == chunks
    assert_equal(result, expected)
    grad = da.from_array(expected, chunks=chunks)
    if np.sum(counts) or isinstance(counts, list):
        assert_equal(bcast.dask.unrepeat(grad, counts, axis), bcast.unrepeat(expected, counts, axis))


@drawn
def test_several_axes_at_once(draw):
    data, lazily = draw.draw(arrays((2, 3), 5))
    items = data.shape[-1]
    counts = (2, draw.draw(st.lists(st.integers(0, 3), min_size=items, max_size=items)))
    expected = bcast.repeat(data, counts, axis=(0, -1))
    result = bcast.dask.repeat(lazily, counts, axis=(0, -1))
    assert_equal(result, expected)
    assert_equal(bcast.dask.unrepeat(result, counts, axis=(0, -1)), bcast.unrepeat(expected, counts, axis=(0, -1)))


@drawn
def test_sums_of_all_chunks(draw):
    grad, lazily = draw.draw(arrays((0, 4), 6))
    kept = tuple(draw.draw(st.sampled_from([1, length])) for length in grad.shape)
    first = next((i for i, length in enumerate(kept) if length != 1), len(kept))
    shape = kept[draw.draw(st.integers(0, first)) :]
    every = draw.draw(st.sampled_from([None, 2, 8]))
    for dtype in (None, np.uint8, np.float32, complex):
        result = bcast.dask.unbroadcast(lazily, shape, dtype=dtype, split_every=every)
        assert_equal(result, bcast.unbroadcast(grad, shape, dtype=dtype))
        assert result.shape == shape


# Sums and chunks


def chunkings(shape, number):
    """Cut a shape at random places, each time anew."""
    rng = np.random.default_rng(7)
    for _ in range(number):
        cuts = [[0, *np.unique(rng.integers(1, length, rng.integers(1, 9))), length] for length in shape]
        yield tuple(tuple(np.diff(each).tolist()) for each in cuts)


TERMS = np.random.default_rng(5).standard_normal((60, 70, 80))
TERMS *= 10.0 ** np.random.default_rng(6).integers(-3, 4, TERMS.shape)


@pytest.mark.parametrize("shape", [(), (70, 1), (60, 1, 1), (1, 1, 80)])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.complex64])
def test_bits_do_not_depend_on_chunks(shape, dtype):
    grad = np.abs(TERMS).astype(dtype) / dtype(64)
    expected = bcast.unbroadcast(grad, shape)
    for chunks in chunkings(grad.shape, 10):
        result = bcast.dask.unbroadcast(da.from_array(grad, chunks=chunks), shape).compute(scheduler="sync")
        assert result.tobytes() == expected.tobytes()


@pytest.mark.parametrize("shape", [(), (70, 1), (60, 1, 1)])
def test_sums_of_float64_differ_by_little(shape):
    grad = np.abs(TERMS)
    exact = sum(map(Fraction, grad.ravel()))
    for chunks in chunkings(grad.shape, 10):
        result = bcast.dask.unbroadcast(da.from_array(grad, chunks=chunks), shape).compute(scheduler="sync")
        expected = bcast.unbroadcast(grad, shape)
        assert (np.abs(result - expected) <= 3 * np.spacing(expected)).all()
        if shape == ():
            assert abs(Fraction(float(result)) - exact) <= 2 * Fraction(float(np.spacing(result)))


def test_partial_sums_are_pairs():
    grad = da.from_array(np.array([1e16, 1.0, -1e16, 1.0] * 8), chunks=1)
    assert bcast.dask.unbroadcast(grad, (), split_every=2).compute(scheduler="sync") == 16


def test_sums_of_infinities():
    grad = np.array([[np.inf, 1, np.nan, np.inf], [1, -np.inf, 1, -np.inf]])
    result = bcast.dask.unbroadcast(da.from_array(grad, chunks=1), (4,)).compute(scheduler="sync")
    np.testing.assert_array_equal(result, [np.inf, -np.inf, np.nan, np.nan])
    both = np.stack([grad, np.ones((2, 4))], -1).view(complex)[..., 0]
    result = bcast.dask.unbroadcast(da.from_array(both, chunks=1), (4,)).compute(scheduler="sync")
    np.testing.assert_array_equal(result.real, [np.inf, -np.inf, np.nan, np.nan])
    np.testing.assert_array_equal(result.imag, 2)


def test_segments_across_many_chunks():
    grad = np.random.default_rng(3).random((10_000, 2), dtype=np.float32)
    counts = np.array([0, 5000, 0, 1, 4000, 0, 999, 0, 0])
    for chunks in ((100, 2), (10_000, 1), (4096, 2), ((5000, 1, 4999), 1)):
        result = bcast.dask.unrepeat(da.from_array(grad, chunks=chunks), counts, 0).compute(scheduler="sync")
        assert result.tobytes() == bcast.unrepeat(grad, counts, 0).tobytes()


# Graphs


def test_tiles_and_repetitions_have_few_tasks():
    data = da.ones((2560, 2560), chunks=256)
    for result in (
        bcast.dask.tile(data, (5, 5)),
        bcast.dask.repeat(data, 5, 0),
        bcast.dask.repeat(data, (5, 5), axis=(0, 1)),
        bcast.dask.repeat(data, np.arange(2560) % 9, 1),
    ):
        assert tasks(result) <= 1.2 * result.npartitions
    with dask.config.set({"array.chunk-size": "128MiB"}):
        for result in (bcast.dask.tile(data, (5, 5)), bcast.dask.repeat(data, (5, 5), axis=(0, 1))):
            assert tasks(result) <= 1.2 * result.npartitions
            assert len(dict(result.__dask_graph__())) <= 100 + 1.2 * result.npartitions


def test_chunks_are_of_the_size_that_dask_says():
    small = da.ones((64, 64), chunks=32)
    for result in (
        bcast.dask.tile(small, (100, 100)),
        bcast.dask.repeat(small, (100, 100), axis=(0, 1)),
        bcast.dask.repeat(small, [10**6] + [0] * 63, 0),
        bcast.dask.broadcast(small, (1000, 64, 64)),
    ):
        assert LIMIT // 4 < math.prod(result.chunksize) * 8 <= LIMIT


def test_items_that_are_repeated_0_times_move_no_cut():
    data = da.from_array(np.arange(12), chunks=4)
    counts = [1, 2, 0, 0, 0, 3, 1, 1, 2, 0, 0, 0]  # cuts of the data are within runs of zeros, and at the end of one
    result = bcast.dask.repeat(data, counts)
    assert result.chunks == ((3, 5, 2),)
    assert len(dict(result.__dask_graph__())) == len(dict(data.__dask_graph__())) + 3
    assert_equal(result, np.repeat(np.arange(12), counts))


def test_graphs_pickle():
    data = da.ones((6, 4), chunks=(2, 3))
    for result in (
        bcast.dask.broadcast(data, (3, 6, 4), materialise=True),
        bcast.dask.tile(data, (2, 3)),
        bcast.dask.repeat(data, [1, 2, 3, 4], 1),
        bcast.dask.unbroadcast(data, (4,)),
        bcast.dask.unrepeat(data, [1, 3, 2], 0),
        *bcast.dask.meshgrid(data, data),
        bcast.dask.elementwise(np.add, data, data),
        bcast.dask.chain(data, np.negative, (np.add, data)),
        bcast.dask.where(data, data, 0),
    ):
        again = pickle.loads(pickle.dumps(result))
        assert_equal(again, result.compute(scheduler="sync"))


def test_operands_in_place():
    images, bias = np.ones((4, 3, 2, 2)), np.arange(3.0)
    lazily, few = da.from_array(images, chunks=2), da.from_array(bias, chunks=2)
    result = bcast.dask.elementwise(np.add, lazily, few, mode="pdpd", axis=1)
    assert_equal(result, bcast.elementwise(np.add, images, bias, mode="pdpd", axis=1))
    assert_equal(bcast.dask.elementwise(np.multiply, lazily, 2), images * 2)
    assert_equal(bcast.dask.elementwise(np.multiply, 2, bias), bias * 2)
    assert_equal(bcast.dask.elementwise(np.add, 2, 3), 5)
    assert_equal(bcast.dask.elementwise(np.add, few, few[:1], mode="unidirectional"), bias + bias[:1])
    with pytest.raises(ValueError, match="`b` expected a's own shape"):
        bcast.dask.elementwise(np.add, few, lazily, mode="none")
    with pytest.raises(TypeError, match="`ufunc` expected a ufunc of two operands"):
        bcast.dask.elementwise(operator.add, few, few)
    with pytest.raises(TypeError, match="`ufunc` expected an element-wise function of two operands"):
        bcast.dask.elementwise(np.negative, few, few)


def test_chains_are_one_task_a_chunk():
    pictures = np.arange(4 * 6 * 5 * 3, dtype="u1").reshape(4, 6, 5, 3)
    mean, std = np.float32([1, 2, 3]), np.float32([0.5, 2, 4])
    expected = bcast.chain(pictures, (np.subtract, mean), (np.divide, std), np.square, (np.less, 90), dtype="f4")
    steps = [(np.subtract, mean), (np.divide, da.from_array(std, chunks=2)), np.square, (np.less, 90)]
    for chunks in ((2, 3, 5, 2), (4, 1, (0, 2, 3), 3), 6):
        lazily = da.from_array(pictures, chunks=chunks)
        check("chain", lazily, *steps, dtype="f4", expected=expected)
        turned, options = lazily.transpose(0, 3, 1, 2), {"mode": "pdpd", "axis": 1, "dtype": "f4"}
        result = check("chain", turned, *steps, **options, expected=expected.transpose(0, 3, 1, 2))
        assert block_of(result).flags.c_contiguous
    made = da.from_array(np.ones((8, 6), "u1"), chunks=(2, 3))
    assert tasks(bcast.dask.chain(made, (np.multiply, 2.5), np.sqrt, (np.add, made), dtype="f4")) == 8
    for data, *steps in (
        (pictures[:0],),
        (pictures[0, 0, 0, 0], (np.add, 2), np.negative),
        (mean, (np.add, pictures), (np.maximum, std[:1]), (np.multiply, pictures[:1, :, :1])),
        (np.array(["a", "b"]), (np.add, "c")),
        (pictures, (np.clip, 20, None), np.negative, (np.clip, None, mean), (np.round, -1)),
        (mean, (np.clip, [0, 1, 2], pictures), np.round, (np.clip, None, None)),
    ):
        check("chain", data, *steps, chunks=2)
    check("chain", pictures * np.float32(1.5) - 40, dtype="u1", casting="saturate")
    check("chain", pictures, np.negative, dtype="i1", casting="saturate")


# Chains that reduce


def lazily_given(step, chunks):
    """A step whose operand is a dask array."""
    is_pair = isinstance(step, tuple) and isinstance(step[1], np.ndarray)
    return (step[0], da.from_array(step[1], chunks=chunks)) if is_pair else step


def check_chain(data, *steps, **options):
    """Compare a chain with that of arrays in memory, bit by bit, for several chunkings of data and operands."""
    expected = np.asarray(bcast.chain(data, *steps, **options))
    for chunks in (-1, 2, 3):
        lazily = [lazily_given(step, chunks) for step in steps]
        result = bcast.dask.chain(da.from_array(data, chunks=chunks), *lazily, **options)
        again = bcast.dask.chain(da.from_array(data, chunks=chunks), *lazily, **options)
        assert result.name == again.name
        found = np.asarray(result.compute(scheduler="sync"))
        assert result.dtype == found.dtype == expected.dtype
        assert result.shape == found.shape == expected.shape
        assert sum(map(len, result.chunks)) >= result.ndim
        assert np.array_equal(found, expected, equal_nan=expected.dtype.kind == "f")


WHOLE = np.random.default_rng(1).integers(0, 9, (10, 3))  # whose sums are exact
POINTS, CENTRES = WHOLE.astype("f8"), (WHOLE[:7] * 5 % 9).astype("f8")
SQUARES = (np.subtract, CENTRES), np.square, (np.sum, -1)
REDUCED = {
    "distances": (POINTS[:, None], *SQUARES, np.sqrt),
    "the nearest": (POINTS[:, None], *SQUARES, (np.argmin, -1)),
    "the nearest of all": (POINTS[:, None], *SQUARES, (np.argmin, None)),
    "the sum of what is nearest": (POINTS[:, None], *SQUARES, (np.min, -1), (np.sum, None)),
    "the greatest difference": (POINTS[:, None], (np.subtract, CENTRES), np.abs, (np.max, None)),
    "from the greatest": (POINTS, partial(np.max, axis=-1, keepdims=True), (np.subtract, POINTS)),
    "a kept axis is reduced again": (POINTS, partial(np.sum, axis=0, keepdims=True), (np.max, 0), (np.add, POINTS)),
    "operands add axes": (POINTS, (np.sum, 1), (np.add, CENTRES[:, :1]), (np.max, 0), (np.multiply, POINTS[:, 0])),
    "classes": (WHOLE[..., None], (np.equal, np.arange(4)), (np.sum, (0, 1))),
    "a palette": (WHOLE[:, None], (np.equal, WHOLE[2:5]), (np.all, -1), (np.any, -1)),
    "bytes": (WHOLE.astype("u1"), (np.add, np.uint8(250)), (np.sum, 0)),
    "bools": (WHOLE > 3, (np.sum, 0)),
    "in a dtype": (WHOLE.astype("u1"), partial(np.sum, axis=0, dtype=np.uint8)),
    "methods of ufuncs": (POINTS, (np.add.reduce, 1), (np.maximum.reduce, 0)),
    "other ufuncs": (WHOLE, (np.bitwise_xor.reduce, 0)),
    "no axes": (POINTS, (np.sum, ())),
    "a number": (np.array(3.0), np.square, (np.max, None)),
    "no items": (np.zeros((0, 3)), (np.add, 1), (np.sum, 0)),
    "NaN": (np.where(POINTS == 4, np.nan, POINTS), (np.max, 0)),
    "dates": (WHOLE.astype("M8[s]"), (np.max, None)),
    "bcast's own": (POINTS, (bcast.max, -1), (bcast.argmax, None)),
    "objects in one chunk": (POINTS.astype(object)[:1, :1], (np.max, 0)),
}


@pytest.mark.parametrize("name", REDUCED)
def test_chains_that_reduce(name):
    check_chain(*REDUCED[name])


@pytest.mark.parametrize(
    ("axis", "dtype"),
    [(0, "f8"), (1, "f4"), (2, "f8"), ((0, 2), "f4"), ((0, 2), "i2"), ((0, 1, 2), "f8"), (None, "f8")],
)
@pytest.mark.parametrize("name", ["sum", "mean", "prod", "max", "min", "any", "all"])
def test_reductions_along_all_axes(name, axis, dtype):
    data, operand = (WHOLE % 2 + 1).astype(dtype)[:4, None], (CENTRES[:4] % 2).astype(dtype)
    check_chain(data, (np.multiply, operand), (getattr(np, name), axis))


@pytest.mark.parametrize("axis", [0, 1, None])
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_positions_are_the_first(name, axis):
    for data in (POINTS % 3, np.where(POINTS == 4, np.nan, POINTS), np.zeros((4, 5)) * [1, -1, 1, -1, -1]):
        check_chain(data, np.negative, (getattr(np, name), axis))
        check_chain(data, np.negative, partial(getattr(np, name), axis=axis, keepdims=True))


@drawn
def test_chains_that_reduce_of_all_chunks(draw):
    """Even of chunks without items, and of operands that add axes."""
    shape = draw.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    operands, lazily = [], []
    for i in range(2):
        own = [draw.draw(st.sampled_from([1, length])) for length in shape[draw.draw(st.integers(0, len(shape))) :]]
        cuts = [[0, *draw.draw(st.lists(st.integers(0, n), max_size=2)), n] for n in own]
        operands.append((np.arange(np.prod(own, dtype=int)).reshape(own) * 7 % 5).astype("f8") + i)
        lazily.append(da.from_array(operands[-1], chunks=[tuple(np.diff(sorted(each)).tolist()) for each in cuts]))
    shape = np.broadcast_shapes(*[each.shape for each in operands])
    axes = [None, *range(len(shape))]
    first = partial(draw.draw(st.sampled_from([np.sum, np.max])), axis=draw.draw(st.sampled_from(axes)), keepdims=True)
    second = draw.draw(st.sampled_from([np.sum, np.min, np.argmax])), draw.draw(st.sampled_from(axes))
    expected = bcast.chain(operands[0], (np.multiply, operands[1]), first, (np.subtract, operands[0]), second)
    result = bcast.dask.chain(lazily[0], (np.multiply, lazily[1]), first, (np.subtract, lazily[0]), second)
    assert_equal(result, expected)


@pytest.mark.parametrize(("dtype", "units"), [("f2", 0.5), ("f4", 0.5), ("f8", 1.5)])
def test_sums_of_chains_are_exact(dtype, units):
    """Within the bound of `bcast.dask.sum`, of terms of one sign, for all chunks; means likewise."""
    data = np.random.default_rng(2).random((4000, 2)).astype(dtype)
    terms = np.square(data).astype(object)
    exact = sum(map(Fraction, map(float, terms.ravel())))
    for chunks in (-1, (999, 1), (37, 2)):
        lazily = da.from_array(data, chunks=chunks)
        for function, right in ((np.sum, exact), (np.mean, exact / data.size)):
            found = bcast.dask.chain(lazily, np.square, (function, None)).compute(scheduler="sync")
            unit = Fraction(float(np.spacing(found)))
            assert abs(Fraction(float(found)) - right) <= Fraction(units + (function is np.mean) * 0.5) * unit


def test_no_task_makes_the_broadcast():
    """Differences would have 460 MB, and distances 154. Each task has a part of 2.5 MB, and returns less."""
    points, centres = np.random.default_rng(3).random((2, 4800, 3))
    lazily = da.from_array(points, chunks=(600, 3))[:, None]
    nearest = bcast.dask.chain(
        lazily, (np.subtract, da.from_array(centres, chunks=(800, 3))), np.square, (np.sum, -1), (np.argmin, -1)
    )
    sizes = []

    def note(key, value, *_):  # noqa: ARG001
        sizes.append(getattr(value, "nbytes", 0))

    bcast.chain(points[:9, None], (np.subtract, centres[:9]), np.square, (np.sum, -1), (np.argmin, -1))
    tracemalloc.start()
    with Callback(posttask=note):
        found = nearest.compute(scheduler="sync")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(sizes) > 48
    assert max(sizes) <= points.nbytes
    assert peak < 32 << 20
    steps = (np.subtract, centres), np.square, (np.sum, -1), (np.argmin, -1)
    assert np.array_equal(found, bcast.chain(points[:, None], *steps))


def test_results_are_cut_as_dask_wants_chunks():
    """Operands with one chunk each: distances between 1000 points and 1000 others would take 8 MB."""
    points = np.random.default_rng(4).random((1000, 3))
    result = bcast.dask.chain(points[:, None], (np.subtract, points), np.square, (np.sum, -1))
    assert max(map(math.prod, itertools.product(*result.chunks))) * 8 <= LIMIT
    assert_equal(result, bcast.chain(points[:, None], (np.subtract, points), np.square, (np.sum, -1)))


def test_a_reduction_in_a_chunk_needs_no_task_of_its_own():
    points = da.ones((8, 1, 3), chunks=(2, 1, 3))
    centres = da.ones((6, 3), chunks=(3, 3))
    steps = (np.subtract, centres), np.square, (np.sum, -1)
    assert tasks(bcast.dask.chain(points, *steps, np.sqrt)) == 8
    assert tasks(bcast.dask.chain(points, *steps, (np.argmin, 0))) == 8 + 2  # and one for each chunk of centres
    graph = bcast.dask.chain(points, *steps, (np.argmin, 0))
    assert pickle.loads(pickle.dumps(graph)).name == graph.name


def test_refusals_of_chains_that_reduce_are_those_of_arrays_in_memory():
    for data, *steps in (
        (np.zeros((0, 3)), (np.max, 0)),
        (POINTS, np.sum),
        (POINTS, (np.sum, 5)),
        (POINTS, (np.sum, 0, 1)),
        (POINTS, (np.argmin, (0, 1))),
        (POINTS, (np.sum, 0), (np.add, POINTS), (np.add, np.ones(4))),
        (POINTS, partial(np.max, axis=0, dtype=float)),
    ):
        with pytest.raises(Exception) as expected:
            bcast.chain(data, *steps)
        with pytest.raises(type(expected.value)) as found:
            bcast.dask.chain(da.from_array(data, chunks=2), *steps)
        assert str(found.value) == str(expected.value)
    objects = da.from_array(POINTS.astype(object), chunks=2)
    with pytest.raises(ValueError, match=r"^`steps\[1\]` expected an axis in one chunk, got several chunks of obj"):
        bcast.dask.chain(objects, np.negative, (np.max, 0))


def test_choices_are_one_task_a_chunk():
    mask = np.arange(8 * 6).reshape(8, 6) % 3 > 0
    x, y = np.arange(6, dtype="f4"), np.arange(8, dtype="i2")[:, None]
    land = da.from_array(mask, chunks=(2, 3))
    assert tasks(bcast.dask.where(land, 1.5, 0)) == 8
    assert block_of(bcast.dask.where(land, 1.5, 0)).shape == (2, 3)
    for condition in (land, land[:, :1], land[:1], land.astype("f8"), mask):
        for first, second in itertools.product((x, da.from_array(x, chunks=2), 2.5, True, x[2]), (y, 0, 1j, x[:1])):
            whole = [each.compute(scheduler="sync") if hasattr(each, "chunks") else each for each in (condition, first)]
            result = bcast.dask.where(condition, first, second)
            expected = np.where(*whole, second)
            assert_equal(result, expected)
            assert result.dtype == expected.dtype
            assert result.name == bcast.dask.where(condition, first, second).name
    assert_equal(bcast.dask.where(True, 2, 3), np.where(True, 2, 3))
    assert_equal(bcast.dask.where(land, np.array(["a", "bc"])[:1], "d"), np.where(mask, np.array(["a", "bc"])[:1], "d"))
    assert_equal(bcast.dask.where([[True], [False]], [1, 2], x[:2]), np.where([[True], [False]], [1, 2], x[:2]))
    hidden = da.ones(4, chunks=2).map_blocks(np.ma.masked_array, dtype=float, meta=np.empty(0))
    for operands in ((hidden, 1, 2), (hidden > 0, hidden, 2), (da.ones(4, chunks=2), 1, hidden)):
        with pytest.raises(TypeError, match="expected an array without a mask"):
            bcast.dask.where(*operands).compute(scheduler="sync")


@drawn
def test_operands_of_all_chunks(draw):
    """Even of chunks without items, which Dask would stretch."""
    operands, lazily = [], []
    shape = draw.draw(st.lists(st.integers(0, 3), max_size=3))
    for _ in range(3):
        own = [draw.draw(st.sampled_from([1, length])) for length in shape[draw.draw(st.integers(0, len(shape))) :]]
        cuts = [[0, *draw.draw(st.lists(st.integers(0, n), max_size=2 * min(n, 1))), n] for n in own]
        operands.append(np.arange(np.prod(own, dtype=int)).reshape(own))
        lazily.append(da.from_array(operands[-1], chunks=[tuple(np.diff(sorted(each)).tolist()) for each in cuts]))
    assert_equal(bcast.dask.where(*lazily), np.where(*operands))
    operands.pop(), lazily.pop()
    assert_equal(bcast.dask.elementwise(np.subtract, *lazily), np.subtract(*operands))
    assert_equal(bcast.dask.chain(lazily[0], (np.subtract, lazily[1]), np.negative), -np.subtract(*operands))


@pytest.mark.parametrize("number", [5, 2.5, True, np.float32(1.5)], ids=repr)
def test_blocks_that_are_numbers(number):
    data = np.array(number)
    lazily = da.from_delayed(dask.delayed(number), (), dtype=data.dtype)
    for shape in ((), (1,), (2, 1), (1, 3)):
        assert_equal(bcast.dask.broadcast_to(lazily, shape), np.broadcast_to(data, shape))
        assert_equal(bcast.dask.broadcast_like(lazily, da.ones(shape)), np.broadcast_to(data, shape))
        assert_equal(bcast.dask.tile(lazily, shape), np.tile(data, shape))
        assert_equal(bcast.dask.elementwise(np.add, da.ones(shape), lazily), np.add(np.ones(shape), data))
        assert_equal(bcast.dask.chain(lazily, (np.add, da.ones(shape))), np.add(data, np.ones(shape)))
        assert_equal(bcast.dask.where(lazily, lazily, da.zeros(shape)), np.where(data, data, np.zeros(shape)))
    assert_equal(bcast.dask.repeat(lazily, 3, axis=0), np.repeat(data, 3, axis=0))
    for grid, expected in zip(bcast.dask.meshgrid(lazily, da.arange(2)), np.meshgrid(data, np.arange(2)), strict=True):
        assert_equal(grid, expected)
    assert_equal(bcast.dask.unrepeat(lazily, (), axis=(), dtype=float), data.astype(float))


def test_results_of_all_dtypes_have_names_of_their_own():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    line = da.from_array(np.array([1.5, 3.25, 6.0]), chunks=2)
    dtypes = [ml_dtypes.int4, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.bfloat16, "<f4", ">f4", "f8"]
    sums = ("unbroadcast", ()), ("unbroadcast", (3,)), ("unrepeat", [2, 1]), ("unrepeat", 1)
    for name, *arguments in (*sums, ("repeat", [2, 0, 1]), ("tile", 2), ("broadcast", (2, 3))):
        casting = {} if name.startswith("un") else {"casting": "unsafe"}
        results = [getattr(bcast.dask, name)(line, *arguments, dtype=dtype, **casting) for dtype in dtypes]
        assert len({result.name for result in results}) == len(dtypes)


def test_sums_in_dtypes_that_numpy_sums_do_not_depend_on_chunks():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    grad = np.random.default_rng(1).standard_normal(999).astype(ml_dtypes.float8_e4m3fn)
    for name, argument in ("unrepeat", 999), ("unrepeat", [500, 499]), ("unbroadcast", ()):
        lazily = [da.from_array(grad, chunks=each) for each in (1, 10, 333, 999)]
        results = [getattr(bcast.dask, name)(each, argument) for each in lazily]
        assert len({result.compute(scheduler="sync").astype(float).tobytes() for result in results}) == 1


def test_sums_keep_the_dtype():
    for dtype in (">f4", object, "f2", "m8[s]"):
        grad = np.array([[1, 2], [3, 4]]).astype(dtype)
        for shape in ((), (1,), (2,), (2, 1)):
            result = bcast.dask.unbroadcast(da.from_array(grad, chunks=1), shape)
            assert result.dtype == grad.dtype
            expected = bcast.unbroadcast(grad, shape)
            assert_equal(result, expected)
    assert bcast.dask.tile(da.from_array(np.float32(3)), (), dtype="f8").compute(scheduler="sync") == 3


def test_tiles_of_many_chunks_depend_on_few():
    data = da.ones(1000, chunks=1)
    for chunks, most in ((100, 120_000), (None, 10_000), (4000, 10_000)):
        graph = bcast.dask.tile(data, 1000, chunks=chunks).__dask_graph__()
        assert sum(map(len, graph.get_all_dependencies().values())) <= most


def test_axes_of_length_1_stretch_later():
    images, bias = da.from_array(np.ones((4, 3, 2, 2)), chunks=2), da.from_array(np.arange(3.0), chunks=2)
    expected = np.ones((4, 3, 2, 2)) + np.arange(3.0).reshape(3, 1, 1)
    for shape in ((1, 3, 1, 1), (4, 3, 1, 2), (1, 3, 2, 1)):
        chunks = tuple(1 if length == 1 else 2 for length in shape)
        laid = bcast.dask.broadcast(bias, shape, [1], mode="explicit", chunks=chunks)
        assert_equal(images + laid, expected)


def test_small_cases():
    line, counts = da.arange(3), np.array([1, 2])
    assert_equal(bcast.dask.broadcast([line, line + 1], (2, 2, 3)), [[[0, 1, 2], [1, 2, 3]]] * 2)
    block = block_of(bcast.dask.broadcast(line, (1000, 3)))  # sent as its small side
    assert (block.strides, block.flags.writeable) == ((0, 8), False)
    with dask.config.set({"array.chunk-size": 100}):  # chunks a little too large are cut
        assert bcast.dask.broadcast(da.ones(5, chunks=5), (3, 5)).chunks[0] == (2, 1)
        assert bcast.dask.repeat(da.ones(5, chunks=5), 3).chunks[0] == (12, 3)
    result = bcast.dask.repeat(da.arange(2), counts)
    counts[:] = 9  # later
    assert_equal(result, [0, 1, 1])
    data = np.array(["a", "bb"], np.dtypes.StringDType())
    assert bcast.dask.tile(da.from_array(data, chunks=1), 3).compute(scheduler="sync").tolist() == ["a", "bb"] * 3
    x, y = bcast.dask.meshgrid(da.arange(6, chunks=2), np.arange(4), chunks=(2, 3), materialise=True)
    assert x.chunks == y.chunks == ((2, 2), (3, 3))
    for result, expected in zip((x, y), np.meshgrid(np.arange(6), np.arange(4)), strict=True):
        assert_equal(result, expected)
    grad = np.arange(2.0).reshape(2, 1)
    for shape, chunks in ((1,), ((2,), (0, 1))), ((1,), ((2,), (1, 0))), ((), ((2,), (0, 1))):
        assert_equal(bcast.dask.unbroadcast(da.from_array(grad, chunks=chunks), shape), bcast.unbroadcast(grad, shape))


def test_grids_of_several_dtypes_and_axes():
    dates = np.array([["2020", "2021"], ["2022", "2023"]], "M8[s]")
    lazily = da.from_array(dates, chunks=((2, 0), 1))
    grids = bcast.dask.meshgrid(lazily, da.arange(3.0), chunks=2)
    for grid, expected in zip(grids, np.meshgrid(dates, np.arange(3.0)), strict=True):
        assert_equal(grid, expected)


# Refusals


def test_unknown_chunks_are_refused():
    data = da.arange(9)
    unknown = data[data > 3]
    calls = [("broadcast", unknown, (2, 5)), ("tile", unknown, 2), ("repeat", unknown, 2), ("unbroadcast", unknown, ())]
    calls += [("unrepeat", unknown, 1), ("meshgrid", unknown), ("elementwise", np.add, data, unknown)]
    calls += [("where", unknown, 1, 0), ("where", data, unknown, 0), ("where", data, 1, unknown)]
    for name, *arguments in (*calls, ("chain", data, (np.add, unknown))):
        with pytest.raises(ValueError, match=r"expected chunks of known lengths, .*compute_chunk_sizes\(\)"):
            getattr(bcast.dask, name)(*arguments)


def test_masks_are_refused():
    masked = da.ma.masked_array(da.arange(4), mask=[0, 1, 0, 0])
    with pytest.raises(TypeError, match="`data` expected chunks without masks"):
        bcast.dask.broadcast(masked, (2, 4))
    with pytest.raises(TypeError, match="`data` expected an array without a mask"):
        bcast.dask.broadcast(np.ma.array([1, 2]), (2, 2))
    hidden = da.ones(4, chunks=2).map_blocks(np.ma.masked_array, dtype=float, meta=np.empty(0))
    for name, argument in (("broadcast", (2, 4)), ("tile", 2), ("repeat", 2), ("unbroadcast", ()), ("chain", np.sqrt)):
        result = getattr(bcast.dask, name)(hidden, argument)
        with pytest.raises(TypeError, match="expected an array without a mask"):
            result.compute(scheduler="sync")


def test_chunks_that_cut_the_data_are_refused():
    data = da.ones((4, 1), chunks=(2, 1))
    with pytest.raises(ValueError, match=r"`chunks` expected data's own \(2, 2\) along axis 0"):
        bcast.dask.broadcast(data, (4, 5), chunks=(4, 5))
    with pytest.raises(ValueError, match=r"`chunks` expected chunks of an array of shape \(4, 5\)"):
        bcast.dask.broadcast(data, (4, 5), chunks=((2, 2), (5, 5)))


def test_chunks_that_are_none_are_refused():
    for chunks in (0, ((-1, 13),), ((np.nan,),), (np.array([5, 7]),), "many"):
        for call in (
            lambda chunks: bcast.dask.tile(da.arange(4, chunks=2), 3, chunks=chunks),
            lambda chunks: bcast.dask.repeat(da.arange(4, chunks=2), 3, chunks=chunks),
            lambda chunks: bcast.dask.broadcast(da.ones(()), (12,), chunks=chunks),
        ):
            with pytest.raises(ValueError, match=r"`chunks` expected chunks of an array of shape \(12,\), got"):
                call(chunks)


def test_dtypes_of_which_values_decide_are_refused():
    for data, dtype in ((["a", "bbbb"], str), ([1, 12345], "S"), (["2020", "2020-01"], "M8")):
        array = da.from_array(np.array(data, None if dtype == "M8" else object), chunks=1)
        for name, argument in (("broadcast", (1, 2)), ("tile", 2), ("repeat", 2)):
            with pytest.raises(TypeError, match="`dtype` expected a dtype with a length or a unit"):
                getattr(bcast.dask, name)(array, argument, dtype=dtype, casting="unsafe")


def test_integers_that_would_be_computed_are_refused():
    line, one = da.ones(3), da.ones(3, dtype=int)
    calls = [("repeats", "repeat", one), ("repeats", "unrepeat", one), ("repeats", "repeat", (one,), (0,))]
    calls += [("target_shape", "broadcast", one), ("shape", "broadcast_to", one[0]), ("data_shape", "unbroadcast", one)]
    for name, function, *arguments in (*calls, ("reps", "tile", [one[0]])):
        with pytest.raises(TypeError, match=f"`{name}` expected integers in memory"):
            getattr(bcast.dask, function)(line, *arguments)


@pytest.mark.parametrize("name", ["sum", "mean", "var", "std"])
@pytest.mark.parametrize("dtype", ["?", "u1", "i8", "f2", "f4", "f8", "c8"])
def test_statistics_are_those_of_arrays_in_memory(name, dtype):
    terms = np.random.default_rng(0).random((13, 9, 11)) * (20 + (3j if dtype == "c8" else 0))
    data = terms.astype(dtype)
    options = {"ddof": 1} if name in ("var", "std") else {}
    for chunks, axis, keepdims in [(5, None, False), ((4, 9, -1), (0, 2), True), (-1, -1, False), (3, (1, 2), False)]:
        right = getattr(bcast, name)(data, axis, keepdims=keepdims, **options)
        result = getattr(bcast.dask, name)(da.from_array(data, chunks), axis, keepdims=keepdims, **options)
        assert_equal(result, right, rtol=2e-3 if dtype == "f2" else 1e-5)


@pytest.mark.parametrize("dtype", ["u1", "f4", "f8"])
def test_functions_of_vectors_are_those_of_arrays_in_memory(dtype):
    rng = np.random.default_rng(0)
    x, y, matrix = ((rng.random(shape) * 9).astype(dtype) for shape in ((5, 7, 3), (7, 3), (2, 3)))
    for chunks in (2, 3, (5, 4, 1)):
        points, others = da.from_array(x, chunks), da.from_array(y, 2)
        assert_equal(bcast.dask.vecdot(points, others), bcast.vecdot(x, y))
        assert_equal(bcast.dask.vecdot(points, x.T.copy().T[:1]), bcast.vecdot(x, x[:1]))
        columns = bcast.dask.vecdot(points.T, others.T[..., None], axis=0)
        assert_equal(columns, bcast.vecdot(x.T, y.T[..., None], axis=0))
        assert_equal(bcast.dask.matvec(matrix, points), bcast.matvec(matrix, x))
        assert_equal(bcast.dask.cross(points, others), bcast.cross(x, y))
        assert_equal(bcast.dask.cross(points, others, axisc=0), bcast.cross(x, y, axisc=0))
        for axis, keepdims in ((-1, False), ((0, 2), True), (1, True), (None, False)):
            found = bcast.dask.norm(points, axis, keepdims=keepdims)
            assert_equal(found, bcast.norm(x, axis, keepdims=keepdims), rtol=1e-6)
    with pytest.raises(ValueError, match="core"):
        bcast.dask.vecdot(points, others[:, :2])


@pytest.mark.parametrize("dtype", ["u1", "f4", "c8", "M8[s]", "O"])
def test_stacks_are_those_of_arrays_in_memory(dtype):
    x = np.arange(35).reshape(5, 7).astype(dtype)
    y = x[::-1]
    for chunks in (2, -1, ((1, 4), 3)):
        for axis in (0, 1, -1, -3):
            result = bcast.dask.stack((da.from_array(x, chunks), y, da.from_array(y, 3)), axis)
            assert_equal(result, np.stack((x, y, y), axis))
            assert len(result.chunks[axis]) == 1
    assert_equal(bcast.dask.stack(da.from_array(x, 2)), x)
    if dtype == "f4":
        assert_equal(bcast.dask.stack((x, y), -1, dtype="f8"), np.stack((x, y), -1, dtype="f8"))
        with pytest.raises(TypeError, match="cast"):
            bcast.dask.stack((x, y), dtype="i4")
        with pytest.raises(ValueError, match=r"the same shape, got \(5, 7\) and \(1, 7\)"):
            bcast.dask.stack((da.from_array(x), x[:1]))
        with pytest.raises(np.exceptions.AxisError):
            bcast.dask.stack((x, y), 3)
        with pytest.raises(ValueError, match="at least one"):
            bcast.dask.stack(())


REDUCTIONS = ("max", "min", "any", "all", "prod", "argmax", "argmin", "minmax")


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("dtype", ["?", "u1", "i4", "i8", "f2", "f4", "f8", ">i4", "c8", "M8[s]"])
def test_reductions_are_numpys_for_all_chunks(name, dtype):
    """With ties across chunks, and NaN; products of floats have the dtype, and errors of their last bits."""
    if dtype == "M8[s]" and name in ("any", "all", "prod"):
        pytest.skip("dates have no truth in all versions, and no product")
    integers = np.random.default_rng(0).integers(0, 4, (5, 4, 6))
    data = integers.astype(dtype)
    if dtype in ("f2", "f4", "f8") and name != "prod":
        data[integers > 2] = np.nan
    pairs = [("min", 0), ("max", 1)] if name == "minmax" else [(name, None)]
    several = [] if name.startswith("arg") else [(0, 2), (2, 1), (0, 1, 2)]
    for axis, (chunks, keepdims) in itertools.product(
        (None, 0, -1, *several), ((3, False), ((2, 4, -1), True), (-1, False), ((1, 2, 3), True))
    ):
        given = getattr(bcast.dask, name)(da.from_array(data, chunks), axis, keepdims=keepdims, split_every=3)
        for numpys, place in pairs:
            result = given if place is None else given[place]
            with np.errstate(all="ignore"):
                right = np.asarray(getattr(np, numpys)(data, axis, keepdims=keepdims))
            values = np.asarray(result.compute(scheduler="sync"))
            assert result.dtype == values.dtype == right.dtype
            assert result.shape == right.shape
            if name == "prod" and right.dtype.kind in "fc":
                np.testing.assert_allclose(values, right, rtol=1e-5)
            else:
                np.testing.assert_array_equal(values, right)


@pytest.mark.filterwarnings("ignore:.*")
@pytest.mark.parametrize("name", ["nansum", "nanmean", "nanvar", "nanstd", "nanmax", "nanmin"])
@pytest.mark.parametrize("dtype", ["u1", "i8", "f2", "f4", "f8", ">f4", "g", "c16"])
def test_numbers_other_than_nan_are_reduced_as_in_numpy(name, dtype):
    """With chunks of NaN alone, and results of NaN alone; without a warning where NumPy warns."""
    data = np.random.default_rng(0).integers(0, 9, (5, 4, 6)).astype(dtype)
    if data.dtype.kind in "fc":
        data[data.real > 6] = np.nan
        data[:2, :2], data[1], data[:, 3, 5] = np.nan, np.nan, np.nan
    ours, numpys = getattr(bcast.dask, name), getattr(np, name)
    exact = data if data.dtype.kind in "iuc" else data.astype("g")
    for axis, (chunks, keepdims) in itertools.product(
        (None, 0, -1, (0, 2), (2, 1), (0, 1, 2), ()), ((3, False), ((2, 2, -1), True), (-1, False), ((1, 2, 3), True))
    ):
        result = ours(da.from_array(data, chunks), axis, keepdims=keepdims, split_every=3)
        right = np.asarray(numpys(exact, axis, keepdims=keepdims))
        own = np.asarray(numpys(data, axis, keepdims=keepdims)).dtype
        with warnings.catch_warnings(action="error"):
            values = np.asarray(result.compute(scheduler="sync"))
        assert result.dtype == values.dtype == own
        assert result.shape == right.shape
        eps = 0 if name in ("nanmax", "nanmin", "nansum") else 4 * np.finfo(own).eps
        np.testing.assert_allclose(values, right.astype(own), eps, eps)


def test_degrees_of_freedom_without_nan():
    data = np.array([[1, np.nan, 3, 5], [np.nan, np.nan, np.nan, 2], [1, 2, np.nan, np.nan]])
    for chunks, ddof in itertools.product((1, 2, -1), (0, 1, 2, 1.5)):
        with warnings.catch_warnings(action="ignore"):
            right = np.nanvar(data, 1, ddof=ddof)
        found = bcast.dask.nanvar(da.from_array(data, chunks), 1, ddof=ddof).compute(scheduler="sync")
        np.testing.assert_allclose(found, right, 1e-15)
        found = bcast.dask.nanstd(da.from_array(data, chunks), 1, ddof=ddof).compute(scheduler="sync")
        np.testing.assert_allclose(found, np.sqrt(right), 1e-15)


def test_the_first_position_of_equal_items_does_not_depend_on_chunks():
    """Chunks of several columns have items of later rows before those of earlier rows in the next chunk."""
    for at in itertools.product(range(3), (0, 2, 5)):
        data = np.zeros((4, 6))
        data[at] = data[3, 0] = 1
        for chunks in ((2, 2), (4, 3), ((1, 3), (5, 1))):
            lazy = da.from_array(data, chunks)
            assert bcast.dask.argmax(lazy).compute(scheduler="sync") == data.argmax()
            assert bcast.dask.argmin(-lazy, split_every=2).compute(scheduler="sync") == data.argmax()
            assert_equal(bcast.dask.argmax(lazy, 1), data.argmax(1))
            assert_equal(bcast.dask.argmax(lazy, 0), data.argmax(0))


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_of_nothing_and_of_one_item(name):
    """Calls without a result in NumPy are refused while the graph is built."""
    for shape, chunks in (((0, 3), 2), ((3, 0), 2), ((0, 0), 1), ((1, 3), 1), ((), ()), ((4,), ((2, 0, 2),))):
        data = np.arange(math.prod(shape), dtype="i2").reshape(shape)
        lazy = da.from_array(data, chunks) if shape else da.from_array(data)
        for axis in (None, *range(len(shape))):
            call = getattr(bcast, name)
            try:
                right = call(data, axis)
            except ValueError as error:
                with pytest.raises(ValueError, match=str(error)[:20]):
                    getattr(bcast.dask, name)(lazy, axis)
                continue
            result = getattr(bcast.dask, name)(lazy, axis)
            for found, expected in zip(result, right, strict=True) if name == "minmax" else ((result, right),):
                values = found.compute(scheduler="sync")
                assert values.shape == np.shape(expected)
                assert values.dtype == np.asarray(expected).dtype
                np.testing.assert_array_equal(values, expected)


def test_reductions_of_dtypes_of_other_packages():
    dtype = np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
    terms = np.random.default_rng(0).integers(0, 9, (7, 6)).astype(dtype)
    lazy = da.from_array(terms, (3, 2))
    for axis in None, 0, 1:
        for name in "max", "min", "any", "all", "argmax", "argmin":
            values = getattr(bcast.dask, name)(lazy, axis).compute(scheduler="sync")
            assert np.asarray(values).tolist() == getattr(np, name)(terms, axis).tolist()


def test_reductions_have_a_task_for_each_chunk():
    lazy = da.ones((40, 40), chunks=10)
    for name in "max", "any", "prod":
        check(name, np.ones((40, 40)), 0, chunks=10)
    low, high = bcast.dask.minmax(lazy, 0)
    assert len(set(low.__dask_graph__()) ^ set(high.__dask_graph__())) == 16  # all but those that take the fields


@pytest.mark.parametrize("dtype", ["u1", "i8", "f2", "f4", "f8"])
def test_mean_std(dtype):
    data = (np.random.default_rng(0).random((7, 5, 3)) * 90).astype(dtype)
    lazy = da.from_array(data, chunks=(3, 2, 2))
    for axis in 0, 1, -1, (0, 1), None:
        for options in {}, {"ddof": 1}, {"keepdims": True}:
            pair = dask.compute(*bcast.dask.mean_std(lazy, axis, **options), scheduler="sync")
            for found, right in zip(pair, bcast.mean_std(data, axis, **options), strict=True):
                assert found.dtype == right.dtype
                np.testing.assert_allclose(found, right, 4 * np.finfo(right.dtype).eps)
    mean, std = bcast.dask.mean_std(lazy, 0)
    shared = set(mean.__dask_graph__()) & set(std.__dask_graph__())
    assert len(set(mean.__dask_graph__()) - shared) <= 2 * mean.npartitions  # what rounds means, and drops the axis


def test_refusals_of_reductions():
    data = da.ones((2, 3))
    calls = [("max", 2), ("max", (0, 0)), ("min", "x"), ("any", -3), ("argmax", (0, 1)), ("argmin", 2), ("minmax", 5)]
    for name, axis in calls:
        with pytest.raises(Exception) as expected:
            getattr(bcast, name)(np.ones((2, 3)), axis)
        with pytest.raises(type(expected.value)):
            getattr(bcast.dask, name)(data, axis)


@pytest.mark.parametrize("kind", ["bfloat16", "float8_e4m3fn"])
def test_sums_and_means_to_floats_of_other_packages_are_rounded_once(kind):
    """Sums just above the middle between 1 and the next number, not rounded to float32 first."""
    dtype = np.dtype(getattr(pytest.importorskip("ml_dtypes"), kind))
    next_one = 1 + float(np.spacing(dtype.type(1)))
    terms = np.array([[1.0, 1.0], [(next_one - 1) / 2] * 2, [2.0**-40] * 2, [0.0, 0.0]])
    data = da.from_array(terms, chunks=(2, 1))
    for result in (
        bcast.dask.sum(data, 0, dtype=dtype), bcast.dask.unbroadcast(data, (2,), dtype=dtype),
        bcast.dask.mean(data * 4, 0, dtype=dtype), bcast.dask.unbroadcast(data.sum(0), (2,), dtype=dtype),
    ):  # fmt: skip
        values = result.compute(scheduler="sync")
        assert result.dtype == values.dtype == dtype
        assert values.astype(float).tolist() == [next_one] * 2
    for name in ("var", "std"):
        right = getattr(bcast, name)(terms, 0, dtype=dtype)
        result = getattr(bcast.dask, name)(data, 0, dtype=dtype)
        assert result.compute(scheduler="sync").tolist() == right.tolist()


def test_axes_imply_modes():
    data = np.arange(6.0).reshape(2, 3)
    column = np.array([1.0, 2.0])
    assert_equal(bcast.dask.broadcast(data, (2, 3, 2), [0, 1]), np.stack([data] * 2, -1))
    assert_equal(bcast.dask.elementwise(np.add, data, column, axis=0), data + column[:, None])
    assert_equal(bcast.dask.chain(data, (np.add, column), axis=0), data + column[:, None])


def test_refusals_are_those_of_arrays_in_memory():
    data = da.ones((2, 3))
    calls = [("broadcast", (3, 3)), ("broadcast", 3), ("broadcast_to", (2, 4)), ("tile", -1), ("tile", 1.5)]
    calls += [("repeat", [1, 2], 1), ("repeat", -1, 0), ("repeat", 2, 5), ("unbroadcast", (2, 2))]
    calls += [("unrepeat", [1, 2], 1, {"dtype": "x"}), ("unrepeat", [1, 1], 1), ("unrepeat", 2, 1)]
    calls += [("chain", options) for options in ({"mode": "explicit"}, {"mode": "numpy", "axis": 0}, {"dtype": "i4"})]
    for name, *arguments in (
        *calls,
        ("chain", (np.add, [1, 2])),
        ("chain", np.sqrt, (np.add, np.ones((2, 3, 1))), {"mode": "unidirectional"}),
        ("chain", (np.add, np.ones(3)), {"mode": "pdpd", "axis": 0}),
        ("chain", (np.add, 1, 2)),
        ("chain", (np.clip, 1)),
        ("chain", np.sqrt, np.clip),
        ("chain", (np.clip, np.ones(4), None)),
        ("chain", (np.round, 1.5)),
        ("chain", (np.add, 1), (np.bitwise_and, 2)),
        ("where", np.ones(2), 0),
        ("where", "a", np.datetime64("2020")),
    ):
        keywords = arguments.pop() if isinstance(arguments[-1], dict) else {}
        with pytest.raises(Exception) as expected:
            getattr(bcast, name)(np.ones((2, 3)), *arguments, **keywords)
        with pytest.raises(type(expected.value)) as found:
            getattr(bcast.dask, name)(data, *arguments, **keywords)
        assert str(found.value) == str(expected.value)


# Elsewhere


def test_query_planning():
    code = """if True:
        import numpy as np, dask.array as da, bcast.dask
        assert da.ARRAY_EXPR_ENABLED
        data = np.arange(12.0).reshape(3, 4)
        lazily = da.from_array(data, chunks=2)
        for name, *arguments in (
            ("broadcast", (2, 3, 4)), ("tile", (2, 3)), ("repeat", 2, 0), ("repeat", [1, 0, 2], 0),
            ("unbroadcast", (4,)), ("unrepeat", [1, 2], 0), ("broadcast_to", (5, 3, 4)), ("broadcast_like", data),
            ("unbroadcast", ()), ("unbroadcast", (3, 4)), ("tile", (2, 1, 3)),
        ):
            result = getattr(bcast.dask, name)(lazily, *arguments)
            expected = getattr(bcast, name)(data, *arguments)
            assert result.compute(scheduler="sync").tolist() == expected.tolist(), name
        assert bcast.dask.repeat(3, 3).compute().tolist() == [3, 3, 3]
        assert bcast.dask.unbroadcast(da.from_array(np.float32(3)), ()).compute() == 3
        x, y = bcast.dask.meshgrid(lazily[0], da.from_array(np.array(5)))
        assert x.compute().tolist() == [[0, 1, 2, 3]] and y.compute().tolist() == [[5] * 4]
        number = da.from_array(np.array(5))
        assert bcast.dask.broadcast(number, (2, 1)).compute(scheduler="sync").tolist() == [[5], [5]]
        summed = bcast.dask.elementwise(np.add, lazily, da.arange(3, chunks=2), mode="pdpd", axis=0)
        assert summed.compute().tolist() == (data + np.arange(3)[:, None]).tolist()
        chosen = bcast.dask.where(lazily > 5, lazily[:1], -1)
        assert chosen.compute().tolist() == np.where(data > 5, data[:1], -1).tolist()
        chained = bcast.dask.chain(lazily, (np.add, da.arange(3, chunks=2)), np.negative, mode="pdpd", axis=0)
        assert chained.compute().tolist() == (-summed).compute().tolist()
    """
    printed("-c", code, DASK_ARRAY__QUERY_PLANNING="True")


def on_a_cluster(folder, *arguments):
    pytest.importorskip("distributed")
    pytest.importorskip("zarr")
    script = Path(__file__).with_name("_cluster.py")
    done = python(script, str(folder), *arguments)
    assert done.returncode == 0, done.stderr
    return ast.literal_eval(done.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the peak of memory")
def test_two_workers_write_more_than_their_memory_and_sum_it_back(tmp_path):
    seen = on_a_cluster(tmp_path)
    assert seen["bytes"] == 3_000_000_000
    assert seen["right"]
    assert seen["same"]  # no worker was restarted
    assert seen["peak"] < 0.95 * 700_000_000
    assert seen["idle"] == 0.05 * 700_000_000
    assert seen["threads"] == 1


@pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")
def test_a_worker_that_is_killed_changes_nothing(tmp_path):
    seen = on_a_cluster(tmp_path, "kill")
    assert seen["right"]
    assert not seen["same"]


def test_processes_of_a_pool_use_one_thread_each(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("""if True:
        import dask, dask.array as da, numpy as np, bcast, bcast.dask
        def threads(block):
            return np.full(block.shape, bcast.get_num_threads())
        if __name__ == "__main__":
            tiled = bcast.dask.tile(da.ones(8, chunks=8), 2, chunks=8)
            used = tiled.map_blocks(threads, dtype=int, meta=np.empty(0, int))
            with dask.config.set({"optimization.fuse.active": False}):
                print(used.compute(scheduler="processes", num_workers=1).max())
    """)
    done = python(script)
    assert done.stdout == "1\n", done.stderr
