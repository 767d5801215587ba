"""The drop-ins for NumPy's functions beside NumPy's own, and beside the peers that have them; fresh results.

    python benchmarks/bench_numpy.py [--threads N] [-k WORDS]

prints a table; under pytest it is a suite as the others. What is measured is in `CALLS`: each has the calls that do it
by name of the competitor, made for a number of threads. `elementwise` is measured beside the bare ufunc on views that
were made before.
"""

import argparse
import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from conftest import Case
from loops import repeater, use_threads
from machines import cpus, measure
from numpy.typing import NDArray
from peers import bound

import bcast
from bcast._benchmark.table import machine

SECONDS = 0.25
SIZED = "torch, output_size"
TWO_CALLS, LAST = "astype, then bcast", "NumPy, converted last"
MODULES = {"opencv": "cv2", "torch": "torch", SIZED: "torch", "jax": "jax", "pyarrow": "pyarrow", "numba": "numba"}
Results = Callable[[], Any]


@dataclass(frozen=True)
class Drop:
    """One call of a drop-in, with what a workload tells of itself.

    Attributes
    ----------
    name, group : str
        Unique; what is called.
    output : tuple of int
        The shape of the result, or of all results together.
    calls : dict
        By competitor, what makes its call for data of a dtype.
    innermost : int
        How many times the innermost repeated axis repeats.
    """

    name: str
    group: str
    output: tuple[int, ...]
    calls: dict[str, Callable[[str], Results]] = field(compare=False)
    innermost: int = 1

    def nbytes(self, dtype: str) -> int:
        """Count the bytes of the output."""
        return int(np.prod(self.output)) * np.dtype(dtype).itemsize

    def names(self) -> list[str]:
        """Name the competitors that are installed."""
        return [name for name in self.calls if name not in MODULES or importlib.util.find_spec(MODULES[name])]


@dataclass(frozen=True)
class DropCase(Case):
    """A case whose calls are those of a drop-in, each checked once against NumPy."""

    @property
    def innermost(self):
        """How many times the innermost repeated axis repeats."""
        return self.workload.innermost

    def calls(self, names):
        """Make the calls, which have no errors."""
        bcast.set_num_threads(self.threads)
        if "torch" in names or SIZED in names:
            importlib.import_module("torch").set_num_threads(self.threads)
        if "numba" in names:
            use_threads(self.threads)
        if "opencv" in names:
            importlib.import_module("cv2").setNumThreads(self.threads)
        calls = {name: self.workload.calls[name](self.dtype) for name in names}
        expected = self.workload.calls["numpy"](self.dtype)()
        for name, call in calls.items():
            result = call()
            for each, other in zip(*map(as_arrays, (result, expected)), strict=True):
                if each.shape != other.shape or not np.array_equal(each, other):
                    raise AssertionError(f"{name} is wrong in {self.workload.name!r}, {self.dtype}")
        return calls, {}


def as_arrays(result: Any) -> list[NDArray[Any]]:
    """Return what a call has made as a list of arrays."""
    return [np.asarray(each) for each in (result if isinstance(result, tuple) else (result,))]


def data(shape: tuple[int, ...], dtype: str) -> NDArray[Any]:
    """Make data of which neighbouring items and rows differ."""
    return np.resize((np.arange(101) * 37 % 101 + 1).astype(dtype), shape)


def tiles(shape: tuple[int, ...], reps: tuple[int, ...] | int) -> Drop:
    """Describe a call of `tile`."""
    output = np.tile(np.empty(shape, np.uint8), reps).shape
    inner = reps if isinstance(reps, int) else reps[-1]
    return Drop(
        f"tile {shape} by {reps}",
        "tile",
        output,
        {
            "bcast": lambda dtype: bind(bcast.tile, data(shape, dtype), reps),
            "numpy": lambda dtype: bind(np.tile, data(shape, dtype), reps),
        },
        inner,
    )


def repeats(shape: tuple[int, ...], count: int, axis: int | None = None) -> Drop:
    """Describe a call of `repeat` along one axis."""
    along = "" if axis is None else f", axis {axis}"
    return Drop(
        f"repeat {shape} by {count}{along}",
        "repeat",
        np.repeat(np.empty(shape, np.uint8), count, axis).shape,
        {
            "bcast": lambda dtype: bind(bcast.repeat, data(shape, dtype), count, axis),
            "numpy": lambda dtype: bind(np.repeat, data(shape, dtype), count, axis),
        },
        count,
    )


def repeats_each(n: int, mean: float) -> Drop:
    """Describe a call of `repeat` with a count for each item, of 0 to twice the mean."""
    counts = np.random.default_rng(1).integers(0, int(2 * mean) + 1, n)
    total = int(counts.sum())

    def by_torch(dtype: str) -> Results:
        torch = importlib.import_module("torch")
        items, times = torch.from_numpy(data((n,), dtype)), torch.from_numpy(counts)
        return lambda: torch.repeat_interleave(items, times)

    def by_sized_torch(dtype: str) -> Results:
        torch = importlib.import_module("torch")
        items, times = torch.from_numpy(data((n,), dtype)), torch.from_numpy(counts)
        return lambda: torch.repeat_interleave(items, times, output_size=total)

    def by_jax(dtype: str) -> Results:
        jax = importlib.import_module("jax")
        jax.config.update("jax_enable_x64", True)  # otherwise float64 becomes float32
        items, times = jax.numpy.asarray(data((n,), dtype)), jax.numpy.asarray(counts)
        repeat = jax.jit(lambda x, k: jax.numpy.repeat(x, k, total_repeat_length=total))
        return lambda: repeat(items, times).block_until_ready()

    def by_pyarrow(dtype: str) -> Results:
        pyarrow, compute = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.compute")
        some = counts > 0  # runs have items
        ends, items = pyarrow.array(np.cumsum(counts[some])), pyarrow.array(data((n,), dtype)[some])
        runs = pyarrow.RunEndEncodedArray.from_arrays(ends, items)
        return lambda: compute.run_end_decode(runs)

    def by_numba(dtype: str) -> Results:
        items, repeat, threads = data((n,), dtype), repeater(), bcast.get_num_threads()
        return lambda: repeat(items, counts, threads)

    return Drop(
        f"repeat {n:g} items by {mean:g} each, in the mean",
        "repeat, counts",
        (total,),
        {
            "bcast": lambda dtype: bind(bcast.repeat, data((n,), dtype), counts),
            "numpy": lambda dtype: bind(np.repeat, data((n,), dtype), counts),
            "torch": by_torch,
            SIZED: by_sized_torch,
            "jax": by_jax,
            "pyarrow": by_pyarrow,
            "numba": by_numba,
        },
        int(mean),
    )


def unrepeats(n: int, mean: float, width: int = 0) -> Drop:
    """Describe a call of `unrepeat` with a count for each item, of 0 to twice the mean, over rows of a width, or terms.

    Competitors are given counts, as `unrepeat` is, and sum nothing for the empty items.
    """
    counts = np.random.default_rng(1).integers(0, int(2 * mean) + 1, n)
    total, inner = int(counts.sum()), (width,) if width else ()

    def by_numpy(dtype: str) -> Results:
        grad = data((total, *inner), dtype)

        def call() -> NDArray[Any]:
            some = counts > 0
            sums = np.zeros((n, *inner), dtype)
            sums[some] = np.add.reduceat(grad, (counts.cumsum() - counts)[some], 0)
            return sums

        return call

    def by_bincount(dtype: str) -> Results:
        grad = data((total, *inner), dtype)
        return lambda: np.bincount(np.repeat(np.arange(n), counts), grad, n)

    def by_torch(dtype: str) -> Results:
        torch = importlib.import_module("torch")
        grad, lengths = torch.from_numpy(data((total, *inner), dtype)), torch.from_numpy(counts)
        return lambda: torch.segment_reduce(grad, "sum", lengths=lengths, unsafe=True)

    def by_jax(dtype: str) -> Results:
        jax = importlib.import_module("jax")
        jax.config.update("jax_enable_x64", True)  # otherwise float64 becomes float32
        grad, lengths = jax.numpy.asarray(data((total, *inner), dtype)), jax.numpy.asarray(counts)

        @jax.jit
        def call(x: Any, k: Any) -> Any:
            numbers = jax.numpy.repeat(jax.numpy.arange(n), k, total_repeat_length=total)
            return jax.ops.segment_sum(x, numbers, n, indices_are_sorted=True)

        return lambda: call(grad, lengths).block_until_ready()

    return Drop(
        f"unrepeat {n:g} items{f' of {width}' if width else ''} by {mean:g} each, in the mean",
        "unrepeat",
        (total, *inner),
        {
            "bcast": lambda dtype: bind(bcast.unrepeat, data((total, *inner), dtype), counts, 0),
            "numpy": by_numpy,
            **({} if width else {"bincount": by_bincount}),
            "torch": by_torch,
            "jax": by_jax,
        },
        int(mean),
    )


def upsamples(shape: tuple[int, ...], factor: int) -> Drop:
    """Describe nearest upsampling of an image."""
    size = (shape[1] * factor, shape[0] * factor)

    def chained(dtype: str) -> Results:
        image = data(shape, dtype)
        return lambda: np.repeat(np.repeat(image, factor, 0), factor, 1)

    def resized(dtype: str) -> Results:
        cv2, image = importlib.import_module("cv2"), data(shape, dtype)
        return lambda: cv2.resize(image, size, interpolation=cv2.INTER_NEAREST)

    return Drop(
        f"upsample {shape} by {factor}",
        "two axes",
        (size[1], size[0], *shape[2:]),
        {
            "bcast": lambda dtype: bind(bcast.repeat, data(shape, dtype), (factor, factor), (0, 1)),
            "numpy": chained,
            "opencv": resized,
        },
        factor,
    )


def key_values(shape: tuple[int, ...], groups: int) -> Drop:
    """Describe the repeated heads of grouped-query attention, `repeat_kv`."""
    batch, heads, length, depth = shape
    output = (batch, heads * groups, length, depth)

    def expanded(dtype: str) -> Results:
        heads_of = importlib.import_module("torch").from_numpy(data(shape, dtype))
        return lambda: heads_of[:, :, None].expand(batch, heads, groups, length, depth).reshape(output)

    return Drop(
        f"repeat_kv {shape} by {groups}",
        "repeat_kv",
        output,
        {
            "bcast": lambda dtype: bind(bcast.repeat, data(shape, dtype), groups, 1),
            "numpy": lambda dtype: bind(np.repeat, data(shape, dtype), groups, 1),
            "torch": expanded,
        },
        groups,
    )


def grids(lengths: tuple[int, ...]) -> Drop:
    """Describe a dense grid."""
    return Drop(
        f"meshgrid {lengths}",
        "meshgrid",
        (len(lengths), *lengths),
        {
            "bcast": lambda dtype: bind(bcast.meshgrid, *[data((n,), dtype) for n in lengths]),
            "numpy": lambda dtype: bind(np.meshgrid, *[data((n,), dtype) for n in lengths]),
        },
    )


def arrays() -> Drop:
    """Describe a small call of `broadcast_arrays`, of which NumPy makes views."""
    return Drop(
        "broadcast_arrays (4,) and (4, 1)",
        "broadcast_arrays",
        (2, 4, 4),
        {
            "bcast": lambda dtype: bind(bcast.broadcast_arrays, data((4,), dtype), data((4, 1), dtype)),
            "numpy": lambda dtype: bind(np.broadcast_arrays, data((4,), dtype), data((4, 1), dtype)),
        },
    )


def sums(a_shape: tuple[int, ...], b_shape: tuple[int, ...], view: tuple[int, ...], **rule: Any) -> Drop:
    """Describe a call of `elementwise`, beside the ufunc and a view of the shape it needs."""
    name = ", ".join([f"{key} {value}" for key, value in rule.items()])
    return Drop(
        f"add {a_shape} and {b_shape}, {name}",
        "elementwise",
        a_shape,
        {
            "bcast": lambda dtype: bind(bcast.elementwise, np.add, data(a_shape, dtype), data(b_shape, dtype), **rule),
            "numpy": lambda dtype: bind(np.add, data(a_shape, dtype), data(b_shape, dtype).reshape(view)),
        },
    )


def converts(name: str, shape: tuple[int, ...], output: tuple[int, ...], own: str) -> Drop:
    """Describe a broadcast to another dtype, beside conversions before it and after it."""

    def by_torch(dtype: str) -> Results:
        torch = importlib.import_module("torch")
        tensor, wanted = torch.from_numpy(data(shape, own)), getattr(torch, dtype)
        return lambda: tensor.to(wanted).expand(output).contiguous()

    def by_numpy(dtype: str) -> Results:
        array = data(shape, own)
        return lambda: np.ascontiguousarray(np.broadcast_to(array.astype(dtype), output))

    def by_numpy_last(dtype: str) -> Results:
        array = data(shape, own)
        return lambda: np.broadcast_to(array, output).astype(dtype, order="C")

    def by_dtype(dtype: str) -> Results:
        array = data(shape, own)
        return lambda: bcast.broadcast(array, output, dtype=dtype)

    def by_two_calls(dtype: str) -> Results:
        array = data(shape, own)
        return lambda: bcast.broadcast(array.astype(dtype), output)

    return Drop(
        f"dtype, {name}",
        "dtype",
        output,
        {
            "bcast": by_dtype,
            TWO_CALLS: by_two_calls,
            "numpy": by_numpy,
            LAST: by_numpy_last,
            "torch": by_torch,
        },
        output[-1] // shape[-1],
    )


def bind(function: Callable[..., Any], *arguments: Any, **named: Any) -> Results:
    """Make a call without arguments."""
    if named:
        mode, axis = named["mode"], named.get("axis", -1)
        ufunc, a, b = arguments
        return lambda: function(ufunc, a, b, mode=mode, axis=axis)
    if len(arguments) == 2:
        first, second = arguments
        return lambda: function(first, second)
    return lambda: function(*arguments)


CALLS = [
    (tiles((4,), (4, 1)), ["float32"]),
    (tiles((4,), 4), ["float32"]),
    (tiles((2, 3), (2, 2)), ["float32"]),
    (repeats((4,), 4), ["float32"]),
    (repeats((2, 3), 2, 0), ["float32"]),
    (arrays(), ["float32"]),
    (grids((4, 4)), ["float32"]),
    (tiles((3,), 1000), ["uint8", "float64"]),
    (tiles((3,), 1_000_000), ["uint8", "float64"]),
    (tiles((1000,), (1000, 1)), ["uint8", "float32"]),
    (tiles((270, 480, 3), (2, 2, 1)), ["uint8", "float32"]),
    (tiles((1000, 100), (1, 10)), ["uint8", "float32"]),
    (tiles((100_000, 2), (1, 3)), ["uint8", "float32"]),
    *[(repeats((1_000_000,), count), ["uint8", "float32", "float64"]) for count in (2, 3, 4)],
    (repeats((1000,), 3), ["uint8", "float64"]),
    (repeats((100_000,), 100), ["uint8", "float32"]),
    (repeats((1000, 1000), 3, 0), ["uint8", "float32"]),
    (repeats((1000, 1000), 3, 1), ["uint8", "float32"]),
    (repeats((100, 100, 100), 2, 1), ["uint8", "float32"]),
    (repeats((1_000_000, 3), 4, 1), ["uint8"]),
    (repeats((1_000_000, 3), 2, 0), ["uint8", "float32"]),
    *[
        (repeats_each(n, mean), ["uint8", "float32", "float64"])
        for n in (128, 2000, 100_000, 1_000_000)
        for mean in (0.5, 2, 4, 30, 100)
    ],
    (repeats_each(10_000_000, 2), ["uint8", "float32"]),
    *[
        (unrepeats(n, mean, width), ["float32"] if width > 3 else ["float32", "float64"])
        for n in (128, 2000, 100_000, 1_000_000)
        for mean in (0.5, 2, 4, 30, 100)
        for width in (0, 3, 64)
        if n * mean * max(width, 1) <= 20_000_000
    ],
    (upsamples((270, 480, 3), 2), ["uint8", "float32"]),
    (upsamples((1080, 1920), 2), ["uint8", "float32"]),
    (upsamples((540, 960, 3), 4), ["uint8", "float32"]),
    (key_values((1, 8, 1024, 128), 4), ["float16", "float32"]),
    (key_values((4, 8, 2048, 64), 8), ["float16", "float32"]),
    (grids((512, 512)), ["float32"]),
    (grids((1000, 1000)), ["float32", "float64"]),
    (grids((4000, 3000)), ["uint8", "float32"]),
    (grids((100, 100, 100)), ["float64"]),
    (converts("gray to RGB, bytes", (1080, 1920, 1), (1080, 1920, 3), "uint8"), ["float32"]),
    (converts("4K gray to RGB, bytes", (2160, 3840, 1), (2160, 3840, 3), "uint8"), ["float32"]),
    (converts("mask of 8 x 8 heads", (1, 1, 512, 512), (8, 8, 512, 512), "bool"), ["float32"]),
    (converts("bias of float64, rows", (1, 1000), (10_000, 1000), "float64"), ["float32"]),
    (converts("float32, each item by 4", (1000, 1000, 1), (1000, 1000, 4), "float32"), ["float16"]),
    (converts("float64, each item by 3", (2000, 4000, 1), (2000, 4000, 3), "float64"), ["float32"]),
    (converts("a short row", (1, 4), (3, 4), "uint8"), ["float32"]),
    (sums((4,), (4,), (4,), mode="none"), ["float32"]),
    (sums((4, 4), (4,), (4,), mode="numpy"), ["float32"]),
    (sums((4, 4), (4,), (4,), mode="unidirectional"), ["float32"]),
    (sums((2, 3, 4, 5), (5,), (5,), mode="pdpd"), ["float32"]),
    (sums((2, 3, 4, 5), (3, 4), (1, 3, 4, 1), mode="pdpd", axis=1), ["float32"]),
]


def drops(threads: int) -> Iterator[tuple[DropCase, list[str]]]:
    """Yield each case with its competitors."""
    for drop, dtypes in CALLS:
        for dtype in dtypes:
            yield DropCase("numpy", drop, dtype, "fresh", threads, SECONDS), drop.names()


def cases(config):
    """Yield the drop-ins."""
    yield from drops(config.getoption("threads"))


def test_numpy(timed):
    timed()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=cpus(), help="of each competitor (default: %(default)s)")
    parser.add_argument("-k", dest="words", default="", help="only what has this in its name")
    arguments = parser.parse_args()
    with bound(arguments.threads):
        print(machine(arguments.threads), file=sys.stderr)
        print("| call | dtype | MB | bcast, us | NumPy / bcast | peer / bcast | added, ns |")
        print("| --- | --- | --: | --: | --: | --: | --: |")
        for case, names in drops(arguments.threads):
            drop = case.workload
            if arguments.words not in case.name:
                continue
            times = measure(case.calls(names)[0], case.seconds * len(names))
            best = {name: min(rounds) for name, rounds in times.items()}
            own = best["bcast"]
            peers = ", ".join([f"{best[name] / own:.2f} {name}" for name in names if name not in ("bcast", "numpy")])
            added = f"{(own - best['numpy']) * 1e9:.0f}" if drop.group == "elementwise" else ""
            print(
                f"| {drop.name} | {case.dtype} | {drop.nbytes(case.dtype) / 1e6:.3g} | {own * 1e6:.3g} "
                f"| {best['numpy'] / own:.2f} | {peers} | {added} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
