"""`max`, `min`, `any` and `all`: NumPy's values, dtypes, orders of axes and errors, for all dtypes and layouts."""

import itertools

import numpy as np
import pytest
from _arithmetic import with_plain_bools
from _ways import SUMS, summed
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import bcast

NAMES = ("max", "min", "any", "all")
DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", ">f4", ">i2", ">u8"]
DTYPES += ["bfloat16", "float8_e4m3fn", "g", "c8", "O", "m8[s]"]  # from the second one on, NumPy's own
SHAPES = {
    "rows of 2": ((400, 2), 1), "rows of 3": ((301, 3), -1), "rows of 4": ((99, 4), 1), "rows of 5": ((77, 5), 1),
    "rows of 17": ((50, 17), 1), "rows of 33": ((20, 33), 1), "rows of 150": ((9, 150), 1), "rows": ((3, 5000), 1),
    "few columns": ((5000, 3), 0), "columns": ((700, 90), 0), "two rows": ((2, 5000), 0), "3 rows": ((3, 500), 0),
    "7 rows": ((7, 130), 0), "all": ((40, 300), None), "a picture": ((60, 90, 3), (0, 1)),
    "its channels": ((60, 90, 3), 2), "a batch": ((4, 3, 20, 21), (0, 2, 3)), "pools": ((9, 2, 8, 2, 4), (1, 3)),
    "outer and middle": ((5, 6, 7, 8), (2, 0)), "turns of 2": ((30, 40, 2), 1), "turns of 3": ((30, 40, 3), 1),
    "turns of 4": ((30, 9, 4), 1), "triangles": ((70, 3, 3), 1), "one axis": ((9,), 0), "nothing reduced": ((3, 4), ()),
    "axes of length 1": ((1, 4, 1), (0, 2)), "no items, but results": ((0, 4), 1), "no axes": ((), None),
}  # fmt: skip


class Subclass(np.ndarray):
    pass


def dtype_of(name):
    if name.startswith(("bfloat", "float8")):
        return np.dtype(getattr(pytest.importorskip("ml_dtypes"), name))
    return np.dtype(name)


def random_items(rng, dtype, shape):
    """Items of any value; of floats, seldom NaN of either sign, infinities and zeros of both signs."""
    count = int(np.prod(shape))
    if dtype.kind == "b":
        return rng.integers(0, 256, count, np.uint8).astype(np.uint8).view(bool).reshape(shape)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        own = dtype.newbyteorder("=")
        return rng.integers(limits.min, limits.max, count, own, endpoint=True).astype(dtype).reshape(shape)
    if dtype.kind == "m":
        return rng.integers(-9, 9, count).astype(dtype).reshape(shape)
    items = rng.normal(size=count).astype("f4")
    if dtype.kind != "O" and count and rng.random() < 0.5:
        special = rng.integers(0, count, max(1, count // 50))
        items[special] = rng.choice([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0], special.size)
    return items.astype(dtype).reshape(shape)


def plain(array):
    """An array whose bools have bytes of 0 and 1: NumPy returns other bytes unchanged."""
    return with_plain_bools(array) if isinstance(array, np.ndarray) else array


def told(function, *args, **options):
    with np.errstate(all="ignore"):
        try:
            return function(*args, **options)
        except Exception as error:
            return type(error)


def check(name, data, axis, **options):
    right = told(getattr(np, name), plain(data), axis, **options)
    found = told(getattr(bcast, name), data, axis, **options)
    what = f"{name} of {data.dtype} {data.shape} {data.strides} along {axis}"
    assert type(found) is type(right), what
    if not isinstance(right, (np.ndarray, np.generic)):
        assert found == right, what
        return
    assert found.dtype == right.dtype, what
    if isinstance(right, np.ndarray):
        steps = [[step for step, n in zip(each.strides, each.shape, strict=True) if n > 1] for each in (found, right)]
        assert steps[0] == steps[1], what
    assert same(found, right), what


def same(found, right):
    """Whether values are equal, and NaN where they are to be."""
    found, right = plain(np.asarray(found)), np.asarray(right)
    if right.dtype.kind == "V":  # of other packages
        with np.errstate(invalid="ignore"):
            found, right = found.astype("f8"), right.astype("f8")
    return np.array_equal(found, right, equal_nan=right.dtype.kind in "fc")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "axis"), SHAPES.values(), ids=SHAPES)
def test_numpys_values(shape, axis, dtype):
    rng = np.random.default_rng(len(shape))
    for (way, name), _ in zip(itertools.product(SUMS, NAMES), range(100), strict=False):
        data = random_items(rng, dtype_of(dtype), shape)
        with summed(*way):
            check(name, data, axis)
            check(name, data.astype(data.dtype)[::-1] if data.ndim else data, axis, keepdims=True)
            check(name, np.zeros(shape, data.dtype), axis)
            check(name, np.ones(shape, data.dtype), axis)


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "f2", "f4", "f8", "bfloat16", "i8"])
@pytest.mark.parametrize("name", NAMES)
def test_one_item_decides(name, dtype):
    """The item may be at any position of a run or of rows, of any length."""
    dtype = dtype_of(dtype)
    common, other = {"max": (0, 1), "min": (1, 0), "any": (0, 1), "all": (1, 0)}[name]
    for length in (*range(1, 70), 127, 128, 129, 255, 257, 300):
        places = sorted({0, 1, length // 2, length - 1} & set(range(length)))
        for place in places:
            rows = np.full((3, length), common, dtype)
            rows[1, place] = other
            right = np.full(3, common, dtype if name in ("max", "min") else bool)
            right[1] = other
            assert getattr(bcast, name)(rows, 1).tolist() == right.tolist(), (length, place)
            assert getattr(bcast, name)(rows.T.copy(), 0).tolist() == right.tolist(), (length, place)
            assert getattr(bcast, name)(rows).item() == right[1].item(), (length, place)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_rows_of_less_than_a_vector(name, dtype):
    rng = np.random.default_rng(0)
    for width, count in itertools.product(range(1, 34), (2, 3, 9, 40)):
        data = random_items(rng, dtype_of(dtype), (5, count, width))
        check(name, data, 1)
        check(name, data[:, ::-1], 1)


@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i2", "f2", "bfloat16", "u4", "f4"])
@pytest.mark.parametrize("nbytes", [8, 16])
def test_dense_rows_that_fill_half_a_vector_or_a_whole_one(nbytes, dtype):
    """Rows are combined in blocks of 8 to 32; the remaining ones, one by one."""
    rng = np.random.default_rng(nbytes)
    dtype = dtype_of(dtype)
    for way, count in itertools.product(SUMS, (1, 7, 8, 31, 32, 33, 64, 259)):
        data = random_items(rng, dtype, (count, nbytes // dtype.itemsize))
        with summed(*way):
            for name in NAMES:
                check(name, data, 1)
                check(name, np.stack([data, data[::-1]]), (0, 2))
            if dtype.kind != "V":
                low, high = bcast.minmax(data, 1)
                assert same(low, plain(data).min(1))
                assert same(high, plain(data).max(1))


@pytest.mark.parametrize("dtype", ["f2", "bfloat16", "f4", "f8"])
@pytest.mark.parametrize("name", ["max", "min"])
def test_every_pair_of_floats(name, dtype):
    """Infinities, zeros, subnormal numbers, and NaN of either sign and any payload, at both places."""
    dtype = dtype_of(dtype)
    size = 8 * dtype.itemsize
    fraction = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}[dtype.name]
    infinity = (1 << (size - 1)) - (1 << fraction)
    sizes = [0, 1, 2, 1 << fraction, infinity - 1, infinity, infinity + 1, infinity | 1 << (fraction - 1)]
    sizes += [(1 << (size - 1)) - 1, infinity // 2]
    bits = [each | sign << (size - 1) for each in sizes for sign in (0, 1)]
    items = np.array(bits, f"u{dtype.itemsize}").view(dtype)
    pairs = np.stack([np.repeat(items, len(items)), np.tile(items, len(items))], 1)
    for way in SUMS:
        with summed(*way):
            check(name, pairs, 1)
            check(name, pairs.T.copy(), 0)
            check(name, pairs, None)


@given(st.data())
def test_layouts(data):
    """Transposed, flipped, with gaps, repeated by a stride of 0, in the other byte order; any axes."""
    dtype = np.dtype(data.draw(st.sampled_from(["?", "i2", "u1", "f4", ">f8", "f2"])))
    shape = data.draw(hnp.array_shapes(max_dims=5, max_side=9))
    array = random_items(np.random.default_rng(data.draw(st.integers(0, 99))), dtype, shape)
    array = array.transpose(data.draw(st.permutations(range(array.ndim))))
    steps = [data.draw(st.sampled_from((1, 1, -1, 2, -3))) for _ in shape]
    array = array[tuple(slice(None, None, step) for step in steps)]
    if data.draw(st.booleans()):
        array = np.broadcast_to(array, (data.draw(st.integers(1, 4)), *array.shape))
    axes = data.draw(st.lists(st.integers(0, array.ndim - 1), unique=True).map(tuple) | st.none())
    options = data.draw(st.sampled_from(({}, {"keepdims": True}, {"keepdims": False})))
    with summed(*data.draw(st.sampled_from(SUMS))):
        for name in NAMES:
            check(name, array, axes, **options)


@pytest.mark.parametrize("axes", [(0, 31), (32,), (63, 0), (31, 33, 62), (1, 32, 63)], ids=str)
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("name", ["sum", "mean", "var", *NAMES])
def test_axes_up_to_the_last_of_many(name, keepdims, axes):
    shape = [1] * 64
    for at, length in ((0, 2), (31, 3), (32, 2), (63, 5)):
        shape[at] = length
    data = np.random.default_rng(len(axes)).integers(-2, 3, shape).astype("f4")
    right = getattr(np, name)(data, axis=axes, keepdims=keepdims)
    np.testing.assert_allclose(getattr(bcast, name)(data, axis=axes, keepdims=keepdims), right, 1e-6, strict=True)


@pytest.mark.parametrize("name", NAMES)
def test_into_out(name):
    rng = np.random.default_rng(0)
    for dtype in "u1", "f4", "?", "i8":
        data = random_items(rng, np.dtype(dtype), (20, 30))
        for axis in 0, 1, (0, 1):
            right = np.asarray(getattr(np, name)(plain(data), axis))
            for out in np.zeros(right.shape, right.dtype), np.zeros((*right.shape, 2), right.dtype)[..., 0]:
                assert getattr(bcast, name)(data, axis, out=out) is out
                assert same(out, right)
            wide = np.zeros(right.shape, "c16")  # NumPy's own
            assert getattr(bcast, name)(data, axis, out=wide) is wide
            assert same(wide, right.astype(wide.dtype))


@pytest.mark.parametrize("to", ["bfloat16", "float8_e5m2", "f4", "i8", "?"])
@pytest.mark.parametrize("name", NAMES)
def test_bools_of_any_byte_into_out(name, to):
    mask = np.array([0, 255, 2, 1, 0, 7], np.uint8).view(bool).reshape(2, 3)
    right = np.asarray(getattr(np, name)(plain(mask), 0)).astype(dtype_of(to))
    out = np.zeros(3, dtype_of(to))
    getattr(bcast, name)(mask, 0, out=out)
    assert same(out, right)


@pytest.mark.parametrize("name", ["any", "all"])
@pytest.mark.parametrize("dtype", ["?", "u1", "f8", "g", "c16", "m8[s]", "M8[s]", "U3", "S2", "O", "T"])
def test_truths_into_objects(name, dtype):
    """NumPy's reductions write past a buffer there: ours are made beside, of all dtypes."""
    for shape in (4, 32), (300, 3):
        data = np.random.default_rng(0).integers(0, 2, shape).astype(dtype)
        for axis, keepdims in itertools.product((0, 1, None, (0, 1)), (False, True)):
            right = np.asarray(getattr(np, name)(data, axis, keepdims=keepdims))
            for to in "O", "T":
                out = np.full(right.shape, "x", to)
                assert getattr(bcast, name)(data, axis, out, keepdims) is out
                assert out.tolist() == right.astype(to).tolist()
            wrong = np.full((5, 5, 5), "x", "O")
            with pytest.raises(ValueError, match=r"^`out` expected shape"):
                getattr(bcast, name)(data, axis, wrong, keepdims)
            assert (wrong == "x").all()


@pytest.mark.parametrize("name", ["any", "all"])
def test_any_and_all_find_items_at_any_position(name):
    """Large arrays are searched in parts, until one decides."""
    for dtype in "?", "f4", "i8":
        for size in 20_000, 300_001:
            for place in 0, 5, 1023, 1024, 4096, 8191, 8192, size // 2, size - 2, size - 1:
                data = np.full(size, name == "all", dtype)
                assert getattr(bcast, name)(data) == (name == "all")
                data[place] = name == "any"
                found = getattr(bcast, name)(data)
                assert type(found) is np.bool
                assert found == (name == "any"), (dtype, size, place)
                assert getattr(bcast, name)(data.reshape(1, -1, 1), keepdims=True).tolist() == [[[name == "any"]]]


@pytest.mark.parametrize("name", ["any", "all", "max", "min"])
def test_rows_that_are_decided_at_any_place(name):
    """Long rows are searched in parts, until all of them are decided."""
    seeks = name in ("any", "max")
    rng = np.random.default_rng(2)
    for size in 16_384, 40_000:
        for places in (0, 0, 0), (8191, 8192, 5), (size - 1, 0, 20_000 % size), (None, 3, size - 1), (None, None, None):
            data = np.full((3, 2, size // 2), not seeks)
            for row, place in zip(data.reshape(3, size), places, strict=True):
                if place is not None:
                    row[place] = seeks
                    row[place + 1 :] = rng.random(size - place - 1) < 0.5
            right = [(place is not None) == seeks for place in places]
            assert getattr(bcast, name)(data, (1, 2)).tolist() == right
            assert getattr(bcast, name)(data[:, :, None], (-1, 1, 2), keepdims=True).ravel().tolist() == right
            assert getattr(bcast, name)(data.transpose(1, 2, 0), (0, 1)).tolist() == right


@pytest.mark.parametrize("name", ["any", "all", "max", "min", "minmax"])
def test_rows_within_others_that_are_decided_at_any_place(name):
    """Axes outside of long rows may be reduced, too."""
    for shape, axis in (
        ((3, 2, 40_000), (0, 2)), ((3, 2, 150, 200), (0, 2, 3)), ((2, 1, 3, 1, 40_000, 1), (0, 4)), ((2, 20_000), None),
        ((1, 1_300_000), 1), ((2, 3, 40_000), 2),
    ):  # fmt: skip
        for place in None, 0, 9000, 17_000, 39_999, 79_999, -1:
            for common in False, True:
                data = np.full(shape, common)
                if place is not None and place < data.size:
                    data.reshape(-1)[place] = not common
                for keepdims in False, True:
                    names = ("min", "max") if name == "minmax" else (name,)
                    found = getattr(bcast, name)(data, axis, keepdims=keepdims)
                    for each, numpys in zip(found if name == "minmax" else (found,), names, strict=True):
                        right = getattr(np, numpys)(data, axis, keepdims=keepdims)
                        assert type(each) is type(right)
                        assert np.array_equal(each, right), (shape, axis, place, common)
                        assert np.shape(each) == np.shape(right)


@pytest.mark.parametrize("name", NAMES)
def test_an_out_that_overlaps(name):
    for dtype in ("?",) if name in ("any", "all") else ("?", "f4", "u1"):
        for axis in 0, 1:
            data = random_items(np.random.default_rng(axis), np.dtype(dtype), (30, 30))
            right = getattr(np, name)(plain(data), axis)
            out = data[3] if axis else data[:, 3]
            getattr(bcast, name)(data, axis, out=out)
            assert same(out, right)


@pytest.mark.parametrize("name", NAMES)
def test_refusals(name):
    function = getattr(bcast, name)
    data = np.ones((3, 4), "f4" if name in ("max", "min") else "?")
    with pytest.raises(np.exceptions.AxisError):
        function(data, 2)
    with pytest.raises(ValueError, match="axis"):
        function(data, (0, 0))
    for out in np.zeros(4, data.dtype), np.zeros((1, 3), data.dtype), np.broadcast_to(data[0, 0], 3):
        with pytest.raises(ValueError, match=r"^`out` expected "):
            function(data, 1, out=out)
    out = np.zeros(3, data.dtype)
    out.flags.writeable = False
    with pytest.raises(ValueError, match=r"^`out` expected a writeable array"):
        function(data, 1, out=out)
    if name in ("max", "min"):
        with pytest.raises(ValueError, match="no identity"):
            function(np.zeros((0, 3)), 0)


@pytest.mark.parametrize("name", NAMES)
def test_calls_that_numpy_handles(name):
    """Masks, `initial`, subclasses, lists, scalars."""
    data = np.arange(12.0).reshape(3, 4)
    numpys, ours = getattr(np, name), getattr(bcast, name)
    masked = np.ma.array(data, mask=data < 5)
    assert type(ours(masked, 1)) is type(numpys(masked, 1))
    assert np.array_equal(ours(masked, 1), numpys(masked, 1))
    assert type(ours(data.view(Subclass), 1)) is Subclass
    assert ours(data.tolist()) == numpys(data.tolist())
    assert ours(3) == numpys(3)
    assert ours(np.array(5), axis=0) == numpys(np.array(5), axis=0)
    assert ours(np.array(5), -1) == numpys(np.array(5), -1)
    mask = data > 2
    options = {"initial": 5} if name in ("max", "min") else {}
    assert np.array_equal(ours(data, 1, where=mask, **options), numpys(data, 1, where=mask, **options))
    assert np.array_equal(ours(data, 1, where=True), numpys(data, 1))
    assert np.array_equal(ours(data, 1, keepdims=np.True_), numpys(data, 1, keepdims=True))
    with pytest.raises(TypeError):
        ours(data, keepdims="x")


def test_options_that_only_numpy_supports():
    ones = np.ones((3, 4))
    for name in ("max", "min", "nanmax", "nanmin"):
        with pytest.raises(ValueError, match="identity"):
            getattr(bcast, name)(ones, where=np.True_)
        with bcast.patched_numpy(name), pytest.raises(ValueError, match="identity"):
            getattr(np, name)(ones, where=np.True_)
    for name in ("var", "std", "nanvar", "nanstd"):
        for ddof in (np.array([1]), np.array([1, 2, 0]))[: 2 if name.startswith("nan") else 1]:
            data = np.random.default_rng(0).random((3, 4))
            assert np.array_equal(getattr(bcast, name)(data, 1, ddof=ddof), getattr(np, name)(data, 1, ddof=ddof))
    for name in ("mean", "var", "std"):
        with pytest.raises(TypeError, match="initial"):
            getattr(bcast, name)(ones, initial=np._NoValue)
    out, right = np.zeros(2, np.longdouble), np.zeros(2, np.longdouble)
    data = np.array([[0, 0, 1], [1, 0, 1]])
    assert np.array_equal(bcast.mean(data, 1, out=out), np.mean(data, 1, out=right))


@pytest.mark.parametrize("name", ["max", "min"])
def test_results_of_halves_with_nan_keep_the_order_of_axes(name):
    data = np.random.default_rng(1).standard_normal((2, 4, 6)).astype(np.float16)
    data[1, 2, 3] = np.nan
    for order in itertools.permutations(range(3)):
        for axis in range(3):
            check(name, data.transpose(order), (axis,))
