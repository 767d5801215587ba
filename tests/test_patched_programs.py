"""Random programs give the same values, layouts, warnings, errors and calls of error handlers with and without a patch.

A program has six arrays of any dtypes. Each statement runs by itself: an operator, a ufunc, one of its methods, a
reduction, a copy, or a NumPy function that is built on these. Operands are views of the arrays, so `out` and in-place
operators overlap other operands. Later statements use earlier results.
"""

import copy
import operator
import pickle
import random
import threading
import warnings
from contextlib import nullcontext

import numpy as np
import pytest
from test_patched_ufuncs import IN_PLACE, OPERATORS, PREDICATES, UFUNCS, Mixed, Sub, described

import bcast
from bcast._apply.run import set_limits
from bcast._apply.ufuncs import probe

LENGTHS = (1, 1, 2, 3, 3, 4, 5, 8, 16, 17, 33, 70, 0)
DTYPES = [
    "?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "g", "F", "D", "G", ">f4", ">i8", ">f8",
    "M8[s]", "m8[s]", "O", "U3", "S2", "i4,f8",
]  # fmt: skip
WEIGHTS = [4, 3, 4, 2, 2, 4, 2, 6, 2, 4, 10, 10, 2, 3, 3, 1, 2, 2, 1, 1, 1, 1, 1, 1, 0.5]
SCALARS = [
    2, 0, -1, 2.5, True, 1j, 300, 2**70, None, "a", b"a", (1.0, 2.0, 3.0), np.float16(2), np.float32(1.5),
    np.float64(-2), np.longdouble(3), np.int8(3), np.uint64(7), np.bool_(True), np.timedelta64(3, "s"),
]  # fmt: skip
STATES = ("ignore", "warn", "raise", "call", "log")


class Seen(np.ndarray):
    """A class whose arrays count how they were made."""

    def __array_finalize__(self, other):
        self.seen = getattr(other, "seen", 0) + 1


class Asked(np.ndarray):
    """A class that overrides ufuncs, and calls NumPy's."""

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **options):
        if out is not None:
            options["out"] = tuple(np.asarray(each) if isinstance(each, Asked) else each for each in out)
        result = getattr(ufunc, method)(*map(np.asarray, inputs), **options)
        return result.view(Asked) if isinstance(result, np.ndarray) else result


CLASSES = (Sub, Mixed, Seen, Asked, np.ma.MaskedArray, np.recarray, np.memmap)


class Program:
    """A program that depends on its seed alone. `choose` makes all decisions, also those of statements."""

    def __init__(self, seed):
        self.choose = random.Random(seed)
        self.rng = np.random.default_rng(seed)
        self.arrays = [self.new_array() for _ in range(6)]

    def new_array(self, shape=None, dtype=None):
        choose, rng = self.choose, self.rng
        dtype = np.dtype(dtype or choose.choices(DTYPES, WEIGHTS)[0])
        if shape is None:
            shape = tuple(choose.choices(LENGTHS, k=choose.choice((0, 1, 1, 2, 2, 2, 3, 3, 4))))
        while np.prod(shape) > 5000:
            shape = shape[1:]
        size = int(np.prod(shape))
        if dtype.kind not in "fc":
            low = -5 if dtype.kind in "imMO" else 0
            return rng.integers(low, 2 if dtype.kind == "b" else 100, size).astype(dtype).reshape(shape)

        data = rng.normal(0, choose.choice((1, 1, 100, 1e4, 1e-3)), size)
        data = (data + 1j * rng.normal(0, 1, size) if dtype.kind == "c" else data).astype(dtype)
        if size and choose.random() < 0.4:
            data[rng.integers(0, size, 1 + size // 9)] = choose.choice((0.0, np.nan, np.inf, -np.inf, 1.0, 6e4))
        return data.reshape(shape, order=choose.choice("CCCF"))

    def replace(self, array):
        """Make an array one of the program's."""
        self.arrays[self.choose.randrange(6)] = array
        return array

    def view(self, array):
        """One of several views of an array."""
        if array.ndim == 0:
            return array
        views = [array[::-1], array[1:], array[:-1], array.T, array[..., ::2], array[..., None], array[None]]
        views += [array[..., :1], array, np.broadcast_to(array[:1], array.shape)]
        views += [array.imag] if array.dtype.kind == "c" else []
        return self.choose.choice(views)

    def operand(self):
        """A scalar, or one of the arrays, a view of it, perhaps of a subclass."""
        if self.choose.random() < 0.15:
            return self.choose.choice(SCALARS)
        array = self.choose.choice(self.arrays)
        for _ in range(self.choose.choice((0, 0, 0, 1, 1, 2))):
            array = self.view(array)
        if self.choose.random() > 0.06:
            return array
        kind = self.choose.choice(CLASSES)
        if kind is np.ma.MaskedArray:
            return np.ma.array(array, mask=np.arange(array.size).reshape(array.shape) % 3 == 0, copy=False)
        return array.view(kind)

    def pair(self):
        """Two operands, whose shapes mostly fit."""
        a = self.operand()
        if not isinstance(a, np.ndarray) or self.choose.random() < 0.3:
            return a, self.operand()
        fitting = [each for each in self.arrays if fits(each.shape, a.shape)]
        if fitting:
            return a, self.choose.choice(fitting)
        shape = a.shape[self.choose.randrange(a.ndim + 1) :]
        return a, self.replace(self.new_array(tuple(n if self.choose.random() < 0.7 else 1 for n in shape)))

    def options(self, args):
        """Keyword arguments of a ufunc."""
        choose = self.choose
        kind = choose.choice(["none"] * 8 + ["out"] * 6 + ["dtype", "casting", "order", "subok", "odd"])
        if kind == "out":
            out = choose.choice(self.arrays)
            if choose.random() < 0.7 and all(isinstance(each, np.ndarray) for each in args):
                shapes = [each.shape for each in args]
                if fits(shapes[0], shapes[-1]):
                    out = self.replace(self.new_array(np.broadcast_shapes(*shapes), choose.choice("fdgeD?il")))
            out = out.view(choose.choice(CLASSES[:4])) if choose.random() < 0.2 else out
            where = choose.choice((True, False, np.True_, np.arange(out.size).reshape(out.shape) % 2 == 0))
            options = {"out": choose.choice((out, (out,), out[::-1] if out.ndim else out))}
            return options | {"where": where} if choose.random() < 0.2 else options
        return {
            "none": {},
            "dtype": {"dtype": choose.choice(("f4", "f8", None, "i8", object, "D"))},
            "casting": {"casting": choose.choice(("unsafe", "safe", "no", "equiv", "same_kind", "nonsense"))},
            "order": {"order": choose.choice("FCAK")},
            "subok": {"subok": choose.random() < 0.5},
            "odd": {"out": choose.choice((None, (None,), (None, None), (), ..., 3))},
        }[kind]

    # Each statement returns a function without arguments.

    def operator(self):
        function = self.choose.choice(list(OPERATORS))
        args = self.pair()[: function.nin]
        return lambda: OPERATORS[function](*args)

    def function_in_place(self):
        """An in-place operator, but no power: NumPy's error for negative ones leaves anything in swapped integers."""
        return self.choose.choice([function for ufunc, function in IN_PLACE.items() if ufunc is not np.power])

    def operator_in_place(self):
        function = self.function_in_place()
        a, b = self.pair()
        if self.choose.random() < 0.3 and isinstance(a, np.ndarray) and a.ndim:
            b = self.choose.choice((a[::-1], a.T, a[..., :1], a[:1]))
        return lambda: function(a, b)

    def items_in_place(self):
        function = self.function_in_place()
        at = self.choose.choice((slice(1, None), slice(None, None, 2), slice(None, None, -1), (..., slice(0, 2)), ...))
        a, b = self.pair()

        def run():
            a[at] = function(a[at], b)
            return a

        return run

    def ufunc(self):
        function = self.choose.choice([*UFUNCS, np.divmod, np.modf, np.frexp])
        args = self.pair()[: function.nin]
        options = self.options(args) if function not in PREDICATES else {}
        if function.nout == 2 and "out" in options:
            options = {"out": (self.choose.choice([*self.arrays, None]), None)}
        if function not in PREDICATES and self.choose.random() < 0.1:
            return lambda: function(*args, self.arrays[0])
        return lambda: function(*args, **options)

    def pickled_ufunc(self):
        function = self.choose.choice(UFUNCS)
        args = self.pair()[: function.nin]
        again = self.choose.choice((copy.deepcopy, copy.copy, lambda each: pickle.loads(pickle.dumps(each))))
        return lambda: again(function)(*args)

    def method_of_ufunc(self):
        function = self.choose.choice([each for each in UFUNCS if each.nin == 2])
        a, b = self.pair()
        small = next((each for each in self.arrays if each.size < 70), 2.0)
        axis = self.choose.choice((0, -1, None, 1))
        options = self.choose.choice(({}, {"keepdims": True}, {"initial": 1}, {"out": self.choose.choice(self.arrays)}))
        at = self.choose.choice(([0, 0], slice(None), ...))
        return self.choose.choice((
            lambda: function.reduce(a, axis=axis, **options), lambda: function.accumulate(a, axis=axis or 0),
            lambda: function.reduceat(a, [0, 1, 0]), lambda: (function.at(a, at, b), a),
            lambda: function.outer(small, small),
        ))  # fmt: skip

    def reduction(self):
        a = self.operand()
        names = ["max", "min", "any", "all", "argmax", "argmin", "nanmax", "nanmin", "ptp"]
        names += [] if isinstance(a, np.ndarray) and a.dtype.kind in "fc" else ["prod"]
        name = self.choose.choice(names)
        axis = self.choose.choice((None, 0, 1, -1, (0, 1), (-1,), (), np.int64(0), 5))
        out = self.choose.choice(self.arrays)
        options = self.choose.choice(({}, {}, {"keepdims": True}, {"initial": 1}, {"out": out}, {"where": True},
                                      {"where": np.ones(np.shape(a), bool)}, {"nonsense": 1}))  # fmt: skip
        if self.choose.random() < 0.6 and hasattr(a, name):
            return lambda: without_sign(getattr(a, name)(axis, **options))
        return lambda: without_sign(getattr(np, name)(a, axis=axis, **options))

    def copies(self):
        a, b = self.pair()
        count = self.choose.choice((1, 2, 3, 0, (2, 1), [1, 2], np.int64(2), 2.0, -1))
        axis = self.choose.choice((None, 0, -1))
        small = np.size(a) * np.size(b) < 20_000
        return self.choose.choice((
            lambda: np.tile(a, count), lambda: np.repeat(a, count, axis), lambda: small and np.meshgrid(a, b),
            lambda: np.stack([a, a], axis or 0), lambda: np.stack((a, b)), lambda: np.dstack([a, a]),
            lambda: np.where(a, b, a), lambda: np.where(np.asarray(a) == a, b, 0), lambda: np.where(a),
            lambda: np.meshgrid(a, sparse=True), lambda: a.repeat(count, axis),
        ))  # fmt: skip

    def expression(self):
        a, b = self.pair()
        c = self.choose.choice(self.arrays)
        return self.choose.choice((
            lambda: (a - b) * b + a, lambda: ((a * 2) + b) / c, lambda: (a > b) & (b > c), lambda: -(a + b) * c,
            lambda: np.sqrt(np.abs(a)) + b, lambda: (a - b) ** 2, lambda: np.where(a > b, a - b, b - a),
            lambda: operator.eq(a, b), lambda: operator.lt(a, b),
        ))  # fmt: skip

    def others(self):
        a, b = self.pair()
        return self.choose.choice((
            lambda: np.clip(a, 0, b), lambda: np.round(a, 1), lambda: np.isclose(a, b), lambda: np.nan_to_num(a),
            lambda: np.array_equal(a, b), lambda: np.ma.masked_invalid(a) + b,
            lambda: np.piecewise(a, [a == 1], [1, 2]),
            lambda: np.size(a) < 500 and np.linspace(a, b, 3), lambda: np.diff(a), lambda: np.gradient(a),
            lambda: np.select([a == 1], [b]), lambda: np.ediff1d(a), lambda: np.unwrap(a),
            lambda: np.asmatrix(np.asarray(a)) * 2,
            lambda: np.isin(a, b), lambda: np.digitize(a, [0, 1]), lambda: np.histogram(a, 3), lambda: np.angle(a),
        ))  # fmt: skip


STATEMENTS = {"operator": 5, "operator_in_place": 6, "items_in_place": 3, "ufunc": 7, "pickled_ufunc": 0.3,
              "method_of_ufunc": 2, "reduction": 4, "copies": 3, "expression": 3, "others": 3}  # fmt: skip


def fits(a, b):
    return all(m == n or 1 in (m, n) for m, n in zip(a[::-1], b[::-1], strict=False))


def without_sign(result):
    """Make zeros positive: between 0.0 and -0.0, either may be the extreme."""
    return result + result.dtype.type(0) if getattr(result, "dtype", None) in ("f2", "f4", "f8", "g") else result


def make_nan_plain(array):
    """Make all NaN the same: of two, either may be the result."""
    if isinstance(array, np.ndarray) and array.dtype.kind in "fc" and array.flags.writeable:
        base = np.asarray(array)
        for part in (base.real, base.imag) if base.dtype.kind == "c" else (base,):
            part[np.isnan(part)] = np.nan


def account(value):
    """Describe a value, but not whether an array owns its memory."""
    if isinstance(value, tuple | list):
        return [account(each) for each in value]
    seen = list(described(value))
    if isinstance(value, np.ndarray):
        seen[4] = (value.flags.writeable, value.flags.aligned)
    return seen, getattr(value, "seen", None)


class Handler(list):
    """Records errors, by `errstate(call=...)` or as its log."""

    def __call__(self, *error):
        self.append(error)

    write = __call__


def run_statement(program, patch, watches=True):
    """Run the next statement of a program; return a description of all that came of it.

    Warnings are recorded for the whole process, so threads do not watch them.
    """
    choose = program.choose
    name = choose.choices(list(STATEMENTS), STATEMENTS.values())[0]
    call = getattr(program, name)()
    handler, state = Handler(), {}
    if choose.random() < 0.4:
        state = {kind: choose.choice(STATES) for kind in ("divide", "over", "under", "invalid")} | {"call": handler}
    action = "error" if choose.random() < 0.1 else "always"
    watch = warnings.catch_warnings(record=True, action=action) if watches else nullcontext([])
    with watch as warned, np.errstate(**state), patch():
        try:
            result = call()
        except Exception as error:
            result = error

    for array in (*program.arrays, result):
        make_nan_plain(array)
    said = [(each.category, str(each.message), each.filename, each.lineno) for each in warned]
    outcome = name, account(result), said, list(handler), [account(each) for each in program.arrays]
    if type(result) is np.ndarray and result.size < 5000 and result.ndim < 6 and choose.random() < 0.6:
        program.replace(result)
    return outcome


def expect_same(seeds, statements=25, watches=True):
    """Run programs without and with a patch, statement by statement."""
    for seed in seeds:
        with np.errstate(all="ignore"):
            right, found = Program(seed), Program(seed)
        for number in range(statements):
            expected = run_statement(right, nullcontext, watches)
            assert run_statement(found, bcast.patched_numpy, watches) == expected, f"seed {seed}, statement {number}"


@pytest.fixture(params=[21, None], ids=["threads", "one thread"])
def limits(request):
    """Threads share small arrays, or not."""
    if request.param:
        set_limits(request.param)
    yield
    set_limits()
    probe()


@pytest.mark.usefixtures("limits")
@pytest.mark.parametrize("count", [40, pytest.param(500, marks=pytest.mark.drill)])
def test_programs_do_the_same_under_the_patch(count):
    before = sum(each.taken for each in bcast.patch_info().values())
    expect_same(range(count, 2 * count))
    assert sum(each.taken for each in bcast.patch_info().values()) > before + count
    assert not bcast.is_patched()


def test_threads_run_programs_while_others_patch():
    """Patches come, go, nest and end by exceptions, while each thread gets the results of a program alone."""
    failures, done = [], threading.Event()

    def run(seeds):
        try:
            expect_same(seeds, 10, watches=False)
        except BaseException as error:
            failures.append(error)

    def patch(names):
        while not done.is_set():
            try:
                with bcast.patched_numpy(*names), bcast.patched_numpy():
                    bcast.patch_numpy("add")
                    bcast.unpatch_numpy()
                    raise KeyError
            except KeyError:
                pass
            except BaseException as error:
                failures.append(error)
                return

    runners = [threading.Thread(target=run, args=(range(900 + i, 906 + i),)) for i in (0, 20, 40)]
    patchers = [
        threading.Thread(target=patch, args=(names,)) for names in (("ufuncs",), ("max", "tile", "ndarray.any"))
    ]
    with warnings.catch_warnings(action="ignore"):
        for thread in runners + patchers:
            thread.start()
        for thread in runners:
            thread.join()
        done.set()
        for thread in patchers:
            thread.join()
    assert failures == []
    assert not bcast.is_patched()
