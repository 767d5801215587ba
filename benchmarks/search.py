"""A search for slow calls: every public function with random dtypes, shapes and layouts, beside NumPy.

Each call is drawn from the seed and its number, and timed by turns with NumPy's; the fastest turn of each counts.
Suspects are timed again by more turns, and those that look worst once more at the end. `--seed N --case M` times one
call again.

Layouts are those that nobody plans for: axes in any order, at steps, backwards, or repeated by a stride of 0. Calls
have from 256 to `--items` items, as often a few as many.
"""

import math
import random
import warnings
from argparse import Namespace
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter, sleep
from typing import Any

import numpy as np

import bcast
from bcast._benchmark import timing
from benchmarks.harness import mean

__all__ = ["SearchedCall", "drawn", "measure_search"]

Array = np.ndarray[Any, Any]
Call = Callable[[], Any]

REST_SECONDS = 2e-4  # before a turn, in which bcast's threads go to sleep
WARM_UP_SECONDS = 1e-5  # one call, which leaves the caches as the call itself does
SUSPECT = 1.1  # times as long as NumPy's: timed again at once
TURNS = (2, 10, 40)  # at first, of suspects, of the worst
SHOWN = 20  # calls, the worst of all

NUMBERS = ("u1", "i1", "i2", "u2", "i4", "i8", "u8", "f2", "f4", "f8", "F", "D")
REALS = NUMBERS[:-2]
COPIED = ("?", *NUMBERS, "S3", "M8[s]")
LENGTHS = (1, 2, 2, 3, 3, 4, 5, 7, 8, 9, 16, 17, 31, 32, 64, 100, 128, 500, 1000, 2000, 8192, 40_000)
STEPS = (2, 3, 8, 16)
PERIOD = 10_007  # items after which they come again
OF_TWO = ("add", "subtract", "multiply", "divide", "maximum", "floor_divide", "remainder", "less", "equal", "hypot")
OF_ONE = ("square", "absolute", "negative", "sqrt", "sign")


@dataclass
class SearchedCall:
    """The same call of bcast and of NumPy, and a title that has its dtypes, shapes and layouts."""

    title: str
    ours: Call
    numpys: Call


class Draw:
    """The source of a case: random choices, and the approximate number of its items."""

    def __init__(self, seed: int, number: int, most: int) -> None:
        self.rng = random.Random(f"{seed}-{number}")
        self.items = math.exp(self.rng.uniform(math.log(256), math.log(most)))

    def shape(self, items: float = 0) -> tuple[int, ...]:
        """Draw a shape of about `items` items, or of as many as the case has."""
        items = items or self.items
        lengths: list[int] = []
        for _ in range(self.rng.choice((0, 1, 1, 1, 2, 2, 2, 3, 4))):
            left = items / math.prod(lengths)
            lengths.append(self.rng.choice([length for length in LENGTHS if length <= left]))
        lengths.append(max(1, int(items / math.prod(lengths))))
        self.rng.shuffle(lengths)
        return tuple(lengths)

    def part_of(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Draw a shape that broadcasts to another."""
        lengths = tuple(1 if self.rng.random() < 0.4 else length for length in shape)
        return lengths[self.rng.randrange(len(shape)) :] if self.rng.random() < 0.2 else lengths

    def axes(self, rank: int) -> tuple[int, ...]:
        """Draw axes, at least one."""
        return tuple(sorted(self.rng.sample(range(rank), self.rng.randint(1, rank))))

    def array(self, shape: tuple[int, ...], dtype: str, repeats: bool = True) -> tuple[str, Array]:
        """Draw an array of any layout, and words for it; unless it `repeats` items by strides, it is writeable."""
        kind = self.rng.choice(("C", "C", "order", "steps", "steps", "both", "repeated", "backwards"))
        own, order, steps = list(shape), list(range(len(shape))), [1] * len(shape)
        if kind in ("order", "both"):
            self.rng.shuffle(order)
        if kind in ("steps", "both"):
            steps[self.rng.randrange(len(shape))] = self.rng.choice(STEPS)
        if kind == "backwards" or (kind in ("steps", "both") and self.rng.random() < 0.3):
            axis = self.rng.randrange(len(shape))
            steps[axis] = -steps[axis]
        if kind == "repeated" and repeats:
            own[self.rng.randrange(len(shape))] = 1
        lengths = [own[axis] * abs(steps[axis]) for axis in order]
        array = self.items_of(math.prod(lengths), dtype).reshape(lengths)
        array = array.transpose([order.index(axis) for axis in range(len(shape))])
        array = array[tuple(slice(None, None, step) for step in steps)]
        words = f"{dtype}{shape}"
        words += f" at steps {steps}" * any(step != 1 for step in steps)
        words += f" by order {order}" * (order != sorted(order))
        if tuple(own) != shape:
            return f"{words} repeated from {own}", np.broadcast_to(array, shape)
        return words, array

    def items_of(self, size: int, dtype: str) -> Array:
        """Draw small numbers, none of them 0: no function warns, and none has a way of its own for a part of them."""
        items = np.random.default_rng(self.rng.randrange(2**32)).integers(1, 100, min(size, PERIOD))
        return np.resize((items & 1).astype(bool) if dtype == "?" else items.astype(dtype), size)


def draw_copy(draw: Draw) -> SearchedCall:
    """Draw a broadcast, new or into `out`."""
    dtype, shape = draw.rng.choice(COPIED), draw.shape()
    words, data = draw.array(draw.part_of(shape), dtype)
    title = f"broadcast {words} to {shape}"
    if draw.rng.random() < 0.3:
        out_words, out = draw.array(shape, dtype, repeats=False)
        title += f" out={out_words}"
        return SearchedCall(title, lambda: bcast.broadcast(data, shape, out=out), lambda: np.copyto(out, data))
    return SearchedCall(title, lambda: bcast.broadcast(data, shape), lambda: np.broadcast_to(data, shape).copy())


def draw_conversion(draw: Draw) -> SearchedCall:
    """Draw a broadcast to another dtype."""
    dtype, wanted = draw.rng.choice(NUMBERS), draw.rng.choice(NUMBERS)
    if np.dtype(dtype).kind == "c" != np.dtype(wanted).kind:
        wanted = "D"
    shape = draw.shape()
    words, data = draw.array(draw.part_of(shape), dtype)
    return SearchedCall(
        f"broadcast {words} to {shape} dtype={wanted}",
        lambda: bcast.broadcast(data, shape, dtype=wanted, casting="unsafe"),
        lambda: np.broadcast_to(data, shape).astype(wanted, "C"),
    )


def draw_repeat(draw: Draw) -> SearchedCall:
    """Draw a call of `repeat`, by one count or by counts."""
    rng = draw.rng
    count = rng.choice((2, 3, 4, 7, 30))
    words, data = draw.array(draw.shape(max(2, draw.items / count)), rng.choice(COPIED))
    axis = rng.randrange(data.ndim)
    counts: Any = count
    if rng.random() < 0.4:
        counts = np.array([rng.randint(0, 2 * count) for _ in range(data.shape[axis])])
        words += f" by counts of 0 to {2 * count}"
    else:
        words += f" by {count}"
    return SearchedCall(
        f"repeat {words} axis={axis}",
        lambda: bcast.repeat(data, counts, axis),
        lambda: np.repeat(data, counts, axis),
    )


def draw_tile(draw: Draw) -> SearchedCall:
    """Draw a call of `tile`."""
    shape = draw.shape(max(2, draw.items / 6))
    words, data = draw.array(shape, draw.rng.choice(COPIED))
    reps = tuple(draw.rng.choice((1, 1, 2, 3, 6)) for _ in range(draw.rng.randint(1, len(shape) + 1)))
    return SearchedCall(f"tile {words} by {reps}", lambda: bcast.tile(data, reps), lambda: np.tile(data, reps))


def draw_sum(draw: Draw) -> SearchedCall:
    """Draw a sum, a mean, a variance or a deviation."""
    name = draw.rng.choice(("sum", "sum", "mean", "var", "std"))
    words, data = draw.array(draw.shape(), draw.rng.choice(NUMBERS))
    options: dict[str, Any] = {"axis": draw.axes(data.ndim)}
    title = f"{name} {words} axis={options['axis']}"
    if name == "sum" and draw.rng.random() < 0.2:
        options["dtype"] = data.dtype
        title += f" dtype={data.dtype}"
    if draw.rng.random() < 0.3:
        out = np.zeros_like(getattr(np, name)(data, **options))
        options["out"] = np.array(out, order="C" if draw.rng.random() < 0.5 else "F")
        title += f" out={'C' if options['out'].flags.c_contiguous else 'F'}"
    ours, numpys = getattr(bcast, name), getattr(np, name)
    return SearchedCall(title, lambda: ours(data, **options), lambda: numpys(data, **options))


def draw_adjoint(draw: Draw) -> SearchedCall:
    """Draw a call of `unbroadcast`, of products or not."""
    words, grad = draw.array(draw.shape(), draw.rng.choice(NUMBERS))
    axes = draw.axes(grad.ndim)
    shape = tuple(1 if axis in axes else length for axis, length in enumerate(grad.shape))
    title = f"unbroadcast {words} to {shape}"
    if draw.rng.random() < 0.3:
        times_words, times = draw.array(draw.part_of(grad.shape), grad.dtype.char)
        return SearchedCall(
            f"{title} times={times_words}",
            lambda: bcast.unbroadcast(grad, shape, times=times),
            lambda: (grad * times).sum(axes, grad.dtype, keepdims=True),
        )
    return SearchedCall(
        title, lambda: bcast.unbroadcast(grad, shape), lambda: np.sum(grad, axes, grad.dtype, keepdims=True)
    )


def draw_counted(draw: Draw) -> SearchedCall:
    """Draw a call of `unrepeat`."""
    words, grad = draw.array(draw.shape(), draw.rng.choice(NUMBERS))
    axis = draw.rng.randrange(grad.ndim)
    starts = sorted(draw.rng.sample(range(grad.shape[axis]), draw.rng.randint(0, grad.shape[axis] // 2)) + [0])
    starts = sorted(set(starts))
    counts = np.diff([*starts, grad.shape[axis]])
    return SearchedCall(
        f"unrepeat {words} axis={axis} of {len(counts)} items",
        lambda: bcast.unrepeat(grad, counts, axis),
        lambda: np.add.reduceat(grad, starts, axis, grad.dtype),
    )


def draw_operands(draw: Draw, count: int, dtypes: tuple[str, ...]) -> tuple[str, list[Any]]:
    """Draw operands that broadcast together, mostly of one dtype; one of two may be a number."""
    shape, dtype = draw.shape(), draw.rng.choice(dtypes)
    words: list[str] = []
    operands: list[Any] = []
    for number in range(count):
        own = draw.rng.choice(dtypes) if draw.rng.random() < 0.25 else dtype
        if number > 0 and draw.rng.random() < 0.2:
            words.append("3")
            operands.append(3)
            continue
        described, array = draw.array(shape if number == 0 else draw.part_of(shape), own)
        words.append(described)
        operands.append(array)
    return ", ".join(words), operands


def draw_elementwise(draw: Draw) -> SearchedCall:
    """Draw a function of two operands."""
    name = draw.rng.choice(OF_TWO)
    dtypes = NUMBERS if name in ("add", "subtract", "multiply", "equal") else REALS
    words, (a, b) = draw_operands(draw, 2, dtypes)
    ufunc = getattr(np, name)
    return SearchedCall(f"elementwise {name} {words}", lambda: bcast.elementwise(ufunc, a, b), lambda: ufunc(a, b))


def draw_where(draw: Draw) -> SearchedCall:
    """Draw a call of `where`."""
    words, (x, y) = draw_operands(draw, 2, COPIED[:-2])
    mask_words, mask = draw.array(draw.part_of(x.shape), "?")
    return SearchedCall(f"where {mask_words}, {words}", lambda: bcast.where(mask, x, y), lambda: np.where(mask, x, y))


def draw_chain(draw: Draw) -> SearchedCall:
    """Draw a chain of up to four steps."""
    words, operands = draw_operands(draw, draw.rng.randint(2, 4), REALS)
    data, steps, names = operands[0], list[Any](), list[str]()
    for operand in operands[1:]:
        names.append(draw.rng.choice(OF_TWO[:5]))
        steps.append((getattr(np, names[-1]), operand))
    if draw.rng.random() < 0.3:
        names.append(draw.rng.choice(OF_ONE[:2]))
        steps.append(getattr(np, names[-1]))

    def by_numpy() -> Any:
        result = data
        for step in steps:
            result = step[0](result, step[1]) if isinstance(step, tuple) else step(result)
        return result

    return SearchedCall(f"chain {' '.join(names)} of {words}", lambda: bcast.chain(data, *steps), by_numpy)


def draw_pipeline(draw: Draw) -> SearchedCall:
    """Draw what makes pictures and measurements ready: scaled, rounded and cut, and mostly converted."""
    rng = draw.rng
    words, data = draw.array(draw.shape(), rng.choice(REALS))
    names, steps = list[str](), list[Any]()
    if rng.random() < 0.5:
        factor = rng.choice((0.5, np.float32(0.25), draw.items_of(data.shape[-1], "f4") / 64))
        names.append(f"scaled by {np.ndim(factor)} axes of {type(factor).__name__}")
        steps.append((np.multiply, factor))
    if (steps or data.dtype.kind == "f") and rng.random() < 0.5:  # integers alone stay what they are
        decimals = rng.choice((0, 0, 1, 2))
        names.append(f"round {decimals}")
        steps.append((np.round, decimals))
    if not steps or rng.random() < 0.6:
        bounds: tuple[tuple[Any, Any], ...] = (
            (10, 50),
            (10.0, 50.0),
            (np.float32(10), np.float32(50)),
            (10, None),
            (None, 50),
        )
        low, high = rng.choice(bounds)
        if low is not None and rng.random() < 0.3:
            low = np.full(data.shape[-1], 10, data.dtype)
        names.append(f"clip by {type(low).__name__}, {type(high).__name__}")
        steps.append((np.clip, low, high))
    wanted = rng.choice((None, "u1", "f2", "f4", "f8", "i8"))

    def by_numpy() -> Any:
        result = data
        for function, *operands in steps:
            result = function(result, *operands)
        return np.ascontiguousarray(result) if wanted is None else result.astype(wanted, "C")

    title = f"chain {', '.join(names)}{' to ' + wanted if wanted else ''} of {words}"
    if wanted is None:
        return SearchedCall(title, lambda: bcast.chain(data, *steps), by_numpy)
    return SearchedCall(
        title, lambda: bcast.chain(data, *steps, casting="unsafe", out=np.empty(data.shape, wanted)), by_numpy
    )


DRAWN = (
    *(draw_copy, draw_copy, draw_conversion, draw_repeat, draw_tile),
    *(draw_sum, draw_sum, draw_sum, draw_adjoint, draw_counted),
    *(draw_elementwise, draw_elementwise, draw_where, draw_chain, draw_pipeline),
)


def drawn(seed: int, number: int, most: int) -> SearchedCall:
    """Draw a case from a seed and its number alone."""
    draw = Draw(seed, number, most)
    return draw.rng.choice(DRAWN)(draw)


def ratio(case: SearchedCall, turns: int) -> tuple[float, float]:
    """Return how many times as long as NumPy's call ours takes, and the seconds that ours takes."""
    calls = {"bcast": case.ours, "numpy": case.numpys}
    times = timing.measure(calls, 0, WARM_UP_SECONDS, lambda: sleep(REST_SECONDS), turns)
    ours, numpys = min(times["bcast"]), min(times["numpy"])
    return ours / numpys, ours


def search(options: Namespace) -> list[tuple[float, int]]:
    """Time random calls for so long; return for each how many times as long as NumPy's it takes, and its number."""
    end = perf_counter() + 0.8 * options.seconds
    found: list[tuple[float, int]] = []
    number = 0
    while perf_counter() < end:
        case = drawn(options.seed, number, options.items)
        if options.only in case.title:
            times, _ = ratio(case, TURNS[0])
            if times > SUSPECT:
                times, _ = ratio(case, TURNS[1])
            found.append((times, number))
        number += 1
    return found


def measure_search(options: Namespace) -> None:
    """Print the calls that take longest beside NumPy's; or one of them, where `--case` has its number."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        found = [(0.0, options.case)] if options.case is not None else search(options)
        suspects = sorted(found, reverse=True)[: 2 * SHOWN]
        worst = []
        for _, number in suspects:
            case = drawn(options.seed, number, options.items)
            worst.append((*ratio(case, TURNS[2]), number, case.title))

    print("| case | bcast / NumPy | bcast, us | call |\n|--:|--:|--:|---|")
    for times, seconds, number, title in sorted(worst, reverse=True)[:SHOWN]:
        print(f"| {number} | {times:.2f} | {seconds * 1e6:.1f} | {title} |")
    if options.case is None and found:
        over = Counter(limit for limit in (1.1, 1.3, 2) for times, _ in found if times > limit)
        above = ", ".join(f"{over[limit]} above {limit}" for limit in (1.1, 1.3, 2))
        middle = 1 / mean(times for times, _ in found)
        print(f"\n{len(found)} calls; NumPy takes {middle:.2f} times as long in the geometric mean; {above}")
