"""The kernels of the adjoint, compared with exact sums, for all targets, dtypes and layouts."""

import contextlib
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from _ways import SUM_TARGETS, SUMS, summed
from hypothesis import strategies as st
from test_fenced import PAINT, rooms  # noqa: F401 (a fixture)
from test_ops import LAYOUTS, Arena
from test_properties import DATA_LAYOUTS, OUT_LAYOUTS, for_all, laid_out

from bcast import _reduction
from bcast._rules.alignment import Alignment

DTYPES = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16"]
with contextlib.suppress(ImportError):
    import ml_dtypes  # noqa: F401 (by which NumPy knows the name)

    DTYPES.append("bfloat16")
FLOATS = ["f2", "f4", "f8"]
# Shapes and the axes summed, each for a way of its own through plan and leaves.
CASES = {
    "all": ((1000,), (0,)),
    "all of nothing but ones": ((1, 1), (0, 1)),
    "few terms": ((8, 8), (0, 1)),
    "few rows": ((8, 8), (0,)),
    "few runs": ((8, 8), (1,)),
    "few rows, as many sums as the stack has room for": ((2, 512), (0,)),
    "few runs, as many sums as the stack has room for": ((512, 2), (1,)),
    "one axis of two": ((37, 41), (0,)),
    "the other": ((37, 41), (1,)),
    "short rows": ((3000, 3), (0,)),
    "short runs": ((3001, 3), (1,)),
    "runs of two": ((999, 2), (1,)),
    "runs of a vector": ((50, 4), (1,)),
    "runs of four vectors": ((150, 16), (1,)),
    "runs of six vectors": ((75, 24), (1,)),
    "runs of eight vectors": ((150, 32), (1,)),
    "many tiny runs": ((5003, 2), (1,)),
    "many runs of three": ((5003, 3), (1,)),
    "long runs": ((9, 5000), (1,)),
    "pairs": ((999, 2, 2), (1,)),
    "pairs in longer runs": ((83, 21, 2), (1,)),
    "pairs in one run": ((700, 2), (0,)),
    "pairs, with outer terms to be added": ((3, 40, 5, 2), (0, 2)),
    "fours": ((99, 3, 4), (1,)),
    "fours in longer runs": ((83, 9, 4), (1,)),
    "fours in one run": ((701, 4), (0,)),
    "fours, with outer terms to be added": ((5, 40, 3, 4), (0, 2)),
    "pairs longer than what is packed": ((3, 2500, 2), (1,)),
    "fours longer than what is packed": ((3, 1500, 4), (1,)),
    "threes in longer runs": ((83, 21, 3), (1,)),
    "sevens": ((83, 5, 7), (1,)),
    "tiny runs apart": ((90, 3, 7), (2,)),
    "short rows from four places": ((901, 40), (0,)),
    "rows a power of two apart": ((61, 2048), (0,)),
    "runs of more than a vector": ((43, 21), (1,)),
    "runs longer than what is packed": ((3, 9000), (1,)),
    "runs of many vectors": ((9, 333), (1,)),
    "channels": ((3, 16, 9, 9), (0, 2, 3)),
    "channels last": ((5, 9, 9, 16), (0, 1, 2)),
    "groups of short rows": ((300, 2, 3), (1,)),
    "runs of two items": ((90, 37, 2), (1,)),
    "runs of four items": ((90, 23, 4), (1,)),
    "runs of four items, a vector": ((90, 2, 4), (1,)),
    "long runs of four items": ((9, 2000, 4), (1,)),
    "groups of long rows": ((7, 20, 40), (1,)),
    "runs of few groups, as rows": ((60, 5, 3, 33), (0, 1, 3)),
    "short runs of few groups, and terms to be folded": ((320, 3, 3, 2), (1, 3)),
    "short runs, and terms outside few groups": ((3, 5, 7), (0, 2)),
    "short runs apart, in groups of two": ((7, 112, 2, 3), (3,)),
    "short runs apart, in groups of nine": ((3, 96, 9, 3), (3,)),
    "pairs in groups, and terms to be folded": ((40, 3, 5, 6, 2), (1, 3)),
    "few rows, longer than a block": ((3, 5000), (0,)),
    "seven rows in groups": ((5, 7, 37), (1,)),
    "groups of runs and segments": ((60, 100, 49), (0, 2)),
    "two kept, two summed": ((13, 14, 15, 16), (1, 3)),
    "two summed, two kept": ((13, 14, 15, 16), (0, 2)),
    "kept outermost in a block": ((30, 700, 2), (0, 2)),
    "kept too long for a block": ((9, 5000), (0,)),
    "kept in a block and too long for it": ((9, 3000, 2), (0, 2)),
    "alternating": ((2,) * 13, tuple(range(0, 13, 2))),
    "alternating from the other end": ((2,) * 12, tuple(range(0, 12, 2))),
    "several outer": ((3, 4, 5, 6, 7), (0, 2, 4)),
    "segments of a run": ((300_000,), (0,)),
    "segments of rows": ((100_000, 3), (0,)),
    "segments of an outer axis": ((90, 2, 2000), (0, 2)),
    "an axis of length 1 among them": ((5, 1, 6), (1, 2)),
}


def sum_over(grad, axes, dtype=None, out=None, times=None):
    source = tuple(1 if axis in axes else length for axis, length in enumerate(grad.shape))
    if out is None:
        out = np.full(source, 77, dtype or grad.dtype)
    assert _reduction.sum_onto(grad, Alignment(grad.shape, source), out, times) is out
    return out


def terms(shape, dtype, seed=0):
    """Terms whose sums are exact in float64: integers, small enough that float16 holds each."""
    rng = np.random.default_rng(seed)
    values = rng.integers(-100, 100, shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * rng.integers(-100, 100, shape)
    return values.astype(dtype)


def expected(grad, axes, dtype=None):
    """The exact sum of integers, wrapped or rounded once."""
    dtype = np.dtype(dtype or grad.dtype)
    wide = {"c": "c16", "f": "f8", "V": "f8"}.get(grad.dtype.kind, "i8")
    total = grad.astype(wide).sum(axis=axes, keepdims=True, dtype=wide)
    with np.errstate(over="ignore"):
        return total.astype(dtype)


@pytest.mark.parametrize(("shape", "axes"), CASES.values(), ids=CASES)
def test_every_way_and_dtype(shape, axes):
    for dtype, leaf in itertools.product(DTYPES, SUM_TARGETS):
        grad = terms(shape, dtype)
        with summed(leaf):
            np.testing.assert_array_equal(sum_over(grad, axes), expected(grad, axes), f"{dtype} {leaf}", strict=True)


def layouts(grad):
    """Yield the same values in layouts of every kind."""
    for layout in LAYOUTS:
        array = Arena(layout, grad.shape, grad.dtype).array
        array[...] = grad
        yield layout, array
    yield "swapped", grad.astype(grad.dtype.newbyteorder())
    yield "swapped and transposed", grad.T.astype(grad.dtype.newbyteorder()).T
    yield "repeated", np.broadcast_to(grad[:1], grad.shape)


@pytest.mark.parametrize("number", range(len(CASES)), ids=[*CASES])
def test_sums_do_not_depend_on_the_layout(number):
    shape, axes = [*CASES.values()][number]
    some = ["u1", "i2", "f2", "f4", "f8", "c8"]
    for dtype, leaf in itertools.product({some[number % 6], some[(number + 2) % 6]}, SUM_TARGETS):
        for layout, grad in layouts(terms(shape, dtype)):
            with summed(leaf):
                got = sum_over(grad, axes, np.dtype(dtype))
            right = expected(grad, axes, dtype)
            np.testing.assert_array_equal(got, right, f"{layout} {dtype} {leaf}", strict=True)


@pytest.mark.parametrize("leaf", SUM_TARGETS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_many_short_runs_and_long_rows(dtype, leaf):
    """Short runs come from four places by turns; the results of few rows begin anywhere in a line."""
    item = np.dtype(dtype).itemsize
    with summed(leaf):
        for n, m in (9, 1), (21, 2), (100, 1), (50, 4):
            grad = terms(((1 << 20) // (n * m * item) + 13, n, m), dtype, n)
            np.testing.assert_array_equal(sum_over(grad, (1,)), expected(grad, (1,)), strict=True)
        for rows, shift in (2, 0), (3, 1), (7, 13):
            grad = terms((rows, (1 << 20) // item + 29), dtype, rows)
            out = np.zeros((1, grad.shape[1] + shift), dtype)[:, shift:]
            np.testing.assert_array_equal(sum_over(grad, (0,), out=out), expected(grad, (0,)), strict=True)


@pytest.mark.parametrize("leaf", SUM_TARGETS)
@pytest.mark.parametrize("dtype", [*FLOATS, *DTYPES[13:]])
def test_items_of_a_row_are_summed_alike_at_any_position(dtype, leaf):
    rng = np.random.default_rng(8)
    for rows in (*range(2, 14), 30):
        terms, x = (rng.standard_normal((2, rows, 1)) * np.exp2(rng.integers(-6, 6, (2, rows, 1)))).astype(dtype)
        with summed(leaf):
            for m, times in itertools.product((3, 9, 33, 35, 38, 1029, 5003), (None, x)):
                grad, times = np.repeat(terms, m, 1), times if times is None else np.repeat(times, m, 1)
                got = sum_over(grad, (0,), times=times)
                assert got.tobytes() == m * got[:, :1].tobytes(), (rows, m)
                wide = np.zeros((1, 2 * m), got.dtype)[:, ::2]
                assert sum_over(grad, (0,), out=wide, times=times).tobytes() == got.tobytes(), (rows, m)


WIDENED = [
    (dtype, result)
    for dtype in ["?", *DTYPES[:11]]
    for result in ["i1", "u2", "i4", "u8", "f2", "f4", "f8"]
    if np.dtype(dtype).kind != "f" or np.dtype(result).kind == "f"
]


@pytest.mark.parametrize(("dtype", "result"), WIDENED)
def test_other_dtypes_of_the_result(dtype, result):
    for name in "short runs", "short rows", "channels", "all":
        shape, axes = CASES[name]
        grad = terms(shape, dtype)
        if grad.dtype.kind == "u":
            grad %= 50  # float16 holds the sum
        right = expected(grad, axes, result)
        for each in grad, grad.astype(grad.dtype.newbyteorder()):
            np.testing.assert_array_equal(sum_over(each, axes, result), right, strict=True)


# Runs and rows on both sides of a vector of 32 bytes, of four of them, and of what is too short for either.
NARROW = [((60, n), (1,)) for n in (3, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 300)]
NARROW += [((n, 40), (0,)) for n in (2, 7, 8, 9, 15, 16, 17, 33, 300)]
NARROW += [((37, n), (0,)) for n in (5, 15, 16, 17, 31, 33, 64, 100, 5000)]
NARROW += [((9, n, m), (1,)) for n in (5, 8, 16, 17, 33, 3000) for m in (2, 3, 4, 7)]
NARROW += [((300, 3, 20), (0, 2)), ((40, 3, 50, 2), (0, 2)), ((70_000,), (0,)), ((300, 2, 9, 2, 3), (1, 3))]


@pytest.mark.parametrize(("dtype", "result"), [("i1", "i1"), ("u1", "u1"), ("i2", "i2"), ("u2", "u2"), ("u2", "i1")])
@pytest.mark.parametrize(("leaf", "threads"), SUMS)
def test_narrow_integers_wrap(dtype, result, leaf, threads):
    with summed(leaf, threads):
        for shape, axes in NARROW:
            values = np.random.default_rng(1).integers(-(2**15), 2**16, shape).astype(dtype)
            apart = np.repeat(values, 2, 0)[::2]
            for grad in (values, values[..., ::-1], apart, np.asfortranarray(values)):
                sums = sum_over(grad, axes, result)
                np.testing.assert_array_equal(
                    sums, expected(grad, axes, result), f"{shape} {grad.strides}", strict=True
                )


# Shapes whose next to last axis has gaps: rows of pieces, fewer and more than are gathered, short and long ones.
PIECES = [((9, 40, 3), (0,)), ((2, 700, 2), (0,)), ((8, 31, 1), (0,)), ((17, 32, 1), (0,)), ((30, 600, 8), (0,))]
PIECES += [
    ((12, 50, 9), (0,)),
    ((5, 30, 20, 3), (0, 1)),
    ((5, 30, 20, 3), (1,)),
    ((20, 300, 4), (0, 2)),
    ((40, 3, 2), (0,)),
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("leaf", "threads"), SUMS)
def test_rows_of_pieces_apart(dtype, leaf, threads):
    with summed(leaf, threads):
        for shape, axes in PIECES:
            values = np.abs(terms(shape, "i4")).astype(dtype)  # as float64, bits of negative uint64 are others
            for step in (3, -2):
                grad = np.repeat(values, abs(step), -2)[..., ::step, :]
                for result in (dtype, "c16" if grad.dtype.kind == "c" else "f8"):
                    sums = sum_over(grad, axes, result)
                    np.testing.assert_array_equal(sums, expected(grad, axes, result), f"{shape} {result}", strict=True)


REPEATED = [((1,), (5,), (0,)), ((1, 1), (40, 3), (0, 1)), ((4, 1), (4, 700), (1,)), ((4, 1), (4, 700), (0, 1))]
REPEATED += [((1, 6), (9, 6), (0,)), ((1, 6), (9, 6), (1,)), ((3, 1, 50, 1), (3, 7, 50, 2), (0, 1, 3))]
REPEATED += [((2, 1, 40, 1, 3), (2, 5, 40, 4, 3), (1, 2)), ((1, 1), (1, 2**17 - 1), (0, 1)), ((1,), (2**17 + 2,), (0,))]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("leaf", "threads"), SUMS)
def test_terms_repeated_by_strides_of_0(dtype, leaf, threads):
    with summed(leaf, threads):
        for own, shape, axes in REPEATED:
            grad = np.broadcast_to(terms(own, dtype), shape)
            np.testing.assert_array_equal(sum_over(grad, axes), expected(grad, axes), f"{own} {shape}", strict=True)
            if grad.dtype.kind in "iu":
                for result in ("i1", "u2", "i8"):
                    sums = sum_over(grad, axes, result)
                    np.testing.assert_array_equal(sums, expected(grad, axes, result), f"{own} {shape} {result}")


@pytest.mark.parametrize("value", [0.1, -1 / 3, 1e308, 2.0**1000, 5e-324, math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("length", [3, 10, 2**20 + 7, 2**31 - 1, 2**53 - 1])
def test_a_repeated_float64_is_rounded_once(value, length):
    right = value
    if math.isfinite(value):
        exact = Fraction(value) * length
        right = math.copysign(math.inf, value) if abs(exact) > Fraction(np.finfo("f8").max) else float(exact)
    grad = np.lib.stride_tricks.as_strided(np.float64(value), (length,), (0,))
    np.testing.assert_array_equal(sum_over(grad, (0,)), np.array([right]))


def test_repeated_terms_whose_partial_sums_overflow():
    column = np.array([[1e308], [1e308], [-1e308], [-1e308], [1e300]])
    assert sum_over(np.broadcast_to(column, (5, 7)), (0, 1)).item() == 7e300
    assert sum_over(np.broadcast_to(column[:2], (2, 7)), (0, 1)).item() == math.inf


def test_repeated_terms_times_factors():
    column, row = terms((30, 1), "f8"), terms((1, 40), "f8", seed=1)
    for a, b in ((column, row), (row, column), (column, row[:, :1]), (column[:1], row[:, :1])):
        grad = np.broadcast_to(a, (30, 40))
        for axes in ((0,), (1,), (0, 1)):
            right = (grad * b).sum(axes, keepdims=True)
            np.testing.assert_array_equal(sum_over(grad, axes, times=b), right)


# Axes of the data in the order of memory, and those that are summed.
ORDERS = [
    ((1, 0), (0,)),
    ((2, 1, 0), (0,)),
    ((2, 1, 0), (1,)),
    ((2, 1, 0), (2,)),
    ((2, 1, 0), (0, 2)),
    ((1, 2, 0), (1,)),
]
ORDERS += [
    ((0, 2, 1), (0,)),
    ((3, 2, 1, 0), (1, 2)),
    ((3, 2, 1, 0), (3,)),
    ((2, 0, 3, 1), (0, 1)),
    ((1, 3, 0, 2), (3,)),
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("leaf", "threads"), SUMS)
def test_bits_do_not_depend_on_the_layout_of_out(dtype, leaf, threads):
    rng = np.random.default_rng(2)
    with summed(leaf, threads):
        for order, axes in ORDERS:
            for lengths in ((7, 60, 3, 5), (40, 2, 33, 4), (3, 11, 129, 2)):
                shape = tuple(lengths[: len(order)])
                laid = np.abs(terms([shape[axis] for axis in order], "f8")) * rng.random()
                grad = laid.astype(dtype).transpose(np.argsort(order))
                for data in (grad, grad[::-1], np.broadcast_to(grad[:1], shape)):
                    own = [1 if axis in axes else length for axis, length in enumerate(shape)]
                    outs = [np.empty(own, dtype, "F"), np.empty([own[axis] for axis in order], dtype)]
                    outs[1] = outs[1].transpose(np.argsort(order))
                    outs.append(
                        np.empty([2 * length for length in own], dtype)[tuple([slice(None, None, 2)] * len(own))]
                    )
                    right = sum_over(data, axes)
                    for out in outs:
                        sum_over(data, axes, out=out)
                        assert np.ascontiguousarray(out).tobytes() == right.tobytes(), (order, axes, shape, out.strides)


def test_real_terms_of_a_complex_array_summed_into_it():
    rng = np.random.default_rng(8)
    for axes in (0,), (1,), (0, 1), ():
        whole = rng.standard_normal((20, 30)) + 1j * rng.standard_normal((20, 30))
        out = whole[tuple(slice(1) if axis in axes else slice(None) for axis in range(2))]
        right = sum_over(whole.imag, axes)
        sum_over(whole.imag, axes, out=out)
        assert out.real.tobytes() == right.tobytes()
        assert not out.imag.any()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("axes", [(), (0,)])
@pytest.mark.parametrize("case", ["c16 f8 imag", "c8 i2 imag", "O f8 convert", "G f2 imag", "f8 i4 inv", "g f2 overf"])
def test_calls_that_fail_or_warn_write_nothing(case, axes):
    dtype, result, message = case.split()
    grad = np.ones((3, 4)).astype(dtype)
    grad[2, 1] = {"O": "x", "c8": 1j, "c16": 1j, "G": 1j}.get(dtype, 1e300)
    out = np.full([1 if axis in axes else length for axis, length in enumerate(grad.shape)], 77, result)
    with pytest.raises((RuntimeWarning, np.exceptions.ComplexWarning, ValueError), match=message):
        sum_over(grad, axes, out=out)
    assert (out == 77).all()


def test_nothing_to_sum_is_a_copy():
    grad = np.array([-0.0, np.nan, 1e-310])
    assert sum_over(grad, ()).tobytes() == grad.tobytes()


def test_resized_arrays_are_refused():
    alignment = Alignment((3, 4), (1, 4))
    for grad, out in ((3, 5), (1, 4)), ((3, 4), (1, 5)), ((12,), (4,)), ((3, 4), (4, 2)), ((3, 4), ()):
        with pytest.raises(ValueError, match="resized"):
            _reduction.sum_onto(np.zeros(grad), alignment, np.zeros(out))


@for_all(
    st.data(),
    st.sampled_from(SUMS),
    st.lists(st.sampled_from([2, 3, 4, 5, 7, 8, 16, 33, 64, 300]), min_size=1, max_size=6),
    st.sampled_from(["f2 f2", "f4 f4", "f8 f8", "c8 c8", ">f8 f8", "f8 >c16", "i2 c8"]),
)
def test_all_ways_give_the_same_bits(data_strategy, way, shape, dtypes):
    """The bits are equal for any threads, target and layout of the result, and if the result overlaps the terms."""
    draw = data_strategy.draw
    while math.prod(shape) > 200_000:
        shape = shape[1:]
    dtype, result = map(np.dtype, dtypes.split())
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    numbers = (rng.standard_normal([*shape, 2]) * np.exp2(rng.integers(-8, 8, [*shape, 2]))).view("c16")[..., 0]
    grad = laid_out(draw, (numbers if dtype.kind == "c" else numbers.real).astype(dtype), DATA_LAYOUTS)
    axes = [axis for axis in range(len(shape)) if draw(st.booleans())]
    alone = sum_over(grad, axes, result)
    out = laid_out(draw, np.full(alone.shape, 77, result), OUT_LAYOUTS)
    with summed(*way):
        assert sum_over(grad, axes, result).tobytes() == alone.tobytes()
        assert sum_over(grad, axes, out=out).tobytes() == alone.tobytes()
    if dtype == result and grad.flags.writeable:
        part = grad[tuple(slice(1) if axis in axes else slice(None) for axis in range(grad.ndim))]
        assert sum_over(grad, axes, out=part).tobytes() == alone.tobytes()


def test_rows_are_cut_at_the_ends_of_the_results_axes():
    """Kept axes that are one in `grad` are several in `out`; rows are walked either way, and by steps."""
    rng = np.random.default_rng(10)
    numbers = rng.standard_normal((9, 4, 5, 6, 3))
    room = np.empty((4, 2, 5, 12, 2, 6))
    turned = numbers.transpose(0, 4, 3, 2, 1).copy()
    for grad in numbers, numbers[:, ::-1, ::-1, ::-1, ::-1], turned.transpose(0, 4, 3, 2, 1):
        right = sum_over(grad, (0,))
        for out in room[:, 0, :, ::2, 0, ::2], room[:, 0, :, ::-2, 0, 2::-1], room[::-1, 0, ::-1, :6, 0, :3]:
            assert sum_over(grad, (0,), out=out[None]).tobytes() == right.tobytes()


@pytest.mark.parametrize("leaf", SUM_TARGETS)
def test_error_where_every_addition_is_rounded(leaf):
    lost = 0.999 * 2.0**-53  # of 1 + lost nothing is left but 1
    for four in [1, lost, lost, lost], [1, lost, lost / 2, lost / 2], [lost, 1, lost, 1]:
        for count, lanes in (127, 4), (127, 1), (508, 1), (4095, 4), (1023, 16), (31, 1):
            groups = np.tile(np.repeat(np.array(four), lanes), count)  # their sum is just below a power of two
            for data in groups, groups.reshape(-1, 4 * lanes).T.ravel():
                exact = math.fsum(data)
                for shape in (-1,), (-1, 1), (-1, 4), (4, -1), (-1, 3, 4):
                    if data.size % math.prod(abs(length) for length in shape):
                        continue
                    grad = data.reshape(shape)
                    with summed(leaf):
                        got = sum_over(grad, tuple(range(grad.ndim))).item()
                    # One rounding of each term, and that of the result.
                    assert abs(got - exact) <= 1.5 * np.spacing(exact), (four, count, lanes, shape)


@pytest.mark.parametrize("leaf", SUM_TARGETS)
@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        *[((40, 300), (0,)), ((5, 900), (0,)), ((300, 40), (1,)), ((30, 20, 2), (1,)), ((4, 9, 5, 7), (0, 2))],
        *[((1000, n), (1,)) for n in (3, 4, 7, 8, 16, 32)],
    ],
)
def test_overflows_on_the_way_beside_other_sums(shape, axes, swapped, leaf):
    """Terms are multiples of 2^1020: some elements have only finite sums, and others have special terms."""
    rng = np.random.default_rng(11)
    numbers = rng.integers(-15, 16, shape)
    specials = np.zeros(shape)
    places = rng.integers(numbers.size, size=numbers.size // 100 + 1)
    specials.flat[places] = rng.choice([np.inf, -np.inf, np.nan], len(places))
    layouts = [(numbers, specials)]
    layouts.append([np.asfortranarray(array) for array in layouts[0]])
    for whole, special in layouts:
        grad = np.ldexp(whole * 1.0, 1020) + special
        with np.errstate(over="ignore", invalid="ignore"):
            right = np.ldexp(whole.sum(axes, keepdims=True) * 1.0, 1020)
            infinite = special.sum(axes, keepdims=True)
        right = np.where(infinite == 0, right, infinite)
        assert np.isfinite(right).any()
        assert np.isnan(right).any()
        with summed(leaf):
            got = sum_over(grad.astype(">f8") if swapped else grad, axes, "f8")
        np.testing.assert_array_equal(got, right, strict=True)


@pytest.mark.parametrize("leaf", SUM_TARGETS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_a_short_run_has_the_same_sum_at_any_position(dtype, leaf):
    rng = np.random.default_rng(5)
    for n, m in (*((n, 1) for n in (*range(2, 17), 24, 32)), (2, 2), (3, 2), (4, 2), (2, 4)):
        run = (rng.standard_normal((n, m)) * np.exp2(rng.integers(-6, 6, (n, m)))).astype(dtype)
        with summed(leaf):
            alone = sum_over(np.repeat(run[None], 2, 0), (1,))[:1]
            for count in 3, 7, 203:
                grad = np.repeat(run[None], count, 0)
                assert sum_over(grad, (1,)).tobytes() == count * alone.tobytes(), (n, m, count)
                wide = np.zeros((count, 1, 2 * m), alone.dtype)[..., ::2]
                assert sum_over(grad, (1,), out=wide).tobytes() == count * alone.tobytes(), (n, m, count)


@pytest.mark.parametrize("leaf", SUM_TARGETS)
def test_pairs_of_float32_are_rounded_as_by_float64(leaf):
    bits = np.random.default_rng(6).integers(0, 2**32, (100_000, 2), "u4")
    bits[::2, 1] = bits[::2, 0] ^ bits[::2, 1] >> 7  # of nearly one size
    grad = bits.view("f4")
    with np.errstate(over="ignore", invalid="ignore"):
        right = grad.astype("f8").sum(1, keepdims=True).astype("f4")
    with summed(leaf):
        np.testing.assert_array_equal(sum_over(grad, (1,)), right, strict=True)


def test_rounding_to_float16():
    """Every float16, and sums slightly beside the middle between two: by a little, or by less than float32 resolves."""
    halves = np.arange(0x7C00, dtype="u2").view("f2")
    exact = halves.astype("f8")
    middle = (exact[:-1] + exact[1:]) / 2
    beside = [middle * (1 + sign * part) for part in (1e-5, 1e-8, 2.0**-51) for sign in (-1, 1)]
    data = np.concatenate([exact, middle, *beside, -exact, [65519, 65521, 1e300, 1e-300, np.inf]])
    grad = np.stack([data, np.zeros(len(data))])
    with np.errstate(over="ignore"):
        right = data.astype("f2")
    for leaf in SUM_TARGETS:
        with summed(leaf):
            np.testing.assert_array_equal(sum_over(grad, (0,), "f2")[0], right, strict=True)


def laid(room, flush, array):
    """Lay an array flush against a page that no one may touch."""
    part = flush(room, array.nbytes)
    part[:] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return part.view(array.dtype).reshape(array.shape)


@pytest.mark.parametrize("leaf", SUM_TARGETS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_no_term_outside_is_read(rooms, dtype, leaf):  # noqa: F811
    room, other, flush = rooms
    wide = {"c": "c16", "f": "f8", "V": "f8"}.get(np.dtype(dtype).kind, "i8")
    for n in (*range(1, 36), 63, 64, 65, 100, 255, 257):
        shapes = {(n,): 0, (7, n): 1, (17, n): 1, (150, n): 1, (n, 5): 0, (9, n): 0}
        shapes |= {(3, n, 2): 1, (17, n, 2): 1, (17, n, 4): 1}
        for shape, axis in shapes.items():
            grad = laid(room, flush, terms(shape, dtype, n))
            x = laid(other, flush, (terms(shape, "i8", 1) % 9).astype(dtype))
            products = grad.astype(wide) * x.astype(wide)
            for times, right in (None, grad), (x, products):
                with summed(leaf):
                    got = sum_over(grad, (axis,), times=times)
                right = expected(right, (axis,), dtype)
                np.testing.assert_array_equal(got, right, f"{shape} over {axis}", strict=True)


@pytest.mark.parametrize("leaf", SUM_TARGETS)
@pytest.mark.parametrize("dtype", ["u1", "f2", "f4", "f8"])
def test_nothing_outside_is_written(rooms, dtype, leaf):  # noqa: F811
    _, room, flush = rooms
    for n in (*range(1, 20), 33, 100):
        for rows, axis in (4, 0), (4, 1), (301, 1):
            grad = terms((rows, n), dtype)
            room[:] = PAINT
            out = laid(room, flush, np.zeros((1, n) if axis == 0 else (rows, 1), dtype))
            with summed(leaf):
                sum_over(grad, (axis,), out=out)
            np.testing.assert_array_equal(out, expected(grad, (axis,)), strict=True)
            flush(room, out.nbytes)[:] = PAINT
            assert (room == PAINT).all()
