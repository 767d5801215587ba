"""An `out` that overlaps the inputs, with other strides or another dtype: results are as if inputs had been copied."""

import random
import warnings

import numpy as np
import pytest
from _arithmetic import bits

import bcast

DTYPES = ["u1", "i2", "f4", "f8", "c8", ">f4", ">i2", "?", "g", "S3"]
NUMBERS = ["u1", "i2", "i4", "i8", "f4", "f8", ">f4", ">i8"]


def draw_strides(rng, itemsize, shape):
    """Strides in bytes: of axes in any order, with gaps, forwards or backwards."""
    order = list(range(len(shape)))
    if rng.random() < 0.4:
        rng.shuffle(order)
    strides, step = [0] * len(shape), itemsize
    for axis in reversed(order):
        step *= rng.choice((1, 1, 1, 2, 3))
        strides[axis] = step if rng.random() < 0.8 else -step
        step *= shape[axis]
    return strides


def reach(shape, itemsize, strides):
    """The numbers of bytes before the first item of an array, and from there on."""
    steps = [stride * (n - 1) for n, stride in zip(shape, strides, strict=True)]
    return -sum(min(0, step) for step in steps), sum(max(0, step) for step in steps) + itemsize


def views(rng, *kinds):
    """Views of the dtypes and shapes given, at random places of one room."""
    kinds = [(np.dtype(dtype), shape) for dtype, shape in kinds]
    strides = [draw_strides(rng, dtype.itemsize, shape) for dtype, shape in kinds]
    reaches = [reach(shape, dtype.itemsize, own) for (dtype, shape), own in zip(kinds, strides, strict=True)]
    dtype = kinds[0][0]
    size = max(before + after for before, after in reaches) + rng.choice((0, 8, 100))
    # Small numbers of the first dtype, whose sums are exact.
    numbers = np.random.default_rng(rng.getrandbits(32)).integers(0, 2, -(-size // dtype.itemsize))
    room = numbers.astype(dtype).view("u1").copy()
    found = []
    for (own, shape), own_strides, (before, after) in zip(kinds, strides, reaches, strict=True):
        first = rng.randrange(before, room.size - after + 1)
        if rng.random() < 0.8 and first - first % own.itemsize >= before:
            first -= first % own.itemsize
        found.append(np.ndarray(shape, own, room, first, own_strides))
    return found


def draw_shape(rng):
    return rng.choice(((105,), (35,), (64,), (1,), (7, 5), (5, 7), (3, 4, 5), (2, 40), (40, 2), (100, 1)))


def compare(call, right, out, **options):
    """Make a call with `out`, and check its values."""
    expected = np.empty_like(out)
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        np.copyto(expected, right, casting="unsafe")
        assert call(out) is out
    if options:
        np.testing.assert_allclose(out, expected, **options)
    else:
        assert bits(out) == bits(expected)


def drawn_dtypes(rng, dtypes):
    """Two dtypes; the first converts to the second without a warning that depends on the bytes."""
    dtype = rng.choice(dtypes)
    wider = [each for each in dtypes if np.can_cast(dtype, each, "safe")]
    return dtype, rng.choice([dtype, dtype, *wider])


def copies(rng):
    dtype, out_dtype = drawn_dtypes(rng, DTYPES)
    shape = draw_shape(rng)
    name = rng.choice(("broadcast", "broadcast_like", "broadcast_to", "tile", "repeat", "repeat by counts", "chain"))
    options = {} if dtype == out_dtype else {"casting": "unsafe"}
    if name in ("broadcast", "broadcast_like", "broadcast_to"):
        target = rng.choice((shape, (2, *shape), (1, *shape)))
        data, out = views(rng, (dtype, shape), (out_dtype, target))
        like = np.zeros(target) if name == "broadcast_like" else target
        return (
            out,
            np.broadcast_to(data.copy(), target),
            lambda out: getattr(bcast, name)(data, like, out=out, **options),
        )
    if name == "tile":
        times = rng.choice((1, 2))
        data, out = views(rng, (dtype, shape), (out_dtype, np.tile(np.zeros(shape), times).shape))
        return out, np.tile(data.copy(), times), lambda out: bcast.tile(data, times, out=out, **options)
    if name == "chain":
        data, out = views(rng, (dtype, shape), (out_dtype, shape))
        right = data.copy()
        if np.dtype(dtype).kind not in "S?" and rng.random() < 0.5:
            steps = [(np.maximum, 3)] if np.dtype(dtype).kind != "c" else [np.conjugate]
            right = np.maximum(right, 3) if np.dtype(dtype).kind != "c" else right.conj()
            return out, right, lambda out: bcast.chain(data, *steps, out=out, casting="unsafe")
        return out, right, lambda out: bcast.chain(data, out=out, casting="unsafe")
    axis = rng.randrange(len(shape))
    times = rng.choice((1, 2)) if name == "repeat" else [1, *rng.choices((0, 1, 1, 2), k=shape[axis] - 1)]
    data, out = views(rng, (dtype, shape), (out_dtype, np.repeat(np.zeros(shape), times, axis).shape))
    return out, np.repeat(data.copy(), times, axis), lambda out: bcast.repeat(data, times, axis, out=out, **options)


def functions(rng):
    dtype = rng.choice(NUMBERS)
    shape = draw_shape(rng)
    other_shape = rng.choice((shape, shape[-1:], (1,)))
    data, out, other, mask = views(rng, (dtype, shape), (dtype, shape), (dtype, other_shape), ("?", shape))
    a, b = data.copy(), other.copy()
    how = rng.choice(("elementwise", "chain", "where"))
    with np.errstate(all="ignore"):
        if how == "elementwise":
            ufunc = rng.choice((np.add, np.multiply, np.maximum, np.subtract))
            return out, ufunc(a, b), lambda out: bcast.elementwise(ufunc, data, other, out=out)
        if how == "chain":
            return out, a * b + b, lambda out: bcast.chain(data, (np.multiply, other), (np.add, other), out=out)
        native = np.result_type(a, b)
        if out.dtype != native:
            return out, a + b, lambda out: bcast.elementwise(np.add, data, other, out=out)
        return out, np.where(mask.copy(), a, b), lambda out: bcast.where(mask, data, other, out=out)


def sums(rng):
    dtype = rng.choice(NUMBERS)
    shape = draw_shape(rng)
    axis = rng.randrange(len(shape))
    kept = shape[:axis] + shape[axis + 1 :]
    name = rng.choice(("sum", "mean", "var", "std", "unbroadcast", "times", "unrepeat"))
    if name == "unbroadcast" or name == "times":
        summed = (*shape[:axis], 1, *shape[axis + 1 :])
        data, out, times = views(rng, (dtype, shape), (dtype, summed), (dtype, shape))
        times = times if name == "times" and out.dtype.isnative else None
        factors = 1 if times is None else times.copy()
        right = (data.copy() * factors).astype(dtype).sum(axis, keepdims=True)
        return out, right, lambda out: bcast.unbroadcast(data, out.shape, times=times, out=out)
    if name == "unrepeat":
        counts = [shape[axis] // 2, shape[axis] - shape[axis] // 2]
        data, out = views(rng, (dtype, shape), (dtype, (*shape[:axis], 2, *shape[axis + 1 :])))
        parts = np.split(data.copy(), counts[:1], axis)
        right = np.stack([part.sum(axis) for part in parts], axis)
        return out, right, lambda out: bcast.unrepeat(data, counts, axis, out=out)
    result = getattr(np, name)(np.zeros(shape, dtype), axis).dtype
    data, out = views(rng, (dtype, shape), (result, kept))
    right = getattr(np, name)(data.copy(), axis)
    return out, right, lambda out: getattr(bcast, name)(data, axis, out=out)


@pytest.mark.parametrize("draw", [copies, functions, sums])
@pytest.mark.parametrize("seed", range(4))
def test_as_if_the_data_had_been_copied(draw, seed):
    rng = random.Random(f"{draw.__name__} {seed}")
    with np.errstate(all="ignore"):
        for _ in range(400):
            out, right, call = draw(rng)
            room = out.base.copy()
            compare(call, right, out, **({"rtol": 1e-6, "atol": 1e-6} if draw is sums else {}))
            kept = np.ones(room.size, bool)
            offset = out.__array_interface__["data"][0] - out.base.__array_interface__["data"][0]
            np.ndarray((*out.shape, out.itemsize), bool, kept, offset, (*out.strides, 1))[...] = False
            assert np.array_equal(room[kept], out.base[kept]), "wrote elsewhere"


def test_a_chain_without_steps_onto_every_third_item():
    for code in DTYPES[:-1]:
        items = (np.arange(1, 106) % 100).astype(code)
        expected = items[::3].copy()
        bcast.chain(items[::3], out=items[52:87])
        assert np.array_equal(items[52:87], expected)
