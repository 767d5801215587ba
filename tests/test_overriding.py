"""Classes that may change NumPy's results: subclasses, and other classes that override ufuncs or functions.

Arithmetic and reductions pass them to NumPy. Copies and their adjoints convert them to plain arrays, and refuse masks.
A `numpy.memmap` counts as an array of the base class.
"""

# ruff: noqa: ARG005, B023 (calls are made where they are written; files live as long as their maps)

import tempfile
from functools import partial

import numpy as np
import pytest

import bcast
from bcast._api.converted import as_base, is_handed_on, overrides

GRID = np.arange(12.0).reshape(4, 3)
ROW = np.array([1.0, 2, 4])


class Metres:
    """Numbers with a unit: it overrides ufuncs and functions, and counts powers of the metre."""

    def __init__(self, values, power=1):
        self.values, self.power = np.asarray(values), power
        self.shape, self.dtype = self.values.shape, self.values.dtype

    def __array__(self, dtype=None, copy=None):
        return self.values

    def astype(self, dtype):
        return Metres(self.values.astype(dtype), self.power)

    def __array_ufunc__(self, ufunc, method, *inputs, out=(), **kwargs):
        assert method == "__call__"
        powers = [each.power if isinstance(each, Metres) else 0 for each in inputs]
        if ufunc in (np.add, np.subtract, np.maximum):
            if len(set(powers)) > 1:
                raise ValueError("units differ")
            power = powers[0]
        else:
            power = {np.multiply: sum(powers), np.square: 2 * powers[0]}[ufunc]
        if out and not isinstance(out[0], Metres):
            raise ValueError("units lost")
        values = ufunc(*[getattr(each, "values", each) for each in inputs], **kwargs)
        if out:
            out[0].values[...], out[0].power = values, power
            return out[0]
        return Metres(values, power)

    def __array_function__(self, function, types, args, kwargs):
        args = [each.values if isinstance(each, Metres) else each for each in args]
        if function is np.copyto:
            args[0][...] = args[1]
            return None
        return Metres(function(*args, **kwargs), 2 if function is np.var else 1)

    def described(self):
        return "metres", self.power, self.dtype, repr(self.values.tolist())


class OfUfuncs:
    """A class that overrides only ufuncs, like DataArray and Series."""

    def __init__(self, values, label="x"):
        self.values, self.label = np.asarray(values), label

    def __array__(self, dtype=None, copy=None):
        return self.values

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return OfUfuncs(getattr(ufunc, method)(*[getattr(each, "values", each) for each in inputs], **kwargs))

    def described(self):
        return "labels", self.label, self.values.dtype, repr(self.values.tolist())


class Refusing:
    __array_ufunc__ = None


class Own(np.ndarray):
    """A class that overrides nothing."""


def in_file(array):
    with tempfile.TemporaryFile() as file:  # which its map outlives
        mapped = np.memmap(file, array.dtype, "w+", shape=array.shape)
    mapped[...] = array
    return mapped


def masked(array):
    return np.ma.array(array, mask=np.asarray(array) == 2)


def described(result):
    if isinstance(result, tuple):
        return tuple(map(described, result))
    if hasattr(result, "described"):
        return result.described()
    mask = np.ma.getmaskarray(result).tolist() if isinstance(result, np.ma.MaskedArray) else None
    plain = np.ma.filled(result, 0) if mask else np.asarray(result)
    return type(result), plain.dtype, plain.shape, repr(plain.tolist()), mask, str(getattr(result, "unit", ""))


def outcome(call):
    try:
        return described(call())
    except Exception as error:
        return type(error)


CLASSES = {
    "own": lambda array: array.view(Own), "matrix": lambda array: array.view(np.matrix), "masked": masked,
    "recarray": lambda array: array.view(np.recarray), "memmap": in_file, "units": Metres, "labels": OfUfuncs,
}  # fmt: skip


def quantity(array):
    units = pytest.importorskip("astropy.units")
    return array * units.m


def data_array(array):
    return pytest.importorskip("xarray").DataArray(array)


def pints(array):
    return pytest.importorskip("pint").get_application_registry().Quantity(array, "m")


def series(array):
    return pytest.importorskip("pandas").DataFrame(array)


PEERS = {"astropy": quantity, "xarray": data_array, "pint": pints, "pandas": series}
BOTH = pytest.mark.parametrize(
    "make", [*CLASSES.values(), *[pytest.param(each, marks=pytest.mark.peers) for each in PEERS.values()]],
    ids=[*CLASSES, *PEERS],
)  # fmt: skip
QUIET = pytest.mark.filterwarnings("ignore:.*matrix", "ignore:.*unit of the quantity is stripped")


# Arithmetic.


@QUIET
@BOTH
@pytest.mark.parametrize("ufunc", [np.multiply, np.add, np.maximum])
def test_elementwise_matches_numpy(make, ufunc):
    grid = make(GRID)
    for other in grid, 2.0, GRID, GRID[:, :1], np.float32(2), [1.0, 2.0, 3.0], np.ones((5, 4, 3)):
        for a, b in (grid, other), (other, grid):
            assert outcome(lambda: bcast.elementwise(ufunc, a, b)) == outcome(lambda: ufunc(a, b))
            assert outcome(lambda: bcast.elementwise(ufunc, a, b, dtype="f4", casting="unsafe")) == outcome(
                lambda: ufunc(a, b, dtype="f4", casting="unsafe")
            )
    out, theirs = make(np.zeros((4, 3))), make(np.zeros((4, 3)))
    for first in grid, GRID:
        found = outcome(lambda: bcast.elementwise(ufunc, first, grid, out=out))
        assert found == outcome(lambda: ufunc(first, grid, out=theirs))
        if not isinstance(found, type):
            is_returned = ufunc(first, grid, out=theirs) is theirs
            assert (bcast.elementwise(ufunc, first, grid, out=out) is out) == is_returned


CHAINS = {
    "one step": lambda data, b: ([(np.add, b)], {}),
    "three steps": lambda data, b: ([(np.multiply, b), np.square, (np.multiply, 2)], {}),
    "a dtype": lambda data, b: ([(np.multiply, b)], {"dtype": np.float32}),
    "a list": lambda data, b: ([[np.multiply, b], (np.multiply, [1.0, 2.0, 3.0])], {}),
}


@QUIET
@BOTH
@pytest.mark.parametrize("steps", CHAINS.values(), ids=CHAINS)
def test_chains_match_one_call_for_each_step(make, steps):
    for data, operand in (make(GRID), ROW), (make(GRID), make(ROW)), (GRID, make(ROW)), (make(GRID), make(GRID[:, :1])):
        own, options = steps(data, operand)

        def numpys(data=data, own=own, options=options):
            result = data.astype(options["dtype"]) if options else data
            for step in own:
                operand = None if isinstance(step, np.ufunc) else step[1]
                operand = np.asarray(operand) if isinstance(operand, list) else operand
                result = step(result) if operand is None else step[0](result, operand)
            return result

        expected = outcome(numpys)
        if options and make in (OfUfuncs, series) and type(data) is not np.ndarray:
            expected = TypeError  # its class has no one dtype
        assert outcome(lambda: bcast.chain(data, *own, **options)) == expected


def test_a_chain_keeps_the_unit_and_converts_it():
    units = pytest.importorskip("astropy.units")
    metres = np.ones((4, 3)) * units.m
    sums = bcast.chain(metres, (np.add, 1 * units.km))
    assert sums.unit == units.m
    assert (sums.value == 1001).all()
    with pytest.raises(units.UnitConversionError):
        bcast.chain(metres, (np.add, 1 * units.s))
    rates = bcast.chain(metres, (np.divide, np.arange(1.0, 5) * units.s), axis=0)
    assert rates.unit == units.m / units.s
    assert rates.value.tolist() == [[1 / n] * 3 for n in range(1, 5)]
    out = np.zeros((4, 3)) * units.km
    assert bcast.chain(metres, (np.multiply, 2), out=out) is out
    assert (out == 2 * units.m).all()
    plain = np.zeros((4, 3))
    for call in (
        lambda: bcast.chain(metres, (np.add, metres), out=plain),
        lambda: bcast.chain(metres, out=plain),
        lambda: bcast.where(plain == 0, metres, 0 * units.m, out=plain),
        lambda: bcast.elementwise(np.add, metres, metres, out=plain),
        lambda: bcast.sum(metres[np.newaxis], 0, out=plain),
    ):
        with pytest.raises((TypeError, units.UnitConversionError)):
            call()
        assert not plain.any()
    assert bcast.where(plain == 0, metres, 0 * units.km, out=out) is out
    assert (out == 1 * units.m).all()


def test_masks_go_through_chains():
    data = masked(GRID)
    result = bcast.chain(data, (np.multiply, ROW), np.negative, dtype="f4")
    assert described(result) == described(np.negative(data.astype("f4") * ROW))
    assert bcast.chain(GRID, (np.add, masked(ROW))).mask.tolist() == [[False, True, False]] * 4
    out = np.zeros((4, 3))
    with pytest.raises(TypeError, match=r"^`data` expected an array without a mask"):
        bcast.chain(data, out=out)
    assert not out.any()
    into, right = masked(np.zeros((4, 3))), masked(np.zeros((4, 3)))
    assert bcast.chain(GRID, np.sqrt, out=into) is into
    assert described(into) == described(np.sqrt(GRID, out=right))


def test_casting_that_numpy_does_not_know_is_refused():
    out = np.zeros((4, 3), np.uint8)
    for data, operand in (GRID.view(Own), ROW), (Metres(GRID), ROW), (GRID, masked(ROW)):
        with pytest.raises(ValueError, match=r"^`casting` expected one of NumPy's rules .*, got 'saturate'$"):
            bcast.chain(data, (np.multiply, operand), out=out, casting="saturate")
    assert not out.any()


def test_a_chain_of_no_step_keeps_the_class():
    for make in CLASSES.values():
        for dtype in None, np.float32:
            data = make(GRID)
            if make is OfUfuncs:
                with pytest.raises(TypeError, match=r"^`data` expected an array if `dtype` is given or there are no"):
                    bcast.chain(data, dtype=dtype)
                continue
            result = bcast.chain(data, dtype=dtype)
            assert type(result) is (np.ndarray if make is in_file else type(data))
            assert np.asarray(result).dtype == (dtype or np.float64)
            assert not np.shares_memory(np.asarray(result), np.asarray(data))
            assert np.asarray(result).tolist() == GRID.tolist()


@QUIET
@BOTH
def test_where_matches_numpy(make):
    grid, condition = make(GRID), GRID > 4
    for x, y in (grid, grid), (grid, GRID), (GRID, make(ROW)):
        assert outcome(lambda: bcast.where(condition, x, y)) == outcome(lambda: np.where(condition, x, y))
    if make is in_file:
        mapped = in_file(condition)
        assert described(bcast.where(mapped, grid, 0)) == described(np.where(mapped, grid, 0))


@QUIET
@BOTH
@pytest.mark.parametrize("name", ["sum", "mean", "var", "std"])
def test_statistics_match_numpy(make, name):
    grid = make(GRID)
    for axis in 0, 1, None:
        for options in {}, {"keepdims": True}:
            if options and make in (np.matrix, series):
                continue
            ours = outcome(lambda: getattr(bcast, name)(grid, axis, **options))
            assert ours == outcome(lambda: getattr(np, name)(grid, axis=axis, **options))


def test_objects_other_than_arrays_broadcast_themselves():
    for values in Metres(GRID), OfUfuncs(GRID):
        for mode in "none", "unidirectional", "pdpd":
            for call in partial(bcast.elementwise, np.add, values, values), partial(bcast.chain, values, (np.add, 2)):
                with pytest.raises(ValueError, match=rf"^`mode` expected 'numpy' if .*, got '{mode}' for [MO]"):
                    call(mode=mode)
    met = []
    bcast.elementwise(lambda a, b: met.extend((a, b)), OfUfuncs(ROW), [1])
    assert type(met[0]) is OfUfuncs
    with pytest.raises(TypeError, match="does not support ufuncs"):
        bcast.elementwise(np.add, ROW, Refusing())


def test_lists_of_objects_that_override_numpy():
    """Neither NumPy nor anybody would ask these classes, and units and labels would be lost."""
    for make in Metres, OfUfuncs:
        for items in [make(ROW), make(ROW)], (make(ROW),), [[ROW, ROW], [make(ROW), make(ROW)]]:
            match = rf"^`{{}}` expected arrays or numbers, got a {type(items).__name__} of {make.__name__}, which"
            for name, call in {
                "a": lambda items: bcast.elementwise(np.add, items, 1),
                "b": lambda items: bcast.elementwise(np.add, 1, items),
                "data": lambda items: bcast.chain(items, np.sqrt),
                r"steps\[0\]": lambda items: bcast.chain(ROW, (np.add, items)),
                "x": lambda items: bcast.where(True, items, 1),
            }.items():
                with pytest.raises(TypeError, match=match.format(name)):
                    call(items)
            for name in "sum", "mean", "var", "std":
                with pytest.raises(TypeError, match=match.format("a")):
                    getattr(bcast, name)(items, 0)
    assert bcast.elementwise(np.add, [ROW.view(Own), [1, 2, 3]], 1).tolist() == [[2, 3, 5], [2, 3, 4]]
    endless = []
    endless.append(endless)
    with pytest.raises(ValueError):
        bcast.elementwise(np.add, endless, 1)


# Copies and their adjoints.


@QUIET
@BOTH
def test_copies_are_plain_arrays(make):
    grid = make(GRID)
    calls = {
        "broadcast": lambda x: bcast.broadcast(x, (2, 4, 3)),
        "broadcast_to": lambda x: bcast.broadcast_to(x, (2, 4, 3), dtype="f4"),
        "broadcast_like": lambda x: bcast.broadcast_like(x, np.zeros((2, 4, 3))),
        "broadcast_arrays": lambda x: bcast.broadcast_arrays(x, np.zeros((2, 4, 3)))[0],
        "tile": lambda x: bcast.tile(x, 2),
        "repeat": lambda x: bcast.repeat(x, 2, 0),
        "runs": lambda x: bcast.repeat(x, [1, 0, 2, 3], 0),
        "meshgrid": lambda x: bcast.meshgrid(x, ROW)[0],
        "unbroadcast": lambda x: bcast.unbroadcast(x, (3,)),
        "unrepeat": lambda x: bcast.unrepeat(x, [3, 1], 0),
    }
    for call in calls.values():
        if make is masked:
            with pytest.raises(TypeError, match="without a mask"):
                call(grid)
            continue
        result = call(grid)
        assert type(result) is np.ndarray
        np.testing.assert_array_equal(result, call(GRID), strict=True)


def test_objects_that_numpy_cannot_read_are_refused():
    for call in (
        lambda: bcast.tile(Refusing(), 2), lambda: bcast.broadcast(Refusing(), (2,)),
        lambda: bcast.unbroadcast(Refusing(), ()), lambda: bcast.broadcast_arrays(Refusing(), 1),
    ):  # fmt: skip
        with pytest.raises(TypeError, match=r"expected an array that NumPy can read, got Refusing$"):
            call()


# Patches, memmaps, `out`.

PATCHED = {
    "tile": lambda x: np.tile(x, 2), "repeat": lambda x: np.repeat(x, 2), "meshgrid": lambda x: np.meshgrid(x, ROW),
    "broadcast_arrays": lambda x: np.broadcast_arrays(x, np.zeros((5, 4, 3))),
    "where": lambda x: np.where(ROW > 1, x, 0),
    "where it holds": lambda x: np.where(x, 1, 2), "stack": lambda x: np.stack([x, x]),
    "dstack": lambda x: np.dstack([x] * 3), "sum": lambda x: np.sum(x, axis=0), "mean": lambda x: np.mean(x, axis=0),
    "var": lambda x: np.var(x, axis=0), "std": lambda x: np.std(x, axis=0), "counts": lambda x: np.repeat(ROW, x),
    "reps": lambda x: np.tile(ROW, x), "max": lambda x: np.max(x, axis=0), "min": lambda x: np.min(x, axis=0),
    "any": lambda x: np.any(x, axis=0), "all": lambda x: np.all(x, axis=0), "prod": lambda x: np.prod(x, axis=0),
    "argmax": lambda x: np.argmax(x, axis=0), "argmin": lambda x: np.argmin(x, axis=0),
}  # fmt: skip

TAKEN = ["tile", "repeat", "meshgrid", "broadcast_arrays", "where", "stack", "dstack"]
TAKEN += ["max", "min", "any", "all", "prod", "argmax", "argmin"]


@QUIET
@BOTH
@pytest.mark.parametrize("call", PATCHED.values(), ids=PATCHED)
def test_patched_functions_dispatch_as_numpys(make, call):
    if call is PATCHED["dstack"] and make is CLASSES["matrix"]:
        pytest.skip("NumPy's own dstack of matrices writes beyond its memory")
    for array in GRID, ROW.astype(int):
        expected = outcome(lambda: call(make(array)))
        with bcast.patched_numpy(TAKEN):
            assert outcome(lambda: call(make(array))) == expected


@pytest.mark.parametrize("dtype", ["f8", "f4", "u1", "?", "c8", "M8[s]", "S3", "i4, f8"])
def test_patches_take_mapped_files_and_give_numpys_class(dtype):
    array = np.arange(12).astype("u1").view("?" if dtype == "?" else "u1").reshape(4, 3).astype(dtype)
    file = in_file(array)
    calls = {
        "tile": [lambda x: np.tile(x, 2), lambda x: np.tile(x, 1), lambda x: np.tile(x, (2, 1, 3))],
        "repeat": [lambda x: np.repeat(x, 2), lambda x: np.repeat(x, [1, 0, 2, 3], 0)],
        "meshgrid": [lambda x: np.meshgrid(x, ROW)],
        "where": [lambda x: np.where(GRID > 4, x, x), lambda x: np.where(in_file(GRID > 4), x, x)],
        "broadcast_arrays": [lambda x: np.broadcast_arrays(x, np.ones((2, 1, 1)))],
        "stack": [lambda x: np.stack([x, x])],
        "dstack": [lambda x: np.dstack([x, x])],
    }
    for name, each in calls.items():
        for call in each:
            expected = call(file)
            before = bcast.patch_info().get(name, (0, 0))
            with bcast.patched_numpy(name):
                found = call(file)
            assert bcast.patch_info()[name].taken - before[0] == (dtype != "i4, f8")
            assert described(found) == described(expected)
            for result in found if isinstance(found, tuple) else (found,):
                assert dtype == "i4, f8" or not np.shares_memory(result, file)
                assert getattr(result, "_mmap", None) is None


@pytest.mark.parametrize("shape", [(), (3,), (300, 3), (3, 300), (1000, 100)])
@pytest.mark.parametrize("dtype", ["f4", "i2", ">f8"])
def test_mapped_files_are_arrays_like_others(shape, dtype):
    array = np.arange(max(1, int(np.prod(shape)))).reshape(shape).astype(dtype)
    file = in_file(array)
    short = in_file(array[..., :1]) if shape else file
    assert not is_handed_on(file)
    assert type(as_base(file)) is np.ndarray
    for ufunc in np.add, np.maximum, np.less:
        for a, b in (file, 2), (2, file), (file, array), (file, file), (array, short):
            expected = ufunc(a, b)
            for result in bcast.elementwise(ufunc, a, b), bcast.elementwise(ufunc, a, b, mode="numpy"):
                assert type(result) is type(expected)
                np.testing.assert_array_equal(result, expected, strict=True)
            out = in_file(np.zeros_like(expected))
            for given in out, (out,):
                out[...] = 0
                assert bcast.elementwise(ufunc, a, b, out=given) is out
                np.testing.assert_array_equal(np.asarray(out), expected, strict=True)
            out[...] = 0
            assert bcast.chain(a, (ufunc, b), out=out) is out
            np.testing.assert_array_equal(np.asarray(out), expected, strict=True)
    chained = bcast.chain(file, (np.multiply, file), np.negative, dtype="f8")
    assert type(chained) is np.ndarray
    np.testing.assert_array_equal(chained, -(array.astype("f8") ** 2))
    chosen = bcast.where(file, file, 1)
    assert type(chosen) is np.ndarray
    np.testing.assert_array_equal(chosen, np.where(array, array, 1), strict=True)
    out = in_file(np.zeros_like(chosen))
    assert bcast.where(file, file, 1, out=out) is out
    np.testing.assert_array_equal(np.asarray(out), chosen, strict=True)
    out = in_file(np.zeros((2, *shape), "f4"))
    assert bcast.broadcast(file, (2, *shape), out=out, casting="unsafe") is out
    np.testing.assert_array_equal(np.asarray(out), np.broadcast_to(array, out.shape).astype("f4"), strict=True)


INTO = {
    "broadcast": lambda out: bcast.broadcast(ROW, (2, 3), out=out),
    "broadcast converted": lambda out: bcast.broadcast(ROW.astype("f4"), (2, 3), out=out),
    "broadcast_to": lambda out: bcast.broadcast_to(ROW, (2, 3), out=out),
    "broadcast_like": lambda out: bcast.broadcast_like(ROW, np.ones((2, 3)), out=out),
    "tile": lambda out: bcast.tile(ROW, (2, 1), out=out),
    "repeat": lambda out: bcast.repeat(ROW[np.newaxis], 2, 0, out=out),
    "runs": lambda out: bcast.repeat(GRID, [1, 0, 1, 0], 0, out=out),
    "unbroadcast": lambda out: bcast.unbroadcast(np.ones((4, 2, 3)), (2, 3), out=out),
    "unrepeat": lambda out: bcast.unrepeat(GRID, [1, 3], 0, out=out),
    "elementwise": lambda out: bcast.elementwise(np.add, GRID[:2], ROW, out=out),
    "elementwise, a tuple": lambda out: bcast.elementwise(np.add, GRID[:2], ROW, out=(out,)),
    "elementwise, a mode": lambda out: bcast.elementwise(np.add, GRID[:2], ROW, mode="unidirectional", out=out),
    "elementwise of objects": lambda out: bcast.elementwise(
        np.add, GRID[:2].astype(object), 1, out=out, casting="unsafe"
    ),
    "a function": lambda out: bcast.elementwise(lambda a, b, out: np.add(a, b, out), GRID[:2], ROW, out=out),
    "two results": lambda out: bcast.elementwise(np.divmod, GRID[:2], ROW, out=(np.zeros((2, 3)), out)),
    "chain": lambda out: bcast.chain(GRID[:2], (np.add, ROW), out=out),
    "chain of a subclass": lambda out: bcast.chain(GRID[:2].view(Own), (np.add, ROW), out=out),
    "a conversion": lambda out: bcast.chain(GRID[:2].astype("f4"), out=out),
    "where": lambda out: bcast.where(GRID[:2] > 1, GRID[:2], ROW, out=out),
    "sum": lambda out: bcast.sum(np.ones((4, 2, 3)), 0, out=out),
    "sum of long doubles": lambda out: bcast.sum(np.ones((4, 2, 3), "g"), 0, out=out),
    "mean": lambda out: bcast.mean(np.ones((4, 2, 3)), 0, out=out),
    "var": lambda out: bcast.var(np.ones((4, 2, 3)), 0, out=out),
    "std, where": lambda out: bcast.std(np.ones((4, 2, 3)), 0, out=out, where=True),
}


@pytest.mark.parametrize("call", INTO.values(), ids=INTO)
@pytest.mark.parametrize("kind", [np.ndarray, Own, np.memmap])
def test_out_that_repeats_its_memory_is_refused(call, kind):
    memory = in_file(np.full(6, 7.0)) if kind is np.memmap else np.full(6, 7.0).view(kind)
    good = np.full((2, 3), 7.0)
    call(good)
    assert (good != 7).any()
    for strides, axis in ((0, 8), 0), ((8, 0), 1), ((0, 0), 0):
        out = np.lib.stride_tricks.as_strided(memory, (2, 3), strides, subok=True)
        assert type(out) is kind
        match = rf"^`out` expected items that share no memory, got \w+ that is expanded along axis {axis}"
        with pytest.raises(ValueError, match=match):
            call(out)
        assert (memory == 7).all()


def test_strides_of_0_that_repeat_nothing():
    for shape, strides in ((1, 3), (0, 8)), ((0, 3), (24, 0)):
        out = np.lib.stride_tricks.as_strided(np.zeros(3), shape, strides)
        assert bcast.broadcast(ROW, shape, out=out) is out
        assert bcast.elementwise(np.add, np.zeros(shape), ROW, out=out) is out
        assert bcast.chain(np.zeros(shape), (np.add, ROW), out=out) is out
        assert bcast.where(np.ones(shape, bool), ROW, 0.0, out=out) is out
        assert out.tolist() == [ROW.tolist()] * shape[0]


def test_which_classes_override():
    assert [overrides(each) for each in (Metres(1), OfUfuncs(1), Refusing())] == [True] * 3
    plain = [GRID, GRID.view(Own), masked(GRID), GRID.view(np.matrix), in_file(ROW), 1, 2.5, "a", None, [1], (1,)]
    assert [overrides(each) for each in [*plain, np.float32(1), np.datetime64(1, "s"), np.ndarray]] == [False] * 14
    assert [is_handed_on(each) for each in plain] == [False, True, True, True] + [False] * 7

    class Scalar(np.float64):
        def __array_ufunc__(self, *args, **kwargs):
            return "handed on"

    assert overrides(Scalar(1))
    assert bcast.elementwise(np.add, ROW, Scalar(1)) == "handed on"
    assert bcast.chain(ROW, (np.add, Scalar(1))) == "handed on"
