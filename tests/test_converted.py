"""Results of another dtype: equal to `broadcast(...).astype(dtype, casting)` to the last bit, including warnings."""

import itertools
import tracemalloc
import warnings
from functools import partial

import numpy as np
import pytest
from _ways import WAYS, written
from hypothesis import strategies as st
from test_errors import COPIES, refuse, untouched
from test_fenced import PAINT, fill, random_shapes, random_way, rooms
from test_properties import DATA_LAYOUTS, OUT_LAYOUTS, for_all, laid_out

import bcast
from bcast._api import converted
from bcast._runtime import core as runtime

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


@pytest.fixture(params=[24, 1 << 20])
def piece(request):
    converted.set_limits(request.param)
    yield request.param
    converted.set_limits()


@pytest.fixture
def small_pieces():
    converted.set_limits(64)
    yield
    converted.set_limits()


def outcome(call, *args, **kwargs):
    """Return what a call gives, or the type of what it raises; and the kinds of its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = call(*args, **kwargs)
        except Exception as error:
            result = type(error)
    return result, sorted({each.category.__name__ for each in caught})


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
        call = partial(bcast.broadcast, data, SHAPE, casting=casting)
        check_same(outcome(call, dtype=dtype), expected)
        if not isinstance(expected[0], type):
            check_same(outcome(call, dtype=dtype, out=np.zeros(SHAPE, expected[0].dtype)), expected)
        out, copy = np.zeros(SHAPE, dtype), np.zeros(SHAPE, dtype)
        expected = outcome(np.copyto, copy, data, casting=casting)  # `out` alone says the dtype
        is_refused = own == dtype and casting == "no" and isinstance(expected[0], type)
        if is_refused or 0 in (out.itemsize, own.itemsize):
            continue  # NumPy refuses to copy these at all
        check_same((copy if expected[0] is None else expected[0], expected[1]), outcome(call, out=out))


COUNTS, LIKE = np.arange(6), np.empty((3, 4, 6))
FUNCTIONS = {
    "broadcast": (lambda a, **to: bcast.broadcast(a, (2, 4, 6), **to), lambda a: np.broadcast_to(a, (2, 4, 6))),
    "broadcast, explicit": (
        lambda a, **to: bcast.broadcast(a, (4, 6, 3), [0, 1], mode="explicit", **to),
        lambda a: np.broadcast_to(a[..., None], (4, 6, 3)),
    ),
    "like": (lambda a, **to: bcast.broadcast_like(a, LIKE, **to), lambda a: np.broadcast_to(a, LIKE.shape)),
    "broadcast_to": (lambda a, **to: bcast.broadcast_to(a, (4, 6), **to), lambda a: a),
    "tile": (lambda a, **to: bcast.tile(a, (2, 3), **to), lambda a: np.tile(a, (2, 3))),
    "tile, ones": (lambda a, **to: bcast.tile(a, (1, 1, 1), **to), lambda a: a[None]),
    "repeat": (lambda a, **to: bcast.repeat(a, 3, **to), lambda a: a.repeat(3)),
    "repeat, axis": (lambda a, **to: bcast.repeat(a, 2, 0, **to), lambda a: a.repeat(2, 0)),
    "repeat, axes": (lambda a, **to: bcast.repeat(a, 2, (0, 1), **to), lambda a: a.repeat(2, 0).repeat(2, 1)),
    "repeat, counts": (lambda a, **to: bcast.repeat(a, COUNTS, 1, **to), lambda a: a.repeat(COUNTS, 1)),
    "repeat, outer counts": (lambda a, **to: bcast.repeat(a, COUNTS[:4], 0, **to), lambda a: a.repeat(COUNTS[:4], 0)),
    "repeat, flat counts": (lambda a, **to: bcast.repeat(a, np.arange(24), **to), lambda a: a.repeat(np.arange(24))),
    "repeat, counts of axes": (
        lambda a, **to: bcast.repeat(a, ([2, 0, 1, 3], 2), (0, 1), **to),
        lambda a: a.repeat([2, 0, 1, 3], 0).repeat(2, 1),
    ),
    "nothing": (lambda a, **to: bcast.repeat(a, 0, 1, **to), lambda a: a.repeat(0, 1)),
}


@pytest.mark.parametrize(("ours", "numpys"), FUNCTIONS.values(), ids=FUNCTIONS)
@pytest.mark.usefixtures("piece")
def test_every_function(ours, numpys):
    for own, dtype in ("u1", "f4"), ("f8", "f4"), ("f4", ">f2"), ("c16", "f4"), ("i4", "S"), ("f8", "O"):
        data = np.arange(24).reshape(4, 6).astype(own)
        data.flags.writeable = False
        layouts = data, data.T.copy().T, data[::-1], np.broadcast_to(data[:1], (4, 6))
        for each, casting in itertools.product(layouts, ("same_kind", "unsafe")):
            expected = outcome(numpys(each).astype, dtype, order="C", casting=casting)
            result = outcome(ours, each, dtype=dtype, casting=casting)
            check_same(result, expected)
            if not isinstance(result[0], type):
                assert type(result[0]) is np.ndarray
                assert result[0].flags.owndata
                assert result[0].flags.c_contiguous
                for out in (np.zeros_like(result[0]), np.zeros(result[0].shape[::-1], result[0].dtype).T):
                    assert outcome(ours, each, dtype=dtype, casting=casting, out=out) == (out, expected[1])
                    np.testing.assert_array_equal(out, expected[0])


@pytest.mark.parametrize("times", [1, 2, 3, 4])
@pytest.mark.parametrize(
    "shape", [(1, 9000), (9000, 1), (1, 9000, 3), (300, 1, 300), (1, 3, 8000), (8192, 1, 2)], ids=str
)
def test_axes_of_length_1(shape, times):
    """Large enough that data repeated a few times are converted as often: no axis of theirs says where others are."""
    for own, dtype in ("f4", "f8"), ("u1", "f4"), ("f8", "f4"), ("i2", ">f4"):
        data = np.arange(np.prod(shape)).astype(own).reshape(shape)
        for axis in range(len(shape)):
            right = data.repeat(times, axis).astype(dtype)
            check_same(outcome(bcast.repeat, data, times, axis, dtype=dtype), (right, []))
            out = np.zeros((*right.shape, 2), dtype)[..., 0]
            bcast.repeat(data, times, axis, dtype=dtype, out=out)
            np.testing.assert_array_equal(out, right)
        check_same(outcome(bcast.tile, data, times, dtype=dtype), (np.tile(data, times).astype(dtype), []))


@pytest.mark.parametrize("kind", [np.asarray, list])
@pytest.mark.parametrize("shape", [(5000,), (5000, 3), (2, 5000), (2, 5000, 2), (9, 100, 3)], ids=str)
@pytest.mark.parametrize("limit", [64, 3000, 10_000, 50_000])  # bytes: parts of a chunk of counts, or all, often
@pytest.mark.usefixtures("small_pieces")
def test_counts_of_many_items(kind, shape, limit):
    converted.set_limits(limit)
    data = np.arange(np.prod(shape)).reshape(shape).astype("f8")
    axis = int(np.argmax(shape))
    for dtype, most in ("f4", 4), ("c16", 3), ("f4", 1):
        counts = kind(np.arange(shape[axis]) % most + (most == 1))
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


# What values give rise to.

BAD = {  # items, a dtype, and the kinds of warnings
    "overflow": (np.array([1.0, 1e300, 2.0, 1e300]), "f4", ["RuntimeWarning"]),
    "invalid": (np.array([1.0, np.nan, np.nan, 3.0]), "i4", ["RuntimeWarning"]),
    "signalling": (np.array([1, 0x7FA00000], "u4").view("f4").repeat(4), "f8", ["RuntimeWarning"]),
    "complex": (np.array([1j, 2, 3, 4]), "f4", ["ComplexWarning"]),
    "large complex": (np.array([1e300j, 2, 1e300, 4]), "f4", ["ComplexWarning", "RuntimeWarning"]),
}


def bad_calls(items):
    """Calls with items that give rise to warnings, some of them in several pieces."""
    data = items.repeat(16).reshape(-1, 1, 16)
    shape = (len(data), 3, 16)
    return {
        "fresh": lambda **kwargs: bcast.broadcast(data, shape, **kwargs),
        "items": lambda **kwargs: bcast.repeat(data, 3, 1, **kwargs),
        "counts": lambda **kwargs: bcast.repeat(data, np.full(len(data), 3), 0, **kwargs),
        "whole": lambda **kwargs: bcast.broadcast(data, data.shape, **kwargs),
    }


SIGNALLING = {  # NaN whose quiet bit is clear, of each size, and some that are quiet
    "f2": [0x7C01, 0xFC01, 0x7D55, 0x7DFF, 0x7E00, 0xFE01],
    "f4": [0x7F800001, 0xFF800001, 0x7FA00000, 0x7F802000, 0xFFBFFFFF, 0x7FC00000],
    "f8": [0x7FF0000000000001, 0xFFF4000000000000, 0x7FF0040000000000, 0xFFF0000020000000, 0x7FF8000000000000],
}
OF_HALVES = [("f2", "?"), ("f2", "f4"), ("f2", "f8"), ("f2", "c8"), ("f2", "c16"), ("f4", "f2"), ("f8", "f2")]


@pytest.mark.parametrize("leaf", runtime.TARGETS)
@pytest.mark.parametrize(("own", "dtype"), OF_HALVES)
def test_nan_that_signals_beside_halves(own, dtype, leaf):
    """Its bits and its warnings are NumPy's: alone, among other items, and next to what is in error."""
    rng = np.random.default_rng(8)
    for size, bits in itertools.product((1, 9, 255, 258, 3000, 70_000), SIGNALLING[own]):
        items = rng.standard_normal(size).astype(own)
        items.view(f"u{items.itemsize}")[rng.integers(0, size, 3)] = bits
        far = items.copy()
        far[size // 2] = 6e4 if own == "f2" else 1e30
        for data in items, far, np.full_like(items, items[-1]):
            with np.errstate(all="warn"):
                right, told = outcome(data.astype, dtype)
                with written(leaf, "ordinary"):
                    results = [outcome(bcast.chain, data, dtype=dtype, casting="unsafe")]
                    results += [outcome(bcast.broadcast_to, data, (size,), dtype=dtype, casting="unsafe")]
            for result, found in results:
                assert found == told
                assert result.tobytes() == right.tobytes()


@pytest.mark.parametrize(("items", "dtype", "kinds"), BAD.values(), ids=BAD)
@pytest.mark.usefixtures("piece")
def test_one_warning_of_each_kind(items, dtype, kinds):
    for name, call in bad_calls(items).items():
        results = []
        for options in {}, {"out": True}:
            if options:
                options["out"] = np.zeros_like(results[0])
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                results.append(call(dtype=dtype, casting="unsafe", **options))
            assert sorted(each.category.__name__ for each in caught) == kinds, name
        assert results[0].tobytes() == results[1].tobytes()


@pytest.mark.usefixtures("piece")
def test_the_warning_points_at_the_caller():
    data = np.full((8, 1, 16), 1e300)
    for out in (None, np.zeros((8, 3, 16), "f4")):
        with pytest.warns(RuntimeWarning) as caught:
            bcast.broadcast(data, (8, 3, 16), dtype="f4", out=out)
        assert [each.filename for each in caught] == [__file__]


@pytest.mark.parametrize(("items", "dtype"), [row[:2] for row in BAD.values()], ids=BAD)
@pytest.mark.usefixtures("piece")
def test_warnings_that_are_errors_do_not_change_out(items, dtype):
    for call in bad_calls(items).values():
        with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
            shape = call(dtype=dtype, casting="unsafe").shape
        with untouched(shape, dtype) as out, warnings.catch_warnings(action="error"), pytest.raises(Warning) as caught:
            call(dtype=dtype, casting="unsafe", out=out)
        if caught.type is RuntimeWarning:
            with untouched(shape, dtype) as out, np.errstate(all="raise"), pytest.raises(FloatingPointError):
                call(dtype=dtype, casting="unsafe", out=out)


@pytest.mark.parametrize("step", [1, 2, -1])
@pytest.mark.parametrize("n", [1, 511, 512, 513, 20_000, 1_100_000])  # of more than 4 MiB, only blocks are tried
@pytest.mark.parametrize(("own", "dtype", "item"), [("f4", "i4", 1e10), ("f4", "i8", 1e30), ("f8", "f4", 1e300)])
def test_an_error_in_the_last_item_does_not_change_out(own, dtype, item, n, step):
    data = np.resize(np.arange(1, 100, dtype=own), n * abs(step))[::step]
    with untouched((n,), dtype) as out, warnings.catch_warnings(action="error"):
        assert (bcast.broadcast(data, (n,), casting="unsafe", out=np.empty(n, dtype)) == data).all()
        data[-1] = item
        for state in "warn", "raise":
            with np.errstate(all=state), pytest.raises((RuntimeWarning, FloatingPointError)):
                bcast.broadcast(data, (n,), casting="unsafe", out=out)


@pytest.mark.usefixtures("piece")
def test_the_callers_error_state_is_kept():
    data = np.full((8, 1, 16), 1e300)
    told = []
    for out in (None, np.zeros((8, 3, 16), "f4")):
        with np.errstate(over="call", call=lambda *what: told.append(what)):
            bcast.broadcast(data, (8, 3, 16), dtype="f4", out=out)
            assert np.geterr()["over"] == "call"
    assert told == [("overflow", 2)] * 2  # NPY_FPE_OVERFLOW
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


# `out`.


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


# What is refused.

REFUSED = {
    "no casting": ({"casting": "any"}, ValueError, "casting"),
    "casting of no kind": ({"casting": None}, TypeError, "casting"),
    "no dtype": ({"dtype": "number"}, TypeError, "dtype"),
    "a shape of its own": ({"dtype": ("f4", (2,))}, TypeError, "dtype"),
    "a narrower kind": ({"dtype": "u8"}, TypeError, "dtype"),
    "a narrower dtype": ({"dtype": "i4", "casting": "safe"}, TypeError, "dtype"),
    "no date": ({"dtype": "M8[D]", "casting": "equiv"}, TypeError, "dtype"),
}


@pytest.mark.parametrize("call", COPIES.values(), ids=COPIES)
def test_refused_arguments(call):
    for arguments, error, argument in REFUSED.values():
        refuse(partial(call, **arguments), error, argument)
        with untouched((2, 3), int) as out:
            refuse(partial(call, **arguments, out=out), error, argument)
    with untouched((2, 3), "f4") as out:
        refuse(partial(call, dtype="f8", out=out), TypeError, "out")
    with untouched((2, 3), "u1") as out:
        refuse(partial(call, casting="safe", out=out), TypeError, "out")
    with untouched((3, 2), "f8") as out:
        refuse(partial(call, out=out), ValueError, "out")


# Memory, threads, any way of writing.


def test_no_array_of_the_datas_size():
    data = np.ones((64, 1 << 16), "u1")  # 4 MiB, as floats 16
    out = np.zeros((64, 1 << 16, 2), "f4")
    transposed = np.ones((2048, 2048), "u1").T
    for most, call in (
        (9 << 20, lambda: bcast.broadcast(data[..., None], out.shape, out=out)),
        (9 << 20, lambda: bcast.repeat(data, 2, 1, out=out.reshape(64, -1))),
        # By counts, the data is converted at once, but not what it is repeated to.
        (21 << 20, lambda: bcast.repeat(data, np.full(1 << 16, 2), 1, out=out.reshape(64, -1))),
        (21 << 20, lambda: bcast.repeat(data.reshape(-1), np.full(1 << 22, 2, "u1"), out=out.reshape(-1))),
    ):
        assert peak_of(call) < most
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
    tracemalloc.start()
    call()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


@pytest.mark.parametrize("own", ["?", "u1", "i2", "f4", "f8"])
def test_nothing_outside_is_written(rooms, own, piece):
    rng = np.random.default_rng(piece)
    data_room, out_room, flush = rooms
    for dtype in ("f4", "f2", "c16"):
        for _ in range(30):
            fill(rooms, rng)
            source, shape = random_shapes(rng, 16)
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


@for_all(st.data(), st.sampled_from(WAYS), st.sampled_from([1, 16, 100, 1 << 20]))
def test_any_conversion_as_numpy(data_strategy, way, limit):
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


# Items that are repeated 0 times: they decide nothing, and give rise to nothing.

DROPPED = {
    "objects": (np.array(["a", "bbbbbb"], object), "U"),
    "dates": (np.array(["2020-01-01", "2020-01-01T00:00:01"]), "M8"),
    "numbers": (np.array(["1", "zz"]), "i4"),
    "floats": (np.array([1.5, 1e300]), "f4"),
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
def test_out_does_not_change_if_a_warning_cannot_be_shown(monkeypatch):
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


def test_bytes_that_are_no_dates_are_refused():
    """NumPy 2.4 ends the process from some 500 items on."""
    words = np.full(3000, b"2020-01-01")
    words[-1] = b"never"
    for data in (words, words.astype("U"), words.astype("U").astype(np.dtypes.StringDType()), words.astype(object)):
        for call in (
            partial(bcast.broadcast, data, (2, 3000)),
            partial(bcast.broadcast, data, (3000,)),
            partial(bcast.repeat, data, np.full(3000, 2)),
        ):
            for dtype in ("M8[s]", "M8[D]", "m8[s]"):
                with pytest.raises((ValueError, TypeError)):
                    call(dtype=dtype, casting="unsafe")
    expected = words[:-1].astype("U").astype("M8[s]")
    np.testing.assert_array_equal(bcast.broadcast(words[:-1], (2999,), dtype="M8[s]", casting="unsafe"), expected)


LARGE = np.arange(6000.0)
LARGE[-1] = 1e300


@pytest.mark.parametrize("limit", [100, 1500, 1 << 20])
@pytest.mark.parametrize("told", ["warned", "called"])
@pytest.mark.parametrize("what", ["out", "counts"])
@pytest.mark.usefixtures("small_pieces")
def test_a_callback_that_shrinks_arrays(what, told, limit):
    converted.set_limits(limit)
    for call in (bcast.repeat, lambda data, _, out: bcast.broadcast(data, (2, 6000), out=out)):
        counts, out = np.full(6000, 2), np.zeros((2, 6000) if call is not bcast.repeat else 12_000, "f4")
        if what == "counts" and call is not bcast.repeat:
            continue

        def shrink(*_, array=out if what == "out" else counts, **__):
            array.resize(1, refcheck=False)

        with warnings.catch_warnings(), np.errstate(over="call" if told == "called" else "warn", call=shrink):
            warnings.simplefilter("always")
            warnings.showwarning = shrink
            with pytest.raises(ValueError, match="keep"):
                call(LARGE, counts, out=out)
