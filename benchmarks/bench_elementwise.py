"""Functions of two operands, and `where`: bcast beside NumPy and the installed peers, in one run.

    python benchmarks/bench_elementwise.py --threads 2 [--rounds 7] [--only SUBSTRING] [--markdown]

Calls of all systems take turns. Before each turn comes a pause of 20 ms, in which other systems' threads fall asleep;
the least time of all rounds counts. Peers are torch, a jitted function of jax, and numexpr: each with as many threads.
Outputs are warm: made before, and written again. jax has none, and makes its own. Peers whose result is not NumPy's in
dtype are left out.
"""

import argparse
import math
import os
import time
from importlib.util import find_spec

import numpy as np

import bcast

PAUSE = 0.02
TURN = 2e-3  # seconds of one turn

# What is measured: a name, the shapes, and whether an operand is broadcast.
SHAPES = {
    "same, 4 KiB": ((32, 32), (32, 32)),
    "same, 4 MiB": ((1024, 1024), (1024, 1024)),
    "same, 64 MiB": ((4096, 4096), (4096, 4096)),
    "scalar": ((1000, 1000), ()),
    "rows of 2": ((500_000, 2), (2,)),
    "rows of 3": ((1_000_000, 3), (3,)),
    "rows of 3, 12 KB": ((1000, 3), (3,)),
    "rows of 16": ((60_000, 16), (16,)),
    "rows of 128": ((8000, 128), (128,)),
    "rows of 1000": ((1000, 1000), (1000,)),
    "picture, mask": ((720, 1280, 3), (720, 1280, 1)),
    "columns": ((4096, 768), (4096, 1)),
    "outer": ((2000, 1), (1, 2000)),
    "pairs": ((500, 1, 3), (1, 500, 3)),
    "attention mask": ((8, 12, 128, 128), (8, 1, 1, 128)),
    "channels first": ((32, 64, 56, 56), (64, 1, 1)),
    "alternating": ((16, 1, 64, 1), (16, 1, 64)),
    "4 x 4": ((4, 4), (4, 4)),
    "4 x 4, row": ((4, 4), (4,)),
}
TURNED = {"transposed": ((1000, 1000), (1000, 1000))}  # the first operand is
FUNCTIONS = {
    "float32": ("add", "multiply", "divide", "maximum", "less", "power", "hypot"),
    "float64": ("add", "multiply"),
    "float16": ("add", "multiply"),
    "uint8": ("add", "equal"),
    "int64": ("add", "floor_divide"),
    "uint8, float32": ("multiply",),
}
SIGNS = {"add": "+", "multiply": "*", "divide": "/", "less": "<", "equal": "==", "power": "**"}


def items(shape, dtype, rng):
    values = rng.random(shape) * 4 + 1
    return values.astype(dtype)


def cases():
    """Yield a name, NumPy's function and the operands of each case."""
    rng = np.random.default_rng(0)
    for dtypes, names in FUNCTIONS.items():
        first, _, second = dtypes.partition(", ")
        for shape, (a_shape, b_shape) in (SHAPES | TURNED).items():
            a, b = items(a_shape, first, rng), items(b_shape, second or first, rng)
            if shape in TURNED:
                a = a.T
            for name in names:
                yield f"{shape}: {name} of {dtypes}", getattr(np, name), a, b


def choices():
    """Yield the cases of `where`."""
    rng = np.random.default_rng(0)
    for dtype in ("uint8", "float32"):
        picture, colour = items((720, 1280, 3), dtype, rng), items((3,), dtype, rng)
        mask = rng.random((720, 1280, 1)) < 0.5
        yield f"picture where a mask says: {dtype}", mask, picture, colour


def of_torch(name, threads, operands):
    import torch

    torch.set_num_threads(threads)
    function = {"equal": "eq", "power": "pow"}.get(name, name)
    tensors = [torch.from_numpy(array) for array in operands]
    out = getattr(torch, function)(*tensors)
    return lambda: getattr(torch, function)(*tensors, out=out), np.asarray(out)


def of_jax(name, _threads, operands):
    import jax

    jax.config.update("jax_enable_x64", True)
    function = jax.jit(getattr(jax.numpy, name))
    arrays = [jax.numpy.asarray(array) for array in operands]
    return lambda: function(*arrays).block_until_ready(), np.asarray(function(*arrays))


def of_numexpr(name, threads, operands):
    import numexpr

    if name not in SIGNS or operands[0].dtype.kind not in "f" or operands[0].dtype.itemsize == 2:
        return None
    numexpr.set_num_threads(threads)
    a, b = operands
    text = f"a {SIGNS[name]} b"
    names = {"a": a, "b": b}
    out = numexpr.evaluate(text, names)
    return lambda: numexpr.evaluate(text, names, out=out), out


PEERS = {"torch": of_torch, "jax": of_jax, "numexpr": of_numexpr}


def prepared(name, threads, mine, numpys, operands, peers):
    """Prepare the call of each system whose result has NumPy's dtype."""
    calls = {"bcast": mine, "numpy": numpys[0]}
    for peer in peers:
        try:
            found = PEERS[peer](name, threads, operands)
        except (TypeError, RuntimeError, NotImplementedError, AttributeError):
            continue
        if found is not None and found[1].dtype == numpys[1].dtype:
            calls[peer] = found[0]
    return calls


def measured(calls, rounds):
    """Return the least seconds that each call takes."""
    counts = {}
    for name, call in calls.items():
        call()
        begin = time.perf_counter()
        call()
        counts[name] = max(1, min(5000, int(TURN / max(1e-7, time.perf_counter() - begin))))
    least = dict.fromkeys(calls, math.inf)
    for _ in range(rounds):
        for name, call in calls.items():
            time.sleep(PAUSE)
            call()
            begin = time.perf_counter()
            for _ in range(counts[name]):
                call()
            least[name] = min(least[name], (time.perf_counter() - begin) / counts[name])
    return least


def show(title, least, markdown):
    peers = {name: seconds for name, seconds in least.items() if name not in ("bcast", "numpy")}
    peer, best = min(peers.items(), key=lambda pair: pair[1], default=("none", math.nan))
    ours, numpys = least["bcast"], least["numpy"]
    columns = [title, f"{ours * 1e6:.2f}", f"{numpys * 1e6:.2f}", f"{numpys / ours:.2f}"]
    columns += [f"{best * 1e6:.2f} {peer}", f"{best / ours:.2f}"]
    print(f"| {' | '.join(columns)} |" if markdown else "  ".join(f"{column:>12}" for column in columns), flush=True)
    return numpys / ours, best / ours


def mean(ratios):
    ratios = [ratio for ratio in ratios if ratio == ratio]
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else math.nan


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="", help="a part of the names of the cases")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    bcast.set_num_threads(options.threads)
    peers = [name for name in PEERS if find_spec(name)]
    print(f"NumPy {np.__version__}; peers: {', '.join(peers) or 'none'}; threads: {options.threads}")
    print("| case | bcast, us | NumPy, us | NumPy / bcast | best peer, us | peer / bcast |\n|---|--:|--:|--:|--:|--:|")
    of_numpy, of_peers, of_broadcasts = [], [], []
    for title, function, a, b in cases():
        if options.only not in title:
            continue
        out = function(a, b)
        calls = prepared(
            function.__name__,
            options.threads,
            lambda f=function, a=a, b=b, out=out: bcast.elementwise(f, a, b, out=out),
            (lambda f=function, a=a, b=b, out=out: f(a, b, out=out), out),
            (a, b),
            peers,
        )
        ratios = show(title, measured(calls, options.rounds), options.markdown)
        of_numpy.append((ratios[0], title))
        of_peers.append((ratios[1], title))
        if a.shape != b.shape and out.nbytes >= 1 << 16:
            of_broadcasts.append(ratios[0])
    for title, mask, x, y in choices():
        if options.only in title:
            out = np.where(mask, x, y)
            calls = {
                "bcast": lambda mask=mask, x=x, y=y, out=out: bcast.where(mask, x, y, out=out),
                "numpy": lambda mask=mask, x=x, y=y: np.where(mask, x, y),
            }
            show(title, measured(calls, options.rounds), options.markdown)
    print(f"\nmean: {mean(ratio for ratio, _ in of_numpy):.2f} of NumPy's speed, {mean(of_broadcasts):.2f} where an ")
    print(
        f"operand is broadcast and the result has 64 KiB or more; {mean(ratio for ratio, _ in of_peers):.2f} of peers'"
    )
    print("below 0.95 of NumPy:", *[f"\n  {title}: {ratio:.2f}" for ratio, title in of_numpy if ratio < 0.95])
    print("lost to the best peer:", *[f"\n  {title}: {ratio:.2f}" for ratio, title in of_peers if ratio < 1])


if __name__ == "__main__":
    main()
