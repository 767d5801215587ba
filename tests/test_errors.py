"""Bad input: the class of every error, the argument that it names, and that the error comes before any write."""

import mmap
import re
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from _modes import NAMES, readers
from numpy.exceptions import AxisError

import bcast

ROW = np.arange(3)
ROW.flags.writeable = False
MATRIX = np.arange(6).reshape(2, 3)
MATRIX.flags.writeable = False
ONES = np.ones((1, 1), int)


@contextmanager
def untouched(shape, dtype):
    """An `out` inside of patterned memory, in which no byte may change."""
    dtype = np.dtype(dtype)
    arena = np.full(dtype.itemsize * int(np.prod(shape)) + 128, 0xA5, np.uint8)
    yield arena[64:-64].view(dtype).reshape(shape)
    assert (arena == 0xA5).all()


def refuse(call, error, argument):
    """Check the error that `call` raises: exactly its class, the argument that it names, and the one form."""
    with pytest.raises(error) as caught:
        call()
    assert type(caught.value) is error
    assert re.match(rf"`{re.escape(argument)}`.* expected .+, got .", str(caught.value), re.DOTALL)


def refuse_with_out(call, error, argument, shape=(2, 3), dtype=int):
    refuse(call, error, argument)
    with untouched(shape, dtype) as out:
        refuse(partial(call, out=out), error, argument)


def rows(table):
    return {"argvalues": list(table.values()), "ids": list(table)}


# Shapes.


class Foreign:
    """An array of another library, whose items are integers in Python for any dtype."""

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


BAD_LENGTHS = {
    "negative": [-1, 3], "negative_beside_0": (0, -2), "negative_twice": (-2, -3), "negative_array": np.array([2, -3]),
    "negative_and_large": (-(10**30),), "negative_of_many_digits": (-(10**5000),), "many_digits": (10**5000,),
    "65_axes": (1,) * 65,
}  # fmt: skip
NO_LENGTHS = {
    "float": [2.5, 3], "bool": (True, 3), "bool_item": [np.True_, 3], "none_inside": (None, 3), "none": None,
    "object_array": np.array([2, 3], object), "float_array": np.array([2.0, 3.0]), "arrays_inside": [np.array([3])],
    "two_axes": [[2, 3]], "two_axes_array": np.array([[2, 3]]), "masked": np.ma.array([2, 3], mask=[False, True]),
    "foreign_bools": Foreign(True, True), "foreign_bool_inside": (Foreign(True), 3), "set": {2, 3}, "dict": {2: 3},
    "string": "23", "bytes": b"\2\3", "bytearray": bytearray(b"\2"), "foreign_two_axes": Foreign([2], [3]),
}  # fmt: skip
SCALARS = {"int": 3, "zero_axes": np.array(3), "int64": np.int64(3)}
NO_INTS = {"float_int": 3.0, "bool_int": True}
BAD_SHAPES = {name: (shape, ValueError) for name, shape in BAD_LENGTHS.items()}
BAD_SHAPES |= {name: (shape, TypeError) for name, shape in {**NO_LENGTHS, **NO_INTS}.items()}
NOT_ONLY_SCALARS = {"broadcast_to", "broadcast_shapes"}  # which take an integer for a shape, as NumPy's own do

SHAPE_ARGUMENTS = {
    "broadcast": ("target_shape", lambda shape, **out: bcast.broadcast(ROW, shape, **out)),
    "both_ways": ("target_shape", lambda shape, **out: bcast.broadcast(ROW, shape, mode="bidirectional", **out)),
    "infer_shape": ("target_shape", lambda shape: bcast.infer_shape((3,), shape)),
    "infer_shape_data": ("data_shape", lambda shape: bcast.infer_shape(shape, (2, 3))),
    "broadcast_to": ("shape", lambda shape, **out: bcast.broadcast_to(ROW, shape, **out)),
    "unbroadcast": ("data_shape", lambda shape, **out: bcast.unbroadcast(MATRIX, shape, **out)),
    "broadcast_shapes": ("args", lambda shape: bcast.broadcast_shapes((3,), shape)),
}


@pytest.mark.parametrize("function", SHAPE_ARGUMENTS)
@pytest.mark.parametrize(("shape", "error"), **rows(BAD_SHAPES))
def test_errors_of_bad_shapes_have_one_form(function, shape, error):
    argument, call = SHAPE_ARGUMENTS[function]
    check = refuse if function in {"infer_shape", "infer_shape_data", "broadcast_shapes"} else refuse_with_out
    check(partial(call, shape), error, argument)


@pytest.mark.parametrize("scalar", **rows(SCALARS))
def test_an_int_is_a_shape_for_numpy_alone(scalar):
    for function, (argument, call) in SHAPE_ARGUMENTS.items():
        if function in NOT_ONLY_SCALARS:
            assert np.shape(call(scalar)) == (3,) or call(scalar) == (3,)
            refuse(partial(call, -1), ValueError, argument)
        else:
            refuse(partial(call, scalar), TypeError, argument)


def test_a_long_value_is_cut_short():
    with pytest.raises(ValueError, match=r"`target_shape` expected .*\.\.\.$") as caught:
        bcast.broadcast(1, [-1] * 1000)
    assert len(str(caught.value)) < 300


# Modes, axes and the axis.

BAD_MODES = {ValueError: ("unknown", ""), TypeError: (0, np.array(["numpy"]))}
NO_AXES = {  # in either spelling
    "float": [1.0], "bool": {False}, "int": 1, "zero_axes": np.array(0), "two_axes": np.array([[0]]), "string": "0",
    "empty_dict": {}, "empty_floats": np.array([]), "empty_string": "", "empty_two_axes": np.empty((0, 2), int),
}  # fmt: skip
BAD_MAPPINGS = {  # of data, onto an output of shape (2, 3)
    ValueError: [
        (ROW, None),
        (ROW, [0, 1]),
        (MATRIX, [1]),
        (ONES, [1, 0]),
        (ONES, np.array([1, 1])),
        (7, [0]),
        (7, None),
    ],
    AxisError: [(ROW, [-1]), (ROW, [2]), (ROW, [10**30])],
    TypeError: [(ROW, {1}), *[(ROW, axes) for axes in NO_AXES.values()]],
}
BAD_ADDED_AXES = {  # of the row, onto an output of shape (2, 3)
    ValueError: [[0, 1], [1], []],
    AxisError: [[-2], {2}, [10**30]],
    TypeError: NO_AXES.values(),
}
# Of the row, onto an output of shape (2, 3), in mode pdpd.
BAD_AXIS = {TypeError: [1.0, True, np.True_, None, "1", [1], np.array([1])], AxisError: [-2, 2, 10**30]}


def misuses():
    """Name, data, arguments, error and argument named of every wrong mode, axes and axis."""
    for argument, table, given in (
        ("mode", BAD_MODES, {}),
        ("axes_mapping", BAD_MAPPINGS, {"mode": "explicit"}),
        ("broadcast_axes", BAD_ADDED_AXES, {"mode": "explicit"}),
        ("axis", BAD_AXIS, {"mode": "pdpd"}),
    ):
        for error, values in table.items():
            for i, bad in enumerate(values):
                data, value = bad if table is BAD_MAPPINGS else (ROW, bad)
                yield f"{argument}_{error.__name__}_{i}", data, given | {argument: value}, error, argument
    for axes in ([0], []):
        arguments = {"mode": "explicit", "axes_mapping": [1], "broadcast_axes": axes}
        yield f"both_spellings_{len(axes)}", ROW, arguments, ValueError, "axes_mapping"
    for mode in sorted({*NAMES} - readers("axis")):
        yield f"axis_in_{mode}", ROW, {"mode": mode, "axis": 0}, ValueError, "axis"
        yield f"axis_float_in_{mode}", ROW, {"mode": mode, "axis": -1.0}, TypeError, "axis"
    for mode in sorted({*NAMES} - readers("axes_mapping", "broadcast_axes")):
        for name in ("axes_mapping", "broadcast_axes"):
            yield f"{name}_in_{mode}", ROW, {"mode": mode, name: [1]}, ValueError, name


@pytest.mark.parametrize(("data", "arguments", "error", "argument"), **rows({name: row for name, *row in misuses()}))
def test_mode_and_axes(data, arguments, error, argument):
    refuse_with_out(partial(bcast.broadcast, data, (2, 3), **arguments), error, argument)
    refuse(partial(bcast.infer_shape, np.shape(data), (2, 3), **arguments), error, argument)
    refuse_with_out(partial(bcast.unbroadcast, MATRIX, np.shape(data), **arguments), error, argument, np.shape(data))
    axes = arguments.get("broadcast_axes")
    if type(axes) is not list or axes:  # no axes would be all axes there
        refuse_with_out(partial(bcast.broadcast_like, data, np.empty((2, 3)), **arguments), error, argument)


# Size: far beyond any address space, so that no system grants it.

UNCOUNTABLE = {
    "product": (1 << 62, 3), "one_length": (10**30,), "uint64": np.array([2**64 - 1], "u8"),
    "beside_0": (0, 1 << 62, 3), "before_0": (1 << 62, 3, 0), "many": (1 << 32, 1, 1 << 32),
}  # fmt: skip


@pytest.mark.parametrize("shape", **rows(UNCOUNTABLE))
def test_more_elements_than_an_index_can_count(shape):
    byte = np.uint8(7)
    expected = tuple(int(length) for length in shape)
    with pytest.raises(ValueError):  # lengths of 0 excuse nothing in NumPy either
        np.empty(expected, np.uint8)
    for mode in ("numpy", "bidirectional", "pdpd"):
        refuse_with_out(partial(bcast.broadcast, byte, shape, mode=mode), ValueError, "target_shape", dtype=np.uint8)
        refuse(partial(bcast.infer_shape, (), shape, mode=mode), ValueError, "target_shape")
    refuse(partial(bcast.broadcast_to, byte, shape), ValueError, "shape")
    refuse(partial(bcast.broadcast_shapes, shape, 1), ValueError, "args")


def test_more_elements_than_an_index_can_count_of_two_arrays():
    column = np.broadcast_to(np.uint8(7), (1 << 40, 1))
    row = np.broadcast_to(np.uint8(7), (1, 1 << 40))
    refuse(partial(bcast.broadcast_arrays, column, row), ValueError, "args")
    refuse(partial(bcast.broadcast_like, column, row, mode="bidirectional"), ValueError, "like")


@pytest.mark.parametrize("shape", [(1 << 61,), (1 << 40, 1 << 20), (1 << 60, 0)], ids=str)
def test_more_bytes_than_an_index_can_count(shape):
    refuse(partial(bcast.broadcast, 7.0, shape), ValueError, "target_shape")
    refuse(partial(bcast.broadcast_to, 7.0, shape), ValueError, "shape")
    vast = np.broadcast_to(np.uint8(7), shape)
    refuse(partial(bcast.broadcast_like, 7.0, vast), ValueError, "like")
    refuse(partial(bcast.broadcast_arrays, 7.0, vast), ValueError, "args")
    refuse(partial(bcast.unbroadcast, vast, shape, dtype="f8"), ValueError, "data_shape")


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
    """The size of this process's address space in bytes, if the system reports it."""
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

COPIES = {
    "broadcast": partial(bcast.broadcast, ROW, (2, 3)),
    "broadcast_same_shape": partial(bcast.broadcast, MATRIX, (2, 3)),
    "broadcast_like": partial(bcast.broadcast_like, ROW, MATRIX),
    "broadcast_to": partial(bcast.broadcast_to, ROW, (2, 3)),
    "tile": partial(bcast.tile, ROW, (2, 1)),
    "repeat": partial(bcast.repeat, ROW[None], 2, 0),
    "repeat_along_axes": partial(bcast.repeat, ROW[None], (2, 1), (0, 1)),
    "repeat_by_counts": partial(bcast.repeat, np.zeros((3, 3), int), [1, 0, 1], 0),
}
OTHERS = {  # whose `out` has no other dtype
    "unbroadcast": partial(bcast.unbroadcast, np.ones((4, 2, 3), int), (2, 3)),
    "unbroadcast_same_shape": partial(bcast.unbroadcast, MATRIX, (2, 3)),
    "unrepeat": partial(bcast.unrepeat, np.ones((4, 3), int), 2, 0, dtype=int),
    "unrepeat_by_counts": partial(bcast.unrepeat, np.ones((4, 3), int), [3, 1], 0),
    "where": partial(bcast.where, True, MATRIX, ROW),
    "where_of_objects": partial(bcast.where, np.array([True, None, 0]), MATRIX, ROW),
}
WITH_OUT = COPIES | OTHERS


@pytest.fixture(params=WITH_OUT.values(), ids=WITH_OUT)
def call(request):
    return request.param


@pytest.mark.parametrize("shape", [(3,), (6,), (), (3, 2), (2, 4), (1, 3), (2, 0), (1, 2, 3), (2, 3, 1)], ids=str)
def test_out_of_another_shape(call, shape):
    with untouched(shape, ROW.dtype) as out:
        refuse(partial(call, out=out), ValueError, "out")


@pytest.mark.parametrize("dtype", ["u8", "?", "i4", "f8", "c8", "m8[s]", "S8", "V8", "O"])
def test_out_of_another_dtype(call, dtype):
    dtype = np.dtype(dtype)
    if call in COPIES.values() and np.can_cast(ROW.dtype, dtype, "same_kind"):
        out = np.zeros((2, 3), dtype)
        assert call(out=out) is out
        assert (out == call().astype(dtype)).all()
        return
    if dtype.hasobject:
        out = np.full((2, 3), "as it was", dtype)
        refuse(partial(call, out=out), TypeError, "out")
        assert (out == "as it was").all()
    else:
        with untouched((2, 3), dtype) as out:
            refuse(partial(call, out=out), TypeError, "out")


DTYPES_APART = {
    "byte_order": ("<i4", ">i4"),
    "unit": ("M8[s]", "M8[ms]"),
    "names": ([("a", "i4"), ("b", "i4")], [("b", "i4"), ("a", "i4")]),
    "padding": ([("a", "i4")], {"names": ["a"], "formats": ["i4"], "itemsize": 8}),
    "offsets": (
        {"names": ["a"], "formats": ["i2"], "offsets": [0], "itemsize": 4},
        {"names": ["a"], "formats": ["i2"], "offsets": [2], "itemsize": 4},
    ),
    "strings": (np.dtypes.StringDType(), np.dtypes.StringDType(na_object=None)),
    "instant_and_span": ("M8[s]", "m8[s]"),
    "structure_and_void": ([("a", "i4")], "V4"),
}


@pytest.mark.parametrize(("dtype", "other"), **rows(DTYPES_APART))
@pytest.mark.parametrize("reverse", [False, True])
def test_dtypes_that_differ_little(dtype, other, reverse):
    data, out = np.zeros(3, dtype), np.zeros((2, 3), other)
    if reverse:
        data, out = out[0], np.zeros((2, 3), dtype)
    call = partial(bcast.broadcast, data, (2, 3), casting="no", out=out)
    if np.can_cast(data.dtype, out.dtype, "no"):  # so NumPy says of strings with other missing values
        call = partial(call, dtype=data.dtype)
    refuse(call, TypeError, "out")


def test_out_read_only(call):
    with untouched((2, 3), ROW.dtype) as out:
        out.flags.writeable = False
        refuse(partial(call, out=out), ValueError, "out")
    refuse(partial(call, out=np.broadcast_to(ROW, (2, 3))), ValueError, "out")
    refuse(partial(call, out=np.frombuffer(bytes(6 * ROW.itemsize), ROW.dtype).reshape(2, 3)), ValueError, "out")


NOT_ARRAYS = {
    "list": [[0, 0, 0], [0, 0, 0]], "string": "out", "class": np.ndarray, "masked": np.ma.zeros((2, 3), int),
    "tuple": (), "scalar": np.int64(0),
}  # fmt: skip


@pytest.mark.parametrize("out", **rows(NOT_ARRAYS))
def test_out_that_is_no_array(call, out):
    refuse(partial(call, out=out), TypeError, "out")


# The data.

MASKED = {
    "masked": np.ma.array([1, 2, 3], mask=[True, False, False]),
    "constant": np.ma.masked,
    "in_a_list": [ROW, np.ma.array(ROW, mask=[True, False, False])],  # NumPy would drop their masks
    "in_a_tuple": (ROW, np.ma.array(ROW, mask=[True, False, False])),
    "no_mask": np.ma.array([1, 2, 3]),
    "read_only": np.ma.array(ROW, copy=False),
}


@pytest.mark.parametrize("data", **rows(MASKED))
def test_masked_data(data):
    dtype = np.asarray(data).dtype
    refuse_with_out(partial(bcast.broadcast, data, (2, 3)), TypeError, "data", dtype=dtype)
    refuse_with_out(partial(bcast.broadcast_like, data, MATRIX), TypeError, "data", dtype=dtype)
    refuse_with_out(partial(bcast.broadcast_to, data, (2, 3)), TypeError, "array", dtype=dtype)
    refuse(partial(bcast.broadcast_arrays, 1, data), TypeError, "args")
    refuse(partial(bcast.tile, data, 2), TypeError, "A")
    refuse_with_out(partial(bcast.unbroadcast, data, ()), TypeError, "grad", (), dtype)


def test_a_masked_array_lends_its_shape():
    like = np.ma.zeros((2, 3))
    assert bcast.broadcast_like(ROW, like).shape == (2, 3)


class Resizer:
    """An integer that makes an array shorter when it is asked for."""

    def __init__(self, array, length):
        self.array, self.length = array, length

    def __index__(self):
        self.array.resize((3,), refcheck=False)
        return self.length


SHRINKING = {
    "data": (lambda a, **out: bcast.broadcast(a, (2, Resizer(a, a.size)), **out), (2, 1 << 20)),
    "A": (lambda a, **out: bcast.tile(a, Resizer(a, 2), **out), 2 << 20),
    "a": (lambda a, **out: bcast.repeat(a, Resizer(a, 2), **out), 2 << 20),
    "grad": (lambda a, **out: bcast.unbroadcast(a, a.shape, [Resizer(a, 0)], mode="explicit", **out), 1 << 20),
    "times": (
        lambda a, **out: bcast.unbroadcast(a.copy(), a.shape, [Resizer(a, 0)], mode="explicit", times=a, **out),
        1 << 20,
    ),
}


@pytest.mark.parametrize(("call", "shape"), **rows(SHRINKING))
def test_arrays_that_shrink_during_the_call(call, shape):
    with pytest.raises(ValueError, match="expected arrays that keep their sizes"):
        call(np.ones(1 << 20))
    with untouched(shape, float) as out, pytest.raises(ValueError, match="expected"):
        call(np.ones(1 << 20), out=out)


class Broken:
    def __array__(self, dtype=None, copy=None):
        raise KeyError("no data")


@pytest.mark.parametrize(("data", "error"), [(Broken(), KeyError), ([[1], [2, 3]], ValueError)], ids=["own", "ragged"])
def test_data_that_is_no_array(data, error):
    with untouched((2, 3), int) as out, pytest.raises(error):
        bcast.broadcast(data, (2, 3), out=out)
    with untouched((2, 3), int) as out, pytest.raises(error):
        bcast.broadcast_to(data, (2, 3), out=out)
    with untouched((), int) as out, pytest.raises(error):
        bcast.unbroadcast(data, (), out=out)
    with pytest.raises(error):
        bcast.broadcast_arrays(data)


# Remedies: what to write instead, one of each kind.

GRID, STEP = np.ones((3, 4)), r"steps\[0\]"
REMEDIES = {
    "swapped": (partial(bcast.broadcast, (3, 4), GRID), "target_shape", "before the shape"),
    "swapped_counts": (partial(bcast.tile, 2, GRID), "reps", "before the counts"),
    "swapped_like": (partial(bcast.broadcast_like, MATRIX, ROW), "like", "the other way round"),
    "numpys_name": (partial(bcast.broadcast, ROW, shape=(2, 3)), "target_shape", "target_shape=(2, 3)"),
    "length": (partial(bcast.broadcast, ROW, 3), "target_shape", "(3,)"),
    "axis_alone": (partial(bcast.broadcast, ROW, (3, 5), mode="numpy", axis=0), "axis", "mode='pdpd'"),
    "axis_from_the_end": (partial(bcast.broadcast, ROW, (2, 3, 5), [-2], mode="explicit"), "axes_mapping", "use 1"),
    "fractions": (partial(bcast.tile, 0.5, 2, dtype=int), "dtype", "casting='unsafe'"),
    "fraction": (partial(bcast.repeat, ROW, 2.5), "repeats", "round"),
    "mask": (partial(bcast.tile, np.ma.array([1, 2]), 2), "A", ".filled()"),
    "place": (partial(bcast.broadcast, ROW, (2, 3, 5)), "target_shape", "axes_mapping=[1]"),
    "place_by_axis": (partial(bcast.broadcast, ROW, (2, 3, 5), mode="pdpd"), "target_shape", "axis=1"),
    "one_run": (partial(bcast.unrepeat, np.ones(4), [2]), "repeats", "use the integer 2"),
    "operand": (partial(bcast.elementwise, np.add, GRID, ROW), "a, b", "axis=0"),
    "operand_of_a_step": (partial(bcast.chain, GRID, (np.add, ROW)), "data, steps", "axis=0"),
    "condition": (partial(bcast.where, [True] * 3, GRID, 0), "condition, x, y", "condition[..., np.newaxis]"),
    "mapping": (partial(bcast.broadcast, ROW, (3, 4), mode="explicit"), "axes_mapping", "axes_mapping=[0]"),
    "one_operand": (partial(bcast.elementwise, np.sqrt, ROW, ROW), "ufunc", "chain(a, np.sqrt)"),
    "operand_left_out": (partial(bcast.elementwise, np.sqrt, ROW), "ufunc", "chain(a, np.sqrt)"),
    "numpys_own_name": (partial(bcast.patch_numpy, "np.repeat"), "names", "use 'repeat'"),
    "swapped_function": (partial(bcast.elementwise, ROW, ROW, np.add), "ufunc", "the function comes first"),
    "reduced": (partial(bcast.elementwise, np.mean, ROW, ROW), "ufunc", None),
    "reduced_along": (partial(bcast.elementwise, np.sort, ROW, 0), "ufunc", None),
    "greatest": (partial(bcast.elementwise, np.max, ROW, 0), "ufunc", "use np.maximum"),
    "least": (partial(bcast.elementwise, min, ROW, 0), "ufunc", "use np.minimum"),
    "added": (partial(bcast.elementwise, sum, ROW, 0), "ufunc", "use np.add"),
    "ours": (partial(bcast.elementwise, bcast.std, ROW, 0), "ufunc", None),
    "rounded": (partial(bcast.elementwise, np.round, ROW, 1), "ufunc", "use chain(a, (np.round, decimals))"),
    "around": (partial(bcast.elementwise, np.around, ROW, ROW), "ufunc", "use chain(a, (np.round, decimals))"),
    "repeated": (partial(bcast.elementwise, np.repeat, ROW, 2), "ufunc", None),
    "of_three_results": (partial(bcast.elementwise, np.modf, ROW, 2), "ufunc", None),
    "steps": (partial(bcast.chain, ROW, [(np.add, 1), (np.divide, 2)]), STEP, "pass *steps"),
    "step_of_one": (partial(bcast.chain, ROW, (np.sqrt,)), STEP, "use sqrt"),
    "step_without_operand": (partial(bcast.chain, ROW, np.add, 1), STEP, "use (add, operand)"),
    "swapped_step": (partial(bcast.chain, ROW, (ROW, np.add)), STEP, "the ufunc comes first"),
    "round": (partial(bcast.chain, ROW, (np.round, 2, None)), STEP, "np.round or (np.round, decimals)"),
    "round_of_nothing": (partial(bcast.chain, ROW, (np.around,)), STEP, "np.round or (np.round, decimals)"),
    "clip": (partial(bcast.chain, ROW, np.clip), STEP, "(np.clip, low, high)"),
    "clip_at_one_side": (partial(bcast.chain, ROW, (np.clip, 0)), STEP, "None for no bound"),
    "clip_into": (partial(bcast.chain, ROW, (np.clip, 0, 1, ROW)), STEP, "(np.clip, low, high)"),
    "decimals": (partial(bcast.chain, ROW, (np.round, 1.5)), STEP, None),
    "bytes": (partial(bcast.chain, ROW, np.sqrt, out=np.ones(3, "u1")), "out", "casting='saturate'"),
    "bools": (partial(bcast.chain, ROW, np.sqrt, out=np.ones(3, "?")), "out", "casting='unsafe'"),
    "none": (partial(bcast.broadcast, MATRIX, (4, 5)), "target_shape", None),
    "nested_counts": (partial(bcast.tile, ROW, [[1, 2], [3]]), "reps", None),
    "second_operand_left_out": (partial(bcast.elementwise, np.equal, ROW), "b", None),
    "ddof": (partial(bcast.std, ROW, ddof="1"), "ddof", None),
    "correction": (partial(bcast.std, ROW, correction="1"), "correction", None),
    "mask_of_rows": (partial(bcast.elementwise, np.add, GRID, 1, where=np.ones(3, bool)), "where", None),
    "no_axis": (partial(bcast.elementwise, np.add, GRID, np.ones((2, 4))), "a, b", None),
    "no_ufunc": (partial(bcast.chain, ROW, np.linalg.norm), STEP, None),
    "reduction": (partial(bcast.chain, ROW, np.mean), STEP, "use (np.mean, axis)"),
    "statistic": (partial(bcast.chain, ROW, np.std), STEP, "pass the result of the chain to bcast.std"),
    "dtype_as_step": (partial(bcast.chain, ROW, np.float32), STEP, "use dtype=np.float32"),
    "empty_step": (partial(bcast.chain, ROW, ()), STEP, None),
}


for method in ("reduce", "accumulate", "reduceat", "outer", "at"):
    REMEDIES[f"method_{method}"] = (
        partial(bcast.elementwise, getattr(np.add, method), ROW, ROW), "ufunc", "use np.add",
    )  # fmt: skip


@pytest.mark.parametrize(("call", "name", "remedy"), **rows(REMEDIES))
def test_remedies(call, name, remedy):
    with pytest.raises((TypeError, ValueError), match=f"^`{name}` expected ") as caught:
        call()
    found = str(caught.value).partition("; ")[2]
    assert remedy in found if remedy else not found


# Functions that are no ufuncs.


def test_functions_that_users_may_give():
    """Whatever takes two arrays and broadcasts, by whichever names."""

    def named(a, axis):
        return a + axis

    class Callable:
        def __call__(self, a, dtype):
            return a + dtype

    column = np.arange(2.0)[:, None]
    functions = [
        named, Callable(), Callable().__call__, np.add.__call__, partial(np.add), np.vectorize(max), np.isclose,
        np.emath.power, divmod, pow, lambda *args: args[0] + args[1], np.frompyfunc(min, 2, 1),
    ]  # fmt: skip
    for function in functions:
        result = bcast.elementwise(function, ROW + 1, column + 1)
        right = function(ROW + 1, column + 1)
        np.testing.assert_array_equal(result, right, strict=not isinstance(right, tuple))


def test_errors_name_the_refused_value():
    for function, name in ((lambda a: a, "<lambda>"), (len, "len"), (partial(abs), "functools.partial(")):
        for options in ({}, {"out": np.zeros((2, 3))}):
            with pytest.raises(TypeError) as caught:
                bcast.elementwise(function, ROW, np.zeros((2, 3)), **options)
            (note,) = caught.value.__notes__
            assert note.startswith(f"`ufunc` expected a function of two arrays, got {name}")
            assert note.endswith(", and arrays of shapes (3,) and (2, 3) for it")
    with pytest.raises(TypeError) as caught:
        bcast.elementwise(np.add, ROW, np.array(["a"] * 3))
    assert not hasattr(caught.value, "__notes__")


def test_decimals_of_a_step():
    for decimals in (1.5, "2", True, [1], None):
        for function in (np.round, np.around):
            for data in (ROW, ROW.view(np.matrix)):
                with pytest.raises(TypeError, match=r"^`steps\[1\]` expected an integer for the decimals of np.round"):
                    bcast.chain(data, np.negative, (function, decimals))


# One is not several.

ONE = {
    "axis": (partial(bcast.broadcast, ROW, (), axis=0), "at least 1 axis for"),
    "axes": (partial(bcast.broadcast, MATRIX, ()), "at least 2 axes for"),
    "mapped": (partial(bcast.broadcast, ROW, (3,), [0, 1]), "expected 1 axis, one for each axis"),
    "mapped_twice": (partial(bcast.broadcast, MATRIX, (2, 3), [0]), None),
    "mapped_thrice": (partial(bcast.broadcast, MATRIX, (2, 3), [0, 1, 1]), "expected 2 axes, one for each axis"),
    "byte": (partial(bcast.broadcast, np.zeros(1, "u1"), (2**62,) * 1 + (1,)), None),
    "item": (partial(bcast.repeat, [5], [1, 2]), "or one for the only item in all, got 2"),
    "item_along": (partial(bcast.repeat, [[5, 6]], [1, 2], 0), "or one for the only item along axis 0, got 2"),
    "items": (partial(bcast.repeat, [5, 6], [1, 2, 3]), "or one for each of the 2 items in all, got 3"),
}


@pytest.mark.parametrize(("call", "words"), **rows(ONE))
def test_messages_count(call, words):
    with pytest.raises((TypeError, ValueError, MemoryError)) as caught:
        call()
    assert not re.search(r"\b1 (axes|bytes|items|lengths|counts)\b", str(caught.value))
    assert words is None or words in str(caught.value)


# Counts and axes that are only available by `__array__`.


class Held:
    """An array of another library that is no sequence to Python."""

    def __init__(self, items):
        self.items = np.array(items)

    def __array__(self, dtype=None, copy=None):
        return self.items


HOLD = {
    "repeat": (lambda value: bcast.repeat(ROW, value), [2, [1, 2, 0], [1], [2.0, 2, 1], True, np.uint8(1), 2.0]),
    "repeat_along": (lambda value: bcast.repeat(ROW, value, 0), [2, [1, 2, 0], [1], [2, 2, 1]]),
    "repeat_axes": (lambda value: bcast.repeat(MATRIX, value, (0, 1)), [2, [2, 3], [2]]),
    "repeat_runs": (lambda value: bcast.repeat(MATRIX, (value, 2), (0, 1)), [2, [2, 3]]),
    "tile": (lambda value: bcast.tile(ROW, value), [2, [1, 2, 0], [1], [2, 3], True, np.uint8(1)]),
    "unrepeat": (lambda value: bcast.unrepeat(ROW, value), [1, [1, 2, 0], [1, 2], [3]]),
    "axes": (lambda value: bcast.repeat(MATRIX, 2, value), [0, [0, 1], [1], [-1, 0]]),
    "reduced_axes": (lambda value: bcast.sum(MATRIX, value), [0, [0, 1], [1], [-1, 0]]),
    "means_of_wide": (lambda value: bcast.mean(MATRIX.astype("g"), value), [0, [0, 1], [1], [-1, 0]]),
    "shape": (lambda value: bcast.broadcast(ROW, value), [[3], [2, 3]]),
}


@pytest.mark.parametrize(("call", "values"), **rows(HOLD))
def test_arguments_that_only_hold_an_array(call, values):
    """Objects are read as the arrays that they contain, with the same result, or the error of a list."""
    for value in values:
        result, right = call(Held(value)), call(np.array(value))
        np.testing.assert_array_equal(result, right, strict=not np.isscalar(right))
    for value in ("x", [None], [1.5], [[1, 2, 0]] * 2, 1.5, np.zeros((2, 2))):
        with pytest.raises((TypeError, ValueError)) as caught:
            call(np.array(value))
        with pytest.raises(type(caught.value)) as held:
            call(Held(value))
        assert str(held.value).startswith(str(caught.value).partition(", got ")[0])
        assert ("; round floats first" in str(caught.value)) == ("; round floats first" in str(held.value))


# What has no sum.

OF_NONE = "?", "U1", "T", "V2", "M8[s]", [("a", "<i4")]
WITHOUT_SUM = {f"of_{dtype}": (np.zeros(3, dtype), None, "grad") for dtype in OF_NONE}
WITHOUT_SUM |= {
    "to_bool": (np.ones(3), bool, "dtype"),
    "to_string": (np.ones(3), "S3", "dtype"),
    "to_instant": (np.ones(3, int), "M8[s]", "dtype"),
    "to_span": (np.ones(3, int), "m8[s]", "dtype"),
    "from_span": (np.ones(3, "m8[s]"), "i8", "dtype"),
    "no_dtype": (np.ones(3), "number", "dtype"),
    "to_structure": (np.ones(3), [("a", "<i4")], "dtype"),
    "no_dtype_at_all": (np.ones(3), 3, "dtype"),
}


@pytest.mark.parametrize(("grad", "dtype", "argument"), **rows(WITHOUT_SUM))
def test_dtype_without_a_sum(grad, dtype, argument):
    refuse_with_out(partial(bcast.unbroadcast, grad, (), dtype=dtype), TypeError, argument, ())
