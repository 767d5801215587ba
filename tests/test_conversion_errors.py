"""Errors of conversions within functions: one `RuntimeWarning` per call, or an exception before anything is written.

A signalling NaN of float32, or in complex64, causes an error when it is converted to a wider dtype. NumPy determines
whether a call warns; the function that the warning names is compared only for conversions to `out`.
"""

import itertools
import warnings

import numpy as np
import pytest
from _ways import COMPUTED, computed

import bcast

DTYPES = [("f4", "f8"), (">f4", "f8"), ("c8", "c16"), ("f4", "c16"), ("f8", "g")]
SIZES = (5, 8192, 8193)  # on both sides of the size of NumPy's buffers
SIGNALLING = {4: 0x7FA00000, 8: 0x7FF4000000000000}  # by the bytes of a float


def signalling(dtype, size):
    """Ones, but the last item is a signalling NaN, or has one as its real part."""
    items = np.ones(size, np.dtype(dtype).newbyteorder("="))
    itemsize = items.real.itemsize
    items.view(f"u{itemsize}").reshape(size, -1)[-1, 0] = SIGNALLING[itemsize]
    return items if np.dtype(dtype).isnative else items.byteswap().view(dtype)


def unaligned(array):
    shifted = np.empty(array.nbytes + 1, "u1")[1:].view(array.dtype).reshape(array.shape)
    shifted.view("u1")[...] = array.view("u1")
    return shifted


# Calls of operands x, which has the signalling NaN, and y, and the same of NumPy. The last ones write to `out`.
CALLS = {
    "first operand": (lambda x, y: bcast.elementwise(np.add, x, y), np.add),
    "second operand": (lambda x, y: bcast.elementwise(np.maximum, y, x), lambda x, y: np.maximum(y, x)),
    "comparison": (lambda x, y: bcast.elementwise(np.less, x, y), np.less),
    "where": (lambda x, y: bcast.where(y == 1, x.flat[-1], y), lambda x, y: np.where(y == 1, x.flat[-1], y)),
    "data of a chain": (lambda x, y: bcast.chain(x, (np.add, y), np.negative), lambda x, y: -(x + y)),
    "operand of a chain": (lambda x, y: bcast.chain(y, np.positive, (np.add, x)), lambda x, y: y + x),
    "dtype of a chain": (lambda x, y: bcast.chain(x, np.negative, dtype=y.dtype), lambda x, y: -x.astype(y.dtype)),
}


def outcome(call, *operands):
    """Return a result in which all NaN are the same, and the warnings of a call; none may come twice."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = np.array(call(*operands))
    assert {each.category for each in caught} <= {RuntimeWarning}
    messages = [str(each.message) for each in caught]
    assert len(set(messages)) == len(messages)
    if result.dtype.kind in "fc":
        parts = result.reshape(-1).view(result.real.dtype)
        parts[np.isnan(parts)] = 7
    return result, bool(messages)


@pytest.mark.parametrize("way", COMPUTED[:2])
@pytest.mark.parametrize(("call", "numpys"), CALLS.values(), ids=CALLS)
def test_a_call_warns_where_numpys_does(call, numpys, way):
    for (own, wide), size in itertools.product(DTYPES, SIZES):
        x = signalling(own, size)
        for each in (x, x[None], x[::-1], unaligned(x), x[-1:]):
            for y in (np.ones(size, wide), np.ones((2, size), wide)):
                expected, warns = outcome(numpys, each, y)
                with computed(*way):
                    result, mine = outcome(call, each, y)
                np.testing.assert_array_equal(result, expected, strict=True)
                assert mine == warns


@pytest.mark.parametrize("call", [call for call, _ in CALLS.values()], ids=list(CALLS))
def test_errors_are_ignored_or_raised_as_the_caller_says(call):
    x, y = signalling("f4", 5), np.ones(5)
    with np.errstate(all="ignore"):
        assert not outcome(call, x, y)[1]
    with np.errstate(all="raise"), pytest.raises(FloatingPointError, match=r"^invalid value encountered in "):
        call(x, y)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", ["new", "first", "second"])
def test_an_out_that_is_an_operand_is_read_before_it_is_written(kind, size):
    results = []
    for call in np.add, lambda *pair, **options: bcast.elementwise(np.add, *pair, **options):
        pair = [signalling("f4", size), np.ones(size)]
        out = {"new": np.empty(size), "first": pair[0], "second": pair[1]}[kind]
        results.append(outcome(lambda call=call, pair=pair, out=out: call(*pair, out=out, casting="unsafe")))
    np.testing.assert_array_equal(results[0][0], results[1][0], strict=True)
    assert results[0][1] == results[1][1]


@pytest.mark.parametrize("place", ["all", 0, -1])
@pytest.mark.parametrize("name", ["sqrt", "square", "cbrt", "rint", "absolute", "negative", "isnan"])
def test_a_conversion_to_out_warns_in_the_name_of_the_function(name, place):
    for own, wide in itertools.product(("f4", "f8", "i8", "c16"), ("f2", ">f2", "f4", "c8")):
        x = np.ones((50_000, 4), own)  # large, so that it is computed here, and a few of NumPy's buffers
        x[... if place == "all" else np.unravel_index(place % x.size, x.shape)] = 2**62 if own == "i8" else 1e30
        results = []
        for function in getattr(np, name), getattr(bcast, name):
            out = np.zeros(x.shape, wide)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                try:
                    function(x, out=out)
                except TypeError:
                    out[:] = 2
            results.append((out.tobytes(), [str(each.message) for each in caught]))
        assert results[0] == results[1], (own, wide)
