"""Call every public function with random arguments and compare with NumPy: under sanitizers, or for hours.

    python tests/fuzz.py --seconds 600              random cases; the seed is printed
    python tests/fuzz.py --seed 7 --case 1234       one of them again
    python tests/fuzz.py --only chain --count 100000

A case depends only on its seed and its number. It draws a function, mostly legal arguments, and a way of `_ways.py`.
Then it makes the call and compares the bytes of the result, or checks that the call is refused. Each array has its own
memory, which ends with its last item, so that AddressSanitizer detects any access beyond it. The cases run in a child
process, so that a case that crashes or hangs can be named as well.
"""

import argparse
import faulthandler
import functools
import math
import random
import subprocess
import sys
import time
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import _modes
import numpy as np
from _arithmetic import draw_chain, draw_elementwise, draw_named, draw_where
from _modes import drawn_call
from _reference import MisfitError as Misfit
from _reference import reference, two_way
from _ways import COMPUTED, SUMS, WAYS, blocks_of, computed, in_order, summed, written

import bcast
from bcast._api import converted
from bcast._api.named import FUNCTIONS as NAMED

LONGEST = 120  # seconds that a case may take; longer ones hang

LENGTHS = (0, 1, 1, 1, 2, 2, 2, 3, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 100, 130, 520, 1000, 5000)
BYTES = {500: 50, 20_000: 45, 300_000: 4, 5_000_000: 1}  # the most that an array has, and how often
FORMS = sorted(_modes.FORMS)


def dtypes(codes):
    return [np.dtype(code) for code in codes.split()]


PADDED = np.dtype([("a", "u1"), ("b", "<f8")], align=True)
COPIED = [*dtypes("? i1 u2 >i4 u8 f2 f4 >f8 c8 c16 g G M8[us] m8[D] S5 U3 V1 V3 V7 V24 V40 V200 V4100"), PADDED]
WITH_REFERENCES = [np.dtype("O"), np.dtypes.StringDType()]
SUMMED = dtypes("? i1 i2 >i4 i8 u1 u2 u4 >u8 f2 >f2 f4 >f4 f8 >f8 c8 >c8 c16 g O")
CONVERTED = dtypes("? u1 i2 >i4 i8"), dtypes("i8 f4 >f4 f8 >f8 c8 c16 u2 m8[s]")  # from any bytes, without warnings


# The layouts of arrays in memory.


@dataclass
class Place:
    """The place of an array in a buffer: all numbers are in items."""

    shape: tuple[int, ...]
    strides: list[int]
    first: int
    size: int


def draw_place(rng: random.Random, dtype: np.dtype[Any], shape: tuple[int, ...], repeating: bool = False) -> Place:
    """Draw strides: as in C, or in any order with gaps and backwards, of data also 0."""
    axes = list(range(len(shape)))
    odd = rng.random() < 0.5 and dtype.kind != "T"  # which no array with strides of its own can be made of
    repeating = repeating and dtype.kind != "T"
    if odd and rng.random() < 0.7:
        rng.shuffle(axes)
    strides, step, low, high, gaps = [0] * len(shape), 1, 0, 0, 1
    for axis in reversed(axes):
        if repeating and rng.random() < 0.05:
            continue
        gap = rng.choice((1, 1, 1, 1, 2, 3)) if odd and gaps < 6 else 1
        gaps *= gap
        step *= gap
        strides[axis] = step if not odd or rng.random() < 0.8 else -step
        reach = strides[axis] * max(0, shape[axis] - 1)
        low, high = min(low, low + reach), max(high, high + reach)
        step *= max(1, shape[axis])
    return Place(shape, strides, -low, high - low + 1 if math.prod(shape) else 0)


def draw_room(rng: random.Random, dtype: np.dtype[Any], size: int, fill: Any) -> np.ndarray[Any, Any]:
    """Make a buffer: separate memory, usually aligned, that ends with the last item."""
    if dtype.hasobject:
        return fill(rng, dtype, size)
    before = rng.choice((0, 0, 0, 0, 1, 3, 8))
    room = np.empty(before + size * dtype.itemsize, np.uint8)[before:].view(dtype)
    raw(room)[...] = raw(fill(rng, dtype, size))
    return room


def viewed(room: np.ndarray[Any, Any], place: Place, shift: int = 0) -> np.ndarray[Any, Any]:
    assert shift + place.size <= room.size
    if room.dtype.kind == "T":
        return room[shift : shift + place.size].reshape(place.shape)
    strides = [stride * room.itemsize for stride in place.strides]
    return np.lib.stride_tricks.as_strided(room[shift + place.first :], place.shape, strides)


def any_items(rng: random.Random, dtype: np.dtype[Any], size: int) -> np.ndarray[Any, Any]:
    """Items of any bytes, or references to objects."""
    if dtype.hasobject:
        items = [rng.choice(("", "a", "βγ" * 20, "long" * 100)) for _ in range(size)]
        return np.array([item if rng.random() < 0.5 else len(item) for item in items] if dtype == "O" else items, dtype)
    return np.frombuffer(bytearray(rng.randbytes(size * dtype.itemsize)), dtype)


def raw(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The items as bytes, which compare as what they are; those with references as themselves."""
    return array if array.dtype.hasobject else array.view(np.dtype((np.void, array.itemsize)))


def by_bytes(function, data):
    """The result of a NumPy function for a copy of data whose items are read as bytes."""
    if data.dtype.char == "T":  # which NumPy before 2.2 repeats as bytes, so that several point to one string
        return function(data.astype(object)).astype(data.dtype)
    result = function(raw(data).copy())
    return result if data.dtype.hasobject else result.view(data.dtype)


def are_same(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype or a.dtype.byteorder != b.dtype.byteorder:
        return False
    if a.dtype.hasobject:
        return a.ravel().tolist() == b.ravel().tolist()
    return np.ascontiguousarray(raw(a)).tobytes() == np.ascontiguousarray(raw(b)).tobytes()


# What a case does with its call.


class Operands:
    """Data, and perhaps an `out`, which may overlap it, be unfit, or have gaps that must stay as they are."""

    def __init__(self, rng, dtype, data_shape, out_shape, fill=any_items, out_dtype=None):
        out_dtype = out_dtype or dtype
        place, to = draw_place(rng, dtype, data_shape, repeating=True), draw_place(rng, out_dtype, out_shape)
        how = rng.choice(("new", "new", "out", "overlap"))
        if dtype != out_dtype and how == "overlap":
            how = "out"
        if how == "overlap":
            size = max(place.size, to.size) + rng.randint(0, 20)
            self.room = draw_room(rng, dtype, size, fill)
            shift = rng.randint(0, size - to.size)
            self.data = viewed(self.room, place, rng.randint(0, size - place.size))
        else:
            self.room = draw_room(rng, out_dtype, to.size if how == "out" else 0, fill)
            shift = 0
            self.data = viewed(draw_room(rng, dtype, place.size, fill), place)
        if how != "overlap":
            self.data.flags.writeable = False
        self.out = None if how == "new" else viewed(self.room, to, shift)
        self.spoilt = self.out is not None and rng.random() < 0.03
        if self.spoilt:
            self.out = self.unfit(rng)
        self.before = raw(self.room).copy()
        self.kept = np.ones(self.room.size, bool)  # what no call may change
        if self.out is not None and not self.spoilt:
            viewed(self.kept, to, shift)[...] = False

    def unfit(self, rng):
        """Return an `out` that is to be refused."""
        how = rng.choice(("read-only", "dtype", "shape", "list"))
        if how == "read-only":
            self.out.flags.writeable = False
            return self.out
        if how == "dtype":
            castable = np.can_cast(self.data.dtype, "M8[s]", "same_kind")
            return np.zeros(self.out.shape, "?" if castable else "M8[s]")
        return (self.out[..., None] if self.out.ndim < 64 else self.out[..., 0]) if how == "shape" else [1, 2]

    def check(self, call, expected, same=are_same, new=True):
        """Make the call; what is expected is None where it is to be refused. Mostly, results without `out` are new."""
        if expected is None or self.spoilt:
            refused(lambda: call(self.out))
            self.kept[...] = True
        else:
            result = call(self.out)
            assert self.out is None or result is self.out
            assert same(result, expected), f"expected {expected!r}, got {result!r}"
            if self.out is None and new:
                check_new(result, self.data)
        assert are_same(raw(self.room)[self.kept], self.before[self.kept]), "wrote elsewhere"


def check_new(result, *inputs):
    assert type(result) is np.ndarray
    assert result.flags.c_contiguous
    assert result.flags.writeable
    assert result.flags.owndata
    assert not any(np.may_share_memory(result, array) for array in inputs)


def expect(call, expected):
    """Make a call without arrays; what is expected is None where it is to be refused."""
    if expected is None:
        refused(call)
    else:
        result = call()
        assert result == expected, f"expected {expected!r}, got {result!r}"


def refused(call):
    try:
        result = call()
    except (TypeError, ValueError):
        return
    raise AssertionError(f"took what is to be refused, and gave {result!r}")


# The arguments.


def draw_shape(rng, itemsize=1, most=None):
    """Draw a shape of few items, or seldom of many; hardly ever of many axes."""
    most = most or rng.choices(list(BYTES), list(BYTES.values()))[0]
    room = max(1, most // itemsize)
    shape = []
    for _ in range(rng.randint(0, 6)):
        length = rng.choice(LENGTHS) if rng.random() < 0.9 else rng.randint(1, room)
        if length <= room:
            shape.append(length)
            room //= max(1, length)
    rng.shuffle(shape)
    if rng.random() < 0.02:
        shape += [1] * rng.randint(1, 64 - len(shape))
    return tuple(shape)


def draw_call(rng, itemsize=1):
    """Draw the data's shape, a target and the arguments of a mode, mostly such that they fit."""
    while True:
        data, target, arguments = drawn_call(rng.choice, draw_shape(rng, itemsize), rng.choice(FORMS))
        data, target = spoil(rng, data), spoil(rng, target)
        found = reference(data, target, **arguments)
        if not found or math.prod(found[0]) * itemsize <= 4 * max(BYTES):  # a mode may stretch both
            return data, target, arguments


def spoil(rng, shape):
    """Change one length of a shape, or its rank, once in a while; mostly nothing fits any more."""
    if rng.random() < 0.95:
        return shape
    if not shape or (rng.random() < 0.3 and len(shape) < 60):
        return (rng.choice((1, 2)), *shape)
    at = rng.randrange(len(shape))
    return shape[:at] + (rng.choice((0, 1, 2, 3)),) + shape[at + 1 :]


def spelled(rng, shape):
    return rng.choice((tuple, list, lambda lengths: np.array(lengths, np.int64)))(shape)


def broadcast_of(data, source, shape):
    return by_bytes(lambda items: np.broadcast_to(items.reshape(source), shape), data)


# A function for each public one: it draws arguments, makes the call and checks what it gives.


def fuzz_broadcast(rng):
    dtype = rng.choice(COPIED + WITH_REFERENCES * (rng.random() < 0.1))
    shape, target, arguments = draw_call(rng, dtype.itemsize)
    found = reference(shape, target, **arguments)
    operands = Operands(rng, dtype, shape, found[0] if found else target)
    expected = found and broadcast_of(operands.data, found[1], found[0])
    target = spelled(rng, target)
    operands.check(lambda out: bcast.broadcast(operands.data, target, **arguments, out=out), expected)


def fuzz_broadcast_like(rng):
    dtype = rng.choice(COPIED)
    shape, target, arguments = draw_call(rng, dtype.itemsize)
    like = np.broadcast_to(np.int8(0), target)
    every = {"broadcast_axes": list(range(len(target)))} if arguments.get("broadcast_axes") == [] else {}
    found = reference(shape, target, **arguments | every)
    operands = Operands(rng, dtype, shape, found[0] if found else target)
    expected = found and broadcast_of(operands.data, found[1], found[0])
    operands.check(lambda out: bcast.broadcast_like(operands.data, like, **arguments, out=out), expected)


def fuzz_infer_shape(rng):
    shape, target, arguments = draw_call(rng)
    found = reference(shape, target, **arguments)
    if rng.random() < 0.2:
        target += (rng.choice((-1, 2**63, 2**64, 1.5, "3", None)),)
        arguments.pop("mode")
        found = None
    expect(lambda: bcast.infer_shape(shape, target, **arguments), found and found[0])


def fuzz_broadcast_to(rng):
    dtype = wanted = rng.choice(COPIED)
    converts = rng.random() < 0.3
    if converts:
        dtype, wanted = rng.choice(CONVERTED[0]), rng.choice(CONVERTED[1])
    target = draw_shape(rng, max(dtype.itemsize, wanted.itemsize))
    shape = tuple(1 if rng.random() < 0.4 else length for length in target)[rng.randint(0, len(target)) :]
    shape = spoil(rng, shape)
    found = reference(shape, target)
    operands = Operands(rng, dtype, shape, target, out_dtype=wanted)
    expected = found and broadcast_of(operands.data, found[1], target)
    given = target[0] if len(target) == 1 and rng.random() < 0.5 else spelled(rng, target)
    if converts:
        expected = None if expected is None else expected.astype(wanted)
        converted.set_limits(rng.choice((1, 50, 1000, 1 << 20)))
        how = {"dtype": wanted, "casting": "unsafe"}
        operands.check(lambda out: bcast.broadcast_to(operands.data, given, **how, out=out), expected)
        return
    operands.check(lambda out: bcast.broadcast_to(operands.data, given, out=out), expected)


def draw_shapes(rng, itemsize=1):
    whole = draw_shape(rng, itemsize)
    shapes = [tuple(1 if rng.random() < 0.4 else length for length in whole) for _ in range(rng.randint(0, 4))]
    return [spoil(rng, shape[rng.randint(0, len(shape)) :]) for shape in shapes]


def merged(shapes):
    """Merge shapes by NumPy's two-way rule; None where they do not fit."""
    try:
        return functools.reduce(two_way, shapes, ())
    except Misfit:
        return None


def fuzz_broadcast_arrays(rng):
    dtype = rng.choice(COPIED)
    shapes = draw_shapes(rng, dtype.itemsize)
    arrays = [Operands(rng, dtype, shape, ()).data for shape in shapes]
    whole = merged(shapes)
    try:
        results = bcast.broadcast_arrays(*arrays)
    except ValueError:
        assert whole is None
        return
    for result, array in zip(results, arrays, strict=True):
        assert are_same(result, np.broadcast_to(array, whole))
        check_new(result, *arrays, *(other for other in results if other is not result))


def fuzz_broadcast_shapes(rng):
    shapes = draw_shapes(rng)
    given = [shape[0] if len(shape) == 1 and rng.random() < 0.5 else spelled(rng, shape) for shape in shapes]
    expect(lambda: bcast.broadcast_shapes(*given), merged(shapes))


def fuzz_meshgrid(rng):
    most, arrays = rng.choice((100, 10_000)), []
    for _ in range(rng.randint(0, 5)):
        dtype = rng.choice([dtype for dtype in COPIED + WITH_REFERENCES if dtype.itemsize <= 40])
        length = rng.randint(0, min(40, most))
        most //= max(1, length)
        arrays.append(Operands(rng, dtype, rng.choice(((length,), (length, 1), (1, length))), ()).data)
    options = {name: rng.random() < 0.5 for name in ("copy", "sparse")} | {"indexing": rng.choice(("xy", "ij"))}
    results = bcast.meshgrid(*arrays, **options)
    for result, array, expected in zip(results, arrays, np.meshgrid(*map(raw, arrays), **options), strict=True):
        assert are_same(raw(result), expected)
        if options["copy"]:
            check_new(result, array)


def counts(rng, n, room):
    """Draw how many times each of n axes is repeated."""
    drawn = []
    for _ in range(n):
        times = rng.choice((0, 1, 1, 2, 3, 4, 17)) if rng.random() < 0.9 else rng.randint(1, max(1, room))
        drawn.append(times if times <= room else 1)
        room //= max(1, drawn[-1])
    return tuple(drawn)


def fuzz_tile(rng):
    dtype = rng.choice(COPIED + WITH_REFERENCES)
    shape = draw_shape(rng, dtype.itemsize)
    room = rng.choice((500, 20_000, 2_000_000)) // (math.prod(shape) or 10) // dtype.itemsize
    reps = counts(rng, rng.randint(0, len(shape) + 2), room)
    legal = max(len(shape), len(reps)) <= 64
    out_shape = np.tile(np.empty(shape, np.int8), reps).shape if legal else shape
    operands = Operands(rng, dtype, shape, out_shape)
    expected = by_bytes(lambda items: np.tile(items, reps), operands.data) if legal else None
    if reps and rng.random() < 0.03:
        reps = (-1, *reps[1:])
        expected = None
    given = reps[0] if len(reps) == 1 and rng.random() < 0.5 else spelled(rng, reps)
    operands.check(lambda out: bcast.tile(operands.data, given, out=out), expected)


def repeated(array, times, axis):
    """`np.repeat`, which goes through all items of the other axes of an empty array, for hours."""
    if array.size or axis is None:
        return np.repeat(array, times, axis)
    shape = list(array.shape)
    shape[axis] = shape[axis] * times if isinstance(times, int) else int(np.sum(times))
    return np.empty(shape, array.dtype)


def fuzz_repeat(rng):
    dtype = rng.choice(COPIED + WITH_REFERENCES)
    shape = draw_shape(rng, dtype.itemsize)
    rank = len(shape)
    room = rng.choice((500, 20_000, 2_000_000)) // (math.prod(shape) or 10) // dtype.itemsize
    how = rng.choice(("all", "one", "several", "each")) if rank else "all"
    if how == "several":
        axis = tuple(rng.choice((each, each - rank)) for each in rng.sample(range(rank), rng.randint(0, rank)))
        repeats = counts(rng, len(axis), room)
        steps = list(zip(repeats, axis, strict=True))
    else:
        axis = None if how == "all" else rng.randint(-rank, rank - 1)
        repeats = counts(rng, 1, room)[0] if how != "each" else counts(rng, shape[axis], 5)
        steps = [(repeats, axis)]
        if how == "each" and rng.random() < 0.7:
            repeats = np.array(repeats, rng.choice(("?", "i1", "u1", "i2", "u4", "i8", "u8", ">i8", "f4", "O")))
            if repeats.dtype.kind != "b" or rank == 1:
                repeats = np.repeat(repeats, 2)[::2]
            steps = [(repeats.astype(int), axis)]

    def by_numpy(array):
        for times, along in steps:
            array = repeated(array, times, along)
        return array

    operands = Operands(rng, dtype, shape, by_numpy(np.empty(shape, np.int8)).shape)
    expected = by_bytes(by_numpy, operands.data)
    if isinstance(repeats, int) and rng.random() < 0.03:
        repeats = -1
        expected = None
    operands.check(lambda out: bcast.repeat(operands.data, repeats, axis, out=out), expected)


def small_numbers(rng, dtype, size, least=-1):
    """Numbers so small and so few that every sum of them is exact. Bools that hold have any byte but 0."""
    numbers = np.random.default_rng(rng.getrandbits(32)).integers(0 if dtype.kind in "ub" else least, 2, size)
    if dtype.kind == "b":
        return (numbers.astype("u1") * np.frombuffer(rng.randbytes(size), "u1")).view(dtype)
    numbers[rng.randint(100, 200) :] *= rng.random() < 0.5 and dtype.itemsize // (1 + (dtype.kind == "c")) > 2
    return (numbers * (1 + 2j) if dtype.kind == "c" else numbers).astype(dtype)


class Sums:
    """The dtypes of terms and sums, and what is expected: exact sums, or those that bcast itself makes otherwise."""

    def __init__(self, rng):
        self.dtype = rng.choice(SUMMED)
        self.wanted = rng.choice(SUMMED[1:]) if self.dtype.kind == "b" or rng.random() < 0.3 else self.dtype
        if self.dtype.kind == "O" and self.wanted.kind in "iu":
            self.wanted = self.dtype  # Python's integers do not wrap around
        self.options = {} if self.wanted == self.dtype else {"dtype": self.wanted}
        self.exact = rng.random() < 0.8 or self.dtype.kind not in "fc" or self.wanted != self.dtype
        least = 0 if self.wanted.kind == "u" else -1
        self.fill = functools.partial(small_numbers, least=least) if self.exact else any_items

    def widened(self, terms):
        """The terms in a dtype in which all sums are exact."""
        terms = terms.real if self.dtype.kind == "c" and self.wanted.kind not in "cO" else terms
        return terms.astype({"i": "i8", "u": "u8", "f": "g", "c": "G", "O": "O"}[self.wanted.kind])

    def are_same(self, result, right):
        return result.dtype == right.dtype and np.array_equal(result, right, equal_nan=not self.exact)


def fuzz_unbroadcast(rng):
    sums = Sums(rng)
    shape, target, arguments = draw_call(rng, sums.dtype.itemsize)
    found = reference(shape, target, **arguments)
    grad_shape = found[0] if found else target
    if shape == () and arguments.get("broadcast_axes") == []:
        arguments["broadcast_axes"] = list(range(len(grad_shape)))
    found = reference(shape, grad_shape, **arguments)
    if found and found[0] != grad_shape:
        found = None
    operands = Operands(rng, sums.dtype, grad_shape, shape, sums.fill, sums.wanted)
    grad = operands.data
    expected = None
    if found and not sums.exact:
        expected = bcast.unbroadcast(grad.copy(), shape, **arguments)  # `out` changes no bit
        expected = bcast.unbroadcast(grad, shape, **arguments) if grad.size else expected
    elif found:
        terms = sums.widened(grad)
        axes = tuple(axis for axis, (n, m) in enumerate(zip(*found, strict=True)) if n != m)
        exact = np.asarray(np.add.reduce(terms, axes, keepdims=True, initial=0), terms.dtype)
        expected = exact.reshape(shape).astype(sums.wanted)
    arguments |= sums.options
    operands.check(lambda out: bcast.unbroadcast(grad, shape, **arguments, out=out), expected, sums.are_same)
    if found and sums.exact and sums.wanted == sums.dtype and sums.dtype.kind != "b":
        check_products(rng, sums, grad, shape, axes, arguments)


def check_products(rng, sums, grad, shape, axes, arguments):
    """Multiply by numbers so small that products and their sums are as exact, of another shape and layout."""
    factors = tuple(rng.choice((1, length)) for length in grad.shape)[rng.randrange(grad.ndim + 1) :]
    times = np.asarray(small_numbers(rng, sums.dtype, math.prod(factors)).reshape(factors))
    times = rng.choice((times, np.array(times, order="F"), times.astype(sums.dtype.newbyteorder())))
    wide = sums.widened(grad)
    terms = np.asarray(wide * sums.widened(times), wide.dtype)
    exact = np.asarray(np.add.reduce(terms, axes, keepdims=True, initial=0), terms.dtype)
    result = bcast.unbroadcast(grad, shape, **arguments, times=times)
    assert np.array_equal(result, exact.reshape(shape).astype(sums.wanted))


def hostile_floats(rng, shape):
    """Floats of any bits, whose neighbours may cancel."""
    size = math.prod(shape)
    terms = np.frombuffer(rng.randbytes(8 * size), np.float64).copy()
    terms[~np.isfinite(terms)] = 1
    if rng.random() < 0.5:
        terms = np.ldexp(np.sign(terms), rng.choice((1, 60, 1000)) * np.frexp(terms)[1] // 2000)
    terms[1::2] = rng.choice((terms[1::2], -terms[: size // 2 * 2 : 2]))
    return np.asarray(terms.reshape(shape), order=rng.choice("CF"))


def rounded_once(exact):
    """The float64 nearest to a fraction."""
    try:
        return exact.numerator / exact.denominator
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def is_within_a_unit(value, exact, power):
    """Whether a number is at most one unit in the last place beside a positive fraction, or its root."""
    low, high = math.nextafter(value, 0), math.nextafter(value, math.inf)
    return Fraction(low) ** power <= exact and (math.isinf(high) or exact <= Fraction(high) ** power)


def check_exact(name, rng):
    """Reduce hostile floats exactly, and compare with fractions: sums and means are rounded once."""
    shape = draw_shape(rng, 8)
    if not 0 < math.prod(shape) < 3000:
        return
    data = hostile_floats(rng, shape)
    if name.startswith("nan"):
        data[np.asarray(rng.choices((False, False, True), k=data.size)).reshape(shape)] = np.nan
    axes = tuple(rng.sample(range(len(shape)), rng.randint(0, len(shape))))
    last = np.moveaxis(data, axes, range(len(shape) - len(axes), len(shape)))
    rows = last.reshape(-1, math.prod(shape[axis] for axis in axes)).tolist()
    options = {}
    if name.endswith("sum") and rng.random() < 0.3:
        options["initial"] = float(hostile_floats(rng, (1,))[0])
    with warnings.catch_warnings(action="ignore"):
        found = np.ravel(getattr(bcast, name)(data, axes, exact=True, **options)).tolist()

    for value, row in zip(found, rows, strict=True):
        terms = [Fraction(term) for term in row if term == term]
        total = sum(terms, Fraction(options.get("initial", 0)))
        if name.endswith("sum"):
            assert value == rounded_once(total)
            continue
        if not terms:
            assert math.isnan(value)
            continue
        mean = total / len(terms)
        if name.endswith("mean"):
            assert value == rounded_once(mean)
            continue
        variance = sum((term - mean) ** 2 for term in terms) / len(terms)
        assert is_within_a_unit(value, variance, 2) if name.endswith("std") else value == rounded_once(variance)


def check_exact_products(name, rng):
    """Sum products, or squares, of hostile floats exactly along the last axis, and compare with fractions."""
    shape = rng.randint(1, 20), rng.randint(1, 40)
    x, y = hostile_floats(rng, shape), hostile_floats(rng, shape)
    y = x if name == "norm" else y
    exact = [
        sum(Fraction(a) * Fraction(b) for a, b in zip(*rows, strict=True))
        for rows in zip(x.tolist(), y.tolist(), strict=True)
    ]
    if name == "norm":
        for value, total in zip(bcast.norm(x, exact=True).tolist(), exact, strict=True):
            assert is_within_a_unit(value, total, 2)
        return
    expected = [*map(rounded_once, exact)]
    assert bcast.vecdot(x, y, exact=True).tolist() == expected
    assert bcast.unbroadcast(x, (shape[0], 1), times=y, exact=True)[:, 0].tolist() == expected


def fuzz_reduction(name, rng):
    """Draw a sum or a statistic of numbers so small that NumPy's, in the widest floats, is all but exact."""
    if rng.random() < 0.2:
        check_exact(name, rng)
        return
    kinds = "biufc" if name in ("sum", "mean") else "biuf"
    dtype = rng.choice([dtype for dtype in SUMMED if dtype.kind in kinds])
    shape = draw_shape(rng, dtype.itemsize)
    axis = rng.choice((None, tuple(rng.sample(range(len(shape)), rng.randint(0, len(shape))))))
    options = {"axis": axis, "keepdims": rng.random() < 0.5}
    if name in ("var", "std"):
        options["ddof"] = rng.choice((0, 0, 1, 0.5))
    with warnings.catch_warnings(action="ignore"):
        own = getattr(np, name)(np.zeros(shape, dtype), **options)
        operands = Operands(rng, dtype, shape, own.shape, small_numbers, own.dtype)
        terms = operands.data.astype("G" if dtype.kind == "c" else "g")
        right = np.asarray(getattr(np, name)(terms, **options)).astype(own.dtype)
        if operands.spoilt:
            return
        room = 0 if name == "sum" else 8 * float(np.finfo(own.dtype).eps)
        same = functools.partial(np.allclose, rtol=room, atol=room, equal_nan=True)
        operands.check(lambda out: getattr(bcast, name)(operands.data, **options, out=out), right, same, new=False)
        result = getattr(bcast, name)(operands.data, **options)
        assert type(result) is type(own)
        assert result.dtype == own.dtype


fuzz_sum, fuzz_mean = functools.partial(fuzz_reduction, "sum"), functools.partial(fuzz_reduction, "mean")
fuzz_var, fuzz_std = functools.partial(fuzz_reduction, "var"), functools.partial(fuzz_reduction, "std")


def draw_reduced(rng, kinds):
    """Draw the dtype, of some kinds, and the shape of an array, and axes along which it is reduced."""
    dtype = rng.choice([dtype for dtype in SUMMED if dtype.kind in kinds])
    shape = draw_shape(rng, dtype.itemsize)
    return dtype, shape, rng.choice((None, tuple(rng.sample(range(len(shape)), rng.randint(0, len(shape))))))


def whole_numbers(rng, dtype, shape):
    """An array of numbers from 0 to 8."""
    return np.asarray(rng.choices(range(9), k=math.prod(shape))).reshape(shape).astype(dtype)


def fuzz_joined(name, rng):
    """Draw a reduction whose operation may take a term twice: its values are NumPy's."""
    dtype, shape, axis = draw_reduced(rng, "biuf")
    options = {"axis": axis, "keepdims": rng.random() < 0.5}
    try:
        own = getattr(np, name)(np.zeros(shape, dtype), **options)
    except ValueError:  # of no items
        return
    operands = Operands(rng, dtype, shape, own.shape, small_numbers, own.dtype)
    right = np.asarray(getattr(np, name)(operands.data, **options))
    if operands.spoilt:
        return
    same = functools.partial(np.array_equal, equal_nan=True)
    operands.check(lambda out: getattr(bcast, name)(operands.data, **options, out=out), right, same, new=False)
    assert type(getattr(bcast, name)(operands.data, **options)) is type(own)


fuzz_max, fuzz_min = functools.partial(fuzz_joined, "max"), functools.partial(fuzz_joined, "min")
fuzz_any, fuzz_all = functools.partial(fuzz_joined, "any"), functools.partial(fuzz_joined, "all")


def fuzz_position(name, rng):
    dtype = rng.choice([dtype for dtype in SUMMED if dtype.kind in "biuf"])
    shape = draw_shape(rng, dtype.itemsize)
    axis = rng.choice((None, *range(len(shape))))
    try:
        own = getattr(np, name)(np.zeros(shape, dtype), axis)
    except ValueError:  # of no items
        return
    operands = Operands(rng, dtype, shape, own.shape, small_numbers, own.dtype)
    right = np.asarray(getattr(np, name)(operands.data, axis))
    if operands.spoilt:
        return
    operands.check(lambda out: getattr(bcast, name)(operands.data, axis, out=out), right, np.array_equal, new=False)
    assert type(getattr(bcast, name)(operands.data, axis)) is type(own)


fuzz_argmax, fuzz_argmin = functools.partial(fuzz_position, "argmax"), functools.partial(fuzz_position, "argmin")


def fuzz_minmax(rng):
    dtype, shape, axis = draw_reduced(rng, "biuf")
    if 0 in shape:
        return
    data = whole_numbers(rng, dtype, shape)
    low, high = bcast.minmax(data, axis)
    assert np.array_equal(low, np.min(data, axis))
    assert np.array_equal(high, np.max(data, axis))


def statistics_of(data, axis):
    """Return the sum, mean, variance and deviation of small whole numbers, without NaN.

    Sums are exact: NumPy's variances add rounded squares one by one along an outer axis, in whatever dtype.
    """
    is_number = ~np.isnan(data)
    wide = np.where(is_number, data, 0).astype(np.longdouble)
    count, total = is_number.sum(axis), wide.sum(axis)
    mean = total / count
    variance = (count * np.square(wide).sum(axis) - total * total) / (count * count)
    return {"sum": total, "mean": mean, "var": variance, "std": np.sqrt(variance)}


def fuzz_without_nan(name, rng):
    if name not in ("nanmax", "nanmin") and rng.random() < 0.2:
        check_exact(name, rng)
        return
    dtype, shape, axis = draw_reduced(rng, "f")
    if 0 in shape or not dtype.isnative:
        return
    data = np.asarray(rng.choices((*range(9), np.nan), k=math.prod(shape))).reshape(shape).astype(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        own = np.asarray(getattr(np, name)(data, axis)).dtype
        if name in ("nanmax", "nanmin") or own == np.longdouble:  # NumPy computes these
            right = getattr(np, name)(data, axis)
        else:
            right = np.asarray(statistics_of(data, axis)[name.removeprefix("nan")]).astype(own)
        found = getattr(bcast, name)(data, axis)
    assert found.dtype == own
    eps = 0 if name in ("nanmax", "nanmin") else 4 * np.finfo(own).eps
    np.testing.assert_allclose(found, right, eps)


fuzz_nansum = functools.partial(fuzz_without_nan, "nansum")
fuzz_nanmean = functools.partial(fuzz_without_nan, "nanmean")
fuzz_nanvar = functools.partial(fuzz_without_nan, "nanvar")
fuzz_nanstd = functools.partial(fuzz_without_nan, "nanstd")
fuzz_nanmax = functools.partial(fuzz_without_nan, "nanmax")
fuzz_nanmin = functools.partial(fuzz_without_nan, "nanmin")


def fuzz_mean_std(rng):
    dtype, shape, axis = draw_reduced(rng, "iuf")
    if 0 in shape:
        return
    data = whole_numbers(rng, dtype, shape)
    mean, deviation = bcast.mean_std(data, axis)
    # In long double, the right statistics are rounded as well: to a few units for each result.
    units = 32 if mean.dtype == np.longdouble else 4
    exact, eps = statistics_of(data, axis), units * np.finfo(mean.dtype).eps
    np.testing.assert_allclose(mean, exact["mean"], eps)
    np.testing.assert_allclose(deviation, exact["std"], eps, eps)


def fuzz_prod(rng):
    dtype, shape, axis = draw_reduced(rng, "biu")
    own = np.prod(np.zeros(shape, dtype), axis)
    operands = Operands(rng, dtype, shape, own.shape, small_numbers, own.dtype)
    right = np.asarray(np.prod(operands.data, axis))
    if operands.spoilt:
        return
    operands.check(lambda out: bcast.prod(operands.data, axis, out=out), right, np.array_equal, new=False)


def draw_vectors(rng, count=2):
    """Draw arrays whose vectors of 2 to 5 items, along the last axis, broadcast; and the dtype and length of these."""
    dtype = rng.choice([dtype for dtype in SUMMED if dtype.kind in "biuf"])
    length = rng.choice((2, 3, 3, 3, 4, 5))
    shape = draw_shape(rng, 4 * dtype.itemsize)[:60]
    arrays = []
    for _ in range(count):
        own = tuple(1 if rng.random() < 0.2 else n for n in shape)[rng.choice((0, 0, 0, 1)) :]
        place = draw_place(rng, dtype, (*own, length), repeating=True)
        arrays.append(viewed(draw_room(rng, dtype, place.size, small_numbers), place))
    return arrays, dtype, length


def are_close(found, right):
    """Whether dtypes and shapes are equal, and values as close as sums of few small numbers are."""
    if (type(found), found.dtype, found.shape) != (type(right), right.dtype, right.shape):
        return False
    room = 16 * float(np.finfo(right.dtype).eps) if right.dtype.kind == "f" else 0
    return np.allclose(found, right, rtol=room, atol=100 * room)


def fuzz_vecdot(rng):
    if rng.random() < 0.2:
        check_exact_products("vecdot", rng)
        return
    (a, b), _, _ = draw_vectors(rng)
    right = np.vecdot(a, b)
    assert are_close(bcast.vecdot(a, b), right)
    if right.ndim and rng.random() < 0.5:
        to = draw_place(rng, right.dtype, right.shape)
        room = draw_room(rng, right.dtype, to.size, small_numbers)
        before, kept = room.copy(), np.ones(room.size, bool)
        out = viewed(room, to)
        viewed(kept, to)[...] = False
        assert bcast.vecdot(a, b, out=out) is out
        assert are_close(out, right)
        assert are_same(room[kept], before[kept]), "wrote elsewhere"


def fuzz_matvec(rng):
    (points,), dtype, length = draw_vectors(rng, 1)
    shape = (rng.randint(1, 5), length)
    place = draw_place(rng, dtype, shape if rng.random() < 0.7 else (*points.shape[:-1], *shape))
    matrix = viewed(draw_room(rng, dtype, place.size, small_numbers), place)
    right = np.matmul(matrix, points[..., None])[..., 0]
    assert are_close(np.asarray(bcast.matvec(matrix, points)), right)


def fuzz_cross(rng):
    (a, b), dtype, length = draw_vectors(rng)
    if max(a.ndim, b.ndim) > 32:  # NumPy's `cross` makes an iterator over these
        return
    if length != 3 or dtype.kind == "b" or dtype.char == "g":  # which has bytes that are no part of a number
        return
    assert are_same(bcast.cross(a, b), np.cross(a, b))


def fuzz_norm(rng):
    if rng.random() < 0.2:
        check_exact_products("norm", rng)
        return
    (x,), dtype, _ = draw_vectors(rng, 1)
    axis = rng.randrange(x.ndim)
    wide = x.astype("g")
    right = np.sqrt((wide * wide).sum(axis)).astype(dtype.newbyteorder("=") if dtype.kind == "f" else "f8")
    found = bcast.norm(x, axis)
    assert found.dtype == right.dtype
    assert np.allclose(found, right, rtol=4 * float(np.finfo(right.dtype).eps), atol=0)


def fuzz_stack(rng):
    dtype = rng.choice([dtype for dtype in COPIED if dtype is not PADDED])
    shape = draw_shape(rng, 4 * max(1, dtype.itemsize))[:60]
    arrays = []
    for _ in range(rng.randint(1, 5)):
        place = draw_place(rng, dtype, shape)
        arrays.append(viewed(draw_room(rng, dtype, place.size, any_items), place))
    axis = rng.choice((-1, -1, len(shape), 0))
    assert are_same(bcast.stack(arrays, axis), np.stack(arrays, axis))


def fuzz_unrepeat(rng):
    sums = Sums(rng)
    shape = list(draw_shape(rng, sums.dtype.itemsize)) or [1]
    axis = rng.randrange(len(shape))
    room = rng.choice((100, 5000, 200_000)) // max(1, math.prod(shape[:axis] + shape[axis + 1 :]))
    lengths = [rng.choice((0, 1, 1, 2, 3, 4, 17, 300)) for _ in range(rng.choice((1, 2, 2, 5, 30, 700)))]
    while sum(lengths) > room:
        lengths[rng.randrange(len(lengths))] //= 2
        lengths = lengths[: max(1, len(lengths) - 1)]
    shape[axis] = sum(lengths)
    result_shape = (*shape[:axis], len(lengths), *shape[axis + 1 :])
    operands = Operands(rng, sums.dtype, tuple(shape), result_shape, sums.fill, sums.wanted)
    grad = operands.data
    repeats = np.array(lengths, rng.choice(("i2", "u2", "i4", "i8", "u8", ">i8"))) if rng.random() < 0.7 else lengths
    if sums.exact:
        parts = np.split(sums.widened(grad), np.cumsum(lengths)[:-1], axis)
        exact = [np.add.reduce(part, axis, keepdims=True, initial=0) for part in parts]
        expected = np.concatenate(exact, axis, dtype=parts[0].dtype).astype(sums.wanted)
    else:
        expected = bcast.unrepeat(grad, lengths, axis)  # `out` changes no bit
    if rng.random() < 0.03:
        repeats, expected = [*lengths, 1], None
    operands.check(lambda out: bcast.unrepeat(grad, repeats, axis, **sums.options, out=out), expected, sums.are_same)


def cut(rng, data):
    """Make chains that reduce use blocks of a size."""
    return blocks_of(rng.choice((1, 100, 5000, 1 << 20)) if data.size < 500 else 1 << 20)


def fuzz_chain_memory(rng):
    """Draw a chain with a reduction, of numbers so small that NumPy's results are exact, and blocks of any size."""
    dtype, shape, axis = draw_reduced(rng, "biuf")
    other = tuple(rng.choice((1, length)) for length in shape)
    data, operand = (whole_numbers(rng, dtype, each) for each in (shape, other))
    name = rng.choice(("sum", "max", "min", "any", "all", "argmax", "argmin"))
    if name.startswith("arg"):
        axis = rng.choice((None, *range(len(shape))))
    is_bool = dtype == np.bool  # bools have no differences
    ufunc = rng.choice((np.maximum, np.less, np.equal, np.multiply if is_bool else np.subtract))
    steps = (ufunc, operand), (getattr(np, name), axis)
    is_empty = name not in ("sum", "any", "all") and 0 in shape
    if is_empty and (axis is None or any(shape[at] == 0 for at in (axis if isinstance(axis, tuple) else (axis,)))):
        return
    with warnings.catch_warnings(action="ignore"):
        whole = ufunc(data, operand)
        expected = np.asarray(getattr(np, name)(whole, axis=axis))
        if name == "sum" and whole.dtype.kind == "f":  # NumPy's sums of many in float16 are not exact
            expected = np.sum(whole, axis, np.float64, keepdims=True).astype(whole.dtype).reshape(expected.shape)
    with cut(rng, data):
        result = np.asarray(bcast.chain(data, *steps))
        memory = bcast.chain_memory(data, *steps)
    assert memory.result == expected.nbytes
    assert result.dtype == expected.dtype
    assert np.array_equal(result, expected)


def fuzz_chain_vjp(rng):
    """Draw sums of squared differences, of numbers so small that these and their gradients are exact in NumPy."""
    dtype, shape, axis = draw_reduced(rng, "f")
    other = tuple(rng.choice((1, length)) for length in shape)
    data, operand = (whole_numbers(rng, dtype, each) for each in (shape, other))
    with cut(rng, data):
        value, vjp = bcast.chain_vjp(data, (np.subtract, operand), np.square, (np.sum, axis))
        found = vjp(np.ones_like(value))
    differences = data.astype("g") - operand.astype("g")
    over = tuple(at for at, length in enumerate(other) if length == 1)
    sums = np.sum(differences, over, keepdims=True).reshape(other)
    with np.errstate(over="ignore"):  # into float16
        expected = np.square(differences).sum(axis), 2 * differences, -2 * sums
        for result, right in zip((np.asarray(value), *found), expected, strict=True):
            assert result.shape == right.shape
            assert np.array_equal(result, right.astype(dtype))
    assert all(each.dtype == dtype for each in found)


def fuzz_set_idle_limit(rng):
    """The idle memory of the process, which another thread may change."""
    limit = rng.choice((0, 1 << 20, 64 << 20, 1 << 30))
    bcast.set_idle_limit(limit)
    assert bcast.set_idle_limit(limit) == limit
    assert 0 <= bcast.memory_info().lent <= bcast.memory_info().idle
    bcast.release_memory()
    assert bcast.memory_info().idle == 0


def fuzz_set_num_threads(rng):
    before = bcast.get_num_threads()
    assert before >= 1
    bcast.set_num_threads(rng.randint(1, 5))
    bcast.set_num_threads(before)


fuzz_memory_info = fuzz_release_memory = fuzz_set_idle_limit
fuzz_get_num_threads = fuzz_set_num_threads


# Patches are of the whole process. Whatever other threads patch, NumPy's results are the same.


def fuzz_patched_numpy(rng):
    names = rng.sample(("tile", "repeat", "meshgrid", "broadcast_arrays"), rng.randint(0, 4))
    data = np.arange(rng.randint(0, 9)).reshape(rng.choice(((-1,), (1, -1), (-1, 1)))).astype(rng.choice("bdFO"))
    count, counts = rng.randint(0, 3), [rng.randint(0, 3) for _ in range(data.size)]
    expected = NUMPYS["tile"](data, count), NUMPYS["repeat"](data, counts), NUMPYS["meshgrid"](data, data)[0]
    with bcast.patched_numpy(names):
        assert all(map(bcast.is_patched, names))
        found = np.tile(data, count), np.repeat(data, counts), np.meshgrid(data, data)[0]
    assert all(min(info) >= 0 for info in bcast.patch_info().values())
    for array, right in zip(found, expected, strict=True):
        assert (array.dtype, array.shape) == (right.dtype, right.shape)
        assert array.tolist() == right.tolist()


def fuzz_patch_numpy(rng):
    bcast.patch_numpy(rng.choice(("tile", "repeat", "meshgrid", "broadcast_arrays")))
    fuzz_patched_numpy(rng)
    bcast.unpatch_numpy()


fuzz_unpatch_numpy = fuzz_is_patched = fuzz_patch_info = fuzz_patch_numpy


NUMPYS = {name: getattr(np, name) for name in ("tile", "repeat", "meshgrid")}

DRAWN = {"elementwise": draw_elementwise, "chain": draw_chain, "where": draw_where}
DRAWN |= {name: functools.partial(draw_named, name=name) for name in NAMED}
FUNCTIONS = {name: lambda rng, draw=draw: draw(rng).check() for name, draw in DRAWN.items()}
FUNCTIONS = {name: FUNCTIONS.get(name) or globals()[f"fuzz_{name}"] for name in sorted(bcast.__all__)}
FEW = ("set", "get", "infer", "broadcast_s", "memory", "release", "is_", "patch", "unpatch")
WEIGHTS = [0.3 if name in NAMED else 1 if name.startswith(FEW) else 6 for name in FUNCTIONS]
OF_THE_PROCESS = {"memory_info", "release_memory", "set_idle_limit"}


# The cases.


def run_case(seed, number, functions=FUNCTIONS):
    """Run one case; return the names of the functions that it called."""
    rng = random.Random(f"{seed} {number}")
    names = rng.choices(list(functions), [WEIGHTS[list(FUNCTIONS).index(name)] for name in functions])
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        stack.enter_context(written(*rng.choice(WAYS)))
        stack.enter_context(summed(*rng.choice(SUMS)))
        stack.enter_context(computed(*rng.choice(COMPUTED)))
        if rng.random() < 0.1:
            stack.enter_context(in_order(rng.randint(0, 9), rng.randint(1, 64)))
        if rng.random() < 0.05:  # several threads, which may use helpers
            names = rng.choices([name for name in functions if name not in OF_THE_PROCESS] or names, k=3)
            seeds = [rng.getrandbits(64) for _ in names]
            with ThreadPoolExecutor(3) as pool:
                # All begin, also where one fails at once: `map` would cancel those that wait.
                calls = [
                    pool.submit(run_in_thread, functions[name], seed) for name, seed in zip(names, seeds, strict=True)
                ]
            for call in calls:
                call.result()
        else:
            with np.errstate(all="ignore"):
                functions[names[0]](rng)
    return names


def run_in_thread(function, seed):
    rng = random.Random(seed)
    bcast.set_num_threads(rng.randint(1, 3))
    with np.errstate(all="ignore"):
        function(rng)


def run_cases(seed, first, seconds, functions=FUNCTIONS, count=math.inf):
    """Run cases until the time is over or `count` have run; print the number of each case first."""
    end = time.monotonic() + seconds
    called = Counter()
    number = first
    while number == first or (time.monotonic() < end and number - first < count):
        print(number, flush=True)
        faulthandler.dump_traceback_later(LONGEST, exit=True)
        called.update(run_case(seed, number, functions))
        number += 1
    faulthandler.cancel_dump_traceback_later()
    print(number - first, "cases:", *[f"{name} {count}" for name, count in sorted(called.items())], file=sys.stderr)


def watch(seed, seconds, only=(), most=()):
    """Run cases in a child process; print how to repeat the case that ends it."""
    print(f"fuzzing {bcast.__file__} for {seconds:g} s with seed {seed}", flush=True)
    command = [sys.executable, __file__, "--seed", str(seed), "--case", "0", "--seconds", str(seconds), *only, *most]
    number = "none"
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        for line in child.stdout:
            number = line.strip()
    if child.returncode:
        again = " ".join(map(str, ("--seed", seed, "--case", number, *only)))
        print(f"case {number} failed; again: python tests/fuzz.py {again}", flush=True)
    return child.returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, help="for how long; default: 60, of a case given 0: that one alone")
    parser.add_argument("--seed", type=int, help="default: a random one")
    parser.add_argument("--case", type=int, help="the first case, run in this process")
    parser.add_argument("--only", choices=FUNCTIONS, help="the function that all cases call")
    parser.add_argument("--count", type=int, help="how many cases at most, however long they take")
    options = parser.parse_args()
    seed = random.SystemRandom().getrandbits(32) if options.seed is None else options.seed
    seconds = options.seconds if options.count is None else math.inf
    only = ["--only", options.only] if options.only else []
    if options.case is None:
        most = ["--count", str(options.count)] if options.count else []
        return watch(seed, 60 if seconds is None else seconds, only, most)
    functions = {name: FUNCTIONS[name] for name in only[1:] or FUNCTIONS}
    return run_cases(seed, options.case, seconds or 0, functions, options.count or math.inf)


if __name__ == "__main__":
    sys.exit(main())
