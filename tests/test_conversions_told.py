"""Errors of conversions: NumPy tells those of operands that it converts as a whole "in cast", others "in" the function.

Signalling NaNs of float32 and complex64 are the numbers whose conversion to a wider dtype is in error.
"""

import itertools
import warnings

import numpy as np
import pytest
from _ways import COMPUTED, computed

import bcast

SIGNALLING = {"f4": 0x7FA00000, "f8": 0x7FF4000000000000}
SIZES = (1, 5, 4000, 8192, 8193)


def told(call):
    """Return what a call gives, but for the bits of NaN, and what it warns of, in that order."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = np.array(call())
    if result.dtype.kind in "fc":
        parts = result.reshape(-1).view(result.real.dtype)
        parts[np.isnan(parts)] = 7
    return str(result.dtype), result.shape, result.tolist(), [str(each.message) for each in caught]


def signalling(dtype, size, at=0):
    """Ones of a dtype of floats or complex numbers, of which one is a signalling NaN, or part of one."""
    items = np.ones(size, np.dtype(dtype).newbyteorder("="))
    parts = items.view(f"f{items.itemsize // (2 if items.dtype.kind == 'c' else 1)}")
    bits = SIGNALLING["f4" if parts.itemsize == 4 else "f8"]
    parts.view(f"u{parts.itemsize}")[at * (parts.size // size)] = bits
    return items if np.dtype(dtype).isnative else items.byteswap().view(dtype)


def unaligned(array):
    room = np.empty(array.nbytes + 1, "u1")[1:].view(array.dtype).reshape(array.shape)
    room.view("u1" if array.ndim else room.dtype)[...] = array.view("u1") if array.ndim else array
    return room


def layouts(array):
    yield array
    yield array[None]
    if array.size > 1:
        yield array[::-1]
        yield unaligned(array)
    if array.size % 2 == 0:
        yield array.reshape(2, -1)
    if array.size == 1:
        yield array.reshape(())
        yield array.reshape(())[()]


def others(dtype, shape):
    """Operands that are not converted, and whose numbers are in error in the function, or are not."""
    for each in {shape, shape[-1:], (2, *shape)}:
        items = np.ones(each, dtype)
        yield items
        if each == shape[-1:]:
            items = items.copy()
            items.flat[-1] = np.nan
            items.flat[0] = np.inf
            yield items


@pytest.mark.parametrize("way", COMPUTED[:2])
@pytest.mark.parametrize(("own", "other"), [("f4", "f8"), (">f4", "f8"), ("c8", "c16"), ("f4", "c16"), ("f8", "g")])
@pytest.mark.parametrize("size", SIZES)
def test_elementwise(own, other, size, way):
    functions = (np.add, np.divide, np.maximum, np.less)
    with computed(*way):
        for at in {0, size - 1}:
            for x in layouts(signalling(own, size, at)):
                for y in others(other, np.shape(x) or (1,)):
                    for function, flipped in itertools.product(functions, (False, True)):
                        pair = (y, x) if flipped else (x, y)
                        right = told(lambda: function(*pair))  # noqa: B023
                        assert told(lambda: bcast.elementwise(function, *pair)) == right  # noqa: B023
                        if function is np.add and np.ndim(pair[0]):
                            assert told(lambda: bcast.chain(pair[0], (np.add, pair[1]))) == right  # noqa: B023


def test_both_operands_are_converted():
    """Up to the first one that NumPy does not convert as a whole."""
    for size in (5, 8192, 8193):
        for shapes in itertools.product(((size,), (1, size)), repeat=2):
            x, y = (signalling("f4", size).reshape(shape) for shape in shapes)
            whole = np.ones(shapes[0], "i8")
            for pair in ((x, y), (whole, y), (y, whole), (unaligned(np.ones(shapes[0])), y)):
                for function in (np.add, np.maximum, np.equal):
                    dtype = "f8" if function is not np.equal else None
                    if dtype and pair[0].dtype == "f8":
                        continue
                    right = told(lambda: function(*pair, dtype=dtype))  # noqa: B023
                    assert told(lambda: bcast.elementwise(function, *pair, dtype=dtype)) == right  # noqa: B023


@pytest.mark.parametrize("size", SIZES)
def test_out(size):
    """Also where it is an operand: what was an operand is not read once more."""
    for x, y in ((signalling("f4", size), np.ones(size)), (np.ones(size), signalling("f4", size))):
        for function, casting in itertools.product((np.add, np.maximum, np.subtract), ("same_kind", "unsafe")):
            for kind in ("f8", "f4", "first", "second"):
                results = []
                for call in (function, lambda *pair, **rest: bcast.elementwise(function, *pair, **rest)):  # noqa: B023
                    pair = [x.copy(), y.copy()]
                    out = {"first": pair[0], "second": pair[1]}.get(kind)
                    out = np.full(size, 7, kind) if out is None else out
                    results.append(told(lambda: call(*pair, out=out, casting=casting)))  # noqa: B023
                assert results[0] == results[1]
            results = []
            for step in (True, False):
                first = x.copy()
                if step:
                    results.append(told(lambda: bcast.chain(first, (function, y), (np.multiply, 2), out=first)))  # noqa: B023
                else:
                    results.append(told(lambda: np.multiply(function(first, y), 2, out=first)))  # noqa: B023
            assert results[0] == results[1]


def test_pdpd():
    """What comes after the axes of `b` are axes that NumPy sees."""
    a, b = np.ones((3, 4)), signalling("f4", 3)
    for axis, view in ((0, b[:, None]), (-1, signalling("f4", 4)), (1, signalling("f4", 4))):
        operand = view.reshape(-1)
        right = told(lambda: a + view)  # noqa: B023
        assert told(lambda: bcast.elementwise(np.add, a, operand, mode="pdpd", axis=axis)) == right  # noqa: B023
        assert told(lambda: bcast.chain(a, (np.add, operand), mode="pdpd", axis=axis)) == right  # noqa: B023
    assert told(lambda: bcast.elementwise(np.add, np.ones(3), b, axis=0)) == told(lambda: np.ones(3) + b)


@pytest.mark.parametrize("size", SIZES)
def test_chains(size):
    """Each step is one call of NumPy's: it converts what it takes, and its operands."""
    data = signalling("f4", size), np.ones(size, "f4"), np.ones(size)
    operands = signalling("f4", size, size - 1), np.ones(size), np.full((1, size), 2.0), np.full(size, np.inf)
    chains = [
        *((np.negative, (np.add, b)) for b in operands),
        *(((np.add, b), (np.subtract, c)) for b in operands for c in operands),
        *(((np.maximum, b), np.sqrt, (np.less, c)) for b in operands for c in operands),
        *(((np.clip, b, c), (np.divide, b)) for b in operands for c in (1.5, operands[0])),
        *((np.positive, (np.multiply, 3), (np.add, b), (np.round, 2)) for b in operands),
    ]  # fmt: skip
    for x, steps in itertools.product(data, chains):
        for dtype in (None, "f8") if x.dtype == "f4" else (None,):
            for shape in ((size,), (1, size)):

                def numpys():
                    result = x.reshape(shape) if dtype is None else x.reshape(shape).astype(dtype)  # noqa: B023
                    for step in steps:  # noqa: B023
                        function, *own = step if isinstance(step, tuple) else (step,)
                        result = function(result, *own)
                    return result

                assert told(lambda: bcast.chain(x.reshape(shape), *steps, dtype=dtype)) == told(numpys), steps  # noqa: B023


def test_another_size_of_buffers():
    old = np.getbufsize()
    try:
        for bufsize in (16, 32, 100_000):
            np.setbufsize(bufsize)
            for size in (16, 17, 33, 9000):
                x, y = signalling("f4", size), np.ones(size)
                assert told(lambda: bcast.elementwise(np.add, x, y)) == told(lambda: np.add(x, y))  # noqa: B023
                assert told(lambda: bcast.chain(y, (np.add, x))) == told(lambda: np.add(y, x))  # noqa: B023
    finally:
        np.setbufsize(old)


def test_where():
    for size in SIZES:
        condition = np.arange(size) % 2 == 0
        for own, other in (("f4", "f8"), ("c8", "c16"), ("f4", "c16"), (">f4", "f8")):
            for x in (signalling(own, size), signalling(own, 1), *layouts(signalling(own, 1))):
                for y in (np.ones(size, other), np.ones((2, size), other), np.array(1, other)):
                    for pair in ((x, y), (y, x)):
                        right = told(lambda: np.where(condition, *pair))  # noqa: B023
                        assert told(lambda: bcast.where(condition, *pair)) == right  # noqa: B023


def test_errors_that_are_exceptions():
    x, y = signalling("f4", 5), np.ones(5)
    with np.errstate(all="raise"):
        for call in (
            lambda: bcast.elementwise(np.add, x, y), lambda: bcast.elementwise(np.maximum, x, y),
            lambda: bcast.chain(y, (np.add, x)), lambda: bcast.chain(x, (np.add, y)),
            lambda: bcast.where(y > 0, x[0], y),
        ):  # fmt: skip
            with pytest.raises(FloatingPointError, match=r"^invalid value encountered in cast$"):
                call()
        with pytest.raises(FloatingPointError, match=r"^invalid value encountered in add$"):
            bcast.elementwise(np.add, x[None], y)
    with np.errstate(all="ignore"):
        assert not told(lambda: bcast.elementwise(np.add, x, y))[-1]
