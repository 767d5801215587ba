"""Bools whose bytes are neither 0 nor 1, as in OpenCV's masks and mapped files: each byte except 0 is True.

Every function has the same result as for bools with bytes of 0 and 1, for any size, layout and dtype. Copies keep the
bytes.
"""

import warnings

import numpy as np
import pytest
from _arithmetic import UFUNCS, UNARY, bits, told, with_plain_bools
from _ways import COMPUTED, computed

import bcast
from bcast._api import converted

DTYPES = [*"?bBhHiIlLqQefdgFDG", ">i2", ">f4", ">c16", "m8[s]", "U5", "O"]
OF_USERS = ["bfloat16", "float8_e5m2", "float8_e4m3fn", "int4"]
SIZES = [7, 64, 2000, 70_000]  # below and above what goes by NumPy, by one block, by threads

LAYOUTS = {
    "contiguous": lambda items: items,
    "strided": lambda items: np.repeat(items, 3)[::3],
    "negative": lambda items: items[::-1].copy()[::-1],
    "transposed": lambda items: items.reshape(-1, 2).T.copy().T if items.size % 2 == 0 else items,
    "repeated": lambda items: np.broadcast_to(items[:1], items.shape),
}


def masks(size, layout="contiguous", seed=0):
    """Bools of any bytes, and the same with bytes of 0 and 1."""
    generator = np.random.default_rng(seed + size)
    items = generator.choice(np.array([0, 0, 0, 1, 2, 127, 128, 254, 255], "u1"), size)
    items[: min(size, 2)] = (255, 2)[: min(size, 2)]
    mask = LAYOUTS[layout](items.view(bool))
    assert (mask.view("u1") > 1).any()
    return mask, with_plain_bools(mask)


def dtype_of(name):
    return np.dtype(getattr(pytest.importorskip("ml_dtypes"), name) if name in OF_USERS else name)


def same(result, right):
    assert result.dtype == right.dtype
    assert result.shape == right.shape
    assert bits(result) == bits(right)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", DTYPES + OF_USERS)
def test_conversions(name, layout):
    dtype = dtype_of(name)
    for size in SIZES[: 3 if dtype.char in "gGUO" else None]:
        mask, plain = masks(size, layout)
        right = np.asarray(plain.astype(dtype))
        how = {"dtype": dtype, "casting": "unsafe"}
        same(bcast.broadcast_to(mask, mask.shape, **how), right)
        if mask.ndim == 1:
            same(bcast.repeat(mask, 2, **how), right.repeat(2))
            same(bcast.repeat(mask, np.arange(size) % 3, **how), right.repeat(np.arange(size) % 3))
            same(bcast.broadcast_like(mask, np.zeros((2, size)), **how), np.broadcast_to(right, (2, size)))
        same(bcast.tile(mask, 2, **how), np.tile(right, 2))
        if dtype.num > 255:  # of another package: NumPy's rows of conversions are tried below
            out, one = np.zeros(mask.shape, dtype), np.zeros((), dtype)
            same(bcast.chain(mask, out=out, casting="unsafe"), right)
            item = mask[(-1,) * mask.ndim].reshape(()) if mask.size else np.array(True)
            same(bcast.chain(item, out=one, casting="unsafe"), np.asarray(plain[(-1,) * mask.ndim]).astype(dtype))
        if dtype.kind not in "mUO" and dtype.num < 256:
            same(bcast.chain(mask, **how), right)
            out = np.zeros(mask.shape, dtype)
            bcast.broadcast_to(mask, mask.shape, out=out, casting="unsafe")
            same(out, right)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_copies_keep_the_bytes(layout):
    for size in SIZES:
        mask, _ = masks(size, layout)
        own = mask.view("u1")
        copies = [bcast.broadcast_to(mask, mask.shape), bcast.broadcast_to(mask, mask.shape, dtype=bool)]
        copies += [bcast.where(True, mask, mask), bcast.where(mask, mask, mask), bcast.chain(mask)]
        for copy in copies:
            assert copy.dtype == bool
            assert np.array_equal(copy.view("u1"), own)


@pytest.mark.parametrize("name", [*DTYPES[:-3], "bfloat16"])
def test_operands_and_choices(name):
    """Beside items, a single repeated item, and rows; also as conditions."""
    dtype = dtype_of(name)
    for size in SIZES[0], SIZES[2], 9000:
        mask, plain = masks(size)
        items = (np.arange(size) % 100).astype(dtype)
        column = (np.arange(3)[:, None] + 1).astype(dtype)
        for other in items, column, items[:1]:
            for a, b, c, d in (mask, other, plain, other), (other, mask, other, plain):
                same(bcast.elementwise(np.multiply, a, b), np.multiply(c, d))
                same(bcast.elementwise(np.not_equal, a, b), np.not_equal(c, d))
                same(bcast.where(items > 3, a, b), np.where(items > 3, c, d))
                same(bcast.where(mask, a, b), np.where(plain, c, d))
                same(bcast.chain(a, (np.multiply, b), (np.add, b)), c * d + d)
                with bcast.patched_numpy("where"):
                    chosen = np.where(items > 3, a, b)
                same(chosen, np.where(items > 3, c, d))


@pytest.mark.parametrize("name", OF_USERS)
@pytest.mark.parametrize("function", ["maximum", "multiply", "power", "arctan2", "less"])
def test_calls_left_to_loops_of_other_packages(name, function):
    """Loops that depend on steps, dtypes and sizes that the core leaves, and calls with a mask."""
    ufunc, dtype = getattr(np, function), dtype_of(name)
    for size in 1, 6, 600:
        mask, plain = masks(size)
        items = (np.arange(3 * size) % 3 + 1).astype(dtype)[::-3]
        for a, b, c, d in (mask, items, plain, items), (items, mask, items, plain):
            same(bcast.where(items.astype(object) != 1, a, b), np.where(items.astype("f4") != 1, c, d))
            with np.errstate(all="ignore"):
                try:
                    right = ufunc(c, d)
                except TypeError:  # int4 has few functions
                    continue
                alone = np.asarray(ufunc(c[:1].reshape(()), d[:1].reshape(())))
                out = np.zeros(size, right.dtype)
                same(bcast.elementwise(ufunc, a, b), right)
                same(bcast.elementwise(ufunc, a, b, mode="pdpd"), right)
                same(bcast.elementwise(ufunc, a, b, out=out, where=np.ones(size, bool)), right)
                same(bcast.chain(a, (ufunc, b)), right)
                same(np.asarray(bcast.elementwise(ufunc, a[:1].reshape(()), b[:1].reshape(()))), alone)


@pytest.mark.parametrize("transposed", [False, True])
def test_repeated_bools_leave_the_order_of_axes_to_the_other_operand(transposed):
    mask, plain = masks(5)
    items = (np.arange(15).reshape(3, 5) + 1).astype(dtype_of("float8_e5m2"))
    if transposed:
        items = items.T.copy().T
    right = np.maximum(items, np.broadcast_to(plain, (3, 5)))
    result = bcast.elementwise(np.maximum, items, np.broadcast_to(mask, (3, 5)))
    same(result, right)
    assert result.strides == right.strides


def bool_operands(size):
    """Pairs in which one operand is repeated along rows, along columns, along both, or not at all."""
    mask, plain = masks(6 * size)
    other, other_plain = masks(6 * size, seed=5)
    for shape, other_shape in [
        ((6 * size,), (6 * size,)),
        ((6, size), (6, 1)),
        ((6, size), (size,)),
        ((size, 6), (6,)),
        ((6, size), (1,)),
        ((size, 6), (size, 1)),
    ]:
        n = int(np.prod(other_shape))
        pair = mask.reshape(shape), other[:n].reshape(other_shape)
        plain_pair = plain.reshape(shape), other_plain[:n].reshape(other_shape)
        yield pair, plain_pair
        yield pair[::-1], plain_pair[::-1]


@pytest.mark.parametrize("ufunc", UFUNCS, ids=lambda ufunc: ufunc.__name__)
def test_functions_of_two_bools(ufunc):
    for size in 5, 600:
        for way, (pair, plain_pair) in zip(COMPUTED * 12, bool_operands(size), strict=False):
            right, told_of = told(lambda plain_pair=plain_pair: ufunc(*plain_pair))
            with computed(*way):
                found = told(lambda pair=pair: bcast.elementwise(ufunc, *pair))
            assert found[1] == told_of
            if isinstance(right, tuple):
                assert found[0] == right
                continue
            same(found[0], right)
            if ufunc.__name__ in ("power", "ldexp"):
                continue
            with np.errstate(all="ignore"):
                same(bcast.chain(pair[0], (ufunc, pair[1])), right)


@pytest.mark.parametrize("ufunc", UFUNCS[4:14], ids=lambda ufunc: ufunc.__name__)
@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (2, 1), (1, 2)])
def test_steps_of_one_item(ufunc, shape):
    """NumPy's loops compare the bytes of bools with a stride of 0, which a single item may have."""
    holds = np.ones(shape, bool)
    for byte in 0, 1, 2, 0xC6:
        mask = np.full(shape, byte, "u1").view(bool)
        plain = mask.view("u1") != 0
        for kind in "?", "i8", "f4":
            out = np.zeros(shape, kind)
            right = ufunc(holds, plain).astype(kind)
            same(bcast.chain(holds, (ufunc, mask), out=out), right)
            same(bcast.chain(holds, np.logical_not, np.logical_not, (ufunc, mask), out=out), right)
            same(bcast.elementwise(ufunc, holds, mask, out=out), right)
            same(bcast.chain(mask, (ufunc, holds), out=out), ufunc(plain, holds).astype(kind))


@pytest.mark.parametrize("name", [*DTYPES[:-3], *OF_USERS])
@pytest.mark.parametrize("ufunc", [np.logical_xor, np.logical_and, np.logical_or], ids=lambda ufunc: ufunc.__name__)
def test_truth_of_other_dtypes_beside_one_bool(ufunc, name):
    """NumPy converts the other operand to bools, and then compares bytes."""
    dtype = dtype_of(name)
    for size in 1, 7, 900:
        items = (np.arange(size) % 2).astype("f4").astype(dtype)
        for byte in 0, 1, 2, 0xC6:
            for shape in (), (1,), (3, 1):
                mask = np.full(shape, byte, "u1").view(bool)
                right = ufunc(items, mask.view("u1") != 0)
                same(bcast.elementwise(ufunc, items, mask), right)
                same(bcast.elementwise(ufunc, mask, items), right)
                same(bcast.chain(items, (ufunc, mask)), right)


@pytest.mark.parametrize("ufunc", [np.greater, np.equal, np.logical_xor, np.maximum], ids=lambda ufunc: ufunc.__name__)
def test_calls_of_numpy_with_one_bool(ufunc):
    """With a mask, a casting, or an `out` that overlaps an operand."""
    for size in 6, 600:
        mask, plain = masks(size)
        chosen, chosen_plain = masks(size, seed=3)
        for byte in 0, 1, 2, 0xC6:
            one = np.full(1, byte, "u1").view(bool)
            right = ufunc(plain, one.view("u1") != 0)
            for casting in "no", "unsafe":
                same(bcast.elementwise(ufunc, mask, one, casting=casting), right)
            out = np.zeros(size, bool)
            bcast.elementwise(ufunc, mask, one, where=chosen, out=out)
            same(out, right & chosen_plain)
            memory = np.append(mask.view("u1"), np.uint8(0)).view(bool)
            bcast.elementwise(ufunc, memory[:-1], one, out=memory[1:])
            same(memory[1:], right)
            memory = np.append(mask.view("u1"), np.uint8(0)).view(bool)
            bcast.chain(memory[:-1], (ufunc, one), out=memory[1:])
            same(memory[1:], right)


@pytest.mark.parametrize("name", UNARY.split())
def test_functions_of_one_bool(name):
    ufunc = getattr(np, name)
    for size in SIZES[1:3]:
        mask, plain = masks(size)
        with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
            try:
                right = ufunc(plain)
            except TypeError:
                return
            same(bcast.chain(mask, ufunc), right)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_statistics_count_true_bools(layout):
    for size in SIZES[1:]:
        mask, plain = masks(size, layout)
        for function in "sum", "mean", "var", "std":
            for axis in None, 0:
                with warnings.catch_warnings(action="ignore"):
                    right = getattr(np, function)(plain, axis)
                np.testing.assert_allclose(getattr(bcast, function)(mask, axis), right, rtol=1e-12)
        for code in "bBhHiIlLqQefdFD":
            if code != "e" or plain.sum() <= 2048:
                right = plain.sum(0, dtype=code)
                assert np.array_equal(bcast.unbroadcast(mask, mask.shape[1:], dtype=code), right)
                assert np.array_equal(bcast.sum(mask, 0, dtype=code), right)
        grad = np.arange(size) % 7
        if mask.ndim == 1:
            assert bcast.unbroadcast(grad, (), times=mask) == grad[plain].sum()
            assert bcast.unbroadcast(mask, (), dtype=int, times=grad) == grad[plain].sum()
            counts = [size // 3, 0, size - size // 3]
            right = [plain[: counts[0]].sum(), 0, plain[counts[0] :].sum()]
            assert bcast.unrepeat(mask, counts, dtype=int).tolist() == right


@pytest.mark.parametrize("name", OF_USERS)
def test_sums_of_users_dtypes_that_numpy_does(name):
    """Nothing is added where an axis has one item, nor without axes: the bools are converted alone."""
    dtype = dtype_of(name)
    for size in SIZES[0], SIZES[2]:
        mask, plain = masks(size)
        right = plain.astype(dtype).tolist()
        for function in (bcast.sum, bcast.mean) if name != "int4" else (bcast.sum,):
            assert function(mask, (), dtype=dtype).tolist() == right
            assert function(mask[None], 0, dtype=dtype).tolist() == right
            out = np.empty(size, dtype)
            assert function(mask[None], 0, dtype=dtype, out=out) is out
            assert out.tolist() == right
            out = np.empty(size, "f4")
            assert function(mask[None], 0, dtype=dtype, out=out).tolist() == plain.tolist()


@pytest.mark.parametrize("size", [1, *SIZES])
def test_counts(size):
    mask, plain = masks(size)
    items = np.arange(size)
    assert np.array_equal(bcast.repeat(items, mask), items[plain] if size > 1 else items)
    assert np.array_equal(bcast.unrepeat(items[plain], mask), np.where(plain, items, 0))


@pytest.mark.parametrize("limit", [24, 1 << 20])
def test_blocks_and_large_arrays(limit):
    converted.set_limits(limit)
    try:
        mask, plain = masks(100_000)
        for shape in (100_000,), (100, 1000), (1000, 100):
            for code in "Bhefdg":
                view, right = mask.reshape(shape), plain.reshape(shape)
                for a, b in (view, right), (view.T, right.T), (view[..., ::2], right[..., ::2]):
                    expected = np.broadcast_to(b.astype(code), (2, *b.shape))
                    same(bcast.broadcast(a, (2, *a.shape), dtype=code, casting="unsafe"), expected)
    finally:
        converted.set_limits()


def test_masks_of_dask_and_onnx():
    dask_array = pytest.importorskip("dask.array")
    from bcast import dask as lazy

    mask, plain = masks(70_000)
    array = dask_array.from_array(mask, chunks=9000)
    result = lazy.elementwise(np.multiply, array, np.float32(7))
    same(result.compute(), np.multiply(plain, np.float32(7)))
    assert lazy.sum(array).compute() == plain.sum()
    same(lazy.broadcast(array, (2, 70_000), dtype="f4").compute(), np.tile(plain, (2, 1)).astype("f4"))
