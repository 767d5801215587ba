"""Results of another dtype: those of `broadcast(...).astype(dtype, casting)` to the last bit, warnings included."""

import itertools
import tracemalloc
import warnings
from functools import partial

import numpy as np
import pytest
from _ways import WAYS, pool_limited, written
from hypothesis import given
from hypothesis import strategies as st
from test_errors import refuse, untouched
from test_fenced import PAINT, fill, random_shapes, random_way, rooms
from test_properties import DATA_LAYOUTS, OUT_LAYOUTS, drill_or_not, laid_out, search

import bcast
from bcast._api import converted
from bcast._rules.counts import counts_of_array

__all__ = ["rooms"]  # a fixture

CASTINGS = ["no", "equiv", "safe", "same_kind", "unsafe"]
NUMBERS = ["?", "i1", "u1", "i2", "<i4", ">i4", "i8", "u8", "f2", "<f4", ">f4", "f8", "g", "c8", "c16", "G"]
OTHERS = ["S3", "S", "U3", ">U3", "U", "M8[s]", "M8[D]", "M8", "m8[s]", "m8[ms]", "m8", "O", "T", "V4", "V"]
STRUCTURES = [[("a", "i4"), ("b", "f8")], [("x", "f4"), ("y", "f4")], np.dtype([("a", "u1"), ("b", "f8")], align=True)]
VALUES = {"T": "12", "S": "12", "U": "12", "O": 12, "V": b"abcd"}


def all_dtypes():
    found = [np.dtype(code) for code in [*NUMBERS, *OTHERS, *STRUCTURES]]
    try:
        import ml_dtypes
    except ImportError:
        return found
    return [*found, np.dtype(ml_dtypes.bfloat16)]


@pytest.fixture(params=[1, 24, 1 << 20])
def piece(request):
    """Convert pieces of so many bytes."""
    converted.set_limits(request.param)
    yield request.param
    converted.set_limits()


@pytest.fixture
def small_pieces():
    converted.set_limits(64)
    yield
    converted.set_limits()


def outcome(call, *args, **kwargs):
    """Return what a call gives, or the type of what it raises; and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = call(*args, **kwargs)
        except Exception as error:
            result = type(error)
    told = [(each.category, str(each.message)) for each in caught]
    # NumPy 2.5 says with each item that the unit is deprecated; bcast converts fewer items.
    return result, [each for i, each in enumerate(told) if each[0] is not DeprecationWarning or each not in told[:i]]


def check_same(result, expected):
    """Compare two outcomes: types of exceptions, or arrays by their bytes; and the warnings."""
    assert result[1] == expected[1]
    got, wanted = result[0], expected[0]
    if isinstance(wanted, type) or isinstance(got, type):
        assert got is wanted
        return
    assert got.dtype == wanted.dtype
    assert got.dtype.byteorder == wanted.dtype.byteorder
    assert got.shape == wanted.shape
    if got.dtype.hasobject or got.dtype.names:
        assert got.tolist() == wanted.tolist()
    elif got.dtype.char in "gG":  # whose padding no cast defines
        np.testing.assert_array_equal(got, wanted)
    else:
        assert got.tobytes() == wanted.tobytes()


def sample(dtype):
    """Items that every dtype can hold."""
    if dtype.names:
        return np.ones((2, 1, 3), dtype)
    kind = "V" if dtype.kind == "V" and dtype.num == np.dtype("V").num else dtype.kind
    if dtype.itemsize == 0 and kind in "SU":
        dtype = np.dtype(f"{kind}2")
    if kind in VALUES:
        return np.full((2, 1, 3), VALUES[kind], np.dtype("V4") if kind == "V" else dtype)
    return np.array([[[0, 1, 2]], [[3, 4, 100]]], "i1").astype(dtype)


SHAPE = (2, 4, 3)
DTYPES = all_dtypes()


@pytest.mark.parametrize("own", DTYPES, ids=str)
@pytest.mark.usefixtures("piece")
def test_every_pair_of_dtypes(own):
    data = sample(own)
    for dtype, casting in itertools.product(DTYPES, CASTINGS):
        expected = outcome(np.broadcast_to(data, SHAPE).astype, dtype, order="C", casting=casting)
        call = partial(bcast.broadcast, data, SHAPE, dtype=dtype, casting=casting)
        check_same(outcome(call), expected)
        if not isinstance(expected[0], type):
            out = np.zeros(SHAPE, expected[0].dtype)
            check_same(outcome(partial(call, out=out)), expected)


@pytest.mark.parametrize("own", DTYPES, ids=str)
@pytest.mark.usefixtures("piece")
def test_out_alone_says_the_dtype_as_copyto(own):
    data = sample(own)
    for dtype, casting in itertools.product(DTYPES, CASTINGS):
        out, copy = np.zeros(SHAPE, dtype), np.zeros(SHAPE, dtype)
        if out.itemsize == 0 or own.itemsize == 0:
            continue
        expected = outcome(np.copyto, copy, data, casting=casting)
        result = outcome(bcast.broadcast, data, SHAPE, casting=casting, out=out)
        if own == dtype and casting == "no" and isinstance(expected[0], type):
            continue  # NumPy refuses to copy these at all
        check_same((copy if expected[0] is None else expected[0], expected[1]), result)


FUNCTIONS = {
    "broadcast": (lambda a, **kwargs: bcast.broadcast(a, (2, 4, 6), **kwargs), lambda a: np.broadcast_to(a, (2, 4, 6))),
    "broadcast, explicit": (
        lambda a, **kwargs: bcast.broadcast(a, (4, 6, 3), [0, 1], mode="explicit", **kwargs),
        lambda a: np.broadcast_to(a[..., None], (4, 6, 3)),
    ),
    "broadcast_like": (
        lambda a, **kwargs: bcast.broadcast_like(a, np.empty((3, 4, 6)), **kwargs),
        lambda a: np.broadcast_to(a, (3, 4, 6)),
    ),
    "broadcast_to": (lambda a, **kwargs: bcast.broadcast_to(a, (4, 6), **kwargs), lambda a: a),
    "tile": (lambda a, **kwargs: bcast.tile(a, (2, 3), **kwargs), lambda a: np.tile(a, (2, 3))),
    "tile, ones": (lambda a, **kwargs: bcast.tile(a, (1, 1, 1), **kwargs), lambda a: a[None]),
    "repeat": (lambda a, **kwargs: bcast.repeat(a, 3, **kwargs), lambda a: a.repeat(3)),
    "repeat, axis": (lambda a, **kwargs: bcast.repeat(a, 2, 0, **kwargs), lambda a: a.repeat(2, 0)),
    "repeat, axes": (lambda a, **kwargs: bcast.repeat(a, 2, (0, 1), **kwargs), lambda a: a.repeat(2, 0).repeat(2, 1)),
    "repeat, counts": (
        lambda a, **kwargs: bcast.repeat(a, np.arange(6), 1, **kwargs),
        lambda a: a.repeat(np.arange(6), 1),
    ),
    "repeat, outer counts": (
        lambda a, **kwargs: bcast.repeat(a, [2, 0, 1, 3], 0, **kwargs),
        lambda a: a.repeat([2, 0, 1, 3], 0),
    ),
    "repeat, flat counts": (
        lambda a, **kwargs: bcast.repeat(a, np.arange(24), **kwargs),
        lambda a: a.repeat(np.arange(24)),
    ),
    "repeat, counts of axes": (
        lambda a, **kwargs: bcast.repeat(a, ([2, 0, 1, 3], 2), (0, 1), **kwargs),
        lambda a: a.repeat([2, 0, 1, 3], 0).repeat(2, 1),
    ),
    "nothing": (lambda a, **kwargs: bcast.repeat(a, 0, 1, **kwargs), lambda a: a.repeat(0, 1)),
}


@pytest.mark.parametrize(("ours", "numpys"), FUNCTIONS.values(), ids=FUNCTIONS)
@pytest.mark.parametrize("order", ["C", "F", "backwards", "zero strides"])
@pytest.mark.parametrize(
    ("own", "dtype"), [("u1", "f4"), ("f8", "f4"), ("f4", ">f2"), ("c16", "f4"), ("i4", "S"), ("f8", "O")]
)
@pytest.mark.usefixtures("piece")
def test_every_function(ours, numpys, order, own, dtype):
    data = np.arange(24).reshape(4, 6).astype(own)
    data.flags.writeable = False
    data = {
        "C": data,
        "F": data.T.copy().T,
        "backwards": data[::-1],
        "zero strides": np.broadcast_to(data[:1], (4, 6)),
    }[order]
    for casting in ("same_kind", "unsafe"):
        expected = outcome(numpys(data).astype, dtype, order="C", casting=casting)
        result = outcome(ours, data, dtype=dtype, casting=casting)
        check_same(result, expected)
        if not isinstance(result[0], type):
            assert type(result[0]) is np.ndarray
            assert result[0].flags.owndata
            assert result[0].flags.c_contiguous
            for out in (np.zeros_like(result[0]), np.zeros(result[0].shape[::-1], result[0].dtype).T):
                assert outcome(ours, data, dtype=dtype, casting=casting, out=out) == (out, expected[1])
                np.testing.assert_array_equal(out, expected[0])


@pytest.mark.parametrize("counts", [np.arange(5000) % 4, (np.arange(5000) % 3).tolist()], ids=["shared", "own"])
@pytest.mark.parametrize("shape", [(5000,), (5000, 3), (2, 5000), (2, 5000, 2)], ids=str)
@pytest.mark.usefixtures("small_pieces")
def test_counts_of_many_items(counts, shape):
    data = np.arange(np.prod(shape)).reshape(shape).astype("f8")
    axis = shape.index(5000)
    for dtype in ("f4", "c16"):
        expected = data.repeat(counts, axis).astype(dtype)
        np.testing.assert_array_equal(bcast.repeat(data, counts, axis, dtype=dtype), expected, strict=True)
        out = np.zeros(expected.shape, dtype)
        assert bcast.repeat(data, counts, axis, out=out) is out
        np.testing.assert_array_equal(out, expected)


@pytest.mark.usefixtures("small_pieces")
def test_counts_that_out_overlaps():
    for shift in (0, 4000, 30_000):
        arena = np.zeros(60_000, "u1")
        counts = arena[shift : shift + 5000]
        counts[:] = np.arange(5000) % 4
        data = np.arange(5000, dtype="u2")
        expected = data.repeat(counts).astype("f4")
        out = arena[: expected.nbytes].view("f4")
        bcast.repeat(data, counts, out=out)
        np.testing.assert_array_equal(out, expected)


def test_parts_of_counts():
    for numbers in (np.arange(100) % 5, np.arange(9000, dtype="u1") % 5):
        counts = counts_of_array(numbers)
        step = counts.whole_chunks(700)
        assert step == (700 if numbers.size == 100 else 512)
        for begin in range(0, numbers.size, step):
            part = counts.part(begin, min(begin + step, numbers.size))
            np.testing.assert_array_equal(part.to_array(), numbers[begin : begin + step])
            assert part.total == numbers[begin : begin + step].sum()
        for wrong in ((-1, 5), (5, 4), (0, numbers.size + 1)):
            refuse(
                partial(counts.part, *wrong),
                ValueError,
                f"`begin`, `end` expected a part of {numbers.size} counts, got {wrong[0]}, {wrong[1]}",
            )
    with pytest.raises(ValueError, match="expected a part of 9000 counts"):
        counts.part(1, 512)


# What values give rise to.

BAD = {  # items, a dtype, and the warnings
    "overflow": (np.array([1.0, 1e300, 2.0, 1e300]), "f4", ["overflow encountered in cast"]),
    "invalid": (np.array([1.0, np.nan, np.nan, 3.0]), "i4", ["invalid value encountered in cast"]),
    "signalling": (np.array([1, 0x7FA00000], "u4").view("f4").repeat(4), "f8", ["invalid value encountered in cast"]),
    "both": (
        np.array([0x7E37E43C8800759C, 0, 0, 0x7FF0000000000001], "u8").view("f8"),
        "f4",
        ["overflow encountered in cast", "invalid value encountered in cast"],
    ),
    "complex": (np.array([1j, 2, 3, 4]), "f4", ["Casting complex values to real discards the imaginary part"]),
    "large complex": (
        np.array([1e300j, 2, 1e300, 4]),
        "f4",
        ["Casting complex values to real discards the imaginary part", "overflow encountered in cast"],
    ),
}


def bad_calls(items):
    """Calls with items that give rise to warnings, some of them in several pieces."""
    data = items.repeat(16).reshape(-1, 1, 16)
    shape = (len(data), 3, 16)
    return data, {
        "fresh": lambda **kwargs: bcast.broadcast(data, shape, **kwargs),
        "items": lambda **kwargs: bcast.repeat(data, 3, 1, **kwargs),
        "counts": lambda **kwargs: bcast.repeat(data, np.full(len(data), 3), 0, **kwargs),
        "whole": lambda **kwargs: bcast.broadcast(data, data.shape, **kwargs),
    }


@pytest.mark.parametrize(("items", "dtype", "messages"), BAD.values(), ids=BAD)
@pytest.mark.usefixtures("piece")
def test_one_warning(items, dtype, messages):
    data, calls = bad_calls(items)
    expected = outcome(lambda: data.astype(dtype))[1]
    assert [message for _, message in expected] == messages
    for name, call in calls.items():
        result = outcome(partial(call, dtype=dtype, casting="unsafe"))
        assert result[1] == expected, name
        out = np.zeros_like(result[0])
        assert outcome(partial(call, dtype=dtype, casting="unsafe", out=out))[1] == expected, name
        assert out.tobytes() == result[0].tobytes()


@pytest.mark.usefixtures("piece")
def test_the_warning_points_at_the_caller():
    data = np.full((8, 1, 16), 1e300)
    for out in (None, np.zeros((8, 3, 16), "f4")):
        with pytest.warns(RuntimeWarning) as caught:
            bcast.broadcast(data, (8, 3, 16), dtype="f4", out=out)
        assert [each.filename for each in caught] == [__file__]


@pytest.mark.parametrize(("items", "dtype", "messages"), BAD.values(), ids=BAD)
@pytest.mark.usefixtures("piece")
def test_warnings_that_are_errors_leave_out_untouched(items, dtype, messages):
    _, calls = bad_calls(items)
    for call in calls.values():
        with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
            shape = call(dtype=dtype, casting="unsafe").shape
        with untouched(shape, dtype) as out, warnings.catch_warnings(action="error"), pytest.raises(Warning) as caught:
            call(dtype=dtype, casting="unsafe", out=out)
        assert str(caught.value) == messages[0]
        if caught.type is RuntimeWarning:
            with untouched(shape, dtype) as out, np.errstate(all="raise"), pytest.raises(FloatingPointError) as error:
                call(dtype=dtype, casting="unsafe", out=out)
            assert str(error.value) == messages[0]


@pytest.mark.usefixtures("piece")
def test_the_callers_error_state_is_kept():
    data = np.full((8, 1, 16), 1e300)
    told = []
    for out in (None, np.zeros((8, 3, 16), "f4")):
        with np.errstate(over="call", call=lambda *what: told.append(what)):
            bcast.broadcast(data, (8, 3, 16), dtype="f4", out=out)
            assert np.geterr()["over"] == "call"
    assert told == [("overflow", converted.OVERFLOW)] * 2
    with np.errstate(over="ignore"), warnings.catch_warnings(action="error"):
        assert np.isinf(bcast.broadcast(data, (8, 3, 16), dtype="f4")).all()


class Never:
    def __float__(self):
        raise ZeroDivisionError("never")


FAILING = {
    "words": (np.array(["1", "2", "x", "3"]), "f8", ValueError),
    "bytes": (np.array([b"1", b"2", b"x"]), "i4", ValueError),
    "objects": (np.array([1, 2, "x", None], object), "f8", ValueError),
    "objects that raise": (np.array([1, Never()], object), "f8", ZeroDivisionError),
    "dates": (np.array(["2020-01-01", "never"]), "M8[D]", ValueError),
}


@pytest.mark.parametrize(("data", "dtype", "error"), FAILING.values(), ids=FAILING)
@pytest.mark.usefixtures("piece")
def test_a_cast_that_fails_leaves_out_untouched(data, dtype, error):
    n = len(data)
    calls = [
        lambda **kwargs: bcast.broadcast(data, (3, n), **kwargs),
        lambda **kwargs: bcast.broadcast_to(data, (3, n), **kwargs),
        lambda **kwargs: bcast.tile(data, (3, 1), **kwargs),
        lambda **kwargs: bcast.repeat(data[None], [3], 0, **kwargs),
        lambda **kwargs: bcast.repeat(data[None], ([3], np.ones(n, int)), (0, 1), **kwargs),
    ]
    for call in calls:
        with pytest.raises(error):
            call(dtype=dtype, casting="unsafe")
        with untouched((3, n), dtype) as out, pytest.raises(error):
            call(dtype=dtype, casting="unsafe", out=out)


@pytest.mark.usefixtures("piece")
def test_items_that_are_not_in_the_result_are_not_converted():
    words, numbers = np.array(["1", "x", "3"]), np.array([1.0, 1e300, 3.0])
    for counts in ([2, 0, 1], np.array([2, 0, 1])):
        assert bcast.repeat(words, counts, dtype="i4", casting="unsafe").tolist() == [1, 1, 3]
        assert bcast.repeat(numbers, counts, dtype="f4").tolist() == [1, 1, 3]
        assert bcast.repeat(numbers[None], (2, counts), (0, 1), dtype="f4").tolist() == [[1, 1, 3]] * 2
    assert bcast.repeat(words, 0, dtype="i4", casting="unsafe").dtype == "i4"
    assert bcast.broadcast(numbers, (0, 3), dtype="f4").shape == (0, 3)


# `out`.


def test_a_list_into_floats():
    out = np.zeros((2, 3))
    assert bcast.broadcast([1, 2, 3], (2, 3), out=out) is out
    assert out.tolist() == [[1, 2, 3]] * 2


@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.usefixtures("piece")
def test_out_that_overlaps(step):
    for shift in range(0, 200, 8):
        arena = np.random.default_rng(1).integers(0, 100, 1000).astype("u1")
        data = arena[shift : shift + 40 : step].reshape(-1, 1)
        out = arena[64 : 64 + len(data) * 3 * 4].view("f4").reshape(-1, 3)
        expected = np.broadcast_to(data.copy(), out.shape).astype("f4")
        bcast.broadcast(data, out.shape, out=out)
        np.testing.assert_array_equal(out, expected)


@pytest.mark.usefixtures("piece")
def test_subclasses_and_files(tmp_path):
    class Liar(np.ndarray):
        dtype = property(lambda _: np.dtype("f4"))

    out = np.zeros((4, 3), "f8")
    assert type(bcast.broadcast(np.arange(3), (4, 3), out=out.view(Liar))) is Liar
    assert (out == np.arange(3)).all()
    mapped = np.memmap(tmp_path / "out", "f4", "w+", shape=(4, 3))
    assert bcast.broadcast(np.arange(3, dtype="u1"), (4, 3), out=mapped) is mapped
    assert (mapped == np.arange(3)).all()


# What is refused.

ROW = np.arange(3)
RULES = "one of 'no', 'equiv', 'safe', 'same_kind', 'unsafe'"
REFUSED = {
    "no casting": ({"casting": "any"}, ValueError, f"`casting` expected {RULES}, got 'any'"),
    "casting of no kind": ({"casting": None}, TypeError, f"`casting` expected {RULES}, got None"),
    "no dtype": ({"dtype": "number"}, TypeError, "`dtype` expected a dtype or what stands for one, got 'number'"),
    "a shape of its own": (
        {"dtype": ("f4", (2,))},
        TypeError,
        "`dtype` expected a dtype without a shape of its own, got ('<f4', (2,))",
    ),
    "a narrower kind": (
        {"dtype": "u8"},
        TypeError,
        "`dtype` expected a dtype that casting='same_kind' allows for data of int64, got uint64",
    ),
    "a narrower dtype": (
        {"dtype": "i4", "casting": "safe"},
        TypeError,
        "`dtype` expected a dtype that casting='safe' allows for data of int64, got int32",
    ),
    "no date": (
        {"dtype": "M8[D]", "casting": "equiv"},
        TypeError,
        "`dtype` expected a dtype that casting='equiv' allows for data of int64, got datetime64[D]",
    ),
}
CALLS = {
    "broadcast": partial(bcast.broadcast, ROW, (2, 3)),
    "broadcast_like": partial(bcast.broadcast_like, ROW, np.zeros((2, 3))),
    "broadcast_to": partial(bcast.broadcast_to, ROW, (2, 3)),
    "tile": partial(bcast.tile, ROW, (2, 1)),
    "tile by ones": partial(bcast.tile, np.zeros((2, 3), int), 1),
    "repeat": partial(bcast.repeat, ROW[None], 2, 0),
    "repeat along axes": partial(bcast.repeat, ROW[None], (2, 1), (0, 1)),
    "repeat by counts": partial(bcast.repeat, np.zeros((3, 3), int), [1, 0, 1], 0),
    "repeat by counts of axes": partial(bcast.repeat, np.zeros((3, 3), int), ([1, 0, 1], 1), (0, 1)),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize(("arguments", "error", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused(call, arguments, error, message):
    refuse(partial(call, **arguments), error, message)
    with untouched((2, 3), int) as out:
        refuse(partial(call, **arguments, out=out), error, message)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_out_of_another_dtype_than_asked_for(call):
    with untouched((2, 3), "f4") as out:
        refuse(partial(call, dtype="f8", out=out), TypeError, "`out` expected `dtype` float64, got float32")
    with untouched((2, 3), "u1") as out:
        message = "`out` expected data's dtype int64, or one that casting='safe' allows for it, got uint8"
        refuse(partial(call, casting="safe", out=out), TypeError, message)
    with untouched((3, 2), "f8") as out:
        refuse(partial(call, out=out), ValueError, "`out` expected shape (2, 3), got (3, 2)")


# Memory, threads, any way of writing.


def test_no_array_of_the_datas_size():
    data = np.ones((64, 1 << 16), "u1")  # 4 MiB, as floats 16
    out = np.zeros((64, 1 << 16, 2), "f4")
    transposed = np.ones((2048, 2048), "u1").T
    for call in (
        lambda: bcast.broadcast(data[..., None], out.shape, out=out),
        lambda: bcast.repeat(data, 2, 1, out=out.reshape(64, -1)),
        lambda: bcast.repeat(data, np.full(1 << 16, 2), 1, out=out.reshape(64, -1)),
        lambda: bcast.repeat(data.reshape(-1), np.full(1 << 22, 2, "u1"), out=out.reshape(-1)),
    ):
        assert peak_of(call) < 9 << 20
        assert (out == 1).all()
        out[...] = 0
    converted.set_limits(1 << 18)  # as 32 pieces of transposed data are converted at once
    try:
        call = partial(bcast.broadcast, transposed[..., None], (2048, 2048, 2), out=out.reshape(2048, 2048, 2))
        assert peak_of(call) < 9 << 20
    finally:
        converted.set_limits()
    assert (out == 1).all()


def peak_of(call):
    """The bytes that a call has allocated at most."""
    tracemalloc.start()
    call()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


@pytest.mark.parametrize("threads", [1, 3])
def test_any_number_of_threads(threads):
    data = np.random.default_rng(3).integers(0, 255, (700, 900), "u1")
    number = bcast.get_num_threads()
    with pool_limited(threads):
        bcast.set_num_threads(threads)
        try:
            for given in (data, data[::-1, ::2], data.T):
                expected = np.repeat(given.astype("f4")[..., None], 3, 2)
                result = bcast.broadcast(given[..., None], (*given.shape, 3), dtype="f4")
                np.testing.assert_array_equal(result, expected, strict=True)
        finally:
            bcast.set_num_threads(number)


@pytest.mark.parametrize("own", ["?", "u1", "i2", "f4", "f8"])
def test_nothing_outside_is_written(rooms, own, piece):
    rng = np.random.default_rng(piece)
    data_room, out_room, flush = rooms
    for dtype in ("f4", "f2", "c16"):
        for _ in range(30):
            fill(rooms, rng)
            source, shape = random_shapes(rng, 16)
            if piece == 1 and np.prod(source) > 3000:
                continue
            data = flush(data_room, int(np.prod(source)) * np.dtype(own).itemsize)
            data[:] = data % 2
            data = data.view(own).reshape(source)
            out = flush(out_room, int(np.prod(shape)) * np.dtype(dtype).itemsize)
            with written(*random_way(rng)), np.errstate(all="ignore"):
                bcast.broadcast(data, shape, casting="unsafe", out=out.view(dtype).reshape(shape))
                expected = np.broadcast_to(data.astype(dtype), shape)
            assert out.tobytes() == np.ascontiguousarray(expected).tobytes()
            out[:] = PAINT
            assert (out_room == PAINT).all()


@drill_or_not
def test_any_conversion_as_numpy(examples):
    @given(st.data(), st.sampled_from(WAYS), st.sampled_from([1, 16, 100, 1 << 20]))
    def prop(data_strategy, way, limit):
        draw = data_strategy.draw
        shape = tuple(draw(st.lists(st.sampled_from([0, 1, 1, 2, 3, 5, 9]), max_size=5)))
        source = tuple(1 if draw(st.booleans()) else length for length in shape)
        own, dtype = draw(st.sampled_from(NUMBERS)), draw(st.sampled_from(NUMBERS))
        casting = draw(st.sampled_from(["same_kind", "unsafe"]))
        whole = np.random.default_rng(7).integers(0, 2, source, "u1").astype(own)
        data = laid_out(draw, whole, DATA_LAYOUTS)
        expected = outcome(lambda: np.broadcast_to(data, shape).astype(dtype, order="C", casting=casting))
        converted.set_limits(limit)
        try:
            with written(*way):
                check_same(outcome(lambda: bcast.broadcast(data, shape, dtype=dtype, casting=casting)), expected)
                if not isinstance(expected[0], type):
                    out = laid_out(draw, np.full(shape, 7).astype(dtype), OUT_LAYOUTS)
                    with warnings.catch_warnings(action="ignore"):
                        assert bcast.broadcast(data, shape, casting=casting, out=out) is out
                    check_same((out, []), (expected[0], []))
        finally:
            converted.set_limits()

    search(examples, prop)


def test_pieces_of_less_than_a_byte():
    refuse(lambda: converted.set_limits(0), ValueError, "`piece` expected bytes, at least 1, got 0")


# Items that are repeated 0 times: they decide nothing, and give rise to nothing.

DROPPED = {
    "objects": (np.array(["a", "bbbbbb"], object), "U"),
    "bytes of objects": (np.array([b"a", b"bbbbbb"], object), "S"),
    "dates": (np.array(["2020-01-01", "2020-01-01T00:00:01"]), "M8"),
    "spans": (np.array(["1", "zz"]), "m8"),
    "numbers": (np.array(["1", "zz"]), "i4"),
    "floats": (np.array([1.5, 1e300]), "f4"),
    "integers": (np.array([1.5, np.nan]), "i4"),
    "complex numbers": (np.array([1.5 + 1j, np.nan]), "i4"),
}


@pytest.mark.parametrize("times", [1, 3, 3000])
@pytest.mark.parametrize(("data", "dtype"), DROPPED.values(), ids=DROPPED)
def test_items_that_are_dropped_are_not_converted(data, dtype, times):
    counts = [2 * times, 0]
    for a, repeats, axis, expected in (
        (data, counts, None, data.repeat(counts)),
        (data, counts, 0, data.repeat(counts)),
        (np.stack([data, data[::-1]]), [1, 0], 0, data[np.newaxis]),
        (np.stack([data, data], 1), counts, 0, np.stack([data, data], 1).repeat(counts, 0)),
        (np.stack([data, data], 1), (counts, 2), (0, 1), np.stack([data, data], 1).repeat(counts, 0).repeat(2, 1)),
    ):
        if expected.size != expected[expected == data[0]].size:
            continue  # one of those that cannot be converted is left
        wanted = outcome(expected.astype, dtype, casting="unsafe")
        result = outcome(bcast.repeat, a, repeats, axis, dtype=dtype, casting="unsafe")
        assert result[0].dtype == wanted[0].dtype
        assert result[0].tobytes() == wanted[0].tobytes()
        assert [str(each) for each in result[1]] == [str(each) for each in wanted[1]]


@pytest.mark.usefixtures("small_pieces")
def test_out_is_left_alone_if_a_warning_cannot_be_shown(monkeypatch):
    def fails(*_, **__):
        raise OSError("no room")

    data = np.ones(1000)
    data[-1] = 1e300
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        monkeypatch.setattr(warnings, "showwarning", fails)
        for call in (partial(bcast.broadcast, data, (2, 1000)), partial(bcast.repeat, data, np.full(1000, 2))):
            with untouched(call().shape, "f4") as out, pytest.raises(OSError, match="no room"):
                call(dtype="f4", out=out)


def test_a_dtype_that_shrinks_the_counts():
    counts = np.full(5000, 2)

    class Shrinking:
        @property
        def dtype(self):
            counts.resize(1, refcheck=False)
            return np.dtype("f4")

    assert bcast.repeat(np.ones(5000), counts, dtype=Shrinking()).shape == (10_000,)
