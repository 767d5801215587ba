"""Calls for type checkers: `.ci/types` runs mypy and pyright on this file, which is never imported.

Calls that must fail have a comment that ignores the error. Both checkers report comments that ignore nothing.
"""

from collections.abc import Sequence
from typing import Any, assert_type

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

import bcast
import bcast.numpy as bnp
from bcast.typing import AxesLike, Casting, CountsLike, ElementwiseMode, Indexing, Mode, ShapeLike

Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]


def results_have_the_datas_dtype(x: Floats, scalar: np.float32, anything: NDArray[Any]) -> None:
    assert_type(bcast.broadcast(x, (2, 3)), Floats)
    assert_type(bcast.broadcast(x, (2, 3), [1], mode="explicit"), Floats)
    assert_type(bcast.broadcast_like(x, anything), Floats)
    assert_type(bcast.broadcast_to(x, 3), Floats)
    assert_type(bcast.tile(x, (2, 2)), Floats)
    assert_type(bcast.repeat(x, 2, axis=0), Floats)
    assert_type(bcast.unbroadcast(x, (1,)), Floats)
    assert_type(bcast.unrepeat(x, [1, 2]), Floats)
    assert_type(bcast.broadcast_to(scalar, (2, 3)), Floats)
    assert_type(bcast.broadcast_arrays(x, x), tuple[Floats, ...])
    assert_type(bcast.meshgrid(x, x, indexing="ij"), tuple[Floats, ...])
    assert_type(bcast.broadcast(anything, (2, 3)), NDArray[Any])


def other_data_may_have_any_dtype(data: ArrayLike) -> None:
    assert_type(bcast.broadcast([1, 2, 3], (2, 3)), NDArray[Any])
    assert_type(bcast.broadcast(1.5, (2, 3)), NDArray[Any])
    assert_type(bcast.broadcast(data, (2, 3)), NDArray[Any])
    assert_type(bcast.tile([[1], [2]], 2), NDArray[Any])
    assert_type(bcast.repeat("text", 2), NDArray[Any])
    assert_type(bcast.unbroadcast([[1.0], [2.0]], ()), NDArray[Any])
    assert_type(bcast.unbroadcast([1.0], (), times=2), NDArray[Any])
    assert_type(bcast.meshgrid([1, 2], [3, 4]), tuple[NDArray[Any], ...])
    assert_type(bcast.broadcast_arrays([1, 2], 3), tuple[NDArray[Any], ...])


def results_have_the_given_dtype(x: Floats, out: Bytes) -> None:
    assert_type(bcast.broadcast(x, (2, 3), dtype=np.float64), NDArray[np.float64])
    assert_type(bcast.broadcast([1], (2, 3), dtype=np.dtype(np.int8)), NDArray[np.int8])
    assert_type(bcast.repeat(x, 2, dtype="f8", casting="safe"), NDArray[Any])
    assert_type(bcast.unbroadcast(x, (), dtype=np.float64), NDArray[np.float64])
    assert_type(bcast.unbroadcast(x, (), times=x, dtype=np.float64), NDArray[np.float64])
    assert_type(bcast.broadcast_to(x, (2, 3), dtype=np.uint8, out=out), Bytes)
    assert_type(bcast.tile(x, 2, casting="unsafe", out=out), Bytes)
    assert_type(bcast.unrepeat([1.5, 2.5], [2], out=out), Bytes)
    assert_type(bcast.elementwise(np.add, x, x, out=out), Bytes)
    assert_type(bcast.where(x > 0, x, x, out=out), Bytes)
    assert_type(bcast.chain(x, (np.minimum, 255), np.rint, casting="unsafe", out=out), Bytes)


def named_functions_give_what_elementwise_gives(x: Floats, out: Bytes) -> None:
    assert_type(bcast.add(x, 1.0, mode="pdpd", axis=0), NDArray[Any])
    assert_type(bcast.maximum([1, 2], x), NDArray[Any])
    assert_type(bcast.add(x, x, out), Bytes)
    assert_type(bcast.add(x, x, out=out), Bytes)
    assert_type(bcast.less_equal(x, 1.0), NDArray[np.bool])
    assert_type(bcast.equal(x, x, out=x), Floats)
    assert_type(bcast.add(1, 2), Any)
    assert_type(bcast.sqrt(x), NDArray[Any])
    assert_type(bcast.sqrt(x, x), Floats)
    assert_type(bcast.isnan(x), NDArray[np.bool])
    assert_type(bcast.add.ufunc, np.ufunc)
    bcast.chain(x, (bcast.subtract, 1.0), bcast.square)
    bcast.add(x, x, dtype=np.float32, casting="unsafe", where=x > 0)
    bcast.sqrt(x, mode="pdpd")  # type: ignore
    bcast.add(x)  # type: ignore


def numpys_names_have_numpys_types(x: Floats) -> None:
    assert_type(bnp.tile(x, 2), Floats)
    assert_type(bnp.random.default_rng(), np.random.Generator)
    made: bnp.ndarray[Any, bnp.dtype[bnp.float64]] = bnp.zeros(3)
    bnp.add(x, made)
    bnp.nothing()  # type: ignore


def elementwise_gives_what_the_function_gives(x: Floats, ufunc: np.ufunc) -> None:
    def compare(a: Floats, b: Floats) -> bool:
        return bool((a == b).all())

    assert_type(bcast.elementwise(compare, x, x), bool)
    assert_type(bcast.elementwise(np.add, x, 1.0, mode="pdpd", axis=0), NDArray[Any])
    assert_type(bcast.elementwise(np.maximum, [1, 2], x), NDArray[Any])
    assert_type(bcast.elementwise(np.less_equal, x, 1.0, mode="unidirectional"), NDArray[np.bool])
    assert_type(bcast.elementwise(np.equal, "a", ["a", "b"]), NDArray[np.bool])
    assert_type(bcast.elementwise(np.equal, x, x, out=x), Floats)
    assert_type(bcast.elementwise(np.add, 1, 2), Any)
    assert_type(bcast.elementwise(np.divmod, x, 2), tuple[Any, Any])
    assert_type(bcast.elementwise(ufunc, x, x), Any)
    bcast.elementwise(np.add, x, x, dtype=np.float32, casting="unsafe", where=x > 0)
    assert_type(bcast.where(x > 0, x, x), Floats)
    assert_type(bcast.chain(x, (ufunc, [1, 2]), np.sqrt, (np.less, 1), dtype="f4", mode="pdpd", axis=1), NDArray[Any])
    assert_type(bcast.chain([1, 2]), NDArray[Any])
    assert_type(bcast.chain(x, np.round, (np.around, 2), (np.clip, 0, None), (np.clip, [1, 2], x)), NDArray[Any])


def shapes(x: Floats, shape: Sequence[int], lengths: NDArray[np.int64], index: np.int32) -> None:
    assert_type(bcast.infer_shape(shape, lengths, mode="bidirectional"), tuple[int, ...])
    assert_type(bcast.broadcast_shapes(shape, 3, index), tuple[int, ...])
    bcast.broadcast(x, shape)
    bcast.broadcast(x, lengths)
    bcast.broadcast(x, x.shape)
    bcast.broadcast(x, (index, True, 3))
    bcast.broadcast(x, (2, 3), mode="explicit", broadcast_axes={0})
    bcast.repeat(x, lengths, 0)
    bcast.repeat(x, ([1, 2], 3), axis=(0, 1))
    bcast.repeat(x, 2.0)


def own_functions(
    x: Floats,
    shape: ShapeLike,
    axes: AxesLike,
    counts: CountsLike,
    mode: Mode,
    rule: ElementwiseMode,
    casting: Casting,
    indexing: Indexing,
) -> None:
    bcast.broadcast(x, shape, mode=mode, broadcast_axes=axes, casting=casting)
    bcast.repeat(x, counts)
    bcast.elementwise(np.add, x, x, mode=rule)
    bcast.meshgrid(x, indexing=indexing)


def sums(x: Floats, out: Bytes) -> None:
    assert_type(bcast.sum(x, 0), Any)
    assert_type(bcast.mean(x, 0, None, out), Bytes)
    assert_type(bcast.std(x, out=out, ddof=1), Bytes)


def forwarded(x: Floats, data: ArrayLike, dtype: DTypeLike | None = None, out: NDArray[Any] | None = None) -> None:
    assert_type(bcast.tile(x, 2, dtype=dtype, out=out), NDArray[Any])
    assert_type(bcast.broadcast(data, (2, 3), dtype=dtype, out=out), NDArray[Any])
    assert_type(bcast.unbroadcast(x, (), dtype=dtype, out=out), NDArray[Any])
    assert_type(bcast.chain(x, np.sqrt, out=out), NDArray[Any])
    value, vjp = bcast.chain_vjp(x, (np.multiply, [1, 2]), (np.sum, -1), dtype="f4")
    assert_type(vjp(value), tuple[NDArray[Any], ...])


def the_process() -> None:
    assert_type(bcast.get_num_threads(), int)
    assert_type(bcast.set_idle_limit(2**20), int)
    assert_type(bcast.memory_info().idle, int)
    assert_type(bcast.is_patched("tile"), bool)
    assert_type(bcast.patch_info()["tile"].taken, int)
    with bcast.patched_numpy(["tile"]):
        bcast.patch_numpy("repeat")

    @bcast.patched_numpy("tile")
    def length(x: Floats) -> int:
        return len(x)

    assert_type(length(np.ones(3, np.float32)), int)


def what_fails_when_it_runs(x: Floats) -> None:
    bcast.broadcast(x, 3)  # type: ignore
    bcast.broadcast(x, (2.0, 3))  # type: ignore
    bcast.broadcast(x, "23")  # type: ignore
    bcast.broadcast(x, None)  # type: ignore
    bcast.broadcast(x, shape=(2, 3))  # type: ignore
    bcast.infer_shape((3,), shape=(2, 3))  # type: ignore
    bcast.broadcast(x, np.ones(2))  # type: ignore
    bcast.broadcast(x, (2, 3), mode="numpty")  # type: ignore
    bcast.broadcast(x, (2, 3), axes_mapping=0)  # type: ignore
    bcast.broadcast(x, (2, 3), out=[1, 2, 3])  # type: ignore
    bcast.broadcast(x, (2, 3), casting="any")  # type: ignore
    bcast.broadcast_to(x, (2.5, 3))  # type: ignore
    bcast.tile(x, 2.5)  # type: ignore
    bcast.repeat(x, "2")  # type: ignore
    bcast.repeat(x, 2, axis=0.5)  # type: ignore
    bcast.unbroadcast(x, 3)  # type: ignore
    bcast.infer_shape(3, (3,))  # type: ignore
    bcast.elementwise(np.add, x, x, mode="explicit")  # type: ignore
    bcast.elementwise(np.add, x, x, out="x")  # type: ignore
    bcast.chain(x, (np.add, 1, 2))  # type: ignore
    bcast.chain(x, (np.clip, 0, 1, 2))  # type: ignore
    bcast.chain(x, "add")  # type: ignore
    bcast.chain(x, mode="explicit")  # type: ignore
    bcast.meshgrid(x, indexing="yx")  # type: ignore
    bcast.set_num_threads(1.5)  # type: ignore
    bcast.patch_numpy(5)  # type: ignore
    _ = bcast.nonsense  # type: ignore
