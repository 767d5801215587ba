"""`sum`, `mean`, `var` and `std`: NumPy's results except for their last bits, which are closer to the exact results."""

import itertools
import math
import tracemalloc
import warnings
from fractions import Fraction

import numpy as np
import pytest
from _ways import SUM_TARGETS, summed
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import bcast

NAMES = ("sum", "mean", "var", "std")
DTYPES = ("?", "i1", "u1", "i4", "u8", "i8", "f2", "f4", "f8", ">f4", "c8")
SHAPES = {
    "rows of 2": ((4000, 2), 1), "rows of 3": ((3001, 3), -1), "rows of 17": ((500, 17), 1), "rows": ((9, 5000), 1),
    "few columns": ((5000, 3), 0), "columns": ((700, 90), 0), "two rows": ((2, 5000), 0), "all": ((40, 300), None),
    "a picture": ((60, 90, 3), (0, 1)), "its channels": ((60, 90, 3), 2), "a batch": ((4, 3, 20, 21), (0, 2, 3)),
    "the channels of a batch": ((4, 3, 20, 21), 1), "outer and middle": ((5, 6, 7, 8), (2, 0)),
    "blocks of means": ((40_000, 3), 1), "blocks of means, columns": ((3, 40_000), 0),
    "triangles": ((700, 3, 3), 1), "pools of 4": ((70, 2, 9, 2, 4), (1, 3)), "of 3": ((70, 2, 9, 3, 3), (1, 3)),
}  # fmt: skip
UNITS = {"sum": 1.5, "mean": 4, "var": 4, "std": 4}


class Subclass(np.ndarray):
    pass


def exact(name, terms, ddof=0):
    """The sum or statistic of numbers, as a fraction; of a deviation, its square."""
    terms = [Fraction(float(term)) for term in terms]
    if name in ("sum", "mean"):
        return sum(terms) / (1 if name == "sum" else len(terms))
    mean = sum(terms) / len(terms)
    return sum((term - mean) ** 2 for term in terms) / (len(terms) - ddof)


def difference(result, right, name):
    """The error of a float."""
    if name == "std":
        right = Fraction(math.isqrt(int(right * 2**240))) / 2**120
    return float(abs(Fraction(float(result)) - right))


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("leaf", SUM_TARGETS)
@pytest.mark.parametrize("dtype", ["f2", ">f2", "f4", "f8", ">f8", "c8", "bfloat16"])
def test_sums_of_negative_zeros_are_numpys(dtype, leaf, threads):
    """0.0, as sums begin with that, but -0.0 if that is given, or nothing."""
    dtype = np.dtype(getattr(pytest.importorskip("ml_dtypes"), dtype) if dtype == "bfloat16" else dtype)
    for shape, axis in [((30, n), 1) for n in (2, 3, 4, 5, 8, 13, 16, 33, 70, 600)] + [*SHAPES.values(), ((7,), 0)]:
        data = np.full(shape, -0.0).astype(dtype)
        if dtype.kind == "c":
            data = -np.zeros(shape, dtype)
        with summed(leaf, threads):
            for function in bcast.sum, bcast.mean, bcast.nansum, bcast.nanmean:
                assert not has_negative_zeros(function(data, axis))
            source = [1 if axis is None or at in np.atleast_1d(axis) % data.ndim else n for at, n in enumerate(shape)]
            assert not has_negative_zeros(bcast.unbroadcast(data, source))
            assert not has_negative_zeros(bcast.unbroadcast(data, source, times=np.ones(shape, dtype)))
            if axis in (1, -1) and dtype.name != "bfloat16":
                ones = np.ones(shape[-1], dtype)
                assert not has_negative_zeros(bcast.vecdot(data, ones))
                assert not has_negative_zeros(bcast.matvec(np.stack((ones, ones)), data))


@pytest.mark.parametrize("initial", [None, -0.0, 0.0, np.float32(-0.0), 0, 2.5])
@pytest.mark.parametrize("dtype", ["f2", "f4", ">f8", "c8", "i4", "?"])
def test_initial_values_keep_the_signs_of_zeros(dtype, initial):
    data = np.array([[0, 0, 0], [0, 1, 0], [0, 1, -1], [0, 0, 0]]).astype(dtype)
    if data.dtype.kind in "fc":
        data[::3] = -data[::3]
        data[3, 1] = 0
    complex_zero = complex(-0.0, -0.0) if data.dtype.kind == "c" else initial
    for start in initial, complex_zero:
        for axis in 0, 1, None, (1, 0):
            right = np.asarray(np.sum(data, axis, initial=start))
            found, out = np.asarray(bcast.sum(data, axis, initial=start)), np.full_like(right, 7)
            assert found.dtype == right.dtype
            assert found.tobytes() == right.tobytes()
            assert bcast.sum(data, axis, initial=start, out=out) is out
            assert out.tobytes() == right.tobytes()
    if data.dtype.kind == "f":
        wide = bcast.sum(data, 1, initial=initial, out=np.zeros(4, "g"))
        assert np.array_equal(np.signbit(wide), np.signbit(np.sum(data, 1, "g", initial=initial)))
        bcast.sum(data[::3], 0, initial=initial, out=data[0])  # it overlaps
        sign = np.signbit(np.sum([-0.0, -0.0], initial=initial))
        assert np.array_equal(np.signbit(data[0]), [sign, False, sign])


def has_negative_zeros(found):
    """Whether a result has a -0.0, also as a part of a complex number."""
    parts = np.asarray(found)
    return any(bool((np.signbit(part) & (part == 0)).any()) for part in (parts.real, parts.imag))


@pytest.mark.parametrize("dtype", ["u1", "f2", "f4", "f8"])
@pytest.mark.parametrize(("shape", "axis"), SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("name", NAMES)
def test_errors_are_within_their_bounds(name, shape, axis, dtype):
    rng = np.random.default_rng(0)
    data = (rng.random(shape) * 100 + 20).astype(dtype)
    result = np.asarray(getattr(bcast, name)(data, axis=axis))
    right = getattr(np, name)(data.astype("g" if name != "sum" or dtype != "u1" else "i8"), axis=axis)
    with np.errstate(all="ignore"):
        assert result.dtype == getattr(np, name)(data[:1], axis=axis).dtype
        units = np.abs(result - right) / (np.spacing(result) if result.dtype.kind == "f" else 1)
    units = np.where(np.isinf(result), 2 * (right < 65519), units)  # float16's largest, and half a unit
    assert units.max() <= (UNITS[name] if result.itemsize > 4 else 1)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("shift", "dtype"), [(0, "f8"), (1e6, "f8"), (2**14, "f4"), (1e9, "f8"), (-500, "f2")])
def test_exact_fractions(name, shift, dtype):
    for seed, n in enumerate((2, 3, 5, 40, 1000, 9000)):
        data = (np.random.default_rng(seed).normal(size=n) + shift).astype(dtype)
        for terms in (data, np.stack([data, data], 1)[:, 0], data.astype(np.dtype(dtype).newbyteorder())):
            result = getattr(bcast, name)(terms)
            if np.isfinite(result) and result and (name != "sum" or shift):
                of_mean = float(np.spacing(np.float64(shift))) ** 2 / float(result) if name in ("var", "std") else 0
                room = UNITS[name] * float(np.spacing(abs(result))) + of_mean
                assert difference(result, exact(name, data), name) <= room


arrays = st.sampled_from(DTYPES).flatmap(
    lambda dtype: hnp.arrays(dtype, hnp.array_shapes(max_dims=4, max_side=5, min_side=0), elements=st.integers(0, 1))
)


def steps(array):
    return [step for step, length in zip(array.strides, array.shape, strict=True) if length > 1]


@given(arrays, st.data())
def test_results_are_as_numpys(data, draw):
    data = data.transpose(draw.draw(st.permutations(range(data.ndim))))
    axis = draw.draw(st.none() | st.integers(-data.ndim, data.ndim - 1) | st.permutations(range(data.ndim)).map(tuple))
    options = {"axis": axis, "keepdims": draw.draw(st.booleans())}
    dtype = draw.draw(st.sampled_from((None, "f4", "f8", "c16", "i2", "f2", ">f8", bool)))
    for name in NAMES:
        more = {"ddof": draw.draw(st.sampled_from((0, 1, 0.5)))} if name in ("var", "std") else {}
        with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
            try:
                right = getattr(np, name)(data, **options, **more, dtype=dtype)
            except TypeError as error:
                with pytest.raises(type(error)):
                    getattr(bcast, name)(data, **options, **more, dtype=dtype)
                continue
            result = getattr(bcast, name)(data, **options, **more, dtype=dtype)
            assert type(result) is type(right)
            assert result.dtype == right.dtype
            np.testing.assert_allclose(result, right, rtol=4e-3 if "2" in result.dtype.str else 1e-6)
            if isinstance(right, np.ndarray):
                if data.size:
                    assert steps(result) == steps(right)
                out = np.full_like(right, 7)
                assert getattr(bcast, name)(data, **options, **more, dtype=dtype, out=out) is out
                np.testing.assert_array_equal(out, result)


@pytest.mark.parametrize("name", NAMES)
def test_calls_that_are_left_to_numpy(name):
    ours, numpys = getattr(bcast, name), getattr(np, name)
    data = np.arange(12.0).reshape(3, 4)
    masked = np.ma.array(data, mask=data > 5)
    assert ours(masked) == numpys(masked)
    assert type(ours(data.view(Subclass), axis=0)) is Subclass
    assert ours([[1, 2], [3, 5]], axis=1).tolist() == numpys([[1, 2], [3, 5]], axis=1).tolist()
    assert ours(data, where=data > 3) == numpys(data, where=data > 3)
    assert ours(data.astype("g")) == numpys(data.astype("g"))
    if name in ("sum", "mean"):
        parts = np.random.default_rng(0).random((100_000, 8), "f4").view("c8")[:, ::2]
        assert ours(parts, 0).tolist() == ours(parts.copy(), 0).tolist() != numpys(parts, 0).tolist()
    out = np.zeros(4, "f4")
    assert ours(data, 0, out=out, dtype="f4") is out
    assert out.tolist() == numpys(data, 0, dtype="f4").tolist()
    if name == "sum":
        assert ours(3.0, 0) == ours(np.array(3), -1) == 3
    with bcast.patched_numpy([name]):  # which knows what is not given
        taken = bcast.patch_info()[name].taken
        patched = getattr(np, name)
        assert patched(data, where=data > 3) == numpys(data, where=data > 3)
        if name == "sum":
            assert patched(data, where=None) == 0
        assert bcast.patch_info()[name].taken == taken
    with pytest.raises(TypeError):
        ours(data, axis="x")
    with pytest.raises(TypeError):
        ours(data, nothing=1)
    with pytest.raises(ValueError, match=r"^`axis` expected distinct axes, got \(1, -1\)"):
        ours(data, axis=(1, -1))
    with pytest.raises(ValueError, match=r"^`out` expected"):
        ours(data, axis=0, out=np.zeros(3))


def test_corrections():
    data = np.arange(10.0)
    assert bcast.var(data, correction=1) == bcast.var(data, ddof=1) == np.var(data, ddof=1)
    with pytest.raises(ValueError, match=r"^`correction` expected None if `ddof` is given"):
        bcast.std(data, ddof=1, correction=1)
    for narrow in (np.int8(-1), np.float16(1), np.uint8(3)):  # whose own sums would be less exact, or wrap around
        many = np.arange(3200.0)
        assert bcast.var(many, ddof=narrow) == pytest.approx(np.var(many, ddof=int(narrow)))
    with np.errstate(invalid="ignore"), pytest.warns(RuntimeWarning, match="freedom"):
        assert np.isnan(bcast.var(data[:1], ddof=1))


@pytest.mark.parametrize("shape", [(40_000, 3), (3, 40_000), (300, 300)])
def test_out_may_overlap(shape):
    axis = int(np.argmin(shape))
    data = np.random.default_rng(0).random(shape)
    right = np.moveaxis(data, axis, 0).copy().var(0)
    out = np.moveaxis(data, axis, 0)[-1]
    np.testing.assert_allclose(bcast.var(data, axis=axis, out=out), right, rtol=1e-13)


@pytest.mark.parametrize("code", "gGd")
def test_errors_of_numpy_do_not_change_out(code):
    """NumPy writes variances before it refuses to store their roots as integers."""
    data = np.arange(12).reshape(3, 4).astype(code)
    for options in {}, {"where": data.real > 2}:
        for to in "iQ?":
            out = np.full(3, 7).astype(to)
            right = out.tolist()
            with pytest.raises(TypeError):
                bcast.std(data, 1, out=out, **options)
            assert out.tolist() == right
        out = np.zeros((3, 2), "g")[:, 0]
        assert bcast.std(data, 1, out=out, **options) is out
        np.testing.assert_allclose(out.astype("d"), np.std(data, 1, **options).astype("d"), rtol=1e-14)


@pytest.mark.parametrize(("shape", "axis"), [((2_000_000, 3), 1), ((2, 2_000_000), 0), ((1_000_000,), None)])
def test_no_temporary_has_the_size_of_the_data(shape, axis):
    data = np.ones(shape, "f4")
    out = np.empty(np.sum(data, axis=axis).shape, "f4")
    tracemalloc.start()
    try:
        bcast.std(data, axis=axis, out=out)
        assert tracemalloc.get_traced_memory()[1] < data.nbytes / 3 + out.nbytes  # which is written last
    finally:
        tracemalloc.stop()


def test_overflow_on_the_way():
    assert bcast.mean(np.full(9000, 6e4, "f2")) == np.float16(6e4)
    assert bcast.mean(np.full(9000, 3e38, "f4")) == np.float32(3e38)
    assert bcast.sum(np.array([1e308, 1e308, -1e308])) == 1e308
    assert bcast.var(np.array([np.inf, 1.0])) != 0


@pytest.mark.parametrize("name", ["var", "std", "nanvar", "nanstd"])
@pytest.mark.parametrize("length", [2, 3, 4, 5])
def test_squares_that_overflow_are_infinite(name, length):
    """The correction of their sum overflows with it: an infinity less another one would be NaN."""
    x = np.random.default_rng(length).normal(size=(50, length)) * 1e200
    with np.errstate(over="ignore"):
        assert np.isinf(getattr(np, name)(x, axis=1)).all()
        assert np.isinf(getattr(bcast, name)(x, axis=1)).all()
        assert np.isinf(getattr(bcast, name)(x.T, axis=0)).all()


def test_bits_depend_on_no_thread():
    data = np.random.default_rng(0).random((700, 900))
    before = bcast.get_num_threads()
    try:
        results = []
        for threads in (1, 2, 3):
            bcast.set_num_threads(threads)
            results.append([getattr(bcast, name)(data, axis=axis).tobytes() for name in NAMES for axis in (0, 1, None)])
    finally:
        bcast.set_num_threads(before)
    assert results[0] == results[1] == results[2]


def test_the_order_in_memory_is_that_of_numpys_results():
    rng = np.random.default_rng(3)
    for _ in range(300):
        rank = int(rng.integers(2, 5))
        data = rng.random(rng.integers(1, 4, rank)).transpose(rng.permutation(rank))
        for axis in np.flatnonzero(rng.random(rank) < 0.3):
            data = np.broadcast_to(data.take([0], axis), (*data.shape[:axis], 3, *data.shape[axis + 1 :]))
        axes = tuple(rng.choice(rank, rng.integers(1, rank), replace=False).tolist())
        result, right = bcast.sum(data, axis=axes), np.sum(data, axis=axes)
        lengths = np.array(right.shape) > 1
        assert (np.array(result.strides)[lengths] == np.array(right.strides)[lengths]).all(), (data.strides, axes)


def test_variances_of_float16_in_float64():
    rng = np.random.default_rng(5)
    columns = (rng.normal(size=(40, 7)) * np.exp2(rng.integers(-13, 7, (40, 7)))).astype("f2")
    for terms in [*columns, [-38.0625, -59.875, -0.006416, -55.21875, 0.19592, 6.0546875, -0.0067787]]:
        data = np.tile(np.array(terms, "f2")[None, :, None], (20, 1, 3))
        right = float(exact("var", data[0, :, 0]))
        assert (np.abs(bcast.var(data, axis=1, dtype="f8") - right) <= 4 * np.spacing(right)).all()


@pytest.mark.parametrize("dtype", ["u1", "i4", "f2", "f4", "f8", ">f4", "c8", "g"])
@pytest.mark.parametrize("name", ["sum", "mean"])
def test_masks(name, dtype):
    """Items outside of the mask may have any values; masks without items warn like NumPy."""
    rng = np.random.default_rng(0)
    for shape in ((60, 90, 3), (7, 3, 5)):
        x = (rng.random(shape) * 100).astype(dtype)
        masks = [rng.random(shape) > 0.5, rng.random((*shape[:2], 1)) > 0.5, rng.random(shape[1:]) > 0.3]
        masks += [np.array([True, False, True]) if shape[2] == 3 else np.ones(5, bool)]
        for mask, axis, keeps in itertools.product(masks, ((0, 1), 0, (0, 2), None), (False, True)):
            if x.dtype.kind == "f":
                x[~np.broadcast_to(mask, shape)] = np.nan
            wide = x.astype("G" if dtype == "c8" else "g")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                right = getattr(np, name)(wide, axis, where=mask, keepdims=keeps)
                own = getattr(np, name)(x, axis, where=mask, keepdims=keeps)
                found = getattr(bcast, name)(x, axis, where=mask, keepdims=keeps)
            assert type(found) is type(own)
            assert found.dtype == own.dtype
            if dtype in (">f4", "c8", "g"):  # which NumPy's function does
                np.testing.assert_array_equal(found, own)
                continue
            room = 4 * float(np.finfo(own.dtype).eps) if own.dtype.kind == "f" else 0
            with np.errstate(over="ignore"):
                np.testing.assert_allclose(found, np.asarray(right).astype(own.dtype), rtol=room)
    x = np.ones((5000, 3), dtype)
    mask = np.ones((5000, 3), bool)
    mask[:, 1] = False
    if name == "mean":
        with pytest.warns(RuntimeWarning, match="empty slice|invalid"):
            found = bcast.mean(x, 0, where=mask)
        assert np.isnan(found).tolist() == [False, True, False]


@pytest.mark.parametrize("name", ["var", "std", "nanvar", "nanstd"])
def test_numpys_default_for_correction_is_the_default(name):
    no_value = getattr(np, "_NoValue")  # noqa: B009 (stubs do not know it)
    data = np.array([1.0, 2.0, 6.0])
    assert getattr(bcast, name)(data, correction=no_value) == getattr(bcast, name)(data)
    assert getattr(bcast, name)(data, ddof=1, correction=no_value) == getattr(bcast, name)(data, ddof=1)
