"""Arguments other than plain arrays and ints: any array_like, any integers, many axes."""

import array
import math
from typing import get_args

import numpy as np
import pytest
from _calls import Index

import bcast
from bcast._rules.types import Mode

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
    "list": [0, 1, 2], "nested": [[0], [1], [2]], "range": range(3), "int": 7, "complex": 1j, "string": "text",
    "strings": ["a", "long one", ""], "scalar": np.float16(0.1), "datetime": np.datetime64("2000-01-01"),
    "array": array.array("h", [0, 1, 2]), "strided_memoryview": memoryview(bytes(range(8)))[::-3],
    "object_with_array": Converted(), "object_with_interface": Interface(), "none": None,
}  # fmt: skip


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
    for checked in (bcast.infer_shape(kind((3, 4)), target), bcast.broadcast_shapes(kind((3, 4)), target)):
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


@pytest.mark.parametrize("axis", [1, np.int8(1), np.uint64(1), np.array(1), Index(1)], ids=lambda axis: str(type(axis)))
def test_axis_may_be_any_integer(axis):
    assert bcast.broadcast([1, 2], (3, 2, 1), mode="pdpd", axis=axis)[0].tolist() == [[1], [2]]


@pytest.mark.parametrize("kind", [np.str_, lambda mode: "".join(mode)], ids=["numpy_string", "not_interned"])
@pytest.mark.parametrize("mode", get_args(Mode))
def test_mode_is_compared_by_value(mode, kind):
    arguments = {"explicit": {"axes_mapping": [0]}, "pdpd": {"axis": 0}}.get(mode, {})
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
    "padded": lambda new, shape: new([length + 1 for length in shape])[(*map(slice, shape), ...)],
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


@pytest.mark.parametrize("first", [0, 1])
def test_64_axes_that_alternate(first):
    """Every other axis repeats; only twelve of them are longer than 1, or no memory would do."""
    long = set(range(0, 64, 5))
    target = tuple(2 if axis in long else 1 for axis in range(64))
    shape = tuple(2 if axis in long and axis % 2 == first else 1 for axis in range(64))
    data = np.arange(math.prod(shape), dtype="u1").reshape(shape)
    np.testing.assert_array_equal(bcast.broadcast(data, target), np.broadcast_to(data, target), strict=True)
