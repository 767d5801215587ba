"""Ufuncs with gates: operators and calls have NumPy's bits, warnings and errors, for all callers and at all times."""

import operator
import os
import pickle
import random
import sys
import textwrap
import warnings
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest
from _commands import python
from _patched import errors_in_threads, expect_passed_on

import bcast
from bcast._api.patching import GROUPS, time_calls
from bcast._apply.run import set_limits
from bcast._apply.ufuncs import probe

NAMES = GROUPS["ufuncs"]
UFUNCS = [getattr(np, name) for name in NAMES]
OPERATORS = {
    np.add: operator.add, np.subtract: operator.sub, np.multiply: operator.mul, np.divide: operator.truediv,
    np.floor_divide: operator.floordiv, np.remainder: operator.mod, np.power: operator.pow, np.less: operator.lt,
    np.less_equal: operator.le, np.equal: operator.eq, np.not_equal: operator.ne, np.greater: operator.gt,
    np.greater_equal: operator.ge, np.bitwise_and: operator.and_, np.bitwise_or: operator.or_,
    np.bitwise_xor: operator.xor, np.left_shift: operator.lshift, np.right_shift: operator.rshift,
    np.negative: operator.neg, np.positive: operator.pos, np.absolute: operator.abs, np.invert: operator.invert,
}  # fmt: skip
IN_PLACE = {
    np.add: operator.iadd, np.subtract: operator.isub, np.multiply: operator.imul, np.divide: operator.itruediv,
    np.floor_divide: operator.ifloordiv, np.remainder: operator.imod, np.power: operator.ipow,
    np.bitwise_and: operator.iand, np.bitwise_or: operator.ior, np.bitwise_xor: operator.ixor,
    np.left_shift: operator.ilshift, np.right_shift: operator.irshift,
}  # fmt: skip
PREDICATES = (np.isfinite, np.isinf, np.isnan, np.signbit)
DTYPES = [
    "?",
    "i1",
    "u1",
    "i2",
    "u2",
    "i4",
    "u4",
    "i8",
    "u8",
    "f2",
    "f4",
    "f8",
    "g",
    "F",
    "D",
    ">f4",
    ">i8",
    "O",
    "m8[s]",
]
WEIGHTS = [3, 2, 4, 2, 2, 4, 2, 5, 2, 4, 9, 9, 1, 2, 3, 1, 1, 1, 1]
SHAPES = [
    ((5, 3), (3,)), ((40, 3), (40, 1)), ((7, 1), (1, 9)), ((300,), ()), ((2, 3, 4), (3, 1)), ((33, 17), (33, 17)),
    ((6, 1, 2), (5, 2)), ((1,), (4,)), ((0, 3), (3,)), ((), (2, 2)), ((900,), (900,)), ((50, 40), (40,)),
    ((64, 5), (64, 5)), ((3, 4), (5,)), ((1, 1), (7,)), ((4, 130), (4, 1)), ((2, 2, 2, 2, 2), (2, 1, 2)),
    ((40, 1, 3), (40, 1, 3)), ((1, 30, 4), ()),
]  # fmt: skip


class Sub(np.ndarray):
    pass


class Mixin:
    pass


class Mixed(Mixin, Sub):
    pass


def items(choose, shape, dtype):
    """An array of some numbers, NaN and zeros among them."""
    size = int(np.prod(shape))
    rng = np.random.default_rng(choose.getrandbits(32))
    if dtype in ("O", "m8[s]"):
        return rng.integers(1, 9, size).astype(dtype).reshape(shape)
    kind = np.dtype(dtype).kind
    if kind in "biu":
        low, high = (0, 2) if kind == "b" else (0, 9) if kind == "u" or choose.random() < 0.3 else (-9, 9)
        return rng.integers(low, high, size).astype(dtype).reshape(shape)
    data = rng.normal(0, choose.choice([1, 1, 100, 1e4, 1e-3]), size).astype(dtype)
    if kind == "c":
        data = (data + 1j * rng.normal(0, 3, size)).astype(dtype)
    if size and choose.random() < 0.3:
        special = [0.0, -0.0, np.nan, np.inf, -np.inf, 1.0, 65504.0]
        data[rng.integers(0, size, 1 + size // 7)] = choose.choice(special)
    return data.reshape(shape)


def laid_out(choose, array):
    """The same items in some layout."""
    how = choose.choice(["C"] * 4 + ["F", "T", "strided", "back", "odd", "repeated", "wide"])
    if how == "F":
        return np.asfortranarray(array)
    if how == "T" and array.ndim > 1:
        axes = choose.sample(range(array.ndim), array.ndim)
        return np.ascontiguousarray(array.transpose(axes)).transpose(np.argsort(axes))
    if how == "strided" and array.ndim:
        return np.repeat(array, 2, axis=-1)[..., ::2]
    if how == "back" and array.ndim:
        return np.ascontiguousarray(array[::-1])[::-1]
    if how == "odd" and not array.dtype.hasobject:
        room = np.zeros(array.nbytes + 1, np.uint8)
        moved = room[1:].view(array.dtype) if array.nbytes else room[:0].view(array.dtype)
        moved = moved.reshape(array.shape)
        moved[...] = array
        return moved
    if how == "repeated" and array.ndim and array.shape[0]:
        return np.broadcast_to(array[:1], array.shape)
    if how == "wide" and array.ndim:
        return np.concatenate([array, array[..., :1]], -1)[..., : array.shape[-1]]
    return array


def operand(choose, shape, dtype):
    if shape == () and choose.random() < 0.8:
        scalars = [2, 0, -3, 2.5, 0.0, float("nan"), True, 2j, np.float32(1.5), np.float64(-2), np.int8(3),
                   np.uint64(7), np.bool_(True), np.complex64(1j), 300, 1e300, 2**70, "a", None]  # fmt: skip
        return choose.choice(scalars)
    array = laid_out(choose, items(choose, shape, dtype))
    if choose.random() < 0.03:
        return array.view(Sub) if choose.random() < 0.5 else np.ma.array(array)
    return array


class Trial(NamedTuple):
    """A call: `make` gives new arguments that are the same each time."""

    function: object
    make: object
    what: str

    def run(self):
        """Return what comes of it: bits, layout, what arguments have become, warnings or the error."""
        arguments, options = self.make()
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            try:
                result = self.function(*arguments, **options)
            except Exception as error:
                result = error
        places = [i for i, each in enumerate(arguments) if each is result]
        places += [name for name, each in options.items() if each is result]
        after = [] if isinstance(result, Exception) else [described(each) for each in (*arguments, *options.values())]
        said = [(each.category, str(each.message), each.filename, each.lineno) for each in told]
        return described(result), places, after, said


def described(value):
    if isinstance(value, Exception):
        return type(value), str(value)
    if isinstance(value, tuple):
        return [described(each) for each in value]
    if not isinstance(value, np.ndarray | np.generic):
        return type(value), repr(value)
    array = np.asarray(value)
    flags = array.strides if array.size else None
    writable = value.flags.writeable, value.flags.owndata, value.flags.aligned
    return type(value), array.dtype, array.shape, flags, writable, bits(array), repr(getattr(value, "mask", None))


def bits(array):
    """The bytes of an array; of floats, all NaN are one."""
    if array.dtype.hasobject:
        return repr(array.tolist())
    array = np.array(array, order="C")
    if array.dtype.kind in "fc":
        parts = array.view(array.real.dtype) if array.ndim else array.reshape(1).view(array.real.dtype)
        parts[parts != parts] = np.nan
        if array.dtype.itemsize % 16 == 0 and array.dtype.char in "gG":  # whose last bytes are anything
            return repr(parts.tolist()), np.signbit(parts).tobytes()
        array = parts
    return array.tobytes()


def trial(seed):
    """A random call, as its seed has it."""
    choose = random.Random(seed)
    function = choose.choice(UFUNCS)
    shapes = choose.choice(SHAPES)
    if choose.random() < 0.5:
        shapes = shapes[::-1]
    dtypes = choose.choices(DTYPES, WEIGHTS, k=2)
    if choose.random() < 0.6:
        dtypes[1] = dtypes[0]
    shapes = shapes[: function.nin]
    is_truth = function in PREDICATES  # NumPy stores some wrongly at negative strides
    kind = choose.choice(["call", "call", "operator", "operator", "in place", "out", "overlapping", "options"])
    state = choose.getrandbits(48)

    def operands():
        again = random.Random(state)
        return [operand(again, *each) for each in zip(shapes, dtypes, strict=False)]

    def make():
        given, options = operands(), {}
        again = random.Random(state + 1)
        first = given[0] if isinstance(given[0], np.ndarray) else given[-1]
        if kind == "overlapping" and isinstance(first, np.ndarray):
            options["out"] = first if again.random() < 0.5 else first[::-1] if first.ndim else first
        if kind == "out":
            try:
                shape = np.broadcast_shapes(*(getattr(each, "shape", ()) for each in given))
                out = np.zeros(shape, again.choice(["f4", "f8", "?", "i8", dtypes[0], "D"]))
                out = out if is_truth else laid_out(again, out)
            except ValueError:
                out = np.zeros(3)
            style = again.randrange(4)
            options = {"out": (out,)} if style == 0 else {"out": out} if style < 3 else {}
            given = [*given, out] if style == 3 else given
        if kind == "options":
            options = again.choice([
                {"where": again.choice([True, np.True_])}, {"dtype": again.choice(["f4", "f8", None])},
                {"casting": "unsafe"}, {"order": "F"}, {"subok": False}, {"out": None}, {"out": ...},
                {"signature": "dd->d"}, {"nonsense": 1}, {"out": (None,)}, {"out": 3}, {"out": ()},
            ])  # fmt: skip
        return given, options

    chosen = function
    if kind == "operator":
        chosen = OPERATORS.get(function, function)
    if kind == "in place":
        chosen = IN_PLACE.get(function, function)
    return Trial(chosen, make, f"seed {seed}: {function.__name__} {kind} {shapes} {dtypes}")


def compare(seeds):
    """Return how many calls were taken, of those that must come to the same patched and not."""
    before = sum(each.taken for each in bcast.patch_info().values())
    for seed in seeds:
        each = trial(seed)
        right = each.run()
        with bcast.patched_numpy("ufuncs"):
            found = each.run()
        assert found == right, each.what
    return sum(each.taken for each in bcast.patch_info().values()) - before


@pytest.fixture
def few_bytes():
    """Threads share small arrays, too."""
    set_limits(21)  # gates wake threads for 24 times as much
    yield
    set_limits()
    probe()  # this many loops fill the table


@pytest.mark.usefixtures("few_bytes")
@pytest.mark.parametrize("first", [pytest.param(0, id="short"), pytest.param(4_000, marks=pytest.mark.drill)])
def test_random_calls_give_numpys_bits(first):
    count = 100_000 if first else 3_000
    assert compare(range(first, first + count)) > count // 4


POINTS = np.arange(12.0, dtype=np.float32).reshape(4, 3)
ROW = np.array([1, 2, 4], np.float32)


def taken(function, *args, **kwargs):
    """Return the result of a call, and whether it was taken."""
    before = sum(each.taken for each in bcast.patch_info().values())
    result = function(*args, **kwargs)
    return result, sum(each.taken for each in bcast.patch_info().values()) > before


def test_ufuncs_stay_the_same_objects():
    add, identity = np.add, id(np.add)
    pickled = pickle.dumps(add)
    with bcast.patched_numpy("ufuncs"):
        assert np.add is add
        assert (id(np.add), pickle.dumps(np.add), repr(np.add)) == (identity, pickled, "<ufunc 'add'>")
        assert isinstance(np.add, np.ufunc)
        assert all(bcast.is_patched(name) for name in NAMES)
        assert not bcast.is_patched("tile")
        np.testing.assert_array_equal(taken(operator.add, POINTS, ROW)[0], np.add(POINTS, ROW))
        assert taken(operator.add, POINTS, ROW)[1]
        for method, args in (("reduce", (POINTS,)), ("outer", (ROW, ROW)), ("accumulate", (POINTS,))):
            assert not taken(getattr(np.add, method), *args)[1], method
        np.add.at(ROW.copy(), [0, 1], 1)
    assert not bcast.is_patched()
    assert not taken(operator.add, POINTS, ROW)[1]


def test_operators_and_names_imported_before_are_reached():
    from numpy import add, multiply

    x = POINTS.copy()
    with bcast.patched_numpy("ufuncs"):
        found = x + ROW, x * ROW, x > ROW, x - 1, -x, add(x, ROW), multiply(x, x[:, :1]), ROW - x
        x += ROW
        info = bcast.patch_info()
    right = POINTS + ROW, POINTS * ROW, POINTS > ROW, POINTS - 1, -POINTS, POINTS + ROW, POINTS * POINTS[:, :1]
    for each, expected in zip(found, (*right, ROW - POINTS), strict=True):
        np.testing.assert_array_equal(each, expected)
    np.testing.assert_array_equal(x, POINTS + ROW)
    assert info["add"].items >= 24


REASONS = [
    ("add", (POINTS, ROW.view(Sub)), {}, "subclass"),
    ("add", (np.ma.array(POINTS), ROW), {}, "subclass"),
    ("add", (POINTS.tolist(), [1, 2, 3]), {}, "no array"),
    ("add", (2.0, 3), {}, "no array"),
    ("add", (POINTS, [1, 2, 3]), {}, "small"),
    ("add", (POINTS.astype(object), ROW), {}, "dtype"),
    ("add", (POINTS.astype("m8[s]"), ROW.astype("m8[s]")), {}, "dtype"),
    ("power", (POINTS.astype(int), ROW.astype(int)), {}, "dtype"),
    ("add", (POINTS, ROW), {"where": POINTS > 3, "out": np.zeros((4, 3))}, "keyword"),
    ("add", (POINTS, ROW), {"dtype": float}, "keyword"),
    ("add", (POINTS, ROW), {"casting": "unsafe"}, "keyword"),
    ("add", (POINTS, ROW), {"subok": False}, "keyword"),
    ("add", (POINTS, ROW), {"signature": "ff->f"}, "keyword"),
    ("add", (POINTS, ROW), {"out": np.zeros((4, 3)).view(Sub)}, "subclass"),
    ("add", (POINTS, ROW), {"out": (...,)}, "no array"),  # which NumPy refuses
    ("add", (POINTS, POINTS[0, :2]), {}, "argument"),
    ("add", (POINTS, ROW), {"out": np.zeros((2, 4, 3))}, "argument"),
    ("add", (POINTS,), {}, "argument"),
    ("add", (POINTS, POINTS), {}, "small"),
    ("add", (POINTS, np.float64(2)), {}, "small"),
    ("add", (2, POINTS), {}, "small"),
    ("add", (2.0, POINTS.view(Sub)), {}, "subclass"),
    ("sqrt", (POINTS,), {}, "small"),
    ("sqrt", ([1.0],), {}, "no array"),
    ("sqrt", (ROW.view(Sub),), {}, "subclass"),
    ("sqrt", (2.0,), {}, "no array"),
    ("add", (np.float64(2), 3), {}, "no array"),
    ("add", (POINTS, Decimal(2)), {}, "small"),  # a heap type
    ("add", (Decimal(1), Fraction(2)), {}, "no array"),
    ("add", (POINTS, ROW.view(Mixed)), {}, "subclass"),  # whose first base is no array
    ("sqrt", (ROW.view(Mixed),), {}, "subclass"),
    ("add", (POINTS, np.array(2.0)), {}, "small"),
    ("add", (np.array(2), np.array(2.0)), {}, "small"),
    ("add", (np.ones(1), POINTS), {}, "small"),
    ("add", (POINTS[:, :2], POINTS[:, 1:]), {}, "small"),  # with gaps
    ("add", (np.zeros((2, 3, 4)), np.ones((2, 3, 4))), {}, "small"),
    ("sqrt", (np.zeros((2, 3, 4)),), {}, "small"),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*")
@pytest.mark.parametrize(("name", "args", "kwargs", "reason"), REASONS, ids=lambda value: str(value)[:20])
def test_calls_are_passed_on_for_a_reason(name, args, kwargs, reason):
    expect_passed_on(name, lambda: getattr(np, name)(*args, **kwargs), reason)


class Duck:
    """A class that overrides ufuncs, and whose operators come before those of arrays."""

    __array_priority__ = 1000

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return ufunc, method, len(inputs), tuple(kwargs)


class Deferring:
    __array_ufunc__ = None

    def __radd__(self, other):
        return "mine"


class Wrapping(Sub):
    def __array_wrap__(self, array, context=None, return_scalar=False):
        return "wrapped", array.shape


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_others_have_their_say():
    with bcast.patched_numpy("ufuncs"):
        assert np.add(POINTS, Duck()) == (np.add, "__call__", 2, ())
        assert np.add(POINTS, ROW, out=Duck()) == (np.add, "__call__", 2, ("out",))
        assert POINTS + Duck() == (np.add, "__call__", 2, ())
        assert POINTS + Deferring() == "mine"
        with pytest.raises(TypeError):
            np.add(POINTS, Deferring())
        assert np.add(POINTS.view(Wrapping), ROW) == ("wrapped", (4, 3))
        masked = np.ma.array(POINTS, mask=POINTS > 5) + ROW
        assert masked.mask.tolist() == (POINTS > 5).tolist()
        assert type(POINTS.view(np.matrix) * np.matrix(ROW).T) is np.matrix
        assert type(np.array(2.0) + np.array(3.0)) is np.float64


def test_floating_point_errors_follow_errstate():
    zero = np.zeros((4, 1))
    grid = np.ones((4, 3))
    told = []
    with bcast.patched_numpy("ufuncs"):
        with np.errstate(divide="ignore"), warnings.catch_warnings():
            warnings.simplefilter("error")
            assert taken(operator.truediv, grid, zero)[1]
        with np.errstate(divide="raise"), pytest.raises(FloatingPointError, match="divide by zero encountered in div"):
            grid / zero
        with np.errstate(divide="call", call=lambda *what: told.append(what)):
            grid / zero
        with pytest.warns(RuntimeWarning, match="divide by zero encountered in divide") as warned:
            grid / zero
    assert told == [("divide by zero", 1)]
    assert warned[0].filename == __file__


def test_temporaries_are_reused_before_and_memory_may_overlap():
    x = np.ones((200_000, 3), np.float32)
    with bcast.patched_numpy("ufuncs"):
        y = (x * ROW) + ROW - x
        np.testing.assert_array_equal(y[0], ROW * 2 - 1)
        z = np.arange(30.0).reshape(10, 3)
        z[1:] += z[:-1, :1]
    right = np.arange(30.0).reshape(10, 3)
    right[1:] = right[1:] + right[:-1, :1].copy()
    np.testing.assert_array_equal(z, right)


def test_one_thread_leaves_long_rows_to_numpy():
    x = np.ones(1_000_000)
    threads = bcast.get_num_threads()
    with bcast.patched_numpy("ufuncs"):
        try:
            bcast.set_num_threads(1)
            assert not taken(operator.add, x, x)[1]
            assert not taken(np.exp, x)[1]
            assert taken(operator.add, x.reshape(-1, 2), x[:2])[1]
        finally:
            bcast.set_num_threads(threads)


def test_one_thread_takes_columns_across_short_rows():
    """The core transposes them first, in tiles."""
    rows = np.ones((20_000, 20))
    columns = np.asfortranarray(rows)
    threads = bcast.get_num_threads()
    with bcast.patched_numpy("ufuncs"):
        try:
            bcast.set_num_threads(1)
            assert taken(operator.add, rows, columns)[1]
            assert taken(operator.add, columns, rows)[1]
            assert taken(operator.add, rows.astype("f4"), columns.astype("f4", order="F"))[1]
            assert taken(operator.add, rows[:2000], columns[:2000])[1]
            assert taken(operator.add, rows[:, :4], columns[:, :4])[1]
        finally:
            bcast.set_num_threads(threads)


def test_functions_of_the_package_are_as_they_are_without_a_patch():
    with bcast.patched_numpy("ufuncs"):
        before = bcast.patch_info()["add"]
        found = bcast.elementwise(np.add, POINTS, ROW), bcast.elementwise(np.add, POINTS.astype(object), 1)
        found += (bcast.elementwise(np.add, [1, 2], [[3]]), bcast.chain(POINTS, (np.add, ROW), np.square))
        assert bcast.patch_info()["add"][:2] == before[:2]  # no call comes to the gate
    assert [each.tolist() for each in found[::2]] == [(POINTS + ROW).tolist(), [[4, 5]]]


def test_patches_of_ufuncs_nest():
    bcast.patch_numpy("add", "sqrt")
    with bcast.patched_numpy("ufuncs"), bcast.patched_numpy("add"):
        assert bcast.is_patched("add")
        bcast.unpatch_numpy()
        assert bcast.is_patched("add")
    assert not bcast.is_patched()


def test_calls_are_timed_if_that_is_wanted():
    with bcast.patched_numpy("add"):
        first = bcast.patch_info()["add"]
        POINTS + ROW
        assert bcast.patch_info()["add"][3:] == first[3:]
        time_calls()
        try:
            POINTS + ROW, POINTS + POINTS
            after = bcast.patch_info()["add"]
        finally:
            time_calls(False)
    assert after.items == first.items + 24
    assert after.seconds_taken > first.seconds_taken
    assert after.seconds_passed > first.seconds_passed


def test_another_librarys_function_stays_and_is_called():
    """One that is there before a patch, and one that comes after it; the gate is never put before itself."""
    code = """
        import ctypes, numpy as np, bcast
        field = 56  # of a type, which says where the pointer of a ufunc is
        offset = ctypes.c_ssize_t.from_address(id(np.ufunc) + field).value
        pointer = ctypes.c_void_p.from_address(id(np.add) + offset)
        kind = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
        numpys, calls = pointer.value, []
        def before(*args):
            calls.append("before")
            return kind(numpys)(*args)
        x, row = np.ones((40, 3)), np.ones(3)
        kept = kind(before)
        pointer.value = ctypes.cast(kept, ctypes.c_void_p).value
        others = pointer.value
        with bcast.patched_numpy("add"):
            x + row, x + x
            assert calls == ["before"], calls
        assert pointer.value == others
        pointer.value = numpys
        bcast.patch_numpy("add")
        ours = pointer.value
        def since(*args):
            calls.append("since")
            return kind(ours)(*args)
        later = kind(since)
        pointer.value = ctypes.cast(later, ctypes.c_void_p).value
        assert not bcast.is_patched("add")
        for _ in range(3):
            before = bcast.patch_info()["add"].taken
            x + row
            assert bcast.patch_info()["add"].taken == before + 1
            bcast.unpatch_numpy()
            assert pointer.value == ctypes.cast(later, ctypes.c_void_p).value
            assert (x + row).sum() == 240 and bcast.patch_info()["add"].taken == before + 1
            bcast.patch_numpy("add")
        pointer.value = numpys      # it has gone
        bcast.unpatch_numpy()
        bcast.patch_numpy("add")
        assert pointer.value == ours and bcast.is_patched("add")
        bcast.unpatch_numpy()
        assert pointer.value == numpys
    """
    if hasattr(sys, "_is_gil_enabled") or os.name == "nt":
        pytest.skip("knows where the field is by CPython with a GIL, before 3.13")
    done = python("-c", textwrap.dedent(code))
    assert (done.returncode, done.stderr) == (0, "")


def test_threads_may_patch_and_call_at_the_same_time():
    def work(seed):
        try:
            for i in range(seed * 40, seed * 40 + 40):
                each = trial(i)
                with bcast.patched_numpy("ufuncs" if i % 2 else ("add", "multiply")):
                    found = each.function(*each.make()[0]) if "call" in each.what else None
                if found is not None:
                    assert described(found) == described(each.function(*each.make()[0])), each.what
        except (TypeError, ValueError):
            pass

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        errors = errors_in_threads(work, 8)
    assert errors == []
    assert not bcast.is_patched()


def test_arrays_may_be_added_while_the_interpreter_ends():
    code = """
        import atexit, numpy as np, bcast
        bcast.patch_numpy("ufuncs")
        class Late:
            def __init__(self):
                self.add, self.x, self.row, self.print = np.add, np.ones((40, 3)), np.ones(3), print
            def __del__(self):
                self.add(self.x, self.row), self.add(self.x.astype("f4"), self.row), self.x / self.row, -self.x
                self.print("late")
        kept = Late()
        bcast.kept = Late()
        atexit.register(lambda late: None, Late())
    """
    done = python("-c", textwrap.dedent(code))
    assert (done.returncode, done.stdout, done.stderr) == (0, "late\n" * 3, "")


def test_a_child_of_a_fork_has_the_patch():
    code = """
        import os, numpy as np, bcast
        bcast.patch_numpy("ufuncs")
        x, row = np.ones((300_000, 3)), np.ones(3)
        x + row
        child = os.fork()
        if child == 0:
            os._exit(0 if (x + row).sum() == 1_800_000 and bcast.is_patched("add") else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    """
    if not hasattr(os, "fork"):
        pytest.skip("there are no forks")
    done = python("-W", "ignore", "-c", textwrap.dedent(code))
    assert (done.returncode, done.stderr) == (0, "")
