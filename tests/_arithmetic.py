"""Random calls of `elementwise`, `chain` and `where`, compared with NumPy's: bits, dtypes, strides and warnings."""

import ctypes
import functools
import math
import random
import threading
import warnings
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import bcast

REALS = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "g", ">f4", ">i2"]
with suppress(ImportError):
    import ml_dtypes

    REALS.append(np.dtype(ml_dtypes.bfloat16).name)

NAMES = """
    add subtract multiply divide maximum minimum fmax fmin equal not_equal less less_equal greater greater_equal
    logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor left_shift right_shift floor_divide remainder
    fmod hypot arctan2 copysign nextafter logaddexp logaddexp2 heaviside power float_power gcd lcm ldexp
"""
KINDS = "? i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 c8 c16 g l q L Q >f4 >f8 >i4 >c8 >f2"
UFUNCS = [getattr(np, name) for name in NAMES.split()]
UNARY = """
    negative absolute sqrt square exp log tanh floor rint sign reciprocal invert logical_not isnan conjugate spacing
"""
ENDS = REALS + REALS + KINDS.split()
STEPS = 3 * UFUNCS[:14] + UFUNCS[14:] + 2 * [getattr(np, name) for name in UNARY.split()] + 4 * [np.clip, np.round]
DTYPES = KINDS.split()
CHOSEN = [*DTYPES, "S5", "U3", "V3", "V16", "M8[s]", "m8[D]", ">M8[s]", "O", "i4,f8"]
SCALARS = (True, 3, -2, 2, 300, 0, 2**70, 2.0, 0.5, 1e30, 1e300, math.nan, 1j)
ANY_BYTES = True  # bools are drawn that have others than 0 and 1
LENGTHS = (1, 1, 1, 2, 3, 4, 5, 7, 8, 16, 31, 64, 130, 520, 1000, 5000)
MODES = ("numpy", "numpy", "numpy", "none", "unidirectional", "pdpd")
ODD = [0.0, -0.0, 1, -1, 2, 0.5, math.inf, -math.inf, math.nan, 1e4, 6e4, 3e38, 1e-5, 6e-8, 1e300, 1e-310, 2.0**-24]


def draw_shape(rng, most):
    shape, size = [], 1
    for _ in range(rng.choice((0, 1, 1, 2, 2, 2, 3, 3, 4, 5))):
        length = rng.choice(LENGTHS)
        if size * length > most:
            length = rng.choice((1, 2, 3))
        size *= length
        shape.append(length)
    rng.shuffle(shape)
    return tuple(shape)


def draw_items(rng, dtype, size):
    """Items of a dtype: small ones, any ones, or odd ones; no NaN signals. Bools may have any bytes."""
    generator = np.random.default_rng(rng.randint(0, 2**32))
    kind = rng.random()
    if dtype.kind == "O":
        return generator.integers(0, 9, size).astype(dtype)
    if dtype.kind in "SUVmM" and dtype.name != "bfloat16":  # any bytes that are characters
        return np.frombuffer(bytearray(generator.integers(0, 9, size * dtype.itemsize, "u1")), dtype)
    if dtype.kind == "b":
        items = generator.integers(0, 2, size, "u1")
        if kind < 0.5 and ANY_BYTES:  # a bool is True for any byte except 0
            return (items * generator.integers(1, 256, size, "u1")).view(dtype)
    elif dtype.kind in "iu":
        items = generator.integers(0 if dtype.kind == "u" else -8, 9, size)
        if kind < 0.5:
            items = np.frombuffer(generator.bytes(size * dtype.itemsize), dtype.newbyteorder("="))
    else:
        if kind < 0.3:
            items = generator.integers(-4, 5, size).astype(float)
        elif kind < 0.7:
            items = generator.standard_normal(size) * 10.0 ** generator.integers(-3, 4)
        else:
            items = generator.choice(np.array(ODD), size)
        if dtype.kind == "c":
            items = items + 0j
            items.imag = generator.permutation(items.real)
    with np.errstate(all="ignore"):
        return np.asarray(items).astype(dtype)


def draw_small(rng, dtype, size):
    """Items that every dtype of numbers holds, but for their fractions."""
    return (np.random.default_rng(rng.randint(0, 2**32)).integers(0, 500, size) / 4).astype(dtype)


def draw_array(rng, dtype, shape, draw_items=draw_items):
    """An array: as in C, or of axes in any order, with gaps, backwards, unaligned, or repeated by strides."""
    dtype = np.dtype(dtype)
    kind = rng.random()
    if kind < 0.4:
        return draw_items(rng, dtype, math.prod(shape)).reshape(shape)
    order = list(range(len(shape)))
    if rng.random() < 0.6:
        rng.shuffle(order)
    gaps = [rng.choice((1, 1, 1, 2, 3)) if kind > 0.7 else 1 for _ in shape]
    lengths = [shape[axis] * gaps[axis] for axis in order]
    array = draw_items(rng, dtype, math.prod(lengths)).reshape(lengths)
    array = array.transpose([order.index(axis) for axis in range(len(shape))])
    array = array[(*[slice(None, None, gap if rng.random() < 0.8 else -gap) for gap in gaps], ...)]
    if rng.random() < 0.1 and not dtype.hasobject:
        apart = np.empty(array.nbytes + 1, "u1")[1:].view(dtype).reshape(shape)
        apart[...] = array
        array = apart
    if rng.random() < 0.1 and shape:
        axis = rng.randint(0, len(shape) - 1)
        array = np.broadcast_to(array[(slice(None),) * axis + (slice(0, 1),)], shape)
    return array


def with_plain_bools(operand):
    """The operand, or a copy of the same strides whose bools are 0 or 1: NumPy compares bytes where one is repeated."""
    if not isinstance(operand, np.ndarray) or operand.dtype != bool:
        return operand
    steps = [(n - 1) * step if n else 0 for n, step in zip(operand.shape, operand.strides, strict=True)]
    room = np.zeros(1 + sum(map(abs, steps)), bool)
    copy = np.lib.stride_tricks.as_strided(room[-sum(min(step, 0) for step in steps) :], operand.shape, operand.strides)
    copy.view("u1")[...] = operand.view("u1") != 0
    return copy


def draw_broadcast(rng, shape):
    return tuple(1 if rng.random() < 0.25 else length for length in shape)


class CallInfo(ctypes.Structure):
    """NumPy's PyUFunc_LoopInfo."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("loop", "context", "auxdata")),
        *((name, ctypes.c_ubyte) for name in ("needs_gil", "no_errors")),
    )


def tells_no_errors(ufunc, dtype):
    """Whether NumPy says of the loop for operands of a dtype that it gives rise to no floating-point errors."""
    pointer_in = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_in.restype, pointer_in.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    _, capsule = ufunc._resolve_dtypes_and_context((np.dtype(dtype),) * ufunc.nin + (None,))
    ufunc._get_strided_loop(capsule)
    return CallInfo.from_address(pointer_in(capsule, b"numpy_1.24_ufunc_call_info")).no_errors != 0


@functools.cache
def untold():
    """Return the warnings of loops that are said to have none.

    NumPy 2.5 says so of comparisons and extremes of bfloat16. Which of its calls warn even so follows from how it
    iterates; ours never do.
    """
    if "bfloat16" not in REALS:
        return frozenset()
    comparing = {*UFUNCS[4:14]}
    silent = [each.__name__ for each in comparing if tells_no_errors(each, "bfloat16")]
    return frozenset(("RuntimeWarning", f"invalid value encountered in {name}") for name in silent)


def told(call):
    """The result or the exception of a call, and the kinds of its warnings, which only the main thread can catch."""
    with ExitStack() as stack:
        caught = []
        if threading.current_thread() is threading.main_thread():
            caught = stack.enter_context(warnings.catch_warnings(record=True))
            warnings.simplefilter("always")
        try:
            result = call()
        except Exception as error:
            result = type(error), str(error)
    told_ones = {(each.category.__name__, str(each.message)) for each in caught}
    return result, sorted({kind for kind, _ in told_ones - untold()})


def bits(array):
    """The bytes of the items, in C order, with one NaN for all, and one True."""
    array = np.array(array, order="C")
    if array.dtype == bool:
        return (array.view("u1") != 0).tobytes()
    if array.dtype.kind in "fc":
        parts = np.atleast_1d(array).view(array.real.dtype)
        parts[np.isnan(parts)] = 12345
        if array.dtype.char in "gG":  # whose padding may be anything
            return parts.tolist(), np.signbit(parts).tolist()
    if array.dtype.name == "bfloat16":
        array[np.isnan(array)] = 12345
    return array.tolist() if array.dtype.hasobject else array.tobytes()


def difference(mine, numpys, new):
    """In what two results differ; None if they do not. The strides of axes of length 1 say nothing."""
    if type(mine) is not type(numpys):
        return f"type {type(mine)}, not {type(numpys)}"
    if isinstance(mine, tuple):
        return None if mine == numpys else f"raised {mine}, not {numpys}"
    if mine.dtype != numpys.dtype or mine.dtype.byteorder != numpys.dtype.byteorder:
        return f"dtype {mine.dtype}, not {numpys.dtype}"
    if mine.shape != numpys.shape:
        return f"shape {mine.shape}, not {numpys.shape}"
    if new and isinstance(mine, np.ndarray):
        steps = [[step for step, n in zip(x.strides, x.shape, strict=True) if n > 1] for x in (mine, numpys)]
        if steps[0] != steps[1] or not mine.flags.owndata:
            return f"strides {mine.strides}, not {numpys.strides}"
    return None if bits(mine) == bits(numpys) else "other bits"


def warn_of(error, flags):
    """A handler for `numpy.errstate`, which records calls in order, like warnings."""
    warnings.warn(f"{error} of {flags}", stacklevel=2)


@dataclass
class Twin:
    """A call, and the same of NumPy, which writes to an array of its own."""

    mine: Any
    numpys: Any
    out: Any = None
    numpys_out: Any = None
    errstate: dict[str, str] = field(default_factory=dict)
    what: str = ""
    of_chain: bool = False

    def check(self):
        """Make both calls and compare; return whether it was one that NumPy accepts."""
        if "bfloat16" in self.what and untold():  # what NumPy says of it follows from how it iterates
            self.errstate = self.errstate | {"invalid": "ignore"}
        with np.errstate(**self.errstate):
            expected, warned = told(self.numpys)
            result, my_warnings = told(self.mine)
        stopped = isinstance(result, tuple) and "power" in self.what  # of integers, which stop anywhere
        if self.of_chain and isinstance(result, tuple) and isinstance(expected, tuple):
            if "all" in self.errstate and issubclass(result[0], TypeError):  # refused before any step
                result, warned = expected, []
            elif result[0] is not FloatingPointError:  # in other words
                result, warned = (result[0], expected[1]), warned[: len(my_warnings)]
            stopped = stopped or result[0] is FloatingPointError
        found = difference(result, expected, self.out is None)
        if found is None and self.numpys_out is not None and not stopped:
            found = difference(self.out, self.numpys_out, False)
        if found is None and self.out is not None and result is not self.out and not isinstance(result, tuple):
            found = "another array than `out`"
        if found is None and my_warnings != warned:
            found = f"warnings {my_warnings}, not {warned}"
        assert found is None, f"{self.what}: {found}"
        return not isinstance(expected, tuple)


def draw_out(rng, dtype, shape):
    """Two equal arrays of equal strides to write to."""
    seed = rng.randint(0, 2**32)
    outs = [draw_array(random.Random(seed), dtype, shape) for _ in range(2)]
    return [with_plain_bools(out if out.flags.writeable else out.copy()) for out in outs]


def draw_scalar(rng, operand):
    """The operand, or seldom a Python scalar."""
    return rng.choice(SCALARS) if rng.random() < 0.1 else operand


def draw_elementwise(rng, most=None, ufuncs=UFUNCS, function=None, modes=MODES):
    """A call of `elementwise`; or of the function that has the ufunc's name."""
    function = function or bcast.elementwise
    ufunc, mode = rng.choice(ufuncs), rng.choice(modes)
    a_dtype = rng.choice(DTYPES)
    b_dtype = a_dtype if rng.random() < 0.7 else rng.choice(DTYPES)
    shape = draw_shape(rng, most or rng.choice((50, 50, 5000, 50_000)))
    a_shape, b_shape, options = shape, draw_broadcast(rng, shape), {"mode": mode}
    if mode == "numpy":
        a_shape = draw_broadcast(rng, shape)
        if rng.random() < 0.3:
            a_shape = a_shape[rng.randint(0, len(shape)) :]
        elif rng.random() < 0.4:
            b_shape = b_shape[rng.randint(0, len(shape)) :]
        shape = np.broadcast_shapes(a_shape, b_shape)
    elif mode == "none":
        b_shape = shape
    elif mode == "unidirectional":
        b_shape = b_shape[rng.randint(0, len(shape)) :]
    else:
        axis = options["axis"] = rng.randint(0, len(shape))
        b_shape = b_shape[axis : rng.randint(axis, len(shape))]
    a, b = draw_array(rng, a_dtype, a_shape), draw_array(rng, b_dtype, b_shape)
    if mode == "numpy":
        a, b = draw_scalar(rng, a), draw_scalar(rng, b)
        shape = np.broadcast_shapes(np.shape(a), np.shape(b))
    if rng.random() < 0.1:
        options["dtype"] = rng.choice(("f4", "f8", "i8", "f2", "?", "c8", ">f8"))
    if rng.random() < 0.1:
        options["casting"] = rng.choice(("no", "equiv", "safe", "same_kind", "unsafe"))
    outs = None, None
    if rng.random() < 0.4:
        if rng.random() < 0.2 and isinstance(a, np.ndarray) and a.shape == shape:
            outs = draw_out(rng, a_dtype, shape)
        else:
            with np.errstate(all="ignore"):
                dtype = "f8" if rng.random() < 0.2 else kind_of(ufunc, a_dtype, b_dtype)
            outs = draw_out(rng, rng.choice(DTYPES) if rng.random() < 0.2 else dtype, shape)
        if rng.random() < 0.2:  # it is an operand, or overlaps one
            a = outs[0][::-1] if rng.random() < 0.3 and shape else outs[0]
    if rng.random() < 0.1 and isinstance(a, np.ndarray) and isinstance(b, np.ndarray):  # NumPy 2.4 crashes on some ints
        options["where"] = draw_array(rng, "?", draw_broadcast(rng, shape)[rng.randint(0, len(shape)) :])
        outs = outs if outs[0] is not None else draw_out(rng, kind_of(ufunc, a_dtype, b_dtype), shape)
    numpys = {name: value for name, value in options.items() if name not in ("mode", "axis")}
    first = with_plain_bools(a)
    if outs[0] is not None:
        options["out"], numpys["out"] = outs[0], outs[1]
        if isinstance(a, np.ndarray) and np.shares_memory(a, outs[0]):
            first = outs[1][::-1] if a is not outs[0] else outs[1]
    second = b.reshape(b_shape + (1,) * (len(shape) - axis - len(b_shape))) if mode == "pdpd" and b_shape else b
    second = with_plain_bools(second)
    ways = ("ignore", "warn", "warn", "raise")
    return Twin(
        lambda: function(ufunc, a, b, **options),
        lambda: ufunc(first, second, **numpys),
        *outs,
        {name: rng.choice(ways) for name in ("over", "under", "divide", "invalid")},
        f"{ufunc.__name__} of {described(a)} and {described(b)}, {options if outs[0] is None else numpys}",
    )


def miswrites(ufunc):
    """Whether results go to wrong places of a strided `out`, as those of NumPy 2.4 do with AVX2."""
    items, out = np.tile([np.nan, 1, -1, np.inf], 8), np.zeros(64, bool)[::2]
    return not np.array_equal(ufunc(items, out=out), ufunc(items))


MISWRITTEN = [name for name in ("isfinite", "isinf", "isnan", "signbit") if miswrites(getattr(np, name))]


def draw_named(rng, name, most=None, numpys_place=None):
    """A call of the function that has a ufunc's name, or of one that has NumPy's place and knows no modes."""
    ufunc = getattr(np, name)

    def function(_, *operands, mode=None, **options):
        if numpys_place is not None:
            return numpys_place(*operands, **options)
        return getattr(bcast, name)(*operands, **options if mode is None else options | {"mode": mode})

    if ufunc.nin == 2:
        return draw_elementwise(rng, most, [ufunc], function, MODES if numpys_place is None else MODES[:1])
    shape = draw_shape(rng, most or rng.choice((50, 50, 5000, 200_000)))
    dtype = rng.choice(DTYPES)
    x = draw_array(rng, dtype, shape)
    options = {} if rng.random() < 0.8 else {"dtype": rng.choice(("f4", "f8", "i8", "f2", "?", "c8", ">f8"))}
    if rng.random() < 0.1:
        options["casting"] = rng.choice(("no", "equiv", "safe", "same_kind", "unsafe"))
    outs = None, None
    if rng.random() < 0.4:
        outs = draw_out(rng, dtype if rng.random() < 0.5 else rng.choice(DTYPES), shape)
        if name in MISWRITTEN:
            outs = outs[0].copy(), outs[1].copy()
        if rng.random() < 0.2:  # it is the operand, or overlaps it
            x = outs[0][::-1] if rng.random() < 0.3 and shape else outs[0]
    if rng.random() < 0.1:
        options["where"] = draw_array(rng, "?", draw_broadcast(rng, shape)[rng.randint(0, len(shape)) :])
        outs = outs if outs[0] is not None else draw_out(rng, dtype, shape)
    numpys, given = dict(options), with_plain_bools(x)
    if outs[0] is not None:
        options["out"], numpys["out"] = outs
        if np.shares_memory(x, outs[0]):
            given = outs[1][::-1] if x is not outs[0] else outs[1]
    ways = ("ignore", "warn", "warn", "raise")
    return Twin(
        lambda: function(ufunc, x, **options),
        lambda: ufunc(given, **numpys),
        *outs,
        {kind: rng.choice(ways) for kind in ("over", "under", "divide", "invalid")},
        f"{name} of {described(x)}, {numpys}",
    )


def chained(data, *steps, dtype=None, casting="same_kind", out=None):
    """NumPy's result of a chain: a conversion, one ufunc after the other, and a copy."""
    result = data if dtype is None else data.astype(dtype, casting=casting)
    for step in steps:
        result = step[0](result, *step[1:]) if isinstance(step, tuple) else step(result)
    if out is None:
        return np.array(result, order="C")
    np.copyto(out, result, casting=casting)
    return out


def draw_step(rng, ufuncs, dtype, shape, may_be_scalar):
    """Draw a step, mostly one that takes a dtype; return it, the dtype that it gives, and whether it is refused."""
    while True:
        step, one = [rng.choice(ufuncs)], [np.ones((), dtype)]
        if step[0] is np.round:
            step += rng.choice(((), (0,), (1,), (2,), (-1,), (7,), (25,)))
            one += step[1:]
        for _ in range(2 if step[0] is np.clip else 0 if step[0] is np.round else step[0].nin - 1):
            if may_be_scalar and rng.random() < (0.6 if step[0] is np.clip else 0.15):
                step.append(rng.choice((*SCALARS, None) if step[0] is np.clip else SCALARS))
            else:
                step.append(draw_array(rng, dtype if rng.random() < 0.6 else rng.choice(ENDS), shape))
            one.append(np.ones((), step[-1].dtype) if isinstance(step[-1], np.ndarray) else step[-1])
        try:
            with np.errstate(all="ignore"):
                return step, np.asarray(step[0](*one)).dtype, False
        except (TypeError, ValueError, OverflowError):
            if rng.random() < 0.03:
                return step, dtype, True


def inside(out, array, backwards):
    """A part of `out` of an array's shape, if there is one, and the array is of its dtype; else None."""
    if not isinstance(array, np.ndarray) or array.dtype != out.dtype or array.ndim > out.ndim or not out.size:
        return None
    parts = [slice(None, None, -1 if backwards else 1) if n > 1 else slice(0, 1) for n in array.shape]
    part = out[(0,) * (out.ndim - array.ndim) + (*parts, ...)]
    return part if part.shape == array.shape else None


def draw_chain(rng, most=None, choices=STEPS):
    shape, mode = draw_shape(rng, most or rng.choice((50, 50, 5000, 100_000))), rng.choice(MODES)
    if shape and rng.random() < 0.05:
        shape = (*shape[:-1], 0)
    first = rng.randint(0, len(shape)) if mode == "pdpd" or rng.random() < 0.3 else 0
    data_dtype, casting, options = np.dtype(rng.choice(ENDS)), "same_kind", {"mode": mode}
    dtype = np.dtype(rng.choice(ENDS)) if rng.random() < 0.6 else data_dtype
    is_cut = dtype.kind in "iu" and data_dtype.kind not in "iub"  # integers beyond the range may be any
    data = draw_array(rng, data_dtype, shape, draw_small if is_cut else draw_items)
    if mode == "numpy" and rng.random() < 0.3 and data.size:
        data = data[(0,) * first + tuple(slice(rng.choice((1, None))) for _ in shape[first:]) + (...,)]
    elif mode == "pdpd":
        options["axis"] = first
    inputs, ufuncs, last, whole, is_refused = [data], [], dtype, data.shape, False
    for _ in range(rng.randint(0, 5)):
        given = shape if mode == "none" else draw_broadcast(rng, shape)[first if rng.random() < 0.7 else 0 :]
        if mode == "pdpd":
            given = draw_broadcast(rng, shape)[first : rng.randint(first, len(shape))]
        step, last, fails = draw_step(rng, choices, last, given, mode != "none")
        whole = np.broadcast_shapes(whole, *map(np.shape, step[1:])) if mode == "numpy" else whole
        is_refused = is_refused or fails
        inputs += step[1:]
        ufuncs.append((step[0], len(step) - 1))
    outs, places = (None, None), []
    if rng.random() < 0.5:
        to = np.dtype(last if rng.random() < 0.6 else rng.choice(ENDS))
        if to.kind in "iu" and last.kind not in "iub":
            ufuncs += [(np.fmin, 1), (np.fmax, 1)]
            inputs += [np.full(whole if mode == "none" else (), most, last) for most in (100, 0)]
        outs = draw_out(rng, to, whole)
        casting = "unsafe" if not np.can_cast(last, to, casting) and rng.random() < 0.9 else casting
        backwards = rng.random() < 0.3
        places = [i for i, each in enumerate(inputs) if inside(outs[0], each, backwards) is not None and i >= is_cut]
        places = places if rng.random() < 0.5 else []
        is_refused = is_refused or not np.can_cast(last, to, casting)
    if dtype is not data_dtype or rng.random() < 0.1:
        options["dtype"] = dtype
        casting = "unsafe" if not np.can_cast(data_dtype, dtype, casting) and rng.random() < 0.9 else casting
    is_refused = is_refused or not np.can_cast(data_dtype, dtype, casting)
    calls = []
    for out in outs:
        given = [inside(out, each, backwards) if i in places else each for i, each in enumerate(inputs)]
        if calls and mode == "pdpd":  # NumPy's
            given = [x[(..., *[None] * (len(shape) - first - np.ndim(x)))] if np.ndim(x) else x for x in given]
        if calls:
            given = [x if i in places else with_plain_bools(x) for i, x in enumerate(given)]
        rest = iter(given[1:])
        steps = [(ufunc, *[next(rest) for _ in range(count)]) if count else ufunc for ufunc, count in ufuncs]
        calls.append((given[0], steps, out))
    ways = ("ignore", "warn", "warn", "raise", "call")
    errstate = {name: rng.choice(ways) for name in ("over", "under", "divide", "invalid")}
    (data, steps, out), (numpys_data, numpys_steps, numpys_out) = calls
    options["casting"] = casting
    return Twin(
        lambda: bcast.chain(data, *steps, out=out, **options),
        lambda: chained(numpys_data, *numpys_steps, dtype=options.get("dtype"), casting=casting, out=numpys_out),
        *outs,
        {"all": "warn"} if is_refused else errstate | {"call": warn_of},
        f"chain of {described(data)}, {options}, {[each.__name__ for each, _ in ufuncs]}, "
        f"{list(map(described, inputs[1:]))}, out {described(out)} over inputs {places}",
        of_chain=True,
    )


def kind_of(ufunc, a_dtype, b_dtype):
    """The dtype of a ufunc's result, or another one if it has no such loop."""
    try:
        with np.errstate(all="ignore"):
            return np.asarray(ufunc(np.ones((), a_dtype), np.ones((), b_dtype))).dtype
    except TypeError:
        return np.dtype("f8")


def described(operand):
    if isinstance(operand, np.ndarray):
        return f"{operand.dtype} {operand.shape} {operand.strides}"
    return repr(operand)


def draw_where(rng, most=None):
    shape = draw_shape(rng, most or rng.choice((50, 50, 5000, 50_000)))
    x_dtype = rng.choice(CHOSEN)
    y_dtype = x_dtype if rng.random() < 0.7 or x_dtype not in DTYPES else rng.choice(DTYPES)
    shapes = [draw_broadcast(rng, shape)[rng.choice((0, 0, rng.randint(0, len(shape)))) :] for _ in range(3)]
    condition = draw_array(rng, "?" if rng.random() < 0.7 else rng.choice(DTYPES), shapes[0])
    x, y = draw_array(rng, x_dtype, shapes[1]), draw_array(rng, y_dtype, shapes[2])
    if x_dtype in DTYPES:
        x, y = draw_scalar(rng, x), draw_scalar(rng, y)
    shape = np.broadcast_shapes(condition.shape, np.shape(x), np.shape(y))
    options = {}
    try:
        with np.errstate(all="ignore"):
            dtype = np.where(condition, x, y).dtype
    except (TypeError, ValueError, OverflowError):
        dtype = None
    if dtype is not None and rng.random() < 0.3:
        options["out"] = draw_out(rng, dtype, shape)[0]
        if rng.random() < 0.2 and dtype == x_dtype:
            x = options["out"]
    kept = x.copy() if x is options.get("out") and x is not None else x
    return Twin(
        lambda: bcast.where(condition, x, y, **options),
        lambda: np.where(with_plain_bools(condition), with_plain_bools(kept), with_plain_bools(y)),
        options.get("out"),
        what=f"where of {described(condition)}, {described(x)} and {described(y)}, {options.keys()}",
        errstate={"all": "warn"},
    )
