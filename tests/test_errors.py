"""Bad input: the class and the message of every error, and that nothing has been written by then."""

import mmap
import sys
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from numpy.exceptions import AxisError
from test_alignment import CASES

import bcast
from bcast._rules.alignment import Alignment

ROW = np.arange(3)
ROW.flags.writeable = False
MATRIX = np.arange(6).reshape(2, 3)
MATRIX.flags.writeable = False
ONES = np.ones((1, 1), int)

LARGEST = sys.maxsize


@contextmanager
def untouched(shape, dtype):
    """An `out` in the midst of patterned memory, of which not a byte may change."""
    dtype = np.dtype(dtype)
    arena = np.full(dtype.itemsize * int(np.prod(shape)) + 128, 0xA5, np.uint8)
    yield arena[64:-64].view(dtype).reshape(shape)
    assert (arena == 0xA5).all()


def refuse(call, error, message):
    """Check the error that `call` raises: exactly its class and its message."""
    with pytest.raises(error) as caught:
        call()
    assert type(caught.value) is error
    assert str(caught.value) == message


def refuse_with_out(call, error, message, shape=(2, 3), dtype=int):
    """The same without `out` and with it."""
    refuse(call, error, message)
    with untouched(shape, dtype) as out:
        refuse(partial(call, out=out), error, message)


def rows(table):
    return {"argvalues": list(table.values()), "ids": list(table)}


# Shapes.


class Foreign:
    """An array of another library, whose items are integers to Python whatever their dtype."""

    def __init__(self, *items):
        self.items = np.array(items)

    def __array__(self, dtype=None, copy=None):
        return self.items

    def __iter__(self):
        return iter(self.items.ravel().astype(int).tolist())

    def __index__(self):
        return int(self.items)

    def __repr__(self):
        return f"Foreign{self.items.tolist()}"


BAD_SHAPES = {
    "negative": ([-1, 3], ValueError, "lengths of 0 or more, got [-1, 3]"),
    "negative_beside_0": ((0, -2), ValueError, "lengths of 0 or more, got (0, -2)"),
    "negative_twice": ((-2, -3), ValueError, "lengths of 0 or more, got (-2, -3)"),
    "negative_array": (np.array([2, -3]), ValueError, "lengths of 0 or more, got array([ 2, -3])"),
    "negative_and_large": ((-(10**30),), ValueError, f"lengths of 0 or more, got (-{10**30},)"),
    "float": ([2.5, 3], TypeError, "a 1-D sequence of integers, got [2.5, 3]"),
    "float_integral": ((2.0, 3.0), TypeError, "a 1-D sequence of integers, got (2.0, 3.0)"),
    "float_array": (np.array([2.0, 3.0]), TypeError, "a 1-D sequence of integers, got array([2., 3.])"),
    "float_array_empty": (np.array([]), TypeError, "a 1-D sequence of integers, got array([], dtype=float64)"),
    "bool": ((True, 3), TypeError, "a 1-D sequence of integers, got (True, 3)"),
    "bool_array": (np.array([True, True]), TypeError, "a 1-D sequence of integers, got array([ True, True])"),
    "bool_item": ([np.True_, 3], TypeError, "a 1-D sequence of integers, got [np.True_, 3]"),
    "complex": ([2j], TypeError, "a 1-D sequence of integers, got [2j]"),
    "none_inside": ((None, 3), TypeError, "a 1-D sequence of integers, got (None, 3)"),
    "object_array": (
        np.array([2, 3], object),
        TypeError,
        "a 1-D sequence of integers, got array([2, 3], dtype=object)",
    ),
    "two_axes": ([[2, 3]], TypeError, "a 1-D sequence of integers, got [[2, 3]]"),
    "ragged": ([[2], [3, 4]], TypeError, "a 1-D sequence of integers, got [[2], [3, 4]]"),
    "two_axes_array": (
        np.array([[2, 3]]),
        TypeError,
        "a 1-D sequence of integers, got array([[2, 3]]); the array comes before the shape",
    ),
    "arrays_inside": ([np.array([3])], TypeError, "a 1-D sequence of integers, got [array([3])]"),
    "strings_inside": (["2", "3"], TypeError, "a 1-D sequence of integers, got ['2', '3']"),
    "65_axes": ((1,) * 65, ValueError, "at most 64 axes, got 65"),
    "masked": (
        np.ma.array([2, 3], mask=[False, True]),
        TypeError,
        "a 1-D sequence of integers, got masked_array(data=[2, --], mask=[False, True], fill_value=999999)",
    ),
    "foreign_bools": (Foreign(True, True), TypeError, "a 1-D sequence of integers, got Foreign[True, True]"),
    "foreign_floats": (Foreign(2.0, 3.0), TypeError, "a 1-D sequence of integers, got Foreign[2.0, 3.0]"),
    "foreign_two_axes": (Foreign([2], [3]), TypeError, "a 1-D sequence of integers, got Foreign[[2], [3]]"),
    "foreign_bool_inside": ((Foreign(True), 3), TypeError, "a 1-D sequence of integers, got (Foreign[True], 3)"),
    "many_digits": ((10**5000,), ValueError, f"an output of at most {LARGEST} elements, got a tuple too long to show"),
    "negative_of_many_digits": ((-(10**5000),), ValueError, "lengths of 0 or more, got a tuple too long to show"),
}

BAD_CONTAINERS = {
    "string": ("23", TypeError, "a 1-D sequence of integers, got '23'"),
    "bytes": (b"\2\3", TypeError, "a 1-D sequence of integers, got b'\\x02\\x03'"),
    "bytearray": (bytearray(b"\2"), TypeError, "a 1-D sequence of integers, got bytearray(b'\\x02')"),
    "set": ({2, 3}, TypeError, "a 1-D sequence of integers, got {2, 3}"),
    "frozenset": (frozenset({3}), TypeError, "a 1-D sequence of integers, got frozenset({3})"),
    "dict": ({2: 3}, TypeError, "a 1-D sequence of integers, got {2: 3}"),
}

BAD_SCALARS = {
    "int": (3, TypeError, "a 1-D sequence of integers, got 3; give (3,)"),
    "zero_axes": (np.array(3), TypeError, "a 1-D sequence of integers, got array(3)"),
    "int64": (np.int64(3), TypeError, "a 1-D sequence of integers, got np.int64(3); give (3,)"),
    "none": (None, TypeError, "a 1-D sequence of integers, got None"),
}

SHAPE_ARGUMENTS = {
    "broadcast": ("target_shape", lambda shape, **out: bcast.broadcast(ROW, shape, **out)),
    "broadcast_bidirectional": (
        "target_shape",
        lambda shape, **out: bcast.broadcast(ROW, shape, mode="bidirectional", **out),
    ),
    "infer_shape": ("target_shape", lambda shape: bcast.infer_shape((3,), shape)),
    "infer_shape_data": ("data_shape", lambda shape: bcast.infer_shape(shape, (2, 3))),
    "broadcast_to": ("shape", lambda shape, **out: bcast.broadcast_to(ROW, shape, **out)),
    "unbroadcast": ("data_shape", lambda shape, **out: bcast.unbroadcast(MATRIX, shape, **out)),
    "broadcast_shapes": ("args", lambda shape: bcast.broadcast_shapes((3,), shape)),
}
SCALARS_ARE_SHAPES = {"broadcast_to", "broadcast_shapes"}


@pytest.mark.parametrize(
    ("function", "shape", "error", "message"),
    [
        pytest.param(function, *bad, id=f"{function}-{name}")
        for function in SHAPE_ARGUMENTS
        for name, bad in (
            BAD_SHAPES if function in SCALARS_ARE_SHAPES else BAD_SHAPES | BAD_CONTAINERS | BAD_SCALARS
        ).items()
    ],
)
def test_bad_shapes_are_refused_in_the_one_form(function, shape, error, message):
    argument, call = SHAPE_ARGUMENTS[function]
    message = f"`{argument}` expected {message}"
    if argument == "args":  # before these there is no array
        message = message.partition("; ")[0]
    check = refuse if function in {"infer_shape", "infer_shape_data", "broadcast_shapes"} else refuse_with_out
    check(partial(call, shape), error, message)


@pytest.mark.parametrize("function", sorted(SCALARS_ARE_SHAPES))
@pytest.mark.parametrize(
    ("shape", "error", "part"),
    **rows(
        {
            **BAD_CONTAINERS,
            "negative_int": (-1, ValueError, "expected lengths of 0 or more, got "),
            "float_int": (3.0, TypeError, "a 1-D sequence of integers, got 3.0"),
            "bool_int": (True, TypeError, "expected a 1-D sequence of integers, got "),
            "none": (None, TypeError, "a 1-D sequence of integers, got None"),
        }
    ),
)
def test_shape_that_may_be_an_int(function, shape, error, part):
    argument, call = SHAPE_ARGUMENTS[function]
    with pytest.raises(error) as caught:
        call(shape)
    assert type(caught.value) is error
    assert str(caught.value).startswith(f"`{argument}` expected ")
    assert part in str(caught.value)


def test_an_int_is_a_shape_for_numpy_alone():
    refuse_with_out(
        lambda **out: bcast.broadcast(1, 3, **out),
        TypeError,
        "`target_shape` expected a 1-D sequence of integers, got 3; give (3,)",
    )
    assert bcast.broadcast_to(1, 3).shape == bcast.broadcast_shapes(3) == (3,)


def test_a_long_value_is_cut_short():
    with pytest.raises(
        ValueError, match=r"`target_shape` expected lengths of 0 or more, got \[-1, -1.*\.\.\.$"
    ) as caught:
        bcast.broadcast(1, [-1] * 1000)
    assert len(str(caught.value)) < 300


# Modes, axes and the axis.

BAD_MODES = {
    "unknown": ("unknown", ValueError, "'unknown'"),
    "capital": ("NumPy", ValueError, "'NumPy'"),
    "empty": ("", ValueError, "''"),
    "none": (None, TypeError, "None"),
    "list": (["numpy"], TypeError, "['numpy']"),
    "bytes": (b"numpy", TypeError, "b'numpy'"),
    "int": (0, TypeError, "0"),
    "equal_array": (np.array(["numpy"]), TypeError, "array(['numpy'], dtype='<U5')"),
}

AXES = "a 1-D sequence of integers, got "
OUTSIDE = "axes of the output's shape (2, 3), counted from 0, got "
INCREASING = "strictly increasing axes (data is not transposed), got "
OF_ROW = "1 axes, one for each axis of data of shape (3,), got "
OF_MATRIX = "2 axes, one for each axis of data of shape (2, 3), got "

BAD_MAPPINGS = {  # of data, onto an output of shape (2, 3)
    "missing": (ROW, None, ValueError, OF_ROW + "None (nor is `broadcast_axes` given)"),
    "missing_for_a_scalar": (
        7,
        None,
        ValueError,
        "0 axes, one for each axis of data of shape (), got None (nor is `broadcast_axes` given); give axes_mapping=[]",
    ),
    "too_many": (ROW, [0, 1], ValueError, OF_ROW + "[0, 1]"),
    "too_few": (MATRIX, [1], ValueError, OF_MATRIX + "[1]"),
    "empty": (MATRIX, (), ValueError, OF_MATRIX + "()"),
    "unsorted": (ONES, [1, 0], ValueError, INCREASING + "[1, 0]"),
    "repeated": (ONES, np.array([1, 1]), ValueError, INCREASING + "array([1, 1])"),
    "negative": (ROW, [-1], AxisError, OUTSIDE + "-1; give 1"),
    "all_negative": (MATRIX, [-2, -1], AxisError, OUTSIDE + "-2; give 0"),
    "out_of_range": (ROW, [2], AxisError, OUTSIDE + "2"),
    "second_out_of_range": (MATRIX, [0, 2], AxisError, OUTSIDE + "2"),
    "huge": (ROW, [10**30], AxisError, OUTSIDE + str(10**30)),
    "float": (ROW, [1.0], TypeError, AXES + "[1.0]"),
    "float_array": (ROW, np.array([1.0]), TypeError, AXES + "array([1.])"),
    "bool": (ROW, [True], TypeError, AXES + "[True]"),
    "bool_array": (ROW, np.array([True]), TypeError, AXES + "array([ True])"),
    "int": (ROW, 1, TypeError, AXES + "1; give (1,)"),
    "zero_axes": (ROW, np.array(1), TypeError, AXES + "array(1)"),
    "two_axes": (ROW, [[1]], TypeError, AXES + "[[1]]"),
    "two_axes_array": (ROW, np.array([[1]]), TypeError, AXES + "array([[1]])"),
    "string": (ROW, "1", TypeError, AXES + "'1'"),
    "bytes": (ROW, b"\1", TypeError, AXES + "b'\\x01'"),
    "strings": (ROW, ["1"], TypeError, AXES + "['1']"),
    "set": (ROW, {1}, TypeError, AXES + "{1}"),
    "dict": (ROW, {1: 1}, TypeError, AXES + "{1: 1}"),
    "scalar_too_many": (7, [0, 1], ValueError, "0 axes, one for each axis of data of shape (), got [0, 1]"),
    "scalar_misfit": (7, [0], ValueError, "for a scalar no axis, or one of length 1 in (2, 3), got (0,)"),
}

LEAVE = "axes of `target_shape` (2, 3) that leave data's shape (3,), got "

BAD_ADDED_AXES = {  # of the row, onto an output of shape (2, 3)
    "negative": ([-2], AxisError, OUTSIDE + "-2; give 0"),
    "out_of_range": ({2}, AxisError, OUTSIDE + "2"),
    "huge": ([10**30], AxisError, OUTSIDE + str(10**30)),
    "too_many": ([0, 1], ValueError, LEAVE + "[0, 1], which leave ()"),
    "wrong": ([1], ValueError, LEAVE + "[1], which leave (2,)"),
    "none": ([], ValueError, LEAVE + "[], which leave (2, 3)"),
    "float": ([0.0], TypeError, AXES + "[0.0]"),
    "bool": ({False}, TypeError, AXES + "{False}"),
    "int": (0, TypeError, AXES + "0; give (0,)"),
    "zero_axes": (np.array(0), TypeError, AXES + "array(0)"),
    "two_axes": (np.array([[0]]), TypeError, AXES + "array([[0]])"),
    "string": ("0", TypeError, AXES + "'0'"),
    "empty_string": ("", TypeError, AXES + "''"),
    "empty_dict": ({}, TypeError, AXES + "{}"),
    "empty_float_array": (np.array([]), TypeError, AXES + "array([], dtype=float64)"),
    "empty_two_axes": (np.empty((0, 2), int), TypeError, AXES + "array([], shape=(0, 2), dtype=int64)"),
}

ON_AXIS = "-1, or 0 to 1, for data of shape (3,) and `target_shape` (2, 3), got "

BAD_AXIS = {  # of the row, onto an output of shape (2, 3), in mode pdpd
    "float": (1.0, TypeError, "an integer, got 1.0"),
    "bool": (True, TypeError, "an integer, got True"),
    "numpy_bool": (np.True_, TypeError, "an integer, got np.True_"),
    "none": (None, TypeError, "an integer, got None"),
    "string": ("1", TypeError, "an integer, got '1'"),
    "list": ([1], TypeError, "an integer, got [1]"),
    "array": (np.array([1]), TypeError, "an integer, got array([1])"),
    "too_small": (-2, AxisError, ON_AXIS + "-2"),
    "too_large": (2, AxisError, ON_AXIS + "2"),
    "huge": (10**30, AxisError, ON_AXIS + str(10**30)),
}

OTHER_MODES = ("numpy", "explicit", "bidirectional", "none")


def misuses():
    """Name, data, arguments, error and message of every wrong mode, axes and axis."""
    for name, (mode, error, shown) in BAD_MODES.items():
        message = f"`mode` expected one of 'numpy', 'explicit', 'bidirectional', 'pdpd', 'none', got {shown}"
        yield f"mode_{name}", ROW, {"mode": mode}, error, message
    for name, (data, axes, error, message) in BAD_MAPPINGS.items():
        arguments = {"mode": "explicit", "axes_mapping": axes}
        yield f"axes_mapping_{name}", data, arguments, error, f"`axes_mapping` expected {message}"
    for name, (axes, error, message) in BAD_ADDED_AXES.items():
        arguments = {"mode": "explicit", "broadcast_axes": axes}
        yield f"broadcast_axes_{name}", ROW, arguments, error, f"`broadcast_axes` expected {message}"
    for name, (axis, error, message) in BAD_AXIS.items():
        yield f"axis_{name}", ROW, {"mode": "pdpd", "axis": axis}, error, f"`axis` expected {message}"
    for axes in ([0], []):
        message = "`axes_mapping` expected None beside `broadcast_axes`, got [1]"
        arguments = {"mode": "explicit", "axes_mapping": [1], "broadcast_axes": axes}
        yield f"both_spellings_{len(axes)}", ROW, arguments, ValueError, message
    for mode in OTHER_MODES:
        message = f"`axis` expected -1 in mode {mode!r}, where it has no meaning, got 0; give mode='pdpd' with it"
        yield f"axis_in_{mode}", ROW, {"mode": mode, "axis": 0}, ValueError, message
        message = "`axis` expected an integer, got -1.0"
        yield f"axis_float_in_{mode}", ROW, {"mode": mode, "axis": -1.0}, TypeError, message
    for mode in ("numpy", "bidirectional", "pdpd", "none"):
        for name in ("axes_mapping", "broadcast_axes"):
            remedy = "" if mode == "none" else "; give mode='explicit'"
            message = f"`{name}` expected None in mode {mode!r}, got [1]{remedy}"
            yield f"{name}_in_{mode}", ROW, {"mode": mode, name: [1]}, ValueError, message


@pytest.mark.parametrize(
    ("data", "arguments", "error", "message"), [pytest.param(*row, id=name) for name, *row in misuses()]
)
def test_mode_and_axes(data, arguments, error, message):
    refuse_with_out(partial(bcast.broadcast, data, (2, 3), **arguments), error, message)
    refuse(partial(bcast.infer_shape, np.shape(data), (2, 3), **arguments), error, message)
    back = partial(bcast.unbroadcast, MATRIX, np.shape(data), **arguments)
    refuse_with_out(back, error, message.replace("`target_shape`", "`grad`"), np.shape(data))
    axes = arguments.get("broadcast_axes")
    if type(axes) is not list or axes:  # no axes would be all axes there
        like = partial(bcast.broadcast_like, data, np.empty((2, 3)), **arguments)
        refuse_with_out(like, error, message.replace("`target_shape`", "`like`"))


@pytest.mark.parametrize(
    ("data", "target", "arguments", "rejection"),
    [case for case in CASES if not isinstance(case.values[3], Alignment)],
)
def test_data_that_does_not_fit(data, target, arguments, rejection):
    error, part = rejection
    possible = len(target) <= 64 and min(target, default=0) >= 0
    with untouched(target if possible else (2, 3), int) as out, pytest.raises(error) as caught:
        bcast.broadcast(np.ones(data, int), target, out=out, **arguments)
    assert type(caught.value) is error
    assert part in str(caught.value)


MISFITS = {
    "fits_elsewhere": (
        partial(bcast.broadcast, MATRIX, (2, 3, 4)),
        "`target_shape` expected a shape that data of shape (2, 3) fits, got (2, 3, 4): its axis 1 is 3 where data's "
        "axis 0 is 2; data's axes fit the output's axes 0 and 1: mode='explicit', axes_mapping=[0, 1]",
    ),
    "fits_at_two_places": (
        partial(bcast.broadcast, MATRIX, (2, 2, 3, 4)),
        "`target_shape` expected a shape that data of shape (2, 3) fits, got (2, 2, 3, 4): its axis 2 is 3 where "
        "data's axis 0 is 2",
    ),
    "a_shape_for_an_array": (
        partial(bcast.broadcast_like, MATRIX, (2, 2, 3)),
        "`like` expected at least 2 axes for data of shape (2, 3), got (3,); `like` is an array: to give a shape, call "
        "`broadcast`",
    ),
    "broadcast_like": (
        partial(bcast.broadcast_like, MATRIX, np.empty((3, 3))),
        "`like` expected a shape that data of shape (2, 3) fits, got (3, 3): its axis 0 is 3 where data's axis 0 is 2",
    ),
    "broadcast_to": (
        partial(bcast.broadcast_to, MATRIX, (2, 6)),
        "`shape` expected a shape that data of shape (2, 3) fits, got (2, 6): its axis 1 is 6 where data's axis 1 is 3",
    ),
    "broadcast_to_fewer_axes": (
        partial(bcast.broadcast_to, MATRIX, 3),
        "`shape` expected at least 2 axes for data of shape (2, 3), got (3,)",
    ),
    "broadcast_arrays": (
        partial(bcast.broadcast_arrays, 1, MATRIX, np.ones((4, 1, 2))),
        "`args` expected lengths that are equal or 1 at each axis, counted from the right, "
        "got () and (2, 3) and (4, 1, 2): 2 meets 3 at axis -1",
    ),
    "unbroadcast": (
        partial(bcast.unbroadcast, MATRIX, (2, 2)),
        "`grad` expected a shape that data of shape (2, 2) fits, got (2, 3): its axis 1 is 3 where data's axis 1 is 2",
    ),
    "unbroadcast_more_axes": (
        partial(bcast.unbroadcast, MATRIX, (1, 2, 3)),
        "`grad` expected at least 3 axes for data of shape (1, 2, 3), got (2, 3); they fit the other way round",
    ),
    "unbroadcast_one_way": (
        partial(bcast.unbroadcast, ONES, (1, 3), mode="bidirectional"),
        "`grad` expected a shape that data of shape (1, 3) fits, got (1, 1): its axis 1 is 1 where data's axis 1 is 3; "
        "they fit the other way round",
    ),
    "unbroadcast_pdpd": (
        partial(bcast.unbroadcast, MATRIX, (3,), mode="pdpd", axis=0),
        "`grad` expected a shape that data of shape (3,) fits, got (2, 3): its axis 0 is 2 where data's axis 0 is 3; "
        "data's axis fits the output's axis 1: axis=1",
    ),
    "unbroadcast_none": (
        partial(bcast.unbroadcast, MATRIX, (3,), mode="none"),
        "`grad` expected data's own shape (3,) in mode 'none', got (2, 3)",
    ),
    "broadcast_shapes": (
        partial(bcast.broadcast_shapes, 3, (2, 1), [2]),
        "`args` expected lengths that are equal or 1 at each axis, counted from the right, "
        "got (3,) and (2, 1) and (2,): 2 meets 3 at axis -1",
    ),
}


@pytest.mark.parametrize(("call", "message"), **rows(MISFITS))
def test_arrays_that_do_not_fit(call, message):
    check = refuse if call.func in (bcast.broadcast_arrays, bcast.broadcast_shapes) else refuse_with_out
    check(call, ValueError, message)


# Size: far beyond any address space, so that no system grants it.

ELEMENTS = f"expected an output of at most {LARGEST} elements, got "
BYTES = f"expected an output of at most {LARGEST} bytes, got "

UNCOUNTABLE = {
    "product": (1 << 62, 3),
    "one_length": (10**30,),
    "uint64": np.array([2**64 - 1], "u8"),
    "beside_0": (0, 1 << 62, 3),
    "before_0": (1 << 62, 3, 0),
    "many": (1 << 32, 1, 1 << 32),
}


@pytest.mark.parametrize("shape", **rows(UNCOUNTABLE))
def test_more_elements_than_an_index_can_count(shape):
    byte = np.uint8(7)
    expected = tuple(int(length) for length in shape)
    with pytest.raises(ValueError):  # lengths of 0 excuse nothing in NumPy either
        np.empty(expected, np.uint8)
    for mode in ("numpy", "bidirectional", "pdpd"):
        call = partial(bcast.broadcast, byte, shape, mode=mode)
        refuse_with_out(call, ValueError, f"`target_shape` {ELEMENTS}{expected}", dtype=np.uint8)
        refuse(partial(bcast.infer_shape, (), shape, mode=mode), ValueError, f"`target_shape` {ELEMENTS}{expected}")
    refuse(partial(bcast.broadcast_to, byte, shape), ValueError, f"`shape` {ELEMENTS}{expected}")
    refuse(partial(bcast.broadcast_shapes, shape, 1), ValueError, f"`args` {ELEMENTS}{expected}")


def test_more_elements_than_an_index_can_count_of_two_arrays():
    column = np.broadcast_to(np.uint8(7), (1 << 40, 1))
    row = np.broadcast_to(np.uint8(7), (1, 1 << 40))
    expected = f"{ELEMENTS}{(1 << 40, 1 << 40)}"
    refuse(partial(bcast.broadcast_arrays, column, row), ValueError, f"`args` {expected}")
    refuse(partial(bcast.broadcast_like, column, row, mode="bidirectional"), ValueError, f"`like` {expected}")


@pytest.mark.parametrize("shape", [(1 << 61,), (1 << 40, 1 << 20), (1 << 60, 0)], ids=str)
def test_more_bytes_than_an_index_can_count(shape):
    message = f"{BYTES}{shape} with items of 8 bytes"
    refuse(partial(bcast.broadcast, 7.0, shape), ValueError, f"`target_shape` {message}")
    refuse(partial(bcast.broadcast_to, 7.0, shape), ValueError, f"`shape` {message}")
    vast = np.broadcast_to(np.uint8(7), shape)
    refuse(partial(bcast.broadcast_like, 7.0, vast), ValueError, f"`like` {message}")
    refuse(partial(bcast.broadcast_arrays, 7.0, vast), ValueError, f"`args` {message}")
    refuse(partial(bcast.unbroadcast, vast, shape, dtype="f8"), ValueError, f"`data_shape` {message}")


VAST = np.broadcast_to(np.uint8(7), 1 << 60)
TOO_LARGE = {
    "broadcast": partial(bcast.broadcast, np.uint8(7), VAST.shape),
    "broadcast_itself": partial(bcast.broadcast, VAST, VAST.shape),
    "broadcast_objects": partial(bcast.broadcast, np.array(None), (1 << 57,)),
    "broadcast_like": partial(bcast.broadcast_like, np.uint8(7), VAST),
    "broadcast_to": partial(bcast.broadcast_to, np.uint8(7), VAST.shape),
    "broadcast_arrays": partial(bcast.broadcast_arrays, np.uint8(7), VAST),
    "unbroadcast": partial(bcast.unbroadcast, VAST, VAST.shape),
}


def address_space():
    """How many bytes of addresses this process has, where the system tells."""
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[0]) * mmap.PAGESIZE if statm.exists() else 0


@pytest.mark.parametrize("call", **rows(TOO_LARGE))
def test_more_than_the_system_has(call):
    before = address_space()
    for _ in range(10):
        with pytest.raises(MemoryError):
            call()
    assert address_space() - before < 1 << 28  # nothing stays; the C library may set up an arena of its own
    assert bcast.broadcast(ROW, (2, 3)).tolist() == [[0, 1, 2]] * 2


@pytest.mark.parametrize("shape", [(0, 1 << 62), (1 << 31, 0, 1 << 31)], ids=str)
def test_an_empty_axis_beside_giants(shape):
    assert bcast.broadcast(np.uint8(7), shape).shape == np.empty(shape, np.uint8).shape
    assert bcast.infer_shape((), shape) == shape


# The output.

WITH_OUT = {
    "broadcast": partial(bcast.broadcast, ROW, (2, 3)),
    "broadcast_same_shape": partial(bcast.broadcast, MATRIX, (2, 3)),
    "broadcast_like": partial(bcast.broadcast_like, ROW, MATRIX),
    "broadcast_to": partial(bcast.broadcast_to, ROW, (2, 3)),
    "unbroadcast": partial(bcast.unbroadcast, np.ones((4, 2, 3), int), (2, 3)),
    "unbroadcast_same_shape": partial(bcast.unbroadcast, MATRIX, (2, 3)),
}


@pytest.fixture(params=WITH_OUT.values(), ids=WITH_OUT)
def call(request):
    return request.param


@pytest.mark.parametrize("shape", [(3,), (6,), (), (3, 2), (2, 4), (1, 3), (2, 0), (1, 2, 3), (2, 3, 1)], ids=str)
def test_out_of_another_shape(call, shape):
    with untouched(shape, ROW.dtype) as out:
        refuse(partial(call, out=out), ValueError, f"`out` expected shape (2, 3), got {shape}")


@pytest.mark.parametrize("dtype", ["u8", "?", "i4", "f8", "c8", "m8[s]", "S8", "V8", "O"])
def test_out_of_another_dtype(call, dtype):
    dtype = np.dtype(dtype)
    if call.func is bcast.unbroadcast:
        message = f"`out` expected grad's dtype {ROW.dtype}, got {dtype}"
    elif np.can_cast(ROW.dtype, dtype, "same_kind"):
        out = np.zeros((2, 3), dtype)
        assert call(out=out) is out
        assert (out == call().astype(dtype)).all()
        return
    else:
        remedy = "; give casting='unsafe'" if dtype.kind in "bu" else ""
        expected = f"data's dtype {ROW.dtype}, or one that casting='same_kind' allows for it"
        message = f"`out` expected {expected}, got {dtype}{remedy}"
    if dtype.hasobject:
        out = np.full((2, 3), "as it was", dtype)
        refuse(partial(call, out=out), TypeError, message)
        assert (out == "as it was").all()
    else:
        with untouched((2, 3), dtype) as out:
            refuse(partial(call, out=out), TypeError, message)


DTYPES_APART = {
    "byte_order": ("<i4", ">i4"),
    "string_byte_order": ("<U3", ">U3"),
    "string_length": ("S3", "S4"),
    "unit": ("M8[s]", "M8[ms]"),
    "instant_and_span": ("M8[s]", "m8[s]"),
    "names": ([("a", "i4"), ("b", "i4")], [("b", "i4"), ("a", "i4")]),
    "padding": ([("a", "i4")], {"names": ["a"], "formats": ["i4"], "itemsize": 8}),
    "offsets": (
        {"names": ["a"], "formats": ["i2"], "offsets": [0], "itemsize": 4},
        {"names": ["a"], "formats": ["i2"], "offsets": [2], "itemsize": 4},
    ),
    "structure_and_void": ([("a", "i4")], "V4"),
    "strings": (np.dtypes.StringDType(), np.dtypes.StringDType(na_object=None)),
}


@pytest.mark.parametrize(("dtype", "other"), **rows(DTYPES_APART))
@pytest.mark.parametrize("reverse", [False, True])
def test_dtypes_that_differ_little(dtype, other, reverse):
    data, out = np.zeros(3, dtype), np.zeros((2, 3), other)
    if reverse:
        data, out = out[0], np.zeros((2, 3), dtype)
    wanted, call = out.dtype, partial(bcast.broadcast, data, (2, 3))
    message = f"`out` expected data's dtype {data.dtype}, or one that casting='no' allows for it, got {wanted}"
    if np.can_cast(data.dtype, wanted, "no"):  # so NumPy says of strings with other missing values
        message = f"`out` expected `dtype` {data.dtype}, got {wanted}"
        refuse(partial(call, dtype=data.dtype, casting="no", out=out), TypeError, message)
    else:
        refuse(partial(call, casting="no", out=out), TypeError, message)


def test_out_read_only(call):
    message = "`out` expected a writeable array, got a read-only one"
    with untouched((2, 3), ROW.dtype) as out:
        out.flags.writeable = False
        refuse(partial(call, out=out), ValueError, message)
    refuse(partial(call, out=np.broadcast_to(ROW, (2, 3))), ValueError, message)
    refuse(partial(call, out=np.frombuffer(bytes(6 * ROW.itemsize), ROW.dtype).reshape(2, 3)), ValueError, message)


NOT_ARRAYS = {
    "list": ([[0, 0, 0], [0, 0, 0]], "list"),
    "tuple": ((), "tuple"),
    "bytearray": (bytearray(48), "bytearray"),
    "memoryview": (memoryview(bytearray(48)), "memoryview"),
    "string": ("out", "str"),
    "false": (False, "bool"),
    "scalar": (np.int64(0), "int64"),
    "class": (np.ndarray, "type"),
    "masked": (np.ma.zeros((2, 3), int), "MaskedArray"),
}


@pytest.mark.parametrize(("out", "kind"), **rows(NOT_ARRAYS))
def test_out_that_is_no_array(call, out, kind):
    refuse(partial(call, out=out), TypeError, f"`out` expected an ndarray without a mask, got {kind}")


def test_out_masked_is_not_written(call):
    with untouched((2, 3), ROW.dtype) as out:
        masked = np.ma.MaskedArray(out, mask=[[True, False, True]] * 2, copy=False)
        refuse(partial(call, out=masked), TypeError, "`out` expected an ndarray without a mask, got MaskedArray")


# The data.

UNMASKED = "give its .filled(), or its .data and its .mask one after the other"
MASKED = {
    "masked": (np.ma.array([1, 2, 3], mask=[True, False, False]), "MaskedArray"),
    "no_mask": (np.ma.array([1, 2, 3]), "MaskedArray"),
    "constant": (np.ma.masked, "MaskedConstant"),
    "read_only": (np.ma.array(ROW, copy=False), "MaskedArray"),
}


@pytest.mark.parametrize(("data", "kind"), **rows(MASKED))
def test_masked_data(data, kind):
    message = f"expected an array without a mask, got {kind}; {UNMASKED}"
    refuse_with_out(partial(bcast.broadcast, data, (2, 3)), TypeError, f"`data` {message}", dtype=data.dtype)
    refuse_with_out(partial(bcast.broadcast_like, data, MATRIX), TypeError, f"`data` {message}", dtype=data.dtype)
    refuse_with_out(partial(bcast.broadcast_to, data, (2, 3)), TypeError, f"`array` {message}", dtype=data.dtype)
    refuse(partial(bcast.broadcast_arrays, 1, data), TypeError, f"`args` {message}")
    refuse_with_out(partial(bcast.unbroadcast, data, ()), TypeError, f"`grad` {message}", (), data.dtype)


@pytest.mark.parametrize("kind", [list, tuple])
def test_masked_arrays_in_a_list(kind):
    """NumPy would drop the masks."""
    data = kind([ROW, np.ma.array(ROW, mask=[True, False, False])])
    message = f"expected arrays without masks, got a {kind.__name__} with one; {UNMASKED}"
    refuse_with_out(partial(bcast.broadcast, data, (2, 3)), TypeError, f"`data` {message}", dtype=int)
    refuse(partial(bcast.tile, data, 2), TypeError, f"`A` {message}")


def test_a_masked_array_lends_its_shape():
    like = np.ma.zeros((2, 3))
    assert bcast.broadcast_like(ROW, like).shape == (2, 3)


class Resizer:
    """An integer that makes an array shorter when it is asked for."""

    def __init__(self, array, length):
        self.array, self.length = array, length

    def __index__(self):
        self.array.resize((1,), refcheck=False)
        return self.length


def test_data_that_shrinks_during_the_call():
    data = np.zeros(1 << 20)
    with untouched((2, 1 << 20), float) as out, pytest.raises(ValueError, match=r"^`data` and `out` expected arrays"):
        bcast.broadcast(data, (2, Resizer(data, data.size)), out=out)


def test_grad_that_shrinks_during_the_call():
    grad = np.ones(1 << 20)
    arguments = {"mode": "explicit", "axes_mapping": [Resizer(grad, 0)]}
    with untouched(grad.shape, float) as out, pytest.raises(ValueError, match=r"^`grad` and `out` expected arrays"):
        bcast.unbroadcast(grad, grad.shape, out=out, **arguments)


class Boaster(np.ndarray):
    """An array that tells other things of itself than are true."""

    shape = (1000, 1000)
    dtype = np.dtype(float)


def test_like_is_as_large_as_it_is():
    assert bcast.broadcast_like(1.0, np.zeros((2, 3)).view(Boaster)).shape == (2, 3)


def test_out_that_is_smaller_than_it_says():
    with untouched((3,), float) as out:
        refuse(
            partial(bcast.broadcast, 1.0, (1000, 1000), out=out.view(Boaster)),
            ValueError,
            "`out` expected shape (1000, 1000), got (3,)",
        )


class Liar(np.ndarray):
    """An array of integers whose class says that it has three objects."""

    dtype = property(lambda _: np.dtype(object))
    shape = property(lambda _: (3,))
    itemsize = property(lambda _: 8)


def test_out_is_what_it_is_whatever_its_class_says():
    """Objects written into integers would be pointers; of what looks as if it fitted the end would be passed."""
    objects = np.array([None, "a", 2.0], object)
    with untouched((3,), np.int64) as out:
        refuse(
            partial(bcast.broadcast, objects, (3,), out=out.view(Liar)),
            TypeError,
            "`out` expected data's dtype object, or one that casting='same_kind' allows for it, got int64",
        )
    with untouched((2,), np.int64) as out:
        refuse(
            partial(bcast.broadcast, ROW, (3,), out=out.view(Liar)), ValueError, "`out` expected shape (3,), got (2,)"
        )


class Broken:
    def __array__(self, dtype=None, copy=None):
        raise KeyError("no data")


@pytest.mark.parametrize(
    ("data", "error"), [(Broken(), KeyError), ([[1], [2, 3]], ValueError)], ids=["raises", "ragged"]
)
def test_data_that_is_no_array(data, error):
    with untouched((2, 3), int) as out, pytest.raises(error):
        bcast.broadcast(data, (2, 3), out=out)
    with untouched((2, 3), int) as out, pytest.raises(error):
        bcast.broadcast_to(data, (2, 3), out=out)
    with untouched((), int) as out, pytest.raises(error):
        bcast.unbroadcast(data, (), out=out)
    with pytest.raises(error):
        bcast.broadcast_arrays(data)


# Remedies: what to write instead.

SHAPE, IMAGES = (3, 4), np.ones((2, 3, 5))
BEFORE = "the array comes before the shape"
REMEDIES = {
    "swapped_broadcast": (partial(bcast.broadcast, SHAPE, np.ones((3, 4))), "target_shape", BEFORE),
    "swapped_broadcast_to": (partial(bcast.broadcast_to, SHAPE, np.ones((3, 4))), "shape", BEFORE),
    "swapped_unbroadcast": (partial(bcast.unbroadcast, SHAPE, np.ones((3, 4))), "data_shape", BEFORE),
    "swapped_tile": (partial(bcast.tile, 2, np.ones((3, 4))), "reps", "the array comes before the counts"),
    "swapped_repeat": (partial(bcast.repeat, 2, np.ones((3, 4))), "repeats", "the array comes before the counts"),
    "swapped_like": (partial(bcast.broadcast_like, MATRIX, ROW), "like", "they fit the other way round"),
    "swapped_like_of_one_rank": (partial(bcast.broadcast_like, MATRIX, ONES), "like", "they fit the other way round"),
    "swapped_operands": (
        partial(bcast.elementwise, np.add, ROW, MATRIX, mode="unidirectional"), "a", "they fit the other way round",
    ),
    "numpys_name": (partial(bcast.broadcast, ROW, shape=(2, 3)), "target_shape", "give target_shape=(2, 3)"),
    "numpys_name_of_a_shape": (partial(bcast.infer_shape, (3,), shape=(2, 3)), "target_shape", "target_shape=(2, 3)"),
    "length": (partial(bcast.broadcast, ROW, 3), "target_shape", "give (3,)"),
    "numpy_length": (partial(bcast.infer_shape, np.int64(3), (3,)), "data_shape", "give (3,)"),
    "axis_alone": (partial(bcast.broadcast, ROW, (3, 5), axis=0), "axis", "mode='pdpd'"),
    "axis_of_operands_alone": (partial(bcast.elementwise, np.add, IMAGES, ROW, axis=1), "axis", "mode='pdpd'"),
    "axis_from_the_end": (
        partial(bcast.broadcast, ROW, (2, 3, 5), [-2], mode="explicit"), "axes_mapping", "give 1",
    ),
    "added_axis_from_the_end": (
        partial(bcast.broadcast, ROW, (3, 5), mode="explicit", broadcast_axes=[-1]), "broadcast_axes", "give 1",
    ),
    "fractions_into_integers": (
        partial(bcast.broadcast, 0.5, (3,), out=np.zeros(3, int)), "out", "give casting='unsafe'",
    ),
    "fractions_to_integers": (partial(bcast.tile, 0.5, 2, dtype=int), "dtype", "give casting='unsafe'"),
    "fraction": (partial(bcast.repeat, ROW, 2.5), "repeats", "round floats"),
    "fractions": (partial(bcast.unrepeat, ROW, [1.5, 1.5]), "repeats", "round floats"),
    "whole_float": (partial(bcast.tile, ROW, 2.0), "reps", "round floats"),
    "mask": (partial(bcast.tile, np.ma.array([1, 2]), 2), "A", ".filled(), or its .data and its .mask"),
    "mask_in_a_list": (partial(bcast.tile, [np.ma.array([1, 2])], 2), "A", ".filled(), or its .data and its .mask"),
    "place_by_axis": (partial(bcast.broadcast, ROW, (2, 3, 5), mode="pdpd"), "target_shape", "axis 1: axis=1"),
    "place_of_operands": (partial(bcast.elementwise, np.add, IMAGES, ROW, mode="pdpd"), "a", "axis 1: axis=1"),
    "place_of_operands_in_another_mode": (
        partial(bcast.elementwise, np.add, IMAGES, ROW, mode="unidirectional"), "a", "axis 1: mode='pdpd', axis=1",
    ),
    "place_in_another_mode": (
        partial(bcast.broadcast, ROW, (2, 3, 5)), "target_shape", "axis 1: mode='explicit', axes_mapping=[1]",
    ),
    "one_run": (partial(bcast.unrepeat, np.ones(4), [2]), "repeats", "give 2 and no sequence"),
}  # fmt: skip


@pytest.mark.parametrize(("call", "name", "remedy"), **rows(REMEDIES))
def test_remedies(call, name, remedy):
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    message = str(caught.value)
    assert message.startswith(f"`{name}` expected ")
    assert message.endswith(remedy) or (remedy in message.rpartition("; ")[2])


@pytest.mark.parametrize(
    "call",
    [
        partial(bcast.broadcast, ROW, (-1,)),
        partial(bcast.broadcast, ROW, True),
        partial(bcast.broadcast, ROW, (2, 3), [-3], mode="explicit"),
        partial(bcast.broadcast, np.ones((2, 3)), (4, 5)),
        partial(bcast.broadcast, np.ones((2, 3)), (2, 5, 3), mode="pdpd", axis=0),
        partial(bcast.broadcast, ROW, (3, 5, 3, 5), mode="pdpd"),
        partial(bcast.repeat, ROW, "2"),
        partial(bcast.unrepeat, np.ones(5), [2, 2]),
    ],
)
def test_no_remedy_is_made_up(call):
    with pytest.raises((TypeError, ValueError), match=r"^[^;]+$"):
        call()


# What has no sum.

NUMERIC = "expected a numeric dtype, got "

WITHOUT_SUM = {
    "bool": (np.ones(3, bool), None, f"`grad` {NUMERIC}bool; give `dtype` to count in"),
    "string": (np.array(["a", "b"]), None, f"`grad` {NUMERIC}<U1"),
    "bytes": (np.array([b"a", b"b"]), None, f"`grad` {NUMERIC}|S1"),
    "strings": (np.array(["a"], np.dtypes.StringDType()), None, f"`grad` {NUMERIC}StringDType()"),
    "instant": (np.zeros(3, "M8[s]"), None, f"`grad` {NUMERIC}datetime64[s]"),
    "structure": (np.zeros(3, [("a", "<i4")]), None, f"`grad` {NUMERIC}[('a', '<i4')]"),
    "void": (np.zeros(3, "V2"), None, f"`grad` {NUMERIC}|V2"),
    "string_to_float": (np.array(["1"]), "f8", f"`grad` {NUMERIC}<U1"),
    "to_bool": (np.ones(3), bool, f"`dtype` {NUMERIC}bool"),
    "to_string": (np.ones(3), "S3", f"`dtype` {NUMERIC}|S3"),
    "to_instant": (np.ones(3, int), "M8[s]", f"`dtype` {NUMERIC}datetime64[s]"),
    "to_structure": (np.ones(3), [("a", "<i4")], f"`dtype` {NUMERIC}[('a', '<i4')]"),
    "to_span": (np.ones(3, int), "m8[s]", "`dtype` expected a dtype that sums int64, got timedelta64[s]"),
    "from_span": (np.ones(3, "m8[s]"), "i8", "`dtype` expected a dtype that sums timedelta64[s], got int64"),
    "no_dtype": (np.ones(3), "number", "`dtype` expected a dtype or what stands for one, got 'number'"),
    "no_dtype_at_all": (np.ones(3), 3, "`dtype` expected a dtype or what stands for one, got 3"),
}


@pytest.mark.parametrize(("grad", "dtype", "message"), **rows(WITHOUT_SUM))
def test_dtype_without_a_sum(grad, dtype, message):
    refuse_with_out(partial(bcast.unbroadcast, grad, (), dtype=dtype), TypeError, message, ())


def test_out_of_another_dtype_than_asked_for():
    message = "`out` expected `dtype` float64, got int64"
    refuse(partial(bcast.unbroadcast, MATRIX, (3,), dtype="f8", out=np.zeros(3, "i8")), TypeError, message)
