"""For any shape, dtype, layout, mode, `out` and way of writing, results have the bytes of NumPy's."""

import mmap
from functools import partial

import numpy as np
import pytest
from _modes import FORMS, drawn_call
from _reference import reference
from _ways import SUMS, WAYS, summed, written
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from test_ops import assert_fresh

import bcast

DTYPES = ["?", "i1", "u2", ">i4", "u8", "f2", "f4", ">f8", "c8", "c16", "g", "M8[us]", "m8[D]", "S5", "U3", "V7", "V24"]
PADDED = np.dtype([("a", "u1"), ("b", "<f8")], align=True)
DTYPES.append(PADDED)
ways = st.sampled_from(WAYS)
LENGTHS = st.sampled_from([0, 1, 1, 2, 2, 3, 4, 5, 9, 17])

drill_or_not = pytest.mark.parametrize(
    "examples",
    [150, pytest.param(1000, marks=pytest.mark.soak), pytest.param(40_000, marks=pytest.mark.drill)],
    ids=["short", "soak", "long"],
)


def search(examples, prop):
    """Run the property `prop` over `examples` examples, the same ones each time."""
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large]
    run = settings(max_examples=examples, deadline=None, derandomize=True, database=None, suppress_health_check=checks)
    run(prop)()


def for_all(*strategies):
    """Make a test of a property of drawn calls, with a number of examples."""

    def made(prop):
        @drill_or_not
        def test(examples):
            search(examples, given(*strategies)(prop))

        test.__doc__ = prop.__doc__
        return test

    return made


def filled(draw, shape, dtype):
    """Return an array of arbitrary bytes; `bool` gets real ones, which NumPy compares by value."""
    dtype = np.dtype(dtype)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    raw = rng.integers(0, 2 if dtype.kind == "b" else 256, int(np.prod(shape)) * dtype.itemsize, np.uint8)
    return raw.view(dtype).reshape(shape)


def laid_out(draw, array, layouts):
    """Return an array equal to `array` in one of the `layouts`; as zero strides repeat, their data may change."""
    layout = draw(st.sampled_from(layouts))
    if layout == "F":
        return np.array(array, order="F", copy=True)
    if layout == "permuted":
        order = draw(st.permutations(range(array.ndim)))
        return array.transpose(order).copy().transpose([order.index(axis) for axis in range(array.ndim)])
    if layout == "reversed":
        back = (..., *[slice(None, None, -1)] * array.ndim)
        return array[back].copy()[back]
    if layout == "stepped":
        steps = [draw(st.integers(1, 3)) for _ in array.shape]
        room = np.empty([length * step + 1 for length, step in zip(array.shape, steps, strict=True)], array.dtype)
        view = room[(..., *[slice(0, n * s, s) for n, s in zip(array.shape, steps, strict=True)])]
        np.copyto(view.view(raw_dtype(array)), array.view(raw_dtype(array)))
        return view
    if layout == "unaligned":
        room = np.empty(array.nbytes + 1, np.uint8)[1:]
        room[:] = array.reshape(-1).view(np.uint8)
        return room.view(array.dtype).reshape(array.shape)
    if layout == "zero strides":
        one = (..., *[slice(None) if draw(st.booleans()) else slice(min(1, length)) for length in array.shape])
        return np.broadcast_to(array[one], array.shape)
    return array.copy()


def raw_dtype(array):
    return np.dtype((np.void, array.dtype.itemsize))


DATA_LAYOUTS = ["C", "F", "permuted", "reversed", "stepped", "unaligned", "zero strides"]
OUT_LAYOUTS = [layout for layout in DATA_LAYOUTS if layout != "zero strides"]


def as_bytes(array):
    return np.ascontiguousarray(array.view(raw_dtype(array))).tobytes()


def drawn_data(draw, shape, dtype):
    """Draw a read-only array of any bytes and layout."""
    data = laid_out(draw, filled(draw, shape, dtype), DATA_LAYOUTS)
    data.flags.writeable = False
    return data


def check_copies(draw, way, call, data, expected):
    """Compare a new result and one in an `out` of any layout, byte by byte."""
    with written(*way):
        result = call()
    assert (result.shape, result.dtype) == (expected.shape, data.dtype)
    assert result.dtype.byteorder == data.dtype.byteorder
    assert as_bytes(result) == as_bytes(expected)
    assert_fresh(result, data)
    out = laid_out(draw, filled(draw, expected.shape, data.dtype), OUT_LAYOUTS)
    with written(*way):
        assert call(out=out) is out
    assert as_bytes(out) == as_bytes(expected)


@st.composite
def calls(draw):
    """Draw the data's shape, the arguments of `broadcast`, and the shapes of the result and to which NumPy reshapes."""
    target = draw(st.lists(LENGTHS, max_size=6).map(tuple).filter(lambda shape: np.prod(shape) <= 20_000))
    form = draw(st.sampled_from(sorted(FORMS)))
    data, target, arguments = drawn_call(lambda items: draw(st.sampled_from(items)), target, form)
    found = reference(data, target, **arguments)
    assume(found)
    return data, target, arguments, *found


@for_all(st.data(), ways, calls(), st.sampled_from(DTYPES))
def test_every_mode_as_numpy(data_strategy, way, call, dtype):
    shape, target, arguments, result_shape, stretched = call
    data = drawn_data(data_strategy.draw, shape, dtype)
    expected = np.broadcast_to(data.reshape(stretched), result_shape)
    assert bcast.infer_shape(shape, target, **arguments) == result_shape
    check_copies(data_strategy.draw, way, partial(bcast.broadcast, data, target, **arguments), data, expected)


@st.composite
def windows(draw, room, shape, repeating=False):
    """Draw an array of `shape` somewhere in `room`; None if it does not fit.

    It is contiguous, or has axes in any order, by steps, backwards, or `repeating` by strides.
    """
    steps, low, high, step = [0] * len(shape), 0, 0, 1
    plain = draw(st.booleans())
    for axis in reversed(range(len(shape))) if plain else draw(st.permutations(range(len(shape)))):
        if repeating and not plain and draw(st.integers(0, 5)) == 0:
            continue
        step *= 1 if plain else draw(st.integers(1, 2))
        steps[axis] = step if plain or draw(st.booleans()) else -step
        reach = steps[axis] * (shape[axis] - 1)
        low, high = min(low, low + reach), max(high, high + reach)
        step *= shape[axis]
    if high - low >= room.size:
        return None
    start = draw(st.integers(-low, room.size - 1 - high))
    return np.lib.stride_tricks.as_strided(room[start:], shape, [each * room.itemsize for each in steps])


WINDOWS = st.lists(st.integers(1, 5), max_size=4).map(tuple)


@for_all(st.data(), ways, WINDOWS, st.sampled_from(["u1", "f4", "c16", "V3", PADDED]))
def test_out_overlaps_data(data_strategy, way, shape, dtype):
    draw = data_strategy.draw
    room = filled(draw, 300, dtype)
    source = tuple(1 if draw(st.booleans()) else length for length in shape)
    data, out = draw(windows(room, source, repeating=True)), draw(windows(room, shape))
    if data is None or out is None:
        return
    expected = as_bytes(np.broadcast_to(data.view(raw_dtype(data)).copy(), shape))
    items = room.view(raw_dtype(room))
    before = items.copy()
    with written(*way):
        bcast.broadcast(data, shape, out=out)
    assert as_bytes(out) == expected
    # What is not `out` is as it was.
    touched = np.zeros(room.size, bool)
    offset = (out.ctypes.data - room.ctypes.data) // room.itemsize
    strides = [stride // room.itemsize for stride in out.strides]
    np.lib.stride_tricks.as_strided(touched[offset:], out.shape, strides)[...] = True
    assert as_bytes(items[~touched]) == as_bytes(before[~touched])


@st.composite
def alternating(draw):
    """Draw an item's size, data and a shape of axes that are copied and repeated in turns, mostly short ones."""
    itemsize = draw(st.sampled_from([1, 1, 2, 3, 4, 5, 8, 11, 16, 20, 100]))
    shape, room = [], 60_000 // itemsize
    for most in draw(st.lists(st.sampled_from([3, 3, 20, 300, 5000]), min_size=1, max_size=6)):
        length = draw(st.integers(1, max(1, min(most, room))))
        shape.insert(0, length)
        room //= length
    first = draw(st.integers(0, 1))
    source = tuple(1 if axis % 2 == first else length for axis, length in enumerate(shape))
    return filled(draw, source, (np.void, itemsize)), tuple(shape)


@for_all(st.data(), ways, alternating())
def test_parts_begin_and_end_anywhere(data_strategy, way, call):
    """Threads part an output where a page ends: any byte of it may be there."""
    data, shape = call
    expected = np.broadcast_to(data, shape)
    size = expected.size * expected.itemsize
    before = (mmap.PAGESIZE - data_strategy.draw(st.integers(1, size))) % mmap.PAGESIZE
    room = np.full(before + size + 1 + mmap.PAGESIZE, 0xA5, np.uint8)
    room = room[-room.ctypes.data % mmap.PAGESIZE :][: before + size + 1]
    out = room[before:-1].view(data.dtype).reshape(shape)
    with written(*way):
        bcast.broadcast(data, shape, out=out)
    assert as_bytes(out) == as_bytes(expected)
    assert (room[:before] == 0xA5).all()
    assert room[-1] == 0xA5


@for_all(st.data(), st.lists(st.lists(st.sampled_from([0, 1, 2, 3]), max_size=4).map(tuple), max_size=5))
def test_arrays_as_numpy(data_strategy, shapes):
    arrays = [filled(data_strategy.draw, shape, "f4") for shape in shapes]
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        with pytest.raises(ValueError, match="`args` expected"):
            bcast.broadcast_shapes(*shapes)
        with pytest.raises(ValueError, match="`args` expected"):
            bcast.broadcast_arrays(*arrays)
        return
    assert bcast.broadcast_shapes(*shapes) == shape
    for result, array in zip(bcast.broadcast_arrays(*arrays), arrays, strict=True):
        assert as_bytes(result) == as_bytes(np.broadcast_to(array, shape))
        assert result.shape == shape


@for_all(st.lists(LENGTHS, max_size=4).map(tuple), st.lists(LENGTHS, max_size=4).map(tuple))
def test_refusals_as_numpy(shape, target):
    data = np.zeros(shape, np.uint8)
    try:
        expected = np.broadcast_to(data, target).shape
    except ValueError:
        with pytest.raises(ValueError, match="`target_shape` expected"):
            bcast.broadcast(data, target)
        return
    assert bcast.broadcast(data, target).shape == expected


# Of numbers so small that every sum is exact; integers may wrap around, which is exact, too.
SUMMED = {"i1": 127, "u2": 1000, ">i4": 1000, "i8": 2**62, "u8": 2**62, "f2": 1, "f4": 8, ">f4": 8, "f8": 1000, "c8": 8}


def numbers(draw, shape, dtype):
    """Draw an array of integers, also where the dtype is not one of them."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    most = SUMMED[dtype]
    low = 0 if np.dtype(dtype).kind == "u" else -most
    array = rng.integers(low, most, shape, endpoint=True).astype(dtype)
    return np.asarray(array * (1 + 2j)) if array.dtype.kind == "c" else array


def product(a, b):
    """Return <a, b> as a Python number: exactly, but modulo what integers wrap around at."""
    exact = sum(x * y for x, y in zip(a.ravel().tolist(), b.ravel().tolist(), strict=True))
    return exact % 2 ** (8 * a.itemsize) if a.dtype.kind in "iu" else exact


def check_adjoint(draw, way, data, dtype, stretched, call):
    """<stretched(x), g> == <x, call(g)>, of any layouts."""
    grad = laid_out(draw, numbers(draw, stretched.shape, dtype), DATA_LAYOUTS)
    grad.flags.writeable = False
    with summed(*way):
        result = call(grad)
    assert (result.shape, result.dtype) == (data.shape, data.dtype)
    assert_fresh(result, grad)
    if dtype != "f2" or np.abs(result).max(initial=0) <= 2048:  # beyond, it has no odd numbers
        assert product(stretched, grad) == product(data, result)
    out = laid_out(draw, numbers(draw, data.shape, dtype), OUT_LAYOUTS)
    with summed(*way):
        assert call(grad, out=out) is out
    assert as_bytes(out) == as_bytes(result)


@for_all(st.data(), st.sampled_from(SUMS), calls(), st.sampled_from(list(SUMMED)))
def test_unbroadcast_is_the_adjoint(data_strategy, way, call, dtype):
    """Sums of any mode, dtype, layout and way."""
    shape, target, arguments, *_ = call
    data = numbers(data_strategy.draw, shape, dtype)
    stretched, sums = bcast.broadcast(data, target, **arguments), partial(bcast.unbroadcast, data_shape=shape)
    check_adjoint(data_strategy.draw, way, data, dtype, stretched, partial(sums, **arguments))


@for_all(st.data(), st.sampled_from(SUMS), WINDOWS, st.sampled_from(["u1", "f4", ">f4", "c8", "g"]))
def test_out_overlaps_grad(data_strategy, way, shape, dtype):
    draw = data_strategy.draw
    room = np.random.default_rng(draw(st.integers(0, 2**32 - 1))).integers(0, 100, 300).astype(dtype)
    grad = draw(windows(room, shape, repeating=True))
    source = tuple(1 if draw(st.booleans()) else length for length in shape)
    out = draw(windows(room, source))
    if grad is None or out is None:
        return
    axes = tuple(axis for axis, length in enumerate(source) if length == 1)
    expected = grad.copy().sum(axes, dtype=grad.dtype.newbyteorder("="), keepdims=True)
    with summed(*way):
        bcast.unbroadcast(grad, source, out=out)
    np.testing.assert_array_equal(out, expected)
