"""Gradients with respect to scales, `unbroadcast(grad, shape, times=x)`: bcast beside NumPy and the installed peers.

    python benchmarks/bench_products.py --threads 2 [--rounds 7] [--only SUBSTRING]

Each system does what its user would write: NumPy and torch multiply and sum, jax has both in one jitted function, and
einsum is NumPy's, on one thread. Turns are those of `bench_elementwise.py`. The table has the time of each, divided by
that of bcast, and the errors of the worst items beside sums in long double, in units in the last place of the sum of
the products' magnitudes.
"""

import argparse
import os
from importlib.util import find_spec

import numpy as np
from bench_elementwise import mean, measured

import bcast

# What is measured: a layer, the shapes of the gradient and of the scale, and a dtype.
LAYERS = [
    ("batch norm, NCHW", (32, 64, 56, 56), (1, 64, 1, 1), "f4"),
    ("batch norm, NCHW", (32, 256, 14, 14), (1, 256, 1, 1), "f4"),
    ("batch norm, NCHW", (32, 256, 14, 14), (1, 256, 1, 1), "f2"),
    ("batch norm, NCHW", (8, 64, 56, 56), (1, 64, 1, 1), "f8"),
    ("batch norm, NHWC", (32, 56, 56, 64), (64,), "f4"),
    ("batch norm, NHWC", (32, 14, 14, 256), (256,), "f4"),
    ("layer norm, rows", (4096, 768), (4096, 1), "f4"),
    ("linear", (4096, 768), (768,), "f4"),
    ("linear", (4096, 768), (768,), "f8"),
    ("linear", (4096, 768), (768,), "f2"),
    ("attention, rows", (8, 12, 512, 64), (8, 12, 512, 1), "f4"),
    ("attention, softmax", (4, 12, 512, 512), (4, 12, 512, 1), "f4"),
    ("scale of all", (4096, 768), (), "f4"),
]


def of_torch(threads, grad, x, axes, keepdims):
    import torch

    torch.set_num_threads(threads)
    grad, x = torch.from_numpy(grad), torch.from_numpy(x)
    return lambda: (grad * x).sum(axes, keepdim=keepdims)


def of_jax(_threads, grad, x, axes, keepdims):
    import jax

    jax.config.update("jax_enable_x64", True)
    function = jax.jit(lambda grad, x: (grad * x).sum(axes, keepdims=keepdims))
    grad, x = jax.numpy.asarray(grad), jax.numpy.asarray(x)
    return lambda: function(grad, x).block_until_ready()


def of_einsum(_threads, grad, x, axes, keepdims):
    every = list(range(grad.ndim))
    kept = [axis for axis in every if axis not in axes]
    shape = [1 if axis in axes else grad.shape[axis] for axis in (every if keepdims else kept)]
    return lambda: np.einsum(grad, every, x, every, kept).reshape(shape)


PEERS = {"torch": of_torch, "jax": of_jax, "einsum": of_einsum}


def errors(calls, grad, x, axes, keepdims):
    """Return the largest error of each system's result."""
    products = grad.astype("g") * x.astype("g")
    right, size = (terms.sum(axes, keepdims=keepdims) for terms in (products, np.abs(products)))
    unit = np.spacing(size.astype(grad.dtype)).astype("g")
    return {name: np.max(np.abs(np.asarray(call()).astype("g") - right) / unit) for name, call in calls.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="", help="a part of the names of the cases")
    options = parser.parse_args()
    bcast.set_num_threads(options.threads)
    peers = {name: make for name, make in PEERS.items() if name == "einsum" or find_spec(name)}
    names = ["numpy", *peers]
    print(f"NumPy {np.__version__}; threads: {options.threads}")
    print(f"| case | bcast, us | {' | '.join(names)} | ulp: bcast | {' | '.join(names)} |\n|---{'|--:' * 11}|")
    ratios = {name: [] for name in names}
    rng = np.random.default_rng(0)
    for layer, shape, scale, dtype in LAYERS:
        title = f"{layer}, {' x '.join(map(str, shape))}, {np.dtype(dtype)}"
        if options.only not in title:
            continue
        grad, x = rng.standard_normal((2, *shape), "f8" if dtype == "f8" else "f4").astype(dtype)
        source = (1,) * (len(shape) - len(scale)) + scale
        axes = tuple(axis for axis in range(len(shape)) if source[axis] != shape[axis])
        task = (grad, x, axes, len(scale) == len(shape))
        calls = {
            "bcast": lambda grad=grad, x=x, scale=scale: bcast.unbroadcast(grad, scale, times=x),
            "numpy": lambda grad=grad, x=x, axes=axes, keep=task[3]: (grad * x).sum(axes, keepdims=keep),
        }
        calls |= {name: make(options.threads, *task) for name, make in peers.items()}
        off = errors(calls, *task)
        least = measured(calls, options.rounds)
        for name in names:
            ratios[name].append(least[name] / least["bcast"])
        columns = [title, f"{least['bcast'] * 1e6:.0f}", *(f"{ratios[name][-1]:.2f}" for name in names)]
        print(f"| {' | '.join(columns + [f'{off[name]:.2g}' for name in calls])} |", flush=True)
    print("\nmeans:", ", ".join(f"{mean(found):.2f} {name}" for name, found in ratios.items()))
    print("least:", ", ".join(f"{min(found):.2f} {name}" for name, found in ratios.items()))


if __name__ == "__main__":
    main()
