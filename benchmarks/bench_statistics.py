"""`sum`, `mean`, `var` and `std`: bcast beside NumPy and the installed peers, in one run.

    python benchmarks/bench_statistics.py --threads 2 [--rounds 7] [--only SUBSTRING] [--summary]

Each system does what its user would write: torch and jax by their own functions (jax's are jitted), bottleneck on one
thread, where it has one axis, and numba by two loops in parallel, where an array has two axes. Bytes become float64
for means and deviations. Turns are those of `bench_elementwise.py`. The table has the time of each, divided by that of
bcast, and the error of NumPy and of bcast in units in the last place.
"""

import argparse
import os
from importlib.util import find_spec

import numpy as np
from bench_elementwise import mean as geometric_mean
from bench_elementwise import measured

import bcast

NAMES = "sum", "mean", "var", "std"
DTYPES = "u1", "f2", "f4", "f8"
SHAPES = [
    ((1_000_000, 2), 1),
    ((1_000_000, 3), 1),
    ((200_000, 16), 1),
    ((50_000, 64), 1),
    ((1_000_000, 3), 0),
    ((2000, 2000), 1),
    ((2000, 2000), 0),
    ((1080, 1920, 3), (0, 1)),
    ((1080, 1920, 3), 2),
    ((32, 3, 224, 224), (0, 2, 3)),
]


def of_torch(name, data, axis, threads):
    import torch

    torch.set_num_threads(threads)
    tensor = torch.from_numpy(data)
    options = {} if name in ("sum", "mean") else {"correction": 0}
    if data.dtype == np.uint8 and name == "mean":
        options["dtype"] = torch.float64
    function = getattr(torch, name)
    if data.dtype == np.uint8 and name in ("var", "std"):
        return lambda: function(tensor.double(), axis, **options)
    return lambda: function(tensor, axis, **options)


def of_jax(name, data, axis, _threads):
    import jax

    jax.config.update("jax_enable_x64", True)
    wide = {"dtype": "f8"} if data.dtype == np.uint8 and name != "sum" else {}
    function = jax.jit(lambda x: getattr(jax.numpy, name)(x, axis=axis, **wide))
    array = jax.numpy.asarray(data)
    return lambda: function(array).block_until_ready()


def of_bottleneck(name, data, axis, _threads):
    import bottleneck

    if not isinstance(axis, int) or data.dtype not in (np.float32, np.float64):
        return None
    return lambda: getattr(bottleneck, f"nan{name}")(data, axis)


def of_numba(name, data, axis, threads):
    import numba

    if data.ndim != 2 or data.dtype == np.float16:
        return None
    numba.set_num_threads(threads)
    is_sum, is_mean, is_root = name == "sum", name == "mean", name == "std"

    @numba.njit(parallel=True)
    def of_rows(rows):
        result = np.empty(rows.shape[0])
        for i in numba.prange(rows.shape[0]):
            total = 0.0
            for j in range(rows.shape[1]):
                total += rows[i, j]
            if not is_sum:
                total /= rows.shape[1]
            if not (is_sum or is_mean):
                squares = 0.0
                for j in range(rows.shape[1]):
                    squares += (rows[i, j] - total) ** 2
                total = squares / rows.shape[1]
            result[i] = np.sqrt(total) if is_root else total
        return result

    rows = data if axis == 1 else data.T
    of_rows(rows)
    return lambda: of_rows(rows)


PEERS = {"torch": of_torch, "jax": of_jax, "bottleneck": of_bottleneck, "numba": of_numba}


def worst(result, data, name, axis):
    """Return the largest error of a result in units in the last place."""
    wide = data.astype("i8" if data.dtype == np.uint8 and name == "sum" else "g")
    right = getattr(np, name)(wide, axis=axis)
    with np.errstate(all="ignore"):
        unit = np.spacing(np.abs(right).astype(result.dtype)) if result.dtype.kind == "f" else 1
        return float(np.nanmax(np.abs(result.astype(right.dtype) - right) / unit))


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="", help="a part of the names of the cases")
    parser.add_argument("--summary", action="store_true", help="only print the means, and the cells that are lost")
    options = parser.parse_args()
    bcast.set_num_threads(options.threads)
    peers = {name: make for name, make in PEERS.items() if find_spec(name)}
    print(f"NumPy {np.__version__}; threads: {options.threads}")
    print(f"| case | bcast, us | numpy | {' | '.join(peers)} | ulp: bcast | numpy |\n|---{'|--:' * (len(peers) + 4)}|")
    of_numpy, of_best = [], []
    for shape, axis in SHAPES:
        for dtype in DTYPES:
            data = (np.random.default_rng(0).random(shape) * 100 + 20).astype(dtype)
            for name in NAMES:
                title = f"`{name}` of {np.dtype(dtype)}, {' x '.join(map(str, shape))}, axis={axis}"
                if options.only not in title:
                    continue
                calls = {
                    "bcast": lambda name=name, data=data, axis=axis: getattr(bcast, name)(data, axis=axis),
                    "numpy": lambda name=name, data=data, axis=axis: getattr(np, name)(data, axis=axis),
                }
                calls |= {
                    peer: call for peer, make in peers.items() if (call := make(name, data, axis, options.threads))
                }
                with np.errstate(all="ignore"):
                    off = [worst(np.asarray(calls[system]()), data, name, axis) for system in ("bcast", "numpy")]
                    least = measured(calls, options.rounds)
                ratios = {system: least[system] / least["bcast"] for system in calls if system != "bcast"}
                best = min(ratio for system, ratio in ratios.items() if system != "numpy")
                of_numpy.append(ratios["numpy"])
                of_best.append(best)
                cells = [f"{ratios[system]:.2f}" if system in ratios else "" for system in ("numpy", *peers)]
                if not options.summary or min(ratios.values()) < 0.95:
                    print(
                        f"| {title} | {least['bcast'] * 1e6:.0f} | {' | '.join(cells)} | {off[0]:.2g} | {off[1]:.2g} |",
                        flush=True,
                    )
    for system, ratios in (("NumPy", of_numpy), ("the best peer", of_best)):
        lost = sum(ratio < 0.95 for ratio in ratios)
        print(f"{system}: {geometric_mean(ratios):.2f}, least {min(ratios):.2f}, lost {lost} of {len(ratios)}")


if __name__ == "__main__":
    main()
