"""Calls of every public function of arrays, along every path that allocates memory, with their expected results.

`test_faults.py` makes allocations in calls of the cores fail, and interrupts these calls. `test_numpy.py` makes all
calls while NumPy's functions are replaced, and `test_subclasses.py` with arrays whose class has wrong attributes. A new
public function needs a row in `CALLS`: its name, and for each kind of call a function that returns new arguments and
NumPy's result.
"""

import functools
import importlib.util
import math
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from _arithmetic import chained

import bcast
from bcast._api.chains.stages import ChainMemory

MIB = 1 << 20
RAGGED = [[1, 2], [3]]
SECONDS = np.dtype("M8[s]")
EMPTY_STRINGS = np.zeros(3, "S0")
BFLOAT16 = importlib.util.find_spec("ml_dtypes") is not None


MATVEC = getattr(np, "matvec", lambda matrix, x: np.matmul(matrix, x[..., None])[..., 0])


class Call:
    """The arguments of one call, and the expected result: a value, or the type of an exception.

    `state` is asked before and after a call that raises: what it returns must not have changed.
    """

    def __init__(self, expected, /, *args, **kwargs):
        self.expected = expected
        self.args = args
        self.kwargs = kwargs
        self.state = None

    def keeping(self, state):
        self.state = state
        return self


class Giving:
    """A function that returns the expected result for an argument, for calls that return functions."""

    def __init__(self, argument, expected):
        self.argument = argument
        self.expected = expected


class Row(NamedTuple):
    """The settings of the process before a call: a number of threads, and limits as in `set_limits`."""

    make: Callable[[], Call]
    threads: int = 1
    copies: dict[str, int] | None = None
    sums: dict[str, int] | None = None
    functions: dict[str, int] | None = None


class Index:
    """An integer by `__index__`, which is Python and so may be interrupted."""

    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


class Array:
    """An array of another library."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array


class Subclass(np.ndarray):
    pass


@functools.cache
def numbers(*shape, dtype="f4"):
    """An array of small numbers, whose sums are exact in every dtype used here; not to be written to."""
    if dtype == "bfloat16":
        import ml_dtypes

        dtype = ml_dtypes.bfloat16
    return (np.arange(math.prod(shape)) % 5 + 1).reshape(shape).astype(dtype)


@functools.cache
def total(shape, axes, dtype):
    return np.asarray(numbers(*shape).astype("f8").sum(axes)).astype(numbers(1, dtype=dtype).dtype)


def room(*shape, dtype="f4"):
    return np.full(shape, 9, numbers(1, dtype=dtype).dtype)


def text(*shape):
    strings = [f"a string too long to be kept in its place, {i}" for i in range(math.prod(shape))]
    return np.array(strings, "T").reshape(shape)


def objects(*shape):
    """An array of numbers too large to be cached."""
    array = np.empty(math.prod(shape), object)
    array[:] = [10**20 + i for i in range(array.size)]
    return array.reshape(shape)


def spread(data, shape):
    """NumPy's result of broadcasting `data` to `shape`."""
    return np.broadcast_to(data, shape)


def broadcast(data, shape, out=None, **kwargs):
    kwargs |= {} if out is None else {"out": out}
    return Call(spread(data, shape).copy(), data, shape, **kwargs)


def explicit(*args, **kwargs):
    return Call(
        spread(numbers(2, 3)[:, :, None], (2, 3, 4)), numbers(2, 3), (2, 3, 4), *args, mode="explicit", **kwargs
    )


def converted_into(data):
    """A call of `broadcast` whose `out` is of float32."""
    shape = (2, data.size)
    with np.errstate(over="ignore"):
        return Call(spread(data, shape).astype("f4"), data, shape, out=room(*shape))


def within(shape, steps, **kwargs):
    """An array of `shape` at strides of some items along each axis of its memory."""
    whole = room(*[length * step for length, step in zip(shape, steps, strict=True)], **kwargs)
    return whole[tuple([slice(None, None, step) for step in steps])]


def over(memory, make):
    """A call whose arguments share one block of memory."""
    return make(memory.copy())


def structured(*shape):
    array = np.zeros(shape, np.dtype([("a", "u1"), ("b", "f8"), ("c", "S3")]))
    array["a"] = numbers(*shape)
    array["b"] = numbers(*shape)
    return array


def large_then(call):
    """Leave idle memory behind, so that a large result finds some of about its size."""
    bcast.broadcast(np.float32(1), (MIB // 4,))
    return call


def filled(*sizes):
    """Make the store keep blocks of these sizes in MiB, the oldest first, and no others."""
    bcast.set_idle_limit(0)
    bcast.set_idle_limit(64 * MIB)
    arrays = [bcast.broadcast(np.uint8(1), (size * MIB,)) for size in sizes]
    while arrays:
        del arrays[0]


def idle_state():
    """The idle memory, and its limit."""
    limit = bcast.set_idle_limit(1 << 40)
    bcast.set_idle_limit(limit)
    return bcast.memory_info().idle, limit


def limit_call(expected, argument, *sizes):
    filled(*sizes)
    return Call(expected, argument).keeping(idle_state)


def store_call(expected, *sizes):
    filled(*sizes)
    return Call(expected)


def threads_call(expected, argument):
    bcast.set_num_threads(1)
    return Call(expected, argument).keeping(bcast.get_num_threads)


def grids(xi, indexing="xy", **kwargs):
    arrays = [np.asarray(x) for x in xi]
    return Call(tuple(np.meshgrid(*arrays, indexing=indexing, **kwargs)), *xi, indexing=indexing, **kwargs)


def arrays(*given):
    return Call(tuple(np.broadcast_arrays(*given)), *given)


def shapes(*given):
    return Call(np.broadcast_shapes(*given), *given)


def tiled(data, reps, **kwargs):
    return Call(np.tile(np.asarray(data), reps), data, reps, **kwargs)


def repeated(data, repeats, axis=None, **kwargs):
    expected = np.asarray(data).repeat(np.asarray(repeats).astype(np.intp), axis)
    return Call(expected, data, repeats, axis, **kwargs)


def overflowing(n):
    """Numbers with one that is too large for float32, which causes a warning."""
    return np.append(numbers(n - 1, dtype="f8"), 1e300)


def repeated_into(data):
    """A call of `repeat` whose `out` is of float32."""
    counts = np.arange(1, data.size + 1) % 3
    with np.errstate(over="ignore"):
        return Call(data.repeat(counts).astype("f4"), data, counts, out=room(int(counts.sum())))


def applied(function, a, b, out=None, **kwargs):
    given = {} if out is None else {"out": out}
    numpys = {name: value for name, value in kwargs.items() if name != "mode"}
    expected = function(a, b, **({"out": out.copy()} if "where" in kwargs else {}), **numpys)
    return Call(expected, function, a, b, **given, **kwargs)


def chosen(condition, x, y, **given):
    return Call(np.where(condition, x, y), condition, x, y, **given)


def linked(data, *steps, **kwargs):
    given = kwargs | ({"out": kwargs["out"].copy()} if "out" in kwargs else {})
    with np.errstate(all="ignore"):
        return Call(chained(data, *steps, **given), data, *steps, **kwargs)


def reduced_by_steps(data, *steps, **kwargs):
    """A chain that has reductions: pairs of a function that is no ufunc, and its axis."""
    expected = data
    for step in steps:
        function, *operands = step if isinstance(step, tuple) else (step,)
        expected = function(expected, *operands)
    if "out" in kwargs:
        expected = np.array(expected, kwargs["out"].dtype)
    return Call(expected, data, *steps, **kwargs)


def laid(function, a, b, axis):
    reshaped = b.reshape(b.shape + (1,) * (a.ndim - axis - b.ndim))
    return Call(function(a, reshaped), function, a, b, mode="pdpd", axis=axis)


def plus(a, b, out=None):
    """A function of two arrays that is no ufunc."""
    return np.add(a, b, out=out)


def summed(shape, data_shape, axes, dtype="f4", result=None, out=None, **kwargs):
    """A call of `unbroadcast` whose gradient is contiguous."""
    grad = numbers(*shape, dtype=dtype)
    if result is not None:
        kwargs["dtype"] = numbers(1, dtype=result).dtype
    if out is not None:
        kwargs["out"] = out
    return Call(total(shape, axes, result or dtype).reshape(data_shape), grad, data_shape, **kwargs)


def summed_of(grad, data_shape, axes, dtype=None, out=None, **kwargs):
    """A call of `unbroadcast` whose sum NumPy computes."""
    expected = np.asarray(np.asarray(grad).sum(axes, dtype=dtype or np.asarray(grad).dtype)).reshape(data_shape)
    kwargs |= {} if dtype is None else {"dtype": dtype}
    kwargs |= {} if out is None else {"out": out}
    return Call(expected, grad, data_shape, **kwargs)


def reduced(function, array, axis=None, out=None, **kwargs):
    """A call of `sum`, `mean`, `var` or `std`, whose results have the same bits as NumPy's in float64."""
    options = {name: value for name, value in kwargs.items() if name != "dtype"}
    right = function(array.astype("c16" if array.dtype.kind == "c" else "f8"), axis, **options)
    to = kwargs.get("dtype", function(array[:1, :1]).dtype) if out is None else out.dtype
    expected = np.asarray(right).astype(to)[()]
    return Call(expected, array, axis, **kwargs, **({} if out is None else {"out": out}))


def without_nan(function, array, axis=None, out=None, **kwargs):
    """A call of a function that leaves NaN out, of an array that has some."""
    array = array.copy()  # other calls have the same
    if array.dtype.kind == "f":
        array[..., ::3] = np.nan
        array[..., 0] = 1
    right = function(array.astype("f8"), axis, **kwargs)
    expected = np.asarray(right).astype(function(array[:1, :1]).dtype)[()]
    return Call(expected, array, axis, **kwargs, **({} if out is None else {"out": out}))


def mean_and_deviation(array, axis=None):
    """A call of `mean_std`."""
    return Call((np.mean(array, axis), np.std(array, axis)), array, axis)


def paired(array, axis):
    """A call of `minmax`."""
    return Call((np.min(array, axis), np.max(array, axis)), array, axis)


def pairs(function, a, b, **kwargs):
    """A call of a function of two arrays' vectors, with NumPy's result."""
    options = {name: value for name, value in kwargs.items() if name != "out"}
    return Call(function(a, b, **options), a, b, **kwargs)


def multiplied(grad, data_shape, times, axes, **kwargs):
    """A call of `unbroadcast` that sums products, with NumPy's result."""
    right = (np.asarray(grad) * np.asarray(times)).astype("c16" if np.iscomplexobj(times) else "f8").sum(axes)
    dtype = kwargs.get("dtype", np.asarray(grad * np.asarray(times)).dtype)
    return Call(np.asarray(right).reshape(data_shape).astype(dtype), grad, data_shape, times=times, **kwargs)


def real_part(*shape, **kwargs):
    return Call(total(shape, 0, "f8"), numbers(*shape, dtype="c16") + 2j, shape[1:], dtype="f8", **kwargs)


def gathered(grad, repeats, axis=0, dtype=None, **kwargs):
    """A call of `unrepeat` along one axis, with as many repetitions of each item as it says."""
    grad = np.asarray(grad)
    parts = np.split(grad, np.cumsum(repeats)[:-1].astype(int), axis)
    own = np.dtype(dtype or grad.dtype)
    sums = [np.add.reduce(part, axis, own.newbyteorder("="), keepdims=True, initial=0) for part in parts]
    kwargs |= {} if dtype is None else {"dtype": dtype}
    return Call(np.concatenate(sums, axis).astype(own), grad, repeats, axis, **kwargs)


def streamed(make):
    """Small results written as those are that no cache holds."""
    return Row(make, copies={"streamed": 1})


def threaded(make):
    """Small results shared by three threads."""
    return Row(make, threads=3, copies={"share": 1}, sums={"shared": 1}, functions={"share": 1})


CALLS: dict[str, dict[str, Row | Callable[[], Call]]] = {
    "broadcast": {
        "a row": lambda: broadcast(numbers(4), (3, 4)),
        "a number": lambda: broadcast(7, (2, 3)),
        "a list": lambda: broadcast([[1.5], [2.5]], (2, 3)),
        "a list of arrays": lambda: broadcast([numbers(3), numbers(3)], (4, 2, 3)),
        "an array of another library": lambda: Call(spread(numbers(3), (2, 3)), Array(numbers(3)), (2, 3)),
        "a subclass": lambda: Call(spread(numbers(3), (2, 3)), numbers(3).view(Subclass), (2, 3)),
        "many axes": lambda: broadcast(numbers(2, 1, 3, 1, 2, 1), (2, 2, 3, 3, 2, 2)),
        "nothing to repeat": lambda: broadcast(numbers(3, 4), (3, 4)),
        "no items": lambda: broadcast(numbers(1, 4), (0, 4)),
        "items of no bytes": lambda: broadcast(EMPTY_STRINGS, (2, 3)),
        "shape as a list": lambda: broadcast(numbers(4), [3, 4]),
        "shape as an array": lambda: Call(spread(numbers(4), (300, 4)), numbers(4), np.array([300, 4])),
        "shape as a generator": lambda: Call(spread(numbers(4), (300, 4)), numbers(4), (n for n in (300, 4))),
        "shape of indices": lambda: Call(spread(numbers(4), (300, 4)), numbers(4), (Index(300), Index(4))),
        "large": lambda: broadcast(numbers(256), (512, 256)),
        "large, where some is idle": lambda: large_then(broadcast(numbers(256), (MIB // 1024, 256))),
        "large, records": lambda: broadcast(structured(64), (1024, 64)),
        "into `out`": lambda: broadcast(numbers(4), (3, 4), room(3, 4)),
        "into `out` with steps": lambda: broadcast(numbers(4), (3, 4), within((3, 4), (2, 3))),
        "into `out` that overlaps": lambda: over(numbers(3, 4), lambda x: broadcast(x[1:2], (3, 4), x)),
        "into `out` that is the data": lambda: over(numbers(3, 4), lambda x: broadcast(x, (3, 4), x)),
        "transposed": lambda: broadcast(numbers(5, 4).T, (3, 4, 5)),
        "transposed, large": lambda: broadcast(numbers(400, 400).T, (400, 400)),
        "transposed, repeated, into `out`": lambda: broadcast(numbers(200, 200).T, (3, 200, 200), room(3, 200, 200)),
        "transposed into `out` with steps": lambda: broadcast(numbers(5, 4).T, (3, 4, 5), within((3, 4, 5), (1, 2, 2))),
        "channels first": lambda: broadcast(numbers(90, 90, 3, dtype="u1").transpose(2, 0, 1), (2, 3, 90, 90)),
        "backwards": lambda: broadcast(numbers(40, 4)[::-1, ::-1], (3, 40, 4)),
        "with steps": lambda: broadcast(numbers(40, 8)[::2, ::3], (3, 20, 3)),
        "transposed, repeated by strides": lambda: broadcast(
            np.broadcast_to(numbers(6, 5).T, (4, 5, 6)), (3, 4, 5, 6), room(3, 4, 5, 6)
        ),
        "objects": lambda: broadcast(objects(4), (3, 4)),
        "objects into `out`": lambda: broadcast(objects(4), (3, 4), objects(3, 4)),
        "objects into `out` that overlaps": lambda: over(objects(3, 4), lambda x: broadcast(x[1:2], (3, 4), x)),
        "strings of any length": lambda: broadcast(text(4), (3, 4)),
        "strings of any length into `out`": lambda: broadcast(text(4), (3, 4), text(3, 4)),
        "records": lambda: broadcast(structured(4), (3, 4)),
        "records into `out` with steps": lambda: broadcast(structured(4), (3, 4), structured(3, 8)[:, ::2]),
        "records with objects": lambda: broadcast(np.array([(1, "a"), (2, "b")], "i4,O"), (3, 2)),
        "datetimes": lambda: broadcast(numbers(4, dtype="M8[s]"), (3, 4)),
        "another byte order": lambda: broadcast(numbers(4, dtype=">f8"), (3, 4)),
        "in another dtype": lambda: Call(spread(numbers(4), (3, 4)), numbers(4, dtype="u1"), (3, 4), dtype="f4"),
        "into `out` of another dtype": lambda: converted_into(numbers(4, dtype="u1")),
        "into `out` of another dtype, in pieces": lambda: converted_into(numbers(300_000, dtype="u1")),
        "into `out` of another dtype, tried before": lambda: converted_into(overflowing(300_000)),
        "into `out` of another dtype, made whole": lambda: converted_into(overflowing(4)),
        "bidirectional": lambda: Call(spread(numbers(4, 1), (4, 3)), numbers(4, 1), (1, 3), mode="bidirectional"),
        "explicit by the mapping": lambda: explicit([0, 1]),
        "explicit by the axes that are new": lambda: explicit(broadcast_axes={2}),
        "pdpd": lambda: Call(spread(numbers(3, 1), (2, 3, 4)), numbers(3, 1), (2, 3, 4), mode="pdpd", axis=Index(1)),
        "none": lambda: Call(numbers(3, 4), numbers(3, 4), (3, 4), mode="none"),
        "past the caches": streamed(lambda: broadcast(numbers(90), (300, 90), room(300, 90))),
        "past the caches, transposed": streamed(lambda: broadcast(numbers(50, 60).T, (3, 60, 50), room(3, 60, 50))),
        "by threads": threaded(lambda: broadcast(numbers(90), (300, 90))),
        "by threads, large": threaded(lambda: broadcast(numbers(256), (1024, 256))),
        "by threads, transposed": threaded(lambda: broadcast(numbers(600, 300).T, (300, 600), room(300, 600))),
        "refused: a shape that does not fit": lambda: Call(ValueError, numbers(4), (3, 5)),
        "refused: a negative length": lambda: Call(ValueError, numbers(4), (-1, 4)),
        "refused: more than there is": lambda: Call(MemoryError, numbers(1), (1 << 48,)),
        "refused: data of no shape": lambda: Call(ValueError, RAGGED, (2, 2)),
        "refused: `out` of another dtype": lambda: Call(TypeError, numbers(4), (3, 4), out=room(3, 4, dtype="i4")),
    },
    "broadcast_like": {
        "an array": lambda: Call(spread(numbers(4), (3, 4)), numbers(4), room(3, 4)),
        "a list": lambda: Call(spread(numbers(2), (3, 2)), numbers(2), [[1, 2], [3, 4], [5, 6]]),
        "large": lambda: Call(spread(numbers(256), (512, 256)), numbers(256), numbers(512, 256, dtype="u1")),
        "into `out`": lambda: Call(spread(numbers(4), (3, 4)), numbers(4), numbers(3, 4), out=room(3, 4)),
        "all axes new": lambda: Call(
            spread(numbers(1)[0], (3, 4)), numbers(1)[0], numbers(3, 4), mode="explicit", broadcast_axes=[]
        ),
        "refused: a misfit": lambda: Call(ValueError, numbers(4), numbers(3, 5), mode="explicit", broadcast_axes=[0]),
    },
    "broadcast_to": {
        "a tuple": lambda: broadcast(numbers(4), (3, 4)),
        "an index": lambda: Call(spread(numbers(1), (300,)), numbers(1), Index(300)),
        "large": lambda: broadcast(numbers(256), (512, 256)),
        "into `out` with steps": lambda: broadcast(numbers(4), (3, 4), within((3, 4), (1, 2))),
        "refused: a shape that does not fit": lambda: Call(ValueError, numbers(4), 5),
        "refused: no shape": lambda: Call(TypeError, numbers(4), "45"),
    },
    "broadcast_arrays": {
        "none": lambda: arrays(),
        "one": lambda: arrays(numbers(3, 4)),
        "three": lambda: arrays(numbers(3, 1), numbers(4, dtype="u1"), numbers(2, 1, 1, dtype="c16")),
        "lists and numbers": lambda: arrays([[1, 2, 3]], [[4], [5]], 6.5),
        "many": lambda: arrays(*[numbers(*(1,) * (i % 4), 5 if i % 2 else 1) for i in range(40)]),
        "large": lambda: arrays(numbers(512, 1), numbers(256), numbers(256, 512).T),
        "objects": lambda: arrays(objects(3, 1), objects(4)),
        "refused: lengths that differ": lambda: Call(ValueError, numbers(3), numbers(4), numbers(5)),
        "refused: a mask": lambda: Call(TypeError, numbers(2), np.ma.array([1, 2], mask=[0, 1])),
    },
    "broadcast_shapes": {
        "none": lambda: shapes(),
        "tuples": lambda: shapes((300, 1), (400,), (2, 1, 1)),
        "integers": lambda: shapes(300, 1, np.int64(300)),
        "lists and arrays": lambda: Call((300, 400), [300, 1], np.array([400]), Index(1)),
        "refused: lengths that differ": lambda: Call(ValueError, (3, 4), (3, 5), (3, 6)),
        "refused: a negative length": lambda: Call(ValueError, (3, 4), (-1,)),
    },
    "elementwise": {
        "a ufunc": lambda: applied(np.add, numbers(3, 4), numbers(4)),
        "a ufunc of a number": lambda: applied(np.multiply, numbers(3, 4), 2.5),
        "a ufunc of objects": lambda: applied(np.add, objects(3, 4), objects(4)),
        "a ufunc of a subclass": lambda: applied(np.add, numbers(3, 4).view(Subclass), numbers(4)),
        "a ufunc of two dtypes": lambda: applied(np.add, numbers(3, 4), numbers(3, 1, dtype="i8")),
        "a ufunc into `out`": lambda: applied(np.add, numbers(3, 4), numbers(4), room(3, 4)),
        "a ufunc of two dtypes into `out`": lambda: applied(np.add, numbers(3, 4), numbers(4, dtype="u1"), room(3, 4)),
        "a ufunc of two results": lambda: applied(np.divmod, numbers(3, 4), numbers(4)),
        "NumPy's own, a ufunc into two results": lambda: applied(
            np.divmod, numbers(3, 4), numbers(4), (room(3, 4), room(3, 4))
        ),
        "a ufunc in rows": lambda: applied(np.add, numbers(300, 3), numbers(3)),
        "a ufunc of columns": lambda: applied(np.add, numbers(300, 3), numbers(300, 1)),
        "a ufunc of columns by threads": threaded(lambda: applied(np.add, numbers(3000, 3), numbers(3000, 1))),
        "a ufunc of transposed operands": lambda: applied(np.add, numbers(60, 50).T, numbers(50, 60)),
        "a ufunc of another byte order": lambda: applied(np.add, numbers(30, 4, dtype=">f8"), numbers(4, dtype=">f8")),
        "a ufunc of halves": lambda: applied(np.add, numbers(300, 3, dtype="f2"), numbers(3, dtype="f2")),
        "a ufunc in another dtype": lambda: applied(np.add, numbers(30, 3), numbers(3), dtype="f8"),
        "a ufunc where a mask says": lambda: applied(
            np.add, numbers(3, 4), numbers(4), room(3, 4), where=np.array([True, False, True, True])
        ),
        "a ufunc into an operand": lambda: over(room(30, 4), lambda x: Call(x + 1, np.add, x, 1, out=x)),
        "a ufunc that warns": lambda: applied(np.divide, numbers(30, 4), numbers(30, 4)),
        "a function": lambda: applied(plus, numbers(3, 4), numbers(4)),
        "a function into `out`": lambda: applied(plus, numbers(3, 4), numbers(4), room(3, 4)),
        "large": lambda: applied(np.add, numbers(512, 256), numbers(256)),
        "none": lambda: applied(np.add, numbers(3, 4), numbers(3, 4), mode="none"),
        "pdpd": lambda: laid(np.add, numbers(2, 3, 4), numbers(3), 1),
        "refused: no function": lambda: Call(TypeError, 5, numbers(3), numbers(3)),
        "refused: a function of one operand": lambda: Call(TypeError, np.sin, numbers(3), numbers(3)),
        "refused: ragged lists": lambda: Call(ValueError, plus, numbers(3), RAGGED),
    },
    "chain": {
        "a step": lambda: linked(numbers(3, 4), (np.add, numbers(4))),
        "no step": lambda: linked(numbers(40, 30).T),
        "pictures": lambda: linked(
            numbers(2, 30, 20, 3, dtype="u1").transpose(0, 3, 1, 2), (np.divide, numbers(3, 1, 1)), dtype="f4"
        ),
        "by threads": threaded(lambda: linked(numbers(3000, 3, dtype="u1"), (np.add, numbers(3)), np.sqrt, dtype="f4")),
        "large": lambda: linked(numbers(512, 256), (np.add, numbers(256)), (np.multiply, 2)),
        "numbers, bools and halves": lambda: linked(
            numbers(300, 3, dtype="f2"), (np.add, 1), (np.less, numbers(3)), np.logical_not, (np.multiply, 2.5)
        ),
        "into `out` of another dtype": lambda: linked(
            numbers(30, 4), (np.multiply, 2), out=room(30, 4, dtype=">u2"), casting="unsafe"
        ),
        "into `out` that overlaps": lambda: over(
            numbers(31, 4),
            lambda x: Call(np.square(x[:30] + x[1:]), x[:30], (np.add, x[1:].copy()), np.square, out=x[1:]),
        ),
        "a step that warns": lambda: linked(numbers(30, 4), (np.divide, 0), (np.subtract, 1)),
        "bounds and decimals": lambda: linked(
            numbers(300, 3), (np.clip, 1, 100), (np.clip, None, numbers(3)), (np.round, 1), np.round
        ),
        "into bytes, saturated": lambda: Call(
            np.rint(np.clip(numbers(300, 3) * 2, 0, 255)).astype("u1"),
            numbers(300, 3),
            (np.multiply, 2),
            out=room(300, 3, dtype="u1"),
            casting="saturate",
        ),
        "halves between bounds": lambda: linked(numbers(300, 3, dtype="f2"), (np.clip, 0, numbers(3)), (np.round, -1)),
        "objects": lambda: linked(objects(3, 4), (np.add, objects(4)), np.negative),
        "reduced: distances": lambda: reduced_by_steps(
            numbers(30, 1, 3), (np.subtract, numbers(40, 3)), np.square, (np.sum, -1), np.sqrt
        ),
        "reduced: the nearest": lambda: reduced_by_steps(
            numbers(30, 1, 3), (np.subtract, numbers(40, 3)), np.square, (np.sum, -1), (np.argmin, -1)
        ),
        "reduced: the greatest of all, into `out`": lambda: reduced_by_steps(
            numbers(30, 1, 3), (np.subtract, numbers(40, 3)), (np.max, None), out=room(dtype="f8")
        ),
        "refused: a reduction without its axis": lambda: Call(TypeError, numbers(3), np.sum),
        "reduced along an axis that is not there": lambda: Call(np.exceptions.AxisError, numbers(3), (np.sum, 1)),
        "strings": lambda: linked(np.array(["a", "b"]), (np.add, "c")),
        "refused: shapes that do not fit": lambda: Call(ValueError, numbers(3), np.sqrt, (np.add, numbers(4))),
        "refused: no such loop": lambda: Call(TypeError, numbers(3), np.sqrt, (np.bitwise_and, 1)),
        "refused: a conversion": lambda: Call(TypeError, numbers(3), dtype="i4"),
        "refused: `out` of another dtype": lambda: Call(TypeError, numbers(3), np.sqrt, out=room(3, dtype="i4")),
    },
    "chain_memory": {
        "a step": lambda: Call(
            ChainMemory(numbers(3, 4).nbytes, bcast.get_num_threads() << 20),
            numbers(3, 4),
            (np.add, numbers(4)),
        ),
        "refused: a reduction without its axis": lambda: Call(TypeError, numbers(3), np.sum),
    },
    "chain_vjp": {
        "distances": lambda: Call(
            (np.full((3, 4), 2.0), Giving(np.ones((3, 4)), (np.full((3, 1, 3), 4.0), np.full((4, 3), -3.0)))),
            np.full((3, 1, 3), 2.5),
            (np.subtract, np.full((4, 3), 1.5)),
            (np.sum, -1),
            (np.multiply, 1),
            (np.subtract, 1),
        ),
        "refused: integers": lambda: Call(TypeError, numbers(3, dtype="i4"), np.square),
        "refused: no gradient": lambda: Call(TypeError, numbers(3), np.floor),
    },
    "infer_shape": {
        "numpy": lambda: Call((300, 400), (400,), (300, 400)),
        "bidirectional": lambda: Call((300, 400), (300, 1), (400,), mode="bidirectional"),
        "explicit": lambda: Call((300, 400), (300,), (300, 400), [0], mode="explicit"),
        "refused: a shape that does not fit": lambda: Call(ValueError, (300,), (300, 400)),
        "refused: a mapping that is no sequence": lambda: Call(TypeError, (300,), (300, 400), 0, mode="explicit"),
        "refused: a mapping that decreases": lambda: Call(ValueError, (2, 3), (2, 3), [1, 0], mode="explicit"),
        "refused: axes that leave other lengths": lambda: Call(
            ValueError, (300, 400), (300, 500, 600), mode="explicit", broadcast_axes=[1]
        ),
    },
    "meshgrid": {
        "none": lambda: grids([]),
        "dense": lambda: grids([numbers(3), numbers(4)]),
        "three, by rows": lambda: grids([numbers(3), numbers(4), numbers(5)], "ij"),
        "sparse": lambda: grids([numbers(3), numbers(4)], sparse=True),
        "views": lambda: grids([numbers(3), numbers(4)], copy=False),
        "sparse views": lambda: grids([numbers(3), numbers(4)], copy=False, sparse=True),
        "lists, numbers and matrices": lambda: grids([[1, 2, 3], 4.5, numbers(2, 2)]),
        "many": lambda: grids([numbers(2, dtype=dtype) for dtype in ("f4", "f8", "i1", "u2", "c8", "M8[s]", "f2")]),
        "large": lambda: grids([numbers(512), numbers(256)]),
        "objects": lambda: grids([objects(3), objects(4)]),
        "refused: an unknown order": lambda: Call(ValueError, numbers(3), indexing="yx"),
        "refused: too many elements": lambda: Call(ValueError, *[np.broadcast_to(numbers(1), 1 << 40)] * 2),
    },
    "repeat": {
        "each item": lambda: repeated(numbers(3, 4), 2),
        "along an axis": lambda: repeated(numbers(3, 4), 2, 1),
        "along several axes": lambda: Call(numbers(3, 4).repeat(2, 0).repeat(2, 1), numbers(3, 4), 2, (0, 1)),
        "as often as each item says": lambda: repeated(numbers(3, 4), [300, 1, 2], 0),
        "as often as each item says, into `out`": lambda: repeated(numbers(3), [0, 1, 2], 0, out=room(3)),
        "as often as a thousand items say": lambda: repeated(numbers(1000), np.arange(1000) % 3),
        "as often as rows say, into `out` with steps": lambda: repeated(
            numbers(3, 4), np.array([2, 0, 1]), 0, out=within((3, 4), (1, 2))
        ),
        "as often as items say, into `out` of another dtype": lambda: repeated_into(overflowing(100)),
        "as often as items say, into `out` of another dtype, cut": lambda: repeated_into(numbers(300_000, dtype="u1")),
        "as often as items say, into `out` of another dtype, tried before": lambda: repeated_into(overflowing(300_000)),
        "as often as columns say": lambda: repeated(numbers(30, 4), np.array([2, 0, 1, 3], "u1"), 1),
        "as often as transposed items say": lambda: repeated(numbers(30, 40).T, np.arange(40) % 4, 0),
        "as often as items say, into `out` that overlaps": lambda: over(
            numbers(6), lambda x: Call(x[:4].repeat([2, 1, 0, 3]), x[:4], np.array([2, 1, 0, 3]), out=x)
        ),
        "into the counts": lambda: over(np.ones(10_000, int), lambda x: Call(x.copy(), x, x, out=x)),
        "objects as often as they say": lambda: repeated(objects(3), np.array([2, 0, 1])),
        "along axes as often as each says": lambda: Call(
            numbers(3, 4).repeat([2, 0, 1], 0).repeat(3, 1), numbers(3, 4), ([2, 0, 1], 3), (0, 1)
        ),
        "large, as often as items say": lambda: repeated(numbers(100_000), np.arange(100_000) % 5),
        "as often as an index says": lambda: Call(numbers(3).repeat(300), numbers(3), Index(300)),
        "a list": lambda: repeated([1.5, 2.5], 3),
        "large": lambda: repeated(numbers(512, 128), 2, 1),
        "transposed": lambda: repeated(numbers(40, 50).T, 2, 0),
        "into `out`": lambda: repeated(numbers(3, 4), 2, 1, out=room(3, 8)),
        "refused: a negative number": lambda: Call(ValueError, numbers(3), -1),
        "refused: negative numbers": lambda: Call(ValueError, numbers(3), [1, -1, 1]),
        "as often as whole floats say": lambda: repeated(numbers(3), np.array([300.0, 0.0, 2.0]), 0),
        "refused: floats": lambda: Call(TypeError, numbers(3), [1.5, 2.5, 3.5], 0),
    },
    "memory_info": {
        "nothing idle": lambda: store_call(bcast._runtime.core.MemoryInfo(0, 0, 64 * MIB)),
        "some idle": lambda: store_call(bcast._runtime.core.MemoryInfo(44 * MIB, 40 * MIB, 64 * MIB), 40, 4),
    },
    "release_memory": {"nothing idle": lambda: store_call(None), "some idle": lambda: store_call(None, 2, 4, 40)},
    "set_idle_limit": {
        "lower, nothing idle": lambda: limit_call(64 * MIB, 1 * MIB),
        "lower, all idle goes": lambda: limit_call(64 * MIB, 0, 2, 4),
        "lower, some stays": lambda: limit_call(64 * MIB, 5 * MIB, 2, 4, 40),
        "higher": lambda: limit_call(64 * MIB, Index(128 * MIB), 2),
        "beyond any size": lambda: limit_call(64 * MIB, 1 << 80, 2),
        "refused: negative": lambda: limit_call(ValueError, -(1 << 40), 2),
        "refused: no integer": lambda: limit_call(TypeError, 1.5, 2),
    },
    "set_num_threads": {
        "an integer": lambda: threads_call(None, 2),
        "an index": lambda: threads_call(None, Index(2)),
        "refused: zero": lambda: threads_call(ValueError, 0),
        "refused: no integer": lambda: threads_call(TypeError, 1.5),
        "refused: a bool": lambda: threads_call(TypeError, True),
    },
    "tile": {
        "an integer": lambda: tiled(numbers(3, 4), 2),
        "never": lambda: tiled(numbers(3, 4), (0, 1)),
        "a list": lambda: tiled([1.5, 2.5], [2, 300]),
        "as often as an array says": lambda: tiled(numbers(3, 4), np.array([2, 300])),
        "large": lambda: tiled(numbers(256), (512, 1)),
        "transposed": lambda: tiled(numbers(40, 50).T, (2, 2)),
        "into `out`": lambda: tiled(numbers(3, 4), 2, out=room(3, 8)),
        "into `out` of another dtype": lambda: Call(
            np.tile(numbers(3, 4), 2).astype("f8"), numbers(3, 4), 2, out=room(3, 8, dtype="f8")
        ),
        "into `out` that overlaps": lambda: over(numbers(6), lambda x: tiled(x[:3], 2, out=x)),
        "objects": lambda: tiled(objects(3), 2),
        "refused: a negative number": lambda: Call(ValueError, numbers(3), (2, -1)),
        "refused: a float": lambda: Call(TypeError, numbers(3), 2.5),
    },
    "unrepeat": {
        "rows as counts say": lambda: gathered(numbers(30, 4), [20, 0, 10]),
        "narrow rows": lambda: gathered(numbers(30, 3), [20, 0, 10]),
        "without an axis": lambda: Call(np.array([3, 7, 5], "f4"), numbers(5), (2, 2, 1)),
        "an array of counts": lambda: gathered(numbers(200), np.arange(100) % 5),
        "many counts": lambda: gathered(numbers(10_000), np.ones(10_000, int)),
        "many terms": threaded(lambda: gathered(numbers(1 << 20), np.full(1024, 1024))),
        "one number for all": lambda: gathered(numbers(30, 4), [10, 10, 10]),
        "one run": lambda: gathered(numbers(30, 4), [30]),
        "float64": lambda: gathered(numbers(30, dtype="f8"), [20, 0, 10]),
        "float16": lambda: gathered(numbers(30, dtype="f2"), [20, 0, 10]),
        "wider integers": lambda: gathered(numbers(30, dtype="i2"), [20, 0, 10], dtype="i8"),
        "another byte order": lambda: gathered(numbers(30, dtype=">f4"), [20, 0, 10]),
        "an item too large for a group": lambda: gathered(numbers(9000, dtype="i2"), [8000, 1000]),
        "into `out`": lambda: gathered(numbers(30), [20, 0, 10], out=room(3)),
        "into `out` with steps": lambda: gathered(numbers(30, 4), [20, 0, 10], out=within((3, 4), (1, 2))),
        "into `out` that overlaps": lambda: over(numbers(5), lambda x: gathered(x, [2, 3, 0], out=x[2:])),
        "into the counts": lambda: over(np.ones(10_000, int), lambda x: Call(x.copy(), x, x, out=x)),
        "nothing": lambda: Call(np.zeros((3, 0), "f4"), numbers(30, 0), [20, 0, 10], 0),
        "no terms": lambda: Call(np.zeros((2, 4), "f4"), numbers(0, 4), [0, 0], 0, out=room(2, 4)),
        "objects": lambda: Call(np.array([3, 0, 5], object), np.array([1, 2, 5], object), [2, 0, 1]),
        "refused: another sum": lambda: Call(ValueError, numbers(5), [2, 2]),
        "refused: no divisor": lambda: Call(ValueError, numbers(5), 2),
    },
    "sum": {
        "rows": lambda: reduced(np.sum, numbers(30, 40), 1),
        "bytes": lambda: reduced(np.sum, numbers(30, 40, dtype="u1"), 0),
        "to a scalar": lambda: reduced(np.sum, numbers(30, 40)),
        "into `out`": lambda: reduced(np.sum, numbers(30, 40), (0,), out=room(40)),
        "into `out` of another dtype": lambda: reduced(
            np.sum, numbers(30, 40), 0, dtype="f4", out=room(40, dtype="f8")
        ),
        "into `out` of integers": lambda: reduced(np.sum, numbers(30, 40), 0, out=room(40, dtype="i4")),
        "into `out` in another byte order": lambda: reduced(np.sum, numbers(30, 40), 0, out=room(40, dtype=">f4")),
        "with `initial`, into `out`": lambda: reduced(np.sum, numbers(30, 40), 0, out=room(40), initial=2),
        "complex numbers with gaps": lambda: reduced(np.sum, numbers(30, 40, dtype="c8")[:, ::2], 0),
        "spelled in another way": lambda: reduced(np.sum, numbers(30, 40), np.int64(0), keepdims=1, where=True),
        "refused": lambda: Call(np.exceptions.AxisError, numbers(3, 4), axis=2, out=room(4)),
    },
    "max": {
        "rows": lambda: reduced(np.max, numbers(30, 40), 1),
        "bytes": lambda: reduced(np.max, numbers(30, 40, dtype="u1"), 0),
        "into `out`": lambda: reduced(np.max, numbers(30, 40), (0,), out=room(40)),
        "NumPy's own, to another dtype": lambda: reduced(np.max, numbers(30, 40), 0, out=room(40, dtype="f8")),
        "transposed": lambda: reduced(np.max, numbers(30, 40).T, 1, keepdims=True),
        "NumPy's own, of another byte order": lambda: reduced(np.max, numbers(30, 40, dtype=">f4"), 1),
        "refused": lambda: Call(np.exceptions.AxisError, numbers(3, 4), axis=2, out=room(4)),
    },
    "min": {
        "pixels": lambda: reduced(np.min, numbers(30, 40, 3, dtype="u1"), -1),
        "by threads": threaded(lambda: reduced(np.min, numbers(300, 400, dtype="f8"), (0, 1))),
        "refused": lambda: Call(ValueError, numbers(3, 4), axis=(0, 0)),
    },
    "any": {
        "rows": lambda: reduced(np.any, numbers(30, 40), 1),
        "into `out`": lambda: reduced(np.any, numbers(30, 40, dtype="i8"), 0, out=room(40, dtype="?")),
    },
    "all": {
        "pixels": lambda: reduced(np.all, numbers(30, 40, 3, dtype="u1"), -1),
        "to a scalar": lambda: reduced(np.all, numbers(30, 40)),
    },
    "minmax": {
        "bounds of points": lambda: paired(numbers(30, 3), 0),
        "by threads": threaded(lambda: paired(numbers(300, 400, dtype="f8"), None)),
        "refused": lambda: Call(np.exceptions.AxisError, numbers(3, 4), axis=2),
    },
    "nansum": {
        "rows": lambda: without_nan(np.nansum, numbers(30, 40), 1),
        "columns, into `out`": lambda: without_nan(np.nansum, numbers(30, 40), 0, out=room(40)),
        "integers": lambda: without_nan(np.nansum, numbers(30, 40, dtype="u1"), 0),
        "by threads": threaded(lambda: without_nan(np.nansum, numbers(300, 400, dtype="f8"), 1)),
        "refused": lambda: Call(np.exceptions.AxisError, numbers(3, 4), axis=2, out=room(4)),
    },
    "nanmean": {
        "rows": lambda: without_nan(np.nanmean, numbers(30, 5, dtype="f8"), 1, keepdims=True),
    },
    "nanvar": {
        "rows": lambda: without_nan(np.nanvar, numbers(30, 5, dtype="f8"), 1),
        "into `out`": lambda: without_nan(np.nanvar, numbers(30, 5, dtype="f8"), 1, out=room(30, dtype="f8")),
    },
    "nanstd": {
        "of all": lambda: without_nan(np.nanstd, numbers(30, 5, dtype="f8")),
    },
    "nanmax": {
        "rows": lambda: without_nan(np.nanmax, numbers(30, 40), 1),
        "transposed, into `out`": lambda: without_nan(np.nanmax, numbers(40, 30).T, 1, out=room(30)),
        "refused": lambda: Call(ValueError, numbers(3, 4), axis=(0, 0)),
    },
    "nanmin": {
        "halves": lambda: without_nan(np.nanmin, numbers(30, 40, dtype="f2"), 1),
    },
    "mean_std": {
        "channels": lambda: mean_and_deviation(numbers(30, 3, dtype="f8"), 0),
        "refused": lambda: Call(np.exceptions.AxisError, numbers(3, 4), axis=2),
    },
    "prod": {
        "rows": lambda: reduced(np.prod, numbers(30, 4, dtype="i8"), 1),
        "bytes, into `out`": lambda: reduced(np.prod, numbers(30, 4, dtype="u1"), 1, out=room(30, dtype="u8")),
        "refused": lambda: Call(np.exceptions.AxisError, numbers(3, 4), axis=2),
    },
    "argmax": {
        "rows": lambda: reduced(np.argmax, numbers(30, 40), 1),
        "columns, into `out`": lambda: reduced(np.argmax, numbers(30, 40, dtype="u1"), 0, out=room(40, dtype="i8")),
        "at strides": lambda: reduced(np.argmax, numbers(30, 40, 2)[..., 0], 0),
        "refused": lambda: Call(np.exceptions.AxisError, numbers(3, 4), axis=2),
    },
    "argmin": {
        "pixels": lambda: reduced(np.argmin, numbers(30, 40, 3, dtype="u1"), -1),
        "of all, by threads": threaded(lambda: reduced(np.argmin, numbers(300, 400, dtype="f8"), None)),
    },
    "vecdot": {
        "rows": lambda: pairs(np.vecdot, numbers(300, 3), numbers(300, 3)),
        "bytes and floats, in columns": lambda: pairs(np.vecdot, numbers(300, 3, dtype="u1").T, numbers(3, 1), axis=0),
        "by threads": threaded(lambda: pairs(np.vecdot, numbers(70_000, 3, dtype="f8"), numbers(3, dtype="f8"))),
        "into `out`": lambda: pairs(np.vecdot, numbers(30, 4), numbers(4), out=room(30)),
        "into `out` that overlaps": lambda: over(
            # NumPy's `ones` and `full` keep a reference each time.
            numbers(9, 3, dtype="f8"),
            lambda x: Call(x.sum(1), x, np.array([1.0, 1.0, 1.0]), out=x[:, 0]),
        ),
        "in another byte order": lambda: pairs(np.vecdot, numbers(30, 3, dtype=">f4"), numbers(3)),
        "to a scalar": lambda: pairs(np.vecdot, numbers(3), numbers(3)),
        "lists": lambda: Call(np.int64(11), [1, 2], (3, 4)),
        "longer ones": lambda: pairs(np.vecdot, numbers(30, 9), numbers(9)),
    },
    "matvec": {
        "one matrix": lambda: pairs(MATVEC, numbers(3, 3), numbers(300, 3)),
        "many": lambda: pairs(MATVEC, numbers(30, 3, 3), numbers(30, 3)),
        "by threads": threaded(lambda: pairs(MATVEC, numbers(4, 3, dtype="f8"), numbers(70_000, 3, dtype="f8"))),
        "into `out`": lambda: pairs(MATVEC, numbers(2, 3), numbers(30, 3), out=room(30, 2)),
    },
    "cross": {
        "rows": lambda: pairs(np.cross, numbers(300, 3), numbers(300, 3)[::-1]),
        "one for all": lambda: pairs(np.cross, numbers(300, 3, dtype="i4"), numbers(3, dtype="i4")),
        "columns": lambda: pairs(np.cross, numbers(3, 30), numbers(3, 1), axis=0),
    },
    "norm": {
        "rows": lambda: Call(np.array([5.0] * 30), np.tile([3.0, 4.0], (30, 1))),
        "columns": lambda: Call(np.array([[5.0] * 30], "f4"), np.array([[1] * 30] * 25, "f4"), 0, keepdims=True),
        "all": lambda: Call(np.float64(6.0), np.array([[1] * 4] * 9)[:, ::-1], None),
        "complex": lambda: Call(np.array([5.0] * 30), np.array([[3 + 4j]] * 30)),
        "refused": lambda: Call(np.exceptions.AxisError, numbers(3, 4), axis=2),
    },
    "stack": {
        "a last axis": lambda: Call(np.stack([numbers(30, 4)] * 3, -1), [numbers(30, 4)] * 3, -1),
        "bytes": lambda: Call(np.stack([numbers(300, dtype="u1")] * 4, 1), (numbers(300, dtype="u1"),) * 4, axis=1),
        "a first axis": lambda: Call(np.stack([numbers(3, 4)] * 3), [numbers(3, 4)] * 3),
        "refused": lambda: Call(ValueError, [numbers(3), numbers(4)], -1),
    },
    "mean": {
        "rows": lambda: reduced(np.mean, numbers(30, 40), 1, keepdims=True),
        "by threads": threaded(lambda: reduced(np.mean, numbers(300, 400, dtype="f8"), (0, 1))),
    },
    "var": {
        "rows": lambda: reduced(np.var, numbers(30, 5, dtype="f8"), 1, ddof=1),
        "columns, by threads": threaded(lambda: reduced(np.var, numbers(500, 200, dtype="u1"), 0)),
        "by blocks": lambda: reduced(np.var, numbers(40_000, 5, dtype="f8"), 1),
        "by blocks, into `out`": lambda: reduced(np.var, numbers(40_000, 40), 1, out=room(40_000)),
        "into `out` of integers": lambda: reduced(np.var, numbers(30, 5, dtype="f8"), 1, out=room(30, dtype="i8")),
        "complex numbers into `out`": lambda: reduced(np.var, numbers(30, 5, dtype="c16"), 1, out=room(30, dtype="f8")),
        "refused": lambda: Call(ValueError, numbers(3, 4), axis=(0, 0)),
    },
    "std": {
        "into `out`": lambda: reduced(np.std, numbers(30, 5, dtype="f8"), 1, out=room(30, dtype="f8")),
        "by blocks, into `out`": lambda: reduced(np.std, numbers(40_000, 40), 1, out=room(40_000)),
        "refused: `out` of integers": lambda: Call(TypeError, numbers(3, 4), 1, out=room(3, dtype="i8")),
    },
    "unbroadcast": {
        "columns": lambda: summed((3, 4), (3, 1), 1),
        "all": lambda: summed((3, 4), (), (0, 1)),
        "nothing": lambda: summed((3, 4), (3, 4), ()),
        "no items": lambda: Call(np.zeros(4, "f4"), numbers(0, 4), (4,), out=room(4)),
        "no results": lambda: Call(np.zeros((0,), "f4"), numbers(3, 0), (0,)),
        "a list": lambda: summed_of([[1.5, 2.5], [3.5, 4.5]], (2,), 0),
        "an array of another library": lambda: Call(total((3, 4), 0, "f4"), Array(numbers(3, 4)), [4]),
        "outer and inner axes": lambda: summed((20, 30, 40), (1, 30, 1), (0, 2)),
        "many axes": lambda: summed((2, 3, 2, 3, 2, 3), (2, 1, 2, 1, 2, 1), (1, 3, 5)),
        "pairs of float64, few terms": lambda: summed((4, 4), (4,), 0, "f8"),
        "complex": lambda: summed((30, 40), (40,), 0, "c8"),
        "complex, in a new result": lambda: summed((30, 40), (40,), 0, "c16"),
        "integers": lambda: summed((30, 40), (40,), 0, "i2"),
        "wider integers": lambda: summed((30, 40), (40,), 0, "i2", "i8"),
        "bools": lambda: Call(np.full(4, 3), np.ones((3, 4), bool), (4,), dtype=int),
        "real to complex": lambda: summed((30, 40), (40,), 0, "f8", "c16"),
        "real to complex, into `out`": lambda: summed((30, 40), (40,), 0, "f8", "c16", room(40, dtype="c16")),
        "real to complex, large `out`": lambda: summed((64, 1500), (1500,), 0, "f8", "c16", room(1500, dtype="c16")),
        "complex to real": lambda: real_part(30, 40),
        "complex to real, into `out`": lambda: real_part(30, 40, out=room(40, dtype="f8")),
        "floats to integers": lambda: summed((30, 40), (40,), 0, "f8", "i8"),
        "another byte order": lambda: summed((30, 40), (40,), 0, ">f4"),
        "another byte order into `out`": lambda: summed((30, 40), (40,), 0, ">f4", out=room(40, dtype=">f4")),
        "long double": lambda: summed((3, 4), (4,), 0, "g"),
        "long double into `out`": lambda: summed((3, 4), (4,), 0, "g", out=room(4, dtype="g")),
        "objects": lambda: summed_of(objects(3, 4), (4,), 0),
        "objects into `out`": lambda: summed_of(objects(3, 4), (4,), 0, out=objects(4)),
        "nothing, another dtype": lambda: summed((3, 4), (3, 4), (), "f4", "i4", room(3, 4, dtype="i4")),
        "large": lambda: summed((512, 512), (512,), 0),
        "large, one result": lambda: summed((512, 512), (), (0, 1)),
        "large, segments of runs": lambda: summed((4, 60_000), (4, 1), 1, "f8"),
        "large, packed": lambda: summed((512, 1024), (1024,), 0, "i2", "i8"),
        "scratch beyond the stack": lambda: summed((3, 2000), (2000,), 0, "f8"),
        "transposed": lambda: Call(total((40, 30), 1, "f4"), numbers(40, 30).T, (40,)),
        "with steps": lambda: summed_of(numbers(40, 60)[::2, ::2], (30,), 0),
        "into `out`": lambda: summed((30, 40), (40,), 0, out=room(40)),
        "into `out` with steps": lambda: summed((30, 40), (40,), 0, out=room(80)[::2]),
        "into `out` with steps, large": lambda: summed((512, 512), (512,), 0, out=room(1024)[::2]),
        "into `out` that overlaps": lambda: over(numbers(30, 40), lambda x: summed_of(x, (40,), 0, out=x[1])),
        "into `out` of another dtype that overlaps": lambda: over(
            numbers(30, 40, dtype="f8"), lambda x: summed_of(x, (40,), 0, "f4", out=x.view("f4")[0, :40])
        ),
        "by threads, one result": threaded(lambda: summed((300, 400), (), (0, 1), "f8")),
        "by threads, packed": threaded(lambda: summed((300, 400), (400,), 0, "f2", "f4")),
        "by threads, into `out` with steps": threaded(lambda: summed((300, 400), (400,), 0, out=room(800)[::2])),
        "products": lambda: multiplied(numbers(30, 40), (40,), numbers(30, 40), 0),
        "products of runs": lambda: multiplied(numbers(30, 400, dtype="f8"), (30, 1), numbers(400, dtype="f8"), 1),
        "products by a number": lambda: Call(2 * total((3, 4), 0, "f4"), numbers(3, 4), (4,), times=2),
        "products by a list": lambda: multiplied(numbers(3, 4, dtype="f8"), (4,), [[1.5], [2.5], [3.5]], 0),
        "products of two dtypes": lambda: multiplied(numbers(30, 40), (40,), numbers(40, dtype="i2"), 0),
        "products of integers": lambda: multiplied(numbers(30, 40, dtype="i4"), (40,), numbers(30, 1, dtype="i4"), 0),
        "products of complex numbers": lambda: multiplied(
            numbers(30, 40, dtype="c8"), (40,), numbers(40, dtype="c8"), 0
        ),
        "products that nothing is summed of": lambda: multiplied(numbers(3, 4), (3, 4), numbers(4), ()),
        "products in another byte order": lambda: multiplied(
            numbers(30, 40, dtype=">f4"), (40,), numbers(30, 40, dtype=">f4"), 0, dtype="f4"
        ),
        "products by threads": threaded(lambda: multiplied(numbers(300, 400), (400,), numbers(300, 400), 0)),
        "large products": lambda: multiplied(numbers(512, 512), (), numbers(512, 512), (0, 1)),
        "refused: factors that do not fit": lambda: Call(ValueError, numbers(3, 4), (4,), times=numbers(3)),
        "refused: factors that are no numbers": lambda: Call(TypeError, numbers(3, 4), (4,), times="a"),
        "pdpd": lambda: Call(total((2, 3, 4), (0, 2), "f4"), numbers(2, 3, 4), (3,), mode="pdpd", axis=1),
        "explicit": lambda: Call(total((2, 3, 4), (0, 2), "f4"), numbers(2, 3, 4), (3,), [1], mode="explicit"),
        "refused: a shape that does not fit": lambda: Call(ValueError, numbers(3, 4), (5,)),
        "refused: strings": lambda: Call(TypeError, np.array(["a", "b"]), ()),
        "refused: bools": lambda: Call(TypeError, np.ones((3, 4), bool), (4,)),
        "refused: records": lambda: Call(TypeError, structured(3, 4), (4,)),
        "refused: another dtype": lambda: Call(TypeError, numbers(3, 4), (4,), dtype=SECONDS),
        "refused: timedeltas to integers": lambda: Call(TypeError, numbers(3, 4, dtype="m8[s]"), (4,), dtype="i8"),
        "refused: `out` of another dtype": lambda: Call(TypeError, numbers(3, 4), (4,), out=room(4, dtype="f8")),
    },
}

CALLS["add"] = {
    "arrays": lambda: Call(numbers(3, 4) + numbers(4), numbers(3, 4), numbers(4)),
    "a number": lambda: Call(numbers(3, 4) + np.float32(2), numbers(3, 4), 2.0),
    "rows": lambda: Call(numbers(300, 3) + numbers(3), numbers(300, 3), numbers(3)),
    "large": lambda: Call(numbers(512, 256) + numbers(256), numbers(512, 256), numbers(256)),
    "into `out`": lambda: Call(numbers(3, 4) + numbers(4), numbers(3, 4), numbers(4), out=room(3, 4)),
    "lists": lambda: Call(np.array([[4, 5], [5, 6]]), [[1], [2]], [3, 4]),
    "objects": lambda: Call(objects(3, 4) + objects(4), objects(3, 4), objects(4)),
    "a subclass": lambda: Call(numbers(3, 4).view(Subclass) + numbers(4), numbers(3, 4).view(Subclass), numbers(4)),
    "refused: shapes that do not fit": lambda: Call(ValueError, numbers(3), numbers(4)),
    "refused: a word": lambda: Call(TypeError, numbers(3), numbers(3), subok=True),
}
CALLS["sqrt"] = {
    "an array": lambda: Call(np.sqrt(numbers(3, 4)), numbers(3, 4)),
    "rows": lambda: Call(np.sqrt(numbers(300, 5)[:, :3]), numbers(300, 5)[:, :3]),
    "large": lambda: Call(np.sqrt(numbers(512, 256)), numbers(512, 256)),
    "by threads": threaded(lambda: Call(np.sqrt(numbers(3000, 100)), numbers(3000, 100))),
    "into `out`": lambda: Call(np.sqrt(numbers(3, 4)), numbers(3, 4), out=room(3, 4)),
    "in another dtype": lambda: Call(np.sqrt(numbers(3, 4), dtype="f8"), numbers(3, 4), dtype="f8"),
    "a list": lambda: Call(np.sqrt([4.0, 9.0]), [4.0, 9.0]),
    "a subclass": lambda: Call(np.sqrt(numbers(3, 4).view(Subclass)), numbers(3, 4).view(Subclass)),
    "refused: strings": lambda: Call(TypeError, np.array(["a", "b"])),
    "refused: `out` of another shape": lambda: Call(ValueError, numbers(3), out=room(4)),
}

CALLS["where"] = {
    "rows": lambda: chosen(numbers(300, 1, dtype="i8") > 2, numbers(300, 3), numbers(3)),
    "a number": lambda: chosen(numbers(3, 4) > 2, numbers(3, 4), 2.5),
    "numbers for a condition": lambda: chosen(numbers(3, 4), numbers(3, 4), numbers(4, dtype="f8")),
    "large": lambda: chosen(numbers(512, 256) > 2, numbers(256), 0),
    "by threads": threaded(lambda: chosen(numbers(3000, 1) > 2, numbers(3000, 3), numbers(3))),
    "into `out`": lambda: chosen(numbers(3, 4) > 2, numbers(3, 4), numbers(4), out=room(3, 4)),
    "strings": lambda: chosen(numbers(3, 1) > 2, np.array(["a", "b"]), np.array(["c", "d"])),
    "lists": lambda: chosen([True, False], [1, 2], [3, 4]),
    "objects": lambda: chosen(numbers(3, 1) > 2, objects(4), objects(3, 4)),
    "objects into `out`": lambda: chosen(numbers(3, 1) > 2, objects(4), objects(3, 4), out=objects(3, 4)),
    "refused: shapes that do not fit": lambda: Call(ValueError, numbers(3) > 2, numbers(4), 1),
    "refused: `out` of another shape": lambda: Call(ValueError, numbers(3) > 2, numbers(3), 1, out=room(4)),
}

if BFLOAT16:
    CALLS["elementwise"]["bfloat16"] = lambda: applied(np.add, *(numbers(n, 4, dtype="bfloat16") for n in (30, 1)))
    CALLS["broadcast"]["bfloat16"] = lambda: broadcast(numbers(4, dtype="bfloat16"), (3, 4))
    CALLS["broadcast"]["bfloat16, large"] = lambda: broadcast(numbers(256, dtype="bfloat16"), (1024, 256))
    CALLS["unbroadcast"]["bfloat16, large"] = lambda: summed((512, 1024), (1024,), 0, "bfloat16")
    CALLS["unbroadcast"] |= {
        f"{own} to {to or own}": lambda own=own, to=to: summed((30, 40), (40,), 0, own, to)
        for own, to in (("bfloat16", None), ("bfloat16", "f4"), ("f4", "bfloat16"), ("c8", "bfloat16"))
    }
    CALLS["sum"]["into `out` of bfloat16"] = lambda: reduced(np.sum, numbers(6, 7), 0, out=room(7, dtype="bfloat16"))
    CALLS["unbroadcast"]["bfloat16 into `out`"] = lambda: summed(
        (30, 40), (40,), 0, "bfloat16", out=room(40, dtype="bfloat16")
    )


# The same calls for other tests.

OF_ARRAYS = {
    f"{name}: {kind}": (getattr(bcast, name), row.make if isinstance(row, Row) else row)
    for name in sorted(CALLS.keys() - {"memory_info", "release_memory", "set_idle_limit", "set_num_threads"})
    for kind, row in CALLS[name].items()
}


def is_plain(dtype):
    """Return whether the bytes of items are their values, without references and padding."""
    return dtype.char not in "OTgG" and dtype.names is None


def image(array):
    """Return what an array has in memory."""
    return array.tobytes() if is_plain(array.dtype) else array.tolist()


def difference(result, expected):
    """Describe how a result differs from the expected one; return None if they are equal."""
    if isinstance(expected, np.ndarray) and isinstance(result, np.ndarray):
        if result.dtype != expected.dtype or result.shape != expected.shape:
            return f"{result.dtype} of shape {result.shape} for {expected.dtype} of shape {expected.shape}"
        return None if image(result) == image(expected) else f"a wrong result: {result!r:.200}"
    if isinstance(expected, tuple) and isinstance(result, tuple) and len(result) == len(expected):
        differences = [difference(*pair) for pair in zip(result, expected, strict=True)]
        return next(filter(None, differences), None)
    if isinstance(expected, Giving):
        return difference(result(expected.argument), expected.expected)
    same = type(result) is type(expected) and result == expected
    return None if same else f"{result!r:.200} for {expected!r:.200}"


def check(function, call, args, kwargs):
    """Make a call, perhaps with other arguments than its own; compare what comes with what is expected."""
    if isinstance(call.expected, type):
        with pytest.raises(call.expected):
            function(*args, **kwargs)
    else:
        with warnings.catch_warnings(action="ignore"):
            result = function(*args, **kwargs)
        assert difference(result, call.expected) is None
