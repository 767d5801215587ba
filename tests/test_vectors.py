"""`vecdot`, `matvec`, `cross`, `norm` and `stack`: NumPy's values, dtypes, shapes, warnings and errors.

Sums of products are compared with exact ones, by fractions: floats are more precise than NumPy's.
"""

import itertools
import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from _ways import SUMS, summed
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import bcast
from bcast._api import vectors

REALS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", ">f4", ">f8", ">i2"]
OTHERS = ["?", "g", "c8", "c16", "O"]  # which NumPy computes
LENGTHS = (2, 3, 4)
COUNTS = (0, 1, 2, 3, 4, 5, 7, 8, 9, 255, 256, 257, 1000, 4097)  # on both sides of a register, a block, a chunk
MATVEC = getattr(np, "matvec", lambda m, x: np.matmul(m, x[..., None])[..., 0])


class Subclass(np.ndarray):
    pass


def items_of(dtype, *shape, seed=0):
    dtype = np.dtype(dtype)
    rng = np.random.default_rng((seed, *shape))
    if dtype.kind == "b":
        return rng.random(shape) > 0.5
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return rng.integers(limits.min, limits.max, shape, dtype.newbyteorder("="), endpoint=True).astype(dtype)
    if dtype.kind == "O":
        return rng.integers(-9, 9, shape).astype(object)
    items = rng.normal(size=shape)
    return (items + 1j * rng.normal(size=shape) if dtype.kind == "c" else items).astype(dtype)


def strides_of(array):
    return [stride for stride, length in zip(array.strides, array.shape, strict=True) if length > 1]


def check_dots(found, a, b, right):
    """Whether the dtype and the shape are NumPy's, and values those of exact sums: integers to the bit."""
    assert type(found) is type(right)
    assert found.dtype == right.dtype
    assert found.shape == right.shape
    if right.dtype.kind not in "f":
        assert np.array_equal(found, right)
        return
    products = a.astype("g") * b.astype("g")
    exact, magnitude = products.sum(-1), np.abs(products).sum(-1)
    unit, last = np.finfo(right.dtype).eps, np.finfo(right.dtype).smallest_subnormal
    bound = np.abs(exact) * unit / 2 + magnitude * (3 * 2.0**-53) + np.longdouble(last)
    is_told = np.abs(exact) <= np.finfo(right.dtype).max
    assert (np.abs(found.astype("g") - exact) <= bound)[is_told].all()
    assert not np.isfinite(np.asarray(found))[~is_told].any()


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("length", LENGTHS)
def test_sums_of_rounded_products_are_exact(length, dtype):
    """Errors: in float64, half a unit and the rounding errors of products; in float32, exact sums are rounded."""
    a, b = items_of(dtype, 200, length), items_of(dtype, 200, length, seed=1)
    a[:, -1] = -(a[:, :-1] * b[:, :-1]).sum(1) / b[:, -1]
    for x, y, value in zip(a, b, bcast.vecdot(a, b), strict=True):
        terms = [Fraction(float(p)) * Fraction(float(q)) for p, q in zip(x, y, strict=True)]
        if dtype == "f8":
            terms = [Fraction(float(each)) for each in terms]  # each rounded once
        exact = Fraction(sum(terms))
        assert abs(Fraction(float(value)) - exact) <= abs(exact) * Fraction(1.1 * float(np.finfo(dtype).eps)) / 2


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("length", LENGTHS)
def test_vecdot(dtype, length):
    for way, count in itertools.product(SUMS[::2], COUNTS):
        a, b = items_of(dtype, count, length), items_of(dtype, count, length, seed=1)
        with summed(*way), np.errstate(all="ignore"):
            check_dots(bcast.vecdot(a, b), a, b, np.vecdot(a, b))
            check_dots(bcast.vecdot(a, b[:1]), a, b[:1], np.vecdot(a, b[:1]))
            check_dots(bcast.vecdot(b[0] if count else b, a), b[:1], a, np.vecdot(b[:1], a))
            columns = np.asfortranarray(a)
            check_dots(bcast.vecdot(columns, b), a, b, np.vecdot(columns, b))
            check_dots(bcast.vecdot(a.T, b.T, axis=0), a, b, np.vecdot(a, b))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("length", [5, 8, 31, 32])
def test_vecdot_of_many_longer_vectors(dtype, length, monkeypatch):
    """Sums of products do what BLAS does for few vectors: with its dtypes and warnings, and an error without growth."""
    monkeypatch.setattr(vectors, "MANY_PRODUCTS", 600)
    a, b = items_of(dtype, 40, 5, length), items_of(dtype, 40, 5, length, seed=1)
    assert vectors._sum_products(a, b) is not None
    assert vectors._sum_products(a[..., :4], b[..., :4]) is vectors._sum_products(a[:1], b[:1]) is None
    for x, y in ((a, b), (a, b[:1]), (a[:, :1], b), (a, b[0, 0]), (b[0], a), (a[::-1, ::2], b[:, ::2])):
        check_dots(bcast.vecdot(x, y), np.broadcast_to(x, np.broadcast_shapes(x.shape, y.shape)), y, np.vecdot(x, y))
    with pytest.raises(ValueError, match="core dim"):
        bcast.vecdot(a, b[..., :-1])

    large = np.full((200, length), np.finfo(dtype).max, dtype)
    with pytest.warns(RuntimeWarning, match="overflow"):
        assert np.isinf(bcast.vecdot(large, large)).all()


@pytest.mark.parametrize("dtype", REALS + OTHERS)
@pytest.mark.parametrize("length", [1, 2, 3, 4, 5])
def test_matvec(length, dtype):
    for way, count, rows in zip(itertools.cycle(SUMS), COUNTS, itertools.cycle([1, 2, 3, 4, 5]), strict=False):
        points, matrix = items_of(dtype, count, length), items_of(dtype, rows, length, seed=1)
        with summed(*way), np.errstate(all="ignore"):
            for turned in (matrix, np.asfortranarray(matrix), matrix[None]):
                found, right = bcast.matvec(turned, points), MATVEC(turned, points)
                assert found.dtype == right.dtype
                assert found.shape == right.shape
                if dtype in OTHERS or length in (1, 5):
                    assert np.array_equal(found, right)
                    continue
                products = np.broadcast_arrays(points[:, None], matrix)
                check_dots(found.reshape(count, rows), *products, right.reshape(count, rows))
            many = items_of(dtype, count, rows, length, seed=2)
            found, right = bcast.matvec(many, points), MATVEC(many, points)
            assert found.dtype == right.dtype
            if dtype not in OTHERS and length in LENGTHS:
                check_dots(found, many, points[:, None], right)


@pytest.mark.parametrize("dtype", REALS + ["g", "c8", "O"])
def test_cross(dtype):
    for way, count in itertools.product(SUMS[::2], COUNTS):
        a, b = items_of(dtype, count, 3), items_of(dtype, count, 3, seed=1)
        with summed(*way), np.errstate(all="ignore"):
            for x, y in ((a, b), (a, b[:1]), (a[:1], b), (np.asfortranarray(a), b), (a[::-1], b), (b, a[:, ::-1])):
                if len(x) == len(y) or 1 in (len(x), len(y)):
                    found, right = bcast.cross(x, y), np.cross(x, y)
                    assert found.dtype == right.dtype
                    assert found.tobytes() == right.tobytes() or (dtype in "gO" and np.array_equal(found, right))
            found = bcast.cross(a.T, b.T, axis=0)
            assert np.array_equal(found, np.cross(a.T, b.T, axis=0))
            assert np.array_equal(bcast.cross(a.T, b, axisa=0, axisc=0), np.cross(a.T, b, axisa=0, axisc=0))


def test_zeros_keep_their_signs():
    """Differences of products are 0.0 or -0.0 as NumPy's are, whichever operand is repeated."""
    few = [0.0, -0.0, 1.0, -1.0]
    a = np.array(list(itertools.product(few, repeat=3)))
    for dtype in ("f4", "f8"):
        x = a.astype(dtype)
        for y in x:
            assert bcast.cross(x, y).tobytes() == np.cross(x, y).tobytes()
            assert bcast.cross(y, x).tobytes() == np.cross(y, x).tobytes()


@pytest.mark.parametrize("dtype", [*REALS, *OTHERS[:-1]])
@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 40])
def test_norm(dtype, length):
    for way, count in zip(itertools.cycle(SUMS), COUNTS, strict=False):
        x = items_of(dtype, count, length)
        with summed(*way), np.errstate(all="ignore"):
            right = np.linalg.norm(x, axis=-1)
            exact = np.linalg.norm(x if dtype in ("c8", "c16") else x.astype("g"), axis=-1).astype(right.dtype)
            for found in (bcast.norm(x), bcast.norm(np.asfortranarray(x)), bcast.norm(x.T, 0), bcast.norm(x, (1,))):
                assert found.dtype == right.dtype
                assert found.shape == right.shape
                tolerance = max(4 * float(np.finfo(right.dtype).eps), 1e-15)
                assert np.allclose(found.astype("f8"), exact.astype("f8"), rtol=tolerance, atol=0)
            assert bcast.norm(x, keepdims=True).shape == (count, 1)


def test_norms_have_the_order_of_the_data_in_memory():
    data = np.random.default_rng(0).random((5, 7, 6)).transpose(2, 0, 1)
    for keepdims in False, True:
        found = bcast.norm(data, 0, keepdims=keepdims)
        right = np.linalg.norm(data, axis=0, keepdims=keepdims)
        assert np.allclose(found, right)
    assert bcast.norm(data, 2).strides == np.linalg.norm(data, axis=2).strides == (8, 48)


def test_norms_of_objects_along_all_axes():
    data = np.array([[3, 0], [0, 4]], object)
    assert bcast.norm(data, None) == np.linalg.norm(data) == 5
    assert bcast.norm(data, None, keepdims=True).shape == (1, 1)


def test_norms_along_several_axes():
    x = items_of("f8", 5, 6, 3)
    for axes in ((0, 1), (0, 2), (1, 2), (0, 1, 2), None, -2, 0, (-1, 0)):
        for keeps in (False, True):
            right = np.sqrt((x * x).sum(axes, keepdims=keeps))
            found = bcast.norm(x, axes, keepdims=keeps)
            assert type(found) is type(right)
            assert np.allclose(found, right, rtol=1e-15)
    z = items_of("c8", 5, 6, 3)[:, ::2]
    assert np.allclose(bcast.norm(z, (0, 2)), np.sqrt((np.abs(z.astype("c16")) ** 2).sum((0, 2))), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i2", ">i4", "i8", "f2", "f4", ">f8", "g", "c8", ">c16", "G"])
@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 3), (2, 1, 3), (2, 3, 4), (0, 3), (2, 0, 3, 1)], ids=str)
def test_norms_along_no_axes_and_any(dtype, shape):
    """Squares of integers do not wrap, along none of the axes either."""
    data = np.random.default_rng(0).integers(-100, 100, shape).astype(dtype)
    exact = np.asarray(data).astype("G")
    for count in range(data.ndim + 1):
        for axes in itertools.combinations(range(data.ndim), count):
            for keepdims in False, True:
                found = bcast.norm(data, axes, keepdims=keepdims)
                right = np.sqrt(np.sum((exact * exact.conj()).real, axes, keepdims=keepdims))
                assert isinstance(found, np.ndarray if right.ndim else np.generic)
                np.testing.assert_allclose(found.astype("g"), right, 2e-3 if dtype == "f2" else 2e-7, strict=True)
    everything = bcast.norm(data, None)
    assert everything.dtype == np.linalg.norm(data[..., None] * 0, axis=-1).dtype
    assert everything == bcast.norm(data, tuple(range(data.ndim)))


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_norms_of_matrices_and_subclasses():
    for data in np.matrix([[3, 4], [6, 8]], np.int8), np.array([[3, 4], [6, 8]]).view(Subclass):
        for axis in None, 0, 1, (0,), (0, 1), (1, 0):
            for keepdims in False, True:
                found, right = (each(data, axis=axis, keepdims=keepdims) for each in (bcast.norm, np.linalg.norm))
                assert type(found) is type(right)
                assert np.array_equal(found, right)
        assert np.array_equal(bcast.norm(data * 30, ()), np.abs(np.asarray(data, float) * 30) % 256)
    cube = np.full((2, 3, 4), 100, np.uint8).view(Subclass)
    assert bcast.norm(cube, (0, 1, 2)) == math.sqrt(24 * 100**2)


@pytest.mark.parametrize("length", LENGTHS)
def test_norms_neither_overflow_nor_vanish(length):
    """Norms do not overflow if only squares would; zeros, infinities and NaN keep their values."""
    for scale in (1e-320, 1e-300, 1e-160, 1e-154, 1.0, 1e150, 1e154, 1e200, 1e307):
        x = scale * items_of("f8", 50, length)
        right = [math.hypot(*row) for row in x]
        assert np.allclose(bcast.norm(x), right, rtol=4e-16, atol=5e-324), scale
        assert bcast.norm(x[0]) == pytest.approx(right[0], rel=4e-16, abs=5e-324)
    x = np.array([[scale] * length for scale in (0.0, 1.0, 1e-200, 1e200, 1e-320, 3.0, 8e307)] * 3)
    right = [math.hypot(*row) for row in x]
    with np.errstate(over="ignore"):
        assert np.allclose(bcast.norm(x), right, rtol=4e-16, atol=5e-324)
    for special in itertools.product([0.0, -0.0, 1e300, np.inf, -np.inf, np.nan], repeat=length):
        with np.errstate(all="ignore"):
            right = np.sqrt(np.sum(np.array(special, "g") ** 2)).astype("f8")
        found = bcast.norm(np.array([special] * 5))
        assert np.allclose(found, right, rtol=1e-15, equal_nan=True), special


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("dtype", [*REALS, *OTHERS, "M8[s]", "S3", "U2", "V8"])
def test_stack(dtype, count):
    for way, size in zip(itertools.cycle(SUMS), COUNTS, strict=False):
        if np.dtype(dtype).kind in "MSUV":
            arrays = [np.arange(size * np.dtype(dtype).itemsize, dtype="u1").view(dtype) for _ in range(count)]
        else:
            arrays = [items_of(dtype, size, seed=i) for i in range(count)]
        with summed(*way):
            for axis in (-1, 1, 0):
                right = np.stack(arrays, axis)
                found = bcast.stack(arrays, axis)
                assert found.dtype == right.dtype
                assert found.shape == right.shape
                assert found.tolist() == right.tolist()
            backwards = tuple(each[::-1] for each in arrays)
            assert bcast.stack(backwards, -1).tolist() == np.stack(backwards, -1).tolist()


def test_stacks_that_are_numpys():
    a = np.arange(6.0).reshape(2, 3)
    swapped = a.astype(">f8")
    assert bcast.stack((swapped, swapped), -1).dtype == np.float64
    assert np.array_equal(bcast.stack((swapped, swapped), -1), np.stack((a, a), -1))
    assert np.array_equal(bcast.stack([a, a], axis=1), np.stack([a, a], axis=1))
    assert np.array_equal(bcast.stack([a, a], -1, dtype="f4"), np.stack([a, a], -1, dtype="f4"))
    assert np.array_equal(bcast.stack([a, [[1, 2, 3], [4, 5, 6]]], -1)[..., 0], a)
    out = np.empty((2, 3, 2))
    assert bcast.stack((a, a), -1, out) is out
    with pytest.raises(ValueError, match="same shape"):
        bcast.stack((a, a.T), -1)
    with pytest.raises(np.exceptions.AxisError):
        bcast.stack((a, a), 3)


@pytest.mark.parametrize(("a", "b"), [*itertools.product(["u1", "i8", "f2", "f4", "f8", "?"], repeat=2)])
def test_mixed_dtypes(a, b):
    x, y = items_of(a, 300, 3), items_of(b, 300, 3, seed=1)
    with np.errstate(all="ignore"):
        assert bcast.vecdot(x, y).dtype == np.vecdot(x, y).dtype
        if np.vecdot(x, y).dtype.kind == "f":
            wide = np.vecdot(x.astype("g"), y.astype("g"))
            room = 2e-3 if "f2" in (a, b) else 1e-5
            assert np.allclose(bcast.vecdot(x, y).astype("f8"), wide.astype("f8"), rtol=room, atol=room)
        else:
            assert np.array_equal(bcast.vecdot(x, y), np.vecdot(x, y))
        if a != "?" or b != "?":
            found, right = bcast.cross(x, y), np.cross(x, y)
            assert found.dtype == right.dtype
            assert found.tobytes() == right.tobytes()


@given(st.data())
def test_layouts(data):
    """Transposed, flipped, with gaps, repeated by strides of 0, of any axes that broadcast."""
    dtype = np.dtype(data.draw(st.sampled_from(["f4", "f8", "i4", "u1", ">f8", "f2"])))
    length = data.draw(st.integers(2, 4))
    shapes = data.draw(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, max_side=9)).input_shapes
    operands = []
    for seed, shape in enumerate(shapes):
        axes = data.draw(st.permutations(range(len(shape) + 1)))
        step = data.draw(st.sampled_from([1, -1, 2]))
        full = (*shape, length)
        room = items_of(dtype, *[full[axis] * abs(step) for axis in axes], seed=seed)
        array = room[(slice(None, None, step),) * len(full)].transpose(np.argsort(axes))
        if shape and data.draw(st.booleans()):
            array = np.broadcast_to(array[:1], array.shape)
        operands.append(array)
    a, b = operands
    with np.errstate(all="ignore"):
        check_dots(bcast.vecdot(a, b), a, b, np.vecdot(a, b))
        if length == 3 and dtype != np.float16:
            assert np.array_equal(bcast.cross(a, b), np.cross(a, b), equal_nan=dtype.kind == "f")
        wide = a.astype("f8")
        right = np.sqrt((wide * wide).sum(-1))
        tolerance = 1e-3 if dtype == np.float16 else 1e-6
        assert np.allclose(bcast.norm(a).astype("f8"), right, rtol=tolerance, equal_nan=True)


def test_out():
    a, b = items_of("f8", 100, 3), items_of("f8", 100, 3, seed=1)
    right = bcast.vecdot(a, b)
    for out in (np.empty(100), np.empty(200)[::2], np.empty(100, ">f8"), np.empty(100)[::-1]):
        assert bcast.vecdot(a, b, out) is out
        assert np.array_equal(out, right)
    for out_of in (lambda x: x[:, 0], lambda x: x.ravel()[:100], lambda x: x.ravel()[::-1][:100]):
        x = a.copy()
        out = out_of(x)
        assert bcast.vecdot(x, b, out=out) is out
        assert np.array_equal(out, right)
    x = a.copy()
    matrix = items_of("f8", 3, 3)
    assert bcast.matvec(matrix, x, out=x) is x
    assert np.array_equal(x, bcast.matvec(matrix, a))
    wide = np.empty(100, "g")
    assert bcast.vecdot(a, b, out=wide) is wide
    assert np.allclose(wide.astype("f8"), right)


def test_errors_are_numpys():
    a = items_of("f8", 5, 3)
    for function, numpys, args in (
        (bcast.vecdot, np.vecdot, (a, a[:4])), (bcast.vecdot, np.vecdot, (a, a[:, :2])),
        (bcast.vecdot, np.vecdot, (a,)), (bcast.vecdot, np.vecdot, (a, a, np.empty(4))),
        (bcast.vecdot, np.vecdot, (a, 1.0)), (bcast.matvec, MATVEC, (a, a[:, :2])), (bcast.matvec, MATVEC, (a[0], a)),
        (bcast.cross, np.cross, (a, a[:4])),
        (bcast.cross, np.cross, (a[:, :1], a)), (bcast.cross, np.cross, (a, a, 2)),
        (bcast.norm, np.linalg.norm, ("abc",)),
    ):  # fmt: skip
        with pytest.raises(Exception) as right:
            numpys(*args)
        with pytest.raises(right.type):
            function(*args)
    out = np.zeros(5)
    out.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        bcast.vecdot(a, a, out=out)
    with pytest.raises(np.exceptions.AxisError):
        bcast.norm(a, 2)
    with pytest.raises(ValueError, match="`axis` expected"):
        bcast.norm(a, (0, 0))


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_warnings_are_numpys(dtype):
    """Overflow and invalid values are reported once; under `numpy.errstate`, also as exceptions or not at all."""
    largest = np.finfo(dtype).max
    for length, count in itertools.product(LENGTHS, (1, 3, 4, 50)):
        ones = np.ones((count, length), dtype)
        large, infinite = ones * largest, ones * np.inf
        for a, b, word in ((large, large, "overflow"), (infinite, ones * 0, "invalid"), (ones, ones, None)):
            for name in ("vecdot", "matvec"):
                with warnings.catch_warnings(record=True) as told:
                    warnings.simplefilter("always")
                    bcast.vecdot(a, b) if name == "vecdot" else bcast.matvec(b[:2], a)
                assert [each.category for each in told] == [RuntimeWarning] * (word is not None)
                assert all(word in str(each.message) and name in str(each.message) for each in told)
        with np.errstate(over="raise"), pytest.raises(FloatingPointError, match="overflow"):
            bcast.vecdot(large, large)
        with np.errstate(over="ignore"), warnings.catch_warnings():
            warnings.simplefilter("error")
            assert np.isinf(bcast.vecdot(large, large)).all()
            mixed = infinite.copy()
            mixed[:, 0] = -np.inf
            if length > 2:
                with pytest.warns(RuntimeWarning, match="invalid"):
                    bcast.vecdot(mixed, ones)
            assert np.isinf(bcast.vecdot(infinite, ones)).all()  # which is no error


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", ">f8"])
@pytest.mark.parametrize("length", LENGTHS)
def test_nan_and_infinities(length, dtype):
    """Sums are those of exact products and real numbers; an error is reported only if these have it."""
    rng = np.random.default_rng(length)
    largest = float(np.finfo(dtype).max)
    items = np.array([0, largest / 4, -largest / 4, largest, -largest, np.inf, -np.inf, np.nan]).astype(dtype)
    units = np.array([0, 1, -1, 4, -4, np.inf, -np.inf, np.nan]).astype(dtype)  # products cancel, or neither is lost
    for kinds, others in itertools.product((5, 7, 8), (items, units)):
        for count in 1, 3, 4, 9, 300:
            vectors, matrix = rng.choice(items[:kinds], (count, length)), rng.choice(others[:kinds], (3, length))
            right = np.array([[exact_dot(x, y, dtype) for y in matrix] for x in vectors]).astype("f8")
            for name, call in (
                ("matvec", lambda matrix=matrix, vectors=vectors: bcast.matvec(matrix, vectors)),
                (
                    "matvec",
                    lambda matrix=matrix, vectors=vectors: bcast.matvec(np.stack([matrix] * len(vectors)), vectors),
                ),
                ("vecdot", lambda matrix=matrix, vectors=vectors: bcast.vecdot(vectors[:, None], matrix)),
            ):
                with warnings.catch_warnings(record=True) as told:
                    warnings.simplefilter("always")
                    found = call()
                np.testing.assert_array_equal(found.astype("f8"), right)
                words = {str(each.message).split()[0] for each in told}
                assert all(name in str(each.message) for each in told)
                has_nan = np.isnan(vectors).any(1)[:, None] | np.isnan(matrix).any(1)
                has_infinity = np.isinf(vectors).any(1)[:, None] | np.isinf(matrix).any(1)
                if (np.isnan(right) & ~has_nan).any():
                    assert "invalid" in words
                elif not (has_nan & has_infinity).any():  # there, either is right
                    assert "invalid" not in words
                assert ("overflow" in words) == (np.isinf(right) & ~has_infinity).any()


def exact_dot(a, b, dtype):
    """The sum of products, exact and then rounded."""
    pairs = [(float(x), float(y)) for x, y in zip(a, b, strict=True)]
    if not np.isfinite(pairs).all():
        with np.errstate(all="ignore"):
            return sum(np.float64(x) * y for x, y in pairs if not np.isfinite((x, y)).all())
    exact = sum(Fraction(x) * Fraction(y) for x, y in pairs)
    limits = np.finfo(dtype)
    infinite = Fraction(float(limits.max)) + Fraction(2) ** (limits.maxexp - limits.nmant - 2)
    if abs(exact) >= infinite:
        return math.inf if exact > 0 else -math.inf
    return np.float64(float(exact)).astype(limits.dtype)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("name", ["vecdot", "matvec"])
def test_an_error_does_not_change_out(name, dtype):
    """An error that is raised, by NumPy or by a filter of warnings, comes before anything is written."""
    for count in 3, 4000:
        vectors = np.full((count, 3), np.finfo(dtype).max)
        out = np.full((count, 3) if name == "matvec" else count, 7, dtype)
        arguments = (np.ones((3, 3), dtype), vectors) if name == "matvec" else (vectors, vectors)
        with np.errstate(over="raise"), pytest.raises(FloatingPointError, match="overflow"):
            getattr(bcast, name)(*arguments, out=out)
        assert (out == 7).all()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(RuntimeWarning, match="overflow"):
                getattr(bcast, name)(*arguments, out=out)
        assert (out == 7).all()
        with np.errstate(over="ignore"):
            assert getattr(bcast, name)(*arguments, out=out) is out
        assert np.isinf(out).all()


def test_warnings_of_products_are_numpys():
    x = np.full((20, 3), 1e200)
    with pytest.warns(RuntimeWarning) as ours:
        found = bcast.cross(x, x + 1)
    with pytest.warns(RuntimeWarning) as right:
        expected = np.cross(x, x + 1)
    assert [str(each.message) for each in ours] == [str(each.message) for each in right]
    assert np.array_equal(found, expected, equal_nan=True)


def test_lists_and_numbers():
    picture = items_of("u1", 4, 5, 3)
    assert np.allclose(bcast.vecdot(picture, [0.299, 0.587, 0.114]), picture @ [0.299, 0.587, 0.114])
    assert bcast.vecdot([1, 2], [3, 4]) == 11
    assert type(bcast.vecdot([1, 2], [3, 4])) is np.int64
    assert bcast.cross([1, 0, 0], (0, 1, 0)).tolist() == [0, 0, 1]
    assert bcast.matvec([[1, 2], [3, 4]], [1, 1]).tolist() == [3, 7]
    assert bcast.norm([3.0, 4.0]) == 5
    assert bcast.norm(3.0, None) == 3


def test_calls_that_are_left_to_numpy():
    a = items_of("f8", 5, 3).view(Subclass)
    assert type(bcast.vecdot(a, a)) is Subclass
    assert type(bcast.cross(a, a)) is type(np.cross(a, a))
    b = items_of("f8", 5, 3)
    assert bcast.vecdot(b, b, dtype="f4").dtype == np.float32
    assert np.allclose(bcast.vecdot(b, b.T, axes=[1, 0, ()]), np.vecdot(b, b))
    pairs = b[:, :2]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            expected = np.cross(pairs, pairs)
        except ValueError:  # from NumPy 2.5 on
            with pytest.raises(ValueError, match="3-dimensional"):
                bcast.cross(pairs, pairs)
        else:
            assert np.array_equal(bcast.cross(pairs, pairs), expected)
    assert np.allclose(bcast.vecdot(items_of("f8", 9, 50), np.ones(50)), items_of("f8", 9, 50).sum(1))
