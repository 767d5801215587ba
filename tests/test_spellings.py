"""Sums and statistics: the error is within its bound for all spellings of a call, all dtypes and all code paths."""

import itertools
import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from numpy.exceptions import ComplexWarning

import bcast

NAMES = ("sum", "mean", "var", "std")
SQUARES = ("var", "std")
UNITS = {"sum": 2, "mean": 4, "var": 4, "std": 4}
N = 30_001  # rows, whose sums in float32 are 100 units or more from the exact sums


def packages_floats():
    """Return the floats of another package: bfloat16, which has a row in the core's table, and narrower ones."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    kinds = (getattr(ml_dtypes, name) for name in dir(ml_dtypes))
    dtypes = [np.dtype(each) for each in kinds if isinstance(each, type) and issubclass(each, np.generic)]
    return [each for each in dtypes if each.name.startswith(("bfloat16", "float"))]


class Rounding:
    """An oracle of its own: the nearest number of a dtype, of all that it has."""

    def __init__(self, dtype):
        bits = np.arange(2 ** (8 * dtype.itemsize), dtype=f"u{dtype.itemsize}")
        with np.errstate(all="ignore"):
            values = bits.view(dtype).astype("f8")
        self.values = sorted({float(value) for value in values if 0 <= value < np.inf})
        self.dtype = dtype

    def middles(self):
        """Yield neighbours, and the one to which their middle rounds; float32 has this middle exactly."""
        for below, above in itertools.pairwise(self.values):
            yield below, above, float(np.float32(below + (above - below) / 2).astype(self.dtype))


def exact(name, column):
    """The sum or statistic of multiples of 2**-10, as a fraction of Python's integers; of a deviation, its square."""
    whole = (np.asarray(column, "f8") * 1024).tolist()
    assert all(map(float.is_integer, whole))
    whole = list(map(int, whole))
    total, n = sum(whole), len(whole)
    if name in ("sum", "mean"):
        return Fraction(total, 1024 * (n if name == "mean" else 1))
    return Fraction(n * sum(each * each for each in whole) - total * total, (n * 1024) ** 2)


def units(name, result, right):
    """The error of a result, in units in the last place."""
    result = np.asarray(result)[()]
    if name == "std":
        right = Fraction(math.isqrt(int(right * 2**240))) / 2**120
    return float(abs(Fraction(float(result)) - right) / Fraction(float(np.spacing(abs(result)))))


# The same call, written in many ways.


def swapped(dtype):
    return np.dtype(dtype).newbyteorder()


def unaligned(array):
    room = np.empty(array.nbytes + 1, "u1")[1:].view(array.dtype).reshape(array.shape)
    room[...] = array
    return room


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


DATA = {
    "an array": lambda x: x, "another byte order": lambda x: x.astype(swapped(x.dtype)), "read-only": read_only,
    "Fortran's order": np.asfortranarray, "unaligned": unaligned, "with steps": lambda x: np.repeat(x, 2, 1)[:, ::2],
    "backwards": lambda x: x[::-1, ::-1].copy()[::-1, ::-1], "a list": lambda x: x.tolist(),
    "rows of a list": lambda x: list(x.copy()),
}  # fmt: skip
AXES = (0, -2, np.int64(0), np.int8(-2), np.uint8(0), (0,), (-2,), [0], np.array(0), np.array([0]), (np.int32(0),))
KEEPS = {False: (False, 0, np.False_, np.int8(0), np._NoValue), True: (True, 1, 2, np.True_, np.array(1))}
SPELLED = {
    "f4": ("f4", "float32", np.float32, np.dtype("f4"), "single"),
    "f8": ("f8", float, np.float64, "double", "d"),
}
OUTS = {
    "an array": lambda shape, dtype: np.full(shape, 7, dtype),
    "another byte order": lambda shape, dtype: np.full(shape, 7, swapped(dtype)),
    "with steps": lambda shape, dtype: np.full((*shape[:-1], 2 * shape[-1]), 7, dtype)[..., ::2],
    "backwards": lambda shape, dtype: np.full(shape, 7, dtype)[..., ::-1],
    "unaligned": lambda shape, dtype: unaligned(np.full(shape, 7, dtype)),
}


@pytest.fixture(scope="module")
def table():
    """Float32 numbers that are multiples of 2**-6 about 1000, so that Python's integers have their exact sums."""
    rng = np.random.default_rng(7)
    return (1000 + rng.integers(-64, 64, (N, 3)) / 64).astype("f4")


@pytest.fixture
def maps(tmp_path):
    def mapped(array, mode="r"):
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.bin"
        array.tofile(path)
        return np.memmap(path, array.dtype, mode, shape=array.shape)

    return mapped


def written(rng, name, data, maps):
    """Return a call's arguments, spelled at random, and what its result's dtype and number of axes are."""
    kinds = [*DATA, "a map of a file"]
    kind = kinds[rng.integers(len(kinds))]
    given = maps(data) if kind == "a map of a file" else DATA[kind](data)
    own = "f8" if kind == "a list" else "f4"
    axis = AXES[rng.integers(len(AXES))]
    keeps = bool(rng.integers(2))
    shape = (1, 3) if keeps else (3,)
    spelled = KEEPS[keeps][rng.integers(len(KEEPS[keeps]))]
    options = {} if not keeps and rng.integers(2) else {"keepdims": spelled}
    dtype = None if rng.integers(2) else ("f4", "f8")[rng.integers(2)]
    final = dtype or own
    out = None
    if rng.integers(2):
        final = ("f4", "f8")[rng.integers(2)]
        make = list(OUTS.values())[rng.integers(len(OUTS))]
        out = make(shape, final)
    if rng.integers(2):
        options["where"] = (True, np.True_, np._NoValue)[rng.integers(3)]
    if name == "sum" and rng.integers(2):
        options["initial"] = (0, 0.0, np.float64(0), np.array(0))[rng.integers(4)]
    positional = [axis, SPELLED[dtype][rng.integers(len(SPELLED[dtype]))] if dtype else None, out]
    names = ["axis", "dtype", "out"]
    first = int(rng.integers(4))
    options |= {key: value for key, value in list(zip(names, positional, strict=True))[first:] if value is not None}
    if name in SQUARES and rng.integers(2):
        options[("ddof", "correction")[rng.integers(2)]] = (0, np.int8(0), 0.0)[rng.integers(3)]
    rounded = np.finfo(final).bits if dtype is None else min(np.finfo(final).bits, np.finfo(dtype).bits)
    return kind, (given, *positional[:first]), options, final, rounded, shape, out


@pytest.mark.parametrize("name", NAMES)
def test_every_spelling_has_the_bound(name, table, maps):
    rng = np.random.default_rng(NAMES.index(name))
    right = [exact(name, table[:, i]) for i in range(3)]
    bits = {}
    for _ in range(150):
        kind, args, options, final, rounded, shape, out = written(rng, name, table, maps)
        result = getattr(bcast, name)(*args, **options)
        spelled = kind, args[1:], options
        assert result is out or (out is None and type(result) is np.ndarray), spelled
        assert result.shape == shape, spelled
        assert result.dtype.newbyteorder("=") == final, spelled
        nearest = result.reshape(-1).astype(f"f{rounded // 8}")
        assert max(units(name, *each) for each in zip(nearest, right, strict=True)) <= UNITS[name], spelled
        key = kind, final, rounded, "initial" in options  # where results go is no matter of their bits
        if out is not None or shape == (3,):
            assert bits.setdefault(key, nearest.tolist()) == nearest.tolist(), spelled
    assert len(bits) > 20


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("own", ["?", "u1", "i4", "f2", "f4", "f8", "bfloat16", "float8_e4m3fn", "int4"])
def test_every_dtype_of_out(name, own):
    """Results are as if computed in the wider of both dtypes, and then converted."""
    if len(own) > 2:
        own = getattr(pytest.importorskip("ml_dtypes"), own)
    data = (np.random.default_rng(0).integers(0, 2, (9_000, 2)) * 2 - (own != "?" and own != "u1")).astype(own)
    terms = data.astype("f8")
    for to in (*(("i2", "u8", "i8", ">i4") if name != "std" else ()), "f2", "f4", "f8", "c8", "c16", "g", ">f4"):
        out = np.full(2, 7, to)
        with np.errstate(all="ignore"):
            assert getattr(bcast, name)(data, 0, out=out) is out
        for result, column in zip(out.real, terms.T, strict=True):
            right = exact(name, column)
            if out.dtype.kind in "iu":
                assert (int(result) - int(right)) % 2 ** (8 * out.dtype.itemsize) == 0, to
            else:
                assert units(name, result.astype("f8") if to == "g" else result, right) <= UNITS[name], to
        assert not out.imag.any()


def test_deviations_are_no_integers():
    for to in ("i8", "?"):
        out = np.full(2, 1, to)
        for data in (np.full((5, 2), 0.5), np.ones((5, 2), "u1")):
            for options in ({}, {"dtype": "f4"}):
                with pytest.raises(TypeError, match=r"^`out` expected a floating-point dtype"):
                    bcast.std(data, 0, out=out, **options)
                assert (out == 1).all()


@pytest.mark.parametrize("name", NAMES)
def test_maps_of_files_are_arrays(name, table, maps):
    """`numpy.memmap` overrides nothing; the results are those of NumPy's class."""
    mapped = maps(table)
    ours, numpys = getattr(bcast, name), getattr(np, name)
    for options in ({"axis": 0}, {"axis": 1}, {}, {"keepdims": True}, {"axis": 0, "dtype": "f8"}):
        result, right = ours(mapped, **options), numpys(mapped, **options)
        assert type(result) is type(right)
        assert result.tolist() == ours(table, **options).tolist()
        with bcast.patched_numpy(name):
            before = bcast.patch_info()[name].taken
            patched = getattr(np, name)(mapped, **options)
            assert bcast.patch_info()[name].taken == before + 1
        assert type(patched) is type(right)
        assert patched.tolist() == result.tolist()
    out = maps(np.zeros(3, "f4"), "r+")
    assert ours(table, 0, out=out) is out
    assert out.tolist() == ours(table, 0).tolist()
    if name == "sum":
        for result in (bcast.unbroadcast(mapped, (3,)), bcast.unrepeat(mapped, [N], 0)[0]):
            assert type(result) is np.ndarray
            assert result.tolist() == out.tolist()


@pytest.mark.parametrize("name", NAMES)
def test_patched_spellings(name, table):
    """The patch takes what is written in other ways, too, but what NumPy refuses is NumPy's to refuse."""
    right = getattr(bcast, name)(table, 0).tolist()
    calls = [
        ({"axis": 0, "keepdims": 1}, lambda result: result[0]), ({"axis": np.int64(0)}, np.asarray),
        ({"axis": 0, "where": True}, np.asarray), ({"axis": -2, "out": np.zeros(3, ">f4")}, np.asarray),
        ({"axis": 0, "out": np.zeros(3)}, np.float32), ({"axis": 0, "dtype": "f8", "out": np.zeros(3)}, np.float32),
    ]  # fmt: skip
    if name == "sum":
        calls.append(({"axis": 0, "initial": 0}, np.asarray))
    with bcast.patched_numpy(name):
        for options, read in calls:
            before = bcast.patch_info()[name].taken
            result = getattr(np, name)(table, **options)
            assert bcast.patch_info()[name].taken == before + 1, options
            assert read(result).tolist() == right, options
    for options in ({"keepdims": "x"}, {"keepdims": 1.5}, {"axis": [0]}, {"keepdims": None}):
        with pytest.raises(TypeError) as numpys:
            getattr(np, name)(table, **options)
        with bcast.patched_numpy(name), pytest.raises(TypeError) as patched:
            getattr(np, name)(table, **options)
        assert str(numpys.value) == str(patched.value)


def test_initial():
    rng = np.random.default_rng(2)
    for dtype in ("u1", "i4", "f2", "f4", "f8", "c8"):
        data = rng.integers(1, 9, (5000, 2)).astype(dtype)
        for initial in (0, 1, 7, np.float32(2), np.array(3)):
            result = bcast.sum(data, 0, initial=initial)
            assert result.dtype == np.sum(data[:1], 0).dtype
            right = data.real.astype("i8").sum(0) + int(initial)
            assert result.tolist() == right.astype(result.dtype).tolist()
    for bad in (1j, "x", [1, 2]):
        for function in (np.sum, bcast.sum):
            with pytest.raises((TypeError, ValueError)):
                function(np.ones((3, 2), "f4"), 0, initial=bad)
    assert bcast.sum(np.zeros((0, 2)), 0, initial=5).tolist() == [5, 5]
    assert (
        bcast.sum(np.full((N, 2), 0.1, "f4"), 0, initial=None).tolist()
        == [np.float32(N * np.float64(np.float32(0.1)))] * 2
    )
    assert bcast.sum(np.full(300, 200, "u1"), dtype="u1", initial=1) == (300 * 200 + 1) % 256


class Once(list):
    """Axes that can be read once."""

    def __iter__(self):
        while self:
            yield self.pop(0)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["?", "i4", "f4", "f8", "g", "c8", "G"])
def test_axes_that_are_read_once(name, dtype):
    """Also where there is nothing to sum, and NumPy's function is called with what was read."""
    for shape in ((3, 4), (1, 4), (3, 1), (0, 4), (2, 1, 3)):
        data = np.arange(math.prod(shape)).reshape(shape).astype(dtype)
        for axes in ((0,), (-1,), (1, 0), (0, -1), ()):
            for options in ({}, {"where": np.ones(shape[-1], bool)}, {"keepdims": True}):
                with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
                    right = getattr(bcast, name)(data, axes, **options)
                    for make in (iter, Once, list, lambda axes: map(np.int8, axes), lambda axes: np.array(axes, int)):
                        result = getattr(bcast, name)(data, make(axes), **options)
                        assert type(result) is type(right)
                        np.testing.assert_array_equal(result, right, strict=not np.isscalar(right))
    with pytest.raises(np.exceptions.AxisError):
        getattr(bcast, name)(np.ones(3, dtype), iter([3]))
    for other in ("max", "min", "any", "all"):
        for axes in ((0,), (-1,), (1, 0)):
            data = np.arange(12).reshape(3, 4).astype(dtype)
            right = getattr(np, other)(data, axes)
            for make in (iter, Once, list, np.array):
                np.testing.assert_array_equal(getattr(bcast, other)(data, make(axes)), right)
    if name in SQUARES:
        data = np.arange(12).reshape(3, 4).astype(dtype)
        result, right = (getattr(bcast, name)(data, axes, ddof=1) for axes in (iter([0]), (0,)))
        np.testing.assert_array_equal(result, right)


# Dtypes that the core has no row of.


def test_sums_to_floats_of_other_packages_are_rounded_once():
    for wanted in packages_floats():
        rounding = Rounding(wanted)
        step = max(1, len(rounding.values) // 200)
        for below, above, middle in list(rounding.middles())[::step]:
            if 0 < below < 2.0**-126 and "e8m0" in wanted.name:
                continue  # which the package itself rounds up from there on
            gap = above - below
            for less, right in ((0.0, middle), (gap * 2.0**-36, above), (-gap * 2.0**-36, below)):
                terms = np.array([[below, below], [gap / 2, gap / 2], [less, less]])
                assert math.fsum(terms[:, 0]) == below + gap / 2 + less
                results = [
                    bcast.sum(terms, 0, dtype=wanted), bcast.sum(terms[:, 0], dtype=wanted),
                    bcast.sum(terms, 0, out=np.zeros(2, wanted)), bcast.unbroadcast(terms, (2,), dtype=wanted),
                    bcast.unrepeat(terms[:, 0], 3, dtype=wanted), bcast.mean(terms * 3, 0, dtype=wanted),
                    bcast.unbroadcast(terms.sum(0), (2,), dtype=wanted), bcast.sum(terms.T, 1, dtype=wanted),
                ]  # fmt: skip
                for i, result in enumerate(results):
                    assert (np.asarray(result).astype("f8") == right).all(), (wanted, below, less, i)


def test_sums_from_and_to_every_dtype():
    """In NumPy, a sum of 1000 ones is 256 in bfloat16, and at most 32 in float8."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    others = [np.dtype(getattr(ml_dtypes, each)) for each in ("int4", "uint4", "int2")]
    own = [*map(np.dtype, ("?", "u1", "i8", "f2", "f4", "f8", "g", ">f4")), *packages_floats(), *others]
    for source in own:
        data = np.ones((1000, 2), source)
        if float(data[0, 0]) != 1:  # float8_e8m0fnu
            continue
        for wanted in packages_floats():
            room = np.spacing(wanted.type(1000)).astype("f8") if np.isfinite(wanted.type(1000).astype("f8")) else None
            nearest = np.float64(1000).astype(wanted).astype("f8")
            for options in ({"dtype": wanted}, {"out": np.zeros(2, wanted)}):
                with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
                    assert (bcast.mean(data, 0, **options).astype("f8") == 1).all(), (source, wanted)
                    total = bcast.sum(data, 0, **options).astype("f8")
                    assert (
                        bcast.var(data, 0, **options).astype("f8") == np.float64(0).astype(wanted).astype("f8")
                    ).all() or "e8m0" in wanted.name
                np.testing.assert_array_equal(total, [nearest] * 2, err_msg=f"{source} {wanted} {room}")


def test_statistics_of_floats_of_other_packages():
    """Their own dtype is that of the result, which is rounded once from float64."""
    for dtype in packages_floats():
        if "e8m0" in dtype.name:  # which has no 0 and no negative numbers
            continue
        rounding = Rounding(dtype)
        data = np.random.default_rng(3).integers(0, 3, (999, 2)).astype(dtype)
        for name in ("mean", "var", "std"):
            result = getattr(bcast, name)(data, 0)
            assert result.dtype == dtype
            wide = getattr(np, name)(data.astype("f8"), 0)
            for value, right in zip(result.astype("f8"), wide, strict=True):
                assert abs(value - right) == min(abs(each - right) for each in rounding.values)


# Long double: NumPy sums it, and the result is rounded once.


@pytest.mark.parametrize("name", NAMES)
def test_long_doubles_are_rounded_last(name, table):
    data = table.astype("g")
    right = [exact(name, table[:, i]) for i in range(3)]
    for to in ("f4", "f8"):
        for options in ({"dtype": to}, {"out": np.zeros(3, to)}, {"out": np.zeros(3, swapped(to))}):
            result = getattr(bcast, name)(data, 0, **options)
            assert result.dtype.newbyteorder("=") == to
            assert max(units(name, *each) for each in zip(result.astype(to), right, strict=True)) <= UNITS[name]
    if name == "sum":
        for result in (bcast.unbroadcast(data, (3,), dtype="f4"), bcast.unrepeat(data, N, 0, dtype="f4")[0]):
            assert result.dtype == "f4"
            assert max(units(name, *each) for each in zip(result, right, strict=True)) <= 1


def finfo(dtype):
    dtype = np.dtype(dtype)
    return np.finfo(dtype) if dtype.num < 256 else pytest.importorskip("ml_dtypes").finfo(dtype)


def half_a_unit(dtype):
    """Return the most by which rounding to a dtype changes a number, in units of that number."""
    return float(finfo(dtype).eps) / 2


def largest(dtype):
    """Return the largest number that does not become infinite."""
    return min(float(finfo(dtype).max), 1e300)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("own", ["?", "u1", "i4", "f2", "f4", "f8", "g", "c8", "c16", "G", "bfloat16", "float8_e4m3fn"])
def test_no_out_makes_a_sum_less_precise(name, own):
    """Whatever the dtypes of the data, of the sum and of `out` are: one rounding to each, at the end."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    own = np.dtype(getattr(ml_dtypes, own) if len(own) > 3 else own)
    low, high = (900, 1100) if own.itemsize > 2 else (0, 2) if own.kind == "b" else (0, 3)
    data = np.random.default_rng(1).integers(low, high, (2500, 2)).astype(own)
    right = [exact(name, column) for column in data.real.astype("f8").T]
    if name == "std":
        right = [Fraction(math.isqrt(int(each * 2**240))) / 2**120 for each in right]
    package = [*map(np.dtype, (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2))]
    dtypes = [None, *package, *map(np.dtype, ("f2", "f4", "f8", "g", "c8", "c16", "G"))]
    for wanted in dtypes:
        for to in (*dtypes, *map(swapped, ("f2", "f4", "f8", "g", "c16"))):
            if wanted is to is None:
                continue
            out = None if to is None else np.full(2, 7, to)
            with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore", category=ComplexWarning):
                result = getattr(bcast, name)(data, 0, dtype=wanted, out=out)
            assert out is None or result is out
            steps = [each for each in (wanted, to) if each is not None]
            room = sum(map(half_a_unit, steps)) + 4 * half_a_unit("f8")
            for found, value in zip(result, right, strict=True):
                if value > min(map(largest, steps)):
                    assert not np.isfinite(found) or value < largest(result.dtype) * 1.1, (wanted, to)
                    continue
                parts = np.asarray(found)[()]
                parts = (parts.real, parts.imag) if result.dtype.kind == "c" else (parts, 0)
                assert abs(Fraction(*np.longdouble(parts[0]).as_integer_ratio()) - value) <= value * Fraction(room), (
                    wanted, to, parts, float(value),
                )  # fmt: skip
                assert parts[1] == 0


@pytest.mark.parametrize("own", ["g", "G"])
def test_long_doubles_beside_the_middle_of_two_numbers(own):
    """Digits beyond float64 and float32 decide the direction of the rounding."""
    least = np.longdouble(2) ** -61 if np.finfo("g").nmant > 60 else np.longdouble(2) ** -52
    for wanted in (np.dtype("f2"), *packages_floats()):
        if not wanted.name.startswith(("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")):
            continue
        unit = np.longdouble(2 * half_a_unit(wanted))
        for less, right in ((least, 1 + unit), (-least, np.longdouble(1)), (0, np.longdouble(1))):
            data = np.array([[1.0], [0]], own)
            data[1] = unit / 2 + less
            wider = np.zeros(1, own)
            for options in ({"dtype": wanted}, {"out": np.zeros(1, wanted)}, {"dtype": wanted, "out": wider}):
                with warnings.catch_warnings(action="ignore", category=ComplexWarning):
                    assert bcast.sum(data, 0, **options).astype("g").tolist() == [right], (wanted, less)
                    assert bcast.mean(data * 2, 0, **options).astype("g").tolist() == [right], (wanted, less)


def test_the_imaginary_part_of_long_doubles_is_lost_with_numpys_warning():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    data = np.full((50, 2), 2 + 1j, "G")
    for dtype in ("f2", "f4", "f8", "g", ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn):
        for options in ({"dtype": dtype}, {"out": np.zeros(2, dtype)}):
            with pytest.warns(ComplexWarning):
                result = bcast.sum(data, 0, **options)
            assert result.astype("f8").tolist() == [float(np.float64(100).astype(dtype))] * 2
            with warnings.catch_warnings(action="error"):
                assert bcast.var(data, 0, out=np.ones(2, dtype)).astype("f8").tolist() == [0, 0]


# Complex numbers, with gaps between them too.


@pytest.mark.parametrize("dtype", ["c8", "c16", ">c8"])
@pytest.mark.parametrize("name", NAMES)
def test_complex_numbers_of_any_layout(name, dtype, table):
    data = (table[:, :2] + 1j * table[:, 1:] * 2).astype(dtype)
    parts = [
        exact(name.replace("std", "var"), part[:, i].astype("f8")) for part in (data.real, data.imag) for i in (0, 1)
    ]
    gaps = np.repeat(np.repeat(data, 2, 1), 2, 0)[::2, ::2]
    for array in (data, np.asfortranarray(data), gaps, gaps[::-1, ::-1][::-1, ::-1], data[:, ::-1]):
        result = getattr(bcast, name)(array, 0)
        right = parts
        if array.strides[1] < 0:
            result = result[::-1]
        assert result.dtype == getattr(np, name)(data[:1], 0).dtype
        if name in SQUARES:
            right = [parts[0] + parts[2], parts[1] + parts[3]]
            found = result
        else:
            found = [*result.real, *result.imag]
        assert max(units(name, *each) for each in zip(found, right, strict=True)) <= UNITS[name] + 1
        if name == "sum":
            assert bcast.unbroadcast(array, (2,)).tolist() == bcast.sum(array, 0, out=np.zeros(2, dtype)).tolist()


@pytest.mark.parametrize("name", NAMES)
def test_the_imaginary_part_is_lost_with_numpys_warning(name):
    data = np.full((50, 2), 2 + 1j, "c8")
    for options in ({"dtype": "f4"}, {"out": np.zeros(2, "f4")}, {"out": np.zeros(2, "i4")}):
        if name in SQUARES and "out" in options:  # whose variance is real
            if name == "std" and options["out"].dtype.kind == "i":
                continue
            assert getattr(bcast, name)(data, 0, **options).tolist() == [0, 0]
            continue
        with pytest.warns(ComplexWarning):
            result = getattr(bcast, name)(data, 0, **options)
        if name not in SQUARES:
            assert result.tolist() == [2 if name == "mean" else 100] * 2
        out = options.get("out")
        if out is not None:
            out[...] = 7
            with warnings.catch_warnings(action="error"), pytest.raises(ComplexWarning):
                getattr(bcast, name)(data, 0, out=out)
            assert out.tolist() == [7, 7]


def test_variances_of_real_numbers_in_complex_dtypes(table):
    for name in SQUARES:
        for dtype in ("c8", "c16"):
            result, right = (
                getattr(bcast, name)(table, 0, dtype=dtype),
                getattr(bcast, name)(table, 0, dtype=f"f{int(dtype[1:]) // 2}"),
            )
            assert result.dtype == dtype
            assert result.tolist() == right.tolist()
