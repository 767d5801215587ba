"""`argmax`, `argmin`, `minmax` and `prod`: NumPy's values, dtypes and errors, for all dtypes and layouts."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from _ways import SUMS, summed
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from test_reductions import SHAPES, Subclass, dtype_of, plain, random_items, same

import bcast

DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", ">f4", ">i2", ">u8"]
DTYPES += ["bfloat16", "g", "c8", "O"]
SEARCHES = ("argmax", "argmin")
LENGTHS = (*range(1, 40), 63, 64, 65, 95, 96, 97, 127, 128, 129, 255, 256, 257, 300, 511, 513, 4100, 16_257)
# With few columns, several rows are one; of bytes, at most 126 rows are counted together.
TALL = [(5000, 3), (700, 1), (2049, 2), (40_000, 5), (9, 3), (127, 64), (128, 65), (300, 600), (20_000, 9)]


def check_position(name, data, axis, **options):
    right = getattr(np, name)(plain(data), axis, **options)
    found = getattr(bcast, name)(data, axis, **options)
    what = f"{name} of {data.dtype} {data.shape} {data.strides} along {axis}"
    assert type(found) is type(right), what
    assert found.dtype == right.dtype, what
    assert np.array_equal(found, right), what


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", SEARCHES)
def test_positions_of_all_dtypes(name, dtype):
    rng = np.random.default_rng(1)
    for (shape, _), way in zip(list(SHAPES.values()) * 2, (SUMS * 99), strict=False):
        if 0 in shape:
            continue
        data = random_items(rng, dtype_of(dtype), shape)
        with summed(*way):
            for axis in (None, *range(len(shape))):
                check_position(name, data, axis)
                check_position(name, data, axis, keepdims=True)
            if data.ndim:
                check_position(name, data[::-1], 0)
                check_position(name, data[..., ::2], -1)
                check_position(name, np.zeros_like(data), 0)
            check_position(name, data.T, None)


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "f2", "f4", "f8", "bfloat16", "u8"])
@pytest.mark.parametrize("name", SEARCHES)
def test_the_first_of_equal_items(name, dtype):
    """In runs and columns of any length, with one item or two that decide, at any place."""
    dtype = dtype_of(dtype)
    common, other = (0, 1) if name == "argmax" else (1, 0)
    for length in LENGTHS:
        for first in sorted({0, 1, length // 3, length - 2, length - 1} & set(range(length))):
            for second in {first, length // 2, length - 1} - set(range(first)):
                rows = np.full((19, length), common, dtype)
                rows[5, first] = rows[5, second] = rows[18, second] = other
                expected = [0] * 19
                expected[5], expected[18] = first, second
                found = getattr(bcast, name)(rows, 1).tolist()
                assert found == expected, (length, first, second)
                assert getattr(bcast, name)(rows.T.copy(), 0).tolist() == expected, (length, first, second)
                assert getattr(bcast, name)(rows[5]) == first


@pytest.mark.parametrize("shape", TALL, ids=str)
@pytest.mark.parametrize("dtype", ["u1", "i2", "f4", "f8"])
def test_few_columns(dtype, shape):
    rng = np.random.default_rng(shape[0])
    data = rng.integers(0, 9, shape).astype(dtype)
    single = np.full(shape, 3, dtype)
    for column in range(shape[1]):
        single[rng.integers(shape[0]), column] = 7
    for way in SUMS:
        with summed(*way):
            for each in data, single, single[::-1]:
                check_position("argmax", each, 0)
                check_position("argmin", each, 0)
                check_position("argmax", each, None)


@pytest.mark.parametrize("dtype", ["f2", "bfloat16", "f4", "f8"])
def test_nan_comes_first(dtype):
    dtype = dtype_of(dtype)
    bits = np.array([0x7FFF, 0xFFFF, 0x7FFF], "u2") if dtype.itemsize == 2 else None
    nans = bits.view(dtype) if bits is not None else np.array([np.nan, -np.nan, np.nan], dtype)
    for length in (2, 3, 4, 5, 8, 9, 17, 40, 100, 700):
        for at in range(0, length, 1 + length // 9):
            row = np.linspace(-5, 5, length).astype(dtype)
            row[at] = nans[at % 3]
            row[-1] = nans[1]
            rows = np.stack([row, row[::-1], np.zeros(length, dtype)])
            for name in SEARCHES:
                found = getattr(bcast, name)(rows, 1).tolist()
                assert found == [at, 0, 0], (name, length, at)
                assert getattr(bcast, name)(rows.T.copy(), 0).tolist() == [at, 0, 0]


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_both_zeros_are_equal(dtype):
    for length in (2, 3, 5, 8, 33, 200):
        for sign in (1, -1):
            row = np.full(length, sign * 0.0, dtype)
            row[1:] = -sign * 0.0
            assert bcast.argmax(np.stack([row] * 9), 1).tolist() == [0] * 9
            assert bcast.argmin(np.stack([row] * 9), 1).tolist() == [0] * 9


@given(st.data())
def test_positions_in_any_layout(data):
    dtype = np.dtype(data.draw(st.sampled_from(["?", "i2", "u1", "f4", ">f8", "f2", "i8"])))
    shape = data.draw(hnp.array_shapes(max_dims=4, max_side=20))
    array = np.random.default_rng(data.draw(st.integers(0, 99))).integers(-2, 3, shape).astype(dtype)
    array = array.transpose(data.draw(st.permutations(range(array.ndim))))
    array = array[tuple(slice(None, None, data.draw(st.sampled_from((1, 1, -1, 2, -3)))) for _ in shape)]
    if data.draw(st.booleans()):
        array = np.broadcast_to(array, (data.draw(st.integers(1, 4)), *array.shape))
    axis = data.draw(st.integers(-array.ndim, array.ndim - 1) | st.none())
    with summed(*data.draw(st.sampled_from(SUMS))):
        for name in SEARCHES:
            check_position(name, array, axis)


@pytest.mark.parametrize("dtype", ["?", "u1", "i1", "u2", "f2", "i4", "f4", "i8", "u8", "f8"])
def test_positions_in_long_runs(dtype):
    """The first of several extremes, and the first NaN, on both sides of each block; at steps, too."""
    rng = np.random.default_rng(9)
    size = np.dtype(dtype).itemsize
    for nbytes in 128, 129 * size, 600, 3000 * size, 6144, 16_256 - size, 16_256, 16_256 + size, 40_000, 140_000:
        length = nbytes // size
        places = {0, 1, length - 1, length - 2, length // 2, *(at // size for at in (127, 128, 4096, 16_255, 16_256))}
        for place in sorted(at for at in places if at < length):
            for special in ("extreme", "nan") if dtype[0] == "f" else ("extreme",):
                row = np.zeros(length, dtype) if dtype == "?" else rng.integers(10, 90, length).astype(dtype)
                for name, value in ("argmax", 99), ("argmin", 1):
                    one = np.ones(length, bool) if dtype == "?" and name == "argmin" else row.copy()
                    one[place] = np.nan if special == "nan" else name == "argmax" if dtype == "?" else value
                    one[min(place + length // 3, length - 1)] = one[place]
                    wide = np.zeros(2 * length, dtype)
                    wide[::2] = one
                    for data in one, wide[::2], one[::-1].copy()[::-1], np.stack([one, one]).T[:, 1]:
                        assert getattr(bcast, name)(data) == place, (name, length, place, special)


@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i2", "f2", "bfloat16", "i4", "f4", "u8", "f8"])
def test_positions_within_narrow_cells(dtype):
    """Along an axis in the middle: rows of any number of bytes; more rows than bytes count."""
    rng = np.random.default_rng(11)
    dtype = dtype_of(dtype)
    for length in (2, 3, 125, 126, 127, 128, 254, 300):
        for width in sorted({*range(1, 36), 64, 129, 600} if length < 4 else {1, 2, 3, 5, 8, 17, 33, 129}):
            data = rng.integers(0, 9, (3, length, width)).astype(dtype)
            if dtype.kind == "f":
                data[0, rng.integers(length), rng.integers(width)] = np.nan
            wide = np.zeros((3, length + 1, width + 2), dtype)  # in which rows and cells are not contiguous
            wide[:, 1:, 1:-1] = data
            last = np.zeros(data.shape, dtype)
            last[:, -1] = 1
            for way in SUMS[:: len(SUMS) - 1]:
                with summed(*way):
                    for each in data, wide[:, 1:, 1:-1], last, data[::-1, ::-1], np.stack([data, last])[:, ::2]:
                        for name in SEARCHES:
                            check_position(name, each, -2)


@pytest.mark.parametrize("name", SEARCHES)
def test_positions_into_out(name):
    data = np.random.default_rng(0).normal(size=(20, 30)).astype("f4")
    for axis in 0, 1, None:
        right = np.asarray(getattr(np, name)(data, axis))
        for out in np.zeros(right.shape, "i8"), np.zeros((*right.shape, 2), "i8")[..., 0]:
            assert getattr(bcast, name)(data, axis, out=out) is out
            assert np.array_equal(out, right)
    integers = np.arange(900).reshape(30, 30) % 7
    right = getattr(np, name)(integers, 1)
    getattr(bcast, name)(integers, 1, out=integers[3])
    assert np.array_equal(integers[3], right)


@pytest.mark.parametrize("name", SEARCHES)
def test_positions_into_integers_of_every_name(name):
    """int64 has two names in C. What cannot be cast to is refused as NumPy does; so is memory that items share."""
    data = np.random.default_rng(0).normal(size=(20, 30)).astype("f4")
    right = getattr(np, name)(data, 1)
    for letter in "bBhHiIlLqQ?fdD":
        out = np.zeros(20, letter)
        expected = told(getattr(np, name), data, 1, out=np.zeros(20, letter))
        if isinstance(expected, str):
            assert told(getattr(bcast, name), data, 1, out=out) == expected
        else:
            assert getattr(bcast, name)(data, 1, out=out) is out
            assert np.array_equal(out, right.astype(letter))
    for dtype in "l", "q", ">i8", "i4":
        shared = np.lib.stride_tricks.as_strided(np.zeros(1, dtype), (20,), (0,))
        with pytest.raises(ValueError, match=r"^`out` expected items that share no memory"):
            getattr(bcast, name)(data, 1, out=shared)


@pytest.mark.parametrize("name", SEARCHES)
def test_positions_that_are_refused_or_numpys(name):
    numpys, ours = getattr(np, name), getattr(bcast, name)
    data = np.arange(12.0).reshape(3, 4)
    for bad in (2, -3):
        with pytest.raises(np.exceptions.AxisError):
            ours(data, bad)
    with pytest.raises(ValueError, match="empty"):
        ours(np.zeros((0, 3)), 0)
    with pytest.raises(ValueError, match="empty"):
        ours([])
    for out in np.zeros(4, "i8"), np.zeros(3, "f8"), np.zeros((1, 3), "i8"):
        with pytest.raises((ValueError, TypeError)):
            ours(data, 1, out=out)
    assert ours(np.zeros((0, 3)), 1).shape == (0,)
    assert ours(data.tolist()) == numpys(data.tolist())
    assert ours(3) == numpys(3)
    assert type(ours(data.view(Subclass), 1)) is type(numpys(data.view(Subclass), 1))
    masked = np.ma.array(data, mask=data < 5)
    assert np.array_equal(ours(masked, 1), numpys(masked, 1))
    with pytest.raises(TypeError):
        ours(data, (0, 1))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "axis"), SHAPES.values(), ids=SHAPES)
def test_both_extremes(shape, axis, dtype):
    if 0 in shape:
        return
    rng = np.random.default_rng(3)
    for way in SUMS:
        data = random_items(rng, dtype_of(dtype), shape)
        with summed(*way), np.errstate(all="ignore"):
            for options in {}, {"keepdims": True}:
                low, high = bcast.minmax(data, axis, **options)
                for found, name in (low, "min"), (high, "max"):
                    right = getattr(np, name)(plain(data), axis, **options)
                    assert type(found) is type(right)
                    assert same(found, right)


def bits_of(array):
    array = np.ascontiguousarray(array)
    return array.view(f"u{array.itemsize}")


def many_nans(rng, dtype, shape):
    """Items with many special ones: NaN of either sign and any payload, and zeros of both signs."""
    items = random_items(rng, dtype, shape)
    if dtype.kind in "biu":
        return items
    bits = items.view(f"u{dtype.itemsize}")
    payloads = rng.integers(0, 30, shape).astype(bits.dtype)
    signs = rng.integers(0, 2, shape).astype(bits.dtype) << np.array(8 * dtype.itemsize - 1, bits.dtype)
    are_nan, are_zero = rng.random(shape) < rng.choice([0, 0.05, 0.3]), rng.random(shape) < 0.3
    bits[are_nan] = (bits_of(np.full(shape, np.nan, dtype)) ^ payloads ^ signs)[are_nan]
    bits[are_zero] = signs[are_zero]
    return items


@pytest.mark.parametrize("dtype", ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "bfloat16"])
def test_both_extremes_have_the_bits_of_each_alone(dtype):
    """In rows and runs of any length, with or without a partial vector at the end; cut for threads, or not."""
    rng = np.random.default_rng(5)
    dtype = dtype_of(dtype)
    for n in (*range(2, 36), 63, 65, 127, 129, 300, 1100):
        for shape, axis in (
            ((5, n), 1), ((n, 3), 1), ((n, 3), 0), ((n, 4), -1), ((3, n), 0), ((21, n), 0), ((4, n, 2), 1),
            ((2, n, 4), 1), ((n, 5, 2), 0), ((3, n, 3), (0, 2)), ((n,), None),
        ):  # fmt: skip
            data = many_nans(rng, dtype, shape)
            for array in data, data[::-1, ...], data[..., ::2] if data.shape[-1] > 2 else data:
                with summed(*SUMS[rng.integers(len(SUMS))]):
                    pair = bcast.minmax(array, axis)
                    alone = bcast.min(array, axis), bcast.max(array, axis)
                for found, right in zip(pair, alone, strict=True):
                    assert np.array_equal(bits_of(found), bits_of(right)), (array.shape, array.strides, axis)


def test_bools_of_any_byte_have_plain_extremes():
    data = np.random.default_rng(6).integers(0, 3, (300, 4), np.uint8) * 85
    for array in data, data.T, data[:, ::2], data + 1, np.tile(data, (1, 9000))[:3]:
        array = array.view(bool)
        for axis in 0, 1, None:
            for found, name in zip(bcast.minmax(array, axis), ("min", "max"), strict=True):
                assert np.array_equal(bits_of(found), bits_of(getattr(np, name)(plain(array), axis)))


def test_both_extremes_of_large_arrays():
    rng = np.random.default_rng(4)
    for shape, axis in ((3_000_000,), None), ((1_000_000, 3), 0), ((1_000_000, 3), 1), ((700, 3000), 0):
        data = rng.normal(size=shape).astype("f4")
        low, high = bcast.minmax(data, axis)
        assert np.array_equal(low, data.min(axis))
        assert np.array_equal(high, data.max(axis))


def test_both_extremes_into_a_pair():
    data = np.arange(12.0).reshape(3, 4)
    out = np.zeros(3), np.zeros((3, 2))[:, 0]
    low, high = bcast.minmax(data, 1, out)
    assert low is out[0]
    assert high is out[1]
    assert low.tolist() == [0, 4, 8]
    assert high.tolist() == [3, 7, 11]
    with pytest.raises(ValueError, match=r"^`out` expected "):
        bcast.minmax(data, 1, (out[0], np.zeros(4)))
    assert low.tolist() == [0, 4, 8]
    with pytest.raises(ValueError, match="no identity"):
        bcast.minmax(np.zeros((0, 2)), 0)


def test_both_extremes_into_pairs_of_any_layout():
    """In the order of the data or another one, alike or not; over the data itself."""
    rng = np.random.default_rng(7)
    for shape, axis in ((30, 40, 3), 0), ((30, 40, 3), 2), ((4, 5, 60), (0, 1)), ((40, 30), 0):
        for order in itertools.permutations(range(len(shape))):
            data = rng.normal(size=shape).transpose(order)
            right = data.min(axis), data.max(axis)
            places = [
                np.zeros(right[0].shape), np.zeros(right[0].T.shape).T, np.zeros((*right[0].shape, 2))[..., 0],
                np.zeros(right[0].shape)[::-1], data.ravel("K")[: right[0].size].reshape(right[0].shape),
            ]  # fmt: skip
            for first, second in itertools.product(range(len(places)), repeat=2):
                source = data.copy("K")
                flat = source.ravel("K")
                out = [places[first].copy("K"), places[second].copy("K")]
                if first == 4:
                    out[0] = flat[: right[0].size].reshape(right[0].shape)
                if second == 4:
                    out[1] = flat[-right[0].size :].reshape(right[0].shape)
                with summed(*SUMS[rng.integers(len(SUMS))]):
                    bcast.minmax(source, axis, tuple(out))
                assert np.array_equal(out, right), (data.strides, axis, first, second)


@pytest.mark.parametrize("name", ["minmax", "mean_std"])
def test_which_pairs_are_an_out(name):
    """Both functions of pairs have one rule: None means a new array, and results are cast under "same_kind"."""
    function = getattr(bcast, name)
    for data in np.arange(12, dtype="f4").reshape(3, 4), np.ma.array(np.arange(12.0).reshape(3, 4)):
        right = tuple(map(np.asarray, function(data, 1)))
        for to in "f2", "f4", "f8", ">f8", "g", "c16", "O":
            for first, second in ((0, 1), (0, None), (None, 1), (None, None)):
                out = tuple(None if each is None else np.zeros((3, 2), to)[:, each] for each in (first, second))
                pair = function(data, 1, out=out)
                assert type(pair) is tuple
                for found, target, expected in zip(pair, out, right, strict=True):
                    assert target is None or found is target
                    np.testing.assert_allclose(np.asarray(found).astype("c16"), expected, 1e-3)
        together = np.zeros((3, 2))
        function(data, 1, out=(together[:, 0], together[:, 1]))  # interleaved, but apart
        assert np.allclose(together.T, right)

        out = np.full(3, 7.0)
        for bad in (
            out, (out,), (out, 5), (out, "x"), (out, [0.0] * 3), [out, out.copy()], (out, out), (out, out[::-1]),
            (out, np.zeros(4)), (out, np.zeros((1, 3))), (out, np.zeros(3, "i8")), (out, np.zeros(3, "?")),
            (np.zeros(4), out), (np.zeros(3, "i8"), out), (out, np.broadcast_to(np.zeros(1), 3)),
            (out, np.ma.zeros(3)),
        ):  # fmt: skip
            with pytest.raises((TypeError, ValueError), match=r"^`out` expected "):
                function(data, 1, out=bad)
            assert out.tolist() == [7, 7, 7]


@pytest.mark.parametrize("dtype", ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", ">i4"])
@pytest.mark.parametrize(("shape", "axis"), SHAPES.values(), ids=SHAPES)
def test_products_of_integers(shape, axis, dtype):
    """Products wrap around like NumPy's."""
    rng = np.random.default_rng(5)
    for way in SUMS:
        data = random_items(rng, dtype_of(dtype), shape)
        with summed(*way):
            for options in {}, {"keepdims": True}:
                for each in data, data[::-1] if data.ndim else data:
                    right = np.prod(plain(each), axis, **options)
                    found = bcast.prod(each, axis, **options)
                    assert type(found) is type(right)
                    if isinstance(right, np.ndarray):
                        assert found.dtype == right.dtype
                    assert np.array_equal(found, right)


@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8"])
def test_products_of_the_least_and_greatest_integers(dtype):
    """Any number of rows, and runs of any length: products of few items do not wrap around before 64 bits."""
    rng = np.random.default_rng(12)
    info = [0, 1]
    if dtype != "?":  # odd numbers at the end, whose products do not become 0
        info = [np.iinfo(dtype).min, np.iinfo(dtype).max, np.iinfo(dtype).max - 2, 1, 3]
    for length in (*range(1, 20), 31, 63, 64, 65, 79, 80, 130):
        for width in (1, 2, 3, 4, 5, 40, 515):
            data = rng.choice(info[-4:] if length > 9 else info, (length, width)).astype(dtype)
            if dtype == "?":
                data[:] |= rng.random(data.shape) < 0.9
                data = np.where(data, rng.integers(1, 256, data.shape), 0).astype("u1").view("?")
            for way in SUMS[:: len(SUMS) - 1]:
                with summed(*way):
                    factors = data != 0 if dtype == "?" else data
                    right = np.prod(factors, 0)
                    assert np.array_equal(bcast.prod(data), np.prod(factors))
                    assert np.array_equal(bcast.prod(data, 0), right)
                    assert np.array_equal(bcast.prod(data.T.copy(), 1), right)
                    assert np.array_equal(bcast.prod(np.stack([data, data], 2)[..., 1], 0), right)
                    out = np.zeros((width, 2), right.dtype)[:, 0]
                    assert np.array_equal(bcast.prod(data, 0, out=out), right)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_products_of_few_rows_of_floats(dtype):
    """Kernels write the products of up to four rows, and of eight; special products are found among any."""
    rng = np.random.default_rng(13)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan], dtype)
    for rows in range(1, 18):
        for width in (1, 3, 4, 8, 9, 70, 5000):
            data = rng.uniform(-2, 2, (rows, width)).astype(dtype)
            for place in {0, width // 2, width - 1}:
                data[rng.integers(rows), place] = special[rng.integers(5)]
            with np.errstate(all="ignore"):
                wide = np.prod(data.astype("f8"), 0).astype(dtype)
            for each, axis in (data, 0), (data.T.copy(), 1):
                np.testing.assert_allclose(bcast.prod(each, axis), wide, 3e-7 if dtype == "f4" else 1e-14)
                signs = np.signbit(bcast.prod(each, axis)), np.signbit(wide)
                assert np.array_equal(*(sign[~np.isnan(wide)] for sign in signs))


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "bfloat16", ">f4"])
@pytest.mark.parametrize(("shape", "axis"), SHAPES.values(), ids=SHAPES)
def test_products_of_floats(shape, axis, dtype):
    """Each of the factors rounds once, in float64."""
    rng = np.random.default_rng(6)
    dtype = dtype_of(dtype)
    for way in SUMS:
        data = np.exp2(rng.normal(size=shape) / 64).astype(dtype)
        with summed(*way):
            found = np.asarray(bcast.prod(data, axis))
        logs = np.log(np.asarray(data, "f8"))
        terms = 1 if not found.size else max(1, data.size // found.size)
        right = np.exp(np.sum(logs, axis))
        assert found.dtype == dtype.newbyteorder("=")
        error = (terms + 8) * 2.0**-52 + {2: 2.0**-7, 4: 2.0**-23, 8: 0}[dtype.itemsize]
        np.testing.assert_allclose(np.asarray(found, "f8"), right, rtol=3 * error * max(1, np.abs(logs).sum()) + error)


def test_a_product_is_close_to_the_exact_one():
    data = np.random.default_rng(7).uniform(0.5, 1.5, (50, 9))
    for row, found in zip(data, bcast.prod(data, 1), strict=True):
        exact = math.prod(map(Fraction, row.tolist()))
        assert abs(Fraction(float(found)) - exact) <= 9 * Fraction(2) ** -53 * exact * Fraction(1001, 1000)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_products_of_rows_of_any_length(dtype):
    """Rows are multiplied four at a time, in eight columns; the bits are the same from all targets."""
    rng = np.random.default_rng(14)
    for length in (*range(1, 42), 63, 64, 65, 127):
        for count in (1, 2, 3, 4, 5, 9):
            rows = (rng.uniform(0.9, 1.1, (count, length)) * rng.choice([-1, 1], (count, length))).astype(dtype)
            exact = [math.prod(map(Fraction, row)) for row in rows.tolist()]
            every_second = np.repeat(rows, 2, 0)[::2]
            found = set()
            for way in SUMS:
                with summed(*way):
                    found |= {bcast.prod(each, 1).tobytes() for each in (rows, every_second)}
                    thrice = bcast.prod(np.stack([rows, rows, rows]), (0, 2))
            assert len(found) == 1, (length, count)
            error = 2.0**-24 * 1.01 if dtype == "f4" else length * 2.0**-53
            for one, three, right in zip(np.frombuffer(*found, dtype), thrice, exact, strict=True):
                assert abs(Fraction(float(one)) - right) <= Fraction(error) * abs(right), (length, count)
                assert abs(Fraction(float(three)) - right**3) <= 3 * Fraction(error) * abs(right**3), (length, count)


@pytest.mark.parametrize("repeats", [2, 3, 8, 13, 63, 64, 100])
@pytest.mark.parametrize("dtype", ["?", "i1", "u4", "i8", "f4", "f8"])
def test_products_of_repeated_factors(dtype, repeats):
    """Repeated items are read once, for any number; 150 results are more than one block of powers."""
    rng = np.random.default_rng(repeats)
    factors = (rng.random((5, 150)) * 0.2 + 0.9 if dtype in ("f4", "f8") else rng.integers(0, 9, (5, 150))).astype(
        dtype
    )
    data = np.broadcast_to(factors, (repeats, 5, 150))
    right = np.prod(data, (0, 1), dtype="f8" if factors.dtype.kind == "f" else None)
    for axes, each in (((0, 1), data), ((1, 2), data.transpose(2, 0, 1))):
        found = bcast.prod(each, axes)
        np.testing.assert_allclose(found, right.astype(found.dtype), 1e-12 if dtype == "f8" else 1e-6, strict=True)
        if factors.dtype.kind != "f":
            np.testing.assert_array_equal(found, right)


def scaled_product(factors):
    """The exact product, rounded; of infinities and zeros, what their signs say."""
    if any(map(math.isnan, factors)) or (np.isinf(factors).any() and 0 in factors):
        return math.nan
    sign = math.prod(math.copysign(1, each) for each in factors)
    if np.isinf(factors).any() or 0 in factors:
        return sign * (0.0 if 0 in factors else math.inf)
    try:
        return float(math.prod(map(Fraction, factors)))
    except OverflowError:
        return sign * math.inf


@pytest.mark.parametrize("dtype", ["f2", "bfloat16", "f4", "f8"])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        ((16,), 0), ((9, 3), 1), ((9, 4), 1), ((5, 77), 1), ((40, 3), 0), ((90, 12), 0), ((9, 6, 2), 1),
        ((3, 203), 1), ((205, 7), 0),
    ],
)  # fmt: skip
def test_products_that_return_into_the_range(shape, axis, dtype):
    """No product is infinite or 0 only because an intermediate product was; infinities and NaN remain."""
    rng = np.random.default_rng(8)
    dtype = dtype_of(dtype)
    for way, special in itertools.product(SUMS, ([1.0], [0.0, -0.0], [np.inf, -np.inf], [0.0, -np.inf, np.nan])):
        size = {2: 14 if dtype.char == "e" else 100, 4: 100, 8: 900}[
            dtype.itemsize
        ]  # no product is subnormal on the way
        data = (rng.uniform(0.9, 1.1, shape) * rng.choice([-1, 1], shape) * 2.0**size).astype(dtype)
        line = np.moveaxis(data, axis, -1)
        half = line.shape[-1] // 2
        small = line[..., half:] if rng.random() < 0.5 else line[..., 1::2]
        small[...] = 1 / small.astype("f8")
        line[rng.random(line.shape) < 0.1 / line.shape[-1]] = rng.choice(special)
        with summed(*way):
            found = np.asarray(bcast.prod(data, axis)).astype("f8")
            into = np.zeros(found.shape, dtype.newbyteorder("="))
            assert bcast.prod(data, axis, out=into) is into
        exact = np.apply_along_axis(lambda row: scaled_product(row.tolist()), axis, data.astype("f8"))
        np.testing.assert_array_equal(into.astype("f8"), found)
        with np.errstate(over="ignore", under="ignore"):
            rounded = np.asarray(exact).astype(dtype).astype("f8")
        np.testing.assert_array_equal(np.isnan(found), np.isnan(rounded))
        ordinary = np.isfinite(rounded) & (rounded != 0)
        np.testing.assert_array_equal(found[~ordinary], rounded[~ordinary])
        assert np.array_equal(np.signbit(found[ordinary]), np.signbit(rounded[ordinary]))
        np.testing.assert_allclose(found[ordinary], rounded[ordinary], {2: 0.02, 4: 1e-6, 8: 1e-12}[dtype.itemsize])


def test_scaled_products_have_the_same_bits_from_all_targets():
    """Targets have other columns side by side in a vector: those whose factors are taken apart change no neighbour."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        data = rng.uniform(0.5, 2, (60, 9))
        data[:30] *= 1e30
        data[30:] *= 1e-30
        data[rng.integers(0, 60, 4), rng.integers(0, 9, 4)] = [5e-310, 1.3e-305, 1.7e308, 3e-320]
        found = set()
        for way in SUMS:
            with summed(*way):
                found.add(bcast.prod(data, 0).tobytes())
        assert len(found) == 1, seed


@pytest.mark.parametrize("first", range(4))
def test_many_products_that_are_subnormal_on_their_way(first):
    """Two factors whose product has no room for all bits, between others that make up for it, lose no bits."""
    rng = np.random.default_rng(first)
    exponents = np.roll([-540, -530, 520, 550], first)
    data = rng.uniform(0.9, 1.1, (160, 9)) * 2.0 ** np.resize(exponents, 160)[:, None]
    exact = [scaled_product(column.tolist()) for column in data.T]
    for way in SUMS:
        with summed(*way):
            np.testing.assert_allclose(bcast.prod(data, 0), exact, 1e-13)
            np.testing.assert_allclose(bcast.prod(data.T.copy(), 1), exact, 1e-13)


def test_subnormal_factors_and_powers_that_come_back():
    least = 5e-324
    assert bcast.prod(np.array([least, 3.0, 2.0**1000, 2.0**74])) == 3
    assert bcast.prod(np.array([least] * 3 + [2.0**1000] * 3 + [2.0**222])) == 1
    assert bcast.prod(np.broadcast_to(np.array([[3e-200], [1e200]]), (2, 50))) == pytest.approx(3.0**50, rel=1e-12)
    assert bcast.prod(np.broadcast_to(np.array([[-3e-200], [1e200]]), (2, 51))) == pytest.approx(-(3.0**51), rel=1e-12)
    assert bcast.prod(np.full(3000, 0.5)) == 0
    assert bcast.prod(np.full(3001, -2.0)) == -np.inf


@pytest.mark.parametrize("letter", "?bBhHiIlLqQefd")
def test_products_have_the_dtype_that_is_named(letter):
    data = np.arange(1, 13).reshape(3, 4).astype(letter)
    for dtype in None, *"bBhHiIlLqQefdg":
        right = np.prod(data, 1, dtype=dtype)
        found = bcast.prod(data, 1, dtype=dtype)
        assert found.dtype.char == right.dtype.char
        assert np.array_equal(found, right)


def test_repeated_factors():
    """An axis of stride 0 is read once."""
    once = np.array([[2.0, 3.0, -1.5]])
    data = np.broadcast_to(once, (5, 3))
    assert np.array_equal(bcast.prod(data, 0), once[0] ** 5)
    integers = np.broadcast_to(np.array([[3, -7, 1 << 40]]), (41, 3))
    assert np.array_equal(bcast.prod(integers, 0), np.prod(integers.copy(), 0))
    assert np.array_equal(bcast.prod(integers), np.prod(integers.copy()))
    special = np.broadcast_to(np.array([np.nan, np.inf, -np.inf, 0.0]), (3, 4))
    assert np.array_equal(bcast.prod(special, 0), [np.nan, np.inf, -np.inf, 0], equal_nan=True)


def test_products_that_are_numpys():
    for dtype in "O", "c16", "g":
        data = np.arange(1, 13).reshape(3, 4).astype(dtype)
        found, right = bcast.prod(data, 1), np.prod(data, 1)
        assert found.dtype == right.dtype
        assert np.array_equal(found, right)
    with pytest.raises(TypeError):
        bcast.prod(np.ones(3, "m8[s]"))


def test_products_with_more_arguments():
    data = np.arange(1.0, 13).reshape(3, 4)
    assert bcast.prod(np.zeros((0, 3)), 0).tolist() == [1, 1, 1]
    assert bcast.prod([]) == 1
    for options in {"initial": 2}, {"where": data > 3}, {"dtype": "f4"}, {"dtype": "i8"}, {"keepdims": True}:
        right = told(np.prod, data, 1, **options)
        found = told(bcast.prod, data, 1, **options)
        assert type(found) is type(right)
        assert np.array_equal(found, right) if isinstance(right, np.ndarray) else found == right
    out = np.zeros(3)
    assert bcast.prod(data, 1, out=out) is out
    assert np.array_equal(out, np.prod(data, 1))
    wide = np.zeros(3, "c16")
    assert bcast.prod(data, 1, out=wide) is wide
    assert np.array_equal(wide, np.prod(data, 1))
    overlapping = data.copy()
    bcast.prod(overlapping, 1, out=overlapping[:, 0])
    assert np.array_equal(overlapping[:, 0], np.prod(data, 1))


def told(function, *args, **options):
    try:
        return function(*args, **options)
    except Exception as error:
        return str(error)


def test_one_bool_decides_in_long_rows():
    """The first one, wherever it is: threads, which begin with parts of their own, leave out what comes after it."""
    rng = np.random.default_rng(7)
    for rows, length in (1, 20_000), (1, 700_001), (3, 90_000), (40, 5000), (1, 1024), (1, 1030):
        for places in (), (0,), (length - 1,), (length // 2, length - 1), (9000,), sorted(rng.integers(0, length, 5)):
            data = np.zeros((rows, length + 7), bool)[:, 5:-2]
            data[:: rows // 2 + 1, [place for place in places if place < length]] = True
            for array, way in itertools.product((data, ~data, np.ascontiguousarray(data)), SUMS):
                with summed(*way):
                    for name in ("argmax", "argmin", "any", "all", "min", "max"):
                        check_position(name, array, 1)
                    low, high = bcast.minmax(array, 1)
                assert np.array_equal(low, array.min(1))
                assert np.array_equal(high, array.max(1))


@pytest.mark.parametrize("axis", [(0, 2, 3), (2, 3), (0, 3), (1, 2, 3), 3, None, (0, 1, 3), 0])
def test_one_bool_decides_in_several_long_rows(axis):
    rng = np.random.default_rng(11)
    for share in 0.0, 1e-5, 1e-3, 0.5:
        data = rng.random((4, 3, 5, 2000)) < share
        for array in data, ~data, data.view("u1"), data[:, :, ::2], data.view("u1") * np.uint8(128):
            for name in ("any", "all", "min", "max"):
                for keepdims in False, True:
                    right = getattr(np, name)(array, axis, keepdims=keepdims)
                    found = getattr(bcast, name)(array, axis, keepdims=keepdims)
                    assert found.dtype == right.dtype
                    assert np.array_equal(found, right), (name, share)
                out = np.empty(np.shape(right), np.asarray(right).dtype)
                assert getattr(bcast, name)(array, axis, out, keepdims=True) is out
                assert np.array_equal(out, right)


@pytest.mark.parametrize("dtype", ["?", "u1", "i2", "f4", "f8"])
def test_short_rows_with_gaps(dtype):
    rng = np.random.default_rng(8)
    for width, length in itertools.product((1, 2, 3, 4, 5), (100, 3001, 40_000)):
        data = random_items(rng, dtype_of(dtype), (length, 2, width))
        for name in SEARCHES:
            check_position(name, data[:, 0], 0)
            check_position(name, data[::-2, 1], 0)
            check_position(name, data[::3], 0)
            check_position(name, data.transpose(1, 0, 2), 1)


@pytest.mark.parametrize("dtype", ["f2", "bfloat16"])
def test_extremes_of_16_bits_are_the_first_nan(dtype):
    rng = np.random.default_rng(9)
    for shape, axis in ((40,), None), ((9, 30), 0), ((9, 30), 1), ((30, 3), 1), ((300, 3), 0), ((4, 5, 6), (0, 2)):
        bits = np.ones(shape, dtype_of(dtype)).view("u2")
        is_nan = rng.random(shape) < 0.1
        bits[is_nan] = 0x7FC0 | rng.integers(1, 60, shape, "u2")[is_nan] | rng.integers(0, 2, shape, "u2")[is_nan] << 15
        data = bits.view(dtype_of(dtype))
        for name, array in itertools.product(("max", "min"), (data, data[::-1], data[..., ::2])):
            with np.errstate(invalid="ignore"):  # of ml_dtypes
                right = np.asarray(getattr(np, name)(array, axis))
            assert np.array_equal(bits_of(getattr(bcast, name)(array, axis)), bits_of(right))
            out = np.empty_like(right)
            assert getattr(bcast, name)(array, axis, out) is out
            assert np.array_equal(bits_of(out), bits_of(right))


def test_products_that_leave_the_range_continue_as_scaled_ones():
    rng = np.random.default_rng(10)
    for shape, axis in ((1000, 100), 0), ((100, 1000), 1), ((300, 300), 0), ((70_000,), 0), ((700, 9, 20), 0):
        for low, high in (0.0, 1.0), (2.0, 9.0), (0.5, 2.0), (-1.0, 1.0), (1e-300, 1e-290):
            data = rng.uniform(low, high, shape)
            data[5] = 2.0 ** rng.integers(-900, 900, data[5].shape)
            for array in data, np.asfortranarray(data), np.concatenate([data, 1 / data], axis):
                logs = np.log2(np.abs(array).astype("g")).sum(axis)
                found = bcast.prod(array, axis)
                assert np.array_equal(np.isinf(found), logs >= 1024)
                assert np.array_equal(found == 0, logs < -1075)
                is_normal = (logs < 1023.5) & (logs > -1021.5)
                assert np.allclose(np.log2(np.abs(found[is_normal])), logs[is_normal].astype(float), 0, 1e-9)
                assert np.array_equal(np.sign(found)[found != 0], np.sign(array).prod(axis)[found != 0])
