"""What the functions promise beyond shapes: fresh results, any array-like and integer, any `out`, overlap."""

import array
import inspect
import itertools
import math
from itertools import product

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import bcast

SIGNATURES = {  # `shape` is refused, with the name to give in its place; so `target_shape` may be missing
    "broadcast": "(data, target_shape=None, axes_mapping=None, *, mode='numpy', axis=-1, broadcast_axes=None, "
    "dtype=None, casting='same_kind', out=None, shape=None)",
    "broadcast_like": "(data, like, axes_mapping=None, *, mode='numpy', axis=-1, broadcast_axes=None, "
    "dtype=None, casting='same_kind', out=None)",
    "infer_shape": "(data_shape, target_shape=None, axes_mapping=None, *, mode='numpy', axis=-1, "
    "broadcast_axes=None, shape=None)",
    "broadcast_to": "(array, shape, *, dtype=None, casting='same_kind', out=None)",
    "broadcast_arrays": "(*args)",
    "broadcast_shapes": "(*args)",
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures_are_those_documented(name):
    signature = inspect.signature(getattr(bcast, name))
    empty = inspect.Parameter.empty
    assert all(parameter.annotation is not empty for parameter in signature.parameters.values())
    assert signature.return_annotation is not empty
    bare = [parameter.replace(annotation=empty) for parameter in signature.parameters.values()]
    assert str(inspect.Signature(bare)) == SIGNATURES[name]


# The result is new.


def assert_fresh(result, *sources):
    assert type(result) is np.ndarray
    assert result.flags.c_contiguous
    assert result.flags.writeable
    assert result.flags.owndata
    assert result.flags.aligned
    assert result.base is None
    for source in sources:
        assert not np.shares_memory(result, source)


FRESH = {
    "replicated": ((3,), (2, 3), {}),
    "same_shape": ((2, 3), (2, 3), {}),
    "new_axes_of_1": ((3,), (1, 1, 3), {}),
    "scalar": ((), (), {}),
    "empty": ((0,), (2, 0), {}),
    "new_axis_of_1": ((2, 3), (1, 2, 3), {"mode": "explicit", "broadcast_axes": [0]}),
    "bidirectional": ((2, 3), (), {"mode": "bidirectional"}),
    "pdpd": ((2, 3), (2, 3), {"mode": "pdpd"}),
    "large": ((1000, 1), (1000, 1000), {}),
}


@pytest.mark.parametrize(("shape", "target", "arguments"), FRESH.values(), ids=FRESH)
def test_result_is_fresh(shape, target, arguments):
    for order, read_only in product("CF", [False, True]):
        data = np.arange(math.prod(shape)).reshape(shape, order=order)
        data.flags.writeable = not read_only
        like = np.broadcast_to(0, target)
        for result in bcast.broadcast(data, target, **arguments), bcast.broadcast_like(data, like, **arguments):
            assert_fresh(result, data)
            before = data.copy()
            result[...] = -1
            np.testing.assert_array_equal(data, before)


def test_results_of_the_other_functions_are_fresh():
    data = np.arange(6).reshape(2, 3)
    assert_fresh(bcast.broadcast_to(data, (2, 3)), data)
    assert_fresh(bcast.broadcast(data, (2, 3), mode="explicit", broadcast_axes=[]), data)
    results = bcast.broadcast_arrays(data, data, 7)
    for result in results:
        assert_fresh(result, data)
    assert not np.shares_memory(*results[:2])


# Any array-like.


class Own(np.ndarray):
    def __array_finalize__(self, obj):
        self.tag = "kept by views"


class Converted:
    def __array__(self, dtype=None, copy=None):
        return np.arange(3, dtype=np.int16)


class Interface:
    def __init__(self):
        self.array = np.arange(3, dtype=np.int16)
        self.__array_interface__ = self.array.__array_interface__


ARRAY_LIKES = {
    "list": [0, 1, 2],
    "nested": [[0], [1], [2]],
    "range": range(3),
    "int": 7,
    "complex": 1j,
    "string": "text",
    "strings": ["a", "long one", ""],
    "scalar": np.float16(0.1),
    "datetime": np.datetime64("2000-01-01"),
    "array": array.array("h", [0, 1, 2]),
    "strided_memoryview": memoryview(bytes(range(8)))[::-3],
    "object_with_array": Converted(),
    "object_with_interface": Interface(),
    "none": None,
}


@pytest.mark.parametrize("data", ARRAY_LIKES.values(), ids=ARRAY_LIKES)
def test_array_likes_are_taken_as_numpy_takes_them(data):
    expected = np.asarray(data)
    shape = (2, *expected.shape)
    np.testing.assert_array_equal(bcast.broadcast(data, shape), np.broadcast_to(expected, shape), strict=True)
    np.testing.assert_array_equal(bcast.broadcast_to(data, shape), np.broadcast_to(expected, shape), strict=True)
    like = bcast.broadcast_like(data, np.zeros(shape).tolist())
    np.testing.assert_array_equal(like, np.broadcast_to(expected, shape), strict=True)
    (only,) = bcast.broadcast_arrays(data)
    np.testing.assert_array_equal(only, expected, strict=True)


def memory_map(path, values, mode="w+"):
    mapped = np.memmap(path, values.dtype, "w+", shape=values.shape)
    mapped[...] = values
    mapped.flush()
    return mapped if mode == "w+" else np.memmap(path, values.dtype, mode, shape=values.shape)


SUBCLASSES = {
    "own": lambda _path, values: values.view(Own),
    "recarray": lambda _path, values: values.view(np.recarray),
    "memmap": lambda path, values: memory_map(path, values),
    "memmap_read_only": lambda path, values: memory_map(path, values, "r"),
    "matrix": lambda _path, values: values.view(np.matrix),
}


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("make", SUBCLASSES.values(), ids=SUBCLASSES)
@pytest.mark.parametrize("target", [(2, 3), (4, 2, 3)], ids=["same_shape", "replicated"])
def test_subclass_comes_back_as_ndarray(make, target, tmp_path):
    data = make(tmp_path / "data", np.arange(6).reshape(2, 3))
    assert type(data) is not np.ndarray
    plain = np.asarray(data)
    for result in (
        bcast.broadcast(data, target),
        bcast.broadcast_like(data, np.empty(target)),
        bcast.broadcast_to(data, target),
        bcast.broadcast_arrays(data, np.empty(target))[0],
    ):
        assert_fresh(result, plain)
        np.testing.assert_array_equal(result, np.broadcast_to(plain, target), strict=True)
    for shape, sums in ((3,), plain.sum(0)), ((2, 3), plain):
        result = bcast.unbroadcast(data, shape)
        assert_fresh(result, plain)
        np.testing.assert_array_equal(result, sums, strict=True)


# Any integers.


class Size(tuple):  # as torch.Size
    __slots__ = ()


class Index:
    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


INTEGERS = {
    "tuple": tuple,
    "list": list,
    "range": lambda values: range(values[0], values[-1] + 1),
    "tuple_subclass": Size,
    "memoryview": lambda values: memoryview(array.array("i", values)),
    "numpy_items": lambda values: [np.int64(value) for value in values],
    "zero_axes_items": lambda values: [np.array(value) for value in values],
    "index_items": lambda values: [Index(value) for value in values],
    **{
        code: lambda values, code=code: np.array(values, code)
        for code in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", ">i4", ">u8", "q", "Q")
    },
    "subclass": lambda values: np.array(values).view(Own),
}


@pytest.mark.parametrize("kind", INTEGERS.values(), ids=INTEGERS)
def test_integers_of_every_kind_are_taken_as_lengths(kind):
    data = np.arange(12).reshape(3, 4)
    expected = np.broadcast_to(data, (2, 3, 4))
    target = kind((2, 3, 4))
    checked = bcast.infer_shape(kind((3, 4)), target)
    assert checked == (2, 3, 4)
    assert all(type(length) is int for length in checked)
    for result in (
        bcast.broadcast(data, target),
        bcast.broadcast(data, target, kind((1, 2)), mode="explicit"),
        bcast.broadcast(data, target, mode="explicit", broadcast_axes=kind((0,))),
        bcast.broadcast_like(data, expected, kind((1, 2)), mode="explicit"),
        bcast.broadcast_to(data, target),
    ):
        np.testing.assert_array_equal(result, expected, strict=True)
    assert bcast.broadcast_shapes(kind((3, 4)), target) == (2, 3, 4)


@pytest.mark.parametrize(
    "axis", [1, np.int8(1), np.uint64(1), np.array(1), Index(1)], ids=lambda axis: type(axis).__name__
)
def test_axis_may_be_any_integer(axis):
    assert bcast.broadcast([1, 2], (3, 2, 1), mode="pdpd", axis=axis)[0].tolist() == [[1], [2]]


@pytest.mark.parametrize("kind", [np.str_, lambda mode: "".join(mode)], ids=["numpy_string", "not_interned"])
@pytest.mark.parametrize(
    ("mode", "arguments"),
    [("numpy", {}), ("explicit", {"axes_mapping": [0]}), ("bidirectional", {}), ("pdpd", {"axis": 0}), ("none", {})],
)
def test_mode_is_compared_by_value(mode, arguments, kind):
    assert kind(mode) is not mode
    assert bcast.broadcast([7, 8], (2,), mode=kind(mode), **arguments).tolist() == [7, 8]


# Any output.


def every(rank, step):
    return (..., *[slice(None, None, step)] * rank)


LAYOUTS = {  # name -> how to make an array of the shape from `new`, which gives contiguous ones
    "C": lambda new, shape: new(shape),
    "F": lambda new, shape: new(shape[::-1]).T,
    "sparse": lambda new, shape: new([2 * length for length in shape])[every(len(shape), 2)],
    "reversed": lambda new, shape: new(shape)[every(len(shape), -1)],
    "rotated": lambda new, shape: np.moveaxis(new(shape[1:] + shape[:1]), -1, 0) if shape else new(shape),
    "one_column": lambda new, shape: new((*shape, 3))[..., 1],
    "unaligned": lambda new, shape: new(shape, offset=1),
    "subclass": lambda new, shape: new(shape).view(Own),
}


class Arena:
    """An array of some layout amid patterned memory; `untouched_outside` proves that nothing else was written."""

    def __init__(self, layout, shape, dtype):
        self.dtype = np.dtype(dtype)
        self.array = LAYOUTS[layout](self.new, shape)
        assert self.array.shape == shape

    def new(self, shape, offset=0):
        size = self.dtype.itemsize * math.prod(shape)
        self.bytes = np.full(64 + size + 64, 0xA5, np.uint8)
        return self.bytes[64 + offset :][:size].view(self.dtype).reshape(shape)

    def untouched_outside(self):
        raw = np.dtype((np.void, self.dtype.itemsize))
        plain = self.array.view(np.ndarray)
        plain.view(raw)[...] = np.full(raw.itemsize, 0xA5, np.uint8).view(raw).reshape(())
        return (self.bytes == 0xA5).all()


OUTPUTS = {
    "rows": ((3,), (4, 3), {}),
    "columns": ((4, 1), (4, 3), {}),
    "scalar": ((), (4, 3), {}),
    "scalar_to_scalar": ((), (), {}),
    "same_shape": ((2, 3), (2, 3), {}),
    "middle": ((2, 1, 3), (2, 4, 3), {}),
    "alternating": ((1, 3, 1, 2), (2, 3, 2, 2), {}),
    "explicit": ((2, 3), (2, 4, 3, 2), {"mode": "explicit", "axes_mapping": (0, 2)}),
    "bidirectional": ((3, 1), (2,), {"mode": "bidirectional"}),
    "empty": ((0,), (2, 0), {}),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("shape", "target", "arguments"), OUTPUTS.values(), ids=OUTPUTS)
def test_out_of_any_strides_is_filled(shape, target, arguments, layout):
    for dtype in map(np.dtype, ("u1", "i2", "f4", "f8", "c16", "V3", "V33")):
        data = (np.arange(math.prod(shape) * dtype.itemsize) % 251).astype(np.uint8).view(dtype).reshape(shape)
        data.flags.writeable = False
        expected = bcast.broadcast(data, target, **arguments)
        arena = Arena(layout, expected.shape, dtype)
        assert bcast.broadcast(data, target, out=arena.array, **arguments) is arena.array
        assert arena.array.tobytes() == expected.tobytes()
        assert arena.untouched_outside()


# The output over the data: as if the data had been copied first.

DATA_VIEWS = {
    "row": ((4,), (1,)),
    "row_reversed": ((4,), (-1,)),
    "column": ((4, 1), (1, 1)),
    "matrix": ((4, 4), (4, 1)),
    "matrix_transposed": ((4, 4), (1, 4)),
    "matrix_rotated": ((4, 4), (-4, -1)),
    "repeated": ((4, 4), (0, 1)),
    "scalar": ((), ()),
}
OUT_VIEWS = {
    "C": (4, 1),
    "F": (1, 4),
    "reversed": (-4, -1),
    "rows_reversed": (-4, 1),
    "columns_reversed": (4, -1),
    "sparse_rows": (6, 1),
    "sparse": (8, 2),
}
ITEMS = 96  # of the buffer in which both lie
MIDDLE = 48


def view(buffer, shape, strides, offset):
    """Items of the buffer; negative strides start far enough for all to lie behind the offset."""
    offset -= sum(min(stride, 0) * (length - 1) for length, stride in zip(shape, strides, strict=True))
    return as_strided(buffer[offset:], shape, [stride * buffer.itemsize for stride in strides])


@pytest.mark.parametrize("strides", OUT_VIEWS.values(), ids=OUT_VIEWS)
@pytest.mark.parametrize(("shape", "data_strides"), DATA_VIEWS.values(), ids=DATA_VIEWS)
def test_data_may_overlap_out(shape, data_strides, strides):
    dtypes = itertools.cycle(["u1", "f8", "V3", "O"])
    for data_offset, out_offset in product(range(24, 56, 3), (28, 31, 40)):
        dtype = next(dtypes)
        items = np.arange(3 * ITEMS).astype(np.uint8).view(dtype) if dtype == "V3" else np.arange(ITEMS).astype(dtype)
        copied_first, buffer = items.copy(), items.copy()
        expected = view(copied_first, (4, 4), strides, out_offset)
        expected[...] = np.broadcast_to(view(copied_first, shape, data_strides, data_offset).copy(), (4, 4)).copy()
        out = view(buffer, (4, 4), strides, out_offset)
        bcast.broadcast(view(buffer, shape, data_strides, data_offset), (4, 4), out=out)
        assert buffer.tolist() == copied_first.tolist(), (data_offset, out_offset)


# Ranks and sizes at the kernel's limits.


@pytest.mark.parametrize("rank", [1, 2, 31, 32, 33, 63, 64])
def test_every_rank_is_copied(rank):
    """Two axes of 2 at every place that alternates with axes of 1."""
    for last in range(0, rank, 7):
        shape = tuple(2 if axis in (0, last) else 1 for axis in range(rank))
        target = tuple(2 if axis in (0, last, rank // 2) else 1 for axis in range(rank))
        data = np.arange(math.prod(shape)).reshape(shape)
        np.testing.assert_array_equal(bcast.broadcast(data, target), np.broadcast_to(data, target), strict=True)


@pytest.mark.parametrize("first", [0, 1])
def test_64_axes_that_alternate(first):
    """Every other axis repeats; only twelve of them are longer than 1, or no memory would do."""
    long = set(range(0, 64, 5))
    target = tuple(2 if axis in long else 1 for axis in range(64))
    shape = tuple(2 if axis in long and axis % 2 == first else 1 for axis in range(64))
    data = np.arange(math.prod(shape), dtype="u1").reshape(shape)
    np.testing.assert_array_equal(bcast.broadcast(data, target), np.broadcast_to(data, target), strict=True)


def test_an_empty_output_leaves_memory_alone():
    arena = np.full(64, 7, np.uint8)
    out = arena[16:16].reshape(3, 0)
    assert bcast.broadcast(np.uint8(1), (3, 0), out=out) is out
    assert (arena == 7).all()
