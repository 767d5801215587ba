"""Every dtype of NumPy and of related packages: copies keep the bytes, and references are counted."""

import math
import sys

import numpy as np
import pytest
from test_ops import LAYOUTS, Arena

import bcast

NESTED = np.dtype([("id", "i2"), ("point", [("x", "f8"), ("y", "f4")]), ("name", "U3")], align=True)

DTYPES = {
    **{code: code for code in ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16")},
    **{f"longs_{code}": code for code in ("l", "L", "q", "Q")},
    "longdouble": np.longdouble,
    "clongdouble": np.clongdouble,
    **{f"swapped_{code}": np.dtype(code).newbyteorder() for code in ("i2", "i8", "f4", "c16", "M8[ns]", "U3")},
    "datetime": "M8[ns]",
    "datetime_of_25_s": "M8[25s]",
    "timedelta": "m8[D]",
    "timedelta_generic": "m8",
    **{f"S{size}": f"S{size}" for size in (1, 3, 16, 100)},
    **{f"U{size}": f"U{size}" for size in (1, 2, 7)},
    **{f"V{size}": f"V{size}" for size in (*range(1, 34), 48, 64, 100, 1000)},
    "structure": [("a", "i4"), ("b", "f8")],
    "structure_padded": np.dtype([("a", "u1"), ("b", "f8"), ("c", "u1")], align=True),
    "structure_with_gaps": {"names": ["a"], "formats": ["i2"], "offsets": [3], "itemsize": 11},
    "structure_overlapping": {"names": ["a", "b"], "formats": ["i4", "u1"], "offsets": [0, 2], "itemsize": 4},
    "structure_nested": NESTED,
    "structure_swapped": [("a", ">i4"), ("b", "<f8")],
    "structure_of_arrays": [("matrix", "f4", (2, 3)), ("row", "i1", 5)],
    "structure_of_none": [],
    "structure_with_title": [(("title", "a"), "i4")],
    "metadata": np.dtype("i4", metadata={"unit": "m"}),
}

EXTRA = ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz", "int4", "uint4"]

SHAPES = {  # data and target
    "rows": ((3,), (5, 3)), "columns": ((3, 1), (3, 5)), "scalar": ((), (7,)), "middle": ((2, 1, 3), (2, 4, 3)),
    "alternating": ((1, 3, 1, 2), (2, 3, 2, 2)), "copy": ((2, 3), (2, 3)), "empty": ((0,), (2, 0)),
}  # fmt: skip


def random_items(shape, dtype):
    """Random bytes: bools other than 0 and 1, NaNs of any payload, any padding."""
    size = np.dtype(dtype).itemsize * math.prod(shape)
    return np.random.default_rng(size).integers(0, 256, size, np.uint8).view(dtype).reshape(shape)


def raw(array):
    """The same items as plain bytes, which NumPy copies completely."""
    return array.view(np.dtype((np.void, array.dtype.itemsize)))


def check(dtype, shape, target):
    """Bytes, dtype and byte order, into fresh memory and contiguous and other outputs."""
    data = random_items(shape, dtype)
    data.flags.writeable = False
    expected = np.broadcast_to(raw(data), target).tobytes()
    result = bcast.broadcast(data, target)
    assert result.dtype == data.dtype
    assert result.dtype.byteorder == data.dtype.byteorder
    assert result.dtype.metadata == data.dtype.metadata
    assert result.shape == target
    assert raw(result).tobytes() == expected
    for layout in LAYOUTS:
        arena = Arena(layout, target, data.dtype)
        bcast.broadcast(data, target, out=arena.array)
        assert raw(arena.array).tobytes() == expected, layout
        assert arena.untouched_outside()


@pytest.mark.parametrize("name", [*[name for name, dtype in DTYPES.items() if np.dtype(dtype).itemsize], *EXTRA])
def test_items_of_every_dtype_are_copied_as_bytes(name):
    dtype = getattr(pytest.importorskip("ml_dtypes"), name) if name in EXTRA else DTYPES[name]
    for shape, target in SHAPES.values():
        check(np.dtype(dtype), shape, target)


# Items of no bytes, which NumPy likes to widen.

EMPTY_ITEMS = ["S0", "U0", "V0", []]


def empty_items(shape, dtype):
    """A contiguous array; all other ways to make one end with items of length 1."""
    return np.ndarray(shape, dtype)


def field_of_empty_items(shape, dtype):
    return np.zeros(shape, [("number", "i4"), ("items", dtype)])["items"]


@pytest.mark.parametrize("make", [empty_items, field_of_empty_items])
@pytest.mark.parametrize("dtype", EMPTY_ITEMS, ids=str)
def test_items_of_no_bytes(dtype, make):
    for shape, target in SHAPES.values():
        data = make(shape, dtype)
        assert data.dtype.itemsize == 0
        for result in (
            bcast.broadcast(data, target),
            bcast.broadcast_to(data, target),
            bcast.broadcast_arrays(data, np.empty(target))[0],
        ):
            assert result.dtype == data.dtype
            assert result.dtype.itemsize == 0
            assert result.shape == target
            assert result.flags.owndata
            assert result.flags.writeable
        out = make(target, dtype)
        assert bcast.broadcast(data, target, out=out) is out
        repeated = bcast.repeat(data, np.full(data.size, 2))
        assert (repeated.dtype, repeated.shape) == (data.dtype, (2 * data.size,))
        assert bcast.repeat(data, np.full(data.size, 2), out=repeated) is repeated


@pytest.mark.parametrize("kind", ["S", "U"])
def test_items_of_no_bytes_are_no_items_of_one(kind):
    out = np.full((2, 3), "a", f"{kind}1")
    bcast.broadcast(empty_items(3, f"{kind}0"), (2, 3), out=out)
    assert (out == np.zeros((), out.dtype)).all()
    message = rf"^`out` expected `dtype` .{kind}1, got .{kind}0$"
    with pytest.raises(TypeError, match=message):
        bcast.broadcast(np.empty(3, f"{kind}1"), (2, 3), dtype=f"{kind}1", out=empty_items((2, 3), f"{kind}0"))


# References.

OBJECT_DTYPES = {
    "object": (np.dtype("O"), lambda item: item),
    "structure": (np.dtype([("number", "i1"), ("item", "O")]), lambda item: (7, item)),
    "nested": (np.dtype([("inner", [("item", "O"), ("x", "f8")])], align=True), lambda item: ((item, 0.5),)),
}


def full(shape, dtype, item):
    array = np.empty(shape, dtype)
    array[...] = np.array([item], dtype)[0] if dtype.names else item
    return array


@pytest.fixture(params=OBJECT_DTYPES.values(), ids=OBJECT_DTYPES)
def kind(request):
    return request.param


def test_references_of_fresh_results(kind):
    dtype, wrap = kind
    item = object()
    for shape, target in SHAPES.values():
        data = full(shape, dtype, wrap(item))
        before = sys.getrefcount(item)
        result = bcast.broadcast(data, target)
        assert result.tolist() == np.broadcast_to(data, target).tolist()
        assert sys.getrefcount(item) == before + math.prod(target)
        del result
        assert sys.getrefcount(item) == before


@pytest.mark.parametrize("step", [1, 2, -1])
def test_references_of_out(kind, step):
    dtype, wrap = kind
    new, old = object(), object()
    data = full((4, 1), dtype, wrap(new))
    out = full((4, 10), dtype, wrap(old))
    before, before_old = sys.getrefcount(new), sys.getrefcount(old)
    part = out[:, ::step]
    bcast.broadcast(data, part.shape, out=part)
    assert part.tolist() == [[wrap(new)] * part.shape[1]] * 4
    assert sys.getrefcount(new) == before + part.size
    assert sys.getrefcount(old) == before_old - part.size
    bcast.broadcast(part[:, :1], part.shape, out=part)  # over itself
    assert sys.getrefcount(new) == before + part.size
    del out, part
    assert sys.getrefcount(new) == before
    assert sys.getrefcount(old) == before_old - 40


@pytest.mark.parametrize(
    ("target", "change", "error"),
    [
        ((3, 10), lambda out: out, ValueError),
        ((4, 10), lambda out: out[:3], ValueError),
        ((4, 10), lambda out: np.broadcast_to(out, (4, 10)), ValueError),
        ((4, 10), lambda _: np.zeros((4, 10)), TypeError),
        ((4, 1 << 54), lambda _: None, MemoryError),
        ((4, 1 << 62), lambda _: None, ValueError),
    ],
    ids=["misfit", "shape", "read_only", "dtype", "memory", "size"],
)
def test_references_after_errors(kind, target, change, error):
    dtype, wrap = kind
    new, old = object(), object()
    data = full((4, 1), dtype, wrap(new))
    out = full((4, 10), dtype, wrap(old))
    before, before_old = sys.getrefcount(new), sys.getrefcount(old)
    for _ in range(3):
        with pytest.raises(error):
            bcast.broadcast(data, target, out=change(out))
    assert sys.getrefcount(new) == before
    assert sys.getrefcount(old) == before_old


STRINGS = ["", "short", "fifteen letters", "in the buffer " * 3, "long " * 100, "ß→字"]


@pytest.mark.parametrize("arguments", [{}, {"na_object": None}, {"na_object": np.nan}, {"coerce": False}], ids=str)
@pytest.mark.parametrize("sparse", [False, True], ids=["contiguous", "sparse"])
def test_strings_of_any_length(arguments, sparse):
    dtype = np.dtypes.StringDType(**arguments)
    missing = [None] if arguments.get("na_object", 0) is None else []
    data = np.array(STRINGS + missing, dtype)
    expected = [STRINGS + missing] * 4
    count = data.size
    fresh = bcast.broadcast(data, (4, count))
    assert fresh.dtype == dtype
    assert fresh.flags.owndata
    out = np.full((4, 2 * count), "what was here before, and longer", dtype)[:, :: 2 if sparse else 1][:, :count]
    assert bcast.broadcast(data, (4, count), out=out) is out
    columns = bcast.broadcast(data[:, None], (count, 3))
    data[...] = "overwritten, and longer than before"
    del data
    assert fresh.tolist() == out.tolist() == expected
    assert columns.tolist() == [[string] * 3 for string in expected[0]]


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_strings_with_a_count_for_each(axis):
    """NumPy before 2.2 repeats them as bytes, which point to strings that are freed as often."""
    data = np.array([STRINGS[:3], STRINGS[3:]], np.dtypes.StringDType())
    counts = np.arange(data.size if axis is None else data.shape[axis])
    expected = np.repeat(data.astype(object), counts, axis)
    for _ in range(20):
        assert bcast.repeat(data, counts, axis).tolist() == expected.tolist()
        out = np.full(expected.shape, "what was here before, and longer", data.dtype)
        assert bcast.repeat(data, counts, axis, out=out).tolist() == expected.tolist()


NARROW = ["float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz", "float6_e2m3fn", "float4_e2m1fn"]


@pytest.mark.parametrize("name", NARROW)
def test_narrow_floats_are_summed_in_wider_ones(name):
    """NumPy adds up 16 of 300 ones: the next sum rounds to 16 again."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    dtype = np.dtype(getattr(ml_dtypes, name))
    grad = np.abs(np.random.default_rng(1).standard_normal((300, 7))).astype(dtype)
    wide = grad.astype(np.float64)
    expected = {(): wide.sum(), (7,): wide.sum(0), (300, 1): wide.sum(1, keepdims=True)}
    for shape, sums in expected.items():
        result = bcast.unbroadcast(grad, shape)
        np.testing.assert_array_equal(raw(result), raw(sums.astype(dtype)), strict=True)
        np.testing.assert_allclose(bcast.unbroadcast(grad, shape, dtype=np.float32), sums, rtol=1e-6)
    counts = [5, 0, 250, 45]
    sums = np.stack([part.sum(0) for part in np.split(wide, np.cumsum(counts)[:-1])])
    np.testing.assert_array_equal(raw(bcast.unrepeat(grad, counts, 0)), raw(sums.astype(dtype)), strict=True)
    np.testing.assert_array_equal(raw(bcast.unrepeat(grad, 3, 0)), raw(wide.reshape(100, 3, 7).sum(1).astype(dtype)))


@pytest.mark.parametrize("name", ["bfloat16", *NARROW])
def test_narrow_floats_are_converted_term_by_term_to_integers(name):
    dtype = getattr(pytest.importorskip("ml_dtypes"), name)
    grad = np.array([1.5, 2.5, -0.5, 3.5], dtype)
    expected = grad.astype(np.int64).sum()
    assert bcast.unbroadcast(grad, (), dtype=np.int64) == bcast.sum(grad, dtype=np.int64) == expected
    assert bcast.unrepeat(grad, [4], dtype=np.int64).tolist() == [expected]


def test_products_of_narrow_floats_are_exact():
    """Rounded to float8, the first one would be too large."""
    dtype = pytest.importorskip("ml_dtypes").float8_e4m3fn
    grad, times = np.array([256, -256, 1.125], dtype), np.array([2.25, 2.25, 1.125], dtype)
    assert bcast.unbroadcast(grad, (), times=times) == dtype(1.265625)
    assert bcast.unbroadcast(grad, (), times=times, dtype=np.float32) == 1.265625


@pytest.mark.parametrize("name", ["int4", "uint4"])
def test_narrow_integers_wrap_around(name):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    grad = np.ones(300, getattr(ml_dtypes, name))
    assert bcast.unbroadcast(grad, ()) == (300 - 304 if name == "int4" else 300 % 16)
