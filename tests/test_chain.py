"""`chain`: the bits, dtypes, warnings and exceptions of a conversion and then one ufunc after the other in NumPy.

`_arithmetic.py` draws random chains; `test_arithmetic.py` and `fuzz.py` run them. `test_elementwise.py` tests bad
arguments.
"""

import fractions
import functools
import itertools
import math
import random
import warnings

import numpy as np
import pytest
from _arithmetic import (
    REALS,
    UNARY,
    bits,
    chained,
    draw_items,
    draw_small,
    tells_no_errors,
    told,
    with_plain_bools,
)
from _calls import Array
from _ways import COMPUTED, computed
from test_arithmetic import raising
from test_converted import peak_of
from test_errors import untouched

import bcast

pytest.importorskip("ml_dtypes")


def check(data, *steps, own=None, mode="numpy", axis=-1, **options):
    """Make a call beside NumPy's, whose `own` steps have reshaped operands; the second of two `out` is NumPy's."""
    out, numpys_out = options.pop("out", (None, None))
    expected, warned = told(lambda: chained(data, *own or steps, out=numpys_out, **options))
    result, mine = told(lambda: bcast.chain(data, *steps, mode=mode, axis=axis, out=out, **options))
    assert not isinstance(expected, tuple), expected
    assert not isinstance(result, tuple), result
    assert result.dtype == expected.dtype
    assert bits(result) == bits(expected)
    assert mine == warned
    assert result is out if out is not None else result.flags.c_contiguous and result.flags.owndata


def fitting(rng, dtype, to, shape):
    """Items of a dtype; if they become integers, such as these hold."""
    narrow = np.dtype(to).kind in "iu" and np.dtype(dtype).kind not in "iub"
    items = (draw_small if narrow else draw_items)(rng, np.dtype(dtype), int(np.prod(shape))).reshape(shape)
    return with_plain_bools(items)  # for other packages' conversions, which read the bytes


# Conversions.


@pytest.mark.parametrize("to", REALS)
@pytest.mark.parametrize("dtype", REALS)
def test_every_pair_of_dtypes_at_both_ends(dtype, to):
    """Results for values beyond the integers depend on the loop, so these calls are compared in the same form."""
    rng, ways = random.Random(f"{dtype} {to}"), itertools.cycle(COMPUTED)
    options = {"dtype": to, "casting": "unsafe"}
    for shape in (5,), (700, 3), (9000,), (3, 40, 50):
        data = fitting(rng, dtype, to, shape)
        for array in (data, data.T, data[::-2]):
            with computed(*next(ways)):
                check(array, **options)
                check(array, (np.maximum, 3), np.square, **options)
                outs = [np.zeros(2 * array.size, to)[::2].reshape(array.shape) for _ in range(2)]
                check(array, (np.maximum, array[:1]), casting="unsafe", out=outs)
    generator = np.random.default_rng(1)
    for n, way in itertools.product((1, 7, 3001, 40_000), COMPUTED if np.dtype(dtype).kind not in "iub" else ()):
        data = generator.standard_normal(n) * 10.0 ** generator.integers(-2, 25, n)
        data[generator.integers(0, n, 5)] = generator.choice((np.nan, np.inf, -np.inf), 5)
        with np.errstate(all="ignore"):
            data = data.astype(dtype)
        with computed(*way):
            check(data, **options)
            check(data, (np.multiply, 1), casting="unsafe", out=[np.zeros(n, to) for _ in range(2)])


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "bfloat16"])
@pytest.mark.parametrize("value", [np.nan, -np.nan, np.inf, -np.inf, 0.0, 1e300, 1e-300], ids=str)
def test_vector_code_reports_the_errors_of_single_items(value, dtype):
    """Rows of one number, of whole vectors of it and some more: by either compiler, on every target."""
    with np.errstate(all="ignore"):
        one = np.full(1, value).astype(dtype)
    for to, way in itertools.product(("?", "f2", "f4", "f8", "c8", "c16", "bfloat16"), COMPUTED):
        expected, warned = told(lambda to=to: one.astype(to))
        for n in 1, 2, 3, 4, 7, 8, 15, 16, 31, 33, 64, 257, 600:
            data = np.full(n, one)
            with computed(*way):
                result, mine = told(lambda data=data, to=to: bcast.chain(data, dtype=to, casting="unsafe"))
            assert bits(result) == bits(np.full(n, expected))
            assert mine == warned


@pytest.mark.parametrize("way", COMPUTED)
@pytest.mark.parametrize("name", ["maximum", "minimum", "less", "less_equal", "greater", "equal", "not_equal"])
def test_a_loop_without_errors_reports_none(name, way):
    """NumPy says which loops have no floating-point errors: from 2.5 on comparisons of bfloat16 are among them."""
    ufunc = getattr(np, name)
    if not tells_no_errors(ufunc, "bfloat16"):
        pytest.skip("this NumPy says that its loop has errors")
    for shape in (1,), (9,), (700,), (40, 50), (3, 40, 50):
        data, operand = np.full((2, *shape), np.nan, "bfloat16")
        operand[..., ::2] = 1
        with computed(*way), warnings.catch_warnings():
            warnings.simplefilter("error")
            for array, other in (data, operand[:1]), (data.T, operand.T), (data[::-2], operand[-1]):
                result = bcast.chain(array, (ufunc, other))
                assert bits(result) == bits(bcast.elementwise(ufunc, array, other))
                bcast.chain(array, (ufunc, other), (np.logical_or, 0), dtype="bfloat16", casting="unsafe")


# Layouts.


@pytest.mark.parametrize("way", COMPUTED)
@pytest.mark.parametrize("dtype", ["f2", "f4"])
def test_windows_that_overlap_in_long_columns(dtype, way):
    """Neighbours in a column are closer in memory than those in a row, and more than a block has items."""
    items = np.arange(4000) % 251
    windows = np.lib.stride_tricks.sliding_window_view(items.astype(dtype), 800)[:3100, ::2]
    operand = windows.astype(np.dtype(dtype).newbyteorder(), order="C")
    with computed(*way):
        check(windows, (np.add, operand), np.square)
        result = bcast.elementwise(np.subtract, windows, operand, out=np.ones(windows.shape, dtype))
    assert not result.any()


@pytest.mark.parametrize("way", COMPUTED)
@pytest.mark.parametrize("axes", list(itertools.permutations(range(4))))
def test_axes_in_any_order(axes, way):
    items = np.arange(7 * 20 * 5 * 40).reshape(7, 20, 5, 40)
    steps = [(np.add, items[:1, :1].transpose(axes)), (np.subtract, items[:, :1, :1, :1].transpose(axes).astype("f4"))]
    for dtype in "u1", ">f4":
        data = items.astype(dtype).transpose(axes)
        outs = [np.zeros(data.shape, ">f4")[::-1, ::2] for _ in range(2)]
        with computed(*way):
            check(data, *steps, np.square, dtype="f4")
            check(data[::-1, ::2], dtype="f8", out=outs)


@pytest.mark.parametrize("dtype", ["f2", ">f4", "f8", ">f8", ">c16", "?"])
@pytest.mark.parametrize("steps", [(), ((np.add, 1.0), np.sqrt), ([np.add, np.float64(1)],)], ids=len)
@pytest.mark.parametrize("own", ["f8", ">f8"])
def test_no_temporary_between_data_and_out(own, steps, dtype):
    data, out = np.ones((300, 400), own), np.zeros((300, 400), dtype)
    call = functools.partial(bcast.chain, data, *steps, casting="unsafe", out=out)
    call()
    assert peak_of(call) < data.nbytes // 8


def test_out_may_be_an_input_without_a_copy():
    data = np.ones((300, 400))
    call = functools.partial(bcast.chain, data, (np.multiply, np.ones(400)), (np.maximum, data), out=data)
    call()
    assert peak_of(call) < data.nbytes // 8


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("step", [slice(None, None, -1), slice(None, None, -3), slice(None, None, 2)], ids=str)
@pytest.mark.parametrize("function", [np.exp, np.log, np.cbrt, np.log1p, np.tan], ids=str)
def test_loops_that_differ_on_items_side_by_side(function, step, dtype):
    """On some processors, the last bits differ."""
    data = np.linspace(0.1, 3, 4003).astype(dtype)[step]
    check(data, function)
    check(data, function, (np.add, 1))
    check(data, (np.add, 1), function)
    check(data, function, dtype="f8")


@pytest.mark.parametrize("steps", [(), (np.sqrt,)], ids=len)
def test_the_order_of_bytes_is_a_conversion(steps):
    swapped, native = np.ones(5, ">f4"), np.ones(5, "f4")
    for data, options in (swapped, {"dtype": "f4"}), (native, {"dtype": ">f4"}), (native, {"out": np.zeros(5, ">f4")}):
        with pytest.raises(TypeError, match="casting='no'"):
            bcast.chain(data, *steps, casting="no", **options)
        assert not options.get("out", np.zeros(1)).any()
        outs = {"out": [np.zeros(5, ">f4") for _ in range(2)]} if "out" in options else options
        check(data, *steps, casting="equiv", **outs)


# Pictures.


@pytest.mark.parametrize("way", COMPUTED)
@pytest.mark.parametrize("dtypes", ["u1 f4 u1", "u2 f2 f4", "f4 bfloat16 >f2", "i4 f8 f2"])
def test_pictures_to_channels_first_and_back(way, dtypes):
    rng = random.Random(f"{way} {dtypes}")
    given, own, to = dtypes.split()
    cut = (np.multiply, 30), (np.fmin, 255), (np.fmax, 0)
    for shape in (2, 37, 53, 3), (1, 224, 224, 3), (3, 5, 1100, 4), (1, 90, 91, 1), (2, 16, 16, 64):
        pictures, back = fitting(rng, given, "u1", shape), fitting(rng, own, "u1", shape)
        steps = [(ufunc, fitting(rng, own, "u1", shape[-1:])) for ufunc in (np.subtract, np.divide)]
        turned = [(ufunc, each.reshape(-1, 1, 1)) for ufunc, each in steps]
        first, back = pictures.transpose(0, 3, 1, 2), back.reshape(shape[0], shape[-1], *shape[1:-1])
        with computed(*way):
            check(pictures, *steps, dtype=own)
            check(first, *steps, own=turned, dtype=own, mode="pdpd", axis=1)
            out = [np.zeros(first.shape, to) for _ in range(2)]
            options = {"dtype": own, "out": out, "casting": "unsafe"}
            check(first, *steps, *cut, own=(*turned, *cut), mode="pdpd", axis=1, **options)
            check(back.transpose(0, 2, 3, 1), *cut, **options | {"out": [np.zeros(shape, to) for _ in range(2)]})


def test_chains_of_any_length():
    data, rows, column = np.arange(12000.0).reshape(4000, 3), np.ones((5, 1, 1, 1)), np.full((4000, 1), 0.5)
    for count in range(21):
        steps = [(np.multiply, 0.999), np.negative, (np.add, column), (np.subtract, data)] * 5
        check(data, *steps[:count])
        check(data.astype("i2"), *steps[:count], dtype="f4")
    check(data[:1], (np.add, data), (np.multiply, rows), (np.less, 5), np.logical_not, (np.subtract, column[:1]))
    check(np.array(2.5, "f4"), (np.add, 1), (np.multiply, data), dtype="f8")
    check(np.array(3, "u1"), (np.add, 255), (np.less, 3))
    check(data[:0], (np.add, data[:1]), np.sqrt, dtype="c16")
    check(data[:, :0], (np.divide, column), out=[np.zeros((4000, 0), "f4") for _ in range(2)])
    check(data, dtype="f4", out=[np.zeros((4000, 3), ">f8") for _ in range(2)])


# Errors of fused steps, which are checked once for many blocks.


@pytest.mark.parametrize("way", COMPUTED)
@pytest.mark.parametrize("dtype", ["f4", "u1"])
@pytest.mark.parametrize("shape", [(400_000,), (130_000, 3), (3, 140_000)])
def test_one_item_in_error(shape, dtype, way):
    rng = np.random.default_rng(1)
    data = rng.integers(0, 200, shape).astype(dtype)
    scale, shift = np.float32([1.5, 2, 2.5]), np.full(shape, 7, "f4")
    rows = (scale, scale - 1) if shape[-1] == 3 else (2.0, np.full(shape, 3, "f4"))
    for place in 0, 1, data.size // 3, data.size - 40_000, data.size - 1:
        for value in 0, 1e-38, np.inf, np.nan, 3e38:
            shift.flat[place] = value
            steps = (np.multiply, rows[0]), (np.subtract, rows[1]), (np.divide, shift)
            with computed(*way):
                check(data, *steps, dtype="f4")
                check(data.astype("f4"), steps[2])  # a single step is checked once for a share
                check(data, *steps, (np.subtract, np.float32(np.inf)), dtype="f4", casting="unsafe", out=[
                    np.zeros(shape, "f2") for _ in range(2)
                ])  # fmt: skip
        shift.flat[place] = 7


@pytest.mark.parametrize("way", COMPUTED)
def test_errors_of_data_that_are_stretched(way):
    """Steps on one item for all of a row are single, those after them fused."""
    rng = random.Random(3)
    for _ in range(300):
        m, n = rng.choice([1, 2, 40, 300]), rng.choice([2, 8, 130, 4000])
        data = np.array(rng.choices([1, 7, 200], k=m)).reshape(m, 1).astype(rng.choice(["u1", "f4"]))
        steps = []
        for _ in range(rng.randint(2, 5)):
            items = np.full(rng.choice([(m, 1), (n,), (m, n), (1,)]), 3, "f4")
            if rng.random() < 0.5:
                items.flat[rng.randrange(items.size)] = rng.choice([0, 1e-38, 3e38, np.inf])
            steps.append((rng.choice([np.add, np.subtract, np.multiply, np.divide]), items))
        with computed(*way):
            check(data, *steps, dtype="f4")


# Bounds and decimals, as by NumPy's functions, which are no ufuncs.

BOUNDS = [(0, 255), (-5, 5), (0, None), (None, 20), (None, None), (5, 2), (-300, 300), (2**70, None), (None, 2**70)]
BOUNDS += [(0.0, 1.5), (-0.0, 0), (0.0, -0.0), (np.nan, 3), (1.0, np.nan), (True, 3), (-np.inf, np.inf), (1j, 2)]
BOUNDS += [(np.float32(2), 5), (np.int8(-3), np.uint8(40)), ([0.0, 1, 2], 9), (0, [5.0, 0.0, 7]), (1, [[2.5]])]
BOUNDS += [([0.5, -0.0, np.nan], [3.0, 0.0, 1]), (np.int16([1, 2, 3]), np.int16([4, 1, 9])), ([1.0, 2, 3], [5.0, 1, 9])]


def with_odd_items(rng, dtype, shape):
    """Items of a dtype around 0; zeros of both signs, NaN, infinities and halves among them, if it has such."""
    data = rng.standard_normal(shape) * 60
    data.flat[::5], data.flat[1::7], data.flat[2::9], data.flat[3::8], data.flat[4::11] = -0.0, np.nan, 0, 2.5, np.inf
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return data.astype(dtype)


@pytest.mark.parametrize("dtype", [*REALS, "c8"])
def test_bounds(dtype):
    rng, ways = np.random.default_rng(5), itertools.cycle(COMPUTED)
    for shape, (low, high) in itertools.product([(7, 3), (2, 900, 3), (3001, 3)], BOUNDS):
        data = with_odd_items(rng, dtype, shape)
        expected, _ = told(lambda: chained(data, (np.clip, low, high)))  # noqa: B023
        if isinstance(expected, tuple):
            with untouched(shape, data.dtype) as out, pytest.raises(expected[0]):
                bcast.chain(data, (np.maximum, data), (np.clip, low, high), out=out, casting="unsafe")
            continue
        with computed(*next(ways)):
            check(data, (np.clip, low, high))
            check(data[::-1], (np.add, np.ones(3, "i1")), (np.clip, low, high), (np.maximum, 3), (np.clip, low, high))


@pytest.mark.parametrize("n", [5, 4096, 4097, 65_537])  # 4096 bounds are checked
@pytest.mark.parametrize("dtype", [dtype for dtype in REALS if dtype not in ("?", "bfloat16")])
def test_bounds_of_which_one_is_odd(dtype, n):
    """For NaN, and for zeros of both signs, NumPy's result depends on how its loop gets the bounds."""
    data = with_odd_items(np.random.default_rng(7), "f4", (n,))
    for odd in (1.0, 0.0, -0.0) + (np.nan,) * (np.dtype(dtype).kind == "f"):
        bounds = np.full(2 * n, 1, dtype)
        bounds[[n - 1, 2 * n - 2]] = odd
        data[-1] = 0.0 if np.signbit(odd) else -0.0
        for bound in bounds[:n], bounds[::2]:
            check(data, (np.clip, bound, 5.0))
            check(data, (np.clip, -5.0, bound))
            check(data, (np.clip, bound, bound), np.negative)


def test_every_float16_is_rounded():
    halves = np.arange(1 << 16, dtype="u2").view("f2")
    for array in halves, halves[::-1], halves.reshape(256, 256).T, halves[5:6]:
        for step in np.round, np.rint, (np.round, 1), (np.round, 3), (np.round, 6), (np.round, -1):
            check(array, step)
            check(array, step, (np.multiply, np.float16(0.5)), step, dtype="f4")


@pytest.mark.parametrize("way", COMPUTED)
@pytest.mark.parametrize("dtype", ["u1", "i2", "f4", "f8"])
def test_columns_that_become_rows(dtype, way):
    """Rows whose neighbours in memory are items of other rows: fewer of these than a line has, and more."""
    with computed(*way):
        for m, n in itertools.product((2, 4, 5, 31, 63, 64, 65), (383, 384, 400, 1030)):
            data = np.resize(np.arange(1, 100, dtype=dtype), m * n).reshape(n, m).T
            check(data, (np.multiply, np.arange(n, dtype="f4")), (np.clip, 3, 90), (np.add, data))
            check(data, (np.clip, 3, 90), out=[np.zeros((m, n), "i8") for _ in range(2)], casting="unsafe")


@pytest.mark.parametrize("dtype", [*REALS, "c8"])
def test_decimals(dtype):
    rng, ways = np.random.default_rng(6), itertools.cycle(COMPUTED)
    rounded = (None, 0, 1, 2, -1, -2, 9, 22, 23, 40, np.int8(1))
    for function, decimals in itertools.product((np.round, np.around), rounded):
        data = with_odd_items(rng, dtype, (2, 900, 3))
        step = function if decimals is None else (function, decimals)
        if data.dtype.kind == "b" and decimals:
            with pytest.raises(TypeError):
                bcast.chain(data, step)
            continue
        with computed(*next(ways)):
            check(data, step)
            check(data[:, :9], (np.add, data[:1, :1]), step, (np.multiply, 3), step, step)


def test_bounds_fit_under_the_rule():
    data, columns = np.arange(24.0).reshape(2, 3, 4), np.array([[2.0, 5], [7, 9], [11, 20]])
    low, high = columns.T
    expected = np.clip(data, low[:, np.newaxis], high[:, np.newaxis])
    assert bits(bcast.chain(data, (np.clip, low, high), axis=1)) == bits(expected)
    assert bits(bcast.chain(data[:1], (np.clip, data, None), np.negative)) == bits(-np.maximum(data[:1], data))
    assert bcast.chain(data[0, 0], (np.clip, low.reshape(3, 1), high.reshape(3, 1, 1))).shape == (3, 3, 4)
    for mode in "unidirectional", "none":
        with pytest.raises(ValueError, match="expected"):
            bcast.chain(data[0], np.negative, (np.clip, data[0], data), mode=mode)
    assert bits(bcast.chain(data, (np.clip, None, data - 1), mode="none")) == bits(data - 1)


def test_steps_that_change_nothing():
    """Rounding of integers, and bounds that are left out or beyond all items, of data that are repeated by strides."""
    for data in (
        np.arange(5000),
        np.broadcast_to(np.array([[2], [3]]), (2, 4000)),
        np.broadcast_to(np.int8(7), (3, 700)),
    ):
        for steps in (np.round,), ((np.clip, None, None),), ((np.clip, -(2**70), 2**70), (np.round, 3)):
            check(data, *steps)
            check(data, *steps, dtype="f4")
            check(data, *steps, out=[np.zeros(data.shape, "f8") for _ in range(2)])
            check(data, *steps, (np.add, data), *steps)
            result = bcast.chain(data, *steps)
            assert not np.shares_memory(result, data)


def test_chains_of_many_bounds():
    """Each has two operands, and each rounding is three steps."""
    data = np.arange(9000.0).reshape(3000, 3)
    for count in range(12):
        check(data, *[(np.clip, [count + 1.0, 2, 3], 8000.5), (np.round, 1), (np.add, np.int8(1))] * count)
        check(data.astype("u1"), *[(np.round, 1), (np.add, np.float32(1))] * count, dtype="f4")


# Casting 'saturate': rounded, ties to even, and cut to the range of integers; NaN becomes 0, and nothing warns.

INTEGERS = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]
POWERS = [2.0**n for n in (7, 8, 15, 16, 31, 32, 63, 64, 100)]
BESIDE = [0, -0.75, -0.5, -0.25, 0.25, 0.5, 0.75, 1.5, 2.5, -1, 1]
TO_SATURATE = [sign * power + more for sign in (-1, 0, 1) for power in POWERS for more in BESIDE]
TO_SATURATE += [np.nan, np.inf, -np.inf, 1e30, -1e30, 6e4, -0.0, 1e-40]


def to_saturate(dtype):
    """Items of a dtype at the bounds of all integers, halfway between two of these, and odd ones."""
    rng = np.random.default_rng(7)
    if np.dtype(dtype).kind in "iu":
        limits = np.iinfo(dtype)
        ends = [limits.min, limits.max, 0, 1, *(2**n + more for n in (7, 8, 15, 16, 31, 32) for more in (-1, 0, 1))]
        ends = [end for end in (*ends, *(-end for end in ends)) if limits.min <= end <= limits.max]
        return np.concatenate([np.array(ends, dtype), np.frombuffer(rng.bytes(3000 * limits.bits // 8), dtype)])
    with np.errstate(all="ignore"):
        spread = rng.standard_normal(2500) * 10.0 ** rng.integers(-1, 20, 2500)
        return np.concatenate([np.array(TO_SATURATE), spread]).astype(dtype)


def saturated(numbers, dtype):
    """The oracle, by Python's exact numbers: `round` takes the even one of two."""
    limits, results = np.iinfo(dtype), []
    for number in numbers.ravel():
        value = number.item() if numbers.dtype.kind in "iu" else float(number)
        if value != value:
            results.append(0)
        elif abs(value) == np.inf:
            results.append(limits.max if value > 0 else limits.min)
        else:
            results.append(min(max(round(value), limits.min), limits.max))
    return np.array(results, dtype).reshape(numbers.shape)


@pytest.mark.parametrize("dtype", [dtype for dtype in REALS if dtype != "?"])
def test_saturation(dtype):
    ways, rng = itertools.cycle(COMPUTED), np.random.default_rng(8)
    items = to_saturate(dtype)
    for to in INTEGERS:
        right = saturated(items, to)
        for count in 1, 7, 64, 2501, items.size:
            places = rng.permutation(items.size)[:count] if count < items.size else np.arange(count)
            data, expected, outs = items[places], right[places], [np.zeros(count, to) for _ in range(3)]
            outs.append(np.zeros(count, np.dtype(to).newbyteorder()))
            with computed(*next(ways)):
                results = [told(lambda: bcast.chain(data, dtype=to, casting="saturate"))]  # noqa: B023
                for out, steps in zip(outs, ((), (np.positive,), (np.round,), ()), strict=True):
                    call = functools.partial(bcast.chain, data, *steps, out=out, casting="saturate")
                    results.append(told(call))
                    assert results[-1][0] is out
            for result, warned in results:
                assert not warned
                assert result.dtype.type is np.dtype(to).type
                assert result.tolist() == expected.tolist()


def packages_reals():
    """Yield all real numbers of another package, and which of these are integers."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    for name in sorted(dir(ml_dtypes)):
        if name.startswith(("float", "bfloat", "int", "uint")) and isinstance(getattr(ml_dtypes, name), type):
            yield np.dtype(getattr(ml_dtypes, name)), name.startswith(("int", "uint"))


def test_saturation_of_other_packages_numbers():
    """Each of the numbers that a byte can be, to and from integers of NumPy's and of the package."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    reals = dict(packages_reals())
    whole = [dtype for dtype, is_whole in reals.items() if is_whole]
    bounds = {dtype: (int(ml_dtypes.iinfo(dtype).min), int(ml_dtypes.iinfo(dtype).max)) for dtype in whole}
    bounds |= {np.dtype(each): (np.iinfo(each).min, np.iinfo(each).max) for each in INTEGERS}
    for own in (*reals, *map(np.dtype, ("f2", "f4", "f8", "g", "i1", "i8", "u8"))):
        if own.itemsize > 1:
            data = to_saturate(own)
        elif own in bounds:
            data = np.arange(bounds[own][0], bounds[own][1] + 1).astype(own)
        else:
            data = np.arange(256, dtype="u1").view(own)
        with np.errstate(all="ignore"):
            values = [int(each) if own in bounds else float(each) for each in data]
        for to, (least, most) in bounds.items():
            right = [
                0 if value != value
                else (most if value > 0 else least) if abs(value) == np.inf
                else min(max(round(value), least), most)
                for value in values
            ]  # fmt: skip
            out = np.zeros(data.shape, to)
            for call in (
                lambda: bcast.chain(data, dtype=to, casting="saturate"),  # noqa: B023
                lambda: bcast.chain(data, out=out, casting="saturate"),  # noqa: B023
                lambda: bcast.chain(data[::-1], out=out[::-1], casting="saturate")[::-1],  # noqa: B023
            ):
                result, warned = told(call)
                assert not warned, (own, to)
                assert result.dtype == to
                assert result.astype(object).tolist() == right, (own, to)


def test_long_doubles_between_two_doubles_saturate():
    """The nearest integer is that of the number itself."""
    for power in (31, 62, 63):
        for more in (-1.5, -0.5, 0, 0.5, 1.5):
            number = np.longdouble(2) ** power + more
            limits = np.iinfo("i8")
            exact = fractions.Fraction(*number.as_integer_ratio())
            right = min(max(round(exact), limits.min), limits.max)
            assert bcast.chain(np.array([number, -number]), dtype="i8", casting="saturate").tolist() == [
                right, min(max(round(-exact), limits.min), limits.max),
            ]  # fmt: skip


def test_a_masked_out_is_handed_to_numpy():
    """Its class has a say in what becomes of the mask, as in one call of NumPy's for each step."""
    for steps in (((np.add, 1),), (np.negative, (np.multiply, 2)), ((np.add, 1), (np.round, 1)), ((np.clip, 0, 1),)):
        outs = [np.ma.array([7.0, 7, 7], mask=[0, 1, 0]) for _ in range(2)]
        result = bcast.chain(np.arange(3.0), *steps, out=outs[0])
        right = np.arange(3.0)
        for i, step in enumerate(steps):
            function, *own = step if isinstance(step, tuple) else (step,)
            right = function(right, *own, **({"out": outs[1]} if i == len(steps) - 1 else {}))
        assert result is outs[0]
        assert type(right) is type(result)
        assert result.data.tolist() == right.data.tolist()
        assert np.ma.getmaskarray(result).tolist() == np.ma.getmaskarray(right).tolist()
    outs = [np.ma.array([7.0, 7, 7], mask=[0, 1, 0]) for _ in range(2)]
    assert bcast.chain(np.arange(3), out=outs[0]) is outs[0]
    np.copyto(outs[1], np.arange(3))
    assert outs[0].data.tolist() == outs[1].data.tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match=r"^`out` expected shape \(3,\), got \(2,\)"):
        bcast.chain(np.arange(3.0), (np.add, 1), out=np.ma.zeros(2))
    with pytest.raises(ValueError, match=r"^`casting` expected one of NumPy's rules for operands that override NumPy"):
        bcast.chain(np.arange(3.0), out=np.ma.zeros(3, "u1"), casting="saturate")


@pytest.mark.parametrize("way", COMPUTED)
@pytest.mark.parametrize("shape", [(5, 7, 3), (300, 401), (2, 90, 91, 3), (70_001,)])
def test_bytes_to_bytes_by_float32(shape, way):
    """Fused steps: whole tiles of vectors, the remaining items, and operands by channel and by item."""
    rng = np.random.default_rng(9)
    data, scale = rng.integers(0, 256, shape, np.uint8), np.float32([1.5, -2.25, 0.3])
    shift = (rng.standard_normal(shape) * 300).astype("f4")
    for odd in None, np.nan, np.inf, -np.inf, 2.5, 3e38:
        if odd is not None:
            shift.flat[rng.integers(0, data.size, 3)] = odd
        rows = scale if shape[-1] == 3 else 1.7
        numbers = chained(data, (np.multiply, rows), (np.add, shift), dtype="f4")
        for source in data, data[::-1], data.astype("f4"):
            numbers = numbers if source is data else chained(source, (np.multiply, rows), (np.add, shift), dtype="f4")
            steps, expected = ((np.multiply, rows), (np.add, shift)), np.zeros(shape, "u1")
            known = ~np.isnan(numbers)
            expected[known] = np.clip(np.rint(numbers[known]), 0, 255).astype("u1")
            with computed(*way):
                out = np.zeros(shape, "u1")
                whole = functools.partial(bcast.chain, source, *steps, dtype="f4", out=out, casting="saturate")
                result, warned = told(whole)
                assert not warned
                assert bits(result) == bits(expected)
                for cut in [(np.clip, 0, 255)], [(np.maximum, 0), (np.minimum, 255)], [np.round, (np.clip, 20, 30)]:
                    outs = [np.zeros(shape, "u1") for _ in range(2)]
                    check(source, *steps, *cut, dtype="f4", casting="unsafe", out=outs)
                    check(source, *steps, *cut, (np.add, 0.25), np.rint, dtype="f4")
                    check(source, *cut, dtype="f4", out=[np.zeros(shape, "f2") for _ in range(2)])


def test_conversions_that_saturate():
    """Real numbers to integers; all else is as by 'same_kind'."""
    for data, dtype in (
        (np.ones(3, "c8"), "u1"),
        (np.ones(3), "?"),
        (np.array(["1"]), "u1"),
        (np.ones(3, "m8[s]"), "u1"),
    ):
        for options in {"dtype": dtype}, {"out": np.zeros(3, dtype)[: data.size]}:
            with pytest.raises(TypeError, match="casting='saturate'"):
                bcast.chain(data, casting="saturate", **options)
    assert bcast.chain(np.array([True, False]), dtype="i1", casting="saturate").tolist() == [1, 0]
    with np.errstate(over="ignore"):
        assert bcast.chain([1e10, 2.0], dtype="f2", casting="saturate").tolist() == [np.inf, 2]
    assert bcast.chain(300, dtype="u1", casting="saturate").tolist() == 255
    assert bcast.chain(-2.5, np.round, out=np.zeros((), "i1"), casting="saturate").tolist() == -2
    with pytest.raises(ValueError, match=r"`casting` expected one of .*'saturate'"):
        bcast.chain(1, casting="maybe")
    for call in bcast.broadcast, functools.partial(bcast.elementwise, np.add):
        with pytest.raises(ValueError, match="`casting` expected"):
            call(1, (1,), casting="saturate")


# Overlap.

MEMORY = np.arange(40 * 40 * 4) % 113
OVERLAPS = {
    "the data": (lambda m: m[:1600].reshape(40, 40), lambda m: m[:1600].reshape(40, 40)),
    "transposed": (lambda m: m[:1600].reshape(40, 40), lambda m: m[:1600].reshape(40, 40).T),
    "an item later": (lambda m: m[:6000].reshape(60, 100), lambda m: m[1:6001].reshape(60, 100)),
    "an item earlier": (lambda m: m[1:6001].reshape(60, 100), lambda m: m[:6000].reshape(60, 100)),
    "backwards": (lambda m: m[:6000], lambda m: m[5999::-1]),
    "every second": (lambda m: m[:3000], lambda m: m[:6000:2]),
    "channels first": (lambda m: m[:4800].reshape(40, 40, 3).transpose(2, 0, 1), lambda m: m[:4800].reshape(3, 40, 40)),
    "a narrower dtype": (lambda m: m[:3000], lambda m: m.view("u1")[100:3100]),
    "a wider dtype": (lambda m: m.view("u1")[100:3100], lambda m: m.view(f"f{2 * m.itemsize}")[:3000]),
}


@pytest.mark.parametrize("way", COMPUTED)
@pytest.mark.parametrize("dtype", ["f4", "i2", "f8", ">f4"])
@pytest.mark.parametrize("name", OVERLAPS)
def test_out_may_overlap_the_inputs(name, dtype, way):
    """Results are as if all operands had been copied first."""
    if name == "a wider dtype" and dtype != "f4":
        return
    for read in range(3):  # the data, or the operand of a step
        results = []
        for copies in (False, True):
            memory = MEMORY.astype(dtype)
            data, out = (make(memory) for make in OVERLAPS[name])
            inputs = [np.full(data.shape, 2, data.dtype) for _ in range(3)]
            inputs[read] = data.copy() if copies else data
            with computed(*way):
                steps = (np.add, inputs[1]), (np.maximum, inputs[2])
                (chained if copies else bcast.chain)(inputs[0], *steps, casting="unsafe", out=out)
            results.append(memory)
        np.testing.assert_array_equal(*results)


def test_steps_without_a_loop_are_refused_before_any_runs():
    dates = np.zeros(3, "M8[s]")
    for last in (np.bitwise_and, 2), (np.subtract, dates), np.invert:
        with untouched((2, 3), float) as out:
            for options in {}, {"out": out}:
                call = functools.partial(bcast.chain, np.zeros((2, 3)), (np.divide, 0), last, **options)
                (error, _), warned = told(call)
                assert issubclass(error, TypeError)
                assert not warned


# What no core runs.


def test_steps_of_other_dtypes():
    words, days = np.array([["a"], ["bc"]]), np.array(["2020-01-01", "2020-01-03"], "M8[D]")
    seven = np.frompyfunc(raising, 2, 1)
    for data, steps in (
        (words, ((np.add, "d"), (np.add, words.T), (np.equal, "bcdbc"), np.logical_not)),
        (words.astype("T"), ((np.multiply, 3), (np.add, words.T.astype("T")))),
        (words.astype("S"), ((np.add, np.bytes_(b"d")),)),
        (words, ()),
        (words.astype("O"), ((np.multiply, np.array([1, 2, 3])), (np.add, words.astype("O")), (np.not_equal, "aa"))),
        (np.arange(6).astype("O"), ((np.multiply, 2**70), np.negative, (np.less, -(2**71)))),
        (days, ((np.subtract, days[:1]), (np.divide, np.timedelta64(1, "h")), (np.multiply, 2))),
        (days, ((np.add, 3), (np.maximum, days[::-1]), np.isnat)),
        (np.arange(5), ((seven, 2), (np.add, 1))),
    ):
        check(data, *steps)
    check(np.array(["1", "-2"]), (np.add, 1), dtype="i4", casting="unsafe")
    check(np.array([1, 2]), (np.add, "x"), dtype="U", casting="unsafe")
    check(np.array([2, 1], "O"), np.sqrt, dtype="f4", casting="unsafe", out=[np.zeros(2, "O") for _ in range(2)])
    with untouched((9,), float) as out:
        for error, last in (KeyError, (seven, 2)), (OverflowError, (np.add, 300)), (ValueError, (np.power, [-1])):
            with pytest.raises(error):
                bcast.chain(np.arange(9, dtype="i1"), (np.add, 0), last, casting="unsafe", out=out)


def test_operands_are_treated_like_arrays_of_the_base_class():
    row = np.arange(3.0)
    for operand in [0, 1, 2], range(3), np.float32(2), Array(row):
        plain = np.asarray(operand)
        check(np.ones((2, 3), "f4"), (np.add, operand), (np.less, operand), own=[(np.add, plain), (np.less, plain)])
    assert bcast.chain(np.ones(2, "f4"), (np.add, 1.0), [np.less, True], (np.add, np.float64(1))).dtype == np.float64


class Half(np.float64):
    """A scalar that a user has made."""


@pytest.mark.parametrize("dtype", REALS)
def test_numpys_scalars(dtype):
    data = np.arange(1, 40).astype(dtype).reshape(13, 3)
    kinds = np.bool_, np.int8, np.uint16, np.int64, np.uint64, np.float16, np.float32, np.float64, Half
    for kind in kinds:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            check(data, (np.add, kind(1)), (np.maximum, kind(7)))
            if dtype not in ("?", "bfloat16") and kind is not np.bool_:
                check(data, (np.clip, kind(2), kind(9)))
                check(data, (np.clip, kind(2), 9), (np.multiply, np.complex64(1j)))
    with pytest.raises(TypeError):
        bcast.chain(data, (np.add, np.str_("x")))
    assert bcast.chain(np.float32(3), (np.add, np.float64(1))) == 4


# One function whose last bits depend on the sign of a loop's step.

FLIPS = [
    ((12_000,), (-1,)),
    ((30, 40), (-1, -1)),
    ((3, 9000), (1, -1)),
    ((3, 9000), (-1, -1)),
    ((30, 40), (-1, -2)),
    ((30, 40), (1, -1)),
    ((30, 40), (-1, 1)),
    ((4, 10, 30), (-1, -1, -1)),
    ((20, 30, 3), (1, 1, -1)),
]


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16", ">f8", "i4"])
@pytest.mark.parametrize(("shape", "steps"), FLIPS)
def test_flipped_data(shape, steps, dtype):
    generator = np.random.default_rng(len(shape))
    items = generator.random(math.prod(shape)) * 9 + 0.1
    if dtype[0] == "c":
        items = items * np.exp(1j * generator.random(items.size))
    data = items.astype(dtype).reshape(shape)[tuple(slice(None, None, step) for step in steps)]
    names = [*UNARY.split(), "exp2", "expm1", "log2", "log10", "log1p", "cbrt"]
    for name, array in itertools.product(names, (data, data.T)):
        ufunc = getattr(np, name)
        with np.errstate(all="ignore"):
            try:
                expected = ufunc(array)
            except TypeError:  # there is none for the dtype
                continue
            assert bits(bcast.chain(array, ufunc)) == bits(expected), name
            assert bits(bcast.chain(array, ufunc, out=np.empty_like(expected))) == bits(expected), name
            assert bits(bcast.chain(array, ufunc, np.square)) == bits(np.square(expected)), name
